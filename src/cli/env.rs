//! `uverbs env`: the variables by which a program uses the right GID on every port.

use std::borrow::Cow;
use std::fmt::Write as _;

use clap::{Args, ValueEnum, ValueHint};
use serde::Serialize;
use serde_json::{Map, Value};
use uverbs::check::{Finding, settings};
use uverbs::choose::nccl::ROOM;
use uverbs::choose::plan::{Plan, Program, Way, plan};
use uverbs::choose::{Outcome, caveats};
use uverbs::inventory::Parts;
use uverbs::selector::Selector;

use crate::args::Common;
use crate::args::{FromArg, SourceArg};
use crate::check;
use crate::choose::{lacks, target};
use crate::filter::{FamilyChoice, FilterArgs};
use crate::hosts::{Chosen, Hosts, Seen, choose, is_set, look, missing, some};
use crate::output::{Answer, json, plain_json};
use crate::report::{Problem, Report};
use crate::selection::Asked;

#[derive(Debug, Args)]
pub(crate) struct EnvArgs {
    /// The program
    pub(crate) program: ProgramChoice,
    /// Devices and ports to use; all that have a usable GID if none is named
    #[arg(value_name = "DEV[:PORT]", value_hint = ValueHint::Other)]
    pub(crate) selectors: Vec<Selector>,
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    /// Only GIDs of addresses of this family
    #[arg(long, value_name = "FAMILY", help_heading = "Filters")]
    pub(crate) family: Option<FamilyChoice>,
    #[command(flatten)]
    pub(crate) source: SourceArg,
    #[command(flatten)]
    pub(crate) from: FromArg,
    /// How to print [default: shell]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<EnvFormat>,
}

impl EnvArgs {
    pub(crate) fn format(&self, common: &Common) -> EnvFormat {
        let default = if common.json { EnvFormat::Json } else { EnvFormat::Shell };
        self.format.unwrap_or(default)
    }
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
}

#[derive(Debug, Serialize)]
struct Document<'a> {
    /// Names and values, in the order to set them; null if none are right.
    env: Option<Map<String, Value>>,
    /// `index`, `automatic` or `addresses`.
    way: Option<&'static str>,
    /// What is set now and does not fit.
    now: Vec<check::Row<'a>>,
    problems: &'a [Problem],
}

pub(crate) fn answer(
    common: &Common,
    args: &EnvArgs,
    report: &mut Report,
) -> serde_json::Result<Answer> {
    let preference = args.source.preference(common);
    let named = Asked::new(&args.selectors);
    let hosts =
        look(common, &args.from.from, preference, Parts::CHOOSING, &Asked::default(), report);
    let is_missing = missing(&hosts, &named, report);
    let program = args.program.into();
    // All ports, as one that is not asked for must be left alone.
    let wish = args.filter.wish(args.family);
    let all = choose(&hosts, &named, &wish, report);
    let asked = |own: &Chosen<'_>| named.has_port(own.port.device, own.port.number);
    let targets: Vec<_> = all
        .iter()
        .map(|own| {
            let mut target = target(own);
            target.index = target.index.filter(|_| asked(own));
            target
        })
        .collect();
    for own in all.iter().filter(|own| asked(own) && own.decision.outcome.index().is_none()) {
        report.note(match &own.decision.outcome {
            Outcome::Ignored(why) => format!("{}: left out: {why}", own.name()),
            other => format!("{}: left out: {other}", own.name()),
        });
    }
    let usable: Vec<&Chosen<'_>> = all
        .iter()
        .zip(&targets)
        .filter(|(_, target)| target.index.is_some())
        .map(|(own, _)| own)
        .collect();
    // What is not known is not printed: a shell takes what is printed, whatever the status is.
    let unread = hosts.unread(&named);
    let wanted = all.iter().filter(|own| asked(own)).collect::<Vec<_>>();
    let lacking = wanted.chunk_by(|one, other| one.place == other.place);
    let is_known = unread.is_empty() && !hosts.seen.is_empty() && !is_missing;
    let is_met = !lacking.into_iter().any(|own| lacks(own, &named));
    let plan = if is_known && !usable.is_empty() && is_met {
        let has_others = has_others(program, &hosts);
        plan(program, &targets, has_others, |name| has_a_say(&hosts, args.format(common), name))
    } else {
        None
    };
    if !unread.is_empty() {
        report.note(format!(
            "no variables, as what was not read may be used too ({}); name the ports to use, if \
             they are others",
            some(&unread)
        ));
    } else if is_known && !usable.is_empty() && !is_met {
        report.note("no variables, as not all that is asked for has a usable GID");
    } else if is_known {
        explain(program, plan.as_ref(), &usable, report);
    }
    if plan.is_none() {
        report.fail();
    }
    for own in all.iter().filter(|own| plan.is_some() && asked(own)) {
        let index = own.decision.outcome.index();
        for caveat in index.into_iter().flat_map(|index| caveats(&own.port, index)) {
            report.note(format!("{}: {}: {caveat}", own.name(), own.decision.outcome));
        }
    }
    let now: Vec<(Option<&str>, Finding)> = hosts
        .seen
        .iter()
        .flat_map(|host| {
            let found = settings(&host.inventory).into_iter();
            let own = found.filter(|finding| finding.program == Some(program));
            own.map(|finding| (host.name.as_deref(), finding))
        })
        .collect();
    if args.format(common) == EnvFormat::Json {
        let variables = |plan: &Plan| {
            let pairs = plan.variables.iter();
            pairs.map(|(name, value)| ((*name).to_owned(), value.as_str().into())).collect()
        };
        return json(&Document {
            env: plan.as_ref().map(variables),
            way: plan.as_ref().map(|plan| match plan.way {
                Way::Index(_) => "index",
                Way::Automatic => "automatic",
                Way::Addresses => "addresses",
            }),
            now: now.iter().map(|(host, finding)| check::Row::new(*host, finding)).collect(),
            problems: report.problems(),
        });
    }
    for (host, finding) in &now {
        let host = host.map(|host| format!("{host}: ")).unwrap_or_default();
        report.note(format!("{host}{}; {}", finding.seen, finding.advice));
    }
    Ok(Answer::Text(printed(plan.as_ref(), args.format(common))))
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
            EnvFormat::Shell | EnvFormat::Json => writeln!(text, "export {name}={}", quote(value)),
        };
    }
    text
}

