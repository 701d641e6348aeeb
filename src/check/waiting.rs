//! A port whose GIDs are all link-local, and the other ports: it may be that of a bond's member that waits.

use std::collections::BTreeSet;

use super::finding::{Findings, Severity};
use crate::choose::{self, Home, Port, Surroundings};
use crate::driver::DriverId;
use crate::inventory::Inventory;
use crate::netdev::Unfit;
use crate::port::PortState;

/// The interfaces that GIDs on active ports are of.
pub(super) struct Served<'i> {
    /// Those of which programs can use a GID that is not link-local, by name.
    names: BTreeSet<&'i str>,
    /// Whether not everything was looked at, so that there may be others.
    is_part: bool,
    /// Whether it is not known of a GID that programs can use it, so that there may be others.
    has_unproven: bool,
    /// Whether soft RoCE has a socket here, if that is known.
    pub(super) has_roce_socket: Option<bool>,
}

impl<'i> Served<'i> {
    pub(super) fn of(inventory: &'i Inventory, here: &Surroundings<'i>) -> Self {
        let is_part = inventory.is_partial() || !inventory.unread().is_empty();
        let has_roce_socket = inventory.has_roce_socket;
        let names = BTreeSet::new();
        let mut served = Self { names, is_part, has_unproven: false, has_roce_socket };
        for record in &inventory.devices {
            for own in &record.ports {
                match choose::port(here, record, own) {
                    Some(port) => served.add(&port),
                    None => served.is_part = true,
                }
            }
        }
        served
    }

    fn add(&mut self, port: &Port<'i>) {
        if port.state != PortState::ACTIVE || !choose::is_roce(port.link_layer, port.node_type) {
            return;
        }
        for row in port.rows.iter().filter(|row| !choose::is_of_link(row.gid)) {
            match (choose::is_usable(port, row), row.home) {
                (Some(true), Home::Ours { name, .. }) => {
                    self.names.insert(name);
                }
                (Some(_), _) => {}
                (None, _) => self.has_unproven = true,
            }
        }
    }
}

/// A port with its GIDs.
pub(super) struct Looked<'i> {
    pub(super) port: Port<'i>,
    /// Whether its interface is in this network namespace, if that is known.
    pub(super) has_netdev: Option<bool>,
}

/// What a port whose GIDs are all link-local has to do with other ports. The kernel makes the GIDs of a bond's addresses
/// on the port of its active member.
enum Waiting<'i> {
    /// For another port, which has GIDs of the addresses of this interface, which is also above this port's.
    For(&'i str),
    /// Nobody knows: another port may have them.
    Perhaps,
    /// For none. This interface is above the port's, if there is one.
    Not(Option<&'i str>),
}

impl<'i> Waiting<'i> {
    fn of(Looked { port, has_netdev }: &Looked<'i>, served: &Served<'_>) -> Self {
        // A member has none of its own, but for those that it had before.
        let is_own = |row: &choose::Row<'_>| {
            matches!(row.home, Home::Ours { is_port_s: Some(true), unfit, .. }
                if unfit != Some(Unfit::Enslaved))
        };
        if *has_netdev == Some(true) && port.rows.iter().any(is_own) {
            return Self::Not(None);
        }
        let (mut upper, mut is_known) = (None, true);
        for row in &port.rows {
            match row.home {
                Home::Ours { name, is_port_s: Some(_), .. } if served.names.contains(name) => {
                    return Self::For(name);
                }
                Home::Ours { name, is_port_s: Some(false), .. } => upper = upper.or(Some(name)),
                Home::Foreign | Home::Ours { is_port_s: Some(true), .. } => {}
                _ => is_known = false,
            }
        }
        let may_be_more = served.is_part || served.has_unproven;
        let may_wait = if is_known {
            upper.is_some() && may_be_more
        } else {
            may_be_more || !served.names.is_empty()
        };
        if may_wait { Self::Perhaps } else { Self::Not(upper) }
    }
}

