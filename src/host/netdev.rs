//! Which network interface of this network namespace a GID belongs to.
//!
//! The kernel gives a GID's interface as an index (ioctl) or a name (sysfs). Both are valid in the
//! interface's own namespace, and the kernel does not say which namespace that is. In a container, the same
//! index or name often is another interface. So an index or a name proves nothing. This does: **the kernel
//! has made a row for an interface of ours in this port's table, and only one row there can be that row.**
//!
//! The kernel has made a row for an interface of ours if all of this is true:
//!
//! 1. RDMA netlink names the port's own interface; it hides interfaces of other namespaces. The interface in
//!    question is this one, or the kernel counts it among its upper devices. There may be several steps
//!    between them, all in this namespace: a VLAN, macvlan, ipvlan or macsec interface by its link; a bond by
//!    its members, if none of these is on another interface, and its mode is not balance-tlb or balance-alb. (In
//!    these modes the rows stay at the port whose interface was active before.) To a bridge, VRF or team there may have been two
//!    ways, as two VLANs of the port's interface. If one goes, the kernel removes all rows of the bridge and of
//!    what is on it, and does not make them again.
//! 2. The interface has the GID's address. For a point-to-point link, the kernel uses the far end's IPv4
//!    address and the near end's IPv6 address.
//! 3. No bond in between has another active member. If one has, the kernel makes no rows here of the bond's
//!    addresses and of VLANs on it.
//! 4. The port's table has room.
//!
//! Only one row can be it if no other row of the port has the same GID, type and index (or name), and if no
//! row that may have this GID and type keeps its interface's name back.
//!
//! The first slots of a table are reserved. The kernel fills them with GIDs made from the MAC address of the
//! port's interface, or of a bond above it. Such a row needs no address. It belongs to the interface if it
//! has the interface's index and MAC address, and no other row says the same.
//!
//! # The connection manager
//!
//! If these rules leave a row without a name, the kernel's connection manager may know
//! (`/dev/infiniband/rdma_cm`, Linux 5.9). It finds the port that has a row with an address for an interface
//! of ours. It compares the interface itself and not its index. So it can also prove a bridge, and the second
//! interface of a pod (macvlan, ipvlan, VLAN), whose port's own interface is in another namespace.
//!
//! It is asked only if all of this is true: an Ethernet interface here has the row's index (or name) and
//! the GID's address as its own; no other interface here has that address, or the address is IPv6
//! link-local; and no interface here has that address as IPv4 written as IPv6 (`::ffff:10.0.0.1`). On most hosts it is
//! never asked. What it finds names a row only if no other row of the port says the same.
//!
//! It does not say which type the row has that it found. If there is a row of each type, both are named,
//! because the kernel makes and removes both at once. If the table is full, neither is named.
//!
//! Only rows of the same port count as evidence, and a [`GidTable`] always has them all. So the answer does
//! not depend on what else is asked for.
//!
//! If it finds no port at all, the row is not of our interface, nor is another that says the same: it is known to be
//! elsewhere. The kernel removes rows for a moment, as when another member of a bond becomes active, and another interface
//! may get the address meanwhile. So this counts only if the row is in the table after that, the connection manager finds
//! no port once more, the address is still of one interface here, between the questions and after them, and the kernel
//! lists the device then.
//!
//! # Rows without a name
//!
//! These rows get no name, even if the interface is ours:
//!
//! - two rows with the same address, type and index, if one is of another namespace;
//! - rows whose address has been removed from the interface since;
//! - all rows, if RDMA netlink does not answer.
//!
//! If the connection manager cannot be asked (a container without its node, `rdma_ucm` not loaded), or
//! does not know, these rows get no name either:
//!
//! - rows on a port whose own interface is in another namespace;
//! - rows of bridges, VRFs, teams and bonds of those two modes, and of everything on top of them;
//! - rows of a macvlan on a bond, on the port of a member that is not active;
//! - rows of other kinds of interfaces than those above, and of everything on top of them. The device that a
//!   tunnel (gre, ipip, sit, vti, geneve …) is bound to is not below the tunnel, and the kernel makes no rows of
//!   tunnels. That of a vxlan is from Linux 5.4 on, and may be in another namespace. A macvtap or ipvtap
//!   interface does not always say that the device below it is in another namespace, nor does ipvlan before
//!   Linux 5.10;
//! - rows of an interface of Hyper-V or virtio whose virtual function is not here: it may be in another
//!   namespace;
//! - all but the first slots of a full table.
//!
//! The connection manager does not know an address that several interfaces here have (except IPv6
//! link-local), the far end of a point-to-point link, or interfaces that are not Ethernet. If several ports
//! have a row of the same address for the same interface, it names the first.
//!
//! Some of these are known to be elsewhere: no interface here has the index, or the name (if an interface here has the
//! address, the name is read again, as it may have changed); or the one that has it is not at or above the port's own, its
//! kind or what is below it being known, and could not have been there a moment ago. If the port's own is not here, what is
//! below the interface must all be here, by a second reading too.
//!
//! # What can still go wrong
//!
//! The kernel makes a row a moment after the address is set, and it may fail to. It removes the row with the
//! first of two equal addresses (`10.0.0.1/16` and `10.0.0.1/24`), and the rows of a bond if a VLAN of its
//! member, which was a member too, leaves it. If an interface here has no row then, and another namespace has an
//! interface on the same port with the same index (by sysfs: name) and address, its row is taken for ours. The
//! connection manager could exclude this, at two more system calls a host and three an address; it is not asked
//! about rows that the rules name. The same is so of a reserved slot: it may
//! have lost its row, and a bond of another namespace, above the same port and with its MAC address, takes it.
//! If it is asked, this is left: the kernel made the row of one type, failed to
//! make the other, and did the opposite for such an interface elsewhere; or rows were made and removed
//! between two of our questions. If the kernel failed to make only the row of the type that the connection manager looks for,
//! the other type's is taken for one elsewhere. So are all rows that it is asked about in the moment in which the kernel adds
//! a device, when its node is there and the connection manager does not know it yet; and rows that were removed and made
//! again twice, or whose address another interface got and lost twice, each time when it was asked. By sysfs, so is that of
//! an interface which has one name at each reading of rows, and another at each reading of names.

