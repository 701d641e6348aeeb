//! What counts as proof, each part without the others and together.

use core::num::NonZeroU32;
use std::net::IpAddr;

use nix::libc;

use super::*;
use crate::gid::GidEntry;
use crate::netlink::route::{Bond, parse_link};
use crate::sysfs::Sysfs;

const MAC: [u8; 6] = [0x02, 0x11, 0x22, 0x33, 0x44, 0x55];

fn index(index: u32) -> NonZeroU32 {
    NonZeroU32::new(index).unwrap()
}

fn gid(address: &str) -> Gid {
    match address.parse().unwrap() {
        IpAddr::V4(v4) => Gid::from(v4),
        IpAddr::V6(v6) => Gid::from(v6),
    }
}

/// A row of a slot that is kept for a GID made of a MAC address.
fn first(ifindex: u32, address: &str) -> GidRecord {
    GidEntry::new(1, 0, gid(address))
        .with_type(GidType::ROCE_V2)
        .with_netdev_ifindex(NonZeroU32::new(ifindex))
        .into()
}

/// A row of any other slot.
fn record(ifindex: u32, address: &str) -> GidRecord {
    GidEntry::new(1, 7, gid(address))
        .with_type(GidType::ROCE_V2)
        .with_netdev_ifindex(NonZeroU32::new(ifindex))
        .into()
}

fn link(number: u32, name: &str) -> Link {
    Link {
        index: index(number),
        name: name.into(),
        flags: 0,
        mtu: 0,
        mac: None,
        lower: None,
        master: None,
        bond: None,
    }
}

/// A bond in this mode.
fn bond(number: u32, name: &str, mode: u8, active: Option<u32>) -> Link {
    Link { bond: Some(Bond { mode: Some(mode), active }), ..link(number, name) }
}

const BALANCE_RR: u8 = 0;
const ACTIVE_BACKUP: u8 = 1;

/// A namespace where `rxe0` port 1 stands on interface 2, `d0`.
fn namespace(addresses: &[(u32, &str)], links: Vec<Link>) -> Namespace {
    let own = Netdev { index: index(2), name: "d0".into() };
    Namespace {
        port_netdevs: [(("rxe0".into(), 1), own)].into(),
        addresses: addresses.iter().map(|(i, address)| (*i, gid(address))).collect(),
        links: Some(links.into_iter().collect()),
    }
}

fn names_of(
    namespace: &Namespace,
    device_name: &str,
    records: &[GidRecord],
) -> Vec<Option<String>> {
    of_table(namespace, &GidTable::sample(device_name, records.to_vec()))
}

fn of_table(namespace: &Namespace, table: &GidTable) -> Vec<Option<String>> {
    let names = namespace.name_table(table);
    names.into_iter().map(|netdev| netdev.map(|netdev| netdev.name)).collect()
}

fn name(namespace: &Namespace, device_name: &str, record: GidRecord) -> Option<String> {
    names_of(namespace, device_name, &[record]).remove(0)
}

#[test]
fn the_port_s_own_interface() {
    let here = namespace(&[(2, "10.0.0.1")], vec![]);
    assert_eq!(name(&here, "rxe0", record(2, "10.0.0.1")).as_deref(), Some("d0"));
}

#[test]
fn the_right_index_without_the_address_is_another_namespace_s() {
    let here = namespace(&[(2, "10.0.0.1")], vec![link(2, "d0")]);
    assert_eq!(name(&here, "rxe0", record(2, "10.0.0.9")), None);
}

#[test]
fn the_right_address_without_the_index_is_another_interface() {
    let here = namespace(&[(2, "10.0.0.1"), (3, "10.0.0.9")], vec![link(2, "d0"), link(3, "e0")]);
    assert_eq!(name(&here, "rxe0", record(3, "10.0.0.9")), None, "e0 does not stand on d0");
    assert_eq!(name(&here, "rxe0", record(3, "10.0.0.1")), None);
}

