//! Snapshots: an [`Inventory`] as one JSON document, to be looked at elsewhere and later.
//!
//! `tests/schemas/snapshot.json` describes the document. Values of the kernel's open sets (states,
//! types, speeds …) are its numbers, so that a newer kernel's survive. A file may come from anyone:
//! its size is bounded, everything in it is checked, and what is refused is named by its place.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU32;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use uverbs::device::{Absence, Device, Node, NodeType};
use uverbs::driver::DriverId;
use uverbs::gid::{Gid, GidEntry, GidType};
use uverbs::guid::Guid;
use uverbs::host::{GidRecord, Source};
use uverbs::inventory::{
    Answer, DeviceRecord, GidRow, Inventory, PortRecord, Problem, Reading, Setting, Wanted,
    is_device_name, is_interface_name, is_plain, settings,
};
use uverbs::netdev::{Interface, Netdev};
use uverbs::pkey::PKey;
use uverbs::port::{LinkLayer, Mtu, PhysState, PortAttributes, PortState, Rate, Speed, Width};

use crate::args::{Common, SnapshotArgs};
use crate::hosts::live;
use crate::output::{self, plain_json};
use crate::report::{EINVAL, Report};

/// Of the document's form. It grows by keys; this number changes if a key's meaning does.
const SCHEMA_VERSION: u32 = 1;

/// The longest file that is read. A host with 64 ports of 32 GIDs each takes half a megabyte.
const LIMIT: u64 = 16 << 20;

/// The most that is read of all files together.
pub(crate) const ROOM: u64 = 1 << 30;

/// The longest list in a document.
const LONGEST_LIST: usize = 100_000;

/// The longest text: an error's sentence may name a path.
const LONGEST_TEXT: usize = 16 << 10;

/// The longest value of a variable, which is as much as the kernel hands to a program.
const LONGEST_VALUE: usize = 128 << 10;

pub(crate) fn answer(common: &Common, args: &SnapshotArgs, report: &mut Report) -> output::Answer {
    let wanted = Wanted::default().preference(args.source.preference(common));
    let text = write(&live(common, &wanted));
    if !is_readable(&text) {
        report.nothing("--from will not read this: it is longer than any host's should be");
    }
    output::Answer::Text(text)
}

/// The document of a host.
fn write(inventory: &Inventory) -> String {
    let mut document = Map::new();
    document.insert("schema_version".to_owned(), SCHEMA_VERSION.json());
    if let Value::Object(fields) = inventory.json() {
        document.extend(fields);
    }
    if let Some(Value::Array(problems)) = document.get_mut("problems") {
        problems.extend(inventory.unlisted.iter().map(|(_, problem)| problem.json()));
    }
    let mut text = plain_json(&Value::Object(document).to_string()).into_owned();
    text.push('\n');
    text
}

/// Whether a document is short enough to be read again.
fn is_readable(text: &str) -> bool {
    text.len() as u64 <= LIMIT
}

/// Reads a file's document; `-` is standard input. `room` is how much all files may still have.
pub(crate) fn read(path: &Path, room: &mut u64) -> Result<Inventory, Problem> {
    let failed = |error: &dyn fmt::Display, errno: i32| {
        let text = format!("{}: {error}", path.display());
        Problem { text, errno }
    };
    let mut text = String::new();
    let from = if path.as_os_str() == "-" {
        io::stdin().as_fd().try_clone_to_owned().map(File::from)
    } else {
        File::open(path)
    };
    let length = from.and_then(|file| file.take(LIMIT + 1).read_to_string(&mut text));
    let length = length.map_err(|error| failed(&error, error.raw_os_error().unwrap_or(EINVAL)))?;
    let length = length as u64;
    if length > LIMIT {
        return Err(failed(&format!("longer than {} MiB", LIMIT >> 20), EFBIG));
    }
    *room = room.checked_sub(length).ok_or_else(|| {
        failed(&format!("all files together are longer than {} GiB", ROOM >> 30), EFBIG)
    })?;
    parse(&text).map_err(|error| failed(&error, EINVAL))
}

/// The errno of a file that is too large.
const EFBIG: i32 = 27;

