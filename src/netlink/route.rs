//! Route netlink: the network interfaces of this namespace, what is above what, and their addresses.

use core::num::NonZeroU32;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use nix::libc;
use rustix::io::Errno;

use super::{Attribute, Message, Socket, attributes, number_at, short_at};
use crate::error::Cause;
use crate::gid::Gid;
use crate::guid::Guid;
use crate::kernel::release;
use crate::netdev::{Interface, Netdev, Unfit, VLAN_IDS, is_local_v6};
use crate::text::is_shown_name;

/// Leaves the counters of virtual functions out of interface messages, which are most of their bytes.
/// Those of the interface itself nothing leaves out: for them mlx5 asks its firmware, two commands
/// (`QUERY_VPORT_COUNTER`, `QUERY_Q_COUNTER`) an interface.
const SKIP_STATISTICS: u32 = 1 << 3;

/// Lengths of the fixed parts of the route messages: `struct ifinfomsg`, `struct ifaddrmsg` and `struct ndmsg`.
const LINK_BODY: usize = 16;
const ADDRESS_BODY: usize = 8;
const NEIGHBOUR_BODY: usize = 12;

/// Attributes of a bond (`linux/if_link.h`).
const BOND_MODE: u16 = 1;
const BOND_ACTIVE_SLAVE: u16 = 2;

/// Attributes of a VLAN (`linux/if_link.h`), and the number of 802.1Q in `linux/if_ether.h`.
const VLAN_ID: u16 = 1;
const VLAN_PROTOCOL: u16 = 5;
const PROTOCOL_8021Q: u16 = 0x8100;

/// Modes of a bond in which only one member is active: active-backup, balance-tlb, balance-alb.
const MODES_WITH_ACTIVE_MEMBER: [u8; 3] = [1, 5, 6];
const MODES_WHERE_ROWS_STAY: [u8; 2] = [5, 6];

/// Kinds of interfaces that the kernel makes upper devices of their `IFLA_LINK`, and that say if that is in another
/// namespace: all of them on every kernel, but [`IPVLAN`]. With all others it may be the far end of a pair, or what
/// a tunnel is bound to.
const UPPER_KINDS: [&str; 4] = [VLAN, MACVLAN, IPVLAN, MACSEC];

/// A kind that adds a tag, and one that encrypts, if hardware does not do so (`IFLA_MACSEC_OFFLOAD` in `linux/if_link.h`).
const VLAN: &str = "vlan";
const MACSEC: &str = "macsec";
const MACSEC_OFFLOAD: u16 = 15;

/// It says so from this Linux on.
const IPVLAN: &str = "ipvlan";
const IPVLAN_SAYS: (u32, u32) = (5, 10);

/// Kinds of masters that take what arrives at their members, as does a master of no kind (`hv_netvsc`, `net_failover`). A
/// VRF does not, nor does a network of batman-adv.
const TAKING_KINDS: [&str; 5] = ["", "bridge", "bond", "team", "openvswitch"];

/// A kind with a mode (`IFLA_MACVLAN_MODE` in `linux/if_link.h`), in one of which it takes what arrives below. A macvtap
/// does so, too, but before Linux 5.18 it does not say that what is below it is in another namespace.
const MACVLAN: &str = "macvlan";
const MACVLAN_MODE: u16 = 1;
const PASSTHRU: u32 = 8;

/// Kinds that are no upper devices of anything but of their members, which are in their namespace.
const BOTTOM_KINDS: [&str; 4] = [DUMMY, "veth", "bond", "bridge"];

/// A kind whose members send for it.
const VRF: &str = "vrf";

/// Kinds that put what they send into packets of their own.
const TUNNEL_KINDS: [&str; 2] = ["vxlan", "batadv"];

/// Kinds by which nothing leaves the host, as the members of a bridge that lead to containers and virtual machines.
const INNER_KINDS: [&str; 3] = ["veth", "tun", DUMMY];

/// A kind that has no other end.
const DUMMY: &str = "dummy";

/// The buses of Hyper-V's interface and of virtio's (`net_failover`). Either may be the master of a virtual function, and
/// the two in different namespaces. It has no kind.
const BUSES_OF_MASTERS: [&str; 2] = ["vmbus", "virtio"];
const BUSES: &str = "/sys/bus";

