//! What the rules of [the module above](super) show: whether a row is of an interface here.

use core::cell::LazyCell;
use core::num::NonZeroU32;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use crate::cm::Holder;
use crate::device::{Device, NodeType};
use crate::gid::{Gid, GidRecord, GidType};
use crate::host::{GidTable, PortNetdevs};
use crate::netdev::Netdev;
use crate::netlink::route::{Address, Link, Links, gid_of};

/// What this namespace is known to hold.
#[derive(Debug)]
pub(super) struct Namespace {
    port_netdevs: PortNetdevs,
    /// Which interface has which address, as the GID that is made of it.
    addresses: BTreeSet<(u32, Gid)>,
    /// Which interfaces have a GID's address as their own, and not as that of a far end.
    near: BTreeMap<Gid, BTreeSet<u32>>,
    /// The GIDs of addresses of IPv4 that an interface has as IPv6 (`::ffff:10.0.0.1`).
    mapped: BTreeSet<Gid>,
    /// Not read until it is wanted.
    pub(super) links: Option<Links>,
}

/// What a second reading found, of the ports' own interfaces first.
#[derive(Debug)]
pub(super) struct Again {
    port_netdevs: PortNetdevs,
    links: Links,
    /// As [`Links::untold`] says it.
    untold: BTreeSet<u32>,
}

impl Again {
    pub(super) fn new(port_netdevs: PortNetdevs, links: Links) -> Self {
        Self { port_netdevs, untold: links.untold(), links }
    }

    /// Whether an interface is still on others that are all here, and a port's own is still not here. What is below a VLAN
    /// or macvlan stays so. If the port's own was below it before, it went and came back in between.
    fn shows_it_beside(&self, index: u32, device: &Device, port: u32) -> bool {
        let own = self.port_netdevs.get(&(device.name.clone(), port));
        own.is_some_and(|own| matches!(own, Ok(None)))
            && self.links.by_index.contains_key(&index)
            && !self.untold.contains(&index)
    }
}

/// What was found of a table's rows.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// The interface of each that is proven to be here.
    pub(super) names: Vec<Option<Netdev>>,
    /// The places of those that no interface here has, as the connection manager says.
    elsewhere: BTreeSet<usize>,
}

impl Found {
    /// Whether there are such rows that no interface here has.
    pub(super) fn is_any_elsewhere(&self) -> bool {
        !self.elsewhere.is_empty()
    }

    /// Forgets them, as nothing is known of them.
    pub(super) fn forget_elsewhere(&mut self) {
        self.elsewhere.clear();
    }

    /// Keeps of these only the rows whose interfaces were meant also by the addresses that were read again.
    pub(super) fn keep_meant(&mut self, questions: &[(usize, Question)], again: &Namespace) {
        self.retain(questions, |_, question| again.is_meant(question));
    }

    /// Keeps of these only the rows that are still in the table, and that still nobody has: the kernel removes rows for a
    /// moment and makes them again, as when another member of a bond becomes active.
    pub(super) fn confirm(
        &mut self,
        table: &GidTable,
        again: Option<&GidTable>,
        questions: &[(usize, Question)],
        ask: impl Fn(Question) -> Option<Holder>,
    ) {
        let is_there = |place: usize| {
            table.get(place).is_some_and(|own| {
                again.and_then(|again| again.row(own.entry.port(), own.entry.index())) == Some(own)
            })
        };
        self.retain(questions, |place, question| {
            is_there(place) && ask(question) == Some(Holder::Nobody)
        });
    }

    fn retain(&mut self, questions: &[(usize, Question)], holds: impl Fn(usize, Question) -> bool) {
        let questions: BTreeMap<usize, Question> = questions.iter().copied().collect();
        let holds = |place: &usize| questions.get(place).is_some_and(|own| holds(*place, *own));
        self.elsewhere.retain(holds);
    }
}

