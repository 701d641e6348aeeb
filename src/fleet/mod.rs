//! Many hosts, as one fleet: which are odd, which ports cannot meet, what is there twice.
//!
//! A [`Survey`] takes [inventories](crate::Inventory) one by one and keeps little of each: what is equal on many
//! hosts is kept once. All here are pure functions of inventories; nothing is asked.
//!
//! ```
//! use uverbs::fleet::{Rails, Survey};
//!
//! let mut survey = Survey::default();
//! # let inventories = [uverbs::Inventory::default()];
//! for inventory in &inventories {
//!     survey.add(inventory);
//! }
//! for group in survey.groups().odd {
//!     println!("{:?} differ: {:?}", group.hosts, group.differences);
//! }
//! let pairs = survey.pairs(Rails::Found, false, |_| true);
//! println!("{} that cannot meet, or may not", pairs.problems.len());
//! ```
//!
//! [`End`] is what a port brings to a connection, and [`meet`] says of two of them whether they can meet. The
//! survey never compares each port with each other one: it compares the kinds of ends, of which there are few.

mod duplicates;
mod end;
mod groups;
mod meet;
mod names;
mod pairs;
mod profile;
mod rails;
mod survey;
#[cfg(test)]
mod tests;
mod troubles;

pub use duplicates::{Duplicate, Identity};
pub use end::{Compared, End, Fabric, Reach, Site, Upper, Used, UsedRow};
pub use groups::{Difference, Group, Groups};
pub use meet::{Doubt, Meeting, Obstacle, meet};
pub use pairs::{Pairs, Trouble, Why};
pub use profile::Field;
pub use rails::Rails;
pub use survey::{Chooser, Survey};
