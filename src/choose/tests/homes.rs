//! Where the interface of a row is, by what is known of the interfaces here.

use core::num::NonZeroU32;
use std::net::IpAddr;

use super::*;
use crate::choose::plan::Model;
use crate::choose::surroundings::{Surroundings, port as seen};
use crate::choose::ucx;
use crate::device::Device;
use crate::gid::{Gid, GidEntry, GidRecord, Source};
use crate::inventory::{Answer, DeviceRecord, GidRow, Inventory, PortRecord, Problem};
use crate::netdev::{Interface, Netdev, Unfit};
use crate::port::PortAttributes;

const MAC: [u8; 6] = [0x02, 0x11, 0x22, 0x33, 0x44, 0x55];

fn gid(text: &str) -> Gid {
    text.parse::<Ipv6Addr>().unwrap().into()
}

/// eth0 has the index 2, and 10.0.0.1; eth1 has the index 3, and 10.0.0.2.
pub(super) fn here() -> Inventory {
    let interface = |index, name: &str, address: &str| {
        let mut own = Interface::new(NonZeroU32::new(index).unwrap(), name);
        (own.is_up, own.is_lower_up) = (true, true);
        own.mac = Some(MAC);
        own.addresses = vec![(address.parse::<IpAddr>().unwrap(), 24)];
        own
    };
    let interfaces = vec![interface(2, "eth0", "10.0.0.1"), interface(3, "eth1", "10.0.0.2")];
    Inventory {
        host: Some("pod".to_owned()),
        has_netlink: true,
        interfaces: Some(interfaces),
        ..Inventory::default()
    }
}

pub(super) fn by_ioctl(text: &str, ifindex: u32) -> GidRow {
    let entry = GidEntry::new(1, 0, gid(text)).with_type(GidType::ROCE_V2);
    GidRow::from(GidRecord::from(entry.with_netdev_ifindex(NonZeroU32::new(ifindex))))
}

fn by_sysfs(text: &str, name: Option<&str>) -> GidRow {
    let entry = GidEntry::new(1, 0, gid(text)).with_type(GidType::ROCE_V2);
    let record = GidRecord::new(entry, Source::Sysfs);
    GidRow::from(record.with_sysfs_netdev(name.map(str::to_owned)))
}

pub(super) fn unread(text: &str) -> GidRow {
    let mut row = by_sysfs(text, None);
    row.record.netdev_is_unread = true;
    row
}

/// The home of the row of a RoCE port, in words.
fn home_in(inventory: &Inventory, row: &GidRow) -> String {
    home_on(inventory, row, LinkLayer::ETHERNET)
}

/// A device with one port, whose table has this row.
pub(super) fn with_row(row: &GidRow, link_layer: LinkLayer) -> DeviceRecord {
    let attributes = PortAttributes {
        state: PortState::ACTIVE,
        link_layer,
        gid_tbl_len: 8,
        ..Default::default()
    };
    let mut record = DeviceRecord::new(Device::named("mlx5_0"));
    record.gids = Some(Ok(vec![row.clone()]));
    record.ports = vec![PortRecord {
        number: 1,
        attributes: Some(Ok((attributes, Source::Ioctl))),
        effective: None,
        guid: Ok(None),
        netdev: Ok(None),
        pkeys: None,
        has_types: None,
    }];
    record
}

