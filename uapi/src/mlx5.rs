//! The driver mlx5's own part of the uverbs ioctl: methods, their attributes, and their answer.
//!
//! Kernel headers `rdma/mlx5_user_ioctl_cmds.h` (ids) and `rdma/mlx5_user_ioctl_verbs.h` (the
//! structure). All ids are in the driver's namespace, from 0x1000 on. The same number has another meaning
//! for another driver. Within these methods it also differs from
//! [`ATTR_UHW_IN`](crate::ioctl::ATTR_UHW_IN) and `ATTR_UHW_OUT`. The commands that
//! [`devx_method::OTHER`] sends to the firmware are in [`mlx5_firmware`](crate::mlx5_firmware).

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Objects of the driver.
pub mod object {
    /// Commands of a user context to the firmware. Devices whose firmware has no user contexts do not have
    /// it.
    pub const DEVX: u16 = 0x1000;
}

/// The driver's methods of [`object::DEVICE`](crate::device::object::DEVICE).
pub mod device_method {
    /// The driver's data about a port for steering, since 5.13. Attributes
    /// [`query_port`](super::query_port).
    pub const QUERY_PORT: u16 = 0x1000;
}

/// The driver's attribute of [`QUERY_CONTEXT`](crate::device::method::QUERY_CONTEXT).
pub mod query_context {
    /// Answer: an [`Mlx5AllocUcontextResponse`](crate::driver::Mlx5AllocUcontextResponse), since
    /// 5.9. Mandatory.
    pub const RESP_UCTX: u16 = 0x1000;
}

/// Attributes of [`device_method::QUERY_PORT`].
pub mod query_port {
    /// Port number, `u32`: 4 bytes inline, unlike the constants of the core's methods. Mandatory.
    pub const PORT_NUM: u16 = 0x1000;
    /// Answer: a [`QueryPort`](super::QueryPort). Mandatory.
    pub const RESP: u16 = 0x1001;
}

/// Methods of [`object::DEVX`].
pub mod devx_method {
    /// Sends a general command, one that makes no object, to the firmware. Attributes
    /// [`devx_other`](super::devx_other).
    pub const OTHER: u16 = 0x1000;
}

/// Attributes of [`devx_method::OTHER`].
pub mod devx_other {
    /// The command, at least 16 bytes. Mandatory.
    pub const CMD_IN: u16 = 0x1000;
    /// Answer, at least 16 bytes. Mandatory.
    pub const CMD_OUT: u16 = 0x1001;
}

/// Answer of [`device_method::QUERY_PORT`]. C name `struct mlx5_ib_uapi_query_port`; rdma-core's
/// `struct mlx5dv_port` is the same.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
#[repr(C, align(8))]
pub struct QueryPort {
    /// Which fields are set: bits of [`query_port_flag`].
    pub flags: u64,
    /// Number of the vport.
    pub vport: u16,
    /// Number of the vport's function within the device.
    pub vport_vhca_id: u16,
    /// Number of the function that owns the e-switch.
    pub esw_owner_vhca_id: u16,
    /// Zero.
    pub reserved: u16,
    /// Address for steering, receive side.
    pub vport_steering_icm_rx: u64,
    /// Address for steering, transmit side.
    pub vport_steering_icm_tx: u64,
    /// Value of register C0 that marks the vport's packets for steering.
    pub reg_c0_value: u32,
    /// Which bits of the register count.
    pub reg_c0_mask: u32,
}

layout!(QueryPort, size 40, align 8, {
    flags: 0,
    vport: 8,
    vport_vhca_id: 10,
    esw_owner_vhca_id: 12,
    reserved: 14,
    vport_steering_icm_rx: 16,
    vport_steering_icm_tx: 24,
    reg_c0_value: 32,
    reg_c0_mask: 36,
});

/// Bits of [`QueryPort::flags`].
pub mod query_port_flag {
    /// `vport` is set.
    pub const VPORT: u64 = 1 << 0;
    /// `vport_vhca_id` is set.
    pub const VPORT_VHCA_ID: u64 = 1 << 1;
    /// `vport_steering_icm_rx` is set.
    pub const VPORT_STEERING_ICM_RX: u64 = 1 << 2;
    /// `vport_steering_icm_tx` is set.
    pub const VPORT_STEERING_ICM_TX: u64 = 1 << 3;
    /// `reg_c0_value` and `reg_c0_mask` are set.
    pub const VPORT_REG_C0: u64 = 1 << 4;
    /// `esw_owner_vhca_id` is set.
    pub const ESW_OWNER_VHCA_ID: u64 = 1 << 5;
}
