//! Filling an [`Inventory`] from this host, or from a sysfs tree.

mod device;
mod moment;
mod needs;
mod settings;
mod socket;

use core::cell::LazyCell;
use core::num::NonZeroU32;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;

use nix::libc;
use nix::sys::utsname::uname;
use rustix::io::Errno;

use super::{Answer, DeviceRecord, GidRow, Inventory, NAMELESS, Problem, Wanted};
use crate::device::{Absence, Device, Node};
use crate::driver::DriverId;
use crate::error::{Cause, Error, Request};
use crate::host::{GidTable, Host, PortNetdevs, Preference, Sought};
use crate::netdev::Interface;
use crate::netlink::route::{Links, RouteDump};
use crate::sysfs::{Sysfs, is_absent, is_in_nodev, is_node_stat, is_read_only};
use crate::text::to_plain;
use device::{find_driver, find_hardware, read_device};
use moment::changed_since;
pub use settings::read_settings;

/// How often a host is read whose tables and interfaces are not of one moment.
const TRIES: usize = 3;

impl Host {
    /// Reads what is wanted. It never fails: what could not be read is a [`Problem`] in its place.
    ///
    /// With [`Parts::host`](super::Parts::host) also the process's environment and NCCL's files are read;
    /// of another host's sysfs tree only the tree.
    ///
    /// With [`Parts::interfaces`](super::Parts::interfaces) all is read again, up to three times, if a GID table changed
    /// between its reading and that of the interfaces. A table that changes each time is `EAGAIN`.
    #[must_use]
    pub fn inventory(&mut self, wanted: &Wanted<'_>) -> Inventory {
        let (mut inventory, mut changed) = self.inventory_now(wanted);
        for _ in 1..TRIES {
            if changed.is_empty() {
                break;
            }
            (inventory, changed) = self.inventory_now(wanted);
        }
        for (device, why) in changed {
            let mut records = inventory.devices.iter_mut();
            if let Some(record) = records.find(|own| own.device.name == device) {
                record.gids = Some(Err(why));
            }
        }
        inventory
    }

