//! Hosts that are alike, and those that are odd.

use core::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::profile::{Field, Item, Profile};
use super::survey::Survey;

/// The groups of a fleet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Groups {
    /// The hosts of the usual group, with which the others are compared: the one that has most of what most hosts
    /// have. If more than half of the hosts are equal it is these. Hosts of which not everything is known are among
    /// them, if nothing is known to differ. What is not known of the usual host itself is what most others have.
    pub usual: Vec<u32>,
    /// The hosts of which not everything is known, ascending, also if they are odd.
    pub partly: Vec<u32>,
    /// The others: those that differ in the same way are one group. The most telling differences come first.
    pub odd: Vec<Group>,
}

/// Hosts that differ from the usual in the same way.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Group {
    /// The hosts, ascending.
    pub hosts: Vec<u32>,
    /// In what, most telling first.
    pub differences: Vec<Difference>,
}

/// A field that differs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Difference {
    /// The field.
    pub field: Field,
    /// What it is here, as `none` of a device without a NUMA node; `None` if the device, the port or the variable is not
    /// there.
    pub seen: Option<String>,
    /// What the usual hosts have.
    pub usual: Option<String>,
    /// The devices or ports (`mlx5_0:1`) or the variable; none if it is the host's own.
    pub places: Vec<String>,
    /// How many hosts have what is usual, of that of the places where they are fewest.
    pub count: usize,
}

/// A field that differs: what is seen, what is usual.
type Differing<'s> = ((Field, &'s str), Option<&'s str>, Option<&'s str>);

/// Places of what differs in the same way.
type Merged<'s> = BTreeMap<(Field, Option<&'s str>, Option<&'s str>), Vec<String>>;

/// The values of a profile.
type Values<'s> = BTreeMap<(Field, &'s str), &'s str>;

/// Hosts of which it is known what they have, and what not, by the fields that they may lack.
#[derive(Default)]
struct Whole<'s> {
    hosts: BTreeMap<Field, usize>,
    /// How many have something there.
    with: BTreeMap<(Field, &'s str), usize>,
}

impl Whole<'_> {
    /// How many are known to have nothing there.
    fn lacking(&self, key: (Field, &str)) -> usize {
        let hosts = self.hosts.get(&key.0).copied().unwrap_or_default();
        hosts - self.with.get(&key).copied().unwrap_or_default()
    }
}

impl Survey {
    /// Compares the hosts in all that should be alike.
    #[must_use]
    pub fn groups(&self) -> Groups {
        let mut members: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (host, profile) in (0u32..).zip(&self.hosts) {
            members.entry(*profile).or_default().push(host);
        }
        let counts = self.counts(&members);
        let whole = self.whole(&members);
        let usual = self.usual(&members, &whole, &counts);
        let Some(usual_profile) = usual.and_then(|own| self.profiles.get(own)) else {
            return Groups::default();
        };
        let wanted = self.wanted(usual_profile, &whole, &counts);
        let mut found: BTreeMap<Vec<Difference>, Vec<u32>> = BTreeMap::new();
        let mut groups = Groups::default();
        for (number, hosts) in members {
            let Some(profile) = self.profiles.get(number) else { continue };
            let own = self.values(profile);
            let differences =
                if Some(number) == usual { Vec::new() } else { compare(&own, profile, &wanted) };
            if !profile.is_read {
                groups.partly.extend(&hosts);
            }
            found.entry(differences).or_default().extend(hosts);
        }
        groups.partly.sort_unstable();
        for (differences, mut hosts) in found {
            hosts.sort_unstable();
            if differences.is_empty() {
                groups.usual = hosts;
            } else {
                groups.odd.push(Group { hosts, differences });
            }
        }
        self.count(&mut groups, &whole, &counts);
        groups
    }

