//! Netlink replies: any bytes are read or refused; what a kernel says is read as it was said; and of
//! any datagrams the answers to questions are those that a model of the exchange finds.

use std::path::Path;

use uverbs::replies::{Received, Replied};

/// The errno of an answer that is no use, and of a list that changed each time.
const PROTO: i32 = 71;
const AGAIN: i32 = 11;

/// Questions that the library sends at once, and how often it asks for a list.
const AT_ONCE: usize = 16;
const TRIES: u32 = 8;

// Kinds and flags of messages.
const REPLY: u16 = 0x1401;
const ERROR: u16 = 2;
const DONE: u16 = 3;
const INTERRUPTED: u16 = 0x10;

/// Runs the target. By the first byte the rest is a datagram; messages whose lengths are put right, so
/// that the parsers of attributes get to see something; what a device is; or datagrams in batches.
///
/// # Panics
/// If a promise is broken.
pub fn run(data: &[u8]) {
    let Some((first, datagram)) = data.split_first() else { return };
    match first {
        0x80..=0xbf => told(datagram),
        0xc0..=0xff => exchanged(usize::from(first & 0x3f), datagram),
        _ if first & 1 == 0 => check(datagram),
        _ => {
            // Messages behind a header each, of 255 bytes at most.
            let mut whole = Vec::new();
            let mut rest = datagram;
            while let Some((length, behind)) = rest.split_first() {
                let (content, behind) = behind.split_at(usize::from(*length).min(behind.len()));
                let kind: u16 = if first & 6 == 6 { DONE } else { REPLY };
                whole.extend(message(kind, 0, 0, content));
                rest = behind;
            }
            check(&whole);
        }
    }
}

fn check(datagram: &[u8]) {
    let dev = Path::new("/dev/infiniband");
    let read = uverbs::replies::read(datagram, dev);
    assert!(read.messages <= datagram.len() / 16 + 1);
    assert!(read.attributes <= datagram.len() / 4 + 1);
    for device in &read.devices {
        assert!(!device.name.is_empty() && !device.name.contains(['/', '\0']));
        assert!(device.name != "." && device.name != "..");
        assert!(device.port_count <= 1 << 16 && device.index.is_some());
        assert!(device.ports().count() <= 1 << 16);
        if let Some(node) = &device.node {
            assert_eq!(node.path.parent(), Some(dev), "{node:?}");
        }
        let _ = format!("{device:?} {}", device.node_type);
    }
    let entries = read.counters.len() + read.optional.len() + read.resources.len();
    // Each takes the heads of an entry, of a name and of a number.
    assert!(entries <= 3 * (datagram.len() / 12 + 1));
    // An object may have nothing but its head, and be of each of six kinds.
    assert!(read.owned <= 6 * (u64::try_from(datagram.len()).unwrap_or(0) / 4 + 1));
    assert!(read.counters.iter().all(|own| !own.name.is_empty() && own.amount().is_some()));
    for (index, above) in &read.links {
        assert!(*index != 0 && above.len() <= read.messages + read.messages);
    }
}

