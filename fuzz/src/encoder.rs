//! The encoder: whatever is put together, the kernel's framework finds nothing wrong with its form,
//! and what was put in is what comes out.

use std::os::fd::{AsFd, AsRawFd};

use arbitrary::{Arbitrary, Unstructured};
use uverbs::error::Cause;
use uverbs::gid::GidEntry;
use uverbs::ioctl::{Command, EncodeError, MAX_ATTRIBUTES, MAX_PAYLOAD};
use uverbs::port::PortAttributes;
use uverbs::uapi::device::{self as abi, QueryPortResponse};
use uverbs::uapi::ioctl::{ATTR_UHW_IN, ATTR_UHW_OUT, RDMA_VERBS_IOCTL};
use uverbs_kernel_model::memory::Memory;
use uverbs_kernel_model::spec::{self, Found, Kind};
use uverbs_kernel_model::{self as model, Device, File, Outcome};
use zerocopy::{FromBytes, IntoBytes};

use crate::guarded::Guarded;
use crate::model::{ATTRIBUTE, BASE, Described, HEADER, ModelKernel, framework};

#[derive(Arbitrary, Debug)]
struct Input {
    device: Described,
    what: What,
}

#[derive(Arbitrary, Debug)]
enum What {
    /// Any attributes of any method.
    Anything { room: u8, object: u16, method: u16, puts: Vec<(u16, bool, Put)> },
    /// The attributes of a known method.
    ByTheRules { method: u8, choices: Vec<u8>, value: u64, stranger: Option<u16> },
    /// The library's own requests.
    Queries(Vec<Query>),
    /// Attributes as the kernel reads them, each with its payload inline.
    Bytes(Vec<[u8; ATTRIBUTE]>),
}

#[derive(Arbitrary, Clone, Debug)]
enum Put {
    Constant(u64),
    Flags(u64),
    Input(Vec<u8>),
    Value(u64),
    Long(u32),
    Output(u32),
    Enumeration(u8, Vec<u8>),
    Object(u32),
    NewObject,
    Fd,
    NewFd,
    Objects(Vec<u32>),
    DriverInput(Vec<u8>),
    DriverOutput(u16),
}

#[derive(Arbitrary, Debug)]
enum Query {
    Gid { port: u8, index: u8 },
    GidFar { port: u32, index: u32 },
    Table,
    TableInto { room: u16 },
    Port(u8),
    PortSpeed(u8),
    Device,
    Events,
    Mlx5Port(u8),
}

/// What has to be in an attribute's 16 bytes, and in the memory at its address.
#[derive(Debug, PartialEq)]
struct Expected {
    id: u16,
    len: u16,
    flags: u16,
    elem: u8,
    data: [u8; 8],
}

/// Runs the target.
///
/// # Panics
/// If a promise is broken.
pub fn run(data: &[u8]) {
    let mut data = Unstructured::new(data);
    let Ok(input) = Input::arbitrary(&mut data) else { return };
    let device = input.device.device();
    match input.what {
        What::Anything { room, object, method, puts } => match room % 6 {
            0 => drop(compose::<0>(&device, object, method, &puts)),
            1 => drop(compose::<1>(&device, object, method, &puts)),
            2 => drop(compose::<2>(&device, object, method, &puts)),
            3 => drop(compose::<4>(&device, object, method, &puts)),
            4 => drop(compose::<10>(&device, object, method, &puts)),
            _ => drop(compose::<MAX_ATTRIBUTES>(&device, object, method, &puts)),
        },
        What::ByTheRules { method, choices, value, stranger } => {
            by_the_rules(&device, method, &choices, value, stranger);
        }
        What::Queries(queries) => ask(&device, &queries),
        What::Bytes(attributes) => decode_and_encode(&attributes),
    }
}

