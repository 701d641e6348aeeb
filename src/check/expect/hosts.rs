//! Which inventories are of one host.

use std::collections::{BTreeMap, BTreeSet};

use crate::guid::Guid;
use crate::inventory::Inventory;

/// Hosts, each counted once, of whichever of its inventories are added.
///
/// Inventories of one name are of one host if nodes have a GUID in common: devices come and go. One without a GUID may
/// be of any host of its name.
#[derive(Clone, Debug, Default)]
pub struct Hosts {
    /// The name of each inventory, and the place of an earlier one of the same host; its own if it is the first.
    all: Vec<(Option<String>, usize)>,
    /// The place of each name and GUID, or of a name without one.
    known: BTreeMap<(String, Option<Guid>), usize>,
}

impl Hosts {
    /// Adds an inventory, by the name that its host is known by. Without a name it is a host of its own.
    pub fn add(&mut self, name: Option<&str>, inventory: &Inventory) {
        let mut own = self.all.len();
        self.all.push((name.map(str::to_owned), own));
        let Some(name) = name else { return };
        let guids = inventory.devices.iter().map(|own| own.device.node_guid);
        let mut guids: BTreeSet<Option<Guid>> =
            guids.filter(|guid| !guid.is_zero()).map(Some).collect();
        if guids.is_empty() {
            guids.insert(None);
        }
        for guid in guids {
            let key = (name.to_owned(), guid);
            let other = self.known.get(&key).copied().map_or(own, |place| self.first(place));
            let (first, last) = (own.min(other), own.max(other));
            if let Some((_, place)) = self.all.get_mut(last) {
                *place = first;
            }
            self.known.insert(key, first);
            own = first;
        }
    }

    /// The place of the first inventory of a host. The way there is half as long afterwards, so that no chain is walked
    /// again and again.
    fn first(&mut self, mut place: usize) -> usize {
        let before = |all: &[(Option<String>, usize)], place: usize| {
            all.get(place).map_or(place, |own| own.1)
        };
        loop {
            let next = before(&self.all, place);
            if next == place {
                return place;
            }
            let after = before(&self.all, next);
            if let Some((_, own)) = self.all.get_mut(place) {
                *own = after;
            }
            place = after;
        }
    }

    /// The name of each host, in the order in which they were added; `None` for one without a name.
    pub fn names(&self) -> impl Iterator<Item = Option<&str>> {
        let firsts = self.all.iter().enumerate().filter(|(place, (_, first))| place == first);
        let names = firsts.map(|(place, (name, _))| (place, name.as_deref()));
        names.filter(|(place, name)| !self.may_be_another(*place, *name)).map(|(_, name)| name)
    }

    /// Whether an inventory has no GUID, and its host may be another one of the name.
    fn may_be_another(&self, place: usize, name: Option<&str>) -> bool {
        let Some(name) = name else { return false };
        let mut keys = self.known.range((name.to_owned(), None)..);
        let is_bare = keys.next().is_some_and(|((_, guid), own)| guid.is_none() && *own == place);
        is_bare && keys.next().is_some_and(|((own, _), _)| own == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Device;
    use crate::inventory::DeviceRecord;

    /// Each inventory joins two hosts, the last ones first: the longest way there is.
    #[test]
    fn a_way_that_was_walked_gets_shorter() {
        const COUNT: usize = 64;
        let mut hosts = Hosts::default();
        let mut add = |guids: &[usize]| {
            let mut inventory = Inventory::default();
            for guid in guids {
                let mut device = Device::named("mlx5_0");
                device.node_guid = u64::try_from(*guid).unwrap().into();
                inventory.devices.push(DeviceRecord::new(device));
            }
            hosts.add(Some("a"), &inventory);
        };
        (1..=COUNT).for_each(|own| add(&[own]));
        (2..=COUNT).rev().for_each(|own| add(&[own - 1, own]));
        let steps = |hosts: &Hosts| {
            let before = |place: &usize| hosts.all.get(*place).map(|own| own.1);
            let way = std::iter::successors(Some(COUNT - 1), before);
            way.take_while(|place| *place != 0).count()
        };
        let all = steps(&hosts);
        assert_eq!(hosts.first(COUNT - 1), 0);
        assert!(all > 2 && steps(&hosts) <= all.div_ceil(2), "{all}");
        assert_eq!(hosts.names().count(), 1);
    }
}
