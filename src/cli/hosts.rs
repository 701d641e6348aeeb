//! The hosts that are looked at: this one, the host of a sysfs tree, or those of snapshots.

use core::fmt::Display;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use uverbs::choose::nccl::ROOM;
use uverbs::choose::room::unopened;
use uverbs::choose::{self, Outcome, Port, Reason, Surroundings, Wish, recommend};
use uverbs::device::{Absence, Device};
use uverbs::host::{Host, Preference};
use uverbs::inventory::{DeviceRecord, Inventory, Parts, Problem, SettingsReading, Unread, Wanted};
use uverbs::watch::format_time;

use crate::args::{Common, FromArg};
use crate::at::At;
use crate::files::{self, Found};
use crate::report::{ENODATA, Report, Stage};
use crate::selection::{Asked, Missing, Selected, select};
use crate::text::printable;

/// A host to look at.
#[derive(Debug)]
pub(crate) struct Seen {
    /// Its name, if it is a snapshot's.
    pub(crate) name: Option<String>,
    pub(crate) inventory: Inventory,
    /// Whether its recording could not be read as a whole: it may have been otherwise at the same time, too.
    pub(crate) is_partly_read: bool,
}

/// Says of a snapshot that its host has the name of another one. It may be the same: commands that count hosts count it
/// again.
pub(crate) fn tell_again(host: &Seen, report: &mut Report) {
    let Some((name, host)) = host.name.as_deref().zip(host.inventory.name()) else { return };
    if name != host {
        report.note(format!(
            "{name}: another snapshot with the host name {host}, counted as another host"
        ));
    }
}

impl Seen {
    /// What is here and now.
    pub(crate) fn here(inventory: Inventory) -> Self {
        Self { name: None, inventory, is_partly_read: false }
    }

    /// Whether something could not be read, so that no sentence about all ports covers it.
    pub(crate) fn has_unread(&self) -> bool {
        self.is_partly_read || !self.inventory.unread().is_empty()
    }

    /// Whether it is a sysfs tree, or a snapshot of one: the names of interfaces there are all that is known of them.
    pub(crate) fn is_tree(&self, common: &Common) -> bool {
        common.sysfs.is_some() || self.name.is_some() && self.inventory.host.is_none()
    }

    /// The devices that are asked for. Reports what could not be listed, why there may be nothing, and what
    /// is named and not there.
    pub(crate) fn select<'s>(
        &'s self,
        asked: &'s Asked<'_>,
        report: &mut Report,
    ) -> Vec<Selected<'s>> {
        let Self { name, inventory, .. } = self;
        report.turn_to(name.as_deref());
        for (device, problem) in &inventory.unlisted {
            if asked.has_device(device) {
                report.problem(device, problem.clone());
            }
        }
        tell_host(inventory, report);
        let selected = select(inventory, asked, report);
        // A snapshot's devices were read when it was written.
        for own in selected.iter().filter(|_| name.is_none()) {
            // Without a port there is none to report that it could not be opened.
            if let (Some(Err(problem)), true) = (&own.record.access, own.device.ports().is_empty())
            {
                report.problem(&own.device.name, problem.clone());
            }
            if let Some(problem) = own.record.fallback() {
                report.note(format!("{} (so sysfs was read)", problem.text));
            }
        }
        selected
    }
}

/// Says why RDMA netlink did not answer, unless that is a problem, which is said as such.
pub(crate) fn tell_netlink(inventory: &Inventory, report: &mut Report) {
    match &inventory.without_netlink {
        Some(problem) if inventory.problems.contains(problem) => {}
        Some(problem) if inventory.devices.is_empty() && inventory.others.is_empty() => {
            report.note(&problem.text);
        }
        Some(problem) => report.note(format!(
            "{}; sysfs was read: protocols and interfaces are not known",
            problem.text
        )),
        // As before Linux 4.18. What failed is a problem.
        None if !inventory.has_netlink
            && inventory.problems.is_empty()
            && inventory.devices.iter().any(|own| own.device.index.is_some()) =>
        {
            report.note(
                "it is not known of each port whether its interface is here: the kernel is old, or \
                 does not say its release",
            );
        }
        None => {}
    }
}

