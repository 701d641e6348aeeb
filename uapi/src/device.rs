//! The `DEVICE` object: objects, methods, the attributes of its methods, and the structures of its
//! answers.
//!
//! Kernel headers `rdma/ib_user_ioctl_cmds.h` (ids), `rdma/ib_user_ioctl_verbs.h` (structures of
//! the ioctl), `rdma/ib_user_verbs.h` (structures of the older write commands, which
//! [`method::INVOKE_WRITE`] still runs) and `rdma/rdma_netlink.h` (node types). The states, sizes
//! and speeds of a port are not in any header for user space: they follow the InfiniBand
//! specification, and the kernel keeps them in its own `rdma/ib_verbs.h`.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Objects that a request can name.
pub mod object {
    /// The device itself; has no instances.
    pub const DEVICE: u16 = 0;
    /// Protection domain.
    pub const PD: u16 = 1;
    /// Completion channel.
    pub const COMP_CHANNEL: u16 = 2;
    /// Completion queue.
    pub const CQ: u16 = 3;
    /// Queue pair.
    pub const QP: u16 = 4;
    /// Shared receive queue.
    pub const SRQ: u16 = 5;
    /// Address handle.
    pub const AH: u16 = 6;
    /// Memory region.
    pub const MR: u16 = 7;
    /// Memory window.
    pub const MW: u16 = 8;
    /// Flow steering rule.
    pub const FLOW: u16 = 9;
    /// XRC domain.
    pub const XRCD: u16 = 10;
    /// Indirection table of receive work queues.
    pub const RWQ_IND_TBL: u16 = 11;
    /// Work queue.
    pub const WQ: u16 = 12;
    /// Action of a flow steering rule.
    pub const FLOW_ACTION: u16 = 13;
    /// Memory on the device.
    pub const DM: u16 = 14;
    /// Set of counters.
    pub const COUNTERS: u16 = 15;
    /// Source of asynchronous events, since 5.6; see [`event`](crate::event).
    pub const ASYNC_EVENT: u16 = 16;
    /// DMA handle, in 7.2, not in 6.12.
    pub const DMAH: u16 = 17;
    /// Exported dma-buf, in 7.2, not in 6.12.
    pub const DMABUF: u16 = 18;
    /// Completion counter, since 7.3.
    pub const COMP_CNTR: u16 = 19;
}

/// Methods of [`object::DEVICE`].
pub mod method {
    /// Runs a write command, since 5.0. Attributes [`invoke_write`](super::invoke_write).
    pub const INVOKE_WRITE: u16 = 0;
    /// Lists the handles that this open file has, since 5.0. Attributes
    /// [`info_handles`](super::info_handles).
    pub const INFO_HANDLES: u16 = 1;
    /// State and limits of a port, since 5.0. Attributes [`query_port`](super::query_port).
    pub const QUERY_PORT: u16 = 2;
    /// Makes the ucontext of this open file, once, since 5.6. Attributes
    /// [`get_context`](super::get_context) and the two UHW ones with the structures in
    /// [`driver`](crate::driver).
    pub const GET_CONTEXT: u16 = 3;
    /// Reads the answer of [`GET_CONTEXT`] again, since 5.9; only the driver mlx5 has it.
    /// Attributes [`query_context`](super::query_context).
    pub const QUERY_CONTEXT: u16 = 4;
    /// All valid GIDs of all ports, since 5.10. Attributes
    /// [`query_gid_table`](super::query_gid_table).
    pub const QUERY_GID_TABLE: u16 = 5;
    /// One GID by port and index, since 5.10. Attributes
    /// [`query_gid_entry`](super::query_gid_entry).
    pub const QUERY_GID_ENTRY: u16 = 6;
    /// Effective speed of a port, since 7.0; of the drivers only mlx5 and efa have it. Attributes
    /// [`query_port_speed`](super::query_port_speed).
    pub const QUERY_PORT_SPEED: u16 = 7;
    /// What the device's completion counters can do, since 7.3. Attributes
    /// [`query_comp_cntr_caps`](super::query_comp_cntr_caps).
    pub const QUERY_COMP_CNTR_CAPS: u16 = 8;
}

