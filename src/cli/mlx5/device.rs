//! `uverbs mlx5 device`: the function as a whole, as its firmware knows it.

use serde::Serialize;
use serde_json::{Map, Value};
use uverbs::device::Device;
use uverbs::error::{Cause, Result};
use uverbs::mlx5::devx::{
    self, CapabilityMode, EswFunctions, Lag, PortType, RoceCapabilities, Status, Vport,
};

use super::Mlx5DeviceArgs;
use super::{host, selected, told};
use crate::args::Common;
use crate::output::{Output, json};
use crate::report::{EINVAL, Report, Unanswered};
use crate::selection::Asked;
use crate::table::fields;
use crate::values::{Hex, Text};

/// A device in the table and in JSON.
#[derive(Debug, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "the firmware has as many")]
struct Row<'a> {
    device: &'a str,
    vhca_id: u16,
    psid: Option<String>,
    fw_version: Option<&'a str>,
    port_type: Text<PortType>,
    num_ports: u8,
    native_port_num: u8,
    num_vhca_ports: u8,
    /// InfiniBand's; null on Ethernet.
    gid_table_len: Option<u16>,
    pkey_table_len: Option<u16>,
    roce: Option<Roce>,
    vport_group_manager: bool,
    eswitch_manager: bool,
    ib_virt: bool,
    eth_virt: bool,
    vport_counters: bool,
    max_user_contexts: u32,
    uctx_cap: Hex<u32>,
    lag_master: bool,
    num_lag_ports: u8,
    lag: Option<LagRow>,
    /// Of a smart NIC's embedded CPU; null elsewhere.
    host: Option<HostRow>,
    /// Fields that are null because the kernel kept the answer back, each with the reason.
    not_asked: Map<String, Value>,
}

#[derive(Debug, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "the firmware has as many")]
struct Roce {
    v1: bool,
    v2: bool,
    ipv4: bool,
    ipv6: bool,
    destination_udp_port: u16,
    min_source_udp_port: u16,
    max_source_udp_port: u16,
    address_table_len: u16,
}

#[derive(Debug, Serialize)]
struct LagRow {
    state: u8,
    active_ports: Hex<u8>,
    tx_remap_affinity_1: u8,
    tx_remap_affinity_2: u8,
}

#[derive(Debug, Serialize)]
struct HostRow {
    number: u8,
    pf_enabled: bool,
    num_of_vfs: u16,
    total_vfs: u16,
}

#[derive(Debug, Serialize)]
struct Document<'a> {
    devices: Vec<Row<'a>>,
    problems: &'a [Unanswered],
}

pub(crate) fn answer(
    common: &Common,
    args: &Mlx5DeviceArgs,
    report: &mut Report,
) -> serde_json::Result<Output> {
    let asked = Asked::new(&args.named.selectors);
    let host = host(common, &asked);
    let mut rows = Vec::new();
    for selected in selected(&host, &asked, report) {
        match ask(selected.device, report) {
            Ok(row) => rows.push(row),
            Err(error) => report.problem(&selected.device.name, &error),
        }
    }
    if common.json {
        return json(&Document { devices: rows, problems: report.problems() });
    }
    let mut lines = Vec::new();
    for row in &rows {
        for (field, why) in &row.not_asked {
            let why = why.as_str().unwrap_or_default();
            report.note(format!("{}: {field} is not known: {why}", row.device));
        }
        let mut line = serde_json::to_value(row)?;
        if let Some(fields) = line.as_object_mut() {
            fields.remove("not_asked");
        }
        lines.push(line);
    }
    Ok(fields("DEVICE", &lines, &["device"]).into())
}

