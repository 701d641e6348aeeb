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
    /// The first thing that a row is known not to have although it is required.
    fn refuses(&self, row: &Row<'_>, is_roce: bool) -> Option<Reason> {
        let refused = if self.family.is_some_and(|own| own != row.family()) {
            "family"
        } else if self.networks.iter().any(|network| !network.holds(row.gid)) {
            "network"
        } else if self.has_netdev(row, is_roce) == Some(false) {
            "interface"
        } else if self.has_type(row) == Some(false) {
            "type"
        } else {
            return None;
        };
        Some(Reason::Unwanted(refused))
    }

    /// The first thing that is required, of which it is not known whether a row has it.
    fn misses(&self, row: &Row<'_>, is_roce: bool) -> Option<Reason> {
        if self.has_netdev(row, is_roce).is_none() {
            Some(Reason::InterfaceUnread)
        } else if self.has_type(row).is_none() {
            Some(Reason::TypeUnread)
        } else {
            None
        }
    }

    /// Whether a row is of the interface that is required, if that is known.
    fn has_netdev(&self, row: &Row<'_>, is_roce: bool) -> Option<bool> {
        let Some(wanted) = self.netdev.as_deref() else { return Some(true) };
        match home(row, is_roce) {
            Home::Ours { name, .. } | Home::Unknown { name: Some(name) } => Some(name == wanted),
            Home::Unproven { name: Some(name), .. } if name != wanted => Some(false),
            Home::Unproven { .. } | Home::Unknown { name: None } => None,
            Home::None | Home::Foreign | Home::WithoutAddress => Some(false),
        }
    }

    /// Whether a row has the type that is required, if that is known.
    fn has_type(&self, row: &Row<'_>) -> Option<bool> {
        let wanted = self.gid_type.filter(|own| *own != row.gid_type);
        match wanted {
            None => Some(true),
            Some(own) if row.is_type_unread() && own != GidType::IB => None,
            Some(_) => Some(false),
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
/// namespace or lacks the address, rows whose interface is either in another namespace or down, rows of RoCE
/// whose type cannot be read or is not known, and addresses of loopback, that no program can use, or that no
/// host can have. Among the other rows the choice prefers, in this order: a type that sysfs shows; an
/// interface that is proven to be in this network namespace, before one that may be, before one of which
/// nothing is known; RoCE v2; an address that is not link-local; IPv4; the port's own interface; the lowest
/// index. There is one exception: a row that reaches other links (RoCE v2, not link-local) comes before all that do not, even if
/// its interface is not proven to be here, as long as an interface here has its index (or name) and its
/// address. On InfiniBand and iWARP only the index counts. The port must be active.
///
/// If no row is left, but one was refused because something of it is not known, the outcome is
/// [`Why::NotKnown`]. It is also that if such a row may have what the wish asks for, and would then be better
/// than the best. Of other rows that may be better, see [`Decision::better_unknown`].
#[must_use]
pub fn recommend(port: &Port<'_>, wish: &Wish) -> Decision {
    let is_roce = is_roce(port);
    let best = port
        .rows
        .iter()
        .filter(|row| refusal(row, wish, is_roce).is_none())
        .min_by_key(|row| rank(row, port));
    let is_unread = |row: &&Row<'_>| {
        let reason = refusal(row, wish, is_roce);
        matches!(reason, Some(Reason::TypeUnread | Reason::InterfaceUnread))
    };
    // It is refused only by the wish, or by the wish and by what is not known of it.
    let is_unwanted = |row: &Row<'_>| {
        matches!(refusal(row, wish, is_roce), Some(Reason::Unwanted(_)))
            && matches!(refusal(row, &Wish::default(), is_roce), None | Some(Reason::TypeUnread))
    };
    let better = best.filter(|_| is_roce).and_then(|best| may_be_better(port, wish, best));
    let doubtful = match best {
        None => port.rows.iter().find(is_unread),
        Some(_) => better.filter(|row| wish.misses(row, is_roce).is_some()),
    };
    let outcome = match (best, doubtful) {
        (Some(_), _) | (_, Some(_)) if !is_active(port.state) => {
            Outcome::Ignored(Why::NotActive(port.state))
        }
        (_, Some(row)) => Outcome::Ignored(Why::NotKnown(row.index)),
        (Some(row), None) => Outcome::Taken(row.index),
        (None, None) if port.gid_tbl_len == 0 => Outcome::Ignored(Why::NoTable),
        (None, None) if port.rows.is_empty() => Outcome::Ignored(Why::EmptyTable),
        (None, None) if port.rows.iter().any(is_unwanted) => Outcome::Ignored(Why::Unwanted),
        (None, None) => Outcome::Ignored(Why::NoRow),
    };
    let reason = |row: &Row<'_>| match (refusal(row, wish, is_roce), best) {
        (Some(reason), _) => reason,
        (None, Some(best)) if best.index == row.index => match (&outcome, doubtful) {
            (Outcome::Taken(_), _) => Reason::Recommended,
            (_, Some(doubtful)) => Reason::PerhapsBelow(doubtful.index),
            (_, None) => Reason::PortNotActive(port.state),
        },
        (None, Some(best)) => below(row, best, port),
        // A row that is not refused is the best if no other row is better.
        (None, None) => Reason::Unlooked,
    };
    let rows = port.rows.iter().map(|row| (row.index, reason(row))).collect();
    let better_unknown = better.filter(|_| outcome.index().is_some()).map(|row| row.index);
    Decision { outcome, rows, better_unknown }
}

