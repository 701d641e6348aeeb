//! Two hosts: whether ports can meet is what real connections show.
//!
//! Each host is a network namespace with a soft-RoCE device of its own on one end of a cable. A second cable is for
//! the program that connects.

use std::io::Cursor;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use uverbs::choose::Wish;
use uverbs::fleet::{Chooser, Rails, Survey, Why};
use uverbs::inventory::{Inventory, Snapshots};
use uverbs::port::Mtu;
use uverbs_vm::{sample, stretched};

use super::worlds::Random;
use crate::lab::{self, Exclusive, Namespace, output, run};
use crate::supervisor::PATH;

/// Addresses of the cable's ends: two networks of each family, and some that are in neither.
const ADDRESSES: [&str; 8] = [
    "10.50.0.SIDE/24",
    "10.51.0.SIDE/24",
    "10.50.1.SIDE/16",
    "169.254.9.SIDE/16",
    "fd00:50::SIDE/64",
    "fd00:51::SIDE/64",
    "fe80::50:SIDE/64",
    "10.52.0.SIDE/32",
];
const MTUS: [&str; 4] = ["600", "1500", "4200", "9000"];

/// A host.
pub(super) struct Side {
    number: usize,
    pub(super) namespace: Namespace,
    device: String,
    /// Whom it connects to, or listens to.
    control: String,
}

impl Side {
    pub(super) fn new(number: usize) -> Result<Self> {
        let namespace = Namespace::new(&format!("host{number}"))?;
        let device = format!("rxe{number}");
        Ok(Self { number, namespace, device, control: format!("192.168.250.{number}") })
    }

    /// Takes its ends of both cables.
    pub(super) fn plug(&self) -> Result<()> {
        for (end, name) in [("data", "d0"), ("control", "c0")] {
            let own = format!("{end}{}", self.number);
            run(&["ip", "link", "set", &own, "netns", self.name()])?;
            self.ip(&format!("link set {own} name {name} up"))?;
        }
        self.ip(&format!("addr add {}/24 dev c0", self.control))?;
        self.ip("link set lo up")?;
        let device = ["rdma", "link", "add", &self.device, "type", "rxe", "netdev", "d0"];
        self.namespace.run(&device)?;
        // It begins in the first namespace.
        run(&["rdma", "dev", "set", &self.device, "netns", self.name()]).map(drop)
    }

    pub(super) fn name(&self) -> &str {
        let [_, _, _, name] = self.namespace.exec();
        name
    }

    pub(super) fn ip(&self, words: &str) -> Result<()> {
        let words: Vec<&str> = ["ip"].into_iter().chain(words.split(' ')).collect();
        self.namespace.run(&words).map(drop)
    }

    /// Other addresses, MTU and VLANs, and which index NCCL is given, if any.
    fn change(&self, shared: Option<&str>, random: &mut Random) -> Result<Option<u32>> {
        // It may not be there.
        for vlan in ["v0", "v1"] {
            let _ = self.namespace.output(&["ip", "link", "del", vlan]);
        }
        self.ip("addr flush dev d0 scope global")?;
        self.ip("link set d0 up")?;
        self.ip(&format!("link set d0 mtu {}", MTUS[random.below(MTUS.len())]))?;
        let others = (0..random.below(3)).map(|_| ADDRESSES[random.below(ADDRESSES.len())]);
        for address in shared.into_iter().chain(others.collect::<Vec<_>>()) {
            self.address("d0", address)?;
        }
        if random.once_in(3) {
            // Its name says nothing of its id.
            let (name, id) = (format!("v{}", random.below(2)), 7 + random.below(2));
            self.ip(&format!("link add link d0 name {name} type vlan id {id}"))?;
            self.ip(&format!("link set {name} up"))?;
            let address = shared.unwrap_or(ADDRESSES[random.below(ADDRESSES.len())]);
            self.address(&name, address)?;
        }
        if random.once_in(12) {
            self.ip("link set d0 down")?;
        }
        Ok(random.once_in(2).then(|| u32::try_from(random.below(6)).unwrap_or_default()))
    }

