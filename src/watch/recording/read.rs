//! Reading a recording: what happened, one line after the other, and what was known then.

use core::mem::take;
use core::num::NonZeroU32;
use std::io::BufRead;
use std::time::{Duration, SystemTime};

use super::super::apply::{put, rename, slot};
use super::super::diff::{Kept, differences_of};
use super::super::{Change, Origin, What};
use super::form::{Head, Line, Mark, Step};
use super::part::{Part, find, is_interface_renamed, put_in_order};
use crate::context::{Event, EventType};
use crate::device::Device;
use crate::form::is_written_name;
use crate::inventory::{DeviceRecord, GidRow, Inventory, SnapshotError, Snapshots};
use crate::netdev::Netdev;
use crate::text::is_device_name;

/// How an inventory begins that begins a recording.
const HEAD: &[u8] = b"{\"schema_version\":1,\"recording\":{";
/// How all other lines begin.
const LINE: &[u8] = b"{\"number\":";

/// A document of a file that may be a recording.
#[derive(Debug)]
#[non_exhaustive]
pub enum Entry {
    /// A snapshot, which is no part of a recording.
    Snapshot(Box<Inventory>),
    /// A line of a recording.
    Moment(Moment),
}

/// A line of a recording.
#[derive(Debug)]
pub struct Moment {
    number: u64,
    time: SystemTime,
    monotonic: Duration,
    goes_on: bool,
    /// Whether it begins anew, and it is not known what was before.
    is_gap: bool,
    origins: Vec<Origin>,
    /// Whether it does not say whether devices could be listed. Older versions wrote no inventory that does.
    pub(super) is_unsaid: bool,
    news: News,
}

#[derive(Debug)]
enum News {
    Begun(Box<Inventory>),
    Steps(Vec<Step>),
}

/// A recording that is read line by line. Memory is needed for one line and one inventory. After its first snapshot
/// each document is one line.
///
/// A last line that is not whole is not there: who wrote it was stopped. So a reader that ends before its file ends has
/// to fail. After a line that cannot be read, and where lines are missing, nothing is known until the next inventory.
///
/// ```
/// use uverbs::inventory::Inventory;
/// use uverbs::watch::{Entry, Lines, Recording};
///
/// let text = Lines::new().begin(&Inventory::default(), false)? + "\n";
/// let mut recording = Recording::new(text.as_bytes());
/// while let Some(read) = recording.next() {
///     if let Entry::Moment(mut moment) = read? {
///         // Here the inventory is still that before this line.
///         recording.apply(&mut moment)?;
///         println!("{} devices", recording.inventory().map_or(0, |own| own.devices.len()));
///     }
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Recording<R> {
    documents: Snapshots<R>,
    inventory: Option<Inventory>,
    /// What was known before nothing was.
    before: Option<Inventory>,
    /// The number of the last line.
    number: u64,
    is_any: bool,
    said: Said,
    /// Whether an older version wrote it, so that devices could be listed if there are some.
    is_older: bool,
    /// How many elements of inventories may still be moved or looked through.
    room: u64,
}

/// What was said of the lines before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    /// There was none.
    Nothing,
    /// Something was known, or an error said that nothing is.
    Something,
    /// An error said that the last one could not be read. What was known before it is not known after it.
    LastUnread,
}

/// Changes of a device, a row or a port are found by its name. Those that change a list move what comes after it, and
/// an interface is renamed wherever it is named. So much of that is done in any recording, and so much more for each byte, in
/// elements: devices, or rows and interfaces. A host of 1,000 devices can lose one 60,000 times, and more often if each
/// is written down when it comes again.
const ROOM: u64 = 1 << 26;
const ROOM_OF_BYTE: u64 = 4;

impl Moment {
    /// When it was written by the clock on the wall; of changes, when they were found.
    #[must_use]
    pub fn time(&self) -> SystemTime {
        self.time
    }

    /// The same by `CLOCK_MONOTONIC`.
    #[must_use]
    pub fn monotonic(&self) -> Duration {
        self.monotonic
    }

    /// Whether something is new: an inventory, or changes. If not, all is as before.
    #[must_use]
    pub fn has_news(&self) -> bool {
        !matches!(&self.news, News::Steps(steps) if steps.is_empty())
    }

