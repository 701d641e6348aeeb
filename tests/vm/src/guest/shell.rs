//! The shell of a person who plays: busybox on a serial port that the host connects with its terminal.

use crate::boot;
use crate::supervisor::PATH;
use anyhow::{Context, Result};
use rustix::process::{ioctl_tiocsctty, setsid};
use rustix::termios::{Winsize, tcsetwinsize};
use std::os::unix::process::CommandExt;
use std::process::Command;
use uverbs_vm::bed::TERMINAL;

/// Busybox, and the folder of links to it, one for each of its programs.
const BUSYBOX: &str = "/bin/busybox";
const APPLETS: &str = "/usr/local/bin";

/// Becomes a shell, in a session of its own, whose terminal has this size.
pub(crate) fn run(rows: &str, columns: &str) -> Result<()> {
    std::fs::create_dir_all(APPLETS).context(APPLETS)?;
    let installed = Command::new(BUSYBOX).args(["--install", "-s", APPLETS]).status();
    installed.with_context(|| format!("starting {BUSYBOX}"))?;

    let terminal = boot::serial_card(TERMINAL)?;
    setsid().context("a session of its own")?;
    ioctl_tiocsctty(&terminal).context("a terminal of its own")?;
    let size = Winsize {
        ws_row: rows.parse().with_context(|| format!("rows {rows:?}"))?,
        ws_col: columns.parse().with_context(|| format!("columns {columns:?}"))?,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&terminal, size).context("the terminal's size")?;
    // What is said of a child goes elsewhere.
    println!("ready");
    let error = Command::new(BUSYBOX)
        .args(["sh", "-l"])
        .stdin(terminal.try_clone()?)
        .stdout(terminal.try_clone()?)
        .stderr(terminal)
        .env("PATH", format!("{PATH}:{APPLETS}"))
        .env("HOME", "/root")
        .env("TERM", "xterm")
        .current_dir("/root")
        .exec();
    Err(error).context(BUSYBOX)
}
