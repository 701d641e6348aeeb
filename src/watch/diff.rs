//! The differences between two inventories. Nothing here asks the kernel.

use core::num::NonZeroU32;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::apply::{bare, host_part, rename_all, slot};
use super::difference::{Difference, PortValue};
use crate::device::Device;
use crate::guid::Guid;
use crate::hardware::PciAddress;
use crate::inventory::{DeviceRecord, GidRow, Inventory, PortRecord};
use crate::netdev::Interface;

/// What differs between two inventories of one host, in an order in which it can be applied. Devices are in
/// natural order of their names in both, as [`Host::inventory`](crate::Host::inventory) gives them.
///
/// An interface with another name than before is renamed if both inventories list interfaces, and it has its index, MAC
/// address and port GUID. A [`Watch`](super::Watch) hears whether another one has the index now.
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
    differences_of(before, after, &BTreeSet::new(), Kept::Alike)
}

/// Which interfaces are those that had their indices before.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(
    not(any(feature = "serde", test)),
    expect(dead_code, reason = "only recordings have gaps, and say what was renamed")
)]
pub(super) enum Kept<'k> {
    /// Nobody said it: those that are alike.
    Alike,
    /// All but those that went meanwhile.
    AllBut(&'k BTreeSet<NonZeroU32>),
    /// Of those with other names only these, which were recorded as renamed.
    Only(&'k BTreeSet<NonZeroU32>),
    /// None, as there was a gap between both.
    Gap,
}

impl Kept<'_> {
    fn is_gap(self) -> bool {
        matches!(self, Self::Gap)
    }

    fn has(self, (before, after): (&Inventory, &Inventory), index: NonZeroU32) -> bool {
        match self {
            Self::Alike => {
                let known = |own: &Inventory| {
                    own.interface(index.get()).map(|own| (own.mac, own.port_guid))
                };
                known(before).is_some_and(|own| known(after) == Some(own))
            }
            Self::AllBut(gone) => !gone.contains(&index),
            Self::Only(renamed) => renamed.contains(&index),
            Self::Gap => false,
        }
    }
}

/// The same, where devices of these names are known to be others than before, though nothing in them says so, and where more
/// is known of interfaces. After a gap the kernel's indices say nothing: the host may have been started again. Then a device
/// is the same if it has its name and node GUID; or its index and its node GUID, if no other device has that. Where several
/// have the GUID, or it is 0, no other PCI address may speak against the name.
pub(super) fn differences_of(
    before: &Inventory,
    after: &Inventory,
    replaced: &BTreeSet<&str>,
    kept: Kept<'_>,
) -> Vec<Difference> {
    let mut found = Vec::new();
    if before == after && replaced.is_empty() {
        return found;
    }
    let is_gap = kept.is_gap();
    // What is found is applied to a copy, so that nothing is found twice.
    let mut now = before.clone();
    rename_interfaces(&mut now, after, kept, &mut found);
    pair_devices(&mut now, after, (replaced, is_gap), &mut found);
    for (before, after) in now.devices.iter().zip(&after.devices) {
        device(before, after, is_gap, &mut found);
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
fn rename_interfaces(
    now: &mut Inventory,
    after: &Inventory,
    kept: Kept<'_>,
    found: &mut Vec<Difference>,
) {
    let [old, new] = if now.interfaces.is_some() && after.interfaces.is_some() {
        [&*now, after].map(listed)
    } else {
        [&*now, after].map(netdevs)
    };
    let mut renamed: BTreeMap<NonZeroU32, (String, String)> = BTreeMap::new();
    for (index, before) in old {
        let name = new.get(&index).filter(|own| **own != before);
        if let Some(name) = name.filter(|_| kept.has((now, after), index)) {
            renamed.insert(index, (before.to_owned(), (*name).to_owned()));
        }
    }
    rename_all(now, &renamed);
    found.extend(
        renamed.into_iter().map(|(index, (before, after))| Difference::InterfaceRenamed {
            index,
            before,
            after,
        }),
    );
}

/// The names of the interfaces that are listed.
fn listed(inventory: &Inventory) -> BTreeMap<NonZeroU32, &str> {
    inventory.interfaces.iter().flatten().map(|own| (own.index, own.name.as_str())).collect()
}

/// The names of the interfaces of ports and rows, each as it is first found.
fn netdevs(inventory: &Inventory) -> BTreeMap<NonZeroU32, &str> {
    let mut found = BTreeMap::new();
    for device in &inventory.devices {
        let ports = device.ports.iter().filter_map(PortRecord::netdev);
        let rows = device.all_rows().iter().filter_map(|row| row.netdev.as_ref());
        for own in ports.chain(rows) {
            found.entry(own.index).or_insert(own.name.as_str());
        }
    }
    found
}

/// What a device is known by in both inventories.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key<'d> {
    /// The kernel's index, which outlives its name.
    Index(u32),
    /// Its name, where it has no index.
    Name(&'d str),
}

fn key(device: &Device) -> Key<'_> {
    device.index.map_or(Key::Name(&device.name), Key::Index)
}

/// Whether two devices of one key, or of one name, are the same, as far as is known.
fn is_same(before: &DeviceRecord, after: &DeviceRecord, is_gap: bool) -> bool {
    let (one, other) = (&before.device, &after.device);
    let is_same = match (one.index, other.index) {
        _ if is_gap => one.node_guid == other.node_guid,
        (Some(before), Some(after)) => before == after,
        // Of a listing by sysfs. What it identifies a device by is not in a document.
        (None, None) => has_one_identity(one, other) && one.node_guid == other.node_guid,
        // RDMA netlink answered only once.
        _ => one.node_guid == other.node_guid,
    };
    let after = after.ports.iter().map(|own| own.number);
    is_same && before.ports.iter().map(|own| own.number).eq(after)
}

/// Whether sysfs has them as one device. Its node may come, go or be made anew, and may not be read.
fn has_one_identity(one: &Device, other: &Device) -> bool {
    let (one, other) = (&one.identity, &other.identity);
    match (&one.device, &other.device) {
        (Some(before), Some(after)) => before == after,
        _ => one == other,
    }
}

/// The names of devices that are not listed as they cannot be, though they may be there.
struct Unlisted<'i> {
    is_all: bool,
    names: BTreeSet<&'i str>,
}

