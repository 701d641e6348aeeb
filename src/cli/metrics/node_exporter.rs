//! The same under the names that `node_exporter`'s InfiniBand collector has, for dashboards that were made for it.
//!
//! Its samples are the kernel's numbers, also of a counter that has stopped.

use uverbs::counter::{Counter, Group};
use uverbs::inventory::{DeviceRecord, PortRecord};

use super::catalogue::{Kind, Metric, gauge, info};
use super::exposition::Exposition;
use super::names;

const DEVICE: Metric = info(
    "node_infiniband",
    "device, board_id, firmware_version, hca_type",
    "RDMA netlink, sysfs",
    "A device, as node_exporter names it.",
);
const STATE: Metric = gauge(
    "node_infiniband_state_id",
    None,
    "device, port",
    "ioctl or sysfs",
    "The number of the logical state of a port.",
);
const PHYS_STATE: Metric = gauge(
    "node_infiniband_physical_state_id",
    None,
    "device, port",
    "ioctl or sysfs",
    "The number of the physical state of a port.",
);
const RATE: Metric = gauge(
    "node_infiniband_rate_bytes_per_second",
    None,
    "device, port",
    "ioctl or sysfs",
    "The nominal rate of a port: width times speed.",
);

/// Counters of the performance management agent: the kernel's names, and its own between `node_infiniband_` and
/// `_total`.
const PMA: [(&str, &str); 22] = [
    ("VL15_dropped", "vl15_dropped"),
    ("excessive_buffer_overrun_errors", "excessive_buffer_overrun_errors"),
    ("link_downed", "link_downed"),
    ("link_error_recovery", "link_error_recovery"),
    ("local_link_integrity_errors", "local_link_integrity_errors"),
    ("multicast_rcv_packets", "multicast_packets_received"),
    ("multicast_xmit_packets", "multicast_packets_transmitted"),
    ("port_rcv_constraint_errors", "port_constraint_errors_received"),
    ("port_rcv_data", "port_data_received_bytes"),
    ("port_rcv_discards", "port_discards_received"),
    ("port_rcv_errors", "port_errors_received"),
    ("port_rcv_packets", "port_packets_received"),
    ("port_rcv_remote_physical_errors", "port_receive_remote_physical_errors"),
    ("port_rcv_switch_relay_errors", "port_receive_switch_relay_errors"),
    ("port_xmit_constraint_errors", "port_constraint_errors_transmitted"),
    ("port_xmit_data", "port_data_transmitted_bytes"),
    ("port_xmit_discards", "port_discards_transmitted"),
    ("port_xmit_packets", "port_packets_transmitted"),
    ("port_xmit_wait", "port_transmit_wait"),
    ("symbol_error", "symbol_error"),
    ("unicast_rcv_packets", "unicast_packets_received"),
    ("unicast_xmit_packets", "unicast_packets_transmitted"),
];

