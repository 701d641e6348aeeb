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
    pub(super) fn nvshmem(text: &str) -> Self {
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
