//! Ports and rows of an [`Inventory`], each with what this network namespace knows about its interface.

use core::num::NonZeroU32;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::address::address_of;
use super::port::{Home, Port, Row, is_roce};
use super::room::has_found;
use crate::device::NodeType;
use crate::driver::DriverId;
use crate::gid::{DEFAULT_PREFIX, Gid, GidEntry, GidType};
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
    /// Of each interface the longest prefix of an address of IPv4, and of one of IPv6 that is not link-local.
    longest: BTreeMap<u32, [Option<u8>; 2]>,
    /// The interfaces of which the kernel may reach a link-local address that they do not have: over a router, as none of
    /// theirs is link-local, or by their own MAC address.
    leading: BTreeSet<u32>,
    /// The interfaces with an address that iWARP can connect.
    addressed: BTreeSet<u32>,
    /// The values of its settings, as the newest releases see them.
    settings: BTreeMap<&'i str, &'i str>,
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
            unfit: self.unfit.and(other.unfit),
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
            longest: BTreeMap::new(),
            leading: BTreeSet::new(),
            addressed: BTreeSet::new(),
            settings: BTreeMap::new(),
        };
        for own in &inventory.settings {
            if own.readings.contains(&SettingsReading::NEWEST) {
                here.settings.entry(&own.name).or_insert(&own.value);
            }
        }
        for interface in inventory.interfaces.iter().flatten() {
            here.by_name.insert(&interface.name, interface);
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
                here.unfit.entry((index, own)).or_insert(why.unwrap_or(Unfit::Mapped));
            }
            if let Some(mac) = interface.mac {
                add(&mut here.macs, mac, Owners::of(interface, None));
                for gid in made_of(mac) {
                    let unfit = here.unfit(interface, gid);
                    add(&mut here.made, gid, Owners::of(interface, unfit));
                }
            }
            let (mut has_local, mut is_mute, mut is_addressed) = (false, false, false);
            for (address, bits) in &interface.addresses {
                let (written, address) = (address, address.to_canonical());
                let bits =
                    if is_mapped(written) { bits.checked_sub(96).unwrap_or(32) } else { *bits };
                here.owned.entry((index, address)).or_insert(bits);
                if !is_local_v6(address) {
                    let [v4, v6] = here.longest.entry(index).or_default();
                    let longest = if address.is_ipv4() { v4 } else { v6 };
                    *longest = (*longest).max(Some(bits));
                }
                let unfit = here.unfit.get(&(index, address)).copied();
                // The route to one that is an address of the link has this length.
                let is_local =
                    is_local_v6(address) && matches!(unfit, None | Some(Unfit::Bypassed));
                has_local |= is_local && bits <= 64;
                let is_bound = !matches!(unfit, Some(Unfit::Duplicate | Unfit::Enslaved));
                is_addressed |= !is_local_v6(address) && is_bound;
                is_mute |= unfit == Some(Unfit::NoNeighbours);
                add(&mut here.addresses, address, Owners::of(interface, unfit));
            }
            let has_global = here.longest_prefixes(interface)[1].is_some();
            if is_mute || has_global && !has_local {
                here.leading.insert(index);
            }
            if is_addressed {
                here.addressed.insert(index);
            }
        }
        here
    }

    /// Why a GID's address cannot be used on an interface that has it.
    fn unfit(&self, interface: &Interface, gid: Gid) -> Option<Unfit> {
        self.unfit.get(&(interface.index.get(), address_of(gid))).copied()
    }

    /// Why the address of a row of `port` cannot be used on an interface.
    fn unfit_of(
        &self,
        interface: &Interface,
        port: &PortRecord,
        entry: &GidEntry,
    ) -> Option<Unfit> {
        let own = port.netdev.as_ref().ok().and_then(Option::as_ref);
        let is_port_s = own.is_some_and(|own| own.index == interface.index);

        let is_made = self.has_address(interface, entry.gid());
        let is_unassigned = is_made && self.prefix(interface, entry.gid()).is_none();
        let is_unassigned = is_unassigned && is_resolved(entry);
        let why = self.unfit(interface, entry.gid()).filter(|why| counts(*why, entry));
        // A device on a tunnel is of software, and sends by it.
        let why = why.filter(|why| *why != Unfit::Bypassed || !is_port_s);
        why.or(is_unassigned.then_some(Unfit::Unassigned))
            .or_else(|| has_other_mac(interface, entry))
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
        self.longest.get(&interface.index.get()).copied().unwrap_or_default()
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

    /// Whether no interface here has a row's index. Of a name that would prove nothing: the interface may
    /// have been renamed since.
    fn has_no_such_index(&self, row: &GidRow) -> bool {
        let index = row.record.entry.netdev_ifindex();
        index.is_some_and(|index| self.inventory.interface(index.get()).is_none())
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

    /// The interface of a row of iWARP, where netlink said which interfaces are here: the port's own. A row that does not
    /// say that it has one is of Linux before 6.5, where the kernel compares the MAC address.
    fn home_of_iwarp(&self, port: &PortRecord, row: &GidRow) -> Home<'i> {
        let (entry, is_said) = (&row.record.entry, row.record.may_have_netdev());
        let index = entry.netdev_ifindex();
        let find = |index: NonZeroU32| self.inventory.interface(index.get());
        match &port.netdev {
            _ if row.netdev_is_elsewhere => Home::Foreign,
            Ok(None) => Home::Foreign,
            Ok(Some(own)) => match find(own.index) {
                Some(own) if !is_said && own.mac.is_none() => Home::None,
                Some(own) if !is_said && own.mac.map(Gid::of_iwarp) != Some(entry.gid()) => {
                    Home::WithoutAddress
                }
                Some(own) if index.is_none_or(|index| index == own.index) => Home::Ours {
                    name: &own.name,
                    is_up: is_up(own),
                    has_address: true,
                    // Before Linux 6.5 it may be that of a bridge above.
                    unfit: (is_said && !self.addressed.contains(&own.index.get()))
                        .then_some(Unfit::NoAddress),
                    is_port_s: Some(true),
                },
                _ => Home::Unknown { name: None },
            },
            Err(_) => match index.map(find) {
                Some(Some(own)) => Home::Unproven {
                    name: Some(&own.name),
                    is_named: true,
                    is_up: is_up(own),
                    unfit: None,
                },
                Some(None) => Home::Foreign,
                None => Home::Unknown { name: None },
            },
        }
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

/// What the rows of a port have to do with interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Each has one.
    Roce,
    /// The same, of soft RoCE.
    SoftRoce,
    /// Its row is of the port's own. Before Linux 6.5 it does not say so, and the kernel compares the MAC address.
    Iwarp,
    Other,
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
            && row.netdev.as_ref().is_some_and(|own| here.leading.contains(&own.index.get())),
        home,
    }
}

