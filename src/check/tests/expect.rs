//! What is expected of a host: every deviation once, and hosts that fit what was made from them.

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

use super::*;
use crate::check::expect::{
    Allowed, DevicePattern, Field, Gathered, Gathering, HostPattern, Hosts, LeftOut, Value, compare,
};
use crate::choose::Network;
use crate::pkey::PKey;

/// A host on which every field has a value: two devices, of RoCE and of InfiniBand.
pub(super) fn full() -> Inventory {
    let mut inventory = good();
    inventory.kernel = Some("6.12.0".into());
    let second = inventory.second("mlx5_1").clone();
    for (place, record) in inventory.devices.iter_mut().enumerate() {
        record.device.fw_version = Some("28.39.1002".into());
        record.device.protocol = Some("roce".into());
        let mut hardware = Hardware { numa_node: Some(0), ..Hardware::default() };
        hardware.board_id = Some(format!("MT_000000000{place}"));
        let mut function = PciFunction::at("0000:17:00.0".parse().unwrap());
        function.link = Some(PcieLink { speed: 320, width: 16 });
        hardware.pci = Some(function);
        record.hardware = Some(hardware);
    }
    assert_eq!(second.device.name, "mlx5_1");
    let port = &mut inventory.devices[1].ports[0];
    port.netdev = Ok(None);
    port.pkeys = Some(Ok(vec![(0, PKey(0xffff)), (1, PKey(0x8001))]));
    let attributes = &mut port.attributes.as_mut().unwrap().as_mut().unwrap().0;
    attributes.link_layer = LinkLayer::INFINIBAND;
    inventory.devices[1].gids = Some(Ok(vec![row(0, "fe80::2", GidType::IB, None)]));
    inventory.rows().push(row(4, "fd00::1", GidType::ROCE_V2, Some(netdev())));
    inventory.interfaces.as_mut().unwrap()[0].addresses.push(("fd00::1".parse().unwrap(), 64));
    inventory
}

fn gathered(inventories: &[Inventory]) -> Gathered {
    let mut gathering = Gathering::default();
    for own in inventories {
        gathering.add(own);
    }
    gathering.end()
}

pub(super) fn pattern(inventories: &[Inventory]) -> HostPattern {
    gathered(inventories).pattern
}

fn link(inventory: &mut Inventory) -> &mut PcieLink {
    let hardware = inventory.first().hardware.as_mut().unwrap();
    hardware.pci.as_mut().unwrap().link.as_mut().unwrap()
}

fn address(inventory: &mut Inventory, old: &str, new: &str) {
    let interface = &mut inventory.interfaces.as_mut().unwrap()[0];
    let parsed = |text: &str| text.parse::<IpAddr>().unwrap();
    for (own, _) in interface.addresses.iter_mut().filter(|(own, _)| *own == parsed(old)) {
        *own = parsed(new);
    }
    let gid = |text: &str| match parsed(text) {
        IpAddr::V4(own) => Gid::from(own),
        IpAddr::V6(own) => Gid::from(own),
    };
    for row in inventory.rows().iter_mut().filter(|row| row.record.entry.gid() == gid(old)) {
        let entry = GidEntry::new(1, row.record.entry.index(), gid(new))
            .with_type(row.record.entry.gid_type())
            .with_netdev_ifindex(row.record.entry.netdev_ifindex());
        row.record = entry.into();
    }
}

