//! Recordings: an inventory and what was found after it, as lines of JSON, written and read.
//!
//! [`Lines`] makes lines, [`Recording`] reads them. A line has what *is* after a reading, where it was not so
//! before. The differences are found when it is read, by [`differences`](super::differences), as they were when it
//! was written. Files are the caller's.

mod form;
mod part;
mod read;
mod time;
mod write;

pub use part::Part;
pub use read::{Entry, Moment, Recording};
pub use time::{format_time, parse_clock, parse_time};
pub use write::{Lines, RECORDED};

#[cfg(test)]
mod tests;
