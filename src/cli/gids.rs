//! `uverbs gids` and `uverbs gid`: GID tables, and one entry.

use core::num::NonZeroU32;
use std::net::Ipv4Addr;

use clap::builder::PossibleValue;
use clap::{Args, ValueEnum, ValueHint};
use serde::Serialize;
use uverbs::device::Device;
use uverbs::gid::{Gid, GidEntry, GidType};
use uverbs::host::Source;
use uverbs::inventory::{DeviceRecord, GidRow, Parts, PortRecord, Wanted};
use uverbs::selector::Selector;

use crate::args::Common;
use crate::args::{FromArg, SourceArg, port};
use crate::filter::Filter;
use crate::filter::FilterArgs;
use crate::hosts::{Seen, read};
use crate::output::{Answer, Text, json};
use crate::report::{Problem, Report};
use crate::selection::{Asked, Selected};
use crate::show_gids;
use crate::table::{Mark, NONE, Table, cell};

#[derive(Debug, Args)]
pub(crate) struct GidsArgs {
    /// Devices and ports to show; all if none is named
    #[arg(value_name = "DEV[:PORT]", value_hint = ValueHint::Other)]
    pub(crate) selectors: Vec<Selector>,
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    #[command(flatten)]
    pub(crate) source: SourceArg,
    #[command(flatten)]
    pub(crate) from: FromArg,
    /// How to print
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<Format>,
}

impl GidsArgs {
    pub(crate) fn format(&self, common: &Common) -> Format {
        match self.format {
            Some(format) => format,
            None if common.json => Format::Json,
            None => Format::Table,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct GidArgs {
    /// The port
    #[arg(value_name = "DEV:PORT", value_parser = port, value_hint = ValueHint::Other)]
    pub(crate) port: (String, u32),
    /// The index in its GID table
    pub(crate) index: u32,
    #[command(flatten)]
    pub(crate) source: SourceArg,
    #[command(flatten)]
    pub(crate) from: FromArg,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Table,
    Json,
    ShowGids,
}

impl ValueEnum for Format {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self::Table, Self::Json, Self::ShowGids]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(match self {
            Self::Table => PossibleValue::new("table").help("Aligned columns"),
            Self::Json => PossibleValue::new("json").help("One JSON document; the same as --json"),
            // With the underscore that the script's name has.
            Self::ShowGids => {
                PossibleValue::new("show_gids").help("What the show_gids script prints")
            }
        })
    }
}

/// A GID as it is shown, and as it stands in JSON.
#[derive(Debug, Serialize)]
pub(crate) struct Row<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<&'a str>,
    pub(crate) device: &'a str,
    pub(crate) port: u32,
    pub(crate) index: u32,
    pub(crate) gid: Text<Gid>,
    pub(crate) gid_type: Text<GidType>,
    ipv4: Option<Ipv4Addr>,
    /// The interface, in whichever namespace it is.
    ifindex: Option<NonZeroU32>,
    /// Its name, if it is in this namespace.
    pub(crate) netdev: Option<&'a str>,
    /// Its name in its own namespace.
    #[serde(skip)]
    foreign_netdev: Option<&'a str>,
    /// Whether it may have one whose name cannot be read.
    #[serde(skip)]
    netdev_is_unread: bool,
    source: Text<Source>,
}

#[derive(Debug, Serialize)]
struct Document<'a> {
    gids: Vec<Row<'a>>,
    problems: &'a [Problem],
}

impl<'a> Row<'a> {
    fn new(host: Option<&'a str>, device: &'a Device, row: &'a GidRow) -> Self {
        let GidRow { record, netdev, .. } = row;
        let entry = &record.entry;
        let netdev = netdev.as_ref();
        Self {
            host,
            device: &device.name,
            port: entry.port(),
            index: entry.index(),
            gid: Text(entry.gid()),
            gid_type: Text(entry.gid_type()),
            ipv4: entry.gid().ipv4(),
            ifindex: netdev.map(|netdev| netdev.index).or(entry.netdev_ifindex()),
            netdev: netdev.map(|netdev| netdev.name.as_str()),
            foreign_netdev: record.sysfs_netdev.as_deref(),
            netdev_is_unread: record.netdev_is_unread,
            source: Text(record.source),
        }
    }

    fn cells(&self) -> [String; 7] {
        let netdev = match (self.netdev, self.ifindex, self.foreign_netdev) {
            (Some(name), ..) => name.to_owned(),
            (None, Some(index), _) => format!("#{index}"),
            (None, None, Some(name)) => format!("{name}?"),
            (None, None, None) if self.netdev_is_unread => "?".to_owned(),
            (None, None, None) => NONE.to_owned(),
        };
        [
            self.device.to_owned(),
            self.port.to_string(),
            self.index.to_string(),
            self.gid.to_string(),
            short_type(self.gid_type.0),
            cell(self.ipv4),
            netdev,
        ]
    }
}

