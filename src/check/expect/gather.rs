//! A pattern that is made from hosts that are good.

use std::collections::{BTreeMap, BTreeSet};

use super::compare::{to_u64, with_board};
use super::field::{Allowed, Field, Form, Value};
use super::network::{is_of_one_host, tidy, widen};
use super::seen::{Scene, Seen};
use super::{DevicePattern, HostPattern, Hosts};
use crate::choose::Network;
use crate::choose::room::has_unlisted;
use crate::inventory::{DeviceRecord, Inventory, PortRecord};
use crate::port::LinkLayer;

/// Gathers what holds for all of several hosts. Beside their names and GUIDs, what is kept depends on how much they
/// differ, not on how many they are.
#[derive(Clone, Debug, Default)]
pub struct Gathering {
    /// Those that have a name. Of others it is not known whether they are several.
    hosts: Hosts,
    /// What was seen of the devices of a kind and name, on all hosts that have one.
    rails: BTreeMap<(Kind, String), Rail>,
    /// The devices that hosts have, by kind and name. Hosts that are alike have one list.
    lists: BTreeSet<Vec<(Kind, String)>>,
    /// Whether the devices of each host are known.
    is_open: bool,
    /// Whether the driver, and the board, of each device is known.
    lacks_driver: bool,
    lacks_board: bool,
}

/// Driver and board, as groups select them.
type Kind = (Option<String>, Option<String>);

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Gathered {
    /// The pattern. All hosts fit it.
    pub pattern: HostPattern,
    /// What each of its groups leaves out, and why.
    pub left_out: Vec<Vec<(Field, LeftOut)>>,
}

/// Why a pattern leaves out a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LeftOut {
    /// It could not be read everywhere.
    NotRead,
    /// No device is known to have it.
    NoneKnown,
    /// Not each device or port has it.
    NotEverywhere,
    /// It is of the one host that was looked at: a network of a few addresses.
    OfOneHost,
    /// The ports have nothing in common.
    NothingCommon,
}

/// What was seen of devices that are of one group.
#[derive(Clone, Debug, Default)]
struct Rail {
    fields: BTreeMap<Field, Kept>,
}

/// What was seen of a field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Kept {
    values: BTreeSet<Value>,
    /// Of networks, those of each port on all hosts, by the device's name.
    networks: BTreeMap<(String, u32), Vec<Network>>,
    is_unread: bool,
    /// Whether a port is of another link layer than Ethernet, or its P_Keys were asked for.
    is_wanted: bool,
    /// Whether one has none.
    lacks: bool,
    /// How often it was looked for.
    looked: usize,
}

impl Gathering {
    /// Adds a host.
    pub fn add(&mut self, inventory: &Inventory) {
        if let Some(name) = &inventory.host {
            self.hosts.add(Some(name), inventory);
        }
        self.is_open |= has_unlisted(inventory) || inventory.is_partial();
        let scene = Scene::of(inventory);
        let mut list = Vec::new();
        for record in &inventory.devices {
            self.lacks_driver |= record.device.driver.is_none();
            let hardware = with_board(record);
            self.lacks_board |= hardware.is_none();
            let driver = record.device.driver.map(|own| own.to_string());
            let board = hardware.and_then(|own| own.board_id.clone());
            let key = ((driver, board), record.device.name.clone());
            list.push(key.clone());
            self.rails.entry(key).or_default().add(&scene, record);
        }
        list.sort_unstable();
        self.lists.insert(list);
    }

