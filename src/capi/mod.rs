//! The C interface: the functions of the man pages, for `libuverbs.a` and `libuverbs.so`.
//!
//! Names, signatures, structure layouts and error conventions are rdma-core's, so that a program
//! written for `<infiniband/verbs.h>`, `<infiniband/mlx5dv.h>` and `<infiniband/umad.h>` links with
//! this library in place of theirs. `uverbs.h` beside this file declares the same for those who have
//! no rdma-core, and is the list of what is exported. Nothing here decides anything: it hands
//! arguments down to the queries and puts answers and errors into C's form. `errno` stays as it was
//! but where a function says that it sets it, and nothing is written to stdout or stderr.
//!
//! What makes, changes or moves something (queue pairs, memory regions, …) is not there: a program
//! that wants it does not link.
//!
//! # In the place of `libibverbs.so.1`
//!
//! `src/capi/shared` makes of `libuverbs.a` a shared library whose symbols have rdma-core's versions
//! (`IBVERBS_1.1` and on, `MLX5_1.7` and on, `IBUMAD_1.0` and on), with links by the names of
//! rdma-core's libraries. (`libuverbs.so` of cargo-c has no versions, and `dlvsym` finds nothing in it.)
//! With it a program that is compiled already may run:
//!
//! - `LD_LIBRARY_PATH` with that folder: a program that uses only functions of `uverbs.h` runs as it
//!   is. One that wants another function ends: at once, if its version is missing (`version … not
//!   found`), else where it calls it (`symbol lookup error`). So does one that wants a function of
//!   `IBVERBS_1.0`'s old layout, or one that is private to a release of rdma-core's
//!   (`IBVERBS_PRIVATE_44`), as its own tools do.
//! - `LD_PRELOAD` of it: the functions of `uverbs.h` are this library's, all others rdma-core's. Queries are
//!   answered. On a context of this library nothing can be made: a protection domain, a queue, a
//!   region is NULL, with `errno` `EOPNOTSUPP` or what the kernel refuses a node with that is opened
//!   for reading. Nothing crashes. So a program that moves data, as NCCL and UCX do, has to be left
//!   with rdma-core.
//! - `dlopen` and `dlvsym`: as with `LD_LIBRARY_PATH`, and what is not there is NULL.
//!
//! A static library as cargo leaves it holds Rust's standard library, and so does every other that
//! was written in Rust: two of them do not link into one program, nor does one into a program written
//! in Rust (`rust_eh_personality` is defined twice). `src/capi/seal` hides what is not of the
//! interface; then they do. A Rust program is better off with the crate itself.
//!
//! # Under valgrind
//!
//! Memcheck does not know by itself what the ioctl of uverbs writes. On x86-64 and 64-bit Arm this
//! library says so after each call, as rdma-core does: memory that the kernel wrote counts as defined,
//! and memory that it did not write does not.
//!
//! # Deliberate differences
//!
//! A program sees these (and those of [`umad`]) when it is linked with this library in place of
//! rdma-core's:
//!
//! | | rdma-core 44 to 65 | here |
//! |---|---|---|
//! | `ibv_query_gid_table` with room for more than 2,047 entries | `-EINVAL` | answers |
//! | NULL in place of a device, a context or an answer | crashes, or `EFAULT` | `EINVAL` |
//! | `ibv_open_device` of a node that may not be opened | `ENOENT` if `/dev/char` has no link to it, after 5 s if it has none of it | `EACCES`, at once |
//! | list of devices after one was renamed | has the old name | has the new one |
//! | list after a device was added | has it in front | is in the kernel's order, always |
//! | a device whose provider is not installed, or newer than the library | is left out | is listed, and answers |
//! | a device that goes away while others are listed | may hide one of them | does not |
//! | `ibv_wr_opcode_str` of a number in a gap | NULL | `unknown` |
//! | `ibv_event_type_str` of the newest event | `unknown` before 65 | has its name |
//! | opening an mlx5 device | 10 firmware commands and more, doorbell pages | 2 commands; what `mlx5dv_devx_general_cmd` needs is opened when it is called |
//! | `SYSFS_PATH` of the environment | names files, while netlink tells the devices of this host | names the tree that everything is read from |
//! | what makes something, called by rdma-core's library on a context of ours | – | NULL, `EOPNOTSUPP` |
//! | warnings on stderr (`RLIMIT_MEMLOCK`, drivers) | written | none |
//!
//! And what this library leaves out: Linux before 5.10 answers no GID query (`EPROTONOSUPPORT`);
//! `mlx5dv_open_device` takes no file descriptors of capabilities (`EINVAL`); `max_qp_wr` on EFA is
//! the device's limit, not that of rdma-core's queues; `_ibv_query_comp_cntr_caps` is `EOPNOTSUPP`.

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
    let answer = caught(failed, body);
    nix::errno::Errno::set_raw(before);
    answer
}

/// As [`guarded`], of a function that returns a negative number where it fails: its body has set
/// `errno` to the reason then, which stays.
fn reasoned(failed: c_int, body: impl FnOnce() -> c_int) -> c_int {
    let before = nix::errno::Errno::last_raw();
    let answer = caught(failed, body);
    if answer >= 0 {
        nix::errno::Errno::set_raw(before);
    }
    answer
}

fn caught<T>(failed: T, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(failed)
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
