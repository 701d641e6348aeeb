//! The structures of `<infiniband/verbs.h>` that C programs look into, as release 65 of rdma-core has
//! them. Where older releases differ theirs are a beginning of these, and the length comes with
//! the call. `uverbs.h` declares the same; tests compare both with rdma-core's headers.

use core::ffi::{c_char, c_int, c_uint, c_void};

use nix::libc;
use zerocopy::{FromZeros, Immutable, IntoBytes};

use crate::capi::layout::{ALIGN_64, MUTEX, layout};

/// `IBV_SYSFS_NAME_MAX`.
pub(crate) const NAME_MAX: usize = 64;
/// `IBV_SYSFS_PATH_MAX`.
pub(crate) const PATH_MAX: usize = 256;

/// `struct ibv_device`.
#[derive(Debug)]
#[repr(C)]
pub struct Device {
    pub(crate) ops: [usize; 2],
    pub(crate) node_type: c_int,
    pub(crate) transport_type: c_int,
    pub(crate) name: [c_char; NAME_MAX],
    pub(crate) dev_name: [c_char; NAME_MAX],
    pub(crate) dev_path: [c_char; PATH_MAX],
    pub(crate) ibdev_path: [c_char; PATH_MAX],
}

layout!("struct ibv_device", Device, size [664, 656, 656], align [8, 4, 4], {
    ops as "_ops": 0,
    node_type: [16, 8, 8],
    transport_type: [20, 12, 12],
    name: [24, 16, 16],
    dev_name: [88, 80, 80],
    dev_path: [152, 144, 144],
    ibdev_path: [408, 400, 400],
});

/// `struct ibv_gid_entry`. The kernel writes it: its own structure has the same beginning, and the size of
/// the program's structure comes with each call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
// A GID is also two 64-bit numbers in C.
#[repr(C)]
#[cfg_attr(not(target_arch = "x86"), repr(align(8)))]
pub struct GidEntry {
    /// `gid`, in network order.
    pub gid: [u8; 16],
    /// `gid_index`: index in the port's table.
    pub gid_index: u32,
    /// `port_num`.
    pub port_num: u32,
    /// `gid_type`: `enum ibv_gid_type`.
    pub gid_type: u32,
    /// `ndev_ifindex`: 0 if there is no network interface.
    pub ndev_ifindex: u32,
}

layout!("struct ibv_gid_entry", GidEntry, size 32, align [8, 8, 4], {
    gid: 0,
    gid_index: 16,
    port_num: 20,
    gid_type: 24,
    ndev_ifindex: 28,
});

/// Functions that inline code of the headers finds in `struct ibv_context_ops`: two that query. The
/// others belong to queues and memory, which this library does not have, and fail.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct ContextOps {
    pub(crate) query_device: Option<QueryDevice>,
    pub(crate) query_port: Option<CompatQueryPort>,
    pub(crate) others: [*mut c_void; 30],
}

layout!("struct ibv_context_ops", ContextOps, size [256, 128, 128], align [8, 4, 4], {
    query_device as "": 0,
    query_port as "": [8, 4, 4],
    others as "": [16, 8, 8],
});

pub(crate) type QueryDevice = unsafe extern "C" fn(*mut Context, *mut DeviceAttr) -> c_int;
pub(crate) type CompatQueryPort = unsafe extern "C" fn(*mut Context, u8, *mut PortAttr) -> c_int;

/// `struct ibv_context`.
#[derive(Debug)]
#[repr(C)]
pub struct Context {
    pub(crate) device: *mut Device,
    pub(crate) ops: ContextOps,
    pub(crate) cmd_fd: c_int,
    pub(crate) async_fd: c_int,
    pub(crate) num_comp_vectors: c_int,
    pub(crate) mutex: libc::pthread_mutex_t,
    pub(crate) abi_compat: *mut c_void,
}

