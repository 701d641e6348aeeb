//! A change as a line for people, and as a JSON object.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::{Duration, SystemTime};

use serde::Serialize;
use uverbs::gid::Source;
use uverbs::hardware::{Hardware, PciFunction};
use uverbs::inventory::{
    Answer, DeviceRecord, GidRow, Inventory, Problem, Setting, SettingsReading,
};
use uverbs::netdev::{Interface, Netdev};
use uverbs::port::{Mtu, PortAttributes};
use uverbs::watch::{Change, Difference, Origin, PortValue, What, format_time};

use crate::devices::{self, pci_id};
use crate::gid_row::Row;
use crate::ports;
use crate::values::{Gbps, NONE, Pairs, Text};

/// A change in JSON.
#[derive(Debug, Serialize)]
pub(crate) struct Line<'c> {
    /// When it was found.
    pub(crate) time: String,
    pub(crate) monotonic_ns: u64,
    pub(crate) what: Cow<'static, str>,
    pub(crate) device: Option<&'c str>,
    pub(crate) port: Option<u32>,
    pub(crate) before: Side<'c>,
    pub(crate) after: Side<'c>,
    /// What caused the reading.
    pub(crate) causes: Vec<&'static str>,
}

/// What was, or what is.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Side<'c> {
    /// Nothing is there, or nothing is known.
    None,
    /// The same, in words.
    NoneKnown,
    Word(Cow<'c, str>),
    Number(u64),
    Truth(bool),
    Rate(Gbps),
    /// Named values.
    Pairs(Pairs<Side<'c>>),
    Words(Vec<String>),
    /// A row as `uverbs gids` has it.
    Gid(Box<Row<'c>>),
    Gids(Vec<Row<'c>>),
    Whole(Box<Whole<'c>>),
    /// What a program takes.
    Choice(&'c Choice),
    Problem {
        error: &'c str,
        errno: i32,
    },
}

/// A device with all that is in it, in the forms of `uverbs devices`, `ports` and `gids`.
#[derive(Debug, Serialize)]
pub(crate) struct Whole<'c> {
    device: devices::Row<'c>,
    /// Those that could be read.
    ports: Vec<ports::Row<'c>>,
    gids: Vec<Row<'c>>,
    /// What could not be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    problems: Vec<Side<'c>>,
    /// Whether its GIDs could be read.
    #[serde(skip)]
    has_gids: bool,
}

/// Which GID a program takes on a port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Choice {
    pub(crate) index: Option<u32>,
    pub(crate) gid: Option<String>,
    /// What comes of it where that is not a row.
    pub(crate) why: Option<String>,
    /// Whether that is known.
    pub(crate) is_sure: bool,
    pub(crate) recommended: Option<u32>,
    /// Whether it is the right one; null if that is not known.
    pub(crate) is_right: Option<bool>,
}

/// What kind of thing a line is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Gid,
    Port,
    Device,
    /// An interface, or the host.
    Host,
    /// Something was lost, which concerns all.
    Loss,
}

pub(crate) fn kind(what: &What) -> Kind {
    match what {
        What::Lost(_) => Kind::Loss,
        What::Difference(own) => match own {
            Difference::GidCame { .. }
            | Difference::GidWent { .. }
            | Difference::GidChanged { .. }
            | Difference::GidMoved { .. }
            | Difference::Table { .. } => Kind::Gid,
            Difference::Port { .. } => Kind::Port,
            other if other.device().is_some() => Kind::Device,
            _ => Kind::Host,
        },
        // An event, or what a newer library says.
        _ => Kind::Device,
    }
}

/// The rows that a difference is about.
pub(crate) fn rows(difference: &Difference) -> [Option<&GidRow>; 2] {
    match difference {
        Difference::GidCame { row, .. } => [None, Some(row)],
        Difference::GidWent { row, .. } => [Some(row), None],
        Difference::GidChanged { before, after, .. }
        | Difference::GidMoved { before, after, .. } => [Some(before), Some(after)],
        _ => [None, None],
    }
}

impl<'c> Line<'c> {
    pub(crate) fn new(change: &'c Change) -> Self {
        let (what, device, port, before, after) = match &change.what {
            What::Difference(own) => {
                let [before, after] = sides(own);
                (Cow::Borrowed(own.name()), own.device(), own.port(), before, after)
            }
            What::Event { device, event } => {
                let port = u32::try_from(event.element).ok().filter(|port| *port > 0);
                let what = Cow::Owned(event.event_type.to_string());
                (what, Some(device.as_str()), port, Side::None, Side::None)
            }
            What::Lost(origin) => {
                (Cow::Borrowed("lost"), None, None, Side::None, word(origin.name()))
            }
            _ => (Cow::Borrowed("unknown"), None, None, Side::None, Side::None),
        };
        let causes = change.origins.iter().copied().map(Origin::name).collect();
        let own = Self::of(change.time, change.monotonic, "");
        Self { what, device, port, before, after, causes, ..own }
    }

    /// A line of which this is known.
    pub(crate) fn of(time: SystemTime, monotonic: Duration, what: &'static str) -> Self {
        Self {
            time: format_time(time, 3),
            monotonic_ns: u64::try_from(monotonic.as_nanos()).unwrap_or(u64::MAX),
            what: Cow::Borrowed(what),
            device: None,
            port: None,
            before: Side::None,
            after: Side::None,
            causes: Vec::new(),
        }
    }

    /// Whether it ends with one of these words.
    fn is_one_of<const N: usize>(&self, ends: [&str; N]) -> bool {
        ends.iter().any(|end| self.what.ends_with(end))
    }

    /// The line for people.
    pub(crate) fn text(&self) -> String {
        let place = match (self.device, self.port) {
            (Some(device), Some(port)) => format!("{device}:{port}"),
            (Some(device), None) => device.to_owned(),
            (None, _) => NONE.to_owned(),
        };
        let (before, after) = (self.before.text(), self.after.text());
        let seen = match (&self.before, &self.after) {
            (Side::None, Side::None) if self.what == "was" => "empty".to_owned(),
            (Side::None, Side::None) => String::new(),
            (Side::None, _) if self.is_one_of(["_came", "_listed", "began", "unread"]) => after,
            (_, Side::None) if self.is_one_of(["_went", "_unlisted"]) => before,
            (Side::None, _) if self.what == "lost" => format!("messages of {after}"),
            _ => format!("{before} → {after}"),
        };
        let cells = format!("{}  {place:<10}  {:<14}  {seen}", self.time, self.what);
        let causes = self.causes.join(", ");
        let causes = if causes.is_empty() { causes } else { format!("  ({causes})") };
        format!("{}{causes}", cells.trim_end())
    }
}

pub(crate) fn word<'c>(text: impl Into<Cow<'c, str>>) -> Side<'c> {
    Side::Word(text.into())
}

