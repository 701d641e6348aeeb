//! `uverbs guids`: node, system image and port GUIDs.

use core::ops::RangeInclusive;

use clap::Args;
use serde::Serialize;
use uverbs::device::Device;
use uverbs::guid::Guid;
use uverbs::inventory::{DeviceRecord, Parts, PortRecord, Problem, Wanted};

use crate::args::{Common, NamedDevices, OriginArgs};
use crate::hosts::each;
use crate::output::Output;
use crate::report::Report;
use crate::rows::Rows;
use crate::selection::{Asked, Selected};
use crate::table::{Mark, Table};
use crate::values::{Text, cell};

#[derive(Debug, Args)]
pub(crate) struct GuidsArgs {
    #[command(flatten)]
    pub(crate) named: NamedDevices,
    #[command(flatten)]
    pub(crate) origin: OriginArgs,
}

/// A device in JSON; the table has a line for each of its ports.
#[derive(Debug, Serialize)]
struct Row<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<&'a str>,
    device: &'a str,
    node_guid: Text<Guid>,
    sys_image_guid: Text<Guid>,
    /// In the order of the device's ports.
    port_guids: Vec<Option<Text<Guid>>>,
    /// Their numbers.
    #[serde(skip)]
    ports: RangeInclusive<u32>,
}

pub(crate) fn answer(
    common: &Common,
    args: &GuidsArgs,
    report: &mut Report,
) -> serde_json::Result<Output> {
    let asked = Asked::new(&args.named.selectors);
    let is_asked = |device: &Device| asked.has_device(&device.name);
    let wanted =
        Wanted::new(Parts::GUIDS).preference(args.origin.preference(common)).devices(&is_asked);
    let heading = ["DEVICE", "NODE_GUID", "SYS_IMAGE_GUID", "PORT", "PORT_GUID"];
    let mut rows = Rows::new(common, "guids", heading);
    each(common, &args.origin.from, &wanted, report, |host, report| {
        for Selected { record, device, .. } in host.select(&asked, report) {
            let row = Row {
                host: host.name.as_deref(),
                device: &device.name,
                node_guid: Text(device.node_guid),
                sys_image_guid: Text(device.sys_image_guid),
                ports: device.ports(),
                port_guids: port_guids(record, report),
            };
            rows.add(&row, tabulate)?;
        }
        Ok(())
    })?;
    rows.end(report)
}

/// A line for each port.
fn tabulate(row: &Row<'_>, table: &mut Table<5>) {
    let mut line = |port: Option<u32>, guid: Option<Text<Guid>>| {
        let cells = [
            row.device.to_owned(),
            row.node_guid.to_string(),
            row.sys_image_guid.to_string(),
            cell(port),
            cell(guid),
        ];
        table.row_of(row.host, &cells, Mark::Plain);
    };
    if row.port_guids.is_empty() {
        line(None, None);
    }
    for (port, guid) in row.ports.clone().zip(&row.port_guids) {
        line(Some(port), *guid);
    }
}

/// One element for each port; none where there is no answer.
fn port_guids(record: &DeviceRecord, report: &mut Report) -> Vec<Option<Text<Guid>>> {
    let mut guid = |port: &PortRecord| {
        let problem = |problem: &Problem| report.problem(&record.device.name, problem.clone());
        port.guid.as_ref().map_err(problem).ok().copied().flatten().map(Text)
    };
    record.ports.iter().map(&mut guid).collect()
}
