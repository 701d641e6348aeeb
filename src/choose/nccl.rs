//! A model of NCCL's choice, and of NVSHMEM's, which is a copy of NCCL's with its own variable names.
//!
//! Since 2.21 NCCL walks the table from index 0 and changes its choice when a row fits better: first by
//! address family, then by RoCE version. It does not look at interfaces. Older releases use index 0.
//!
//! `tests/golden/nccl-answers.jsonl.gz` records what NCCL's own code answered for random tables and
//! settings. This model gives the same answers. NCCL reads uninitialised memory for the version of a row
//! whose type cannot be read. The model assumes a version that no row has, as in the recorded runs.

use super::{Decision, Family, Outcome, Port, Reason, Row, Why, alike, parse_address};
use crate::inventory::Reading;
use crate::port::{LinkLayer, PortState};

/// Releases of NCCL that choose differently. Each covers all releases up to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Release {
    /// Up to 2.20: no choice, index 0.
    V2_20,
    /// 2.21: the walk over the table.
    V2_21,
    /// 2.22: routable GIDs of InfiniBand.
    V2_22,
    /// 2.23 to 2.25: no crash on a range without a slash.
    V2_23,
    /// 2.26 to 2.29: it copes with types that cannot be read.
    V2_26,
    /// 2.30 to 2.30.4: other files of settings.
    V2_30,
    /// 2.30.7: `NCCL_IB_HCA` accepts rails and planes.
    V2_30_7,
}

impl Release {
    /// The newest known release.
    pub const NEWEST: Self = Self::V2_30_7;

    /// The release that covers a version: 2.18 is [`V2_20`](Self::V2_20).
    #[must_use]
    pub fn of(major: u32, minor: u32, patch: u32) -> Self {
        match (major, minor, patch) {
            version if version < (2, 21, 0) => Self::V2_20,
            version if version < (2, 22, 0) => Self::V2_21,
            version if version < (2, 23, 0) => Self::V2_22,
            version if version < (2, 26, 0) => Self::V2_23,
            version if version < (2, 30, 0) => Self::V2_26,
            version if version < (2, 30, 7) => Self::V2_30,
            _ => Self::V2_30_7,
        }
    }
}

impl From<Release> for Reading {
    /// How the release reads settings files.
    fn from(release: Release) -> Self {
        match release {
            Release::V2_20 | Release::V2_21 | Release::V2_22 => Self::V2_4,
            Release::V2_23 | Release::V2_26 => Self::V2_23,
            Release::V2_30 | Release::V2_30_7 => Self::V2_30,
        }
    }
}

/// The program that chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Program {
    /// NCCL.
    Nccl(Release),
    /// NVSHMEM.
    Nvshmem,
}

impl Program {
    fn release(self) -> Release {
        match self {
            Self::Nccl(release) => release,
            // NVSHMEM's copy ignores a type that it cannot read.
            Self::Nvshmem => Release::V2_26,
        }
    }
}

/// The settings that the choice depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    program: Program,
    is_disabled: bool,
    devices: DeviceList,
    gid_index: i32,
    version: i32,
    family: Family,
    range: Range,
    flid_index: i32,
}

/// `NCCL_IB_ADDR_RANGE`.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Range {
    /// None, or one that NCCL ignores.
    All,
    /// The address and the number of bits. A negative number matches nothing.
    Network(std::net::IpAddr, i32),
    /// It has no slash.
    NoSlash,
}

impl Settings {
    /// Reads the settings. `variable` returns the value of a variable.
    ///
    /// ```
    /// use uverbs::choose::nccl::{Program, Release, Settings};
    /// let settings = Settings::new(Program::Nccl(Release::NEWEST), |name| {
    ///     (name == "NCCL_IB_ADDR_FAMILY").then_some("AF_INET6")
    /// });
    /// # let _ = settings;
    /// ```
    #[must_use]
    pub fn new<'v>(program: Program, variable: impl Fn(&str) -> Option<&'v str>) -> Self {
        let release = program.release();
        let (names, devices) = match program {
            Program::Nccl(_) => {
                let list = variable("NCCL_IB_HCA").unwrap_or_default();
                (&NCCL, DeviceList::nccl(list, release))
            }
            Program::Nvshmem => {
                let is_on = number(variable("NVSHMEM_ENABLE_NIC_PE_MAPPING"), 0) != 0;
                let list = variable("NVSHMEM_HCA_LIST").filter(|_| is_on);
                (&NVSHMEM, DeviceList::nvshmem(list.unwrap_or_default()))
            }
        };
        let family = match variable(names.family) {
            Some("AF_INET6") => Family::V6,
            _ => Family::V4,
        };
        let default = if release == Release::V2_20 { 0 } else { -1 };
        Self {
            program,
            is_disabled: matches!(program, Program::Nccl(_))
                && number(variable("NCCL_IB_DISABLE"), 0) != 0,
            devices,
            gid_index: int(number(variable(names.gid_index), default)),
            version: int(number(variable(names.version), 2)),
            family,
            range: range(variable(names.range), family),
            flid_index: int(number(variable("NCCL_IB_ROUTABLE_FLID_GID_INDEX"), 1)),
        }
    }

    /// The index that is set, if the program uses it.
    #[must_use]
    pub fn pinned(&self) -> Option<i64> {
        (self.gid_index >= 0 || self.program.release() == Release::V2_20)
            .then_some(self.gid_index.into())
    }
}

