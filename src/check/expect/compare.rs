//! What of a host is not as a pattern has it.

use core::cell::OnceCell;
use core::ops::Range;
use std::collections::{BTreeMap, BTreeSet};

use super::expected::{Count, Expected};
use super::field::{Field, Value};
use super::seen::{Scene, Seen};
use super::{DevicePattern, HostPattern, SHOWN};
use crate::check::finding::{Finding, Severity};
use crate::choose::plan::Program;
use crate::device::Device;
use crate::hardware::Hardware;
use crate::inventory::{DeviceRecord, Inventory, PortRecord};

/// What of a host is not as a pattern has it: see [`Comparison::compare`]. For several hosts a [`Comparison`] is made once.
#[must_use]
pub fn compare(
    inventory: &Inventory,
    pattern: &HostPattern,
    is_wanted: impl Fn(&str) -> bool,
) -> Vec<Finding> {
    Comparison::of(pattern).compare(inventory, is_wanted)
}

/// A pattern that any number of hosts are compared with. It is prepared once; for a host each group costs little.
///
/// ```
/// use uverbs::check::expect::{Comparison, Gathering};
///
/// let inventory = uverbs::Host::new().inventory(&Default::default());
/// let mut good = Gathering::default();
/// good.add(&inventory);
/// let pattern = good.end().pattern;
/// assert_eq!(Comparison::of(&pattern).compare(&inventory, |_| true), []);
/// ```
pub struct Comparison<'p> {
    pattern: &'p HostPattern,
    groups: Groups<'p>,
}

impl core::fmt::Debug for Comparison<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Comparison").field("pattern", self.pattern).finish_non_exhaustive()
    }
}

impl<'p> Comparison<'p> {
    /// With this pattern.
    #[must_use]
    pub fn of(pattern: &'p HostPattern) -> Self {
        Self { pattern, groups: Groups::of(pattern) }
    }

    /// What of a host is not as the pattern has it: first how many devices there are, then by device and port.
    ///
    /// Devices that are not wanted are not compared, nor is a number of devices that they may be among. These are the
    /// `others` of the inventory, and devices that could not be listed if `is_wanted` says no of their names.
    #[must_use]
    pub fn compare(&self, inventory: &Inventory, is_wanted: impl Fn(&str) -> bool) -> Vec<Finding> {
        let (pattern, all) = (self.pattern, &self.groups);
        if *pattern == HostPattern::default() {
            return Vec::new();
        }
        let scene = Scene::of(inventory);
        let groups = all.groups_of(&inventory.devices);
        let listed = Listed::of(inventory, is_wanted);
        let is_list_known = listed.is_known();
        let mut list = Vec::new();
        for (place, tally) in all.tallies(inventory, &groups, &listed) {
            list.extend(compare_count(&listed, all, place, tally));
        }
        if pattern.only_these_devices && !is_list_known {
            list.push(unread_list("which devices there are"));
        }
        for (record, group) in inventory.devices.iter().zip(groups) {
            let device = record.device.name.as_str();
            match group {
                Grouped::Of(place) => {
                    let own = all.all.get(place).map(Group::fields);
                    compare_device(&scene, record, own.unwrap_or_default(), &mut list);
                }
                Grouped::Unknown(what) => {
                    let what = format!("{what}, and so what is expected");
                    list.push(unread(Some(device), None, &what));
                }
                Grouped::None if pattern.only_these_devices => list.push(of_no_group(record)),
                Grouped::None => {}
            }
        }
        list
    }
}

fn of_no_group(record: &DeviceRecord) -> Finding {
    Finding {
        device: Some(record.device.name.clone()),
        ..finding(
            "expect-devices",
            format!("a device that no group has: {}", kind(record)),
            Some("only devices of the groups".to_owned()),
            "is it another card, or in the place of one? describe it, or set only_these_devices = false",
        )
    }
}

/// The group of a device.
enum Grouped {
    /// That at this place.
    Of(usize),
    None,
    /// It is not known, as this is not.
    Unknown(&'static str),
}

/// The groups of a pattern, each by the things that it selects by, so that a device is not compared with all.
struct Groups<'p> {
    all: Vec<Group<'p>>,
    places: Places<'p>,
    untouched: Untouched,
}