/// A GID's type in the words of `--type`.
pub(crate) fn short_type(gid_type: GidType) -> String {
    match gid_type {
        GidType::ROCE_V1 => "v1".to_owned(),
        GidType::ROCE_V2 => "v2".to_owned(),
        other => other.to_string(),
    }
}

pub(crate) fn answer_gids(
    common: &Common,
    args: &GidsArgs,
    report: &mut Report,
) -> serde_json::Result<Answer> {
    let filter = Filter::new(&args.filter);
    let netdev = args.filter.netdev.as_deref();
    let asked = Asked::new(&args.selectors);
    let is_device = |device: &Device| asked.has_device(&device.name) && !filter.excludes(device);
    let is_row = |device: &Device, entry: &GidEntry| {
        asked.has_port(&device.name, entry.port()) && filter.admits(entry)
    };
    let wanted = Wanted::new(Parts::GIDS)
        .preference(args.source.preference(common))
        .devices(&is_device)
        .netdev(netdev)
        .rows(&is_row);
    let hosts = read(common, &args.from.from, &wanted, report);
    let mut rows = Vec::new();
    for host in &hosts {
        let selected = host.select(&asked, report);
        if let Some(name) = netdev {
            doubt_netdev(host, name, report);
        }
        for Selected { record, device, .. } in selected {
            if let Some(problem) = record.problem() {
                report.problem(&device.name, problem.clone());
            }
            for own in record.all_rows().iter().filter(|own| is_row(device, &own.record.entry)) {
                let row = Row::new(host.name.as_deref(), device, own);
                // In another host's tree, its own word of the interface is all there is.
                let name = if common.sysfs.is_some() { row.foreign_netdev } else { row.netdev };
                if filter.admits_netdev(name) {
                    rows.push(row);
                }
            }
        }
    }
    report.turn_to(None);
    print(rows, args.format(common), report)
}

/// Says that rows of an interface cannot be known, if that is so.
fn doubt_netdev(host: &Seen, netdev: &str, report: &mut Report) {
    let inventory = &host.inventory;
    if host.name.is_some() && !inventory.has_netlink {
        report.nothing(format!("--netdev {netdev}: no interface is known to the snapshot"));
    }
    if inventory.without_netlink.is_some() {
        report.nothing(format!("--netdev {netdev}: without RDMA netlink no interface is known"));
    }
}

pub(crate) fn answer_gid(
    common: &Common,
    args: &GidArgs,
    report: &mut Report,
) -> serde_json::Result<Answer> {
    let (name, port) = &args.port;
    let selectors = [Selector { device: name.clone(), port: Some(*port) }];
    let asked = Asked::new(&selectors);
    let is_device = |device: &Device| device.name == *name && device.ports().contains(port);
    let wanted = Wanted::new(Parts::GIDS)
        .preference(args.source.preference(common))
        .devices(&is_device)
        .slot(*port, args.index);
    let hosts = read(common, &args.from.from, &wanted, report);
    let mut rows = Vec::new();
    for host in &hosts {
        for Selected { record, device, .. } in host.select(&asked, report) {
            match record.row(*port, args.index) {
                Some(own) => rows.push(Row::new(host.name.as_deref(), device, own)),
                None => explain_empty(record, *port, args.index, report),
            }
        }
    }
    report.turn_to(None);
    let format = if common.json { Format::Json } else { Format::Table };
    print(rows, format, report)
}

/// Reports why there is no entry at an index.
fn explain_empty(record: &DeviceRecord, port: u32, index: u32, report: &mut Report) {
    let name = &record.device.name;
    let attributes = record.port(port);
    let problem = record.problem().or_else(|| attributes.and_then(PortRecord::problem));
    if let Some(problem) = problem {
        report.problem(name, problem.clone());
        return;
    }
    // The kernel says so itself; a snapshot has the table's length.
    let length = attributes.and_then(PortRecord::known).map(|known| known.gid_tbl_len);
    if length.is_some_and(|length| index >= length) {
        report.no_such_index(name, port, index);
    } else {
        report.nothing(format!("{name}:{port}: slot {index} is empty"));
    }
}

fn print(rows: Vec<Row<'_>>, format: Format, report: &Report) -> serde_json::Result<Answer> {
    match format {
        Format::Json => json(&Document { gids: rows, problems: report.problems() }),
        Format::ShowGids => Ok(Answer::Text(show_gids::print(&rows))),
        Format::Table => {
            let mut table =
                Table::new(["DEVICE", "PORT", "INDEX", "GID", "TYPE", "IPV4", "NETDEV"]);
            for row in &rows {
                table.row(row.cells(), Mark::Plain);
            }
            Ok(table.answer_of(rows.iter().map(|row| row.host)))
        }
    }
}
