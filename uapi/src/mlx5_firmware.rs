//! Queries of the mlx5 firmware: their inputs, outputs and structures.
//!
//! The layouts are those of the kernel's own header `linux/mlx5/mlx5_ifc.h`, which is not for user space
//! but is in the packages of kernel headers. The numbers of operations and statuses are in
//! `linux/mlx5/mlx5_ifc.h` and `linux/mlx5/device.h`. Everything is big-endian. If a byte holds several
//! fields, the structure's constants are masks within that byte.
//!
//! Inputs and outputs have at least 16 bytes, and begin with a header of eight. Fields that this crate does
//! not need are `unusedN`: zero in an input, any value in an output.
#![expect(
    missing_debug_implementations,
    reason = "all structures here have it; what zerocopy derives for a structure in a macro has not"
)]

use zerocopy::big_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, Unaligned};

/// Operations, the `opcode` of an input. Only those that the kernel passes on as general commands.
pub mod opcode {
    /// Capabilities of one kind.
    pub const QUERY_HCA_CAP: u16 = 0x100;
    /// Vendor and board.
    pub const QUERY_ADAPTER: u16 = 0x101;
    /// Interface revisions.
    pub const QUERY_ISSI: u16 = 0x10a;
    /// What the host of an embedded CPU has enabled.
    pub const QUERY_ESW_FUNCTIONS: u16 = 0x740;
    /// Whether a vport is up.
    pub const QUERY_VPORT_STATE: u16 = 0x750;
    /// A vport, as the e-switch knows it.
    pub const QUERY_ESW_VPORT_CONTEXT: u16 = 0x752;
    /// A vport, as its Ethernet side knows it.
    pub const QUERY_NIC_VPORT_CONTEXT: u16 = 0x754;
    /// An entry of the table of RoCE addresses.
    pub const QUERY_ROCE_ADDRESS: u16 = 0x760;
    /// A vport, as its InfiniBand side knows it.
    pub const QUERY_HCA_VPORT_CONTEXT: u16 = 0x762;
    /// Diagnostic counters of a vport.
    pub const QUERY_VNIC_ENV: u16 = 0x76f;
    /// Counters of a vport.
    pub const QUERY_VPORT_COUNTER: u16 = 0x770;
    /// Log of dropped packets.
    pub const GET_DROPPED_PACKET_LOG: u16 = 0x80a;
    /// Nothing.
    pub const NOP: u16 = 0x80d;
    /// Whether congestion control is on.
    pub const QUERY_CONG_STATUS: u16 = 0x822;
    /// Parameters of congestion control.
    pub const QUERY_CONG_PARAMS: u16 = 0x824;
    /// Counters of congestion control.
    pub const QUERY_CONG_STATISTICS: u16 = 0x826;
    /// State of link aggregation.
    pub const QUERY_LAG: u16 = 0x842;
    /// The first of a range that is passed on as a whole, newer operations included.
    pub const GENERAL_START: u16 = 0xb00;
    /// The first number after that range.
    pub const GENERAL_END: u16 = 0xd00;
}

/// Kinds of capabilities: the `op_mod` of [`opcode::QUERY_HCA_CAP`], from its second bit on.
pub mod capability_type {
    /// The general ones, [`GeneralCapabilities`](super::GeneralCapabilities).
    pub const GENERAL: u16 = 0;
    /// Those of atomic operations.
    pub const ATOMIC: u16 = 3;
    /// Those of RoCE, [`RoceCapabilities`](super::RoceCapabilities).
    pub const ROCE: u16 = 4;
}

/// Which capabilities: the first bit of the `op_mod` of [`opcode::QUERY_HCA_CAP`].
pub mod capability_mode {
    /// What could be set.
    pub const MAXIMUM: u16 = 0;
    /// What is set.
    pub const CURRENT: u16 = 1;
}