layout!("struct ibv_context", Context,
    size [288 + MUTEX[0], 148 + MUTEX[1], 148 + MUTEX[2]], align [8, 4, 4], {
    device: 0,
    ops: [8, 4, 4],
    cmd_fd: [264, 132, 132],
    async_fd: [268, 136, 136],
    num_comp_vectors: [272, 140, 140],
    mutex: [280, 144, 144],
    abi_compat: [280 + MUTEX[0], 144 + MUTEX[1], 144 + MUTEX[2]],
});

/// `struct verbs_context`, which lies around the [`Context`] that programs get. It grew at its
/// beginning; this one begins with `query_port`, and `sz` says so.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct VerbsContext {
    pub(crate) query_port: Option<QueryPort>,
    /// Of queues and memory: NULL, which the headers' inline code takes for `EOPNOTSUPP`.
    pub(crate) others: [*mut c_void; 25],
    /// For rdma-core's own library.
    pub(crate) private: *mut c_void,
    pub(crate) query_device_ex: Option<QueryDeviceEx>,
    /// Of queues and memory, likewise.
    pub(crate) older: [*mut c_void; 10],
    pub(crate) placeholder: u64,
    /// Size of this structure.
    pub(crate) sz: usize,
    pub(crate) context: Context,
}

pub(crate) type QueryPort = unsafe extern "C" fn(*mut Context, u8, *mut PortAttr, usize) -> c_int;
pub(crate) type QueryDeviceEx = unsafe extern "C" fn(
    *mut Context,
    *const QueryDeviceExInput,
    *mut DeviceAttrEx,
    usize,
) -> c_int;

// In newer releases it begins earlier; distances from `query_port` on are the same.
layout!("struct verbs_context", VerbsContext,
    size [608 + MUTEX[0], 312 + MUTEX[1], 312 + MUTEX[2]], align [8, 8, 4], {
    query_port: 0,
    others as "": [8, 4, 4],
    private as "priv": [208, 104, 104],
    query_device_ex: [216, 108, 108],
    older as "": [224, 112, 112],
    placeholder as "_ABI_placeholder3": [304, 152, 152],
    sz: [312, 160, 160],
    context: [320, 164, 164],
});

/// `struct ibv_query_device_ex_input`.
#[derive(Debug)]
#[repr(C)]
pub struct QueryDeviceExInput {
    pub(crate) comp_mask: u32,
}

layout!("struct ibv_query_device_ex_input", QueryDeviceExInput, size 4, align 4, { comp_mask: 0 });

/// `struct ibv_device_attr`.
#[derive(Clone, Copy, Debug, FromZeros, IntoBytes, Immutable)]
#[repr(C)]
pub struct DeviceAttr {
    pub(crate) fw_ver: [u8; 64],
    pub(crate) node_guid: [u8; 8],
    pub(crate) sys_image_guid: [u8; 8],
    pub(crate) max_mr_size: u64,
    pub(crate) page_size_cap: u64,
    pub(crate) vendor_id: u32,
    pub(crate) vendor_part_id: u32,
    pub(crate) hw_ver: u32,
    pub(crate) max_qp: c_int,
    pub(crate) max_qp_wr: c_int,
    pub(crate) device_cap_flags: c_uint,
    pub(crate) max_sge: c_int,
    pub(crate) max_sge_rd: c_int,
    pub(crate) max_cq: c_int,
    pub(crate) max_cqe: c_int,
    pub(crate) max_mr: c_int,
    pub(crate) max_pd: c_int,
    pub(crate) max_qp_rd_atom: c_int,
    pub(crate) max_ee_rd_atom: c_int,
    pub(crate) max_res_rd_atom: c_int,
    pub(crate) max_qp_init_rd_atom: c_int,
    pub(crate) max_ee_init_rd_atom: c_int,
    pub(crate) atomic_cap: c_uint,
    pub(crate) max_ee: c_int,
    pub(crate) max_rdd: c_int,
    pub(crate) max_mw: c_int,
    pub(crate) max_raw_ipv6_qp: c_int,
    pub(crate) max_raw_ethy_qp: c_int,
    pub(crate) max_mcast_grp: c_int,
    pub(crate) max_mcast_qp_attach: c_int,
    pub(crate) max_total_mcast_qp_attach: c_int,
    pub(crate) max_ah: c_int,
    pub(crate) max_fmr: c_int,
    pub(crate) max_map_per_fmr: c_int,
    pub(crate) max_srq: c_int,
    pub(crate) max_srq_wr: c_int,
    pub(crate) max_srq_sge: c_int,
    pub(crate) max_pkeys: u16,
    pub(crate) local_ca_ack_delay: u8,
    pub(crate) phys_port_cnt: u8,
    pub(crate) padding: [u8; ALIGN_64 - 4],
}

