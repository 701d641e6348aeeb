//! `uverbs ports`: what state ports are in, and how fast they are.

use core::fmt;
use core::num::NonZeroU32;

use clap::{Args, ValueHint};
use serde::{Serialize, Serializer};
use uverbs::device::Device;
use uverbs::guid::Guid;
use uverbs::host::Source;
use uverbs::inventory::{Parts, PortRecord, Wanted};
use uverbs::port::{LinkLayer, Mtu, PhysState, PortState, Speed, Width};
use uverbs::selector::Selector;

use crate::args::{Common, FromArg, SourceArg, selector};
use crate::hosts::each;
use crate::output::Answer;
use crate::report::Report;
use crate::rows::Rows;
use crate::selection::Asked;
use crate::table::{Mark, Table, cell};
use crate::values::{Gbps, Text};

#[derive(Debug, Args)]
pub(crate) struct PortsArgs {
    /// Devices and ports to show; all if none is named
    #[arg(value_name = "DEV[:PORT]", value_parser = selector, value_hint = ValueHint::Other)]
    pub(crate) selectors: Vec<Selector>,
    #[command(flatten)]
    pub(crate) source: SourceArg,
    #[command(flatten)]
    pub(crate) from: FromArg,
}

/// A port in the table and in JSON.
#[derive(Debug, Serialize)]
struct Row<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<&'a str>,
    device: &'a str,
    port: u32,
    state: Text<PortState>,
    phys_state: Text<PhysState>,
    link_layer: Text<LinkLayer>,
    max_mtu: Option<Bytes>,
    active_mtu: Option<Bytes>,
    lid: u32,
    sm_lid: u32,
    lmc: u8,
    gid_tbl_len: u32,
    pkey_tbl_len: u32,
    active_width: Option<Text<Lanes>>,
    active_speed: Option<Text<Speed>>,
    rate_gbps: Option<Gbps>,
    effective_gbps: Option<Gbps>,
    ifindex: Option<NonZeroU32>,
    netdev: Option<&'a str>,
    port_guid: Option<Text<Guid>>,
    source: Text<Source>,
}

impl<'a> Row<'a> {
    /// A port whose attributes were read.
    fn new(host: Option<&'a str>, device: &'a Device, port: &'a PortRecord) -> Option<Self> {
        let (attributes, source) = port.attributes.as_ref()?.as_ref().ok()?;
        let netdev = port.netdev.as_ref();
        Some(Self {
            host,
            device: &device.name,
            port: port.number,
            state: Text(attributes.state),
            phys_state: Text(attributes.phys_state),
            link_layer: Text(attributes.link_layer),
            max_mtu: bytes(attributes.max_mtu),
            active_mtu: bytes(attributes.active_mtu),
            lid: attributes.lid,
            sm_lid: attributes.sm_lid,
            lmc: attributes.lmc,
            gid_tbl_len: attributes.gid_tbl_len,
            pkey_tbl_len: attributes.pkey_tbl_len,
            active_width: attributes.active_width.map(|width| Text(Lanes(width))),
            active_speed: attributes.active_speed.map(Text),
            rate_gbps: attributes.rate().map(Gbps),
            effective_gbps: port
                .effective
                .as_ref()
                .and_then(|it| it.as_ref().ok().copied())
                .map(Gbps),
            ifindex: netdev.map(|netdev| netdev.index),
            netdev: netdev.map(|netdev| netdev.name.as_str()),
            port_guid: port.guid.as_ref().ok().copied().flatten().map(Text),
            source: Text(*source),
        })
    }
}

/// A width as `4X`.
#[derive(Clone, Copy, Debug)]
struct Lanes(Width);

impl fmt::Display for Lanes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.lanes() {
            Some(lanes) => write!(f, "{lanes}X"),
            None => write!(f, "unknown({})", self.0.0),
        }
    }
}

/// An MTU as its number of bytes; a code that is not known as a text.
#[derive(Clone, Copy, Debug)]
struct Bytes(Mtu);

/// A port's MTU. Code 0 is that of a port without a network interface in any namespace, as mlx5 has them
/// in switchdev mode: there is none.
fn bytes(mtu: Option<Mtu>) -> Option<Bytes> {
    mtu.filter(|mtu| mtu.0 != 0).map(Bytes)
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.bytes() {
            Some(bytes) => bytes.fmt(f),
            None => write!(f, "unknown({})", self.0.0),
        }
    }
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.0.bytes() {
            Some(bytes) => to.serialize_u16(bytes),
            None => to.collect_str(self),
        }
    }
}

pub(crate) fn answer(
    common: &Common,
    args: &PortsArgs,
    report: &mut Report,
) -> serde_json::Result<Answer> {
    let asked = Asked::new(&args.selectors);
    let is_device = |device: &Device| asked.has_device(&device.name);
    let is_port = |device: &Device, port: u32| asked.has_port(&device.name, port);
    let wanted = Wanted::new(Parts::PORTS)
        .preference(args.source.preference(common))
        .devices(&is_device)
        .ports(&is_port);
    let mut rows = Rows::new(common, "ports", HEADING);
    each(common, &args.from.from, &wanted, report, |host, report| {
        for selected in host.select(&asked, report) {
            let name = &selected.device.name;
            for port in selected.record.ports.iter().filter(|port| selected.includes(port.number)) {
                if let Some(problem) = port.problem() {
                    report.problem(name, problem.clone());
                }
                let row = Row::new(host.name.as_deref(), selected.device, port);
                let Some(row) = row else { continue };
                let effective = port.effective.as_ref().and_then(|rate| rate.as_ref().err());
                for problem in effective.into_iter().chain(port.guid.as_ref().err()) {
                    report.problem(name, problem.clone());
                }
                rows.add(&row, tabulate)?;
            }
        }
        Ok(())
    })?;
    rows.end(report)
}

const HEADING: [&str; 12] = [
    "DEVICE",
    "PORT",
    "STATE",
    "PHYS_STATE",
    "LINK",
    "MTU",
    "GBPS",
    "WIDTH",
    "SPEED",
    "LID",
    "NETDEV",
    "PORT_GUID",
];

fn tabulate(row: &Row<'_>, table: &mut Table<12>) {
    let cells = [
        row.device.to_owned(),
        row.port.to_string(),
        row.state.to_string(),
        row.phys_state.to_string(),
        row.link_layer.to_string(),
        cell(row.active_mtu),
        cell(row.rate_gbps.map(|gbps| gbps.0)),
        cell(row.active_width),
        cell(row.active_speed),
        row.lid.to_string(),
        cell(row.netdev),
        cell(row.port_guid),
    ];
    let is_active = matches!(row.state.0, PortState::ACTIVE | PortState::ACTIVE_DEFER);
    table.row_of(row.host, &cells, if is_active { Mark::Plain } else { Mark::Attention });
}
