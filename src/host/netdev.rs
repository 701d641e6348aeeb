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
//! # What the connection manager knows
//!
//! Of a row that this leaves without a name, the kernel's connection manager is asked (`/dev/infiniband/rdma_cm`,
//! Linux 5.9): it finds the port that has a row of an address for an interface here, and compares
//! the interface itself, not its index. So it also shows the second interface of a pod (macvlan, ipvlan, VLAN),
//! whose port's own interface is in another namespace. It is asked only if an Ethernet interface here has the
//! row's index (or name) and the GID's address as its own, no other interface here has that address or
//! it is IPv6 link-local, and no other row of the port says the same. So on most hosts it is never asked.
//!
//! It does not say of which type the row is that it found. If there is a row of each type, both are named,
//! as the kernel makes both at once and takes both away at once; not so if the table is full.
//!
//! Otherwise there is no name, and the index alone tells. Only the rows of the same port count, and
//! [`GidTable`] always has them all: the answer is the same whatever else is asked for.
//!
//! # What stays unnamed
//!
//! Two rows with one address, type and index, of which one is of another namespace; and rows of which
//! the address has gone from the interface since. Where RDMA netlink does not answer, all rows.
//!
//! Of other interfaces of ours those that the rules above do not show, if the connection manager cannot be
//! asked (a container without its node, the module `rdma_ucm` not loaded), or does not tell:
//!
//! - on a port whose own interface is in another namespace, and what is on top of it;
//! - of kinds other than those above, and everything on top of them. What a tunnel is bound to (gre,
//!   ipip, sit, vti, vxlan, geneve …) is not below it, and the kernel makes no rows of it. A macvtap or
//!   ipvtap interface does not always say that what is below it is in another namespace;
//! - all but the first slots of a table that is full.
//!
//! It does not tell of an address that several interfaces here have (except IPv6 link-local), of the
//! far end of a point-to-point link, of interfaces that are not Ethernet, and of the further ports that
//! have a row of the same address for the same interface: it names the first.
//!
//! # What is left
//!
//! The kernel makes a row a moment after the address is set, it may fail to, and it takes
//! the row away with the first of two equal addresses (`10.0.0.1/16` and `10.0.0.1/24`). If just then
//! another namespace has an interface on the same port with the same index and the same address, that
//! row is taken for ours. The connection manager could tell, for two more system calls a host and three an
//! address; it is not asked of what has a name by the rules. Where it is asked, one thing of this is left: that
//! the kernel made the row of one type and failed to make the other, and the other way round for such
//! an interface elsewhere; or that rows were made and taken away between two questions of ours.

use core::num::NonZeroU32;
use std::collections::{BTreeMap, BTreeSet};

use rustix::io::Errno;
use uverbs_uapi::netlink as abi;

