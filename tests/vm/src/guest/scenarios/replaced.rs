//! Devices that are deleted, and replaced by others that take over the number of their node, and perhaps
//! their name: what is told is never told of the other.

use std::collections::BTreeMap;
use std::fs;
use std::process::Output;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use nix::sched::{CloneFlags, unshare};
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_change, unmount,
};
use serde_json::Value;
use uverbs::context::Context;
use uverbs::error::Cause;
use uverbs::host::Host;
use uverbs::host::{Preference, Reader};
use uverbs::sysfs::Sysfs;

use super::costs::traced;
use crate::lab::stopped::Stopped;
use crate::lab::{self, Netdev, SoftRoce, run};
use uverbs_vm::{sample, stretched};

/// Two devices of which one is there, and the other can take its place.
pub(super) trait Pair: Send {
    /// The name of the one that is there.
    fn name(&self) -> &str;
    /// Which one is there.
    fn place(&self) -> usize;
    /// What shows which of the two an answer is of.
    fn marks(&self) -> &[Vec<String>; 2];
    /// Puts the other one in its place, with the same name or another.
    fn swap(&mut self, name: &str) -> Result<()>;
    /// Whether its removal waits until every context on it is closed.
    fn waits(&self) -> Result<bool>;
}

/// The node whose number is taken over.
const NODE: &str = "/sys/class/infiniband_verbs/uverbs0";

/// Stands for the device's name in a command.
pub(super) const DEVICE: &str = "DEVICE";

/// What programs do for themselves.
const OWN: [&str; 5] = ["exit_group", "rt_sigreturn", "munmap", "brk", "mmap"];

/// The most calls of one command after which a whole run replaces the device. A table of soft RoCE has a
/// thousand slots, each a file of sysfs.
const MOST: usize = 400;

/// So many replacements have answers and refusals among them.
const ENOUGH: usize = 20;

/// A command, and after how many of its calls a run that takes samples replaces the device.
pub(super) type Sampled = (&'static [&'static str], usize);

/// Stops each command after each of its system calls, or after some by the seed, replaces the device,
/// and judges what the command says.
pub(super) fn replace_at_every_call(pair: &mut dyn Pair, commands: &[Sampled]) -> Result<()> {
    let names = ["0", "1"].map(|end| {
        let stem = pair.name().trim_end_matches(|c: char| c.is_ascii_digit());
        format!("{stem}{end}")
    });
    let is_newest = lab::is_newest_kernel()?;
    let (mut told, mut refused) = (0, 0);
    for (command, limit) in commands {
        let start = Instant::now();
        let words = |name: &str| -> Vec<String> {
            command.iter().map(|word| word.replace(DEVICE, name)).collect()
        };
        let (calls, begin) = calls(&words(pair.name()))?;
        // Kernels differ in how they answer, and hardly in when: older ones have half as many.
        let limit = limit.div_ceil(if is_newest { 4 } else { 8 });
        let (places, turn) = sampled(&calls, begin, limit);
        // By its name each call has a number, also where the device is stopped.
        let mut numbers = BTreeMap::new();
        let mut seen = [0, 0];
        for (count, place) in places.iter().enumerate() {
            let call = calls.get(*place).context("no call")?;
            let is_renamed = (count + turn) % 2 == 0;
            let own = usize::from(pair.name() != names[0]);
            let second = if is_renamed { &names[1 - own] } else { &names[own] };
            let replaced = replaced(pair, &words(&names[own]), &calls[1..=*place], second)
                .and_then(|(number, judged)| {
                    let known = *numbers.entry(call.clone()).or_insert(number);
                    ensure!(known == number, "call {number} is no {call}");
                    Ok(judged)
                })
                .with_context(|| format!("{command:?}, after call {place}, {call}: {second}"))?;
            seen[usize::from(!replaced)] += 1;
        }
        println!(
            "figure: `{}`: {} of {} calls: {} answers, {} refusals, {} ms each",
            command.join(" "),
            places.len(),
            calls.len(),
            seen[0],
            seen[1],
            start.elapsed().as_millis() / u128::try_from(places.len().max(1))?,
        );
        told += seen[0];
        refused += seen[1];
    }
    println!("figure: replaced at {} calls: never another's rows", told + refused);
    // A few may all be refused.
    ensure!(told + refused < ENOUGH || told > 0 && refused > 0, "{told} and {refused}");
    Ok(())
}

