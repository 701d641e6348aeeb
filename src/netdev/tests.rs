//! The three conditions, each alone and together.

use super::*;
use crate::gid::GidEntry;
use crate::sysfs::Sysfs;

const MAC: [u8; 6] = [0x02, 0x11, 0x22, 0x33, 0x44, 0x55];

fn index(index: u32) -> NonZeroU32 {
    NonZeroU32::new(index).unwrap()
}

fn record(ifindex: u32, address: &str) -> GidRecord {
    let gid = match address.parse().unwrap() {
        IpAddr::V4(v4) => Gid::from(v4),
        IpAddr::V6(v6) => Gid::from(v6),
    };
    GidEntry::new(1, 0, gid, crate::gid::GidType::ROCE_V2, NonZeroU32::new(ifindex)).into()
}

fn link(number: u32, name: &str) -> Link {
    Link {
        index: index(number),
        name: name.into(),
        flags: 0,
        mtu: 0,
        mac: None,
        lower: None,
        is_guest: false,
        master: None,
        is_bond: false,
    }
}

/// A namespace where `rxe0` port 1 stands on interface 2, `d0`.
fn namespace(addresses: &[(u32, &str)], links: Vec<Link>) -> Namespace {
    let own = Netdev { index: index(2), name: "d0".into() };
    Namespace {
        port_netdevs: [(("rxe0".into(), 1), own)].into(),
        addresses: addresses.iter().map(|(i, address)| (*i, address.parse().unwrap())).collect(),
        links: Some(links.into_iter().collect()),
    }
}

fn names_of(
    namespace: &Namespace,
    device_name: &str,
    records: &[GidRecord],
) -> Vec<Option<String>> {
    let device = Device::sample(device_name);
    let names = namespace.name(&[DeviceGids { device: &device, records }]);
    names.into_iter().flatten().map(|netdev| netdev.map(|netdev| netdev.name)).collect()
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
    let gid = record(2, "fe80::11:22ff:fe33:4455");
    assert_eq!(name(&here, "rxe0", gid).as_deref(), Some("d0"));
    assert_eq!(name(&here, "rxe0", record(2, "fe80::12:22ff:fe33:4455")), None);
    let iwarp = record(2, "211:2233:4455::");
    assert_eq!(name(&here, "rxe0", iwarp).as_deref(), Some("d0"));
}

/// Foreign: a VLAN elsewhere has the index of d0.7 here, and like it the MAC address of d0.
#[test]
fn a_vlan_is_not_known_by_its_mac_address() {
    let d0 = Link { mac: Some(MAC), ..link(2, "d0") };
    let vlan = Link { mac: Some(MAC), lower: Some(2), ..link(5, "d0.7") };
    let here = namespace(&[(5, "10.7.0.1")], vec![d0, vlan]);
    assert_eq!(name(&here, "rxe0", record(5, "fe80::11:22ff:fe33:4455")), None);
    assert_eq!(name(&here, "rxe0", record(5, "10.7.0.1")).as_deref(), Some("d0.7"));
}

#[test]
fn a_bond_is_known_by_its_mac_address() {
    let d0 = Link { mac: Some(MAC), master: Some(4), ..link(2, "d0") };
    let bond = Link { mac: Some(MAC), is_bond: true, ..link(4, "bond0") };
    let here = namespace(&[], vec![d0.clone(), bond.clone()]);
    let gid = |index| record(index, "fe80::11:22ff:fe33:4455");
    assert_eq!(name(&here, "rxe0", gid(4)).as_deref(), Some("bond0"));
    assert_eq!(name(&here, "rxe0", gid(2)), None, "a slave has no GID of its own");
    // A bridge has one only by its address.
    let here = namespace(&[], vec![d0, Link { is_bond: false, ..bond }]);
    assert_eq!(name(&here, "rxe0", gid(4)), None);
    assert_eq!(name(&here, "rxe0", gid(2)).as_deref(), Some("d0"));
}

