//! `uverbs history`: how a host, a port or a row went, by a recording.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use clap::{Args, ValueHint};
use uverbs::choose::room::{has_found, might_fill, might_fill_nvshmem, might_fill_ucx, unopened};
use uverbs::choose::{Decision, Home, Outcome, Wish};
use uverbs::inventory::{DeviceRecord, GidRow, Inventory, Problem};
use uverbs::port::LinkLayer;
use uverbs::selector::Selector;
use uverbs::watch::{Change, Difference, Entry, Moment, Part, What, format_time};

use crate::args::{Common, selector_here};
use crate::at::Between;
use crate::choose::take_like;
use crate::choose::will_fail;
use crate::files::{Input, ROOM};
use crate::hosts::{Chosen, choose_on};
use crate::like::Like;
use crate::line::{
    Choice, Kind, Line, Side, gid_in_full, kind, problem as problem_side, rows, unread, word,
};
use crate::looked::Looked;
use crate::out::Out;
use crate::output::{List, Output, Rest};
use crate::report::{EINVAL, Report};
use crate::selection::Asked;
use crate::text::printable;
use crate::verdict::is_known;

#[derive(Debug, Args)]
pub(crate) struct HistoryArgs {
    /// What `uverbs watch --record` wrote
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// The device or port whose history this is; all if none is named
    #[arg(value_name = "DEV[:PORT]", value_parser = selector_here, value_hint = ValueHint::Other)]
    selector: Option<Selector>,
    /// Only this row of the port's GID table
    #[arg(value_name = "INDEX")]
    index: Option<u32>,
    /// Show when and why the choice of a program changed: nccl, ucx, nvshmem, nccl-2.20
    #[arg(long, value_name = "PROGRAM", value_hint = ValueHint::Other)]
    like: Option<Like>,
}

impl HistoryArgs {
    /// What is wrong with the words together.
    pub(crate) fn contradiction(&self) -> Option<String> {
        let has_port = self.selector.as_ref().is_none_or(|own| own.port.is_some());
        match (self.index, has_port, self.like) {
            (Some(_), false, _) => Some("an index needs a port: DEV:PORT INDEX".to_owned()),
            (Some(_), _, Some(_)) => {
                Some("--like shows what a port's choice is, of all its rows".to_owned())
            }
            _ => None,
        }
    }

    /// The row that is asked for: device, port and index.
    fn row(&self) -> Option<(&str, u32, u32)> {
        let own = self.selector.as_ref()?;
        Some((&own.device, own.port?, self.index?))
    }
}

pub(crate) fn answer(
    common: &Common,
    args: &HistoryArgs,
    report: &mut Report,
) -> serde_json::Result<Output> {
    let asked = Asked::new(args.selector.as_slice());
    let rows =
        if common.json { Rows::Json(List::new("history")) } else { Rows::Plain(Out::default()) };
    let mut history = History {
        args,
        asked,
        rows,
        choices: Choices::new(),
        rows_of: BTreeMap::new(),
        of_all: OfAll::default(),
        looked: 0,
        most: MOST,
        slot: Slot::Absent,
    };
    match Input::open(&args.file, ROOM) {
        Ok(mut file) => history.read(&mut file, report)?,
        Err(problem) => report.host_problem(problem),
    }
    match history.rows {
        Rows::Json(list) => list.end(&Rest { problems: report.problems() }),
        Rows::Plain(out) => Ok(Output::Json(out)),
    }
}

/// The lines, in the form that is asked for.
enum Rows {
    Json(List),
    Plain(Out),
}

impl Rows {
    fn add(&mut self, line: &Line<'_>) -> serde_json::Result<()> {
        match self {
            Self::Json(list) => return list.add(line),
            Self::Plain(out) => {
                out.push(&printable(&line.text()));
                out.push("\n");
            }
        }
        Ok(())
    }
}

struct History<'a> {
    args: &'a HistoryArgs,
    asked: Asked<'a>,
    rows: Rows,
    /// What the program takes on each port that is asked for, as far as that is known.
    choices: Choices,
    /// The devices on whose ports a choice depends on an interface, by its index; `None` if that may be any.
    rows_of: BTreeMap<Option<NonZeroU32>, BTreeSet<String>>,
    of_all: OfAll,
    /// How many elements of inventories were looked at to choose, and how many may be.
    looked: u64,
    most: (u64, u64),
    /// What the lines so far say of the row that is asked for.
    slot: Slot,
}

