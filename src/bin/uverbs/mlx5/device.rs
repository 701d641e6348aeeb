//! `uverbs mlx5 device`: the function as a whole, as its firmware knows it.

use serde::Serialize;
use uverbs::device::Device;
use uverbs::error::{Cause, Result};
use uverbs::mlx5::devx::{
    self, CapabilityMode, EswFunctions, Lag, PortType, RoceCapabilities, Vport,
};

use super::selected;
use crate::args::{Common, Mlx5DeviceArgs};
use crate::host::Place;
use crate::output::{Hex, Text, json};
use crate::report::{Problem, Report};
use crate::table::fields;

/// A device as it is shown, and as it stands in JSON.
#[derive(Debug, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "the firmware has as many")]
struct Row<'a> {
    device: &'a str,
    vhca_id: u16,
    psid: String,
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
}

#[derive(Debug, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "the firmware has as many")]
struct Roce {
    v1: bool,
    v2: bool,
    ipv4: bool,
    ipv6: bool,
    destination_udp_port: u16,
    source_udp_ports: (u16, u16),
    address_table_len: u16,
}

#[derive(Debug, Serialize)]
struct LagRow {
    state: u8,
    active_ports: Hex<u8>,
    tx_remap_affinity: (u8, u8),
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
    problems: &'a [Problem],
}

pub(crate) fn answer(
    place: &mut Place,
    common: &Common,
    args: &Mlx5DeviceArgs,
    report: &mut Report,
) -> serde_json::Result<String> {
    let devices = place.devices(&args.selectors, report);
    let mut rows = Vec::new();
    for selected in selected(&devices, &args.selectors, place, report) {
        match ask(selected.device) {
            Ok(row) => rows.push(row),
            Err(error) => report.problem(&selected.device.name, &error),
        }
    }
    if common.json {
        return json(&Document { devices: rows, problems: report.problems() });
    }
    fields("DEVICE", &rows, &["device"], common)
}

/// Asks a device, which is opened once.
fn ask(device: &Device) -> Result<Row<'_>> {
    let context = devx::open(device)?;
    let own = devx::query_hca_cap(&context, CapabilityMode::Current, Vport::Own)?;
    let roce = if own.roce {
        Some(devx::query_roce_cap(&context, CapabilityMode::Current, Vport::Own)?)
    } else {
        None
    };
    let lag = if own.lag_master { unless_refused(devx::query_lag(&context))? } else { None };
    let functions = if own.eswitch_manager {
        unless_refused(devx::query_esw_functions(&context))?
    } else {
        None
    };
    let adapter = devx::query_adapter(&context)?;
    let is_ib = own.port_type == PortType::IB;
    Ok(Row {
        device: &device.name,
        vhca_id: own.vhca_id,
        psid: adapter.psid,
        fw_version: device.fw_version.as_deref(),
        port_type: Text(own.port_type),
        num_ports: own.num_ports,
        native_port_num: own.native_port_num,
        num_vhca_ports: own.num_vhca_ports,
        gid_table_len: own.gid_table_len.filter(|_| is_ib),
        pkey_table_len: own.pkey_table_len.filter(|_| is_ib),
        roce: roce.map(Roce::from),
        vport_group_manager: own.vport_group_manager,
        eswitch_manager: own.eswitch_manager,
        ib_virt: own.ib_virt,
        eth_virt: own.eth_virt,
        vport_counters: own.vport_counters,
        max_user_contexts: own.max_user_contexts,
        uctx_cap: Hex(own.uctx_cap),
        lag_master: own.lag_master,
        num_lag_ports: own.num_lag_ports,
        lag: lag.map(LagRow::from),
        host: functions.map(HostRow::from),
    })
}

/// No answer where the firmware refuses a question that has none on most devices. Linux 5.10 does
/// not say that it was the firmware.
fn unless_refused<T>(answer: Result<T>) -> Result<Option<T>> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(error) if matches!(error.cause(), Cause::Firmware(_)) => Ok(None),
        Err(error) if matches!(error.cause(), Cause::Os(_)) && error.errno() == EINVAL => Ok(None),
        Err(error) => Err(error),
    }
}

/// What Linux 5.10 makes of most refusals.
const EINVAL: i32 = 22;

impl From<RoceCapabilities> for Roce {
    fn from(from: RoceCapabilities) -> Self {
        Self {
            v1: from.v1,
            v2: from.v2,
            ipv4: from.ipv4,
            ipv6: from.ipv6,
            destination_udp_port: from.destination_udp_port,
            source_udp_ports: from.source_udp_ports,
            address_table_len: from.address_table_len,
        }
    }
}

impl From<Lag> for LagRow {
    fn from(from: Lag) -> Self {
        Self {
            state: from.state,
            active_ports: Hex(from.active_ports),
            tx_remap_affinity: from.tx_remap_affinity,
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
