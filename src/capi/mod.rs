//! The C interface: the functions of the man pages, for `libuverbs.a` and `libuverbs.so`.
//!
//! Names, signatures, structure layouts and error conventions are rdma-core's, so that a program
//! written for `<infiniband/verbs.h>`, `<infiniband/mlx5dv.h>` and `<infiniband/umad.h>` links with
//! this library in place of theirs. `uverbs.h` beside this file declares the same for those who have
//! no rdma-core, and is the list of what is exported. Nothing here decides anything: it hands
//! arguments down to the queries and puts answers and errors into C's form.

#![expect(unsafe_code, reason = "C hands pointers, and only its contract says what they point to")]

pub mod umad;

use core::ffi::c_int;
use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

use rustix::io::Errno;

/// Runs the body of a C function. A panic, which would be a mistake of ours, does not cross into C:
/// the function returns `failed`.
fn guarded<T>(failed: T, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(failed)
}

/// Sets C's `errno`.
fn set_errno(errno: Errno) {
    nix::errno::Errno::set_raw(errno.raw_os_error());
}

/// The number of an errno, as C returns it.
fn number(errno: Errno) -> c_int {
    errno.raw_os_error()
}
