//! The hosts of a job: what fits them all, or which to leave out.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use uverbs::choose::plan::{Plan, Program};
use uverbs::choose::{Surroundings, Wish};
use uverbs::fleet::{Chooser, Doubt, Obstacle, Rails, Reach, Survey, Trouble, Why};
use uverbs::inventory::NodeState;
use uverbs::port::LinkLayer;

use super::say;
use crate::choose::is_as_without;
use crate::host_list::HostList;
use crate::hosts::{Chosen, Seen, choose_on, is_used, some};
use crate::report::Report;
use crate::selection::{Asked, Missing};
use crate::status::Status;
use crate::values::Pairs;
use crate::verdict::{Indices, Verdict, is_known, tell_unused};

/// The programs that a job may use.
const PROGRAMS: [(Program, Chooser); 2] =
    [(Program::Nccl, Chooser::Nccl), (Program::Ucx, Chooser::Ucx)];

/// The hosts that are listed, as far as they were seen.
pub(super) struct Listed {
    /// Each with its own name, if it was seen.
    hosts: BTreeMap<String, Option<String>>,
    order: Vec<String>,
    /// Other hosts that may be meant by what is listed.
    others: Vec<String>,
    /// Hosts of which another snapshot was read before.
    again: Vec<String>,
    /// Hosts that have no usable port, by their places.
    useless: BTreeSet<u32>,
    /// Hosts that have a device whose node programs cannot use.
    nodeless: BTreeSet<u32>,
    /// Hosts that have a device whose node programs can use.
    with_nodes: BTreeSet<u32>,
    /// Hosts that have a device of whose node this is not known.
    unlooked: BTreeSet<u32>,
    /// The prefixes of all GIDs of ports of InfiniBand.
    prefixes: BTreeSet<u64>,
    /// Whether NCCL, and UCX, takes other GIDs on some port of InfiniBand than it does without variables.
    are_set: [bool; 2],
    /// What UCX is set to reach from hosts with RoCE, where that is not all.
    reach: BTreeMap<u32, Reach>,
    verdict: Verdict,
    indices: Indices,
}

/// What is said of a job.
#[derive(Debug, Serialize)]
pub(super) struct Job {
    /// Whether all is known that the rest depends on.
    is_known: bool,
    /// Hosts to leave out, so that the rest can run together; null if no such list was found.
    leave_out: Option<Vec<String>>,
    /// Variables that are right on all hosts that are left, or null.
    nccl: Option<Pairs<String>>,
    ucx: Option<Pairs<String>>,
    /// Whether all was read that they depend on.
    #[serde(skip)]
    is_whole: bool,
    /// Whether these are known to be right, if they are there.
    #[serde(skip)]
    are_sure: [bool; 2],
    /// Whether no port of any host can be used.
    #[serde(skip)]
    are_useless: bool,
}

impl Listed {
    pub(super) fn new(list: &HostList) -> Self {
        Self {
            hosts: list.0.iter().map(|own| (own.clone(), None)).collect(),
            order: list.0.clone(),
            others: Vec::new(),
            again: Vec::new(),
            useless: BTreeSet::new(),
            nodeless: BTreeSet::new(),
            with_nodes: BTreeSet::new(),
            unlooked: BTreeSet::new(),
            prefixes: BTreeSet::new(),
            are_set: [false; 2],
            reach: BTreeMap::new(),
            verdict: Verdict::default(),
            indices: Indices::default(),
        }
    }

    /// Whether a host is listed, and not seen before. Its own name may have a domain which the list leaves out. Of two
    /// hosts of which that is so the first is taken.
    pub(super) fn takes(&mut self, host: &Seen) -> bool {
        let Some(name) = host.inventory.name() else { return false };
        let short = name.split('.').next().unwrap_or(name);
        let own = if self.hosts.contains_key(name) { name } else { short };
        let Some(seen) = self.hosts.get_mut(own) else { return false };
        let Some(before) = seen else {
            *seen = Some(name.to_owned());
            return true;
        };
        let list = if before == name { &mut self.again } else { &mut self.others };
        list.push(name.to_owned());
        false
    }

