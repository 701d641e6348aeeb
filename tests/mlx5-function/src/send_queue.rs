//! Send queues. Posted requests are lost, but some are completed.
//!
//! Drivers wait for completions: the network driver for every packet, and up to twenty seconds when an
//! interface is set up; `ib_core` for every management datagram, and for ever when the device is removed.
//! So the function completes requests that promise nothing about their arrival: requests of send queues,
//! and of queue pairs for datagrams or for the driver itself. It does not complete those of connected queue
//! pairs.

use crate::bits::{Field, at};
use crate::event_queue::Trouble;
use crate::memory::Memory;
use crate::ring::{ENTRY, Ring};
use std::collections::BTreeMap;

// The commands that matter here.
const CREATE_CQ: u16 = 0x400;
const DESTROY_CQ: u16 = 0x401;
const CREATE_QP: u16 = 0x500;
const DESTROY_QP: u16 = 0x501;
const CREATE_SQ: u16 = 0x904;
const DESTROY_SQ: u16 = 0x906;

/// Which object is destroyed.
const NUMBER: Field = at(9, 0, 24);

// Of the input of CREATE_CQ.
const ENTRY_SIZE: Field = at(17, 0, 3);
const PAGE_OFFSET: Field = at(26, 4, 6);
const LOG_SIZE: Field = at(28, 3, 5);
const EVENT_QUEUE: Field = at(36, 0, 32);
const LOG_PAGE_SIZE: Field = at(40, 3, 5);
const PAGES: usize = 272;

/// Of the input of `CREATE_QP`: its service, and where its requests are completed.
const SERVICE: Field = at(25, 0, 8);
const SEND_COMPLETIONS: Field = at(149, 0, 24);
/// Unreliable datagrams, those of QP 1, and the driver's own for memory registration.
const SERVICES: [u64; 3] = [2, 8, 0xc];

/// Of the input of `CREATE_SQ`: where its requests are completed.
const COMPLETIONS: Field = at(41, 0, 24);

// The beginning of a request, which is what is written to a doorbell.
const REQUEST_INDEX: Field = at(1, 0, 16);
const REQUEST_OPCODE: Field = at(3, 0, 8);
const REQUEST_QUEUE: Field = at(4, 0, 24);

// A completion. Its last byte has the kind of completion too: 0 is a request's success.
const COMPLETED_OPCODE: Field = at(56, 0, 8);
const COMPLETED_QUEUE: Field = at(57, 0, 24);
const COMPLETED_INDEX: Field = at(60, 0, 16);

/// The send queues, and the completion queues.
#[derive(Debug, Default)]
pub(crate) struct SendQueues {
    /// A send queue's number, or a queue pair's, and that of its completion queue.
    completions: BTreeMap<u64, u64>,
    completion_queues: BTreeMap<u64, CompletionQueue>,
}

#[derive(Debug)]
struct CompletionQueue {
    event_queue: u8,
    ring: Ring,
}

/// Where a request was completed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Completed {
    /// The completion queue.
    pub(crate) queue: u32,
    /// The event queue on which that is announced.
    pub(crate) event_queue: u8,
}

impl SendQueues {
    /// Follows a command that succeeded. One that creates something gave it this number.
    pub(crate) fn follow(&mut self, opcode: u16, number: u64, input: &[u8]) {
        match opcode {
            CREATE_CQ => {
                if let Some(queue) = CompletionQueue::new(input) {
                    self.completion_queues.insert(number, queue);
                }
            }
            CREATE_SQ => {
                self.completions.insert(number, COMPLETIONS.get(input));
            }
            CREATE_QP if SERVICES.contains(&SERVICE.get(input)) => {
                self.completions.insert(number, SEND_COMPLETIONS.get(input));
            }
            DESTROY_CQ => {
                self.completion_queues.remove(&NUMBER.get(input));
            }
            DESTROY_SQ | DESTROY_QP => {
                self.completions.remove(&NUMBER.get(input));
            }
            _ => {}
        }
    }