/// Asks a device, which is opened once. What is not answered but the capabilities, on which all
/// else rests, is a problem, and null.
fn ask<'d>(device: &'d Device, report: &mut Report) -> Result<Row<'d>> {
    let context = devx::open(device)?;
    let own = devx::query_hca_cap(&context, CapabilityMode::Current, Vport::Own)?;
    let name = &device.name;
    let roce =
        own.roce.then(|| devx::query_roce_cap(&context, CapabilityMode::Current, Vport::Own));
    let lag = own.lag_master.then(|| answered(devx::query_lag(&context)));
    let functions = own.eswitch_manager.then(|| answered(devx::query_esw_functions(&context)));
    let adapter = Some(devx::query_adapter(&context));
    let is_ib = own.port_type == PortType::IB;
    let (lag, functions) = (told(lag, name, report), told(functions, name, report));
    let kept_back = [
        ("lag", matches!(lag, Some(Answered::KeptBack))),
        ("host", matches!(functions, Some(Answered::KeptBack))),
    ];
    let kept_back = kept_back.into_iter().filter(|(_, is_kept_back)| *is_kept_back);
    Ok(Row {
        device: name,
        vhca_id: own.vhca_id,
        psid: told(adapter, name, report).map(|adapter| adapter.psid),
        fw_version: device.fw_version.as_deref(),
        port_type: Text(own.port_type),
        num_ports: own.num_ports,
        native_port_num: own.native_port_num,
        num_vhca_ports: own.num_vhca_ports,
        gid_table_len: own.gid_table_len.filter(|_| is_ib),
        pkey_table_len: own.pkey_table_len.filter(|_| is_ib),
        roce: told(roce, name, report).map(Roce::from),
        vport_group_manager: own.vport_group_manager,
        eswitch_manager: own.eswitch_manager,
        ib_virt: own.ib_virt,
        eth_virt: own.eth_virt,
        vport_counters: own.vport_counters,
        max_user_contexts: own.max_user_contexts,
        uctx_cap: Hex(own.uctx_cap),
        lag_master: own.lag_master,
        num_lag_ports: own.num_lag_ports,
        lag: lag.and_then(Answered::known).map(LagRow::from),
        host: functions.and_then(Answered::known).map(HostRow::from),
        not_asked: kept_back.map(|(field, _)| (field.to_owned(), KEPT_BACK.into())).collect(),
    })
}

/// Why it is not known whether there is something of the kind.
const KEPT_BACK: &str = "the kernel lets no such command through, or keeps back what the firmware \
    says (EINVAL); newer kernels than Linux 5.10 do not";

/// What came of a question about something that most devices do not have.
#[derive(Debug, PartialEq, Eq)]
enum Answered<T> {
    Known(T),
    /// The firmware says that there is nothing of the kind.
    None,
    /// The kernel does not say whether the firmware was asked, or what it said: Linux 5.10.
    KeptBack,
}

impl<T> Answered<T> {
    fn known(self) -> Option<T> {
        match self {
            Self::Known(answer) => Some(answer),
            Self::None | Self::KeptBack => None,
        }
    }
}

fn answered<T>(answer: Result<T>) -> Result<Answered<T>> {
    match answer {
        Ok(answer) => Ok(Answered::Known(answer)),
        Err(error) => without_answer(error.cause()).ok_or(error),
    }
}

/// What the cause of an error says of the answer, if that is anything.
fn without_answer<T>(cause: &Cause) -> Option<Answered<T>> {
    match cause {
        Cause::Firmware(refusal) => matches!(
            refusal.status,
            Status::BAD_OP | Status::BAD_PARAM | Status::BAD_RES | Status::BAD_RES_STATE
        )
        .then_some(Answered::None),
        Cause::Os(EINVAL) => Some(Answered::KeptBack),
        _ => None,
    }
}

impl From<RoceCapabilities> for Roce {
    fn from(from: RoceCapabilities) -> Self {
        Self {
            v1: from.v1,
            v2: from.v2,
            ipv4: from.ipv4,
            ipv6: from.ipv6,
            destination_udp_port: from.destination_udp_port,
            min_source_udp_port: *from.source_udp_ports.start(),
            max_source_udp_port: *from.source_udp_ports.end(),
            address_table_len: from.address_table_len,
        }
    }
}

