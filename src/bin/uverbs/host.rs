//! Where answers are sought: this host, a sysfs tree, or a snapshot; and what to say if there is no
//! device.
//!
//! Every command asks a [`Place`], and does not know which kind it is.

use std::collections::BTreeMap;
use std::path::Path;

use uverbs::context::probe_driver;
use uverbs::device::{Absence, Device, Host, Listing};
use uverbs::driver::DriverId;
use uverbs::error::Error;
use uverbs::guid::Guid;
use uverbs::inventory::{DeviceRecord, Inventory, Problem, Wanted};
use uverbs::netdev::Netdev;
use uverbs::port::{PortAttributes, Rate};
use uverbs::reader::{GidRecord, GidTable, Preference, Reader, Source};

use crate::report::{EINVAL, Report};
use crate::selection::Asked;

/// Where the nodes are on any host; of another host they are named, never opened.
const NODES: &str = "/dev/infiniband";

/// What is asked.
#[derive(Debug)]
pub(crate) enum Place {
    /// This host, or another's sysfs tree.
    Host(Host),
    /// What was known of a host when its snapshot was written.
    Snapshot(Box<Recorded>),
}

/// A host's record, with the position of each device.
#[derive(Debug)]
pub(crate) struct Recorded {
    inventory: Inventory,
    places: BTreeMap<String, usize>,
}

impl Recorded {
    fn device(&self, name: &str) -> Option<&DeviceRecord> {
        self.inventory.devices.get(*self.places.get(name)?)
    }
}

impl Place {
    /// A snapshot.
    pub(crate) fn of(inventory: Inventory) -> Self {
        let names = inventory.devices.iter().map(|record| record.device.name.clone());
        let places = names.enumerate().map(|(place, name)| (name, place)).collect();
        Self::Snapshot(Box::new(Recorded { inventory, places }))
    }

    pub(crate) fn new(sysfs: Option<&Path>) -> Self {
        Self::Host(sysfs.map_or_else(Host::new, |sysfs| Host::rooted(sysfs, NODES)))
    }

    /// Whether it is this host, so that its devices can be opened.
    pub(crate) fn is_here(&self) -> bool {
        matches!(self, Self::Host(host) if host.is_here())
    }

    /// Whether it is another host's sysfs tree, whose own word of interfaces is all there is.
    pub(crate) fn is_tree(&self) -> bool {
        matches!(self, Self::Host(host) if !host.is_here())
    }

    /// Whether a snapshot holds interfaces.
    pub(crate) fn knows_interfaces(&self) -> bool {
        match self {
            Self::Host(_) => true,
            Self::Snapshot(recorded) => recorded.inventory.has_netlink,
        }
    }

    /// All that is known of it.
    pub(crate) fn inventory(self, wanted: &Wanted<'_>) -> Inventory {
        match self {
            Self::Host(mut host) => host.inventory(wanted),
            Self::Snapshot(recorded) => {
                let mut inventory = recorded.inventory;
                let count = inventory.devices.len();
                inventory.devices.retain(|record| (wanted.includes)(&record.device));
                inventory.is_partial = inventory.devices.len() < count;
                inventory
            }
        }
    }

    /// Lists the devices. If there is none, says why. A device that cannot be read is a problem if
    /// it is asked for.
    pub(crate) fn devices(&mut self, asked: &Asked<'_>, report: &mut Report) -> Vec<Device> {
        let host = match self {
            Self::Host(host) => host,
            Self::Snapshot(recorded) => {
                let inventory = &recorded.inventory;
                for problem in &inventory.problems {
                    report.host_problem(problem.clone());
                }
                if inventory.devices.is_empty() && inventory.problems.is_empty() {
                    explain_absence(&inventory.absences, inventory.shares_namespaces, report);
                }
                return inventory.devices.iter().map(|record| record.device.clone()).collect();
            }
        };
        match host.list() {
            Ok(Listing { devices, problems }) => {
                if let Some(error) = host.netlink_error().filter(|_| !devices.is_empty()) {
                    report.note(format!(
                        "{error}; sysfs was read: drivers, protocols and interfaces are not known"
                    ));
                }
                if devices.is_empty() && problems.is_empty() {
                    let mut reasons = host.absence();
                    if !host.is_here() {
                        reasons.retain(|reason| !matches!(reason, Absence::NoNodes { .. }));
                    }
                    explain_absence(&reasons, host.shares_namespaces(), report);
                }
                for error in &problems {
                    let name = error.subject();
                    if asked.has_device(name) {
                        report.problem(name, error);
                    }
                }
                devices
            }
            Err(error) => {
                report.host_problem(&error);
                Vec::new()
            }
        }
    }

    /// The driver as netlink tells it, or as the device does when asked. Not to know it is no problem
    /// where the device cannot be asked.
    pub(crate) fn driver(&self, device: &Device, report: &mut Report) -> Option<DriverId> {
        if device.driver.is_some() || device.node.is_none() || !self.is_here() {
            return device.driver;
        }
        match probe_driver(device) {
            Ok(driver) => Some(driver),
            Err(error) => {
                if !error.leaves_no_ioctl() {
                    report.problem(&device.name, &error);
                }
                None
            }
        }
    }