    /// What these news may change. It is asked for before they are applied.
    #[must_use]
    pub fn part(&self) -> Part {
        match &self.news {
            News::Begun(_) => Part::all(),
            News::Steps(steps) => Part::of_steps(steps),
        }
    }

    /// What happened: the differences of two inventories, or of their [`part`](Self::part), before these news and
    /// after them, and what no inventory shows.
    #[must_use]
    pub fn changes(&self, before: &Inventory, after: &Inventory) -> Vec<Change> {
        let steps = match &self.news {
            News::Steps(steps) => steps.as_slice(),
            News::Begun(_) => &[],
        };
        let others = steps.iter().filter_map(|step| match (step.lost, step.event, &step.device) {
            (Some(cause), ..) => Some(What::Lost(cause.0)),
            (_, Some((event_type, element)), Some(device)) => Some(What::Event {
                device: device.clone(),
                event: Event { event_type: EventType(event_type), element },
            }),
            _ => None,
        });
        let replaced = steps.iter().filter_map(|step| step.replaced.as_deref()).collect();
        let renamed = steps.iter().filter(|step| is_interface_renamed(step));
        let renamed = renamed.filter_map(|step| step.ifindex).collect();
        let kept = if self.is_gap { Kept::Gap } else { Kept::Only(&renamed) };
        let differences = differences_of(before, after, &replaced, kept);
        let all = others.chain(differences.into_iter().map(What::Difference));
        let (monotonic, time) = (self.monotonic, self.time);
        all.map(|what| Change { monotonic, time, origins: self.origins.clone(), what }).collect()
    }
}

impl<R: BufRead> Recording<R> {
    /// The lines that a reader gives. Nothing is read yet.
    pub fn new(reader: R) -> Self {
        let documents = Snapshots::new(reader);
        Self {
            documents,
            inventory: None,
            before: None,
            number: 0,
            is_any: false,
            said: Said::Nothing,
            is_older: false,
            room: ROOM,
        }
    }

    /// Whether a file that begins so may be one that a recorder wrote, or the beginning of one. If another program wrote
    /// it anew, only reading its first document shows that.
    #[must_use]
    pub fn may_begin(beginning: &[u8]) -> bool {
        beginning.starts_with(HEAD) || HEAD.starts_with(beginning)
    }

    #[cfg(test)]
    pub(super) fn with_room(mut self, room: u64) -> Self {
        self.room = room;
        self
    }

    /// Goes on with another file, which was begun when this one was full.
    pub fn go_on(&mut self, reader: R) {
        self.documents = Snapshots::new(reader);
    }

    /// The reader.
    #[must_use]
    pub fn get_ref(&self) -> &R {
        self.documents.get_ref()
    }

    /// The number of the first line of the last document, from 1.
    #[must_use]
    pub fn line(&self) -> u64 {
        self.documents.line()
    }

    /// What is known after all lines that were applied; `None` if nothing is. If the last line could not be read, it is
    /// what was known before that line.
    #[must_use]
    pub fn inventory(&self) -> Option<&Inventory> {
        self.inventory.as_ref()
    }

    /// What was known before a line that is not applied yet. If this one begins anew, that may be what was known before lines
    /// that could not be read, or that are missing. `None` after changes that did not fit.
    #[must_use]
    pub fn known_before(&self, moment: &Moment) -> Option<&Inventory> {
        let before = match moment.news {
            News::Begun(_) => self.before.as_ref(),
            News::Steps(_) => None,
        };
        self.inventory.as_ref().or(before)
    }

    /// Nothing is known any more.
    fn lose(&mut self) {
        self.before = self.inventory.take().or(self.before.take());
    }

    /// A device of that by its name. It is found faster than by [`Inventory::device`].
    #[must_use]
    pub fn device(&self, name: &str) -> Option<&DeviceRecord> {
        let devices = &self.inventory.as_ref()?.devices;
        find(devices, name).ok().and_then(|place| devices.get(place))
    }

    /// Whether nothing is known of the time between the line before and this one.
    #[must_use]
    pub fn is_gap(&self, moment: &Moment) -> bool {
        let is_next = self.inventory.is_some() && moment.number.checked_sub(1) == Some(self.number);
        match moment.news {
            News::Begun(_) => !(is_next && moment.goes_on),
            News::Steps(_) => !is_next,
        }
    }

