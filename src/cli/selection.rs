//! Which devices and ports are asked for. Nothing is opened to find out.

use std::collections::{BTreeMap, BTreeSet};

use uverbs::device::Device;
use uverbs::inventory::{DeviceRecord, Inventory};
use uverbs::selector::Selector;

use crate::report::Report;

/// Selectors, to look names up in: all if there are none. Made once for all hosts, as there may be many
/// of both.
#[derive(Debug, Default)]
pub(crate) struct Asked<'s> {
    devices: BTreeMap<&'s str, Ports>,
    /// Each selector once, in their order.
    list: Vec<&'s Selector>,
}

/// What is asked of a device.
#[derive(Debug, Default)]
struct Ports {
    /// Whether it is named itself: all its ports are asked for.
    is_whole: bool,
    /// Ports that are named.
    named: BTreeSet<u32>,
}

impl<'s> Asked<'s> {
    pub(crate) fn new(selectors: &'s [Selector]) -> Self {
        let mut this = Self::default();
        for selector in selectors {
            let own = this.devices.entry(&selector.device).or_default();
            let is_new = match selector.port {
                Some(port) => own.named.insert(port),
                None => !std::mem::replace(&mut own.is_whole, true),
            };
            if is_new {
                this.list.push(selector);
            }
        }
        this
    }

    pub(crate) fn is_all(&self) -> bool {
        self.list.is_empty()
    }

    /// How many selectors there are, each counted once.
    pub(crate) fn count(&self) -> usize {
        self.list.len()
    }

    /// Whether the device, or a port of it, is asked for.
    pub(crate) fn has_device(&self, device: &str) -> bool {
        self.is_all() || self.devices.contains_key(device)
    }

    /// Whether the port is asked for.
    pub(crate) fn has_port(&self, device: &str, port: u32) -> bool {
        let is_asked = |own: &Ports| own.is_whole || own.named.contains(&port);
        self.is_all() || self.devices.get(device).is_some_and(is_asked)
    }

    /// Whether there is a selector of just this.
    pub(crate) fn names(&self, device: &str, port: Option<u32>) -> bool {
        self.devices.get(device).is_some_and(|own| match port {
            Some(port) => own.named.contains(&port),
            None => own.is_whole,
        })
    }
}

/// Selectors that name nothing of a host.
#[derive(Debug)]
pub(crate) struct Missing {
    pub(crate) count: usize,
    /// The first of them: each of many hosts may lack each of many names.
    pub(crate) first: Vec<String>,
}

/// How many of the names that a host lacks are known.
const FIRST: usize = 8;

impl Asked<'_> {
    /// The selectors that name nothing of a host. A device that could not be listed may be there.
    pub(crate) fn missing(&self, inventory: &Inventory) -> Missing {
        if inventory.list_failure.is_some() {
            return Missing { count: 0, first: Vec::new() };
        }
        let devices = inventory.devices.iter().map(|own| &own.device).chain(&inventory.others);
        let known: BTreeMap<&str, &Device> = devices.map(|own| (own.name.as_str(), own)).collect();
        let unlisted = inventory.unlisted.iter().map(|(name, _)| name.as_str());
        let unlisted: BTreeSet<&str> = unlisted.filter(|name| !known.contains_key(name)).collect();
        let found = known.values().filter_map(|device| Some(self.ports(device)?.found(device)));
        let hidden = unlisted.iter().filter_map(|name| Some(self.devices.get(name)?.count()));
        let count = self.list.len() - found.chain(hidden).sum::<usize>();
        let is_missing = |own: &&&Selector| match (known.get(own.device.as_str()), own.port) {
            (None, _) => !unlisted.contains(own.device.as_str()),
            (Some(device), port) => port.is_some_and(|port| !device.ports().contains(&port)),
        };
        let first = self.list.iter().filter(is_missing).take(count.min(FIRST));
        Missing { count, first: first.map(ToString::to_string).collect() }
    }

    /// What is asked of a device; none if it is not named.
    fn ports(&self, device: &Device) -> Option<&Ports> {
        self.devices.get(device.name.as_str())
    }
}

