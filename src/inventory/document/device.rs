//! Devices, ports and rows in a document.

use core::num::NonZeroU32;

use serde::{Deserialize, Serialize};
use uverbs_uapi::device as abi;

use super::answer::{Done, Items, Told};
use crate::device::{Device, Identity, Node, NodeType};
use crate::driver::DriverId;
use crate::form;
use crate::gid::{Gid, GidRecord, GidType, Source};
use crate::guid::Guid;
use crate::hardware::Hardware;
use crate::inventory::{DeviceRecord, GidRow, PortRecord, Problem};
use crate::netdev::Netdev;
use crate::pkey::PKey;
use crate::port::{PortAttributes, Rate};

#[derive(Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "keys of the JSON")]
pub(super) struct DeviceForm {
    #[serde(deserialize_with = "form::device_name")]
    name: String,
    index: Option<u32>,
    node_type: NodeType,
    node_guid: Guid,
    sys_image_guid: Guid,
    #[serde(default, deserialize_with = "form::plain")]
    fw_version: Option<String>,
    #[serde(default, deserialize_with = "form::plain")]
    protocol: Option<String>,
    driver: Option<DriverId>,
    node: Option<Node>,
    /// Older snapshots do not say it.
    #[serde(default)]
    node_is_unread: bool,
    place: Option<u32>,
    node_mode: Option<u32>,
    /// Older snapshots do not say it.
    #[serde(default)]
    node_is_missing: bool,
    /// Only where it is so.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    node_is_in_nodev: bool,
    /// Only where it is so.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    node_is_read_only: bool,
    access: Option<Told<Done>>,
    /// Older snapshots do not say it.
    hardware: Option<Hardware>,
    #[serde(deserialize_with = "form::list")]
    ports: Vec<PortRecord>,
    gids: Option<Told<Items<GidRow>>>,
}

impl From<DeviceRecord> for DeviceForm {
    fn from(own: DeviceRecord) -> Self {
        let DeviceRecord {
            device,
            place,
            node_mode,
            node_is_missing,
            node_is_in_nodev,
            node_is_read_only,
            access,
            hardware,
            ports,
            gids,
        } = own;
        let Device {
            name,
            index,
            node_type,
            node_guid,
            sys_image_guid,
            fw_version,
            protocol,
            // It is the number of the last port.
            port_count: _,
            driver,
            node,
            node_is_unread,
            identity: _,
        } = device;
        Self {
            name,
            index,
            node_type,
            node_guid,
            sys_image_guid,
            fw_version,
            protocol,
            driver,
            node,
            node_is_unread,
            place,
            node_mode,
            node_is_missing,
            node_is_in_nodev,
            node_is_read_only,
            access: access.map(|own| Told(own.map(|()| Done))),
            hardware,
            ports,
            gids: gids.map(|own| Told(own.map(Items))),
        }
    }
}

impl TryFrom<DeviceForm> for DeviceRecord {
    type Error = &'static str;

    fn try_from(own: DeviceForm) -> Result<Self, &'static str> {
        let device = Device {
            name: own.name,
            index: own.index,
            node_type: own.node_type,
            node_guid: own.node_guid,
            sys_image_guid: own.sys_image_guid,
            fw_version: own.fw_version,
            protocol: own.protocol,
            port_count: own.ports.last().map_or(0, |port| port.number),
            driver: own.driver,
            node: own.node,
            node_is_unread: own.node_is_unread,
            identity: Identity::default(),
        };
        if device.port_count as usize > own.ports.len()
            || !device.ports().eq(own.ports.iter().map(|port| port.number))
        {
            return Err(".ports: port numbers with a gap");
        }
        let Told(gids) = own.gids.ok_or(".gids: expected a list")?;
        let record = Self {
            device,
            place: own.place,
            node_mode: own.node_mode,
            node_is_missing: own.node_is_missing,
            node_is_in_nodev: own.node_is_in_nodev,
            node_is_read_only: own.node_is_read_only,
            access: own.access.map(|Told(own)| own.map(|Done| ())),
            hardware: own.hardware.map(Hardware::doubting_node),
            ports: own.ports,
            gids: Some(gids.map(|Items(rows)| rows)),
        };
        let entries = record.all_rows().iter().map(|row| &row.record.entry);
        if !entries.is_sorted_by(|a, b| (a.port(), a.index()) < (b.port(), b.index())) {
            return Err(".gids: not in order of port and index");
        }
        let mut numbers = record.all_rows().iter().map(|row| row.record.entry.port());
        if !numbers.all(|port| record.device.ports().contains(&port)) {
            return Err(".gids: a row of a port that the device does not have");
        }
        Ok(record)
    }
}

/// A device of which nothing but its listing is known.
#[derive(Serialize, Deserialize)]
#[serde(expecting = "an object")]
pub(super) struct OtherForm {
    #[serde(deserialize_with = "form::device_name")]
    name: String,
    index: Option<u32>,
    node_type: NodeType,
    node_guid: Guid,
    sys_image_guid: Guid,
    #[serde(default, deserialize_with = "form::plain")]
    fw_version: Option<String>,
    #[serde(default, deserialize_with = "form::plain")]
    protocol: Option<String>,
    port_count: u32,
    driver: Option<DriverId>,
    node: Option<Node>,
    node_is_unread: bool,
}

