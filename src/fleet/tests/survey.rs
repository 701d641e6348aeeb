//! Surveys of made hosts.

use core::num::NonZeroU32;

use super::made::{host, infiniband, keep_rows, port};
use super::*;
use crate::device::{Device, NodeType};
use crate::driver::DriverId;
use crate::gid::{Gid, GidEntry, GidRecord, GidType};
use crate::hardware::{PciFunction, PcieLink};
use crate::host::Source;
use crate::inventory::{DeviceRecord, GidRow, Inventory, Problem, Setting};
use crate::netdev::{Netdev, Unfit};
use crate::port::{Speed, Width};

fn survey(hosts: &[Inventory]) -> Survey {
    let mut survey = Survey::default();
    for own in hosts {
        survey.add(own);
    }
    survey
}

/// Hosts with two rails, each with a network of its own.
fn fleet(count: u8) -> Vec<Inventory> {
    let of = |number: u8| {
        let addresses = [0, 1].map(|rail| format!("10.{rail}.0.{}", number + 1));
        host(number, &addresses.each_ref().map(|own| (own.as_str(), 24)))
    };
    (0..count).map(of).collect()
}

/// What does not meet, as `why hosts ports choosers others`.
fn troubles(hosts: &[Inventory], rails: Rails, is_routed: bool) -> Vec<String> {
    let pairs = survey(hosts).pairs(rails, is_routed, |_| true);
    let text = |own: &Trouble| {
        let Trouble { why, hosts, ports, choosers, others, .. } = own;
        format!("{why:?} {hosts:?} {} {} {others}", ports.join(","), choosers.len())
    };
    pairs.problems.iter().map(text).collect()
}

/// What is odd, as `hosts field places seen usual count`.
fn odd(hosts: &[Inventory]) -> Vec<String> {
    let groups = survey(hosts).groups();
    let all =
        groups.odd.iter().flat_map(|group| group.differences.iter().map(move |own| (group, own)));
    all.map(|(group, own)| {
        let Difference { field, seen, usual, places, count } = own;
        let text = |own: &Option<String>| own.clone().unwrap_or_else(|| "-".to_owned());
        let (hosts, places) = (&group.hosts, places.join(","));
        format!("{hosts:?} {field:?} {places} {} {} {count}", text(seen), text(usual))
    })
    .collect()
}

#[test]
fn a_fleet_that_is_well() {
    let hosts = fleet(5);
    assert_eq!(odd(&hosts), [""; 0]);
    assert_eq!(troubles(&hosts, Rails::Found, false), [""; 0]);
    let survey = survey(&hosts);
    assert_eq!(survey.duplicates(), []);
    let groups = survey.groups();
    assert_eq!((groups.usual, groups.partly), (vec![0, 1, 2, 3, 4], Vec::new()));
    let pairs = survey.pairs(Rails::Found, false, |_| true);
    assert_eq!((pairs.rails, pairs.joined), (Rails::Names, 2));
    // Rails are networks of their own, which a router may join.
    let all = ["Unknown([Networks]) [0, 1, 2, 3, 4] mlx5_1:1 3 4"];
    assert_eq!(troubles(&hosts, Rails::All, false), all);
    assert_eq!(troubles(&hosts, Rails::All, true), [""; 0]);
    // All rows are known: no host is in doubt.
    assert_eq!(pairs.problems, []);
}

#[test]
fn odd_hosts_by_field() {
    let mut hosts = fleet(7);
    for own in &mut hosts[1].devices {
        own.device.fw_version = Some("28.37.1014".to_owned());
    }
    hosts[2].devices.pop();
    port(&mut hosts[3], 1).state = PortState::DOWN;
    port(&mut hosts[4], 0).active_mtu = Some(Mtu(3));
    port(&mut hosts[5], 0).active_mtu = Some(Mtu(3));
    let setting = Setting::new("NCCL_IB_TIMEOUT", "20", None);
    hosts[6].settings.push(setting);
    assert_eq!(
        odd(&hosts),
        [
            // The port of a device that is not there is no difference of its own.
            "[2] Present mlx5_1 -  6",
            "[1] Firmware mlx5_0,mlx5_1 28.37.1014 28.39.2048 5",
            // What comes of the state is none either.
            "[3] State mlx5_1:1 down active 5",
            "[4, 5] Mtu mlx5_0:1 1024 4096 5",
            "[6] Setting NCCL_IB_TIMEOUT 20 - 6",
        ]
    );
}

/// A code that has no name here is read all the same.
#[test]
fn codes_without_a_name() {
    let mut hosts = fleet(4);
    let own = port(&mut hosts[0], 0);
    own.active_speed = Some(Speed(512));
    let own = port(&mut hosts[1], 0);
    own.active_mtu = Some(Mtu(7));
    let own = port(&mut hosts[2], 1);
    own.active_width = Some(Width(64));
    assert_eq!(
        odd(&hosts),
        [
            "[2] Rate mlx5_1:1 25 a lane 100 3",
            "[0] Rate mlx5_0:1 code 512 100 3",
            "[1] Mtu mlx5_0:1 code 7 4096 3",
        ]
    );
    let mut hosts = fleet(4);
    for own in &mut hosts {
        port(own, 0).active_speed = None;
    }
    port(&mut hosts[2], 0).active_width = Some(Width(64));
    assert_eq!(odd(&hosts), ["[2] Width mlx5_0:1 code 64 4 3"]);
    // Without a width the rate may be any.
    let mut hosts = fleet(4);
    port(&mut hosts[1], 0).active_width = None;
    assert_eq!(odd(&hosts), [""; 0]);
    assert_eq!(survey(&hosts).groups().partly, [1]);
    // Soft RoCE has no firmware.
    let mut hosts = fleet(3);
    for host in &mut hosts {
        host.has_roce_socket = Some(true);
        for own in &mut host.devices {
            (own.device.driver, own.device.fw_version) = (Some(DriverId::RXE), None);
        }
    }
    assert_eq!(survey(&hosts).groups().partly, [0; 0]);
    // A port without an interface has an MTU of no value.
    let mut hosts = fleet(3);
    port(&mut hosts[0], 0).active_mtu = Some(Mtu(0));
    hosts[0].devices[0].ports[0].netdev = Ok(None);
    assert_eq!(odd(&hosts), ["[0] Mtu mlx5_0:1 none 4096 2"]);
}

/// What could not be read does not differ.
#[test]
fn what_is_not_known_is_not_odd() {
    let mut hosts = fleet(4);
    let problem = Problem { text: "x: broken".to_owned(), errno: 5 };
    hosts[1].devices.pop();
    hosts[1].unlisted.push(("mlx5_1".to_owned(), problem.clone()));
    hosts[2].devices[1].gids = Some(Err(problem.clone()));
    hosts[3].devices[1].ports[0].attributes = Some(Err(problem));
    hosts[3].kernel = None;
    assert_eq!(odd(&hosts), [""; 0]);
    assert_eq!(survey(&hosts).groups().usual, [0, 1, 2, 3]);
    // And it is not known whether it meets others.
    assert_eq!(
        troubles(&hosts, Rails::Found, false),
        [
            "Unknown([PortUnread]) [3] mlx5_1:1 3 0",
            // NCCL may have no room for it: the other device may have any number of ports.
            "Unknown([GidUnread]) [1] mlx5_0:1 1 0",
            "Unknown([GidUnread]) [2] mlx5_1:1 3 0",
        ]
    );
}

