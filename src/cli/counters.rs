//! `uverbs counters`: what ports and devices count, and how fast.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use clap::Args;
use serde::Serialize;
use uverbs::counter::{Counter, CounterSource, End, Group, OwnedResources, Owner, Reading, Unit};
use uverbs::device::Device;
use uverbs::host::{CounterReader, Counters};
use uverbs::inventory::{Parts, Problem, Wanted};

use crate::args::{Common, NamedPorts, selector_here};
use crate::hosts::{Seen, host, some};
use crate::output::{List, Output};
use crate::report::{ENODATA, Report, Unanswered};
use crate::selection::Asked;
use crate::table::{Mark, Table};
use crate::values::{NONE, Pairs, Text, cell};

#[derive(Debug, Args)]
#[command(mut_arg("selectors", |own| own.value_parser(selector_here)))]
pub(crate) struct CountersArgs {
    #[command(flatten)]
    pub(crate) named: NamedPorts,
    /// Show counters that are 0 as well
    #[arg(short, long)]
    pub(crate) all: bool,
    /// Read twice, so many seconds apart, and show how much was counted in a second
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) rate: Option<Duration>,
    /// Show also which processes have objects of a device
    #[arg(long, conflicts_with = "rate")]
    pub(crate) processes: bool,
}

/// Reads a number of seconds, a day at most.
fn seconds(text: &str) -> Result<Duration, String> {
    // As milliseconds: all digits, of which up to three are after a point.
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = format!("{whole}{part:0<3}");
    let is_number = part.len() <= 3 && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number =
        digits.parse().ok().filter(|number| is_number && (1..=86_400_000).contains(number));
    let number = number.ok_or("expected a number of seconds, from 0.001 to 86400")?;
    Ok(Duration::from_millis(number))
}

/// What is said of counters that were read only the first time.
const GONE: &str = "gone, or could not be read, the second time";

/// A counter in the table and in JSON.
#[derive(Debug, Serialize)]
struct Row<'a> {
    device: &'a str,
    port: Option<u32>,
    name: &'a str,
    group: Text<Group>,
    /// What was counted, in `unit`; null if the counter has stopped.
    value: Option<u128>,
    #[serde(skip)]
    least: u128,
    unit: Option<Text<Unit>>,
    /// The kernel's own number.
    raw: u64,
    is_saturated: bool,
    bits: Option<u8>,
    end: Option<Text<End>>,
    is_gauge: bool,
    is_error: bool,
    source: Text<CounterSource>,
    /// How much is counted in a second.
    #[serde(skip_serializing_if = "IfAsked::is_unasked")]
    per_second: IfAsked<f64>,
}

/// What only an option asks for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
enum IfAsked<T> {
    Unasked,
    Unknown(()),
    Known(T),
}

impl<T> IfAsked<T> {
    fn is_unasked(&self) -> bool {
        matches!(self, Self::Unasked)
    }
}

impl<'a> Row<'a> {
    fn new(device: &'a str, port: Option<u32>, counter: &'a Counter) -> Self {
        let (least, unit) = counter.at_least();
        Self {
            device,
            port,
            name: &counter.name,
            group: Text(counter.group),
            value: counter.amount().map(|(value, _)| value),
            least,
            unit: unit.map(Text),
            raw: counter.raw(),
            is_saturated: matches!(counter.reading, Reading::Saturated(_)),
            bits: counter.bits,
            end: counter.end.map(Text),
            is_gauge: counter.is_gauge,
            is_error: counter.is_error,
            source: Text(counter.source),
            per_second: IfAsked::Unasked,
        }
    }

    /// Whether it counts, and it is not known how fast. Of one that has stopped that is said.
    fn has_no_rate(&self) -> bool {
        self.per_second == IfAsked::Unknown(()) && !self.is_gauge && !self.is_saturated
    }

    /// `mlx5_0:1 port_rcv_errors`.
    fn name(&self) -> String {
        let port = self.port.map(|port| format!(":{port}")).unwrap_or_default();
        format!("{}{port} {}", self.device, self.name)
    }

    /// Whether there is nothing to see.
    fn is_idle(&self) -> bool {
        match self.per_second {
            IfAsked::Unasked => self.value == Some(0),
            // Of what goes up and down there is no rate.
            IfAsked::Unknown(()) => self.is_gauge,
            IfAsked::Known(rate) => rate == 0.0,
        }
    }
}

