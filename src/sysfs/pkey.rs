//! P_Keys by sysfs: `pkeys` of each port. The kernel has no ioctl for them: [`ibv_query_pkey(3)`] reads
//! sysfs too.
//!
//! [`ibv_query_pkey(3)`]: https://man7.org/linux/man-pages/man3/ibv_query_pkey.3.html

use nix::libc;

use super::folder::Unread;
use super::port::{NO_SLOTS, while_whole};
use super::{Folder, Sysfs};
use crate::device::NodeType;
use crate::error::{Cause, Error, Request, Result};
use crate::pkey::PKey;

impl Sysfs {
    /// Reads one P_Key of a port.
    ///
    /// # Errors
    /// The errno of a file that cannot be read. Also `ENODEV` or `ENAMETOOLONG`: no device can have the name;
    /// `ENOENT`: no such device, here or any more, or a part of its files is missing; `EINVAL`: no such port or
    /// index; `EPROTO`: the file does not hold a P_Key.
    #[doc(alias = "ibv_query_pkey")]
    pub fn query_pkey(&self, device: &str, port: u32, index: u32) -> Result<PKey> {
        let request = || Request::PKey { port, index: Some(index) };
        self.steadily(device, request, |sysfs| {
            let port =
                sysfs.port(device, port).map_err(|cause| Error::new(device, request(), cause))?;
            let folder = port.join("pkeys");
            read_pkey(&folder, index).map_err(|unread| {
                // Where the table could not be listed, no index is known to be outside it.
                let (slot, unread) = match pkey_slots(&port) {
                    Ok(_) => (folder.join(index.to_string()), unread),
                    Err((_, Cause::MalformedFile { .. })) => (port.clone(), unread),
                    Err(why) => (port.clone(), why),
                };
                sysfs.missing_or(device, &port, &slot, request(), unread)
            })
        })
    }

    /// Reads all P_Keys of a port, with their indices, ascending; unused slots (0) included.
    ///
    /// ```no_run
    /// for (index, pkey) in uverbs::Sysfs::host().query_pkeys("mlx5_0", 1)? {
    ///     println!("{index} {pkey}");
    /// }
    /// # Ok::<(), uverbs::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errno of a file that cannot be read. Also `ENODEV` or `ENAMETOOLONG`: no device can have the name;
    /// `ENOENT`: no such device, here or any more, or a part of its files is missing; `EINVAL`: no such port;
    /// `EPROTO`: a file that does not hold a P_Key, a port that comes or goes, or a table with a gap or without slots.
    /// A port of iWARP or usNIC may have none, which is no error.
    #[doc(alias = "ibv_get_pkey_index")]
    pub fn query_pkeys(&self, device: &str, port: u32) -> Result<Vec<(u32, PKey)>> {
        let request = || Request::PKey { port, index: None };
        self.steadily(device, request, |sysfs| {
            let folder =
                sysfs.port(device, port).map_err(|cause| Error::new(device, request(), cause))?;
            read_pkeys(&folder)
                .map_err(|unread| sysfs.missing_or(device, &folder, &folder, request(), unread))
        })
    }
}

fn read_pkeys(port: &Folder) -> Result<Vec<(u32, PKey)>, Unread> {
    let folder = port.join("pkeys");
    // What could not be read of a part of a table matters less than that it is one.
    while_whole(port, || {
        let slots = pkey_slots(port)?.into_iter();
        Ok(slots.map(|index| Ok((index, read_pkey(&folder, index)?))).collect())
    })?
}

/// Whether a port may have no P_Keys: those of iWARP and usNIC.
pub(super) fn may_have_none(port: &Folder) -> Result<bool, Unread> {
    let device = port.device_of_port();
    let node_type = NodeType::of_sysfs(&device).map_err(device.unread("node_type"))?;
    Ok([NodeType::RNIC, NodeType::USNIC, NodeType::USNIC_UDP].contains(&node_type))
}

/// The slots of a port's table. Ports of iWARP and usNIC may have none. There is no folder then, or an empty one of an
/// old kernel. Without it, another port is one of a part of a sysfs (or of mana in its first releases, which filled in
/// no attribute of its ports).
pub(super) fn pkey_slots(port: &Folder) -> Result<Vec<u32>, Unread> {
    let folder = port.join("pkeys");
    match folder.slots() {
        Err(Cause::Os(libc::ENOENT)) if may_have_none(port)? => Ok(Vec::new()),
        Ok(slots) if slots.is_empty() && !may_have_none(port)? => {
            Err(port.unread("pkeys")(port.malformed("pkeys", NO_SLOTS)))
        }
        slots => slots.map_err(port.unread("pkeys")),
    }
}

fn read_pkey(folder: &Folder, index: u32) -> Result<PKey, Unread> {
    let name = index.to_string();
    let number = folder.read_number(&name).map_err(folder.unread(&name))?;
    let malformed = |_| folder.unread(&name)(folder.malformed(&name, "a P_Key"));
    u16::try_from(number).map(PKey).map_err(malformed)
}