/// The names of a program's system calls, of which the first starts it; and where it begins to ask.
fn calls(command: &[String]) -> Result<(Vec<String>, usize)> {
    let words: Vec<&str> = command.iter().map(String::as_str).collect();
    let calls = traced(&words)?;
    let begin =
        calls.iter().position(|call| call.contains("socket(") || call.contains("infiniband"));
    let begin = begin.context("it asks nothing")?;
    let named = calls.iter().map(|call| {
        let name = call.split('(').next().and_then(|words| words.split_whitespace().last());
        name.unwrap_or_default().to_owned()
    });
    Ok((named.collect(), begin))
}

/// Which calls have their turn: as many runs as the step is long, with seeds that follow one another,
/// have them all. And the number of the round of such runs.
fn sampled(calls: &[String], begin: usize, limit: usize) -> (Vec<usize>, usize) {
    let is_its_own = |place: &usize| OWN.contains(&calls[*place].as_str());
    let all: Vec<usize> = (begin..calls.len()).filter(|place| !is_its_own(place)).collect();
    let seed = sample().and_then(|seed| usize::try_from(seed).ok());
    let step = all.len().div_ceil(if seed.is_some() { limit } else { MOST }).max(1);
    let seed = seed.unwrap_or_default();
    (all.into_iter().skip(seed % step).step_by(step).collect(), seed / step)
}

/// Stops a command after these calls, replaces the device, and lets the command go on to its end. The
/// number of the last call, and whether an answer was given.
fn replaced(
    pair: &mut dyn Pair,
    command: &[String],
    calls: &[String],
    second: &str,
) -> Result<(u64, bool)> {
    let (first, place) = (pair.name().to_owned(), pair.place());
    let marks = [place, 1 - place].map(|place| pair.marks()[place].clone());
    let words: Vec<&str> = command.iter().map(String::as_str).collect();
    let stopped = Stopped::after(&words, calls)?;
    let call = stopped.last_call();
    let waits = pair.waits()? && stopped.has_context()?;
    let output = thread::scope(|scope| -> Result<Output> {
        let swap = scope.spawn(|| pair.swap(second));
        let start = Instant::now();
        let limit = stretched(Duration::from_secs(20));
        // What waits for the command's context has taken the node away before.
        let is_waiting = || waits && matches!(fs::exists(NODE), Ok(false));
        while !swap.is_finished() && !is_waiting() && start.elapsed() < limit {
            thread::sleep(Duration::from_millis(1));
        }
        let output = stopped.end()?;
        swap.join().map_err(|_| anyhow::anyhow!("the replacement panicked"))??;
        Ok(output)
    })?;
    let now = fs::read_to_string(format!("{NODE}/ibdev"))?;
    ensure!(now.trim() == second && pair.place() != place, "{now} has the node");
    let is_told = of_one_device([&first, second], &marks, &words, &output)?;
    Ok((call, is_told))
}

/// The devices of a document's objects, and which marks are in each.
fn marks_in(value: &Value, marks: &[Vec<String>; 2], found: &mut Vec<(String, [bool; 2])>) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| marks_in(value, marks, found)),
        Value::Object(fields) => {
            let name = fields
                .get("device")
                .or_else(|| fields.get("name").filter(|_| fields.contains_key("node_guid")));
            if let Some(name) = name.and_then(Value::as_str) {
                found.push((name.to_owned(), marked(&value.to_string(), marks)));
            } else {
                fields.values().for_each(|value| marks_in(value, marks, found));
            }
        }
        _ => {}
    }
}

/// Which of the two devices a text speaks of. Marks are whole words.
fn marked(text: &str, marks: &[Vec<String>; 2]) -> [bool; 2] {
    let is_part = |c: char| c.is_ascii_alphanumeric();
    [0, 1].map(|place| {
        marks[place].iter().any(|mark| {
            text.match_indices(mark.as_str()).any(|(at, _)| {
                !text[..at].ends_with(is_part) && !text[at + mark.len()..].starts_with(is_part)
            })
        })
    })
}

