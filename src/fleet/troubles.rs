//! What does not meet, gathered, so that what is alike is one trouble.

use core::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::end::{End, Fabric, Site, Upper, Used};
use super::meet::{Doubt, Obstacle};
use super::pairs::{Trouble, Why};
use super::survey::{Chooser, NONE, Survey};
use crate::choose::Family;
use crate::gid::GidType;
use crate::pkey::PKey;
use crate::port::PortState;

/// An end of a rail: its host, its name, its network.
pub(super) type Member = (u32, u32, u32);

/// The members of a rail by the kinds of their ends.
pub(super) type Kinds = BTreeMap<u32, Vec<Member>>;

/// Members of a kind.
pub(super) type Side<'m> = (u32, &'m [Member]);

/// What troubles have in common that are told as one.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    why: Why,
    hosts: Vec<u32>,
    /// What is said of each of their ends.
    own: Said,
    chooser: Chooser,
}

/// The rest of a trouble.
pub(super) struct Rest {
    /// All of these are ports of each of the hosts.
    ports: BTreeSet<u32>,
    /// Whether what is said of the example is not said of each end.
    is_mixed: bool,
    /// What was said first, and in which rail.
    first: (Said, Option<Said>, usize),
    /// The most in one rail, which rail that is, and an example of them.
    others: usize,
    most: usize,
    example: Example,
    /// The rail that was looked at last, the place of the others there, and an example of them.
    rail: usize,
    place: usize,
    here: Example,
}

/// An example of the others in a rail, of the kind of end that most of them have.
#[derive(Clone, Copy)]
struct Example {
    host: Option<u32>,
    /// How many have that kind.
    alike: usize,
    /// An end of each side: its kind and its network.
    ends: (Kept, Option<Kept>),
    /// Whose the first of them is: its host and its name.
    at: (u32, u32),
}

/// The kind of an end, and its network.
type Kept = (u32, u32);

/// What a sentence says of an end, and so has to be true of each of which it is said.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Said {
    state: Option<PortState>,
    fabric: Option<Fabric>,
    gid_type: Option<GidType>,
    family: Option<Family>,
    pkeys: Option<Vec<PKey>>,
    upper: Option<Upper>,
    /// Its network, or the prefix of its subnet.
    site: Option<(Option<Site>, Option<u64>)>,
}

impl Said {
    /// What is said of an end, for this reason.
    fn of(why: &Why, end: &End) -> Self {
        let is_for = |obstacles: &[Obstacle], doubts: &[Doubt]| match why {
            Why::Cannot(list) => list.iter().any(|own| obstacles.contains(own)),
            Why::Unknown(list) => list.iter().any(|own| doubts.contains(own)),
            Why::Alone | Why::TooMany => false,
        };
        let row = match &end.used {
            Used::Row(row) => Some(row),
            _ => None,
        };
        let says_site = says_site(why);
        let is_used = |is_said: bool| row.filter(|_| is_said);
        Self {
            state: is_for(&[Obstacle::NotActive], &[Doubt::Unused]).then_some(end.state),
            fabric: end.fabric.filter(|_| is_for(&[Obstacle::Fabric], &[Doubt::NoRule])),
            gid_type: is_used(is_for(&[Obstacle::GidType], &[Doubt::Link]))
                .and_then(|own| own.gid_type),
            family: is_used(says_site || is_for(&[Obstacle::Family], &[])).map(|own| own.family),
            pkeys: end.pkeys.clone().filter(|_| is_for(&[Obstacle::Partition], &[])),
            upper: is_used(is_for(&[], &[Doubt::Interface])).and_then(|own| own.upper.clone()),
            site: says_site.then_some(match &end.used {
                Used::Row(row) => (Some(row.site), None),
                Used::Subnet(prefix) => (None, *prefix),
                Used::None | Used::Unknown => (None, None),
            }),
        }
    }

    /// The same, without what most hosts have as their own.
    fn without_site(&self) -> Self {
        Self { site: None, ..self.clone() }
    }
}

impl Key {
    /// Whether only who chooses may be another.
    fn is_as(&self, other: &Self) -> bool {
        self.why == other.why && self.hosts == other.hosts && self.own == other.own
    }
}

impl Rest {
    fn is_as(&self, other: &Self) -> bool {
        let of = |own: &Self| {
            let Example { host, alike, at, .. } = own.example;
            (own.is_mixed.then_some(at), own.others, host, alike)
        };
        self.ports == other.ports && of(self) == of(other)
    }

    /// What is said of the ends of its example.
    fn said(&self, why: &Why, survey: &Survey) -> [Option<Said>; 2] {
        let (own, other) = self.example.ends;
        let said = |end: Kept| survey.whole_end(end).map(|end| Said::of(why, &end));
        [said(own), other.and_then(said)]
    }
}

/// Whether a sentence says the subnet or network of each end.
fn says_site(why: &Why) -> bool {
    match why {
        Why::Cannot(list) => list.contains(&Obstacle::Subnet),
        Why::Unknown(list) => list.iter().any(|own| matches!(own, Doubt::Link | Doubt::Networks)),
        Why::Alone | Why::TooMany => false,
    }
}

/// Gathers troubles.
pub(super) struct Troubles<'s> {
    survey: &'s Survey,
    found: BTreeMap<Key, Rest>,
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

