//! What a port brings to a connection.

use std::net::IpAddr;

use super::meet::Obstacle;
use super::survey::Chooser;
use crate::choose::{
    Caveat, Family, Home, Network, Outcome, Port, Row, Surroundings, Why, address_of, caveats,
    is_of_link, nccl, ucx,
};
use crate::device::NodeType;
use crate::gid::{Gid, GidType};
use crate::inventory::{DeviceRecord, GidRow, Inventory, PortRecord};
use crate::netdev::{Interface, Unfit};
use crate::pkey::PKey;
use crate::port::{LinkLayer, Mtu, PortState};

/// One end of a connection: a port with the row that somebody uses there.
///
/// It has nothing that is of one port only, so that most ports of a fleet are equal in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct End {
    /// How it sends; `None` if its attributes could not be read.
    pub fabric: Option<Fabric>,
    /// Logical state.
    pub state: PortState,
    /// The active MTU, if that is known.
    pub mtu: Option<Mtu>,
    /// The P_Keys of an InfiniBand port, ascending; `None` if they were not read.
    pub pkeys: Option<Vec<PKey>>,
    /// The GID.
    pub used: Used,
    /// InfiniBand: the GID by which a program decides whether it reaches another port; `None` if it does not.
    pub compared: Option<Compared>,
}

/// A GID of InfiniBand that a program compares with the one that another port takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Compared {
    /// The program.
    pub by: Chooser,
    /// The GID's prefix.
    pub prefix: u64,
    /// Whether it has the number of a router's path (FLID) in it, and the program heeds that.
    pub is_routable: bool,
}

impl Compared {
    /// What NCCL or UCX compares of the GID in a row.
    fn of(by: Chooser, inventory: &Inventory, gid: Gid) -> Option<Self> {
        let variable = |name: &str| inventory.setting(name).map(|own| own.value.as_str());
        let heeds = || ucx::Settings::new(ucx::Release::NEWEST, variable).heeds_flid();
        let is_routable = match by {
            Chooser::Recommended => return None,
            Chooser::Nccl => nccl::has_flid(gid),
            Chooser::Ucx => ucx::has_flid(gid) && heeds(),
        };
        Some(Self { by, prefix: gid.subnet_prefix(), is_routable })
    }

    /// What of the prefix the program compares. NCCL compares the number of the subnet, and leaves out the FLID.
    pub(super) fn subnet(self) -> u64 {
        match self.by {
            Chooser::Nccl => self.prefix & 0xffff,
            _ => self.prefix,
        }
    }
}

/// How a port sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Fabric {
    /// InfiniBand.
    InfiniBand,
    /// Omni-Path, whose link layer is called InfiniBand too.
    OmniPath,
    /// One of these two; it is not known which.
    InfiniBandOrOmniPath,
    /// RoCE.
    Roce,
    /// iWARP.
    Iwarp,
    /// Something else, as the link layer and node type say it.
    Other(LinkLayer, NodeType),
}

impl Fabric {
    /// That of a port whose attributes are known. An Ethernet port whose protocol is not known has no other than RoCE.
    pub(super) fn of(record: &DeviceRecord, port: &PortRecord) -> Option<Self> {
        let (layer, node_type) = (port.known()?.link_layer, &record.device.node_type);
        let is_roce = layer == LinkLayer::ETHERNET && record.is_roce(port) != Some(false);
        Some(match layer {
            LinkLayer::INFINIBAND => match record.is_omni_path() {
                Some(true) => Self::OmniPath,
                Some(false) => Self::InfiniBand,
                None => Self::InfiniBandOrOmniPath,
            },
            _ if is_roce => Self::Roce,
            LinkLayer::ETHERNET if *node_type == NodeType::RNIC => Self::Iwarp,
            _ => Self::Other(layer, *node_type),
        })
    }

    /// Whether its ports are in subnets.
    pub(super) const fn has_subnets(self) -> bool {
        matches!(self, Self::InfiniBand | Self::OmniPath | Self::InfiniBandOrOmniPath)
    }
}

