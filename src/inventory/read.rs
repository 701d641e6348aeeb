//! Filling an [`Inventory`] from this host, or from a sysfs tree.

mod device;
mod settings;

use core::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};

use rustix::io::Errno;

use super::{DeviceRecord, GidRow, Inventory, Problem, Wanted};
use crate::device::{Absence, Device};
use crate::gid::{Gid, GidRecord};
use crate::host::{GidTable, Host};
use crate::netlink::route::RouteDump;
use crate::sysfs::{Sysfs, is_absent};
use crate::text::is_plain_char;
use device::{find_driver, read_device};
use settings::read_settings;

/// Modules that RDMA needs, or that people look for.
const MODULES: [&str; 6] = ["ib_core", "ib_uverbs", "ib_umad", "ib_ipoib", "rdma_cm", "rdma_ucm"];

impl Host {
    /// Reads what is wanted. It never fails: what could not be read is a [`Problem`] in its place.
    ///
    /// With [`Parts::host`](super::Parts::host) also the process's environment and NCCL's files are read;
    /// of another host's sysfs tree only the tree.
    #[must_use]
    pub fn inventory(&mut self, wanted: &Wanted<'_>) -> Inventory {
        let parts = wanted.parts;
        let mut inventory = self.listed(wanted);
        let mut tables = Vec::new();
        for record in &mut inventory.devices {
            if parts.host && self.is_here() {
                look_at_node(record);
            }
            if parts.drivers && self.is_here() {
                find_driver(record);
            }
            if parts.has_ports() || parts.gids {
                tables.push(read_device(record, self.sysfs(), wanted));
            }
        }
        if parts.host || inventory.is_empty() {
            inventory.absences = self.absences_beside(&inventory);
            inventory.shares_namespaces = self.shares_namespaces();
        }
        if parts.host {
            inventory.modules = modules(self.sysfs());
        }
        // Once for all: it costs some drivers commands to their firmware.
        let mut dump = None;
        if parts.interfaces {
            dump = self.dump().unwrap_or_else(|error| {
                inventory.problems.push(error.into());
                None
            });
            inventory.interfaces = dump.as_ref().map(RouteDump::interfaces);
        }
        if parts.gids {
            self.name_rows(&mut inventory, &tables, dump, wanted);
        }
        if parts.port_netdevs {
            self.name_ports(&mut inventory);
        }
        if parts.types {
            self.find_hidden_types(&mut inventory);
        }
        if parts.host && self.is_here() {
            let uname = rustix::system::uname();
            inventory.host = Some(shown(&uname.nodename().to_string_lossy()));
            inventory.kernel = Some(shown(&uname.release().to_string_lossy()));
            let (settings, problems) = read_settings();
            inventory.settings = settings;
            inventory.problems.extend(problems);
        }
        inventory
    }

    /// Why devices may be missing beside those that are listed.
    fn absences_beside(&mut self, inventory: &Inventory) -> Vec<Absence> {
        let devices = inventory.devices.iter().map(|record| &record.device);
        let listed: BTreeSet<&str> =
            devices.chain(&inventory.others).map(|device| device.name.as_str()).collect();
        let mut absences = self.absence();
        absences.retain(|reason| match reason {
            // What this host's /dev holds has no bearing on another's.
            Absence::NoNodes { .. } => self.is_here(),
            // The sysfs of another namespace does not have a device that netlink lists here.
            Absence::OtherNamespace { device, .. } => !listed.contains(device.as_str()),
            _ => true,
        });
        absences
    }

    /// The devices that are wanted, of which nothing else is read yet.
    fn listed(&mut self, wanted: &Wanted<'_>) -> Inventory {
        let mut inventory = Inventory::default();
        match self.list() {
            Ok(listing) => {
                for error in &listing.problems {
                    match error.device() {
                        None => inventory.problems.push(error.into()),
                        Some(device) => {
                            inventory.unlisted.push((device.to_owned(), error.into()));
                        }
                    }
                }
                let places = self.places(&listing.devices);
                let (devices, others) =
                    listing.devices.into_iter().partition(|device| (wanted.devices)(device));
                inventory.others = others;
                let devices = self.leave_out(devices, wanted, &mut inventory);
                inventory.devices = devices.into_iter().map(DeviceRecord::new).collect();
                for record in &mut inventory.devices {
                    record.place = places.get(&record.device.name).copied();
                }
            }
            Err(error) => inventory.problems.push(error.into()),
        }
        inventory.without_netlink = self.netlink_error().map(Problem::from);
        // Of devices that sysfs listed, as netlink did not answer, it says nothing.
        let is_known = |record: &DeviceRecord| record.device.index.is_some();
        inventory.has_netlink = self.is_here()
            && inventory.without_netlink.is_none()
            && inventory.devices.iter().all(is_known);
        inventory
    }

    /// Leaves out devices that have no GID of the interface that is wanted.
    fn leave_out(
        &mut self,
        devices: Vec<Device>,
        wanted: &Wanted<'_>,
        inventory: &mut Inventory,
    ) -> Vec<Device> {
        let Some(name) = wanted.netdev else { return devices };
        let known: Vec<&Device> = devices.iter().collect();
        let may = self.may_have_netdev(&known, name).unwrap_or_else(|error| {
            inventory.problems.push(error.into());
            vec![true; devices.len()]
        });
        let mut may = may.into_iter();
        let (left, others): (Vec<_>, Vec<_>) =
            devices.into_iter().partition(|_| may.next().unwrap_or(true));
        inventory.others.extend(others);
        left
    }

