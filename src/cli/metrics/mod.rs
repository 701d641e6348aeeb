//! `uverbs metrics`: one reading of everything that a dashboard wants, as an exposition.

mod catalogue;
mod exposition;
mod names;
mod node_exporter;
mod serve;

use std::fmt::Display;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::Args;
use uverbs::check::{Expected, check_for};
use uverbs::choose::Wish;
use uverbs::counter::{Counter, End, Reading};
use uverbs::device::Device;
use uverbs::host::{CounterReader, Counters, DeviceCounters, Host, PortCounters};
use uverbs::inventory::{DeviceRecord, Parts, PortRecord, Problem};
use uverbs::port::{Mtu, PhysState, PortState, Rate, Width};

use crate::args::{Common, NamedPorts, OriginArgs, OutputArg};
use crate::check::is_asked;
use crate::choose::take;
use crate::counters::tell_hidden;
use crate::hosts::{Seen, choose, host, look_to_choose, missing};
use crate::output::Output;
use crate::report::Report;
use crate::selection::Asked;
use crate::until::exit_on_signal;
use catalogue::{
    BUILD, COMMANDS, DEVICE, DIFFERS, DURATION, EFFECTIVE, ENABLED, FINDINGS, GID_INDEX, GID_TABLE,
    GIDS, GIDS_ELSEWHERE, Kind, MAX_MTU, MTU, Metric, NUMA_NODE, PHYS_STATE, PORT_INFO, PROBLEMS,
    RATE, RECOMMENDED, RESOURCES, SATURATED, STATE, TIMESTAMP, WIDTH,
};
use exposition::{Exposition, Format};
use serve::{Listen, serve};

/// Bytes per second. A snapshot may have a rate of any size.
fn bytes(rate: Rate) -> u128 {
    u128::from(rate.0) * 100_000_000 / 8
}

/// Print metrics for Prometheus: ports, GIDs, choices, findings, counters
///
/// One reading, for the textfile collector of `node_exporter` or any other that takes a text. The page
/// metrics.md lists every metric. With --from, which reads snapshots, there are no counters.
///
/// On mlx5, where each counter of the performance management agent costs a command to the firmware,
/// only data, `link_downed` and `symbol_error` are read of them; --full reads all, and so does --sysfs, which
/// does not know what is mlx5. P_Keys and effective rates of this host are also read with --full only, and so
/// are the findings of `uverbs check` about them.
///
/// The status is 3 if something could not be read; the metrics say so as well, and have all the rest.
/// Findings do not change it, nor does a part of the hardware that could not be read: it has no sample.
///
/// --listen serves them until it is stopped (SIGTERM), GET and HEAD of /metrics, and reads once for each scrape.
/// It has no TLS: put a proxy before it, or leave it on loopback.
#[derive(Debug, Args)]
#[command(
    verbatim_doc_comment,
    after_help = "\
Examples:
  uverbs metrics
  uverbs metrics --output /var/lib/prometheus/node-exporter/uverbs.prom   for the textfile collector
  uverbs metrics --format openmetrics
  uverbs metrics --from node7.json"
)]
pub(crate) struct MetricsArgs {
    #[command(flatten)]
    pub(crate) named: NamedPorts,
    /// The form of the text
    #[arg(long, value_name = "FORMAT", default_value = "prometheus")]
    format: Format,
    #[command(flatten)]
    output: OutputArg,
    /// Serve them by HTTP: at ADDRESS:PORT, at PORT on loopback, or - for a socket on stdin
    #[arg(long, value_name = "ADDR", conflicts_with_all = ["output", "from"], value_parser = str::parse::<Listen>)]
    listen: Option<Listen>,
    /// Read also what costs commands to the firmware: all counters, P_Keys, effective rates
    #[arg(long)]
    full: bool,
    #[arg(long, help = "Add what node_exporter's InfiniBand collector shows, under its names")]
    node_exporter: bool,
    #[command(flatten)]
    pub(crate) origin: OriginArgs,
}

