//! `uverbs env`: the variables by which a program uses the right GID on every port.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use clap::{Args, ValueEnum};
use serde::Serialize;
use serde_json::Value;
use uverbs::check::{Finding, settings_for};
use uverbs::choose::Outcome;
use uverbs::choose::nccl::ROOM;
use uverbs::choose::plan::{Plan, Program, Way};
use uverbs::inventory::settings::NAMES;
use uverbs::inventory::{Inventory, Parts, Unread, read_settings};

use crate::args::{Common, NamedPorts, OriginArgs};
use crate::check;
use crate::choose::{lacks, tell_nodes, tell_settings, tell_variables};
use crate::filter::{FamilyChoice, FilterArgs};
use crate::form::{Form, Format};
use crate::hosts::{Chosen, SHOWN, Seen, choose, look, missing, some, some_of};
use crate::output::{Output, json};
use crate::report::{Report, Stage, Unanswered};
use crate::selection::Asked;
use crate::status::Status;
use crate::text::plain_json;
use crate::values::Pairs;
use crate::verdict::{Verdict, is_ignored, is_known, tell_unused, unused_by};

#[derive(Debug, Args)]
#[command(mut_arg("selectors", |own| own.help("Devices and ports to use; all that have a usable GID if none is named")))]
pub(crate) struct EnvArgs {
    /// The program
    pub(crate) program: ProgramChoice,
    #[command(flatten)]
    pub(crate) named: NamedPorts,
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    /// Only GIDs of addresses of this family
    #[arg(long, value_name = "FAMILY", help_heading = "Filters")]
    pub(crate) family: Option<FamilyChoice>,
    #[command(flatten)]
    pub(crate) origin: OriginArgs,
    /// How to print [default: shell]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<EnvFormat>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProgramChoice {
    /// NCCL
    Nccl,
    /// UCX
    Ucx,
    /// NVSHMEM
    Nvshmem,
}

