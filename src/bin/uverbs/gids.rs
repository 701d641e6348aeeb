//! `uverbs gids` and `uverbs gid`: GID tables, and one entry.

use core::num::NonZeroU32;
use std::net::Ipv4Addr;

use serde::Serialize;
use uverbs::device::Device;
use uverbs::gid::{Gid, GidType};
use uverbs::netdev::Netdev;
use uverbs::reader::{GidRecord, Preference, Source};
use uverbs::selector::Selector;

use crate::args::{Common, Format, GidArgs, GidsArgs};
use crate::filter::Filter;
use crate::host::{Place, Table as Gids};
use crate::output::{Answer, Text, json};
use crate::report::{Problem, Report};
use crate::selection::{Asked, Selected, select};
use crate::show_gids;
use crate::table::{Mark, NONE, Table, cell};

/// A GID as it is shown, and as it stands in JSON.
#[derive(Debug, Serialize)]
pub(crate) struct Row<'a> {
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
    fn new(device: &'a Device, record: &'a GidRecord, netdev: Option<&'a Netdev>) -> Self {
        let entry = &record.entry;
        Self {
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
    place: &mut Place,
    common: &Common,
    args: &GidsArgs,
    asked: &Asked<'_>,
    report: &mut Report,
) -> serde_json::Result<Answer> {
    let filter = Filter::new(&args.filter);
    let preference = args.source.preference(common);
    let devices = place.devices(asked, report);
    let mut selected = select(&devices, asked, report);
    selected.retain(|selected| !filter.excludes(selected.device));
    if let Some(name) = &args.filter.netdev {
        leave_out(&mut selected, name, place, report);
    }
    let mut read = Vec::new();
    for selected in selected {
        if let Some(table) = read_table(selected.device, place, preference, report) {
            read.push((selected, table));
        }
    }
    // Interfaces are asked for only if some row is left to name one in.
    let is_shown = |selected: &Selected<'_>, record: &GidRecord| {
        selected.includes(record.entry.port()) && filter.admits(&record.entry)
    };
    let any = read
        .iter()
        .any(|(selected, table)| table.records().iter().any(|record| is_shown(selected, record)));
    let mut names = Vec::new();
    if any {
        let tables: Vec<&Gids> = read.iter().map(|(_, table)| table).collect();
        names = place.netdevs(&tables, report);
    }
    let mut rows = Vec::new();
    for (position, (selected, table)) in read.iter().enumerate() {
        for (number, record) in table.records().iter().enumerate() {
            let netdev = names.get(position).and_then(|names| names.get(number)?.as_ref());
            let row = Row::new(selected.device, record, netdev);
            // In another host's tree, its own word of the interface is all there is.
            let name = if place.is_tree() { row.foreign_netdev } else { row.netdev };
            if is_shown(selected, record) && filter.admits_netdev(name) {
                rows.push(row);
            }
        }
    }
    print(rows, args.format(common), report)
}

pub(crate) fn answer_gid(
    place: &mut Place,
    common: &Common,
    args: &GidArgs,
    report: &mut Report,
) -> serde_json::Result<Answer> {
    let (name, port) = &args.port;
    let selectors = [Selector { device: name.clone(), port: Some(*port) }];
    let asked = Asked::new(&selectors);
    let devices = place.devices(&asked, report);
    let selected = select(&devices, &asked, report);
    let preference = args.source.preference(common);
    let mut records = Vec::new();
    for device in selected.iter().map(|selected| selected.device) {
        let entry = read_entry(device, *port, args.index, place, preference, report);
        records.extend(entry.map(|entry| (device, entry)));
    }
    let mut found = Vec::new();
    for (device, (record, table)) in &records {
        let name = table.as_ref().and_then(|table| {
            let row = table.records().iter().position(|other| other == record)?;
            place.netdevs(&[table], report).first()?.get(row)?.clone()
        });
        found.push((*device, record, name));
    }
    let rows =
        found.iter().map(|(device, record, netdev)| Row::new(device, record, netdev.as_ref()));
    let format = if common.json { Format::Json } else { Format::Table };
    print(rows.collect(), format, report)
}

fn read_table(
    device: &Device,
    place: &Place,
    preference: Preference,
    report: &mut Report,
) -> Option<Gids> {
    let result = place.reader(device, preference).and_then(|mut reader| {
        let table = reader.gid_table();
        report.fallback(device, &reader);
        table
    });
    result.map_err(|error| report.problem(&device.name, error)).ok()
}

/// Leaves out the devices that can have no GID of an interface, so that they are not opened.
fn leave_out(
    selected: &mut Vec<Selected<'_>>,
    netdev: &str,
    place: &mut Place,
    report: &mut Report,
) {
    // What a snapshot has was opened long ago.
    let Place::Host(host) = place else {
        if !place.knows_interfaces() {
            report.nothing(format!("--netdev {netdev}: no interface is known to the snapshot"));
        }
        return;
    };
    let devices: Vec<&Device> = selected.iter().map(|selected| selected.device).collect();
    match host.may_have_netdev(&devices, netdev) {
        Ok(may) => {
            let mut may = may.into_iter();
            selected.retain(|_| may.next().unwrap_or(true));
        }
        Err(error) => report.host_problem(&error),
    }
    if host.netlink_error().is_some() {
        report.nothing(format!("--netdev {netdev}: without RDMA netlink no interface is known"));
    }
}

/// Reads one entry, and if it has an interface, the table it is in, which shows whose that is.
fn read_entry(
    device: &Device,
    port: u32,
    index: u32,
    place: &Place,
    preference: Preference,
    report: &mut Report,
) -> Option<(GidRecord, Option<Gids>)> {
    let result = place.reader(device, preference).and_then(|mut reader| {
        let record = reader.gid(port, index);
        report.fallback(device, &reader);
        let Some(record) = record? else { return Ok(None) };
        // Without the table there is just no name.
        let table = if record.may_have_netdev() { reader.gid_table().ok() } else { None };
        Ok(Some((record, table)))
    });
    match result {
        Ok(Some(found)) => Some(found),
        Ok(None) => {
            report.nothing(format!("{}:{port}: slot {index} is empty", device.name));
            None
        }
        Err(error) => {
            report.problem(&device.name, error);
            None
        }
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
            Ok(table.answer())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::host;

    #[test]
    fn without_an_ioctl_sysfs_answers_and_the_reason_is_told_once() {
        let (_folder, mut host) = host();
        let device = host.device("rxe0").unwrap();
        let place = Place::Host(host);
        let mut report = Report::default();
        for _ in 0..2 {
            let table = read_table(&device, &place, Preference::Auto, &mut report).unwrap();
            assert_eq!(table.records().len(), 1);
            assert_eq!(table.records()[0].source, Source::Sysfs);
        }
        assert!(report.is_complete());
        assert_eq!(report.notes().len(), 1);
        let note = &report.notes()[0];
        assert!(note.starts_with("rxe0: open ") && note.ends_with("(so sysfs was read)"), "{note}");
    }

    #[test]
    fn where_only_the_ioctl_will_do_its_absence_is_a_problem() {
        let (_folder, mut host) = host();
        let device = host.device("rxe0").unwrap();
        let place = Place::Host(host);
        let mut report = Report::default();
        assert!(read_table(&device, &place, Preference::Ioctl, &mut report).is_none());
        assert!(!report.is_complete());
        let problems = serde_json::to_value(report.problems()).unwrap();
        assert_eq!(problems[0]["device"], "rxe0");
        assert_eq!(problems[0]["errno"], 2);
        assert_eq!(report.notes().len(), 0);
    }
}
