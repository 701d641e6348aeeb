//! The variables of UCX that the choice depends on.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::release::Release;
use super::{PORTS, PORTS_BEFORE};
use crate::choose::Variables;
use crate::choose::address::Family;
use crate::choose::port::Row;
use crate::choose::reason::Why;

/// The settings that the choice depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    pub(super) release: Release,
    pub(super) gid_index: Value<u32>,
    pub(super) subnets: Value<Subnets>,
    pub(in crate::choose) devices: Devices,
    pub(super) heeds_flid: bool,
    /// Why UCX refuses to start: a variable's value.
    pub(super) refused: Option<Why>,
    /// The variable that makes it doubtful what UCX does.
    doubted_by: Option<&'static str>,
}

/// A setting that may be at its default, or unusable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value<T> {
    Default,
    Set(T),
    Bad,
}

/// `UCX_IB_ROCE_SUBNETS`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Subnets {
    excludes: bool,
    /// Address prefixes, by family and length. There are few lengths, but there may be many networks.
    networks: BTreeMap<(Family, u32), BTreeSet<u128>>,
}

impl Settings {
    /// Whether a GID of a router (FLID) on InfiniBand is taken, and reached.
    #[must_use]
    pub fn heeds_flid(&self) -> bool {
        self.heeds_flid
    }

    /// Reads the settings. `variable` returns the value of a variable.
    #[must_use]
    pub fn new<'v>(release: Release, variable: impl Fn(&str) -> Option<&'v str>) -> Self {
        Self::read(release, &variable)
    }

    /// The same, once for all kinds of `variable`.
    fn read(release: Release, variable: Variables<'_, '_>) -> Self {
        let since = |first: Release, name: &str| variable(name).filter(|_| release >= first);
        let gid_index = variable("UCX_IB_GID_INDEX").map_or(Value::Default, gid_index);
        let subnets =
            since(Release::V1_18, "UCX_IB_ROCE_SUBNETS").map_or(Value::Default, AllowList::read);
        let devices = Devices::new(variable("UCX_NET_DEVICES").unwrap_or("all"), release);
        let flid = since(Release::V1_16, "UCX_IB_FLID_ROUTE").map_or(Some(true), boolean);
        let refused = [
            ("UCX_IB_GID_INDEX", gid_index == Value::Bad),
            ("UCX_IB_ROCE_SUBNETS", subnets == Value::Bad),
            ("UCX_NET_DEVICES", devices.list == Value::Bad),
            ("UCX_IB_FLID_ROUTE", flid.is_none()),
        ];
        let stops = devices.is_long() && release < Release::V1_21;
        Self {
            release,
            gid_index,
            subnets: match subnets {
                Value::Set(list) => networks(&list),
                Value::Default | Value::Bad => Value::Default,
            },
            doubted_by: doubted_by(variable),
            devices,
            heeds_flid: release >= Release::V1_16 && flid == Some(true),
            refused: refused
                .iter()
                .find(|(_, is_refused)| *is_refused)
                .map(|(name, _)| Why::BadValue(name))
                .or_else(|| stops.then_some(Why::TooLong("UCX_NET_DEVICES"))),
        }
    }

    /// The variable that makes it doubtful what UCX does, if one is set: by `UCX_TLS` it may use no transport for RDMA
    /// on a port, by `UCX_MODULES` load none, by `UCX_IB_PKEY` fail on a port without that key, and by
    /// `UCX_IB_SUBNET_PREFIX` it leaves out ports of InfiniBand.
    #[must_use]
    pub fn doubted_by(&self) -> Option<&'static str> {
        self.doubted_by
    }

    /// For how many ports the oldest release has room that this one covers.
    pub(in crate::choose) fn room(&self) -> usize {
        if self.release == Release::V1_15 { PORTS_BEFORE } else { PORTS }
    }

    /// Whether it is not known if it stops at the list of devices.
    pub(crate) fn may_stop(&self) -> bool {
        self.devices.is_long() && self.release >= Release::V1_21
    }

    /// Whether the list may name more ports than there is room for, if all that it names are there.
    pub(in crate::choose) fn names_more(&self) -> bool {
        let ports = |own: &String| if own.contains(':') { 1 } else { 2 };
        matches!(&self.devices.list, Value::Set(own)
            if own.entries.iter().map(ports).sum::<usize>() > self.room())
    }

    /// The index that is set.
    #[must_use]
    pub fn pinned(&self) -> Option<u32> {
        match self.gid_index {
            Value::Set(index) => Some(index),
            _ => None,
        }
    }
}

