//! Driver numbers, and what each driver reads and answers when a ucontext is made.
//!
//! Kernel headers `rdma/ib_user_ioctl_verbs.h` (the numbers) and `rdma/<driver>-abi.h` (the
//! structures: `mlx5-abi.h`, `cxgb4-abi.h` and so on). A request is sent in
//! [`ATTR_UHW_IN`](crate::ioctl::ATTR_UHW_IN) and answered in
//! [`ATTR_UHW_OUT`](crate::ioctl::ATTR_UHW_OUT) of
//! [`GET_CONTEXT`](crate::device::method::GET_CONTEXT).
//!
//! A structure that grew is here in its longest form. Its documentation says where older forms ended. The
//! drivers rxe, usnic, hfi1 and qib read nothing and answer nothing.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Values of [`IoctlHeader::driver_id`](crate::ioctl::IoctlHeader::driver_id).
pub mod driver_id {
    /// No driver has this number.
    pub const UNKNOWN: u32 = 0;
    /// NVIDIA (Mellanox) `Connect-IB`, `ConnectX-4` and later.
    pub const MLX5: u32 = 1;
    /// NVIDIA (Mellanox) `ConnectX` up to `ConnectX-3`.
    pub const MLX4: u32 = 2;
    /// Chelsio T3; left the kernel, the number stays.
    pub const CXGB3: u32 = 3;
    /// Chelsio T4 and later.
    pub const CXGB4: u32 = 4;
    /// Mellanox `InfiniHost`.
    pub const MTHCA: u32 = 5;
    /// Broadcom `NetXtreme-C` and -E.
    pub const BNXT_RE: u32 = 6;
    /// Emulex `OneConnect`.
    pub const OCRDMA: u32 = 7;
    /// Intel `NetEffect`; left the kernel, the number stays.
    pub const NES: u32 = 8;
    /// Intel, from the X722 on; the earlier driver i40iw had the same number.
    pub const IRDMA: u32 = 9;
    /// Paravirtual RDMA of `VMware`.
    pub const VMW_PVRDMA: u32 = 10;
    /// Marvell (`QLogic`) `FastLinQ`.
    pub const QEDR: u32 = 11;
    /// Huawei Hip08 and later.
    pub const HNS: u32 = 12;
    /// Cisco usNIC.
    pub const USNIC: u32 = 13;
    /// RoCE in software.
    pub const RXE: u32 = 14;
    /// Intel Omni-Path (Cornelis).
    pub const HFI1: u32 = 15;
    /// Intel `TrueScale`; left the kernel after 6.12, the number stays.
    pub const QIB: u32 = 16;
    /// Amazon Elastic Fabric Adapter, since 5.2.
    pub const EFA: u32 = 17;
    /// iWARP in software, since 5.3.
    pub const SIW: u32 = 18;
    /// Alibaba Elastic RDMA, since 6.0.
    pub const ERDMA: u32 = 19;
    /// Microsoft Azure Network Adapter, since 6.2.
    pub const MANA: u32 = 20;
    /// AMD Pensando, since 6.18.
    pub const IONIC: u32 = 21;
}

/// Constants of the driver mlx5.
pub mod mlx5 {
    /// In [`flags`](super::Mlx5AllocUcontextRequest::flags): this ucontext may send firmware
    /// commands of its own.
    pub const DEVX: u32 = 1 << 0;
    /// In [`lib_caps`](super::Mlx5AllocUcontextRequest::lib_caps): the caller knows doorbell pages
    /// of 4 KiB within larger memory pages.
    pub const LIB_CAP_4K_UAR: u64 = 1 << 0;
    /// In [`lib_caps`](super::Mlx5AllocUcontextRequest::lib_caps): the caller asks for doorbell
    /// pages as it needs them, so allocate none now. Since 5.7.
    pub const LIB_CAP_DYN_UAR: u64 = 1 << 1;
    /// Version of the driver's ABI, as sysfs `abi_version` says it.
    pub const ABI_VERSION: u32 = 1;
}

