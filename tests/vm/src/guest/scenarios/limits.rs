//! Programs that lack something: files, memory, system calls, `/sys`, room in the rdma cgroup. They give
//! the same answers as without limits, or say what is missing.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::process::ExitStatusExt;
use std::process::Output;

use anyhow::{Context as _, Result, bail, ensure};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::Value;
use uverbs::context::Context;
use uverbs::error::Cause;
use uverbs::gid::GidEntry;
use uverbs::host::Host;
use uverbs::host::{Preference, Reader, Source};

use super::costs::traced;
use crate::lab::limited::{Cgroup, Limit};
use crate::lab::{self, on_the_newest_kernel, output, run};
use uverbs_vm::has_its_turn;

const UVERBS: &str = "/usr/bin/uverbs";

/// The errno values of what is forbidden: a container engine's, and a kernel's without the call.
const PERM: u32 = 1;
const NOSYS: u32 = 38;

/// The commands, each with the name of its list.
const COMMANDS: [&str; 4] = ["devices", "gids", "ports", "guids"];

fn rows(command: &str, output: &Output) -> Result<Vec<Value>> {
    let answer: Value = serde_json::from_slice(&output.stdout)?;
    Ok(answer[command].as_array().context("no list")?.clone())
}

/// Whether a value is equal to another, or unknown. Sources are not compared, nor what says that it is unknown.
fn is_or_open(value: &Value, right: &Value) -> bool {
    match (value, right) {
        (Value::Null, _) => true,
        (Value::Array(values), Value::Array(rights)) => {
            values.len() == rights.len()
                && values.iter().zip(rights).all(|(value, right)| is_or_open(value, right))
        }
        (Value::Object(row), Value::Object(_)) => {
            let is_open = |key: &str| key == "source" || key.ends_with("_is_unread");
            row.iter().all(|(key, value)| is_open(key) || is_or_open(value, &right[key]))
        }
        _ => value == right,
    }
}

fn are_right(rows: &[Value], all: &[Value]) -> bool {
    rows.iter().all(|row| all.iter().any(|right| is_or_open(row, right)))
}

/// What may come of a command from which something is withheld: all of its rows and status 0, or
/// fewer and a reason. Never a row that is not so, and never a panic. Returns whether it was all.
pub(super) fn right_or_refused(command: &str, all: &[Value], output: &Output) -> Result<bool> {
    let said = String::from_utf8_lossy(&output.stderr);
    let what = || format!("{command}: {output:?}");
    ensure!(!said.contains("panicked"), what());
    match output.status.code() {
        Some(0) => {
            let rows = rows(command, output).with_context(what)?;
            // No row at all is the answer of a host without devices, and explained.
            let none = rows.is_empty() && said.contains("no RDMA device");
            let right = rows.len() == all.len() && are_right(&rows, all);
            ensure!(none || right, "{}\nand not {all:?}", what());
            Ok(!none)
        }
        Some(1 | 3) => {
            // The reason is in the document; without a document, on stderr.
            let has_reason = output.stdout.windows(9).any(|text| text == b"\"error\":\"");
            ensure!(!said.is_empty() || has_reason, what());
            if !output.stdout.is_empty() {
                let rows = rows(command, output).with_context(what)?;
                ensure!(are_right(&rows, all), "{}\nand not {all:?}", what());
            }
            Ok(false)
        }
        _ => bail!("{}", what()),
    }
}

pub(super) fn baseline(command: &str) -> Result<Vec<Value>> {
    let output = output(&[UVERBS, command, "--json"])?;
    ensure!(output.status.success(), "{output:?}");
    let rows = rows(command, &output)?;
    ensure!(!rows.is_empty(), "{output:?}");
    Ok(rows)
}

