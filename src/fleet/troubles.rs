//! What does not meet, gathered, so that what is alike is one trouble.

use core::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::end::{End, Used};
use super::meet::Doubt;
use super::pairs::Why;
use super::survey::{Chooser, NONE};
use crate::gid::GidType;

/// An end of a rail: its host, its name, its network.
pub(super) type Member = (u32, u32, u32);

/// The members of a rail by the kinds of their ends.
pub(super) type Kinds = BTreeMap<u32, Vec<Member>>;

/// Members of a kind.
pub(super) type Side<'m> = (u32, &'m [Member]);

/// What troubles have in common that are told as one.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) why: Why,
    pub(super) hosts: Vec<u32>,
}

/// The rest of a trouble.
pub(super) struct Rest {
    pub(super) ports: BTreeSet<u32>,
    /// By the numbers of choosers.
    pub(super) choosers: [bool; 3],
    /// The most in one rail, which rail that is, and an example of them.
    pub(super) others: usize,
    most: usize,
    pub(super) example: Example,
    /// The rail that was looked at last, the place of the others there, and an example of them.
    rail: usize,
    place: usize,
    here: Example,
}

/// An example of the others in a rail, of the kind of end that most of them have.
#[derive(Clone, Copy)]
pub(super) struct Example {
    pub(super) host: Option<u32>,
    /// How many have that kind.
    pub(super) alike: usize,
    /// An end of each side: its kind and its network.
    pub(super) ends: ((u32, u32), Option<(u32, u32)>),
}

/// Gathers troubles.
pub(super) struct Troubles {
    pub(super) found: BTreeMap<Key, Rest>,
    chooser: Chooser,
    /// Counts rails, and those of each chooser.
    rail: usize,
    /// The hosts of the other side of each trouble of this rail.
    others: Vec<BTreeSet<u32>>,
    /// Whether routers join all networks.
    is_routed: bool,
}

/// Their hosts, ascending, each once. Members are in the order of hosts.
pub(super) fn hosts_of(members: &[Member]) -> Vec<u32> {
    let mut hosts: Vec<u32> = members.iter().map(|(host, ..)| *host).collect();
    hosts.dedup();
    hosts
}

/// Whether a member of one side and one of the other are of different hosts, so that a job joins them.
pub(super) fn are_apart(one: &[Member], other: &[Member]) -> bool {
    let hosts = |side: &[Member]| Some((side.first()?.0, side.last()?.0));
    hosts(one).zip(hosts(other)).is_some_and(|(own, its)| own.0 != own.1 || its != own)
}

impl Troubles {
    pub(super) fn new(is_routed: bool) -> Self {
        let (found, others) = (BTreeMap::new(), Vec::new());
        Self { found, chooser: Chooser::Recommended, rail: 0, others, is_routed }
    }

    /// Begins with the next rail, as somebody chooses there.
    pub(super) fn begin(&mut self, chooser: Chooser) {
        self.chooser = chooser;
        self.rail += 1;
        self.others.clear();
    }

    /// Adds members that do not meet others.
    pub(super) fn add(&mut self, why: Why, (kind, own): Side<'_>, others: Option<Side<'_>>) {
        let hosts = hosts_of(own);
        let Some((_, _, network)) = own.first() else { return };
        let of = |(kind, members): Side<'_>| {
            // Another host than the first of this side, if there is one.
            let other = members.iter().find(|(host, ..)| Some(host) != hosts.first());
            other.or(members.first()).map(|(host, _, network)| (*host, (kind, *network)))
        };
        let example = others.and_then(of);
        let ends = ((kind, *network), example.map(|(_, end)| end));
        // A host is none of the others to itself.
        let only = if let [only] = hosts[..] { Some(only) } else { None };
        let others = others.map_or_else(Vec::new, |(_, members)| hosts_of(members));
        let others: Vec<u32> = others.into_iter().filter(|own| Some(*own) != only).collect();
        let first = Example { host: None, alike: 0, ends };
        let rest = self.found.entry(Key { why, hosts }).or_insert_with(|| Rest {
            ports: BTreeSet::new(),
            choosers: [false; 3],
            others: 0,
            most: 0,
            example: first,
            rail: 0,
            place: 0,
            here: first,
        });
        rest.ports.extend(own.iter().map(|(_, name, _)| *name));
        if let Some(own) = rest.choosers.get_mut(self.chooser as usize) {
            *own = true;
        }
        if rest.rail != self.rail {
            (rest.rail, rest.place, rest.here) = (self.rail, self.others.len(), first);
            self.others.push(BTreeSet::new());
        }
        if others.len() > rest.here.alike {
            let host = example.map(|(host, _)| host);
            rest.here = Example { host, alike: others.len(), ends };
        }
        let Some(all) = self.others.get_mut(rest.place) else { return };
        all.extend(&others);
        if all.len() > rest.others {
            (rest.others, rest.most) = (all.len(), self.rail);
        }
        if rest.most == self.rail {
            rest.example = rest.here;
        }
    }

    /// Adds a doubt, if it is one.
    pub(super) fn doubt(&mut self, mut doubts: Vec<Doubt>, own: Side<'_>, others: Side<'_>) {
        let is_routed = self.is_routed;
        doubts.retain(|own| !(is_routed && *own == Doubt::Networks));
        if !doubts.is_empty() {
            self.add(Why::Unknown(doubts), own, Some(others));
        }
    }

    /// Compares the networks of members, whose kinds meet in one network. `end` is that of any of them.
    pub(super) fn compare_networks(&mut self, end: &End, sides: &[Side<'_>]) {
        let Used::Row(row) = &end.used else { return };
        let is_v2 = row.gid_type == Some(GidType::ROCE_V2);
        // On which hosts each network is.
        let mut hosts: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        let all = sides.iter().flat_map(|(_, members)| *members);
        for (host, _, network) in all.filter(|(.., network)| *network != NONE) {
            hosts.entry(*network).or_default().insert(*host);
        }
        let most = hosts.iter().max_by_key(|(network, own)| (own.len(), Reverse(**network)));
        let Some((usual, _)) = most else { return };
        let split = |(kind, members): &Side<'_>| {
            let known = members.iter().filter(|own| own.2 != NONE);
            let (usual, odd): (Vec<Member>, Vec<Member>) = known.partition(|own| own.2 == *usual);
            ((*kind, usual), (*kind, odd))
        };
        let (usual, odd): (Vec<_>, Vec<_>) = sides.iter().map(split).unzip();
        for (kind, odd) in &odd {
            // Those of a kind may all be of the odd host.
            for (its, rest) in usual.iter().filter(|(_, rest)| are_apart(odd, rest)) {
                let doubt = if is_v2 { Doubt::Networks } else { Doubt::Link };
                self.doubt(vec![doubt], (*kind, odd), (*its, rest));
            }
        }
    }
}
