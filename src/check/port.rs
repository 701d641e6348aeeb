//! Findings about one port: its state, its interface, its GIDs, its width.

use std::collections::BTreeMap;

use nix::libc;

use super::finding::{Findings, Severity};
use super::waiting::{Looked, Served, check_waiting};
use crate::choose::{
    self, Caveat, Home, Outcome, Port, Row, Surroundings, Why, Wish, caveats, recommend,
};
use crate::driver::DriverId;
use crate::gid::GidType;
use crate::inventory::{DeviceRecord, Inventory, PortRecord};
use crate::port::{LinkLayer, Mtu, PhysState, PortAttributes, PortState};

/// What the user expects of the host. The default expects nothing.
///
/// ```
/// let mut expected = uverbs::check::Expected::default();
/// expected.link_layer = Some(uverbs::port::LinkLayer::ETHERNET);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Expected {
    /// All ports have this link layer.
    pub link_layer: Option<LinkLayer>,
    /// Programs send and receive management datagrams (`ib_umad`): `perfquery`, `saquery`, a subnet manager.
    pub umad: bool,
    /// Programs use the connection manager (`rdma_ucm`): those that are linked with librdmacm.
    pub rdma_cm: bool,
}

/// What each port is compared with.
pub(super) struct Scene<'i> {
    pub(super) inventory: &'i Inventory,
    pub(super) here: Surroundings<'i>,
    pub(super) widest: Widest<'i>,
    pub(super) served: Served<'i>,
    pub(super) expected: Expected,
}

pub(super) fn check_port(
    scene: &Scene<'_>,
    record: &DeviceRecord,
    port: &PortRecord,
    findings: &mut Findings<'_>,
) {
    use Severity::{Problem, Warning};
    let Scene { inventory, here, widest, served, expected } = scene;
    let attributes = match &port.attributes {
        Some(Ok((attributes, _))) => attributes,
        None => return,
        // A device that cannot be read at all has its own finding.
        Some(Err(problem)) if record.problem() == Some(problem) => return,
        Some(Err(problem)) => {
            findings.add(
                "port-unreadable",
                Problem,
                &problem.text,
                "the kernel's log may say more",
            );
            return;
        }
    };
    let is_ethernet = attributes.link_layer == LinkLayer::ETHERNET;
    if let Some(layer) = expected.link_layer.filter(|layer| *layer != attributes.link_layer) {
        findings.add(
            "other-link-layer",
            Problem,
            format!("link layer {}, expected {layer}", attributes.link_layer),
            "change the port's type (mlxconfig LINK_TYPE), or expect another",
        );
    }
    if attributes.state != PortState::ACTIVE {
        let (seen, advice) = why_down(attributes);
        let advice = match is_of_no_vport(inventory, port, attributes) {
            Some(true) => {
                "the port has no interface, as one that represents no vport: use another port"
            }
            Some(false) => advice,
            None => {
                "if it represents no vport, use another port; else is its interface up (ip link set up), the cable in, the switch port on?"
            }
        };
        findings.add("port-down", Problem, seen, advice);
    }
    match &port.pkeys {
        Some(Ok(pkeys)) if pkeys.is_empty() && attributes.link_layer == LinkLayer::INFINIBAND => {
            findings.add(
                "no-pkey",
                Problem,
                "no P_Key is in use",
                "the subnet manager assigns P_Keys: is the port in a partition?",
            );
        }
        Some(Err(problem)) => {
            let advice = match problem.errno {
                libc::ENOENT | libc::EACCES | libc::EPERM => "is sysfs masked?",
                libc::EPROTO => "is sysfs masked? does the port come or go? run uverbs check again",
                libc::ENODEV => "run uverbs check again",
                _ if problem.is_of_process() => "run uverbs check again, with higher limits",
                _ => "the kernel's log may say more",
            };
            findings.add("pkeys-unreadable", Warning, &problem.text, advice);
        }
        _ => {}
    }
    let of_guid = port.guid.as_ref().err();
    if let Some(problem) = of_guid.filter(|own| record.problem() != Some(*own)) {
        let advice = "the kernel's log may say more";
        findings.add("port-guid-unreadable", Warning, &problem.text, advice);
    }
    if let Err(problem) = &port.netdev {
        let advice = match problem.errno {
            libc::ENODEV => "run uverbs check again",
            _ => "the kernel's log may say more",
        };
        findings.add("port-netdev-unreadable", Warning, &problem.text, advice);
    }
    if let Some(Err(problem)) = &port.effective {
        let advice = "the kernel's log may say more";
        findings.add("port-rate-unreadable", Warning, &problem.text, advice);
    }
    let seen = choose::port(here, record, port);
    if is_ethernet {
        check_netdev(inventory, (record, port), attributes, seen.as_ref(), findings);
    }
    if let Some(seen) = seen {
        let netdev = port.netdev.as_ref().ok().filter(|_| inventory.has_netlink);
        let looked = Looked { port: seen, has_netdev: netdev.map(Option::is_some) };
        check_gids(served, &looked, findings);
        doubt_gid(inventory, &looked.port, findings);
    }
    check_width(widest, record, attributes, findings);
}

