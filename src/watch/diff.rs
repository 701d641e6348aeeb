//! The differences between two inventories. Nothing here asks the kernel.

use core::num::NonZeroU32;

use super::apply::{bare, host_part, put, rename, slot};
use super::difference::{Difference, PortValue};
use crate::device::Device;
use crate::inventory::{DeviceRecord, GidRow, Inventory, PortRecord};
use crate::netdev::{Interface, Netdev};

/// What differs between two inventories of one host, in an order in which it can be applied. Devices are in
/// natural order of their names in both, as [`Host::inventory`](crate::Host::inventory) gives them.
///
/// ```
/// use uverbs::device::Device;
/// use uverbs::inventory::{DeviceRecord, Inventory};
/// use uverbs::watch::{Difference, differences};
///
/// let before = Inventory::default();
/// let mut after = before.clone();
/// after.devices.push(DeviceRecord::new(Device::named("mlx5_0")));
/// let found = differences(&before, &after);
/// assert!(matches!(&found[..], [Difference::DeviceCame(own)] if own.device.name == "mlx5_0"));
/// ```
#[must_use]
pub fn differences(before: &Inventory, after: &Inventory) -> Vec<Difference> {
    let mut found = Vec::new();
    if before == after {
        return found;
    }
    // What is told already is done to a copy, so that nothing is told twice.
    let mut now = before.clone();
    rename_interfaces(&mut now, after, &mut found);
    pair_devices(&mut now, after, &mut found);
    for (before, after) in now.devices.iter().zip(&after.devices) {
        device(before, after, &mut found);
    }
    let with_interfaces = now.interfaces.is_some() != after.interfaces.is_some();
    if !with_interfaces {
        let (before, after) = (now.interfaces.as_deref(), after.interfaces.as_deref());
        interfaces(before.unwrap_or_default(), after.unwrap_or_default(), &mut found);
    }
    let (before, after) = (host_part(&now, with_interfaces), host_part(after, with_interfaces));
    if before != after {
        found.push(Difference::Host { before: Box::new(before), after: Box::new(after) });
    }
    found
}

/// Finds interfaces with other names than before, and renames them.
fn rename_interfaces(now: &mut Inventory, after: &Inventory, found: &mut Vec<Difference>) {
    let mut renamed: Vec<(NonZeroU32, String, String)> = Vec::new();
    let mut see = |index: NonZeroU32, before: &str, after: &str| {
        let place = renamed.binary_search_by_key(&index, |own| own.0).err();
        if let Some(place) = place.filter(|_| before != after) {
            renamed.insert(place, (index, before.to_owned(), after.to_owned()));
        }
    };
    if now.interfaces.is_some() && after.interfaces.is_some() {
        for own in now.interfaces.iter().flatten() {
            // Another interface may have got the index.
            let same = after.interface(own.index.get()).filter(|it| it.mac == own.mac);
            if let Some(same) = same {
                see(own.index, &own.name, &same.name);
            }
        }
    } else {
        let names = netdevs(after);
        for before in netdevs(now) {
            let place = names.binary_search_by_key(&before.index, |own| own.index);
            if let Some(after) = place.ok().and_then(|place| names.get(place)) {
                see(before.index, &before.name, &after.name);
            }
        }
    }
    for (index, before, after) in renamed {
        rename(now, index, &before, &after);
        found.push(Difference::InterfaceRenamed { index, before, after });
    }
}

/// The interfaces of ports and rows, by their indices, each once.
fn netdevs(inventory: &Inventory) -> Vec<&Netdev> {
    let mut found: Vec<&Netdev> = Vec::new();
    for device in &inventory.devices {
        let ports = device.ports.iter().filter_map(|port| port.netdev.as_ref());
        let rows = device.all_rows().iter().filter_map(|row| row.netdev.as_ref());
        for own in ports.chain(rows) {
            if let Err(place) = found.binary_search_by_key(&own.index, |it| it.index) {
                found.insert(place, own);
            }
        }
    }
    found
}

/// What a device is known by in both inventories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key<'d> {
    /// The kernel's index, which outlives its name.
    Index(u32),
    /// Its name, where it has no index.
    Name(&'d str),
}

fn key(device: &Device) -> Key<'_> {
    device.index.map_or(Key::Name(&device.name), Key::Index)
}

fn with_key<'d>(devices: &'d [DeviceRecord], wanted: Key<'_>) -> Option<&'d DeviceRecord> {
    devices.iter().find(|own| key(&own.device) == wanted)
}

/// Whether two devices of one key are the same, as far as is known.
fn is_same(before: &DeviceRecord, after: &DeviceRecord) -> bool {
    let (one, other) = (&before.device, &after.device);
    let is_same = match (one.index, other.index) {
        (Some(before), Some(after)) => before == after,
        // Of a listing by sysfs. What it identifies a device by is not in a document.
        (None, None) => one.identity == other.identity && one.node_guid == other.node_guid,
        // RDMA netlink answered only once.
        _ => one.node_guid == other.node_guid,
    };
    let after = after.ports.iter().map(|own| own.number);
    is_same && before.ports.iter().map(|own| own.number).eq(after)
}

