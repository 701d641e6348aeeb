//! The terminal of a person at the guest's shell: this process's own, connected with a serial port of the
//! machine.

use crate::functions::{Directory, slot};
use anyhow::{Context, Result};
use rustix::termios::{OptionalActions, Termios, isatty, tcgetattr, tcgetwinsize, tcsetattr};
use std::io::{Read, Write, stdin, stdout};
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use uverbs_vm::bed::TERMINAL;
use uverbs_vm::job::Size;

/// What a terminal sends when its user says that there is nothing more.
const END: u8 = 4;

/// The socket to which QEMU connects the serial port.
#[derive(Debug)]
pub(crate) struct Terminal {
    directory: Directory,
    listener: UnixListener,
}

impl Terminal {
    /// `name` is no other running machine's.
    pub(crate) fn new(name: &str) -> Result<Self> {
        let directory = Directory::create(&format!("{name}-terminal"))?;
        let listener = UnixListener::bind(directory.path().join("socket"))?;
        Ok(Self { directory, listener })
    }

    /// QEMU's arguments for the serial port.
    pub(crate) fn qemu_arguments(&self) -> [String; 4] {
        let path = self.directory.path().join("socket");
        [
            "-chardev".to_owned(),
            format!("socket,id=terminal,path={}", path.display()),
            "-device".to_owned(),
            format!("pci-serial,chardev=terminal,addr={}", slot(TERMINAL)),
        ]
    }

    /// Connects it with this process's terminal, or with whatever stdin and stdout are, as long as the machine
    /// runs. QEMU has connected to the socket when the guest says that its shell is ready.
    pub(crate) fn connect(&self) -> Result<Connected> {
        let (mut port, _) = self.listener.accept()?;
        let mut to = port.try_clone()?;
        let before = isatty(stdin()).then(|| tcgetattr(stdin())).transpose()?;
        if let Some(before) = &before {
            // The guest's side echoes, edits lines and sends signals.
            let mut raw = before.clone();
            raw.make_raw();
            tcsetattr(stdin(), OptionalActions::Now, &raw).context("setting the terminal")?;
        }
        // It ends with this process: nothing wakes it while nobody types.
        thread::spawn(move || {
            type_into(&mut to);
            end_input(&mut to);
        });
        let shown = thread::spawn(move || show(&mut port));
        Ok(Connected { before, shown: Some(shown) })
    }
}

/// The size of this process's terminal, or a usual one.
pub(crate) fn size() -> Size {
    let own = tcgetwinsize(stdout()).or_else(|_| tcgetwinsize(stdin())).ok();
    let own = own.map(|own| Size { rows: own.ws_row, columns: own.ws_col });
    own.filter(|own| own.rows > 0 && own.columns > 0).unwrap_or(Size { rows: 24, columns: 80 })
}

/// While it exists this process's terminal is the guest's.
#[derive(Debug)]
pub(crate) struct Connected {
    /// Its settings, if it is a terminal.
    before: Option<Termios>,
    shown: Option<JoinHandle<()>>,
}

impl Drop for Connected {
    fn drop(&mut self) {
        // QEMU has ended, and with it the connection. If the thread panicked, its message was shown.
        let _ = self.shown.take().map(JoinHandle::join);
        if let Some(before) = &self.before {
            // A terminal that is gone needs no settings.
            let _ = tcsetattr(stdin(), OptionalActions::Now, before);
        }
    }
}

fn type_into(port: &mut UnixStream) {
    let mut buffer = [0; 1024];
    loop {
        // What cannot be read any more is over for the shell, too. Without a machine nobody listens.
        match stdin().read(&mut buffer) {
            Ok(count @ 1..) if port.write_all(buffer.get(..count).unwrap_or_default()).is_ok() => {}
            _ => break,
        }
    }
}

/// Says that there is nothing more, until the machine is off: what comes before the shell reads a line, or while a
/// program runs that reads nothing, is lost.
fn end_input(port: &mut UnixStream) {
    while port.write_all(&[END]).is_ok() {
        thread::sleep(Duration::from_secs(1));
    }
}

fn show(port: &mut UnixStream) {
    let mut buffer = [0; 1024];
    while let Ok(count @ 1..) = port.read(&mut buffer) {
        let mut out = stdout();
        let shown = out.write_all(buffer.get(..count).unwrap_or_default());
        if shown.and_then(|()| out.flush()).is_err() {
            return;
        }
    }
}