#[test]
fn the_default_gid_is_known_by_the_mac_address() {
    let d0 = Link { mac: Some(MAC), ..link(2, "d0") };
    let here = namespace(&[], vec![d0]);
    let default = "fe80::11:22ff:fe33:4455";
    assert_eq!(name(&here, "rxe0", first(2, default)).as_deref(), Some("d0"));
    assert_eq!(name(&here, "rxe0", first(2, "fe80::12:22ff:fe33:4455")), None);
    let iwarp = first(2, "211:2233:4455::");
    assert_eq!(name(&here, "rxe0", iwarp).as_deref(), Some("d0"));
    // Any other slot may hold that of a VLAN elsewhere with the same index and MAC address.
    assert_eq!(name(&here, "rxe0", record(2, default)), None);
    let in_slot = |slot, gid_type| {
        GidRecord::from(
            GidEntry::new(1, slot, gid(default))
                .with_type(gid_type)
                .with_netdev_ifindex(NonZeroU32::new(2)),
        )
    };
    // With both types the first two slots are kept, with one only the first.
    let both = [in_slot(0, GidType::ROCE_V1), in_slot(1, GidType::ROCE_V2)];
    assert_eq!(names_of(&here, "rxe0", &both), [Some("d0".into()), Some("d0".into())]);
    let one = [first(2, "fe80::9"), in_slot(1, GidType::ROCE_V2)];
    assert_eq!(names_of(&here, "rxe0", &one), [None, None]);
}

/// Foreign: a VLAN elsewhere has the index of d0.7 here, and like it the MAC address of d0.
#[test]
fn a_vlan_is_not_known_by_its_mac_address() {
    let d0 = Link { mac: Some(MAC), ..link(2, "d0") };
    let vlan = Link { mac: Some(MAC), lower: Some(2), ..link(5, "d0.7") };
    let here = namespace(&[(5, "10.7.0.1")], vec![d0, vlan]);
    assert_eq!(name(&here, "rxe0", first(5, "fe80::11:22ff:fe33:4455")), None);
    assert_eq!(name(&here, "rxe0", record(5, "10.7.0.1")).as_deref(), Some("d0.7"));
}

#[test]
fn a_bond_is_known_by_its_mac_address() {
    let d0 = Link { mac: Some(MAC), master: Some(4), ..link(2, "d0") };
    let bond0 = Link { mac: Some(MAC), ..bond(4, "bond0", ACTIVE_BACKUP, Some(9)) };
    let here = namespace(&[], vec![d0.clone(), bond0.clone()]);
    let gid = |index| first(index, "fe80::11:22ff:fe33:4455");
    assert_eq!(name(&here, "rxe0", gid(4)).as_deref(), Some("bond0"));
    assert_eq!(name(&here, "rxe0", gid(2)), None, "a slave has no GID of its own");
    // A bridge has one only by its address.
    let here = namespace(&[], vec![d0, Link { bond: None, ..bond0 }]);
    assert_eq!(name(&here, "rxe0", gid(4)), None);
    assert_eq!(name(&here, "rxe0", gid(2)).as_deref(), Some("d0"));
}

#[test]
fn interfaces_above_the_port_s() {
    let vlan = Link { lower: Some(2), ..link(3, "d0.7") };
    let bonded = Link { master: Some(4), ..link(2, "d0") };
    let on_bond = Link { lower: Some(4), ..link(5, "bond0.9") };
    let addresses = [(3, "10.7.0.1"), (4, "10.4.0.1"), (5, "10.9.0.1")];
    let named = |bond0| {
        let here =
            namespace(&addresses, vec![vlan.clone(), bonded.clone(), bond0, on_bond.clone()]);
        assert_eq!(name(&here, "rxe0", record(3, "10.7.0.1")).as_deref(), Some("d0.7"));
        let names =
            [record(4, "10.4.0.1"), record(5, "10.9.0.1")].map(|row| name(&here, "rxe0", row));
        assert!(names == [None, None] || names == [Some("bond0".into()), Some("bond0.9".into())]);
        names[0].is_some()
    };
    assert!(named(link(4, "bond0")), "a bridge");
    assert!(named(bond(4, "bond0", BALANCE_RR, None)));
    assert!(named(bond(4, "bond0", ACTIVE_BACKUP, Some(2))));
    // The kernel makes no row of it for this port, so the row is another's.
    assert!(!named(bond(4, "bond0", ACTIVE_BACKUP, Some(9))));
    assert!(!named(bond(4, "bond0", ACTIVE_BACKUP, None)));
    assert!(!named(Link { bond: Some(Bond::default()), ..link(4, "bond0") }));
}

