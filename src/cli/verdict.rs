//! What is said of all hosts together. It is gathered host by host, in far less memory than the hosts take.

use core::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use uverbs::choose::plan::{Fleet, Model, Plan, Program};
use uverbs::choose::room::{fills, fills_ucx, has_order, has_unlisted, is_crowded};
use uverbs::choose::{Outcome, Why, ucx};
use uverbs::inventory::{Inventory, SettingsReading};
use uverbs::port::LinkLayer;

use crate::hosts::{Chosen, SHOWN, Seen, some_of, unread, variable};
use crate::looked::PortCount;
use crate::report::Report;
use crate::selection::{Asked, Missing};
use crate::values::Pairs;

/// What is known of all hosts.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    /// How many were read.
    pub(crate) hosts: usize,
    /// What is asked for and could not be read: hosts, devices and ports, by name.
    unread: Vec<String>,
    /// Ports that are asked for, where it is not known which row is right.
    doubtful: Vec<String>,
    /// Whether there is anything else that could not be read.
    pub(crate) has_unread: bool,
    /// Whether a host may have more ports than NCCL has room for.
    pub(crate) fills: bool,
    /// Whether such a host's order of devices is not known.
    pub(crate) is_unordered: bool,
    /// Programs of which it is not known that each release has room for a host's devices (NVSHMEM) or ports (UCX).
    crowded: Vec<Program>,
    /// Programs with a variable by which each may not use RDMA as uverbs says, on some host.
    unused_by: Vec<(Program, &'static str)>,
    /// On how many hosts not all of NCCL's settings were read.
    unread_settings: usize,
    /// How many hosts are sysfs trees, of which the variables are not known.
    trees: usize,
    /// Ports that have a right row, and that a program never takes.
    idle: [Few; PROGRAMS.len()],
    /// Hosts that were read, and of which a program never takes any such port.
    idle_hosts: Vec<(Program, usize)>,
    /// Ports that have a right row, of hosts where a program finds none of those for which it asks.
    lost: [Few; PROGRAMS.len()],
    /// Variables that are set on some host, for any release.
    set: BTreeSet<String>,
    /// The ports.
    fleet: Fleet,
}

/// The first of many names.
#[derive(Debug, Default)]
struct Few {
    first: Vec<String>,
    count: usize,
}

impl Few {
    fn add(&mut self, name: impl FnOnce() -> String) {
        if self.count < SHOWN {
            self.first.push(name());
        }
        self.count += 1;
    }

    fn append(&mut self, other: Self) {
        let room = SHOWN.saturating_sub(self.first.len());
        self.first.extend(other.first.into_iter().take(room));
        self.count += other.count;
    }

    /// Those of a program; `None` if there are none.
    fn of(program: Program, all: &[Self; PROGRAMS.len()]) -> Option<String> {
        let (_, own) = PROGRAMS.into_iter().zip(all).find(|(own, _)| *own == program)?;
        (own.count > 0).then(|| some_of(&own.first, own.count))
    }
}

/// The programs of which something is gathered, in the order in which it is kept.
const PROGRAMS: [Program; 3] = [Program::Nccl, Program::Nvshmem, Program::Ucx];

