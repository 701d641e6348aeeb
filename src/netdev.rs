//! Which network interface a GID belongs to, named only if it is one of this network namespace.
//!
//! The kernel gives a GID's interface as an index (ioctl) or a name (sysfs), both of the
//! namespace the interface is in, without saying which that is. In a container the same number or
//! name often is another interface. Nothing about an index or a name of another namespace proves
//! anything here. So the proof is another one: **the kernel has made a row for this interface of
//! ours in this port's table, and only one row there can be it.**
//!
//! That it has made one follows from its own rules:
//!
//! 1. RDMA netlink, which hides interfaces of other namespaces, names the port's own interface; the
//!    one in question is this, or is made an upper device of it by the kernel, over any number of
//!    steps that are all in this namespace: a VLAN, macvlan, ipvlan or macsec interface by its link,
//!    a bond, bridge, team … by its members; **and**
//! 2. it has the GID's address: of IPv4 the far end of a point-to-point link, of IPv6 always the near
//!    one; **and**
//! 3. no bond in between has another active member, for then the kernel makes no rows of it here;
//!    **and**
//! 4. the port's table has room.
//!
//! Only one row can be it if no other row of the port has the same GID, type and index (or name), and
//! none with that GID and type keeps its interface's name back.
//!
//! The slots at the beginning of a table are kept for the GIDs that the kernel makes of the MAC address
//! of the port's interface, or of the bond above it. A row there needs no address: it belongs to that
//! interface if it has its index and is made of its MAC address, and no other row says the same.
//!
//! Otherwise there is no name, and the index alone tells. Only the rows of the same port count, and
//! [`GidTable`] always has them all: the answer is the same whatever else is asked for.
//!
//! Interfaces of ours whose rows stay unnamed:
//!
//! - on a port whose own interface is in another namespace, which is so for the second interface of a
//!   pod (macvlan, ipvlan), and what is on top of it: netlink and sysfs prove nothing for them;
//! - of kinds other than those above, and everything on top of them. What a tunnel is bound to (gre,
//!   ipip, sit, vti, vxlan, geneve …) is not below it, and the kernel makes no rows of it. A macvtap or
//!   ipvtap interface does not always say that what is below it is in another namespace;
//! - on a bond, for a port that is not its active member;
//! - two rows with one address, type and index, of which one is of another namespace;
//! - all but the first slots of a table that is full;
//! - where the address has gone from the interface since, or RDMA netlink does not answer.
//!
//! What is left: the kernel makes a row a moment after the address is set, it may fail to, and it takes
//! the row away with the first of two equal addresses (`10.0.0.1/16` and `10.0.0.1/24`). If just then
//! another namespace has an interface on the same port with the same index and the same address, that
//! row is taken for ours. Nothing that the kernel tells shows this.

use core::num::NonZeroU32;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use nix::libc;
use rustix::io::Errno;
use uverbs_uapi::netlink as abi;

use crate::device::{Device, Host};
use crate::error::{Cause, Error, Request, Result};
use crate::gid::{Gid, GidType};
use crate::names::is_interface_name;
use crate::netlink::{Attribute, Message, Socket, attributes, number_at};
use crate::reader::{GidRecord, GidTable};

/// Leaves the counters of virtual functions out of interface messages, which are most of their bytes.
/// Those of the interface itself nothing leaves out: for them mlx5 asks its firmware, two commands
/// (`QUERY_VPORT_COUNTER`, `QUERY_Q_COUNTER`) an interface.
const SKIP_STATISTICS: u32 = 1 << 3;

/// Lengths of the fixed parts of the two route messages, `struct ifinfomsg` and `struct ifaddrmsg`.
const LINK_BODY: usize = 16;
const ADDRESS_BODY: usize = 8;

/// Attributes of a bond (`linux/if_link.h`).
const BOND_MODE: u16 = 1;
const BOND_ACTIVE_SLAVE: u16 = 2;

/// Modes of a bond in which only one member is active: active-backup, balance-tlb, balance-alb.
const MODES_WITH_ACTIVE_MEMBER: [u8; 3] = [1, 5, 6];

/// Kinds of interfaces that the kernel makes upper devices of their `IFLA_LINK`, and that say on every
/// kernel if that is in another namespace. With all others it may be the far end of a pair, or what a
/// tunnel is bound to.
const UPPER_KINDS: [&str; 4] = ["vlan", "macvlan", "ipvlan", "macsec"];