/// Whether a port has no interface in any namespace, nor an MTU or a GID table: mlx5 in switchdev mode has a port for each
/// possible vport. `None` if it may be so: by sysfs no port has an MTU, and only netlink knows interfaces.
fn is_of_no_vport(
    inventory: &Inventory,
    port: &PortRecord,
    attributes: &PortAttributes,
) -> Option<bool> {
    let is_ethernet = attributes.link_layer == LinkLayer::ETHERNET;
    let may_be = is_ethernet && attributes.gid_tbl_len == 0 && !matches!(port.netdev, Ok(Some(_)));
    match attributes.active_mtu {
        _ if !may_be => Some(false),
        Some(Mtu(0)) => (inventory.has_netlink && port.netdev == Ok(None)).then_some(true),
        Some(_) => Some(false),
        None => None,
    }
}

/// Why a port is not active, and what to do.
pub(super) fn why_down(attributes: &PortAttributes) -> (String, &'static str) {
    let (state, phys_state) = (attributes.state, attributes.phys_state);
    let is_ethernet = attributes.link_layer == LinkLayer::ETHERNET;
    let advice = match phys_state {
        PhysState::LINK_UP
            if !is_ethernet && matches!(state, PortState::INIT | PortState::ARMED) =>
        {
            "the link is up but no subnet manager has activated the port: is one running?"
        }
        PhysState::LINK_UP => "the link is up but the port is not: look at the kernel's log",
        PhysState::DISABLED if is_ethernet => {
            "no link: is the interface up (ip link set up), the cable in, the switch port on?"
        }
        PhysState::DISABLED => "the port is disabled: enable it (ibportstate … enable)",
        PhysState::POLLING => {
            "no signal from the other end: look at cable, transceiver, switch port"
        }
        PhysState::TRAINING | PhysState::RECOVERY => {
            "the link does not settle: look at cable and transceiver, and that both ends agree on \
             speed and FEC"
        }
        PhysState::SLEEP => "the link sleeps: look at power saving at both ends",
        _ => "look at cable, transceiver and switch port",
    };
    (format!("the port is {state}, its link {phys_state}"), advice)
}

