//! The program inside the VM: PID 1 of the initramfs.
//!
//! As `/init` it mounts file systems, loads the kernel modules, does its [job] and switches the machine
//! off. Each scenario runs as a child, `guest scenario NAME`, so a crash or hang does not affect the others.
//! `guest list` prints the names of the scenarios for the host.
//!
//! Without the feature `scenarios` it has none, and is built in less time: it then tries a command, or runs
//! a shell.
#![cfg_attr(
    not(feature = "scenarios"),
    expect(dead_code, reason = "scenarios use most of the lab")
)]

mod boot;
#[cfg(feature = "scenarios")]
#[path = "../../../schemas/differences.rs"]
mod differences;
mod lab;
#[cfg(feature = "scenarios")]
mod scenarios;
mod shell;
mod supervisor;

use anyhow::{Context, Result, bail};
use std::process::ExitCode;
use uverbs_vm::job::{self, Devices, Job};
use uverbs_vm::report::Report;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match *arguments.as_slice() {
        _ if std::process::id() == 1 => init(),
        ["shell", rows, columns] => supervisor::child(|| shell::run(rows, columns)),
        _ => child(&arguments),
    }
}

#[cfg(not(feature = "scenarios"))]
fn child(_: &[&str]) -> ExitCode {
    eprintln!("usage: guest shell ROWS COLUMNS");
    ExitCode::FAILURE
}

/// What scenarios, and the host, start.
#[cfg(feature = "scenarios")]
fn child(arguments: &[&str]) -> ExitCode {
    match *arguments {
        ["list"] => {
            for (name, bed, _) in scenarios::all() {
                println!("{name} {bed}");
            }
            ExitCode::SUCCESS
        }
        ["scenario", name] => supervisor::child(|| scenarios::run(name)),
        ["sweep"] => supervisor::child(lab::sweep),
        ["container", nodes, user, ref arguments @ ..] => {
            supervisor::child(|| lab::container::run(nodes, user, arguments))
        }
        ["within", root, mounts, user, program, ref arguments @ ..] => {
            supervisor::child(|| lab::within::run(root, mounts, user, program, arguments))
        }
        ["limited", limit, program, ref arguments @ ..] => {
            supervisor::child(|| lab::limited::run(limit, program, arguments))
        }
        ["stopped", call, program, ref arguments @ ..] => {
            supervisor::child(|| lab::stopped::run(call, program, arguments))
        }
        ["query-table"] => supervisor::child(scenarios::query_table),
        _ => {
            eprintln!(
                "usage: guest list | scenario NAME | sweep | query-table | shell ROWS COLUMNS"
            );
            eprintln!("       guest container NODES USER ARGUMENT…");
            eprintln!("       guest limited LIMIT PROGRAM ARGUMENT…");
            eprintln!("       guest stopped CALL PROGRAM ARGUMENT…");
            eprintln!("       guest within ROOT MOUNTS USER PROGRAM ARGUMENT…");
            ExitCode::FAILURE
        }
    }
}

/// The life of PID 1. It ends by switching off, never by returning: the kernel would panic.
fn init() -> ! {
    let done = boot::mount_all().and_then(|()| {
        let mut port = boot::report_port()?;
        if let Err(error) = boot::load_modules().and_then(|()| work(&mut port)) {
            port.send(&Report::Trouble(format!("{error:#}")))?;
        }
        port.send(&Report::End)?;
        port.drain()
    });
    if let Err(error) = done {
        // There is no report without its port; the kernel's console is all that is left.
        eprintln!("guest: {error:#}");
    }
    boot::switch_off()
}

fn work(port: &mut boot::Port) -> Result<()> {
    let text =
        std::fs::read_to_string(job::PATH).with_context(|| format!("reading {}", job::PATH))?;
    match Job::from_text(&text)? {
        #[cfg(feature = "scenarios")]
        Job::Scenarios => supervisor::scenarios(port),
        #[cfg(not(feature = "scenarios"))]
        Job::Scenarios => bail!("this guest has no scenarios"),
        Job::Try(devices, command) => {
            let Some((program, arguments)) = command.split_first() else {
                bail!("no command to try");
            };
            set_up(devices)?;
            supervisor::attempt(program, arguments, port)
        }
        Job::Shell(devices, size) => {
            set_up(devices)?;
            supervisor::shell(size, port)
        }
    }
}

/// Sets devices up that stay. Nobody needs their removal: the machine goes off.
fn set_up(devices: Devices) -> Result<()> {
    match devices {
        Devices::SoftRoce => std::mem::forget(lab::two_soft_roce_devices()?),
        _ => std::mem::forget(lab::mlx5::tried(devices)?),
    }
    Ok(())
}
