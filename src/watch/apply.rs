//! Applying a difference to an inventory.

use core::num::NonZeroU32;
use std::collections::BTreeMap;

use super::difference::Difference;
use crate::inventory::{DeviceRecord, GidRow, Inventory};
use crate::netdev::Interface;
use crate::text::natural;

/// A difference that was not applied, because the inventory is not as it was before.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} is not as it was when the difference was found")]
pub struct Mismatch {
    what: String,
}

fn mismatch<T>(what: &str) -> Result<T, Mismatch> {
    Err(Mismatch { what: what.to_owned() })
}

impl Difference {
    /// Changes an inventory from what it was before to what it is after.
    ///
    /// ```
    /// use uverbs::inventory::Inventory;
    /// use uverbs::watch::differences;
    ///
    /// let (before, after) = (Inventory::default(), Inventory::default());
    /// let mut now = before.clone();
    /// for difference in differences(&before, &after) {
    ///     difference.apply(&mut now)?;
    /// }
    /// assert_eq!(now, after);
    /// # Ok::<(), uverbs::watch::Mismatch>(())
    /// ```
    ///
    /// # Errors
    /// If the inventory is not as it was before. It is then unchanged.
    pub fn apply(&self, inventory: &mut Inventory) -> Result<(), Mismatch> {
        let devices = &mut inventory.devices;
        match self {
            Self::DeviceCame(own) | Self::DeviceListed(own) => {
                if find(devices, &own.device.name).is_ok() {
                    return mismatch(&own.device.name);
                }
                put(devices, (**own).clone());
            }
            Self::DeviceWent(own) | Self::DeviceUnlisted(own) => drop(take(devices, own)?),
            Self::DeviceRenamed { index, before, after } => {
                let is_own = |own: &DeviceRecord| {
                    own.device.index == Some(*index) && own.device.name == *before
                };
                let Some(place) = devices.iter().position(is_own) else { return mismatch(before) };
                let mut own = devices.remove(place);
                own.device.name.clone_from(after);
                put(devices, own);
            }
            Self::DeviceReplaced { before, after } => {
                take(devices, before)?;
                put(devices, (**after).clone());
            }
            Self::Device { before, after } => {
                let place = find(devices, &before.device.name)?;
                let Some(own) = devices.get_mut(place) else {
                    return mismatch(&before.device.name);
                };
                if bare(own) != **before {
                    return mismatch(&before.device.name);
                }
                let (ports, gids) = (core::mem::take(&mut own.ports), own.gids.take());
                *own = DeviceRecord { ports, gids, ..(**after).clone() };
            }
            Self::Port { device, port, before, after } => {
                let own = record(devices, device)?;
                let place = own.ports.binary_search_by_key(port, |own| own.number);
                match place.ok().and_then(|place| own.ports.get_mut(place)) {
                    Some(own) if before.in_port(own).as_ref() == Some(before) => {
                        after.clone().set(own);
                    }
                    _ => return mismatch(&format!("{device}:{port}")),
                }
            }
            Self::Table { device, before, after } => {
                let own = record(devices, device)?;
                if own.gids != *before {
                    return mismatch(&format!("the GID table of {device}"));
                }
                own.gids.clone_from(after);
            }
            Self::GidCame { device, .. }
            | Self::GidWent { device, .. }
            | Self::GidChanged { device, .. }
            | Self::GidMoved { device, .. } => self.apply_row(device, rows(devices, device)?)?,
            Self::InterfaceRenamed { index, before, after } => {
                if !rename(inventory, *index, before, after) {
                    return mismatch(&format!("the interface {index}"));
                }
            }
            Self::Interface { before, after } => {
                apply_interface(inventory, before.as_ref(), after.as_ref())?;
            }
            Self::Host { before, after } => apply_host(inventory, before, after)?,
        }
        Ok(())
    }
}