/// What mlx5 is asked for. C name `struct mlx5_ib_alloc_ucontext_req_v2`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
#[repr(C, align(8))]
pub struct Mlx5AllocUcontextRequest {
    /// Doorbell registers to allocate; at least 1 without [`mlx5::LIB_CAP_DYN_UAR`].
    pub total_num_bfregs: u32,
    /// How many of them for low latency, fewer than all.
    pub num_low_latency_bfregs: u32,
    /// [`mlx5::DEVX`] or 0; other bits are `EOPNOTSUPP`.
    pub flags: u32,
    /// Zero, else `EOPNOTSUPP`.
    pub comp_mask: u32,
    /// Highest format of completion queue entries that the caller knows.
    pub max_cqe_version: u8,
    /// Zero.
    pub reserved0: u8,
    /// Zero.
    pub reserved1: u16,
    /// Zero.
    pub reserved2: u32,
    /// [`mlx5::LIB_CAP_4K_UAR`] and [`mlx5::LIB_CAP_DYN_UAR`].
    pub lib_caps: u64,
}

layout!(Mlx5AllocUcontextRequest, size 32, align 8, {
    total_num_bfregs: 0,
    num_low_latency_bfregs: 4,
    flags: 8,
    comp_mask: 12,
    max_cqe_version: 16,
    reserved0: 17,
    reserved1: 18,
    reserved2: 20,
    lib_caps: 24,
});

/// What mlx5 answers. C name `struct mlx5_ib_alloc_ucontext_resp`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
#[repr(C, align(8))]
pub struct Mlx5AllocUcontextResponse {
    /// Queue pairs.
    pub qp_tab_size: u32,
    /// Bytes of a doorbell register.
    pub bf_reg_size: u32,
    /// Doorbell registers allocated.
    pub tot_bfregs: u32,
    /// Bytes of a cache line.
    pub cache_line_size: u32,
    /// Longest send descriptor, in bytes.
    pub max_sq_desc_sz: u16,
    /// Longest receive descriptor, in bytes.
    pub max_rq_desc_sz: u16,
    /// Basic blocks of a send queue.
    pub max_send_wqebb: u32,
    /// Work requests of a receive queue.
    pub max_recv_wr: u32,
    /// Work requests of a shared receive queue.
    pub max_srq_recv_wr: u32,
    /// Ports.
    pub num_ports: u16,
    /// Which `IPsec` offloads flow steering has.
    pub flow_action_flags: u16,
    /// Which of the optional fields hold something.
    pub comp_mask: u32,
    /// How many bytes of this the kernel filled.
    pub response_length: u32,
    /// Format of completion queue entries.
    pub cqe_version: u8,
    /// Which write commands take data for the driver.
    pub cmds_supp_uhw: u8,
    /// Bytes of a packet's head that a send must hold inline, as a code.
    pub eth_min_inline: u8,
    /// Versions of the shared clock page.
    pub clock_info_versions: u8,
    /// Where in its page the clock is.
    pub hca_core_clock_offset: u64,
    /// Bytes of a doorbell page, as a power of two.
    pub log_uar_size: u32,
    /// Doorbell pages in a memory page.
    pub num_uars_per_page: u32,
    /// Doorbell registers that can be had later.
    pub num_dyn_bfregs: u32,
    /// Memory key whose reads and writes go nowhere.
    pub dump_fill_mkey: u32,
}

layout!(Mlx5AllocUcontextResponse, size 72, align 8, {
    qp_tab_size: 0,
    bf_reg_size: 4,
    tot_bfregs: 8,
    cache_line_size: 12,
    max_sq_desc_sz: 16,
    max_rq_desc_sz: 18,
    max_send_wqebb: 20,
    max_recv_wr: 24,
    max_srq_recv_wr: 28,
    num_ports: 32,
    flow_action_flags: 34,
    comp_mask: 36,
    response_length: 40,
    cqe_version: 44,
    cmds_supp_uhw: 45,
    eth_min_inline: 46,
    clock_info_versions: 47,
    hca_core_clock_offset: 48,
    log_uar_size: 56,
    num_uars_per_page: 60,
    num_dyn_bfregs: 64,
    dump_fill_mkey: 68,
});

