//! The command queue: slots in the guest's memory, and chains of mailboxes for data that is longer than a
//! slot. The guest is not trusted: lengths and chains may have any value.

use crate::bits::{Field, at};
use crate::memory::{Memory, Outside};

/// How many slots there are, and the bytes of each, as powers of two.
pub(crate) const LOG_SLOTS: u32 = 5;
pub(crate) const LOG_STRIDE: u32 = 6;
const STRIDE: usize = 1 << LOG_STRIDE;

// A slot.
const TYPE: Field = at(0, 0, 8);
const INPUT_LENGTH: Field = at(4, 0, 32);
const INPUT_MAILBOX: Field = at(8, 0, 64);
const INPUT: std::ops::Range<usize> = 16..32;
const OUTPUT: u64 = 32;
const OUTPUT_MAILBOX: Field = at(48, 0, 64);
const OUTPUT_LENGTH: Field = at(56, 0, 32);
const STATUS: u64 = 63;
const OWNED_BY_DEVICE: Field = at(63, 7, 1);

/// The type of a slot that holds a command.
const COMMAND: u64 = 7;
/// Bytes of the input, and of the output, that are in the slot itself.
pub(crate) const INLINE: usize = 16;

/// A mailbox: data, and where the next one is.
const BLOCK: usize = 512;
const NEXT: u64 = 560;
/// Mailboxes are aligned to this.
const ALIGNMENT: u64 = 1024;

/// The longest input or output, bytes: what a user may give, 65535, and more.
const LONGEST: u64 = 1 << 17;

/// Why a command did not arrive, or its answer did not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Undelivered {
    OutputPointer,
    InputPointer,
    InputLength,
    OutputLength,
    Descriptor,
}

impl Undelivered {
    /// The delivery status that reports it.
    pub(crate) fn status(self) -> u8 {
        match self {
            Self::OutputPointer => 4,
            Self::InputPointer => 5,
            Self::InputLength => 7,
            Self::OutputLength => 8,
            Self::Descriptor => 0x10,
        }
    }
}

/// A slot as the driver filled it.
#[derive(Debug)]
pub(crate) struct Slot {
    /// Its number.
    pub(crate) number: u8,
    address: u64,
    bytes: [u8; STRIDE],
}

impl Slot {
    /// Reads a slot of the queue at this address.
    pub(crate) fn read(memory: &Memory, queue: u64, number: u8) -> Result<Self, Outside> {
        let address = queue.wrapping_add(u64::from(number) << LOG_STRIDE);
        let mut bytes = [0; STRIDE];
        memory.read(address, &mut bytes)?;
        Ok(Self { number, address, bytes })
    }

    /// Whether the driver has given it to the device.
    pub(crate) fn is_ours(&self) -> bool {
        OWNED_BY_DEVICE.get(&self.bytes) == 1
    }

    /// How long the output may be.
    pub(crate) fn output_len(&self) -> Result<usize, Undelivered> {
        length(OUTPUT_LENGTH.get(&self.bytes)).ok_or(Undelivered::OutputLength)
    }

    /// The whole input.
    pub(crate) fn input(&self, memory: &Memory) -> Result<Vec<u8>, Undelivered> {
        if TYPE.get(&self.bytes) != COMMAND {
            return Err(Undelivered::Descriptor);
        }
        let length = length(INPUT_LENGTH.get(&self.bytes)).ok_or(Undelivered::InputLength)?;
        let mut input = self.bytes.get(INPUT).unwrap_or_default().to_vec();
        input.resize(length, 0);
        let (_, rest) = input.split_at_mut(INLINE.min(length));
        let mut mailboxes = Mailboxes { memory, next: INPUT_MAILBOX.get(&self.bytes) };
        for block in rest.chunks_mut(BLOCK) {
            let address = mailboxes.next().ok_or(Undelivered::InputPointer)?;
            memory.read(address, block).map_err(|_| Undelivered::InputPointer)?;
        }
        Ok(input)
    }