/// Names of the variables.
struct Names {
    gid_index: &'static str,
    version: &'static str,
    family: &'static str,
    range: &'static str,
}

const NCCL: Names = Names {
    gid_index: "NCCL_IB_GID_INDEX",
    version: "NCCL_IB_ROCE_VERSION_NUM",
    family: "NCCL_IB_ADDR_FAMILY",
    range: "NCCL_IB_ADDR_RANGE",
};

const NVSHMEM: Names = Names {
    gid_index: "NVSHMEM_IB_GID_INDEX",
    version: "NVSHMEM_IB_ROCE_VERSION_NUM",
    family: "NVSHMEM_IB_ADDR_FAMILY",
    range: "NVSHMEM_IB_ADDR_RANGE",
};

/// A variable's number as NCCL reads it. Octal and hexadecimal are accepted, and text after the number is
/// ignored. Text without a number is 0. Empty text, and a number beyond 64 bits, is the default.
fn number(value: Option<&str>, default: i64) -> i64 {
    let text = value.filter(|text| !text.is_empty());
    text.map(|text| strtoll(text, 0)).map_or(default, |read| read.unwrap_or(default))
}

/// C's `(int)` of a `long long`: the lower 32 bits.
fn int(wide: i64) -> i32 {
    let [a, b, c, d, ..] = wide.to_le_bytes();
    i32::from_le_bytes([a, b, c, d])
}

/// C's `atoi` and `(int)strtol(text, NULL, 10)`: a number beyond 64 bits is first limited to 64 bits.
fn atoi(text: &str) -> i32 {
    int(strtoll(text, 10).unwrap_or_else(|limit| limit))
}

/// The number that a text begins with, as C's `strtoll` reads it. The error is the limit that the number
/// exceeds. With base 0 the text's prefix gives the base.
fn strtoll(text: &str, base: u32) -> Result<i64, i64> {
    let text = text.trim_start_matches([' ', '\t', '\n', '\u{b}', '\u{c}', '\r']);
    let (sign, limit, text) = match text.strip_prefix('-') {
        Some(rest) => (-1, i64::MIN, rest),
        None => (1, i64::MAX, text.strip_prefix('+').unwrap_or(text)),
    };
    let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let (digits, base) = match hex.filter(|rest| rest.starts_with(|c: char| c.is_ascii_hexdigit()))
    {
        Some(rest) if base == 0 => (rest, 16),
        _ if base == 0 && text.starts_with('0') => (text, 8),
        _ => (text, if base == 0 { 10 } else { base }),
    };
    let mut value: i64 = 0;
    for digit in digits.chars().map_while(|c| c.to_digit(base)) {
        let longer = value.checked_mul(base.into());
        value = longer.and_then(|own| own.checked_add(sign * i64::from(digit))).ok_or(limit)?;
    }
    Ok(value)
}

/// Reads `NCCL_IB_ADDR_RANGE`.
fn range(value: Option<&str>, family: Family) -> Range {
    /// How much of it NCCL copies.
    const LIMIT: usize = 127;
    let Some(value) = value.filter(|value| !value.is_empty()) else { return Range::All };
    let (value, _) = value.split_at(value.floor_char_boundary(LIMIT));
    let Some((address, bits)) = value.split_once('/') else { return Range::NoSlash };
    let Some(address) = parse_address(address, family) else { return Range::All };
    let length = if address.is_ipv4() { 32 } else { 128 };
    match atoi(bits) {
        bits if bits <= length => Range::Network(address, bits),
        _ => Range::All,
    }
}

