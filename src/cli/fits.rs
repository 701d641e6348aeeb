//! Whether one setting is right on all ports of all hosts, which `choose` says of snapshots.

use std::fmt::Write as _;

use serde::Serialize;
use uverbs::choose::plan::Program;

use crate::filter::{FamilyChoice, FilterArgs};
use crate::hosts::some;
use crate::looked::{Looked, PortCount};
use crate::report::Report;
use crate::selection::Asked;
use crate::text::count;
use crate::values::Pairs;
use crate::verdict::{Indices, Verdict};

/// The programs of which settings are given.
const PROGRAMS: [Program; 2] = [Program::Nccl, Program::Ucx];

/// What fits all hosts. Nothing is said to fit all if something was not read.
#[derive(Debug, Serialize)]
pub(crate) struct Fits {
    /// How many were read.
    hosts: usize,
    /// What could not be read: hosts, devices, ports.
    unread: Vec<String>,
    /// Ports that have no usable GID with what was asked for, and hosts without a port: no setting is for them.
    unusable: Vec<String>,
    /// Ports of whose GID it is not known that it is right.
    unproven: Vec<String>,
    #[serde(flatten)]
    all: Fit,
    /// The same of what was read and as far as is known, where that is not all that is.
    #[serde(skip_serializing_if = "Option::is_none")]
    read: Option<Fit>,
    /// Hosts that are not as most are, with what differs.
    differing: Pairs<Vec<String>>,
    #[serde(skip)]
    ports: PortCount,
    /// Ports that NCCL and UCX never ask for.
    #[serde(skip)]
    idle: [Option<String>; 2],
    /// Ports that these do not find, of hosts where they find no other that has a usable GID.
    #[serde(skip)]
    lost: [Option<String>; 2],
    /// Whether some have another index, which is not needed there.
    #[serde(skip)]
    has_others: bool,
}

/// Variables, and whether it is known that the program then uses what is right.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
struct Variables {
    #[serde(skip)]
    is_sure: bool,
    variables: Pairs<String>,
}

/// What is right on ports.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
struct Fit {
    /// The index that is right on all of them.
    index: Option<u32>,
    /// Whether some port has a usable GID.
    #[serde(skip)]
    is_any: bool,
    /// Variables that are right on all, or null.
    nccl: Option<Variables>,
    ucx: Option<Variables>,
}

impl Fit {
    /// Of the variables those that are known to be right.
    fn sure(&self) -> Self {
        let Self { nccl, ucx, .. } = self.clone();
        let is_sure = |own: &Variables| own.is_sure;
        Self { nccl: nccl.filter(is_sure), ucx: ucx.filter(is_sure), ..*self }
    }
}

pub(crate) fn fits(
    verdict: &Verdict,
    indices: &Indices,
    asked: &Asked<'_>,
    report: &Report,
) -> Fits {
    let unread = verdict.unread(report);
    // What is not among the targets may take their room: only a list keeps it for them.
    let is_whole = asked.is_all() && unread.is_empty();
    let has_others = if is_whole { verdict.is_unordered } else { verdict.fills };
    let variables = |program| {
        let has_others = has_others && program == Program::Nccl;
        let plan = verdict.plan(program, has_others, |name| verdict.is_set(name))?;
        let pairs = plan.variables.into_iter();
        let pairs = pairs.map(|(name, value)| (name.to_owned(), value)).collect();
        Some(Variables { is_sure: plan.is_sure, variables: Pairs(pairs) })
    };
    let fit = Fit {
        is_any: indices.is_any,
        index: indices.one(),
        nccl: variables(Program::Nccl),
        ucx: variables(Program::Ucx),
    };
    let is_known = unread.is_empty() && indices.unproven.is_empty();
    let all = if is_known { fit.sure() } else { Fit::default() };
    let read = (!is_known || all != fit).then_some(fit);
    Fits {
        hosts: verdict.hosts,
        unread,
        unusable: indices.unusable(),
        unproven: indices.unproven.clone(),
        all,
        read,
        differing: indices.differing(),
        ports: indices.counts,
        idle: PROGRAMS.map(|program| verdict.idle(program)),
        lost: PROGRAMS.map(|program| verdict.lost(program)),
        has_others: indices.has_others(),
    }
}