impl Difference {
    /// Applies a difference of rows.
    fn apply_row(&self, device: &str, rows: &mut Vec<GidRow>) -> Result<(), Mismatch> {
        match self {
            Self::GidCame { row, .. } => match place(rows, row) {
                Ok(_) => return mismatch(&slot_name(device, row)),
                Err(place) => rows.insert(place, (**row).clone()),
            },
            Self::GidWent { row, .. } => {
                let place = held(rows, device, row)?;
                rows.remove(place);
            }
            Self::GidChanged { before, after, .. } => {
                let place = held(rows, device, before)?;
                match rows.get_mut(place) {
                    Some(own) if slot(before) == slot(after) => own.clone_from(after),
                    _ => return mismatch(&slot_name(device, after)),
                }
            }
            Self::GidMoved { before, after, .. } => {
                let from = held(rows, device, before)?;
                if place(rows, after).is_ok() {
                    return mismatch(&slot_name(device, after));
                }
                rows.remove(from);
                let to = place(rows, after).unwrap_or_else(|place| place);
                rows.insert(to, (**after).clone());
            }
            _ => {}
        }
        Ok(())
    }
}

fn apply_interface(
    inventory: &mut Inventory,
    before: Option<&Interface>,
    after: Option<&Interface>,
) -> Result<(), Mismatch> {
    let Some(index) = before.or(after).map(|own| own.index) else {
        return mismatch("an interface");
    };
    let name = format!("the interface {index}");
    let Some(all) = &mut inventory.interfaces else { return mismatch(&name) };
    let place = all.binary_search_by_key(&index, |own| own.index);
    let is_same_index = after.is_none_or(|own| own.index == index);
    if place.ok().and_then(|place| all.get(place)) != before || !is_same_index {
        return mismatch(&name);
    }
    match (place, after) {
        (Ok(place), None) => drop(all.remove(place)),
        (Ok(place), Some(own)) => {
            if let Some(old) = all.get_mut(place) {
                old.clone_from(own);
            }
        }
        (Err(place), Some(own)) => all.insert(place, own.clone()),
        (Err(_), None) => {}
    }
    Ok(())
}

fn apply_host(
    inventory: &mut Inventory,
    before: &Inventory,
    after: &Inventory,
) -> Result<(), Mismatch> {
    let with_interfaces = before.interfaces.is_some() || after.interfaces.is_some();
    if host_part(inventory, with_interfaces) != *before {
        return mismatch("the host");
    }
    let devices = core::mem::take(&mut inventory.devices);
    let interfaces = inventory.interfaces.take();
    let mut now = Inventory { devices, ..after.clone() };
    if !with_interfaces {
        now.interfaces = interfaces;
    }
    *inventory = now;
    Ok(())
}

/// A device without its ports and GIDs.
pub(super) fn bare(own: &DeviceRecord) -> DeviceRecord {
    let DeviceRecord {
        device,
        hardware,
        place,
        node_mode,
        node_is_missing,
        node_is_in_nodev,
        node_is_read_only,
        access,
        ports: _,
        gids: _,
    } = own;
    DeviceRecord {
        device: device.clone(),
        hardware: hardware.clone(),
        place: *place,
        node_mode: *node_mode,
        node_is_missing: *node_is_missing,
        node_is_in_nodev: *node_is_in_nodev,
        node_is_read_only: *node_is_read_only,
        access: access.clone(),
        ports: Vec::new(),
        gids: None,
    }
}

/// A host without its devices, and without its interfaces unless they are wanted.
pub(super) fn host_part(own: &Inventory, with_interfaces: bool) -> Inventory {
    Inventory {
        host: own.host.clone(),
        kernel: own.kernel.clone(),
        modules: own.modules.clone(),
        proprietary: own.proprietary.clone(),
        locked_memory: own.locked_memory,
        rdma_cm_access: own.rdma_cm_access.clone(),
        umad_access: own.umad_access.clone(),
        shares_namespaces: own.shares_namespaces,
        has_netlink: own.has_netlink,
        devices: Vec::new(),
        others: own.others.clone(),
        absences: own.absences.clone(),
        interfaces: own.interfaces.clone().filter(|_| with_interfaces),
        has_roce_socket: own.has_roce_socket,
        settings: own.settings.clone(),
        unread_settings: own.unread_settings.clone(),
        home_is_assumed: own.home_is_assumed,
        problems: own.problems.clone(),
        list_failure: own.list_failure.clone(),
        unlisted: own.unlisted.clone(),
        without_netlink: own.without_netlink.clone(),
    }
}

