//! The pre-flight: what is wrong with a host, judged from its [`Inventory`].
//!
//! Each [`Finding`] has a severity, a stable name, an observation and advice. Nothing here asks the
//! kernel. What was left out of the inventory on request is not judged.

use core::fmt;
use std::collections::BTreeMap;

use crate::choose::plan::{Model, Program};
use crate::choose::{self, Decision, Home, Outcome, Port, Surroundings, Why, Wish, recommend};
use crate::device::{Absence, NodeType};
use crate::driver::DriverId;
use crate::gid::GidType;
use crate::inventory::{DeviceRecord, Inventory, PortRecord, Reading, Setting};
use crate::port::{LinkLayer, Mtu, PhysState, PortAttributes, PortState};

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Good to know.
    Note,
    /// It may work, but not as intended.
    Warning,
    /// It does not work.
    Problem,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Problem => "problem",
        })
    }
}

/// Something that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// Its name, for programs. It does not change.
    pub name: &'static str,
    /// Its severity.
    pub severity: Severity,
    /// The device; `None` if the finding is about the host.
    pub device: Option<String>,
    /// The port; `None` if the finding is about the device.
    pub port: Option<u32>,
    /// The program, if the finding is about a program's settings or choice.
    pub program: Option<Program>,
    /// What was seen.
    pub seen: String,
    /// What to do.
    pub advice: String,
}

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
}

/// Gathers findings of one place.
struct Findings<'f> {
    list: &'f mut Vec<Finding>,
    /// How many there were before.
    first: usize,
    device: Option<&'f str>,
    port: Option<u32>,
}

impl<'f> Findings<'f> {
    fn of(list: &'f mut Vec<Finding>, device: Option<&'f str>, port: Option<u32>) -> Self {
        Self { first: list.len(), list, device, port }
    }

    /// Whether a problem of this place was already added.
    fn has_problem(&self) -> bool {
        let own = self.list.get(self.first..).unwrap_or_default();
        own.iter().any(|own| own.severity == Severity::Problem)
    }

    fn add(
        &mut self,
        name: &'static str,
        severity: Severity,
        seen: impl Into<String>,
        advice: impl Into<String>,
    ) {
        self.list.push(Finding {
            name,
            severity,
            device: self.device.map(str::to_owned),
            port: self.port,
            program: None,
            seen: seen.into(),
            advice: advice.into(),
        });
    }
}

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
    let mut list = Vec::new();
    check_host(inventory, &mut Findings::of(&mut list, None, None));
    let scene =
        Scene { inventory, here: Surroundings::of(inventory), widest: widest(inventory), expected };
    for record in &inventory.devices {
        let device = Some(record.device.name.as_str());
        check_device(inventory, record, &mut Findings::of(&mut list, device, None));
        for port in &record.ports {
            let mut findings = Findings::of(&mut list, device, Some(port.number));
            check_port(&scene, record, port, &mut findings);
        }
    }
    list.extend(settings(inventory));
    list
}

/// What each port is compared with.
struct Scene<'i> {
    inventory: &'i Inventory,
    here: Surroundings<'i>,
    widest: Widest<'i>,
    expected: Expected,
}

fn check_host(inventory: &Inventory, findings: &mut Findings<'_>) {
    use Severity::{Note, Problem, Warning};
    let unlisted = inventory.unlisted.iter().map(|(_, problem)| problem);
    for problem in inventory.problems.iter().chain(unlisted) {
        findings.add("host-unreadable", Problem, &problem.text, "the rest was read");
    }
    for absence in &inventory.absences {
        let (seen, advice) = (absence.seen(), absence.advice());
        match absence {
            Absence::NoModule => findings.add("no-rdma-module", Problem, seen, advice),
            Absence::NoDevice => findings.add("no-device", Problem, seen, advice),
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
        findings.add("no-device", Problem, absence.seen(), absence.advice());
    }
    let has_no_node = inventory.devices.iter().any(|record| record.device.node.is_none());
    if has_no_node && !inventory.modules.iter().any(|module| module == "ib_uverbs") {
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
            "run uverbs check on the host itself, with /dev/infiniband and RDMA netlink",
        );
    }
    if inventory.is_partial() && !inventory.devices.is_empty() {
        findings.add(
            "not-checked",
            Note,
            "not looked at: devices that were not named, and their effect on those that were",
            "run uverbs check without --device",
        );
    }
}