/// Reports what is wrong with a host as a whole, or why it has no device.
fn tell_host(inventory: &Inventory, report: &mut Report) {
    tell_netlink(inventory, report);
    for problem in &inventory.problems {
        report.host_problem(problem.clone());
    }
    if inventory.is_empty() {
        explain_absence(&inventory.absences, inventory.shares_namespaces, report);
    }
}

fn explain_absence(reasons: &[Absence], shares_namespaces: Option<bool>, report: &mut Report) {
    let is_elsewhere = |own: &&Absence| matches!(own, Absence::OtherNamespace { .. });
    let has_others = reasons.iter().any(|own| is_elsewhere(&own));
    for reason in reasons.iter().filter(is_elsewhere) {
        report.note(format!("no RDMA device: {reason}"));
    }
    if shares_namespaces == Some(false) {
        report.note(
            "no RDMA device: each device belongs to one network namespace (rdma system: netns \
             exclusive), and there may be devices in others: run there, or move one here (rdma dev \
             set DEV netns NAME)",
        );
    }
    for reason in reasons {
        match reason {
            Absence::OtherNamespace { .. } => {}
            // The drivers are loaded, then.
            Absence::NoDevice if has_others => {}
            other => report.note(format!("no RDMA device: {other}")),
        }
    }
    if reasons.is_empty() && shares_namespaces != Some(false) {
        report.note("no RDMA device");
    }
}

/// This host, or that of another's sysfs tree.
pub(crate) fn host(common: &Common) -> Host {
    // Where the nodes are on any host. Those of another host are named, never opened.
    const NODES: &str = "/dev/infiniband";
    let host = |sysfs: &Path| Host::rooted(sysfs, NODES);
    common.sysfs.as_deref().map_or_else(Host::new, host)
}

/// Reads this host, or another's sysfs tree.
pub(crate) fn live(common: &Common, wanted: &Wanted<'_>) -> Inventory {
    host(common).inventory(wanted)
}

/// Reads what is wanted, of this host, of another's sysfs tree, or of each snapshot, and shows each host
/// in turn. Nothing else differs between the three. Only one host is in memory.
pub(crate) fn each(
    common: &Common,
    from: &FromArg,
    wanted: &Wanted<'_>,
    report: &mut Report,
    see: impl FnMut(&Seen, &mut Report) -> serde_json::Result<()>,
) -> serde_json::Result<()> {
    each_of(|| live(common, wanted), from, wanted, report, see)
}

fn each_of(
    live: impl FnOnce() -> Inventory,
    from: &FromArg,
    wanted: &Wanted<'_>,
    report: &mut Report,
    mut see: impl FnMut(&Seen, &mut Report) -> serde_json::Result<()>,
) -> serde_json::Result<()> {
    let mut names = Names::default();
    if from.from.is_empty() {
        see(&Seen::here(live()), report)?;
    }
    files::each(from, |path, line, read| match read {
        Ok(Found { mut inventory, time, fault }) => {
            mark_others(&mut inventory);
            wanted.narrow(&mut inventory);
            let name = names.of_host(inventory.name(), path, line);
            report.enter(Stage::Files);
            if let Some(time) = time {
                report.note(format!("{name}: as it was at {}", format_time(time, 3)));
            }
            // What comes last is known all the same.
            let is_partly_read = fault.is_some() && from.at != Some(At::End);
            if let Some(fault) = fault {
                report.turn_to(Some(&name));
                report.host_problem(fault);
                report.turn_to(None);
            }
            report.enter(Stage::default());
            let seen = see(&Seen { name: Some(name), inventory, is_partly_read }, report);
            report.turn_to(None);
            seen
        }
        Err(problem) => {
            report.bad_file(&at_line(path, line), problem);
            Ok(())
        }
    })?;
    report.end_hosts();
    Ok(())
}

/// What a document lists and has not read cannot be read now. It stays among the others.
fn mark_others(inventory: &mut Inventory) {
    let Inventory { devices, others, unlisted, .. } = inventory;
    let read: BTreeSet<&str> = devices.iter().map(|own| own.device.name.as_str()).collect();
    for Device { name, .. } in others.iter().filter(|own| !read.contains(own.name.as_str())) {
        let text = format!("{name}: was not read when the snapshot was written");
        unlisted.push((name.clone(), Problem { text, errno: ENODATA }));
    }
}

