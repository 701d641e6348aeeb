//! Netlink sockets that hear what happens: RDMA netlink's monitor, route netlink and uevents.
//!
//! Nobody waits here. Whoever does waits for the file to be readable, and then takes what is there.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, Protocol, RecvFlags, SocketFlags, SocketType};
use uverbs_uapi::netlink as abi;

use super::Replies;
use super::route::{Address, Link, parse_address, parse_link};
use nix::libc;

/// Room for one datagram. The kernel sends none that is longer to a reader who offers this.
const DATAGRAM: usize = 32 * 1024;

/// The most datagrams that are taken at once, so that taking them ends though more come.
const MOST: usize = 4096;

/// The kernel's own uevents; the other group is udev's.
const UEVENTS: u32 = 1 << 0;

/// A socket of this process's network namespace that multicasts arrive at.
#[derive(Debug)]
pub(crate) struct Listener {
    fd: OwnedFd,
    buffer: Vec<u8>,
}

impl Listener {
    /// Reports of RDMA netlink's monitor: devices come and go, ports get and lose their interfaces.
    pub(crate) fn monitor() -> Result<Self, Errno> {
        Self::open(abi::NETLINK_RDMA, 1 << (abi::group::NOTIFY - 1))
    }

    /// Interfaces and their addresses.
    pub(crate) fn route() -> Result<Self, Errno> {
        let groups = libc::RTMGRP_LINK | libc::RTMGRP_IPV4_IFADDR | libc::RTMGRP_IPV6_IFADDR;
        Self::open(0, groups.unsigned_abs())
    }

    /// Devices and nodes of all kinds.
    pub(crate) fn uevents() -> Result<Self, Errno> {
        Self::open(libc::NETLINK_KOBJECT_UEVENT.unsigned_abs(), UEVENTS)
    }

    fn open(protocol: u32, groups: u32) -> Result<Self, Errno> {
        let fd = rustix::net::socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
            rustix::net::RawProtocol::new(protocol).map(Protocol::from_raw),
        )?;
        rustix::net::bind(&fd, &SocketAddrNetlink::new(0, groups))?;
        Ok(Self { fd, buffer: vec![0; DATAGRAM] })
    }

    /// Takes what the kernel sent, and says whether something was lost.
    pub(crate) fn drain(&mut self, take: &mut dyn FnMut(&[u8])) -> Result<bool, Errno> {
        let mut is_lost = false;
        for _ in 0..MOST {
            let flags = RecvFlags::TRUNC;
            match rustix::net::recvfrom(&self.fd, self.buffer.as_mut_slice(), flags) {
                Ok((_, length, sender)) => {
                    let sender = sender.and_then(|own| SocketAddrNetlink::try_from(own).ok());
                    // Any process may write to a netlink socket; the kernel is number 0.
                    if sender.is_none_or(|own| own.pid() != 0) {
                        continue;
                    }
                    match self.buffer.get(..length) {
                        Some(datagram) => take(datagram),
                        None => is_lost = true,
                    }
                }
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(Errno::NOBUFS) => is_lost = true,
                Err(errno) => return Err(errno),
            }
        }
        Ok(is_lost)
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// What route netlink says that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RouteNews {
    /// An interface is so now.
    Link(Link),
    /// An interface is gone.
    LinkGone(Link),
    /// An interface has an address.
    Address(Address),
    /// An interface no longer has an address.
    AddressGone(Address),
    /// It could not be read.
    Unread,
}

/// Reads a datagram of route netlink.
pub(crate) fn parse_route_news(datagram: &[u8], see: &mut dyn FnMut(RouteNews)) {
    for message in Replies(datagram) {
        let Ok(message) = message else { return see(RouteNews::Unread) };
        let read = match message.kind {
            libc::RTM_NEWLINK => parse_link(message.payload).map(|own| own.map(RouteNews::Link)),
            libc::RTM_DELLINK => {
                parse_link(message.payload).map(|own| own.map(RouteNews::LinkGone))
            }
            libc::RTM_NEWADDR => {
                parse_address(message.payload).map(|own| own.map(RouteNews::Address))
            }
            libc::RTM_DELADDR => {
                parse_address(message.payload).map(|own| own.map(RouteNews::AddressGone))
            }
            _ => continue,
        };
        match read {
            Ok(Some(news)) => see(news),
            Ok(None) => {}
            Err(_) => see(RouteNews::Unread),
        }
    }
}

