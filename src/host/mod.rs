//! Which RDMA devices this host has, as this network namespace sees them.
//!
//! RDMA netlink is asked first: devices, character devices and driver ids in two exchanges for all
//! devices together, and a third that shows that none went away meanwhile. Where there is no netlink
//! (old kernels, a tree that is not this host's), sysfs has the same but indices, protocols and drivers. No
//! device is opened for that.
//!
//! # A device is the one that was listed
//!
//! Another device may take over a device's name, or the number of its node. So after a node is opened
//! its folder in sysfs must be the one that was there when the device was listed: the kernel takes it
//! away before it gives the number to another, and gives no two folders one inode number. Without
//! sysfs, RDMA netlink must give the same number for the device's index, which no other device gets.
//! The open device must have the node GUID that was listed. Sysfs is read from the device's own
//! folder, kept open ([`Sysfs::of`]).
//!
//! What is not shown: that nobody, between two system calls of ours, gave a device's name or number to
//! another and back again; in a tree of files that is no kernel's sysfs, or before Linux 4.14, which gives a
//! number again, anything about inode numbers; of an open file that is handed over
//! ([`Context::import`](crate::context::Context::import)), and of a node that was made by hand while the
//! number's former device is open elsewhere, more than the node GUID.
//!
//! # Forks and namespaces
//!
//! A [`Host`] opens a netlink socket with its first question, and keeps it. So make a new one in a forked
//! child: two processes with one socket may take each other's answers. Make a new one in a thread that
//! enters another network namespace, too: the socket still answers for the one in which it was opened.

mod counters;
mod list;
mod netdev;
mod nodes;
mod owners;
mod reader;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use nix::libc;
use rustix::io::Errno;
use uverbs_uapi::netlink as abi;

use crate::cm::ConnectionManager;
use crate::context::Context;
use crate::device::{Absence, Device};
use crate::error::{Cause, Error, Request, Result};
use crate::netlink::Socket;
use crate::netlink::rdma::{devices_request, setting, settings_request};
use crate::sysfs::{CLASS, Folder, Sysfs, VERBS_CLASS, is_absent};
use crate::text::{is_device_name, is_node_name, natural};
pub(crate) use list::means_no_netlink;
use list::{leaves_no_netlink, list_by_netlink, list_by_sysfs};

pub use crate::gid::{GidRecord, Source};
pub use counters::{Cost, CounterReader, Counters, DeviceCounters, PortCounters};
pub use list::Listing;
pub(crate) use netdev::Sought;
pub use netdev::{NamedTable, PortNetdevs};
pub use reader::{GidTable, Preference, Reader};

/// Where devices are looked for: this host, or a sysfs tree of another.
///
/// ```no_run
/// let mut host = uverbs::Host::new();
/// for device in host.devices()? {
///     println!("{} {}", device.name, device.node_guid);
/// }
/// # Ok::<(), uverbs::Error>(())
/// ```
#[derive(Debug)]
pub struct Host {
    sysfs: Sysfs,
    dev: PathBuf,
    netlink: Netlink,
    /// Opens it.
    open: fn() -> core::result::Result<Socket, Errno>,
    /// Why RDMA netlink, which is open, did not list the devices.
    refusal: Option<Cause>,
}

#[derive(Debug)]
enum Netlink {
    /// Not asked yet; or in vain, with this errno. The next time may be another: files are closed,
    /// modules loaded.
    Unopened(Option<Errno>),
    Open(Socket),
    /// Never asked, as the tree is not this host's.
    Absent,
}

impl Default for Host {
    fn default() -> Self {
        Self::new()
    }
}

impl Host {
    /// This host: RDMA netlink, `/sys` and `/dev/infiniband`.
    #[must_use]
    pub fn new() -> Self {
        Self {
            sysfs: Sysfs::host(),
            dev: PathBuf::from("/dev/infiniband"),
            netlink: Netlink::Unopened(None),
            open: Socket::rdma,
            refusal: None,
        }
    }

    /// The host whose sysfs is mounted at `sysfs` and whose uverbs nodes are in `dev`. Netlink is
    /// not asked, as it would answer for this process's host.
    #[must_use]
    pub fn rooted(sysfs: impl Into<PathBuf>, dev: impl Into<PathBuf>) -> Self {
        let sysfs = Sysfs::at(sysfs);
        Self { sysfs, dev: dev.into(), netlink: Netlink::Absent, ..Self::new() }
    }

    /// This host, with a socket whose answers are there already.
    #[cfg(test)]
    pub(crate) fn with_netlink(socket: Socket) -> Self {
        Self { netlink: Netlink::Open(socket), ..Self::new() }
    }

    /// This host with another sysfs tree, and with RDMA netlink that opens so.
    #[cfg(test)]
    pub(crate) fn opening(sysfs: &Path, open: fn() -> core::result::Result<Socket, Errno>) -> Self {
        Self { sysfs: Sysfs::at(sysfs), dev: sysfs.join("dev"), open, ..Self::new() }
    }

