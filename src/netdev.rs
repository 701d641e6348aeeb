//! Which network interface a GID belongs to, named only if it is one of this network namespace.
//!
//! The kernel gives a GID's interface as an index (ioctl) or a name (sysfs), both of the
//! namespace the interface is in, without saying which that is. In a container the same number or
//! name often is another interface. So a name is given only where it is shown that the interface
//! is ours:
//!
//! 1. it has the GID's address; or it is the port's own interface (in a bond: the bond), and the
//!    GID is made of its MAC address; **and**
//! 2. RDMA netlink, which hides interfaces of other namespaces, says that the port's interface is
//!    this one or one that it stands on (a VLAN, a macvlan, a bond, a bridge …); or it is a guest
//!    here, standing on an interface of another namespace that the port's own entries name; **and**
//! 3. no other entry that was read makes the same claim.
//!
//! Otherwise there is no name, and the index alone tells. Interfaces of ours that stay unnamed:
//! guests whose home interface has no entry of its own, or that sysfs tells of (it has no index
//! of the home); what stands on a guest; two interfaces with one address and one index, here and
//! in another namespace, of which neither can be told from the other.

use core::num::NonZeroU32;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use nix::libc;
use uverbs_uapi::netlink as abi;

use crate::device::{Device, Host};
use crate::error::{Cause, Error, Request, Result};
use crate::gid::Gid;
use crate::netlink::{Attribute, Message, Socket, attributes, number_at};
use crate::reader::GidRecord;

/// Leaves the counters out of interface messages, which are most of their bytes.
const SKIP_STATISTICS: u32 = 1 << 3;

/// Lengths of the fixed parts of the two route messages, `struct ifinfomsg` and `struct ifaddrmsg`.
const LINK_BODY: usize = 16;
const ADDRESS_BODY: usize = 8;

/// Bits of an interface's flags (`linux/if.h`): switched on; and able to carry packets.
const UP: u32 = 1 << 0;
const LOWER_UP: u32 = 1 << 16;

/// A network interface that is shown to be in this namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Netdev {
    /// Its index here.
    pub index: NonZeroU32,
    /// Its name here.
    pub name: String,
}

/// A network interface of this namespace, with its addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its index here.
    pub index: NonZeroU32,
    /// Its name here.
    pub name: String,
    /// Whether it is switched on (`IFF_UP`).
    pub is_up: bool,
    /// Whether it has a carrier (`IFF_LOWER_UP`).
    pub is_lower_up: bool,
    /// Longest packet in bytes.
    pub mtu: u32,
    /// MAC address; `None` where it is not of six bytes, as on IPoIB.
    pub mac: Option<[u8; 6]>,
    /// Addresses with the lengths of their prefixes; of a point-to-point link the far end's, as in
    /// GIDs.
    pub addresses: Vec<(IpAddr, u8)>,
}

/// A device's GID records, to be given names.
#[derive(Debug)]
pub struct DeviceGids<'r> {
    /// The device.
    pub device: &'r Device,
    /// Its records.
    pub records: &'r [GidRecord],
}

impl Host {
    /// The network interface of each port that has one in this namespace, as the kernel says it.
    ///
    /// Ports are given as pairs of device and number; so is the answer. Without RDMA netlink
    /// nothing is known.
    ///
    /// # Errors
    /// Those of RDMA netlink.
    pub fn port_netdevs(
        &mut self,
        ports: &[(&Device, u32)],
    ) -> Result<BTreeMap<(String, u32), Netdev>> {
        let mut asked = Vec::new();
        let mut requests = Vec::new();
        for (device, port) in ports {
            if let Some(index) = device.index {
                asked.push((device.name.clone(), *port));
                requests.push(
                    Message::new(abi::message_type(abi::client::NLDEV, abi::op::PORT_GET), &[])
                        .number(abi::attribute::DEV_INDEX, index)
                        .number(abi::attribute::PORT_INDEX, *port),
                );
            }
        }
        let mut found = BTreeMap::new();
        if requests.is_empty() {
            return Ok(found);
        }
        let Some(socket) = self.netlink() else { return Ok(found) };
        socket
            .ask(requests, |place, reply| {
                // A port that has gone has no interface.
                if let (Ok(reply), Some(port)) = (reply, asked.get(place))
                    && let Some(netdev) = parse_port(reply)?
                {
                    found.insert(port.clone(), netdev);
                }
                Ok(())
            })
            .map_err(|cause| Error::new("host", Request::Netlink, cause))?;
        Ok(found)
    }

