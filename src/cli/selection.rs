//! Which devices and ports are asked for. Nothing is opened to find out.

use std::collections::{BTreeMap, BTreeSet};

use uverbs::device::Device;
use uverbs::inventory::{DeviceRecord, Inventory};
use uverbs::selector::Selector;

use crate::report::Report;

/// Selectors, to look names up in: all if there are none.
#[derive(Debug)]
pub(crate) struct Asked<'s>(BTreeMap<&'s str, BTreeSet<Option<u32>>>);

impl<'s> Asked<'s> {
    pub(crate) fn new(selectors: &'s [Selector]) -> Self {
        let mut devices: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        for Selector { device, port } in selectors {
            devices.entry(device.as_str()).or_default().insert(*port);
        }
        Self(devices)
    }

    pub(crate) fn is_all(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the device, or a port of it, is asked for.
    pub(crate) fn has_device(&self, device: &str) -> bool {
        self.is_all() || self.0.contains_key(device)
    }

    /// Whether the port is asked for.
    pub(crate) fn has_port(&self, device: &str, port: u32) -> bool {
        self.is_all()
            || self
                .0
                .get(device)
                .is_some_and(|own| own.contains(&None) || own.contains(&Some(port)))
    }
}

/// A device with those of its ports that are asked for.
#[derive(Debug)]
pub(crate) struct Selected<'d> {
    pub(crate) record: &'d DeviceRecord,
    pub(crate) device: &'d Device,
    /// None if all.
    ports: Option<BTreeSet<u32>>,
}

impl Selected<'_> {
    pub(crate) fn includes(&self, port: u32) -> bool {
        self.ports.as_ref().is_none_or(|ports| ports.contains(&port))
    }

    /// Whether the port itself is asked for, not only its device.
    pub(crate) fn names(&self, port: u32) -> bool {
        self.ports.as_ref().is_some_and(|ports| ports.contains(&port))
    }

    /// The ports that are asked for, ascending.
    pub(crate) fn ports(&self) -> impl Iterator<Item = u32> {
        self.device.ports().filter(|port| self.includes(*port))
    }
}

/// The devices that the selectors name and that were wanted, in their order; all if there is no selector.
/// Reports names of devices and ports that are not there.
pub(crate) fn select<'d>(
    inventory: &'d Inventory,
    selectors: &[Selector],
    report: &mut Report,
) -> Vec<Selected<'d>> {
    let selected =
        |record: &'d DeviceRecord, ports| Selected { record, device: &record.device, ports };
    if selectors.is_empty() {
        return inventory.devices.iter().map(|record| selected(record, None)).collect();
    }
    let read = inventory.devices.iter().map(|record| &record.device);
    let known: BTreeMap<&str, &Device> =
        read.chain(&inventory.others).map(|device| (device.name.as_str(), device)).collect();
    // For each device that is named its ports; `None` if all.
    let mut named: BTreeMap<&str, Option<BTreeSet<u32>>> = BTreeMap::new();
    for selector in selectors {
        let name = selector.device.as_str();
        let Some(device) = known.get(name) else {
            report.no_such_device(name);
            continue;
        };
        match selector.port {
            Some(port) if !device.ports().contains(&port) => report.no_such_port(device, port),
            Some(port) => {
                if let Some(ports) = named.entry(name).or_insert_with(|| Some(BTreeSet::new())) {
                    ports.insert(port);
                }
            }
            None => {
                named.insert(name, None);
            }
        }
    }
    inventory
        .devices
        .iter()
        .filter_map(|record| Some(selected(record, named.remove(record.device.name.as_str())?)))
        .collect()
}
