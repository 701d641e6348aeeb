//! What the serde forms of several modules share: objects that are checked, lists with a bound, and texts
//! that follow a rule.
//!
//! `serde_json` notes the place of an error at the end of the value in which it is raised. Each check here is
//! therefore made before the value is left. A message that begins with a dot goes on with the place:
//! `.ports: port numbers with a gap`.

use core::fmt::{self, Display};
use core::marker::PhantomData;
use core::num::NonZeroU32;
use std::path::{Path, PathBuf};

use serde::de::value::MapAccessDeserializer;
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde::ser::Serializer;

use crate::hardware::LANES;
use crate::netdev::VLAN_IDS;
use crate::text::{is_device_name, is_plain, is_shown_name};

/// The longest list in a document.
pub(crate) const LONGEST_LIST: usize = 100_000;

/// The longest text in a document, in characters. Errors and settings have bounds of their own.
const LONGEST_TEXT: usize = 4096;

/// Says that a text is not one that can be in this place.
pub(crate) fn misplaced<E: Error>(text: &str) -> E {
    /// So much of it says what it is.
    const SHOWN: usize = 60;
    let shown: String = text.chars().take(SHOWN).collect();
    let more = if shown.len() < text.len() { "…" } else { "" };
    E::custom(format_args!("{shown:?}{more} does not belong here"))
}

/// Reads an object as `S`, and makes it what it is, which may find a fault.
pub(crate) fn object<'de, D, S, T>(from: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    S: Deserialize<'de>,
    T: TryFrom<S>,
    T::Error: Display,
{
    struct Object<S, T>(PhantomData<(S, T)>);

    impl<'de, S, T> Visitor<'de> for Object<S, T>
    where
        S: Deserialize<'de>,
        T: TryFrom<S>,
        T::Error: Display,
    {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
            let read = S::deserialize(MapAccessDeserializer::new(map))?;
            T::try_from(read).map_err(A::Error::custom)
        }
    }

    from.deserialize_map(Object(PhantomData))
}

/// Reads a list with a bound.
pub(crate) fn list<'de, D, T>(from: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    List::default().deserialize(from)
}

/// What finds a fault of a list.
pub(crate) type Check<T> = fn(&[T]) -> Result<(), &'static str>;

/// A list with a bound and a check of the whole, of elements that `S` reads.
pub(crate) struct List<T, S = PhantomData<T>> {
    pub(crate) element: S,
    pub(crate) check: Check<T>,
}

impl<T> Default for List<T> {
    fn default() -> Self {
        Self { element: PhantomData, check: |_| Ok(()) }
    }
}

impl<'de, T, S: DeserializeSeed<'de, Value = T> + Copy> DeserializeSeed<'de> for List<T, S> {
    type Value = Vec<T>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Vec<T>, D::Error> {
        from.deserialize_seq(self)
    }
}

impl<'de, T, S: DeserializeSeed<'de, Value = T> + Copy> Visitor<'de> for List<T, S> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Vec<T>, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self.element)? {
            if list.len() == LONGEST_LIST {
                // To the end, where the place of the error is that of the list.
                while items.next_element::<IgnoredAny>()?.is_some() {}
                let what = format!("a list of more than {LONGEST_LIST}");
                return Err(A::Error::custom(what));
            }
            list.push(item);
        }
        (self.check)(&list).map_err(A::Error::custom)?;
        Ok(list)
    }
}

/// Reads what may be null.
pub(crate) struct Optional<S>(pub(crate) S);

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Optional<S> {
    type Value = Option<S::Value>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_option(self)
    }
}

impl<'de, S: DeserializeSeed<'de>> Visitor<'de> for Optional<S> {
    type Value = Option<S::Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value or null")
    }

    fn visit_none<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        self.0.deserialize(from).map(Some)
    }
}

/// Reads a value from its text, which `parse` understands.
pub(crate) struct Parsed<F> {
    pub(crate) expected: &'static str,
    pub(crate) parse: F,
}

impl<'de, T, F: Fn(&str) -> Option<T>> DeserializeSeed<'de> for Parsed<F> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<T, D::Error> {
        from.deserialize_str(self)
    }
}

impl<T, F: Fn(&str) -> Option<T>> Visitor<'_> for Parsed<F> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        (self.parse)(text).ok_or_else(|| misplaced(text))
    }
}

/// Reads a text that follows a rule.
#[derive(Clone, Copy)]
pub(crate) struct CheckedText(pub(crate) fn(&str) -> bool);

impl<'de> DeserializeSeed<'de> for CheckedText {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<String, D::Error> {
        let parse = |text: &str| (self.0)(text).then(|| text.to_owned());
        Parsed { expected: "a text", parse }.deserialize(from)
    }
}

/// What texts are read to: one, one that may be missing, or a list.
pub(crate) trait Texts: Sized {
    /// Reads it. Each text follows the rule.
    fn read<'de, D: Deserializer<'de>>(from: D, rule: CheckedText) -> Result<Self, D::Error>;
}

impl Texts for String {
    fn read<'de, D: Deserializer<'de>>(from: D, rule: CheckedText) -> Result<Self, D::Error> {
        rule.deserialize(from)
    }
}

