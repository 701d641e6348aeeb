//! C programs print the same bytes and have the same exit status with rdma-core's libraries and with ours.
//!
//! There are two releases of rdma-core: that of the peers, and a newer one in a separate root (`/newer`)
//! with its C library. In each root `usr/bin` has the programs with rdma-core's libraries, and `usr/uverbs`
//! those with ours. Both are compiled from the same sources: `tests/vm/peer`, `tests/examples`, and
//! `ibv_devices`, `ibv_devinfo`, `ibv_asyncwatch` and `ibstat` of the newer release. Every program in `usr/uverbs` is run.
//!
//! The deliberate differences are in [`DIFFERENCES`].

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::{self, Permissions};
use std::ops::RangeInclusive;
use std::os::unix::fs::PermissionsExt;
use std::process::Output;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};

use super::mlx5::firmware_words;
use super::siw::IwarpLab;
use crate::lab::within::Within;
use crate::lab::{self, Aside, IbSwitch, Namespace, Netdev, SoftRoce, output, run};
use uverbs_vm::{NO_NEWER, TURNS, has_its_turn, sample};

const NOBODY: u32 = 65_534;

/// The roots of rdma-core's releases, and what is mounted there.
const ROOTS: [&str; 2] = ["/", "/newer"];
pub(super) const MOUNTS: [&str; 4] = ["sys", "dev", "proc", "tmp"];

/// The situation in which programs run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Situation {
    /// Whoever asks may open every device.
    Open,
    /// The same, and the firmware refuses DEVX.
    NoDevx,
    /// There is no device.
    NoDevice,
    /// The nodes are there, and may not be opened; `/dev/char` links to them, as udev has it.
    Refused,
    /// The same without the links.
    RefusedWithoutLinks,
    /// There is no `/dev/infiniband`.
    NoNodes,
    /// The device is another network namespace's.
    Elsewhere,
    /// There is no `/sys`, no `/dev` and no `/proc`.
    NothingMounted,
}

/// A line of rdma-core's and the line of ours that may replace it in a situation.
#[derive(Debug)]
struct Difference {
    situation: Situation,
    /// rdma-core's line.
    theirs: &'static str,
    /// Ours.
    ours: &'static str,
    /// Why ours is not the same.
    why: &'static str,
}

/// Every deliberate difference. Each has to be seen in its situation.
const DIFFERENCES: &[Difference] = &[
    Difference {
        situation: Situation::RefusedWithoutLinks,
        theirs: "open: errno 2",
        ours: "open: errno 13",
        why: "rdma-core looks for the node in /dev/char, too, and tells what came of that",
    },
    Difference {
        situation: Situation::RefusedWithoutLinks,
        theirs: "open: NULL errno 2",
        ours: "open: NULL errno 13",
        why: "the same, as surface_verbs has it",
    },
    Difference {
        situation: Situation::RefusedWithoutLinks,
        theirs: "opening rxe0: No such file or directory",
        ours: "opening rxe0: Permission denied",
        why: "the same, as the examples have it",
    },
];

/// A device that is asked about.
#[derive(Debug)]
struct Device {
    name: String,
    ports: RangeInclusive<u32>,
    /// Whether libibumad knows it: an e-switch manager without RoCE takes no MADs.
    has_mads: bool,
}

impl Device {
    fn is_mlx5(&self) -> bool {
        self.name.starts_with("mlx5")
    }
}

/// All devices, as sysfs shows them.
fn devices() -> Result<Vec<Device>> {
    let mads = "/sys/class/infiniband_mad";
    let mut with_mads = Vec::new();
    for name in lab::names_in(mads)?.iter().filter(|name| name.starts_with("umad")) {
        with_mads.push(fs::read_to_string(format!("{mads}/{name}/ibdev"))?.trim().to_owned());
    }
    let mut devices = Vec::new();
    for name in lab::names_in("/sys/class/infiniband")? {
        let ports = lab::names_in(&format!("/sys/class/infiniband/{name}/ports"))?;
        let ports: Vec<u32> = ports.iter().map(|port| port.parse()).collect::<Result<_, _>>()?;
        let (first, last) = (ports.iter().min(), ports.iter().max());
        let ports = *first.context("no ports")?..=*last.context("no ports")?;
        devices.push(Device { has_mads: with_mads.contains(&name), name, ports });
    }
    Ok(devices)
}