/// Reads a document.
fn parse(text: &str) -> Result<Inventory, Bad> {
    let document: Value =
        serde_json::from_str(text).map_err(|error| Bad::new(format!("no JSON: {error}")))?;
    object(&document)?;
    let version: u32 = field(&document, "schema_version")?;
    if version != SCHEMA_VERSION {
        return Err(Bad::new(format!(
            "a snapshot of form {version}; this program reads form {SCHEMA_VERSION}"
        )));
    }
    let inventory = Inventory::parse(&document)?;
    let mut names = BTreeSet::new();
    if !inventory.devices.iter().all(|record| names.insert(&record.device.name)) {
        return Err(Bad::new("two devices with one name").at("devices"));
    }
    let interfaces = inventory.interfaces.as_deref().unwrap_or_default();
    if !interfaces.is_sorted_by(|one, other| one.index < other.index) {
        return Err(Bad::new("not in order of index").at("interfaces"));
    }
    check_texts(&inventory)?;
    Ok(inventory)
}

/// Refuses names that nothing can have, and texts that do not show as what they are.
fn check_texts(inventory: &Inventory) -> Result<(), Bad> {
    let Inventory { host, kernel, modules, absences, settings, devices, interfaces, .. } =
        inventory;
    refuse_odd("host", host.as_deref(), is_plain)?;
    refuse_odd("kernel", kernel.as_deref(), is_plain)?;
    for (place, module) in modules.iter().enumerate() {
        refuse_odd(&format!("modules.{place}"), Some(module), is_plain)?;
    }
    for (place, record) in devices.iter().enumerate() {
        check_device(record).map_err(|bad| bad.at(place).at("devices"))?;
    }
    for (place, interface) in interfaces.iter().flatten().enumerate() {
        let bad = refuse_odd("name", Some(&interface.name), is_interface_name);
        bad.map_err(|bad| bad.at(place).at("interfaces"))?;
    }
    for (place, absence) in absences.iter().enumerate() {
        let bad = match absence {
            Absence::OtherNamespace { device, node } => refuse_odd(
                "device",
                Some(device),
                is_device_name,
            )
            .and(refuse_odd("node", Some(node), is_plain)),
            Absence::NoNodes { folder } => refuse_odd("folder", folder.to_str(), is_plain),
            _ => Ok(()),
        };
        bad.map_err(|bad| bad.at(place).at("absences"))?;
    }
    for (place, setting) in settings.iter().enumerate() {
        // A value may be any text that the environment can hold.
        let is_value = |value: &str| value.len() <= LONGEST_VALUE && !value.contains('\0');
        refuse_odd("value", Some(&setting.value), is_value)
            .and(refuse_odd("file", setting.file.as_deref(), is_plain))
            .map_err(|bad| bad.at(place).at("settings"))?;
    }
    Ok(())
}

fn check_device(record: &DeviceRecord) -> Result<(), Bad> {
    let device = &record.device;
    refuse_odd("name", Some(&device.name), is_device_name)?;
    refuse_odd("fw_version", device.fw_version.as_deref(), is_plain)?;
    refuse_odd("protocol", device.protocol.as_deref(), is_plain)?;
    if let Some(node) = &device.node {
        refuse_odd("name", Some(&node.name), is_plain)
            .and(refuse_odd("path", node.path.to_str(), is_plain))
            .map_err(|bad| bad.at("node"))?;
    }
    for (place, port) in record.ports.iter().enumerate() {
        let name = port.netdev.as_ref().map(|netdev| netdev.name.as_str());
        refuse_odd("netdev.name", name, is_interface_name)
            .map_err(|bad| bad.at(place).at("ports"))?;
    }
    for (place, row) in record.all_rows().iter().enumerate() {
        let name = row.netdev.as_ref().map(|netdev| netdev.name.as_str());
        refuse_odd("netdev.name", name, is_interface_name)
            .and(refuse_odd("sysfs_netdev", row.record.sysfs_netdev.as_deref(), is_interface_name))
            .map_err(|bad| bad.at(place).at("gids"))?;
    }
    Ok(())
}

