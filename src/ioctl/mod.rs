//! The uverbs ioctl: requests of the caller's own.
//!
//! A [`Command`] is a header and an array of attributes in one piece of stack memory; nothing is
//! allocated. It knows the rules by which every method's attributes are encoded (when a payload
//! goes inline, that a constant is always eight bytes, …) and no method: the modules
//! [`context`](crate::context) and [`mlx5`](crate::mlx5) say which attributes a method has, and
//! [`uapi`](crate::uapi) has the numbers. [`Context::submit`](crate::Context::submit) sends it.
//!
//! ```
//! use uverbs::ioctl::Command;
//! use uverbs::uapi::device::{method, object, query_gid_entry};
//!
//! let mut entry = [0u8; 32];
//! let mut command = Command::<4>::new(object::DEVICE, method::QUERY_GID_ENTRY);
//! command
//!     .constant(query_gid_entry::PORT, 1)
//!     .constant(query_gid_entry::GID_INDEX, 3)
//!     .flags(query_gid_entry::FLAGS, 0)
//!     .output(query_gid_entry::RESP_ENTRY, &mut entry);
//! assert_eq!(command.header().length, 24 + 4 * 16);
//! ```

mod command;
pub(crate) mod sys;

pub(crate) use command::SubmitError;
pub use command::{Command, MAX_ATTRIBUTES, MAX_PAYLOAD};

pub use crate::error::EncodeError;
