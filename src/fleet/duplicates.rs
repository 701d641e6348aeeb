//! What should be on one host only, and is on several.

use std::collections::BTreeMap;

use super::end::Place;
use super::survey::Survey;
use crate::choose::{Home, Kind, home, is_link_local};
use crate::gid::{DEFAULT_PREFIX, Gid, GidType};
use crate::hardware::PciFunction;
use crate::inventory::{DeviceRecord, PortRecord};
use crate::netdev::Unfit;
use crate::port::{LinkLayer, PortAttributes, PortState};

/// What is of one host only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Identity {
    /// A device's node GUID.
    NodeGuid,
    /// A port's GUID.
    PortGuid,
    /// An address that a RoCE GID is made from.
    Address,
    /// A MAC address, by the link-local GID that the kernel makes from it.
    Mac,
    /// A LID in a subnet of InfiniBand, of a port that is armed or active.
    Lid,
}

/// Hosts that have the same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Duplicate {
    /// The hosts, ascending.
    pub hosts: Vec<u32>,
    /// What they have in common, and how many of it; each with the first.
    pub same: Vec<(Identity, usize, String)>,
}

/// What was seen of all hosts.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// With whether it is not known that it is the host's own.
    list: Vec<(Key, u32, bool)>,
    /// Where the list of the last host begins.
    start: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    identity: Identity,
    bytes: [u8; 16],
}

impl Key {
    fn of_number(identity: Identity, number: u64) -> Self {
        Self { identity, bytes: u128::from(number).to_be_bytes() }
    }

    fn text(self) -> String {
        let number = u128::from_be_bytes(self.bytes);
        match self.identity {
            Identity::NodeGuid | Identity::PortGuid => format!("{number:#018x}"),
            Identity::Address => {
                let gid = Gid::from_bytes(self.bytes);
                gid.ipv4().map_or_else(|| gid.to_string(), |own| own.to_string())
            }
            Identity::Mac => Gid::from_bytes(self.bytes).to_string(),
            Identity::Lid => (number & 0xffff_ffff).to_string(),
        }
    }
}

impl Seen {
    pub(super) fn add_device(&mut self, host: u32, record: &DeviceRecord) {
        let node = record.device.node_guid;
        if !node.is_zero() {
            self.list.push((Key::of_number(Identity::NodeGuid, node.to_u64()), host, false));
        }
    }

    /// Adds a port. Whether all of it that should be on one host only is known.
    pub(super) fn add_port(
        &mut self,
        host: u32,
        name: u32,
        Place { here, record, port }: Place<'_, '_>,
    ) -> bool {
        let mut is_known = port.guid.is_ok();
        if let Ok(Some(guid)) = port.guid {
            if !guid.is_zero() {
                self.list.push((Key::of_number(Identity::PortGuid, guid.to_u64()), host, false));
            }
        }
        let is_roce = record.is_roce(port);
        for row in record.rows(port.number) {
            let entry = &row.record.entry;
            let is_of_roce = match entry.gid_type() {
                GidType::ROCE_V1 | GidType::ROCE_V2 => true,
                // One that could not be read is one of these.
                _ => {
                    is_known &= is_roce.is_some();
                    is_roce == Some(true)
                }
            };
            let Some(identity) = identity(entry.gid()).filter(|_| is_of_roce) else { continue };
            // Each row of RoCE has an interface.
            let is_own = is_own(home(here, (Kind::Roce, port), row));
            is_known &= is_own.is_some();
            if is_own != Some(false) {
                let key = Key { identity, bytes: entry.gid().to_bytes() };
                self.list.push((key, host, is_own.is_none()));
            }
        }
        self.add_lid(host, name, record, port) && is_known
    }

