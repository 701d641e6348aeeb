//! Whether NCCL has room for all ports of a host, and what a program is known to do there.

use core::fmt;
use std::collections::BTreeSet;

use super::decision::{Decision, Outcome};
use super::nccl::{
    ASKED, DEVICES_BEFORE, Implementation, PAST_FOURTH, ROOM, ROOM_BEFORE, Release, takes_kind,
};
use super::plan::{Model, Program};
use super::port::Port;
use super::reason::Why;
use super::ucx;
use crate::device::Device;
use crate::inventory::{DeviceRecord, Inventory, NodeState, PortRecord, SettingsReading};
use crate::port::{PortAttributes, PortState};

/// Whether programs find a device here, as far as is known: one that could not be listed is there. If they find none,
/// programs that are asked about are elsewhere.
#[must_use]
pub fn has_found(inventory: &Inventory) -> bool {
    inventory.devices.iter().any(DeviceRecord::is_found) || has_unlisted(inventory)
}

/// The devices of which programs take ports: those that they find. If they find none of those that were read, all.
pub(super) fn of_programs(inventory: &Inventory) -> impl Iterator<Item = &DeviceRecord> {
    let has_found = inventory.devices.iter().any(DeviceRecord::is_found);
    inventory.devices.iter().filter(move |own| own.is_found() || !has_found)
}

/// How many ports that a program may take were listed and not read.
fn others(inventory: &Inventory, takes: impl Fn(&Device) -> usize) -> usize {
    let Inventory { devices: all, others, .. } = inventory;
    let mut seen: BTreeSet<&str> = all.iter().map(|own| own.device.name.as_str()).collect();
    let others = others.iter().filter(|own| seen.insert(&own.name));
    others.map(takes).fold(0, usize::saturating_add)
}

/// For how many ports of a device NCCL asks.
fn asked(device: &Device) -> usize {
    let ports = device.ports();
    let first = *ports.start().max(ASKED.start());
    let last = *ports.end().min(ASKED.end());
    (first..=last).count()
}

/// How many ports of these devices may take NCCL's room: those that are active, or could not be read.
fn takers<'i>(devices: impl Iterator<Item = &'i DeviceRecord>) -> usize {
    devices
        .flat_map(|own| &own.ports)
        .filter(|own| ASKED.contains(&own.number) && may_be_active(own))
        .count()
}

fn may_be_active(port: &PortRecord) -> bool {
    port.known().is_none_or(|own| own.state == PortState::ACTIVE)
}

/// How many ports that NCCL may take of those that its settings leave were not read, of devices that were: without those of
/// which it is known that they are down, or of another kind.
pub(crate) fn unread(inventory: &Inventory, is_listed: impl Fn(&str, u32) -> bool) -> usize {
    unread_of(of_programs(inventory), is_listed)
}

fn unread_of<'i>(
    devices: impl Iterator<Item = &'i DeviceRecord>,
    is_listed: impl Fn(&str, u32) -> bool,
) -> usize {
    let is_unread = |(device, port): &(&DeviceRecord, &PortRecord)| {
        let is_read = device.gids.as_ref().is_some_and(Result::is_ok);
        let is_known = |own: &PortAttributes| {
            is_read || own.state != PortState::ACTIVE || !takes_kind(own.link_layer)
        };
        ASKED.contains(&port.number)
            && !port.known().is_some_and(is_known)
            && is_listed(&device.device.name, port.number)
    };
    devices.flat_map(|own| own.ports.iter().map(move |port| (own, port))).filter(is_unread).count()
}

/// The same of all devices that NCCL finds, with those that were not read.
fn all_takers(inventory: &Inventory) -> usize {
    takers(of_programs(inventory)).saturating_add(others(inventory, asked))
}

/// Whether a host has, or may have, devices that could not even be listed: they may have any number of ports.
#[must_use]
pub fn has_unlisted(inventory: &Inventory) -> bool {
    inventory.list_failure.is_some() || unlisted(inventory).next().is_some()
}

/// Whether the ports that are known are more than NCCL has room for. Ports that are down take none.
#[must_use]
pub fn fills(inventory: &Inventory) -> bool {
    all_takers(inventory) > ROOM
}

/// Whether there may be more ports than each version of a release of NCCL has room for, with those of devices that it does
/// not find.
#[must_use]
pub fn might_fill(inventory: &Inventory, release: Release) -> bool {
    let room = if release == Release::V2_20 { ROOM_BEFORE } else { ROOM };
    takers(inventory.devices.iter()).saturating_add(others(inventory, asked)) > room
}

/// Whether a host has, or may have, more devices than each release of NVSHMEM has room for.
#[must_use]
pub fn is_crowded(inventory: &Inventory) -> bool {
    let found = of_programs(inventory).map(|own| own.device.name.as_str());
    let others = inventory.others.iter().map(|own| own.name.as_str());
    let names: BTreeSet<&str> = found.chain(others).collect();
    has_unlisted(inventory) || names.len() > DEVICES_BEFORE
}

