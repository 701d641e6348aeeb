//! A function that is served.

use crate::control::{Order, Reply};
use crate::description::Description;
use crate::device::Device;
use crate::server::{self, Shared};
use anyhow::{Context, Result, anyhow};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};

/// A function, served to one machine on a thread of its own.
#[derive(Debug)]
pub struct Function {
    device: Shared,
    socket: PathBuf,
    server: JoinHandle<Result<()>>,
}

impl Function {
    /// Serves a function on a Unix socket, which must not exist and does when this returns.
    ///
    /// # Errors
    ///
    /// If there can be no such function, or the socket cannot be bound.
    pub fn start(description: Description, socket: &Path) -> Result<Self> {
        description.check().map_err(|wrong| anyhow!("no such function: {wrong}"))?;
        let server = server::bind(socket).with_context(|| format!("at {}", socket.display()))?;
        let device = Shared::new(Device::new(description));
        let shared = device.clone();
        let server = thread::Builder::new()
            .name("mlx5-function".to_owned())
            .spawn(move || server::run(&server, shared))?;
        Ok(Self { device, socket: socket.to_owned(), server })
    }

    /// Does what is ordered. The driver sees it at once, and this waits for nothing.
    #[must_use = "an order may be refused"]
    pub fn handle(&self, order: Order) -> Reply {
        self.device.lock().handle(order)
    }

    /// What happened that the emulation did not expect, the oldest first, the same thing once: an
    /// unknown opcode or register, a command of the driver's that was refused, an address that is
    /// not in the guest's memory.
    #[must_use]
    pub fn remarks(&self) -> Vec<String> {
        self.device.lock().remarks.all().to_vec()
    }

    /// Whether the machine is gone, or the server failed.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.server.is_finished()
    }

    /// Ends a function that no machine uses, else waits until the machine has ended.
    ///
    /// # Errors
    ///
    /// Whatever ended the server but the machine's end; a panic too.
    pub fn finish(self) -> Result<()> {
        // A connection that ends at once; where there is a machine it is never looked at, and
        // where there was one there is nothing to connect to.
        let _ = UnixStream::connect(&self.socket);
        match self.server.join() {
            Ok(served) => served.context("serving an mlx5 function"),
            Err(panic) => {
                let text = panic.downcast_ref::<String>().map(String::as_str);
                let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
                Err(anyhow!("an mlx5 function panicked: {}", text.unwrap_or("without a word")))
            }
        }
    }
}