/// Where to use a port of RoCE whose interface is in another network namespace, if it has one. Interfaces on the port's own
/// may be of use here.
fn advice_elsewhere(seen: Option<&Port<'_>>, is_none: Option<bool>) -> &'static str {
    let Some(port) = seen else {
        return "use the port where its interface is, or here, if a GID is of an interface that is";
    };
    let is_usable = |row: &Row<'_>| choose::is_usable(port, row) != Some(false);
    let is_down = |row: &Row<'_>| matches!(row.home, Home::Ours { is_up: false, unfit: None, .. });
    if port.rows.iter().any(is_usable) {
        "use a GID of an interface that is: uverbs choose --explain shows which"
    } else if port.rows.iter().any(is_down) {
        "bring up an interface that is and has a GID: uverbs choose --explain shows which"
    } else if is_none.is_none() {
        "if it has one, use the port where that is"
    } else {
        "use the port where its interface is"
    }
}

fn check_netdev(
    inventory: &Inventory,
    (record, port): (&DeviceRecord, &PortRecord),
    attributes: &PortAttributes,
    seen: Option<&Port<'_>>,
    findings: &mut Findings<'_>,
) {
    use Severity::{Note, Problem, Warning};
    if inventory.interfaces.is_none() || !inventory.has_netlink {
        return;
    }
    let Ok(netdev) = &port.netdev else { return };
    let is_roce = choose::is_roce(attributes.link_layer, record.device.node_type);
    let Some(netdev) = netdev else {
        let is_none = is_of_no_vport(inventory, port, attributes);
        // check_gids reports it.
        if is_none == Some(true) {
            return;
        }
        findings.add(
            "netdev-elsewhere",
            Note,
            "the port has no network interface in this network namespace",
            match is_none {
                _ if is_roce => advice_elsewhere(seen, is_none),
                None => "if it has one, use the port where that is",
                _ => "use the port where its interface is",
            },
        );
        return;
    };
    let Some(interface) = inventory.interface(netdev.index.get()) else {
        findings.add(
            "not-checked",
            Note,
            format!("not looked at: {}, which came or went while the host was read", netdev.name),
            "run uverbs check again",
        );
        return;
    };
    let name = &interface.name;
    if !interface.is_up {
        findings.add(
            "netdev-down",
            Problem,
            format!("{name} is down"),
            "set it up: ip link set NAME up",
        );
    } else if !interface.is_lower_up {
        findings.add(
            "netdev-down",
            Problem,
            format!("{name} has no carrier"),
            "look at cable, transceiver and switch port",
        );
    }
    if !is_roce {
        return;
    }
    // The payload that fits after the headers of RoCE. Drivers count the headers differently.
    let rooms = [96, 80].map(|headers| interface.mtu.saturating_sub(headers));
    let sizes = [4096, 2048, 1024, 512, 256];
    let active = attributes.active_mtu.and_then(Mtu::bytes).map(u32::from);
    let greatest = attributes.max_mtu.and_then(Mtu::bytes).map(u32::from);
    let fits = |size: &u32, room: u32| *size <= room.min(greatest.unwrap_or(4096));
    let fitting = rooms.map(|room| sizes.into_iter().find(|size| fits(size, room)));
    let ([Some(fitting), other], Some(active)) = (fitting, active) else { return };
    // It may be all that the port is capable of.
    let may_be_greatest = greatest.is_none() && active < fitting;
    if active != fitting && other != Some(active) && !may_be_greatest {
        findings.add(
            "mtu-mismatch",
            Warning,
            format!(
                "{name} has MTU {}, which allows RDMA MTU {fitting}, but the port uses {active}",
                interface.mtu
            ),
            "set the interface's MTU again, to the same value on all hosts and switches",
        );
    }
}

fn check_gids(served: &Served<'_>, looked: &Looked<'_>, findings: &mut Findings<'_>) {
    use Severity::{Note, Problem, Warning};
    let port = &looked.port;
    let is_roce = choose::is_roce(port.link_layer, port.node_type);
    if port.gid_tbl_len == 0 {
        findings.add(
            "no-gid-table",
            Warning,
            "the port has no GID table",
            if is_roce {
                "it is a representor (switchdev mode), or has no RoCE: use another port"
            } else {
                "use another port; the kernel's log may say more"
            },
        );
        return;
    }
    if port.rows.is_empty() {
        findings.add(
            "empty-gid-table",
            Problem,
            "the GID table is empty",
            match port.link_layer {
                LinkLayer::INFINIBAND => "is a subnet manager running?",
                _ if is_roce => "give the port's interface an address and bring it up",
                _ => "the GID is made of the MAC address of the port's interface: look at that",
            },
        );
        return;
    }
    let is_soft = port.driver == Some(DriverId::RXE);
    let is_deaf = is_soft && served.has_roce_socket == Some(false);
    if is_deaf && looked.has_netdev == Some(true) {
        findings.add(
            "no-roce-socket",
            Problem,
            "soft RoCE has no socket (UDP port 4791) in this network namespace: it takes nothing that arrives",
            "use a device whose interface is where soft RoCE has a socket, as in the first network namespace, the host's",
        );
    }
    let is_link_local = is_roce && !is_deaf && check_waiting(served, looked, findings);
    if is_roce {
        // A type that is not known may be it.
        let may_be_v2 = |row: &Row<'_>| !matches!(row.gid_type, GidType::IB | GidType::ROCE_V1);
        if !port.rows.iter().any(may_be_v2) {
            findings.add(
                "no-roce-v2",
                Warning,
                "no GID is of type RoCE v2",
                "the device or its driver offers only v1, which is not routed: enable v2",
            );
        }
        for row in &port.rows {
            if let Home::Ours { name, has_address: false, .. } = row.home {
                findings.add(
                    "address-gone",
                    Warning,
                    format!("GID {} is {}, which is no longer on {name}", row.index, row.gid),
                    "set the address again, or restart the program that still holds the GID",
                );
            }
        }
        let foreign = port.rows.iter().filter(|row| row.home == Home::Foreign).count();
        let is_doubtful = |row: &Row<'_>| {
            matches!(row.home, Home::Unproven { .. } | Home::WithoutAddress | Home::Unknown { .. })
        };
        let least = if port.rows.iter().any(is_doubtful) { "at least " } else { "" };
        if foreign > 0 {
            findings.add(
                "foreign-gids",
                Note,
                format!(
                    "{least}{foreign} of {} GIDs belong to no interface in this network namespace",
                    port.rows.len()
                ),
                "programs that do not check this may take one: uverbs env looks for a setting",
            );
        }
    }
    let is_told = findings.has_problem() || is_link_local;
    let decision = recommend(port, &Wish::default());
    if !is_told && matches!(decision.outcome, Outcome::Ignored(Why::NoRow)) {
        findings.add(
            "no-usable-gid",
            Problem,
            "no GID is usable here",
            "uverbs choose --explain gives the reason for each",
        );
    }
}