impl core::fmt::Display for Fabric {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::InfiniBand => f.write_str("InfiniBand"),
            Self::OmniPath => f.write_str("Omni-Path"),
            Self::InfiniBandOrOmniPath => f.write_str("InfiniBand or Omni-Path"),
            Self::Roce => f.write_str("RoCE"),
            Self::Iwarp => f.write_str("iWARP"),
            Self::Other(layer, node_type) => write!(f, "link layer {layer}, node type {node_type}"),
        }
    }
}

/// The GID that an end uses.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Used {
    /// A row of RoCE, or of another fabric that has no subnets.
    Row(UsedRow),
    /// InfiniBand: the prefix of its subnet, which is that of its first GID, if that is known.
    Subnet(Option<u64>),
    /// None is usable.
    None,
    /// The program has no active port on this host: its list of devices leaves this one out, and all others.
    NotListed,
    /// It is not known which.
    Unknown,
}

/// A row, as far as the other end depends on it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct UsedRow {
    /// Its type; `None` if that could not be read.
    pub gid_type: Option<GidType>,
    /// The family of its address.
    pub family: Family,
    /// Where its address is.
    pub site: Site,
    /// Its interface, if that is not the port's own.
    pub upper: Option<Upper>,
    /// Whether its interface is proven to be in the host's namespace.
    pub is_proven: bool,
    /// What keeps everybody from reaching it.
    pub fault: Option<Obstacle>,
    /// Which other ends a program tries to reach from it.
    pub reach: Reach,
    /// Whether RDMA may reach nobody from its address ([`Doubt::Address`](super::Doubt::Address)).
    pub may_reach_nobody: bool,
}

/// Which addresses a program takes for reachable, by its own settings. Only UCX has such.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Reach {
    /// Those that the kernel has a route to.
    #[default]
    Routed,
    /// Those of its own network.
    Network,
    /// Those whose first bits are its own, how many these are being set, or taken from another address of the interface.
    Part,
}

impl Reach {
    /// That of UCX from a row of RoCE, by `UCX_IB_ROCE_LOCAL_SUBNET`, `UCX_IB_ROCE_REACHABILITY_MODE` (1.19) and
    /// `UCX_IB_ROCE_SUBNET_PREFIX_LEN`.
    ///
    /// Its own network has as many bits for UCX as that of the first address of the row's interface that UCX finds. Of
    /// RoCE v1 they do not matter.
    ///
    /// ```
    /// use uverbs::choose::Surroundings;
    /// use uverbs::fleet::Reach;
    /// use uverbs::inventory::GidRow;
    ///
    /// fn may_cross(host: &Surroundings, row: &GidRow) -> bool {
    ///     Reach::of_ucx(host, row) == Reach::Routed
    /// }
    /// ```
    #[must_use]
    pub fn of_ucx(here: &Surroundings<'_>, row: &GidRow) -> Self {
        let is = |name: &str, own: &[&str]| {
            let value = here.setting(name);
            value.is_none_or(|value| own.iter().any(|own| own.eq_ignore_ascii_case(value)))
        };
        let is_routed = is("UCX_IB_ROCE_LOCAL_SUBNET", &["n", "no", "off", "0"])
            && is("UCX_IB_ROCE_REACHABILITY_MODE", &["route", "all"]);
        match is("UCX_IB_ROCE_SUBNET_PREFIX_LEN", &["auto"]) {
            _ if is_routed || row.record.entry.gid_type() == GidType::ROCE_V1 => Self::Routed,
            true if reaches_network(here, row) => Self::Network,
            _ => Self::Part,
        }
    }
}