    fn address(&self, netdev: &str, address: &str) -> Result<()> {
        let address = address.replace("SIDE", &self.number.to_string());
        let nodad = if address.contains("::") { " nodad" } else { "" };
        let words = format!("ip addr replace {address} dev {netdev}{nodad}");
        // It cannot have an address of IPv6 if its MTU is less than 1280.
        let words: Vec<&str> = words.split(' ').collect();
        self.namespace.output(&words).map(drop)
    }

    /// What is known of it.
    fn snapshot(&self, index: Option<u32>) -> Result<Inventory> {
        let mut command = self.command("uverbs");
        command.arg("snapshot");
        command.envs(index.map(|index| ("NCCL_IB_GID_INDEX", index.to_string())));
        let output = command.output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let mut all = Snapshots::new(Cursor::new(output.stdout));
        let mut own = all.next().context("no snapshot")??;
        own.host = Some(self.name().to_owned());
        Ok(own)
    }

    /// Starts rdma-core's program.
    fn pingpong(&self, index: u32, mtu: u16, server: Option<&Self>) -> Result<Child> {
        let mut command = self.command("ibv_rc_pingpong");
        command.args(["-d", &self.device, "-n", "4"]);
        command.args(["-g", &index.to_string(), "-m", &mtu.to_string()]);
        command.args(server.map(|own| own.control.as_str()));
        Ok(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?)
    }

    /// A program that runs there.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new("ip");
        let [_, exec @ ..] = self.namespace.exec();
        command.args(exec).arg(program).env("PATH", PATH);
        command
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        // It may be gone with the other end of its cable.
        let _ = self.namespace.output(&["rdma", "link", "delete", &self.device]);
    }
}

/// Two hosts. The ends of what carries their data are there already, `data1` and `data2`.
pub(super) fn two_sides() -> Result<[Side; 2]> {
    let sides = [Side::new(1)?, Side::new(2)?];
    cable("control")?;
    for side in &sides {
        side.plug()?;
    }
    Ok(sides)
}

fn cable(name: &str) -> Result<()> {
    let [one, other] = ["1", "2"].map(|end| format!("{name}{end}"));
    run(&["ip", "link", "add", &one, "type", "veth", "peer", "name", &other])?;
    Ok(())
}