fn home_on(inventory: &Inventory, row: &GidRow, link_layer: LinkLayer) -> String {
    let record = with_row(row, link_layer);
    let surroundings = Surroundings::of(inventory);
    let port = seen(&surroundings, &record, &record.ports[0]).unwrap();
    match port.rows[0].home {
        Home::Ours { name, has_address, unfit, .. } => {
            let row = &port.rows[0];
            let is_duplicate = unfit == Some(Unfit::Duplicate);
            let is_own = matches!(
                unfit,
                None | Some(
                    Unfit::Enslaved | Unfit::Bypassed | Unfit::NoNeighbours | Unfit::NoLinkLocal
                )
            );
            let is_of_use = has_address && (is_own || is_duplicate);
            let is_of_use = is_of_use || unfit == Some(Unfit::OtherMac);
            let handle = (row.has_address_handle, row.is_address_handle_known());
            assert_eq!(handle, (is_of_use, !is_duplicate), "of all but the local ones of v1");
            let unfit = unfit.map(|why| format!(" {why:?}")).unwrap_or_default();
            format!("ours {name} {has_address}{unfit}")
        }
        Home::Unproven { name, is_named, is_up, unfit } => {
            let kind = if is_named { "un" } else { "address un" };
            let down = if is_up { "" } else { " down" };
            let unfit = unfit.map(|why| format!(" {why:?}")).unwrap_or_default();
            format!("{kind}proven {}{down}{unfit}", name.unwrap_or("-"))
        }
        Home::Unknown { name } => format!("unknown {}", name.unwrap_or("-")),
        other => format!("{other:?}"),
    }
}

#[test]
fn what_proves_that_an_interface_is_elsewhere() {
    let here = here();
    let home = |row: &GidRow| home_in(&here, row);
    // No interface here has the index. One that has another name may have been renamed.
    assert_eq!(home(&by_ioctl("::ffff:10.0.0.1", 9)), "Foreign");
    assert_eq!(home(&by_sysfs("::ffff:10.0.0.1", Some("eth9"))), "address unproven eth0");
    assert_eq!(home(&by_sysfs("::ffff:10.9.9.9", Some("eth9"))), "WithoutAddress");
    // Two interfaces may have exchanged their names.
    assert_eq!(home(&by_sysfs("::ffff:10.0.0.1", Some("eth1"))), "address unproven eth0");
    let elsewhere = GidRow { netdev_is_elsewhere: true, ..by_ioctl("::ffff:10.0.0.1", 2) };
    assert_eq!(home(&elsewhere), "Foreign");
    // IPv4 written as IPv6 is the same GID, and of use if IPv4 is.
    let mut mapped = here.clone();
    let eth0 = &mut mapped.interfaces.as_mut().unwrap()[0];
    let written: IpAddr = "::ffff:10.0.0.1".parse().unwrap();
    eth0.addresses.push((written, 120));
    eth0.unfit = vec![(written, Unfit::Duplicate)];
    assert_eq!(home_in(&mapped, &by_ioctl("::ffff:10.0.0.1", 2)), "unproven eth0");
    let eth0 = &mut mapped.interfaces.as_mut().unwrap()[0];
    eth0.addresses.retain(|(own, _)| *own == written);
    assert_eq!(home_in(&mapped, &by_ioctl("::ffff:10.0.0.1", 2)), "unproven eth0 Duplicate");
    // The kernel may know the other host.
    let netdev = Some(Netdev::new(NonZeroU32::new(2).unwrap(), "eth0"));
    let named = GidRow { netdev, ..by_ioctl("::ffff:10.0.0.1", 2) };
    assert_eq!(home_in(&mapped, &named), "ours eth0 true Duplicate");
    // The kernel takes it for IPv4.
    mapped.interfaces.as_mut().unwrap()[0].unfit.clear();
    assert_eq!(home_in(&mapped, &by_ioctl("::ffff:10.0.0.1", 2)), "unproven eth0 Mapped");
    // One is, but has another address: the row may be of an address that has gone.
    assert_eq!(home(&by_ioctl("::ffff:10.9.9.9", 2)), "WithoutAddress");
    assert_eq!(home(&by_ioctl("::ffff:10.0.0.2", 2)), "WithoutAddress");
    assert_eq!(home(&by_sysfs("::ffff:10.9.9.9", Some("eth0"))), "WithoutAddress");
    // It has the address.
    assert_eq!(home(&by_ioctl("::ffff:10.0.0.1", 2)), "unproven eth0");
    assert_eq!(home(&by_sysfs("::ffff:10.0.0.1", Some("eth0"))), "unproven eth0");
    let netdev = Some(Netdev::new(NonZeroU32::new(2).unwrap(), "eth0"));
    let named = GidRow { netdev, ..by_ioctl("::ffff:10.0.0.1", 2) };
    assert_eq!(home(&named), "ours eth0 true");
}

