//! The one ioctl of `/dev/infiniband/uverbsN` and the frame of its request: a header, then an array
//! of attributes.
//!
//! Kernel headers `rdma/rdma_user_ioctl_cmds.h` and `rdma/ib_user_ioctl_cmds.h`. In the kernel in
//! this form since 5.0, unchanged to 7.3. The objects, methods and attributes are in
//! [`device`](crate::device), [`event`](crate::event) and the drivers' modules.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The request number of the ioctl: magic 0x1b, number 1, read and write, 24 bytes.
///
/// Its size is that of [`IoctlHeader`] without the attributes. The top bit is set, which matters for a C
/// library that takes the number as `int` (musl).
pub const RDMA_VERBS_IOCTL: u32 = 0xC018_1B01;

/// Start of every request. C name `struct ib_uverbs_ioctl_hdr`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
#[repr(C, align(8))]
pub struct IoctlHeader {
    /// Bytes of the request: 24 for the header and 16 for each attribute, at most one page.
    pub length: u16,
    /// The object that is asked, one of [`object`](crate::device::object) or a driver's own.
    pub object_id: u16,
    /// The method of that object.
    pub method_id: u16,
    /// How many [`Attribute`]s follow.
    pub num_attrs: u16,
    /// Zero, else `EPROTONOSUPPORT`.
    pub reserved1: u64,
    /// Which driver the caller takes the device for, one of
    /// [`driver_id`](crate::driver::driver_id). A wrong one is `EINVAL`.
    pub driver_id: u32,
    /// Zero, else `EPROTONOSUPPORT`.
    pub reserved2: u32,
}

layout!(IoctlHeader, size 24, align 8, {
    length: 0,
    object_id: 2,
    method_id: 4,
    num_attrs: 6,
    reserved1: 8,
    driver_id: 16,
    reserved2: 20,
});

/// One attribute of a request. C name `struct ib_uverbs_attr`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
#[repr(C, align(8))]
pub struct Attribute {
    /// Which attribute of the method this is.
    pub attr_id: u16,
    /// Bytes of the payload; 0 for an object handle or a file descriptor.
    pub len: u16,
    /// [`ATTR_F_MANDATORY`] from the caller, [`ATTR_F_VALID_OUTPUT`] from the kernel.
    pub flags: u16,
    /// The chosen variant, for attributes that are a choice; otherwise zero.
    pub elem_id: u8,
    /// Zero.
    pub reserved: u8,
    /// A pointer, a handle, a file descriptor, or an input payload of up to [`INLINE_LEN`] bytes,
    /// first byte first.
    pub data: u64,
}

layout!(Attribute, size 16, align 8, {
    attr_id: 0,
    len: 2,
    flags: 4,
    elem_id: 6,
    reserved: 7,
    data: 8,
});

/// Set by the caller: a kernel that does not know the attribute shall refuse the request
/// (`EPROTONOSUPPORT`) and not skip the attribute.
pub const ATTR_F_MANDATORY: u16 = 1;

/// Set by the kernel: it has written this output.
pub const ATTR_F_VALID_OUTPUT: u16 = 2;

/// The longest input payload that fits into [`Attribute::data`]. A payload up to this length *must* be
/// sent there, a longer one by its address. Outputs always use an address.
pub const INLINE_LEN: usize = 8;

/// Position of the bit that distinguishes a driver's objects, methods and attributes from the core's.
pub const ID_NS_SHIFT: u32 = 12;

/// The first id of a driver's own objects, methods and attributes.
pub const DRIVER_NAMESPACE: u16 = 1 << ID_NS_SHIFT;

/// Data for the driver, in core methods that pass such data on. In a driver's own method the same number
/// has another meaning.
pub const ATTR_UHW_IN: u16 = 0x1000;

/// Answer of the driver, in core methods that pass such data on.
pub const ATTR_UHW_OUT: u16 = 0x1001;

// Direction (read and write), size, magic, number: what the kernel's `_IOWR` makes of them.
const _: () = assert!(RDMA_VERBS_IOCTL == (3 << 30) | (24 << 16) | (0x1B << 8) | 1);
const _: () = assert!(RDMA_VERBS_IOCTL == 3_222_805_249);
const _: () = assert!(DRIVER_NAMESPACE == 0x1000);
const _: () = assert!(ATTR_UHW_IN == DRIVER_NAMESPACE && ATTR_UHW_OUT == DRIVER_NAMESPACE + 1);
