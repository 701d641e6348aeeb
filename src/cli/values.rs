//! Values that tables and JSON show in one form.

use std::fmt::{self, Display, LowerHex};

use serde::{Serialize, Serializer};
use uverbs::port::Rate;

/// The text of a cell without a value.
pub(crate) const NONE: &str = "-";

/// A value's text, or [`NONE`].
pub(crate) fn cell<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| NONE.to_owned(), |value| value.to_string())
}

/// A value whose JSON is its text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text<T>(pub(crate) T);

impl<T: Display> Serialize for Text<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&self.0)
    }
}

impl<T: Display> Display for Text<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A number that is `0x` and its hexadecimal digits, in text and in JSON.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hex<T>(pub(crate) T);

impl<T: LowerHex> Serialize for Hex<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<T: LowerHex> Display for Hex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// A rate as its number of Gb/s, with a fraction only where there is one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gbps(pub(crate) Rate);

impl Serialize for Gbps {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        if self.0.0 % 10 == 0 {
            to.serialize_u64(self.0.0 / 10)
        } else {
            to.serialize_f64(self.0.gbps())
        }
    }
}

/// An object of these keys, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pairs<V>(pub(crate) Vec<(String, V)>);

impl<V: Serialize> Serialize for Pairs<V> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}
