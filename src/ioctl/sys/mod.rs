//! The system calls of the library, and its only unsafe code.
//!
//! [`frame`] holds a uverbs request whose every address is a live borrow; [`outputs`] knows which
//! memory the kernel writes for which method; [`kernel`] checks one against the other and hands
//! the request over (or, in tests, to a simulated kernel); [`memcheck`] lets valgrind know what came
//! of it. What a request *means* is not known here: see [`crate::ioctl`] and the modules that ask.
#![expect(
    unsafe_code,
    reason = "the one module that makes system calls which the type system cannot check"
)]

mod access;
pub(crate) mod frame;
pub(crate) mod kernel;
mod memcheck;
mod outputs;
#[cfg(feature = "simulated-kernel")]
pub mod simulated;
