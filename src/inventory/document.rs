//! The serde form of an [`Inventory`]: the keys of a snapshot in their order, and all checks of what is
//! read. `tests/schemas/snapshot.json` describes the document.
//!
//! The structures here have the document's shape. They are made from the records, and records are made
//! from them, with a check where a document can hold what no host has.

mod answer;

use core::num::NonZeroU32;
use std::collections::BTreeSet;

use serde::de::{DeserializeSeed as _, Deserializer, Error as _};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

use super::{DeviceRecord, GidRow, Inventory, PortRecord, Problem, Reading, Setting, settings};
use answer::{Done, Items, Told};

use crate::device::{self, Node, NodeType};
use crate::driver::DriverId;
use crate::form::{self, List, Optional, Text};
use crate::gid::{Gid, GidEntry, GidRecord, GidType, Source};
use crate::guid::Guid;
use crate::netdev::{Interface, Netdev};
use crate::pkey::PKey;
use crate::port::{PortAttributes, Rate};

/// The form that this version writes and reads. It grows by keys; this number changes if a key's meaning
/// does.
pub(super) const FORM: u32 = 1;

/// The longest text of an error: it may name a path.
const LONGEST_ERROR: usize = 16 << 10;

/// The longest value of a variable, which is as much as the kernel hands to a program.
const LONGEST_VALUE: usize = 128 << 10;

/// A type is written as a structure of this module, and read as one.
macro_rules! forms {
    ($($type:ident as $form:ident;)+) => {
        $(impl Serialize for $type {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                $form::from(self.clone()).serialize(to)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                form::object::<D, $form, Self>(from)
            }
        })+
    };
}

forms! {
    Inventory as Document;
    DeviceRecord as Device;
    PortRecord as Port;
    GidRow as Row;
    Setting as Variable;
    Problem as Fault;
}

#[derive(Serialize, Deserialize)]
struct Document {
    schema_version: Form,
    #[serde(default, deserialize_with = "form::plain")]
    host: Option<String>,
    #[serde(default, deserialize_with = "form::plain")]
    kernel: Option<String>,
    #[serde(deserialize_with = "form::plain")]
    modules: Vec<String>,
    shares_namespaces: Option<bool>,
    has_netlink: bool,
    #[serde(deserialize_with = "devices")]
    devices: Vec<DeviceRecord>,
    #[serde(deserialize_with = "form::list")]
    absences: Vec<Absence>,
    #[serde(default, deserialize_with = "interfaces")]
    interfaces: Option<Vec<Interface>>,
    #[serde(deserialize_with = "form::list")]
    settings: Vec<Setting>,
    #[serde(deserialize_with = "form::list")]
    problems: Vec<Problem>,
    #[serde(default, deserialize_with = "form::list")]
    unlisted: Vec<Unlisted>,
    without_netlink: Option<Problem>,
}

/// A device that could not be listed.
#[derive(Serialize, Deserialize)]
struct Unlisted {
    #[serde(deserialize_with = "form::plain")]
    device: String,
    problem: Problem,
}

/// The number of the form.
struct Form;

impl Serialize for Form {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u32(FORM)
    }
}

impl<'de> Deserialize<'de> for Form {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match u32::deserialize(from)? {
            FORM => Ok(Self),
            other => Err(D::Error::custom(other_form(other))),
        }
    }
}

/// Says that a document is of another form.
pub(super) fn other_form(number: u32) -> String {
    format!("a snapshot of form {number}; this program reads form {FORM}")
}

fn devices<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<DeviceRecord>, D::Error> {
    let check = |list: &[DeviceRecord]| {
        let mut names = BTreeSet::new();
        let mut all = list.iter().map(|record| record.device.name.as_str());
        all.all(|name| names.insert(name)).then_some(()).ok_or("two devices with one name")
    };
    List { check, ..List::default() }.deserialize(from)
}

fn interfaces<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<Interface>>, D::Error> {
    let check = |list: &[Interface]| {
        let is_sorted = list.is_sorted_by(|one, other| one.index < other.index);
        is_sorted.then_some(()).ok_or("not in order of index")
    };
    Optional(List { check, ..List::default() }).deserialize(from)
}

impl From<Inventory> for Document {
    fn from(own: Inventory) -> Self {
        let unlisted = own.unlisted.into_iter();
        Self {
            schema_version: Form,
            host: own.host,
            kernel: own.kernel,
            modules: own.modules,
            shares_namespaces: own.shares_namespaces,
            has_netlink: own.has_netlink,
            devices: own.devices,
            absences: own.absences.into_iter().map(Absence::from).collect(),
            interfaces: own.interfaces,
            settings: own.settings,
            problems: own.problems,
            unlisted: unlisted.map(|(device, problem)| Unlisted { device, problem }).collect(),
            without_netlink: own.without_netlink,
        }
    }
}

