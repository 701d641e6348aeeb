//! Which GID of a port to use, and which one NCCL, NVSHMEM and UCX take by themselves, with a reason
//! for every row of the table.
//!
//! All functions are pure: they take a [`Port`], which [`ports`] makes from an [`Inventory`], and
//! settings. [`recommend`] is this project's own advice. [`nccl`] and [`ucx`] are models of programs, by
//! release where releases differ: they say what those programs do, not what would be right.
//!
//! ```
//! use uverbs::choose::{self, Outcome, Wish};
//!
//! let inventory = uverbs::Host::new().inventory(&Default::default());
//! for port in choose::ports(&inventory) {
//!     let decision = choose::recommend(&port, &Wish::default());
//!     if let Outcome::Taken(index) = decision.outcome {
//!         println!("{}:{} uses GID {index}", port.device, port.number);
//!     }
//!     for (index, reason) in decision.rows {
//!         println!("  {index}: {reason}");
//!     }
//! }
//! ```
//!
//! The models cannot know whether a plug-in replaces NCCL's own transport, what a launcher sets, and
//! what the peer chooses. They also do not know whether a UCX address handle fails for another reason
//! than an interface that is down (Linux 5.10 refuses an interface outside the first network namespace).

mod fleet;
#[cfg(feature = "serde")]
mod form;
pub mod nccl;
pub mod plan;
mod reason;
mod recommend;
#[cfg(test)]
mod recorded;
#[cfg(test)]
mod tests;
pub mod ucx;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};

pub use reason::{Caveat, Reason, Why};
pub use recommend::{Wish, caveats, is_sure, recommend};

use crate::device::NodeType;
use crate::gid::{Gid, GidType};
use crate::inventory::{DeviceRecord, GidRow, Inventory, PortRecord};
use crate::netdev::Interface;
use crate::port::{LinkLayer, PortState};

/// The greatest index that a program can use: it is sent as one byte.
pub const MAX_INDEX: u32 = 255;

/// A port, with everything that a choice depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Port<'i> {
    /// The device's name.
    pub device: &'i str,
    /// Its node type.
    pub node_type: NodeType,
    /// The port's number.
    pub number: u32,
    /// libibverbs lists devices in the order of these numbers; `None` if it is not known.
    pub place: Option<u32>,
    /// Logical state.
    pub state: PortState,
    /// Link layer.
    pub link_layer: LinkLayer,
    /// Slots of the GID table, including empty ones.
    pub gid_tbl_len: u32,
    /// Whether sysfs has the files with the types of rows. Without them NCCL cannot compare two rows.
    pub has_types: bool,
    /// The rows in use, ascending by index, no index twice.
    pub rows: Vec<Row<'i>>,
}

/// A row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Row<'i> {
    /// Index in the table.
    pub index: u32,
    /// The GID.
    pub gid: Gid,
    /// Its type.
    pub gid_type: GidType,
    /// Whether sysfs refuses to give the type.
    pub type_is_hidden: bool,
    /// Whether an address handle can be made with it, as far as is known. UCX tries to make one.
    pub has_address_handle: bool,
    /// Its network interface.
    pub home: Home<'i>,
}

/// Where a row's interface is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Home<'i> {
    /// The row has none, as on InfiniBand.
    None,
    /// In this network namespace.
    Ours {
        /// Its name.
        name: &'i str,
        /// Whether it is up, with a carrier.
        is_up: bool,
        /// Whether it has the row's address. A GID made from its MAC address counts.
        has_address: bool,
        /// Whether it is the port's own, and not a VLAN, macvlan or bridge on top of it.
        is_port_s: bool,
    },
    /// It is not proven to be in this namespace, and it may be: an interface here has the row's index (or
    /// name) and the address, or the MAC address that the GID is made from.
    Unproven {
        /// The name of that interface, if there is one.
        name: Option<&'i str>,
    },
    /// No interface of this namespace can be its own.
    Foreign,
    /// Nothing is known about the interfaces here.
    Unknown {
        /// Its name in sysfs, valid in its own namespace.
        name: Option<&'i str>,
    },
}

impl Row<'_> {
    /// A row whose type sysfs shows, with an address handle, of whose interface nothing is known.
    #[must_use]
    pub fn new(index: u32, gid: Gid, gid_type: GidType) -> Self {
        let (type_is_hidden, has_address_handle) = (false, true);
        Self {
            index,
            gid,
            gid_type,
            type_is_hidden,
            has_address_handle,
            home: Home::Unproven { name: None },
        }
    }

    /// Whether its type is not known.
    #[must_use]
    pub fn is_type_unread(&self) -> bool {
        self.type_is_hidden && self.gid_type == GidType::UNNAMED
    }

    /// The family of its address.
    #[must_use]
    pub fn family(&self) -> Family {
        Family::of(self.gid)
    }

    /// The RoCE version as the types file in sysfs gives it: 1 for InfiniBand and iWARP rows.
    fn version(&self) -> Option<u8> {
        match self.gid_type {
            _ if self.type_is_hidden => None,
            GidType::IB | GidType::ROCE_V1 => Some(1),
            GidType::ROCE_V2 => Some(2),
            _ => None,
        }
    }
}

