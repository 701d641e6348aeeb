//! Drivers: what this crate knows of each, one row a driver in the table `DRIVERS`.
//!
//! A driver is known by the number that the kernel binds to a device, never by the device's name,
//! which udev changes. A driver without a row works too, if it takes zeros for a context.

use core::fmt;

use uverbs_uapi::driver::{self as abi, driver_id};
use zerocopy::IntoBytes;

/// The kernel's number of a driver (`enum rdma_driver_id`).
///
/// ```
/// use uverbs::driver::DriverId;
///
/// assert_eq!(DriverId::RXE.to_string(), "rxe");
/// assert_eq!(DriverId(99).to_string(), "unknown(99)");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct DriverId(pub u32);

/// What is known of a driver.
#[derive(Debug)]
struct Driver {
    id: u32,
    name: &'static str,
    request: ContextRequest,
    version: FirmwareVersion,
    /// The kernel's release from which on a device can be removed although it is open. Before it, and with
    /// `None`, the removal waits until every open file is closed.
    lets_go: Option<(u32, u32)>,
}

/// What a driver wants with `GET_CONTEXT`: the least that gives a context for queries.
#[derive(Clone, Copy, Debug)]
enum ContextRequest {
    /// Zeros: more than eight bytes, so that they go by address and satisfy the drivers that insist on a
    /// length.
    Zeros,
    Mlx5,
    Irdma,
    Efa,
}

/// How the number in `fw_ver` of a device's attributes is written, as rdma-core writes it.
#[derive(Clone, Copy, Debug)]
enum FirmwareVersion {
    /// `major.minor.patch` of 16 bits each; the patch has so many digits at least.
    Parts { digits: usize },
    /// `major.patch`, the first and the last of the 16-bit parts.
    MajorPatch,
    /// The low four bytes, the highest first.
    Bytes,
    /// The first four bytes in memory.
    BytesInMemory,
    /// The number says nothing: the text that the kernel has for the device.
    Text,
    /// Nothing.
    Empty,
}

use ContextRequest::{Efa, Irdma, Mlx5, Zeros};
use FirmwareVersion::{Bytes, BytesInMemory, Empty, MajorPatch, Parts, Text};

/// `major.minor.patch`, without leading zeros.
const PLAIN: FirmwareVersion = Parts { digits: 1 };

const fn row(
    id: u32,
    name: &'static str,
    request: ContextRequest,
    version: FirmwareVersion,
    lets_go: Option<(u32, u32)>,
) -> Driver {
    Driver { id, name, request, version, lets_go }
}

/// Known drivers. The kernel does not use an id again when a driver leaves it.
const DRIVERS: &[Driver] = &[
    row(driver_id::MLX5, "mlx5", Mlx5, Parts { digits: 4 }, Some((0, 0))),
    row(driver_id::MLX4, "mlx4", Zeros, Parts { digits: 3 }, Some((0, 0))),
    row(driver_id::CXGB3, "cxgb3", Zeros, PLAIN, None),
    row(driver_id::CXGB4, "cxgb4", Zeros, Bytes, None),
    row(driver_id::MTHCA, "mthca", Zeros, PLAIN, None),
    row(driver_id::BNXT_RE, "bnxt_re", Zeros, BytesInMemory, Some((6, 12))),
    row(driver_id::OCRDMA, "ocrdma", Zeros, Text, None),
    row(driver_id::NES, "nes", Zeros, PLAIN, None),
    row(driver_id::IRDMA, "irdma", Irdma, MajorPatch, Some((6, 1))),
    row(driver_id::VMW_PVRDMA, "vmw_pvrdma", Zeros, Parts { digits: 3 }, None),
    row(driver_id::QEDR, "qedr", Zeros, Bytes, None),
    row(driver_id::HNS, "hns", Zeros, Parts { digits: 3 }, Some((0, 0))),
    row(driver_id::USNIC, "usnic", Zeros, Empty, None),
    row(driver_id::RXE, "rxe", Zeros, PLAIN, Some((7, 3))),
    row(driver_id::HFI1, "hfi1", Zeros, PLAIN, None),
    row(driver_id::QIB, "qib", Zeros, PLAIN, None),
    row(driver_id::EFA, "efa", Efa, BytesInMemory, None),
    row(driver_id::SIW, "siw", Zeros, PLAIN, None),
    row(driver_id::ERDMA, "erdma", Zeros, PLAIN, Some((6, 12))),
    row(driver_id::MANA, "mana", Zeros, Empty, Some((6, 12))),
    row(driver_id::IONIC, "ionic", Zeros, Text, Some((7, 2))),
];