#[expect(clippy::needless_pass_by_value, reason = "it is called with numbers and words")]
fn show<'c>(value: impl ToString) -> Side<'c> {
    Side::Word(Cow::Owned(value.to_string()))
}

fn pairs<'c, const N: usize>(pairs: [(&str, Side<'c>); N]) -> Side<'c> {
    Side::Pairs(Pairs(pairs.map(|(name, value)| (name.to_owned(), value)).into()))
}

pub(crate) fn problem(own: &Problem) -> Side<'_> {
    Side::Problem { error: &own.text, errno: own.errno }
}

fn optional<'c, T>(own: Option<T>, side: impl FnOnce(T) -> Side<'c>) -> Side<'c> {
    own.map_or(Side::None, side)
}

fn answer<'c, T>(own: &'c Answer<T>, side: impl FnOnce(&'c T) -> Side<'c>) -> Side<'c> {
    match own {
        Ok(own) => side(own),
        Err(own) => problem(own),
    }
}

pub(crate) fn gid<'c>(device: &'c str, row: &'c GidRow) -> Side<'c> {
    Side::Gid(Box::new(Row::new(None, device, row)))
}

/// The same with what is not in the table.
pub(crate) fn gid_in_full<'c>(device: &'c str, row: &'c GidRow) -> Side<'c> {
    Side::Gid(Box::new(Row::in_full(device, row)))
}

/// A row before and after: in full, if in the table it is the same.
fn changed_gid<'c>(device: &'c str, before: &'c GidRow, after: &'c GidRow) -> [Side<'c>; 2] {
    let [one, other] = [before, after].map(|row| Row::new(None, device, row));
    if one.brief() == other.brief() {
        [before, after].map(|row| gid_in_full(device, row))
    } else {
        [one, other].map(|row| Side::Gid(Box::new(row)))
    }
}

