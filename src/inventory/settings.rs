//! The variables that set which GID NCCL, NVSHMEM and UCX use, and where they are set.
//!
//! NCCL reads files of `NAME=VALUE` lines beside the environment, and never overwrites what is set:
//! so the environment counts before the user's file, and that before `/etc/nccl.conf`. Which file is
//! the user's, and how its lines are read, depends on the release: see [`SettingsReading`]. Not known
//! here are values that a launcher sets, UCX's own files, its variables for single transports, and which transport
//! NVSHMEM uses.

use core::fmt;
use core::ops::RangeInclusive;

/// The variables that are looked for. No others are read or recorded.
pub const NAMES: [&str; 29] = [
    "NCCL_IB_DISABLE",
    "NCCL_IB_HCA",
    "NCCL_IB_GID_INDEX",
    "NCCL_IB_ROCE_VERSION_NUM",
    "NCCL_IB_ADDR_FAMILY",
    "NCCL_IB_ADDR_RANGE",
    "NCCL_IB_ROUTABLE_FLID_GID_INDEX",
    "NCCL_NET",
    "NCCL_NET_PLUGIN",
    "NCCL_ENV_PLUGIN",
    "NVSHMEM_HCA_LIST",
    "NVSHMEM_HCA_PE_MAPPING",
    "NVSHMEM_HCA_PREFIX",
    "NVSHMEM_ENABLE_NIC_PE_MAPPING",
    "NVSHMEM_IB_GID_INDEX",
    "NVSHMEM_IB_ROCE_VERSION_NUM",
    "NVSHMEM_IB_ADDR_FAMILY",
    "NVSHMEM_IB_ADDR_RANGE",
    "UCX_TLS",
    "UCX_MODULES",
    "UCX_NET_DEVICES",
    "UCX_IB_PKEY",
    "UCX_IB_SUBNET_PREFIX",
    "UCX_IB_GID_INDEX",
    "UCX_IB_ROCE_SUBNETS",
    "UCX_IB_ROCE_LOCAL_SUBNET",
    "UCX_IB_ROCE_SUBNET_PREFIX_LEN",
    "UCX_IB_ROCE_REACHABILITY_MODE",
    "UCX_IB_FLID_ROUTE",
];

/// Releases of NCCL, as they differ in which files they read, and how. Each means all up to the
/// next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SettingsReading {
    /// Up to 2.22: the user's file is `.nccl.conf` in the home of the password entry.
    V2_4,
    /// 2.23 to 2.29: it is the file that `NCCL_CONF_FILE` names, if that is set and not empty.
    V2_23,
    /// From 2.30 on: without `NCCL_CONF_FILE` it is `.nccl.conf` in `$HOME`. A carriage return at a
    /// line's end is left out, and a line ends at 4,095 bytes.
    V2_30,
}

impl SettingsReading {
    /// All of them, in their order.
    pub const ALL: [Self; 3] = [Self::V2_4, Self::V2_23, Self::V2_30];

    /// The newest.
    pub const NEWEST: Self = Self::V2_30;

    /// The first release that reads so; the oldest has no name, as it was always so.
    #[must_use]
    pub fn since(self) -> Option<&'static str> {
        match self {
            Self::V2_4 => None,
            Self::V2_23 => Some("2.23"),
            Self::V2_30 => Some("2.30"),
        }
    }
}

/// A variable that is set.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Setting {
    /// Its name.
    pub name: String,
    /// Its value, to the letter.
    pub value: String,
    /// The file that sets it; `None` for the environment.
    pub file: Option<String>,
    /// The releases of NCCL that see it: all of them, but for files.
    pub readings: RangeInclusive<SettingsReading>,
}

impl Setting {
    /// A setting that every release sees.
    #[must_use]
    pub fn new(name: impl Into<String>, value: impl Into<String>, file: Option<String>) -> Self {
        Self { name: name.into(), value: value.into(), file, readings: Self::everywhere() }
    }

    /// All releases.
    #[must_use]
    pub const fn everywhere() -> RangeInclusive<SettingsReading> {
        SettingsReading::V2_4..=SettingsReading::NEWEST
    }
}

impl fmt::Display for Setting {
    /// `NCCL_IB_GID_INDEX=3`, and the file if there is one: ` (/etc/nccl.conf)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name, self.value)?;
        self.file.as_ref().map_or(Ok(()), |file| write!(f, " ({file})"))
    }
}

