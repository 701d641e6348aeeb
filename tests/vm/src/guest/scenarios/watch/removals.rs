//! Nothing waits for a watch: devices, interfaces and modules go while one runs.

use std::fs;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use rustix::system::delete_module;
use uverbs::host::Host;
use uverbs_mlx5_function::description::Description;
use uverbs_vm::stretched;

use super::ethernet::HOME;
use super::{Running, has, made_on};
use crate::boot;
use crate::lab::mlx5::{IbModule, Mlx5};
use crate::lab::{self, Exclusive, Namespace, Netdev, output, run, wait_until};

/// What waits in the kernel for the files of a device to be closed: where `ib_uverbs_remove_one` itself sleeps.
fn waits_for_files() -> Vec<String> {
    let mut found = Vec::new();
    for process in lab::names_in("/proc").unwrap_or_default() {
        let tasks = format!("/proc/{process}/task");
        if !process.starts_with(|first: char| first.is_ascii_digit()) {
            continue;
        }
        for task in lab::names_in(&tasks).unwrap_or_default() {
            // Any of them may be gone already.
            let stack = fs::read_to_string(format!("{tasks}/{task}/stack")).unwrap_or_default();
            if stack.lines().next().is_some_and(|line| line.contains("ib_uverbs_remove_one")) {
                found.push(stack);
            }
        }
    }
    found
}

/// What waits for files while the watch sleeps and has a device open. While it reads, it has one open, too, but for
/// milliseconds.
fn waits_for(watch: &Running) -> Result<Vec<String>> {
    let process = format!("/proc/{}", watch.pid()?);
    let sleeps = || -> Result<bool> {
        let stack = fs::read_to_string(format!("{process}/stack"))?;
        Ok(stack.lines().any(|line| line.contains("poll")))
    };
    let has_device = || {
        let files = lab::names_in(&format!("{process}/fd")).unwrap_or_default();
        files.iter().any(|file| {
            let target = fs::read_link(format!("{process}/fd/{file}"));
            target.is_ok_and(|own| own.starts_with("/dev/infiniband"))
        })
    };
    // All at the same time: what is so before and after.
    let is_held = sleeps()? && has_device() && sleeps()?;
    Ok(if is_held { waits_for_files() } else { Vec::new() })
}

/// Lets something go away while a watch runs: it ends, and never waits for a file that the watch keeps open.
fn goes(what: &str, watch: &Running, removal: impl FnOnce() -> Result<()> + Send) -> Result<()> {
    let (mut looks, mut short, mut waiting) = (0, 0, Vec::new());
    let mut look = || {
        looks += 1;
        if !waits_for_files().is_empty() {
            short += 1;
            waiting.extend(waits_for(watch).unwrap_or_default());
        }
    };
    thread::scope(|scope| -> Result<()> {
        let removal = scope.spawn(removal);
        wait_until(&format!("{what} ends"), || {
            look();
            removal.is_finished()
        })?;
        removal.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })?;
    // What goes on by itself: the device of an interface that is gone.
    look();
    println!(
        "figure: {what}: over; {short} of {looks} looks saw it wait for a file, {} while the watch slept",
        waiting.len()
    );
    ensure!(waiting.is_empty(), "{what} waited: {}", waiting.join("\n"));
    wait_until("nothing waits any more", || waits_for_files().is_empty())
}

/// That a removal which waits for an open file is seen to, where soft RoCE still does.
fn waiting_is_seen() -> Result<()> {
    if lab::kernel()? >= (7, 3) {
        return Ok(());
    }
    let netdev = Netdev::dummy("d9", "02:11:22:33:44:99")?;
    let rxe = made_on(&netdev, "rxe9")?;
    let context = Host::new().open("rxe9")?;
    let removal = thread::spawn(move || drop(rxe));
    wait_until("the removal is seen to wait", || !waits_for_files().is_empty())?;
    println!("figure: with a file open the removal is seen to wait");
    drop(context);
    removal.join().map_err(|_| anyhow::anyhow!("the removal failed"))
}

/// Waits until a line is about this.
fn is_told(watch: &Running, what: &str, device: &str) -> Result<()> {
    wait_until(&format!("{device}: {what}"), || {
        watch.lines().is_ok_and(|lines| has(&lines, what, device))
    })
}