/// Judges what a command said of devices, each of which has one name or the other. Whether it said
/// all that it says of a device, or nothing of it, with a reason.
fn of_one_device(
    names: [&str; 2],
    marks: &[Vec<String>; 2],
    command: &[&str],
    output: &Output,
) -> Result<bool> {
    let said = String::from_utf8_lossy(&output.stderr);
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(!said.contains("panicked") && output.status.code().is_some(), "{output:?}");
    let found = if command.contains(&"--json") || command.contains(&"snapshot") {
        let mut found = Vec::new();
        marks_in(&serde_json::from_str(&text).unwrap_or_default(), marks, &mut found);
        found
    } else {
        // Programs in C: lines that begin with the device's name; and one that was given it.
        let lines = text.lines().map(|line| {
            let name = line.split_whitespace().next().filter(|word| names.contains(word));
            (name.unwrap_or(names[0]).to_owned(), marked(line, marks))
        });
        lines.collect()
    };
    let mut all = [false; 2];
    for (name, [of_first, of_second]) in &found {
        if names[0] != names[1] {
            ensure!(!(*name == names[0] && *of_second), "rows of another device: {output:?}");
            ensure!(!(*name == names[1] && *of_first), "rows of another device: {output:?}");
        }
        all = [all[0] || *of_first, all[1] || *of_second];
    }
    // One name: an answer is of the one or of the other.
    ensure!(names[0] != names[1] || all != [true; 2], "of two devices: {output:?}");
    let told = all != [false; 2];
    // libibumad counts the ports that it can read.
    let is_count = command[0].ends_with("umad_get_ca_portguids") && text.is_empty();
    let is_explained = is_count
        || !said.is_empty()
        || text.contains("\"error\"")
        || output.status.code() != Some(0);
    ensure!(told || is_explained, "neither: {output:?}");
    Ok(told)
}

/// Two interfaces, on each of which a device of soft RoCE can be made.
struct Places {
    netdevs: [Netdev; 2],
    marks: [Vec<String>; 2],
}

impl Places {
    fn make() -> Result<Self> {
        let of = |mac, address: &str, end, guid| -> Result<(Netdev, Vec<String>)> {
            let netdev = Netdev::dummy(end, mac)?;
            netdev.address(&format!("{address}/24"))?;
            let hex = u128::from_str_radix(guid, 16)?;
            let gid = std::net::Ipv6Addr::from(0xfe80 << 112 | hex);
            let groups = gid.to_string();
            let marks = [end, address, &groups, guid, &format!("0x{guid}")];
            Ok((netdev, marks.map(str::to_owned).to_vec()))
        };
        let (d0, of_d0) = of("02:11:22:33:44:55", "192.168.77.1", "d0", "001122fffe334455")?;
        let (d1, of_d1) = of("02:66:77:88:99:aa", "192.168.88.1", "d1", "006677fffe8899aa")?;
        Ok(Self { netdevs: [d0, d1], marks: [of_d0, of_d1] })
    }

    fn device(&self, name: &str, place: usize) -> Result<SoftRoce> {
        let device = SoftRoce::new(name, &self.netdevs[place])?;
        has_gids(name)?;
        Ok(device)
    }
}

/// Waits for both GIDs.
fn has_gids(name: &str) -> Result<()> {
    let gids = format!("/sys/class/infiniband/{name}/ports/1/gids");
    let is_used = |slot| {
        let text = fs::read_to_string(format!("{gids}/{slot}")).unwrap_or_default();
        text.contains(|c: char| c.is_ascii_hexdigit() && c != '0')
    };
    lab::wait_until("the device has its GIDs", || is_used(0) && is_used(1))
}

/// A device of soft RoCE on one of the two.
struct SoftPair {
    // It goes before the interfaces.
    device: Option<SoftRoce>,
    places: Places,
    name: String,
    place: usize,
}

impl Pair for SoftPair {
    fn name(&self) -> &str {
        &self.name
    }

    fn place(&self) -> usize {
        self.place
    }

    fn marks(&self) -> &[Vec<String>; 2] {
        &self.places.marks
    }

    fn swap(&mut self, name: &str) -> Result<()> {
        let other = 1 - self.place;
        let old = self.device.take().context("no device")?;
        self.device = Some(old.replaced_by(name, &self.places.netdevs[other])?);
        has_gids(name)?;
        (self.name, self.place) = (name.to_owned(), other);
        Ok(())
    }

    fn waits(&self) -> Result<bool> {
        Ok(lab::kernel()? < (7, 3))
    }
}

