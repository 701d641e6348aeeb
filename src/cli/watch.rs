//! `uverbs watch`: a line for each change, as it is found. It writes past `Answer`, line by line.

use std::collections::BTreeSet;
use std::num::NonZeroU64;
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, Timespec};
use uverbs::inventory::{GidRow, Inventory, Parts, Problem};
use uverbs::selector::Selector;
use uverbs::watch::{Change, Difference, Options, Watch, What};

use crate::args::{Common, NamedPorts, SourceArg, selector_here};
use crate::filter::{Filter, FilterArgs, Verdict};
use crate::hosts::{host, tell_problems};
use crate::line::{Kind, Line, kind, rows};
use crate::out::Out;
use crate::output::{Answer, say};
use crate::record::{self, RecordArgs};
use crate::report::Report;
use crate::selection::{Asked, select};
use crate::table::{Mark, is_coloured};
use crate::text::{count, printable};

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
    pub(crate) time: TimeArgs,
    #[command(flatten)]
    pub(crate) record: RecordArgs,
    #[command(flatten)]
    pub(crate) source: SourceArg,
}

/// How long, and how often.
#[derive(Debug, Args)]
pub(crate) struct TimeArgs {
    /// End after so many seconds
    #[arg(long, value_name = "S", value_parser = seconds)]
    timeout: Option<Duration>,
    /// Read everything again each so many seconds, 0 for never [default: 30]
    #[arg(long, value_name = "S", value_parser = seconds)]
    reread: Option<Duration>,
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

/// Reads a number of seconds.
fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok();
    let duration = seconds.and_then(|own| Duration::try_from_secs_f64(own).ok());
    duration.ok_or_else(|| "expected a number of seconds, as 10 or 0.5".to_owned())
}

/// What ends waiting.
#[derive(Debug)]
pub(crate) struct Ends {
    signals: SignalFd,
    deadline: Option<Instant>,
}

/// What waiting ended with.
pub(crate) enum Next {
    Change(Box<Change>),
    TimeIsUp,
    /// By a signal, or nobody reads any more.
    Ended,
}

impl TimeArgs {
    /// How often everything is read again, if that is said and not never.
    pub(crate) fn pace(&self) -> Option<Duration> {
        self.reread.filter(|pause| !pause.is_zero())
    }

    /// Begins to watch, and says on stderr what is not heard. The time begins now.
    pub(crate) fn begin(
        &self,
        common: &Common,
        source: SourceArg,
        asked: &[Selector],
        parts: Option<Parts>,
    ) -> Result<(Watch, Ends), Problem> {
        let deadline = self.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut set = SigSet::empty();
        set.add(Signal::SIGINT);
        set.add(Signal::SIGTERM);
        let blocked = set.thread_block();
        let signals = blocked.and_then(|()| SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC));
        let signals = signals.map_err(|errno| {
            let text = format!("host: wait for signals: {}", errno.desc());
            Problem { text, errno: errno as i32 }
        })?;
        let mut options = Options::default();
        options.preference = source.preference(common);
        options.devices = asked.iter().map(|own| own.device.clone()).collect();
        options.parts = parts.unwrap_or(options.parts);
        options.reread = self.reread.or(options.reread).filter(|pause| !pause.is_zero());
        let pause = options.reread;
        let host = host(common);
        let watch = host.watch(options)?;
        let unheard = watch.unheard().iter();
        let told =
            unheard.map(|own| format!("not heard: {}: {}", own.origin.name(), own.problem.text));
        let then = pause.map(|pause| {
            format!(
                "what is not heard is found when all is read again, each {} s",
                pause.as_secs_f64()
            )
        });
        say(told.chain(then.filter(|_| !watch.unheard().is_empty())));
        Ok((watch, Ends { signals, deadline }))
    }
}

impl Ends {
    /// Sleeps until there is something to do, or until this time. Says whether it is the end.
    pub(crate) fn sleep(&self, watch: &Watch, until: Instant) -> bool {
        let until = self.deadline.map_or(until, |deadline| deadline.min(until));
        let mut files = [
            PollFd::from_borrowed_fd(watch.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.signals.as_fd(), PollFlags::IN),
        ];
        let left = Timespec::try_from(until.saturating_duration_since(Instant::now())).ok();
        // If it fails, there is something to do.
        let _ = rustix::event::poll(&mut files, left.as_ref());
        let [_, signals] = &files;
        !signals.revents().is_empty() || self.deadline.is_some_and(|own| own <= Instant::now())
    }

    /// Waits for the next change, or for an end.
    pub(crate) fn next(&self, watch: &mut Watch) -> uverbs::Result<Next> {
        loop {
            let left = self.deadline.map(|end| end.saturating_duration_since(Instant::now()));
            if let Some(change) = watch.wait(Some(Duration::ZERO))? {
                return Ok(Next::Change(Box::new(change)));
            }
            if left == Some(Duration::ZERO) {
                return Ok(Next::TimeIsUp);
            }
            let stdout = rustix::stdio::stdout();
            let mut files = [
                PollFd::from_borrowed_fd(watch.as_fd(), PollFlags::IN),
                PollFd::from_borrowed_fd(self.signals.as_fd(), PollFlags::IN),
                // Whether anybody reads.
                PollFd::from_borrowed_fd(stdout, PollFlags::empty()),
            ];
            let left = left.and_then(|left| Timespec::try_from(left).ok());
            // If it fails, the next round says why.
            let _ = rustix::event::poll(&mut files, left.as_ref());
            let [_, signals, stdout] = &files;
            if !signals.revents().is_empty() || !stdout.revents().is_empty() {
                return Ok(Next::Ended);
            }
        }
    }
}

pub(crate) fn answer(
    common: &Common,
    args: &WatchArgs,
    report: &mut Report,
) -> serde_json::Result<Answer> {
    if let Some(path) = &args.record.record {
        return Ok(record::answer(common, args, path, report));
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
    let last = format!("watching {}", summary(inventory));
    say(lacking(inventory, asked).into_iter().chain([last]));
}

/// What of that which is asked for is not there, or could not be read.
pub(crate) fn lacking(inventory: &Inventory, asked: &Asked<'_>) -> Vec<String> {
    let mut report = Report::default();
    tell_problems(inventory, asked, &mut report);
    select(inventory, asked, &mut report);
    let problems = report.problems().iter().map(crate::report::Problem::text);
    report.notes().map(str::to_owned).chain(problems).collect()
}

/// How much there is: `1 device, 1 port, 4 GIDs`.
pub(crate) fn summary(inventory: &Inventory) -> String {
    let rows: usize = inventory.devices.iter().map(|own| own.all_rows().len()).sum();
    let ports = inventory.devices.iter().map(|own| own.ports.len()).sum();
    let devices = count(inventory.devices.len(), "device");
    format!("{devices}, {}, {}", count(ports, "port"), count(rows, "GID"))
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
        let may_pass = |row: &&GidRow| self.filter.verdict(&row.record) != Verdict::Fails;
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