/// What is known of a row's interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Naming {
    /// It, if it is proven to be here.
    pub(crate) netdev: Option<Netdev>,
    /// Whether it is proven to be elsewhere, or to have gone.
    pub(crate) is_elsewhere: bool,
    /// Whether the name that the row has is nobody's here, and an interface here may have had it when it was
    /// read: one has the row's address.
    pub(crate) may_be_renamed: bool,
}

/// An interface here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Here {
    /// The one of this index.
    Found(u32),
    /// There is none.
    Nowhere,
    Unknown,
}

/// The interface here that has a row's index or name. An index is its interface's as long as that is here. A
/// name was read before the interfaces were, and its interface may have another by then.
fn interface_here(links: &Links, record: &GidRecord) -> Here {
    match (record.entry.netdev_ifindex(), &record.sysfs_netdev) {
        (Some(index), _) if links.by_index.contains_key(&index.get()) => Here::Found(index.get()),
        (Some(_), _) => Here::Nowhere,
        (None, Some(name)) => {
            links.named(name).map_or(Here::Unknown, |link| Here::Found(link.index.get()))
        }
        (None, None) => Here::Unknown,
    }
}

/// Which port has a row of this GID for this interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Question {
    pub(super) gid: Gid,
    pub(super) interface: NonZeroU32,
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
            let claim = Claim::of(record).without_netdev();
            if record.type_is_unread {
                let types = [GidType::ROCE_V1, GidType::ROCE_V2];
                let of_type = |own: GidType| Claim { gid_type: own.0, ..claim.clone() };
                claims.kept_back.extend(types.map(of_type));
            }
            if record.netdev_is_unread {
                claims.kept_back.insert(claim);
            }
        }
        claims
    }

    /// How many rows may have this claim, if that is known.
    fn count(&self, claim: &Claim<'_>) -> Option<u32> {
        let is_told = !self.kept_back.contains(&claim.without_netdev());
        is_told.then(|| self.counts.get(claim).copied().unwrap_or(0))
    }
}

impl Namespace {
    pub(super) fn new(port_netdevs: PortNetdevs, addresses: &[Address]) -> Self {
        let mut near: BTreeMap<Gid, BTreeSet<u32>> = BTreeMap::new();
        for address in addresses {
            near.entry(gid_of(address.near)).or_default().insert(address.index);
        }
        let is_mapped = |ip: &IpAddr| ip.to_canonical() != *ip;
        let mapped = addresses.iter().map(|it| it.near).filter(is_mapped).map(gid_of).collect();
        let addresses = addresses.iter().map(|it| (it.index, gid_of(it.ip))).collect();
        Self { port_netdevs, addresses, near, mapped, links: None }
    }

    pub(super) fn name(&self, tables: &[&GidTable]) -> Vec<Found> {
        let found = |table: &&GidTable| Found { names: self.name_table(table), ..Found::default() };
        tables.iter().map(found).collect()
    }