impl TryFrom<Document> for Inventory {
    type Error = String;

    fn try_from(own: Document) -> Result<Self, String> {
        let absences = own.absences.into_iter().enumerate().map(|(place, absence)| {
            let absence = device::Absence::try_from(absence);
            absence.map_err(|what| format!(".absences.{place}.{what}"))
        });
        Ok(Self {
            host: own.host,
            kernel: own.kernel,
            modules: own.modules,
            shares_namespaces: own.shares_namespaces,
            has_netlink: own.has_netlink,
            devices: own.devices,
            absences: absences.collect::<Result<_, String>>()?,
            interfaces: own.interfaces,
            settings: own.settings,
            problems: own.problems,
            unlisted: own.unlisted.into_iter().map(|own| (own.device, own.problem)).collect(),
            without_netlink: own.without_netlink,
            ..Self::default()
        })
    }
}

#[derive(Serialize, Deserialize)]
struct Device {
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
    place: Option<u32>,
    node_mode: Option<u32>,
    access: Option<Told<Done>>,
    #[serde(deserialize_with = "form::list")]
    ports: Vec<PortRecord>,
    gids: Option<Told<Items<GidRow>>>,
}

impl From<DeviceRecord> for Device {
    fn from(own: DeviceRecord) -> Self {
        let device = own.device;
        Self {
            name: device.name,
            index: device.index,
            node_type: device.node_type,
            node_guid: device.node_guid,
            sys_image_guid: device.sys_image_guid,
            fw_version: device.fw_version,
            protocol: device.protocol,
            driver: device.driver,
            node: device.node,
            place: own.place,
            node_mode: own.node_mode,
            access: own.access.map(|own| Told(own.map(|()| Done))),
            ports: own.ports,
            gids: own.gids.map(|own| Told(own.map(Items))),
        }
    }
}

impl TryFrom<Device> for DeviceRecord {
    type Error = &'static str;

    fn try_from(own: Device) -> Result<Self, &'static str> {
        let mut device = device::Device::named(own.name);
        device.index = own.index;
        device.node_type = own.node_type;
        device.node_guid = own.node_guid;
        device.sys_image_guid = own.sys_image_guid;
        device.fw_version = own.fw_version;
        device.protocol = own.protocol;
        device.driver = own.driver;
        device.node = own.node;
        device.port_count = own.ports.last().map_or(0, |port| port.number);
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
            access: own.access.map(|Told(own)| own.map(|Done| ())),
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

#[derive(Serialize, Deserialize)]
struct Port {
    number: u32,
    attributes: Option<Told<(PortAttributes, Source)>>,
    effective: Option<Told<Rate>>,
    guid: Option<Told<Guid>>,
    netdev: Option<Netdev>,
    pkeys: Option<Told<Items<(u32, PKey)>>>,
    has_types: Option<bool>,
}

impl From<PortRecord> for Port {
    fn from(own: PortRecord) -> Self {
        Self {
            number: own.number,
            attributes: own.attributes.map(Told),
            effective: own.effective.map(Told),
            guid: own.guid.transpose().map(Told),
            netdev: own.netdev,
            pkeys: own.pkeys.map(|own| Told(own.map(Items))),
            has_types: own.has_types,
        }
    }
}

impl TryFrom<Port> for PortRecord {
    type Error = &'static str;

    fn try_from(own: Port) -> Result<Self, &'static str> {
        let Told(attributes) = own.attributes.ok_or(".attributes: expected a pair")?;
        Ok(Self {
            number: own.number,
            attributes: Some(attributes),
            effective: own.effective.map(|Told(own)| own),
            guid: own.guid.map(|Told(own)| own).transpose(),
            netdev: own.netdev,
            pkeys: own.pkeys.map(|Told(own)| own.map(|Items(keys)| keys)),
            has_types: own.has_types,
        })
    }
}