/// Whether UCX takes the network of a row's address for as large as it is, or larger, whichever address of the interface
/// it finds first. It leaves out those that are link-local in IPv6. Of two families it may mix up the lengths.
fn reaches_network(here: &Surroundings<'_>, row: &GidRow) -> bool {
    let entry = &row.record.entry;
    let index = row.netdev.as_ref().map(|own| own.index).or(entry.netdev_ifindex());
    let Some(interface) = index.and_then(|own| here.inventory.interface(own.get())) else {
        return false;
    };
    let (own, other) = match (address_of(entry.gid()), here.longest_prefixes(interface)) {
        (IpAddr::V4(_), [v4, v6]) => (v4, v6),
        (IpAddr::V6(_), [v4, v6]) => (v6, v4),
    };
    other.is_none() && own.is_some() && own == here.prefix(interface, entry.gid())
}

/// An interface above a port's own, or one that may be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Upper {
    /// A VLAN (IEEE 802.1Q), by its id.
    Vlan(u16),
    /// A bond, a bridge, or what a container has, by its name; also a VLAN whose id is not known, and a tunnel that is the
    /// port's own.
    Named(String),
    /// A VLAN on another one, or on what adds more to packets, or of 802.1ad: not all that it adds is known.
    Stacked,
    /// It is not known which one, or whether it is the port's own.
    Unread,
}

impl core::fmt::Display for Upper {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Vlan(id) => write!(f, "VLAN {id}"),
            Self::Named(name) => f.write_str(name),
            Self::Stacked => f.write_str("a stacked or other VLAN"),
            Self::Unread => f.write_str("?"),
        }
    }
}

/// Where an address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Site {
    /// A network, by its first address: that of the interface that has the address.
    Network(Network),
    /// A link, and nobody knows which one: the address is link-local.
    Link,
    /// It is not known: the interface's addresses could not be read, or it is not one of them.
    Unknown,
}

impl Site {
    fn of(gid: Gid, bits: Option<u8>) -> Self {
        match bits {
            _ if is_of_link(gid) => Self::Link,
            Some(bits) => Self::Network(Network::of(address_of(gid), bits)),
            None => Self::Unknown,
        }
    }
}

/// A host whose ports are looked at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'p, 'i> {
    pub(super) here: &'p Surroundings<'i>,
    pub(super) record: &'i DeviceRecord,
    pub(super) port: &'i PortRecord,
}

impl End {
    /// A port of which nothing could be read.
    #[must_use]
    pub const fn unread() -> Self {
        Self {
            fabric: None,
            state: PortState::NOP,
            mtu: None,
            pkeys: None,
            used: Used::Unknown,
            compared: None,
        }
    }

    /// A port whose table could not be read, or nothing of it.
    pub(super) fn without_table(record: &DeviceRecord, port: &PortRecord) -> Self {
        let fabric = Fabric::of(record, port);
        let Some(own) = port.known() else { return Self::unread() };
        let is_subnet = fabric.is_some_and(Fabric::has_subnets);
        Self {
            fabric,
            state: own.state,
            mtu: own.active_mtu,
            pkeys: if is_subnet { pkeys(port) } else { None },
            used: Used::Unknown,
            compared: None,
        }
    }

