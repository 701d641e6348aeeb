//! The uverbs node of a device.

use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};

use crate::device::{Device, Node};
use crate::error::{Cause, Error, Request, Result};
use crate::ioctl::sys::kernel::Kernel;
use crate::sysfs::{is_in_nodev, is_node};

/// Opens the uverbs node, and makes sure that it is the device's.
pub(super) fn open_node(device: &Device) -> Result<Kernel> {
    let Some(Node { path, number, .. }) = &device.node else {
        return Err(Error::new(&*device.name, Request::GetContext, no_node(device)));
    };
    let error = |cause| Error::new(&*device.name, Request::Open { path: path.clone() }, cause);
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let fd =
        retry_on_intr(|| rustix::fs::open(path, flags, Mode::empty())).map_err(
            |errno| match errno {
                Errno::ACCESS if is_in_nodev(path) => error(Cause::MountedNodev),
                errno => error(Cause::of_open(errno)),
            },
        )?;
    match is_node(&fd, *number) {
        Ok(true) => {}
        Ok(false) => return Err(error(Cause::WrongNode)),
        Err(errno) => return Err(error(Cause::of(errno))),
    }
    // Only now: the number may have been given to another device before the open, not after it.
    device.still_has_node().map_err(error)?;
    Ok(Kernel::Device(fd))
}

/// Why no node of the device can be opened.
pub(super) fn no_node(device: &Device) -> Cause {
    if device.node_is_unread { Cause::NodeUnread } else { Cause::NoNode }
}
