//! First plus differences is second, for any two inventories.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

use super::*;
use crate::device::{Device, FolderId};
use crate::gid::{Gid, GidEntry, GidRecord, GidType, Source};
use crate::hardware::{Hardware, PciFunction};
use crate::inventory::{Answer, Problem};
use crate::netdev::{Interface, Netdev};
use crate::pkey::PKey;
use crate::port::{PortAttributes, PortState};
use crate::text::natural;

/// Few of each, so that two inventories have much in common.
fn small() -> impl Strategy<Value = u8> {
    0u8..3
}

fn problem() -> Problem {
    Problem { text: "x: no".to_owned(), errno: 5 }
}

fn answer<T: Clone + core::fmt::Debug>(
    own: impl Strategy<Value = T>,
) -> impl Strategy<Value = Answer<T>> {
    prop_oneof![7 => own.prop_map(Ok), 1 => Just(Err(problem()))]
}

fn netdev() -> impl Strategy<Value = Option<Netdev>> {
    proptest::option::of(
        (1u32..4, small()).prop_map(|(index, name)| {
            Netdev::new(NonZeroU32::new(index).unwrap(), format!("d{name}"))
        }),
    )
}

fn row() -> impl Strategy<Value = ((u32, u32), GidRow)> {
    (1u32..3, 0u32..8, small(), small(), netdev()).prop_map(|(port, index, gid, kind, netdev)| {
        let gid = Gid::from(core::net::Ipv4Addr::new(10, 0, 0, gid));
        let entry = GidEntry::new(port, index, gid).with_type(GidType(kind.into()));
        let mut row = GidRow::from(GidRecord::from(entry));
        row.record.sysfs_netdev = netdev.as_ref().map(|own| own.name.clone());
        row.netdev = netdev;
        ((port, index), row)
    })
}

fn port(number: u32) -> impl Strategy<Value = PortRecord> {
    let attributes =
        (small(), small(), small(), small(), small()).prop_map(|(state, lid, sm, more, source)| {
            let mut own = PortAttributes::default();
            (own.state, own.lid, own.sm_sl) = (PortState(state), lid.into(), sm);
            own.gid_tbl_len = more.into();
            (own, if source == 0 { Source::Sysfs } else { Source::Ioctl })
        });
    let pkeys = proptest::collection::vec((0u32..3).prop_map(|place| (place, PKey(0xffff))), 0..2);
    (
        proptest::option::of(answer(attributes)),
        answer(netdev()),
        proptest::option::of(answer(pkeys)),
        answer(proptest::option::of(small().prop_map(|low| Guid::from(u64::from(low))))),
        proptest::option::of(any::<bool>()),
    )
        .prop_map(move |(attributes, netdev, pkeys, guid, has_types)| PortRecord {
            attributes,
            guid,
            netdev,
            pkeys,
            has_types,
            ..PortRecord::new(number)
        })
}

/// A device that is put into its place later.
fn device() -> impl Strategy<Value = DeviceRecord> {
    let rows = proptest::collection::vec(row(), 0..12).prop_map(|rows| {
        rows.into_iter().collect::<BTreeMap<_, _>>().into_values().collect::<Vec<_>>()
    });
    let ports = (port(1), port(2), any::<bool>())
        .prop_map(|(one, two, both)| if both { vec![one, two] } else { vec![one] });
    (proptest::option::of(0u32..6), small(), small(), ports, proptest::option::of(answer(rows)))
        .prop_map(|(index, guid, firmware, ports, gids)| {
            let mut device = Device::named("x");
            (device.index, device.node_guid) = (index, u64::from(guid).into());
            device.fw_version = Some(firmware.to_string());
            DeviceRecord { ports, gids, ..DeviceRecord::new(device) }
        })
}

fn interface() -> impl Strategy<Value = (u32, Interface)> {
    (1u32..5, small(), small()).prop_map(|(index, name, mtu)| {
        let mut own = Interface::new(NonZeroU32::new(index).unwrap(), format!("d{name}"));
        own.mtu = mtu.into();
        (index, own)
    })
}

