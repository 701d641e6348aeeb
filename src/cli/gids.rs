//! `uverbs gids` and `uverbs gid`: GID tables, and one entry.

use clap::{Args, ValueEnum, ValueHint};
use serde::Serialize;
use uverbs::choose::Surroundings;
use uverbs::device::Device;
use uverbs::gid::GidRecord;
use uverbs::inventory::{DeviceRecord, GidRow, Inventory, Parts, PortRecord, Wanted};
use uverbs::netdev::Interface;
use uverbs::selector::Selector;

use crate::args::{Common, NamedPorts, OriginArgs, port};
use crate::filter::{Filter, FilterArgs, Match};
use crate::form::{Form, Format, Room};
use crate::gid_row::{COLUMNS, HEADING, Row};
use crate::hosts::{Seen, each, some, tell_absent};
use crate::output::{List, Output};
use crate::report::{EINVAL, Report, Unanswered};
use crate::selection::{Asked, Selected};
use crate::show_gids::ShowGids;
use crate::status::Status;
use crate::table::{Mark, Table};

#[derive(Debug, Args)]
pub(crate) struct GidsArgs {
    #[command(flatten)]
    pub(crate) named: NamedPorts,
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    #[command(flatten)]
    pub(crate) origin: OriginArgs,
    /// How to print
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<GidsFormat>,
}

#[derive(Debug, Args)]
pub(crate) struct GidArgs {
    /// The port
    #[arg(value_name = "DEV:PORT", value_parser = port, value_hint = ValueHint::Other)]
    pub(crate) port: (String, u32),
    /// The index in its GID table
    pub(crate) index: u32,
    #[command(flatten)]
    pub(crate) origin: OriginArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum GidsFormat {
    /// Aligned columns
    Table,
    /// One JSON document; the same as --json
    Json,
    // With the underscore that the script's name has.
    #[value(name = "show_gids", help = "What the show_gids script prints")]
    ShowGids,
}

impl Format for GidsFormat {
    const JSON: Self = Self::Json;
    const DEFAULT: Self = Self::Table;

    fn form(self) -> Form {
        match self {
            Self::Table => Form::Table,
            Self::Json => Form::Json,
            Self::ShowGids => Form::OtherTool("show_gids"),
        }
    }
}

pub(crate) fn answer_gids(
    common: &Common,
    args: &GidsArgs,
    report: &mut Report,
) -> serde_json::Result<Output> {
    let filter = Filter::new(&args.filter);
    let netdev = args.filter.netdev.as_deref();
    let asked = Asked::new(&args.named.selectors);
    let is_device = |device: &Device| asked.has_device(&device.name) && !filter.excludes(device);
    let is_row = |device: &Device, record: &GidRecord| {
        asked.has_port(&device.name, record.entry.port()) && filter.verdict(record) != Match::Fails
    };
    // The interfaces show which rows without a name may be those that are asked for.
    let mut parts = Parts::GIDS;
    parts.interfaces = netdev.is_some();
    let wanted = Wanted::new(parts)
        .preference(args.origin.preference(common))
        .devices(&is_device)
        .netdev(netdev)
        .rows(&is_row);
    let format = GidsFormat::asked(args.format, common);
    let (mut rows, mut room) = (Rows::new(format), Room::of(format.form()));
    let (mut is_any, mut has_device, mut may_match) = (false, false, Vec::new());
    each(common, &args.origin.from, &wanted, report, |host, report| {
        report.turn_to(host.name.as_deref());
        if !room.take(report) {
            return Ok(());
        }
        has_device |= !(host.inventory.devices.is_empty() && host.inventory.others.is_empty());
        let selected = host.select(&asked, report);
        let meant = netdev.map(|name| Meant::new(&host.inventory, name));
        if let Some(name) = netdev {
            // The rows that may be its own are named below.
            tell_absent(&host.inventory, name, report);
        }
        let mut doubts = Doubts::default();
        for Selected { record, device, .. } in selected {
            if let Some(problem) = record.problem() {
                report.problem(&device.name, problem.clone());
            }
            let own = record.all_rows().iter();
            for own in own.filter(|own| asked.has_port(&device.name, own.record.entry.port())) {
                if filter.verdict(&own.record) != Match::Fails {
                    explain_unnamed(record, own, report);
                }
                let row = Row::new(host.name.as_deref(), &device.name, own);
                // In another host's tree, its own word of the interface is all there is.
                let name = if host.is_tree(common) { row.foreign_netdev } else { row.netdev };
                let is_named = filter.admits_netdev(name);
                let may_be_named = || meant.as_ref().is_some_and(|meant| meant.may_be_of(own));
                match filter.verdict(&own.record) {
                    Match::Passes if is_named => {
                        is_any = true;
                        rows.add(&row)?;
                    }
                    Match::Passes if may_be_named() => doubts.add(&row, Unknown::Netdev),
                    Match::TypeUnknown if is_named || may_be_named() => {
                        doubts.add(&row, Unknown::GidType);
                    }
                    _ => {}
                }
            }
        }
        doubts.tell(&args.filter, report);
        may_match.extend(doubts.rows);
        Ok(())
    })?;
    if !is_any {
        explain_none(&args.filter, has_device, report);
    }
    rows.end(may_match, report)
}

/// Whether a row has an interface, or may have one, of which nothing is known.
fn is_unnamed(row: &GidRow) -> bool {
    let is_known = row.netdev.is_some() || row.netdev_is_elsewhere;
    !is_known && row.record.may_have_netdev()
}

/// Reports why the interface of a row's port is not known, if that of the row is not, either. A live host, of whose
/// ports nothing else is read, has it among its own problems.
fn explain_unnamed(record: &DeviceRecord, row: &GidRow, report: &mut Report) {
    let port = record.port(row.record.entry.port()).filter(|_| is_unnamed(row));
    if let Some(problem) = port.and_then(|port| port.netdev.as_ref().err()) {
        report.problem(&record.device.name, problem.clone());
    }
}

/// Says why there is no row, if nothing else has said it.
fn explain_none(filter: &FilterArgs, has_device: bool, report: &mut Report) {
    let words = filter.words();
    if report.status() != Status::Fine {
        return;
    }
    match (words.is_empty(), has_device) {
        (true, true) => report.note("no GID in what was asked for"),
        // The host has no device, which is said.
        (true, false) => {}
        (false, true) => {
            report.nothing(format!("no GID matches {words}; `uverbs gids` shows all GIDs"));
        }
        (false, false) => report.nothing(format!("no GID matches {words}")),
    }
}

/// A row that may be one of those that are asked for. It is not shown.
#[derive(Debug, Serialize)]
struct MayMatch {
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<String>,
    device: String,
    port: u32,
    index: u32,
    /// What is not known of it.
    unknown: Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Unknown {
    /// Whose interface it is.
    Netdev,
    GidType,
}

/// Such rows of a host.
#[derive(Debug, Default)]
struct Doubts {
    rows: Vec<MayMatch>,
}

impl Doubts {
    fn add(&mut self, row: &Row<'_>, unknown: Unknown) {
        self.rows.push(MayMatch {
            host: row.host.map(str::to_owned),
            device: row.device.to_owned(),
            port: row.port,
            index: row.index,
            unknown,
        });
    }