/// A line may change what a program takes on all ports of a device; where ports take the room of others, on all of the
/// host. So much of that is looked at in any recording, and so much more for each byte, in elements: devices, ports,
/// rows, interfaces, their addresses, settings. The first takes some 10 seconds.
const MOST: (u64, u64) = (1 << 24, 4);

/// What a program takes on ports, by device and number.
type Choices = BTreeMap<(String, u32), Choice>;

/// On what all choices of a host depend, beside what is no device's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct OfAll {
    /// Whether ports may take the room of others.
    is_limited: bool,
    /// Whether a device has a node. If none, programs that are asked about are elsewhere.
    is_any_found: bool,
    /// Whether it is not known what programs do on devices that could not be opened.
    is_any_unopened: bool,
}

impl OfAll {
    fn of(inventory: &Inventory, like: Like) -> Self {
        Self {
            is_limited: match like {
                Like::Nccl(release) => might_fill(inventory, release),
                Like::Nvshmem => might_fill_nvshmem(inventory),
                Like::Ucx(_) => might_fill_ucx(inventory),
            },
            is_any_found: has_found(inventory),
            is_any_unopened: !unopened(inventory).is_empty(),
        }
    }
}

/// What is known of the row that is asked for.
#[derive(Debug, PartialEq, Eq)]
enum Slot {
    /// There is no such device, port or index.
    Absent,
    Unread(Problem),
    Empty,
    Taken(Box<GidRow>),
}

impl Slot {
    /// Whether there is such a slot, and it is known what is in it.
    fn is_known(&self) -> bool {
        matches!(self, Self::Empty | Self::Taken(_))
    }

    /// What a change says of the row with this index of its port, if it does.
    fn after(what: &What, index: u32) -> Option<Self> {
        let What::Difference(own) = what else { return None };
        if let Difference::Table { after: Some(Err(problem)), .. } = own {
            return Some(Self::Unread(problem.clone()));
        }
        let [before, after] =
            rows(own).map(|row| row.filter(|row| row.record.entry.index() == index));
        match after {
            Some(row) => Some(Self::Taken(Box::new(row.clone()))),
            None => before.map(|_| Self::Empty),
        }
    }
}