/// The names of hosts. No two are the same.
#[derive(Debug, Default)]
struct Names {
    all: BTreeSet<String>,
    /// How often a file's name was needed.
    again: BTreeMap<String, u32>,
}

impl Names {
    /// The name of a host whose document begins at a line of a file. Hosts with one name differ by their
    /// files.
    fn of_host(&mut self, host: Option<&str>, path: &Path, line: u64) -> String {
        // A file without a host's name is shown as a file: another host may have the name without the ending.
        let of_file = || at_line(path, line);
        let mut name = host.map_or_else(of_file, str::to_owned);
        // They are shown so, and must differ there.
        let mut insert = |name: &str| self.all.insert(printable(name).into_owned());
        if !insert(&name) {
            let file = at_line(path, line);
            name.clone_from(&file);
            while !insert(&name) {
                let count = self.again.entry(file.clone()).or_insert(1);
                *count += 1;
                name = format!("{file} ({count})");
            }
        }
        name
    }
}

/// A file, with the line if that is not the first. There is a slash in it, and none in the name of a host; the
/// standard input is `-`.
fn at_line(path: &Path, line: u64) -> String {
    let mut file = path.display().to_string();
    if file != "-" && !file.contains('/') {
        file.insert_str(0, "./");
    }
    if line > 1 { format!("{file}:{line}") } else { file }
}

/// What the selectors name and could not be read: the host, devices and ports, by name. What is
/// said of all does not cover it.
pub(crate) fn unread(host: &Seen, asked: &Asked<'_>) -> Vec<String> {
    let Seen { name, inventory, is_partly_read } = host;
    let own = inventory.unread().into_iter().filter(|own| is_asked(own, asked));
    let own = own.map(|own| match (name, own) {
        (Some(host), Unread::Host | Unread::Listing) => host.clone(),
        (Some(host), own) => format!("{host}: {own}"),
        (None, own) => own.to_string(),
    });
    // Where all are asked for, the host is not read as a whole.
    let unlisted = inventory.unlisted.iter().map(|(device, _)| device);
    let named = unlisted.filter(|device| !asked.is_all() && asked.has_device(device));
    let named = named.map(|device| match name {
        Some(host) => format!("{host}: {device}"),
        None => device.clone(),
    });
    let mut all: Vec<String> = own.chain(named).collect();
    let whole = name.iter().find(|name| *is_partly_read && !all.contains(name));
    all.extend(whole.cloned());
    all
}

/// Whether something that could not be read matters to what is asked for. A device that could not be
/// listed is not among those that are named and are there.
fn is_asked(unread: &Unread<'_>, asked: &Asked<'_>) -> bool {
    match *unread {
        Unread::Host => true,
        Unread::Listing => asked.is_all(),
        Unread::Device(device) => asked.has_device(device),
        Unread::Port(device, port) => asked.has_port(device, port),
    }
}

/// How many names are shown of many.
pub(crate) const SHOWN: usize = 3;

/// A few names, and how many more there are.
pub(crate) fn some(names: &[String]) -> String {
    some_of(names, names.len())
}

/// The same of so many names, of which the first are known.
pub(crate) fn some_of(first: &[String], count: usize) -> String {
    let shown = first.get(..SHOWN).unwrap_or(first).join(", ");
    if count > SHOWN { format!("{shown} and {} more", count - SHOWN) } else { shown }
}

/// Reads what the selectors name, and shows each host in turn.
pub(crate) fn look(
    common: &Common,
    (from, preference, parts): (&FromArg, Preference, Parts),
    asked: &Asked<'_>,
    report: &mut Report,
    see: impl FnMut(&Seen, &mut Report) -> serde_json::Result<()>,
) -> serde_json::Result<()> {
    let is_named = |device: &Device| asked.has_device(&device.name);
    let wanted = Wanted::new(parts).preference(preference).devices(&is_named);
    each(common, from, &wanted, report, see)
}