impl From<ProgramChoice> for Program {
    fn from(choice: ProgramChoice) -> Self {
        match choice {
            ProgramChoice::Nccl => Self::Nccl,
            ProgramChoice::Ucx => Self::Ucx,
            ProgramChoice::Nvshmem => Self::Nvshmem,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EnvFormat {
    /// A line of `export` for each variable
    Shell,
    /// One JSON document; the same as --json
    Json,
    /// The entries of a container's env list, in YAML
    Kubernetes,
    /// Lines of Slurm's `TaskProlog`, only if they are known to be right
    Slurm,
}

impl Format for EnvFormat {
    const JSON: Self = Self::Json;
    const DEFAULT: Self = Self::Shell;

    fn form(self) -> Form {
        match self {
            Self::Json => Form::Json,
            Self::Shell | Self::Kubernetes | Self::Slurm => Form::Text,
        }
    }
}

#[derive(Debug, Serialize)]
struct Document<'a> {
    /// Names and values, in the order to set them; null if none are right.
    env: Option<Pairs<String>>,
    /// `index`, `automatic` or `addresses`.
    way: Option<Way>,
    /// Whether it is known that the program then uses the right GIDs.
    is_sure: Option<bool>,
    /// What is not known of the GIDs that are right, and what speaks against them.
    doubts: &'a [Doubt],
    /// Ports that have a right GID, and that the program never takes.
    #[serde(skip_serializing_if = "<[Idle]>::is_empty")]
    never_asked_for: &'a [Idle],
    /// What is set now and does not fit.
    now: Vec<check::Row<'a>>,
    problems: &'a [Unanswered],
}

/// A port that the program never takes.
#[derive(Debug, Serialize)]
struct Idle {
    #[serde(skip)]
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<String>,
    device: String,
    port: u32,
}

impl Idle {
    /// Those of some ports that have a right GID.
    fn all(ports: &[&Chosen<'_>]) -> Vec<Self> {
        let ports = ports.iter().filter(|own| own.decision.outcome.index().is_some());
        let idle = |own: &&Chosen<'_>| Self {
            name: own.name(),
            host: own.host.map(str::to_owned),
            device: own.port.device.to_owned(),
            port: own.port.number,
        };
        ports.map(idle).collect()
    }

    /// Devices and ports of these. There may be very many.
    fn places(all: &[Self]) -> BTreeSet<(&str, u32)> {
        all.iter().map(|own| (own.device.as_str(), own.port)).collect()
    }

    fn some(all: &[Self]) -> String {
        let first: Vec<String> = all.iter().take(SHOWN).map(|own| own.name.clone()).collect();
        some_of(&first, all.len())
    }
}

/// Something that speaks against a GID that is right as far as is known, or why it is not known which is right.
#[derive(Debug, Serialize)]
struct Doubt {
    /// The name of its port, after the host's.
    #[serde(skip)]
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<String>,
    device: String,
    port: u32,
    /// `None` if it is not known which index is right.
    index: Option<u32>,
    caveat: String,
}

impl Doubt {
    /// Those of a port.
    fn all(own: &Chosen<'_>) -> Vec<Self> {
        let outcome = &own.decision.outcome;
        let unknown = (!is_known(outcome)).then(|| outcome.to_string());
        let caveats = own.decision.caveats(&own.port).into_iter().map(|own| own.to_string());
        unknown.into_iter().chain(caveats).map(|text| Self::new(own, text)).collect()
    }

    fn new(own: &Chosen<'_>, caveat: String) -> Self {
        Self {
            name: own.name(),
            host: own.host.map(str::to_owned),
            device: own.port.device.to_owned(),
            port: own.port.number,
            index: own.decision.outcome.index(),
            caveat,
        }
    }
}

pub(crate) fn answer(
    common: &Common,
    args: &EnvArgs,
    report: &mut Report,
) -> serde_json::Result<Output> {
    let format = EnvFormat::asked(args.format, common);
    let source = (&args.origin.from, args.origin.preference(common), Parts::CHOOSING);
    let named = Asked::new(&args.named.selectors);
    let wish = args.filter.wish(args.family);
    let program = Program::from(args.program);
    let mut verdict = Verdict::default();
    let mut right = RightIndices::default();
    let (mut are_missing, mut has_unnamed, mut is_host_unread) = (false, false, false);
    let (mut is_met, mut idle, mut lacking) = (true, Vec::new(), Vec::new());
    let mut now: Vec<(Option<String>, Finding)> = Vec::new();
    let mut doubts = Vec::new();
    look(common, source, &Asked::default(), report, |host, report| {
        are_missing |= missing(host, &named, report).0;
        // All ports, as one that is not asked for must be left alone.
        let all = choose(host, &named, &wish, report);
        let is_asked = |own: &Chosen<'_>| named.has_port(own.port.device, own.port.number);
        let wanted: Vec<&Chosen<'_>> = all.iter().filter(|own| is_asked(own)).collect();
        tell_nodes(host, &named, report);
        tell_left_out(&wanted, report);
        is_met &= !lacks(&wanted, &named);
        let (wanted, rest): (Vec<&Chosen<'_>>, Vec<&Chosen<'_>>) =
            wanted.into_iter().partition(|own| program.may_take(&own.port));
        let rest = Idle::all(&rest);
        let is_lacking = wanted.is_empty() || lacks(&wanted, &named);
        lacking.extend(rest.iter().filter(|_| is_lacking).map(|own| own.name.clone()));
        tell_variables(host, report);
        if program == Program::Nccl {
            tell_settings(host, report);
        }
        doubts.extend(wanted.iter().flat_map(|own| Doubt::all(own)));
        right.add(&wanted);
        let index = |own: &Chosen<'_>| own.decision.outcome.index().filter(|_| is_asked(own));
        let ports = all.iter().map(|own| (own, index(own)));
        // A port that is not asked for may come up later.
        has_unnamed |= !all.iter().all(is_asked);
        verdict.add(host, &named, ports);
        is_host_unread |= host.is_partly_read || host.inventory.unread().contains(&Unread::Host);
        let left = Idle::places(&rest);
        let is_asked =
            |name: &str, port| named.has_port(name, port) && !left.contains(&(name, port));
        let found = settings_for(&host.inventory, &wish, &is_asked).into_iter();
        now.extend(found.filter(|own| is_of(program, own)).map(|own| (host.name.clone(), own)));
        idle.extend(rest);
        Ok(())
    })?;
    // What is not known is not printed: a shell takes what is printed, whatever the status is.
    let unread = verdict.unread(report);
    let here = Here::read(common, args, format);
    let has_settings = here.has_settings_of(program, report) && verdict.has_settings_of(program);
    let has_a_say = |name: &str| verdict.is_set(name) || here.is_set(name);
    let is_known = unread.is_empty() && verdict.hosts > 0 && !are_missing && has_settings;
    let mut plan = if is_known && !right.is_empty() && is_met && lacking.is_empty() {
        let has_others = has_unnamed || has_others(program, &verdict, report);
        verdict.plan(program, has_others, has_a_say)
    } else {
        None
    };
    let unused_here = here.unused_by(program).filter(|name| !is_ignored(name, plan.as_ref()));
    let unused_by = verdict.unused_by(program, plan.as_ref()).or(unused_here);
    if let (Some(plan), Some(name)) = (&mut plan, unused_by) {
        plan.is_sure = false;
        tell_unused(program, name, report);
    }
    let gid = args.filter.usable_gid(args.family);
    if !unread.is_empty() {
        let would_help = named.is_all() && !is_host_unread && has_settings;
        tell_unread(&unread, would_help && report.bad_files().next().is_none(), report);
    } else if !has_settings {
        report.note("no variables, as not all settings of NCCL could be read");
    } else if is_known && is_met && !lacking.is_empty() {
        report.note(format!("no variables, as {program} itself never takes {}", some(&lacking)));
    } else if is_known && !right.is_empty() && !is_met {
        report.note(format!("no variables, as not all that is asked for has {gid}"));
    } else if is_known && right.is_empty() {
        report.note(format!("no port that is asked for has {gid}"));
    } else if let Some(lost) = verdict.lost(program).filter(|_| is_known) {
        report.note(format!("no variables, as programs do not find {lost}"));
    } else if is_known {
        explain(program, plan.as_ref(), &right, &verdict, report);
    }
    match &plan {
        None => report.raise(Status::Doubt),
        Some(_) if idle.is_empty() => {}
        Some(_) => report.note(format!("{program} itself never takes {}", Idle::some(&idle))),
    }
    let has_doubt = right.is_doubtful || !doubts.is_empty();
    let is_sure = plan.as_ref().map(|plan| plan.is_sure && !has_doubt);
    let plan = plan.filter(|own| {
        format != EnvFormat::Slurm
            || may_be_exported(program, has_a_say, own.is_sure && !has_doubt, report)
    });
    tell_doubts(&doubts, report);
    if format == EnvFormat::Json {
        let now = now.iter().map(|(host, own)| check::Row::new(host.as_deref(), own)).collect();
        let (env, way) = (plan.as_ref().map(pairs), plan.as_ref().map(|plan| plan.way));
        let (doubts, problems, never_asked_for) = (&doubts, report.problems(), &idle);
        return json(&Document { env, way, is_sure, doubts, never_asked_for, now, problems });
    }
    for (host, finding) in &now {
        let host = host.as_ref().map(|host| format!("{host}: ")).unwrap_or_default();
        report.note(format!("{host}{}; {}", finding.seen, finding.advice));
    }
    Ok(Output::Text(printed(plan.as_ref(), format).into_bytes()))
}

/// Whether a finding is about the program. That indices differ is said of the plan.
fn is_of(program: Program, finding: &Finding) -> bool {
    finding.program == Some(program) && finding.name != "different-indices"
}

/// Says which of the wanted ports have no right row.
fn tell_left_out(wanted: &[&Chosen<'_>], report: &mut Report) {
    report.enter(Stage::Unusable);
    for own in wanted.iter().filter(|own| own.decision.outcome.index().is_none()) {
        report.note(match &own.decision.outcome {
            outcome if !is_known(outcome) => format!("{}: {outcome}", own.name()),
            Outcome::Ignored(why) => format!("{}: left out: {why}", own.name()),
            other => format!("{}: left out: {other}", own.name()),
        });
    }
}

fn tell_unread(unread: &[String], would_naming_help: bool, report: &mut Report) {
    let advice = if would_naming_help { "; name the ports to use, if they are others" } else { "" };
    let unread = some(unread);
    report.note(format!("no variables, as not everything was read: {unread}{advice}"));
}

fn tell_doubts(doubts: &[Doubt], report: &mut Report) {
    // That it is not known which index is right was said of the port.
    for Doubt { name, index, caveat, .. } in doubts {
        if let Some(index) = index {
            report.note(format!("{name}: {index}: {caveat}"));
        }
    }
}

fn pairs(plan: &Plan) -> Pairs<String> {
    let pairs = plan.variables.iter();
    Pairs(pairs.map(|(name, value)| ((*name).to_owned(), value.clone())).collect())
}

/// Whether a job is given the variables: they are known to be right, and it has not chosen itself.
fn may_be_exported(
    program: Program,
    is_set: impl Fn(&str) -> bool,
    is_sure: bool,
    report: &mut Report,
) -> bool {
    // What a job has chosen is no failure.
    if let Some(name) = chosen(program, is_set) {
        report.note(format!("no variables, as {name} is set already"));
        return false;
    }
    if !is_sure {
        report.note("no variables, as they are not known to be right");
        report.raise(Status::Doubt);
    }
    is_sure
}

/// The variables as a shell or Kubernetes reads them.
fn printed(plan: Option<&Plan>, format: EnvFormat) -> String {
    let mut text = String::new();
    for (name, value) in plan.into_iter().flat_map(|plan| &plan.variables) {
        let _ = match format {
            EnvFormat::Kubernetes => {
                let value = Value::from(value.as_str()).to_string();
                writeln!(text, "- name: {name}\n  value: {}", plain_json(&value))
            }
            // Slurm takes what is there to the end of the line.
            EnvFormat::Slurm => writeln!(text, "export {name}={value}"),
            EnvFormat::Shell | EnvFormat::Json => writeln!(text, "export {name}={}", quote(value)),
        };
    }
    text
}

/// Whether other ports than those that are known may take the room of one that is named.
fn has_others(program: Program, verdict: &Verdict, report: &Report) -> bool {
    verdict.has_unread
        || report.bad_files().next().is_some()
        || (program == Program::Nccl && verdict.is_unordered)
}

/// What is set for a program that takes what is printed, where it is not on the host that is looked at.
struct Here(Seen);

impl Here {
    fn read(common: &Common, args: &EnvArgs, format: EnvFormat) -> Self {
        let mut inventory = Inventory::default();
        let is_elsewhere = common.sysfs.is_some() || !args.origin.from.from.is_empty();
        if is_elsewhere && matches!(format, EnvFormat::Shell | EnvFormat::Slurm) {
            (inventory.settings, inventory.unread_settings, inventory.home_is_assumed) =
                read_settings();
        }
        Self(Seen::here(inventory))
    }

    fn is_set(&self, name: &str) -> bool {
        self.0.inventory.settings.iter().any(|own| own.name == name)
    }

    /// Whether all settings of a program could be read. What could not is said.
    fn has_settings_of(&self, program: Program, report: &mut Report) -> bool {
        if program != Program::Nccl {
            return true;
        }
        tell_settings(&self.0, report);
        self.0.inventory.unread_settings.is_empty()
    }

    /// The variable by which a program may not use RDMA as uverbs says.
    fn unused_by(&self, program: Program) -> Option<&'static str> {
        unused_by(program, &self.0.inventory)
    }
}

/// Which variable is set already with which this program chooses GIDs.
fn chosen(program: Program, is_set: impl Fn(&str) -> bool) -> Option<&'static str> {
    // These only say whether RDMA is used, or where settings are.
    const OTHERS: [&str; 6] = [
        "NCCL_IB_DISABLE",
        "NCCL_NET",
        "NCCL_NET_PLUGIN",
        "NCCL_ENV_PLUGIN",
        "UCX_TLS",
        "UCX_MODULES",
    ];
    let beginning = program.index_variable().split('_').next().unwrap_or_default();
    NAMES.into_iter().find(|name| {
        name.split('_').next() == Some(beginning) && !OTHERS.contains(name) && is_set(name)
    })
}

/// The indices that are right on the ports to be used.
#[derive(Debug, Default)]
struct RightIndices {
    /// In the order in which they were found.
    indices: Vec<RightIndex>,
    /// The place of each.
    places: BTreeMap<u32, usize>,
    /// How many ports are to be used on the host that has the most.
    most: usize,
    /// Whether it is not known of some index that it is right.
    is_doubtful: bool,
}

/// An index that is right on some ports.
#[derive(Debug)]
struct RightIndex {
    index: u32,
    /// The names of the first ports, as many as are shown.
    names: Vec<String>,
    count: usize,
}

impl RightIndices {
    /// Adds a host's ports.
    fn add(&mut self, ports: &[&Chosen<'_>]) {
        let mut found = 0;
        for own in ports {
            let Some(index) = own.decision.outcome.index() else { continue };
            let place = *self.places.entry(index).or_insert_with(|| {
                self.indices.push(RightIndex { index, names: Vec::new(), count: 0 });
                self.indices.len() - 1
            });
            self.is_doubtful |= !own.decision.is_sure(&own.port);
            if let Some(known) = self.indices.get_mut(place) {
                known.count += 1;
                found += usize::from(own.port.is_found);
                if known.names.len() < SHOWN {
                    known.names.push(own.name());
                }
            }
        }
        self.most = self.most.max(found);
    }

    fn is_empty(&self) -> bool {
        self.indices.is_empty()
    }

    /// How many ports are to be used on one host, where that is more than the program has room for.
    fn too_many(&self, program: Program) -> Option<usize> {
        (program != Program::Ucx && self.most > ROOM).then_some(self.most)
    }
}

/// Says how the plan works, or why there is none.
fn explain(
    program: Program,
    plan: Option<&Plan>,
    right: &RightIndices,
    verdict: &Verdict,
    report: &mut Report,
) {
    let index = program.index_variable();
    let differing = || {
        let text =
            |own: &RightIndex| format!("{} on {}", own.index, some_of(&own.names, own.count));
        right.indices.iter().map(text).collect::<Vec<_>>().join("; ")
    };
    if plan.is_some_and(|plan| verdict.is_crowded(program, plan)) {
        report.note(if program == Program::Ucx {
            format!("not known to be right: {program} may have no room for all ports of a host: name those to use")
        } else {
            format!("not known to be right: older releases of {program} may have no room for all devices of a host")
        });
    }
    let is_guess = plan.is_some_and(|plan| !plan.is_sure);
    let known = if right.is_doubtful || is_guess { ", as far as is known" } else { "" };
    if plan.is_some_and(|plan| plan.variables.is_empty()) {
        report.note(format!("nothing need be set: {program} uses the right GIDs by itself{known}"));
    }
    match (plan.map(|plan| plan.way), right.too_many(program)) {
        (None, Some(count)) if program == Program::Nvshmem => report.note(format!(
            "{program} has room for {ROOM} ports of a host and in its list for 16, and there are {count}"
        )),
        (None, Some(count)) => report.note(format!(
            "{program} has room for {ROOM} ports of a host, and there are {count}: name those to use"
        )),
        (None, None) => report.note(format!(
            "no setting that uverbs tries makes {program} use the right GID on every port; right are \
             {}{known}",
            differing()
        )),
        (Some(Way::Index(_)), _) => {}
        (Some(Way::Automatic), _) if right.indices.len() < 2 && is_guess => {
            report.note(format!("{program} chooses right by itself{known}"));
        }
        (Some(Way::Automatic), _) if right.indices.len() < 2 => {}
        (Some(Way::Automatic), _) => report.note(format!(
            "no single {index} is right ({}); {program} chooses right by itself{known}",
            differing()
        )),
        (Some(Way::Addresses), _) => report.note(format!(
            "no single {index} is right, or {program} would choose others ({}); among these \
             addresses it chooses right{known}",
            differing()
        )),
    }
}

/// A word for a shell. Only a NUL cannot be quoted, and no device's name has one.
fn quote(value: &str) -> Cow<'_, str> {
    shlex::try_quote(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_shell() {
        for odd in ["=mlx5_0:1,mlx5_1:1", "", "a b", "$(x)", "it's", "a\nb", "`", "~", "é"] {
            let shell = std::process::Command::new("sh")
                .arg("-c")
                .arg(format!("printf %s {}", quote(odd)))
                .output()
                .unwrap();
            assert_eq!(String::from_utf8(shell.stdout).unwrap(), odd);
        }
    }
}
