//! An emulated ConnectX PCI function for the kernel's own, unmodified mlx5 drivers.
//!
//! [`description`] says what the function is (mode, ports, tables, addresses), [`control`] what may
//! be asked of it while it runs (other tables, failures, events, its log of commands). Both are
//! plain data, shared by the host that serves the function and the guest that tests against it.

pub mod control;
pub mod description;