fn whole(own: &DeviceRecord) -> Side<'_> {
    let (device, gids) = (&own.device, own.all_rows());
    Side::Whole(Box::new(Whole {
        device: devices::Row::new(None, own),
        ports: own.ports.iter().filter_map(|port| ports::Row::new(None, device, port)).collect(),
        gids: gids.iter().map(|row| Row::new(None, &device.name, row)).collect(),
        problems: unread(own).into_iter().map(|(_, own)| problem(own)).collect(),
        has_gids: own.problem().is_none(),
    }))
}

/// What could not be read of a device, each reason once: with a port's number, if that is the port's own.
pub(crate) fn unread(own: &DeviceRecord) -> Vec<(Option<u32>, &Problem)> {
    let mut found: Vec<(Option<u32>, &Problem)> = Vec::new();
    found.extend(own.problem().map(|problem| (None, problem)));
    for port in &own.ports {
        let answers = [
            port.problem(),
            port.guid.as_ref().err(),
            port.netdev.as_ref().err(),
            port.effective.as_ref().and_then(|own| own.as_ref().err()),
            port.pkeys.as_ref().and_then(|own| own.as_ref().err()),
        ];
        let mut known: BTreeSet<&str> =
            own.problem().map(|own| own.text.as_str()).into_iter().collect();
        let new = answers.into_iter().flatten().filter(|own| known.insert(&own.text));
        found.extend(new.map(|own| (Some(port.number), own)));
    }
    found
}

/// A value, and its name.
type Value<T> = (&'static str, fn(&T) -> Side<'_>);

/// What is before and after: what is always shown, and of all else what differs.
fn differing<'c, T>(
    [before, after]: [&'c T; 2],
    always: &[Value<T>],
    others: &[Value<T>],
) -> [Side<'c>; 2] {
    let differs = |(_, value): &&Value<T>| value(before).text() != value(after).text();
    let others: Vec<_> = others.iter().filter(differs).collect();
    [before, after].map(|own| {
        let of = |(name, value): &Value<T>| ((*name).to_owned(), value(own));
        Side::Pairs(Pairs(always.iter().chain(others.iter().copied()).map(of).collect()))
    })
}

/// What a device is beside its ports and GIDs, before and after.
fn listed<'c>(before: &'c DeviceRecord, after: &'c DeviceRecord) -> [Side<'c>; 2] {
    static ALWAYS: [Value<DeviceRecord>; 5] = [
        ("index", |own| optional(own.device.index, |index| Side::Number(index.into()))),
        ("node_guid", |own| show(own.device.node_guid)),
        ("fw_version", |own| optional(own.device.fw_version.as_deref(), word)),
        ("uverbs", |own| optional(own.device.node.as_ref(), |node| word(node.name.as_str()))),
        ("access", |own| optional(own.access.as_ref(), |own| answer(own, |()| Side::Truth(true)))),
    ];
    static OTHERS: [Value<DeviceRecord>; 27] = [
        ("node_type", |own| show(own.device.node_type)),
        ("sys_image_guid", |own| show(own.device.sys_image_guid)),
        ("protocol", |own| optional(own.device.protocol.as_deref(), word)),
        ("driver", |own| optional(own.device.driver, show)),
        ("node", |own| optional(own.device.node.as_ref(), |node| show(node.path.display()))),
        ("node_number", |own| optional(own.device.node.as_ref(), |node| Side::Number(node.number))),
        ("node_is_unread", |own| Side::Truth(own.device.node_is_unread)),
        ("node_is_missing", |own| Side::Truth(own.node_is_missing)),
        ("node_is_in_nodev", |own| Side::Truth(own.node_is_in_nodev)),
        ("node_is_read_only", |own| Side::Truth(own.node_is_read_only)),
        ("node_mode", |own| optional(own.node_mode, |mode| show(format!("{mode:o}")))),
        ("place", |own| optional(own.place, |place| Side::Number(place.into()))),
        ("board_id", |own| hardware(own, |own| own.board_id.as_deref().map(word))),
        ("board_is_unread", |own| hardware(own, |own| Some(Side::Truth(own.board_is_unread)))),
        ("ca_type", |own| hardware(own, |own| own.ca_type.as_deref().map(word))),
        ("hw_rev", |own| hardware(own, |own| own.hw_rev.as_deref().map(word))),
        ("numa_node", |own| hardware(own, |own| own.numa_node.map(show))),
        ("numa_node_is_unread", |own| {
            hardware(own, |own| Some(Side::Truth(own.numa_node_is_unread)))
        }),
        ("pci", |own| hardware(own, |own| own.pci.as_ref().map(|own| show(own.address)))),
        ("pci_is_unread", |own| hardware(own, |own| Some(Side::Truth(own.pci_is_unread)))),
        ("pci_id", |own| pci(own, |own| own.id.map(|(vendor, own)| show(pci_id(vendor, own))))),
        ("has_sub_function", |own| pci(own, |own| Some(Side::Truth(own.has_sub_function)))),
        ("physical", |own| pci(own, |own| own.physical.map(show))),
        ("physical_is_unread", |own| pci(own, |own| Some(Side::Truth(own.physical_is_unread)))),
        ("has_virtual", |own| pci(own, |own| Some(Side::Truth(own.has_virtual)))),
        ("pcie_link", |own| pci(own, |own| own.link.map(show))),
        ("pcie_max_link", |own| pci(own, |own| own.max_link.map(show))),
    ];
    differing([before, after], &ALWAYS, &OTHERS)
}