mod proof;

use core::num::NonZeroU32;
use std::collections::{BTreeMap, BTreeSet};

use rustix::io::Errno;
use uverbs_uapi::netlink as abi;

use super::{GidRecord, GidTable, Host, Preference, Reader, Source};
use crate::cm::Holder;
use crate::device::{Device, NodeType};
use crate::error::{Cause, Error, Request, Result};
use crate::kernel::release;
use crate::netdev::{Interface, Netdev};
use crate::netlink::rdma::{
    device_request, devices_request, message_type, parse_device, parse_port,
};
use crate::netlink::route::{RouteDump, read_addresses, read_links};
use crate::netlink::{Message, Socket};
use crate::sysfs::Sysfs;
use proof::{Again, Found, Namespace, Question};

pub(crate) use proof::Naming;

/// The network interface of each port that was asked, by device and number: `None` if it has none in this network
/// namespace, or why that is not known. Before Linux 4.18, and of iWARP before 5.4, it has no port of which the kernel names
/// none: it may not name it.
pub type PortNetdevs = BTreeMap<(String, u32), Result<Option<Netdev>>>;

/// From these Linuxes on, `PORT_GET` names a port's interface; that of a device of iWARP, which i40iw did not say before.
const NAMES_PORTS: (u32, u32) = (4, 18);
const NAMES_IWARP: (u32, u32) = (5, 4);

/// What an interface was when it was looked for by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sought {
    /// It was not looked for.
    NotYet,
    Nowhere,
    /// It had this index.
    Found(NonZeroU32),
}

impl Host {
    /// The network interface of each port as the kernel says it.
    ///
    /// Ports are given as pairs of device and number; so is the answer. Of a port that is not in it nothing is known,
    /// as without RDMA netlink. A port whose driver or firmware refuses leaves the others known.
    ///
    /// # Errors
    /// Those of RDMA netlink; [`Cause::Replaced`] if two devices of one name have different indices.
    pub fn port_netdevs(&mut self, ports: &[(&Device, u32)]) -> Result<PortNetdevs> {
        refuse_namesakes(ports.iter().map(|(device, _)| *device))?;
        let mut known = PortNetdevs::new();
        self.ask_port_netdevs(ports, &mut known)?;
        Ok(known)
    }

