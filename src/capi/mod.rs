//! The C interface: the functions of the man pages, for `libuverbs.a` and `libuverbs.so`.
//!
//! Names, signatures, structure layouts and error conventions are rdma-core's, so that a program
//! written for `<infiniband/verbs.h>`, `<infiniband/mlx5dv.h>` and `<infiniband/umad.h>` links with
//! this library instead of theirs. `uverbs.h` in this folder declares the same for systems without
//! rdma-core, and lists all exported functions. The C interface makes no decisions: it passes arguments
//! to the queries, and converts answers and errors to C's form. `errno` does not change unless a
//! function says that it sets it. Nothing is written to stdout, and to stderr only after
//! [`umad_debug`](umad::umad_debug) of 1 or more.
//!
//! Functions that make, change or move something (queue pairs, memory regions, …) do not exist here. A
//! program that uses them does not link.
//!
//! # Instead of `libibverbs.so.1`
//!
//! `src/capi/shared` turns `libuverbs.a` into a shared library whose symbols have rdma-core's versions
//! (since `IBVERBS_1.0`, `MLX5_1.7` and `IBUMAD_1.0`), with links named like rdma-core's libraries.
//! (The `libuverbs.so` of cargo-c has no versions, so `dlvsym` finds nothing in it.) A program that is
//! already compiled can use it in three ways:
//!
//! - `LD_LIBRARY_PATH` with that folder: a program that uses only functions of `uverbs.h` runs
//!   unchanged. A program that uses another function ends. It ends at the start if the version is
//!   missing (`version … not found`), or if the program was linked with `-z now`; otherwise when it calls
//!   the function (`symbol lookup error`). This also applies to functions with the old layout of
//!   `IBVERBS_1.0`, and to functions that are private to a release of rdma-core (`IBVERBS_PRIVATE_44`),
//!   which rdma-core's own tools use.
//! - `LD_PRELOAD` of the library: the functions of `uverbs.h` come from this library, all others from
//!   rdma-core. Queries are answered. On a context of this library nothing can be made: a protection
//!   domain, a queue or a region is NULL, and `errno` is `EOPNOTSUPP` or the kernel's error for a node
//!   that is open only for reading. rdma-core's tools take the type of a GID from a private function of
//!   their release, `ibv_query_gid_type`, which does not come from here and fails on such a context. So
//!   `ibv_devinfo -v` shows no GIDs, and `ibv_init_ah_from_wc` fails. Nothing crashes. A program that moves
//!   data, such as NCCL or UCX, must use rdma-core.
//! - `dlopen` and `dlvsym`: as with `LD_LIBRARY_PATH`. A missing function is NULL.
//!
//! A static library that cargo built contains Rust's standard library. Two such libraries do not link into
//! one program, and one does not link into a program written in Rust (`rust_eh_personality` is defined
//! twice). `src/capi/seal` hides everything except the interface, and then they link. A Rust program
//! should use the crate itself.
//!
//! # Under valgrind
//!
//! Memcheck does not know what the uverbs ioctl writes. On x86-64 and 64-bit Arm this library marks the
//! memory that the kernel wrote as defined after each call, as rdma-core does. Other memory is not marked.
//!
//! # Deliberate differences
//!
//! A program that is linked with this library instead of rdma-core's sees these differences, and those of
//! [`umad`]:
//!
//! | | rdma-core 44 to 65 | here |
//! |---|---|---|
//! | `ibv_query_gid_table` with room for more than 2,047 entries | `-EINVAL` | answers |
//! | cancellation points (`pthread_cancel(3)`) | most functions, which may lose what they have open | only `ibv_get_async_event` |
//! | NULL instead of a device, a context or an answer | crashes, or `EFAULT` | `EINVAL`, or what `uverbs.h` says |
//! | `ibv_open_device` of a node without permission to open it | `ENOENT` if `/dev/char` has no link to it; waits 5 s if that folder exists | `EACCES`, at once |
//! | list of devices after one was renamed | has the old name | has the new one |
//! | list after a device was added | has it first | is always in the kernel's order |
//! | a device whose provider is not installed, or newer than the library | is left out | is listed, and answers |
//! | a device whose name is no UTF-8, or has a comma, a colon or unseen characters | is listed | is left out, or an error if there is no other |
//! | a device that is removed during the listing | may hide another device | hides no other device |
//! | `ibv_wr_opcode_str` of a number in a gap | NULL | `unknown` |
//! | `ibv_event_type_str` of the newest event | `unknown` before 65 | has its name |
//! | opening an mlx5 device | 10 or more firmware commands, doorbell pages | 2 commands; `mlx5dv_devx_general_cmd` opens what it needs when it is called |
//! | `SYSFS_PATH` in the environment | names files, but the devices come from this host's netlink | names the tree that devices and files are read from; the `umad_` functions read `/sys` in both |
//! | no file of a device of the list can be opened (`EMFILE`, `ENFILE`), or the kernel has no memory for it (`ENOMEM`) | may leave it out, or fail with `ENOSYS` | NULL with that `errno` |
//! | without RDMA netlink, a device of which a file of sysfs cannot be read | may be listed without what the file says | is left out |
//! | `ibv_import_device` if the devices cannot be listed | `ENODEV` | the `errno` of `ibv_get_device_list` |
//! | rdma-core's library makes something on a context of this library | – | NULL, `EOPNOTSUPP` |
//! | warnings on stderr (`RLIMIT_MEMLOCK`, drivers) | written | none |
//!
//! This library does not support the following: GID queries on Linux before 5.10 (`EPROTONOSUPPORT`);
//! file descriptors of capabilities in `mlx5dv_open_device` (`EINVAL`). `max_qp_wr` on EFA is the
//! device's limit, not that of rdma-core's queues; `_ibv_query_comp_cntr_caps` is `EOPNOTSUPP`. If `malloc` fails, the
//! process is usually aborted, as by Rust's standard library. `ENOMEM` is the kernel's, or of memory that C frees.