/// A port that could not be read does not show that a rail is in use of which no other port is active.
#[test]
fn what_is_not_known_puts_no_rail_in_use() {
    let hosts = |last: &dyn Fn(&mut DeviceRecord)| {
        let mut hosts = fleet(4);
        for own in &mut hosts {
            port(own, 1).state = PortState::DOWN;
        }
        last(&mut hosts[3].devices[1]);
        troubles(&hosts, Rails::Found, false)
    };
    let problem = || Problem { text: "x: broken".to_owned(), errno: 5 };
    assert_eq!(hosts(&|_| {}), [""; 0]);
    // It is down, whatever its table has.
    assert_eq!(hosts(&|own| own.gids = Some(Err(problem()))), [""; 0]);
    let unread = hosts(&|own| own.ports[0].attributes = Some(Err(problem())));
    assert_eq!(unread, ["Unknown([PortUnread]) [3] mlx5_1:1 3 0"]);
    // Where rails are networks, nothing is said of its state either.
    let mut hosts = fleet(4);
    hosts[3].devices[1].device.name = "other".to_owned();
    hosts[3].devices[1].ports[0].attributes = Some(Err(problem()));
    let unread = troubles(&hosts, Rails::Networks, false);
    assert_eq!(unread, ["Unknown([PortUnread]) [3] other:1 3 0"]);
}

/// What was read on no host does not differ, and is not known to be alike either.
#[test]
fn what_was_read_nowhere_is_not_alike() {
    let changes: [fn(&mut Inventory); 16] = [
        |own| own.kernel = None,
        |own| own.devices[0].access = None,
        |own| own.devices[0].device.driver = None,
        |own| own.devices[0].hardware = None,
        |own| own.devices[0].hardware.as_mut().unwrap().board_is_unread = true,
        |own| own.devices[0].hardware.as_mut().unwrap().pci_is_unread = true,
        |own| own.devices[0].hardware.as_mut().unwrap().numa_node_is_unread = true,
        |own| {
            let function = PciFunction::at("0000:17:00.0".parse().unwrap());
            own.devices[0].hardware.as_mut().unwrap().pci = Some(function);
        },
        |own| own.devices[0].device.fw_version = None,
        |own| port(own, 0).active_mtu = None,
        |own| port(own, 0).active_width = None,
        |own| own.devices[0].gids = Some(Err(Problem { text: "x".to_owned(), errno: 5 })),
        |own| own.interfaces = None,
        |own| own.devices[0].ports[0].guid = Err(Problem { text: "x".to_owned(), errno: 5 }),
        |own| own.settings.push(Setting::new("NCCL_NET_PLUGIN", "ofi", None)),
        |own| own.others.push(Device::named("mlx5_9")),
    ];
    for (place, change) in changes.iter().enumerate() {
        let mut hosts = fleet(3);
        hosts.iter_mut().for_each(change);
        let groups = survey(&hosts).groups();
        assert_eq!((groups.partly, groups.odd), (vec![0, 1, 2], Vec::new()), "{place}");
    }
    let mut hosts: Vec<_> = (1..4).map(|own| infiniband(own, 0xfec0 << 48, 1, &[0xffff])).collect();
    assert_eq!(survey(&hosts).groups().partly, [0; 0]);
    for own in &mut hosts {
        own.devices[0].ports[0].pkeys = None;
    }
    assert_eq!(survey(&hosts).groups().partly, [0, 1, 2]);
}

/// What is not there was read, and differs.
#[test]
fn what_one_host_does_not_have_is_odd() {
    let changes: [fn(&mut Inventory); 4] = [
        |own| own.devices[0].hardware.as_mut().unwrap().numa_node = Some(0),
        |own| own.devices[0].hardware.as_mut().unwrap().board_id = Some("x".to_owned()),
        |own| {
            let mut function = PciFunction::at("0000:17:00.0".parse().unwrap());
            function.link = Some(PcieLink { speed: 320, width: 16 });
            own.devices[0].hardware.as_mut().unwrap().pci = Some(function);
        },
        |own| port(own, 0).active_mtu = Some(Mtu(5)),
    ];
    let differences = [
        "NumaNode mlx5_0 none 0",
        "Board mlx5_0 none x",
        "PcieLink mlx5_0 none 32GT/s,x16",
        "Mtu mlx5_0:1 none 4096",
    ];
    for (change, what) in changes.into_iter().zip(differences) {
        let mut hosts = fleet(4);
        for own in &mut hosts {
            (own.devices[0].ports[0].netdev, port(own, 0).active_mtu) = (Ok(None), Some(Mtu(0)));
            own.devices[0].hardware.as_mut().unwrap().board_id = None;
        }
        hosts[..3].iter_mut().for_each(change);
        assert_eq!(odd(&hosts), [format!("[3] {what} 3")]);
        assert_eq!(survey(&hosts).groups().partly, [0; 0]);
    }
}

/// Where RDMA netlink was refused, or a port's interface was, nothing says that a row's is another one.
#[test]
fn a_port_whose_interface_was_not_read() {
    let refused = |own: &mut Inventory| {
        own.has_netlink = false;
        own.devices[0].ports[0].netdev = Ok(None);
        for row in own.devices[0].gids.as_mut().unwrap().as_mut().unwrap() {
            row.netdev = None;
        }
    };
    let failed = |own: &mut Inventory| {
        let problem = Problem { text: "mlx5_0: no".to_owned(), errno: 5 };
        own.devices[0].ports[0].netdev = Err(problem);
    };
    let none = |own: &mut Inventory| own.devices[0].ports[0].netdev = Ok(None);
    let of = |change: &dyn Fn(&mut Inventory)| {
        let mut hosts = fleet(3);
        change(&mut hosts[2]);
        troubles(&hosts, Rails::Names, false)
    };
    let which = "Unknown([GidUnread]) [2] mlx5_0:1,mlx5_1:1 1 0";
    assert_eq!(of(&refused), [which, "Unknown([Unproven]) [2] mlx5_0:1,mlx5_1:1 2 2"]);
    assert_eq!(of(&failed), ["Unknown([InterfaceUnread]) [2] mlx5_0:1 3 2"]);
    assert_eq!(of(&none), ["Unknown([Interface]) [2] mlx5_0:1 3 2"]);
}

/// The address of a row that has no other is link-local: how long its prefix is says nothing.
#[test]
fn a_link_local_address_is_odd() {
    let mut hosts = fleet(4);
    keep_rows(&mut hosts[3], 0, |index| index < 2);
    let odd = odd(&hosts);
    assert!(odd.contains(&"[3] Prefix mlx5_0:1 link-local 24 3".to_owned()), "{odd:?}");
}