    /// The same, of those that are not known yet: adds what came of it.
    pub(crate) fn ask_port_netdevs(
        &mut self,
        ports: &[(&Device, u32)],
        known: &mut PortNetdevs,
    ) -> Result<()> {
        let (mut asked, mut iwarp) = (Vec::new(), BTreeSet::new());
        for (device, port) in ports {
            let key = (device.name.clone(), *port);
            if let Some(index) = device.index.filter(|_| !known.contains_key(&key)) {
                asked.push((key, index));
                if device.node_type == NodeType::RNIC {
                    iwarp.insert(device.name.clone());
                }
            }
        }
        if asked.is_empty() {
            return Ok(());
        }
        let Some(socket) = self.netlink() else { return Ok(()) };
        let request = |((_, port), index): &(_, u32)| {
            Message::new(message_type(abi::op::PORT_GET), &[])
                .number(abi::attribute::DEV_INDEX, *index)
                .number(abi::attribute::PORT_INDEX, *port)
        };
        let mut found = BTreeMap::new();
        // Those that have gone, or whose driver says the same of them.
        let mut refused = Vec::new();
        let error = |cause| Error::of_host(Request::Netlink, cause);
        let answered = socket.ask(asked.iter().map(request).collect(), |place, reply| {
            let Some((port, index)) = asked.get(place) else { return Ok(()) };
            if let Err(errno @ (Errno::INVAL | Errno::NODEV)) = reply {
                refused.push((port, *index, errno));
            }
            found.insert(port, reply.map_err(Cause::of).and_then(parse_port));
            Ok(())
        });
        answered.map_err(error)?;
        forget_unnamed(&mut found, &|port| iwarp.contains(&port.0), &release);
        let request = |(_, index, _): &(_, u32, _)| device_request(*index);
        let answered = socket.ask(refused.iter().map(request).collect(), |place, reply| {
            let Some((port, _, errno)) = refused.get(place) else { return Ok(()) };
            let has_port = match reply {
                Ok(reply) => parse_device(reply).map(|(_, own)| own.ports().contains(&port.1)),
                Err(Errno::INVAL | Errno::NODEV) => Err(Cause::DeviceGone(nix::libc::ENODEV)),
                Err(errno) => Err(Cause::of(errno)),
            };
            // A port that its device does not have has no interface.
            let none = |has_port| if has_port { Err(Cause::of(*errno)) } else { Ok(None) };
            found.insert(port, has_port.and_then(none));
            Ok(())
        });
        answered.map_err(error)?;
        known.extend(found.into_iter().map(|(port, netdev)| {
            let request = Request::PortNetdev { port: port.1 };
            let error = |cause| Error::new(&*port.0, request, cause);
            (port.clone(), netdev.map_err(error))
        }));
        Ok(())
    }

