//! What the kernel takes from a GID, and what it makes GIDs of.

use std::net::IpAddr;

use crate::gid::{DEFAULT_PREFIX, Gid, GidEntry, GidType};
use crate::netdev::{Interface, Unfit};

/// Whether a reason of an interface's counts for a row: what no neighbour is asked for needs none.
pub(super) fn counts(why: Unfit, entry: &GidEntry) -> bool {
    is_resolved(entry) || !is_of_neighbours(why)
}

/// Whether the kernel may make an address handle from a GID to itself, as UCX tries it, though others are not reached.
pub(super) fn is_own_reached(unfit: Option<Unfit>) -> bool {
    let is_reached = |why| {
        use Unfit::{Bypassed, Duplicate, NoSocket, Unheard};
        matches!(why, Duplicate | Bypassed | Unheard | NoSocket) || is_of_neighbours(why)
    };
    unfit.is_none_or(is_reached)
}

/// Of two reasons, the one that counts for fewer rows.
pub(super) fn weaker(own: Unfit, other: Unfit) -> Unfit {
    let rank = |why: &Unfit| match why {
        Unfit::Bypassed => 0,
        why if is_of_neighbours(*why) => 1,
        _ => 2,
    };
    core::cmp::min_by_key(own, other, rank)
}

/// Whether a reason is that the kernel finds no neighbours.
pub(super) fn is_of_neighbours(why: Unfit) -> bool {
    matches!(why, Unfit::Enslaved | Unfit::NoNeighbours | Unfit::NoLinkLocal)
}

/// Whether this is an IPv4 address written as IPv6.
pub(super) fn is_mapped(address: &IpAddr) -> bool {
    address.to_canonical() != *address
}

/// Whether the kernel resolves a GID by its address, as of all but the link-local ones of RoCE v1, which have the MAC
/// address in them. Of a type that could not be read it is not known.
pub(super) fn is_resolved(entry: &GidEntry) -> bool {
    let is_local = entry.gid().subnet_prefix() == DEFAULT_PREFIX;
    entry.gid_type() == GidType::ROCE_V2 || entry.gid_type() == GidType::ROCE_V1 && !is_local
}

/// Whether the kernel takes the MAC address from a GID.
pub(super) fn is_by_mac(entry: &GidEntry) -> bool {
    entry.gid_type() == GidType::ROCE_V1 && !is_resolved(entry)
}

/// The MAC address that the kernel takes from a GID, whatever is in the middle of it.
pub(super) fn mac_in(gid: Gid) -> [u8; 6] {
    let [.., m0, m1, m2, _, _, m3, m4, m5] = gid.to_bytes();
    [m0 ^ 2, m1, m2, m3, m4, m5]
}

/// Why nobody can be reached by a GID whose MAC address is taken from it.
pub(super) fn has_other_mac(interface: &Interface, entry: &GidEntry) -> Option<Unfit> {
    let is_other = interface.mac.is_some_and(|mac| mac != mac_in(entry.gid()));
    (is_by_mac(entry) && is_other).then_some(Unfit::OtherMac)
}

/// The MAC address in a default GID of an interface with a device id. The kernel then does not put `ff:fe` in
/// the middle, and does not change a bit.
pub(super) fn mac_with_id(gid: Gid) -> Option<[u8; 6]> {
    let id = gid.interface_id();
    let [_, _, mac @ ..] = (id >> 40 << 24 | id & 0xff_ffff).to_be_bytes();
    (gid.subnet_prefix() == DEFAULT_PREFIX).then_some(mac)
}

/// The GIDs that the kernel derives from a MAC address: RoCE's default GID, and iWARP's only GID.
pub(super) fn made_of(mac: [u8; 6]) -> [Gid; 2] {
    [Gid::of_roce(mac), Gid::of_iwarp(mac)]
}