/// How long counters that were refused are not asked for again. With restricted functions each refusal is a line in the
/// kernel's log; of others it may be over soon.
const PAUSE: Duration = Duration::from_secs(5 * 60);

/// The errno of "there is one already".
const EEXIST: i32 = 17;

/// What is asked, and what is remembered of it.
struct Sources {
    /// For all but the counters.
    host: Host,
    counters: Host,
    reader: CounterReader,
    /// Since when the reader remembers what was refused.
    since: Instant,
}

impl Sources {
    /// From time to time what was refused is asked for again.
    fn forget(&mut self, now: Instant) {
        if now.duration_since(self.since) >= PAUSE {
            self.reader.forget();
            self.since = now;
        }
    }
}

pub(crate) fn answer(
    common: &Common,
    args: &MetricsArgs,
    report: &mut Report,
) -> serde_json::Result<Output> {
    let mut from = Sources {
        host: host(common),
        counters: host(common),
        reader: if args.full { CounterReader::new() } else { CounterReader::frugal() },
        since: Instant::now(),
    };
    if let Some(listen) = args.listen {
        if let Err(problem) = exit_on_signal() {
            report.host_problem(problem);
            return Ok(Output::Text(Vec::new()));
        }
        // What a reading lacks is in its metrics.
        let serving = serve(listen, &mut || {
            read(common, args, &mut from, &mut Report::default()).unwrap_or_default()
        });
        let Err(error) = serving;
        report.host_problem(Problem {
            text: format!("cannot serve: {error}"),
            errno: error.raw_os_error().unwrap_or(0),
        });
        return Ok(Output::Text(Vec::new()));
    }
    let text = read(common, args, &mut from, report)?.text(args.format).into_bytes();
    Ok(args.output.write(text, report))
}

/// Reads everything once.
fn read(
    common: &Common,
    args: &MetricsArgs,
    from: &mut Sources,
    report: &mut Report,
) -> serde_json::Result<Exposition> {
    let start = Instant::now();
    let asked = Asked::new(&args.named.selectors);
    let mut parts = Parts::CHOOSING;
    // The driver that knows it, mlx5, asks its firmware three times. Of P_Keys it is once for each.
    (parts.effective, parts.pkeys, parts.hardware) = (args.full, args.full, true);
    let source = (&args.origin.from, args.origin.preference(common), parts);
    let mut all = Exposition::default();
    all.add(&BUILD, &[("version", env!("CARGO_PKG_VERSION"))], 1);
    from.forget(start);
    let Sources { host, counters, reader, .. } = from;
    look_to_choose(host, source, &asked, report, |seen, report| {
        all.turn_to(seen.name.as_deref());
        missing(seen, &asked, report);
        add_choices(&mut all, seen, &asked, report);
        let records = seen.inventory.devices.iter();
        for record in records.filter(|record| asked.has_device(&record.device.name)) {
            add_device(&mut all, record);
            if args.node_exporter {
                node_exporter::add_device(&mut all, record);
            }
            report.turn_to(seen.name.as_deref());
            let is_asked = |port: &&PortRecord| asked.has_port(&record.device.name, port.number);
            for port in record.ports.iter().filter(is_asked) {
                add_port(&mut all, seen, record, port);
                let effective = port.effective.as_ref().and_then(|own| own.as_ref().err());
                let pkeys = port.pkeys.as_ref().and_then(|own| own.as_ref().err());
                let netdev = port.netdev.as_ref().err();
                let unread = [effective, pkeys, port.guid.as_ref().err(), netdev];
                for problem in unread.into_iter().flatten() {
                    report.problem(&record.device.name, problem.clone());
                }
                if args.node_exporter {
                    let number = port.number.to_string();
                    let place = [("device", record.device.name.as_str()), ("port", &*number)];
                    node_exporter::add_port(&mut all, &place, port);
                }
            }
        }
        add_findings(&mut all, seen, &asked);
        if seen.name.is_none() {
            // Whatever the source of answers is, netlink has counters and objects in use.
            let failure = seen.inventory.netlink_failure();
            let failure = failure.filter(|_| !seen.inventory.devices.is_empty());
            if let Some(problem) = failure {
                report.host_problem(problem.clone());
            }
            let counters = read_counters(counters, reader, seen, &asked);
            tell_hidden(&counters, report);
            add_counters(&mut all, &counters, args.node_exporter, report);
        }
        Ok(())
    })?;
    for problem in report.problems() {
        let (host, device) = problem.place();
        all.turn_to(host);
        all.count(&PROBLEMS, &[("device", device.unwrap_or_default())]);
    }
    all.turn_to(None);
    if args.origin.from.from.is_empty() {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        all.add(&DURATION, &[], start.elapsed().as_secs_f64());
        all.add(&TIMESTAMP, &[], now.as_secs());
    }
    Ok(all)
}

