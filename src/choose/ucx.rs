//! A model of UCX's choice.
//!
//! UCX first looks at one GID to see whether to offer the port at all, then takes the lowest index of
//! the best class of rows, and tries each by making an address handle with it.

use core::fmt;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::{Decision, Family, Outcome, Port, Reason, Row, Why, has_low_half, is_link_local};
use crate::gid::GidType;
use crate::port::PortState;

/// Releases of UCX that choose differently. Each covers all releases up to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Release {
    /// Up to 1.15.
    V1_15,
    /// 1.16 and 1.17: routable GIDs of InfiniBand.
    V1_16,
    /// 1.18 to 1.20: `UCX_IB_ROCE_SUBNETS`.
    V1_18,
    /// 1.21: link-local GIDs come after others; device names and `^` in `UCX_NET_DEVICES`.
    V1_21,
    /// 1.22: ranges in `UCX_NET_DEVICES`.
    V1_22,
}

impl Release {
    /// The newest known release.
    pub const NEWEST: Self = Self::V1_22;

    /// The release that covers a version: 1.13 is [`V1_15`](Self::V1_15).
    #[must_use]
    pub fn of(major: u32, minor: u32) -> Self {
        match (major, minor) {
            version if version < (1, 16) => Self::V1_15,
            version if version < (1, 18) => Self::V1_16,
            version if version < (1, 21) => Self::V1_18,
            version if version < (1, 22) => Self::V1_21,
            _ => Self::V1_22,
        }
    }
}

/// A class of rows. The lesser class is preferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Class {
    /// RoCE v2, IPv4.
    V2Ipv4,
    /// RoCE v2, IPv6; without link-local addresses since 1.21.
    V2Ipv6,
    /// RoCE v2, link-local.
    V2LinkLocal,
    /// RoCE v1, IPv4.
    V1Ipv4,
    /// RoCE v1, IPv6; without link-local addresses since 1.21.
    V1Ipv6,
    /// RoCE v1, link-local.
    V1LinkLocal,
}

impl Class {
    fn of(row: &Row<'_>, release: Release) -> Option<Self> {
        // A type that cannot be read counts as version 1; unknown text is an error.
        let is_v2 = match row.gid_type {
            _ if row.type_is_hidden => false,
            GidType::ROCE_V2 => true,
            GidType::IB | GidType::ROCE_V1 => false,
            _ => return None,
        };
        let is_apart = release >= Release::V1_21 && is_link_local(row.gid);
        Some(match (is_v2, row.family()) {
            (true, Family::V4) => Self::V2Ipv4,
            (true, Family::V6) if is_apart => Self::V2LinkLocal,
            (true, Family::V6) => Self::V2Ipv6,
            (false, Family::V4) => Self::V1Ipv4,
            (false, Family::V6) if is_apart => Self::V1LinkLocal,
            (false, Family::V6) => Self::V1Ipv6,
        })
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V2Ipv4 => "RoCE v2 over IPv4",
            Self::V2Ipv6 => "RoCE v2 over IPv6",
            Self::V2LinkLocal => "RoCE v2, link-local",
            Self::V1Ipv4 => "RoCE v1, IPv4",
            Self::V1Ipv6 => "RoCE v1, IPv6",
            Self::V1LinkLocal => "RoCE v1, link-local",
        })
    }
}

/// The settings that the choice depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    release: Release,
    gid_index: Setting<u32>,
    subnets: Setting<Subnets>,
    devices: Devices,
    heeds_flid: bool,
}

/// A setting that may be at its default, or unusable.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Setting<T> {
    Default,
    Set(T),
    Bad,
}

/// `UCX_IB_ROCE_SUBNETS`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Subnets {
    excludes: bool,
    /// Address prefixes, by family and length. There are few lengths, but there may be many networks.
    networks: BTreeMap<(Family, u32), BTreeSet<u128>>,
}

impl Settings {
    /// Reads the settings. `variable` returns the value of a variable.
    #[must_use]
    pub fn new<'v>(release: Release, variable: impl Fn(&str) -> Option<&'v str>) -> Self {
        Self {
            release,
            gid_index: variable("UCX_IB_GID_INDEX").map_or(Setting::Default, gid_index),
            subnets: match variable("UCX_IB_ROCE_SUBNETS") {
                Some(text) if release >= Release::V1_18 => subnets(text),
                _ => Setting::Default,
            },
            devices: Devices::new(variable("UCX_NET_DEVICES").unwrap_or("all"), release),
            heeds_flid: release >= Release::V1_16
                && !variable("UCX_IB_FLID_ROUTE").is_some_and(is_no),
        }
    }

    /// The index that is set.
    #[must_use]
    pub fn pinned(&self) -> Option<u32> {
        match self.gid_index {
            Setting::Set(index) => Some(index),
            _ => None,
        }
    }
}

/// What UCX reads as no.
fn is_no(text: &str) -> bool {
    ["n", "no", "off", "0"].iter().any(|no| text.eq_ignore_ascii_case(no))
}

