//! The hosts of a job: what fits them all, or which to leave out.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use uverbs::choose::Wish;
use uverbs::choose::plan::Program;
use uverbs::fleet::{Chooser, Rails, Survey, Trouble, Why};

use crate::host_list::HostList;
use crate::hosts::{Seen, choose_on, some};
use crate::report::Report;
use crate::selection::{Asked, Missing};
use crate::status::Status;
use crate::values::Pairs;
use crate::verdict::{Indices, Verdict};

/// The hosts that are listed, as far as they were seen.
pub(super) struct Listed {
    /// Each with whether it was seen.
    hosts: BTreeMap<String, bool>,
    order: Vec<String>,
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
}

impl Listed {
    pub(super) fn new(list: &HostList) -> Self {
        Self {
            hosts: list.0.iter().map(|own| (own.clone(), false)).collect(),
            order: list.0.clone(),
            verdict: Verdict::default(),
            indices: Indices::default(),
        }
    }

    /// Whether a host is listed. Its own name may have a domain which the list leaves out.
    pub(super) fn takes(&mut self, host: &Seen) -> bool {
        let Some(name) = host.inventory.host.as_deref() else { return false };
        let short = name.split('.').next().unwrap_or(name);
        let own = if self.hosts.contains_key(name) { name } else { short };
        self.hosts.get_mut(own).map(|is_seen| *is_seen = true).is_some()
    }

    /// Adds a host that is listed.
    pub(super) fn add(&mut self, host: &Seen, asked: &Asked<'_>) {
        let name = host.name.as_deref().unwrap_or_default();
        let chosen = choose_on(Some(name), &host.inventory, |_| true, &Wish::default());
        let ports = chosen.iter().map(|own| (own, own.decision.outcome.index()));
        let is_read = self.verdict.add(host, asked, ports);
        let missing = Missing { count: 0, first: Vec::new() };
        self.indices.add(name, &chosen, &missing, is_read);
    }

    /// Hosts without a snapshot, in the order of the list.
    pub(super) fn missing(&self) -> Vec<String> {
        let is_missing = |own: &&String| self.hosts.get(*own) == Some(&false);
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
        let troubles = |out: &BTreeSet<u32>| {
            let pairs = survey.pairs(rails, is_routed, |own| !out.contains(&own));
            pairs.problems.into_iter().filter(is_recommended).collect::<Vec<_>>()
        };
        let is_set = |name: &str| self.verdict.is_set(name);
        let plan = |program, out: &BTreeSet<u32>| {
            let has_others = self.verdict.is_unordered && program == Program::Nccl;
            let is_left = |host: usize| !u32::try_from(host).is_ok_and(|own| out.contains(&own));
            self.verdict.plan_of(program, has_others, is_set, is_left).filter(|own| own.is_sure)
        };
        let differing = self.indices.differing().0;
        let differing: BTreeSet<&str> = differing.iter().map(|(own, _)| own.as_str()).collect();
        let mut out = BTreeSet::new();
        let mut found = None;
        let mut is_unknown = false;
        // Leaving out hosts that meet no other makes no new trouble: two rounds are enough but for rare cases.
        for _ in 0..4 {
            let list = troubles(&out);
            is_unknown = list.iter().any(|own| !matches!(own.why, Why::Cannot(_)));
            let bad = list.iter().filter(|own| matches!(own.why, Why::Cannot(_)));
            let bad: BTreeSet<u32> = bad.flat_map(|own| own.hosts.iter().copied()).collect();
            if bad.is_empty() {
                found = plan(Program::Nccl, &out);
                if found.is_some() {
                    break;
                }
                let is_odd = |name: &String| differing.contains(name.as_str());
                let odd = (0u32..).zip(names).filter(|(_, name)| is_odd(name));
                let before = out.len();
                out.extend(odd.map(|(host, _)| host));
                if out.len() == before {
                    break;
                }
            }
            out.extend(bad);
        }
        let is_known = !is_unknown && self.verdict.unread(report).is_empty();
        let is_found = found.is_some() && out.len() < names.len();
        if !is_known || !is_found || !out.is_empty() || !missing.is_empty() {
            report.raise(Status::Doubt);
        }
        let pairs = |own: uverbs::choose::plan::Plan| {
            let pairs = own.variables.into_iter();
            Pairs(pairs.map(|(name, value)| (name.to_owned(), value)).collect())
        };
        let left_out = missing.iter().cloned();
        let left_out =
            left_out.chain(out.iter().filter_map(|own| names.get(*own as usize).cloned()));
        Job {
            is_known,
            leave_out: is_found.then(|| left_out.collect()),
            ucx: plan(Program::Ucx, &out).filter(|_| is_found).map(pairs),
            nccl: found.filter(|_| is_found).map(pairs),
        }
    }
}

impl Job {
    /// Says it to people.
    pub(super) fn tell(&self, report: &mut Report) {
        let known = if self.is_known { "" } else { ", as far as is known" };
        let Some(out) = &self.leave_out else {
            report.note(format!(
                "no setting of NCCL that uverbs tries is right on these hosts, whichever are left out{known}"
            ));
            return;
        };
        let all = if out.is_empty() { "all hosts" } else { "the others" };
        if !out.is_empty() {
            report.note(format!("leave out {}{known}", some(out)));
        }
        for (program, setting) in [("NCCL", &self.nccl), ("UCX", &self.ucx)] {
            let Some(Pairs(variables)) = setting else {
                report.note(format!("{program}: no setting that uverbs tries is right on {all}"));
                continue;
            };
            let pairs: Vec<String> =
                variables.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let pairs =
                if pairs.is_empty() { "nothing to set".to_owned() } else { pairs.join(" ") };
            report.note(format!("{program}: right on {all}{known}: {pairs}"));
        }
    }
}

/// Whether a trouble is one of what is recommended, which variables can set for a job.
pub(super) fn is_recommended(own: &Trouble) -> bool {
    own.choosers.contains(&Chooser::Recommended)
}
