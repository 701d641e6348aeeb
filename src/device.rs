//! Which RDMA devices this host has, as this network namespace sees them.
//!
//! RDMA netlink is asked first: devices, character devices and driver ids in two exchanges for all
//! devices together, and a third that shows that none went away meanwhile. Where there is no netlink
//! (old kernels, a tree that is not this host's),
//! sysfs tells the same but the driver. Nothing here opens a device.
//!
//! # A device is the one that was listed
//!
//! Another device may take over a device's name, or the number of its node. So after a node is opened
//! its folder in sysfs must be the one that was there when the device was listed: the kernel takes it
//! away before it gives the number to another, and gives no two folders one inode number. Without
//! sysfs, RDMA netlink must tell the same number for the device's index, which no other device gets.
//! The open device must have the node GUID that was listed. Sysfs is read from the device's own
//! folder, kept open ([`Sysfs::of`]).
//!
//! What is not shown: that nobody, between two system calls of ours, gave a device's name or number to
//! another and back again; in a tree of files that is no kernel's sysfs, anything about inode numbers; of
//! an open file that is handed over ([`Context::import`](crate::context::Context::import)), and of a
//! node that was made by hand while the number's former device is open elsewhere, more than the node
//! GUID.

use core::ops::RangeInclusive;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use uverbs_uapi::device::node_type;
use uverbs_uapi::netlink as abi;

use crate::driver::DriverId;
use crate::error::{Cause, Error, Request, Result};
use crate::guid::Guid;
use crate::names::{is_device_name, is_file_name, named, natural};
use crate::netlink::{Message, Socket, attributes};
use crate::sysfs::{Folder, FolderId, Sysfs, device_number};

/// The folder of uverbs nodes, which is that of all network namespaces.
const VERBS_CLASS: &str = "class/infiniband_verbs";

/// More ports than any device has; a larger number is a broken answer, not a device.
const MAX_PORTS: u32 = 1 << 16;

/// How often devices are listed before their changes are called too many.
const TRIES: u32 = 8;

named! {
    /// What a device is.
    #[doc(alias = "ibv_node_type")]
    NodeType(u8) {
        /// Channel adapter: InfiniBand or RoCE.
        CA = node_type::CA, "ca";
        /// InfiniBand switch; its only port is 0.
        SWITCH = node_type::SWITCH, "switch";
        /// InfiniBand router.
        ROUTER = node_type::ROUTER, "router";
        /// iWARP.
        RNIC = node_type::RNIC, "rnic";
        /// Cisco usNIC.
        USNIC = node_type::USNIC, "usnic";
        /// Cisco usNIC over UDP.
        USNIC_UDP = node_type::USNIC_UDP, "usnic_udp";
        /// Anything else, for example EFA.
        UNSPECIFIED = node_type::UNSPECIFIED, "unspecified";
    }
}

/// An RDMA device.
#[doc(alias = "ibv_device")]
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Device {
    /// Its name now; udev and users rename devices.
    pub name: String,
    /// The kernel's index of it, which outlives renaming; `None` where only sysfs could be read.
    pub index: Option<u32>,
    /// What it is.
    pub node_type: NodeType,
    /// Node GUID.
    pub node_guid: Guid,
    /// System image GUID.
    pub sys_image_guid: Guid,
    /// Firmware version, where the driver tells.
    pub fw_version: Option<String>,
    /// `ib`, `roce`, `iw`, `opa`, `usnic`; `None` where the kernel does not say (also with sysfs).
    pub protocol: Option<String>,
    /// Number of its last port; 0 on an InfiniBand switch, however many ports it switches between.
    pub port_count: u32,
    /// Its driver, where netlink tells; else [`probe_driver`](crate::context::probe_driver) finds out.
    pub driver: Option<DriverId>,
    /// Its uverbs node; `None` without `ib_uverbs`.
    pub node: Option<Node>,
    pub(crate) identity: Identity,
}

