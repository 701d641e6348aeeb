//! The Linux kernel's RDMA ABI as plain data: the uverbs ioctl, its `DEVICE` object, each driver's
//! `GET_CONTEXT` blobs, mlx5's own methods and firmware commands, asynchronous events, RDMA netlink,
//! a part of the connection manager and the constants of umad.
//!
//! Every structure holds integers and byte arrays only, has its reserved fields written out, and
//! is pinned at compile time: its size, its alignment and the offset of each field. Numbers that a
//! newer kernel may add to (states, types, events) are constants, never enums, so that an unknown
//! number stays a number. `tests/kernel_headers` compares all of it with the C headers of the
//! machine that runs the tests, but for the firmware commands: `tests/mlx5_ifc.rs` compares those
//! with a header of the kernel's own.
//!
//! The crate makes no system call, allocates nothing and has no `unsafe` code. Filling a request
//! and sending it is the work of the crate `uverbs`.
//!
//! GIDs and GUIDs are arrays of bytes in network order, as they travel. Firmware commands are
//! big-endian. Everything else is in the byte order of the machine.
#![no_std]
#![forbid(unsafe_code)]

/// Pins the layout of an ABI structure at compile time.
///
/// The list must name every field: the pattern in it has no `..`, so a field that is left out does
/// not compile.
macro_rules! layout {
    ($name:ident, size $size:literal, align $align:literal, {
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

pub mod cm;
pub mod device;
pub mod driver;
pub mod event;
pub mod ioctl;
pub mod mlx5;
pub mod mlx5_firmware;
pub mod netlink;
pub mod umad;
