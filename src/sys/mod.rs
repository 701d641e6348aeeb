//! The system calls of the library, and its only unsafe code.
//!
//! [`frame`] holds a uverbs request whose every pointer is a live borrow;
//! [`kernel`] hands it to the kernel (or, in tests, to a simulated one).
//! What a request *means* is not known here: see [`crate::command`] and the query modules.
#![expect(
    unsafe_code,
    reason = "the one module that makes system calls which the type system cannot check"
)]

pub(crate) mod frame;
pub(crate) mod kernel;
#[cfg(feature = "simulated-kernel")]
pub mod simulated;