    /// What holds for all hosts.
    #[must_use]
    pub fn end(self) -> Gathered {
        let Self { hosts, rails, lists, is_open, lacks_driver, lacks_board } = self;
        let is_several = hosts.names().nth(1).is_some();
        let kind = |(driver, board): Kind| {
            (driver.filter(|_| !lacks_driver), board.filter(|_| !lacks_board))
        };
        // Of what groups cannot select by, they are one.
        let mut all: BTreeMap<Kind, BTreeMap<String, Rail>> = BTreeMap::new();
        for ((own, name), rail) in rails {
            all.entry(kind(own)).or_default().entry(name).or_default().join(rail);
        }
        let lists: BTreeSet<Vec<(Kind, String)>> = lists
            .into_iter()
            .map(|list| list.into_iter().map(|(own, name)| (kind(own), name)).collect())
            .collect();
        let mut groups: Vec<(DevicePattern, Vec<(Field, LeftOut)>)> = Vec::new();
        for (own, rails) in all {
            let parts = split(rails);
            let is_whole = parts.len() == 1;
            for (names, rail) in parts {
                let is_in = |(kind, name): &&(Kind, String)| *kind == own && names.contains(name);
                let counts = lists.iter().map(|list| list.iter().filter(is_in).count());
                let count = range(counts).filter(|_| !is_open);
                let (fields, left_out) = rail.end(is_several);
                let names = if is_whole { Vec::new() } else { names.into_iter().collect() };
                let (drivers, boards) = own.clone();
                let (drivers, boards) =
                    (drivers.into_iter().collect(), boards.into_iter().collect());
                groups.push((DevicePattern { drivers, boards, names, count, fields }, left_out));
            }
        }
        // The first group that selects a device has it, so those that select by more come first.
        groups.sort_by_key(|(own, _)| own.boards.is_empty());
        let (devices, left_out) = groups.into_iter().unzip();
        let only_these_devices = !lists.is_empty() && !is_open;
        Gathered { pattern: HostPattern { only_these_devices, devices }, left_out }
    }
}

/// The numbers of devices that hosts have.
fn range(counts: impl Iterator<Item = usize> + Clone) -> Option<Allowed> {
    let (min, max) = (to_u64(counts.clone().min()?), to_u64(counts.max()?));
    Some(if min == max {
        Allowed::one(Value::Number(min))
    } else {
        Allowed::Within { min: Some(min), max: Some(max) }
    })
}

/// The names of devices, and what was seen of them.
type Part = (BTreeSet<String>, Rail);

/// Puts together devices of which the same was seen, but for what may differ within a group.
fn split(rails: BTreeMap<String, Rail>) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for (name, rail) in rails {
        let place = parts.iter().position(|(_, own)| own.is_like(&rail));
        match place.and_then(|place| parts.get_mut(place)) {
            Some((names, own)) => {
                names.insert(name);
                own.join(rail);
            }
            None => parts.push((BTreeSet::from([name]), rail)),
        }
    }
    parts
}

impl Rail {
    fn add(&mut self, scene: &Scene<'_>, record: &DeviceRecord) {
        let none = PortRecord::new(0);
        for field in Field::ALL {
            let kept = self.fields.entry(field).or_default();
            if field.is_of_device() {
                kept.add(field, &scene.see(field, record, &none), (record, 0));
                continue;
            }
            kept.is_unread |= record.ports.is_empty() && !record.device.ports().is_empty();
            for port in &record.ports {
                let layer = port.known().map(|own| own.link_layer);
                kept.is_wanted |= layer != Some(LinkLayer::ETHERNET) || port.pkeys.is_some();
                kept.add(field, &scene.see(field, record, port), (record, port.number));
            }
        }
    }

    fn join(&mut self, other: Self) {
        for (field, own) in other.fields {
            self.fields.entry(field).or_default().join(field, own);
        }
    }

    /// Whether both may be of one group.
    fn is_like(&self, other: &Self) -> bool {
        let one = self.fields.iter().map(|(field, own)| own.mark(*field));
        one.eq(other.fields.iter().map(|(field, own)| own.mark(*field)))
    }

    fn end(self, is_several: bool) -> (BTreeMap<Field, Allowed>, Vec<(Field, LeftOut)>) {
        let (mut fields, mut left_out) = (BTreeMap::new(), Vec::new());
        for (field, own) in self.fields {
            match own.end(field, is_several) {
                Ok(Some(allowed)) => drop(fields.insert(field, allowed)),
                Ok(None) => {}
                Err(why) => left_out.push((field, why)),
            }
        }
        (fields, left_out)
    }
}

