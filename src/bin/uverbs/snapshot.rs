//! Snapshots: an [`Inventory`] as one JSON document, to be looked at elsewhere and later.
//!
//! `tests/schemas/snapshot.json` describes the document. Values of the kernel's open sets (states,
//! types, speeds …) are its numbers, so that a newer kernel's survive. A file may come from anyone:
//! its size is bounded, everything in it is checked, and what is refused is named by its place.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use uverbs::device::{Absence, Device, Node, NodeType};
use uverbs::driver::DriverId;
use uverbs::gid::{Gid, GidEntry, GidType};
use uverbs::guid::Guid;
use uverbs::inventory::{
    Answer, DeviceRecord, GidRow, Inventory, PortRecord, Problem, Setting, settings,
};
use uverbs::netdev::{Interface, Netdev};
use uverbs::pkey::PKey;
use uverbs::port::{LinkLayer, Mtu, PhysState, PortAttributes, PortState, Rate, Speed, Width};
use uverbs::reader::{GidRecord, Source};

/// Of the document's form. It grows by keys; this number changes if a key's meaning does.
const SCHEMA_VERSION: u32 = 1;

/// The longest file that is read. A host with 64 ports of 32 GIDs each takes half a megabyte.
const LIMIT: u64 = 16 << 20;

/// The document of a host.
pub(crate) fn write(inventory: &Inventory) -> String {
    let mut document = Map::new();
    document.insert("schema_version".to_owned(), SCHEMA_VERSION.json());
    if let Value::Object(fields) = inventory.json() {
        document.extend(fields);
    }
    let mut text = Value::Object(document).to_string();
    text.push('\n');
    text
}

/// Reads a file's document; `-` is standard input.
pub(crate) fn read(path: &Path) -> Result<Inventory, String> {
    let failed = |error: &dyn fmt::Display| format!("{}: {error}", path.display());
    let mut text = String::new();
    let mut from: Box<dyn Read> = if path.as_os_str() == "-" {
        Box::new(io::stdin().lock())
    } else {
        Box::new(File::open(path).map_err(|error| failed(&error))?)
    };
    let length = from.by_ref().take(LIMIT + 1).read_to_string(&mut text);
    if length.map_err(|error| failed(&error))? as u64 > LIMIT {
        return Err(failed(&format!("longer than {} MiB", LIMIT >> 20)));
    }
    parse(&text).map_err(|error| failed(&error))
}

/// Reads a document.
fn parse(text: &str) -> Result<Inventory, Bad> {
    let document: Value =
        serde_json::from_str(text).map_err(|error| Bad::new(format!("no JSON: {error}")))?;
    let version: u32 = field(object(&document)?, "schema_version")?;
    if version != SCHEMA_VERSION {
        return Err(Bad::new(format!(
            "a snapshot of form {version}; this program reads form {SCHEMA_VERSION}"
        )));
    }
    let inventory = Inventory::parse(&document)?;
    let mut names = BTreeSet::from([""]);
    if !inventory.devices.iter().all(|record| names.insert(&record.device.name)) {
        return Err(Bad::new("a device without a name, or two with one").at("devices"));
    }
    Ok(inventory)
}

/// What is wrong with a document, and where.
#[derive(Debug)]
struct Bad {
    place: String,
    what: String,
}

impl Bad {
    fn new(what: impl Into<String>) -> Self {
        Self { place: String::new(), what: what.into() }
    }

    /// Puts a place before the one that is known.
    fn at(mut self, key: impl fmt::Display) -> Self {
        let rest = if self.place.is_empty() { String::new() } else { format!(".{}", self.place) };
        self.place = format!("{key}{rest}");
        self
    }
}

impl fmt::Display for Bad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.place.is_empty() {
            write!(f, "{}: ", self.place)?;
        }
        f.write_str(&self.what)
    }
}

/// What stands in a document and is read back from it.
trait Json: Sized {
    fn json(&self) -> Value;
    fn parse(value: &Value) -> Result<Self, Bad>;
}

