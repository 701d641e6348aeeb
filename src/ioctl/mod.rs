//! The uverbs ioctl: the encoder of requests, and the system call. Queries are in [`crate::context`].

mod command;
pub(crate) mod sys;

pub(crate) use command::SubmitError;
pub use command::{Command, MAX_ATTRIBUTES, MAX_PAYLOAD};

pub use crate::error::EncodeError;