/// Whether a device of this name would be among these devices of an inventory if it were there.
fn lists(inventory: &Inventory, devices: &[DeviceRecord], name: &str) -> bool {
    let is_none = devices.is_empty() && inventory.others.is_empty();
    let has_failed = is_none && !inventory.problems.is_empty();
    !has_failed && !inventory.unlisted.iter().any(|(unlisted, _)| unlisted == name)
}

/// Makes of the devices before those after, all but what is in them: so that both lists have the same
/// devices, in the same order.
fn pair_devices(now: &mut Inventory, after: &Inventory, found: &mut Vec<Difference>) {
    let named = |name: &str| after.devices.iter().find(|own| own.device.name == name);
    let old = core::mem::take(&mut now.devices);
    let by_name = |own: &DeviceRecord| {
        let same = named(&own.device.name)?;
        let is_one_unknown = same.device.index.is_some() != own.device.index.is_some();
        (is_one_unknown && with_key(&old, key(&same.device)).is_none()).then_some(same)
    };
    // What each is now, if it is still there.
    let same = |own: &DeviceRecord| {
        let same = with_key(&after.devices, key(&own.device)).or_else(|| by_name(own));
        same.filter(|same| is_same(own, same))
    };
    let sames: Vec<Option<&DeviceRecord>> = old.iter().map(same).collect();
    let is_kept =
        |wanted: &DeviceRecord| sames.iter().flatten().any(|own| core::ptr::eq(*own, wanted));
    let taker = |own: &DeviceRecord| named(&own.device.name).filter(|taker| !is_kept(taker));
    let mut replaced: Vec<&DeviceRecord> = Vec::new();
    // First who leaves a name, then who takes it.
    for own in old.iter().zip(&sames).filter(|(_, same)| same.is_none()).map(|(own, _)| own) {
        if taker(own).is_none() {
            let (name, own) = (&own.device.name, Box::new(own.clone()));
            found.push(if lists(after, &after.devices, name) {
                Difference::DeviceWent(own)
            } else {
                Difference::DeviceUnlisted(own)
            });
        }
    }
    let mut devices = Vec::with_capacity(after.devices.len());
    for (own, same) in old.iter().zip(&sames) {
        let Some(same) = same else { continue };
        let mut own = own.clone();
        let name = &same.device.name;
        if own.device.name != *name {
            let before = core::mem::replace(&mut own.device.name, name.clone());
            if let Some(index) = own.device.index {
                found.push(Difference::DeviceRenamed { index, before, after: name.clone() });
            }
        }
        put(&mut devices, own);
    }
    for (own, same) in old.iter().zip(&sames) {
        let successor = same.is_none().then(|| taker(own)).flatten();
        if let Some(after) = successor {
            replaced.push(after);
            put(&mut devices, after.clone());
            let (before, after) = (Box::new(own.clone()), Box::new(after.clone()));
            found.push(Difference::DeviceReplaced { before, after });
        }
    }
    for own in &after.devices {
        if !is_kept(own) && !replaced.iter().any(|it| core::ptr::eq(*it, own)) {
            put(&mut devices, own.clone());
            let record = Box::new(own.clone());
            found.push(if lists(now, &old, &own.device.name) {
                Difference::DeviceCame(record)
            } else {
                Difference::DeviceListed(record)
            });
        }
    }
    now.devices = devices;
}

/// What differs of a device that is in both inventories, by the same name.
fn device(before: &DeviceRecord, after: &DeviceRecord, found: &mut Vec<Difference>) {
    if before == after {
        return;
    }
    let name = &after.device.name;
    let (old, new) = (bare(before), bare(after));
    if old != new {
        found.push(Difference::Device { before: Box::new(old), after: Box::new(new) });
    }
    for (before, after) in before.ports.iter().zip(&after.ports) {
        port(name, before, after, found);
    }
    match (&before.gids, &after.gids) {
        (Some(Ok(before)), Some(Ok(after))) => rows(name, before, after, found),
        (before, after) if before != after => found.push(Difference::Table {
            device: name.clone(),
            before: before.clone(),
            after: after.clone(),
        }),
        _ => {}
    }
}

fn port(device: &str, before: &PortRecord, after: &PortRecord, found: &mut Vec<Difference>) {
    let mut now = before.clone();
    for value in PortValue::ALL {
        let (Some(before), Some(after)) = (value(&now), value(after)) else { continue };
        if before != after {
            after.clone().set(&mut now);
            let (device, port) = (device.to_owned(), now.number);
            found.push(Difference::Port { device, port, before, after });
        }
    }
}

