//! What a watch costs while nothing happens, after one change, and after very many; and `uverbs wait`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use nix::sys::signal::{Signal, kill};
use serde_json::Value;
use uverbs_vm::sample;

use super::{Running, has, made_on};
use crate::lab::{self, Netdev, SoftRoce, output, run, wait_until};
use crate::supervisor::PATH;

/// The most memory that a watch may have, in kB, whatever happens while it does not read.
const PEAK: u64 = 6 << 10;

/// Between two readings a watch makes no system call. One change of an address costs few.
pub(crate) fn an_idle_watch_sleeps() -> Result<()> {
    const LOG: &str = "/tmp/watch.strace";
    let lab = lab::vlan_lab()?;
    lab.rxe.settle()?;
    let calls = |end: &str| -> Result<Vec<String>> {
        let text = fs::read_to_string(LOG)?;
        let lines: Vec<&str> = text.lines().filter(|line| line.contains('(')).collect();
        let begin = lines.iter().position(|line| line.contains("watching ")).context("no begin")?;
        let rest = &lines[begin + 1..];
        let end = rest.iter().position(|line| line.contains(end)).context("no end")?;
        Ok(rest[..end].iter().map(|line| (*line).to_owned()).collect())
    };
    let traced = ["strace", "-f", "-s", "200", "-o", LOG, "uverbs", "watch", "--reread", "0"];
    // A whole run waits a minute.
    let seconds = if sample().is_some() { "3" } else { "60" };
    let mut tries = 0;
    let idle = loop {
        run(&[&traced[..], &["--timeout", seconds]].concat())?;
        // From its first look at what is there to its end, which closes all files. Some machines ask the kernel
        // for the time.
        let all = calls("exit_group(")?;
        println!("{}", all.join("\n"));
        let is_own = |call: &String| !call.contains("clock_gettime(");
        let from_first = all.into_iter().skip_while(|call| !call.contains("epoll")).filter(is_own);
        let idle: Vec<String> = from_first.take_while(|call| !call.contains("close(")).collect();
        // The kernel may say late that an interface is up: then the watch was not idle.
        let is_told = idle.iter().any(|call| call.contains("recvfrom(") && !call.contains("= -1"));
        tries += 1;
        if !is_told || tries == 4 {
            break idle;
        }
        fs::remove_file(LOG)?;
    };
    let sleeps = idle.iter().filter(|call| call.contains("poll(") && !call.contains("epoll"));
    // It looks, sleeps once, until the time is up, and looks again.
    ensure!(sleeps.count() == 1 && idle.len() == 3, "not one sleep: {idle:#?}");
    let calls_in = idle.len();
    println!("figure: {seconds} s without a change: {calls_in} system calls, one of them asleep");

    // The log of the first one says the same.
    fs::remove_file(LOG)?;
    let child = Command::new(traced[0])
        .args(&traced[1..])
        .args(["--count", "1", "--timeout", "60"])
        .env("PATH", PATH)
        .stdout(Stdio::piped())
        .spawn()?;
    wait_until("it sleeps", || {
        fs::read_to_string(LOG).is_ok_and(|log| {
            let after = log.split("watching ").nth(1).unwrap_or_default();
            after.contains("poll([") || after.contains("ppoll([")
        })
    })?;
    lab.netdev.address("10.1.2.3/24")?;
    let output = child.wait_with_output()?;
    println!("{}", String::from_utf8_lossy(&output.stdout));
    ensure!(output.status.success(), "{output:?}");
    let one = calls("gid_came")?;
    println!("{}", one.join("\n"));
    let is_opened =
        |call: &&String| call.contains("open") && call.contains("\"/dev/infiniband/uverbs");
    let tables = one.iter().filter(is_opened).count();
    println!("figure: one address: {} system calls, {tables} openings of the device", one.len());
    ensure!((1..=5).contains(&tables), "opened {tables} times");
    Ok(())
}

