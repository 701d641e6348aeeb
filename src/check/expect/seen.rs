//! What is known of a host's devices and ports, field by field.

use std::collections::{BTreeMap, BTreeSet};

use super::field::{Field, Value};
use crate::choose::plan::Program;
use crate::choose::{
    self, Decision, Family, Home, Network, Outcome, Port, Row, Surroundings, Why, Wish, address_of,
    is_of_link, recommend,
};
use crate::gid::{Gid, GidType};
use crate::inventory::{DeviceRecord, Inventory, PortRecord};

use super::compare::to_u64;

/// What was seen of a field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// Its values; none if there is none.
    pub(super) values: Vec<Value>,
    /// Whether that is all. If not, something could not be read.
    pub(super) is_whole: bool,
}

impl Seen {
    /// What could not be read.
    const UNREAD: Self = Self { values: Vec::new(), is_whole: false };

    fn one(value: Option<Value>) -> Self {
        Self { values: value.into_iter().collect(), is_whole: true }
    }

    fn number(value: impl Into<u64>) -> Self {
        Self::one(Some(Value::Number(value.into())))
    }

    fn word(value: &impl ToString) -> Self {
        Self::one(Some(Value::Word(value.to_string())))
    }
}

/// A host, with what is the same for all its ports.
pub(super) struct Scene<'i> {
    inventory: &'i Inventory,
    here: Surroundings<'i>,
    ports: Vec<Port<'i>>,
    /// What NCCL and UCX take, by port; `None` where that is not known.
    nccl: Vec<Option<Outcome>>,
    ucx: Vec<Option<Outcome>>,
    /// The place of each port in these lists.
    places: BTreeMap<(&'i str, u32), usize>,
}

impl<'i> Scene<'i> {
    pub(super) fn of(inventory: &'i Inventory) -> Self {
        let here = Surroundings::of(inventory);
        let all = inventory.devices.iter().flat_map(|record| {
            record.ports.iter().filter_map(|port| choose::port(&here, record, port))
        });
        let ports: Vec<Port<'_>> = all.collect();
        let places = ports.iter().enumerate();
        let places = places.map(|(place, own)| ((own.device, own.number), place)).collect();
        let nccl = taken(inventory, &ports, Program::Nccl);
        let ucx = taken(inventory, &ports, Program::Ucx);
        Self { inventory, here, ports, nccl, ucx, places }
    }

    /// What was seen of a field, of a device or of one of its ports.
    pub(super) fn see(&self, field: Field, record: &DeviceRecord, port: &PortRecord) -> Seen {
        let place = self.places.get(&(record.device.name.as_str(), port.number)).copied();
        let own = place.and_then(|place| self.ports.get(place));
        let index = |all: &[Option<Outcome>]| {
            let outcome = place.and_then(|place| all.get(place)?.as_ref());
            outcome.map_or(Seen::UNREAD, index_of)
        };
        match field {
            Field::LinkLayer | Field::State | Field::Rate | Field::Width | Field::Mtu => {
                see_attribute(field, port)
            }
            Field::Interface if self.inventory.interfaces.is_none() => Seen::UNREAD,
            Field::Interface if !self.inventory.has_netlink => Seen::UNREAD,
            Field::Interface => port.netdev.as_ref().map_or(Seen::UNREAD, |own| {
                Seen::one(own.as_ref().map(|own| Value::word(&own.name)))
            }),
            Field::RoceV2Ipv4 => own.map_or(Seen::UNREAD, |own| self.addresses(own, Family::V4)),
            Field::RoceV2Ipv6 => own.map_or(Seen::UNREAD, |own| self.addresses(own, Family::V6)),
            Field::PKeys => match &port.pkeys {
                Some(Ok(pkeys)) => Seen {
                    values: pkeys.iter().map(|(_, own)| Value::Number(own.0.into())).collect(),
                    is_whole: true,
                },
                _ => Seen::UNREAD,
            },
            Field::GidIndex => own.map_or(Seen::UNREAD, |own| {
                let decision = recommend(own, &Wish::default());
                if is_known(&decision, own) { index_of(&decision.outcome) } else { Seen::UNREAD }
            }),
            Field::NcclIndex => index(&self.nccl),
            Field::UcxIndex => index(&self.ucx),
            _ => see_device(field, record),
        }
    }

