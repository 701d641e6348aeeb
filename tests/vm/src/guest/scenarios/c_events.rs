//! C programs that wait for events print the same lines with rdma-core's libraries and with ours, when the same
//! things happen to a device. All of them wait at the same time.
//!
//! They are rdma-core's own `ibv_asyncwatch`, and the peer `surface_verbs`, which polls for events first.

use std::fs::{self, File};
use std::process::{Child, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use rustix::system::delete_module;
use uverbs_mlx5_function::description::Description;
use uverbs_vm::{NO_NEWER, stretched};

use super::c_programs::MOUNTS;
use super::siw::IwarpLab;
use crate::lab::mlx5::{Mlx5, PortEvent};
use crate::lab::within::Within;
use crate::lab::{self, IbSwitch, Netdev, SoftRoce, run, wait_until};

/// The programs: the root, the program, and its arguments before the device's name.
const PROGRAMS: [(&str, &str, &[&str]); 3] = [
    ("/newer", "ibv_asyncwatch", &["-d"]),
    ("/newer", "surface_verbs", &["--wait-events", "1000"]),
    ("/", "surface_verbs", &["--wait-events", "1000"]),
];

/// The event of Linux 7.0, as rdma-core before 65 and as ours says it.
const UNNAMED: &str = "type 20 (unknown)";
const NAMED: &str = "type 20 (Device link speed change)";

/// One program that waits.
struct Waiting {
    child: Child,
    out: String,
    /// How it ended, if it did.
    status: Option<ExitStatus>,
}

impl Waiting {
    fn start(
        device: &str,
        (root, program, arguments): (&str, &str, &[&str]),
        of: &str,
    ) -> Result<Self> {
        let within = Within { root, mounts: &MOUNTS, ..Within::HERE };
        let arguments = [arguments, &[device]].concat();
        let mut command = within.command(&format!("/usr/{of}/{program}"), &arguments)?;
        let out = format!("/tmp/{program}{}{of}", root.replace('/', "-"));
        let file = File::create(&out)?;
        let also = file.try_clone()?;
        let child = command.stdin(Stdio::null()).stdout(file).stderr(also).spawn()?;
        Ok(Self { child, out, status: None })
    }

    /// What it said so far.
    fn said(&self) -> Result<String> {
        fs::read_to_string(&self.out).context("what it said")
    }

    /// How many events it said.
    fn events(&self) -> usize {
        let lines = self.said().unwrap_or_default();
        lines.lines().filter(|line| is_event(line)).count()
    }

    fn end(&mut self) {
        // It may be over already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn is_event(line: &str) -> bool {
    line.contains("type ")
}

/// What was said, with the events of each change in one order. The kernel delivers two events at the same time, and
/// not to each program in the same order. The numbers of events are those after each change.
fn ordered(text: &str, changes: &[usize]) -> String {
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    let places = lines.iter().enumerate().filter(|(_, line)| is_event(line));
    let places: Vec<usize> = places.map(|(place, _)| place).collect();
    let mut first = 0;
    for end in changes.iter().map(|end| (*end).min(places.len())) {
        let mut own: Vec<&str> = places[first..end].iter().map(|place| lines[*place]).collect();
        own.sort_unstable();
        for (place, line) in places[first..end].iter().zip(own) {
            lines[*place] = line;
        }
        first = end;
    }
    lines.concat()
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.end();
    }
}

/// All programs, each with rdma-core's libraries and with ours.
struct Both {
    device: String,
    pairs: Vec<[Waiting; 2]>,
    events: usize,
    /// How many events there were after each change.
    changes: Vec<usize>,
}

impl Both {
    /// Starts them, and waits until each has the device open.
    fn start(device: &str) -> Result<Self> {
        let mut pairs = Vec::new();
        let has_newer = !fs::exists(NO_NEWER)?;
        for program in PROGRAMS.into_iter().filter(|(root, ..)| has_newer || *root == "/") {
            let one = |of| Waiting::start(device, program, of);
            pairs.push([one("bin")?, one("uverbs")?]);
        }
        let changes = Vec::new();
        let this = Self { device: device.to_owned(), pairs, events: 0, changes };
        wait_until("all have the device open", || {
            this.all().all(|own| own.said().is_ok_and(|said| said.ends_with('\n')))
        })?;
        for own in this.all() {
            let said = own.said()?;
            ensure!(said == "open\n" || said.contains(": async event FD "), "{}: {said}", own.out);
        }
        Ok(this)
    }

    fn all(&self) -> impl Iterator<Item = &Waiting> {
        self.pairs.iter().flatten()
    }

    /// Does something, and waits until all programs said the same number of events, at least one more.
    fn hear(&mut self, what: &str, change: impl FnOnce() -> Result<()>) -> Result<()> {
        change()?;
        let before = self.events;
        let quiet = stretched(Duration::from_millis(300));
        let (mut counts, mut since) = (Vec::new(), std::time::Instant::now());
        let pairs = &self.pairs;
        wait_until(&format!("all heard of {what}"), || {
            let now: Vec<usize> = pairs.iter().flatten().map(Waiting::events).collect();
            if now != counts {
                since = std::time::Instant::now();
                counts = now;
            }
            let is_even = counts.iter().all(|own| *own == counts[0]);
            is_even && counts[0] > before && since.elapsed() > quiet
        })
        .with_context(|| {
            let said = pairs.iter().flatten().map(|own| own.said().unwrap_or_default());
            said.collect::<Vec<_>>().join("\n--\n")
        })?;
        self.events = counts[0];
        self.changes.push(self.events);
        println!("{what}: {} events", self.events - before);
        Ok(())
    }

    /// Compares all that was said, byte for byte but for the order of what one change brought; and how those ended that
    /// did, after the device is gone.
    fn end(mut self, is_gone: bool) -> Result<()> {
        if is_gone {
            thread::sleep(stretched(Duration::from_secs(1)));
        }
        for own in self.pairs.iter_mut().flatten() {
            own.status = own.child.try_wait()?;
            own.end();
        }
        let mut bytes = 0;
        for [theirs, ours] in &self.pairs {
            let (their_text, our_text) = (theirs.said()?, ours.said()?);
            // The only difference: a release of rdma-core older than the event has no name of it.
            let their_text = their_text.replace(UNNAMED, NAMED);
            let is_same = ordered(&their_text, &self.changes) == ordered(&our_text, &self.changes);
            ensure!(
                is_same && theirs.status == ours.status,
                "{}: {:?}\n{their_text}\n{}: {:?}\n{our_text}",
                theirs.out,
                theirs.status,
                ours.out,
                ours.status
            );
            bytes += our_text.len();
        }
        let (first, count) = (&self.pairs[0][1], self.pairs.len());
        println!("{}", first.said()?);
        println!(
            "figure: {}: {} events, {bytes} bytes of {count} programs with each library are the same; at the \
             end ibv_asyncwatch {}",
            self.device,
            self.events,
            first.status.map_or("goes on".to_owned(), |status| status.to_string())
        );
        Ok(())
    }
}

/// Soft RoCE: the link goes down and comes up, addresses come and go, the device is removed.
pub(crate) fn on_soft_roce() -> Result<()> {
    let netdev = Netdev::dummy("d0", "02:11:22:33:44:55")?;
    let rxe = SoftRoce::new("rxe0", &netdev)?;
    rxe.wait_for_gids(1)?;
    let mut both = Both::start("rxe0")?;
    both.hear("an IPv4 address", || netdev.address("192.168.77.1/24"))?;
    both.hear("an IPv6 address", || netdev.address("2001:db8::7/64"))?;
    both.hear("link down", || run(&["ip", "link", "set", "d0", "down"]).map(drop))?;
    both.hear("link up", || run(&["ip", "link", "set", "d0", "up"]).map(drop))?;
    let goes = ["ip", "addr", "del", "192.168.77.1/24", "dev", "d0"];
    both.hear("an address goes", || run(&goes).map(drop))?;
    let mac = ["ip", "link", "set", "d0", "address", "02:11:22:33:44:66"];
    both.hear("a MAC address", || run(&mac).map(drop))?;
    if lab::kernel()? < (7, 3) {
        println!("figure: before 7.3 the removal waits for them, so that no event says it");
        return both.end(false);
    }
    both.hear("the device is removed", || {
        drop(rxe);
        Ok(())
    })?;
    both.end(true)
}

/// Soft iWARP: new MAC addresses, the link goes down and comes up.
pub(crate) fn on_soft_iwarp() -> Result<()> {
    let lab = IwarpLab::new()?;
    let mut both = Both::start("siw0")?;
    for mac in ["02:11:22:33:44:66", "02:11:22:33:44:77"] {
        both.hear(mac, || run(&["ip", "link", "set", "d0", "address", mac]).map(drop))?;
    }
    both.hear("link down", || run(&["ip", "link", "set", "d0", "down"]).map(drop))?;
    both.hear("link up", || run(&["ip", "link", "set", "d0", "up"]).map(drop))?;
    println!("figure: the removal of siw waits for them, so that no event says it");
    both.end(false)?;
    drop(lab);
    Ok(())
}

/// The switch: LID, P_Keys, subnet manager, port state; its module is unloaded.
pub(crate) fn on_a_switch() -> Result<()> {
    let switch = IbSwitch::load()?;
    let mut both = Both::start("switch0")?;
    for change in ["lid 77", "sm 9", "pkey 32770", "state 1", "state 4", "reregister"] {
        both.hear(change, || switch.change(change))?;
    }
    both.hear("the module is unloaded", || {
        std::mem::forget(switch);
        delete_module(c"ib_switch", 0).context("unloading ib_switch")
    })?;
    both.end(true)
}

/// Two InfiniBand ports of mlx5: LID, P_Keys, subnet manager, port state; the driver is unbound.
pub(crate) fn on_mlx5_infiniband() -> Result<()> {
    let device = Mlx5::bind(0, &Description::infiniband(2))?;
    let mut both = Both::start(device.name())?;
    let function = device.function();
    both.hear("LID", || function.port_event(1, PortEvent::Lid, |port| port.lid = 77))?;
    both.hear("P_Keys", || {
        function.port_event(2, PortEvent::PKeys, |port| port.pkeys = vec![0xffff, 0x8007])
    })?;
    both.hear("subnet manager", || {
        function.port_event(2, PortEvent::Reregister, |port| port.sm_lid = 9)
    })?;
    both.hear("down", || {
        function.port_event(1, PortEvent::Down, |port| (port.state, port.phys_state) = (1, 2))
    })?;
    both.hear("up", || {
        function.port_event(1, PortEvent::Active, |port| (port.state, port.phys_state) = (4, 5))
    })?;
    both.hear("the driver is unbound", || {
        drop(device);
        Ok(())
    })?;
    both.end(true)
}

/// An Ethernet port of mlx5: the link, addresses; the driver is unbound.
pub(crate) fn on_mlx5_roce() -> Result<()> {
    let device = Mlx5::bind(0, &Description::roce())?;
    let netdev = device.netdev()?;
    run(&["ip", "link", "set", &netdev, "up"])?;
    let mut both = Both::start(device.name())?;
    let address = ["ip", "addr", "add", "192.168.77.1/24", "dev", &netdev];
    both.hear("an IPv4 address", || run(&address).map(drop))?;
    both.hear("link down", || run(&["ip", "link", "set", &netdev, "down"]).map(drop))?;
    both.hear("link up", || run(&["ip", "link", "set", &netdev, "up"]).map(drop))?;
    both.hear("the driver is unbound", || {
        drop(device);
        Ok(())
    })?;
    both.end(true)
}