/// Counters of the driver, as above.
const HARDWARE: [(&str, &str); 29] = [
    ("duplicate_request", "duplicate_requests_packets"),
    ("implied_nak_seq_err", "implied_nak_seq_errors"),
    ("local_ack_timeout_err", "local_ack_timeout_errors"),
    ("np_cnp_sent", "np_cnp_packets_sent"),
    ("np_ecn_marked_roce_packets", "np_ecn_marked_roce_packets_received"),
    ("out_of_buffer", "out_of_buffer_drops"),
    ("out_of_sequence", "out_of_sequence_packets_received"),
    ("packet_seq_err", "packet_sequence_errors"),
    ("req_cqe_error", "req_cqes_errors"),
    ("req_cqe_flush_error", "req_cqes_flush_errors"),
    ("req_remote_access_errors", "req_remote_access_errors"),
    ("req_remote_invalid_request", "req_remote_invalid_request_errors"),
    ("resp_cqe_error", "resp_cqes_errors"),
    ("resp_cqe_flush_error", "resp_cqes_flush_errors"),
    ("resp_local_length_error", "resp_local_length_errors"),
    ("resp_remote_access_errors", "resp_remote_access_errors"),
    ("rnr_nak_retry_err", "rnr_nak_retry_packets_received"),
    ("roce_adp_retrans", "roce_adp_retransmits"),
    ("roce_adp_retrans_to", "roce_adp_retransmits_timeout"),
    ("roce_slow_restart", "roce_slow_restart_used"),
    ("roce_slow_restart_cnps", "roce_slow_restart_cnps"),
    ("roce_slow_restart_trans", "roce_slow_restart"),
    ("rp_cnp_handled", "rp_cnp_packets_handled"),
    ("rp_cnp_ignored", "rp_cnp_ignored_packets_received"),
    ("rx_atomic_requests", "rx_atomic_requests"),
    ("rx_dct_connect", "rx_dct_connect_requests"),
    ("rx_icrc_encapsulated", "rx_icrc_encapsulated_errors"),
    ("rx_read_requests", "rx_read_requests"),
    ("rx_write_requests", "rx_write_requests"),
];

pub(super) fn add_device(all: &mut Exposition, record: &DeviceRecord) {
    let hardware = record.hardware.as_ref();
    let labels = [
        ("device", record.device.name.as_str()),
        ("board_id", hardware.and_then(|own| own.board_id.as_deref()).unwrap_or_default()),
        ("firmware_version", record.device.fw_version.as_deref().unwrap_or_default()),
        ("hca_type", hardware.and_then(|own| own.ca_type.as_deref()).unwrap_or_default()),
    ];
    all.add(&DEVICE, &labels, 1);
}

pub(super) fn add_port(all: &mut Exposition, place: &[(&str, &str); 2], port: &PortRecord) {
    let Some(attributes) = port.known() else { return };
    all.add(&STATE, place, attributes.state.0);
    all.add(&PHYS_STATE, place, attributes.phys_state.0);
    if let Some(rate) = attributes.rate() {
        all.add(&RATE, place, super::bytes(rate));
    }
}

pub(super) fn add_counter(all: &mut Exposition, place: &[(&str, &str); 2], counter: &Counter) {
    let table = if counter.group == Group::Pma { &PMA[..] } else { &HARDWARE };
    let Some((_, name)) = table.iter().find(|(name, _)| *name == counter.name) else { return };
    let (value, help) = (counter.at_least().0.to_string(), || names::help(counter));
    all.add_to(&format!("node_infiniband_{name}"), (Kind::Counter, None), help, place, value);
}

#[cfg(test)]
mod tests {
    use uverbs::counter::CounterSource;

    use super::*;
    use crate::metrics::exposition::Format;

    #[test]
    fn numbers_are_the_kernel_s() {
        let mut all = Exposition::default();
        let place = [("device", "x"), ("port", "1")];
        for (group, name, number) in [
            (Group::Pma, "port_rcv_data", 3),
            (Group::Pma, "port_xmit_data", u64::MAX),
            (Group::Pma, "link_downed", 255),
            (Group::Hardware, "roce_slow_restart", 7),
            // Of another group it is another counter.
            (Group::Hardware, "link_downed", 1),
        ] {
            let counter = Counter::new(name, group, CounterSource::Sysfs, None, number);
            add_counter(&mut all, &place, &counter);
        }
        let text = all.text(Format::Prometheus);
        let samples: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(
            samples,
            [
                "node_infiniband_link_downed_total{device=\"x\",port=\"1\"} 255",
                "node_infiniband_port_data_received_bytes_total{device=\"x\",port=\"1\"} 12",
                "node_infiniband_port_data_transmitted_bytes_total{device=\"x\",port=\"1\"} 73786976294838206460",
                "node_infiniband_roce_slow_restart_used_total{device=\"x\",port=\"1\"} 7",
            ]
        );
    }
}