/// Gives an interface another name, wherever it is named; says whether it is anywhere.
pub(super) fn rename(
    inventory: &mut Inventory,
    index: NonZeroU32,
    before: &str,
    after: &str,
) -> bool {
    let names = (before.to_owned(), after.to_owned());
    rename_all(inventory, &BTreeMap::from([(index, names)]))
}

/// The same of many, each by its index, with its names before and after.
pub(super) fn rename_all(
    inventory: &mut Inventory,
    renamed: &BTreeMap<NonZeroU32, (String, String)>,
) -> bool {
    if renamed.is_empty() {
        return false;
    }
    let mut is_any = false;
    let mut set = |index: NonZeroU32, name: &mut String| {
        if let Some((_, after)) = renamed.get(&index).filter(|(before, _)| name == before) {
            is_any = true;
            name.clone_from(after);
        }
    };
    let interfaces = inventory.interfaces.as_deref_mut().unwrap_or_default();
    for index in renamed.keys() {
        let place = interfaces.binary_search_by_key(index, |own| own.index);
        if let Some(own) = place.ok().and_then(|place| interfaces.get_mut(place)) {
            set(own.index, &mut own.name);
        }
    }
    for device in &mut inventory.devices {
        for own in device.ports.iter_mut().flat_map(|port| &mut port.netdev).flatten() {
            set(own.index, &mut own.name);
        }
        for row in device.gids.iter_mut().flatten().flatten() {
            if let Some(own) = &mut row.netdev {
                set(own.index, &mut own.name);
                row.record.sysfs_netdev.iter_mut().for_each(|name| set(own.index, name));
            }
        }
    }
    is_any
}

/// A row's place: its port and its index.
pub(super) fn slot(row: &GidRow) -> (u32, u32) {
    (row.record.entry.port(), row.record.entry.index())
}

fn slot_name(device: &str, row: &GidRow) -> String {
    let (port, index) = slot(row);
    format!("{device}:{port} {index}")
}

/// A device's place, by its name.
fn find(devices: &[DeviceRecord], name: &str) -> Result<usize, Mismatch> {
    devices.iter().position(|own| own.device.name == name).map_or_else(|| mismatch(name), Ok)
}

fn record<'d>(
    devices: &'d mut [DeviceRecord],
    name: &str,
) -> Result<&'d mut DeviceRecord, Mismatch> {
    let place = find(devices, name)?;
    devices.get_mut(place).map_or_else(|| mismatch(name), Ok)
}

fn rows<'d>(devices: &'d mut [DeviceRecord], name: &str) -> Result<&'d mut Vec<GidRow>, Mismatch> {
    match &mut record(devices, name)?.gids {
        Some(Ok(rows)) => Ok(rows),
        _ => mismatch(&format!("the GID table of {name}")),
    }
}

fn place(rows: &[GidRow], row: &GidRow) -> Result<usize, usize> {
    rows.binary_search_by_key(&slot(row), slot)
}

/// The place of a row that is there just so.
fn held(rows: &[GidRow], device: &str, row: &GidRow) -> Result<usize, Mismatch> {
    match place(rows, row) {
        Ok(place) if rows.get(place) == Some(row) => Ok(place),
        _ => mismatch(&slot_name(device, row)),
    }
}

/// Puts a device in its place by its name.
pub(super) fn put(devices: &mut Vec<DeviceRecord>, own: DeviceRecord) {
    let name = &own.device.name;
    let place = devices.partition_point(|other| natural(&other.device.name, name).is_lt());
    devices.insert(place, own);
}

/// Takes a device away that is there just so.
fn take(devices: &mut Vec<DeviceRecord>, own: &DeviceRecord) -> Result<DeviceRecord, Mismatch> {
    let name = &own.device.name;
    match devices.iter().position(|other| other.device.name == *name && other == own) {
        Some(place) => Ok(devices.remove(place)),
        None => mismatch(name),
    }
}