/// By what a device is told from another that takes over its name or its node. A driver's index is
/// one such thing, but a name, the number of a node and GUIDs are not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Identity {
    /// The node's folder in sysfs. The kernel makes it for the device, and takes it away before it
    /// gives the node's number to another.
    node: Option<FolderId>,
    /// The device's own folder there, where the device was found by it.
    device: Option<FolderId>,
}

#[cfg(all(test, feature = "simulated-kernel"))]
impl Identity {
    /// That of a device whose node has this folder.
    pub(crate) fn with_node(path: &Path) -> Self {
        let folder = Sysfs::at(path).folder("").id().ok();
        Self { node: folder, device: None }
    }
}

/// A uverbs character device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its name, as `uverbs0`.
    pub name: String,
    /// Where it should be.
    pub path: PathBuf,
    /// Its device number (`dev_t`), against which an open is checked.
    pub number: u64,
}

impl Device {
    /// Its port numbers: from 1, or just 0 on an InfiniBand switch.
    #[must_use]
    pub fn ports(&self) -> RangeInclusive<u32> {
        if self.node_type == NodeType::SWITCH { 0..=0 } else { 1..=self.port_count }
    }
}

impl Device {
    /// A CA with one port of which nothing else is known, as a reader of records starts from.
    #[must_use]
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            index: None,
            node_type: NodeType::CA,
            node_guid: Guid::default(),
            sys_image_guid: Guid::default(),
            fw_version: None,
            protocol: None,
            port_count: 1,
            driver: None,
            node: None,
            identity: Identity::default(),
        }
    }

    /// Such a device that netlink tells of, for tests.
    #[cfg(any(test, all(feature = "capi", feature = "simulated-kernel")))]
    pub(crate) fn sample(name: &str) -> Self {
        Self { index: Some(0), ..Self::named(name) }
    }

    /// Makes sure that the number of the node, which was opened just now, was the device's until
    /// now. Of a device that a program made up there is nothing to say.
    pub(crate) fn still_has_node(&self) -> Result<(), Cause> {
        match (&self.identity.node, self.index) {
            (Some(folder), index) => match folder.stands() {
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

    /// Whether the kernel told of it, and not a program made it up.
    pub(crate) fn is_listed(&self) -> bool {
        self.index.is_some() || self.identity != Identity::default()
    }

    /// As RDMA netlink tells it. The kernel gives an index to one device, and to no other after it.
    fn still_has_number(&self) -> Result<(), Cause> {
        let (Some(index), Some(node)) = (self.index, &self.node) else { return Ok(()) };
        let mut socket = Socket::rdma().map_err(Cause::Os)?;
        let mut now = Device::named("");
        let mut answer = Err(Cause::DeviceGone(Errno::NODEV));
        socket.ask(vec![chardev_request(index)], |_, reply| {
            answer = match reply {
                Ok(reply) => parse_chardev(reply, Path::new(""), &mut now),
                Err(Errno::INVAL | Errno::NODEV | Errno::OPNOTSUPP) => {
                    Err(Cause::DeviceGone(Errno::NODEV))
                }
                Err(errno) => Err(Cause::Os(errno)),
            };
            Ok(())
        })?;
        answer?;
        match now.node {
            Some(now) if now.number == node.number => Ok(()),
            _ => Err(Cause::Replaced),
        }
    }

    /// Its name now, as RDMA netlink tells it; `None` if it is gone.
    fn name_now(index: u32) -> Result<Option<String>, Cause> {
        let mut socket = Socket::rdma().map_err(Cause::Os)?;
        let request =
            Message::new(message_type(abi::op::GET), &[]).number(abi::attribute::DEV_INDEX, index);
        let mut answer = Ok(None);
        socket.ask(vec![request], |_, reply| {
            answer = match reply {
                Ok(reply) => parse_device(reply).map(|(_, device)| Some(device.name)),
                Err(Errno::INVAL | Errno::NODEV) => Ok(None),
                Err(errno) => Err(Cause::Os(errno)),
            };
            Ok(())
        })?;
        answer
    }
}

impl Sysfs {
    /// This tree for questions about one device, by the name that it was listed with: they are answered
    /// of this device and no other, also if it is renamed, or another takes over its name.
    ///
    /// Of a device that a program made up it is only sure that all answers are of the same device.
    ///
    /// ```no_run
    /// let mut host = uverbs::device::Host::new();
    /// let device = host.device("rxe0")?;
    /// let sysfs = host.sysfs().of(&device)?;
    /// println!("{:?}", sysfs.query_gid_table(&device.name)?);
    /// # Ok::<(), uverbs::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ENOENT`: the device is gone; [`Cause::Replaced`], `ENODEV`: it is, and another has its name.
    pub fn of(&self, device: &Device) -> Result<Self> {
        let class = self.folder("class/infiniband");
        let path = class.path().join(&device.name);
        self.folder_of(&class, device)
            .map(|folder| self.holding(&device.name, folder))
            .map_err(|cause| Error::new(&*device.name, Request::Sysfs { path }, cause))
    }

    /// The device's folder, open.
    fn folder_of(&self, class: &Folder, device: &Device) -> Result<Folder, Cause> {
        let by_name =
            |name: &str| self.device(name).and_then(|folder| folder.held().map_err(Cause::Os));
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
                    match Device::name_now(index)? {
                        // It had the name before its folder was opened by it, and has it now.
                        Some(now) if now == name => return folder,
                        Some(now) => {
                            folder = by_name(&now);
                            name = now;
                        }
                        None => return folder.and(Err(Cause::Replaced)),
                    }
                }
                Err(Cause::Os(Errno::AGAIN))
            }
            (None, None) => folder,
        }
    }
}

