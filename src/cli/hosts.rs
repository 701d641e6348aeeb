//! The hosts that are looked at: this one, the host of a sysfs tree, or those of snapshots.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use uverbs::choose::nccl::ROOM;
use uverbs::choose::{self, Outcome, Port, Surroundings, Wish, recommend};
use uverbs::device::{Absence, Device};
use uverbs::host::{Host, Preference};
use uverbs::inventory::{DeviceRecord, Inventory, Parts, Reading, Unread, Wanted};

use crate::args::Common;
use crate::report::Report;
use crate::selection::{Asked, Selected, select};
use crate::snapshot;

/// A host to look at.
#[derive(Debug)]
pub(crate) struct Seen {
    /// Its name, if it is a snapshot's.
    pub(crate) name: Option<String>,
    pub(crate) inventory: Inventory,
}

impl Seen {
    /// How many ports its devices have.
    pub(crate) fn ports(&self) -> usize {
        self.inventory.devices.iter().map(|own| own.ports.len()).sum()
    }

    /// Whether they may be more than NCCL has room for.
    pub(crate) fn fills(&self) -> bool {
        self.ports() > ROOM
    }

    /// Whether it is known in which order libibverbs lists its devices.
    pub(crate) fn has_order(&self) -> bool {
        let mut devices = self.inventory.devices.iter();
        devices.all(|own| own.device.index.or(own.place).is_some())
    }

    /// The devices that are asked for. Reports what could not be listed, why there may be nothing, and what
    /// is named and not there.
    pub(crate) fn select<'s>(
        &'s self,
        asked: &'s Asked<'_>,
        report: &mut Report,
    ) -> Vec<Selected<'s>> {
        let Self { name, inventory } = self;
        report.turn_to(name.as_deref());
        if let Some(problem) = &inventory.without_netlink
            && !(inventory.devices.is_empty() && inventory.others.is_empty())
        {
            report.note(format!(
                "{}; sysfs was read: drivers, protocols and interfaces are not known",
                problem.text
            ));
        }
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

/// Reports what is wrong with a host as a whole, or why it has no device.
fn tell_host(inventory: &Inventory, report: &mut Report) {
    for problem in &inventory.problems {
        report.host_problem(problem.clone());
    }
    if inventory.is_empty() {
        explain_absence(&inventory.absences, inventory.shares_namespaces, report);
    }
}

fn explain_absence(reasons: &[Absence], shares_namespaces: Option<bool>, report: &mut Report) {
    if reasons.is_empty() {
        report.note("no RDMA device");
    }
    for reason in reasons {
        report.note(format!("no RDMA device: {reason}"));
    }
    if shares_namespaces == Some(false) {
        report.note(
            "each RDMA device belongs to one network namespace (rdma system: netns exclusive): \
             there may be devices in others",
        );
    }
}

/// Reads this host, or another's sysfs tree.
pub(crate) fn live(common: &Common, wanted: &Wanted<'_>) -> Inventory {
    // Where the nodes are on any host. Those of another host are named, never opened.
    const NODES: &str = "/dev/infiniband";
    let host = |sysfs: &PathBuf| Host::rooted(sysfs, NODES);
    common.sysfs.as_ref().map_or_else(Host::new, host).inventory(wanted)
}

/// Reads what is wanted: of this host, of another's sysfs tree, or of each snapshot. Nothing else differs
/// between the three.
pub(crate) fn read(
    common: &Common,
    from: &[PathBuf],
    wanted: &Wanted<'_>,
    report: &mut Report,
) -> Vec<Seen> {
    if from.is_empty() {
        return vec![Seen { name: None, inventory: live(common, wanted) }];
    }
    let mut room = snapshot::ROOM;
    let mut seen = Vec::new();
    let mut names = BTreeSet::new();
    for path in from {
        match snapshot::read(path, &mut room) {
            Ok(mut inventory) => {
                wanted.narrow(&mut inventory);
                let mut name = inventory.host.clone().unwrap_or_else(|| file_name(path));
                // Two hosts with one name are told apart by their files.
                while !names.insert(name.clone()) {
                    let file = path.display().to_string();
                    name = if name == file || name.starts_with(&file) { name + "+" } else { file };
                }
                seen.push(Seen { name: Some(name), inventory });
            }
            Err(problem) => {
                let mut name = file_name(path);
                if !names.insert(name.clone()) {
                    name = path.display().to_string();
                }
                report.bad_file(&name, problem);
            }
        }
    }
    seen
}

