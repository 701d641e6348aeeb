//! Networks: which one an address is in, and the smallest one that has several.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::choose::Network;

/// An address as a number with its length in bits.
fn number(address: IpAddr) -> (u128, u8) {
    match address {
        IpAddr::V4(own) => (own.to_bits().into(), 32),
        IpAddr::V6(own) => (own.to_bits(), 128),
    }
}

/// How many bits the addresses of a network have.
fn length(network: Network) -> u8 {
    number(network.address).1
}

/// The first address of the network of these bits that has an address.
pub(super) fn network(address: IpAddr, bits: u8) -> Network {
    let (number, length) = number(address);
    let bits = bits.min(length);
    let host = u32::from(length - bits);
    let first = number.checked_shr(host).and_then(|own| own.checked_shl(host)).unwrap_or(0);
    let address = match address {
        IpAddr::V4(_) => Ipv4Addr::from_bits(u32::try_from(first).unwrap_or(0)).into(),
        IpAddr::V6(_) => Ipv6Addr::from_bits(first).into(),
    };
    Network { address, bits }
}

/// Whether an address is in a network.
pub(super) fn holds(own: Network, address: IpAddr) -> bool {
    own.address.is_ipv4() == address.is_ipv4()
        && network(address, own.bits).address == network(own.address, own.bits).address
}

/// Whether all addresses of a network are in another one.
fn is_inside(inner: Network, outer: Network) -> bool {
    inner.bits >= outer.bits && holds(outer, inner.address)
}

/// The smallest network that has both; `None` if they are of other families or too far apart for a network of one
/// site.
fn common(one: Network, other: Network) -> Option<Network> {
    let least = if one.address.is_ipv4() { 8 } else { 16 };
    let mut wide = network(one.address, one.bits.min(other.bits));
    while !(is_inside(one, wide) && is_inside(other, wide)) {
        let bits = wide.bits.checked_sub(1).filter(|bits| *bits >= least)?;
        wide = network(one.address, bits);
    }
    Some(wide)
}

/// Adds a network to those that were seen on one port of hosts. Those of one site become the smallest that has all.
pub(super) fn widen(all: &mut Vec<Network>, own: Network) {
    match all.iter_mut().find_map(|known| common(*known, own).map(|wide| (known, wide))) {
        Some((known, wide)) => *known = wide,
        None => all.push(own),
    }
}

/// Sorts networks, without those that are inside another one.
pub(super) fn tidy(mut all: Vec<Network>) -> Vec<Network> {
    all.sort_by_key(|own| (own.address, own.bits));
    all.dedup_by(|inner, outer| is_inside(*inner, *outer));
    all
}

/// Whether a network is so small that it is of one host, as the ends of a link are.
pub(super) fn is_of_one_host(own: Network) -> bool {
    own.bits + 2 >= length(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn net(text: &str) -> Network {
        let (address, bits) = text.split_once('/').unwrap();
        Network { address: address.parse().unwrap(), bits: bits.parse().unwrap() }
    }

    fn widened(texts: &[&str]) -> Vec<String> {
        let mut all = Vec::new();
        for text in texts {
            widen(&mut all, net(text));
        }
        tidy(all).iter().map(ToString::to_string).collect()
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
    }

    #[test]
    fn what_is_inside_another_goes() {
        let all = ["10.1.1.0/24", "10.1.0.0/16", "10.2.0.0/16", "::/0", "10.1.1.0/25"].map(net);
        let tidied: Vec<String> = tidy(all.to_vec()).iter().map(ToString::to_string).collect();
        assert_eq!(tidied, ["10.1.0.0/16", "10.2.0.0/16", "::/0"]);
    }

    #[test]
    fn addresses_in_networks() {
        let is_in = |address: &str, text: &str| holds(net(text), address.parse().unwrap());
        assert!(is_in("10.1.2.3", "10.1.0.0/16") && is_in("10.1.2.3", "10.1.255.255/16"));
        assert!(!is_in("10.2.2.3", "10.1.0.0/16") && !is_in("::10.1.2.3", "10.1.0.0/16"));
        assert!(is_in("10.1.2.3", "0.0.0.0/0") && !is_in("10.1.2.3", "::/0"));
        assert!(is_in("10.1.2.3", "10.1.2.3/32") && !is_in("10.1.2.4", "10.1.2.3/32"));
        assert!(is_in("fd00::1", "fd00::/64") && !is_in("fd00:0:0:1::1", "fd00::/64"));
        assert!(is_of_one_host(net("10.0.0.0/30")) && !is_of_one_host(net("10.0.0.0/29")));
        assert!(is_of_one_host(net("fd00::/127")) && !is_of_one_host(net("fd00::/64")));
    }
}
