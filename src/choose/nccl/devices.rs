//! The lists of devices that NCCL and NVSHMEM use.

use super::numbers::atoi;
use super::release::Release;

/// `NCCL_IB_HCA`: which ports are used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceList {
    pub(super) variable: &'static str,
    excludes: bool,
    is_exact: bool,
    entries: Vec<(String, Option<i32>)>,
    /// Whether there are more entries than each release of the program keeps.
    pub(super) is_cut: bool,
}

/// How many ports, and how many entries of `NCCL_IB_HCA`, NCCL has room for.
pub const ROOM: usize = 32;

/// How many ports some releases of NCCL before 2.21 have room for.
pub(in crate::choose) const ROOM_BEFORE: usize = 16;

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
        Self { variable: "NCCL_IB_HCA", excludes, is_exact, entries, is_cut: false }
    }

    /// Reads `NVSHMEM_HCA_LIST`: exact names with a port.
    pub(super) fn nvshmem(text: &str) -> Self {
        /// How many entries NVSHMEM keeps. Newer releases keep 48.
        const ENTRIES: usize = 16;
        let (excludes, text) = strip(text, '^');
        let entry = |entry: &str| {
            let (name, port) = match entry.split_once(':') {
                None => (entry, None),
                Some((name, port)) => (name, Some(atoi(port)).filter(|port| *port != -1)),
            };
            (!name.is_empty()).then(|| (name.to_owned(), port))
        };
        let mut all = text.split(',').filter_map(entry);
        let entries: Vec<_> = all.by_ref().take(ENTRIES).collect();
        let is_cut = all.next().is_some();
        // `^` before nothing leaves nothing out.
        let excludes = excludes && !entries.is_empty();
        Self { variable: "NVSHMEM_HCA_LIST", excludes, is_exact: true, entries, is_cut }
    }

    /// Whether the port is used.
    #[must_use]
    pub fn takes(&self, device: &str, port: u32) -> bool {
        let is_named = |(name, own): &(String, Option<i32>)| {
            let is_device = if self.is_exact { device == name } else { device.starts_with(name) };
            is_device && own.is_none_or(|own| u32::try_from(own) == Ok(port))
        };
        let is_any = self.entries.iter().any(is_named);
        // An empty list names every port. With `^` none is left to NCCL.
        (self.entries.is_empty() || is_any) != self.excludes
    }
}

fn strip(text: &str, mark: char) -> (bool, &str) {
    text.strip_prefix(mark).map_or((false, text), |rest| (true, rest))
}