/// A program with its arguments, and whether it has to succeed and to print something where devices
/// can be opened.
#[derive(Debug)]
struct Line {
    program: String,
    arguments: Vec<String>,
    succeeds: bool,
}

/// What one program is run with.
fn lines(program: &str, devices: &[Device]) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut add = |succeeds: bool, words: &[&str]| {
        let arguments = words.iter().map(|&word| word.to_owned()).collect();
        lines.push(Line { program: program.to_owned(), arguments, succeeds });
    };
    // Of mlx5 each P_Key is a command of its own to the firmware.
    let is_slow = devices.iter().any(Device::is_mlx5);
    match program {
        "answers" => {
            add(false, &[]);
            add(false, &["verbs", "nosuch0"]);
            // Every room asked for reads all P_Keys.
            let rooms = if is_slow { &["2"][..] } else { &["0", "1", "2", "3", "4"] };
            add(true, &[&["umad"], rooms].concat());
            for Device { name, .. } in devices {
                add(true, &["verbs", name]);
                // Its standard input is at its end: it says that the device is open, and fails.
                add(false, &["gone", name]);
            }
        }
        "mlx5" => {
            let words = firmware_words();
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            add(false, &[]);
            add(false, &["ports", "nosuch0"]);
            for device in devices {
                let Device { name, ports, .. } = device;
                let is_mlx5 = device.is_mlx5();
                add(is_mlx5, &["ports", name]);
                add(false, &["gone", name]);
                for size in ["0", "7", "8", "15", "16", "40", "47", "48", "49", "4096"] {
                    add(true, &["port", name, &ports.start().to_string(), size]);
                }
                add(true, &["port", name, "4294967295", "48"]);
                for kind in ["devx", "plain"] {
                    add(is_mlx5, &[&["devx", name, kind], &words[..]].concat());
                }
            }
        }
        "ibv_devinfo" => {
            // It asks for port 1 also of a switch.
            let is_no_switch = |device: &Device| *device.ports.start() == 1;
            for words in [&[][..], &["-v"]] {
                add(devices.iter().all(is_no_switch), words);
            }
            add(true, &["-l"]);
            add(false, &["-d", "nosuch0"]);
            for device in devices {
                let Device { name, ports, .. } = device;
                add(is_no_switch(device), &["-d", name]);
                add(is_no_switch(device), &["-v", "-d", name]);
                for port in 0..=ports.end() + 1 {
                    add(false, &["-d", name, "-i", &port.to_string()]);
                    add(false, &["-v", "-d", name, "-i", &port.to_string()]);
                }
            }
        }
        "ibstat" => {
            for words in [&[][..], &["-l"], &["-p"], &["-s"]] {
                add(devices.iter().all(|device| device.has_mads), words);
            }
            for words in [&["nosuch0"][..], &["nosuch0", "1"], &["-s", "nosuch0"], &["-d"]] {
                add(false, words);
            }
            for Device { name, ports, has_mads } in devices {
                add(*has_mads, &[name]);
                add(*has_mads, &["-s", name]);
                add(*has_mads, &["-p", name]);
                for port in (0..=ports.end() + 1).chain([77]) {
                    add(*has_mads && ports.contains(&port), &[name, &port.to_string()]);
                }
            }
        }
        // A switch has no port 1, and a port may have no GID.
        "query_gid_table" => add(false, &[]),
        // It waits for events, without an end: see `c_events`.
        "ibv_asyncwatch" => add(true, &["-h"]),
        "query_gid_ex" => {
            add(false, &[]);
            add(false, &["nosuch0", "1", "0"]);
            for Device { name, ports, .. } in devices {
                for index in ["0", "1", "70000"] {
                    add(false, &[name, &ports.start().to_string(), index]);
                }
                add(false, &[name, &(ports.end() + 1).to_string(), "0"]);
            }
        }
        // Linux 5.10 does not know the question.
        "mlx5_query_port" => {
            add(false, &["nosuch0"]);
            for device in devices {
                add(false, &[&device.name]);
            }
        }
        "umad_get_ca_portguids" => {
            add(false, &[]);
            add(false, &["nosuch0"]);
            for device in devices {
                add(false, &[&device.name]);
            }
        }
        "interrupted" if is_slow => add(true, &["3"]),
        // Some need no telling what to ask.
        _ => add(true, &[]),
    }
    lines
}

