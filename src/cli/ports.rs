//! `uverbs ports`: what state ports are in, and how fast they are.

use core::fmt;
use core::num::NonZeroU32;

use clap::{Args, ValueEnum};
use serde::{Serialize, Serializer};
use uverbs::device::Device;
use uverbs::guid::Guid;
use uverbs::host::{Preference, Source};
use uverbs::inventory::{Parts, PortRecord, Wanted};
use uverbs::port::{LinkLayer, Mtu, PhysState, PortState, Speed, Width};

use crate::args::{Common, NamedPorts, OriginArgs};
use crate::form::{Form, Format, Room};
use crate::hosts::each;
use crate::other_tool::{Lines, OtherTool};
use crate::output::Output;
use crate::report::Report;
use crate::rows::Rows;
use crate::selection::Asked;
use crate::table::{Mark, Table};
use crate::values::{Gbps, Hex, Text, cell};

#[derive(Debug, Args)]
pub(crate) struct PortsArgs {
    #[command(flatten)]
    pub(crate) named: NamedPorts,
    #[command(flatten)]
    pub(crate) origin: OriginArgs,
    /// How to print
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<PortsFormat>,
}

impl PortsArgs {
    /// ibstat reads sysfs, and bit 26 of the capability mask is another there: by ioctl it says that GIDs are made of
    /// IP addresses.
    fn preference(&self, common: &Common) -> Preference {
        match self.origin.source.source {
            None if self.format == Some(PortsFormat::Ibstat) => Preference::Sysfs,
            _ => self.origin.preference(common),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PortsFormat {
    /// Aligned columns
    Table,
    /// One JSON document; the same as --json
    Json,
    /// What ibdev2netdev prints
    Ibdev2netdev,
    /// What ibstat prints
    Ibstat,
}

impl Format for PortsFormat {
    const JSON: Self = Self::Json;
    const DEFAULT: Self = Self::Table;

    fn form(self) -> Form {
        match self {
            Self::Table => Form::Table,
            Self::Json => Form::Json,
            Self::Ibdev2netdev => Form::OtherTool("ibdev2netdev"),
            Self::Ibstat => Form::OtherTool("ibstat"),
        }
    }
}

impl From<PortsFormat> for OtherTool {
    fn from(format: PortsFormat) -> Self {
        match format {
            PortsFormat::Table | PortsFormat::Json => Self::None,
            PortsFormat::Ibdev2netdev => Self::Ibdev2netdev(Lines::default()),
            PortsFormat::Ibstat => Self::Ibstat(Lines::default()),
        }
    }
}

/// A port in the table and in JSON.
#[derive(Debug, Serialize)]
pub(crate) struct Row<'a> {
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
    sm_sl: u8,
    lmc: u8,
    gid_tbl_len: u32,
    pkey_tbl_len: u32,
    active_width: Option<Text<WidthText>>,
    active_speed: Option<Text<Speed>>,
    rate_gbps: Option<Gbps>,
    effective_gbps: Option<Gbps>,
    ifindex: Option<NonZeroU32>,
    netdev: Option<&'a str>,
    port_guid: Option<Text<Guid>>,
    port_cap_flags: Hex<u32>,
    port_cap_flags2: Option<Hex<u16>>,
    max_msg_sz: Option<u32>,
    /// Virtual lanes.
    max_vl: Option<Lanes>,
    bad_pkey_cntr: Option<u32>,
    qkey_viol_cntr: Option<u32>,
    subnet_timeout: Option<u8>,
    init_type_reply: Option<u8>,
    source: Text<Source>,
}

impl<'a> Row<'a> {
    /// A port whose attributes were read.
    pub(crate) fn new(
        host: Option<&'a str>,
        device: &'a Device,
        port: &'a PortRecord,
    ) -> Option<Self> {
        let (attributes, source) = port.attributes.as_ref()?.as_ref().ok()?;
        let netdev = port.netdev();
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
            sm_sl: attributes.sm_sl,
            lmc: attributes.lmc,
            gid_tbl_len: attributes.gid_tbl_len,
            pkey_tbl_len: attributes.pkey_tbl_len,
            active_width: attributes.active_width.map(|width| Text(WidthText(width))),
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
            port_cap_flags: Hex(attributes.port_cap_flags),
            port_cap_flags2: attributes.port_cap_flags2.map(Hex),
            max_msg_sz: attributes.max_msg_sz,
            // 0 is none of the codes: the driver gives nothing.
            max_vl: attributes.max_vl_num.filter(|code| *code != 0).map(Lanes),
            bad_pkey_cntr: attributes.bad_pkey_cntr,
            qkey_viol_cntr: attributes.qkey_viol_cntr,
            subnet_timeout: attributes.subnet_timeout,
            init_type_reply: attributes.init_type_reply,
            source: Text(*source),
        })
    }
}

/// A width as `4X`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WidthText(pub(crate) Width);

impl fmt::Display for WidthText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.lanes() {
            Some(lanes) => write!(f, "{lanes}X"),
            None => write!(f, "unknown({})", self.0.0),
        }
    }
}

/// Virtual lanes as their number; a code that is not known as a text.
#[derive(Clone, Copy, Debug)]
struct Lanes(u8);

