//! What counts as proof, each part without the others and together.

mod connection_manager;
mod linear;

use core::num::NonZeroU32;
use std::net::IpAddr;

use nix::libc;

use super::super::*;
use super::*;
use crate::gid::{Gid, GidEntry, GidType};
use crate::netlink::Datagram;
use crate::netlink::route::link::Bond;
use crate::netlink::route::tests::{bond, index, link};
use crate::netlink::route::{Address, Link, Links, parse_link};
use crate::sysfs::Sysfs;

const MAC: [u8; 6] = [0x02, 0x11, 0x22, 0x33, 0x44, 0x55];

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

const BALANCE_RR: u8 = 0;
const ACTIVE_BACKUP: u8 = 1;

/// A namespace where `rxe0` port 1 is on interface 2, `d0`.
fn namespace(addresses: &[(u32, &str)], links: Vec<Link>) -> Namespace {
    let own = Netdev { index: index(2), name: "d0".into() };
    let address = |(index, text): &(u32, &str)| {
        let ip = text.parse().unwrap();
        Address { index: *index, ip, near: ip, prefix: 24, is_duplicate: false }
    };
    let addresses: Vec<Address> = addresses.iter().map(address).collect();
    let links = Some(links.into_iter().collect());
    Namespace { links, ..Namespace::new([(("rxe0".into(), 1), Ok(Some(own)))].into(), &addresses) }
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

/// A row of iWARP is the port's own, whatever its GID is made of, and nobody else's.
#[test]
fn a_row_of_iwarp_is_the_port_s_own_interface_s() {
    let here = namespace(&[], vec![link(2, "d0"), link(3, "e0")]);
    let iwarp = Device { node_type: NodeType::RNIC, ..Device::sample("rxe0") };
    let of = |record| of_table(&here, &GidTable::sample("rxe0", vec![record]).of(iwarp.clone()));
    assert_eq!(of(first(2, "ea7a:8652:7b93::")), [Some("d0".to_owned())]);
    assert_eq!(of(first(3, "ea7a:8652:7b93::")), [None]);
    assert_eq!(name(&here, "rxe0", first(2, "ea7a:8652:7b93::")), None, "RoCE needs a proof");
}

#[test]
fn the_right_index_without_the_address_is_another_namespace_s() {
    let here = namespace(&[(2, "10.0.0.1")], vec![link(2, "d0")]);
    assert_eq!(name(&here, "rxe0", record(2, "10.0.0.9")), None);
}

#[test]
fn the_right_address_without_the_index_is_another_interface() {
    let here = namespace(&[(2, "10.0.0.1"), (3, "10.0.0.9")], vec![link(2, "d0"), link(3, "e0")]);
    assert_eq!(name(&here, "rxe0", record(3, "10.0.0.9")), None, "e0 is not on top of d0");
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
    assert!(named(bond(4, "bond0", BALANCE_RR, None)));
    assert!(named(bond(4, "bond0", ACTIVE_BACKUP, Some(2))));
    // The kernel makes no row of it for this port, so the row is another's.
    assert!(!named(bond(4, "bond0", ACTIVE_BACKUP, Some(9))));
    assert!(!named(bond(4, "bond0", ACTIVE_BACKUP, None)));
    assert!(!named(Link { bond: Some(Bond::default()), ..link(4, "bond0") }));
}

/// Two ways led to a bridge, and one is gone: then the kernel has removed its rows, and a row with its index and address
/// is another's. That does not show, but the connection manager knows.
#[test]
fn a_bridge_may_have_no_rows() {
    let vlan = |index, name| Link { lower: Some(2), master: Some(4), ..link(index, name) };
    let on_bridge = Link { lower: Some(4), ..link(5, "br0.9") };
    let addresses = [(4, "10.4.0.1"), (5, "10.9.0.1"), (3, "10.3.0.1")];
    let rows = [record(4, "10.4.0.1"), record(5, "10.9.0.1"), record(3, "10.3.0.1")];
    let named = |master: Link| {
        let links = vec![link(2, "d0"), vlan(3, "d0.72"), master, on_bridge.clone()];
        let here = namespace(&addresses, links);
        let table = GidTable::sample("rxe0", rows.to_vec());
        let names = here.name_table(&table);
        let asked: Vec<usize> = here.questions(&table, &names).iter().map(|own| own.0).collect();
        (names.iter().filter(|own| own.is_some()).count(), asked)
    };
    assert_eq!(named(Link { master_kind: String::new(), ..link(4, "br0") }), (1, vec![0, 1]));
    // So it is where the rows are at the port of the member that was active before.
    let d0 = Link { master: Some(4), master_kind: "bond".into(), ..link(2, "d0") };
    for (mode, count) in [(ACTIVE_BACKUP, 2), (5, 0), (6, 0)] {
        let bond0 = Link { kind: "bond".into(), ..bond(4, "bond0", mode, Some(2)) };
        let here = namespace(&addresses, vec![d0.clone(), bond0, on_bridge.clone()]);
        let found = names_of(&here, "rxe0", &rows[..2]);
        assert_eq!(found.iter().flatten().count(), count, "{mode}");
    }
    // Nor does a bond of VLANs.
    assert_eq!(named(bond(4, "bond0", BALANCE_RR, None)), (1, vec![0, 1]));
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

#[test]
fn what_is_below_an_interface_is_told_or_not() {
    let told = |links: Vec<Link>, index: u32| {
        let links: Links = links.into_iter().collect();
        !links.untold().contains(&index)
    };
    let vlan = |lower, is_guest| parsed(3, "d0.7", "vlan", lower, is_guest);
    assert!(told(vec![link(2, "d0"), vlan(Some(2), false)], 3));
    assert!(!told(vec![link(2, "d0"), vlan(Some(2), true)], 3), "it is elsewhere");
    assert!(!told(vec![vlan(Some(2), false)], 3), "it has gone");
    assert!(!told(vec![parsed(3, "t", "macvtap", Some(2), false), link(2, "d0")], 3));
    assert!(!told(vec![parsed(3, "t", "hsr", None, false)], 3));
    // What a bond's member is above.
    let member = |link: Link| Link { master: Some(4), master_kind: "dummy".into(), ..link };
    let bond0 = || bond(4, "bond0", BALANCE_RR, None);
    assert!(told(vec![bond0(), member(link(2, "d0")), member(link(5, "d1"))], 4));
    let macvlan = parsed(6, "m", "macvlan", Some(9), true);
    assert!(!told(vec![bond0(), member(link(2, "d0")), member(macvlan)], 4));
    // A circle, which no kernel makes.
    let circle = Link { lower: Some(3), ..link(2, "d0") };
    assert!(told(vec![circle, vlan(Some(2), false)], 3));
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

/// A link as the kernel sends it.
fn parsed(number: u32, name: &str, kind: &str, lower: Option<u32>, is_guest: bool) -> Link {
    let ethernet = libc::ARPHRD_ETHER.to_ne_bytes();
    let body = [&[0; 2][..], &ethernet, &number.to_ne_bytes(), &[0; 8]].concat();
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

/// Our row may not have found a place, and the only row is another's.
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
    here.port_netdevs.insert(("rxe0".into(), 2), Ok(Some(Netdev::new(index(2), "d0"))));
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
    // Of any type, if it keeps that back as well.
    let hidden = GidEntry::new(1, 8, gid("10.0.0.1")).with_type(GidType::UNNAMED);
    let hidden = GidRecord::from(hidden).with_netdev_unread(true).with_type_unread(true);
    let names = names_of(&here, "rxe0", &[of_d0("10.0.0.1"), hidden, of_d0("10.0.0.2")]);
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

/// What netlink says of the interfaces of ports 1 and 2 of `rxe0`, the second refused: their names, or errnos.
fn interfaces_of_ports(
    errno: Errno,
    device: Option<Datagram<Vec<u8>>>,
) -> [Result<Option<String>, i32>; 2] {
    use crate::netlink::Datagram;
    let d0 = Message::new(0, &[])
        .number(abi::attribute::NDEV_INDEX, 2)
        .text(abi::attribute::NDEV_NAME, "d0");
    let first = Datagram::reply(&d0.finish_for_test(), 1);
    let batches = [vec![first, Datagram::refusal(errno, 2)]];
    let batches = batches.into_iter().chain(device.map(|device| vec![device]));
    let mut host = Host::with_netlink(Socket::given(batches.collect()));
    let device = Device::sample("rxe0");
    let mut found = host.port_netdevs(&[(&device, 1), (&device, 2)]).unwrap();
    [1, 2].map(|port| {
        let netdev = found.remove(&("rxe0".to_owned(), port)).unwrap();
        netdev.map(|own| own.map(|own| own.name)).map_err(|error| {
            assert_eq!(error.request(), &Request::PortNetdev { port });
            assert!(!error.to_string().contains("ib_core"), "{error}");
            error.errno()
        })
    })
}

/// A port that its device does not have has no interface. Of a device that has gone, and of a port that the driver
/// refuses, nothing is known, and the others are known all the same.
#[test]
fn a_port_that_is_not_told_of_is_not_one_without_an_interface() {
    use crate::netlink::Datagram;
    let d0 = || Ok(Some("d0".to_owned()));
    let device = |ports| {
        let own = Message::new(0, &[])
            .number(abi::attribute::DEV_INDEX, 0)
            .text(abi::attribute::DEV_NAME, "rxe0")
            .number(abi::attribute::PORT_INDEX, ports);
        Some(Datagram::reply(&own.finish_for_test(), 3))
    };
    let gone = || Some(Datagram::refusal(Errno::INVAL, 3));
    for errno in [Errno::INVAL, Errno::NODEV] {
        let unknown = Err(errno.raw_os_error());
        assert_eq!(interfaces_of_ports(errno, device(2)), [d0(), unknown], "{errno}");
        assert_eq!(interfaces_of_ports(errno, device(1)), [d0(), Ok(None)], "{errno}");
        assert_eq!(interfaces_of_ports(errno, gone()), [d0(), Err(libc::ENODEV)], "{errno}");
    }
    let refused = Some(Datagram::refusal(Errno::PERM, 3));
    assert_eq!(interfaces_of_ports(Errno::INVAL, refused), [d0(), Err(libc::EPERM)]);
    for errno in
        [Errno::PERM, Errno::ACCESS, Errno::NOMEM, Errno::AGAIN, Errno::OPNOTSUPP, Errno::IO]
    {
        assert_eq!(interfaces_of_ports(errno, None), [d0(), Err(errno.raw_os_error())]);
    }
}

#[test]
fn a_device_with_a_port_that_is_not_told_of_may_have_any_interface() {
    use crate::netlink::Datagram;
    let may_have = |answer| {
        let mut host = Host::with_netlink(Socket::given(vec![vec![answer]]));
        host.may_have_netdev(&[&Device::sample("rxe0")], "lo").unwrap()
    };
    assert_eq!(may_have(Datagram::reply(&[], 1)), [false]);
    assert_eq!(may_have(Datagram::refusal(Errno::IO, 1)), [true]);
}

/// Of a port's rows the rows of others say nothing, and an index that nobody has here is elsewhere on each.
#[test]
fn a_row_of_a_port_that_is_not_told_of_may_be_of_any_interface() {
    let mut here = namespace(&[(2, "10.0.0.1")], vec![link(2, "d0"), link(3, "e0")]);
    let table = GidTable::sample("rxe0", vec![record(3, "10.0.0.7"), record(9, "10.0.0.8")]);
    let elsewhere = |here: &Namespace| {
        let namings =
            here.namings(&[&table], here.name(&[&table]), &[false], || None, |_| None).remove(0);
        [namings[0].is_elsewhere, namings[1].is_elsewhere]
    };
    assert_eq!(elsewhere(&here), [true, true]);
    let error = Error::new("rxe0", Request::PortNetdev { port: 1 }, Cause::Os(libc::EIO));
    here.port_netdevs.insert(("rxe0".into(), 1), Err(error));
    assert_eq!(elsewhere(&here), [false, true]);
    let refusal = Datagram::refusal(Errno::IO, 1);
    let mut host = Host::with_netlink(Socket::given(vec![vec![refusal]]));
    assert_eq!(host.netdevs(&[&table]).unwrap_err().errno(), libc::EIO);
}

#[test]
fn interfaces_of_this_very_host() {
    let interfaces = Host::new().interfaces().unwrap().unwrap();
    let loopback = interfaces.iter().find(|interface| interface.index.get() == 1).unwrap();
    assert!(loopback.mtu > 0, "{loopback:?}");
    assert_eq!(Host::rooted("/nowhere", "/nowhere").interfaces().unwrap(), None);
}

/// Each table is asked of by itself and beside others, with the interfaces already known or not.
#[test]
fn what_is_known_of_a_row_does_not_depend_on_what_else_is_asked() {
    let of = |index: u32, record| {
        let device = Device { index: Some(index), ..Device::sample(&format!("d{index}")) };
        GidTable::sample("", vec![record]).of(device)
    };
    // No interface here has this one's index, or its address. The other's address may be that of an interface above its
    // port's.
    let (far, near) = (of(0, record(u32::MAX, "192.0.2.1")), of(1, record(1, "127.0.0.1")));
    let unlisted = of(2, record(u32::MAX, "192.0.2.1")).of(Device::named("d2"));
    let asked = |tables: &[&GidTable], is_read: bool| {
        let listed = tables.iter().filter(|table| table.device().index.is_some()).count();
        // Neither the ports nor their devices are there any more.
        let mut places = 1..;
        let mut gone = || places.next().map(|place| Datagram::refusal(Errno::NODEV, place));
        let answers = [(); 2].map(|()| (0..listed).filter_map(|_| gone()).collect());
        let mut host = Host::with_netlink(Socket::given(answers.into()));
        let dump = is_read.then(|| Host::new().dump().unwrap().unwrap());
        host.netdevs_by(tables, dump, &mut PortNetdevs::new()).unwrap()
    };
    for is_read in [false, true] {
        let single: Vec<_> =
            [&far, &near, &unlisted].map(|table| asked(&[table], is_read).remove(0)).into();
        assert_eq!(asked(&[&far, &near, &unlisted], is_read), single, "{is_read}");
        assert_eq!(single[0][0].is_elsewhere, is_read);
    }
}

/// The kernel removes rows a moment after their interface is no more above the port's. And the port's own may come, or go,
/// after the links were read.
#[test]
fn a_row_of_an_interface_that_has_its_address_is_not_known_to_be_elsewhere() {
    let bridge = Link { mac: Some(MAC), kind: "bridge".into(), ..link(20, "br0") };
    // What is on the bridge goes with it, and others stay above what they are above.
    let on_bridge = Link { lower: Some(20), kind: "vlan".into(), ..link(21, "br0.7") };
    let on_other = Link { lower: Some(3), kind: "vlan".into(), ..link(22, "e0.7") };
    let addresses = [(20, "10.9.9.9"), (21, "10.9.9.1"), (22, "10.9.9.2"), (3, "10.9.9.3")];
    let all = vec![link(2, "d0"), bridge, link(3, "e0"), on_bridge, on_other];
    let mut here = namespace(&addresses, all);
    let rows = [
        record(20, "10.9.9.9"),
        record(20, "fe80::11:22ff:fe33:4455"),
        // This is not its address, and this is another one's.
        record(20, "10.9.9.8"),
        record(3, "10.9.9.9"),
        record(21, "10.9.9.1"),
        record(22, "10.9.9.2"),
        record(3, "10.9.9.3"),
        record(25, "10.9.9.9"),
    ];
    let table = GidTable::sample("rxe0", rows.to_vec());
    let elsewhere = |here: &Namespace| {
        let namings =
            here.namings(&[&table], here.name(&[&table]), &[false], || None, |_| None).remove(0);
        namings.iter().map(|own| own.is_elsewhere).collect::<Vec<_>>()
    };
    assert_eq!(elsewhere(&here), [false, false, true, true, false, true, true, true]);
    // The port's own may have been below the VLAN, and have gone since.
    here.port_netdevs.insert(("rxe0".into(), 1), Ok(None));
    assert_eq!(elsewhere(&here), [false, false, true, true, false, false, true, true]);
    here.port_netdevs.insert(("rxe0".into(), 1), Ok(Some(Netdev::new(index(25), "d9"))));
    assert_eq!(elsewhere(&here), [false; 8]);
}

/// A VLAN of an interface that has no RDMA has the index, or the name, and the address of another namespace's: if all that it
/// is on is here, and the port's own is not, also by a second reading.
#[test]
fn a_row_of_an_interface_beside_the_port_is_elsewhere_by_a_second_reading() {
    let vlan = |lower: u32| Link { lower: Some(lower), kind: "vlan".into(), ..link(22, "e0.7") };
    let e0 = || link(3, "e0");
    let mut here = namespace(&[(22, "10.9.9.2")], vec![e0(), vlan(3)]);
    here.port_netdevs.insert(("rxe0".into(), 1), Ok(None));
    let by_name = GidEntry::new(1, 4, gid("10.9.9.2")).with_type(GidType::ROCE_V2);
    let by_name = GidRecord::new(by_name, Source::Sysfs);
    let by_name = by_name.with_sysfs_netdev(Some("e0.7".to_owned()));
    let elsewhere = |here: &Namespace, again: Option<(Result<Option<Netdev>>, Vec<Link>)>| {
        let mut again = again.map(|(own, links)| {
            let own = PortNetdevs::from([(("rxe0".to_owned(), 1), own)]);
            Again::new(own, links.into_iter().collect())
        });
        let table = GidTable::sample("rxe0", vec![record(22, "10.9.9.2"), by_name.clone()]);
        let found = here.name(&[&table]);
        let namings = here.namings(&[&table], found, &[false], || again.take(), |_| None).remove(0);
        [namings[0].is_elsewhere, namings[1].is_elsewhere]
    };
    let unread = Error::new("rxe0", Request::PortNetdev { port: 1 }, Cause::Os(libc::EIO));
    let (none, e0_is_own) = (|| Ok(None), Ok(Some(Netdev::new(index(3), "e0"))));
    assert_eq!(elsewhere(&here, Some((none(), vec![e0(), vlan(3)]))), [true; 2]);
    // Nothing could be read again; the port's own has come back, or that is not known.
    assert_eq!(elsewhere(&here, None), [false; 2]);
    assert_eq!(elsewhere(&here, Some((e0_is_own, vec![e0(), vlan(3)]))), [false; 2]);
    assert_eq!(elsewhere(&here, Some((Err(unread), vec![e0(), vlan(3)]))), [false; 2]);
    // What it is on has gone to another namespace, or it has gone.
    let on_other = Link { lower: None, is_lower_told: false, ..vlan(3) };
    assert_eq!(elsewhere(&here, Some((none(), vec![e0(), on_other]))), [false; 2]);
    assert_eq!(elsewhere(&here, Some((none(), vec![e0()]))), [false; 2]);
    // Another interface has the address as well, and had the name perhaps.
    here = namespace(&[(22, "10.9.9.2"), (3, "10.9.9.2")], vec![e0(), vlan(3)]);
    here.port_netdevs.insert(("rxe0".into(), 1), none());
    assert_eq!(elsewhere(&here, Some((none(), vec![e0(), vlan(3)]))), [true, false]);
}

/// By sysfs a row has a name, which was read before the interfaces were.
#[test]
fn a_name_that_nobody_has_is_not_known() {
    let d0 = Link { mac: Some(MAC), ..link(2, "new0") };
    let here = namespace(&[(2, "10.0.0.1")], vec![d0, link(3, "e0")]);
    let by_name = |slot: u32, address: &str, name: &str| {
        let entry = GidEntry::new(1, slot, gid(address)).with_type(GidType::ROCE_V2);
        GidRecord::new(entry, Source::Sysfs).with_sysfs_netdev(Some(name.to_owned()))
    };
    let table = GidTable::sample(
        "rxe0",
        vec![
            by_name(0, "fe80::11:22ff:fe33:4455", "old0"),
            by_name(3, "10.0.0.1", "old0"),
            by_name(4, "10.0.0.9", "old0"),
            by_name(5, "10.0.0.8", "e0"),
            // Another interface than that of this name has the address: they may have changed names.
            by_name(6, "10.0.0.1", "e0"),
            record(9, "10.0.0.7"),
        ],
    );
    let tables = [&table];
    let namings = here.namings(&tables, here.name(&tables), &[false], || None, |_| None).remove(0);
    let told: Vec<_> = namings.iter().map(|it| (it.is_elsewhere, it.may_be_renamed)).collect();
    let (unknown, renamed, elsewhere) = ((false, false), (false, true), (true, false));
    assert_eq!(told, [renamed, renamed, unknown, elsewhere, unknown, elsewhere]);
    // Read once more, between the interfaces before and after.
    let told = |again: &GidTable, links: Vec<Link>| {
        let links: Links = links.into_iter().collect();
        let again = |_: &GidTable| Some((again.clone(), links.clone()));
        let namings = here.namings(&tables, here.name(&tables), &[false], || None, again).remove(0);
        [0, 1].map(|place: usize| (namings[place].is_elsewhere, namings[place].may_be_renamed))
    };
    let d0 = |name: &str| Link { mac: Some(MAC), ..link(2, name) };
    assert_eq!(told(&table, vec![d0("new0")]), [elsewhere; 2]);
    assert_eq!(told(&table, vec![d0("old0")]), [renamed; 2], "it has the name again");
    let mut rows: Vec<GidRecord> = table.iter().cloned().collect();
    for row in &mut rows[..2] {
        row.sysfs_netdev = Some("new0".to_owned());
    }
    assert_eq!(told(&GidTable::sample("rxe0", rows), vec![d0("new0")]), [renamed; 2]);
}

#[test]
fn two_devices_of_one_name_have_no_answer_in_one_call() {
    let of = |index| {
        let mut own = Device::sample("rxe0");
        own.index = index;
        own
    };
    // Listed before, and anew: another has the name.
    for (before, after) in [(Some(3), Some(8)), (None, Some(8))] {
        let (before, after) = (of(before), of(after));
        let table =
            |own: &Device| GidTable::sample("rxe0", vec![record(1, "127.0.0.1")]).of(own.clone());
        let (one, two) = (table(&before), table(&after));
        let mut host = Host::with_netlink(Socket::given(vec![]));
        let errors = [
            host.netdevs(&[&one, &two]).unwrap_err(),
            host.port_netdevs(&[(&before, 1), (&after, 1)]).unwrap_err(),
            host.may_have_netdev(&[&before, &after], "lo").unwrap_err(),
        ];
        for error in errors {
            assert_eq!((error.device(), error.cause()), (Some("rxe0"), &Cause::Replaced));
        }
    }
    // The same device twice is one.
    let own = of(Some(8));
    let answer = Datagram::reply(&Message::new(0, &[]).finish_for_test(), 1);
    let again = Datagram::reply(&Message::new(0, &[]).finish_for_test(), 2);
    let mut host = Host::with_netlink(Socket::given(vec![vec![answer, again]]));
    assert!(host.port_netdevs(&[(&own, 1), (&own, 1)]).is_ok());
}
