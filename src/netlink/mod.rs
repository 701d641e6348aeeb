//! Netlink: requests in a batch, replies as they come.
//!
//! One socket for RDMA netlink (devices, character devices, ports) or for route netlink
//! (interfaces, addresses). Requests of a batch go out in one system call and their replies come
//! back in one, as the kernel has queued them all when the first returns. So nothing here ever
//! blocks. `rdma` and `route` know what the messages mean.

pub(crate) mod listen;
mod message;
pub(crate) mod rdma;
#[cfg(feature = "simulated-kernel")]
pub mod replies;
pub(crate) mod route;
pub(crate) mod statistics;

use std::io::IoSliceMut;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::libc;
use nix::sys::socket::{MsgFlags, MultiHeaders, NetlinkAddr, recvmmsg};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{AddressFamily, Protocol, SendFlags, SocketFlags, SocketType};

use crate::error::Cause;
use message::{DONE, DUMP, DUMP_INTR, Replies, Reply};

pub(crate) use message::{Attribute, Message, attributes, number_at, short_at};

/// Requests sent at once: their replies (about 4 KiB each in the kernel's account) fit the
/// socket's default buffer.
const BATCH: usize = 16;

/// Room for one datagram. The kernel makes them of at most 8 KiB until a reader offers more, and
/// cuts a dump into datagrams no larger than the largest offer.
const DATAGRAM: usize = 16 * 1024;

/// The kernel queues all replies before it returns from sending.
const UNANSWERED: Cause = Cause::Malformed("netlink left a request unanswered");

/// How often an interrupted dump is started again.
const DUMP_TRIES: u32 = 8;

/// A netlink socket of this process's network namespace.
#[derive(Debug)]
pub(crate) struct Socket {
    peer: Peer,
    sequence: u32,
}

/// Who answers.
#[derive(Debug)]
enum Peer {
    /// The kernel, through a socket and memory for what it sends.
    Kernel(OwnedFd, Vec<u8>),
    /// Test code.
    #[cfg(any(test, feature = "simulated-kernel"))]
    Given(Given),
}

/// Batches of datagrams in place of a kernel's: one for each receiving, whatever is sent.
#[cfg(any(test, feature = "simulated-kernel"))]
#[derive(Debug, Default)]
pub(crate) struct Given {
    pub(crate) batches: std::collections::VecDeque<Vec<Datagram<Vec<u8>>>>,
    /// What was sent.
    pub(crate) sent: Vec<Vec<u8>>,
}

/// What was received at once.
#[derive(Clone, Debug)]
pub(crate) struct Datagram<B> {
    /// The number of its sender, if it has one. The kernel's is 0.
    pub(crate) sender: Option<u32>,
    /// There was not enough room for it.
    pub(crate) is_cut: bool,
    pub(crate) bytes: B,
}

#[cfg(test)]
impl Datagram<Vec<u8>> {
    /// The kernel's refusal of the request with this number.
    pub(crate) fn refusal(errno: Errno, sequence: u32) -> Self {
        let code = (-errno.raw_os_error()).to_ne_bytes();
        let bytes = Message::new(message::ERROR, &code).finish(0, sequence);
        Self { sender: Some(0), is_cut: false, bytes }
    }

    /// The kernel's answer to it.
    pub(crate) fn reply(content: &[u8], sequence: u32) -> Self {
        let bytes = Message::new(0x1401, content).finish(0, sequence);
        Self { sender: Some(0), is_cut: false, bytes }
    }

    /// The end of the list with this number.
    pub(crate) fn end(sequence: u32) -> Self {
        let bytes = Message::new(DONE, &[0; 4]).finish(0, sequence);
        Self { sender: Some(0), is_cut: false, bytes }
    }
}

impl Peer {
    /// Sends requests; how many bytes of them were taken.
    fn send(&mut self, request: &[u8]) -> Result<usize, Errno> {
        match self {
            Self::Kernel(fd, _) => {
                retry_on_intr(|| rustix::net::send(&*fd, request, SendFlags::empty()))
            }
            #[cfg(any(test, feature = "simulated-kernel"))]
            Self::Given(given) => {
                given.sent.push(request.to_vec());
                Ok(request.len())
            }
        }
    }

