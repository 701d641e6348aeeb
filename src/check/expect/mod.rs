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
    /// `mlx5 MT_0000000838: mlx5_0, mlx5_1`. Of a long list it has the first eight, and how many more there are.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Self { drivers, boards, names, .. } = self;
        let kind = [drivers, boards].into_iter().filter(|own| !own.is_empty());
        let kind = kind.map(|own| first(own, " or ")).collect::<Vec<_>>().join(" ");
        match (kind.is_empty(), names.is_empty()) {
            (true, true) => f.write_str("any device"),
            (false, true) => f.write_str(&kind),
            (true, false) => f.write_str(&first(names, ", ")),
            (false, false) => write!(f, "{kind}: {}", first(names, ", ")),
        }
    }
}

/// How many of many are named.
const SHOWN: usize = 8;

/// The first of a list, and how many more there are.
fn first(list: &[String], between: &str) -> String {
    match list.split_at_checked(SHOWN) {
        Some((first, rest)) if !rest.is_empty() => {
            format!("{}{between}{} more", first.join(between), rest.len())
        }
        _ => list.join(between),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_names_the_first_of_many() {
        let names = |count: usize| (1..=count).map(|n| format!("a{n}")).collect::<Vec<String>>();
        let group = |drivers, names| DevicePattern { drivers, names, ..DevicePattern::default() };
        let eight = "a1, a2, a3, a4, a5, a6, a7, a8";
        assert_eq!(group(Vec::new(), names(8)).to_string(), eight);
        assert_eq!(group(Vec::new(), names(10)).to_string(), format!("{eight}, 2 more"));
        let drivers = eight.replace(", ", " or ");
        assert_eq!(group(names(9), names(1)).to_string(), format!("{drivers} or 1 more: a1"));
    }
}