impl Ports {
    /// How many selectors there are.
    fn count(&self) -> usize {
        usize::from(self.is_whole) + self.named.len()
    }

    /// How many of them name something of the device.
    fn found(&self, device: &Device) -> usize {
        let ports = device.ports();
        // A range that ends before it begins is a mistake to a set.
        let named = if ports.is_empty() { 0 } else { self.named.range(ports).count() };
        usize::from(self.is_whole) + named
    }
}

/// A device with those of its ports that are asked for.
#[derive(Debug)]
pub(crate) struct Selected<'d> {
    pub(crate) record: &'d DeviceRecord,
    pub(crate) device: &'d Device,
    /// What is asked of it; none if all devices are.
    asked: Option<&'d Ports>,
}

impl Selected<'_> {
    /// Whether the device itself is asked for, not only ports of it.
    pub(crate) fn is_whole(&self) -> bool {
        self.asked.is_none_or(|asked| asked.is_whole)
    }

    pub(crate) fn includes(&self, port: u32) -> bool {
        self.asked.is_none_or(|asked| asked.is_whole || asked.named.contains(&port))
    }

    /// Whether the port itself is asked for, not only its device.
    pub(crate) fn names(&self, port: u32) -> bool {
        self.asked.is_some_and(|asked| asked.named.contains(&port))
    }

    /// The ports that are asked for, ascending.
    pub(crate) fn ports(&self) -> impl Iterator<Item = u32> {
        self.device.ports().filter(|port| self.includes(*port))
    }
}

