//! Ports and rows of an [`Inventory`], each with what this network namespace knows about its interface.

mod gids;
mod home;

use core::num::NonZeroU32;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use self::gids::{
    counts, is_by_mac, is_mapped, is_own_reached, is_resolved, mac_in, mac_with_id, made_of, weaker,
};
use self::home::hearing;
pub(crate) use self::home::{Kind, home};
use super::address::address_of;
use super::port::{Home, Port, Row, is_roce};
use super::room::has_found;
use crate::device::NodeType;
use crate::driver::DriverId;
use crate::gid::{Gid, GidEntry};
use crate::inventory::{DeviceRecord, GidRow, Inventory, PortRecord, SettingsReading};
use crate::netdev::{Interface, Unfit, is_local_v6};

/// The ports of a host whose attributes and GID tables could be read.
#[must_use]
pub fn ports(inventory: &Inventory) -> Vec<Port<'_>> {
    let here = Surroundings::of(inventory);
    let devices = inventory.devices.iter();
    devices.flat_map(|record| record.ports.iter().filter_map(|p| port(&here, record, p))).collect()
}

/// The interfaces that ports and rows are compared with. It is made once for a host, because each row
/// looks up its address.
#[derive(Clone, Debug)]
pub struct Surroundings<'i> {
    pub(crate) inventory: &'i Inventory,
    /// Whether a program with libibverbs finds any device.
    has_found: bool,
    /// Each interface's index with each of its addresses, and the length of its prefix.
    owned: BTreeMap<(u32, IpAddr), u8>,
    /// Of these, those that no program can use.
    unfit: BTreeMap<(u32, IpAddr), Unfit>,
    /// All their addresses, each with the interfaces that have it.
    addresses: BTreeMap<IpAddr, Owners<'i>>,
    /// The same of their MAC addresses, from which the kernel derives GIDs.
    macs: BTreeMap<[u8; 6], Owners<'i>>,
    /// The same of those GIDs.
    made: BTreeMap<Gid, Owners<'i>>,
    by_name: BTreeMap<&'i str, &'i Interface>,
    /// What the addresses of each interface have in common.
    common: BTreeMap<u32, Common>,
    /// The values of its settings, as the newest releases see them.
    settings: BTreeMap<&'i str, &'i str>,
}

/// What the addresses of an interface have in common.
#[derive(Clone, Copy, Debug, Default)]
struct Common {
    /// The longest prefix of one of IPv4, and of one of IPv6 that is not link-local.
    longest: [Option<u8>; 2],
    /// Whether the kernel may reach a link-local address that the interface does not have: over a router, as none of its
    /// own is link-local, or by its own MAC address.
    may_lead_elsewhere: bool,
    /// Whether iWARP can connect one of them.
    has_connectable: bool,
}

/// Interfaces that have one address, as far as it matters. There may be very many.
#[derive(Clone, Copy, Debug)]
struct Owners<'i> {
    first: &'i Interface,
    is_only: bool,
    /// Whether one of them is up, with a carrier.
    is_up: bool,
    /// Why no program can use the address of any of them, if there is a reason.
    unfit: Option<Unfit>,
}

impl<'i> Owners<'i> {
    fn of(own: &'i Interface, unfit: Option<Unfit>) -> Self {
        Self { first: own, is_only: true, is_up: is_up(own), unfit }
    }

    /// These and those.
    fn with(self, other: Self) -> Self {
        let is_same = self.first.index == other.first.index;
        Self {
            first: self.first,
            is_only: self.is_only && other.is_only && is_same,
            is_up: self.is_up || other.is_up,
            unfit: self.unfit.zip(other.unfit).map(|(own, other)| weaker(own, other)),
        }
    }
}

/// Adds interfaces to those of a key.
fn add<'i, K: Ord>(all: &mut BTreeMap<K, Owners<'i>>, key: K, own: Owners<'i>) {
    all.entry(key).and_modify(|known| *known = known.with(own)).or_insert(own);
}

impl<'i> Surroundings<'i> {
    /// The interfaces of a host.
    #[must_use]
    pub fn of(inventory: &'i Inventory) -> Self {
        let mut here = Self {
            inventory,
            has_found: has_found(inventory),
            owned: BTreeMap::new(),
            unfit: BTreeMap::new(),
            addresses: BTreeMap::new(),
            macs: BTreeMap::new(),
            made: BTreeMap::new(),
            by_name: BTreeMap::new(),
            common: BTreeMap::new(),
            settings: BTreeMap::new(),
        };
        for own in &inventory.settings {
            if own.readings.contains(&SettingsReading::NEWEST) {
                here.settings.entry(&own.name).or_insert(&own.value);
            }
        }
        for interface in inventory.interfaces.iter().flatten() {
            here.by_name.insert(&interface.name, interface);
            here.add_unfit(interface);
            here.add_mac(interface);
            here.add_addresses(interface);
        }
        here
    }

