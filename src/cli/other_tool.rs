//! Ports in the forms of `ibstat` and `ibdev2netdev`, which know one host.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use uverbs::gid::GidRecord;
use uverbs::guid::Guid;
use uverbs::inventory::{DeviceRecord, GidRow, Inventory, PortRecord, Problem};
use uverbs::netdev::{Interface, Netdev};
use uverbs::port::LinkLayer;

use crate::ibstat;
use crate::output::Output;
use crate::report::{ENODATA, Report};
use crate::selection::Selected;
use crate::text::printable;

/// The text of such a tool, port by port.
#[derive(Debug)]
pub(crate) enum OtherTool {
    /// Another form is asked for.
    None,
    Ibstat(Lines),
    Ibdev2netdev(Lines),
}

#[derive(Debug, Default)]
pub(crate) struct Lines {
    text: String,
    /// The place of the first interface of IPoIB of each InfiniBand port, by the port's GUID.
    ipoib: Option<BTreeMap<Guid, usize>>,
}

impl Lines {
    /// The first interface of IPoIB of a port.
    fn ipoib<'i>(&mut self, guid: Guid, inventory: &'i Inventory) -> Option<&'i Interface> {
        let all = inventory.interfaces.as_deref().unwrap_or_default();
        let places = self.ipoib.get_or_insert_with(|| {
            let guids = all.iter().enumerate().rev();
            guids.filter_map(|(place, own)| Some((own.port_guid?, place))).collect()
        });
        all.get(*places.get(&guid)?)
    }
}

impl OtherTool {
    /// Orders devices as the tool does: by the bytes of their names.
    pub(crate) fn order(&self, devices: &mut [Selected<'_>]) {
        if !matches!(self, Self::None) {
            devices.sort_by(|one, other| one.device.name.cmp(&other.device.name));
        }
    }

    /// Begins a device. Of one that is named only by its ports, ibstat shows only these.
    pub(crate) fn add_device(&mut self, selected: &Selected<'_>, report: &mut Report) {
        let to = match self {
            Self::None => return,
            Self::Ibstat(to) => to,
            Self::Ibdev2netdev(_) => {
                if let Some(problem) = selected.record.problem() {
                    report.problem(&selected.device.name, problem.clone());
                }
                return;
            }
        };
        match ibstat::device(selected.record) {
            Some(text) if selected.is_whole() => to.text += &text,
            Some(_) => {}
            None => {
                let name = &selected.device.name;
                report.note(format!("{name}: ibstat shows no device of its type"));
            }
        }
    }

    /// Adds a port whose attributes were read.
    pub(crate) fn add_port(
        &mut self,
        selected: &Selected<'_>,
        port: &PortRecord,
        inventory: &Inventory,
        report: &mut Report,
    ) {
        let name = &selected.device.name;
        match self {
            Self::None => {}
            Self::Ibstat(to) => match ibstat::lack(selected.record, port) {
                Some(why) => {
                    let number = port.number;
                    let text =
                        format!("{name}: port {number} is not shown, as {why} (errno {ENODATA})");
                    report.problem(name, Problem { text, errno: ENODATA });
                }
                // It is with its device.
                None if selected.is_whole() => {}
                None => to.text += &ibstat::port(selected.record, port).unwrap_or_default(),
            },
            Self::Ibdev2netdev(to) => {
                let number = port.number;
                let Some((netdev, state)) = netdev_of(to, selected.record, port, inventory) else {
                    let place = format!("{name}:{number}");
                    if names_netdev(selected.record, number) {
                        report.nothing(format!(
                            "{place}: it is not known here which network interface GID 0 has"
                        ));
                    } else if selected.record.problem().is_some() || port.netdev.is_err() {
                        // That is said of the device, or of the port.
                    } else if inventory.has_netlink && inventory.interfaces.is_some() {
                        report.note(format!("{place}: no network interface of it is known here"));
                    } else {
                        report.nothing(format!("{place}: network interfaces are not known"));
                    }
                    return;
                };
                let (name, netdev) = (printable(name), printable(netdev));
                let _ = writeln!(to.text, "{name} port {number} ==> {netdev} ({state})");
            }
        }
    }

    /// The answer, if it is one of such a tool.
    pub(crate) fn end(self) -> Option<Output> {
        match self {
            Self::None => None,
            Self::Ibstat(lines) | Self::Ibdev2netdev(lines) => {
                Some(Output::Text(lines.text.into_bytes()))
            }
        }
    }
}

/// Whether GID 0 of a port names an interface, by its index or its name, or may.
fn names_netdev(record: &DeviceRecord, port: u32) -> bool {
    record.row(port, 0).is_some_and(|row| {
        let GidRecord { entry, sysfs_netdev, netdev_is_unread, .. } = &row.record;
        entry.netdev_ifindex().is_some() || sysfs_netdev.is_some() || *netdev_is_unread
    })
}

/// Whether a row may be of its port's own interface: it has its index, or its name, or names none.
fn may_be_of(row: &GidRow, own: &Netdev) -> bool {
    match (row.record.entry.netdev_ifindex(), &row.record.sysfs_netdev) {
        (Some(index), _) => index == own.index,
        (None, Some(name)) => *name == own.name,
        (None, None) => !row.record.netdev_is_unread,
    }
}

/// The interface that the script names for a port, and whether it is up.
///
/// That is the interface of GID 0, which of a bond is the bond. Without it the script takes an interface of the
/// same PCI function; here it is the one that the kernel names for the port. An InfiniBand port has none of its
/// own; IPoIB has the port's GUID in its address.
fn netdev_of<'i>(
    to: &mut Lines,
    record: &'i DeviceRecord,
    port: &'i PortRecord,
    inventory: &'i Inventory,
) -> Option<(&'i str, &'static str)> {
    let first = record.row(port.number, 0);
    let is_infiniband = port.known().is_some_and(|own| own.link_layer == LinkLayer::INFINIBAND);
    let here = if is_infiniband {
        let guid = port.guid.as_ref().ok().copied().flatten();
        let ipoib = guid.and_then(|guid| to.ipoib(guid, inventory));
        ipoib.map(|own| (own.index, own.name.as_str()))
    } else {
        // Of a table that could not be read, GID 0 may have any.
        let own = port.netdev().filter(|_| record.problem().is_none());
        let own = match first {
            Some(row) => row.netdev.as_ref().or(own.filter(|own| may_be_of(row, own))),
            None => own,
        };
        own.map(|own| (own.index, own.name.as_str()))
    };
    let Some((index, name)) = here else {
        // The name that sysfs has. It need not be of this namespace, so that nothing more is known of it.
        return Some((first?.record.sysfs_netdev.as_deref()?, "NA"));
    };
    let state = match inventory.interface(index.get()) {
        Some(own) if own.is_lower_up => "Up",
        Some(_) => "Down",
        None => "NA",
    };
    Some((name, state))
}