    /// Completes the request that begins with these bytes, and with it all that were posted before.
    /// `None` if its queue is not completed.
    pub(crate) fn complete(
        &mut self,
        request: u64,
        memory: &Memory,
    ) -> Option<Result<Completed, Trouble>> {
        let request = request.to_be_bytes();
        let queue = REQUEST_QUEUE.get(&request);
        let number = *self.completions.get(&queue)?;
        let completions = self.completion_queues.get_mut(&number)?;
        let mut entry = [0; ENTRY];
        COMPLETED_OPCODE.set(&mut entry, REQUEST_OPCODE.get(&request));
        COMPLETED_QUEUE.set(&mut entry, queue);
        COMPLETED_INDEX.set(&mut entry, REQUEST_INDEX.get(&request));
        let written = completions.ring.write(entry, memory).map_err(Trouble::Memory);
        let event_queue = completions.event_queue;
        let queue = u32::try_from(number).ok()?;
        Some(written.map(|()| Completed { queue, event_queue }))
    }
}

impl CompletionQueue {
    /// The queue that the input of `CREATE_CQ` describes, if it is of the usual form.
    fn new(input: &[u8]) -> Option<Self> {
        if ENTRY_SIZE.get(input) != 0 || PAGE_OFFSET.get(input) != 0 {
            return None;
        }
        let pages = input.get(PAGES..).unwrap_or_default();
        Some(Self {
            event_queue: u8::try_from(EVENT_QUEUE.get(input)).ok()?,
            ring: Ring::new(LOG_SIZE.get(input), LOG_PAGE_SIZE.get(input), pages)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMORY: u64 = 0x10000;

    /// Input of a `CREATE_CQ` of 64 entries at `MEMORY`, announced on queue 7.
    fn create_cq() -> Vec<u8> {
        let mut input = vec![0; 272];
        input[16 + 12] = 6;
        input[16 + 23] = 7;
        input.extend(MEMORY.to_be_bytes());
        input
    }

    /// Input of a `CREATE_QP` of this service that is completed on queue 3.
    fn create_qp(service: u8) -> Vec<u8> {
        let mut input = vec![0; 272];
        input[24 + 1] = service;
        input[24 + 0x3e8 / 8 + 2] = 3;
        input
    }

    fn create_sq() -> Vec<u8> {
        let mut input = vec![0; 272];
        input[32 + 8 + 3] = 3;
        input
    }

    /// Destroys number 5, or 3.
    fn destroy(number: u8) -> Vec<u8> {
        let mut input = vec![0; 16];
        input[11] = number;
        input
    }

    /// Index 0x1234, opcode 0x0a, queue 5.
    const REQUEST: u64 = 0x0012_340a_0000_0502;

    #[test]
    fn a_send_queue_s_request_is_completed() {
        let memory = Memory::zeroed(MEMORY, 0x1000);
        let mut queues = SendQueues::default();
        queues.follow(CREATE_CQ, 3, &create_cq());
        assert!(queues.complete(REQUEST, &memory).is_none());
        queues.follow(CREATE_SQ, 5, &create_sq());
        let completed = queues.complete(REQUEST, &memory).unwrap().unwrap();
        assert_eq!(completed, Completed { queue: 3, event_queue: 7 });
        let entry: [u8; 64] = memory.bytes(MEMORY);
        assert_eq!(entry[56..], [0x0a, 0, 0, 5, 0x12, 0x34, 0, 0]);
        assert_eq!(entry[..56], [0; 56]);
        queues.follow(DESTROY_SQ, 0, &destroy(5));
        assert!(queues.complete(REQUEST, &memory).is_none());
    }

    #[test]
    fn connected_queue_pairs_wait() {
        let memory = Memory::zeroed(MEMORY, 0x1000);
        let mut queues = SendQueues::default();
        queues.follow(CREATE_CQ, 3, &create_cq());
        for (service, completed) in [(0, false), (1, false), (2, true), (8, true), (0xc, true)] {
            queues.follow(CREATE_QP, 5, &create_qp(service));
            assert_eq!(queues.complete(REQUEST, &memory).is_some(), completed, "{service}");
            queues.follow(DESTROY_QP, 0, &destroy(5));
        }
    }

    #[test]
    fn there_may_be_no_completion_queue() {
        let memory = Memory::default();
        let mut queues = SendQueues::default();
        queues.follow(CREATE_SQ, 5, &create_sq());
        assert!(queues.complete(REQUEST, &memory).is_none());
        let mut odd = create_cq();
        odd[17] = 0x20;
        queues.follow(CREATE_CQ, 3, &odd);
        assert!(queues.complete(REQUEST, &memory).is_none());
        queues.follow(CREATE_CQ, 3, &create_cq());
        assert!(matches!(queues.complete(REQUEST, &memory), Some(Err(Trouble::Memory(_)))));
        queues.follow(DESTROY_CQ, 0, &destroy(3));
        assert!(queues.complete(REQUEST, &memory).is_none());
    }
}