/// The row that would be better than the best if all were known of it. What the wish asks for and is not known
/// comes first.
fn may_be_better<'p, 'i>(port: &'p Port<'i>, wish: &Wish, best: &Row<'_>) -> Option<&'p Row<'i>> {
    // What is not known of a row is the best that it can be: its type, and its interface, which may be the port's own.
    let hoped = |row: &Row<'_>| {
        let gid_type = match wish.gid_type {
            _ if !row.is_type_unread() => row.gid_type,
            wanted => wanted.unwrap_or(GidType::ROCE_V2),
        };
        let [is_other, is_local, is_v6, is_upper] = marks(&Row { gid_type, ..*row });
        // All rows of the interface that is asked for are alike in this.
        [is_other, is_local, is_v6, is_upper && wish.netdev.is_none()]
    };
    let may_be = |row: &&Row<'_>| match refusal(row, wish, true) {
        // One that is not refused is worse than the best only by what is known of it.
        Some(Reason::TypeUnread | Reason::InterfaceUnread) | None => true,
        Some(_) => false,
    };
    let feared = |row: &Row<'_>| {
        let [is_other, is_local, is_v6, is_upper] = hoped(best);
        let is_upper = is_upper || may_be_port_s(row, best) && wish.netdev.is_none();
        [is_other, is_local, is_v6, is_upper]
    };
    // Of equal rows the lower index is the best.
    let is_first = |row: &Row<'_>| {
        let is_wanted = wish.misses(row, true).is_none();
        is_wanted && row.index < best.index && hoped(row) == hoped(best)
    };
    let is_better = |row: &&Row<'_>| hoped(row) < feared(row) || is_first(row);
    let better = port.rows.iter().filter(may_be).filter(is_better);
    better.min_by_key(|row| (wish.misses(row, true).is_none(), hoped(row), row.index))
}

fn is_active(state: PortState) -> bool {
    state == PortState::ACTIVE
}

