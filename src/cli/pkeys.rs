//! `uverbs pkeys`: the partitions that ports are members of.

use clap::Args;
use serde::Serialize;
use uverbs::device::Device;
use uverbs::host::Preference;
use uverbs::inventory::{Parts, Wanted};
use uverbs::pkey::PKey;

use crate::args::{Common, FromArg, NamedPorts};
use crate::hosts::{each, some};
use crate::output::Output;
use crate::report::Report;
use crate::rows::Rows;
use crate::selection::Asked;
use crate::status::Status;
use crate::table::{Mark, Table};
use crate::values::Text;

#[derive(Debug, Args)]
pub(crate) struct PkeysArgs {
    #[command(flatten)]
    pub(crate) named: NamedPorts,
    #[command(flatten)]
    pub(crate) from: FromArg,
}

/// A `P_Key` in the table and in JSON.
#[derive(Debug, Serialize)]
struct Row<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<&'a str>,
    device: &'a str,
    port: u32,
    index: u32,
    pkey: Text<PKey>,
    membership: &'static str,
}

pub(crate) fn answer(
    common: &Common,
    args: &PkeysArgs,
    report: &mut Report,
) -> serde_json::Result<Output> {
    let asked = Asked::new(&args.named.selectors);
    let is_device = |device: &Device| asked.has_device(&device.name);
    let is_port = |device: &Device, port: u32| asked.has_port(&device.name, port);
    // Only sysfs has them. Without attributes, ports of all link layers are asked.
    let wanted =
        Wanted::new(Parts::PKEYS).preference(Preference::Sysfs).devices(&is_device).ports(&is_port);
    let heading = ["DEVICE", "PORT", "INDEX", "PKEY", "MEMBERSHIP"];
    let mut rows = Rows::new(common, "pkeys", heading);
    let (mut is_any, mut has_port) = (false, false);
    each(common, &args.from, &wanted, report, |host, report| {
        let host_name = host.name.as_deref();
        let mut unread = Vec::new();
        for selected in host.select(&asked, report) {
            let device = &selected.device.name;
            let ports = selected.record.ports.iter();
            for port in ports.filter(|port| selected.includes(port.number)) {
                has_port = true;
                match &port.pkeys {
                    Some(Ok(pkeys)) => {
                        for (index, pkey) in pkeys {
                            is_any = true;
                            let membership = if pkey.is_full_member() { "full" } else { "limited" };
                            let (port, index, pkey) = (port.number, *index, Text(*pkey));
                            let row =
                                Row { host: host_name, device, port, index, pkey, membership };
                            rows.add(&row, tabulate)?;
                        }
                    }
                    Some(Err(problem)) => report.problem(device, problem.clone()),
                    // What kept its attributes from being read did so with its P_Keys.
                    None => match port.problem() {
                        Some(problem) => report.problem(device, problem.clone()),
                        None => unread.push(format!("{device}:{}", port.number)),
                    },
                }
            }
        }
        if !unread.is_empty() {
            report
                .nothing(format!("a snapshot has no P_Keys of Ethernet ports: {}", some(&unread)));
        }
        Ok(())
    })?;
    if !is_any && has_port && report.status() == Status::Fine {
        report.note("no P_Key is in use in what was asked for");
    }
    rows.end(report)
}

fn tabulate(row: &Row<'_>, table: &mut Table<5>) {
    let cells = [
        row.device.to_owned(),
        row.port.to_string(),
        row.index.to_string(),
        row.pkey.to_string(),
        row.membership.to_owned(),
    ];
    table.row_of(row.host, &cells, Mark::Plain);
}
