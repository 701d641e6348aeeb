//! Another static library in Rust, for a program that links two.

use std::panic::catch_unwind;

/// Needs the standard library's allocator, panics and arguments.
#[unsafe(no_mangle)]
pub extern "C" fn other_arguments() -> i32 {
    catch_unwind(|| std::env::args().collect::<Vec<_>>().len() as i32).unwrap_or(-1)
}
