//! Every finding once. A golden file has all sentences that operators read.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::port::why_down;
use super::*;
use crate::choose::{Caveat, Family, Outcome, Reason, Why, ucx};
use crate::device::{Device, Node};
use crate::driver::DriverId;
use crate::gid::{Gid, GidEntry, GidRecord, GidType};
use crate::hardware::{Hardware, PciFunction, PcieLink};
use crate::host::Source;
use crate::inventory::{Answer, GidRow, LockedMemory, PortRecord, Problem, Setting};
use crate::netdev::{Interface, Netdev, Unfit};
use crate::port::{LinkLayer, Mtu, PhysState, PortAttributes, PortState, Speed, Width};
use core::num::NonZeroU32;
use std::net::IpAddr;

fn problem(text: &str, errno: i32) -> Problem {
    Problem { text: text.to_owned(), errno }
}

fn netdev() -> Netdev {
    Netdev { index: NonZeroU32::MIN, name: "eth0".into() }
}

fn row(index: u32, gid: &str, gid_type: GidType, netdev: Option<Netdev>) -> GidRow {
    let gid = Gid::from(gid.parse::<std::net::Ipv6Addr>().unwrap());
    let ifindex = Some(NonZeroU32::MIN).filter(|_| gid_type != GidType::IB);
    let entry = GidEntry::new(1, index, gid).with_type(gid_type).with_netdev_ifindex(ifindex);
    GidRow { netdev, ..GidRow::from(GidRecord::from(entry)) }
}

/// The same row of another port.
fn on_port(row: GidRow, port: u32) -> GidRow {
    let entry = &row.record.entry;
    let ifindex = entry.netdev_ifindex();
    let entry = GidEntry::new(port, entry.index(), entry.gid())
        .with_type(entry.gid_type())
        .with_netdev_ifindex(ifindex);
    GidRow { record: entry.into(), ..row }
}

/// A healthy host with one RoCE port.
fn good() -> Inventory {
    let mut device = Device::named("mlx5_0");
    device.index = Some(0);
    device.driver = Some(DriverId::MLX5);
    let path = PathBuf::from("/dev/infiniband/uverbs0");
    device.node = Some(Node { name: "uverbs0".into(), path, number: 1 });
    let mut record = DeviceRecord::new(device);
    record.node_mode = Some(0o20_666);
    record.access = Some(Ok(()));
    record.gids = Some(Ok(vec![
        row(0, "fe80::1", GidType::ROCE_V1, Some(netdev())),
        row(1, "fe80::1", GidType::ROCE_V2, Some(netdev())),
        row(2, "::ffff:10.0.0.1", GidType::ROCE_V1, Some(netdev())),
        row(3, "::ffff:10.0.0.1", GidType::ROCE_V2, Some(netdev())),
    ]));
    record.ports = vec![PortRecord {
        number: 1,
        attributes: Some(Ok((
            PortAttributes {
                state: PortState::ACTIVE,
                phys_state: PhysState::LINK_UP,
                link_layer: LinkLayer::ETHERNET,
                gid_tbl_len: 255,
                max_mtu: Some(Mtu(5)),
                active_mtu: Some(Mtu(3)),
                active_width: Some(Width(2)),
                active_speed: Some(Speed::EDR),
                ..PortAttributes::default()
            },
            Source::Ioctl,
        ))),
        effective: None,
        guid: Ok(None),
        netdev: Some(netdev()),
        pkeys: None,
        has_types: Some(true),
    }];
    let address = |text: &str| (text.parse::<IpAddr>().unwrap(), 24);
    Inventory {
        host: Some("node1".into()),
        modules: vec!["ib_core".into(), "ib_uverbs".into()],
        shares_namespaces: Some(true),
        has_netlink: true,
        devices: vec![record],
        interfaces: Some(vec![Interface {
            index: NonZeroU32::MIN,
            name: "eth0".into(),
            is_up: true,
            is_lower_up: true,
            mtu: 1500,
            mac: None,
            port_guid: None,
            addresses: vec![address("10.0.0.1"), address("fe80::1")],
            unfit: Vec::new(),
        }]),
        ..Inventory::default()
    }
}

impl Inventory {
    fn first(&mut self) -> &mut DeviceRecord {
        &mut self.devices[0]
    }

    fn attributes(&mut self) -> &mut PortAttributes {
        &mut self.first().ports[0].attributes.as_mut().unwrap().as_mut().unwrap().0
    }