use super::{GidRecord, GidTable, Host};
use crate::device::Device;
use crate::error::{Cause, Error, Request, Result};
use crate::gid::{Gid, GidType};
use crate::netdev::{Interface, Netdev};
use crate::netlink::rdma::{message_type, parse_port};
use crate::netlink::route::{Address, Dump, Link, Links, gid_of, read_addresses, read_links};
use crate::netlink::{Message, Socket};

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
                    Message::new(message_type(abi::op::PORT_GET), &[])
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
                    Err(errno) => return Err(Cause::of(errno)),
                };
                if let (Some(port), Some(netdev)) = (asked.get(place), parse_port(reply)?) {
                    found.insert(port.clone(), netdev);
                }
                Ok(())
            })
            .map_err(|cause| Error::new("host", Request::Netlink, cause))?;
        Ok(found)
    }

    /// Finds the interface of each row of each table: one answer a table, in their order.
    ///
    /// The answer for one table does not depend on the others; together they cost fewer calls.
    ///
    /// ```no_run
    /// use uverbs::Host;
    /// use uverbs::host::{Preference, Reader};
    ///
    /// let mut host = Host::new();
    /// let device = host.device("rxe0")?;
    /// let table = Reader::new(&device, host.sysfs(), Preference::Auto)?.gid_table()?;
    /// for named in host.netdevs(&[&table])? {
    ///     for (record, netdev) in named.iter() {
    ///         let name = netdev.map_or("-", |netdev| &netdev.name);
    ///         println!("{} {} {name}", record.entry.index(), record.entry.gid());
    ///     }
    /// }
    /// # Ok::<(), uverbs::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of RDMA netlink and route netlink.
    pub fn netdevs<'t>(&mut self, tables: &[&'t GidTable]) -> Result<Vec<NamedTable<'t>>> {
        let netdevs = self.netdevs_by(tables, None)?;
        let named = |(table, netdevs): (&&'t GidTable, _)| NamedTable { table, netdevs };
        Ok(tables.iter().zip(netdevs).map(named).collect())
    }

    /// The interfaces of the rows of each table, in their order, by what was read of interfaces already.
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
        let error = |cause| Error::new("host", Request::Interfaces, cause);
        let mut route = None;
        let (addresses, links) = if let Some(dump) = dump {
            (dump.addresses, Some(dump.links))
        } else {
            let socket = Socket::route().map_err(|errno| error(Cause::of(errno)))?;
            (read_addresses(route.insert(socket)).map_err(error)?, None)
        };
        let mut namespace = Namespace::new(port_netdevs, &addresses);
        let names = namespace.name(tables);
        if namespace.is_settled(tables, &names) {
            return Ok(names);
        }
        // Some row is of another interface than its port's: now the links between them matter.
        namespace.links = match (links, &mut route) {
            (None, Some(route)) => Some(read_links(route).map_err(error)?),
            (links, _) => links,
        };
        let mut names = namespace.name(tables);
        self.ask_connection_manager(&namespace, tables, &mut names);
        Ok(names)
    }

    /// Names what is left, as far as the connection manager knows it.
    fn ask_connection_manager(
        &self,
        namespace: &Namespace,
        tables: &[&GidTable],
        names: &mut [Vec<Option<Netdev>>],
    ) {
        let questions: Vec<_> = tables
            .iter()
            .zip(&*names)
            .map(|(table, names)| namespace.questions(table, names))
            .collect();
        let wanted: BTreeSet<Question> =
            questions.iter().flatten().map(|(_, question)| *question).collect();
        if wanted.is_empty() {
            return;
        }
        let Some(manager) = self.connection_manager() else { return };
        let answers: BTreeMap<Question, (u32, u32)> = wanted
            .into_iter()
            .filter_map(|asked| Some((asked, manager.port_of(asked.gid, asked.interface)?)))
            .collect();
        for ((table, questions), names) in tables.iter().zip(&questions).zip(names) {
            namespace.name_answered(table, questions, &answers, names);
        }
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
        let mut route = Socket::route().map_err(|errno| error(Cause::of(errno)))?;
        let links = read_links(&mut route).map_err(error)?;
        let addresses = read_addresses(&mut route).map_err(error)?;
        Ok(Some(Dump { links, addresses }))
    }

    /// Whether each device may have a GID of the interface that is called `name` here, as far as
    /// can be known without opening it: in their order.
    ///
    /// No, if none of its ports' interfaces is this one or below it, and all is known of what is
    /// below it; or if there is no such interface here. Where that cannot be known, yes.
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
        let mut route = Socket::route().map_err(|errno| error(Cause::of(errno)))?;
        let links = read_links(&mut route).map_err(error)?;
        let Some(wanted) = links.named(name) else { return Ok(vec![false; devices.len()]) };
        // The kernel may have put it above an interface that is not here, or in a way not known here.
        let may_be_above_others = wanted.is_ethernet && !links.are_lowers_told(wanted);
        let may = |device: &&Device| {
            // The kernel names the protocol of the first port only.
            let has_rows = device.ports().count() > 1
                || device.protocol.as_deref().is_none_or(|protocol| protocol == "roce");
            device.index.is_none()
                || (may_be_above_others && has_rows)
                || device.ports().any(|port| match port_netdevs.get(&(device.name.clone(), port)) {
                    Some(own) => {
                        own.index == wanted.index
                            || links.above(own.index).contains(&wanted.index.get())
                    }
                    // Elsewhere, or none.
                    None => false,
                })
        };
        Ok(devices.iter().map(may).collect())
    }
}

/// A table of GIDs, with the network interface of each row. [`Host::netdevs`] makes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedTable<'t> {
    table: &'t GidTable,
    /// As many as the table has rows.
    netdevs: Vec<Option<Netdev>>,
}

