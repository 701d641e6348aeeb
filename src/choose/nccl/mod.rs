//! A model of NCCL's choice, and of NVSHMEM's, which is a copy of NCCL's with its own variable names.
//!
//! Since 2.21 NCCL walks the table from index 0 and changes its choice when a row fits better: first by
//! address family, then by RoCE version. It does not look at interfaces. Older releases use index 0.
//!
//! `tests/golden/nccl-answers.jsonl.gz` records what NCCL's own code answered for random tables and
//! settings. This model gives the same answers. NCCL reads uninitialised memory for the version of a row
//! whose type cannot be read. The model assumes a version that no row has, as in the recorded runs.
//!
//! ```
//! use uverbs::choose::{self, nccl};
//!
//! let inventory = uverbs::Host::new().inventory(&Default::default());
//! let release = nccl::Implementation::Nccl(nccl::Release::of(2, 20, 5));
//! let settings = nccl::Settings::new(release, |name| (name == "NCCL_IB_GID_INDEX").then_some("3"));
//! for port in choose::ports(&inventory) {
//!     println!("{}:{} {}", port.device, port.number, nccl::choose(&port, &settings).outcome);
//! }
//! ```

mod devices;
mod numbers;
mod release;
mod settings;

use core::ops::RangeInclusive;
use std::collections::BTreeSet;

use super::address::Family;
use super::decision::{Decision, Outcome};
use super::port::{Port, Row};
use super::reason::{Reason, Why};
use crate::gid::{DEFAULT_PREFIX, Gid};
use crate::port::{LinkLayer, PortState};
use settings::Range;

pub(super) use devices::ROOM_BEFORE;
pub use devices::{DeviceList, ROOM};
pub use release::{Implementation, Release};
pub use settings::Settings;

/// The ports that NCCL and NVSHMEM ask for: as many as the device says in a byte, from 1 on.
pub(crate) const ASKED: RangeInclusive<u32> = 1..=255;

/// The ports of a device past the fourth: NVSHMEM has no room for them.
pub(super) const PAST_FOURTH: RangeInclusive<u32> = 5..=255;

/// For how many devices NVSHMEM has room.
const DEVICES: usize = 48;
/// The same of older releases.
pub(super) const DEVICES_BEFORE: usize = 16;

/// What NCCL or NVSHMEM does with a port.
#[must_use]
pub fn choose(port: &Port<'_>, settings: &Settings) -> Decision {
    match unused(port, settings) {
        Some(why) => Decision::unlooked(port, Outcome::Ignored(why)),
        None if port.is_ethernet() => choose_roce(port, settings),
        None => choose_infiniband(port, settings),
    }
}

/// What NCCL or NVSHMEM does with all ports of a host, in the order given. It is what [`choose`] says of
/// each port, except that both have room for only 32 ports: NCCL leaves the others out, and NVSHMEM fails,
/// also if it looks at a device's fifth port. Ports whose devices they do not find take no room.
///
/// It counts device by device in libibverbs's order. Where that is not known, the order given is taken:
/// see [`is_order_known`].
#[must_use]
pub fn choose_all(ports: &[&Port<'_>], settings: &Settings) -> Vec<Decision> {
    let mut decisions: Vec<Decision> = ports.iter().map(|port| choose(port, settings)).collect();
    let all = ports.iter().zip(&decisions).filter(|(port, own)| takes_room(port, own));
    let count = all.count();
    if settings.implementation == Implementation::Nvshmem {
        let is_beyond = |port: &Port<'_>| {
            port.is_found
                && PAST_FOURTH.contains(&port.number)
                && settings.devices.takes(port.device, port.number)
        };
        if count > ROOM || devices(ports) > DEVICES || ports.iter().copied().any(is_beyond) {
            let used = ports.iter().zip(&mut decisions);
            for (port, own) in used.filter(|(port, own)| takes_room(port, own)) {
                *own = Decision::unlooked(port, Outcome::Fails(Why::BeyondRoom));
            }
        }
        return decisions;
    }
    if count > ROOM {
        leave_out(ports, &mut decisions);
    }
    // It writes past its end when it starts.
    let is_overrun = |own: &Decision| own.outcome == Outcome::Fails(Why::Overrun);
    if decisions.iter().any(is_overrun) {
        let used = ports.iter().zip(&mut decisions).filter(|(port, own)| takes_room(port, own));
        for (port, own) in used.filter(|(_, own)| !is_overrun(own)) {
            *own = Decision::unlooked(port, Outcome::Fails(Why::OtherPort));
        }
    }
    decisions
}