/// Bits of an interface's flags (`linux/if.h`): switched on; and able to carry packets.
const UP: u32 = 1 << 0;
const LOWER_UP: u32 = 1 << 16;

/// A network interface that is shown to be in this namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Netdev {
    /// Its index here.
    pub index: NonZeroU32,
    /// Its name here; `#` and its index, if the name does not show as what it is.
    pub name: String,
}

/// A network interface of this namespace, with its addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its index here.
    pub index: NonZeroU32,
    /// Its name here; `#` and its index, if the name does not show as what it is.
    pub name: String,
    /// Whether it is switched on (`IFF_UP`).
    pub is_up: bool,
    /// Whether it has a carrier (`IFF_LOWER_UP`).
    pub is_lower_up: bool,
    /// Longest packet in bytes.
    pub mtu: u32,
    /// MAC address; `None` where it is not of six bytes, as on IPoIB.
    pub mac: Option<[u8; 6]>,
    /// Addresses with the lengths of their prefixes; of a point-to-point link as in GIDs, for IPv4 the
    /// far end's and for IPv6 the near end's.
    pub addresses: Vec<(IpAddr, u8)>,
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
                let reply = match reply {
                    Ok(reply) => reply,
                    // A port that has gone has no interface.
                    Err(Errno::INVAL | Errno::NODEV) => return Ok(()),
                    // Of any other it is not known.
                    Err(errno) => return Err(Cause::Os(errno)),
                };
                if let (Some(port), Some(netdev)) = (asked.get(place), parse_port(reply)?) {
                    found.insert(port.clone(), netdev);
                }
                Ok(())
            })
            .map_err(|cause| Error::new("host", Request::Netlink, cause))?;
        Ok(found)
    }

    /// Finds the interface of each row of each table, in their order; `None` where there is none, or
    /// none that is shown to be in this namespace.
    ///
    /// The answer for one table does not depend on the others; together they cost fewer calls.
    ///
    /// # Errors
    /// Those of RDMA netlink and route netlink.
    pub fn netdevs(&mut self, tables: &[&GidTable]) -> Result<Vec<Vec<Option<Netdev>>>> {
        self.netdevs_by(tables, None)
    }

    /// The same, by interfaces that were read already.
    pub(crate) fn netdevs_by(
        &mut self,
        tables: &[&GidTable],
        dump: Option<Dump>,
    ) -> Result<Vec<Vec<Option<Netdev>>>> {
        let nothing = || tables.iter().map(|table| vec![None; table.len()]).collect();
        let mut ports: Vec<(&Device, u32)> = Vec::new();
        for table in tables {
            let with_netdev = table.iter().filter(|record| record.may_have_netdev());
            let numbers: BTreeSet<u32> = with_netdev.map(|record| record.entry.port()).collect();
            ports.extend(numbers.into_iter().map(|port| (table.device(), port)));
        }
        if ports.is_empty() {
            return Ok(nothing());
        }
        // Without RDMA netlink there is nobody to say what is ours.
        if !ports.iter().any(|(device, _)| device.index.is_some()) || self.netlink().is_none() {
            return Ok(nothing());
        }
        let port_netdevs = self.port_netdevs(&ports)?;
        if port_netdevs.is_empty() {
            return Ok(nothing());
        }
        let error = |cause| Error::new("host", Request::Interfaces, cause);
        let mut route = None;
        let (addresses, links) = if let Some(dump) = dump {
            (dump.addresses, Some(dump.links))
        } else {
            let socket = Socket::route().map_err(|errno| error(Cause::Os(errno)))?;
            (read_addresses(route.insert(socket)).map_err(error)?, None)
        };
        let addresses = addresses.iter().map(|address| (address.index, address.gid())).collect();
        let mut namespace = Namespace { port_netdevs, addresses, links: None };
        let names = namespace.name(tables);
        if namespace.is_settled(tables, &names) {
            return Ok(names);
        }
        // Some row is of another interface than its port's: now the links between them matter.
        namespace.links = match (links, &mut route) {
            (None, Some(route)) => Some(read_links(route).map_err(error)?),
            (links, _) => links,
        };
        Ok(namespace.name(tables))
    }

    /// The interfaces of this network namespace, by index. `None` if this is another host's tree,
    /// of whose interfaces nothing is known.
    ///
    /// # Errors
    /// Those of route netlink.
    pub fn interfaces(&self) -> Result<Option<Vec<Interface>>> {
        Ok(self.dump()?.map(|dump| dump.interfaces()))
    }

    /// Reads them, for all who want to know of them.
    ///
    /// # Errors
    /// As of [`interfaces`](Self::interfaces).
    pub(crate) fn dump(&self) -> Result<Option<Dump>> {
        if !self.is_here() {
            return Ok(None);
        }
        let error = |cause| Error::new("host", Request::Interfaces, cause);
        let mut route = Socket::route().map_err(|errno| error(Cause::Os(errno)))?;
        let links = read_links(&mut route).map_err(error)?;
        let addresses = read_addresses(&mut route).map_err(error)?;
        Ok(Some(Dump { links, addresses }))
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
                            || links.above(own.index).contains(&wanted.index.get())
                    }
                    // Elsewhere, or none: nothing is named on such a port.
                    None => false,
                })
        };
        Ok(devices.iter().map(may).collect())
    }
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
    /// The interface that it is an upper device of, if that is in this namespace.
    lower: Option<u32>,
    /// The bond, bridge … that it belongs to, which is an upper device of it.
    master: Option<u32>,
    /// What it does with its members, if it is a bond.
    bond: Option<Bond>,
}

