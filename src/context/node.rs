//! The uverbs node of a device.

use rustix::fs::OFlags;

use crate::device::{Device, Node};
use crate::error::{Cause, Error, Request, Result};
use crate::ioctl::sys::kernel::Kernel;
use crate::sysfs;

/// Opens the uverbs node, and makes sure that it is the device's.
pub(super) fn open_node(device: &Device) -> Result<Kernel> {
    let Some(Node { path, number, .. }) = &device.node else {
        return Err(Error::new(&*device.name, Request::GetContext, no_node(device)));
    };
    let error = |cause| Error::new(&*device.name, Request::Open { path: path.clone() }, cause);
    let opened = sysfs::open_node(path, *number, OFlags::RDONLY);
    // Only now: the number may have been given to another device before the open, not after it. And of a device that
    // goes the node is missing.
    let owned = match opened {
        Ok(_) | Err(Cause::NodeMissing) => device.still_has_node(),
        Err(_) => Ok(()),
    };
    match (opened, owned) {
        (Ok(fd), Ok(())) => Ok(Kernel::Device(fd)),
        (Ok(_), Err(cause)) | (Err(_), Err(cause @ (Cause::DeviceGone(_) | Cause::Replaced))) => {
            Err(error(cause))
        }
        (Err(cause), _) => Err(error(cause)),
    }
}

/// Why no node of the device can be opened.
pub(super) fn no_node(device: &Device) -> Cause {
    if device.node_is_unread { Cause::NodeUnread } else { Cause::NoNode }
}