/// With ever more open files allowed, from none: an error that names the limit, or sysfs where the
/// listing wants it, and from some number on the answer.
pub(crate) fn few_files() -> Result<()> {
    let _lab = lab::two_soft_roce_devices()?;
    for command in COMMANDS {
        let all = baseline(command)?;
        let mut enough = None;
        for files in 0..=12 {
            let output = Limit::Files(files).output(&[UVERBS, command, "--json"])?;
            let said = format!("{output:?}");
            if right_or_refused(command, &all, &output)? {
                enough = enough.or(Some(files));
            } else {
                ensure!(enough.is_none(), "{command} with {files} files: {output:?}");
                ensure!(said.contains("ulimit -n"), "{command} with {files} files: {said}");
            }
        }
        let enough = enough.context("never enough")?;
        println!("figure: `uverbs {command}` on 2 devices is content with {enough} open files");
    }

    // The library, in this process: nothing stays open after a failure.
    let mut host = Host::new();
    let device = host.device("rxe0")?;
    let before = lab::names_in("/proc/self/fd")?.len();
    let limit = getrlimit(Resource::Nofile);
    let now = u64::try_from(before)?;
    setrlimit(Resource::Nofile, Rlimit { current: Some(now - 1), ..limit })?;
    let mut kept = Host::new();
    let (opened, listed) = (Context::open(&device), kept.devices());
    setrlimit(Resource::Nofile, limit)?;
    for error in [opened.err().context("opened")?, listed.err().context("listed")?] {
        println!("{error}");
        ensure!(error.errno() == 24, "{error:?}");
    }
    ensure!(lab::names_in("/proc/self/fd")?.len() == before, "files stay open");
    // That there was no netlink for want of a file is no reason to have none for ever.
    ensure!(kept.netlink_error().is_some_and(|error| error.errno() == 24));
    ensure!(kept.device("rxe0")?.index.is_some() && kept.netlink_error().is_none());
    Ok(())
}

/// With ever less memory: the whole answer, or an end without one; never a part that looks whole.
pub(crate) fn little_memory() -> Result<()> {
    const STEP: u64 = 64 << 10;
    let _lab = lab::two_soft_roce_devices()?;
    for command in COMMANDS {
        let all = baseline(command)?;
        let (mut refused, mut least) = (0, None);
        for bytes in (1..=64).map(|step| step * STEP) {
            let output = Limit::Memory(bytes).output(&[UVERBS, command, "--json"])?;
            let what = format!("{command} with {bytes} bytes: {output:?}");
            match output.status.signal() {
                // Its own end without memory, or the kernel's before it begins.
                Some(6 | 9 | 11) => {
                    ensure!(output.stdout.is_empty(), "{what}");
                    refused += 1;
                    ensure!(least.is_none(), "{what}");
                }
                _ if right_or_refused(command, &all, &output).context(what)? => {
                    least = least.or(Some(bytes));
                }
                _ => refused += 1,
            }
        }
        let least = least.context("never enough")?;
        println!(
            "figure: `uverbs {command}`: {} kB of address space do, {refused} times refused",
            least >> 10
        );
        ensure!(refused > 0, "{command} was never short of memory");
    }
    Ok(())
}

/// If a filter forbids `ioctl`, sysfs answers and the reason is reported. If it forbids sockets,
/// the devices are listed by sysfs.
pub(crate) fn forbidden_calls() -> Result<()> {
    let _lab = lab::two_soft_roce_devices()?;
    for command in COMMANDS {
        let all = baseline(command)?;
        for errno in [PERM, NOSYS] {
            let output = Limit::Sockets(errno).output(&[UVERBS, command, "--json"])?;
            let shown = format!("{command}, sockets, {errno}: {output:?}");
            println!("{shown}");
            // Only GUIDs are known without netlink.
            let is_all = right_or_refused(command, &all, &output)?;
            ensure!(is_all == (command == "guids"), "{shown}");
            ensure!(shown.contains(&format!("(errno {errno})")), "{shown}");

            let output = Limit::Ioctl(errno).output(&[UVERBS, command, "--json"])?;
            let shown = format!("{command}, ioctl, {errno}: {output:?}");
            println!("{shown}");
            let said = String::from_utf8_lossy(&output.stderr);
            ensure!(output.status.success(), "{shown}");
            if command != "devices" {
                ensure!(
                    said.contains("seccomp") && said.contains(&format!("errno {errno}")),
                    "{shown}"
                );
            }
            let rows = rows(command, &output)?;
            ensure!(rows.len() == all.len(), "{shown}\nand not {all:?}");

            let output =
                Limit::Ioctl(errno).output(&[UVERBS, command, "--json", "--source", "ioctl"])?;
            if command == "gids" || command == "ports" {
                let answer: Value = serde_json::from_slice(&output.stdout)?;
                ensure!(output.status.code() == Some(3), "{output:?}");
                ensure!(answer["problems"][0]["errno"] == errno, "{answer}");
            }
        }
    }
    Ok(())
}