/// The rows of container B: a macvlan on d0 with the index and address of net1 here, and a VLAN above
/// it with the index of e0, on which net1 here is. Indices of other namespaces prove nothing.
#[test]
fn a_guest_is_not_known_by_the_index_of_its_home() {
    let net1 = parsed(61, "net1", "macvlan", Some(60), true);
    let here = Namespace {
        port_netdevs: BTreeMap::new(),
        ..namespace(&[(61, "10.7.0.1")], vec![link(1, "lo"), net1])
    };
    let rows = [record(60, "10.6.0.1"), record(61, "10.7.0.1")];
    assert_eq!(names_of(&here, "rxe0", &rows), [None, None]);
}

/// gre1 is bound to d0 and has index 50; the row is that of a VLAN elsewhere.
#[test]
fn what_a_tunnel_is_bound_to_is_not_below_it() {
    for kind in [
        "gre", "ipip", "sit", "vti", "ip6tnl", "ip6gre", "vxlan", "geneve", "veth", "netkit", "new",
    ] {
        let gre1 = parsed(50, "gre1", kind, Some(2), false);
        let here = namespace(&[(50, "10.9.0.1")], vec![link(2, "d0"), gre1]);
        assert_eq!(name(&here, "rxe0", record(50, "10.9.0.1")), None, "{kind}");
    }
    for kind in ["vlan", "macvlan", "ipvlan", "macsec"] {
        let upper = |is_guest| parsed(50, "u", kind, Some(2), is_guest);
        let here = namespace(&[(50, "10.9.0.1")], vec![link(2, "d0"), upper(false)]);
        let named = name(&here, "rxe0", record(50, "10.9.0.1"));
        assert_eq!(named.as_deref(), Some("u"), "{kind}");
        let here = namespace(&[(50, "10.9.0.1")], vec![link(2, "d0"), upper(true)]);
        assert_eq!(name(&here, "rxe0", record(50, "10.9.0.1")), None, "{kind}: a guest's home");
    }
}

/// A link as the kernel tells it.
fn parsed(number: u32, name: &str, kind: &str, lower: Option<u32>, is_guest: bool) -> Link {
    let body = [&[0; 4][..], &number.to_ne_bytes(), &[0; 8]].concat();
    let info = Message::new(0, &[]).text(libc::IFLA_INFO_KIND, kind).finish_for_test();
    let mut message = Message::new(0, &body).text(libc::IFLA_IFNAME, name);
    if let Some(lower) = lower {
        message = message.number(libc::IFLA_LINK, lower);
    }
    if is_guest {
        message = message.number(libc::IFLA_LINK_NETNSID, 0);
    }
    let message = message.attribute(libc::IFLA_LINKINFO, &info);
    parse_link(&message.finish_for_test()).unwrap().unwrap()
}

/// Our row may not have found a place, and another's is alone.
#[test]
fn a_full_table_has_rows_of_others() {
    let d0 = Link { mac: Some(MAC), ..link(2, "d0") };
    let here = namespace(&[(2, "10.0.0.1")], vec![d0]);
    let rows = vec![first(2, "fe80::11:22ff:fe33:4455"), record(2, "10.0.0.1")];
    let table = GidTable::sample("rxe0", rows);
    assert_eq!(of_table(&here, &table), [Some("d0".into()), Some("d0".into())]);
    assert_eq!(of_table(&here, &table.filled()), [Some("d0".into()), None]);
}