/// What mlx5 adds to the answer of `EX_QUERY_DEVICE`; the kernel writes as much as there is room for.
/// Ended before `reg_c0` (104 bytes) up to 6.12. C name `struct mlx5_ib_query_device_resp`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
#[repr(C, align(8))]
pub struct Mlx5QueryDeviceResponse {
    /// Zero.
    pub comp_mask: u32,
    /// How many bytes of this the kernel filled.
    pub response_length: u32,
    /// Segmentation.
    pub tso_caps: TsoCaps,
    /// Receive side scaling.
    pub rss_caps: RssHash,
    /// Compressed completions: how many in one.
    pub cqe_comp_max_num: u32,
    /// Compressed completions: formats.
    pub cqe_comp_supported_format: u32,
    /// Rate limits of queue pairs.
    pub packet_pacing_caps: PacketPacingCaps,
    /// Several packets in one send request.
    pub multi_pkt_send_wqes: u32,
    /// Bits.
    pub flags: u32,
    /// Parsing by software: offloads.
    pub sw_parsing_offloads: u32,
    /// Parsing by software: types of queue pairs, a bit each.
    pub sw_parsing_supported_qpts: u32,
    /// Striding receive queues: least bytes of a stride, as a power of two.
    pub min_single_stride_log_num_of_bytes: u32,
    /// The most.
    pub max_single_stride_log_num_of_bytes: u32,
    /// Striding receive queues: least strides of a request, as a power of two.
    pub min_single_wqe_log_num_of_strides: u32,
    /// The most.
    pub max_single_wqe_log_num_of_strides: u32,
    /// Striding receive queues: types of queue pairs, a bit each.
    pub striding_rq_supported_qpts: u32,
    /// Zero.
    pub reserved_rq: u32,
    /// Bits: which tunnels.
    pub tunnel_offloads_caps: u32,
    /// Streams of dynamically connected initiators: how many, as a power of two.
    pub dci_streams_max_log_num_concurrent: u8,
    /// How many of them in error.
    pub dci_streams_max_log_num_errored: u8,
    /// Zero.
    pub reserved: u16,
    /// Register C0: value of the function.
    pub reg_c0_value: u32,
    /// The bits of it that count.
    pub reg_c0_mask: u32,
}

layout!(Mlx5QueryDeviceResponse, size 112, align 8, {
    comp_mask: 0,
    response_length: 4,
    tso_caps: 8,
    rss_caps: 16,
    cqe_comp_max_num: 32,
    cqe_comp_supported_format: 36,
    packet_pacing_caps: 40,
    multi_pkt_send_wqes: 56,
    flags: 60,
    sw_parsing_offloads: 64,
    sw_parsing_supported_qpts: 68,
    min_single_stride_log_num_of_bytes: 72,
    max_single_stride_log_num_of_bytes: 76,
    min_single_wqe_log_num_of_strides: 80,
    max_single_wqe_log_num_of_strides: 84,
    striding_rq_supported_qpts: 88,
    reserved_rq: 92,
    tunnel_offloads_caps: 96,
    dci_streams_max_log_num_concurrent: 100,
    dci_streams_max_log_num_errored: 101,
    reserved: 102,
    reg_c0_value: 104,
    reg_c0_mask: 108,
});

/// What mlx4 adds to the answer of `EX_QUERY_DEVICE`. C name
/// `struct mlx4_uverbs_ex_query_device_resp`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
#[repr(C, align(8))]
pub struct Mlx4QueryDeviceResponse {
    /// Which of the optional fields hold something.
    pub comp_mask: u32,
    /// How many bytes of this the kernel filled.
    pub response_length: u32,
    /// Where in its page the clock is.
    pub hca_core_clock_offset: u64,
    /// Longest receive that is written into the work request.
    pub max_inl_recv_sz: u32,
    /// Zero.
    pub reserved: u32,
    /// Receive side scaling.
    pub rss_caps: RssHash,
    /// Segmentation.
    pub tso_caps: TsoCaps,
}

layout!(Mlx4QueryDeviceResponse, size 48, align 8, {
    comp_mask: 0,
    response_length: 4,
    hca_core_clock_offset: 8,
    max_inl_recv_sz: 16,
    reserved: 20,
    rss_caps: 24,
    tso_caps: 40,
});

/// Segmentation by the device. C names `struct mlx5_ib_tso_caps`, `struct mlx4_ib_tso_caps`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
#[repr(C)]
pub struct TsoCaps {
    /// Most bytes that are cut into packets.
    pub max_tso: u32,
    /// For which types of queue pairs, a bit each.
    pub supported_qpts: u32,
}

layout!(TsoCaps, size 8, align 4, { max_tso: 0, supported_qpts: 4 });

/// Hashing for receive side scaling. C names `struct mlx5_ib_rss_caps`, `struct mlx4_ib_rss_caps`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
#[repr(C, align(8))]
pub struct RssHash {
    /// Which fields of packets may be hashed.
    pub rx_hash_fields_mask: u64,
    /// By which functions.
    pub rx_hash_function: u8,
    /// Zero.
    pub reserved: [u8; 7],
}

layout!(RssHash, size 16, align 8, {
    rx_hash_fields_mask: 0,
    rx_hash_function: 8,
    reserved: 9,
});