    fn add_unfit(&mut self, interface: &Interface) {
        let index = interface.index.get();
        // IPv4 written as IPv6 is one GID with IPv4, and is of use only with that.
        let unfit: BTreeMap<IpAddr, Unfit> = interface.unfit.iter().copied().collect();
        let is_odd = |own: &IpAddr| unfit.contains_key(own) || is_mapped(own);
        let all = interface.addresses.iter().map(|(own, _)| own);
        let odd: Vec<&IpAddr> = all.clone().filter(|own| is_odd(own)).collect();
        let fit = all.filter(|own| !odd.is_empty() && !is_odd(own));
        let fit: BTreeSet<&IpAddr> = fit.collect();
        let odd = odd.into_iter().map(|own| (own.to_canonical(), unfit.get(own).copied()));
        for (own, why) in odd.filter(|(own, _)| !fit.contains(own)) {
            self.unfit.entry((index, own)).or_insert(why.unwrap_or(Unfit::Mapped));
        }
    }

    fn add_mac(&mut self, interface: &'i Interface) {
        let Some(mac) = interface.mac else { return };
        add(&mut self.macs, mac, Owners::of(interface, None));
        for gid in made_of(mac) {
            let unfit = self.unfit(interface, gid);
            add(&mut self.made, gid, Owners::of(interface, unfit));
        }
    }

    /// Adds an interface's addresses, after those that no program can use.
    fn add_addresses(&mut self, interface: &'i Interface) {
        let index = interface.index.get();
        let mut common = Common::default();
        let (mut has_local, mut is_mute) = (false, false);
        for (address, bits) in &interface.addresses {
            let (written, address) = (address, address.to_canonical());
            let bits = if is_mapped(written) { bits.checked_sub(96).unwrap_or(32) } else { *bits };
            self.owned.entry((index, address)).or_insert(bits);
            let is_local = is_local_v6(address);
            if !is_local {
                let [v4, v6] = &mut common.longest;
                let longest = if address.is_ipv4() { v4 } else { v6 };
                *longest = (*longest).max(Some(bits));
            }
            let unfit = self.unfit.get(&(index, address)).copied();
            // The route to one that is an address of the link has this length.
            let has_route = is_local && bits <= 64;
            has_local |= has_route && matches!(unfit, None | Some(Unfit::Bypassed));
            let is_bound = !matches!(unfit, Some(Unfit::Duplicate | Unfit::Enslaved));
            common.has_connectable |= !is_local && is_bound;
            is_mute |= unfit == Some(Unfit::NoNeighbours);
            add(&mut self.addresses, address, Owners::of(interface, unfit));
        }
        let has_global = common.longest[1].is_some();
        common.may_lead_elsewhere = is_mute || has_global && !has_local;
        self.common.insert(index, common);
    }

    /// What the addresses of an interface have in common.
    fn common(&self, interface: NonZeroU32) -> Common {
        self.common.get(&interface.get()).copied().unwrap_or_default()
    }

    /// Why a GID's address cannot be used on an interface that has it.
    pub(crate) fn unfit(&self, interface: &Interface, gid: Gid) -> Option<Unfit> {
        self.unfit.get(&(interface.index.get(), address_of(gid))).copied()
    }

    /// The interface of a row, as far as is known.
    pub(crate) fn interface_of(&self, row: &GidRow) -> Option<&'i Interface> {
        let known = row.netdev.as_ref().and_then(|own| self.inventory.interface(own.index.get()));
        known.or_else(|| self.candidate(row))
    }

    /// The interface of a name.
    pub(crate) fn named(&self, name: &str) -> Option<&'i Interface> {
        self.by_name.get(name).copied()
    }

    /// The value of a setting, as the newest releases see it.
    pub(crate) fn setting(&self, name: &str) -> Option<&'i str> {
        self.settings.get(name).copied()
    }

    /// The longest prefix of an interface's addresses: of those of IPv4, and of those of IPv6 that are not link-local.
    pub(crate) fn longest_prefixes(&self, interface: &Interface) -> [Option<u8>; 2] {
        self.common(interface.index).longest
    }

    /// The length of the prefix of a GID's address on an interface, if that has it.
    pub(crate) fn prefix(&self, interface: &Interface, gid: Gid) -> Option<u8> {
        self.owned.get(&(interface.index.get(), address_of(gid))).copied()
    }

    /// The interface of this namespace that a row without a name may belong to: it has the row's index (or
    /// name) and the address, or the MAC address that the GID is made from.
    #[must_use]
    pub fn candidate(&self, row: &GidRow) -> Option<&'i Interface> {
        let entry = &row.record.entry;
        let meant = match (entry.netdev_ifindex(), &row.record.sysfs_netdev) {
            (Some(index), _) => self.inventory.interface(index.get()),
            (None, Some(name)) => self.named(name),
            (None, None) => None,
        };
        let has_address = |own: &&Interface| self.has_address(own, entry.gid());
        meant.filter(|own| !row.netdev_is_elsewhere && has_address(own))
    }

    /// Whether an interface of this namespace may be a row's, although nothing proves it. It is the row's
    /// [`candidate`](Self::candidate), or it has the address of a row that has no index: the interface may
    /// have been renamed after the row was read.
    #[must_use]
    pub fn may_be_of(&self, row: &GidRow, interface: &Interface) -> bool {
        match self.candidate(row) {
            Some(own) => own.index == interface.index,
            None => {
                row.record.entry.netdev_ifindex().is_none()
                    && !row.netdev_is_elsewhere
                    && self.has_address(interface, row.record.entry.gid())
            }
        }
    }

    /// The interfaces that have the row's address, or the MAC address that its GID is made from.
    fn owners(&self, entry: &GidEntry) -> Option<Owners<'i>> {
        let gid = entry.gid();
        let address = self.addresses.get(&address_of(gid));
        let made = self.made.get(&gid);
        let mac = mac_with_id(gid).and_then(|mac| self.macs.get(&mac));
        // Of a MAC address it is not known whether the address that is made of it is one of the interface.
        let unfit = |own: &Owners<'i>| address.and_then(|own| own.unfit).or(own.unfit);
        let mac = mac.map(|own| Owners { unfit: unfit(own), ..*own });
        let all = address.into_iter().chain(made).copied().chain(mac);
        let all = all.reduce(Owners::with);
        let is_unassigned = address.is_none() && is_resolved(entry);
        let unassigned = is_unassigned.then_some(Unfit::Unassigned);
        // Of one whose MAC address is not known it may be that.
        let is_known = address.is_none_or(|own| own.is_only && own.first.mac.is_some());
        let is_other = is_by_mac(entry) && is_known && !self.macs.contains_key(&mac_in(gid));
        let other = is_other.then_some(Unfit::OtherMac);
        all.map(|own| {
            let unfit = own.unfit.filter(|own| counts(*own, entry));
            Owners { unfit: unfit.or(unassigned).or(other), ..own }
        })
    }

    /// Whether an interface of this namespace has the GID's address, or the MAC address that the GID is made
    /// from.
    #[must_use]
    pub fn has_address(&self, interface: &Interface, gid: Gid) -> bool {
        self.owned.contains_key(&(interface.index.get(), address_of(gid)))
            || interface.mac.is_some_and(|mac| made_of(mac).contains(&gid))
            || (interface.mac.is_some() && interface.mac == mac_with_id(gid))
    }
}