/// Whether a connection by these rows comes up and data goes through it.
fn connects(one: &Side, other: &Side, indices: [u32; 2], mtu: u16) -> Result<bool> {
    let mut server = one.pingpong(indices[0], mtu, None)?;
    // The program has no retries: the server listens before the client begins, or has given up.
    lab::wait_within(Duration::from_secs(20), "it listens", || {
        listening(server.id()) || server.try_wait().is_ok_and(|own| own.is_some())
    })?;
    let client = other.pingpong(indices[1], mtu, Some(one))?;
    let mut both = [server, client];
    // What does not get through ends with an error, but for a server whose client is gone.
    let limit = stretched(Duration::from_secs(20));
    let begun = std::time::Instant::now();
    let mut good = [None, None];
    while begun.elapsed() < limit && good.contains(&None) && !good.contains(&Some(false)) {
        for (child, good) in both.iter_mut().zip(&mut good) {
            if good.is_none() {
                *good = child.try_wait()?.map(|status| status.success());
            }
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    for child in &mut both {
        // It may be over.
        let _ = child.kill();
    }
    for child in both {
        let output = child.wait_with_output()?;
        for line in String::from_utf8_lossy(&output.stderr).lines() {
            println!("    {line}");
        }
    }
    Ok(good == [Some(true), Some(true)])
}

/// Whether a process listens on a socket of TCP.
fn listening(process: u32) -> bool {
    // A line has the state as its fourth word; 0A is listening.
    let all = std::fs::read_to_string(format!("/proc/{process}/net/tcp")).unwrap_or_default();
    let more = std::fs::read_to_string(format!("/proc/{process}/net/tcp6")).unwrap_or_default();
    let is_one = |line: &str| line.split_whitespace().nth(3) == Some("0A");
    all.lines().chain(more.lines()).any(is_one)
}

/// What is taken on a side's port, by a program or as it is recommended.
fn taken(inventory: &Inventory, chooser: Chooser) -> Option<u32> {
    let ports = uverbs::choose::ports(inventory);
    let port = ports.first()?;
    match chooser {
        Chooser::Recommended => uverbs::choose::recommend(port, &Wish::default()).outcome.index(),
        _ => inventory.setting("NCCL_IB_GID_INDEX").and_then(|own| own.value.parse().ok()),
    }
}

/// What is said of two hosts is what two real programs find.
pub(crate) fn ports_meet_as_is_said() -> Result<()> {
    lab::on_the_newest_kernel("soft RoCE is of one namespace only there")?;
    let (seed, rounds) = sample().map_or((1, 200), |seed| (seed, 6));
    let mut random = Random::new(seed);
    let _mode = Exclusive::set()?;
    cable("data")?;
    let sides = two_sides()?;
    let [one, other] = &sides;
    let (mut meet, mut cannot, mut unknown) = (0, 0, [0, 0]);
    let mut round = 0;
    // A few pairs may have only one answer; of 200 both are among them.
    while round < rounds || (round < 200 && (meet == 0 || cannot == 0)) {
        let shared = random.once_in(2).then(|| ADDRESSES[random.below(ADDRESSES.len())]);
        let variables = [one.change(shared, &mut random)?, other.change(shared, &mut random)?];
        settle(&sides)?;
        let all = [one.snapshot(variables[0])?, other.snapshot(variables[1])?];
        let mut survey = Survey::default();
        for own in &all {
            survey.add(own);
        }
        let mtus = all.iter().filter_map(|own| {
            let port = own.devices.first()?.ports.first()?;
            port.known()?.active_mtu.map(Mtu::bytes)
        });
        let mtu = mtus.min().flatten().unwrap_or(256);
        let pairs = survey.pairs(Rails::All, false, |_| true);
        let chooser = if variables.contains(&None) { Chooser::Recommended } else { Chooser::Nccl };
        let of_chooser = pairs.problems.iter().filter(|own| own.choosers.contains(&chooser));
        let said: Vec<&Why> = of_chooser.map(|own| &own.why).collect();
        // Where no port is active nothing is joined, and nothing is wrong with a pair.
        let is_joined = pairs.joined > 0;
        let is_cannot = !is_joined || said.iter().any(|own| matches!(own, Why::Cannot(_)));
        let indices = all.each_ref().map(|own| taken(own, chooser));
        let do_meet = said.is_empty() && is_joined;
        let mut connects = false;
        if let [Some(own), Some(its)] = indices {
            // The kernel waits a second for a neighbour's answer, and its first question gets lost while a cable comes up.
            for _ in 0..if do_meet { 3 } else { 1 } {
                connects = connects || self::connects(one, other, [own, its], mtu)?;
            }
        }
        println!("{round}: {chooser:?} {indices:?} MTU {mtu}: {said:?}, connects: {connects}");
        match (do_meet, is_cannot) {
            (true, _) => {
                ensure!(connects, "round {round} of seed {seed}: they do not meet: {all:?}");
                meet += 1;
            }
            (_, true) => {
                ensure!(!connects, "round {round} of seed {seed}: they meet: {said:?}: {all:?}");
                cannot += 1;
            }
            _ => unknown[usize::from(connects)] += 1,
        }
        round += 1;
    }
    println!(
        "figure: {round} pairs of hosts: {meet} meet and {cannot} do not, as is said; \
         not known: {} do not, {} do",
        unknown[0], unknown[1]
    );
    ensure!(meet > 0 && cannot > 0, "one of both never was");
    Ok(())
}

/// Waits until the tables no longer change.
fn settle(sides: &[Side; 2]) -> Result<()> {
    let now = || -> Vec<Vec<u8>> {
        let tables = sides.iter().map(|own| {
            output(&[&own.namespace.exec()[..], &["uverbs", "gids", "--json"]].concat())
        });
        tables.map(|own| own.map(|own| own.stdout).unwrap_or_default()).collect()
    };
    let mut before = now();
    lab::wait_until("the tables stay", || {
        std::thread::sleep(Duration::from_millis(100));
        let now = now();
        let is_same = before == now;
        before = now;
        is_same
    })
}