/// Rate limits of queue pairs; `bnxt_re` has the same and nothing else. C names
/// `struct mlx5_packet_pacing_caps`, and in 7.x `struct bnxt_re_packet_pacing_caps` without flags.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
#[repr(C)]
pub struct PacketPacingCaps {
    /// The least, in kbit/s.
    pub qp_rate_limit_min: u32,
    /// The most, in kbit/s.
    pub qp_rate_limit_max: u32,
    /// For which types of queue pairs, a bit each.
    pub supported_qpts: u32,
    /// Bits; mlx5 only.
    pub cap_flags: u8,
    /// Zero.
    pub reserved: [u8; 3],
}

layout!(PacketPacingCaps, size 16, align 4, {
    qp_rate_limit_min: 0,
    qp_rate_limit_max: 4,
    supported_qpts: 8,
    cap_flags: 12,
    reserved: 13,
});

/// What mlx4 answers with ABI version 4. C name `struct mlx4_ib_alloc_ucontext_resp`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
#[repr(C)]
pub struct Mlx4AllocUcontextResponse {
    /// Capability bits.
    pub dev_caps: u32,
    /// Queue pairs.
    pub qp_tab_size: u32,
    /// Bytes of a `BlueFlame` register.
    pub bf_reg_size: u16,
    /// `BlueFlame` registers in a page.
    pub bf_regs_per_page: u16,
    /// Bytes of a completion queue entry.
    pub cqe_size: u32,
}

layout!(Mlx4AllocUcontextResponse, size 16, align 4, {
    dev_caps: 0,
    qp_tab_size: 4,
    bf_reg_size: 8,
    bf_regs_per_page: 10,
    cqe_size: 12,
});

/// What mlx4 answers with ABI version 3. C name `struct mlx4_ib_alloc_ucontext_resp_v3`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
#[repr(C)]
pub struct Mlx4AllocUcontextResponseV3 {
    /// Queue pairs.
    pub qp_tab_size: u32,
    /// Bytes of a `BlueFlame` register.
    pub bf_reg_size: u16,
    /// `BlueFlame` registers in a page.
    pub bf_regs_per_page: u16,
}

layout!(Mlx4AllocUcontextResponseV3, size 8, align 4, {
    qp_tab_size: 0,
    bf_reg_size: 4,
    bf_regs_per_page: 6,
});

/// What cxgb4 answers. Room for less than 12 bytes of it switches the status page off for the whole
/// device. C name `struct c4iw_alloc_ucontext_resp`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
#[repr(C, align(8))]
pub struct Cxgb4AllocUcontextResponse {
    /// Offset at which the status page can be mapped.
    pub status_page_key: u64,
    /// Bytes of the status page.
    pub status_page_size: u32,
    /// Zero.
    pub reserved: u32,
}

layout!(Cxgb4AllocUcontextResponse, size 16, align 8, {
    status_page_key: 0,
    status_page_size: 8,
    reserved: 12,
});

/// What mthca answers. C name `struct mthca_alloc_ucontext_resp`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
#[repr(C)]
pub struct MthcaAllocUcontextResponse {
    /// Queue pairs.
    pub qp_tab_size: u32,
    /// Bytes of the context of a doorbell page.
    pub uarc_size: u32,
}

layout!(MthcaAllocUcontextResponse, size 8, align 4, { qp_tab_size: 0, uarc_size: 4 });

/// Constants of the driver `bnxt_re`.
pub mod bnxt_re {
    /// In [`comp_mask`](super::BnxtReAllocUcontextRequest::comp_mask): the caller can do without
    /// queues rounded up to a power of two. In 6.12, not in 6.1.
    pub const POW2_SUPPORT: u64 = 1 << 0;
    /// In [`comp_mask`](super::BnxtReAllocUcontextRequest::comp_mask): the caller can build work
    /// queue entries of differing length. In 6.12, not in 6.1.
    pub const VAR_WQE_SUPPORT: u64 = 1 << 1;
    /// Version of the driver's ABI.
    pub const ABI_VERSION: u32 = 1;
}

/// What `bnxt_re` may be asked for: nothing, or this. In 6.12, not in 6.1. C name
/// `struct bnxt_re_uctx_req`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
#[repr(C, align(8))]
pub struct BnxtReAllocUcontextRequest {
    /// Bits of [`bnxt_re`]; unknown ones are `EOPNOTSUPP` from 7.2 at the latest.
    pub comp_mask: u64,
}

layout!(BnxtReAllocUcontextRequest, size 8, align 8, { comp_mask: 0 });

