//! Filling an [`Inventory`] from this host, or from a sysfs tree.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::settings::{self, NAMES, Setting};
use super::{Answer, DeviceRecord, GidRow, Inventory, PortRecord, Problem};
use crate::device::{Absence, Device, Host};
use crate::netdev::{DeviceGids, Netdev};
use crate::port::LinkLayer;
use crate::reader::{GidRecord, Preference, Reader};
use crate::sysfs::Sysfs;

/// Modules that RDMA needs, or that people look for.
const MODULES: [&str; 6] = ["ib_core", "ib_uverbs", "ib_umad", "ib_ipoib", "rdma_cm", "rdma_ucm"];

/// The most that is read of a file of settings.
const FILE_LIMIT: u64 = 64 * 1024;

/// Which devices are read, and how.
#[derive(Clone, Copy)]
pub struct Wanted<'w> {
    /// Where from. `Sysfs` opens no device.
    pub preference: Preference,
    /// Which devices; others are not opened, and are not in the inventory.
    pub includes: &'w dyn Fn(&Device) -> bool,
}

impl Default for Wanted<'_> {
    /// All devices, by the best source.
    fn default() -> Self {
        Self { preference: Preference::Auto, includes: &|_| true }
    }
}

impl core::fmt::Debug for Wanted<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Wanted").field("preference", &self.preference).finish_non_exhaustive()
    }
}

impl Host {
    /// Reads all that there is to know for choosing GIDs and checking the host. It never fails:
    /// what could not be read is told in its place.
    ///
    /// Of this host also the process's environment and NCCL's files are read; of another host's
    /// sysfs tree only the tree.
    #[must_use]
    pub fn inventory(&mut self, wanted: &Wanted<'_>) -> Inventory {
        let mut inventory = Inventory::default();
        match self.list() {
            Ok(listing) => {
                inventory.problems.extend(listing.problems.iter().map(Problem::from));
                for device in listing.devices.into_iter().filter(wanted.includes) {
                    let mut record = DeviceRecord::new(device);
                    if self.is_here() {
                        record.node_mode = node_mode(&record.device);
                    }
                    read_device(&mut record, self.sysfs(), wanted.preference);
                    inventory.devices.push(record);
                }
            }
            Err(error) => inventory.problems.push(error.into()),
        }
        inventory.absences = self.absence();
        if !self.is_here() {
            // What this host's /dev holds has no bearing on another's.
            inventory.absences.retain(|reason| !matches!(reason, Absence::NoNodes { .. }));
        }
        inventory.has_netlink = self.netlink().is_some();
        inventory.shares_namespaces = self.shares_namespaces();
        let modules = self.sysfs().folder("module");
        let is_there = |name: &&str| modules.join(*name).exists();
        inventory.modules = MODULES.into_iter().filter(is_there).map(str::to_owned).collect();
        match self.interfaces() {
            Ok(interfaces) => inventory.interfaces = interfaces,
            Err(error) => inventory.problems.push(error.into()),
        }
        self.name_netdevs(&mut inventory);
        if self.is_here() {
            let uname = rustix::system::uname();
            inventory.host = Some(uname.nodename().to_string_lossy().into_owned());
            inventory.kernel = Some(uname.release().to_string_lossy().into_owned());
            inventory.settings = read_settings();
        }
        inventory
    }

    /// Says of each port and row what interface of this namespace it has.
    fn name_netdevs(&mut self, inventory: &mut Inventory) {
        let records: Vec<Vec<GidRecord>> = inventory
            .devices
            .iter()
            .map(|device| device.gids.iter().flatten().map(|row| row.record.clone()).collect())
            .collect();
        let devices: Vec<Device> =
            inventory.devices.iter().map(|record| record.device.clone()).collect();
        let gids: Vec<DeviceGids<'_>> = devices
            .iter()
            .zip(&records)
            .map(|(device, records)| DeviceGids { device, records })
            .collect();
        let rows = self.netdevs(&gids).unwrap_or_else(|error| {
            inventory.problems.push(error.into());
            Vec::new()
        });
        let ports: Vec<(&Device, u32)> = devices
            .iter()
            .flat_map(|device| device.ports().map(move |port| (device, port)))
            .collect();
        let ports = self.port_netdevs(&ports).unwrap_or_else(|error| {
            inventory.problems.push(error.into());
            BTreeMap::new()
        });
        let sysfs = self.sysfs();
        let mut rows = rows.into_iter();
        for device in &mut inventory.devices {
            let names: Vec<Option<Netdev>> = rows.next().unwrap_or_default();
            let name = &device.device.name;
            for port in &mut device.ports {
                port.netdev = ports.get(&(name.clone(), port.number)).cloned();
            }
            let mut names = names.into_iter();
            for row in device.gids.iter_mut().flatten() {
                row.netdev = names.next().flatten();
                row.type_is_hidden = row.netdev.is_none() && is_type_hidden(sysfs, name, row);
            }
        }
    }
}

