//! The static command as the image has it: in a root folder that holds nothing else, with what the
//! README says of containers, and what it takes of memory.

use std::fmt::Write as _;
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
use crate::lab::{self, Namespace, run};

/// The most memory of `uverbs gids` on one device at any time, in kilobytes.
const PEAK: u64 = 3000;

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
    let status = of_child("status")?;
    let rollup = of_child("smaps_rollup")?;
    let mut answer = String::new();
    reader.read_to_string(&mut answer)?;
    ensure!(child.wait()?.success() && answer.contains("::ffff:192.168.77.1"), "{answer}");

    let number = |text: &str, name: &str| -> Result<u64> {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let word = line.and_then(|line| line.split_whitespace().next());
        word.and_then(|word| word.parse().ok()).with_context(|| format!("no {name} in {text}"))
    };
    // The first is a sum of counters that the kernel keeps roughly, the other is exact.
    let (peak, now) = (number(&status, "VmHWM")?, number(&rollup, "Rss")?);
    println!("figure: `uverbs gids` on 1 device: at most {peak} kB, at its end {now} kB");
    ensure!(peak <= PEAK && now <= PEAK, "{status}\n{rollup}");
    ensure!(number(&status, "Threads")? == 1, "{status}");

    let calls = traced(&["uverbs", "gids"])?;
    let starts = |call: &&String| ["clone", "fork"].iter().any(|name| call.contains(name));
    let started: Vec<_> = calls.iter().filter(starts).collect();
    ensure!(!calls.is_empty() && started.is_empty(), "{started:?}");
    Ok(())
}

/// What a pod with its own network namespace can ask, by what it is given. The README's table says
/// the same.
pub(crate) fn what_a_pod_needs() -> Result<()> {
    let mut seen = String::new();
    {
        let _lab = lab::vlan_lab()?;
        let pod = Namespace::new("pod")?;
        answers("shared", &pod, &mut seen)?;
    }
    {
        let _mode = lab::Exclusive::set()?;
        let _lab = lab::vlan_lab()?;
        let pod = Namespace::new("pod")?;
        answers("exclusive", &pod, &mut seen)?;
    }
    println!("{seen}");
    for line in seen.lines() {
        println!("figure: {line}");
    }
    Ok(())
}

/// In exclusive mode a device is given to a pod. (Soft RoCE cannot be, on most kernels.)
pub(crate) fn a_device_given_to_a_pod() -> Result<()> {
    let mut seen = String::new();
    let _mode = lab::Exclusive::set()?;
    let device = Mlx5::bind(0, &Description::roce())?;
    let pod = Namespace::new("pod")?;
    run(&["rdma", "dev", "set", device.name(), "netns", "pod"])?;
    let answered = answers("given", &pod, &mut seen);
    pod.run(&["rdma", "dev", "set", device.name(), "netns", "/proc/1/ns/net"])?;
    answered?;
    for line in seen.lines() {
        println!("figure: {line}");
    }
    Ok(())
}

/// How every command answers in this pod, a line for each.
fn answers(mode: &str, pod: &Namespace, seen: &mut String) -> Result<()> {
    for (place, namespace) in [("host", None), ("pod", Some(pod))] {
        for nodes in [false, true] {
            for user in [0, NOBODY] {
                let container = Container { namespace, nodes, user };
                for command in ["devices", "gids", "ports", "guids"] {
                    let output = container.output(&[command, "--json"])?;
                    let answer: Value = serde_json::from_slice(&output.stdout)
                        .with_context(|| format!("{command}: {output:?}"))?;
                    let rows = answer[command].as_array().context("no list")?;
                    let source = rows.first().and_then(|row| row["source"].as_str());
                    writeln!(
                        seen,
                        "{mode}, {place}, nodes {nodes}, user {user}: {command}: {} by {}, status {:?}, {}",
                        rows.len(),
                        source.unwrap_or("-"),
                        output.status.code(),
                        String::from_utf8_lossy(&output.stderr).trim(),
                    )?;
                }
            }
        }
    }
    Ok(())
}
