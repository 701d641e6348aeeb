//! Hosts, added one by one, and what is kept of them.

use std::net::IpAddr;

use super::duplicates::Seen;
use super::end::{End, Fabric, Place, Site, Used, UsedRow, end};
use super::names::Names;
use super::profile::{Field, Item, Items, Profile};
use crate::choose::plan::{Model, Program};
use crate::choose::{self, Family, Network, Outcome, Port, Surroundings, Why, Wish, recommend};
use crate::inventory::{DeviceRecord, Inventory, PortRecord};
use crate::port::PortState;

/// Who chooses a GID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Chooser {
    /// This project: [`choose::recommend`].
    Recommended,
    /// The newest release of NCCL, with the settings of each host.
    Nccl,
    /// The newest release of UCX, likewise.
    Ucx,
}

impl Chooser {
    /// All of them, in their order.
    pub const ALL: [Self; 3] = [Self::Recommended, Self::Nccl, Self::Ucx];
}

/// Hosts of a fleet. They are numbered in the order in which they are added.
///
/// Of a host are kept, beside what other hosts have too, 32 bytes for a port and 24 bytes for each of its GUIDs and
/// addresses.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    pub(super) hosts: Vec<u32>,
    pub(super) profiles: Names<Profile>,
    pub(super) items: Names<Item>,
    pub(super) ends: Names<End>,
    pub(super) networks: Names<Network>,
    /// `mlx5_0:1`.
    pub(super) ports: Names<String>,
    pub(super) kept: Vec<KeptPort>,
    pub(super) seen: Seen,
}

/// A port of a host. Those of one host come together.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeptPort {
    pub(super) host: u32,
    /// The number of its name.
    pub(super) name: u32,
    /// Its end for each [`Chooser`].
    pub(super) ends: [KeptEnd; 3],
}

/// An end, without its network, which many ends may not have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeptEnd {
    /// The number of the end; [`NONE`] if the port is not used.
    pub(super) kind: u32,
    /// The number of its network; [`NONE`] if there is none.
    pub(super) network: u32,
}

/// No number.
pub(super) const NONE: u32 = u32::MAX;

/// A port with what comes of each choice, and whether that is known.
struct Chosen<'i> {
    port: Port<'i>,
    done: [(Outcome, bool); 3],
    /// Whether what is recommended is known to be right. If it is not, another host need not differ.
    is_right: bool,
}

/// What the settings of a host leave a program.
#[derive(Debug)]
struct List {
    /// Active ports that they leave out, by their places among those that are kept.
    left_out: Vec<(usize, End)>,
    /// Whether they may leave an active port.
    may_have_active: bool,
}

impl List {
    /// Adds a port with the end that the program has there.
    fn note(
        &mut self,
        at: usize,
        (Place { record, port, .. }, own, chooser): (Place<'_, '_>, &Chosen<'_>, Chooser),
        end: Option<&End>,
    ) {
        // Those that programs do not find are of no use to them.
        if own.port.state != PortState::ACTIVE || !own.port.is_found {
            return;
        }
        self.may_have_active |= end.is_some();
        let done = own.done.get(chooser as usize);
        if matches!(done, Some((Outcome::Ignored(Why::NotListed(_)), true))) {
            let end = End { used: Used::NotListed, ..End::without_table(record, port) };
            self.left_out.push((at, end));
        }
    }

    /// The ports that are left out, if no active one is left. Where some are, that is meant.
    fn left_out(self) -> Vec<(usize, End)> {
        if self.may_have_active { Vec::new() } else { self.left_out }
    }
}

impl Survey {
    /// Adds a host.
    pub fn add(&mut self, inventory: &Inventory) {
        let host = u32::try_from(self.hosts.len()).unwrap_or(NONE);
        let here = Surroundings::of(inventory);
        let [nccl, ucx] = [Program::Nccl, Program::Ucx].map(|program| {
            program.model(|name| inventory.setting(name).map(|own| own.value.as_str()))
        });
        let chosen = choose_all(inventory, &here, [&nccl, &ucx]);
        let mut chosen = chosen.iter().peekable();
        // What is recommended heeds no list. What was not read may be one that is left.
        let mut lists = [false, nccl.lists_unread(inventory), ucx.lists_unread(inventory)]
            .map(|may_have_active| List { may_have_active, left_out: Vec::new() });
        let mut items = Items::new(&mut self.items);
        items.add_host(inventory);
        for record in &inventory.devices {
            let device = record.device.name.as_str();
            items.add_device(record);
            self.seen.add_device(host, record);
            for port in &record.ports {
                let name = format!("{device}:{}", port.number);
                items.add_port(&name, port);
                if Fabric::of(record, port) == Some(Fabric::InfiniBandOrOmniPath) {
                    items.lacks();
                }
                let own = chosen
                    .next_if(|own| own.port.device == device && own.port.number == port.number);
                let name_number = self.ports.number(name.as_bytes(), || name.clone());
                let place = Place { here: &here, record, port };
                if !self.seen.add_port(host, name_number, place) {
                    items.lacks();
                }
                let mut ends = [KeptEnd { kind: NONE, network: NONE }; 3];
                let each = Chooser::ALL.into_iter().zip(&mut ends).zip(&mut lists);
                for ((chooser, kept), list) in each {
                    let end = match own {
                        None => Some(End::without_table(record, port)),
                        Some(Chosen { port: seen, done, .. }) => done
                            .get(chooser as usize)
                            .and_then(|(own, is_sure)| end(place, seen, chooser, (own, *is_sure))),
                    };
                    if let Some(own) = own {
                        list.note(self.kept.len(), (place, own, chooser), end.as_ref());
                    }
                    if let Some(end) = end {
                        if chooser == Chooser::Recommended {
                            match own {
                                Some(own) if !own.is_right => items.lacks(),
                                _ => add_site(&mut items, &name, &end),
                            }
                        }
                        *kept = keep(&mut self.ends, &mut self.networks, end);
                    }
                }
                match own {
                    Some(own) => add_outcomes(&mut items, &name, own),
                    None => items.lacks(),
                }
                self.kept.push(KeptPort { host, name: name_number, ends });
            }
        }
        for (at, list) in lists.into_iter().enumerate() {
            for (port, end) in list.left_out() {
                let kept = keep(&mut self.ends, &mut self.networks, end);
                if let Some(own) = self.kept.get_mut(port).and_then(|own| own.ends.get_mut(at)) {
                    *own = kept;
                }
            }
        }
        let profile = items.end(inventory);
        self.hosts.push(self.profiles.number(&profile.key(), || profile));
        self.seen.end_host();
    }