/// What `bnxt_re` answers. Ended after `chip_id1` (40 bytes) in 5.10. C name
/// `struct bnxt_re_uctx_resp`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
#[repr(C, align(8))]
pub struct BnxtReAllocUcontextResponse {
    /// Number of the device.
    pub dev_id: u32,
    /// Queue pairs.
    pub max_qp: u32,
    /// Bytes of a page.
    pub pg_size: u32,
    /// Bytes of a completion queue entry.
    pub cqe_sz: u32,
    /// Entries of a completion queue.
    pub max_cqd: u32,
    /// Zero.
    pub reserved: u32,
    /// Which of the further fields and features are there.
    pub comp_mask: u64,
    /// Chip number, revision and metal.
    pub chip_id0: u32,
    /// Rest of the chip's number.
    pub chip_id1: u32,
    /// Whether work queue entries have a fixed length.
    pub mode: u32,
    /// Zero.
    pub reserved1: u32,
}

layout!(BnxtReAllocUcontextResponse, size 48, align 8, {
    dev_id: 0,
    max_qp: 4,
    pg_size: 8,
    cqe_sz: 12,
    max_cqd: 16,
    reserved: 20,
    comp_mask: 24,
    chip_id0: 32,
    chip_id1: 36,
    mode: 40,
    reserved1: 44,
});

/// What ocrdma answers. C name `struct ocrdma_alloc_ucontext_resp`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
#[repr(C, align(8))]
pub struct OcrdmaAllocUcontextResponse {
    /// Number of the device.
    pub dev_id: u32,
    /// Bytes of a send queue entry.
    pub wqe_size: u32,
    /// Bytes that a send can hold inline.
    pub max_inline_data: u32,
    /// Bytes of an entry that is pushed straight to the device.
    pub dpp_wqe_size: u32,
    /// Offset at which the table of address handles can be mapped.
    pub ah_tbl_page: u64,
    /// Bytes of that table.
    pub ah_tbl_len: u32,
    /// Bytes of a receive queue entry.
    pub rqe_size: u32,
    /// Firmware version, as text.
    pub fw_ver: [u8; 32],
    /// Zero.
    pub reserved1: u64,
    /// Zero.
    pub reserved2: u64,
}

layout!(OcrdmaAllocUcontextResponse, size 80, align 8, {
    dev_id: 0,
    wqe_size: 4,
    max_inline_data: 8,
    dpp_wqe_size: 12,
    ah_tbl_page: 16,
    ah_tbl_len: 24,
    rqe_size: 28,
    fw_ver: 32,
    reserved1: 64,
    reserved2: 72,
});

/// Constants of the driver irdma.
pub mod irdma {
    /// Highest [`userspace_ver`](super::IrdmaAllocUcontextRequest::userspace_ver).
    pub const ABI_VERSION: u8 = 5;
    /// In a `comp_mask`: raw attributes of the hardware are wanted or given. In 6.1, not in 5.10.
    pub const USE_RAW_ATTR: u64 = 1 << 0;
    /// In the answer's `comp_mask`: `min_hw_wq_size` is filled. In 6.12, not in 6.1.
    pub const MIN_HW_WQ_SIZE: u64 = 1 << 1;
    /// In the answer's `comp_mask`: `max_hw_srq_quanta` is filled. In 7.2, not in 6.12.
    pub const MAX_HW_SRQ_QUANTA: u64 = 1 << 2;
    /// In a `comp_mask`: the second format of work queue entries is known; hardware of the third
    /// generation requires it. In 7.2, not in 6.12.
    pub const WQE_FORMAT_V2: u64 = 1 << 3;
}

/// What irdma is asked for, since 5.14. C name `struct irdma_alloc_ucontext_req`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
#[repr(C, align(8))]
pub struct IrdmaAllocUcontextRequest {
    /// Zero.
    pub reserved: u32,
    /// 4 or 5, see [`irdma::ABI_VERSION`]; else `EINVAL`.
    pub userspace_ver: u8,
    /// Zero.
    pub reserved2: [u8; 3],
    /// [`irdma::USE_RAW_ATTR`] and [`irdma::WQE_FORMAT_V2`]; others are `EOPNOTSUPP`.
    pub comp_mask: u64,
}

layout!(IrdmaAllocUcontextRequest, size 16, align 8, {
    reserved: 0,
    userspace_ver: 4,
    reserved2: 5,
    comp_mask: 8,
});

