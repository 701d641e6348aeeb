//! What NCCL, NVSHMEM and UCX do with a port or a host, beyond the vectors.

use super::*;
use crate::device::Device;
use crate::inventory::Inventory;

#[test]
fn releases_by_version() {
    use nccl::Release;
    for (version, release) in [
        ((2, 4, 8), Release::V2_20),
        ((2, 20, 5), Release::V2_20),
        ((2, 21, 5), Release::V2_21),
        ((2, 22, 3), Release::V2_22),
        ((2, 25, 1), Release::V2_23),
        ((2, 26, 2), Release::V2_26),
        ((2, 29, 7), Release::V2_26),
        ((2, 30, 4), Release::V2_30),
        ((2, 30, 7), Release::V2_30_7),
        ((3, 0, 0), Release::NEWEST),
    ] {
        assert_eq!(Release::of(version.0, version.1, version.2), release, "{version:?}");
    }
    for (release, [major, minor, patch]) in Release::ALL {
        assert_eq!(Release::of(*major, *minor, *patch), *release);
    }
    assert!(Release::ALL.is_sorted_by_key(|(_, first)| first));
    assert!(ucx::Release::ALL.is_sorted_by_key(|(_, first)| first));
    assert_eq!(Release::of(u32::MAX, 0, 0), Release::NEWEST);
    assert_eq!(ucx::Release::of(u32::MAX, 0), ucx::Release::NEWEST);
    let ucx = |minor| ucx::Release::of(1, minor);
    assert_eq!((ucx(8), ucx(13)), (ucx::Release::V1_15, ucx::Release::V1_15));
    assert_eq!((ucx(17), ucx(20)), (ucx::Release::V1_16, ucx::Release::V1_18));
    assert_eq!((ucx(21), ucx(30)), (ucx::Release::V1_21, ucx::Release::V1_22));
}

/// What a model asks for is also read from the host, and kept in snapshots.
#[test]
fn every_variable_is_looked_for() {
    use crate::inventory::settings::NAMES;
    let variable = |name: &str| {
        assert!(NAMES.contains(&name), "{name}");
        // One variable decides whether another is read.
        (name == "NVSHMEM_ENABLE_NIC_PE_MAPPING").then_some("1")
    };
    for (release, _) in nccl::Release::ALL {
        let _ = nccl::Settings::new(Implementation::Nccl(*release), variable);
    }
    let _ = nccl::Settings::new(Implementation::Nvshmem, variable);
    for (release, _) in ucx::Release::ALL {
        let _ = ucx::Settings::new(*release, variable);
    }
}

/// What NCCL does with the ports of a host: each device with its number and its count of ports.
fn chosen_of_all(devices: &[(&str, Option<u32>, u32)], set: &str) -> Vec<Outcome> {
    let rows = ["1 0 fe80::1 v1 e", "1 3 ::ffff:10.0.0.1 v2 e"].map(row);
    let one = port("port 1 link_layer Ethernet gid_tbl_len 8", rows.to_vec());
    let ports: Vec<Port<'_>> = devices
        .iter()
        .flat_map(|(device, place, count)| {
            let one = &one;
            (1..=*count).map(move |number| Port { device, place: *place, number, ..one.clone() })
        })
        .collect();
    let ports: Vec<&Port<'_>> = ports.iter().collect();
    let program = if set.starts_with("NVSHMEM_") {
        Implementation::Nvshmem
    } else {
        Implementation::Nccl(nccl::Release::NEWEST)
    };
    let settings = nccl::Settings::new(program, of(&variables(set)));
    let decisions = nccl::choose_all(&ports, &settings);
    decisions.into_iter().map(|decision| decision.outcome).collect()
}