/// The devices of a host.
#[derive(Debug)]
pub struct Listing {
    /// Those that could be read, in natural order of their names.
    pub devices: Vec<Device>,
    /// What could not be found out, of a device that is left out or of one that is listed without
    /// its node; [`Error::subject`] names it.
    pub problems: Vec<Error>,
}

/// Where devices are looked for: this host, or a sysfs tree of another.
///
/// ```no_run
/// let mut host = uverbs::device::Host::new();
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
        }
    }

    /// The host whose sysfs is mounted at `sysfs` and whose uverbs nodes are in `dev`. Netlink is
    /// not asked, as it would tell of this process's host.
    #[must_use]
    pub fn rooted(sysfs: impl Into<PathBuf>, dev: impl Into<PathBuf>) -> Self {
        Self { sysfs: Sysfs::at(sysfs), dev: dev.into(), netlink: Netlink::Absent }
    }

    /// This host, with a socket whose answers are there already.
    #[cfg(test)]
    pub(crate) fn with_netlink(socket: Socket) -> Self {
        Self { netlink: Netlink::Open(socket), ..Self::new() }
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
            self.netlink = match Socket::rdma() {
                Ok(socket) => Netlink::Open(socket),
                Err(errno) => Netlink::Unopened(Some(errno)),
            };
        }
        match &mut self.netlink {
            Netlink::Open(socket) => Some(socket),
            _ => None,
        }
    }

    /// Why RDMA netlink, which was asked, did not answer. Drivers, protocols and network
    /// interfaces are not known then.
    #[must_use]
    pub fn netlink_error(&self) -> Option<Error> {
        match self.netlink {
            Netlink::Unopened(Some(errno)) => {
                Some(Error::new("host", Request::Netlink, Cause::Os(errno)))
            }
            _ => None,
        }
    }

    /// Lists the devices of this network namespace, in natural order of their names.
    ///
    /// A device that vanishes meanwhile is left out, and so is one that cannot be read: see
    /// [`list`](Self::list). A host without devices gives an empty list: [`absence`](Self::absence)
    /// tells why.
    ///
    /// # Errors
    /// Netlink's errno, if it answers and its answer is no use; the errno of sysfs, if there is no
    /// netlink and sysfs cannot be read either.
    #[doc(alias = "ibv_get_device_list")]
    pub fn devices(&mut self) -> Result<Vec<Device>> {
        Ok(self.list()?.devices)
    }

    /// As [`devices`](Self::devices), and with what went wrong for those that are left out.
    ///
    /// # Errors
    /// As [`devices`](Self::devices).
    pub fn list(&mut self) -> Result<Listing> {
        let (sysfs, dev) = (self.sysfs.clone(), self.dev.clone());
        let listed = self.netlink().map(|socket| list_by_netlink(socket, &sysfs, &dev));
        let mut listing = match listed {
            Some(Ok(listing)) => listing,
            Some(Err(cause)) if !leaves_no_netlink(&cause) => {
                return Err(Error::new("host", Request::ListDevices, cause));
            }
            Some(Err(_)) | None => list_by_sysfs(&sysfs, &dev)?,
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
        let names = nodes.iter().map(|node| verbs.join(node).read_optional("ibdev"));
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

    /// Whether devices are shared by all network namespaces (the default) or belong to one each
    /// (`rdma system set netns exclusive`); `None` if the kernel does not tell.
    pub fn shares_namespaces(&mut self) -> Option<bool> {
        let request = Message::new(message_type(abi::op::SYS_GET), &[]);
        let mut mode = None;
        self.netlink()?
            .ask(vec![request], |_, reply| {
                for attribute in attributes(reply.map_err(Cause::Os)?) {
                    let attribute = attribute?;
                    if attribute.kind == abi::attribute::SYS_NETNS_MODE {
                        mode = Some(attribute.u8()? == abi::netns_mode::SHARED);
                    }
                }
                Ok(())
            })
            .ok()?;
        mode
    }

    /// Why there may be no device to list, in the order of what to look at first.
    #[must_use]
    pub fn absence(&self) -> Vec<Absence> {
        let mut reasons = Vec::new();
        let class = self.sysfs.folder("class/infiniband");
        match class.steady_names() {
            Err(Cause::Os(Errno::NOENT)) => reasons.push(Absence::NoModule),
            Ok(names) if names.is_empty() => reasons.push(Absence::NoDevice),
            // A folder that cannot be read says nothing; listing the devices has failed, then.
            Ok(_) | Err(_) => {}
        }
        let verbs = self.sysfs.folder(VERBS_CLASS);
        for node in verbs.steady_names().unwrap_or_default() {
            if let Some(device) = verbs.join(&node).read_optional("ibdev")
                && !class.join(&device).exists()
            {
                reasons.push(Absence::OtherNamespace { device, node });
            }
        }
        // Where no device has a node there is no folder of them either.
        let has_nodes = !matches!(verbs.steady_names(), Ok(names) if names.iter().all(|name| {
            !verbs.join(name).join("dev").exists()
        }));
        if !self.dev.exists() && has_nodes {
            reasons.push(Absence::NoNodes { folder: self.dev.clone() });
        }
        reasons
    }
}

/// A reason why a device is not seen.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Absence {
    /// The kernel has no RDMA core loaded, or `/sys` is masked.
    NoModule,
    /// No driver has registered a device in this network namespace.
    NoDevice,
    /// A device is in another network namespace.
    OtherNamespace {
        /// Its name.
        device: String,
        /// Its uverbs node, which is seen in every namespace.
        node: String,
    },
    /// There is no folder of uverbs nodes.
    NoNodes {
        /// Where it should be.
        folder: PathBuf,
    },
}

