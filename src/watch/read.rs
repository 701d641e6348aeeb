//! Reading what may have changed, and finding out what has.

use std::collections::BTreeSet;

use super::apply::put;
use super::diff::{Kept, differences_of};
use super::pending::{Ladder, Scope};
use super::{Options, Origin, Watch, What, failed, now};
use crate::device::Device;
use crate::error::Result;
use crate::host::Host;
use crate::inventory::{Inventory, Parts, PortRecord, Wanted};
use crate::netdev::Interface;

/// How often a reading that finds less than the one before is made again before it is believed. A device that
/// goes, or a driver that is busy, cannot be read for a moment.
const MOST_DOUBTS: u32 = 3;

impl Watch {
    /// Reads everything now, though it may not be time to. What differs is given by [`wait`](Self::wait).
    ///
    /// If something cannot be read that could be read before, it is tried again for at most some tenths of a second. So
    /// [`inventory`](Self::inventory) is what was read now, and nothing older.
    ///
    /// # Errors
    /// Those of [`wait`](Self::wait).
    pub fn reread(&mut self) -> Result<()> {
        self.hear().map_err(failed)?;
        self.plan_reread();
        self.want(Scope::All, Origin::Reread);
        self.read_pending();
        while let Some(doubted) = self.pending.as_ref().filter(|_| self.doubts > 0) {
            std::thread::sleep(doubted.due().saturating_sub(now()));
            self.read_pending();
        }
        self.arm().map_err(failed)
    }

    /// Reads what is due, and finds what differs.
    pub(super) fn read_due(&mut self) {
        let now = now();
        if self.next_reread.is_some_and(|at| at <= now) {
            self.want(Scope::All, Origin::Reread);
            self.plan_reread();
            // It has waited long enough.
            return self.read_pending();
        }
        if self.pending.as_ref().is_some_and(|own| own.due() <= now) {
            return self.read_pending();
        }
        let rung = self.ladder.as_ref().filter(|own| own.due() <= now);
        if let (Some(scope), None) = (rung.map(Ladder::scope), &self.pending) {
            self.want(scope, Origin::Route);
            self.read_pending();
        }
    }

    fn read_pending(&mut self) {
        let Some(mut pending) = self.pending.take() else { return };
        if pending.scope == Scope::All {
            self.listen();
        }
        let heard = self.sources.route.as_ref().map(|_| BTreeSet::new());
        let mut gone = std::mem::replace(&mut self.gone, heard);
        let (next, is_all) = match &pending.scope {
            Scope::All => (self.read_all(), true),
            Scope::Devices(devices) => match self.read_some(devices) {
                Some(next) => (next, false),
                None => (self.read_all(), true),
            },
        };
        // Another interface may have the index now, and what was read may be of that one.
        self.hear_route();
        gone = gone.zip(self.gone.as_ref()).map(|(own, more)| own.union(more).copied().collect());
        if is_worse(&self.inventory, &next) && self.doubts < MOST_DOUBTS {
            self.doubts += 1;
            self.gone = gone;
            pending = pending.again(now());
            if let Some(meanwhile) = self.pending.take() {
                pending.join(meanwhile);
            }
            self.pending = Some(pending);
            return;
        }
        self.doubts = 0;
        let kept = gone.as_ref().map_or(Kept::Alike, Kept::AllBut);
        for difference in differences_of(&self.inventory, &next, &BTreeSet::new(), kept) {
            self.tell(pending.origins.clone(), What::Difference(difference));
        }
        self.inventory = next;
        self.climb();
        if is_all {
            self.follow();
            let held = self.hold_contexts();
            // What changed between the reading and now, they did not hear.
            for origin in pending.origins.iter().filter(|_| !held.is_empty()) {
                self.want(Scope::Devices(held.clone()), *origin);
            }
        }
    }

    /// Goes on with the tables that are written late.
    fn climb(&mut self) {
        if let Some(ladder) = self.ladder.take() {
            self.ladder = ladder.climb(&self.inventory, now());
        }
    }

    /// Remembers devices that have a name which is watched, by what outlives the name.
    pub(super) fn follow(&mut self) {
        let names = &self.options.devices;
        let own = self.inventory.devices.iter().map(|own| &own.device);
        let own = own.filter(|own| names.contains(&own.name));
        for index in own.filter_map(|own| own.index) {
            if !self.followed.contains(&index) {
                self.followed.push(index);
            }
        }
        if !self.has_links {
            self.read_links();
        }
    }

    /// Reads which interface is above which.
    pub(super) fn read_links(&mut self) {
        if self.sources.route.is_none() {
            return;
        }
        // If it fails, each message is taken for one about each device, until it is read.
        let dump = self.host.dump().ok().flatten();
        self.has_links = dump.is_some();
        let links = dump.map(|dump| dump.links.by_index.into_values());
        self.links = links.into_iter().flatten().collect();
    }

