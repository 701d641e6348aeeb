//! RDMA devices, ports, GID tables and GUIDs of a Linux host, asked from the kernel directly.
//!
//! No libibverbs, no provider library: the library encodes the kernel's uverbs ioctl itself, reads
//! RDMA netlink and sysfs, and needs nothing else at run time.
//!
//! ```no_run
//! use uverbs::host::Host;
//!
//! let mut host = Host::new();
//! for device in host.devices()? {
//!     let context = uverbs::context::Context::open(&device)?;
//!     for entry in context.query_gid_table()? {
//!         println!("{}:{} {} {}", device.name, entry.port(), entry.index(), entry.gid());
//!     }
//! }
//! # Ok::<(), uverbs::Error>(())
//! ```
//!
//! | to know | by ioctl | by sysfs |
//! |---|---|---|
//! | one GID | [`Context::query_gid_ex`] | [`Sysfs::query_gid_ex`] |
//! | all GIDs | [`Context::query_gid_table`] | [`Sysfs::query_gid_table`] |
//! | a port | [`Context::query_port`] | [`Sysfs::query_port`] |
//! | its effective rate | [`Context::query_port_speed`] | – |
//! | the device's limits | [`Context::query_device`] | – |
//! | P_Keys | – | [`Sysfs::query_pkeys`] |
//! | GUIDs | [`Context::query_gid_ex`] of index 0 | [`umad`] |
//! | what changes | [`Context::async_events`] | – |
//! | an mlx5 port's vport | [`mlx5::query_port`] | – |
//! | what an mlx5 device's firmware knows | [`mlx5::devx`] | – |
//!
//! [`reader::Reader`] chooses between the two and says which one answered. Above these stand three
//! modules that ask nothing themselves: [`inventory`], all that is known of a host as plain data;
//! [`choose`], which GID to use and which NCCL and UCX take, with reasons; and [`check`], what is wrong.
//!
//! [`Context::query_gid_ex`]: context::Context::query_gid_ex
//! [`Context::query_gid_table`]: context::Context::query_gid_table
//! [`Context::query_port`]: context::Context::query_port
//! [`Context::query_port_speed`]: context::Context::query_port_speed
//! [`Context::query_device`]: context::Context::query_device
//! [`Context::async_events`]: context::Context::async_events
//! [`Sysfs::query_gid_ex`]: sysfs::Sysfs::query_gid_ex
//! [`Sysfs::query_gid_table`]: sysfs::Sysfs::query_gid_table
//! [`Sysfs::query_port`]: sysfs::Sysfs::query_port
//! [`Sysfs::query_pkeys`]: sysfs::Sysfs::query_pkeys
#![cfg(target_os = "linux")]

pub use uverbs_uapi as uapi;

// Values, without a question to anybody.
pub mod device;
pub mod driver;
pub mod error;
pub mod gid;
pub mod guid;
mod mlx5_firmware;
mod named;
pub mod netdev;
pub mod pkey;
pub mod port;
pub mod selector;
mod text;

// The kernel's interfaces.
mod cm;
pub mod ioctl;
mod netlink;
pub mod sysfs;

// Questions: to one open device, and about all of a host.
pub mod context;
pub mod host;
pub mod mlx5;
pub mod umad;

// What is made of the answers.
pub mod check;
pub mod choose;
pub mod inventory;

#[cfg(feature = "capi")]
pub mod capi;

pub use error::{Error, Result};
#[cfg(feature = "simulated-kernel")]
#[doc(hidden)]
pub use ioctl::sys::simulated;
#[cfg(feature = "simulated-kernel")]
#[doc(hidden)]
pub use netlink::replies;

/// The README's example compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
