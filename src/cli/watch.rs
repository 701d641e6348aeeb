//! `uverbs watch`: a line for each change, as it is found. It writes past `Answer`, line by line.

use std::num::NonZeroU64;

use clap::{Args, ValueEnum};
use uverbs::inventory::GidRow;
use uverbs::watch::{Difference, Watch, What};

use crate::args::{Common, NamedPorts, SourceArg};
use crate::filter::{Filter, FilterArgs, Verdict};
use crate::line::{Kind, Line, kind, rows};
use crate::looked::Looked;
use crate::out::Out;
use crate::output::{Answer, say};
use crate::record::{self, RecordArgs};
use crate::report::Report;
use crate::selection::Asked;
use crate::table::{Mark, is_coloured};
use crate::text::printable;
use crate::until::{Next, TimeArgs, lacking};

#[derive(Debug, Args)]
#[command(mut_arg("selectors", |own| own.help("Devices and ports to watch; all if none is named")))]
pub(crate) struct WatchArgs {
    #[command(flatten)]
    pub(crate) named: NamedPorts,
    #[command(flatten)]
    filter: FilterArgs,
    /// Only changes of these
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    only: Vec<Only>,
    /// End after so many lines
    #[arg(long, value_name = "N")]
    count: Option<NonZeroU64>,
    #[command(flatten)]
    time: TimeArgs,
    #[command(flatten)]
    pub(crate) record: RecordArgs,
    #[command(flatten)]
    pub(crate) source: SourceArg,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Only {
    /// Rows of GID tables
    Gid,
    /// Ports
    Port,
    /// Devices
    Device,
}

pub(crate) fn answer(
    common: &Common,
    args: &WatchArgs,
    report: &mut Report,
) -> serde_json::Result<Answer> {
    if let Some(path) = &args.record.record {
        let (time, source) = (&args.time, args.source);
        return Ok(record::answer(common, &args.record, path, (time, source), report));
    }
    let mut out = Out::default();
    let (mut watch, ends) = match args.time.begin(common, args.source, &args.named.selectors, None)
    {
        Ok(begun) => begun,
        Err(error) => {
            report.host_problem(error);
            return Ok(Answer::Json(out));
        }
    };
    let asked = Asked::new(&args.named.selectors);
    begin(&watch, &asked);
    let shown = Shown { args, asked, filter: Filter::new(&args.filter) };
    let is_coloured = is_coloured(common.color);
    let mut left = args.count.map(NonZeroU64::get);
    while left != Some(0) {
        let change = match ends.next(&mut watch) {
            Ok(Next::Change(change)) => change,
            Ok(Next::Ended) => break,
            Ok(Next::TimeIsUp) => {
                if let Some(left) = left {
                    report.nothing(format!("the time is up, {left} changes before the last"));
                }
                break;
            }
            Err(error) => {
                report.host_problem(&error);
                break;
            }
        };
        if !shown.has(&change.what) {
            continue;
        }
        let line = Line::new(&change);
        if common.json {
            out.push_json(&line)?;
        } else {
            let colour = mark(&change.what).colour().filter(|_| is_coloured);
            out.push(colour.unwrap_or_default());
            out.push(&printable(&line.text()));
            out.push(if colour.is_some() { "\x1b[0m" } else { "" });
        }
        out.push("\n");
        if !out.send() {
            break;
        }
        left = left.map(|left| left - 1);
    }
    Ok(Answer::Json(out))
}

/// Says on stderr what is watched, what is named and not there yet, and what could not be read.
fn begin(watch: &Watch, asked: &Asked<'_>) {
    let inventory = watch.inventory();
    let last = format!("watching {}", Looked::at(inventory));
    say(lacking(inventory, asked).into_iter().chain([last]));
}

fn mark(what: &What) -> Mark {
    match what {
        What::Lost(_) => Mark::Problem,
        What::Difference(own) => match own {
            Difference::GidCame { .. } | Difference::DeviceCame(_) => Mark::Good,
            Difference::GidWent { .. }
            | Difference::GidMoved { .. }
            | Difference::GidChanged { .. }
            | Difference::DeviceWent(_)
            | Difference::DeviceUnlisted(_)
            | Difference::DeviceReplaced { .. } => Mark::Attention,
            _ => Mark::Plain,
        },
        _ => Mark::Attention,
    }
}

/// What is shown.
struct Shown<'a> {
    args: &'a WatchArgs,
    asked: Asked<'a>,
    filter: Filter<'a>,
}

impl Shown<'_> {
    fn has(&self, what: &What) -> bool {
        let kind = kind(what);
        // It may be anybody's.
        if kind == Kind::Loss {
            return true;
        }
        let only = |own: Only| self.args.only.is_empty() || self.args.only.contains(&own);
        let is_kind = match kind {
            Kind::Gid => only(Only::Gid),
            Kind::Port => only(Only::Port),
            Kind::Device => only(Only::Device),
            Kind::Host | Kind::Loss => self.args.only.is_empty(),
        };
        is_kind && self.is_asked(what) && self.passes(what)
    }

    fn is_asked(&self, what: &What) -> bool {
        let (device, port) = match what {
            // It is watched by either name.
            What::Difference(Difference::DeviceRenamed { .. }) => return true,
            What::Difference(own) => (own.device(), own.port()),
            What::Event { device, event } => {
                let port = u32::try_from(event.element).ok().filter(|port| *port > 0);
                (Some(device.as_str()), port)
            }
            _ => (None, None),
        };
        match (device, port) {
            (Some(device), Some(port)) => self.asked.has_port(device, port),
            (Some(device), None) => self.asked.has_device(device),
            (None, _) => true,
        }
    }

    /// Whether the row before or after passes the filters. With a filter only rows are shown.
    fn passes(&self, what: &What) -> bool {
        if self.args.filter.words().is_empty() {
            return true;
        }
        let What::Difference(difference) = what else { return false };
        let passes = |row: &GidRow| {
            let netdev = row.netdev.as_ref().map(|own| own.name.as_str());
            self.filter.verdict(&row.record) == Verdict::Passes && self.filter.admits_netdev(netdev)
        };
        rows(difference).into_iter().flatten().any(passes)
    }
}