/// Of a sysfs tree the devices are known, and not the variables.
#[test]
fn a_tree_lacks_devices_and_no_variable() {
    let mut hosts = fleet(4);
    for own in &mut hosts {
        own.settings.push(Setting::new("NCCL_IB_GID_INDEX", "3", None));
    }
    (hosts[3].host, hosts[3].settings) = (None, Vec::new());
    assert_eq!(odd(&hosts), [""; 0]);
    assert_eq!(survey(&hosts).groups().partly, [3]);
    hosts[3].devices.pop();
    assert_eq!(odd(&hosts), ["[3] Present mlx5_1 -  3"]);
}

/// A host of another MTU meets most, though it is the only one of its kind.
#[test]
fn a_kind_that_meets_most_is_not_to_be_mended() {
    for bad in [2, 4] {
        let mut hosts = fleet(6);
        keep_rows(&mut hosts[bad], 0, |index| index % 2 == 0);
        port(&mut hosts[3], 0).active_mtu = Some(Mtu(3));
        let found = troubles(&hosts, Rails::Found, false);
        assert!(found.iter().all(|own| own.contains(&format!(" [{bad}] "))), "{found:?}");
    }
}

/// It is not known which row is right: that is not none.
#[test]
fn an_index_that_is_not_known_does_not_differ() {
    let mut hosts = fleet(3);
    keep_rows(&mut hosts[1], 0, |index| index == 3);
    let row = &mut hosts[1].devices[0].gids.as_mut().unwrap().as_mut().unwrap()[0];
    let entry = row.record.entry.with_type(GidType::UNNAMED);
    (row.record, row.type_is_hidden) = (GidRecord::from(entry).with_type_unread(true), true);
    let odd = odd(&hosts);
    assert!(!odd.iter().any(|own| own.starts_with("[1] Index")), "{odd:?}");
}

#[test]
fn the_smaller_side_is_to_be_mended() {
    let mut hosts = fleet(6);
    // RoCE v1 only, on one host; the other one has no address.
    keep_rows(&mut hosts[2], 0, |index| index % 2 == 0);
    keep_rows(&mut hosts[4], 1, |index| index < 2);
    port(&mut hosts[5], 1).state = PortState::DOWN;
    assert_eq!(
        troubles(&hosts, Rails::Found, false),
        [
            "Cannot([NotActive]) [5] mlx5_1:1 3 0",
            "Cannot([GidType]) [2] mlx5_0:1 3 5",
            // NCCL then takes the first row.
            "Cannot([GidType, Family]) [4] mlx5_1:1 1 4",
            "Cannot([Family]) [4] mlx5_1:1 2 4",
        ]
    );
    // A host that is left out is not looked at.
    let pairs = survey(&hosts).pairs(Rails::Found, false, |own| !matches!(own, 2 | 4 | 5));
    assert_eq!((pairs.problems.len(), pairs.joined), (0, 2));
}

#[test]
fn networks_that_differ() {
    let mut hosts = fleet(5);
    hosts[3] = host(3, &[("10.0.1.4", 24), ("10.1.0.4", 24)]);
    hosts[4] = host(4, &[("10.0.0.5", 16), ("10.1.0.5", 24)]);
    // Of another address than its network's others, and of another length.
    let both = "Unknown([Networks]) [3, 4] mlx5_0:1 3 3";
    assert_eq!(troubles(&hosts, Rails::Found, false), [both]);
    assert_eq!(troubles(&hosts, Rails::Found, true), [""; 0]);
    assert_eq!(odd(&hosts), ["[4] Prefix mlx5_0:1 16 24 4"]);
}

/// Each port is in a network of its own, as where hosts are joined by routers only.
#[test]
fn a_network_for_each_port() {
    let of = |number: u8| host(number, &[(&format!("10.0.{number}.0"), 31)]);
    let hosts: Vec<Inventory> = (0..4).map(of).collect();
    assert_eq!(survey(&hosts).rails(|_| true), Rails::Names);
    let found = troubles(&hosts, Rails::Found, false);
    assert_eq!(found, ["Unknown([Networks]) [1, 2, 3] mlx5_0:1 3 1"]);
    assert_eq!(troubles(&hosts, Rails::Found, true), [""; 0]);
}

/// Where names are not rails, networks are.
#[test]
fn rails_are_networks_where_names_are_mixed() {
    let of = |number: u8| {
        let (one, two) = (format!("10.0.0.{number}"), format!("10.1.0.{number}"));
        let list = [(one.as_str(), 24), (two.as_str(), 24)];
        host(number, &if number % 2 == 0 { list } else { [list[1], list[0]] })
    };
    let hosts: Vec<Inventory> = (0..6).map(of).collect();
    assert_eq!(survey(&hosts).rails(|_| true), Rails::Networks);
    assert_eq!(troubles(&hosts, Rails::Found, false), [""; 0]);
    let by_names = troubles(&hosts, Rails::Names, false);
    let both = [
        "Unknown([Networks]) [0, 2, 4] mlx5_1:1 3 3",
        "Unknown([Networks]) [1, 3, 5] mlx5_0:1 3 3",
    ];
    assert_eq!(by_names, both);
    // Hosts that are left out decide nothing: with one of two whose names are mixed, names are rails.
    let mut two = fleet(12);
    for (host, own) in (0..).zip(&mut two).skip(10) {
        *own = self::host(host, &[("10.1.0.99", 24), ("10.0.0.99", 24)]);
    }
    let rails = |is_wanted: &dyn Fn(u32) -> bool| survey(&two).rails(is_wanted);
    assert_eq!([rails(&|_| true), rails(&|own| own < 11)], [Rails::Networks, Rails::Names]);
    // One host of many whose cables are mixed up is found.
    let mut hosts = fleet(20);
    hosts[7] = host(7, &[("10.1.0.8", 24), ("10.0.0.8", 24)]);
    let found = troubles(&hosts, Rails::Found, false);
    assert_eq!(found, ["Unknown([Networks]) [7] mlx5_0:1,mlx5_1:1 3 19"]);
    // Two ports in one network are no rails.
    let of = |number: u8| {
        host(
            number,
            &[(&format!("10.0.0.{number}"), 24), (&format!("10.0.0.{}", 100 + number), 24)],
        )
    };
    assert_eq!(survey(&(0..4).map(of).collect::<Vec<_>>()).rails(|_| true), Rails::Names);
}