prop_compose! {
    /// A host: the names and indices of its devices are of one each.
    pub(in crate::watch) fn host()(
        devices in proptest::collection::vec((small(), device()), 0..5),
        interfaces in proptest::option::of(proptest::collection::vec(interface(), 0..4)),
        kernel in proptest::option::of(Just("7.2".to_owned())),
        has_netlink in any::<bool>(),
        unlisted in proptest::option::of(small()),
        (has_problem, has_list) in any::<(bool, bool)>(),
    ) -> Inventory {
        let mut own = Inventory { kernel, has_netlink, ..Inventory::default() };
        own.unlisted.extend(unlisted.map(|name| (format!("rxe{name}"), problem())));
        own.problems.extend(has_problem.then(problem));
        own.list_failure = (!has_list).then(problem);
        own.problems.extend(own.list_failure.clone());
        let mut indices = BTreeSet::new();
        let by_name: BTreeMap<u8, DeviceRecord> = devices.into_iter().collect();
        for (name, mut device) in by_name {
            device.device.name = format!("rxe{name}");
            device.device.index = device.device.index.filter(|index| indices.insert(*index));
            own.devices.push(device);
        }
        own.devices.sort_by(|one, other| natural(&one.device.name, &other.device.name));
        own.interfaces = interfaces.map(|all| all.into_iter().collect::<BTreeMap<_, _>>().into_values().collect());
        own
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: Some(Box::new(FileFailurePersistence::SourceParallel("tests/regressions"))),
        ..ProptestConfig::with_cases(4096)
    })]

    #[test]
    fn first_and_differences_are_second(before in host(), after in host(), way in 0..3_usize) {
        let none = BTreeSet::new();
        let kept = [Kept::Alike, Kept::AllBut(&none), Kept::Gap][way];
        let found = differences_of(&before, &after, &BTreeSet::new(), kept);
        let mut now = before.clone();
        for difference in &found {
            let was = now.clone();
            difference.apply(&mut now).map_err(|error| TestCaseError::fail(format!("{error}: {found:#?}")))?;
            prop_assert_ne!(&now, &was, "it says nothing: {:?}", difference);
            // It can be applied only once.
            let mut again = now.clone();
            prop_assert!(difference.apply(&mut again).is_err(), "twice: {:?}", difference);
            prop_assert_eq!(&again, &now, "a mismatch changes nothing");
        }
        prop_assert_eq!(&now, &after, "{:#?}", found);
        prop_assert!(differences(&after, &after).is_empty());
    }
}

fn table(rows: &[(u32, u8)]) -> Inventory {
    let mut own = DeviceRecord::new(Device::sample("rxe0"));
    let row = |(index, gid): &(u32, u8)| {
        let gid = Gid::from(core::net::Ipv4Addr::new(10, 0, 0, *gid));
        GidRow::from(GidRecord::from(GidEntry::new(1, *index, gid)))
    };
    own.gids = Some(Ok(rows.iter().map(row).collect()));
    Inventory { devices: vec![own], ..Inventory::default() }
}

fn names(before: &Inventory, after: &Inventory) -> Vec<&'static str> {
    differences(before, after).iter().map(Difference::name).collect()
}

#[test]
fn what_is_said_of_rows() {
    let said = |before: &[(u32, u8)], after: &[(u32, u8)]| names(&table(before), &table(after));
    assert_eq!(said(&[(0, 1)], &[(0, 1), (3, 2)]), ["gid_came"]);
    assert_eq!(said(&[(0, 1), (3, 2)], &[(0, 1)]), ["gid_went"]);
    assert_eq!(said(&[(0, 1)], &[(0, 2)]), ["gid_changed"]);
    assert_eq!(said(&[(0, 1), (3, 2)], &[(0, 1), (5, 2)]), ["gid_moved"]);
    // A row moves to the slot of one that moves, and to the slot of one that goes.
    assert_eq!(said(&[(1, 1), (2, 2)], &[(2, 1), (3, 2)]), ["gid_moved", "gid_moved"]);
    assert_eq!(said(&[(1, 1), (2, 2)], &[(2, 1)]), ["gid_went", "gid_moved"]);
    // Two that change places.
    assert_eq!(said(&[(1, 1), (2, 2)], &[(1, 2), (2, 1)]), ["gid_went", "gid_moved", "gid_came"]);
    let mut unread = table(&[]);
    unread.devices[0].gids = Some(Err(problem()));
    assert_eq!(names(&table(&[(0, 1)]), &unread), ["gids_readable"]);
}