layout!("struct ibv_device_attr", DeviceAttr, size [232, 232, 228], align [8, 8, 4], {
    fw_ver: 0,
    node_guid: 64,
    sys_image_guid: 72,
    max_mr_size: 80,
    page_size_cap: 88,
    vendor_id: 96,
    vendor_part_id: 100,
    hw_ver: 104,
    max_qp: 108,
    max_qp_wr: 112,
    device_cap_flags: 116,
    max_sge: 120,
    max_sge_rd: 124,
    max_cq: 128,
    max_cqe: 132,
    max_mr: 136,
    max_pd: 140,
    max_qp_rd_atom: 144,
    max_ee_rd_atom: 148,
    max_res_rd_atom: 152,
    max_qp_init_rd_atom: 156,
    max_ee_init_rd_atom: 160,
    atomic_cap: 164,
    max_ee: 168,
    max_rdd: 172,
    max_mw: 176,
    max_raw_ipv6_qp: 180,
    max_raw_ethy_qp: 184,
    max_mcast_grp: 188,
    max_mcast_qp_attach: 192,
    max_total_mcast_qp_attach: 196,
    max_ah: 200,
    max_fmr: 204,
    max_map_per_fmr: 208,
    max_srq: 212,
    max_srq_wr: 216,
    max_srq_sge: 220,
    max_pkeys: 224,
    local_ca_ack_delay: 226,
    phys_port_cnt: 227,
    padding as "": 228,
});

/// `struct ibv_device_attr_ex`.
#[derive(Clone, Copy, Debug, FromZeros, IntoBytes, Immutable)]
#[repr(C)]
pub struct DeviceAttrEx {
    pub(crate) orig_attr: DeviceAttr,
    pub(crate) comp_mask: u32,
    pub(crate) padding: [u8; ALIGN_64 - 4],
    pub(crate) odp_caps: OdpCaps,
    pub(crate) completion_timestamp_mask: u64,
    pub(crate) hca_core_clock: u64,
    pub(crate) device_cap_flags_ex: u64,
    pub(crate) tso_caps: TsoCaps,
    pub(crate) rss_caps: RssCaps,
    pub(crate) max_wq_type_rq: u32,
    pub(crate) packet_pacing_caps: PacketPacingCaps,
    pub(crate) raw_packet_caps: u32,
    pub(crate) tm_caps: TmCaps,
    pub(crate) cq_mod_caps: CqModerationCaps,
    pub(crate) padding2: [u8; ALIGN_64 - 4],
    pub(crate) max_dm_size: u64,
    pub(crate) pci_atomic_caps: PciAtomicCaps,
    pub(crate) padding3: u16,
    pub(crate) xrc_odp_caps: u32,
    pub(crate) phys_port_cnt_ex: u32,
}

