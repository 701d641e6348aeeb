//! Event queues, which report events to the driver with an interrupt.

use crate::bits::{Field, at};
use crate::interrupts::Interrupts;
use crate::memory::{Memory, Outside};
use crate::ring::{ENTRY, Ring};
use std::collections::BTreeMap;

/// The first number that is given to a queue, and the last.
const NUMBERS: std::ops::RangeInclusive<u8> = 4..=63;

// Of the input of CREATE_EQ.
const LOG_SIZE: Field = at(28, 3, 5);
const VECTOR: Field = at(38, 4, 12);
const LOG_PAGE_SIZE: Field = at(40, 3, 5);
/// Which events it takes: one bit for each type, the highest type first in each 64 bits.
const EVENT_MASK: usize = 88;
const PAGES: usize = 272;

/// The events that are posted here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// The command in this slot is done.
    Command(u8),
    /// A port changed.
    Port { port: u8, subtype: u8 },
    /// There is something on the completion queue of this number.
    Completion(u32),
}

impl Event {
    fn kind(self) -> u8 {
        match self {
            Self::Command(_) => 0x0a,
            Self::Port { .. } => 0x09,
            Self::Completion(_) => 0x00,
        }
    }

    /// The entry but for its owner.
    fn entry(self) -> [u8; ENTRY] {
        let mut entry = [0; ENTRY];
        at(1, 0, 8).set(&mut entry, u64::from(self.kind()));
        match self {
            Self::Command(slot) => at(32, 0, 32).set(&mut entry, 1 << slot),
            Self::Port { port, subtype } => {
                at(3, 0, 8).set(&mut entry, u64::from(subtype));
                at(40, 0, 4).set(&mut entry, u64::from(port));
            }
            Self::Completion(queue) => at(56, 0, 32).set(&mut entry, u64::from(queue)),
        }
        entry
    }
}

/// All event queues, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct EventQueues {
    queues: BTreeMap<u8, EventQueue>,
}

#[derive(Debug)]
struct EventQueue {
    mask: [u64; 4],
    vector: usize,
    ring: Ring,
}

/// Why an event was not posted or not reported.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// No queue takes this event.
    NoQueue,
    /// The queue is not in memory.
    Memory(Outside),
    /// The queue's vector is off.
    VectorOff(usize),
    /// The eventfd failed.
    Signal(std::io::Error),
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoQueue => f.write_str("no event queue takes this event"),
            Self::Memory(outside) => write!(f, "event queue: {outside}"),
            Self::VectorOff(vector) => write!(f, "the event queue's vector {vector} is off"),
            Self::Signal(error) => write!(f, "signalling an event: {error}"),
        }
    }
}

impl EventQueues {
    /// Makes the queue that the input of `CREATE_EQ` asks for; its number, or `None` where the
    /// input makes no sense or there are too many.
    pub(crate) fn create(&mut self, input: &[u8]) -> Option<u8> {
        let number = NUMBERS.into_iter().find(|number| !self.queues.contains_key(number))?;
        let pages = input.get(PAGES..).unwrap_or_default();
        let queue = EventQueue {
            mask: [0, 1, 2, 3].map(|word| at(EVENT_MASK + 8 * word, 0, 64).get(input)),
            vector: usize::try_from(VECTOR.get(input)).ok()?,
            ring: Ring::new(LOG_SIZE.get(input), LOG_PAGE_SIZE.get(input), pages)?,
        };
        self.queues.insert(number, queue);
        Some(number)
    }

    /// Takes a queue away. Returns whether it was there.
    pub(crate) fn destroy(&mut self, number: u8) -> bool {
        self.queues.remove(&number).is_some()
    }

    /// Whether there is a queue for command completions.
    pub(crate) fn announces_commands(&self) -> bool {
        self.queues.values().any(|queue| queue.takes(Event::Command(0)))
    }

    /// Posts an event on the queue that takes it, and raises its vector.
    pub(crate) fn post(
        &mut self,
        event: Event,
        memory: &Memory,
        interrupts: &Interrupts,
    ) -> Result<(), Trouble> {
        let mut queues = self.queues.values_mut();
        let queue = queues.find(|queue| queue.takes(event)).ok_or(Trouble::NoQueue)?;
        queue.post(event, memory, interrupts)
    }

    /// Posts an event on the queue of this number, and raises its vector.
    pub(crate) fn post_on(
        &mut self,
        number: u8,
        event: Event,
        memory: &Memory,
        interrupts: &Interrupts,
    ) -> Result<(), Trouble> {
        let queue = self.queues.get_mut(&number).ok_or(Trouble::NoQueue)?;
        queue.post(event, memory, interrupts)
    }
}