/// A device that comes is read once more after it is kept open: what changed before that made no event for this watch.
pub(crate) fn a_new_device_is_read_again() -> Result<()> {
    const LOG: &str = "/tmp/new-device.strace";
    const NODE: &str = "/dev/infiniband/uverbs";
    let netdev = Netdev::dummy("d0", "02:11:22:33:44:55")?;
    let mut child = Command::new("strace")
        .args(["-f", "-s", "200", "-o", LOG, "uverbs", "watch", "--reread", "0", "--timeout", "12"])
        .env("PATH", PATH)
        .spawn()?;
    let log = || fs::read_to_string(LOG).unwrap_or_default();
    wait_until("it begins", || log().contains("watching "))?;
    let _rxe = made_on(&netdev, "rxe0")?;
    ensure!(child.wait()?.success(), "it failed");
    let log = log();
    let lines: Vec<&str> = log.lines().skip_while(|line| !line.contains("watching ")).collect();
    println!("{}", lines.join("\n"));
    let is_kept = |line: &&&str| line.contains("EPOLL_CTL_ADD");
    let is_opened = |line: &&&str| line.contains("open") && line.contains(NODE);
    let kept = lines.iter().rposition(|line| is_kept(&line));
    let opened = lines.iter().rposition(|line| is_opened(&line)).context("it was not read")?;
    println!("figure: a device that comes: {} openings", lines.iter().filter(is_opened).count());
    match kept {
        Some(kept) => ensure!(kept < opened, "kept open in line {kept}, read in line {opened}"),
        None => ensure!(!lets_go()?, "it is not kept open"),
    }
    Ok(())
}

/// Whether removing a soft-RoCE device does not wait for those who have it open: since Linux 7.3.
fn lets_go() -> Result<bool> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease")?;
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
    let (major, minor) = (numbers.next(), numbers.next());
    Ok((major.context("no release")??, minor.context("no release")??) >= (7, 3))
}

/// Without any capability everything is heard that root hears, in one thread, and each line says what was heard.
pub(crate) fn a_watch_of_another_user() -> Result<()> {
    const NOBODY: u32 = 65_534;
    let words = ["watch", "--json", "--reread", "0"];
    let netdev = Netdev::dummy("d0", "02:11:22:33:44:55")?;
    let rxe = made_on(&netdev, "rxe0")?;
    let of_root = Running::new(&words)?;
    let root_said = of_root.said.clone();
    of_root.end()?;
    let watch = Running::of_user(NOBODY, &words)?;
    ensure!(watch.said == root_said, "{:?}, and to root {root_said:?}", watch.said);
    let status = fs::read_to_string(format!("/proc/{}/status", watch.pid()?))?;
    for line in ["CapEff:\t0000000000000000", "Threads:\t1"] {
        ensure!(status.contains(line), "not {line:?}: {status}");
    }
    // What caused the line that is waited for.
    let causes = |what: &str| -> Result<Vec<String>> {
        wait_until(what, || watch.lines().is_ok_and(|lines| has(&lines, what, "rxe0")))?;
        let lines = watch.lines()?;
        let line = lines.iter().find(|line| line["what"] == what).context("no line")?;
        println!("{line}");
        let causes = line["causes"].as_array().into_iter().flatten();
        Ok(causes.filter_map(Value::as_str).map(str::to_owned).collect())
    };
    let heard = |what: &str, wanted: &[&str]| -> Result<()> {
        let causes = causes(what)?;
        let is_heard =
            !causes.is_empty() && causes.iter().all(|own| wanted.contains(&own.as_str()));
        ensure!(is_heard, "{what}: {causes:?}");
        Ok(())
    };
    netdev.address("10.1.2.3/24")?;
    heard("gid_came", &["route", "async_event"])?;
    drop(rxe);
    heard("device_went", &["uevent", "monitor", "async_event"])?;
    let rxe = SoftRoce::new("rxe0", &netdev)?;
    rxe.wait_for_gids(2)?;
    heard("device_came", &["uevent", "monitor"])?;
    let lines = watch.lines()?;
    let time = |line: &Value| line["monotonic_ns"].as_u64();
    ensure!(lines.iter().all(|line| time(line).is_some()), "{lines:?}");
    ensure!(lines.is_sorted_by(|one, next| time(one) <= time(next)), "{lines:?}");
    watch.end()
}