impl<'i> Unlisted<'i> {
    fn of(inventory: &'i Inventory) -> Self {
        let names = inventory.unlisted.iter().map(|(name, _)| name.as_str()).collect();
        Self { is_all: inventory.list_failure.is_some(), names }
    }

    fn is_empty(&self) -> bool {
        !self.is_all && self.names.is_empty()
    }

    fn has(&self, name: &str) -> bool {
        self.is_all || self.names.contains(name)
    }
}

/// Devices by what they are known by: their places.
struct Places<'d> {
    names: BTreeMap<&'d str, usize>,
    keys: BTreeMap<Key<'d>, usize>,
}

impl<'d> Places<'d> {
    fn of(devices: &'d [DeviceRecord]) -> Self {
        let mut places = Self { names: BTreeMap::new(), keys: BTreeMap::new() };
        for (place, own) in devices.iter().enumerate() {
            places.names.entry(&own.device.name).or_insert(place);
            places.keys.entry(key(&own.device)).or_insert(place);
        }
        places
    }
}

fn pci_address(own: &DeviceRecord) -> Option<PciAddress> {
    Some(own.hardware.as_ref()?.pci.as_ref()?.address)
}

/// The node GUIDs that one device has before, and one after.
fn single_guids(before: &[DeviceRecord], after: &[DeviceRecord]) -> BTreeSet<Guid> {
    let single = |devices: &[DeviceRecord]| {
        let mut counts: BTreeMap<Guid, usize> = BTreeMap::new();
        for own in devices {
            *counts.entry(own.device.node_guid).or_default() += 1;
        }
        let single = counts.into_iter().filter(|(own, count)| *own != Guid::from(0) && *count == 1);
        single.map(|(own, _)| own).collect::<BTreeSet<Guid>>()
    };
    single(before).intersection(&single(after)).copied().collect()
}

