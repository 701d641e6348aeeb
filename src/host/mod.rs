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
pub use netdev::{NamedTable, PortNetdevs};
pub(crate) use netdev::{Sought, table_again};
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
            reasons.extend(self.elsewhere(&class, &verbs, owned.collect()));
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
    fn elsewhere(
        &mut self,
        class: &Folder,
        verbs: &Folder,
        named: Vec<(String, String)>,
    ) -> Vec<Absence> {
        let devices: BTreeSet<&str> = named.iter().map(|(device, _)| device.as_str()).collect();
        // The one that is here is known by its node.
        let is_twice = devices.len() < named.len();
        let here = if is_twice { self.devices().unwrap_or_default() } else { Vec::new() };
        let is_another_s = |device: &str, node: &str| {
            let own = here.iter().find(|own| own.name == device);
            own.and_then(|own| own.node.as_ref()).is_some_and(|own| own.name != node)
        };
        // Of a device that goes, the kernel takes the node away first.
        let is_elsewhere = |(device, node): &(String, String)| {
            (class.join(device).is_gone() || is_another_s(device, node))
                && !verbs.join(node).is_gone()
        };
        let mut found: Vec<(String, String)> = named.into_iter().filter(is_elsewhere).collect();
        // In the shared mode each namespace has each device: one was renamed, or its node is another's by now.
        if !found.is_empty() && self.shares_namespaces() == Some(true) {
            found.clear();
        }
        let all = found.into_iter();
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
mod tests;