/// The default GID has the MAC address in it, with `ff:fe` or with the interface's device id.
#[test]
fn a_default_gid_is_made_from_the_mac_address() {
    let here = here();
    assert_eq!(home_in(&here, &by_ioctl("fe80::11:22ff:fe33:4455", 2)), "unproven eth0 Unassigned");
    assert_eq!(home_in(&here, &by_ioctl("fe80::211:2200:133:4455", 2)), "unproven eth0 Unassigned");
    assert_eq!(home_in(&here, &by_ioctl("fe80::211:2200:133:4466", 2)), "WithoutAddress");
    assert_eq!(home_in(&here, &unread("fe80::211:2200:133:4455")), "address unproven - Unassigned");
    // Of an interface whose MAC address is not known nothing is known.
    let mut hidden = here.clone();
    for own in hidden.interfaces.iter_mut().flatten() {
        own.mac = None;
    }
    hidden.interfaces.as_mut().unwrap()[0].addresses.push(("fe80::7".parse().unwrap(), 64));
    let entry = GidEntry::new(1, 0, gid("fe80::7")).with_type(GidType::ROCE_V1);
    let record = GidRecord::new(entry, Source::Sysfs).with_sysfs_netdev(Some("eth0".to_owned()));
    assert_eq!(home_in(&hidden, &GidRow::from(record)), "unproven eth0");
    // It is there without that address, which RoCE v2 needs, and v1 does not.
    let named = |text: &str, gid_type: GidType| {
        let entry = GidEntry::new(1, 0, gid(text)).with_type(gid_type);
        let record = GidRecord::from(entry.with_netdev_ifindex(NonZeroU32::new(2)));
        let netdev = Some(Netdev::new(NonZeroU32::new(2).unwrap(), "eth0"));
        GidRow { netdev, ..GidRow::from(record) }
    };
    let [default, with_id] = ["fe80::11:22ff:fe33:4455", "fe80::211:2200:133:4455"];
    for text in [default, with_id] {
        assert_eq!(home_in(&here, &named(text, GidType::ROCE_V2)), "ours eth0 true Unassigned");
        assert_eq!(home_in(&here, &named(text, GidType::UNNAMED)), "ours eth0 true");
    }
    // Where the device id is, v1 does not see a MAC address, nor in an address that is not made of it.
    assert_eq!(home_in(&here, &named(default, GidType::ROCE_V1)), "ours eth0 true");
    assert_eq!(home_in(&here, &named(with_id, GidType::ROCE_V1)), "ours eth0 true OtherMac");
    let mut random = here.clone();
    random.interfaces.as_mut().unwrap()[0].addresses.push(("fe80::7".parse().unwrap(), 64));
    assert_eq!(home_in(&random, &named("fe80::7", GidType::ROCE_V1)), "ours eth0 true OtherMac");
    assert_eq!(home_in(&random, &named("fe80::7", GidType::ROCE_V2)), "ours eth0 true");
    // What is in the middle does not matter to v1.
    let own = "fe80::11:22ab:cd33:4455";
    random.interfaces.as_mut().unwrap()[0].addresses.push((own.parse().unwrap(), 64));
    assert_eq!(home_in(&random, &named(own, GidType::ROCE_V1)), "ours eth0 true");
    let mut assigned = here.clone();
    for own in assigned.interfaces.iter_mut().flatten() {
        own.addresses.push((default.parse().unwrap(), 64));
    }
    assert_eq!(home_in(&assigned, &named(default, GidType::ROCE_V2)), "ours eth0 true");
    assert_eq!(home_in(&assigned, &named(with_id, GidType::ROCE_V2)), "ours eth0 true Unassigned");
    assert_eq!(home_in(&assigned, &by_ioctl(default, 2)), "unproven eth0");
    assert_eq!(home_in(&assigned, &unread(default)), "address unproven -");
    assert_eq!(home_in(&here, &named("::ffff:10.9.9.9", GidType::ROCE_V1)), "ours eth0 false");
    // Where no neighbour is asked for, it does not matter who takes the answer.
    let enslaved = (default.parse().unwrap(), Unfit::Enslaved);
    assigned.interfaces.iter_mut().flatten().for_each(|own| own.unfit = vec![enslaved]);
    assert_eq!(home_in(&assigned, &named(default, GidType::ROCE_V2)), "ours eth0 true Enslaved");
    assert_eq!(home_in(&assigned, &named(default, GidType::ROCE_V1)), "ours eth0 true");
    assert_eq!(home_in(&assigned, &by_ioctl(default, 2)), "unproven eth0 Enslaved");
    assert_eq!(home_in(&assigned, &unread(default)), "address unproven - Enslaved");
}

