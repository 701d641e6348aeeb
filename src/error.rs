//! What failed, where, and with which errno.
//!
//! An [`Error`] names its device and its request. Three ways lead into it:
//!
//! - its text, for people: subject, request, cause, errno and advice in one line. The text is complete,
//!   so [`source`](std::error::Error::source) is `None` and a chain of errors says nothing twice;
//! - [`cause`](Error::cause), for programs that match on it, and predicates such as
//!   [`is_gone`](Error::is_gone) for the usual branches;
//! - [`errno`](Error::errno), the number that rdma-core's functions and this crate's C interface return.
//!
//! Every errno in this crate is an `i32`, positive, as in [`std::io::Error::raw_os_error`]. An empty slot
//! of a GID table is no error: queries answer `None`.
//!
//! ```
//! let error = uverbs::Host::rooted("/nowhere", "/nowhere").open("rxe0").unwrap_err();
//! assert!(error.is_no_such_device());
//! assert_eq!(error.errno(), 19); // ENODEV
//! assert_eq!(std::io::Error::from(error).to_string(),
//!     "rxe0: list devices: no such device (errno 19); list the devices that this network namespace sees");
//! ```

mod advice;

use core::fmt;
use std::io;
use std::path::PathBuf;

use nix::libc;
use rustix::io::Errno;

use crate::driver::DriverId;
use crate::mlx5_firmware::{self, FirmwareRefusal, FirmwareTarget};
use advice::Advice;

/// The result of this library's calls.
pub type Result<T, E = Error> = core::result::Result<T, E>;

/// A request that could not be answered. See the [module](self) for its text, cause and errno.
#[derive(Debug, thiserror::Error)]
#[error("{subject}: {request}: {cause}{}", Advice(.request, .cause))]
pub struct Error {
    subject: String,
    request: Request,
    // Not a `source`: the text has it.
    cause: Cause,
}

impl From<Error> for io::Error {
    /// The kind is that of the errno, and the [`Error`] is inside: [`io::Error::downcast`] gives it back.
    fn from(error: Error) -> Self {
        Self::new(Self::from_raw_os_error(error.errno()).kind(), error)
    }
}

/// What was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Request {
    /// List the devices of the host.
    ListDevices,
    /// Ask RDMA netlink.
    Netlink,
    /// Ask the kernel's network interfaces and addresses (route netlink).
    Interfaces,
    /// Open the uverbs node.
    Open {
        /// The character device.
        path: PathBuf,
    },
    /// Find out the driver id by probing.
    ProbeDriver,
    /// `GET_CONTEXT`.
    GetContext,
    /// `GET_CONTEXT` of an mlx5 device with a user context of the firmware's (DEVX).
    GetDevxContext,
    /// `QUERY_CONTEXT` of a node that is already open.
    QueryContext,
    /// An event file, or an event of it.
    Events,
    /// `QUERY_GID_ENTRY`, or the same from sysfs.
    GidEntry {
        /// Port number.
        port: u32,
        /// Index in the port's table.
        index: u32,
    },
    /// `QUERY_GID_TABLE`, or the same from sysfs.
    GidTable,
    /// `QUERY_PORT`, or the same from sysfs.
    Port {
        /// Port number.
        port: u32,
    },
    /// `QUERY_PORT_SPEED`.
    PortSpeed {
        /// Port number.
        port: u32,
    },
    /// `QUERY_DEVICE`.
    Device,
    /// One P_Key, or all of a port.
    PKey {
        /// Port number.
        port: u32,
        /// Index in the port's table; `None` for the whole table.
        index: Option<u32>,
    },
    /// Node or system image GUID.
    Guid,
    /// `MLX5_IB_METHOD_QUERY_PORT`.
    Mlx5Port {
        /// Port number.
        port: u32,
    },
    /// A command to an mlx5 device's firmware.
    Firmware {
        /// The operation.
        opcode: u16,
        /// What it is about.
        target: FirmwareTarget,
    },
    /// A command of the caller's own: [`Context::submit`](crate::Context::submit).
    Ioctl {
        /// Id of the object.
        object: u16,
        /// Id of the object's method.
        method: u16,
    },
    /// A file or folder of sysfs.
    Sysfs {
        /// The file, below the root that is read.
        path: PathBuf,
    },
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ListDevices => f.write_str("list devices"),
            Self::Netlink => f.write_str("ask RDMA netlink"),
            Self::Interfaces => f.write_str("list network interfaces"),
            Self::Open { path } => write!(f, "open {}", path.display()),
            Self::ProbeDriver => f.write_str("probe driver id"),
            Self::GetContext => f.write_str("get context"),
            Self::GetDevxContext => f.write_str("get DEVX context"),
            Self::QueryContext => f.write_str("take over a context"),
            Self::Events => f.write_str("asynchronous events"),
            Self::GidEntry { port, index } => write!(f, "query GID {index} of port {port}"),
            Self::GidTable => f.write_str("query GID table"),
            Self::Port { port } => write!(f, "query port {port}"),
            Self::PortSpeed { port } => write!(f, "query speed of port {port}"),
            Self::Device => f.write_str("query device"),
            Self::PKey { port, index: Some(index) } => {
                write!(f, "query P_Key {index} of port {port}")
            }
            Self::PKey { port, index: None } => write!(f, "query P_Keys of port {port}"),
            Self::Guid => f.write_str("query GUIDs"),
            Self::Mlx5Port { port } => write!(f, "query mlx5 port {port}"),
            Self::Firmware { opcode, target } => match mlx5_firmware::operation_name(*opcode) {
                Some(name) => write!(f, "firmware command {name}{target}"),
                None => write!(f, "firmware command {opcode:#x}{target}"),
            },
            Self::Ioctl { object, method } => write!(f, "method {method:#x} of object {object:#x}"),
            Self::Sysfs { path } => write!(f, "read {}", path.display()),
        }
    }
}

