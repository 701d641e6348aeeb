//! `expect`, `check --expect` and `check --format nagios`.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::conforms::conforms;
use crate::run::{Run, finish, from, program, uverbs};
use crate::snapshots::{DUAL, Fleet, VLAN, fleet_with_everything, host, port, set};
use crate::tree::Tree;

/// A file with what is expected.
fn file(folder: &TempDir, text: &str) -> PathBuf {
    named(folder, "host.toml", text)
}

fn named(folder: &TempDir, name: &str, text: &str) -> PathBuf {
    let path = folder.path().join(name);
    fs::write(&path, text).unwrap();
    path
}

/// Checks a host by a file.
fn check(host: &Path, expected: &Path, more: &[&str]) -> Run {
    finish(program().arg("check").args(from([host])).arg("--expect").arg(expected).args(more))
}

/// The findings of such a check that are deviations.
fn deviations(host: &Path, expected: &Path) -> Vec<Value> {
    let run = check(host, expected, &["--json"]);
    let document: Value = serde_json::from_str(&run.stdout).unwrap();
    conforms("check.json", &document);
    let rows = document["check"].as_array().unwrap().iter();
    rows.filter(|row| row["name"].as_str().unwrap().starts_with("expect-")).cloned().collect()
}

/// A host with a place in the machine and firmware.
fn node(name: &str, address: &str, firmware: &str) -> Value {
    let gid = format!("::ffff:{address}");
    let rows = [
        (0, "fe80::11:22ff:fe33:4455", 2, Some("eth0")),
        (1, gid.as_str(), 1, Some("eth0")),
        (2, gid.as_str(), 2, Some("eth0")),
    ];
    let mut own = host(name, &[("mlx5_0", port(&rows))]);
    own["devices"][0]["fw_version"] = json!(firmware);
    own["devices"][0]["hardware"] = json!({
        "board_id": "MT_0000000838", "numa_node": 1,
        "pci": {
            "address": "0000:17:00.0", "id": null, "physical": null,
            "link": { "speed": 320, "width": 16 }, "max_link": { "speed": 320, "width": 16 },
        },
    });
    own
}

const WRITTEN: &str = r#"
[[devices]]
driver = "mlx5"
board = "MT_0000000838"
count = 1  # devices of this group
firmware = ["28.39.1002", "28.40.1000"]
numa_node = 1
pcie_speed = 32  # GT/s
pcie_width = 16  # lanes
ports = 1
# of each port:
link_layer = "ethernet"
state = "active"
rate = 100  # Gb/s
width = 4  # lanes
mtu = 1024  # bytes: the RDMA MTU in use
interface = "eth0"
roce_v2_ipv4 = "10.0.0.0/23"  # a RoCE v2 GID is in one of these
gid_index = 2  # which uverbs recommends
nccl_index = 2  # which the newest known NCCL takes, or "none"
ucx_index = 2  # which the newest known UCX takes, or "none"
"#;

#[test]
fn the_file_of_two_hosts() {
    let fleet = Fleet::new(&[
        node("node1", "10.0.0.1", "28.39.1002"),
        node("node2", "10.0.1.1", "28.40.1000"),
    ]);
    let run = fleet.uverbs(&["expect"]);
    assert_eq!((run.stderr.as_str(), run.status), ("", 0));
    let (header, groups) = run.stdout.split_once("only_these_devices = true\n").unwrap();
    assert_eq!(groups, WRITTEN);
    assert!(header.starts_with(
        "# What a good host looks like, by `uverbs expect` 0.1.0 from 2 hosts (node1, node2).\n"
    ));
    // Nothing is of one host.
    assert!(!run.stdout.contains("10.0.0.1") && !run.stdout.contains("0x00"), "{run:?}");
    let folder = TempDir::new().unwrap();
    let expected = file(&folder, &run.stdout);
    for number in 0..2 {
        let run = check(&fleet.file(number), &expected, &["--strict"]);
        assert_eq!((run.stdout.lines().count(), run.status), (1, 0), "{run:?}");
    }
}