/// For each group, of which a host has no device, and none that may be by its name: how many devices that may be of any
/// group are enough to say nothing of it. It is the least number that is expected; no number is enough for a group with
/// names, and none is needed where 0 is right.
struct Untouched {
    /// If all devices of the host are listed.
    whole: Numbers,
    /// If the names of all are known.
    named: Numbers,
    /// If not even these are known.
    open: Numbers,
}

/// Numbers by the places of groups, in which greater ones are found: a tree of the greatest of two, from the second on.
struct Numbers(Vec<u64>);

/// How many devices of a host are of a group, and how many may be.
#[derive(Clone, Copy, Default)]
struct Tally {
    devices: usize,
    /// Of these it is not known whether they are.
    unknown: usize,
    /// Those that could not be listed, and those that are not wanted, without those that are of an earlier group in any case.
    unlisted: usize,
    others: usize,
    /// Of the group's names, those of devices that are listed. Counted where others may be there, too.
    listed: usize,
}

/// Numbers by the places of groups.
type Counts = BTreeMap<usize, usize>;

/// The places of groups, ascending.
type Places<'p> = BTreeMap<Selector<'p>, Vec<usize>>;

/// What a group is found by: names if it has some, else boards and drivers. Many may have one board and other drivers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Selector<'p> {
    Name(&'p str),
    /// The same of groups that have names and nothing else: the first has such a device in any case.
    OnlyName(&'p str),
    /// `None` finds all of these, for a device whose board is not known.
    Board(Option<&'p str>),
    /// The same of drivers.
    Driver(Option<&'p str>),
    /// The same of groups with drivers, too, by a board; and with boards, too, by a driver.
    BoardOfBoth(Option<&'p str>),
    DriverOfBoth(&'p str),
    /// Board and driver, only as devices have them: a file may have more pairs than memory has room for.
    Both(&'p str, &'p str),
    Any,
}

/// A group: sets of what it selects by, and what is expected of its devices.
struct Group<'p> {
    own: &'p DevicePattern,
    /// Made for the first device of it.
    fields: OnceCell<Vec<Expected<'p>>>,
    names: BTreeSet<&'p str>,
    boards: BTreeSet<&'p str>,
    drivers: BTreeSet<&'p str>,
    count: Option<Count<'p>>,
    /// Its names, as the file has them, without those that are of an earlier group in any case.
    free: Vec<&'p str>,
}

impl<'p> Groups<'p> {
    fn of(pattern: &'p HostPattern) -> Self {
        let mut all: Vec<Group<'p>> = pattern.devices.iter().map(Group::of).collect();
        let mut places = Places::new();
        for (place, own) in all.iter_mut().enumerate() {
            for selector in own.selectors() {
                places.entry(selector).or_default().push(place);
            }
            let mut free = BTreeSet::new();
            let names = own.own.names.iter().map(String::as_str);
            let is_free = |name: &&'p str| {
                !places.contains_key(&Selector::OnlyName(name)) && free.insert(*name)
            };
            own.free = names.filter(is_free).collect();
            if own.is_by_name_only() {
                for name in &own.names {
                    places.entry(Selector::OnlyName(name)).or_insert_with(|| vec![place]);
                }
            }
        }
        let untouched = Untouched::of(&all);
        Self { all, places, untouched }
    }

    /// The first group that has a device of this name in any case.
    fn taker(&self, name: &str) -> Option<usize> {
        self.find(Selector::OnlyName(name)).first().copied()
    }

    /// How many devices of a host are of each group, and how many may be. It leaves out groups of which nothing is to be
    /// said: most groups of a long pattern are of other hosts.
    fn tallies(
        &self,
        inventory: &Inventory,
        groups: &[Grouped],
        listed: &Listed<'_>,
    ) -> Vec<(usize, Tally)> {
        let (mut devices, mut unknown) = (Counts::new(), BTreeSet::new());
        for (record, own) in inventory.devices.iter().zip(groups) {
            match own {
                Grouped::Of(place) => *devices.entry(*place).or_default() += 1,
                Grouped::Unknown(_) => {
                    unknown.insert(record.device.name.as_str());
                }
                Grouped::None => {}
            }
        }
        let Listed { is_open, names, unlisted, others } = listed;
        let mut left = Tally {
            unknown: unknown.len(),
            unlisted: unlisted.len(),
            others: others.len(),
            ..Tally::default()
        };
        let mut places = BTreeSet::new();
        let unlisted = self.counts(unlisted, false, &mut places);
        let others = self.counts(others, false, &mut places);
        self.add_untouched(*is_open, left, [&unlisted, &others], &mut places);
        let unknown = self.counts(&unknown, true, &mut places);
        places.extend(devices.keys());
        let listed = if *is_open { self.counts(names, false, &mut places) } else { Counts::new() };
        let tally = |place| {
            let of = |own: &Counts| own.get(&place).copied().unwrap_or_default();
            let devices = of(&devices);
            let group = self.all.get(place)?;
            if group.names.is_empty() {
                return Some((place, Tally { devices, ..left }));
            }
            let [unknown, unlisted, others, listed] =
                [&unknown, &unlisted, &others, &listed].map(of);
            if group.is_by_name_only() {
                left.unlisted -= unlisted;
                left.others -= others;
            }
            Some((place, Tally { devices, unknown, unlisted, others, listed }))
        };
        places.into_iter().filter_map(tally).collect()
    }

    /// Adds the places of groups of which something is said though no device touches them.
    fn add_untouched(
        &self,
        is_open: bool,
        mut left: Tally,
        [unlisted, others]: [&Counts; 2],
        places: &mut BTreeSet<usize>,
    ) {
        let unknown = to_u64(left.unknown);
        if is_open {
            self.untouched.open.add_greater(unknown, 0..self.all.len(), places);
            return;
        }
        let is_by_name = |place: &usize| self.all.get(*place).is_some_and(Group::is_by_name_only);
        let takers: Vec<usize> = places.iter().copied().filter(is_by_name).collect();
        let mut from = 0;
        for last in takers.into_iter().chain([self.all.len()]) {
            // What is left is the same for these.
            let own = from..self.all.len().min(last + 1);
            if left.unlisted > 0 {
                self.untouched.named.add_greater(unknown, own, places);
            } else {
                self.untouched.whole.add_greater(unknown + to_u64(left.others), own, places);
            }
            let of = |own: &Counts| own.get(&last).copied().unwrap_or_default();
            left.unlisted -= of(unlisted);
            left.others -= of(others);
            from = last + 1;
        }
    }

    /// How many of these names each group has, where no earlier one has such a device in any case. Adds its places.
    fn counts(
        &self,
        names: &BTreeSet<&str>,
        may_be_taken: bool,
        places: &mut BTreeSet<usize>,
    ) -> Counts {
        let mut counts = Counts::new();
        for name in names {
            let taker = if may_be_taken { None } else { self.taker(name) };
            for place in self.find(Selector::Name(name)) {
                if taker.is_none_or(|first| *place <= first) {
                    *counts.entry(*place).or_default() += 1;
                    places.insert(*place);
                }
            }
        }
        counts
    }

    /// The groups of a host's devices.
    fn groups_of(&self, devices: &[DeviceRecord]) -> Vec<Grouped> {
        let drivers: Vec<Option<String>> = devices.iter().map(driver_of).collect();
        let mut pairs = Places::new();
        let both = devices.iter().zip(&drivers);
        both.map(|(record, driver)| self.group_of(record, driver.as_deref(), &mut pairs)).collect()
    }

    fn find<'s>(&'s self, own: Selector<'s>) -> &'s [usize] {
        self.places.get(&own).map_or(&[], Vec::as_slice)
    }

    /// The first group that selects by boards and drivers, and by these: it is in both lists.
    fn first_of_both(&self, board: &str, driver: &str) -> Option<usize> {
        let by_board = self.find(Selector::BoardOfBoth(Some(board)));
        let by_driver = self.find(Selector::DriverOfBoth(driver));
        let shorter = if by_board.len() < by_driver.len() { by_board } else { by_driver };
        let is_of = |own: &Group<'_>| own.boards.contains(board) && own.drivers.contains(driver);
        shorter.iter().copied().find(|place| self.all.get(*place).is_some_and(is_of))
    }

    fn group_of<'d>(
        &self,
        record: &'d DeviceRecord,
        driver: Option<&'d str>,
        pairs: &mut Places<'d>,
    ) -> Grouped {
        let find = |own| self.find(own);
        let name = Selector::Name(&record.device.name);
        let board = board_of(record);
        // Of a device that is known to have no board no group is that selects by boards.
        let has_none = board.is_none() && with_board(record).is_some();
        let by_board = (!has_none).then(|| find(Selector::Board(board)));
        let by_both = match (board, driver) {
            _ if has_none => &[][..],
            (Some(board), Some(driver)) => pairs
                .entry(Selector::Both(board, driver))
                .or_insert_with(|| self.first_of_both(board, driver).into_iter().collect()),
            (None, Some(driver)) => find(Selector::DriverOfBoth(driver)),
            (board, None) => find(Selector::BoardOfBoth(board)),
        };
        let first = |places: &[usize]| {
            places.iter().find_map(|place| {
                let group = self.all.get(*place)?;
                let selected = group.selects(record, driver);
                (selected != Ok(false)).then_some((*place, selected))
            })
        };
        let others = [name, Selector::Driver(driver), Selector::Any].map(find);
        let found = others.into_iter().chain(by_board).chain([by_both]).filter_map(first);
        match found.min_by_key(|(place, _)| *place) {
            Some((_, Err(what))) => Grouped::Unknown(what),
            Some((place, Ok(_))) => Grouped::Of(place),
            None => Grouped::None,
        }
    }
}

impl Untouched {
    fn of(all: &[Group<'_>]) -> Self {
        let numbers = |may_be_said: fn(&Group<'_>, bool) -> bool| {
            let number = |own: &Group<'_>| {
                let count = own.count.as_ref().filter(|count| may_be_said(own, !count.has(0)))?;
                // Any device may be of a group without names.
                Some(count.next(0).filter(|_| own.names.is_empty()).unwrap_or(u64::MAX))
            };
            Numbers::of(all.iter().map(|own| number(own).unwrap_or(0)))
        };
        Self {
            whole: numbers(|_, is_needed| is_needed),
            named: numbers(|own, is_needed| is_needed || own.names.is_empty()),
            open: numbers(|own, is_needed| {
                is_needed || own.names.is_empty() || !own.free.is_empty()
            }),
        }
    }
}

impl Numbers {
    fn of(numbers: impl ExactSizeIterator<Item = u64>) -> Self {
        let size = numbers.len().next_power_of_two();
        let mut tree = vec![0; size];
        tree.extend(numbers);
        tree.resize(2 * size, 0);
        for place in (1..size).rev() {
            let greatest =
                tree.get(2 * place..).and_then(|rest| rest.iter().take(2).max()).copied();
            if let (Some(own), Some(greatest)) = (tree.get_mut(place), greatest) {
                *own = greatest;
            }
        }
        Self(tree)
    }

    /// Adds the places in a range whose numbers are greater.
    fn add_greater(&self, than: u64, range: Range<usize>, places: &mut BTreeSet<usize>) {
        self.look(1, 0..self.0.len() / 2, (than, range), places);
    }

    /// The same below a place of the tree, which is of these.
    fn look(
        &self,
        place: usize,
        own: Range<usize>,
        wanted: (u64, Range<usize>),
        places: &mut BTreeSet<usize>,
    ) {
        let (than, range) = &wanted;
        let is_in = own.start < range.end && range.start < own.end;
        if !is_in || self.0.get(place).is_none_or(|greatest| greatest <= than) {
            return;
        }
        if own.len() == 1 {
            places.insert(own.start);
            return;
        }
        let middle = own.start + own.len() / 2;
        self.look(2 * place, own.start..middle, wanted.clone(), places);
        self.look(2 * place + 1, middle..own.end, wanted, places);
    }
}

impl<'p> Group<'p> {
    fn of(own: &'p DevicePattern) -> Self {
        let [names, boards, drivers] = [&own.names, &own.boards, &own.drivers]
            .map(|list| list.iter().map(String::as_str).collect());
        let count = own.count.as_ref().map(Count::of);
        Self { own, fields: OnceCell::new(), names, boards, drivers, count, free: Vec::new() }
    }

    fn is_by_name_only(&self) -> bool {
        !self.names.is_empty() && self.boards.is_empty() && self.drivers.is_empty()
    }

    fn fields(&self) -> &[Expected<'p>] {
        self.fields.get_or_init(|| {
            let all = self.own.fields.iter();
            all.map(|(field, allowed)| Expected::of(*field, allowed)).collect()
        })
    }

    fn selectors(&self) -> Vec<Selector<'p>> {
        let with_none = |own: &BTreeSet<&'p str>| {
            let some = own.iter().copied().map(Some);
            some.chain([None]).collect::<Vec<_>>().into_iter()
        };
        let (boards, drivers) = (with_none(&self.boards), with_none(&self.drivers));
        if !self.names.is_empty() {
            self.names.iter().copied().map(Selector::Name).collect()
        } else if !self.boards.is_empty() && !self.drivers.is_empty() {
            let drivers = drivers.flatten().map(Selector::DriverOfBoth);
            boards.map(Selector::BoardOfBoth).chain(drivers).collect()
        } else if !self.boards.is_empty() {
            boards.map(Selector::Board).collect()
        } else if !self.drivers.is_empty() {
            drivers.map(Selector::Driver).collect()
        } else {
            vec![Selector::Any]
        }
    }

    /// Whether a device is of the group; what is not known of it, if that is not known.
    fn selects(&self, record: &DeviceRecord, driver: Option<&str>) -> Result<bool, &'static str> {
        let has = |set: &BTreeSet<&str>, own: &str| set.is_empty() || set.contains(own);
        let board = with_board(record).map(|own| own.board_id.as_deref());
        let has_board = |own: Option<&str>| match own {
            Some(own) => has(&self.boards, own),
            None => self.boards.is_empty(),
        };
        if !has(&self.names, &record.device.name)
            || driver.is_some_and(|own| !has(&self.drivers, own))
            || board.is_some_and(|own| !has_board(own))
        {
            Ok(false)
        } else if driver.is_none() && !self.drivers.is_empty() {
            Err("driver")
        } else if board.is_none() && !self.boards.is_empty() {
            Err("board")
        } else {
            Ok(true)
        }
    }
}

