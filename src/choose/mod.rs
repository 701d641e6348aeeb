//! Which GID of a port to use, and which one NCCL, NVSHMEM and UCX take by themselves, with a reason
//! for every row of the table.
//!
//! All functions are pure: they take a [`Port`], which [`ports`] makes from an
//! [`Inventory`](crate::Inventory), and settings. [`recommend`] is this project's own advice. [`nccl`] and
//! [`ucx`] are models of programs, by release where releases differ: they say what those programs do, not
//! what would be right.
//!
//! ```
//! use uverbs::choose::{self, Outcome, Wish};
//!
//! let inventory = uverbs::Host::new().inventory(&Default::default());
//! for port in choose::ports(&inventory) {
//!     let decision = choose::recommend(&port, &Wish::default());
//!     if let Outcome::Taken(index) = decision.outcome {
//!         println!("{}:{} uses GID {index}", port.device, port.number);
//!     }
//!     for (index, reason) in decision.rows {
//!         println!("  {index}: {reason}");
//!     }
//! }
//! ```
//!
//! The models cannot know whether a plug-in replaces NCCL's own transport, what a launcher sets, and
//! what the peer chooses. They also do not know whether a UCX address handle fails for another reason
//! than an interface that is down (Linux 5.10 refuses an interface outside the first network namespace).

mod address;
mod decision;
#[cfg(feature = "serde")]
mod form;
pub mod nccl;
pub mod plan;
mod port;
mod reason;
mod recommend;
#[cfg(test)]
mod recorded;
pub mod room;
mod surroundings;
#[cfg(test)]
mod tests;
pub mod ucx;

pub use address::{Family, Network};
pub(crate) use address::{address_of, is_link_local, is_of_link};
pub use decision::{Decision, Outcome};
pub(crate) use port::is_roce;
pub use port::{Home, MAX_INDEX, Port, Row};
pub use reason::{Caveat, Reason, Why};
pub(crate) use recommend::is_usable;
pub use recommend::{Wish, caveats, is_sure, recommend};
pub(crate) use surroundings::{Kind, home};
pub use surroundings::{Surroundings, port, ports};

/// Returns the value of a program's variable.
type Variables<'f, 'v> = &'f dyn Fn(&str) -> Option<&'v str>;
