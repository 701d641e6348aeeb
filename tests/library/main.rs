//! The library on a simulated kernel, for what a real kernel does not do on demand (more GIDs than one call
//! returns, senseless answers), and for the cost of a call.
//!
//! `tests/vm` uses real kernels.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

#[cfg(feature = "capi")]
#[expect(unsafe_code, reason = "it calls as C does")]
mod capi;
mod costs;
mod drivers;
mod gid_table;
mod hostile;
mod into;
mod kernel;
mod mlx5;
mod submit;
mod sysfs;