impl History<'_> {
    fn read(&mut self, file: &mut Input, report: &mut Report) -> serde_json::Result<()> {
        let mut last = None;
        let (mut has_name, mut is_any) = (self.asked.is_all(), false);
        // Why it is not known of some moment which devices there were, and whether lines could not be read.
        let (mut unread, mut is_broken) = (None, false);
        // Whether the port's table ever had room for the row, as far as that is known.
        let mut has_room = None;
        while let Some(read) = file.next() {
            let mut moment = match read {
                Ok(Entry::Moment(moment)) => moment,
                Ok(_) => {
                    let what = "this is a snapshot; `watch --record` writes recordings";
                    is_broken = true;
                    report.host_problem(file.problem(&what, EINVAL));
                    break;
                }
                Err(problem) => {
                    is_broken = true;
                    self.slot = Slot::Unread(problem.clone());
                    report.host_problem(problem);
                    continue;
                }
            };
            let own = &mut file.recording;
            let is_gap = own.is_gap(&moment);
            let known = own.known_before(&moment).filter(|_| moment.has_news());
            let part = moment.part();
            let before = known.map(|known| part.of(known));
            if let Err(error) = own.apply(&mut moment) {
                let problem = file.problem(&error, error.errno());
                is_broken = true;
                self.slot = Slot::Unread(problem.clone());
                report.host_problem(problem);
                continue;
            }
            // Where nothing is known, no line makes it known.
            let Some(after) = own.inventory() else { continue };
            let times = (moment.time(), moment.monotonic());
            let skipped = last.replace(times).and_then(|last: (SystemTime, Duration)| {
                if is_gap { Some((last.0, times.0)) } else { Between::new(last, times).gap() }
            });
            if is_gap || skipped.is_some() {
                let mut line = Line::of(times.0, times.1, "began");
                if let Some((before, after)) = skipped {
                    line.what = "not_recorded".into();
                    line.before = word(format_time(before, 3));
                    line.after = word(format_time(after, 3));
                } else {
                    line.after = word(Looked::at(after).to_string());
                }
                self.rows.add(&line)?;
            }
            if !moment.has_news() {
                continue;
            }
            is_any = true;
            // What comes is in some line.
            let now = part.of(after);
            let failure = &after.list_failure;
            has_name = has_name || failure.is_none() && self.asked.missing(&now).count == 0;
            unread = unread.or_else(|| failure.clone());
            has_room = has_room.max(self.has_room(&now));
            let changes = before.as_ref().map(|own| moment.changes(own, &now));
            let changes = changes.unwrap_or_default();
            self.show(&moment, (is_gap, &changes), (&part, before.as_ref()), after)?;
            if let Some(row) = self.args.row().filter(|row| touches(&part, row.0)) {
                let slot = self.slot(after, own.device(row.0), row);
                self.show_row(&moment, slot)?;
            }
            let (any, of_byte) = self.most;
            if self.looked > any + of_byte * (ROOM - file.room()) {
                let at = format_time(moment.time(), 3);
                let what =
                    format!("{at}: there are more changes of so large a host than --like looks at");
                is_broken = true;
                report.host_problem(problem(&self.args.file, &what));
                break;
            }
        }
        let selector = self.args.selector.as_ref().filter(|_| is_any && !has_name);
        match (selector, unread) {
            (Some(_), Some(problem)) => report.host_problem(problem),
            (Some(own), None) => {
                let read = if is_broken { " that could be read" } else { "" };
                report.nothing(format!("{own} is nowhere in the recording{read}"));
            }
            (None, _) => {}
        }
        let row = self.args.row().filter(|_| !is_broken);
        if let (Some((device, port, index)), Some(false)) = (row, has_room) {
            report.no_such_index(device, port, index);
        }
        Ok(())
    }

    /// Whether the table of the port that is asked for has room for the row, or may have; `None` if there is no such port.
    fn has_room(&self, inventory: &Inventory) -> Option<bool> {
        let (device, port, index) = self.args.row()?;
        let port = inventory.device(device)?.port(port)?;
        Some(port.known().is_none_or(|own| index < own.gid_tbl_len))
    }

    /// Shows what happened, as far as it is asked for.
    fn show(
        &mut self,
        moment: &Moment,
        (is_gap, changes): (bool, &[Change]),
        (touched, before): (&Part, Option<&Inventory>),
        after: &Inventory,
    ) -> serde_json::Result<()> {
        let choices = self.args.like.map(|like| self.choose(after, touched, like));
        let mut causes = Vec::new();
        for change in changes {
            let is_shown = match &choices {
                Some((was, is)) => was != is && self.may_matter(&change.what),
                None => self.is_asked(&change.what),
            };
            if is_shown {
                let mut line = Line::new(change);
                if is_gap {
                    line.causes = vec!["gap"];
                }
                self.rows.add(&line)?;
                if is_other_device(&change.what) && self.slot.is_known() {
                    self.slot = Slot::Absent;
                }
                match self.args.index.and_then(|own| Slot::after(&change.what, own)) {
                    // A table has no more slots because it cannot be read.
                    Some(Slot::Unread(_)) if self.slot == Slot::Absent => {}
                    Some(slot) => self.slot = slot,
                    None => {}
                }
                let What::Difference(own) = &change.what else { continue };
                if !causes.contains(&own.name()) {
                    causes.push(own.name());
                }
            } else if let What::Difference(Difference::Host { before, after }) = &change.what {
                self.show_unread(moment, Some(before), after)?;
            }
        }
        if before.is_none() {
            self.show_unread(moment, None, after)?;
        }
        let Some((old, new)) = choices else { return Ok(()) };
        let (before, after) = (before.map(Places::of), Places::of(after));
        let ports: BTreeSet<&(String, u32)> = old.keys().chain(new.keys()).collect();
        for port in ports {
            let (was, is) = (old.get(port), new.get(port));
            if was != is {
                let (device, number) = port;
                let line = Line::of(moment.time(), moment.monotonic(), "choice");
                self.rows.add(&Line {
                    device: Some(device),
                    port: Some(*number),
                    before: side(was, before.as_ref(), device, *number),
                    after: side(is, Some(&after), device, *number),
                    causes: causes.clone(),
                    ..line
                })?;
            }
        }
        self.choices.extend(new);
        Ok(())
    }

    /// Shows what cannot be read of what is asked for, and what of the host cannot be: as far as that is new.
    fn show_unread(
        &mut self,
        moment: &Moment,
        before: Option<&Inventory>,
        inventory: &Inventory,
    ) -> serde_json::Result<()> {
        // Of a row its own line says it.
        let (asked, is_row) = (&self.asked, self.args.index.is_some());
        let known: BTreeSet<(Option<&str>, &str)> = before
            .into_iter()
            .flat_map(unread_of_host)
            .map(|(name, own)| (name, own.text.as_str()))
            .collect();
        let of_host = unread_of_host(inventory)
            .filter(|(name, own)| !known.contains(&(*name, own.text.as_str())))
            .filter(|(name, _)| name.is_none_or(|name| !is_row && asked.has_device(name)))
            .map(|(name, own)| (name, None, own));
        let devices = inventory.devices.iter().filter(|_| !is_row);
        let devices = devices.filter(|own| asked.has_device(&own.device.name));
        let of_devices = devices.flat_map(|own| {
            let name = own.device.name.as_str();
            let own = unread(own).into_iter();
            let own = own.filter(|(port, _)| port.is_none_or(|port| asked.has_port(name, port)));
            own.map(move |(port, own)| (Some(name), port, own))
        });
        for (device, port, own) in of_host.chain(of_devices) {
            let line = Line::of(moment.time(), moment.monotonic(), "unread");
            self.rows.add(&Line { device, port, after: problem_side(own), ..line })?;
        }
        Ok(())
    }

    /// Shows what the row that is asked for is now, unless the last line that said it is still right.
    fn show_row(&mut self, moment: &Moment, slot: Slot) -> serde_json::Result<()> {
        let Some((device, port, _)) = self.args.row() else { return Ok(()) };
        let was = std::mem::replace(&mut self.slot, slot);
        let after = match &self.slot {
            own if *own == was => return Ok(()),
            Slot::Absent if !matches!(was, Slot::Unread(_)) => return Ok(()),
            Slot::Absent => word("not there"),
            Slot::Empty => Side::None,
            Slot::Unread(problem) => problem_side(problem),
            Slot::Taken(row) => gid_in_full(device, row),
        };
        let line = Line::of(moment.time(), moment.monotonic(), "was");
        self.rows.add(&Line { device: Some(device), port: Some(port), after, ..line })
    }

    /// What is known of a row, which is of this device if it is there.
    fn slot(
        &self,
        inventory: &Inventory,
        own: Option<&DeviceRecord>,
        (device, port, index): (&str, u32, u32),
    ) -> Slot {
        let Some(own) = own else {
            let mut unlisted = inventory.unlisted.iter();
            let own = unlisted.find(|(name, _)| name == device).map(|(_, own)| own);
            let own = own.or(inventory.list_failure.as_ref());
            return own.cloned().map_or(Slot::Absent, Slot::Unread);
        };
        if let Some(row) = own.row(port, index) {
            return Slot::Taken(Box::new(row.clone()));
        }
        let Some(record) = own.port(port) else { return Slot::Absent };
        let len = record.known().map(|own| own.gid_tbl_len);
        if len.is_some_and(|len| index >= len) {
            return Slot::Absent;
        }
        // Without the length it is not known whether there is such a slot, unless it was seen.
        let is_seen = len.is_some() || self.slot.is_known();
        let problem = own.problem().or_else(|| record.problem().filter(|_| !is_seen));
        problem.cloned().map_or(Slot::Empty, Slot::Unread)
    }

    /// Whether a change is one of what is asked for.
    fn is_asked(&self, what: &What) -> bool {
        let asked = &self.asked;
        let is_place = match what {
            What::Difference(Difference::DeviceRenamed { before, after, .. }) => {
                asked.has_device(before) || asked.has_device(after)
            }
            What::Difference(own) => match (own.device(), own.port()) {
                (Some(device), Some(port)) => asked.has_port(device, port),
                (Some(device), None) => asked.has_device(device),
                (None, _) => asked.is_all(),
            },
            What::Event { device, event } => match u32::try_from(event.element) {
                Ok(port @ 1..) => asked.has_port(device, port),
                _ => asked.has_device(device),
            },
            // It may be anybody's.
            _ => true,
        };
        let Some(index) = self.args.index else { return is_place };
        let is_other = !matches!(kind(what), Kind::Gid | Kind::Port);
        let is_table = matches!(what, What::Difference(Difference::Table { .. }));
        is_place && (is_table || is_other || Slot::after(what, index).is_some())
    }

    /// Whether a choice may have changed by it.
    fn may_matter(&self, what: &What) -> bool {
        matches!(kind(what), Kind::Host | Kind::Loss) || self.is_asked(what)
    }

    /// What a program takes now, where that may have changed, and what it took there; that is no longer kept. Of a
    /// device that is not asked for, ports may take the room of others.
    fn choose(&mut self, inventory: &Inventory, part: &Part, like: Like) -> (Choices, Choices) {
        let unknown = part.interfaces().take(1).map(|_| None);
        let indices = part.interfaces().map(Some).chain(unknown);
        let of_interfaces = indices.filter_map(|own| self.rows_of.get(&own)).flatten();
        let of_interfaces = of_interfaces.map(String::as_str);
        let changed: Option<BTreeSet<&str>> =
            part.devices().map(|own| own.chain(of_interfaces).collect());
        if changed.as_ref().is_some_and(BTreeSet::is_empty) {
            return Default::default();
        }
        let names = changed.as_ref().map_or(0, BTreeSet::len);
        self.looked += (names + weight_of_all(inventory)) as u64;
        let of_all = OfAll::of(inventory, like);
        let is_all = of_all.is_limited;
        let is_same = of_all == std::mem::replace(&mut self.of_all, of_all);
        let changed = changed.filter(|_| is_same && !is_all);
        let may_change = |device: &str| changed.as_ref().is_none_or(|own| own.contains(device));
        let old: Choices = match &changed {
            None => std::mem::take(&mut self.choices),
            Some(names) => names.iter().flat_map(|name| take_of(&mut self.choices, name)).collect(),
        };
        let is_wanted =
            |device: &str| is_all || self.asked.has_device(device) && may_change(device);
        if changed.as_ref().is_some_and(|own| !own.iter().any(|own| is_wanted(own))) {
            return (old, Choices::new());
        }
        let wanted = inventory.devices.iter().filter(|own| is_wanted(&own.device.name));
        let rows: usize = wanted.map(|own| own.all_rows().len()).sum();
        self.looked += (weight_of_surroundings(inventory) + rows) as u64;
        let chosen = choose_on(None, inventory, is_wanted, &Wish::default());
        for own in &chosen {
            let of_interfaces: BTreeSet<_> = interfaces_of(own, inventory.has_netlink).collect();
            for index in of_interfaces {
                self.rows_of.entry(index).or_default().insert(own.port.device.to_owned());
            }
        }
        let all = chosen.iter().zip(take_like(inventory, &chosen, like));
        let all = all.filter(|(own, _)| self.asked.has_port(own.port.device, own.port.number));
        let new = all.map(|(own, taken)| {
            ((own.port.device.to_owned(), own.port.number), choice(own, &taken))
        });
        (old, new.collect())
    }
}