/// Says it to people, after what was said of each port: of the ports that were asked for, and GIDs with this.
pub(crate) fn tell(
    fits: &Fits,
    looked: &Looked,
    asked: &Asked<'_>,
    wished: (&FilterArgs, Option<FamilyChoice>),
    report: &mut Report,
) {
    tell_settings(fits, asked, wished, report);
    let unread = report.bad_files().count();
    if looked.hosts + unread < 2 {
        return;
    }
    for (host, what) in &fits.differing.0 {
        report.note(format!("{host} differs: {}", what.join(", ")));
    }
    let differing = match fits.differing.0.len() {
        0 if fits.ports.unknown > 0 || !fits.unproven.is_empty() => {
            "no host is known to differ".to_owned()
        }
        0 if !fits.unread.is_empty() => "no host that was read differs".to_owned(),
        0 => "no host differs".to_owned(),
        1 => "1 host differs".to_owned(),
        some => format!("{} differ", count(some, "host")),
    };
    let mut last = format!("looked at {}: {looked}; {differing}", count(looked.hosts, "host"));
    if unread > 0 {
        let _ = write!(last, "; {} could not be read", count(unread, "snapshot"));
    }
    report.end_with(last);
}

fn tell_settings(
    fits: &Fits,
    asked: &Asked<'_>,
    (filter, family): (&FilterArgs, Option<FamilyChoice>),
    report: &mut Report,
) {
    let mut all = fits.ports.text(asked, fits.hosts, &filter.words_with(family));
    if !fits.unread.is_empty() {
        report.note(format!(
            "not known, as not everything was read: what is right on {}",
            some(&fits.unread)
        ));
        all += ", among what was read";
    }
    if !fits.unproven.is_empty() {
        let names = some(&fits.unproven);
        report
            .note(format!("not known to be right, see --explain: what is recommended on {names}"));
        all += ", as far as is known";
    }
    if !fits.unusable.is_empty() {
        let _ = write!(all, " (not on {})", some(&fits.unusable));
    }
    let fit = fits.read.as_ref().unwrap_or(&fits.all);
    let has = if fits.ports.unknown > 0 { "is known to have" } else { "has" };
    match (fit.index, fit.is_any) {
        (Some(index), _) if fits.has_others => report.note(format!(
            "index {index} is right on those of Ethernet among {all}; on the others it may do harm (UCX, NCCL before 2.22)"
        )),
        (Some(index), _) => report.note(format!("index {index} is right on {all}")),
        (None, true) => report.note(format!("no single index is right on {all}")),
        (None, false) => {
            let which = match (asked.is_all(), fits.unread.is_empty()) {
                (true, _) => "was read",
                (false, true) => "is asked for",
                (false, false) => "is asked for and was read",
            };
            let gid = filter.usable_gid(family);
            return report.note(format!("no port that {which} {has} {gid}"));
        }
    }
    let settings = PROGRAMS.into_iter().zip([&fit.nccl, &fit.ucx]);
    for ((program, setting), (idle, lost)) in settings.zip(fits.idle.iter().zip(&fits.lost)) {
        if let Some(lost) = lost {
            report.note(format!(
                "{program}: no setting is right on {all}, as it does not find {lost}"
            ));
            continue;
        }
        let Some(Variables { variables, is_sure }) = setting else {
            let also = if fits.unusable.is_empty() { "" } else { " and uses no other port" };
            report.note(format!("{program}: no setting that uverbs tries is right on {all}{also}"));
            if let Some(idle) = idle {
                report.note(format!("{program} itself never takes {idle}"));
            }
            continue;
        };
        let pairs: Vec<String> =
            variables.0.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let pairs = if pairs.is_empty() { "nothing to set".to_owned() } else { pairs.join(" ") };
        let known = ", as far as is known";
        let known = if *is_sure || all.contains(known) { "" } else { known };
        let but = idle.as_ref().map(|own| format!(", but for {own}, which it never takes itself"));
        let but = but.unwrap_or_default();
        report.note(format!("{program}: right on {all}{but}{known}: {pairs}"));
    }
}