/// Attributes are read from bytes and put together again: the bytes are the same.
fn decode_and_encode(attributes: &[[u8; ATTRIBUTE]]) {
    let bytes: Vec<[u8; ATTRIBUTE]> = attributes
        .iter()
        .take(16)
        .map(|raw| {
            let mut raw = *raw;
            // What the kernel takes: at most eight bytes inline, zeros after them, one known flag.
            let len = raw[2] % 9;
            raw[2..4].copy_from_slice(&u16::from(len).to_ne_bytes());
            let flags = u16::from(raw[4] & 1);
            raw[4..6].copy_from_slice(&flags.to_ne_bytes());
            raw[7] = 0;
            raw[8 + usize::from(len)..].fill(0);
            raw
        })
        .collect();
    let read: Vec<Expected> = bytes.iter().map(|raw| decode(raw)).collect();
    let mut command = Command::<16>::new(0, 0);
    for Expected { id, len, flags, elem, data } in &read {
        command.enumeration(*id, *elem, &data[..usize::from(*len)]);
        if *flags == 0 {
            command.optional();
        }
    }
    assert_eq!(command.check(), Ok(()));
    assert_eq!(command.attributes().as_bytes(), bytes.as_flattened());
}

/// Puts a method's attributes together, each as its specification wants it.
fn by_the_rules(device: &Device, which: u8, choices: &[u8], value: u64, stranger: Option<u16>) {
    use uverbs::uapi::device::{method as m, object as o};
    use uverbs::uapi::mlx5;
    const METHODS: [(u16, u16); 12] = [
        (o::DEVICE, m::INVOKE_WRITE),
        (o::DEVICE, m::INFO_HANDLES),
        (o::DEVICE, m::QUERY_PORT),
        (o::DEVICE, m::GET_CONTEXT),
        (o::DEVICE, m::QUERY_CONTEXT),
        (o::DEVICE, m::QUERY_GID_TABLE),
        (o::DEVICE, m::QUERY_GID_ENTRY),
        (o::DEVICE, m::QUERY_PORT_SPEED),
        (o::DEVICE, m::QUERY_COMP_CNTR_CAPS),
        (o::ASYNC_EVENT, 0),
        (o::DEVICE, mlx5::device_method::QUERY_PORT),
        (mlx5::object::DEVX, mlx5::devx_method::OTHER),
    ];
    let (object, method) = METHODS[usize::from(which) % METHODS.len()];
    let Found::Method(found) = spec::find(device, object, method) else { return };
    let mut choices = choices.iter().copied();
    let mut puts = Vec::new();
    for spec in &found.attributes {
        let choice = choices.next().unwrap_or(0);
        if !spec.mandatory && choice & 1 != 0 {
            continue;
        }
        let more = usize::from(choices.next().unwrap_or(0));
        let put = match spec.kind {
            Kind::In { min: 8, max: 8, .. } => {
                Put::Constant(if choice & 4 == 0 { 1 } else { value })
            }
            Kind::In { min: 4, max: 8, .. } => Put::Flags(if choice & 4 == 0 { 0 } else { value }),
            Kind::In { min: 4, max: 4, .. } => Put::Input(vec![choice; 4]),
            Kind::In { min, .. } | Kind::CopiedIn { min } if spec.id == ATTR_UHW_IN => {
                Put::DriverInput(vec![choice; min + more])
            }
            Kind::In { min, .. } | Kind::CopiedIn { min } => Put::Input(vec![choice; min + more]),
            Kind::Out { min, max, zero_trailing } => {
                let most = if zero_trailing { usize::MAX } else { max };
                let len = (min + if choice & 8 == 0 { more } else { more * 200 }).min(most);
                if spec.id == ATTR_UHW_OUT {
                    Put::DriverOutput(u16::try_from(len).unwrap_or(u16::MAX))
                } else {
                    Put::Output(u32::try_from(len).unwrap_or(0))
                }
            }
            Kind::NewFd => Put::NewFd,
        };
        puts.push((spec.id, choice & 2 != 0, put));
    }
    // What the kernel does not know it skips, if it may.
    if let Some(id) = stranger.filter(|id| found.attributes.iter().all(|spec| spec.id != *id)) {
        puts.push((id, true, Put::Constant(value)));
    }
    let request = compose::<12>(device, object, method, &puts);
    if let Some(request) = request {
        assert_eq!(framework(device, &request), Ok(()), "composed by the rules: {puts:?}");
    }
}

