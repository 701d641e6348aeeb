//! Networks: which one an address is in, and the smallest one that has several.

use std::net::IpAddr;

use crate::choose::Network;

/// Whether all addresses of a network are in another one.
fn is_inside(inner: Network, outer: Network) -> bool {
    inner.bits >= outer.bits && outer.has(inner.address)
}

/// What networks of one site have in common: so many bits, or all of a network that has fewer.
pub(super) fn site(own: Network) -> Network {
    let least = if own.address.is_ipv4() { 8 } else { 16 };
    Network::of(own.address, own.bits.min(least))
}

/// The smallest network that has two of one site.
pub(super) fn common(one: Network, other: Network) -> Network {
    let alike = match (one.address, other.address) {
        (IpAddr::V4(one), IpAddr::V4(other)) => (one.to_bits() ^ other.to_bits()).leading_zeros(),
        (IpAddr::V6(one), IpAddr::V6(other)) => (one.to_bits() ^ other.to_bits()).leading_zeros(),
        _ => 0,
    };
    let alike = u8::try_from(alike).unwrap_or(u8::MAX);
    Network::of(one.address, one.bits.min(other.bits).min(alike))
}

/// Sorts networks, without those that are inside another one.
pub(super) fn tidy(mut all: Vec<Network>) -> Vec<Network> {
    all.sort_by_key(|own| (own.address, own.bits));
    all.dedup_by(|inner, outer| is_inside(*inner, *outer));
    all
}

/// Whether a network is so small that it is of one host, as the ends of a link are.
pub(super) fn is_of_one_host(own: Network) -> bool {
    let length = if own.address.is_ipv4() { 32 } else { 128 };
    own.bits + 2 >= length
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn net(text: &str) -> Network {
        let (address, bits) = text.split_once('/').unwrap();
        Network { address: address.parse().unwrap(), bits: bits.parse().unwrap() }
    }

    fn widened(texts: &[&str]) -> Vec<String> {
        let mut all: BTreeMap<Network, Network> = BTreeMap::new();
        for own in texts.iter().map(|text| net(text)) {
            let known = all.entry(site(own)).or_insert(own);
            *known = common(*known, own);
        }
        tidy(all.into_values().collect()).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_common_network() {
        assert_eq!(widened(&["10.1.0.0/24", "10.1.0.0/24"]), ["10.1.0.0/24"]);
        assert_eq!(widened(&["10.1.0.0/31", "10.1.0.2/31", "10.1.0.4/31"]), ["10.1.0.0/29"]);
        assert_eq!(widened(&["10.1.0.0/24", "10.1.200.0/22"]), ["10.1.0.0/16"]);
        assert_eq!(widened(&["10.0.0.0/8", "192.168.1.0/24"]), ["10.0.0.0/8", "192.168.1.0/24"]);
        assert_eq!(widened(&["2001:db8::/64", "2001:db8:0:1::/64"]), ["2001:db8::/63"]);
        assert_eq!(widened(&["fd01::/64", "fd02::/64"]), ["fd01::/64", "fd02::/64"]);
        assert_eq!(widened(&["0.0.0.0/0", "10.1.0.0/24"]), ["0.0.0.0/0"]);
        assert_eq!(widened(&["10.1.0.0/24", "8.0.0.0/5", "11.1.0.0/24"]), ["8.0.0.0/5"]);
        assert_eq!(widened(&["::/64", "0.0.0.0/24"]), ["0.0.0.0/24", "::/64"]);
    }

    #[test]
    fn what_is_inside_another_goes() {
        let all = ["10.1.1.0/24", "10.1.0.0/16", "10.2.0.0/16", "::/0", "10.1.1.0/25"].map(net);
        let tidied: Vec<String> = tidy(all.to_vec()).iter().map(ToString::to_string).collect();
        assert_eq!(tidied, ["10.1.0.0/16", "10.2.0.0/16", "::/0"]);
    }

    #[test]
    fn addresses_in_networks() {
        let is_in = |address: &str, text: &str| net(text).has(address.parse().unwrap());
        assert!(is_in("10.1.2.3", "10.1.0.0/16") && is_in("10.1.2.3", "10.1.255.255/16"));
        assert!(!is_in("10.2.2.3", "10.1.0.0/16") && !is_in("::10.1.2.3", "10.1.0.0/16"));
        assert!(is_in("10.1.2.3", "0.0.0.0/0") && !is_in("10.1.2.3", "::/0"));
        assert!(is_in("10.1.2.3", "10.1.2.3/32") && !is_in("10.1.2.4", "10.1.2.3/32"));
        assert!(is_in("fd00::1", "fd00::/64") && !is_in("fd00:0:0:1::1", "fd00::/64"));
        assert!(is_of_one_host(net("10.0.0.0/30")) && !is_of_one_host(net("10.0.0.0/29")));
        assert!(is_of_one_host(net("fd00::/127")) && !is_of_one_host(net("fd00::/64")));
    }
}