    /// Finds the interface of each record of each device, in their order; `None` where there is
    /// none, or none that is shown to be in this namespace.
    ///
    /// Give all devices at once: a claim that two ports make is nobody's.
    ///
    /// # Errors
    /// Those of RDMA netlink and route netlink.
    pub fn netdevs(&mut self, devices: &[DeviceGids<'_>]) -> Result<Vec<Vec<Option<Netdev>>>> {
        let nothing = || devices.iter().map(|gids| vec![None; gids.records.len()]).collect();
        let ports: BTreeSet<(usize, u32)> = devices
            .iter()
            .enumerate()
            .flat_map(|(place, gids)| {
                gids.records.iter().filter(|r| has_netdev(r)).map(move |r| (place, r.entry.port()))
            })
            .collect();
        if ports.is_empty() {
            return Ok(nothing());
        }
        let ports: Vec<(&Device, u32)> = ports
            .iter()
            .filter_map(|(place, port)| Some((devices.get(*place)?.device, *port)))
            .collect();
        // Without RDMA netlink there is nobody to say what is ours.
        if !ports.iter().any(|(device, _)| device.index.is_some()) || self.netlink().is_none() {
            return Ok(nothing());
        }
        let port_netdevs = self.port_netdevs(&ports)?;
        let error = |cause| Error::new("host", Request::Interfaces, cause);
        let mut route = Socket::route().map_err(|errno| error(Cause::Os(errno)))?;
        let addresses = read_addresses(&mut route).map_err(error)?;
        let addresses = addresses.into_iter().map(|address| (address.index, address.ip)).collect();
        let mut namespace = Namespace { port_netdevs, addresses, links: None };
        let names = namespace.name(devices);
        if settled(devices, &names) {
            return Ok(names);
        }
        // Some entry is of another interface than its port's: now the links between them matter.
        namespace.links = Some(read_links(&mut route).map_err(error)?);
        Ok(namespace.name(devices))
    }

    /// The interfaces of this network namespace, by index. `None` if this is another host's tree,
    /// of whose interfaces nothing is known.
    ///
    /// # Errors
    /// Those of route netlink.
    pub fn interfaces(&self) -> Result<Option<Vec<Interface>>> {
        if !self.is_here() {
            return Ok(None);
        }
        let error = |cause| Error::new("host", Request::Interfaces, cause);
        let mut route = Socket::route().map_err(|errno| error(Cause::Os(errno)))?;
        let links = read_links(&mut route).map_err(error)?;
        let mut addresses: BTreeMap<u32, Vec<(IpAddr, u8)>> = BTreeMap::new();
        for Address { index, ip, prefix } in read_addresses(&mut route).map_err(error)? {
            addresses.entry(index).or_default().push((ip, prefix));
        }
        let interface = |link: Link| Interface {
            index: link.index,
            is_up: link.flags & UP != 0,
            is_lower_up: link.flags & LOWER_UP != 0,
            mtu: link.mtu,
            mac: link.mac,
            addresses: addresses.remove(&link.index.get()).unwrap_or_default(),
            name: link.name,
        };
        Ok(Some(links.by_index.into_values().map(interface).collect()))
    }

    /// Whether each device may have a GID of the interface that is called `name` here, as far as
    /// can be known without opening it: in their order.
    ///
    /// No, if all its ports' interfaces are here and are neither this one nor what it stands on, or
    /// if there is no such interface here. Where that cannot be known, yes.
    ///
    /// # Errors
    /// Those of RDMA netlink and route netlink.
    pub fn may_have_netdev(&mut self, devices: &[&Device], name: &str) -> Result<Vec<bool>> {
        let unknown = || vec![true; devices.len()];
        if devices.is_empty() || self.netlink().is_none() {
            return Ok(unknown());
        }
        let ports: Vec<(&Device, u32)> = devices
            .iter()
            .flat_map(|device| device.ports().map(move |port| (*device, port)))
            .collect();
        let port_netdevs = self.port_netdevs(&ports)?;
        let error = |cause| Error::new("host", Request::Interfaces, cause);
        let mut route = Socket::route().map_err(|errno| error(Cause::Os(errno)))?;
        let links = read_links(&mut route).map_err(error)?;
        let Some(wanted) = links.named(name) else { return Ok(vec![false; devices.len()]) };
        let may = |device: &&Device| {
            device.index.is_none()
                || device.ports().any(|port| match port_netdevs.get(&(device.name.clone(), port)) {
                    Some(own) => {
                        own.index == wanted.index
                            || links.standing_on(own.index).contains(&wanted.index.get())
                    }
                    // Elsewhere, and this one may be a guest that stands on it; or none.
                    None => wanted.is_guest,
                })
        };
        Ok(devices.iter().map(may).collect())
    }
}

fn has_netdev(record: &GidRecord) -> bool {
    record.entry.netdev_ifindex().is_some() || record.sysfs_netdev.is_some()
}

fn settled(devices: &[DeviceGids<'_>], names: &[Vec<Option<Netdev>>]) -> bool {
    devices.iter().zip(names).all(|(gids, names)| {
        gids.records.iter().zip(names).all(|(record, name)| name.is_some() || !has_netdev(record))
    })
}

/// An interface, as far as it matters here.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Link {
    index: NonZeroU32,
    name: String,
    /// Its flags, as in `linux/if.h`.
    flags: u32,
    mtu: u32,
    mac: Option<[u8; 6]>,
    /// The interface it stands on.
    lower: Option<u32>,
    /// Whether `lower` is in another namespace.
    is_guest: bool,
    /// The bond, bridge … that it belongs to.
    master: Option<u32>,
    /// Whether it is a bond itself.
    is_bond: bool,
}

impl Link {
    fn netdev(&self) -> Netdev {
        Netdev { index: self.index, name: self.name.clone() }
    }
}

/// What this namespace is known to hold.
#[derive(Debug)]
struct Namespace {
    port_netdevs: BTreeMap<(String, u32), Netdev>,
    addresses: BTreeSet<(u32, IpAddr)>,
    /// Not read until it is wanted.
    links: Option<Links>,
}

/// The interfaces of this namespace.
#[derive(Debug, Default)]
struct Links {
    by_index: BTreeMap<u32, Link>,
    /// What stands directly on each, here.
    uppers: BTreeMap<u32, Vec<u32>>,
}

impl FromIterator<Link> for Links {
    fn from_iter<I: IntoIterator<Item = Link>>(list: I) -> Self {
        let mut links = Self::default();
        for link in list {
            let index = link.index.get();
            if let Some(lower) = link.lower.filter(|_| !link.is_guest) {
                links.uppers.entry(lower).or_default().push(index);
            }
            if let Some(master) = link.master {
                links.uppers.entry(index).or_default().push(master);
            }
            links.by_index.insert(index, link);
        }
        links
    }
}

impl Links {
    fn named(&self, name: &str) -> Option<&Link> {
        self.by_index.values().find(|link| link.name == name)
    }

