//! What is compared with the kernel headers: each structure and constant of the crate with its C
//! name, and the release that its C name came with.
//!
//! `since (6, 7)` is a release that is known. `after (6, 1) by (6, 12)` says that headers of the one
//! release were seen without it and those of the other with it. With neither, the item is older
//! than any kernel that matters here. A field is as old as its structure if it does not say
//! otherwise.

use core::mem::offset_of;

use uverbs_uapi::{capability, cm, device, driver, event, ioctl, mlx5, netlink, umad};

use crate::{Release, Since};

/// All headers that the C names come from. Some are missing from older kernels.
pub(crate) const HEADERS: &[&str] = &[
    "linux/version.h",
    "linux/netlink.h",
    "rdma/rdma_user_ioctl_cmds.h",
    "rdma/rdma_user_ioctl.h",
    "rdma/ib_user_ioctl_cmds.h",
    "rdma/ib_user_ioctl_verbs.h",
    "rdma/ib_user_verbs.h",
    "rdma/ib_user_mad.h",
    "rdma/rdma_netlink.h",
    "rdma/rdma_user_cm.h",
    "rdma/mlx5-abi.h",
    "rdma/mlx5_user_ioctl_cmds.h",
    "rdma/mlx5_user_ioctl_verbs.h",
    "rdma/mlx4-abi.h",
    "rdma/cxgb4-abi.h",
    "rdma/mthca-abi.h",
    "rdma/bnxt_re-abi.h",
    "rdma/ocrdma-abi.h",
    "rdma/irdma-abi.h",
    "rdma/vmw_pvrdma-abi.h",
    "rdma/qedr-abi.h",
    "rdma/hns-abi.h",
    "rdma/efa-abi.h",
    "rdma/siw-abi.h",
    "rdma/erdma-abi.h",
    "rdma/mana-abi.h",
    "rdma/ionic-abi.h",
];

/// One number to compare.
#[derive(Debug)]
pub(crate) struct Item {
    /// What the number is, for people.
    pub(crate) name: String,
    /// The structure or constant of the crate that it belongs to.
    pub(crate) of: String,
    /// C expressions for it. More than one if the C name changed.
    pub(crate) expressions: Vec<String>,
    /// The number, and since when the headers have it; where a structure grew, its earlier sizes
    /// first. The last is the crate's own.
    pub(crate) values: Vec<(u64, Since)>,
}