/// Whether a host has, or may have, more ports than UCX has room for in any case ([`ucx::PORTS`]).
#[must_use]
pub fn fills_ucx(inventory: &Inventory) -> bool {
    ucx_takers(inventory, |_, _| true) > ucx::PORTS
}

/// Whether there may be more ports than UCX has room for, of those that its list leaves.
pub(crate) fn overfills_ucx(inventory: &Inventory, settings: &ucx::Settings) -> bool {
    ucx_takers(inventory, |device, port| settings.devices.takes(device, port)) > settings.room()
}

/// How many ports UCX may take of those that a list leaves. Of a device that could not be listed these are two; if
/// nobody knows of which, there is no end to them.
fn ucx_takers(inventory: &Inventory, is_listed: impl Fn(&str, u32) -> bool) -> usize {
    let is_taken =
        |own: &Device, port: u32| ucx::asks_for(own.node_type, port) && is_listed(&own.name, port);
    // It asks for no third port.
    let takes = |own: &Device| own.ports().take(2).filter(|port| is_taken(own, *port)).count();
    let known = of_programs(inventory).flat_map(|own| {
        let ports = own.ports.iter().filter(|port| may_be_active(port));
        let ports = ports.filter(|port| Program::Ucx.may_take_record(own, port));
        ports.filter(|port| is_listed(&own.device.name, port.number))
    });
    if inventory.list_failure.is_some() && is_listed("", 1) {
        return usize::MAX;
    }
    let names = unlisted(inventory).flat_map(|name| (1..=2).map(move |port| (name, port)));
    let names = names.filter(|(name, port)| is_listed(name, *port)).count();
    (known.count() + names).saturating_add(others(inventory, takes))
}

/// The devices that could not even be listed, by name.
fn unlisted(inventory: &Inventory) -> impl Iterator<Item = &str> {
    let others: BTreeSet<&str> = inventory.others.iter().map(|own| own.name.as_str()).collect();
    let names = inventory.unlisted.iter().map(|(name, _)| name.as_str());
    names.filter(move |own| !others.contains(own))
}

/// Whether there may be more devices or ports than some release of NVSHMEM has room for.
#[must_use]
pub fn might_fill_nvshmem(inventory: &Inventory) -> bool {
    let mut ports = inventory.devices.iter().flat_map(|own| &own.ports);
    is_crowded(inventory)
        || might_fill(inventory, Release::NEWEST)
        || ports.any(|own| PAST_FOURTH.contains(&own.number))
}

/// Whether there may be more ports than some release of UCX has room for.
#[must_use]
pub fn might_fill_ucx(inventory: &Inventory) -> bool {
    ucx_takers(inventory, |_, _| true) > ucx::PORTS_BEFORE
}

/// Whether it is known in which order libibverbs lists a host's devices.
#[must_use]
pub fn has_order(inventory: &Inventory) -> bool {
    let mut devices = of_programs(inventory);
    devices.all(|own| own.device.index.or(own.place).is_some())
}

/// Why it is not known for which ports NCCL has room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Doubt {
    /// Not all devices could be listed.
    Unlisted,
    /// Not all ports could be read.
    Unread {
        /// How many could.
        read: usize,
        /// How many there are.
        all: usize,
    },
    /// It is not known in which order NCCL takes so many, without those that are down.
    Order(usize),
    /// Some devices could not be opened, which take no room from others if NCCL cannot open them either.
    Unopened {
        /// How many ports these have, without those that are down.
        ports: usize,
        /// How many there are.
        all: usize,
    },
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unlisted => f.write_str("not all devices could be listed"),
            Self::Unread { read, all } => write!(f, "{read} of {all} could be read"),
            Self::Unopened { ports, all } => {
                write!(f, "{ports} of the {all} are of devices that could not be opened")
            }
            Self::Order(all) => write!(f, "in which order it takes the {all} is not known"),
        }
    }
}

/// Why it is not known for which ports of a host NCCL has room, if that is so.
#[must_use]
pub fn doubt(inventory: &Inventory) -> Option<Doubt> {
    let all = all_takers(inventory);
    let unread = unread(inventory, |_, _| true).saturating_add(others(inventory, asked));
    if has_unlisted(inventory) {
        Some(Doubt::Unlisted)
    } else if unread > 0 && fills(inventory) {
        Some(Doubt::Unread { read: all.saturating_sub(unread), all })
    } else if fills(inventory) && !has_order(inventory) {
        Some(Doubt::Order(all_takers(inventory)))
    } else {
        let ports = takers(unopened(inventory).into_iter());
        let is_any = ports > 0 && fills(inventory);
        is_any.then(|| Doubt::Unopened { ports, all: all_takers(inventory) })
    }
}