/// The hardware of a device of which it is known whether it has a board, and which.
pub(super) fn with_board(record: &DeviceRecord) -> Option<&Hardware> {
    record.hardware.as_ref().filter(|own| !own.board_is_unread)
}

/// The board of a device, if it has one and it is known.
fn board_of(record: &DeviceRecord) -> Option<&str> {
    with_board(record)?.board_id.as_deref()
}

fn driver_of(record: &DeviceRecord) -> Option<String> {
    record.device.driver.map(|own| own.to_string())
}

/// Driver and board of a device, as far as they are known.
fn kind(record: &DeviceRecord) -> String {
    let driver = driver_of(record).map(|own| format!("driver {own}"));
    let both = [driver, board_of(record).map(|own| format!("board {own}"))];
    let known: Vec<String> = both.into_iter().flatten().collect();
    if known.is_empty() { record.device.name.clone() } else { known.join(", ") }
}

pub(super) fn to_u64(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// What is known of which devices there are.
struct Listed<'i> {
    names: BTreeSet<&'i str>,
    /// Whether there may be any others.
    is_open: bool,
    /// Those of the wanted that could not be listed.
    unlisted: BTreeSet<&'i str>,
    /// Those that are not wanted.
    others: BTreeSet<&'i str>,
}

impl<'i> Listed<'i> {
    fn of(inventory: &'i Inventory, is_wanted: impl Fn(&str) -> bool) -> Self {
        let unlisted = inventory.unlisted.iter().map(|(name, _)| name.as_str());
        let (unlisted, mut others): (BTreeSet<_>, BTreeSet<_>) =
            unlisted.partition(|name| is_wanted(name));
        let names: BTreeSet<&str> =
            inventory.devices.iter().map(|own| own.device.name.as_str()).collect();
        let more = inventory.others.iter().map(|own| own.name.as_str());
        others.extend(more.filter(|name| !names.contains(name)));
        Self { names, is_open: inventory.list_failure.is_some(), unlisted, others }
    }