/// Whether other ports than those that are known may take the room of one that is named.
fn has_others(program: Program, hosts: &Hosts) -> bool {
    let is_unordered = |host: &Seen| host.fills() && !host.has_order();
    !hosts.unread(&Asked::default()).is_empty()
        || (program == Program::Nccl && hosts.seen.iter().any(is_unordered))
}

/// Whether a variable is set on some host; or in the shell that takes what is printed, whatever hosts are
/// looked at.
fn has_a_say(hosts: &Hosts, format: EnvFormat, name: &str) -> bool {
    is_set(hosts, name) || (format == EnvFormat::Shell && std::env::var_os(name).is_some())
}

/// How many ports are to be used on one host, where that is more than the program has room for.
fn too_many(program: Program, wanted: &[&Chosen<'_>]) -> Option<usize> {
    let hosts = wanted.chunk_by(|one, other| one.place == other.place);
    let most = hosts.map(<[_]>::len).max()?;
    (program == Program::Nccl && most > ROOM).then_some(most)
}

/// Says how the plan works, or why there is none.
fn explain(program: Program, plan: Option<&Plan>, wanted: &[&Chosen<'_>], report: &mut Report) {
    let index = program.index_variable();
    let mut right: Vec<(u32, Vec<String>)> = Vec::new();
    for own in wanted {
        let Some(row) = own.decision.outcome.index().and_then(|index| own.port.row(index)) else {
            continue;
        };
        match right.iter_mut().find(|(known, _)| *known == row.index) {
            Some((_, names)) => names.push(own.name()),
            None => right.push((row.index, vec![own.name()])),
        }
    }
    let differing = || {
        let texts = right.iter().map(|(index, names)| format!("{index} on {}", some(names)));
        texts.collect::<Vec<_>>().join("; ")
    };
    if plan.is_some_and(|plan| plan.variables.is_empty()) {
        report.note(format!("nothing need be set: {program} uses the right GIDs by itself"));
    }
    match plan.map(|plan| plan.way) {
        None if wanted.is_empty() => report.note("no port that is asked for has a usable GID"),
        None if let Some(count) = too_many(program, wanted) => report.note(format!(
            "{program} has room for {ROOM} ports of a host, and there are {count}: name those to use"
        )),
        None => report.note(format!(
            "no setting makes {program} use the right GID on every port: right are {}",
            differing()
        )),
        Some(Way::Index(_)) => {}
        Some(Way::Automatic) if right.len() < 2 => {}
        Some(Way::Automatic) => report.note(format!(
            "no single {index} is right ({}); {program} chooses right by itself",
            differing()
        )),
        Some(Way::Addresses) => report.note(format!(
            "no single {index} is right, or {program} would choose others ({}); among these \
             addresses it chooses right",
            differing()
        )),
    }
}

/// A word for a shell. No name of a device has a NUL, which alone cannot be quoted.
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
