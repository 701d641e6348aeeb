//! Devices that are removed while they are open, and come back.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use nix::libc;
use uverbs::context::Context;
use uverbs::error::Cause;
use uverbs::host::Host;
use uverbs_mlx5_function::description::Description;

use super::opened_as_described;
use crate::lab;
use crate::lab::mlx5::{IbModule, Mlx5};

/// The kinds of functions, each with whether it is in switchdev mode.
fn kinds() -> [(Description, bool); 3] {
    [
        (Description::infiniband(1), false),
        (Description::roce(), false),
        (Description::embedded_cpu(2), true),
    ]
}

fn bound(description: &Description, switchdev: bool) -> Result<Mlx5> {
    println!("{:?}", description.mode);
    let mut device = Mlx5::bind(0, description)?;
    if switchdev {
        device.switchdev()?;
    }
    Ok(device)
}

/// Opens a device of any kind, which answers.
fn opened(device: &Mlx5) -> Result<Context> {
    let context = Host::new().open(device.name())?;
    context.query_port(1)?;
    context.query_gid_table()?;
    Ok(context)
}

/// The driver is unbound and bound again.
pub(crate) fn driver_is_bound_anew() -> Result<()> {
    for (description, switchdev) in kinds() {
        let mut device = bound(&description, switchdev)?;
        let context = opened(&device)?;
        device.rebind()?;
        is_gone(&context)?;
        drop(opened(&device)?);
    }
    Ok(())
}

/// The driver is unbound while tables are read without a pause: each that is given is right, and what
/// comes after says that the device is gone.
pub(crate) fn driver_goes_while_reading() -> Result<()> {
    for (description, switchdev) in kinds() {
        let mut device = bound(&description, switchdev)?;
        let context = opened(&device)?;
        let right = context.query_gid_table()?;
        let going = AtomicBool::new(false);
        let (given, error) = thread::scope(|scope| -> Result<_> {
            let reader = scope.spawn(|| -> Result<_> {
                let mut given = 0;
                loop {
                    match context.query_gid_table() {
                        Ok(table) if table == right => given += 1,
                        // A device that is going loses its entries one by one.
                        Ok(table) => {
                            let known = table.iter().all(|row| right.contains(row));
                            ensure!(known && going.load(Ordering::SeqCst), "{table:?}");
                        }
                        Err(error) => return Ok((given, error)),
                    }
                }
            });
            thread::sleep(Duration::from_millis(50));
            going.store(true, Ordering::SeqCst);
            let rebound = device.rebind();
            let ended = reader.join().map_err(|_| anyhow::anyhow!("the reader panicked"))?;
            rebound.and(ended)
        })?;
        println!("{given} tables, then: {error}");
        ensure!(matches!(error.cause(), Cause::DeviceGone(_)), "{error:?}");
        is_gone(&context)?;
        drop(opened(&device)?);
    }
    Ok(())
}

/// The module of the RDMA driver is unloaded and loaded again.
pub(crate) fn driver_is_loaded_anew() -> Result<()> {
    let description = Description::infiniband(1);
    let mut device = Mlx5::bind(0, &description)?;
    let context = opened_as_described(&device, &description)?;
    let unloaded = IbModule::unload()?;
    is_gone(&context)?;
    ensure!(Host::new().devices()?.is_empty(), "the device is still listed");
    unloaded.load()?;
    device.find()?;
    is_gone(&context)?;
    drop(opened_as_described(&device, &description)?);
    Ok(())
}

/// The kernel takes the function away, and finds another one in its place.
pub(crate) fn unplugged_while_open() -> Result<()> {
    for (description, switchdev) in kinds() {
        let device = bound(&description, switchdev)?;
        let mut host = Host::new();
        let before = host.device(device.name())?;
        let context = opened(&device)?;
        let function = device.unplug()?;
        is_gone(&context)?;
        ensure!(host.devices()?.is_empty(), "the device is still listed");
        let error = Context::open(&before).err().context("a device that is gone opened")?;
        println!("{error}");
        ensure!(matches!(error.cause(), Cause::NodeMissing | Cause::DeviceGone(_)), "{error:?}");

        let description = Description::infiniband(1).sibling();
        function.become_(&description)?;
        function.rescan()?;
        let device = Mlx5::bind_as_it_is(function)?;
        let anew = host.device(device.name())?;
        ensure!(anew.index != before.index, "the kernel gives the same index again");
        drop(opened_as_described(&device, &description)?);
        is_gone(&context)?;
    }
    Ok(())
}

/// The function is pulled out. The kernel gets no notice but has to notice it. Later it is back.
pub(crate) fn pulled_out_while_open() -> Result<()> {
    let description = Description::infiniband(1);
    let device = Mlx5::bind(0, &description)?;
    let function = device.function();
    let context = opened_as_described(&device, &description)?;
    function.pull_out()?;
    // A query of what the kernel has in memory: one that needs the device would wait for it. (5.10
    // first waits a minute for the device to come back.)
    let noticed = || context.query_gid_ex(1, 0).is_err();
    lab::wait_within(Duration::from_mins(4), "the kernel has noticed", noticed)?;
    is_gone(&context)?;
    ensure!(Host::new().devices()?.is_empty(), "the device is still listed");

    device.unplug()?;
    function.put_back()?;
    function.rescan()?;
    drop(opened_as_described(&Mlx5::bind_as_it_is(function)?, &description)?);
    is_gone(&context)
}

/// Every query on a context of a device that has gone says so.
fn is_gone(context: &Context) -> Result<()> {
    for (query, error) in [
        ("port", context.query_port(1).err()),
        ("device", context.query_device().err()),
        ("GID", context.query_gid_ex(1, 0).err()),
        ("GID table", context.query_gid_table().err()),
    ] {
        let error = error.with_context(|| format!("the query of the {query} is answered"))?;
        println!("{error}");
        ensure!(*error.cause() == Cause::DeviceGone(libc::EIO), "{error:?}");
    }
    Ok(())
}