fn hardware<'c>(
    own: &'c DeviceRecord,
    value: impl FnOnce(&'c Hardware) -> Option<Side<'c>>,
) -> Side<'c> {
    own.hardware.as_ref().and_then(value).unwrap_or(Side::None)
}

fn pci<'c>(
    own: &'c DeviceRecord,
    value: impl FnOnce(&'c PciFunction) -> Option<Side<'c>>,
) -> Side<'c> {
    hardware(own, |own| own.pci.as_ref().and_then(value))
}

/// What an interface is, before and after, as [`listed`].
fn interface<'c>(before: Option<&'c Interface>, after: Option<&'c Interface>) -> [Side<'c>; 2] {
    let differs = before.zip(after).filter(|(before, after)| {
        let rest =
            |own: &Interface| (own.mac, own.port_guid, own.vlan, own.vlan_on, own.unfit.clone());
        rest(before) != rest(after)
    });
    let is_single = before.is_none() || after.is_none();
    [before, after].map(|own| {
        optional(own, |own| {
            let address = |(address, bits): &(IpAddr, u8)| format!("{address}/{bits}");
            let mut all = vec![
                ("index", Side::Number(own.index.get().into())),
                ("name", word(own.name.as_str())),
                ("is_up", Side::Truth(own.is_up)),
                ("is_lower_up", Side::Truth(own.is_lower_up)),
                ("mtu", Side::Number(own.mtu.into())),
                ("addresses", Side::Words(own.addresses.iter().map(address).collect())),
            ];
            // Of one that comes or goes what it has.
            let is_shown = |is_there| differs.is_some() || is_single && is_there;
            let mac = own.mac.map(|mac| mac.map(|byte| format!("{byte:02x}")).join(":"));
            let unfit = own.unfit.iter().map(|(address, why)| format!("{address} ({why})"));
            let others = [
                ("mac", mac.is_some(), optional(mac, word)),
                ("port_guid", own.port_guid.is_some(), optional(own.port_guid, show)),
                ("vlan", own.vlan.is_some(), optional(own.vlan, |id| Side::Number(id.into()))),
                (
                    "vlan_on",
                    own.vlan_on.is_some(),
                    optional(own.vlan_on, |own| Side::Number(own.get().into())),
                ),
                ("unfit", !own.unfit.is_empty(), Side::Words(unfit.collect())),
            ];
            let others = others.into_iter().filter(|(_, is_there, _)| is_shown(*is_there));
            all.extend(others.map(|(name, _, value)| (name, value)));
            Side::Pairs(Pairs(all.into_iter().map(|(name, own)| (name.to_owned(), own)).collect()))
        })
    })
}

