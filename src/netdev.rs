//! Network interfaces, as plain values.
//!
//! [`Host::netdevs`](crate::Host::netdevs) finds the interface of a GID,
//! [`Host::interfaces`](crate::Host::interfaces) lists all of this network namespace.

use core::num::NonZeroU32;
use std::net::IpAddr;

use crate::guid::Guid;

/// The ids of VLANs (VID).
pub(crate) const VLAN_IDS: core::ops::RangeInclusive<u16> = 0..=4094;

/// Whether an address is a link-local one of IPv6.
pub(crate) fn is_local_v6(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V6(v6) if v6.is_unicast_link_local())
}

/// A network interface that is shown to be in this namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(expecting = "an object")
)]
#[non_exhaustive]
pub struct Netdev {
    /// Its index here.
    pub index: NonZeroU32,
    /// Its name here; `#` and its index, if the name does not show as what it is, or is one such as `-`, `?` or `#5`.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "crate::form::interface_name"))]
    pub name: String,
}

impl Netdev {
    /// An interface, for readers of records and for tests.
    #[must_use]
    pub fn new(index: NonZeroU32, name: impl Into<String>) -> Self {
        Self { index, name: name.into() }
    }
}

/// A network interface of this namespace, with its addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(expecting = "an object")
)]
#[non_exhaustive]
pub struct Interface {
    /// Its index here.
    pub index: NonZeroU32,
    /// Its name here; `#` and its index, if the name does not show as what it is, or is one such as `-`, `?` or `#5`.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "crate::form::interface_name"))]
    pub name: String,
    /// Whether it is switched on (`IFF_UP`).
    pub is_up: bool,
    /// Whether it has a carrier (`IFF_LOWER_UP`).
    pub is_lower_up: bool,
    /// MTU: the longest packet in bytes.
    pub mtu: u32,
    /// MAC address; `None` where it is not of six bytes, as on IPoIB.
    #[cfg_attr(feature = "serde", serde(default, with = "crate::form::mac"))]
    pub mac: Option<[u8; 6]>,
    /// Of an IPoIB interface, the GUID of the InfiniBand port below it.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub port_guid: Option<Guid>,
    /// Of a VLAN (IEEE 802.1Q), its id (VID), 0 to 4094. `None` for others, and in snapshots of older releases.
    #[cfg_attr(
        feature = "serde",
        serde(
            default,
            deserialize_with = "crate::form::vlan",
            skip_serializing_if = "Option::is_none"
        )
    )]
    pub vlan: Option<u16>,
    /// Of a VLAN of either kind of tag, the index of the interface that it is on; of one on other VLANs, of that below them all.
    /// `None` if that is in another network namespace, for others, and in snapshots of older releases.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub vlan_on: Option<NonZeroU32>,
    /// Addresses with the lengths of their prefixes; of a point-to-point link as in GIDs, for IPv4 the
    /// far end's and for IPv6 the near end's.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "crate::form::list"))]
    pub addresses: Vec<(IpAddr, u8)>,
    /// Those of its addresses that no program can use, each with the reason.
    #[cfg_attr(
        feature = "serde",
        serde(
            default,
            deserialize_with = "crate::form::list",
            skip_serializing_if = "Vec::is_empty"
        )
    )]
    pub unfit: Vec<(IpAddr, Unfit)>,
}