/// Which GID is right for each port, and which programs take.
fn add_choices(all: &mut Exposition, seen: &Seen, asked: &Asked<'_>, report: &mut Report) {
    let chosen = choose(seen, asked, &Wish::default(), report);
    let taken = take(&seen.inventory, &chosen, None);
    for (own, taken) in chosen.iter().zip(&taken) {
        let (device, number) = (own.port.device, own.port.number.to_string());
        if !asked.has_port(device, own.port.number) {
            continue;
        }
        let port = [("device", device), ("port", &*number)];
        let recommended = &own.decision.outcome;
        let indices = [
            ("recommended", recommended.index()),
            ("nccl", taken.nccl.known_index()),
            ("ucx", taken.ucx.known_index()),
        ];
        for (program, index) in indices {
            if let Some(index) = index {
                all.add(&GID_INDEX, &[port[0], port[1], ("program", program)], index);
            }
        }
        let is_sure = own.decision.is_sure(&own.port);
        if let Some(differs) = taken.known_to_differ().filter(|_| is_sure) {
            all.add(&DIFFERS, &port, u8::from(differs));
        }
        let row = recommended.index().and_then(|index| own.record.row(own.port.number, index));
        if let Some(row) = row {
            let entry = &row.record.entry;
            let netdev = row.netdev.as_ref().map_or("", |netdev| &netdev.name);
            let (gid, kind) = (entry.gid().to_string(), entry.gid_type().to_string());
            let own = [("gid", &*gid), ("type", &*kind), ("netdev", netdev)];
            all.add(&RECOMMENDED, &[&port[..], &own[..]].concat(), 1);
        }
    }
}

fn add_device(all: &mut Exposition, record: &DeviceRecord) {
    let device = &record.device;
    let hardware = record.hardware.as_ref();
    let driver = device.driver.map(|driver| driver.to_string());
    let pci = hardware.and_then(|own| own.pci.as_ref());
    let address = pci.map(|own| own.address.to_string());
    all.add(
        &DEVICE,
        &[
            ("device", &*device.name),
            ("node_type", &device.node_type.to_string()),
            ("protocol", device.protocol.as_deref().unwrap_or_default()),
            ("driver", driver.as_deref().unwrap_or_default()),
            ("fw_version", device.fw_version.as_deref().unwrap_or_default()),
            ("node_guid", &device.node_guid.to_string()),
            ("address", address.as_deref().unwrap_or_default()),
        ],
        1,
    );
    if let Some(node) = hardware.and_then(|own| own.numa_node) {
        all.add(&NUMA_NODE, &[("device", &*device.name)], node);
    }
}

