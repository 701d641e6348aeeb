//! `uverbs watch`: a line for each change, as it is found. It writes past `Output`, line by line.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;

use clap::{Args, ValueEnum};
use uverbs::inventory::{Answer as Told, GidRow, Inventory};
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
use crate::until::{Next, TimeArgs, host_of, lacking};

#[derive(Debug, Args)]
#[command(mut_arg("selectors", |own| own.help("Devices and ports to watch; all if none is named").value_parser(selector_here)))]
pub(crate) struct WatchArgs {
    #[command(flatten)]
    pub(crate) named: NamedPorts,
    #[command(flatten)]
    filter: FilterArgs,
    /// Only changes of these and whole devices
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
    let mut shown = Shown {
        args,
        asked,
        filter,
        is_tree,
        named: BTreeSet::new(),
        renamed: BTreeSet::new(),
        names: Names::default(),
    };
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
        report.nothing(format!("the time is up; changes that did not come: {left}"));
    }
}

/// Says on stderr what is watched, what is named and not there yet, and what could not be read.
fn begin(watch: &Watch, asked: &Asked<'_>) {
    let last = format!("watching {}", Looked::at(watch.inventory()));
    say(lacking(&host_of(watch), asked).into_iter().chain([last]));
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
    /// Rows that pass the filters, or may: device, port and index. Of the interface that is asked for the address may go
    /// before the row does, which then has no name any more.
    named: BTreeSet<(String, u32, u32)>,
    /// The same of devices that were renamed just now, by their new names.
    renamed: BTreeSet<(String, u32, u32)>,
    names: Names,
}

/// By what names devices are asked for that were renamed since: they are still watched.
#[derive(Debug, Default)]
struct Names {
    /// By their names now.
    now: BTreeMap<String, String>,
    /// The same of those that were renamed just now. While names are exchanged, two devices have one.
    coming: BTreeMap<String, String>,
}

impl Names {
    /// The name by which a device was known when the watch began, or when it came.
    fn before(&self, device: &str) -> Option<&str> {
        self.now.get(device).map(String::as_str)
    }

    /// What comes before this change is over.
    fn begin(&mut self, what: &What) {
        if !matches!(what, What::Difference(Difference::DeviceRenamed { .. })) {
            self.now.append(&mut self.coming);
        }
    }

    /// Changes the names as this change does.
    fn end(&mut self, what: &What) {
        match what {
            What::Difference(Difference::DeviceRenamed { before, after, .. }) => {
                let own = self.now.remove(before).unwrap_or_else(|| before.clone());
                self.coming.insert(after.clone(), own);
            }
            What::Difference(own) if is_whole(what) => {
                self.now.remove(own.device().unwrap_or_default());
            }
            _ => {}
        }
    }
}