impl<'i> Port<'i> {
    /// An active Ethernet port of a channel adapter, without rows; set what you know.
    #[must_use]
    pub fn new(device: &'i str, number: u32) -> Self {
        Self {
            device,
            node_type: NodeType::CA,
            number,
            place: None,
            state: PortState::ACTIVE,
            link_layer: LinkLayer::ETHERNET,
            gid_tbl_len: 0,
            has_types: true,
            rows: Vec::new(),
        }
    }

    /// The row at an index.
    #[must_use]
    pub fn row(&self, index: u32) -> Option<&Row<'_>> {
        let place = self.rows.binary_search_by_key(&index, |row| row.index).ok()?;
        self.rows.get(place)
    }

    /// Whether programs treat it as RoCE. They treat iWARP as RoCE too.
    fn is_ethernet(&self) -> bool {
        self.link_layer == LinkLayer::ETHERNET
    }
}

/// Families of addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Family {
    /// IPv4.
    #[default]
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// The family of a GID, as NCCL and UCX define it: IPv4 if the GID is made from an IPv4 address or an
    /// IPv4 multicast group. Every other GID is IPv6, including the zero GID.
    #[must_use]
    pub fn of(gid: Gid) -> Self {
        const MAPPED: u128 = 0xffff;
        const MULTICAST: u128 = 0xff0e_0000_0000_0000_0000_ffff;
        match u128::from_be_bytes(gid.to_bytes()) >> 32 {
            MAPPED | MULTICAST => Self::V4,
            _ => Self::V6,
        }
    }
}

impl core::fmt::Display for Family {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.pad(match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        })
    }
}

/// A network: the addresses that begin with the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// An address of it.
    pub address: IpAddr,
    /// How many bits are the same. A number above the address length means all bits.
    pub bits: u8,
}

impl Network {
    /// Whether it contains the address that a GID is made from. An IPv4 network contains no IPv6 GID.
    #[must_use]
    pub fn holds(&self, gid: Gid) -> bool {
        match self.address {
            IpAddr::V4(own) => {
                gid.ipv4().is_some_and(|address| alike(&own.octets(), &address.octets(), self.bits))
            }
            IpAddr::V6(own) => alike(&own.octets(), &gid.to_bytes(), self.bits),
        }
    }
}

impl core::fmt::Display for Network {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

/// Whether two addresses of the same length begin with the same bits.
fn alike(one: &[u8], other: &[u8], bits: u8) -> bool {
    let number = |bytes: &[u8]| bytes.iter().fold(0u128, |sum, byte| sum << 8 | u128::from(*byte));
    let length = u32::try_from(one.len() * 8).unwrap_or(u128::BITS);
    let ignored = length.saturating_sub(bits.into());
    (number(one) ^ number(other)).checked_shr(ignored).unwrap_or(0) == 0
}

/// Whether an address is link-local as UCX and perftest see it: `fe80::/10`.
fn is_link_local(gid: Gid) -> bool {
    gid.ipv6().is_unicast_link_local()
}

/// Whether the lower half of a GID is not zero. UCX requires this of a port's GID.
fn has_low_half(gid: Gid) -> bool {
    gid.interface_id() != 0
}

/// The result of a choice.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// The row at this index is used.
    Taken(u32),
    /// This index is used, but its slot is empty: connecting will fail (`ENODATA`).
    Empty(u32),
    /// This index is used, but is outside the table: connecting will fail.
    Outside(i64),
    /// No GID is chosen: connecting fails, or the program does not make the interface.
    Fails(Why),
    /// The port is not used at all.
    Ignored(Why),
    /// The port is used by its LID, without a GID.
    ByLid,
}

impl Outcome {
    /// The index of the row that is used, if it is in use.
    #[must_use]
    pub fn index(&self) -> Option<u32> {
        match self {
            Self::Taken(index) => Some(*index),
            _ => None,
        }
    }

    /// The result of using this index.
    fn of_index(port: &Port<'_>, index: i64) -> Self {
        match u32::try_from(index) {
            Ok(index) if index < port.gid_tbl_len => match port.row(index) {
                Some(_) => Self::Taken(index),
                None => Self::Empty(index),
            },
            _ => Self::Outside(index),
        }
    }
}

impl core::fmt::Display for Outcome {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Taken(index) => write!(f, "{index}"),
            Self::Empty(index) => write!(f, "{index} (empty slot)"),
            Self::Outside(index) => write!(f, "{index} (outside the table)"),
            Self::Fails(why) => write!(f, "failure: {why}"),
            Self::Ignored(why) => write!(f, "not used: {why}"),
            Self::ByLid => f.write_str("no GID: by LID"),
        }
    }
}

/// A choice, and the reason for every row.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Decision {
    /// Its result.
    pub outcome: Outcome,
    /// Each row's index and why it was taken or refused, in the order of the table.
    pub rows: Vec<(u32, Reason)>,
}

