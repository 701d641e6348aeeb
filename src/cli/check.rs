//! `uverbs check`: the pre-flight.

use clap::{Args, ValueEnum, ValueHint};
use serde::Serialize;
use uverbs::check::{Expected, Finding, Severity, check};
use uverbs::inventory::Parts;
use uverbs::port::LinkLayer;
use uverbs::selector::Selector;

use crate::args::{Common, FromArg, SourceArg, device};
use crate::hosts::{look, missing};
use crate::output::Answer;
use crate::report::Report;
use crate::rows::Rows;
use crate::selection::Asked;
use crate::status::Status;
use crate::table::{Mark, Table, cell};

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// Check only this device; may be repeated
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

/// A finding in JSON.
#[derive(Debug, Serialize)]
pub(crate) struct Row<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<&'a str>,
    severity: Severity,
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
            severity: finding.severity,
            name: finding.name,
            device: finding.device.as_deref(),
            port: finding.port,
            seen: &finding.seen,
            advice: &finding.advice,
        }
    }
}

pub(crate) fn answer(
    common: &Common,
    args: &CheckArgs,
    report: &mut Report,
) -> serde_json::Result<Answer> {
    let source = (args.from.from.as_slice(), args.source.preference(common), Parts::ALL);
    let asked = Asked::new(&args.selectors);
    let mut expected = Expected::default();
    expected.link_layer = args.link_layer.map(Into::into);
    let heading = ["SEVERITY", "NAME", "DEVICE", "PORT", "SEEN", "ADVICE"];
    let mut rows = Rows::new(common, "check", heading);
    let (mut worst, mut is_any, mut is_missing) = (None, false, false);
    look(common, source, &asked, report, |host, report| {
        is_any = true;
        if missing(host, &asked, report) {
            // It could not be checked, which a slip of the keyboard has as well.
            report.raise(Status::Failed);
            is_missing = true;
        }
        for finding in check(&host.inventory, expected) {
            worst = worst.max(Some(finding.severity));
            let row = Row::new(host.name.as_deref(), &finding);
            rows.add(&row, tabulate)?;
        }
        Ok(())
    })?;
    match worst {
        Some(Severity::Problem) => report.raise(Status::Problem),
        Some(Severity::Warning) if args.strict => report.raise(Status::Doubt),
        Some(Severity::Warning | Severity::Note) | None => {}
    }
    if !common.json && worst.is_none() && is_any && !is_missing {
        let is_whole = report.bad_files().next().is_none();
        let rest = if is_whole { "" } else { " on the hosts that were read" };
        report.note(format!("nothing is found wrong{rest}"));
    }
    rows.end(report)
}

fn tabulate(row: &Row<'_>, table: &mut Table<6>) {
    let cells = [
        row.severity.to_string(),
        row.name.to_owned(),
        cell(row.device),
        cell(row.port),
        row.seen.to_owned(),
        row.advice.to_owned(),
    ];
    let is_note = row.severity == Severity::Note;
    table.row_of(row.host, &cells, if is_note { Mark::Plain } else { Mark::Attention });
}