/// If a filter or a limit refuses RDMA netlink, sysfs lists the devices, and what is not known then is a problem with its
/// reason, once in each answer. Interfaces that cannot be listed are one problem, too. Of the host's name nothing hangs.
pub(crate) fn refused_netlink() -> Result<()> {
    const FAMILY: u32 = 97;
    const FILES: u32 = 24;
    let _lab = lab::two_soft_roce_devices()?;
    let run =
        |limit: Limit<'_>, command: &str, errno: u32| -> Result<(String, Option<i32>, usize)> {
            let words: Vec<&str> = core::iter::once(UVERBS).chain(command.split(' ')).collect();
            let output = limit.output(&words)?;
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let all = text(&output.stderr) + &text(&output.stdout);
            println!("{limit} {command}: {:?}\n{all}", output.status);
            let reasons = all.matches(&format!("(errno {errno})")).count();
            Ok((all, output.status.code(), reasons))
        };
    for errno in [FAMILY, PERM, FILES] {
        let refused = |command| run(Limit::RdmaNetlink(errno), command, errno);
        for (command, status) in [
            ("devices", 3),
            ("ports", 3),
            ("gids", 3),
            ("gid rxe0:1 0", 3),
            ("choose", 3),
            ("env nccl", 3),
            ("nfd", 3),
            ("counters", 3),
            ("metrics", 3),
            ("snapshot", 0),
            ("guids", 0),
            ("pkeys", 0),
            ("limits rxe0", 0),
            ("gids --source sysfs", 0),
        ] {
            let (all, code, reasons) = refused(command)?;
            ensure!(code == Some(status), "{command}: {all}");
            // A snapshot has it as the reason and as a problem.
            ensure!(reasons == if command == "snapshot" { 2 } else { 1 }, "{command}: {all}");
            ensure!(
                all.contains("ask RDMA netlink") && !all.contains("ib_core loaded"),
                "{command}: {all}"
            );
        }
        // That something could not be read counts more than that the time is up.
        let (all, code, _) = refused("wait rxe0 --cidr 10.99.0.0/16 --timeout 0.1")?;
        ensure!(code == Some(3) && all.contains("the time is up"), "{all}");
        let (all, code, reasons) = refused("check")?;
        ensure!(code == Some(2) && reasons == 1 && all.contains("host-unreadable"), "{all}");
        let (all, ..) = refused("metrics")?;
        ensure!(all.contains("uverbs_reading_problems 1\n"), "{all}");
        let (all, ..) = refused("watch --timeout 0.1")?;
        ensure!(all.contains("not heard: monitor: host: ask RDMA netlink"), "{all}");
        ensure!(!all.contains("unknown driver") && !all.contains("no RDMA monitor"), "{all}");

        let (all, code, reasons) = run(Limit::RouteNetlink(errno), "check", errno)?;
        ensure!(code == Some(2) && reasons == 1, "{all}");
    }
    let (all, code, _) = run(Limit::Uname(PERM), "choose", PERM)?;
    ensure!(code == Some(0), "{all}");
    Ok(())
}

