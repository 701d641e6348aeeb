//! Compares the models with what the programs themselves answered: [`vectors.md`](vectors.md).

use std::net::Ipv6Addr;

use proptest::prelude::*;

use super::*;
use crate::choose::nccl::{DeviceList, Program};
use crate::choose::ucx::Devices;

/// The variables of an `A=1 B=2` cell.
fn variables(cell: &str) -> Vec<(String, String)> {
    let cell = cell.trim_matches('`');
    let words = cell.split(' ').filter(|word| *word != "(none)");
    let pairs = words.map(|word| word.split_once('=').unwrap());
    pairs.map(|(name, value)| (name.to_owned(), value.replace("(empty)", ""))).collect()
}

fn of<'v>(variables: &'v [(String, String)]) -> impl Fn(&str) -> Option<&'v str> {
    |name| variables.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
}

fn nccl_of(port: &Port<'_>, release: nccl::Release, set: &[(String, String)]) -> Decision {
    nccl::choose(port, &nccl::Settings::new(Program::Nccl(release), of(set)))
}

fn ucx_of(port: &Port<'_>, release: ucx::Release, set: &[(String, String)]) -> Decision {
    ucx::choose(port, &ucx::Settings::new(release, of(set)))
}

/// An outcome in the words of the vectors.
fn words(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Taken(index) => index.to_string(),
        Outcome::Empty(index) => format!("{index} (empty slot)"),
        Outcome::Outside(index) => format!("{index}, then error"),
        Outcome::Fails(
            Why::UnreadableType(_) | Why::BadValue("NCCL_IB_ROUTABLE_FLID_GID_INDEX"),
        ) => "error".to_owned(),
        Outcome::Fails(_) => "interface fails".to_owned(),
        Outcome::Ignored(Why::OutsideFirst(_)) => "port ignored (error logged)".to_owned(),
        Outcome::Ignored(_) => "port ignored".to_owned(),
        Outcome::ByLid => "n/a".to_owned(),
    }
}

pub(super) fn row(line: &str) -> Row<'static> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let gid: Ipv6Addr = words[2].parse().unwrap();
    Row {
        index: words[1].parse().unwrap(),
        gid: gid.into(),
        gid_type: match words[3] {
            "v1" => GidType::ROCE_V1,
            "v2" => GidType::ROCE_V2,
            "ib" => GidType::IB,
            other => panic!("{other}"),
        },
        type_is_hidden: line.contains("EINVAL"),
        has_address_handle: true,
        home: if line.contains("(host)") { Home::Foreign } else { Home::None },
    }
}

