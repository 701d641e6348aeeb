//! One device's own folder, whatever its name is by now.

use nix::libc;

use super::{CLASS, Folder, Sysfs, VERBS_CLASS};
use crate::device::{Device, Node, NodeType};
use crate::error::{Cause, Error, Request, Result};
use crate::guid::Guid;
use crate::netlink::rdma::{Now, device_now};

/// How often a device that is renamed is looked for.
const TRIES: u32 = 8;

impl NodeType {
    /// Reads a device folder's `node_type`.
    pub(crate) fn of_sysfs(device_folder: &Folder) -> Result<Self, Cause> {
        u8::try_from(device_folder.read_number("node_type")?)
            .map(Self)
            .map_err(|_| device_folder.malformed("node_type", "a node type"))
    }
}

/// Whether a device's folder has this node GUID, as far as that can be read.
fn has_guid(folder: &Folder, guid: Guid) -> bool {
    let own = folder.read_optional("node_guid").and_then(|own| own.parse::<Guid>().ok());
    own.is_none_or(|own| own == guid)
}

impl Sysfs {
    /// This tree for questions about one device, by the name that it was listed with: they are answered
    /// of this device and no other, also if it is renamed, or another takes over its name.
    ///
    /// Of a device that a program made up it is only sure that all answers are of the same device.
    ///
    /// ```no_run
    /// let mut host = uverbs::Host::new();
    /// let device = host.device("rxe0")?;
    /// let sysfs = host.sysfs().of(&device)?;
    /// println!("{:?}", sysfs.query_gid_table(&device.name)?);
    /// # Ok::<(), uverbs::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ENOENT`, or [`Cause::DeviceGone`], `ENODEV`: the device is gone; or this is the sysfs of another network namespace,
    /// or a part of one ([`Cause::NotInSysfs`]); [`Cause::Replaced`], `ENODEV`: another has its name; `EAGAIN`: it is
    /// renamed each time that it is looked for. Otherwise the errno of a folder that cannot be opened, or of RDMA netlink.
    pub fn of(&self, device: &Device) -> Result<Self> {
        let class = self.folder(CLASS);
        self.folder_of(&class, device).map(|folder| self.holding(&device.name, folder)).map_err(
            |cause| {
                let path = class.join(&device.name).lacking(cause.as_errno());
                Error::new(&*device.name, Request::Sysfs { path }, cause)
            },
        )
    }

    /// The device's folder, open.
    fn folder_of(&self, class: &Folder, device: &Device) -> Result<Folder, Cause> {
        let by_name =
            |name: &str| self.device(name).and_then(|folder| folder.held().map_err(Cause::of));
        let mut folder = by_name(&device.name);
        match (&device.identity.device, device.index) {
            (Some(id), _) => {
                let is_it = |folder: &Folder| folder.id().is_ok_and(|now| now.is(id));
                if folder.as_ref().is_ok_and(&is_it) {
                    return folder;
                }
                let renamed =
                    class.names()?.iter().find_map(|name| by_name(name).ok().filter(&is_it));
                renamed.map_or(folder.and(Err(Cause::Replaced)), Ok)
            }
            (None, Some(index)) => {
                let mut name = device.name.clone();
                for _ in 0..TRIES {
                    match device_now(index)? {
                        // It had the name before its folder was opened by it, and has it now.
                        Some(now) if now.name == name => {
                            let is_hidden = class.join(&name).is_gone();
                            let folder = folder.map_err(|cause| match cause {
                                Cause::Os(libc::ENOENT) if is_hidden => Cause::NotInSysfs,
                                cause => cause,
                            })?;
                            let is_own = self.is_of(&folder, device, &now);
                            return is_own.then_some(folder).ok_or(Cause::NotInSysfs);
                        }
                        Some(now) => {
                            folder = by_name(&now.name);
                            name = now.name;
                        }
                        None => return folder.and(Err(Cause::DeviceGone(libc::ENODEV))),
                    }
                }
                Err(Cause::Os(libc::EAGAIN))
            }
            (None, None) => folder,
        }
    }

    /// Whether a folder of the device's name is the device's. This may be the sysfs of another network namespace, which may
    /// have another device of this name (in exclusive mode, since Linux 7), also with the same node GUID.
    fn is_of(&self, folder: &Folder, device: &Device, now: &Now) -> bool {
        if !has_guid(folder, device.node_guid) {
            return false;
        }
        if !now.may_have_namesake {
            return true;
        }
        let node = device.node.as_ref();
        node.and_then(|node| self.have_one_parent(node, folder))
            .or_else(|| folder.is_of_this_namespace())
            .unwrap_or_else(|| {
                node.is_some_and(|node| self.is_only_node_of(folder, &now.name, node))
            })
    }

    /// Whether a node is of the same hardware as a device's folder; `None` if not both are of hardware.
    fn have_one_parent(&self, node: &Node, folder: &Folder) -> Option<bool> {
        let of_node = self.folder(VERBS_CLASS).join(&node.name);
        let [one, other] = [&of_node, folder].map(|own| own.join("device").id().ok());
        Some(one?.is(&other?))
    }
}