    /// How many hosts there are.
    #[must_use]
    pub fn hosts(&self) -> usize {
        self.hosts.len()
    }
}

fn add_site(items: &mut Items<'_>, name: &str, end: &End) {
    if let Used::Row(UsedRow { gid_type, site, .. }) = &end.used {
        items.add_known(Field::GidType, name, gid_type.map(|own| own.to_string()));
        // Other ports have no networks.
        if end.fabric != Some(Fabric::Roce) {
            return;
        }
        match site {
            Site::Network(network) => {
                items.add(Field::Prefix, name, Some(network.bits.to_string()));
            }
            Site::Unknown => items.lacks(),
            Site::Link => items.add(Field::Prefix, name, Some("link-local".to_owned())),
        }
    }
}

fn add_outcomes(items: &mut Items<'_>, name: &str, own: &Chosen<'_>) {
    let fields = [Field::Index, Field::Nccl, Field::Ucx].into_iter();
    for (field, (outcome, is_sure)) in fields.zip(&own.done) {
        let is_right = own.is_right || field != Field::Index;
        if *is_sure && is_right && !matches!(outcome, Outcome::Ignored(Why::NotKnown(_))) {
            items.add_index(field, name, outcome);
        } else {
            items.lacks();
        }
    }
}

/// Keeps an end, and its network apart from it.
fn keep(ends: &mut Names<End>, networks: &mut Names<Network>, mut end: End) -> KeptEnd {
    let mut network = NONE;
    if let Used::Row(UsedRow { site: Site::Network(own), family, .. }) = &mut end.used {
        network = networks.number(&network_key(*own), || *own);
        *own = any_network(*family);
    }
    KeptEnd { kind: ends.number(&end.key(), || end), network }
}

fn network_key(own: Network) -> Vec<u8> {
    let mut key = match own.address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    key.push(own.bits);
    key
}

/// The network that kept ends have in the place of their own.
fn any_network(family: Family) -> Network {
    let address = match family {
        Family::V4 => std::net::Ipv4Addr::UNSPECIFIED.into(),
        Family::V6 => std::net::Ipv6Addr::UNSPECIFIED.into(),
    };
    Network { address, bits: 0 }
}

/// What everybody chooses on the ports of a host that could be read.
fn choose_all<'i>(
    inventory: &'i Inventory,
    here: &Surroundings<'i>,
    [nccl, ucx]: [&Model; 2],
) -> Vec<Chosen<'i>> {
    let records = inventory.devices.iter();
    let pairs = records.flat_map(|record| record.ports.iter().map(move |port| (record, port)));
    let of = |(record, port): (&'i DeviceRecord, &'i PortRecord)| choose::port(here, record, port);
    let ports: Vec<Port<'i>> = pairs.filter_map(of).collect();
    let listed: Vec<&Port<'i>> = ports.iter().collect();
    let done = |model: &Model| {
        model.take(inventory, &listed).into_iter().map(|(own, is_sure)| (own.outcome, is_sure))
    };
    let programs: Vec<_> = done(nccl).zip(done(ucx)).collect();
    let recommended: Vec<(bool, (Outcome, bool))> = ports
        .iter()
        .map(|port| {
            let own = recommend(port, &Wish::default());
            (own.is_sure(port), (own.outcome, own.better_unknown.is_none()))
        })
        .collect();
    let all = ports.into_iter().zip(recommended).zip(programs);
    all.map(|((port, (is_right, own)), (nccl, ucx))| Chosen {
        port,
        done: [own, nccl, ucx],
        is_right,
    })
    .collect()
}