    fn is_known(&self) -> bool {
        !self.is_open && self.unlisted.is_empty()
    }

    /// Whether a group may have a device of which not even the name is known.
    fn may_lack(&self, own: &Group<'_>, tally: Tally) -> bool {
        self.is_open && (own.names.is_empty() || tally.listed + tally.others < own.free.len())
    }
}

/// Compares how many devices a group has. Of so many more it is not known; these have findings of their own.
fn compare_count(
    listed: &Listed<'_>,
    groups: &Groups<'_>,
    place: usize,
    tally: Tally,
) -> Option<Finding> {
    let group = groups.all.get(place)?;
    let own = group.own;
    let count = group.count.as_ref()?;
    let [number, unknown, others] = [tally.devices, tally.unknown, tally.others].map(to_u64);
    if count.allows_more(number, number.saturating_add(unknown)) {
        return None;
    }
    let is_known = !listed.may_lack(group, tally) && tally.unlisted == 0;
    let is_partial = others > 0;
    // Those that were not asked for may be of the group.
    let most = number.saturating_add(unknown).saturating_add(others);
    if count.has(number) && is_known {
        return None;
    }
    // Those that were not listed or not wanted may be of the group too. They are never fewer.
    let are_too_few = count.next(number).is_some();
    if !is_known && (count.has(number) || are_too_few) {
        return Some(unread_list(&format!("how many devices there are of {own}")));
    }
    if is_partial && count.allows_more(number, most) {
        return None;
    }
    let is_missing = |name: &&str| !listed.names.contains(name) && !listed.others.contains(name);
    let missing = group.free.iter().copied().filter(is_missing);
    // One more shows that there are more.
    let mut missing: Vec<&str> = missing.take(SHOWN + 1).collect();
    if let Some(last) = missing.get_mut(SHOWN) {
        *last = "and more";
    }
    let missing = if missing.is_empty() || !are_too_few {
        String::new()
    } else {
        format!(", without {}", missing.join(", "))
    };
    let are_all = is_known && unknown == 0 && !is_partial;
    let (least, shown) = match are_all {
        true => ("", number),
        // Even with the others there are not enough.
        false if is_partial && is_known && are_too_few => ("at most ", most),
        false => ("at least ", number),
    };
    let plural = if shown == 1 { "" } else { "s" };
    let advice = if !are_too_few {
        "are there virtual functions or another card (lspci, rdma dev)? or expect as many in the file"
    } else if least != "at least " {
        "does lspci show the card, and is its driver loaded? the kernel's log may say more"
    } else {
        "not all is known of the devices, as other findings say; does lspci show the card, and is its driver loaded?"
    };
    Some(finding(
        "expect-devices",
        format!("{least}{shown} device{plural} of {own}{missing}"),
        Some(count.allowed.text(&ToString::to_string, &ToString::to_string)),
        advice,
    ))
}