/// Reads a file of NCCL's: lines of `NAME=VALUE`, others and `#` comments left out. Of a name that
/// occurs twice the first counts, and 1,023 bytes of a value do. Only NCCL's own variables of [`NAMES`]
/// are kept. `readings` are the releases that read this file.
///
/// ```
/// use uverbs::inventory::settings::{Setting, parse};
/// let settings = parse(b"# pinned\nNCCL_IB_GID_INDEX=3\n", "/etc/nccl.conf", &Setting::everywhere());
/// assert_eq!(settings[0].to_string(), "NCCL_IB_GID_INDEX=3 (/etc/nccl.conf)");
/// ```
#[must_use]
pub fn parse(bytes: &[u8], file: &str, readings: &RangeInclusive<SettingsReading>) -> Vec<Setting> {
    let setting = |(name, value): (&str, &[u8]), readings| {
        let value = String::from_utf8_lossy(value).into_owned();
        Setting { readings, ..Setting::new(name, value, Some(file.to_owned())) }
    };
    let all = |lines: Vec<_>, readings: RangeInclusive<SettingsReading>| -> Vec<Setting> {
        lines.into_iter().map(|line| setting(line, readings.clone())).collect()
    };
    let old: Vec<_> = bytes.split(|byte| *byte == b'\n').filter_map(variable).collect();
    let new: Vec<_> = pieces(bytes).filter_map(variable).collect();
    if old == new || *readings.end() < SettingsReading::V2_30 {
        all(old, readings.clone())
    } else if *readings.start() == SettingsReading::V2_30 {
        all(new, readings.clone())
    } else {
        let mut found = all(new, SettingsReading::V2_30..=SettingsReading::V2_30);
        found.extend(all(old, *readings.start()..=SettingsReading::V2_23));
        found
    }
}

/// The lines as 2.30 reads them: into a buffer of 4,096 bytes with C's `fgets`, and without the
/// carriage return at the end.
fn pieces(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    const ROOM: usize = 4095;
    let lines = bytes.split_inclusive(|byte| *byte == b'\n');
    lines.flat_map(|line| line.chunks(ROOM)).map(|piece| {
        let piece = piece.strip_suffix(b"\n").unwrap_or(piece);
        piece.strip_suffix(b"\r").unwrap_or(piece)
    })
}

/// One line's name and value, if it is one of NCCL's that matter here.
fn variable(line: &[u8]) -> Option<(&'static str, &[u8])> {
    /// How much of a value is copied.
    const ROOM: usize = 1023;
    let line = line.split(|byte| *byte == 0).next()?;
    let end = line.iter().position(|byte| *byte == b'=')?;
    let (name, value) = line.split_at_checked(end)?;
    let known = NAMES.into_iter().filter(|known| known.starts_with("NCCL_"));
    let name = known.into_iter().find(|known| known.as_bytes() == name)?;
    let value = value.strip_prefix(b"=")?;
    Some((name, value.get(..ROOM).unwrap_or(value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(bytes: &[u8]) -> Vec<String> {
        let found = parse(bytes, "f", &Setting::everywhere());
        let text = |own: &Setting| {
            let (first, last) = (own.readings.start(), own.readings.end());
            let all = own.readings == Setting::everywhere();
            let releases = if all { String::new() } else { format!(" {first:?} {last:?}") };
            format!("{own}{releases}")
        };
        found.iter().map(text).collect()
    }

    #[test]
    fn lines_of_a_file() {
        let text = "# comment\n\nNCCL_IB_HCA==mlx5_0\n#NCCL_IB_GID_INDEX=9\nNCCL_IB_GID_INDEX=3\n\
                    NCCL_IB_GID_INDEX=4\nNCCL_DEBUG=INFO\nUCX_IB_GID_INDEX=1\n NCCL_IB_HCA=x\nodd";
        let expected =
            ["NCCL_IB_HCA==mlx5_0 (f)", "NCCL_IB_GID_INDEX=3 (f)", "NCCL_IB_GID_INDEX=4 (f)"];
        assert_eq!(parsed(text.as_bytes()), expected);
    }

    /// A carriage return belongs to the value up to 2.29; of two the first always does.
    #[test]
    fn carriage_returns() {
        let found = parsed(b"NCCL_IB_ADDR_FAMILY=AF_INET6\r\nNCCL_IB_GID_INDEX=3\n");
        let expected = [
            "NCCL_IB_ADDR_FAMILY=AF_INET6 (f) V2_30 V2_30",
            "NCCL_IB_GID_INDEX=3 (f) V2_30 V2_30",
            "NCCL_IB_ADDR_FAMILY=AF_INET6\r (f) V2_4 V2_23",
            "NCCL_IB_GID_INDEX=3 (f) V2_4 V2_23",
        ];
        assert_eq!(found, expected);
        let of = |readings| parse(b"NCCL_IB_HCA=a\r\r\n", "f", &readings)[0].value.clone();
        assert_eq!(of(SettingsReading::V2_30..=SettingsReading::V2_30), "a\r");
        assert_eq!(of(SettingsReading::V2_4..=SettingsReading::V2_23), "a\r\r");
    }

    #[test]
    fn long_lines() {
        let long = format!("NCCL_IB_HCA={}\n", "x".repeat(2000));
        let found = parse(long.as_bytes(), "f", &Setting::everywhere());
        assert_eq!(found[0].value.len(), 1023);
        // 2.30 takes what comes after 4,095 bytes of a comment for a line of its own.
        let text = format!("{:#<4095}NCCL_IB_GID_INDEX=3\nNCCL_IB_HCA=a\0b\n", "");
        let expected = [
            "NCCL_IB_GID_INDEX=3 (f) V2_30 V2_30",
            "NCCL_IB_HCA=a (f) V2_30 V2_30",
            "NCCL_IB_HCA=a (f) V2_4 V2_23",
        ];
        assert_eq!(parsed(text.as_bytes()), expected);
        assert!(parsed(b"NCCL_IB_HCA\0=a").is_empty());
    }
}
