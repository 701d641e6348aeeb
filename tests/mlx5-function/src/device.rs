//! The whole device: what the machine does to it, and what is ordered, meets here.

use crate::bar::{Bar, Health};
use crate::command::queue::{LOG_SLOTS, Slot};
use crate::command::{Call, Firmware, refused};
use crate::config_space::ConfigSpace;
use crate::control::{Command, Fault, Order, Reply};
use crate::description::Description;
use crate::event_queue::Event;
use crate::faults::{Faults, Rule};
use crate::interrupts::Interrupts;
use crate::log::{Commands, Remarks};
use crate::memory::Memory;
use std::collections::BTreeMap;
use std::time::Duration;

/// Sub-types of port events.
const PORT_SUBTYPES: [u8; 7] = [1, 4, 5, 6, 7, 8, 9];

/// A function's state.
#[derive(Debug)]
pub(crate) struct Device {
    pub(crate) description: Description,
    pub(crate) config: ConfigSpace,
    pub(crate) bar: Bar,
    pub(crate) memory: Memory,
    pub(crate) interrupts: Interrupts,
    pub(crate) remarks: Remarks,
    firmware: Firmware,
    faults: Faults,
    log: Commands,
    /// Commands that were carried out but not answered, by their numbers.
    held: BTreeMap<u64, Held>,
}

/// An answer that is held back.
#[derive(Debug)]
struct Held {
    slot: Slot,
    output: Vec<u8>,
    /// Whether an event announces the answer.
    announced: bool,
}

/// A command whose answer is to be given later, by [`Device::release`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Later {
    /// The command's number.
    pub(crate) number: u64,
    /// How much later.
    pub(crate) delay: Duration,
}

impl Device {
    pub(crate) fn new(description: Description) -> Self {
        Self {
            description,
            config: ConfigSpace::default(),
            bar: Bar::new(),
            memory: Memory::default(),
            interrupts: Interrupts::default(),
            remarks: Remarks::default(),
            firmware: Firmware::default(),
            faults: Faults::default(),
            log: Commands::default(),
            held: BTreeMap::new(),
        }
    }

    /// A reset by the machine: all is forgotten but what was ordered, and what happened.
    pub(crate) fn reset(&mut self) {
        self.config = ConfigSpace::default();
        self.bar.reset();
        self.firmware = Firmware::default();
        self.held.clear();
    }

    /// Carries out the commands in the slots whose bits are set. Returns those that are to be
    /// answered later.
    pub(crate) fn doorbell(&mut self, slots: u32) -> Vec<Later> {
        let rung = (0..1_u8 << LOG_SLOTS).filter(|slot| slots >> slot & 1 == 1);
        rung.filter_map(|slot| self.command(slot)).collect()
    }

    fn command(&mut self, number: u8) -> Option<Later> {
        let slot = match Slot::read(&self.memory, self.bar.queue(), number) {
            Ok(slot) => slot,
            Err(outside) => {
                self.remarks.add(format!("command queue: {outside}"));
                return None;
            }
        };
        if !slot.is_ours() {
            self.remarks.add(format!("doorbell for slot {number}, which is not the device's"));
            return None;
        }
        let input = slot.input(&self.memory);
        let (input, output_len) = match input.and_then(|input| Ok((input, slot.output_len()?))) {
            Ok(whole) => whole,
            Err(undelivered) => {
                self.remarks.add(format!("command in slot {number}: {undelivered:?}"));
                self.give_back(&slot, undelivered.status(), true);
                return None;
            }
        };
        let call = Call { description: &self.description, input: &input, output_len };
        let number = self.log.push(Command {
            number: 0,
            opcode: call.opcode(),
            uid: call.uid(),
            op_mod: call.op_mod(),
            arguments: call.arguments(),
            status: None,
        });
        // Before the command is carried out: the one that makes the first queue is not announced.
        let announced = self.firmware.queues.announces_commands();
        let fault = self.faults.take(call.opcode(), call.op_mod());
        let output = match fault {
            Some(Fault::Delivery(status)) => {
                self.give_back(&slot, status, announced);
                return None;
            }
            Some(Fault::Status { status, syndrome }) => refused(status, syndrome, output_len),
            Some(Fault::Delay(_) | Fault::Silence) | None => {
                self.firmware.execute(&call, &mut self.remarks)
            }
        };
        let answer = Held { slot, output, announced };
        match fault {
            Some(Fault::Delay(milliseconds)) => {
                self.held.insert(number, answer);
                let delay = Duration::from_millis(u64::from(milliseconds));
                Some(Later { number, delay })
            }
            Some(Fault::Silence) => {
                self.held.insert(number, answer);
                None
            }
            _ => {
                self.answer(number, &answer);
                None
            }
        }
    }

