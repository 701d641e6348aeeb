//! `uverbs metrics --listen` beside `node_exporter`: what a scrape costs, and disks that are full.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use nix::sys::time::TimeValLike as _;
use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;

use super::choices::Ending;
use crate::lab::{self, Netdev, SoftRoce, output, run};
use uverbs_vm::has_its_turn;

/// Where strace writes.
const LOG: &str = "/tmp/served";

/// The loopback interface, up.
pub(super) struct Loopback;

impl Loopback {
    pub(super) fn new() -> Result<Self> {
        run(&["ip", "link", "set", "lo", "up"])?;
        Ok(Self)
    }
}

impl Drop for Loopback {
    fn drop(&mut self) {
        lab::undo(&["ip", "link", "set", "lo", "down"]);
    }
}

/// A program that serves metrics.
pub(super) struct Serving {
    child: Ending,
    address: &'static str,
}

/// What serves them, without devices that it does not look at.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Exporter {
    Uverbs,
    UverbsForDashboards,
    Node,
}

impl Exporter {
    fn words(self) -> &'static [&'static str] {
        match self {
            Self::Uverbs => &["uverbs", "metrics", "--listen", "9879"],
            Self::UverbsForDashboards => {
                &["uverbs", "metrics", "--listen", "9879", "--node-exporter", "--full"]
            }
            Self::Node => &[
                "prometheus-node-exporter",
                "--collector.disable-defaults",
                "--collector.infiniband",
                "--web.disable-exporter-metrics",
                "--web.listen-address=127.0.0.1:9100",
            ],
        }
    }

    pub(super) fn serve(self) -> Result<Serving> {
        self.serve_under(&[])
    }

    /// Under another program, which runs it.
    fn serve_under(self, before: &[&str]) -> Result<Serving> {
        let words = [before, self.words()].concat();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = Ending(command.spawn().with_context(|| format!("starting {words:?}"))?);
        let address = if self == Self::Node { "127.0.0.1:9100" } else { "127.0.0.1:9879" };
        lab::wait_until("it listens", || TcpStream::connect(address).is_ok())?;
        Ok(Serving { child, address })
    }
}

impl Serving {
    /// The text of a scrape.
    pub(super) fn scrape(&self) -> Result<String> {
        let mut stream = TcpStream::connect(self.address)?;
        stream.write_all(b"GET /metrics HTTP/1.0\r\nHost: x\r\n\r\n")?;
        let mut reply = String::new();
        stream.read_to_string(&mut reply)?;
        let (head, text) = reply.split_once("\r\n\r\n").context("no head")?;
        ensure!(head.contains(" 200 OK"), "{head}");
        let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
        let length = length.and_then(|length| length.parse().ok());
        ensure!(length.is_none_or(|length: usize| length == text.len()), "torn: {head}");
        Ok(text.to_owned())
    }

    /// How long it has run on a processor, its threads that have ended and the kernel's work for it included, in
    /// nanoseconds.
    fn ran(&self) -> Result<u64> {
        let pid = Pid::from_raw(self.child.0.id().try_into()?);
        let ran = clock_gettime(clock_getcpuclockid(pid)?)?;
        Ok(u64::try_from(ran.num_nanoseconds())?)
    }
}

/// The samples that have `node_exporter`'s names, with their values. An empty label is none.
pub(super) fn samples(text: &str) -> BTreeMap<String, String> {
    let own = text.lines().filter(|line| line.starts_with("node_infiniband_"));
    own.filter_map(|line| {
        let (name, value) = line.rsplit_once(' ')?;
        let (name, labels) = name.split_once('{')?;
        let labels = labels.trim_end_matches('}').split(',');
        let mut labels: Vec<&str> = labels.filter(|label| !label.ends_with("=\"\"")).collect();
        labels.sort_unstable();
        // It writes large numbers with an exponent.
        let value: f64 = value.parse().ok()?;
        Some((format!("{name} {}", labels.join(",")), value.to_string()))
    })
    .collect()
}

/// Each sample of `node_exporter`'s is one of ours, with the same value. Its lifespan is left out: it is 0 always, as
/// it counts milliseconds in whole seconds.
pub(super) fn compare_samples() -> Result<usize> {
    let ours = Exporter::UverbsForDashboards.serve()?;
    let theirs = Exporter::Node.serve()?;
    let mut compared = 0;
    // Until nothing is counted between the two.
    lab::wait_until("both say the same", || {
        let read = || -> Result<_> { Ok((samples(&theirs.scrape()?), samples(&ours.scrape()?))) };
        let Ok((mut theirs, ours)) = read() else { return false };
        theirs.retain(|name, _| !name.starts_with("node_infiniband_lifespan_seconds"));
        let differences: Vec<_> =
            theirs.iter().filter(|(name, value)| ours.get(*name) != Some(value)).collect();
        let more: Vec<_> = ours.keys().filter(|name| !theirs.contains_key(*name)).collect();
        println!("{differences:?} {more:?}");
        compared = theirs.len();
        differences.is_empty() && more.is_empty() && compared > 0
    })?;
    Ok(compared)
}