/// The same for choosing, whatever else is read: all devices, where that costs nothing, where there are so many ports
/// that others may take the room of those that are named, or where it matters whether others can be opened.
pub(crate) fn look_to_choose(
    host: &mut Host,
    (from, preference, parts): (&FromArg, Preference, Parts),
    asked: &Asked<'_>,
    report: &mut Report,
    see: impl FnMut(&Seen, &mut Report) -> serde_json::Result<()>,
) -> serde_json::Result<()> {
    let count = Cell::new(0);
    let is_named = |device: &Device| {
        count.set(device.ports().count().saturating_add(count.get()));
        asked.has_device(&device.name) || !from.from.is_empty()
    };
    let wanted = Wanted::new(parts).preference(preference);
    let named = wanted.devices(&is_named);
    let live = || {
        let inventory = host.inventory(&named);
        let may_depend = count.get() > ROOM || !unopened(&inventory).is_empty();
        if may_depend && inventory.is_partial() {
            return host.inventory(&wanted);
        }
        inventory
    };
    each_of(live, from, &named, report, see)
}

/// A port with the recommendation for it.
#[derive(Clone, Debug)]
pub(crate) struct Chosen<'s> {
    pub(crate) host: Option<&'s str>,
    pub(crate) record: &'s DeviceRecord,
    pub(crate) port: Port<'s>,
    pub(crate) decision: choose::Decision,
}

impl Chosen<'_> {
    /// Its name, with why it is not used.
    pub(crate) fn why_unused(&self) -> String {
        match &self.decision.outcome {
            ignored @ Outcome::Ignored(_) => format!("{}: {ignored}", self.name()),
            other => format!("{}: no usable GID: {other}", self.name()),
        }
    }

    /// `mlx5_0:1`, after the host's name if there is one.
    pub(crate) fn name(&self) -> String {
        let host = self.host.map(|host| format!("{host}: ")).unwrap_or_default();
        format!("{host}{}:{}", self.port.device, self.port.number)
    }
}

/// Chooses for each port of a host, also those that are not asked for. Reports what is asked for and could
/// not be read.
pub(crate) fn choose<'s>(
    host: &'s Seen,
    asked: &Asked<'_>,
    wish: &Wish,
    report: &mut Report,
) -> Vec<Chosen<'s>> {
    let Seen { name, inventory, .. } = host;
    report.enter(Stage::Unread);
    report.turn_to(name.as_deref());
    tell_problems(inventory, asked, report);
    let chosen = choose_on(name.as_deref(), inventory, |_| true, wish);
    // In a sysfs tree the names of interfaces are all that is known of them, and are compared.
    let is_tree = inventory.host.is_none();
    let is_any = chosen.iter().any(|own| own.decision.outcome.index().is_some());
    if let (Some(netdev), false) = (&wish.netdev, is_tree || is_any) {
        let mut own = chosen.iter().filter(|own| asked.has_port(own.port.device, own.port.number));
        let may_have_rows = own.any(|own| {
            own.decision.rows.iter().any(|(_, reason)| *reason == Reason::InterfaceUnread)
        });
        if !tell_absent(inventory, netdev, report) && may_have_rows && !inventory.has_netlink {
            report.nothing(format!(
                "--netdev {netdev}: it is not known which GIDs are of this interface"
            ));
        }
    }
    report.turn_to(None);
    chosen
}

/// Says that no interface has this name, if it is known which there are. Whether it did.
pub(crate) fn tell_absent(inventory: &Inventory, netdev: &str, report: &mut Report) -> bool {
    let all = inventory.interfaces.as_ref();
    let is_absent = all.is_some_and(|all| !all.iter().any(|own| own.name == netdev));
    if is_absent {
        report.nothing(format!(
            "--netdev {netdev}: no interface of this network namespace is shown by that name (an \
             alternative name is not looked up)"
        ));
    }
    is_absent
}

/// Chooses for each port of some devices.
pub(crate) fn choose_on<'s>(
    host: Option<&'s str>,
    inventory: &'s Inventory,
    is_wanted: impl Fn(&str) -> bool,
    wish: &Wish,
) -> Vec<Chosen<'s>> {
    let here = Surroundings::of(inventory);
    let mut chosen = Vec::new();
    for record in inventory.devices.iter().filter(|own| is_wanted(&own.device.name)) {
        for port in &record.ports {
            let Some(port) = choose::port(&here, record, port) else { continue };
            let decision = recommend(&port, wish);
            chosen.push(Chosen { host, record, port, decision });
        }
    }
    chosen
}

