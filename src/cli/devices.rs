//! `uverbs devices`: what a host has.

use clap::Args;
use serde::{Serialize, Serializer};
use uverbs::device::{Device, NodeType};
use uverbs::driver::DriverId;
use uverbs::guid::Guid;
use uverbs::hardware::{Hardware, PciAddress, PciFunction, PcieLink};
use uverbs::inventory::{DeviceRecord, Parts, Wanted};

use crate::args::{Common, FromArg, NamedDevices};
use crate::hosts::each;
use crate::output::Output;
use crate::report::Report;
use crate::rows::Rows;
use crate::selection::Asked;
use crate::table::{Mark, Table};
use crate::values::{Text, cell};

#[derive(Debug, Args)]
pub(crate) struct DevicesArgs {
    #[command(flatten)]
    pub(crate) named: NamedDevices,
    #[command(flatten)]
    pub(crate) from: FromArg,
}

/// A device in the table and in JSON.
#[derive(Debug, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "keys of the JSON")]
pub(crate) struct Row<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<&'a str>,
    device: &'a str,
    index: Option<u32>,
    node_type: Text<NodeType>,
    protocol: Option<&'a str>,
    driver: Option<Text<DriverId>>,
    pub(crate) node_guid: Text<Guid>,
    sys_image_guid: Text<Guid>,
    fw_version: Option<&'a str>,
    /// Those that can be asked about: of an InfiniBand switch only its port 0.
    pub(crate) ports: usize,
    uverbs: Option<&'a str>,
    node: Option<String>,
    /// Whether it is not known which node it has; only where it is so.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    node_is_unread: bool,
    pci: Option<Pci>,
    /// Whether that was not read, and is not known; only where it is so.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pci_is_unread: bool,
    numa_node: Option<u32>,
    /// The same of the NUMA node.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    numa_node_is_unread: bool,
    board_id: Option<&'a str>,
    /// The same of the board.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    board_is_unread: bool,
    ca_type: Option<&'a str>,
    hw_rev: Option<&'a str>,
    /// Whether nothing of the hardware was read.
    #[serde(skip)]
    is_bare: bool,
}

/// A PCI function.
#[derive(Debug, Serialize)]
struct Pci {
    address: Text<PciAddress>,
    function: Option<Kind>,
    physical: Option<Text<PciAddress>>,
    /// Whether it is a virtual one of which that is not known; only where it is so.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    physical_is_unread: bool,
    id: Option<String>,
    link: Option<Link>,
    max_link: Option<Link>,
}

/// What of a PCI function a device is.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    /// Physical.
    Pf,
    /// Virtual.
    Vf,
    /// A sub-function.
    Sf,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Pf => "pf",
            Self::Vf => "vf",
            Self::Sf => "sf",
        }
    }
}

/// A PCIe link: in JSON its GT/s and its lanes.
#[derive(Clone, Copy, Debug)]
struct Link(PcieLink);

impl Serialize for Link {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Form {
            gts: f64,
            lanes: u8,
        }
        Form { gts: f64::from(self.0.speed) / 10.0, lanes: self.0.width }.serialize(to)
    }
}

/// The numbers of vendor and device, as `lspci -n` has them.
pub(crate) fn pci_id(vendor: u16, device: u16) -> String {
    format!("{vendor:04x}:{device:04x}")
}

impl Pci {
    fn new(own: &PciFunction) -> Self {
        Self {
            address: Text(own.address),
            function: match () {
                () if own.has_sub_function => Some(Kind::Sf),
                () if own.is_virtual() => Some(Kind::Vf),
                () => own.is_physical().then_some(Kind::Pf),
            },
            physical: own.physical.map(Text),
            physical_is_unread: own.physical_is_unread,
            id: own.id.map(|(vendor, device)| pci_id(vendor, device)),
            link: own.link.map(Link),
            max_link: own.max_link.map(Link),
        }
    }
}

