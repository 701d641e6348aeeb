//! Route netlink: the network interfaces of this namespace, what is above what, and their addresses.

mod address;
pub(crate) mod link;
mod links;
mod unfit;

use std::collections::{BTreeMap, BTreeSet};
use std::mem::take;
use std::net::IpAddr;

use nix::libc;
use rustix::io::Errno;

use self::address::{ADDRESS_BODY, NEIGHBOUR_BODY};
pub(crate) use self::address::{Address, gid_of, parse_address, parse_neighbour};
use self::link::{BUSES_OF_MASTERS, IPVLAN, LINK_BODY, LOWER_UP, UP};
pub(crate) use self::link::{Link, parse_link, shown};
pub(crate) use self::links::Links;
use self::unfit::Around;
use super::{Message, Socket};
use crate::error::Cause;
use crate::kernel::release;
use crate::netdev::{Interface, Unfit};

/// Leaves the counters of virtual functions out of interface messages, which are most of their bytes.
/// Those of the interface itself nothing leaves out: for them mlx5 asks its firmware, two commands
/// (`QUERY_VPORT_COUNTER`, `QUERY_Q_COUNTER`) an interface.
const SKIP_STATISTICS: u32 = 1 << 3;

/// An ipvlan says from this release on if what is below it is in another namespace.
const IPVLAN_SAYS: (u32, u32) = (5, 10);

/// The folder of all buses.
const BUSES: &str = "/sys/bus";

/// Since this release RDMA looks for neighbours also where an interface asks for none. Before, it takes no MAC address.
const NO_ARP_LOOKS: (u32, u32) = (6, 18);

/// The interfaces of this namespace with their addresses, as route netlink gave them.
#[derive(Debug, Default)]
pub(crate) struct RouteDump {
    pub(crate) links: Links,
    pub(crate) addresses: Vec<Address>,
    /// The interfaces on which neighbours are set by hand, each with a family; only where that matters.
    pub(crate) neighbours: BTreeSet<(u32, i32)>,
}

impl RouteDump {
    /// Reads all.
    pub(crate) fn read(socket: &mut Socket) -> Result<Self, Cause> {
        let links = read_links(socket)?;
        let addresses = read_addresses(socket)?;
        let mut own = Self { links, addresses, neighbours: BTreeSet::new() };
        let needs = |why: Unfit| matches!(why, Unfit::NoNeighbours | Unfit::NoLinkLocal);
        let around = Around::of(&own);
        if own.addresses.iter().filter_map(|own| around.unfit(own)).any(needs) {
            own.neighbours = read_neighbours(socket)?;
            own.heed(release());
        }
        Ok(own)
    }

    /// Leaves out the neighbours that RDMA does not look for on this release: those on interfaces without ARP. Kernels that
    /// have that change from a later one are not known by their number.
    fn heed(&mut self, release: Option<(u32, u32)>) {
        if release.is_none_or(|own| own < NO_ARP_LOOKS) {
            let asks = |index: u32| self.links.by_index.get(&index).is_some_and(Link::asks);
            self.neighbours.retain(|(index, _)| asks(*index));
        }
    }

    /// The interfaces by index.
    pub(crate) fn interfaces(&self) -> Vec<Interface> {
        let mut addresses: BTreeMap<u32, Vec<(IpAddr, u8)>> = BTreeMap::new();
        let mut unfit: BTreeMap<u32, Vec<(IpAddr, Unfit)>> = BTreeMap::new();
        let around = Around::of(self);
        for own in &self.addresses {
            addresses.entry(own.index).or_default().push((own.ip, own.prefix));
            if let Some(why) = around.unfit(own) {
                unfit.entry(own.index).or_default().push((own.ip, why));
            }
        }
        let interface = |link: &Link| Interface {
            index: link.index,
            is_up: link.flags & UP != 0,
            is_lower_up: link.flags & LOWER_UP != 0,
            mtu: link.mtu,
            mac: link.mac,
            port_guid: link.port_guid,
            vlan: link.vlan,
            vlan_on: self.links.below_vlans(link),
            addresses: addresses.get_mut(&link.index.get()).map(take).unwrap_or_default(),
            unfit: unfit.get_mut(&link.index.get()).map(take).unwrap_or_default(),
            name: link.name.clone(),
        };
        self.links.by_index.values().map(interface).collect()
    }
}

pub(crate) fn read_addresses(socket: &mut Socket) -> Result<Vec<Address>, Cause> {
    let request = Message::new(libc::RTM_GETADDR, &[0; ADDRESS_BODY]);
    Ok(socket.dump(&request, parse_address)?.into_iter().flatten().collect())
}

/// The interfaces on which neighbours are set by hand, each with their family.
fn read_neighbours(socket: &mut Socket) -> Result<BTreeSet<(u32, i32)>, Cause> {
    let request = Message::new(libc::RTM_GETNEIGH, &[0; NEIGHBOUR_BODY]);
    Ok(socket.dump(&request, parse_neighbour)?.into_iter().flatten().collect())
}

pub(crate) fn read_links(socket: &mut Socket) -> Result<Links, Cause> {
    let request = Message::new(libc::RTM_GETLINK, &[0; LINK_BODY])
        .number(libc::IFLA_EXT_MASK, SKIP_STATISTICS);
    let links = socket.dump(&request, parse_link)?;
    let mut links: Vec<Link> = links.into_iter().flatten().collect();
    doubt(&mut links, &release, &may_have_masters);
    Ok(links.into_iter().collect())
}

/// Doubts what a message does not say on every kernel and machine. Neither is asked unless it matters.
fn doubt(
    links: &mut [Link],
    release: &dyn Fn() -> Option<(u32, u32)>,
    may_have_masters: &dyn Fn() -> bool,
) {
    let is_ipvlan = |link: &Link| link.kind == IPVLAN && link.lower.is_some();
    let is_old = links.iter().any(is_ipvlan) && release().is_none_or(|own| own < IPVLAN_SAYS);
    let is_unsaid = |link: &Link| link.kind.is_empty() && !link.is_bus_said;
    let may_be_master = links.iter().any(is_unsaid) && may_have_masters();
    for link in links {
        if is_old && is_ipvlan(link) {
            (link.lower, link.is_lower_told) = (None, false);
        }
        link.is_lower_told &= !(may_be_master && is_unsaid(link));
    }
}

/// Whether this may have such a bus: without its sysfs that is not known.
fn may_have_masters() -> bool {
    let has = |path: &str| rustix::fs::access(path, rustix::fs::Access::EXISTS);
    let may_have = |bus: &str| has(&format!("{BUSES}/{bus}")) != Err(Errno::NOENT);
    BUSES_OF_MASTERS.into_iter().any(may_have) || has(BUSES).is_err()
}

/// Reads interface messages, and what is above each of those that read; for fuzzing.
#[cfg(feature = "simulated-kernel")]
pub(crate) fn standing_on_each(messages: &[&[u8]]) -> Vec<(u32, BTreeSet<u32>)> {
    let read = |message: &&[u8]| parse_link(message).ok().flatten();
    let links: Links = messages.iter().filter_map(read).collect();
    links.by_index.values().map(|l| (l.index.get(), links.above(l.index))).collect()
}

#[cfg(test)]
pub(crate) mod tests;