/// Why an address cannot be used, although the kernel makes a GID of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum Unfit {
    /// It is the other end's of a point-to-point link (`ip address add NEAR peer FAR`). Of IPv4 the kernel makes the
    /// GID of that end.
    FarEnd,
    /// Another host has it: duplicate address detection failed (`IFA_F_DADFAILED`).
    Duplicate,
    /// What arrives at its interface is taken by another one, and so the answers of neighbours are: its interface is a
    /// member of a bridge, bond, team or the like, or below a macvlan in the mode passthru.
    Enslaved,
    /// RDMA leaves out what its interface, or one below that, adds to packets: a tunnel (`flannel.1` of VXLAN), `MACsec` without
    /// offload, a VLAN's tag of 802.1ad, or the outer one of two tags. So what is sent does not arrive, or is not
    /// encrypted. A device whose own port is such an interface (soft RoCE) sends by it.
    Bypassed,
    /// It is of soft RoCE, which takes nothing that arrives at its interface, but only at the port's own and at VLANs on
    /// that. No address has this reason; a row has it.
    #[cfg_attr(feature = "serde", serde(skip))]
    Unheard,
    /// It is of soft RoCE, which has no socket (UDP port 4791) in this network namespace: before it had namespaces it has one in
    /// the first only. No address has this reason; a row has it.
    #[cfg_attr(feature = "serde", serde(skip))]
    NoSocket,
    /// Its interface asks for no neighbours (`IFF_NOARP`), as an ipvlan in the mode l3 or l3s, and none is set by hand that
    /// RDMA is known to look for, which is since Linux 6.18. The kernel takes the interface's own MAC address for theirs, or none.
    NoNeighbours,
    /// It is a global IPv6 address, and its interface has no link-local one that can be used, and no neighbour that is set
    /// by hand. The kernel asks for no neighbour then, unless other traffic does.
    NoLinkLocal,
    /// It is of iWARP, whose programs connect addresses, and its interface has none but link-local ones, as that of a
    /// bridge's member. No address has this reason; a row has it.
    #[cfg_attr(feature = "serde", serde(skip))]
    NoAddress,
    /// The kernel made the GID of the MAC address, and the interface does not have that address: IPv6 is off, or it has
    /// another link-local address. Nobody can be reached by it with RoCE v2. No address has this reason; a row has it.
    #[cfg_attr(feature = "serde", serde(skip))]
    Unassigned,
    /// It is link-local and of RoCE v1, where the MAC address is taken from the GID, and that is not the interface's. No
    /// address has this reason; a row has it.
    #[cfg_attr(feature = "serde", serde(skip))]
    OtherMac,
    /// It is an IPv6 address (`::ffff:10.0.0.1`) that the kernel takes for one of IPv4, and the interface does not have
    /// that. No address has this reason; a row has it.
    #[cfg_attr(feature = "serde", serde(skip))]
    Mapped,
}

impl core::fmt::Display for Unfit {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::FarEnd => "its address is that of the other end of a point-to-point link",
            Self::Duplicate => "another host has its address (duplicate address detection failed)",
            Self::Enslaved => {
                "another interface takes what arrives at its own, as a bridge or bond does"
            }
            Self::Bypassed => {
                "RDMA leaves out what its interface adds to packets (as VXLAN, MACsec, a second VLAN tag)"
            }
            Self::Unheard => {
                "soft RoCE takes only what arrives at its port's own interface, or at VLANs on that"
            }
            Self::NoSocket => {
                "soft RoCE has no socket in this network namespace (UDP port 4791), so it takes nothing that arrives"
            }
            Self::NoNeighbours => {
                "its interface asks for no neighbours (NOARP, as an ipvlan in the mode l3)"
            }
            Self::NoLinkLocal => {
                "its interface has no link-local IPv6 address, without which RDMA asks for no neighbour"
            }
            Self::NoAddress => "its interface has no address that iWARP could connect",
            Self::Unassigned => {
                "its interface does not have its address, which is made of the MAC address"
            }
            Self::OtherMac => {
                "RoCE v1 takes the MAC address from it, and its interface has another one"
            }
            Self::Mapped => {
                "the kernel takes it for an IPv4 address, which its interface does not have"
            }
        })
    }
}

impl Interface {
    /// An interface that is down, without addresses; set what you know. For readers of records and for
    /// tests.
    ///
    /// ```
    /// let mut loopback = uverbs::netdev::Interface::new(core::num::NonZeroU32::MIN, "lo");
    /// loopback.mtu = 65536;
    /// assert!(!loopback.is_up && loopback.addresses.is_empty());
    /// ```
    #[must_use]
    pub fn new(index: NonZeroU32, name: impl Into<String>) -> Self {
        Self {
            index,
            name: name.into(),
            is_up: false,
            is_lower_up: false,
            mtu: 0,
            mac: None,
            port_guid: None,
            vlan: None,
            vlan_on: None,
            addresses: Vec::new(),
            unfit: Vec::new(),
        }
    }
}
