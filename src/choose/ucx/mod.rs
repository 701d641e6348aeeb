//! A model of UCX's choice.
//!
//! UCX first looks at one GID to see whether to offer the port at all, then takes the lowest index of
//! the best class of rows, and tries each by making an address handle with it.
//!
//! ```
//! use uverbs::choose::{self, ucx};
//!
//! let inventory = uverbs::Host::new().inventory(&Default::default());
//! let settings = ucx::Settings::new(ucx::Release::NEWEST, |_| None);
//! for port in choose::ports(&inventory) {
//!     println!("{}:{} {}", port.device, port.number, ucx::choose(&port, &settings).outcome);
//! }
//! ```

pub(super) mod class;
mod release;
mod settings;

use super::address::has_low_half;
use super::decision::{Decision, Outcome};
use super::port::{Port, Row};
use super::reason::{Reason, Why};
use crate::device::NodeType;
use crate::gid::Gid;
use crate::port::PortState;
use settings::Value;

pub use class::Class;
pub use release::Release;
pub(crate) use settings::NAMED;
pub(super) use settings::ROOM;
pub use settings::{Devices, Settings};

/// For how many ports UCX has room in any case: it takes less than 128 transports of devices (64 before 1.11) or does
/// not start, and of a port of mlx5 it takes five. Other interfaces may take room, too.
pub const PORTS: usize = 25;

/// The same before 1.11.
pub(super) const PORTS_BEFORE: usize = 12;

/// Whether UCX asks for a port: for the first two of a device, and of a switch for port 0.
pub(super) fn asks_for(node_type: NodeType, port: u32) -> bool {
    match node_type {
        NodeType::SWITCH => port == 0,
        _ => (1..=2).contains(&port),
    }
}

/// Whether it may take a port of a device of this type, with a table of this length: no GID of iWARP, as the lower half of
/// it is zero.
pub(crate) fn may_take(node_type: NodeType, gid_tbl_len: u32) -> bool {
    node_type != NodeType::RNIC && gid_tbl_len > 0
}

/// What UCX does with a port.
#[must_use]
pub fn choose(port: &Port<'_>, settings: &Settings) -> Decision {
    let unlooked = |outcome| Decision::unlooked(port, outcome);
    if let Some(why) = &settings.refused {
        return unlooked(Outcome::Fails(why.clone()));
    }
    if let Some(why) = unoffered(port, settings) {
        return unlooked(Outcome::Ignored(why));
    }
    if !port.is_ethernet() {
        return choose_infiniband(port, settings);
    }
    match (&settings.subnets, settings.pinned()) {
        (Value::Bad, _) => unlooked(Outcome::Fails(Why::BadValue("UCX_IB_ROCE_SUBNETS"))),
        (Value::Set(_), Some(_)) => unlooked(Outcome::Fails(Why::IndexAndSubnets)),
        (Value::Default, Some(index)) => unlooked(Outcome::of_index(port, index.into())),
        (_, None) => choose_roce(port, settings),
    }
}

/// Why the port is not offered. The GID at the index that is set, or at index 0, decides this, on RoCE
/// too.
fn unoffered(port: &Port<'_>, settings: &Settings) -> Option<Why> {
    let first = settings.pinned().unwrap_or(0);
    if !asks_for(port.node_type, port.number) {
        Some(Why::BeyondSecond)
    } else if !settings.devices.takes(port.device, port.number) {
        Some(Why::NotListed("UCX_NET_DEVICES"))
    } else if port.gid_tbl_len == 0 {
        Some(Why::NoTable)
    } else if port.state != PortState::ACTIVE {
        Some(Why::NotActive(port.state))
    } else if first >= port.gid_tbl_len {
        Some(Why::OutsideFirst(first))
    } else {
        match port.row(first) {
            None => Some(Why::EmptyFirst(first)),
            Some(row) if !has_low_half(row.gid) => Some(Why::NoLowHalf(first)),
            Some(_) => None,
        }
    }
}

fn choose_infiniband(port: &Port<'_>, settings: &Settings) -> Decision {
    if let Some(index) = settings.pinned() {
        return Decision::unlooked(port, Outcome::of_index(port, index.into()));
    }
    let is_routable = settings.heeds_flid
        && port.gid_tbl_len > 1
        && port.row(1).is_some_and(|row| is_routable(row.gid));
    let (index, reason) =
        if is_routable { (1, Reason::Routable) } else { (0, Reason::DefaultIndex) };
    Decision::of_one(port, Outcome::of_index(port, index.into()), &reason)
}

/// Whether a GID is a routable one: a site-local prefix with an FLID, and the vendor's own id.
fn is_routable(gid: Gid) -> bool {
    has_flid(gid) && matches!(gid.to_bytes(), [.., 0x00, 0x14, 0x05, _, _, _, _, _])
}

/// Whether a GID has a site-local prefix with the number of a router's path (FLID).
pub(crate) fn has_flid(gid: Gid) -> bool {
    matches!(gid.to_bytes(), [0xfe, 0xc0, 0, 0, high, low, ..] if (high, low) != (0, 0))
}

fn choose_roce(port: &Port<'_>, settings: &Settings) -> Decision {
    let release = settings.release;
    let subnets = match &settings.subnets {
        Value::Set(subnets) => Some(subnets),
        _ => None,
    };
    // Why a row is skipped, or its class.
    let judge = |row: &Row<'_>| -> Result<Class, Reason> {
        if release >= Release::V1_21 && !has_low_half(row.gid) {
            return Err(Reason::NoLowHalf);
        }
        let class = Class::of(row, release).ok_or(Reason::TypeHidden)?;
        if !row.has_address_handle || row.gid.is_zero() {
            return Err(Reason::NoAddressHandle);
        }
        if subnets.is_some_and(|subnets| !subnets.admits(row)) {
            return Err(Reason::OutOfSubnets);
        }
        Ok(class)
    };
    let seen: Vec<_> = port.rows.iter().filter(|row| row.index < port.gid_tbl_len).collect();
    let best = seen.iter().filter_map(|row| Some((judge(row).ok()?, row.index))).min();
    let outcome = match best {
        Some((_, index)) => Outcome::Taken(index),
        None if subnets.is_some() => Outcome::Fails(Why::NoRow),
        // The last slot that was looked at decides.
        None if release < Release::V1_21 => Outcome::of_index(port, 0),
        None => match port.row(port.gid_tbl_len.saturating_sub(1)) {
            Some(row) if has_low_half(row.gid) => Outcome::of_index(port, 0),
            _ => Outcome::Fails(Why::LastEmpty),
        },
    };
    let reason = |row: &Row<'_>| match (judge(row), best) {
        _ if row.index >= port.gid_tbl_len => Reason::Unlooked,
        (Ok(class), Some((_, index))) if index == row.index => Reason::FirstOf(class),
        (Ok(class), Some((best, index))) if class == best => Reason::LowerFits(index),
        (Ok(_), Some((best, _))) => Reason::Below(best),
        _ if outcome.index() == Some(row.index) => Reason::LastResort,
        (Err(reason), _) => reason,
        // A row that could be judged would be the best.
        (Ok(_), None) => Reason::Unlooked,
    };
    let rows = port.rows.iter().map(|row| (row.index, reason(row))).collect();
    Decision { outcome, rows, better_unknown: None }
}
