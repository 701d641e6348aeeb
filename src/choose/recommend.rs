//! This project's advice: the row that works. It also considers what other programs ignore, the
//! interface and its network namespace.

use super::address::{Family, Network, is_link_local};
use super::decision::{Decision, Outcome};
use super::port::{Home, MAX_INDEX, Port, Row};
use super::reason::{Caveat, Reason, Why};
use crate::device::NodeType;
use crate::gid::GidType;
use crate::port::PortState;

/// What a GID must have. The default accepts every GID.
///
/// ```
/// let mut wish = uverbs::choose::Wish::default();
/// wish.family = Some(uverbs::choose::Family::V4);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Wish {
    /// This type.
    pub gid_type: Option<GidType>,
    /// An address of this family.
    pub family: Option<Family>,
    /// This network interface.
    pub netdev: Option<String>,
    /// An address in all of these networks.
    pub networks: Vec<Network>,
}

impl Wish {
    /// The first thing that a row does not have although it is required.
    fn refuses(&self, row: &Row<'_>) -> Option<Reason> {
        let (name, is_known) = match row.home {
            Home::Ours { name, .. } => (Some(name), true),
            Home::Unproven { name } | Home::Unknown { name } => (name, name.is_some()),
            Home::None | Home::Foreign => (None, true),
        };
        if self.family.is_some_and(|own| own != row.family()) {
            Some(Reason::Unwanted("family"))
        } else if self.networks.iter().any(|network| !network.holds(row.gid)) {
            Some(Reason::Unwanted("network"))
        } else if self.gid_type.is_some_and(|own| own != row.gid_type) {
            let may_be = row.is_type_unread() && self.gid_type != Some(GidType::IB);
            Some(if may_be { Reason::TypeUnread } else { Reason::Unwanted("type") })
        } else if self.netdev.as_deref().is_some_and(|own| Some(own) != name) {
            Some(if is_known { Reason::Unwanted("interface") } else { Reason::InterfaceUnread })
        } else {
            None
        }
    }
}

/// Whether the port is RoCE, so that its rows differ in more than the index.
fn is_roce(port: &Port<'_>) -> bool {
    port.is_ethernet() && port.node_type != NodeType::RNIC
}

/// Chooses the row that should be used.
///
/// Refused are rows that do not fulfil the wish, rows whose interface is down, is in another network
/// namespace or lacks the address, and loopback addresses. Among the other rows the choice prefers, in
/// this order: an interface that is proven to be in this network namespace; RoCE v2; an address that is
/// not link-local; IPv4; the port's own interface; the lowest index. On InfiniBand and iWARP only the
/// index counts. The port must be active.
#[must_use]
pub fn recommend(port: &Port<'_>, wish: &Wish) -> Decision {
    let is_roce = is_roce(port);
    let best = port
        .rows
        .iter()
        .filter(|row| refusal(row, wish).is_none())
        .min_by_key(|row| rank(row, is_roce));
    let outcome = match best {
        Some(_) if !is_active(port.state) => Outcome::Ignored(Why::NotActive(port.state)),
        Some(row) => Outcome::Taken(row.index),
        None if port.gid_tbl_len == 0 => Outcome::Ignored(Why::NoTable),
        None if port.rows.is_empty() => Outcome::Ignored(Why::EmptyTable),
        None => Outcome::Ignored(Why::NoRow),
    };
    let reason = |row: &Row<'_>| match (refusal(row, wish), best) {
        (Some(reason), _) => reason,
        (None, Some(best)) if best.index == row.index => match outcome {
            Outcome::Ignored(_) => Reason::PortNotActive(port.state),
            _ => Reason::Recommended,
        },
        (None, Some(best)) => below(row, best, is_roce),
        // A row that is not refused is the best if no other row is better.
        (None, None) => Reason::Unlooked,
    };
    let rows = port.rows.iter().map(|row| (row.index, reason(row))).collect();
    Decision { outcome, rows }
}