/// Bits of an interface's flags (`linux/if.h`): switched on; `lo`; and able to carry packets.
const UP: u32 = 1 << 0;
const LOOPBACK: u32 = 1 << 3;
const NO_ARP: u32 = 1 << 7;
const LOWER_UP: u32 = 1 << 16;

/// Since this release RDMA looks for neighbours also where an interface asks for none. Before, it takes no MAC address.
const NO_ARP_LOOKS: (u32, u32) = (6, 18);

/// An interface, as far as it matters here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) index: NonZeroU32,
    pub(crate) name: String,
    /// Its flags, as in `linux/if.h`.
    pub(crate) flags: u32,
    pub(crate) is_ethernet: bool,
    pub(crate) mtu: u32,
    pub(crate) mac: Option<[u8; 6]>,
    /// Of IPoIB, the GUID of the port below it.
    pub(crate) port_guid: Option<Guid>,
    /// The interface that it is an upper device of, if that is in this namespace.
    pub(crate) lower: Option<u32>,
    /// Whether it is known what it is an upper device of.
    pub(crate) is_lower_told: bool,
    /// Its kind; empty for hardware, which has none.
    pub(crate) kind: String,
    /// Whether the bus of hardware is known, as it is from Linux 5.14 on, or it has none.
    pub(crate) is_bus_said: bool,
    /// The bond, bridge … that it belongs to, which is an upper device of it; and the kind of that.
    pub(crate) master: Option<u32>,
    pub(crate) master_kind: String,
    /// What it does with its members, if it is a bond.
    pub(crate) bond: Option<Bond>,
    /// Its id, if it is a VLAN of 802.1Q.
    pub(crate) vlan: Option<u16>,
    /// The interface here of which it takes all that arrives there, as a macvlan in the mode passthru.
    pub(crate) takes_from: Option<u32>,
    pub(crate) framing: Framing,
}

/// What an interface does to packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Nothing that RDMA does not do.
    #[default]
    Plain,
    /// It adds what RDMA leaves out: those of a tunnel, of `MACsec` without offload, a tag of 802.1ad.
    Added,
}

impl Link {
    pub(crate) fn netdev(&self) -> Netdev {
        Netdev { index: self.index, name: self.name.clone() }
    }

    /// Whether it asks for neighbours.
    fn asks(&self) -> bool {
        self.flags & NO_ARP == 0
    }

    /// Whether its master takes what arrives at it.
    fn is_taken(&self) -> bool {
        self.master.is_some() && TAKING_KINDS.contains(&self.master_kind.as_str())
    }

    /// Why the kernel finds no neighbours from an address of it, whatever that is.
    fn unfit(&self, ip: IpAddr, around: Around) -> Option<Unfit> {
        // From an address of a VRF its members ask.
        if around.has_neighbour || self.flags & LOOPBACK != 0 || self.kind == VRF {
            return None;
        }
        if !self.asks() {
            // A tunnel has no GIDs.
            let is_alone = around.is_dummy || !self.is_ethernet;
            return (!is_alone).then_some(Unfit::NoNeighbours);
        }
        let is_global = ip.is_ipv6() && !is_local_v6(ip);
        let is_up = self.flags & (UP | LOWER_UP) == UP | LOWER_UP;
        (is_global && is_up && !around.has_local).then_some(Unfit::NoLinkLocal)
    }
}

/// What else decides whether neighbours are found from an address of an interface.
#[derive(Clone, Copy, Debug)]
struct Around {
    /// Whether the interface has a link-local address of IPv6 that can be used.
    has_local: bool,
    /// Whether it is a dummy, or above one: nobody else is there.
    is_dummy: bool,
    /// Whether a neighbour of the address's family is set by hand.
    has_neighbour: bool,
}

/// How a bond uses its members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bond {
    pub(crate) mode: Option<u8>,
    /// The index of the active member, if there is one.
    pub(crate) active: Option<u32>,
}