/// What was compared in a scenario.
#[derive(Debug)]
struct Compared {
    /// Programs that are not run.
    without: &'static [&'static str],
    /// A run that takes samples has one line of so many.
    turns: u64,
    roots: &'static [&'static str],
    /// Lines of [`WARNING`] that were left out.
    warnings: usize,
    runs: usize,
    bytes: usize,
    programs: BTreeSet<(&'static str, String)>,
    /// Places in [`DIFFERENCES`].
    known: BTreeSet<usize>,
    unknown: String,
}

impl Compared {
    /// Nothing yet; programs will run in these roots.
    fn within(roots: &'static [&'static str]) -> Self {
        let (programs, known) = (BTreeSet::new(), BTreeSet::new());
        let (without, unknown) = (&[], String::new());
        Self { without, turns: 1, roots, warnings: 0, runs: 0, bytes: 0, programs, known, unknown }
    }

    /// Of a situation that is much like others: a fifth of the lines if the run takes samples. The kernel is chosen by
    /// threes of seeds and the root by twos, so that each line comes with each.
    fn like_others(self) -> Self {
        Self { turns: 5, ..self }
    }

    /// Runs every program on these devices in each root, as this user, after these words.
    fn all(&mut self, situation: Situation, devices: &[Device], within: Within) -> Result<()> {
        for &root in self.roots {
            let programs = programs(root)?;
            let wanted = |program: &&String| !self.without.contains(&program.as_str());
            let lines: Vec<Line> = programs
                .iter()
                .filter(wanted)
                .flat_map(|program| lines(program, devices))
                .collect();
            for (number, line) in (0..).zip(lines) {
                if has_its_turn(number, self.turns) {
                    self.one(situation, &line, Within { root, mounts: &MOUNTS, ..within })?;
                    self.programs.insert((root, line.program));
                }
            }
        }
        Ok(())
    }

    /// Runs one line with either library.
    fn one(&mut self, situation: Situation, line: &Line, within: Within) -> Result<()> {
        let Line { program, arguments, succeeds } = line;
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let start = Instant::now();
        let mut theirs = ran(within, &format!("/usr/bin/{program}"), &arguments)?;
        let (theirs_took, start) = (start.elapsed(), Instant::now());
        let ours = ran(within, &format!("/usr/uverbs/{program}"), &arguments)?;
        let ours_took = start.elapsed();
        let shown = format!("{program} {} in {}", cut(&arguments.join(" "), 120), within.root);
        if *succeeds && situation == Situation::Open {
            ensure!(theirs.status.success() && !theirs.stdout.is_empty(), "{shown}: {theirs:?}");
        }
        println!("{shown}: {theirs_took:.1?} and {ours_took:.1?}");
        self.warnings += without_warnings(&mut theirs.stderr);
        self.runs += 1;
        self.bytes += theirs.stdout.len() + theirs.stderr.len();
        let mut differing = String::new();
        for (kind, theirs, ours) in
            [("stdout", &theirs.stdout, &ours.stdout), ("stderr", &theirs.stderr, &ours.stderr)]
        {
            if theirs != ours {
                differing += &self.differing(situation, kind, theirs, ours)?;
            }
        }
        if theirs.status != ours.status {
            writeln!(differing, "rdma-core: {}\nuverbs:    {}", theirs.status, ours.status)?;
        }
        if !differing.is_empty() {
            write!(self.unknown, "# {shown}\n{differing}")?;
        }
        Ok(())
    }

    /// The lines that differ, without those that are known to.
    fn differing(
        &mut self,
        situation: Situation,
        kind: &str,
        theirs: &[u8],
        ours: &[u8],
    ) -> Result<String> {
        let (theirs, ours) = (String::from_utf8_lossy(theirs), String::from_utf8_lossy(ours));
        let (mut their_lines, mut our_lines) = (theirs.lines(), ours.lines());
        let (mut differing, mut is_known) = (String::new(), false);
        loop {
            let (their, our) = match (their_lines.next(), our_lines.next()) {
                (None, None) => break,
                pair => (pair.0.unwrap_or("(nothing)"), pair.1.unwrap_or("(nothing)")),
            };
            let known = DIFFERENCES
                .iter()
                .position(|it| (it.situation, it.theirs, it.ours) == (situation, their, our));
            if their == our {
            } else if let Some(known) = known {
                is_known = true;
                self.known.insert(known);
            } else if differing.len() < 1000 {
                writeln!(differing, "rdma-core's {kind}: {their}\nuverbs' {kind}:    {our}")?;
            }
        }
        if differing.is_empty() && !is_known {
            // No line differs, but the bytes do.
            return Ok(format!("{kind}: {theirs:?}, {ours:?}\n"));
        }
        Ok(differing)
    }

    /// Says what was compared, and fails where anything differs.
    fn end(self, situation: Situation) -> Result<()> {
        let Self { without, turns, roots, warnings, runs, bytes, programs, known, unknown } = self;
        println!(
            "figure: {situation:?}: {} C programs, {runs} runs with each library, {bytes} bytes",
            programs.len()
        );
        for root in ROOTS.iter().filter(|root| !roots.contains(root)) {
            println!("figure: in {root} by another seed");
        }
        if turns > 1 && sample().is_some() {
            println!("figure: {} lines in {turns} by other seeds", turns - 1);
        }
        for program in without {
            println!("figure: {program} is not run here");
        }
        if warnings > 0 {
            println!(
                "figure: deliberately without {warnings} lines {WARNING:?} on stderr: our library writes there only for umad_debug"
            );
        }
        let expected = DIFFERENCES.iter().enumerate().filter(|(_, it)| it.situation == situation);
        for (place, difference) in expected {
            let Difference { theirs, ours, why, .. } = difference;
            println!("figure: deliberately {ours:?} instead of {theirs:?}: {why}");
            ensure!(known.contains(&place), "{difference:?} was not seen");
        }
        ensure!(runs > 0 && bytes > 0, "nothing was compared");
        ensure!(unknown.is_empty(), "the programs differ:\n{}", cut(&unknown, 60_000));
        Ok(())
    }
}

