//! Netlink: requests in a batch, replies as they come.
//!
//! One socket for RDMA netlink (devices, character devices, ports) or for route netlink
//! (interfaces, addresses). Requests of a batch go out in one system call and their replies come
//! back in one, as the kernel has queued them all when the first returns. So nothing here ever
//! blocks. Replies are taken apart with every length checked; what the messages mean is known to
//! [`crate::device`] and [`crate::netdev`].

pub(crate) mod rdma;
#[cfg(feature = "simulated-kernel")]
pub mod replies;
pub(crate) mod route;

use std::io::IoSliceMut;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::libc;
use nix::sys::socket::{MsgFlags, MultiHeaders, NetlinkAddr, recvmmsg};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{AddressFamily, Protocol, SendFlags, SocketFlags, SocketType};

use crate::error::Cause;

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

/// Length of `struct nlmsghdr`.
const HEADER: usize = 16;

// Message types and flags of `linux/netlink.h`.
const ERROR: u16 = 2;
const DONE: u16 = 3;
const REQUEST: u16 = 0x1;
const DUMP_INTR: u16 = 0x10;
const DUMP: u16 = 0x300;

/// A request under construction.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    bytes: Vec<u8>,
}

impl Message {
    /// A message of `kind`; `body` is what stands before the attributes (RDMA netlink: nothing).
    pub(crate) fn new(kind: u16, body: &[u8]) -> Self {
        let mut bytes = vec![0; HEADER];
        put(&mut bytes, 4, &kind.to_ne_bytes());
        bytes.extend_from_slice(body);
        bytes.resize(align(bytes.len()), 0);
        Self { bytes }
    }

    /// Appends an attribute. Payloads are short: a number or a name.
    pub(crate) fn attribute(mut self, kind: u16, payload: &[u8]) -> Self {
        let length = u16::try_from(payload.len() + 4).unwrap_or(u16::MAX);
        self.bytes.extend_from_slice(&length.to_ne_bytes());
        self.bytes.extend_from_slice(&kind.to_ne_bytes());
        self.bytes.extend_from_slice(payload);
        self.bytes.resize(align(self.bytes.len()), 0);
        self
    }

    pub(crate) fn number(self, kind: u16, value: u32) -> Self {
        self.attribute(kind, &value.to_ne_bytes())
    }

    pub(crate) fn text(self, kind: u16, value: &str) -> Self {
        let mut bytes = value.as_bytes().to_vec();
        bytes.push(0);
        self.attribute(kind, &bytes)
    }

    fn finish(mut self, flags: u16, sequence: u32) -> Vec<u8> {
        let length = u32::try_from(self.bytes.len()).unwrap_or(u32::MAX);
        put(&mut self.bytes, 0, &length.to_ne_bytes());
        put(&mut self.bytes, 6, &(REQUEST | flags).to_ne_bytes());
        put(&mut self.bytes, 8, &sequence.to_ne_bytes());
        self.bytes
    }
}

#[cfg(test)]
impl Message {
    /// The message without its header, as a reply's payload.
    pub(crate) fn finish_for_test(self) -> Vec<u8> {
        self.bytes.get(HEADER..).unwrap_or_default().to_vec()
    }
}

fn align(length: usize) -> usize {
    length.next_multiple_of(4)
}

fn put(bytes: &mut [u8], offset: usize, value: &[u8]) {
    for (place, byte) in bytes.iter_mut().skip(offset).zip(value) {
        *place = *byte;
    }
}

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
        let bytes = Message::new(ERROR, &code).finish(0, sequence);
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

/// One message of a datagram.
#[derive(Debug)]
pub(crate) struct Reply<'b> {
    kind: u16,
    flags: u16,
    sequence: u32,
    payload: &'b [u8],
}

