//! The hosts that are looked at as a whole: this one, or those of snapshots.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use uverbs::choose::{self, Outcome, Port, Wish, recommend};
use uverbs::device::Device;
use uverbs::inventory::{Inventory, Wanted};
use uverbs::reader::Preference;
use uverbs::selector::Selector;

use crate::args::Common;
use crate::host::{Place, explain_absence};
use crate::report::Report;
use crate::selection::select;
use crate::snapshot;

/// A host to look at.
#[derive(Debug)]
pub(crate) struct Seen {
    /// Its name, if it is a snapshot's.
    pub(crate) name: Option<String>,
    pub(crate) inventory: Inventory,
}

/// Each snapshot as a place to ask, with its host's name. A file that cannot be read is a problem.
pub(crate) fn places(from: &[PathBuf], report: &mut Report) -> Vec<(String, Place)> {
    let mut places = Vec::new();
    for path in from {
        match snapshot::read(path) {
            Ok(inventory) => {
                let name = inventory.host.clone().unwrap_or_else(|| file_name(path));
                places.push((name, Place::Snapshot(Box::new(inventory))));
            }
            Err(error) => report.bad_file(&file_name(path), error),
        }
    }
    places
}

fn file_name(path: &Path) -> String {
    path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// Reads what the selectors name, of this host or of each snapshot.
pub(crate) fn look(
    common: &Common,
    from: &[PathBuf],
    preference: Preference,
    selectors: &[Selector],
    report: &mut Report,
) -> Vec<Seen> {
    let is_named = |device: &Device| {
        selectors.is_empty() || selectors.iter().any(|own| own.device == device.name)
    };
    let wanted = Wanted { preference, includes: &is_named };
    if from.is_empty() {
        let inventory = Place::new(common.sysfs.as_deref()).inventory(&wanted);
        return vec![Seen { name: None, inventory }];
    }
    let places = places(from, report).into_iter();
    places
        .map(|(name, place)| Seen { name: Some(name), inventory: place.inventory(&wanted) })
        .collect()
}

/// A port with the recommendation for it.
#[derive(Debug)]
pub(crate) struct Chosen<'s> {
    pub(crate) host: Option<&'s str>,
    /// The host's place among those that are looked at.
    pub(crate) place: usize,
    pub(crate) inventory: &'s Inventory,
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

/// Chooses for each port that is asked for, and reports what could not be read.
pub(crate) fn choose<'s>(
    hosts: &'s [Seen],
    selectors: &[Selector],
    wish: &Wish,
    report: &mut Report,
) -> Vec<Chosen<'s>> {
    let mut chosen = Vec::new();
    for (place, Seen { name, inventory }) in hosts.iter().enumerate() {
        report.turn_to(name.as_deref());
        tell_problems(inventory, report);
        let devices: Vec<Device> = inventory.devices.iter().map(|own| own.device.clone()).collect();
        for selected in select(&devices, selectors, report) {
            let Some(record) = inventory.device(&selected.device.name) else { continue };
            for port in record.ports.iter().filter(|port| selected.includes(port.number)) {
                let Some(port) = choose::port(inventory, record, port) else { continue };
                chosen.push(Chosen {
                    host: name.as_deref(),
                    place,
                    inventory,
                    decision: recommend(&port, wish),
                    port,
                });
            }
        }
    }
    report.turn_to(None);
    chosen
}

/// Reports selectors that name nothing.
pub(crate) fn missing(hosts: &[Seen], selectors: &[Selector], report: &mut Report) {
    for Seen { name, inventory } in hosts {
        report.turn_to(name.as_deref());
        let devices: Vec<Device> = inventory.devices.iter().map(|own| own.device.clone()).collect();
        select(&devices, selectors, report);
    }
    report.turn_to(None);
}

/// Reports what an inventory has no answer to.
fn tell_problems(inventory: &Inventory, report: &mut Report) {
    for problem in &inventory.problems {
        report.host_problem(problem.clone());
    }
    if inventory.devices.is_empty() && inventory.problems.is_empty() {
        explain_absence(&inventory.absences, inventory.shares_namespaces, report);
    }
    for record in &inventory.devices {
        let name = &record.device.name;
        let ports = record.ports.iter().filter_map(|port| port.attributes.as_ref().err());
        for problem in record.gids.as_ref().err().into_iter().chain(ports) {
            report.problem(name, problem.clone());
        }
        if let (Some(Err(problem)), Ok(_)) = (&record.access, &record.gids) {
            report.note(format!("{} (so sysfs was read)", problem.text));
        }
    }
}

/// A port's name, and how often each index is right on it.
type Counts<'p> = (&'p str, u32, Vec<(Option<u32>, usize)>);

/// Which hosts are not as most are: each with what differs, as `mlx5_0:1 uses 5 (most use 3)`.
pub(crate) fn differing(chosen: &[Chosen<'_>]) -> Map<String, Value> {
    // Names are few, and alike on all hosts.
    let mut counts: Vec<Counts<'_>> = Vec::new();
    let is_same = |own: &Chosen<'_>, device: &str, port: u32| {
        own.port.device == device && own.port.number == port
    };
    for own in chosen {
        let index = own.decision.outcome.index();
        let known = counts.iter_mut().find(|(device, port, _)| is_same(own, device, *port));
        let Some((.., indices)) = known else {
            counts.push((own.port.device, own.port.number, vec![(index, 1)]));
            continue;
        };
        match indices.iter_mut().find(|(known, _)| *known == index) {
            Some((_, count)) => *count += 1,
            None => indices.push((index, 1)),
        }
    }
    let text = |index: Option<u32>| index.map_or_else(|| "none".to_owned(), |i| i.to_string());
    let mut found = Map::new();
    for own in chosen {
        let index = own.decision.outcome.index();
        let indices = counts.iter().find(|(device, port, _)| is_same(own, device, *port));
        let usual = indices.and_then(|(.., own)| own.iter().max_by_key(|(_, count)| *count));
        if let (Some(host), Some((usual, _))) = (own.host, usual)
            && *usual != index
        {
            let what = format!(
                "{}:{} uses {} (most use {})",
                own.port.device,
                own.port.number,
                text(index),
                text(*usual)
            );
            let list = found.entry(host).or_insert_with(|| Value::Array(Vec::new()));
            if let Value::Array(list) = list {
                list.push(what.into());
            }
        }
    }
    found
}

/// What a variable is set to on a host.
pub(crate) fn variable<'i>(inventory: &'i Inventory) -> impl Fn(&str) -> Option<&'i str> {
    |name| inventory.setting(name).map(|setting| setting.value.as_str())
}

/// Whether a variable is set on some host.
pub(crate) fn is_set(hosts: &[Seen], name: &str) -> bool {
    hosts.iter().any(|host| host.inventory.setting(name).is_some())
}

/// Whether a port is used at all.
pub(crate) fn is_used(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Taken(_) | Outcome::ByLid)
}