/// Whether a reason of an interface's counts for a row: what no neighbour is asked for needs none.
fn counts(why: Unfit, entry: &GidEntry) -> bool {
    is_resolved(entry) || !is_of_neighbours(why)
}

/// Whether the kernel may make an address handle from a GID to itself, as UCX tries it, though others are not reached.
fn is_own_reached(unfit: Option<Unfit>) -> bool {
    let is_reached = |why| {
        matches!(why, Unfit::Duplicate | Unfit::Bypassed | Unfit::Unheard) || is_of_neighbours(why)
    };
    unfit.is_none_or(is_reached)
}

/// Whether a reason is that the kernel finds no neighbours.
fn is_of_neighbours(why: Unfit) -> bool {
    matches!(why, Unfit::Enslaved | Unfit::NoNeighbours | Unfit::NoLinkLocal)
}

/// Whether this is an IPv4 address written as IPv6.
fn is_mapped(address: &IpAddr) -> bool {
    address.to_canonical() != *address
}

/// Whether the kernel resolves a GID by its address, as of all but the link-local ones of RoCE v1, which have the MAC
/// address in them. Of a type that could not be read it is not known.
fn is_resolved(entry: &GidEntry) -> bool {
    let is_local = entry.gid().subnet_prefix() == DEFAULT_PREFIX;
    entry.gid_type() == GidType::ROCE_V2 || entry.gid_type() == GidType::ROCE_V1 && !is_local
}