impl Verdict {
    /// Adds a host, and of its ports those that are looked at, each with the index that it should use. Whether all
    /// that is asked for was read.
    pub(crate) fn add<'c, 's: 'c>(
        &mut self,
        host: &Seen,
        asked: &Asked<'_>,
        ports: impl Iterator<Item = (&'c Chosen<'s>, Option<u32>)>,
    ) -> bool {
        // A row that could not be read may be right on a port: then it counts as a port that was not read.
        let doubtful_before = self.doubtful.len();
        let doubtful = &mut self.doubtful;
        let ports = ports.filter(|(own, _)| {
            let is_asked = asked.has_port(own.port.device, own.port.number);
            let is_doubtful = is_asked && !is_known(&own.decision.outcome);
            if is_doubtful {
                doubtful.push(own.name());
            }
            !is_doubtful
        });
        let idle = &mut self.idle;
        // The ports with a right row, and of each program those that it may take: whether it finds one, and the others.
        let (mut is_any, mut of_program) =
            (false, [(); PROGRAMS.len()].map(|()| (false, Few::default())));
        self.fleet.add(ports.map(|(own, index)| {
            is_any |= index.is_some();
            let programs = PROGRAMS.into_iter().zip(idle.iter_mut().zip(&mut of_program));
            for (program, (idle, (is_found, lost))) in programs.filter(|_| index.is_some()) {
                match (program.may_take(&own.port), own.port.is_found) {
                    (true, true) => *is_found = true,
                    (true, false) => lost.add(|| own.name()),
                    (false, _) => idle.add(|| own.name()),
                }
            }
            (&own.port, index)
        }));
        let unread = unread(host, asked);
        // What was not read is named once.
        let named = self.doubtful.split_off(doubtful_before);
        self.doubtful.extend(named.into_iter().filter(|own| !unread.contains(own)));
        let is_read = unread.is_empty() && self.doubtful.len() == doubtful_before;
        for ((program, all), (is_found, lost)) in
            PROGRAMS.into_iter().zip(&mut self.lost).zip(of_program)
        {
            if is_any && is_read && !is_found && lost.count == 0 {
                self.idle_hosts.push((program, self.hosts));
            }
            if !is_found {
                all.append(lost);
            }
        }
        let is_read = unread.is_empty();
        self.hosts += 1;
        self.unread.extend(unread);
        self.has_unread |= host.has_unread();
        let fills = fills(&host.inventory);
        self.fills |= fills || has_unlisted(&host.inventory);
        self.is_unordered |= fills && !has_order(&host.inventory);
        for (program, is_crowded) in [
            (Program::Nvshmem, is_crowded(&host.inventory)),
            (Program::Ucx, fills_ucx(&host.inventory)),
        ] {
            if is_crowded && !self.crowded.contains(&program) {
                self.crowded.push(program);
            }
        }
        self.unread_settings += usize::from(!host.inventory.unread_settings.is_empty());
        self.trees += usize::from(host.inventory.host.is_none());
        for program in PROGRAMS {
            let name = unused_by(program, &host.inventory).map(|name| (program, name));
            self.unused_by.extend(name.filter(|own| !self.unused_by.contains(own)));
        }
        for setting in &host.inventory.settings {
            if !self.set.contains(&setting.name) {
                self.set.insert(setting.name.clone());
            }
        }
        is_read
    }

    /// Whether it is not known that each release has room for what a host has, or what UCX's list names of it.
    pub(crate) fn is_crowded(&self, program: Program, plan: &Plan) -> bool {
        let mut lists = plan.variables.iter().filter(|(name, _)| *name == "UCX_NET_DEVICES");
        let is_few = |own: &str| own != "all" && own.split(',').count() <= ucx::PORTS;
        self.crowded.contains(&program) && !lists.any(|(_, own)| is_few(own))
    }

    /// What is asked for and could not be read, also if it is only a row that matters. What is
    /// said of all does not cover it.
    pub(crate) fn unread(&self, report: &Report) -> Vec<String> {
        let unread = self.unread.iter().chain(&self.doubtful).cloned();
        report.bad_files().map(str::to_owned).chain(unread).collect()
    }

    /// Whether a variable is set on some host.
    pub(crate) fn is_set(&self, name: &str) -> bool {
        self.set.contains(name)
    }

    /// Ports that have a right row, and that a program never takes; `None` if there are none.
    pub(crate) fn idle(&self, program: Program) -> Option<String> {
        Few::of(program, &self.idle)
    }

    /// Ports that have a right row, of hosts where a program finds none of those for which it asks; `None` if there are none.
    pub(crate) fn lost(&self, program: Program) -> Option<String> {
        Few::of(program, &self.lost)
    }

    /// Whether all settings of a program were read.
    pub(crate) fn has_settings_of(&self, program: Program) -> bool {
        program != Program::Nccl || self.unread_settings == 0
    }

    /// A variable by which a program may not use RDMA as uverbs says, on some host, with this plan.
    pub(crate) fn unused_by(&self, program: Program, plan: Option<&Plan>) -> Option<&'static str> {
        let all = self.unused_by.iter().filter(|(own, _)| *own == program);
        all.map(|(_, name)| *name).find(|name| !is_ignored(name, plan))
    }

    /// One setting for all ports; `None` also if a program finds none of a host's. It does not change which transport
    /// the program uses.
    pub(crate) fn plan(
        &self,
        program: Program,
        has_others: bool,
        is_set: impl Fn(&str) -> bool,
    ) -> Option<Plan> {
        if self.lost(program).is_some() {
            return None;
        }
        self.plan_of(program, has_others, is_set, |_| true)
    }

    /// One setting for some hosts, by their places, also for ports that programs do not find there.
    pub(crate) fn plan_of(
        &self,
        program: Program,
        has_others: bool,
        is_set: impl Fn(&str) -> bool,
        is_wanted: impl Fn(usize) -> bool,
    ) -> Option<Plan> {
        let is_idle = |(own, host): &(Program, usize)| *own == program && is_wanted(*host);
        if self.idle_hosts.iter().any(is_idle) {
            return None;
        }
        let mut plan = self.fleet.plan_of(program, has_others, is_set, is_wanted)?;
        plan.is_sure &= self.unused_by(program, Some(&plan)).is_none();
        plan.is_sure &= !self.is_crowded(program, &plan);
        plan.is_sure &= self.has_settings_of(program) && self.trees == 0;
        Some(plan)
    }
}