impl<'t> NamedTable<'t> {
    /// The table.
    #[must_use]
    pub fn table(&self) -> &'t GidTable {
        self.table
    }

    /// Each row with its interface: `None` if it has none, or none that is shown to be in this network
    /// namespace.
    pub fn iter(&self) -> impl Iterator<Item = (&'t GidRecord, Option<&Netdev>)> {
        self.table.iter().zip(self.netdevs.iter().map(Option::as_ref))
    }

    /// The interface of the row in a port's slot.
    #[must_use]
    pub fn netdev(&self, port: u32, index: u32) -> Option<&Netdev> {
        self.netdevs.get(self.table.place(port, index)?)?.as_ref()
    }

    /// The interfaces, in the order of the table's rows.
    #[must_use]
    pub fn into_netdevs(self) -> Vec<Option<Netdev>> {
        self.netdevs
    }
}

/// What this namespace is known to hold.
#[derive(Debug)]
struct Namespace {
    port_netdevs: BTreeMap<(String, u32), Netdev>,
    /// Which interface has which address, as the GID that is made of it.
    addresses: BTreeSet<(u32, Gid)>,
    /// Which interfaces have a GID's address as their own, and not as that of a far end.
    near: BTreeMap<Gid, BTreeSet<u32>>,
    /// Not read until it is wanted.
    links: Option<Links>,
}

/// Which port has a row of this GID for this interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Question {
    gid: Gid,
    interface: NonZeroU32,
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

    /// The claim of the row that the kernel makes beside a row of RoCE, on a port that has both types.
    fn of_other_type(&self) -> Option<Self> {
        let gid_type = match GidType(self.gid_type) {
            GidType::ROCE_V1 => GidType::ROCE_V2.0,
            GidType::ROCE_V2 => GidType::ROCE_V1.0,
            _ => return None,
        };
        Some(Self { gid_type, ..self.clone() })
    }
}

/// The claims of a table's rows.
#[derive(Debug, Default)]
struct Claims<'r> {
    /// How many rows have each.
    counts: BTreeMap<Claim<'r>, u32>,
    /// Those of rows that keep back what they say.
    kept_back: BTreeSet<Claim<'r>>,
}

impl<'r> Claims<'r> {
    fn of(table: &'r GidTable) -> Self {
        let mut claims = Self::default();
        for record in table {
            *claims.counts.entry(Claim::of(record)).or_default() += 1;
            if record.netdev_is_unread {
                claims.kept_back.insert(Claim::of(record));
            }
        }
        claims
    }

    /// How many rows may have this claim, if it can be told.
    fn count(&self, claim: &Claim<'_>) -> Option<u32> {
        let is_told = !self.kept_back.contains(&claim.without_netdev());
        is_told.then(|| self.counts.get(claim).copied().unwrap_or(0))
    }
}

impl Namespace {
    fn new(port_netdevs: BTreeMap<(String, u32), Netdev>, addresses: &[Address]) -> Self {
        let mut near: BTreeMap<Gid, BTreeSet<u32>> = BTreeMap::new();
        for address in addresses {
            near.entry(gid_of(address.near)).or_default().insert(address.index);
        }
        let addresses = addresses.iter().map(|it| (it.index, gid_of(it.ip))).collect();
        Self { port_netdevs, addresses, near, links: None }
    }

    fn name(&self, tables: &[&GidTable]) -> Vec<Vec<Option<Netdev>>> {
        tables.iter().map(|table| self.name_table(table)).collect()
    }

    /// Whether the links could not name a further row: none is left, on a port whose interface is
    /// here, or with an address that is here.
    fn is_settled(&self, tables: &[&GidTable], names: &[Vec<Option<Netdev>>]) -> bool {
        tables.iter().zip(names).all(|(table, names)| {
            let device = &table.device().name;
            let is_here = |record: &GidRecord| {
                self.port_netdevs.contains_key(&(device.clone(), record.entry.port()))
                    || self.has_near_address(record)
            };
            table.iter().zip(names).all(|(record, name)| {
                name.is_some() || !record.may_have_netdev() || !is_here(record)
            })
        })
    }