    /// Writes the output where the driver wants it, without giving the slot back.
    pub(crate) fn answer(&self, memory: &Memory, output: &[u8]) -> Result<(), Undelivered> {
        let lost = |_| Undelivered::OutputPointer;
        let (inline, rest) = output.split_at(INLINE.min(output.len()));
        let mut mailboxes = Mailboxes { memory, next: OUTPUT_MAILBOX.get(&self.bytes) };
        for block in rest.chunks(BLOCK) {
            let address = mailboxes.next().ok_or(Undelivered::OutputPointer)?;
            memory.write(address, block).map_err(lost)?;
        }
        memory.write(self.address.wrapping_add(OUTPUT), inline).map_err(lost)
    }

    /// Gives the slot back to the driver with a delivery status, 0 for success.
    pub(crate) fn give_back(&self, memory: &Memory, delivery: u8) -> Result<(), Outside> {
        memory.publish(self.address.wrapping_add(STATUS), delivery << 1)
    }
}

fn length(value: u64) -> Option<usize> {
    if value > LONGEST { None } else { usize::try_from(value).ok() }
}

/// A chain of mailboxes. Nothing ends it but who walks it: it may well be a circle.
struct Mailboxes<'a> {
    memory: &'a Memory,
    /// Address of the next one as the last one has it.
    next: u64,
}