#[derive(Serialize, Deserialize)]
struct Row {
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

impl From<GidRow> for Row {
    fn from(own: GidRow) -> Self {
        let GidRow { record, netdev, netdev_is_elsewhere, type_is_hidden } = own;
        Self {
            port: record.entry.port(),
            index: record.entry.index(),
            gid: record.entry.gid(),
            gid_type: record.entry.gid_type(),
            ifindex: record.entry.netdev_ifindex(),
            sysfs_netdev: record.sysfs_netdev,
            netdev_is_unread: record.netdev_is_unread,
            source: record.source,
            netdev,
            netdev_is_elsewhere,
            type_is_hidden,
        }
    }
}

impl From<Row> for GidRow {
    fn from(own: Row) -> Self {
        let entry = GidEntry::new(own.port, own.index, own.gid)
            .with_type(own.gid_type)
            .with_netdev_ifindex(own.ifindex);
        let record = GidRecord::new(entry, own.source)
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

#[derive(Serialize, Deserialize)]
struct Absence {
    #[serde(deserialize_with = "form::plain")]
    reason: String,
    #[serde(
        default,
        deserialize_with = "form::device_name",
        skip_serializing_if = "Option::is_none"
    )]
    device: Option<String>,
    #[serde(default, deserialize_with = "form::plain", skip_serializing_if = "Option::is_none")]
    node: Option<String>,
    #[serde(default, deserialize_with = "form::plain", skip_serializing_if = "Option::is_none")]
    folder: Option<String>,
}

impl From<device::Absence> for Absence {
    fn from(own: device::Absence) -> Self {
        let of = |reason: &str| Self {
            reason: reason.to_owned(),
            device: None,
            node: None,
            folder: None,
        };
        match own {
            device::Absence::NoModule => of("no_module"),
            device::Absence::NoDevice => of("no_device"),
            device::Absence::OtherNamespace { device, node } => {
                Self { device: Some(device), node: Some(node), ..of("other_namespace") }
            }
            device::Absence::NoNodes { folder } => {
                Self { folder: Some(folder.display().to_string()), ..of("no_nodes") }
            }
        }
    }
}

impl TryFrom<Absence> for device::Absence {
    type Error = &'static str;

    fn try_from(own: Absence) -> Result<Self, &'static str> {
        match own.reason.as_str() {
            "no_module" => Ok(Self::NoModule),
            "no_device" => Ok(Self::NoDevice),
            "other_namespace" => Ok(Self::OtherNamespace {
                device: own.device.ok_or("device: expected a text")?,
                node: own.node.ok_or("node: expected a text")?,
            }),
            "no_nodes" => {
                let folder = own.folder.ok_or("folder: expected a text")?.into();
                Ok(Self::NoNodes { folder })
            }
            _ => Err("reason: it is not known to this version"),
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Variable {
    name: String,
    #[serde(deserialize_with = "value")]
    value: String,
    #[serde(default, deserialize_with = "form::plain")]
    file: Option<String>,
    since: Option<String>,
    before: Option<String>,
}

/// Any text that the environment can hold.
fn value<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Text(|value| value.len() <= LONGEST_VALUE && !value.contains('\0')).deserialize(from)
}

impl From<Setting> for Variable {
    fn from(own: Setting) -> Self {
        let after = Reading::ALL.into_iter().find(|reading| reading > own.readings.end());
        Self {
            since: own.readings.start().since().map(str::to_owned),
            before: after.and_then(Reading::since).map(str::to_owned),
            name: own.name,
            value: own.value,
            file: own.file,
        }
    }
}

/// Of variables only those that choose GIDs are accepted.
impl TryFrom<Variable> for Setting {
    type Error = &'static str;

    fn try_from(own: Variable) -> Result<Self, &'static str> {
        if !settings::NAMES.contains(&own.name.as_str()) {
            return Err(".name: not a variable that chooses GIDs");
        }
        let place = |version: &str| {
            Reading::ALL.into_iter().position(|reading| reading.since() == Some(version))
        };
        let first = own.since.map_or(Some(0), |own| place(&own));
        let end = own.before.map_or(Some(Reading::ALL.len()), |own| place(&own));
        let first = first.ok_or(".since: no release from which files are read in another way")?;
        let end = end.ok_or(".before: no release from which files are read in another way")?;
        let seen = Reading::ALL.get(first..end).unwrap_or_default();
        let (Some(first), Some(last)) = (seen.first(), seen.last()) else {
            return Err(".before: no release before it");
        };
        Ok(Self { name: own.name, value: own.value, file: own.file, readings: *first..=*last })
    }
}

/// A problem.
#[derive(Serialize, Deserialize)]
struct Fault {
    error: String,
    errno: i32,
}

impl From<Problem> for Fault {
    fn from(own: Problem) -> Self {
        Self { error: own.text, errno: own.errno }
    }
}

impl TryFrom<Fault> for Problem {
    type Error = String;

    fn try_from(own: Fault) -> Result<Self, String> {
        if own.error.len() > LONGEST_ERROR {
            return Err(format!(".error: a text of more than {LONGEST_ERROR} bytes"));
        }
        if u16::try_from(own.errno).is_err() {
            return Err(format!(".errno: expected a number, at most {}", u16::MAX));
        }
        Ok(Self { text: own.error, errno: own.errno })
    }
}
