use std::net::IpAddr;

use super::search::covering;
use super::*;
use crate::choose::tests::{port, row};
use crate::choose::{Family, Outcome, Port, Why};

/// RoCE ports by their rows, each with the index that is wanted.
fn planned(program: Program, ports: &[(&'static str, &[&str], Option<u32>)]) -> Option<String> {
    planned_beside(false, program, ports)
}

/// The same, where there may be other ports.
fn planned_beside(
    has_others: bool,
    program: Program,
    ports: &[(&'static str, &[&str], Option<u32>)],
) -> Option<String> {
    let ports: Vec<_> = ports
        .iter()
        .map(|(device, rows, index)| {
            let rows = rows.iter().map(|line| row(line)).collect();
            let port = port("port 1 link_layer Ethernet gid_tbl_len 16", rows);
            (Port { device, ..port }, *index)
        })
        .collect();
    let targets: Vec<_> =
        ports.iter().map(|(port, index)| Target { host: 0, port, index: *index }).collect();
    plan(program, &targets, has_others, |name| SET.contains(&name)).map(|plan| {
        let pairs = plan.variables.iter().map(|(name, value)| format!("{name}={value}"));
        pairs.collect::<Vec<_>>().join(" ")
    })
}

const DUAL: &[&str] = &[
    "1 0 fe80::1 v1 e",
    "1 1 fe80::1 v2 e",
    "1 2 ::ffff:10.0.0.1 v1 e",
    "1 3 ::ffff:10.0.0.1 v2 e",
];
const LATER: &[&str] = &[
    "1 0 fe80::1 v1 e",
    "1 1 fe80::1 v2 e",
    "1 4 ::ffff:10.0.0.2 v1 e",
    "1 5 ::ffff:10.0.0.2 v2 e",
];
const VLAN: &[&str] = &[
    "1 0 fe80::1 v1 e",
    "1 1 fe80::1 v2 e",
    "1 3 ::ffff:192.168.7.1 v2 e.7",
    "1 5 ::ffff:10.0.0.3 v2 e",
];
const POD: &[&str] = &["1 6 ::ffff:10.1.2.3 v1 n", "1 7 ::ffff:10.1.2.3 v2 n"];
const IPV6: &[&str] = &["1 0 fe80::1 v1 e", "1 2 fd00::1 v1 e", "1 3 fd00::1 v2 e"];

/// Set already, on these hosts: of no effect on what is not NVSHMEM's.
const SET: &[&str] = &["NVSHMEM_IB_ADDR_RANGE"];

/// A plan for ports of any kind.
fn planned_for(program: Program, ports: &[(Port<'_>, Option<u32>)]) -> Option<String> {
    let target = |(port, index)| Target { host: 0, port, index };
    let targets: Vec<_> = ports.iter().map(|(port, index)| target((port, *index))).collect();
    let plan = plan(program, &targets, false, |_| false)?;
    let pairs = plan.variables.iter().map(|(name, value)| format!("{name}={value}"));
    Some(pairs.collect::<Vec<_>>().join(" "))
}

/// On InfiniBand there is nothing to choose, and UCX takes the index that is set there too.
#[test]
fn an_index_of_roce_is_not_set_for_infiniband() {
    let of = |device, link: &str, rows: &[&str]| {
        let rows = rows.iter().map(|line| row(line)).collect();
        Port { device, ..port(&format!("port 1 link_layer {link} gid_tbl_len 16"), rows) }
    };
    let roce = of("a", "Ethernet", DUAL);
    let infiniband = of("b", "InfiniBand", &["1 0 fe80::2 ib -", "1 3 fec0::2 ib -"]);
    let both = [(roce.clone(), Some(3)), (infiniband, Some(0))];
    assert_eq!(planned_for(Program::Ucx, &both).as_deref(), Some("UCX_IB_GID_INDEX=auto"));
    assert_eq!(planned_for(Program::Nccl, &both).as_deref(), Some("NCCL_IB_GID_INDEX=3"));
    // What UCX takes by itself is right, though it is not the first.
    let routable = of("b", "InfiniBand", &["1 0 fe80::2 ib -", "1 1 fec0:0:1:0:14:500:0:2 ib -"]);
    let both = [(roce, Some(3)), (routable, Some(0))];
    assert_eq!(planned_for(Program::Ucx, &both).as_deref(), Some("UCX_IB_GID_INDEX=auto"));
}

/// No setting makes a program use them, and they keep none from being right.
#[test]
fn ports_that_a_program_never_takes() {
    use crate::device::NodeType;
    let of = |device, number| {
        let rows = DUAL.iter().map(|line| row(line)).collect();
        let port = port("port 1 link_layer Ethernet gid_tbl_len 16", rows);
        Port { device, number, ..port }
    };
    let two = of("a", 2);
    let switch = Port { node_type: NodeType::SWITCH, ..of("b", 0) };
    let (many, far) = (of("c", 3), of("d", 256));
    for (program, own, other) in [
        (Program::Nccl, &[&two, &many][..], &[&switch, &far][..]),
        (Program::Nvshmem, &[&two, &many], &[&switch, &far]),
        (Program::Ucx, &[&two, &switch], &[&many, &far]),
    ] {
        let wanted = |port: &&Port<'static>| ((*port).clone(), Some(3));
        let own: Vec<_> = own.iter().map(wanted).collect();
        let other: Vec<_> = other.iter().map(wanted).collect();
        let index = format!("{}=3", program.index_variable());
        assert_eq!(planned_for(program, &own), Some(index.clone()));
        assert_eq!(planned_for(program, &other), None);
        let all: Vec<_> = own.iter().chain(&other).cloned().collect();
        assert_eq!(planned_for(program, &all), Some(index));
        let model = program.model(|_| None);
        for (port, _) in &other {
            let outcome = model.choose(port).outcome;
            let why = if program == Program::Ucx { Why::BeyondSecond } else { Why::PortNumber };
            assert_eq!(outcome, Outcome::Ignored(why), "{program}");
        }
    }
}

#[test]
fn one_index_where_it_is_right_on_all() {
    let ports = [("a", DUAL, Some(3)), ("b", DUAL, Some(3))];
    assert_eq!(planned(Program::Nccl, &ports).as_deref(), Some("NCCL_IB_GID_INDEX=3"));
    assert_eq!(
        planned(Program::Nvshmem, &ports).as_deref(),
        Some("NVSHMEM_IB_GID_INDEX=3 NVSHMEM_IB_ADDR_RANGE=0.0.0.0/0")
    );
    assert_eq!(planned(Program::Ucx, &ports).as_deref(), Some("UCX_IB_GID_INDEX=3"));
}

#[test]
fn the_program_s_own_choice_where_indices_differ() {
    let ports = [("a", DUAL, Some(3)), ("b", LATER, Some(5))];
    assert_eq!(planned(Program::Nccl, &ports).as_deref(), Some("NCCL_IB_GID_INDEX=-1"));
    assert_eq!(planned(Program::Ucx, &ports).as_deref(), Some("UCX_IB_GID_INDEX=auto"));
    let ports = [("a", IPV6, Some(3)), ("b", &["1 0 fe80::1 v2 e", "1 1 fd00::2 v2 e"], Some(1))];
    assert_eq!(
        planned(Program::Nccl, &ports).as_deref(),
        Some("NCCL_IB_GID_INDEX=-1 NCCL_IB_ADDR_FAMILY=AF_INET6")
    );
}

#[test]
fn an_address_range_where_its_own_choice_is_wrong() {
    let ports = [("a", DUAL, Some(3)), ("b", VLAN, Some(5))];
    assert_eq!(
        planned(Program::Nccl, &ports).as_deref(),
        Some("NCCL_IB_GID_INDEX=-1 NCCL_IB_ADDR_RANGE=10.0.0.0/30")
    );
    assert_eq!(
        planned(Program::Ucx, &ports).as_deref(),
        Some("UCX_IB_GID_INDEX=auto UCX_IB_ROCE_SUBNETS=10.0.0.0/30")
    );
}

/// NCCL takes an IPv6 row at index 0 if there is no IPv4 row. The range is for the ports that have some.
#[test]
fn an_address_range_in_any_order_of_ports() {
    let only_ipv6: &[&str] = &["1 0 fd00::1 v2 e"];
    let ports = [("a", only_ipv6, Some(0)), ("b", VLAN, Some(5))];
    let range = "NCCL_IB_GID_INDEX=-1 NCCL_IB_ADDR_RANGE=10.0.0.3/32";
    assert_eq!(planned(Program::Nccl, &ports).as_deref(), Some(range));
    assert_eq!(planned(Program::Nccl, &[ports[1], ports[0]]).as_deref(), Some(range));
}

#[test]
fn a_list_of_devices_where_a_port_is_not_wanted() {
    let ports = [("a", DUAL, Some(3)), ("b", DUAL, None)];
    assert_eq!(
        planned(Program::Nccl, &ports).as_deref(),
        Some("NCCL_IB_HCA==a:1 NCCL_IB_GID_INDEX=3")
    );
    assert_eq!(
        planned(Program::Ucx, &ports).as_deref(),
        Some("UCX_NET_DEVICES=a:1 UCX_IB_GID_INDEX=3")
    );
    // The same name is wanted on one host and not on another: no list can say that.
    let ports = [("a", DUAL, Some(3)), ("a", DUAL, None)];
    assert_eq!(planned(Program::Nccl, &ports), None);
}

#[test]
fn no_more_ports_than_there_is_room_for() {
    const NAMES: [&str; 33] = [
        "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q", "r",
        "s", "t", "u", "v", "w", "x", "y", "z", "A", "B", "C", "D", "E", "F", "G",
    ];
    let all = NAMES.map(|name| (name, DUAL, Some(3)));
    assert_eq!(planned(Program::Nccl, &all), None);
    assert_eq!(planned(Program::Nccl, &all[1..]).as_deref(), Some("NCCL_IB_GID_INDEX=3"));
    assert_eq!(planned(Program::Ucx, &all).as_deref(), Some("UCX_IB_GID_INDEX=3"));
    let mut some = all;
    some[0].2 = None;
    let list = NAMES[1..].join(":1,");
    let expected = format!("NCCL_IB_HCA=={list}:1 NCCL_IB_GID_INDEX=3");
    assert_eq!(planned(Program::Nccl, &some), Some(expected));
}

#[test]
fn a_list_of_devices_where_a_port_is_not_known() {
    let ports = [("a", DUAL, Some(3)), ("b", DUAL, Some(3))];
    assert_eq!(
        planned_beside(true, Program::Nccl, &ports).as_deref(),
        Some("NCCL_IB_HCA==a:1,b:1 NCCL_IB_GID_INDEX=3")
    );
}

#[test]
fn nothing_is_wanted_of_no_port() {
    for program in [Program::Nccl, Program::Nvshmem, Program::Ucx] {
        assert_eq!(planned(program, &[]), None);
        assert_eq!(planned(program, &[("a", DUAL, None)]), None);
        assert_eq!(planned_beside(true, program, &[]), None);
    }
}

#[test]
fn a_name_that_would_mean_something_else_is_in_no_list() {
    for odd in ["", "a,b", "^a", "=a", "a[0-1]", "a b", "a:1"] {
        for program in [Program::Nccl, Program::Nvshmem, Program::Ucx] {
            assert_eq!(
                planned(program, &[(odd, DUAL, Some(3)), ("b", DUAL, None)]),
                None,
                "{odd:?}"
            );
        }
    }
}

#[test]
fn what_a_program_does_not_read_is_no_plan() {
    let rows = |n: u32| {
        let [.., a, b] = n.to_be_bytes();
        vec![
            "1 0 fe80::1 v1 e".to_owned(),
            format!("1 3 ::ffff:10.{}.{a}.{b} v2 e.7", 2 * (n % 2) + 1),
            format!("1 {} ::ffff:10.{}.{a}.{b} v2 e", 5 + n % 2, 2 * (n % 2)),
        ]
    };
    let planned = |count: u32| {
        let rows: Vec<Vec<String>> = (0..count).map(rows).collect();
        let rows: Vec<Vec<&str>> =
            rows.iter().map(|rows| rows.iter().map(String::as_str).collect()).collect();
        let ports: Vec<_> =
            (0u32..).zip(&rows).map(|(n, rows)| ("a", rows.as_slice(), Some(5 + n % 2))).collect();
        planned(Program::Ucx, &ports)
    };
    assert!(planned(128).unwrap().contains("UCX_IB_ROCE_SUBNETS=10.0.0.0/32,10.2.0.1/32,"));
    assert_eq!(planned(129), None, "UCX keeps 128");
}

#[test]
fn nothing_may_be_right() {
    // UCX skips a port with an empty slot 0 unless an index is set, and the indices differ.
    let ports = [("a", POD, Some(7)), ("b", LATER, Some(5))];
    assert_eq!(planned(Program::Ucx, &ports), None);
    assert_eq!(planned(Program::Nccl, &ports).as_deref(), Some("NCCL_IB_GID_INDEX=-1"));
    let mixed = [("a", DUAL, Some(3)), ("b", IPV6, Some(3))];
    assert_eq!(planned(Program::Nccl, &mixed).as_deref(), Some("NCCL_IB_GID_INDEX=3"));
}

#[test]
fn covering_networks() {
    let cover = |list: &[&str]| {
        let list: Vec<IpAddr> = list.iter().map(|text| text.parse().unwrap()).collect();
        let family = if list[0].is_ipv4() { Family::V4 } else { Family::V6 };
        covering(&list, family).unwrap().to_string()
    };
    assert_eq!(cover(&["10.0.0.1"]), "10.0.0.1/32");
    assert_eq!(cover(&["10.0.0.1", "10.0.1.1"]), "10.0.0.0/23");
    assert_eq!(cover(&["10.0.0.1", "192.168.0.1"]), "0.0.0.0/0");
    assert_eq!(cover(&["fd00::1"]), "fd00::1/128");
    assert_eq!(cover(&["fd00::1", "fe00::1"]), "fc00::/6");
}

/// NCCL compares the version of a row with uninitialised memory if it cannot read the type of the row before. A
/// range keeps it from that.
#[test]
fn what_does_not_depend_on_a_hidden_type_is_preferred() {
    const HIDDEN: &[&str] = &[
        "1 2 ::ffff:10.0.0.1 v1 e EINVAL",
        "1 6 ::ffff:10.1.2.3 v1 n",
        "1 7 ::ffff:10.1.2.3 v2 n",
    ];
    const LATER: &[&str] = &["1 8 ::ffff:10.1.2.3 v1 n", "1 9 ::ffff:10.1.2.3 v2 n"];
    let plan = planned(Program::Nccl, &[("a", HIDDEN, Some(7)), ("b", LATER, Some(9))]);
    let expected = "NCCL_IB_GID_INDEX=-1 NCCL_IB_ADDR_RANGE=10.1.2.3/32";
    assert_eq!(plan.as_deref(), Some(expected));
    let rows = HIDDEN.iter().map(|line| row(line)).collect();
    let port = port("port 1 link_layer Ethernet gid_tbl_len 16", rows);
    let is_sure = |range: Option<&str>| {
        let model = Program::Nccl.model(|name| range.filter(|_| name == "NCCL_IB_ADDR_RANGE"));
        model.is_sure(&port, &model.choose(&port).outcome)
    };
    assert!(!is_sure(None));
    assert!(is_sure(Some("10.1.2.3/32")));
}

/// Where it is not known whether sysfs has types, it is not known either whether a program that reads them chooses
/// right.
#[test]
fn a_plan_that_reads_types_which_may_be_missing() {
    let with = |lines: &[&str], assumes_types| {
        let rows = lines.iter().map(|line| row(line)).collect();
        Port { assumes_types, ..port("port 1 link_layer Ethernet gid_tbl_len 16", rows) }
    };
    let is_sure = |program, later, assumes_types| {
        let ports = [with(DUAL, assumes_types), with(later, assumes_types)];
        let index = |port: &Port<'_>| port.rows.last().map(|row| row.index);
        let targets: Vec<_> =
            ports.iter().map(|port| Target { host: 0, port, index: index(port) }).collect();
        plan(program, &targets, false, |_| false).map(|plan| (plan.way, plan.is_sure))
    };
    for program in [Program::Nccl, Program::Ucx] {
        assert_eq!(is_sure(program, LATER, false), Some((Way::Automatic, true)));
        assert_eq!(is_sure(program, LATER, true), Some((Way::Automatic, false)), "{program}");
        assert_eq!(is_sure(program, DUAL, true), Some((Way::Index(3), true)), "{program}");
    }
}