/// Makes of the devices before those after, all but what is in them: so that both lists have the same
/// devices, in the same order.
fn pair_devices(
    now: &mut Inventory,
    after: &Inventory,
    (replaced, is_gap): (&BTreeSet<&str>, bool),
    found: &mut Vec<Difference>,
) {
    let old = core::mem::take(&mut now.devices);
    let (before, places) = (Places::of(&old), Places::of(&after.devices));
    let (unlisted_before, unlisted) = (Unlisted::of(now), Unlisted::of(after));
    let by_name = |own: &DeviceRecord| {
        let place = places.names.get(own.device.name.as_str())?;
        let same = after.devices.get(*place)?;
        let is_one_unknown = same.device.index.is_some() != own.device.index.is_some();
        (is_one_unknown && !before.keys.contains_key(&key(&same.device))).then_some(*place)
    };
    let single = if is_gap { single_guids(&old, &after.devices) } else { BTreeSet::new() };
    // One that cannot be listed may have any GUID.
    let are_all_listed = [&unlisted_before, &unlisted].iter().all(|own| own.is_empty());
    let after_a_gap = |own: &DeviceRecord| {
        let has_guid = |place: &&usize| {
            after.devices.get(**place).is_some_and(|it| it.device.node_guid == own.device.node_guid)
        };
        let by_name = places.names.get(own.device.name.as_str()).filter(has_guid);
        let is_single = single.contains(&own.device.node_guid);
        // Functions may have no GUID yet, or share one.
        let has_place = |place: &&usize| {
            let other = after.devices.get(**place).and_then(pci_address);
            is_single || pci_address(own).zip(other).is_none_or(|(one, other)| one == other)
        };
        let by_index = || places.keys.get(&key(&own.device)).filter(has_guid);
        let by_index = || by_index().filter(|_| is_single && are_all_listed);
        by_name.filter(has_place).or_else(by_index).copied()
    };
    // What each is now, if it is still there; and of those after what each was.
    let mut kept: Vec<Option<DeviceRecord>> = after.devices.iter().map(|_| None).collect();
    let mut same = |own: &DeviceRecord| {
        if replaced.contains(own.device.name.as_str()) {
            return None;
        }
        let place = if is_gap {
            after_a_gap(own)?
        } else {
            places.keys.get(&key(&own.device)).copied().or_else(|| by_name(own))?
        };
        let same = after.devices.get(place).filter(|same| is_same(own, same, is_gap))?;
        let slot = kept.get_mut(place).filter(|slot| slot.is_none())?;
        let mut own = own.clone();
        own.device.name.clone_from(&same.device.name);
        *slot = Some(own);
        Some(same)
    };
    let sames: Vec<Option<&DeviceRecord>> = old.iter().map(&mut same).collect();
    let taker = |own: &DeviceRecord| {
        let place = places.names.get(own.device.name.as_str())?;
        let is_free = kept.get(*place).is_some_and(Option::is_none);
        is_free.then(|| after.devices.get(*place)).flatten()
    };
    // First who leaves a name, then who takes it.
    for own in old.iter().zip(&sames).filter(|(_, same)| same.is_none()).map(|(own, _)| own) {
        if taker(own).is_none() {
            let is_unlisted = unlisted.has(&own.device.name);
            let own = Box::new(own.clone());
            found.push(if is_unlisted {
                Difference::DeviceUnlisted(own)
            } else {
                Difference::DeviceWent(own)
            });
        }
    }
    for (own, same) in old.iter().zip(&sames) {
        let Some(same) = same.filter(|same| same.device.name != own.device.name) else { continue };
        if let Some(index) = own.device.index {
            let (before, after) = (own.device.name.clone(), same.device.name.clone());
            found.push(Difference::DeviceRenamed { index, before, after });
        }
    }
    let mut replaced: BTreeSet<&str> = BTreeSet::new();
    for (own, same) in old.iter().zip(&sames) {
        let successor = same.is_none().then(|| taker(own)).flatten();
        if let Some(after) = successor {
            replaced.insert(&after.device.name);
            let (before, after) = (Box::new(own.clone()), Box::new(after.clone()));
            found.push(Difference::DeviceReplaced { before, after });
        }
    }
    for (own, slot) in after.devices.iter().zip(&kept) {
        if slot.is_none() && !replaced.contains(own.device.name.as_str()) {
            let is_new = !unlisted_before.has(&own.device.name);
            let own = Box::new(own.clone());
            found.push(if is_new {
                Difference::DeviceCame(own)
            } else {
                Difference::DeviceListed(own)
            });
        }
    }
    let all = after.devices.iter().zip(kept);
    now.devices = all.map(|(own, slot)| slot.unwrap_or_else(|| own.clone())).collect();
}