impl Mailboxes<'_> {
    /// Address of the next one; `None` if there is none, or none in memory.
    fn next(&mut self) -> Option<u64> {
        let address = self.next & !(ALIGNMENT - 1);
        if address == 0 {
            return None;
        }
        let mut next = [0; 8];
        self.memory.read(address.checked_add(NEXT)?, &mut next).ok()?;
        self.next = u64::from_be_bytes(next);
        Some(address)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) const QUEUE: u64 = 0x1_0000;
    /// Memory after all mailboxes, for other uses.
    pub(crate) const REST: u64 = 0x1_7000;
    const INPUT_BOXES: u64 = 0x1_1000;
    const OUTPUT_BOXES: u64 = 0x1_4000;

    /// Memory with a command in slot 3. Mailboxes are chained in a row, each chain with as many as
    /// are given.
    pub(crate) struct Guest {
        pub(crate) memory: Memory,
        /// The same memory, for a device.
        pub(crate) shared: Memory,
    }

    impl Guest {
        pub(crate) const SLOT: u8 = 3;
        const ADDRESS: u64 = QUEUE + 3 * 64;

        pub(crate) fn new(input: &[u8], output_len: u32) -> Self {
            let [memory, shared] = Memory::zeroed_twice(QUEUE, 0x8000);
            let guest = Self { memory, shared };
            guest.memory.write(Self::ADDRESS, &[7]).unwrap();
            guest.set(4, &u32::try_from(input.len()).unwrap().to_be_bytes());
            guest.set(56, &output_len.to_be_bytes());
            let (inline, rest) = input.split_at(16.min(input.len()));
            guest.set(16, inline);
            guest.set(63, &[1]);
            guest.chain(8, INPUT_BOXES, rest.len());
            for (block, address) in rest.chunks(512).zip((INPUT_BOXES..).step_by(1024)) {
                guest.memory.write(address, block).unwrap();
            }
            guest.chain(48, OUTPUT_BOXES, usize::try_from(output_len).unwrap().saturating_sub(16));
            guest
        }

        fn chain(&self, pointer: u64, first: u64, length: usize) {
            let count = length.div_ceil(512) as u64;
            if count > 0 {
                self.set(pointer, &first.to_be_bytes());
            }
            for number in 1..count {
                let link = first + (number - 1) * 1024 + 560;
                // Low bits that are none of the address.
                let next = (first + number * 1024) | 0x3;
                self.memory.write(link, &next.to_be_bytes()).unwrap();
            }
        }

        pub(crate) fn set(&self, offset: u64, bytes: &[u8]) {
            self.memory.write(Self::ADDRESS + offset, bytes).unwrap();
        }

        /// The part of the output that is in the first mailbox.
        pub(crate) fn output_box(&self) -> [u8; 512] {
            self.memory.bytes(OUTPUT_BOXES)
        }

        fn slot(&self) -> Slot {
            Slot::read(&self.memory, QUEUE, Self::SLOT).unwrap()
        }

        fn input(&self) -> Result<Vec<u8>, Undelivered> {
            self.slot().input(&self.memory)
        }

        /// The status byte.
        pub(crate) fn status(&self) -> u8 {
            self.memory.bytes::<1>(Self::ADDRESS + 63)[0]
        }

        /// The part of the output that is in the slot.
        pub(crate) fn output(&self) -> [u8; 16] {
            self.memory.bytes(Self::ADDRESS + 32)
        }
    }

    fn counted(length: usize) -> Vec<u8> {
        (0..length).map(|index| u8::try_from(index % 251).unwrap()).collect()
    }

    #[test]
    fn input_is_gathered() {
        for length in [0, 5, 16, 17, 528, 529, 1040, 1300] {
            let input = counted(length);
            assert_eq!(Guest::new(&input, 16).input().unwrap(), input, "{length}");
        }
    }

    #[test]
    fn output_is_scattered() {
        for length in [0, 5, 16, 17, 528, 529, 1300] {
            let guest = Guest::new(&[0; 16], u32::try_from(length).unwrap());
            let output = counted(length);
            guest.slot().answer(&guest.memory, &output).unwrap();
            let mut written = guest.output().to_vec();
            for number in 0..3 {
                let address = OUTPUT_BOXES + number * 1024;
                written.extend(guest.memory.bytes::<512>(address));
                // The links are the driver's.
                assert_eq!(guest.memory.bytes::<1>(address + 512), [0]);
            }
            assert_eq!(written[..length], output);
            assert!(written[length..].iter().all(|byte| *byte == 0), "{length}");
        }
    }

    #[test]
    fn a_slot_is_given_back_once_all_is_written() {
        let guest = Guest::new(&[0; 16], 16);
        let slot = guest.slot();
        assert!(slot.is_ours());
        assert_eq!(slot.output_len(), Ok(16));
        slot.give_back(&guest.memory, 5).unwrap();
        assert_eq!(guest.status(), 10);
        assert!(!guest.slot().is_ours());
    }

    #[test]
    fn a_short_chain_is_refused() {
        let guest = Guest::new(&counted(600), 600);
        guest.set(4, &2000_u32.to_be_bytes());
        assert_eq!(guest.input(), Err(Undelivered::InputPointer));
        let too_much = guest.slot().answer(&guest.memory, &[0; 2000]);
        assert_eq!(too_much, Err(Undelivered::OutputPointer));
    }

    #[test]
    fn a_chain_out_of_memory_is_refused() {
        let guest = Guest::new(&counted(600), 600);
        guest.memory.write(INPUT_BOXES + 560, &u64::MAX.to_be_bytes()).unwrap();
        guest.set(48, &0xdead_0000_u64.to_be_bytes());
        assert_eq!(guest.input(), Err(Undelivered::InputPointer));
        let lost = guest.slot().answer(&guest.memory, &[0; 600]);
        assert_eq!(lost, Err(Undelivered::OutputPointer));
        assert_eq!(Slot::read(&guest.memory, 0x7000, 0).err(), {
            guest.memory.read(0x7000, &mut [0; 64]).err()
        });
        assert!(Slot::read(&guest.memory, u64::MAX, 31).is_err());
    }

    #[test]
    fn a_circle_ends_with_the_length() {
        let guest = Guest::new(&counted(600), 16);
        guest.memory.write(INPUT_BOXES + 1024 + 560, &INPUT_BOXES.to_be_bytes()).unwrap();
        guest.set(4, &(1_u32 << 17).to_be_bytes());
        assert_eq!(guest.input().unwrap().len(), 1 << 17);
    }

    #[test]
    fn absurd_lengths_are_refused() {
        let guest = Guest::new(&[0; 16], 16);
        guest.set(4, &u32::MAX.to_be_bytes());
        guest.set(56, &u32::MAX.to_be_bytes());
        assert_eq!(guest.input(), Err(Undelivered::InputLength));
        assert_eq!(guest.slot().output_len(), Err(Undelivered::OutputLength));
    }

    #[test]
    fn another_type_is_no_command() {
        let guest = Guest::new(&[0; 16], 16);
        guest.set(0, &[6]);
        assert_eq!(guest.input(), Err(Undelivered::Descriptor));
    }
}
