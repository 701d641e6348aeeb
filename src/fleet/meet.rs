//! Whether two ends can meet.

use super::end::{Compared, End, Fabric, Reach, Site, Upper, Used, UsedRow};
use super::survey::Chooser;
use crate::gid::{DEFAULT_PREFIX, GidType};
use crate::pkey::PKey;
use crate::port::{Mtu, PortState};

/// Why two ends cannot meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Obstacle {
    /// A port is not active.
    NotActive,
    /// An end has no usable GID, or a program takes one above index 255.
    NoGid,
    /// The program's list of devices leaves it no active port of an end's host.
    NotListed,
    /// An end's interface is down.
    InterfaceDown,
    /// An end's interface lacks the address of the GID, or no program can use that.
    AddressGone,
    /// They are of different kinds: InfiniBand, RoCE, iWARP and others.
    Fabric,
    /// RoCE v1 and RoCE v2.
    GidType,
    /// IPv4 and IPv6.
    Family,
    /// They have no P_Key in common of which one is a full member.
    Partition,
    /// They are in different subnets of InfiniBand, and one of these has the prefix that no router knows; or a program
    /// does not reach the other's.
    Subnet,
}

/// Why it is not known whether two ends can meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Doubt {
    /// A port could not be read.
    PortUnread,
    /// Which GID is used could not be found out.
    GidUnread,
    /// The type of the GID that is used could not be read.
    TypeUnread,
    /// The P_Keys of a port were not read.
    PKeysUnread,
    /// The network of an address, or the subnet of a port, is not known.
    NetworkUnread,
    /// It is not known whether an interface is its port's own. This is not said of one that is not proven.
    InterfaceUnread,
    /// An interface is not proven to be in its host's namespace.
    Unproven,
    /// Whether a port is InfiniBand or Omni-Path is not known.
    FabricUnread,
    /// There is no rule for this kind of port. What iWARP connects is an address, not a GID.
    NoRule,
    /// They may be in different VLANs: one uses its port's own interface and the other one a VLAN, a bond or a
    /// bridge, or the VLANs have different ids, or the others different names.
    Interface,
    /// They can meet only on one link: an address is link-local, or they are of RoCE v1 and in different
    /// networks.
    Link,
    /// Their networks or subnets differ. A router may join these.
    Networks,
    /// A program takes two ports of one subnet of InfiniBand for ports of two: whether a router's path leads back to
    /// where it began is not known.
    Path,
    /// A program is set to reach only a part of what is routed (see [`Reach`]), and the other end may not be in it.
    Reach,
    /// RDMA may reach nobody from an address: its neighbours are not asked for, what is added to its packets is left
    /// out, or soft RoCE does not hear what arrives. It may do so all the same, or the ends are on one port.
    Address,
    /// A port is not active, and no other host has one of its name, which would say whether it is in use.
    Unused,
}

/// What comes of two ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Meeting {
    /// What keeps them from meeting, ascending.
    pub obstacles: Vec<Obstacle>,
    /// What is not known, ascending. It does not matter if there is an obstacle.
    pub doubts: Vec<Doubt>,
    /// Whether their MTUs are known and differ, which does not keep them from meeting: they use the smaller.
    pub mtus_differ: bool,
}

impl Meeting {
    /// Whether they can meet; `None` if that is not known.
    #[must_use]
    pub fn can(&self) -> Option<bool> {
        match (self.obstacles.is_empty(), self.doubts.is_empty()) {
            (false, _) => Some(false),
            (true, true) => Some(true),
            (true, false) => None,
        }
    }
}

impl End {
    /// What keeps everybody from reaching it.
    #[must_use]
    pub fn fault(&self) -> Option<Obstacle> {
        match &self.used {
            _ if self.fabric.is_none() => None,
            _ if self.state != PortState::ACTIVE => Some(Obstacle::NotActive),
            Used::None => Some(Obstacle::NoGid),
            Used::NotListed => Some(Obstacle::NotListed),
            Used::Row(row) => row.fault,
            Used::Subnet(_) | Used::Unknown => None,
        }
    }

    /// Why it is not known of any other end whether it can meet this one.
    #[must_use]
    pub fn doubt(&self) -> Option<Doubt> {
        match &self.used {
            _ if self.fabric.is_none() => Some(Doubt::PortUnread),
            Used::Unknown => Some(Doubt::GidUnread),
            Used::Row(_) | Used::Subnet(_) | Used::None | Used::NotListed => None,
        }
    }