layout!("struct ibv_device_attr_ex", DeviceAttrEx, size [400, 400, 376], align [8, 8, 4], {
    orig_attr: 0,
    comp_mask: [232, 232, 228],
    padding as "": [236, 236, 232],
    odp_caps: [240, 240, 232],
    completion_timestamp_mask: [264, 264, 252],
    hca_core_clock: [272, 272, 260],
    device_cap_flags_ex: [280, 280, 268],
    tso_caps: [288, 288, 276],
    rss_caps: [296, 296, 284],
    max_wq_type_rq: [328, 328, 308],
    packet_pacing_caps: [332, 332, 312],
    raw_packet_caps: [344, 344, 324],
    tm_caps: [348, 348, 328],
    cq_mod_caps: [368, 368, 348],
    padding2 as "": [372, 372, 352],
    max_dm_size: [376, 376, 352],
    pci_atomic_caps: [384, 384, 360],
    padding3 as "": [390, 390, 366],
    xrc_odp_caps: [392, 392, 368],
    phys_port_cnt_ex: [396, 396, 372],
});

/// `struct ibv_odp_caps`.
#[expect(clippy::struct_field_names, reason = "the names of C")]
#[derive(Clone, Copy, Debug, Default, FromZeros, IntoBytes, Immutable)]
#[repr(C)]
pub struct OdpCaps {
    pub(crate) general_caps: u64,
    pub(crate) rc_odp_caps: u32,
    pub(crate) uc_odp_caps: u32,
    pub(crate) ud_odp_caps: u32,
    pub(crate) padding: [u8; ALIGN_64 - 4],
}

layout!("struct ibv_odp_caps", OdpCaps, size [24, 24, 20], align [8, 8, 4], {
    general_caps: 0,
    rc_odp_caps as "per_transport_caps.rc_odp_caps": 8,
    uc_odp_caps as "per_transport_caps.uc_odp_caps": 12,
    ud_odp_caps as "per_transport_caps.ud_odp_caps": 16,
    padding as "": 20,
});

/// `struct ibv_tso_caps`.
#[derive(Clone, Copy, Debug, Default, FromZeros, IntoBytes, Immutable)]
#[repr(C)]
pub struct TsoCaps {
    pub(crate) max_tso: u32,
    pub(crate) supported_qpts: u32,
}

layout!("struct ibv_tso_caps", TsoCaps, size 8, align 4, { max_tso: 0, supported_qpts: 4 });

/// `struct ibv_rss_caps`.
#[derive(Clone, Copy, Debug, Default, FromZeros, IntoBytes, Immutable)]
#[repr(C)]
pub struct RssCaps {
    pub(crate) supported_qpts: u32,
    pub(crate) max_rwq_indirection_tables: u32,
    pub(crate) max_rwq_indirection_table_size: u32,
    pub(crate) padding: [u8; ALIGN_64 - 4],
    pub(crate) rx_hash_fields_mask: u64,
    pub(crate) rx_hash_function: u8,
    pub(crate) padding2: [u8; ALIGN_64 - 1],
}

layout!("struct ibv_rss_caps", RssCaps, size [32, 32, 24], align [8, 8, 4], {
    supported_qpts: 0,
    max_rwq_indirection_tables: 4,
    max_rwq_indirection_table_size: 8,
    padding as "": 12,
    rx_hash_fields_mask: [16, 16, 12],
    rx_hash_function: [24, 24, 20],
    padding2 as "": [25, 25, 21],
});

/// `struct ibv_packet_pacing_caps`.
#[derive(Clone, Copy, Debug, Default, FromZeros, IntoBytes, Immutable)]
#[repr(C)]
pub struct PacketPacingCaps {
    pub(crate) qp_rate_limit_min: u32,
    pub(crate) qp_rate_limit_max: u32,
    pub(crate) supported_qpts: u32,
}

layout!("struct ibv_packet_pacing_caps", PacketPacingCaps, size 12, align 4, {
    qp_rate_limit_min: 0,
    qp_rate_limit_max: 4,
    supported_qpts: 8,
});

/// `struct ibv_tm_caps`.
#[derive(Clone, Copy, Debug, Default, FromZeros, IntoBytes, Immutable)]
#[repr(C)]
pub struct TmCaps {
    pub(crate) max_rndv_hdr_size: u32,
    pub(crate) max_num_tags: u32,
    pub(crate) flags: u32,
    pub(crate) max_ops: u32,
    pub(crate) max_sge: u32,
}

