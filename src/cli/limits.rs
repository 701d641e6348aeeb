//! `uverbs limits`: what a device is capable of, as `ibv_devinfo -v` shows it.

use clap::Args;
use serde::Serialize;
use serde_json::{Map, Value};
use uverbs::Context;
use uverbs::context::DeviceAttributes;
use uverbs::device::Device;
use uverbs::inventory::{DeviceRecord, Parts, Wanted};
use uverbs::uapi::capability::{
    self, atomicity, general_odp, odp, qp_type, raw_packet, rx_hash_fields, rx_hash_function,
};

use crate::args::{Common, NamedDevices, device_here};
use crate::hosts::{Seen, live};
use crate::output::{Output, json};
use crate::report::{Report, Unanswered};
use crate::selection::Asked;
use crate::table::fields;
use crate::values::Hex;

#[derive(Debug, Args)]
#[command(mut_arg("selectors", |own| own.value_parser(device_here)))]
pub(crate) struct LimitsArgs {
    #[command(flatten)]
    pub(crate) named: NamedDevices,
}

#[derive(Debug, Serialize)]
struct Document<'a> {
    limits: Vec<Value>,
    problems: &'a [Unanswered],
}

pub(crate) fn answer(
    common: &Common,
    args: &LimitsArgs,
    report: &mut Report,
) -> serde_json::Result<Output> {
    let asked = Asked::new(&args.named.selectors);
    let is_asked = |device: &Device| asked.has_device(&device.name);
    let mut parts = Parts::LISTED;
    parts.hardware = true;
    let wanted = Wanted::new(parts).devices(&is_asked);
    let host = Seen::here(live(common, &wanted));
    let mut limits = Vec::new();
    for selected in host.select(&asked, report) {
        let context = Context::open(selected.device);
        match context.and_then(|own| Ok((own.query_device()?, own.num_comp_vectors()))) {
            Ok((attributes, vectors)) => limits.push(row(selected.record, &attributes, vectors)),
            Err(error) => report.problem(&selected.device.name, &error),
        }
    }
    if common.json {
        return json(&Document { limits, problems: report.problems() });
    }
    Ok(fields("DEVICE", &limits, &["device"]).into())
}