/// A uevent, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Uevent<'d> {
    /// `add`, `remove`, `move` …
    pub(crate) action: &'d str,
    /// The node's name below `/dev/infiniband`, of uevents about a node.
    pub(crate) node: Option<&'d str>,
}

/// Reads a uevent of an RDMA device or of one of its nodes; `None` for all others.
pub(crate) fn parse_uevent(datagram: &[u8]) -> Option<Uevent<'_>> {
    let (mut action, mut subsystem, mut node) = (None, None, None);
    // Before the pairs comes a summary: `add@/devices/…`.
    for pair in datagram.split(|byte| *byte == 0).skip(1) {
        let Some((name, value)) = core::str::from_utf8(pair).ok()?.split_once('=') else {
            continue;
        };
        match name {
            "ACTION" => action = Some(value),
            "SUBSYSTEM" => subsystem = Some(value),
            "DEVNAME" => node = value.strip_prefix("infiniband/"),
            _ => {}
        }
    }
    match subsystem? {
        "infiniband" | "infiniband_verbs" => Some(Uevent { action: action?, node }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::Message;

    #[test]
    fn uevents_of_devices_and_nodes() {
        let read = |text: &str| {
            parse_uevent(text.as_bytes())
                .map(|own| (own.action.to_owned(), own.node.map(str::to_owned)))
        };
        let node = "remove@/devices/x\0ACTION=remove\0DEVPATH=/devices/x\0SUBSYSTEM=infiniband_verbs\0MAJOR=231\0DEVNAME=infiniband/uverbs0\0SEQNUM=7\0";
        assert_eq!(read(node), Some(("remove".to_owned(), Some("uverbs0".to_owned()))));
        let device = "move@/devices/x\0ACTION=move\0SUBSYSTEM=infiniband\0NAME=rxe0\0";
        assert_eq!(read(device), Some(("move".to_owned(), None)));
        for other in [
            "",
            "\0",
            "add@/x\0ACTION=add\0SUBSYSTEM=block\0",
            "add@/x\0SUBSYSTEM=infiniband\0",
            "add@/x\0ACTION=add\0",
        ] {
            assert_eq!(read(other), None, "{other:?}");
        }
        assert_eq!(parse_uevent(b"add@/x\0ACTION=\xff\0SUBSYSTEM=infiniband\0"), None);
    }

    #[test]
    fn news_of_addresses() {
        let mut body = [0; 8];
        (body[0], body[1]) = (2, 24);
        body[4..].copy_from_slice(&3u32.to_ne_bytes());
        let message = |kind, body: &[u8]| {
            Message::new(kind, body).attribute(libc::IFA_ADDRESS, &[10, 0, 0, 1]).finish(0, 0)
        };
        let read = |datagram: &[u8]| {
            let mut news = Vec::new();
            parse_route_news(datagram, &mut |own| news.push(own));
            news
        };
        let both = [message(libc::RTM_NEWADDR, &body), message(libc::RTM_DELADDR, &body)].concat();
        let news = read(&both);
        let ip = "10.0.0.1".parse().unwrap();
        let address = Address { index: 3, ip, near: ip, prefix: 24, is_duplicate: false };
        assert_eq!(news, [RouteNews::Address(address), RouteNews::AddressGone(address)]);
        let short = Message::new(libc::RTM_NEWADDR, &[0; 4]).finish(0, 0);
        assert_eq!(read(&short), [RouteNews::Unread]);
        assert_eq!(read(&both[..20]), [RouteNews::Unread]);
        assert_eq!(read(&message(libc::RTM_NEWROUTE, &body)), []);
    }
}