/// Beside the counters of a port: what can be turned on, and what the reading cost.
#[derive(Debug, Serialize)]
struct PortRow<'a> {
    device: &'a str,
    port: u32,
    optional: Pairs<bool>,
    netlink_requests: u32,
    files: u32,
    firmware_commands: Option<u32>,
    /// Counters that were not asked for, as the question that gives them was refused for another.
    left_out: &'a [String],
    /// Whether sysfs does not show the device, so that what only sysfs has is missing.
    is_hidden: bool,
}

#[derive(Debug, Serialize)]
struct ResourceRow<'a> {
    device: &'a str,
    kind: &'a str,
    used: u64,
}

/// Objects of one owner.
#[derive(Debug, Serialize)]
struct OwnerRow<'a> {
    device: &'a str,
    kind: &'a str,
    count: u64,
    /// Null if it is no process, or if the kernel does not say.
    pid: Option<u32>,
    /// The part of the kernel that it is.
    kernel: Option<&'a str>,
}

impl<'a> OwnerRow<'a> {
    fn new((device, own): (&'a str, &'a OwnedResources)) -> Self {
        let (kind, count, owner) = (&own.kind, own.count, own.owner.as_ref());
        let (pid, kernel) = (owner.and_then(Owner::pid), owner.and_then(Owner::part));
        Self { device, kind, count, pid, kernel }
    }
}

/// What the document has after its counters.
#[derive(Debug, Serialize)]
struct Rest<'a> {
    ports: Vec<PortRow<'a>>,
    /// `None` if it is known of no device.
    resources: Option<Vec<ResourceRow<'a>>>,
    #[serde(skip_serializing_if = "IfAsked::is_unasked")]
    owners: IfAsked<Vec<OwnerRow<'a>>>,
    /// How long it was between two readings.
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds: Option<f64>,
    problems: &'a [Unanswered],
}

pub(crate) fn answer(
    common: &Common,
    args: &CountersArgs,
    report: &mut Report,
) -> serde_json::Result<Output> {
    let asked = Asked::new(&args.named.selectors);
    let is_device = |device: &Device| asked.has_device(&device.name);
    let is_port = |device: &Device, port: u32| asked.has_port(&device.name, port);
    let wanted = Wanted::new(Parts::LISTED).devices(&is_device);
    let (mut host, mut reader) = (host(common), CounterReader::new());
    let mut seen = Seen::here(host.inventory(&wanted));
    if !seen.inventory.devices.is_empty() {
        // Of devices that sysfs listed, netlink cannot be asked for counters and objects.
        let failure = seen.inventory.netlink_failure().cloned();
        seen.inventory.problems.extend(failure);
    }
    let selected = seen.select(&asked, report).into_iter();
    let devices: Vec<Device> = selected.map(|own| own.device.clone()).collect();
    let mut read = || (reader.read(&mut host, &devices, &is_port), Instant::now());
    let (mut now, mut then) = (read(), None);
    if let Some(interval) = args.rate {
        std::thread::sleep(interval);
        then = Some(std::mem::replace(&mut now, read()));
    }
    let (now, at) = now;
    if let Some((before, _)) = &then {
        tell(before, report);
    }
    tell(&now, report);
    let mut owners = Vec::new();
    for device in devices.iter().filter(|_| args.processes) {
        match host.resource_owners(device) {
            Ok(owned) => owners.push((device.name.as_str(), owned)),
            // That of netlink is said once.
            Err(error) if error.device().is_none() => report.host_problem(&error),
            Err(error) => report.problem(&device.name, &error),
        }
    }
    let elapsed = then.as_ref().map(|(_, before)| at.duration_since(*before).as_secs_f64());
    let mut before = then.as_ref().map(|(counters, _)| index(counters));
    let mut rows = Vec::new();
    for (key, counter) in all(&now) {
        let (device, port) = (key.device, key.port);
        let mut row = Row::new(device, port, counter);
        if let (Some(before), Some(elapsed)) = (&mut before, elapsed) {
            let grown = before.remove(&key).and_then(|before| counter.since(before));
            row.per_second = grown
                .map_or(IfAsked::Unknown(()), |grown| IfAsked::Known(per_second(grown, elapsed)));
        }
        rows.push(row);
    }
    // What is left was read only the first time.
    let gone = before.into_iter().flatten().filter(|(_, counter)| !counter.is_gauge);
    let gone: Vec<Row<'_>> =
        gone.map(|(key, counter)| Row::new(key.device, key.port, counter)).collect();
    let unknown: Vec<String> = rows.iter().filter(|row| row.has_no_rate()).map(Row::name).collect();
    let names: Vec<String> = gone.iter().map(Row::name).collect();
    for (names, why) in [
        (&unknown, "less than before, as after a reset, at their end before, or not read before"),
        (&names, GONE),
    ] {
        if !names.is_empty() {
            let names = some(names);
            report.nothing(format!(
                "it is not known how much was counted, as these were {why}: {names}"
            ));
        }
    }
    if common.json {
        // They have no rows.
        for row in &gone {
            let text = format!("{}: {GONE} (errno {ENODATA})", row.name());
            report.absent(row.device, Problem { text, errno: ENODATA });
        }
        let owners = args.processes.then_some(&*owners);
        return document(&rows, &now, owners, elapsed, report);
    }
    tell_hidden(&now, report);
    tell_left_out(&now, report);
    let mut table = tabulate(&rows, &now, args);
    if gone.is_empty() {
        note_hidden(&rows, &now, args, report);
    }
    for (device, own) in each_owned(&owners) {
        let owner = own.owner.as_ref().map_or_else(|| NONE.to_owned(), ToString::to_string);
        let (kind, count) = (own.kind.clone(), own.count.to_string());
        let cells = [device.to_owned(), NONE.to_owned(), kind, count, "objects".to_owned(), owner];
        table.row(&cells, Mark::Plain);
    }
    Ok(table.into())
}