/// A decimal number as `sscanf` reads it for `%lu`, followed by any text: `0x3` is 0. It may have a sign.
/// UCX keeps 32 bits of 64; of these, -2 means `auto`.
fn gid_index(text: &str) -> Setting<u32> {
    const AUTO: u64 = 2u64.wrapping_neg();
    if text.eq_ignore_ascii_case("auto") {
        return Setting::Default;
    }
    let text = text.trim_start();
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    let digits = digits.get(..end).unwrap_or_default();
    if digits.is_empty() {
        return Setting::Bad;
    }
    // What is larger than 64 bits is the largest number.
    let number = digits
        .parse::<u64>()
        .map_or(u64::MAX, |own| if is_negative { own.wrapping_neg() } else { own });
    if number == AUTO {
        return Setting::Default;
    }
    let [.., a, b, c, d] = number.to_be_bytes();
    Setting::Set(u32::from_be_bytes([a, b, c, d]))
}

fn subnets(text: &str) -> Setting<Subnets> {
    if text == "all" {
        return Setting::Default;
    }
    let (excludes, text) = match text.strip_prefix('^') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let network = |entry: &str| {
        let (address, bits) = entry.trim().split_once('/')?;
        let (bits, address) = (bits.parse::<u32>().ok()?, address.parse::<IpAddr>().ok()?);
        Some(match address {
            IpAddr::V4(own) => (Family::V4, bits.min(32), u128::from(own.to_bits()) << 96),
            IpAddr::V6(own) => (Family::V6, bits.min(128), own.to_bits()),
        })
    };
    let mut networks: BTreeMap<_, BTreeSet<u128>> = BTreeMap::new();
    for entry in text.split(',') {
        let Some((family, bits, address)) = network(entry) else { return Setting::Bad };
        networks.entry((family, bits)).or_default().insert(beginning(address, bits));
    }
    Setting::Set(Subnets { excludes, networks })
}

/// The first bits of an address; the others are zero.
fn beginning(address: u128, bits: u32) -> u128 {
    address & u128::MAX.checked_shl(u128::BITS.saturating_sub(bits)).unwrap_or(0)
}

impl Subnets {
    fn admits(&self, row: &Row<'_>) -> bool {
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
    takes_all: bool,
    excludes: bool,
    has_bare_names: bool,
    entries: Vec<String>,
}

impl Devices {
    /// How many entries a list may have after ranges are expanded.
    const ROOM: usize = 128;

    /// Reads the list as a release does.
    #[must_use]
    pub fn new(text: &str, release: Release) -> Self {
        let is_new = release >= Release::V1_21;
        let (excludes, list) = match text.strip_prefix('^') {
            Some(rest) if is_new => (true, rest),
            _ => (false, text),
        };
        let entries: Vec<&str> = list.split(',').collect();
        let takes_all = if is_new { text == "all" } else { entries.contains(&"all") };
        let expanded = entries.into_iter().flat_map(|entry| {
            let range = (release >= Release::V1_22).then(|| expand(entry)).flatten();
            range.unwrap_or_else(|| vec![entry.to_owned()])
        });
        let entries = expanded.take(Self::ROOM).collect();
        Self { takes_all, excludes, has_bare_names: is_new, entries }
    }