    fn rows(&mut self) -> &mut Vec<GidRow> {
        self.first().gids.as_mut().unwrap().as_mut().unwrap()
    }

    fn set(&mut self, name: &str, value: &str) {
        self.settings.push(Setting::new(name, value, None));
    }

    fn infiniband(&mut self) {
        self.attributes().link_layer = LinkLayer::INFINIBAND;
        self.first().ports[0].netdev = None;
        *self.rows() = vec![row(0, "fe80::2", GidType::IB, None)];
    }

    fn second(&mut self, name: &str) -> &mut DeviceRecord {
        let mut other = self.devices[0].clone();
        other.device.name = name.into();
        other.device.index = u32::try_from(self.devices.len()).ok();
        self.devices.push(other);
        self.devices.last_mut().unwrap()
    }
}

/// Findings, each with the change to a healthy host that causes it.
type Harm = (&'static [&'static str], fn(&mut Inventory));

const HARMS: &[Harm] = &[
    (&["host-unreadable"], |it| it.problems.push(problem("host: ask RDMA netlink: no", 5))),
    (&["no-rdma-module"], |it| {
        it.devices.clear();
        it.absences.push(Absence::NoModule);
    }),
    (&["no-device"], |it| {
        it.devices.clear();
        it.absences.push(Absence::NoDevice);
    }),
    (&["device-elsewhere"], |it| {
        let (device, node) = ("mlx5_1".into(), "uverbs1".into());
        it.absences.push(Absence::OtherNamespace { device, node });
    }),
    (&["no-nodes"], |it| it.absences.push(Absence::NoNodes { folder: "/dev/infiniband".into() })),
    (&["netns-exclusive"], |it| it.shares_namespaces = Some(false)),
    (&["not-checked"], |it| it.interfaces = None),
    (&["not-checked", "gid-not-proven"], |it| it.has_netlink = false),
    (&["not-checked"], |it| it.others.push(Device::named("mlx5_9"))),
    (&["port-guid-unreadable"], |it| {
        it.first().ports[0].guid = Err(problem("mlx5_0: query GID 0 of port 1: no", 5));
    }),
    (&["port-rate-unreadable"], |it| {
        it.first().ports[0].effective = Some(Err(problem("mlx5_0: query speed of port 1: no", 5)));
    }),
    (&["no-uverbs-module", "no-node"], |it| {
        it.modules.pop();
        it.first().device.node = None;
    }),
    (&["node-missing"], |it| {
        it.first().node_mode = None;
        it.first().access = Some(Err(problem("no", 2)));
    }),
    (&["not-checked", "node-missing"], |it| {
        let record = it.first();
        (record.node_mode, record.node_is_missing, record.access) = (None, true, None);
    }),
    // What could not be looked at is not missing.
    (&["not-checked"], |it| {
        let record = it.first();
        (record.node_mode, record.access) = (None, None);
    }),
    (&["not-checked"], |it| {
        it.modules.pop();
        let record = it.first();
        (record.device.node, record.device.node_is_unread) = (None, true);
        record.access = Some(Err(problem("mlx5_0: get context: not known", 2)));
    }),
    (&["node-forbidden"], |it| {
        it.first().node_mode = Some(0o20_600);
        it.first().access = Some(Err(problem("no", 13)));
    }),
    (&["node-not-permitted"], |it| it.first().access = Some(Err(problem("no", 1)))),
    (&["node-unusable"], |it| {
        it.first().access = Some(Err(problem("mlx5_0: get context: temporarily refused", 11)));
    }),
    (&["gid-not-proven"], |it| it.rows().iter_mut().for_each(|row| row.netdev = None)),
    (&["gid-not-proven"], |it| {
        let mut row = row(0, "::ffff:10.0.0.1", GidType::ROCE_V2, None);
        row.record = GidRecord::new(row.record.entry.with_netdev_ifindex(None), Source::Ioctl)
            .with_netdev_unread(true);
        *it.rows() = vec![row];
    }),
    (&["driver-unknown"], |it| it.first().device.driver = Some(DriverId(77))),
    (&["gid-table-unreadable"], |it| {
        it.first().gids = Some(Err(problem("mlx5_0: query GID table: the device is gone", 5)));
    }),
    (&["port-unreadable"], |it| {
        it.first().ports[0].attributes = Some(Err(problem("mlx5_0: query port 1: no", 5)));
    }),
    (&["port-down"], |it| {
        it.attributes().state = PortState::DOWN;
        it.attributes().phys_state = PhysState::DISABLED;
    }),
    (&["port-down"], |it| {
        it.infiniband();
        it.attributes().state = PortState::INIT;
        it.first().ports[0].pkeys = Some(Ok(vec![(0, crate::pkey::PKey(0xffff))]));
    }),
    (&["no-pkey"], |it| {
        it.infiniband();
        it.first().ports[0].pkeys = Some(Ok(Vec::new()));
    }),
    (&["pkeys-unreadable"], |it| {
        it.infiniband();
        it.first().ports[0].pkeys = Some(Err(problem("mlx5_0: query P_Keys of port 1: no", 5)));
    }),
    (&["netdev-elsewhere"], |it| it.first().ports[0].netdev = None),
    (&["netdev-down"], |it| it.interfaces.as_mut().unwrap()[0].is_up = false),
    (&["netdev-down"], |it| {
        it.interfaces.as_mut().unwrap()[0].is_lower_up = false;
    }),
    (&["mtu-mismatch"], |it| it.interfaces.as_mut().unwrap()[0].mtu = 9000),
    (&["no-gid-table"], |it| {
        it.rows().clear();
        it.attributes().gid_tbl_len = 0;
    }),
    (&["empty-gid-table"], |it| it.rows().clear()),
    (&["empty-gid-table"], |it| {
        it.infiniband();
        it.rows().clear();
    }),
    (&["only-link-local", "takes-other-gid"], |it| it.rows().truncate(2)),
    (&["no-roce-v2"], |it| {
        it.rows().retain(|row| row.record.entry.gid_type() == GidType::ROCE_V1);
    }),
    (&["too-many-ports"], |it| {
        for number in 1..=33 {
            it.second(&format!("mlx5_{number}"));
        }
    }),
    (&["too-many-ports"], |it| {
        it.first().device.index = None;
        for number in 1..=33 {
            it.second(&format!("mlx5_{number}")).device.index = None;
        }
    }),
    (&["too-many-ports"], |it| {
        for number in 1..=16 {
            let other = it.second(&format!("mlx5_{number}"));
            let port = PortRecord { number: 2, ..other.ports[0].clone() };
            other.ports.push(port);
            let rows = other.gids.as_mut().unwrap().as_mut().unwrap();
            rows.extend(rows.clone().into_iter().map(|own| on_port(own, 2)));
        }
    }),
    // One of them could not be read.
    (&["gid-table-unreadable", "too-many-ports"], |it| {
        for number in 1..=33 {
            it.second(&format!("mlx5_{number}"));
        }
        it.first().gids = Some(Err(problem("mlx5_0: query GID table: the device is gone", 5)));
    }),
    (&["gid-table-unreadable", "too-many-ports"], |it| {
        for number in 1..=32 {
            it.second(&format!("mlx5_{number}"));
        }
        it.first().gids = Some(Err(problem("mlx5_0: query GID table: the device is gone", 5)));
    }),
    (&["address-gone"], |it| {
        it.rows().push(row(4, "::ffff:10.0.0.4", GidType::ROCE_V2, Some(netdev())));
    }),
    (&["foreign-gids", "takes-other-gid", "takes-other-gid"], |it| {
        let row = row(0, "::ffff:10.9.9.9", GidType::ROCE_V2, None);
        it.rows().insert(0, GidRow { netdev_is_elsewhere: true, ..row });
        it.rows().remove(1);
    }),
    (&["foreign-gids", "no-usable-gid"], |it| {
        for row in it.rows() {
            (row.netdev, row.netdev_is_elsewhere) = (None, true);
        }
    }),
    // They may be those of an address that has gone.
    (&["no-usable-gid"], |it| {
        for row in it.rows() {
            row.netdev = None;
        }
        it.interfaces.as_mut().unwrap()[0].addresses.clear();
    }),
    (&["right-gid-unknown"], |it| {
        let own = &mut it.rows()[3];
        let entry = own.record.entry.with_type(GidType::UNNAMED);
        (own.record, own.type_is_hidden) = (GidRecord::from(entry).with_type_unread(true), true);
        it.rows().retain(|own| own.type_is_hidden);
    }),
    (&["narrow-link"], |it| {
        let other = it.second("mlx5_1");
        other.ports[0].attributes.as_mut().unwrap().as_mut().unwrap().0.active_width =
            Some(Width(1));
    }),
    (&["pcie-narrow"], |it| {
        let mut function = PciFunction::at("0000:17:00.0".parse().unwrap());
        function.link = Some(PcieLink { speed: 160, width: 8 });
        function.max_link = Some(PcieLink { speed: 160, width: 16 });
        let mut hardware = Hardware { pci: Some(function.clone()), ..Hardware::default() };
        it.first().hardware = Some(hardware.clone());
        // It is said of the function, not of each that shares it.
        let other = it.second("mlx5_1");
        function.physical = Some(function.address);
        hardware.pci = Some(function.clone());
        other.hardware = Some(hardware.clone());
        let other = it.second("mlx5_2");
        (function.physical, function.has_sub_function) = (None, true);
        hardware.pci = Some(function);
        other.hardware = Some(hardware);
    }),
    (&["takes-no-gid"], |it| {
        it.rows().remove(0);
    }),
    (&["pinned-index-empty", "pinned-index-empty"], |it| {
        it.set("NCCL_IB_GID_INDEX", "9");
        it.set("UCX_IB_GID_INDEX", "9");
    }),
    (&["pinned-index-outside"], |it| it.set("NVSHMEM_IB_GID_INDEX", "255")),
    (&["pinned-index-other-type"], |it| it.set("NCCL_IB_GID_INDEX", "2")),
    (&["pinned-index-other"], |it| it.set("UCX_IB_GID_INDEX", "1")),
    (&["takes-no-gid"], |it| it.set("UCX_IB_GID_INDEX", "x")),
    (&["list-leaves-none"], |it| it.set("NCCL_IB_HCA", " mlx5_0")),
    (&["settings-unreadable"], |it| {
        it.set("NCCL_IB_GID_INDEX", "9");
        let text =
            "host: NCCL's settings in /etc/nccl.conf were not read: it is longer than 64 KiB";
        it.unread_settings.push(problem(text, 27));
    }),
    (&["other-transport"], |it| it.set("NCCL_NET_PLUGIN", "ofi")),
    (&["different-indices"], |it| {
        let rows = it.second("mlx5_1").gids.as_mut().unwrap().as_mut().unwrap();
        rows.remove(2);
        rows.remove(2);
        rows.push(row(6, "::ffff:10.0.0.1", GidType::ROCE_V2, Some(netdev())));
    }),
    (&["locked-memory-low"], |it| {
        it.locked_memory = Some(LockedMemory { limit: Some(8 << 20), is_exempt: false });
    }),
    (&["no-peer-memory"], |it| {
        it.modules.push("nvidia".into());
        it.proprietary = Some(vec!["nvidia".into()]);
    }),
    (&["no-peer-memory"], |it| {
        it.modules.push("nvidia".into());
        it.proprietary = Some(Vec::new());
        it.kernel = Some("5.10.0-30-amd64".into());
    }),
    // Of neither it is proven that its interface is here.
    (&["gid-not-proven", "gid-not-proven", "pinned-index-empty", "different-indices"], |it| {
        let rows = it.second("mlx5_1").gids.as_mut().unwrap().as_mut().unwrap();
        rows.remove(2);
        rows.remove(2);
        rows.push(row(6, "::ffff:10.0.0.1", GidType::ROCE_V2, None));
        for record in &mut it.devices {
            for row in record.gids.as_mut().unwrap().as_mut().unwrap() {
                row.netdev = None;
            }
        }
        it.set("NCCL_IB_GID_INDEX", "3");
    }),
];