impl Range {
    fn holds(&self, row: Option<&Row<'_>>) -> bool {
        let Self::Network(address, bits) = self else { return true };
        let Ok(bits) = u8::try_from(*bits) else { return false };
        let gid = row.map_or([0; 16], |row| row.gid.to_bytes());
        match address {
            std::net::IpAddr::V4(own) => {
                let [.., a, b, c, d] = gid;
                alike(&own.octets(), &[a, b, c, d], bits)
            }
            std::net::IpAddr::V6(own) => alike(&own.octets(), &gid, bits),
        }
    }
}

/// `NCCL_IB_HCA`: which ports are used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceList {
    variable: &'static str,
    excludes: bool,
    is_exact: bool,
    entries: Vec<(String, Option<i32>)>,
}

/// How many ports, and how many entries of `NCCL_IB_HCA`, NCCL has room for.
pub const ROOM: usize = 32;

impl DeviceList {
    /// Reads `NCCL_IB_HCA` as a release of NCCL does.
    #[must_use]
    pub fn nccl(text: &str, release: Release) -> Self {
        /// How much of a name the newest release keeps: the longest name that a device can have.
        const NAME_ROOM: usize = 63;
        let (excludes, text) = strip(text, '^');
        let (is_exact, text) = strip(text, '=');
        let entry = |entry: &str| {
            let (name, port) = match entry.split_once(':') {
                None => (entry, None),
                // Rail and plane follow the port. Older releases do not read them.
                Some((name, rest)) => (name, rest.split(':').next()),
            };
            let port = match port {
                None => None,
                Some("") if release >= Release::V2_30_7 => None,
                Some(port) => Some(atoi(port)).filter(|port| *port != -1),
            };
            // Older releases write past the buffer. No device has such a long name.
            let name = match name.get(..NAME_ROOM) {
                Some(cut) if release >= Release::V2_30_7 => cut,
                _ => name,
            };
            (!name.is_empty()).then(|| (name.to_owned(), port))
        };
        let entries = text.split(',').filter_map(entry).take(ROOM).collect();
        Self { variable: "NCCL_IB_HCA", excludes, is_exact, entries }
    }

    /// Reads `NVSHMEM_HCA_LIST`: exact names with a port.
    fn nvshmem(text: &str) -> Self {
        let (excludes, text) = strip(text, '^');
        let entry = |entry: &str| {
            let (name, port) = entry.split_once(':').unwrap_or((entry, ""));
            let port = (!port.is_empty()).then(|| atoi(port));
            (!name.is_empty()).then(|| (name.to_owned(), port))
        };
        let mut entries: Vec<_> = text.split(',').filter_map(entry).collect();
        entries.sort_unstable();
        Self { variable: "NVSHMEM_HCA_LIST", excludes, is_exact: true, entries }
    }

    /// Whether the port is used.
    #[must_use]
    pub fn takes(&self, device: &str, port: u32) -> bool {
        let is_named = |(name, own): &(String, Option<i32>)| {
            let is_device = if self.is_exact { device == name } else { device.starts_with(name) };
            is_device && own.is_none_or(|own| u32::try_from(own) == Ok(port))
        };
        let is_any = if self.entries.len() > ROOM {
            // Only NVSHMEM's list of exact names, which is sorted, may be that long.
            let find = |port| {
                let key = (device, port);
                self.entries.binary_search_by(|(name, own)| (name.as_str(), *own).cmp(&key)).is_ok()
            };
            find(None) || i32::try_from(port).is_ok_and(|port| find(Some(port)))
        } else {
            self.entries.iter().any(is_named)
        };
        // An empty list names every port; with `^` it names none.
        (self.entries.is_empty() || is_any) != self.excludes
    }
}

fn strip(text: &str, mark: char) -> (bool, &str) {
    text.strip_prefix(mark).map_or((false, text), |rest| (true, rest))
}

/// What NCCL or NVSHMEM does with a port.
#[must_use]
pub fn choose(port: &Port<'_>, settings: &Settings) -> Decision {
    match unused(port, settings) {
        Some(why) => Decision::unlooked(port, Outcome::Ignored(why)),
        None if port.is_ethernet() => choose_roce(port, settings),
        None => choose_infiniband(port, settings),
    }
}

