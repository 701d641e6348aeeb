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
use uverbs_mlx5_function::description::Description;

use crate::lab::mlx5::{Mlx5, PortEvent};
use crate::lab::{self, Netdev, SoftRoce, output, run, wait_until};
use crate::supervisor::PATH;
use uverbs_vm::sample;

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

    /// The most memory that it had, in kB.
    fn peak(&self) -> Result<u64> {
        let peak = lab::number_of(self.child.id(), "status", "VmHWM")?;
        ensure!(peak <= PEAK, "{peak} kB are more than {PEAK}");
        Ok(peak)
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

/// The most memory that a recorder may have, in kB.
const PEAK: u64 = 6 << 10;

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

/// Addresses, interfaces and devices change while a recorder runs.
pub(crate) fn each_moment_on_soft_roce() -> Result<()> {
    let netdev = Netdev::dummy("d0", "02:11:22:33:44:55")?;
    netdev.address("192.168.77.1/24")?;
    let rxe = SoftRoce::new("rxe0", &netdev)?;
    rxe.wait_for_gids(2)?;
    rxe.settle()?;
    let mut moments = Moments::begin()?;
    moments.steps(&[
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
    ])?;
    std::mem::forget(rxe);
    let history = moments.end("rxe0:1")?;
    ensure!(history.contains("gid_came") && history.contains("device_renamed"), "{history}");
    Ok(())
}

/// The same of an Ethernet port of mlx5. At the end its driver is unbound.
pub(crate) fn each_moment_on_mlx5_roce() -> Result<()> {
    let device = Mlx5::bind(0, &Description::roce())?;
    let (name, netdev) = (device.name().to_owned(), device.netdev()?);
    let mut moments = Moments::begin()?;
    let steps = [
        "ip link set NETDEV up",
        "ip addr add 192.168.77.1/24 dev NETDEV",
        "ip addr add 2001:db8::1/64 dev NETDEV nodad",
        "ip link add link NETDEV name v7 type vlan id 7",
        "ip link set v7 up",
        "ip addr add 10.8.0.1/24 dev v7",
        "ip addr del 192.168.77.1/24 dev NETDEV",
        "ip link set v7 down",
        "ip link del v7",
        "ip link set NETDEV down",
        "ip link set NETDEV up",
        "rdma dev set DEVICE name roce0",
    ];
    let steps = steps.map(|step| step.replace("NETDEV", &netdev).replace("DEVICE", &name));
    moments.steps(&steps.each_ref().map(String::as_str))?;
    drop(device);
    moments.see("the driver is unbound")?;
    let history = moments.end(&format!("{name}:1"))?;
    let seen = ["gid_came", "gid_went", "port_state", "device_renamed", "device_went"];
    for what in seen {
        ensure!(history.contains(what), "no {what}: {history}");
    }
    Ok(())
}

/// The same of two InfiniBand ports of mlx5, of which a subnet manager changes something.
pub(crate) fn each_moment_on_mlx5_infiniband() -> Result<()> {
    let device = Mlx5::bind(0, &Description::infiniband(2))?;
    let (name, function) = (device.name().to_owned(), device.function());
    let mut moments = Moments::begin()?;
    function.port_event(1, PortEvent::Lid, |port| port.lid = 77)?;
    moments.see("LID")?;
    function.port_event(2, PortEvent::PKeys, |port| port.pkeys = vec![0xffff, 0x8007])?;
    moments.see("P_Keys")?;
    function.port_event(2, PortEvent::Reregister, |port| port.sm_lid = 9)?;
    moments.see("subnet manager")?;
    for _ in 0..if sample().is_some() { 1 } else { 3 } {
        function.port_event(1, PortEvent::Down, |port| (port.state, port.phys_state) = (1, 2))?;
        moments.see("down")?;
        function.port_event(1, PortEvent::Active, |port| (port.state, port.phys_state) = (4, 5))?;
        moments.see("up")?;
    }
    drop(device);
    moments.see("the driver is unbound")?;
    let history = moments.end(&name)?;
    for what in ["port_lid", "port_pkeys", "port_sm", "port_state", "device_went"] {
        ensure!(history.contains(what), "no {what}: {history}");
    }
    Ok(())
}

/// A recorder, and the moments between changes, each with what the commands said then. At the end each moment is asked
/// for.
struct Moments {
    recorder: Recorder,
    /// How long the recording was at first.
    first: u64,
    all: Vec<Moment>,
}

struct Moment {
    /// What was done before it.
    step: String,
    time: String,
    live: Vec<Value>,
}

impl Moments {
    const FILE: &str = "/tmp/record.jsonl";
    const END: [&str; 4] = ["--from", Self::FILE, "--at", "end"];

    fn begin() -> Result<Self> {
        let recorder = Recorder::new(Self::FILE, &["--reread", "1"])?;
        let first = fs::metadata(Self::FILE)?.len();
        let mut this = Self { recorder, first, all: Vec::new() };
        this.see("at first")?;
        Ok(this)
    }

    /// Runs commands one by one.
    fn steps(&mut self, commands: &[&str]) -> Result<()> {
        for command in commands {
            run(&command.split(' ').collect::<Vec<_>>())?;
            self.see(command)?;
        }
        Ok(())
    }

    /// Waits until what was done is recorded.
    fn see(&mut self, step: &str) -> Result<()> {
        let mut live = Vec::new();
        wait_until(&format!("{step}: it is recorded"), || {
            live = answers(&[]).unwrap_or_default();
            !live.is_empty() && answers(&Self::END).is_ok_and(|own| own == live)
        })
        .with_context(|| format!("live {live:#?}, recorded {:#?}", answers(&Self::END)))?;
        self.all.push(Moment {
            step: step.to_owned(),
            time: format_time(SystemTime::now(), 3),
            live,
        });
        // What follows is found later.
        thread::sleep(Duration::from_millis(20));
        Ok(())
    }

    /// Ends the recorder. Gives the history of a device or port.
    fn end(self, of: &str) -> Result<String> {
        let Self { recorder, first, all } = self;
        println!("figure: a recorder's first line {first} bytes, peak {} kB", recorder.peak()?);
        recorder.end()?;
        let length = fs::metadata(Self::FILE)?.len();
        println!("figure: {} bytes for {} moments", length - first, all.len());
        let different = all.windows(2).filter(|pair| pair[0].live != pair[1].live).count();
        ensure!(different + 3 >= all.len(), "only {different} of the steps changed an answer");
        for Moment { step, time, live } in &all {
            let then = answers(&["--from", Self::FILE, "--at", time])?;
            for ((words, live), then) in ASKED.iter().zip(live).zip(&then) {
                ensure!(live == then, "after {step}, at {time}: {words:?}: {live:#} and {then:#}");
            }
        }
        let choices = run(&["uverbs", "history", Self::FILE, "--like", "nccl-2.20"])?;
        println!("{choices}");
        ensure!(choices.contains("choice"), "{choices}");
        let history = run(&["uverbs", "history", Self::FILE, of])?;
        println!("{history}");
        // After a device was renamed, what it does is under its new name.
        Ok(history + &run(&["uverbs", "history", Self::FILE])?)
    }
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
    // It tries again now and then, and takes back what it could write of a line.
    let mut text = String::new();
    wait_until("no line is torn", || {
        text = fs::read_to_string(FILE).unwrap_or_default();
        text.ends_with('\n')
    })?;
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