fn names(findings: &[Finding]) -> Vec<&str> {
    findings.iter().map(|finding| finding.name).collect()
}

#[test]
fn a_good_host_has_no_finding() {
    assert_eq!(check(&good(), Expected::default()), []);
    // A host without a device and without a reason.
    assert_eq!(names(&check(&Inventory::default(), Expected::default())), ["no-device"]);
}

#[test]
fn every_harm_is_found_and_nothing_else() {
    for (place, (expected, harm)) in HARMS.iter().enumerate() {
        let mut inventory = good();
        harm(&mut inventory);
        let found = check(&inventory, Expected::default());
        assert_eq!(names(&found), *expected, "harm {place}: {found:#?}");
    }
    let expected = Expected { link_layer: Some(LinkLayer::INFINIBAND), ..Expected::default() };
    assert_eq!(names(&check(&good(), expected)), ["other-link-layer"]);
}

/// Only what is asked for is missed, and only what was looked for is missing.
#[test]
fn modules_that_programs_need() {
    let expected = Expected { umad: true, rdma_cm: true, ..Expected::default() };
    assert_eq!(names(&check(&good(), expected)), ["no-umad-module", "no-rdma-ucm-module"]);
    let mut inventory = good();
    inventory.modules.push("ib_umad".into());
    assert_eq!(names(&check(&inventory, expected)), ["no-rdma-ucm-module"]);
    inventory.modules.push("rdma_ucm".into());
    assert_eq!(check(&inventory, expected), []);
    inventory.modules.clear();
    assert_eq!(names(&check(&inventory, expected)), ["modules-unknown", "modules-unknown"]);
    assert_eq!(check(&inventory, Expected::default()), []);
}

