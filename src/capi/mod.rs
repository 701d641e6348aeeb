//! The C interface: the functions of the man pages, for `libuverbs.a` and `libuverbs.so`.
//!
//! Names, signatures, structure layouts and error conventions are rdma-core's, so that a program
//! written for `<infiniband/verbs.h>`, `<infiniband/mlx5dv.h>` and `<infiniband/umad.h>` links with
//! this library in place of theirs. `uverbs.h` beside this file declares the same for those who have
//! no rdma-core, and is the list of what is exported. Nothing here decides anything: it hands
//! arguments down to the queries and puts answers and errors into C's form.

#![expect(unsafe_code, reason = "C hands pointers, and only its contract says what they point to")]

pub mod mlx5;
pub mod umad;
pub mod verbs;

use core::ffi::c_int;
use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

use rustix::io::Errno;

/// Runs the body of a C function, which leaves `errno` as it was. A panic, which would be a mistake of
/// ours, does not cross into C: the function returns `failed`.
fn guarded<T>(failed: T, body: impl FnOnce() -> T) -> T {
    let before = nix::errno::Errno::last_raw();
    let answer = catch_unwind(AssertUnwindSafe(body)).unwrap_or(failed);
    nix::errno::Errno::set_raw(before);
    answer
}

/// Sets C's `errno`.
fn set_errno(errno: Errno) {
    nix::errno::Errno::set_raw(errno.raw_os_error());
}

/// What functions return that tell the reason by `errno`.
fn failed(errno: Errno) -> c_int {
    set_errno(errno);
    -1
}

/// The number of an errno, as C returns it.
fn number(errno: Errno) -> c_int {
    errno.raw_os_error()
}

/// Writes an answer into a structure of a C program that may be of another release: as much as
/// there is room for, and zeros behind.
///
/// # Safety
/// `target` has room for `room` bytes.
unsafe fn fill(target: *mut u8, room: usize, answer: &[u8]) {
    let length = room.min(answer.len());
    // SAFETY: by the contract `length` bytes can be written, and memory of C is not memory of ours.
    unsafe { target.copy_from_nonoverlapping(answer.as_ptr(), length) };
    // SAFETY: at most at the end of the same memory.
    let rest = unsafe { target.add(length) };
    // SAFETY: the rest of that memory.
    unsafe { rest.write_bytes(0, room - length) };
}