impl Shown<'_> {
    /// Remembers the rows that are there.
    fn begin(&mut self, inventory: &Inventory) {
        for own in &inventory.devices {
            self.come(&own.device.name, own.gids.as_ref());
        }
    }

    /// Remembers rows that come with their table, and says whether one of them passes the filters, or may.
    fn come(&mut self, device: &str, table: Option<&Told<Vec<GidRow>>>) -> bool {
        let rows = match table {
            Some(Ok(rows)) => rows.as_slice(),
            Some(Err(_)) => return true,
            None => return false,
        };
        let named = rows.iter().filter(|row| self.may_pass(row) && self.is_named(row));
        let places: Vec<_> = named.map(|row| place(device, row)).collect();
        let is_any = !places.is_empty();
        self.named.extend(places);
        is_any
    }

    /// Forgets the rows of a device whose table goes, and says whether one of them passed the filters, or may have.
    fn go(&mut self, device: &str, table: Option<&Told<Vec<GidRow>>>) -> bool {
        let of_device = self.of_device(device);
        for own in &of_device {
            self.named.remove(own);
        }
        !of_device.is_empty() || matches!(table, Some(Err(_)))
    }

    /// The rows of a device that are remembered.
    fn of_device(&self, device: &str) -> Vec<(String, u32, u32)> {
        let own = (device.to_owned(), 0, 0)..=(device.to_owned(), u32::MAX, u32::MAX);
        self.named.range(own).cloned().collect()
    }

    fn has(&mut self, what: &What) -> bool {
        // Also of what is not shown.
        let passes = self.passes(what);
        self.names.begin(what);
        let is_asked = self.is_asked(what);
        self.names.end(what);
        let kind = kind(what);
        // It may be anybody's.
        if kind == Kind::Loss {
            return true;
        }
        let only = |own: Only| self.args.only.is_empty() || self.args.only.contains(&own);
        let is_kind = match kind {
            // Its ports and rows come and go with a device.
            _ if is_whole(what) => true,
            Kind::Gid => only(Only::Gid),
            Kind::Port => only(Only::Port),
            Kind::Device => only(Only::Device),
            Kind::Host | Kind::Loss => self.args.only.is_empty(),
        };
        is_kind && passes && is_asked
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
        let Some(device) = device else { return true };
        let names = [Some(device), self.names.before(device)];
        names.into_iter().flatten().any(|name| match port {
            Some(port) => self.asked.has_port(name, port),
            None => self.asked.has_device(name),
        })
    }

    /// Whether a row before or after passes the filters, or may. With a filter only rows are shown, and what takes
    /// them along or brings them: devices, tables that can be read or cannot, and names.
    fn passes(&mut self, what: &What) -> bool {
        if self.args.filter.words().is_empty() {
            return true;
        }
        let What::Difference(difference) = what else { return false };
        if let Difference::DeviceRenamed { before, after, .. } = difference {
            return self.rename(before, after);
        }
        let renamed = std::mem::take(&mut self.renamed);
        self.named.extend(renamed);
        if let Difference::InterfaceRenamed { before, after, .. } = difference {
            let netdev = self.args.filter.netdev.as_ref();
            return netdev.is_some_and(|own| own == before || own == after);
        }
        let [before, after] = match difference {
            Difference::DeviceCame(own) | Difference::DeviceListed(own) => {
                [None, own.gids.as_ref()]
            }
            Difference::DeviceWent(own) | Difference::DeviceUnlisted(own) => {
                [own.gids.as_ref(), None]
            }
            Difference::DeviceReplaced { before, after } => {
                [before.gids.as_ref(), after.gids.as_ref()]
            }
            Difference::Table { before, after, .. } => [before.as_ref(), after.as_ref()],
            _ => [None, None],
        };
        if before.is_some() || after.is_some() {
            let device = difference.device().unwrap_or_default();
            let was = self.go(device, before);
            return self.come(device, after) || was;
        }
        let (Some(device), rows) = (difference.device(), rows(difference)) else { return false };
        let may_pass = rows.into_iter().flatten().any(|row| self.may_pass(row));
        let [before, after] = rows;
        let was =
            before.is_some_and(|row| self.named.remove(&place(device, row)) || self.is_named(row));
        let is_kept = |row| {
            let is_same = before.is_some_and(|before| may_be_of_one(before, row));
            was && is_same && self.netdev(row).is_none()
        };
        let is = after.is_some_and(|row| self.is_named(row) || is_kept(row));
        if let Some(row) = after.filter(|row| is && self.may_pass(row)) {
            self.named.insert(place(device, row));
        }
        may_pass && (was || is)
    }

    /// A device's rows have its new name. Names may be exchanged: what has come to a name does not leave it before
    /// all are renamed. Says whether it has rows that pass the filters.
    fn rename(&mut self, before: &str, after: &str) -> bool {
        let own = self.of_device(before);
        let is_any = !own.is_empty();
        for old in own {
            self.named.remove(&old);
            self.renamed.insert((after.to_owned(), old.1, old.2));
        }
        is_any
    }

    /// Whether a row has the address and may have the type.
    fn may_pass(&self, row: &GidRow) -> bool {
        self.filter.verdict(&row.record) != Match::Fails
    }

    /// Whether a row is of the interface that is asked for, if one is, or may be.
    fn is_named(&self, row: &GidRow) -> bool {
        self.filter.admits_netdev(self.netdev(row)) || self.may_be_named(row)
    }

    /// Whether it is not known whose a row is, not even by an index, and sysfs names no other interface and none that
    /// is elsewhere.
    fn may_be_named(&self, row: &GidRow) -> bool {
        let record = &row.record;
        let has_index = record.entry.netdev_ifindex().is_some();
        let is_open = self.netdev(row).is_none() && !row.netdev_is_elsewhere && !has_index;
        let shown = record.sysfs_netdev.as_deref();
        is_open
            && record.may_have_netdev()
            && shown.is_none_or(|name| self.filter.admits_netdev(Some(name)) && is_interface(name))
    }

    /// The name of a row's interface, if it is known.
    fn netdev<'r>(&self, row: &'r GidRow) -> Option<&'r str> {
        let netdev = row.netdev.as_ref().map(|own| own.name.as_str());
        netdev.or(row.record.sysfs_netdev.as_deref().filter(|_| self.is_tree))
    }
}

/// Whether an interface here has this name.
fn is_interface(name: &str) -> bool {
    use rustix::net::{AddressFamily, SocketType, netdevice, socket};
    let socket = socket(AddressFamily::UNIX, SocketType::DGRAM, None);
    socket.is_ok_and(|socket| netdevice::name_to_index(socket, name).is_ok())
}

/// Whether a device comes or goes as a whole.
fn is_whole(what: &What) -> bool {
    let What::Difference(own) = what else { return false };
    matches!(
        own,
        Difference::DeviceCame(_)
            | Difference::DeviceListed(_)
            | Difference::DeviceWent(_)
            | Difference::DeviceUnlisted(_)
            | Difference::DeviceReplaced { .. }
    )
}

/// Whether two rows may be of one interface, by their indices.
fn may_be_of_one(one: &GidRow, other: &GidRow) -> bool {
    let [one, other] = [one, other].map(|row| row.record.entry.netdev_ifindex());
    one.is_none() || other.is_none() || one == other
}

