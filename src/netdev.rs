//! Network interfaces, as plain values.
//!
//! [`Host::netdevs`](crate::Host::netdevs) finds the interface of a GID,
//! [`Host::interfaces`](crate::Host::interfaces) lists all of this network namespace.

use core::num::NonZeroU32;
use std::net::IpAddr;

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
    /// Its name here; `#` and its index, if the name does not show as what it is.
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
    /// Its name here; `#` and its index, if the name does not show as what it is.
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
    /// Addresses with the lengths of their prefixes; of a point-to-point link as in GIDs, for IPv4 the
    /// far end's and for IPv6 the near end's.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "crate::form::list"))]
    pub addresses: Vec<(IpAddr, u8)>,
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
            addresses: Vec::new(),
        }
    }
}