/// Reports selectors that name nothing on a host, and devices that are named and could not be listed. Whether
/// there are any, and those that name nothing.
pub(crate) fn missing(host: &Seen, asked: &Asked<'_>, report: &mut Report) -> (bool, Missing) {
    let Seen { name, inventory, .. } = host;
    let before = report.problems().len();
    report.enter(Stage::Names);
    report.turn_to(name.as_deref());
    for (device, problem) in &inventory.unlisted {
        if !asked.is_all() && asked.has_device(device) {
            report.problem(device, problem.clone());
        }
    }
    select(inventory, asked, report);
    report.turn_to(None);
    (report.problems().len() > before, asked.missing(inventory))
}

/// Reports what an inventory has no answer to, and was asked for; of the rest, that there is none.
pub(crate) fn tell_problems(inventory: &Inventory, asked: &Asked<'_>, report: &mut Report) {
    for (device, problem) in &inventory.unlisted {
        if asked.has_device(device) {
            report.problem(device, problem.clone());
        } else {
            report.note(not_asked(device, problem));
        }
    }
    tell_host(inventory, report);
    for record in &inventory.devices {
        let name = &record.device.name;
        let ports = record.ports.iter().filter_map(|port| {
            let problem = port.unread()?;
            Some((Unread::Port(name, port.number), problem))
        });
        let table = record.problem().map(|problem| (Unread::Device(name), problem));
        for (unread, problem) in table.into_iter().chain(ports) {
            if is_asked(&unread, asked) {
                report.problem(name, problem.clone());
            } else {
                report.note(not_asked(unread, problem));
            }
        }
        if let Some(problem) = record.fallback() {
            report.note(format!("{} (so sysfs was read)", problem.text));
        }
    }
}

/// What to say of something that could not be read and is not asked for.
fn not_asked(what: impl Display, problem: &Problem) -> String {
    format!("{what}, which is not asked for: {}", problem.text)
}

/// What a variable is set to on a host, as these releases of NCCL see it.
pub(crate) fn variable<'i>(
    inventory: &'i Inventory,
    reading: SettingsReading,
) -> impl Fn(&str) -> Option<&'i str> {
    move |name| inventory.setting_of(name, reading).map(|setting| setting.value.as_str())
}

/// Whether a port is used at all.
pub(crate) fn is_used(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Taken(_) | Outcome::ByLid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::Status;
    use crate::testing::host;

    fn seen(preference: Preference, report: &mut Report) -> (Seen, usize) {
        let (_folder, mut host) = host();
        let inventory = host.inventory(&Wanted::new(Parts::GIDS).preference(preference));
        let seen = Seen::here(inventory);
        let rows = seen
            .select(&Asked::default(), report)
            .iter()
            .map(|own| own.record.all_rows().len())
            .sum();
        (seen, rows)
    }

    /// Names that look alike where they are shown are of two hosts nevertheless.
    #[test]
    fn no_two_hosts_are_shown_with_one_name() {
        let mut names = Names::default();
        let mut of = |host: Option<&str>, path: &str| names.of_host(host, Path::new(path), 1);
        let all =
            [of(None, "a\n.json"), of(None, "a\\n.json"), of(Some("x"), "b"), of(Some("x"), "b")];
        let shown: BTreeSet<_> = all.iter().map(|own| printable(own).into_owned()).collect();
        assert_eq!(shown.len(), 4, "{all:?}");
    }

    #[test]
    fn without_an_ioctl_sysfs_answers_and_the_reason_is_noted_once() {
        let mut report = Report::default();
        let (_, rows) = seen(Preference::Auto, &mut report);
        assert_eq!(rows, 1);
        assert_eq!(report.status(), Status::Fine);
        assert_eq!(report.notes().count(), 1);
        let note = report.notes().next().unwrap();
        assert!(note.starts_with("rxe0: open ") && note.ends_with("(so sysfs was read)"), "{note}");
    }

    #[test]
    fn where_only_the_ioctl_will_do_its_absence_is_a_problem() {
        let mut report = Report::default();
        let (seen, rows) = seen(Preference::Ioctl, &mut report);
        assert_eq!((rows, report.notes().count()), (0, 0));
        assert_eq!(seen.inventory.devices[0].problem().map(|problem| problem.errno), Some(2));
    }
}
