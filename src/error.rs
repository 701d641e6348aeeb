//! What failed, where, and with which errno.
//!
//! An [`Error`] names its device and its request. Three ways lead into it:
//!
//! - its text, for people: subject, request, cause, errno and advice in one line, unless a name
//!   or a path that the caller gave has a newline. The text is complete,
//!   so [`source`](std::error::Error::source) is `None` and a chain of errors says nothing twice;
//! - [`cause`](Error::cause), for programs that match on it, and predicates such as
//!   [`is_gone`](Error::is_gone) for the usual branches;
//! - [`errno`](Error::errno), the number that rdma-core's functions and this crate's C interface return.
//!
//! Every errno in this crate is an `i32`, positive, as in [`std::io::Error::raw_os_error`]. An empty slot
//! of a GID table is no error: queries answer `None`.
//!
//! ```
//! use uverbs::error::Cause;
//!
//! let error = uverbs::Host::rooted("/nowhere", "/nowhere").open("rxe0").unwrap_err();
//! assert_eq!(error.cause(), &Cause::NotSysfs);
//! assert_eq!(error.errno(), 2); // ENOENT
//! assert_eq!(std::io::Error::from(error).to_string(),
//!     "host: read /nowhere: not a sysfs, as it has no class and no module (errno 2); mount it, or name another");
//! ```

pub(crate) mod advice;
mod cause;
mod request;

use std::io;

use nix::libc;

use advice::Advice;

pub use cause::{Cause, EncodeError};
pub use request::Request;

/// The result of this library's calls.
pub type Result<T, E = Error> = core::result::Result<T, E>;

/// A request that could not be answered. See the [module](self) for its text, cause and errno.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{subject}: {request}: {cause}{}", Advice(.request, .cause))]
pub struct Error {
    subject: Subject,
    request: Request,
    // Not a `source`: the text has it.
    cause: Cause,
}

/// What was asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Subject {
    /// The host, and no device of it.
    Host,
    /// A device of this name, which may be `host` too.
    Device(String),
}

impl core::fmt::Display for Subject {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Host => f.write_str("host"),
            Self::Device(name) => f.write_str(name),
        }
    }
}

impl From<Error> for io::Error {
    /// The kind is that of the errno, and the [`Error`] is inside: [`io::Error::downcast`] gives it back.
    fn from(error: Error) -> Self {
        Self::new(Self::from_raw_os_error(error.errno()).kind(), error)
    }
}

impl Error {
    /// An error of a device.
    pub(crate) fn new(device: impl Into<String>, request: Request, cause: Cause) -> Self {
        let cause = cause.beside(&request);
        Self { subject: Subject::Device(device.into()), request, cause }
    }

    /// An error that is no device's.
    pub(crate) fn of_host(request: Request, cause: Cause) -> Self {
        let cause = cause.beside(&request);
        Self { subject: Subject::Host, request, cause }
    }

    /// What was asked about: a device's name, or `host`.
    #[must_use]
    pub fn subject(&self) -> &str {
        self.device().unwrap_or("host")
    }

    /// The device that was asked about; `None` if it was the host. A device may have the name `host`.
    #[must_use]
    pub fn device(&self) -> Option<&str> {
        match &self.subject {
            Subject::Host => None,
            Subject::Device(name) => Some(name),
        }
    }

    /// What was asked.
    #[must_use]
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// Why there is no answer.
    #[must_use]
    pub fn cause(&self) -> &Cause {
        &self.cause
    }

    /// The errno, as rdma-core's functions and the kernel give it (positive).
    #[must_use]
    pub fn errno(&self) -> i32 {
        self.cause.errno()
    }

