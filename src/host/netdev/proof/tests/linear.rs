//! The cost of naming grows as the number of rows.

use std::net::Ipv4Addr;

use super::*;
use crate::linear::{assert_linear, count};

/// Names rows of as many interfaces: VLANs above one port's, then one on each of as many ports; and reads
/// them from as many messages.
#[test]
fn naming() {
    let Some(count) = count() else { return };
    let address = |number: u32| Ipv4Addr::from_bits(0x0a00_0000 | number).to_string();
    let row = |port: u32, slot: u32, number: u32| {
        let ifindex = NonZeroU32::new(number);
        GidRecord::from(
            GidEntry::new(port, slot, gid(&address(number)))
                .with_type(GidType::ROCE_V2)
                .with_netdev_ifindex(ifindex),
        )
    };
    let numbers = || 10..10 + count;
    let vlans =
        numbers().map(|number| parsed(number, &format!("d0.{number}"), "vlan", Some(2), false));
    let own =
        numbers().map(|number| parsed(number + count, &format!("d{number}"), "", None, false));
    let links: Vec<Link> = [link(2, "d0")].into_iter().chain(vlans).chain(own).collect();
    let addresses: Vec<(u32, String)> =
        (10..10 + 2 * count).map(|number| (number, address(number))).collect();
    let addresses: Vec<(u32, &str)> =
        addresses.iter().map(|(number, address)| (*number, address.as_str())).collect();
    let mut here = namespace(&addresses, links);
    for (port, number) in (2..).zip(numbers()) {
        let own = Netdev { index: index(number + count), name: format!("d{number}") };
        here.port_netdevs.insert(("rxe0".into(), port), Ok(Some(own)));
    }
    let of_one = numbers().map(|number| row(1, number, number));
    let of_each = (2..).zip(numbers()).map(|(port, number)| row(port, 7, number + count));
    let rows: Vec<GidRecord> = of_one.chain(of_each).collect();
    let table = GidTable::sample("rxe0", rows);
    let tables = [&table];
    let names = here.name(&tables);
    assert!(here.settled(&tables)[0]);
    assert!(names[0].names.iter().all(Option::is_some), "{names:?}");
    // None is named, as if none were proven, and each is looked for.
    let unnamed = vec![Found { names: vec![None; table.len()], ..Found::default() }];
    assert!(
        here.namings(&tables, unnamed, &[false], || None, |_| None)[0]
            .iter()
            .all(|naming| !naming.is_elsewhere)
    );
}

#[test]
fn naming_is_linear() {
    assert_linear("host::netdev::proof::tests::linear::naming", 300, 24);
}