/// What was not read of a host that has devices. No finding covers it.
fn unchecked(inventory: &Inventory) -> Vec<&'static str> {
    if inventory.devices.is_empty() {
        return Vec::new();
    }
    let has_interfaces = inventory.interfaces.is_some() && inventory.has_netlink;
    let has_node = |record: &&DeviceRecord| record.device.node.is_some();
    let mut nodes = inventory.devices.iter().filter(has_node);
    let is_opened = nodes.all(|record| record.access.is_some());
    [
        (!has_interfaces).then_some("network interfaces"),
        (!is_opened).then_some("whether devices can be opened"),
        inventory.host.is_none().then_some("variables that are set"),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn check_device(inventory: &Inventory, record: &DeviceRecord, findings: &mut Findings<'_>) {
    use Severity::{Problem, Warning};
    const ENOENT: i32 = 2;
    const EPERM: i32 = 1;
    const EACCES: i32 = 13;
    let device = &record.device;
    let path = device.node.as_ref().map(|node| node.path.display().to_string());
    let path = path.unwrap_or_default();
    let mode = record.node_mode.map(|mode| format!(" (mode {:04o})", mode & 0o7777));
    let mode = mode.unwrap_or_default();
    match &record.access {
        _ if device.node.is_none() => findings.add(
            "no-node",
            Problem,
            "the device has no uverbs node",
            "load ib_uverbs; if it is loaded, the driver offers none",
        ),
        Some(Err(problem)) => match problem.errno {
            ENOENT => findings.add(
                "node-missing",
                Problem,
                format!("{path} is missing"),
                "give the container this device node, or run udev",
            ),
            EACCES => findings.add(
                "node-forbidden",
                Problem,
                format!("{path}{mode} may not be opened by this user"),
                "allow it: the kernel makes nodes with mode 0666, but a udev rule may change that",
            ),
            EPERM => findings.add(
                "node-not-permitted",
                Problem,
                format!("opening and using {path} is not permitted"),
                "the device is in another network namespace (exclusive mode), or the container's \
                 device rules or its filter of system calls forbid it",
            ),
            _ => findings.add(
                "node-unusable",
                Problem,
                &problem.text,
                "without it there is no RDMA; the kernel's log may say more",
            ),
        },
        None if record.node_mode.is_none() && inventory.host.is_some() => findings.add(
            "node-missing",
            Problem,
            format!("{path} is missing"),
            "give the container this device node, or run udev",
        ),
        _ => {}
    }
    let unknown = device.driver.filter(|driver| driver.name().is_none());
    if let Some(driver) = unknown {
        findings.add(
            "driver-unknown",
            Warning,
            format!("driver {} is not known to this version", driver.0),
            "use a newer uverbs",
        );
    }
    if let Some(problem) = record.problem()
        && record.access.as_ref().and_then(|access| access.as_ref().err()) != Some(problem)
    {
        findings.add(
            "gid-table-unreadable",
            Problem,
            &problem.text,
            "without it no GID can be chosen; the kernel's log may say more",
        );
    }
}

fn check_port(
    scene: &Scene<'_>,
    record: &DeviceRecord,
    port: &PortRecord,
    findings: &mut Findings<'_>,
) {
    use Severity::{Problem, Warning};
    let Scene { inventory, here, widest, expected } = scene;
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
    if !matches!(attributes.state, PortState::ACTIVE | PortState::ACTIVE_DEFER) {
        let (seen, advice) = why_down(attributes);
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
            findings.add("pkeys-unreadable", Warning, &problem.text, "is sysfs masked?");
        }
        _ => {}
    }
    if let Err(problem) = &port.guid
        && record.problem() != Some(problem)
    {
        let advice = "the kernel's log may say more";
        findings.add("port-guid-unreadable", Warning, &problem.text, advice);
    }
    if is_ethernet {
        check_netdev(inventory, port, attributes, findings);
    }
    if let Some(seen) = choose::port(here, record, port) {
        check_gids(&seen, findings);
    }
    check_width(widest, record, attributes, findings);
}