    /// Finds the interface of each row of each table: one answer a table, in their order.
    ///
    /// The answer for one table does not depend on the others; together they cost fewer calls.
    ///
    /// ```no_run
    /// use uverbs::Host;
    /// use uverbs::host::{Preference, Reader};
    ///
    /// let mut host = Host::new();
    /// let device = host.device("rxe0")?;
    /// let table = Reader::new(&device, host.sysfs(), Preference::Auto)?.gid_table()?;
    /// for named in host.netdevs(&[&table])? {
    ///     for (record, netdev) in named.iter() {
    ///         let name = netdev.map_or("-", |netdev| &netdev.name);
    ///         println!("{} {} {name}", record.entry.index(), record.entry.gid());
    ///     }
    /// }
    /// # Ok::<(), uverbs::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of RDMA netlink and route netlink; why the interface of a port is not known that has such rows
    /// ([`port_netdevs`](Self::port_netdevs)); and [`Cause::Replaced`] if two tables are of devices of one name that have
    /// different indices.
    pub fn netdevs<'t>(&mut self, tables: &[&'t GidTable]) -> Result<Vec<NamedTable<'t>>> {
        refuse_namesakes(tables.iter().map(|table| table.device()))?;
        let mut known = PortNetdevs::new();
        let namings = self.netdevs_by(tables, None, &mut known)?;
        known.into_values().collect::<Result<Vec<_>>>()?;
        let named = |(table, namings): (&&'t GidTable, Vec<Naming>)| NamedTable {
            table,
            netdevs: namings.into_iter().map(|naming| naming.netdev).collect(),
        };
        Ok(tables.iter().zip(namings).map(named).collect())
    }

    /// The interfaces of the rows of each table, in their order, by what was read of interfaces already. Without a
    /// dump, links are not read for a table whose rows they could not name, and it is not known where these rows'
    /// interfaces are. Adds what came of asking for the ports' own.
    pub(crate) fn netdevs_by(
        &mut self,
        tables: &[&GidTable],
        dump: Option<RouteDump>,
        known: &mut PortNetdevs,
    ) -> Result<Vec<Vec<Naming>>> {
        let nothing = || tables.iter().map(|table| vec![Naming::default(); table.len()]).collect();
        let mut ports: Vec<(&Device, u32)> = Vec::new();
        for table in tables {
            let with_netdev = table.iter().filter(|record| record.may_have_netdev());
            let numbers: BTreeSet<u32> = with_netdev.map(|record| record.entry.port()).collect();
            ports.extend(numbers.into_iter().map(|port| (table.device(), port)));
        }
        if ports.is_empty() {
            return Ok(nothing());
        }
        // Without RDMA netlink there is nobody to say what is ours.
        if !ports.iter().any(|(device, _)| device.index.is_some()) || self.netlink().is_none() {
            return Ok(nothing());
        }
        self.ask_port_netdevs(&ports, known)?;
        let error = |cause| Error::of_host(Request::Interfaces, cause);
        let (namespace, settled) = if let Some(RouteDump { links, addresses, .. }) = dump {
            let mut namespace = Namespace::new(known.clone(), &addresses);
            namespace.links = Some(links);
            (namespace, vec![false; tables.len()])
        } else {
            let mut route = Socket::route().map_err(|errno| error(Cause::of(errno)))?;
            let addresses = read_addresses(&mut route).map_err(error)?;
            let mut namespace = Namespace::new(known.clone(), &addresses);
            let settled = namespace.settled(tables);
            // Some row is of another interface than its port's: now the links between them matter.
            if settled.contains(&false) {
                namespace.links = Some(read_links(&mut route).map_err(error)?);
            }
            (namespace, settled)
        };
        let mut found = namespace.name(tables);
        self.ask_connection_manager(&namespace, tables, &mut found);
        let sysfs = self.sysfs().clone();
        let read_again = || {
            let mut port_netdevs = PortNetdevs::new();
            self.ask_port_netdevs(&ports, &mut port_netdevs).ok()?;
            let links = read_links(&mut Socket::route().ok()?).ok()?;
            Some(Again::new(port_netdevs, links))
        };
        let table_again = |table: &GidTable| {
            let again = table_again(&sysfs, table).ok()?;
            Some((again, read_links(&mut Socket::route().ok()?).ok()?))
        };
        Ok(namespace.namings(tables, found, &settled, read_again, table_again))
    }

    /// Finds what is left, as far as the connection manager knows it.
    fn ask_connection_manager(
        &mut self,
        namespace: &Namespace,
        tables: &[&GidTable],
        found: &mut [Found],
    ) {
        let questions: Vec<_> = tables
            .iter()
            .zip(&*found)
            .map(|(table, found)| namespace.questions(table, &found.names))
            .collect();
        let wanted: BTreeSet<Question> =
            questions.iter().flatten().map(|(_, question)| *question).collect();
        if wanted.is_empty() {
            return;
        }
        let Some(manager) = self.connection_manager() else { return };
        let answers: BTreeMap<Question, Holder> = wanted
            .into_iter()
            .filter_map(|asked| Some((asked, manager.holder(asked.gid, asked.interface)?)))
            .collect();
        for ((table, questions), found) in tables.iter().zip(&questions).zip(&mut *found) {
            namespace.take_answers(table, questions, &answers, found);
        }
        if !found.iter().any(Found::is_any_elsewhere) {
            return;
        }
        // The kernel may have found another interface by an address, or have removed rows for a moment.
        let read_addresses = || {
            let addresses = Socket::route().ok().and_then(|mut own| read_addresses(&mut own).ok());
            Namespace::new(PortNetdevs::new(), &addresses.unwrap_or_default())
        };
        let between = read_addresses();
        for ((table, questions), found) in tables.iter().zip(&questions).zip(&mut *found) {
            if found.is_any_elsewhere() {
                let again = table_again(self.sysfs(), table).ok();
                let ask = |asked: Question| manager.holder(asked.gid, asked.interface);
                found.confirm(table, again.as_ref(), questions, ask);
            }
        }
        let after = read_addresses();
        let registered = self.registered().unwrap_or_default();
        for ((table, questions), found) in tables.iter().zip(&questions).zip(found) {
            found.keep_meant(questions, &between);
            found.keep_meant(questions, &after);
            if table.device().index.is_none_or(|index| !registered.contains(&index)) {
                found.forget_elsewhere();
            }
        }
    }

    /// The indices of the devices that the kernel lists now. One that it is about to remove is not among them, and has rows
    /// until the connection manager knows nothing more of it.
    fn registered(&mut self) -> Option<BTreeSet<u32>> {
        let devices = self.netlink()?.dump(&devices_request(), parse_device).ok()?;
        Some(devices.into_iter().map(|(index, _)| index).collect())
    }

    /// The interfaces of this network namespace, by index. `None` if this is another host's tree,
    /// of whose interfaces nothing is known.
    ///
    /// # Errors
    /// Those of route netlink.
    pub fn interfaces(&self) -> Result<Option<Vec<Interface>>> {
        Ok(self.dump()?.map(|dump| dump.interfaces()))
    }

    /// Reads them, for all who want to know of them.
    ///
    /// # Errors
    /// As of [`interfaces`](Self::interfaces).
    pub(crate) fn dump(&self) -> Result<Option<RouteDump>> {
        if !self.is_here() {
            return Ok(None);
        }
        let error = |cause| Error::of_host(Request::Interfaces, cause);
        let mut route = Socket::route().map_err(|errno| error(Cause::of(errno)))?;
        RouteDump::read(&mut route).map(Some).map_err(error)
    }

    /// Whether each device may have a GID of the interface that is called `name` here, as far as
    /// can be known without opening it: in their order.
    ///
    /// No, if none of its ports' interfaces is this one or below it, and all is known of what is
    /// below it; or if there is no such interface here. Where that cannot be known, yes.
    ///
    /// # Errors
    /// Those of RDMA netlink and route netlink; [`Cause::Replaced`] if two devices of one name have different indices.
    pub fn may_have_netdev(&mut self, devices: &[&Device], name: &str) -> Result<Vec<bool>> {
        refuse_namesakes(devices.iter().copied())?;
        Ok(self.may_have(devices, name)?.0)
    }

    /// The same, with what the interface was then.
    ///
    /// # Errors
    /// As of [`may_have_netdev`](Self::may_have_netdev).
    pub(crate) fn may_have(
        &mut self,
        devices: &[&Device],
        name: &str,
    ) -> Result<(Vec<bool>, Sought)> {
        if devices.is_empty() || self.netlink().is_none() {
            return Ok((vec![true; devices.len()], Sought::NotYet));
        }
        let ports: Vec<(&Device, u32)> = devices
            .iter()
            .flat_map(|device| device.ports().map(move |port| (*device, port)))
            .collect();
        let mut port_netdevs = PortNetdevs::new();
        self.ask_port_netdevs(&ports, &mut port_netdevs)?;
        let error = |cause| Error::of_host(Request::Interfaces, cause);
        let mut route = Socket::route().map_err(|errno| error(Cause::of(errno)))?;
        let links = read_links(&mut route).map_err(error)?;
        let Some(wanted) = links.named(name) else {
            return Ok((vec![false; devices.len()], Sought::Nowhere));
        };
        // The kernel may have put it above an interface that is not here, or in a way not known here.
        let may_be_above_others =
            wanted.is_ethernet && links.untold().contains(&wanted.index.get());
        let may = |device: &&Device| {
            // The kernel names the protocol of the first port only.
            let has_rows = device.ports().count() > 1
                || device.protocol.as_deref().is_none_or(|protocol| protocol == "roce");
            device.index.is_none()
                || (may_be_above_others && has_rows)
                || device.ports().any(|port| match port_netdevs.get(&(device.name.clone(), port)) {
                    Some(Ok(Some(own))) => {
                        own.index == wanted.index
                            || links.above(own.index).contains(&wanted.index.get())
                    }
                    // Elsewhere, or none.
                    Some(Ok(None)) => false,
                    Some(Err(_)) | None => true,
                })
        };
        Ok((devices.iter().map(may).collect(), Sought::Found(wanted.index)))
    }
}

