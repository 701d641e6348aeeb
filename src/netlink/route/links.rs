//! The interfaces of a namespace: what is above what.

use core::num::NonZeroU32;
use std::collections::{BTreeMap, BTreeSet};

use super::link::{DUMMY, Framing, Link, VLAN};

/// Modes of a bond in which only one member is active, and rows stay where they were when another one is.
const MODES_WHERE_ROWS_STAY: [u8; 2] = [5, 6];

/// Kinds by which nothing leaves the host, as the members of a bridge that lead to containers and virtual machines.
const INNER_KINDS: [&str; 3] = ["veth", "tun", DUMMY];

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
    pub(super) fn is_on_dummy(&self, index: u32) -> bool {
        let mut next = self.by_index.get(&index);
        // There are no more steps than interfaces.
        for _ in &self.by_index {
            let Some(link) = next.filter(|own| own.kind != DUMMY) else { break };
            next = link.lower.and_then(|lower| self.by_index.get(&lower));
        }
        next.is_some_and(|own| own.kind == DUMMY)
    }

    /// The interface that a VLAN is on, over any number of VLANs, if it is here.
    pub(super) fn below_vlans(&self, vlan: &Link) -> Option<NonZeroU32> {
        let mut own = vlan;
        // There are no more steps than interfaces.
        for _ in &self.by_index {
            if own.kind != VLAN {
                break;
            }
            own = self.by_index.get(&own.lower?)?;
        }
        (vlan.kind == VLAN).then_some(own.index)
    }

    /// The interfaces past which RDMA sends: what they or those below them add is left out.
    pub(super) fn bypassed(&self) -> BTreeSet<u32> {
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