/// A message with its header.
fn message(kind: u16, flags: u16, sequence: u32, content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend_from_slice(&u32::try_from(16 + content.len()).unwrap_or(16).to_ne_bytes());
    bytes.extend_from_slice(&kind.to_ne_bytes());
    bytes.extend_from_slice(&flags.to_ne_bytes());
    bytes.extend_from_slice(&sequence.to_ne_bytes());
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(content);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// An attribute.
fn attribute(kind: u16, content: &[u8]) -> Vec<u8> {
    let mut bytes = u16::try_from(4 + content.len()).unwrap_or(4).to_ne_bytes().to_vec();
    bytes.extend_from_slice(&kind.to_ne_bytes());
    bytes.extend_from_slice(content);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// A device and its node, as the kernel sends them. Each value comes out as it was put in.
fn told(data: &[u8]) {
    let mut bytes = data.iter().copied();
    let mut next = || bytes.next().unwrap_or(0);
    let index = u32::from_ne_bytes([next(), next(), next(), next()]);
    let ports = u32::from(u16::from_ne_bytes([next(), next()]));
    let node_type = next();
    let guid = u64::from_ne_bytes(core::array::from_fn(|_| next()));
    let (major, minor) = (u32::from(next()) + 1, u32::from(u16::from_ne_bytes([next(), next()])));
    let driver = u32::from(next());
    let unknown = next();
    let name: String = bytes.take(62).map(|byte| char::from(b'a' + byte % 26)).collect();
    let name = format!("d{name}");
    let text = |text: &str| [text.as_bytes(), b"\0"].concat();
    // `huge_encode_dev`.
    let number = u64::from(minor & 0xff | major << 8 | (minor & !0xff) << 12);
    let device = [
        attribute(1, &index.to_ne_bytes()),
        attribute(2, &text(&name)),
        attribute(3, &ports.to_ne_bytes()),
        attribute(0x3000 | u16::from(unknown), &[unknown; 3]),
        attribute(6, &guid.to_ne_bytes()),
        attribute(7, &guid.rotate_left(8).to_ne_bytes()),
        attribute(14, &[node_type]),
    ]
    .concat();
    let node = [
        attribute(70, &text("uverbs7")),
        attribute(72, &number.to_ne_bytes()),
        attribute(73, &driver.to_ne_bytes()),
    ]
    .concat();
    let datagram = [message(REPLY, 2, 1, &device), message(0x140f, 0, 2, &node)].concat();
    let read = uverbs::replies::read(&datagram, Path::new("/dev"));
    assert_eq!((read.messages, read.devices.len()), (2, 1));
    let read = &read.devices[0];
    assert_eq!((read.index, &read.name, read.port_count), (Some(index), &name, ports));
    assert_eq!((read.node_guid.to_u64(), read.node_type.0), (guid, node_type));
    assert_eq!(read.sys_image_guid.to_u64(), guid.rotate_left(8));
    assert_eq!(read.driver.map(|driver| driver.0), Some(driver));
    let node = read.node.as_ref().expect("a node");
    assert_eq!((&*node.name, node.path.as_path()), ("uverbs7", Path::new("/dev/uverbs7")));
    // glibc's `makedev`.
    let (major, minor) = (u64::from(major), u64::from(minor));
    let expected = (major & 0xfff) << 8 | (minor & 0xff) | (minor & !0xff) << 12;
    assert_eq!(node.number, expected);
}

/// A message that is received, as the model sees it.
#[derive(Debug)]
enum Event {
    Message {
        kind: u16,
        interrupted: bool,
        sequence: u32,
        code: i32,
    },
    /// Bytes that are no message; nothing after them is read.
    Nonsense,
}

#[derive(Debug)]
struct Datagram {
    sender: Option<u32>,
    is_cut: bool,
    events: Vec<Event>,
}

/// Batches of datagrams. The library and the model must read the same answers from them.
fn exchanged(questions: usize, data: &[u8]) {
    let mut batches: Vec<Vec<Datagram>> = vec![Vec::new()];
    for bytes in data.chunks_exact(3) {
        let [how, sequence, code] = [bytes[0], bytes[1], bytes[2]];
        let sender = [Some(0), Some(0), None, Some(u32::from(code) + 1)][usize::from(how & 3)];
        let (sequence, code) = (u32::from(sequence % 40), i32::from(code));
        let interrupted = how & 0x80 != 0;
        let event = match how >> 2 & 3 {
            0 => Event::Message { kind: REPLY, interrupted, sequence, code },
            1 => Event::Message { kind: ERROR, interrupted, sequence, code: -code },
            // The end of a dump, mostly without an errno.
            2 => Event::Message { kind: DONE, interrupted, sequence, code: -(code >> 6 & 1) },
            _ if code % 16 == 0 => Event::Nonsense,
            _ => Event::Message { kind: REPLY, interrupted: false, sequence, code },
        };
        if how & 0x20 != 0 {
            batches.push(Vec::new());
        }
        let Some(batch) = batches.last_mut() else { return };
        if let Some(datagram) = batch.last_mut().filter(|_| how & 0x10 == 0) {
            datagram.events.push(event);
        } else {
            let is_cut = how & 0xc0 == 0xc0 && code % 8 == 0;
            batch.push(Datagram { sender, is_cut, events: vec![event] });
        }
    }
    let received: Vec<Vec<Received>> =
        batches.iter().map(|batch| batch.iter().map(written).collect()).collect();
    assert_eq!(uverbs::replies::ask(questions, received.clone()), asked(questions, &batches));
    assert_eq!(uverbs::replies::dump(received), dumped(&batches));
}

fn written(datagram: &Datagram) -> Received {
    let bytes = datagram.events.iter().flat_map(|event| match event {
        Event::Message { kind, interrupted, sequence, code } => {
            let flags = if *interrupted { INTERRUPTED } else { 0 };
            message(*kind, flags, *sequence, &code.to_ne_bytes())
        }
        Event::Nonsense => vec![3, 0, 0, 0],
    });
    (datagram.sender, datagram.is_cut, bytes.collect())
}

/// What a message says.
fn content(kind: u16, code: i32) -> Replied {
    match (kind, code) {
        (ERROR | DONE, 0) => Replied::Content(Vec::new()),
        (ERROR | DONE, errno) => Replied::Errno(-errno),
        (_, code) => Replied::Content(code.to_ne_bytes().to_vec()),
    }
}

/// The kernel's messages of one batch in their order, until something is no use.
fn heard(batch: &[Datagram]) -> impl Iterator<Item = Option<(u16, bool, u32, i32)>> {
    let of_kernel = batch.iter().filter(|datagram| datagram.sender == Some(0));
    of_kernel.flat_map(|datagram| {
        let cut = datagram.is_cut.then_some(None);
        let events = datagram.events.iter().map(|event| match event {
            Event::Message { kind, interrupted, sequence, code } => {
                Some((*kind, *interrupted, *sequence, *code))
            }
            Event::Nonsense => None,
        });
        cut.into_iter().chain(events)
    })
}

fn asked(questions: usize, batches: &[Vec<Datagram>]) -> (Vec<(usize, Replied)>, Option<i32>) {
    let mut answers: Vec<(usize, Replied)> = Vec::new();
    let mut batches = batches.iter();
    for first in (0..questions).step_by(AT_ONCE) {
        let places = first..questions.min(first + AT_ONCE);
        let mut open = places.len();
        while open > 0 {
            let Some(batch) = batches.next() else { return (answers, Some(PROTO)) };
            for message in heard(batch) {
                let Some((kind, _, sequence, code)) = message else {
                    return (answers, Some(PROTO));
                };
                let place = (sequence as usize).wrapping_sub(1);
                if places.contains(&place) && answers.iter().all(|(known, _)| *known != place) {
                    answers.push((place, content(kind, code)));
                    open -= 1;
                    if open == 0 {
                        break;
                    }
                }
            }
        }
    }
    (answers, None)
}

fn dumped(batches: &[Vec<Datagram>]) -> Result<Vec<Vec<u8>>, i32> {
    let mut batches = batches.iter();
    for own in 1..=TRIES {
        let (mut list, mut changed, mut is_over) = (Vec::new(), false, false);
        while !is_over {
            for message in heard(batches.next().ok_or(PROTO)?) {
                let (kind, interrupted, sequence, code) = message.ok_or(PROTO)?;
                if sequence != own {
                    continue;
                }
                changed |= interrupted;
                match content(kind, code) {
                    Replied::Errno(errno) => return Err(errno),
                    Replied::Content(_) if kind == DONE => {
                        is_over = true;
                        break;
                    }
                    Replied::Content(content) => list.push(content),
                }
            }
        }
        if !changed {
            return Ok(list);
        }
    }
    Err(AGAIN)
}
