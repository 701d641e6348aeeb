//! One device's own folder, whatever its name is by now.

use std::collections::BTreeMap;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use nix::libc;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

use super::{CLASS, Folder, NodeCounts, Sysfs, VERBS_CLASS};
use crate::device::{Device, Node, NodeType};
use crate::error::{Cause, Error, Request, Result};
use crate::guid::Guid;
use crate::netlink::rdma::{Now, device_now};
use crate::text::is_device_name;

/// How often a device that is renamed is looked for.
const TRIES: u32 = 8;

/// How long the nodes of other devices are not read again, while many devices are asked about.
const KEPT: Duration = Duration::from_secs(1);

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
    /// `ENOENT`: the device is gone; or this is the sysfs of another network namespace, or a part of one
    /// ([`Cause::NotInSysfs`]); [`Cause::Replaced`], `ENODEV`: it is gone, and another has its name; `EAGAIN`: it is renamed
    /// each time that it is looked for. Otherwise the errno of a folder that cannot be opened, or of RDMA netlink.
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
                        None => return folder.and(Err(Cause::Replaced)),
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
        let Some(node) = &device.node else { return self.is_of_this_namespace() };
        self.have_one_parent(node, folder)
            .unwrap_or_else(|| self.is_only_node_of(&now.name, node) || self.is_of_this_namespace())
    }

    /// Whether a node is of the same hardware as a device's folder; `None` if not both are of hardware.
    fn have_one_parent(&self, node: &Node, folder: &Folder) -> Option<bool> {
        let of_node = self.folder(VERBS_CLASS).join(&node.name);
        let [one, other] = [&of_node, folder].map(|own| own.join("device").id().ok());
        Some(one?.is(&other?))
    }

    /// Whether this is the only node of devices of this name, of all network namespaces.
    fn is_only_node_of(&self, name: &str, node: &Node) -> bool {
        let mut kept = self.node_counts.lock().unwrap_or_else(PoisonError::into_inner);
        let counts = match kept.take() {
            Some(own) if own.read.elapsed() < KEPT => own,
            _ => NodeCounts { read: Instant::now(), by_name: self.count_nodes().ok() },
        };
        let by_name = kept.insert(counts).by_name.as_ref();
        let is_one = by_name.is_some_and(|own| own.get(name) == Some(&1));
        let own = self.folder(VERBS_CLASS).join(&node.name).read_name("ibdev");
        is_one && own.is_ok_and(|own| own == name)
    }

    /// How many nodes are of devices of each name.
    fn count_nodes(&self) -> Result<BTreeMap<String, usize>, Cause> {
        let class = self.folder(VERBS_CLASS);
        let mut counts = BTreeMap::new();
        for own in class.steady_names()? {
            let node = class.join(own);
            // A file about the class is there, too.
            if node.join("ibdev").is_missing() {
                continue;
            }
            let device = node.read_name("ibdev")?;
            if !is_device_name(&device) {
                return Err(node.malformed("ibdev", "a device's name"));
            }
            *counts.entry(device).or_default() += 1;
        }
        Ok(counts)
    }

    /// Whether this is the sysfs of this network namespace: the one that the kernel mounts here, in no place. It is not known
    /// without `CAP_SYS_ADMIN`, and then it is not.
    fn is_of_this_namespace(&self) -> bool {
        let own = || {
            let context = fsopen("sysfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
            fsconfig_create(&context)?;
            let flags = MountAttrFlags::MOUNT_ATTR_RDONLY;
            rustix::fs::fstat(fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, flags)?)
        };
        let class = rustix::fs::stat(self.folder(CLASS).path());
        class.is_ok_and(|class| own().is_ok_and(|own| own.st_dev == class.st_dev))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn another_node_with_the_name_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let write = |node: &str, device: &str| {
            let class = folder.path().join(VERBS_CLASS);
            fs::create_dir_all(class.join(node)).unwrap();
            fs::write(class.join("abi_version"), "6\n").unwrap();
            fs::write(class.join(node).join("ibdev"), device).unwrap();
        };
        let node = |name: &str| Node {
            path: Path::new("/dev/infiniband").join(name),
            name: name.to_owned(),
            number: 0,
        };
        let own = node("uverbs0");
        let is_only = |tree: &Sysfs, node: &Node| tree.is_only_node_of("rxe0", node);
        let tree = Sysfs::at(folder.path());
        assert!(!is_only(&tree, &own), "nothing could be read");
        write("uverbs0", "rxe0\n");
        write("uverbs1", "rxe1\n");
        let tree = tree.anew();
        assert!(is_only(&tree, &own));
        assert!(!is_only(&tree, &node("uverbs1")), "another device's");
        assert!(!is_only(&tree, &node("uverbs2")), "nobody's");
        write("uverbs1", "rxe0\n");
        assert!(!is_only(&tree.anew(), &own), "there are two");
        write("uverbs1", "");
        assert!(!is_only(&tree.anew(), &own), "one has no name");
    }
}
