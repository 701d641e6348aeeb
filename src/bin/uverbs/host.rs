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
use uverbs::netdev::{DeviceGids, Netdev};
use uverbs::port::{PortAttributes, Rate};
use uverbs::reader::{GidRecord, Preference, Reader, Source};
use uverbs::selector::Selector;

use crate::report::{EINVAL, Report};

/// Where the nodes are on any host; of another host they are named, never opened.
const NODES: &str = "/dev/infiniband";

/// What is asked.
#[derive(Debug)]
pub(crate) enum Place {
    /// This host, or another's sysfs tree.
    Host(Host),
    /// What was known of a host when its snapshot was written.
    Snapshot(Box<Inventory>),
}

impl Place {
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

    /// All that is known of it.
    pub(crate) fn inventory(self, wanted: &Wanted<'_>) -> Inventory {
        match self {
            Self::Host(mut host) => host.inventory(wanted),
            Self::Snapshot(mut inventory) => {
                inventory.devices.retain(|record| (wanted.includes)(&record.device));
                *inventory
            }
        }
    }

    /// Lists the devices. If there is none, says why. A device that cannot be read is a problem if
    /// it is asked for.
    pub(crate) fn devices(&mut self, selectors: &[Selector], report: &mut Report) -> Vec<Device> {
        let host = match self {
            Self::Host(host) => host,
            Self::Snapshot(inventory) => {
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
                    if selectors.is_empty() || selectors.iter().any(|own| own.device == name) {
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
            Self::Snapshot(inventory) => {
                let record = inventory.device(&device.name);
                record.map(DeviceReader::Record).ok_or_else(|| unknown(&device.name))
            }
        }
    }

    /// The interface of each record, if it is of that host's network namespace.
    pub(crate) fn netdevs(
        &mut self,
        gids: &[DeviceGids<'_>],
        report: &mut Report,
    ) -> Vec<Vec<Option<Netdev>>> {
        match self {
            Self::Host(host) => host.netdevs(gids).unwrap_or_else(|error| {
                report.host_problem(&error);
                Vec::new()
            }),
            Self::Snapshot(inventory) => gids
                .iter()
                .map(|own| {
                    let rows = inventory.device(&own.device.name).map(|record| &record.gids);
                    let rows: Vec<_> = rows.into_iter().flatten().flatten().collect();
                    let name = |record: &GidRecord| {
                        rows.iter().find(|row| row.record == *record)?.netdev.clone()
                    };
                    own.records.iter().map(name).collect()
                })
                .collect(),
        }
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
            Self::Snapshot(inventory) => ports
                .iter()
                .filter_map(|(device, port)| {
                    let netdev = inventory.device(&device.name)?.port(*port)?.netdev.clone()?;
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
        let rows = record.gids.as_ref().map_err(Clone::clone)?;
        let is_it =
            |record: &&GidRecord| (record.entry.port(), record.entry.index()) == (port, index);
        Ok(rows.iter().map(|row| &row.record).find(is_it).cloned())
    }

    /// All GIDs of all ports.
    pub(crate) fn gid_table(&mut self) -> Result<Vec<GidRecord>, Problem> {
        match self {
            Self::Live(reader) => Ok(reader.gid_table()?),
            Self::Record(record) => {
                let rows = record.gids.as_ref().map_err(Clone::clone)?;
                Ok(rows.iter().map(|row| row.record.clone()).collect())
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
