//! What is expected of a field, so that a value is found in a long list without looking through it.

use super::field::{Allowed, Field, Form, Value};
use crate::choose::Network;

/// What is expected of a field of a group's devices.
pub(super) struct Expected<'p> {
    pub(super) field: Field,
    pub(super) allowed: &'p Allowed,
    lookup: Lookup<'p>,
}

enum Lookup<'p> {
    /// One of these, which ascend.
    Values(Vec<&'p Value>),
    /// All of these, each once.
    All(Vec<&'p Value>),
    /// An address in one of these, which ascend and have so many bits.
    Networks(Vec<Network>, Vec<u8>),
    /// A number of a range.
    Range,
}

impl<'p> Expected<'p> {
    pub(super) fn of(field: Field, allowed: &'p Allowed) -> Self {
        let lookup = match (field.form(), allowed) {
            (_, Allowed::Within { .. }) => Lookup::Range,
            (Form::PKeys, Allowed::OneOf(all)) => {
                let mut all: Vec<&Value> = all.iter().collect();
                all.sort_unstable();
                all.dedup();
                Lookup::All(all)
            }
            (Form::Networks, Allowed::OneOf(all)) => {
                let networks = all.iter().filter_map(|own| match own {
                    Value::Network(own) => Some(Network::of(own.address, own.bits)),
                    _ => None,
                });
                let mut networks: Vec<Network> = networks.collect();
                networks.sort_unstable();
                let mut bits: Vec<u8> = networks.iter().map(|own| own.bits).collect();
                bits.sort_unstable();
                bits.dedup();
                Lookup::Networks(networks, bits)
            }
            (_, Allowed::OneOf(all)) => {
                let mut all: Vec<&Value> = all.iter().collect();
                all.sort_unstable();
                Lookup::Values(all)
            }
        };
        Self { field, allowed, lookup }
    }

    /// Whether what was seen is allowed.
    pub(super) fn fits(&self, seen: &[Value]) -> bool {
        match &self.lookup {
            Lookup::Values(all) => seen.iter().any(|own| all.binary_search(&own).is_ok()),
            Lookup::All(all) => {
                let mut seen: Vec<&Value> = seen.iter().collect();
                seen.sort_unstable();
                all.iter().all(|own| seen.binary_search(own).is_ok())
            }
            Lookup::Networks(all, bits) => seen.iter().any(|own| {
                let Value::Network(own) = own else { return false };
                bits.iter().any(|bits| all.binary_search(&Network::of(own.address, *bits)).is_ok())
            }),
            Lookup::Range => seen
                .iter()
                .any(|own| matches!(own, Value::Number(own) if self.allowed.has_number(*own))),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn network() -> impl Strategy<Value = Value> {
        let address = prop_oneof![
            (0u32..8).prop_map(|low| std::net::Ipv4Addr::from_bits(low).into()),
            (0u128..8).prop_map(|low| std::net::Ipv6Addr::from_bits(low).into()),
            Just(std::net::Ipv4Addr::BROADCAST.into()),
        ];
        let bits = prop_oneof![Just(0u8), 28..35u8, 125..=129u8];
        (address, bits).prop_map(|(address, bits)| Value::Network(Network { address, bits }))
    }

    proptest! {
        /// As each network says of each address.
        #[test]
        fn an_address_is_in_a_network(
            all in proptest::collection::vec(network(), 1..5),
            seen in proptest::collection::vec(network(), 0..3),
        ) {
            let has = |one: &Value, own: &Value| {
                let (Value::Network(one), Value::Network(own)) = (one, own) else { return false };
                one.has(own.address)
            };
            let is_in = seen.iter().any(|own| all.iter().any(|one| has(one, own)));
            let allowed = Allowed::OneOf(all);
            prop_assert_eq!(Expected::of(Field::RoceV2Ipv4, &allowed).fits(&seen), is_in);
        }
    }
}