impl Link {
    fn netdev(&self) -> Netdev {
        Netdev { index: self.index, name: self.name.clone() }
    }
}

/// How a bond uses its members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Bond {
    mode: Option<u8>,
    /// The index of the active member, if there is one.
    active: Option<u32>,
}

impl Bond {
    /// Whether the kernel makes rows of the bond, and of what is above it, for this member's port: for
    /// all where none is active by the bond's mode, else for the active one. Without one (all are
    /// down) it goes by the last.
    fn serves(self, member: NonZeroU32) -> bool {
        let all = self.mode.is_some_and(|mode| !MODES_WITH_ACTIVE_MEMBER.contains(&mode));
        all || self.active == Some(member.get())
    }
}

/// The interfaces of this namespace with their addresses, as route netlink gave them.
#[derive(Debug)]
pub(crate) struct Dump {
    links: Links,
    addresses: Vec<Address>,
}

impl Dump {
    /// The interfaces by index.
    pub(crate) fn interfaces(&self) -> Vec<Interface> {
        let mut addresses: BTreeMap<u32, Vec<(IpAddr, u8)>> = BTreeMap::new();
        for Address { index, ip, prefix } in &self.addresses {
            addresses.entry(*index).or_default().push((*ip, *prefix));
        }
        let interface = |link: &Link| Interface {
            index: link.index,
            is_up: link.flags & UP != 0,
            is_lower_up: link.flags & LOWER_UP != 0,
            mtu: link.mtu,
            mac: link.mac,
            addresses: addresses.remove(&link.index.get()).unwrap_or_default(),
            name: link.name.clone(),
        };
        self.links.by_index.values().map(interface).collect()
    }
}

/// What this namespace is known to hold.
#[derive(Debug)]
struct Namespace {
    port_netdevs: BTreeMap<(String, u32), Netdev>,
    /// Which interface has which address, as the GID that is made of it.
    addresses: BTreeSet<(u32, Gid)>,
    /// Not read until it is wanted.
    links: Option<Links>,
}

/// The interfaces of this namespace.
#[derive(Debug, Default)]
struct Links {
    by_index: BTreeMap<u32, Link>,
    /// Their indices by name.
    by_name: BTreeMap<String, u32>,
    /// What is directly above each, here.
    uppers: BTreeMap<u32, Vec<u32>>,
}

impl FromIterator<Link> for Links {
    fn from_iter<I: IntoIterator<Item = Link>>(list: I) -> Self {
        let mut links = Self::default();
        for link in list {
            let index = link.index.get();
            if let Some(lower) = link.lower {
                links.uppers.entry(lower).or_default().push(index);
            }
            if let Some(master) = link.master {
                links.uppers.entry(index).or_default().push(master);
            }
            links.by_name.insert(link.name.clone(), index);
            links.by_index.insert(index, link);
        }
        links
    }
}

