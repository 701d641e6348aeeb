//! Orders to a function while it runs.
//!
//! Each line in both directions is one JSON object: a [`Request`] to the function with that number, then a
//! [`Response`]. The answer to an invalid order is [`Reply::Error`], and nothing changes.

use crate::description::Description;
use serde::{Deserialize, Serialize};

/// An order for one of the functions of a machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// Number of the request, which its response has too: who has given up waiting for one
    /// response knows it by that when it comes.
    pub number: u64,
    /// The function's number, from 0.
    pub function: usize,
    /// What it is to do.
    pub order: Order,
}

/// What comes back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Response {
    /// The request's number; `None` if that could not be read.
    pub number: Option<u64>,
    /// The answer to the order.
    pub reply: Reply,
}

/// An order to a function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Tell what it is now.
    Describe,
    /// Be another one: for when no driver is bound, or to change what the driver finds at its next
    /// question. Failures are forgotten, those of its health too.
    Become(Box<Description>),
    /// Tell the commands whose number is at least this one. The last 100000 are kept; asking for
    /// older ones is an error.
    Commands {
        /// Number of the first one, from 0; [`Reply::Commands`] has the next.
        since: u64,
    },
    /// Treat commands with this opcode otherwise, until [`Clear`](Self::Clear).
    Inject {
        /// The opcode. What was injected for it before is forgotten.
        opcode: u16,
        /// What happens to them.
        fault: Fault,
    },
    /// Forget all that was injected. Commands that were held back are completed now.
    Clear,
    /// Post a port event (0x09) on the asynchronous event queue. What the driver then asks is
    /// answered from the description: set that first, with [`Become`](Self::Become).
    PortEvent {
        /// Port number, from 1.
        port: u8,
        /// 1 down, 4 active, 5 initialized, 6 LID, 7 P_Keys, 8 GUIDs, 9 client re-register.
        subtype: u8,
    },
    /// Be gone, as if pulled out of its slot: reads give ones, writes and commands are lost. The
    /// machine gets no notice, but may notice it.
    Unplug,
    /// Be there again, as after a reset; [`Reply::Unchanged`] where it was there.
    Plug,
    /// Set the syndrome of the health buffer: 0 is healthy; with `fatal` the driver is to give the
    /// device up.
    Health {
        /// The syndrome.
        syndrome: u8,
        /// Whether it is fatal.
        fatal: bool,
    },
}

/// What happens to a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// It is refused.
    Status {
        /// Status, not 0.
        status: u8,
        /// Syndrome.
        syndrome: u32,
    },
    /// It is carried out and answered this much later, in milliseconds.
    Delay(u32),
    /// It is carried out, and not answered until [`Order::Clear`]. A driver that has given up by then
    /// gets its slot back, which it needs to unload, and no data.
    Silence,
    /// Its slot is given back with this delivery status instead of an answer, 1 to 0x7f.
    Delivery(u8),
}

/// The answer to an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reply {
    /// Done.
    Done,
    /// There was nothing to do.
    Unchanged,
    /// What it is.
    Description(Box<Description>),
    /// The commands, the oldest first.
    Commands {
        /// The commands.
        commands: Vec<Command>,
        /// The number that the next command will have.
        next: u64,
    },
    /// It was not done; why.
    Error(String),
}

/// A command that the driver sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// Its number since the function was started.
    pub number: u64,
    /// Opcode.
    pub opcode: u16,
    /// User context in whose name it came; 0 for the driver's own.
    pub uid: u16,
    /// `op_mod`.
    pub op_mod: u16,
    /// The eight bytes after the header of the input.
    pub arguments: [u8; 8],
    /// Status of the answer; `None` if there is none, or none yet.
    pub status: Option<u8>,
}
