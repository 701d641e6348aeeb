//! `uverbs check`: the pre-flight.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use serde::Serialize;
use uverbs::check::expect::Comparison;
use uverbs::check::{Expected, Finding, Severity, check_for};
use uverbs::error::Cause;
use uverbs::inventory::Parts;
use uverbs::port::LinkLayer;

use crate::args::{Common, NamedPorts, OriginArgs};
use crate::expect;
use crate::form::{Form, Format};
use crate::hosts::{Seen, host, look, missing, tell_again, tell_netlink, unread};
use crate::looked::Looked;
use crate::nagios::Nagios;
use crate::output::Output;
use crate::report::Report;
use crate::rows::Rows;
use crate::selection::Asked;
use crate::status::Status;
use crate::table::{Mark, Table};
use crate::text::{count, thousands};
use crate::values::cell;

#[derive(Debug, Args)]
#[command(mut_arg("selectors", |own| own.help("Devices and ports to check; all if none is named")))]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) named: NamedPorts,
    /// Expect this link layer of every port
    #[arg(long, value_name = "LAYER")]
    pub(crate) link_layer: Option<LinkLayerChoice>,
    /// Expect what these programs need of the host
    #[arg(long, value_name = "WHAT")]
    pub(crate) need: Vec<Need>,
    /// Expect what this file says, which `uverbs expect` makes
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) expect: Option<PathBuf>,
    /// Let warnings count: status 1 if there are only warnings
    #[arg(long)]
    pub(crate) strict: bool,
    #[command(flatten)]
    pub(crate) origin: OriginArgs,
    /// How to print [default: table]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<CheckFormat>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CheckFormat {
    /// A line for each finding
    Table,
    /// One JSON document; the same as --json
    Json,
    /// What Nagios reads of plug-ins; warnings count as with --strict
    Nagios,
}

impl Format for CheckFormat {
    const JSON: Self = Self::Json;
    const DEFAULT: Self = Self::Table;

    fn form(self) -> Form {
        match self {
            Self::Table => Form::Table,
            Self::Json => Form::Json,
            Self::Nagios => Form::Whole,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LinkLayerChoice {
    /// InfiniBand
    Infiniband,
    /// Ethernet: RoCE, iWARP
    Ethernet,
}

/// What programs need that others do without.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Need {
    /// Management datagrams (`ib_umad`): perfquery, saquery, subnet managers
    Umad,
    /// The connection manager (`rdma_ucm`): programs with librdmacm
    RdmaCm,
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
    /// What was expected instead, of what is compared with a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    wanted: Option<&'a str>,
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
            wanted: finding.wanted.as_deref(),
            advice: &finding.advice,
        }
    }
}

pub(crate) fn answer(
    common: &Common,
    args: &CheckArgs,
    report: &mut Report,
) -> serde_json::Result<Output> {
    let source = (&args.origin.from, args.origin.preference(common), Parts::ALL);
    let asked = Asked::new(&args.named.selectors);
    let mut expected = Expected::default();
    expected.link_layer = args.link_layer.map(Into::into);
    expected.umad = args.need.contains(&Need::Umad);
    expected.rdma_cm = args.need.contains(&Need::RdmaCm);
    let heading = ["SEVERITY", "NAME", "DEVICE", "PORT", "SEEN", "ADVICE"];
    let format = CheckFormat::asked(args.format, common);
    let mut rows = Rows::first(common, format == CheckFormat::Json, "check", 6, heading);
    let mut nagios = (format == CheckFormat::Nagios).then(Nagios::default);
    let mut tally = Tally::default();
    // A slip of the keyboard is no problem of the host.
    if common.sysfs.is_some() {
        let listed = host(common).list();
        if let Some(error) = listed.err().filter(|own| *own.cause() == Cause::NotSysfs) {
            report.host_problem(error);
            return end(rows, nagios, &tally, report);
        }
    }
    let pattern = match args.expect.as_deref().map(expect::read).transpose() {
        Ok(pattern) => pattern.unwrap_or_default(),
        // Without it nothing is known to be as expected, and a slip in the file is no problem of the host.
        Err(problem) => {
            report.host_problem(problem);
            return end(rows, nagios, &tally, report);
        }
    };
    let comparison = Comparison::of(&pattern);
    look(common, source, &asked, report, |host, report| {
        if missing(host, &asked, report).0 {
            // It could not be checked.
            report.raise(Status::Failed);
            tally.is_missing = true;
        }
        tell_again(host, report);
        report.turn_to(host.name.as_deref());
        tell_netlink(&host.inventory, report);
        report.turn_to(None);
        tally.looked.add(&host.inventory, &asked);
        tally.is_unread |= tell_others(host, &asked, report);
        tally.is_partial |= !unread(host, &asked).is_empty();
        let (mut problems, mut warnings) = (0, 0);
        let deviations = comparison.compare(&host.inventory, |name| asked.has_device(name));
        let is_asked_port = |device: &str, port| asked.has_port(device, port);
        let found = check_for(&host.inventory, expected, &is_asked_port);
        let found = found.into_iter().chain(deviations);
        for finding in found.filter(|finding| is_asked(finding, &asked)) {
            match finding.severity {
                Severity::Problem => problems += 1,
                Severity::Warning => warnings += 1,
                Severity::Note => {}
            }
            tally.is_partial |= finding.is_of_unknown();
            match &mut nagios {
                Some(own) => own.add(host.name.as_deref(), &finding),
                None => rows.add(&Row::new(host.name.as_deref(), &finding), tabulate)?,
            }
        }
        tally.end_host(problems, warnings);
        Ok(())
    })?;
    if tally.problems > 0 {
        report.raise(Status::Problem);
    } else if tally.warnings > 0 && (args.strict || nagios.is_some()) {
        report.raise(Status::Doubt);
    }
    end(rows, nagios, &tally, report)
}