impl Links {
    fn named(&self, name: &str) -> Option<&Link> {
        self.by_index.get(self.by_name.get(name)?).filter(|link| link.name == name)
    }

    /// The interfaces above these, over any number of steps, all of them here.
    fn all_above(&self, lowers: impl IntoIterator<Item = u32>) -> BTreeSet<u32> {
        let mut found = BTreeSet::new();
        let mut next: Vec<u32> = lowers.into_iter().collect();
        while let Some(lower) = next.pop() {
            for upper in self.uppers.get(&lower).into_iter().flatten() {
                if found.insert(*upper) {
                    next.push(*upper);
                }
            }
        }
        found
    }

    /// The interfaces above this one.
    fn above(&self, lower: NonZeroU32) -> BTreeSet<u32> {
        self.all_above([lower.get()])
    }

    /// Those of them of which the kernel makes rows for this one's port.
    fn served_by(&self, own: NonZeroU32) -> BTreeSet<u32> {
        let mut above = self.above(own);
        let bond = |index: &u32| self.by_index.get(index).and_then(|link| link.bond);
        let is_idle = |index: &u32| bond(index).is_some_and(|bond| !bond.serves(own));
        let idle: Vec<u32> = above.iter().copied().filter(is_idle).collect();
        for index in self.all_above(idle.iter().copied()).into_iter().chain(idle) {
            above.remove(&index);
        }
        above
    }
}

/// What a row says of its interface: rows of a port that say the same cannot all be one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Claim<'r> {
    port: u32,
    gid: Gid,
    gid_type: u32,
    index: Option<NonZeroU32>,
    name: Option<&'r str>,
}

impl<'r> Claim<'r> {
    fn of(record: &'r GidRecord) -> Self {
        let entry = &record.entry;
        Self {
            port: entry.port(),
            gid: entry.gid(),
            gid_type: entry.gid_type().0,
            index: entry.netdev_ifindex(),
            name: record.sysfs_netdev.as_deref(),
        }
    }

    /// The claim of a row that keeps back what it says.
    fn without_netdev(&self) -> Self {
        Self { index: None, name: None, ..self.clone() }
    }
}

impl Namespace {
    fn name(&self, tables: &[&GidTable]) -> Vec<Vec<Option<Netdev>>> {
        tables.iter().map(|table| self.name_table(table)).collect()
    }

    /// Whether the links could not name a further row: none is left, on a port whose interface is here.
    fn is_settled(&self, tables: &[&GidTable], names: &[Vec<Option<Netdev>>]) -> bool {
        tables.iter().zip(names).all(|(table, names)| {
            let device = &table.device().name;
            let is_here = |port: u32| self.port_netdevs.contains_key(&(device.clone(), port));
            table.iter().zip(names).all(|(record, name)| {
                name.is_some() || !record.may_have_netdev() || !is_here(record.entry.port())
            })
        })
    }

    fn name_table(&self, table: &GidTable) -> Vec<Option<Netdev>> {
        let mut ports: BTreeMap<u32, Option<Port>> = BTreeMap::new();
        let first_types = first_types(table);
        let mut claims: BTreeMap<Claim<'_>, u32> = BTreeMap::new();
        let mut kept_back: BTreeSet<Claim<'_>> = BTreeSet::new();
        for record in table {
            let number = record.entry.port();
            ports.entry(number).or_insert_with(|| self.port(table, number, &first_types));
            *claims.entry(Claim::of(record)).or_default() += 1;
            if record.netdev_is_unread {
                kept_back.insert(Claim::of(record));
            }
        }
        let name = |record: &GidRecord| {
            let claim = Claim::of(record);
            let is_only_one =
                claims.get(&claim) == Some(&1) && !kept_back.contains(&claim.without_netdev());
            let port = ports.get(&claim.port)?.as_ref().filter(|_| is_only_one)?;
            self.netdev(port, record)
        };
        table.iter().map(name).collect()
    }