#[test]
fn nccl_has_room_for_32_ports() {
    const NO_ROOM: Outcome = Outcome::Ignored(Why::NoRoom);
    const OVERRUN: Outcome = Outcome::Fails(Why::Overrun);
    const OTHER: Outcome = Outcome::Fails(Why::OtherPort);
    let count = |outcomes: &[Outcome], what: &Outcome| {
        outcomes.iter().filter(|outcome| *outcome == what).count()
    };
    let taken = Outcome::Taken(3);
    // One port each: the 33rd device is not looked at.
    let outcomes = chosen_of_all(&[("a", None, 31), ("b", None, 1), ("c", None, 1)], "(none)");
    assert_eq!((count(&outcomes, &taken), &outcomes[32]), (32, &NO_ROOM));
    // The kernel's order of devices counts, if it is known of all.
    let numbered = [("a", Some(7), 31), ("b", Some(9), 1), ("c", Some(8), 1)];
    let outcomes = chosen_of_all(&numbered, "(none)");
    assert_eq!((&outcomes[31], &outcomes[32]), (&NO_ROOM, &taken));
    let some = [("a", Some(7), 31), ("b", Some(9), 1), ("c", None, 1)];
    assert_eq!(chosen_of_all(&some, "(none)")[32], NO_ROOM);
    // NCCL finishes a device that it began, even past the end of its memory.
    let outcomes = chosen_of_all(&[("a", None, 31), ("b", None, 2), ("c", None, 1)], "(none)");
    assert_eq!((&outcomes[31], &outcomes[32], &outcomes[33]), (&OTHER, &OVERRUN, &NO_ROOM));
    assert_eq!(count(&outcomes, &OTHER), 32, "it uses none");
    // Ports that are not used take no room.
    let outcomes = chosen_of_all(&[("a", None, 31), ("b", None, 2)], "NCCL_IB_HCA=^b:1");
    assert_eq!(count(&outcomes, &taken), 32);
    assert_eq!(count(&chosen_of_all(&[("a", None, 32)], "(none)"), &taken), 32);
}

/// It has room for as many ports, and for four of each device that its list does not leave out.
#[test]
fn nvshmem_fails_beyond_its_room() {
    let names: Vec<String> = (0..49).map(|n| format!("d{n}")).collect();
    let count = |devices: &[_], set: &str| {
        let outcomes = chosen_of_all(devices, set);
        let fails = Outcome::Fails(Why::BeyondRoom);
        let count = |what| outcomes.iter().filter(|own| **own == what).count();
        (count(Outcome::Taken(3)), count(fails))
    };
    let device = |name, ports| (name, None, ports);
    let full: Vec<_> = ["a", "b", "c", "d", "e", "f", "g", "h"].map(|name| device(name, 4)).into();
    let index = "NVSHMEM_IB_GID_INDEX=3";
    assert_eq!(count(&full, index), (32, 0));
    let more = [&full[..], &[device("i", 1)]].concat();
    assert_eq!(count(&more, index), (0, 33));
    let left_out = format!("{index} NVSHMEM_ENABLE_NIC_PE_MAPPING=1 NVSHMEM_HCA_LIST=^i");
    assert_eq!(count(&more, &left_out), (32, 0));
    let fifth = [device("a", 5), device("b", 1)];
    assert_eq!(count(&fifth, index), (0, 6));
    let left_out = format!("{index} NVSHMEM_ENABLE_NIC_PE_MAPPING=1 NVSHMEM_HCA_LIST=^a:5");
    assert_eq!(count(&fifth, &left_out), (5, 0));
    // It has no room for 49 devices, whatever its list is.
    let devices: Vec<_> = names.iter().map(|name| device(name.as_str(), 1)).collect();
    let one = format!("{index} NVSHMEM_ENABLE_NIC_PE_MAPPING=1 NVSHMEM_HCA_LIST=d0");
    assert_eq!((count(&devices[..48], &one), count(&devices, &one)), ((1, 0), (0, 1)));
}

/// Which ports NVSHMEM uses by these differs by release.
#[test]
fn what_makes_nvshmem_doubtful() {
    let doubted_by =
        |set: &str| nccl::Settings::new(Implementation::Nvshmem, of(&variables(set))).doubted_by();
    let long = format!("NVSHMEM_HCA_LIST={}x", "x,".repeat(16));
    for (set, expected) in [
        ("NVSHMEM_IB_GID_INDEX=3", None),
        ("NVSHMEM_HCA_LIST=", None),
        ("NVSHMEM_HCA_LIST=a", Some("NVSHMEM_HCA_LIST")),
        ("NVSHMEM_HCA_LIST=a NVSHMEM_ENABLE_NIC_PE_MAPPING=0", Some("NVSHMEM_HCA_LIST")),
        ("NVSHMEM_HCA_LIST=a NVSHMEM_ENABLE_NIC_PE_MAPPING=false", Some("NVSHMEM_HCA_LIST")),
        ("NVSHMEM_HCA_LIST=a NVSHMEM_ENABLE_NIC_PE_MAPPING=y", None),
        (&format!("{long} NVSHMEM_ENABLE_NIC_PE_MAPPING=1"), Some("NVSHMEM_HCA_LIST")),
        ("NVSHMEM_HCA_PE_MAPPING=a:1:2", Some("NVSHMEM_HCA_PE_MAPPING")),
        ("NVSHMEM_HCA_PREFIX=bnxt", Some("NVSHMEM_HCA_PREFIX")),
        ("NVSHMEM_HCA_PREFIX=mlx5", None),
        // It counts only where no list does.
        ("NVSHMEM_HCA_PE_MAPPING=a:1:2 NVSHMEM_HCA_LIST=a NVSHMEM_ENABLE_NIC_PE_MAPPING=1", None),
    ] {
        assert_eq!(doubted_by(set), expected, "{set}");
    }
}