/// The variable by which a program may not use RDMA as uverbs says, whatever a plan sets.
pub(crate) fn unused_by(program: Program, inventory: &Inventory) -> Option<&'static str> {
    let variable = variable(inventory, SettingsReading::NEWEST);
    match program.model(|name| variable(name).filter(|_| !program.resets(name))) {
        Model::Nccl(own) if own.is_disabled() => Some("NCCL_IB_DISABLE"),
        own => own.doubted_by(),
    }
}

/// Whether a program ignores a variable as a plan sets another one.
pub(crate) fn is_ignored(name: &str, plan: Option<&Plan>) -> bool {
    let sets_list = |plan: &Plan| {
        let mut variables = plan.variables.iter();
        variables.any(|(own, value)| *own == "NVSHMEM_HCA_LIST" && !value.is_empty())
    };
    name == "NVSHMEM_HCA_PE_MAPPING" && plan.is_some_and(sets_list)
}

/// Says by which variable that is so.
pub(crate) fn tell_unused(program: Program, name: &str, report: &mut Report) {
    report.note(format!("{name} is set: {program} may use other ports or GIDs, or no RDMA"));
}

/// Whether it is known which row is right on a port, or that none is.
pub(crate) fn is_known(outcome: &Outcome) -> bool {
    !matches!(outcome, Outcome::Ignored(Why::NotKnown(_)))
}

/// Which index is right on which port of which host.
#[derive(Debug, Default)]
pub(crate) struct Indices {
    /// Whether some port has an index that is right.
    pub(crate) is_any: bool,
    /// The index that is right on all RoCE ports so far that have one.
    of_roce: One,
    /// The same of the others, which are not connected by their GIDs: a RoCE port decides.
    of_others: One,
    /// Hosts without a port, and what is asked for and not there.
    portless: Vec<String>,
    /// Ports without a usable GID that has what was asked for.
    unusable: Vec<String>,
    /// Ports of whose GID it is not known that it is right.
    pub(crate) unproven: Vec<String>,
    /// How many ports there are.
    pub(crate) counts: PortCount,
    /// Each with whether all that is asked for was read there.
    hosts: Vec<(String, bool)>,
    /// Ports by their device's name, each with its place among them.
    ports: BTreeMap<String, BTreeMap<u32, usize>>,
    count: usize,
    /// The place of a host, the place of a port, and the index where it is known.
    taken: Vec<(usize, usize, Right)>,
}

/// One index, or several.
#[derive(Debug, Default)]
struct One {
    first: Option<u32>,
    is_mixed: bool,
}

impl One {
    fn add(&mut self, index: u32) {
        self.is_mixed |= *self.first.get_or_insert(index) != index;
    }

    fn get(&self) -> Option<u32> {
        self.first.filter(|_| !self.is_mixed)
    }
}