impl core::fmt::Display for Absence {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::NoModule => f.write_str(
                "no RDMA module is loaded (class/infiniband is missing in sysfs): load the \
                 device's driver, or rdma_rxe for soft RoCE",
            ),
            Self::NoDevice => f.write_str(
                "RDMA is loaded, but this network namespace has no device: load the device's \
                 driver, or make one (rdma link add)",
            ),
            Self::OtherNamespace { device, node } => write!(
                f,
                "{device} ({node}) is in another network namespace: run there, or move it here \
                 (rdma dev set {device} netns NAME)"
            ),
            Self::NoNodes { folder } => write!(
                f,
                "{} is missing: give the container the devices' nodes, or load ib_uverbs if it is not \
                 loaded",
                folder.display()
            ),
        }
    }
}

/// Asks for a device's uverbs node.
fn chardev_request(index: u32) -> Message {
    Message::new(message_type(abi::op::GET_CHARDEV), &[])
        .number(abi::attribute::DEV_INDEX, index)
        .text(abi::attribute::CHARDEV_TYPE, "uverbs")
}

const fn message_type(op: u16) -> u16 {
    abi::message_type(abi::client::NLDEV, op)
}

/// Whether the kernel (before 4.16) or the container leave no RDMA netlink, or devices change
/// faster than it lists them, so that sysfs may answer instead.
fn leaves_no_netlink(cause: &Cause) -> bool {
    const ERRNOS: [Errno; 6] =
        [Errno::INVAL, Errno::OPNOTSUPP, Errno::NOSYS, Errno::PERM, Errno::ACCESS, Errno::AGAIN];
    ERRNOS.contains(&cause.errno())
}