    /// Those of which this is not known, as `uverbs gid` takes them: `mlx5_0:1 3`.
    fn places(&self, unknown: Unknown) -> Vec<String> {
        let own = self.rows.iter().filter(|own| own.unknown == unknown);
        own.map(|own| format!("{}:{} {}", own.device, own.port, own.index)).collect()
    }

    fn tell(&self, filter: &FilterArgs, report: &mut Report) {
        let netdevs = self.places(Unknown::Netdev);
        if let (Some(netdev), false) = (&filter.netdev, netdevs.is_empty()) {
            report.nothing(format!(
                "--netdev {netdev}: not shown, as it is not known whether the interface is theirs: {}",
                some(&netdevs)
            ));
        }
        let types = self.places(Unknown::GidType);
        if !types.is_empty() {
            report.nothing(format!(
                "--type: not shown, as sysfs does not show their types: {}",
                some(&types)
            ));
        }
    }
}

/// What the document has after its rows.
#[derive(Debug, Serialize)]
struct Rest<'r> {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    may_match: Vec<MayMatch>,
    problems: &'r [Unanswered],
}

/// The interface that is asked for, as far as it is known.
struct Meant<'h> {
    here: Surroundings<'h>,
    name: &'h str,
    interface: Option<&'h Interface>,
    /// Whether the interfaces of this host are known at all.
    is_known: bool,
}

impl<'h> Meant<'h> {
    fn new(inventory: &'h Inventory, name: &'h str) -> Self {
        let interface = inventory.interfaces.iter().flatten().find(|own| own.name == name);
        let (here, is_known) = (Surroundings::of(inventory), inventory.interfaces.is_some());
        Self { here, name, interface, is_known }
    }

    /// Whether it may be a row's, although that is not proven.
    fn may_be_of(&self, row: &GidRow) -> bool {
        if self.is_known {
            let may_be_of = |own| self.here.may_be_of(row, own);
            return row.netdev.is_none() && self.interface.is_some_and(may_be_of);
        }
        // In sysfs an interface has its own name, wherever it is.
        let name = row.record.sysfs_netdev.as_deref();
        is_unnamed(row) && name.is_none_or(|name| name == self.name)
    }
}