#![expect(unsafe_code, reason = "C hands pointers, and only its contract says what they point to")]

mod cancel;
mod layout;
pub mod mlx5;
pub mod umad;
pub mod verbs;

use core::ffi::c_int;
use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

use rustix::io::Errno;

use self::cancel::Uncancelled;

/// Runs the body of a C function that does not change `errno`. A panic, which would be a bug here, does not
/// cross into C: the function returns `failed`. The thread is not cancelled meanwhile.
fn guarded<T>(failed: T, body: impl FnOnce() -> T) -> T {
    let before = nix::errno::Errno::last_raw();
    let answer = caught(failed, body);
    nix::errno::Errno::set_raw(before);
    answer
}

/// As [`guarded`], for a function that returns a negative number on failure. Its body has then set `errno`,
/// which is kept.
fn reasoned(failed: c_int, body: impl FnOnce() -> c_int) -> c_int {
    let before = nix::errno::Errno::last_raw();
    let answer = caught(failed, body);
    if answer >= 0 {
        nix::errno::Errno::set_raw(before);
    }
    answer
}

fn caught<T>(failed: T, body: impl FnOnce() -> T) -> T {
    let _whole = Uncancelled::new();
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(failed)
}

/// Sets C's `errno`.
fn set_errno(errno: Errno) {
    nix::errno::Errno::set_raw(errno.raw_os_error());
}

/// Sets `errno` and returns −1.
fn failed(errno: Errno) -> c_int {
    set_errno(errno);
    -1
}

/// An errno as C's number.
fn number(errno: Errno) -> c_int {
    errno.raw_os_error()
}

/// The same bits with a sign, as C's older structures have them.
fn signed(value: u32) -> c_int {
    c_int::from_ne_bytes(value.to_ne_bytes())
}

/// Writes an answer into a C program's structure, which may belong to another release: as much as fits,
/// followed by zeros.
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