/// Puts a command together, compares its bytes with what they have to be, and gives it to the model.
/// The request's bytes, unless the encoder refused it.
#[expect(clippy::too_many_lines, reason = "a list of attributes")]
fn compose<const N: usize>(
    device: &Device,
    object: u16,
    method: u16,
    puts: &[(u16, bool, Put)],
) -> Option<Vec<u8>> {
    let null = rustix::fs::open("/dev/null", rustix::fs::OFlags::RDONLY, rustix::fs::Mode::empty());
    let null = null.expect("/dev/null is there");
    let mut inputs: Vec<Vec<u8>> = Vec::new();
    let mut outputs: Vec<Vec<u8>> = Vec::new();
    let mut ids: Vec<Vec<u32>> = Vec::new();
    for (_, _, put) in puts {
        let (mut input, mut output, mut objects) = (Vec::new(), Vec::new(), Vec::new());
        match put {
            Put::Input(bytes) | Put::Enumeration(_, bytes) | Put::DriverInput(bytes) => {
                input.clone_from(bytes);
            }
            Put::Long(length) => input = vec![3; *length as usize % 70_000],
            Put::Output(length) => output = vec![0; *length as usize % 70_000],
            Put::DriverOutput(length) => output = vec![0; usize::from(*length)],
            Put::Objects(list) => objects.clone_from(list),
            _ => {}
        }
        inputs.push(input);
        outputs.push(output);
        ids.push(objects);
    }
    let mut command = Command::<N>::new(object, method);
    let mut expected: Vec<Expected> = Vec::new();
    // The model's memory: the request, then what the attributes point to.
    let mut pieces: Vec<(usize, Vec<u8>)> = Vec::new();
    let mut refused = None;
    let memory = inputs.iter().zip(&mut outputs).zip(&ids);
    for ((id, is_optional, put), ((input, output), objects)) in puts.iter().zip(memory) {
        let mut id = *id;
        let mut elem = 0;
        let mut piece = None;
        let inline = |bytes: &[u8], piece: &mut Option<Vec<u8>>| {
            let mut data = [0; 8];
            if bytes.len() <= 8 {
                data[..bytes.len()].copy_from_slice(bytes);
            } else {
                data = (bytes.as_ptr() as u64).to_ne_bytes();
                *piece = Some(bytes.to_vec());
            }
            (bytes.len(), data)
        };
        let (len, data) = match put {
            Put::Constant(value) => {
                command.constant(id, *value);
                (8, value.to_ne_bytes())
            }
            Put::Flags(value) => {
                command.flags(id, *value);
                match u32::try_from(*value) {
                    Ok(short) => inline(&short.to_ne_bytes(), &mut piece),
                    Err(_) => (8, value.to_ne_bytes()),
                }
            }
            Put::Input(_) | Put::Long(_) => {
                command.input(id, input);
                inline(input, &mut piece)
            }
            Put::Value(value) => {
                command.input_value(id, value);
                inline(&value.to_ne_bytes(), &mut piece)
            }
            Put::DriverInput(_) => {
                id = ATTR_UHW_IN;
                command.driver_input(input);
                inline(input, &mut piece)
            }
            Put::Output(_) | Put::DriverOutput(_) => {
                let (len, address) = (output.len(), output.as_mut_ptr() as u64);
                piece = Some(vec![0; len]);
                if let Put::DriverOutput(_) = put {
                    id = ATTR_UHW_OUT;
                    command.driver_output(output);
                } else {
                    command.output(id, output);
                }
                (len, address.to_ne_bytes())
            }
            Put::Enumeration(variant, _) => {
                elem = *variant;
                command.enumeration(id, elem, input);
                inline(input, &mut piece)
            }
            Put::Object(number) => {
                command.object(id, *number);
                (0, u64::from(*number).to_ne_bytes())
            }
            Put::NewObject => {
                command.new_object(id);
                (0, [0; 8])
            }
            Put::Fd => {
                command.fd(id, null.as_fd());
                (0, i64::from(null.as_raw_fd()).to_ne_bytes())
            }
            Put::NewFd => {
                command.new_fd(id);
                (0, [0xff; 8])
            }
            Put::Objects(_) => {
                command.objects(id, objects);
                inline(objects.as_bytes(), &mut piece)
            }
        };
        if *is_optional && refused.is_none() {
            command.optional();
        }
        if refused.is_some() {
            continue;
        }
        if len > MAX_PAYLOAD {
            refused = Some(EncodeError::PayloadTooLong { attr_id: id, len });
        } else if expected.len() == N {
            refused = Some(EncodeError::TooManyAttributes { attr_id: id, capacity: N });
        } else {
            let len = u16::try_from(len).expect("checked above");
            pieces.extend(piece.map(|piece| (expected.len(), piece)));
            expected.push(Expected { id, len, flags: u16::from(!is_optional), elem, data });
            continue;
        }
        // "optional" after a refused attribute is about the one before.
        if *is_optional && let Some(last) = expected.last_mut() {
            last.flags = 0;
        }
    }
    assert_eq!(command.check().err(), refused);
    let _ = format!("{command:?} {refused:?}");
    if let Some(refused) = refused {
        let _ = refused.to_string();
    }
    let header = command.header();
    assert_eq!((header.object_id, header.method_id), (object, method));
    let mut request = header.as_bytes().to_vec();
    request.extend_from_slice(command.attributes().as_bytes());
    let decoded: Vec<Expected> = request[HEADER..].chunks_exact(ATTRIBUTE).map(decode).collect();
    assert_eq!(decoded, expected);
    for found in &expected {
        assert_eq!(command.attribute(found.id).map(|it| it.attr_id), Some(found.id));
        assert!(!command.is_output_valid(found.id));
        let _ = command.object_id(found.id);
    }
    request[16..20].copy_from_slice(&device.driver_id.to_ne_bytes());
    give(device, &request, &pieces);
    refused.is_none().then_some(request)
}

