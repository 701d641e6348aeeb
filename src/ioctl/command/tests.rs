//! The encoder against an independent reading of its bytes, written from the kernel's rules and
//! not from the encoder's code.

use proptest::prelude::*;
use std::os::fd::AsFd;
use uverbs_uapi::device as abi;
use zerocopy::IntoBytes;

use super::*;

/// A command's bytes as the kernel would copy them.
fn bytes<const N: usize>(command: &Command<'_, N>) -> Vec<u8> {
    let mut bytes = command.header().as_bytes().to_vec();
    bytes.extend_from_slice(command.attributes().as_bytes());
    bytes
}

/// One attribute, read from its 16 bytes.
#[derive(Debug, PartialEq)]
struct Raw {
    id: u16,
    len: u16,
    flags: u16,
    elem: u8,
    reserved: u8,
    data: [u8; 8],
}

fn decode(bytes: &[u8]) -> (Vec<u16>, Vec<Raw>) {
    let short = |bytes: &[u8], at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
    let header = (0..4).map(|field| short(bytes, field * 2)).collect();
    let attributes = bytes[24..]
        .chunks(16)
        .map(|raw| Raw {
            id: short(raw, 0),
            len: short(raw, 2),
            flags: short(raw, 4),
            elem: raw[6],
            reserved: raw[7],
            data: raw[8..].try_into().unwrap(),
        })
        .collect();
    (header, attributes)
}

fn address(slice: &[u8]) -> [u8; 8] {
    (slice.as_ptr() as u64).to_ne_bytes()
}

#[test]
fn query_gid_entry_byte_for_byte() {
    let mut entry = [0u8; 32];
    let pointer = address(&entry);
    let mut command = Command::<4>::new(abi::object::DEVICE, abi::method::QUERY_GID_ENTRY);
    command.constant(0, 1).constant(1, 3).flags(2, 0).output(3, &mut entry);
    let raw = bytes(&command);
    assert_eq!(raw.len(), 88);
    let (header, attributes) = decode(&raw);
    assert_eq!(header, [88, 0, 6, 4]);
    let raw = |id, len, data| Raw { id, len, flags: 1, elem: 0, reserved: 0, data };
    assert_eq!(
        attributes,
        [
            raw(0, 8, 1u64.to_ne_bytes()),
            raw(1, 8, 3u64.to_ne_bytes()),
            raw(2, 4, [0; 8]),
            raw(3, 32, pointer),
        ]
    );
}

#[test]
fn short_inputs_stand_inline_and_long_ones_do_not() {
    let payload: Vec<u8> = (1..=9).collect();
    for length in 0..=9 {
        let mut command = Command::<1>::new(0, 0);
        command.input(5, &payload[..length]);
        let (_, attributes) = decode(&bytes(&command));
        assert_eq!(usize::from(attributes[0].len), length);
        if length <= 8 {
            let mut expected = [0u8; 8];
            expected[..length].copy_from_slice(&payload[..length]);
            assert_eq!(attributes[0].data, expected, "lowest address first");
        } else {
            assert_eq!(attributes[0].data, address(&payload));
        }
    }
}

#[test]
fn outputs_go_by_address_even_if_short() {
    let mut answer = 0u32;
    let pointer = address(answer.as_bytes());
    let mut command = Command::<1>::new(0, 0);
    command.output(1, answer.as_mut_bytes());
    let (_, attributes) = decode(&bytes(&command));
    assert_eq!((attributes[0].len, attributes[0].data), (4, pointer));
}

#[test]
fn flags_take_four_bytes_if_they_fit() {
    let mut command = Command::<2>::new(0, 0);
    command.flags(0, u64::from(u32::MAX)).flags(1, 1 << 32);
    let (_, attributes) = decode(&bytes(&command));
    assert_eq!((attributes[0].len, attributes[1].len), (4, 8));
    assert_eq!(attributes[0].data[..4], [0xff; 4]);
    assert_eq!(attributes[1].data, (1u64 << 32).to_ne_bytes());
}