/// RDMA sends past a tunnel, but for a device that is on the tunnel itself. UCX asks for itself only.
#[test]
fn a_tunnel_is_of_use_to_a_device_on_it_only() {
    let netdev = |index, name| Netdev::new(NonZeroU32::new(index).unwrap(), name);
    for (own, is_port_s) in [(netdev(2, "eth0"), true), (netdev(3, "eth1"), false)] {
        let mut inventory = here();
        let eth0 = &mut inventory.interfaces.as_mut().unwrap()[0];
        let ip: IpAddr = "10.244.0.0".parse().unwrap();
        (eth0.addresses, eth0.unfit) = (vec![(ip, 32)], vec![(ip, Unfit::Bypassed)]);
        for gid_type in [GidType::ROCE_V1, GidType::ROCE_V2] {
            let row = by_ioctl("::ffff:10.244.0.0", 2);
            let row = GidRow { netdev: Some(netdev(2, "eth0")), ..row };
            let row =
                GidRow { record: GidRecord::from(row.record.entry.with_type(gid_type)), ..row };
            let mut record = with_row(&row, LinkLayer::ETHERNET);
            record.ports[0].netdev = Ok(Some(own.clone()));
            let surroundings = Surroundings::of(&inventory);
            let port = seen(&surroundings, &record, &record.ports[0]).unwrap();
            let Home::Ours { unfit, .. } = port.rows[0].home else { panic!("{port:?}") };
            assert_eq!(unfit, (!is_port_s).then_some(Unfit::Bypassed), "{gid_type:?}");
            assert!(port.rows[0].has_address_handle && port.rows[0].is_address_handle_known());
        }
    }
}