/// Attributes of [`method::INVOKE_WRITE`].
pub mod invoke_write {
    /// The command's request structure, without the header that write(2) takes.
    pub const CORE_IN: u16 = 0;
    /// Room for the command's response structure.
    pub const CORE_OUT: u16 = 1;
    /// Which command, 8 bytes long: one of [`write_command`](super::write_command). Mandatory.
    pub const WRITE_CMD: u16 = 2;
}

/// Attributes of [`method::INFO_HANDLES`].
pub mod info_handles {
    /// Which [`object`](super::object)'s handles, 8 bytes long. Mandatory.
    pub const OBJECT_ID: u16 = 0;
    /// Answer, `u32`: how many handles were written to the list.
    pub const TOTAL_HANDLES: u16 = 1;
    /// Answer, `u32` each: the handles. Needed in practice.
    pub const HANDLES_LIST: u16 = 2;
}

/// Attributes of [`method::QUERY_PORT`].
pub mod query_port {
    /// Port number, 8 bytes long, at most 255. Mandatory.
    pub const PORT_NUM: u16 = 0;
    /// Answer: a [`QueryPortResponse`](super::QueryPortResponse). Mandatory.
    pub const RESP: u16 = 1;
}

/// Attributes of [`method::GET_CONTEXT`], in addition to the two for the driver.
pub mod get_context {
    /// Answer, `u32`: number of completion vectors.
    pub const NUM_COMP_VECTORS: u16 = 0;
    /// Answer, `u64`: bits of [`core_support`](super::core_support).
    pub const CORE_SUPPORT: u16 = 1;
    /// File descriptors that grant capabilities of the device (ucaps), `i32` each, since 6.15.
    pub const FD_ARR: u16 = 2;
}

/// Attributes of [`method::QUERY_CONTEXT`], in addition to those of the driver.
pub mod query_context {
    /// Answer, `u32`: number of completion vectors.
    pub const NUM_COMP_VECTORS: u16 = 0;
    /// Answer, `u64`: bits of [`core_support`](super::core_support).
    pub const CORE_SUPPORT: u16 = 1;
}

/// Attributes of [`method::QUERY_GID_TABLE`].
pub mod query_gid_table {
    /// Bytes of one entry of the caller's array, 8 bytes long: the size of a
    /// [`GidEntry`](super::GidEntry). Mandatory.
    pub const ENTRY_SIZE: u16 = 0;
    /// Flags, 4 or 8 bytes long; none is defined, so zero.
    pub const FLAGS: u16 = 1;
    /// Answer: the array of [`GidEntry`](super::GidEntry). Mandatory.
    pub const RESP_ENTRIES: u16 = 2;
    /// Answer, `u64`: how many entries were written. Mandatory.
    pub const RESP_NUM_ENTRIES: u16 = 3;
}

/// Attributes of [`method::QUERY_GID_ENTRY`].
pub mod query_gid_entry {
    /// Port number, 8 bytes long. Mandatory.
    pub const PORT: u16 = 0;
    /// Index in that port's table, 8 bytes long. Mandatory.
    pub const GID_INDEX: u16 = 1;
    /// Flags, 4 or 8 bytes long; none is defined, so zero. Mandatory, unlike in the table query.
    pub const FLAGS: u16 = 2;
    /// Answer: a [`GidEntry`](super::GidEntry). Mandatory.
    pub const RESP_ENTRY: u16 = 3;
}

/// Attributes of [`method::QUERY_PORT_SPEED`], since 7.0.
pub mod query_port_speed {
    /// Port number, 8 bytes long. Mandatory.
    pub const PORT_NUM: u16 = 0;
    /// Answer, `u64`: speed in units of 100 Mb/s. Mandatory.
    pub const RESP: u16 = 1;
}