/// What groups cannot select by is said, and a group is never one of all devices.
#[test]
fn boards_and_drivers_that_were_not_read() {
    let folder = TempDir::new().unwrap();
    let good = node("node1", "10.0.0.1", "1");
    let mut unread = node("node2", "10.0.0.2", "1");
    unread["devices"][0]["driver"] = Value::Null;
    unread["devices"][0]["hardware"] = Value::Null;
    let mut other = good.clone();
    other["devices"][0]["name"] = json!("rxe0");
    let fleet = Fleet::new(&[good, unread, other]);
    let made = finish(program().arg("expect").args(from([fleet.file(0), fleet.file(1)])));
    let said = "\n[[devices]]\n# driver is left out: it could not be read everywhere\n\
                # board is left out: it could not be read everywhere\nname = \"mlx5_0\"\n";
    assert!(made.stdout.contains(said), "{made:?}");
    let expected = file(&folder, &made.stdout);
    assert_eq!(deviations(&fleet.file(1), &expected), [] as [Value; 0]);
    assert_eq!(deviations(&fleet.file(2), &expected).len(), 2);
    let run = finish(program().arg("expect").args(from([fleet.file(0)])));
    assert!(!run.stdout.contains("board is left out"), "{run:?}");
}

/// P_Keys that not all have are left out, and that is said.
#[test]
fn pkeys_that_not_all_have() {
    let of_infiniband = |name: &str, pkeys: Value| {
        let mut own = node(name, "10.0.0.1", "1");
        let port = &mut own["devices"][0]["ports"][0];
        port["attributes"][0]["link_layer"] = json!(1);
        port["pkeys"] = pkeys;
        own
    };
    let some = of_infiniband("node1", json!([[0, 0xffff]]));
    let expected = |other: Value| {
        Fleet::new(&[some.clone(), of_infiniband("node2", other)]).uverbs(&["expect"]).stdout
    };
    assert!(expected(json!([[0, 0xffff], [1, 0x8001]])).contains("\npkeys = 0xffff"));
    for other in [json!([]), json!([[0, 0x8001]])] {
        let said = "\n# pkeys is left out: ports have nothing in common\n";
        assert!(expected(other.clone()).contains(said), "{other}");
    }
}

/// Whatever a host is, it fits what was made from it.
#[test]
fn every_host_fits_its_own_file() {
    let folder = TempDir::new().unwrap();
    let mut odd = host("node3", &[("mlx5_0", port(VLAN)), ("mlx5_1", port(DUAL))]);
    odd["devices"][1]["driver"] = json!(77);
    odd["list_failure"] = json!({ "error": "host: no", "errno": 5 });
    odd["problems"] = json!([odd["list_failure"]]);
    set(&mut odd, "NCCL_IB_HCA", "mlx5_1", None);
    let fleets = [
        fleet_with_everything(),
        Fleet::new(&[host("node4", &[]), odd]),
        Fleet::new(&[node("node1", "10.0.0.1", "1"), node("node2", "10.9.9.9", "2")]),
    ];
    // It says why it does not say which devices there are.
    let open = fleets[1].uverbs(&["expect"]).stdout;
    assert!(
        open.contains("\nonly_these_devices = false  # a host could not be read whole\n"),
        "{open}"
    );
    assert!(open.contains("\n# count is left out: a host could not be read whole\n"), "{open}");
    for fleet in &fleets {
        let both = file(&folder, &fleet.uverbs(&["expect"]).stdout);
        for number in 0..2 {
            let own = fleet.file(number);
            assert_eq!(deviations(&own, &both), [] as [Value; 0]);
            let run = finish(program().arg("expect").args(from([&own])));
            let alone = named(&folder, "alone.toml", &run.stdout);
            assert_eq!(deviations(&own, &alone), [] as [Value; 0], "{run:?}");
        }
    }
    let tree = Tree::new();
    tree.with_roce();
    tree.with_infiniband();
    tree.with_iwarp();
    tree.with_switch();
    let run = tree.uverbs(&["expect"]);
    assert!(run.stdout.contains("# mtu is left out: it could not be read everywhere\n"), "{run:?}");
    let expected = file(&folder, &run.stdout);
    let run = tree.uverbs(&["check", "--expect", expected.to_str().unwrap()]);
    assert!(!run.stdout.contains("expect-"), "{run:?}");
}