impl DriverId {
    /// NVIDIA (Mellanox) ConnectX-4 and newer.
    #[doc(alias = "mlx5dv_is_supported")]
    pub const MLX5: Self = Self(driver_id::MLX5);
    /// NVIDIA (Mellanox) ConnectX-3.
    pub const MLX4: Self = Self(driver_id::MLX4);
    /// Intel and Cornelis Omni-Path.
    pub const HFI1: Self = Self(driver_id::HFI1);
    /// Soft RoCE.
    pub const RXE: Self = Self(driver_id::RXE);
    /// Soft iWARP.
    pub const SIW: Self = Self(driver_id::SIW);

    fn driver(self) -> Option<&'static Driver> {
        DRIVERS.iter().find(|driver| driver.id == self.0)
    }

    /// The driver's name, if this version knows it.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        self.driver().map(|driver| driver.name)
    }

    /// The firmware's version as text, in the form that rdma-core gives it.
    ///
    /// `number` is `fw_ver` of the [device's attributes](crate::Context::query_device); drivers put the
    /// version into it in different ways. `text` is [`Device::fw_version`](crate::Device::fw_version), which
    /// counts for two drivers that leave the number empty. Empty for drivers without a firmware version.
    ///
    /// ```
    /// use uverbs::driver::DriverId;
    ///
    /// assert_eq!(DriverId::MLX5.firmware_version(0x1c_0027_03f6, None), "28.39.1014");
    /// ```
    #[doc(alias = "fw_ver")]
    #[must_use]
    pub fn firmware_version(self, number: u64, text: Option<&str>) -> String {
        let part = |shift: u32| (number >> shift) & 0xffff;
        let byte = |shift: u32| (number >> shift) & 0xff;
        let (major, minor, patch) = (part(32), part(16), part(0));
        match self.driver().map_or(PLAIN, |driver| driver.version) {
            Parts { digits } => format!("{major}.{minor}.{patch:0digits$}"),
            MajorPatch => format!("{major}.{patch}"),
            Bytes => format!("{}.{}.{}.{}", byte(24), byte(16), byte(8), byte(0)),
            BytesInMemory => {
                let [one, two, three, four, ..] = number.to_ne_bytes();
                format!("{one}.{two}.{three}.{four}")
            }
            Text => text.unwrap_or_default().to_owned(),
            Empty => String::new(),
        }
    }

    /// Whether its devices are software.
    pub(crate) const fn is_software(self) -> bool {
        matches!(self, Self::RXE | Self::SIW)
    }

    /// Whether a device of this driver can be removed although it is open, by the kernel's release.
    pub(crate) fn lets_go(self, kernel: (u32, u32)) -> bool {
        self.driver().and_then(|driver| driver.lets_go).is_some_and(|since| since <= kernel)
    }

    /// What the driver wants with `GET_CONTEXT`.
    pub(crate) fn context_request(self) -> &'static [u8] {
        static MLX5: abi::Mlx5AllocUcontextRequest = mlx5_request(0);
        static IRDMA: abi::IrdmaAllocUcontextRequest = abi::IrdmaAllocUcontextRequest {
            reserved: 0,
            userspace_ver: abi::irdma::ABI_VERSION,
            reserved2: [0; 3],
            comp_mask: abi::irdma::WQE_FORMAT_V2,
        };
        static EFA: abi::EfaAllocUcontextRequest = abi::EfaAllocUcontextRequest {
            supported_caps: abi::efa::TX_BATCH | abi::efa::MIN_SQ_WR,
            reserved: [0; 4],
        };
        static ZEROS: [u8; 16] = [0; 16];
        match self.driver().map_or(Zeros, |driver| driver.request) {
            Mlx5 => MLX5.as_bytes(),
            Irdma => IRDMA.as_bytes(),
            Efa => EFA.as_bytes(),
            Zeros => &ZEROS,
        }
    }
}