/// Everything that is compared, and what cannot be.
#[derive(Debug, Default)]
pub(crate) struct Table {
    pub(crate) items: Vec<Item>,
    /// Constants that no kernel header for user space has, and why.
    pub(crate) not_in_headers: Vec<(String, &'static str)>,
}

impl Table {
    fn add(&mut self, of: &str, what: &str, expressions: Vec<String>, values: Vec<(u64, Since)>) {
        self.items.push(Item {
            name: format!("{of}{what}"),
            of: of.to_owned(),
            expressions,
            values,
        });
    }
}

fn number<T: TryInto<u64, Error: core::fmt::Debug>>(value: T) -> u64 {
    value.try_into().unwrap()
}

/// The size of the field that `_field` reaches.
fn field_size<T, F>(_field: fn(&T) -> &F) -> u64 {
    number(size_of::<F>())
}

/// All sizes that a structure had, oldest first, each with the release that it came with.
///
/// `grew` has the earlier sizes, each with the release that ended it.
fn sizes(own: u64, since: Since, grew: &[(u64, Option<Since>)]) -> Vec<(u64, Since)> {
    let mut came = since;
    let mut sizes = Vec::new();
    for &(old, ended) in grew {
        sizes.push((old, came));
        came = ended.expect("a structure that grew says when");
    }
    sizes.push((own, came));
    sizes
}

/// `stringify!` with the spaces that it may put into a path removed.
fn path(text: &str) -> String {
    text.replace(' ', "")
}

macro_rules! release {
    (($major:literal, $minor:literal)) => {
        Release($major, $minor)
    };
}

/// The claim of a row about releases, `None` if it makes none.
macro_rules! since {
    () => {
        None
    };
    (since $release:tt) => {
        Some(Since::exactly(release!($release)))
    };
    (after $absent:tt by $present:tt) => {
        Some(Since::between(release!($absent), release!($present)))
    };
}

/// The C name of a field, that of the Rust field if none is given.
macro_rules! c_names {
    ($default:ident) => {
        [stringify!($default)]
    };
    ($default:ident $($name:literal)+) => {
        [$($name),+]
    };
}

macro_rules! structures {
    ($table:ident, $(
        $name:path = $c:literal $(since $since:tt)? $(after $absent:tt by $present:tt)?
            $(, grew from $old:literal
                $(since $old_since:tt)? $(after $old_absent:tt by $old_present:tt)?)*
        {
            $(
                $field:ident $(= $($c_field:literal)|+)?
                    $(since $field_since:tt)? $(after $field_absent:tt by $field_present:tt)?
            ),+ $(,)?
        }
    )+) => { $({
        let of = path(stringify!($name));
        let since = since!($(since $since)? $(after $absent by $present)?).unwrap_or(Since::ALWAYS);

        let grew: &[(u64, Option<Since>)] = &[$(
            ($old, since!($(since $old_since)? $(after $old_absent by $old_present)?)),
        )*];
        let sizes = sizes(number(size_of::<$name>()), since, grew);
        $table.add(&of, " (size)", vec![concat!("sizeof(", $c, ")").to_owned()], sizes);
        $table.add(
            &of,
            " (alignment)",
            vec![concat!("_Alignof(", $c, ")").to_owned()],
            vec![(number(align_of::<$name>()), since)],
        );

        // A field that the table leaves out does not compile.
        let $name { $($field: _),+ } = Default::default();
        $({
            let field = stringify!($field);
            let c_names = c_names!($field $($($c_field)+)?);
            let since = since!($(since $field_since)? $(after $field_absent by $field_present)?)
                .unwrap_or(since);
            $table.add(
                &of,
                &format!(".{field} (offset)"),
                c_names.iter().map(|c| format!("offsetof({}, {c})", $c)).collect(),
                vec![(number(offset_of!($name, $field)), since)],
            );
            // Reserved space shrinks when a new field takes some of it.
            if !field.starts_with("reserved") {
                $table.add(
                    &of,
                    &format!(".{field} (size)"),
                    c_names.iter().map(|c| format!("sizeof((({} *)0)->{c})", $c)).collect(),
                    vec![(field_size(|value: &$name| &value.$field), since)],
                );
            }
        })+
    })+ };
}

macro_rules! constants {
    ($table:ident, $(
        $name:path = $($c:literal)|+
            $(since $since:tt)? $(after $absent:tt by $present:tt)?
    ),+ $(,)?) => { $({
        let since = since!($(since $since)? $(after $absent by $present)?).unwrap_or(Since::ALWAYS);
        $table.add(
            &path(stringify!($name)),
            "",
            vec![$($c.to_owned()),+],
            vec![(number($name), since)],
        );
    })+ };
}

macro_rules! not_in_headers {
    ($table:ident, $($reason:literal: $($name:path),+;)+) => { $($({
        // Named as a path as well, so that the list holds no name that the crate has not.
        let _ = $name;
        $table.not_in_headers.push((path(stringify!($name)), $reason));
    })+)+ };
}

/// The whole table.
pub(crate) fn table() -> Table {
    let mut table = Table::default();
    add_structures(&mut table);
    add_connection_manager(&mut table);
    add_driver_structures(&mut table);
    add_more_driver_structures(&mut table);
    add_constants(&mut table);
    add_driver_constants(&mut table);
    add_mlx5(&mut table);
    add_netlink_objects(&mut table);
    add_netlink_constants(&mut table);
    add_capabilities(&mut table);
    add_unconfirmed(&mut table);
    table
}

#[rustfmt::skip]
fn add_structures(table: &mut Table) {
    structures! { table,
        ioctl::IoctlHeader = "struct ib_uverbs_ioctl_hdr" {
            length, object_id, method_id, num_attrs, reserved1, driver_id, reserved2,
        }
        ioctl::Attribute = "struct ib_uverbs_attr" {
            attr_id, len, flags,
            elem_id = "attr_data.enum_data.elem_id",
            reserved = "attr_data.enum_data.reserved",
            data,
        }
        device::GidEntry = "struct ib_uverbs_gid_entry" since (5, 10) {
            gid, gid_index, port_num, gid_type, netdev_ifindex,
        }
        device::QueryPortResponse = "struct ib_uverbs_query_port_resp_ex" {
            port_cap_flags = "legacy_resp.port_cap_flags",
            max_msg_sz = "legacy_resp.max_msg_sz",
            bad_pkey_cntr = "legacy_resp.bad_pkey_cntr",
            qkey_viol_cntr = "legacy_resp.qkey_viol_cntr",
            gid_tbl_len = "legacy_resp.gid_tbl_len",
            pkey_tbl_len = "legacy_resp.pkey_tbl_len",
            lid = "legacy_resp.lid",
            sm_lid = "legacy_resp.sm_lid",
            state = "legacy_resp.state",
            max_mtu = "legacy_resp.max_mtu",
            active_mtu = "legacy_resp.active_mtu",
            lmc = "legacy_resp.lmc",
            max_vl_num = "legacy_resp.max_vl_num",
            sm_sl = "legacy_resp.sm_sl",
            subnet_timeout = "legacy_resp.subnet_timeout",
            init_type_reply = "legacy_resp.init_type_reply",
            active_width = "legacy_resp.active_width",
            active_speed = "legacy_resp.active_speed",
            phys_state = "legacy_resp.phys_state",
            link_layer = "legacy_resp.link_layer",
            flags = "legacy_resp.flags",
            reserved = "legacy_resp.reserved",
            port_cap_flags2,
            reserved2 = "reserved",
            active_speed_ex since (6, 7),
        }
        device::QueryDeviceRequest = "struct ib_uverbs_query_device" {
            response,
        }
        device::WriteQueryPortRequest = "struct ib_uverbs_query_port" {
            response, port_num, reserved,
        }
        device::WriteQueryPortResponse = "struct ib_uverbs_query_port_resp" {
            port_cap_flags, max_msg_sz, bad_pkey_cntr, qkey_viol_cntr, gid_tbl_len,
            pkey_tbl_len, lid, sm_lid, state, max_mtu, active_mtu, lmc, max_vl_num, sm_sl,
            subnet_timeout, init_type_reply, active_width, active_speed, phys_state, link_layer,
            flags, reserved,
        }
        device::QueryDeviceResponse = "struct ib_uverbs_query_device_resp" {
            fw_ver, node_guid, sys_image_guid, max_mr_size, page_size_cap, vendor_id,
            vendor_part_id, hw_ver, max_qp, max_qp_wr, device_cap_flags, max_sge, max_sge_rd,
            max_cq, max_cqe, max_mr, max_pd, max_qp_rd_atom, max_ee_rd_atom, max_res_rd_atom,
            max_qp_init_rd_atom, max_ee_init_rd_atom, atomic_cap, max_ee, max_rdd, max_mw,
            max_raw_ipv6_qp, max_raw_ethy_qp, max_mcast_grp, max_mcast_qp_attach,
            max_total_mcast_qp_attach, max_ah, max_fmr, max_map_per_fmr, max_srq, max_srq_wr,
            max_srq_sge, max_pkeys, local_ca_ack_delay, phys_port_cnt, reserved,
        }
        device::ExQueryDeviceRequest = "struct ib_uverbs_ex_query_device" {
            comp_mask, reserved,
        }
        device::OdpCaps = "struct ib_uverbs_odp_caps" {
            general_caps,
            rc_odp_caps = "per_transport_caps.rc_odp_caps",
            uc_odp_caps = "per_transport_caps.uc_odp_caps",
            ud_odp_caps = "per_transport_caps.ud_odp_caps",
            reserved,
        }
        device::RssCaps = "struct ib_uverbs_rss_caps" {
            supported_qpts, max_rwq_indirection_tables, max_rwq_indirection_table_size,
            reserved,
        }
        device::TmCaps = "struct ib_uverbs_tm_caps" {
            max_rndv_hdr_size, max_num_tags, flags, max_ops, max_sge, reserved,
        }
        device::CqModerationCaps = "struct ib_uverbs_cq_moderation_caps" {
            max_cq_moderation_count, max_cq_moderation_period, reserved,
        }
        device::ExQueryDeviceResponse = "struct ib_uverbs_ex_query_device_resp" {
            base, comp_mask, response_length, odp_caps, timestamp_mask, hca_core_clock,
            device_cap_flags_ex, rss_caps, max_wq_type_rq, raw_packet_caps, tm_caps,
            cq_moderation_caps, max_dm_size, xrc_odp_caps, reserved,
        }
        event::AsyncEvent = "struct ib_uverbs_async_event_desc" {
            element, event_type, reserved,
        }
    }
}

#[rustfmt::skip]
fn add_connection_manager(table: &mut Table) {
    structures! { table,
        cm::CommandHeader = "struct rdma_ucm_cmd_hdr" {
            command = "cmd", input_len = "in", output_len = "out",
        }
        cm::CreateId = "struct rdma_ucm_create_id" {
            uid, response, port_space = "ps", qp_type, reserved,
        }
        cm::CreateIdResponse = "struct rdma_ucm_create_id_resp" {
            id,
        }
        cm::Bind = "struct rdma_ucm_bind" {
            id, addr_size, reserved, addr,
        }
        cm::Query = "struct rdma_ucm_query" {
            response, id, option,
        }
        cm::QueryAddrResponse = "struct rdma_ucm_query_addr_resp" {
            node_guid, port_num, reserved, pkey, src_size, dst_size, src_addr, dst_addr,
            ibdev_index, reserved1,
        }
    }
}

#[rustfmt::skip]
fn add_driver_structures(table: &mut Table) {
    structures! { table,
        driver::Mlx5AllocUcontextRequest = "struct mlx5_ib_alloc_ucontext_req_v2" {
            total_num_bfregs, num_low_latency_bfregs, flags, comp_mask, max_cqe_version,
            reserved0, reserved1, reserved2, lib_caps,
        }
        driver::Mlx5AllocUcontextResponse = "struct mlx5_ib_alloc_ucontext_resp" {
            qp_tab_size, bf_reg_size, tot_bfregs, cache_line_size, max_sq_desc_sz,
            max_rq_desc_sz, max_send_wqebb, max_recv_wr, max_srq_recv_wr, num_ports,
            flow_action_flags, comp_mask, response_length, cqe_version, cmds_supp_uhw,
            eth_min_inline, clock_info_versions, hca_core_clock_offset, log_uar_size,
            num_uars_per_page, num_dyn_bfregs, dump_fill_mkey,
        }
        driver::Mlx5QueryDeviceResponse = "struct mlx5_ib_query_device_resp",
            grew from 104 after (6, 12) by (7, 3)
        {
            comp_mask, response_length, tso_caps, rss_caps,
            cqe_comp_max_num = "cqe_comp_caps.max_num",
            cqe_comp_supported_format = "cqe_comp_caps.supported_format",
            packet_pacing_caps, multi_pkt_send_wqes = "mlx5_ib_support_multi_pkt_send_wqes", flags,
            sw_parsing_offloads = "sw_parsing_caps.sw_parsing_offloads",
            sw_parsing_supported_qpts = "sw_parsing_caps.supported_qpts",
            min_single_stride_log_num_of_bytes = "striding_rq_caps.min_single_stride_log_num_of_bytes",
            max_single_stride_log_num_of_bytes = "striding_rq_caps.max_single_stride_log_num_of_bytes",
            min_single_wqe_log_num_of_strides = "striding_rq_caps.min_single_wqe_log_num_of_strides",
            max_single_wqe_log_num_of_strides = "striding_rq_caps.max_single_wqe_log_num_of_strides",
            striding_rq_supported_qpts = "striding_rq_caps.supported_qpts",
            reserved_rq = "striding_rq_caps.reserved", tunnel_offloads_caps,
            dci_streams_max_log_num_concurrent = "dci_streams_caps.max_log_num_concurent" after (5, 10) by (6, 1),
            dci_streams_max_log_num_errored = "dci_streams_caps.max_log_num_errored" after (5, 10) by (6, 1),
            reserved,
            reg_c0_value = "reg_c0.value" after (6, 12) by (7, 3),
            reg_c0_mask = "reg_c0.mask" after (6, 12) by (7, 3),
        }
        driver::TsoCaps = "struct mlx5_ib_tso_caps" { max_tso, supported_qpts, }
        driver::RssHash = "struct mlx5_ib_rss_caps" {
            rx_hash_fields_mask, rx_hash_function, reserved,
        }
        driver::PacketPacingCaps = "struct mlx5_packet_pacing_caps" {
            qp_rate_limit_min, qp_rate_limit_max, supported_qpts, cap_flags, reserved,
        }
        driver::Mlx4QueryDeviceResponse = "struct mlx4_uverbs_ex_query_device_resp" {
            comp_mask, response_length, hca_core_clock_offset, max_inl_recv_sz, reserved,
            rss_caps, tso_caps,
        }
        driver::Mlx4AllocUcontextResponse = "struct mlx4_ib_alloc_ucontext_resp" {
            dev_caps, qp_tab_size, bf_reg_size, bf_regs_per_page, cqe_size,
        }
        driver::Mlx4AllocUcontextResponseV3 = "struct mlx4_ib_alloc_ucontext_resp_v3" {
            qp_tab_size, bf_reg_size, bf_regs_per_page,
        }
        driver::Cxgb4AllocUcontextResponse = "struct c4iw_alloc_ucontext_resp" {
            status_page_key, status_page_size, reserved,
        }
        driver::MthcaAllocUcontextResponse = "struct mthca_alloc_ucontext_resp" {
            qp_tab_size, uarc_size,
        }
        driver::BnxtReAllocUcontextRequest = "struct bnxt_re_uctx_req" after (6, 1) by (6, 12) {
            comp_mask,
        }
        driver::BnxtReAllocUcontextResponse = "struct bnxt_re_uctx_resp",
            grew from 40 after (5, 10) by (6, 1)
        {
            dev_id, max_qp, pg_size, cqe_sz, max_cqd,
            reserved = "rsvd",
            comp_mask, chip_id0, chip_id1,
            mode after (5, 10) by (6, 1),
            reserved1 = "rsvd1" after (5, 10) by (6, 1),
        }
        driver::OcrdmaAllocUcontextResponse = "struct ocrdma_alloc_ucontext_resp" {
            dev_id, wqe_size, max_inline_data, dpp_wqe_size, ah_tbl_page, ah_tbl_len, rqe_size,
            fw_ver,
            reserved1 = "rsvd1",
            reserved2 = "rsvd2",
        }
        driver::IrdmaAllocUcontextRequest = "struct irdma_alloc_ucontext_req" since (5, 14) {
            reserved = "rsvd32",
            userspace_ver,
            reserved2 = "rsvd8",
            comp_mask,
        }
        driver::IrdmaAllocUcontextResponse = "struct irdma_alloc_ucontext_resp" since (5, 14),
            grew from 72 after (6, 1) by (6, 12)
        {
            max_pds, max_qps, wq_size, kernel_ver,
            reserved = "rsvd",
            feature_flags, db_mmap_key, max_hw_wq_frags, max_hw_read_sges, max_hw_inline,
            max_hw_rq_quanta, max_hw_wq_quanta, min_hw_cq_size, max_hw_cq_size, max_hw_sq_chunk,
            hw_rev,
            reserved2 = "rsvd2",
            comp_mask,
            min_hw_wq_size after (6, 1) by (6, 12),
            reserved3 = "revd3" after (6, 12) by (7, 2),
            max_hw_srq_quanta after (6, 12) by (7, 2),
        }
        driver::VmwPvrdmaAllocUcontextResponse = "struct pvrdma_alloc_ucontext_resp" {
            qp_tab_size, reserved,
        }
    }
}

#[rustfmt::skip]
fn add_more_driver_structures(table: &mut Table) {
    structures! { table,
        driver::QedrAllocUcontextRequest = "struct qedr_alloc_ucontext_req" {
            context_flags, reserved,
        }
        driver::QedrAllocUcontextResponse = "struct qedr_alloc_ucontext_resp" {
            db_pa, db_size, max_send_wr, max_recv_wr, max_srq_wr, sges_per_send_wr,
            sges_per_recv_wr, sges_per_srq_wr, max_cqes, dpm_flags, wids_enabled, wid_count,
            ldpm_limit_size, edpm_trans_size, reserved, edpm_limit_size,
            reserved2 = "padding",
        }
        driver::HnsAllocUcontextRequest = "struct hns_roce_ib_alloc_ucontext" after (5, 10) by (6, 1) {
            config, reserved,
        }
        driver::HnsAllocUcontextResponse = "struct hns_roce_ib_alloc_ucontext_resp",
            grew from 8 after (5, 10) by (6, 1),
            grew from 24 after (6, 1) by (6, 12)
        {
            qp_tab_size, cqe_size,
            srq_tab_size after (5, 10) by (6, 1),
            reserved after (5, 10) by (6, 1),
            config after (5, 10) by (6, 1),
            max_inline_data after (5, 10) by (6, 1),
            congest_type after (6, 1) by (6, 12),
            reserved0 after (6, 1) by (6, 12),
        }
        driver::EfaAllocUcontextRequest = "struct efa_ibv_alloc_ucontext_cmd" {
            supported_caps = "supported_caps" | "comp_mask",
            reserved = "reserved_20",
        }
        driver::EfaAllocUcontextResponse = "struct efa_ibv_alloc_ucontext_resp" {
            comp_mask, cmds_supp_udata_mask, sub_cqs_per_cq, inline_buf_size, max_llq_size,
            max_tx_batch, min_sq_wr,
            inline_buf_size_ex after (6, 12) by (7, 2),
            reserved = "reserved_b0" after (6, 12) by (7, 2),
        }
        driver::SiwAllocUcontextResponse = "struct siw_uresp_alloc_ctx" {
            dev_id,
            reserved = "pad",
        }
        driver::ErdmaAllocUcontextResponse = "struct erdma_uresp_alloc_ctx" since (6, 0) {
            dev_id,
            reserved = "pad",
            sdb_type, sdb_offset, sdb, rdb, cdb,
        }
        driver::ManaAllocUcontextResponse = "struct mana_ib_alloc_ucontext_resp" since (7, 3) {
            comp_mask,
        }
        driver::IonicAllocUcontextRequest = "struct ionic_ctx_req" since (6, 18) {
            reserved = "rsvd",
        }
        driver::IonicAllocUcontextResponse = "struct ionic_ctx_resp" since (6, 18),
            grew from 32 since (7, 3)
        {
            reserved = "rsvd",
            page_shift, dbell_offset, version, qp_opcodes, admin_opcodes, sq_qtype, rq_qtype,
            cq_qtype, admin_qtype, max_stride, max_spec, udma_count, expdb_mask, expdb_qtypes,
            reserved2 = "rsvd2",
            phc_offset since (7, 3),
        }
    }
}

#[rustfmt::skip]
fn add_constants(table: &mut Table) {
    constants! { table,
        ioctl::RDMA_VERBS_IOCTL = "RDMA_VERBS_IOCTL",
        ioctl::ATTR_F_MANDATORY = "UVERBS_ATTR_F_MANDATORY",
        ioctl::ATTR_F_VALID_OUTPUT = "UVERBS_ATTR_F_VALID_OUTPUT",
        ioctl::ID_NS_SHIFT = "UVERBS_ID_NS_SHIFT",
        ioctl::DRIVER_NAMESPACE = "UVERBS_ID_DRIVER_NS" | "UVERBS_UDATA_DRIVER_DATA_FLAG",
        ioctl::ATTR_UHW_IN = "UVERBS_ATTR_UHW_IN",
        ioctl::ATTR_UHW_OUT = "UVERBS_ATTR_UHW_OUT",
        device::object::DEVICE = "UVERBS_OBJECT_DEVICE",
        device::object::PD = "UVERBS_OBJECT_PD",
        device::object::COMP_CHANNEL = "UVERBS_OBJECT_COMP_CHANNEL",
        device::object::CQ = "UVERBS_OBJECT_CQ",
        device::object::QP = "UVERBS_OBJECT_QP",
        device::object::SRQ = "UVERBS_OBJECT_SRQ",
        device::object::AH = "UVERBS_OBJECT_AH",
        device::object::MR = "UVERBS_OBJECT_MR",
        device::object::MW = "UVERBS_OBJECT_MW",
        device::object::FLOW = "UVERBS_OBJECT_FLOW",
        device::object::XRCD = "UVERBS_OBJECT_XRCD",
        device::object::RWQ_IND_TBL = "UVERBS_OBJECT_RWQ_IND_TBL",
        device::object::WQ = "UVERBS_OBJECT_WQ",
        device::object::FLOW_ACTION = "UVERBS_OBJECT_FLOW_ACTION",
        device::object::DM = "UVERBS_OBJECT_DM",
        device::object::COUNTERS = "UVERBS_OBJECT_COUNTERS",
        device::object::ASYNC_EVENT = "UVERBS_OBJECT_ASYNC_EVENT" since (5, 6),
        device::object::DMAH = "UVERBS_OBJECT_DMAH" after (6, 12) by (7, 2),
        device::object::DMABUF = "UVERBS_OBJECT_DMABUF" after (6, 12) by (7, 2),
        device::object::COMP_CNTR = "UVERBS_OBJECT_COMP_CNTR" since (7, 3),
        device::method::INVOKE_WRITE = "UVERBS_METHOD_INVOKE_WRITE" since (5, 0),
        device::method::INFO_HANDLES = "UVERBS_METHOD_INFO_HANDLES" since (5, 0),
        device::method::QUERY_PORT = "UVERBS_METHOD_QUERY_PORT" since (5, 0),
        device::method::GET_CONTEXT = "UVERBS_METHOD_GET_CONTEXT" since (5, 6),
        device::method::QUERY_CONTEXT = "UVERBS_METHOD_QUERY_CONTEXT" since (5, 9),
        device::method::QUERY_GID_TABLE = "UVERBS_METHOD_QUERY_GID_TABLE" since (5, 10),
        device::method::QUERY_GID_ENTRY = "UVERBS_METHOD_QUERY_GID_ENTRY" since (5, 10),
        device::method::QUERY_PORT_SPEED = "UVERBS_METHOD_QUERY_PORT_SPEED" since (7, 0),
        device::method::QUERY_COMP_CNTR_CAPS = "UVERBS_METHOD_QUERY_COMP_CNTR_CAPS" since (7, 3),
        device::invoke_write::CORE_IN = "UVERBS_ATTR_CORE_IN" since (5, 0),
        device::invoke_write::CORE_OUT = "UVERBS_ATTR_CORE_OUT" since (5, 0),
        device::invoke_write::WRITE_CMD = "UVERBS_ATTR_WRITE_CMD" since (5, 0),
        device::info_handles::OBJECT_ID = "UVERBS_ATTR_INFO_OBJECT_ID" since (5, 0),
        device::info_handles::TOTAL_HANDLES = "UVERBS_ATTR_INFO_TOTAL_HANDLES" since (5, 0),
        device::info_handles::HANDLES_LIST = "UVERBS_ATTR_INFO_HANDLES_LIST" since (5, 0),
        device::query_port::PORT_NUM = "UVERBS_ATTR_QUERY_PORT_PORT_NUM" since (5, 0),
        device::query_port::RESP = "UVERBS_ATTR_QUERY_PORT_RESP" since (5, 0),
        device::get_context::NUM_COMP_VECTORS = "UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS" since (5, 6),
        device::get_context::CORE_SUPPORT = "UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT" since (5, 6),
        device::get_context::FD_ARR = "UVERBS_ATTR_GET_CONTEXT_FD_ARR" since (6, 15),
        device::query_context::NUM_COMP_VECTORS = "UVERBS_ATTR_QUERY_CONTEXT_NUM_COMP_VECTORS" since (5, 9),
        device::query_context::CORE_SUPPORT = "UVERBS_ATTR_QUERY_CONTEXT_CORE_SUPPORT" since (5, 9),
        device::query_gid_table::ENTRY_SIZE = "UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE" since (5, 10),
        device::query_gid_table::FLAGS = "UVERBS_ATTR_QUERY_GID_TABLE_FLAGS" since (5, 10),
        device::query_gid_table::RESP_ENTRIES = "UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES" since (5, 10),
        device::query_gid_table::RESP_NUM_ENTRIES = "UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES" since (5, 10),
        device::query_gid_entry::PORT = "UVERBS_ATTR_QUERY_GID_ENTRY_PORT" since (5, 10),
        device::query_gid_entry::GID_INDEX = "UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX" since (5, 10),
        device::query_gid_entry::FLAGS = "UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS" since (5, 10),
        device::query_gid_entry::RESP_ENTRY = "UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY" since (5, 10),
        device::query_port_speed::PORT_NUM = "UVERBS_ATTR_QUERY_PORT_SPEED_PORT_NUM" since (7, 0),
        device::query_port_speed::RESP = "UVERBS_ATTR_QUERY_PORT_SPEED_RESP" since (7, 0),
        device::query_comp_cntr_caps::MAX_COUNTERS = "UVERBS_ATTR_QUERY_COMP_CNTR_CAPS_MAX_COUNTERS" since (7, 3),
        device::query_comp_cntr_caps::MAX_VALUE = "UVERBS_ATTR_QUERY_COMP_CNTR_CAPS_MAX_VALUE" since (7, 3),
        device::query_comp_cntr_caps::SUPPORTED_QP_ATTACH_OPS = "UVERBS_ATTR_QUERY_COMP_CNTR_CAPS_SUPPORTED_QP_ATTACH_OPS" since (7, 3),
        device::core_support::OPTIONAL_MR_ACCESS = "IB_UVERBS_CORE_SUPPORT_OPTIONAL_MR_ACCESS",
        device::core_support::ROBUST_UDATA = "IB_UVERBS_CORE_SUPPORT_ROBUST_UDATA" since (7, 1),
        device::gid_type::IB = "IB_UVERBS_GID_TYPE_IB" since (5, 10),
        device::gid_type::ROCE_V1 = "IB_UVERBS_GID_TYPE_ROCE_V1" since (5, 10),
        device::gid_type::ROCE_V2 = "IB_UVERBS_GID_TYPE_ROCE_V2" since (5, 10),
        device::GRH_REQUIRED = "IB_UVERBS_QPF_GRH_REQUIRED",
        device::IP_BASED_GIDS = "IB_UVERBS_PCF_IP_BASED_GIDS",
        device::node_type::CA = "RDMA_NODE_IB_CA",
        device::node_type::SWITCH = "RDMA_NODE_IB_SWITCH",
        device::node_type::ROUTER = "RDMA_NODE_IB_ROUTER",
        device::node_type::RNIC = "RDMA_NODE_RNIC",
        device::node_type::USNIC = "RDMA_NODE_USNIC",
        device::node_type::USNIC_UDP = "RDMA_NODE_USNIC_UDP",
        device::node_type::UNSPECIFIED = "RDMA_NODE_UNSPECIFIED",
        device::write_command::GET_CONTEXT = "IB_USER_VERBS_CMD_GET_CONTEXT",
        device::write_command::QUERY_DEVICE = "IB_USER_VERBS_CMD_QUERY_DEVICE",
        device::write_command::QUERY_PORT = "IB_USER_VERBS_CMD_QUERY_PORT",
        device::write_command::EXTENDED = "IB_USER_VERBS_CMD_FLAG_EXTENDED",
        device::write_command::EX_QUERY_DEVICE = "IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_QUERY_DEVICE",
        event::method::ASYNC_EVENT_ALLOC = "UVERBS_METHOD_ASYNC_EVENT_ALLOC" since (5, 6),
        event::async_event_alloc::FD_HANDLE = "UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE" since (5, 6),
    }
}

#[rustfmt::skip]
fn add_driver_constants(table: &mut Table) {
    constants! { table,
        driver::driver_id::UNKNOWN = "RDMA_DRIVER_UNKNOWN",
        driver::driver_id::MLX5 = "RDMA_DRIVER_MLX5",
        driver::driver_id::MLX4 = "RDMA_DRIVER_MLX4",
        driver::driver_id::CXGB3 = "RDMA_DRIVER_CXGB3",
        driver::driver_id::CXGB4 = "RDMA_DRIVER_CXGB4",
        driver::driver_id::MTHCA = "RDMA_DRIVER_MTHCA",
        driver::driver_id::BNXT_RE = "RDMA_DRIVER_BNXT_RE",
        driver::driver_id::OCRDMA = "RDMA_DRIVER_OCRDMA",
        driver::driver_id::NES = "RDMA_DRIVER_NES",
        driver::driver_id::IRDMA = "RDMA_DRIVER_IRDMA" | "RDMA_DRIVER_I40IW",
        driver::driver_id::VMW_PVRDMA = "RDMA_DRIVER_VMW_PVRDMA",
        driver::driver_id::QEDR = "RDMA_DRIVER_QEDR",
        driver::driver_id::HNS = "RDMA_DRIVER_HNS",
        driver::driver_id::USNIC = "RDMA_DRIVER_USNIC",
        driver::driver_id::RXE = "RDMA_DRIVER_RXE",
        driver::driver_id::HFI1 = "RDMA_DRIVER_HFI1",
        driver::driver_id::QIB = "RDMA_DRIVER_QIB",
        driver::driver_id::EFA = "RDMA_DRIVER_EFA" since (5, 2),
        driver::driver_id::SIW = "RDMA_DRIVER_SIW" since (5, 3),
        driver::driver_id::ERDMA = "RDMA_DRIVER_ERDMA" since (6, 0),
        driver::driver_id::MANA = "RDMA_DRIVER_MANA" since (6, 2),
        driver::driver_id::IONIC = "RDMA_DRIVER_IONIC" since (6, 18),
        driver::mlx5::DEVX = "MLX5_IB_ALLOC_UCTX_DEVX",
        driver::mlx5::LIB_CAP_4K_UAR = "MLX5_LIB_CAP_4K_UAR",
        driver::mlx5::LIB_CAP_DYN_UAR = "MLX5_LIB_CAP_DYN_UAR" since (5, 7),
        driver::mlx5::ABI_VERSION = "MLX5_IB_UVERBS_ABI_VERSION",
        driver::bnxt_re::POW2_SUPPORT = "BNXT_RE_COMP_MASK_REQ_UCNTX_POW2_SUPPORT" after (6, 1) by (6, 12),
        driver::bnxt_re::VAR_WQE_SUPPORT = "BNXT_RE_COMP_MASK_REQ_UCNTX_VAR_WQE_SUPPORT" after (6, 1) by (6, 12),
        driver::bnxt_re::ABI_VERSION = "BNXT_RE_ABI_VERSION",
        driver::irdma::ABI_VERSION = "IRDMA_ABI_VER" since (5, 14),
        driver::irdma::USE_RAW_ATTR = "IRDMA_ALLOC_UCTX_USE_RAW_ATTR" after (5, 10) by (6, 1),
        driver::irdma::MIN_HW_WQ_SIZE = "IRDMA_ALLOC_UCTX_MIN_HW_WQ_SIZE" after (6, 1) by (6, 12),
        driver::irdma::MAX_HW_SRQ_QUANTA = "IRDMA_ALLOC_UCTX_MAX_HW_SRQ_QUANTA" after (6, 12) by (7, 2),
        driver::irdma::WQE_FORMAT_V2 = "IRDMA_SUPPORT_WQE_FORMAT_V2" after (6, 12) by (7, 2),
        driver::efa::TX_BATCH = "EFA_ALLOC_UCONTEXT_CMD_SUPP_CAPS_TX_BATCH" | "EFA_ALLOC_UCONTEXT_CMD_COMP_TX_BATCH",
        driver::efa::MIN_SQ_WR = "EFA_ALLOC_UCONTEXT_CMD_SUPP_CAPS_MIN_SQ_WR" | "EFA_ALLOC_UCONTEXT_CMD_COMP_MIN_SQ_WR",
    }
}

#[rustfmt::skip]
fn add_mlx5(table: &mut Table) {
    structures! { table,
        mlx5::QueryPort = "struct mlx5_ib_uapi_query_port" since (5, 13) {
            flags, vport, vport_vhca_id, esw_owner_vhca_id, reserved = "rsvd0",
            vport_steering_icm_rx, vport_steering_icm_tx,
            reg_c0_value = "reg_c0.value", reg_c0_mask = "reg_c0.mask",
        }
    }
    constants! { table,
        mlx5::object::DEVX = "MLX5_IB_OBJECT_DEVX",
        mlx5::device_method::QUERY_PORT = "MLX5_IB_METHOD_QUERY_PORT" since (5, 13),
        mlx5::query_context::RESP_UCTX = "MLX5_IB_ATTR_QUERY_CONTEXT_RESP_UCTX" since (5, 9),
        mlx5::query_port::PORT_NUM = "MLX5_IB_ATTR_QUERY_PORT_PORT_NUM" since (5, 13),
        mlx5::query_port::RESP = "MLX5_IB_ATTR_QUERY_PORT" since (5, 13),
        mlx5::devx_method::OTHER = "MLX5_IB_METHOD_DEVX_OTHER",
        mlx5::devx_other::CMD_IN = "MLX5_IB_ATTR_DEVX_OTHER_CMD_IN",
        mlx5::devx_other::CMD_OUT = "MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT",
        mlx5::query_port_flag::VPORT = "MLX5_IB_UAPI_QUERY_PORT_VPORT" since (5, 13),
        mlx5::query_port_flag::VPORT_VHCA_ID = "MLX5_IB_UAPI_QUERY_PORT_VPORT_VHCA_ID" since (5, 13),
        mlx5::query_port_flag::VPORT_STEERING_ICM_RX = "MLX5_IB_UAPI_QUERY_PORT_VPORT_STEERING_ICM_RX" since (5, 13),
        mlx5::query_port_flag::VPORT_STEERING_ICM_TX = "MLX5_IB_UAPI_QUERY_PORT_VPORT_STEERING_ICM_TX" since (5, 13),
        mlx5::query_port_flag::VPORT_REG_C0 = "MLX5_IB_UAPI_QUERY_PORT_VPORT_REG_C0" since (5, 13),
        mlx5::query_port_flag::ESW_OWNER_VHCA_ID = "MLX5_IB_UAPI_QUERY_PORT_ESW_OWNER_VHCA_ID" since (5, 13),
    }
}

#[rustfmt::skip]
fn add_netlink_objects(table: &mut Table) {
    constants! { table,
        netlink::op::RES_GET = "RDMA_NLDEV_CMD_RES_GET",
        netlink::op::RES_CM_ID_GET = "RDMA_NLDEV_CMD_RES_CM_ID_GET",
        netlink::op::RES_CQ_GET = "RDMA_NLDEV_CMD_RES_CQ_GET",
        netlink::op::RES_MR_GET = "RDMA_NLDEV_CMD_RES_MR_GET",
        netlink::op::RES_PD_GET = "RDMA_NLDEV_CMD_RES_PD_GET",
        netlink::op::RES_CTX_GET = "RDMA_NLDEV_CMD_RES_CTX_GET" after (5, 10) by (6, 1),
        netlink::op::RES_SRQ_GET = "RDMA_NLDEV_CMD_RES_SRQ_GET" after (5, 10) by (6, 1),
        netlink::attribute::RES_SUMMARY = "RDMA_NLDEV_ATTR_RES_SUMMARY",
        netlink::attribute::RES_SUMMARY_ENTRY = "RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY",
        netlink::attribute::RES_SUMMARY_ENTRY_NAME = "RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_NAME",
        netlink::attribute::RES_SUMMARY_ENTRY_CURR = "RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_CURR",
        netlink::attribute::RES_QP = "RDMA_NLDEV_ATTR_RES_QP",
        netlink::attribute::RES_PID = "RDMA_NLDEV_ATTR_RES_PID",
        netlink::attribute::RES_KERN_NAME = "RDMA_NLDEV_ATTR_RES_KERN_NAME",
        netlink::attribute::RES_CM_ID = "RDMA_NLDEV_ATTR_RES_CM_ID",
        netlink::attribute::RES_CM_ID_ENTRY = "RDMA_NLDEV_ATTR_RES_CM_ID_ENTRY",
        netlink::attribute::RES_CQ = "RDMA_NLDEV_ATTR_RES_CQ",
        netlink::attribute::RES_CQ_ENTRY = "RDMA_NLDEV_ATTR_RES_CQ_ENTRY",
        netlink::attribute::RES_MR = "RDMA_NLDEV_ATTR_RES_MR",
        netlink::attribute::RES_MR_ENTRY = "RDMA_NLDEV_ATTR_RES_MR_ENTRY",
        netlink::attribute::RES_PD = "RDMA_NLDEV_ATTR_RES_PD",
        netlink::attribute::RES_PD_ENTRY = "RDMA_NLDEV_ATTR_RES_PD_ENTRY",
        netlink::attribute::RES_CTX = "RDMA_NLDEV_ATTR_RES_CTX" after (5, 10) by (6, 1),
        netlink::attribute::RES_CTX_ENTRY = "RDMA_NLDEV_ATTR_RES_CTX_ENTRY" after (5, 10) by (6, 1),
        netlink::attribute::RES_SRQ = "RDMA_NLDEV_ATTR_RES_SRQ" after (5, 10) by (6, 1),
        netlink::attribute::RES_SRQ_ENTRY = "RDMA_NLDEV_ATTR_RES_SRQ_ENTRY" after (5, 10) by (6, 1),
    }
}

#[rustfmt::skip]
fn add_netlink_constants(table: &mut Table) {
    constants! { table,
        netlink::NETLINK_RDMA = "NETLINK_RDMA",
        netlink::client::IWCM = "RDMA_NL_IWCM",
        netlink::client::LS = "RDMA_NL_LS",
        netlink::client::NLDEV = "RDMA_NL_NLDEV",
        netlink::op::GET = "RDMA_NLDEV_CMD_GET",
        netlink::op::SET = "RDMA_NLDEV_CMD_SET",
        netlink::op::NEWLINK = "RDMA_NLDEV_CMD_NEWLINK",
        netlink::op::DELLINK = "RDMA_NLDEV_CMD_DELLINK",
        netlink::op::PORT_GET = "RDMA_NLDEV_CMD_PORT_GET",
        netlink::op::SYS_GET = "RDMA_NLDEV_CMD_SYS_GET",
        netlink::op::SYS_SET = "RDMA_NLDEV_CMD_SYS_SET",
        netlink::op::GET_CHARDEV = "RDMA_NLDEV_CMD_GET_CHARDEV" since (5, 3),
        netlink::op::STAT_GET = "RDMA_NLDEV_CMD_STAT_GET" since (5, 3),
        netlink::op::STAT_GET_STATUS = "RDMA_NLDEV_CMD_STAT_GET_STATUS" after (5, 10) by (6, 1),
        netlink::op::NEWDEV = "RDMA_NLDEV_CMD_NEWDEV" after (6, 1) by (6, 12),
        netlink::op::DELDEV = "RDMA_NLDEV_CMD_DELDEV" after (6, 1) by (6, 12),
        netlink::op::MONITOR = "RDMA_NLDEV_CMD_MONITOR" since (6, 12),
        netlink::attribute::PAD = "RDMA_NLDEV_ATTR_PAD",
        netlink::attribute::DEV_INDEX = "RDMA_NLDEV_ATTR_DEV_INDEX",
        netlink::attribute::DEV_NAME = "RDMA_NLDEV_ATTR_DEV_NAME",
        netlink::attribute::PORT_INDEX = "RDMA_NLDEV_ATTR_PORT_INDEX",
        netlink::attribute::CAP_FLAGS = "RDMA_NLDEV_ATTR_CAP_FLAGS",
        netlink::attribute::FW_VERSION = "RDMA_NLDEV_ATTR_FW_VERSION",
        netlink::attribute::NODE_GUID = "RDMA_NLDEV_ATTR_NODE_GUID",
        netlink::attribute::SYS_IMAGE_GUID = "RDMA_NLDEV_ATTR_SYS_IMAGE_GUID",
        netlink::attribute::SUBNET_PREFIX = "RDMA_NLDEV_ATTR_SUBNET_PREFIX",
        netlink::attribute::LID = "RDMA_NLDEV_ATTR_LID",
        netlink::attribute::SM_LID = "RDMA_NLDEV_ATTR_SM_LID",
        netlink::attribute::LMC = "RDMA_NLDEV_ATTR_LMC",
        netlink::attribute::PORT_STATE = "RDMA_NLDEV_ATTR_PORT_STATE",
        netlink::attribute::PORT_PHYS_STATE = "RDMA_NLDEV_ATTR_PORT_PHYS_STATE",
        netlink::attribute::DEV_NODE_TYPE = "RDMA_NLDEV_ATTR_DEV_NODE_TYPE",
        netlink::attribute::NDEV_INDEX = "RDMA_NLDEV_ATTR_NDEV_INDEX",
        netlink::attribute::NDEV_NAME = "RDMA_NLDEV_ATTR_NDEV_NAME",
        netlink::attribute::LINK_TYPE = "RDMA_NLDEV_ATTR_LINK_TYPE",
        netlink::attribute::SYS_NETNS_MODE = "RDMA_NLDEV_SYS_ATTR_NETNS_MODE",
        netlink::attribute::DEV_PROTOCOL = "RDMA_NLDEV_ATTR_DEV_PROTOCOL",
        netlink::attribute::NET_NS_FD = "RDMA_NLDEV_NET_NS_FD",
        netlink::attribute::CHARDEV_TYPE = "RDMA_NLDEV_ATTR_CHARDEV_TYPE" since (5, 3),
        netlink::attribute::CHARDEV_NAME = "RDMA_NLDEV_ATTR_CHARDEV_NAME" since (5, 3),
        netlink::attribute::CHARDEV_ABI = "RDMA_NLDEV_ATTR_CHARDEV_ABI" since (5, 3),
        netlink::attribute::CHARDEV = "RDMA_NLDEV_ATTR_CHARDEV" since (5, 3),
        netlink::attribute::UVERBS_DRIVER_ID = "RDMA_NLDEV_ATTR_UVERBS_DRIVER_ID" since (5, 3),
        netlink::attribute::STAT_MODE = "RDMA_NLDEV_ATTR_STAT_MODE" since (5, 3),
        netlink::attribute::STAT_RES = "RDMA_NLDEV_ATTR_STAT_RES" since (5, 3),
        netlink::attribute::STAT_HWCOUNTERS = "RDMA_NLDEV_ATTR_STAT_HWCOUNTERS" since (5, 3),
        netlink::attribute::STAT_HWCOUNTER_ENTRY = "RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY" since (5, 3),
        netlink::attribute::STAT_HWCOUNTER_ENTRY_NAME = "RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_NAME" since (5, 3),
        netlink::attribute::STAT_HWCOUNTER_ENTRY_VALUE = "RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_VALUE" since (5, 3),
        netlink::attribute::DEV_DIM = "RDMA_NLDEV_ATTR_DEV_DIM",
        netlink::attribute::SYS_COPY_ON_FORK = "RDMA_NLDEV_SYS_ATTR_COPY_ON_FORK" after (5, 10) by (6, 1),
        netlink::attribute::STAT_HWCOUNTER_DYNAMIC = "RDMA_NLDEV_ATTR_STAT_HWCOUNTER_DYNAMIC" after (5, 10) by (6, 1),
        netlink::attribute::SYS_PRIVILEGED_QKEY_MODE = "RDMA_NLDEV_SYS_ATTR_PRIVILEGED_QKEY_MODE" after (6, 0) by (6, 12),
        netlink::attribute::DEV_TYPE = "RDMA_NLDEV_ATTR_DEV_TYPE" after (6, 1) by (6, 12),
        netlink::attribute::PARENT_NAME = "RDMA_NLDEV_ATTR_PARENT_NAME" after (6, 1) by (6, 12),
        netlink::attribute::NAME_ASSIGN_TYPE = "RDMA_NLDEV_ATTR_NAME_ASSIGN_TYPE" after (6, 1) by (6, 12),
        netlink::attribute::EVENT_TYPE = "RDMA_NLDEV_ATTR_EVENT_TYPE" since (6, 12),
        netlink::attribute::SYS_MONITOR_MODE = "RDMA_NLDEV_SYS_ATTR_MONITOR_MODE" since (6, 12),
        netlink::group::IWPM = "RDMA_NL_GROUP_IWPM",
        netlink::group::LS = "RDMA_NL_GROUP_LS",
        netlink::group::NOTIFY = "RDMA_NL_GROUP_NOTIFY" since (6, 12),
        netlink::stat_mode::NONE = "RDMA_COUNTER_MODE_NONE" since (5, 3),
        netlink::stat_mode::AUTO = "RDMA_COUNTER_MODE_AUTO" since (5, 3),
        netlink::stat_mode::MANUAL = "RDMA_COUNTER_MODE_MANUAL" since (5, 3),
        netlink::event_type::REGISTER = "RDMA_REGISTER_EVENT" since (6, 12),
        netlink::event_type::UNREGISTER = "RDMA_UNREGISTER_EVENT" since (6, 12),
        netlink::event_type::NETDEV_ATTACH = "RDMA_NETDEV_ATTACH_EVENT" since (6, 12),
        netlink::event_type::NETDEV_DETACH = "RDMA_NETDEV_DETACH_EVENT" since (6, 12),
        netlink::event_type::RENAME = "RDMA_RENAME_EVENT" after (6, 12) by (7, 2),
        netlink::event_type::NETDEV_RENAME = "RDMA_NETDEV_RENAME_EVENT" after (6, 12) by (7, 2),
        cm::ABI_VERSION = "RDMA_USER_CM_ABI_VERSION",
        cm::ADDRESS_LEN = "sizeof(struct __kernel_sockaddr_storage)",
        cm::command::CREATE_ID = "RDMA_USER_CM_CMD_CREATE_ID",
        cm::command::QUERY = "RDMA_USER_CM_CMD_QUERY",
        cm::command::BIND = "RDMA_USER_CM_CMD_BIND",
        cm::port_space::IB = "RDMA_PS_IB",
        cm::qp_type::RC = "IB_UVERBS_QPT_RC",
        cm::query::ADDR = "RDMA_USER_CM_QUERY_ADDR",
        umad::IB_UMAD_ABI_VERSION = "IB_USER_MAD_ABI_VERSION",
        umad::IB_USER_VERBS_ABI_VERSION = "IB_USER_VERBS_ABI_VERSION",
        umad::IB_DEVICE_NAME_MAX = "IB_DEVICE_NAME_MAX",
    }
}

#[rustfmt::skip]
fn add_capabilities(table: &mut Table) {
    constants! { table,
        capability::device::RESIZE_MAX_WR = "IB_UVERBS_DEVICE_RESIZE_MAX_WR" after (5, 10) by (6, 1),
        capability::device::BAD_PKEY_CNTR = "IB_UVERBS_DEVICE_BAD_PKEY_CNTR" after (5, 10) by (6, 1),
        capability::device::BAD_QKEY_CNTR = "IB_UVERBS_DEVICE_BAD_QKEY_CNTR" after (5, 10) by (6, 1),
        capability::device::RAW_MULTI = "IB_UVERBS_DEVICE_RAW_MULTI" after (5, 10) by (6, 1),
        capability::device::AUTO_PATH_MIG = "IB_UVERBS_DEVICE_AUTO_PATH_MIG" after (5, 10) by (6, 1),
        capability::device::CHANGE_PHY_PORT = "IB_UVERBS_DEVICE_CHANGE_PHY_PORT" after (5, 10) by (6, 1),
        capability::device::UD_AV_PORT_ENFORCE = "IB_UVERBS_DEVICE_UD_AV_PORT_ENFORCE" after (5, 10) by (6, 1),
        capability::device::CURR_QP_STATE_MOD = "IB_UVERBS_DEVICE_CURR_QP_STATE_MOD" after (5, 10) by (6, 1),
        capability::device::SHUTDOWN_PORT = "IB_UVERBS_DEVICE_SHUTDOWN_PORT" after (5, 10) by (6, 1),
        capability::device::PORT_ACTIVE_EVENT = "IB_UVERBS_DEVICE_PORT_ACTIVE_EVENT" after (5, 10) by (6, 1),
        capability::device::SYS_IMAGE_GUID = "IB_UVERBS_DEVICE_SYS_IMAGE_GUID" after (5, 10) by (6, 1),
        capability::device::RC_RNR_NAK_GEN = "IB_UVERBS_DEVICE_RC_RNR_NAK_GEN" after (5, 10) by (6, 1),
        capability::device::SRQ_RESIZE = "IB_UVERBS_DEVICE_SRQ_RESIZE" after (5, 10) by (6, 1),
        capability::device::N_NOTIFY_CQ = "IB_UVERBS_DEVICE_N_NOTIFY_CQ" after (5, 10) by (6, 1),
        capability::device::MEM_WINDOW = "IB_UVERBS_DEVICE_MEM_WINDOW" after (5, 10) by (6, 1),
        capability::device::UD_IP_CSUM = "IB_UVERBS_DEVICE_UD_IP_CSUM" after (5, 10) by (6, 1),
        capability::device::XRC = "IB_UVERBS_DEVICE_XRC" after (5, 10) by (6, 1),
        capability::device::MEM_MGT_EXTENSIONS = "IB_UVERBS_DEVICE_MEM_MGT_EXTENSIONS" after (5, 10) by (6, 1),
        capability::device::MEM_WINDOW_TYPE_2A = "IB_UVERBS_DEVICE_MEM_WINDOW_TYPE_2A" after (5, 10) by (6, 1),
        capability::device::MEM_WINDOW_TYPE_2B = "IB_UVERBS_DEVICE_MEM_WINDOW_TYPE_2B" after (5, 10) by (6, 1),
        capability::device::RC_IP_CSUM = "IB_UVERBS_DEVICE_RC_IP_CSUM" after (5, 10) by (6, 1),
        capability::device::RAW_IP_CSUM = "IB_UVERBS_DEVICE_RAW_IP_CSUM" after (5, 10) by (6, 1),
        capability::device::MANAGED_FLOW_STEERING = "IB_UVERBS_DEVICE_MANAGED_FLOW_STEERING" after (5, 10) by (6, 1),
        capability::device::RAW_SCATTER_FCS = "IB_UVERBS_DEVICE_RAW_SCATTER_FCS" after (5, 10) by (6, 1),
        capability::device::PCI_WRITE_END_PADDING = "IB_UVERBS_DEVICE_PCI_WRITE_END_PADDING" after (5, 10) by (6, 1),
        capability::device::FLUSH_GLOBAL = "IB_UVERBS_DEVICE_FLUSH_GLOBAL" after (6, 1) by (6, 12),
        capability::device::FLUSH_PERSISTENT = "IB_UVERBS_DEVICE_FLUSH_PERSISTENT" after (6, 1) by (6, 12),
        capability::device::ATOMIC_WRITE = "IB_UVERBS_DEVICE_ATOMIC_WRITE" after (6, 1) by (6, 12),
        capability::raw_packet::CVLAN_STRIPPING = "IB_UVERBS_RAW_PACKET_CAP_CVLAN_STRIPPING" after (5, 10) by (6, 1),
        capability::raw_packet::SCATTER_FCS = "IB_UVERBS_RAW_PACKET_CAP_SCATTER_FCS" after (5, 10) by (6, 1),
        capability::raw_packet::IP_CSUM = "IB_UVERBS_RAW_PACKET_CAP_IP_CSUM" after (5, 10) by (6, 1),
        capability::raw_packet::DELAY_DROP = "IB_UVERBS_RAW_PACKET_CAP_DELAY_DROP" after (5, 10) by (6, 1),
        capability::rx_hash_function::TOEPLITZ = "MLX5_RX_HASH_FUNC_TOEPLITZ",
        capability::rx_hash_fields::SRC_IPV4 = "MLX5_RX_HASH_SRC_IPV4",
        capability::rx_hash_fields::DST_IPV4 = "MLX5_RX_HASH_DST_IPV4",
        capability::rx_hash_fields::SRC_IPV6 = "MLX5_RX_HASH_SRC_IPV6",
        capability::rx_hash_fields::DST_IPV6 = "MLX5_RX_HASH_DST_IPV6",
        capability::rx_hash_fields::SRC_PORT_TCP = "MLX5_RX_HASH_SRC_PORT_TCP",
        capability::rx_hash_fields::DST_PORT_TCP = "MLX5_RX_HASH_DST_PORT_TCP",
        capability::rx_hash_fields::SRC_PORT_UDP = "MLX5_RX_HASH_SRC_PORT_UDP",
        capability::rx_hash_fields::DST_PORT_UDP = "MLX5_RX_HASH_DST_PORT_UDP",
        capability::rx_hash_fields::IPSEC_SPI = "MLX5_RX_HASH_IPSEC_SPI",
        capability::rx_hash_fields::INNER = "MLX5_RX_HASH_INNER",
        capability::qp_type::UD = "IB_UVERBS_QPT_UD",
        capability::qp_type::RAW_PACKET = "IB_UVERBS_QPT_RAW_PACKET",
    }
}

#[rustfmt::skip]
fn add_unconfirmed(table: &mut Table) {
    not_in_headers! { table,
        "what Linux 5.10 had: headers have the entry of their own kernel":
            device::GID_ENTRY_FIRST_SIZE;
        "kept by the kernel in its own rdma/ib_verbs.h, numbers of the InfiniBand specification":
            device::port_state::NOP, device::port_state::DOWN, device::port_state::INIT,
            device::port_state::ARMED, device::port_state::ACTIVE, device::port_state::ACTIVE_DEFER,
            device::phys_state::SLEEP, device::phys_state::POLLING, device::phys_state::DISABLED,
            device::phys_state::PORT_CONFIGURATION_TRAINING, device::phys_state::LINK_UP,
            device::phys_state::LINK_ERROR_RECOVERY, device::phys_state::PHY_TEST,
            device::mtu::BYTES_256, device::mtu::BYTES_512, device::mtu::BYTES_1024,
            device::mtu::BYTES_2048, device::mtu::BYTES_4096,
            device::width::X1, device::width::X4, device::width::X8, device::width::X12,
            device::width::X2,
            device::speed::SDR, device::speed::DDR, device::speed::QDR, device::speed::FDR10,
            device::speed::FDR, device::speed::EDR, device::speed::HDR, device::speed::NDR,
            device::speed::XDR;
        "kept by the kernel in its own rdma/ib_verbs.h, handed to user space as it is":
            device::link_layer::UNSPECIFIED, device::link_layer::INFINIBAND,
            device::link_layer::ETHERNET,
            event::event_type::DEVICE_FATAL, event::event_type::PORT_ACTIVE,
            event::event_type::PORT_ERR, event::event_type::LID_CHANGE,
            event::event_type::PKEY_CHANGE, event::event_type::SM_CHANGE,
            event::event_type::CLIENT_REREGISTER, event::event_type::GID_CHANGE,
            event::event_type::DEVICE_SPEED_CHANGE;
        "no longer in the headers":
            capability::device::INIT_TYPE;
        "of rdma-core's infiniband/verbs.h, which has them from the kernel's own rdma/ib_verbs.h":
            capability::general_odp::SUPPORT, capability::general_odp::SUPPORT_IMPLICIT,
            capability::odp::SEND,
            capability::odp::RECV,
            capability::odp::WRITE,
            capability::odp::READ,
            capability::odp::ATOMIC,
            capability::odp::SRQ_RECV,
            capability::odp::FLUSH,
            capability::odp::ATOMIC_WRITE,
            capability::atomicity::NONE, capability::atomicity::HCA, capability::atomicity::GLOBAL;
        "the size of the data field, which the headers do not name":
            ioctl::INLINE_LEN;
        "a yes or no, which the headers do not name":
            netlink::netns_mode::EXCLUSIVE, netlink::netns_mode::SHARED;
        "of rdma-core's infiniband/umad.h":
            umad::UMAD_CA_NAME_LEN, umad::UMAD_CA_MAX_PORTS, umad::UMAD_MAX_DEVICES,
            umad::UMAD_MAX_PORTS;
        "a path, not a number":
            umad::SYSFS_INFINIBAND, umad::SYSFS_INFINIBAND_MAD, umad::SYSFS_INFINIBAND_VERBS;
    }
}