/// Without the files of types NCCL fails where it compares two rows, from 2.21 on.
#[test]
fn nccl_without_files_of_types() {
    use nccl::Release;
    let rows = ["1 0 fe80::1 v1 e", "1 1 ::ffff:10.0.0.1 v1 e", "1 2 ::ffff:10.0.0.1 v2 e"];
    let whole = port("port 1 link_layer Ethernet gid_tbl_len 8", rows.map(row).to_vec());
    let without = Port { has_types: false, ..whole.clone() };
    let fails = Outcome::Fails(Why::NoTypes);
    for release in [Release::V2_21, Release::V2_23, Release::V2_26, Release::V2_30_7] {
        assert_eq!(nccl_of(&without, release, &[]).outcome, fails, "{release:?}");
        assert_eq!(nccl_of(&whole, release, &[]).outcome, Outcome::Taken(2));
        let set = variables("NCCL_IB_GID_INDEX=1");
        assert_eq!(nccl_of(&without, release, &set).outcome, Outcome::Taken(1), "not looked at");
    }
    assert_eq!(nccl_of(&without, Release::V2_20, &[]).outcome, Outcome::Taken(0));
    // One row of the family: nothing is compared.
    let single = Port { rows: without.rows[..2].to_vec(), ..without.clone() };
    assert_eq!(nccl_of(&single, Release::NEWEST, &[]).outcome, Outcome::Taken(1));
    let nvshmem = nccl::Settings::new(Implementation::Nvshmem, |_| None);
    assert_eq!(nccl::choose(&without, &nvshmem).outcome, Outcome::Taken(1));
}

/// Where it is not known whether there are files of types, what depends on them is not known.
#[test]
fn files_of_types_that_may_be_missing() {
    let rows = ["1 0 fe80::1 v1 e", "1 1 ::ffff:10.0.0.1 v1 e", "1 2 ::ffff:10.0.0.1 v2 e"];
    let whole = port("port 1 link_layer Ethernet gid_tbl_len 8", rows.map(row).to_vec());
    let assumed = Port { assumes_types: true, ..whole.clone() };
    let single = Port { rows: assumed.rows[1..2].to_vec(), ..assumed.clone() };
    let is_sure = |port: &Port<'_>, setting: &str| {
        let set = variables(setting);
        let model = plan::Program::Nccl.model(of(&set));
        model.is_sure(port, &model.choose(port).outcome)
    };
    assert!(is_sure(&whole, "(none)") && !is_sure(&assumed, "(none)"));
    assert!(is_sure(&assumed, "NCCL_IB_GID_INDEX=1"), "no type is looked at");
    assert!(is_sure(&single, "(none)"), "nothing is compared");
}

/// A plug-in of NCCL's environment, since 2.28, may also change whether RDMA is used; one for the network may not.
#[test]
fn plug_ins_of_nccl() {
    use nccl::Release;
    let good = port("port 1 link_layer Ethernet gid_tbl_len 4", vec![row("1 0 fe80::1 v2 e")]);
    let is_sure = |release, set: &str| {
        let settings = nccl::Settings::new(Implementation::Nccl(release), of(&variables(set)));
        nccl::is_sure(&good, &settings)
    };
    for (set, sure) in [
        ("NCCL_ENV_PLUGIN=x", [true, false]),
        ("NCCL_ENV_PLUGIN=x NCCL_IB_DISABLE=1", [true, false]),
        ("NCCL_NET_PLUGIN=x", [false, false]),
        ("NCCL_NET_PLUGIN=x NCCL_IB_DISABLE=1", [true, true]),
    ] {
        let own = [Release::V2_23, Release::NEWEST].map(|release| is_sure(release, set));
        assert_eq!(own, sure, "{set}");
    }
}