/// Of a port whose GIDs are all link-local, but for those that no program here can use, and says whether it is such a
/// port. A default GID whose address its interface does not have is link-local all the same. Where there is none, that is
/// another finding.
pub(super) fn check_waiting(
    served: &Served<'_>,
    looked: &Looked<'_>,
    findings: &mut Findings<'_>,
) -> bool {
    let Looked { port, has_netdev } = looked;
    let is_usable = |row: &choose::Row<'_>| choose::is_usable(port, row) != Some(false);
    let is_of_use = |row: &&choose::Row<'_>| is_usable(row) || is_unassigned(row);
    let mut own = port.rows.iter().filter(is_of_use).peekable();
    if own.peek().is_none() || !own.all(|row| choose::is_of_link(row.gid)) {
        return false;
    }
    let all = if port.rows.iter().all(|row| choose::is_of_link(row.gid)) {
        "all GIDs"
    } else if port.rows.iter().any(is_usable) {
        "all GIDs that can be used here"
    } else {
        "all GIDs that could be used here"
    };
    // Another address may lead to no other end.
    let is_other = |row: &choose::Row<'_>| {
        let may_be_here = matches!(row.home, Home::Ours { .. } | Home::Unproven { .. });
        !choose::is_of_link(row.gid) && may_be_here
    };
    let why = "; uverbs choose --explain says why another is not used";
    let why = if port.rows.iter().any(is_other) { why } else { "" };
    // Why an address of the port's own interface cannot be used.
    let is_why = |row: &choose::Row<'_>, why: Unfit| matches!(row.home, Home::Ours { unfit, is_port_s: Some(true), .. } if unfit == Some(why));
    let has =
        |why: Unfit| *has_netdev == Some(true) && port.rows.iter().any(|row| is_why(row, why));
    // What soft RoCE does not hear has an address that may be of use to a device on it.
    let is_soft = port.driver == Some(DriverId::RXE);
    let unheard = port.rows.iter().find_map(|row| match row.home {
        Home::Ours { name, unfit: Some(Unfit::Unheard), is_up, has_address: true, .. }
            if is_other(row) =>
        {
            Some((name, is_up))
        }
        _ => None,
    });
    let (severity, seen, advice): (_, String, String) = match Waiting::of(
        looked,
        served,
    ) {
        Waiting::For(bond) => (
            Severity::Note,
            format!("{all} are link-local; those of {bond}'s addresses are on another port"),
            format!("nothing, while that port is active: the interface is a member of {bond}, or below it"),
        ),
        Waiting::Perhaps => (
            Severity::Warning,
            format!("{all} are link-local; another port may have those of a bond above this one"),
            if served.is_part {
                "run uverbs check of the whole host, where it can read all of it".into()
            } else {
                "uverbs choose --explain gives what is known of each".into()
            },
        ),
        Waiting::Not(upper) => (
            Severity::Problem,
            format!("{all} are link-local"),
            match (unheard, upper) {
                _ if is_soft && *has_netdev == Some(false) => {
                    "use the port where its interface is".into()
                }
                (Some((name, false)), _) => format!(
                    "bring {name} up, and use a device on it (rdma link add NAME type rxe netdev {name}): soft RoCE takes nothing that arrives there"
                ),
                (Some((name, true)), _) => format!(
                    "soft RoCE takes nothing that arrives at {name}: use a device on it (rdma link add NAME type rxe netdev {name})"
                ),
                (None, Some(name)) if is_soft => format!(
                    "give {name} an IPv4 or a global IPv6 address; if it is no VLAN, use a device on it (rdma link add NAME type rxe netdev {name}), as soft RoCE takes nothing that arrives there{why}"
                ),
                (None, None) if is_soft && has(Unfit::Enslaved) => {
                    "use a device on what takes all of the port's interface, as a bridge or bond, and give that an address".into()
                }
                (None, Some(name)) => format!(
                    "give {name} an IPv4 or a global IPv6 address; if it is a bond and has one, look at which member is active{why}"
                ),
                (None, None) if has(Unfit::Enslaved) => {
                    "give an address to what takes all of the port's interface, as a bridge or bond"
                        .into()
                }
                (None, None) if has(Unfit::NoNeighbours) => {
                    "let the port's interface ask for neighbours (ip link set arp on)".into()
                }
                (None, None) if has(Unfit::NoLinkLocal) => {
                    "give the port's interface a link-local IPv6 address (addrgenmode), or one of IPv4"
                        .into()
                }
                // Of such an interface the kernel makes GIDs only when the device is created.
                (None, None) if *has_netdev == Some(true) && is_soft => format!(
                    "give the port's interface an IPv4 or a global IPv6 address; if it is loopback or a tunnel, create the device again then{why}"
                ),
                (None, None) if *has_netdev == Some(true) => {
                    format!("give the port's interface an IPv4 or a global IPv6 address{why}")
                }
                (None, None) => format!("give the interface of the GIDs an IPv4 or a global IPv6 address{why}"),
            },
        ),
    };
    findings.add("only-link-local", severity, seen, advice);
    true
}

/// Whether a row is a default GID whose address its interface does not have. One that is down has none.
fn is_unassigned(row: &choose::Row<'_>) -> bool {
    matches!(
        row.home,
        Home::Ours { unfit: Some(Unfit::Unassigned), is_up: true, .. }
            | Home::Unproven { unfit: Some(Unfit::Unassigned), is_up: true, .. }
    )
}
