//! The lab itself: orders reach a function, are answered and carried out.

use std::thread;

use anyhow::{Context as _, Result, ensure};
use rustix::io::Errno;
use uverbs::host::Host;
use uverbs_mlx5_function::control::{Command, Fault};
use uverbs_mlx5_function::description::Description;
use uverbs_vm::bed::FUNCTIONS;

use crate::lab;
use crate::lab::mlx5::{Function, Mlx5};
use crate::scenarios::answers;

const QUERY_HCA_VPORT_CONTEXT: u16 = 0x762;
const ACCESS_REG: u16 = 0x805;

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

/// A refused command, and one that goes wrong on its way, are the failure of the query that needs
/// it, and only as long as that is so.
pub(crate) fn failures_are_told() -> Result<()> {
    const BUSY: u8 = 6;
    const BAD_INPUT_LENGTH: u8 = 7;
    let device = Mlx5::bind(0, &Description::infiniband(1))?;
    let function = device.function();
    let context = Host::new().open(device.name())?;
    let (port, commands) = function.commands_during(|| Ok(context.query_port(1)?))?;
    println!("{commands:?}");
    ensure!(commands.iter().any(|command| command.opcode == QUERY_HCA_VPORT_CONTEXT));

    let refused = (Fault::Status { status: BUSY, syndrome: 0xbeef }, Some(BUSY), Errno::BUSY);
    let lost = (Fault::Delivery(BAD_INPUT_LENGTH), None, Errno::NOMSG);
    for (opcode, (fault, status, errno)) in [
        (QUERY_HCA_VPORT_CONTEXT, refused),
        (QUERY_HCA_VPORT_CONTEXT, lost),
        (ACCESS_REG, refused),
        (ACCESS_REG, lost),
    ] {
        function.inject(opcode, fault)?;
        let (error, commands) = function.commands_during(|| Ok(context.query_port(1).err()))?;
        let error = error.context("an answer without the firmware's")?;
        println!("{error}; {commands:?}");
        ensure!(error.errno() == errno.raw_os_error());
        let is_it = |command: &Command| (command.opcode, command.status) == (opcode, status);
        ensure!(commands.iter().any(is_it));
        // Without the other command there are no attributes of the device, either, without which
        // the peer does not begin.
        if opcode == ACCESS_REG {
            answers::compare_verbs(device.name())?;
        }
        function.clear()?;
        ensure!(context.query_port(1)? == port);
    }
    Ok(())
}

/// A command that takes longer than the firmware allows is a failure, and its late answer no harm;
/// 5.10 always waits a minute.
pub(crate) fn commands_time_out() -> Result<()> {
    let description = Description { command_timeout: 1000, ..Description::infiniband(1) };
    let device = Mlx5::bind(0, &description)?;
    let function = device.function();
    let context = Host::new().open(device.name())?;
    let port = context.query_port(1)?;
    let since = function.next_command()?;
    function.inject(QUERY_HCA_VPORT_CONTEXT, Fault::Silence)?;
    if lab::kernel()? >= (6, 1) {
        let error = context.query_port(1).err().context("an answer in spite of the limit")?;
        println!("{error}");
        ensure!(error.errno() == Errno::TIMEDOUT.raw_os_error());
        function.clear()?;
    } else {
        thread::scope(|scope| {
            let waiting = scope.spawn(|| context.query_port(1));
            lab::wait_until("the command has come", || {
                function.commands_since(since).is_ok_and(|commands| !commands.is_empty())
            })?;
            let commands = function.commands_since(since)?;
            ensure!(commands.iter().all(|command| command.status.is_none()), "{commands:?}");
            ensure!(!waiting.is_finished(), "it is not waited for");
            function.clear()?;
            let answer = waiting.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            ensure!(answer? == port);
            anyhow::Ok(())
        })?;
    }
    let commands = function.commands_since(since)?;
    ensure!(commands.iter().all(|command| command.status == Some(0)), "{commands:?}");
    ensure!(context.query_port(1)? == port);
    Ok(())
}