layout!("struct ibv_tm_caps", TmCaps, size 20, align 4, {
    max_rndv_hdr_size: 0,
    max_num_tags: 4,
    flags: 8,
    max_ops: 12,
    max_sge: 16,
});

/// `struct ibv_cq_moderation_caps`.
#[derive(Clone, Copy, Debug, Default, FromZeros, IntoBytes, Immutable)]
#[repr(C)]
pub struct CqModerationCaps {
    pub(crate) max_cq_count: u16,
    pub(crate) max_cq_period: u16,
}

layout!("struct ibv_cq_moderation_caps", CqModerationCaps, size 4, align 2, {
    max_cq_count: 0,
    max_cq_period: 2,
});

/// `struct ibv_pci_atomic_caps`.
#[derive(Clone, Copy, Debug, Default, FromZeros, IntoBytes, Immutable)]
#[repr(C)]
pub struct PciAtomicCaps {
    pub(crate) fetch_add: u16,
    pub(crate) swap: u16,
    pub(crate) compare_swap: u16,
}

layout!("struct ibv_pci_atomic_caps", PciAtomicCaps, size 6, align 2, {
    fetch_add: 0,
    swap: 2,
    compare_swap: 4,
});

/// `struct ibv_port_attr`.
#[derive(Clone, Copy, Debug, Default, FromZeros, IntoBytes, Immutable)]
#[repr(C)]
pub struct PortAttr {
    pub(crate) state: c_uint,
    pub(crate) max_mtu: c_uint,
    pub(crate) active_mtu: c_uint,
    pub(crate) gid_tbl_len: c_int,
    pub(crate) port_cap_flags: u32,
    pub(crate) max_msg_sz: u32,
    pub(crate) bad_pkey_cntr: u32,
    pub(crate) qkey_viol_cntr: u32,
    pub(crate) pkey_tbl_len: u16,
    pub(crate) lid: u16,
    pub(crate) sm_lid: u16,
    pub(crate) lmc: u8,
    pub(crate) max_vl_num: u8,
    pub(crate) sm_sl: u8,
    pub(crate) subnet_timeout: u8,
    pub(crate) init_type_reply: u8,
    pub(crate) active_width: u8,
    pub(crate) active_speed: u8,
    pub(crate) phys_state: u8,
    pub(crate) link_layer: u8,
    pub(crate) flags: u8,
    pub(crate) port_cap_flags2: u16,
    pub(crate) padding: u16,
    pub(crate) active_speed_ex: u32,
}

layout!("struct ibv_port_attr", PortAttr, size 56, align 4, {
    state: 0,
    max_mtu: 4,
    active_mtu: 8,
    gid_tbl_len: 12,
    port_cap_flags: 16,
    max_msg_sz: 20,
    bad_pkey_cntr: 24,
    qkey_viol_cntr: 28,
    pkey_tbl_len: 32,
    lid: 34,
    sm_lid: 36,
    lmc: 38,
    max_vl_num: 39,
    sm_sl: 40,
    subnet_timeout: 41,
    init_type_reply: 42,
    active_width: 43,
    active_speed: 44,
    phys_state: 45,
    link_layer: 46,
    flags: 47,
    port_cap_flags2: 48,
    padding as "": 50,
    active_speed_ex: 52,
});

/// `struct ibv_async_event`. Its element is a pointer or an `int`.
#[derive(Debug)]
#[repr(C)]
pub struct AsyncEvent {
    pub(crate) element: AsyncEventElement,
    pub(crate) event_type: c_uint,
}

/// The union in [`AsyncEvent`].
#[derive(Clone, Copy)]
#[repr(C)]
pub union AsyncEventElement {
    pub(crate) object: *mut c_void,
    pub(crate) port_num: c_int,
}

impl core::fmt::Debug for AsyncEventElement {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("AsyncEventElement")
    }
}

layout!("struct ibv_async_event", AsyncEvent, size [16, 8, 8], align [8, 4, 4], {
    element: 0,
    event_type: [8, 4, 4],
});
