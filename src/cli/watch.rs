//! `uverbs watch`: a line for each change, as it is found. It writes past `Output`, line by line.

use std::collections::BTreeSet;
use std::num::NonZeroU64;

use clap::{Args, ValueEnum};
use uverbs::inventory::{GidRow, Inventory};
use uverbs::watch::{Difference, Watch, What};

use crate::args::{Common, NamedPorts, SourceArg, selector_here};
use crate::filter::{Filter, FilterArgs, Match};
use crate::line::{Kind, Line, kind, rows};
use crate::looked::Looked;
use crate::out::Out;
use crate::output::{Output, say};
use crate::record::{self, RecordArgs};
use crate::report::Report;
use crate::selection::Asked;
use crate::table::{Mark, is_coloured};
use crate::text::printable;
use crate::until::{Next, TimeArgs, lacking};

#[derive(Debug, Args)]
#[command(mut_arg("selectors", |own| own.help("Devices and ports to watch; all if none is named").value_parser(selector_here)))]
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
) -> serde_json::Result<Output> {
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
            return Ok(Output::Json(out));
        }
    };
    let asked = Asked::new(&args.named.selectors);
    begin(&watch, &asked);
    let (filter, is_tree) = (Filter::new(&args.filter), common.sysfs.is_some());
    let mut shown = Shown { args, asked, filter, is_tree, named: BTreeSet::new() };
    shown.begin(watch.inventory());
    let is_coloured = is_coloured(common.color);
    let mut left = args.count.map(NonZeroU64::get);
    while left != Some(0) {
        let change = match ends.next(&mut watch) {
            Ok(Next::Change(change)) => change,
            Ok(Next::Ended) => break,
            Ok(Next::TimeIsUp) => {
                time_is_up(left, report);
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
        if !out.send(|| ends.may_write()) {
            if ends.is_late() {
                time_is_up(left, report);
            }
            break;
        }
        left = left.map(|left| left - 1);
    }
    Ok(Output::Json(out))
}

/// Says how many changes were still to come.
fn time_is_up(left: Option<u64>, report: &mut Report) {
    if let Some(left) = left {
        report.nothing(format!("the time is up, {left} changes before the last"));
    }
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
    /// Whether a sysfs tree is read, whose own word of interfaces is all there is.
    is_tree: bool,
    /// Rows of the interface that is asked for: device, port and index. Its address may go before the row does, which
    /// then has no name any more.
    named: BTreeSet<(String, u32, u32)>,
}

impl Shown<'_> {
    /// Remembers the rows that are there.
    fn begin(&mut self, inventory: &Inventory) {
        for own in &inventory.devices {
            let name = &own.device.name;
            let named = own.all_rows().iter().filter(|row| self.is_named(row));
            let places: Vec<_> = named.map(|row| place(name, row)).collect();
            self.named.extend(places);
        }
    }

    fn has(&mut self, what: &What) -> bool {
        // Also of what is not shown.
        let passes = self.passes(what);
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
        is_kind && passes && self.is_asked(what)
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

    /// Whether the row before or after passes the filters, or may. With a filter only rows are shown.
    fn passes(&mut self, what: &What) -> bool {
        if self.args.filter.words().is_empty() {
            return true;
        }
        let What::Difference(difference) = what else { return false };
        let (Some(device), rows) = (difference.device(), rows(difference)) else { return false };
        let may_pass = |row: &&GidRow| self.filter.verdict(&row.record) != Match::Fails;
        let may_pass = rows.into_iter().flatten().any(|row| may_pass(&row));
        let [before, after] = rows;
        let was =
            before.is_some_and(|row| self.named.remove(&place(device, row)) || self.is_named(row));
        let is = after.is_some_and(|row| self.is_named(row) || was && row.netdev.is_none());
        if let Some(row) = after.filter(|_| is) {
            self.named.insert(place(device, row));
        }
        may_pass && (was || is)
    }

    /// Whether a row is of the interface that is asked for, if one is.
    fn is_named(&self, row: &GidRow) -> bool {
        let netdev = row.netdev.as_ref().map(|own| own.name.as_str());
        let tree = row.record.sysfs_netdev.as_deref().filter(|_| self.is_tree);
        self.filter.admits_netdev(netdev.or(tree))
    }
}

/// The place of a row.
fn place(device: &str, row: &GidRow) -> (String, u32, u32) {
    (device.to_owned(), row.record.entry.port(), row.record.entry.index())
}
