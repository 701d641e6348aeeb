//! What only the mlx5 driver (NVIDIA ConnectX-4 and newer, `BlueField`) tells of its ports.
//!
//! [`query_port`] asks the driver how steering knows a port: [`mlx5dv_query_port(3)`]. [`devx`] sends
//! commands to the device's firmware: states, addresses and counters of vports, capabilities, the
//! board.
//!
//! [`mlx5dv_query_port(3)`]: https://man7.org/linux/man-pages/man3/mlx5dv_query_port.3.html

use crate::context::Context;
use crate::device::Device;
use crate::driver::DriverId;
use crate::error::{Cause, Result};

pub mod devx;
pub mod port;

pub use port::{query_port, query_port_into};

/// Opens a device as [`Context::open`] does, if it is one of mlx5's.
///
/// # Errors
/// Those of [`Context::open`]; another driver's device ([`Cause::OtherDriver`], `EOPNOTSUPP`), which
/// is not opened where its driver is known before.
pub fn open(device: &Device) -> Result<Context> {
    Context::open_mlx5(device, false)
}

/// Makes sure that the driver's own methods are asked of no other driver.
fn require_mlx5(context: &Context) -> Result<(), Cause> {
    match context.driver() {
        DriverId::MLX5 => Ok(()),
        other => Err(Cause::OtherDriver(other)),
    }
}
