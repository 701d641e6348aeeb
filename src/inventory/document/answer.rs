//! An answer, or why there is none, in a document.

use core::fmt;
use core::marker::PhantomData;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{
    Deserializer, Error, IntoDeserializer as _, MapAccess, SeqAccess, Unexpected, Visitor,
};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

use crate::form;
use crate::inventory::{Answer, Problem};

/// An answer. A problem is an object, which no answer is.
pub(super) struct Told<T>(pub(super) Answer<T>);

impl<T: Serialize> Serialize for Told<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Ok(answer) => answer.serialize(to),
            Err(problem) => problem.serialize(to),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Told<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Either<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Either<T> {
            type Value = Answer<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an answer or a problem")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                Problem::deserialize(MapAccessDeserializer::new(map)).map(Err)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Self::Value, A::Error> {
                T::deserialize(SeqAccessDeserializer::new(items)).map(Ok)
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                T::deserialize(text.into_deserializer()).map(Ok)
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
                T::deserialize(number.into_deserializer()).map(Ok)
            }

            fn visit_bool<E: Error>(self, value: bool) -> Result<Self::Value, E> {
                T::deserialize(value.into_deserializer()).map(Ok)
            }
        }

        from.deserialize_any(Either(PhantomData)).map(Self)
    }
}

/// That something was done: `true`.
pub(super) struct Done;

impl Serialize for Done {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bool(true)
    }
}

impl<'de> Deserialize<'de> for Done {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        if bool::deserialize(from)? {
            return Ok(Self);
        }
        Err(D::Error::invalid_value(Unexpected::Bool(false), &"true or a problem"))
    }
}

/// A list with a bound.
#[derive(Serialize)]
#[serde(transparent)]
pub(super) struct Items<T>(pub(super) Vec<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Items<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        form::list(from).map(Self)
    }
}