    /// Adds a host that is listed.
    pub(super) fn add(&mut self, host: &Seen, asked: &Asked<'_>) {
        let name = host.name.as_deref().unwrap_or_default();
        let chosen = choose_on(Some(name), &host.inventory, |_| true, &Wish::default());
        let ports = chosen.iter().map(|own| (own, own.decision.outcome.index()));
        let is_read = self.verdict.add(host, asked, ports);
        let infiniband = chosen.iter().filter(|own| own.port.link_layer == LinkLayer::INFINIBAND);
        let rows = infiniband.flat_map(|own| &own.port.rows);
        self.prefixes.extend(rows.map(|row| row.gid.subnet_prefix()));
        for ((program, _), is_set) in PROGRAMS.into_iter().zip(&mut self.are_set) {
            *is_set |= !is_as_without(program, &host.inventory, &chosen);
        }
        let is_useless = |own: &Chosen<'_>| {
            let outcome = &own.decision.outcome;
            is_known(outcome) && !is_used(outcome)
        };
        let is_useless_for_nccl =
            |own: &Chosen<'_>| is_useless(own) || !Program::Nccl.may_take(&own.port);
        let roce = chosen.iter().filter(|own| own.port.link_layer == LinkLayer::ETHERNET);
        let of_ucx = roce.filter(|own| Program::Ucx.may_take(&own.port));
        let reach = of_ucx.filter_map(|own| {
            let index = own.decision.outcome.index()?;
            own.record.row(own.port.number, index)
        });
        let here = Surroundings::of(&host.inventory);
        let reach = reach.map(|own| Reach::of_ucx(&here, own)).max();
        let host = u32::try_from(self.verdict.hosts - 1).ok();
        let reach = reach.filter(|own| *own != Reach::Routed);
        self.reach.extend(host.zip(reach));
        if is_read && chosen.iter().all(is_useless_for_nccl) {
            self.useless.extend(host);
        }
        let used = chosen.iter().filter(|own| !is_useless(own));
        for own in used {
            match own.record.node_state() {
                None => self.unlooked.extend(host),
                Some(NodeState::Usable) => self.with_nodes.extend(host),
                Some(_) => self.nodeless.extend(host),
            }
        }
        let missing = Missing { count: 0, first: Vec::new() };
        self.indices.add(name, &chosen, &missing, is_read);
    }

    /// Hosts without a snapshot, in the order of the list.
    pub(super) fn missing(&self) -> Vec<String> {
        let is_missing = |own: &&String| self.hosts.get(*own) == Some(&None);
        self.order.iter().filter(is_missing).cloned().collect()
    }

    /// Finds what fits all hosts, or which to leave out so that something does.
    pub(super) fn judge(
        &self,
        survey: &Survey,
        (rails, is_routed): (Rails, bool),
        missing: &[String],
        names: &[String],
        report: &mut Report,
    ) -> Job {
        // What was not read may be ports, too.
        let is_whole = self.verdict.unread(report).is_empty();
        let troubles =
            |out: &BTreeSet<u32>| self.troubles(survey, (rails, is_routed), out, is_whole);
        let Found { plan, out, is_unknown, later } = self.search(survey, troubles, names, is_whole);
        let is_found = plan.is_some() && out.len() < names.len();
        let nccl = plan.filter(|_| is_found);
        let ucx = self.plan(Program::Ucx, &out, is_whole).filter(|_| is_found);
        // Where nothing was found, all count of whom something is not known.
        let none = BTreeSet::new();
        let without = if is_found { &out } else { &none };
        let pairs = || survey.pairs(rails, is_routed, |_| true);
        let is_unknown = is_unknown || !is_found && pairs().problems.iter().any(is_in_doubt);
        let unlooked = self.unlooked(without, names);
        let is_left = |own: &&u32| !without.contains(own);
        let mut perhaps = survey.perhaps_duplicates();
        perhaps.retain(|own| own.hosts.iter().filter(is_left).count() > 1);
        let is_sure = !is_unknown
            && unlooked.is_empty()
            && perhaps.is_empty()
            && self.others.is_empty()
            && self.again.is_empty()
            && self.indices.unproven.is_empty()
            && report.problems().is_empty()
            && is_whole;
        let mut are_sure =
            [&nccl, &ucx].map(|own| is_sure && own.as_ref().is_none_or(|own| own.is_sure));
        self.doubt_reach([&nccl, &ucx], (without, is_routed), &mut are_sure, report);
        // Those that are missing are left out of what is found, and of nothing else.
        let are_read = is_found || missing.is_empty() && !names.is_empty();
        let has_settings = self.verdict.has_settings_of(Program::Nccl);
        let is_known = are_sure == [true; 2] && has_settings && are_read;
        for (program, _) in PROGRAMS {
            if let Some(name) = self.verdict.unused_by(program, None) {
                tell_unused(program, name, report);
            }
            if let Some(idle) = self.verdict.idle(program) {
                report.note(format!("{program} itself never takes {idle}"));
            }
        }
        if !self.others.is_empty() {
            // A host without a domain has no longer name to be listed by.
            let is_full = self.others.iter().any(|own| self.hosts.contains_key(own));
            let names = if is_full { "" } else { "list full names, or " };
            report.note(format!(
                "left out, as another host of this short name was read before: {}; {names}leave out the other snapshot",
                some(&self.others)
            ));
        }
        if !self.again.is_empty() {
            report.note(format!(
                "left out, as another snapshot of the host was read before: {}",
                some(&self.again)
            ));
        }
        if !unlooked.is_empty() {
            report.note(format!(
                "not known: whether programs can open the devices of {}",
                some(&unlooked)
            ));
        }
        // Without the hosts that are left out first, others may be compared: no row has these.
        let later = if is_found { later } else { Vec::new() };
        for own in later.iter().take(MOST_LATER) {
            let hosts = own.hosts.iter().filter_map(|own| names.get(*own as usize).cloned());
            let (hosts, ports) = (some(&hosts.collect::<Vec<_>>()), some(&own.ports));
            let text = say::trouble(own, names);
            report.note(format!("without hosts that are left out: {hosts}: {ports}: {text}"));
        }
        if let Some(more @ 1..) = later.len().checked_sub(MOST_LATER) {
            report.note(format!("without hosts that are left out: {more} more"));
        }
        for own in &perhaps {
            let hosts = own.hosts.iter().filter_map(|own| names.get(*own as usize).cloned());
            let (hosts, same) = (some(&hosts.collect::<Vec<_>>()), say::duplicate(own));
            report.note(format!("not known: whether these have {same}: {hosts}"));
        }
        if !is_known || !is_found || ucx.is_none() || !out.is_empty() || !missing.is_empty() {
            report.raise(Status::Doubt);
        }
        let pairs = |own: Plan| {
            let pairs = own.variables.into_iter();
            Pairs(pairs.map(|(name, value)| (name.to_owned(), value)).collect())
        };
        let left_out = out.iter().filter_map(|own| names.get(*own as usize));
        let left_out = missing.iter().chain(left_out).cloned();
        Job {
            is_known,
            leave_out: is_found.then(|| left_out.collect()),
            ucx: ucx.map(pairs),
            nccl: nccl.map(pairs),
            is_whole,
            are_sure,
            are_useless: missing.is_empty()
                && !names.is_empty()
                && self.useless.len() == names.len(),
        }
    }

    /// What keeps those hosts that are not left out from meeting, or may, whatever the job's variables are.
    fn troubles(
        &self,
        survey: &Survey,
        (rails, is_routed): (Rails, bool),
        out: &BTreeSet<u32>,
        is_whole: bool,
    ) -> Vec<Trouble> {
        let mut list = survey.pairs(rails, is_routed, |own| !out.contains(&own)).problems;
        let counts = PROGRAMS.map(|(program, chooser)| {
            let plan = || self.plan(program, out, is_whole);
            list.iter().any(|own| is_of_subnets(own, chooser))
                && plan().is_some_and(|own| self.is_as_now(program, &own))
        });
        list.retain(|own| {
            let mut programs = PROGRAMS.iter().zip(counts);
            is_recommended(own)
                || programs.any(|((_, chooser), counts)| counts && is_of_subnets(own, *chooser))
        });
        list
    }

    /// Says of which programs it is not known that they reach all ports.
    fn doubt_reach(
        &self,
        plans: [&Option<Plan>; 2],
        (without, is_routed): (&BTreeSet<u32>, bool),
        are_sure: &mut [bool; 2],
        report: &mut Report,
    ) {
        for (((program, _), plan), is_sure) in PROGRAMS.iter().zip(plans).zip(are_sure.iter_mut()) {
            let is_as_now = plan.as_ref().is_none_or(|own| self.is_as_now(*program, own));
            if !is_as_now && self.prefixes.len() > 1 {
                *is_sure = false;
                report.note(format!(
                    "not known: whether {program} reaches all ports of InfiniBand with these variables"
                ));
            }
        }
        // A job of one host joins no ports. Where nothing is routed, the networks of each rail are compared.
        if self.verdict.hosts <= without.len() + 1 {
            return;
        }
        let mut left = self.reach.iter().filter(|(host, _)| !without.contains(host));
        if left.any(|(_, reach)| *reach == Reach::Part || is_routed) {
            let [_, is_sure] = are_sure;
            *is_sure = false;
            report.note(
                "not known: whether UCX reaches all ports, as it is set to reach only a part of the networks",
            );
        }
    }

    /// Whether a program with these variables takes what it takes now on ports of InfiniBand. Since 2.22 NCCL takes an
    /// index on RoCE only.
    fn is_as_now(&self, program: Program, plan: &Plan) -> bool {
        let pins = |(name, value): &(&str, String)| *name == "UCX_IB_GID_INDEX" && value != "auto";
        let mut programs = PROGRAMS.iter().zip(self.are_set);
        let is_set = programs.any(|((own, _), is_set)| *own == program && is_set);
        plan.variables.is_empty() || !is_set && !plan.variables.iter().any(pins)
    }

    /// Settings of a program for those hosts that are not left out.
    fn plan(&self, program: Program, out: &BTreeSet<u32>, is_whole: bool) -> Option<Plan> {
        let has_others = if is_whole { self.verdict.is_unordered } else { self.verdict.fills };
        let has_others = has_others && program == Program::Nccl;
        let is_left = |host: usize| !u32::try_from(host).is_ok_and(|own| out.contains(&own));
        self.verdict.plan_of(program, has_others, |name| self.verdict.is_set(name), is_left)
    }

    /// Hosts that are not left out, and of which it is not known that programs can open their devices.
    fn unlooked(&self, out: &BTreeSet<u32>, names: &[String]) -> Vec<String> {
        let hosts = (0u32..).zip(names).filter(|(own, _)| !out.contains(own));
        let is_unlooked = |own: &u32| self.unlooked.contains(own) || self.nodeless.contains(own);
        hosts.filter(|(own, _)| is_unlooked(own)).map(|(_, name)| name.clone()).collect()
    }

    /// Hosts that are left out in any case.
    fn unfit(&self, survey: &Survey) -> BTreeSet<u32> {
        let mut out = self.useless.clone();
        // Where no host has usable nodes, the job's are elsewhere, as in other containers. Where each lacks some, it was
        // given some, and so may the job: then only those are left out that have none.
        let lacks = |own: &&u32| self.nodeless.contains(own);
        let is_unlooked = |own: &&u32| self.unlooked.contains(own);
        if self.with_nodes.iter().any(|own| !lacks(&own) && !is_unlooked(&own)) {
            out.extend(&self.nodeless);
        } else if !self.with_nodes.is_empty() {
            let has_none = self.nodeless.difference(&self.with_nodes);
            out.extend(has_none.filter(|own| !is_unlooked(own)));
        }
        // Of hosts that have the same address one can stay.
        for own in survey.duplicates() {
            let left: Vec<u32> =
                own.hosts.iter().filter(|own| !out.contains(own)).copied().collect();
            out.extend(left.into_iter().skip(1));
        }
        out
    }

    /// Leaves out hosts until settings of NCCL are right on those that are left, or no more can be left out.
    fn search(
        &self,
        survey: &Survey,
        troubles: impl Fn(&BTreeSet<u32>) -> Vec<Trouble>,
        names: &[String],
        is_whole: bool,
    ) -> Found {
        let differing = self.indices.differing().0;
        let differing: BTreeSet<&str> = differing.iter().map(|(own, _)| own.as_str()).collect();
        let out = self.unfit(survey);
        let mut found = Found { plan: None, out, is_unknown: false, later: Vec::new() };
        let places = |own: &Trouble| -> Vec<(u32, String)> {
            let hosts = own.hosts.iter();
            hosts.flat_map(|host| own.ports.iter().map(|port| (*host, port.clone()))).collect()
        };
        let mut before: BTreeSet<_> = troubles(&BTreeSet::new()).iter().flat_map(places).collect();
        // Leaving out hosts that meet no other makes no new trouble: two rounds are enough but for rare cases.
        for _ in 0..4 {
            let list = troubles(&found.out);
            // Of two that do not meet the other one may be named now.
            let is_new = |own: &&Trouble| {
                let other = own
                    .example
                    .into_iter()
                    .flat_map(|host| own.ports.iter().map(move |port| (host, port.clone())));
                !other.chain(places(own)).any(|own| before.contains(&own))
            };
            found.later.extend(list.iter().filter(is_new).cloned());
            before.extend(list.iter().flat_map(places));
            found.is_unknown = list.iter().any(is_in_doubt);
            let bad = list.iter().filter(|own| matches!(own.why, Why::Cannot(_)));
            let bad: BTreeSet<u32> = bad.flat_map(|own| own.hosts.iter().copied()).collect();
            if !bad.is_empty() {
                found.out.extend(bad);
                continue;
            }
            found.plan = self.plan(Program::Nccl, &found.out, is_whole);
            if found.plan.is_some() {
                break;
            }
            let odd = (0u32..).zip(names).filter(|(_, name)| differing.contains(name.as_str()));
            let mut without = found.out.clone();
            without.extend(odd.map(|(host, _)| host));
            if without.len() == found.out.len() || without.len() == names.len() {
                self.keep_alike(&mut found, troubles, names.len(), is_whole);
                break;
            }
            found.out = without;
        }
        found
    }

    /// None is like most: those hosts are kept that are alike, where they are most.
    fn keep_alike(
        &self,
        found: &mut Found,
        troubles: impl Fn(&BTreeSet<u32>) -> Vec<Trouble>,
        count: usize,
        is_whole: bool,
    ) {
        /// Each takes as long as there are hosts, and may be one host.
        const MOST_GROUPS: usize = 100;
        for group in self.indices.alike().into_iter().take(MOST_GROUPS) {
            let group: BTreeSet<u32> =
                group.into_iter().filter_map(|own| u32::try_from(own).ok()).collect();
            let hosts = (0u32..).take(count);
            let out: BTreeSet<u32> =
                hosts.filter(|own| found.out.contains(own) || !group.contains(own)).collect();
            if out.len() == count {
                continue;
            }
            let Some(plan) = self.plan(Program::Nccl, &out, is_whole) else { continue };
            let list = troubles(&out);
            if list.iter().any(|own| matches!(own.why, Why::Cannot(_))) {
                continue;
            }
            let is_unknown = !list.is_empty();
            *found = Found { plan: Some(plan), out, is_unknown, later: Vec::new() };
            return;
        }
    }
}