/// Parts of `/sys` are hidden, as container engines do: what is left is right, and what is missing
/// is reported.
pub(crate) fn hidden_folders() -> Result<()> {
    let _lab = lab::two_soft_roce_devices()?;
    for folders in [
        &["/sys"][..],
        &["/sys/class"],
        &["/sys/class/infiniband"],
        &["/sys/class/infiniband_verbs"],
        &["/sys/class/net"],
        &["/sys/devices/virtual/infiniband_verbs"],
        &["/dev/infiniband"],
        &["/sys", "/dev/infiniband"],
    ] {
        for command in COMMANDS {
            let all = baseline(command)?;
            let output = Limit::Folders(folders).output(&[UVERBS, command, "--json"])?;
            println!("{folders:?}, {command}: {output:?}");
            let said = String::from_utf8_lossy(&output.stderr);
            let what = format!("{folders:?} hidden, {command}: {output:?}");
            ensure!(matches!(output.status.code(), Some(0 | 3)), "{what}");
            ensure!(!said.contains("panicked"), "{what}");
            let rows = rows(command, &output)?;
            ensure!(are_right(&rows, &all), "{what}\nand not {all:?}");
            // RDMA netlink lists the devices, so nothing that is hidden makes this a host without devices.
            ensure!(!said.contains("no RDMA device"), "{what}");
            ensure!(rows.len() == all.len() || output.status.code() == Some(3), "{what}");
            // What is hidden is not "no such port".
            let told = String::from_utf8_lossy(&output.stdout);
            ensure!(!told.contains("no such port"), "{what}");
        }
    }
    Ok(())
}

/// The rdma cgroup allows so many contexts and no more.
pub(crate) fn a_cgroup_that_is_full() -> Result<()> {
    let _lab = lab::vlan_lab()?;
    let cgroup = Cgroup::new("rxe0 hca_handle=1")?;
    let mut host = Host::new();
    let device = host.device("rxe0")?;
    let outside = Context::open(&device)?;
    cgroup.join()?;
    let first = Context::open(&device)?;
    let error = Context::open(&device).err().context("a second one opened")?;
    println!("{error}");
    ensure!(*error.cause() == Cause::Refused && error.errno() == 11, "{error:?}");
    ensure!(error.to_string().contains("hca_handle"), "{error}");
    let mut reader = Reader::new(&device, host.sysfs(), Preference::Auto)?;
    let table = reader.gid_table()?;
    ensure!(table.len() == 4 && table.iter().all(|record| record.source == Source::Sysfs));
    // What is open answers all the same.
    ensure!(first.query_gid_table()?.len() == 4 && outside.query_gid_table()?.len() == 4);

    for command in ["gids", "ports"] {
        let output = Limit::Cgroup(&cgroup).output(&[UVERBS, command])?;
        println!("{output:?}");
        ensure!(output.status.success() && !output.stdout.is_empty());
        ensure!(String::from_utf8_lossy(&output.stderr).contains("hca_handle"), "no reason");
        let output = Limit::Cgroup(&cgroup).output(&[UVERBS, command, "--source", "ioctl"])?;
        ensure!(output.status.code() == Some(3), "{output:?}");
    }
    drop(first);
    drop(Context::open(&device).context("the place is free again")?);
    Ok(())
}

/// Thousands of contexts are opened and closed, and lists made: no file, and nothing of the
/// kernel's, is left.
pub(crate) fn thousands_of_opens() -> Result<()> {
    const OPENS: u32 = 3000;
    let _lab = lab::vlan_lab()?;
    let mut host = Host::new();
    let device = host.device("rxe0")?;
    let files = || lab::names_in("/proc/self/fd").map(|names| names.len());
    let before = (files()?, contexts()?);
    let mut entries = [GidEntry::default(); 8];
    for round in 0..OPENS {
        let context = Context::open(&device)?;
        ensure!(context.query_gid_table_into(&mut entries)? == 4, "round {round}");
        if round % 100 == 0 {
            ensure!(host.devices()?.len() == 1 && Host::new().devices()?.len() == 1);
            // A failure is an end, too.
            ensure!(context.query_gid_ex(2, 0).is_err());
            drop(context.async_events()?);
        }
    }
    ensure!(
        (files()?, contexts()?) == before,
        "left: {:?}, before {before:?}",
        (files()?, contexts()?)
    );

    let open: Vec<_> = (0..500).map(|_| Context::open(&device)).collect::<Result<_, _>>()?;
    println!("{} and {} contexts with 500 open", files()?, contexts()?);
    ensure!(files()? == before.0 + open.len());
    drop(open);
    ensure!((files()?, contexts()?) == before);
    Ok(())
}