fn is_active(state: PortState) -> bool {
    matches!(state, PortState::ACTIVE | PortState::ACTIVE_DEFER)
}

/// Why a row is refused.
fn refusal(row: &Row<'_>, wish: &Wish) -> Option<Reason> {
    let is_loopback = row.gid.ipv4().map_or(row.gid.ipv6().is_loopback(), |v4| v4.is_loopback());
    match row.home {
        _ if row.index > MAX_INDEX => Some(Reason::BeyondByte),
        Home::Foreign => Some(Reason::Foreign),
        _ if is_loopback => Some(Reason::Loopback),
        _ if let Some(reason) = wish.refuses(row) => Some(reason),
        Home::Ours { name, is_up: false, .. } => Some(Reason::InterfaceDown(name.to_owned())),
        Home::Ours { name, has_address: false, .. } => Some(Reason::AddressGone(name.to_owned())),
        _ => None,
    }
}

/// Whether an address of either family is link-local.
fn is_local(row: &Row<'_>) -> bool {
    is_link_local(row.gid) || row.gid.ipv4().is_some_and(|v4| v4.is_link_local())
}

fn is_upper(row: &Row<'_>) -> bool {
    matches!(row.home, Home::Ours { is_port_s: false, .. })
}

/// What makes a row worse than others, the most important first.
fn rank(row: &Row<'_>, is_roce: bool) -> ([bool; 5], u32) {
    let marks = [
        matches!(row.home, Home::Unproven { .. }),
        row.gid_type != GidType::ROCE_V2,
        is_local(row),
        row.family() == Family::V6,
        is_upper(row),
    ];
    (if is_roce { marks } else { [false; 5] }, row.index)
}

/// Why a row is not the best.
fn below(row: &Row<'_>, best: &Row<'_>, is_roce: bool) -> Reason {
    let (own, other) = (rank(row, is_roce).0, rank(best, is_roce).0);
    let at = best.index;
    match own.iter().zip(other).position(|(own, other)| *own && !other) {
        Some(0) => Reason::UnprovenBelow(at),
        Some(1) if row.is_type_unread() => Reason::TypeUnread,
        Some(1) => Reason::V1Below(at),
        Some(2) => Reason::LinkLocalBelow(at),
        Some(3) => Reason::V6Below(at),
        Some(_) => Reason::UpperBelow(at),
        None => Reason::LowerFits(at),
    }
}

/// Whether it is known that a row is what it seems to be: nothing that matters of it was inferred or could
/// not be read.
#[must_use]
pub fn is_sure(port: &Port<'_>, index: u32) -> bool {
    let unsure = [Caveat::Unproven, Caveat::Unknown, Caveat::TypeUnread];
    !caveats(port, index).iter().any(|caveat| unsure.contains(caveat))
}

/// Reasons against using a row, whoever chose it.
#[must_use]
pub fn caveats(port: &Port<'_>, index: u32) -> Vec<Caveat> {
    let Some(row) = port.row(index) else { return Vec::new() };
    let is_roce = is_roce(port);
    let home = match row.home {
        Home::Ours { is_up: false, .. } => Some(Caveat::Down),
        Home::Ours { has_address: false, .. } => Some(Caveat::AddressGone),
        Home::Ours { .. } | Home::None => None,
        Home::Unproven { .. } => Some(Caveat::Unproven),
        Home::Foreign => Some(Caveat::Foreign),
        Home::Unknown { .. } => Some(Caveat::Unknown),
    };
    let beyond = (index > MAX_INDEX).then_some(Caveat::BeyondByte);
    let local = (is_roce && is_local(row)).then_some(Caveat::LinkLocal);
    let old = (is_roce && row.gid_type == GidType::ROCE_V1).then_some(Caveat::V1);
    let unread = row.is_type_unread().then_some(Caveat::TypeUnread);
    [beyond, home, unread, local, old].into_iter().flatten().collect()
}
