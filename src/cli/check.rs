//! `uverbs check`: the pre-flight.

use clap::{Args, ValueEnum, ValueHint};
use serde::Serialize;
use uverbs::check::{Expected, Finding, Severity, check};
use uverbs::inventory::Parts;
use uverbs::port::LinkLayer;
use uverbs::selector::Selector;

use crate::args::Common;
use crate::args::{FromArg, SourceArg, device};
use crate::hosts::{look, missing};
use crate::output::{Answer, Text, json};
use crate::report::{Problem, Report};
use crate::selection::Asked;
use crate::table::{Mark, Table, cell};

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// Check this device alone; may be given again for others
    #[arg(long = "device", value_name = "DEV", value_parser = device, value_hint = ValueHint::Other)]
    pub(crate) selectors: Vec<Selector>,
    /// Expect this link layer of every port
    #[arg(long, value_name = "LAYER")]
    pub(crate) link_layer: Option<LinkLayerChoice>,
    /// Let warnings count: status 1
    #[arg(long)]
    pub(crate) strict: bool,
    #[command(flatten)]
    pub(crate) source: SourceArg,
    #[command(flatten)]
    pub(crate) from: FromArg,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LinkLayerChoice {
    /// InfiniBand
    Infiniband,
    /// Ethernet: RoCE, iWARP
    Ethernet,
}

impl From<LinkLayerChoice> for LinkLayer {
    fn from(choice: LinkLayerChoice) -> Self {
        match choice {
            LinkLayerChoice::Infiniband => Self::INFINIBAND,
            LinkLayerChoice::Ethernet => Self::ETHERNET,
        }
    }
}

/// The status where a problem was found.
const FOUND_PROBLEM: u8 = 2;
/// The status where a warning was found that counts.
const FOUND_WARNING: u8 = 1;

/// A finding as it stands in JSON.
#[derive(Debug, Serialize)]
pub(crate) struct Row<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<&'a str>,
    severity: Text<Severity>,
    name: &'a str,
    device: Option<&'a str>,
    port: Option<u32>,
    seen: &'a str,
    advice: &'a str,
}

impl<'a> Row<'a> {
    pub(crate) fn new(host: Option<&'a str>, finding: &'a Finding) -> Self {
        Self {
            host,
            severity: Text(finding.severity),
            name: finding.name,
            device: finding.device.as_deref(),
            port: finding.port,
            seen: &finding.seen,
            advice: &finding.advice,
        }
    }
}

#[derive(Debug, Serialize)]
struct Document<'a> {
    check: Vec<Row<'a>>,
    problems: &'a [Problem],
}

pub(crate) fn answer(
    common: &Common,
    args: &CheckArgs,
    report: &mut Report,
) -> serde_json::Result<Answer> {
    let preference = args.source.preference(common);
    let asked = Asked::new(&args.selectors);
    let hosts = look(common, &args.from.from, preference, Parts::ALL, &asked, report);
    let is_missing = missing(&hosts, &asked, report);
    let mut expected = Expected::default();
    expected.link_layer = args.link_layer.map(Into::into);
    let found: Vec<(Option<&str>, Finding)> = hosts
        .seen
        .iter()
        .flat_map(|host| {
            let found = check(&host.inventory, expected).into_iter();
            found.map(|finding| (host.name.as_deref(), finding))
        })
        .collect();
    let worst = found.iter().map(|(_, finding)| finding.severity).max();
    match worst {
        _ if !report.is_complete() => report.end_with(FOUND_PROBLEM),
        Some(Severity::Problem) => report.end_with(FOUND_PROBLEM),
        Some(Severity::Warning) if args.strict => report.end_with(FOUND_WARNING),
        _ => {}
    }
    let rows: Vec<Row<'_>> = found.iter().map(|(host, own)| Row::new(*host, own)).collect();
    if common.json {
        return json(&Document { check: rows, problems: report.problems() });
    }
    if rows.is_empty() && !hosts.seen.is_empty() && !is_missing {
        let rest = if hosts.unread.is_empty() { "" } else { " on the hosts that were read" };
        report.note(format!("nothing is found wrong{rest}"));
    }
    let mut table = Table::new(["SEVERITY", "NAME", "DEVICE", "PORT", "SEEN", "ADVICE"]);
    let mut hosts = Vec::new();
    for row in rows {
        let cells = [
            row.severity.to_string(),
            row.name.to_owned(),
            cell(row.device),
            cell(row.port),
            row.seen.to_owned(),
            row.advice.to_owned(),
        ];
        let is_note = row.severity.0 == Severity::Note;
        table.row(cells, if is_note { Mark::Plain } else { Mark::Attention });
        hosts.push(row.host);
    }
    Ok(table.answer_of(hosts))
}