impl Reply<'_> {
    /// What stands behind the header; the errno of an error message, or of a dump that failed
    /// on its way.
    pub(crate) fn content(&self) -> Result<&[u8], Errno> {
        if self.kind != ERROR && self.kind != DONE {
            return Ok(self.payload);
        }
        match self.payload.first_chunk().map(|bytes| i32::from_ne_bytes(*bytes)) {
            Some(0) => Ok(&[]),
            // The end of a dump may say nothing, or a length.
            None | Some(1..) if self.kind == DONE => Ok(&[]),
            Some(negative @ -4095..0) => Err(Errno::from_raw_os_error(-negative)),
            _ => Err(Errno::PROTO),
        }
    }
}

/// The messages of a datagram.
pub(crate) struct Replies<'b>(pub(crate) &'b [u8]);

impl<'b> Iterator for Replies<'b> {
    type Item = Result<Reply<'b>, Cause>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let message = split(self.0);
        self.0 = message.as_ref().map_or(&[], |(_, rest)| rest);
        Some(message.map(|(message, _)| message).ok_or(Cause::Malformed("a netlink message")))
    }
}

fn split(bytes: &[u8]) -> Option<(Reply<'_>, &[u8])> {
    let length = usize::try_from(number_at(bytes, 0)?).ok()?;
    let payload = bytes.get(HEADER..length)?;
    let reply = Reply {
        kind: short_at(bytes, 4)?,
        flags: short_at(bytes, 6)?,
        sequence: number_at(bytes, 8)?,
        payload,
    };
    Some((reply, bytes.get(align(length)..).unwrap_or_default()))
}

/// As [`number_at`], of two bytes.
fn short_at(bytes: &[u8], offset: usize) -> Option<u16> {
    bytes.get(offset..)?.first_chunk().map(|bytes| u16::from_ne_bytes(*bytes))
}

/// The number at an offset of a message's fixed part.
pub(crate) fn number_at(bytes: &[u8], offset: usize) -> Option<u32> {
    bytes.get(offset..)?.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes))
}

/// An attribute of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Attribute<'b> {
    pub(crate) kind: u16,
    payload: &'b [u8],
}

impl<'b> Attribute<'b> {
    pub(crate) fn bytes(&self) -> &'b [u8] {
        self.payload
    }

    /// A number of any width; the kernel has used several for the same attribute.
    pub(crate) fn number(&self) -> Result<u64, Cause> {
        let bytes = self.payload;
        if let Ok(byte) = bytes.try_into().map(u8::from_ne_bytes) {
            Ok(byte.into())
        } else if let Ok(short) = bytes.try_into().map(u16::from_ne_bytes) {
            Ok(short.into())
        } else if let Ok(word) = bytes.try_into().map(u32::from_ne_bytes) {
            Ok(word.into())
        } else {
            let long = bytes.try_into().map(u64::from_ne_bytes);
            long.map_err(|_| Cause::Malformed("a netlink number"))
        }
    }

    pub(crate) fn u32(&self) -> Result<u32, Cause> {
        u32::try_from(self.number()?).map_err(|_| Cause::Malformed("a netlink number"))
    }

    pub(crate) fn u8(&self) -> Result<u8, Cause> {
        u8::try_from(self.number()?).map_err(|_| Cause::Malformed("a netlink number"))
    }

    /// A text, up to its NUL.
    pub(crate) fn text(&self) -> String {
        let text = self.payload.split(|byte| *byte == 0).next().unwrap_or_default();
        String::from_utf8_lossy(text).into_owned()
    }
}

/// The attributes behind a message's fixed part; a broken length ends them with an error.
pub(crate) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = Result<Attribute<'_>, Cause>> {
    core::iter::from_fn(move || {
        if bytes.is_empty() {
            return None;
        }
        let Some((attribute, rest)) = split_attribute(bytes) else {
            bytes = &[];
            return Some(Err(Cause::Malformed("a netlink attribute")));
        };
        bytes = rest;
        Some(Ok(attribute))
    })
}