/// A watch is stopped through very many changes. Afterwards its lines give what there is, and it says that it
/// lost something.
pub(crate) fn a_stopped_watch_says_what_it_lost() -> Result<()> {
    let changes = if sample().is_some() { 2000 } else { 10_000 };
    let netdev = Netdev::dummy("d0", "02:11:22:33:44:55")?;
    let watch = Running::new(&["watch", "--json", "--reread", "0"])?;
    let rxe = made_on(&netdev, "rxe0")?;
    let came = || watch.lines().is_ok_and(|lines| has(&lines, "device_came", "rxe0"));
    wait_until("the device is seen", came)?;
    kill(watch.pid()?, Signal::SIGSTOP)?;
    let mut batch = String::new();
    for number in 0..changes / 2 {
        let address = format!("10.{}.{}.1/32", number / 250 % 250, number % 250);
        writeln!(batch, "addr add {address} dev d0\naddr del {address} dev d0")?;
    }
    batch += "addr add 192.168.77.1/24 dev d0\naddr add 2001:db8::7/64 dev d0 nodad\n";
    fs::write("/tmp/batch", batch)?;
    run(&["ip", "-batch", "/tmp/batch"])?;
    // The kernel may still write the table.
    kill(watch.pid()?, Signal::SIGCONT)?;
    rxe.wait_for_gids(3)?;
    let now = run(&["uverbs", "gids", "--json"])?;
    let now: Value = serde_json::from_str(&now)?;
    let mut copy = BTreeMap::new();
    wait_until("all is found", || {
        copy = watch.lines().map(|lines| table(&lines)).unwrap_or_default();
        let rows = now["gids"].as_array().into_iter().flatten();
        copy.values().eq(rows)
    })
    .with_context(|| format!("{copy:#?} and {now:#}"))?;
    let lines = watch.lines()?;
    ensure!(lines.iter().any(|line| line["what"] == "lost"), "no loss was told");
    let peak = lab::number_of(watch.child.id(), "status", "VmHWM")?;
    println!("figure: stopped through {changes} changes: {} lines, peak {peak} kB", lines.len());
    ensure!(peak <= PEAK, "{peak} kB are more than {PEAK}");
    watch.end()
}

/// The rows of a table that lines make, by port and index.
fn table(lines: &[Value]) -> BTreeMap<(u64, u64), Value> {
    let mut rows = BTreeMap::new();
    let slot = |row: &Value| {
        (row["port"].as_u64().unwrap_or_default(), row["index"].as_u64().unwrap_or_default())
    };
    for line in lines {
        let (before, after) = (&line["before"], &line["after"]);
        let what = line["what"].as_str().unwrap_or_default();
        if what == "device_came" {
            for row in after["gids"].as_array().into_iter().flatten() {
                rows.insert(slot(row), row.clone());
            }
        } else if what.starts_with("gid_") {
            if !before.is_null() {
                rows.remove(&slot(before));
            }
            if !after.is_null() {
                rows.insert(slot(after), after.clone());
            }
        }
    }
    rows
}

/// `uverbs wait` ends when the port has a GID, also if the device is not there at first.
pub(crate) fn waiting_for_a_gid() -> Result<()> {
    let begun = Instant::now();
    let late = output(&["uverbs", "wait", "rxe0:1", "--timeout", "1"])?;
    let said = String::from_utf8_lossy(&late.stderr).into_owned();
    println!("{said}");
    ensure!(late.status.code() == Some(1), "{late:?}");
    ensure!(said.contains("rxe0: no such device") && said.contains("the time is up"), "{said}");
    ensure!(begun.elapsed() >= Duration::from_secs(1), "it did not wait");

    let mut child = Command::new("uverbs")
        .args(["wait", "rxe0:1", "--cidr", "192.168.77.0/24", "--json", "--reread", "0"])
        .env("PATH", PATH)
        .stdout(Stdio::piped())
        .spawn()?;
    let netdev = Netdev::dummy("d0", "02:11:22:33:44:55")?;
    let rxe = SoftRoce::new("rxe0", &netdev)?;
    rxe.wait_for_gids(1)?;
    ensure!(child.try_wait()?.is_none(), "it ended before the address was there");
    netdev.address("192.168.77.1/24")?;
    let mut text = String::new();
    std::io::Read::read_to_string(&mut child.stdout.take().context("its answer")?, &mut text)?;
    let status = child.wait()?;
    ensure!(status.success(), "{status}: {text}");
    let answer: Value = serde_json::from_str(&text)?;
    ensure!(answer["wait"][0]["ipv4"] == "192.168.77.1", "{answer}");
    Ok(())
}