/// What libibumad says on stderr of a port without P_Keys, as iWARP has, before it fails.
const WARNING: &str = "get_port: no pkeys found for ";

/// Takes the lines of [`WARNING`] away, and counts them.
fn without_warnings(stderr: &mut Vec<u8>) -> usize {
    let text = String::from_utf8_lossy(stderr).into_owned();
    let is_warning = |line: &&str| line.starts_with("ibwarn: ") && line.contains(WARNING);
    let count = text.lines().filter(is_warning).count();
    if count > 0 {
        let left = text.split_inclusive('\n').filter(|line| !is_warning(line));
        *stderr = left.collect::<String>().into_bytes();
    }
    count
}

/// Runs a program. `[PID]` replaces its process number in the output, which `ibstat` prints.
fn ran(within: Within, program: &str, arguments: &[&str]) -> Result<Output> {
    let (process, Output { status, stdout, stderr }) = within.run(program, arguments)?;
    let number = format!("[{process}]").into_bytes();
    let anonymous = |bytes: Vec<u8>| {
        let mut anonymous = Vec::new();
        let mut rest = &bytes[..];
        while let Some((first, after)) = rest.split_first() {
            if let Some(after) = rest.strip_prefix(&number[..]) {
                anonymous.extend(b"[PID]");
                rest = after;
            } else {
                anonymous.push(*first);
                rest = after;
            }
        }
        anonymous
    };
    Ok(Output { status, stdout: anonymous(stdout), stderr: anonymous(stderr) })
}

fn cut(text: &str, length: usize) -> &str {
    text.char_indices().nth(length).and_then(|(end, _)| text.get(..end)).unwrap_or(text)
}