/// A port that nobody uses is no trouble, nor is one that a setting leaves out.
#[test]
fn ports_that_are_not_in_use() {
    let mut hosts = fleet(3);
    for own in &mut hosts {
        port(own, 1).state = PortState::DOWN;
    }
    assert_eq!(troubles(&hosts, Rails::Found, false), [""; 0]);
    assert_eq!(survey(&hosts).pairs(Rails::Found, false, |_| true).joined, 1);
    let mut hosts = fleet(3);
    port(&mut hosts[1], 1).state = PortState::DOWN;
    for own in &mut hosts {
        own.settings.push(Setting::new("NCCL_IB_HCA", "=mlx5_0", None));
    }
    // NCCL leaves it out on all hosts; the recommendation and UCX do not.
    let found = troubles(&hosts, Rails::Found, false);
    assert_eq!(found, ["Cannot([NotActive]) [1] mlx5_1:1 2 0"]);
    // No other host has such a port.
    let mut hosts = fleet(3);
    hosts[0].devices[1].device.name = "other".to_owned();
    let found = troubles(&hosts, Rails::Names, false);
    assert_eq!(found, ["Alone [0] other:1 3 0"]);
}

#[test]
fn what_a_program_takes() {
    let mut hosts = fleet(4);
    hosts[1].settings.push(Setting::new("NCCL_IB_GID_INDEX", "2", None));
    let found = troubles(&hosts, Rails::Found, false);
    assert_eq!(found, ["Cannot([GidType]) [1] mlx5_0:1,mlx5_1:1 1 3"]);
    assert_eq!(
        odd(&hosts),
        ["[1] Nccl mlx5_0:1,mlx5_1:1 2 3 3", "[1] Setting NCCL_IB_GID_INDEX 2 - 3",]
    );
    // What cannot be read of its settings may change it.
    hosts[1].settings.clear();
    hosts[1].unread_settings.push(Problem { text: "x".to_owned(), errno: 13 });
    let unknown = ["Unknown([GidUnread]) [1] mlx5_0:1,mlx5_1:1 1 0"];
    assert_eq!(troubles(&hosts, Rails::Found, false), unknown);
    // Also where it would take an empty slot.
    hosts[1].settings.push(Setting::new("NCCL_IB_GID_INDEX", "9", None));
    assert_eq!(troubles(&hosts, Rails::Found, false), unknown);
}

#[test]
fn infiniband_partitions_and_subnets() {
    const DEFAULT: u64 = 0xfe80 << 48;
    let of = |number| infiniband(number, DEFAULT, number.into(), &[0xffff]);
    let mut hosts: Vec<Inventory> = (1..=4).map(of).collect();
    assert_eq!(troubles(&hosts, Rails::Found, false), [""; 0]);
    // Limited members meet full ones, and not each other.
    hosts.push(infiniband(5, DEFAULT, 5, &[0x7fff]));
    assert_eq!(troubles(&hosts, Rails::Found, false), [""; 0]);
    hosts.push(infiniband(6, DEFAULT, 6, &[0x7fff]));
    let limited = "Cannot([Partition]) [4, 5] mlx5_0:1 3 1";
    assert_eq!(troubles(&hosts, Rails::Found, false), [limited]);
    hosts.truncate(4);
    hosts.push(infiniband(7, 0xfec0 << 48, 7, &[0xffff]));
    let elsewhere = "Cannot([Subnet]) [4] mlx5_0:1 3 4";
    assert_eq!(troubles(&hosts, Rails::Found, false), [elsewhere]);
}

/// NCCL compares the number of a subnet, and UCX whole prefixes, but for two GIDs of a router.
#[test]
fn gids_of_a_router_of_infiniband() {
    const DEFAULT: u64 = 0xfe80 << 48;
    let of = |number| infiniband(number, DEFAULT, number.into(), &[0xffff]);
    let mut hosts: Vec<Inventory> = (1..=3).map(of).collect();
    let add = |own: &mut Inventory, flid: u128| {
        let gid = 0xfec0_u128 << 112 | flid << 80 | 0x0014_0500_0000_0001;
        let entry = GidEntry::new(1, 1, Gid::from_bytes(gid.to_be_bytes())).with_type(GidType::IB);
        let rows = own.devices[0].gids.as_mut().unwrap().as_mut().unwrap();
        rows.push(GidRecord::new(entry, Source::Ioctl).into());
    };
    add(&mut hosts[0], 0x1234);
    let pairs = survey(&hosts).pairs(Rails::Found, false, |_| true);
    let found: Vec<_> = pairs.problems.iter().map(|own| (&own.why, &*own.choosers)).collect();
    assert_eq!(found, [(&Why::Cannot(vec![Obstacle::Subnet]), &[Chooser::Ucx][..])]);
    for (own, flid) in hosts[1..].iter_mut().zip([0x1235, 0x1236]) {
        add(own, flid);
    }
    assert_eq!(troubles(&hosts, Rails::Found, false), [""; 0]);
}

/// Ports of one host are not joined with each other.
#[test]
fn all_to_all_joins_different_hosts() {
    let all = |hosts: &[Inventory]| troubles(hosts, Rails::All, false);
    // Two limited members, of which each meets the full member of the other host.
    let of = |number, keys| infiniband(number, 0xfe80 << 48, number.into(), keys);
    let with = |mut own: Inventory, mut other: Inventory| {
        other.devices[0].device.name = "mlx5_1".to_owned();
        own.devices.append(&mut other.devices);
        own
    };
    let hosts = [with(of(1, &[0x7fff]), of(2, &[2, 0x7fff])), of(3, &[0xffff])];
    assert_eq!(all(&hosts), [""; 0]);
    // One host of two kinds, without others, beside one of which a program uses no port, and beside one like it.
    let mixed = |number: u8| with(host(number, &[("10.0.0.1", 24)]), of(number, &[0xffff]));
    assert_eq!(all(&[mixed(1)]), [""; 0]);
    let mut unused = mixed(2);
    unused.settings.push(Setting::new("NCCL_IB_DISABLE", "1", None));
    let fabric = "Cannot([Fabric]) [0, 1] mlx5_1:1 2 1";
    assert_eq!(all(&[mixed(1), unused]), [fabric, "Alone [0] mlx5_0:1,mlx5_1:1 1 0"]);
    let fabric = "Cannot([Fabric]) [0, 1] mlx5_1:1 3 1";
    assert_eq!(all(&[mixed(1), mixed(2)]), [fabric]);
    // Only the other host is counted.
    let roce = host(2, &[("10.0.0.2", 24)]);
    assert_eq!(all(&[mixed(1), roce]), ["Cannot([Fabric]) [0] mlx5_1:1 3 1"]);
}

