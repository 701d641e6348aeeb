//! Why there is no answer, and which errno says so.

use std::path::PathBuf;

use nix::libc;
use rustix::io::Errno;

use super::request::Request;
use crate::driver::DriverId;
use crate::mlx5_firmware::FirmwareRefusal;

/// Why a request was not answered. Numbers in it are errnos, positive.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// The device has no uverbs node: `ib_uverbs` is not loaded, or the driver registers none (`ENOENT`).
    #[error("the device has no uverbs node")]
    NoNode,
    /// It could not be found out which uverbs node the device has, or whether it has one (`ENOENT`).
    #[error("it is not known which uverbs node the device has")]
    NodeUnread,
    /// The node is not there (`ENOENT`).
    #[error("no such file")]
    NodeMissing,
    /// The node is not the device's character device (`ENXIO`).
    #[error("not the device's character device")]
    WrongNode,
    /// The node may not be opened by this user (`EACCES`).
    #[error("permission denied")]
    PermissionDenied,
    /// The node is in a mount with the option `nodev`, in which nobody may open a device (`EACCES`).
    #[error("its mount has the option nodev")]
    MountedNodev,
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
    /// A limit was reached, the rdma cgroup's or the firmware's, or the device is not active (`EAGAIN` of
    /// `GET_CONTEXT`). It is not while it comes or goes, nor once its driver gave it up.
    #[error("refused")]
    Refused,
    /// Another device has taken over the name or the node since this one was listed, or it has another name (`ENODEV`).
    #[error("it was replaced by another device, or renamed")]
    Replaced,
    /// No driver id is accepted by the device (`EINVAL`).
    #[error("no known driver id is accepted")]
    UnknownDriver,
    /// The caller's slice has no room for all entries (`EINVAL`, as the kernel says it).
    #[error("the table has more valid entries than the caller's {0}")]
    NoRoom(usize),
    /// The folder is no sysfs: it is not mounted there, or the path is wrong (`ENOENT`).
    #[error("not a sysfs, as it has no class and no module")]
    NotSysfs,
    /// The tree does not have the device, which RDMA netlink lists: it is the sysfs of another network namespace, or a
    /// part of it is hidden (`ENOENT`).
    #[error("this sysfs does not show the device")]
    NotInSysfs,
    /// No device of that name is seen from here (`ENODEV`).
    #[error("no such device")]
    NoSuchDevice,
    /// No port can be the [default](crate::umad::default_port): each is disabled, or of a device
    /// that libibumad leaves out, as of iWARP; or there is none (`ENODEV`).
    #[error("no port can be the default")]
    NoDefaultPort,
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
    /// The same of a file of sysfs, where the request does not name it (`EPROTO`).
    #[error("unusable answer: {what} in {}", path.display())]
    MalformedFile {
        /// The file.
        path: PathBuf,
        /// What is wrong in it.
        what: &'static str,
    },
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
            Self::NoNode
            | Self::NodeUnread
            | Self::NodeMissing
            | Self::NotSysfs
            | Self::NotInSysfs => libc::ENOENT,
            Self::WrongNode => libc::ENXIO,
            Self::PermissionDenied | Self::MountedNodev => libc::EACCES,
            Self::NotPermitted => libc::EPERM,
            Self::NoSuchDevice | Self::NoDefaultPort | Self::Replaced => libc::ENODEV,
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
            Self::Malformed(_) | Self::MalformedFile { .. } => libc::EPROTO,
            Self::DeviceGone(errno) | Self::Os(errno) => *errno,
        }
    }

    /// [`errno`](Self::errno), as the system calls of this crate give it.
    pub(crate) fn as_errno(&self) -> Errno {
        Errno::from_raw_os_error(self.errno())
    }

    /// The cause for the sentence that names this request: it does not name a file twice.
    pub(super) fn beside(self, request: &Request) -> Self {
        match (self, request) {
            (Self::MalformedFile { path, what }, Request::Sysfs { path: named })
                if path == *named =>
            {
                Self::Malformed(what)
            }
            (cause, _) => cause,
        }
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