    /// Finds the interface of each row.
    fn name_rows(
        &mut self,
        inventory: &mut Inventory,
        tables: &[Option<GidTable>],
        dump: Option<RouteDump>,
        wanted: &Wanted<'_>,
    ) {
        let is_wanted = |record: &DeviceRecord| {
            let mut rows = record.all_rows().iter();
            rows.any(|row| (wanted.rows)(&record.device, &row.record))
        };
        if !inventory.devices.iter().any(is_wanted) {
            return;
        }
        let known: Vec<&GidTable> = tables.iter().flatten().collect();
        let names = self.netdevs_by(&known, dump).unwrap_or_else(|error| {
            inventory.problems.push(error.into());
            inventory.has_netlink = false;
            Vec::new()
        });
        let mut names = names.into_iter();
        for (record, table) in inventory.devices.iter_mut().zip(tables) {
            let (Some(table), Some(Ok(rows))) = (table, &mut record.gids) else { continue };
            // The rows are those of the table, or one of them.
            let mut rows = rows.iter_mut();
            let mut row = rows.next();
            for (record, name) in table.iter().zip(names.next().unwrap_or_default()) {
                if let Some(own) = row.as_mut()
                    && slot(&own.record) == slot(record)
                {
                    own.netdev = name.netdev;
                    own.netdev_is_elsewhere = name.is_elsewhere;
                    row = rows.next();
                }
            }
        }
    }

    /// Finds the interface of each port.
    fn name_ports(&mut self, inventory: &mut Inventory) {
        let numbers = |record: &DeviceRecord| record.ports.iter().map(|port| port.number).collect();
        let listed: Vec<(Device, Vec<u32>)> =
            inventory.devices.iter().map(|it| (it.device.clone(), numbers(it))).collect();
        let ports: Vec<(&Device, u32)> = listed
            .iter()
            .flat_map(|(device, ports)| ports.iter().map(move |port| (device, *port)))
            .collect();
        let found = self.port_netdevs(&ports).unwrap_or_else(|error| {
            inventory.problems.push(error.into());
            // Of no port it is known whether its interface is here.
            inventory.has_netlink = false;
            BTreeMap::new()
        });
        for record in &mut inventory.devices {
            for port in &mut record.ports {
                port.netdev = found.get(&(record.device.name.clone(), port.number)).cloned();
            }
        }
    }

    /// Finds the rows whose types sysfs keeps back.
    fn find_hidden_types(&self, inventory: &mut Inventory) {
        let sysfs = self.sysfs();
        for DeviceRecord { device, gids, .. } in &mut inventory.devices {
            // Its own files, where they are wanted.
            let own = LazyCell::new(|| sysfs.of(device).ok());
            for row in gids.iter_mut().flatten().flatten() {
                row.type_is_hidden |= row.netdev.is_none()
                    && own.as_ref().is_some_and(|own| is_type_hidden(own, &device.name, row));
            }
        }
    }
}

/// What a row is known by in two readings of a table: its place, and the GID in it.
fn slot(record: &GidRecord) -> (u32, u32, Gid) {
    let entry = &record.entry;
    (entry.port(), entry.index(), entry.gid())
}

/// A host's name or the like, which may be any bytes, with `?` for what does not show.
fn shown(text: &str) -> String {
    if text.is_empty() {
        return "?".to_owned();
    }
    text.chars().map(|c| if is_plain_char(c) { c } else { '?' }).collect()
}

/// Whether sysfs keeps back the type of a row that has an interface. Only rows that are not known to
/// be ours are asked about, as others are never hidden.
fn is_type_hidden(sysfs: &Sysfs, device: &str, row: &GidRow) -> bool {
    let entry = &row.record.entry;
    row.record.may_have_netdev()
        && sysfs.port(device, entry.port()).is_ok_and(|folder| {
            let types = folder.join("gid_attrs/types");
            types.read_bytes(&entry.index().to_string()) == Err(Errno::INVAL)
        })
}

fn look_at_node(record: &mut DeviceRecord) {
    let Some(node) = &record.device.node else { return };
    let looked = rustix::fs::stat(&node.path);
    record.node_mode = looked.ok().map(|stat| stat.st_mode);
    record.node_is_missing = looked.is_err_and(is_absent);
}

/// The modules that are there; none if they cannot be looked at, or are not in the tree. A module that is built in and has no
/// parameters has no folder, but its class has.
fn modules(sysfs: &Sysfs) -> Vec<String> {
    let folder = sysfs.folder("module");
    let mut modules = Vec::new();
    for name in MODULES {
        let class = match name {
            "ib_core" => Some("class/infiniband"),
            "ib_uverbs" => Some("class/infiniband_verbs"),
            _ => None,
        };
        let is_there = match rustix::fs::stat(folder.join(name).path()) {
            Ok(_) => true,
            Err(errno) if is_absent(errno) && folder.exists() => {
                class.is_some_and(|class| sysfs.folder(class).exists())
            }
            Err(_) => return Vec::new(),
        };
        modules.extend(is_there.then(|| name.to_owned()));
    }
    modules
}
