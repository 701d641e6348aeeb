//! The cost of queries in system calls, counted by strace.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use uverbs::gid::GidEntry;
use uverbs::host::Host;

use crate::lab::{self, Netdev, SoftRoce, run};

/// The most system calls of the whole process `uverbs gids` on one device with five GIDs.
const WHOLE_PROCESS: usize = 51;

/// Where strace writes.
const LOG: &str = "/tmp/strace";

/// The most that each further device may add.
const FURTHER_DEVICE: usize = 10;

/// `query_gid_table_into` is one system call, an ioctl, and no allocation.
pub(crate) fn one_call_for_the_table() -> Result<()> {
    let _lab = lab::vlan_lab()?;
    let calls = traced(&["/init", "query-table"])?;
    // The query's calls are between two marks, which are unique writes.
    let mark = |text: &str| {
        calls.iter().position(|call| call.contains(text)).with_context(|| format!("no {text}"))
    };
    let (begin, end) = (mark("before the query")?, mark("after the query")?);
    let between = &calls[begin + 1..end];
    println!("{between:#?}");
    ensure!(between.len() == 1 && between[0].contains("ioctl("), "not one ioctl: {between:?}");
    Ok(())
}

/// `guest query-table`: the query of [`one_call_for_the_table`].
pub(crate) fn query_table() -> Result<()> {
    let context = Host::new().open("rxe0")?;
    let mut entries = [GidEntry::default(); 64];
    rustix::io::write(rustix::stdio::stdout(), b"before the query\n")?;
    let count = context.query_gid_table_into(&mut entries);
    rustix::io::write(rustix::stdio::stdout(), b"after the query\n")?;
    ensure!(count? == 4);
    let mut count = None;
    let heap =
        allocation_counter::measure(|| count = context.query_gid_table_into(&mut entries).ok());
    ensure!(count == Some(4) && heap.count_total == 0, "{heap:?}");
    Ok(())
}

/// The static release build of the command line, from its first system call to its last.
pub(crate) fn few_calls_for_the_command() -> Result<()> {
    let mut labs = vec![five_gids(0)?];
    let figure = |command: &[&str]| -> Result<usize> {
        let calls = traced(command)?;
        println!("{}", calls.join("\n"));
        let (devices, count) =
            (devices_in_words(fs::read_dir("/sys/class/infiniband")?.count()), calls.len());
        println!("figure: `{}` on {devices}: {count} system calls", command.join(" "));
        Ok(count)
    };
    let one = figure(&["uverbs", "gids"])?;
    ensure!(one <= WHOLE_PROCESS, "{one} system calls");
    let json = figure(&["uverbs", "gids", "--json"])?;
    ensure!(json <= WHOLE_PROCESS, "{json} system calls with --json");
    // The others, to compare with.
    for peer in [&["ibv_devices"][..], &["ibv_devinfo", "-v"], &["ibstat"]] {
        figure(peer)?;
    }
    let mut before = one;
    for device in 1..4 {
        labs.push(five_gids(device)?);
        let calls = figure(&["uverbs", "gids"])?;
        ensure!(calls <= before + FURTHER_DEVICE, "{} more", calls - before);
        before = calls;
    }
    Ok(())
}

fn devices_in_words(devices: usize) -> String {
    if devices == 1 { "1 device".into() } else { format!("{devices} devices") }
}

/// Route netlink lists the interfaces once, though names need them, and what is told of them: for each
/// list mlx5 asks its firmware.
pub(crate) fn interfaces_are_listed_once() -> Result<()> {
    let _lab = lab::vlan_lab()?;
    for command in [&["choose"][..], &["env", "nccl"], &["check"], &["snapshot"]] {
        let calls = traced(&[&["uverbs"], command].concat())?;
        // RTM_GETLINK, which strace may know by its number only.
        let is_list = |call: &&String| {
            call.contains("send") && (call.contains("RTM_GETLINK") || call.contains("type=0x12 "))
        };
        let lists: Vec<_> = calls.iter().filter(is_list).collect();
        ensure!(lists.len() == 1, "{command:?}: {lists:#?} of {calls:#?}");
    }
    Ok(())
}

/// What a filter excludes is not opened.
pub(crate) fn filters_come_before_opening() -> Result<()> {
    let _lab = lab::two_soft_roce_devices()?;
    let opened = |arguments: &[&str], status: i32| -> Result<Vec<String>> {
        let words = [&["strace", "-f", "-o", LOG, "uverbs", "gids"], arguments].concat();
        let output = lab::output(&words)?;
        ensure!(output.status.code() == Some(status), "{arguments:?}: {output:?}");
        let calls = logged()?;
        let nodes = calls.iter().filter_map(|call| {
            let (_, rest) = call.split_once("/dev/infiniband/")?;
            Some(rest.split('"').next()?.to_owned())
        });
        // Each is looked at before it is opened.
        let mut nodes: Vec<String> = nodes.collect();
        nodes.dedup();
        Ok(nodes)
    };
    // What matches no GID is said, and the status is 1.
    for (arguments, expected, status) in [
        (&[][..], &["uverbs0", "uverbs1"][..], 0),
        (&["rxe1"], &["uverbs1"], 0),
        (&["--netdev", "d1"], &["uverbs1"], 0),
        (&["--netdev", "d0.7"], &["uverbs0"], 0),
        (&["--netdev", "lo"], &[], 1),
        (&["--type", "ib"], &[], 1),
    ] {
        let opened = opened(arguments, status)?;
        ensure!(opened == expected, "{arguments:?} opens {opened:?}");
    }
    // Which interface is not there is said, and the status is 1.
    let words = ["strace", "-f", "-o", "/tmp/missing", "uverbs", "gids", "--netdev", "nosuch"];
    ensure!(lab::output(&words)?.status.code() == Some(1));
    let calls = fs::read_to_string("/tmp/missing")?;
    ensure!(calls.contains("socket(") && !calls.contains("/dev/infiniband/uverbs"), "{calls}");
    let rows = run(&["uverbs", "gids", "--netdev", "d0.7", "--no-header"])?;
    ensure!(rows.lines().count() == 2 && rows.lines().all(|row| row.ends_with(" d0.7")), "{rows}");
    Ok(())
}

/// `rxeN` on `dN` with five GIDs: two of IPv6, three of IPv4.
fn five_gids(number: u8) -> Result<(SoftRoce, Netdev)> {
    let netdev = Netdev::dummy(&format!("d{number}"), &format!("02:00:00:00:00:{number:02x}"))?;
    netdev.address(&format!("2001:db8::{number}:1/64"))?;
    for last in 1..=3 {
        netdev.address(&format!("10.{number}.0.{last}/24"))?;
    }
    let rxe = SoftRoce::new(&format!("rxe{number}"), &netdev)?;
    rxe.wait_for_gids(5)?;
    Ok((rxe, netdev))
}

/// The system calls of a program and its children, a line each.
pub(super) fn traced(command: &[&str]) -> Result<Vec<String>> {
    run(&[&["strace", "-f", "-o", LOG], command].concat())?;
    logged()
}

/// The system calls of the last program that was run so.
fn logged() -> Result<Vec<String>> {
    let text = fs::read_to_string(LOG)?;
    // Left out: "+++ exited with 0 +++" and signals.
    let is_call =
        |line: &&str| line.contains('(') && !line.contains("+++") && !line.contains("---");
    Ok(text.lines().filter(is_call).map(str::to_owned).collect())
}
