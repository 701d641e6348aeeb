//! The connection manager's character device, as far as it finds the RDMA device of an address.
//!
//! Kernel header `rdma/rdma_user_cm.h`. A command is written to the device: a [`CommandHeader`], then the
//! command's own structure. What has an answer holds the address where the kernel puts it. Where no
//! release is named, the item is older than 5.10.

use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

/// Version of the ABI, in `/sys/class/misc/rdma_cm/abi_version`.
pub const ABI_VERSION: u32 = 4;

/// Bytes of a socket address of any family. C name `struct __kernel_sockaddr_storage`.
pub const ADDRESS_LEN: usize = 128;

/// Values of [`CommandHeader::command`].
pub mod command {
    /// Makes an identifier: [`CreateId`](super::CreateId), answered with a
    /// [`CreateIdResponse`](super::CreateIdResponse).
    pub const CREATE_ID: u32 = 0;
    /// Asks what an identifier has: [`Query`](super::Query).
    pub const QUERY: u32 = 19;
    /// Binds an identifier to an address: [`Bind`](super::Bind). It has no answer.
    pub const BIND: u32 = 20;
}

/// Values of [`CreateId::port_space`].
pub mod port_space {
    /// That of the InfiniBand specification: `qp_type` says the type.
    pub const IB: u16 = 0x013f;
}

/// Values of [`CreateId::qp_type`].
pub mod qp_type {
    /// Reliable, connected.
    pub const RC: u8 = 2;
}

/// Values of [`Query::option`].
pub mod query {
    /// The device and the addresses, answered with a [`QueryAddrResponse`](super::QueryAddrResponse).
    pub const ADDR: u32 = 0;
}

/// What comes before each command. C name `struct rdma_ucm_cmd_hdr`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
#[repr(C)]
pub struct CommandHeader {
    /// One of [`command`].
    pub command: u32,
    /// Bytes of the command's structure.
    pub input_len: u16,
    /// Bytes that the kernel may write as the answer.
    pub output_len: u16,
}

layout!(CommandHeader, size 8, align 4, { command: 0, input_len: 4, output_len: 6 });

/// C name `struct rdma_ucm_create_id`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
#[repr(C, align(8))]
pub struct CreateId {
    /// The value that comes back with events.
    pub uid: u64,
    /// The address for the answer.
    pub response: u64,
    /// One of [`port_space`].
    pub port_space: u16,
    /// One of [`qp_type`].
    pub qp_type: u8,
    /// Zero.
    pub reserved: [u8; 5],
}

layout!(CreateId, size 24, align 8, {
    uid: 0, response: 8, port_space: 16, qp_type: 18, reserved: 19,
});

/// C name `struct rdma_ucm_create_id_resp`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
#[repr(C)]
pub struct CreateIdResponse {
    /// The identifier, of this open file.
    pub id: u32,
}

layout!(CreateIdResponse, size 4, align 4, { id: 0 });

/// C name `struct rdma_ucm_bind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
// C's structure for any address is aligned like a pointer.
#[repr(C)]
#[cfg_attr(target_pointer_width = "64", repr(align(8)))]
pub struct Bind {
    /// The identifier.
    pub id: u32,
    /// Bytes of the address, by its family.
    pub addr_size: u16,
    /// Zero.
    pub reserved: u16,
    /// The socket address. That of IPv6 link-local has the interface's index as its scope.
    pub addr: [u8; ADDRESS_LEN],
}

layout!(Bind, size 136, align size_of::<usize>(), { id: 0, addr_size: 4, reserved: 6, addr: 8 });

impl Default for Bind {
    fn default() -> Self {
        Self::new_zeroed()
    }
}

/// C name `struct rdma_ucm_query`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
#[repr(C, align(8))]
pub struct Query {
    /// The address for the answer.
    pub response: u64,
    /// The identifier.
    pub id: u32,
    /// One of [`query`].
    pub option: u32,
}

layout!(Query, size 16, align 8, { response: 0, id: 8, option: 12 });

/// The answer to [`query::ADDR`]. C name `struct rdma_ucm_query_addr_resp`.
///
/// The kernel writes as much of it as there is room for, and before 5.9 nothing after the addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C, align(8))]
pub struct QueryAddrResponse {
    /// Node GUID of the device, in network order; zero if the identifier has no device.
    pub node_guid: u64,
    /// The device's port; zero if the identifier has no device.
    pub port_num: u8,
    /// Zero.
    pub reserved: u8,
    /// `P_Key`.
    pub pkey: u16,
    /// Bytes of `src_addr`.
    pub src_size: u16,
    /// Bytes of `dst_addr`.
    pub dst_size: u16,
    /// The socket address that the identifier is bound to.
    pub src_addr: [u8; ADDRESS_LEN],
    /// The socket address of the other end.
    pub dst_addr: [u8; ADDRESS_LEN],
    /// The device's number, as [`netlink::attribute::DEV_INDEX`](crate::netlink::attribute::DEV_INDEX).
    /// Since 5.9.
    pub ibdev_index: u32,
    /// Zero.
    pub reserved1: u32,
}

layout!(QueryAddrResponse, size 280, align 8, {
    node_guid: 0, port_num: 8, reserved: 9, pkey: 10, src_size: 12, dst_size: 14, src_addr: 16,
    dst_addr: 144, ibdev_index: 272, reserved1: 276,
});

impl Default for QueryAddrResponse {
    fn default() -> Self {
        Self::new_zeroed()
    }
}