#[test]
fn two_entries_with_the_same_claim_are_both_unnamed() {
    let vlan = Link { lower: Some(2), ..link(3, "d0.7") };
    let here = namespace(&[(3, "fe80::1")], vec![link(2, "d0"), vlan]);
    let same = record(3, "fe80::1");
    assert_eq!(names_of(&here, "rxe0", &[same.clone(), same.clone()]), [None, None]);
    // RoCE v1 and v2 of one address are two claims.
    let v1 = GidEntry::new(1, 1, same.entry.gid())
        .with_type(GidType::ROCE_V1)
        .with_netdev_ifindex(Some(index(3)));
    let names = names_of(&here, "rxe0", &[same, v1.into()]);
    assert_eq!(names, [Some("d0.7".into()), Some("d0.7".into())]);
}

/// Rows of other ports and devices are another matter: what is named does not depend on them.
#[test]
fn the_same_claim_on_another_port() {
    let mut here = namespace(&[(2, "10.0.0.1")], vec![]);
    here.port_netdevs.insert(("rxe0".into(), 2), Netdev { index: index(2), name: "d0".into() });
    let other = GidEntry::new(2, 7, gid("10.0.0.1"))
        .with_type(GidType::ROCE_V2)
        .with_netdev_ifindex(Some(index(2)));
    let names = names_of(&here, "rxe0", &[record(2, "10.0.0.1"), other.into()]);
    assert_eq!(names, [Some("d0".into()), Some("d0".into())]);
}

#[test]
fn a_row_that_keeps_its_interface_back_may_be_the_one() {
    let here = namespace(&[(2, "10.0.0.1"), (2, "10.0.0.2")], vec![link(2, "d0")]);
    let of_d0 = |address| GidRecord { sysfs_netdev: Some("d0".into()), ..record(0, address) };
    let unread = GidRecord { netdev_is_unread: true, ..record(0, "10.0.0.1") };
    let names = names_of(&here, "rxe0", &[of_d0("10.0.0.1"), unread, of_d0("10.0.0.2")]);
    assert_eq!(names, [None, None, Some("d0".into())]);
}

#[test]
fn sysfs_gives_a_name_and_it_is_checked_as_well() {
    let here = namespace(&[(2, "10.0.0.1")], vec![link(2, "d0")]);
    let sysfs = |address, netdev: &str| GidRecord {
        sysfs_netdev: Some(netdev.into()),
        ..record(0, address)
    };
    assert_eq!(name(&here, "rxe0", sysfs("10.0.0.1", "d0")).as_deref(), Some("d0"));
    assert_eq!(name(&here, "rxe0", sysfs("10.0.0.9", "d0")), None);
    assert_eq!(name(&here, "rxe0", sysfs("10.0.0.1", "d1")), None);
}

#[test]
fn without_netlink_nothing_is_named() {
    let mut host = Host::rooted("/nowhere", "/nowhere");
    assert_eq!(host.sysfs().root(), Sysfs::at("/nowhere").root());
    let table = GidTable::sample("rxe0", vec![record(2, "10.0.0.1")]);
    let names = host.netdevs(&[&table]).unwrap();
    assert_eq!(names.len(), 1);
    assert_eq!(
        names[0].iter().map(|(row, name)| (row.entry.index(), name)).next(),
        Some((7, None))
    );
    assert_eq!(names[0].netdev(1, 7), None);
}

#[test]
fn interfaces_of_this_very_host() {
    let interfaces = Host::new().interfaces().unwrap().unwrap();
    let loopback = interfaces.iter().find(|interface| interface.index.get() == 1).unwrap();
    assert!(loopback.mtu > 0, "{loopback:?}");
    assert_eq!(Host::rooted("/nowhere", "/nowhere").interfaces().unwrap(), None);
}