/// Why a request was not answered. Numbers in it are errnos, positive.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// The device has no uverbs node: `ib_uverbs` is not loaded, or the driver registers none (`ENOENT`).
    #[error("the device has no uverbs node")]
    NoNode,
    /// The node is not there (`ENOENT`).
    #[error("no such file")]
    NodeMissing,
    /// The node is not the device's character device (`ENXIO`).
    #[error("not the device's character device")]
    WrongNode,
    /// The node may not be opened by this user (`EACCES`).
    #[error("permission denied")]
    PermissionDenied,
    /// Refused (`EPERM`): the open, by another RDMA network namespace or a device cgroup; or the ioctl, by
    /// a filter of system calls.
    #[error("not permitted")]
    NotPermitted,
    /// The device has gone, or is going (`EIO`, `ENXIO`, `ENODEV`).
    #[error("the device is gone")]
    DeviceGone(i32),
    /// The kernel has no uverbs ioctl (`ENOTTY`; before 4.20).
    #[error("the kernel has no uverbs ioctl")]
    NoIoctl,
    /// The kernel does not know this request (`EPROTONOSUPPORT`).
    #[error("the kernel does not know this request")]
    UnknownToKernel,
    /// The device or its driver does not offer this (`EOPNOTSUPP`).
    #[error("the device does not offer this")]
    NotOffered,
    /// A limit was reached (`EAGAIN` of `GET_CONTEXT`): the rdma cgroup's, or the device is not active yet.
    #[error("temporarily refused")]
    Refused,
    /// Another device has taken over the name or the node since this one was listed (`ENODEV`).
    #[error("another device has taken its place")]
    Replaced,
    /// No driver id is accepted by the device (`EINVAL`).
    #[error("no known driver id is accepted")]
    UnknownDriver,
    /// The caller's slice has no room for all entries (`EINVAL`, as the kernel says it).
    #[error("the table has more valid entries than the caller's {0}")]
    NoRoom(usize),
    /// No device of that name is seen from here (`ENODEV`).
    #[error("no such device")]
    NoSuchDevice,
    /// The device has no such port (`EINVAL`).
    #[error("no such port")]
    NoSuchPort,
    /// In switchdev mode, a port that is no representor of a vport (`EOPNOTSUPP`).
    #[error("the port represents no vport of the e-switch")]
    NoRepresentor,
    /// The request is another driver's (`EOPNOTSUPP`).
    #[error("the device's driver is {0}, not mlx5")]
    OtherDriver(DriverId),
    /// The command needs a context with DEVX (`EINVAL`).
    #[error("the kernel wants a DEVX context for this command")]
    NeedsDevx,
    /// The firmware refused a command (`EREMOTEIO`).
    #[error(transparent)]
    Firmware(#[from] FirmwareRefusal),
    /// The answer of the kernel makes no sense (`EPROTO`).
    #[error("unusable answer: {0}")]
    Malformed(&'static str),
    /// The request cannot be encoded (`EINVAL`).
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// Any other errno.
    #[error("{}", nix::errno::Errno::from_raw(*.0))]
    Os(i32),
}

/// Why a command cannot be sent. Found before the kernel sees anything; the C interface's errno is `EINVAL`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// A payload is longer than [`MAX_PAYLOAD`](crate::ioctl::MAX_PAYLOAD).
    #[error("attribute {attr_id:#x}: {len} bytes, but one attribute carries at most {}", u16::MAX)]
    PayloadTooLong {
        /// The attribute.
        attr_id: u16,
        /// Its payload's length in bytes.
        len: usize,
    },
    /// More attributes than the command has room for (or than a page holds).
    #[error("attribute {attr_id:#x}: the command has room for {capacity} attributes")]
    TooManyAttributes {
        /// The attribute that found no room.
        attr_id: u16,
        /// Room of this command.
        capacity: usize,
    },
    /// The command is not described where the kernel's writing is checked, or lends no memory to
    /// an attribute that the kernel writes.
    #[error(
        "no memory is lent where the kernel writes, or the method is not known to this library"
    )]
    Undescribed,
    /// The command was sent before, and the kernel has written into it.
    #[error("the command was sent before")]
    Sent,
}

