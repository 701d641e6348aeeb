//! Making the lines of a recording.

use std::time::{Duration, SystemTime};

use super::super::apply::{host_part, slot};
use super::super::{Change, Difference, What, now};
use super::form::{Begun, CauseWord, Head, Line, Step, Time};
use super::time::format_time;
use crate::inventory::{Inventory, Parts};

/// What is read for a recording: everything that a snapshot has.
pub const RECORDED: Parts = Parts::ALL;

/// Makes the lines of a recording, one after the other. Each is a JSON document, without the end of the line.
///
/// The first is that of [`begin`](Self::begin), with the watch's first inventory. After it comes one for all changes
/// of one reading, as a state between two of them never was.
#[derive(Debug, Default)]
pub struct Lines {
    /// The number of the next line.
    number: u64,
}

impl Lines {
    /// The numbers begin at 0.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A line that begins a file: what is known now. If it goes on, nothing was missed since the last line; else
    /// nothing is known of the time between.
    ///
    /// How much memory may be locked is left out: that is the recorder's own limit, and no program's.
    ///
    /// # Errors
    /// Those of `serde_json`, which has none for what is in an inventory.
    pub fn begin(&mut self, inventory: &Inventory, goes_on: bool) -> serde_json::Result<String> {
        let (monotonic, time) = (now(), SystemTime::now());
        let head = Head {
            recording: Begun {
                number: self.number,
                time: Time(time),
                monotonic_ns: ns(monotonic),
                goes_on,
            },
        };
        let head = serde_json::to_string(&head)?;
        let head = head.strip_prefix('{').and_then(|own| own.strip_suffix('}')).unwrap_or_default();
        let text = serde_json::to_string(&without_own(inventory.clone()))?;
        let (first, rest) = text.split_once(',').unwrap_or_default();
        self.number += 1;
        let (at, by) = (format_time(time, 0), concat!("uverbs ", env!("CARGO_PKG_VERSION")));
        Ok(format!(r#"{first},{head},"written_at":"{at}","written_by":"{by}",{rest}"#))
    }

    /// A line for changes of one cause, after which this is the inventory; `None` if there are none.
    ///
    /// # Errors
    /// Those of `serde_json`, which has none for what is in an inventory.
    pub fn changes(
        &mut self,
        changes: &[Change],
        inventory: &Inventory,
    ) -> serde_json::Result<Option<String>> {
        let Some(first) = changes.first() else { return Ok(None) };
        let mut steps = Vec::new();
        for change in changes {
            match &change.what {
                What::Difference(own) => add(own, inventory, &mut steps),
                What::Event { device, event } => steps.push(Step {
                    device: Some(device.clone()),
                    event: Some((event.event_type.0, event.element)),
                    ..Step::default()
                }),
                What::Lost(origin) => {
                    steps.push(Step { lost: Some(CauseWord(*origin)), ..Step::default() });
                }
            }
        }
        let causes = first.origins.iter().copied().map(CauseWord).collect();
        self.line((first.monotonic, first.time), causes, steps).map(Some)
    }

    /// A line that says that all is as before.
    ///
    /// # Errors
    /// Those of `serde_json`, which has none here.
    pub fn unchanged(&mut self) -> serde_json::Result<String> {
        self.line((now(), SystemTime::now()), Vec::new(), Vec::new())
    }

    fn line(
        &mut self,
        (monotonic, time): (Duration, SystemTime),
        causes: Vec<CauseWord>,
        changes: Vec<Step>,
    ) -> serde_json::Result<String> {
        let (number, time, monotonic_ns) = (self.number, Time(time), ns(monotonic));
        self.number += 1;
        serde_json::to_string(&Line { number, time, monotonic_ns, causes, changes })
    }
}

fn ns(monotonic: Duration) -> u64 {
    u64::try_from(monotonic.as_nanos()).unwrap_or(u64::MAX)
}

/// Adds what is now where this difference was found. Something that is in the last step already is not added again.
fn add(difference: &Difference, now: &Inventory, steps: &mut Vec<Step>) {
    let device = difference.device().map(str::to_owned);
    let step = || Step { device: device.clone(), ..Step::default() };
    let last = steps.last();
    let whole = last.and_then(|own| own.whole.as_ref()).map(|own| own.device.name.as_str());
    let is_replaced = matches!(difference, Difference::DeviceReplaced { .. });
    if whole.is_some() && whole == difference.device() && !is_replaced {
        return;
    }
    let added = match difference {
        Difference::DeviceCame(own)
        | Difference::DeviceListed(own)
        | Difference::Device { after: own, .. } => whole_of(&own.device.name, now),
        // A document does not have all by which that was found.
        Difference::DeviceReplaced { after: own, .. } => {
            whole_of(&own.device.name, now).map(|step| Step { replaced: device, ..step })
        }
        Difference::Table { device, .. } => whole_of(device, now),
        Difference::DeviceWent(own) | Difference::DeviceUnlisted(own) => {
            Some(Step { device: Some(own.device.name.clone()), is_gone: true, ..Step::default() })
        }
        Difference::DeviceRenamed { index, before, after } => Some(Step {
            index: Some(*index),
            renamed: Some((before.clone(), after.clone())),
            ..Step::default()
        }),
        Difference::Port { device, port, .. } => {
            let is_last = |own: &Step| {
                own.device.as_ref() == Some(device)
                    && own.port.as_ref().is_some_and(|own| own.number == *port)
            };
            let record = now.device(device).and_then(|own| own.port(*port));
            let record = record.filter(|_| !last.is_some_and(is_last));
            record.map(|own| Step { port: Some(Box::new(own.clone())), ..step() })
        }
        Difference::GidCame { row, .. } => Some(Step { row: Some(row.clone()), ..step() }),
        Difference::GidWent { row, .. } => Some(Step { empty: Some(slot(row)), ..step() }),
        Difference::GidChanged { after, .. } => Some(Step { row: Some(after.clone()), ..step() }),
        Difference::GidMoved { before, after, .. } => {
            steps.push(Step { empty: Some(slot(before)), ..step() });
            Some(Step { row: Some(after.clone()), ..step() })
        }
        Difference::InterfaceRenamed { index, before, after } => Some(Step {
            ifindex: Some(*index),
            renamed: Some((before.clone(), after.clone())),
            ..Step::default()
        }),
        Difference::Interface { after: Some(own), .. } => {
            Some(Step { interface: Some(Box::new(own.clone())), ..Step::default() })
        }
        Difference::Interface { before, after: None } => before.as_ref().map(|own| Step {
            ifindex: Some(own.index),
            is_gone: true,
            ..Step::default()
        }),
        Difference::Host { .. } => {
            let host = without_own(host_part(now, true));
            Some(Step { host: Some(Box::new(host)), ..Step::default() })
        }
    };
    steps.extend(added);
}

fn whole_of(device: &str, now: &Inventory) -> Option<Step> {
    let own = now.device(device)?;
    Some(Step { whole: Some(Box::new(own.clone())), ..Step::default() })
}

/// A host without what is the recorder's own: how much memory it may lock, and which nodes it may open.
fn without_own(host: Inventory) -> Inventory {
    Inventory { locked_memory: None, rdma_cm_access: None, umad_access: None, ..host }
}