#[test]
fn what_is_said_of_devices() {
    let host = |devices: &[(&str, u32)]| {
        let device = |(name, index): &(&str, u32)| {
            let mut device = Device::named(*name);
            device.index = Some(*index);
            DeviceRecord::new(device)
        };
        Inventory { devices: devices.iter().map(device).collect(), ..Inventory::default() }
    };
    let said = |before: &[(&str, u32)], after: &[(&str, u32)]| names(&host(before), &host(after));
    assert_eq!(said(&[], &[("a", 1)]), ["device_came"]);
    assert_eq!(said(&[("a", 1)], &[]), ["device_went"]);
    assert_eq!(said(&[("a", 1)], &[("b", 1)]), ["device_renamed"]);
    assert_eq!(said(&[("a", 1)], &[("a", 2)]), ["device_replaced"]);
    assert_eq!(said(&[("a", 1), ("b", 2)], &[("a", 2), ("b", 1)]), ["device_renamed"; 2]);
    assert_eq!(said(&[("a", 1), ("b", 2)], &[("a", 2)]), ["device_went", "device_renamed"]);
    assert_eq!(said(&[("a", 1)], &[("a", 3), ("b", 1)]), ["device_renamed", "device_came"]);
    // What cannot be listed is not known to be gone.
    let problem = || Problem { text: "x: no".to_owned(), errno: 5 };
    let one = Inventory { unlisted: vec![("a".to_owned(), problem())], ..host(&[("b", 2)]) };
    let all = Inventory { list_failure: Some(problem()), ..Inventory::default() };
    let both = host(&[("a", 1), ("b", 2)]);
    assert_eq!(names(&both, &one), ["device_unlisted", "host"]);
    assert_eq!(names(&one, &both), ["device_listed", "host"]);
    assert_eq!(names(&both, &all), ["device_unlisted", "device_unlisted", "host"]);
    assert_eq!(names(&all, &both), ["device_listed", "device_listed", "host"]);
    assert_eq!(names(&one, &Inventory { devices: Vec::new(), ..one.clone() }), ["device_went"]);
    // Without an index it is the one that has the folder, whatever its node is.
    let folder = |inode| Some(FolderId { path: "a".into(), inode });
    let mut with_node = host(&[("a", 1)]);
    let own = &mut with_node.devices[0].device;
    (own.index, own.identity.device, own.identity.node) = (None, folder(1), folder(2));
    let mut without = with_node.clone();
    let own = &mut without.devices[0].device;
    (own.identity.node, own.node_is_unread) = (None, true);
    assert_eq!(names(&with_node, &without), ["device_changed"]);
    let mut anew = with_node.clone();
    anew.devices[0].device.identity.node = folder(4);
    assert_eq!(names(&with_node, &anew), [""; 0]);
    without.devices[0].device.identity.device = folder(3);
    assert_eq!(names(&with_node, &without), ["device_replaced"]);
    // RDMA netlink did not answer once: it is the same device.
    let mut by_sysfs = host(&[("a", 1)]);
    by_sysfs.devices[0].device.index = None;
    assert_eq!(names(&host(&[("a", 1)]), &by_sysfs), ["device_changed"]);
}

