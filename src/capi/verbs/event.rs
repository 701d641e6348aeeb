//! Asynchronous events.

use core::ffi::{c_int, c_void};

use rustix::io::Errno;

use super::abi::{self, AsyncEventElement};
use super::opened::Opened;
use crate::capi::{failed, guarded};
use crate::context::{EventType, read_event};

/// Waits for an event, or takes one if `async_fd` was made non-blocking. See
/// `ibv_get_async_event(3)`.
///
/// # Errors
/// −1 with `errno`: `EAGAIN` (no event), `EINTR`, `EINVAL` (NULL).
///
/// # Safety
/// `context` is NULL or open; `event` is NULL or points to a `struct ibv_async_event`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_get_async_event(
    context: *mut abi::Context,
    event: *mut abi::AsyncEvent,
) -> c_int {
    // SAFETY: the same contract.
    let opened = unsafe { Opened::of(context) };
    let (Some(opened), false) = (opened, event.is_null()) else { return failed(Errno::INVAL) };
    let answer =
        guarded(Err(Errno::IO), || read_event(opened.events()).map_err(|cause| cause.as_errno()));
    match answer {
        Ok(told) => {
            let element = if is_of_an_object(told.event_type) {
                let address = usize::try_from(told.element).unwrap_or_default();
                AsyncEventElement { object: core::ptr::without_provenance_mut::<c_void>(address) }
            } else {
                let mut element = AsyncEventElement { object: core::ptr::null_mut() };
                element.port_num = c_int::try_from(told.element).unwrap_or(c_int::MAX);
                element
            };
            let told = abi::AsyncEvent { element, event_type: told.event_type.0 };
            // SAFETY: not NULL, so by the contract an event of the caller's.
            unsafe { event.write(told) };
            0
        }
        Err(errno) => failed(errno),
    }
}

/// Events of queues hold the pointer that the queue was made with; other events hold a port.
fn is_of_an_object(event_type: EventType) -> bool {
    matches!(event_type.0, 0..=7 | 14..=16 | 19)
}

/// Acknowledges an event. Events of devices and ports need nothing, and this library makes no queues,
/// which have other events. See `ibv_ack_async_event(3)`.
#[unsafe(no_mangle)]
pub extern "C" fn ibv_ack_async_event(_event: *mut abi::AsyncEvent) {}
