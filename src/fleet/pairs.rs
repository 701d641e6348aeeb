//! Which ports of a job cannot meet.

use core::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::end::{End, Fabric, Site, Used};
use super::meet::{Doubt, Obstacle, meet};
use super::rails::Rails;
use super::survey::{Chooser, Survey};
use super::troubles::{Kinds, Member, Side, Troubles, are_apart, hosts_of};
use crate::choose::Network;

/// How many kinds of ends of a rail are compared with each other. More are not known to meet.
const MOST_KINDS: usize = 200;

/// What comes of all pairs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pairs {
    /// How rails were found.
    pub rails: Rails,
    /// How many rails have ports of two hosts or more that are in use.
    pub joined: usize,
    /// Pairs that cannot meet, and then those of which that is not known.
    pub problems: Vec<Trouble>,
}

/// Ports that cannot meet others, or of which that is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Trouble {
    /// The hosts of the side that fewer others meet: there is less to mend.
    pub hosts: Vec<u32>,
    /// Their ports: each of them is one of each host.
    pub ports: Vec<String>,
    /// Why.
    pub why: Why,
    /// Whose choices these are.
    pub choosers: Vec<Chooser>,
    /// How many hosts are on the other side of each of these ports, without its own host; 0 if it is everybody.
    pub others: usize,
    /// One of them, of the kind of end that most of them have. If it is one of `hosts`, each of these is on the other side, too.
    pub example: Option<u32>,
    /// How many of them have that kind.
    pub alike: usize,
    /// An end of the smaller side, and that of the example.
    pub ends: (End, Option<End>),
    /// Whose end the first of these is, if what it has is not so of each port of each host: a host and a port.
    pub at: Option<(u32, String)>,
}

/// Why pairs do not meet, or may not.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Why {
    /// They cannot.
    Cannot(Vec<Obstacle>),
    /// It is not known whether they can.
    Unknown(Vec<Doubt>),
    /// No other host has a port that would be joined with this one.
    Alone,
    /// There are too many kinds of ends to compare all.
    TooMany,
}

impl Survey {
    /// Whether the ports that a job joins can meet: for each rail and each [`Chooser`], each kind of end with each
    /// other one. `is_routed` says that routers join all networks, and each interface has a route to them. Only hosts are
    /// looked at that `is_wanted` holds of.
    ///
    /// A rail is not in use if none of its ports is active, nor one of the same name on another host; one that could not
    /// be read is only told of. Where rails are
    /// networks, a port without one whose name no other host has may be in use if its host has fewer networks than most.
    pub fn pairs(&self, rails: Rails, is_routed: bool, is_wanted: impl Fn(u32) -> bool) -> Pairs {
        self.pairs_of(rails, is_routed, &is_wanted)
    }

    fn pairs_of(&self, rails: Rails, is_routed: bool, is_wanted: &dyn Fn(u32) -> bool) -> Pairs {
        let rails = if rails == Rails::Found { self.rails_of(is_wanted) } else { rails };
        let mut troubles = Troubles::new(self, is_routed);
        let mut all: BTreeMap<(bool, u32), [Kinds; 3]> = BTreeMap::new();
        let perhaps_in_use =
            if rails == Rails::Networks { self.perhaps_in_use(is_wanted) } else { BTreeSet::new() };
        // The names of ports that are active on some host, for each chooser.
        let mut in_use: [BTreeSet<u32>; 3] = Default::default();
        for port in self.kept.iter().filter(|own| is_wanted(own.host)) {
            let of_rail = all.entry(port.rail(rails)).or_default();
            for ((kinds, end), in_use) in of_rail.iter_mut().zip(port.ends).zip(&mut in_use) {
                if let Some(own) = self.ends.get(end.kind) {
                    // One that could not be read says nothing of others.
                    let is_unread = own.fabric.is_none();
                    if !is_unread && own.fault() != Some(Obstacle::NotActive) {
                        in_use.insert(port.name);
                    }
                    let member = (port.host, port.name, end.network);
                    kinds.entry(end.kind).or_default().push(member);
                }
            }
        }
        let hosts = (0u32..).zip(&self.hosts).filter(|(host, _)| is_wanted(*host)).count();
        let mut joined = 0;
        for of_rail in all.into_values() {
            for ((chooser, kinds), in_use) in Chooser::ALL.into_iter().zip(of_rail).zip(&in_use) {
                troubles.begin(chooser);
                let of = (chooser, rails);
                let in_use = (in_use, &perhaps_in_use);
                let is_joined = self.look(hosts, kinds, of, in_use, &mut troubles);
                joined += usize::from(is_joined && chooser == Chooser::Recommended);
            }
        }
        Pairs { rails, joined, problems: troubles.end() }
    }

