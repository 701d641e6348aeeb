//! `uverbs mlx5 port`: how the e-switch's steering knows ports.

use serde::Serialize;
use uverbs::mlx5;
use uverbs::mlx5::port::SteeringPort;

use super::Mlx5PortArgs;
use super::{LeftOut, Vacant, host, selected};
use crate::args::Common;
use crate::output::{Output, json};
use crate::report::{Report, Unanswered};
use crate::selection::Asked;
use crate::table::{Mark, Table};
use crate::values::{Hex, cell};

/// A port in JSON.
#[derive(Debug, Serialize)]
struct Row<'a> {
    device: &'a str,
    port: u32,
    flags: Hex<u64>,
    vport: Option<u16>,
    vport_vhca_id: Option<u16>,
    esw_owner_vhca_id: Option<u16>,
    vport_steering_icm_rx: Option<Hex<u64>>,
    vport_steering_icm_tx: Option<Hex<u64>>,
    reg_c0: Option<RegC0>,
}

#[derive(Debug, Serialize)]
struct RegC0 {
    value: Hex<u32>,
    mask: Hex<u32>,
}

#[derive(Debug, Serialize)]
struct Document<'a> {
    ports: Vec<Row<'a>>,
    /// Ports that represent no vport, unless they are named: then they are problems.
    left_out: &'a [LeftOut<'a>],
    problems: &'a [Unanswered],
}

pub(crate) fn answer(
    common: &Common,
    args: &Mlx5PortArgs,
    report: &mut Report,
) -> serde_json::Result<Output> {
    let asked = Asked::new(&args.named.selectors);
    let host = host(common, &asked);
    let mut ports: Vec<(&str, u32, SteeringPort)> = Vec::new();
    let mut left_out = Vec::new();
    for selected in selected(&host, &asked, report) {
        let name = selected.device.name.as_str();
        let context = match mlx5::open(selected.device) {
            Ok(context) => context,
            Err(error) => {
                report.problem(name, &error);
                continue;
            }
        };
        let first = ports.len();
        let mut vacant = Vacant::default();
        for number in selected.ports() {
            match mlx5::query_port(&context, number) {
                Ok(port) => ports.push((name, number, port)),
                Err(error) => vacant.add(&selected, number, &error, report),
            }
        }
        vacant.tell(name, report, &mut left_out);
        let own = ports.get(first..).unwrap_or_default();
        // Of one that could not be asked it is not known.
        let is_any = !own.is_empty() && own.len() == selected.ports().count();
        if is_any && own.iter().all(|(_, _, port)| port.flags() == 0) {
            report.note(format!(
                "{name}: the driver says nothing about its ports; it does so only in switchdev mode"
            ));
        }
    }
    if common.json {
        let rows = ports.iter().map(|(device, number, port)| Row {
            device,
            port: *number,
            flags: Hex(port.flags()),
            vport: port.vport().map(|vport| vport.0),
            vport_vhca_id: port.vport_vhca_id(),
            esw_owner_vhca_id: port.esw_owner_vhca_id(),
            vport_steering_icm_rx: port.vport_steering_icm_rx().map(Hex),
            vport_steering_icm_tx: port.vport_steering_icm_tx().map(Hex),
            reg_c0: port.reg_c0().map(|reg| RegC0 { value: Hex(reg.value), mask: Hex(reg.mask) }),
        });
        return json(&Document {
            ports: rows.collect(),
            left_out: &left_out,
            problems: report.problems(),
        });
    }
    Ok(tabulate(&ports).into())
}

fn tabulate(ports: &[(&str, u32, SteeringPort)]) -> Table<9> {
    let mut table = Table::new([
        "DEVICE",
        "PORT",
        "FLAGS",
        "VPORT",
        "VHCA_ID",
        "OWNER_VHCA_ID",
        "REG_C0",
        "ICM_RX",
        "ICM_TX",
    ]);
    for (device, number, port) in ports {
        let cells = [
            (*device).to_owned(),
            number.to_string(),
            Hex(port.flags()).to_string(),
            cell(port.vport()),
            cell(port.vport_vhca_id()),
            cell(port.esw_owner_vhca_id()),
            cell(port.reg_c0().map(|reg| format!("{}/{}", Hex(reg.value), Hex(reg.mask)))),
            cell(port.vport_steering_icm_rx().map(Hex)),
            cell(port.vport_steering_icm_tx().map(Hex)),
        ];
        table.row(&cells, Mark::Plain);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conforms::conforms;

    /// With all that a port may have, and with nothing of it.
    #[test]
    fn the_form_of_the_document() {
        let row = |is_full: bool| Row {
            device: "mlx5_0",
            port: 1,
            flags: Hex(0x3f),
            vport: is_full.then_some(0xffff),
            vport_vhca_id: is_full.then_some(1),
            esw_owner_vhca_id: is_full.then_some(2),
            vport_steering_icm_rx: is_full.then_some(Hex(3)),
            vport_steering_icm_tx: is_full.then_some(Hex(4)),
            reg_c0: is_full.then_some(RegC0 { value: Hex(5), mask: Hex(6) }),
        };
        let ports = vec![row(true), row(false)];
        let left_out = [LeftOut { device: "mlx5_0", port: 3, why: "it represents no vport" }];
        conforms("mlx5-port.json", &Document { ports, left_out: &left_out, problems: &[] });
    }
}
