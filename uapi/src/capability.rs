//! Capability bits of a device, as [`ExQueryDeviceResponse`](crate::device::ExQueryDeviceResponse) has them.

/// Bits of `device_cap_flags_ex`, the low half of which is `device_cap_flags`. C names `IB_UVERBS_DEVICE_…`.
pub mod device {
    /// The number of work requests of a queue pair can change.
    pub const RESIZE_MAX_WR: u64 = 1 << 0;
    /// Counts bad P_Keys.
    pub const BAD_PKEY_CNTR: u64 = 1 << 1;
    /// Counts wrong Q_Key values.
    pub const BAD_QKEY_CNTR: u64 = 1 << 2;
    /// Raw multicast.
    pub const RAW_MULTI: u64 = 1 << 3;
    /// Automatic path migration.
    pub const AUTO_PATH_MIG: u64 = 1 << 4;
    /// A queue pair can change its physical port.
    pub const CHANGE_PHY_PORT: u64 = 1 << 5;
    /// Checks the port of an address vector.
    pub const UD_AV_PORT_ENFORCE: u64 = 1 << 6;
    /// Takes the current state of a queue pair when it is modified.
    pub const CURR_QP_STATE_MOD: u64 = 1 << 7;
    /// A port can be shut down.
    pub const SHUTDOWN_PORT: u64 = 1 << 8;
    /// Kinds of initialisation; no longer in use.
    pub const INIT_TYPE: u64 = 1 << 9;
    /// Reports that a port is active.
    pub const PORT_ACTIVE_EVENT: u64 = 1 << 10;
    /// Has a system image GUID.
    pub const SYS_IMAGE_GUID: u64 = 1 << 11;
    /// Says that a receiver is not ready.
    pub const RC_RNR_NAK_GEN: u64 = 1 << 12;
    /// A shared receive queue can change its size.
    pub const SRQ_RESIZE: u64 = 1 << 13;
    /// Reports after so many completions.
    pub const N_NOTIFY_CQ: u64 = 1 << 14;
    /// Memory windows.
    pub const MEM_WINDOW: u64 = 1 << 17;
    /// IP checksums on unreliable datagrams.
    pub const UD_IP_CSUM: u64 = 1 << 18;
    /// Extended reliable connections.
    pub const XRC: u64 = 1 << 20;
    /// Memory management extensions.
    pub const MEM_MGT_EXTENSIONS: u64 = 1 << 21;
    /// Memory windows of type 2A.
    pub const MEM_WINDOW_TYPE_2A: u64 = 1 << 23;
    /// Memory windows of type 2B.
    pub const MEM_WINDOW_TYPE_2B: u64 = 1 << 24;
    /// IP checksums on reliable connections.
    pub const RC_IP_CSUM: u64 = 1 << 25;
    /// IP checksums on raw packets.
    pub const RAW_IP_CSUM: u64 = 1 << 26;
    /// Flow steering.
    pub const MANAGED_FLOW_STEERING: u64 = 1 << 29;
    /// Gives a raw packet's frame check sequence.
    pub const RAW_SCATTER_FCS: u64 = 1 << 34;
    /// Pads the end of writes on the bus.
    pub const PCI_WRITE_END_PADDING: u64 = 1 << 36;
    /// Flushes to what is seen by all; Linux 6.2.
    pub const FLUSH_GLOBAL: u64 = 1 << 38;
    /// Flushes to what is kept; Linux 6.2.
    pub const FLUSH_PERSISTENT: u64 = 1 << 39;
    /// Atomic writes; Linux 6.2.
    pub const ATOMIC_WRITE: u64 = 1 << 40;
}

/// Bits of `raw_packet_caps`. C names `IB_UVERBS_RAW_PACKET_CAP_…`.
pub mod raw_packet {
    /// Takes off the customer's VLAN tag.
    pub const CVLAN_STRIPPING: u64 = 1 << 0;
    /// Gives the frame check sequence.
    pub const SCATTER_FCS: u64 = 1 << 1;
    /// IP checksums.
    pub const IP_CSUM: u64 = 1 << 2;
    /// Waits before it drops packets.
    pub const DELAY_DROP: u64 = 1 << 3;
}

/// Bits of `OdpCaps::general_caps`.
pub mod general_odp {
    /// On-demand paging at all.
    pub const SUPPORT: u64 = 1 << 0;
    /// Of the whole address space.
    pub const SUPPORT_IMPLICIT: u64 = 1 << 1;
}

/// Bits of on-demand paging by one transport.
pub mod odp {
    /// Sends.
    pub const SEND: u64 = 1 << 0;
    /// Receives.
    pub const RECV: u64 = 1 << 1;
    /// RDMA writes.
    pub const WRITE: u64 = 1 << 2;
    /// RDMA reads.
    pub const READ: u64 = 1 << 3;
    /// Atomic operations.
    pub const ATOMIC: u64 = 1 << 4;
    /// Receives by a shared receive queue.
    pub const SRQ_RECV: u64 = 1 << 5;
    /// Flushes.
    pub const FLUSH: u64 = 1 << 6;
    /// Atomic writes.
    pub const ATOMIC_WRITE: u64 = 1 << 7;
}

/// Values of `atomic_cap`.
pub mod atomicity {
    /// No atomic operations.
    pub const NONE: u32 = 0;
    /// Atomic among the queue pairs of the device.
    pub const HCA: u32 = 1;
    /// Atomic also with the processor.
    pub const GLOBAL: u32 = 2;
}

/// By which functions a device hashes packets for receive side scaling. C enumerations
/// `mlx5_rx_hash_function_flags`, `mlx4_ib_rx_hash_function_flags`.
pub mod rx_hash_function {
    /// Toeplitz.
    pub const TOEPLITZ: u64 = 1 << 0;
}

/// Which fields of packets a device can hash for receive side scaling. C enumerations `mlx5_rx_hash_fields`,
/// `mlx4_ib_rx_hash_fields`.
pub mod rx_hash_fields {
    /// IPv4 source.
    pub const SRC_IPV4: u64 = 1 << 0;
    /// IPv4 destination.
    pub const DST_IPV4: u64 = 1 << 1;
    /// IPv6 source.
    pub const SRC_IPV6: u64 = 1 << 2;
    /// IPv6 destination.
    pub const DST_IPV6: u64 = 1 << 3;
    /// TCP source port.
    pub const SRC_PORT_TCP: u64 = 1 << 4;
    /// TCP destination port.
    pub const DST_PORT_TCP: u64 = 1 << 5;
    /// UDP source port.
    pub const SRC_PORT_UDP: u64 = 1 << 6;
    /// UDP destination port.
    pub const DST_PORT_UDP: u64 = 1 << 7;
    /// Security parameters index of `IPsec`; mlx5 only.
    pub const IPSEC_SPI: u64 = 1 << 8;
    /// The inner packet of a tunnel.
    pub const INNER: u64 = 1 << 31;
}

/// Numbers of types of queue pairs, by which bits are counted.
pub mod qp_type {
    /// Unreliable datagrams. C name `IB_UVERBS_QPT_UD`.
    pub const UD: u32 = 4;
    /// Raw packets. C name `IB_UVERBS_QPT_RAW_PACKET`.
    pub const RAW_PACKET: u32 = 8;
}