/// How many devices these ports have that are found.
fn devices(ports: &[&Port<'_>]) -> usize {
    let found = ports.iter().filter(|own| own.is_found).map(|own| own.device);
    found.collect::<BTreeSet<&str>>().len()
}

/// Whether a port takes room with this decision.
fn takes_room(port: &Port<'_>, own: &Decision) -> bool {
    port.is_found && !matches!(own.outcome, Outcome::Ignored(_))
}

/// Leaves out the ports that NCCL has no room for.
fn leave_out(ports: &[&Port<'_>], decisions: &mut [Decision]) {
    let mut order: Vec<(&&Port<'_>, &mut Decision)> = ports.iter().zip(decisions).collect();
    if is_order_known(ports) {
        order.sort_by_key(|(port, _)| port.place);
    }
    let mut used = 0;
    for device in order.chunk_by_mut(|(one, _), (other, _)| one.device == other.device) {
        // NCCL checks the limit before each device, not before each port.
        let is_looked_at = used < ROOM;
        for (port, decision) in device.iter_mut().filter(|(port, own)| takes_room(port, own)) {
            used += 1;
            if used > ROOM {
                let outcome = if is_looked_at {
                    Outcome::Fails(Why::Overrun)
                } else {
                    Outcome::Ignored(Why::NoRoom)
                };
                **decision = Decision::unlooked(port, outcome);
            }
        }
    }
}

/// Whether it is known in which order libibverbs lists the devices of these ports of a host.
#[must_use]
pub fn is_order_known(ports: &[&Port<'_>]) -> bool {
    ports.iter().all(|port| port.place.is_some())
}

/// Whether NCCL and NVSHMEM take ports of this link layer.
pub(crate) fn takes_kind(link_layer: LinkLayer) -> bool {
    matches!(link_layer, LinkLayer::INFINIBAND | LinkLayer::ETHERNET)
}

/// Why a port is not used.
fn unused(port: &Port<'_>, settings: &Settings) -> Option<Why> {
    if settings.is_disabled {
        Some(Why::Disabled)
    } else if !ASKED.contains(&port.number) {
        Some(Why::PortNumber)
    } else if port.state != PortState::ACTIVE {
        Some(Why::NotActive(port.state))
    } else if !takes_kind(port.link_layer) {
        Some(Why::LinkLayer(port.link_layer))
    } else if settings.devices.takes(port.device, port.number) {
        None
    } else {
        Some(Why::NotListed(settings.devices.variable))
    }
}

/// On InfiniBand NCCL uses LIDs within a subnet. Up to 2.21 it never uses a GID there. The accepting side
/// still reads one by the rules of RoCE, and fails if there is none.
fn choose_infiniband(port: &Port<'_>, settings: &Settings) -> Decision {
    if settings.implementation == Implementation::Nvshmem {
        return Decision::unlooked(port, Outcome::ByLid);
    }
    if settings.implementation.release() < Release::V2_22 {
        let outcome = match index_of_roce(port, settings) {
            Ok(index) => match Outcome::of_index(port, index) {
                Outcome::Taken(_) | Outcome::Empty(_) => Outcome::ByLid,
                outside => outside,
            },
            Err(why) => Outcome::Fails(why),
        };
        return Decision::unlooked(port, outcome);
    }
    let index = match u32::try_from(settings.flid_index) {
        Err(_) => {
            let why = Why::BadValue("NCCL_IB_ROUTABLE_FLID_GID_INDEX");
            return Decision::unlooked(port, Outcome::Fails(why));
        }
        Ok(index)
            if index < port.gid_tbl_len && port.row(index).is_some_and(|row| has_flid(row.gid)) =>
        {
            index
        }
        Ok(_) => 0,
    };
    let reason = if index == 0 { Reason::DefaultIndex } else { Reason::Routable };
    Decision::of_one(port, Outcome::of_index(port, index.into()), &reason)
}

/// Whether bytes 4 and 5 are not zero, as in a routable GID. The prefix is not checked.
pub(crate) fn has_flid(gid: Gid) -> bool {
    let [_, _, _, _, high, low, ..] = gid.to_bytes();
    (high, low) != (0, 0)
}

/// Whether NCCL accepts the GID as an address: neither zero nor in `fe80::/64`.
fn is_valid(row: &Row<'_>) -> bool {
    !row.gid.is_zero() && row.gid.subnet_prefix() != DEFAULT_PREFIX
}

fn choose_roce(port: &Port<'_>, settings: &Settings) -> Decision {
    let outcome = match index_of_roce(port, settings) {
        Ok(index) => Outcome::of_index(port, index),
        Err(why) => return Decision::unlooked(port, Outcome::Fails(why)),
    };
    if settings.pinned().is_some() {
        let is_default = settings.implementation == Implementation::Nccl(Release::V2_20)
            && settings.gid_index == 0;
        let reason = if is_default { Reason::DefaultIndex } else { Reason::Pinned };
        return Decision::of_one(port, outcome, &reason);
    }
    let taken = outcome.index();
    let rows = port.rows.iter().map(|row| (row.index, explain(row, taken, port, settings)));
    Decision { rows: rows.collect(), outcome, better_unknown: None }
}

/// The index by the rules of RoCE: the index that is set, or the result of the search.
fn index_of_roce(port: &Port<'_>, settings: &Settings) -> Result<i64, Why> {
    if let Some(pinned) = settings.pinned() {
        return Ok(pinned);
    }
    if settings.range == Range::NoSlash
        && matches!(
            settings.implementation,
            Implementation::Nccl(Release::V2_21 | Release::V2_22) | Implementation::Nvshmem
        )
    {
        return Err(Why::RangeCrash);
    }
    walk(port, settings).map(|(index, _)| i64::from(index))
}

/// The version that NCCL assumes for a candidate until the types file gives one. A user can ask for this
/// version.
const UNKNOWN_VERSION: i32 = -1;

/// The version that the types file of a row gives.
fn version_of(port: &Port<'_>, row: Option<&Row<'_>>) -> Option<i32> {
    row.filter(|_| port.has_types).and_then(Row::version).map(i32::from)
}

/// Whether NCCL or NVSHMEM is known to do what [`choose`] says: no variable makes that doubtful
/// ([`Settings::doubted_by`]), and no comparison with uninitialised memory decides.
#[must_use]
pub fn is_sure(port: &Port<'_>, settings: &Settings) -> bool {
    if settings.doubted_by.is_some() && !settings.is_surely_disabled() {
        return false;
    }
    let is_pinned = settings.pinned().is_some();
    if is_pinned || !port.is_ethernet() || unused(port, settings).is_some() {
        return true;
    }
    walk(port, settings).map_or(true, |(_, is_sure)| is_sure)
}

/// NCCL's walk over the table, and whether it is known to end so. An empty slot is a GID of zeros, which
/// counts as IPv6.
fn walk(port: &Port<'_>, settings: &Settings) -> Result<(u32, bool), Why> {
    let (bears_missing, bears_hidden) = match settings.implementation {
        Implementation::Nvshmem => (true, true),
        Implementation::Nccl(release) => (false, release >= Release::V2_26),
    };
    // Reads the types file. That of an empty slot is hidden too.
    let read = |index, row: Option<&Row<'_>>| {
        if !port.has_types && !bears_missing {
            Err(Why::NoTypes)
        } else if row.is_none_or(|row| row.type_is_hidden) && !bears_hidden {
            Err(Why::UnreadableType(index))
        } else {
            Ok(version_of(port, row))
        }
    };
    let mut is_sure = true;
    let mut current = (0, port.row(0));
    for (index, row) in slots(port) {
        let is_wanted = unwanted(row, settings).is_none();
        if is_wanted && family(current.1) != settings.family {
            current = (index, row);
        } else if is_wanted && row.is_some_and(is_valid) {
            // NCCL writes nothing for the row taken so far if its type is not known.
            let own = read(current.0, current.1)?;
            let candidate = read(index, row)?.unwrap_or(UNKNOWN_VERSION);
            let is_worse = own != Some(candidate) || !current.1.is_some_and(is_valid);
            // What was not written may be any version, and so be the candidate's.
            is_sure &=
                candidate != settings.version || own.is_some() || !current.1.is_some_and(is_valid);
            if candidate == settings.version && is_worse {
                current = (index, row);
            }
        }
    }
    Ok((current.0, is_sure))
}

/// The family of a slot's GID.
fn family(row: Option<&Row<'_>>) -> Family {
    row.map_or(Family::V6, Row::family)
}

/// Why the walk passes a slot, whatever it has taken so far.
fn unwanted(row: Option<&Row<'_>>, settings: &Settings) -> Option<Reason> {
    if family(row) != settings.family {
        Some(Reason::OtherFamily(settings.family))
    } else if !settings.range.holds(row) {
        Some(Reason::OutOfRange)
    } else {
        None
    }
}

/// The slots from 1 on that can matter: those in use, and the first slot of each run of empty ones.
fn slots<'p, 'i>(port: &'p Port<'i>) -> impl Iterator<Item = (u32, Option<&'p Row<'i>>)> {
    let rows = port.rows.iter().filter(|row| (1..port.gid_tbl_len).contains(&row.index));
    let mut next = 1;
    let length = port.gid_tbl_len;
    rows.map(Some)
        .chain([None])
        .flat_map(move |row| {
            let index = row.map_or(length, |row| row.index);
            let gap = (next < index).then_some((next, None));
            next = index.saturating_add(1);
            [gap, row.map(|row| (index, Some(row)))]
        })
        .flatten()
}

/// The reason for a row, given the chosen index; `None` for an empty slot.
fn explain(row: &Row<'_>, taken: Option<u32>, port: &Port<'_>, settings: &Settings) -> Reason {
    let version = version_of(port, Some(row)).unwrap_or(UNKNOWN_VERSION);
    let has_version = version == settings.version;
    let is_fit = row.family() == settings.family && is_valid(row);
    let is_in_range = settings.range.holds(Some(row));
    if row.index >= port.gid_tbl_len {
        return Reason::Unlooked;
    }
    if taken == Some(row.index) {
        return match (is_fit && has_version, is_in_range) {
            (true, true) if settings.version == UNKNOWN_VERSION => Reason::Untyped,
            (true, true) => Reason::LowestFit,
            (true, false) => Reason::StartFits,
            (false, _) if row.index == 0 => Reason::Start,
            (false, _) => Reason::FamilyAlone(settings.family),
        };
    }
    if row.type_is_hidden {
        Reason::TypeHidden
    } else if let Some(reason) = unwanted(Some(row), settings) {
        reason
    } else if !is_valid(row) {
        Reason::NotValid
    } else if let (true, Some(taken)) = (has_version, taken) {
        Reason::LowerFits(taken)
    } else {
        Reason::OtherVersion(settings.version)
    }
}