/// Why a port is not active, and what to do.
fn why_down(attributes: &PortAttributes) -> (String, &'static str) {
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

fn check_netdev(
    inventory: &Inventory,
    port: &PortRecord,
    attributes: &PortAttributes,
    findings: &mut Findings<'_>,
) {
    use Severity::{Note, Problem, Warning};
    if inventory.interfaces.is_none() || !inventory.has_netlink {
        return;
    }
    let Some(netdev) = &port.netdev else {
        // mlx5 in switchdev mode has a port for each possible vport. A port without a vport has no
        // interface in any namespace, no MTU and no GID table: check_gids reports it.
        let has_mtu = attributes.active_mtu.is_some_and(|mtu| mtu.0 != 0);
        if !has_mtu && attributes.gid_tbl_len == 0 {
            return;
        }
        findings.add(
            "netdev-elsewhere",
            Note,
            "the port's network interface is not in this network namespace",
            "use a GID whose interface is: uverbs choose --explain shows which",
        );
        return;
    };
    let Some(interface) = inventory.interface(netdev.index.get()) else { return };
    let name = &interface.name;
    if !interface.is_up {
        findings.add(
            "netdev-down",
            Problem,
            format!("{name} is down"),
            format!("ip link set {name} up"),
        );
    } else if !interface.is_lower_up {
        findings.add(
            "netdev-down",
            Problem,
            format!("{name} has no carrier"),
            "look at cable, transceiver and switch port",
        );
    }
    // The payload that fits after the headers of RoCE. Drivers count the headers differently.
    let rooms = [96, 80].map(|headers| interface.mtu.saturating_sub(headers));
    let sizes = [4096, 2048, 1024, 512, 256];
    let active = attributes.active_mtu.and_then(Mtu::bytes).map(u32::from);
    let greatest = attributes.max_mtu.and_then(Mtu::bytes).map_or(4096, u32::from);
    let fitting = rooms.map(|room| sizes.into_iter().find(|size| *size <= room.min(greatest)));
    if let ([Some(fitting), other], Some(active)) = (fitting, active)
        && active != fitting
        && other != Some(active)
    {
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

fn check_gids(port: &Port<'_>, findings: &mut Findings<'_>) {
    use Severity::{Note, Problem, Warning};
    let is_roce = port.link_layer == LinkLayer::ETHERNET && port.node_type != NodeType::RNIC;
    if port.gid_tbl_len == 0 {
        findings.add(
            "no-gid-table",
            Warning,
            "the port has no GID table",
            "it is a representor (switchdev mode), or has no RoCE: use another port",
        );
        return;
    }
    if port.rows.is_empty() {
        findings.add(
            "empty-gid-table",
            Problem,
            "the GID table is empty",
            if is_roce {
                "give the port's interface an address and bring it up"
            } else {
                "is a subnet manager running?"
            },
        );
        return;
    }
    if is_roce {
        let is_local = |row: &choose::Row<'_>| {
            row.gid.ipv6().is_unicast_link_local()
                || row.gid.ipv4().is_some_and(|v4| v4.is_link_local())
        };
        if port.rows.iter().all(is_local) {
            findings.add(
                "only-link-local",
                Problem,
                "all GIDs are link-local",
                "give the port's interface an IPv4 or a global IPv6 address",
            );
        }
        // A type that is not known may be it.
        let may_be_v2 =
            |row: &choose::Row<'_>| !matches!(row.gid_type, GidType::IB | GidType::ROCE_V1);
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
        if foreign > 0 {
            findings.add(
                "foreign-gids",
                Note,
                format!(
                    "{foreign} of {} GIDs belong to no interface in this network namespace",
                    port.rows.len()
                ),
                "programs that do not check this may take one: uverbs env says what to set",
            );
        }
    }
    let is_told = findings.has_problem();
    let decision = recommend(port, &Wish::default());
    if let Outcome::Ignored(Why::NoRow) = decision.outcome
        && !is_told
    {
        findings.add(
            "no-usable-gid",
            Problem,
            "no GID is usable here",
            "uverbs choose --explain gives the reason for each",
        );
    }
}

/// The active port with the most lanes, by driver and link layer.
type Widest<'i> = BTreeMap<(u32, u8), (u8, &'i str, u32)>;

fn lanes(own: &PortAttributes) -> Option<u8> {
    let is_active = own.state == PortState::ACTIVE;
    own.active_width.filter(|_| is_active)?.lanes()
}

fn widest(inventory: &Inventory) -> Widest<'_> {
    let mut widest = Widest::new();
    for record in &inventory.devices {
        let Some(DriverId(driver)) = record.device.driver else { continue };
        for port in &record.ports {
            let Some(attributes) = port.known() else { continue };
            let Some(lanes) = lanes(attributes) else { continue };
            let own = (lanes, record.device.name.as_str(), port.number);
            let most = widest.entry((driver, attributes.link_layer.0)).or_insert(own);
            if lanes >= most.0 {
                *most = own;
            }
        }
    }
    widest
}