/// Nor are their networks compared.
#[test]
fn all_to_all_compares_networks_of_different_hosts() {
    let all = |hosts: &[Inventory]| troubles(hosts, Rails::All, false);
    let upper = |mut own: Inventory, device: usize| {
        port(&mut own, device).active_mtu = Some(Mtu(3));
        own
    };
    let two = host(1, &[("10.0.0.1", 24), ("10.0.0.2", 24), ("10.1.0.1", 24)]);
    // The port of the other network is of a kind of its own, and meets the other host's.
    let found = all(&[upper(two, 2), host(2, &[("10.1.0.2", 24)])]);
    assert_eq!(found, ["Unknown([Networks]) [0] mlx5_0:1,mlx5_1:1 3 1"]);
    // Those of the larger kind are all of one host: its other port is compared with its own kind.
    let one = host(1, &[("10.0.0.1", 24), ("10.0.0.2", 24), ("10.1.0.1", 24), ("10.0.0.3", 24)]);
    let found = all(&[upper(one, 2), upper(host(2, &[("10.0.0.4", 24)]), 0)]);
    assert_eq!(found, ["Unknown([Networks]) [0] mlx5_2:1 3 1"]);
    // The larger kind is all of one host, and only it has a port in another network.
    let two = host(1, &[("10.0.0.1", 24), ("10.1.0.1", 24)]);
    let found = all(&[two, upper(host(2, &[("10.0.0.2", 24)]), 0)]);
    assert_eq!(found, ["Unknown([Networks]) [0] mlx5_1:1 3 1"]);
}

/// The others are all of the other side, of whatever kinds they are.
#[test]
fn others_of_several_kinds() {
    let of = |number: u8, network: u8, mtu| {
        let mut own = host(number, &[(&format!("10.{network}.0.{number}"), 24)]);
        port(&mut own, 0).active_mtu = Some(Mtu(mtu));
        own
    };
    // Most are in network 0, and of two MTUs.
    let mut hosts = vec![of(1, 0, 3), of(2, 2, 3), of(3, 3, 3)];
    hosts.extend((4..7).map(|number| of(number, 0, 5)));
    let found = troubles(&hosts, Rails::Found, false);
    assert_eq!(found, ["Unknown([Networks]) [1, 2] mlx5_0:1 3 4"]);
    let problems = survey(&hosts).pairs(Rails::Found, false, |_| true).problems;
    assert_eq!((problems[0].alike, problems[0].example), (3, Some(3)), "of the larger kind");
    // One of another GID type, whose address is right.
    let mut hosts: Vec<_> =
        (1..6).map(|number| of(number, 0, if number > 3 { 5 } else { 3 })).collect();
    hosts.push(of(6, 0, 3));
    keep_rows(&mut hosts[5], 0, |index| index == 2);
    let found = troubles(&hosts, Rails::Found, false);
    assert_eq!(found[1..], ["Cannot([GidType]) [5] mlx5_0:1 2 5"]);
    // In one rail a host is missing, and in the other one it is of another kind.
    let mut hosts = fleet(6);
    for rail in [0, 1] {
        keep_rows(&mut hosts[5], rail, |index| index % 2 == 0);
    }
    port(&mut hosts[4], 0).state = PortState::DOWN;
    port(&mut hosts[4], 1).active_mtu = Some(Mtu(4));
    let problems = survey(&hosts).pairs(Rails::Found, false, |_| true).problems;
    let own = problems.iter().filter(|own| own.why == Why::Cannot(vec![Obstacle::GidType]));
    let own = own.map(|own| (own.ports.join(","), own.others, own.alike, own.example));
    let expected = [("mlx5_0:1".to_owned(), 4, 4, Some(0)), ("mlx5_1:1".to_owned(), 5, 4, Some(0))];
    assert_eq!(own.collect::<Vec<_>>(), expected);
}

/// A program that leaves out a port of InfiniBand reaches nobody there, and one that may leave it out perhaps nobody.
#[test]
fn a_port_of_infiniband_that_a_program_does_not_use() {
    let of = |number| infiniband(number, 0xfe80 << 48, number.into(), &[0xffff]);
    let made = || (1..=3).map(of).collect::<Vec<_>>();
    let mut hosts = made();
    for own in &mut hosts {
        own.settings.push(Setting::new("UCX_IB_GID_INDEX", "5", None));
    }
    let none = "Cannot([NoGid]) [0, 1, 2] mlx5_0:1 1 0";
    assert_eq!(troubles(&hosts, Rails::Found, false), [none]);
    // Of a tree it is not known which variables are set.
    let mut hosts = made();
    hosts[1].host = None;
    let unknown = "Unknown([GidUnread]) [1] mlx5_0:1 2 0";
    assert_eq!(troubles(&hosts, Rails::Found, false), [unknown]);
}

/// iWARP has no networks of GIDs: nothing of them is missing there.
#[test]
fn iwarp_where_rails_are_networks() {
    let mut hosts = fleet(2);
    for own in &mut hosts {
        let device = &mut own.devices[1].device;
        (device.node_type, device.protocol) = (NodeType::RNIC, Some("iw".to_owned()));
        let index = own.devices[1].ports[0].netdev.as_ref().unwrap().as_ref().unwrap().index;
        let mac = own.interface(index.get()).unwrap().mac.unwrap();
        let entry = GidEntry::new(1, 0, Gid::of_iwarp(mac)).with_type(GidType::IB);
        own.devices[1].gids = Some(Ok(vec![GidRecord::new(entry, Source::Ioctl).into()]));
    }
    let found = troubles(&hosts, Rails::Networks, false);
    assert_eq!(found.last().unwrap(), "Unknown([NoRule]) [0, 1] mlx5_1:1 2 1");
    assert!(!found.iter().any(|own| own.contains("NetworkUnread")), "{found:?}");
}

/// A program that is left no active port of a host reaches nobody from there. Where one is left, that is meant.
#[test]
fn settings_that_leave_a_program_no_active_port() {
    let of = |variable: &str, value: &str, is_down: bool| {
        let mut hosts = fleet(3);
        for own in &mut hosts {
            own.settings.push(Setting::new(variable, value, None));
            if is_down {
                port(own, 1).state = PortState::DOWN;
            }
        }
        troubles(&hosts, Rails::Found, false)
    };
    let none = |port: &str| format!("Cannot([NotListed]) [0, 1, 2] {port} 1 0");
    for variable in ["NCCL_IB_HCA", "UCX_NET_DEVICES"] {
        assert_eq!(of(variable, "mlx5_7:1", false), [none("mlx5_0:1,mlx5_1:1")], "{variable}");
        assert_eq!(of(variable, "mlx5_0:1", false), [""; 0], "{variable}");
        assert_eq!(
            of(variable, "mlx5_1:1", true),
            [none("mlx5_0:1")],
            "the one that is left is down"
        );
    }
    // Programs do not find the one that is left, or the table of one that is left out could not be read.
    for list in ["mlx5_1:1", "mlx5_7:1"] {
        let mut hosts = fleet(3);
        for own in &mut hosts {
            own.settings.push(Setting::new("NCCL_IB_HCA", list, None));
            if list == "mlx5_1:1" {
                own.devices[1].device.node = None;
            } else {
                let problem = Problem { text: "x: broken".to_owned(), errno: 5 };
                own.devices[1].gids = Some(Err(problem));
            }
        }
        let found = troubles(&hosts, Rails::Found, false);
        assert!(found.contains(&none("mlx5_0:1")), "{list}: {found:?}");
    }
    // Another host's settings do not matter.
    let mut hosts = fleet(3);
    hosts[1].settings.push(Setting::new("NCCL_IB_HCA", "mlx5_7", None));
    let one = "Cannot([NotListed]) [1] mlx5_0:1,mlx5_1:1 1 0";
    assert_eq!(troubles(&hosts, Rails::Found, false), [one]);
    // One that could not be read may be left.
    let mut hosts = fleet(3);
    for own in &mut hosts {
        own.settings.push(Setting::new("NCCL_IB_HCA", "mlx5_1:1", None));
        let problem = Problem { text: "x: broken".to_owned(), errno: 5 };
        own.devices[1].ports[0].attributes = Some(Err(problem));
    }
    let is_said = |hosts: &[Inventory]| {
        troubles(hosts, Rails::Found, false).iter().any(|own| own.contains("NotListed"))
    };
    assert!(!is_said(&hosts));
    // So may one that was not wanted, or was not listed.
    let changes: [fn(&mut Inventory); 3] = [
        |_| (),
        |it| it.others.push(Device::named("mlx5_7")),
        |it| it.unlisted.push(("mlx5_7".into(), Problem { text: "x: broken".into(), errno: 5 })),
    ];
    for (change, expected) in changes.into_iter().zip([true, false, false]) {
        let mut hosts = fleet(2);
        for own in &mut hosts {
            own.settings.push(Setting::new("NCCL_IB_HCA", "mlx5_7:1", None));
            change(own);
        }
        assert_eq!(is_said(&hosts), expected);
    }
}

