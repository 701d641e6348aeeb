//! The static command as in the image: in a root folder with nothing else. Checks the statements of
//! `src/docs/containers.md`, and the memory that it uses.

use std::fs;
use std::io::{Read as _, Write as _, pipe};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use rustix::pipe::fcntl_setpipe_size;
use serde_json::Value;
use uverbs_mlx5_function::description::Description;

use super::costs::traced;
use crate::lab::container::Container;
use crate::lab::mlx5::Mlx5;
use crate::lab::podman::Podman;
use crate::lab::{self, Namespace, run};
use uverbs_vm::has_its_turn;

/// The most memory of `uverbs gids` on one device at any time, in kilobytes. Most are pages of the command's file: how
/// many of these the kernel maps at once differs by 5 %.
const PEAK: u64 = 3300;

const NOBODY: u32 = 65_534;

/// What the command says in an empty root, without any capability, is what it says outside.
pub(crate) fn an_empty_root() -> Result<()> {
    let _lab = lab::two_soft_roce_devices()?;
    let program = fs::metadata("/usr/bin/uverbs")?.len();
    println!("figure: the command's static file has {program} bytes");
    for user in [0, NOBODY] {
        let container = Container { namespace: None, nodes: true, user };
        for command in [
            &["devices"][..],
            &["gids"],
            &["ports"],
            &["guids"],
            &["gid", "rxe0:1", "1"],
            &["gids", "--json", "--source", "ioctl"],
            &["--help"],
            &["man"],
            &["completions", "bash"],
        ] {
            let outside = run(&[&["uverbs"], command].concat())?;
            let inside = container.output(command)?;
            let (stdout, stderr) =
                (String::from_utf8(inside.stdout)?, String::from_utf8(inside.stderr)?);
            ensure!(
                inside.status.success() && stderr.is_empty(),
                "{command:?}: {}, {stderr}",
                inside.status
            );
            ensure!(!stdout.is_empty() && stdout == outside, "{command:?}:\n{stdout}\n{outside}");
        }
    }
    Ok(())
}

/// Its memory is counted when it has all of its answer and writes it, into a pipe that is full.
pub(crate) fn little_memory_and_one_thread() -> Result<()> {
    let _lab = lab::vlan_lab()?;
    let (mut reader, mut writer) = pipe()?;
    let room = fcntl_setpipe_size(&writer, 4096)?;
    writer.write_all(&vec![b'\n'; room])?;
    let mut child = Command::new("uverbs").arg("gids").stdout(writer).spawn()?;
    let of_child = |file: &str| fs::read_to_string(format!("/proc/{}/{file}", child.id()));
    // Of `write` and `writev`, to the standard output.
    let is_writing = |call: &str| call.starts_with("1 0x1 ") || call.starts_with("20 0x1 ");
    lab::wait_until("it writes", || of_child("syscall").is_ok_and(|call| is_writing(&call)))?;
    let number = |file: &str, name: &str| lab::number_of(child.id(), file, name);
    // The first is a sum of counters that the kernel keeps roughly, the other is exact.
    let (peak, now) = (number("status", "VmHWM")?, number("smaps_rollup", "Rss")?);
    let threads = number("status", "Threads")?;
    let mut answer = String::new();
    reader.read_to_string(&mut answer)?;
    ensure!(child.wait()?.success() && answer.contains("::ffff:192.168.77.1"), "{answer}");

    println!("figure: `uverbs gids` on 1 device: at most {peak} kB, at its end {now} kB");
    ensure!(peak <= PEAK && now <= PEAK, "more than {PEAK} kB");
    ensure!(threads == 1, "{threads} threads");

    let calls = traced(&["uverbs", "gids"])?;
    let starts = |call: &&String| ["clone", "fork"].iter().any(|name| call.contains(name));
    let started: Vec<_> = calls.iter().filter(starts).collect();
    ensure!(!calls.is_empty() && started.is_empty(), "{started:?}");
    Ok(())
}

/// What containers can ask, by what they are given, in the shared and the exclusive mode. The table of
/// `src/docs/containers.md` says the same.
pub(crate) fn what_containers_need() -> Result<()> {
    let all = [("devices", 1), ("gids", 4), ("ports", 1), ("guids", 1)];
    {
        let _lab = lab::vlan_lab()?;
        let pod = Namespace::new("pod")?;
        answered(None, &all)?;
        answered(Some(&pod), &all)?;
    }
    let _mode = lab::Exclusive::set()?;
    let _lab = lab::vlan_lab()?;
    let pod = Namespace::new("pod")?;
    answered(None, &all)?;
    answered(Some(&pod), &all.map(|(command, _)| (command, 0)))
}

