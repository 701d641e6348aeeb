//! A pattern that is made from hosts that are good.

use std::collections::{BTreeMap, BTreeSet};

use super::compare::{to_u64, with_board};
use super::field::{Allowed, Field, Form, Value};
use super::network::{common, is_of_one_host, site, tidy};
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
    /// The devices that hosts have, by the numbers of their rails. Hosts that are alike have one list.
    lists: BTreeSet<Vec<usize>>,
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
    /// Whether groups have no drivers, as those of some device could not be read.
    pub lacks_driver: bool,
    /// The same of boards.
    pub lacks_board: bool,
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
    /// Its number, and those of rails that were joined to it.
    numbers: Vec<usize>,
}

/// What was seen of a field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Kept {
    values: BTreeSet<Value>,
    /// Of networks, those of each port on all hosts, by the device's name. Those of one site are the smallest that has all.
    networks: BTreeMap<(String, u32, Network), Network>,
    is_unread: bool,
    /// Whether a port is of another link layer than Ethernet, or its P_Keys were asked for.
    is_wanted: bool,
    /// Whether one has none.
    lacks: bool,
    /// How often it was looked for, and how often there were some.
    looked: usize,
    having: usize,
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
            let number = self.rails.len();
            let rail = self.rails.entry(key).or_default();
            if rail.numbers.is_empty() {
                rail.numbers.push(number);
            }
            list.extend(rail.numbers.first());
            rail.add(&scene, record);
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
        let numbers = rails.len();
        // Of what groups cannot select by, they are one.
        let mut all: BTreeMap<Kind, BTreeMap<String, Rail>> = BTreeMap::new();
        for ((own, name), rail) in rails {
            all.entry(kind(own)).or_default().entry(name).or_default().join(rail);
        }
        let mut parts: Vec<(Kind, bool, Part)> = Vec::new();
        let mut places: Vec<usize> = vec![0; numbers];
        for (own, rails) in all {
            let split = split(rails);
            let is_whole = split.len() == 1;
            for part in split {
                for number in &part.1.numbers {
                    if let Some(place) = places.get_mut(*number) {
                        *place = parts.len();
                    }
                }
                parts.push((own.clone(), is_whole, part));
            }
        }
        let counts = counts(&lists, &places, parts.len());
        let mut groups: Vec<(DevicePattern, Vec<(Field, LeftOut)>)> = Vec::new();
        for (((drivers, boards), is_whole, (names, rail)), own) in parts.into_iter().zip(counts) {
            let count = range(&own).filter(|_| !is_open);
            let (fields, left_out) = rail.end(is_several);
            // Without any of these it would be a group of all devices.
            let is_any = drivers.is_none() && boards.is_none();
            let names = if is_whole && !is_any { Vec::new() } else { names.into_iter().collect() };
            let (drivers, boards) = (drivers.into_iter().collect(), boards.into_iter().collect());
            groups.push((DevicePattern { drivers, boards, names, count, fields }, left_out));
        }
        // The first group that selects a device has it, so those that select by more come first.
        let (others, of_boards): (Vec<_>, Vec<_>) =
            groups.into_iter().partition(|(own, _)| own.boards.is_empty());
        let (devices, left_out) = of_boards.into_iter().chain(others).unzip();
        let only_these_devices = !lists.is_empty() && !is_open;
        let pattern = HostPattern { only_these_devices, devices };
        Gathered { pattern, left_out, lacks_driver, lacks_board }
    }
}

/// How many devices of each part hosts have, by the numbers of their rails, and the parts of these.
fn counts(lists: &BTreeSet<Vec<usize>>, places: &[usize], parts: usize) -> Vec<Vec<usize>> {
    let mut counts: Vec<Vec<usize>> = vec![Vec::new(); parts];
    for list in lists {
        let mut list: Vec<usize> =
            list.iter().filter_map(|number| places.get(*number).copied()).collect();
        list.sort_unstable();
        for alike in list.chunk_by(usize::eq) {
            if let Some(own) = alike.first().and_then(|part| counts.get_mut(*part)) {
                own.push(alike.len());
            }
        }
    }
    for own in counts.iter_mut().filter(|own| own.len() < lists.len()) {
        own.push(0);
    }
    counts
}

/// The numbers of devices that hosts have.
fn range(counts: &[usize]) -> Option<Allowed> {
    let (min, max) = (to_u64(*counts.iter().min()?), to_u64(*counts.iter().max()?));
    Some(if min == max {
        Allowed::one(Value::Number(min))
    } else {
        Allowed::Within { min: Some(min), max: Some(max) }
    })
}

/// The names of devices, and what was seen of them.
type Part = (BTreeSet<String>, Rail);

/// What is the same of all devices of a part.
type Mark = Vec<(Field, Vec<Value>, [bool; 3])>;

/// Puts together devices of which the same was seen, but for what may differ within a group.
fn split(rails: BTreeMap<String, Rail>) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    let mut places: BTreeMap<Mark, usize> = BTreeMap::new();
    for (name, rail) in rails {
        let place = *places.entry(rail.mark()).or_insert(parts.len());
        match parts.get_mut(place) {
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
        self.numbers.extend(other.numbers);
        for (field, own) in other.fields {
            self.fields.entry(field).or_default().join(field, own);
        }
    }

    fn mark(&self) -> Mark {
        self.fields.iter().map(|(field, own)| own.mark(*field)).collect()
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
                    let one = Network::of(one.address, one.bits);
                    own.networks.insert((record.device.name.clone(), port, site(one)), one);
                }
            }
            _ => own.values.extend(seen.values.iter().cloned()),
        }
        own.lacks = seen.is_whole && seen.values.is_empty();
        own.having = usize::from(!seen.values.is_empty());
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
        for (place, one) in other.networks {
            let own = self.networks.entry(place).or_insert(one);
            *own = common(*own, one);
        }
        self.is_unread |= other.is_unread;
        self.is_wanted |= other.is_wanted;
        self.lacks |= other.lacks;
        self.having += other.having;
        self.looked += 1;
    }

    /// What is the same of all devices of a part.
    fn mark(&self, field: Field) -> (Field, Vec<Value>, [bool; 3]) {
        let none = Value::word(Value::NO_INDEX);
        let is_index = field.form() == Form::Index;
        let values = match field {
            // These differ between devices that are alike.
            Field::Firmware | Field::NumaNode | Field::Interface => Vec::new(),
            _ if is_index => self.values.iter().filter(|own| **own == none).cloned().collect(),
            _ => self.values.iter().cloned().collect(),
        };
        // Whether there is one beside that.
        let has_index = is_index && self.values.iter().any(|own| *own != none);
        (field, values, [self.is_unread, self.lacks, has_index])
    }

    fn end(self, field: Field, is_several: bool) -> Result<Option<Allowed>, LeftOut> {
        let Self { values, networks, is_unread, is_wanted, lacks, looked, having } = self;
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
            return if having > 0 { Err(LeftOut::NothingCommon) } else { Ok(None) };
        } else if lacks {
            return Err(LeftOut::NotEverywhere);
        }
        if field.form() == Form::Networks {
            let all = tidy(networks.into_values().collect());
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