/// Nothing is said of memory and GPUs where it may be well, or where there is no RDMA.
#[test]
fn what_may_be_well_is_no_finding() {
    let of = |change: &dyn Fn(&mut Inventory)| {
        let mut inventory = good();
        inventory.kernel = Some("6.12.0".into());
        inventory.modules.push("nvidia".into());
        inventory.proprietary = Some(Vec::new());
        inventory.locked_memory = Some(LockedMemory { limit: Some(64 << 20), is_exempt: false });
        change(&mut inventory);
        check(&inventory, Expected::default())
    };
    let limit = |limit, is_exempt| Some(LockedMemory { limit, is_exempt });
    assert_eq!(of(&|_| ()), []);
    assert_eq!(of(&|it| it.locked_memory = limit(Some(65_536), true)), []);
    assert_eq!(of(&|it| it.locked_memory = limit(None, false)), []);
    assert_eq!(of(&|it| it.proprietary = None), []);
    assert_eq!(of(&|it| it.kernel = None), []);
    let proprietary = || Some(vec!["nvidia".to_owned()]);
    for peer in ["nvidia_peermem", "nv_peer_mem"] {
        let loaded = |it: &mut Inventory| {
            it.proprietary = proprietary();
            it.modules.push(peer.into());
        };
        assert_eq!(of(&loaded), []);
    }
    let alone = |it: &mut Inventory| {
        it.locked_memory = limit(Some(0), false);
        it.proprietary = proprietary();
        it.devices.clear();
    };
    assert_eq!(names(&of(&alone)), ["no-device"]);
}