/// The programs of a root.
fn programs(root: &str) -> Result<Vec<String>> {
    let programs = lab::names_in(&format!("{root}/usr/uverbs"))?;
    ensure!(!programs.is_empty(), "no program is linked with our library for {root}");
    Ok(programs)
}

/// Both, but for another machine than x86-64 the mirror may have only one release.
fn all_roots() -> Result<&'static [&'static str]> {
    if !fs::exists(NO_NEWER)? {
        return Ok(&ROOTS);
    }
    println!("figure: {}", fs::read_to_string(NO_NEWER)?.lines().next().unwrap_or_default());
    Ok(&["/"])
}

/// Both roots in a whole run. One that takes samples has one of them for each situation, by the seed and the
/// situation's number: the programs are linked with the same library.
fn roots(situation: u64) -> Result<&'static [&'static str]> {
    let Some(seed) = sample() else { return all_roots() };
    Ok(if (seed + situation).is_multiple_of(2) { &["/"] } else { &["/newer"] })
}

/// Every program, on all devices that are there now, with nothing in the way, in the roots of the situation with
/// this number.
pub(super) fn compare_in_turn(number: u64) -> Result<()> {
    compare(Compared::within(roots(number)?).like_others(), Situation::Open)
}

/// Every program but those that read all P_Keys many times, which takes minutes on mlx5, in the roots
/// of the situation with this number.
pub(super) fn compare_shortly(number: u64) -> Result<()> {
    compare_without_surface(number, Situation::Open)
}

/// The same while the firmware refuses DEVX.
pub(super) fn compare_without_devx(number: u64) -> Result<()> {
    compare_without_surface(number, Situation::NoDevx)
}

fn compare_without_surface(number: u64, situation: Situation) -> Result<()> {
    let compared = Compared::within(roots(number)?).like_others();
    compare(Compared { without: &["surface_umad"], ..compared }, situation)
}

fn compare(mut compared: Compared, situation: Situation) -> Result<()> {
    let devices = devices()?;
    ensure!(!devices.is_empty(), "there is no device");
    compared.all(situation, &devices, Within::HERE)?;
    compared.end(situation)
}

/// Soft RoCE with all kinds of GIDs, VLANs among them.
pub(crate) fn on_soft_roce() -> Result<()> {
    let _lab = lab::two_soft_roce_devices()?;
    if !fs::exists(NO_NEWER)? {
        let about = fs::read_to_string("/newer/about")?;
        println!("figure: the newer release of rdma-core is {about}");
    }
    let roots = if lab::is_newest_kernel()? { all_roots()? } else { roots(0)? };
    compare(Compared::within(roots), Situation::Open)
}

/// Ports that are down, and one on the loopback interface.
pub(crate) fn on_links_that_are_down() -> Result<()> {
    let netdev = Netdev::dummy("d0", "02:11:22:33:44:55")?;
    netdev.address("192.168.77.1/24")?;
    let rxe = SoftRoce::new("rxe0", &netdev)?;
    rxe.wait_for_gids(2)?;
    run(&["ip", "link", "set", "d0", "down"])?;
    run(&["ip", "link", "set", "lo", "up"])?;
    let on_loopback = SoftRoce::on_loopback("rxe1")?;
    on_loopback.wait_for_gid("0000:0000:0000:0000:0000:0000:0000:0001")?;
    rxe.settle()?;
    on_loopback.settle()?;
    compare_in_turn(0)
}

/// Only a switch, and a switch with soft RoCE.
pub(crate) fn on_a_switch() -> Result<()> {
    let _switch = IbSwitch::load()?;
    compare_in_turn(0)?;
    let _roce = lab::vlan_lab()?;
    compare_in_turn(1)
}

/// Only soft iWARP, and with soft RoCE.
pub(crate) fn on_soft_iwarp() -> Result<()> {
    let _iwarp = IwarpLab::new()?;
    compare_in_turn(1)?;
    let netdev = Netdev::dummy("d1", "02:66:77:88:99:aa")?;
    let rxe = SoftRoce::new("rxe0", &netdev)?;
    rxe.wait_for_gids(1)?;
    compare_in_turn(0)
}

