//! What is expected of a field, and how many devices: a value is found in a long list without looking through it.

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

/// How many devices are expected of a group.
pub(super) struct Count<'p> {
    pub(super) allowed: &'p Allowed,
    /// The numbers of a list. They ascend.
    numbers: Vec<u64>,
}

impl<'p> Count<'p> {
    pub(super) fn of(allowed: &'p Allowed) -> Self {
        let number = |own: &Value| match own {
            Value::Number(own) => Some(*own),
            _ => None,
        };
        let mut numbers: Vec<u64> = match allowed {
            Allowed::OneOf(values) => values.iter().filter_map(number).collect(),
            Allowed::Within { .. } => Vec::new(),
        };
        numbers.sort_unstable();
        Self { allowed, numbers }
    }

    pub(super) fn has(&self, number: u64) -> bool {
        match self.allowed {
            Allowed::OneOf(_) => self.numbers.binary_search(&number).is_ok(),
            Allowed::Within { .. } => self.allowed.has_number(number),
        }
    }

    /// The least number above this one.
    pub(super) fn next(&self, number: u64) -> Option<u64> {
        let above = number.checked_add(1)?;
        match self.allowed {
            Allowed::OneOf(_) => {
                let place = self.numbers.partition_point(|own| *own < above);
                self.numbers.get(place).copied()
            }
            Allowed::Within { min, max } => {
                let least = min.map_or(above, |own| own.max(above));
                max.is_none_or(|own| least <= own).then_some(least)
            }
        }
    }

    /// Whether more than a number is allowed, and not more than the other one.
    pub(super) fn allows_more(&self, number: u64, most: u64) -> bool {
        self.next(number).is_some_and(|own| own <= most)
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

    fn counts() -> impl Strategy<Value = Allowed> {
        let within = (proptest::option::of(0..6u64), proptest::option::of(0..6u64));
        prop_oneof![
            proptest::collection::vec((0..6u64).prop_map(Value::Number), 0..4)
                .prop_map(Allowed::OneOf),
            within.prop_map(|(min, max)| Allowed::Within { min, max }),
        ]
    }

    proptest! {
        #[test]
        fn a_count_is_as_each_number_says(allowed in counts(), number in 0..8u64, most in 0..8u64) {
            let count = Count::of(&allowed);
            prop_assert_eq!(count.has(number), allowed.has_number(number));
            let mut above = (number + 1)..20;
            prop_assert_eq!(count.next(number), above.clone().find(|own| allowed.has_number(*own)));
            let is_any = above.any(|own| own <= most && allowed.has_number(own));
            prop_assert_eq!(count.allows_more(number, most), is_any);
        }

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