fn decode(raw: &[u8]) -> Expected {
    let short = |at: usize| u16::from_ne_bytes([raw[at], raw[at + 1]]);
    assert_eq!(raw[7], 0, "reserved");
    let data = raw[8..].try_into().expect("sixteen bytes");
    Expected { id: short(0), len: short(2), flags: short(4), elem: raw[6], data }
}

/// The model takes a request apart: it says what the framework says, or does something.
fn give(device: &Device, request: &[u8], pieces: &[(usize, Vec<u8>)]) {
    let verdict = framework(device, request);
    let mut bytes = request.to_vec();
    for (place, piece) in pieces {
        let at = HEADER + place * ATTRIBUTE + 8;
        let moved = BASE + bytes.len() as u64;
        bytes[at..at + 8].copy_from_slice(&moved.to_ne_bytes());
        bytes.extend_from_slice(piece);
    }
    let mut memory = Memory::new(BASE, bytes);
    let mut file = File { has_context: true };
    match model::ioctl(device, &mut file, RDMA_VERBS_IOCTL, BASE, &mut memory) {
        Outcome::NotModelled(_) => {}
        Outcome::Done(result, _) => match verdict {
            // Zeros after a structure are asked for where longer ones are allowed.
            Err(errno) => assert!(result == Err(errno) || result == Err(95) || result == Err(14)),
            Ok(()) => assert_ne!(result, Err(93), "{request:?}"),
        },
    }
}