    /// Answers a command that was held back, if it still is.
    pub(crate) fn release(&mut self, number: u64) {
        if let Some(answer) = self.held.remove(&number) {
            self.answer(number, &answer);
        }
    }

    fn answer(&mut self, number: u64, answer: &Held) {
        let delivery = match answer.slot.answer(&self.memory, &answer.output) {
            Ok(()) => {
                self.log.answered(number, answer.output.first().copied().unwrap_or(0));
                0
            }
            Err(undelivered) => {
                self.remarks.add(format!("answer to command {number}: {undelivered:?}"));
                undelivered.status()
            }
        };
        self.give_back(&answer.slot, delivery, answer.announced);
    }

    fn give_back(&mut self, slot: &Slot, delivery: u8, announced: bool) {
        if let Err(outside) = slot.give_back(&self.memory, delivery) {
            self.remarks.add(format!("command queue: {outside}"));
        }
        // The command may have been the end of the queue.
        if announced && self.firmware.queues.announces_commands() {
            let event = Event::Command(slot.number);
            if let Err(trouble) = self.firmware.queues.post(event, &self.memory, &self.interrupts) {
                self.remarks.add(trouble.to_string());
            }
        }
    }

    /// Does what is ordered.
    pub(crate) fn handle(&mut self, order: Order) -> Reply {
        match self.obey(order) {
            Ok(reply) => reply,
            Err(why) => Reply::Error(why),
        }
    }

    fn obey(&mut self, order: Order) -> Result<Reply, String> {
        match order {
            Order::Describe => return Ok(Reply::Description(Box::new(self.description.clone()))),
            Order::Become(description) => {
                description.check()?;
                self.description = *description;
                self.bar.health = Health::default();
                self.forget_faults();
            }
            Order::Commands { since } => {
                let (commands, next) = self.log.since(since).map_err(|first| {
                    format!("commands below {first} are not kept; {since} was asked for")
                })?;
                return Ok(Reply::Commands { commands, next });
            }
            Order::Inject { opcode, op_mod, times, fault } => {
                self.faults.add(Rule { opcode, op_mod, times, fault })?;
            }
            Order::Clear => self.forget_faults(),
            Order::PortEvent { port, subtype } => {
                if port == 0 || usize::from(port) > self.description.ports.len() {
                    return Err(format!("there is no port {port}"));
                }
                if !PORT_SUBTYPES.contains(&subtype) {
                    return Err(format!("{subtype} is none of a port event's {PORT_SUBTYPES:?}"));
                }
                let event = Event::Port { port, subtype };
                let posted = self.firmware.queues.post(event, &self.memory, &self.interrupts);
                posted.map_err(|trouble| trouble.to_string())?;
            }
            Order::Health { syndrome, fatal } => self.bar.health = Health { syndrome, fatal },
        }
        Ok(Reply::Done)
    }

    fn forget_faults(&mut self) {
        self.faults.clear();
        while let Some((number, answer)) = self.held.pop_first() {
            self.answer(number, &answer);
        }
    }
}