impl Lanes {
    /// 1, 2, 4, 8 or 15, as the InfiniBand specification has them.
    fn count(self) -> Option<u8> {
        match self.0 {
            code @ 1..=4 => Some(1 << (code - 1)),
            5 => Some(15),
            _ => None,
        }
    }
}

impl fmt::Display for Lanes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.count() {
            Some(count) => count.fmt(f),
            None => write!(f, "unknown({})", self.0),
        }
    }
}

impl Serialize for Lanes {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.count() {
            Some(count) => to.serialize_u8(count),
            None => to.collect_str(self),
        }
    }
}

/// An MTU as its number of bytes; a code that is not known as a text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bytes(Mtu);

/// A port's MTU. Code 0 is that of a port without a network interface in any namespace, as mlx5 has them
/// in switchdev mode: there is none.
pub(crate) fn bytes(mtu: Option<Mtu>) -> Option<Bytes> {
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
) -> serde_json::Result<Output> {
    let format = PortsFormat::asked(args.format, common);
    let asked = Asked::new(&args.named.selectors);
    let is_device = |device: &Device| asked.has_device(&device.name);
    let is_port = |device: &Device, port: u32| asked.has_port(&device.name, port);
    let mut parts = Parts::PORTS;
    if format == PortsFormat::Ibdev2netdev {
        // The script names the interface of GID 0.
        (parts.interfaces, parts.gids) = (true, true);
    }
    parts.hardware = format == PortsFormat::Ibstat;
    let wanted =
        Wanted::new(parts).preference(args.preference(common)).devices(&is_device).ports(&is_port);
    let mut rows =
        Rows::first(common, format == PortsFormat::Json, "ports", NARROW, HEADING).spare(SPARE);
    let (mut text, mut room) = (OtherTool::from(format), Room::of(format.form()));
    each(common, &args.origin.from, &wanted, report, |host, report| {
        if !room.take(report) {
            return Ok(());
        }
        let mut selected = host.select(&asked, report);
        text.order(&mut selected);
        for selected in selected {
            text.add_device(&selected, report);
            let name = &selected.device.name;
            for port in selected.record.ports.iter().filter(|port| selected.includes(port.number)) {
                if let Some(problem) = port.problem() {
                    report.problem(name, problem.clone());
                }
                let row = Row::new(host.name.as_deref(), selected.device, port);
                let Some(row) = row else { continue };
                let effective = port.effective.as_ref().and_then(|rate| rate.as_ref().err());
                let others = [port.guid.as_ref().err(), port.netdev.as_ref().err()];
                for problem in effective.into_iter().chain(others.into_iter().flatten()) {
                    report.problem(name, problem.clone());
                }
                match &mut text {
                    OtherTool::None => rows.add(&row, tabulate)?,
                    text => text.add_port(&selected, port, &host.inventory, report),
                }
            }
        }
        Ok(())
    })?;
    match text.end() {
        Some(text) => Ok(text),
        None => rows.end(report),
    }
}

/// Columns without --wide.
const NARROW: usize = 12;

/// Columns that a narrow terminal does without.
const SPARE: &[&str] = &["PORT_GUID", "LID", "PHYS_STATE"];

const HEADING: [&str; 27] = [
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
    "MAX_MTU",
    "SM_LID",
    "SM_SL",
    "LMC",
    "CAP_MASK",
    "CAP_MASK2",
    "GIDS",
    "PKEYS",
    "EFFECTIVE",
    "MAX_MSG",
    "VLS",
    "BAD_PKEYS",
    "QKEY_VIOLATIONS",
    "TIMEOUT",
    "INIT_REPLY",
];

fn tabulate(row: &Row<'_>, table: &mut Table<27>) {
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
        cell(row.max_mtu),
        row.sm_lid.to_string(),
        row.sm_sl.to_string(),
        row.lmc.to_string(),
        row.port_cap_flags.to_string(),
        cell(row.port_cap_flags2),
        row.gid_tbl_len.to_string(),
        row.pkey_tbl_len.to_string(),
        cell(row.effective_gbps.map(|gbps| gbps.0)),
        cell(row.max_msg_sz),
        cell(row.max_vl),
        cell(row.bad_pkey_cntr),
        cell(row.qkey_viol_cntr),
        cell(row.subnet_timeout),
        cell(row.init_type_reply),
    ];
    let is_active = row.state.0 == PortState::ACTIVE;
    table.row_of(row.host, &cells, if is_active { Mark::Plain } else { Mark::Attention });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::{Cli, Command};

    #[test]
    fn ibstat_is_read_from_sysfs() {
        let preference = |words: &str| {
            let cli = Cli::from_words(words.split(' ')).unwrap();
            let Command::Ports(args) = &cli.command else { panic!("{words}") };
            args.preference(&cli.common)
        };
        assert_eq!(preference("uverbs ports"), Preference::Auto);
        assert_eq!(preference("uverbs ports --format ibdev2netdev"), Preference::Auto);
        assert_eq!(preference("uverbs ports --format ibstat"), Preference::Sysfs);
        assert_eq!(preference("uverbs ports --format ibstat --source ioctl"), Preference::Ioctl);
    }
}