    /// On how many hosts each item is.
    fn counts(&self, members: &BTreeMap<u32, Vec<u32>>) -> Vec<usize> {
        let mut counts = vec![0; self.items.len()];
        for (profile, hosts) in members {
            for item in self.profiles.get(*profile).iter().flat_map(|own| &own.items) {
                if let Some(count) = counts.get_mut(*item as usize) {
                    *count += hosts.len();
                }
            }
        }
        counts
    }

    /// The profile that differs least from what most hosts have, in what is known of it: so many hosts less have what it
    /// has. Of equal ones the first.
    fn usual(
        &self,
        members: &BTreeMap<u32, Vec<u32>>,
        whole: &Whole<'_>,
        counts: &[usize],
    ) -> Option<u32> {
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let of = |item: u32| {
            let Item { field, place, .. } = self.items.get(item)?;
            Some(((*field, &**place), *counts.get(item as usize)?))
        };
        let lacking = |key: (Field, &str)| if key.0.can_lack() { whole.lacking(key) } else { 0 };
        // How many hosts have what most have there, which may be nothing.
        let mut most: BTreeMap<(Field, &str), usize> = BTreeMap::new();
        for item in 0u32.. {
            let Some((key, count)) = of(item) else { break };
            let own = most.entry(key).or_insert_with(|| lacking(key));
            *own = count.max(*own);
        }
        // What comes of lacking it, and of lacking everything.
        let lacked = |key: (Field, &str), most: usize| number(most) - number(lacking(key));
        let mut all_lacked: BTreeMap<Field, i64> = BTreeMap::new();
        for (key, most) in most.iter().filter(|(key, _)| key.0.can_lack()) {
            *all_lacked.entry(key.0).or_default() += lacked(*key, *most);
        }
        let difference = |number_of_profile: &u32| -> i64 {
            let Some(profile) = self.profiles.get(*number_of_profile) else { return i64::MAX };
            let is_whole = |field: &Field| profile.is_whole(*field);
            let fields = all_lacked.iter().filter(|(field, _)| is_whole(field));
            let known = profile.items.iter().filter_map(|item| of(*item)).map(|(key, count)| {
                let most = most.get(&key).copied().unwrap_or_default();
                let is_lackable = key.0.can_lack() && is_whole(&key.0);
                let not_lacked = if is_lackable { lacked(key, most) } else { 0 };
                number(most) - number(count) - not_lacked
            });
            fields.map(|(_, own)| own).sum::<i64>() + known.sum::<i64>()
        };
        members.keys().copied().min_by_key(|own| (difference(own), *own))
    }