    /// What is known of each row, by what was found; no more than that for tables that were settled without
    /// the links, and for devices that netlink did not list, whatever is known of the others. Reads again where that
    /// matters.
    pub(super) fn namings(
        &self,
        tables: &[&GidTable],
        found: Vec<Found>,
        settled: &[bool],
        read_again: impl FnOnce() -> Option<Again>,
        table_again: impl Fn(&GidTable) -> Option<(GidTable, Links)>,
    ) -> Vec<Vec<Naming>> {
        let again = LazyCell::new(read_again);
        // Made once, as there may be many rows, and many interfaces above a port's.
        let untold = LazyCell::new(|| self.links.as_ref().map(Links::untold).unwrap_or_default());
        let made = LazyCell::new(|| self.made_of_macs());
        // Interfaces may have changed their names since the row's was read: another than this one has its address.
        let may_have_had_name = |record: &GidRecord, index: Option<u32>| {
            let gid = record.entry.gid();
            let is_named = record.entry.netdev_ifindex().is_none() && record.sysfs_netdev.is_some();
            is_named
                && [self.near.get(&gid), made.get(&gid)]
                    .into_iter()
                    .flatten()
                    .any(|own| own.len() > 1 || own.first().copied() != index)
        };
        // It may have been above the port's until now: the kernel removes rows later. Or it still is, and the port's
        // went to another namespace after the links were read.
        let may_be_its = |index: u32, record: &GidRecord, device: &Device, is_own_here: bool| {
            let link = self.link(index);
            let mac = link.and_then(|link| link.mac);
            let is_on_another = link.is_some_and(|link| link.lower.is_some());
            let gid = record.entry.gid();
            let has_address = self.addresses.contains(&(index, gid))
                || self.near.get(&gid).is_some_and(|here| here.contains(&index))
                || mac.is_some_and(|mac| is_made_of(gid, mac));
            let is_beside = || {
                let again = again.as_ref();
                again.is_some_and(|it| it.shows_it_beside(index, device, record.entry.port()))
            };
            has_address
                && (self.links.as_ref().is_some_and(|links| links.may_move(index))
                    || is_on_another && !is_own_here && !is_beside())
        };
        let may_be_renamed = |record: &GidRecord| {
            let links = self.links.as_ref();
            links.is_some_and(|links| interface_here(links, record) == Here::Unknown)
                && may_have_had_name(record, None)
        };
        // It still has the name, and nobody here has that, neither before nor after.
        let is_still_nobody_s = |record: &GidRecord, again: Option<&(GidTable, Links)>| {
            again.is_some_and(|(table, links)| {
                table.row(record.entry.port(), record.entry.index()) == Some(record)
                    && interface_here(links, record) == Here::Unknown
            })
        };
        let of_table = |((table, found), is_settled): ((&&GidTable, Found), &bool)| {
            if *is_settled || table.device().index.is_none() {
                let of_name = |netdev| Naming { netdev, ..Naming::default() };
                return found.names.into_iter().map(of_name).collect();
            }
            let mut above: BTreeMap<u32, Option<BTreeSet<u32>>> = BTreeMap::new();
            let mut is_elsewhere = |place: usize, record: &GidRecord| {
                let Some(links) = &self.links else { return false };
                let (device, port) = (table.device(), record.entry.port());
                let own = self.own(device, port).map(|own| own.index);
                match interface_here(links, record) {
                    Here::Unknown => false,
                    // The port's own came after the links were read.
                    Here::Nowhere => own.is_none() || own != record.entry.netdev_ifindex(),
                    Here::Found(index) if may_have_had_name(record, Some(index)) => false,
                    Here::Found(_) if found.elsewhere.contains(&place) => true,
                    Here::Found(index) => {
                        let above = above
                            .entry(port)
                            .or_insert_with(|| self.at_or_above(links, device, port));
                        above.as_ref().is_some_and(|above| !above.contains(&index))
                            && !untold.contains(&index)
                            && !may_be_its(index, record, device, own.is_some())
                    }
                }
            };
            let table_again = LazyCell::new(|| table_again(table));
            let of_row = |(place, record): (usize, &GidRecord)| {
                let netdev = found.names.get(place).cloned().flatten();
                let may_be_renamed = netdev.is_none() && may_be_renamed(record);
                let is_nobody_s = may_be_renamed && is_still_nobody_s(record, table_again.as_ref());
                Naming {
                    is_elsewhere: netdev.is_none() && (is_nobody_s || is_elsewhere(place, record)),
                    may_be_renamed: may_be_renamed && !is_nobody_s,
                    netdev,
                }
            };
            table.iter().enumerate().map(of_row).collect()
        };
        tables.iter().zip(found).zip(settled).map(of_table).collect()
    }

