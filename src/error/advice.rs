//! What a person can do about an error.

use core::fmt;
use std::path::Path;

use nix::libc;

use super::cause::Cause;
use super::request::Request;

const NOT_IN_SYSFS: &str = "RDMA netlink lists it: this is, or may be, the sysfs of another network namespace (mount \
                            it anew, as ip netns exec does), or a part of it is hidden";

const NODE_UNREAD: &str =
    "RDMA netlink or class/infiniband_verbs of sysfs did not say it: is all of sysfs there?";

/// Of a node that is another file.
pub(crate) const WRONG_NODE: &str =
    "the node is stale, or covered: make it anew, or restart the container";

/// What a person can do about it: the end of an error's sentence.
pub(super) struct Advice<'e>(pub(super) &'e Request, pub(super) &'e Cause);

impl fmt::Display for Advice<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (request, cause) = (self.0, self.1);
        let known = of_netlink(request, cause).or_else(|| of_firmware(request, cause));
        let advice = known.unwrap_or(match (request, cause) {
            (_, Cause::NoNode) => {
                "load the module ib_uverbs; if it is loaded, the driver offers no node, and only sysfs can be read, or the device comes or goes"
            }
            (Request::ListDevices, Cause::NodeUnread) => NODE_UNREAD,
            (_, Cause::NodeUnread) => {
                "the listing of devices says more; read sysfs if that has the answer"
            }
            (_, Cause::NotSysfs) => "mount it, or name another",
            (_, Cause::NotInSysfs) => NOT_IN_SYSFS,
            (_, Cause::NodeMissing) => {
                "give the container this device node, or read sysfs if that has the answer"
            }
            (_, Cause::WrongNode) => WRONG_NODE,
            (_, Cause::PermissionDenied) => {
                "the node's mode, its folder, the mount or a security module forbids it (the kernel makes it \
                 with mode 0666)"
            }
            (_, Cause::MountedNodev) => {
                "mount it without nodev, or give the container the node as a device"
            }
            (Request::Open { .. }, Cause::NotPermitted) => {
                "the device is in another network namespace (rdma system netns exclusive), or the \
                 container's device rules forbid it"
            }
            (_, Cause::NotPermitted | Cause::Os(libc::ENOSYS)) if may_be_in_sysfs(request) => {
                "a filter of system calls (seccomp) may forbid it; read sysfs if that has the answer"
            }
            (_, Cause::NotPermitted | Cause::Os(libc::ENOSYS)) => {
                "a filter of system calls (seccomp) may forbid it"
            }
            (_, Cause::Os(libc::EMFILE)) => "this process may have no more open files (ulimit -n)",
            (_, Cause::DeviceGone(_) | Cause::Replaced) => "list the devices again",
            (Request::Sysfs { path }, Cause::Os(libc::ENOENT)) => of_missing(path),
            (Request::PKey { .. }, Cause::Os(libc::ENOENT)) => "is all of sysfs there?",
            (Request::Interface { .. } | Request::GidTable, Cause::Os(libc::EAGAIN)) => {
                "it came, went or changed meanwhile: ask again"
            }
            (_, Cause::NoIoctl)
            | (Request::GidEntry { .. } | Request::GidTable, Cause::UnknownToKernel) => {
                "read sysfs, or use Linux 5.10 or newer"
            }
            (Request::PortSpeed { .. }, Cause::UnknownToKernel) => "it came with Linux 7.0",
            (Request::Mlx5Port { .. }, Cause::UnknownToKernel) => "it came with Linux 5.13",
            (_, Cause::NeedsDevx) | (Request::Firmware { .. }, Cause::NotOffered) => {
                "open the device with mlx5::devx::open"
            }
            (_, Cause::UnknownToKernel) if may_be_in_sysfs(request) => {
                "use a newer kernel, or read sysfs if that has the answer"
            }
            (_, Cause::UnknownToKernel) => "use a newer kernel",
            (Request::GetContext, Cause::Refused) => {
                "the rdma cgroup's limit of hca_handle is reached, or the device is not active (it \
                 comes or goes, or its firmware failed: see the kernel's log), or its firmware has \
                 nothing left; sysfs may have the answer"
            }
            // Drivers make the same number of a request that they do not know and of one that the
            // firmware refuses.
            (Request::GetContext, Cause::Os(libc::EINVAL) | Cause::NotOffered) => {
                "the driver made no context: its firmware refused (see the kernel's log), or it does \
                 not know this version's request; read sysfs if that has the answer"
            }
            (_, Cause::UnknownDriver) => {
                "the driver is newer than this program; read sysfs if that has the answer"
            }
            (_, Cause::NoRoom(_)) => "give more room",
            (_, Cause::NoSuchDevice) => "list the devices that this network namespace sees",
            (Request::GidEntry { .. }, Cause::Os(libc::EINVAL)) => {
                "the index is outside the port's table"
            }
            (Request::Port { port }, Cause::Os(libc::EINVAL)) if *port > u8::MAX.into() => {
                "the request cannot name ports above 255; read sysfs if that has the answer"
            }
            (
                Request::Port { .. }
                | Request::PortNetdev { .. }
                | Request::PortSpeed { .. }
                | Request::Counters { port: Some(_) },
                Cause::Os(libc::EINVAL),
            ) => {
                "the driver or its firmware refused, though the port is there; the kernel's log may \
                 say more"
            }
            _ => "",
        });
        write!(f, " (errno {})", self.1.errno())?;
        if advice.is_empty() { Ok(()) } else { write!(f, "; {advice}") }
    }
}

