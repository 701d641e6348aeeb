//! The Linux kernel's RDMA ABI as plain data: the uverbs ioctl, its `DEVICE` object, each driver's
//! `GET_CONTEXT` blobs, mlx5's own methods and firmware commands, asynchronous events, RDMA netlink,
//! a part of the connection manager and the constants of umad.
//!
//! Every structure holds only integers and byte arrays, and names its reserved fields. Its size, its
//! alignment and the offset of each field are checked at compile time. Sets of numbers that a newer kernel
//! may extend (states, types, events) are constants, never enums, so an unknown number stays a number.
//! `tests/kernel_headers` compares everything except the firmware commands with the C headers of the
//! machine that runs the tests. `tests/mlx5_ifc.rs` compares the firmware commands with an internal header
//! of the kernel.
//!
//! The crate makes no system call, allocates nothing and has no `unsafe` code. The crate `uverbs` fills and
//! sends requests.
//!
//! GIDs and GUIDs are byte arrays in network order. Firmware commands are
//! big-endian. Everything else is in the byte order of the machine.
#![no_std]
#![forbid(unsafe_code)]

/// Pins the layout of an ABI structure at compile time.
///
/// The list must name every field: its pattern has no `..`, so a missing field does not compile.
macro_rules! layout {
    ($name:ident, size $size:literal, align $align:expr, {
        $($field:ident: $offset:literal),+ $(,)?
    }) => {
        const _: () = {
            fn _names_every_field($name { $($field: _),+ }: $name) {}
            assert!(size_of::<$name>() == $size, "size");
            assert!(align_of::<$name>() == $align, "alignment");
            $(assert!(
                core::mem::offset_of!($name, $field) == $offset,
                concat!("offset of ", stringify!($field))
            );)+
        };
    };
}

pub mod capability;
pub mod cm;
pub mod device;
pub mod driver;
pub mod event;
pub mod ioctl;
pub mod mlx5;
pub mod mlx5_firmware;
pub mod netlink;
pub mod umad;
