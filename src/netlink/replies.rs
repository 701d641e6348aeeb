//! Netlink replies that no kernel sent, for fuzzing (feature `simulated-kernel`, not part of the
//! public API): every parser of messages, given any bytes; and the exchange with a socket, given any
//! datagrams.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::Path;

use super::listen::{parse_route_news, parse_uevent};
use super::rdma::{parse_chardev, parse_device, parse_port};
use super::route::{parse_address, parse_neighbour, standing_on_each};
use super::statistics::{
    OWNED_KINDS, is_of, parse_counters, parse_mode, parse_resources, parse_states,
};
use super::{Datagram, Message, Replies, Socket, attributes};
use crate::counter::{Counter, CounterSource, Group, OptionalCounter, ResourceUse};
use crate::device::Device;
use crate::netdev::Netdev;

/// What the parsers made of a datagram; what they refused is left out.
#[derive(Debug, Default)]
pub struct Read {
    /// Messages, refused ones too.
    pub messages: usize,
    /// Attributes of all messages that read.
    pub attributes: usize,
    /// As messages about devices; then as ones about character devices, for the first device.
    pub devices: Vec<Device>,
    /// As messages about ports.
    pub netdevs: Vec<Netdev>,
    /// As messages about addresses: the interface, the address, the length of the network's part.
    pub addresses: Vec<(u32, IpAddr, u8)>,
    /// As messages about a port's counters.
    pub counters: Vec<Counter>,
    /// As messages about their states.
    pub optional: Vec<OptionalCounter>,
    /// As messages about objects in use.
    pub resources: Vec<ResourceUse>,
    /// As messages about their owners: how many objects.
    pub owned: u64,
    /// Those that are set by hand: each one's interface and family.
    pub neighbours: Vec<(u32, i32)>,
    /// As multicasts: how many say something.
    pub news: usize,
    /// As messages about interfaces: each with the interfaces on top of it.
    pub links: Vec<(u32, BTreeSet<u32>)>,
}

/// Reads a datagram in every way there is; uverbs nodes are in `dev`.
#[must_use]
pub fn read(datagram: &[u8], dev: &Path) -> Read {
    let mut read = Read::default();
    let replies: Vec<_> = Replies(datagram).inspect(|_| read.messages += 1).flatten().collect();
    let contents: Vec<&[u8]> = replies.iter().filter_map(|reply| reply.content().ok()).collect();
    for content in &contents {
        for attribute in attributes(content).flatten() {
            let _ = (attribute.number(), attribute.u32(), attribute.u8(), attribute.text());
            read.attributes += 1;
        }
        read.devices.extend(parse_device(content).map(|(_, device)| device));
        read.netdevs.extend(parse_port(content).ok().flatten());
        let counters = parse_counters(content).unwrap_or_default().into_iter();
        read.counters.extend(counters.map(|(name, number)| {
            Counter::new(name, Group::Hardware, CounterSource::Netlink, None, number)
        }));
        read.optional
            .extend(parse_states(content).map(|(_, optional)| optional).unwrap_or_default());
        read.resources.extend(parse_resources(content).map(|(.., own)| own).unwrap_or_default());
        let _ = (parse_mode(content), is_of(content, ""));
        let owned = OWNED_KINDS.iter().flat_map(|kind| kind.parse(content)).flatten();
        read.owned += owned.map(|(_, count)| count).sum::<u64>();
        read.neighbours.extend(parse_neighbour(content).ok().flatten());
        let address = parse_address(content).ok().flatten();
        read.addresses.extend(address.map(|it| (it.index, it.ip, it.prefix)));
    }
    if let Some(device) = read.devices.first_mut() {
        for content in &contents {
            let _ = parse_chardev(content, dev, device);
        }
    }
    read.links = standing_on_each(&contents);
    parse_route_news(datagram, &mut |_| read.news += 1);
    read.news += usize::from(parse_uevent(datagram).is_some());
    read
}

/// A datagram as it is received: who sent it, whether it was cut, what is in it.
pub type Received = (Option<u32>, bool, Vec<u8>);

/// What came of questions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Replied {
    /// A message, without its header.
    Content(Vec<u8>),
    /// The kernel's errno for this question.
    Errno(i32),
}

/// Asks so many questions of a socket that receives these batches: the place of each question that
/// was answered, and the answer, in the order of their coming; then the errno of the whole, if it
/// failed. Their sequence numbers count from 1.
#[must_use]
pub fn ask(questions: usize, batches: Vec<Vec<Received>>) -> (Vec<(usize, Replied)>, Option<i32>) {
    let mut answers = Vec::new();
    let ended = socket(batches).ask(vec![Message::new(0x1401, &[]); questions], |place, reply| {
        answers.push((
            place,
            match reply {
                Ok(content) => Replied::Content(content.to_vec()),
                Err(errno) => Replied::Errno(errno.raw_os_error()),
            },
        ));
        Ok(())
    });
    (answers, ended.err().map(|cause| cause.errno()))
}

/// Asks such a socket for a list. Its sequence numbers are 1, and one more for each that was interrupted.
///
/// # Errors
/// The errno that it failed with.
pub fn dump(batches: Vec<Vec<Received>>) -> Result<Vec<Vec<u8>>, i32> {
    socket(batches)
        .dump(&Message::new(0x1401, &[]), |content| Ok(content.to_vec()))
        .map_err(|cause| cause.errno())
}

fn socket(batches: Vec<Vec<Received>>) -> Socket {
    let datagram = |(sender, is_cut, bytes)| Datagram { sender, is_cut, bytes };
    Socket::given(
        batches.into_iter().map(|batch| batch.into_iter().map(datagram).collect()).collect(),
    )
}
