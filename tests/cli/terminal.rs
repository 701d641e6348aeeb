//! Runs on a terminal of a width that the test chooses.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// Both ends of a terminal of so many columns; 0 is one that does not say.
fn open(columns: u16) -> (OwnedFd, File) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&master, size).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let terminal = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    (master, terminal)
}

/// All that comes until nobody has the terminal any more.
fn read(master: OwnedFd) -> String {
    let mut text = Vec::new();
    // The terminal's end is EIO.
    let _ = File::from(master).read_to_end(&mut text);
    String::from_utf8_lossy(&text).replace("\r\n", "\n")
}

/// What a program writes to a terminal of so many columns.
pub(crate) fn on_a_terminal(mut command: Command, columns: u16) -> String {
    let (master, terminal) = open(columns);
    let mut child = command.stdout(Stdio::from(terminal)).spawn().unwrap();
    // Its own copy of the terminal.
    drop(command);
    let text = read(master);
    let status = child.wait().unwrap();
    assert!(status.code().is_some_and(|code| code < 3), "{status:?}");
    text
}

/// What is on the terminal of a program to which this is typed.
pub(crate) fn converse(mut command: Command, typed: &str) -> String {
    let (master, terminal) = open(1000);
    let copy = || Stdio::from(terminal.try_clone().unwrap());
    command.stdin(copy()).stdout(copy()).stderr(copy());
    let mut child = command.spawn().unwrap();
    drop((command, terminal));
    // The terminal holds less before it is read.
    assert!(typed.len() < 4000);
    let mut keys = File::from(master.try_clone().unwrap());
    keys.write_all(typed.as_bytes()).unwrap();
    drop(keys);
    let text = read(master);
    child.wait().unwrap();
    text
}