#[test]
fn deviations_say_what_is_seen_and_wanted() {
    let folder = TempDir::new().unwrap();
    let expected = file(&folder, WRITTEN);
    let mut other = node("node3", "10.0.2.1", "28.38.1000");
    other["devices"][0]["ports"][0]["attributes"][0]["active_speed"] = json!(1);
    let fleet = Fleet::new(&[other]);
    let found = deviations(&fleet.file(0), &expected);
    let told: Vec<[&str; 3]> = found
        .iter()
        .map(|row| ["name", "seen", "wanted"].map(|key| row[key].as_str().unwrap()))
        .collect();
    assert_eq!(
        told,
        [
            ["expect-firmware", "firmware: 28.38.1000", "28.39.1002 or 28.40.1000"],
            ["expect-rate", "rate: 10 Gb/s", "100 Gb/s"],
            ["expect-ipv4", "IPv4 addresses with a RoCE v2 GID: 10.0.2.1", "one in 10.0.0.0/23"],
        ]
    );
    let run = check(&fleet.file(0), &expected, &[]);
    assert_eq!(run.status, 2);
    assert!(run.stdout.contains("rate: 10 Gb/s, expected 100 Gb/s"), "{run:?}");
    assert!(run.stderr.contains("3 problems found"), "{run:?}");
    // Other findings have nothing that was wanted.
    let mut down = node("node1", "10.0.0.1", "28.39.1002");
    down["interfaces"][0]["is_up"] = json!(false);
    let row = Fleet::new(&[down]).json(&["check"])["check"][0].clone();
    assert!(row.as_object().unwrap().get("wanted").is_none(), "{row}");
}

/// What could not be read is not as expected.
#[test]
fn what_could_not_be_read() {
    let folder = TempDir::new().unwrap();
    let expected = file(&folder, "[[devices]]\nmtu = 4096\npkeys = 0xffff\nrate = 100\n");
    let tree = Tree::new();
    tree.with_roce();
    let run = tree.uverbs(&["check", "--expect", expected.to_str().unwrap()]);
    assert!(run.stdout.contains("not known: RDMA MTU, P_Keys"), "{run:?}");
    assert_eq!(run.status, 2);
    // A file that could not be read holds for none, and hides no other.
    let fleet = Fleet::new(&[node("node1", "10.0.0.1", "1"), json!({})]);
    let run = fleet.uverbs(&["expect"]);
    assert!(run.stdout.contains("from 1 host (node1)") && run.status == 3, "{run:?}");
    let run = uverbs(&["expect", "--from", "/nosuch"]);
    assert_eq!((run.stdout.as_str(), run.status), ("", 3), "{run:?}");
}

/// Only what is asked for is compared, and what is not asked for is not missing.
#[test]
fn a_device_alone() {
    let folder = TempDir::new().unwrap();
    let two = host("node1", &[("mlx5_0", port(DUAL)), ("mlx5_1", port(DUAL))]);
    let fleet = Fleet::new(&[two]);
    let expected = file(&folder, "[[devices]]\ndriver = 'mlx5'\ncount = 2\nrate = 200\n");
    let names = |words: &[&str]| {
        let run = check(&fleet.file(0), &expected, &[words, &["--json"]].concat());
        let document: Value = serde_json::from_str(&run.stdout).unwrap();
        let rows = document["check"].as_array().unwrap().iter();
        rows.map(|row| format!("{} {}", row["name"], row["device"])).collect::<Vec<_>>().join(", ")
    };
    assert_eq!(names(&["mlx5_0"]), "\"not-checked\" null, \"expect-rate\" \"mlx5_0\"");
    assert_eq!(names(&[]), "\"expect-rate\" \"mlx5_0\", \"expect-rate\" \"mlx5_1\"");
}

