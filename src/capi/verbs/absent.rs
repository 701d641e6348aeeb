//! Replacements for functions about queues and memory, which this library does not have. A program, or
//! rdma-core's own library in the same process, calls them when it asks for a queue or memory on a context
//! of this library. They fail.

use core::cell::UnsafeCell;
use core::ffi::{c_int, c_void};
use core::ptr::null_mut;

use rustix::io::Errno;

use super::abi::ContextOps;
use crate::capi::{number, set_errno};

type Table = [*mut c_void; 30];

/// For functions that make something: NULL, with `errno` `EOPNOTSUPP`.
unsafe extern "C" fn nothing() -> *mut c_void {
    set_errno(Errno::OPNOTSUPP);
    null_mut()
}

/// For functions that return an errno: `EOPNOTSUPP`.
unsafe extern "C" fn refused() -> c_int {
    set_errno(Errno::OPNOTSUPP);
    number(Errno::OPNOTSUPP)
}

/// For functions that return a number of completions: a negative number.
unsafe extern "C" fn no_completions() -> c_int {
    set_errno(Errno::OPNOTSUPP);
    -number(Errno::OPNOTSUPP)
}

/// Positions in [`ContextOps`] after the two queries. The other functions make something, or no program
/// calls them.
const REFUSED: [usize; 6] = [6, 7, 10, 18, 23, 24];
const POLL_CQ: usize = 9;

/// The rest of `struct ibv_context_ops`.
pub(super) fn ops() -> Table {
    let nothing = nothing as *const ();
    let refused = refused as *const ();
    let no_completions = no_completions as *const ();
    core::array::from_fn(|place| {
        let function = match place {
            POLL_CQ => no_completions,
            place if REFUSED.contains(&place) => refused,
            _ => nothing,
        };
        function.cast::<c_void>().cast_mut()
    })
}

const _: () = assert!(size_of::<ContextOps>() == 32 * size_of::<usize>());

/// More words than `struct verbs_ex_private` has in any release.
const WORDS: usize = 256;

type Function = unsafe extern "C" fn() -> *mut c_void;

/// For rdma-core's library in the same process, if it gets a context of this library. It looks here for
/// `struct verbs_ex_private` with the functions of its drivers, whose positions differ between releases.
/// None of these functions makes anything. (Other functions of drivers need what these would have made.)
/// Before them, in each release, are at least two words of bits: which questions the kernel does not know, and the
/// driver's number. With zeros the kernel is asked, and refuses a number that is not the driver's.
#[repr(transparent)]
struct Private(UnsafeCell<[Option<Function>; WORDS]>);

// SAFETY: nothing here reads or writes it; rdma-core's library, whose it is then, may.
unsafe impl Sync for Private {}

static PRIVATE: Private = Private(UnsafeCell::new({
    let mut words = [Some(nothing as Function); WORDS];
    words[0] = None;
    words[1] = None;
    words
}));

/// Its address.
pub(super) fn private() -> *mut c_void {
    PRIVATE.0.get().cast()
}