/// Whether sysfs may say the same. What a command is for is not known where it opens a device.
fn may_be_in_sysfs(request: &Request) -> bool {
    matches!(
        request,
        Request::Open { .. }
            | Request::ProbeDriver
            | Request::GetContext
            | Request::GidEntry { .. }
            | Request::GidTable
            | Request::Port { .. }
            | Request::Guid
    )
}

/// The same of mlx5's firmware.
fn of_firmware(request: &Request, cause: &Cause) -> Option<&'static str> {
    Some(match (request, cause) {
        (Request::Firmware { .. }, Cause::UnknownToKernel) => {
            "the device's firmware has no user contexts"
        }
        (Request::GetDevxContext, Cause::Os(libc::EINVAL)) => {
            "the device's firmware may have no user contexts, or it refused: see the kernel's log"
        }
        (Request::GetDevxContext, Cause::Refused | Cause::Os(libc::ENOMEM)) => {
            "the rdma cgroup's limit of hca_handle is reached, or the device is not active (it \
             comes or goes, or its firmware failed: see the kernel's log), or the firmware has no \
             user context left"
        }
        (Request::Firmware { .. }, Cause::Os(libc::EINVAL)) => {
            "the kernel lets no such command through, or not of that length; before Linux 6.1 \
             the firmware's refusal may look the same"
        }
        (Request::Mlx5Port { .. }, Cause::Os(libc::EINVAL)) => {
            "the port's own function has no driver, or the firmware refused: see the kernel's \
             log"
        }
        (
            Request::Firmware { .. } | Request::Mlx5Port { .. } | Request::GetDevxContext,
            Cause::Os(libc::EIO | libc::ENXIO | libc::EBUSY | libc::ETIMEDOUT),
        )
        | (Request::Sysfs { .. } | Request::PKey { .. }, Cause::Os(libc::ENOLINK)) => {
            "the firmware failed, is busy or being reset; the kernel's log says more"
        }
        _ => return None,
    })
}

/// The same if netlink was not there, or refused.
fn of_netlink(request: &Request, cause: &Cause) -> Option<&'static str> {
    let Cause::Os(errno) = cause else { return None };
    match (request, *errno) {
        (
            Request::Netlink | Request::ListDevices | Request::Interfaces,
            libc::EAFNOSUPPORT | libc::EPERM | libc::EACCES | libc::ENOSYS,
        ) => Some("a filter of system calls (seccomp, RestrictAddressFamilies=) may forbid it"),
        (Request::Netlink, libc::EPROTONOSUPPORT) => Some("is the module ib_core loaded?"),
        (Request::Netlink, libc::EINVAL | libc::EOPNOTSUPP) => Some(
            "the kernel may be older than Linux 4.16, or a filter of system calls (seccomp) may forbid it",
        ),
        _ => None,
    }
}

/// What to do if a file of sysfs is missing. A device that goes loses one file after the other.
fn of_missing(path: &Path) -> &'static str {
    if is_device(path) {
        "list the devices again"
    } else if path.ancestors().any(is_device) {
        "has it gone? is all of sysfs there?"
    } else {
        "is all of sysfs there?"
    }
}

/// Whether this is a device's own folder: `class/infiniband/NAME`, or where that leads.
fn is_device(path: &Path) -> bool {
    path.parent().is_some_and(|folder| folder.ends_with("infiniband"))
}
