//! One setting for many ports: the variables by which a program uses the right GID on each of them.
//!
//! Candidates are tried on the program's model, in this order: one index; the program's own choice; that
//! choice limited to addresses of one network. The first candidate that is right on every port is the plan.
//! The program must not use a port that is not wanted. Other settings may be right where no candidate is.
//!
//! ```
//! use uverbs::choose::plan::{Program, Target, plan};
//! use uverbs::choose::{self, Port, Wish, recommend};
//!
//! let inventory = uverbs::Host::new().inventory(&Default::default());
//! let ports = choose::ports(&inventory);
//! let right = |port: &Port<'_>| recommend(port, &Wish::default()).outcome.index();
//! let targets: Vec<Target<'_, '_>> =
//!     ports.iter().map(|port| Target { host: 0, port, index: right(port) }).collect();
//! if let Some(plan) = plan(Program::Nccl, &targets, false, |_| false) {
//!     println!("{:?}", plan.variables);
//! }
//! ```

mod fleet;
mod program;
mod search;
mod target;
#[cfg(test)]
mod tests;

pub use fleet::Fleet;
pub use program::{Model, Program};
pub use search::{Plan, Way, plan};
pub use target::Target;
