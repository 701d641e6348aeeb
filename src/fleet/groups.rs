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

/// What most hosts have in a place: how many, the number of the item, and its value.
type Most<'s> = BTreeMap<(Field, &'s str), (usize, Reverse<u32>, &'s str)>;

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

/// How many hosts have each of the values that there are in a place.
#[derive(Clone, Copy, Debug, Default)]
struct Spread {
    most: i64,
    all: i64,
    squares: i64,
}

impl Spread {
    /// So that a part of a host counts, too.
    const SCALE: i64 = 1 << 10;

    fn of(count: i64) -> Self {
        Self { most: count, all: count, squares: count * count }
    }

    fn add(&mut self, count: i64) {
        let Self { most, all, squares } = *self;
        *self = Self { most: most.max(count), all: all + count, squares: squares + count * count };
    }

    /// How many hosts fewer have a value that so many have than that which most have.
    fn loss(self, count: i64) -> i64 {
        (self.most - count) * Self::SCALE
    }

    /// The same of any host of which it is known.
    fn mean_loss(self) -> i64 {
        self.loss(0) - self.squares * Self::SCALE / self.all.max(1)
    }
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

impl Survey {
    /// Compares the hosts in all that should be alike.
    #[must_use]
    pub fn groups(&self) -> Groups {
        let mut members: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (host, profile) in (0u32..).zip(&self.hosts) {
            members.entry(*profile).or_default().push(host);
        }
        let counts = self.counts(&members, None);
        let whole = self.whole(&members);
        let usual = self.usual(&members, &whole, &counts);
        let Some(usual_profile) = usual.and_then(|own| self.profiles.get(own)) else {
            return Groups::default();
        };
        let wanted = self.wanted(usual_profile, &members, (&whole, &counts));
        let mut found: BTreeMap<Vec<Difference>, Vec<u32>> = BTreeMap::new();
        let mut groups = Groups::default();
        for (number, hosts) in members {
            let Some(profile) = self.profiles.get(number) else { continue };
            let own = self.values(profile);
            // What depends on something that is not known of the usual host may differ there, too.
            let differences = compare(&own, profile, &wanted);
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

    /// On how many hosts each item is. With causes, only on those where what it depends on is so.
    fn counts(&self, members: &BTreeMap<u32, Vec<u32>>, causes: Option<&Values<'_>>) -> Vec<usize> {
        let mut counts = vec![0; self.items.len()];
        for (number, hosts) in members {
            let Some(profile) = self.profiles.get(*number) else { continue };
            let own = causes.map(|causes| (self.values(profile), causes));
            for item in &profile.items {
                let key = self.items.get(*item).map(|own| (own.field, &*own.place));
                let is_meant = match (&own, key) {
                    (Some((own, causes)), Some(key)) => is_alike(key, own, causes),
                    _ => true,
                };
                if let Some(count) = counts.get_mut(*item as usize).filter(|_| is_meant) {
                    *count += hosts.len();
                }
            }
        }
        counts
    }

    /// The profile of more than half of the hosts; else that which differs least from what most have: by how many hosts
    /// fewer have what it has. What is not known of it may be as on any other host. Of equal ones the first.
    fn usual(
        &self,
        members: &BTreeMap<u32, Vec<u32>>,
        whole: &Whole<'_>,
        counts: &[usize],
    ) -> Option<u32> {
        let is_most = |hosts: &Vec<u32>| 2 * hosts.len() > self.hosts.len();
        if let Some((profile, _)) = members.iter().find(|(_, hosts)| is_most(hosts)) {
            return Some(*profile);
        }
        // What depends on something else counts where that is as on most hosts; elsewhere it is as if it were not known.
        let most = self.most((0u32..).zip(counts.iter().copied()));
        let causes: Values<'_> = most.into_iter().map(|(key, own)| (key, own.2)).collect();
        let counts = self.counts(members, Some(&causes));
        let of = |item: u32| {
            let Item { field, place, .. } = self.items.get(item)?;
            Some(((*field, &**place), number(*counts.get(item as usize)?)))
        };
        let lacking =
            |key: (Field, &str)| number(if key.0.can_lack() { whole.lacking(key) } else { 0 });
        let mut spread: BTreeMap<(Field, &str), Spread> = BTreeMap::new();
        for item in 0u32.. {
            let Some((key, count)) = of(item) else { break };
            spread.entry(key).or_insert_with(|| Spread::of(lacking(key))).add(count);
        }
        // What comes of lacking everything, of nothing being known, and of a place at which nothing is known.
        let (mut lacked, mut unknown) = (BTreeMap::new(), BTreeMap::new());
        let mut at_place: BTreeMap<&str, i64> = BTreeMap::new();
        for (key, own) in &spread {
            let (field, place) = *key;
            if field.can_lack() {
                *lacked.entry(field).or_insert(0) += own.loss(lacking(*key));
                *unknown.entry(field).or_insert(0) += own.mean_loss();
            } else {
                *at_place.entry(place).or_insert(0) += own.mean_loss();
            }
        }
        let all_places: i64 = at_place.values().sum();
        let difference = |number_of_profile: &u32| -> i64 {
            let Some(profile) = self.profiles.get(*number_of_profile) else { return i64::MAX };
            let of_field = |(field, own): (&Field, &i64)| {
                if profile.is_whole(*field) {
                    lacked.get(field).copied().unwrap_or(0)
                } else {
                    *own
                }
            };
            let mut sum: i64 = unknown.iter().map(of_field).sum();
            let place = |place: &str| at_place.get(place).copied().unwrap_or(0);
            let has_places = profile.is_whole(Field::Present);
            sum += if has_places { place("") } else { all_places };
            let values = self.values(profile);
            for (key, count) in profile.items.iter().filter_map(|item| of(*item)) {
                let Some(own) = spread.get(&key).filter(|_| is_alike(key, &values, &causes)) else {
                    continue;
                };
                let is_lackable = key.0.can_lack() && profile.is_whole(key.0);
                let lost = if is_lackable { own.loss(lacking(key)) } else { own.mean_loss() };
                sum += own.loss(count) - lost;
                if has_places && key.0 == Field::Present {
                    sum += place(key.1);
                }
            }
            sum
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

    /// What most hosts have in each place, of items with their counts: the count, and the value. Of equal ones the first.
    fn most(&self, counts: impl Iterator<Item = (u32, usize)>) -> Most<'_> {
        let mut most = Most::new();
        for (number, count) in counts {
            let Some(Item { field, place, value }) = self.items.get(number) else { continue };
            let own = (count, Reverse(number), &**value);
            let best = most.entry((*field, place)).or_insert(own);
            *best = own.max(*best);
        }
        most
    }

    /// What is usual: the values of a profile, and where something could not be read there, what most others have. Of what
    /// depends on something else these are the others with that.
    fn wanted<'s>(
        &'s self,
        usual: &Profile,
        members: &BTreeMap<u32, Vec<u32>>,
        (whole, counts): (&Whole<'s>, &[usize]),
    ) -> Values<'s> {
        let mut wanted = self.values(usual);
        let most = self.most((0u32..).zip(counts.iter().copied()));
        // In the order of fields: devices and ports come first.
        for (key, (count, _, value)) in most {
            let (field, place) = key;
            if !field.causes().is_empty() {
                continue;
            }
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
        // What depends on something that was filled in is of another one.
        let own = self.values(usual);
        let filled: BTreeSet<(Field, &str)> =
            wanted.keys().copied().filter(|key| !own.contains_key(key)).collect();
        wanted.retain(|(field, place), _| {
            !field.causes().iter().any(|cause| filled.contains(&(*cause, place)))
        });
        let counts = self.counts(members, Some(&wanted));
        for (key, (count, _, value)) in self.most((0u32..).zip(counts)) {
            let depends = !key.0.causes().is_empty();
            if depends && count > 0 && wanted.contains_key(&(Field::Present, key.1)) {
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

/// Whether what a field of a place depends on is so, as far as that is known.
fn is_alike((field, place): (Field, &str), own: &Values<'_>, causes: &Values<'_>) -> bool {
    let differs = |cause: &Field| {
        let key = (*cause, place);
        own.get(&key).zip(causes.get(&key)).is_some_and(|(own, cause)| own != cause)
    };
    !field.causes().iter().any(differs)
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
