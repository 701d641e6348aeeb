//! Why there are no counters: the driver has none, or the device is gone.

use nix::libc;
use rustix::io::Errno;

use crate::device::Device;
use crate::error::{Cause, Error, Request};
use crate::host::Host;
use crate::netlink::rdma::device_request;
use crate::netlink::statistics::is_of;
use crate::sysfs::{Folder, Sysfs, whole};

/// That a device was removed while its files were read, or one of its ports. Those that are gone do not say so.
pub(super) fn removed(device: &Device, sysfs: &Sysfs) -> Option<Error> {
    let missing = |folder: &Folder| folder.is_missing().then_some(Cause::Os(libc::ENOENT));
    let error = |folder: &Folder, cause| {
        let request = Request::Sysfs { path: folder.path().to_owned() };
        Error::new(&*device.name, request, cause)
    };
    let own = sysfs.device(&device.name).ok()?;
    if let Some(cause) = missing(&own) {
        return Some(error(&own, cause));
    }
    let mut ports = device.ports().filter_map(|port| sysfs.port(&device.name, port).ok());
    ports.find_map(|port| {
        let unwhole = || whole(&port).err().map(|(_, cause)| cause);
        Some(error(&port, missing(&port).or_else(unwhole)?))
    })
}

/// That a device of which there are no files is gone. Netlink refuses its counters as those of a driver that has
/// none.
pub(super) fn gone(host: &mut Host, device: &Device) -> Option<Error> {
    let request = device_request(device.index?);
    let mut answer = Ok(());
    let asked = host.netlink()?.ask(vec![request], |_, reply| {
        answer = match reply {
            Ok(reply) => is_of(reply, &device.name),
            Err(Errno::INVAL | Errno::NODEV) => Err(Cause::DeviceGone(libc::ENODEV)),
            Err(errno) => Err(Cause::of(errno)),
        };
        Ok(())
    });
    let cause = asked.and(answer).err()?;
    Some(Error::new(&*device.name, Request::Netlink, cause))
}

/// Whether the kernel refused because the port has no counters by netlink, of which it has so many by name; or more
/// than fit into a message. A driver that has none is refused as one that fails, and so is a device that is gone.
pub(super) fn means_none(cause: &Cause, count: usize) -> bool {
    match cause.as_errno() {
        Errno::MSGSIZE => true,
        Errno::INVAL | Errno::OPNOTSUPP => count == 0,
        _ => false,
    }
}