    /// Reads the next document; `None` at the end.
    ///
    /// # Errors
    /// What cannot be read. The next document is read all the same, if there is one.
    #[expect(clippy::should_implement_trait, reason = "what it gives is to be given back")]
    pub fn next(&mut self) -> Option<Result<Entry, SnapshotError>> {
        if self.said == Said::LastUnread {
            self.said = Said::Something;
            self.lose();
        }
        // A line that was cut must not take those after it along.
        let read = self.documents.next_by(parse, self.is_any)?;
        let is_read = read.as_ref().err().is_none_or(SnapshotError::is_of_text);
        if self.is_any && is_read && !self.documents.is_whole() {
            return None;
        }
        self.is_any |= matches!(read, Ok(Entry::Moment(_)));
        self.room = self.room.saturating_add(ROOM_OF_BYTE * self.documents.length());
        if read.is_err() {
            self.said = Said::LastUnread;
        }
        Some(read)
    }

    /// Does what a line says.
    ///
    /// # Errors
    /// If it does not fit to what is known, or is the first line of all and has changes only. Nothing is known then. After
    /// an error changes are left out until the next inventory.
    pub fn apply(&mut self, moment: &mut Moment) -> Result<(), SnapshotError> {
        let is_gap = self.is_gap(moment);
        let before = std::mem::replace(&mut self.number, moment.number);
        moment.is_gap = is_gap;
        let said_before = std::mem::replace(&mut self.said, Said::Something);
        let Some(inventory) = &mut self.inventory else {
            return match &mut moment.news {
                News::Begun(own) => {
                    self.is_older = moment.is_unsaid;
                    (self.inventory, self.before) = (Some(in_order(take(own))), None);
                    Ok(())
                }
                News::Steps(_) if said_before != Said::Nothing => Ok(()),
                News::Steps(_) => {
                    let what = "lines are missing before the first one";
                    Err(self.documents.misfit(what.to_owned()))
                }
            };
        };
        let done = match &mut moment.news {
            News::Begun(own) => {
                self.is_older = moment.is_unsaid;
                *inventory = in_order(take(own));
                return Ok(());
            }
            News::Steps(_) if is_gap && moment.number > before => {
                Err("lines are missing before this one".to_owned())
            }
            News::Steps(_) if is_gap => {
                let number = moment.number;
                Err(format!(
                    "its number, {number}, does not come after {before}, that of the line before"
                ))
            }
            News::Steps(steps) => {
                let part = Part::of_steps(steps);
                let mut steps = steps.iter_mut().enumerate();
                let room = &mut self.room;
                let done = steps.try_for_each(|(place, step)| {
                    *room = room.checked_sub(cost(step, inventory)).ok_or(TOO_MUCH)?;
                    apply(step, inventory).map_err(|what| format!("changes.{place}: {what}"))
                });
                self.is_older &= moment.is_unsaid;
                if self.is_older && !inventory.devices.is_empty() {
                    inventory.list_failure = None;
                }
                done.and(if part.has_twice(&inventory.devices) {
                    Err("two devices with one name".to_owned())
                } else {
                    Ok(())
                })
            }
        };
        done.map_err(|what| {
            if is_gap {
                self.lose();
            } else {
                // Some changes may have been made.
                self.inventory = None;
            }
            self.documents.misfit(what)
        })
    }
}

