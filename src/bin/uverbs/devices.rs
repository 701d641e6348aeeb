//! `uverbs devices`: what a host has.

use serde::Serialize;
use uverbs::device::NodeType;
use uverbs::driver::DriverId;
use uverbs::guid::Guid;

use crate::args::Common;
use crate::host::Place;
use crate::output::{Answer, Text, json};
use crate::report::{Problem, Report};
use crate::selection::Asked;
use crate::table::{Mark, Table, cell};

/// A device as it is shown, and as it stands in JSON.
#[derive(Debug, Serialize)]
struct Row<'a> {
    device: &'a str,
    index: Option<u32>,
    node_type: Text<NodeType>,
    protocol: Option<&'a str>,
    driver: Option<Text<DriverId>>,
    node_guid: Text<Guid>,
    sys_image_guid: Text<Guid>,
    fw_version: Option<&'a str>,
    /// Those that can be asked about: of an InfiniBand switch only its port 0.
    ports: usize,
    uverbs: Option<&'a str>,
    node: Option<String>,
}

#[derive(Debug, Serialize)]
struct Document<'a> {
    devices: Vec<Row<'a>>,
    problems: &'a [Problem],
}

pub(crate) fn answer(
    place: &mut Place,
    common: &Common,
    report: &mut Report,
) -> serde_json::Result<Answer> {
    let devices = place.devices(&Asked::default(), report);
    let rows: Vec<Row<'_>> = devices
        .iter()
        .map(|device| Row {
            device: &device.name,
            index: device.index,
            node_type: Text(device.node_type),
            protocol: device.protocol.as_deref(),
            driver: place.driver(device, report).map(Text),
            node_guid: Text(device.node_guid),
            sys_image_guid: Text(device.sys_image_guid),
            fw_version: device.fw_version.as_deref(),
            ports: device.ports().count(),
            uverbs: device.node.as_ref().map(|node| node.name.as_str()),
            node: device.node.as_ref().map(|node| node.path.to_string_lossy().into_owned()),
        })
        .collect();
    if common.json {
        return json(&Document { devices: rows, problems: report.problems() });
    }
    let mut table =
        Table::new(["DEVICE", "TYPE", "PROTOCOL", "DRIVER", "PORTS", "NODE_GUID", "FW", "UVERBS"]);
    for row in rows {
        let cells = [
            row.device.to_owned(),
            row.node_type.to_string(),
            cell(row.protocol),
            cell(row.driver),
            row.ports.to_string(),
            row.node_guid.to_string(),
            cell(row.fw_version),
            cell(row.uverbs),
        ];
        table.row(cells, Mark::Plain);
    }
    Ok(table.answer())
}