pub(super) fn port(head: &str, rows: Vec<Row<'static>>) -> Port<'static> {
    let words: Vec<&str> = head.split_whitespace().collect();
    let is_infiniband = words[3] == "InfiniBand";
    Port {
        device: "mlx5_0",
        node_type: NodeType::CA,
        number: 1,
        place: None,
        state: PortState::ACTIVE,
        link_layer: if is_infiniband { LinkLayer::INFINIBAND } else { LinkLayer::ETHERNET },
        gid_tbl_len: words[5].parse().unwrap(),
        has_types: true,
        rows,
    }
}

/// Every table of the file with every line of its two lists.
fn each_vector(mut check: impl FnMut(&str, &Port<'_>, &str, &[&str])) {
    let (mut name, mut head, mut rows) = ("", "", Vec::new());
    let mut of_nccl = true;
    for line in include_str!("vectors.md").lines() {
        if let Some(title) = line.strip_prefix("#### ") {
            (name, rows) = (title, Vec::new());
        } else if line.starts_with("port ") {
            head = line;
        } else if line.starts_with("1 ") {
            rows.push(row(line));
        } else if line.starts_with("| NCCL") || line.starts_with("| UCX") {
            of_nccl = line.starts_with("| NCCL");
        } else if line.starts_with("| ") {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            let table = if of_nccl { "nccl" } else { "ucx" };
            check(
                &format!("{name}: {table}: {}", cells[0]),
                &port(head, rows.clone()),
                table,
                &cells,
            );
        }
    }
}

#[test]
fn every_vector() {
    let mut count = 0;
    each_vector(|name, port, table, cells| {
        let set = variables(cells[0]);
        let expect = |column: usize| cells[column].trim_matches('*').to_owned();
        let mut check = |what: &str, decision: &Decision, expected: &str| {
            assert_eq!(words(&decision.outcome), expected, "{name} ({what}): {decision:?}");
            assert_eq!(decision.rows.len(), port.rows.len());
            for (index, reason) in &decision.rows {
                let is_index = decision.outcome.index() == Some(*index);
                assert_eq!(reason.is_taken(), is_index, "{name} ({what}): {index}: {reason}");
            }
            count += 1;
        };
        if table == "nccl" {
            use nccl::Release;
            let newest = expect(3);
            let middle = expect(2).replace("as right", &newest);
            let is_ethernet = port.link_layer == LinkLayer::ETHERNET;
            for (release, expected) in [
                (Release::V2_20, &*expect(1)),
                (Release::V2_21, if is_ethernet { &middle } else { "n/a" }),
                (Release::V2_22, &middle),
                (Release::V2_23, &middle),
                (Release::V2_26, &newest),
                (Release::V2_30_7, &newest),
            ] {
                // Without a slash in the range these two crash.
                let crashes = matches!(release, Release::V2_21 | Release::V2_22)
                    && set.iter().any(|(n, v)| n.ends_with("RANGE") && !v.contains('/'));
                let decision = nccl_of(port, release, &set);
                if crashes {
                    assert_eq!(decision.outcome, Outcome::Fails(Why::RangeCrash), "{name}");
                } else {
                    check(&format!("{release:?}"), &decision, expected);
                }
            }
        } else {
            use ucx::Release;
            for (release, column) in [(Release::V1_18, 1), (Release::V1_21, 2), (Release::V1_22, 2)]
            {
                check(&format!("{release:?}"), &ucx_of(port, release, &set), &expect(column));
            }
            // Older ones know no subnets, and no routable GIDs.
            if !cells[0].contains("SUBNETS") && !name.contains("FLID") {
                check("V1_15", &ucx_of(port, Release::V1_15, &set), &expect(1));
            }
        }
    });
    assert_eq!(count, 707, "every line of every table, by every release");
}

/// The last vector: no trial address handle succeeds.
#[test]
fn ucx_without_an_address_handle() {
    let rows = ["1 0 fe80::1 v1 eth0", "1 1 fe80::1 v2 eth0", "1 2 ::ffff:10.0.0.5 v1 eth0"]
        .map(|line| Row { has_address_handle: false, ..row(line) });
    for (length, new) in [(255, "interface fails"), (3, "0")] {
        let port = port(&format!("port 1 link_layer Ethernet gid_tbl_len {length}"), rows.to_vec());
        assert_eq!(words(&ucx_of(&port, ucx::Release::V1_18, &[]).outcome), "0");
        assert_eq!(words(&ucx_of(&port, ucx::Release::V1_21, &[]).outcome), new);
    }
}

/// A pod on `MLNX_OFED`: the host's rows give no address handle, so the pod's own row is taken.
#[test]
fn ucx_passes_over_rows_that_the_kernel_refuses() {
    let mut rows = Vec::new();
    each_vector(|name, port, _, _| {
        if name.starts_with("V06") {
            rows = port.rows.iter().map(|row| (row.index, row.gid, row.gid_type)).collect();
        }
    });
    let rows = rows.iter().map(|(index, gid, gid_type)| Row {
        index: *index,
        gid: *gid,
        gid_type: *gid_type,
        has_address_handle: *index > 3,
        ..row("1 0 :: v1 eth0")
    });
    let port = port("port 1 link_layer Ethernet gid_tbl_len 255", rows.collect());
    for release in [ucx::Release::V1_15, ucx::Release::V1_18, ucx::Release::V1_22] {
        assert_eq!(ucx_of(&port, release, &[]).outcome, Outcome::Taken(7));
    }
}

const PORTS: [(&str, u32); 6] = [
    ("mlx5_0", 1),
    ("mlx5_1", 1),
    ("mlx5_1", 2),
    ("mlx5_10", 1),
    ("mlx5_bond_0", 1),
    ("bnxt_re0", 1),
];

fn taken(takes: impl Fn(&str, u32) -> bool) -> String {
    let ports = PORTS.into_iter().filter(|(device, port)| takes(device, *port));
    ports.map(|(device, port)| format!("{device}:{port}")).collect::<Vec<_>>().join(" ")
}

#[test]
fn nccl_device_lists() {
    use nccl::Release;
    const ALL: &str = "mlx5_0:1 mlx5_1:1 mlx5_1:2 mlx5_10:1 mlx5_bond_0:1 bnxt_re0:1";
    for (list, expected) in [
        ("", ALL),
        ("=", ALL),
        (":1", ALL),
        ("mlx5", "mlx5_0:1 mlx5_1:1 mlx5_1:2 mlx5_10:1 mlx5_bond_0:1"),
        ("mlx5_1", "mlx5_1:1 mlx5_1:2 mlx5_10:1"),
        ("=mlx5_1", "mlx5_1:1 mlx5_1:2"),
        ("=mlx5_1:1", "mlx5_1:1"),
        ("=mlx5_1:01", "mlx5_1:1"),
        ("mlx5_1:2", "mlx5_1:2"),
        ("^mlx5_1", "mlx5_0:1 mlx5_bond_0:1 bnxt_re0:1"),
        ("^=mlx5_1", "mlx5_0:1 mlx5_10:1 mlx5_bond_0:1 bnxt_re0:1"),
        ("^=mlx5_1:2", "mlx5_0:1 mlx5_1:1 mlx5_10:1 mlx5_bond_0:1 bnxt_re0:1"),
        ("=mlx5_0,bnxt_re0", "mlx5_0:1 bnxt_re0:1"),
        ("mlx5_0, mlx5_1", "mlx5_0:1"),
        ("=mlx5_0:", "mlx5_0:1"),
        ("=mlx5_0::0:0", "mlx5_0:1"),
        ("=mlx5_1:-1", "mlx5_1:1 mlx5_1:2"),
        ("^", ""),
        ("=^mlx5_1", ""),
        ("=mlx5_1:x", ""),
        ("=MLX5_0", ""),
        ("=mlx5_0;mlx5_1", ""),
        (" mlx5_0", ""),
    ] {
        let new = DeviceList::nccl(list, Release::V2_30_7);
        assert_eq!(taken(|device, port| new.takes(device, port)), expected, "{list:?}");
        let old = DeviceList::nccl(list, Release::V2_26);
        let expected = if list.starts_with("=mlx5_0:") { "" } else { expected };
        assert_eq!(taken(|device, port| old.takes(device, port)), expected, "{list:?}");
    }
    let many = format!("{}mlx5_0", "x,".repeat(32));
    assert_eq!(taken(|d, p| DeviceList::nccl(&many, Release::NEWEST).takes(d, p)), "");
}

#[test]
fn ucx_device_lists() {
    use ucx::Release;
    for (list, v1_18, v1_21, v1_22) in [
        ("mlx5_0:1,bnxt_re0:1", "mlx5_0:1 bnxt_re0:1", "=", "="),
        ("mlx5_0", "", "mlx5_0:1", "="),
        ("^mlx5_1:1", "", "mlx5_0:1 mlx5_1:2 mlx5_10:1 mlx5_bond_0:1 bnxt_re0:1", "="),
        ("^mlx5_1", "", "mlx5_0:1 mlx5_10:1 mlx5_bond_0:1 bnxt_re0:1", "="),
        ("mlx5_[0-1]:1", "", "", "mlx5_0:1 mlx5_1:1"),
        ("mlx5_[1-0]:1", "", "", ""),
        ("mlx5_[0-1]:[1-2]", "", "", ""),
        ("mlx5_1:2,mlx5_[0-0]", "mlx5_1:2", "mlx5_1:2", "mlx5_0:1 mlx5_1:2"),
        ("MLX5_0:1", "", "", ""),
        ("mlx5_1:02", "", "", ""),
    ] {
        let mut before = "";
        for (release, expected) in
            [(Release::V1_18, v1_18), (Release::V1_21, v1_21), (Release::V1_22, v1_22)]
        {
            let devices = Devices::new(list, release);
            let expected = if expected == "=" { before } else { expected };
            assert_eq!(taken(|d, p| devices.takes(d, p)), expected, "{list:?} {release:?}");
            before = expected;
        }
    }
    let ports = |list, release| {
        let devices = Devices::new(list, release);
        PORTS.iter().filter(|(device, port)| devices.takes(device, *port)).count()
    };
    assert_eq!((ports("all", Release::V1_18), ports("all", Release::V1_22)), (6, 6));
    assert_eq!((ports("x,all", Release::V1_18), ports("x,all", Release::V1_22)), (6, 0));
    assert_eq!(ports("mlx5_[0-4294967295]:1", Release::V1_22), 3, "it ends at 128");
}

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
        ((3, 0, 0), Release::V2_30_7),
    ] {
        assert_eq!(Release::of(version.0, version.1, version.2), release, "{version:?}");
    }
    let ucx = |minor| ucx::Release::of(1, minor);
    assert_eq!((ucx(8), ucx(13)), (ucx::Release::V1_15, ucx::Release::V1_15));
    assert_eq!((ucx(17), ucx(20)), (ucx::Release::V1_16, ucx::Release::V1_18));
    assert_eq!((ucx(21), ucx(30)), (ucx::Release::V1_21, ucx::Release::V1_22));
}