fn compare_device(
    scene: &Scene<'_>,
    record: &DeviceRecord,
    own: &[Expected<'_>],
    list: &mut Vec<Finding>,
) {
    let none = PortRecord::new(0);
    compare_place(scene, (record, None, &none), own, list);
    for port in &record.ports {
        compare_place(scene, (record, Some(port.number), port), own, list);
    }
    // Without a port there is none to name.
    if record.ports.is_empty() && may_have_port(&record.device) {
        let fields = own.iter().map(|own| own.field).filter(|field| !field.is_of_device());
        let missed: Vec<&str> = fields.map(Field::label).collect();
        if !missed.is_empty() {
            list.push(unread(Some(&record.device.name), None, &missed.join(", ")));
        }
    }
}

fn may_have_port(device: &Device) -> bool {
    !device.ports().is_empty()
}

/// Compares the fields of a device, or those of a port.
fn compare_place(
    scene: &Scene<'_>,
    (record, number, port): (&DeviceRecord, Option<u32>, &PortRecord),
    own: &[Expected<'_>],
    list: &mut Vec<Finding>,
) {
    let device = record.device.name.as_str();
    let (mut wrong, mut missed): (Vec<Field>, Vec<&str>) = (Vec::new(), Vec::new());
    let is_here = |own: &&Expected<'_>| own.field.is_of_device() == number.is_none();
    for expected in own.iter().filter(is_here) {
        let field = expected.field;
        if wrong.iter().any(|other| field.follows(*other)) {
            continue;
        }
        let seen = scene.see(field, record, port);
        if expected.fits(&seen.values) {
            continue;
        }
        if !seen.is_whole {
            missed.push(field.label());
            continue;
        }
        wrong.push(field);
        let wanted = Some(field.wanted(expected.allowed));
        list.push(Finding {
            device: Some(device.to_owned()),
            port: number,
            program: match field {
                Field::NcclIndex => Some(Program::Nccl),
                Field::UcxIndex => Some(Program::Ucx),
                _ => None,
            },
            ..finding(field.finding(), told(field, &seen), wanted, field.advice())
        });
    }
    if !missed.is_empty() {
        list.push(unread(Some(device), number, &missed.join(", ")));
    }
}

/// What was seen, in words.
fn told(field: Field, seen: &Seen) -> String {
    /// How many addresses or keys are named.
    const SHOWN: usize = 4;
    let text = |own: &Value| match own {
        Value::Network(own) => own.address.to_string(),
        own => field.text(own),
    };
    let label = field.label();
    if seen.values.is_empty() {
        return format!("{label}: none");
    }
    let shown: Vec<String> = seen.values.iter().take(SHOWN).map(text).collect();
    let more = match seen.values.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{label}: {}{more}{}", shown.join(", "), field.unit())
}

fn finding(name: &'static str, seen: String, wanted: Option<String>, advice: &str) -> Finding {
    Finding {
        name,
        severity: Severity::Problem,
        device: None,
        port: None,
        program: None,
        seen,
        wanted,
        advice: advice.to_owned(),
    }
}

/// That it is not known whether something is as expected.
fn unread(device: Option<&str>, port: Option<u32>, what: &str) -> Finding {
    let advice = "read it on the host itself (a newer kernel may know it), or leave it out of what is expected";
    Finding {
        device: device.map(str::to_owned),
        port,
        ..finding("expect-unread", format!("not known: {what}"), None, advice)
    }
}

fn unread_list(what: &str) -> Finding {
    let advice = "not all devices may be listed: another finding says what could not be read";
    finding("expect-unread", format!("not known: {what}"), None, advice)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::subsequence;

    use super::*;
    use crate::driver::DriverId;

    proptest! {
        /// A device is of the first group that selects it, as if all were asked.
        #[test]
        fn the_first_group_is_found(
            groups in proptest::collection::vec(
                [["a", "b"], ["x", "y"], ["mlx5", "rxe"]].map(|own| subsequence(own.to_vec(), 0..=2)), 0..5,
            ),
            (name, board, driver) in (
                "[a-c]", proptest::option::of(proptest::option::of("[x-z]")),
                proptest::option::of(prop::sample::select(vec![DriverId::MLX5, DriverId::MLX4])),
            ),
        ) {
            let texts = |list: &Vec<&str>| list.iter().map(|own| (*own).to_owned()).collect();
            let group = |[names, boards, drivers]: &[Vec<&str>; 3]| DevicePattern {
                names: texts(names), boards: texts(boards), drivers: texts(drivers), ..DevicePattern::default()
            };
            let devices: Vec<DevicePattern> = groups.iter().map(group).collect();
            let pattern = HostPattern { devices, ..HostPattern::default() };
            let mut record = DeviceRecord::new(Device::named(name));
            record.device.driver = driver;
            record.hardware = board.map(|board_id| Hardware { board_id, ..Hardware::default() });
            let driver = driver.map(|own| own.to_string());
            let all = Groups::of(&pattern);
            let walk = all.all.iter().map(|own| own.selects(&record, driver.as_deref()));
            let first = walk.enumerate().find(|(_, own)| *own != Ok(false));
            let found = all.groups_of(std::slice::from_ref(&record)).pop().unwrap();
            match first {
                Some((first, Ok(_))) => {
                    prop_assert!(matches!(found, Grouped::Of(place) if place == first));
                }
                Some((_, Err(what))) => {
                    prop_assert!(matches!(found, Grouped::Unknown(own) if own == what));
                }
                None => prop_assert!(matches!(found, Grouped::None)),
            }
        }
    }
}
