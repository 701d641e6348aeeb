//! What a line of a recording may change: of a large host only what it names.

use core::num::NonZeroU32;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::super::apply::{bare, host_part, slot};
use super::form::Step;
use crate::inventory::{DeviceRecord, Inventory};
use crate::netdev::Netdev;
use crate::text::natural;

/// The part of an inventory that a line may change. Two such parts, before the line and after it, have the differences
/// of the inventories.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    is_all: bool,
    /// Whether all that is no device's may change.
    has_host: bool,
    devices: BTreeMap<String, OfDevice>,
    interfaces: BTreeSet<NonZeroU32>,
    /// Those of the interfaces that get another name, also in ports and rows.
    renamed: BTreeSet<NonZeroU32>,
}

/// What may change of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct OfDevice {
    is_all: bool,
    ports: BTreeSet<u32>,
    slots: BTreeSet<(u32, u32)>,
}

impl Part {
    pub(super) fn all() -> Self {
        Self { is_all: true, ..Self::default() }
    }

    /// What these steps may change of an inventory.
    pub(super) fn of_steps(steps: &[Step]) -> Self {
        let mut part = Self::default();
        for step in steps {
            part.add_step(step);
        }
        part
    }

    fn add_step(&mut self, step: &Step) {
        if step.host.is_some() {
            self.has_host = true;
        } else if is_interface_renamed(step) {
            self.renamed.extend(step.ifindex);
        } else if let Some(index) = step.interface.as_ref().map(|own| own.index).or(step.ifindex) {
            self.interfaces.insert(index);
        } else if step.event.is_none() {
            let whole = step.whole.as_ref().map(|own| &own.device.name);
            let renamed = step.renamed.iter().flat_map(|(before, after)| [before, after]);
            for name in renamed.chain(whole) {
                self.devices.entry(name.clone()).or_default().is_all = true;
            }
            let Some(device) = &step.device else { return };
            let own = self.devices.entry(device.clone()).or_default();
            own.is_all |= step.is_gone;
            own.ports.extend(step.port.as_ref().map(|own| own.number));
            own.slots.extend(step.row.as_deref().map(slot).or(step.empty));
        }
    }

    /// Adds what another line may change.
    pub fn add(&mut self, other: Self) {
        self.is_all |= other.is_all;
        self.has_host |= other.has_host;
        self.interfaces.extend(other.interfaces);
        self.renamed.extend(other.renamed);
        for (name, other) in other.devices {
            self.devices.entry(name).or_default().add(other);
        }
    }

    /// The names of the devices that the line may change; `None` if it may change the host.
    #[must_use]
    pub fn devices(&self) -> Option<impl Iterator<Item = &str>> {
        let is_more = self.is_all || self.has_host || !self.renamed.is_empty();
        (!is_more).then(|| self.devices.keys().map(String::as_str))
    }

    /// The indices of the interfaces that the line may change. If it may change the host, it may change all.
    pub fn interfaces(&self) -> impl Iterator<Item = NonZeroU32> {
        self.interfaces.union(&self.renamed).copied()
    }

    /// The part of an inventory.
    #[must_use]
    pub fn of(&self, inventory: &Inventory) -> Inventory {
        if self.is_all {
            return inventory.clone();
        }
        let own = |(name, part): (&String, &OfDevice)| {
            let place = find(&inventory.devices, name).ok()?;
            inventory.devices.get(place).map(|own| part.of(own))
        };
        let parts = self.of_devices(inventory);
        let mut devices: Vec<DeviceRecord> = parts.iter().filter_map(own).collect();
        // Where devices come or go, it matters whether they can be listed.
        let structural = Some(inventory).filter(|_| self.devices.values().any(|own| own.is_all));
        put_in_order(&mut devices);
        if self.has_host {
            return Inventory { devices, ..host_part(inventory, true) };
        }
        let interfaces = inventory.interfaces.as_ref().map(|_| {
            let own = self.interfaces().filter_map(|own| inventory.interface(own.get()));
            own.cloned().collect()
        });
        let unlisted = structural.iter().flat_map(|own| &own.unlisted);
        let unlisted = unlisted.filter(|(name, _)| self.devices.contains_key(name));
        Inventory {
            devices,
            interfaces,
            unlisted: unlisted.cloned().collect(),
            list_failure: structural.and_then(|own| own.list_failure.clone()),
            ..Inventory::default()
        }
    }

    /// What may change of each device, with the ports and rows that name an interface which gets another name.
    fn of_devices(&self, inventory: &Inventory) -> Cow<'_, BTreeMap<String, OfDevice>> {
        let mut all = Cow::Borrowed(&self.devices);
        if self.renamed.is_empty() {
            return all;
        }
        let is_renamed = |own: &Netdev| self.renamed.contains(&own.index);
        for device in &inventory.devices {
            let ports = device.ports.iter();
            let ports = ports.filter(|port| port.netdev.iter().flatten().any(is_renamed));
            let ports = ports.map(|port| port.number);
            let rows = device.all_rows().iter().filter(|row| row.netdev.iter().any(is_renamed));
            let own =
                OfDevice { is_all: false, ports: ports.collect(), slots: rows.map(slot).collect() };
            if own != OfDevice::default() {
                all.to_mut().entry(device.device.name.clone()).or_default().add(own);
            }
        }
        all
    }

    /// Whether a name is that of two devices now.
    pub(super) fn has_twice(&self, devices: &[DeviceRecord]) -> bool {
        self.devices.keys().any(|name| {
            let first = devices.partition_point(|own| natural(&own.device.name, name).is_lt());
            let mut same = devices.iter().skip(first).take_while(|own| own.device.name == *name);
            same.nth(1).is_some()
        })
    }
}

impl OfDevice {
    fn add(&mut self, other: Self) {
        self.is_all |= other.is_all;
        self.ports.extend(other.ports);
        self.slots.extend(other.slots);
    }

    fn of(&self, own: &DeviceRecord) -> DeviceRecord {
        if self.is_all {
            return own.clone();
        }
        let ports = self.ports.iter().filter_map(|port| own.port(*port).cloned());
        let rows = self.slots.iter().filter_map(|(port, index)| own.row(*port, *index).cloned());
        let gids = own.gids.as_ref().map(|gids| match gids {
            Ok(_) => Ok(rows.collect()),
            Err(problem) => Err(problem.clone()),
        });
        DeviceRecord { ports: ports.collect(), gids, ..bare(own) }
    }
}

pub(super) fn is_interface_renamed(step: &Step) -> bool {
    step.ifindex.is_some() && step.renamed.is_some()
}

/// Puts devices in natural order of their names, as those of a host are.
pub(super) fn put_in_order(devices: &mut [DeviceRecord]) {
    devices.sort_by(|one, other| natural(&one.device.name, &other.device.name));
}

/// The place of a device among all, which are in natural order of their names; or where it belongs.
pub(super) fn find(devices: &[DeviceRecord], name: &str) -> Result<usize, usize> {
    devices.binary_search_by(|own| natural(&own.device.name, name))
}
