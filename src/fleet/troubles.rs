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
    pub(super) others: usize,
    pub(super) example: Option<u32>,
    /// An end of each side: its kind and its network.
    pub(super) ends: ((u32, u32), Option<(u32, u32)>),
}

/// Gathers troubles.
pub(super) struct Troubles {
    pub(super) found: BTreeMap<Key, Rest>,
    pub(super) chooser: Chooser,
    /// Whether routers join all networks.
    is_routed: bool,
}

/// Their hosts, ascending, each once. Members are in the order of hosts.
pub(super) fn hosts_of(members: &[Member]) -> Vec<u32> {
    let mut hosts: Vec<u32> = members.iter().map(|(host, ..)| *host).collect();
    hosts.dedup();
    hosts
}

impl Troubles {
    pub(super) fn new(is_routed: bool) -> Self {
        Self { found: BTreeMap::new(), chooser: Chooser::Recommended, is_routed }
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
        let count = others.map_or(0, |(_, members)| hosts_of(members).len());
        let ends = ((kind, *network), example.map(|(_, end)| end));
        let rest = self.found.entry(Key { why, hosts }).or_insert_with(|| Rest {
            ports: BTreeSet::new(),
            choosers: [false; 3],
            others: 0,
            example: None,
            ends,
        });
        rest.ports.extend(own.iter().map(|(_, name, _)| *name));
        if let Some(own) = rest.choosers.get_mut(self.chooser as usize) {
            *own = true;
        }
        if count > rest.others {
            rest.others = count;
            rest.example = example.map(|(host, _)| host);
            rest.ends = ends;
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

    /// Compares the networks of members, which have this end, with that of most others, which they meet in one
    /// network.
    pub(super) fn compare_networks(
        &mut self,
        end: &End,
        (kind, own): Side<'_>,
        (other_kind, others): Side<'_>,
    ) {
        let Used::Row(row) = &end.used else { return };
        let is_v2 = row.gid_type == Some(GidType::ROCE_V2);
        let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
        for (.., network) in others.iter().filter(|(.., network)| *network != NONE) {
            *counts.entry(*network).or_default() += 1;
        }
        let most = counts.iter().max_by_key(|(network, count)| (**count, Reverse(**network)));
        let Some((usual, _)) = most else { return };
        let is_odd = |own: &&Member| own.2 != NONE && own.2 != *usual;
        let odd: Vec<Member> = own.iter().filter(is_odd).copied().collect();
        let rest: Vec<Member> = others.iter().filter(|own| own.2 == *usual).copied().collect();
        if !odd.is_empty() {
            let doubt = if is_v2 { Doubt::Networks } else { Doubt::Link };
            self.doubt(vec![doubt], (kind, &odd), (other_kind, &rest));
        }
    }
}