impl Bond {
    /// Whether the kernel makes rows of the bond's addresses, and of VLANs on it, for this member's port: for
    /// all where none is active by the bond's mode, else for the active one. Without one (all are
    /// down) it goes by the last.
    pub(crate) fn serves(self, member: NonZeroU32) -> bool {
        let all = self.mode.is_some_and(|mode| !MODES_WITH_ACTIVE_MEMBER.contains(&mode));
        all || self.active == Some(member.get())
    }
}

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
        let needs = |why: &Unfit| matches!(why, Unfit::NoNeighbours | Unfit::NoLinkLocal);
        if own.interfaces().iter().flat_map(|own| &own.unfit).any(|(_, why)| needs(why)) {
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
        let fit = self.addresses.iter().filter(|own| !own.is_duplicate);
        let fit: BTreeSet<(u32, IpAddr)> = fit.map(|own| (own.index, own.near)).collect();
        let with_local: BTreeSet<u32> =
            fit.iter().filter(|(_, ip)| is_local_v6(*ip)).map(|(index, _)| *index).collect();
        let below: BTreeSet<u32> =
            self.links.by_index.values().filter_map(|link| link.takes_from).collect();
        let bypassed = self.links.bypassed();
        for own in &self.addresses {
            addresses.entry(own.index).or_default().push((own.ip, own.prefix));
            // It may be the far end of one address, and an address of its own as well.
            let why = own.unfit().filter(|_| !fit.contains(&(own.index, own.ip)));
            let of_link = || {
                let link = self.links.by_index.get(&own.index)?;
                // IPv4 written as IPv6 is one of IPv4 to the kernel, which is another reason.
                if own.ip.to_canonical() != own.ip {
                    return None;
                }
                if link.is_taken() || below.contains(&own.index) {
                    return Some(Unfit::Enslaved);
                }
                let family = if own.ip.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
                let around = Around {
                    has_local: with_local.contains(&own.index),
                    is_dummy: self.links.is_on_dummy(own.index),
                    has_neighbour: self.neighbours.contains(&(own.index, family)),
                };
                let is_bypassed = bypassed.contains(&own.index);
                // What a device on the interface itself does not bypass comes first.
                link.unfit(own.ip, around).or(is_bypassed.then_some(Unfit::Bypassed))
            };
            if let Some(why) = why.or_else(of_link) {
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
            addresses: addresses.remove(&link.index.get()).unwrap_or_default(),
            unfit: unfit.remove(&link.index.get()).unwrap_or_default(),
            name: link.name.clone(),
        };
        self.links.by_index.values().map(interface).collect()
    }
}

/// The interfaces of this namespace.
#[derive(Clone, Debug, Default)]
pub(crate) struct Links {
    pub(crate) by_index: BTreeMap<u32, Link>,
    /// Their indices by name.
    pub(crate) by_name: BTreeMap<String, u32>,
    /// What is directly above each, here.
    pub(crate) uppers: BTreeMap<u32, Vec<u32>>,
    /// The members of each bond, bridge …
    pub(crate) members: BTreeMap<u32, Vec<u32>>,
}

impl FromIterator<Link> for Links {
    fn from_iter<I: IntoIterator<Item = Link>>(list: I) -> Self {
        let mut links = Self::default();
        for link in list {
            let index = link.index.get();
            if let Some(lower) = link.lower {
                links.uppers.entry(lower).or_default().push(index);
            }
            links.by_name.insert(link.name.clone(), index);
            links.by_index.insert(index, link);
        }
        let masters = links.by_index.values().filter_map(|link| Some((link, link.master?)));
        let masters = masters.filter(|(link, master)| links.may_be_master(link, *master));
        let masters: Vec<_> = masters.map(|(link, master)| (link.index.get(), master)).collect();
        for (index, master) in masters {
            links.uppers.entry(index).or_default().push(master);
            links.members.entry(master).or_default().push(index);
        }
        links
    }
}

impl Links {
    /// Whether the master that an interface names may be the one here. One without a kind may be in another namespace, and
    /// here another interface may have its index; the two have one MAC address.
    fn may_be_master(&self, link: &Link, master: u32) -> bool {
        self.by_index.get(&master).is_none_or(|own| {
            let is_alike = !own.kind.is_empty() || own.mac.is_some() && own.mac == link.mac;
            own.kind == link.master_kind && is_alike
        })
    }

    /// The master of an interface, if it is here.
    pub(crate) fn master_of(&self, link: &Link) -> Option<&Link> {
        let master = link.master.filter(|master| self.may_be_master(link, *master))?;
        self.by_index.get(&master)
    }

    pub(crate) fn named(&self, name: &str) -> Option<&Link> {
        self.by_index.get(self.by_name.get(name)?).filter(|link| link.name == name)
    }