    /// Adds a port's LID. Whether it is known, and whose it is.
    fn add_lid(&mut self, host: u32, name: u32, record: &DeviceRecord, port: &PortRecord) -> bool {
        /// `IBV_QPF_GRH_REQUIRED`: a virtual function, which has the LID of its physical one.
        const GRH_REQUIRED: u8 = 1;
        // A port that is down may show one that it had before, or 0xffff. Larger ones are not of one port.
        let has_lid = |own: &PortAttributes| {
            let is_configured = [PortState::ARMED, PortState::ACTIVE, PortState::ACTIVE_DEFER];
            is_configured.contains(&own.state) && matches!(own.lid, 1..=0xbfff)
        };
        let Some(own) = port.known() else { return false };
        let is_virtual = own.flags.is_some_and(|own| own & GRH_REQUIRED != 0)
            || record
                .hardware
                .as_ref()
                .and_then(|own| own.pci.as_ref())
                .is_some_and(PciFunction::is_virtual);
        if own.link_layer != LinkLayer::INFINIBAND || !has_lid(own) || is_virtual {
            return true;
        }
        let Some(row) = record.rows(port.number).first() else { return false };
        let prefix = row.record.entry.gid().subnet_prefix();
        // Fabrics without a prefix of their own may be several, one for each rail.
        let rail = if prefix == DEFAULT_PREFIX { u64::from(name) + 1 } else { 0 };
        let number = u128::from(prefix) << 64 | u128::from(rail) << 32 | u128::from(own.lid);
        let key = Key { identity: Identity::Lid, bytes: number.to_be_bytes() };
        // In a virtual machine only the flags show that a function is virtual.
        self.list.push((key, host, own.flags.is_none()));
        own.flags.is_some()
    }

    /// One host has its own things more than once.
    pub(super) fn end_host(&mut self) {
        let mut own = self.list.split_off(self.start);
        own.sort_unstable();
        // What is known to be its own comes first.
        own.dedup_by_key(|(key, host, _)| (*key, *host));
        self.list.append(&mut own);
        self.start = self.list.len();
    }
}

/// What the address of a GID of RoCE says of a host, if it is of one host only.
fn identity(gid: Gid) -> Option<Identity> {
    let is_v4_local = gid.ipv4().is_some_and(|own| own.is_link_local() || own.is_loopback());
    if is_v4_local || gid.ipv6().is_loopback() {
        None
    } else if !is_link_local(gid) {
        Some(Identity::Address)
    } else {
        (gid.interface_id() >> 24 & 0xffff == 0xfffe).then_some(Identity::Mac)
    }
}

/// Whether the address of a row is one of the host, if that is known. That of another namespace may be an overlay's,
/// which is on each host; a row may be left of an address that another host has now; and the far end of a
/// point-to-point link is another host's.
fn is_own(home: Home<'_>) -> Option<bool> {
    match home {
        Home::Ours { has_address: true, unfit, .. } | Home::Unproven { unfit, .. } => {
            Some(unfit != Some(Unfit::FarEnd))
        }
        Home::Unknown { .. } => None,
        _ => Some(false),
    }
}

impl Survey {
    /// What several hosts have and only one should. Hosts that have the same things in common are one duplicate.
    ///
    /// Two containers of one host see the same devices, and so are duplicates; a survey cannot know that.
    #[must_use]
    pub fn duplicates(&self) -> Vec<Duplicate> {
        self.duplicates_of(false)
    }

    /// What may be a duplicate: several hosts have a row with an address, or a LID, and of one of them it is not known
    /// whether this is its own. All hosts are named that may have it, also those that are known to.
    #[must_use]
    pub fn perhaps_duplicates(&self) -> Vec<Duplicate> {
        self.duplicates_of(true)
    }

    fn duplicates_of(&self, is_perhaps: bool) -> Vec<Duplicate> {
        let mut list = self.seen.list.clone();
        list.sort_unstable();
        let mut found: BTreeMap<Vec<u32>, Vec<(Identity, usize, String)>> = BTreeMap::new();
        for same in list.chunk_by(|one, other| one.0 == other.0) {
            if is_perhaps && same.iter().all(|own| !own.2) {
                continue;
            }
            let own = same.iter().filter(|own| is_perhaps || !own.2);
            let hosts: Vec<u32> = own.map(|(_, host, _)| *host).collect();
            let (Some((key, ..)), true) = (same.first(), hosts.len() > 1) else { continue };
            let own = found.entry(hosts).or_default();
            match own.last_mut() {
                Some((identity, count, _)) if *identity == key.identity => *count += 1,
                _ => own.push((key.identity, 1, key.text())),
            }
        }
        found.into_iter().map(|(hosts, same)| Duplicate { hosts, same }).collect()
    }
}