fn list_by_netlink(socket: &mut Socket, sysfs: &Sysfs, dev: &Path) -> Result<Listing, Cause> {
    for _ in 0..TRIES {
        if let Some(listing) = list_once(socket, sysfs, dev)? {
            return Ok(listing);
        }
    }
    Err(Cause::Os(Errno::AGAIN))
}

/// Lists the devices, unless they change meanwhile. The kernel counts devices to know how far a
/// dump has come, so that it leaves one out for each that is removed before it. A second dump tells:
/// it has not got the one that was removed.
fn list_once(socket: &mut Socket, sysfs: &Sysfs, dev: &Path) -> Result<Option<Listing>, Cause> {
    let request = Message::new(message_type(abi::op::GET), &[]);
    let found = socket.dump(&request, |payload| Ok(parse_device(payload)))?;
    let mut devices = Vec::with_capacity(found.len());
    let mut problems = Vec::new();
    let mut requests = Vec::with_capacity(found.len());
    for device in &found {
        let (index, device) = match device {
            Ok(device) => device,
            Err(cause) => {
                problems.push(Error::new("host", Request::ListDevices, cause.clone()));
                continue;
            }
        };
        requests.push(chardev_request(*index));
        devices.push(device.clone());
    }
    let mut untold = false;
    socket.ask(requests, |place, reply| {
        let Some(device) = devices.get_mut(place) else { return Ok(()) };
        match reply {
            Ok(reply) => parse_chardev(reply, dev, device)?,
            // The request is unknown, before Linux 5.3.
            Err(Errno::INVAL | Errno::NODEV) => untold = true,
            // No uverbs client on this device: it has no node.
            Err(Errno::OPNOTSUPP) => {}
            Err(errno) => {
                problems.push(Error::new(&*device.name, Request::Netlink, Cause::Os(errno)));
            }
        }
        Ok(())
    })?;
    let class = sysfs.folder(VERBS_CLASS);
    for device in &mut devices {
        let folder = device.node.as_ref().map(|node| class.join(&node.name));
        device.identity.node = folder.and_then(|folder| folder.id().ok());
    }
    if untold {
        let (nodes, unread) = nodes_by_sysfs(&class, dev);
        problems.extend(unread.map(|cause| unread_nodes(&class, cause)));
        for device in devices.iter_mut().filter(|device| device.node.is_none()) {
            if let Some((node, id)) = nodes.get(&device.name) {
                device.node = Some(node.clone());
                device.identity.node = Some(id.clone());
            }
        }
    }
    // The last word, so that what was read in between is of devices that were there all the time.
    if !found.is_empty() && socket.dump(&request, |payload| Ok(parse_device(payload)))? != found {
        return Ok(None);
    }
    Ok(Some(Listing { devices, problems }))
}