/// What is wrong with a host, before and after; and of all else what differs.
fn host<'c>(before: &Inventory, after: &Inventory) -> [Side<'c>; 2] {
    let problems = |own: &Inventory| -> Vec<String> {
        let problems = own.problems.iter().chain(own.unlisted.iter().map(|(_, own)| own));
        let without_netlink = own.without_netlink.iter();
        let problems = problems.chain(without_netlink.filter(|it| !own.problems.contains(it)));
        let problems = problems.chain(&own.unread_settings);
        problems.map(|own| own.text.clone()).collect()
    };
    let [one, other] = [before, after].map(host_words);
    let only = |own: &BTreeSet<String>, other| own.difference(other).cloned().collect::<Vec<_>>();
    let (mut gone, mut come) = (only(&one, &other), only(&other, &one));
    if gone.is_empty() && come.is_empty() && problems(before) == problems(after) {
        // Of settings of one name the first counts.
        let in_order = |own: &Inventory| own.settings.iter().map(setting).collect();
        (gone, come) = (in_order(before), in_order(after));
    }
    [(before, gone), (after, come)].map(|(own, rest)| Side::Words([problems(own), rest].concat()))
}

/// A setting, and which releases of NCCL read it.
fn setting(own: &Setting) -> String {
    // What is read by releases before that which reads in the next way.
    let after = SettingsReading::ALL.into_iter().find(|next| next > own.readings.end());
    let since = own.readings.start().since().map(|own| format!(" since NCCL {own}"));
    let before = after.and_then(SettingsReading::since).map(|own| format!(" before NCCL {own}"));
    format!("{own}{}{}", since.unwrap_or_default(), before.unwrap_or_default())
}

/// What a host is beside its devices, interfaces and problems, each thing as a text.
fn host_words(own: &Inventory) -> BTreeSet<String> {
    let list = |name: &'static str, own: &[String]| -> Vec<String> {
        own.iter().map(|own| format!("{name} {own}")).collect()
    };
    let mut words = list("module", &own.modules);
    words.extend(list("proprietary", own.proprietary.as_deref().unwrap_or_default()));
    words.extend(own.host.iter().map(|own| format!("host {own}")));
    words.extend(own.kernel.iter().map(|own| format!("kernel {own}")));
    words.extend(own.shares_namespaces.map(|own| format!("shares_namespaces {own}")));
    words.extend(own.locked_memory.map(|own| match own.limit {
        _ if own.is_exempt => "locked_memory unlimited".to_owned(),
        Some(limit) => format!("locked_memory {limit}"),
        None => "locked_memory unlimited".to_owned(),
    }));
    words.push(format!("has_netlink {}", own.has_netlink));
    // Its text is there either way.
    let failure = own.netlink_failure();
    words.extend(failure.map(|it| format!("misses_netlink {}", own.problems.contains(it))));
    words.push(format!("knows_proprietary {}", own.proprietary.is_some()));
    words.push(format!("knows_devices {}", own.list_failure.is_none()));
    words.push(format!("knows_interfaces {}", own.interfaces.is_some()));
    // They are here only where they were not known before, or are not now.
    let known = own.interfaces.iter().flatten();
    words.extend(known.map(|own| {
        let [_, own] = interface(None, Some(own));
        format!("interface {}", own.text())
    }));
    words.extend(own.others.iter().map(|own| format!("other {}", own.name)));
    words.extend(own.absences.iter().map(ToString::to_string));
    words.extend(own.settings.iter().map(setting));
    words.extend(own.has_roce_socket.map(|own| format!("has_roce_socket {own}")));
    words.extend(own.home_is_assumed.then(|| "home_is_assumed true".to_owned()));
    words.into_iter().collect()
}

fn sides(own: &Difference) -> [Side<'_>; 2] {
    match own {
        Difference::DeviceCame(own) | Difference::DeviceListed(own) => [Side::None, whole(own)],
        Difference::DeviceWent(own) | Difference::DeviceUnlisted(own) => [whole(own), Side::None],
        Difference::DeviceRenamed { before, after, .. }
        | Difference::InterfaceRenamed { before, after, .. } => {
            [word(before.as_str()), word(after.as_str())]
        }
        Difference::DeviceReplaced { before, after } => [whole(before), whole(after)],
        Difference::Device { before, after } => listed(before, after),
        Difference::Port { before, after, .. } => port_sides(before, after),
        Difference::Table { device, before, after } => {
            [table(device, before.as_ref()), table(device, after.as_ref())]
        }
        Difference::GidCame { device, .. }
        | Difference::GidWent { device, .. }
        | Difference::GidMoved { device, .. } => {
            rows(own).map(|row| optional(row, |row| gid(device, row)))
        }
        Difference::GidChanged { device, before, after } => changed_gid(device, before, after),
        Difference::Host { before, after } => host(before, after),
        Difference::Interface { before, after } => interface(before.as_ref(), after.as_ref()),
        _ => [Side::None, Side::None],
    }
}