impl From<Lag> for LagRow {
    fn from(from: Lag) -> Self {
        Self {
            state: from.state,
            active_ports: Hex(from.active_ports),
            tx_remap_affinity_1: from.tx_remap_affinity_1,
            tx_remap_affinity_2: from.tx_remap_affinity_2,
        }
    }
}

impl From<EswFunctions> for HostRow {
    fn from(from: EswFunctions) -> Self {
        Self {
            number: from.host_number,
            pf_enabled: from.host_pf_enabled,
            num_of_vfs: from.host_num_of_vfs,
            total_vfs: from.host_total_vfs,
        }
    }
}

#[cfg(test)]
mod tests {
    use uverbs::mlx5::devx::FirmwareRefusal;

    use super::*;
    use crate::conforms::conforms;

    /// With all that a device may have, and with nothing of it.
    #[test]
    fn the_form_of_the_document() {
        let row = |is_full: bool| Row {
            device: "mlx5_0",
            vhca_id: 42,
            psid: is_full.then(|| "MT_0000000838".to_owned()),
            fw_version: is_full.then_some("28.39.2048"),
            port_type: Text(PortType::ETH),
            num_ports: 1,
            native_port_num: 1,
            num_vhca_ports: 0,
            gid_table_len: is_full.then_some(8),
            pkey_table_len: is_full.then_some(128),
            roce: is_full.then_some(Roce {
                v1: true,
                v2: true,
                ipv4: true,
                ipv6: false,
                destination_udp_port: 4791,
                min_source_udp_port: 0xc000,
                max_source_udp_port: 0xffff,
                address_table_len: 255,
            }),
            vport_group_manager: false,
            eswitch_manager: true,
            ib_virt: false,
            eth_virt: true,
            vport_counters: true,
            max_user_contexts: 1,
            uctx_cap: Hex(7),
            lag_master: is_full,
            num_lag_ports: 2,
            lag: is_full.then_some(LagRow {
                state: 1,
                active_ports: Hex(3),
                tx_remap_affinity_1: 1,
                tx_remap_affinity_2: 2,
            }),
            host: is_full.then_some(HostRow {
                number: 0,
                pf_enabled: true,
                num_of_vfs: 4,
                total_vfs: 8,
            }),
            not_asked: [("host".to_owned(), KEPT_BACK.into())]
                .into_iter()
                .filter(|_| !is_full)
                .collect(),
        };
        let mut report = Report::default();
        report.problem("mlx5_1", uverbs::inventory::Problem { text: "no".into(), errno: 5 });
        let devices = vec![row(true), row(false)];
        conforms("mlx5-device.json", &Document { devices, problems: report.problems() });
    }

    #[test]
    fn only_some_refusals_mean_that_there_is_none() {
        let told = |cause: &Cause| without_answer::<Lag>(cause);
        let refused = |status| Cause::Firmware(FirmwareRefusal::new(status, 1));
        for status in [Status::BAD_OP, Status::BAD_PARAM, Status::BAD_RES, Status::BAD_RES_STATE] {
            assert_eq!(told(&refused(status)), Some(Answered::None), "{status}");
        }
        for status in [Status::RES_BUSY, Status::NOT_READY, Status::INTERNAL_ERR, Status(0xfe)] {
            assert_eq!(told(&refused(status)), None, "{status}");
        }
        for cause in [Cause::NoSuchPort, Cause::NotOffered, Cause::Os(5)] {
            assert_eq!(told(&cause), None, "{cause}");
        }
    }

    /// Linux 5.10 has one errno for a command that it does not let through and for the firmware's refusal.
    #[test]
    fn what_the_kernel_keeps_back_is_not_none() {
        assert_eq!(without_answer::<Lag>(&Cause::Os(EINVAL)), Some(Answered::KeptBack));
    }
}
