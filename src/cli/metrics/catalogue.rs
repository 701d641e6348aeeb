//! All metrics but the kernel's own counters, whose names are in `names.rs`. `src/docs/metrics.md` has the
//! same table.

/// How a metric is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Gauge,
    Counter,
    /// Its value is always 1. What it says is in its labels.
    Info,
}

/// A metric. Its samples may lack a label that is not known, and have the label `host` if a snapshot was
/// read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Metric {
    /// Without the ending that its kind adds.
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// Its unit, with which its name ends.
    pub(crate) unit: Option<&'static str>,
    #[cfg_attr(not(test), expect(dead_code, reason = "for the table of the documentation"))]
    pub(crate) labels: &'static str,
    #[cfg_attr(not(test), expect(dead_code, reason = "for the table of the documentation"))]
    pub(crate) source: &'static str,
    pub(crate) help: &'static str,
}

pub(super) const fn gauge(
    name: &'static str,
    unit: Option<&'static str>,
    labels: &'static str,
    source: &'static str,
    help: &'static str,
) -> Metric {
    Metric { name, kind: Kind::Gauge, unit, labels, source, help }
}

pub(super) const fn info(
    name: &'static str,
    labels: &'static str,
    source: &'static str,
    help: &'static str,
) -> Metric {
    Metric { name, kind: Kind::Info, unit: None, labels, source, help }
}

const PORT: &str = "device, port";

pub(crate) const BUILD: Metric = info("uverbs_build", "version", "–", "The version of uverbs.");
pub(crate) const DEVICE: Metric = info(
    "uverbs_device",
    "device, node_type, protocol, driver, fw_version, node_guid, address",
    "RDMA netlink, sysfs",
    "A device; address is that of its PCI function.",
);
pub(crate) const NUMA_NODE: Metric =
    gauge("uverbs_device_numa_node", None, "device", "sysfs", "The NUMA node of a device.");
pub(crate) const PORT_INFO: Metric = info(
    "uverbs_port",
    "device, port, link_layer, port_guid, netdev",
    "ioctl or sysfs, RDMA netlink",
    "A port; netdev is its network interface, if that is in this network namespace.",
);
pub(crate) const STATE: Metric = gauge(
    "uverbs_port_state",
    None,
    "device, port, state",
    "ioctl or sysfs",
    "1 for the logical state that a port is in, 0 for the others.",
);
pub(crate) const PHYS_STATE: Metric = gauge(
    "uverbs_port_physical_state",
    None,
    "device, port, state",
    "ioctl or sysfs",
    "1 for the physical state that a port is in, 0 for the others.",
);
pub(crate) const RATE: Metric = gauge(
    "uverbs_port_rate_bytes_per_second",
    Some("bytes_per_second"),
    PORT,
    "ioctl or sysfs",
    "The nominal rate of a port: width times speed.",
);
pub(crate) const EFFECTIVE: Metric = gauge(
    "uverbs_port_effective_rate_bytes_per_second",
    Some("bytes_per_second"),
    PORT,
    "ioctl, Linux 7.0",
    "The effective rate of a port, where the driver says it; with --full, or from a snapshot that has it.",
);
pub(crate) const WIDTH: Metric =
    gauge("uverbs_port_width_lanes", Some("lanes"), PORT, "ioctl or sysfs", "The lanes of a port.");
pub(crate) const MTU: Metric =
    gauge("uverbs_port_mtu_bytes", Some("bytes"), PORT, "ioctl", "The active MTU of a port.");
pub(crate) const MAX_MTU: Metric =
    gauge("uverbs_port_max_mtu_bytes", Some("bytes"), PORT, "ioctl", "The largest MTU of a port.");