/// Objects of a device, by owner.
type Owned<'a> = (&'a str, Vec<OwnedResources>);

fn each_owned<'a>(owners: &'a [Owned<'a>]) -> impl Iterator<Item = (&'a str, &'a OwnedResources)> {
    owners.iter().flat_map(|(device, all)| all.iter().map(move |own| (*device, own)))
}

/// Reports what could not be read.
fn tell(counters: &Counters, report: &mut Report) {
    for problem in &counters.problems {
        report.host_problem(problem);
    }
    for own in &counters.devices {
        let of_ports = own.ports.iter().flat_map(|port| &port.problems);
        for problem in own.problems.iter().chain(of_ports) {
            report.problem(&own.device, problem);
        }
    }
}

/// Says of which devices sysfs hides counters.
pub(crate) fn tell_hidden(counters: &Counters, report: &mut Report) {
    let hidden = counters.devices.iter().filter(|own| own.is_hidden && own.problems.is_empty());
    let hidden: Vec<String> = hidden.map(|own| own.device.clone()).collect();
    if !hidden.is_empty() {
        let names = some(&hidden);
        report.note(format!(
            "not read, as sysfs does not show the device: what netlink does not have of {names}"
        ));
    }
}

/// Says which counters are missing beside the one that was refused.
fn tell_left_out(counters: &Counters, report: &mut Report) {
    for own in &counters.devices {
        for port in own.ports.iter().filter(|port| !port.left_out.is_empty()) {
            let (device, number, names) = (&own.device, port.number, port.left_out.join(", "));
            report.note(format!(
                "{device}:{number}: not read, as the question that gives them was refused for another: {names}"
            ));
        }
    }
}

/// What a counter is known by in two readings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key<'a> {
    device: &'a str,
    port: Option<u32>,
    group: Group,
    name: &'a str,
}

/// All counters, in the order of the answer: of a device its own, then those of its ports.
fn all(counters: &Counters) -> impl Iterator<Item = (Key<'_>, &Counter)> {
    counters.devices.iter().flat_map(|own| {
        let of_ports = own
            .ports
            .iter()
            .flat_map(|port| port.counters.iter().map(|counter| (Some(port.number), counter)));
        own.counters.iter().map(|counter| (None, counter)).chain(of_ports).map(|(port, counter)| {
            let (group, name) = (counter.group, counter.name.as_str());
            (Key { device: &own.device, port, group, name }, counter)
        })
    })
}

fn index(counters: &Counters) -> BTreeMap<Key<'_>, &Counter> {
    all(counters).collect()
}

#[expect(clippy::cast_precision_loss, reason = "a rate is measured, and not exact")]
fn per_second(grown: u128, seconds: f64) -> f64 {
    grown as f64 / seconds
}