    /// The interfaces that stand on this one, over any number of steps, all of them here.
    fn standing_on(&self, lower: NonZeroU32) -> BTreeSet<u32> {
        let mut found = BTreeSet::new();
        let mut next = vec![lower.get()];
        while let Some(lower) = next.pop() {
            for upper in self.uppers.get(&lower).into_iter().flatten() {
                if found.insert(*upper) {
                    next.push(*upper);
                }
            }
        }
        found
    }
}

/// Says that an entry belongs to an interface here. Entries that say the same cannot all be right,
/// so none of them is believed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Claim {
    netdev: Netdev,
    /// The port, if its own interface is here; guests of any port may get into each other's way.
    port: Option<(String, u32)>,
    gid: Gid,
    gid_type: u32,
}

impl Namespace {
    fn name(&self, devices: &[DeviceGids<'_>]) -> Vec<Vec<Option<Netdev>>> {
        let mut ports = BTreeMap::new();
        let claims: Vec<Vec<Option<Claim>>> = devices
            .iter()
            .map(|gids| {
                let claim = |record: &GidRecord| {
                    let number = record.entry.port();
                    let key = (gids.device.name.clone(), number);
                    let port = ports.entry(key).or_insert_with_key(|key| self.port(key, gids));
                    self.claim(port, record)
                };
                gids.records.iter().map(claim).collect()
            })
            .collect();
        let mut count: BTreeMap<&Claim, u32> = BTreeMap::new();
        for claim in claims.iter().flatten().flatten() {
            *count.entry(claim).or_default() += 1;
        }
        let believed = |claim: &Option<Claim>| {
            let claim = claim.as_ref().filter(|claim| count.get(claim) == Some(&1))?;
            Some(claim.netdev.clone())
        };
        claims.iter().map(|claims| claims.iter().map(believed).collect()).collect()
    }

    /// Gathers what is known of a port's interface.
    fn port(&self, key: &(String, u32), gids: &DeviceGids<'_>) -> Port {
        match self.port_netdevs.get(key) {
            Some(own) => Port::Here {
                key: key.clone(),
                own: own.clone(),
                bond: self
                    .link(own.index.get())
                    .and_then(|link| self.link(link.master?))
                    .filter(|master| master.is_bond)
                    .map(|bond| bond.index.get()),
                uppers: self
                    .links
                    .as_ref()
                    .map_or_else(BTreeSet::new, |links| links.standing_on(own.index)),
            },
            None => Port::Elsewhere {
                indices: gids
                    .records
                    .iter()
                    .filter(|record| record.entry.port() == key.1)
                    .filter_map(|record| record.entry.netdev_ifindex().map(NonZeroU32::get))
                    .collect(),
            },
        }
    }

    fn link(&self, index: u32) -> Option<&Link> {
        self.links.as_ref()?.by_index.get(&index)
    }

    /// The interface here that a record's index or name stands for, if the evidence is there.
    fn claim(&self, port: &Port, record: &GidRecord) -> Option<Claim> {
        let entry = &record.entry;
        let netdev = match (port, entry.netdev_ifindex()) {
            (Port::Here { own, .. }, Some(index)) if index == own.index => own.clone(),
            (Port::Here { own, .. }, None) if record.sysfs_netdev.as_ref() == Some(&own.name) => {
                own.clone()
            }
            (_, Some(index)) => self.link(index.get())?.netdev(),
            (_, None) => self.links.as_ref()?.named(record.sysfs_netdev.as_ref()?)?.netdev(),
        };
        let index = netdev.index.get();
        let gid = entry.gid();
        let belongs_there = match port {
            Port::Here { own, uppers, .. } => netdev.index == own.index || uppers.contains(&index),
            Port::Elsewhere { indices } => {
                let home = self.link(index).filter(|link| link.is_guest)?.lower?;
                // Loopback addresses are in every namespace and prove nothing.
                let everywhere = gid.ipv4().map_or(gid.ipv6().is_loopback(), |v4| v4.is_loopback());
                indices.contains(&home) && !everywhere
            }
        };
        let address = gid.ipv4().map_or(IpAddr::V6(gid.ipv6()), IpAddr::V4);
        let is_evident =
            self.addresses.contains(&(index, address)) || self.is_made_of_mac(port, index, gid);
        (belongs_there && is_evident).then(|| Claim {
            netdev,
            port: match port {
                Port::Here { key, .. } => Some(key.clone()),
                Port::Elsewhere { .. } => None,
            },
            gid,
            gid_type: entry.gid_type().0,
        })
    }

    /// Whether the kernel makes this GID of the interface's MAC address alone. It does so for the
    /// bond that the port's interface belongs to, else for that interface. VLANs and bridges have
    /// the same MAC address, and prove nothing by it.
    fn is_made_of_mac(&self, port: &Port, index: u32, gid: Gid) -> bool {
        let Port::Here { own, bond, .. } = port else { return false };
        let mac = self.link(index).and_then(|link| link.mac);
        index == bond.unwrap_or(own.index.get())
            && mac.is_some_and(|mac| gid == default_gid(mac) || gid == iwarp_gid(mac))
    }
}

/// A port's interface, as far as this namespace knows it.
#[derive(Debug)]
enum Port {
    /// It is here.
    Here {
        key: (String, u32),
        own: Netdev,
        /// The bond that it belongs to.
        bond: Option<u32>,
        /// What stands on it, here.
        uppers: BTreeSet<u32>,
    },
    /// It is in another namespace, or there is none; what indices the port's entries name.
    Elsewhere { indices: BTreeSet<u32> },
}

/// The GID that RoCE makes of a MAC address: link-local, with its EUI-64.
pub(crate) fn default_gid(mac: [u8; 6]) -> Gid {
    let [m0, m1, m2, m3, m4, m5] = mac;
    Gid::from_bytes([0xfe, 0x80, 0, 0, 0, 0, 0, 0, m0 ^ 2, m1, m2, 0xff, 0xfe, m3, m4, m5])
}

/// The one GID of an iWARP port: its MAC address, then zeros.
pub(crate) fn iwarp_gid(mac: [u8; 6]) -> Gid {
    let [m0, m1, m2, m3, m4, m5] = mac;
    Gid::from_bytes([m0, m1, m2, m3, m4, m5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
}

/// Reads the interface of a `PORT_GET` reply, which is there only if it is in this namespace.
pub(crate) fn parse_port(payload: &[u8]) -> Result<Option<Netdev>, Cause> {
    let (mut index, mut name) = (None, None);
    for attribute in attributes(payload) {
        let attribute = attribute?;
        match attribute.kind {
            abi::attribute::NDEV_INDEX => index = NonZeroU32::new(attribute.u32()?),
            abi::attribute::NDEV_NAME => name = Some(attribute.text()),
            _ => {}
        }
    }
    Ok(index.zip(name).map(|(index, name)| Netdev { index, name }))
}

/// An address of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    /// The interface's index.
    pub(crate) index: u32,
    pub(crate) ip: IpAddr,
    /// Length of the network's part.
    pub(crate) prefix: u8,
}

fn read_addresses(socket: &mut Socket) -> Result<Vec<Address>, Cause> {
    let request = Message::new(libc::RTM_GETADDR, &[0; ADDRESS_BODY]);
    Ok(socket.dump(&request, parse_address)?.into_iter().flatten().collect())
}

/// Reads an interface's address: of a point-to-point link the far end, as the kernel's GIDs do.
pub(crate) fn parse_address(payload: &[u8]) -> Result<Option<Address>, Cause> {
    const SHORT: Cause = Cause::Malformed("an address message");
    let prefix = *payload.get(1).ok_or(SHORT)?;
    let index = number_at(payload, 4).ok_or(SHORT)?;
    let mut found = None;
    for attribute in attributes(payload.get(ADDRESS_BODY..).ok_or(SHORT)?) {
        let attribute = attribute?;
        if attribute.kind == libc::IFA_ADDRESS {
            found = match *attribute.bytes() {
                [a, b, c, d] => Some(IpAddr::V4(Ipv4Addr::new(a, b, c, d))),
                ref bytes => <[u8; 16]>::try_from(bytes).ok().map(|b| Ipv6Addr::from(b).into()),
            };
        }
    }
    Ok(found.map(|ip| Address { index, ip, prefix }))
}

fn read_links(socket: &mut Socket) -> Result<Links, Cause> {
    let request = Message::new(libc::RTM_GETLINK, &[0; LINK_BODY])
        .number(libc::IFLA_EXT_MASK, SKIP_STATISTICS);
    let links = socket.dump(&request, parse_link)?;
    Ok(links.into_iter().flatten().collect())
}

fn parse_link(payload: &[u8]) -> Result<Option<Link>, Cause> {
    const SHORT: Cause = Cause::Malformed("an interface message");
    let Some(index) = NonZeroU32::new(number_at(payload, 4).ok_or(SHORT)?) else { return Ok(None) };
    let mut link = Link {
        index,
        name: String::new(),
        flags: number_at(payload, 8).ok_or(SHORT)?,
        mtu: 0,
        mac: None,
        lower: None,
        is_guest: false,
        master: None,
        is_bond: false,
    };
    let mut kind = String::new();
    for attribute in attributes(payload.get(LINK_BODY..).ok_or(SHORT)?) {
        let attribute: Attribute<'_> = attribute?;
        match attribute.kind {
            libc::IFLA_IFNAME => link.name = attribute.text(),
            libc::IFLA_MTU => link.mtu = attribute.u32()?,
            libc::IFLA_ADDRESS => link.mac = attribute.bytes().try_into().ok(),
            libc::IFLA_LINK => link.lower = Some(attribute.u32()?).filter(|lower| *lower != 0),
            libc::IFLA_LINK_NETNSID => link.is_guest = true,
            libc::IFLA_MASTER => link.master = Some(attribute.u32()?),
            libc::IFLA_LINKINFO => kind = parse_kind(attribute.bytes())?,
            _ => {}
        }
    }
    match kind.as_str() {
        "bond" => link.is_bond = true,
        // What these name is their other end, on which they do not stand.
        "veth" | "netkit" => (link.lower, link.is_guest) = (None, false),
        _ => {}
    }
    Ok(Some(link))
}

/// The kind of a virtual interface, as `vlan`; empty for others.
fn parse_kind(link_info: &[u8]) -> Result<String, Cause> {
    for attribute in attributes(link_info) {
        let attribute = attribute?;
        if attribute.kind == libc::IFLA_INFO_KIND {
            return Ok(attribute.text());
        }
    }
    Ok(String::new())
}

/// Reads interface messages, and what stands on each of those that read; for fuzzing.
#[cfg(feature = "simulated-kernel")]
pub(crate) fn standing_on_each(messages: &[&[u8]]) -> Vec<(u32, BTreeSet<u32>)> {
    let read = |message: &&[u8]| parse_link(message).ok().flatten();
    let links: Links = messages.iter().filter_map(read).collect();
    links.by_index.values().map(|l| (l.index.get(), links.standing_on(l.index))).collect()
}

#[cfg(test)]
mod tests;