/// Attributes of [`method::QUERY_COMP_CNTR_CAPS`], since 7.3: three answers.
pub mod query_comp_cntr_caps {
    /// How many counters there can be.
    pub const MAX_COUNTERS: u16 = 0;
    /// The highest value of a counter.
    pub const MAX_VALUE: u16 = 1;
    /// Which operations of a queue pair can be counted.
    pub const SUPPORTED_QP_ATTACH_OPS: u16 = 2;
}

/// Bits of the `CORE_SUPPORT` answer: what the kernel's core can do on this device.
pub mod core_support {
    /// Access flags of a memory region that are marked optional may be used. Always set.
    pub const OPTIONAL_MR_ACCESS: u64 = 1 << 0;
    /// The driver checks lengths and unknown bits of its own data strictly. Since 7.1.
    pub const ROBUST_UDATA: u64 = 1 << 1;
}

/// One GID of a device. C name `struct ib_uverbs_gid_entry`, since 5.10.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
#[repr(C, align(8))]
pub struct GidEntry {
    /// The GID, in network order.
    pub gid: [u8; 16],
    /// Its index in the table of its port.
    pub gid_index: u32,
    /// The port that has it.
    pub port_num: u32,
    /// One of [`gid_type`].
    pub gid_type: u32,
    /// Index of its network device, 0 if there is none. The index is valid in the network namespace of
    /// that device, which may differ from the caller's.
    pub netdev_ifindex: u32,
}

/// Bytes of a [`GidEntry`] of the first kernel that has it. No kernel takes shorter room for one, and
/// programs that were compiled for it go on asking for this size if the entry grows.
pub const GID_ENTRY_FIRST_SIZE: usize = 32;

layout!(GidEntry, size 32, align 8, {
    gid: 0,
    gid_index: 16,
    port_num: 20,
    gid_type: 24,
    netdev_ifindex: 28,
});

/// Values of [`GidEntry::gid_type`].
pub mod gid_type {
    /// InfiniBand; also the type of iWARP's and EFA's GIDs.
    pub const IB: u32 = 0;
    /// RoCE version 1: a separate Ethernet protocol.
    pub const ROCE_V1: u32 = 1;
    /// RoCE version 2: over UDP.
    pub const ROCE_V2: u32 = 2;
}

/// State and limits of a port, the answer of [`method::QUERY_PORT`]. C name
/// `struct ib_uverbs_query_port_resp_ex`, since 5.0.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
#[repr(C)]
pub struct QueryPortResponse {
    /// Capability mask of the port.
    pub port_cap_flags: u32,
    /// Longest message, in bytes.
    pub max_msg_sz: u32,
    /// Packets that came with a wrong `P_Key`.
    pub bad_pkey_cntr: u32,
    /// Packets that came with a wrong `Q_Key`.
    pub qkey_viol_cntr: u32,
    /// Slots of the GID table, empty ones too.
    pub gid_tbl_len: u32,
    /// Slots of the `P_Key` table.
    pub pkey_tbl_len: u16,
    /// Local identifier.
    pub lid: u16,
    /// Local identifier of the subnet manager.
    pub sm_lid: u16,
    /// One of [`port_state`].
    pub state: u8,
    /// Largest MTU, one of [`mtu`].
    pub max_mtu: u8,
    /// MTU in use, one of [`mtu`].
    pub active_mtu: u8,
    /// How many low bits of the LID are free to choose.
    pub lmc: u8,
    /// Code of the number of virtual lanes.
    pub max_vl_num: u8,
    /// Service level of the subnet manager.
    pub sm_sl: u8,
    /// Code of the subnet's propagation delay.
    pub subnet_timeout: u8,
    /// How far the subnet manager initialised the port.
    pub init_type_reply: u8,
    /// Lanes in use, one of [`width`].
    pub active_width: u8,
    /// Speed of a lane, one of [`speed`], no more than [`speed::NDR`].
    pub active_speed: u8,
    /// One of [`phys_state`].
    pub phys_state: u8,
    /// One of [`link_layer`].
    pub link_layer: u8,
    /// [`GRH_REQUIRED`] or 0.
    pub flags: u8,
    /// Zero.
    pub reserved: u8,
    /// Second capability mask of the port.
    pub port_cap_flags2: u16,
    /// Zero.
    pub reserved2: [u8; 2],
    /// Speed of a lane, one of [`speed`], also above [`speed::NDR`]. Since 6.7; 0 on older kernels,
    /// which have only [`active_speed`](Self::active_speed).
    pub active_speed_ex: u32,
}

