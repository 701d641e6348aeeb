//! What a host is expected to be: a pattern that is made from hosts that are good ([`Gathering`]), or by hand, and what
//! of a host is different ([`compare`]).
//!
//! A [`HostPattern`] has groups of devices, each with what is allowed of its devices and their ports. What a pattern does
//! not name is not compared. What could not be read is never as expected: it is a finding, `expect-unread`.
//!
//! ```
//! use uverbs::check::expect::{Gathering, compare};
//!
//! let inventory = uverbs::Host::new().inventory(&Default::default());
//! let mut good = Gathering::default();
//! good.add(&inventory);
//! assert_eq!(compare(&inventory, &good.end().pattern, |_| true), []);
//! ```

mod compare;
mod expected;
mod field;
mod gather;
mod hosts;
mod network;
mod seen;

use std::collections::BTreeMap;

pub use compare::{Comparison, compare};
pub use field::{Allowed, Field, Form, Value};
pub use gather::{Gathered, Gathering, LeftOut};
pub use hosts::Hosts;

/// What a good host looks like.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostPattern {
    /// Whether each device has to be of a group.
    pub only_these_devices: bool,
    /// Groups of devices. A device is of the first group that selects it.
    pub devices: Vec<DevicePattern>,
}

/// A group of devices: which these are, how many, and what is allowed of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DevicePattern {
    /// Selects devices of these drivers, by name; empty for any.
    pub drivers: Vec<String>,
    /// Selects devices of these boards ([`Hardware::board_id`](crate::hardware::Hardware::board_id)); empty for any.
    pub boards: Vec<String>,
    /// Selects devices by name; empty for any.
    pub names: Vec<String>,
    /// How many devices the group has.
    pub count: Option<Allowed>,
    /// What is allowed of each device and each port.
    pub fields: BTreeMap<Field, Allowed>,
}

impl core::fmt::Display for DevicePattern {
    /// `mlx5 MT_0000000838: mlx5_0, mlx5_1`.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Self { drivers, boards, names, .. } = self;
        let kind = [drivers, boards].into_iter().filter(|own| !own.is_empty());
        let kind = kind.map(|own| own.join(" or ")).collect::<Vec<_>>().join(" ");
        match (kind.is_empty(), names.is_empty()) {
            (true, true) => f.write_str("any device"),
            (false, true) => f.write_str(&kind),
            (true, false) => f.write_str(&names.join(", ")),
            (false, false) => write!(f, "{kind}: {}", names.join(", ")),
        }
    }
}