    /// Gathers what is known of a port, if its interface is here.
    fn port(
        &self,
        table: &GidTable,
        number: u32,
        first_types: &BTreeMap<(u32, u32), GidType>,
    ) -> Option<Port> {
        let own = self.port_netdevs.get(&(table.device().name.clone(), number))?.clone();
        let bond = self.link(own.index.get()).and_then(|link| self.link(link.master?));
        let type_in = |index| first_types.get(&(number, index)).copied();
        Some(Port {
            bond: bond.filter(|master| master.bond.is_some()).map(|bond| bond.index),
            uppers: self.links.as_ref().map(|links| links.served_by(own.index)).unwrap_or_default(),
            has_both_types: (type_in(0), type_in(1))
                == (Some(GidType::ROCE_V1), Some(GidType::ROCE_V2)),
            is_full: table.is_full(number),
            own,
        })
    }

    fn link(&self, index: u32) -> Option<&Link> {
        self.links.as_ref()?.by_index.get(&index)
    }

    /// The interface here that a record's index or name means, if the evidence is there.
    fn netdev(&self, port: &Port, record: &GidRecord) -> Option<Netdev> {
        let entry = &record.entry;
        let own = &port.own;
        let netdev = match (entry.netdev_ifindex(), record.sysfs_netdev.as_ref()) {
            (Some(index), _) if index == own.index => own.clone(),
            (None, Some(name)) if *name == own.name => own.clone(),
            (Some(index), _) => self.link(index.get())?.netdev(),
            (None, Some(name)) => self.links.as_ref()?.named(name)?.netdev(),
            (None, None) => return None,
        };
        let index = netdev.index.get();
        let has_row = !port.is_full
            && (netdev.index == own.index || port.uppers.contains(&index))
            && self.addresses.contains(&(index, entry.gid()));
        (has_row || self.is_made_of_mac(port, netdev.index, record)).then_some(netdev)
    }

    /// Whether the kernel has made this GID of the interface's MAC address: it stands in a slot that
    /// is kept for this. The interface is the bond that the port's interface belongs to, else that
    /// interface. VLANs and bridges have the same MAC address, and prove nothing by it.
    fn is_made_of_mac(&self, port: &Port, index: NonZeroU32, record: &GidRecord) -> bool {
        let slot = record.entry.index();
        let is_reserved = slot == 0 || (slot == 1 && port.has_both_types);
        let gid = record.entry.gid();
        let mac = self.link(index.get()).and_then(|link| link.mac);
        is_reserved
            && index == port.bond.unwrap_or(port.own.index)
            && mac.is_some_and(|mac| gid == default_gid(mac) || gid == iwarp_gid(mac))
    }
}

/// The types of the rows of each port in the slots that may be kept for GIDs made of MAC addresses.
fn first_types(table: &GidTable) -> BTreeMap<(u32, u32), GidType> {
    let entries = table.iter().map(|record| &record.entry);
    let first = entries.filter(|entry| entry.index() < 2);
    first.map(|entry| ((entry.port(), entry.index()), entry.gid_type())).collect()
}