impl From<Device> for OtherForm {
    fn from(own: Device) -> Self {
        let Device {
            name,
            index,
            node_type,
            node_guid,
            sys_image_guid,
            fw_version,
            protocol,
            port_count,
            driver,
            node,
            node_is_unread,
            identity: _,
        } = own;
        Self {
            name,
            index,
            node_type,
            node_guid,
            sys_image_guid,
            fw_version,
            protocol,
            port_count,
            driver,
            node,
            node_is_unread,
        }
    }
}

impl From<OtherForm> for Device {
    fn from(own: OtherForm) -> Self {
        Self {
            name: own.name,
            index: own.index,
            node_type: own.node_type,
            node_guid: own.node_guid,
            sys_image_guid: own.sys_image_guid,
            fw_version: own.fw_version,
            protocol: own.protocol,
            port_count: own.port_count,
            driver: own.driver,
            node: own.node,
            node_is_unread: own.node_is_unread,
            identity: Identity::default(),
        }
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct PortForm {
    number: u32,
    attributes: Option<Told<(PortAttributes, Source)>>,
    effective: Option<Told<Rate>>,
    guid: Option<Told<Guid>>,
    netdev: Option<Netdev>,
    /// Why it is not known; older snapshots do not say it.
    #[serde(skip_serializing_if = "Option::is_none")]
    netdev_problem: Option<Problem>,
    pkeys: Option<Told<Items<(u32, PKey)>>>,
    has_types: Option<bool>,
}

impl From<PortRecord> for PortForm {
    fn from(own: PortRecord) -> Self {
        // Both are objects.
        let (netdev, netdev_problem) = match own.netdev {
            Ok(netdev) => (netdev, None),
            Err(problem) => (None, Some(problem)),
        };
        Self {
            number: own.number,
            attributes: own.attributes.map(Told),
            effective: own.effective.map(Told),
            guid: own.guid.transpose().map(Told),
            netdev,
            netdev_problem,
            pkeys: own.pkeys.map(|own| Told(own.map(Items))),
            has_types: own.has_types,
        }
    }
}

impl TryFrom<PortForm> for PortRecord {
    type Error = &'static str;

    fn try_from(own: PortForm) -> Result<Self, &'static str> {
        let Told(attributes) = own.attributes.ok_or(".attributes: expected a pair")?;
        Ok(Self {
            number: own.number,
            attributes: Some(attributes),
            effective: own.effective.map(|Told(own)| own),
            guid: own.guid.map(|Told(own)| own).transpose(),
            netdev: own.netdev_problem.map_or(Ok(own.netdev), Err),
            pkeys: own.pkeys.map(|Told(own)| own.map(|Items(keys)| keys)),
            has_types: own.has_types,
        })
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct RowForm {
    port: u32,
    index: u32,
    gid: Gid,
    gid_type: GidType,
    ifindex: Option<NonZeroU32>,
    #[serde(default, deserialize_with = "form::interface_name")]
    sysfs_netdev: Option<String>,
    /// Older snapshots do not say it.
    #[serde(default)]
    netdev_is_unread: bool,
    source: Source,
    netdev: Option<Netdev>,
    /// Older snapshots do not say it.
    #[serde(default)]
    netdev_is_elsewhere: bool,
    type_is_hidden: bool,
}

impl From<GidRow> for RowForm {
    fn from(own: GidRow) -> Self {
        let GidRow { record, netdev, netdev_is_elsewhere, type_is_hidden } = own;
        // The kernel's structure, so that a field that it gains is missed here.
        let abi::GidEntry { gid, gid_index, port_num, gid_type, netdev_ifindex } =
            record.entry.into();
        Self {
            port: port_num,
            index: gid_index,
            gid: Gid::from_bytes(gid),
            gid_type: GidType(gid_type),
            ifindex: NonZeroU32::new(netdev_ifindex),
            sysfs_netdev: record.sysfs_netdev,
            netdev_is_unread: record.netdev_is_unread,
            source: record.source,
            netdev,
            netdev_is_elsewhere,
            type_is_hidden,
        }
    }
}

impl From<RowForm> for GidRow {
    fn from(own: RowForm) -> Self {
        let entry = abi::GidEntry {
            gid: own.gid.to_bytes(),
            gid_index: own.index,
            port_num: own.port,
            gid_type: own.gid_type.0,
            netdev_ifindex: own.ifindex.map_or(0, NonZeroU32::get),
        };
        let record = GidRecord::new(entry.into(), own.source)
            .with_sysfs_netdev(own.sysfs_netdev)
            .with_netdev_unread(own.netdev_is_unread)
            .with_type_unread(own.type_is_hidden && own.gid_type == GidType::UNNAMED);
        Self {
            record,
            netdev: own.netdev,
            netdev_is_elsewhere: own.netdev_is_elsewhere,
            type_is_hidden: own.type_is_hidden,
        }
    }
}