    /// The interfaces above these, over any number of steps, all of them here.
    pub(crate) fn all_above(&self, lowers: impl IntoIterator<Item = u32>) -> BTreeSet<u32> {
        let mut found = BTreeSet::new();
        let mut next: Vec<u32> = lowers.into_iter().collect();
        while let Some(lower) = next.pop() {
            for upper in self.uppers.get(&lower).into_iter().flatten() {
                if found.insert(*upper) {
                    next.push(*upper);
                }
            }
        }
        found
    }

    /// The interfaces above this one.
    pub(crate) fn above(&self, lower: NonZeroU32) -> BTreeSet<u32> {
        self.all_above([lower.get()])
    }

    /// Whether an interface is a dummy, or above one.
    fn is_on_dummy(&self, index: u32) -> bool {
        let mut next = self.by_index.get(&index);
        // There are no more steps than interfaces.
        for _ in &self.by_index {
            let Some(link) = next.filter(|own| own.kind != DUMMY) else { break };
            next = link.lower.and_then(|lower| self.by_index.get(&lower));
        }
        next.is_some_and(|own| own.kind == DUMMY)
    }

    /// The interfaces past which RDMA sends: what they or those below them add is left out.
    fn bypassed(&self) -> BTreeSet<u32> {
        let links = || self.by_index.values();
        let vlans = links().filter(|link| link.kind == VLAN).map(|link| link.index.get());
        let on_vlans = self.all_by(vlans.collect());
        // Of a VLAN's tag within another's, RDMA sends the inner one.
        let is_second = |link: &&Link| {
            link.kind == VLAN && link.lower.is_some_and(|lower| on_vlans.contains(&lower))
        };
        let own = links().filter(|link| link.framing == Framing::Added || is_second(link));
        self.all_by(own.map(|link| link.index.get()).collect())
    }

    /// These interfaces, and those from which all leaves the host by them.
    fn all_by(&self, mut next: Vec<u32>) -> BTreeSet<u32> {
        let mut found: BTreeSet<u32> = next.iter().copied().collect();
        let is_way = |member: &&u32| {
            let own = self.by_index.get(member);
            own.is_none_or(|own| !INNER_KINDS.contains(&own.kind.as_str()))
        };
        // By how many members each master may send otherwise.
        let mut others: BTreeMap<u32, usize> = BTreeMap::new();
        for (master, members) in &self.members {
            others.insert(*master, members.iter().filter(is_way).count());
        }
        while let Some(lower) = next.pop() {
            let master = self.by_index.get(&lower).and_then(|own| own.master);
            for upper in self.uppers.get(&lower).into_iter().flatten() {
                let mut left = 0;
                if let Some(others) = others.get_mut(upper).filter(|_| master == Some(*upper)) {
                    *others = others.saturating_sub(1);
                    left = *others;
                }
                if left == 0 && found.insert(*upper) {
                    next.push(*upper);
                }
            }
        }
        found
    }

    /// Whether an interface may have been above others a moment ago: it has members, or may have some, or it is above such
    /// an interface. What else is below an interface stays so.
    pub(crate) fn may_move(&self, index: u32) -> bool {
        let mut next = Some(index);
        // There are no more steps than interfaces.
        for _ in &self.by_index {
            let Some(link) = next.and_then(|index| self.by_index.get(&index)) else { return true };
            if link.lower.is_none() {
                return !matches!(link.kind.as_str(), "" | DUMMY | "veth");
            }
            next = link.lower;
        }
        true
    }

    /// The interfaces of which it is not known what is below them, over any number of steps, or of which
    /// something below is not here.
    pub(crate) fn untold(&self) -> BTreeSet<u32> {
        let is_untold = |link: &&Link| {
            let lower = link.lower;
            let has_member = link.kind.is_empty() && self.members.contains_key(&link.index.get());
            let is_told = link.is_lower_told || has_member;
            !is_told || lower.is_some_and(|lower| !self.by_index.contains_key(&lower))
        };
        let untold = self.by_index.values().filter(is_untold).map(|link| link.index.get());
        let mut found = self.all_above(untold.clone());
        found.extend(untold);
        found
    }