/// What irdma answers, since 5.14. Room for exactly 16 bytes of it means a caller of the first
/// generation, which later hardware refuses. Ended after `comp_mask` (72 bytes) in 6.1. C name
/// `struct irdma_alloc_ucontext_resp`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
#[repr(C, align(8))]
pub struct IrdmaAllocUcontextResponse {
    /// Protection domains.
    pub max_pds: u32,
    /// Queue pairs.
    pub max_qps: u32,
    /// Bytes of the send and receive queue in the mapped area.
    pub wq_size: u32,
    /// Version of the driver's ABI.
    pub kernel_ver: u8,
    /// Zero.
    pub reserved: [u8; 3],
    /// Capability bits.
    pub feature_flags: u64,
    /// Offset at which the doorbell can be mapped.
    pub db_mmap_key: u64,
    /// Scatter/gather elements of a send.
    pub max_hw_wq_frags: u32,
    /// Scatter/gather elements of an RDMA read.
    pub max_hw_read_sges: u32,
    /// Bytes that a send can hold inline.
    pub max_hw_inline: u32,
    /// Units of a receive queue.
    pub max_hw_rq_quanta: u32,
    /// Units of a send queue.
    pub max_hw_wq_quanta: u32,
    /// Fewest entries of a completion queue.
    pub min_hw_cq_size: u32,
    /// Most entries of a completion queue.
    pub max_hw_cq_size: u32,
    /// Units of a send queue that are fetched at once.
    pub max_hw_sq_chunk: u16,
    /// Generation of the hardware.
    pub hw_rev: u8,
    /// Zero.
    pub reserved2: u8,
    /// Which of the further fields and features are there.
    pub comp_mask: u64,
    /// Fewest entries of a work queue. In 6.12, not in 6.1.
    pub min_hw_wq_size: u16,
    /// Zero.
    pub reserved3: [u8; 2],
    /// Units of a shared receive queue. In 7.2, not in 6.12.
    pub max_hw_srq_quanta: u32,
}

layout!(IrdmaAllocUcontextResponse, size 80, align 8, {
    max_pds: 0,
    max_qps: 4,
    wq_size: 8,
    kernel_ver: 12,
    reserved: 13,
    feature_flags: 16,
    db_mmap_key: 24,
    max_hw_wq_frags: 32,
    max_hw_read_sges: 36,
    max_hw_inline: 40,
    max_hw_rq_quanta: 44,
    max_hw_wq_quanta: 48,
    min_hw_cq_size: 52,
    max_hw_cq_size: 56,
    max_hw_sq_chunk: 60,
    hw_rev: 62,
    reserved2: 63,
    comp_mask: 64,
    min_hw_wq_size: 72,
    reserved3: 74,
    max_hw_srq_quanta: 76,
});

/// What `vmw_pvrdma` answers. C name `struct pvrdma_alloc_ucontext_resp`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
#[repr(C)]
pub struct VmwPvrdmaAllocUcontextResponse {
    /// Queue pairs.
    pub qp_tab_size: u32,
    /// Zero.
    pub reserved: u32,
}

layout!(VmwPvrdmaAllocUcontextResponse, size 8, align 4, { qp_tab_size: 0, reserved: 4 });

/// What qedr may be asked for: nothing, or this. C name `struct qedr_alloc_ucontext_req`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
#[repr(C)]
pub struct QedrAllocUcontextRequest {
    /// Which doorbell features the caller knows.
    pub context_flags: u32,
    /// Zero.
    pub reserved: u32,
}

layout!(QedrAllocUcontextRequest, size 8, align 4, { context_flags: 0, reserved: 4 });

/// What qedr answers. C name `struct qedr_alloc_ucontext_resp`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
#[repr(C, align(8))]
pub struct QedrAllocUcontextResponse {
    /// Offset at which the doorbell can be mapped.
    pub db_pa: u64,
    /// Bytes of the doorbell.
    pub db_size: u32,
    /// Work requests of a send queue.
    pub max_send_wr: u32,
    /// Work requests of a receive queue.
    pub max_recv_wr: u32,
    /// Work requests of a shared receive queue.
    pub max_srq_wr: u32,
    /// Scatter/gather elements of a send.
    pub sges_per_send_wr: u32,
    /// Scatter/gather elements of a receive.
    pub sges_per_recv_wr: u32,
    /// Scatter/gather elements in a shared receive queue.
    pub sges_per_srq_wr: u32,
    /// Entries of a completion queue.
    pub max_cqes: u32,
    /// Which direct pushes are there.
    pub dpm_flags: u8,
    /// Whether doorbell windows have numbers.
    pub wids_enabled: u8,
    /// How many such numbers.
    pub wid_count: u16,
    /// Longest direct push, older kind, in bytes.
    pub ldpm_limit_size: u16,
    /// Unit of a direct push.
    pub edpm_trans_size: u8,
    /// Zero.
    pub reserved: u8,
    /// Longest direct push, in bytes.
    pub edpm_limit_size: u16,
    /// Zero.
    pub reserved2: [u8; 6],
}

