//! This project's advice: the row that works. It also considers what other programs ignore, the
//! interface and its network namespace.

use super::address::{Family, Network, is_link_local};
use super::decision::{Decision, Outcome};
use super::port::{self, Home, MAX_INDEX, Port, Row};
use super::reason::{Caveat, Reason, Why};
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
    fn refuses(&self, row: &Row<'_>, is_roce: bool) -> Option<Reason> {
        if self.family.is_some_and(|own| own != row.family()) {
            Some(Reason::Unwanted("family"))
        } else if self.networks.iter().any(|network| !network.holds(row.gid)) {
            Some(Reason::Unwanted("network"))
        } else if let Some(reason) = self.refuses_netdev(row, is_roce) {
            Some(reason)
        } else if self.gid_type.is_some_and(|own| own != row.gid_type) {
            let may_be = row.is_type_unread() && self.gid_type != Some(GidType::IB);
            Some(if may_be { Reason::TypeUnread } else { Reason::Unwanted("type") })
        } else {
            None
        }
    }

    /// Whether a row is not of the interface that is required, or not proven to be.
    fn refuses_netdev(&self, row: &Row<'_>, is_roce: bool) -> Option<Reason> {
        let wanted = self.netdev.as_deref()?;
        match home(row, is_roce) {
            Home::Ours { name, .. } | Home::Unknown { name: Some(name) } if name == wanted => None,
            Home::Unproven { name: Some(name) } if name == wanted => Some(Reason::InterfaceUnread),
            Home::Unproven { name: None } | Home::Unknown { name: None } => {
                Some(Reason::InterfaceUnread)
            }
            _ => Some(Reason::Unwanted("interface")),
        }
    }
}

fn is_roce(port: &Port<'_>) -> bool {
    port::is_roce(port.link_layer, port.node_type)
}

/// A row's interface. On RoCE each row has one, so there it is not known if it is not given.
fn home<'i>(row: &Row<'i>, is_roce: bool) -> Home<'i> {
    match row.home {
        Home::None if is_roce => Home::Unknown { name: None },
        home => home,
    }
}