/// Refuses two devices of one name: one of them was replaced since it was listed, and answers are by name.
fn refuse_namesakes<'d>(devices: impl Iterator<Item = &'d Device>) -> Result<()> {
    let mut indices = BTreeMap::new();
    for own in devices {
        if *indices.entry(&*own.name).or_insert(own.index) != own.index {
            let request = Request::PortNetdev { port: *own.ports().start() };
            return Err(Error::new(&*own.name, request, Cause::Replaced));
        }
    }
    Ok(())
}

/// Reads a table again from where it was read.
pub(crate) fn table_again(sysfs: &Sysfs, table: &GidTable) -> Result<GidTable> {
    let preference = match table.iter().next().map(|own| own.source) {
        Some(Source::Sysfs) => Preference::Sysfs,
        Some(Source::Ioctl) | None => Preference::Ioctl,
    };
    Reader::new(table.device(), sysfs, preference)?.gid_table()
}

/// Forgets ports without an interface, of which an older kernel says the same as of all others.
fn forget_unnamed<P: Ord>(
    found: &mut BTreeMap<P, core::result::Result<Option<Netdev>, Cause>>,
    is_iwarp: &dyn Fn(&P) -> bool,
    release: &dyn Fn() -> Option<(u32, u32)>,
) {
    if !found.values().any(|own| *own == Ok(None)) {
        return;
    }
    let release = release().unwrap_or_default();
    let least = |port: &P| if is_iwarp(port) { NAMES_IWARP } else { NAMES_PORTS };
    found.retain(|port, own| *own != Ok(None) || release >= least(port));
}