layout!(QueryPortResponse, size 48, align 4, {
    port_cap_flags: 0,
    max_msg_sz: 4,
    bad_pkey_cntr: 8,
    qkey_viol_cntr: 12,
    gid_tbl_len: 16,
    pkey_tbl_len: 20,
    lid: 22,
    sm_lid: 24,
    state: 26,
    max_mtu: 27,
    active_mtu: 28,
    lmc: 29,
    max_vl_num: 30,
    sm_sl: 31,
    subnet_timeout: 32,
    init_type_reply: 33,
    active_width: 34,
    active_speed: 35,
    phys_state: 36,
    link_layer: 37,
    flags: 38,
    reserved: 39,
    port_cap_flags2: 40,
    reserved2: 42,
    active_speed_ex: 44,
});

/// Bit of [`QueryPortResponse::flags`]: packets must carry a global route header.
pub const GRH_REQUIRED: u8 = 1;

/// Bit of [`QueryPortResponse::port_cap_flags`] that the kernel uses for itself: GIDs come from IP
/// addresses (RoCE).
pub const IP_BASED_GIDS: u32 = 1 << 26;

/// Values of [`QueryPortResponse::state`].
pub mod port_state {
    /// No state.
    pub const NOP: u8 = 0;
    /// No link.
    pub const DOWN: u8 = 1;
    /// Link up, not configured by a subnet manager.
    pub const INIT: u8 = 2;
    /// Configured, carries no traffic yet.
    pub const ARMED: u8 = 3;
    /// Carries traffic.
    pub const ACTIVE: u8 = 4;
    /// Was active and the link is away for a moment.
    pub const ACTIVE_DEFER: u8 = 5;
}

/// Values of [`QueryPortResponse::phys_state`].
pub mod phys_state {
    /// Asleep.
    pub const SLEEP: u8 = 1;
    /// Looks for the other end.
    pub const POLLING: u8 = 2;
    /// Switched off.
    pub const DISABLED: u8 = 3;
    /// Trains the link.
    pub const PORT_CONFIGURATION_TRAINING: u8 = 4;
    /// Link established.
    pub const LINK_UP: u8 = 5;
    /// Recovers from link errors.
    pub const LINK_ERROR_RECOVERY: u8 = 6;
    /// Under test.
    pub const PHY_TEST: u8 = 7;
}

/// Values of [`QueryPortResponse::link_layer`].
pub mod link_layer {
    /// Neither of the two, or not said.
    pub const UNSPECIFIED: u8 = 0;
    /// InfiniBand.
    pub const INFINIBAND: u8 = 1;
    /// Ethernet.
    pub const ETHERNET: u8 = 2;
}

/// Values of [`QueryPortResponse::max_mtu`] and [`QueryPortResponse::active_mtu`].
pub mod mtu {
    /// 256 bytes.
    pub const BYTES_256: u8 = 1;
    /// 512 bytes.
    pub const BYTES_512: u8 = 2;
    /// 1024 bytes.
    pub const BYTES_1024: u8 = 3;
    /// 2048 bytes.
    pub const BYTES_2048: u8 = 4;
    /// 4096 bytes.
    pub const BYTES_4096: u8 = 5;
}

/// Values of [`QueryPortResponse::active_width`]: lanes of the link.
pub mod width {
    /// One lane.
    pub const X1: u8 = 1;
    /// Four lanes.
    pub const X4: u8 = 2;
    /// Eight lanes.
    pub const X8: u8 = 4;
    /// Twelve lanes.
    pub const X12: u8 = 8;
    /// Two lanes.
    pub const X2: u8 = 16;
}

