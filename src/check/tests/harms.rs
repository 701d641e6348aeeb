//! What can be wrong with a host: each finding, with a change that causes it.

use super::*;

/// Findings, each with the change to a healthy host that causes it.
pub(super) type Harm = (&'static [&'static str], fn(&mut Inventory));

fn function() -> PciFunction {
    PciFunction::at("0000:17:00.0".parse().unwrap())
}

/// One whose link could be wider.
fn narrow() -> PciFunction {
    let link = |width| Some(PcieLink { speed: 160, width });
    PciFunction { link: link(8), max_link: link(16), ..function() }
}

pub(super) const HARMS: &[Harm] = &[
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
    (&["device-elsewhere"], |it| {
        let device = it.first().device.name.clone();
        it.absences.push(Absence::OtherNamespace { device, node: "uverbs7".into() });
    }),
    (&["no-nodes"], |it| it.absences.push(Absence::NoNodes { folder: "/dev/infiniband".into() })),
    (&["netns-exclusive"], |it| it.shares_namespaces = Some(false)),
    (&["not-checked"], |it| it.interfaces = None),
    (&["not-checked", "gid-not-proven"], |it| it.has_netlink = false),
    (&["not-checked"], |it| it.others.push(Device::named("mlx5_9"))),
    (&["device-unreadable", "not-checked"], |it| {
        it.unlisted.push(("mlx5_9".into(), problem("no", 5)));
    }),
    (&["not-checked"], |it| it.first().hardware = None),
    (&["not-checked"], |it| it.first().hardware.as_mut().unwrap().board_is_unread = true),
    (&["not-checked"], |it| {
        it.first().hardware.as_mut().unwrap().board_id = Some("MT_0000000224".into());
        it.first().device.driver = None;
    }),
    // Neither could the width of a port be read, or is known to this version.
    (&["not-checked"], |it| {
        it.first().hardware.as_mut().unwrap().board_id = Some("MT_0000000224".into());
        it.attributes().active_width = None;
    }),
    (&["not-checked"], |it| {
        it.first().hardware.as_mut().unwrap().board_id = Some("MT_0000000224".into());
        it.attributes().active_width = Some(Width(99));
    }),
    (&["not-checked"], |it| it.attributes().active_mtu = None),
    (&["not-checked"], |it| it.attributes().active_mtu = Some(Mtu(99))),
    (&["not-checked"], |it| it.modules.clear()),
    (&["not-checked"], |it| it.proprietary = None),
    (&["not-checked"], |it| {
        it.modules.push("nvidia".into());
        it.kernel = None;
    }),
    (&["not-checked"], |it| it.locked_memory = None),
    (&["port-guid-unreadable"], |it| {
        it.first().ports[0].guid = Err(problem("mlx5_0: query GID 0 of port 1: no", 5));
    }),
    (&["port-netdev-unreadable"], |it| {
        let text = "mlx5_0: find the network interface of port 1: no";
        it.first().ports[0].netdev = Err(problem(text, 5));
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
    (&["node-forbidden"], |it| it.first().access = Some(Err(problem("no", 13)))),
    // Its folder forbids to look at it.
    (&["node-forbidden"], |it| {
        it.first().node_mode = None;
        it.first().access = Some(Err(problem("no", 13)));
    }),
    (&["node-forbidden"], |it| {
        it.first().node_is_in_nodev = true;
        it.first().access = Some(Err(problem("no", 13)));
    }),
    // It was opened, but only for reading.
    (&["node-forbidden"], |it| it.first().node_is_read_only = true),
    (&["node-forbidden"], |it| {
        it.first().node_is_read_only = true;
        it.first().access = Some(Err(problem("mlx5_0: get context: no known driver id", 22)));
    }),
    (&["node-not-permitted"], |it| it.first().access = Some(Err(problem("no", 1)))),
    (&["node-unusable"], |it| {
        it.first().access = Some(Err(problem("mlx5_0: get context: refused", 11)));
    }),
    (&["not-checked"], |it| it.first().hardware.as_mut().unwrap().pci_is_unread = true),
    (&["not-checked"], |it| {
        it.first().hardware.as_mut().unwrap().pci = Some(function());
    }),
    (&["not-checked"], |it| {
        let link = Some(PcieLink { speed: 160, width: 8 });
        let function = PciFunction { link, ..function() };
        it.first().hardware.as_mut().unwrap().pci = Some(function);
    }),
    // A virtual machine does not see the physical function.
    (&["not-checked"], |it| {
        let function = PciFunction { id: Some((0x15b3, 0x101e)), ..function() };
        it.first().hardware.as_mut().unwrap().pci = Some(function);
    }),
    // What the process itself was short of.
    (&["node-not-opened"], |it| {
        let text = "mlx5_0: open /dev/infiniband/uverbs0: EMFILE: Too many open files (errno 24)";
        it.first().access = Some(Err(problem(text, 24)));
    }),
    (&["ioctl-unknown"], |it| {
        let text = "mlx5_0: query GID table: the kernel does not know this request (errno 93)";
        it.first().access = Some(Err(problem(text, 93)));
    }),
    (&["driver-unknown"], |it| {
        let text = "mlx5_0: get context: no known driver id is accepted (errno 22)";
        it.first().access = Some(Err(problem(text, 22)));
    }),
    // Nor is the device checked of which nothing was read for such a reason.
    (&["ioctl-unknown", "gid-table-unreadable"], |it| {
        it.refuse(problem("mlx5_0: get context: the kernel does not know this request", 93));
    }),
    (&["not-checked", "gid-table-unreadable"], |it| {
        it.refuse(problem("mlx5_0: open: which node it has could not be read", 5));
        let device = &mut it.first().device;
        (device.node, device.node_is_unread) = (None, true);
    }),
    // What is said of the node is not said again.
    (&["node-forbidden"], |it| it.refuse(problem("mlx5_0: open: EACCES", 13))),
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
    }),
    (&["no-pkey"], |it| {
        it.infiniband();
        it.first().ports[0].pkeys = Some(Ok(Vec::new()));
    }),
    (&["pkeys-unreadable"], |it| {
        it.infiniband();
        it.first().ports[0].pkeys = Some(Err(problem("mlx5_0: query P_Keys of port 1: no", 5)));
    }),
    (&["netdev-elsewhere"], |it| it.first().ports[0].netdev = Ok(None)),
    // It came or went while the host was read.
    (&["not-checked"], |it| {
        let index = NonZeroU32::new(77).unwrap();
        it.first().ports[0].netdev = Ok(Some(Netdev { index, name: "eth7".into() }));
    }),
    (&["netdev-down"], |it| it.interfaces.as_mut().unwrap()[0].is_up = false),
    (&["netdev-down"], |it| {
        it.interfaces.as_mut().unwrap()[0].is_lower_up = false;
    }),
    (&["mtu-mismatch"], |it| it.interfaces.as_mut().unwrap()[0].mtu = 9000),
    // It may be the greatest that the port is capable of.
    (&["not-checked"], |it| {
        it.interfaces.as_mut().unwrap()[0].mtu = 9000;
        it.attributes().max_mtu = None;
    }),
    (&["not-checked", "mtu-mismatch"], |it| {
        it.interfaces.as_mut().unwrap()[0].mtu = 1000;
        it.attributes().max_mtu = None;
    }),
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
    // Whatever else there is to be said of its addresses.
    (&["no-roce-socket"], |it| {
        (it.first().device.driver, it.has_roce_socket) = (Some(DriverId::RXE), Some(false));
    }),
    (&["no-roce-socket"], |it| {
        (it.first().device.driver, it.has_roce_socket) = (Some(DriverId::RXE), Some(false));
        it.interfaces.as_mut().unwrap()[0].mac = Some([0x02, 0x11, 0x22, 0x33, 0x44, 0x55]);
        *it.rows() = vec![row(0, "fe80::11:22ff:fe33:4455", GidType::ROCE_V2, Some(netdev()))];
    }),
    // The kernel makes it of the MAC address, which is no address of the interface.
    (&["only-link-local"], |it| {
        it.interfaces.as_mut().unwrap()[0].mac = Some([0x02, 0x11, 0x22, 0x33, 0x44, 0x55]);
        *it.rows() = vec![row(0, "fe80::11:22ff:fe33:4455", GidType::ROCE_V2, Some(netdev()))];
    }),
    // That it is down is all that is to be mended.
    (&["netdev-down"], |it| {
        let interface = &mut it.interfaces.as_mut().unwrap()[0];
        interface.mac = Some([0x02, 0x11, 0x22, 0x33, 0x44, 0x55]);
        interface.is_up = false;
        *it.rows() = vec![row(0, "fe80::11:22ff:fe33:4455", GidType::ROCE_V2, Some(netdev()))];
    }),
    // Another row is of an address that has gone.
    (&["only-link-local", "address-gone"], |it| {
        it.interfaces.as_mut().unwrap()[0].mac = Some([0x02, 0x11, 0x22, 0x33, 0x44, 0x55]);
        let rows = [(0, "fe80::11:22ff:fe33:4455"), (1, "::ffff:10.0.0.4")];
        let rows = rows.map(|(index, gid)| row(index, gid, GidType::ROCE_V2, Some(netdev())));
        *it.rows() = rows.into();
    }),
    (&["no-roce-v2"], |it| {
        it.rows().retain(|row| row.record.entry.gid_type() == GidType::ROCE_V1);
    }),
    (&["too-many-ports", "too-many-ports"], |it| {
        for number in 1..=33 {
            it.second(&format!("mlx5_{number}"));
        }
    }),
    (&["node-forbidden", "too-many-ports", "too-many-ports"], |it| {
        for number in 1..=33 {
            it.second(&format!("mlx5_{number}"));
        }
        it.first().access = Some(Err(problem("no", 13)));
    }),
    (&["too-many-ports", "too-many-ports"], |it| {
        it.first().device.index = None;
        for number in 1..=33 {
            it.second(&format!("mlx5_{number}")).device.index = None;
        }
    }),
    (&["too-many-ports", "too-many-ports"], |it| {
        for number in 1..=16 {
            let other = it.second(&format!("mlx5_{number}"));
            let port = PortRecord { number: 2, ..other.ports[0].clone() };
            other.ports.push(port);
            let rows = other.gids.as_mut().unwrap().as_mut().unwrap();
            rows.extend(rows.clone().into_iter().map(|own| on_port(own, 2)));
        }
    }),
    // One of them could not be read.
    (&["gid-table-unreadable", "too-many-ports", "too-many-ports"], |it| {
        for number in 1..=33 {
            it.second(&format!("mlx5_{number}"));
        }
        it.first().gids = Some(Err(problem("mlx5_0: query GID table: the device is gone", 5)));
    }),
    (&["gid-table-unreadable", "too-many-ports", "too-many-ports"], |it| {
        for number in 1..=32 {
            it.second(&format!("mlx5_{number}"));
        }
        it.first().gids = Some(Err(problem("mlx5_0: query GID table: the device is gone", 5)));
    }),
    // More than UCX has room for, not more than NCCL has.
    (&["too-many-ports"], |it| {
        for number in 1..=25 {
            it.second(&format!("mlx5_{number}"));
        }
    }),
    // UCX takes none of iWARP, and these take no room.
    (&["takes-no-gid", "takes-no-gid", "different-indices"], |it| {
        for number in 1..=26 {
            it.second(&format!("mlx5_{number}"));
        }
        for record in it.devices.iter_mut().skip(25) {
            record.device.node_type = NodeType::RNIC;
            let rows = record.gids.as_mut().unwrap().as_mut().unwrap();
            *rows = vec![row(0, "11:2233:4455::", GidType::IB, None)];
        }
    }),
    (&["too-many-ports"], |it| {
        let names: Vec<String> = (0..=64).map(|number| format!("mlx5_{number}:1")).collect();
        it.set("UCX_NET_DEVICES", &names.join(","));
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
        it.first().hardware.as_mut().unwrap().board_id = Some("MT_0000000224".into());
        let other = it.second("mlx5_1");
        other.ports[0].attributes.as_mut().unwrap().as_mut().unwrap().0.active_width =
            Some(Width(1));
    }),
    // Another board may be made so, and one that is not known may be another.
    (&[], |it| {
        it.first().hardware.as_mut().unwrap().board_id = Some("MT_0000000224".into());
        let other = it.second("mlx5_1");
        other.hardware.as_mut().unwrap().board_id = Some("MT_0000000359".into());
        other.ports[0].attributes.as_mut().unwrap().as_mut().unwrap().0.active_width =
            Some(Width(1));
        it.second("mlx5_2").hardware.as_mut().unwrap().board_id = None;
        it.second("mlx5_3").hardware.as_mut().unwrap().board_id = None;
        it.devices[2].ports[0].attributes.as_mut().unwrap().as_mut().unwrap().0.active_width =
            Some(Width(1));
    }),
    (&["pcie-narrow"], |it| {
        let own = narrow();
        // It is said of the function, not of each that shares it, whatever is known of the link there.
        let sub = PciFunction { has_sub_function: true, ..own.clone() };
        let physical = Some(own.address);
        let virtual_one = PciFunction { physical, link: None, ..own.clone() };
        for (name, pci) in [("mlx5_1", virtual_one), ("mlx5_2", sub)] {
            it.second(name).hardware.as_mut().unwrap().pci = Some(pci);
        }
        it.first().hardware.as_mut().unwrap().pci = Some(own);
    }),
    // The function itself is no device here.
    (&["pcie-narrow"], |it| {
        let physical = Some("0000:17:00.0".parse().unwrap());
        for (name, address) in [("mlx5_1", "0000:17:00.2"), ("mlx5_2", "0000:17:00.3")] {
            let own = PciFunction { address: address.parse().unwrap(), physical, ..narrow() };
            it.second(name).hardware.as_mut().unwrap().pci = Some(own);
        }
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
    // A port that NCCL never takes is not left.
    (&["not-checked", "list-leaves-none", "takes-no-gid"], |it| {
        it.set("NCCL_IB_HCA", "mlx5_7");
        let efa = it.second("efa_0");
        efa.device.node_type = NodeType::UNSPECIFIED;
        efa.ports[0].attributes.as_mut().unwrap().as_mut().unwrap().0.link_layer =
            LinkLayer::UNSPECIFIED;
    }),
    // What could not be read may be what it names.
    (&["port-unreadable", "not-checked"], |it| {
        it.set("NCCL_IB_HCA", "=mlx5_1");
        let problem = problem("mlx5_1: query port 1: no", 5);
        it.second("mlx5_1").ports[0].attributes = Some(Err(problem));
    }),
    (&["port-unreadable"], |it| {
        it.set("NCCL_IB_HCA", "=mlx5_0");
        let problem = problem("mlx5_1: query port 1: no", 5);
        it.second("mlx5_1").ports[0].attributes = Some(Err(problem));
    }),
    // NCCL compares with what it could not read.
    (&["may-take-other-gid"], |it| {
        let gid = "::ffff:10.0.0.1";
        let rows = [(0, GidType::ROCE_V1), (1, GidType::ROCE_V2)];
        *it.rows() = rows.map(|(index, own)| row(index, gid, own, Some(netdev()))).to_vec();
        it.rows()[0].type_is_hidden = true;
    }),
    // Nobody knows which variables are set for a tree.
    (&["not-checked", "only-link-local", "takes-other-gid"], |it| {
        it.host = None;
        it.rows().truncate(2);
    }),
    (&["not-checked", "takes-no-gid"], |it| {
        it.host = None;
        it.rows().remove(0);
    }),
    (&["not-checked"], |it| it.first().ports[0].has_types = None),
    (&["not-checked"], |it| {
        it.infiniband();
        it.first().ports[0].pkeys = None;
    }),
    (&["settings-unreadable"], |it| {
        it.set("NCCL_IB_GID_INDEX", "9");
        let text =
            "host: NCCL's settings in /etc/nccl.conf were not read: it is longer than 64 KiB";
        it.unread_settings.push(problem(text, 27));
    }),
    (&["other-transport"], |it| it.set("NCCL_NET_PLUGIN", "ofi")),
    (&["other-transport"], |it| it.set("NCCL_IB_DISABLE", "1")),
    // An empty index is wrong whatever the program uses, and a list may not matter to it.
    (&["other-transport", "pinned-index-empty", "other-transport", "pinned-index-outside"], |it| {
        it.set("NCCL_ENV_PLUGIN", "x");
        it.set("NCCL_IB_GID_INDEX", "9");
        it.set("UCX_TLS", "rc_x,self");
        it.set("UCX_IB_GID_INDEX", "999");
    }),
    (&["other-transport"], |it| it.set("NVSHMEM_HCA_LIST", "mlx5_0:1")),
    (&["other-transport", "not-checked"], |it| {
        it.set("NCCL_NET_PLUGIN", "ofi");
        it.set("NCCL_IB_HCA", "mlx9");
    }),
    (&["other-transport", "takes-no-gid"], |it| {
        it.set("UCX_TLS", "dc");
        it.rows().remove(0);
    }),
    (&["other-transport", "pinned-index-empty", "different-indices"], |it| {
        it.set("UCX_TLS", "dc");
        it.set("UCX_IB_GID_INDEX", "3");
        let rows = it.second("mlx5_1").gids.as_mut().unwrap().as_mut().unwrap();
        rows.remove(2);
        rows.remove(2);
        rows.push(row(6, "::ffff:10.0.0.1", GidType::ROCE_V2, Some(netdev())));
    }),
    // As many as there is room for, and one that is down, of which not all could be read.
    (&["gid-table-unreadable", "port-down", "too-many-ports"], |it| {
        for number in 1..=32 {
            it.second(&format!("mlx5_{number}"));
        }
        it.attributes().state = PortState::DOWN;
        it.first().gids = Some(Err(problem("mlx5_0: query GID table: the device is gone", 5)));
    }),
    (&["other-transport", "too-many-ports", "too-many-ports"], |it| {
        it.set("NCCL_NET", "Socket");
        for number in 1..=33 {
            it.second(&format!("mlx5_{number}"));
        }
    }),
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