fn end(
    rows: Rows<6>,
    nagios: Option<Nagios>,
    tally: &Tally,
    report: &mut Report,
) -> serde_json::Result<Output> {
    let text = tally.text(report.bad_files().count());
    if let Some(own) = nagios {
        return Ok(Output::Text(own.end(&text, report).into_bytes()));
    }
    if matches!(rows, Rows::Table(_)) {
        report.end_with(text);
    }
    rows.end(report)
}

/// Reports devices that are asked for and were not read when the snapshot was written, and whether there
/// are any. Devices that could not be listed are findings.
fn tell_others(host: &Seen, asked: &Asked<'_>, report: &mut Report) -> bool {
    let Seen { name, inventory, .. } = host;
    let others: BTreeSet<&str> = inventory.others.iter().map(|own| own.name.as_str()).collect();
    let unlisted = inventory.unlisted.iter();
    let mut is_any = false;
    report.turn_to(name.as_deref());
    let is_unread = |name: &str| asked.has_device(name) && others.contains(name);
    for (device, problem) in unlisted.filter(|(name, _)| is_unread(name)) {
        report.problem(device, problem.clone());
        is_any = true;
    }
    report.turn_to(None);
    is_any
}

/// Whether a finding is about something that is asked for, or about the whole host.
pub(crate) fn is_asked(finding: &Finding, asked: &Asked<'_>) -> bool {
    match (&finding.device, finding.port) {
        (None, _) => true,
        (Some(device), None) => asked.has_device(device),
        (Some(device), Some(port)) => asked.has_port(device, port),
    }
}

/// What the last line says.
#[derive(Debug, Default)]
struct Tally {
    looked: Looked,
    problems: usize,
    warnings: usize,
    /// Hosts with a problem.
    bad: usize,
    /// Hosts with warnings and no problem.
    doubtful: usize,
    /// Whether something that was named is not there.
    is_missing: bool,
    /// Whether a device that is asked for is there and was not read.
    is_unread: bool,
    /// Whether something could not be looked at.
    is_partial: bool,
}

impl Tally {
    fn end_host(&mut self, problems: usize, warnings: usize) {
        self.problems += problems;
        self.warnings += warnings;
        self.bad += usize::from(problems > 0);
        self.doubtful += usize::from(problems == 0 && warnings > 0);
    }

    /// The line, where so many files could not be read.
    fn text(&self, unread: usize) -> String {
        let Self { looked, is_missing, is_unread, is_partial, .. } = *self;
        let mut text = if looked.hosts == 0 {
            "nothing was checked".to_owned()
        } else if is_unread && looked.devices == 0 && self.problems + self.warnings == 0 {
            "nothing was checked: nothing that is asked for was read".to_owned()
        } else if is_missing && looked.devices == 0 && self.problems + self.warnings == 0 {
            "nothing was checked: nothing that was named is there".to_owned()
        } else {
            let found = if looked.hosts == 1 { self.of_one() } else { self.of_many() };
            let part =
                if is_partial || is_missing || is_unread { " in what was looked at" } else { "" };
            format!("{found}{part}: {looked}")
        };
        if is_unread && looked.devices > 0 {
            text += "; not everything that is asked for was read";
        } else if is_missing && looked.devices > 0 {
            text += "; not everything that was named is there";
        }
        if unread > 0 {
            let _ = write!(text, "; {} could not be read", count(unread, "snapshot"));
        }
        text
    }

    fn of_one(&self) -> String {
        match (self.problems, self.warnings) {
            (0, 0) => "no problems found".to_owned(),
            (0, some) => format!("no problems, {} found", count(some, "warning")),
            (some, 0) => format!("{} found", count(some, "problem")),
            (some, more) => {
                format!("{}, {} found", count(some, "problem"), count(more, "warning"))
            }
        }
    }

    fn of_many(&self) -> String {
        let hosts = count(self.looked.hosts, "host");
        match (self.bad, self.doubtful) {
            (0, 0) => format!("no problems found on {hosts}"),
            (0, some) => format!("no problems found on {hosts}, warnings on {}", thousands(some)),
            (some, 0) => format!("{} of {hosts} {} problems", thousands(some), have(some)),
            (some, more) => format!(
                "{} of {hosts} {} problems, {} more {} warnings",
                thousands(some),
                have(some),
                thousands(more),
                have(more)
            ),
        }
    }
}

fn have(count: usize) -> &'static str {
    if count == 1 { "has" } else { "have" }
}

fn tabulate(row: &Row<'_>, table: &mut Table<6>) {
    let cells = [
        row.severity.to_string(),
        row.name.to_owned(),
        cell(row.device),
        cell(row.port),
        match row.wanted {
            Some(wanted) => format!("{}, expected {wanted}", row.seen),
            None => row.seen.to_owned(),
        },
        row.advice.to_owned(),
    ];
    let mark = match row.severity {
        Severity::Note => Mark::Plain,
        Severity::Warning => Mark::Attention,
        Severity::Problem => Mark::Problem,
    };
    table.row_of(row.host, &cells, mark);
}