/// Where no route keeps a link-local address on its link, the kernel may make an address handle to it.
#[test]
fn a_default_gid_without_its_address_may_lead_elsewhere() {
    let default = "fe80::11:22ff:fe33:4455";
    let netdev = Some(Netdev::new(NonZeroU32::new(2).unwrap(), "eth0"));
    let row = GidRow { netdev, ..by_ioctl(default, 2) };
    let handle = |addresses: &[&str], unfit: Option<Unfit>, row: &GidRow| {
        let mut inventory = here();
        let eth0 = &mut inventory.interfaces.as_mut().unwrap()[0];
        let addresses = addresses.iter().map(|own| own.parse().unwrap());
        eth0.addresses = addresses.map(|own: IpAddr| (own, 64)).collect();
        eth0.unfit = unfit.map(|why| (eth0.addresses[0].0, why)).into_iter().collect();
        let record = with_row(row, LinkLayer::ETHERNET);
        let surroundings = Surroundings::of(&inventory);
        let port = seen(&surroundings, &record, &record.ports[0]).unwrap();
        let own = &port.rows[0];
        assert!(matches!(own.home, Home::Ours { unfit: Some(Unfit::Unassigned), .. }), "{own:?}");
        assert!(!own.has_address_handle && own.is_address_handle_known());
        // UCX takes the other row, if not this one. The newest releases do so in any case.
        let other = Row::new(1, gid("fd00::1"), GidType::ROCE_V2);
        let home = Home::Ours {
            name: "eth0",
            is_up: true,
            has_address: true,
            unfit: None,
            is_port_s: None,
        };
        let two = Port { rows: vec![*own, Row { home, ..other }], ..port.clone() };
        let ucx = Model::Ucx(ucx::Settings::new(ucx::Release::V1_15, |_| None));
        let outcome = ucx.choose(&two).outcome;
        assert_eq!(outcome, Outcome::Taken(1));
        assert_eq!(ucx.is_sure(&two, &outcome), !own.may_lead_elsewhere);
        own.may_lead_elsewhere
    };
    let (no, perhaps) = (false, true);
    assert_eq!(handle(&[], None, &row), no);
    assert_eq!(handle(&["10.0.0.1"], None, &row), no, "it has no IPv6");
    assert_eq!(handle(&["fd00::1"], None, &row), perhaps, "over a router");
    assert_eq!(handle(&["fd00::1"], Some(Unfit::NoLinkLocal), &row), perhaps);
    assert_eq!(handle(&["fd00::1", "fe80::9"], None, &row), no, "on the link nobody has it");
    assert_eq!(handle(&["fe80::9", "fd00::1"], Some(Unfit::Duplicate), &row), perhaps);
    assert_eq!(handle(&["fe80::9"], Some(Unfit::NoNeighbours), &row), perhaps, "to its own MAC");
    let hidden = GidRow { type_is_hidden: true, ..row };
    assert_eq!(handle(&["fd00::1"], None, &hidden), no, "then the kernel makes none");
}