/// A name that is listed is known to be there, also where not all could be listed: if it is not asked for, or of an
/// earlier group.
#[test]
fn names_that_are_listed_though_others_may_not_be() {
    let folder = TempDir::new().unwrap();
    let groups = "only_these_devices = false\n[[devices]]\nname = ['mlx5_0']\n[[devices]]\n";
    let expected = file(&folder, &format!("{groups}name = ['mlx5_0', 'mlx5_1']\ncount = 1\n"));
    let mut two = host("node1", &[("mlx5_0", port(DUAL)), ("mlx5_1", port(DUAL))]);
    two["list_failure"] = json!({ "error": "host: no", "errno": 5 });
    two["problems"] = json!([two["list_failure"]]);
    let fleet = Fleet::new(&[two]);
    for words in [&[][..], &["mlx5_0"], &["mlx5_1"]] {
        let run = check(&fleet.file(0), &expected, words);
        assert!(!run.stdout.contains("expect-"), "{words:?}: {run:?}");
    }
}

/// If only some devices are named, it is known of the others only how many there are.
#[test]
fn a_count_of_devices_that_are_not_all_named() {
    let folder = TempDir::new().unwrap();
    let two = host("node1", &[("mlx5_0", port(DUAL)), ("mlx5_1", port(DUAL))]);
    let fleet = Fleet::new(&[two]);
    let seen = |count: u32, words: &[&str]| {
        let groups = format!("only_these_devices = false\n[[devices]]\ncount = {count}\n");
        let expected = file(&folder, &groups);
        let run = check(&fleet.file(0), &expected, &[words, &["--json"]].concat());
        let document: Value = serde_json::from_str(&run.stdout).unwrap();
        let rows = document["check"].as_array().unwrap().iter();
        let mut rows = rows.filter(|row| row["name"] == "expect-devices");
        rows.next().map(|row| row["seen"].as_str().unwrap().to_owned())
    };
    assert_eq!(seen(2, &["mlx5_0"]), None);
    assert_eq!(seen(3, &["mlx5_0"]).as_deref(), Some("at most 2 devices of any device"));
    assert_eq!(seen(3, &[]).as_deref(), Some("2 devices of any device"));
}

/// A slip in the file is no problem of the host, and nothing is as expected then.
#[test]
fn a_file_that_is_wrong() {
    let folder = TempDir::new().unwrap();
    let fleet = Fleet::new(&[node("node1", "10.0.0.1", "1")]);
    let expected = file(&folder, "[[devices]]\nraet = 100\n");
    let name = expected.display().to_string();
    let run = check(&fleet.file(0), &expected, &[]);
    let said =
        format!("uverbs: {name}:2: raet: no such key; allowed are driver, board, name, count,");
    assert!(run.stderr.starts_with(&said), "{run:?}");
    assert!(run.stderr.ends_with("\nuverbs: nothing was checked\n") && run.status == 3, "{run:?}");
    let document: Value =
        serde_json::from_str(&check(&fleet.file(0), &expected, &["--json"]).stdout).unwrap();
    conforms("check.json", &document);
    assert_eq!(document["check"], json!([]));
    assert_eq!(document["problems"][0]["errno"], 22);
    let run = check(&fleet.file(0), &expected, &["--format", "nagios"]);
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert_eq!(lines[0], "UVERBS UNKNOWN - nothing was checked");
    assert!(lines[1].starts_with(&format!("unknown: {name}:2: raet:")), "{run:?}");
    assert_eq!((lines.len(), run.stderr.as_str(), run.status), (2, "", 3));
    for (text, said) in [
        (vec![b'#'; (1 << 20) + 1], "longer than 1 MiB"),
        (vec![0xff], "invalid utf-8"),
        (Vec::new(), "host.toml:1: nothing is expected"),
    ] {
        fs::write(&expected, text).unwrap();
        let run = check(&fleet.file(0), &expected, &[]);
        assert!(run.stderr.contains(said) && run.status == 3, "{run:?}");
    }
    let run = check(&fleet.file(0), &folder.path().join("none.toml"), &[]);
    assert!(run.stderr.contains("none.toml: No such file") && run.status == 3, "{run:?}");
}