    /// The hosts whose devices, or whose settings, could all be listed.
    fn whole(&self, members: &BTreeMap<u32, Vec<u32>>) -> Whole<'_> {
        let mut whole = Whole::default();
        for (profile, hosts) in members {
            let Some(own) = self.profiles.get(*profile) else { continue };
            let is_whole = |field: &Field| field.can_lack() && own.is_whole(*field);
            for field in [Field::Present, Field::Setting].into_iter().filter(is_whole) {
                *whole.hosts.entry(field).or_default() += hosts.len();
            }
            for key in self.values(own).into_keys().filter(|(field, _)| is_whole(field)) {
                *whole.with.entry(key).or_default() += hosts.len();
            }
        }
        whole
    }

    /// What is usual: the values of a profile, and where something could not be read there, what most others have.
    fn wanted<'s>(&'s self, usual: &Profile, whole: &Whole<'s>, counts: &[usize]) -> Values<'s> {
        let mut wanted = self.values(usual);
        let mut most: BTreeMap<(Field, &str), (usize, Reverse<u32>, &str)> = BTreeMap::new();
        for (number, count) in (0u32..).zip(counts) {
            let Some(Item { field, place, value }) = self.items.get(number) else { continue };
            let own = (*count, Reverse(number), &**value);
            let best = most.entry((*field, place)).or_insert(own);
            *best = own.max(*best);
        }
        // In the order of fields: devices and ports come first.
        for (key, (count, _, value)) in most {
            let (field, place) = key;
            let is_there = place.is_empty() || wanted.contains_key(&(Field::Present, place));
            let is_usual = if field.can_lack() {
                !usual.is_whole(field) && count >= whole.lacking(key)
            } else {
                is_there
            };
            if is_usual {
                wanted.entry(key).or_insert(value);
            }
        }
        wanted
    }

    /// Counts for each difference the hosts that have what is usual, where they are fewest.
    fn count(&self, groups: &mut Groups, whole: &Whole<'_>, counts: &[usize]) {
        let mut with: BTreeMap<(Field, &str, &str), usize> = BTreeMap::new();
        for (number, count) in (0u32..).zip(counts) {
            let Some(Item { field, place, value }) = self.items.get(number) else { continue };
            with.insert((*field, place, value), *count);
        }
        for own in groups.odd.iter_mut().flat_map(|group| &mut group.differences) {
            let count = |place: &str| {
                own.usual.as_deref().map_or_else(
                    || whole.lacking((own.field, place)),
                    |usual| with.get(&(own.field, place, usual)).copied().unwrap_or_default(),
                )
            };
            let fewest = own.places.iter().map(|place| count(place)).min();
            own.count = fewest.unwrap_or_else(|| count(""));
        }
    }

    fn values(&self, profile: &Profile) -> Values<'_> {
        let items = profile.items.iter().filter_map(|number| self.items.get(*number));
        items.map(|Item { field, place, value }| ((*field, &**place), &**value)).collect()
    }
}

/// What differs, with the places of a field together, and without what something else explains.
fn compare(own: &Values<'_>, profile: &Profile, usual: &Values<'_>) -> Vec<Difference> {
    let keys: BTreeSet<&(Field, &str)> = own.keys().chain(usual.keys()).collect();
    let mut differing: Vec<Differing<'_>> = Vec::new();
    for key in keys {
        let (seen, wanted) = (own.get(key).copied(), usual.get(key).copied());
        let is_known = match (seen, wanted) {
            (Some(_), Some(_)) => true,
            (None, _) => key.0.can_lack() && profile.is_whole(key.0),
            (_, None) => key.0.can_lack(),
        };
        if is_known && seen != wanted {
            differing.push((*key, seen, wanted));
        }
    }
    let mut at: BTreeMap<&str, Vec<&Differing<'_>>> = BTreeMap::new();
    for own in &differing {
        at.entry(own.0.1).or_default().push(own);
    }
    let mut merged = Merged::new();
    for own in &differing {
        let ((field, place), seen, usual) = own;
        // A port is not there if its device is not.
        let device = place.rsplit_once(':').and_then(|(device, _)| at.get(device));
        let is_device_s = |own: &&Differing<'_>| own.0.0 == Field::Present;
        let is_without = *field == Field::Present && device.into_iter().flatten().any(is_device_s);
        let beside = at.get(place).into_iter().flatten();
        if !is_without && !beside.copied().any(|other| explains(other, own)) {
            let places = merged.entry((*field, *seen, *usual)).or_default();
            if !place.is_empty() {
                places.push((*place).to_owned());
            }
        }
    }
    let text = |own: Option<&str>| own.map(str::to_owned);
    let differences = merged.into_iter().map(|((field, seen, usual), places)| Difference {
        field,
        seen: text(seen),
        usual: text(usual),
        places,
        count: 0,
    });
    differences.collect()
}

/// Whether a difference at the same place says the same as another one, or is the cause of it.
fn explains(own: &Differing<'_>, other: &Differing<'_>) -> bool {
    let ((field, _), seen, usual) = own;
    let ((of_other, _), its, their) = other;
    let is_same_index = *field == Field::Index
        && matches!(of_other, Field::Nccl | Field::Ucx)
        && (seen, usual) == (its, their);
    field.explains(*of_other) || is_same_index
}