    /// The sysfs tree that is read.
    #[must_use]
    pub fn sysfs(&self) -> &Sysfs {
        &self.sysfs
    }

    /// Whether this is the host that the process runs on, and not another's tree.
    #[must_use]
    pub fn is_here(&self) -> bool {
        !matches!(self.netlink, Netlink::Absent)
    }

    /// The RDMA netlink socket, opened when it is first wanted.
    pub(crate) fn netlink(&mut self) -> Option<&mut Socket> {
        if let Netlink::Unopened(_) = self.netlink {
            self.netlink = match (self.open)() {
                Ok(socket) => Netlink::Open(socket),
                Err(errno) => Netlink::Unopened(Some(errno)),
            };
        }
        match &mut self.netlink {
            Netlink::Open(socket) => Some(socket),
            _ => None,
        }
    }

    /// The same, or why there is none; `None` if the tree is not this host's.
    fn socket(&mut self) -> Result<Option<&mut Socket>> {
        if self.netlink().is_none() {
            return self.netlink_error().map_or(Ok(None), Err);
        }
        Ok(self.netlink())
    }

    /// The connection manager, if it can be asked.
    pub(crate) fn connection_manager(&self) -> Option<ConnectionManager> {
        let class = self.sysfs.folder("class/misc/rdma_cm");
        self.is_here().then(|| ConnectionManager::open(&class, &self.dev.join("rdma_cm"))).flatten()
    }

    /// Why RDMA netlink, which was asked, did not answer. Protocols and network interfaces are not
    /// known then.
    #[must_use]
    pub fn netlink_error(&self) -> Option<Error> {
        let cause = match self.netlink {
            Netlink::Unopened(Some(errno)) => Cause::of(errno),
            _ => self.refusal.clone()?,
        };
        Some(Error::of_host(Request::Netlink, cause))
    }

    /// Lists the devices of this network namespace, in natural order of their names.
    ///
    /// A device that vanishes meanwhile is left out, and so is one that cannot be read: see
    /// [`list`](Self::list). A host without devices gives an empty list: [`absence`](Self::absence)
    /// says why.
    ///
    /// # Errors
    /// Netlink's errno, if its answer cannot be used, or if it refuses and sysfs has no class of
    /// RDMA devices; the errno of sysfs, if there is no netlink and sysfs cannot be read either
    /// ([`Cause::NotSysfs`], `ENOENT`: there is none; `ENOENT`: a part of it is missing; `EPROTO`: something covers the
    /// folder of devices).
    #[doc(alias = "ibv_get_device_list")]
    pub fn devices(&mut self) -> Result<Vec<Device>> {
        Ok(self.list()?.devices)
    }

    /// As [`devices`](Self::devices), and with what went wrong for those that are left out.
    ///
    /// # Errors
    /// As [`devices`](Self::devices).
    pub fn list(&mut self) -> Result<Listing> {
        // What was known of the devices before is not kept.
        self.sysfs = self.sysfs.anew();
        let (sysfs, dev) = (self.sysfs.clone(), self.dev.clone());
        let listed = self.netlink().map(|socket| list_by_netlink(socket, &sysfs, &dev));
        self.refusal = match &listed {
            Some(Err(cause)) => Some(cause.clone()),
            _ => None,
        };
        let mut listing = match listed {
            Some(Ok(listing)) => listing,
            Some(Err(cause)) if !leaves_no_netlink(&cause) => {
                return Err(Error::of_host(Request::ListDevices, cause));
            }
            Some(Err(_)) | None => match list_by_sysfs(&sysfs, &dev)? {
                Some(listing) => listing,
                // Sysfs has no class of devices, which proves little: container engines mask it.
                None => match self.netlink_error() {
                    Some(error) if error.errno() != libc::EPROTONOSUPPORT => return Err(error),
                    // Without the RDMA core there is no such protocol. See `absence`.
                    _ => Listing { devices: Vec::new(), problems: Vec::new() },
                },
            },
        };
        listing.devices.sort_by(|one, other| natural(&one.name, &other.name));
        Ok(listing)
    }

    /// The place of each of these devices in sysfs's own order of nodes, in which libibverbs lists them
    /// where RDMA netlink does not answer. None where it does; nor of another host's tree, whose files may
    /// be copies in any order.
    pub(crate) fn places(&self, devices: &[Device]) -> BTreeMap<String, u32> {
        if !self.is_here() || devices.iter().all(|device| device.index.is_some()) {
            return BTreeMap::new();
        }
        let verbs = self.sysfs.folder(VERBS_CLASS);
        let nodes = verbs.steady_names().unwrap_or_default();
        let names = nodes.iter().map(|node| verbs.join(node).read_name("ibdev").ok());
        (0..).zip(names).filter_map(|(place, name)| Some((name?, place))).collect()
    }

