//! Where the interface of a row is.

use core::num::NonZeroU32;

use super::gids::{counts, has_other_mac, is_resolved};
use super::{Surroundings, is_up};
use crate::choose::port::Home;
use crate::gid::{Gid, GidEntry};
use crate::inventory::{GidRow, PortRecord};
use crate::netdev::{Interface, Unfit};

/// What the rows of a port have to do with interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Each has one.
    Roce,
    /// The same, of soft RoCE.
    SoftRoce,
    /// Its row is of the port's own. Before Linux 6.5 it does not say so, and the kernel compares the MAC address.
    Iwarp,
    Other,
}

/// Where the interface of a row is.
pub(crate) fn home<'i>(
    here: &Surroundings<'i>,
    (kind, port): (Kind, &PortRecord),
    row: &'i GidRow,
) -> Home<'i> {
    let unheard = hearing(here, (kind, port), row).and_then(Result::err);
    // Soft RoCE sends by its interface, with all that this adds: what it hears decides, where that can be known.
    let is_soft = kind == Kind::SoftRoce && here.inventory.has_netlink;
    let reason = |unfit: Option<Unfit>| {
        unfit.filter(|why| !(is_soft && *why == Unfit::Bypassed)).or(unheard)
    };
    match anywhere(here, (kind, port), row) {
        Home::Ours { name, is_up, has_address, unfit, is_port_s } => {
            Home::Ours { name, is_up, has_address, unfit: reason(unfit), is_port_s }
        }
        Home::Unproven { name, is_named, is_up, unfit } => {
            Home::Unproven { name, is_named, is_up, unfit: reason(unfit) }
        }
        found => found,
    }
}

/// Whether a device takes what arrives at the interface of a row, or why not; `None` if that is not known. Soft RoCE listens in
/// network namespaces where it has a socket, at the port's own interface and at VLANs on that.
pub(super) fn hearing(
    here: &Surroundings<'_>,
    (kind, port): (Kind, &PortRecord),
    row: &GidRow,
) -> Option<Result<(), Unfit>> {
    if kind != Kind::SoftRoce {
        return Some(Ok(()));
    }
    if here.inventory.has_roce_socket == Some(false) {
        return Some(Err(Unfit::NoSocket));
    }
    // Without netlink it is judged as if it were hardware.
    let Some(interface) = here.interface_heard(row) else { return Some(Ok(())) };
    let own = port.netdev.as_ref().ok()?.as_ref().map(|own| own.index);
    let is_own = own == Some(interface.index);
    if is_own || interface.vlan_on.is_some() && interface.vlan_on == own {
        return here.inventory.has_roce_socket.map(|_| Ok(()));
    }
    // What a VLAN is on may be in another namespace, as the port's own interface may be.
    let is_unknown = interface.vlan.is_some() && interface.vlan_on.is_none();
    (!is_unknown).then_some(Err(Unfit::Unheard))
}

/// The same without what soft RoCE takes and does not take.
fn anywhere<'i>(
    here: &Surroundings<'i>,
    (kind, port): (Kind, &PortRecord),
    row: &'i GidRow,
) -> Home<'i> {
    let inventory = here.inventory;
    let record = &row.record;
    let is_named = record.entry.netdev_ifindex().is_some() || record.sysfs_netdev.is_some();
    match kind {
        // That sysfs did not say that there is none makes none.
        Kind::Other if !is_named && row.netdev.is_none() => return Home::None,
        Kind::Iwarp if inventory.has_netlink && inventory.interfaces.is_some() => {
            return here.home_of_iwarp(port, row);
        }
        Kind::Iwarp if !record.may_have_netdev() => return Home::None,
        _ => {}
    }
    if inventory.interfaces.is_none() {
        // In a tree of another host, its own names are all that is known. Names of this host's sysfs may
        // be those of another namespace.
        let is_tree = inventory.host.is_none();
        let named = row.netdev.as_ref().map(|netdev| netdev.name.as_str());
        let name = named.or(record.sysfs_netdev.as_deref().filter(|_| is_tree));
        return Home::Unknown { name };
    }
    if let Some(netdev) = row.netdev.as_ref().filter(|_| inventory.has_netlink) {
        // It came or went while the host was read: of its state nothing is known.
        let Some(interface) = inventory.interface(netdev.index.get()) else {
            return Home::Unknown { name: Some(&netdev.name) };
        };
        let gid = record.entry.gid();
        let unfit = here.unfit_of(interface, port, &record.entry);
        return Home::Ours {
            name: &netdev.name,
            is_up: is_up(interface),
            has_address: here.has_address(interface, gid),
            unfit,
            is_port_s: match &port.netdev {
                Ok(own) => Some(own.as_ref().is_none_or(|own| own.index == netdev.index)),
                Err(_) => None,
            },
        };
    }
    let own = port.netdev.as_ref().ok().and_then(Option::as_ref).map(|own| own.index);
    if row.netdev_is_elsewhere {
        return Home::Foreign;
    }
    if here.has_no_such_index(row) {
        // The port's own came while the host was read.
        let is_port_s = own.is_some() && own == record.entry.netdev_ifindex();
        return if is_port_s { Home::Unknown { name: None } } else { Home::Foreign };
    }
    // Without RDMA netlink nothing proves that an interface is here. Addresses are known all the same.
    let candidate = here.candidate(row);
    if let (Some(own), true) = (candidate, record.entry.netdev_ifindex().is_some()) {
        return Home::Unproven {
            name: Some(&own.name),
            is_named: true,
            is_up: is_up(own),
            unfit: here.unfit_of(own, port, &record.entry),
        };
    }
    // Without an index there is only a name, which another interface may have by now.
    let owners = here.owners(&record.entry).filter(|_| record.entry.netdev_ifindex().is_none());
    let Some(owners) = owners else { return Home::WithoutAddress };
    let named = candidate.or(owners.is_only.then_some(owners.first));
    Home::Unproven {
        name: named.map(|own| own.name.as_str()),
        is_named: candidate.is_some(),
        is_up: owners.is_up,
        unfit: owners.unfit,
    }
}