    /// What distinguishes it from other ends whose networks are left out.
    pub(super) fn key(&self) -> Vec<u8> {
        let Self { fabric, state, mtu, pkeys, used, compared } = self;
        let (fabric, layer, node_type) = match fabric {
            None => (0, LinkLayer::default(), NodeType::default()),
            Some(Fabric::InfiniBand) => (1, LinkLayer::default(), NodeType::default()),
            Some(Fabric::OmniPath) => (2, LinkLayer::default(), NodeType::default()),
            Some(Fabric::Roce) => (3, LinkLayer::default(), NodeType::default()),
            Some(Fabric::Iwarp) => (4, LinkLayer::default(), NodeType::default()),
            Some(Fabric::Other(layer, node_type)) => (5, *layer, *node_type),
            Some(Fabric::InfiniBandOrOmniPath) => (6, LinkLayer::default(), NodeType::default()),
        };
        let mtu = mtu.map_or([0, 0], |own| [1, own.0]);
        let mut key = vec![fabric, layer.0, node_type.0, state.0, mtu[0], mtu[1]];
        key.push(compared.map_or(0, |own| 1 + u8::from(own.is_routable) + 2 * own.by as u8));
        key.extend_from_slice(&compared.map_or(0, |own| own.prefix).to_be_bytes());
        match used {
            Used::None => key.push(0),
            Used::NotListed => key.push(5),
            Used::Unknown => key.push(1),
            Used::Subnet(None) => key.push(2),
            Used::Subnet(Some(prefix)) => {
                key.push(3);
                key.extend_from_slice(&prefix.to_be_bytes());
            }
            Used::Row(own) => {
                let UsedRow {
                    gid_type,
                    family,
                    site,
                    upper,
                    is_proven,
                    fault,
                    reach,
                    may_reach_nobody,
                } = own;
                let site = match site {
                    Site::Network(_) => 0,
                    Site::Link => 1,
                    Site::Unknown => 2,
                };
                let is_v4 = *family == Family::V4;
                let (kind, vlan, name) = match upper {
                    None => (0, 0, ""),
                    Some(Upper::Vlan(id)) => (1, *id, ""),
                    Some(Upper::Named(name)) => (2, 0, name.as_str()),
                    Some(Upper::Unread) => (3, 0, ""),
                    Some(Upper::Stacked) => (4, 0, ""),
                };
                let fault = fault.map_or(0, |own| 1 + own as u8);
                key.push(4);
                key.extend_from_slice(&gid_type.map_or(u32::MAX, |own| own.0).to_be_bytes());
                key.extend_from_slice(&[site, is_v4.into(), (*is_proven).into(), fault]);
                let lacks = u8::from(*may_reach_nobody);
                key.extend_from_slice(&[gid_type.is_some().into(), kind, *reach as u8, lacks]);
                key.extend_from_slice(&vlan.to_be_bytes());
                key.extend_from_slice(name.as_bytes());
            }
        }
        // Those of InfiniBand have no interface's name before them.
        if let Some(keys) = pkeys {
            key.push(1);
            key.extend(keys.iter().flat_map(|own| own.0.to_be_bytes()));
        }
        key
    }

    /// The end of a port that is used so, `is_sure` if that is known; `None` if the port is not used on purpose: a
    /// setting leaves it out, or the program has no room for it or does not know its link layer.
    #[must_use]
    pub fn of(
        inventory: &Inventory,
        (record, port): (&DeviceRecord, &PortRecord),
        seen: &Port<'_>,
        (chooser, outcome, is_sure): (Chooser, &Outcome, bool),
    ) -> Option<Self> {
        let here = Surroundings::of(inventory);
        end(Place { here: &here, record, port }, seen, chooser, (outcome, is_sure))
    }
}

/// The same, where what is around the port is known.
pub(super) fn end(
    place: Place<'_, '_>,
    seen: &Port<'_>,
    chooser: Chooser,
    (outcome, is_sure): (&Outcome, bool),
) -> Option<End> {
    let Place { record, port, .. } = place;
    let fabric = Fabric::of(record, port);
    let is_subnet = fabric.is_some_and(Fabric::has_subnets);
    let used = match outcome {
        Outcome::Ignored(
            Why::Disabled
            | Why::NotListed(_)
            | Why::NoRoom
            | Why::Overrun
            | Why::LinkLayer(_)
            | Why::PortNumber
            | Why::BeyondSecond,
        ) if is_sure => return None,
        Outcome::Ignored(Why::NotKnown(_)) => Used::Unknown,
        _ if !is_sure => Used::Unknown,
        // It may take the GID of a router (FLID), whose prefix is another one.
        Outcome::Taken(_) | Outcome::ByLid if is_subnet => {
            Used::Subnet(seen.row(0).map(|row| row.gid.subnet_prefix()))
        }
        Outcome::ByLid => Used::Unknown,
        Outcome::Taken(index) => match (seen.row(*index), record.row(port.number, *index)) {
            (Some(row), Some(record)) => {
                let reach = match chooser {
                    Chooser::Ucx => Reach::of_ucx(place.here, record),
                    Chooser::Nccl | Chooser::Recommended => Reach::Routed,
                };
                Used::Row(UsedRow { reach, ..used(place, seen, row, record) })
            }
            _ => Used::Unknown,
        },
        Outcome::Empty(_) | Outcome::Outside(_) | Outcome::Fails(_) | Outcome::Ignored(_) => {
            Used::None
        }
    };
    let compared = match outcome {
        Outcome::Taken(index) if is_subnet && is_sure => {
            let gid = seen.row(*index).map(|row| row.gid);
            gid.and_then(|gid| Compared::of(chooser, place.here.inventory, gid))
        }
        _ => None,
    };
    Some(End { state: seen.state, used, compared, ..End::without_table(record, port) })
}

