//! The lab itself: orders reach a function, are answered, and carried out.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use uverbs::device::Host;
use uverbs_mlx5_function::control::Fault;
use uverbs_mlx5_function::description::Description;
use uverbs_vm::bed::FUNCTIONS;

use crate::lab;
use crate::lab::mlx5::{Function, Mlx5};

const QUERY_HCA_VPORT_CONTEXT: u16 = 0x762;

/// Descriptions arrive as they were sent, at the function that they are for.
pub(crate) fn taken() -> Result<()> {
    let descriptions = [Description::infiniband(2), Description::embedded_cpu(3).sibling()];
    for (number, description) in descriptions.iter().enumerate() {
        Function(number).become_(description)?;
    }
    for (number, description) in descriptions.iter().enumerate() {
        ensure!(Function(number).description()? == *description, "{}", Function(number));
    }
    ensure!(Function(FUNCTIONS.len()).description().is_err(), "there is one more function");
    Ok(())
}

/// A refused command is the failure of the query that needs it, and only as long as it is refused.
pub(crate) fn failures_are_told() -> Result<()> {
    const BUSY: u8 = 6;
    let device = Mlx5::bind(0, &Description::infiniband(1))?;
    let function = device.function();
    let context = Host::new().open(device.name())?;
    let (port, commands) = function.commands_during(|| Ok(context.query_port(1)?))?;
    println!("{commands:?}");
    ensure!(commands.iter().any(|command| command.opcode == QUERY_HCA_VPORT_CONTEXT));

    function.inject(QUERY_HCA_VPORT_CONTEXT, Fault::Status { status: BUSY, syndrome: 0xbeef })?;
    let (error, commands) = function.commands_during(|| Ok(context.query_port(1).err()))?;
    let error = error.context("an answer without the firmware's")?;
    println!("{error}; {commands:?}");
    ensure!(error.errno() == rustix::io::Errno::BUSY.raw_os_error());
    ensure!(commands.iter().any(|command| command.status == Some(BUSY)));

    function.clear()?;
    ensure!(context.query_port(1)? == port);
    // The GID table is the kernel's own.
    let (table, commands) = function.commands_during(|| Ok(context.query_gid_table()?))?;
    ensure!(table.len() == 3 && commands.is_empty(), "{commands:?}");
    Ok(())
}

/// A slow command is waited for; one that goes wrong on its way is a failure at once.
pub(crate) fn slow_and_lost_commands() -> Result<()> {
    const DELAY: Duration = Duration::from_secs(2);
    const BAD_INPUT_LENGTH: u8 = 7;
    let device = Mlx5::bind(0, &Description::infiniband(1))?;
    let function = device.function();
    let context = Host::new().open(device.name())?;
    let port = context.query_port(1)?;
    function.inject(QUERY_HCA_VPORT_CONTEXT, Fault::Delay(u32::try_from(DELAY.as_millis())?))?;
    let start = Instant::now();
    ensure!(context.query_port(1)? == port);
    let took = start.elapsed();
    ensure!(took >= DELAY, "answered after {took:?}");

    function.clear()?;
    function.inject(QUERY_HCA_VPORT_CONTEXT, Fault::Delivery(BAD_INPUT_LENGTH))?;
    let error = context.query_port(1).err().context("an answer to what was not delivered")?;
    println!("{error}");
    ensure!(error.errno() == rustix::io::Errno::NOMSG.raw_os_error());
    function.clear()?;
    ensure!(context.query_port(1)? == port);
    Ok(())
}

/// A command that takes longer than the firmware allows is a failure, and its late answer no harm;
/// 5.10 waits a minute, whatever the firmware says.
pub(crate) fn commands_time_out() -> Result<()> {
    const LIMIT: Duration = Duration::from_secs(1);
    // After its limit the driver looks once more, for five seconds.
    const DELAY: Duration = Duration::from_secs(8);
    let command_timeout = u32::try_from(LIMIT.as_millis())?;
    let device = Mlx5::bind(0, &Description { command_timeout, ..Description::infiniband(1) })?;
    let context = Host::new().open(device.name())?;
    let port = context.query_port(1)?;
    let delay = Fault::Delay(u32::try_from(DELAY.as_millis())?);
    device.function().inject(QUERY_HCA_VPORT_CONTEXT, delay)?;
    let start = Instant::now();
    let answer = context.query_port(1);
    let took = start.elapsed();
    println!("{answer:?} after {took:?}");
    if lab::kernel()? >= (6, 1) {
        let error = answer.err().context("an answer in spite of the limit")?;
        ensure!(error.errno() == rustix::io::Errno::TIMEDOUT.raw_os_error() && took < DELAY);
    } else {
        ensure!(answer? == port && took >= DELAY);
    }
    device.function().clear()?;
    ensure!(context.query_port(1)? == port);
    Ok(())
}
