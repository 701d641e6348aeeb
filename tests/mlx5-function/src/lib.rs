//! An emulated ConnectX PCI function for the kernel's own, unmodified mlx5 drivers.
//!
//! [`description`] describes the function (mode, ports, tables, addresses). [`control`] has the orders to it
//! while it runs (other tables, failures, events, its log of commands). Both are plain data, shared by the
//! host that serves the function and the guest that tests with it.
//!
//! With the feature `serve`, [`Function`] serves one over vfio-user, and [`requests`] takes orders
//! as lines of text. There is no data path: the drivers load, register their devices and answer
//! every query, but no packet is ever received, and those that are sent are lost.
//!
//! Inside, `server` speaks with the machine and `device` is where all meets: `config_space`, `bar`,
//! `memory`, `interrupts`, `event_queue` and `send_queue` are what the driver touches, `command` is
//! the firmware; `faults` and `log` are for tests.
#![forbid(unsafe_code)]

pub mod control;
pub mod description;
#[cfg(feature = "serve")]
pub mod requests;

#[cfg(feature = "serve")]
mod bar;
#[cfg(feature = "serve")]
mod bits;
#[cfg(feature = "serve")]
mod command;
#[cfg(feature = "serve")]
mod config_space;
#[cfg(feature = "serve")]
mod device;
#[cfg(feature = "serve")]
mod event_queue;
#[cfg(feature = "serve")]
mod faults;
#[cfg(feature = "serve")]
mod function;
#[cfg(feature = "serve")]
mod interrupts;
#[cfg(feature = "serve")]
mod log;
#[cfg(feature = "serve")]
mod memory;
#[cfg(feature = "serve")]
mod opcode;
#[cfg(feature = "serve")]
mod ring;
#[cfg(feature = "serve")]
mod send_queue;
#[cfg(feature = "serve")]
mod server;

#[cfg(feature = "serve")]
pub use function::Function;
