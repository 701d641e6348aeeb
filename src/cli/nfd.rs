//! `uverbs nfd`: what a scheduler needs to know of a node, as a feature file of node-feature-discovery.

use std::fmt::{Display, Write as _};
use std::time::{Duration, SystemTime};

use clap::Args;
use uverbs::choose::{Outcome, Wish};
use uverbs::device::NodeType;
use uverbs::gid::GidType;
use uverbs::inventory::{DeviceRecord, Parts, PortRecord};
use uverbs::port::{LinkLayer, PortAttributes, PortState};
use uverbs::watch::format_time;

use crate::args::{Common, NamedPorts, OriginArgs, OutputArg};
use crate::form::{Form, Room};
use crate::hosts::{Chosen, Seen, choose, host, look_to_choose, missing};
use crate::output::Output;
use crate::report::Report;
use crate::selection::Asked;
use crate::until::seconds;
use crate::verdict::is_known;

/// Write labels of a Kubernetes node, as a feature file of node-feature-discovery
///
/// Its worker reads such files in /etc/kubernetes/node-feature-discovery/features.d, and makes labels of
/// their lines: how many devices and ports there are and how many ports are active, whether any is RoCE,
/// InfiniBand or iWARP, whether `uverbs choose` recommends a RoCE v2 GID with an IPv4 address on an active
/// port, and the rate of the fastest active port in Gb/s. What is not known has no line. A device that was
/// moved to another network namespace, as into a pod, is none of them.
///
/// With --valid-for the lines are of no effect when so many seconds have passed, so that labels do not
/// outlive what writes them. Write the file again before that.
#[derive(Debug, Args)]
#[command(
    verbatim_doc_comment,
    mut_arg("selectors", |own| own.help("Devices and ports to count; all if none is named")),
    after_help = "\
Examples:
  uverbs nfd
  uverbs nfd --valid-for 300 --output /etc/kubernetes/node-feature-discovery/features.d/uverbs
  uverbs nfd --from node7.json"
)]
pub(crate) struct NfdArgs {
    #[command(flatten)]
    pub(crate) named: NamedPorts,
    /// How many seconds the labels are valid [default: for ever]
    #[arg(long, value_name = "S", value_parser = seconds)]
    valid_for: Option<Duration>,
    #[command(flatten)]
    output: OutputArg,
    #[command(flatten)]
    pub(crate) origin: OriginArgs,
}

pub(crate) fn answer(
    common: &Common,
    args: &NfdArgs,
    report: &mut Report,
) -> serde_json::Result<Output> {
    let asked = Asked::new(&args.named.selectors);
    let source = (&args.origin.from, args.origin.preference(common), Parts::CHOOSING);
    let mut room = Room::of(Form::OtherTool("nfd"));
    let mut text = String::new();
    let end = args.valid_for.and_then(|time| SystemTime::now().checked_add(time));
    if let Some(end) = end {
        let _ = writeln!(text, "# +expiry-time={}", format_time(end, 0));
    }
    look_to_choose(&mut host(common), source, &asked, report, |seen, report| {
        if room.take(report) {
            missing(seen, &asked, report);
            let chosen = choose(seen, &asked, &Wish::default(), report);
            add_labels(&mut text, seen, &asked, &chosen);
        }
        Ok(())
    })?;
    Ok(args.output.write(text.into_bytes(), report))
}

/// A line. Its name and its value are what Kubernetes allows in a label.
fn add(text: &mut String, name: &str, value: Option<impl Display>) {
    if let Some(value) = value {
        let _ = writeln!(text, "feature.node.kubernetes.io/uverbs-{name}={value}");
    }
}