    /// Looks at a rail. Whether ports of two hosts are in use.
    fn look(
        &self,
        all_hosts: usize,
        kinds: Kinds,
        (chooser, rails): (Chooser, Rails),
        (in_use, perhaps_in_use): (&BTreeSet<u32>, &BTreeSet<u32>),
        troubles: &mut Troubles<'_>,
    ) -> bool {
        let mut list: Vec<(u32, &End, Vec<Member>)> = Vec::new();
        let mut faulty = Vec::new();
        let mut is_active = false;
        for (kind, members) in kinds {
            let Some(end) = self.ends.get(kind) else { continue };
            let fault = end.fault();
            is_active |= members.iter().any(|(_, name, _)| in_use.contains(name));
            // What is of one end only is told of that one.
            // Without its network it may be of another rail.
            let may_be_another_s = rails == Rails::Networks
                && end.fabric == Some(Fabric::Roce)
                && matches!(&end.used, Used::Row(row) if row.site == Site::Unknown);
            let doubt = end.doubt().or(may_be_another_s.then_some(Doubt::NetworkUnread));
            match (fault, doubt) {
                (Some(fault), _) => faulty.push((kind, Why::Cannot(vec![fault]), members)),
                (None, Some(doubt)) => faulty.push((kind, Why::Unknown(vec![doubt]), members)),
                (None, None) => list.push((kind, end, members)),
            }
        }
        if !is_active {
            for (kind, why, members) in &faulty {
                // If it is active, the others cannot meet it.
                if *why == Why::Unknown(vec![Doubt::PortUnread]) {
                    troubles.add(why, (*kind, members), None);
                // The rail of a port that may be in use has no others.
                } else if members.iter().any(|(_, name, _)| perhaps_in_use.contains(name)) {
                    troubles.add(&Why::Unknown(vec![Doubt::Unused]), (*kind, members), None);
                }
            }
            return false;
        }
        for (kind, why, members) in &faulty {
            troubles.add(why, (*kind, members), None);
        }
        // The largest first.
        list.sort_by_key(|(kind, _, members)| (Reverse(members.len()), *kind));
        let rest = list.split_off(list.len().min(MOST_KINDS));
        for (kind, _, members) in &rest {
            troubles.add(&Why::TooMany, (*kind, members), None);
        }
        // Of two that do not meet it is told of the one that others meet less: there is less to mend.
        let number = |members: &Vec<Member>| hosts_of(members).len();
        let numbers: Vec<usize> = list.iter().map(|(.., members)| number(members)).collect();
        let meets = |place: usize, end: &End| {
            let others = list.iter().zip(&numbers).enumerate();
            // A host is none of the others to itself.
            let others =
                others.map(|(own, (other, hosts))| (other, hosts - usize::from(own == place)));
            let may = others.filter(|((_, other, _), _)| meet(end, other).can() != Some(false));
            may.map(|(_, hosts)| hosts).sum::<usize>()
        };
        let all = list.iter().enumerate();
        let meeting: BTreeMap<u32, usize> =
            all.map(|(place, (kind, end, _))| (*kind, meets(place, end))).collect();
        list.sort_by_key(|(kind, _, members)| {
            (Reverse(meeting.get(kind).copied()), Reverse(members.len()), *kind)
        });
        let all_hosts_of = |list: &[(u32, &End, Vec<Member>)]| {
            let members = list.iter().flat_map(|(_, _, members)| members.iter().map(|own| own.0));
            members.collect::<BTreeSet<u32>>()
        };
        let hosts = all_hosts_of(&list).len();
        let joined = all_hosts_of(&rest).union(&all_hosts_of(&list)).count();
        let only = list.first().and_then(|(.., members)| members.first()).map(|own| own.0);
        let mut of_faulty = faulty.iter().flat_map(|(.., members)| members);
        let has_faulty = of_faulty.any(|own| Some(own.0) != only);
        if hosts == 1 && all_hosts > 1 && rest.is_empty() && !has_faulty {
            for (kind, _, members) in &list {
                troubles.add(&Why::Alone, (*kind, members), None);
            }
        }
        // Kinds that meet in one network, by the first of them. All of these meet each other there.
        let mut meeting_kinds: BTreeMap<usize, (&End, Vec<Side<'_>>)> = BTreeMap::new();
        for (place, (kind, end, members)) in list.iter().enumerate() {
            let side: Side<'_> = (*kind, members);
            let mut first = None;
            for (other_place, (other_kind, other, its)) in list.iter().enumerate().take(place + 1) {
                let other_side: Side<'_> = (*other_kind, its);
                let mut meeting = meet(end, other);
                if chooser == Chooser::Recommended {
                    meeting.doubt_what_is_not_proven(end, other);
                }
                match meeting.can() {
                    Some(true) => first = first.or(Some(other_place)),
                    _ if !are_apart(members, its) => {}
                    Some(false) => {
                        let why = Why::Cannot(meeting.obstacles);
                        troubles.add(&why, side, Some(other_side));
                    }
                    None => {
                        // It is told of the end that lacks something.
                        let lacks = |of: &End| meeting.doubts.iter().any(|own| of.lacks(*own));
                        let is_other_s = lacks(other) && !lacks(end);
                        let (one, two) =
                            if is_other_s { (other_side, side) } else { (side, other_side) };
                        troubles.doubt(meeting.doubts, one, two);
                    }
                }
            }
            if let Some(first) = first {
                meeting_kinds.entry(first).or_insert((end, Vec::new())).1.push(side);
            }
        }
        for (end, sides) in meeting_kinds.values() {
            troubles.compare_networks(end, sides);
        }
        joined > 1
    }

    /// An end with its network.
    pub(super) fn whole_end(&self, (kind, network): (u32, u32)) -> Option<End> {
        let mut end = self.ends.get(kind)?.clone();
        let network: Option<&Network> = self.networks.get(network);
        if let (Used::Row(row), Some(network)) = (&mut end.used, network) {
            row.site = Site::Network(*network);
        }
        Some(end)
    }
}
