//! `uverbs devices`: what a host has.

use clap::{Args, ValueHint};
use serde::Serialize;
use uverbs::device::{Device, NodeType};
use uverbs::driver::DriverId;
use uverbs::guid::Guid;
use uverbs::inventory::{Parts, Wanted};
use uverbs::selector::Selector;

use crate::args::{Common, FromArg, device};
use crate::hosts::each;
use crate::output::Answer;
use crate::report::Report;
use crate::rows::Rows;
use crate::selection::Asked;
use crate::table::{Mark, Table, cell};
use crate::values::Text;

#[derive(Debug, Args)]
pub(crate) struct DevicesArgs {
    /// Devices to show; all if none is named
    #[arg(value_name = "DEV", value_parser = device, value_hint = ValueHint::Other)]
    pub(crate) selectors: Vec<Selector>,
    #[command(flatten)]
    pub(crate) from: FromArg,
}

/// A device in the table and in JSON.
#[derive(Debug, Serialize)]
struct Row<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<&'a str>,
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

impl<'a> Row<'a> {
    fn new(host: Option<&'a str>, device: &'a Device) -> Self {
        Self {
            host,
            device: &device.name,
            index: device.index,
            node_type: Text(device.node_type),
            protocol: device.protocol.as_deref(),
            driver: device.driver.map(Text),
            node_guid: Text(device.node_guid),
            sys_image_guid: Text(device.sys_image_guid),
            fw_version: device.fw_version.as_deref(),
            ports: device.ports().count(),
            uverbs: device.node.as_ref().map(|node| node.name.as_str()),
            node: device.node.as_ref().map(|node| node.path.to_string_lossy().into_owned()),
        }
    }
}

pub(crate) fn answer(
    common: &Common,
    args: &DevicesArgs,
    report: &mut Report,
) -> serde_json::Result<Answer> {
    let heading = ["DEVICE", "TYPE", "PROTOCOL", "DRIVER", "PORTS", "NODE_GUID", "FW", "UVERBS"];
    let mut rows = Rows::new(common, "devices", heading);
    let asked = Asked::new(&args.selectors);
    let is_asked = |device: &Device| asked.has_device(&device.name);
    let wanted = Wanted::new(Parts::DEVICES).devices(&is_asked);
    each(common, &args.from.from, &wanted, report, |host, report| {
        for selected in host.select(&asked, report) {
            if let (Some(Err(problem)), None) = (&selected.record.access, &host.name) {
                report.problem(&selected.device.name, problem.clone());
            }
            let row = Row::new(host.name.as_deref(), selected.device);
            rows.add(&row, tabulate)?;
        }
        Ok(())
    })?;
    rows.end(report)
}

fn tabulate(row: &Row<'_>, table: &mut Table<8>) {
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
    table.row_of(row.host, &cells, Mark::Plain);
}