    /// The device was removed, or is being removed ([`Cause::DeviceGone`]: `EIO`, `ENXIO`, `ENODEV`). List
    /// the devices again. Before Linux 5.10 it is not known of an open device that answers `EIO`.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        matches!(self.cause, Cause::DeviceGone(_))
    }

    /// Another device has the name or the node of the one that was listed, or it has another name ([`Cause::Replaced`],
    /// `ENODEV`). List the devices again.
    #[must_use]
    pub fn is_replaced(&self) -> bool {
        matches!(self.cause, Cause::Replaced)
    }

    /// The user, the container or a filter of system calls forbids the request (`EACCES`, `EPERM`).
    #[must_use]
    pub fn is_permission_denied(&self) -> bool {
        matches!(self.errno(), libc::EACCES | libc::EPERM)
    }

    /// The kernel, the driver or the device does not have this request (`ENOTTY`, `EPROTONOSUPPORT`,
    /// `EOPNOTSUPP`). Asking again does not help.
    #[must_use]
    pub fn is_not_supported(&self) -> bool {
        matches!(self.errno(), libc::ENOTTY | libc::EPROTONOSUPPORT | libc::EOPNOTSUPP)
    }

    /// This network namespace has no device of that name ([`Cause::NoSuchDevice`], `ENODEV`).
    #[must_use]
    pub fn is_no_such_device(&self) -> bool {
        matches!(self.cause, Cause::NoSuchDevice)
    }

    /// The device has no port of that number ([`Cause::NoSuchPort`], `EINVAL`).
    #[must_use]
    pub fn is_no_such_port(&self) -> bool {
        matches!(self.cause, Cause::NoSuchPort)
    }

    /// The kernel, the rights or the container leave no ioctl at all, so that
    /// [`Sysfs`](crate::Sysfs) may answer instead. [`Reader`](crate::host::Reader) decides by it.
    #[must_use]
    pub fn leaves_no_ioctl(&self) -> bool {
        matches!(
            self.cause,
            Cause::NoNode
                | Cause::NodeUnread
                | Cause::NodeMissing
                | Cause::WrongNode
                | Cause::PermissionDenied
                | Cause::MountedNodev
                | Cause::NotPermitted
                | Cause::NoIoctl
                | Cause::UnknownToKernel
                | Cause::UnknownDriver
                | Cause::Refused
                // A filter of system calls, or an emulator that does not know the ioctl.
                | Cause::Os(libc::ENOSYS)
        )
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;
    use crate::driver::DriverId;
    use crate::mlx5_firmware::{FirmwareRefusal, Status};

    fn error(cause: Cause) -> Error {
        Error::new("sim0", Request::Device, cause)
    }

    /// The predicates that hold for a cause.
    fn holding(cause: Cause) -> Vec<&'static str> {
        let error = error(cause);
        [
            ("gone", error.is_gone()),
            ("replaced", error.is_replaced()),
            ("denied", error.is_permission_denied()),
            ("unsupported", error.is_not_supported()),
            ("device", error.is_no_such_device()),
            ("port", error.is_no_such_port()),
        ]
        .into_iter()
        .filter_map(|(name, holds)| holds.then_some(name))
        .collect()
    }

    #[test]
    fn one_predicate_a_branch() {
        for (cause, expected) in [
            (Cause::DeviceGone(libc::EIO), &["gone"][..]),
            (Cause::Os(libc::EIO), &[]),
            (Cause::Replaced, &["replaced"]),
            (Cause::PermissionDenied, &["denied"]),
            (Cause::MountedNodev, &["denied"]),
            (Cause::NotPermitted, &["denied"]),
            (Cause::Os(libc::EACCES), &["denied"]),
            (Cause::NoIoctl, &["unsupported"]),
            (Cause::UnknownToKernel, &["unsupported"]),
            (Cause::NotOffered, &["unsupported"]),
            (Cause::OtherDriver(DriverId::RXE), &["unsupported"]),
            (Cause::NoSuchDevice, &["device"]),
            (Cause::NoSuchPort, &["port"]),
            (Cause::Os(libc::EINVAL), &[]),
        ] {
            assert_eq!(holding(cause.clone()), expected, "{cause:?}");
        }
    }

    #[test]
    fn a_device_of_the_name_host_is_a_device() {
        let error = |own: Error| (own.device().map(str::to_owned), own.to_string());
        let (device, text) = error(Error::new("host", Request::Device, Cause::NoSuchPort));
        assert_eq!(device.as_deref(), Some("host"));
        assert!(text.starts_with("host: query device: "), "{text}");
        let (device, text) = error(Error::of_host(Request::Netlink, Cause::NoSuchPort));
        assert_eq!(device, None);
        assert!(text.starts_with("host: ask RDMA netlink: "), "{text}");
    }

    /// A device goes, with all its files.
    #[test]
    fn the_devices_are_listed_again_if_one_is_missing() {
        for (path, advice) in [
            ("class/infiniband/sim0", "list the devices again"),
            ("devices/virtual/infiniband/sim0", "list the devices again"),
            ("class/infiniband/sim0/ports/1/gids", "has it gone? is all of sysfs there?"),
            ("class/infiniband", "is all of sysfs there?"),
            ("class/infiniband_mad", "is all of sysfs there?"),
        ] {
            let request = Request::Sysfs { path: path.into() };
            let text = Error::new("sim0", request, Cause::Os(libc::ENOENT)).to_string();
            assert!(text.ends_with(advice), "{text}");
        }
    }

    /// To list a device again that is listed changes nothing.
    #[test]
    fn a_sysfs_without_the_device_is_another_one() {
        let request = Request::Sysfs { path: "/sys/class/infiniband/sim0".into() };
        let error = Error::new("sim0", request, Cause::NotInSysfs);
        let text = error.to_string();
        assert!(text.contains("sysfs of another network namespace") && error.errno() == 2);
        assert!(!text.contains("again") && !error.is_gone(), "{text}");
    }

    /// Where it is sysfs that does not answer, or what sysfs does not have was asked for, nobody is sent there.
    #[test]
    fn sysfs_is_advised_only_where_it_may_answer() {
        let refused = [Cause::Os(libc::ENOSYS), Cause::NotPermitted, Cause::UnknownToKernel];
        for (request, may_answer) in [
            (Request::GetContext, true),
            (Request::GidTable, true),
            (Request::GetDevxContext, false),
            (Request::PortSpeed { port: 1 }, false),
            (Request::PKey { port: 1, index: None }, false),
            (Request::Counters { port: Some(1) }, false),
            (Request::Sysfs { path: "/sys/class/infiniband".into() }, false),
        ] {
            for cause in refused.clone() {
                let text = Error::new("sim0", request.clone(), cause).to_string();
                let (_, advice) = text.split_once("; ").unwrap_or_default();
                assert_eq!(advice.contains("read sysfs"), may_answer, "{text}");
            }
        }
    }

    /// Sysfs may have listed devices all the same: then the module is loaded.
    #[test]
    fn netlink_that_is_refused_lacks_no_module() {
        let advice = |errno| {
            let text = Error::of_host(Request::Netlink, Cause::Os(errno)).to_string();
            text.split_once(')').map(|(_, rest)| rest.to_owned()).unwrap_or_default()
        };
        for errno in [libc::EAFNOSUPPORT, libc::EPERM, libc::EACCES, libc::ENOSYS] {
            assert!(advice(errno).contains("RestrictAddressFamilies="), "{}", advice(errno));
        }
        assert!(advice(libc::EMFILE).contains("ulimit -n"));
        assert_eq!((advice(libc::ENOMEM), advice(libc::EAGAIN)), (String::new(), String::new()));
        assert!(advice(libc::EINVAL).contains("Linux 4.16"));
        assert!(advice(libc::EPROTONOSUPPORT).contains("ib_core"));
    }

    #[test]
    fn an_io_error_keeps_all() {
        let io = io::Error::from(error(Cause::NodeMissing));
        assert_eq!(io.kind(), io::ErrorKind::NotFound);
        assert_eq!(io.to_string(), error(Cause::NodeMissing).to_string());
        let back: Error = io.downcast().unwrap();
        assert_eq!((back.cause(), back.errno()), (&Cause::NodeMissing, libc::ENOENT));
    }

    /// What the text says, no source says again.
    #[test]
    fn the_text_is_complete() {
        let refusal = FirmwareRefusal::new(Status::BAD_OP, 7);
        for cause in [
            Cause::Os(libc::EINVAL),
            Cause::Firmware(refusal),
            Cause::Encode(EncodeError::Sent),
            Cause::Malformed("a port"),
        ] {
            let (words, error) = (cause.to_string(), error(cause));
            assert!(error.to_string().contains(&words), "{error}");
            assert!(error.source().is_none(), "{error}");
        }
    }
}