/// What is right on a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Right {
    Index(u32),
    /// No index.
    None,
    /// It is not known which.
    Unknown,
}

impl core::fmt::Display for Right {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Index(index) => write!(f, "{index}"),
            Self::None => f.write_str("none"),
            Self::Unknown => f.write_str("it is not known which"),
        }
    }
}

impl Indices {
    /// Adds a snapshot's host, what is asked for and not there, and whether all that is there was read.
    pub(crate) fn add(
        &mut self,
        host: &str,
        chosen: &[Chosen<'_>],
        missing: &Missing,
        is_read: bool,
    ) {
        if missing.count > 0 {
            let first = missing.first.iter().map(|own| format!("{host}: {own}"));
            self.portless.extend(first);
            let more = missing.count - missing.first.len();
            if more > 0 {
                self.portless.push(format!("{host}: {more} more that are named"));
            }
        } else if chosen.is_empty() && is_read {
            self.portless.push(host.to_owned());
        }
        for own in chosen {
            let index = own.decision.outcome.index();
            self.counts.all += 1;
            self.counts.active += usize::from(is_active(&own.decision.outcome));
            self.counts.usable += usize::from(index.is_some());
            let right = match index {
                None if !is_known(&own.decision.outcome) => {
                    self.counts.unknown += 1;
                    Right::Unknown
                }
                None => {
                    self.unusable.push(own.name());
                    Right::None
                }
                Some(index) => {
                    let is_sure = own.decision.is_sure(&own.port);
                    if !is_sure {
                        self.unproven.push(own.name());
                    }
                    self.is_any = true;
                    let is_ethernet = own.port.link_layer == LinkLayer::ETHERNET;
                    (if is_ethernet { &mut self.of_roce } else { &mut self.of_others }).add(index);
                    if is_sure { Right::Index(index) } else { Right::Unknown }
                }
            };
            let port = self.port(own.port.device, own.port.number);
            self.taken.push((self.hosts.len(), port, right));
        }
        self.hosts.push((host.to_owned(), is_read));
    }

    fn port(&mut self, device: &str, number: u32) -> usize {
        if !self.ports.contains_key(device) {
            self.ports.insert(device.to_owned(), BTreeMap::new());
        }
        let Self { ports, count, .. } = self;
        let place = ports.get_mut(device).map(|ports| {
            *ports.entry(number).or_insert_with(|| {
                *count += 1;
                *count - 1
            })
        });
        place.unwrap_or_default()
    }

    /// The index that is right on all ports that have one.
    pub(crate) fn one(&self) -> Option<u32> {
        let Self { of_roce, of_others, .. } = self;
        if of_roce.first.is_some() { of_roce.get() } else { of_others.get() }
    }

    /// Whether there are ports that are not connected by their GIDs, beside those of RoCE, with another index than
    /// theirs.
    pub(crate) fn has_others(&self) -> bool {
        let Self { of_roce, of_others, .. } = self;
        let is_any = of_roce.first.is_some() && of_others.first.is_some();
        is_any && of_roce.get() != of_others.get()
    }

    /// Hosts without a port, what is asked for and not there, and ports without a usable GID that has what was asked
    /// for: no setting is for them.
    pub(crate) fn unusable(&self) -> Vec<String> {
        self.portless.iter().chain(&self.unusable).cloned().collect()
    }

    /// Which hosts are not as most are: each with what differs, as `mlx5_0:1 uses 5 (most use 3)`. Where
    /// there is no such thing as most, each host says what it uses. What is not known does not differ.
    pub(crate) fn differing(&self) -> Pairs<Vec<String>> {
        let names = self.ports.iter().flat_map(|(device, ports)| {
            ports.iter().map(move |(number, place)| (*place, format!("{device}:{number}")))
        });
        let names: BTreeMap<usize, String> = names.collect();
        // How often each index is right on the port of a name.
        let mut counts: BTreeMap<usize, BTreeMap<Right, usize>> = BTreeMap::new();
        for (_, port, right) in &self.taken {
            *counts.entry(*port).or_default().entry(*right).or_default() += 1;
        }
        // Of two hosts that differ none is like the most.
        let half_have = counts.iter().filter(|(_, rights)| {
            let count: usize = rights.values().sum();
            2 * count >= self.hosts.len()
        });
        let half_have: BTreeSet<usize> = half_have.map(|(port, _)| *port).collect();
        let rare = self.rare();
        // It may be on these, and could not be read.
        let may_have = self.without(false);
        let usual = counts.into_iter().map(|(port, mut rights)| {
            let all = rights.values().sum::<usize>() + may_have.get(&port).copied().unwrap_or(0);
            rights.remove(&Right::Unknown);
            // Where all that are known are alike, none differs.
            let is_one = rights.len() == 1;
            let most = rights.into_iter().find(|(_, count)| is_one || 2 * count > all);
            (port, most.map(|(right, _)| right))
        });
        let usual: BTreeMap<usize, Option<Right>> = usual.collect();
        let mut found: Vec<(String, Vec<String>)> = Vec::new();
        // Hosts come one after the other.
        let mut taken = self.taken.as_slice();
        for (place, (host, is_read)) in self.hosts.iter().enumerate() {
            let end = taken.partition_point(|(own, ..)| *own <= place);
            let (own, rest) = taken.split_at(end);
            taken = rest;
            let mut list = Vec::new();
            for (_, port, right) in own {
                let (Some(name), Some(usual)) = (names.get(port), usual.get(port)) else {
                    continue;
                };
                match usual {
                    _ if rare.contains(port) => list.push(format!("has {name} (most do not)")),
                    _ if *right == Right::Unknown => {}
                    Some(usual) if usual == right => {}
                    Some(usual) => list.push(format!("{name} uses {right} (most use {usual})")),
                    None => list.push(format!("{name} uses {right}")),
                }
            }
            // A port that is missing elsewhere may only not have been read.
            if *is_read {
                let has: BTreeSet<usize> = own.iter().map(|(_, port, _)| *port).collect();
                let lacks = half_have.difference(&has).filter_map(|port| names.get(port));
                list.extend(lacks.map(|name| format!("has no {name}")));
            }
            if !list.is_empty() {
                found.push((host.clone(), list));
            }
        }
        Pairs(found)
    }

    /// Hosts by their places that have the same ports with the same indices; where they are most comes first.
    pub(crate) fn alike(&self) -> Vec<Vec<usize>> {
        let mut of_host: Vec<Vec<(usize, Right)>> = vec![Vec::new(); self.hosts.len()];
        for (host, port, right) in &self.taken {
            if let Some(own) = of_host.get_mut(*host) {
                own.push((*port, *right));
            }
        }
        let mut groups: BTreeMap<Vec<(usize, Right)>, Vec<usize>> = BTreeMap::new();
        for (host, mut own) in of_host.into_iter().enumerate() {
            own.sort_unstable();
            groups.entry(own).or_default().push(host);
        }
        let mut groups: Vec<Vec<usize>> = groups.into_values().collect();
        groups.sort_by_key(|own| (Reverse(own.len()), own.first().copied()));
        groups
    }

    /// The ports that most hosts are known not to have.
    fn rare(&self) -> BTreeSet<usize> {
        let lacks = self.without(true).into_iter();
        lacks.filter(|(_, lacks)| 2 * lacks > self.hosts.len()).map(|(port, _)| port).collect()
    }

    /// How many hosts have nothing of each port, of those that were read or of the others.
    fn without(&self, of_read: bool) -> BTreeMap<usize, usize> {
        let is_meant = |place: &usize| self.hosts.get(*place).is_some_and(|own| own.1 == of_read);
        let all = self.hosts.iter().filter(|own| own.1 == of_read).count();
        let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
        for (host, port, _) in &self.taken {
            *counts.entry(*port).or_default() += usize::from(is_meant(host));
        }
        counts.into_iter().map(|(port, count)| (port, all.saturating_sub(count))).collect()
    }
}

/// Whether a port with this outcome is active, as far as the recommendation looks at it.
fn is_active(outcome: &Outcome) -> bool {
    !matches!(outcome, Outcome::Ignored(Why::NotActive(_)))
}