/// How many elements say whether ports may take the room of others.
fn weight_of_all(inventory: &Inventory) -> usize {
    let ports: usize = inventory.devices.iter().map(|own| own.ports.len()).sum();
    // Their ports are counted, several times.
    let others = 4 * inventory.others.len();
    inventory.devices.len() + ports + others + inventory.unlisted.len()
}

/// How many elements rows are compared with, and settings that programs read.
fn weight_of_surroundings(inventory: &Inventory) -> usize {
    let interfaces = inventory.interfaces.iter().flatten();
    let addresses = interfaces.map(|own| 1 + own.addresses.len() + own.unfit.len());
    addresses.sum::<usize>() + inventory.settings.len()
}

/// Whether a line may change a device.
fn touches(part: &Part, device: &str) -> bool {
    part.devices().is_none_or(|mut own| own.any(|own| own == device))
}

/// The interfaces on which a choice depends, by their indices; `None` if that may be any.
fn interfaces_of(own: &Chosen<'_>, has_netlink: bool) -> impl Iterator<Item = Option<NonZeroU32>> {
    let rows = own.port.rows.iter().filter(|row| row.home != Home::None);
    let rows = rows.filter_map(|row| own.record.row(own.port.number, row.index));
    rows.map(move |row| match &row.netdev {
        Some(own) if has_netlink => Some(own.index),
        _ => row.record.entry.netdev_ifindex(),
    })
}

