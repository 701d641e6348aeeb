//! Queries that only the mlx5 driver answers (NVIDIA ConnectX-4 and newer, `BlueField`).
//!
//! [`query_port`] asks the driver how steering identifies a port: [`mlx5dv_query_port(3)`]. [`devx`] sends
//! commands to the device's firmware: states, addresses and counters of vports, capabilities, the board.
//!
//! [`mlx5dv_query_port(3)`]: https://man7.org/linux/man-pages/man3/mlx5dv_query_port.3.html

use crate::context::Context;
use crate::device::Device;
use crate::driver::DriverId;
use crate::error::{Cause, Result};

pub mod devx;
pub mod port;

pub use port::{query_port, query_port_into};

/// Opens an mlx5 device as [`Context::open`] does.
///
/// # Errors
/// Those of [`Context::open`]; another driver's device ([`Cause::OtherDriver`], `EOPNOTSUPP`). If the
/// driver is already known, such a device is not opened.
pub fn open(device: &Device) -> Result<Context> {
    Context::open_mlx5(device, false)
}

/// Refuses a device of another driver, so that mlx5's own methods are never sent to it.
fn require_mlx5(context: &Context) -> Result<(), Cause> {
    match context.driver() {
        DriverId::MLX5 => Ok(()),
        other => Err(Cause::OtherDriver(other)),
    }
}
