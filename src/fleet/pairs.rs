//! Which ports of a job cannot meet.

use std::collections::{BTreeMap, BTreeSet};

use super::end::{End, Site, Used};
use super::meet::{Doubt, Obstacle, meet};
use super::rails::Rails;
use super::survey::{Chooser, NONE, Survey};
use crate::choose::Network;
use crate::gid::GidType;

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
    /// The hosts of the smaller side: there is less to mend.
    pub hosts: Vec<u32>,
    /// Their ports.
    pub ports: Vec<String>,
    /// Why.
    pub why: Why,
    /// Whose choices these are.
    pub choosers: Vec<Chooser>,
    /// How many hosts are on the other side, in the rail where they are most; 0 if it is everybody.
    pub others: usize,
    /// A host of the other side.
    pub example: Option<u32>,
    /// An end of the smaller side, and one of the other side.
    pub ends: (End, Option<End>),
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

/// An end of a rail: its host, its name, its network.
type Member = (u32, u32, u32);

/// The members of a rail by the kinds of their ends.
type Kinds = BTreeMap<u32, Vec<Member>>;

/// What troubles have in common that are told as one.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    why: Why,
    hosts: Vec<u32>,
}

/// The rest of a trouble, while it is gathered.
struct Rest {
    ports: BTreeSet<u32>,
    choosers: BTreeSet<Chooser>,
    others: usize,
    example: Option<u32>,
    ends: ((u32, u32), Option<(u32, u32)>),
}

/// Gathers troubles.
#[derive(Default)]
struct Troubles(BTreeMap<Key, Rest>);

impl Troubles {
    /// Adds members, of one kind, that do not meet others, of another one.
    fn add(
        &mut self,
        chooser: Chooser,
        why: Why,
        (kind, own): (u32, &[Member]),
        others: Option<(u32, &[Member])>,
    ) {
        let hosts = hosts_of(own);
        let Some((_, _, network)) = own.first() else { return };
        let of = |(kind, members): (u32, &[Member])| {
            // Another host than the first of this side, if there is one.
            let other = members.iter().find(|(host, ..)| Some(host) != hosts.first());
            other.or(members.first()).map(|(host, _, network)| (*host, (kind, *network)))
        };
        let example = others.and_then(of);
        let count = others.map_or(0, |(_, members)| hosts_of(members).len());
        let ends = ((kind, *network), example.map(|(_, end)| end));
        let rest = self.0.entry(Key { why, hosts }).or_insert_with(|| Rest {
            ports: BTreeSet::new(),
            choosers: BTreeSet::new(),
            others: 0,
            example: None,
            ends,
        });
        rest.ports.extend(own.iter().map(|(_, name, _)| *name));
        rest.choosers.insert(chooser);
        if count > rest.others {
            rest.others = count;
            rest.example = example.map(|(host, _)| host);
            rest.ends = ends;
        }
    }
}

/// Their hosts, ascending, each once. Members are in the order of hosts.
fn hosts_of(members: &[Member]) -> Vec<u32> {
    let mut hosts: Vec<u32> = members.iter().map(|(host, ..)| *host).collect();
    hosts.dedup();
    hosts
}

impl Survey {
    /// Whether the ports that a job joins can meet: for each rail and each [`Chooser`], each kind of end with each
    /// other one. `is_routed` says that routers join all networks. Only hosts are looked at that `is_wanted` holds of.
    ///
    /// A rail none of whose ports is active is not in use.
    pub fn pairs(&self, rails: Rails, is_routed: bool, is_wanted: impl Fn(u32) -> bool) -> Pairs {
        let rails = if rails == Rails::Found { self.rails() } else { rails };
        let mut troubles = Troubles::default();
        let mut all: BTreeMap<(bool, u32), [Kinds; 3]> = BTreeMap::new();
        for port in self.kept.iter().filter(|own| is_wanted(own.host)) {
            let of_rail = all.entry(self.rail(rails, port)).or_default();
            for (kinds, end) in of_rail.iter_mut().zip(port.ends) {
                if end.kind != NONE {
                    let member = (port.host, port.name, end.network);
                    kinds.entry(end.kind).or_default().push(member);
                }
            }
        }
        let hosts = self.kept.iter().map(|own| own.host).filter(|own| is_wanted(*own));
        let hosts = hosts.collect::<BTreeSet<u32>>().len();
        let mut joined = 0;
        for (chooser, kinds) in
            all.into_values().flat_map(|of_rail| Chooser::ALL.into_iter().zip(of_rail))
        {
            let is_joined = self.look((chooser, hosts), kinds, is_routed, &mut troubles);
            joined += usize::from(is_joined && chooser == Chooser::Recommended);
        }
        let problems = troubles.0.into_iter().filter_map(|(Key { why, hosts }, rest)| {
            let Rest { ports, choosers, others, example, ends: (own, other) } = rest;
            Some(Trouble {
                hosts,
                ports: ports.into_iter().filter_map(|own| self.ports.get(own).cloned()).collect(),
                why,
                choosers: choosers.into_iter().collect(),
                others,
                example,
                ends: (self.whole_end(own)?, other.and_then(|own| self.whole_end(own))),
            })
        });
        Pairs { rails, joined, problems: problems.collect() }
    }

