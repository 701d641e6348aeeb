//! `uverbs ports`: what state ports are in, and how fast they are.

use core::fmt;
use core::num::NonZeroU32;

use serde::{Serialize, Serializer};
use uverbs::device::Device;
use uverbs::guid::Guid;
use uverbs::port::{LinkLayer, Mtu, PhysState, PortAttributes, PortState, Rate, Speed, Width};
use uverbs::reader::{Preference, Source};

use crate::args::{Common, PortsArgs};
use crate::host::Place;
use crate::output::{Answer, Gbps, Text, json};
use crate::report::{Problem, Report};
use crate::selection::{Asked, Selected, select};
use crate::table::{Mark, Table, cell};

/// A port's answers.
#[derive(Debug)]
struct Read<'d> {
    device: &'d Device,
    port: u32,
    attributes: PortAttributes,
    source: Source,
    effective: Option<Rate>,
    guid: Option<Guid>,
}

/// A port as it is shown, and as it stands in JSON.
#[derive(Debug, Serialize)]
struct Row<'a> {
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

#[derive(Debug, Serialize)]
struct Document<'a> {
    ports: Vec<Row<'a>>,
    problems: &'a [Problem],
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
    place: &mut Place,
    common: &Common,
    args: &PortsArgs,
    asked: &Asked<'_>,
    report: &mut Report,
) -> serde_json::Result<Answer> {
    let preference = args.source.preference(common);
    let devices = place.devices(asked, report);
    let mut read = Vec::new();
    for selected in select(&devices, asked, report) {
        read_ports(&selected, place, preference, report, &mut read);
    }
    let ports: Vec<(&Device, u32)> = read.iter().map(|read| (read.device, read.port)).collect();
    let netdevs = place.port_netdevs(&ports, report);
    let rows: Vec<Row<'_>> = read
        .iter()
        .map(|read| {
            let Read { device, port, ref attributes, source, effective, guid } = *read;
            let netdev = netdevs.get(&(device.name.clone(), port));
            Row {
                device: &device.name,
                port,
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
                effective_gbps: effective.map(Gbps),
                ifindex: netdev.map(|netdev| netdev.index),
                netdev: netdev.map(|netdev| netdev.name.as_str()),
                port_guid: guid.map(Text),
                source: Text(source),
            }
        })
        .collect();
    if common.json {
        return json(&Document { ports: rows, problems: report.problems() });
    }
    Ok(tabulate(&rows).answer())
}

/// Reads the ports of one device, which is opened once.
fn read_ports<'d>(
    selected: &Selected<'d>,
    place: &Place,
    preference: Preference,
    report: &mut Report,
    read: &mut Vec<Read<'d>>,
) {
    let device = selected.device;
    let mut reader = match place.reader(device, preference) {
        Ok(reader) => reader,
        Err(error) => return report.problem(&device.name, error),
    };
    report.fallback(device, &reader);
    for port in selected.ports() {
        let attributes = reader.port(port);
        report.fallback(device, &reader);
        let (attributes, source) = match attributes {
            Ok(answer) => answer,
            Err(error) => {
                report.problem(&device.name, error);
                continue;
            }
        };
        let effective = reader.effective(port);
        let guid = reader.port_guid(port);
        report.fallback(device, &reader);
        let guid = guid.unwrap_or_else(|error| {
            report.problem(&device.name, error);
            None
        });
        read.push(Read { device, port, attributes, source, effective, guid });
    }
}

fn tabulate(rows: &[Row<'_>]) -> Table<12> {
    let mut table = Table::new([
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
    ]);
    for row in rows {
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
        table.row(cells, if is_active { Mark::Plain } else { Mark::Attention });
    }
    table
}