fn doubted_by(variable: Variables<'_, '_>) -> Option<&'static str> {
    if !variable("UCX_TLS").is_none_or(has_rdma) {
        return Some("UCX_TLS");
    }
    let is_other = |name: &str, default: &str| variable(name).is_some_and(|own| own != default);
    for (name, default) in [("UCX_MODULES", "all"), ("UCX_IB_PKEY", "auto")] {
        if is_other(name, default) {
            return Some(name);
        }
    }
    let prefix = variable("UCX_IB_SUBNET_PREFIX").unwrap_or_default();
    (!prefix.is_empty()).then_some("UCX_IB_SUBNET_PREFIX")
}

/// Whether a list of transports has one that any RDMA device offers. These names mean those of each driver; others are
/// of one driver only, or of no RDMA.
fn has_rdma(list: &str) -> bool {
    let is_any = |own| matches!(own, "ib" | "rc" | "ud");
    list == "all" || (!list.starts_with('^') && list.split(',').any(is_any))
}

/// A yes or a no as UCX reads it.
fn boolean(text: &str) -> Option<bool> {
    let is_one_of = |words: [&str; 4]| words.iter().any(|own| text.eq_ignore_ascii_case(own));
    is_one_of(["y", "yes", "on", "1"])
        .then_some(true)
        .or_else(|| is_one_of(["n", "no", "off", "0"]).then_some(false))
}

/// How many devices a list may name: up to 1.20 UCX stops at a longer one, and later releases were not looked at.
pub(crate) const NAMED: usize = 64;

/// How many entries of a list UCX keeps. It does not read the others.
pub(in crate::choose) const ROOM: usize = 128;

/// The entries of a list, as UCX keeps them: no empty ones.
fn entries(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').filter(|own| !own.is_empty()).take(ROOM)
}

/// A list of what is used or, after `^`, of what is not.
#[derive(Clone, Debug, PartialEq, Eq)]
struct AllowList {
    excludes: bool,
    entries: Vec<String>,
}

impl AllowList {
    /// Reads it. The word `all` means all, and no other entry may follow it.
    fn read(text: &str) -> Value<Self> {
        let (excludes, list) = match text.strip_prefix('^') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let entries: Vec<&str> = entries(list).collect();
        match entries.as_slice() {
            ["all"] => Value::Default,
            ["all", ..] => Value::Bad,
            _ => Value::Set(Self {
                excludes,
                entries: entries.into_iter().map(str::to_owned).collect(),
            }),
        }
    }
}

/// A decimal number as `sscanf` reads it for `%lu`, followed by any text: `0x3` is 0. It may have a sign.
/// UCX keeps 32 bits of 64; of these, -2 means `auto`.
fn gid_index(text: &str) -> Value<u32> {
    const AUTO: u64 = 2u64.wrapping_neg();
    if text.eq_ignore_ascii_case("auto") {
        return Value::Default;
    }
    if text.eq_ignore_ascii_case("inf") {
        return Value::Set(u32::MAX);
    }
    let text = text.trim_start();
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    let digits = digits.get(..end).unwrap_or_default();
    if digits.is_empty() {
        return Value::Bad;
    }
    // What is larger than 64 bits is the largest number.
    let number = digits
        .parse::<u64>()
        .map_or(u64::MAX, |own| if is_negative { own.wrapping_neg() } else { own });
    if number == AUTO {
        return Value::Default;
    }
    let [.., a, b, c, d] = number.to_be_bytes();
    Value::Set(u32::from_be_bytes([a, b, c, d]))
}

/// The networks of a list; UCX fails on what it cannot read only where it opens a port of RoCE.
fn networks(list: &AllowList) -> Value<Subnets> {
    let network = |entry: &str| {
        let (address, bits) = entry.trim().split_once('/')?;
        let (bits, address) = (bits.parse::<u32>().ok()?, address.parse::<IpAddr>().ok()?);
        Some(match address {
            IpAddr::V4(own) => (Family::V4, bits.min(32), u128::from(own.to_bits()) << 96),
            IpAddr::V6(own) => (Family::V6, bits.min(128), own.to_bits()),
        })
    };
    let mut networks: BTreeMap<_, BTreeSet<u128>> = BTreeMap::new();
    for entry in &list.entries {
        let Some((family, bits, address)) = network(entry) else { return Value::Bad };
        networks.entry((family, bits)).or_default().insert(beginning(address, bits));
    }
    Value::Set(Subnets { excludes: list.excludes, networks })
}

/// The first bits of an address; the others are zero.
fn beginning(address: u128, bits: u32) -> u128 {
    address & u128::MAX.checked_shl(u128::BITS.saturating_sub(bits)).unwrap_or(0)
}