/// Values of [`QueryPortResponse::active_speed_ex`], and up to [`speed::NDR`] of
/// [`QueryPortResponse::active_speed`]: signalling of one lane.
pub mod speed {
    /// Single data rate.
    pub const SDR: u32 = 1;
    /// Double data rate.
    pub const DDR: u32 = 2;
    /// Quad data rate.
    pub const QDR: u32 = 4;
    /// Fourteen data rate at 10 Gb/s.
    pub const FDR10: u32 = 8;
    /// Fourteen data rate.
    pub const FDR: u32 = 16;
    /// Enhanced data rate.
    pub const EDR: u32 = 32;
    /// High data rate.
    pub const HDR: u32 = 64;
    /// Next data rate.
    pub const NDR: u32 = 128;
    /// Extended data rate.
    pub const XDR: u32 = 256;
}

/// What a device is, as sysfs `node_type` and netlink's
/// [`DEV_NODE_TYPE`](crate::netlink::attribute::DEV_NODE_TYPE) say.
pub mod node_type {
    /// Channel adapter; RoCE devices too.
    pub const CA: u8 = 1;
    /// InfiniBand switch.
    pub const SWITCH: u8 = 2;
    /// InfiniBand router.
    pub const ROUTER: u8 = 3;
    /// iWARP.
    pub const RNIC: u8 = 4;
    /// usNIC with its own transport.
    pub const USNIC: u8 = 5;
    /// usNIC over UDP.
    pub const USNIC_UDP: u8 = 6;
    /// None of these, for example EFA.
    pub const UNSPECIFIED: u8 = 7;
}

/// Values of [`invoke_write::WRITE_CMD`] (8 bytes wide there).
pub mod write_command {
    /// Makes the ucontext, and an event file with it.
    pub const GET_CONTEXT: u32 = 0;
    /// Limits of the device: [`QueryDeviceResponse`](super::QueryDeviceResponse).
    pub const QUERY_DEVICE: u32 = 1;
    /// State and limits of a port: [`WriteQueryPortRequest`](super::WriteQueryPortRequest),
    /// [`WriteQueryPortResponse`](super::WriteQueryPortResponse).
    pub const QUERY_PORT: u32 = 2;
    /// Bit that marks an extended command.
    pub const EXTENDED: u32 = 0x8000_0000;
    /// Limits of the device, in full: [`ExQueryDeviceRequest`](super::ExQueryDeviceRequest),
    /// [`ExQueryDeviceResponse`](super::ExQueryDeviceResponse).
    pub const EX_QUERY_DEVICE: u32 = EXTENDED | QUERY_DEVICE;
}

const _: () = assert!(write_command::EX_QUERY_DEVICE == 0x8000_0001);

/// Request of [`write_command::QUERY_DEVICE`]. C name `struct ib_uverbs_query_device`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
#[repr(C, align(8))]
pub struct QueryDeviceRequest {
    /// Where write(2) puts the answer; the ioctl ignores it, and it must be there.
    pub response: u64,
}

layout!(QueryDeviceRequest, size 8, align 8, { response: 0 });

/// Request of [`write_command::QUERY_PORT`]. C name `struct ib_uverbs_query_port`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
#[repr(C, align(8))]
pub struct WriteQueryPortRequest {
    /// Where write(2) puts the answer; the ioctl ignores it, and it must be there.
    pub response: u64,
    /// Port number.
    pub port_num: u8,
    /// Zero.
    pub reserved: [u8; 7],
}

layout!(WriteQueryPortRequest, size 16, align 8, { response: 0, port_num: 8, reserved: 9 });