#[test]
fn objects_fds_and_enumerations() {
    let null = std::fs::File::open("/dev/null").unwrap();
    let number = u64::try_from(null.as_fd().as_raw_fd()).unwrap();
    let ids = [7u32, 8, 9];
    let mut command = Command::<8>::new(0, 0);
    command
        .object(0, 42)
        .new_object(1)
        .fd(2, null.as_fd())
        .new_fd(3)
        .objects(4, &ids[..2])
        .objects(5, &ids)
        .enumeration(6, 3, &[1, 2, 3, 4])
        .optional();
    let (_, attributes) = decode(&bytes(&command));
    assert_eq!((attributes[0].len, attributes[0].data), (0, 42u64.to_ne_bytes()));
    assert_eq!((attributes[1].len, attributes[1].data), (0, [0; 8]));
    assert_eq!((attributes[2].len, attributes[2].data), (0, number.to_ne_bytes()));
    assert_eq!((attributes[3].len, attributes[3].data), (0, [0xff; 8]));
    assert_eq!((attributes[4].len, &attributes[4].data[4..]), (8, &8u32.to_ne_bytes()[..]));
    assert_eq!((attributes[5].len, attributes[5].data), (12, address(ids.as_bytes())));
    assert_eq!((attributes[6].len, attributes[6].elem, attributes[6].flags), (4, 3, 0));
    assert_eq!(attributes[5].flags, 1, "optional is about the last attribute only");
}

#[test]
fn the_driver_s_part() {
    let mut answer = [0u8; 256];
    let request = [0u8; 16];
    let mut command = Command::<2>::new(0, 3);
    command.driver_input(&request).driver_output(&mut answer);
    let (_, attributes) = decode(&bytes(&command));
    assert_eq!((attributes[0].id, attributes[0].len), (0x1000, 16));
    assert_eq!((attributes[1].id, attributes[1].len), (0x1001, 256));
}

#[test]
fn a_payload_beyond_16_bits_is_a_mistake() {
    let mut long = vec![0u8; MAX_PAYLOAD + 1];
    let mut command = Command::<2>::new(0, 0);
    command.output(3, &mut long).constant(4, 0);
    assert_eq!(
        command.check(),
        Err(EncodeError::PayloadTooLong { attr_id: 3, len: MAX_PAYLOAD + 1 })
    );
    assert!(command.attributes().is_empty(), "nothing follows a mistake");
    let mut command = Command::<1>::new(0, 0);
    command.output(3, &mut long[..MAX_PAYLOAD]);
    assert_eq!(command.check(), Ok(()));
}

#[test]
fn more_attributes_than_room_is_a_mistake() {
    let mut command = Command::<2>::new(0, 0);
    command.constant(0, 0).constant(1, 0).constant(2, 0).constant(3, 0);
    assert_eq!(command.check(), Err(EncodeError::TooManyAttributes { attr_id: 2, capacity: 2 }));
}

#[test]
fn a_full_command_fills_no_more_than_a_page() {
    let mut command = Command::<MAX_ATTRIBUTES>::new(0, 0);
    for id in 0..MAX_ATTRIBUTES {
        command.constant(u16::try_from(id).unwrap(), 0);
    }
    assert_eq!(command.check(), Ok(()));
    assert_eq!(command.header().length, 24 + 16 * 254);
    assert!(usize::from(command.header().length) <= 4096);
    command.constant(254, 0);
    assert!(command.check().is_err());
}

/// A kernel that makes objects: it writes ids and fds into the request, and output into memory.
#[cfg(feature = "simulated-kernel")]
mod sent {
    use super::*;
    use crate::simulated::{SimulatedKernel, UserMemory};

    /// Writes `data` into every attribute of length 0, and 7 to the memory of the others.
    #[derive(Debug)]
    struct Makes(u64);

    impl SimulatedKernel for Makes {
        fn ioctl(&self, request: &mut [u8], memory: &UserMemory<'_>) -> Result<(), Errno> {
            assert_eq!(request[16..20], 14u32.to_ne_bytes(), "the driver id");
            for attribute in request[24..].chunks_exact_mut(16) {
                if attribute[2..4] == [0, 0] {
                    attribute[8..].copy_from_slice(&self.0.to_ne_bytes());
                } else {
                    let address = u64::from_ne_bytes(attribute[8..].try_into().unwrap());
                    memory.write(address, &[7])?;
                    let flags = u16::from_ne_bytes([attribute[4], attribute[5]]) | 2;
                    attribute[4..6].copy_from_slice(&flags.to_ne_bytes());
                }
            }
            Ok(())
        }
    }

