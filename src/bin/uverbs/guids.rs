//! `uverbs guids`: node, system image and port GUIDs.

use core::ops::RangeInclusive;

use serde::Serialize;
use uverbs::device::Device;
use uverbs::guid::Guid;
use uverbs::reader::Preference;

use crate::args::{Common, GuidsArgs};
use crate::host::Place;
use crate::output::{Answer, Text, json};
use crate::report::{Problem, Report};
use crate::selection::{Asked, select};
use crate::table::{Mark, Table, cell};

/// A device as it stands in JSON; a table has a line for each of its ports.
#[derive(Debug, Serialize)]
struct Row<'a> {
    device: &'a str,
    node_guid: Text<Guid>,
    sys_image_guid: Text<Guid>,
    /// In the order of the device's ports.
    port_guids: Vec<Option<Text<Guid>>>,
    /// Their numbers.
    #[serde(skip)]
    ports: RangeInclusive<u32>,
}

#[derive(Debug, Serialize)]
struct Document<'a> {
    guids: Vec<Row<'a>>,
    problems: &'a [Problem],
}

pub(crate) fn answer(
    place: &mut Place,
    common: &Common,
    args: &GuidsArgs,
    asked: &Asked<'_>,
    report: &mut Report,
) -> serde_json::Result<Answer> {
    let preference = args.source.preference(common);
    let devices = place.devices(asked, report);
    let rows: Vec<Row<'_>> = select(&devices, asked, report)
        .into_iter()
        .map(|selected| Row {
            device: &selected.device.name,
            node_guid: Text(selected.device.node_guid),
            sys_image_guid: Text(selected.device.sys_image_guid),
            ports: selected.device.ports(),
            port_guids: port_guids(selected.device, place, preference, report),
        })
        .collect();
    if common.json {
        return json(&Document { guids: rows, problems: report.problems() });
    }
    let mut table = Table::new(["DEVICE", "NODE_GUID", "SYS_IMAGE_GUID", "PORT", "PORT_GUID"]);
    for row in &rows {
        let mut line = |port: Option<u32>, guid: Option<Text<Guid>>| {
            let cells = [
                row.device.to_owned(),
                row.node_guid.to_string(),
                row.sys_image_guid.to_string(),
                cell(port),
                cell(guid),
            ];
            table.row(cells, Mark::Plain);
        };
        if row.port_guids.is_empty() {
            line(None, None);
        }
        for (port, guid) in row.ports.clone().zip(&row.port_guids) {
            line(Some(port), *guid);
        }
    }
    Ok(table.answer())
}

/// One element for each port; none where there is no answer.
fn port_guids(
    device: &Device,
    place: &Place,
    preference: Preference,
    report: &mut Report,
) -> Vec<Option<Text<Guid>>> {
    let mut reader = match place.reader(device, preference) {
        Ok(reader) => reader,
        Err(error) => {
            report.problem(&device.name, error);
            return device.ports().map(|_| None).collect();
        }
    };
    let guids = device.ports().map(|port| {
        let guid = reader.port_guid(port);
        report.fallback(device, &reader);
        guid.map_or_else(
            |error| {
                report.problem(&device.name, error);
                None
            },
            |guid| guid.map(Text),
        )
    });
    guids.collect()
}