/// Eight soft-RoCE devices.
fn eight_devices() -> Result<Vec<(SoftRoce, Netdev)>> {
    let mut labs = Vec::new();
    for number in 0..8 {
        let mac = format!("02:00:00:00:00:{number:02x}");
        let netdev = Netdev::dummy(&format!("d{number}"), &mac)?;
        netdev.address(&format!("10.{number}.0.1/24"))?;
        let rxe = SoftRoce::new(&format!("rxe{number}"), &netdev)?;
        rxe.wait_for_gids(2)?;
        labs.push((rxe, netdev));
    }
    Ok(labs)
}

/// System calls of one scrape of eight ports, ours and those of `node_exporter`.
pub(crate) fn eight_ports() -> Result<()> {
    const SCRAPES: usize = 2;
    let _loopback = Loopback::new()?;
    let _labs = eight_devices()?;
    println!("figure: {} samples are those of node_exporter", compare_samples()?);
    if !has_its_turn(0, 3) {
        println!(
            "figure: system calls of a scrape: not counted, as it is not their turn by the seed"
        );
        return Ok(());
    }
    let mut calls = Vec::new();
    for exporter in [Exporter::Uverbs, Exporter::Node] {
        let serving = exporter.serve_under(&["strace", "-f", "-o", LOG])?;
        let mut counts = Vec::new();
        for _ in 0..=SCRAPES {
            serving.scrape()?;
            // strace writes each call at once; the last of a connection may come after it is closed.
            let mut before = 0;
            lab::wait_until("it rests", || {
                let now = count_calls().unwrap_or(0);
                std::thread::sleep(std::time::Duration::from_millis(200));
                let rests = now == before;
                before = now;
                rests
            })?;
            counts.push(before);
        }
        let first = counts[0];
        calls.push((counts[SCRAPES] - first) / SCRAPES);
    }
    println!(
        "figure: a scrape of 8 ports: {} system calls, of node_exporter's InfiniBand collector {}",
        calls[0], calls[1]
    );
    Ok(())
}

/// The same in instructions, those in the kernel included: on this machine the time that a process runs is their
/// number.
pub(crate) fn eight_ports_in_instructions() -> Result<()> {
    const SCRAPES: u64 = 20;
    let _loopback = Loopback::new()?;
    let _labs = eight_devices()?;
    let mut counts = Vec::new();
    for exporter in [Exporter::Uverbs, Exporter::UverbsForDashboards, Exporter::Node] {
        let serving = exporter.serve()?;
        serving.scrape()?;
        let before = serving.ran()?;
        for _ in 0..SCRAPES {
            serving.scrape()?;
        }
        counts.push((serving.ran()? - before) / SCRAPES);
    }
    println!(
        "figure: a scrape of 8 ports: {} instructions, with all counters and node_exporter's names {}, \
         of node_exporter's InfiniBand collector {}",
        counts[0], counts[1], counts[2]
    );
    Ok(())
}

fn count_calls() -> Result<usize> {
    let text = fs::read_to_string(LOG)?;
    // A call that another one interrupts has two lines.
    let is_call = |line: &&str| line.contains('(') && !line.contains(" resumed>");
    Ok(text.lines().filter(is_call).count())
}

/// A small disk that is full: the old file stays, whole, and nothing beside it.
pub(crate) fn a_full_disk() -> Result<()> {
    const FOLDER: &str = "/tmp/small";
    const FILE: &str = "/tmp/small/uverbs.prom";
    let _lab = lab::vlan_lab()?;
    fs::create_dir_all(FOLDER)?;
    let flags = rustix::mount::MountFlags::empty();
    rustix::mount::mount("none", FOLDER, "tmpfs", flags, c"size=64k")?;
    let filled = || -> Result<()> {
        run(&["uverbs", "metrics", "--output", FILE])?;
        let old = fs::read_to_string(FILE)?;
        ensure!(old.starts_with("# HELP ") && old.ends_with('\n'), "{old}");
        // All but one page.
        let mut filler = fs::File::create("/tmp/small/filler")?;
        while filler.write_all(&[0; 512]).is_ok() {}
        filler.set_len(filler.metadata()?.len() - 4096)?;
        let full = output(&["uverbs", "metrics", "--output", FILE])?;
        let said = String::from_utf8_lossy(&full.stderr);
        println!("{said}");
        ensure!(full.status.code() == Some(3) && said.contains("No space left"), "{full:?}");
        ensure!(fs::read_to_string(FILE)? == old, "the old file changed");
        ensure!(fs::read_dir(FOLDER)?.count() == 2, "something is left beside it");
        Ok(())
    };
    let done = filled();
    rustix::mount::unmount(FOLDER, rustix::mount::UnmountFlags::DETACH)?;
    done
}