/// Reads a device of a `GET` dump; its index comes first.
pub(crate) fn parse_device(payload: &[u8]) -> Result<(u32, Device), Cause> {
    let mut index = None;
    let mut device =
        Device { node_type: NodeType::UNSPECIFIED, port_count: 0, ..Device::named("") };
    for attribute in attributes(payload) {
        let attribute = attribute?;
        match attribute.kind {
            abi::attribute::DEV_INDEX => index = Some(attribute.u32()?),
            abi::attribute::DEV_NAME => device.name = attribute.text(),
            abi::attribute::PORT_INDEX => device.port_count = attribute.u32()?,
            abi::attribute::FW_VERSION => {
                device.fw_version = Some(attribute.text()).filter(|text| !text.is_empty());
            }
            abi::attribute::NODE_GUID => device.node_guid = attribute.number()?.into(),
            abi::attribute::SYS_IMAGE_GUID => device.sys_image_guid = attribute.number()?.into(),
            abi::attribute::DEV_NODE_TYPE => device.node_type = NodeType(attribute.u8()?),
            abi::attribute::DEV_PROTOCOL => device.protocol = Some(attribute.text()),
            _ => {}
        }
    }
    let index = index.ok_or(Cause::Malformed("a device without index"))?;
    device.index = Some(index);
    check(&device)?;
    Ok((index, device))
}

/// Reads a `GET_CHARDEV` reply into `device`.
pub(crate) fn parse_chardev(payload: &[u8], dev: &Path, device: &mut Device) -> Result<(), Cause> {
    let (mut name, mut number) = (None, None);
    for attribute in attributes(payload) {
        let attribute = attribute?;
        match attribute.kind {
            abi::attribute::CHARDEV_NAME => name = Some(attribute.text()),
            abi::attribute::CHARDEV => number = Some(attribute.number()?),
            abi::attribute::UVERBS_DRIVER_ID => device.driver = Some(DriverId(attribute.u32()?)),
            _ => {}
        }
    }
    if let (Some(name), Some(number)) = (name, number) {
        if !is_file_name(&name) {
            return Err(Cause::Malformed("a node's name"));
        }
        let (major, minor) = abi::decode_chardev(number);
        let number = rustix::fs::makedev(major, minor);
        device.node = Some(Node { path: dev.join(&name), name, number });
    }
    Ok(())
}

fn list_by_sysfs(sysfs: &Sysfs, dev: &Path) -> Result<Listing> {
    let mut listing = Listing { devices: Vec::new(), problems: Vec::new() };
    let class = sysfs.folder("class/infiniband");
    let names = match class.steady_names() {
        Ok(names) => names,
        // Without the class there is no RDMA core, and so no device; see `absence`.
        Err(Cause::Os(Errno::NOENT)) => return Ok(listing),
        Err(cause) => {
            let path = class.path().to_owned();
            return Err(Error::new("host", Request::Sysfs { path }, cause));
        }
    };
    let verbs = sysfs.folder(VERBS_CLASS);
    let (mut nodes, unread) = nodes_by_sysfs(&verbs, dev);
    listing.problems.extend(unread.map(|cause| unread_nodes(&verbs, cause)));
    for name in names {
        let by_name = class.join(&name);
        // It may not be the name that the folder has.
        if !is_device_name(&name) {
            let request = Request::Sysfs { path: by_name.path().to_owned() };
            let cause = Cause::Malformed("a device's name");
            listing.problems.push(Error::new(name, request, cause));
            continue;
        }
        let listed = steady_device(&by_name, &name, &mut nodes, &verbs, dev);
        match listed {
            Ok(device) => listing.devices.push(device),
            // It has gone since it was listed.
            Err(_) if !by_name.exists() => {}
            Err(cause) => {
                let request = Request::Sysfs { path: by_name.path().to_owned() };
                listing.problems.push(Error::new(name, request, cause));
            }
        }
    }
    Ok(listing)
}