/// The devices that the selectors name and that were wanted, in their order; all if there is no selector.
/// What names nothing is a problem.
pub(crate) fn select<'d>(
    inventory: &'d Inventory,
    asked: &'d Asked<'_>,
    report: &mut Report,
) -> Vec<Selected<'d>> {
    let mut known: BTreeMap<&str, &Device> = BTreeMap::new();
    let mut selected = Vec::new();
    let mut found = 0;
    let mut find = |device: &'d Device| {
        known.insert(&device.name, device);
        let own = asked.ports(device)?;
        let count = own.found(device);
        found += count;
        (count > 0).then_some(own)
    };
    for record in &inventory.devices {
        let device = &record.device;
        let own = find(device);
        if own.is_some() || asked.is_all() {
            selected.push(Selected { record, device, asked: own });
        }
    }
    // Each once: a document may have a device twice.
    let read = inventory.devices.iter().map(|own| own.device.name.as_str());
    let mut seen: BTreeSet<&str> = read.collect();
    for device in inventory.others.iter().filter(|own| seen.insert(&own.name)) {
        find(device);
    }
    // Where the list could not be read, no name is one of nothing.
    let mut missing = match inventory.list_failure {
        None => asked.list.len().saturating_sub(found),
        Some(_) => 0,
    };
    for Selector { device, port } in &asked.list {
        if missing == 0 {
            break;
        }
        if !report.has_room() {
            report.more_missing(missing);
            break;
        }
        match (known.get(device.as_str()), port) {
            (None, _) => report.no_such_device(device),
            (Some(known), Some(port)) if !known.ports().contains(port) => {
                report.no_such_port(known, *port);
            }
            _ => continue,
        }
        missing -= 1;
    }
    selected
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosts::Seen;
    use crate::report::Unanswered;
    use uverbs::inventory::Problem;

    #[test]
    fn a_port_that_is_not_there_is_missed_also_beside_its_device() {
        let mut inventory = Inventory::default();
        inventory.devices.push(DeviceRecord::new(Device::named("x")));
        let selectors = ["x", "x:7", "x:1"].map(|text| text.parse().unwrap());
        let asked = Asked::new(&selectors);
        let mut report = Report::default();
        assert_eq!(select(&inventory, &asked, &mut report).len(), 1);
        let problems: Vec<String> = report.problems().iter().map(Unanswered::text).collect();
        assert_eq!(problems, ["x: no port 7 (errno 22); its only port is 1"]);
    }

    /// Each of many hosts may lack each of many names.
    #[test]
    fn only_the_first_of_many_that_are_missing_are_named() {
        let problem = Problem { text: "x: list: broken".to_owned(), errno: 71 };
        let mut inventory = Inventory::default();
        inventory.unlisted.push(("x".to_owned(), problem));
        inventory.devices.push(DeviceRecord::new(Device::named("y")));
        inventory.others.push(Device::named("z"));
        let many = (0..20).map(|n| format!("a{n}"));
        let selectors = ["x", "x:2", "y", "y:1", "y:2", "z", "z:9"].map(str::to_owned);
        let selectors: Vec<Selector> =
            selectors.into_iter().chain(many).map(|text| text.parse().unwrap()).collect();
        let missing = Asked::new(&selectors).missing(&inventory);
        assert_eq!(missing.count, 22);
        assert_eq!(missing.first, ["y:2", "z:9", "a0", "a1", "a2", "a3", "a4", "a5"]);
        let missing = Asked::new(&selectors[..7]).missing(&inventory);
        assert_eq!((missing.count, missing.first), (2, vec!["y:2".to_owned(), "z:9".to_owned()]));
    }

    #[test]
    fn a_device_that_could_not_be_listed_is_not_missed_as_well() {
        let problem = Problem { text: "x: list: broken".to_owned(), errno: 71 };
        let mut inventory = Inventory::default();
        inventory.unlisted.push(("x".to_owned(), problem));
        let selectors = ["x", "y"].map(|text| text.parse().unwrap());
        let asked = Asked::new(&selectors);
        let mut report = Report::default();
        let seen = Seen::here(inventory);
        assert!(seen.select(&asked, &mut report).is_empty());
        let problems: Vec<String> = report.problems().iter().map(Unanswered::text).collect();
        assert_eq!(problems.len(), 2);
        assert_eq!(problems[0], "x: list: broken");
        assert!(problems[1].starts_with("y: no such device"), "{problems:?}");
    }

    /// A device that is twice in a document hides no other that is missing.
    #[test]
    fn a_device_that_is_there_twice_is_found_once() {
        let mut inventory = Inventory::default();
        inventory.devices.push(DeviceRecord::new(Device::named("x")));
        inventory.others = vec![Device::named("x"), Device::named("z"), Device::named("z")];
        let selectors = ["x", "y", "z", "a"].map(|text| text.parse().unwrap());
        let asked = Asked::new(&selectors);
        let mut report = Report::default();
        select(&inventory, &asked, &mut report);
        let problems: Vec<String> = report.problems().iter().map(Unanswered::text).collect();
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(problems[0].starts_with("y: ") && problems[1].starts_with("a: "), "{problems:?}");
    }

    /// A snapshot may have such a device.
    #[test]
    fn a_device_without_ports_has_none_that_is_asked_for() {
        let mut device = Device::named("x");
        device.port_count = 0;
        let mut inventory = Inventory::default();
        inventory.others.push(device.clone());
        device.name = "y".to_owned();
        inventory.devices.push(DeviceRecord::new(device));
        let selectors = ["x:1", "y:1", "y"].map(|text| text.parse().unwrap());
        let asked = Asked::new(&selectors);
        let mut report = Report::default();
        let selected = select(&inventory, &asked, &mut report);
        assert_eq!(selected.iter().map(|own| own.device.name.as_str()).collect::<Vec<_>>(), ["y"]);
        assert!(selected[0].names(1) && selected[0].includes(2));
        assert_eq!(report.problems().len(), 2, "each lacks a port");
    }
}