/// A device in JSON; the table has a line for each key. Names are those of `ibv_devinfo`.
fn row(record: &DeviceRecord, attributes: &DeviceAttributes, comp_vectors: u32) -> Value {
    let DeviceRecord { device, hardware, .. } = record;
    let (all, driver) = (attributes.raw(), attributes.driver());
    let base = &all.base;
    let hex = |number: u64| Value::from(Hex(number).to_string());
    let number = |number: u32| Value::from(number);
    // In newer fields 0 is that the device, its driver or the kernel does not have it.
    let some = |value: u64| if value == 0 { Value::Null } else { Value::from(value) };
    let paging = |bits: u32| words(bits.into(), &ODP);
    let board = hardware.as_ref().and_then(|own| own.board_id.as_deref());
    let keys = [
        ("device", Value::from(device.name.as_str())),
        ("fw_ver", Value::from(device.fw_version.as_deref())),
        ("node_guid", Value::from(attributes.node_guid().to_string())),
        ("sys_image_guid", Value::from(attributes.sys_image_guid().to_string())),
        ("vendor_id", Value::from(format!("{:#06x}", base.vendor_id))),
        ("vendor_part_id", number(base.vendor_part_id)),
        ("hw_ver", hex(base.hw_ver.into())),
        ("board_id", Value::from(board)),
        ("board_is_unread", Value::from(true)),
        // The kernel's answer has room for 255.
        ("phys_port_cnt", number(device.port_count.max(base.phys_port_cnt.into()))),
        ("max_mr_size", hex(base.max_mr_size)),
        ("page_size_cap", hex(base.page_size_cap)),
        ("max_qp", number(base.max_qp)),
        ("max_qp_wr", number(base.max_qp_wr)),
        ("device_cap_flags", words(base.device_cap_flags.into(), &DEVICE)),
        ("max_sge", number(base.max_sge)),
        ("max_sge_rd", number(base.max_sge_rd)),
        ("max_cq", number(base.max_cq)),
        ("max_cqe", number(base.max_cqe)),
        ("max_mr", number(base.max_mr)),
        ("max_pd", number(base.max_pd)),
        ("max_qp_rd_atom", number(base.max_qp_rd_atom)),
        ("max_ee_rd_atom", number(base.max_ee_rd_atom)),
        ("max_res_rd_atom", number(base.max_res_rd_atom)),
        ("max_qp_init_rd_atom", number(base.max_qp_init_rd_atom)),
        ("max_ee_init_rd_atom", number(base.max_ee_init_rd_atom)),
        ("atomic_cap", kind_of_atomicity(base.atomic_cap)),
        ("max_ee", number(base.max_ee)),
        ("max_rdd", number(base.max_rdd)),
        ("max_mw", number(base.max_mw)),
        ("max_raw_ipv6_qp", number(base.max_raw_ipv6_qp)),
        ("max_raw_ethy_qp", number(base.max_raw_ethy_qp)),
        ("max_mcast_grp", number(base.max_mcast_grp)),
        ("max_mcast_qp_attach", number(base.max_mcast_qp_attach)),
        ("max_total_mcast_qp_attach", number(base.max_total_mcast_qp_attach)),
        ("max_ah", number(base.max_ah)),
        ("max_fmr", number(base.max_fmr)),
        ("max_map_per_fmr", number(base.max_map_per_fmr)),
        ("max_srq", number(base.max_srq)),
        ("max_srq_wr", number(base.max_srq_wr)),
        ("max_srq_sge", number(base.max_srq_sge)),
        ("max_pkeys", number(base.max_pkeys.into())),
        ("local_ca_ack_delay", number(base.local_ca_ack_delay.into())),
        ("general_odp_caps", words(all.odp_caps.general_caps, &GENERAL_ODP)),
        ("rc_odp_caps", paging(all.odp_caps.rc_odp_caps)),
        ("uc_odp_caps", paging(all.odp_caps.uc_odp_caps)),
        ("ud_odp_caps", paging(all.odp_caps.ud_odp_caps)),
        ("xrc_odp_caps", paging(all.xrc_odp_caps)),
        ("completion_timestamp_mask", hex(all.timestamp_mask)),
        ("hca_core_clock_khz", some(all.hca_core_clock)),
        ("raw_packet_caps", words(all.raw_packet_caps.into(), &RAW_PACKET)),
        ("device_cap_flags_ex", words(all.device_cap_flags_ex >> 32 << 32, &DEVICE_EX)),
        ("max_rwq_indirection_tables", number(all.rss_caps.max_rwq_indirection_tables)),
        ("max_rwq_indirection_table_size", number(all.rss_caps.max_rwq_indirection_table_size)),
        ("rss_supported_qp", words(all.rss_caps.supported_qpts.into(), &QP_TYPES)),
        ("max_wq_type_rq", number(all.max_wq_type_rq)),
        ("tm_max_rndv_hdr_size", number(all.tm_caps.max_rndv_hdr_size)),
        ("tm_max_num_tags", number(all.tm_caps.max_num_tags)),
        ("tm_max_ops", number(all.tm_caps.max_ops)),
        ("tm_max_sge", number(all.tm_caps.max_sge)),
        ("tm_flags", words(all.tm_caps.flags.into(), &[(1, "rc")])),
        ("max_cq_count", number(all.cq_moderation_caps.max_cq_moderation_count.into())),
        ("max_cq_period_us", number(all.cq_moderation_caps.max_cq_moderation_period.into())),
        ("max_dm_size", some(all.max_dm_size)),
        ("max_tso", number(driver.tso.max_tso)),
        ("tso_supported_qp", words(driver.tso.supported_qpts.into(), &QP_TYPES)),
        ("rx_hash_function", words(driver.rss_hash.rx_hash_function.into(), &RX_HASH_FUNCTION)),
        ("rx_hash_fields_mask", words(driver.rss_hash.rx_hash_fields_mask, &RX_HASH_FIELDS)),
        ("qp_rate_limit_min_kbps", number(driver.packet_pacing.qp_rate_limit_min)),
        ("qp_rate_limit_max_kbps", number(driver.packet_pacing.qp_rate_limit_max)),
        (
            "packet_pacing_supported_qp",
            words(driver.packet_pacing.supported_qpts.into(), &QP_TYPES),
        ),
        ("num_comp_vectors", number(comp_vectors)),
    ];
    // Only where it is so, as of `uverbs devices`.
    let is_unread = hardware.as_ref().is_none_or(|own| own.board_is_unread);
    let keys = keys.into_iter().filter(|(key, _)| is_unread || *key != "board_is_unread");
    let keys = keys.map(|(key, value)| (key.to_owned(), value));
    Value::Object(keys.collect::<Map<String, Value>>())
}

/// The kind of atomicity.
fn kind_of_atomicity(code: u32) -> Value {
    match code {
        atomicity::NONE => "none".into(),
        atomicity::HCA => "hca".into(),
        atomicity::GLOBAL => "global".into(),
        other => format!("unknown({other})").into(),
    }
}