/// Reads a device and finds its node, both of one device.
fn steady_device(
    by_name: &Folder,
    name: &str,
    nodes: &mut BTreeMap<String, (Node, FolderId)>,
    verbs: &Folder,
    dev: &Path,
) -> Result<Device, Cause> {
    for _ in 0..TRIES {
        let folder = by_name.held().map_err(Cause::Os)?;
        let mut device = read_device(&folder, name.to_owned())?;
        device.identity.device = Some(folder.id().map_err(Cause::Os)?);
        // One that is being removed lists fewer ports.
        if !folder.exists() {
            return Err(Cause::Os(Errno::NOENT));
        }
        let Some((node, id)) = nodes.get(name) else {
            return Ok(device);
        };
        // The node that had this device's name before still has it.
        let name_now = verbs.join(&node.name).read_optional("ibdev");
        if name_now.as_deref() == Some(name) && id.stands().is_ok() {
            device.node = Some(node.clone());
            device.identity.node = Some(id.clone());
            return Ok(device);
        }
        (*nodes, _) = nodes_by_sysfs(verbs, dev);
    }
    Err(Cause::Os(Errno::AGAIN))
}

/// That nodes could not be read, so that devices may have one that is not known.
fn unread_nodes(class: &Folder, cause: Cause) -> Error {
    Error::new("host", Request::Sysfs { path: class.path().to_owned() }, cause)
}

/// Each uverbs node with the name of its device, and what kept nodes from being read. The names are those
/// of all network namespaces. Without `ib_uverbs` there is none.
fn nodes_by_sysfs(
    class: &Folder,
    dev: &Path,
) -> (BTreeMap<String, (Node, FolderId)>, Option<Cause>) {
    let mut nodes = BTreeMap::new();
    let names = match class.steady_names() {
        Ok(names) => names,
        Err(Cause::Os(Errno::NOENT)) => return (nodes, None),
        Err(cause) => return (nodes, Some(cause)),
    };
    let mut unread = None;
    for name in names {
        let folder = class.join(&name);
        let device = match folder.read("ibdev") {
            Ok(device) => device,
            // It has gone since it was listed; or it is the file `abi_version`.
            Err(cause) if matches!(cause.errno(), Errno::NOENT | Errno::NODEV | Errno::NOTDIR) => {
                continue;
            }
            Err(cause) => {
                unread = Some(cause);
                continue;
            }
        };
        if let Ok(id) = folder.id()
            && let Some(number) = folder.read_optional("dev").as_deref().and_then(device_number)
            // Another may have taken over the name between two files.
            && id.stands().is_ok()
        {
            let node = Node { path: dev.join(&name), name, number };
            nodes.entry(device).or_insert((node, id));
        }
    }
    (nodes, unread)
}

fn read_device(folder: &Folder, name: String) -> Result<Device, Cause> {
    let guid =
        |file| folder.read(file)?.parse::<Guid>().map_err(|_| Cause::Malformed("a GUID in sysfs"));
    let ports = folder.join("ports").numbers()?;
    let node_type = u8::try_from(folder.read_number("node_type")?)
        .map(NodeType)
        .map_err(|_| Cause::Malformed("a node type"))?;
    // The kernel numbers ports from 1 without a gap; a switch has its port 0 alone.
    let first = u32::from(node_type != NodeType::SWITCH);
    if !ports.iter().copied().eq((first..).take(ports.len())) {
        return Err(Cause::Malformed("port numbers with a gap"));
    }
    let device = Device {
        name,
        index: None,
        node_type,
        node_guid: guid("node_guid")?,
        sys_image_guid: guid("sys_image_guid")?,
        fw_version: folder.read_optional("fw_ver"),
        protocol: None,
        port_count: ports.last().copied().unwrap_or(0),
        driver: None,
        node: None,
        identity: Identity::default(),
    };
    check(&device)?;
    Ok(device)
}

