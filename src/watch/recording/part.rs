//! What a line of a recording may change: of a large host only what it names.

use core::num::NonZeroU32;
use std::collections::{BTreeMap, BTreeSet};

use super::super::apply::{bare, host_part, slot};
use super::form::Step;
use crate::inventory::{DeviceRecord, Inventory};
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
            self.is_all = true;
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
        for (name, other) in other.devices {
            let own = self.devices.entry(name).or_default();
            own.is_all |= other.is_all;
            own.ports.extend(other.ports);
            own.slots.extend(other.slots);
        }
    }

    /// The names of the devices that the line may change; `None` if it may change the host.
    #[must_use]
    pub fn devices(&self) -> Option<impl Iterator<Item = &str>> {
        let is_more = self.is_all || self.has_host;
        (!is_more).then(|| self.devices.keys().map(String::as_str))
    }

    /// The indices of the interfaces that the line may change. If it may change the host, it may change all.
    pub fn interfaces(&self) -> impl Iterator<Item = NonZeroU32> {
        self.interfaces.iter().copied()
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
        let mut devices: Vec<DeviceRecord> = self.devices.iter().filter_map(own).collect();
        // Where devices come or go, it matters whether they can be listed.
        let structural = Some(inventory).filter(|_| self.devices.values().any(|own| own.is_all));
        devices.sort_by(|one, other| natural(&one.device.name, &other.device.name));
        if self.has_host {
            return Inventory { devices, ..host_part(inventory, true) };
        }
        let interfaces = inventory.interfaces.as_ref().map(|_| {
            let own = self.interfaces.iter().filter_map(|own| inventory.interface(own.get()));
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

/// The place of a device among all, which are in natural order of their names; or where it belongs.
pub(super) fn find(devices: &[DeviceRecord], name: &str) -> Result<usize, usize> {
    devices.binary_search_by(|own| natural(&own.device.name, name))
}