impl Kept {
    fn add(&mut self, field: Field, seen: &Seen, (record, port): (&DeviceRecord, u32)) {
        let mut own = Self { looked: 1, is_unread: !seen.is_whole, ..Self::default() };
        match field.form() {
            Form::Networks => {
                // That of the best GID is the first.
                if let Some(Value::Network(one)) = seen.values.first() {
                    let place = (record.device.name.clone(), port);
                    own.networks.insert(place, vec![Network::of(one.address, one.bits)]);
                }
            }
            _ => own.values.extend(seen.values.iter().cloned()),
        }
        own.lacks = seen.is_whole && seen.values.is_empty();
        self.join(field, own);
    }

    fn join(&mut self, field: Field, other: Self) {
        if other.looked == 0 {
            self.is_unread |= other.is_unread;
            self.is_wanted |= other.is_wanted;
            return;
        }
        if field.form() == Form::PKeys && self.looked > 0 {
            // What all have.
            self.values.retain(|own| other.values.contains(own));
        } else {
            self.values.extend(other.values);
        }
        for (port, all) in other.networks {
            let own = self.networks.entry(port).or_default();
            for one in all {
                widen(own, one);
            }
        }
        self.is_unread |= other.is_unread;
        self.is_wanted |= other.is_wanted;
        self.lacks |= other.lacks;
        self.looked += 1;
    }

    /// What is the same of all devices of a group.
    fn mark(&self, field: Field) -> (Vec<&Value>, [bool; 3]) {
        let none = Value::word(Value::NO_INDEX);
        let values = match field {
            // These differ between devices that are alike.
            Field::Firmware | Field::NumaNode | Field::Interface => Vec::new(),
            _ if field.form() == Form::Index => {
                self.values.iter().filter(|own| **own == none).collect()
            }
            _ => self.values.iter().collect(),
        };
        // Whether there is one beside that.
        let has_index = field.form() == Form::Index && self.values.iter().any(|own| *own != none);
        (values, [self.is_unread, self.lacks, has_index])
    }

    fn end(self, field: Field, is_several: bool) -> Result<Option<Allowed>, LeftOut> {
        let Self { values, networks, is_unread, is_wanted, lacks, looked } = self;
        let is_any = !values.is_empty() || !networks.is_empty();
        // P_Keys are not read on Ethernet: there is nothing to say.
        let is_not_asked = field == Field::PKeys && !is_wanted;
        // Software devices have no firmware.
        let may_be_none = field == Field::Firmware;
        if looked == 0 || (is_unread && !is_any && is_not_asked) {
            return Ok(None);
        } else if is_unread && !is_any && may_be_none {
            return Err(LeftOut::NoneKnown);
        } else if is_unread {
            return Err(LeftOut::NotRead);
        } else if !is_any {
            let had_some = field.form() == Form::PKeys && !lacks;
            return if had_some { Err(LeftOut::NothingCommon) } else { Ok(None) };
        } else if lacks {
            return Err(LeftOut::NotEverywhere);
        }
        if field.form() == Form::Networks {
            let all = tidy(networks.into_values().flatten().collect());
            if !is_several && all.iter().any(|own| is_of_one_host(*own)) {
                return Err(LeftOut::OfOneHost);
            }
            return Ok(Some(Allowed::OneOf(all.into_iter().map(Value::Network).collect())));
        }
        let numbers = numbers(&values).filter(|_| field.form() != Form::PKeys);
        Ok(Some(numbers.unwrap_or_else(|| Allowed::OneOf(values.into_iter().collect()))))
    }
}

/// Many numbers are a range.
fn numbers(values: &BTreeSet<Value>) -> Option<Allowed> {
    /// So many are still a list.
    const LISTED: usize = 8;
    let number = |own: &Value| if let Value::Number(own) = own { Some(*own) } else { None };
    let all: Option<Vec<u64>> = values.iter().map(number).collect();
    let all = all.filter(|all| all.len() > LISTED)?;
    Some(Allowed::Within { min: all.first().copied(), max: all.last().copied() })
}