impl EventQueue {
    fn takes(&self, event: Event) -> bool {
        let [first, ..] = self.mask;
        first >> event.kind() & 1 == 1
    }

    fn post(
        &mut self,
        event: Event,
        memory: &Memory,
        interrupts: &Interrupts,
    ) -> Result<(), Trouble> {
        self.ring.write(event.entry(), memory).map_err(Trouble::Memory)?;
        match interrupts.raise(self.vector) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Trouble::VectorOff(self.vector)),
            Err(error) => Err(Trouble::Signal(error)),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::os::fd::OwnedFd;

    /// Input of a `CREATE_EQ` of 64 or more entries whose pages follow one another.
    pub(crate) fn create_eq(mask: u64, log_size: u64, vector: u64, address: u64) -> Vec<u8> {
        let pages = (64_u64 << log_size).div_ceil(4096);
        let mut input = vec![0; PAGES];
        LOG_SIZE.set(&mut input, log_size);
        VECTOR.set(&mut input, vector);
        at(EVENT_MASK, 0, 64).set(&mut input, mask);
        for page in 0..pages {
            input.extend((address + page * 4096).to_be_bytes());
        }
        input
    }

    fn lit() -> Interrupts {
        let mut interrupts = Interrupts::default();
        let (reader, writer) = std::io::pipe().unwrap();
        // Never full: not that many events are posted.
        std::mem::forget(reader);
        interrupts.set(3, 1, vec![OwnedFd::from(writer).into()]);
        interrupts
    }

    #[test]
    fn completions_are_announced_in_turn() {
        let memory = Memory::zeroed(0x10000, 0x2000);
        let interrupts = lit();
        let mut queues = EventQueues::default();
        // 128 entries on two pages.
        let number = queues.create(&create_eq(0x400, 7, 3, 0x10000)).unwrap();
        assert_eq!(number, 4);
        for posted in 0..128 * 3 + 5_u64 {
            let slot = u8::try_from(posted % 32).unwrap();
            queues.post(Event::Command(slot), &memory, &interrupts).unwrap();
            let entry: [u8; 64] = memory.bytes(0x10000 + posted % 128 * 64);
            assert_eq!(u64::from(entry[63]), posted / 128 % 2, "{posted}");
            assert_eq!(entry[1], 0x0a);
            assert_eq!(entry[32..36], (1_u32 << slot).to_be_bytes());
        }
    }

    #[test]
    fn a_port_event_goes_to_the_queue_that_takes_it() {
        let memory = Memory::zeroed(0x10000, 0x2000);
        let interrupts = lit();
        let mut queues = EventQueues::default();
        let event = Event::Port { port: 2, subtype: 6 };
        queues.create(&create_eq(0x400, 6, 3, 0x10000)).unwrap();
        assert!(matches!(queues.post(event, &memory, &interrupts), Err(Trouble::NoQueue)));
        let number = queues.create(&create_eq(0x200, 6, 3, 0x11000)).unwrap();
        queues.post(event, &memory, &interrupts).unwrap();
        let entry: [u8; 64] = memory.bytes(0x11000);
        assert_eq!((entry[1], entry[3], entry[40], entry[63]), (9, 6, 0x20, 0));
        assert_eq!(memory.bytes::<64>(0x10000), [0; 64]);
        assert!(queues.destroy(number));
        assert!(!queues.destroy(number));
        assert!(matches!(queues.post(event, &memory, &interrupts), Err(Trouble::NoQueue)));
    }

    #[test]
    fn trouble_is_told() {
        let memory = Memory::zeroed(0x10000, 0x1000);
        let mut queues = EventQueues::default();
        queues.create(&create_eq(0x400, 6, 1, 0x10000)).unwrap();
        queues.create(&create_eq(0x200, 6, 3, 0x20000)).unwrap();
        let interrupts = lit();
        let port = Event::Port { port: 1, subtype: 1 };
        assert!(matches!(
            queues.post(Event::Command(0), &memory, &interrupts),
            Err(Trouble::VectorOff(1))
        ));
        assert!(matches!(queues.post(port, &memory, &interrupts), Err(Trouble::Memory(_))));
    }

    #[test]
    fn nonsense_is_refused() {
        let mut queues = EventQueues::default();
        let good = create_eq(0x400, 7, 0, 0x10000);
        assert_eq!(queues.create(&good[..good.len() - 8]), None);
        assert_eq!(queues.create(&[0; 16]), None);
        assert_eq!(queues.create(&[]), None);
        let made: Vec<_> = std::iter::from_fn(|| queues.create(&good)).collect();
        assert_eq!(made, NUMBERS.collect::<Vec<_>>());
    }
}