    /// Looks at a rail. Whether ports of two hosts are in use.
    fn look(
        &self,
        (chooser, all_hosts): (Chooser, usize),
        kinds: Kinds,
        is_routed: bool,
        troubles: &mut Troubles,
    ) -> bool {
        let mut list: Vec<(u32, &End, Vec<Member>)> = Vec::new();
        let mut faulty = Vec::new();
        let mut is_active = false;
        for (kind, members) in kinds {
            let Some(end) = self.end(kind) else { continue };
            is_active |= end.fabric.is_none() || end.fault() != Some(Obstacle::NotActive);
            match end.fault() {
                Some(fault) => faulty.push((kind, fault, members)),
                None => list.push((kind, end, members)),
            }
        }
        if !is_active {
            return false;
        }
        for (kind, fault, members) in &faulty {
            troubles.add(chooser, Why::Cannot(vec![*fault]), (*kind, members), None);
        }
        // The largest first.
        list.sort_by_key(|(kind, _, members)| (core::cmp::Reverse(members.len()), *kind));
        let rest = list.split_off(list.len().min(MOST_KINDS));
        for (kind, _, members) in &rest {
            troubles.add(chooser, Why::TooMany, (*kind, members), None);
        }
        let hosts: BTreeSet<u32> =
            list.iter().flat_map(|(_, _, members)| members.iter().map(|own| own.0)).collect();
        if let ([(kind, _, members)], 1, 2..) = (list.as_slice(), hosts.len(), all_hosts) {
            if rest.is_empty() && faulty.is_empty() && chooser == Chooser::Recommended {
                troubles.add(chooser, Why::Alone, (*kind, members), None);
            }
        }
        for (place, (kind, end, members)) in list.iter().enumerate() {
            let own = (*kind, members.as_slice());
            // The network that its members are compared with: that of a larger kind which they meet, or most of
            // their own.
            let mut usual = None;
            for (other_kind, other, its) in list.iter().take(place) {
                let meeting = meet(end, other);
                let others = Some((*other_kind, its.as_slice()));
                match meeting.can() {
                    Some(true) if usual.is_none() => usual = Some((*other_kind, its.as_slice())),
                    Some(true) => {}
                    Some(false) => {
                        troubles.add(chooser, Why::Cannot(meeting.obstacles), own, others);
                    }
                    None => self.doubt(chooser, meeting.doubts, own, others, is_routed, troubles),
                }
            }
            if hosts_of(members).len() > 1 {
                let meeting = meet(end, end);
                match meeting.can() {
                    Some(true) => {}
                    Some(false) => {
                        troubles.add(chooser, Why::Cannot(meeting.obstacles), own, Some(own));
                    }
                    None => {
                        self.doubt(chooser, meeting.doubts, own, Some(own), is_routed, troubles)
                    }
                }
            }
            self.compare_networks(chooser, end, own, usual.unwrap_or(own), is_routed, troubles);
        }
        hosts.len() > 1
    }

    /// Adds a doubt, if it is one.
    fn doubt(
        &self,
        chooser: Chooser,
        mut doubts: Vec<Doubt>,
        own: (u32, &[Member]),
        others: Option<(u32, &[Member])>,
        is_routed: bool,
        troubles: &mut Troubles,
    ) {
        doubts.retain(|own| !(is_routed && *own == Doubt::Networks));
        if !doubts.is_empty() {
            troubles.add(chooser, Why::Unknown(doubts), own, others);
        }
    }

    /// Compares the networks of members with that of most others.
    fn compare_networks(
        &self,
        chooser: Chooser,
        end: &End,
        (kind, own): (u32, &[Member]),
        (other_kind, others): (u32, &[Member]),
        is_routed: bool,
        troubles: &mut Troubles,
    ) {
        let Used::Row(row) = &end.used else { return };
        let is_v2 = row.gid_type == Some(GidType::ROCE_V2);
        if is_routed && is_v2 {
            return;
        }
        let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
        for (.., network) in others.iter().filter(|(.., network)| *network != NONE) {
            *counts.entry(*network).or_default() += 1;
        }
        let most =
            counts.iter().max_by_key(|(network, count)| (**count, core::cmp::Reverse(**network)));
        let Some((usual, _)) = most else { return };
        let is_odd = |own: &&Member| own.2 != NONE && own.2 != *usual;
        let odd: Vec<Member> = own.iter().filter(is_odd).copied().collect();
        let rest: Vec<Member> = others.iter().filter(|own| own.2 == *usual).copied().collect();
        if !odd.is_empty() {
            let doubt = if is_v2 { Doubt::Networks } else { Doubt::Link };
            let others = Some((other_kind, rest.as_slice()));
            troubles.add(chooser, Why::Unknown(vec![doubt]), (kind, &odd), others);
        }
    }

    /// An end with its network.
    fn whole_end(&self, (kind, network): (u32, u32)) -> Option<End> {
        let mut end = self.end(kind)?.clone();
        let network: Option<&Network> = self.networks.get(network);
        if let (Used::Row(row), Some(network)) = (&mut end.used, network) {
            row.site = Site::Network(*network);
        }
        Some(end)
    }
}
