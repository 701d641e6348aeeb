//! Objects that the driver makes. The firmware only gives them numbers. Each kind has separate numbers,
//! because their widths differ.

use super::{Answer, Call, LEAST, NUMBER, Refusal};
use crate::bits::{Field, at};
use crate::event_queue::EventQueues;
use std::collections::BTreeSet;

/// A kind of objects.
#[derive(Debug)]
struct Kind {
    /// The opcodes that create one, each with that which destroys it.
    opcodes: &'static [(u16, u16)],
    /// Where its destruction has the number; `None` where numbers are not used again.
    number: Option<Field>,
    first: u32,
    last: u32,
}

/// Where most destructions have the number.
const USUAL: Field = at(9, 0, 24);
/// Position of the number in answers to creations.
pub(super) const NUMBER_GIVEN: Field = at(8, 0, 32);
/// The largest number of most kinds.
const LARGEST: u32 = 0xff_ffff;

const KINDS: &[Kind] = &[
    numbered(&[(0x200, 0x202)], LARGEST), // memory key
    numbered(&[(0x400, 0x401)], LARGEST), // completion queue
    // Queue pair, send queue: a doorbell contains only the number.
    numbered(&[(0x500, 0x501), (0x904, 0x906)], LARGEST),
    // XRC shared receive queue, receive memory pool: the driver keeps both in one table.
    numbered(&[(0x705, 0x706), (0x90c, 0x90e)], LARGEST),
    numbered(&[(0x771, 0x772)], 0xff),    // queue counter
    numbered(&[(0x800, 0x801)], LARGEST), // protection domain
    // A doorbell page: its number is that of the page in BAR 0. The first pages are registers.
    Kind { first: 8, ..numbered(&[(0x802, 0x803)], 8191) },
    numbered(&[(0x80e, 0x80f)], LARGEST), // XRC domain
    numbered(&[(0x816, 0x817)], LARGEST), // transport domain
    numbered(&[(0x900, 0x902)], LARGEST), // TIR
    numbered(&[(0x908, 0x90a)], LARGEST), // receive queue
    numbered(&[(0x912, 0x914)], LARGEST), // TIS
    numbered(&[(0x916, 0x918)], LARGEST), // receive queue table
    Kind { number: None, ..numbered(&[(0x930, 0x931)], LARGEST) }, // flow table
    Kind { number: None, ..numbered(&[(0x933, 0x934)], LARGEST) }, // flow group
    numbered(&[(0x940, 0x941)], LARGEST), // modify header context
    // A user context; 0 is the driver itself.
    numbered(&[(0xa04, 0xa06)], 0xffff),
];

const fn numbered(opcodes: &'static [(u16, u16)], last: u32) -> Kind {
    Kind { opcodes, number: Some(USUAL), first: 1, last }
}

/// The numbers in use, for each of the kinds in their order.
#[derive(Debug)]
pub(super) struct Ids {
    kinds: [Numbers; KINDS.len()],
}

impl Default for Ids {
    fn default() -> Self {
        Self { kinds: std::array::from_fn(|_| Numbers::default()) }
    }
}

#[derive(Debug, Default)]
struct Numbers {
    /// How many were ever given, all different.
    given: u32,
    free: BTreeSet<u32>,
}

impl Ids {
    /// Answers the creation or destruction of an object; `None` where a command is neither.
    pub(super) fn answer(&mut self, call: &Call<'_>) -> Option<Result<Answer, Refusal>> {
        let opcode = call.opcode();
        KINDS.iter().zip(&mut self.kinds).find_map(|(kind, numbers)| {
            if kind.opcodes.iter().any(|(create, _)| *create == opcode) {
                Some(numbers.create(kind, call))
            } else if kind.opcodes.iter().any(|(_, destroy)| *destroy == opcode) {
                Some(numbers.destroy(kind, call))
            } else {
                None
            }
        })
    }
}

impl Numbers {
    fn create(&mut self, kind: &Kind, call: &Call<'_>) -> Result<Answer, Refusal> {
        let mut answer = call.answer(NUMBER)?;
        let number = match self.free.pop_first() {
            Some(number) => number,
            None if kind.first + self.given <= kind.last => {
                self.given += 1;
                kind.first + self.given - 1
            }
            None => return Err(Refusal::NO_RESOURCES),
        };
        answer.set(NUMBER_GIVEN, number);
        Ok(answer)
    }

    fn destroy(&mut self, kind: &Kind, call: &Call<'_>) -> Result<Answer, Refusal> {
        let answer = call.answer(LEAST)?;
        if let Some(field) = kind.number {
            let number = u32::try_from(call.get(field)).unwrap_or(u32::MAX);
            let given = kind.first..kind.first + self.given;
            if !given.contains(&number) || !self.free.insert(number) {
                return Err(Refusal::NO_OBJECT);
            }
        }
        Ok(answer)
    }
}

pub(super) fn create_eq(call: &Call<'_>, queues: &mut EventQueues) -> Result<Answer, Refusal> {
    let mut answer = call.answer(NUMBER)?;
    let number = queues.create(call.input).ok_or(Refusal::BAD_PARAMETER)?;
    answer.set(at(11, 0, 8), number);
    Ok(answer)
}

pub(super) fn destroy_eq(call: &Call<'_>, queues: &mut EventQueues) -> Result<Answer, Refusal> {
    let answer = call.answer(LEAST)?;
    let [.., number] = call.get(at(11, 0, 8)).to_be_bytes();
    if queues.destroy(number) { Ok(answer) } else { Err(Refusal::NO_OBJECT) }
}