/// What is there twice, as `hosts what count first`.
fn duplicates(hosts: &[Inventory]) -> Vec<String> {
    let all = survey(hosts).duplicates();
    let text = |own: &Duplicate| format!("{:?} {:?}", own.hosts, own.same);
    all.iter().map(text).collect()
}

#[test]
fn what_is_there_twice() {
    let mut hosts = fleet(4);
    // An address.
    hosts[2] = host(2, &[("10.0.0.1", 24), ("10.1.0.3", 24)]);
    assert_eq!(duplicates(&hosts), ["[0, 2] [(Address, 1, \"10.0.0.1\")]"]);
    // A copy of a host, with other addresses.
    hosts[2] = host(1, &[("10.0.0.3", 24), ("10.1.0.3", 24)]);
    assert_eq!(
        duplicates(&hosts),
        ["[1, 2] [(NodeGuid, 2, \"0x0200000000000100\"), (Mac, 2, \"fe80::ff:fe00:100\")]"]
    );
    // The MAC address is that also where no interface has the address that is made of it.
    for own in &mut hosts {
        for interface in own.interfaces.as_mut().unwrap() {
            interface.addresses.remove(0);
        }
        for record in &mut own.devices {
            let rows = record.gids.as_mut().unwrap().as_mut().unwrap();
            rows.retain(|row| row.record.entry.gid_type() == GidType::ROCE_V2);
        }
    }
    let found = duplicates(&hosts);
    assert!(found.len() == 1 && found[0].contains("(Mac, 2, "), "{found:?}");
    let mut hosts = fleet(4);
    // What is another namespace's may be an overlay's.
    hosts[2] = host(2, &[("10.0.0.1", 24), ("10.1.0.3", 24)]);
    for row in hosts[2].devices[0].gids.as_mut().unwrap().as_mut().unwrap() {
        (row.netdev, row.netdev_is_elsewhere) = (None, true);
    }
    assert_eq!(duplicates(&hosts), [""; 0]);
    // The gateway of point-to-point links, of which the kernel makes a GID on each host.
    let of = |number: u8| {
        let mut own = host(number, &[("10.9.0.254", 32)]);
        let interface = &mut own.interfaces.as_mut().unwrap()[0];
        interface.unfit = vec![("10.9.0.254".parse().unwrap(), Unfit::FarEnd)];
        own
    };
    let mut hosts = [of(1), of(2)];
    assert_eq!(duplicates(&hosts), [""; 0]);
    // Where the rows' interface is not known, its address is.
    for row in
        hosts.iter_mut().flat_map(|own| own.devices[0].gids.as_mut().unwrap().as_mut().unwrap())
    {
        (row.netdev, row.record) =
            (None, GidRecord::new(row.record.entry.with_netdev_ifindex(None), Source::Sysfs));
    }
    assert_eq!(duplicates(&hosts), [""; 0]);
    // Link-local addresses that are no MAC addresses, of either family.
    let local = |number| host(number, &[("fe80::1", 64), ("169.254.3.1", 16)]);
    assert_eq!(duplicates(&[local(1), local(2)]), [""; 0]);
}

/// A row whose address no interface of the host has is not the host's.
#[test]
fn an_address_that_a_host_does_not_have() {
    // A row of the other host's address, by its interface, if that is known, and by its index.
    let with_row = |netdev: Option<u32>, ifindex: Option<u32>| {
        let mut hosts = fleet(2);
        let gid: core::net::Ipv6Addr = "::ffff:10.0.0.2".parse().unwrap();
        let entry = GidEntry::new(1, 4, gid.into()).with_type(GidType::ROCE_V2);
        let entry = entry.with_netdev_ifindex(ifindex.and_then(NonZeroU32::new));
        let mut row = GidRow::from(GidRecord::new(entry, Source::Ioctl));
        row.netdev = netdev.and_then(NonZeroU32::new).map(|own| Netdev::new(own, "eth".to_owned()));
        hosts[0].devices[0].gids.as_mut().unwrap().as_mut().unwrap().push(row);
        hosts
    };
    // Its interface has lost it; there is no such interface here, as where netlink does not say whose it is.
    for (netdev, ifindex) in [(Some(2), Some(2)), (None, Some(99)), (None, None)] {
        assert_eq!(duplicates(&with_row(netdev, ifindex)), [""; 0]);
    }
    // The interface came or went while the host was read.
    let hosts = with_row(Some(99), Some(99));
    assert_eq!(duplicates(&hosts), [""; 0]);
    assert_eq!(survey(&hosts).groups().partly, [0]);
    let perhaps = |hosts: &[Inventory]| survey(hosts).perhaps_duplicates();
    let same = vec![(Identity::Address, 1, "10.0.0.2".to_owned())];
    assert_eq!(perhaps(&hosts), [Duplicate { hosts: vec![0, 1], same }]);
    assert_eq!(perhaps(&hosts[..1]), [], "no other host has it");
    assert_eq!(perhaps(&with_row(Some(2), Some(2))), []);
    // The type could not be read; the address is the host's all the same.
    let mut hosts = fleet(2);
    hosts[1] = host(1, &[("10.0.0.1", 24)]);
    let row = hosts[1].devices[0].gids.as_mut().unwrap().as_mut().unwrap().last_mut().unwrap();
    assert_eq!(row.record.entry.gid().ipv4(), Some([10, 0, 0, 1].into()));
    row.record = GidRecord::new(row.record.entry.with_type(GidType::UNNAMED), Source::Ioctl);
    assert_eq!(duplicates(&hosts), ["[0, 1] [(Address, 1, \"10.0.0.1\")]"]);
    // Nothing shows that the ports are ones of RoCE.
    for own in hosts.iter_mut().map(|own| &mut own.devices[0]) {
        for row in own.gids.as_mut().unwrap().as_mut().unwrap() {
            let entry = row.record.entry.with_type(GidType::UNNAMED);
            row.record = GidRecord::new(entry, Source::Ioctl);
        }
        own.device.protocol = None;
    }
    assert_eq!(duplicates(&hosts), [""; 0]);
    assert_eq!(survey(&hosts).groups().partly, [0, 1], "also if it has a device less");
    // The interface is not proven to be here, and has the address.
    let mut hosts = fleet(2);
    hosts[1] = host(1, &[("10.0.0.1", 24)]);
    hosts[1].has_netlink = false;
    assert_eq!(duplicates(&hosts), ["[0, 1] [(Address, 1, \"10.0.0.1\")]"]);
}