fn file_name(path: &Path) -> String {
    path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// The hosts that are looked at.
#[derive(Debug)]
pub(crate) struct Hosts {
    pub(crate) seen: Vec<Seen>,
    /// Files that could not be read.
    pub(crate) unread: Vec<String>,
}

impl Hosts {
    /// What of that which the selectors name could not be read: hosts, devices and ports, by name. What is
    /// said of all does not cover it.
    pub(crate) fn unread(&self, asked: &Asked<'_>) -> Vec<String> {
        let mut names = self.unread.clone();
        for Seen { name, inventory } in &self.seen {
            let own = inventory.unread().into_iter().filter(|own| is_asked(own, asked));
            names.extend(own.map(|own| match (name, own) {
                (Some(host), Unread::Host | Unread::Listing) => host.clone(),
                (Some(host), own) => format!("{host}: {own}"),
                (None, own) => own.to_string(),
            }));
        }
        names
    }
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

/// A few names, and how many more there are.
pub(crate) fn some(names: &[String]) -> String {
    match names {
        [first, second, third, _, ..] => {
            format!("{first}, {second}, {third} and {} more", names.len() - 3)
        }
        few => few.join(", "),
    }
}

/// Reads what the selectors name. For choosing it is all devices, where that costs nothing, or where there
/// are so many ports that others may take the room of those that are named.
pub(crate) fn look(
    common: &Common,
    from: &[PathBuf],
    preference: Preference,
    parts: Parts,
    asked: &Asked<'_>,
    report: &mut Report,
) -> Hosts {
    let count = Cell::new(0);
    let is_choosing = parts == Parts::CHOOSING;
    let is_named = |device: &Device| {
        count.set(device.ports().count().saturating_add(count.get()));
        asked.has_device(&device.name) || (is_choosing && !from.is_empty())
    };
    let wanted = Wanted::new(parts).preference(preference);
    let mut seen = read(common, from, &wanted.devices(&is_named), report);
    if is_choosing && count.get() > ROOM && seen.iter().any(|own| own.inventory.is_partial()) {
        seen = read(common, from, &wanted, report);
    }
    Hosts { seen, unread: report.bad_files().map(str::to_owned).collect() }
}

/// A port with the recommendation for it.
#[derive(Debug)]
pub(crate) struct Chosen<'s> {
    pub(crate) host: Option<&'s str>,
    /// The host's place among those that are looked at.
    pub(crate) place: usize,
    pub(crate) record: &'s DeviceRecord,
    pub(crate) port: Port<'s>,
    pub(crate) decision: choose::Decision,
}

impl Chosen<'_> {
    /// `mlx5_0:1`, behind the host's name if there is one.
    pub(crate) fn name(&self) -> String {
        let host = self.host.map(|host| format!("{host}: ")).unwrap_or_default();
        format!("{host}{}:{}", self.port.device, self.port.number)
    }
}

/// Chooses for each port, also those that are not asked for. Reports what is asked for and could not be read.
pub(crate) fn choose<'s>(
    hosts: &'s Hosts,
    asked: &Asked<'_>,
    wish: &Wish,
    report: &mut Report,
) -> Vec<Chosen<'s>> {
    let mut chosen = Vec::new();
    for (place, Seen { name, inventory }) in hosts.seen.iter().enumerate() {
        report.turn_to(name.as_deref());
        tell_problems(inventory, asked, report);
        let here = Surroundings::of(inventory);
        for record in &inventory.devices {
            for port in &record.ports {
                let Some(port) = choose::port(&here, record, port) else { continue };
                chosen.push(Chosen {
                    host: name.as_deref(),
                    place,
                    record,
                    decision: recommend(&port, wish),
                    port,
                });
            }
        }
    }
    report.turn_to(None);
    chosen
}

/// Reports selectors that name nothing, and whether there is one.
pub(crate) fn missing(hosts: &Hosts, asked: &Asked<'_>, report: &mut Report) -> bool {
    let before = report.problems().len();
    for Seen { name, inventory } in &hosts.seen {
        report.turn_to(name.as_deref());
        for (device, problem) in &inventory.unlisted {
            if !asked.is_all() && asked.has_device(device) {
                report.problem(device, problem.clone());
            }
        }
        select(inventory, asked, report);
    }
    report.turn_to(None);
    report.problems().len() > before
}