/// A host may have been started again, and then its devices and interfaces have other indices.
#[test]
fn after_a_gap_an_index_is_no_identity() {
    let device = |(name, index, guid): &(&str, u32, u64)| {
        let mut device = Device::named(*name);
        (device.index, device.node_guid) = (Some(*index), Guid::from(*guid));
        DeviceRecord::new(device)
    };
    let host = |devices: &[(&str, u32, u64)]| Inventory {
        devices: devices.iter().map(device).collect(),
        ..Inventory::default()
    };
    let found = |before: &Inventory, after: &Inventory| -> Vec<&str> {
        let found = differences_of(before, after, &BTreeSet::new(), Kept::Gap);
        found.iter().map(Difference::name).collect()
    };
    let said = |before: &[_], after: &[_]| found(&host(before), &host(after));
    assert_eq!(
        said(&[("b", 0, 2)], &[("a", 0, 1), ("b", 1, 2)]),
        ["device_came", "device_changed"]
    );
    let (one, other) = ([("a", 0, 1), ("b", 1, 2)], [("a", 1, 1), ("b", 0, 2)]);
    assert_eq!(said(&one, &other), ["device_changed"; 2]);
    assert_eq!(said(&[("a", 0, 1)], &[("a", 0, 9)]), ["device_replaced"]);
    assert_eq!(said(&[("a", 0, 1)], &[("b", 0, 1)]), ["device_renamed"]);
    // A GUID that several have, or none, shows nothing.
    assert_eq!(said(&[("a", 0, 0)], &[("b", 0, 0)]), ["device_went", "device_came"]);
    let two = [("a", 0, 1), ("c", 2, 1)];
    assert_eq!(said(&two, &[("b", 0, 1), ("c", 2, 1)]), ["device_went", "device_came"]);
    assert_eq!(said(&[("a", 0, 0)], &[("a", 3, 0)]), ["device_changed"]);
    let interfaces = |names: &[&str]| {
        let all = (2..).zip(names).map(|(index, name)| {
            Interface::new(NonZeroU32::new(index).unwrap(), (*name).to_owned())
        });
        Inventory { interfaces: Some(all.collect()), ..Inventory::default() }
    };
    let (one, other) = (interfaces(&["ib0", "ib1"]), interfaces(&["ib1", "ib0"]));
    assert_eq!(found(&one, &other), ["interface"; 4]);
    assert_eq!(names(&one, &other), ["interface_renamed"; 2]);
    // Those that go come first: what is there is said last.
    let comes = |own: &Difference| matches!(own, Difference::Interface { after: Some(_), .. });
    let fewer = interfaces(&["ib1"]);
    for (before, after, expected) in
        [(&one, &other, &[false, false, true, true][..]), (&one, &fewer, &[false, false, true])]
    {
        let found = differences_of(before, after, &BTreeSet::new(), Kept::Gap);
        assert_eq!(found.iter().map(comes).collect::<Vec<_>>(), expected);
    }
    // Functions without a GUID, at two addresses; and a device that has the name and cannot be listed.
    let at = |address: &str| {
        let mut own = host(&[("a", 0, 0)]);
        let pci = PciFunction::at(address.parse().unwrap());
        own.devices[0].hardware = Some(Hardware { pci: Some(pci), ..Hardware::default() });
        own
    };
    assert_eq!(found(&at("0000:01:00.2"), &at("0000:81:00.5")), ["device_replaced"]);
    assert_eq!(found(&at("0000:01:00.2"), &at("0000:01:00.2")), [""; 0]);
    let mut unlisted = host(&[("b", 0, 1)]);
    unlisted.unlisted.push(("a".into(), problem()));
    let said = found(&host(&[("a", 0, 1)]), &unlisted);
    assert_eq!(said, ["device_unlisted", "device_came", "host"]);
    // Rows of VLANs, which have one MAC address: the index is another's now.
    let vlans = |first: u32, names: [(u32, &str); 2]| {
        let mut own = table(&[(first, 1), (first + 1, 1)]);
        let rows = own.devices[0].gids.as_mut().unwrap().as_mut().unwrap();
        for (row, (index, name)) in rows.iter_mut().zip(names) {
            row.netdev = Some(Netdev::new(NonZeroU32::new(index).unwrap(), name));
        }
        own
    };
    let moved = differences_of(
        &vlans(2, [(5, "e.5"), (6, "e.6")]),
        &vlans(6, [(6, "e.5"), (7, "e.6")]),
        &BTreeSet::new(),
        Kept::Gap,
    );
    assert_eq!(moved.len(), 2);
    for own in &moved {
        let Difference::GidMoved { before, after, .. } = own else { panic!("{own:?}") };
        let name = |row: &GidRow| row.netdev.as_ref().unwrap().name.clone();
        assert_eq!(name(before), name(after));
    }
}

#[test]
fn an_interface_that_is_renamed_is_one_difference() {
    let named = |name: &str| {
        let mut own = table(&[(0, 1), (1, 2)]);
        let index = NonZeroU32::new(7).unwrap();
        let mut port = PortRecord::new(1);
        port.netdev = Ok(Some(Netdev::new(index, name)));
        own.devices[0].ports = vec![port];
        for row in own.devices[0].gids.as_mut().unwrap().as_mut().unwrap() {
            row.netdev = Some(Netdev::new(index, name));
        }
        own
    };
    let found = |kept| {
        let found = differences_of(&named("eth0"), &named("net0"), &BTreeSet::new(), kept);
        found.iter().map(Difference::name).collect::<Vec<_>>()
    };
    let (none, gone) = (BTreeSet::new(), BTreeSet::from([NonZeroU32::new(7).unwrap()]));
    assert_eq!(found(Kept::AllBut(&none)), ["interface_renamed"]);
    assert_eq!(found(Kept::Only(&gone)), ["interface_renamed"]);
    // Another interface has the index now, or nobody knows.
    let changed = ["port_netdev", "gid_changed", "gid_changed"];
    for kept in [Kept::AllBut(&gone), Kept::Only(&none), Kept::Alike, Kept::Gap] {
        assert_eq!(found(kept), changed, "{kept:?}");
    }
}