impl Cause {
    /// The errno of this cause, positive.
    #[must_use]
    pub fn errno(&self) -> i32 {
        match self {
            Self::NoNode | Self::NodeMissing => libc::ENOENT,
            Self::WrongNode => libc::ENXIO,
            Self::PermissionDenied => libc::EACCES,
            Self::NotPermitted => libc::EPERM,
            Self::NoSuchDevice | Self::Replaced => libc::ENODEV,
            Self::NoIoctl => libc::ENOTTY,
            Self::UnknownToKernel => libc::EPROTONOSUPPORT,
            Self::NotOffered | Self::NoRepresentor | Self::OtherDriver(_) => libc::EOPNOTSUPP,
            Self::Refused => libc::EAGAIN,
            Self::UnknownDriver
            | Self::NoRoom(_)
            | Self::NoSuchPort
            | Self::NeedsDevx
            | Self::Encode(_) => libc::EINVAL,
            Self::Firmware(_) => libc::EREMOTEIO,
            Self::Malformed(_) => libc::EPROTO,
            Self::DeviceGone(errno) | Self::Os(errno) => *errno,
        }
    }

    /// [`errno`](Self::errno), as the system calls of this crate give it.
    pub(crate) fn as_errno(&self) -> Errno {
        Errno::from_raw_os_error(self.errno())
    }

    /// An errno that means nothing in particular.
    pub(crate) fn of(errno: Errno) -> Self {
        Self::Os(errno.raw_os_error())
    }

    /// The cause of an errno of an ioctl on an open uverbs node.
    pub(crate) fn of_ioctl(errno: Errno) -> Self {
        match errno {
            Errno::IO => Self::DeviceGone(libc::EIO),
            Errno::NOTTY => Self::NoIoctl,
            Errno::PROTONOSUPPORT => Self::UnknownToKernel,
            Errno::OPNOTSUPP => Self::NotOffered,
            Errno::PERM => Self::NotPermitted,
            other => Self::of(other),
        }
    }

    /// The cause of an errno of opening a uverbs node.
    pub(crate) fn of_open(errno: Errno) -> Self {
        match errno {
            Errno::NOENT => Self::NodeMissing,
            Errno::ACCESS => Self::PermissionDenied,
            Errno::PERM => Self::NotPermitted,
            Errno::IO | Errno::NXIO | Errno::NODEV => Self::DeviceGone(errno.raw_os_error()),
            other => Self::of(other),
        }
    }
}

impl Error {
    pub(crate) fn new(subject: impl Into<String>, request: Request, cause: Cause) -> Self {
        Self { subject: subject.into(), request, cause }
    }

    /// What was asked about: a device's name, or `host`.
    #[must_use]
    pub fn subject(&self) -> &str {
        &self.subject
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
    /// the devices again.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        matches!(self.cause, Cause::DeviceGone(_))
    }

    /// Another device has the name or the node of the one that was listed ([`Cause::Replaced`],
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
                | Cause::NodeMissing
                | Cause::WrongNode
                | Cause::PermissionDenied
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
        let refusal = FirmwareRefusal::new(mlx5_firmware::Status::BAD_OP, 7);
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
