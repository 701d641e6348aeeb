//! Every finding once, and what is no finding.

use std::path::PathBuf;

use super::finding::UNKNOWN;
use super::port::why_down;
use super::*;
use crate::choose::{Caveat, Family, Outcome, Reason, Why, ucx};
use crate::device::{Device, Node, NodeType};
use crate::driver::DriverId;
use crate::gid::{DEFAULT_PREFIX, Gid, GidEntry, GidRecord, GidType};
use crate::hardware::{Hardware, PciFunction, PcieLink};
use crate::host::Source;
use crate::inventory::{Answer, GidRow, LockedMemory, PortRecord, Problem, Setting};
use crate::netdev::{Interface, Netdev, Unfit};
use crate::port::{LinkLayer, Mtu, PhysState, PortAttributes, PortState, Speed, Width};
use core::num::NonZeroU32;
use std::net::IpAddr;

use harms::HARMS;

mod expect;
mod harms;
mod wording;

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
    record.hardware = Some(Hardware::default());
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
        netdev: Ok(Some(netdev())),
        pkeys: None,
        has_types: Some(true),
    }];
    let address = |text: &str| (text.parse::<IpAddr>().unwrap(), 24);
    Inventory {
        host: Some("node1".into()),
        modules: vec!["ib_core".into(), "ib_uverbs".into()],
        proprietary: Some(Vec::new()),
        locked_memory: Some(LockedMemory { limit: None, is_exempt: false }),
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
            vlan: None,
            vlan_on: None,
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

    /// Nothing of the device can be read.
    fn refuse(&mut self, problem: Problem) {
        let record = self.first();
        record.access = Some(Err(problem.clone()));
        record.gids = Some(Err(problem.clone()));
        let port = &mut record.ports[0];
        (port.attributes, port.guid) = (Some(Err(problem.clone())), Err(problem));
    }

    fn rows(&mut self) -> &mut Vec<GidRow> {
        self.first().gids.as_mut().unwrap().as_mut().unwrap()
    }

    fn set(&mut self, name: &str, value: &str) {
        self.settings.push(Setting::new(name, value, None));
    }

    fn infiniband(&mut self) {
        self.attributes().link_layer = LinkLayer::INFINIBAND;
        let port = &mut self.first().ports[0];
        (port.netdev, port.pkeys) = (Ok(None), Some(Ok(vec![(0, crate::pkey::PKey(0xffff))])));
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
    assert_eq!(names(&check(&inventory, expected)), ["nodes-unknown", "no-rdma-ucm-module"]);
    inventory.modules.push("rdma_ucm".into());
    (inventory.umad_access, inventory.rdma_cm_access) = (Some(Ok(())), Some(Ok(())));
    assert_eq!(check(&inventory, expected), []);
    inventory.umad_access = Some(Err(problem("/dev/infiniband/umad0: permission denied", 13)));
    inventory.rdma_cm_access = Some(Err(problem("/dev/infiniband/rdma_cm: no such file", 2)));
    assert_eq!(names(&check(&inventory, expected)), ["no-umad-node", "no-rdma-cm-node"]);
    assert_eq!(names(&check(&inventory, Expected::default())), [""; 0]);
    // That the process may open no more files says nothing of a node.
    inventory.umad_access = Some(Ok(()));
    inventory.rdma_cm_access = Some(Err(problem("/dev/infiniband/rdma_cm: too many", 24)));
    let found = check(&inventory, expected);
    assert_eq!(names(&found), ["nodes-unknown"]);
    assert!(found[0].is_of_unknown() && found[0].seen.contains("too many"), "{found:?}");
    // Without the module there is none. Where modules were not read, that is what is known.
    let modules = std::mem::take(&mut inventory.modules);
    assert_eq!(names(&check(&inventory, expected)), ["not-checked", "nodes-unknown"]);
    inventory.modules = modules.into_iter().filter(|own| own != "rdma_ucm").collect();
    assert_eq!(names(&check(&inventory, expected)), ["no-rdma-ucm-module"]);
    (inventory.umad_access, inventory.rdma_cm_access) = (None, None);
    inventory.modules.clear();
    assert_eq!(
        names(&check(&inventory, expected)),
        ["not-checked", "modules-unknown", "modules-unknown"]
    );
    assert_eq!(names(&check(&inventory, Expected::default())), ["not-checked"]);
}

/// Another address of the same kind would be of no more use.
#[test]
fn what_to_do_about_addresses_of_no_use() {
    for (why, said) in [
        (Unfit::Enslaved, "give an address to what takes all of the port's interface"),
        (Unfit::NoNeighbours, "let the port's interface ask for neighbours (ip link set arp on)"),
        (Unfit::NoLinkLocal, "give the port's interface a link-local IPv6 address"),
        (Unfit::Duplicate, "give the port's interface an IPv4 or a global IPv6 address"),
    ] {
        let mut inventory = good();
        let own = &mut inventory.interfaces.as_mut().unwrap()[0];
        let addresses = own.addresses.iter().map(|(address, _)| *address);
        own.unfit = addresses.filter(IpAddr::is_ipv4).map(|address| (address, why)).collect();
        assert!(!own.unfit.is_empty());
        let found = check(&inventory, Expected::default());
        let own = found.iter().find(|own| own.name == "only-link-local").expect("link-local only");
        assert!(own.advice.starts_with(said), "{own:?}");
    }
}

/// A device of soft RoCE on the bridge itself hears what arrives there.
#[test]
fn what_to_do_where_soft_roce_is_not_heard() {
    let mut inventory = good();
    inventory.devices[0].device.driver = Some(DriverId::RXE);
    let elsewhere = Netdev::new(NonZeroU32::new(99).unwrap(), "eth99");
    inventory.devices[0].ports[0].netdev = Ok(Some(elsewhere.clone()));
    // The default GIDs are of the port's own interface.
    let mut own = inventory.interfaces.as_ref().unwrap()[0].clone();
    (own.index, own.name) = (elsewhere.index, elsewhere.name.clone());
    own.addresses.retain(|(address, _)| address.is_ipv6());
    inventory.interfaces.as_mut().unwrap().push(own);
    for row in inventory.devices[0].gids.iter_mut().flatten().flatten() {
        if row.record.entry.gid().subnet_prefix() == DEFAULT_PREFIX {
            row.record.entry = row.record.entry.with_netdev_ifindex(Some(elsewhere.index));
            row.netdev = Some(elsewhere.clone());
        }
    }
    for is_up in [true, false] {
        inventory.interfaces.as_mut().unwrap()[0].is_up = is_up;
        let found = check(&inventory, Expected::default());
        let own = found.iter().find(|own| own.name == "only-link-local").expect("link-local only");
        let command = "(rdma link add NAME type rxe netdev eth0)";
        assert!(own.advice.contains(command), "{own:?}");
        assert_eq!(own.advice.starts_with("bring eth0 up"), !is_up, "{own:?}");
    }
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
    assert_eq!(names(&of(&|it| it.proprietary = None)), ["not-checked"]);
    assert_eq!(names(&of(&|it| it.kernel = None)), ["not-checked"]);
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
    let of = |inventory: &Inventory| check(inventory, Expected::default());
    assert_eq!(names(&of(&inventory)), ["node-unusable"]);
    let advice = |inventory: &Inventory| of(inventory)[0].advice.clone();
    assert!(advice(&inventory).contains("kernel's log"));
    // The kernel has nothing to say of a node that is another file.
    inventory.first().access = Some(Err(problem("mlx5_0: open: not the device's", 6)));
    assert!(advice(&inventory).contains("stale"));
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

/// A type that was not read may be the one that is missing. On an active port that has a finding of its own, if it matters.
#[test]
fn types_that_were_not_read_on_a_port_that_is_not_active() {
    let of = |state: PortState, gid_type: GidType| {
        let mut inventory = good();
        inventory.attributes().state = state;
        for row in inventory.rows() {
            row.record.entry = row.record.entry.with_type(gid_type);
        }
        let found = check(&inventory, Expected::default());
        let not_checked = found.iter().filter(|own| own.name == "not-checked");
        not_checked.map(|own| own.seen.clone()).collect::<Vec<_>>()
    };
    let said = ["not looked at: types of GIDs on ports that are not active"];
    assert_eq!(of(PortState::DOWN, GidType::UNNAMED), said);
    assert_eq!(of(PortState::ACTIVE, GidType::UNNAMED), [""; 0]);
    assert_eq!(of(PortState::DOWN, GidType::ROCE_V2), [""; 0]);
}

/// Two ports of a bond, of which the second has the GIDs of its addresses.
fn bonded() -> Inventory {
    let mut inventory = good();
    let bond0 = Netdev::new(NonZeroU32::new(9).unwrap(), "bond0");
    let all = inventory.interfaces.as_mut().unwrap();
    let mut own = all[0].clone();
    (own.index, own.name) = (bond0.index, bond0.name.clone());
    all.push(own);
    for row in inventory.second("mlx5_1").gids.as_mut().unwrap().as_mut().unwrap() {
        row.netdev = Some(bond0.clone());
    }
    inventory.rows().truncate(2);
    for row in inventory.rows() {
        row.netdev = Some(bond0.clone());
    }
    inventory
}

/// What is said of the first port of a bond, with a change.
fn waiting(change: fn(&mut Inventory)) -> Option<Finding> {
    let mut inventory = bonded();
    change(&mut inventory);
    let found = check(&inventory, Expected::default());
    let is_it =
        |own: &Finding| own.name == "only-link-local" && own.device.as_deref() == Some("mlx5_0");
    found.into_iter().find(is_it)
}

/// A member may keep an address, which is the port's own and of no use.
#[test]
fn a_member_of_a_bond_that_kept_an_address() {
    let keep = |it: &mut Inventory| {
        let eth0 = &mut it.interfaces.as_mut().unwrap()[0];
        eth0.unfit = eth0.addresses.iter().map(|(own, _)| (*own, Unfit::Enslaved)).collect();
        let kept = good().rows()[3].clone();
        it.rows().push(kept);
    };
    assert_eq!(waiting(keep).unwrap().severity, Severity::Note);
    // Where no other port has the bond's addresses, it is the bond that needs one, and not the member.
    let advice = waiting(|it| {
        it.devices.truncate(1);
        let eth0 = &mut it.interfaces.as_mut().unwrap()[0];
        eth0.unfit = eth0.addresses.iter().map(|(own, _)| (*own, Unfit::Enslaved)).collect();
        let mut all = vec![good().rows()[3].clone()];
        for (index, mut row) in (5..).zip(std::mem::take(it.rows())) {
            let entry = &row.record.entry;
            row.record.entry = GidEntry::new(1, index, entry.gid()).with_type(entry.gid_type());
            all.push(row);
        }
        *it.rows() = all;
    });
    let advice = advice.unwrap().advice;
    assert!(advice.starts_with("give bond0 an IPv4"), "{advice}");
    // Without the bond's rows nothing is above it.
    let advice = waiting(|it| {
        it.devices.truncate(1);
        let eth0 = &mut it.interfaces.as_mut().unwrap()[0];
        let addresses = eth0.addresses.iter().map(|(own, _)| *own);
        eth0.unfit = addresses.filter(IpAddr::is_ipv4).map(|own| (own, Unfit::Enslaved)).collect();
        *it.rows() = good().rows().clone();
    });
    let advice = advice.unwrap().advice;
    assert!(advice.starts_with("give an address to what takes all"), "{advice}");
}

/// Soft RoCE takes nothing that arrives at what is above its port's interface, but for VLANs.
#[test]
fn above_the_interface_of_soft_roce() {
    let mut inventory = bonded();
    inventory.devices.truncate(1);
    inventory.devices[0].device.driver = Some(DriverId::RXE);
    let names = |it: &Inventory| -> Vec<_> {
        check(it, Expected::default()).iter().map(|own| own.name).collect()
    };
    assert_eq!(names(&inventory), ["no-usable-gid"]);
    inventory.interfaces.as_mut().unwrap()[1].vlan = Some(7);
    assert_eq!(names(&inventory)[0], "only-link-local");
    let advice = &check(&inventory, Expected::default())[0].advice;
    let on_it = "if it is no VLAN, use a device on it (rdma link add NAME type rxe netdev bond0)";
    assert!(advice.starts_with("give bond0 an IPv4") && advice.contains(on_it), "{advice}");
}

/// The port of a member that is not active has the GID of the bond's MAC address only, and another port has the others.
#[test]
fn a_member_of_a_bond_that_waits_has_no_problem() {
    fn rows(it: &mut Inventory) -> &mut Vec<GidRow> {
        it.devices[1].gids.as_mut().unwrap().as_mut().unwrap()
    }
    let of = |change: fn(&mut Inventory)| waiting(change).map(|own| own.severity);
    let waits = Some(Severity::Note);
    assert_eq!(of(|_| ()), waits);
    // No other port has GIDs that can be used.
    let is_missing = Some(Severity::Problem);
    let down = |it: &mut Inventory| {
        it.devices[1].ports[0].attributes.as_mut().unwrap().as_mut().unwrap().0.state =
            PortState::DOWN;
    };
    assert_eq!(of(down), is_missing);
    assert_eq!(of(|it| rows(it).truncate(2)), is_missing);
    let of_link = |it: &mut Inventory| {
        let bond0 = &mut it.interfaces.as_mut().unwrap()[1];
        bond0.addresses.retain(|(address, _)| address.is_ipv6());
    };
    assert_eq!(of(of_link), is_missing);
    // A GID whose address is nowhere here is of no use, wherever it is.
    let without_address = |it: &mut Inventory| {
        rows(it).truncate(2);
        let mut other = it.rows()[0].clone();
        other.record = row(4, "::ffff:10.77.0.1", GidType::ROCE_V2, None).record;
        rows(it).push(other.clone());
        it.rows().push(other);
    };
    assert_eq!(of(without_address), is_missing);
    let mut inventory = bonded();
    without_address(&mut inventory);
    let all = "all GIDs that can be used here are link-local";
    assert!(check(&inventory, Expected::default()).iter().any(|own| own.seen == all));
    // Nor are those whose interface is down.
    assert_eq!(of(|it| it.interfaces.as_mut().unwrap()[1].is_up = false), None);
    let beyond = |it: &mut Inventory| {
        for row in rows(it) {
            row.record.entry =
                GidEntry::new(1, 300 + row.record.entry.index(), row.record.entry.gid())
                    .with_type(row.record.entry.gid_type());
        }
    };
    assert_eq!(of(beyond), is_missing);
    let other =
        |it: &mut Inventory| rows(it).iter_mut().for_each(|row| row.netdev = Some(netdev()));
    assert_eq!(of(other), is_missing);
    // Another port may have them, as nobody looked, or could.
    let is_unknown = Some(Severity::Warning);
    assert_eq!(of(|it| it.others.push(it.devices.pop().unwrap().device)), is_unknown);
    assert_eq!(of(|it| it.devices[1].gids = Some(Err(problem("no", 5)))), is_unknown);
    assert_eq!(
        of(|it| it.devices[1].ports[0].attributes = Some(Err(problem("no", 5)))),
        is_unknown
    );
    assert_eq!(of(|it| rows(it).iter_mut().for_each(|row| row.netdev = None)), is_unknown);
    assert_eq!(of(|it| it.rows()[0].netdev = None), waits);
    assert_eq!(of(|it| it.rows().iter_mut().for_each(|row| row.netdev = None)), is_unknown);
    assert_eq!(of(|it| it.first().ports[0].netdev = Err(problem("no", 5))), is_unknown);
    // What was not read is not what nobody has proven.
    let unread = waiting(|it| it.devices[1].gids = Some(Err(problem("no", 5)))).unwrap();
    let unproven = waiting(|it| rows(it).iter_mut().for_each(|row| row.netdev = None)).unwrap();
    assert!(unread.is_of_unknown() && unproven.is_of_unknown());
    assert!(unread.advice.starts_with("run uverbs check of the whole host"), "{unread:?}");
    assert!(unproven.advice.starts_with("uverbs choose --explain"), "{unproven:?}");
    // Where all are elsewhere, nothing is to be done here.
    let elsewhere = |it: &mut Inventory| {
        for row in it.rows() {
            (row.netdev, row.netdev_is_elsewhere) = (None, true);
        }
    };
    assert_eq!(of(elsewhere), None);
    // Nor do rows of other namespaces count.
    let with_others = |it: &mut Inventory| {
        let mut other = rows(it)[3].clone();
        (other.netdev, other.netdev_is_elsewhere) = (None, true);
        it.rows().push(other);
    };
    assert_eq!(of(with_others), waits);
    // The port's own interface is elsewhere: what is here is above it.
    assert_eq!(of(|it| it.first().ports[0].netdev = Ok(None)), waits);
    // One that has a GID of its own interface is no member.
    assert_eq!(of(|it| it.rows()[1].netdev = Some(netdev())), is_missing);
}

/// iWARP has no subnet manager, and one GID that is no interface's address.
#[test]
fn what_to_do_about_iwarp() {
    let mut inventory = good();
    inventory.first().device.node_type = NodeType::RNIC;
    inventory.first().device.protocol = Some("iw".to_owned());
    inventory.first().ports[0].netdev = Ok(None);
    inventory.rows().clear();
    let found = check(&inventory, Expected::default());
    let advice = |name: &str| {
        let own = found.iter().find(|own| own.name == name).unwrap();
        own.advice.clone()
    };
    assert!(advice("empty-gid-table").contains("the MAC address of the port's interface"));
    assert_eq!(advice("netdev-elsewhere"), "use the port where its interface is");
}

/// Of hardware, interfaces on the port's own are of use in another namespace; of soft RoCE hardly.
#[test]
fn a_port_whose_interface_is_elsewhere() {
    let is_advised = |wanted: &str, change: fn(&mut Inventory)| {
        let mut inventory = good();
        inventory.first().ports[0].netdev = Ok(None);
        change(&mut inventory);
        let found = check(&inventory, Expected::default());
        let own = found.iter().find(|own| own.name == "netdev-elsewhere").unwrap();
        assert!(own.advice.starts_with(wanted), "{own:?}");
    };
    is_advised("use a GID of an interface that is", |_| {});
    is_advised("use the port where its interface is", |it| {
        it.first().device.driver = Some(DriverId::RXE);
    });
    is_advised("bring up an interface that is", |it| {
        it.interfaces.as_mut().unwrap()[0].is_up = false;
    });
    is_advised("use the port where its interface is, or here", |it| {
        it.first().gids = Some(Err(problem("no", 5)));
    });
}

/// The health check for Slurm has the list once more, in shell. What may stay unknown does not keep a node there, and what
/// is expected and was not read is a problem.
#[test]
fn the_health_check_knows_what_is_unknown() {
    let script = include_str!("../packaging/slurm/health-check");
    let pattern = script.split_once("grep -E '^(note|warning): (").unwrap().1;
    let (names, rest) = pattern.split_once(')').unwrap();
    let left_out = ["gid-not-proven", "expect-unread"];
    let mut all: Vec<&str> = UNKNOWN.into_iter().filter(|own| !left_out.contains(own)).collect();
    all.push("[a-z-]*-unreadable");
    assert_eq!(names.split('|').collect::<Vec<_>>(), all);
    assert!(rest.starts_with("[: ]|^warning: only-link-local[: ]'"), "{rest}");
}

/// That a port has no interface anywhere is said where it was asked, and the port has no MTU and no table.
#[test]
fn a_port_of_no_vport_is_down() {
    const NONE: &str = "the port has no interface, as one that represents no vport";
    const PERHAPS: &str = "if it represents no vport, use another port";
    const USUAL: &str = "no link: is the interface up";
    let is_said = |wanted: &str, change: fn(&mut Inventory)| {
        let mut own = good();
        own.first().ports[0].netdev = Ok(None);
        *own.attributes() = PortAttributes {
            state: PortState::DOWN,
            phys_state: PhysState::DISABLED,
            active_mtu: Some(Mtu(0)),
            gid_tbl_len: 0,
            ..*own.attributes()
        };
        own.rows().clear();
        change(&mut own);
        let found = check(&own, Expected::default());
        let down = found.iter().find(|own| own.name == "port-down").expect("it is down");
        assert!(down.advice.starts_with(wanted), "{down:?}");
        // Nor is there a GID to be used.
        let elsewhere = found.iter().find(|own| own.name == "netdev-elsewhere");
        let usual = if wanted == PERHAPS { "if it has one, use" } else { "use the port where its" };
        assert!(elsewhere.is_none_or(|own| own.advice.starts_with(usual)), "{elsewhere:?}");
    };
    is_said(NONE, |_| {});
    // By sysfs no MTU is known.
    is_said(PERHAPS, |it| it.attributes().active_mtu = None);
    is_said(USUAL, |it| it.attributes().active_mtu = Some(Mtu(3)));
    is_said(USUAL, |it| it.attributes().gid_tbl_len = 8);
    // Nor what only netlink knows.
    is_said(PERHAPS, |it| it.has_netlink = false);
    is_said(PERHAPS, |it| it.first().ports[0].netdev = Err(problem("no", 5)));
    is_said(USUAL, |it| it.first().ports[0].netdev = Ok(Some(netdev())));
}