layout!(QedrAllocUcontextResponse, size 56, align 8, {
    db_pa: 0,
    db_size: 8,
    max_send_wr: 12,
    max_recv_wr: 16,
    max_srq_wr: 20,
    sges_per_send_wr: 24,
    sges_per_recv_wr: 28,
    sges_per_srq_wr: 32,
    max_cqes: 36,
    dpm_flags: 40,
    wids_enabled: 41,
    wid_count: 42,
    ldpm_limit_size: 44,
    edpm_trans_size: 46,
    reserved: 47,
    edpm_limit_size: 48,
    reserved2: 50,
});

/// What hns is asked for; must be sent from 7.2 at the latest. C name
/// `struct hns_roce_ib_alloc_ucontext`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
#[repr(C)]
pub struct HnsAllocUcontextRequest {
    /// Features that the caller knows.
    pub config: u32,
    /// Zero.
    pub reserved: u32,
}

layout!(HnsAllocUcontextRequest, size 8, align 4, { config: 0, reserved: 4 });

/// What hns answers. Ended after `cqe_size` (8 bytes) in 5.10 and after `max_inline_data` (24
/// bytes) in 6.1. C name `struct hns_roce_ib_alloc_ucontext_resp`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
#[repr(C)]
pub struct HnsAllocUcontextResponse {
    /// Queue pairs.
    pub qp_tab_size: u32,
    /// Bytes of a completion queue entry.
    pub cqe_size: u32,
    /// Shared receive queues.
    pub srq_tab_size: u32,
    /// Zero.
    pub reserved: u32,
    /// Features that both sides have.
    pub config: u32,
    /// Bytes that a send can hold inline.
    pub max_inline_data: u32,
    /// Congestion controls, a bit each. In 6.12, not in 6.1.
    pub congest_type: u8,
    /// Zero.
    pub reserved0: [u8; 7],
}

layout!(HnsAllocUcontextResponse, size 32, align 4, {
    qp_tab_size: 0,
    cqe_size: 4,
    srq_tab_size: 8,
    reserved: 12,
    config: 16,
    max_inline_data: 20,
    congest_type: 24,
    reserved0: 25,
});

/// Constants of the driver efa.
pub mod efa {
    /// In [`supported_caps`](super::EfaAllocUcontextRequest::supported_caps): the caller obeys
    /// `max_tx_batch`. Required where the device has that limit.
    pub const TX_BATCH: u32 = 1 << 0;
    /// In [`supported_caps`](super::EfaAllocUcontextRequest::supported_caps): the caller obeys
    /// `min_sq_wr`. Required where the device has that limit.
    pub const MIN_SQ_WR: u32 = 1 << 1;
}

/// What efa is asked for. C name `struct efa_ibv_alloc_ucontext_cmd`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
#[repr(C)]
pub struct EfaAllocUcontextRequest {
    /// Bits of [`efa`]; the header called it `comp_mask` up to 6.12 at least.
    pub supported_caps: u32,
    /// Zero.
    pub reserved: [u8; 4],
}

layout!(EfaAllocUcontextRequest, size 8, align 4, { supported_caps: 0, reserved: 4 });

/// What efa answers. C name `struct efa_ibv_alloc_ucontext_resp`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
#[repr(C)]
pub struct EfaAllocUcontextResponse {
    /// Zero.
    pub comp_mask: u32,
    /// Which write commands take data for the driver.
    pub cmds_supp_udata_mask: u32,
    /// Parts of a completion queue.
    pub sub_cqs_per_cq: u16,
    /// Bytes that a send can hold inline.
    pub inline_buf_size: u16,
    /// Bytes of a queue on the device.
    pub max_llq_size: u32,
    /// Most bytes for one doorbell, in units of 64.
    pub max_tx_batch: u16,
    /// Fewest work requests of a send queue.
    pub min_sq_wr: u16,
    /// Bytes that a send with the larger entries can hold inline. In 7.2, not in 6.12; zero before.
    pub inline_buf_size_ex: u16,
    /// Zero.
    pub reserved: [u8; 2],
}