/// What NCCL does with the ports of a host: each device with its number and its count of ports.
fn chosen_of_all(devices: &[(&'static str, Option<u32>, u32)], set: &str) -> Vec<Outcome> {
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
    let program = Program::Nccl(nccl::Release::NEWEST);
    let settings = nccl::Settings::new(program, of(&variables(set)));
    let decisions = nccl::choose_all(&ports, &settings);
    decisions.into_iter().map(|decision| decision.outcome).collect()
}

#[test]
fn nccl_has_room_for_32_ports() {
    const NO_ROOM: Outcome = Outcome::Ignored(Why::NoRoom);
    const OVERRUN: Outcome = Outcome::Fails(Why::Overrun);
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
    assert_eq!((&outcomes[31], &outcomes[32], &outcomes[33]), (&taken, &OVERRUN, &NO_ROOM));
    // Ports that are not used take no room.
    let outcomes = chosen_of_all(&[("a", None, 31), ("b", None, 2)], "NCCL_IB_HCA=^b:1");
    assert_eq!(count(&outcomes, &taken), 32);
    assert_eq!(count(&chosen_of_all(&[("a", None, 32)], "(none)"), &taken), 32);
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
    let nvshmem = nccl::Settings::new(Program::Nvshmem, |_| None);
    assert_eq!(nccl::choose(&without, &nvshmem).outcome, Outcome::Taken(1));
}

/// NVSHMEM's copy: variables of its own, no trouble with types, and LIDs on InfiniBand.
#[test]
fn nvshmem() {
    let rows = ["1 4 fe80::1 v1 n", "1 5 fe80::1 v2 n", "1 6 fd00::3 v1 n", "1 7 fd00::3 v2 n"];
    let port =
        |layer| port(&format!("port 1 link_layer {layer} gid_tbl_len 255"), rows.map(row).to_vec());
    let choose = |set: &str, layer| {
        let settings = nccl::Settings::new(Program::Nvshmem, of(&variables(set)));
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

fn home(line: &str, home: Home<'static>) -> Row<'static> {
    Row { home, ..row(line) }
}

fn ours(name: &'static str) -> Home<'static> {
    Home::Ours { name, is_up: true, has_address: true, is_port_s: !name.contains('.') }
}

/// A port with every kind of row that there is to refuse, with the reasons.
#[test]
fn the_recommendation_and_its_reasons() {
    let down = Home::Ours { name: "eth1", is_up: false, has_address: true, is_port_s: true };
    let gone = Home::Ours { name: "eth0", is_up: true, has_address: false, is_port_s: true };
    let rows = vec![
        home("1 0 fe80::1 v1 e", ours("eth0")),
        home("1 1 fe80::1 v2 e", ours("eth0")),
        home("1 2 ::ffff:10.0.0.1 v2 e", Home::Foreign),
        home("1 3 ::ffff:10.0.0.2 v2 e", Home::Unproven { name: None }),
        home("1 4 ::ffff:10.7.0.1 v2 e", ours("eth0.7")),
        home("1 5 ::ffff:127.0.0.1 v2 e", ours("eth0")),
        home("1 6 ::ffff:10.0.0.6 v2 e", down),
        home("1 7 ::ffff:10.0.0.7 v2 e", gone),
        home("1 8 fd00::8 v2 e", ours("eth0")),
        home("1 9 ::ffff:10.0.0.9 v2 e", ours("eth0")),
        home("1 10 ::ffff:10.0.0.10 v2 e", ours("eth0")),
        home("1 11 ::ffff:169.254.1.1 v2 e", ours("eth0")),
        home("1 300 ::ffff:10.0.0.12 v2 e", ours("eth0")),
    ];
    let port = port("port 1 link_layer Ethernet gid_tbl_len 1024", rows);
    let decision = recommend(&port, &Wish::default());
    assert_eq!(decision.outcome, Outcome::Taken(9));
    let reasons: Vec<Reason> = decision.rows.into_iter().map(|(_, reason)| reason).collect();
    let expected = [
        Reason::V1Below(9),
        Reason::LinkLocalBelow(9),
        Reason::Foreign,
        Reason::UnprovenBelow(9),
        Reason::UpperBelow(9),
        Reason::Loopback,
        Reason::InterfaceDown("eth1".into()),
        Reason::AddressGone("eth0".into()),
        Reason::V6Below(9),
        Reason::Recommended,
        Reason::LowerFits(9),
        Reason::LinkLocalBelow(9),
        Reason::BeyondByte,
    ];
    assert_eq!(reasons, expected);
    let with = |wish: Wish| recommend(&port, &wish).outcome.index();
    assert_eq!(with(Wish { family: Some(Family::V6), ..Wish::default() }), Some(8));
    assert_eq!(with(Wish { netdev: Some("eth0.7".into()), ..Wish::default() }), Some(4));
    assert_eq!(with(Wish { gid_type: Some(GidType::ROCE_V1), ..Wish::default() }), Some(0));
    let network = Network { address: "10.0.0.10".parse().unwrap(), bits: 32 };
    assert_eq!(with(Wish { networks: vec![network], ..Wish::default() }), Some(10));
    let elsewhere = Network { address: "192.0.2.0".parse().unwrap(), bits: 24 };
    let both = vec![network, elsewhere];
    assert_eq!(with(Wish { networks: both, ..Wish::default() }), None, "in all of them");
    let nothing = Wish { netdev: Some("eth9".into()), ..Wish::default() };
    assert_eq!(recommend(&port, &nothing).outcome, Outcome::Ignored(Why::NoRow));
    let down = Port { state: PortState::INIT, ..port.clone() };
    let decision = recommend(&down, &Wish::default());
    assert_eq!(decision.outcome, Outcome::Ignored(Why::NotActive(PortState::INIT)));
    assert_eq!(decision.rows[9].1, Reason::PortNotActive(PortState::INIT));
    assert_eq!(caveats(&port, 0), [Caveat::LinkLocal, Caveat::V1]);
    assert_eq!(caveats(&port, 6), [Caveat::Down]);
    assert_eq!(caveats(&port, 9), []);
}

#[test]
fn infiniband_and_iwarp_have_no_versions_to_choose_from() {
    let rows = vec![row("1 0 fe80::b859:9f03:11:2233 ib -"), row("1 1 2001:db8::1 ib -")];
    let infiniband = port("port 1 link_layer InfiniBand gid_tbl_len 8", rows);
    assert_eq!(recommend(&infiniband, &Wish::default()).outcome, Outcome::Taken(0));
    assert_eq!(caveats(&infiniband, 0), []);
    let row = row("1 0 211:2233:4455:: ib eth0");
    let iwarp = port("port 1 link_layer Ethernet gid_tbl_len 1", vec![row]);
    let iwarp = Port { node_type: NodeType::RNIC, ..iwarp };
    assert_eq!(recommend(&iwarp, &Wish::default()).outcome, Outcome::Taken(0));
    assert_eq!(caveats(&iwarp, 0), []);
    let empty = Port { rows: Vec::new(), ..iwarp.clone() };
    assert_eq!(recommend(&empty, &Wish::default()).outcome, Outcome::Ignored(Why::EmptyTable));
    let none = Port { gid_tbl_len: 0, ..empty };
    assert_eq!(recommend(&none, &Wish::default()).outcome, Outcome::Ignored(Why::NoTable));
}

#[test]
fn networks_hold_addresses() {
    let holds = |network: &str, gid: &str| {
        let (address, bits) = network.split_once('/').unwrap();
        let network = Network { address: address.parse().unwrap(), bits: bits.parse().unwrap() };
        network.holds(gid.parse::<Ipv6Addr>().unwrap().into())
    };
    assert!(holds("10.1.2.3/8", "::ffff:10.9.9.9"));
    assert!(!holds("10.1.2.3/32", "::ffff:10.1.2.4"));
    assert!(holds("0.0.0.0/0", "::ffff:10.9.9.9"));
    assert!(!holds("0.0.0.0/0", "fe80::1"));
    assert!(holds("fd00::/200", "fd00::"), "more bits than there are");
    assert!(holds("::/0", "fe80::1"));
    assert!(!holds("fd00::1/128", "fd00::2"));
}

fn any_gid() -> impl Strategy<Value = Gid> {
    let known = prop_oneof![
        Just("::"),
        Just("fe80::1"),
        Just("fe80:0:0:1::1"),
        Just("::ffff:10.0.0.5"),
        Just("::ffff:0.0.0.0"),
        Just("ff0e::ffff:224.0.0.1"),
        Just("fd00::5"),
        Just("211:2233:4455::"),
        Just("fec0:0:7:1:14:500:11:2233"),
    ];
    prop_oneof![
        known.prop_map(|text| text.parse::<Ipv6Addr>().unwrap().into()),
        any::<[u8; 16]>().prop_map(Gid::from_bytes),
    ]
}

fn any_row() -> impl Strategy<Value = Row<'static>> {
    let home = prop_oneof![
        Just(Home::None),
        Just(Home::Foreign),
        Just(Home::Unproven { name: None }),
        Just(Home::Unknown { name: Some("e") }),
        (any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
            |(is_up, has_address, is_port_s)| {
                Home::Ours { name: "e", is_up, has_address, is_port_s }
            }
        ),
    ];
    let index = prop_oneof![8 => 0u32..12, 1 => any::<u32>()];
    let gid_type = prop_oneof![8 => 0u32..3, 1 => any::<u32>()].prop_map(GidType);
    (index, any_gid(), gid_type, any::<bool>(), any::<bool>(), home).prop_map(
        |(index, gid, gid_type, type_is_hidden, has_address_handle, home)| Row {
            index,
            gid,
            gid_type,
            type_is_hidden,
            has_address_handle,
            home,
        },
    )
}

fn any_port() -> impl Strategy<Value = Port<'static>> {
    let length = prop_oneof![8 => 0u32..16, 1 => any::<u32>()];
    (proptest::collection::vec(any_row(), 0..10), length, 0u8..7, 0u8..4, 0u8..9).prop_map(
        |(mut rows, gid_tbl_len, state, layer, node_type)| {
            rows.sort_by_key(|row| row.index);
            rows.dedup_by_key(|row| row.index);
            Port {
                device: "mlx5_0",
                node_type: NodeType(node_type),
                number: 1,
                place: None,
                has_types: true,
                state: PortState(if state > 4 { 4 } else { state }),
                link_layer: LinkLayer(layer),
                gid_tbl_len,
                rows,
            }
        },
    )
}

/// NCCL's walk slot by slot, to compare with the walk of [`nccl`], which skips runs of empty slots.
fn slot_by_slot(port: &Port<'_>, family: Family, version: u8) -> u32 {
    let fam = |i| port.row(i).map_or(Family::V6, Row::family);
    let valid = |i| {
        port.row(i).is_some_and(|row| !row.gid.is_zero() && row.gid.subnet_prefix() != 0xfe80 << 48)
    };
    let version_of = |i| port.row(i).and_then(Row::version);
    let mut current = 0;
    for i in 1..port.gid_tbl_len {
        let is_better = || {
            valid(i)
                && version_of(i) == Some(version)
                && (version_of(current) != version_of(i) || !valid(current))
        };
        if fam(i) == family && (fam(current) != family || is_better()) {
            current = i;
        }
    }
    current
}

proptest! {
    /// Every table and all settings give an answer, with a reason for every row. At most one row is taken:
    /// the row of the outcome.
    #[test]
    fn any_table_has_an_answer(
        port in any_port(),
        values in proptest::collection::vec(
            proptest::option::of("[-^=]?(0x|mlx5_|AF_INET|auto|all|10.0.0.0/|::/)?[0-9]{0,3}[:,/]?[a-z0-9\\[\\]-]{0,4}|\\PC{0,6}"), 21),
    ) {
        let variable = |name: &str| {
            let place = crate::inventory::settings::NAMES.iter().position(|own| *own == name)?;
            values.get(place)?.as_deref()
        };
        let mut decisions = vec![recommend(&port, &Wish::default())];
        for version in 20..31 {
            let program = Program::Nccl(nccl::Release::of(2, version, 7));
            decisions.push(nccl::choose(&port, &nccl::Settings::new(program, variable)));
        }
        decisions.push(nccl::choose(&port, &nccl::Settings::new(Program::Nvshmem, variable)));
        for version in [15, 16, 18, 21, 22] {
            let release = ucx::Release::of(1, version);
            decisions.push(ucx::choose(&port, &ucx::Settings::new(release, variable)));
        }
        for decision in decisions {
            prop_assert_eq!(decision.rows.len(), port.rows.len());
            let taken: Vec<u32> = decision.rows.iter()
                .filter(|(_, reason)| reason.is_taken()).map(|(index, _)| *index).collect();
            let expected: Vec<u32> = decision.outcome.index().into_iter().collect();
            prop_assert_eq!(taken, expected, "{:?}", decision);
            for (_, reason) in &decision.rows {
                prop_assert!(!reason.to_string().is_empty());
            }
        }
    }

    #[test]
    fn nccl_walks_as_if_slot_by_slot(port in any_port(), is_v6: bool, version in 1u8..4) {
        let port = Port {
            state: PortState::ACTIVE,
            link_layer: LinkLayer::ETHERNET,
            gid_tbl_len: port.gid_tbl_len.min(300),
            ..port
        };
        let (family, word) = if is_v6 { (Family::V6, "AF_INET6") } else { (Family::V4, "AF_INET") };
        let version_text = version.to_string();
        let settings = nccl::Settings::new(Program::Nccl(nccl::Release::NEWEST), |name| match name {
            "NCCL_IB_ADDR_FAMILY" => Some(word),
            "NCCL_IB_ROCE_VERSION_NUM" => Some(&version_text),
            _ => None,
        });
        let expected = slot_by_slot(&port, family, version);
        let outcome = nccl::choose(&port, &settings).outcome;
        prop_assert_eq!(outcome, Outcome::of_index(&port, expected.into()));
    }
}

/// A binary search in a long list and a walk through a short one give the same answer.
#[test]
fn a_list_of_any_length() {
    for more in [0, 60] {
        let own = ["b", "a:2", "c:1", "c:3"].map(str::to_owned);
        let list: Vec<String> = (0..more).map(|n| format!("x{n}:1")).chain(own).collect();
        let list = list.join(",");
        for (mark, is_in) in [("", true), ("^", false)] {
            let list = format!("{mark}{list}");
            let settings = nccl::Settings::new(Program::Nvshmem, |name| match name {
                "NVSHMEM_HCA_LIST" => Some(&list),
                "NVSHMEM_ENABLE_NIC_PE_MAPPING" => Some("1"),
                _ => None,
            });
            for (device, number, is_named) in [
                ("b", 1, true),
                ("b", 9, true),
                ("a", 2, true),
                ("a", 1, false),
                ("c", 1, true),
                ("c", 2, false),
                ("c", 3, true),
                ("d", 1, false),
            ] {
                let port = port("port 1 link_layer Ethernet gid_tbl_len 16", vec![]);
                let port = Port { device, number, ..port };
                let outcome = nccl::choose(&port, &settings).outcome;
                let is_left_out = outcome == Outcome::Ignored(Why::NotListed("NVSHMEM_HCA_LIST"));
                assert_eq!(is_left_out, is_named != is_in, "{list} {device}:{number}: {outcome}");
            }
        }
    }
}