/// The place of a row.
fn place(device: &str, row: &GidRow) -> (String, u32, u32) {
    (device.to_owned(), row.record.entry.port(), row.record.entry.index())
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use uverbs::device::Device;
    use uverbs::gid::{Gid, GidEntry, GidRecord, GidType};
    use uverbs::inventory::DeviceRecord;
    use uverbs::netdev::Netdev;
    use uverbs::watch::PortValue;

    use super::*;
    use crate::syntax::{Cli, Command};

    fn renamed(index: u32, before: &str, after: &str) -> What {
        let (before, after) = (before.to_owned(), after.to_owned());
        What::Difference(Difference::DeviceRenamed { index, before, after })
    }

    fn port_of(device: &str, port: u32) -> What {
        let (device, before) = (device.to_owned(), PortValue::HasTypes(None));
        let after = PortValue::HasTypes(Some(true));
        What::Difference(Difference::Port { device, port, before, after })
    }

    /// What of a host is shown.
    fn shown(cli: &Cli) -> Shown<'_> {
        let Command::Watch(args) = &cli.command else { panic!("watch is a command") };
        Shown {
            args,
            asked: Asked::new(&args.named.selectors),
            filter: Filter::new(&args.filter),
            is_tree: false,
            named: BTreeSet::new(),
            renamed: BTreeSet::new(),
            names: Names::default(),
        }
    }

    /// A row may lose the name of its interface before it goes; with another index it is another one's.
    #[test]
    fn a_row_without_a_name_may_be_of_the_interface_that_it_had() {
        let row = |index: u32, name: Option<&str>, gid_type| {
            let index = NonZeroU32::new(index).unwrap();
            let entry = GidEntry::new(1, 3, Gid::default()).with_netdev_ifindex(Some(index));
            let mut row = GidRow::from(GidRecord::from(entry.with_type(gid_type)));
            row.netdev = name.map(|name| Netdev::new(index, name));
            row
        };
        for (index, is_kept) in [(5, true), (9, false)] {
            let cli = Cli::from_words("uverbs watch --netdev eth0".split(' ')).unwrap();
            let mut shown = shown(&cli);
            let mut has = |before: &GidRow, after: &GidRow| {
                let (before, after) = (Box::new(before.clone()), Box::new(after.clone()));
                let device = "rxe0".to_owned();
                shown.has(&What::Difference(Difference::GidChanged { device, before, after }))
            };
            let first = row(5, Some("eth0"), GidType::ROCE_V2);
            let [unnamed, next] =
                [GidType::ROCE_V2, GidType::ROCE_V1].map(|own| row(index, None, own));
            assert!(has(&first, &unnamed), "{index}");
            assert_eq!(has(&unnamed, &next), is_kept, "{index}");
        }
    }

    /// Where it is not known whose a row is, it may be of the interface that is asked for.
    #[test]
    fn a_row_that_may_be_of_the_interface_is_shown() {
        let cli = Cli::from_words("uverbs watch --netdev lo".split(' ')).unwrap();
        let mut shown = shown(&cli);
        let row = |sysfs_netdev: Option<&str>, is_elsewhere| {
            let entry = GidEntry::new(1, 3, Gid::default()).with_type(GidType::ROCE_V2);
            let record = GidRecord::new(entry, uverbs::gid::Source::Sysfs);
            let record = record.with_sysfs_netdev(sysfs_netdev.map(str::to_owned));
            let mut row = GidRow::from(record.with_netdev_unread(sysfs_netdev.is_none()));
            row.netdev_is_elsewhere = is_elsewhere;
            row
        };
        for (row, is_shown) in [
            (row(Some("lo"), false), true),
            (row(None, false), true),
            (row(Some("eth7"), false), false),
            (row(Some("lo"), true), false),
        ] {
            let (device, row) = ("rxe0".to_owned(), Box::new(row));
            let what = What::Difference(Difference::GidCame { device, row });
            assert_eq!(shown.has(&what), is_shown, "{what:?}");
        }
    }

    /// A device that is renamed is still the one that was asked for; with its name another one may be, too.
    #[test]
    fn a_device_that_is_renamed_is_still_shown() {
        let cli = Cli::from_words("uverbs watch rxe0:1".split(' ')).unwrap();
        let mut shown = shown(&cli);
        let went = |name: &str| {
            let own = DeviceRecord::new(Device::named(name));
            What::Difference(Difference::DeviceWent(Box::new(own)))
        };
        for (what, is_shown) in [
            (port_of("rxe0", 1), true),
            (port_of("rxe9", 1), false),
            (renamed(0, "rxe0", "rxe9"), true),
            (port_of("rxe9", 1), true),
            (port_of("rxe9", 2), false),
            (port_of("rxe0", 1), true),
            // Names are exchanged.
            (renamed(0, "rxe9", "rxe8"), true),
            (renamed(1, "rxe8", "rxe9"), true),
            (port_of("rxe8", 1), true),
            (port_of("rxe9", 1), false),
            (went("rxe8"), true),
            (port_of("rxe8", 1), false),
        ] {
            assert_eq!(shown.has(&what), is_shown, "{what:?}");
        }
    }
}