/// What differs of a device that is in both inventories, by the same name.
fn device(before: &DeviceRecord, after: &DeviceRecord, is_gap: bool, found: &mut Vec<Difference>) {
    if before == after {
        return;
    }
    let name = &after.device.name;
    let (old, new) = (bare(before), bare(after));
    // Sysfs has them as one device already. If its node was made anew, and is as it was, nothing of it differs.
    let mut same = old.clone();
    same.device.identity.clone_from(&new.device.identity);
    if same != new {
        found.push(Difference::Device { before: Box::new(old), after: Box::new(new) });
    }
    for (before, after) in before.ports.iter().zip(&after.ports) {
        port(name, before, after, found);
    }
    match (&before.gids, &after.gids) {
        (Some(Ok(before)), Some(Ok(after))) => rows(name, (before, after), is_gap, found),
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
fn rows(
    device: &str,
    (before, after): (&[GidRow], &[GidRow]),
    is_gap: bool,
    found: &mut Vec<Difference>,
) {
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
    let moves = find_moves(&mut left, &mut come, is_gap);
    let mut coming: BTreeMap<(u32, u32), &GidRow> =
        come.iter().map(|own| (slot(own), *own)).collect();
    for row in left {
        match coming.remove(&slot(row)) {
            Some(own) => in_place.push(changed(row, own)),
            None => found.push(Difference::GidWent { device: name(), row: boxed(row) }),
        }
    }
    found.append(&mut in_place);
    // A row moves once its new slot is free, and then its own is.
    let sources: BTreeSet<(u32, u32)> = moves.iter().map(|(from, _)| slot(from)).collect();
    let mut left: BTreeMap<(u32, u32), Move<'_>> =
        moves.iter().map(|own| (slot(own.1), *own)).collect();
    let follow = |left: &mut BTreeMap<_, Move<'_>>, found: &mut Vec<Difference>, mut to| {
        while let Some((before, after)) = left.remove(&to) {
            to = slot(before);
            let (before, after) = (boxed(before), boxed(after));
            found.push(Difference::GidMoved { device: name(), before, after });
        }
    };
    for to in moves.iter().map(|(_, to)| slot(to)).filter(|own| !sources.contains(own)) {
        follow(&mut left, found, to);
    }
    // Rows that change places in a circle: one goes and comes again.
    for (before, after) in &moves {
        if left.remove(&slot(after)).is_none() {
            continue;
        }
        found.push(Difference::GidWent { device: name(), row: boxed(before) });
        follow(&mut left, found, slot(before));
        coming.insert(slot(after), after);
    }
    for row in coming.into_values() {
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
/// interface are found first: by its name, and if there was no gap by its index, too.
fn find_moves<'r>(
    left: &mut Vec<&'r GidRow>,
    come: &mut Vec<&'r GidRow>,
    is_gap: bool,
) -> Vec<Move<'r>> {
    let netdev = |row: &'r GidRow| {
        let own = row.netdev.as_ref();
        let index = own.map(|own| own.index).or(row.record.entry.netdev_ifindex());
        (index.filter(|_| !is_gap), own.map(|own| own.name.as_str()))
    };
    let mut moves = Vec::new();
    let mut gone: BTreeSet<(u32, u32)> = BTreeSet::new();
    for with_netdev in [true, false] {
        let same = |row: &'r GidRow| {
            let own = &row.record.entry;
            (own.port(), own.gid(), own.gid_type().0, with_netdev.then(|| netdev(row)))
        };
        let mut known: BTreeMap<_, VecDeque<&GidRow>> = BTreeMap::new();
        for row in left.iter().filter(|own| !gone.contains(&slot(own))) {
            known.entry(same(row)).or_default().push_back(row);
        }
        come.retain(|to| {
            let from = known.get_mut(&same(to)).and_then(VecDeque::pop_front);
            moves.extend(from.map(|from| (from, *to)));
            gone.extend(from.map(slot));
            from.is_none()
        });
    }
    left.retain(|own| !gone.contains(&slot(own)));
    moves
}

fn interfaces(before: &[Interface], after: &[Interface], found: &mut Vec<Difference>) {
    let mut coming = Vec::new();
    for (before, after) in side_by_side(before, after, |own| (own.index.get(), 0)) {
        let has_other_name = before.zip(after).is_some_and(|(one, other)| one.name != other.name);
        let (before, after) = (before.cloned(), after.cloned());
        if has_other_name {
            found.push(Difference::Interface { before, after: None });
            coming.push(Difference::Interface { before: None, after });
        } else if before.is_none() {
            coming.push(Difference::Interface { before, after });
        } else if before != after {
            found.push(Difference::Interface { before, after });
        }
    }
    // What has a name now is said last of it.
    found.append(&mut coming);
}

#[cfg(test)]
pub(super) mod tests;
