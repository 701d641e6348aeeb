//! A packet of RoCE v2 as it is on the wire, and whether soft RoCE takes it.

use std::fs;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use anyhow::{Context as _, Result};
use rustix::net::{
    AddressFamily, SendFlags, SocketFlags, SocketType, ipproto, sendto, socket_with,
};

use super::{Namespace, wait_within};

/// The UDP port that RoCE v2 is sent to.
pub(crate) const PORT: u16 = 4791;

/// The headers of IPv4 and UDP.
const IP: usize = 20;
const UDP: usize = 8;
/// A management datagram.
const MAD: usize = 256;
/// All, with the base header, that of datagrams, and the invariant CRC.
const LENGTH: usize = IP + UDP + 12 + 8 + MAD + 4;

/// A management datagram to queue pair 1, which each port has.
fn packet(from: Ipv4Addr, to: Ipv4Addr) -> Vec<u8> {
    let length = |of: usize| u16::try_from(of).unwrap_or(u16::MAX).to_be_bytes();
    // With what routers change: service, checksums and a reserved byte; and hops.
    let parts = |changed: u8, hops: u8| {
        let own = [
            // Version 4 with five words; an identification, which the kernel would choose; UDP.
            &[0x45, changed][..],
            &length(LENGTH),
            &[0, 1, 0, 0, hops, 17, changed, changed],
            &from.octets(),
            &to.octets(),
            &[0xc0, 0],
            &PORT.to_be_bytes(),
            &length(LENGTH - IP),
            &[changed, changed],
            // A datagram that is one packet, of the default P_Key, to queue pair 1, with number 0.
            &[0x64, 0, 0xff, 0xff, changed, 0, 0, 1, 0, 0, 0, 0],
            // Q_Key and source queue pair of the general services.
            &[0x80, 1, 0, 0, 0, 0, 0, 1],
            // It asks the performance management.
            &[1, 4, 1, 1],
            &[0; MAD - 4],
        ];
        own.concat()
    };
    // What is changed counts as ones, and so do eight bytes before it.
    let invariant = [vec![0xff; 8], parts(0xff, 0xff)].concat();
    [parts(0, 64), crc32fast::hash(&invariant).to_le_bytes().to_vec()].concat()
}

/// Sends it from an address of this network namespace.
fn send(from: Ipv4Addr, to: Ipv4Addr) -> Result<()> {
    let kind = (AddressFamily::INET, SocketType::RAW, SocketFlags::CLOEXEC);
    let socket = socket_with(kind.0, kind.1, kind.2, Some(ipproto::RAW))?;
    let to_host = SocketAddrV4::new(to, 0);
    sendto(&socket, &packet(from, to), SendFlags::empty(), &to_host)?;
    Ok(())
}

/// How many packets the port of a soft-RoCE device has taken.
fn received(device: &str) -> Result<u64> {
    let path = format!("/sys/class/infiniband/{device}/ports/1/hw_counters/rcvd_pkts");
    let text = fs::read_to_string(&path).context(path)?;
    Ok(text.trim().parse()?)
}

/// Whether a soft-RoCE device takes what is sent to an address of its, from an address of a namespace.
pub(crate) fn is_heard(
    device: &str,
    to: &str,
    (namespace, from): (&Namespace, &str),
) -> Result<bool> {
    let (from, to): (Ipv4Addr, Ipv4Addr) = (from.parse()?, to.parse()?);
    let before = received(device)?;
    // The first may be lost while the neighbour is looked for.
    let waited = wait_within(Duration::from_secs(2), "a packet is taken", || {
        let sent = namespace.call(|| send(from, to));
        sent.is_ok() && received(device).is_ok_and(|now| now > before)
    });
    Ok(waited.is_ok())
}