/// Answer of [`write_command::QUERY_PORT`]: the first 40 bytes of a [`QueryPortResponse`]. C name
/// `struct ib_uverbs_query_port_resp`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
#[repr(C)]
pub struct WriteQueryPortResponse {
    /// As [`QueryPortResponse::port_cap_flags`].
    pub port_cap_flags: u32,
    /// As [`QueryPortResponse::max_msg_sz`].
    pub max_msg_sz: u32,
    /// As [`QueryPortResponse::bad_pkey_cntr`].
    pub bad_pkey_cntr: u32,
    /// As [`QueryPortResponse::qkey_viol_cntr`].
    pub qkey_viol_cntr: u32,
    /// As [`QueryPortResponse::gid_tbl_len`].
    pub gid_tbl_len: u32,
    /// As [`QueryPortResponse::pkey_tbl_len`].
    pub pkey_tbl_len: u16,
    /// As [`QueryPortResponse::lid`].
    pub lid: u16,
    /// As [`QueryPortResponse::sm_lid`].
    pub sm_lid: u16,
    /// As [`QueryPortResponse::state`].
    pub state: u8,
    /// As [`QueryPortResponse::max_mtu`].
    pub max_mtu: u8,
    /// As [`QueryPortResponse::active_mtu`].
    pub active_mtu: u8,
    /// As [`QueryPortResponse::lmc`].
    pub lmc: u8,
    /// As [`QueryPortResponse::max_vl_num`].
    pub max_vl_num: u8,
    /// As [`QueryPortResponse::sm_sl`].
    pub sm_sl: u8,
    /// As [`QueryPortResponse::subnet_timeout`].
    pub subnet_timeout: u8,
    /// As [`QueryPortResponse::init_type_reply`].
    pub init_type_reply: u8,
    /// As [`QueryPortResponse::active_width`].
    pub active_width: u8,
    /// As [`QueryPortResponse::active_speed`].
    pub active_speed: u8,
    /// As [`QueryPortResponse::phys_state`].
    pub phys_state: u8,
    /// As [`QueryPortResponse::link_layer`].
    pub link_layer: u8,
    /// As [`QueryPortResponse::flags`].
    pub flags: u8,
    /// Zero.
    pub reserved: u8,
}

layout!(WriteQueryPortResponse, size 40, align 4, {
    port_cap_flags: 0,
    max_msg_sz: 4,
    bad_pkey_cntr: 8,
    qkey_viol_cntr: 12,
    gid_tbl_len: 16,
    pkey_tbl_len: 20,
    lid: 22,
    sm_lid: 24,
    state: 26,
    max_mtu: 27,
    active_mtu: 28,
    lmc: 29,
    max_vl_num: 30,
    sm_sl: 31,
    subnet_timeout: 32,
    init_type_reply: 33,
    active_width: 34,
    active_speed: 35,
    phys_state: 36,
    link_layer: 37,
    flags: 38,
    reserved: 39,
});

/// Limits of a device, the answer of [`write_command::QUERY_DEVICE`]. C name
/// `struct ib_uverbs_query_device_resp`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
#[repr(C, align(8))]
pub struct QueryDeviceResponse {
    /// Firmware version, in the driver's own packing.
    pub fw_ver: u64,
    /// Node GUID, in network order.
    pub node_guid: [u8; 8],
    /// System image GUID, in network order.
    pub sys_image_guid: [u8; 8],
    /// Longest memory region, in bytes.
    pub max_mr_size: u64,
    /// Page sizes that a memory region may use, a bit each.
    pub page_size_cap: u64,
    /// The maker's IEEE number.
    pub vendor_id: u32,
    /// The maker's number of the part.
    pub vendor_part_id: u32,
    /// Hardware revision.
    pub hw_ver: u32,
    /// Queue pairs.
    pub max_qp: u32,
    /// Work requests in a queue.
    pub max_qp_wr: u32,
    /// Capabilities, low 32 bits.
    pub device_cap_flags: u32,
    /// Scatter/gather elements of a work request.
    pub max_sge: u32,
    /// Scatter/gather elements of an RDMA read.
    pub max_sge_rd: u32,
    /// Completion queues.
    pub max_cq: u32,
    /// Entries of a completion queue.
    pub max_cqe: u32,
    /// Memory regions.
    pub max_mr: u32,
    /// Protection domains.
    pub max_pd: u32,
    /// RDMA reads and atomics in flight towards a queue pair.
    pub max_qp_rd_atom: u32,
    /// RDMA reads and atomics in flight towards an end-to-end context.
    pub max_ee_rd_atom: u32,
    /// RDMA reads and atomics in flight towards the device.
    pub max_res_rd_atom: u32,
    /// RDMA reads and atomics in flight from a queue pair.
    pub max_qp_init_rd_atom: u32,
    /// RDMA reads and atomics in flight from an end-to-end context.
    pub max_ee_init_rd_atom: u32,
    /// Kind of atomicity.
    pub atomic_cap: u32,
    /// End-to-end contexts.
    pub max_ee: u32,
    /// Reliable datagram domains.
    pub max_rdd: u32,
    /// Memory windows.
    pub max_mw: u32,
    /// Raw IPv6 queue pairs.
    pub max_raw_ipv6_qp: u32,
    /// Raw Ethertype queue pairs.
    pub max_raw_ethy_qp: u32,
    /// Multicast groups.
    pub max_mcast_grp: u32,
    /// Queue pairs in a multicast group.
    pub max_mcast_qp_attach: u32,
    /// Queue pairs in all multicast groups.
    pub max_total_mcast_qp_attach: u32,
    /// Address handles.
    pub max_ah: u32,
    /// Fast memory regions.
    pub max_fmr: u32,
    /// Times that a fast memory region may be mapped before it is unmapped.
    pub max_map_per_fmr: u32,
    /// Shared receive queues.
    pub max_srq: u32,
    /// Work requests in a shared receive queue.
    pub max_srq_wr: u32,
    /// Scatter/gather elements in a shared receive queue.
    pub max_srq_sge: u32,
    /// Partitions.
    pub max_pkeys: u16,
    /// Code of the device's delay before an acknowledgement.
    pub local_ca_ack_delay: u8,
    /// Ports, at most 255; netlink has the full number.
    pub phys_port_cnt: u8,
    /// Zero.
    pub reserved: [u8; 4],
}