    /// Reads everything that is watched.
    pub(super) fn read_all(&mut self) -> Inventory {
        self.read(self.options.parts, &|_| true)
    }

    /// Lists what is watched.
    pub(super) fn list_all(&mut self) -> Inventory {
        self.read(Parts::LISTED, &|_| true)
    }

    /// Reads devices that are watched and wanted, and keeps which others there are.
    fn read(&mut self, parts: Parts, wanted: &dyn Fn(&Device) -> bool) -> Inventory {
        let Self { host, options, followed, .. } = self;
        let (inventory, others) = read(host, (options, parts), followed, wanted);
        self.others = others;
        inventory
    }

    /// Reads some devices, and what is no device's; `None` if devices came or went, or if not all could be read, now or
    /// before: what fails for some devices may fail for the others, too.
    fn read_some(&mut self, wanted: &[String]) -> Option<Inventory> {
        let is_whole = |own: &Inventory| own.problems.is_empty() && own.has_netlink;
        if !is_whole(&self.inventory) {
            return None;
        }
        let mut read = self.read(self.options.parts, &|device| wanted.contains(&device.name));
        if !is_whole(&read) {
            return None;
        }
        let Self { host, options, followed, inventory, .. } = self;
        // Those that were read, and those that were only listed.
        let listed = read.devices.iter().map(|own| &own.device).chain(&read.others);
        let mut count = 0;
        for device in listed.filter(|own| is_watched(own, options, followed)) {
            let known = inventory.device(&device.name)?;
            if known.device.index != device.index || known.device.identity != device.identity {
                return None;
            }
            count += 1;
        }
        if count != inventory.devices.len() {
            return None;
        }
        for own in &inventory.devices {
            if read.device(&own.device.name).is_none() {
                put(&mut read.devices, own.clone());
            }
        }
        read.others.clear();
        // It was asked for if one of those that were read is of soft RoCE.
        if options.parts.interfaces {
            host.look_for_roce_socket(&mut read);
        }
        Some(read)
    }
}

/// Whether a device is watched.
fn is_watched(device: &Device, options: &Options, followed: &[u32]) -> bool {
    options.devices.is_empty()
        || options.devices.contains(&device.name)
        || device.index.is_some_and(|index| followed.contains(&index))
}

/// Reads devices that are watched and wanted, without what is no state. The others of those that are watched are
/// listed; those that are not are given beside it.
fn read(
    host: &mut Host,
    (options, parts): (&Options, Parts),
    followed: &[u32],
    wanted: &dyn Fn(&Device) -> bool,
) -> (Inventory, Vec<Device>) {
    let is_wanted = |device: &Device| is_watched(device, options, followed) && wanted(device);
    let wanted = Wanted::new(parts).preference(options.preference).devices(&is_wanted);
    let mut inventory = host.inventory(&wanted);
    if !parts.host {
        // They are read all the same where there is no device.
        inventory.absences.clear();
        inventory.shares_namespaces = None;
    }
    let (watched, others) = std::mem::take(&mut inventory.others)
        .into_iter()
        .partition(|own| is_watched(own, options, followed));
    inventory.others = watched;
    for port in inventory.devices.iter_mut().flat_map(|own| &mut own.ports) {
        if let Some(Ok((attributes, _))) = &mut port.attributes {
            (attributes.bad_pkey_cntr, attributes.qkey_viol_cntr) = (None, None);
        }
    }
    inventory.interfaces.iter_mut().flatten().for_each(order);
    // What this process may open is no state of the host's.
    (inventory.rdma_cm_access, inventory.umad_access) = (None, None);
    (inventory, others)
}

/// Orders the addresses of an interface: their order is no state.
fn order(interface: &mut Interface) {
    interface.addresses.sort_unstable();
    interface.unfit.sort_unstable();
}

/// Whether something could be read before and cannot be read now.
fn is_worse(before: &Inventory, after: &Inventory) -> bool {
    if after.problems.len() > before.problems.len() || after.unlisted.len() > before.unlisted.len()
    {
        return true;
    }
    let mut devices = after.devices.iter();
    devices.any(|own| {
        let Some(was) = before.device(&own.device.name) else {
            return own.problem().is_some() || own.ports.iter().any(|port| port.unread().is_some());
        };
        let is_new = |port: &PortRecord| {
            port.unread().is_some()
                && was.port(port.number).is_some_and(|own| own.unread().is_none())
        };
        own.problem().is_some() && was.problem().is_none() || own.ports.iter().any(is_new)
    })
}

#[cfg(test)]
mod tests;
