//! How a function of libibumad fails.

use core::fmt;
use std::path::PathBuf;

use rustix::io::Errno;

use crate::error::{Cause, Error, Request};

/// What a function of libibumad returns when it fails.
#[derive(Debug, thiserror::Error)]
#[error("libibumad returns {value}{}", Because(.error))]
pub struct Failure {
    pub(super) value: i32,
    /// The errno of the failure, which may differ from the value.
    reason: Errno,
    // Not a `source`: the text has it.
    error: Option<Box<Error>>,
}

/// The failure below, if there was one.
struct Because<'e>(&'e Option<Box<Error>>);

impl fmt::Display for Because<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|error| write!(f, ": {error}"))
    }
}

impl Failure {
    /// The return value: negative, and usually an errno.
    #[must_use]
    pub fn value(&self) -> i32 {
        self.value
    }

    /// The error, if something could not be read.
    #[must_use]
    pub fn error(&self) -> Option<&Error> {
        self.error.as_deref()
    }

    /// The errno of the failure, which may differ from the value.
    #[cfg(feature = "capi")]
    pub(crate) fn reason(&self) -> Errno {
        self.reason
    }

    pub(super) fn new(errno: Errno) -> Self {
        Self { value: -errno.raw_os_error(), reason: errno, error: None }
    }

    /// The same reason with the return value of the calling function.
    pub(super) fn with(self, value: i32) -> Self {
        Self { value, ..self }
    }
}

/// A file that could not be read or understood.
pub(super) struct UnreadFile {
    pub(super) path: PathBuf,
    pub(super) errno: Errno,
}

impl UnreadFile {
    pub(super) fn of(&self, ca_name: &str, errno: Errno) -> Failure {
        let error = Error::new(ca_name, self.request(), Cause::of(self.errno));
        Failure { value: -errno.raw_os_error(), reason: self.errno, error: Some(Box::new(error)) }
    }

    /// The same of a file that is no CA's.
    pub(super) fn of_host(&self) -> Failure {
        let error = Error::of_host(self.request(), Cause::of(self.errno));
        Failure { error: Some(Box::new(error)), ..Failure::new(self.errno) }
    }

    fn request(&self) -> Request {
        Request::Sysfs { path: self.path.clone() }
    }
}
