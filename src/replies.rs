//! Netlink replies that no kernel sent, for fuzzing (feature `simulated-kernel`, not part of the
//! public API): every parser of messages, given any bytes.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::Path;

use crate::device::{Device, parse_chardev, parse_device};
use crate::netdev::{Netdev, parse_address, parse_port, standing_on_each};
use crate::netlink::{Replies, attributes};

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
    /// As messages about interfaces: each with what stands on it.
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
        let address = parse_address(content).ok().flatten();
        read.addresses.extend(address.map(|it| (it.index, it.ip, it.prefix)));
    }
    if let Some(device) = read.devices.first_mut() {
        for content in &contents {
            let _ = parse_chardev(content, dev, device);
        }
    }
    read.links = standing_on_each(&contents);
    read
}
