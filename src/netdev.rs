//! Network interfaces, as plain values.
//!
//! Whose interface a GID is, is found out by [`Host::netdevs`](crate::host::Host::netdevs).

use core::num::NonZeroU32;
use std::net::IpAddr;

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