    /// Receives what is there, a batch at most, and gives it to `take` in its order until that says
    /// that it has seen all. An error if there is nothing.
    fn receive(
        &mut self,
        mut take: impl FnMut(&Datagram<&[u8]>) -> Result<bool, Cause>,
    ) -> Result<bool, Cause> {
        match self {
            Self::Kernel(fd, buffer) => {
                let mut headers = MultiHeaders::<NetlinkAddr>::preallocate(BATCH, None);
                let mut parts: Vec<[IoSliceMut<'_>; 1]> =
                    buffer.chunks_exact_mut(DATAGRAM).map(|part| [IoSliceMut::new(part)]).collect();
                let flags = MsgFlags::MSG_DONTWAIT;
                let received =
                    match recvmmsg(fd.as_raw_fd(), &mut headers, parts.iter_mut(), flags, None) {
                        Ok(received) => received,
                        // Nothing yet: it is asked again.
                        Err(nix::Error::EINTR) => return Ok(false),
                        Err(nix::Error::EAGAIN) => return Err(UNANSWERED),
                        Err(errno) => {
                            return Err(Cause::Os(errno as i32));
                        }
                    };
                for datagram in received {
                    let sender = datagram.address.map(|address| address.pid());
                    let is_cut = datagram.flags.contains(MsgFlags::MSG_TRUNC);
                    for bytes in datagram.iovs() {
                        if take(&Datagram { sender, is_cut, bytes })? {
                            return Ok(true);
                        }
                    }
                }
                Ok(false)
            }
            #[cfg(any(test, feature = "simulated-kernel"))]
            Self::Given(given) => {
                for datagram in given.batches.pop_front().ok_or(UNANSWERED)? {
                    let Datagram { sender, is_cut, bytes } = &datagram;
                    if take(&Datagram { sender: *sender, is_cut: *is_cut, bytes })? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
        }
    }
}

impl Socket {
    /// RDMA netlink; loads the module `ib_core` where that is allowed.
    pub(crate) fn rdma() -> Result<Self, Errno> {
        Self::open(uverbs_uapi::netlink::NETLINK_RDMA)
    }

    /// Route netlink.
    pub(crate) fn route() -> Result<Self, Errno> {
        Self::open(0)
    }

    fn open(protocol: u32) -> Result<Self, Errno> {
        let fd = rustix::net::socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            rustix::net::RawProtocol::new(protocol).map(Protocol::from_raw),
        )?;
        Ok(Self { peer: Peer::Kernel(fd, vec![0; BATCH * DATAGRAM]), sequence: 0 })
    }

    /// One whose answers are there already.
    #[cfg(any(test, feature = "simulated-kernel"))]
    pub(crate) fn given(batches: Vec<Vec<Datagram<Vec<u8>>>>) -> Self {
        let given = Given { batches: batches.into(), sent: Vec::new() };
        Self { peer: Peer::Given(given), sequence: 0 }
    }

    /// Sends requests that have one reply each; gives the replies to `answered` with the place of
    /// their request. A request that fails gets the kernel's errno, and does not end the others.
    pub(crate) fn ask<A>(&mut self, requests: Vec<Message>, mut answered: A) -> Result<(), Cause>
    where
        A: FnMut(usize, Result<&[u8], Errno>) -> Result<(), Cause>,
    {
        let mut requests = requests.into_iter().peekable();
        let mut place = 0;
        while requests.peek().is_some() {
            let first = self.sequence.wrapping_add(1);
            let mut bytes = Vec::new();
            let mut open = 0usize;
            for request in requests.by_ref().take(BATCH) {
                self.sequence = self.sequence.wrapping_add(1);
                bytes.extend(request.finish(0, self.sequence));
                open += 1;
            }
            let mut replied = vec![false; open];
            self.exchange(&bytes, |message| {
                let offset = message.sequence.wrapping_sub(first) as usize;
                // What does not belong to this batch is none of ours.
                if let Some(replied) = replied.get_mut(offset).filter(|replied| !**replied) {
                    *replied = true;
                    answered(place + offset, message.content())?;
                }
                Ok(replied.iter().all(|replied| *replied))
            })?;
            place += open;
        }
        Ok(())
    }

    /// Sends a dump request and gives every message of the answer to `found`, in a list that no
    /// change interrupted.
    pub(crate) fn dump<T>(
        &mut self,
        request: &Message,
        found: impl Fn(&[u8]) -> Result<T, Cause>,
    ) -> Result<Vec<T>, Cause> {
        for _ in 0..DUMP_TRIES {
            self.sequence = self.sequence.wrapping_add(1);
            let mut answer = Dump { sequence: self.sequence, list: Vec::new(), interrupted: false };
            self.exchange(&request.clone().finish(DUMP, self.sequence), |message| {
                answer.take(message, &found)
            })?;
            if !answer.interrupted {
                return Ok(answer.list);
            }
        }
        Err(Cause::Os(libc::EAGAIN))
    }

    /// Sends `request`, then reads until `next` says that it has seen all.
    fn exchange(
        &mut self,
        request: &[u8],
        mut next: impl FnMut(&Reply<'_>) -> Result<bool, Cause>,
    ) -> Result<(), Cause> {
        if self.peer.send(request).map_err(Cause::of)? != request.len() {
            return Err(Cause::Malformed("a netlink request was sent in part"));
        }
        loop {
            let has_all = self.peer.receive(|datagram| {
                // Any process may write to a netlink socket; the kernel is number 0. What has no
                // sender is nobody's answer.
                if datagram.sender != Some(0) {
                    return Ok(false);
                }
                if datagram.is_cut {
                    return Err(Cause::Malformed("a netlink datagram longer than the kernel's"));
                }
                for message in Replies(datagram.bytes) {
                    if next(&message?)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            })?;
            if has_all {
                return Ok(());
            }
        }
    }
}

/// The answer to a dump request, as it comes in.
#[derive(Debug)]
struct Dump<T> {
    sequence: u32,
    list: Vec<T>,
    /// The list changed while it was dumped.
    interrupted: bool,
}

impl<T> Dump<T> {
    /// Takes the next message; says whether it was the last.
    fn take(
        &mut self,
        message: &Reply<'_>,
        found: impl Fn(&[u8]) -> Result<T, Cause>,
    ) -> Result<bool, Cause> {
        if message.sequence != self.sequence {
            return Ok(false);
        }
        self.interrupted |= message.flags & DUMP_INTR != 0;
        let content = message.content().map_err(Cause::of)?;
        if message.kind != DONE {
            self.list.push(found(content)?);
        }
        Ok(message.kind == DONE)
    }
}

#[cfg(test)]
mod tests;
