//! The flight recorder: what it says of a moment is what the commands said then, and a full disk tears nothing.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::thread;
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_remount, unmount};
use serde_json::Value;
use uverbs::watch::format_time;

use crate::lab::{Netdev, SoftRoce, output, run, wait_until};
use crate::supervisor::PATH;

/// The command, which records to a file.
struct Recorder {
    child: Child,
    said: BufReader<ChildStderr>,
}

impl Recorder {
    /// Starts it, and waits until it has begun.
    fn new(file: &str, arguments: &[&str]) -> Result<Self> {
        let mut child = Command::new("uverbs")
            .args(["watch", "--record", file])
            .args(arguments)
            .env("PATH", PATH)
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let said = BufReader::new(child.stderr.take().context("its messages")?);
        let mut this = Self { child, said };
        this.says("recording ")?;
        wait_until("the first line", || fs::metadata(file).is_ok_and(|own| own.len() > 0))?;
        Ok(this)
    }

    /// Waits until it says this.
    fn says(&mut self, what: &str) -> Result<()> {
        loop {
            let mut line = String::new();
            ensure!(self.said.read_line(&mut line)? > 0, "it ended before it said {what:?}");
            print!("{line}");
            if line.contains(what) {
                return Ok(());
            }
        }
    }

    /// The most memory that it had.
    fn peak(&self) -> Result<String> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let peak = status.lines().find(|line| line.starts_with("VmHWM")).context("no peak")?;
        Ok(peak.split_whitespace().collect::<Vec<_>>().join(" "))
    }

    fn end(mut self) -> Result<()> {
        kill(Pid::from_raw(i32::try_from(self.child.id())?), Signal::SIGTERM)?;
        let status = self.child.wait()?;
        ensure!(status.success(), "it ended with {status}");
        Ok(())
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What is compared: by the same key, live and of a recording.
const ASKED: [&[&str]; 5] =
    [&["gids"], &["ports"], &["guids"], &["choose"], &["choose", "--like", "nccl-2.20"]];

/// The list of a command's answer, without the host's name and without counters.
fn answer(words: &[&str], more: &[&str]) -> Result<Value> {
    let all = [&["uverbs"], words, &["--json"], more].concat();
    let output = output(&all)?;
    let mut answer: Value = serde_json::from_slice(&output.stdout)
        .with_context(|| format!("{all:?}: {}", String::from_utf8_lossy(&output.stderr)))?;
    let mut rows = answer[words[0]].take();
    for row in rows.as_array_mut().context("no list")? {
        let row = row.as_object_mut().context("no object")?;
        // Counters are not recorded.
        for key in ["host", "bad_pkey_cntr", "qkey_viol_cntr"] {
            row.remove(key);
        }
    }
    Ok(rows)
}

/// What all commands say.
fn answers(more: &[&str]) -> Result<Vec<Value>> {
    ASKED.iter().map(|words| answer(words, more)).collect()
}

/// Addresses, interfaces and devices change while a recorder runs. Afterwards each moment between two changes is
/// asked for.
pub(crate) fn each_moment_is_as_it_was() -> Result<()> {
    const FILE: &str = "/tmp/record.jsonl";
    let netdev = Netdev::dummy("d0", "02:11:22:33:44:55")?;
    netdev.address("192.168.77.1/24")?;
    let rxe = SoftRoce::new("rxe0", &netdev)?;
    rxe.wait_for_gids(2)?;
    rxe.settle()?;
    let recorder = Recorder::new(FILE, &["--reread", "1"])?;
    let first = fs::metadata(FILE)?.len();
    let end = ["--from", FILE, "--at", "end"];
    let mut moments = Vec::new();
    let mut see = |what: &str| -> Result<()> {
        let mut live = Vec::new();
        wait_until(&format!("{what}: it is recorded"), || {
            live = answers(&[]).unwrap_or_default();
            !live.is_empty() && answers(&end).is_ok_and(|own| own == live)
        })
        .with_context(|| format!("live {live:#?}, recorded {:#?}", answers(&end)))?;
        moments.push((what.to_owned(), format_time(SystemTime::now(), 3), live));
        // What follows is found later.
        thread::sleep(Duration::from_millis(20));
        Ok(())
    };
    see("at first")?;
    for words in [
        "ip addr add 10.7.0.1/24 dev d0",
        "ip addr add 2001:db8::1/64 dev d0 nodad",
        "ip addr del 192.168.77.1/24 dev d0",
        "ip link add link d0 name d0.7 type vlan id 7",
        "ip link set d0.7 up",
        "ip addr add 10.8.0.1/24 dev d0.7",
        "ip addr add 192.168.77.1/24 dev d0",
        "ip link set d0.7 down",
        "ip link del d0.7",
        "ip link set d0 address 02:99:00:00:00:01",
        "rdma dev set rxe0 name roce0",
        "rdma link delete roce0",
    ] {
        run(&words.split(' ').collect::<Vec<_>>())?;
        see(words)?;
    }
    std::mem::forget(rxe);
    println!("figure: a recorder's first line {first} bytes, peak {}", recorder.peak()?);
    recorder.end()?;
    let length = fs::metadata(FILE)?.len();
    println!("figure: {} bytes for {} moments", length - first, moments.len());
    let mut different = 0;
    for pair in moments.windows(2) {
        different += u32::from(pair[0].2 != pair[1].2);
    }
    ensure!(different >= 10, "only {different} of the steps changed an answer");
    for (what, time, live) in &moments {
        let then = answers(&["--from", FILE, "--at", time])?;
        for ((words, live), then) in ASKED.iter().zip(live).zip(&then) {
            ensure!(live == then, "after {what}, at {time}: {words:?}: {live:#} and {then:#}");
        }
    }
    let history = run(&["uverbs", "history", FILE, "rxe0:1"])?;
    println!("{history}");
    ensure!(history.contains("gid_came") && history.contains("device_renamed"), "{history}");
    let choices = run(&["uverbs", "history", FILE, "--like", "nccl-2.20"])?;
    println!("{choices}");
    ensure!(choices.contains("choice"), "{choices}");
    Ok(())
}

/// The disk becomes full while addresses come and go, and then has room again.
pub(crate) fn a_recorder_on_a_full_disk() -> Result<()> {
    const FOLDER: &str = "/tmp/small";
    const FILE: &str = "/tmp/small/record.jsonl";
    fs::create_dir_all(FOLDER)?;
    mount("tmpfs", FOLDER, "tmpfs", MountFlags::empty(), c"size=64k").context("mounting")?;
    let netdev = Netdev::dummy("d0", "02:11:22:33:44:55")?;
    let rxe = SoftRoce::new("rxe0", &netdev)?;
    rxe.wait_for_gids(1)?;
    let mut recorder = Recorder::new(FILE, &["--reread", "1"])?;
    let end = ["--from", FILE, "--at", "end"];
    let mut number = 0;
    let mut change = || -> Result<()> {
        number += 1;
        let address = format!("10.1.{}.{}", number / 250, number % 250 + 1);
        run(&["ip", "addr", "add", &format!("{address}/32"), "dev", "d0"])?;
        run(&["ip", "addr", "del", &format!("{address}/32"), "dev", "d0"])?;
        thread::sleep(Duration::from_millis(5));
        Ok(())
    };
    let filler = "x".repeat(1 << 10);
    let mut fill = 0;
    // All but a page is taken by somebody else.
    while fs::write(format!("{FOLDER}/fill{fill}"), &filler).is_ok() {
        fill += 1;
    }
    for _ in 0..100 {
        change()?;
    }
    recorder.says("No space left on device")?;
    let text = fs::read_to_string(FILE)?;
    ensure!(text.ends_with('\n'), "a line is torn: {text}");
    let rows = answer(&["gids"], &end)?;
    println!("figure: when the disk was full {} lines were whole", text.lines().count());
    ensure!(rows.as_array().is_some_and(|rows| !rows.is_empty()), "nothing is read back");
    mount_remount(FOLDER, MountFlags::empty(), c"size=1m").context("more room")?;
    run(&["ip", "addr", "add", "192.168.77.1/24", "dev", "d0"])?;
    recorder.says("recording again")?;
    wait_until("the address is recorded", || {
        answer(&["gids"], &end).is_ok_and(|own| own.to_string().contains("192.168.77.1"))
    })?;
    recorder.end()?;
    ensure!(fs::read_to_string(FILE)?.starts_with(&text), "what was written is there");
    let history = run(&["uverbs", "history", FILE])?;
    ensure!(history.contains("not_recorded"), "{history}");
    Ok(unmount(FOLDER, UnmountFlags::empty())?)
}
