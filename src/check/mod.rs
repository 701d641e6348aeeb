//! The pre-flight: what is wrong with a host, judged from its [`Inventory`].
//!
//! Each [`Finding`] has a severity, a stable name, an observation and advice. Nothing here asks the
//! kernel. What was left out of the inventory on request is not judged.

pub mod expect;
mod finding;
mod needs;
mod port;
mod settings;
mod waiting;

use std::collections::BTreeSet;

use crate::choose::room::has_unlisted;
use crate::choose::{Surroundings, Wish, is_roce};
use crate::device::Absence;
use crate::error::advice::WRONG_NODE;
use crate::gid::{GidEntry, GidType};
use crate::hardware::{PciAddress, PciFunction};
use crate::inventory::{DeviceRecord, Inventory, NodeState, PortRecord};
use crate::port::{LinkLayer, Mtu, PortAttributes, PortState};

use finding::Findings;
use needs::{check_needs, unknown_needs};
use port::{Scene, check_port, is_width_unread, widest};
use waiting::Served;

pub use finding::{Finding, Severity};
pub use port::Expected;
pub use settings::{settings, settings_for};

/// All findings: first the host's, then by device and port, then those about settings.
///
/// ```
/// use uverbs::check::{Expected, check};
/// let inventory = uverbs::Host::new().inventory(&Default::default());
/// for finding in check(&inventory, Expected::default()) {
///     println!("{}: {}: {}; {}", finding.severity, finding.name, finding.seen, finding.advice);
/// }
/// ```
#[must_use]
pub fn check(inventory: &Inventory, expected: Expected) -> Vec<Finding> {
    check_for(inventory, expected, &|_, _| true)
}

/// The same, with settings judged of some ports only, each by its device's name and its number: see [`settings_for`].
#[must_use]
pub fn check_for(
    inventory: &Inventory,
    expected: Expected,
    is_asked: &dyn Fn(&str, u32) -> bool,
) -> Vec<Finding> {
    let mut list = Vec::new();
    check_host(inventory, &mut Findings::of(&mut list, None, None));
    check_needs(inventory, expected, &mut Findings::of(&mut list, None, None));
    let here = Surroundings::of(inventory);
    let served = Served::of(inventory, &here);
    let scene = Scene { inventory, here, widest: widest(inventory), served, expected };
    let mut linked = own_functions(inventory);
    for record in &inventory.devices {
        let device = Some(record.device.name.as_str());
        check_device(record, &mut linked, &mut Findings::of(&mut list, device, None));
        for port in &record.ports {
            let mut findings = Findings::of(&mut list, device, Some(port.number));
            check_port(&scene, record, port, &mut findings);
        }
    }
    list.extend(settings_for(inventory, &Wish::default(), is_asked));
    list
}