#[test]
fn lids_in_one_subnet() {
    let of = |number, prefix: u64, lid| infiniband(number, prefix << 48, lid, &[0xffff]);
    let twice = "[0, 1] [(Lid, 1, \"7\")]";
    assert_eq!(duplicates(&[of(1, 0xfec0, 7), of(2, 0xfec0, 7)]), [twice]);
    assert_eq!(duplicates(&[of(1, 0xfe80, 7), of(2, 0xfe80, 7)]), [twice]);
    assert_eq!(duplicates(&[of(1, 0xfec0, 7), of(2, 0xfec1, 7)]), [""; 0]);
    // None is of one port only, as 0xffff of ports that are down.
    for lid in [0, 0xc000, 0xffff, 0x1_0007] {
        assert_eq!(duplicates(&[of(1, 0xfec0, lid), of(2, 0xfec0, lid)]), [""; 0]);
    }
    // A port that is not configured may show one that it had before.
    for (state, is_seen) in [
        (PortState::DOWN, false),
        (PortState::INIT, false),
        (PortState::ARMED, true),
        (PortState::ACTIVE_DEFER, true),
    ] {
        let mut hosts = [of(1, 0xfec0, 7), of(2, 0xfec0, 7)];
        port(&mut hosts[1], 0).state = state;
        assert_eq!(duplicates(&hosts).len(), usize::from(is_seen), "{state}");
        // So that it does not matter what else is not known of it.
        port(&mut hosts[1], 0).flags = None;
        assert_eq!(survey(&hosts).perhaps_duplicates().len(), usize::from(is_seen), "{state}");
    }
    // The rails of a fleet may be fabrics of their own, and all have the default prefix.
    let mut other = of(2, 0xfe80, 7);
    other.devices[0].device.name = "mlx5_1".to_owned();
    assert_eq!(duplicates(&[of(1, 0xfe80, 7), other]), [""; 0]);
    // A virtual function has the LID of its physical one, which another host may have.
    let mut function = of(2, 0xfec0, 7);
    port(&mut function, 0).flags = Some(1);
    assert_eq!(duplicates(&[of(1, 0xfec0, 7), function.clone()]), [""; 0]);
    // And so may be one of which that is not known.
    port(&mut function, 0).flags = None;
    let hosts = [of(1, 0xfec0, 7), function];
    assert_eq!(duplicates(&hosts), [""; 0]);
    let same = vec![(Identity::Lid, 1, "7".to_owned())];
    assert_eq!(survey(&hosts).perhaps_duplicates(), [Duplicate { hosts: vec![0, 1], same }]);
    assert_eq!(survey(&hosts).groups().partly, [1]);
    // Without a row the subnet is not known.
    let mut hosts = [of(1, 0xfec0, 7), of(2, 0xfec0, 7)];
    for own in &mut hosts {
        own.devices[0].gids = Some(Ok(Vec::new()));
    }
    assert_eq!(survey(&hosts).groups().partly, [0, 1]);
}

/// The host that has most in common with others is not the one of which least is known.
#[test]
fn what_is_usual_is_not_what_was_not_read() {
    let mut hosts = fleet(3);
    for (own, version) in hosts.iter_mut().zip([Some("1"), Some("2"), None]) {
        own.devices.truncate(1);
        own.devices[0].device.fw_version = version.map(str::to_owned);
    }
    assert_eq!(odd(&hosts), ["[1] Firmware mlx5_0 2 1 1"]);
    // A device that only one has, beside hosts whose devices could not all be listed.
    let mut hosts = fleet(4);
    let problem = Problem { text: "x: broken".to_owned(), errno: 5 };
    for own in &mut hosts[1..] {
        own.devices.truncate(1);
    }
    for own in &mut hosts[2..] {
        own.unlisted.push(("mlx5_1".to_owned(), problem.clone()));
    }
    assert_eq!(odd(&hosts), ["[1] Present mlx5_1 -  1"]);
    // A device that only one lacks, beside hosts whose devices could not all be listed.
    for unlisted in [1, 2, 4] {
        let mut hosts = fleet(3 + unlisted);
        for own in &mut hosts[2..] {
            own.devices.truncate(1);
        }
        for own in &mut hosts[3..] {
            own.unlisted.push(("mlx5_1".to_owned(), problem.clone()));
        }
        assert_eq!(odd(&hosts), ["[2] Present mlx5_1 -  2"], "{unlisted}");
    }
    // A device whose ports have no address on most hosts, and hosts of which little was read.
    let mut hosts = fleet(11);
    for own in &mut hosts[..6] {
        port(own, 1).state = PortState::DOWN;
        keep_rows(own, 1, |index| index < 2);
    }
    let found = odd(&hosts);
    assert!(found.iter().all(|own| own.starts_with("[6, 7, 8, 9, 10] ")), "{found:?}");
    let mut hosts = fleet(12);
    for own in &mut hosts[..11] {
        own.devices.iter_mut().for_each(|own| own.hardware = None);
    }
    hosts[11].kernel = Some("6.8.0".to_owned());
    assert_eq!(odd(&hosts), ["[11] Kernel  6.8.0 6.12.0 11"]);
    // What is recommended on a port that is active is not what most have whose port is down.
    let mut hosts = fleet(7);
    for own in &mut hosts[..2] {
        own.interfaces = None;
    }
    for own in &mut hosts[4..] {
        port(own, 1).state = PortState::DOWN;
    }
    let found = odd(&hosts);
    assert!(found.iter().all(|own| own.starts_with("[4, 5, 6] State")), "{found:?}");
    // A port of the usual host that could not be read is as most are.
    let mut hosts = fleet(4);
    port(&mut hosts[3], 1).state = PortState::DOWN;
    hosts[0].devices[1].ports[0].attributes = Some(Err(problem.clone()));
    assert_eq!(odd(&hosts), ["[3] State mlx5_1:1 down active 2"]);
    // One of which nearly nothing is known is not the usual one.
    let mut hosts = fleet(21);
    for (place, own) in hosts[10..20].iter_mut().enumerate() {
        own.devices[0].device.fw_version = Some(format!("other{place}"));
    }
    hosts[20].devices.clear();
    hosts[20].list_failure = Some(problem.clone());
    hosts[20].problems.push(problem.clone());
    assert_eq!(odd(&hosts).len(), 10, "{:?}", odd(&hosts));
    // Settings likewise.
    let mut hosts = fleet(5);
    for own in &mut hosts[..2] {
        own.settings.push(Setting::new("NCCL_IB_GID_INDEX", "3", None));
    }
    for own in &mut hosts[3..] {
        own.unread_settings.push(problem.clone());
    }
    assert!(odd(&hosts).contains(&"[2] Setting NCCL_IB_GID_INDEX - 3 2".to_owned()));
    let mut hosts = fleet(3);
    hosts[0].settings.push(Setting::new("NCCL_IB_GID_INDEX", "3", None));
    hosts[1].settings.push(Setting::new("NCCL_IB_GID_INDEX", "1", None));
    hosts[2].unread_settings.push(problem);
    let found = odd(&hosts);
    assert!(found.contains(&"[1] Setting NCCL_IB_GID_INDEX 1 3 1".to_owned()), "{found:?}");
    // A file that could not be read may be first, and the environment is.
    for (file, count) in [(Some("/etc/nccl.conf"), 0), (None, 1)] {
        let file = file.map(str::to_owned);
        hosts[2].settings = vec![Setting::new("NCCL_IB_GID_INDEX", "5", file)];
        let found = odd(&hosts);
        let of_it = found.iter().filter(|own| own.starts_with("[2] ")).count();
        assert_eq!(of_it, count, "{found:?}");
    }
}