/// Reports what an inventory has no answer to, and was asked for; of the rest, that there is none.
fn tell_problems(inventory: &Inventory, asked: &Asked<'_>, report: &mut Report) {
    for (_, problem) in &inventory.unlisted {
        report.host_problem(problem.clone());
    }
    tell_host(inventory, report);
    for record in &inventory.devices {
        let name = &record.device.name;
        let ports = record.ports.iter().filter_map(|port| {
            let problem = port.problem()?;
            Some((Unread::Port(name, port.number), problem))
        });
        let table = record.problem().map(|problem| (Unread::Device(name), problem));
        for (unread, problem) in table.into_iter().chain(ports) {
            if is_asked(&unread, asked) {
                report.problem(name, problem.clone());
            } else {
                report.note(format!("{unread}, which is not asked for: {}", problem.text));
            }
        }
        if let Some(problem) = record.fallback() {
            report.note(format!("{} (so sysfs was read)", problem.text));
        }
    }
}

/// Which hosts are not as most are: each with what differs, as `mlx5_0:1 uses 5 (most use 3)`. Where there
/// is no such thing as most, each host says what it uses.
pub(crate) fn differing(chosen: &[Chosen<'_>]) -> Map<String, Value> {
    // How often each index is right on the port of a name.
    let mut counts: BTreeMap<(&str, u32), BTreeMap<Option<u32>, usize>> = BTreeMap::new();
    for own in chosen {
        let indices = counts.entry((own.port.device, own.port.number)).or_default();
        *indices.entry(own.decision.outcome.index()).or_default() += 1;
    }
    let usual: BTreeMap<(&str, u32), Option<Option<u32>>> = counts
        .into_iter()
        .map(|(port, indices)| {
            let all: usize = indices.values().sum();
            let most = indices.into_iter().find(|(_, count)| 2 * count > all);
            (port, most.map(|(index, _)| index))
        })
        .collect();
    let text = |index: Option<u32>| index.map_or_else(|| "none".to_owned(), |i| i.to_string());
    let mut found = Map::new();
    for own in chosen {
        let index = own.decision.outcome.index();
        let (Some(host), Some(usual)) = (own.host, usual.get(&(own.port.device, own.port.number)))
        else {
            continue;
        };
        let place = format!("{}:{} uses {}", own.port.device, own.port.number, text(index));
        let what = match usual {
            Some(usual) if *usual == index => continue,
            Some(usual) => format!("{place} (most use {})", text(*usual)),
            None => place,
        };
        let list = found.entry(host).or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(list) = list {
            list.push(what.into());
        }
    }
    found
}

/// What a variable is set to on a host, as these releases of NCCL see it.
pub(crate) fn variable<'i>(
    inventory: &'i Inventory,
    reading: Reading,
) -> impl Fn(&str) -> Option<&'i str> {
    move |name| inventory.setting_of(name, reading).map(|setting| setting.value.as_str())
}

/// Whether a variable is set on some host, for any release.
pub(crate) fn is_set(hosts: &Hosts, name: &str) -> bool {
    let mut settings = hosts.seen.iter().flat_map(|host| &host.inventory.settings);
    settings.any(|setting| setting.name == name)
}

/// Whether a port is used at all.
pub(crate) fn is_used(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Taken(_) | Outcome::ByLid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::host;

    fn seen(preference: Preference, report: &mut Report) -> (Seen, usize) {
        let (_folder, mut host) = host();
        let inventory = host.inventory(&Wanted::new(Parts::GIDS).preference(preference));
        let seen = Seen { name: None, inventory };
        let rows = seen
            .select(&Asked::default(), report)
            .iter()
            .map(|own| own.record.all_rows().len())
            .sum();
        (seen, rows)
    }

    #[test]
    fn without_an_ioctl_sysfs_answers_and_the_reason_is_noted_once() {
        let mut report = Report::default();
        let (_, rows) = seen(Preference::Auto, &mut report);
        assert_eq!(rows, 1);
        assert!(report.is_complete());
        assert_eq!(report.notes().len(), 1);
        let note = &report.notes()[0];
        assert!(note.starts_with("rxe0: open ") && note.ends_with("(so sysfs was read)"), "{note}");
    }

    #[test]
    fn where_only_the_ioctl_will_do_its_absence_is_a_problem() {
        let mut report = Report::default();
        let (seen, rows) = seen(Preference::Ioctl, &mut report);
        assert_eq!((rows, report.notes().len()), (0, 0));
        assert_eq!(seen.inventory.devices[0].problem().map(|problem| problem.errno), Some(2));
    }
}