    fn kernel(data: u64) -> Kernel {
        let null = std::fs::File::open("/dev/null").unwrap();
        Kernel::Simulated(Box::new(Makes(data)), null.into())
    }

    #[test]
    fn valid_output_and_new_ids_are_readable() {
        let (mut first, mut second) = ([0u8; 1], [0u8; 1]);
        let mut command = Command::<3>::new(abi::object::DEVICE, abi::method::QUERY_PORT);
        command.new_object(0).output(1, &mut first);
        assert!(!command.is_output_valid(1), "nothing is valid before it is sent");
        command.submit(&kernel(42), 14).unwrap();
        assert_eq!(command.object_id(0), Some(42));
        assert!(command.is_output_valid(1) && !command.is_output_valid(0));
        assert!(!command.is_output_valid(9) && command.object_id(9).is_none());
        assert_eq!(first, [7]);
        let mut command = Command::<1>::new(abi::object::DEVICE, abi::method::QUERY_PORT);
        command.output(1, &mut second);
        assert_eq!(second, [0], "a command that is not sent writes nothing");
    }

    #[test]
    fn a_new_fd_s_number_is_readable() {
        let mut command = Command::<1>::new(abi::object::DEVICE, abi::method::QUERY_PORT);
        command.new_fd(0);
        command.submit(&kernel(5), 14).unwrap();
        assert_eq!(command.attribute(0).unwrap().data, 5);
    }

    #[test]
    fn a_command_is_sent_once() {
        let mut command = Command::<1>::new(abi::object::DEVICE, abi::method::QUERY_PORT);
        command.new_object(0);
        command.submit(&kernel(5), 14).unwrap();
        assert_eq!(command.submit(&kernel(5), 14), Err(SubmitError::Encode(EncodeError::Sent)));
    }

    /// Where the kernel writes, nothing but memory for it is sent.
    #[test]
    fn an_output_that_is_not_memory_is_not_sent() {
        let (device, resp) = (abi::object::DEVICE, abi::query_port::RESP);
        let long = [0u8; 48];
        let refused = |command: &mut Command<'_, 2>| {
            let refusal = command.submit(&kernel(5), 14);
            assert_eq!(refusal, Err(SubmitError::Encode(EncodeError::Undescribed)));
        };
        refused(Command::new(device, abi::method::QUERY_PORT).constant(resp, 0xdead_beef));
        refused(Command::new(device, abi::method::QUERY_PORT).input(resp, &long));
        refused(Command::new(device, abi::method::QUERY_PORT).object(resp, 7));
        refused(
            Command::new(device, abi::method::GET_CONTEXT).driver_input(&long).constant(0x1001, 1),
        );
        // A method whose outputs are not known, unless it has no attribute.
        refused(Command::new(device, 0x1000).constant(0, 1));
        refused(Command::new(abi::object::ASYNC_EVENT, 0).new_fd(0));
        assert_eq!(Command::<2>::new(device, 0x0fff).submit(&kernel(5), 14), Ok(()));
    }

    /// A new file descriptor has an owner, or is not asked for.
    #[test]
    fn a_file_is_made_for_who_takes_it() {
        let ask = || Command::<1>::new(abi::object::ASYNC_EVENT, 0);
        let mut command = ask();
        command.new_fd(0);
        assert!(command.submit_for_fd(&kernel(16), 14).unwrap().is_some());
        let mut query = Command::<1>::new(abi::object::DEVICE, abi::method::QUERY_PORT);
        let refusal = query.submit_for_fd(&kernel(16), 14);
        assert_eq!(refusal.unwrap_err(), SubmitError::Encode(EncodeError::Undescribed));
    }

    #[test]
    fn a_mistake_never_reaches_the_kernel() {
        let long = vec![0u8; MAX_PAYLOAD + 1];
        let mut command = Command::<1>::new(16, 0);
        command.input(0, &long);
        let refused =
            SubmitError::Encode(EncodeError::PayloadTooLong { attr_id: 0, len: MAX_PAYLOAD + 1 });
        assert_eq!(command.submit(&kernel(0), 15), Err(refused), "15 would have failed there");
    }
}