fn refuse_odd(key: &str, text: Option<&str>, is_good: impl Fn(&str) -> bool) -> Result<(), Bad> {
    match text {
        Some(text) if !is_good(text) => Err(misplaced(text).at(key)),
        _ => Ok(()),
    }
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

/// What stands in a document and is read back from it. Structures are lists of such fields, which is
/// far less code than a reader and a writer for each.
trait Json {
    fn json(&self) -> Value;
    fn read(&mut self, value: &Value) -> Result<(), Bad>;
}

/// What is made empty before it is read.
trait Parse: Json + Sized {
    fn empty() -> Self;

    fn parse(value: &Value) -> Result<Self, Bad> {
        let mut read = Self::empty();
        read.read(value)?;
        Ok(read)
    }
}

/// An object of these fields.
fn write_fields(fields: &[(&'static str, &dyn Json)]) -> Value {
    Value::Object(fields.iter().map(|(key, field)| ((*key).to_owned(), field.json())).collect())
}

/// Reads an object's fields. A key that is missing is null, which only what may be absent accepts.
fn read_fields(value: &Value, fields: &mut [(&'static str, &mut dyn Json)]) -> Result<(), Bad> {
    let object = object(value)?;
    for (key, field) in fields {
        let value = object.get(*key).unwrap_or(&Value::Null);
        field.read(value).map_err(|error| error.at(*key))?;
    }
    Ok(())
}

fn object(value: &Value) -> Result<&Map<String, Value>, Bad> {
    value.as_object().ok_or_else(|| Bad::new("expected an object"))
}

fn field<T: Parse>(value: &Value, key: &str) -> Result<T, Bad> {
    T::parse(value.get(key).unwrap_or(&Value::Null)).map_err(|error| error.at(key))
}

/// Structures whose fields are keys of the same name.
macro_rules! objects {
    ($($type:ty, from $empty:expr, [$($field:ident),+ $(,)?];)+) => {
        $(impl Json for $type {
            fn json(&self) -> Value {
                write_fields(&[$((stringify!($field), &self.$field)),+])
            }

            fn read(&mut self, value: &Value) -> Result<(), Bad> {
                read_fields(value, &mut [$((stringify!($field), &mut self.$field)),+])
            }
        }

        impl Parse for $type {
            fn empty() -> Self {
                $empty
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
        attributes: Some(Ok((PortAttributes::default(), Source::Sysfs))),
        effective: None,
        guid: Ok(None),
        netdev: None,
        pkeys: None,
        has_types: None,
    }, [number, attributes, effective, guid, netdev, pkeys, has_types];
    Netdev, from Netdev::new(NonZeroU32::MIN, ""), [index, name];
    Node, from Node::new("", "", 0), [name, path, number];
    Interface, from Interface::new(NonZeroU32::MIN, ""),
        [index, name, is_up, is_lower_up, mtu, mac, addresses];
    FlatRow, from FlatRow {
        port: 0,
        index: 0,
        gid: Gid::default(),
        gid_type: GidType::IB,
        ifindex: None,
        sysfs_netdev: None,
        netdev_is_unread: None,
        source: Source::Sysfs,
        netdev: None,
        type_is_hidden: false,
    }, [
        port, index, gid, gid_type, ifindex, sysfs_netdev, netdev_is_unread, source, netdev,
        type_is_hidden,
    ];
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

            fn read(&mut self, value: &Value) -> Result<(), Bad> {
                *self = number(value, Self::MAX.into())?.try_into().unwrap_or(Self::MAX);
                Ok(())
            }
        }

        impl Parse for $type {
            fn empty() -> Self {
                0
            }
        })+
        $(impl Json for $wrapper {
            fn json(&self) -> Value {
                self.0.into()
            }

            fn read(&mut self, value: &Value) -> Result<(), Bad> {
                self.0.read(value)
            }
        }

        impl Parse for $wrapper {
            fn empty() -> Self {
                Self(<$inner>::MIN)
            }
        })+
    };
}

fn number(value: &Value, greatest: u64) -> Result<u64, Bad> {
    let number = value.as_u64().filter(|number| *number <= greatest);
    number.ok_or_else(|| Bad::new(format!("expected a number, at most {greatest}")))
}

numbers! {
    u8, u16, u32, u64;
    PortState(u8), PhysState(u8), LinkLayer(u8), Mtu(u8), Width(u8), Speed(u32), Rate(u64),
    PKey(u16), NodeType(u8), DriverId(u32), GidType(u32)
}

/// What is read back as it prints.
macro_rules! texts {
    ($($type:ty, from $empty:expr;)+) => {
        $(impl Json for $type {
            fn json(&self) -> Value {
                self.to_string().into()
            }

            fn read(&mut self, value: &Value) -> Result<(), Bad> {
                let text = value.as_str().ok_or_else(|| Bad::new("expected a text"))?;
                *self = text.parse().map_err(|_| misplaced(text))?;
                Ok(())
            }
        }

        impl Parse for $type {
            fn empty() -> Self {
                $empty
            }
        })+
    };
}

texts! {
    String, from String::new();
    Guid, from Guid::default();
    IpAddr, from Ipv6Addr::UNSPECIFIED.into();
}

fn misplaced(text: &str) -> Bad {
    /// So much of it says what it is.
    const SHOWN: usize = 60;
    let shown: String = text.chars().take(SHOWN).collect();
    let more = if shown.len() < text.len() { "…" } else { "" };
    Bad::new(format!("{shown:?}{more} does not belong here"))
}

/// What is written and read in a way of its own.
macro_rules! others {
    ($($type:ty, from $empty:expr, |$own:ident| $write:expr, |$value:ident| $read:expr;)+) => {
        $(impl Json for $type {
            fn json(&self) -> Value {
                let $own = self;
                $write
            }

            fn read(&mut self, $value: &Value) -> Result<(), Bad> {
                *self = $read?;
                Ok(())
            }
        }

        impl Parse for $type {
            fn empty() -> Self {
                $empty
            }
        })+
    };
}

others! {
    bool, from false, |own| (*own).into(), |value| {
        value.as_bool().ok_or_else(|| Bad::new("expected true or false"))
    };
    (), from (), |_own| true.into(), |value| bool::parse(value).map(|_| ());
    NonZeroU32, from Self::MIN, |own| own.get().into(), |value| {
        Self::new(u32::parse(value)?).ok_or_else(|| misplaced("0"))
    };
    PathBuf, from Self::new(), |own| own.to_string_lossy().into(), |value| {
        String::parse(value).map(Self::from)
    };
    Gid, from Self::default(), |own| own.to_string().into(), |value| match IpAddr::parse(value)? {
        IpAddr::V6(gid) => Ok(Self::from(gid)),
        IpAddr::V4(_) => Err(Bad::new("expected 16 bytes, written as IPv6")),
    };
    Source, from Self::Sysfs, |own| own.to_string().into(), |value| match value.as_str() {
        Some("ioctl") => Ok(Self::Ioctl),
        Some("sysfs") => Ok(Self::Sysfs),
        _ => Err(Bad::new("expected ioctl or sysfs")),
    };
    [u8; 6], from [0; 6], |own| own.map(|byte| format!("{byte:02x}")).join(":").into(), |value| {
        let bytes = value.as_str().unwrap_or_default().split(':');
        let bytes: Option<Vec<u8>> = bytes.map(|own| u8::from_str_radix(own, 16).ok()).collect();
        let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
        bytes.ok_or_else(|| Bad::new("expected a MAC address"))
    };
    Problem, from Self { text: String::new(), errno: 0 },
    |own| json!({ "error": own.text, "errno": own.errno }),
    |value| {
        let errno = field::<u16>(value, "errno")?.into();
        let text: String = field(value, "error")?;
        if text.len() > LONGEST_TEXT {
            return Err(Bad::new(format!("a text of more than {LONGEST_TEXT} bytes")).at("error"));
        }
        Ok(Self { text, errno })
    };
    Absence, from Self::NoDevice, |own| match own {
        Self::NoModule => json!({ "reason": "no_module" }),
        Self::NoDevice => json!({ "reason": "no_device" }),
        Self::OtherNamespace { device, node } => {
            json!({ "reason": "other_namespace", "device": device, "node": node })
        }
        Self::NoNodes { folder } => {
            json!({ "reason": "no_nodes", "folder": folder.to_string_lossy() })
        }
        newer => json!({ "reason": newer.to_string() }),
    }, |value| match field::<String>(value, "reason")?.as_str() {
        "no_module" => Ok(Self::NoModule),
        "no_device" => Ok(Self::NoDevice),
        "other_namespace" => Ok(Self::OtherNamespace {
            device: field(value, "device")?,
            node: field(value, "node")?,
        }),
        "no_nodes" => Ok(Self::NoNodes { folder: field(value, "folder")? }),
        other => Err(misplaced(other).at("reason")),
    };
}

impl<T: Parse> Json for Option<T> {
    fn json(&self) -> Value {
        self.as_ref().map_or(Value::Null, T::json)
    }

    fn read(&mut self, value: &Value) -> Result<(), Bad> {
        *self = if value.is_null() { None } else { Some(T::parse(value)?) };
        Ok(())
    }
}

impl<T: Parse> Parse for Option<T> {
    fn empty() -> Self {
        None
    }
}

impl<T: Parse> Json for Vec<T> {
    fn json(&self) -> Value {
        self.iter().map(T::json).collect()
    }

    fn read(&mut self, value: &Value) -> Result<(), Bad> {
        let items = value.as_array().ok_or_else(|| Bad::new("expected a list"))?;
        if items.len() > LONGEST_LIST {
            return Err(Bad::new(format!("a list of more than {LONGEST_LIST}")));
        }
        for (place, item) in items.iter().enumerate() {
            self.push(T::parse(item).map_err(|error| error.at(place))?);
        }
        Ok(())
    }
}

impl<T: Parse> Parse for Vec<T> {
    fn empty() -> Self {
        Self::new()
    }
}

impl<A: Parse, B: Parse> Json for (A, B) {
    fn json(&self) -> Value {
        Value::Array(vec![self.0.json(), self.1.json()])
    }

    fn read(&mut self, value: &Value) -> Result<(), Bad> {
        match value.as_array().map(Vec::as_slice) {
            Some([one, other]) => {
                self.0.read(one)?;
                self.1.read(other)
            }
            _ => Err(Bad::new("expected a pair")),
        }
    }
}

impl<A: Parse, B: Parse> Parse for (A, B) {
    fn empty() -> Self {
        (A::empty(), B::empty())
    }
}

/// An answer is itself, a problem an object that no answer looks like.
impl<T: Parse> Json for Answer<T> {
    fn json(&self) -> Value {
        self.as_ref().map_or_else(Json::json, T::json)
    }

    fn read(&mut self, value: &Value) -> Result<(), Bad> {
        let is_problem = value.get("error").is_some() && value.get("errno").is_some();
        *self = if is_problem { Err(Problem::parse(value)?) } else { Ok(T::parse(value)?) };
        Ok(())
    }
}

impl<T: Parse> Parse for Answer<T> {
    fn empty() -> Self {
        Ok(T::empty())
    }
}

/// A row, as its fields stand in a document.
#[derive(Debug)]
struct FlatRow {
    port: u32,
    index: u32,
    gid: Gid,
    gid_type: GidType,
    ifindex: Option<NonZeroU32>,
    sysfs_netdev: Option<String>,
    /// Older snapshots do not say it.
    netdev_is_unread: Option<bool>,
    source: Source,
    netdev: Option<Netdev>,
    type_is_hidden: bool,
}

impl Json for GidRow {
    fn json(&self) -> Value {
        let entry = &self.record.entry;
        FlatRow {
            port: entry.port(),
            index: entry.index(),
            gid: entry.gid(),
            gid_type: entry.gid_type(),
            ifindex: entry.netdev_ifindex(),
            sysfs_netdev: self.record.sysfs_netdev.clone(),
            netdev_is_unread: Some(self.record.netdev_is_unread),
            source: self.record.source,
            netdev: self.netdev.clone(),
            type_is_hidden: self.type_is_hidden,
        }
        .json()
    }

    fn read(&mut self, value: &Value) -> Result<(), Bad> {
        let flat = FlatRow::parse(value)?;
        let entry = GidEntry::new(flat.port, flat.index, flat.gid)
            .with_type(flat.gid_type)
            .with_netdev_ifindex(flat.ifindex);
        let record = GidRecord::new(entry, flat.source)
            .with_sysfs_netdev(flat.sysfs_netdev)
            .with_netdev_unread(flat.netdev_is_unread.unwrap_or(false));
        *self = Self { record, netdev: flat.netdev, type_is_hidden: flat.type_is_hidden };
        Ok(())
    }
}

impl Parse for GidRow {
    fn empty() -> Self {
        Self { record: GidEntry::default().into(), netdev: None, type_is_hidden: false }
    }
}

impl Json for DeviceRecord {
    fn json(&self) -> Value {
        let device = &self.device;
        write_fields(&[
            ("name", &device.name),
            ("index", &device.index),
            ("node_type", &device.node_type),
            ("node_guid", &device.node_guid),
            ("sys_image_guid", &device.sys_image_guid),
            ("fw_version", &device.fw_version),
            ("protocol", &device.protocol),
            ("driver", &device.driver),
            ("node", &device.node),
            ("place", &self.place),
            ("node_mode", &self.node_mode),
            ("access", &self.access),
            ("ports", &self.ports),
            ("gids", &self.gids),
        ])
    }

    fn read(&mut self, value: &Value) -> Result<(), Bad> {
        let device = &mut self.device;
        read_fields(
            value,
            &mut [
                ("name", &mut device.name),
                ("index", &mut device.index),
                ("node_type", &mut device.node_type),
                ("node_guid", &mut device.node_guid),
                ("sys_image_guid", &mut device.sys_image_guid),
                ("fw_version", &mut device.fw_version),
                ("protocol", &mut device.protocol),
                ("driver", &mut device.driver),
                ("node", &mut device.node),
                ("place", &mut self.place),
                ("node_mode", &mut self.node_mode),
                ("access", &mut self.access),
                ("ports", &mut self.ports),
                ("gids", &mut self.gids),
            ],
        )?;
        device.port_count = self.ports.last().map_or(0, |port| port.number);
        if device.port_count as usize > self.ports.len()
            || !device.ports().eq(self.ports.iter().map(|port| port.number))
        {
            return Err(Bad::new("port numbers with a gap").at("ports"));
        }
        let read = |port: &PortRecord| port.attributes.is_some();
        if let Some(port) = self.ports.iter().position(|port| !read(port)) {
            return Err(Bad::new("expected a pair").at("attributes").at(port).at("ports"));
        }
        if self.gids.is_none() {
            return Err(Bad::new("expected a list").at("gids"));
        }
        let entries = self.all_rows().iter().map(|row| &row.record.entry);
        if !entries.is_sorted_by(|a, b| (a.port(), a.index()) < (b.port(), b.index())) {
            return Err(Bad::new("not in order of port and index").at("gids"));
        }
        Ok(())
    }
}

impl Parse for DeviceRecord {
    fn empty() -> Self {
        Self::new(Device::named(""))
    }
}

/// Of variables only those that choose GIDs are accepted.
impl Json for Setting {
    fn json(&self) -> Value {
        let since = self.readings.start().since().map(str::to_owned);
        let after = Reading::ALL.into_iter().find(|reading| reading > self.readings.end());
        let before = after.and_then(Reading::since).map(str::to_owned);
        write_fields(&[
            ("name", &self.name),
            ("value", &self.value),
            ("file", &self.file),
            ("since", &since),
            ("before", &before),
        ])
    }

    fn read(&mut self, value: &Value) -> Result<(), Bad> {
        let (mut since, mut before) = (None::<String>, None::<String>);
        let Self { name, value: own, file, .. } = self;
        read_fields(
            value,
            &mut [
                ("name", name),
                ("value", own),
                ("file", file),
                ("since", &mut since),
                ("before", &mut before),
            ],
        )?;
        if !settings::NAMES.contains(&self.name.as_str()) {
            return Err(Bad::new("not a variable that chooses GIDs").at("name"));
        }
        let place = |version: &str, key| {
            let mut known = Reading::ALL.into_iter();
            let place = known.position(|reading| reading.since() == Some(version));
            place.ok_or_else(|| misplaced(version).at(key))
        };
        let first = since.map_or(Ok(0), |own| place(&own, "since"))?;
        let end = before.map_or(Ok(Reading::ALL.len()), |own| place(&own, "before"))?;
        let seen = Reading::ALL.get(first..end).unwrap_or_default();
        let (Some(first), Some(last)) = (seen.first(), seen.last()) else {
            return Err(Bad::new("no release before it").at("before"));
        };
        self.readings = *first..=*last;
        Ok(())
    }
}

impl Parse for Setting {
    fn empty() -> Self {
        Self::new("", "", None)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::host;

    /// A host with something in every field.
    fn full() -> Inventory {
        let (_folder, mut host) = host();
        let mut inventory = host.inventory(&Wanted::default());
        let netdev = Netdev::new(NonZeroU32::MIN, "eth0");
        inventory.host = Some("node1".into());
        inventory.kernel = Some("6.12.0".into());
        inventory.shares_namespaces = Some(true);
        inventory.modules.push("ib_core".into());
        let mut interface = Interface::new(NonZeroU32::MAX, "eth0");
        interface.is_up = true;
        interface.mtu = 9000;
        interface.mac = Some([0, 1, 2, 0xfd, 0xfe, 0xff]);
        interface.addresses =
            vec![("10.0.0.1".parse().unwrap(), 24), ("fd00::1".parse().unwrap(), 64)];
        inventory.interfaces = Some(vec![interface]);
        inventory.absences = vec![
            Absence::NoModule,
            Absence::NoDevice,
            Absence::OtherNamespace { device: "mlx5_1".into(), node: "uverbs1".into() },
            Absence::NoNodes { folder: "/dev/infiniband".into() },
        ];
        let file = Some("/etc/nccl.conf".into());
        let name = "NCCL_IB_HCA";
        let setting = Setting::new(name, "^=a b", file);
        let old = Setting { readings: Reading::V2_4..=Reading::V2_23, ..setting.clone() };
        let middle = Setting { readings: Reading::V2_23..=Reading::V2_23, ..setting.clone() };
        let new = Setting { readings: Reading::V2_30..=Reading::V2_30, ..setting.clone() };
        inventory.settings = vec![setting, new, middle, old];
        inventory.problems = vec![Problem { text: "host: no".into(), errno: 5 }];
        let record = &mut inventory.devices[0];
        // What identifies the live device is not written.
        let live = std::mem::replace(&mut record.device, Device::named("rxe0"));
        record.device.node_guid = live.node_guid;
        record.device.sys_image_guid = live.sys_image_guid;
        record.device.node = live.node;
        record.device.driver = Some(DriverId(99));
        record.device.fw_version = Some("1.2".into());
        record.place = Some(7);
        record.node_mode = Some(0o20_600);
        record.ports[0].netdev = Some(netdev.clone());
        record.ports[0].pkeys = Some(Ok(vec![(0, PKey(0xffff))]));
        record.ports[0].effective = Some(Rate(25));
        let empty = PortAttributes::default;
        let mut attributes = empty();
        attributes.active_mtu = Some(Mtu(99));
        record.ports[0].attributes = Some(Ok((attributes, Source::Ioctl)));
        let row = &mut record.gids.as_mut().unwrap().as_mut().unwrap()[0];
        (row.netdev, row.type_is_hidden) = (Some(netdev), true);
        let mut broken = record.clone();
        broken.device.name = "broken".into();
        broken.gids = Some(Err(Problem { text: "broken: no".into(), errno: 22 }));
        broken.ports[0].attributes = Some(Err(Problem { text: "broken: no".into(), errno: 22 }));
        broken.ports[0].pkeys = Some(Err(Problem { text: "broken: no".into(), errno: 22 }));
        broken.access = None;
        inventory.devices.push(broken);
        inventory
    }

    #[test]
    fn what_was_written_is_read() {
        let inventory = full();
        assert_eq!(parse(&write(&inventory)).unwrap(), inventory);
        let empty = Inventory::default();
        assert_eq!(parse(&write(&empty)).unwrap(), empty);
    }

    proptest! {
        /// Whatever is changed in a file: it is read, and then written and read alike, or refused.
        #[test]
        fn any_file_is_read_or_refused(
            changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        ) {
            let mut bytes = write(&full()).into_bytes();
            for (place, byte) in changes {
                let place = place.index(bytes.len());
                bytes[place] = byte;
            }
            if let Ok(inventory) = parse(&String::from_utf8_lossy(&bytes)) {
                prop_assert_eq!(parse(&write(&inventory)).unwrap(), inventory);
            }
        }
    }
}
