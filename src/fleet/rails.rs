//! Which ports of different hosts a job joins.

use std::collections::{BTreeMap, BTreeSet};

use super::survey::{KeptPort, NONE, Survey};

/// Which ports of different hosts a job joins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rails {
    /// By names or by networks, as is found: see [`Survey::rails`].
    #[default]
    Found,
    /// Ports of one device name and number.
    Names,
    /// Ports of one network, by what is recommended; those without a network by their names.
    Networks,
    /// All with all of other hosts.
    All,
}

impl Survey {
    /// How rails are found in this fleet: by the names of devices, which is how programs number them; by networks if
    /// each network is one rail and names are not. That is so if
    ///
    /// - no host has two ports in one network,
    /// - there are at least two networks, and on average each has ports of two hosts or more, and
    /// - more than one port of ten has another name than most ports in its network.
    ///
    /// Only hosts are looked at that `is_wanted` holds of.
    pub fn rails(&self, is_wanted: impl Fn(u32) -> bool) -> Rails {
        self.rails_of(&is_wanted)
    }

    pub(super) fn rails_of(&self, is_wanted: &dyn Fn(u32) -> bool) -> Rails {
        let ports = || {
            let wanted = self.kept.iter().filter(|own| is_wanted(own.host));
            wanted.map(|own| (own, own.network())).filter(|(_, own)| *own != NONE)
        };
        let mut names: BTreeMap<u32, BTreeMap<u32, usize>> = BTreeMap::new();
        let mut of_host: BTreeSet<u32> = BTreeSet::new();
        let (mut host, mut count) = (NONE, 0usize);
        for (own, network) in ports() {
            if own.host != host {
                of_host.clear();
                host = own.host;
            }
            if !of_host.insert(network) {
                return Rails::Names;
            }
            *names.entry(network).or_default().entry(own.name).or_default() += 1;
            count += 1;
        }
        let most = |names: &BTreeMap<u32, usize>| names.values().max().copied().unwrap_or_default();
        let usual: usize = names.values().map(most).sum();
        let is_shared = names.len() >= 2 && count >= 2 * names.len();
        if is_shared && 10 * (count - usual) > count { Rails::Networks } else { Rails::Names }
    }

    /// The names of ports without a network that may be in use all the same, where rails are networks: no other host
    /// has a port of that name, which would say whether it is in use, and the host has fewer networks than most have.
    pub(super) fn perhaps_in_use(&self, is_wanted: &dyn Fn(u32) -> bool) -> BTreeSet<u32> {
        let ports = || self.kept.iter().filter(|own| is_wanted(own.host));
        let mut networks: BTreeMap<u32, usize> = BTreeMap::new();
        let mut names: BTreeMap<u32, (u32, bool)> = BTreeMap::new();
        for own in ports() {
            *networks.entry(own.host).or_default() += usize::from(own.network() != NONE);
            let (first, is_only) = names.entry(own.name).or_insert((own.host, true));
            *is_only &= *first == own.host;
        }
        let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
        for count in networks.values() {
            *counts.entry(*count).or_default() += 1;
        }
        let usual = counts.iter().max_by_key(|(networks, hosts)| (**hosts, **networks));
        let usual = usual.map(|(networks, _)| *networks);
        let may_be_in_use = |own: &&KeptPort| {
            own.network() == NONE
                && names.get(&own.name).is_some_and(|(_, is_only)| *is_only)
                && networks.get(&own.host).copied() < usual
        };
        ports().filter(may_be_in_use).map(|own| own.name).collect()
    }
}

impl KeptPort {
    /// Its rail.
    pub(super) fn rail(&self, rails: Rails) -> (bool, u32) {
        match (rails, self.network()) {
            (Rails::All, _) => (false, 0),
            (Rails::Networks, network) if network != NONE => (true, network),
            _ => (false, self.name),
        }
    }

    /// Its network, by what is recommended.
    pub(super) fn network(&self) -> u32 {
        let [recommended, ..] = self.ends;
        recommended.network
    }
}
