//! Ports and rows of an [`Inventory`], each with what this network namespace knows about its interface.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::address::address_of;
use super::port::{Home, Port, Row, is_roce};
use crate::gid::Gid;
use crate::inventory::{DeviceRecord, GidRow, Inventory, PortRecord};
use crate::netdev::{Interface, Unfit};

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
    inventory: &'i Inventory,
    /// Each interface's index with each of its addresses.
    owned: BTreeSet<(u32, IpAddr)>,
    /// All their addresses.
    addresses: BTreeSet<IpAddr>,
    /// Their MAC addresses, from which the kernel derives GIDs.
    macs: BTreeSet<[u8; 6]>,
    /// Those GIDs.
    made: BTreeSet<Gid>,
    by_name: BTreeMap<&'i str, &'i Interface>,
}

impl<'i> Surroundings<'i> {
    /// The interfaces of a host.
    #[must_use]
    pub fn of(inventory: &'i Inventory) -> Self {
        let mut here = Self {
            inventory,
            owned: BTreeSet::new(),
            addresses: BTreeSet::new(),
            macs: BTreeSet::new(),
            made: BTreeSet::new(),
            by_name: BTreeMap::new(),
        };
        for interface in inventory.interfaces.iter().flatten() {
            here.by_name.insert(&interface.name, interface);
            here.macs.extend(interface.mac);
            here.made.extend(interface.mac.into_iter().flat_map(made_of));
            for (address, _) in &interface.addresses {
                here.owned.insert((interface.index.get(), *address));
                here.addresses.insert(*address);
            }
        }
        here
    }

    /// The interface of this namespace that a row without a name may belong to: it has the row's index (or
    /// name) and the address, or the MAC address that the GID is made from.
    #[must_use]
    pub fn candidate(&self, row: &GidRow) -> Option<&'i Interface> {
        let entry = &row.record.entry;
        let meant = match (entry.netdev_ifindex(), &row.record.sysfs_netdev) {
            (Some(index), _) => self.inventory.interface(index.get()),
            (None, Some(name)) => self.by_name.get(name.as_str()).copied(),
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

    /// Whether some interface has the GID's address, or the MAC address that the GID is made from.
    fn is_made_here(&self, gid: Gid) -> bool {
        self.addresses.contains(&address_of(gid))
            || self.made.contains(&gid)
            || mac_with_id(gid).is_some_and(|mac| self.macs.contains(&mac))
    }

    /// The name of the interface that [`is_made_here`](Self::is_made_here) means, if only one has the address.
    fn only_owner(&self, gid: Gid) -> Option<&'i str> {
        let is_owner = |own: &&Interface| self.has_address(own, gid);
        let mut owners = self.inventory.interfaces.iter().flatten().filter(is_owner);
        owners.next().filter(|_| owners.next().is_none()).map(|own| own.name.as_str())
    }

    /// Whether an interface of this namespace has the GID's address, or the MAC address that the GID is made
    /// from.
    #[must_use]
    pub fn has_address(&self, interface: &Interface, gid: Gid) -> bool {
        self.owned.contains(&(interface.index.get(), address_of(gid)))
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
    let is_roce = is_roce(attributes.link_layer, node_type);
    let mut rows: Vec<Row<'_>> = Vec::new();
    for row in record.rows(port.number) {
        // Rows ascend. A row that does not, or is past the end, is not part of the table.
        let index = row.record.entry.index();
        if rows.last().is_none_or(|last| last.index < index) && index < attributes.gid_tbl_len {
            rows.push(see(here, (is_roce, port), row));
        }
    }
    Some(Port {
        device: &record.device.name,
        node_type,
        number: port.number,
        place: record.device.index.or(record.place),
        state: attributes.state,
        link_layer: attributes.link_layer,
        gid_tbl_len: attributes.gid_tbl_len,
        has_types: port.has_types != Some(false),
        assumes_types: port.has_types.is_none(),
        rows,
    })
}

fn see<'i>(
    here: &Surroundings<'i>,
    (is_roce, port): (bool, &PortRecord),
    row: &'i GidRow,
) -> Row<'i> {
    let entry = &row.record.entry;
    let home = home(here, (is_roce, port), row);
    Row {
        index: entry.index(),
        gid: entry.gid(),
        gid_type: entry.gid_type(),
        type_is_hidden: row.type_is_hidden || port.has_types == Some(false),
        // The kernel that hides types also refuses address handles. The carrier does not matter.
        has_address_handle: !row.type_is_hidden
            && match home {
                Home::Ours { name, .. } => here.by_name.get(name).is_none_or(|own| own.is_up),
                _ => true,
            },
        home,
    }
}

fn home<'i>(
    here: &Surroundings<'i>,
    (is_roce, port): (bool, &PortRecord),
    row: &'i GidRow,
) -> Home<'i> {
    let inventory = here.inventory;
    let record = &row.record;
    if !record.may_have_netdev() && row.netdev.is_none() && !is_roce {
        return Home::None;
    }
    let gid = record.entry.gid();
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
        return Home::Ours {
            name: &netdev.name,
            is_up: interface.is_up && interface.is_lower_up,
            has_address: here.has_address(interface, gid),
            unfit: unfit(interface, gid),
            is_port_s: port.netdev.as_ref().is_none_or(|own| own.index == netdev.index),
        };
    }
    // Without RDMA netlink nothing proves that an interface is here. Addresses are known all the same.
    match here.candidate(row) {
        _ if row.netdev_is_elsewhere || here.has_no_such_index(row) => Home::Foreign,
        Some(own) => Home::Unproven { name: Some(&own.name), is_named: true },
        // Without an index there is only a name, which another interface may have by now.
        None if row.record.entry.netdev_ifindex().is_none() && here.is_made_here(gid) => {
            Home::Unproven { name: here.only_owner(gid), is_named: false }
        }
        None => Home::WithoutAddress,
    }
}

/// Why a GID's address cannot be used on an interface.
fn unfit(interface: &Interface, gid: Gid) -> Option<Unfit> {
    let address = address_of(gid);
    interface.unfit.iter().find(|(own, _)| *own == address).map(|(_, why)| *why)
}

/// The MAC address in a default GID of an interface with a device id. The kernel then does not put `ff:fe` in
/// the middle, and does not change a bit.
fn mac_with_id(gid: Gid) -> Option<[u8; 6]> {
    let id = gid.interface_id();
    let [_, _, mac @ ..] = (id >> 40 << 24 | id & 0xff_ffff).to_be_bytes();
    (gid.subnet_prefix() == 0xfe80 << 48).then_some(mac)
}

/// The GIDs that the kernel derives from a MAC address: RoCE's default GID, and iWARP's only GID.
fn made_of(mac: [u8; 6]) -> [Gid; 2] {
    [Gid::of_roce(mac), Gid::of_iwarp(mac)]
}
