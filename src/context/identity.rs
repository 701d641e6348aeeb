//! Whether an open node is still the device's that was listed.

use std::path::Path;

use nix::libc;
use rustix::io::Errno;

use crate::device::Device;
#[cfg(all(test, feature = "simulated-kernel"))]
use crate::device::Identity;
use crate::error::Cause;
use crate::netlink::Socket;
use crate::netlink::rdma::{chardev_request, parse_chardev};
#[cfg(all(test, feature = "simulated-kernel"))]
use crate::sysfs::Sysfs;

impl Device {
    /// Makes sure that the number of the node, which was opened just now, was the device's until
    /// now. Of a device that a program made up there is nothing to say.
    pub(crate) fn still_has_node(&self) -> Result<(), Cause> {
        match (&self.identity.node, self.index) {
            (Some(folder), index) => match folder.still_exists() {
                // Nothing is known of the folder.
                Err(Cause::Os(_)) if index.is_some() => self.still_has_number(),
                // Or another tree is mounted there now, or none. The kernel's own word counts.
                Err(cause) if index.is_some() => self.still_has_number().map_err(|_| cause),
                answer => answer,
            },
            (None, Some(_)) => self.still_has_number(),
            (None, None) => Ok(()),
        }
    }

    /// As RDMA netlink gives it. The kernel gives an index to one device, and to no other after it.
    fn still_has_number(&self) -> Result<(), Cause> {
        let (Some(index), Some(node)) = (self.index, &self.node) else { return Ok(()) };
        let mut socket = Socket::rdma().map_err(Cause::of)?;
        let mut now = Device::named("");
        let mut answer = Err(Cause::DeviceGone(libc::ENODEV));
        socket.ask(vec![chardev_request(index)], |_, reply| {
            answer = match reply {
                Ok(reply) => parse_chardev(reply, Path::new(""), &mut now),
                Err(Errno::INVAL | Errno::NODEV | Errno::OPNOTSUPP) => {
                    Err(Cause::DeviceGone(libc::ENODEV))
                }
                Err(errno) => Err(Cause::of(errno)),
            };
            Ok(())
        })?;
        answer?;
        match now.node {
            Some(now) if now.number == node.number => Ok(()),
            _ => Err(Cause::Replaced),
        }
    }
}

#[cfg(all(test, feature = "simulated-kernel"))]
impl Identity {
    /// That of a device whose node has this folder.
    pub(crate) fn with_node(path: &Path) -> Self {
        let folder = Sysfs::at(path).folder("").id().ok();
        Self { node: folder, device: None }
    }
}
