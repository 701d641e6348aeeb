//! The library against a kernel made of test code: what no real kernel can be made to do on
//! demand (more GIDs than one call returns, answers that make no sense), and what a call costs.
//!
//! Real kernels are asked by `tests/vm`.
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
