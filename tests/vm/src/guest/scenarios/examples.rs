//! The programs of `tests/examples` that are written in Rust. Those in C are run by
//! [`c_programs`](super::c_programs).

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use uverbs_mlx5_function::description::Description;

use crate::lab::mlx5::{Mlx5, PortEvent};
use crate::lab::{self, output, run};

/// On soft RoCE: tables, an index, and the event of a new address.
pub(crate) fn run_on_soft_roce() -> Result<()> {
    lab::on_the_newest_kernel("an example is to start from")?;
    let lab = lab::two_soft_roce_devices()?;
    let listed = run(&["list_gids"])?;
    println!("{listed}");
    ensure!(listed.lines().count() == 6);
    ensure!(listed.lines().any(|line| line == "rxe0:1 1 ::ffff:192.168.77.1 roce_v2"));

    for (arguments, wanted) in [
        (&["choose_gid"][..], ["rxe0:1 1", "rxe1:1 1"]),
        (&["choose_gid", "10.7.0.9"], ["rxe0:1 2", "rxe1:1 none: "]),
    ] {
        let chosen = run(arguments)?;
        println!("{chosen}");
        let ports = chosen.lines().filter(|line| !line.starts_with(' '));
        let as_wanted = ports.zip(wanted).filter(|(line, wanted)| line.starts_with(wanted));
        ensure!(as_wanted.count() == 2, "{wanted:?}");
    }

    let event = watched("rxe0", || lab.0.netdev.address("10.1.2.3/24"))?;
    ensure!(event == "gid_change 1", "{event}");
    refuses(&["devx_query", "rxe0"])?;
    refuses(&["watch_events", "nosuch0"])
}

/// On mlx5: the firmware's answer, and the event of a port that goes down.
pub(crate) fn run_on_mlx5() -> Result<()> {
    lab::on_the_newest_kernel("an example is to start from")?;
    let description = Description::infiniband(1);
    let device = Mlx5::bind(0, &description)?;
    let name = device.name();
    let listed = run(&["list_gids"])?;
    println!("{listed}");
    ensure!(listed.lines().count() == description.ports[0].gids.len());
    ensure!(listed.lines().all(|line| line.starts_with(name) && line.ends_with(" ib")));
    ensure!(run(&["choose_gid"])?.starts_with(&format!("{name}:1 0\n")));
    ensure!(run(&["devx_query", name])? == format!("PSID {}\n", description.psid));

    let change = || device.function().port_event(1, PortEvent::PKeys, |_| ());
    let event = watched(name, change)?;
    ensure!(event == "pkey_change 1", "{event}");
    Ok(())
}

/// The event that `watch_events` prints after a change.
pub(super) fn watched(device: &str, change: impl FnOnce() -> Result<()>) -> Result<String> {
    let mut watch = Command::new("watch_events")
        .args([device, "1"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("starting watch_events")?;
    // It says when it is ready.
    let mut ready = String::new();
    BufReader::new(watch.stderr.take().context("its errors")?).read_line(&mut ready)?;
    let changed = if ready == format!("watching {device}\n") {
        change()
    } else {
        Err(anyhow::anyhow!("watch_events says {ready:?}"))
    };
    if changed.is_err() {
        watch.kill()?;
    }
    let said = watch.wait_with_output()?;
    changed?;
    ensure!(said.status.success(), "{said:?}");
    Ok(String::from_utf8(said.stdout)?.trim_end().to_owned())
}

/// A program that cannot do what it is asked says why.
fn refuses(command: &[&str]) -> Result<()> {
    let output = output(command)?;
    println!("{command:?}: {output:?}");
    ensure!(output.status.code() == Some(1) && !output.stderr.is_empty());
    Ok(())
}