/// Two lists that are sorted by `place`, side by side: what has the same place in both is a pair.
fn side_by_side<'l, T>(
    before: &'l [T],
    after: &'l [T],
    place: fn(&T) -> (u32, u32),
) -> Vec<(Option<&'l T>, Option<&'l T>)> {
    let (mut before, mut after) = (before.iter().peekable(), after.iter().peekable());
    let mut pairs = Vec::new();
    loop {
        // `None` is not less than a place.
        let of = |own: Option<&&T>| own.map_or((u32::MAX, u32::MAX), |own| place(own));
        let (old, new) = (of(before.peek()), of(after.peek()));
        let old = if old <= new { before.next() } else { None };
        let new = if old.is_none_or(|own| place(own) == new) { after.next() } else { None };
        if old.is_none() && new.is_none() {
            return pairs;
        }
        pairs.push((old, new));
    }
}

/// What differs between the rows of a device.
fn rows(device: &str, before: &[GidRow], after: &[GidRow], found: &mut Vec<Difference>) {
    let name = || device.to_owned();
    let boxed = |row: &GidRow| Box::new(row.clone());
    let changed = |before: &GidRow, after: &GidRow| Difference::GidChanged {
        device: name(),
        before: boxed(before),
        after: boxed(after),
    };
    // What leaves its slot, and what is in another than before.
    let (mut left, mut come, mut in_place) = (Vec::new(), Vec::new(), Vec::new());
    for pair in side_by_side(before, after, slot) {
        match pair {
            (Some(before), Some(after)) if has_same_gid(before, after) => {
                if before != after {
                    in_place.push(changed(before, after));
                }
            }
            (before, after) => {
                left.extend(before);
                come.extend(after);
            }
        }
    }
    let mut moves = find_moves(&mut left, &mut come);
    for row in left {
        match come.iter().position(|own| slot(own) == slot(row)) {
            Some(place) => in_place.push(changed(row, come.remove(place))),
            None => found.push(Difference::GidWent { device: name(), row: boxed(row) }),
        }
    }
    found.append(&mut in_place);
    // A row moves once its new slot is free, and then its own is.
    let is_source = |wanted: &(u32, u32)| moves.iter().any(|(from, _)| slot(from) == *wanted);
    let free: Vec<(u32, u32)> =
        moves.iter().map(|(_, to)| slot(to)).filter(|own| !is_source(own)).collect();
    let follow = |moves: &mut Vec<Move<'_>>, found: &mut Vec<Difference>, mut to: (u32, u32)| {
        while let Some(place) = moves.iter().position(|(_, own)| slot(own) == to) {
            let (before, after) = moves.remove(place);
            to = slot(before);
            let (before, after) = (boxed(before), boxed(after));
            found.push(Difference::GidMoved { device: name(), before, after });
        }
    };
    for to in free {
        follow(&mut moves, found, to);
    }
    // Rows that change places in a circle: one goes and comes again.
    while !moves.is_empty() {
        let (before, after) = moves.remove(0);
        found.push(Difference::GidWent { device: name(), row: boxed(before) });
        follow(&mut moves, found, slot(before));
        come.push(after);
    }
    for row in come {
        found.push(Difference::GidCame { device: name(), row: boxed(row) });
    }
}

/// A row that is in another slot of its port: as it was, and as it is.
type Move<'r> = (&'r GidRow, &'r GidRow);

fn has_same_gid(one: &GidRow, other: &GidRow) -> bool {
    let (one, other) = (&one.record.entry, &other.record.entry);
    (one.gid(), one.gid_type()) == (other.gid(), other.gid_type())
}

/// Rows that are the same in another slot of their port. They are taken out of both lists. Those of the same
/// interface are found first.
fn find_moves<'r>(left: &mut Vec<&'r GidRow>, come: &mut Vec<&'r GidRow>) -> Vec<Move<'r>> {
    let netdev = |row: &GidRow| {
        row.netdev.as_ref().map(|own| own.index).or(row.record.entry.netdev_ifindex())
    };
    let mut moves = Vec::new();
    for with_netdev in [true, false] {
        come.retain(|to| {
            let is_it = |from: &&GidRow| {
                from.record.entry.port() == to.record.entry.port()
                    && has_same_gid(from, to)
                    && (!with_netdev || netdev(from) == netdev(to))
            };
            let Some(place) = left.iter().position(is_it) else { return true };
            moves.push((left.remove(place), *to));
            false
        });
    }
    moves
}

fn interfaces(before: &[Interface], after: &[Interface], found: &mut Vec<Difference>) {
    for (before, after) in side_by_side(before, after, |own| (own.index.get(), 0)) {
        if before != after {
            let (before, after) = (before.cloned(), after.cloned());
            found.push(Difference::Interface { before, after });
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