/// Whether sysfs keeps back the type of a row that has an interface. Only rows that are not known to
/// be ours are asked about, as others are never hidden.
fn is_type_hidden(sysfs: &Sysfs, device: &str, row: &GidRow) -> bool {
    let entry = &row.record.entry;
    entry.netdev_ifindex().is_some()
        && sysfs.port(device, entry.port()).is_ok_and(|folder| {
            let types = folder.join("gid_attrs/types");
            types.read_bytes(&entry.index().to_string()) == Err(Errno::INVAL)
        })
}

fn node_mode(device: &Device) -> Option<u32> {
    rustix::fs::stat(&device.node.as_ref()?.path).ok().map(|stat| stat.st_mode)
}

fn read_device(record: &mut DeviceRecord, sysfs: &Sysfs, preference: Preference) {
    let device = record.device.clone();
    let mut reader = match Reader::new(&device, sysfs, preference) {
        Ok(reader) => reader,
        Err(error) => {
            let problem = Problem::from(error);
            record.access = Some(Err(problem.clone()));
            record.ports = device.ports().map(|port| unread(port, &problem)).collect();
            record.gids = Err(problem);
            return;
        }
    };
    let row = |record| GidRow { record, netdev: None, type_is_hidden: false };
    record.gids = reader
        .gid_table()
        .map(|records| records.into_iter().map(row).collect())
        .map_err(Problem::from);
    record.ports =
        device.ports().map(|port| read_port(&mut reader, &device, sysfs, port)).collect();
    if preference != Preference::Sysfs {
        record.access = Some(reader.fallback().map_or(Ok(()), |error| Err(error.into())));
    }
    if let Some(context) = reader.context() {
        record.device.driver = Some(context.driver());
    }
}

/// A port of a device that cannot be read at all.
fn unread(number: u32, problem: &Problem) -> PortRecord {
    PortRecord {
        number,
        attributes: Err(problem.clone()),
        effective: None,
        guid: Err(problem.clone()),
        netdev: None,
        pkeys: None,
    }
}

fn read_port(reader: &mut Reader<'_>, device: &Device, sysfs: &Sysfs, number: u32) -> PortRecord {
    let attributes = reader.port(number);
    let is_ethernet = attributes
        .as_ref()
        .is_ok_and(|(attributes, _)| attributes.link_layer == LinkLayer::ETHERNET);
    let pkeys = || -> Answer<_> {
        let mut pkeys = sysfs.query_pkeys(&device.name, number)?;
        pkeys.retain(|(_, pkey)| pkey.is_valid());
        Ok(pkeys)
    };
    PortRecord {
        number,
        attributes: attributes.map_err(Problem::from),
        effective: reader.context().and_then(|context| context.query_port_speed(number).ok()),
        guid: reader.port_guid(number).map_err(Problem::from),
        netdev: None,
        pkeys: (!is_ethernet).then(pkeys),
    }
}

/// The variables of this process, then those of NCCL's files.
fn read_settings() -> Vec<Setting> {
    let variable =
        |name: &str| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned());
    let mut found: Vec<Setting> = NAMES
        .iter()
        .filter_map(|name| {
            Some(Setting { name: (*name).to_owned(), value: variable(name)?, file: None })
        })
        .collect();
    let own = variable("NCCL_CONF_FILE").filter(|path| !path.is_empty()).map(PathBuf::from);
    let own = own.or_else(|| Some(Path::new(&variable("HOME")?).join(".nccl.conf")));
    for path in own.into_iter().chain([PathBuf::from("/etc/nccl.conf")]) {
        let mut bytes = Vec::new();
        let read = std::fs::File::open(&path)
            .and_then(|file| file.take(FILE_LIMIT).read_to_end(&mut bytes));
        if read.is_ok() {
            let text = String::from_utf8_lossy(&bytes);
            found.extend(settings::parse(&text, &path.to_string_lossy()));
        }
    }
    found
}