fn table<'c>(device: &'c str, own: Option<&'c Answer<Vec<GidRow>>>) -> Side<'c> {
    match own {
        None => Side::None,
        Some(Ok(rows)) => Side::Gids(rows.iter().map(|row| Row::in_full(device, row)).collect()),
        Some(Err(own)) => problem(own),
    }
}

/// What of a port's attributes has lines of its own where it was read before and after.
static MOVING: [Value<(PortAttributes, Source)>; 9] = [
    ("state", |(own, _)| show(own.state)),
    ("phys_state", |(own, _)| show(own.phys_state)),
    ("active_mtu", |(own, _)| mtu(own.active_mtu)),
    ("active_width", |(own, _)| optional(own.active_width, |own| show(ports::WidthText(own)))),
    ("active_speed", |(own, _)| optional(own.active_speed, show)),
    ("lid", |(own, _)| Side::Number(own.lid.into())),
    ("lmc", |(own, _)| Side::Number(own.lmc.into())),
    ("sm_lid", |(own, _)| Side::Number(own.sm_lid.into())),
    ("sm_sl", |(own, _)| Side::Number(own.sm_sl.into())),
];

/// What of them is always shown.
static ATTRIBUTES: [Value<(PortAttributes, Source)>; 6] = [
    ("link_layer", |(own, _)| show(own.link_layer)),
    ("max_mtu", |(own, _)| mtu(own.max_mtu)),
    ("gid_tbl_len", |(own, _)| Side::Number(own.gid_tbl_len.into())),
    ("pkey_tbl_len", |(own, _)| Side::Number(own.pkey_tbl_len.into())),
    ("port_cap_flags", |(own, _)| Side::Number(own.port_cap_flags.into())),
    ("source", |(_, source)| show(Text(*source))),
];

/// The others.
static OTHERS: [Value<(PortAttributes, Source)>; 8] = [
    ("port_cap_flags2", |(own, _)| optional(own.port_cap_flags2, show)),
    ("max_msg_sz", |(own, _)| optional(own.max_msg_sz, show)),
    ("bad_pkey_cntr", |(own, _)| optional(own.bad_pkey_cntr, show)),
    ("qkey_viol_cntr", |(own, _)| optional(own.qkey_viol_cntr, show)),
    ("max_vl_num", |(own, _)| optional(own.max_vl_num, show)),
    ("subnet_timeout", |(own, _)| optional(own.subnet_timeout, show)),
    ("init_type_reply", |(own, _)| optional(own.init_type_reply, show)),
    ("flags", |(own, _)| optional(own.flags, show)),
];

/// Something of a port, before and after.
fn port_sides<'c>(before: &'c PortValue, after: &'c PortValue) -> [Side<'c>; 2] {
    match (before, after) {
        (PortValue::Attributes(Some(Ok(before))), PortValue::Attributes(Some(Ok(after)))) => {
            differing([before, after], &ATTRIBUTES, &OTHERS)
        }
        // Another interface has the name.
        (PortValue::Netdev(Ok(Some(before))), PortValue::Netdev(Ok(Some(after))))
            if before.name == after.name =>
        {
            [before, after].map(netdev)
        }
        // What had the name before, or has it then, may be another.
        (PortValue::Netdev(Ok(Some(own))), PortValue::Netdev(Err(other))) => {
            [netdev(own), problem(other)]
        }
        (PortValue::Netdev(Err(other)), PortValue::Netdev(Ok(Some(own)))) => {
            [problem(other), netdev(own)]
        }
        _ => [port(before), port(after)],
    }
}

fn netdev(own: &Netdev) -> Side<'_> {
    let index = Side::Number(own.index.get().into());
    pairs([("name", word(own.name.as_str())), ("ifindex", index)])
}

fn mtu<'c>(own: Option<Mtu>) -> Side<'c> {
    match own {
        // A port without a representor has none. That is known, so it is not null.
        Some(Mtu(0)) => word("none"),
        own => optional(ports::bytes(own), show),
    }
}