#[test]
fn a_tunnel_without_a_lower_interface_is_nobody_s_guest() {
    let tunnel = Link { is_guest: true, ..link(3, "tun0") };
    let here =
        Namespace { port_netdevs: BTreeMap::new(), ..namespace(&[(3, "10.7.0.1")], vec![tunnel]) };
    let without_index = GidRecord { sysfs_netdev: Some("tun0".into()), ..record(0, "10.7.0.1") };
    assert_eq!(names_of(&here, "rxe0", &[without_index, record(3, "10.7.0.1")]), [None, None]);
}

#[test]
fn interfaces_that_stand_on_the_port_s() {
    let vlan = Link { lower: Some(2), ..link(3, "d0.7") };
    let bonded = Link { master: Some(4), ..link(2, "d0") };
    let bond = link(4, "bond0");
    let on_bond = Link { lower: Some(4), ..link(5, "bond0.9") };
    let here = namespace(
        &[(3, "10.7.0.1"), (4, "10.4.0.1"), (5, "10.9.0.1")],
        vec![vlan, bonded, bond, on_bond],
    );
    assert_eq!(name(&here, "rxe0", record(3, "10.7.0.1")).as_deref(), Some("d0.7"));
    assert_eq!(name(&here, "rxe0", record(4, "10.4.0.1")).as_deref(), Some("bond0"));
    assert_eq!(name(&here, "rxe0", record(5, "10.9.0.1")).as_deref(), Some("bond0.9"));
}

#[test]
fn a_guest_interface_with_the_same_lower_index_stands_elsewhere() {
    let guest = Link { lower: Some(2), is_guest: true, ..link(3, "net1") };
    let here = namespace(&[(3, "10.7.0.1")], vec![link(2, "d0"), guest]);
    assert_eq!(name(&here, "rxe0", record(3, "10.7.0.1")), None);
}

/// In a pod: the port's interface, 7, is in the host's namespace, and net1 here stands on it.
fn pod() -> Namespace {
    let net1 = Link { lower: Some(7), is_guest: true, ..link(3, "net1") };
    let addresses = [(3, "10.7.0.1"), (3, "127.0.0.1"), (1, "127.0.0.1")];
    Namespace { port_netdevs: BTreeMap::new(), ..namespace(&addresses, vec![link(1, "lo"), net1]) }
}

#[test]
fn a_guest_whose_home_is_in_the_port_s_table() {
    let home = record(7, "10.1.0.1");
    let names = names_of(&pod(), "rxe0", &[home.clone(), record(3, "10.7.0.1")]);
    assert_eq!(names, [None, Some("net1".into())]);
    // Without the home interface's entries nothing ties net1 to this port.
    assert_eq!(names_of(&pod(), "rxe0", &[record(3, "10.7.0.1")]), [None]);
    // Loopback addresses are in every namespace.
    let names = names_of(&pod(), "rxe0", &[home, record(3, "127.0.0.1"), record(1, "127.0.0.1")]);
    assert_eq!(names, [None, None, None]);
}

#[test]
fn two_entries_with_the_same_claim_are_both_unnamed() {
    let vlan = Link { lower: Some(2), ..link(3, "d0.7") };
    let here = namespace(&[(3, "fe80::1")], vec![link(2, "d0"), vlan]);
    let same = record(3, "fe80::1");
    assert_eq!(names_of(&here, "rxe0", &[same.clone(), same.clone()]), [None, None]);
    // RoCE v1 and v2 of one address are two claims.
    let v1 = GidEntry::new(1, 1, same.entry.gid(), crate::gid::GidType::ROCE_V1, Some(index(3)));
    let names = names_of(&here, "rxe0", &[same, v1.into()]);
    assert_eq!(names, [Some("d0.7".into()), Some("d0.7".into())]);
}

