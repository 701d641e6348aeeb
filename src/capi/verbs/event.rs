//! Asynchronous events.

use core::ffi::{c_int, c_void};
use std::os::fd::{AsFd, AsRawFd};

use rustix::io::Errno;
use uverbs_uapi::event::AsyncEvent;
use zerocopy::FromZeros;

use super::abi::{self, AsyncEventElement};
use super::opened::Opened;
use crate::capi::failed;
use crate::context::{Event, EventType};

unsafe extern "C-unwind" {
    /// As rustix's, but the C library can cancel a thread that waits in it.
    fn read(fd: c_int, buf: *mut c_void, count: usize) -> isize;
}

/// Waits for an event, or takes one if `async_fd` was made non-blocking. A thread that waits can be cancelled. See
/// `ibv_get_async_event(3)`.
///
/// # Errors
/// −1 with `errno`: `EAGAIN` (no event), `EINTR`, `EINVAL` (NULL).
///
/// # Safety
/// `context` is NULL or open; `event` is NULL or points to a `struct ibv_async_event`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ibv_get_async_event(
    context: *mut abi::Context,
    event: *mut abi::AsyncEvent,
) -> c_int {
    // SAFETY: the same contract.
    let opened = unsafe { Opened::of(context) };
    let (Some(opened), false) = (opened, event.is_null()) else { return failed(Errno::INVAL) };
    let fd = opened.events().as_fd().as_raw_fd();
    let mut record = AsyncEvent::new_zeroed();
    // SAFETY: room for a record. A thread that is cancelled here is unwound through this function, which then has nothing
    // to drop.
    let length = unsafe { read(fd, (&raw mut record).cast(), size_of::<AsyncEvent>()) };
    // −1 has set `errno`.
    let Ok(length) = usize::try_from(length) else { return -1 };
    match Event::of(record, length) {
        Ok(told) => {
            // SAFETY: not NULL, so by the contract an event of the caller's.
            unsafe { event.write(in_c(told)) };
            0
        }
        Err(cause) => failed(cause.as_errno()),
    }
}

fn in_c(told: Event) -> abi::AsyncEvent {
    let element = if is_of_an_object(told.event_type) {
        let address = usize::try_from(told.element).unwrap_or_default();
        AsyncEventElement { object: core::ptr::without_provenance_mut::<c_void>(address) }
    } else {
        let mut element = AsyncEventElement { object: core::ptr::null_mut() };
        element.port_num = c_int::try_from(told.element).unwrap_or(c_int::MAX);
        element
    };
    abi::AsyncEvent { element, event_type: told.event_type.0 }
}

/// Events of queues hold the pointer that the queue was made with; other events hold a port.
fn is_of_an_object(event_type: EventType) -> bool {
    matches!(event_type.0, 0..=7 | 14..=16 | 19)
}

/// Acknowledges an event. Events of devices and ports need nothing, and this library makes no queues,
/// which have other events. See `ibv_ack_async_event(3)`.
#[unsafe(no_mangle)]
pub extern "C" fn ibv_ack_async_event(_event: *mut abi::AsyncEvent) {}