layout!(EfaAllocUcontextResponse, size 24, align 4, {
    comp_mask: 0,
    cmds_supp_udata_mask: 4,
    sub_cqs_per_cq: 8,
    inline_buf_size: 10,
    max_llq_size: 12,
    max_tx_batch: 16,
    min_sq_wr: 18,
    inline_buf_size_ex: 20,
    reserved: 22,
});

/// What siw answers; room for less is `EINVAL`. C name `struct siw_uresp_alloc_ctx`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
#[repr(C)]
pub struct SiwAllocUcontextResponse {
    /// Number of the device.
    pub dev_id: u32,
    /// Zero.
    pub reserved: u32,
}

layout!(SiwAllocUcontextResponse, size 8, align 4, { dev_id: 0, reserved: 4 });

/// What erdma answers, since 6.0; room for less is `EINVAL`. C name `struct erdma_uresp_alloc_ctx`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
#[repr(C, align(8))]
pub struct ErdmaAllocUcontextResponse {
    /// Number of the device.
    pub dev_id: u32,
    /// Zero.
    pub reserved: u32,
    /// Kind of the send doorbell.
    pub sdb_type: u32,
    /// Where in its page the send doorbell is.
    pub sdb_offset: u32,
    /// Offset at which the send doorbell can be mapped.
    pub sdb: u64,
    /// Offset at which the receive doorbell can be mapped.
    pub rdb: u64,
    /// Offset at which the completion doorbell can be mapped.
    pub cdb: u64,
}

layout!(ErdmaAllocUcontextResponse, size 40, align 8, {
    dev_id: 0,
    reserved: 4,
    sdb_type: 8,
    sdb_offset: 12,
    sdb: 16,
    rdb: 24,
    cdb: 32,
});

/// What mana answers, since 7.3. C name `struct mana_ib_alloc_ucontext_resp`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
#[repr(C, align(8))]
pub struct ManaAllocUcontextResponse {
    /// Which features are there.
    pub comp_mask: u64,
}

layout!(ManaAllocUcontextResponse, size 8, align 8, { comp_mask: 0 });

/// What ionic is asked for, since 6.18. C name `struct ionic_ctx_req`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
#[repr(C)]
pub struct IonicAllocUcontextRequest {
    /// Zero.
    pub reserved: [u32; 2],
}

layout!(IonicAllocUcontextRequest, size 8, align 4, { reserved: 0 });

/// What ionic answers, since 6.18. Ended after `reserved2` (32 bytes) in 7.2. C name
/// `struct ionic_ctx_resp`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
#[repr(C, align(8))]
pub struct IonicAllocUcontextResponse {
    /// Zero.
    pub reserved: u32,
    /// Bytes of a page, as a power of two.
    pub page_shift: u32,
    /// Offset at which the doorbell can be mapped.
    pub dbell_offset: u64,
    /// Version of the device's interface.
    pub version: u16,
    /// Operations of a queue pair.
    pub qp_opcodes: u8,
    /// Operations of the admin queue.
    pub admin_opcodes: u8,
    /// Doorbell number of send queues.
    pub sq_qtype: u8,
    /// Doorbell number of receive queues.
    pub rq_qtype: u8,
    /// Doorbell number of completion queues.
    pub cq_qtype: u8,
    /// Doorbell number of admin queues.
    pub admin_qtype: u8,
    /// Longest work queue entry, as a power of two.
    pub max_stride: u8,
    /// Scatter/gather elements in the quick format.
    pub max_spec: u8,
    /// Engines of the device.
    pub udma_count: u8,
    /// Sizes of entry that can go with the doorbell.
    pub expdb_mask: u8,
    /// Queues whose entries can go with the doorbell.
    pub expdb_qtypes: u8,
    /// Zero.
    pub reserved2: [u8; 3],
    /// Offset at which the page of the hardware clock can be mapped. Since 7.3.
    pub phc_offset: u64,
}

layout!(IonicAllocUcontextResponse, size 40, align 8, {
    reserved: 0,
    page_shift: 4,
    dbell_offset: 8,
    version: 16,
    qp_opcodes: 18,
    admin_opcodes: 19,
    sq_qtype: 20,
    rq_qtype: 21,
    cq_qtype: 22,
    admin_qtype: 23,
    max_stride: 24,
    max_spec: 25,
    udma_count: 26,
    expdb_mask: 27,
    expdb_qtypes: 28,
    reserved2: 29,
    phc_offset: 32,
});