fn port(own: &PortValue) -> Side<'_> {
    match own {
        PortValue::State(own) => show(own),
        PortValue::PhysState(own) => show(own),
        PortValue::Mtu(own) => mtu(*own),
        PortValue::Speed(width, speed) => pairs([
            ("active_width", optional(*width, |own| show(ports::WidthText(own)))),
            ("active_speed", optional(*speed, show)),
        ]),
        PortValue::Lid(lid, lmc) => {
            pairs([("lid", Side::Number((*lid).into())), ("lmc", Side::Number((*lmc).into()))])
        }
        PortValue::SubnetManager(lid, sl) => {
            pairs([("sm_lid", Side::Number((*lid).into())), ("sm_sl", Side::Number((*sl).into()))])
        }
        PortValue::Effective(own) => {
            optional(own.as_ref(), |own| answer(own, |own| Side::Rate(Gbps(*own))))
        }
        PortValue::PKeys(own) => optional(own.as_ref(), |own| {
            answer(own, |own| {
                let text = |(index, pkey): &(u32, _)| format!("{index}:{pkey}");
                Side::Words(own.iter().map(text).collect())
            })
        }),
        PortValue::Netdev(own) => {
            // Without RDMA netlink nobody knows.
            let text = |own: &'_ Netdev| word(own.name.clone());
            answer(own, |own| own.as_ref().map_or(Side::NoneKnown, text))
        }
        PortValue::Guid(own) => answer(own, |own| optional(*own, show)),
        PortValue::HasTypes(own) => optional(*own, Side::Truth),
        // They were not read before, or are not now.
        PortValue::Attributes(own) => optional(own.as_ref(), |own| {
            answer(own, |own| {
                let of = |(name, value): &Value<_>| ((*name).to_owned(), value(own));
                let all = MOVING.iter().chain(&ATTRIBUTES).chain(&OTHERS);
                Side::Pairs(Pairs(all.map(of).collect()))
            })
        }),
        _ => Side::None,
    }
}

impl Side<'_> {
    fn text(&self) -> String {
        match self {
            Self::None => NONE.to_owned(),
            Self::Word(own) => own.to_string(),
            Self::Number(own) => own.to_string(),
            Self::Truth(own) => own.to_string(),
            Self::Rate(own) => own.0.to_string(),
            Self::Pairs(own) => {
                let pair = |(name, value): &(String, Self)| format!("{name} {}", value.text());
                own.0.iter().map(pair).collect::<Vec<_>>().join(" ")
            }
            Self::NoneKnown => "none known".to_owned(),
            Self::Words(own) if own.is_empty() => "none".to_owned(),
            Self::Words(own) => own.join(" "),
            Self::Gid(own) => own.brief(),
            Self::Gids(own) => format!("{} GIDs", own.len()),
            Self::Whole(own) => {
                let guid = &own.device.node_guid;
                let gids = own.gids.len().to_string();
                let gids = if own.has_gids { gids } else { "?".to_owned() };
                let text = format!("{guid} ports {} GIDs {gids}", own.device.ports);
                let problems: Vec<String> = own.problems.iter().map(Self::text).collect();
                if problems.is_empty() { text } else { format!("{text}: {}", problems.join("; ")) }
            }
            Self::Choice(own) => own.text(),
            Self::Problem { error, .. } => (*error).to_owned(),
        }
    }
}