/// The library's own requests, to which the model knows the answers.
fn ask(device: &Device, queries: &[Query]) {
    let context = ModelKernel::context(device).expect("every device gives a context");
    assert_eq!(context.num_comp_vectors(), device.num_comp_vectors);
    assert_eq!(context.core_support(), device.core_support);
    let port = |number: u32| {
        let place = number.checked_sub(device.first_port)?;
        device.ports.get(usize::try_from(place).ok()?)
    };
    let all: Vec<GidEntry> = device
        .ports
        .iter()
        .flat_map(|port| port.gids.iter().flatten())
        .map(|bytes| abi::GidEntry::read_from_bytes(bytes).expect("32 bytes").into())
        .collect();
    let gid = |number: u32, index: u32| {
        let slot = port(number).and_then(|port| port.gids.get(index as usize));
        let answer = context.query_gid_ex(number, index);
        match slot {
            None => assert_eq!(answer.map_err(|error| error.errno()), Err(22)),
            Some(slot) => {
                let found = answer.expect("a slot");
                let found = found.map(abi::GidEntry::from);
                assert_eq!(found.as_ref().map(IntoBytes::as_bytes), slot.as_ref().map(|s| &s[..]));
            }
        }
    };
    for query in queries.iter().take(16) {
        match *query {
            Query::Gid { port, index } => gid(u32::from(port) % 8, u32::from(index) % 64),
            Query::GidFar { port, index } => gid(port, index),
            Query::Table => assert_eq!(context.query_gid_table().ok().as_ref(), Some(&all)),
            Query::TableInto { room } => into(&context, usize::from(room) % 2200, &all),
            Query::Port(number) => match port(u32::from(number)) {
                None => {
                    assert_eq!(context.query_port(number.into()).map_err(|e| e.errno()), Err(22));
                }
                Some(port) => {
                    let raw = QueryPortResponse::read_from_bytes(&port.attributes);
                    let expected = PortAttributes::from(&raw.expect("48 bytes"));
                    let found = context.query_port(number.into()).expect("a port");
                    let _ = (found.rate().map(|rate| rate.to_string()), found.state.to_string());
                    assert_eq!(found, expected);
                }
            },
            Query::PortSpeed(number) => {
                let found = context.query_port_speed(number.into()).map_err(|error| error.errno());
                let expected = if device.release < (7, 0) {
                    Err(93)
                } else if device.ports.iter().all(|port| port.speed.is_none()) {
                    Err(95)
                } else {
                    port(number.into()).map_or(Err(22), |port| port.speed.unwrap_or(Err(95)))
                };
                assert_eq!(found.map(|rate| rate.0), expected);
            }
            Query::Device => {
                let found = context.query_device().expect("device attributes");
                let (bytes, told) = (found.raw().as_bytes(), &device.attributes);
                assert_eq!((&bytes[..180], &bytes[184..304]), (&told[..180], &told[184..304]));
                let _ = (found.node_guid(), found.sys_image_guid());
            }
            Query::Events => assert!(context.async_events().is_ok()),
            Query::Mlx5Port(number) => {
                mlx5_port(device, &context, number.into(), port(number.into()));
            }
        }
    }
}

fn into(context: &uverbs::context::Context, room: usize, all: &[GidEntry]) {
    let mut memory = Guarded::new(room * size_of::<GidEntry>());
    let entries = <[GidEntry]>::mut_from_bytes(memory.inside_mut()).expect("aligned");
    match context.query_gid_table_into(entries) {
        Ok(count) => assert_eq!(&entries[..count], all),
        Err(error) => {
            assert!(matches!(error.cause(), Cause::NoRoom(_)), "{error}");
            assert!(room < all.len() || room == 0);
        }
    }
    memory.check();
}

fn mlx5_port(
    device: &Device,
    context: &uverbs::context::Context,
    number: u32,
    port: Option<&model::Port>,
) {
    let found = uverbs::mlx5::query_port(context, number);
    let found = found.map(|port| port.as_abi().as_bytes().to_vec()).map_err(|error| error.errno());
    let expected = match port {
        _ if device.mlx5.is_none() => Err(95),
        _ if device.release < (5, 13) => Err(93),
        None => Err(22),
        Some(port) => port.mlx5.clone(),
    };
    assert_eq!(found, expected);
}