fn add_labels(text: &mut String, seen: &Seen, asked: &Asked<'_>, chosen: &[Chosen<'_>]) {
    let inventory = &seen.inventory;
    // Where something could not be listed, nothing is known to be all.
    let is_whole =
        !seen.is_partly_read && inventory.problems.is_empty() && inventory.unlisted.is_empty();
    let records = inventory.devices.iter();
    let records: Vec<&DeviceRecord> =
        records.filter(|own| asked.has_device(&own.device.name)).collect();
    let ports: Vec<(&DeviceRecord, &PortRecord)> = records
        .iter()
        .flat_map(|own| own.ports.iter().map(move |port| (*own, port)))
        .filter(|(own, port)| asked.has_port(&own.device.name, port.number))
        .collect();
    let known = ports.iter().map(|(_, port)| port.known());
    let is_known = is_whole && known.clone().all(|port| port.is_some());
    let active = known.flatten().filter(|own| own.state == PortState::ACTIVE);
    let fastest = active.clone().map(PortAttributes::rate).max();
    // One that is not known may be the fastest.
    let has_rates = active.clone().all(|own| own.rate().is_some());

    add(text, "devices", is_whole.then_some(records.len()));
    add(text, "ports", is_whole.then_some(ports.len()));
    add(text, "ports-active", is_known.then(|| active.count()));
    // What was so may be so no more, if there are lines of a recording that could not be read.
    let is_of_then = |_: &bool| !seen.is_partly_read;
    for kind in [Kind::Roce, Kind::Ib, Kind::Iwarp] {
        let kinds = ports.iter().map(|(own, port)| is_of(own, port, kind));
        add(text, kind.name(), any(kinds, is_whole).filter(is_of_then));
    }
    let chosen = chosen.iter().filter(|own| asked.has_port(own.port.device, own.port.number));
    // There is no choice for a port that could not be read, or whose table could not.
    let is_chosen = is_whole && chosen.clone().count() == ports.len();
    let has_one = any(chosen.map(has_roce_v2_ipv4), is_chosen);
    add(text, "roce-v2-ipv4", has_one.filter(is_of_then));
    add(text, "gbps", fastest.flatten().filter(|_| is_known && has_rates));
}

/// Whether one is so; `None` if one that is not known, or that is not among them, may be.
fn any(all: impl Iterator<Item = Option<bool>> + Clone, is_whole: bool) -> Option<bool> {
    let mut found = all.clone();
    if found.any(|own| own == Some(true)) {
        return Some(true);
    }
    (is_whole && all.into_iter().all(|own| own.is_some())).then_some(false)
}

/// What a port can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Roce,
    Ib,
    Iwarp,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Roce => "roce",
            Self::Ib => "ib",
            Self::Iwarp => "iwarp",
        }
    }
}

/// Whether a port is of this kind. The two ports of a device need not be of one.
fn is_of(own: &DeviceRecord, port: &PortRecord, kind: Kind) -> Option<bool> {
    let layer = match own.device.node_type {
        NodeType::RNIC => return Some(kind == Kind::Iwarp),
        NodeType::USNIC | NodeType::USNIC_UDP => return Some(false),
        _ => port.known()?.link_layer,
    };
    match layer {
        LinkLayer::ETHERNET if kind == Kind::Roce => own.is_roce(port),
        LinkLayer::INFINIBAND if kind == Kind::Ib => own.is_omni_path().map(|is_other| !is_other),
        LinkLayer::ETHERNET | LinkLayer::INFINIBAND => Some(false),
        _ => None,
    }
}

/// Whether a port is active, and the GID to use on it is one of RoCE v2 with an IPv4 address.
fn has_roce_v2_ipv4(own: &Chosen<'_>) -> Option<bool> {
    let is_one = |index: u32| {
        own.port
            .row(index)
            .is_some_and(|row| row.gid_type == GidType::ROCE_V2 && row.gid.ipv4().is_some())
    };
    match own.decision.outcome {
        _ if own.port.state != PortState::ACTIVE => Some(false),
        _ if !own.decision.is_sure(&own.port) => None,
        Outcome::Taken(index) if is_one(index) => Some(true),
        _ if own.decision.better_unknown.is_some() => None,
        ref other => is_known(other).then_some(false),
    }
}
