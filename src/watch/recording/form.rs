//! The serde form of a recording's lines. `tests/schemas/recording.json` describes them.

use core::num::NonZeroU32;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::de::{DeserializeSeed as _, Deserializer, IgnoredAny};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

use super::super::Origin;
use super::time::{format_time, parse_time};
use crate::form::{self, Parsed};
use crate::inventory::{DeviceRecord, GidRow, Inventory, PortRecord};
use crate::netdev::Interface;

/// What an inventory says that begins a recording, or a file of one, beside what is in any snapshot.
#[derive(Serialize, Deserialize)]
pub(super) struct Head {
    pub(super) recording: Begun,
}

/// What a document is: an inventory begins a recording, or a line goes on with it.
#[derive(Default, Deserialize)]
#[serde(expecting = "an object")]
pub(super) struct Mark {
    pub(super) recording: Option<IgnoredAny>,
    pub(super) number: Option<IgnoredAny>,
}

/// When it was read.
#[derive(Serialize, Deserialize)]
#[serde(expecting = "an object")]
pub(super) struct Begun {
    /// One more than that of the line before, so that it shows if lines are missing.
    pub(super) number: u64,
    pub(super) time: Time,
    pub(super) monotonic_ns: u64,
    /// Whether the file before ends where this one begins.
    pub(super) goes_on: bool,
}

/// All other lines. One without changes says that all is as before.
#[derive(Serialize, Deserialize)]
#[serde(expecting = "a line of a recording")]
pub(super) struct Line {
    pub(super) number: u64,
    pub(super) time: Time,
    pub(super) monotonic_ns: u64,
    #[serde(default, deserialize_with = "form::list", skip_serializing_if = "Vec::is_empty")]
    pub(super) causes: Vec<CauseWord>,
    #[serde(default, deserialize_with = "form::list", skip_serializing_if = "Vec::is_empty")]
    pub(super) changes: Vec<Step>,
}

/// What is now, and was not so before. Which of the keys are there says what it is.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, expecting = "an object")]
pub(super) struct Step {
    /// A device as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) whole: Option<Box<DeviceRecord>>,
    /// The name of that device, if it is another one than had the name before.
    #[serde(deserialize_with = "form::plain", skip_serializing_if = "Option::is_none")]
    pub(super) replaced: Option<String>,
    /// The name of the device of which the next ones are.
    #[serde(deserialize_with = "form::plain", skip_serializing_if = "Option::is_none")]
    pub(super) device: Option<String>,
    /// A port, without its GIDs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) port: Option<Box<PortRecord>>,
    /// A row of the GID table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) row: Option<Box<GidRow>>,
    /// A slot of the table that is empty: port and index.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) empty: Option<(u32, u32)>,
    /// An asynchronous event: its type and its element.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) event: Option<(u32, u64)>,
    /// The kernel's index of the device, if that is renamed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) index: Option<u32>,
    /// A network interface.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) interface: Option<Box<Interface>>,
    /// The index of an interface that is gone, or renamed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ifindex: Option<NonZeroU32>,
    /// The names of a device or an interface that is renamed, before and now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) renamed: Option<(String, String)>,
    /// Whether the device, or the interface, is gone.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub(super) is_gone: bool,
    /// The host, without its devices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) host: Option<Box<Inventory>>,
    /// Whose messages were lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) lost: Option<CauseWord>,
}

/// A time, to milliseconds as it is shown: so what is read off can be asked for.
#[derive(Clone, Copy)]
pub(super) struct Time(pub(super) SystemTime);

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&format_time(self.0, 3))
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let time = Parsed { expected: "a time", parse: parse_time }.deserialize(from)?;
        // As a recorder writes it, and as one asks for it.
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(Self(time - Duration::from_nanos((since.subsec_nanos() % 1_000_000).into())))
    }
}

/// What caused a reading, as a word.
#[derive(Clone, Copy, Debug)]
pub(super) struct CauseWord(pub(super) Origin);

impl Serialize for CauseWord {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.0.name())
    }
}

impl<'de> Deserialize<'de> for CauseWord {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let parse = |text: &str| Origin::ALL.into_iter().find(|own| own.name() == text);
        Parsed { expected: "a cause", parse }.deserialize(from).map(Self)
    }
}