/// What a search for settings found.
struct Found {
    plan: Option<Plan>,
    /// The hosts that are left out for it.
    out: BTreeSet<u32>,
    /// Whether it is not known of all others that they can meet.
    is_unknown: bool,
    /// What was found only without hosts that are left out.
    later: Vec<Trouble>,
}

/// How many of these are told.
const MOST_LATER: usize = 3;

impl Job {
    /// Whether there are settings for each program that are right on all hosts.
    pub(super) fn has_settings(&self) -> bool {
        let leaves_none_out = self.leave_out.as_ref().is_some_and(Vec::is_empty);
        self.is_known && leaves_none_out && self.nccl.is_some() && self.ucx.is_some()
    }

    /// Says it to people.
    pub(super) fn tell(&self, report: &mut Report) {
        let known = |is_known| if is_known { "" } else { ", as far as is known" };
        let all_known = known(self.is_known);
        let Some(out) = &self.leave_out else {
            if self.are_useless {
                return report.note(format!("NCCL can use no port of these hosts{all_known}"));
            }
            report.note(format!(
                "uverbs found no setting of NCCL that is right on these hosts, nor which of them to leave out{all_known}"
            ));
            return;
        };
        let all = if out.is_empty() { "all hosts" } else { "the others" };
        let among = if self.is_whole { "" } else { ", among what was read" };
        if !out.is_empty() {
            // All of them: who acts on it needs each.
            report.note(format!("leave out {}{all_known}", out.join(", ")));
        }
        let settings = [("NCCL", &self.nccl), ("UCX", &self.ucx)];
        for ((program, setting), is_sure) in settings.into_iter().zip(self.are_sure) {
            let Some(Pairs(variables)) = setting else {
                report.note(format!("{program}: no setting that uverbs tries is right on {all}"));
                continue;
            };
            let pairs: Vec<String> =
                variables.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let pairs =
                if pairs.is_empty() { "nothing to set".to_owned() } else { pairs.join(" ") };
            report.note(format!("{program}: right on {all}{among}{}: {pairs}", known(is_sure)));
        }
    }
}

/// Whether it is not known of a trouble that it is one.
fn is_in_doubt(own: &Trouble) -> bool {
    !matches!(own.why, Why::Cannot(_))
}

/// Whether a trouble is one of what is recommended, which variables can set for a job.
fn is_recommended(own: &Trouble) -> bool {
    own.choosers.contains(&Chooser::Recommended)
}

/// Whether it is one of what a program takes on InfiniBand of several subnets, which is left to it.
fn is_of_subnets(own: &Trouble, chooser: Chooser) -> bool {
    let is_subnet = match &own.why {
        Why::Cannot(list) => list.contains(&Obstacle::Subnet),
        Why::Unknown(list) => list.contains(&Doubt::Path),
        _ => false,
    };
    is_subnet && own.choosers.contains(&chooser)
}

/// Whether it is one that a job may have.
pub(super) fn is_of_job(own: &Trouble) -> bool {
    is_recommended(own) || PROGRAMS.iter().any(|(_, chooser)| is_of_subnets(own, *chooser))
}