impl Texts for PathBuf {
    fn read<'de, D: Deserializer<'de>>(from: D, rule: CheckedText) -> Result<Self, D::Error> {
        rule.deserialize(from).map(Self::from)
    }
}

impl Texts for Option<String> {
    fn read<'de, D: Deserializer<'de>>(from: D, rule: CheckedText) -> Result<Self, D::Error> {
        Optional(rule).deserialize(from)
    }
}

impl Texts for Vec<String> {
    fn read<'de, D: Deserializer<'de>>(from: D, rule: CheckedText) -> Result<Self, D::Error> {
        List { element: rule, check: |_| Ok(()) }.deserialize(from)
    }
}

impl Texts for Option<Vec<String>> {
    fn read<'de, D: Deserializer<'de>>(from: D, rule: CheckedText) -> Result<Self, D::Error> {
        Optional(List { element: rule, check: |_| Ok(()) }).deserialize(from)
    }
}

/// Reads texts that show as what they are. One can be in many lines of an answer, so it has a bound: it is a path, or
/// what a file of sysfs can have.
pub(crate) fn plain<'de, D: Deserializer<'de>, T: Texts>(from: D) -> Result<T, D::Error> {
    T::read(from, CheckedText(|own| is_plain(own) && own.chars().nth(LONGEST_TEXT).is_none()))
}

/// Reads names that a device can have.
pub(crate) fn device_name<'de, D: Deserializer<'de>, T: Texts>(from: D) -> Result<T, D::Error> {
    T::read(from, CheckedText(is_device_name))
}

/// Whether a document has an interface by this name: one that it is shown by, or `#` and its index.
pub(crate) fn is_written_name(name: &str) -> bool {
    let index = name.strip_prefix('#').and_then(|digits| digits.parse::<NonZeroU32>().ok());
    is_shown_name(name) || index.is_some_and(|index| *name == format!("#{index}"))
}

/// Reads names of network interfaces, or `#` and the index of one whose name does not show as what it is.
pub(crate) fn interface_name<'de, D: Deserializer<'de>, T: Texts>(from: D) -> Result<T, D::Error> {
    T::read(from, CheckedText(is_written_name))
}

/// Reads a number of PCIe lanes.
pub(crate) fn lanes<'de, D: Deserializer<'de>>(from: D) -> Result<u8, D::Error> {
    let own = u8::deserialize(from)?;
    LANES.contains(&own).then_some(own).ok_or_else(|| D::Error::custom("expected 1 to 32 lanes"))
}

/// Reads the id of a VLAN, or null.
pub(crate) fn vlan<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u16>, D::Error> {
    let own = Option::<u16>::deserialize(from)?;
    let is_one = own.is_none_or(|own| VLAN_IDS.contains(&own));
    is_one.then_some(own).ok_or_else(|| D::Error::custom("expected a VLAN id of 0 to 4094"))
}

/// Writes a path as a text. Bytes that are not UTF-8 are replaced.
pub(crate) fn write_path<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&path.display())
}

/// A MAC address as a text, or null.
pub(crate) mod mac {
    use super::{DeserializeSeed as _, Deserializer, Optional, Parsed, Serializer};

    /// Writes six pairs of hexadecimal digits.
    #[expect(
        clippy::ref_option,
        clippy::trivially_copy_pass_by_ref,
        reason = "serde's attribute calls it so"
    )]
    pub(crate) fn serialize<S: Serializer>(
        mac: &Option<[u8; 6]>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        match mac {
            Some(bytes) => to.serialize_some(&bytes.map(|byte| format!("{byte:02x}")).join(":")),
            None => to.serialize_none(),
        }
    }

    /// Reads six pairs of hexadecimal digits with colons between them.
    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<[u8; 6]>, D::Error> {
        let parse = |text: &str| {
            let mut mac = [0; 6];
            let mut bytes = text.split(':');
            for byte in &mut mac {
                // What is no digit, as a sign, is in no pair.
                let pair = bytes.next().filter(|own| own.len() == 2 && !own.starts_with('+'))?;
                *byte = u8::from_str_radix(pair, 16).ok()?;
            }
            bytes.next().is_none().then_some(mac)
        };
        Optional(Parsed { expected: "a MAC address", parse }).deserialize(from)
    }
}

#[cfg(test)]
mod tests {
    use super::is_written_name;

    #[test]
    fn names_of_interfaces_in_documents() {
        assert!(is_written_name("#5") && is_written_name("eth0"));
        for sign in ["-", "?", "#x", "#", "#05", "#+5", "#0", "eth0?"] {
            assert!(!is_written_name(sign), "{sign:?}");
        }
    }

    #[test]
    fn texts_have_a_bound() {
        for (count, is_read) in [(0, false), (1, true), (4096, true), (4097, false)] {
            let text = serde_json::to_string(&"ä".repeat(count)).unwrap();
            let mut from = serde_json::Deserializer::from_str(&text);
            let read: Result<String, _> = super::plain(&mut from);
            assert_eq!(read.is_ok(), is_read, "{count}");
        }
    }
}