/// No device at all.
pub(crate) fn without_a_device() -> Result<()> {
    let mut compared = Compared::within(all_roots()?).like_others();
    // Whatever takes a device is given one that does not exist.
    let device = Device { name: "rxe0".to_owned(), ports: 1..=1, has_mads: false };
    compared.all(Situation::NoDevice, &[device], Within::HERE)?;
    compared.end(Situation::NoDevice)
}

/// Nodes that others may not open, until this is dropped. Those of devices go with them, but not that of the
/// connection manager.
struct Refused(Vec<(String, Permissions)>);

impl Drop for Refused {
    fn drop(&mut self) {
        for (node, before) in self.0.drain(..) {
            if let Err(error) = fs::set_permissions(&node, before) {
                eprintln!("{node} keeps its mode: {error}");
            }
        }
    }
}

/// Another user: with rights to the node the same as root, and without them.
pub(crate) fn of_another_user() -> Result<()> {
    let _lab = lab::vlan_lab()?;
    let within = Within { user: NOBODY, ..Within::HERE };
    let mut compared = Compared::within(roots(0)?).like_others();
    compared.all(Situation::Open, &devices()?, within)?;
    compared.end(Situation::Open)?;

    let mut refused = Refused(Vec::new());
    for name in lab::names_in("/dev/infiniband")? {
        let node = format!("/dev/infiniband/{name}");
        let before = fs::metadata(&node)?.permissions();
        fs::set_permissions(&node, Permissions::from_mode(0o600))?;
        refused.0.push((node, before));
    }
    // Every sentence that is another then is theirs or an example's.
    let sentences = [("query_gid_ex", &["rxe0", "1", "0"][..]), ("surface_verbs", &[])];
    few(Situation::RefusedWithoutLinks, within, &sentences)?;
    let _links = lab::NodeLinks::make()?;
    few(Situation::Refused, within, &[])
}

/// One question for each of the libraries: where there is a `/dev/char`, rdma-core waits five seconds
/// whenever a device does not open.
fn few(situation: Situation, within: Within, more: &[(&str, &[&str])]) -> Result<()> {
    let mut compared = Compared::within(roots(1)?);
    let questions = [
        ("answers", &["verbs", "rxe0"][..]),
        ("answers", &["umad", "2"]),
        ("mlx5", &["ports", "rxe0"]),
        ("ibv_devices", &[]),
        ("ibv_devinfo", &["-d", "rxe0"]),
        ("ibstat", &[]),
    ];
    for &root in compared.roots {
        let within = Within { root, mounts: &MOUNTS, ..within };
        for &(program, arguments) in questions.iter().chain(more) {
            if programs(root)?.contains(&program.to_owned()) {
                let arguments = arguments.iter().map(|&word| word.to_owned()).collect();
                let line = Line { program: program.to_owned(), arguments, succeeds: false };
                compared.one(situation, &line, within)?;
                compared.programs.insert((root, line.program));
            }
        }
    }
    compared.end(situation)
}

/// No `/dev/infiniband`.
pub(crate) fn without_nodes() -> Result<()> {
    let _lab = lab::vlan_lab()?;
    let _aside = Aside::moved("/dev/infiniband")?;
    few(Situation::NoNodes, Within::HERE, &[])
}

/// A device that is another network namespace's, in exclusive mode.
pub(crate) fn in_another_namespace() -> Result<()> {
    let _mode = lab::Exclusive::set()?;
    let _lab = lab::vlan_lab()?;
    let namespace = Namespace::new("blue")?;
    let _links = lab::NodeLinks::make()?;
    let mut compared = Compared::within(roots(1)?).like_others();
    let before = namespace.exec();
    compared.all(Situation::Elsewhere, &devices()?, Within { before: &before, ..Within::HERE })?;
    compared.end(Situation::Elsewhere)
}

/// No `/sys`, `/dev` and `/proc`. Only the newer release has a root that can be without.
pub(crate) fn with_nothing_mounted() -> Result<()> {
    let _lab = lab::two_soft_roce_devices()?;
    let mut compared = Compared::within(&["/newer"]).like_others();
    compared.all(Situation::NothingMounted, &devices()?, Within::HERE)?;
    compared.end(Situation::NothingMounted)
}