/// The row of iWARP is of the port's own interface. Before Linux 6.5 it does not say so, and the MAC address counts.
#[test]
fn a_row_of_iwarp_is_of_the_port_s_own_interface() {
    let own = |index: u32, name: &str| Netdev::new(NonZeroU32::new(index).unwrap(), name);
    let home = |inventory: &Inventory, netdev: Answer<Option<Netdev>>, row: GidRow| {
        let mut record = DeviceRecord::new(Device::named("siw0"));
        record.device.node_type = NodeType::RNIC;
        record.gids = Some(Ok(vec![row]));
        let (state, link_layer) = (PortState::ACTIVE, LinkLayer::ETHERNET);
        let attributes = PortAttributes { state, link_layer, gid_tbl_len: 1, ..Default::default() };
        record.ports = vec![PortRecord { netdev, ..PortRecord::new(1) }];
        record.ports[0].attributes = Some(Ok((attributes, Source::Ioctl)));
        let port = seen(&Surroundings::of(inventory), &record, &record.ports[0]).unwrap();
        match port.rows[0].home {
            Home::Ours { name, has_address, is_up, unfit, .. } => {
                let why = unfit.map(|why| format!(" {why:?}")).unwrap_or_default();
                format!("ours {name} {has_address}{}{why}", if is_up { "" } else { " down" })
            }
            other => format!("{other:?}"),
        }
    };
    let row = |text: &str, index: u32| {
        let entry = GidEntry::new(1, 0, gid(text));
        GidRow::from(GidRecord::from(entry.with_netdev_ifindex(NonZeroU32::new(index))))
    };
    let (here, made, other) = (here(), "0211:2233:4455::", "0211:2233:7777::");
    for text in [made, other] {
        let named = GidRow { netdev: Some(own(2, "eth0")), ..row(text, 2) };
        assert_eq!(home(&here, Ok(Some(own(2, "eth0"))), named), "ours eth0 true");
        assert_eq!(home(&here, Ok(None), row(text, 9)), "Foreign");
        assert_eq!(home(&here, Ok(None), row(text, 0)), "Foreign", "before Linux 6.5");
    }
    assert_eq!(home(&here, Ok(Some(own(2, "eth0"))), row(made, 0)), "ours eth0 true");
    let mut down = here.clone();
    down.interfaces.as_mut().unwrap()[0].is_up = false;
    assert_eq!(home(&down, Ok(Some(own(2, "eth0"))), row(made, 0)), "ours eth0 true down");
    down.interfaces.as_mut().unwrap()[0].mac = None;
    assert_eq!(home(&down, Ok(Some(own(2, "eth0"))), row(made, 0)), "None", "not known");
    assert_eq!(home(&here, Ok(Some(own(2, "eth0"))), row(other, 0)), "WithoutAddress");
    // Of what is not known nothing is said.
    let unread = || Err(Problem { text: "no".to_owned(), errno: 5 });
    assert_eq!(home(&here, unread(), row(other, 0)), "Unknown { name: None }");
    assert_eq!(home(&here, unread(), row(other, 9)), "Foreign");
    assert!(home(&here, unread(), row(other, 2)).starts_with("Unproven { name: Some(\"eth0\")"));
    assert_eq!(home(&here, Ok(Some(own(9, "eth9"))), row(made, 0)), "Unknown { name: None }");
    assert_eq!(home(&here, Ok(Some(own(2, "eth0"))), row(made, 3)), "Unknown { name: None }");
    let mut kept_back = row(other, 0);
    kept_back.record.netdev_is_unread = true;
    assert_eq!(home(&here, Ok(Some(own(2, "eth0"))), kept_back), "ours eth0 true");
    // What can be connected is an address, before Linux 6.5 also one of a bridge above.
    let mut bare = here.clone();
    bare.interfaces.as_mut().unwrap()[0].addresses = vec![("fe80::1".parse().unwrap(), 64)];
    let named = GidRow { netdev: Some(own(2, "eth0")), ..row(made, 2) };
    assert_eq!(home(&bare, Ok(Some(own(2, "eth0"))), named), "ours eth0 true NoAddress");
    assert_eq!(home(&bare, Ok(Some(own(2, "eth0"))), row(made, 0)), "ours eth0 true");
    for (why, is_of_use) in
        [(Unfit::Duplicate, false), (Unfit::Enslaved, false), (Unfit::FarEnd, true)]
    {
        let mut odd = here.clone();
        let eth0 = &mut odd.interfaces.as_mut().unwrap()[0];
        eth0.unfit = eth0.addresses.iter().map(|(own, _)| (*own, why)).collect();
        let named = GidRow { netdev: Some(own(2, "eth0")), ..row(made, 2) };
        let said = home(&odd, Ok(Some(own(2, "eth0"))), named);
        assert_eq!(said == "ours eth0 true", is_of_use, "{why:?}: {said}");
    }
    let by_sysfs = Inventory { has_netlink: false, ..here };
    assert_eq!(home(&by_sysfs, Ok(None), row(other, 0)), "None");
}

/// A row that does not say what its interface is called has one all the same, on RoCE.
#[test]
fn a_row_without_a_name_is_judged_by_its_address() {
    let here = here();
    for row in [unread, |text: &str| by_sysfs(text, None), |text: &str| by_ioctl(text, 0)] {
        assert_eq!(home_in(&here, &row("::ffff:10.0.0.1")), "address unproven eth0");
        assert_eq!(home_in(&here, &row("::ffff:10.0.0.2")), "address unproven eth1");
        assert_eq!(home_in(&here, &row("::ffff:10.9.9.9")), "WithoutAddress");
    }
    let row = by_ioctl("fe80::1", 0);
    assert_eq!(home_on(&here, &row, LinkLayer::INFINIBAND), "None");
}

/// Without RDMA netlink nothing is proven to be here, but addresses are known all the same.
#[test]
fn without_netlink_addresses_count() {
    let here = Inventory { has_netlink: false, ..here() };
    assert_eq!(home_in(&here, &by_sysfs("::ffff:10.7.7.7", Some("eth0"))), "WithoutAddress");
    assert_eq!(home_in(&here, &by_sysfs("::ffff:10.0.0.1", Some("eth0"))), "unproven eth0");
    assert_eq!(home_in(&here, &by_ioctl("::ffff:10.0.0.1", 9)), "Foreign");
}