/// Refuses what would lead out of a folder, read as something else in a list, or into endless loops.
fn check(device: &Device) -> Result<(), Cause> {
    if !is_device_name(&device.name) {
        return Err(Cause::Malformed("a device's name"));
    }
    if device.port_count > MAX_PORTS {
        return Err(Cause::Malformed("a number of ports beyond all reason"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let host = Host::rooted(tree.path(), "/nowhere/infiniband");
        let lacks_nodes =
            |host: &Host| host.absence().iter().any(|it| matches!(it, Absence::NoNodes { .. }));
        assert!(lacks_nodes(&host), "the device has a node, and there is no folder");
        std::fs::remove_dir_all(class.join("rxe0")).unwrap();
        std::fs::remove_dir_all(tree.path().join("class/infiniband_verbs/uverbs0")).unwrap();
        assert!(!lacks_nodes(&host), "ib_uverbs is loaded");
        std::fs::remove_dir(tree.path().join("class/infiniband_verbs")).unwrap();
        assert!(lacks_nodes(&host), "ib_uverbs is not loaded");
    }

    #[test]
    fn nodes_that_cannot_be_read_are_not_nodes_that_are_not_there() {
        let (tree, _class, mut host) = tree();
        let verbs = tree.path().join("class/infiniband_verbs");
        std::fs::remove_dir_all(&verbs).unwrap();
        let listing = host.list().unwrap();
        assert!(listing.devices[0].node.is_none() && listing.problems.is_empty());
        std::fs::write(&verbs, "").unwrap();
        let listing = host.list().unwrap();
        assert_eq!((listing.devices.len(), listing.problems.len()), (1, 1));
        let said = listing.problems[0].to_string();
        assert!(said.starts_with("host: ") && said.contains("class/infiniband_verbs"), "{said}");
    }

    fn payload(message: &Message) -> Vec<u8> {
        message.clone().finish_for_test()
    }

    #[test]
    fn a_device_of_a_dump() {
        let message = Message::new(0, &[])
            .number(abi::attribute::DEV_INDEX, 3)
            .text(abi::attribute::DEV_NAME, "rxe0")
            .number(abi::attribute::PORT_INDEX, 1)
            .attribute(abi::attribute::NODE_GUID, &0x0011_22ff_fe33_4455u64.to_ne_bytes())
            .attribute(abi::attribute::DEV_NODE_TYPE, &[1])
            .text(999, "from a newer kernel")
            .text(abi::attribute::DEV_PROTOCOL, "roce");
        let (index, device) = parse_device(&payload(&message)).unwrap();
        assert_eq!(index, 3);
        assert_eq!(device.name, "rxe0");
        assert_eq!(device.ports(), 1..=1);
        assert_eq!(device.node_guid.to_string(), "0x001122fffe334455");
        assert_eq!(device.protocol.as_deref(), Some("roce"));
    }

    #[test]
    fn broken_devices_are_refused() {
        let named = |name| Message::new(0, &[]).number(1, 0).text(2, name);
        assert!(parse_device(&payload(&named("../x"))).is_err());
        for name in ["", "a,b", "a\nb", "a:1", "a\u{202e}b"] {
            assert!(parse_device(&payload(&named(name))).is_err(), "{name:?}");
        }
        assert!(parse_device(&payload(&Message::new(0, &[]).text(2, "a"))).is_err());
        assert!(parse_device(&payload(&named("a").number(3, u32::MAX))).is_err());
    }

    #[test]
    fn a_switch_has_port_0_only() {
        let message = Message::new(0, &[])
            .number(1, 0)
            .text(2, "sw")
            .number(3, 36)
            .attribute(abi::attribute::DEV_NODE_TYPE, &[2]);
        assert_eq!(parse_device(&payload(&message)).unwrap().1.ports(), 0..=0);
    }
}
