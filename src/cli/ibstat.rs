//! The output of `ibstat` of Debian's infiniband-diags, for scripts that were written for it.
//!
//! As there: sysfs is read, InfiniBand-type devices only, sorted by the bytes of their names; texts that are not known
//! are empty. One difference is meant: a device that cannot be read is a problem and does not end the output, and so is
//! a port whose rate or GUID is not known, or that has no GID table; and a device may have more than nine ports. What a snapshot has of a port was asked by ioctl, where bit 26 of the
//! capability mask is another.

use std::fmt::Write as _;

use uverbs::device::NodeType;
use uverbs::host::Source;
use uverbs::inventory::{DeviceRecord, PortRecord};
use uverbs::port::{LinkLayer, PhysState, PortAttributes, PortState, Speed};

use crate::text::printable;

/// A device with all its ports.
pub(crate) fn device(record: &DeviceRecord) -> Option<String> {
    let own = &record.device;
    let kind = kind(own.node_type)?;
    let hardware = record.hardware.as_ref();
    let text = |text: Option<&String>| printable(text.map_or("", String::as_str)).into_owned();
    let mut all = format!(
        "{kind} '{}'\n\t{kind} type: {}\n\tNumber of ports: {}\n\tFirmware version: {}\n\tHardware version: {}\n\
         \tNode GUID: {}\n\tSystem image GUID: {}\n",
        printable(&own.name),
        text(hardware.and_then(|own| own.ca_type.as_ref())),
        own.ports().last().unwrap_or_default(),
        text(own.fw_version.as_ref()),
        text(hardware.and_then(|own| own.hw_rev.as_ref())),
        own.node_guid,
        own.sys_image_guid,
    );
    for port in record.ports.iter().filter(|own| lack(record, own).is_none()) {
        lines(port, "\t", "\t\t", &mut all);
    }
    Some(all)
}

/// What a device of InfiniBand's types is called.
fn kind(node_type: NodeType) -> Option<&'static str> {
    match node_type {
        NodeType::CA => Some("CA"),
        NodeType::SWITCH => Some("Switch"),
        NodeType::ROUTER => Some("Router"),
        _ => None,
    }
}

/// One port of a device, if it has lines.
pub(crate) fn port(record: &DeviceRecord, port: &PortRecord) -> Option<String> {
    let kind = kind(record.device.node_type)?;
    let mut all = String::new();
    if lack(record, port).is_none() {
        lines(port, "", "", &mut all);
    }
    let first = || format!("{kind}: '{}'\n", printable(&record.device.name));
    (!all.is_empty()).then(|| first() + &all)
}

/// Why a port of such a device has no lines, though it was read.
pub(crate) fn lack(record: &DeviceRecord, port: &PortRecord) -> Option<&'static str> {
    kind(record.device.node_type)?;
    let (own, source) = port.attributes.as_ref()?.as_ref().ok()?;
    match port.guid {
        Ok(None) if own.gid_tbl_len == 0 => Some("it has no GID table, and so no GUID"),
        _ if rate(own, *source).is_none() => Some("its rate is not known"),
        _ => None,
    }
}

/// The lines of a port whose attributes and GUID were read.
fn lines(port: &PortRecord, first: &str, other: &str, to: &mut String) {
    let Some(Ok((own, source))) = &port.attributes else { return };
    let Some(rate) = rate(own, *source) else { return };
    // It is zero if the port has no GID at index 0.
    let Ok(guid) = &port.guid else { return };
    let guid = guid.unwrap_or_default();
    let _ = writeln!(to, "{first}Port {}:", port.number);
    for (name, value) in [
        ("State", state(own.state).to_owned()),
        ("Physical state", phys_state(own.phys_state).to_owned()),
        ("Rate", rate),
        ("Base lid", own.lid.to_string()),
        ("LMC", own.lmc.to_string()),
        ("SM lid", own.sm_lid.to_string()),
        ("Capability mask", format!("{:#010x}", own.port_cap_flags)),
        ("Port GUID", guid.to_string()),
        ("Link layer", link_layer(own.link_layer).to_owned()),
    ] {
        let _ = writeln!(to, "{other}{name}: {value}");
    }
}

fn state(state: PortState) -> &'static str {
    match state {
        PortState::DOWN => "Down",
        PortState::INIT => "Initializing",
        PortState::ARMED => "Armed",
        PortState::ACTIVE => "Active",
        _ => "???",
    }
}

fn phys_state(state: PhysState) -> &'static str {
    match state {
        PhysState::NOP => "No state change",
        PhysState::SLEEP => "Sleep",
        PhysState::POLLING => "Polling",
        PhysState::DISABLED => "Disabled",
        PhysState::TRAINING => "PortConfigurationTraining",
        PhysState::LINK_UP => "LinkUp",
        PhysState::RECOVERY => "LinkErrorRecovery",
        PhysState::TEST => "PhyTest",
        _ => "???",
    }
}

/// Whole Gb/s, but for 2.5; none if the kernel or this version does not know the width, or this version the speed. Of a
/// speed that the kernel does not know, as 0 of a port that is down, sysfs says SDR, and so does the tool.
fn rate(own: &PortAttributes, source: Source) -> Option<String> {
    let mut own = own.clone();
    let is_sdr = match own.active_speed {
        None => source == Source::Sysfs && own.link_layer != LinkLayer::ETHERNET,
        Some(speed) => speed == Speed(0),
    };
    if is_sdr {
        own.active_speed = Some(Speed::SDR);
    }
    let rate = match own.rate()?.0 / 10 {
        2 => "2.5".to_owned(),
        whole => whole.to_string(),
    };
    let is_fdr10 = own.active_speed == Some(Speed::FDR10);
    Some(if is_fdr10 { format!("{rate} (FDR10)") } else { rate })
}

fn link_layer(layer: LinkLayer) -> &'static str {
    match layer {
        LinkLayer::ETHERNET => "Ethernet",
        LinkLayer::INFINIBAND => "InfiniBand",
        _ => "Unknown",
    }
}
