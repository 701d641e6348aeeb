//! Serves one function by hand, until its machine ends.

use anyhow::{Context, Result};
use clap::{Parser, ValueEnum};
use std::fs;
use std::io::{self, BufReader};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::slice;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use uverbs_mlx5_function::control::{Order, Reply};
use uverbs_mlx5_function::description::Description;
use uverbs_mlx5_function::{Function, requests};

/// Serves an emulated mlx5 function to QEMU's vfio-user-pci.
#[derive(Debug, Parser)]
struct Arguments {
    /// A file with its description.
    #[arg(required_unless_present = "mode", conflicts_with = "mode")]
    description: Option<PathBuf>,
    /// One of the descriptions that are built in.
    #[arg(long)]
    mode: Option<BuiltIn>,
    /// The socket to serve on, which must not exist.
    #[arg(long)]
    socket: PathBuf,
    /// A socket that takes requests, JSON lines; it must not exist either.
    #[arg(long)]
    control: Option<PathBuf>,
    /// Print every command.
    #[arg(long)]
    verbose: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum BuiltIn {
    /// InfiniBand, one port.
    Ib1,
    /// InfiniBand, two ports.
    Ib2,
    /// `RoCE`.
    Roce,
    /// Ethernet without `RoCE`, and an e-switch.
    Switchdev,
    /// The embedded CPU of a smart NIC, whose host has two VFs.
    Ecpf,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let function = Function::start(arguments.description()?, &arguments.socket)?;
    let served = &function;
    let client = &Mutex::new(None);
    thread::scope(|scope| {
        if let Some(control) = &arguments.control {
            let listener = UnixListener::bind(control).context("binding the control socket")?;
            scope.spawn(move || take_orders(served, &listener, client));
        }
        let mut next = 0;
        while !served.is_finished() {
            thread::sleep(Duration::from_millis(100));
            if arguments.verbose {
                next = print_commands(served, next);
            }
        }
        if let Some(control) = &arguments.control {
            // Wakes the thread there, which then sees that all is over: it waits for one or other.
            UnixStream::connect(control)?;
            if let Some(client) = client.lock().unwrap_or_else(PoisonError::into_inner).take() {
                // It fails only where the client has gone by itself.
                let _ = client.shutdown(Shutdown::Both);
            }
            fs::remove_file(control)?;
        }
        anyhow::Ok(())
    })?;
    for remark in function.remarks() {
        eprintln!("mlx5-function: {remark}");
    }
    function.finish()
}

impl Arguments {
    fn description(&self) -> Result<Description> {
        if let Some(mode) = self.mode {
            return Ok(match mode {
                BuiltIn::Ib1 => Description::infiniband(1),
                BuiltIn::Ib2 => Description::infiniband(2),
                BuiltIn::Roce => Description::roce(),
                BuiltIn::Switchdev => Description::switchdev(),
                BuiltIn::Ecpf => Description::embedded_cpu(2),
            });
        }
        let file = self.description.as_deref().context("no description")?;
        let text = fs::read(file).with_context(|| format!("reading {}", file.display()))?;
        serde_json::from_slice(&text).with_context(|| format!("reading {}", file.display()))
    }
}

/// Takes orders, one client after the other, until the machine has ended. `current` is the client
/// whose connection then is to be shut down.
fn take_orders(function: &Function, listener: &UnixListener, current: &Mutex<Option<UnixStream>>) {
    let serve = |client: UnixStream| -> io::Result<()> {
        let clone = client.try_clone()?;
        *current.lock().unwrap_or_else(PoisonError::into_inner) = Some(clone);
        // Only now: whoever ends later finds the client there.
        if function.is_finished() {
            return Ok(());
        }
        requests::serve(slice::from_ref(function), BufReader::new(&client), &client)
    };
    for client in listener.incoming() {
        let served = client.and_then(serve);
        *current.lock().unwrap_or_else(PoisonError::into_inner) = None;
        if function.is_finished() {
            break;
        }
        if let Err(error) = served {
            eprintln!("mlx5-function: taking orders: {error}");
        }
    }
}

/// Prints the commands from this number on; returns the next one's.
fn print_commands(function: &Function, since: u64) -> u64 {
    match function.handle(Order::Commands { since }) {
        Reply::Commands { commands, next } => {
            for command in commands {
                println!("{command:x?}");
            }
            next
        }
        other => {
            eprintln!("mlx5-function: {other:?}");
            since
        }
    }
}