/// Where the interface of a row is.
pub(crate) fn home<'i>(
    here: &Surroundings<'i>,
    (kind, port): (Kind, &PortRecord),
    row: &'i GidRow,
) -> Home<'i> {
    let inventory = here.inventory;
    let record = &row.record;
    let is_named = record.entry.netdev_ifindex().is_some() || record.sysfs_netdev.is_some();
    match kind {
        // That sysfs did not say that there is none makes none.
        Kind::Other if !is_named && row.netdev.is_none() => return Home::None,
        Kind::Iwarp if inventory.has_netlink && inventory.interfaces.is_some() => {
            return here.home_of_iwarp(port, row);
        }
        Kind::Iwarp if !record.may_have_netdev() => return Home::None,
        _ => {}
    }
    if inventory.interfaces.is_none() {
        // In a tree of another host, its own names are all that is known. Names of this host's sysfs may
        // be those of another namespace.
        let is_tree = inventory.host.is_none();
        let named = row.netdev.as_ref().map(|netdev| netdev.name.as_str());
        let name = named.or(record.sysfs_netdev.as_deref().filter(|_| is_tree));
        return Home::Unknown { name };
    }
    if let Some(netdev) = row.netdev.as_ref().filter(|_| inventory.has_netlink) {
        // It came or went while the host was read: of its state nothing is known.
        let Some(interface) = inventory.interface(netdev.index.get()) else {
            return Home::Unknown { name: Some(&netdev.name) };
        };
        let gid = record.entry.gid();
        let unfit = here.unfit_of(interface, port, &record.entry);
        // In another namespace than the port's own interface none is heard either, but a program may be tried with soft RoCE
        // there, as with hardware.
        let is_other = matches!(&port.netdev, Ok(Some(own)) if own.index != netdev.index);
        let is_unheard = kind == Kind::SoftRoce && is_other && interface.vlan.is_none();
        return Home::Ours {
            name: &netdev.name,
            is_up: is_up(interface),
            has_address: here.has_address(interface, gid),
            unfit: unfit.or(is_unheard.then_some(Unfit::Unheard)),
            is_port_s: match &port.netdev {
                Ok(own) => Some(own.as_ref().is_none_or(|own| own.index == netdev.index)),
                Err(_) => None,
            },
        };
    }
    let own = port.netdev.as_ref().ok().and_then(Option::as_ref).map(|own| own.index);
    if row.netdev_is_elsewhere {
        return Home::Foreign;
    }
    if here.has_no_such_index(row) {
        // The port's own came while the host was read.
        let is_port_s = own.is_some() && own == record.entry.netdev_ifindex();
        return if is_port_s { Home::Unknown { name: None } } else { Home::Foreign };
    }
    // Without RDMA netlink nothing proves that an interface is here. Addresses are known all the same.
    let candidate = here.candidate(row);
    if let (Some(own), true) = (candidate, record.entry.netdev_ifindex().is_some()) {
        return Home::Unproven {
            name: Some(&own.name),
            is_named: true,
            is_up: is_up(own),
            unfit: here.unfit_of(own, port, &record.entry),
        };
    }
    // Without an index there is only a name, which another interface may have by now.
    let owners = here.owners(&record.entry).filter(|_| record.entry.netdev_ifindex().is_none());
    let Some(owners) = owners else { return Home::WithoutAddress };
    let named = candidate.or(owners.is_only.then_some(owners.first));
    Home::Unproven {
        name: named.map(|own| own.name.as_str()),
        is_named: candidate.is_some(),
        is_up: owners.is_up,
        unfit: owners.unfit,
    }
}

/// Whether the kernel takes the MAC address from a GID.
fn is_by_mac(entry: &GidEntry) -> bool {
    entry.gid_type() == GidType::ROCE_V1 && !is_resolved(entry)
}

/// The MAC address that the kernel takes from a GID, whatever is in the middle of it.
fn mac_in(gid: Gid) -> [u8; 6] {
    let [.., m0, m1, m2, _, _, m3, m4, m5] = gid.to_bytes();
    [m0 ^ 2, m1, m2, m3, m4, m5]
}

/// Why nobody can be reached by a GID whose MAC address is taken from it.
fn has_other_mac(interface: &Interface, entry: &GidEntry) -> Option<Unfit> {
    let is_other = interface.mac.is_some_and(|mac| mac != mac_in(entry.gid()));
    (is_by_mac(entry) && is_other).then_some(Unfit::OtherMac)
}

/// Whether an interface can send: it is switched on, and has a carrier.
fn is_up(interface: &Interface) -> bool {
    interface.is_up && interface.is_lower_up
}

/// The MAC address in a default GID of an interface with a device id. The kernel then does not put `ff:fe` in
/// the middle, and does not change a bit.
fn mac_with_id(gid: Gid) -> Option<[u8; 6]> {
    let id = gid.interface_id();
    let [_, _, mac @ ..] = (id >> 40 << 24 | id & 0xff_ffff).to_be_bytes();
    (gid.subnet_prefix() == DEFAULT_PREFIX).then_some(mac)
}

/// The GIDs that the kernel derives from a MAC address: RoCE's default GID, and iWARP's only GID.
fn made_of(mac: [u8; 6]) -> [Gid; 2] {
    [Gid::of_roce(mac), Gid::of_iwarp(mac)]
}