pub(crate) fn answer_gid(
    common: &Common,
    args: &GidArgs,
    report: &mut Report,
) -> serde_json::Result<Output> {
    let (name, port) = &args.port;
    let selectors = [Selector { device: name.clone(), port: Some(*port) }];
    let asked = Asked::new(&selectors);
    let is_device = |device: &Device| device.name == *name && device.ports().contains(port);
    let wanted = Wanted::new(Parts::GIDS)
        .preference(args.origin.preference(common))
        .devices(&is_device)
        .slot(*port, args.index);
    let mut rows = Rows::new(GidsFormat::asked(None, common));
    each(common, &args.origin.from, &wanted, report, |host, report| {
        for Selected { record, device, .. } in host.select(&asked, report) {
            match record.row(*port, args.index) {
                Some(own) => {
                    explain_unnamed(record, own, report);
                    rows.add(&Row::new(host.name.as_deref(), &device.name, own))?;
                }
                None => explain_empty(host, record, (*port, args.index), report),
            }
        }
        Ok(())
    })?;
    rows.end(Vec::new(), report)
}

/// Reports why there is no entry at an index.
fn explain_empty(
    host: &Seen,
    record: &DeviceRecord,
    (port, index): (u32, u32),
    report: &mut Report,
) {
    let name = &record.device.name;
    let attributes = record.port(port);
    let problem = record.problem().or_else(|| attributes.and_then(PortRecord::problem));
    // Only here one entry was asked for; a snapshot's problem is one of the whole table. A device that could not be
    // opened has that problem, unless sysfs was read instead.
    let is_of_open = record.access.as_ref().is_some_and(|own| own.as_ref().err() == problem);
    let is_of_entry = host.name.is_none() && !is_of_open;
    match problem {
        // So the kernel answers if the index is outside the table.
        Some(problem) if problem.errno == EINVAL && is_of_entry => {
            return report.absent(name, problem.clone());
        }
        Some(problem) => return report.problem(name, problem.clone()),
        None => {}
    }
    // The kernel says so itself; a snapshot has the table's length.
    let length = attributes.and_then(PortRecord::known).map(|known| known.gid_tbl_len);
    if length.is_some_and(|length| index >= length) {
        report.no_such_index(name, port, index);
    } else {
        report.nothing(format!("{name}:{port}: slot {index} is empty"));
    }
}

/// The rows, in the form that is asked for.
#[derive(Debug)]
enum Rows {
    Table(Table<COLUMNS>),
    Json(List),
    ShowGids(ShowGids),
}

impl Rows {
    fn new(format: GidsFormat) -> Self {
        match format {
            GidsFormat::Table => Self::Table(Table::new(HEADING)),
            GidsFormat::Json => Self::Json(List::new("gids")),
            GidsFormat::ShowGids => Self::ShowGids(ShowGids::default()),
        }
    }

    fn add(&mut self, row: &Row<'_>) -> serde_json::Result<()> {
        match self {
            Self::Table(table) => table.row_of(row.host, &row.cells(), Mark::Plain),
            Self::Json(list) => list.add(row)?,
            Self::ShowGids(own) => own.add(row),
        }
        Ok(())
    }

    /// The answer; of a document with the rows that may match, and with the problems.
    fn end(self, may_match: Vec<MayMatch>, report: &Report) -> serde_json::Result<Output> {
        match self {
            Self::Table(table) => Ok(table.into()),
            Self::Json(list) => list.end(&Rest { may_match, problems: report.problems() }),
            Self::ShowGids(own) => Ok(Output::Text(own.end().into_bytes())),
        }
    }
}

#[cfg(test)]
mod tests {
    use uverbs::host::Preference;

    use super::*;
    use crate::testing::host;

    /// Sysfs, which was read instead of a device that cannot be opened, says that the index is outside the table.
    #[test]
    fn an_index_outside_the_table_is_so_by_sysfs_too() {
        let (_folder, mut host) = host();
        let mut status = |wanted: Wanted<'_>, index| {
            let seen = Seen::here(host.inventory(&wanted.slot(1, index)));
            let record = &seen.inventory.devices[0];
            let mut report = Report::default();
            if record.row(1, index).is_none() {
                explain_empty(&seen, record, (1, index), &mut report);
            }
            report.status()
        };
        let mut by =
            |preference, index| status(Wanted::new(Parts::GIDS).preference(preference), index);
        assert_eq!(by(Preference::Auto, 0), Status::Fine);
        assert_eq!(by(Preference::Sysfs, 99), Status::Doubt);
        assert_eq!(by(Preference::Auto, 99), Status::Doubt);
        assert_eq!(by(Preference::Ioctl, 99), Status::Failed);
    }
}