fn command(words: &'static [&'static str]) -> impl FnOnce() -> Result<()> + Send {
    move || run(words).map(drop)
}

/// Soft RoCE: a device is removed, its interface is, it is moved to another namespace, and its module goes.
pub(crate) fn nothing_waits_for_a_watch() -> Result<()> {
    waiting_is_seen()?;
    let mode = Exclusive::set()?;
    let (pod, home) = (Namespace::new("pod")?, Namespace::first(HOME)?);
    let netdev = Netdev::dummy("d0", "02:11:22:33:44:55")?;
    let watch = Running::new(&["watch", "--json", "--reread", "0"])?;
    for name in ["rxe0", "rxe1", "rxe2", "rxe3"] {
        // Something else takes each of them away.
        std::mem::forget(made_on(&netdev, name)?);
        is_told(&watch, "device_came", name)?;
        match name {
            "rxe0" => goes("rdma link del", &watch, command(&["rdma", "link", "delete", "rxe0"]))?,
            "rxe1" => {
                goes("rmmod", &watch, || {
                    delete_module(c"rdma_rxe", 0).context("unloading rdma_rxe")
                })?;
                boot::load_missing_modules()?;
            }
            "rxe2" => {
                let away = || -> Result<()> {
                    let moved = output(&["rdma", "dev", "set", "rxe2", "netns", "pod"])?;
                    let said = String::from_utf8_lossy(&moved.stderr);
                    // Only of drivers that let go.
                    ensure!(moved.status.success() == (lab::kernel()? >= (7, 3)), "{said}");
                    Ok(())
                };
                goes("rdma dev set netns", &watch, away)?;
                if lab::kernel()? >= (7, 3) {
                    is_told(&watch, "device_went", name)?;
                    pod.run(&["rdma", "dev", "set", "rxe2", "netns", HOME])?;
                }
                run(&["rdma", "link", "delete", "rxe2"])?;
            }
            _ => goes("ip link del", &watch, command(&["ip", "link", "delete", "d0"]))?,
        }
        is_told(&watch, "device_went", name)?;
    }
    std::mem::forget(netdev);
    watch.end()?;
    drop((pod, home, mode));
    // No wait for a file began later either.
    thread::sleep(stretched(Duration::from_millis(100)));
    ensure!(waits_for_files().is_empty());
    Ok(())
}

/// mlx5: its driver is unbound, its module goes, it is moved to another namespace, its PCI function goes.
pub(crate) fn nothing_waits_for_a_watch_of_mlx5() -> Result<()> {
    let mode = Exclusive::set()?;
    let (pod, home) = (Namespace::new("pod")?, Namespace::first(HOME)?);
    let mut device = Mlx5::bind(0, &Description::roce())?;
    let watch = Running::new(&["watch", "--json", "--reread", "0"])?;
    let went = |count: usize| {
        wait_until(&format!("{count} devices went"), || {
            let lines = watch.lines().unwrap_or_default();
            lines.iter().filter(|line| line["what"] == "device_went").count() == count
        })
    };
    goes("unbinding the driver", &watch, || device.rebind())?;
    went(1).or_else(|_| is_told(&watch, "device_replaced", device.name()))?;
    let mut module = None;
    goes("rmmod mlx5_ib", &watch, || {
        module = Some(IbModule::unload()?);
        Ok(())
    })?;
    module.context("it was not unloaded")?.load()?;
    device.find()?;
    let name = device.name().to_owned();
    goes("rdma dev set netns", &watch, || {
        run(&["rdma", "dev", "set", &name, "netns", "pod"]).map(drop)
    })?;
    pod.run(&["rdma", "dev", "set", &name, "netns", HOME])?;
    device.find()?;
    let mut function = None;
    goes("removing the PCI function", &watch, || {
        function = Some(device.unplug()?);
        Ok(())
    })?;
    wait_until("the last device went", || {
        let lines = watch.lines().unwrap_or_default();
        let came = lines
            .iter()
            .rev()
            .find(|line| line["what"].as_str().is_some_and(|what| what.starts_with("device_")));
        came.is_some_and(|line| line["what"] == "device_went")
    })?;
    watch.end()?;
    let function = function.context("it was not removed")?;
    function.rescan()?;
    drop(Mlx5::bind_as_it_is(function)?);
    drop((pod, home, mode));
    Ok(())
}