/// Those that a port has, ascending.
fn pkeys(port: &PortRecord) -> Option<Vec<PKey>> {
    let keys = port.pkeys.as_ref()?.as_ref().ok()?;
    let mut keys: Vec<PKey> = keys.iter().map(|(_, key)| *key).collect();
    keys.sort_unstable();
    keys.dedup();
    Some(keys)
}

fn used(place: Place<'_, '_>, seen: &Port<'_>, row: &Row<'_>, record: &GidRow) -> UsedRow {
    let here = place.here;
    let interface = here.interface_of(record);
    let bits = interface.and_then(|own| here.prefix(own, row.gid));
    let caveats = caveats(seen, row.index);
    let fault = caveats.iter().find_map(|caveat| match caveat {
        Caveat::Down => Some(Obstacle::InterfaceDown),
        // It may have found the neighbour for other traffic, or send without encryption; or they are on one port.
        Caveat::Unfit(why) if is_doubt(*why) => None,
        Caveat::AddressGone | Caveat::Unfit(_) => Some(Obstacle::AddressGone),
        // A program sends the index as one byte.
        Caveat::BeyondByte => Some(Obstacle::NoGid),
        _ => None,
    });
    UsedRow {
        gid_type: (!row.is_type_unread()).then_some(row.gid_type),
        family: row.family(),
        site: Site::of(row.gid, bits),
        upper: upper(place, interface, row.gid),
        is_proven: matches!(row.home, Home::Ours { .. }),
        fault,
        reach: Reach::Routed,
        may_reach_nobody: caveats.iter().any(|own| match own {
            Caveat::Unfit(why) => is_doubt(*why),
            own => *own == Caveat::MayBeUnheard,
        }),
    }
}

/// Whether others may be reached all the same.
fn is_doubt(why: Unfit) -> bool {
    use Unfit::{Bypassed, NoLinkLocal, NoNeighbours, NoSocket, Unheard};
    matches!(why, NoLinkLocal | NoNeighbours | Bypassed | Unheard | NoSocket)
}

fn upper(place: Place<'_, '_>, interface: Option<&Interface>, gid: Gid) -> Option<Upper> {
    // Only RDMA netlink says which is the port's own.
    let netdev = place.port.netdev.as_ref().ok().filter(|_| place.here.inventory.has_netlink);
    let Some((interface, netdev)) = interface.zip(netdev) else { return Some(Upper::Unread) };
    // Soft RoCE may be on a tunnel, which may have another far end.
    let adds = place.here.unfit(interface, gid) == Some(Unfit::Bypassed);
    if netdev.as_ref().is_some_and(|own| own.index == interface.index) && !adds {
        return None;
    }
    let name = || Upper::Named(interface.name.clone());
    let is_vlan = interface.vlan.is_some() || interface.vlan_on.is_some();
    if is_vlan && adds {
        return Some(Upper::Stacked);
    }
    Some(interface.vlan.map_or_else(name, Upper::Vlan))
}