/// Says of the GID that would be recommended why it is not known to be right. Where nothing is known of
/// interfaces at all, that is said once, of the host.
fn doubt_gid(inventory: &Inventory, port: &Port<'_>, findings: &mut Findings<'_>) {
    let Some(index) = recommend(port, &Wish::default()).outcome.index() else { return };
    let has_interfaces = inventory.interfaces.is_some() && inventory.has_netlink;
    let doubt = caveats(port, index).into_iter().find(|caveat| match caveat {
        Caveat::Unproven | Caveat::TypeUnread | Caveat::MayBeUnheard | Caveat::BetterUnknown(_) => {
            true
        }
        Caveat::Unknown => has_interfaces,
        _ => false,
    });
    if let Some(doubt) = doubt {
        findings.add(
            "gid-not-proven",
            Severity::Note,
            format!("GID {index} is the best here, and it is not known to be right: {doubt}"),
            "uverbs choose --explain gives what is known of each",
        );
    }
}

/// The active port with the most lanes, by what is alike: driver, board and link layer.
pub(super) type Widest<'i> = BTreeMap<(u32, &'i str, u8), (u8, &'i str, u32)>;

fn lanes(own: &PortAttributes) -> Option<u8> {
    let is_active = own.state == PortState::ACTIVE;
    own.active_width.filter(|_| is_active)?.lanes()
}

/// What ports have in common that may be as wide; `None` if it is not known. Cards of one driver need not be.
fn model<'i>(record: &'i DeviceRecord, own: &PortAttributes) -> Option<(u32, &'i str, u8)> {
    let DriverId(driver) = record.device.driver?;
    let board = record.hardware.as_ref()?.board_id.as_deref()?;
    Some((driver, board, own.link_layer.0))
}

/// Whether an active port is not compared with others because something was not read. Without a board there are none.
pub(super) fn is_width_unread(record: &DeviceRecord, own: &PortAttributes) -> bool {
    let is_unread = record.hardware.as_ref().is_none_or(|hardware| {
        let lacks = record.device.driver.is_none() || lanes(own).is_none();
        hardware.board_is_unread || (hardware.board_id.is_some() && lacks)
    });
    is_unread && own.state == PortState::ACTIVE
}

pub(super) fn widest(inventory: &Inventory) -> Widest<'_> {
    let mut widest = Widest::new();
    for record in &inventory.devices {
        for port in &record.ports {
            let Some(attributes) = port.known() else { continue };
            let both = model(record, attributes).zip(lanes(attributes));
            let Some((model, lanes)) = both else { continue };
            let own = (lanes, record.device.name.as_str(), port.number);
            let most = widest.entry(model).or_insert(own);
            if lanes >= most.0 {
                *most = own;
            }
        }
    }
    widest
}

/// Finds a link that is narrower than those of other ports of the same board. The kernel does not say
/// how wide it could be.
fn check_width(
    widest: &Widest<'_>,
    record: &DeviceRecord,
    attributes: &PortAttributes,
    findings: &mut Findings<'_>,
) {
    let Some(own) = lanes(attributes) else { return };
    let widest = model(record, attributes).and_then(|own| widest.get(&own));
    if let Some((most, name, number)) = widest.filter(|(most, ..)| own < *most) {
        let rate = attributes.rate().map(|rate| format!(", {rate} Gb/s")).unwrap_or_default();
        findings.add(
            "narrow-link",
            Severity::Warning,
            format!("the link is {own}X wide{rate}; that of {name}:{number} is {most}X"),
            "look at cable and transceiver, and reseat them",
        );
    }
}