    /// Those of them of which the kernel makes rows for this one's port.
    pub(crate) fn served_by(&self, own: NonZeroU32) -> BTreeSet<u32> {
        let mut above = self.above(own);
        let bond = |index: &u32| self.by_index.get(index).and_then(|link| link.bond);
        let is_idle = |index: &u32| bond(index).is_some_and(|bond| !bond.serves(own));
        let idle: Vec<u32> = above.iter().copied().filter(is_idle).collect();
        for index in self.all_above(idle.iter().copied()).into_iter().chain(idle) {
            above.remove(&index);
        }
        above
    }
}

impl Links {
    /// Those above an interface of which the kernel may have removed the rows for its port, and not made them again: there
    /// were two ways to a bridge, VRF or team, as two VLANs, and one is gone. So it is with what is above them. A bond of
    /// interfaces that are on no others has one way. When another member is active than before, rows move in mode
    /// active-backup, and in balance-tlb and balance-alb they stay where they were.
    pub(crate) fn may_lack_rows(&self, own: NonZeroU32) -> BTreeSet<u32> {
        let link = |index: &u32| self.by_index.get(index);
        let is_on_another = |member: &u32| link(member).is_none_or(|own| own.lower.is_some());
        let may_lack = |index: &u32| {
            let members = self.members.get(index);
            let mode = link(index).and_then(|own| own.bond?.mode);
            let has_one_way = mode.is_some_and(|mode| !MODES_WHERE_ROWS_STAY.contains(&mode));
            members.is_some_and(|own| !has_one_way || own.iter().any(is_on_another))
        };
        let mut found: BTreeSet<u32> = self.above(own).into_iter().filter(may_lack).collect();
        found.extend(self.all_above(found.iter().copied()));
        found
    }
}

/// An interface's name. The kernel lets it have nearly any bytes.
pub(super) fn shown(name: String, index: NonZeroU32) -> String {
    if is_shown_name(&name) { name } else { format!("#{index}") }
}

/// An address of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    /// The interface's index.
    pub(crate) index: u32,
    /// That of which the kernel makes a GID.
    pub(crate) ip: IpAddr,
    /// That of the interface itself.
    pub(crate) near: IpAddr,
    /// Length of the network's part.
    pub(crate) prefix: u8,
    /// Whether another host has it.
    pub(crate) is_duplicate: bool,
}

impl Address {
    /// Why no program can use it, if there is a reason.
    fn unfit(&self) -> Option<Unfit> {
        if self.ip == self.near {
            self.is_duplicate.then_some(Unfit::Duplicate)
        } else {
            Some(Unfit::FarEnd)
        }
    }
}

/// The GID that the kernel makes of an address.
pub(crate) fn gid_of(ip: IpAddr) -> Gid {
    match ip {
        IpAddr::V4(v4) => v4.into(),
        IpAddr::V6(v6) => v6.into(),
    }
}

pub(crate) fn read_addresses(socket: &mut Socket) -> Result<Vec<Address>, Cause> {
    let request = Message::new(libc::RTM_GETADDR, &[0; ADDRESS_BODY]);
    Ok(socket.dump(&request, parse_address)?.into_iter().flatten().collect())
}

/// Reads an interface's address: of a point-to-point link, as the kernel's GIDs do, for IPv4 the far end
/// and for IPv6 the near end. A message has that one as `IFA_ADDRESS`, and this one, if there is a far
/// end, as `IFA_LOCAL`.
pub(crate) fn parse_address(payload: &[u8]) -> Result<Option<Address>, Cause> {
    const SHORT: Cause = Cause::Malformed("an address message");
    let prefix = *payload.get(1).ok_or(SHORT)?;
    let flags = *payload.get(2).ok_or(SHORT)?;
    let index = number_at(payload, 4).ok_or(SHORT)?;
    let (mut far, mut near) = (None, None);
    for attribute in attributes(payload.get(ADDRESS_BODY..).ok_or(SHORT)?) {
        let attribute = attribute?;
        match attribute.kind {
            libc::IFA_ADDRESS => far = ip(attribute.bytes()),
            libc::IFA_LOCAL => near = ip(attribute.bytes()),
            _ => {}
        }
    }
    let of_gid = far.filter(IpAddr::is_ipv4).or(near.filter(IpAddr::is_ipv6)).or(far);
    let is_duplicate = u32::from(flags) & libc::IFA_F_DADFAILED != 0;
    Ok(of_gid.map(|ip| Address { index, ip, near: near.unwrap_or(ip), prefix, is_duplicate }))
}