/// Takes out what a program takes on a device's ports.
fn take_of(choices: &mut Choices, device: &str) -> Vec<((String, u32), Choice)> {
    let all = (device.to_owned(), 0)..=(device.to_owned(), u32::MAX);
    let keys: Vec<(String, u32)> = choices.range(all).map(|(port, _)| port.clone()).collect();
    keys.iter().filter_map(|port| choices.remove_entry(port)).collect()
}

/// The devices of an inventory, to look names up in: there may be many of both.
struct Places<'i> {
    inventory: &'i Inventory,
    devices: OnceCell<BTreeMap<&'i str, &'i DeviceRecord>>,
    unlisted: OnceCell<BTreeMap<&'i str, &'i Problem>>,
}

impl<'i> Places<'i> {
    fn of(inventory: &'i Inventory) -> Self {
        Self { inventory, devices: OnceCell::new(), unlisted: OnceCell::new() }
    }

    /// Why it is not known what is in a port's table, or whether there is such a port.
    fn unread(&self, device: &str, port: u32) -> Option<&'i Problem> {
        let Inventory { devices, unlisted, list_failure, .. } = self.inventory;
        let devices = self
            .devices
            .get_or_init(|| devices.iter().map(|own| (own.device.name.as_str(), own)).collect());
        let Some(own) = devices.get(device) else {
            let unlisted = self.unlisted.get_or_init(|| {
                unlisted.iter().map(|(name, problem)| (name.as_str(), problem)).collect()
            });
            return unlisted.get(device).copied().or(list_failure.as_ref());
        };
        unread_of_port(own, port)
    }
}