/// The devices that could not be opened here, where others could be, or may be: it is not known whether a program can.
/// If all were read, and none may be opened, programs that are asked about are elsewhere.
#[must_use]
pub fn unopened(inventory: &Inventory) -> Vec<&DeviceRecord> {
    let may_be_opened =
        |own: &DeviceRecord| matches!(own.node_state(), Some(NodeState::Usable) | None);
    let is_any = inventory.is_partial()
        || has_unlisted(inventory)
        || inventory.devices.iter().any(may_be_opened);
    let was_not = |own: &&DeviceRecord| match own.node_state() {
        Some(NodeState::Forbidden | NodeState::NotPermitted | NodeState::Unusable) => true,
        Some(NodeState::Usable | NodeState::None | NodeState::Missing) => false,
        // What was not tried says nothing.
        None => own.device.node_is_unread || matches!(own.access, Some(Err(_))),
    };
    inventory.devices.iter().filter(|_| is_any).filter(was_not).collect()
}

/// Whether a program uses a port with this outcome if it can, and has room for it.
fn is_used(outcome: &Outcome) -> bool {
    *outcome == Outcome::Ignored(Why::NoRoom) || !matches!(outcome, Outcome::Ignored(_))
}

impl Model {
    /// Whether it is a release of NCCL that looks for its file in the home of the password entry.
    fn reads_home_of_password_entry(&self) -> bool {
        match self {
            Self::Nccl(own) => match own.implementation() {
                Implementation::Nccl(release) => {
                    SettingsReading::from(release) < SettingsReading::V2_30
                }
                Implementation::Nvshmem => false,
            },
            Self::Ucx(_) => false,
        }
    }

    /// Whether each release of NCCL that this is has room for the ports that it takes, and may take: of devices that are
    /// found, or of all.
    fn has_room(&self, inventory: &Inventory, ports: &[&Port<'_>], is_of_all: bool) -> bool {
        match self {
            Self::Nccl(own) if own.implementation() == Implementation::Nccl(Release::V2_20) => {
                let all = ports.iter().zip(self.choose_all(ports));
                let taken = all
                    .filter(|(port, own)| (is_of_all || port.is_found) && is_used(&own.outcome))
                    .count();
                let unread = if is_of_all {
                    unread_of(inventory.devices.iter(), |_, _| true)
                } else {
                    unread(inventory, |_, _| true)
                };
                let others = others(inventory, asked);
                taken.saturating_add(unread).saturating_add(others) <= ROOM_BEFORE
            }
            _ => true,
        }
    }

    /// What the program does with all ports of a host that could be read, and for each of them whether that is known.
    /// Of a sysfs tree it is not, as nobody knows which variables are set there. Nor is it of a device that may be one
    /// that no program can open ([`unopened`]). Only NCCL itself has files of settings.
    ///
    /// ```
    /// use uverbs::choose::{self, plan::Program};
    ///
    /// let inventory = uverbs::Host::new().inventory(&Default::default());
    /// let ports = choose::ports(&inventory);
    /// let model = Program::Nccl.model(|_| None);
    /// for (decision, is_sure) in model.take(&inventory, &ports.iter().collect::<Vec<_>>()) {
    ///     println!("{} {is_sure}", decision.outcome);
    /// }
    /// ```
    #[must_use]
    pub fn take(&self, inventory: &Inventory, ports: &[&Port<'_>]) -> Vec<(Decision, bool)> {
        let is_nccl = matches!(self, Self::Nccl(own) if matches!(own.implementation(), Implementation::Nccl(_)));
        // Variables are known of a host, and not of a tree.
        let is_read = inventory.host.is_some()
            && (!is_nccl || inventory.unread_settings.is_empty())
            && !(inventory.home_is_assumed && self.reads_home_of_password_entry());
        let is_room_known = match self {
            Self::Nccl(_) if is_nccl => {
                doubt(inventory).is_none() && self.has_room(inventory, ports, false)
            }
            Self::Nccl(_) => !is_crowded(inventory),
            Self::Ucx(own) => {
                let may_name_others = inventory.list_failure.is_some() && own.names_more();
                !overfills_ucx(inventory, own) && !own.may_stop() && !may_name_others
            }
        };
        let unopened = unopened(inventory).into_iter().map(|own| own.device.name.as_str());
        let unopened: BTreeSet<&str> = unopened.collect();
        // With more devices than it finds there may be too many.
        let is_room_for_all = !is_nccl
            || !might_fill(inventory, Release::NEWEST) && self.has_room(inventory, ports, true);
        let all = ports.iter().zip(self.choose_all(ports));
        let all = all.map(|(port, own)| {
            let is_room_known = is_room_known && (port.is_found || is_room_for_all);
            let is_taken = is_room_known && !unopened.contains(port.device);
            let is_known = is_read && (is_taken || !is_used(&own.outcome));
            let is_sure = is_known && self.is_sure(port, &own.outcome);
            (own, is_sure)
        });
        all.collect()
    }
}
