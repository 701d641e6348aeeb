//! Changes as they happen: whatever is done to devices, interfaces and addresses, the first inventory and the
//! differences that are found give the last inventory, and nothing waits for the watcher.

mod add_up;
mod costs;
mod ethernet;
mod events;
mod infiniband;
mod iwarp;
mod removals;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::lab::{Netdev, SoftRoce};
use crate::supervisor::PATH;

pub(crate) use add_up::{
    on_a_switch, on_mlx5_infiniband, on_mlx5_roce, on_soft_iwarp, on_soft_roce,
    on_soft_roce_of_its_own_namespace, on_soft_roce_without_rereading,
};
pub(crate) use costs::{
    a_new_device_is_read_again, a_stopped_watch_says_what_it_lost, a_watch_of_another_user,
    an_idle_watch_sleeps, waiting_for_a_gid,
};
pub(crate) use events::{
    an_index_that_another_interface_gets, events_that_change_no_table,
    readings_after_events_on_mlx5, readings_after_events_on_soft_roce,
};
pub(crate) use removals::{nothing_waits_for_a_watch, nothing_waits_for_a_watch_of_mlx5};

/// The command, which runs beside the scenario. Its lines go to a file.
struct Running {
    child: Child,
    out: &'static str,
    /// What it said before it listened.
    said: Vec<String>,
}

impl Running {
    /// Starts it, and waits until it listens.
    fn new(arguments: &[&str]) -> Result<Self> {
        Self::of_user(0, arguments)
    }

    fn of_user(user: u32, arguments: &[&str]) -> Result<Self> {
        const OUT: &str = "/tmp/watch";
        let out = fs::File::create(OUT)?;
        let mut child = Command::new("uverbs")
            .args(arguments)
            .uid(user)
            .gid(user)
            .env("PATH", PATH)
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(Stdio::piped())
            .spawn()?;
        let said = BufReader::new(child.stderr.take().context("its messages")?);
        let mut this = Self { child, out: OUT, said: Vec::new() };
        for line in said.lines() {
            let line = line?;
            println!("{line}");
            if line.contains("watching ") {
                return Ok(this);
            }
            this.said.push(line);
        }
        bail!("it ended before it listened")
    }

    fn pid(&self) -> Result<Pid> {
        Ok(Pid::from_raw(i32::try_from(self.child.id())?))
    }

    /// What it wrote so far: whole lines.
    fn lines(&self) -> Result<Vec<Value>> {
        let text = fs::read_to_string(self.out)?;
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        whole.lines().map(|line| serde_json::from_str(line).context(line.to_owned())).collect()
    }

    /// Ends it, as a service manager does.
    fn end(mut self) -> Result<()> {
        kill(self.pid()?, Signal::SIGTERM)?;
        let status = self.child.wait()?;
        ensure!(status.success(), "it ended with {status}");
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether some line is about this.
fn has(lines: &[Value], what: &str, device: &str) -> bool {
    lines.iter().any(|line| line["what"] == what && line["device"] == device)
}

fn made_on(netdev: &Netdev, name: &str) -> Result<SoftRoce> {
    let rxe = SoftRoce::new(name, netdev)?;
    rxe.wait_for_gids(1)?;
    Ok(rxe)
}
