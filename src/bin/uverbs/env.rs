//! `uverbs env`: the variables by which a program uses the right GID on every port.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde::Serialize;
use serde_json::{Map, Value};
use uverbs::check::{Finding, settings};
use uverbs::choose::plan::{Plan, Program, Way, plan};

use crate::args::{Common, EnvArgs, EnvFormat};
use crate::check;
use crate::choose::target;
use crate::hosts::{Chosen, choose, is_set, look, missing};
use crate::output::{Answer, json};
use crate::report::{Problem, Report};

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
    let hosts = look(common, &args.from.from, preference, &[], report);
    missing(&hosts, &args.selectors, report);
    let program = args.program.into();
    // All ports, as one that is not asked for must be left alone.
    let all = choose(&hosts, &[], &args.filter.wish(args.family), report);
    let asked = |own: &Chosen<'_>| {
        args.selectors.is_empty()
            || args.selectors.iter().any(|it| it.includes(own.port.device, own.port.number))
    };
    let targets: Vec<_> = all
        .iter()
        .map(|own| {
            let mut target = target(own);
            target.index = target.index.filter(|_| asked(own));
            target
        })
        .collect();
    for own in all.iter().filter(|own| asked(own) && own.decision.outcome.index().is_none()) {
        report.note(format!("{}: left out: {}", own.name(), own.decision.outcome));
    }
    let is_any_wanted = targets.iter().any(|target| target.index.is_some());
    let plan =
        if is_any_wanted { plan(program, &targets, |name| is_set(&hosts, name)) } else { None };
    explain(program, plan.as_ref(), &all, is_any_wanted, report);
    if plan.is_none() {
        report.fail();
    }
    let now: Vec<(Option<&str>, Finding)> = hosts
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
    let mut text = String::new();
    for (name, value) in plan.iter().flat_map(|plan| &plan.variables) {
        let _ = match args.format(common) {
            EnvFormat::Kubernetes => {
                writeln!(text, "- name: {name}\n  value: {}", Value::from(value.as_str()))
            }
            EnvFormat::Shell | EnvFormat::Json => writeln!(text, "export {name}={}", quote(value)),
        };
    }
    Ok(Answer::Text(text))
}

/// Says how the plan works, or why there is none.
fn explain(
    program: Program,
    plan: Option<&Plan>,
    all: &[Chosen<'_>],
    is_any_wanted: bool,
    report: &mut Report,
) {
    let index = program.index_variable();
    let mut right: Vec<(u32, Vec<String>)> = Vec::new();
    for own in all {
        let Some(row) = own.decision.outcome.index().and_then(|index| own.port.row(index)) else {
            continue;
        };
        match right.iter_mut().find(|(known, _)| *known == row.index) {
            Some((_, names)) => names.push(own.name()),
            None => right.push((row.index, vec![own.name()])),
        }
    }
    let differing = || {
        // A few names will do.
        let some = |names: &[String]| match names {
            [first, second, _, ..] => format!("{first}, {second} and {} more", names.len() - 2),
            few => few.join(", "),
        };
        let texts = right.iter().map(|(index, names)| format!("{index} on {}", some(names)));
        texts.collect::<Vec<_>>().join("; ")
    };
    if plan.is_some_and(|plan| plan.variables.is_empty()) {
        report.note(format!("nothing need be set: {program} uses the right GIDs by itself"));
    }
    match plan.map(|plan| plan.way) {
        None if !is_any_wanted => report.note("no port has a usable GID"),
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