    /// The addresses of a family that have a GID of RoCE v2 and are not link-local, with their networks. That of the
    /// GID that is the best is the first.
    fn addresses(&self, port: &Port<'_>, family: Family) -> Seen {
        let mut wish = Wish::default();
        (wish.gid_type, wish.family) = (Some(GidType::ROCE_V2), Some(family));
        let best = recommend(port, &wish).outcome.index();
        let mut seen = Seen { values: Vec::new(), is_whole: true };
        let is_best = |row: &&Row<'_>| Some(row.index) == best;
        let (first, others) = (port.rows.iter().filter(is_best), port.rows.iter());
        let rows = first.chain(others.filter(|row| !is_best(row)));
        let is_roce = choose::is_roce(port.link_layer, port.node_type);
        let mut known = BTreeSet::new();
        for row in rows.filter(|row| is_roce && row.family() == family) {
            let may_be_v2 = row.gid_type == GidType::ROCE_V2 || row.is_type_unread();
            if !may_be_v2 || is_of_link(row.gid) {
                continue;
            }
            match row.home {
                Home::Ours { has_address: false, .. }
                | Home::Ours { unfit: Some(_), .. }
                | Home::Foreign
                | Home::WithoutAddress => {}
                Home::Ours { name, .. } if !row.is_type_unread() => {
                    if known.insert(row.gid) {
                        seen.values.push(Value::Network(self.network_of(name, row.gid)));
                    }
                }
                _ => seen.is_whole = false,
            }
        }
        seen
    }

    /// The address of a GID with the bits of its network on its interface; with all bits if that is not known.
    fn network_of(&self, name: &str, gid: Gid) -> Network {
        let bits = self.here.named(name).and_then(|own| self.here.prefix(own, gid));
        let address = address_of(gid);
        Network { address, ..Network::of(address, bits.unwrap_or(u8::MAX)) }
    }
}

fn see_attribute(field: Field, port: &PortRecord) -> Seen {
    let Some(own) = port.known() else { return Seen::UNREAD };
    match field {
        Field::LinkLayer => Seen::word(&own.link_layer),
        Field::State => Seen::word(&own.state),
        Field::Rate => own.rate().map_or(Seen::UNREAD, |own| Seen::number(own.0)),
        Field::Width => {
            let lanes = own.active_width.and_then(crate::port::Width::lanes);
            lanes.map_or(Seen::UNREAD, Seen::number)
        }
        // Code 0 is that of a port without an interface.
        Field::Mtu => match own.active_mtu {
            Some(own) if own.0 == 0 => Seen::one(None),
            other => other.and_then(crate::port::Mtu::bytes).map_or(Seen::UNREAD, Seen::number),
        },
        _ => Seen::UNREAD,
    }
}

fn see_device(field: Field, record: &DeviceRecord) -> Seen {
    let hardware = record.hardware.as_ref();
    let pci = hardware.filter(|own| !own.pci_is_unread).map(|own| own.pci.as_ref());
    let link = |of: &dyn Fn(crate::hardware::PcieLink) -> u64| match pci {
        Some(None) => Seen::one(None),
        Some(Some(own)) => own.link.map_or(Seen::UNREAD, |own| Seen::number(of(own))),
        None => Seen::UNREAD,
    };
    match field {
        Field::Firmware => record.device.fw_version.as_ref().map_or(Seen::UNREAD, Seen::word),
        Field::NumaNode => match hardware {
            Some(own) if !own.numa_node_is_unread => {
                Seen::one(own.numa_node.map(|node| Value::Number(node.into())))
            }
            _ => Seen::UNREAD,
        },
        Field::PcieSpeed => link(&|own| own.speed.into()),
        Field::PcieWidth => link(&|own| own.width.into()),
        Field::Ports => Seen::number(to_u64(record.device.ports().count())),
        _ => Seen::UNREAD,
    }
}

/// Whether it is known what is recommended.
fn is_known(decision: &Decision, port: &Port<'_>) -> bool {
    !matches!(decision.outcome, Outcome::Ignored(Why::NotKnown(_))) && decision.is_sure(port)
}

fn index_of(outcome: &Outcome) -> Seen {
    Seen::one(Some(match outcome.index() {
        Some(index) => Value::Number(index.into()),
        None => Value::word(Value::NO_INDEX),
    }))
}

/// What the newest release of a program takes on each port, where that is known.
fn taken(inventory: &Inventory, ports: &[Port<'_>], program: Program) -> Vec<Option<Outcome>> {
    let model = program.model(|name| inventory.setting(name).map(|own| own.value.as_str()));
    let all = model.take(inventory, &ports.iter().collect::<Vec<_>>()).into_iter();
    all.map(|(own, is_sure)| is_sure.then_some(own.outcome)).collect()
}