    /// The GIDs that the kernel derives from the MAC addresses here, and whose these are.
    fn made_of_macs(&self) -> BTreeMap<Gid, BTreeSet<u32>> {
        let mut made: BTreeMap<Gid, BTreeSet<u32>> = BTreeMap::new();
        for link in self.links.iter().flat_map(|links| links.by_index.values()) {
            for gid in link.mac.into_iter().flat_map(|mac| [Gid::of_roce(mac), Gid::of_iwarp(mac)])
            {
                made.entry(gid).or_default().insert(link.index.get());
            }
        }
        made
    }

    /// The port's own interface, if it is known to be here.
    fn own(&self, device: &Device, port: u32) -> Option<&Netdev> {
        self.port_netdevs.get(&(device.name.clone(), port))?.as_ref().ok()?.as_ref()
    }

    /// The port's own interface and all above it; none if the port's own is not here; `None` if that is not known, or if
    /// the interface came after the links were read.
    fn at_or_above(&self, links: &Links, device: &Device, port: u32) -> Option<BTreeSet<u32>> {
        let Some(own) = self.own(device, port) else {
            let is_none = self.port_netdevs.get(&(device.name.clone(), port));
            return is_none.is_some_and(Result::is_ok).then(BTreeSet::new);
        };
        if !links.by_index.contains_key(&own.index.get()) {
            return None;
        }
        let mut above = links.above(own.index);
        above.insert(own.index.get());
        Some(above)
    }

    /// Whether the links could not name a further row of each table: none is left, on a port whose interface is
    /// here, or with an address that is here.
    pub(super) fn settled(&self, tables: &[&GidTable]) -> Vec<bool> {
        let is_settled = |table: &&GidTable| {
            let (device, names) = (table.device(), self.name_table(table));
            let is_here = |record: &GidRecord| {
                self.own(device, record.entry.port()).is_some() || self.has_near_address(record)
            };
            table.iter().zip(&names).all(|(record, name)| {
                name.is_some() || !record.may_have_netdev() || !is_here(record)
            })
        };
        tables.iter().map(is_settled).collect()
    }

    /// Whether an interface with the row's index has its address; any interface if the row has no index.
    fn has_near_address(&self, record: &GidRecord) -> bool {
        let index = record.entry.netdev_ifindex();
        self.near
            .get(&record.entry.gid())
            .is_some_and(|here| index.is_none_or(|index| here.contains(&index.get())))
    }

    /// What there is to ask of the connection manager, with the places of the rows of which its answer says something.
    pub(super) fn questions(
        &self,
        table: &GidTable,
        names: &[Option<Netdev>],
    ) -> Vec<(usize, Question)> {
        if table.device().index.is_none() {
            return Vec::new();
        }
        let mut questions = Vec::new();
        for (place, (record, name)) in table.iter().zip(names).enumerate() {
            if name.is_none() && Claim::of(record).of_other_type().is_some() {
                questions.extend(self.question(record).map(|question| (place, question)));
            }
        }
        questions
    }

    /// The question about a row's interface, if the connection manager can distinguish it from all others here.
    fn question(&self, record: &GidRecord) -> Option<Question> {
        let gid = record.entry.gid();
        self.near.get(&gid)?;
        let link = match (record.entry.netdev_ifindex(), &record.sysfs_netdev) {
            (Some(index), _) => self.link(index.get())?,
            (None, Some(name)) => self.links.as_ref()?.named(name)?,
            (None, None) => return None,
        };
        let question = Question { gid, interface: link.index };
        (link.is_ethernet && self.is_meant(question)).then_some(question)
    }

    /// Whether the connection manager finds this interface by the address, and no other.
    fn is_meant(&self, Question { gid, interface }: Question) -> bool {
        // It looks for an address of IPv4 among those that are written so.
        let is_only = |here: &BTreeSet<u32>| here.len() == 1 && !self.mapped.contains(&gid);
        self.near.get(&gid).is_some_and(|here| {
            let is_bound = gid.ipv6().is_unicast_link_local();
            here.contains(&interface.get()) && (is_bound || is_only(here))
        })
    }