/// The interfaces on which neighbours are set by hand, each with their family.
fn read_neighbours(socket: &mut Socket) -> Result<BTreeSet<(u32, i32)>, Cause> {
    let request = Message::new(libc::RTM_GETNEIGH, &[0; NEIGHBOUR_BODY]);
    Ok(socket.dump(&request, parse_neighbour)?.into_iter().flatten().collect())
}

/// Reads a neighbour (`struct ndmsg` of `linux/neighbour.h`): its interface and family, if it is set by hand.
pub(super) fn parse_neighbour(payload: &[u8]) -> Result<Option<(u32, i32)>, Cause> {
    const SHORT: Cause = Cause::Malformed("a neighbour message");
    let family = i32::from(*payload.first().ok_or(SHORT)?);
    let index = number_at(payload, 4).ok_or(SHORT)?;
    let state = short_at(payload, 8).ok_or(SHORT)?;
    Ok((state & libc::NUD_PERMANENT != 0).then_some((index, family)))
}

fn ip(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = || <[u8; 4]>::try_from(bytes).ok().map(IpAddr::from);
    v4().or_else(|| <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from))
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

/// The GUID in a hardware address of IPoIB: four bytes with the queue pair's number, and a GID.
fn port_guid(address: &[u8]) -> Option<Guid> {
    let (_, guid) = address.split_last_chunk()?;
    (address.len() == 20).then(|| Guid::from_be_bytes(*guid))
}

pub(crate) fn parse_link(payload: &[u8]) -> Result<Option<Link>, Cause> {
    const SHORT: Cause = Cause::Malformed("an interface message");
    let Some(index) = NonZeroU32::new(number_at(payload, 4).ok_or(SHORT)?) else { return Ok(None) };
    // A bridge says of its own that a link is a part of it, or no more. That says nothing else of the link.
    if payload.first().copied().map(i32::from) != Some(libc::AF_UNSPEC) {
        return Ok(None);
    }
    let mut link = Link {
        index,
        name: String::new(),
        flags: number_at(payload, 8).ok_or(SHORT)?,
        is_ethernet: short_at(payload, 2).ok_or(SHORT)? == libc::ARPHRD_ETHER,
        mtu: 0,
        mac: None,
        port_guid: None,
        lower: None,
        is_lower_told: false,
        kind: String::new(),
        is_bus_said: false,
        master: None,
        master_kind: String::new(),
        bond: None,
        vlan: None,
        takes_from: None,
        framing: Framing::Plain,
    };
    let is_infiniband = short_at(payload, 2).ok_or(SHORT)? == libc::ARPHRD_INFINIBAND;
    let mut lower = None;
    let mut is_lower_elsewhere = false;
    let mut kind = Kind::default();
    let mut bus = None;
    for attribute in attributes(payload.get(LINK_BODY..).ok_or(SHORT)?) {
        let attribute: Attribute<'_> = attribute?;
        match attribute.kind {
            libc::IFLA_IFNAME => link.name = attribute.text(),
            libc::IFLA_MTU => link.mtu = attribute.u32()?,
            libc::IFLA_ADDRESS => {
                link.mac = attribute.bytes().try_into().ok();
                link.port_guid = port_guid(attribute.bytes()).filter(|_| is_infiniband);
            }
            libc::IFLA_LINK => lower = Some(attribute.u32()?).filter(|lower| *lower != 0),
            libc::IFLA_LINK_NETNSID => is_lower_elsewhere = true,
            libc::IFLA_MASTER => link.master = Some(attribute.u32()?),
            libc::IFLA_PARENT_DEV_BUS_NAME => bus = Some(attribute.text()),
            libc::IFLA_LINKINFO => kind = parse_kind(attribute.bytes())?,
            _ => {}
        }
    }
    if UPPER_KINDS.contains(&kind.name.as_str()) && !is_lower_elsewhere {
        link.lower = lower;
    }
    link.takes_from = lower.filter(|_| kind.is_passthru && !is_lower_elsewhere);
    let is_tunnel = TUNNEL_KINDS.contains(&kind.name.as_str());
    link.framing = if is_tunnel { Framing::Added } else { kind.framing };
    link.is_bus_said = bus.is_some() || link.flags & LOOPBACK != 0;
    link.is_lower_told = match kind.name.as_str() {
        "" => bus.is_none_or(|own| !BUSES_OF_MASTERS.contains(&own.as_str())),
        own => link.lower.is_some() || BOTTOM_KINDS.contains(&own),
    };
    (link.kind, link.master_kind) = (kind.name.clone(), kind.master);
    link.bond = kind.bond.filter(|_| kind.name == "bond");
    link.vlan = kind.vlan.filter(|_| kind.name == VLAN);
    link.name = shown(link.name, index);
    Ok(Some(link))
}