/// How many contexts the kernel counts on `rxe0`; before 5.13 it does not say.
fn contexts() -> Result<usize> {
    if lab::kernel()? < (5, 13) {
        return Ok(0);
    }
    let text = run(&["rdma", "resource", "show", "ctx"])?;
    Ok(text.lines().filter(|line| line.contains("rxe0")).count())
}

/// Each system call of a command fails once, in many ways: the answer is all the same, or an error. A run
/// that takes samples interrupts each, and has a third of the other failures.
pub(crate) fn every_call_fails_once() -> Result<()> {
    /// Made before our code runs or when it has ended, or never to fail by the C library's word.
    const NOT_OURS: [&str; 8] = [
        "execve",
        "arch_prctl",
        "set_tid_address",
        "rt_sigaction",
        "rt_sigprocmask",
        "sigaltstack",
        "poll",
        "exit_group",
    ];
    /// By which the C library and the allocator get memory: a program without ends itself.
    const MEMORY: [&str; 6] = ["brk", "mmap", "munmap", "mprotect", "mremap", "madvise"];
    /// It may be interrupted by a signal, which is no reason to give up.
    const INTERRUPTED: [&str; 8] =
        ["getdents64", "ioctl", "open", "openat", "read", "recvmmsg", "sendto", "write"];
    const ERRORS: [&str; 6] = ["EINTR", "ENOMEM", "EMFILE", "EIO", "EPERM", "EAGAIN"];

    on_the_newest_kernel("what a program makes of a failed call is the same on each")?;
    let _lab = lab::vlan_lab()?;
    let (mut runs, mut answered, mut seen, mut failure) = (0, 0, BTreeSet::new(), 0);
    for command in ["gids", "ports"] {
        let all = baseline(command)?;
        let mut counts = BTreeMap::<String, u32>::new();
        for call in traced(&[UVERBS, command, "--json"])? {
            let name = call.split('(').next().and_then(|words| words.split_whitespace().last());
            *counts.entry(name.context("no name")?.to_owned()).or_default() += 1;
        }
        for (name, count) in counts {
            if NOT_OURS.contains(&&*name) {
                continue;
            }
            for (error, number) in
                ERRORS.iter().flat_map(|error| (1..=count).map(move |n| (error, n)))
            {
                failure += 1;
                if *error != "EINTR" && !has_its_turn(failure, 7) {
                    continue;
                }
                let inject = format!("inject={name}:error={error}:when={number}");
                let strace = ["strace", "-f", "-o", "/tmp/strace", "-e", &format!("trace={name}")];
                let output =
                    output(&[&strace[..], &["-e", &inject, UVERBS, command, "--json"]].concat())?;
                runs += 1;
                let is_memory = MEMORY.contains(&&*name);
                if is_memory && output.status.code().is_none_or(|code| code > 3) {
                    ensure!(output.stdout.is_empty(), "{inject}: {output:?}");
                    continue;
                }
                let whole = right_or_refused(command, &all, &output).context(inject.clone())?;
                let is_interrupted = *error == "EINTR" && INTERRUPTED.contains(&&*name);
                ensure!(whole || !is_interrupted, "{inject}: {output:?}");
                answered += u32::from(whole);
            }
            seen.insert(name);
        }
    }
    println!(
        "figure: {runs} runs in each of which one call failed: {answered} whole answers, else an error"
    );
    println!("figure: the calls: {}", seen.into_iter().collect::<Vec<_>>().join(" "));
    ensure!(runs > 100 && answered > 0 && answered < runs);
    Ok(())
}