/// A device is deleted and another put in its place, whose node has the same number, or which has the
/// same name as well, after each system call of a command: never the other's rows.
pub(crate) fn replaced_at_every_call() -> Result<()> {
    const COMMANDS: [Sampled; 15] = [
        (&["/usr/bin/uverbs", "gids", "--json"], 60),
        (&["/usr/bin/uverbs", "ports", "--json"], 60),
        (&["/usr/bin/uverbs", "devices", "--json"], 30),
        (&["/usr/bin/uverbs", "guids", "--json"], 30),
        (&["/usr/bin/uverbs", "gid", "DEVICE:1", "1", "--json"], 20),
        (&["/usr/bin/uverbs", "choose", "--json"], 20),
        (&["/usr/bin/uverbs", "env", "nccl", "--json"], 20),
        (&["/usr/bin/uverbs", "check", "--json"], 20),
        (&["/usr/bin/uverbs", "snapshot"], 20),
        (&["/usr/bin/uverbs", "gids", "--json", "--source", "sysfs"], 8),
        (&["/usr/bin/uverbs", "ports", "--json", "--source", "sysfs"], 20),
        (&["/usr/bin/uverbs", "gids", "--json", "--sysfs", "/sys"], 8),
        (&["/usr/uverbs/query_gid_table"], 40),
        (&["/usr/uverbs/query_gid_ex", DEVICE, "1", "1"], 20),
        (&["/usr/uverbs/umad_get_ca_portguids", DEVICE], 20),
    ];
    // So that `env` and `check` have something to say of each device: an index that is not right.
    let _settings = Settings::new("NCCL_IB_GID_INDEX=0\n")?;
    let places = Places::make()?;
    let device = Some(places.device("rxe0", 0)?);
    let mut pair = SoftPair { device, places, name: "rxe0".to_owned(), place: 0 };
    replace_at_every_call(&mut pair, &COMMANDS)
}

/// An interface is deleted after each system call of a command: nobody says that it is in another network namespace, as
/// there is none.
pub(crate) fn interface_deleted_at_every_call() -> Result<()> {
    const COMMANDS: [&[&str]; 2] =
        [&["/usr/bin/uverbs", "choose", "--explain"], &["/usr/bin/uverbs", "check"]];
    let netdev = Netdev::dummy("d0", "02:11:22:33:44:55")?;
    let _device = SoftRoce::new("rxe0", &netdev)?;
    let is_row = |slot: u32| {
        let gid = fs::read_to_string(format!("/sys/class/infiniband/rxe0/ports/1/gids/{slot}"));
        gid.is_ok_and(|gid| gid.contains("0a07:0001"))
    };
    let has_row = || (0..8).any(is_row);
    let vlan = || -> Result<Netdev> {
        let vlan = netdev.vlan(7)?;
        vlan.address("10.7.0.1/24")?;
        lab::wait_until("the VLAN has its row", has_row)?;
        Ok(vlan)
    };
    let mut seen = [0, 0];
    for command in COMMANDS {
        let own = vlan()?;
        let words: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
        let (calls, begin) = calls(&words)?;
        let (places, _) = sampled(&calls, begin, 24);
        let mut own = Some(own);
        for place in places {
            let stopped = Stopped::after(command, &calls[1..=place])?;
            drop(own.take());
            lab::wait_until("the row goes", || !has_row())?;
            let output = stopped.end()?;
            own = Some(vlan()?);
            let said = [output.stdout, output.stderr].concat();
            let said = String::from_utf8_lossy(&said);
            ensure!(!said.contains("panicked") && output.status.code().is_some(), "{said}");
            let is_elsewhere = ["not in this network namespace", "belong to no interface"]
                .iter()
                .any(|own| said.contains(own));
            ensure!(!is_elsewhere, "{command:?}, after call {place}: {said}");
            seen[usize::from(said.contains("10.7.0.1"))] += 1;
        }
    }
    println!("figure: deleted at {} calls: {} answers without the row", seen[0] + seen[1], seen[0]);
    ensure!(seen[0] > 0, "{seen:?}");
    Ok(())
}

/// NCCL's settings of the host, removed on drop.
struct Settings;

impl Settings {
    const PATH: &str = "/etc/nccl.conf";

    fn new(text: &str) -> Result<Self> {
        fs::write(Self::PATH, text)?;
        Ok(Self)
    }
}

impl Drop for Settings {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(Self::PATH) {
            eprintln!("undoing: {error}");
        }
    }
}

/// A device that is kept is the one that was listed, whatever took its place; renamed, it is the same.
pub(crate) fn replaced_while_kept() -> Result<()> {
    let places = Places::make()?;
    let replaced = |error: &uverbs::Error| {
        println!("{error}");
        *error.cause() == Cause::Replaced && error.errno() == 19
    };
    for second in ["rxe1", "rxe0"] {
        for mut host in [Host::new(), Host::rooted("/sys", "/dev/infiniband")] {
            let first = places.device("rxe0", 0)?;
            let device = host.device("rxe0")?;
            let own = host.sysfs().of(&device)?;

            run(&["rdma", "dev", "set", "rxe0", "name", "rxe7"])?;
            let expected = Context::open(&device)?.query_gid_table()?.len();
            ensure!(own.query_gid_table("rxe0")?.len() == expected);
            ensure!(host.sysfs().of(&device)?.query_gid_table("rxe0")?.len() == expected);
            run(&["rdma", "dev", "set", "rxe7", "name", "rxe0"])?;

            drop(first);
            let _second = places.device(second, 1)?;
            let node = fs::File::open("/dev/infiniband/uverbs0")?;
            let opened = Context::open(&device).err().context("another device was opened")?;
            ensure!(replaced(&opened), "{opened:?}");
            let imported = Context::import(&device, node.into()).err().context("taken over")?;
            ensure!(replaced(&imported), "{imported:?}");
            let error = own.query_gid_table("rxe0").err().context("another's rows")?;
            ensure!(error.errno() == 2, "{error:?}");
            for preference in [Preference::Auto, Preference::Ioctl, Preference::Sysfs] {
                let error = Reader::new(&device, host.sysfs(), preference)
                    .and_then(|mut reader| reader.gid_table())
                    .err()
                    .context("another's rows")?;
                println!("{preference:?}: {error}");
                ensure!(error.to_string().contains("list the devices again"), "{error:?}");
            }
        }
    }
    Ok(())
}