    /// Whether an interface with the row's index, or if it tells none, any, has its address.
    fn has_near_address(&self, record: &GidRecord) -> bool {
        let index = record.entry.netdev_ifindex();
        self.near
            .get(&record.entry.gid())
            .is_some_and(|here| index.is_none_or(|index| here.contains(&index.get())))
    }

    /// What there is to ask of the connection manager, with the places of the rows that its answer names.
    fn questions(&self, table: &GidTable, names: &[Option<Netdev>]) -> Vec<(usize, Question)> {
        if table.device().index.is_none() {
            return Vec::new();
        }
        let claims = Claims::of(table);
        let mut questions = Vec::new();
        for (place, (record, name)) in table.iter().zip(names).enumerate() {
            if name.is_none() && is_shown_by_any(&claims, table, record) {
                questions.extend(self.question(record).map(|question| (place, question)));
            }
        }
        questions
    }

    /// Asks of a row's interface, if the connection manager can tell it from all others here.
    fn question(&self, record: &GidRecord) -> Option<Question> {
        let gid = record.entry.gid();
        let here = self.near.get(&gid)?;
        let link = match (record.entry.netdev_ifindex(), &record.sysfs_netdev) {
            (Some(index), _) => self.link(index.get())?,
            (None, Some(name)) => self.links.as_ref()?.named(name)?,
            (None, None) => return None,
        };
        let is_meant = here.len() == 1 || gid.ipv6().is_unicast_link_local();
        let question = Question { gid, interface: link.index };
        (link.is_ethernet && is_meant && here.contains(&link.index.get())).then_some(question)
    }

    /// Names the rows of a table that answers show to be of interfaces here.
    fn name_answered(
        &self,
        table: &GidTable,
        questions: &[(usize, Question)],
        answers: &BTreeMap<Question, (u32, u32)>,
        names: &mut [Option<Netdev>],
    ) {
        for (place, question) in questions {
            let (Some(record), Some(name)) = (table.get(*place), names.get_mut(*place)) else {
                continue;
            };
            let port = table.device().index.map(|index| (index, record.entry.port()));
            if port.is_some_and(|port| answers.get(question) == Some(&port)) {
                *name = self.link(question.interface.get()).map(Link::netdev);
            }
        }
    }

    fn name_table(&self, table: &GidTable) -> Vec<Option<Netdev>> {
        let mut ports: BTreeMap<u32, Option<PortHere>> = BTreeMap::new();
        let first_types = first_types(table);
        let claims = Claims::of(table);
        for record in table {
            let number = record.entry.port();
            ports.entry(number).or_insert_with(|| self.port(table, number, &first_types));
        }
        let name = |record: &GidRecord| {
            let claim = Claim::of(record);
            let is_only_one = claims.count(&claim) == Some(1);
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
    ) -> Option<PortHere> {
        let own = self.port_netdevs.get(&(table.device().name.clone(), number))?.clone();
        let bond = self.link(own.index.get()).and_then(|link| self.link(link.master?));
        let type_in = |index| first_types.get(&(number, index)).copied();
        Some(PortHere {
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
    fn netdev(&self, port: &PortHere, record: &GidRecord) -> Option<Netdev> {
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
    fn is_made_of_mac(&self, port: &PortHere, index: NonZeroU32, record: &GidRecord) -> bool {
        let slot = record.entry.index();
        let is_reserved = slot == 0 || (slot == 1 && port.has_both_types);
        let gid = record.entry.gid();
        let mac = self.link(index.get()).and_then(|link| link.mac);
        is_reserved
            && index == port.bond.unwrap_or(port.own.index)
            && mac.is_some_and(|mac| gid == Gid::of_roce(mac) || gid == Gid::of_iwarp(mac))
    }
}

/// Whether a row is of an interface, if that has a row on this port with its GID and index, of RoCE
/// v1 or v2. The kernel makes both at once; where it had room for one only, it is not known of which.
fn is_shown_by_any(claims: &Claims<'_>, table: &GidTable, record: &GidRecord) -> bool {
    let claim = Claim::of(record);
    let Some(other) = claim.of_other_type() else { return false };
    claims.count(&claim) == Some(1)
        && match claims.count(&other) {
            Some(0) => true,
            Some(1) => !table.is_full(claim.port),
            _ => false,
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
struct PortHere {
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

#[cfg(test)]
mod tests;