/// A device that cannot be read at all has one finding, not one for each of its parts.
#[test]
fn a_device_that_cannot_be_read_is_told_once() {
    let mut inventory = good();
    let bad = problem("mlx5_0: get context: the device is gone", 5);
    let record = inventory.first();
    record.access = Some(Err(bad.clone()));
    record.gids = Some(Err(bad.clone()));
    record.ports[0].attributes = Some(Answer::Err(bad));
    assert_eq!(names(&check(&inventory, Expected::default())), ["node-unusable"]);
}

/// What was left out on request is not judged: no device was opened.
#[test]
fn what_was_not_tried_is_no_finding() {
    let mut inventory = good();
    inventory.first().access = None;
    inventory.first().device.driver = None;
    assert_eq!(names(&check(&inventory, Expected::default())), ["not-checked"]);
    // Without devices nothing is left out.
    inventory.devices.clear();
    assert_eq!(names(&check(&inventory, Expected::default())), ["no-device"]);
    inventory.others.push(Device::named("mlx5_9"));
    assert_eq!(names(&check(&inventory, Expected::default())), ["not-checked"]);
}

/// The reasons for which rows are taken or refused.
fn tell_rows(text: &mut String) {
    text.push_str("\n# Rows\n");
    let name = || "eth0".to_owned();
    let reasons = [
        Reason::Recommended,
        Reason::Pinned,
        Reason::LowestFit,
        Reason::Untyped,
        Reason::StartFits,
        Reason::Start,
        Reason::FamilyAlone(Family::V4),
        Reason::DefaultIndex,
        Reason::Routable,
        Reason::FirstOf(ucx::Class::V2Ipv4),
        Reason::FirstOf(ucx::Class::V2Ipv6),
        Reason::FirstOf(ucx::Class::V2LinkLocal),
        Reason::FirstOf(ucx::Class::V1Ipv4),
        Reason::FirstOf(ucx::Class::V1Ipv6),
        Reason::FirstOf(ucx::Class::V1LinkLocal),
        Reason::LastResort,
        Reason::Unlooked,
        Reason::LowerFits(3),
        Reason::OtherFamily(Family::V4),
        Reason::OtherFamily(Family::V6),
        Reason::OutOfRange,
        Reason::NotValid,
        Reason::OtherVersion(2),
        Reason::OtherVersion(3),
        Reason::TypeHidden,
        Reason::Below(ucx::Class::V2Ipv4),
        Reason::NoLowHalf,
        Reason::NoAddressHandle,
        Reason::OutOfSubnets,
        Reason::V1Below(3),
        Reason::LinkLocalBelow(3),
        Reason::V6Below(3),
        Reason::UpperBelow(3),
        Reason::UnprovenBelow(3),
        Reason::LessKnownBelow(3),
        Reason::PerhapsBelow(3),
        Reason::Foreign,
        Reason::WithoutAddress,
        Reason::TypeUnread,
        Reason::InterfaceUnread,
        Reason::InterfaceDown(name()),
        Reason::AddressGone(name()),
        Reason::Unfit(Unfit::FarEnd),
        Reason::Unfit(Unfit::Duplicate),
        Reason::Loopback,
        Reason::BeyondByte,
        Reason::Unwanted("type"),
        Reason::PortNotActive(PortState::DOWN),
    ];
    for reason in reasons {
        let _ = writeln!(text, "{reason}");
    }
}

