//! [`c_programs`](crate::scenarios::c_programs) on every kind of function. A run that takes samples has one release
//! of rdma-core in each situation, and a third of the lines.

use std::fs;

use anyhow::Result;
use uverbs_mlx5_function::control::Fault;
use uverbs_mlx5_function::description::{Description, Mode};

use super::modes::unlike_ports;
use crate::lab::mlx5::Mlx5;
use crate::lab::{self, run};
use crate::scenarios::c_programs::{
    LEAKS, check_accesses, check_memory, compare_in_turn, compare_shortly, compare_without_devx,
};

/// Most of these take minutes, as each P_Key is a command of its own to the firmware, so only the
/// newest kernel has them; one is for all kernels, and what the programs ask is asked on every kernel
/// by the other scenarios.
fn on_the_newest_kernel() -> Result<()> {
    lab::on_the_newest_kernel("C programs on mlx5 take minutes")
}

/// InfiniBand, one port.
pub(crate) fn on_one_infiniband_port() -> Result<()> {
    on_the_newest_kernel()?;
    let _device = Mlx5::bind(0, &Description::infiniband(1))?;
    compare_in_turn(2)
}

/// InfiniBand, two ports that have nothing in common.
pub(crate) fn on_two_infiniband_ports() -> Result<()> {
    let _device = Mlx5::bind(0, &unlike_ports())?;
    compare_shortly(0)
}

/// RoCE, down and up.
pub(crate) fn on_roce() -> Result<()> {
    on_the_newest_kernel()?;
    let device = Mlx5::bind(0, &Description::roce())?;
    settle(&device)?;
    compare_shortly(1)?;
    let netdev = device.netdev()?;
    run(&["ip", "address", "add", "10.9.0.1/24", "dev", &netdev])?;
    run(&["ip", "link", "set", &netdev, "up"])?;
    settle(&device)?;
    compare_shortly(2)
}

/// An e-switch manager, before and in switchdev mode.
pub(crate) fn on_switchdev() -> Result<()> {
    on_the_newest_kernel()?;
    let mut device = Mlx5::bind(0, &Description::switchdev())?;
    compare_shortly(3)?;
    device.switchdev()?;
    compare_shortly(4)
}

/// An embedded CPU with VFs, and one with a vport of its own, in switchdev mode.
pub(crate) fn on_an_embedded_cpu() -> Result<()> {
    on_the_newest_kernel()?;
    let mode = Mode::EmbeddedCpu { host_vfs: 1, own_vport: true };
    let with_a_vport = Description { mode, ..Description::embedded_cpu(1) };
    for (description, number) in [(Description::embedded_cpu(2), 5), (with_a_vport, 6)] {
        let mut device = Mlx5::bind(0, &description)?;
        device.switchdev()?;
        compare_shortly(number)?;
    }
    Ok(())
}

/// Two devices of different kinds.
pub(crate) fn on_two_devices() -> Result<()> {
    on_the_newest_kernel()?;
    let _infiniband = Mlx5::bind(0, &Description::infiniband(1))?;
    let roce = Mlx5::bind(1, &Description::roce().sibling())?;
    settle(&roce)?;
    compare_shortly(7)
}

/// Firmware that refuses DEVX.
pub(crate) fn without_devx() -> Result<()> {
    const CREATE_UCTX: u16 = 0xa04;
    const NO_RESOURCES: u8 = 0x0f;
    on_the_newest_kernel()?;
    let device = Mlx5::bind(0, &Description::infiniband(1))?;
    let fault = Fault::Status { status: NO_RESOURCES, syndrome: 0 };
    device.function().inject(CREATE_UCTX, fault)?;
    compare_without_devx(8)
}

/// Checks of every access to memory, with firmware commands.
pub(crate) fn sanitized() -> Result<()> {
    on_the_newest_kernel()?;
    let _device = Mlx5::bind(0, &Description::infiniband(2))?;
    check_accesses(10)
}

/// Valgrind, with firmware commands. What libibumad's part does is the same as on soft RoCE, and takes
/// many minutes for all the P_Keys.
pub(crate) fn under_valgrind() -> Result<()> {
    on_the_newest_kernel()?;
    let _device = Mlx5::bind(0, &Description::infiniband(1))?;
    check_memory(&[&LEAKS[..], &["surface_umad"]].concat())
}

/// Waits until its GID table and its port's state no longer change.
fn settle(device: &Mlx5) -> Result<()> {
    let folder = format!("/sys/class/infiniband/{}/ports/1", device.name());
    let seen = || -> Result<Vec<String>> {
        let mut seen = vec![fs::read_to_string(format!("{folder}/state"))?];
        for index in lab::names_in(&format!("{folder}/gids"))? {
            seen.push(fs::read_to_string(format!("{folder}/gids/{index}"))?);
        }
        Ok(seen)
    };
    let mut before = Vec::new();
    let mut times = 0;
    lab::wait_until("its table stands still", || {
        let now = seen().unwrap_or_default();
        times = if now == before { times + 1 } else { 0 };
        before = now;
        times > 20 && !before.is_empty()
    })
}