/// Names of bits.
type Bits = [(u64, &'static str)];

/// The names of the bits that are set; those without a name as a number.
fn words(bits: u64, names: &Bits) -> Value {
    let mut left = bits;
    let mut list: Vec<Value> = Vec::new();
    for (bit, name) in names {
        if bits & bit != 0 {
            list.push((*name).into());
            left &= !bit;
        }
    }
    if left != 0 {
        list.push(format!("unknown({left:#x})").into());
    }
    list.into()
}

const DEVICE: [(u64, &str); 24] = [
    (capability::device::RESIZE_MAX_WR, "resize_max_wr"),
    (capability::device::BAD_PKEY_CNTR, "bad_pkey_cntr"),
    (capability::device::BAD_QKEY_CNTR, "bad_qkey_cntr"),
    (capability::device::RAW_MULTI, "raw_multi"),
    (capability::device::AUTO_PATH_MIG, "auto_path_mig"),
    (capability::device::CHANGE_PHY_PORT, "change_phy_port"),
    (capability::device::UD_AV_PORT_ENFORCE, "ud_av_port_enforce"),
    (capability::device::CURR_QP_STATE_MOD, "curr_qp_state_mod"),
    (capability::device::SHUTDOWN_PORT, "shutdown_port"),
    (capability::device::INIT_TYPE, "init_type"),
    (capability::device::PORT_ACTIVE_EVENT, "port_active_event"),
    (capability::device::SYS_IMAGE_GUID, "sys_image_guid"),
    (capability::device::RC_RNR_NAK_GEN, "rc_rnr_nak_gen"),
    (capability::device::SRQ_RESIZE, "srq_resize"),
    (capability::device::N_NOTIFY_CQ, "n_notify_cq"),
    (capability::device::MEM_WINDOW, "mem_window"),
    (capability::device::UD_IP_CSUM, "ud_ip_csum"),
    (capability::device::XRC, "xrc"),
    (capability::device::MEM_MGT_EXTENSIONS, "mem_mgt_extensions"),
    (capability::device::MEM_WINDOW_TYPE_2A, "mem_window_type_2a"),
    (capability::device::MEM_WINDOW_TYPE_2B, "mem_window_type_2b"),
    (capability::device::RC_IP_CSUM, "rc_ip_csum"),
    (capability::device::RAW_IP_CSUM, "raw_ip_csum"),
    (capability::device::MANAGED_FLOW_STEERING, "managed_flow_steering"),
];

const DEVICE_EX: [(u64, &str); 5] = [
    (capability::device::RAW_SCATTER_FCS, "raw_scatter_fcs"),
    (capability::device::PCI_WRITE_END_PADDING, "pci_write_end_padding"),
    (capability::device::FLUSH_GLOBAL, "flush_global"),
    (capability::device::FLUSH_PERSISTENT, "flush_persistent"),
    (capability::device::ATOMIC_WRITE, "atomic_write"),
];

const GENERAL_ODP: [(u64, &str); 2] =
    [(general_odp::SUPPORT, "support"), (general_odp::SUPPORT_IMPLICIT, "support_implicit")];

const ODP: [(u64, &str); 8] = [
    (odp::SEND, "send"),
    (odp::RECV, "recv"),
    (odp::WRITE, "write"),
    (odp::READ, "read"),
    (odp::ATOMIC, "atomic"),
    (odp::SRQ_RECV, "srq_recv"),
    (odp::FLUSH, "flush"),
    (odp::ATOMIC_WRITE, "atomic_write"),
];

const RAW_PACKET: [(u64, &str); 4] = [
    (raw_packet::CVLAN_STRIPPING, "cvlan_stripping"),
    (raw_packet::SCATTER_FCS, "scatter_fcs"),
    (raw_packet::IP_CSUM, "ip_csum"),
    (raw_packet::DELAY_DROP, "delay_drop"),
];

const RX_HASH_FUNCTION: [(u64, &str); 1] = [(rx_hash_function::TOEPLITZ, "toeplitz")];

const RX_HASH_FIELDS: [(u64, &str); 10] = [
    (rx_hash_fields::SRC_IPV4, "src_ipv4"),
    (rx_hash_fields::DST_IPV4, "dst_ipv4"),
    (rx_hash_fields::SRC_IPV6, "src_ipv6"),
    (rx_hash_fields::DST_IPV6, "dst_ipv6"),
    (rx_hash_fields::SRC_PORT_TCP, "src_port_tcp"),
    (rx_hash_fields::DST_PORT_TCP, "dst_port_tcp"),
    (rx_hash_fields::SRC_PORT_UDP, "src_port_udp"),
    (rx_hash_fields::DST_PORT_UDP, "dst_port_udp"),
    (rx_hash_fields::IPSEC_SPI, "ipsec_spi"),
    (rx_hash_fields::INNER, "inner"),
];

/// A bit for each type of queue pair.
const QP_TYPES: [(u64, &str); 2] =
    [(1 << qp_type::UD, "ud"), (1 << qp_type::RAW_PACKET, "raw_packet")];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_without_a_name_keep_their_number() {
        assert_eq!(words(0, &ODP), Value::from(Vec::<Value>::new()));
        let named = words(odp::SEND | odp::READ | 1 << 40, &ODP);
        assert_eq!(named, serde_json::json!(["send", "read", "unknown(0x10000000000)"]));
        assert_eq!(
            (kind_of_atomicity(1), kind_of_atomicity(9)),
            ("hca".into(), "unknown(9)".into())
        );
    }
}