/// What mlx5 wants for a context that may send commands to the firmware.
pub(crate) fn devx_context_request() -> &'static [u8] {
    static DEVX: abi::Mlx5AllocUcontextRequest = mlx5_request(abi::mlx5::DEVX);
    DEVX.as_bytes()
}

/// Dynamic UAR: no doorbell pages are taken.
const fn mlx5_request(flags: u32) -> abi::Mlx5AllocUcontextRequest {
    abi::Mlx5AllocUcontextRequest {
        total_num_bfregs: 2,
        num_low_latency_bfregs: 0,
        flags,
        comp_mask: 0,
        max_cqe_version: 0,
        reserved0: 0,
        reserved1: 0,
        reserved2: 0,
        lib_caps: abi::mlx5::LIB_CAP_DYN_UAR,
    }
}

impl fmt::Display for DriverId {
    /// The name, or `unknown(N)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.pad(name),
            None => f.pad(&format!("unknown({})", self.0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn firmware_versions_as_each_driver_s_are_written() {
        let of = |driver, number| DriverId(driver).firmware_version(number, Some("1.2-x"));
        assert_eq!(of(driver_id::MLX5, 0x001c_0027_03f6), "28.39.1014");
        assert_eq!(of(driver_id::MLX5, 0x0010_0001_0002), "16.1.0002");
        assert_eq!(of(driver_id::MLX4, 0x0002_002a_1388), "2.42.5000");
        assert_eq!(of(driver_id::HNS, 0x0001_0002_0003), "1.2.003");
        assert_eq!(of(driver_id::RXE, 0), "0.0.0");
        assert_eq!(of(99, 0x0001_0002_0003), "1.2.3");
        assert_eq!(of(driver_id::IRDMA, 0x0001_0000_0044), "1.68");
        assert_eq!(of(driver_id::CXGB4, 0x0119_0401), "1.25.4.1");
        let in_memory = u64::from_ne_bytes([1, 2, 3, 4, 0, 0, 0, 0]);
        assert_eq!(of(driver_id::EFA, in_memory), "1.2.3.4");
        assert_eq!(of(driver_id::IONIC, 7), "1.2-x");
        assert_eq!(of(driver_id::MANA, 7), "");
    }

    /// The page names the drivers whose devices may be kept open, each with the release.
    #[test]
    fn the_page_says_which_devices_are_kept_open() {
        let page = include_str!("docs/watch.md");
        let (_, table) = page.split_once("| driver | kept open from Linux |\n|---|---|\n").unwrap();
        let mut told = std::collections::BTreeMap::new();
        for line in table.lines().take_while(|line| line.starts_with('|')) {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            let names = cells[1].split(", ").map(|name| name.trim_matches('`').to_owned());
            told.extend(names.map(|name| (name, cells[2].to_owned())));
        }
        assert_eq!(told.remove("all others").as_deref(), Some("never"));
        let known = DRIVERS.iter().filter_map(|driver| {
            let release = match driver.lets_go? {
                (0, 0) => "all".to_owned(),
                (major, minor) => format!("{major}.{minor}"),
            };
            Some((driver.name.to_owned(), release))
        });
        assert_eq!(told, known.collect());
    }

    #[test]
    fn one_row_a_driver() {
        let mut ids: Vec<u32> = DRIVERS.iter().map(|driver| driver.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), DRIVERS.len());
    }
}