/// Everything that a choice on a port depends on; `None` if its attributes or its table could not be
/// read.
#[must_use]
pub fn port<'i>(
    here: &Surroundings<'i>,
    record: &'i DeviceRecord,
    port: &'i PortRecord,
) -> Option<Port<'i>> {
    let attributes = port.known()?;
    record.gids.as_ref()?.as_ref().ok()?;
    let node_type = record.device.node_type;
    let kind = match node_type {
        NodeType::RNIC => Kind::Iwarp,
        _ if !is_roce(attributes.link_layer, node_type) => Kind::Other,
        _ if record.device.driver == Some(DriverId::RXE) => Kind::SoftRoce,
        _ => Kind::Roce,
    };
    let mut rows: Vec<Row<'_>> = Vec::new();
    for row in record.rows(port.number) {
        // Rows ascend. A row that does not, or is past the end, is not part of the table.
        let index = row.record.entry.index();
        if rows.last().is_none_or(|last| last.index < index) && index < attributes.gid_tbl_len {
            rows.push(see(here, (kind, port), row));
        }
    }
    Some(Port {
        device: &record.device.name,
        node_type,
        driver: record.device.driver,
        number: port.number,
        place: record.device.index.or(record.place),
        is_found: record.is_found() || !here.has_found,
        state: attributes.state,
        link_layer: attributes.link_layer,
        gid_tbl_len: attributes.gid_tbl_len,
        has_types: port.has_types != Some(false),
        assumes_types: port.has_types.is_none(),
        rows,
    })
}

fn see<'i>(here: &Surroundings<'i>, (kind, port): (Kind, &PortRecord), row: &'i GidRow) -> Row<'i> {
    let entry = &row.record.entry;
    let home = home(here, (kind, port), row);
    Row {
        index: entry.index(),
        gid: entry.gid(),
        gid_type: entry.gid_type(),
        type_is_hidden: row.type_is_hidden || port.has_types == Some(false),
        // The kernel that hides types also refuses address handles. The carrier does not matter.
        has_address_handle: !row.type_is_hidden
            && match home {
                Home::Ours { has_address, unfit, .. } => {
                    let index = row.netdev.as_ref().map(|netdev| netdev.index.get());
                    let interface = index.and_then(|index| here.inventory.interface(index));
                    // The kernel may know the other host as a neighbour.
                    let is_reached = has_address && is_own_reached(unfit);
                    let is_reached = is_reached || !is_resolved(entry);
                    interface.is_none_or(|own| own.is_up) && is_reached
                }
                _ => true,
            },
        may_lead_elsewhere: !row.type_is_hidden
            && matches!(home, Home::Ours { unfit: Some(Unfit::Unassigned), .. })
            && row.netdev.as_ref().is_some_and(|own| here.common(own.index).may_lead_elsewhere),
        home,
        is_heard: hearing(here, (kind, port), row).map(|own| own.is_ok()),
    }
}

/// Whether an interface can send: it is switched on, and has a carrier.
fn is_up(interface: &Interface) -> bool {
    interface.is_up && interface.is_lower_up
}