fn add_port(all: &mut Exposition, seen: &Seen, record: &DeviceRecord, port: &PortRecord) {
    let (device, number) = (record.device.name.as_str(), port.number.to_string());
    let place = [("device", device), ("port", &*number)];
    if let Some(attributes) = port.known() {
        let guid = port.guid.as_ref().ok().copied().flatten().map(|guid| guid.to_string());
        let info = [
            ("link_layer", &*attributes.link_layer.to_string()),
            ("port_guid", guid.as_deref().unwrap_or_default()),
            ("netdev", port.netdev().map_or("", |netdev| &netdev.name)),
        ];
        all.add(&PORT_INFO, &[&place[..], &info[..]].concat(), 1);
        let known = (0..=PortState::ACTIVE_DEFER.0).map(PortState).filter(|it| it.name().is_some());
        add_states(all, &STATE, &place, known, attributes.state);
        let known = (0..=PhysState::TEST.0).map(PhysState).filter(|it| it.name().is_some());
        add_states(all, &PHYS_STATE, &place, known, attributes.phys_state);
        let effective = port.effective.as_ref().and_then(|rate| rate.as_ref().ok());
        for (metric, value) in [
            (&RATE, attributes.rate().map(bytes)),
            (&EFFECTIVE, effective.copied().map(bytes)),
            (&WIDTH, attributes.active_width.and_then(Width::lanes).map(Into::into)),
            (&MTU, attributes.active_mtu.and_then(Mtu::bytes).map(Into::into)),
            (&MAX_MTU, attributes.max_mtu.and_then(Mtu::bytes).map(Into::into)),
            (&GID_TABLE, Some(attributes.gid_tbl_len.into())),
        ] {
            if let Some(value) = value {
                all.add(metric, &place, value);
            }
        }
    }
    if let Some(Ok(_)) = &record.gids {
        let mut elsewhere = 0;
        for row in record.rows(port.number) {
            let kind = if row.record.type_is_unread {
                "unread".to_owned()
            } else {
                row.record.entry.gid_type().to_string()
            };
            all.count(&GIDS, &[place[0], place[1], ("type", &kind)]);
            elsewhere += usize::from(row.netdev_is_elsewhere);
        }
        // Where interfaces are not known, none is known to be elsewhere.
        let own = &seen.inventory;
        if own.has_netlink && own.interfaces.is_some() && port.netdev.is_ok() {
            all.add(&GIDS_ELSEWHERE, &place, elsewhere);
        }
    }
}

/// A sample for each state that there is, and for one that is not known.
fn add_states<S: PartialEq + Display + Copy>(
    all: &mut Exposition,
    metric: &Metric,
    place: &[(&str, &str); 2],
    known: impl Iterator<Item = S>,
    now: S,
) {
    let mut add = |state: S| {
        let text = state.to_string();
        all.add(metric, &[place[0], place[1], ("state", &text)], u8::from(state == now));
    };
    known.for_each(&mut add);
    // If it is known, it has its sample, and this is none.
    add(now);
}

fn add_findings(all: &mut Exposition, seen: &Seen, asked: &Asked<'_>) {
    let is_asked_port = |device: &str, port| asked.has_port(device, port);
    let found = check_for(&seen.inventory, Expected::default(), &is_asked_port);
    for finding in found.into_iter().filter(|finding| is_asked(finding, asked)) {
        let port = finding.port.map(|port| port.to_string()).unwrap_or_default();
        let labels = [
            ("severity", &*finding.severity.to_string()),
            ("name", finding.name),
            ("device", finding.device.as_deref().unwrap_or_default()),
            ("port", &port),
        ];
        all.count(&FINDINGS, &labels);
    }
}

/// The counters of this host, or of a tree.
fn read_counters(
    host: &mut Host,
    reader: &mut CounterReader,
    seen: &Seen,
    asked: &Asked<'_>,
) -> Counters {
    let records = seen.inventory.devices.iter().map(|record| &record.device);
    let devices: Vec<Device> = records.filter(|own| asked.has_device(&own.name)).cloned().collect();
    let is_port = |device: &Device, port: u32| asked.has_port(&device.name, port);
    reader.read(host, &devices, &is_port)
}