/// Everything that operators read: every finding, reason, caveat and refusal.
fn wording() -> String {
    let mut text = String::from(
        "All sentences that `uverbs check` and `uverbs choose` have for operators. A test compares them;\n\
         UPDATE_WORDING=1 cargo test --lib wording writes them again.\n\n# Findings\n",
    );
    let layer = Expected { link_layer: Some(LinkLayer::INFINIBAND), ..Expected::default() };
    let needs = Expected { umad: true, rdma_cm: true, ..Expected::default() };
    let bare = Inventory { modules: Vec::new(), ..good() };
    let harmed = HARMS.iter().map(|(_, harm)| {
        let mut inventory = good();
        harm(&mut inventory);
        check(&inventory, Expected::default())
    });
    for finding in harmed
        .flatten()
        .chain(check(&good(), layer))
        .chain(check(&good(), needs))
        .chain(check(&bare, needs))
    {
        let Finding { name, severity, seen, advice, .. } = finding;
        let line = format!("{severity}: {name}: {seen}\n    {advice}\n");
        if !text.contains(&line) {
            text += &line;
        }
    }
    text += "\n# Ports that are down\n";
    for layer in [LinkLayer::ETHERNET, LinkLayer::INFINIBAND] {
        for phys_state in 0..9 {
            let attributes = PortAttributes {
                state: PortState::INIT,
                phys_state: PhysState(phys_state),
                link_layer: layer,
                ..PortAttributes::default()
            };
            let (seen, advice) = why_down(&attributes);
            let _ = writeln!(text, "{layer}: {seen}\n    {advice}");
        }
    }
    tell_rows(&mut text);
    text += "\n# Reasons against a row that is taken\n";
    for caveat in [
        Caveat::LinkLocal,
        Caveat::V1,
        Caveat::Foreign,
        Caveat::WithoutAddress,
        Caveat::TypeUnread,
        Caveat::Unproven,
        Caveat::Unknown,
        Caveat::BetterUnknown(3),
        Caveat::Down,
        Caveat::AddressGone,
        Caveat::Unfit(Unfit::FarEnd),
        Caveat::BeyondByte,
    ] {
        let _ = writeln!(text, "{caveat}");
    }
    text += "\n# Ports\n";
    let whys = [
        Why::Disabled,
        Why::NotActive(PortState::INIT),
        Why::LinkLayer(LinkLayer::UNSPECIFIED),
        Why::NotListed("NCCL_IB_HCA"),
        Why::NoTable,
        Why::EmptyTable,
        Why::EmptyFirst(0),
        Why::OutsideFirst(255),
        Why::NoLowHalf(0),
        Why::UnreadableType(0),
        Why::NoTypes,
        Why::NoRoom,
        Why::Overrun,
        Why::BadValue("UCX_IB_GID_INDEX"),
        Why::RangeCrash,
        Why::IndexAndSubnets,
        Why::NoRow,
        Why::NotKnown(3),
        Why::LastEmpty,
    ];
    for why in whys {
        let _ = writeln!(text, "{}", Outcome::Ignored(why));
    }
    for outcome in [
        Outcome::Taken(3),
        Outcome::Empty(3),
        Outcome::Outside(255),
        Outcome::Fails(Why::NoRow),
        Outcome::ByLid,
    ] {
        let _ = writeln!(text, "{outcome}");
    }
    text
}

#[test]
fn wording_is_as_it_was_agreed() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/wording.txt");
    if std::env::var_os("UPDATE_WORDING").is_some() {
        std::fs::write(&path, wording()).unwrap();
    }
    assert_eq!(std::fs::read_to_string(path).unwrap_or_default(), wording());
}