    /// Finds what answers show of a table's rows: which are of interfaces here, and which are not.
    pub(super) fn take_answers(
        &self,
        table: &GidTable,
        questions: &[(usize, Question)],
        answers: &BTreeMap<Question, Holder>,
        found: &mut Found,
    ) {
        let claims = LazyCell::new(|| Claims::of(table));
        for (place, question) in questions {
            let (Some(record), Some(name)) = (table.get(*place), found.names.get_mut(*place))
            else {
                continue;
            };
            let Some(device) = table.device().index else { continue };
            match answers.get(question) {
                // A full table may have had room for a row of the other type only.
                Some(Holder::Nobody) if !table.is_full(record.entry.port()) => {
                    found.elsewhere.insert(*place);
                }
                Some(port)
                    if *port == Holder::Port(device, record.entry.port())
                        && is_shown_by_any(&claims, table, record) =>
                {
                    *name = self.link(question.interface.get()).map(Link::netdev);
                }
                _ => {}
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
        let own = self.own(table.device(), number)?.clone();
        let links = self.links.as_ref();
        let bond = self.link(own.index.get()).and_then(|link| links?.master_of(link));
        let type_in = |index| first_types.get(&(number, index)).copied();
        Some(PortHere {
            bond: bond.filter(|master| master.bond.is_some()).map(|bond| bond.index),
            uppers: links.map(|links| links.served_by(own.index)).unwrap_or_default(),
            without: links.map(|links| links.may_lack_rows(own.index)).unwrap_or_default(),
            has_both_types: (type_in(0), type_in(1))
                == (Some(GidType::ROCE_V1), Some(GidType::ROCE_V2)),
            is_full: table.is_full(number),
            is_iwarp: table.device().node_type == NodeType::RNIC,
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
        // A row of iWARP is always of the port's own, whatever its MAC address is.
        if port.is_iwarp {
            return (netdev.index == own.index).then_some(netdev);
        }
        let index = netdev.index.get();
        let has_row = !port.is_full
            && (netdev.index == own.index || port.uppers.contains(&index))
            && !port.without.contains(&index)
            && self.addresses.contains(&(index, entry.gid()));
        (has_row || self.is_made_of_mac(port, netdev.index, record)).then_some(netdev)
    }

    /// Whether the kernel has made this GID of the interface's MAC address: it is in a slot that
    /// is kept for this. The interface is the bond that the port's interface belongs to, else that
    /// interface. VLANs and bridges have the same MAC address, and prove nothing by it.
    fn is_made_of_mac(&self, port: &PortHere, index: NonZeroU32, record: &GidRecord) -> bool {
        let slot = record.entry.index();
        let is_reserved = slot == 0 || (slot == 1 && port.has_both_types);
        let gid = record.entry.gid();
        let mac = self.link(index.get()).and_then(|link| link.mac);
        is_reserved
            && index == port.bond.unwrap_or(port.own.index)
            && mac.is_some_and(|mac| is_made_of(gid, mac))
    }
}

/// Whether the kernel derives a GID from a MAC address.
fn is_made_of(gid: Gid, mac: [u8; 6]) -> bool {
    gid == Gid::of_roce(mac) || gid == Gid::of_iwarp(mac)
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
    is_iwarp: bool,
    /// The bond that it belongs to.
    bond: Option<NonZeroU32>,
    /// What is above it, here, as far as the kernel makes rows of it for this port.
    uppers: BTreeSet<u32>,
    /// Those of them that may have none nevertheless.
    without: BTreeSet<u32>,
    /// Whether it makes two rows of each address, of RoCE v1 and v2; so two slots are kept.
    has_both_types: bool,
    /// Whether the table may have been without room for a row.
    is_full: bool,
}

#[cfg(test)]
mod tests;