/// What NCCL or NVSHMEM does with all ports of a host, in the order given. It is what [`choose`] says of
/// each port, except that NCCL has room for only 32 ports.
///
/// It counts device by device in libibverbs's order. Where that is not known, the order given is taken:
/// see [`is_order_known`].
#[must_use]
pub fn choose_all(ports: &[&Port<'_>], settings: &Settings) -> Vec<Decision> {
    let mut decisions: Vec<Decision> = ports.iter().map(|port| choose(port, settings)).collect();
    let is_used = |own: &Decision| !matches!(own.outcome, Outcome::Ignored(_));
    if matches!(settings.program, Program::Nvshmem)
        || decisions.iter().filter(|own| is_used(own)).count() <= ROOM
    {
        return decisions;
    }
    let mut order: Vec<(&&Port<'_>, &mut Decision)> = ports.iter().zip(&mut decisions).collect();
    if is_order_known(ports) {
        order.sort_by_key(|(port, _)| port.place);
    }
    let mut used = 0;
    for device in order.chunk_by_mut(|(one, _), (other, _)| one.device == other.device) {
        // NCCL checks the limit before each device, not before each port.
        let is_looked_at = used < ROOM;
        for (port, decision) in device.iter_mut().filter(|(_, own)| is_used(own)) {
            used += 1;
            if used > ROOM {
                let outcome = if is_looked_at {
                    Outcome::Fails(Why::Overrun)
                } else {
                    Outcome::Ignored(Why::NoRoom)
                };
                **decision = Decision::unlooked(port, outcome);
            }
        }
    }
    decisions
}

/// Whether it is known in which order libibverbs lists the devices of these ports of a host.
#[must_use]
pub fn is_order_known(ports: &[&Port<'_>]) -> bool {
    ports.iter().all(|port| port.place.is_some())
}

/// Why a port is not used.
fn unused(port: &Port<'_>, settings: &Settings) -> Option<Why> {
    if settings.is_disabled {
        Some(Why::Disabled)
    } else if port.state != PortState::ACTIVE {
        Some(Why::NotActive(port.state))
    } else if !matches!(port.link_layer, LinkLayer::INFINIBAND | LinkLayer::ETHERNET) {
        Some(Why::LinkLayer(port.link_layer))
    } else if settings.devices.takes(port.device, port.number) {
        None
    } else {
        Some(Why::NotListed(settings.devices.variable))
    }
}

/// On InfiniBand NCCL uses LIDs within a subnet. Up to 2.21 it never uses a GID there. The accepting side
/// still reads one by the rules of RoCE, and fails if there is none.
fn choose_infiniband(port: &Port<'_>, settings: &Settings) -> Decision {
    if settings.program == Program::Nvshmem {
        return Decision::unlooked(port, Outcome::ByLid);
    }
    if settings.program.release() < Release::V2_22 {
        let outcome = match index_of_roce(port, settings) {
            Ok(index) => match Outcome::of_index(port, index) {
                Outcome::Taken(_) | Outcome::Empty(_) => Outcome::ByLid,
                outside => outside,
            },
            Err(why) => Outcome::Fails(why),
        };
        return Decision::unlooked(port, outcome);
    }
    let index = match u32::try_from(settings.flid_index) {
        Err(_) => {
            let why = Why::BadValue("NCCL_IB_ROUTABLE_FLID_GID_INDEX");
            return Decision::unlooked(port, Outcome::Fails(why));
        }
        Ok(index) if index < port.gid_tbl_len && port.row(index).is_some_and(has_flid) => index,
        Ok(_) => 0,
    };
    let reason = if index == 0 { Reason::DefaultIndex } else { Reason::Routable };
    Decision::of_one(port, Outcome::of_index(port, index.into()), &reason)
}

/// Whether bytes 4 and 5 are not zero, as in a routable GID. The prefix is not checked.
fn has_flid(row: &Row<'_>) -> bool {
    let [_, _, _, _, high, low, ..] = row.gid.to_bytes();
    (high, low) != (0, 0)
}

/// Whether NCCL accepts the GID as an address: neither zero nor in `fe80::/64`.
fn is_valid(row: &Row<'_>) -> bool {
    !row.gid.is_zero() && row.gid.subnet_prefix() != 0xfe80 << 48
}

fn choose_roce(port: &Port<'_>, settings: &Settings) -> Decision {
    let outcome = match index_of_roce(port, settings) {
        Ok(index) => Outcome::of_index(port, index),
        Err(why) => return Decision::unlooked(port, Outcome::Fails(why)),
    };
    if settings.pinned().is_some() {
        let is_default =
            settings.program == Program::Nccl(Release::V2_20) && settings.gid_index == 0;
        let reason = if is_default { Reason::DefaultIndex } else { Reason::Pinned };
        return Decision::of_one(port, outcome, &reason);
    }
    let taken = outcome.index();
    let rows = port.rows.iter().map(|row| (row.index, explain(row, taken, port, settings)));
    Decision { rows: rows.collect(), outcome }
}

/// The index by the rules of RoCE: the index that is set, or the result of the search.
fn index_of_roce(port: &Port<'_>, settings: &Settings) -> Result<i64, Why> {
    if let Some(pinned) = settings.pinned() {
        return Ok(pinned);
    }
    if settings.range == Range::NoSlash
        && matches!(
            settings.program,
            Program::Nccl(Release::V2_21 | Release::V2_22) | Program::Nvshmem
        )
    {
        return Err(Why::RangeCrash);
    }
    walk(port, settings).map(i64::from)
}

/// The version that NCCL assumes for a candidate until the types file gives one. A user can ask for this
/// version.
const UNKNOWN_VERSION: i32 = -1;

/// The version that the types file of a row gives.
fn version_of(port: &Port<'_>, row: Option<&Row<'_>>) -> Option<i32> {
    row.filter(|_| port.has_types).and_then(Row::version).map(i32::from)
}

/// NCCL's walk over the table. An empty slot is a GID of zeros, which counts as IPv6.
fn walk(port: &Port<'_>, settings: &Settings) -> Result<u32, Why> {
    let (bears_missing, bears_hidden) = match settings.program {
        Program::Nvshmem => (true, true),
        Program::Nccl(release) => (false, release >= Release::V2_26),
    };
    // Reads the types file. That of an empty slot is hidden too.
    let read = |index, row: Option<&Row<'_>>| {
        if !port.has_types && !bears_missing {
            Err(Why::NoTypes)
        } else if row.is_none_or(|row| row.type_is_hidden) && !bears_hidden {
            Err(Why::UnreadableType(index))
        } else {
            Ok(version_of(port, row))
        }
    };
    let family = |row: Option<&Row<'_>>| row.map_or(Family::V6, Row::family);
    let mut current = (0, port.row(0));
    for (index, row) in slots(port) {
        let is_wanted = family(row) == settings.family && settings.range.holds(row);
        if is_wanted && family(current.1) != settings.family {
            current = (index, row);
        } else if is_wanted && row.is_some_and(is_valid) {
            // NCCL writes nothing for the row taken so far if its type is not known.
            let own = read(current.0, current.1)?;
            let candidate = read(index, row)?.unwrap_or(UNKNOWN_VERSION);
            let is_worse = own != Some(candidate) || !current.1.is_some_and(is_valid);
            if candidate == settings.version && is_worse {
                current = (index, row);
            }
        }
    }
    Ok(current.0)
}

/// The slots from 1 on that can matter: those in use, and the first slot of each run of empty ones.
fn slots<'p, 'i>(port: &'p Port<'i>) -> impl Iterator<Item = (u32, Option<&'p Row<'i>>)> {
    let rows = port.rows.iter().filter(|row| (1..port.gid_tbl_len).contains(&row.index));
    let mut next = 1;
    let length = port.gid_tbl_len;
    rows.map(Some)
        .chain([None])
        .flat_map(move |row| {
            let index = row.map_or(length, |row| row.index);
            let gap = (next < index).then_some((next, None));
            next = index.saturating_add(1);
            [gap, row.map(|row| (index, Some(row)))]
        })
        .flatten()
}

/// The reason for a row, given the chosen index; `None` for an empty slot.
fn explain(row: &Row<'_>, taken: Option<u32>, port: &Port<'_>, settings: &Settings) -> Reason {
    let version = version_of(port, Some(row)).unwrap_or(UNKNOWN_VERSION);
    let has_version = version == settings.version;
    let is_fit = row.family() == settings.family && is_valid(row);
    let is_in_range = settings.range.holds(Some(row));
    if row.index >= port.gid_tbl_len {
        return Reason::Unlooked;
    }
    if taken == Some(row.index) {
        return match (is_fit && has_version, is_in_range) {
            (true, true) if settings.version == UNKNOWN_VERSION => Reason::Untyped,
            (true, true) => Reason::LowestFit,
            (true, false) => Reason::StartFits,
            (false, _) if row.index == 0 => Reason::Start,
            (false, _) => Reason::FamilyAlone(settings.family),
        };
    }
    if row.type_is_hidden {
        Reason::TypeHidden
    } else if row.family() != settings.family {
        Reason::OtherFamily(settings.family)
    } else if !is_in_range {
        Reason::OutOfRange
    } else if !is_valid(row) {
        Reason::NotValid
    } else if let (true, Some(taken)) = (has_version, taken) {
        Reason::LowerFits(taken)
    } else {
        Reason::OtherVersion(settings.version)
    }
}
