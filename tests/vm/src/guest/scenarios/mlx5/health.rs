//! A device whose firmware reports a fatal error.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use nix::libc;
use uverbs::error::Cause;
use uverbs_mlx5_function::control::Order;
use uverbs_mlx5_function::description::Description;

use super::opened_as_described;
use crate::lab;
use crate::lab::mlx5::Mlx5;

/// The kernel's driver gives a device up whose health is fatal: contexts on it stay without a
/// device. Found anew when it is well again, it answers.
pub(crate) fn fatal_error() -> Result<()> {
    let description = Description::infiniband(1);
    let device = Mlx5::bind(0, &description)?;
    let function = device.function();
    let context = opened_as_described(&device, &description)?;
    function.order(Order::Health { syndrome: 1, fatal: true })?;
    // A query of what the kernel has in memory: one that needs the device would wait for it.
    let is_given_up = || context.query_gid_ex(1, 0).is_err();
    lab::wait_within(Duration::from_mins(4), "the kernel gives it up", is_given_up)?;
    let error = context.query_gid_ex(1, 0).err().context("an answer of what was given up")?;
    println!("{error}");
    ensure!(*error.cause() == Cause::DeviceGone(libc::EIO), "{error:?}");

    function.order(Order::Health { syndrome: 0, fatal: false })?;
    device.unplug()?;
    function.rescan()?;
    drop(opened_as_described(&Mlx5::bind_as_it_is(function)?, &description)?);
    Ok(())
}