/// In exclusive mode a device is given to a pod. (Soft RoCE cannot be, on most kernels.)
pub(crate) fn a_device_given_to_a_pod() -> Result<()> {
    let _mode = lab::Exclusive::set()?;
    let device = Mlx5::bind(0, &Description::roce())?;
    let pod = Namespace::new("pod")?;
    run(&["rdma", "dev", "set", device.name(), "netns", "pod"])?;
    // Its GIDs are those of interfaces, of which the pod has none.
    let one = [("devices", 1), ("ports", 1), ("guids", 1)];
    let answered =
        answered(Some(&pod), &one).and_then(|()| answered(None, &one.map(|(it, _)| (it, 0))));
    drop(pod);
    let folder = format!("/sys/class/infiniband/{}", device.name());
    lab::wait_until("the device is back", || fs::exists(&folder).is_ok_and(|is| is))?;
    answered
}

/// Podman gives a container the nodes of the one device that it was asked for, by what `uverbs cdi` wrote. It does not
/// hide names: in shared mode the kernel shows all devices to all. In exclusive mode a container sees only devices that
/// were given to its network namespace, and a node of another is of no use to it.
pub(crate) fn podman_gives_one_device() -> Result<()> {
    lab::on_the_newest_kernel("it is about the engine, not about the kernel")?;
    let podman = Podman::new()?;
    {
        let _lab = lab::two_soft_roce_devices()?;
        podman.write_devices()?;
        for (one, other) in [(0, 1), (1, 0)] {
            if has_its_turn(u64::from(one), 2) {
                only_one(&podman, one, other)?;
            }
        }
        let unknown = podman.output(&["--device", "uverbs/rdma=rxe7"], &["devices"])?;
        ensure!(!unknown.status.success(), "a device that is not there was given");
    }
    let _mode = lab::Exclusive::set()?;
    let _lab = lab::two_soft_roce_devices()?;
    podman.write_devices()?;
    let listed = podman.output(&["--device", "uverbs/rdma=rxe0"], &["devices", "--no-header"])?;
    let said = String::from_utf8(listed.stderr)?;
    ensure!(listed.status.success() && listed.stdout.is_empty(), "{said}");
    ensure!(said.contains("each device belongs to one network namespace"), "{said}");
    Ok(())
}

/// A container that was given one device opens it and not the other.
fn only_one(podman: &Podman, one: u32, other: u32) -> Result<()> {
    let [one_name, other_name] = [one, other].map(|number| format!("rxe{number}"));
    let device = format!("uverbs/rdma={one_name}");
    let options = ["--device", &device];
    // There is no `issm` of RoCE on this kernel.
    let expected = ["rdma_cm".to_owned(), format!("umad{one}"), format!("uverbs{one}")];
    let nodes = podman.nodes(&options)?;
    ensure!(nodes == expected, "{nodes:?}");
    let opened = podman.output(&options, &["gids", &one_name, "--source", "ioctl"])?;
    ensure!(opened.status.success() && opened.stderr.is_empty(), "it did not open");
    ensure!(String::from_utf8(opened.stdout)?.contains(&one_name), "no row");
    let others = ["gids", &other_name, "--source", "ioctl"];
    let refused = podman.output(&options, &others)?;
    let said = String::from_utf8(refused.stderr)?;
    ensure!(refused.status.code() == Some(3) && said.contains("no such file"), "{said}");
    // If its node is there by another way, the cgroup refuses it.
    let node = format!("/dev/infiniband/uverbs{other}");
    let volume = format!("{node}:{node}");
    let refused = podman.output(&["--device", &device, "--volume", &volume], &others)?;
    let said = String::from_utf8(refused.stderr)?;
    ensure!(refused.status.code() == Some(3) && said.contains("errno 1)"), "{said}");
    let listed = podman.output(&options, &["devices", "--no-header"])?;
    ensure!(String::from_utf8(listed.stdout)?.lines().count() == 2, "not both have names");
    Ok(())
}

/// Commands have this many rows, whoever the user is: with nodes by ioctl, else by sysfs, of which
/// they tell. No device is no failure, and explained.
fn answered(namespace: Option<&Namespace>, commands: &[(&str, usize)]) -> Result<()> {
    for nodes in [false, true] {
        for user in [0, NOBODY] {
            let container = Container { namespace, nodes, user };
            for (number, (command, count)) in (u64::from(nodes)..).zip(commands) {
                if !has_its_turn(number, 2) {
                    continue;
                }
                let output = container.output(&[command, "--json"])?;
                let (stdout, said) = (&output.stdout, String::from_utf8_lossy(&output.stderr));
                let what = format!("{container:?}: {command}: {output:?}");
                let answer: Value = serde_json::from_slice(stdout).with_context(|| what.clone())?;
                let rows = answer[command].as_array().context("no list")?;
                ensure!(output.status.success() && rows.len() == *count, "{what}");
                let source = if nodes { "ioctl" } else { "sysfs" };
                let wrong = rows.iter().filter_map(|row| row["source"].as_str());
                ensure!(wrong.filter(|told| *told != source).count() == 0, "{what}");
                ensure!(
                    if nodes || *command == "devices" || *count == 0 {
                        said.is_empty() == (*count > 0)
                    } else {
                        said.contains("no such file")
                    },
                    "{what}"
                );
                if *count == 0 {
                    ensure!(said.contains("in another network namespace"), "{what}");
                }
            }
        }
    }
    Ok(())
}