/// Sysfs is mounted anew after devices were listed, or hidden by another tree: of a device that is there
/// the kernel's netlink says so, and of one that was replaced too.
pub(crate) fn sysfs_is_mounted_anew() -> Result<()> {
    const FOLDER: &str = "/sys/class/infiniband_verbs/uverbs0";
    let places = Places::make()?;
    let first = places.device("rxe0", 0)?;
    let device = Host::new().device("rxe0")?;
    let opened = || Ok::<_, anyhow::Error>(Context::open(&device)?.query_gid_table()?.len());
    unshare(CloneFlags::CLONE_NEWNS).context("a mount namespace")?;
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    // Nothing is there; then another folder by that name; then sysfs again.
    mount("tmpfs", "/sys", "tmpfs", MountFlags::empty(), None)?;
    ensure!(opened()? == 2, "with sysfs hidden");
    let hidden = Sysfs::host().of(&device).err().context("a device in an empty folder")?;
    ensure!(*hidden.cause() == Cause::NotInSysfs, "{hidden:?}");
    fs::create_dir_all(FOLDER)?;
    ensure!(opened()? == 2, "on another tree");
    mount("sysfs", "/sys", "sysfs", MountFlags::empty(), None)?;
    ensure!(opened()? == 2, "on another mount of sysfs");
    unmount("/sys", UnmountFlags::empty())?;

    drop(first);
    for hides in [true, false] {
        let _second = SoftRoce::new("rxe1", &places.netdevs[1])?;
        if !hides {
            fs::remove_dir(FOLDER)?;
        }
        let error = Context::open(&device).err().context("another device was opened")?;
        println!("{error}");
        ensure!(matches!(error.cause(), Cause::Replaced | Cause::DeviceGone(_)), "{error:?}");
    }
    unmount("/sys", UnmountFlags::empty())?;
    Ok(())
}

/// A node that no kernel made leads to the device that lost its number, as long as that is open
/// elsewhere: the device that has the number now says who it is.
pub(crate) fn replaced_behind_a_made_node() -> Result<()> {
    let places = Places::make()?;
    let mut host = Host::rooted("/sys", "/tmp/nodes");
    let first = places.device("rxe0", 0)?;
    let number = host.device("rxe0")?.node.context("no node")?.number;
    fs::create_dir("/tmp/nodes")?;
    let mode = rustix::fs::Mode::from_raw_mode(0o666);
    let kind = rustix::fs::FileType::CharacterDevice;
    rustix::fs::mknodat(rustix::fs::CWD, "/tmp/nodes/uverbs0", kind, mode, number)?;
    let context = Context::open(&host.device("rxe0")?)?;
    let removal = thread::spawn(move || drop(first));
    lab::wait_for_removal(&removal)?;
    let _second = places.device("rxe1", 1)?;
    let device = host.device("rxe1")?;
    ensure!(device.node.as_ref().is_some_and(|node| node.number == number), "{device:?}");
    let opened = Context::open(&device);
    println!("{opened:?}");
    match opened {
        Err(error) => {
            let is_told = matches!(error.cause(), Cause::Replaced | Cause::DeviceGone(_));
            ensure!(is_told, "{error:?}");
        }
        Ok(opened) => {
            let table = opened.query_gid_table()?;
            let text =
                format!("{:?}", table.iter().map(|row| row.gid().to_string()).collect::<Vec<_>>());
            ensure!(marked(&text, &places.marks) == [false, true], "another's rows: {text}");
        }
    }
    drop(context);
    removal.join().map_err(|_| anyhow::anyhow!("the removal failed"))?;
    ensure!(Context::open(&device)?.query_gid_table()?.len() == 2);
    fs::remove_dir_all("/tmp/nodes")?;
    Ok(())
}