/// A port whose own interface is here.
#[derive(Debug)]
struct Port {
    own: Netdev,
    /// The bond that it belongs to.
    bond: Option<NonZeroU32>,
    /// What is above it, here, as far as the kernel makes rows of it for this port.
    uppers: BTreeSet<u32>,
    /// Whether it makes two rows of each address, of RoCE v1 and v2; so two slots are kept.
    has_both_types: bool,
    /// Whether the table may have been without room for a row.
    is_full: bool,
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

/// An interface's name. The kernel lets it have nearly any bytes.
fn shown(name: String, index: NonZeroU32) -> String {
    if is_interface_name(&name) { name } else { format!("#{index}") }
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
    Ok(index.zip(name).map(|(index, name)| Netdev { index, name: shown(name, index) }))
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

impl Address {
    /// The GID that the kernel makes of it.
    fn gid(&self) -> Gid {
        match self.ip {
            IpAddr::V4(v4) => v4.into(),
            IpAddr::V6(v6) => v6.into(),
        }
    }
}

fn read_addresses(socket: &mut Socket) -> Result<Vec<Address>, Cause> {
    let request = Message::new(libc::RTM_GETADDR, &[0; ADDRESS_BODY]);
    Ok(socket.dump(&request, parse_address)?.into_iter().flatten().collect())
}

/// Reads an interface's address: of a point-to-point link, as the kernel's GIDs do, for IPv4 the far end
/// and for IPv6 the near end. A message has that one as `IFA_ADDRESS`, and this one, if there is a far
/// end, as `IFA_LOCAL`.
pub(crate) fn parse_address(payload: &[u8]) -> Result<Option<Address>, Cause> {
    const SHORT: Cause = Cause::Malformed("an address message");
    let prefix = *payload.get(1).ok_or(SHORT)?;
    let index = number_at(payload, 4).ok_or(SHORT)?;
    let (mut v4, mut v6, mut near_v6) = (None, None, None);
    for attribute in attributes(payload.get(ADDRESS_BODY..).ok_or(SHORT)?) {
        let attribute = attribute?;
        let of_v6 = || <[u8; 16]>::try_from(attribute.bytes()).ok().map(Ipv6Addr::from);
        match attribute.kind {
            libc::IFA_ADDRESS => {
                v4 = <[u8; 4]>::try_from(attribute.bytes()).ok().map(Ipv4Addr::from);
                v6 = of_v6();
            }
            libc::IFA_LOCAL => near_v6 = of_v6(),
            _ => {}
        }
    }
    let ip = v4.map(IpAddr::V4).or_else(|| near_v6.or(v6).map(IpAddr::V6));
    Ok(ip.map(|ip| Address { index, ip, prefix }))
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
        master: None,
        bond: None,
    };
    let mut lower = None;
    let mut is_lower_elsewhere = false;
    let mut kind = Kind::default();
    for attribute in attributes(payload.get(LINK_BODY..).ok_or(SHORT)?) {
        let attribute: Attribute<'_> = attribute?;
        match attribute.kind {
            libc::IFLA_IFNAME => link.name = attribute.text(),
            libc::IFLA_MTU => link.mtu = attribute.u32()?,
            libc::IFLA_ADDRESS => link.mac = attribute.bytes().try_into().ok(),
            libc::IFLA_LINK => lower = Some(attribute.u32()?).filter(|lower| *lower != 0),
            libc::IFLA_LINK_NETNSID => is_lower_elsewhere = true,
            libc::IFLA_MASTER => link.master = Some(attribute.u32()?),
            libc::IFLA_LINKINFO => kind = parse_kind(attribute.bytes())?,
            _ => {}
        }
    }
    if UPPER_KINDS.contains(&kind.name.as_str()) && !is_lower_elsewhere {
        link.lower = lower;
    }
    link.bond = kind.bond.filter(|_| kind.name == "bond");
    link.name = shown(link.name, index);
    Ok(Some(link))
}

/// What a virtual interface is.
#[derive(Debug, Default)]
struct Kind {
    /// As `vlan`; empty for others.
    name: String,
    /// Its data, if they are read as a bond's.
    bond: Option<Bond>,
}

/// Reads what a virtual interface is. The kernel gives the kind first, then the data.
fn parse_kind(link_info: &[u8]) -> Result<Kind, Cause> {
    let mut kind = Kind::default();
    for attribute in attributes(link_info) {
        let attribute = attribute?;
        match attribute.kind {
            libc::IFLA_INFO_KIND => {
                kind.name = attribute.text();
                if kind.name == "bond" {
                    kind.bond = Some(Bond::default());
                }
            }
            libc::IFLA_INFO_DATA if kind.name == "bond" => {
                kind.bond = Some(parse_bond(attribute.bytes())?);
            }
            _ => {}
        }
    }
    Ok(kind)
}

fn parse_bond(data: &[u8]) -> Result<Bond, Cause> {
    let mut bond = Bond::default();
    for attribute in attributes(data) {
        let attribute = attribute?;
        match attribute.kind {
            BOND_MODE => bond.mode = attribute.bytes().first().copied(),
            BOND_ACTIVE_SLAVE => bond.active = Some(attribute.u32()?),
            _ => {}
        }
    }
    Ok(bond)
}

/// Reads interface messages, and what is above each of those that read; for fuzzing.
#[cfg(feature = "simulated-kernel")]
pub(crate) fn standing_on_each(messages: &[&[u8]]) -> Vec<(u32, BTreeSet<u32>)> {
    let read = |message: &&[u8]| parse_link(message).ok().flatten();
    let links: Links = messages.iter().filter_map(read).collect();
    links.by_index.values().map(|l| (l.index.get(), links.above(l.index))).collect()
}

#[cfg(test)]
mod tests;