/// Static programs in a folder with nothing but themselves.
pub(crate) fn in_an_empty_root() -> Result<()> {
    let _lab = lab::two_soft_roce_devices()?;
    let mut expected = Vec::new();
    let questions = [&["verbs", "rxe0"][..], &["umad", "0", "2", "4"]];
    for question in questions {
        expected.push(run(&[&["answers"], question].concat())?);
    }
    for libc in ["glibc", "musl"] {
        let program = fs::read(format!("/static/{libc}"))?;
        ensure!(!has_interpreter(&program)?, "{libc}'s program has an interpreter");
        let root = format!("/tmp/empty-{libc}");
        fs::create_dir(&root)?;
        fs::copy(format!("/static/{libc}"), format!("{root}/answers"))?;
        ensure!(lab::names_in(&root)? == ["answers"], "the root is not empty");

        // Nothing is mounted: what rdma-core says then, in the root that has its libraries.
        let bare = Within { root: &root, ..Within::HERE };
        for (question, status) in questions.iter().zip([1, 0]) {
            let theirs = ran(Within { root: "/newer", ..bare }, "/usr/bin/answers", question)?;
            let ours = ran(bare, "/answers", question)?;
            println!("# {libc}, nothing mounted: {question:?}: {ours:?}");
            ensure!(ours.status.code() == Some(status), "{ours:?}");
            ensure!(ours == theirs, "rdma-core: {theirs:?}");
        }

        let within = Within { mounts: &["sys", "dev"], ..bare };
        let mut bytes = 0;
        for (question, expected) in questions.iter().zip(&expected) {
            let Output { status, stdout, stderr } = ran(within, "/answers", question)?;
            ensure!(status.success() && stderr.is_empty(), "{status} {stderr:?}");
            ensure!(stdout == expected.as_bytes(), "{question:?} in an empty root differs");
            bytes += stdout.len();
        }
        println!("figure: {libc}, static: {} bytes, of which {bytes} are answered", program.len());
    }
    Ok(())
}

