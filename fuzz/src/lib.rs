//! Fuzz targets of `uverbs`: one module each, with a function `run` that takes any bytes and panics
//! where the library broke a promise.
//!
//! `tests/run fuzz` replays the corpora with stable Rust and then fuzzes; see there.

pub mod c;
pub mod c_arguments;
pub mod encoder;
mod guarded;
mod hostile;
pub mod hostile_kernel;
mod model;
pub mod netlink;
pub mod snapshots;
pub mod syntax;
pub mod sysfs;

/// Makes the program of a target: a fuzzer, or without one a program that replays the files that it is
/// given.
#[macro_export]
macro_rules! target {
    ($name:ident) => {
        #[cfg(fuzzing)]
        libfuzzer_sys::fuzz_target!(|data: &[u8]| $crate::$name::run(data));
        #[cfg(not(fuzzing))]
        fn main() -> std::io::Result<()> {
            for path in std::env::args_os().skip(1) {
                $crate::$name::run(&std::fs::read(path)?);
            }
            Ok(())
        }
    };
}

/// A target's function.
pub type Run = fn(&[u8]);

/// Every target by its name.
pub const TARGETS: [(&str, Run); 7] = [
    ("encoder", encoder::run),
    ("hostile_kernel", hostile_kernel::run),
    ("sysfs", sysfs::run),
    ("netlink", netlink::run),
    ("snapshots", snapshots::run),
    ("syntax", syntax::run),
    ("c_arguments", c_arguments::run),
];