/// An object of these fields.
fn fields<const N: usize>(fields: [(&'static str, Value); N]) -> Value {
    fields_of(&mut fields.into_iter())
}

fn fields_of(fields: &mut dyn Iterator<Item = (&'static str, Value)>) -> Value {
    Value::Object(fields.map(|(key, value)| (key.to_owned(), value)).collect())
}

fn object(value: &Value) -> Result<&Map<String, Value>, Bad> {
    value.as_object().ok_or_else(|| Bad::new("expected an object"))
}

/// A key that is missing is null, which only what may be absent accepts.
fn field<T: Json>(fields: &Map<String, Value>, key: &str) -> Result<T, Bad> {
    T::parse(fields.get(key).unwrap_or(&Value::Null)).map_err(|error| error.at(key))
}

/// Structures whose fields are keys of the same name.
macro_rules! objects {
    ($($type:ty, from $empty:expr, [$($field:ident),+ $(,)?];)+) => {
        $(impl Json for $type {
            fn json(&self) -> Value {
                fields([$((stringify!($field), self.$field.json())),+])
            }

            fn parse(value: &Value) -> Result<Self, Bad> {
                let map = object(value)?;
                let empty = || $empty;
                let mut read: Self = empty();
                $(read.$field = field(map, stringify!($field))?;)+
                Ok(read)
            }
        })+
    };
}

objects! {
    PortAttributes, from PortAttributes::default(), [
        state, phys_state, link_layer, max_mtu, active_mtu, lid, sm_lid, sm_sl, lmc, gid_tbl_len,
        pkey_tbl_len, active_width, active_speed, port_cap_flags, port_cap_flags2, max_msg_sz,
        bad_pkey_cntr, qkey_viol_cntr, max_vl_num, subnet_timeout, init_type_reply, flags,
    ];
    PortRecord, from PortRecord {
        number: 0,
        attributes: Ok((PortAttributes::default(), Source::Sysfs)),
        effective: None,
        guid: Ok(None),
        netdev: None,
        pkeys: None,
    }, [number, attributes, effective, guid, netdev, pkeys];
    Netdev, from Netdev { index: NonZeroU32::MIN, name: String::new() }, [index, name];
    Node, from Node { name: String::new(), path: PathBuf::new(), number: 0 }, [name, path, number];
    Interface, from Interface {
        index: NonZeroU32::MIN,
        name: String::new(),
        is_up: false,
        is_lower_up: false,
        mtu: 0,
        mac: None,
        addresses: Vec::new(),
    }, [index, name, is_up, is_lower_up, mtu, mac, addresses];
    Inventory, from Inventory::default(), [
        host, kernel, modules, shares_namespaces, has_netlink, devices, absences, interfaces,
        settings, problems,
    ];
}

/// Numbers, by themselves or in a type of their own.
macro_rules! numbers {
    ($($type:ident),+; $($wrapper:ident($inner:ty)),+) => {
        $(impl Json for $type {
            fn json(&self) -> Value {
                (*self).into()
            }

            fn parse(value: &Value) -> Result<Self, Bad> {
                let number = value.as_u64().and_then(|number| number.try_into().ok());
                number.ok_or_else(|| Bad::new(concat!("expected a number (", stringify!($type), ")")))
            }
        })+
        $(impl Json for $wrapper {
            fn json(&self) -> Value {
                self.0.json()
            }

            fn parse(value: &Value) -> Result<Self, Bad> {
                <$inner>::parse(value).map(Self)
            }
        })+
    };
}

numbers! {
    u8, u16, u32, u64;
    PortState(u8), PhysState(u8), LinkLayer(u8), Mtu(u8), Width(u8), Speed(u32), Rate(u64),
    PKey(u16), NodeType(u8), DriverId(u32), GidType(u32)
}

/// What is read back as it prints.
macro_rules! texts {
    ($($type:ty),+) => {
        $(impl Json for $type {
            fn json(&self) -> Value {
                self.to_string().into()
            }

            fn parse(value: &Value) -> Result<Self, Bad> {
                let text = value.as_str().ok_or_else(|| Bad::new("expected a text"))?;
                text.parse().map_err(|_| Bad::new(format!("{text:?} does not belong here")))
            }
        })+
    };
}

texts!(String, Guid, IpAddr);

impl Json for bool {
    fn json(&self) -> Value {
        (*self).into()
    }

    fn parse(value: &Value) -> Result<Self, Bad> {
        value.as_bool().ok_or_else(|| Bad::new("expected true or false"))
    }
}

impl Json for () {
    fn json(&self) -> Value {
        true.into()
    }

    fn parse(value: &Value) -> Result<Self, Bad> {
        bool::parse(value).map(|_| ())
    }
}

impl Json for NonZeroU32 {
    fn json(&self) -> Value {
        self.get().into()
    }

    fn parse(value: &Value) -> Result<Self, Bad> {
        Self::new(u32::parse(value)?).ok_or_else(|| Bad::new("0 does not belong here"))
    }
}

impl Json for PathBuf {
    fn json(&self) -> Value {
        self.to_string_lossy().into()
    }

    fn parse(value: &Value) -> Result<Self, Bad> {
        String::parse(value).map(Self::from)
    }
}

impl<T: Json> Json for Option<T> {
    fn json(&self) -> Value {
        self.as_ref().map_or(Value::Null, T::json)
    }

    fn parse(value: &Value) -> Result<Self, Bad> {
        if value.is_null() { Ok(None) } else { T::parse(value).map(Some) }
    }
}

impl<T: Json> Json for Vec<T> {
    fn json(&self) -> Value {
        self.iter().map(T::json).collect()
    }

    fn parse(value: &Value) -> Result<Self, Bad> {
        let items = value.as_array().ok_or_else(|| Bad::new("expected a list"))?;
        let item = |(place, item)| T::parse(item).map_err(|error: Bad| error.at(place));
        items.iter().enumerate().map(item).collect()
    }
}

impl<A: Json, B: Json> Json for (A, B) {
    fn json(&self) -> Value {
        json!([self.0.json(), self.1.json()])
    }

    fn parse(value: &Value) -> Result<Self, Bad> {
        match value.as_array().map(Vec::as_slice) {
            Some([one, other]) => Ok((A::parse(one)?, B::parse(other)?)),
            _ => Err(Bad::new("expected a pair")),
        }
    }
}

/// An answer is itself, a problem an object that no answer looks like.
impl<T: Json> Json for Answer<T> {
    fn json(&self) -> Value {
        self.as_ref().map_or_else(Json::json, T::json)
    }

    fn parse(value: &Value) -> Result<Self, Bad> {
        let is_problem = value.get("error").is_some() && value.get("errno").is_some();
        if is_problem { Problem::parse(value).map(Err) } else { T::parse(value).map(Ok) }
    }
}

impl Json for Problem {
    fn json(&self) -> Value {
        json!({ "error": self.text, "errno": self.errno })
    }

    fn parse(value: &Value) -> Result<Self, Bad> {
        let map = object(value)?;
        let errno = field::<u16>(map, "errno")?.into();
        Ok(Self { text: field(map, "error")?, errno })
    }
}

impl Json for Source {
    fn json(&self) -> Value {
        self.to_string().into()
    }

    fn parse(value: &Value) -> Result<Self, Bad> {
        match value.as_str() {
            Some("ioctl") => Ok(Self::Ioctl),
            Some("sysfs") => Ok(Self::Sysfs),
            _ => Err(Bad::new("expected ioctl or sysfs")),
        }
    }
}

impl Json for [u8; 6] {
    fn json(&self) -> Value {
        let bytes: Vec<String> = self.iter().map(|byte| format!("{byte:02x}")).collect();
        bytes.join(":").into()
    }

    fn parse(value: &Value) -> Result<Self, Bad> {
        let bytes = value.as_str().unwrap_or_default().split(':');
        let bytes: Option<Vec<u8>> = bytes.map(|own| u8::from_str_radix(own, 16).ok()).collect();
        let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
        bytes.ok_or_else(|| Bad::new("expected a MAC address"))
    }
}

impl Json for Setting {
    fn json(&self) -> Value {
        json!({ "name": self.name, "value": self.value, "file": self.file })
    }

    fn parse(value: &Value) -> Result<Self, Bad> {
        let map = object(value)?;
        let name: String = field(map, "name")?;
        if !settings::NAMES.contains(&name.as_str()) {
            return Err(Bad::new("not a variable that chooses GIDs").at("name"));
        }
        Ok(Self { name, value: field(map, "value")?, file: field(map, "file")? })
    }
}

impl Json for Absence {
    fn json(&self) -> Value {
        match self {
            Self::NoModule => json!({ "reason": "no_module" }),
            Self::NoDevice => json!({ "reason": "no_device" }),
            Self::OtherNamespace { device, node } => {
                json!({ "reason": "other_namespace", "device": device, "node": node })
            }
            Self::NoNodes { folder } => {
                json!({ "reason": "no_nodes", "folder": folder.to_string_lossy() })
            }
            newer => json!({ "reason": newer.to_string() }),
        }
    }

    fn parse(value: &Value) -> Result<Self, Bad> {
        let map = object(value)?;
        match field::<String>(map, "reason")?.as_str() {
            "no_module" => Ok(Self::NoModule),
            "no_device" => Ok(Self::NoDevice),
            "other_namespace" => Ok(Self::OtherNamespace {
                device: field(map, "device")?,
                node: field(map, "node")?,
            }),
            "no_nodes" => Ok(Self::NoNodes { folder: field(map, "folder")? }),
            other => Err(Bad::new(format!("{other:?} does not belong here")).at("reason")),
        }
    }
}

impl Json for GidRow {
    fn json(&self) -> Value {
        let entry = &self.record.entry;
        fields([
            ("port", entry.port().json()),
            ("index", entry.index().json()),
            ("gid", entry.gid().to_string().into()),
            ("gid_type", entry.gid_type().0.json()),
            ("ifindex", entry.netdev_ifindex().json()),
            ("sysfs_netdev", self.record.sysfs_netdev.json()),
            ("source", self.record.source.to_string().into()),
            ("netdev", self.netdev.json()),
            ("type_is_hidden", self.type_is_hidden.json()),
        ])
    }

    fn parse(value: &Value) -> Result<Self, Bad> {
        let map = object(value)?;
        let gid = match field::<IpAddr>(map, "gid")? {
            IpAddr::V6(gid) => Gid::from(gid),
            IpAddr::V4(_) => return Err(Bad::new("expected 16 bytes, written as IPv6").at("gid")),
        };
        let entry = GidEntry::new(
            field(map, "port")?,
            field(map, "index")?,
            gid,
            field(map, "gid_type")?,
            field(map, "ifindex")?,
        );
        let record = GidRecord {
            entry,
            source: field(map, "source")?,
            sysfs_netdev: field(map, "sysfs_netdev")?,
        };
        let netdev = field(map, "netdev")?;
        Ok(Self { record, netdev, type_is_hidden: field(map, "type_is_hidden")? })
    }
}

impl Json for DeviceRecord {
    fn json(&self) -> Value {
        let device = &self.device;
        fields([
            ("name", device.name.json()),
            ("index", device.index.json()),
            ("node_type", device.node_type.json()),
            ("node_guid", device.node_guid.json()),
            ("sys_image_guid", device.sys_image_guid.json()),
            ("fw_version", device.fw_version.json()),
            ("protocol", device.protocol.json()),
            ("driver", device.driver.json()),
            ("node", device.node.json()),
            ("node_mode", self.node_mode.json()),
            ("access", self.access.json()),
            ("ports", self.ports.json()),
            ("gids", self.gids.json()),
        ])
    }

    fn parse(value: &Value) -> Result<Self, Bad> {
        let map = object(value)?;
        let mut device = Device::named(field::<String>(map, "name")?);
        device.index = field(map, "index")?;
        device.node_type = field(map, "node_type")?;
        device.node_guid = field(map, "node_guid")?;
        device.sys_image_guid = field(map, "sys_image_guid")?;
        device.fw_version = field(map, "fw_version")?;
        device.protocol = field(map, "protocol")?;
        device.driver = field(map, "driver")?;
        device.node = field(map, "node")?;
        let ports: Vec<PortRecord> = field(map, "ports")?;
        device.port_count = ports.last().map_or(0, |port| port.number);
        if device.port_count as usize > ports.len()
            || !device.ports().eq(ports.iter().map(|port| port.number))
        {
            return Err(Bad::new("port numbers with a gap").at("ports"));
        }
        let mut record = Self::new(device);
        record.node_mode = field(map, "node_mode")?;
        record.access = field(map, "access")?;
        record.gids = field(map, "gids")?;
        let entries = record.gids.iter().flatten().map(|row| &row.record.entry);
        if !entries.is_sorted_by(|a, b| (a.port(), a.index()) < (b.port(), b.index())) {
            return Err(Bad::new("not in order of port and index").at("gids"));
        }
        record.ports = ports;
        Ok(record)
    }
}