/// Why a row is refused.
fn refusal(row: &Row<'_>, wish: &Wish, is_roce: bool) -> Option<Reason> {
    let is_loopback = row.gid.ipv4().map_or(row.gid.ipv6().is_loopback(), |v4| v4.is_loopback());
    let (refused, missed) = (wish.refuses(row, is_roce), wish.misses(row, is_roce));
    match row.home {
        _ if row.index > MAX_INDEX => Some(Reason::BeyondByte),
        Home::Foreign => Some(Reason::Foreign),
        Home::WithoutAddress => Some(Reason::WithoutAddress),
        _ if is_loopback => Some(Reason::Loopback),
        _ if !is_unicast(row) => Some(Reason::NotUnicast),
        _ if refused.is_some() => refused,
        Home::Ours { name, is_up: false, .. } => Some(Reason::InterfaceDown(name.to_owned())),
        Home::Ours { name, has_address: false, .. } => Some(Reason::AddressGone(name.to_owned())),
        Home::Ours { unfit: Some(why), .. } => Some(Reason::Unfit(why)),
        // If it is not this one, it is in another namespace: it is of no use in either case.
        Home::Unproven { name, is_up: false, .. } => {
            Some(Reason::DownOrElsewhere(name.map(str::to_owned)))
        }
        Home::Unproven { unfit: Some(why), .. } => Some(Reason::UnfitOrElsewhere(why)),
        _ if missed.is_some() => missed,
        _ if is_roce && row.is_type_unread() => Some(Reason::TypeUnread),
        _ if is_roce && !is_type_known(row) => Some(Reason::TypeUnknown),
        _ => None,
    }
}

/// Whether programs here can use a row, whatever they prefer; `None` if that is not known.
pub(crate) fn is_usable(port: &Port<'_>, row: &Row<'_>) -> Option<bool> {
    let is_roce = is_roce(port);
    match (refusal(row, &Wish::default(), is_roce), home(row, is_roce)) {
        (Some(Reason::TypeUnread), _) | (None, Home::Unproven { .. } | Home::Unknown { .. }) => {
            None
        }
        (Some(_), _) => Some(false),
        (None, _) => Some(true),
    }
}

fn is_type_known(row: &Row<'_>) -> bool {
    matches!(row.gid_type, GidType::IB | GidType::ROCE_V1 | GidType::ROCE_V2)
}

/// Whether a host can have the address. A GID of zeros is an empty slot, which has no row.
fn is_unicast(row: &Row<'_>) -> bool {
    match row.gid.ipv4() {
        Some(own) => !(own.is_multicast() || own.is_broadcast() || own.is_unspecified()),
        None => !row.gid.ipv6().is_multicast(),
    }
}

/// Whether an address of either family is link-local.
fn is_local(row: &Row<'_>) -> bool {
    is_link_local(row.gid) || row.gid.ipv4().is_some_and(|v4| v4.is_link_local())
}

fn is_upper(row: &Row<'_>) -> bool {
    matches!(row.home, Home::Ours { is_port_s: Some(false), .. })
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

/// What counts before the marks. Of rows whose interface is here or may be, those that reach other links come
/// first; but not those of which only an address says that it may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Tier {
    /// It is not link-local, and not RoCE v1; or there is no RoCE.
    Far(Proof),
    Near(Proof),
    LittleKnown(Proof),
}

impl Tier {
    fn of(row: &Row<'_>, port: &Port<'_>) -> Self {
        let is_far = row.gid_type == GidType::ROCE_V2
            && !is_local(row)
            && !matches!(row.home, Home::Unproven { is_named: false, .. });
        match Proof::of(row, port) {
            proof @ (Proof::Proven | Proof::Possible) if is_far => Self::Far(proof),
            proof @ (Proof::Proven | Proof::Possible) => Self::Near(proof),
            proof => Self::LittleKnown(proof),
        }
    }
}

/// The rank of a row. The lowest is the best.
fn rank(row: &Row<'_>, port: &Port<'_>) -> (Tier, [bool; 4], u32) {
    if is_roce(port) {
        (Tier::of(row, port), marks(row), row.index)
    } else {
        (Tier::Far(Proof::Proven), [false; 4], row.index)
    }
}

/// Whether the interface of a row, and not that of the best, may be the port's own.
fn may_be_port_s(row: &Row<'_>, best: &Row<'_>) -> bool {
    match (best.home, row.home) {
        (Home::Ours { name, is_port_s: None, .. }, Home::Ours { name: other, .. }) => name != other,
        _ => false,
    }
}

