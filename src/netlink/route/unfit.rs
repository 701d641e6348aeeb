//! Addresses that no program can use, and why.

use std::collections::BTreeSet;
use std::net::IpAddr;

use nix::libc;

use super::RouteDump;
use super::address::Address;
use super::link::{LOOPBACK, LOWER_UP, Link, UP};
use crate::netdev::{Unfit, is_local_v6};

/// A kind whose members send for it.
const VRF: &str = "vrf";

/// What decides about the addresses of a namespace.
pub(super) struct Around<'d> {
    dump: &'d RouteDump,
    /// The interfaces' own addresses that no other host has.
    fit: BTreeSet<(u32, IpAddr)>,
    /// The interfaces with a link-local address of IPv6 that can be used.
    with_local: BTreeSet<u32>,
    /// The interfaces of which one above takes all that arrives.
    taken: BTreeSet<u32>,
    /// The interfaces past which RDMA sends.
    bypassed: BTreeSet<u32>,
}

impl<'d> Around<'d> {
    pub(super) fn of(dump: &'d RouteDump) -> Self {
        let fit = dump.addresses.iter().filter(|own| !own.is_duplicate);
        let fit: BTreeSet<(u32, IpAddr)> = fit.map(|own| (own.index, own.near)).collect();
        let local = fit.iter().filter(|(_, ip)| is_local_v6(*ip));
        let with_local = local.map(|(index, _)| *index).collect();
        let taken = dump.links.by_index.values().filter_map(|link| link.takes_from).collect();
        Self { dump, fit, with_local, taken, bypassed: dump.links.bypassed() }
    }

    /// Why no program can use an address, if there is a reason.
    pub(super) fn unfit(&self, own: &Address) -> Option<Unfit> {
        // It may be the far end of one address, and an address of its own as well.
        let why = of_itself(own).filter(|_| !self.fit.contains(&(own.index, own.ip)));
        why.or_else(|| self.of_link(own))
    }

    /// The reason that an address has from its interface.
    fn of_link(&self, own: &Address) -> Option<Unfit> {
        let link = self.dump.links.by_index.get(&own.index)?;
        // IPv4 written as IPv6 is one of IPv4 to the kernel, which is another reason.
        if own.ip.to_canonical() != own.ip {
            return None;
        }
        if link.is_taken() || self.taken.contains(&own.index) {
            return Some(Unfit::Enslaved);
        }
        // What a device on the interface itself does not bypass comes first.
        let is_bypassed = self.bypassed.contains(&own.index);
        self.of_neighbours(link, own.ip).or(is_bypassed.then_some(Unfit::Bypassed))
    }

    /// Why the kernel finds no neighbours from an address of an interface, whatever the address is.
    fn of_neighbours(&self, link: &Link, ip: IpAddr) -> Option<Unfit> {
        let index = link.index.get();
        let family = if ip.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
        let is_set_by_hand = self.dump.neighbours.contains(&(index, family));
        // From an address of a VRF its members ask.
        if is_set_by_hand || link.flags & LOOPBACK != 0 || link.kind == VRF {
            return None;
        }
        if !link.asks() {
            // A tunnel has no neighbours. On a dummy nobody else is there.
            let is_alone = !link.is_ethernet || self.dump.links.is_on_dummy(index);
            return (!is_alone).then_some(Unfit::NoNeighbours);
        }
        let is_global = ip.is_ipv6() && !is_local_v6(ip);
        let is_up = link.flags & (UP | LOWER_UP) == UP | LOWER_UP;
        let has_local = self.with_local.contains(&index);
        (is_global && is_up && !has_local).then_some(Unfit::NoLinkLocal)
    }
}

/// The reason that an address has from itself.
fn of_itself(own: &Address) -> Option<Unfit> {
    if own.ip == own.near {
        own.is_duplicate.then_some(Unfit::Duplicate)
    } else {
        Some(Unfit::FarEnd)
    }
}