layout!(QueryDeviceResponse, size 176, align 8, {
    fw_ver: 0,
    node_guid: 8,
    sys_image_guid: 16,
    max_mr_size: 24,
    page_size_cap: 32,
    vendor_id: 40,
    vendor_part_id: 44,
    hw_ver: 48,
    max_qp: 52,
    max_qp_wr: 56,
    device_cap_flags: 60,
    max_sge: 64,
    max_sge_rd: 68,
    max_cq: 72,
    max_cqe: 76,
    max_mr: 80,
    max_pd: 84,
    max_qp_rd_atom: 88,
    max_ee_rd_atom: 92,
    max_res_rd_atom: 96,
    max_qp_init_rd_atom: 100,
    max_ee_init_rd_atom: 104,
    atomic_cap: 108,
    max_ee: 112,
    max_rdd: 116,
    max_mw: 120,
    max_raw_ipv6_qp: 124,
    max_raw_ethy_qp: 128,
    max_mcast_grp: 132,
    max_mcast_qp_attach: 136,
    max_total_mcast_qp_attach: 140,
    max_ah: 144,
    max_fmr: 148,
    max_map_per_fmr: 152,
    max_srq: 156,
    max_srq_wr: 160,
    max_srq_sge: 164,
    max_pkeys: 168,
    local_ca_ack_delay: 170,
    phys_port_cnt: 171,
    reserved: 172,
});

/// Request of [`write_command::EX_QUERY_DEVICE`]. C name `struct ib_uverbs_ex_query_device`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
#[repr(C)]
pub struct ExQueryDeviceRequest {
    /// Zero, else `EINVAL`.
    pub comp_mask: u32,
    /// Zero, else `EINVAL`.
    pub reserved: u32,
}

layout!(ExQueryDeviceRequest, size 8, align 4, { comp_mask: 0, reserved: 4 });

/// On-demand paging of a device. C name `struct ib_uverbs_odp_caps`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
#[repr(C, align(8))]
pub struct OdpCaps {
    /// Bits for the device as a whole.
    pub general_caps: u64,
    /// Bits of operations on reliable connections.
    pub rc_odp_caps: u32,
    /// Bits of operations on unreliable connections.
    pub uc_odp_caps: u32,
    /// Bits of operations on unreliable datagrams.
    pub ud_odp_caps: u32,
    /// Zero.
    pub reserved: u32,
}