    /// Whether the port is used.
    #[must_use]
    pub fn takes(&self, device: &str, port: u32) -> bool {
        let is_named = |entry: &String| match entry.rsplit_once(':') {
            Some((name, own)) if name == device && *own == port.to_string() => true,
            _ => self.has_bare_names && entry == device,
        };
        self.takes_all || self.entries.iter().any(is_named) != self.excludes
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
    Some((first..=last).take(Devices::ROOM).map(|n| format!("{before}{n}{behind}")).collect())
}

/// What UCX does with a port.
#[must_use]
pub fn choose(port: &Port<'_>, settings: &Settings) -> Decision {
    let unlooked = |outcome| Decision::unlooked(port, outcome);
    if settings.gid_index == Setting::Bad {
        return unlooked(Outcome::Fails(Why::BadValue("UCX_IB_GID_INDEX")));
    }
    if let Some(why) = unoffered(port, settings) {
        return unlooked(Outcome::Ignored(why));
    }
    if !port.is_ethernet() {
        return choose_infiniband(port, settings);
    }
    match (&settings.subnets, settings.pinned()) {
        (Setting::Bad, _) => unlooked(Outcome::Fails(Why::BadValue("UCX_IB_ROCE_SUBNETS"))),
        (Setting::Set(_), Some(_)) => unlooked(Outcome::Fails(Why::IndexAndSubnets)),
        (Setting::Default, Some(index)) => unlooked(Outcome::of_index(port, index.into())),
        (_, None) => choose_roce(port, settings),
    }
}

/// Why the port is not offered. The GID at the index that is set, or at index 0, decides this, on RoCE
/// too.
fn unoffered(port: &Port<'_>, settings: &Settings) -> Option<Why> {
    let first = settings.pinned().unwrap_or(0);
    if !settings.devices.takes(port.device, port.number) {
        Some(Why::NotListed("UCX_NET_DEVICES"))
    } else if port.gid_tbl_len == 0 {
        Some(Why::NoTable)
    } else if port.state != PortState::ACTIVE {
        Some(Why::NotActive(port.state))
    } else if first >= port.gid_tbl_len {
        Some(Why::OutsideFirst(first))
    } else {
        match port.row(first) {
            None => Some(Why::EmptyFirst(first)),
            Some(row) if !has_low_half(row.gid) => Some(Why::NoLowHalf(first)),
            Some(_) => None,
        }
    }
}

fn choose_infiniband(port: &Port<'_>, settings: &Settings) -> Decision {
    if let Some(index) = settings.pinned() {
        return Decision::unlooked(port, Outcome::of_index(port, index.into()));
    }
    let is_routable = settings.heeds_flid
        && port.gid_tbl_len > 1
        && port.row(1).is_some_and(|row| is_routable(row.gid.to_bytes()));
    let (index, reason) =
        if is_routable { (1, Reason::Routable) } else { (0, Reason::DefaultIndex) };
    Decision::of_one(port, Outcome::of_index(port, index.into()), &reason)
}

/// Whether a GID is a routable one: a site-local prefix with an FLID, and the vendor's own id.
fn is_routable(gid: [u8; 16]) -> bool {
    matches!(gid, [0xfe, 0xc0, 0, 0, high, low, _, _, 0x00, 0x14, 0x05, ..] if (high, low) != (0, 0))
}

fn choose_roce(port: &Port<'_>, settings: &Settings) -> Decision {
    let release = settings.release;
    let subnets = match &settings.subnets {
        Setting::Set(subnets) => Some(subnets),
        _ => None,
    };
    // Why a row is skipped, or its class.
    let judge = |row: &Row<'_>| -> Result<Class, Reason> {
        if release >= Release::V1_21 && !has_low_half(row.gid) {
            return Err(Reason::NoLowHalf);
        }
        let class = Class::of(row, release).ok_or(Reason::TypeHidden)?;
        if !row.has_address_handle || row.gid.is_zero() {
            return Err(Reason::NoAddressHandle);
        }
        if subnets.is_some_and(|subnets| !subnets.admits(row)) {
            return Err(Reason::OutOfSubnets);
        }
        Ok(class)
    };
    let seen: Vec<_> = port.rows.iter().filter(|row| row.index < port.gid_tbl_len).collect();
    let best = seen.iter().filter_map(|row| Some((judge(row).ok()?, row.index))).min();
    let outcome = match best {
        Some((_, index)) => Outcome::Taken(index),
        None if subnets.is_some() => Outcome::Fails(Why::NoRow),
        // The last slot that was looked at decides.
        None if release < Release::V1_21 => Outcome::of_index(port, 0),
        None => match port.row(port.gid_tbl_len.saturating_sub(1)) {
            Some(row) if has_low_half(row.gid) => Outcome::of_index(port, 0),
            _ => Outcome::Fails(Why::LastEmpty),
        },
    };
    let reason = |row: &Row<'_>| match (judge(row), best) {
        _ if row.index >= port.gid_tbl_len => Reason::Unlooked,
        (Ok(class), Some((_, index))) if index == row.index => Reason::FirstOf(class),
        (Ok(class), Some((best, index))) if class == best => Reason::LowerFits(index),
        (Ok(_), Some((best, _))) => Reason::Below(best),
        _ if outcome.index() == Some(row.index) => Reason::LastResort,
        (Err(reason), _) => reason,
        // A row that could be judged would be the best.
        (Ok(_), None) => Reason::Unlooked,
    };
    let rows = port.rows.iter().map(|row| (row.index, reason(row))).collect();
    Decision { outcome, rows }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_is_read_as_ucx_reads_it() {
        let index = |text: &str| {
            let variable = |name: &str| (name == "UCX_IB_GID_INDEX").then_some(text);
            let settings = Settings::new(Release::NEWEST, variable);
            (settings.pinned(), settings.gid_index == Setting::Bad)
        };
        for (text, expected) in [
            ("3", Some(3)),
            ("+3", Some(3)),
            (" 3 ", Some(3)),
            ("0x3", Some(0)),
            ("4294967299", Some(3)),
            ("99999999999999999999", Some(u32::MAX)),
            ("-1", Some(u32::MAX)),
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
    fn no_is_no_in_any_case() {
        let heeds = |text: &str| {
            let variable = |name: &str| (name == "UCX_IB_FLID_ROUTE").then_some(text);
            Settings::new(Release::NEWEST, variable).heeds_flid
        };
        assert!(["y", "Yes", "1"].iter().all(|text| heeds(text)));
        assert!(!["n", "No", "NO", "0"].iter().any(|text| heeds(text)));
    }
}