/// What follows from another difference makes no host the usual one.
#[test]
fn what_is_usual_is_not_what_follows_from_something_else() {
    // The indices of the ports that are active are not alike, and those that are down have none.
    let mut hosts = fleet(5);
    for own in &mut hosts[3..] {
        port(own, 1).state = PortState::DOWN;
    }
    for (place, own) in hosts[..3].iter_mut().enumerate() {
        let rows = own.devices[1].gids.as_mut().unwrap().as_mut().unwrap();
        let entry = &rows[3].record.entry;
        let index = entry.index() + u32::try_from(place).unwrap();
        let moved = GidEntry::new(1, index, entry.gid()).with_type(entry.gid_type());
        rows[3].record.entry = moved.with_netdev_ifindex(entry.netdev_ifindex());
    }
    let found = odd(&hosts);
    assert!(found.contains(&"[3, 4] State mlx5_1:1 down active 3".to_owned()), "{found:?}");
    assert!(found.iter().any(|own| own.starts_with("[1] Index mlx5_1:1 4 3 1")), "{found:?}");
    // Nor is the firmware of another board usual.
    let mut hosts = fleet(6);
    for (place, own) in hosts.iter_mut().enumerate() {
        own.devices.truncate(1);
        let is_other = place >= 4;
        let hardware = own.devices[0].hardware.as_mut().unwrap();
        hardware.board_id = Some(if is_other { "B2" } else { "B1" }.to_owned());
        let versions = [None, None, Some("1"), Some("2"), Some("9"), Some("9")];
        own.devices[0].device.fw_version = versions[place].map(str::to_owned);
    }
    let others = "[4, 5] Board mlx5_0 B2 B1 4";
    assert_eq!(odd(&hosts), [others, "[3] Firmware mlx5_0 2 1 1"]);
    // Of a board that could not be read it is as it is of the others, and what one host has is not usual for that.
    let mut hosts = fleet(5);
    for (place, own) in hosts.iter_mut().enumerate() {
        own.devices.truncate(1);
        let is_first = place == 0;
        own.devices[0].device.fw_version = Some(if is_first { "9" } else { "1" }.to_owned());
        if !is_first {
            own.devices[0].hardware = None;
        }
    }
    assert_eq!(odd(&hosts), ["[0] Firmware mlx5_0 9 1 4"]);
    // The host that is usual in the rest may be the one with another firmware.
    let mut hosts = fleet(3);
    for (place, own) in hosts.iter_mut().enumerate() {
        own.devices.truncate(1);
        own.devices[0].device.fw_version = Some(if place == 0 { "9" } else { "1" }.to_owned());
    }
    hosts[0].devices[0].hardware.as_mut().unwrap().board_is_unread = true;
    port(&mut hosts[1], 0).active_mtu = Some(Mtu(3));
    port(&mut hosts[2], 0).active_mtu = Some(Mtu(2));
    let found = odd(&hosts);
    assert!(found.contains(&"[0] Firmware mlx5_0 9 1 2".to_owned()), "{found:?}");
}

/// A port that is down has no network. It is of a rail nevertheless.
#[test]
fn a_port_that_is_down_among_rails_by_networks() {
    let mut hosts = fleet(5);
    for own in &mut hosts[..2] {
        let names = ["mlx5_1", "mlx5_0"];
        for (record, name) in own.devices.iter_mut().zip(names) {
            record.device.name = name.to_owned();
        }
    }
    assert_eq!(survey(&hosts).rails(|_| true), Rails::Networks);
    port(&mut hosts[4], 0).state = PortState::DOWN;
    assert_eq!(troubles(&hosts, Rails::Networks, false), ["Cannot([NotActive]) [4] mlx5_0:1 3 0"]);
    // Its name is of this host only, which has fewer networks than the others.
    let name = |name: &str| {
        let mut hosts = hosts.clone();
        hosts[4].devices[0].device.name = name.to_owned();
        hosts
    };
    let perhaps = "Unknown([Unused]) [4] mlx5_7:1 3 0";
    assert_eq!(troubles(&name("mlx5_7"), Rails::Found, false), [perhaps]);
    // A port that is not needed: the others have no more networks.
    let mut others = name("mlx5_7");
    others.push(host(5, &[("10.0.0.6", 24), ("10.1.0.6", 24), ("10.2.0.6", 24)]));
    others.remove(4);
    others[4].devices[2].device.name = "mlx5_7".to_owned();
    port(&mut others[4], 2).state = PortState::DOWN;
    assert_eq!(troubles(&others, Rails::Networks, false), [""; 0]);
    // No host uses it.
    for (own, device) in hosts.iter_mut().zip([1, 1, 0, 0, 0]) {
        port(own, device).state = PortState::DOWN;
    }
    assert_eq!(troubles(&hosts, Rails::Networks, false), [""; 0]);
}

/// What was not read of one host is told of that host.
#[test]
fn the_host_that_lacks_something_is_named() {
    let mut hosts: Vec<_> =
        (1..=3).map(|own| infiniband(own, 0xfec0 << 48, own.into(), &[0xffff])).collect();
    hosts[0].devices[0].ports[0].pkeys = None;
    assert_eq!(troubles(&hosts, Rails::Names, false), ["Unknown([PKeysUnread]) [0] mlx5_0:1 3 2"]);
}