fn document(
    rows: &[Row<'_>],
    counters: &Counters,
    owners: Option<&[Owned<'_>]>,
    seconds: Option<f64>,
    report: &Report,
) -> serde_json::Result<Output> {
    let mut list = List::new("counters");
    rows.iter().try_for_each(|row| list.add(row))?;
    let (mut ports, mut resources) = (Vec::new(), Vec::new());
    for own in &counters.devices {
        let device = own.device.as_str();
        ports.extend(own.ports.iter().map(|port| PortRow {
            device,
            port: port.number,
            optional: Pairs(port.optional.iter().map(|it| (it.name.clone(), it.is_on)).collect()),
            netlink_requests: port.cost.netlink_requests,
            files: port.cost.files,
            firmware_commands: port.cost.firmware_commands,
            left_out: &port.left_out,
            is_hidden: own.is_hidden,
        }));
        let used = own.resources.iter().flatten();
        resources.extend(used.map(|it| ResourceRow { device, kind: &it.kind, used: it.used }));
    }
    let are_known = counters.devices.iter().any(|own| own.resources.is_some());
    // Without a device there are none, unless devices could not be listed.
    let has_none = counters.devices.is_empty() && report.problems().is_empty();
    let resources = (are_known || has_none).then_some(resources);
    let owners = match owners {
        None => IfAsked::Unasked,
        Some([]) if !has_none => IfAsked::Unknown(()),
        Some(owners) => IfAsked::Known(each_owned(owners).map(OwnerRow::new).collect()),
    };
    list.end(&Rest { ports, resources, owners, seconds, problems: report.problems() })
}

/// Whether each port that was asked has counters of the performance management agent. If one has none, its driver may
/// have none, or another network namespace hides them: then only the driver's own are seen.
fn sees_all(counters: &Counters) -> bool {
    let mut ports = counters.devices.iter().flat_map(|own| &own.ports);
    ports.all(|port| port.counters.iter().any(|own| own.group == Group::Pma))
}

fn tabulate(rows: &[Row<'_>], counters: &Counters, args: &CountersArgs) -> Table<6> {
    let is_rate = args.rate.is_some();
    let value = if is_rate { "PER_SECOND" } else { "VALUE" };
    let mut table = Table::new(["DEVICE", "PORT", "COUNTER", value, "UNIT", "NOTE"]);
    for row in rows.iter().filter(|row| args.all || !row.is_idle()) {
        let value = match (row.per_second, row.value) {
            (IfAsked::Known(rate), _) => format!("{rate:.1}"),
            (IfAsked::Unasked, Some(value)) => value.to_string(),
            (IfAsked::Unasked, None) => format!(">={}", row.least),
            (IfAsked::Unknown(()), _) => NONE.to_owned(),
        };
        let (note, mark) = if row.is_saturated {
            ("saturated", Mark::Problem)
        } else if row.has_no_rate() {
            ("not known", Mark::Attention)
        } else if row.is_error && !row.is_idle() {
            ("error", Mark::Attention)
        } else {
            (NONE, Mark::Plain)
        };
        let (device, port) = (row.device.to_owned(), cell(row.port));
        let name = row.name.to_owned();
        table.row(&[device, port, name, value, cell(row.unit), note.to_owned()], mark);
    }
    if !is_rate {
        for own in &counters.devices {
            for used in own.resources.iter().flatten().filter(|used| args.all || used.used > 0) {
                let cells =
                    [&own.device, NONE, &used.kind, &used.used.to_string(), "objects", "in use"];
                table.row(&cells.map(str::to_owned), Mark::Plain);
            }
        }
    }
    table
}

/// Says why there is no counter to see.
fn note_hidden(rows: &[Row<'_>], counters: &Counters, args: &CountersArgs, report: &mut Report) {
    if rows.is_empty() && !counters.devices.is_empty() {
        report.note(if report.problems().is_empty() {
            "no counters: the driver has none, or they cannot be seen from here"
        } else {
            "no counter could be read"
        });
    } else if !rows.is_empty() && !args.all && rows.iter().all(Row::is_idle) {
        let which = match (report.problems().is_empty(), sees_all(counters)) {
            (true, true) => "",
            (true, false) => " that can be seen from here",
            (false, _) => " that could be read",
        };
        report.note(if args.rate.is_some() {
            format!("nothing{which} was counted meanwhile; --all shows all")
        } else {
            format!("every counter{which} is 0; --all shows all")
        });
    }
}