#[test]
fn a_guest_claimed_by_two_devices_is_nobody_s() {
    let (one, two) = (Device::sample("rxe0"), Device::sample("rxe1"));
    let records = [record(7, "10.1.0.1"), record(3, "10.7.0.1")];
    let names = pod().name(&[
        DeviceGids { device: &one, records: &records },
        DeviceGids { device: &two, records: &records },
    ]);
    assert!(names.iter().flatten().all(Option::is_none));
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
    let device = Device::sample("rxe0");
    let records = [record(2, "10.0.0.1")];
    let names = host.netdevs(&[DeviceGids { device: &device, records: &records }]).unwrap();
    assert_eq!(names, [[None]]);
}

#[test]
fn route_messages() {
    let flags = u32::to_ne_bytes(UP | LOWER_UP);
    let body = [&[0, 0, 0, 0, 9, 0, 0, 0], &flags[..], &[0; 4]].concat();
    let message = Message::new(0, &body)
        .text(libc::IFLA_IFNAME, "d0.7")
        .number(libc::IFLA_MTU, 9000)
        .attribute(libc::IFLA_ADDRESS, &MAC)
        .number(libc::IFLA_LINK, 2)
        .number(libc::IFLA_LINK_NETNSID, 0)
        .number(libc::IFLA_MASTER, 5);
    let parsed = parse_link(&message.finish_for_test()).unwrap().unwrap();
    let expected = Link {
        flags: UP | LOWER_UP,
        mtu: 9000,
        mac: Some(MAC),
        lower: Some(2),
        is_guest: true,
        master: Some(5),
        ..link(u32::from_ne_bytes([9, 0, 0, 0]), "d0.7")
    };
    assert_eq!(parsed, expected);
    assert!(parse_link(&[0; 7]).is_err());

    let pair = Message::new(0, &[]).text(libc::IFLA_INFO_KIND, "veth").finish_for_test();
    let message = Message::new(0, &[0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
        .number(libc::IFLA_LINK, 2)
        .number(libc::IFLA_LINK_NETNSID, 0)
        .attribute(libc::IFLA_LINKINFO, &pair);
    let parsed = parse_link(&message.finish_for_test()).unwrap().unwrap();
    assert_eq!((parsed.lower, parsed.is_guest), (None, false), "a veth stands on nothing");

    let message = Message::new(0, &[2, 24, 0, 0, 9, 0, 0, 0])
        .attribute(libc::IFA_LOCAL, &[10, 0, 0, 1])
        .attribute(libc::IFA_ADDRESS, &[10, 0, 0, 2]);
    let parsed = parse_address(&message.finish_for_test()).unwrap();
    let index = u32::from_ne_bytes([9, 0, 0, 0]);
    assert_eq!(parsed, Some(Address { index, ip: "10.0.0.2".parse().unwrap(), prefix: 24 }));
    assert!(parse_address(&[0; 3]).is_err());
}

#[test]
fn interfaces_of_this_very_host() {
    let interfaces = Host::new().interfaces().unwrap().unwrap();
    let loopback = interfaces.iter().find(|interface| interface.index.get() == 1).unwrap();
    assert!(loopback.mtu > 0, "{loopback:?}");
    assert_eq!(Host::rooted("/nowhere", "/nowhere").interfaces().unwrap(), None);
}

proptest::proptest! {
    /// Whatever the kernel sends is a link, an address and a port, or an error.
    #[test]
    fn any_message_is_read_or_refused(
        body in proptest::collection::vec(proptest::num::u8::ANY, 0..24),
        list in proptest::collection::vec(
            (0u16..110, proptest::collection::vec(proptest::num::u8::ANY, 0..20)), 0..8),
        cut in 0usize..200,
    ) {
        let mut message = Message::new(0, &body);
        for (kind, payload) in &list {
            message = message.attribute(*kind, payload);
        }
        let bytes = message.finish_for_test();
        for bytes in [&bytes[..], &bytes[..cut.min(bytes.len())]] {
            let _ = (parse_link(bytes), parse_address(bytes), parse_port(bytes));
        }
    }
}