fn check_host(inventory: &Inventory, findings: &mut Findings<'_>) {
    use Severity::{Note, Problem, Warning};
    // Those that are known and were only not read are no problem of the host.
    let others: BTreeSet<&str> = inventory.others.iter().map(|own| own.name.as_str()).collect();
    let unlisted = inventory.unlisted.iter().filter(|(name, _)| !others.contains(name.as_str()));
    for problem in &inventory.problems {
        let is_list = inventory.list_failure.as_ref() == Some(problem);
        let advice = if is_list {
            "there may be other devices"
        } else {
            "what else could be read was looked at"
        };
        findings.add("host-unreadable", Problem, &problem.text, advice);
    }
    for (name, problem) in unlisted {
        let advice = "nothing of this device was looked at";
        findings.add_of(name, "device-unreadable", Problem, &problem.text, advice);
    }
    let is_elsewhere = |own: &Absence| matches!(own, Absence::OtherNamespace { .. });
    let has_others = inventory.absences.iter().any(is_elsewhere);
    let no_device = match inventory.shares_namespaces {
        Some(false) => {
            "load the device's driver, or move a device here from its network namespace (rdma dev set)"
        }
        _ => &Absence::NoDevice.advice(),
    };
    let of_others = inventory.others.iter().map(|own| own.name.as_str());
    let names = inventory.devices.iter().map(|own| own.device.name.as_str()).chain(of_others);
    let here: BTreeSet<&str> =
        names.chain(inventory.unlisted.iter().map(|(name, _)| name.as_str())).collect();
    for absence in &inventory.absences {
        let (seen, advice) = (absence.seen(), absence.advice());
        match absence {
            // Its driver is loaded, then.
            Absence::NoDevice if has_others => {
                let advice = "run where the devices are, or move one here (rdma dev set)";
                findings.add("no-device", Problem, seen, advice);
            }
            Absence::NoModule => findings.add("no-rdma-module", Problem, seen, advice),
            Absence::NoDevice => findings.add("no-device", Problem, seen, no_device),
            // What is typed here would be of the one that is here.
            Absence::OtherNamespace { device, node } if here.contains(device.as_str()) => {
                let seen = format!("another {device} ({node}) is in another network namespace");
                findings.add("device-elsewhere", Warning, seen, "run there");
            }
            Absence::OtherNamespace { .. } => {
                findings.add("device-elsewhere", Warning, seen, advice);
            }
            Absence::NoNodes { .. } if inventory.host.is_some() => {
                findings.add("no-nodes", Problem, seen, advice);
            }
            Absence::NoNodes { .. } => {}
        }
    }
    // /sys may belong to another namespace and show devices that are not here.
    let is_told = |own: &Absence| matches!(own, Absence::NoModule | Absence::NoDevice);
    if inventory.is_empty() && !inventory.absences.iter().any(is_told) {
        let absence = Absence::NoDevice;
        let is_loaded = inventory.has_netlink || inventory.modules.iter().any(|it| it == "ib_core");
        let seen = if is_loaded { absence.seen() } else { "there is no RDMA device".to_owned() };
        findings.add("no-device", Problem, seen, no_device);
    }
    let lacks_node = |record: &DeviceRecord| record.node_state() == Some(NodeState::None);
    let has_no_node = inventory.devices.iter().any(lacks_node);
    // A tree without the folder of modules has none.
    let has_modules = !inventory.modules.is_empty();
    if has_no_node && has_modules && !inventory.modules.iter().any(|it| it == "ib_uverbs") {
        let seen = "the module ib_uverbs is not loaded, so devices have no node";
        findings.add("no-uverbs-module", Problem, seen, "modprobe ib_uverbs");
    }
    if inventory.shares_namespaces == Some(false) {
        findings.add(
            "netns-exclusive",
            Note,
            "each RDMA device belongs to one network namespace (exclusive mode)",
            "a container sees only devices that were moved to it: rdma dev set DEV netns NAME",
        );
    }
    let unchecked = unchecked(inventory);
    if !unchecked.is_empty() {
        findings.add(
            "not-checked",
            Note,
            format!("not looked at: {}", unchecked.join(", ")),
            "run uverbs check where it has /dev/infiniband, /sys, /proc and RDMA netlink, as on the host itself",
        );
    }
    if inventory.is_partial() {
        let seen = if inventory.devices.is_empty() {
            "not looked at: any device"
        } else {
            "not looked at: devices that were not named, and their effect on those that were"
        };
        findings.add("not-checked", Note, seen, "run uverbs check without names");
    }
    if has_unlisted(inventory) {
        let seen = "not looked at: devices that could not be listed, and their effect on others";
        findings.add("not-checked", Note, seen, "uverbs devices says why they could not be");
    }
}