    /// The same, and the names of devices whose tables changed before the interfaces were read.
    fn inventory_now(&mut self, wanted: &Wanted<'_>) -> (Inventory, Vec<(String, Problem)>) {
        let parts = wanted.parts;
        let (mut inventory, sought) = self.listed(wanted);
        let mut tables = Vec::new();
        for record in &mut inventory.devices {
            if parts.host && self.is_here() {
                look_at_node(record, wanted.preference);
            }
            if parts.drivers && self.is_here() {
                find_driver(record);
            }
            if parts.hardware {
                find_hardware(record, self.sysfs());
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
            inventory.modules = needs::modules(self.sysfs(), parts.needs);
        }
        if parts.needs {
            inventory.proprietary = needs::proprietary(self.sysfs(), &inventory.modules);
            if self.is_here() {
                inventory.locked_memory = needs::locked_memory();
                // By sysfs no node is opened.
                if wanted.preference != Preference::Sysfs {
                    inventory.rdma_cm_access = self.connection_manager_access();
                    inventory.umad_access = self.umad_access();
                }
            }
        }
        // One list: each costs some drivers commands to their firmware. If it fails, it is not asked for again.
        let mut dump = Ok(None);
        let mut changed_tables = Vec::new();
        if parts.interfaces {
            dump = self.dump().map_err(Problem::from);
            inventory.problems.extend(dump.as_ref().err().cloned());
            let known = dump.as_ref().ok().and_then(Option::as_ref);
            inventory.interfaces = known.map(RouteDump::interfaces);
            if let (Some(dump), Some(name)) = (known, wanted.netdev) {
                let change = changed(name, sought, &dump.links);
                inventory.problems.extend(change.map(Problem::from));
            }
            changed_tables.extend(known.map(|dump| changed_since(self.sysfs(), &tables, dump)));
            self.look_for_roce_socket(&mut inventory);
        }
        let mut netdevs = PortNetdevs::new();
        if parts.port_netdevs {
            self.name_ports(&mut inventory, &mut netdevs);
        }
        if parts.gids {
            self.name_rows(&mut inventory, &tables, dump, &mut netdevs, wanted);
        }
        let renamed = renamed(inventory.interfaces.as_deref().unwrap_or_default(), &netdevs);
        inventory.problems.extend(renamed.map(Problem::from));
        if parts.types {
            self.find_hidden_types(&mut inventory);
        }
        let failure = inventory.netlink_failure().filter(|_| lacks_netlink(&inventory, wanted));
        inventory.problems.extend(failure.cloned());
        if parts.host && self.is_here() {
            // A filter of system calls may refuse it.
            let uname = uname().ok();
            let host = uname.as_ref().and_then(|own| shown(own.nodename()));
            inventory.host = Some(host.unwrap_or_else(|| NAMELESS.to_owned()));
            inventory.kernel = uname.as_ref().and_then(|own| shown(own.release()));
            let (settings, problems, home_is_assumed) = read_settings();
            inventory.home_is_assumed = home_is_assumed;
            inventory.settings = settings;
            inventory.unread_settings = problems;
        }
        (inventory, changed_tables.into_iter().flatten().collect())
    }

    /// Finds out whether soft RoCE has a socket, if one of the devices is one of soft RoCE.
    pub(crate) fn look_for_roce_socket(&self, inventory: &mut Inventory) {
        let is_soft = |own: &DeviceRecord| own.device.driver == Some(DriverId::RXE);
        let is_asked = self.is_here() && inventory.devices.iter().any(is_soft);
        inventory.has_roce_socket = if is_asked { socket::has_roce_socket() } else { None };
    }

    /// Why devices may be missing beside those that are listed.
    fn absences_beside(&mut self, inventory: &Inventory) -> Vec<Absence> {
        let devices = inventory.devices.iter().map(|record| &record.device);
        let listed: BTreeMap<&str, Option<&Node>> = devices
            .chain(&inventory.others)
            .map(|device| (device.name.as_str(), device.node.as_ref()))
            .collect();
        let has_none = listed.is_empty() && inventory.unlisted.is_empty();
        let mut absences = self.absence();
        absences.retain(|reason| match reason {
            // What was listed is there, though sysfs may be that of a namespace without it.
            Absence::NoDevice | Absence::NoModule => has_none,
            // What this host's /dev holds has no bearing on another's.
            Absence::NoNodes { .. } => self.is_here(),
            // The sysfs of another namespace does not have a device that netlink lists here.
            Absence::OtherNamespace { device, node } => match listed.get(device.as_str()) {
                None => true,
                Some(own) => own.is_some_and(|own| own.name != *node),
            },
        });
        absences
    }

    /// The devices that are wanted, of which nothing else is read yet; and what the interface was by which
    /// others were left out.
    fn listed(&mut self, wanted: &Wanted<'_>) -> (Inventory, Sought) {
        let mut inventory = Inventory::default();
        let mut sought = Sought::NotYet;
        let listed = self.list();
        // What is asked later may be answered.
        inventory.without_netlink = self.netlink_error().map(Problem::from);
        match listed {
            Ok(listing) => {
                let names: BTreeSet<&str> =
                    listing.devices.iter().map(|own| own.name.as_str()).collect();
                for error in &listing.problems {
                    match error.device() {
                        // It is listed without its node.
                        Some(device) if names.contains(device) => {
                            inventory.problems.push(error.into());
                        }
                        None => {
                            // Any other is about their nodes.
                            if matches!(error.request(), Request::ListDevices) {
                                inventory.list_failure.get_or_insert_with(|| error.into());
                            }
                            inventory.problems.push(error.into());
                        }
                        Some(device) => {
                            inventory.unlisted.push((device.to_owned(), error.into()));
                        }
                    }
                }
                let places = self.places(&listing.devices);
                let (devices, others) =
                    listing.devices.into_iter().partition(|device| (wanted.devices)(device));
                inventory.others = others;
                let (devices, found) = self.leave_out(devices, wanted, &mut inventory);
                sought = found;
                inventory.devices = devices.into_iter().map(DeviceRecord::new).collect();
                for record in &mut inventory.devices {
                    record.place = places.get(&record.device.name).copied();
                }
            }
            Err(error) => {
                let problem = Problem::from(error);
                inventory.list_failure = Some(problem.clone());
                inventory.problems.push(problem);
            }
        }
        // Of devices that sysfs listed, as netlink did not answer, it says nothing.
        let is_known = |record: &DeviceRecord| record.device.index.is_some();
        inventory.has_netlink = self.is_here()
            && inventory.without_netlink.is_none()
            && inventory.devices.iter().all(is_known);
        (inventory, sought)
    }

    /// Leaves out devices that have no GID of the interface that is wanted.
    fn leave_out(
        &mut self,
        devices: Vec<Device>,
        wanted: &Wanted<'_>,
        inventory: &mut Inventory,
    ) -> (Vec<Device>, Sought) {
        let Some(name) = wanted.netdev else { return (devices, Sought::NotYet) };
        let known: Vec<&Device> = devices.iter().collect();
        let (may, sought) = self.may_have(&known, name).unwrap_or_else(|error| {
            inventory.problems.push(error.into());
            (vec![true; devices.len()], Sought::NotYet)
        });
        let mut may = may.into_iter();
        let (left, others): (Vec<_>, Vec<_>) =
            devices.into_iter().partition(|_| may.next().unwrap_or(true));
        inventory.others.extend(others);
        (left, sought)
    }

    /// Finds the interface of each row.
    fn name_rows(
        &mut self,
        inventory: &mut Inventory,
        tables: &[Option<GidTable>],
        dump: Answer<Option<RouteDump>>,
        known: &mut PortNetdevs,
        wanted: &Wanted<'_>,
    ) {
        let is_wanted = |record: &DeviceRecord| {
            let mut rows = record.all_rows().iter();
            rows.any(|row| (wanted.rows)(&record.device, &row.record))
        };
        if !inventory.devices.iter().any(is_wanted) {
            return;
        }
        let read: Vec<&GidTable> = tables.iter().flatten().collect();
        let found = dump.and_then(|dump| Ok(self.netdevs_by(&read, dump, known)?));
        let names = found.unwrap_or_else(|problem| {
            if !inventory.problems.contains(&problem) {
                inventory.problems.push(problem);
            }
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
                if let Some(own) = row.as_mut().filter(|own| own.record == *record) {
                    own.netdev = name.netdev;
                    own.netdev_is_elsewhere = name.is_elsewhere;
                    own.record.netdev_is_unread |= name.may_be_renamed;
                    row = rows.next();
                }
            }
        }
        let asked = inventory.devices.iter();
        let refused = asked.flat_map(|own| refused(own, known, wanted));
        inventory.problems.extend(refused);
    }

    /// Finds the interface of each port, and keeps what was asked.
    fn name_ports(&mut self, inventory: &mut Inventory, known: &mut PortNetdevs) {
        let numbers = |record: &DeviceRecord| record.ports.iter().map(|port| port.number).collect();
        let listed: Vec<(Device, Vec<u32>)> =
            inventory.devices.iter().map(|it| (it.device.clone(), numbers(it))).collect();
        let ports: Vec<(&Device, u32)> = listed
            .iter()
            .flat_map(|(device, ports)| ports.iter().map(move |port| (device, *port)))
            .collect();
        if let Err(error) = self.ask_port_netdevs(&ports, known) {
            inventory.problems.push(error.into());
            // Of no port it is known whether its interface is here.
            inventory.has_netlink = false;
        }
        for record in &mut inventory.devices {
            for port in &mut record.ports {
                let own = known.get(&(record.device.name.clone(), port.number)).cloned();
                // An old kernel names none.
                inventory.has_netlink &= own.is_some() || record.device.index.is_none();
                port.netdev = own.unwrap_or(Ok(None)).map_err(Problem::from);
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

/// Whether something that was wanted is not known where RDMA netlink does not answer: protocols of devices, interfaces of
/// ports and rows. Who wants only sysfs has what it says.
fn lacks_netlink(inventory: &Inventory, wanted: &Wanted<'_>) -> bool {
    let parts = wanted.parts;
    let has_rows = |record: &DeviceRecord| {
        let mut rows = record.all_rows().iter().map(|row| &row.record);
        rows.any(|row| row.may_have_netdev() && (wanted.rows)(&record.device, row))
    };
    let is_lacking = |record: &DeviceRecord| {
        parts.drivers || parts.port_netdevs && !record.ports.is_empty() || has_rows(record)
    };
    wanted.preference != Preference::Sysfs && inventory.devices.iter().any(is_lacking)
}

/// Why the interfaces of a device's ports are not known that have wanted rows whose own are not known, either, if the
/// ports do not say it themselves.
fn refused(
    record: &DeviceRecord,
    known: &PortNetdevs,
    wanted: &Wanted<'_>,
) -> impl Iterator<Item = Problem> {
    let rows = record.all_rows().iter();
    let unnamed = rows.filter(|row| row.netdev.is_none() && !row.netdev_is_elsewhere);
    let rows = unnamed.map(|row| &row.record);
    let rows = rows.filter(|row| row.may_have_netdev() && (wanted.rows)(&record.device, row));
    let ports: BTreeSet<u32> = rows.map(|row| row.entry.port()).collect();
    let ports = ports.into_iter().filter(|port| record.port(*port).is_none());
    ports.filter_map(|port| {
        let netdev = known.get(&(record.device.name.clone(), port))?;
        netdev.as_ref().err().map(Problem::from)
    })
}

/// That an interface came, went or changed its name since devices were left out by it.
fn changed(name: &str, before: Sought, links: &Links) -> Option<Error> {
    let now = links.named(name).map_or(Sought::Nowhere, |link| Sought::Found(link.index));
    let is_same = before == Sought::NotYet || before == now;
    let request = Request::Interface { name: name.to_owned() };
    (!is_same).then(|| Error::of_host(request, Cause::Os(libc::EAGAIN)))
}

/// That a port's interface has another name than in the list, which was read before: it was renamed, or is another one.
fn renamed(interfaces: &[Interface], known: &PortNetdevs) -> Option<Error> {
    let names: BTreeMap<NonZeroU32, &str> =
        interfaces.iter().map(|own| (own.index, own.name.as_str())).collect();
    let mut netdevs = known.values().filter_map(|own| own.as_ref().ok()?.as_ref());
    let other = netdevs.find(|own| names.get(&own.index).is_some_and(|name| *name != own.name))?;
    let request = Request::Interface { name: other.name.clone() };
    Some(Error::of_host(request, Cause::Os(libc::EAGAIN)))
}

/// A host's name or the like, which may be any bytes; `None` if it is empty.
fn shown(text: &OsStr) -> Option<String> {
    (!text.is_empty()).then(|| to_plain(&text.to_string_lossy()))
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

fn look_at_node(record: &mut DeviceRecord, preference: Preference) {
    let Some(node) = &record.device.node else { return };
    let looked = rustix::fs::stat(&node.path);
    record.node_mode = looked.ok().map(|stat| stat.st_mode);
    record.node_is_missing = looked.is_err_and(is_absent);
    record.node_is_in_nodev = looked.is_ok() && is_in_nodev(&node.path);
    // By sysfs no node is opened; nor is any other device for writing.
    let is_it = looked.is_ok_and(|own| is_node_stat(&own, node.number));
    let is_opened = is_it && preference != Preference::Sysfs;
    record.node_is_read_only = is_opened && is_read_only(&node.path);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::route::tests::{index, link};

    /// Devices were left out by an interface that was another, or not there.
    #[test]
    fn an_interface_that_comes_or_goes_meanwhile_is_an_error() {
        let links: Links = [link(2, "d0"), link(3, "e0")].into_iter().collect();
        let errno = |name, before| changed(name, before, &links).map(|error| error.errno());
        let found = |number| Sought::Found(index(number));
        assert_eq!(errno("d0", found(2)), None);
        assert_eq!(errno("gone0", Sought::Nowhere), None);
        assert_eq!(errno("d0", Sought::NotYet), None, "no device was left out");
        for (name, before) in [("d0", Sought::Nowhere), ("d0", found(3)), ("gone0", found(4))] {
            assert_eq!(errno(name, before), Some(libc::EAGAIN), "{name} {before:?}");
        }
        let text = changed("d0", Sought::Nowhere, &links).unwrap().to_string();
        assert!(text.starts_with("host: find the network interface d0: "), "{text}");
        assert!(text.ends_with("it came, went or changed meanwhile: ask again"), "{text}");
    }

    /// A port says another name than the list of interfaces, which was read before.
    #[test]
    fn a_port_s_interface_with_two_names_is_an_error() {
        use crate::netdev::Netdev;
        let own = Interface::new(index(2), "d0".to_owned());
        let of_port = |netdev: Netdev| {
            let known = [(("rxe0".to_owned(), 1), Ok(Some(netdev)))];
            renamed(std::slice::from_ref(&own), &known.into()).map(|error| error.to_string())
        };
        assert_eq!(of_port(Netdev::new(index(2), "d0")), None);
        assert_eq!(of_port(Netdev::new(index(3), "e0")), None, "it came meanwhile");
        let text = of_port(Netdev::new(index(2), "e0")).unwrap();
        assert!(text.starts_with("host: find the network interface e0: "), "{text}");
        assert!(text.ends_with("it came, went or changed meanwhile: ask again"), "{text}");
    }

    /// Of ports that were not asked for by themselves.
    #[test]
    fn rows_of_a_port_whose_interface_is_refused_are_a_problem() {
        use crate::gid::{Gid, GidEntry, GidRecord, GidType};
        use crate::netlink::{Datagram, Socket};
        let row = |port| {
            let entry = GidEntry::new(port, 0, Gid::of_roce([2, 0, 0, 0, 0, 1]));
            let index = NonZeroU32::new(u32::MAX);
            GidRecord::from(entry.with_type(GidType::ROCE_V2).with_netdev_ifindex(index))
        };
        let problems = |wanted: &Wanted<'_>, dump: Answer<Option<RouteDump>>| {
            let refusals = [1, 2].map(|place| Datagram::refusal(Errno::IO, place));
            let mut host = Host::with_netlink(Socket::given(vec![refusals.into()]));
            let table = GidTable::sample("rxe0", vec![row(1), row(2)]);
            let mut record = DeviceRecord::new(table.device().clone());
            record.gids = Some(Ok(table.iter().cloned().map(GidRow::from).collect()));
            let mut inventory = Inventory { has_netlink: true, ..Inventory::default() };
            inventory.devices = vec![record];
            let mut known = PortNetdevs::new();
            host.name_rows(&mut inventory, &[Some(table)], dump, &mut known, wanted);
            assert!(inventory.has_netlink);
            inventory.problems.into_iter().map(|problem| problem.text).collect::<Vec<_>>()
        };
        let wanted = Wanted::new(super::super::Parts::GIDS);
        let all = problems(&wanted, Ok(None));
        assert!(all.len() == 2 && all[0].starts_with("rxe0: find the network interface of port 1"));
        let is_second = |_: &Device, own: &GidRecord| own.entry.port() == 2;
        assert_eq!(problems(&wanted.rows(&is_second), Ok(None)), all[1..]);
        // Of interfaces that are known to be elsewhere nothing is missing.
        let nothing = RouteDump::default();
        assert!(problems(&wanted, Ok(Some(nothing))).is_empty());
    }

    /// Interfaces that could not be listed are not asked for again.
    #[test]
    fn a_failure_of_interfaces_is_one_problem() {
        use crate::gid::{Gid, GidEntry, GidRecord};
        let mut host = Host::opening("/nowhere".as_ref(), || unreachable!("netlink is not asked"));
        let entry = GidEntry::new(1, 0, Gid::of_roce([2, 0, 0, 0, 0, 1]));
        let entry = entry.with_netdev_ifindex(NonZeroU32::new(7));
        let table = GidTable::sample("rxe0", vec![GidRecord::from(entry)]);
        let mut record = DeviceRecord::new(table.device().clone());
        record.gids = Some(Ok(table.iter().cloned().map(GidRow::from).collect()));
        let failure = Problem { text: "host: list network interfaces: no".to_owned(), errno: 97 };
        let problems = vec![failure.clone()];
        let mut inventory = Inventory { has_netlink: true, problems, ..Inventory::default() };
        inventory.devices = vec![record];
        let wanted = Wanted::new(super::super::Parts::GIDS);
        let tables = [Some(table)];
        let mut known = PortNetdevs::new();
        host.name_rows(&mut inventory, &tables, Err(failure.clone()), &mut known, &wanted);
        assert_eq!((inventory.problems, inventory.has_netlink), (vec![failure], false));
    }

    #[test]
    fn a_node_that_cannot_be_looked_at_is_not_missing() {
        let folder = tempfile::tempdir().unwrap();
        let looked = |path: &std::path::Path| {
            let mut device = Device::named("x");
            device.node = Some(Node::new("uverbs0", path, 1));
            let mut record = DeviceRecord::new(device);
            look_at_node(&mut record, Preference::Auto);
            (record.node_mode.is_some(), record.node_is_missing)
        };
        assert_eq!(looked(folder.path()), (true, false));
        assert_eq!(looked(&folder.path().join("uverbs0")), (false, true));
        // A circle, which no user can look at.
        let circle = folder.path().join("circle");
        std::os::unix::fs::symlink(&circle, &circle).unwrap();
        assert_eq!(looked(&circle), (false, false));
    }
}