    /// What reads one device.
    pub(crate) fn reader<'p>(
        &'p self,
        device: &'p Device,
        preference: Preference,
    ) -> Result<DeviceReader<'p>, Problem> {
        match self {
            Self::Host(host) => {
                Ok(DeviceReader::Live(Reader::new(device, host.sysfs(), preference)?))
            }
            Self::Snapshot(recorded) => {
                let record = recorded.device(&device.name);
                record.map(DeviceReader::Record).ok_or_else(|| unknown(&device.name))
            }
        }
    }

    /// The interface of each row of each table, if it is of that host's network namespace.
    pub(crate) fn netdevs(
        &mut self,
        tables: &[&Table],
        report: &mut Report,
    ) -> Vec<Vec<Option<Netdev>>> {
        let read = tables.iter().filter_map(|table| match table {
            Table::Read(table) => Some(&**table),
            Table::Recorded { .. } => None,
        });
        let read: Vec<&GidTable> = read.collect();
        let named = match self {
            Self::Host(host) if !read.is_empty() => host.netdevs(&read).unwrap_or_else(|error| {
                report.host_problem(&error);
                Vec::new()
            }),
            _ => Vec::new(),
        };
        let mut named = named.into_iter();
        let of_table = |table: &&Table| match table {
            Table::Read(_) => named.next().unwrap_or_default(),
            Table::Recorded { netdevs, .. } => netdevs.clone(),
        };
        tables.iter().map(of_table).collect()
    }

    /// The interface of each port, likewise.
    pub(crate) fn port_netdevs(
        &mut self,
        ports: &[(&Device, u32)],
        report: &mut Report,
    ) -> BTreeMap<(String, u32), Netdev> {
        match self {
            Self::Host(host) => host.port_netdevs(ports).unwrap_or_else(|error| {
                report.host_problem(&error);
                BTreeMap::new()
            }),
            Self::Snapshot(recorded) => ports
                .iter()
                .filter_map(|(device, port)| {
                    let netdev = recorded.device(&device.name)?.port(*port)?.netdev.clone()?;
                    Some(((device.name.clone(), *port), netdev))
                })
                .collect(),
        }
    }
}

pub(crate) fn explain_absence(
    reasons: &[Absence],
    shares_namespaces: Option<bool>,
    report: &mut Report,
) {
    if reasons.is_empty() {
        report.note("no RDMA device");
    }
    for reason in reasons {
        report.note(format!("no RDMA device: {reason}"));
    }
    if shares_namespaces == Some(false) {
        report.note(
            "each RDMA device belongs to one network namespace (rdma system: netns exclusive): \
             there may be devices in others",
        );
    }
}

/// All GIDs of a device.
#[derive(Debug)]
pub(crate) enum Table {
    /// As it was read just now.
    Read(Box<GidTable>),
    /// As it was recorded, with the interfaces' names.
    Recorded { records: Vec<GidRecord>, netdevs: Vec<Option<Netdev>> },
}

impl Table {
    pub(crate) fn records(&self) -> &[GidRecord] {
        match self {
            Self::Read(table) => table,
            Self::Recorded { records, .. } => records,
        }
    }
}

/// Reads one device, or what was recorded of it.
#[derive(Debug)]
pub(crate) enum DeviceReader<'p> {
    Live(Reader<'p>),
    Record(&'p DeviceRecord),
}

impl DeviceReader<'_> {
    /// Why sysfs was read although the ioctl was wanted.
    pub(crate) fn fallback(&self) -> Option<&Error> {
        match self {
            Self::Live(reader) => reader.fallback(),
            Self::Record(_) => None,
        }
    }

    /// One GID; `None` if the slot is empty.
    pub(crate) fn gid(&mut self, port: u32, index: u32) -> Result<Option<GidRecord>, Problem> {
        let record = match self {
            Self::Live(reader) => return Ok(reader.gid(port, index)?),
            Self::Record(record) => record,
        };
        let name = &record.device.name;
        let (attributes, _) = attributes(record, port)?;
        if index >= attributes.gid_tbl_len {
            let text = format!(
                "{name}: query GID {index} of port {port}: Invalid argument (errno {EINVAL}); the \
                 index is outside its table"
            );
            return Err(Problem { text, errno: EINVAL });
        }
        record.gids.as_ref().map_err(Clone::clone)?;
        Ok(record.row(port, index).map(|row| row.record.clone()))
    }

    /// All GIDs of all ports.
    pub(crate) fn gid_table(&mut self) -> Result<Table, Problem> {
        match self {
            Self::Live(reader) => Ok(Table::Read(Box::new(reader.gid_table()?))),
            Self::Record(record) => {
                let rows = record.gids.as_ref().map_err(Clone::clone)?;
                Ok(Table::Recorded {
                    records: rows.iter().map(|row| row.record.clone()).collect(),
                    netdevs: rows.iter().map(|row| row.netdev.clone()).collect(),
                })
            }
        }
    }

    /// A port's attributes.
    pub(crate) fn port(&mut self, port: u32) -> Result<(PortAttributes, Source), Problem> {
        match self {
            Self::Live(reader) => Ok(reader.port(port)?),
            Self::Record(record) => attributes(record, port),
        }
    }

    /// A port's GUID.
    pub(crate) fn port_guid(&mut self, port: u32) -> Result<Option<Guid>, Problem> {
        match self {
            Self::Live(reader) => Ok(reader.port_guid(port)?),
            Self::Record(record) => record
                .port(port)
                .map_or_else(|| Err(unknown(&record.device.name)), |port| port.guid.clone()),
        }
    }

    /// A port's effective rate, where it is told.
    pub(crate) fn effective(&self, port: u32) -> Option<Rate> {
        match self {
            Self::Live(reader) => reader.context()?.query_port_speed(port).ok(),
            Self::Record(record) => record.port(port)?.effective,
        }
    }
}

fn attributes(record: &DeviceRecord, port: u32) -> Result<(PortAttributes, Source), Problem> {
    record
        .port(port)
        .map_or_else(|| Err(unknown(&record.device.name)), |port| port.attributes.clone())
}

fn unknown(device: &str) -> Problem {
    Problem { text: format!("{device}: not in the snapshot (errno {EINVAL})"), errno: EINVAL }
}