/// What was not read of a host that has devices. No finding covers it.
fn unchecked(inventory: &Inventory) -> Vec<&'static str> {
    if inventory.devices.is_empty() {
        return Vec::new();
    }
    let has_interfaces = inventory.interfaces.is_some() && inventory.has_netlink;
    let are_nodes_known = inventory.devices.iter().all(|record| !record.device.node_is_unread);
    let is_opened = inventory
        .devices
        .iter()
        .all(|record| record.access.is_some() || record.node_state() == Some(NodeState::None));
    let linked = own_functions(inventory);
    let has_links = inventory.devices.iter().all(|record| has_link(record, &linked));
    // Sysfs has none. Code 0 is that of a port without an interface.
    let has_no_mtu = lacks(inventory, &|record, _, own| {
        let is_known = |own: Option<Mtu>| own.is_some_and(|own| own.bytes().is_some());
        let has_none = own.active_mtu == Some(Mtu(0));
        let are_known = is_known(own.active_mtu) && is_known(own.max_mtu);
        is_roce(own.link_layer, record.device.node_type) && !has_none && !are_known
    });
    let has_no_types = lacks(inventory, &|_, port, own| {
        own.link_layer == LinkLayer::ETHERNET && port.has_types.is_none()
    });
    // On a port that is active, a finding of its own says so if it matters which GID is right.
    let has_no_row_types = inventory.devices.iter().any(|record| {
        let rows = record.all_rows().iter().map(|row| &row.record.entry);
        let untyped = rows.filter(|row| row.gid_type() == GidType::UNNAMED);
        let ports: BTreeSet<u32> = untyped.map(GidEntry::port).collect();
        let own = ports.iter().filter_map(|port| record.port(*port)?.known());
        own.into_iter().any(|own| {
            own.state != PortState::ACTIVE && is_roce(own.link_layer, record.device.node_type)
        })
    });
    // On Ethernet they mean nothing.
    let has_no_pkeys = lacks(inventory, &|_, port, own| {
        own.link_layer != LinkLayer::ETHERNET && port.pkeys.is_none()
    });
    let has_no_widths = lacks(inventory, &|record, _, own| is_width_unread(record, own));
    let own = [
        (!has_interfaces).then_some("network interfaces"),
        (!are_nodes_known).then_some("which nodes devices have"),
        (!is_opened).then_some("whether devices can be opened"),
        inventory.host.is_none().then_some("variables that are set"),
        (!has_links).then_some("PCIe links"),
        has_no_widths.then_some("link widths"),
        has_no_mtu.then_some("RDMA MTUs"),
        has_no_types.then_some("whether sysfs has the types of GIDs"),
        has_no_row_types.then_some("types of GIDs on ports that are not active"),
        has_no_pkeys.then_some("P_Keys"),
    ];
    own.into_iter().chain(unknown_needs(inventory)).flatten().collect()
}

/// Whether a port that could be read lacks something.
fn lacks(
    inventory: &Inventory,
    is_without: &dyn Fn(&DeviceRecord, &PortRecord, &PortAttributes) -> bool,
) -> bool {
    inventory.devices.iter().any(|record| {
        let mut ports = record.ports.iter();
        ports.any(|port| port.known().is_some_and(|own| is_without(record, port, own)))
    })
}

/// Why this user may not use a node, and what to do.
fn why_forbidden(record: &DeviceRecord) -> (&'static str, &'static str) {
    const EACCES: i32 = 13;
    let is_refused = matches!(&record.access, Some(Err(problem)) if problem.errno == EACCES);
    match record.node_mode {
        _ if record.node_is_in_nodev => (
            "may not be opened, as its mount has the option nodev",
            "mount it without nodev, or give the container the node as a device",
        ),
        // uverbs reads it; programs with libibverbs open it for both.
        _ if record.node_is_read_only && !is_refused => (
            "may not be opened for writing by this user, and programs do that",
            "allow it: the kernel makes nodes with mode 0666, but a udev rule or a container's device rules may \
             change that",
        ),
        // For reading, which is enough for uverbs.
        Some(mode) if mode & 0o444 == 0o444 => (
            "may not be opened or used, though its mode allows it",
            "something else forbids it: perhaps a security module, as SELinux or AppArmor, or the mount",
        ),
        Some(_) => (
            "may not be opened by this user",
            "allow it: the kernel makes nodes with mode 0666, but a udev rule may change that",
        ),
        // It could not be looked at.
        None => (
            "may not be opened or used by this user, and its mode is not known",
            "its folder, the node's mode, the mount or a security module forbids it",
        ),
    }
}