/// Members whose hosts have the same ports here: what is said of one of these hosts and one of the ports is so.
fn by_ports(own: &[Member]) -> Vec<Vec<Member>> {
    let mut alike: BTreeMap<Vec<u32>, Vec<Member>> = BTreeMap::new();
    for of_host in own.chunk_by(|one, other| one.0 == other.0) {
        let names = of_host.iter().map(|(_, name, _)| *name).collect();
        alike.entry(names).or_default().extend(of_host);
    }
    alike.into_values().collect()
}

impl<'s> Troubles<'s> {
    pub(super) fn new(survey: &'s Survey, is_routed: bool) -> Self {
        let (found, others) = (BTreeMap::new(), Vec::new());
        Self { survey, found, chooser: Chooser::Recommended, rail: 0, others, is_routed }
    }

    /// Begins with the next rail, as somebody chooses there.
    pub(super) fn begin(&mut self, chooser: Chooser) {
        self.chooser = chooser;
        self.rail += 1;
        self.others.clear();
    }

    /// Adds members that do not meet others.
    pub(super) fn add(&mut self, why: &Why, (kind, own): Side<'_>, others: Option<Side<'_>>) {
        for own in by_ports(own) {
            self.add_alike(why, (kind, &own), others);
        }
    }

    /// The same of hosts that have the same ports.
    fn add_alike(&mut self, why: &Why, (kind, own): Side<'_>, others: Option<Side<'_>>) {
        let hosts = hosts_of(own);
        let Some((at, name, network)) = own.first() else { return };
        let says_site = says_site(why);
        let of = |(kind, members): Side<'_>| {
            // Another host than the first of this side, if there is one.
            let other = members.iter().find(|(host, ..)| Some(host) != hosts.first());
            other.or(members.first()).map(|(host, _, network)| (*host, (kind, *network)))
        };
        let example = others.and_then(of);
        let ends = ((kind, *network), example.map(|(_, end)| end));
        let said = |end: Kept| self.survey.whole_end(end).map(|end| Said::of(why, &end));
        let (own_said, other_said) = (said(ends.0).unwrap_or_default(), ends.1.and_then(said));
        // A host is none of the others to itself.
        let only = if let [only] = hosts[..] { Some(only) } else { None };
        let is_alike = |own: &&Member| !says_site || ends.1.is_some_and(|(_, its)| its == own.2);
        let without_only = |mut hosts: Vec<u32>| {
            hosts.retain(|own| Some(*own) != only);
            hosts
        };
        let (others, alike) = others.map_or_else(Default::default, |(_, members)| {
            let alike: Vec<Member> = members.iter().filter(is_alike).copied().collect();
            (without_only(hosts_of(members)), without_only(hosts_of(&alike)).len())
        });
        let first = Example { host: None, alike: 0, ends, at: (*at, *name) };
        let (hosts, chooser) = (hosts, self.chooser);
        let key = Key { why: why.clone(), hosts, own: own_said.without_site(), chooser };
        let rest = self.found.entry(key).or_insert_with(|| Rest {
            ports: BTreeSet::new(),
            is_mixed: false,
            first: (own_said.clone(), other_said.clone(), self.rail),
            others: 0,
            most: 0,
            example: first,
            rail: 0,
            place: 0,
            here: first,
        });
        let (first_own, first_other, rail) = &rest.first;
        rest.is_mixed |= says_site && own.iter().any(|own| own.2 != *network)
            || *first_own != own_said
            || *rail != self.rail && *first_other != other_said;
        rest.ports.extend(own.iter().map(|(_, name, _)| *name));
        if rest.rail != self.rail {
            (rest.rail, rest.place, rest.here) = (self.rail, self.others.len(), first);
            self.others.push(BTreeSet::new());
        }
        if alike > rest.here.alike {
            let host = example.map(|(host, _)| host);
            rest.here = Example { host, alike, ..first };
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

    /// All that were found. What is said of several choices in the same words is one.
    pub(super) fn end(self) -> Vec<Trouble> {
        let Self { survey, found, .. } = self;
        let mut all: Vec<(Key, Rest, Vec<Chooser>)> = Vec::new();
        for (key, rest) in found {
            let alike = all.iter_mut().rev().take_while(|(own, ..)| own.is_as(&key));
            let said = |own: &Rest| own.said(&key.why, survey);
            let same =
                alike.filter(|(_, own, _)| own.is_as(&rest) && said(own) == said(&rest)).last();
            if let Some((.., choosers)) = same {
                choosers.push(key.chooser);
            } else {
                let chooser = key.chooser;
                all.push((key, rest, vec![chooser]));
            }
        }
        let name = |own: u32| survey.ports.get(own).cloned();
        let all = all.into_iter().filter_map(|(Key { why, hosts, .. }, rest, choosers)| {
            let Rest { ports, is_mixed, others, example, .. } = rest;
            let Example { host, alike, ends: (own, other), at } = example;
            Some(Trouble {
                hosts,
                ports: ports.into_iter().filter_map(name).collect(),
                why,
                choosers,
                others,
                example: host,
                alike,
                ends: (survey.whole_end(own)?, other.and_then(|own| survey.whole_end(own))),
                at: if is_mixed { Some((at.0, name(at.1)?)) } else { None },
            })
        });
        all.collect()
    }

    /// Adds a doubt, if it is one.
    pub(super) fn doubt(&mut self, mut doubts: Vec<Doubt>, own: Side<'_>, others: Side<'_>) {
        let is_routed = self.is_routed;
        doubts.retain(|own| !(is_routed && *own == Doubt::Networks));
        if !doubts.is_empty() {
            self.add(&Why::Unknown(doubts), own, Some(others));
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
