//! The event file of a ucontext: how to get one, and the records that are read from it.
//!
//! Kernel headers `rdma/ib_user_ioctl_cmds.h` (ids) and `rdma/ib_user_verbs.h` (the record). In the
//! kernel since 5.6. No header for user space has the event numbers: the kernel keeps them in its own
//! `rdma/ib_verbs.h` and passes them on unchanged. This module has only the events of devices and ports;
//! 0 to 7, 14 to 16 and 19 belong to queues.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Methods of [`object::ASYNC_EVENT`](crate::device::object::ASYNC_EVENT).
pub mod method {
    /// Opens one more event file of this ucontext. Attributes
    /// [`async_event_alloc`](super::async_event_alloc).
    pub const ASYNC_EVENT_ALLOC: u16 = 0;
}

/// Attributes of [`method::ASYNC_EVENT_ALLOC`].
pub mod async_event_alloc {
    /// Answer: the new file descriptor, written to the attribute's own
    /// [`data`](crate::ioctl::Attribute::data). Length 0, mandatory.
    pub const FD_HANDLE: u16 = 0;
}

/// One record of an event file; each read gives one. C name `struct ib_uverbs_async_event_desc`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
#[repr(C, align(8))]
pub struct AsyncEvent {
    /// What it happened to: the port number for events of a port, 0 for events of the device.
    pub element: u64,
    /// One of [`event_type`].
    pub event_type: u32,
    /// Zero.
    pub reserved: u32,
}

layout!(AsyncEvent, size 16, align 8, { element: 0, event_type: 8, reserved: 12 });

/// Values of [`AsyncEvent::event_type`] that concern a device or a port.
pub mod event_type {
    /// The device failed, or was removed (then the element is 0, and no event comes after it).
    pub const DEVICE_FATAL: u32 = 8;
    /// The port came up.
    pub const PORT_ACTIVE: u32 = 9;
    /// The port went down.
    pub const PORT_ERR: u32 = 10;
    /// The subnet manager gave the port another LID.
    pub const LID_CHANGE: u32 = 11;
    /// The port's `P_Key` table changed.
    pub const PKEY_CHANGE: u32 = 12;
    /// The subnet has another subnet manager.
    pub const SM_CHANGE: u32 = 13;
    /// The subnet manager asks clients to register again.
    pub const CLIENT_REREGISTER: u32 = 17;
    /// The port's GID table changed. Comes on RoCE ports only.
    pub const GID_CHANGE: u32 = 18;
    /// The speed of the device changed. In 7.2, not in 6.12.
    pub const DEVICE_SPEED_CHANGE: u32 = 20;
}