impl Choice {
    fn text(&self) -> String {
        let Self { index, gid, why, is_sure, recommended, is_right } = self;
        let own = match (index, gid) {
            (Some(index), Some(gid)) => format!("{index} {gid}"),
            _ => why.clone().unwrap_or_else(|| NONE.to_owned()),
        };
        let perhaps = if *is_sure { "" } else { "perhaps " };
        match (is_right, recommended) {
            (Some(true), _) if index.is_none() => own,
            (Some(true), _) => format!("{perhaps}{own} (right)"),
            (Some(false), Some(right)) => format!("{perhaps}{own} (wrong: {right} is right)"),
            (Some(false), None) => format!("{perhaps}{own} (none is right)"),
            (None, Some(right)) if *index != Some(*right) => {
                format!("{perhaps}{own} (perhaps wrong: {right} is recommended)")
            }
            (None, _) => format!("{perhaps}{own} (not known whether that is right)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use uverbs::gid::{Gid, GidEntry, GidRecord};

    use super::*;

    fn text(own: &Difference) -> String {
        let [before, after] = sides(own);
        format!("{} → {}", before.text(), after.text())
    }

    #[test]
    fn a_row_that_is_the_same_in_the_table_is_shown_in_full() {
        let row = |index, source| {
            let entry = GidEntry::new(1, index, Gid::from_bytes([9; 16]));
            Box::new(GidRow::from(GidRecord::new(entry, source)))
        };
        let changed = |before: &GidRow, after: &GidRow| {
            let (before, after) = (Box::new(before.clone()), Box::new(after.clone()));
            text(&Difference::GidChanged { device: "x".into(), before, after })
        };
        let (by_ioctl, by_sysfs) = (row(3, Source::Ioctl), row(3, Source::Sysfs));
        let said = changed(&by_ioctl, &by_sysfs);
        assert!(said.contains(" - (by ioctl) → 3 ") && said.ends_with(" - (by sysfs)"), "{said}");
        let mut elsewhere = by_ioctl.clone();
        (elsewhere.netdev_is_elsewhere, elsewhere.type_is_hidden) = (true, true);
        let said = changed(&by_ioctl, &elsewhere);
        assert!(said.ends_with("(by ioctl, interface not here, type hidden in sysfs)"), "{said}");
        let said = changed(&by_ioctl, &row(4, Source::Sysfs));
        assert!(!said.contains("by"), "{said}");
    }

    #[test]
    fn what_differs_of_a_port_is_shown() {
        let port =
            |before, after| text(&Difference::Port { device: "x".into(), port: 1, before, after });
        let attributes = |subnet_timeout| {
            let mut own = PortAttributes::default();
            own.subnet_timeout = subnet_timeout;
            PortValue::Attributes(Some(Ok((own, Source::Ioctl))))
        };
        let said = port(attributes(Some(8)), attributes(None));
        assert!(
            said.contains("subnet_timeout 8 →") && said.ends_with("subnet_timeout -"),
            "{said}"
        );
        assert!(!said.contains("max_msg_sz"), "{said}");
        // Of a port that could not be read no other line says what its state is.
        let unread = || PortValue::Attributes(Some(Err(Problem { text: "no".into(), errno: 5 })));
        let said = port(unread(), attributes(Some(8)));
        let ends = ["no → state nop phys_state ", "subnet_timeout 8 init_type_reply - flags -"];
        assert!(said.starts_with(ends[0]) && said.ends_with(ends[1]), "{said}");
        assert!(port(attributes(None), unread()).contains("lid 0 lmc 0 sm_lid 0 sm_sl 0 "));
        let netdev = |index, name: &str| {
            PortValue::Netdev(Ok(Some(Netdev::new(NonZeroU32::new(index).unwrap(), name))))
        };
        let said = port(netdev(2, "eth0"), netdev(3, "eth0"));
        assert_eq!(said, "name eth0 ifindex 2 → name eth0 ifindex 3");
        assert_eq!(port(netdev(2, "eth0"), netdev(3, "eth1")), "eth0 → eth1");
        let unread = PortValue::Netdev(Err(Problem { text: "no".into(), errno: 5 }));
        assert_eq!(port(unread, netdev(3, "eth0")), "no → name eth0 ifindex 3");
        assert_eq!(port(netdev(3, "eth0"), PortValue::Netdev(Ok(None))), "eth0 → none known");
        assert_eq!(serde_json::to_string(&Side::NoneKnown).unwrap(), "null");
        // A port without a representor has no MTU.
        let mtus = [Some(Mtu(3)), Some(Mtu(0)), None].map(PortValue::Mtu);
        let [four, none, unknown] = mtus.each_ref().map(|own| super::port(own).text());
        assert_eq!([four, none, unknown], ["1024", "none", "-"]);
        assert_eq!(serde_json::to_string(&super::port(&mtus[1])).unwrap(), r#""none""#);
    }

    /// Nor of an interface, where interfaces could not be listed.
    #[test]
    fn interfaces_that_become_known_are_shown() {
        let of = |interfaces| {
            let mut own = Box::new(Inventory::default());
            own.interfaces = interfaces;
            own
        };
        let mut eth0 = Interface::new(NonZeroU32::MIN, "eth0");
        eth0.unfit = vec![("10.0.0.1".parse().unwrap(), uverbs::netdev::Unfit::Duplicate)];
        let said = text(&Difference::Host { before: of(None), after: of(Some(vec![eth0])) });
        let known =
            "interface index 1 name eth0 is_up false is_lower_up false mtu 0 addresses none";
        let start = format!("knows_interfaces false → {known} unfit 10.0.0.1 (another host");
        assert!(said.starts_with(&start), "{said}");
    }
}
