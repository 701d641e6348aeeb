//! What does not meet, gathered, so that what is alike is one trouble.

use core::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::end::{End, Fabric, Reach, Site, Upper, Used};
use super::meet::{Doubt, Obstacle};
use super::names::Names;
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

/// What troubles have in common that are told as one. It is all that is said of them, but for networks.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    why: Why,
    hosts: Vec<u32>,
    /// What is said of their ends, and of that of the example.
    said: (Said, Option<Said>),
    others: Option<Others>,
    chooser: Chooser,
}

/// The hosts of the other side, as far as they are told of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Others {
    /// The number of their set: of two troubles that have one, they are the same.
    set: u32,
    /// How many they are, without the host itself.
    count: usize,
    /// One of them, and how many have that kind of end.
    example: u32,
    alike: usize,
}

/// The rest of a trouble.
struct Rest {
    /// All of these are ports of each of the hosts.
    ports: BTreeSet<u32>,
    /// An end of each side, and all that is said of them.
    ends: (Kept, Option<Kept>),
    said: (Said, Option<Said>),
    /// Whose the first of them is: its host and its name.
    at: (u32, u32),
    /// Whether other ends have other networks, which are said.
    is_mixed: bool,
}

/// Members of one kind that do not meet others, in one rail.
struct Gathered {
    why: Why,
    kind: u32,
    own: Vec<Member>,
    /// The hosts of the others; `None` if there is no other side.
    others: Option<BTreeSet<u32>>,
    /// Of each of their kinds.
    examples: Vec<Example>,
}

/// Others of one kind.
struct Example {
    kind: u32,
    /// One of each host, ascending.
    members: Vec<Member>,
    /// The hosts that are as the first member is, as far as it is told.
    alike: BTreeSet<u32>,
}

impl Example {
    /// One of another host than the first of these, and of none of these if it can be; whether it is; and how many are
    /// like it.
    fn beside(&self, hosts: &[u32], says_site: bool) -> Option<(Member, bool, usize)> {
        let own = hosts.first()?;
        let outside = self.members.iter().find(|member| hosts.binary_search(&member.0).is_err());
        let member = outside.or_else(|| self.members.iter().find(|member| member.0 != *own))?;
        let is_like = !says_site || Some(member.2) == self.members.first().map(|first| first.2);
        let alike = if is_like { without(&self.alike, *own) } else { 1 };
        Some((*member, outside.is_some(), alike))
    }
}

/// How many hosts there are, without one.
fn without(all: &BTreeSet<u32>, host: u32) -> usize {
    all.len() - usize::from(all.contains(&host))
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
    /// Its network, or the prefix of its subnet, and that of the GID that is compared if it is another one.
    site: Option<(Option<Site>, Option<u64>, Option<u64>)>,
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
                Used::Row(row) => (Some(row.site), None, None),
                Used::Subnet(subnet) => {
                    let compared = end.compared.map(|own| own.prefix);
                    (None, *subnet, compared.filter(|own| Some(*own) != *subnet))
                }
                Used::None | Used::NotListed | Used::Unknown => (None, None, None),
            }),
        }
    }

    /// The same, without what most hosts have as their own.
    fn without_site(&self) -> Self {
        Self { site: None, ..self.clone() }
    }
}

/// Whether a sentence says the subnet or network of each end.
fn says_site(why: &Why) -> bool {
    match why {
        Why::Cannot(list) => list.contains(&Obstacle::Subnet),
        Why::Unknown(list) => {
            let is_of_sites = |own: &Doubt| {
                matches!(own, Doubt::Link | Doubt::Networks | Doubt::Path | Doubt::Reach)
            };
            list.iter().any(is_of_sites)
        }
        Why::Alone | Why::TooMany => false,
    }
}

/// Gathers troubles.
pub(super) struct Troubles<'s> {
    survey: &'s Survey,
    found: BTreeMap<Key, Rest>,
    chooser: Chooser,
    /// Those of this rail and chooser.
    here: Vec<Gathered>,
    /// The sets of others.
    sets: Names<()>,
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

/// The ports of a host, its places among the others, and its members.
type OfHost<'m> = (Vec<u32>, Vec<[bool; 2]>, &'m [Member]);