/// What check --expect would not read is no success.
#[test]
fn what_is_expected_may_be_too_long() {
    let mut own = node("node1", "10.0.0.1", "1");
    let device = own["devices"][0].clone();
    let devices = (0..3000).map(|number| {
        let mut device = device.clone();
        device["name"] = json!(format!("mlx5_{number}"));
        device["hardware"]["board_id"] = json!(format!("board_{number}"));
        device
    });
    own["devices"] = devices.collect();
    let fleet = Fleet::new(&[own]);
    let run = fleet.uverbs(&["expect"]);
    assert!(run.stdout.len() > 1 << 20, "{} bytes", run.stdout.len());
    assert!(run.stderr.contains("longer than 1 MiB: check --expect does not read it"), "{run:?}");
    assert_eq!(run.status, 3);
    let folder = TempDir::new().unwrap();
    let run = check(&fleet.file(0), &file(&folder, &run.stdout), &[]);
    assert!(run.stderr.contains("longer than 1 MiB") && run.status == 3, "{run:?}");
}

#[test]
fn for_nagios() {
    let good = host("node1", &[("mlx5_0", port(DUAL))]);
    let mut warning = good.clone();
    warning["interfaces"][0]["mtu"] = json!(9000);
    let mut problem = warning.clone();
    problem["interfaces"][0]["is_up"] = json!(false);
    problem["problems"] = json!([{ "error": "a|b\nc", "errno": 5 }]);
    let said = |hosts: &[&Value]| {
        let hosts: Vec<Value> = hosts.iter().copied().cloned().collect();
        let run = Fleet::new(&hosts).uverbs(&["check", "--format", "nagios"]);
        assert_eq!(run.stderr, "");
        let lines: Vec<String> = run.stdout.lines().map(str::to_owned).collect();
        (lines, run.status)
    };
    let (lines, status) = said(&[&good]);
    assert_eq!(lines, ["UVERBS OK - no problems found: 1 device, 1 port, 4 GIDs"]);
    assert_eq!(status, 0);
    let (lines, status) = said(&[&warning]);
    assert_eq!(lines[0], "UVERBS WARNING - 1 warning: node1: mtu-mismatch mlx5_0:1");
    assert!(lines[1].starts_with("warning: node1: mtu-mismatch mlx5_0:1: eth0 has MTU 9000"));
    assert_eq!((lines.len(), status), (2, 1));
    let (lines, status) = said(&[&problem]);
    assert_eq!(
        lines[0],
        "UVERBS CRITICAL - 2 problems, 1 warning: node1: host-unreadable, node1: netdev-down mlx5_0:1"
    );
    assert_eq!(
        lines[1],
        "problem: node1: host-unreadable: a/b\\nc; what else could be read was looked at"
    );
    assert_eq!((lines.len(), status), (4, 2));
    let mut other = problem.clone();
    other["host"] = json!("node2");
    let (lines, status) = said(&[&problem, &other]);
    assert!(lines[0].ends_with(" and 1 more"), "{lines:?}");
    assert_eq!(status, 2);
    // A note is none of the states.
    let mut note = good.clone();
    note["shares_namespaces"] = json!(false);
    let (lines, status) = said(&[&note]);
    assert!(lines[0].starts_with("UVERBS OK - ") && lines[1].starts_with("note: "), "{lines:?}");
    assert_eq!(status, 0);
    let (lines, status) = said(&[&good, &json!({})]);
    assert!(lines[0].starts_with("UVERBS UNKNOWN - no problems found: 1 device"), "{lines:?}");
    assert!(lines[1].starts_with("unknown: ") && lines[1].contains("schema_version"), "{lines:?}");
    assert_eq!(status, 3);
    let run = uverbs(&["check", "mlx5_9", "--format", "nagios", "--from", "/nosuch"]);
    assert!(run.stdout.starts_with("UVERBS UNKNOWN - nothing was checked"), "{run:?}");
}