    /// Whether it is this end of which something is not known that is in doubt.
    pub(super) fn lacks(&self, doubt: Doubt) -> bool {
        match (doubt, &self.used) {
            (Doubt::FabricUnread, _) => self.fabric == Some(Fabric::InfiniBandOrOmniPath),
            (Doubt::PKeysUnread, _) => self.pkeys.is_none(),
            (Doubt::NetworkUnread, Used::Row(row)) => row.site == Site::Unknown,
            (Doubt::NetworkUnread, used) => *used == Used::Subnet(None),
            (Doubt::InterfaceUnread, Used::Row(row)) => row.upper == Some(Upper::Unread),
            (Doubt::Unproven, Used::Row(row)) => !row.is_proven,
            (Doubt::TypeUnread, Used::Row(row)) => row.gid_type.is_none(),
            (Doubt::Address, Used::Row(row)) => row.may_reach_nobody,
            (Doubt::Reach, Used::Row(row)) => row.reach != Reach::Routed,
            _ => false,
        }
    }
}

/// Whether two ends can meet: a connection (RC) between them comes up, and data goes in both directions.
///
/// It depends on what is known of the two hosts only. That they can meet says that nothing there keeps them from it;
/// switches and firewalls are not known, nor are the VLANs of switches. The rules:
///
/// - Both ports must be active, have a usable GID, and be of one kind. A program's list of devices must leave it
///   an active port of each host.
/// - RoCE: the GIDs are of one version and of one family, as the kernel takes the address of the other end only in the
///   family of its own. In one network they meet. Different networks may be joined by a router, but not for RoCE v1.
///   A link-local address is good on its link only.
/// - InfiniBand: they need a P_Key in common of which one end is a full member, and one subnet. Two fabrics that both
///   have the default prefix look like one. Different prefixes may be joined by a router, unless one is the default.
///   NCCL and UCX reach another subnet only from one GID of a router (FLID) to another, and only if they take it for
///   another one: NCCL compares the low 16 bits of the prefixes of the GIDs that it takes, UCX all of them.
/// - UCX may be set to reach only its own network, or what has some first bits of the address in common with its own:
///   then it is not known whether it reaches others.
/// - The smaller of two MTUs is used.
///
/// Whose end comes first makes no difference.
///
/// ```
/// use uverbs::fleet::{Doubt, End, meet};
/// assert_eq!(meet(&End::unread(), &End::unread()).doubts, [Doubt::PortUnread]);
/// ```
#[must_use]
pub fn meet(one: &End, other: &End) -> Meeting {
    let mut own = Meeting { mtus_differ: differ(one.mtu, other.mtu), ..Meeting::default() };
    own.obstacles.extend(one.fault().into_iter().chain(other.fault()));
    let is_unclear = |own: Fabric| own == Fabric::InfiniBandOrOmniPath;
    match (one.fabric, other.fabric) {
        (Some(fabric), Some(its))
            if [fabric, its].into_iter().any(is_unclear)
                && fabric.has_subnets()
                && its.has_subnets() =>
        {
            own.doubts.push(Doubt::FabricUnread);
            own.compare(fabric, one, other);
        }
        (Some(fabric), Some(its)) if fabric != its => own.obstacles.push(Obstacle::Fabric),
        (Some(fabric), Some(_)) => own.compare(fabric, one, other),
        _ => own.doubts.push(Doubt::PortUnread),
    }
    own.obstacles.sort_unstable();
    own.obstacles.dedup();
    own.doubts.sort_unstable();
    own.doubts.dedup();
    own
}

fn differ(one: Option<Mtu>, other: Option<Mtu>) -> bool {
    one.zip(other).is_some_and(|(one, other)| one != other)
}

impl Meeting {
    /// Makes doubts of what comes of a row that is recommended as if it were the host's own. A program takes its
    /// row in any case.
    pub(super) fn doubt_what_is_not_proven(&mut self, one: &End, other: &End) {
        let is_unproven = |own: &End| matches!(&own.used, Used::Row(row) if !row.is_proven);
        if is_unproven(one) || is_unproven(other) {
            let of_row = |own: &Obstacle| matches!(own, Obstacle::GidType | Obstacle::Family);
            let before = self.obstacles.len();
            self.obstacles.retain(|own| !of_row(own));
            if self.obstacles.len() < before && !self.doubts.contains(&Doubt::Unproven) {
                self.doubts.push(Doubt::Unproven);
                self.doubts.sort_unstable();
            }
        }
    }

    /// Compares two ends of one kind.
    fn compare(&mut self, fabric: Fabric, one: &End, other: &End) {
        match (&one.used, &other.used) {
            (Used::None | Used::NotListed, _) | (_, Used::None | Used::NotListed) => {}
            (Used::Unknown, _) | (_, Used::Unknown) => self.doubts.push(Doubt::GidUnread),
            (Used::Row(one), Used::Row(other)) if fabric == Fabric::Roce => {
                self.compare_rows(one, other);
            }
            (Used::Subnet(prefix), Used::Subnet(its)) => {
                self.compare_partitions(one, other);
                match one.compared.zip(other.compared) {
                    Some((one, other)) if one.by == other.by => {
                        self.compare_taken((*prefix, one), (*its, other));
                    }
                    _ => self.compare_subnets(*prefix, *its),
                }
            }
            _ => self.doubts.push(Doubt::NoRule),
        }
    }