/// What a test puts into a command.
#[derive(Clone, Debug)]
enum Put {
    Constant(u64),
    Flags(u64),
    Input(Vec<u8>),
    Output(usize),
    Enumeration(u8, Vec<u8>),
    Object(u32),
    NewObject,
    NewFd,
    Objects(Vec<u32>),
}

fn put() -> impl Strategy<Value = Put> {
    prop_oneof![
        any::<u64>().prop_map(Put::Constant),
        any::<u64>().prop_map(Put::Flags),
        proptest::collection::vec(any::<u8>(), 0..40).prop_map(Put::Input),
        (0usize..70_000).prop_map(Put::Output),
        (any::<u8>(), proptest::collection::vec(any::<u8>(), 0..20))
            .prop_map(|(variant, bytes)| Put::Enumeration(variant, bytes)),
        any::<u32>().prop_map(Put::Object),
        Just(Put::NewObject),
        Just(Put::NewFd),
        proptest::collection::vec(any::<u32>(), 0..6).prop_map(Put::Objects),
    ]
}

proptest! {
    /// Whatever is put in is what an independent reader finds, until the first mistake.
    #[test]
    fn what_goes_in_is_what_is_sent(
        object in any::<u16>(),
        method in any::<u16>(),
        puts in proptest::collection::vec((any::<u16>(), any::<bool>(), put()), 0..12),
    ) {
        const ROOM: usize = 10;
        let mut memory: Vec<Vec<u8>> = puts
            .iter()
            .map(|(_, _, put)| vec![0; if let Put::Output(length) = put { *length } else { 0 }])
            .collect();
        let mut expected = Vec::new();
        let mut mistake = false;
        let mut command = Command::<ROOM>::new(object, method);
        for ((id, optional, put), memory) in puts.iter().zip(&mut memory) {
            let inline = |bytes: &[u8]| {
                let mut data = [0u8; 8];
                data[..bytes.len()].copy_from_slice(bytes);
                data
            };
            let by_rule = |bytes: &[u8]| if bytes.len() > 8 { address(bytes) } else { inline(bytes) };
            let (len, elem, data) = match put {
                Put::Constant(value) => { command.constant(*id, *value); (8, 0, value.to_ne_bytes()) }
                Put::Flags(value) => {
                    command.flags(*id, *value);
                    match u32::try_from(*value) {
                        Ok(short) => (4, 0, inline(&short.to_ne_bytes())),
                        Err(_) => (8, 0, value.to_ne_bytes()),
                    }
                }
                Put::Input(bytes) => { command.input(*id, bytes); (bytes.len(), 0, by_rule(bytes)) }
                Put::Output(length) => {
                    let pointer = address(memory);
                    command.output(*id, memory);
                    (*length, 0, pointer)
                }
                Put::Enumeration(variant, bytes) => {
                    command.enumeration(*id, *variant, bytes);
                    (bytes.len(), *variant, by_rule(bytes))
                }
                Put::Object(number) => { command.object(*id, *number); (0, 0, u64::from(*number).to_ne_bytes()) }
                Put::NewObject => { command.new_object(*id); (0, 0, [0; 8]) }
                Put::NewFd => { command.new_fd(*id); (0, 0, [0xff; 8]) }
                Put::Objects(ids) => {
                    command.objects(*id, ids);
                    (ids.len() * 4, 0, by_rule(ids.as_bytes()))
                }
            };
            mistake |= len > 0xffff || expected.len() == ROOM;
            if mistake {
                break;
            }
            if *optional {
                command.optional();
            }
            expected.push(Raw {
                id: *id,
                len: u16::try_from(len).unwrap(),
                flags: u16::from(!*optional),
                elem,
                reserved: 0,
                data,
            });
        }
        prop_assert_eq!(command.check().is_err(), mistake);
        let raw = bytes(&command);
        let (header, attributes) = decode(&raw);
        prop_assert_eq!(header, vec![
            u16::try_from(raw.len()).unwrap(), object, method, u16::try_from(expected.len()).unwrap(),
        ]);
        prop_assert_eq!(&raw[8..24], &[0u8; 16]);
        prop_assert_eq!(attributes, expected);
    }
}
