//! The addresses that GIDs are made from: their families and networks.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::gid::Gid;

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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Network {
    /// An address of it.
    pub address: IpAddr,
    /// How many bits are the same. A number above the address length means all bits.
    pub bits: u8,
}

impl Network {
    /// The network of so many bits that an address is in, by its first address: equal networks are equal values.
    #[must_use]
    pub(crate) fn of(address: IpAddr, bits: u8) -> Self {
        let first = |number: u128, length: u32| {
            let rest = length.saturating_sub(bits.into());
            number.checked_shr(rest).and_then(|own| own.checked_shl(rest)).unwrap_or(0)
        };
        match address {
            IpAddr::V4(own) => {
                let number = u32::try_from(first(own.to_bits().into(), u32::BITS)).unwrap_or(0);
                Self { address: Ipv4Addr::from_bits(number).into(), bits: bits.min(32) }
            }
            IpAddr::V6(own) => {
                let number = first(own.to_bits(), u128::BITS);
                Self { address: Ipv6Addr::from_bits(number).into(), bits: bits.min(128) }
            }
        }
    }

    /// Whether an address is in it. One of the other family is not.
    #[must_use]
    pub(crate) fn has(self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(own), IpAddr::V4(its)) => alike(&own.octets(), &its.octets(), self.bits),
            (IpAddr::V6(own), IpAddr::V6(its)) => alike(&own.octets(), &its.octets(), self.bits),
            _ => false,
        }
    }

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
pub(super) fn alike(one: &[u8], other: &[u8], bits: u8) -> bool {
    let number = |bytes: &[u8]| bytes.iter().fold(0u128, |sum, byte| sum << 8 | u128::from(*byte));
    let length = u32::try_from(one.len() * 8).unwrap_or(u128::BITS);
    let ignored = length.saturating_sub(bits.into());
    (number(one) ^ number(other)).checked_shr(ignored).unwrap_or(0) == 0
}

/// Whether an address is link-local as UCX and perftest see it: `fe80::/10`.
pub(crate) fn is_link_local(gid: Gid) -> bool {
    gid.ipv6().is_unicast_link_local()
}

/// Whether the address that a GID is made from is good on its link only.
pub(crate) fn is_of_link(gid: Gid) -> bool {
    is_link_local(gid) || gid.ipv4().is_some_and(|own| own.is_link_local())
}

/// Whether the lower half of a GID is not zero. UCX requires this of a port's GID.
pub(super) fn has_low_half(gid: Gid) -> bool {
    gid.interface_id() != 0
}

/// The address that a GID is made from.
pub(crate) fn address_of(gid: Gid) -> IpAddr {
    gid.ipv4().map_or(IpAddr::V6(gid.ipv6()), IpAddr::V4)
}

/// Reads an address; `None` for an address of another family.
pub(super) fn parse_address(text: &str, family: Family) -> Option<IpAddr> {
    match family {
        Family::V4 => text.parse().ok().map(IpAddr::V4),
        Family::V6 => text.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
    }
}
