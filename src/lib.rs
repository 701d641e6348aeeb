//! RDMA devices, ports, GID tables and GUIDs of a Linux host, asked from the kernel directly.
//!
//! No libibverbs and no provider library: this crate encodes the kernel's uverbs ioctl itself and reads
//! RDMA netlink and sysfs.
//!
//! ```no_run
//! let context = uverbs::Host::new().open("mlx5_0")?;
//! for entry in context.query_gid_table()? {
//!     println!("{} {} {}", entry.port(), entry.index(), entry.gid());
//! }
//! # Ok::<(), uverbs::Error>(())
//! ```
//!
//! # Questions
//!
//! | you want | by ioctl | by sysfs |
//! |---|---|---|
//! | the devices | [`Host::devices`] | [`Host::rooted`] |
//! | one GID | [`Context::query_gid_ex`] | [`Sysfs::query_gid_ex`] |
//! | all GIDs | [`Context::query_gid_table`] | [`Sysfs::query_gid_table`] |
//! | a GID's network interface | [`Host::netdevs`] | – |
//! | a port | [`Context::query_port`] | [`Sysfs::query_port`] |
//! | its effective rate | [`Context::query_port_speed`] | – |
//! | the device's limits | [`Context::query_device`] | – |
//! | P_Keys | – | [`Sysfs::query_pkeys`] |
//! | its PCI function, NUMA node and board | – | [`Sysfs::hardware`] |
//! | GUIDs | [`Context::query_gid_ex`] of index 0 | [`umad`] |
//! | counters | – | [`host::CounterReader`], and RDMA netlink |
//! | the nodes that programs open | – | [`Host::nodes`] |
//! | what changes | [`Host::watch`], [`Context::async_events`] | [`Host::watch`] |
//! | an mlx5 port's vport | [`mlx5::query_port`] | – |
//! | what an mlx5 device's firmware knows | [`mlx5::devx`] | – |
//! | a request of your own | [`Context::submit`] | – |
//! | all of a host | [`Host::inventory`] | [`Host::rooted`] |
//!
//! [`host::Reader`] chooses between ioctl and sysfs and says which one answered. Four modules work on
//! answers and ask no device: [`inventory`], [`choose`], [`check`] and [`fleet`]. [`watch`] asks again
//! whenever something may have changed.
//!
//! # Names
//!
//! A method that asks the kernel is named after the C function or the kernel's method, without the prefix
//! (`ibv_query_port` is [`Context::query_port`]); values have Rust names; the C name of both finds them in
//! the search of these pages.
//!
//! # Errors
//!
//! What asks the kernel returns [`Error`]: a text for people, a [`Cause`](error::Cause) and predicates for
//! programs, an errno as `i32` for C. See [`error`]. Only [`umad::strict`] has errors of its own, which are
//! libibumad's.
//!
//! # Features
//!
//! | feature | default | adds |
//! |---|---|---|
//! | `capi` | no | [`capi`](https://docs.rs/uverbs/latest/uverbs/capi/index.html): the C functions of the man pages, for `libuverbs.a` and `libuverbs.so` |
//! | `serde` | no | `Serialize` and `Deserialize` of an [`Inventory`] and what is in it, `Serialize` of findings and choices, and [`inventory::Snapshots`](https://docs.rs/uverbs/latest/uverbs/inventory/struct.Snapshots.html), which reads what `uverbs snapshot` writes |
#![cfg(target_os = "linux")]

pub use uverbs_uapi as uapi;

// Values, without a question to anybody.
pub mod counter;
pub mod device;
pub mod driver;
pub mod error;
#[cfg(feature = "serde")]
mod form;
pub mod gid;
pub mod guid;
pub mod hardware;
#[cfg(test)]
mod linear;
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
mod kernel;
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
pub mod fleet;
pub mod inventory;
pub mod watch;

#[cfg(feature = "capi")]
pub mod capi;

#[cfg(doc)]
pub mod docs;

pub use context::Context;
pub use device::Device;
pub use error::{Error, Result};
pub use gid::{Gid, GidEntry, GidType};
pub use guid::Guid;
pub use host::Host;
pub use inventory::Inventory;
#[cfg(feature = "simulated-kernel")]
#[doc(hidden)]
pub use ioctl::sys::simulated;
#[cfg(feature = "simulated-kernel")]
#[doc(hidden)]
pub use netlink::replies;
pub use sysfs::Sysfs;

/// The README's example compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