/// Which vport is asked: the `op_mod` of [`opcode::QUERY_VPORT_STATE`].
pub mod vport_state_mod {
    /// A network function's.
    pub const VNIC_VPORT: u16 = 0;
    /// The e-switch's side of it.
    pub const ESW_VPORT: u16 = 1;
    /// The uplink.
    pub const UPLINK: u16 = 2;
}

/// Special numbers of vports. Other numbers belong to VFs, from 1 on, and to sub-functions.
pub mod vport {
    /// The physical function.
    pub const PF: u16 = 0;
    /// The embedded CPU's physical function.
    pub const ECPF: u16 = 0xfffe;
    /// The wire.
    pub const UPLINK: u16 = 0xffff;
}

/// Statuses of an output.
pub mod status {
    /// Done.
    pub const OK: u8 = 0x00;
    /// Internal error.
    pub const INTERNAL_ERR: u8 = 0x01;
    /// The operation is not known or not supported.
    pub const BAD_OP: u8 = 0x02;
    /// A parameter is wrong or not supported.
    pub const BAD_PARAM: u8 = 0x03;
    /// The system is not in a state for it.
    pub const BAD_SYS_STATE: u8 = 0x04;
    /// No such resource.
    pub const BAD_RES: u8 = 0x05;
    /// The resource is in use.
    pub const RES_BUSY: u8 = 0x06;
    /// Not ready.
    pub const NOT_READY: u8 = 0x07;
    /// A limit is exceeded.
    pub const LIM_ERR: u8 = 0x08;
    /// The resource is not in a state for it.
    pub const BAD_RES_STATE: u8 = 0x09;
    /// An index is outside its table.
    pub const IX_ERR: u8 = 0x0a;
    /// No resources are left.
    pub const NO_RES: u8 = 0x0f;
    /// The queue pair is not in a state for it.
    pub const BAD_QP_STATE: u8 = 0x10;
    /// A management packet is malformed.
    pub const BAD_PKT: u8 = 0x30;
    /// Too many completions are outstanding.
    pub const BAD_SIZE_OUTS_CQES: u8 = 0x40;
    /// The input's length is wrong.
    pub const BAD_INP_LEN: u8 = 0x50;
    /// The output's length is wrong.
    pub const BAD_OUTP_LEN: u8 = 0x51;
}

/// The mask of a flag that is the highest bit of its byte: `other_vport`, `other_function`.
pub const OTHER: u8 = 1 << 7;