/// A table of GIDs, with the network interface of each row. [`Host::netdevs`] makes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedTable<'t> {
    table: &'t GidTable,
    /// As many as the table has rows.
    netdevs: Vec<Option<Netdev>>,
}

impl<'t> NamedTable<'t> {
    /// The table.
    #[must_use]
    pub fn table(&self) -> &'t GidTable {
        self.table
    }

    /// Each row with its interface: `None` if it has none, or none that is shown to be in this network
    /// namespace.
    pub fn iter(&self) -> impl Iterator<Item = (&'t GidRecord, Option<&Netdev>)> {
        self.table.iter().zip(self.netdevs.iter().map(Option::as_ref))
    }

    /// The interface of the row in a port's slot.
    #[must_use]
    pub fn netdev(&self, port: u32, index: u32) -> Option<&Netdev> {
        self.netdevs.get(self.table.place(port, index)?)?.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_kernel_names_no_interface() {
        let netdev = || Ok(Some(Netdev::new(NonZeroU32::MIN, "d0")));
        for (release, known) in [
            (Some((5, 4)), &[1, 2, 3, 4][..]),
            (Some((4, 18)), &[1, 2, 3]),
            (Some((4, 15)), &[1, 3]),
            // A filter of system calls may refuse to say it.
            (None, &[1, 3]),
        ] {
            let none = || Ok(None);
            let mut found =
                BTreeMap::from([(1, netdev()), (2, none()), (3, Err(Cause::Os(5))), (4, none())]);
            forget_unnamed(&mut found, &|port| *port == 4, &|| release);
            assert_eq!(found.into_keys().collect::<Vec<_>>(), known, "{release:?}");
        }
        let unasked = || panic!("it does not matter");
        forget_unnamed(&mut BTreeMap::from([(1, netdev())]), &|_| false, &unasked);
    }
}
