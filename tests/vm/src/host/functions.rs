//! The emulated mlx5 functions of one machine, and the channel by which its guest gives them orders.
//!
//! Each function serves a socket of its own, to which QEMU connects for as long as the machine
//! runs. Orders come through a serial card, whose other end is one more socket.

use std::fs::{self, DirBuilder};
use std::io::{BufReader, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use anyhow::{Context, Result};
use uverbs_mlx5_function::description::Description;
use uverbs_mlx5_function::{Function, requests};
use uverbs_vm::bed;

/// QEMU's device for a PCI function that another program serves.
pub(crate) const DEVICE: &str = "vfio-user-pci";

/// The functions of one boot.
#[derive(Debug)]
pub(crate) struct Functions {
    all: Arc<Vec<Function>>,
    /// Serves the channel of orders.
    control: JoinHandle<Result<()>>,
    directory: Directory,
}

/// A directory of sockets, removed on drop. Its path is short, as a socket's must be.
#[derive(Debug)]
pub(crate) struct Directory(PathBuf);

impl Directory {
    pub(crate) fn create(name: &str) -> Result<Self> {
        let path = std::env::temp_dir().join(format!("uverbs-vm-{}-{name}", process::id()));
        // No other process uses it: the name has our process number. A killed process leaves it, and in a
        // container its number soon comes again.
        if let Err(error) = fs::remove_dir_all(&path)
            && error.kind() != ErrorKind::NotFound
        {
            return Err(error).with_context(|| format!("removing {}", path.display()));
        }
        DirBuilder::new().mode(0o700).create(&path).with_context(|| path.display().to_string())?;
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // It stays where it cannot be removed; nothing depends on it.
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Functions {
    /// Starts all functions of a machine; `name` is no other running machine's.
    pub(crate) fn start(name: &str) -> Result<Self> {
        let directory = Directory::create(name)?;
        let first = Description::infiniband(1);
        let mut functions = Vec::new();
        for (number, description) in [first.clone(), first.sibling()].into_iter().enumerate() {
            let socket = directory.0.join(format!("function{number}"));
            let function = Function::start(description, &socket);
            functions.push(function.with_context(|| format!("starting function {number}"))?);
        }
        let listener = UnixListener::bind(directory.0.join("control"))?;
        let functions = Arc::new(functions);
        let served = Arc::clone(&functions);
        let control = thread::spawn(move || take_orders(&served, &listener));
        Ok(Self { all: functions, control, directory })
    }

    /// QEMU's arguments for them, and for the serial card.
    pub(crate) fn qemu_arguments(&self) -> Vec<String> {
        let mut arguments = Vec::new();
        for (number, address) in bed::FUNCTIONS.into_iter().enumerate() {
            let device = serde_json::json!({
                "driver": DEVICE,
                "addr": slot(address),
                "socket": { "type": "unix", "path": self.socket(&format!("function{number}")) },
            });
            arguments.extend(["-device".to_owned(), device.to_string()]);
        }
        let path = self.socket("control");
        arguments.extend(["-chardev".to_owned(), format!("socket,id=control,path={path}")]);
        let card = format!("pci-serial,chardev=control,addr={}", slot(bed::CONTROL));
        arguments.extend(["-device".to_owned(), card]);
        arguments
    }

    fn socket(&self, name: &str) -> String {
        self.directory.0.join(name).display().to_string()
    }

    /// Whether one has ended. All do when QEMU ends; one that does before has failed.
    pub(crate) fn is_one_finished(&self) -> bool {
        self.all.iter().any(Function::is_finished)
    }

    /// Ends them, when QEMU has ended. Returns what was wrong with them, and what they met that they
    /// do not know.
    pub(crate) fn finish(self) -> Vec<String> {
        // A QEMU that did not get so far has not connected: somebody must.
        drop(UnixStream::connect(self.directory.0.join("control")));
        let mut wrong = Vec::new();
        match self.control.join() {
            Ok(Ok(())) => {}
            Ok(Err(error)) => wrong.push(format!("taking the guest's orders: {error:#}")),
            Err(_) => wrong.push("taking the guest's orders: it panicked".to_owned()),
        }
        let Some(functions) = Arc::into_inner(self.all) else {
            wrong.push("the functions are still in use".to_owned());
            return wrong;
        };
        for (number, function) in functions.into_iter().enumerate() {
            let mut say = |what: &str| wrong.push(format!("function {number}: {what}"));
            function.remarks().iter().for_each(|remark| say(remark));
            if let Err(error) = function.finish() {
                say(&format!("{error:#}"));
            }
        }
        wrong
    }
}

/// Takes orders from the one guest, until it ends.
fn take_orders(functions: &[Function], listener: &UnixListener) -> Result<()> {
    let (guest, _) = listener.accept()?;
    Ok(requests::serve(functions, BufReader::new(&guest), &guest)?)
}

/// The slot in a PCI address, as QEMU wants it.
pub(crate) fn slot(address: &str) -> &str {
    address.rsplit(':').next().unwrap_or(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_was_left_is_no_hindrance() {
        let left = Directory::create("left").unwrap();
        fs::write(left.0.join("function0"), "").unwrap();
        let path = left.0.clone();
        std::mem::forget(left);
        let anew = Directory::create("left").unwrap();
        assert_eq!(anew.0, path);
        assert!(fs::read_dir(&anew.0).unwrap().next().is_none());
        drop(anew);
        assert!(!fs::exists(path).unwrap());
    }
}