    fn compare_rows(&mut self, one: &UsedRow, other: &UsedRow) {
        let are_proven = one.is_proven && other.is_proven;
        if !are_proven {
            self.doubts.push(Doubt::Unproven);
        }
        match (one.gid_type, other.gid_type) {
            (Some(one), Some(other)) if one == other => {}
            (Some(_), Some(_)) => self.obstacles.push(Obstacle::GidType),
            _ => self.doubts.push(Doubt::TypeUnread),
        }
        if one.may_reach_nobody || other.may_reach_nobody {
            self.doubts.push(Doubt::Address);
        }
        if one.family != other.family {
            self.obstacles.push(Obstacle::Family);
        }
        if [one, other].iter().any(|own| own.upper == Some(Upper::Unread)) {
            self.doubts.extend(are_proven.then_some(Doubt::InterfaceUnread));
        } else if one.upper != other.upper || one.upper == Some(Upper::Stacked) {
            self.doubts.push(Doubt::Interface);
        }
        // Only these are sent by routers.
        let is_v2 = [one, other].iter().all(|own| own.gid_type == Some(GidType::ROCE_V2));
        match (one.site, other.site) {
            (Site::Link, _) | (_, Site::Link) => self.doubts.push(Doubt::Link),
            (Site::Unknown, _) | (_, Site::Unknown) => self.doubts.push(Doubt::NetworkUnread),
            (Site::Network(one), Site::Network(other)) if one == other => {}
            (Site::Network(_), Site::Network(_)) => {
                self.doubts.push(if is_v2 { Doubt::Networks } else { Doubt::Link });
            }
        }
        let reaches = [one.reach, other.reach];
        let is_one = one.site == other.site && one.site != Site::Unknown;
        let is_limited = reaches.contains(&Reach::Network) && !is_one;
        self.doubts.extend((is_limited || reaches.contains(&Reach::Part)).then_some(Doubt::Reach));
    }

    fn compare_partitions(&mut self, one: &End, other: &End) {
        match (&one.pkeys, &other.pkeys) {
            (Some(own), Some(its)) if share_partition(own, its) => {}
            (Some(_), Some(_)) => self.obstacles.push(Obstacle::Partition),
            _ => self.doubts.push(Doubt::PKeysUnread),
        }
    }

    fn compare_subnets(&mut self, one: Option<u64>, other: Option<u64>) {
        match (one, other) {
            (Some(one), Some(other)) if one == other => {}
            (Some(DEFAULT_PREFIX), Some(_)) | (Some(_), Some(DEFAULT_PREFIX)) => {
                self.obstacles.push(Obstacle::Subnet);
            }
            (Some(_), Some(_)) => self.doubts.push(Doubt::Networks),
            _ => self.doubts.push(Doubt::NetworkUnread),
        }
    }

    /// Compares the subnets of two ports, each with the GID that a program takes there. It uses LIDs if it takes both
    /// for one subnet, and otherwise the path of a router (FLID), if both GIDs have one.
    fn compare_taken(
        &mut self,
        (one, taken): (Option<u64>, Compared),
        (other, its): (Option<u64>, Compared),
    ) {
        let is_one_for_it = taken.subnet() == its.subnet();
        let are_routable = taken.is_routable && its.is_routable;
        if !is_one_for_it && !are_routable && taken.by == Chooser::Ucx {
            // It does not even try.
            return self.obstacles.push(Obstacle::Subnet);
        }
        let Some((one, other)) = one.zip(other) else {
            return self.doubts.push(Doubt::NetworkUnread);
        };
        match (one == other, is_one_for_it) {
            (true, true) => {}
            (true, false) if taken.by == Chooser::Ucx => {}
            (true, false) => self.doubts.push(Doubt::Path),
            (false, false) if are_routable => self.doubts.push(Doubt::Networks),
            (false, _) => self.obstacles.push(Obstacle::Subnet),
        }
    }
}

/// Whether both are members of one partition, and one of them is a full member. The keys ascend.
fn share_partition(one: &[PKey], other: &[PKey]) -> bool {
    const FULL: u16 = 0x8000;
    one.iter().filter(|own| own.is_valid()).any(|own| {
        let has = |key| other.binary_search(&PKey(key)).is_ok();
        has(own.0 | FULL) || (own.is_full_member() && has(own.0 & !FULL))
    })
}