/// Whether another device has a name than before.
fn is_other_device(what: &What) -> bool {
    let What::Difference(own) = what else { return false };
    matches!(own, Difference::DeviceReplaced { .. } | Difference::DeviceRenamed { .. })
}

/// Why it is not known what is in the table of a device's port.
fn unread_of_port(own: &DeviceRecord, port: u32) -> Option<&Problem> {
    own.problem().or_else(|| own.port(port)?.problem())
}

/// What of a host could not be read: with a device's name, if that could not be listed.
fn unread_of_host(own: &Inventory) -> impl Iterator<Item = (Option<&str>, &Problem)> {
    let unlisted = own.unlisted.iter().map(|(name, own)| (Some(name.as_str()), own));
    let netlink = own.without_netlink.iter().filter(|it| !own.problems.contains(it));
    let of_host = own.problems.iter().chain(netlink).chain(&own.unread_settings);
    of_host.map(|own| (None, own)).chain(unlisted)
}

/// What is chosen on a port; else why it is not known, if that is so.
fn side<'s>(
    choice: Option<&'s Choice>,
    places: Option<&Places<'s>>,
    device: &str,
    port: u32,
) -> Side<'s> {
    let unread = || places?.unread(device, port);
    match choice {
        Some(choice) => Side::Choice(choice),
        None => unread().map_or(Side::None, problem_side),
    }
}

fn choice(own: &Chosen<'_>, (decision, is_sure): &(Decision, bool)) -> Choice {
    let (outcome, recommended) = (&decision.outcome, &own.decision.outcome);
    let (index, right) = (outcome.index(), recommended.index());
    let is_by_lid = *outcome == Outcome::ByLid;
    // On InfiniBand any GID will do.
    let is_infiniband = own.port.link_layer == LinkLayer::INFINIBAND;
    let will_do = index.is_some() && right.is_some() && is_infiniband;
    let is_right = index == right && !will_fail(outcome) || is_by_lid || will_do;
    // Where it is not known what is right, no choice is wrong.
    let is_judged = is_by_lid || is_known(recommended) && own.decision.is_sure(&own.port);
    Choice {
        index,
        gid: index.and_then(|index| own.port.row(index)).map(|row| row.gid.to_string()),
        why: index.is_none().then(|| outcome.to_string()),
        is_sure: *is_sure,
        recommended: right,
        is_right: (*is_sure && is_judged).then_some(is_right),
    }
}