/// Members whose hosts have the same ports here, and the same places among the others: what is said of one of the hosts
/// and one of the ports is so.
fn by_ports(own: &[Member], examples: &[Example]) -> Vec<Vec<Member>> {
    let mut hosts: Vec<OfHost<'_>> = own
        .chunk_by(|one, other| one.0 == other.0)
        .map(|of_host| {
            let names = of_host.iter().map(|(_, name, _)| *name).collect();
            let host = of_host.first().map(|(host, ..)| *host).unwrap_or_default();
            let place = |own: &Example| {
                let is_one = own.members.binary_search_by_key(&host, |member| member.0).is_ok();
                [is_one, own.alike.contains(&host)]
            };
            (names, examples.iter().map(place).collect(), of_host)
        })
        .collect();
    hosts.sort();
    let alike = hosts.chunk_by(|one, other| one.0 == other.0 && one.1 == other.1);
    alike.map(|all| all.iter().flat_map(|(.., own)| own.iter().copied()).collect()).collect()
}

impl<'s> Troubles<'s> {
    pub(super) fn new(survey: &'s Survey, is_routed: bool) -> Self {
        let (found, here, sets) = (BTreeMap::new(), Vec::new(), Names::default());
        Self { survey, found, chooser: Chooser::Recommended, here, sets, is_routed }
    }

    /// Begins with the next rail, as somebody chooses there.
    pub(super) fn begin(&mut self, chooser: Chooser) {
        self.end_rail();
        self.chooser = chooser;
    }

    /// Adds members that do not meet others.
    pub(super) fn add(&mut self, why: &Why, (kind, own): Side<'_>, others: Option<Side<'_>>) {
        let is_same = |of: &Gathered| of.kind == kind && of.why == *why && of.own == own;
        let place = self.here.iter().position(is_same).unwrap_or_else(|| {
            let (why, own) = (why.clone(), own.to_vec());
            self.here.push(Gathered { why, kind, own, others: None, examples: Vec::new() });
            self.here.len() - 1
        });
        let Some(gathered) = self.here.get_mut(place) else { return };
        let Some((kind, members)) = others else { return };
        let Some(first) = members.first() else { return };
        let hosts = gathered.others.get_or_insert_default();
        hosts.extend(members.iter().map(|(host, ..)| *host));
        let is_alike = |own: &&Member| !says_site(why) || own.2 == first.2;
        let alike: BTreeSet<u32> = members.iter().filter(is_alike).map(|own| own.0).collect();
        let of_hosts = members.chunk_by(|one, other| one.0 == other.0);
        let members = of_hosts.filter_map(|own| own.first().copied()).collect();
        gathered.examples.push(Example { kind, members, alike });
    }

    /// Tells of what was gathered in a rail.
    fn end_rail(&mut self) {
        for Gathered { why, kind, own, others, examples } in std::mem::take(&mut self.here) {
            let others = others.unwrap_or_default();
            let key: Vec<u8> = others.iter().flat_map(|host| host.to_le_bytes()).collect();
            let set = self.sets.number(&key, || ());
            for own in by_ports(&own, &examples) {
                self.tell(&why, (kind, &own), (set, &others), &examples);
            }
        }
    }

    /// Tells of hosts that have the same ports here.
    fn tell(
        &mut self,
        why: &Why,
        (kind, own): Side<'_>,
        (set, others): (u32, &BTreeSet<u32>),
        examples: &[Example],
    ) {
        let hosts = hosts_of(own);
        let Some((host, name, network)) = own.first().copied() else { return };
        let says_site = says_site(why);
        let (mut told, mut other) = (None, None);
        if !examples.is_empty() {
            let beside = examples.iter();
            let beside = beside.filter_map(|own| Some((own.kind, own.beside(&hosts, says_site)?)));
            // Of several kinds that as many have, the first.
            let most = beside.rev().max_by_key(|(_, (_, is_outside, alike))| (*is_outside, *alike));
            // A host is none of the others to itself.
            let Some((kind, ((example, _, network), _, alike))) = most else { return };
            told = Some(Others { set, count: without(others, host), example, alike });
            other = Some((kind, network));
        }
        let ends = ((kind, network), other);
        let said = |end: Kept| self.survey.whole_end(end).map(|end| Said::of(why, &end));
        let all_said = (said(ends.0).unwrap_or_default(), ends.1.and_then(said));
        let (one, other) = &all_said;
        let said = (one.without_site(), other.as_ref().map(Said::without_site));
        let key = Key { why: why.clone(), hosts, said, others: told, chooser: self.chooser };
        let rest = self.found.entry(key).or_insert_with(|| Rest {
            ports: BTreeSet::new(),
            ends,
            said: all_said.clone(),
            at: (host, name),
            is_mixed: false,
        });
        rest.is_mixed |=
            says_site && own.iter().any(|own| own.2 != network) || rest.said != all_said;
        rest.ports.extend(own.iter().map(|(_, name, _)| *name));
    }

