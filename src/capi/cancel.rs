//! Threads that another thread cancels: see `pthread_cancel(3)`.
//!
//! The C library ends such a thread at its next cancellation point, which many functions of the C library are. With glibc
//! this unwinds the thread's stack, and Rust code in between aborts the process. So in the functions of the C interface no
//! thread is cancelled, except in `ibv_get_async_event`, which waits. (The asynchronous type of cancellation is not for
//! functions that are not made for it.)

use core::ffi::c_int;

/// `PTHREAD_CANCEL_DISABLE` of glibc and musl.
const DISABLE: c_int = 1;

// Miri has no cancellation.
#[cfg(not(miri))]
unsafe extern "C" {
    fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
}

/// As long as this exists, this thread is not cancelled.
pub(super) struct Uncancelled {
    before: c_int,
}

impl Uncancelled {
    pub(super) fn new() -> Self {
        Self { before: exchange(DISABLE) }
    }
}

impl Drop for Uncancelled {
    fn drop(&mut self) {
        exchange(self.before);
    }
}

/// Sets whether this thread can be cancelled. Returns what was set before.
#[cfg(not(miri))]
fn exchange(state: c_int) -> c_int {
    let mut before = state;
    // SAFETY: `before` is an `int` of ours. The function changes nothing else, and is no cancellation point.
    unsafe { pthread_setcancelstate(state, &raw mut before) };
    before
}

#[cfg(miri)]
fn exchange(state: c_int) -> c_int {
    state
}
