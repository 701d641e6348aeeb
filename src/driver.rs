//! Drivers: their ids, names, and what each wants to hear with `GET_CONTEXT`.
//!
//! A driver is known by the number that the kernel binds to a device, never by the device's name,
//! which udev changes.

use core::fmt;

use uverbs_uapi::driver as abi;
use zerocopy::IntoBytes;

/// The kernel's number of a driver (`enum rdma_driver_id`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DriverId(pub u32);

/// Known drivers. An id is not used again when a driver leaves the kernel.
const NAMES: &[(u32, &str)] = &[
    (abi::driver_id::MLX5, "mlx5"),
    (abi::driver_id::MLX4, "mlx4"),
    (abi::driver_id::CXGB3, "cxgb3"),
    (abi::driver_id::CXGB4, "cxgb4"),
    (abi::driver_id::MTHCA, "mthca"),
    (abi::driver_id::BNXT_RE, "bnxt_re"),
    (abi::driver_id::OCRDMA, "ocrdma"),
    (abi::driver_id::NES, "nes"),
    (abi::driver_id::IRDMA, "irdma"),
    (abi::driver_id::VMW_PVRDMA, "vmw_pvrdma"),
    (abi::driver_id::QEDR, "qedr"),
    (abi::driver_id::HNS, "hns"),
    (abi::driver_id::USNIC, "usnic"),
    (abi::driver_id::RXE, "rxe"),
    (abi::driver_id::HFI1, "hfi1"),
    (abi::driver_id::QIB, "qib"),
    (abi::driver_id::EFA, "efa"),
    (abi::driver_id::SIW, "siw"),
    (abi::driver_id::ERDMA, "erdma"),
    (abi::driver_id::MANA, "mana"),
    (abi::driver_id::IONIC, "ionic"),
];

impl DriverId {
    /// NVIDIA (Mellanox) ConnectX-4 and newer.
    pub const MLX5: Self = Self(abi::driver_id::MLX5);
    /// Soft RoCE.
    pub const RXE: Self = Self(abi::driver_id::RXE);

    /// The driver's name, if this version knows it.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        NAMES.iter().find(|(id, _)| *id == self.0).map(|(_, name)| *name)
    }

    /// What the driver wants with `GET_CONTEXT`: the least that gives a context for queries.
    ///
    /// mlx5, irdma and efa want values; all others take zeros, of which more than eight bytes are
    /// sent so that they go by address and satisfy the drivers that insist on a length.
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
        match self.0 {
            abi::driver_id::MLX5 => MLX5.as_bytes(),
            abi::driver_id::IRDMA => IRDMA.as_bytes(),
            abi::driver_id::EFA => EFA.as_bytes(),
            _ => &ZEROS,
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
