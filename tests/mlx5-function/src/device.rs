//! The whole device: it receives the machine's accesses and the tests' orders.

use crate::bar::{Bar, Health};
use crate::command::queue::{INLINE, LOG_SLOTS, Slot};
use crate::command::{Call, Firmware, refused};
use crate::config_space::ConfigSpace;
use crate::control::{Command, Fault, Order, Reply};
use crate::description::Description;
use crate::event_queue::Event;
use crate::faults::Faults;
use crate::interrupts::Interrupts;
use crate::log::{Commands, Remarks};
use crate::memory::Memory;
use crate::send_queue::Completed;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

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
    /// Whether it is pulled out: nothing reaches it, and it does nothing.
    pub(crate) unplugged: bool,
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
    /// When the driver gives up waiting.
    patience: Instant,
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
            unplugged: false,
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
        let fault = self.faults.of(call.opcode());
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
        let patience = Instant::now() + self.bar.patience();
        let answer = Held { slot, output, announced, patience };
        if !matches!(fault, Some(Fault::Delay(_) | Fault::Silence)) {
            self.answer(number, &answer);
            return None;
        }
        self.held.insert(number, answer);
        let Some(Fault::Delay(milliseconds)) = fault else { return None };
        Some(Later { number, delay: Duration::from_millis(milliseconds.into()) })
    }

    /// Completes what is on a send queue, see [`send_queue`](crate::send_queue).
    pub(crate) fn send(&mut self, request: u64) {
        let completed = self.firmware.send_queues.complete(request, &self.memory);
        let posted = completed.map(|completed| {
            let Completed { queue, event_queue } = completed?;
            let event = Event::Completion(queue);
            self.firmware.queues.post_on(event_queue, event, &self.memory, &self.interrupts)
        });
        if let Some(Err(trouble)) = posted {
            self.remarks.add(format!("completing a send: {trouble}"));
        }
    }

    /// Answers a command that was held back, if it still is.
    pub(crate) fn release(&mut self, number: u64) {
        if let Some(answer) = self.held.remove(&number) {
            self.answer(number, &answer);
        }
    }

    fn answer(&mut self, number: u64, answer: &Held) {
        // Once the driver has given up, the mailboxes are others'; the slot is not.
        let length = if Instant::now() < answer.patience { answer.output.len() } else { INLINE };
        let output = answer.output.get(..length).unwrap_or(&answer.output);
        let delivery = match answer.slot.answer(&self.memory, output) {
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
            Order::Inject { opcode, fault } => self.faults.add(opcode, fault)?,
            Order::Clear => self.forget_faults(),
            Order::PortEvent { port, subtype } => {
                if self.unplugged {
                    return Err("it is unplugged".to_owned());
                }
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
            Order::Unplug => {
                // Before anything that is held back could be answered.
                self.reset();
                self.unplugged = true;
            }
            Order::Plug => {
                if !self.unplugged {
                    return Ok(Reply::Unchanged);
                }
                self.reset();
                self.unplugged = false;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::queue::tests::{Guest, QUEUE, REST};
    use crate::event_queue::tests::create_eq;
    use std::os::fd::OwnedFd;

    const QUERY_ISSI: u16 = 0x10a;
    const NOP: u16 = 0x80d;
    const BIT: u32 = 1 << Guest::SLOT;
    const DONE: u8 = 0;
    const WAITING: u8 = 1;

    /// A device whose driver has one command in its queue.
    struct Machine {
        device: Device,
        guest: Guest,
    }

    impl Machine {
        fn new(input: &[u8]) -> Self {
            let mut guest = Guest::new(input, 16);
            let mut device = Device::new(Description::infiniband(1));
            device.memory = std::mem::take(&mut guest.shared);
            device.bar.write(0x10, &QUEUE.to_be_bytes());
            Self { device, guest }
        }

        /// One whose command is a `NOP`.
        fn nop() -> Self {
            Self::new(&header(NOP))
        }

        fn again(&mut self, input: &[u8; 16]) -> Vec<Later> {
            self.guest.set(16, input);
            self.guest.set(4, &16_u32.to_be_bytes());
            self.guest.set(63, &[1]);
            self.device.doorbell(BIT)
        }

        fn order(&mut self, order: Order) {
            assert_eq!(self.device.handle(order), Reply::Done);
        }

        fn inject(&mut self, fault: Fault) {
            self.order(Order::Inject { opcode: NOP, fault });
        }

        fn log(&mut self) -> Vec<Option<u8>> {
            match self.device.handle(Order::Commands { since: 0 }) {
                Reply::Commands { commands, .. } => {
                    commands.iter().map(|command| command.status).collect()
                }
                other => panic!("{other:?}"),
            }
        }

        /// How many events a ring at `REST` has, in its first round.
        fn events(&self) -> usize {
            let entry = |index: u64| self.guest.memory.bytes::<64>(REST + index * 64);
            (0..64_u64).take_while(|index| entry(*index)[32..44] != [0; 12]).count()
        }
    }

    fn header(opcode: u16) -> [u8; 16] {
        let [high, low] = opcode.to_be_bytes();
        [high, low, 0, 5, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]
    }

    /// A device with a ring of events of this type.
    fn with_events(kind: u8) -> Machine {
        let mut input = create_eq(1 << kind, 6, 0, REST);
        input[..2].copy_from_slice(&0x301_u16.to_be_bytes());
        let mut machine = Machine::new(&input);
        let (reader, writer) = std::io::pipe().unwrap();
        std::mem::forget(reader);
        machine.device.interrupts.set(0, 1, vec![OwnedFd::from(writer).into()]);
        machine.device.doorbell(BIT);
        assert_eq!((machine.guest.status(), machine.guest.output()[11]), (DONE, 4));
        machine
    }

    #[test]
    fn commands_are_answered_and_logged() {
        let mut machine = Machine::new(&header(NOP));
        machine.device.doorbell(!BIT);
        assert_eq!(machine.guest.status(), WAITING, "none of the slots that were rung");
        machine.device.doorbell(BIT);
        assert_eq!(machine.guest.status(), DONE);
        let Reply::Commands { commands, next } =
            machine.device.handle(Order::Commands { since: 0 })
        else {
            panic!()
        };
        let [command] = commands.as_slice() else { panic!("{commands:?}") };
        assert_eq!((command.opcode, command.uid, command.op_mod, next), (NOP, 5, 0, 1));
        assert_eq!((command.arguments, command.status), ([1, 2, 3, 4, 5, 6, 7, 8], Some(0)));
        let remarks = machine.device.remarks.all();
        assert!(remarks.iter().all(|remark| remark.contains("not the device's")), "{remarks:?}");
        assert_eq!(remarks.len(), 31);
    }

    #[test]
    fn a_short_output_is_refused() {
        let mut machine = Machine::new(&header(QUERY_ISSI));
        machine.device.doorbell(BIT);
        assert_eq!(machine.guest.status(), DONE);
        assert_eq!(machine.guest.output()[0], 0x51);
        assert_eq!(machine.log(), [Some(0x51)]);
    }

    #[test]
    fn completions_are_announced_once_there_is_a_queue() {
        let mut machine = with_events(0x0a);
        assert_eq!(machine.events(), 0, "not that of the queue itself");
        machine.again(&header(NOP));
        assert_eq!(machine.events(), 1);
        let mut destroy = header(0x302);
        destroy[11] = 4;
        machine.again(&destroy);
        assert_eq!(machine.guest.output()[0], 0);
        machine.again(&header(NOP));
        assert_eq!((machine.guest.status(), machine.events()), (DONE, 1), "it is gone");
        assert!(machine.device.remarks.all().is_empty());
    }

    #[test]
    fn refused_on_order() {
        let mut machine = Machine::nop();
        machine.inject(Fault::Status { status: 6, syndrome: 0xbeef });
        machine.device.doorbell(BIT);
        assert_eq!(machine.guest.output()[..8], [6, 0, 0, 0, 0, 0, 0xbe, 0xef]);
        machine.order(Order::Clear);
        machine.again(&header(NOP));
        assert_eq!(machine.guest.output()[0], 0);
        assert_eq!(machine.log(), [Some(6), Some(0)]);
    }

    #[test]
    fn undelivered_on_order() {
        let mut machine = with_events(0x0a);
        machine.inject(Fault::Delivery(0x10));
        machine.again(&header(NOP));
        assert_eq!((machine.guest.status(), machine.events()), (0x20, 1));
        assert_eq!(machine.log(), [Some(0), None]);
    }

    #[test]
    fn answered_late() {
        let mut machine = with_events(0x0a);
        machine.inject(Fault::Delay(7));
        let later = machine.again(&header(NOP));
        let delay = Duration::from_millis(7);
        assert_eq!(later, [Later { number: 1, delay }]);
        assert_eq!((machine.guest.status(), machine.events()), (WAITING, 0));
        assert_eq!(machine.log(), [Some(0), None]);
        machine.device.release(1);
        machine.device.release(1);
        assert_eq!((machine.guest.status(), machine.events()), (DONE, 1));
        assert_eq!(machine.log(), [Some(0), Some(0)]);
    }

    #[test]
    fn answered_when_all_is_cleared() {
        let machine = || {
            let mut machine = with_events(0x0a);
            machine.inject(Fault::Silence);
            assert_eq!(machine.again(&header(NOP)), []);
            assert_eq!((machine.guest.status(), machine.events()), (WAITING, 0));
            assert_eq!(machine.log(), [Some(0), None]);
            machine
        };
        let mut cleared = machine();
        cleared.order(Order::Clear);
        assert_eq!((cleared.guest.status(), cleared.events()), (DONE, 1));
        assert_eq!(cleared.log(), [Some(0), Some(0)]);
        let mut other = machine();
        other.order(Order::Become(Box::new(Description::roce())));
        assert_eq!((other.guest.status(), other.events()), (DONE, 1));
        let mut reset = machine();
        reset.device.reset();
        reset.order(Order::Clear);
        assert_eq!((reset.guest.status(), reset.events()), (WAITING, 0), "it is forgotten");
    }

    #[test]
    fn mailboxes_are_not_written_once_the_driver_gave_up() {
        let held = || {
            let mut machine = Machine::nop();
            machine.guest = Guest::new(&header(QUERY_ISSI), 112);
            machine.device.memory = std::mem::take(&mut machine.guest.shared);
            let (opcode, fault) = (QUERY_ISSI, Fault::Silence);
            machine.order(Order::Inject { opcode, fault });
            machine.device.doorbell(BIT);
            machine
        };
        let mut patient = held();
        patient.order(Order::Clear);
        assert_eq!((patient.guest.status(), patient.guest.output_box()[95]), (DONE, 3));
        let mut gone = held();
        gone.device.held.values_mut().for_each(|held| held.patience = Instant::now());
        gone.order(Order::Clear);
        assert_eq!((gone.guest.status(), gone.guest.output_box()[95]), (DONE, 0));
    }

    #[test]
    fn port_events_need_a_queue() {
        let event = Order::PortEvent { port: 1, subtype: 6 };
        let mut machine = with_events(9);
        machine.order(event.clone());
        assert_eq!(machine.events(), 1);
        for (port, subtype) in [(0, 6), (2, 6), (1, 2)] {
            let reply = machine.device.handle(Order::PortEvent { port, subtype });
            assert!(matches!(reply, Reply::Error(_)), "{port} {subtype}");
        }
        assert_eq!(machine.events(), 1);
        assert!(matches!(Machine::nop().device.handle(event), Reply::Error(_)));
    }

    #[test]
    fn an_impossible_description_changes_nothing() {
        let mut machine = Machine::nop();
        let mut impossible = Description::infiniband(1);
        impossible.ports[0].state = 0;
        let reply = machine.device.handle(Order::Become(Box::new(impossible)));
        assert_eq!(reply, Reply::Error("ports[0].state: 0 is none of [1, 2, 3, 4]".to_owned()));
        assert_eq!(machine.device.handle(Order::Describe), {
            Reply::Description(Box::new(Description::infiniband(1)))
        });
    }

    #[test]
    fn hostile_slots_are_given_back() {
        let mut machine = Machine::nop();
        machine.guest.set(4, &u32::MAX.to_be_bytes());
        machine.device.doorbell(BIT);
        assert_eq!(machine.guest.status(), 7 << 1);
        machine.guest.set(56, &600_u32.to_be_bytes());
        machine.again(&header(NOP));
        assert_eq!(machine.guest.status(), 4 << 1, "nowhere to write the output");
        machine.device.memory.unmap_all();
        machine.again(&header(NOP));
        assert_eq!(machine.log(), [None]);
        assert_eq!(machine.device.remarks.all().len(), 3, "{:?}", machine.device.remarks);
    }
}