/// Reads a document as what it begins like.
fn parse(text: &str) -> serde_json::Result<Entry> {
    let bytes = text.as_bytes();
    // Another program may have written it anew, and a letter of a key by its number.
    let plain = text.contains(ESCAPE).then(|| with_letters(text));
    let has = |key: &str| plain.as_deref().unwrap_or(text).contains(key);
    let is_unsaid = !has(r#""list_failure""#);
    // No snapshot has these keys.
    let is_written = bytes.starts_with(LINE);
    let may_be_line = !is_written && (has(r#""recording""#) || has(r#""monotonic_ns""#));
    let mark = may_be_line.then(|| serde_json::from_str::<Mark>(text));
    let mark = mark.transpose()?.unwrap_or_default();
    if mark.recording.is_some() {
        let Head { recording } = serde_json::from_str(text)?;
        return Ok(Entry::Moment(Moment {
            number: recording.number,
            time: recording.time.0,
            monotonic: Duration::from_nanos(recording.monotonic_ns),
            goes_on: recording.goes_on,
            is_gap: false,
            origins: Vec::new(),
            is_unsaid,
            news: News::Begun(serde_json::from_str(text)?),
        }));
    }
    if is_written || mark.number.is_some() {
        let line: Line = serde_json::from_str(text)?;
        return Ok(Entry::Moment(Moment {
            number: line.number,
            time: line.time.0,
            monotonic: Duration::from_nanos(line.monotonic_ns),
            goes_on: true,
            is_gap: false,
            origins: line.causes.into_iter().map(|own| own.0).collect(),
            is_unsaid,
            news: News::Steps(line.changes),
        }));
    }
    serde_json::from_str(text).map(|own| Entry::Snapshot(Box::new(own)))
}

/// How a letter begins that JSON writes by its number, if two digits are left of that.
const ESCAPE: &str = r"\u00";

/// The text, to look for keys in: letters that are written by their numbers are themselves.
fn with_letters(text: &str) -> String {
    let mut parts = text.split(ESCAPE);
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let letter = part.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        let letter = letter.filter(|own| own.is_ascii_lowercase() || *own == b'_');
        if let (Some(letter), Some(rest)) = (letter, part.get(2..)) {
            plain.push(letter.into());
            plain.push_str(rest);
        } else {
            plain.push_str(ESCAPE);
            plain.push_str(part);
        }
    }
    plain
}

/// Whether a step says one thing, and of what.
fn is_one(own: &Step) -> bool {
    let count = |all: &[bool]| all.iter().filter(|is_there| **is_there).count();
    let alone =
        [own.whole.is_some(), own.host.is_some(), own.interface.is_some(), own.lost.is_some()];
    let of_place =
        [own.port.is_some(), own.row.is_some(), own.empty.is_some(), own.event.is_some()];
    let changes = count(&alone) + count(&of_place) + count(&[own.renamed.is_some(), own.is_gone]);
    let places = count(&[own.device.is_some(), own.index.is_some(), own.ifindex.is_some()]);
    let has_devices = own.host.as_ref().is_some_and(|own| !own.devices.is_empty());
    let whole = own.whole.as_ref().map(|own| own.device.name.as_str());
    let is_whole_s = own.replaced.as_deref().is_none_or(|own| Some(own) == whole);
    let has_device = own.event.is_none() || own.device.is_some();
    changes <= 1 && count(&alone) + places <= 1 && !has_devices && is_whole_s && has_device
}

/// Makes of what was what is. Records move out of the step.
fn apply(step: &mut Step, inventory: &mut Inventory) -> Result<(), String> {
    if !is_one(step) {
        return Err("not one change of one thing".to_owned());
    }
    if let Some(own) = step.whole.take() {
        match find(&inventory.devices, &own.device.name) {
            Ok(place) => drop(inventory.devices.get_mut(place).map(|old| *old = *own)),
            Err(place) => inventory.devices.insert(place, *own),
        }
    } else if let Some(host) = step.host.take() {
        *inventory = Inventory { devices: take(&mut inventory.devices), ..*host };
    } else if let Some(own) = step.interface.take() {
        // One of a list that is not known does not make it known.
        let index = own.index;
        let all = inventory.interfaces.as_mut().ok_or_else(|| of_interface(index))?;
        match all.binary_search_by_key(&own.index, |own| own.index) {
            Ok(place) => drop(all.get_mut(place).map(|old| *old = *own)),
            Err(place) => all.insert(place, *own),
        }
    } else if let Some(index) = step.ifindex {
        match &step.renamed {
            Some((before, after)) if is_written_name(after) => {
                if !rename(inventory, index, before, after) {
                    return Err(of_interface(index));
                }
            }
            Some((_, after)) => return Err(format!("{after:?} does not belong here")),
            None if !step.is_gone => return Err(NOT_KNOWN.to_owned()),
            None => {
                let all = inventory.interfaces.iter_mut();
                all.for_each(|all| all.retain(|own| own.index != index));
            }
        }
    } else if let (Some(index), Some((before, after))) = (step.index, &step.renamed) {
        // While names are exchanged, two devices have one.
        let is_own = |own: &Device| own.index == Some(index) && own.name == *before;
        let place = inventory.devices.iter().position(|own| is_own(&own.device));
        let place = place.filter(|_| is_device_name(after)).ok_or_else(|| unknown(before))?;
        let mut own = inventory.devices.remove(place);
        own.device.name.clone_from(after);
        put(&mut inventory.devices, own);
    } else if let Some(device) = step.device.as_ref().filter(|_| step.event.is_none()) {
        let place = find(&inventory.devices, device).map_err(|_| unknown(device))?;
        if step.is_gone {
            inventory.devices.remove(place);
        } else if let Some(own) = inventory.devices.get_mut(place) {
            apply_to(step, own)?;
        }
    } else if step.event.is_none() && step.lost.is_none() {
        return Err(NOT_KNOWN.to_owned());
    }
    Ok(())
}

/// The same of a device.
fn apply_to(step: &mut Step, own: &mut DeviceRecord) -> Result<(), String> {
    if let Some(port) = step.port.take() {
        let place = own.ports.binary_search_by_key(&port.number, |own| own.number);
        let Some(old) = place.ok().and_then(|place| own.ports.get_mut(place)) else {
            return Err(unknown(&port.number));
        };
        *old = *port;
        return Ok(());
    }
    let (ports, name) = (own.device.ports(), &own.device.name);
    let Some(Ok(rows)) = &mut own.gids else {
        return Err(unknown(&format!("the table of {name}")));
    };
    let find = |rows: &[GidRow], of| rows.binary_search_by_key(&of, slot);
    if let Some(row) = step.row.take() {
        if !ports.contains(&slot(&row).0) {
            return Err(unknown(&slot(&row).0));
        }
        match find(rows, slot(&row)) {
            Ok(place) => drop(rows.get_mut(place).map(|old| *old = *row)),
            Err(place) => rows.insert(place, *row),
        }
    } else if let Some(slot) = step.empty {
        if let Ok(place) = find(rows, slot) {
            rows.remove(place);
        }
    } else {
        return Err(NOT_KNOWN.to_owned());
    }
    Ok(())
}

fn in_order(mut inventory: Inventory) -> Inventory {
    put_in_order(&mut inventory.devices);
    inventory
}

/// How many elements a step moves, looks through or takes along, beside what it names.
fn cost(step: &Step, inventory: &Inventory) -> u64 {
    let devices = inventory.devices.len();
    let interfaces = inventory.interfaces.as_deref().unwrap_or_default();
    let of_device = |own: &DeviceRecord| {
        let keys = own.ports.iter().flat_map(|port| &port.pkeys).flatten();
        own.ports.len() + own.all_rows().len() + keys.map(Vec::len).sum::<usize>()
    };
    let named = |name: &str| {
        let place = find(&inventory.devices, name).ok();
        place.and_then(|place| inventory.devices.get(place))
    };
    let elements = if is_interface_renamed(step) {
        let is_it = |own: &Netdev| Some(own.index) == step.ifindex;
        // What names it is taken along twice.
        let of_names = |own: &DeviceRecord| {
            let ports = own.ports.iter().filter(|own| own.netdev.iter().flatten().any(is_it));
            let rows = own.all_rows().iter().filter(|own| own.netdev.iter().any(is_it));
            ports.count() + rows.count()
        };
        let all = inventory.devices.iter().map(|own| of_device(own) + 8 * of_names(own));
        devices + all.sum::<usize>()
    } else if step.whole.is_some() || step.is_gone || step.renamed.is_some() {
        let renamed = step.renamed.as_ref().and_then(|(before, _)| named(before));
        let rest = inventory.unlisted.len() + interfaces.len();
        // It is taken along twice.
        devices + rest + 4 * renamed.map_or(0, of_device)
    } else if let (Some(device), Some(_), _) | (Some(device), _, Some(_)) =
        (&step.device, &step.row, step.empty)
    {
        // Rows are small.
        named(device).map_or(0, |own| own.all_rows().len() / 16)
    } else if let Some(own) = &step.interface {
        let place = interfaces.binary_search_by_key(&own.index, |own| own.index);
        place.map_or_else(|place| interfaces.len() - place, |_| 0)
    } else {
        0
    };
    elements as u64
}

const TOO_MUCH: &str = "there are more changes of so large a host than are read";

/// What a newer version may write.
const NOT_KNOWN: &str = "a change that this version does not know; use a newer uverbs";

fn of_interface(index: NonZeroU32) -> String {
    unknown(&format_args!("the interface {index}"))
}

fn unknown(what: &dyn core::fmt::Display) -> String {
    format!("{what} is not known here")
}