/// A name in the tree of another host is a name there. A name of this host's sysfs may be another
/// namespace's.
#[test]
fn names_count_in_a_tree() {
    let tree = Inventory::default();
    let blind = Inventory { interfaces: None, ..here() };
    let row = by_sysfs("::ffff:10.0.0.1", Some("eth0"));
    assert_eq!(home_in(&tree, &row), "unknown eth0");
    assert_eq!(home_in(&blind, &row), "unknown -");
}

/// Of an interface that a row may be of, it is known whether it is up, and whether its address is of use.
#[test]
fn what_is_known_of_an_interface_that_may_be_a_row_s() {
    let mut here = here();
    let interfaces = here.interfaces.as_mut().unwrap();
    interfaces[0].is_lower_up = false;
    interfaces[1].unfit = vec![("10.0.0.2".parse().unwrap(), Unfit::FarEnd)];
    let mut both = interfaces[1].clone();
    (both.index, both.name) = (NonZeroU32::new(4).unwrap(), "eth2".to_owned());
    both.addresses.push(("10.0.0.1".parse().unwrap(), 24));
    assert_eq!(home_in(&here, &by_ioctl("::ffff:10.0.0.1", 2)), "unproven eth0 down");
    for row in [unread, |text: &str| by_sysfs(text, Some("eth9"))] {
        assert_eq!(home_in(&here, &row("::ffff:10.0.0.1")), "address unproven eth0 down");
        assert_eq!(home_in(&here, &row("::ffff:10.0.0.2")), "address unproven eth1 FarEnd");
    }
    assert_eq!(home_in(&here, &by_ioctl("::ffff:10.0.0.2", 3)), "unproven eth1 FarEnd");
    // Of several that may be it, one may be of use.
    here.interfaces.as_mut().unwrap().push(both);
    assert_eq!(home_in(&here, &unread("::ffff:10.0.0.1")), "address unproven -");
    assert_eq!(home_in(&here, &by_ioctl("::ffff:10.0.0.1", 2)), "unproven eth0 down");
    assert_eq!(home_in(&here, &unread("::ffff:10.0.0.2")), "address unproven - FarEnd");
    here.interfaces.as_mut().unwrap()[2].unfit.clear();
    assert_eq!(home_in(&here, &unread("::ffff:10.0.0.2")), "address unproven -");
}

/// It is known by its index, whatever it is called by now.
#[test]
fn an_interface_that_was_renamed_is_down_all_the_same() {
    let mut here = here();
    here.interfaces.as_mut().unwrap()[0].is_up = false;
    here.interfaces.as_mut().unwrap()[0].name = "eth9".to_owned();
    let netdev = Some(Netdev::new(NonZeroU32::new(2).unwrap(), "eth0"));
    let mut record = DeviceRecord::new(Device::named("mlx5_0"));
    record.gids = Some(Ok(vec![GidRow { netdev, ..by_ioctl("::ffff:10.0.0.1", 2) }]));
    let mut port = PortRecord::new(1);
    let attributes = PortAttributes { gid_tbl_len: 8, ..Default::default() };
    port.attributes = Some(Ok((attributes, Source::Ioctl)));
    record.ports = vec![port];
    let surroundings = Surroundings::of(&here);
    let port = seen(&surroundings, &record, &record.ports[0]).unwrap();
    assert!(!port.rows[0].has_address_handle, "UCX makes none");
}

/// InfiniBand has no interfaces of rows, also where sysfs did not say so.
#[test]
fn a_row_of_infiniband_without_an_interface() {
    for inventory in [here(), Inventory { has_netlink: false, ..here() }] {
        let home = home_on(&inventory, &unread("fe80::1"), LinkLayer::INFINIBAND);
        assert_eq!(home, "None");
    }
}