impl Decision {
    /// A decision made without looking at rows.
    fn unlooked(port: &Port<'_>, outcome: Outcome) -> Self {
        Self::of_one(port, outcome, &Reason::Pinned)
    }

    /// A decision that looked only at the row that is taken, for this reason.
    fn of_one(port: &Port<'_>, outcome: Outcome, taken: &Reason) -> Self {
        let reason = |row: &Row<'_>| {
            let is_taken = outcome.index() == Some(row.index);
            (row.index, if is_taken { taken.clone() } else { Reason::Unlooked })
        };
        Self { rows: port.rows.iter().map(reason).collect(), outcome }
    }
}

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
    /// The GIDs that the kernel derives from their MAC addresses.
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
            made: BTreeSet::new(),
            by_name: BTreeMap::new(),
        };
        for interface in inventory.interfaces.iter().flatten() {
            here.by_name.insert(&interface.name, interface);
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
        meant.filter(|own| !row.netdev_is_elsewhere && self.has_address(own, entry.gid()))
    }

    /// Whether some interface has the GID's address, or the MAC address that the GID is made from.
    fn is_made_here(&self, gid: Gid) -> bool {
        self.addresses.contains(&address_of(gid)) || self.made.contains(&gid)
    }

    /// Whether an interface of this namespace has the GID's address, or the MAC address that the GID is made
    /// from.
    #[must_use]
    pub fn has_address(&self, interface: &Interface, gid: Gid) -> bool {
        self.owned.contains(&(interface.index.get(), address_of(gid)))
            || interface.mac.is_some_and(|mac| made_of(mac).contains(&gid))
    }
}

/// The address that a GID is made from.
fn address_of(gid: Gid) -> IpAddr {
    gid.ipv4().map_or(IpAddr::V6(gid.ipv6()), IpAddr::V4)
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
    let mut rows: Vec<Row<'_>> = Vec::new();
    for row in record.rows(port.number) {
        // Rows ascend. A row that does not is not part of a table.
        let index = row.record.entry.index();
        if rows.last().is_none_or(|last| last.index < index) {
            rows.push(see(here, port, row));
        }
    }
    Some(Port {
        device: &record.device.name,
        node_type: record.device.node_type,
        number: port.number,
        place: record.device.index.or(record.place),
        state: attributes.state,
        link_layer: attributes.link_layer,
        gid_tbl_len: attributes.gid_tbl_len,
        has_types: port.has_types != Some(false),
        rows,
    })
}

fn see<'i>(here: &Surroundings<'i>, port: &PortRecord, row: &'i GidRow) -> Row<'i> {
    let entry = &row.record.entry;
    let home = home(here, port, row);
    Row {
        index: entry.index(),
        gid: entry.gid(),
        gid_type: entry.gid_type(),
        type_is_hidden: row.type_is_hidden || port.has_types == Some(false),
        // The kernel that hides types also refuses address handles.
        has_address_handle: !row.type_is_hidden && !matches!(home, Home::Ours { is_up: false, .. }),
        home,
    }
}

fn home<'i>(here: &Surroundings<'i>, port: &PortRecord, row: &'i GidRow) -> Home<'i> {
    let inventory = here.inventory;
    let entry = &row.record.entry;
    if inventory.interfaces.is_none() || !inventory.has_netlink {
        let has_one = row.record.may_have_netdev();
        let named = row.netdev.as_ref().map(|netdev| netdev.name.as_str());
        let name = named.or(row.record.sysfs_netdev.as_deref());
        return if has_one { Home::Unknown { name } } else { Home::None };
    }
    let gid = entry.gid();
    if let Some(netdev) = &row.netdev {
        // It came or went while the host was read: of its state nothing is known.
        let Some(interface) = inventory.interface(netdev.index.get()) else {
            return Home::Unknown { name: Some(&netdev.name) };
        };
        return Home::Ours {
            name: &netdev.name,
            is_up: interface.is_up && interface.is_lower_up,
            has_address: here.has_address(interface, gid),
            is_port_s: port.netdev.as_ref().is_none_or(|own| own.index == netdev.index),
        };
    }
    let record = &row.record;
    if !record.may_have_netdev() {
        return Home::None;
    }
    match here.candidate(row) {
        _ if row.netdev_is_elsewhere => Home::Foreign,
        Some(own) => Home::Unproven { name: Some(&own.name) },
        None if record.netdev_is_unread && here.is_made_here(gid) => Home::Unproven { name: None },
        None if record.netdev_is_unread => Home::Unknown { name: None },
        None => Home::Foreign,
    }
}

/// The GIDs that the kernel derives from a MAC address: RoCE's default GID, and iWARP's only GID.
fn made_of(mac: [u8; 6]) -> [Gid; 2] {
    [Gid::of_roce(mac), Gid::of_iwarp(mac)]
}

/// Reads an address; `None` for an address of another family.
fn parse_address(text: &str, family: Family) -> Option<IpAddr> {
    match family {
        Family::V4 => text.parse().ok().map(IpAddr::V4),
        Family::V6 => text.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
    }
}