fn check_device(
    record: &DeviceRecord,
    linked: &mut BTreeSet<PciAddress>,
    findings: &mut Findings<'_>,
) {
    use Severity::{Problem, Warning};
    const EINVAL: i32 = 22;
    const ENXIO: i32 = 6;
    let device = &record.device;
    let path = device.node.as_ref().map(|node| node.path.display().to_string());
    let path = path.unwrap_or_default();
    let mode = record.node_mode.map(|mode| format!(" (mode {:04o})", mode & 0o7777));
    let mode = mode.unwrap_or_default();
    let refused = record.access.as_ref().and_then(|access| access.as_ref().err());
    let text = refused.map(|problem| problem.text.as_str()).unwrap_or_default();
    match record.node_state() {
        Some(NodeState::Usable) if refused.is_some_and(|own| own.errno == EINVAL) => {
            findings.add("driver-unknown", Warning, text, "use a newer uverbs");
        }
        // Programs of rdma-core ask in another way, which older kernels know.
        Some(NodeState::Usable) if refused.is_some() => {
            let advice = match record.fallback() {
                Some(_) => "programs with libibverbs do not need it; uverbs read sysfs instead",
                None => "programs with libibverbs do not need it",
            };
            findings.add("ioctl-unknown", Severity::Note, text, advice);
        }
        None if refused.is_some() && !device.node_is_unread => {
            let advice =
                "this says nothing about the node: run uverbs check again, with higher limits";
            findings.add("node-not-opened", Warning, text, advice);
        }
        None | Some(NodeState::Usable) => {}
        Some(NodeState::None) => findings.add(
            "no-node",
            Problem,
            "the device has no uverbs node",
            "load ib_uverbs; if it is loaded, the device is just coming or going, or its driver offers none",
        ),
        Some(NodeState::Missing) => findings.add(
            "node-missing",
            Problem,
            format!("{path} is missing"),
            "give the container this device node, or run udev",
        ),
        Some(NodeState::Forbidden) => {
            let (why, advice) = why_forbidden(record);
            findings.add("node-forbidden", Problem, format!("{path}{mode} {why}"), advice);
        }
        Some(NodeState::NotPermitted) => findings.add(
            "node-not-permitted",
            Problem,
            format!("opening and using {path} is not permitted"),
            "the device is in another network namespace (exclusive mode), or the container's \
             device rules or its filter of system calls forbid it",
        ),
        Some(NodeState::Unusable) => findings.add(
            "node-unusable",
            Problem,
            text,
            match refused {
                Some(own) if own.errno == ENXIO => WRONG_NODE,
                _ => "without it there is no RDMA; the kernel's log may say more",
            },
        ),
    }
    // What follows from a problem that is said is not said again.
    let of_access = refused.filter(|_| findings.has_problem());
    let unknown = device.driver.filter(|driver| driver.name().is_none());
    if let Some(driver) = unknown {
        findings.add(
            "driver-unknown",
            Warning,
            format!("driver {} is not known to this version", driver.0),
            "use a newer uverbs",
        );
    }
    check_link(record, linked, findings);
    if device.ports().is_empty() {
        let advice = "no program can use it; the kernel's log may say more";
        findings.add("no-port", Warning, "the device has no port", advice);
    }
    if let Some(problem) = record.problem().filter(|own| of_access != Some(*own)) {
        findings.add(
            "gid-table-unreadable",
            Problem,
            &problem.text,
            "without it no GID can be chosen; the kernel's log may say more",
        );
    }
}

/// Whether it shares the link of a function that may be another device: virtual functions and sub-functions do.
fn shares_link(own: &PciFunction) -> bool {
    own.is_virtual() || own.has_sub_function
}

/// The functions whose links devices have of their own. What shares one of these is not asked about it.
fn own_functions(inventory: &Inventory) -> BTreeSet<PciAddress> {
    let all = inventory.devices.iter().filter_map(|record| record.hardware.as_ref()?.pci.as_ref());
    all.filter(|own| !shares_link(own)).map(|own| own.address).collect()
}

/// The function whose link it is; a virtual one's own address where the physical one is not known.
fn linked_function(own: &PciFunction) -> PciAddress {
    own.physical.unwrap_or(own.address)
}

/// Whether a device's PCIe link can be judged, by itself or by the function that has it.
fn has_link(record: &DeviceRecord, linked: &BTreeSet<PciAddress>) -> bool {
    let is_known = |own: &PciFunction| {
        let is_told = shares_link(own) && linked.contains(&linked_function(own));
        is_told || (own.link.is_some() && own.max_link.is_some())
    };
    let hardware = record.hardware.as_ref().filter(|own| !own.pci_is_unread);
    hardware.is_some_and(|own| own.pci.as_ref().is_none_or(is_known))
}

/// Finds a PCIe link that is not what the device is capable of. Of those that share one, that of which the link is has
/// the finding, or the first if that is no device here.
fn check_link(
    record: &DeviceRecord,
    linked: &mut BTreeSet<PciAddress>,
    findings: &mut Findings<'_>,
) {
    let Some(own) = record.hardware.as_ref().and_then(|own| own.pci.as_ref()) else { return };
    let function = linked_function(own);
    if shares_link(own) && !linked.insert(function) {
        return;
    }
    if let (true, Some(link), Some(max)) = (own.is_narrow(), own.link, own.max_link) {
        findings.add(
            "pcie-narrow",
            Severity::Warning,
            format!("the PCIe link of {function} is {link}, and the device is capable of {max}"),
            "reseat the card, or move it to a slot that is as fast and wide (lspci -vv: LnkCap, LnkSta)",
        );
    }
}

#[cfg(test)]
mod tests;
