//! Functions in the places of those for queues and memory, which this library does not have. They are
//! called where a program, or rdma-core's own library beside this one, asks for a queue or memory on a
//! context of ours: it learns that there are none.

use core::cell::UnsafeCell;
use core::ffi::{c_int, c_void};
use core::ptr::null_mut;

use rustix::io::Errno;

use super::abi::ContextOps;
use crate::capi::{number, set_errno};

type Table = [*mut c_void; 30];

/// What makes something: NULL, and `errno` is `EOPNOTSUPP`.
unsafe extern "C" fn nothing() -> *mut c_void {
    set_errno(Errno::OPNOTSUPP);
    null_mut()
}

/// What answers with an errno: `EOPNOTSUPP`.
unsafe extern "C" fn refused() -> c_int {
    set_errno(Errno::OPNOTSUPP);
    number(Errno::OPNOTSUPP)
}

/// What answers with a number of completions: a negative one.
unsafe extern "C" fn no_completions() -> c_int {
    set_errno(Errno::OPNOTSUPP);
    -number(Errno::OPNOTSUPP)
}

/// Where in [`ContextOps`] a function is, behind the two that query; the others make something, or
/// are called by no program.
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

/// More words than `struct verbs_ex_private` of any release has.
const WORDS: usize = 256;

/// For rdma-core's library, if it is there, too, and is given a context of ours: it looks here for
/// `struct verbs_ex_private`, which has the functions of its drivers, in each release at other places.
/// Whichever it takes makes nothing. (Those that make nothing anyway want what others made.)
#[repr(transparent)]
struct Private(UnsafeCell<[unsafe extern "C" fn() -> *mut c_void; WORDS]>);

// SAFETY: nothing here reads or writes it; rdma-core's library, whose it is then, may.
unsafe impl Sync for Private {}

static PRIVATE: Private = Private(UnsafeCell::new([nothing; WORDS]));

/// Its address.
pub(super) fn private() -> *mut c_void {
    PRIVATE.0.get().cast()
}