/// Finds a link that is narrower than those of other ports of the same driver. The kernel does not say
/// how wide it could be.
fn check_width(
    widest: &Widest<'_>,
    record: &DeviceRecord,
    attributes: &PortAttributes,
    findings: &mut Findings<'_>,
) {
    let Some(own) = lanes(attributes) else { return };
    let Some(DriverId(driver)) = record.device.driver else { return };
    if let Some((most, name, number)) = widest.get(&(driver, attributes.link_layer.0))
        && own < *most
    {
        let rate = attributes.rate().map(|rate| format!(", {rate} Gb/s")).unwrap_or_default();
        findings.add(
            "narrow-link",
            Severity::Warning,
            format!("the link is {own}X wide{rate}; that of {name}:{number} is {most}X"),
            "look at cable and transceiver, and reseat them",
        );
    }
}

/// Findings about programs that take another GID than the recommended one, with the variables as they
/// are set now.
#[must_use]
pub fn settings(inventory: &Inventory) -> Vec<Finding> {
    let ports = choose::ports(inventory);
    let recommended: Vec<(&Port<'_>, Decision)> =
        ports.iter().map(|port| (port, recommend(port, &Wish::default()))).collect();
    let all: Vec<&Port<'_>> = ports.iter().collect();
    // What comes first counts.
    let mut set: BTreeMap<&str, &Setting> = BTreeMap::new();
    for setting in inventory.settings.iter().filter(|own| own.readings.contains(&Reading::NEWEST)) {
        set.entry(&setting.name).or_insert(setting);
    }
    let variable = |name: &str| set.get(name).map(|setting| setting.value.as_str());
    let mut found = Vec::new();
    let mut is_pinned = false;
    for program in [Program::Nccl, Program::Ucx, Program::Nvshmem] {
        let is_nvshmem_s = |name: &str| name.starts_with("NVSHMEM_");
        if program == Program::Nvshmem && !set.keys().any(|name| is_nvshmem_s(name)) {
            continue;
        }
        let model = program.model(variable);
        is_pinned |= model.pinned().is_some();
        let outcomes: Vec<Outcome> =
            model.choose_all(&all).into_iter().map(|decision| decision.outcome).collect();
        // The list may include a port that was not read or not asked for.
        if !inventory.is_partial() && inventory.unread().is_empty() {
            judge_list(&set, program, &all, &outcomes, &mut found);
        }
        found.extend(judge_room(program, &all, &outcomes));
        let index = program.index_variable();
        let index = set.get(index).map_or_else(|| index.to_owned(), ToString::to_string);
        for ((port, decision), outcome) in recommended.iter().zip(&outcomes) {
            let Some(right) = decision.outcome.index() else { continue };
            if port.link_layer == LinkLayer::ETHERNET {
                found.extend(judge(&index, program, &model, port, right, outcome));
            }
        }
    }
    let mut indices: Vec<(u32, &Port<'_>)> = recommended
        .iter()
        .filter(|(port, _)| port.link_layer == LinkLayer::ETHERNET)
        .filter_map(|(port, decision)| Some((decision.outcome.index()?, *port)))
        .collect();
    indices.dedup_by_key(|(index, _)| *index);
    if let [(one, at), (other, there), ..] = indices.as_slice() {
        found.push(Finding {
            name: "different-indices",
            severity: if is_pinned { Severity::Warning } else { Severity::Note },
            device: None,
            port: None,
            program: None,
            seen: format!(
                "the right index is {one} on {}:{} and {other} on {}:{}",
                at.device, at.number, there.device, there.number
            ),
            advice: "set no index; uverbs env says what to set instead".to_owned(),
        });
    }
    found
}

/// Finds active ports for which NCCL has no room.
fn judge_room(program: Program, ports: &[&Port<'_>], outcomes: &[Outcome]) -> Option<Finding> {
    let name = |port: &Port<'_>| format!("{}:{}", port.device, port.number);
    let without = |what: Outcome| {
        let own = ports.iter().zip(outcomes).filter(move |(_, own)| **own == what);
        own.map(|(port, _)| name(port)).collect::<Vec<String>>()
    };
    let overrun = without(Outcome::Fails(Why::Overrun));
    let left = without(Outcome::Ignored(Why::NoRoom));
    let room = choose::nccl::ROOM;
    let count = overrun.len() + left.len();
    let (severity, seen) = if count > 0 && !choose::nccl::is_order_known(ports) {
        let seen = format!(
            "{program} has room for {room} ports, and there are {count} more; it is not known which it takes"
        );
        (Severity::Warning, seen)
    } else if let Some(first) = overrun.first() {
        let seen =
            format!("{program} has room for {room} ports, and writes past the end at {first}");
        (Severity::Problem, seen)
    } else {
        let (first, more) = left.split_first()?;
        let more = match more.len() {
            0 => String::new(),
            count => format!(" and {count} more"),
        };
        let seen = format!("{program} has room for {room} ports, and leaves out {first}{more}");
        (Severity::Warning, seen)
    };
    Some(Finding {
        name: "too-many-ports",
        severity,
        device: None,
        port: None,
        program: Some(program),
        seen,
        advice: "name the ports to use: uverbs env nccl DEV:PORT… says what to set".to_owned(),
    })
}

/// Finds a list of devices that leaves no active port.
fn judge_list(
    set: &BTreeMap<&str, &Setting>,
    program: Program,
    ports: &[&Port<'_>],
    outcomes: &[Outcome],
    found: &mut Vec<Finding>,
) {
    let mut variables = Vec::new();
    for (port, outcome) in ports.iter().zip(outcomes) {
        match outcome {
            _ if port.state != PortState::ACTIVE => {}
            Outcome::Ignored(Why::NotListed(variable)) => variables.push(variable),
            _ => return,
        }
    }
    if variables.is_empty() {
        return;
    }
    let setting = variables.first().and_then(|variable| set.get(*variable));
    found.push(Finding {
        name: "list-leaves-none",
        severity: Severity::Problem,
        device: None,
        port: None,
        program: Some(program),
        seen: format!(
            "{} leaves {program} no active port",
            setting.map(ToString::to_string).unwrap_or_default()
        ),
        advice: "write device names as uverbs devices prints them, without blanks".to_owned(),
    });
}

/// Finds what is wrong with a program's use of a port.
fn judge(
    set: &str,
    program: Program,
    model: &Model,
    port: &Port<'_>,
    right: u32,
    outcome: &Outcome,
) -> Option<Finding> {
    use Severity::{Problem, Warning};
    let place = format!("{}:{}", port.device, port.number);
    let instead = format!("index {right} is right here; uverbs env says what to set for all ports");
    let finding = |name, severity, seen: String, advice: String| {
        let device = Some(port.device.to_owned());
        let (port, program) = (Some(port.number), Some(program));
        Some(Finding { name, severity, device, port, program, seen, advice })
    };
    let is_pinned = model.pinned().is_some();
    match outcome {
        Outcome::Taken(index) if *index == right => None,
        // One finding covers all ports without room.
        Outcome::Ignored(Why::NotListed(_) | Why::NotActive(_) | Why::Disabled | Why::NoRoom)
        | Outcome::Fails(Why::Overrun)
        | Outcome::ByLid => None,
        Outcome::Empty(_) | Outcome::Ignored(Why::EmptyFirst(_)) if is_pinned => {
            finding("pinned-index-empty", Problem, format!("{set} is empty on {place}"), instead)
        }
        Outcome::Outside(_) | Outcome::Ignored(Why::OutsideFirst(_)) if is_pinned => finding(
            "pinned-index-outside",
            Problem,
            format!("{set} is outside the GID table of {place}"),
            instead,
        ),
        Outcome::Taken(index) => {
            let (row, best) = (port.row(*index)?, port.row(right)?);
            let what = format!("{} ({})", row.gid, row.gid_type);
            match (is_pinned, row.gid_type == best.gid_type) {
                (true, false) => finding(
                    "pinned-index-other-type",
                    Warning,
                    format!("{set} is of type {} on {place}", row.gid_type),
                    instead,
                ),
                (true, true) => {
                    let seen = format!("{set} is {what} on {place}");
                    finding("pinned-index-other", Warning, seen, instead)
                }
                (false, _) => finding(
                    "takes-other-gid",
                    Warning,
                    format!("{program} takes GID {index} of {place}, {what}"),
                    instead,
                ),
            }
        }
        other => finding(
            "takes-no-gid",
            Warning,
            format!("{program} gets no GID of {place}: {other}"),
            instead,
        ),
    }
}

#[cfg(test)]
mod tests;
