//! Netlink's messages: requests under construction, and replies taken apart with every length checked.

use rustix::io::Errno;

use crate::error::Cause;

/// Length of `struct nlmsghdr`.
pub(super) const HEADER: usize = 16;

// Message types and flags of `linux/netlink.h`.
pub(super) const ERROR: u16 = 2;
pub(super) const DONE: u16 = 3;
pub(super) const REQUEST: u16 = 0x1;
pub(super) const DUMP_INTR: u16 = 0x10;
pub(super) const DUMP: u16 = 0x300;

/// A request under construction.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(super) bytes: Vec<u8>,
}

impl Message {
    /// A message of `kind`; `body` comes before the attributes (RDMA netlink: nothing).
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

    pub(super) fn finish(mut self, flags: u16, sequence: u32) -> Vec<u8> {
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

pub(super) fn align(length: usize) -> usize {
    length.next_multiple_of(4)
}

pub(super) fn put(bytes: &mut [u8], offset: usize, value: &[u8]) {
    for (place, byte) in bytes.iter_mut().skip(offset).zip(value) {
        *place = *byte;
    }
}

/// One message of a datagram.
#[derive(Debug)]
pub(crate) struct Reply<'b> {
    pub(super) kind: u16,
    pub(super) flags: u16,
    pub(super) sequence: u32,
    pub(super) payload: &'b [u8],
}

impl Reply<'_> {
    /// What follows the header; the errno of an error message, or of a dump that failed
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
pub(crate) fn short_at(bytes: &[u8], offset: usize) -> Option<u16> {
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
    pub(super) payload: &'b [u8],
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

/// The attributes after a message's fixed part; a broken length ends them with an error.
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
    /// The two upper bits are flags: nested, network byte order.
    const KIND: u16 = 0x3fff;
    let length = usize::from(short_at(bytes, 0)?);
    let kind = short_at(bytes, 2)? & KIND;
    let payload = bytes.get(4..length)?;
    Some((Attribute { kind, payload }, bytes.get(align(length)..).unwrap_or_default()))
}