    /// All that were found. What is said of several choices in the same words is one.
    pub(super) fn end(mut self) -> Vec<Trouble> {
        self.end_rail();
        let Self { survey, found, .. } = self;
        let mut all: Vec<(Key, Rest, Vec<Chooser>)> = Vec::new();
        for (key, rest) in found {
            let is_same = |(own, known, _): &&mut (Key, Rest, Vec<Chooser>)| {
                own.others == key.others
                    && known.said == rest.said
                    && known.ports == rest.ports
                    && known.is_mixed == rest.is_mixed
                    && (!known.is_mixed || known.at == rest.at)
            };
            let alike = all.iter_mut().rev();
            let mut alike =
                alike.take_while(|(own, ..)| own.why == key.why && own.hosts == key.hosts);
            if let Some((.., choosers)) = alike.find(is_same) {
                choosers.push(key.chooser);
            } else {
                let chooser = key.chooser;
                all.push((key, rest, vec![chooser]));
            }
        }
        let name = |own: u32| survey.ports.get(own).cloned();
        let all = all.into_iter().filter_map(|(Key { why, hosts, others, .. }, rest, choosers)| {
            let Rest { ports, ends: (own, other), at, is_mixed, .. } = rest;
            Some(Trouble {
                hosts,
                ports: ports.into_iter().filter_map(name).collect(),
                why,
                choosers,
                others: others.map_or(0, |own| own.count),
                example: others.map(|own| own.example),
                alike: others.map_or(0, |own| own.alike),
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
        let Some((network, on)) = most else { return };
        // Where each network is on one host, those of the first host are on one side.
        let only = on.first().filter(|_| on.len() == 1);
        let is_usual = |own: &&Member| only.map_or(own.2 == *network, |host| own.0 == *host);
        let split = |(kind, members): &Side<'_>| {
            let known = members.iter().filter(|own| own.2 != NONE);
            let (usual, odd): (Vec<Member>, Vec<Member>) = known.partition(is_usual);
            ((*kind, usual), (*kind, odd))
        };
        let (usual, odd): (Vec<_>, Vec<_>) = sides.iter().map(split).unzip();
        for (kind, odd) in &odd {
            // Those of a kind may all be of the odd host.
            for (its, rest) in usual.iter().filter(|(_, rest)| are_apart(odd, rest)) {
                let mut doubts = vec![if is_v2 { Doubt::Networks } else { Doubt::Link }];
                let is_limited = |kind: &u32| self.survey.ends.get(*kind).is_some_and(is_limited);
                let limited = [kind, its].map(is_limited);
                let (one, other) = ((*kind, &odd[..]), (*its, &rest[..]));
                // It is said of the end that does not reach the other, where it is all that is said.
                let is_other_s = limited == [false, true];
                let is_said = limited != [false; 2] && (self.is_routed || !is_other_s);
                doubts.extend(is_said.then_some(Doubt::Reach));
                let is_other_s = is_other_s && self.is_routed;
                let (one, other) = if is_other_s { (other, one) } else { (one, other) };
                self.doubt(doubts, one, other);
            }
        }
    }
}

/// Whether a program is set to reach only a part of what is routed from there.
fn is_limited(end: &End) -> bool {
    matches!(&end.used, Used::Row(row) if row.reach != Reach::Routed)
}