layout!(OdpCaps, size 24, align 8, {
    general_caps: 0,
    rc_odp_caps: 8,
    uc_odp_caps: 12,
    ud_odp_caps: 16,
    reserved: 20,
});

/// Receive-side scaling of a device. C name `struct ib_uverbs_rss_caps`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
#[repr(C)]
pub struct RssCaps {
    /// Queue pair types that can have it, a bit each.
    pub supported_qpts: u32,
    /// Indirection tables.
    pub max_rwq_indirection_tables: u32,
    /// Entries of an indirection table.
    pub max_rwq_indirection_table_size: u32,
    /// Zero.
    pub reserved: u32,
}

layout!(RssCaps, size 16, align 4, {
    supported_qpts: 0,
    max_rwq_indirection_tables: 4,
    max_rwq_indirection_table_size: 8,
    reserved: 12,
});

/// Tag matching of a device. C name `struct ib_uverbs_tm_caps`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
#[repr(C)]
pub struct TmCaps {
    /// Longest header of a rendezvous request, in bytes.
    pub max_rndv_hdr_size: u32,
    /// Entries of a list of tags.
    pub max_num_tags: u32,
    /// Capability bits.
    pub flags: u32,
    /// Operations on a list in flight.
    pub max_ops: u32,
    /// Scatter/gather elements of an entry.
    pub max_sge: u32,
    /// Zero.
    pub reserved: u32,
}

layout!(TmCaps, size 24, align 4, {
    max_rndv_hdr_size: 0,
    max_num_tags: 4,
    flags: 8,
    max_ops: 12,
    max_sge: 16,
    reserved: 20,
});

/// Moderation of completion events of a device. C name `struct ib_uverbs_cq_moderation_caps`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
#[repr(C)]
pub struct CqModerationCaps {
    /// Completions that can be held back.
    pub max_cq_moderation_count: u16,
    /// Microseconds for which they can be held back.
    pub max_cq_moderation_period: u16,
    /// Zero.
    pub reserved: u32,
}

layout!(CqModerationCaps, size 8, align 4, {
    max_cq_moderation_count: 0,
    max_cq_moderation_period: 2,
    reserved: 4,
});

/// Limits of a device in full, the answer of [`write_command::EX_QUERY_DEVICE`]. C name
/// `struct ib_uverbs_ex_query_device_resp`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
#[repr(C, align(8))]
pub struct ExQueryDeviceResponse {
    /// What the short query answers.
    pub base: QueryDeviceResponse,
    /// Zero.
    pub comp_mask: u32,
    /// How many bytes of this the kernel filled.
    pub response_length: u32,
    /// On-demand paging.
    pub odp_caps: OdpCaps,
    /// Valid bits of a completion's timestamp.
    pub timestamp_mask: u64,
    /// Clock of the timestamps, in kHz.
    pub hca_core_clock: u64,
    /// Capabilities, all 64 bits.
    pub device_cap_flags_ex: u64,
    /// Receive-side scaling.
    pub rss_caps: RssCaps,
    /// Receive work queues.
    pub max_wq_type_rq: u32,
    /// Capability bits of raw packet queue pairs.
    pub raw_packet_caps: u32,
    /// Tag matching.
    pub tm_caps: TmCaps,
    /// Moderation of completion events.
    pub cq_moderation_caps: CqModerationCaps,
    /// Memory on the device, in bytes.
    pub max_dm_size: u64,
    /// On-demand paging bits of operations on extended reliable connections.
    pub xrc_odp_caps: u32,
    /// Zero.
    pub reserved: u32,
}

layout!(ExQueryDeviceResponse, size 304, align 8, {
    base: 0,
    comp_mask: 176,
    response_length: 180,
    odp_caps: 184,
    timestamp_mask: 208,
    hca_core_clock: 216,
    device_cap_flags_ex: 224,
    rss_caps: 232,
    max_wq_type_rq: 248,
    raw_packet_caps: 252,
    tm_caps: 256,
    cq_moderation_caps: 280,
    max_dm_size: 288,
    xrc_odp_caps: 296,
    reserved: 300,
});