impl<'i> Surroundings<'i> {
    /// Whether no interface here has a row's index. Of a name that would prove nothing: the interface may
    /// have been renamed since.
    fn has_no_such_index(&self, row: &GidRow) -> bool {
        let index = row.record.entry.netdev_ifindex();
        index.is_some_and(|index| self.inventory.interface(index.get()).is_none())
    }

    /// The interface of a row, or the only one that may be it, if netlink says which is the port's own.
    fn interface_heard(&self, row: &GidRow) -> Option<&'i Interface> {
        if !self.inventory.has_netlink {
            return None;
        }
        let is_bare = row.record.entry.netdev_ifindex().is_none() && !row.netdev_is_elsewhere;
        let only = || self.owners(&row.record.entry).filter(|own| is_bare && own.is_only);
        self.interface_of(row).or_else(|| only().map(|own| own.first))
    }

    /// Why the address of a row of `port` cannot be used on an interface.
    fn unfit_of(
        &self,
        interface: &Interface,
        port: &PortRecord,
        entry: &GidEntry,
    ) -> Option<Unfit> {
        let own = port.netdev.as_ref().ok().and_then(Option::as_ref);
        let is_port_s = own.is_some_and(|own| own.index == interface.index);

        let is_made = self.has_address(interface, entry.gid());
        let is_unassigned = is_made && self.prefix(interface, entry.gid()).is_none();
        let is_unassigned = is_unassigned && is_resolved(entry);
        let why = self.unfit(interface, entry.gid()).filter(|why| counts(*why, entry));
        // A device on a tunnel is of software, and sends by it.
        let why = why.filter(|why| *why != Unfit::Bypassed || !is_port_s);
        why.or(is_unassigned.then_some(Unfit::Unassigned))
            .or_else(|| has_other_mac(interface, entry))
    }

    /// The interface of a row of iWARP, where netlink said which interfaces are here: the port's own. A row that does not
    /// say that it has one is of Linux before 6.5, where the kernel compares the MAC address.
    fn home_of_iwarp(&self, port: &PortRecord, row: &GidRow) -> Home<'i> {
        let (entry, is_said) = (&row.record.entry, row.record.may_have_netdev());
        let index = entry.netdev_ifindex();
        let find = |index: NonZeroU32| self.inventory.interface(index.get());
        match &port.netdev {
            _ if row.netdev_is_elsewhere => Home::Foreign,
            Ok(None) => Home::Foreign,
            Ok(Some(own)) => match find(own.index) {
                Some(own) if !is_said && own.mac.is_none() => Home::None,
                Some(own) if !is_said && own.mac.map(Gid::of_iwarp) != Some(entry.gid()) => {
                    Home::WithoutAddress
                }
                Some(own) if index.is_none_or(|index| index == own.index) => Home::Ours {
                    name: &own.name,
                    is_up: is_up(own),
                    has_address: true,
                    // Before Linux 6.5 it may be that of a bridge above.
                    unfit: (is_said && !self.common(own.index).has_connectable)
                        .then_some(Unfit::NoAddress),
                    is_port_s: Some(true),
                },
                _ => Home::Unknown { name: None },
            },
            Err(_) => match index.map(find) {
                Some(Some(own)) => Home::Unproven {
                    name: Some(&own.name),
                    is_named: true,
                    is_up: is_up(own),
                    unfit: None,
                },
                Some(None) => Home::Foreign,
                None => Home::Unknown { name: None },
            },
        }
    }
}