/// Declares a structure of bytes and big-endian integers, and pins it.
macro_rules! firmware {
    (
        $(#[$doc:meta])* $name:ident, size $size:literal, {
            $($(#[$item:meta])* $field:ident: $type:ty = $offset:literal,)+
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, Unaligned)]
        #[repr(C)]
        pub struct $name {
            $($(#[$item])* pub $field: $type,)+
        }

        layout!($name, size $size, align 1, { $($field: $offset),+ });
    };
}

firmware! {
    /// The first bytes of every input.
    InputHeader, size 8, {
        /// One of [`opcode`].
        opcode: U16 = 0,
        /// The user context; the kernel fills it in.
        uid: U16 = 2,
        /// Zero: the command is for this function.
        vhca_tunnel_id: U16 = 4,
        /// Variant of the operation.
        op_mod: U16 = 6,
    }
}

firmware! {
    /// The first bytes of every output.
    OutputHeader, size 8, {
        /// One of [`status`].
        status: u8 = 0,
        /// Zero.
        unused: [u8; 3] = 1,
        /// More about a status that is not [`status::OK`]; its meaning is the firmware's own.
        syndrome: U32 = 4,
    }
}

firmware! {
    /// An input without arguments: [`opcode::QUERY_ADAPTER`], [`opcode::QUERY_ESW_FUNCTIONS`],
    /// [`opcode::QUERY_LAG`], [`opcode::NOP`].
    PlainInput, size 16, {
        /// Header.
        header: InputHeader = 0,
        /// Zero.
        unused: [u8; 8] = 8,
    }
}

firmware! {
    /// An output without an answer: [`opcode::NOP`].
    PlainOutput, size 16, {
        /// Header.
        header: OutputHeader = 0,
        /// Zero.
        unused: [u8; 8] = 8,
    }
}

firmware! {
    /// Input of [`opcode::QUERY_HCA_CAP`].
    QueryHcaCapInput, size 16, {
        /// Header; its `op_mod` is a [`capability_type`] shifted by one, and a [`capability_mode`].
        header: InputHeader = 0,
        /// [`OTHER`] if `function_id` is another function than the asking one.
        other_function: u8 = 8,
        /// Zero.
        unused0: u8 = 9,
        /// The other function.
        function_id: U16 = 10,
        /// Zero.
        unused1: [u8; 4] = 12,
    }
}

firmware! {
    /// Output of [`opcode::QUERY_HCA_CAP`] for [`capability_type::GENERAL`].
    QueryGeneralCapOutput, size 4112, {
        /// Header.
        header: OutputHeader = 0,
        /// Any value.
        unused: [u8; 8] = 8,
        /// The capabilities.
        capabilities: GeneralCapabilities = 16,
    }
}

firmware! {
    /// General capabilities that concern ports. C name `cmd_hca_cap`.
    GeneralCapabilities, size 4096, {
        /// Others.
        unused0: [u8; 6] = 0x00,
        /// Number of the function within the device.
        vhca_id: U16 = 0x06,
        /// Others.
        unused1: [u8; 38] = 0x08,
        /// Code of the length of an InfiniBand port's GID table: 8 shifted by it.
        gid_table_size: U16 = 0x2e,
        /// Others, and [`VPORT_COUNTERS`](Self::VPORT_COUNTERS).
        counters: u8 = 0x30,
        /// Others.
        unused2: u8 = 0x31,
        /// Code of the length of an InfiniBand port's `P_Key` table: 128 shifted by it.
        pkey_table_size: U16 = 0x32,
        /// Others, and [`VPORT_GROUP_MANAGER`](Self::VPORT_GROUP_MANAGER),
        /// [`IB_VIRT`](Self::IB_VIRT), [`ETH_VIRT`](Self::ETH_VIRT),
        /// [`ESWITCH_MANAGER`](Self::ESWITCH_MANAGER).
        roles: u8 = 0x34,
        /// Others.
        unused3: u8 = 0x35,
        /// Others, and in [`PORT_TYPE`](Self::PORT_TYPE) one of [`port_type`].
        port_type: u8 = 0x36,
        /// Ports of the function.
        num_ports: u8 = 0x37,
        /// Others.
        unused4: [u8; 11] = 0x38,
        /// Others, and [`ROCE`](Self::ROCE).
        protocols: u8 = 0x43,
        /// Others.
        unused5: [u8; 11] = 0x44,
        /// Others, and [`LAG_MASTER`](Self::LAG_MASTER), [`NUM_LAG_PORTS`](Self::NUM_LAG_PORTS).
        lag: u8 = 0x4f,
        /// Others.
        unused6: [u8; 60] = 0x50,
        /// Others, and in [`LOG_MAX_UCTX`](Self::LOG_MAX_UCTX) the logarithm of how many user
        /// contexts the firmware has; 0 if it has none.
        log_max_uctx: u8 = 0x8c,
        /// Others.
        unused7: [u8; 52] = 0x8d,
        /// Which of the device's ports is this function's own.
        native_port_num: u8 = 0xc1,
        /// Ports of the device that act together as one RoCE device; 0 or 1 if they do not.
        num_vhca_ports: u8 = 0xc2,
        /// Others.
        unused8: [u8; 17] = 0xc3,
        /// What user contexts may do.
        uctx_cap: U32 = 0xd4,
        /// Others.
        unused9: [u8; 3880] = 0xd8,
    }
}

impl GeneralCapabilities {
    /// In `counters`: vports have counters.
    pub const VPORT_COUNTERS: u8 = 1 << 6;
    /// In `roles`: it may ask about other vports of its group.
    pub const VPORT_GROUP_MANAGER: u8 = 1 << 7;
    /// In `roles`: InfiniBand virtualisation.
    pub const IB_VIRT: u8 = 1 << 5;
    /// In `roles`: Ethernet virtualisation.
    pub const ETH_VIRT: u8 = 1 << 4;
    /// In `roles`: it manages an e-switch.
    pub const ESWITCH_MANAGER: u8 = 1 << 0;
    /// Mask in `port_type`.
    pub const PORT_TYPE: u8 = 0b11;
    /// In `protocols`: RoCE.
    pub const ROCE: u8 = 1 << 2;
    /// In `lag`: it may make a link aggregation.
    pub const LAG_MASTER: u8 = 1 << 4;
    /// Mask in `lag`: ports that may be aggregated.
    pub const NUM_LAG_PORTS: u8 = 0b1111;
    /// Mask in `log_max_uctx`.
    pub const LOG_MAX_UCTX: u8 = 0b1_1111;
}

/// Values of the field [`GeneralCapabilities::port_type`].
pub mod port_type {
    /// InfiniBand.
    pub const IB: u8 = 0;
    /// Ethernet.
    pub const ETH: u8 = 1;
}

firmware! {
    /// Output of [`opcode::QUERY_HCA_CAP`] for [`capability_type::ROCE`].
    QueryRoceCapOutput, size 4112, {
        /// Header.
        header: OutputHeader = 0,
        /// Any value.
        unused0: [u8; 8] = 8,
        /// The capabilities.
        capabilities: RoceCapabilities = 16,
        /// Any value.
        unused1: [u8; 4064] = 48,
    }
}

firmware! {
    /// Capabilities of RoCE. C name `roce_cap`, the part in front.
    RoceCapabilities, size 32, {
        /// Others.
        unused0: [u8; 17] = 0x00,
        /// Mask [`L3_TYPE`](Self::L3_TYPE), bits of [`roce_l3`].
        l3_type: u8 = 0x11,
        /// Zero.
        unused1: u8 = 0x12,
        /// Bits of [`roce_versions`].
        roce_version: u8 = 0x13,
        /// Zero.
        unused2: [u8; 2] = 0x14,
        /// UDP destination port of RoCE v2.
        r_roce_dest_udp_port: U16 = 0x16,
        /// Highest UDP source port of RoCE v2.
        r_roce_max_src_udp_port: U16 = 0x18,
        /// Lowest UDP source port of RoCE v2.
        r_roce_min_src_udp_port: U16 = 0x1a,
        /// Zero.
        unused3: [u8; 2] = 0x1c,
        /// Length of the table of RoCE addresses, which is the port's GID table.
        roce_address_table_size: U16 = 0x1e,
    }
}

impl RoceCapabilities {
    /// Mask in `l3_type`.
    pub const L3_TYPE: u8 = 0b1111;
}

/// Bits of [`RoceCapabilities::l3_type`].
pub mod roce_l3 {
    /// Global routing header, RoCE v1.
    pub const GRH: u8 = 1 << 0;
    /// IPv4.
    pub const IPV4: u8 = 1 << 1;
    /// IPv6.
    pub const IPV6: u8 = 1 << 2;
}

/// Bits of [`RoceCapabilities::roce_version`]: 1 shifted by a [`roce_version`].
pub mod roce_versions {
    /// RoCE v1.
    pub const V1: u8 = 1 << 0;
    /// RoCE v2.
    pub const V2: u8 = 1 << 2;
}

firmware! {
    /// Output of [`opcode::QUERY_ADAPTER`].
    QueryAdapterOutput, size 272, {
        /// Header.
        header: OutputHeader = 0,
        /// Any value.
        unused0: [u8; 33] = 8,
        /// Vendor's number with the IEEE: 24 bits.
        ieee_vendor_id: [u8; 3] = 41,
        /// Any value.
        unused1: [u8; 2] = 44,
        /// Whose form the vendor's data has.
        vsd_vendor_id: U16 = 46,
        /// Vendor's data.
        vsd: [u8; 208] = 48,
        /// Parameter set id (PSID) of the board: text, filled up with zeros.
        psid: [u8; 16] = 256,
    }
}

firmware! {
    /// Output of [`opcode::QUERY_ESW_FUNCTIONS`], the part in front.
    QueryEswFunctionsOutput, size 128, {
        /// Header.
        header: OutputHeader = 0,
        /// Any value.
        unused0: [u8; 8] = 8,
        /// Number of the host.
        host_number: u8 = 16,
        /// [`HOST_PF_NOT_EXIST`](Self::HOST_PF_NOT_EXIST),
        /// [`HOST_PF_DISABLED`](Self::HOST_PF_DISABLED).
        host_pf: u8 = 17,
        /// VFs that the host has enabled.
        host_num_of_vfs: U16 = 18,
        /// VFs that it could enable.
        host_total_vfs: U16 = 20,
        /// PCI bus of the host's function.
        host_pci_bus: U16 = 22,
        /// Any value.
        unused1: [u8; 2] = 24,
        /// PCI device of it.
        host_pci_device: U16 = 26,
        /// Any value.
        unused2: [u8; 2] = 28,
        /// PCI function of it.
        host_pci_function: U16 = 30,
        /// Any value.
        unused3: [u8; 96] = 32,
    }
}

impl QueryEswFunctionsOutput {
    /// In `host_pf`: the host has no physical function.
    pub const HOST_PF_NOT_EXIST: u8 = 1 << 2;
    /// In `host_pf`: the host's physical function is disabled.
    pub const HOST_PF_DISABLED: u8 = 1 << 0;
}

firmware! {
    /// Input of the queries of a vport: [`opcode::QUERY_VPORT_STATE`],
    /// [`opcode::QUERY_ESW_VPORT_CONTEXT`], [`opcode::QUERY_NIC_VPORT_CONTEXT`],
    /// [`opcode::QUERY_HCA_VPORT_CONTEXT`].
    QueryVportInput, size 16, {
        /// Header.
        header: InputHeader = 0,
        /// [`OTHER`] if `vport_number` is another vport than the asking function's own.
        other_vport: u8 = 8,
        /// Port, of [`opcode::QUERY_HCA_VPORT_CONTEXT`] and only on devices with two; at most 15.
        port_num: u8 = 9,
        /// The other vport.
        vport_number: U16 = 10,
        /// Which list, of [`opcode::QUERY_NIC_VPORT_CONTEXT`]: 0 unicast addresses.
        allowed_list_type: u8 = 12,
        /// Zero.
        unused: [u8; 3] = 13,
    }
}

firmware! {
    /// Output of [`opcode::QUERY_VPORT_STATE`].
    QueryVportStateOutput, size 16, {
        /// Header.
        header: OutputHeader = 0,
        /// Zero.
        unused0: [u8; 4] = 8,
        /// Limit of the transmit rate in 100 Mb/s; 0 if there is none or the firmware does not give it.
        max_tx_speed: U16 = 12,
        /// Zero.
        unused1: u8 = 14,
        /// Upper half: one of [`vport_admin_state`]; lower half: one of [`vport_state`].
        states: u8 = 15,
    }
}

/// Wanted states of a vport.
pub mod vport_admin_state {
    /// Down.
    pub const DOWN: u8 = 0;
    /// Up.
    pub const UP: u8 = 1;
    /// As the uplink.
    pub const AUTO: u8 = 2;
}

/// States of a vport.
pub mod vport_state {
    /// Down.
    pub const DOWN: u8 = 0;
    /// Up.
    pub const UP: u8 = 1;
}

firmware! {
    /// Output of [`opcode::QUERY_ESW_VPORT_CONTEXT`].
    QueryEswVportContextOutput, size 272, {
        /// Header.
        header: OutputHeader = 0,
        /// Any value.
        unused0: [u8; 8] = 8,
        /// [`SVLAN_STRIP`](Self::SVLAN_STRIP), [`CVLAN_STRIP`](Self::CVLAN_STRIP),
        /// [`SVLAN_INSERT`](Self::SVLAN_INSERT), [`CVLAN_INSERT`](Self::CVLAN_INSERT).
        vlan_actions: u8 = 16,
        /// Registers C that carry the vport's number.
        fdb_to_vport_reg_c_id: u8 = 17,
        /// Any value.
        unused1: [u8; 6] = 18,
        /// Service VLAN that is inserted: CFI 1 bit, PCP 3 bits, id 12 bits.
        svlan: U16 = 24,
        /// Customer VLAN that is inserted, likewise.
        cvlan: U16 = 26,
        /// Any value.
        unused2: [u8; 228] = 28,
        /// Address for steering, receive side.
        sw_steering_vport_icm_address_rx: U64 = 256,
        /// Address for steering, transmit side.
        sw_steering_vport_icm_address_tx: U64 = 264,
    }
}

impl QueryEswVportContextOutput {
    /// In `vlan_actions`: the service VLAN is taken off.
    pub const SVLAN_STRIP: u8 = 1 << 4;
    /// In `vlan_actions`: the customer VLAN is taken off.
    pub const CVLAN_STRIP: u8 = 1 << 3;
    /// In `vlan_actions`: the service VLAN is inserted.
    pub const SVLAN_INSERT: u8 = 1 << 2;
    /// Mask in `vlan_actions`: whether, and when, the customer VLAN is inserted.
    pub const CVLAN_INSERT: u8 = 0b11;
}

firmware! {
    /// Output of [`opcode::QUERY_NIC_VPORT_CONTEXT`], without the list after it.
    QueryNicVportContextOutput, size 272, {
        /// Header.
        header: OutputHeader = 0,
        /// Any value.
        unused0: [u8; 8] = 8,
        /// Others.
        unused1: [u8; 3] = 16,
        /// [`DISABLE_MC_LOCAL_LB`](Self::DISABLE_MC_LOCAL_LB),
        /// [`DISABLE_UC_LOCAL_LB`](Self::DISABLE_UC_LOCAL_LB), [`ROCE_EN`](Self::ROCE_EN).
        switches: u8 = 19,
        /// Others.
        unused2: [u8; 34] = 20,
        /// MTU in bytes, the Ethernet header counted.
        mtu: U16 = 54,
        /// System image GUID.
        system_image_guid: U64 = 56,
        /// Port GUID.
        port_guid: U64 = 64,
        /// Node GUID.
        node_guid: U64 = 72,
        /// Others.
        unused3: [u8; 40] = 80,
        /// `Q_Key` violations.
        qkey_violation_counter: U16 = 120,
        /// Others.
        unused4: [u8; 134] = 122,
        /// [`PROMISC_UC`](Self::PROMISC_UC), [`PROMISC_MC`](Self::PROMISC_MC),
        /// [`PROMISC_ALL`](Self::PROMISC_ALL), and the kind of the list that follows.
        promisc: u8 = 256,
        /// Others.
        unused5: u8 = 257,
        /// Entries of the list that follows.
        allowed_list_size: U16 = 258,
        /// Zero.
        unused6: [u8; 2] = 260,
        /// The vport's own MAC address.
        permanent_address: [u8; 6] = 262,
        /// Others.
        unused7: [u8; 4] = 268,
    }
}

impl QueryNicVportContextOutput {
    /// In `switches`: no loopback of multicast packets.
    pub const DISABLE_MC_LOCAL_LB: u8 = 1 << 2;
    /// In `switches`: no loopback of unicast packets.
    pub const DISABLE_UC_LOCAL_LB: u8 = 1 << 1;
    /// In `switches`: RoCE is enabled.
    pub const ROCE_EN: u8 = 1 << 0;
    /// In `promisc`: all unicast packets are received.
    pub const PROMISC_UC: u8 = 1 << 7;
    /// In `promisc`: all multicast packets are received.
    pub const PROMISC_MC: u8 = 1 << 6;
    /// In `promisc`: all packets are received.
    pub const PROMISC_ALL: u8 = 1 << 5;
}

firmware! {
    /// Output of [`opcode::QUERY_HCA_VPORT_CONTEXT`].
    QueryHcaVportContextOutput, size 528, {
        /// Header.
        header: OutputHeader = 0,
        /// Any value.
        unused0: [u8; 40] = 8,
        /// [`SM_VIRT_AWARE`](Self::SM_VIRT_AWARE), [`HAS_SMI`](Self::HAS_SMI),
        /// [`HAS_RAW`](Self::HAS_RAW), [`GRH_REQUIRED`](Self::GRH_REQUIRED).
        features: u8 = 48,
        /// Any value.
        unused1: u8 = 49,
        /// Upper half: physical state of the port; lower half: policy of the vport's state.
        physical_state: u8 = 50,
        /// Upper half: logical state of the port; lower half: of the vport.
        state: u8 = 51,
        /// Any value.
        unused2: [u8; 4] = 52,
        /// System image GUID.
        system_image_guid: U64 = 56,
        /// Port GUID.
        port_guid: U64 = 64,
        /// Node GUID.
        node_guid: U64 = 72,
        /// Capabilities of the port.
        cap_mask1: U32 = 80,
        /// Which of them may be changed.
        cap_mask1_field_select: U32 = 84,
        /// More capabilities.
        cap_mask2: U32 = 88,
        /// Which of them may be changed.
        cap_mask2_field_select: U32 = 92,
        /// Any value.
        unused3: [u8; 16] = 96,
        /// Base LID.
        lid: U16 = 112,
        /// Lower half: kind of initialisation that the subnet manager did.
        init_type_reply: u8 = 114,
        /// Upper 3 bits: LID mask control; lower 5 bits: subnet timeout.
        lmc_and_subnet_timeout: u8 = 115,
        /// LID of the subnet manager.
        sm_lid: U16 = 116,
        /// Upper half: service level of the subnet manager.
        sm_sl: u8 = 118,
        /// Any value.
        unused4: u8 = 119,
        /// `Q_Key` violations.
        qkey_violation_counter: U16 = 120,
        /// `P_Key` violations.
        pkey_violation_counter: U16 = 122,
        /// Any value.
        unused5: [u8; 404] = 124,
    }
}

impl QueryHcaVportContextOutput {
    /// In `features`: the subnet manager knows of virtualisation.
    pub const SM_VIRT_AWARE: u8 = 1 << 7;
    /// In `features`: the vport has a subnet management interface.
    pub const HAS_SMI: u8 = 1 << 6;
    /// In `features`: the vport has raw packets.
    pub const HAS_RAW: u8 = 1 << 5;
    /// In `features`: every packet needs a GRH.
    pub const GRH_REQUIRED: u8 = 1 << 4;
}

firmware! {
    /// Input of [`opcode::QUERY_ROCE_ADDRESS`].
    QueryRoceAddressInput, size 16, {
        /// Header.
        header: InputHeader = 0,
        /// Index in the table: that of the GID.
        roce_address_index: U16 = 8,
        /// Zero.
        unused0: u8 = 10,
        /// Port, on devices whose ports act together; at most 15.
        vhca_port_num: u8 = 11,
        /// Zero.
        unused1: [u8; 4] = 12,
    }
}

firmware! {
    /// Output of [`opcode::QUERY_ROCE_ADDRESS`].
    QueryRoceAddressOutput, size 48, {
        /// Header.
        header: OutputHeader = 0,
        /// Any value.
        unused0: [u8; 8] = 8,
        /// The GID; all zero if the entry is empty.
        source_l3_address: [u8; 16] = 16,
        /// [`VLAN_VALID`](Self::VLAN_VALID) and, in [`VLAN_ID`](Self::VLAN_ID), the VLAN.
        vlan: U16 = 32,
        /// MAC address.
        source_mac: [u8; 6] = 34,
        /// Any value.
        unused1: [u8; 2] = 40,
        /// Lower half: one of [`roce_l3_type`].
        roce_l3_type: u8 = 42,
        /// One of [`roce_version`].
        roce_version: u8 = 43,
        /// Any value.
        unused2: [u8; 4] = 44,
    }
}

impl QueryRoceAddressOutput {
    /// In `vlan`: there is one.
    pub const VLAN_VALID: u16 = 1 << 12;
    /// Mask in `vlan`.
    pub const VLAN_ID: u16 = 0xfff;
}

/// Address families of a RoCE address.
pub mod roce_l3_type {
    /// IPv4.
    pub const IPV4: u8 = 0;
    /// IPv6.
    pub const IPV6: u8 = 1;
}

/// Versions of a RoCE address.
pub mod roce_version {
    /// RoCE v1.
    pub const V1: u8 = 0;
    /// RoCE v2.
    pub const V2: u8 = 2;
}

firmware! {
    /// Input of [`opcode::QUERY_VPORT_COUNTER`].
    QueryVportCounterInput, size 32, {
        /// Header.
        header: InputHeader = 0,
        /// [`OTHER`] if `vport_number` is another vport than the asking function's own.
        other_vport: u8 = 8,
        /// Port, on devices with two; at most 15.
        port_num: u8 = 9,
        /// The other vport.
        vport_number: U16 = 10,
        /// Zero.
        unused0: [u8; 12] = 12,
        /// [`OTHER`]'s bit: set the counters to zero. Zero in a mere query.
        clear: u8 = 24,
        /// Zero.
        unused1: [u8; 7] = 25,
    }
}

firmware! {
    /// A pair of counters.
    TrafficCounter, size 16, {
        /// Packets.
        packets: U64 = 0,
        /// Bytes.
        octets: U64 = 8,
    }
}

firmware! {
    /// Output of [`opcode::QUERY_VPORT_COUNTER`].
    QueryVportCounterOutput, size 528, {
        /// Header.
        header: OutputHeader = 0,
        /// Any value.
        unused0: [u8; 8] = 8,
        /// Received with an error.
        received_errors: TrafficCounter = 16,
        /// Not transmitted for an error.
        transmit_errors: TrafficCounter = 32,
        /// Received, InfiniBand or RoCE, unicast.
        received_ib_unicast: TrafficCounter = 48,
        /// Transmitted, InfiniBand or RoCE, unicast.
        transmitted_ib_unicast: TrafficCounter = 64,
        /// Received, InfiniBand or RoCE, multicast.
        received_ib_multicast: TrafficCounter = 80,
        /// Transmitted, InfiniBand or RoCE, multicast.
        transmitted_ib_multicast: TrafficCounter = 96,
        /// Received, Ethernet, broadcast.
        received_eth_broadcast: TrafficCounter = 112,
        /// Transmitted, Ethernet, broadcast.
        transmitted_eth_broadcast: TrafficCounter = 128,
        /// Received, Ethernet, unicast.
        received_eth_unicast: TrafficCounter = 144,
        /// Transmitted, Ethernet, unicast.
        transmitted_eth_unicast: TrafficCounter = 160,
        /// Received, Ethernet, multicast.
        received_eth_multicast: TrafficCounter = 176,
        /// Transmitted, Ethernet, multicast.
        transmitted_eth_multicast: TrafficCounter = 192,
        /// Others.
        unused1: [u8; 320] = 208,
    }
}

firmware! {
    /// Output of [`opcode::QUERY_LAG`].
    QueryLagOutput, size 16, {
        /// Header.
        header: OutputHeader = 0,
        /// Any value.
        unused0: [u8; 3] = 8,
        /// Lower 3 bits: whether there is a link aggregation.
        lag_state: u8 = 11,
        /// Any value.
        unused1: u8 = 12,
        /// Lower half: ports that are active, a bit each.
        active_port: u8 = 13,
        /// Lower half: physical port that the second logical port sends on.
        tx_remap_affinity_2: u8 = 14,
        /// Lower half: physical port that the first logical port sends on.
        tx_remap_affinity_1: u8 = 15,
    }
}