/// Chooses the row that should be used.
///
/// Refused are rows that do not fulfil the wish, rows whose interface is down, is in another network
/// namespace or lacks the address, rows of RoCE whose type cannot be read, and loopback addresses. Among
/// the other rows the choice prefers, in this order: a type that sysfs shows; an interface that is proven
/// to be in this network namespace, before one that may be, before one of which nothing is known; RoCE v2;
/// an address that is not link-local; IPv4; the port's own interface; the lowest index. On InfiniBand and
/// iWARP only the index counts. The port must be active.
///
/// If no row is left, but one was refused because something of it is not known, the outcome is
/// [`Why::NotKnown`].
#[must_use]
pub fn recommend(port: &Port<'_>, wish: &Wish) -> Decision {
    let is_roce = is_roce(port);
    let best = port
        .rows
        .iter()
        .filter(|row| refusal(row, wish, is_roce).is_none())
        .min_by_key(|row| rank(row, port));
    let may_fit = |row: &&Row<'_>| {
        let reason = refusal(row, wish, is_roce);
        matches!(reason, Some(Reason::TypeUnread | Reason::InterfaceUnread))
    };
    let doubtful = || port.rows.iter().find(may_fit);
    let outcome = match best.or_else(doubtful) {
        Some(_) if !is_active(port.state) => Outcome::Ignored(Why::NotActive(port.state)),
        Some(row) if best.is_none() => Outcome::Ignored(Why::NotKnown(row.index)),
        Some(row) => Outcome::Taken(row.index),
        None if port.gid_tbl_len == 0 => Outcome::Ignored(Why::NoTable),
        None if port.rows.is_empty() => Outcome::Ignored(Why::EmptyTable),
        None => Outcome::Ignored(Why::NoRow),
    };
    let reason = |row: &Row<'_>| match (refusal(row, wish, is_roce), best) {
        (Some(reason), _) => reason,
        (None, Some(best)) if best.index == row.index => match outcome {
            Outcome::Ignored(_) => Reason::PortNotActive(port.state),
            _ => Reason::Recommended,
        },
        (None, Some(best)) => below(row, best, port),
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
fn refusal(row: &Row<'_>, wish: &Wish, is_roce: bool) -> Option<Reason> {
    let is_loopback = row.gid.ipv4().map_or(row.gid.ipv6().is_loopback(), |v4| v4.is_loopback());
    match row.home {
        _ if row.index > MAX_INDEX => Some(Reason::BeyondByte),
        Home::Foreign => Some(Reason::Foreign),
        Home::WithoutAddress => Some(Reason::WithoutAddress),
        _ if is_loopback => Some(Reason::Loopback),
        _ if let Some(reason) = wish.refuses(row, is_roce) => Some(reason),
        Home::Ours { name, is_up: false, .. } => Some(Reason::InterfaceDown(name.to_owned())),
        Home::Ours { name, has_address: false, .. } => Some(Reason::AddressGone(name.to_owned())),
        _ if is_roce && row.is_type_unread() => Some(Reason::TypeUnread),
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

/// How little proves that a row's interface is in this network namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Proof {
    /// It is.
    Proven,
    /// It may be: an interface here has the address.
    Possible,
    /// Nothing is known.
    Unknown,
    /// Sysfs keeps the type back, as the kernel of `MLNX_OFED` does with rows of other namespaces.
    Hidden,
}

impl Proof {
    fn of(row: &Row<'_>, port: &Port<'_>) -> Self {
        match home(row, is_roce(port)) {
            Home::None | Home::Ours { .. } => Self::Proven,
            // A kernel without the files of types keeps none of them back.
            _ if row.type_is_hidden && port.has_types => Self::Hidden,
            Home::Unproven { .. } => Self::Possible,
            Home::Unknown { .. } | Home::Foreign | Home::WithoutAddress => Self::Unknown,
        }
    }
}

/// What makes a row worse than others, the most important first.
fn marks(row: &Row<'_>) -> [bool; 4] {
    [row.gid_type != GidType::ROCE_V2, is_local(row), row.family() == Family::V6, is_upper(row)]
}

/// The rank of a row. The lowest is the best.
fn rank(row: &Row<'_>, port: &Port<'_>) -> (Proof, [bool; 4], u32) {
    if is_roce(port) {
        (Proof::of(row, port), marks(row), row.index)
    } else {
        (Proof::Proven, [false; 4], row.index)
    }
}

/// Why a row is not the best.
fn below(row: &Row<'_>, best: &Row<'_>, port: &Port<'_>) -> Reason {
    let ((proof, own, _), (best_proof, other, at)) = (rank(row, port), rank(best, port));
    match own.iter().zip(other).position(|(own, other)| *own && !other) {
        _ if proof > best_proof && best_proof == Proof::Proven => Reason::UnprovenBelow(at),
        _ if proof > best_proof => Reason::LessKnownBelow(at),
        Some(0) => Reason::V1Below(at),
        Some(1) => Reason::LinkLocalBelow(at),
        Some(2) => Reason::V6Below(at),
        Some(_) => Reason::UpperBelow(at),
        None => Reason::LowerFits(at),
    }
}

/// Whether it is known that a row is what it seems to be: nothing that matters of it was inferred or could
/// not be read.
#[must_use]
pub fn is_sure(port: &Port<'_>, index: u32) -> bool {
    let unsure = [Caveat::Unproven, Caveat::Unknown, Caveat::WithoutAddress, Caveat::TypeUnread];
    !caveats(port, index).iter().any(|caveat| unsure.contains(caveat))
}

/// Reasons against using a row, whoever chose it.
#[must_use]
pub fn caveats(port: &Port<'_>, index: u32) -> Vec<Caveat> {
    let Some(row) = port.row(index) else { return Vec::new() };
    let is_roce = is_roce(port);
    let home = match home(row, is_roce) {
        Home::Ours { is_up: false, .. } => Some(Caveat::Down),
        Home::Ours { has_address: false, .. } => Some(Caveat::AddressGone),
        Home::Ours { .. } | Home::None => None,
        Home::Unproven { .. } => Some(Caveat::Unproven),
        Home::Foreign => Some(Caveat::Foreign),
        Home::WithoutAddress => Some(Caveat::WithoutAddress),
        Home::Unknown { .. } => Some(Caveat::Unknown),
    };
    let beyond = (index > MAX_INDEX).then_some(Caveat::BeyondByte);
    let local = (is_roce && is_local(row)).then_some(Caveat::LinkLocal);
    let old = (is_roce && row.gid_type == GidType::ROCE_V1).then_some(Caveat::V1);
    let unread = row.is_type_unread().then_some(Caveat::TypeUnread);
    [beyond, home, unread, local, old].into_iter().flatten().collect()
}