    /// Finds one device by its name.
    ///
    /// # Errors
    /// As [`devices`](Self::devices), and `ENODEV` if there is none of that name.
    pub fn device(&mut self, name: &str) -> Result<Device> {
        self.devices()?
            .into_iter()
            .find(|device| device.name == name)
            .ok_or_else(|| Error::new(name, Request::ListDevices, Cause::NoSuchDevice))
    }

    /// Opens a device by its name.
    ///
    /// # Errors
    /// As [`device`](Self::device) and [`Context::open`].
    #[doc(alias = "ibv_open_device")]
    pub fn open(&mut self, name: &str) -> Result<Context> {
        Context::open(&self.device(name)?)
    }

    /// Whether devices are shared by all network namespaces (the default) or belong to one each
    /// (`rdma system set netns exclusive`); `None` if the kernel does not say.
    pub fn shares_namespaces(&mut self) -> Option<bool> {
        let mode = self.system_setting(abi::attribute::SYS_NETNS_MODE).ok()??;
        Some(mode == abi::netns_mode::SHARED)
    }

    /// A setting of the RDMA subsystem; `None` if the kernel has no such setting.
    ///
    /// # Errors
    /// Those of RDMA netlink; `EINVAL` if the kernel does not know the question.
    pub(crate) fn system_setting(&mut self, kind: u16) -> Result<Option<u8>> {
        let Some(socket) = self.socket()? else { return Ok(None) };
        let mut own = None;
        let asked = socket.ask(vec![settings_request()], |_, reply| {
            own = setting(reply.map_err(Cause::of)?, kind)?;
            Ok(())
        });
        asked.map_err(|cause| Error::of_host(Request::Netlink, cause))?;
        Ok(own)
    }

    /// Why there may be no device to list, in the order of what to look at first.
    #[must_use]
    pub fn absence(&mut self) -> Vec<Absence> {
        let mut reasons = Vec::new();
        let class = self.sysfs.folder(CLASS);
        let names = class.steady_names();
        let verbs = self.sysfs.folder(VERBS_CLASS);
        let nodes = verbs.steady_names();
        // Without its class a device may be anywhere. A copy may be without a device that is here.
        if names.is_ok() && class.is_of_kernel() {
            let nodes = nodes.iter().flatten().filter(|own| is_node_name(own));
            let owned = nodes.filter_map(|node| {
                let device = verbs.join(node).read_name("ibdev").ok();
                Some((device.filter(|own| is_device_name(own))?, node.clone()))
            });
            reasons.extend(self.elsewhere(&class, owned.collect()));
        }
        match names {
            Err(Cause::Os(libc::ENOENT)) => reasons.extend(self.absence_without_class()),
            // It may be that of another network namespace, which has none.
            Ok(names) if names.is_empty() => {
                let is_none = match self.lists_none() {
                    Some(is_none) => is_none,
                    None => self.sysfs.device_names().is_ok(),
                };
                reasons.extend(is_none.then_some(Absence::NoDevice));
            }
            // A folder that cannot be read says nothing; listing the devices has failed, then.
            Ok(_) | Err(_) => {}
        }
        // Where no device has a node there is no folder of them either.
        let has_no_nodes = nodes
            .is_ok_and(|nodes| nodes.iter().all(|node| verbs.join(node).join("dev").is_gone()));
        if is_missing(&self.dev) && !has_no_nodes {
            reasons.push(Absence::NoNodes { folder: self.dev.clone() });
        }
        reasons
    }

    /// The devices of these nodes that are in another network namespace, by their names and those of their nodes.
    fn elsewhere(&mut self, class: &Folder, named: Vec<(String, String)>) -> Vec<Absence> {
        let devices: BTreeSet<&str> = named.iter().map(|(device, _)| device.as_str()).collect();
        // The one that is here is known by its node.
        let is_twice = devices.len() < named.len();
        let here = if is_twice { self.devices().unwrap_or_default() } else { Vec::new() };
        let is_another_s = |device: &str, node: &str| {
            let own = here.iter().find(|own| own.name == device);
            own.and_then(|own| own.node.as_ref()).is_some_and(|own| own.name != node)
        };
        let is_elsewhere = |(device, node): &(String, String)| {
            class.join(device).is_gone() || is_another_s(device, node)
        };
        let all = named.into_iter().filter(is_elsewhere);
        all.map(|(device, node)| Absence::OtherNamespace { device, node }).collect()
    }

    /// Why there may be no device, where sysfs has no class of them. RDMA netlink may know.
    fn absence_without_class(&mut self) -> Option<Absence> {
        let lists_none = self.lists_none();
        let may_lack_module = match self.netlink {
            Netlink::Open(_) => return (lists_none == Some(true)).then_some(Absence::NoDevice),
            Netlink::Unopened(errno) => errno == Some(Errno::PROTONOSUPPORT),
            Netlink::Absent => true,
        };
        let is_unloaded = self.sysfs.without_class().is_ok();
        (is_unloaded && may_lack_module).then_some(Absence::NoModule)
    }