fn problem(path: &Path, what: &str) -> Problem {
    Problem { text: format!("{}: {what}", path.display()), errno: EINVAL }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;
    use uverbs::device::Device;
    use uverbs::netdev::Interface;
    use uverbs::watch::Lines;

    /// Where ports take the room of others, a line about one may change all choices. That is looked at so often.
    #[test]
    fn choices_of_large_hosts_are_bounded() {
        let device = |number: u32| {
            let attributes = serde_json::json!([{
                "state": 4, "phys_state": 5, "link_layer": 2, "lid": 0, "sm_lid": 0, "sm_sl": 0,
                "lmc": 0, "gid_tbl_len": 1, "pkey_tbl_len": 1, "port_cap_flags": 0,
            }, "ioctl"]);
            let own = serde_json::json!({
                "name": format!("x{number}"), "node_type": 1, "node_guid": "0x0002c90300000004",
                "sys_image_guid": "0x0002c90300000004", "access": true, "node": null, "gids": [],
                "ports": [{"number": 1, "attributes": attributes, "guid": null, "pkeys": null}],
            });
            serde_json::from_value(own).unwrap()
        };
        let mut host = Inventory::default();
        host.devices = (0..40).map(device).collect();
        host.interfaces = Some(Vec::new());
        let line = |number: u32, change: &str| {
            format!(
                "{{\"number\":{number},\"time\":\"2026-11-22T12:00:00Z\",\"monotonic_ns\":1,\
                 \"changes\":[{{{change}}}]}}\n"
            )
        };
        let looked = |host: &Inventory, change: &str, most: (u64, u64)| {
            let begun = Lines::new().begin(host, false).unwrap();
            let lines: String = (1..100).map(|number| line(number, change)).collect();
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(&file, format!("{begun}\n{lines}")).unwrap();
            let (file, program) = (file.path().to_owned(), "nccl".parse().ok());
            let args = HistoryArgs { file, selector: None, index: None, like: program };
            let (rows, choices) = (Rows::Plain(Out::default()), Choices::new());
            let asked = Asked::new(&[]);
            let rows_of = BTreeMap::new();
            let mut history = History {
                args: &args,
                asked,
                rows,
                choices,
                rows_of,
                of_all: OfAll::default(),
                looked: 0,
                most,
                slot: Slot::Absent,
            };
            let mut report = Report::default();
            history.read(&mut Input::open(&args.file, ROOM).unwrap(), &mut report).unwrap();
            let said: Vec<String> =
                report.problems().iter().map(crate::report::Unanswered::text).collect();
            (history.looked / 80, said.join(" ").contains("than --like looks at"))
        };
        let empty = r#""device":"x0","empty":[1,3]"#;
        assert_eq!(looked(&host, empty, MOST), (101, false));
        assert_eq!(looked(&host, empty, (80 * 50, 0)), (50, true));
        for other in [
            r#""device":"x0","event":[17,1]"#,
            r#""interface":{"index":9,"name":"veth0","is_up":true,"is_lower_up":true,"mtu":1500,"addresses":[]}"#,
        ] {
            assert_eq!(looked(&host, other, MOST), (1, false), "{other}");
        }

        // Each row is compared with all addresses, and all devices that were not asked about may take room.
        let mut quiet = Interface::new(NonZeroU32::MIN, "q0");
        quiet.addresses = (0..79).map(|own| (IpAddr::from([10, 0, 0, own]), 24)).collect();
        host.interfaces = Some(vec![quiet]);
        assert_eq!(looked(&host, empty, MOST), (201, false));
        host.others = (0..20).map(|own| Device::named(format!("y{own}"))).collect();
        assert_eq!(looked(&host, empty, MOST), (301, false));
    }
}