fn split_attribute(bytes: &[u8]) -> Option<(Attribute<'_>, &[u8])> {
    /// Nesting and byte order stand in the two upper bits.
    const KIND: u16 = 0x3fff;
    let length = usize::from(short_at(bytes, 0)?);
    let kind = short_at(bytes, 2)? & KIND;
    let payload = bytes.get(4..length)?;
    Some((Attribute { kind, payload }, bytes.get(align(length)..).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_reads_back() {
        let bytes = Message::new(0x1405, &[]).number(1, 7).text(69, "uverbs").finish(0, 9);
        assert_eq!(bytes.len(), 16 + 8 + 12);
        let replies: Vec<_> = Replies(&bytes).map(Result::unwrap).collect();
        assert_eq!(replies.len(), 1);
        let reply = &replies[0];
        assert_eq!((reply.kind, reply.flags, reply.sequence), (0x1405, REQUEST, 9));
        let list: Vec<_> = attributes(reply.payload).map(Result::unwrap).collect();
        assert_eq!(list[0].u32(), Ok(7));
        assert_eq!(list[1].text(), "uverbs");
    }

    #[test]
    fn broken_lengths_end_the_reading() {
        for length in [0u32, 15, 17, 1000, u32::MAX] {
            let mut bytes = Message::new(1, &[]).finish(0, 1);
            put(&mut bytes, 0, &length.to_ne_bytes());
            let results: Vec<_> = Replies(&bytes).collect();
            assert_eq!(results.len(), 1);
            assert!(results[0].is_err(), "{length}");
        }
        for length in [0u16, 3, 9, u16::MAX] {
            let mut bytes = Message::new(1, &[]).number(1, 1).bytes[HEADER..].to_vec();
            put(&mut bytes, 0, &length.to_ne_bytes());
            let results: Vec<_> = attributes(&bytes).collect();
            assert_eq!(results.len(), 1);
            assert!(results[0].is_err(), "{length}");
        }
    }

    #[test]
    fn the_next_message_and_attribute_begin_at_a_multiple_of_4() {
        // The length is that of the content, without what fills it up.
        let mut bytes = Message::new(1, b"abcde").finish(0, 1);
        put(&mut bytes, 0, &21u32.to_ne_bytes());
        bytes.extend(Message::new(2, &[]).text(1, "ab").number(2, 7).finish(0, 2));
        let replies: Vec<_> = Replies(&bytes).map(Result::unwrap).collect();
        let kinds: Vec<_> = replies.iter().map(|it| (it.kind, it.payload.len())).collect();
        assert_eq!(kinds, [(1, 5), (2, 16)]);
        let list: Vec<_> = attributes(replies[1].payload).map(Result::unwrap).collect();
        assert_eq!((list[0].text().as_str(), list[1].u32()), ("ab", Ok(7)));
    }

    #[test]
    fn numbers_of_every_width() {
        fn number(payload: &[u8]) -> Result<u64, Cause> {
            Attribute { kind: 0, payload }.number()
        }
        assert_eq!(number(&[5]), Ok(5));
        assert_eq!(number(&5u16.to_ne_bytes()), Ok(5));
        assert_eq!(number(&5u32.to_ne_bytes()), Ok(5));
        assert_eq!(number(&5u64.to_ne_bytes()), Ok(5));
        assert!(number(&[1, 2, 3]).is_err());
        assert!(number(&[]).is_err());
    }

    #[test]
    fn error_messages_carry_an_errno() {
        let reply = |code: i32| {
            let bytes = code.to_ne_bytes();
            Reply { kind: ERROR, flags: 0, sequence: 1, payload: &bytes }.content().map(<[u8]>::len)
        };
        assert_eq!(reply(0), Ok(0));
        assert_eq!(reply(-22), Err(Errno::INVAL));
        assert_eq!(reply(22), Err(Errno::PROTO));
        assert_eq!(reply(i32::MIN), Err(Errno::PROTO));
    }

    fn message(kind: u16, flags: u16, sequence: u32, payload: &[u8]) -> Vec<u8> {
        Message::new(kind, payload).finish(flags, sequence)
    }

    /// Takes datagrams as a dump with sequence number 7: the list, if it ended.
    fn dumped(datagram: &[Vec<u8>]) -> Result<Option<(Vec<u32>, bool)>, Cause> {
        let mut dump = Dump { sequence: 7, list: Vec::new(), interrupted: false };
        for reply in Replies(&datagram.concat()) {
            let number = |payload: &[u8]| number_at(payload, 0).ok_or(Cause::Malformed("short"));
            if dump.take(&reply?, number)? {
                return Ok(Some((dump.list, dump.interrupted)));
            }
        }
        Ok(None)
    }

    #[test]
    fn a_dump_of_several_parts() {
        let part = |n: u32| message(16, 2, 7, &n.to_ne_bytes());
        let done = |errno: i32| message(DONE, 2, 7, &errno.to_ne_bytes());
        assert_eq!(dumped(&[part(1), part(2), done(0)]), Ok(Some((vec![1, 2], false))));
        assert_eq!(dumped(&[part(1)]), Ok(None), "it goes on");
        let stale = message(16, 2, 6, &9u32.to_ne_bytes());
        let stale_end = message(DONE, 2, 6, &0u32.to_ne_bytes());
        assert_eq!(dumped(&[stale, stale_end, part(1), done(0)]), Ok(Some((vec![1], false))));
        let interrupted = message(16, 2 | DUMP_INTR, 7, &2u32.to_ne_bytes());
        assert_eq!(dumped(&[part(1), interrupted, done(0)]), Ok(Some((vec![1, 2], true))));
    }

    #[test]
    fn a_dump_that_fails_on_its_way_is_not_a_short_list() {
        let part = message(16, 2, 7, &1u32.to_ne_bytes());
        let done = message(DONE, 2, 7, &(-19i32).to_ne_bytes());
        assert_eq!(dumped(&[part.clone(), done]), Err(Cause::Os(libc::ENODEV)));
        let error = message(ERROR, 0, 7, &(-16i32).to_ne_bytes());
        assert_eq!(dumped(&[part, error]), Err(Cause::Os(libc::EBUSY)));
    }

    fn from(sender: Option<u32>, messages: &[Vec<u8>]) -> Datagram<Vec<u8>> {
        Datagram { sender, is_cut: false, bytes: messages.concat() }
    }

    /// What a socket makes of batches of datagrams as the answer to two questions.
    fn asked(batches: Vec<Vec<Datagram<Vec<u8>>>>) -> Result<Vec<(usize, u32)>, Cause> {
        let mut answers = Vec::new();
        let question = Message::new(0x1401, &[]);
        Socket::given(batches).ask(vec![question.clone(), question], |place, reply| {
            let number = number_at(reply.map_err(Cause::of)?, 0);
            answers.push((place, number.ok_or(Cause::Malformed("short"))?));
            Ok(())
        })?;
        Ok(answers)
    }

    #[test]
    fn only_the_kernel_is_listened_to() {
        let answer = |sequence, n: u32| message(0x1401, 0, sequence, &n.to_ne_bytes());
        let ours = from(Some(0), &[answer(1, 10), answer(2, 20)]);
        assert_eq!(asked(vec![vec![ours.clone()]]), Ok(vec![(0, 10), (1, 20)]));
        for sender in [None, Some(7)] {
            let theirs = from(sender, &[answer(1, 66), answer(2, 66)]);
            let cut = Datagram { is_cut: true, ..theirs.clone() };
            let batches = vec![vec![theirs.clone(), cut], vec![theirs.clone(), ours.clone()]];
            assert_eq!(asked(batches), Ok(vec![(0, 10), (1, 20)]), "{sender:?}");
            assert_eq!(asked(vec![vec![theirs]]), Err(UNANSWERED));
        }
        let cut = Datagram { is_cut: true, ..ours };
        assert!(matches!(asked(vec![vec![cut]]), Err(Cause::Malformed(_))));
    }

    #[test]
    fn answers_come_in_any_order_and_once() {
        let answer = |sequence, n: u32| message(0x1401, 0, sequence, &n.to_ne_bytes());
        let batches = vec![
            vec![from(Some(0), &[answer(2, 20), answer(2, 21), answer(9, 9)])],
            vec![],
            vec![from(Some(0), &[answer(1, 10)]), from(Some(0), &[answer(1, 11)])],
        ];
        assert_eq!(asked(batches), Ok(vec![(1, 20), (0, 10)]));
    }

    #[test]
    fn more_questions_than_a_batch_holds_are_sent_in_several() {
        let count = BATCH + 3;
        let answer = |sequence: usize| {
            let sequence = u32::try_from(sequence).unwrap();
            from(Some(0), &[message(0x1401, 0, sequence, &sequence.to_ne_bytes())])
        };
        let batches =
            vec![(1..=BATCH).map(answer).collect(), (BATCH + 1..=count).map(answer).collect()];
        let mut socket = Socket::given(batches);
        let mut places = Vec::new();
        socket
            .ask(vec![Message::new(0x1401, &[]); count], |place, _| {
                places.push(place);
                Ok(())
            })
            .unwrap();
        assert_eq!(places, (0..count).collect::<Vec<_>>());
        let Peer::Given(given) = &socket.peer else { panic!("a real socket") };
        let lengths: Vec<_> = given.sent.iter().map(Vec::len).collect();
        assert_eq!(lengths, [BATCH * HEADER, 3 * HEADER]);
    }

    #[test]
    fn an_interrupted_dump_is_asked_for_again() {
        let part =
            |flags: u16, sequence, n: u32| message(16, 2 | flags, sequence, &n.to_ne_bytes());
        let done = |flags: u16, sequence| message(DONE, 2 | flags, sequence, &[0; 4]);
        let number = |payload: &[u8]| number_at(payload, 0).ok_or(Cause::Malformed("short"));
        let batches = vec![
            vec![from(Some(0), &[part(0, 1, 5), done(DUMP_INTR, 1)])],
            vec![from(Some(0), &[part(0, 1, 66)]), from(Some(0), &[part(0, 2, 6)])],
            vec![from(Some(0), &[part(0, 2, 7), done(0, 2)])],
        ];
        let request = Message::new(16, &[]);
        assert_eq!(Socket::given(batches).dump(&request, number), Ok(vec![6, 7]));
        let always = (1..=DUMP_TRIES).map(|n| vec![from(Some(0), &[done(DUMP_INTR, n)])]).collect();
        assert_eq!(Socket::given(always).dump(&request, number), Err(Cause::Os(libc::EAGAIN)));
        // An errno of the kernel's is not silence.
        let busy = message(ERROR, 0, 1, &(-11i32).to_ne_bytes());
        let answer = Socket::given(vec![vec![from(Some(0), &[busy])]]).dump(&request, number);
        assert_eq!(answer, Err(Cause::Os(libc::EAGAIN)));
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
            let mut length = 0;
            for reply in Replies(&bytes) {
                length += 1;
                if let Ok(reply) = reply {
                    let _ = reply.content();
                }
            }
            proptest::prop_assert!(length <= bytes.len() / HEADER + 1);
            for attribute in attributes(&bytes).flatten() {
                let _ = (attribute.number(), attribute.text(), attribute.u8());
            }
        }
    }

    #[test]
    fn a_real_route_socket_answers_in_one_exchange() {
        let mut socket = Socket::route().unwrap();
        let request = Message::new(libc::RTM_GETLINK, &[0; 16]);
        let links = socket.dump(&request, |payload| Ok(number_at(payload, 4))).unwrap();
        assert!(links.contains(&Some(1)), "the loopback interface: {links:?}");
        let mut results = Vec::new();
        socket
            .ask(vec![request.clone().number(29, 0), request], |place, result| {
                results.push((place, result.is_ok()));
                Ok(())
            })
            .unwrap();
        assert_eq!(results, [(0, false), (1, false)], "no interface is named");
    }
}