pub(crate) const GIDS: Metric = gauge(
    "uverbs_port_gids",
    None,
    "device, port, type",
    "ioctl or sysfs",
    "How many GIDs of a type are in the table of a port.",
);
pub(crate) const GIDS_ELSEWHERE: Metric = gauge(
    "uverbs_port_gids_elsewhere",
    None,
    PORT,
    "ioctl, route netlink",
    "How many GIDs of a port are known to be of other network namespaces, or of interfaces that are gone.",
);
pub(crate) const GID_TABLE: Metric = gauge(
    "uverbs_port_gid_table_size",
    None,
    PORT,
    "ioctl or sysfs",
    "How many GIDs the table of a port has room for.",
);
pub(crate) const GID_INDEX: Metric = gauge(
    "uverbs_port_gid_index",
    None,
    "device, port, program",
    "uverbs choose",
    "The GID index that is recommended, and those that NCCL and UCX are known to take; absent if there is none.",
);
pub(crate) const RECOMMENDED: Metric = info(
    "uverbs_port_recommended_gid",
    "device, port, gid, type, netdev",
    "uverbs choose",
    "The GID that is recommended for a port.",
);
pub(crate) const DIFFERS: Metric = gauge(
    "uverbs_port_choice_differs",
    None,
    PORT,
    "uverbs choose",
    "1 if what NCCL or UCX takes on a port, a GID or none, is not what is recommended, or if it fails there; absent if that is not known. On InfiniBand any GID will do.",
);
pub(crate) const FINDINGS: Metric = gauge(
    "uverbs_check_findings",
    None,
    "severity, name, device, port",
    "uverbs check",
    "How many findings of a name there are in a place; severity is note, warning or problem; those about P_Keys and effective rates with --full, or from a snapshot.",
);
pub(crate) const SATURATED: Metric = gauge(
    "uverbs_port_saturated",
    None,
    "device, port, counter",
    "sysfs",
    "1 if a counter of the performance management agent has reached its end: it counts no more, and has no sample of its own.",
);
pub(crate) const ENABLED: Metric = gauge(
    "uverbs_port_optional_enabled",
    None,
    "device, port, counter",
    "RDMA netlink, Linux 5.16",
    "1 if an optional counter is on, 0 if it is off.",
);
pub(crate) const RESOURCES: Metric = gauge(
    "uverbs_device_resources",
    None,
    "device, kind",
    "RDMA netlink",
    "How many objects of a kind are in use on a device: qp, cq, mr, pd, ctx and others.",
);
pub(crate) const PROBLEMS: Metric = gauge(
    "uverbs_reading_problems",
    None,
    "device",
    "–",
    "How many answers could not be had; without a device: of the host.",
);
pub(crate) const COMMANDS: Metric = gauge(
    "uverbs_reading_firmware_commands",
    None,
    PORT,
    "–",
    "How many commands to the firmware it took to read the counters of a port, where that is known.",
);
pub(crate) const DURATION: Metric = gauge(
    "uverbs_reading_duration_seconds",
    Some("seconds"),
    "–",
    "–",
    "How long the reading took.",
);
pub(crate) const TIMESTAMP: Metric = gauge(
    "uverbs_reading_timestamp_seconds",
    Some("seconds"),
    "–",
    "–",
    "When the reading ended, in seconds since 1970.",
);

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Metric; 25] = [
        BUILD,
        DEVICE,
        NUMA_NODE,
        PORT_INFO,
        STATE,
        PHYS_STATE,
        RATE,
        EFFECTIVE,
        WIDTH,
        MTU,
        MAX_MTU,
        GIDS,
        GIDS_ELSEWHERE,
        GID_TABLE,
        GID_INDEX,
        RECOMMENDED,
        DIFFERS,
        FINDINGS,
        SATURATED,
        ENABLED,
        RESOURCES,
        PROBLEMS,
        COMMANDS,
        DURATION,
        TIMESTAMP,
    ];

    /// The page's table is this one: a line for each, in this order, and no other.
    #[test]
    fn the_page_has_them_all() {
        let page = include_str!("../../docs/metrics.md");
        let row = |metric: &Metric| {
            let (kind, ending) = match metric.kind {
                Kind::Gauge => ("gauge", ""),
                Kind::Counter => ("counter", "_total"),
                Kind::Info => ("info", "_info"),
            };
            let Metric { name, unit, labels, source, help, .. } = metric;
            let unit = unit.unwrap_or("–").replace('_', " ");
            format!("| `{name}{ending}` | {kind} | {unit} | {labels} | {source} | {help} |")
        };
        let expected: Vec<String> = ALL.iter().map(row).collect();
        let found: Vec<&str> = page.lines().filter(|line| line.starts_with("| `uverbs_")).collect();
        assert_eq!(found.join("\n"), expected.join("\n"));
    }

    #[test]
    fn names_end_with_their_units() {
        for metric in ALL {
            assert!(metric.unit.is_none_or(|unit| metric.name.ends_with(unit)), "{metric:?}");
        }
    }
}