/// Whether an ELF file names a dynamic loader.
fn has_interpreter(file: &[u8]) -> Result<bool> {
    const PT_INTERP: [u8; 4] = 3_u32.to_le_bytes();
    ensure!(file.starts_with(b"\x7fELF\x02\x01"), "no ELF file of 64 bits");
    let at = |place: usize, length: usize| file.get(place..place + length).context("cut off");
    let table = usize::try_from(u64::from_le_bytes(at(0x20, 8)?.try_into()?))?;
    let size = usize::from(u16::from_le_bytes(at(0x36, 2)?.try_into()?));
    let count = usize::from(u16::from_le_bytes(at(0x38, 2)?.try_into()?));
    ensure!(count > 0, "it has no segments");
    for segment in 0..count {
        if at(table + segment * size, 4)? == PT_INTERP {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Soft RoCE with checks of every access to memory.
pub(crate) fn sanitized() -> Result<()> {
    let _lab = lab::vlan_lab()?;
    check_accesses(1)
}

/// Every program of this project whose accesses to memory, and those of our library, the compilers check, on
/// all devices that are there now: no error, nothing lost, and the same answers. A run that takes
/// samples has one of `of` runs.
pub(super) fn check_accesses(of: u64) -> Result<()> {
    let devices = devices()?;
    let (mut runs, mut bytes, mut number) = (0, 0, 0);
    for program in lab::names_in("/usr/sanitized")? {
        for line in lines(&program, &devices).iter().filter(|line| line.succeeds) {
            number += 1;
            if !has_its_turn(number, of) {
                continue;
            }
            let arguments: Vec<&str> = line.arguments.iter().map(String::as_str).collect();
            let path = format!("/usr/sanitized/{program}");
            let checked = output(&[&[path.as_str()], &arguments[..]].concat())?;
            let said = String::from_utf8_lossy(&checked.stderr);
            let path = format!("/usr/uverbs/{program}");
            let plain = output(&[&[path.as_str()], &arguments[..]].concat())?;
            ensure!(checked.status == plain.status, "{program}: {}: {said}", checked.status);
            ensure!(checked.stdout == plain.stdout, "{program} says something else: {said}");
            ensure!(!said.contains("Sanitizer"), "{program}: {said}");
            runs += 1;
            bytes += checked.stdout.len();
        }
    }
    println!("figure: {runs} runs with AddressSanitizer, {bytes} bytes");
    ensure!(runs > 0 && bytes > 0, "nothing was checked");
    Ok(())
}

/// Soft RoCE under valgrind.
pub(crate) fn under_valgrind() -> Result<()> {
    lab::on_the_newest_kernel("valgrind sees the program, not the kernel")?;
    let _lab = lab::vlan_lab()?;
    check_memory(&LEAKS)
}

/// Every program of this project with our library under valgrind, on all current devices: no
/// error, and nothing lost.
pub(super) fn check_memory(without: &[&str]) -> Result<()> {
    let devices = devices()?;
    fs::write("/tmp/suppressions", SUPPRESSIONS)?;
    let (mut runs, mut is_clean) = (0, true);
    let (mut programs_run, mut suppressed) = (BTreeSet::new(), BTreeSet::new());
    let mut number = 0;
    // Those of the newer release, which are more, with the C library that this valgrind knows.
    for program in programs("/newer")? {
        if without.contains(&program.as_str()) {
            println!("figure: {program} is not run here");
            continue;
        }
        for line in lines(&program, &devices) {
            // What ends early in an error gives nothing back.
            if !line.succeeds {
                continue;
            }
            number += 1;
            if !has_its_turn(number, 2 * TURNS) {
                continue;
            }
            let path = format!("/newer/usr/uverbs/{program}");
            let arguments: Vec<&str> = line.arguments.iter().map(String::as_str).collect();
            let plain = output(&[&[path.as_str()], &arguments[..]].concat())?;
            let checked = output(&[&VALGRIND[..], &[&path], &arguments[..]].concat())?;
            let said = String::from_utf8_lossy(&checked.stderr);
            let is_well = said.contains("ERROR SUMMARY: 0 errors");
            if !is_well {
                println!("# {path} {}\n{said}", cut(&arguments.join(" "), 120));
            }
            is_clean &= is_well;
            let (status, stdout) = (checked.status, checked.stdout);
            ensure!(!is_well || status == plain.status, "{status} under valgrind: {said}");
            ensure!(stdout == plain.stdout, "{path} says something else under valgrind");
            suppressed.extend(SUPPRESSED.iter().filter(|it| said.contains(it.0)).map(|it| it.0));
            runs += 1;
        }
        programs_run.insert(program);
    }
    println!("figure: {runs} runs of {} programs under valgrind", programs_run.len());
    for (name, why) in SUPPRESSED {
        println!("figure: deliberately {name}: {why}");
        let came_up = suppressed.contains(name);
        ensure!(came_up || sample().is_some(), "{name} did not come up");
    }
    ensure!(runs > 0 && is_clean, "valgrind found errors");
    Ok(())
}

/// What valgrind finds and is none.
const SUPPRESSIONS: &str = "\
{
   devices_stay_known
   Memcheck:Leak
   match-leak-kinds: reachable
   ...
   fun:*uverbs*capi*verbs*device*list*
}
{
   its_own_path_stays_known
   Memcheck:Leak
   match-leak-kinds: reachable
   ...
   fun:ibv_get_sysfs_path
}
";

/// These end without giving back what they got, with either library.
pub(super) const LEAKS: [&str; 2] = ["cancelled", "ibstat"];

/// Why, for each of the suppressions.
const SUPPRESSED: [(&str, &str); 2] = [
    ("devices_stay_known", "the last list of devices stays, as rdma-core's does, for the next one"),
    ("its_own_path_stays_known", "where sysfs is, found once, as by rdma-core"),
];

const VALGRIND: [&str; 7] = [
    "valgrind.bin",
    "-s",
    "--suppressions=/tmp/suppressions",
    "--error-exitcode=99",
    "--leak-check=full",
    "--show-leak-kinds=all",
    "--errors-for-leak-kinds=all",
];