    /// Whether RDMA netlink lists no device; `None` if it does not say.
    fn lists_none(&mut self) -> Option<bool> {
        let devices = self.netlink()?.dump(&devices_request(), |_| Ok(()));
        Some(devices.ok()?.is_empty())
    }
}

/// Whether nothing has this path. What may not be looked at is not missing.
fn is_missing(path: &Path) -> bool {
    rustix::fs::stat(path).is_err_and(is_absent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inventory::{Parts, Wanted};
    use crate::netlink::Message;
    use crate::umad;

    const GID: &str = "fe80:0000:0000:0000:0011:22ff:fe33:4455";

    /// The folder of a device with one port, its GID and GUIDs.
    fn make_device(class: &Path, name: &str, gid: &str) {
        let device = class.join(name);
        let port = device.join("ports/1");
        std::fs::create_dir_all(port.join("gids")).unwrap();
        std::fs::create_dir_all(port.join("gid_attrs/types")).unwrap();
        for (file, text) in [
            (device.join("node_type"), "1: CA"),
            (device.join("node_guid"), "0011:22ff:fe33:4455"),
            (device.join("sys_image_guid"), "0011:22ff:fe33:4455"),
            (port.join("gids/0"), gid),
            (port.join("gid_attrs/types/0"), "RoCE v2"),
        ] {
            std::fs::write(file, text).unwrap();
        }
    }

    fn tree() -> (tempfile::TempDir, PathBuf, Host) {
        let tree = tempfile::tempdir().unwrap();
        let class = tree.path().join("class/infiniband");
        make_device(&class, "rxe0", GID);
        let node = tree.path().join("class/infiniband_verbs/uverbs0");
        std::fs::create_dir_all(&node).unwrap();
        std::fs::write(node.join("ibdev"), "rxe0\n").unwrap();
        std::fs::write(node.join("dev"), "231:192\n").unwrap();
        let host = Host::rooted(tree.path(), "/dev/infiniband");
        (tree, class, host)
    }

    #[test]
    fn sysfs_answers_of_the_device_that_was_listed() {
        let (_tree, class, mut host) = tree();
        let device = host.device("rxe0").unwrap();
        assert!(device.node.is_some());
        let asked = |sysfs: &Sysfs| sysfs.query_gid_table("rxe0").map(|rows| rows.len());
        let sysfs = host.sysfs().of(&device).unwrap();
        assert_eq!(asked(&sysfs).unwrap(), 1);

        // Renamed, it is still the device.
        std::fs::rename(class.join("rxe0"), class.join("rxe9")).unwrap();
        assert_eq!(asked(&sysfs).unwrap(), 1);
        assert_eq!(asked(&host.sysfs().of(&device).unwrap()).unwrap(), 1);
        assert_eq!(asked(host.sysfs()).unwrap_err().errno(), 2, "by its name there is none");

        // Another has its name: what was opened before is the old one's.
        make_device(&class, "rxe0", GID);
        std::fs::write(class.join("rxe0/ports/1/gids/0"), GID.replace("4455", "6677")).unwrap();
        let gid = sysfs.query_gid_ex("rxe0", 1, 0).unwrap().unwrap().entry.gid();
        assert_eq!(gid.full(), GID);
        assert_eq!(asked(&host.sysfs().of(&device).unwrap()).unwrap(), 1);

        // And the old one is gone.
        std::fs::remove_dir_all(class.join("rxe9")).unwrap();
        assert_eq!(asked(&sysfs).unwrap_err().errno(), 2);
        assert_eq!(sysfs.query_port("rxe0", 1).unwrap_err().errno(), 2);
        assert_eq!(sysfs.query_pkeys("rxe0", 1).unwrap_err().errno(), 2);
        let error = host.sysfs().of(&device).unwrap_err();
        assert_eq!((error.cause(), error.errno()), (&Cause::Replaced, 19));
        std::fs::remove_dir_all(class.join("rxe0")).unwrap();
        assert_eq!(host.sysfs().of(&device).unwrap_err().errno(), 2);
    }

    #[test]
    fn a_file_without_which_a_device_is_not_listed_is_named() {
        for file in ["ports", "node_type", "node_guid", "sys_image_guid"] {
            let (_tree, class, mut host) = tree();
            let path = class.join("rxe0").join(file);
            std::fs::rename(&path, class.join("../elsewhere")).unwrap();
            let listing = host.list().unwrap();
            assert!(listing.devices.is_empty());
            let [problem] = listing.problems.as_slice() else { panic!("{listing:?}") };
            let said = format!("rxe0: read {}: ENOENT", path.display());
            assert!(problem.to_string().starts_with(&said), "{problem}");
        }
    }

    #[test]
    fn a_tree_without_netlink_may_have_it_later() {
        let mut host = Host { netlink: Netlink::Unopened(Some(Errno::MFILE)), ..Host::new() };
        assert_eq!(host.netlink_error().unwrap().errno(), 24);
        // Whether this kernel has it or not, it was asked again.
        let _ = host.netlink();
        assert!(host.is_here() && host.netlink_error().is_none_or(|error| error.errno() != 24));
    }

    #[test]
    fn a_host_whose_last_device_went_lacks_no_module() {
        let (tree, class, _) = tree();
        let mut host = Host::rooted(tree.path(), "/nowhere/infiniband");
        let lacks_nodes =
            |host: &mut Host| host.absence().iter().any(|it| matches!(it, Absence::NoNodes { .. }));
        assert!(lacks_nodes(&mut host), "the device has a node, and there is no folder");
        std::fs::remove_dir_all(class.join("rxe0")).unwrap();
        std::fs::remove_dir_all(tree.path().join("class/infiniband_verbs/uverbs0")).unwrap();
        assert!(!lacks_nodes(&mut host), "ib_uverbs is loaded");
        std::fs::remove_dir(tree.path().join("class/infiniband_verbs")).unwrap();
        assert!(lacks_nodes(&mut host), "ib_uverbs is not loaded");
    }

    #[test]
    fn nodes_that_cannot_be_read_are_not_nodes_that_are_not_there() {
        let (tree, _class, mut host) = tree();
        let verbs = tree.path().join("class/infiniband_verbs");
        std::fs::remove_dir_all(&verbs).unwrap();
        let listing = host.list().unwrap();
        assert!(listing.devices[0].node.is_none() && listing.problems.is_empty());
        assert!(listing.devices[0].node_is_unread, "the tree may be a part of one");
        std::fs::create_dir(tree.path().join("module")).unwrap();
        assert!(host.list().unwrap().devices[0].node_is_unread, "modules are hidden");
        std::fs::create_dir(tree.path().join("module/kernel")).unwrap();
        assert!(!host.list().unwrap().devices[0].node_is_unread, "ib_uverbs is not loaded");
        std::fs::create_dir(tree.path().join("module/ib_uverbs")).unwrap();
        assert!(host.list().unwrap().devices[0].node_is_unread, "it is loaded");
        // One that something covers, or that leads nowhere, is none of the kernel's.
        std::fs::create_dir(&verbs).unwrap();
        assert!(host.list().unwrap().devices[0].node_is_unread, "the class is covered");
        std::fs::write(verbs.join("abi_version"), "6").unwrap();
        assert!(!host.list().unwrap().devices[0].node_is_unread, "no device has a node");
        std::fs::remove_dir_all(&verbs).unwrap();
        std::os::unix::fs::symlink("nowhere", &verbs).unwrap();
        assert!(host.list().unwrap().devices[0].node_is_unread, "the class leads nowhere");
        std::fs::remove_file(&verbs).unwrap();
        std::fs::write(&verbs, "").unwrap();
        let listing = host.list().unwrap();
        assert_eq!((listing.devices.len(), listing.problems.len()), (1, 1));
        assert!(listing.devices[0].node_is_unread);
        let refused = Context::open(&listing.devices[0]).unwrap_err();
        assert_eq!(refused.cause(), &Cause::NodeUnread);
        let said = listing.problems[0].to_string();
        assert!(said.starts_with("host: ") && said.contains("class/infiniband_verbs"), "{said}");
    }

    /// Of a sysfs where a class is hidden nothing follows, but what netlink says.
    #[test]
    fn a_host_whose_sysfs_is_hidden_lacks_no_module() {
        let hidden = tempfile::tempdir().unwrap();
        let at =
            |netlink: Netlink| Host { sysfs: Sysfs::at(hidden.path()), netlink, ..Host::new() };
        let no_module = |host: &mut Host| host.absence().contains(&Absence::NoModule);

        // It is no sysfs.
        let mut elsewhere = at(Netlink::Absent);
        assert_eq!(elsewhere.list().unwrap_err().cause(), &Cause::NotSysfs);
        assert!(!no_module(&mut elsewhere));
        assert_eq!(elsewhere.inventory(&Wanted::new(Parts::GIDS)).problems.len(), 1);
        let make = |path: &str| std::fs::create_dir_all(hidden.path().join(path)).unwrap();
        make("class/net");
        make("module/kernel");
        assert!(elsewhere.list().unwrap().devices.is_empty() && no_module(&mut elsewhere));

        // RDMA netlink is there, so the RDMA core is.
        let refusal = crate::netlink::Datagram::refusal(Errno::PERM, 1);
        let mut refused = at(Netlink::Open(Socket::given(vec![vec![refusal]])));
        assert_eq!(refused.list().unwrap_err().errno(), libc::EPERM);
        assert!(!no_module(&mut refused));
    }

    /// Nothing says that the module is not loaded where classes or modules are missing, as of a class that is mounted
    /// into a container; nor where there is what only its modules make.
    #[test]
    fn a_part_of_a_sysfs_lacks_no_module() {
        for parts in [
            &["class/net"][..],
            &["module"],
            &["class/net", "module/ib_core"],
            &["class/infiniband_verbs/uverbs0", "module/ib_uverbs"],
            &["class/infiniband_mad", "module"],
            &["class/misc/rdma_cm", "module"],
        ] {
            let tree = tempfile::tempdir().unwrap();
            for part in parts {
                std::fs::create_dir_all(tree.path().join(part)).unwrap();
            }
            let mut host = Host::rooted(tree.path(), "/dev/infiniband");
            let by_umad = umad::ca_names(host.sysfs()).unwrap_err();
            for error in [host.list().unwrap_err(), by_umad] {
                let path = tree.path().join(CLASS);
                assert_eq!(error.request(), &Request::Sysfs { path }, "{parts:?}");
                assert_eq!(error.errno(), libc::ENOENT, "{parts:?}");
                assert!(error.to_string().ends_with("is all of sysfs there?"), "{error}");
            }
            assert!(!host.absence().contains(&Absence::NoModule), "{parts:?}");
        }
    }

    /// The class is empty, as in a namespace without devices. Netlink answers for this one.
    #[test]
    fn a_host_whose_sysfs_is_of_another_namespace_has_the_devices_that_netlink_lists() {
        use crate::netlink::Datagram;
        use uverbs_uapi::netlink::attribute;
        let tree = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(tree.path().join("class/infiniband")).unwrap();
        let device = Message::new(0, &[])
            .number(attribute::DEV_INDEX, 0)
            .text(attribute::DEV_NAME, "rxe0")
            .number(attribute::PORT_INDEX, 1)
            .finish_for_test();
        let some = |place| vec![Datagram::reply(&device, place), Datagram::end(place)];
        let none = |place| vec![Datagram::end(place)];
        let at = |answers| {
            let netlink = Netlink::Open(Socket::given(answers));
            Host { sysfs: Sysfs::at(tree.path()), netlink, ..Host::new() }
        };
        let has_none = |reasons: &[Absence]| reasons.contains(&Absence::NoDevice);
        assert!(!has_none(&at(vec![some(1)]).absence()));
        assert!(has_none(&at(vec![none(1)]).absence()));
        assert!(has_none(&at(vec![]).absence()), "netlink does not say");
        // It went after it was listed.
        let no_node = vec![Datagram::refusal(Errno::OPNOTSUPP, 2)];
        let mut host = at(vec![some(1), no_node, some(3), none(4)]);
        let inventory = host.inventory(&Wanted::new(Parts { host: true, ..Parts::LISTED }));
        assert_eq!(inventory.devices.len(), 1);
        assert!(!has_none(&inventory.absences), "{:?}", inventory.absences);
    }

    /// The others' interfaces are known, and netlink has answered.
    #[test]
    fn a_port_whose_interface_is_refused_hides_no_other() {
        use crate::inventory::Unread;
        use crate::netlink::Datagram;
        use uverbs_uapi::netlink::attribute;
        let device = Message::new(0, &[])
            .number(attribute::DEV_INDEX, 0)
            .text(attribute::DEV_NAME, "rxe0")
            .number(attribute::PORT_INDEX, 2)
            .finish_for_test();
        let d0 = Message::new(0, &[])
            .number(attribute::NDEV_INDEX, 2)
            .text(attribute::NDEV_NAME, "d0")
            .finish_for_test();
        let mut host = Host::with_netlink(Socket::given(vec![
            vec![Datagram::reply(&device, 1), Datagram::end(1)],
            vec![Datagram::refusal(Errno::OPNOTSUPP, 2)],
            vec![Datagram::reply(&device, 3), Datagram::end(3)],
            vec![Datagram::refusal(Errno::IO, 4), Datagram::reply(&d0, 5)],
        ]));
        let wanted = Wanted::new(Parts { port_netdevs: true, ..Parts::LISTED });
        let inventory = host.inventory(&wanted.preference(Preference::Sysfs));
        assert!(inventory.has_netlink && inventory.problems.is_empty(), "{inventory:?}");
        let ports = &inventory.devices[0].ports;
        let problem = ports[0].netdev.as_ref().unwrap_err();
        assert!(problem.text.starts_with("rxe0: find the network interface of port 1: EIO"));
        assert_eq!(ports[1].netdev().map(|own| own.name.as_str()), Some("d0"));
        assert_eq!(inventory.unread(), [Unread::Port("rxe0", 1)]);
    }

    /// What is wrong with the only device of a tree that is a part of a sysfs.
    fn part_problem(host: &mut Host, file: &Path) {
        let is_elsewhere = |own: &Absence| matches!(own, Absence::OtherNamespace { .. });
        assert!(!host.absence().iter().any(is_elsewhere));
        let listing = host.list().unwrap();
        let [problem] = listing.problems.as_slice() else { panic!("{listing:?}") };
        let said = format!("rxe0: read {}: ENOENT", file.display());
        assert!(listing.devices.is_empty() && problem.to_string().starts_with(&said), "{problem}");
        assert!(problem.to_string().ends_with("is all of sysfs there?"), "{problem}");
    }

    /// In the kernel's sysfs its device would be another namespace's.
    #[test]
    fn a_device_that_a_copy_lacks_is_not_elsewhere() {
        let (_tree, class, mut host) = tree();
        std::fs::remove_dir_all(class.join("rxe0")).unwrap();
        part_problem(&mut host, &class.join("rxe0/ports"));
        // A name that may not be followed.
        std::os::unix::fs::symlink(class.join("rxe0"), class.join("rxe0")).unwrap();
        assert_eq!(host.list().unwrap().problems[0].errno(), libc::ELOOP);
    }

    #[test]
    fn a_device_without_ports_is_a_part_of_one() {
        let (_tree, class, mut host) = tree();
        std::fs::remove_dir_all(class.join("rxe0/ports/1")).unwrap();
        part_problem(&mut host, &class.join("rxe0/ports/1"));
        assert_eq!(host.sysfs().query_gid_table("rxe0").unwrap_err().errno(), libc::ENOENT);
    }

    #[test]
    fn a_firmware_version_that_is_refused_is_not_none() {
        let (_tree, class, mut host) = tree();
        let file = class.join("rxe0/fw_ver");
        std::fs::write(&file, b"1.2\xff\n").unwrap();
        assert_eq!(host.devices().unwrap()[0].fw_version.as_deref(), Some("1.2\u{fffd}"));
        std::fs::remove_file(&file).unwrap();
        assert_eq!(host.devices().unwrap()[0].fw_version, None);
        std::fs::create_dir(&file).unwrap();
        let listing = host.list().unwrap();
        let [problem] = listing.problems.as_slice() else { panic!("{listing:?}") };
        let said = format!("rxe0: read {}: EISDIR", file.display());
        assert!(problem.to_string().starts_with(&said), "{problem}");
    }

    /// Which port is the first that is active, and which GIDs there are, cannot be known without port 1.
    #[test]
    fn a_device_without_a_port_before_another_is_a_part_of_one() {
        let (_tree, class, mut host) = tree();
        std::fs::rename(class.join("rxe0/ports/1"), class.join("rxe0/ports/2")).unwrap();
        let listing = host.list().unwrap();
        let [of_list] = listing.problems.as_slice() else { panic!("{listing:?}") };
        let sysfs = host.sysfs();
        for error in [
            of_list,
            &sysfs.query_gid_table("rxe0").unwrap_err(),
            &umad::ca(sysfs, "rxe0").unwrap_err(),
            &umad::port(sysfs, "rxe0", 1).unwrap_err(),
            &umad::port_guids(sysfs, Some("rxe0")).unwrap_err(),
            &umad::default_port(sysfs, None).unwrap_err(),
        ] {
            assert_eq!(error.errno(), libc::EPROTO);
            assert!(error.to_string().contains("rxe0/ports: "), "{error}");
        }
    }

    /// As `cp -a /sys/class` leaves them.
    #[test]
    fn of_links_that_lead_nowhere_a_file_is_missing() {
        let (tree, class, mut host) = tree();
        let device = host.device("rxe0").unwrap();
        let lead_nowhere = |path: &Path| {
            std::fs::remove_dir_all(path).unwrap();
            std::os::unix::fs::symlink("../../devices/nowhere", path).unwrap();
        };
        lead_nowhere(&class.join("rxe0"));
        let ports = class.join("rxe0/ports");
        part_problem(&mut host, &ports);
        let by_name = host.sysfs().query_port("rxe0", 1).unwrap_err();
        for error in [by_name, host.sysfs().of(&device).unwrap_err()] {
            assert_eq!(error.request(), &Request::Sysfs { path: ports.clone() });
        }
        let node = tree.path().join("class/infiniband_verbs/uverbs0");
        lead_nowhere(&node);
        let said = format!("host: read {}: ENOENT", node.join("ibdev").display());
        let listing = host.list().unwrap();
        assert!(listing.problems.iter().any(|own| own.to_string().starts_with(&said)));
    }

    /// Of two nodes it is not known which is the device's, and a file in place of one is not none.
    #[test]
    fn a_device_s_node_is_the_only_one() {
        let (tree, _, mut host) = tree();
        let class = tree.path().join("class/infiniband_verbs");
        let mut node = || {
            let listing = host.list().unwrap();
            let device = listing.devices.into_iter().next().unwrap();
            let node = device.node.map(|own| own.name);
            (node, device.node_is_unread, listing.problems.iter().map(Error::errno).collect())
        };
        std::fs::write(class.join("abi_version"), "6").unwrap();
        assert_eq!(node(), (Some("uverbs0".to_owned()), false, vec![]));
        std::fs::create_dir(class.join("uverbs7")).unwrap();
        std::fs::write(class.join("uverbs7/ibdev"), "rxe0\n").unwrap();
        std::fs::write(class.join("uverbs7/dev"), "231:199\n").unwrap();
        assert_eq!(node(), (None, true, vec![libc::EPROTO]));
        for folder in ["uverbs0", "uverbs7"] {
            std::fs::remove_dir_all(class.join(folder)).unwrap();
        }
        assert_eq!(node(), (None, false, vec![]));
        std::fs::write(class.join("uverbs0"), "").unwrap();
        assert_eq!(node(), (None, true, vec![libc::ENOTDIR]));
    }

    /// Where nothing is missing, sysfs is the answer, and so it is of a kernel that has no RDMA netlink.
    #[test]
    fn a_refusal_is_a_problem_where_something_is_missing() {
        type Opened = core::result::Result<Socket, Errno>;
        // One that opens, and refuses to list.
        fn given(errno: Errno) -> Socket {
            Socket::given(vec![vec![crate::netlink::Datagram::refusal(errno, 1)]])
        }
        let (tree, class, _) = tree();
        let is_problem = |open: fn() -> Opened, wanted: &Wanted<'_>| {
            let inventory = Host::opening(tree.path(), open).inventory(wanted);
            assert!(!inventory.has_netlink && inventory.devices.len() == 1, "{inventory:?}");
            let reason = inventory.without_netlink.as_ref().unwrap();
            let count = inventory.problems.iter().filter(|own| *own == reason).count();
            assert!(count <= 1 && inventory.problems.len() == count, "{inventory:?}");
            assert!(count == 0 || inventory.netlink_failure() == Some(reason));
            count == 1
        };
        let filtered: fn() -> Opened = || Err(Errno::AFNOSUPPORT);
        let [devices, guids, ports, rows] =
            [Parts::DEVICES, Parts::GUIDS, Parts::PORTS, Parts::GIDS].map(Wanted::new);
        assert!(is_problem(filtered, &devices) && is_problem(filtered, &ports));
        assert!(!is_problem(filtered, &guids));
        // A row of InfiniBand, which has no interface, and one of RoCE.
        let port = class.join("rxe0/ports/1");
        let write = |link_layer, kind| {
            std::fs::write(port.join("link_layer"), link_layer).unwrap();
            std::fs::write(port.join("gid_attrs/types/0"), kind).unwrap();
        };
        write("InfiniBand", "IB/RoCE v1");
        assert!(!is_problem(filtered, &rows));
        write("Ethernet", "RoCE v2");
        assert!(is_problem(filtered, &rows));
        assert!(!is_problem(filtered, &rows.rows(&|_, _| false)));
        assert!(!is_problem(filtered, &rows.preference(Preference::Sysfs)));

        let failures: [fn() -> Opened; 4] = [
            || Err(Errno::PERM),
            || Err(Errno::MFILE),
            || Ok(given(Errno::PERM)),
            || Ok(given(Errno::AGAIN)),
        ];
        let none: [fn() -> Opened; 3] = [
            || Err(Errno::PROTONOSUPPORT),
            || Ok(given(Errno::INVAL)),
            || Ok(given(Errno::OPNOTSUPP)),
        ];
        for open in failures {
            assert!(is_problem(open, &rows));
        }
        for open in none {
            assert!(!is_problem(open, &rows) && !is_problem(open, &devices));
        }
    }

    /// The reason is that of the listing, whatever is asked later.
    #[test]
    fn netlink_that_opens_later_does_not_hide_why_it_did_not() {
        use core::sync::atomic::{AtomicBool, Ordering};
        static IS_OPEN: AtomicBool = AtomicBool::new(false);
        let (tree, ..) = tree();
        let open = || {
            let is_open = IS_OPEN.fetch_or(true, Ordering::Relaxed);
            if is_open { Ok(Socket::given(Vec::new())) } else { Err(Errno::MFILE) }
        };
        let wanted = Wanted::new(Parts::DEVICES).netdev(Some("d0"));
        let inventory = Host::opening(tree.path(), open).inventory(&wanted);
        assert_eq!(inventory.netlink_failure().map(|own| own.errno), Some(24), "{inventory:?}");
    }

    #[test]
    fn netlink_that_does_not_list_is_not_netlink_that_answers() {
        let refusal = crate::netlink::Datagram::refusal(Errno::PERM, 1);
        let mut host = Host::with_netlink(Socket::given(vec![vec![refusal]]));
        let _ = host.list();
        assert_eq!(host.netlink_error().map(|error| error.errno()), Some(1));
    }
}
