//! The hosts that are looked at as a whole: this one, or those of snapshots.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use uverbs::choose::nccl::ROOM;
use uverbs::choose::{self, Outcome, Port, Surroundings, Wish, recommend};
use uverbs::device::Device;
use uverbs::inventory::{DeviceRecord, Extent, Inventory, Reading, Unread, Wanted};
use uverbs::reader::Preference;

use crate::args::Common;
use crate::host::{Place, explain_absence};
use crate::report::Report;
use crate::selection::{Asked, select};
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
}

/// Each snapshot as a place to ask, with its host's name. A file that cannot be read is a problem.
pub(crate) fn places(from: &[PathBuf], report: &mut Report) -> Vec<(String, Place)> {
    let mut places = Vec::new();
    let mut room = snapshot::ROOM;
    for path in from {
        match snapshot::read(path, &mut room) {
            Ok(inventory) => {
                let name = inventory.host.clone().unwrap_or_else(|| file_name(path));
                places.push((name, Place::of(inventory)));
            }
            Err(problem) => {
                let name = file_name(path);
                report.bad_file(&name, problem);
            }
        }
    }
    places
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

/// Reads what the selectors name, of this host or of each snapshot. For choosing it is all devices, where
/// that costs nothing, or where there are so many ports that others may take the room of those that are
/// named.
pub(crate) fn look(
    common: &Common,
    from: &[PathBuf],
    preference: Preference,
    extent: Extent,
    asked: &Asked<'_>,
    report: &mut Report,
) -> Hosts {
    let ports = Cell::new(0);
    let is_choosing = extent == Extent::Choosing;
    let is_named = |device: &Device| {
        ports.set(device.ports().count().saturating_add(ports.get()));
        asked.has_device(&device.name) || (is_choosing && !from.is_empty())
    };
    let wanted = Wanted { preference, includes: &is_named, extent };
    if from.is_empty() {
        let place = || Place::new(common.sysfs.as_deref());
        let mut inventory = place().inventory(&wanted);
        if is_choosing && inventory.is_partial && ports.get() > ROOM {
            inventory = place().inventory(&Wanted { includes: &|_| true, ..wanted });
        }
        return Hosts { seen: vec![Seen { name: None, inventory }], unread: Vec::new() };
    }
    let places = places(from, report);
    let seen = places
        .into_iter()
        .map(|(name, place)| Seen { name: Some(name), inventory: place.inventory(&wanted) })
        .collect();
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

/// Chooses for each port, also those that are not asked for; reports what is asked for and could not be
/// read.
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
        select(inventory.devices.iter().map(|own| &own.device), asked, report);
    }
    report.turn_to(None);
    report.problems().len() > before
}

/// Reports what an inventory has no answer to, and was asked for; of the rest, that there is none.
fn tell_problems(inventory: &Inventory, asked: &Asked<'_>, report: &mut Report) {
    for problem in &inventory.problems {
        report.host_problem(problem.clone());
    }
    if inventory.devices.is_empty() && inventory.problems.is_empty() && !inventory.is_partial {
        explain_absence(&inventory.absences, inventory.shares_namespaces, report);
    }
    for record in &inventory.devices {
        let name = &record.device.name;
        let ports = record.ports.iter().filter_map(|port| {
            let problem = port.attributes.as_ref().err()?;
            Some((Unread::Port(name, port.number), problem))
        });
        let table = record.gids.as_ref().err().map(|problem| (Unread::Device(name), problem));
        for (unread, problem) in table.into_iter().chain(ports) {
            if is_asked(&unread, asked) {
                report.problem(name, problem.clone());
            } else {
                report.note(format!("{unread}, which is not asked for: {}", problem.text));
            }
        }
        if let (Some(Err(problem)), Ok(_)) = (&record.access, &record.gids) {
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