/// What a virtual interface is.
#[derive(Debug, Default)]
struct Kind {
    /// As `vlan`; empty for others.
    name: String,
    /// That of its master, if it has one.
    master: String,
    /// Its data, if they are read as a bond's.
    bond: Option<Bond>,
    /// Its id, if it is a VLAN of 802.1Q.
    vlan: Option<u16>,
    /// Whether it takes all that arrives below.
    is_passthru: bool,
    /// Of a VLAN and of `MACsec`.
    framing: Framing,
}

/// Reads what a virtual interface is. The kernel gives the kind first, then the data.
fn parse_kind(link_info: &[u8]) -> Result<Kind, Cause> {
    let mut kind = Kind::default();
    for attribute in attributes(link_info) {
        let attribute = attribute?;
        match attribute.kind {
            libc::IFLA_INFO_KIND => {
                kind.name = attribute.text();
                if kind.name == "bond" {
                    kind.bond = Some(Bond::default());
                }
            }
            libc::IFLA_INFO_SLAVE_KIND => kind.master = attribute.text(),
            libc::IFLA_INFO_DATA if kind.name == "bond" => {
                kind.bond = Some(parse_bond(attribute.bytes())?);
            }
            libc::IFLA_INFO_DATA if kind.name == MACVLAN => {
                kind.is_passthru = is_passthru(attribute.bytes())?;
            }
            libc::IFLA_INFO_DATA if kind.name == VLAN => {
                (kind.vlan, kind.framing) = parse_vlan(attribute.bytes())?;
            }
            libc::IFLA_INFO_DATA if kind.name == MACSEC => {
                kind.framing = framing_of_macsec(attribute.bytes())?;
            }
            _ => {}
        }
    }
    Ok(kind)
}

fn parse_bond(data: &[u8]) -> Result<Bond, Cause> {
    let mut bond = Bond::default();
    for attribute in attributes(data) {
        let attribute = attribute?;
        match attribute.kind {
            BOND_MODE => bond.mode = attribute.bytes().first().copied(),
            BOND_ACTIVE_SLAVE => bond.active = Some(attribute.u32()?),
            _ => {}
        }
    }
    Ok(bond)
}

/// Whether the mode of a macvlan is passthru.
fn is_passthru(data: &[u8]) -> Result<bool, Cause> {
    for attribute in attributes(data) {
        let attribute = attribute?;
        if attribute.kind == MACVLAN_MODE {
            return Ok(attribute.u32()? == PASSTHRU);
        }
    }
    Ok(false)
}

/// What a `MACsec` interface does, if hardware does not. Kernels that do not say so have no offload.
fn framing_of_macsec(data: &[u8]) -> Result<Framing, Cause> {
    for attribute in attributes(data) {
        let attribute = attribute?;
        if attribute.kind == MACSEC_OFFLOAD && attribute.bytes().iter().any(|own| *own != 0) {
            return Ok(Framing::Plain);
        }
    }
    Ok(Framing::Added)
}

/// The id of a VLAN, unless its frames have a tag of another kind (802.1ad).
fn parse_vlan(data: &[u8]) -> Result<(Option<u16>, Framing), Cause> {
    let (mut id, mut protocol) = (None, None);
    for attribute in attributes(data) {
        let attribute = attribute?;
        match attribute.kind {
            VLAN_ID => id = attribute.bytes().try_into().ok().map(u16::from_ne_bytes),
            VLAN_PROTOCOL => {
                protocol = attribute.bytes().try_into().ok().map(u16::from_be_bytes);
            }
            _ => {}
        }
    }
    let id = id.filter(|own| protocol == Some(PROTOCOL_8021Q) && VLAN_IDS.contains(own));
    let has_other_tag = protocol.is_some_and(|own| own != PROTOCOL_8021Q);
    Ok((id, if has_other_tag { Framing::Added } else { Framing::Plain }))
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