/// A finding, with the change to a host that fits that causes it.
pub(super) type Deviation = (&'static str, Option<u32>, fn(&mut Inventory));

/// Findings, each with the place and the change to a host that fits.
pub(super) const DEVIATIONS: &[Deviation] = &[
    ("expect-devices", None, |it| drop(it.devices.remove(0))),
    ("expect-devices", None, |it| {
        let record = it.second("mlx5_9");
        record.device.driver = Some(DriverId::RXE);
    }),
    ("expect-firmware", None, |it| it.first().device.fw_version = Some("28.40.1000".into())),
    ("expect-numa-node", None, |it| it.first().hardware.as_mut().unwrap().numa_node = Some(1)),
    // A machine without NUMA.
    ("expect-numa-node", None, |it| it.first().hardware.as_mut().unwrap().numa_node = None),
    ("expect-pcie-speed", None, |it| link(it).speed = 160),
    ("expect-pcie-width", None, |it| link(it).width = 8),
    ("expect-ports", None, |it| it.first().device.port_count = 2),
    ("expect-link-layer", Some(1), |it| it.attributes().link_layer = LinkLayer::INFINIBAND),
    ("expect-state", Some(1), |it| it.attributes().state = PortState::DOWN),
    // What follows from a port that is down is not told again.
    ("expect-state", Some(1), |it| {
        let own = it.attributes();
        (own.state, own.active_width, own.active_speed) =
            (PortState::DOWN, Some(Width(1)), Some(Speed::SDR));
    }),
    ("expect-rate", Some(1), |it| it.attributes().active_speed = Some(Speed::HDR)),
    ("expect-width", Some(1), |it| {
        // 4 lanes of 25 Gb/s, 2 of 50.
        let own = it.attributes();
        (own.active_width, own.active_speed) = (Some(Width(16)), Some(Speed::HDR));
    }),
    ("expect-mtu", Some(1), |it| it.attributes().active_mtu = Some(Mtu(5))),
    ("expect-interface", Some(1), |it| {
        it.interfaces.as_mut().unwrap()[0].name = "eth7".into();
        it.first().ports[0].netdev.as_mut().unwrap().as_mut().unwrap().name = "eth7".into();
        it.rows().iter_mut().for_each(|row| row.netdev.as_mut().unwrap().name = "eth7".into());
    }),
    ("expect-ipv4", Some(1), |it| address(it, "10.0.0.1", "10.0.1.1")),
    ("expect-ipv6", Some(1), |it| address(it, "fd00::1", "fd00:0:0:1::1")),
    // No program can use it.
    ("expect-ipv6", Some(1), |it| {
        let own = &mut it.interfaces.as_mut().unwrap()[0];
        own.unfit.push(("fd00::1".parse().unwrap(), Unfit::Duplicate));
    }),
    ("expect-pkey", Some(1), |it| it.devices[1].ports[0].pkeys = Some(Ok(vec![(0, PKey(0xffff))]))),
    ("expect-gid-index", Some(1), |it| {
        // One more that is as good, before it. The programs are told to take the same as before.
        it.rows().insert(0, row(0, "::ffff:10.0.0.2", GidType::ROCE_V2, Some(netdev())));
        it.rows().remove(1);
        let interface = &mut it.interfaces.as_mut().unwrap()[0];
        interface.addresses.push(("10.0.0.2".parse().unwrap(), 24));
        it.set("NCCL_IB_GID_INDEX", "3");
        it.set("UCX_IB_ROCE_SUBNETS", "10.0.0.1/32");
    }),
    ("expect-nccl-index", Some(1), |it| it.set("NCCL_IB_GID_INDEX", "2")),
    ("expect-ucx-index", Some(1), |it| it.set("UCX_NET_DEVICES", "mlx5_1:1")),
    // What could not be read is not as expected.
    ("expect-unread", None, |it| {
        let hardware = it.first().hardware.as_mut().unwrap();
        (hardware.numa_node, hardware.numa_node_is_unread) = (None, true);
    }),
    ("expect-unread", None, |it| it.first().device.driver = None),
    ("expect-unread", None, |it| it.first().device.fw_version = None),
    ("expect-unread", None, |it| {
        let hardware = it.first().hardware.as_mut().unwrap();
        (hardware.board_id, hardware.board_is_unread) = (None, true);
    }),
    ("expect-unread", None, |it| {
        let hardware = it.first().hardware.as_mut().unwrap();
        (hardware.pci, hardware.pci_is_unread) = (None, true);
    }),
    ("expect-unread", Some(1), |it| it.attributes().active_mtu = None),
    ("expect-unread", Some(1), |it| it.first().ports[0].attributes = Some(Err(problem("no", 5)))),
    ("expect-unread", Some(1), |it| it.first().gids = Some(Err(problem("no", 5)))),
    ("expect-unread", Some(1), |it| it.devices[1].ports[0].pkeys = None),
    ("expect-unread", Some(1), |it| it.unread_settings.push(problem("no", 5))),
];

fn names_of(found: &[Finding]) -> Vec<(&str, Option<u32>)> {
    found.iter().map(|own| (own.name, own.port)).collect()
}

#[test]
fn every_deviation_is_found_and_nothing_else() {
    let pattern = pattern(&[full()]);
    assert_eq!(compare(&full(), &pattern, |_| true), []);
    for (place, (expected, port, change)) in DEVIATIONS.iter().enumerate() {
        let mut inventory = full();
        change(&mut inventory);
        let found = compare(&inventory, &pattern, |_| true);
        // Settings that could not be read are those of both ports.
        let count = if inventory.unread_settings.is_empty() { 1 } else { 2 };
        assert_eq!(names_of(&found), vec![(*expected, *port); count], "{place}: {found:#?}");
    }
    let tested: BTreeSet<&str> = DEVIATIONS.iter().map(|own| own.0).collect();
    for field in Field::ALL {
        assert!(tested.contains(field.finding()), "{field:?}");
        let own = &pattern.devices;
        assert!(own.iter().any(|own| own.fields.contains_key(&field)), "{field:?}");
    }
}

/// What is left out is not compared.
#[test]
fn what_is_left_out_is_not_compared() {
    for (place, (_, _, change)) in DEVIATIONS.iter().enumerate() {
        let mut inventory = full();
        change(&mut inventory);
        assert_eq!(compare(&inventory, &HostPattern::default(), |_| true), [], "{place}");
        let any = HostPattern { devices: vec![DevicePattern::default()], ..HostPattern::default() };
        assert_eq!(compare(&inventory, &any, |_| true), [], "{place}");
    }
}

/// A list of devices that is not whole is not as expected, and not otherwise either.
#[test]
fn devices_that_could_not_be_listed() {
    let pattern = pattern(&[full()]);
    let mut inventory = full();
    inventory.unlisted.push(("mlx5_7".into(), problem("no", 5)));
    let found = compare(&inventory, &pattern, |_| true);
    assert!(found.iter().all(|own| own.name == "expect-unread"), "{found:#?}");
    let of_host = found.iter().filter(|own| own.device.is_none()).count();
    assert_eq!(of_host, 3, "two groups, and whether there are others: {found:#?}");
    // NCCL may have no room for its ports: it may have any number of them.
    let mut of_ports = found.iter().filter(|own| own.device.is_some());
    assert!(of_ports.all(|own| own.seen.ends_with("of NCCL")), "{found:#?}");
    assert!(found.len() > of_host, "{found:#?}");
    // There may be one more, which is allowed.
    let mut other = pattern.clone();
    let numbers = [Value::Number(0), Value::Number(2)].into_iter().collect();
    other.devices[0].count = Some(Allowed::OneOf(numbers));
    assert!(
        names_of(&compare(&inventory, &other, |_| true)).iter().all(|own| own.0 == "expect-unread")
    );
    // It may be the one that is missing.
    inventory.devices.remove(1);
    assert!(
        names_of(&compare(&inventory, &pattern, |_| true))
            .iter()
            .all(|own| own.0 == "expect-unread")
    );
    // Too many are too many.
    let mut inventory = full();
    inventory.list_failure = Some(problem("no", 5));
    let third = inventory.first().clone();
    inventory.devices.push(third);
    let found = compare(&inventory, &pattern, |_| true);
    assert_eq!(found[0].name, "expect-devices");
    assert!(found[0].seen.starts_with("at least 2 devices of "), "{found:#?}");
    assert!(found[0].advice.contains("virtual functions"), "{found:#?}");
    // One that is not asked for is not missed, and nothing is said of a number that it may be among.
    let mut inventory = full();
    inventory.unlisted.push(("mlx5_7".into(), problem("no", 5)));
    let found = compare(&inventory, &pattern, |name| name != "mlx5_7");
    assert!(found.iter().all(|own| own.device.is_some()), "{found:#?}");
    // A group of names has no device of another name.
    let mut named = HostPattern { only_these_devices: false, ..pattern.clone() };
    for own in &mut named.devices {
        own.names = inventory.devices.iter().map(|own| own.device.name.clone()).collect();
    }
    let of_host = |named: &HostPattern| {
        let found = compare(&inventory, named, |_| true).into_iter();
        found.filter(|own| own.device.is_none()).map(|own| own.seen).collect::<Vec<_>>()
    };
    assert_eq!(of_host(&named), [""; 0]);
    named.devices[0].names.push("mlx5_7".into());
    assert_eq!(
        of_host(&named),
        [format!("not known: how many devices there are of {}", named.devices[0])]
    );
    // Other problems keep no device from being listed, as that RDMA netlink was refused.
    let mut inventory = full();
    inventory.without_netlink = Some(problem("refused", 1));
    inventory.problems.extend([problem("refused", 1), problem("no interfaces", 1)]);
    assert_eq!(compare(&inventory, &pattern, |_| true), []);
    let made = gathered(std::slice::from_ref(&inventory)).pattern;
    assert!(made.only_these_devices && made.devices.iter().all(|own| own.count.is_some()));
    // Too few, whether or not those are of the group whose driver is not known.
    let mut inventory = full();
    inventory.first().device.driver = None;
    let mut other = pattern.clone();
    other.devices[0].count = Some(Allowed::OneOf([Value::Number(5)].into_iter().collect()));
    let found = compare(&inventory, &other, |_| true);
    assert!(found[0].seen.starts_with("at least 0 devices of "), "{found:#?}");
    // Those that were not asked for are not missing.
    let mut inventory = full();
    let other = inventory.devices.remove(1);
    inventory.others.push(other.device);
    assert_eq!(compare(&inventory, &pattern, |_| true), []);
}

#[test]
fn what_is_seen_and_wanted() {
    let own = pattern(&[full()]);
    let told = |change: fn(&mut Inventory), pattern: &HostPattern| {
        let mut inventory = full();
        change(&mut inventory);
        let mut found = compare(&inventory, pattern, |_| true).into_iter();
        let Finding { seen, wanted, .. } = found.next().unwrap();
        (seen, wanted.unwrap_or_default())
    };
    let text = |one: &str, other: &str| (one.to_owned(), other.to_owned());
    let of = |change| told(change, &own);
    assert_eq!(
        of(|it| it.attributes().active_speed = Some(Speed::SDR)),
        text("rate: 10 Gb/s", "100 Gb/s")
    );
    assert_eq!(
        of(|it| address(it, "10.0.0.1", "192.168.0.1")),
        text("IPv4 addresses with a RoCE v2 GID: 192.168.0.1", "one in 10.0.0.0/24")
    );
    assert_eq!(
        of(|it| it.devices[1].ports[0].pkeys = Some(Ok(vec![(0, PKey(0x7fff))]))),
        text("P_Keys: 0x7fff", "0x8001, 0xffff")
    );
    assert_eq!(of(|it| drop(it.devices.remove(1))), text("0 devices of mlx5 MT_0000000001", "1"));
    assert_eq!(
        of(|it| it.first().ports[0].netdev = Ok(None)),
        text("network interface: none", "eth0")
    );
    assert_eq!(
        of(|it| it.first().ports[0].netdev = Err(problem("no", 5))),
        text("not known: network interface", "")
    );
    assert_eq!(of(|it| it.attributes().active_mtu = None), text("not known: RDMA MTU", ""));
    let mut wide = own.clone();
    for (field, allowed) in [
        (Field::Rate, Allowed::Within { min: Some(2000), max: None }),
        (Field::Firmware, Allowed::OneOf(vec![Value::word("a"), Value::word("b")])),
    ] {
        wide.devices[0].fields.insert(field, allowed);
    }
    let mut found = compare(&full(), &wide, |_| true).into_iter().map(|own| own.wanted.unwrap());
    assert_eq!(found.next().as_deref(), Some("a or b"));
    assert_eq!(found.next().as_deref(), Some("at least 200 Gb/s"));
}

/// From several hosts it is what holds for all.
#[test]
fn several_hosts() {
    let mut other = full();
    address(&mut other, "10.0.0.1", "10.0.3.1");
    other.first().device.fw_version = Some("28.40.1000".into());
    other.devices[1].ports[0].pkeys = Some(Ok(vec![(0, PKey(0xffff)), (1, PKey(0x8002))]));
    let mut third = full();
    third.devices.remove(1);
    let all = [full(), other, third];
    let own = pattern(&all);
    let [roce, infiniband] = &own.devices[..] else { panic!("{own:#?}") };
    assert_eq!(roce.count, Some(Allowed::one(Value::Number(1))));
    assert_eq!(infiniband.count, Some(Allowed::Within { min: Some(0), max: Some(1) }));
    let firmware = ["28.39.1002", "28.40.1000"].map(Value::word);
    assert_eq!(roce.fields[&Field::Firmware], Allowed::OneOf(firmware.to_vec()));
    let common = Network { address: "10.0.0.0".parse().unwrap(), bits: 22 };
    assert_eq!(roce.fields[&Field::RoceV2Ipv4], Allowed::one(Value::Network(common)));
    assert_eq!(infiniband.fields[&Field::PKeys], Allowed::one(Value::Number(0xffff)));
    for host in &all {
        assert_eq!(compare(host, &own, |_| true), []);
    }
}

/// A port that is always down does not hide that another one is down today.
#[test]
fn devices_that_differ_are_groups_of_their_own() {
    let mut host = good();
    for number in 1..4 {
        host.second(&format!("mlx5_{number}"));
    }
    host.attributes().state = PortState::DOWN;
    let own = pattern(std::slice::from_ref(&host));
    let names: Vec<&[String]> = own.devices.iter().map(|own| own.names.as_slice()).collect();
    assert_eq!(names, [&["mlx5_0"][..], &["mlx5_1", "mlx5_2", "mlx5_3"]]);
    let two = &mut host.devices[2].ports[0].attributes;
    two.as_mut().unwrap().as_mut().unwrap().0.state = PortState::DOWN;
    let found = compare(&host, &own, |_| true);
    assert_eq!(names_of(&found), [("expect-state", Some(1))]);
    host.devices.remove(3);
    let found = compare(&host, &own, |_| true);
    assert_eq!(found[0].seen, "2 devices of mlx5: mlx5_1, mlx5_2, mlx5_3, without mlx5_3");
}

/// What is said of a host does not grow with the names of a group that it lacks.
#[test]
fn the_first_of_many_missing_devices_are_named() {
    let mut pattern = pattern(&[good()]);
    let group = &mut pattern.devices[0];
    group.names = (0..10).map(|number| format!("a{number}")).collect();
    let found = compare(&good(), &pattern, |_| true);
    let eight = "a0, a1, a2, a3, a4, a5, a6, a7";
    let seen = format!("0 devices of mlx5: {eight}, 2 more, without {eight}, and more");
    assert_eq!(found[0].seen, seen);
}

/// The same of a rate. Other firmware, another NUMA node and another index make no group.
#[test]
fn what_makes_a_group() {
    let groups = |change: fn(&mut Inventory)| {
        let mut host = full();
        let mut second = host.devices.remove(0);
        second.device.name = "mlx5_9".into();
        host.devices[0] = second;
        host.second("mlx5_0");
        change(&mut host);
        pattern(&[host]).devices.len()
    };
    assert_eq!(groups(|_| ()), 1);
    assert_eq!(groups(|it| it.attributes().active_speed = Some(Speed::SDR)), 2);
    assert_eq!(groups(|it| link(it).width = 8), 2);
    assert_eq!(groups(|it| it.first().device.fw_version = Some("1".into())), 1);
    assert_eq!(groups(|it| it.first().hardware.as_mut().unwrap().numa_node = Some(1)), 1);
    assert_eq!(groups(|it| it.set("NCCL_IB_GID_INDEX", "2")), 1);
}

/// Devices of a host come and go.
#[test]
fn inventories_of_one_host() {
    let names = |all: &[(&str, &[u64])]| {
        let mut hosts = Hosts::default();
        for (name, guids) in all {
            let mut inventory = Inventory::default();
            for guid in *guids {
                let mut device = Device::named("mlx5_0");
                device.node_guid = (*guid).into();
                inventory.devices.push(DeviceRecord::new(device));
            }
            hosts.add(Some(*name).filter(|own| !own.is_empty()), &inventory);
        }
        hosts.names().map(|own| own.unwrap_or("-").to_owned()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names(&[("a", &[1]), ("a", &[1, 2]), ("a", &[2])]), "a");
    assert_eq!(names(&[("a", &[1]), ("b", &[3]), ("a", &[2]), ("a", &[2, 1])]), "a b");
    assert_eq!(names(&[("a", &[1]), ("a", &[2]), ("b", &[1])]), "a a b");
    assert_eq!(
        names(&[("a", &[3]), ("a", &[2]), ("a", &[1]), ("a", &[1, 2]), ("a", &[2, 3])]),
        "a"
    );
    // Without a GUID it may be either, and 0 is none.
    assert_eq!(names(&[("a", &[]), ("a", &[1]), ("a", &[2]), ("a", &[0])]), "a a");
    assert_eq!(names(&[("a", &[]), ("a", &[0]), ("b", &[])]), "a b");
    // Nobody knows of what has no name.
    assert_eq!(names(&[("", &[1]), ("", &[1]), ("a", &[1])]), "- - a");
}

/// What is of one host only is no pattern.
#[test]
fn what_is_of_one_host_is_left_out() {
    let mut host = full();
    host.interfaces.as_mut().unwrap()[0].addresses[0].1 = 31;
    let number = |own: &mut Inventory, guid: u64| {
        own.devices.iter_mut().for_each(|own| own.device.node_guid = guid.into());
    };
    number(&mut host, 1);
    let Gathered { pattern, left_out, .. } = gathered(std::slice::from_ref(&host));
    assert!(!pattern.devices[0].fields.contains_key(&Field::RoceV2Ipv4));
    assert!(left_out[0].contains(&(Field::RoceV2Ipv4, LeftOut::OfOneHost)));
    // Two snapshots of it are one host, also if a device came.
    let mut later = host.clone();
    later.devices[1].device.node_guid = 2.into();
    for later in [host.clone(), later] {
        let again = gathered(&[host.clone(), later]);
        assert!(again.left_out[0].contains(&(Field::RoceV2Ipv4, LeftOut::OfOneHost)));
    }
    let mut other = host.clone();
    address(&mut other, "10.0.0.1", "10.0.0.9");
    // Another host has another name, or other devices.
    let name = |own: &mut Inventory| own.host = Some("node2".into());
    let guids = |own: &mut Inventory| number(own, 2);
    for change in [&name as &dyn Fn(&mut Inventory), &guids] {
        let mut other = other.clone();
        change(&mut other);
        let both = gathered(&[host.clone(), other]).pattern;
        let network = Network { address: "10.0.0.0".parse().unwrap(), bits: 28 };
        let seen = &both.devices[0].fields[&Field::RoceV2Ipv4];
        assert_eq!(*seen, Allowed::one(Value::Network(network)));
    }
}

/// Devices that are alike are one group, also if each has a network of its own.
#[test]
fn rails_keep_their_networks() {
    let mut host = good();
    let record = host.second("mlx5_1");
    for own in record.gids.as_mut().unwrap().as_mut().unwrap().iter_mut().skip(2) {
        let entry = &own.record.entry;
        *own = row(entry.index(), "::ffff:10.1.0.1", entry.gid_type(), Some(netdev()));
    }
    let interface = &mut host.interfaces.as_mut().unwrap()[0];
    interface.addresses.push(("10.1.0.1".parse().unwrap(), 24));
    let mut other = host.clone();
    address(&mut other, "10.0.0.1", "10.0.1.1");
    let networks = |hosts: &[Inventory]| {
        let own = pattern(hosts);
        assert_eq!(own.devices.len(), 1, "{own:#?}");
        let Allowed::OneOf(all) = &own.devices[0].fields[&Field::RoceV2Ipv4] else { panic!() };
        all.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(networks(std::slice::from_ref(&host)), ["10.0.0.0/24", "10.1.0.0/24"]);
    assert_eq!(networks(&[host, other]), ["10.0.0.0/23", "10.1.0.0/24"]);
}

fn small() -> impl Strategy<Value = u8> {
    0u8..3
}

fn any_row() -> impl Strategy<Value = GidRow> {
    let gid = prop_oneof![
        Just("fe80::1"),
        Just("::ffff:10.0.0.1"),
        Just("::ffff:10.0.0.2"),
        Just("::ffff:192.168.0.1"),
        Just("fd00::1"),
        Just("::ffff:169.254.0.1"),
    ];
    (0u32..6, gid, 0u32..4, any::<bool>(), any::<bool>(), small()).prop_map(
        |(index, gid, kind, is_here, is_hidden, elsewhere)| {
            let mut own = row(index, gid, GidType(kind), is_here.then(netdev));
            own.type_is_hidden = is_hidden && kind == 3;
            own.record.type_is_unread = own.type_is_hidden;
            own.netdev_is_elsewhere = elsewhere == 0 && !is_here;
            own
        },
    )
}

prop_compose! {
    fn any_device()(
        name in 0u8..4,
        driver in prop_oneof![6 => Just(Some(DriverId::MLX5)), 2 => Just(Some(DriverId(77))), 1 => Just(None)],
        firmware in proptest::option::of(small()),
        hardware in proptest::option::of((proptest::option::of(small()), proptest::option::of(small()), proptest::option::of(small()))),
        (state, layer, width, mtu, speed) in (small(), small(), small(), small(), small()),
        has_attributes in prop_oneof![8 => Just(true), 1 => Just(false)],
        netdev_is_here in any::<bool>(),
        pkeys in prop_oneof![1 => Just(None), 3 => proptest::collection::vec(small(), 0..3).prop_map(Some)],
        rows in prop_oneof![8 => proptest::collection::vec(any_row(), 0..6).prop_map(Some), 1 => Just(None)],
        ports in 0u32..3,
    ) -> DeviceRecord {
        let mut record = good().devices.remove(0);
        record.device.name = format!("mlx5_{name}");
        record.device.index = Some(name.into());
        (record.device.driver, record.device.port_count) = (driver, ports);
        record.device.fw_version = firmware.map(|own| own.to_string());
        record.hardware = hardware.map(|(board, numa, width)| {
            let mut own = Hardware { numa_node: numa.map(Into::into), ..Hardware::default() };
            own.board_id = board.map(|own| own.to_string());
            own.pci = width.map(|width| {
                let mut function = PciFunction::at("0000:17:00.0".parse().unwrap());
                function.link = (width > 0).then_some(PcieLink { speed: 160, width });
                function
            });
            own
        });
        let mut attributes = PortAttributes {
            state: PortState(state + 2),
            link_layer: LinkLayer(layer),
            gid_tbl_len: 5,
            ..PortAttributes::default()
        };
        (attributes.active_width, attributes.active_mtu) = (Some(Width(width)), Some(Mtu(mtu)));
        attributes.active_speed = (speed > 0).then_some(Speed(speed.into()));
        let port = record.ports.remove(0);
        record.ports = (1..=ports.min(1 + u32::from(state))).map(|number| PortRecord {
            number,
            attributes: Some(if has_attributes {
                Ok((attributes.clone(), Source::Ioctl))
            } else {
                Err(problem("no", 5))
            }),
            netdev: Ok(netdev_is_here.then(netdev)),
            pkeys: pkeys.clone().map(|own| Ok(own.iter().map(|key| (0, PKey((*key).into()))).collect())),
            ..port.clone()
        }).collect();
        record.gids = Some(rows.ok_or_else(|| problem("no", 5)).map(|mut rows| {
            rows.sort_by_key(|row| row.record.entry.index());
            rows.dedup_by_key(|row| row.record.entry.index());
            rows
        }));
        record
    }
}

prop_compose! {
    fn any_host()(
        devices in proptest::collection::vec(any_device(), 0..4),
        (has_host, has_netlink, has_interfaces) in (prop_oneof![4 => Just(true), 1 => Just(false)], prop_oneof![4 => Just(true), 1 => Just(false)], prop_oneof![4 => Just(true), 1 => Just(false)]),
        bits in 0u8..40,
        (trouble, setting) in (0u8..12, 0u8..8),
    ) -> Inventory {
        let mut own = good();
        own.devices = devices;
        own.devices.sort_by(|one, other| one.device.name.cmp(&other.device.name));
        own.devices.dedup_by(|one, other| one.device.name == other.device.name);
        own.host = own.host.filter(|_| has_host);
        own.has_netlink = has_netlink;
        for address in ["10.0.0.2", "192.168.0.1", "fd00::1"] {
            own.interfaces.as_mut().unwrap()[0].addresses.push((address.parse().unwrap(), bits));
        }
        own.interfaces = own.interfaces.filter(|_| has_interfaces);
        match trouble {
            0 => own.problems.push(problem("no", 5)),
            1 => own.unlisted.push(("mlx5_9".into(), problem("no", 5))),
            2 => own.others.push(Device::named("mlx5_8")),
            3 => own.unread_settings.push(problem("no", 5)),
            _ => {}
        }
        match setting {
            0 => own.set("NCCL_IB_GID_INDEX", "1"),
            1 => own.set("UCX_NET_DEVICES", "mlx5_0:1"),
            2 => own.set("NCCL_NET", "Socket"),
            _ => {}
        }
        own
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: Some(Box::new(FileFailurePersistence::SourceParallel("tests/regressions"))),
        ..ProptestConfig::default()
    })]

    /// Whatever hosts are like, and whatever of them could not be read: they fit what was made from them.
    #[test]
    fn hosts_fit_what_was_made_from_them(hosts in proptest::collection::vec(any_host(), 1..4)) {
        let Gathered { pattern, left_out, .. } = gathered(&hosts);
        prop_assert_eq!(pattern.devices.len(), left_out.len());
        for host in &hosts {
            prop_assert_eq!(compare(host, &pattern, |_| true), []);
        }
        let mut again = hosts.clone();
        again.reverse();
        prop_assert_eq!(gathered(&again).pattern, pattern, "the order of hosts does not matter");
    }
}