fn add_counters(
    all: &mut Exposition,
    counters: &Counters,
    for_node_exporter: bool,
    report: &mut Report,
) {
    for problem in &counters.problems {
        report.host_problem(problem);
    }
    for own in &counters.devices {
        let device = own.device.as_str();
        for counter in &own.counters {
            add_counter(all, counter, device, None, report);
        }
        for port in &own.ports {
            add_port_counters(all, own, port, report);
            let number = port.number.to_string();
            let place = [("device", device), ("port", &*number)];
            for counter in port.counters.iter().filter(|_| for_node_exporter) {
                node_exporter::add_counter(all, &place, counter);
            }
        }
        for used in own.resources.iter().flatten() {
            all.add(&RESOURCES, &[("device", device), ("kind", &used.kind)], used.used);
        }
        for problem in &own.problems {
            report.problem(device, problem);
        }
    }
}

fn add_port_counters(
    all: &mut Exposition,
    own: &DeviceCounters,
    port: &PortCounters,
    report: &mut Report,
) {
    let (device, number) = (own.device.as_str(), port.number.to_string());
    let place = [("device", device), ("port", &*number)];
    for counter in &port.counters {
        add_counter(all, counter, device, Some(&number), report);
        let is_full = matches!(counter.reading, Reading::Saturated(_));
        if is_full || counter.end == Some(End::Saturates) {
            let labels = [place[0], place[1], ("counter", &*counter.name)];
            all.add(&SATURATED, &labels, u8::from(is_full));
        }
    }
    for optional in &port.optional {
        let labels = [place[0], place[1], ("counter", &*optional.name)];
        all.add(&ENABLED, &labels, u8::from(optional.is_on));
    }
    if let Some(commands) = port.cost.firmware_commands {
        all.add(&COMMANDS, &place, commands);
    }
    for problem in &port.problems {
        report.problem(device, problem);
    }
}

fn add_counter(
    all: &mut Exposition,
    counter: &Counter,
    device: &str,
    port: Option<&str>,
    report: &mut Report,
) {
    // One that has stopped says nothing by its number.
    let Some((value, _)) = counter.amount() else { return };
    let (family, unit) = names::family(counter, port.is_some());
    let kind = if counter.is_gauge { Kind::Gauge } else { Kind::Counter };
    let labels = [("device", device), ("port", port.unwrap_or_default())];
    if !all.add_to(&family, (kind, unit), || names::help(counter), &labels, value.to_string()) {
        let place = port.map(|port| format!(":{port}")).unwrap_or_default();
        let name = &counter.name;
        let text = format!(
            "{device}{place}: the counter {name:?} is left out: another has its name as a metric, {family}"
        );
        report.problem(device, Problem { text, errno: EEXIST });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use uverbs::host::Listing;

    /// What is refused for a while is not missing for ever.
    #[test]
    fn what_was_refused_is_asked_again() {
        let (folder, mut counters) = testing::host();
        let file = folder.path().join("class/infiniband/rxe0/ports/1/hw_counters/sent_pkts");
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        // The kernel refuses to read the speed of the loopback interface (EINVAL).
        std::os::unix::fs::symlink("/sys/class/net/lo/speed", &file).unwrap();
        let Listing { devices, .. } = counters.list().unwrap();
        let since = Instant::now();
        let mut from = Sources { host: Host::new(), counters, reader: CounterReader::new(), since };
        let mut counts = |now| {
            from.forget(now);
            let read = from.reader.read(&mut from.counters, &devices, &|_, _| true);
            let port = &read.devices[0].ports[0];
            (port.counters.len(), port.problems.len())
        };
        assert_eq!(counts(since), (0, 1));
        std::fs::remove_file(&file).unwrap();
        std::fs::write(&file, "5\n").unwrap();
        assert_eq!(counts(since + PAUSE / 2), (0, 1), "it is a line in the kernel's log");
        assert_eq!(counts(since + PAUSE), (1, 0));
    }
}