/// Why a row is not the best.
fn below(row: &Row<'_>, best: &Row<'_>, port: &Port<'_>) -> Reason {
    let ((tier, own, _), (best_tier, other, at)) = (rank(row, port), rank(best, port));
    let (proof, best_proof) = (Proof::of(row, port), Proof::of(best, port));
    match own.iter().zip(other).position(|(own, other)| *own && !other) {
        _ if proof > best_proof && best_proof == Proof::Proven => Reason::UnprovenBelow(at),
        _ if proof > best_proof => Reason::LessKnownBelow(at),
        Some(0) => Reason::V1Below(at),
        Some(1) => Reason::LinkLocalBelow(at),
        Some(2) => Reason::V6Below(at),
        Some(_) => Reason::UpperBelow(at),
        None if tier > best_tier => Reason::LessKnownBelow(at),
        None if may_be_port_s(row, best) => Reason::PortUnreadBelow(at),
        None => Reason::LowerFits(at),
    }
}

/// Whether it is known that a row is what it seems to be: nothing that matters of it was inferred or could
/// not be read. If it is what is recommended, it is also known that no other row is better.
#[must_use]
pub fn is_sure(port: &Port<'_>, index: u32) -> bool {
    is_known(&caveats(port, index))
}

fn is_known(caveats: &[Caveat]) -> bool {
    !caveats.iter().any(|caveat| match caveat {
        Caveat::Unproven
        | Caveat::Unknown
        | Caveat::WithoutAddress
        | Caveat::TypeUnread
        | Caveat::MayBeUnheard
        | Caveat::BetterUnknown(_) => true,
        Caveat::LinkLocal
        | Caveat::V1
        | Caveat::Foreign
        | Caveat::Down
        | Caveat::AddressGone
        | Caveat::Unfit(_)
        | Caveat::BeyondByte => false,
    })
}

/// Reasons against using a row, whoever chose it. Where something was asked for, use
/// [`Decision::caveats`].
#[must_use]
pub fn caveats(port: &Port<'_>, index: u32) -> Vec<Caveat> {
    let decision = recommend(port, &Wish::default());
    let better = decision.better_unknown.filter(|_| decision.outcome.index() == Some(index));
    with_better(own_caveats(port, index), better)
}

fn with_better(mut caveats: Vec<Caveat>, better: Option<u32>) -> Vec<Caveat> {
    let place = caveats.iter().position(|own| matches!(own, Caveat::LinkLocal | Caveat::V1));
    if let Some(better) = better {
        caveats.insert(place.unwrap_or(caveats.len()), Caveat::BetterUnknown(better));
    }
    caveats
}

impl Decision {
    /// Reasons against using the row that is taken; none if there is none.
    #[must_use]
    pub fn caveats(&self, port: &Port<'_>) -> Vec<Caveat> {
        let index = self.outcome.index();
        let own = index.map(|index| own_caveats(port, index)).unwrap_or_default();
        with_better(own, self.better_unknown)
    }

    /// Whether it is known that the row that is taken is right, as [`is_sure`] says.
    #[must_use]
    pub fn is_sure(&self, port: &Port<'_>) -> bool {
        is_known(&self.caveats(port))
    }
}

/// Those of the row itself.
fn own_caveats(port: &Port<'_>, index: u32) -> Vec<Caveat> {
    let Some(row) = port.row(index) else { return Vec::new() };
    let is_roce = is_roce(port);
    let home = match home(row, is_roce) {
        Home::Ours { is_up: false, .. } => Some(Caveat::Down),
        Home::Ours { has_address: false, .. } => Some(Caveat::AddressGone),
        Home::Ours { unfit: Some(why), .. } => Some(Caveat::Unfit(why)),
        Home::Ours { .. } if row.is_heard.is_none() => Some(Caveat::MayBeUnheard),
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
