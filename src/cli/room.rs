//! Whether NCCL has room for all ports of a host.

use std::collections::BTreeSet;

use uverbs::choose::nccl::ROOM;
use uverbs::inventory::{DeviceRecord, Inventory};

/// How many ports a host's devices have, also those that were listed and not read.
fn ports(inventory: &Inventory) -> usize {
    let Inventory { devices, others, .. } = inventory;
    let mut seen: BTreeSet<&str> = devices.iter().map(|own| own.device.name.as_str()).collect();
    let others = others.iter().filter(|own| seen.insert(&own.name)).map(|own| own.ports().count());
    devices.iter().map(|own| own.ports.len()).chain(others).fold(0, usize::saturating_add)
}

/// Whether a host has devices that could not even be listed: they may have any number of ports.
pub(crate) fn has_unlisted(inventory: &Inventory) -> bool {
    let others: BTreeSet<&str> = inventory.others.iter().map(|own| own.name.as_str()).collect();
    inventory.unlisted.iter().any(|(name, _)| !others.contains(name.as_str()))
}

/// Whether the ports that are known are more than NCCL has room for.
pub(crate) fn fills(inventory: &Inventory) -> bool {
    ports(inventory) > ROOM
}

/// Whether it is known in which order libibverbs lists a host's devices.
pub(crate) fn has_order(inventory: &Inventory) -> bool {
    let mut devices = inventory.devices.iter();
    devices.all(|own| own.device.index.or(own.place).is_some())
}

/// Why it is not known for which ports of a host NCCL has room, if that is so.
pub(crate) fn doubt_room(inventory: &Inventory) -> Option<String> {
    let all = ports(inventory);
    let is_read = |own: &&DeviceRecord| own.gids.as_ref().is_some_and(Result::is_ok);
    let read = inventory.devices.iter().filter(is_read).flat_map(|own| &own.ports);
    let read = read.filter(|own| own.known().is_some()).count();
    if has_unlisted(inventory) {
        Some(format!("{read} could be read, while not all devices could be listed"))
    } else if read < all && fills(inventory) {
        Some(format!("{read} of {all} could be read"))
    } else if fills(inventory) && !has_order(inventory) {
        Some(format!("in which order it takes the {all} is not known"))
    } else {
        None
    }
}