impl Subnets {
    pub(super) fn admits(&self, row: &Row<'_>) -> bool {
        // A multicast group has the family IPv4 too, but no IPv4 network contains it.
        let address = match (row.family(), row.gid.ipv4()) {
            (Family::V4, Some(own)) => Some(u128::from(own.to_bits()) << 96),
            (Family::V4, None) => None,
            (Family::V6, _) => Some(row.gid.ipv6().to_bits()),
        };
        let holds = |((family, bits), starts): (&(Family, u32), &BTreeSet<u128>)| {
            *family == row.family()
                && address.is_some_and(|address| starts.contains(&beginning(address, *bits)))
        };
        self.networks.iter().any(holds) != self.excludes
    }
}

/// `UCX_NET_DEVICES`: which ports are used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Devices {
    list: Value<AllowList>,
    has_bare_names: bool,
}

impl Devices {
    /// Reads the list as a release does.
    #[must_use]
    pub fn new(text: &str, release: Release) -> Self {
        let is_new = release >= Release::V1_21;
        let mut list = if is_new {
            AllowList::read(text)
        } else if entries(text).any(|own| own == "all") {
            Value::Default
        } else {
            let entries = entries(text).map(str::to_owned).collect();
            Value::Set(AllowList { excludes: false, entries })
        };
        match &mut list {
            Value::Set(AllowList { entries, .. }) if release >= Release::V1_22 => {
                let all = std::mem::take(entries).into_iter();
                let all = all.flat_map(|entry| expand(&entry).unwrap_or_else(|| vec![entry]));
                *entries = all.take(ROOM).collect();
            }
            _ => {}
        }
        Self { list, has_bare_names: is_new }
    }

    /// Whether UCX stops at the list up to 1.20.
    fn is_long(&self) -> bool {
        matches!(&self.list, Value::Set(own) if own.entries.len() > NAMED)
    }

    /// Whether the port is used.
    #[must_use]
    pub fn takes(&self, device: &str, port: u32) -> bool {
        let is_named = |entry: &String| match entry.rsplit_once(':') {
            Some((name, own)) if name == device && *own == port.to_string() => true,
            _ => self.has_bare_names && entry == device,
        };
        match &self.list {
            Value::Default => true,
            Value::Set(list) => list.entries.iter().any(is_named) != list.excludes,
            Value::Bad => false,
        }
    }
}

/// `mlx5_[0-3]:1` as four entries; `None` if there is no valid range.
fn expand(entry: &str) -> Option<Vec<String>> {
    let (before, rest) = entry.split_once('[')?;
    let (range, behind) = rest.split_once(']')?;
    let (first, last) = range.split_once('-')?;
    let number = |text: &str| {
        let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
        is_plain.then(|| text.parse::<u32>().ok()).flatten()
    };
    let (first, last) = (number(first)?, number(last)?);
    if first > last || behind.contains(['[', ']']) {
        return None;
    }
    Some((first..=last).take(ROOM).map(|n| format!("{before}{n}{behind}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_is_read_as_ucx_reads_it() {
        let index = |text: &str| {
            let variable = |name: &str| (name == "UCX_IB_GID_INDEX").then_some(text);
            let settings = Settings::new(Release::NEWEST, variable);
            (settings.pinned(), settings.gid_index == Value::Bad)
        };
        for (text, expected) in [
            ("3", Some(3)),
            ("+3", Some(3)),
            (" 3 ", Some(3)),
            ("0x3", Some(0)),
            ("4294967299", Some(3)),
            ("99999999999999999999", Some(u32::MAX)),
            ("-1", Some(u32::MAX)),
            ("INF", Some(u32::MAX)),
            ("-2", None),
            ("Auto", None),
        ] {
            assert_eq!(index(text), (expected, false), "{text:?}");
        }
        for text in ["", "abc", "-", "+", "--3"] {
            assert_eq!(index(text), (None, true), "{text:?}");
        }
    }

    #[test]
    fn lists_of_transports() {
        let doubted_by = |list: &str| {
            let variable = |name: &str| (name == "UCX_TLS").then_some(list);
            Settings::new(Release::NEWEST, variable).doubted_by()
        };
        for list in ["all", "rc", "self,sm,ud", "ib,cuda"] {
            assert_eq!(doubted_by(list), None, "{list}");
        }
        for list in ["", "tcp", "self,sm", "^rc", "^tcp", "rc_x,self", "\\rc", " rc", "ALL"] {
            assert_eq!(doubted_by(list), Some("UCX_TLS"), "{list}");
        }
    }

    #[test]
    fn no_is_no_in_any_case() {
        let heeds = |text: &str| {
            let variable = |name: &str| (name == "UCX_IB_FLID_ROUTE").then_some(text);
            Settings::new(Release::NEWEST, variable).heeds_flid
        };
        assert!(["y", "Yes", "1"].iter().all(|text| heeds(text)));
        assert!(!["n", "No", "NO", "0"].iter().any(|text| heeds(text)));
        assert!(!heeds("bogus"), "UCX refuses to start");
    }
}