/// NVSHMEM's copy: variables of its own, no trouble with types, and LIDs on InfiniBand.
#[test]
fn nvshmem() {
    let rows = ["1 4 fe80::1 v1 n", "1 5 fe80::1 v2 n", "1 6 fd00::3 v1 n", "1 7 fd00::3 v2 n"];
    let port =
        |layer| port(&format!("port 1 link_layer {layer} gid_tbl_len 255"), rows.map(row).to_vec());
    let choose = |set: &str, layer| {
        let settings = nccl::Settings::new(Implementation::Nvshmem, of(&variables(set)));
        words(&nccl::choose(&port(layer), &settings).outcome)
    };
    assert_eq!(choose("(none)", "Ethernet"), "0 (empty slot)");
    assert_eq!(choose("NVSHMEM_IB_ADDR_FAMILY=AF_INET6", "Ethernet"), "7");
    assert_eq!(choose("NVSHMEM_IB_GID_INDEX=6", "Ethernet"), "6");
    assert_eq!(choose("NCCL_IB_GID_INDEX=6", "Ethernet"), "0 (empty slot)");
    assert_eq!(choose("(none)", "InfiniBand"), "n/a");
    let on = "NVSHMEM_HCA_LIST=^mlx5_0:1 NVSHMEM_ENABLE_NIC_PE_MAPPING=1";
    assert_eq!(choose(on, "Ethernet"), "port ignored");
    assert_eq!(choose("NVSHMEM_HCA_LIST=^mlx5_0:1", "Ethernet"), "0 (empty slot)");
}

#[test]
fn ports_that_are_not_used() {
    let good = port("port 1 link_layer Ethernet gid_tbl_len 4", vec![row("1 0 fe80::1 v2 e")]);
    let nccl =
        |port: &Port<'_>, set: &str| nccl_of(port, nccl::Release::NEWEST, &variables(set)).outcome;
    let down = Port { state: PortState::DOWN, ..good.clone() };
    let efa = Port { link_layer: LinkLayer::UNSPECIFIED, ..good.clone() };
    let not_active = Outcome::Ignored(Why::NotActive(PortState::DOWN));
    assert_eq!(nccl(&down, "(none)"), not_active);
    assert_eq!(nccl(&efa, "(none)"), Outcome::Ignored(Why::LinkLayer(LinkLayer::UNSPECIFIED)));
    assert_eq!(nccl(&good, "NCCL_IB_DISABLE=1"), Outcome::Ignored(Why::Disabled));
    assert_eq!(nccl(&good, "NCCL_IB_HCA=^"), Outcome::Ignored(Why::NotListed("NCCL_IB_HCA")));
    let ucx =
        |port: &Port<'_>, set: &str| ucx_of(port, ucx::Release::NEWEST, &variables(set)).outcome;
    assert_eq!(ucx(&down, "(none)"), not_active);
    assert_eq!(ucx(&efa, "(none)"), Outcome::Taken(0), "as if it were InfiniBand");
    let bad = Outcome::Fails(Why::BadValue("UCX_IB_GID_INDEX"));
    assert_eq!(ucx(&good, "UCX_IB_GID_INDEX=x"), bad);
}

#[test]
fn devices_that_were_not_asked_about_take_room_for_the_ports_that_a_program_asks_for() {
    let fills = |devices: u32, port_count: u32, node_type: NodeType| {
        let other =
            |number| Device { node_type, port_count, ..Device::named(format!("d{number}")) };
        let others: Vec<_> = (0..devices).map(other).collect();
        let inventory = Inventory { others, ..Inventory::default() };
        (room::fills(&inventory), room::fills_ucx(&inventory))
    };
    assert_eq!(fills(1, 0, NodeType::CA), (false, false));
    assert_eq!(fills(1, 32, NodeType::CA), (false, false));
    assert_eq!(fills(1, 33, NodeType::CA), (true, false));
    assert_eq!(fills(1, u32::MAX, NodeType::CA), (true, false));
    // UCX asks for two ports.
    assert_eq!(fills(12, 2, NodeType::CA), (false, false));
    assert_eq!(fills(13, 2, NodeType::CA), (false, true));
    assert_eq!(fills(13, u32::MAX, NodeType::CA), (true, true));
    // Of a switch there is port 0 only, for which NCCL does not ask.
    assert_eq!(fills(25, 1, NodeType::SWITCH), (false, false));
    assert_eq!(fills(33, 1, NodeType::SWITCH), (false, true));
}