impl<'a> Row<'a> {
    pub(crate) fn new(host: Option<&'a str>, record: &'a DeviceRecord) -> Self {
        let DeviceRecord { device, hardware, .. } = record;
        let hardware = hardware.as_ref();
        let text = |text: fn(&Hardware) -> &Option<String>| text(hardware?).as_deref();
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
            node_is_unread: device.node_is_unread,
            pci: hardware.and_then(|own| own.pci.as_ref()).map(Pci::new),
            pci_is_unread: hardware.is_none_or(|own| own.pci_is_unread),
            numa_node: hardware.and_then(|own| own.numa_node),
            numa_node_is_unread: hardware.is_none_or(|own| own.numa_node_is_unread),
            board_id: text(|own| &own.board_id),
            board_is_unread: hardware.is_none_or(|own| own.board_is_unread),
            ca_type: text(|own| &own.ca_type),
            hw_rev: text(|own| &own.hw_rev),
            is_bare: hardware.is_none(),
        }
    }

    /// Whether the physical function of a virtual one is not known, and so neither is its link.
    fn physical_is_unread(&self) -> bool {
        self.pci.as_ref().is_some_and(|own| own.physical_is_unread)
    }

    /// What is not known of its hardware; on the host itself, as sysfs does not say it.
    fn doubt(&self) -> Option<String> {
        if self.is_bare {
            let why = ": this sysfs does not show the device, or could not be read";
            let why = if self.host.is_none() { why } else { "" };
            return Some(format!("its hardware is not known{why}"));
        }
        let parts = [
            ("PCI function", self.pci_is_unread),
            ("physical function", self.physical_is_unread()),
            ("NUMA node", self.numa_node_is_unread),
            ("board", self.board_is_unread),
        ];
        let unread = parts.into_iter().filter_map(|(part, is_unread)| is_unread.then_some(part));
        let unread: Vec<&str> = unread.collect();
        let (last, others) = unread.split_last()?;
        let others = others.join(", ");
        let and = if others.is_empty() { "" } else { " and " };
        Some(format!("its {others}{and}{last} could not be read"))
    }
}

pub(crate) fn answer(
    common: &Common,
    args: &DevicesArgs,
    report: &mut Report,
) -> serde_json::Result<Output> {
    let mut rows =
        Rows::first(common, common.json, "devices", NARROW, HEADING).spare(&["UVERBS", "PROTOCOL"]);
    let asked = Asked::new(&args.named.selectors);
    let is_asked = |device: &Device| asked.has_device(&device.name);
    let mut parts = Parts::DEVICES;
    parts.hardware = common.wide || common.json;
    let wanted = Wanted::new(parts).devices(&is_asked);
    each(common, &args.from, &wanted, report, |host, report| {
        for selected in host.select(&asked, report) {
            if let (Some(Err(problem)), None) = (&selected.record.access, &host.name) {
                report.problem(&selected.device.name, problem.clone());
            }
            if selected.device.node_is_unread {
                report.note(format!(
                    "{}: it is not known which uverbs node it has",
                    selected.device.name
                ));
            }
            let row = Row::new(host.name.as_deref(), selected.record);
            if let Some(doubt) = row.doubt().filter(|_| parts.hardware) {
                report.note(format!("{}: {doubt}", selected.device.name));
            }
            rows.add(&row, tabulate)?;
        }
        Ok(())
    })?;
    rows.end(report)
}

/// Columns without --wide.
const NARROW: usize = 8;

const HEADING: [&str; 19] = [
    "DEVICE",
    "TYPE",
    "PROTOCOL",
    "DRIVER",
    "PORTS",
    "NODE_GUID",
    "FW",
    "UVERBS",
    "SYS_IMAGE_GUID",
    "PCI",
    "FUNCTION",
    "PF",
    "NUMA",
    "PCIE",
    "MAX_PCIE",
    "PCI_ID",
    "BOARD",
    "CA_TYPE",
    "HW_REV",
];

fn tabulate(row: &Row<'_>, table: &mut Table<19>) {
    /// A cell that is empty only if there is nothing to show.
    fn or_unread(value: Option<impl ToString>, is_unread: bool) -> String {
        if is_unread && value.is_none() { "?".to_owned() } else { cell(value) }
    }
    let pci = row.pci.as_ref();
    let of_pci = |value: Option<String>| or_unread(value, row.pci_is_unread);
    let is_unread = row.pci_is_unread || row.physical_is_unread();
    let of_physical = |value: Option<String>| or_unread(value, is_unread);
    let cells = [
        row.device.to_owned(),
        row.node_type.to_string(),
        cell(row.protocol),
        cell(row.driver),
        row.ports.to_string(),
        row.node_guid.to_string(),
        cell(row.fw_version),
        or_unread(row.uverbs, row.node_is_unread),
        row.sys_image_guid.to_string(),
        of_pci(pci.map(|own| own.address.to_string())),
        of_pci(pci.and_then(|own| own.function).map(|own| own.name().to_owned())),
        of_physical(pci.and_then(|own| own.physical).map(|own| own.to_string())),
        or_unread(row.numa_node, row.numa_node_is_unread),
        of_physical(pci.and_then(|own| own.link).map(|own| own.0.to_string())),
        of_physical(pci.and_then(|own| own.max_link).map(|own| own.0.to_string())),
        of_pci(pci.and_then(|own| own.id.clone())),
        or_unread(row.board_id, row.board_is_unread),
        or_unread(row.ca_type, row.is_bare),
        or_unread(row.hw_rev, row.is_bare),
    ];
    table.row_of(row.host, &cells, Mark::Plain);
}
