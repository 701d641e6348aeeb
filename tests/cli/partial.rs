//! What is said of that which was not read, or is not known: of a device, of a port, of one host of many.

use serde_json::{Value, json};

use crate::snapshots::{DUAL, Fleet, VLAN, host, port, set};
use crate::tree::Tree;

/// A snapshot of a host of which a device was listed and not read.
fn with_other(devices: &[(&str, Value)]) -> Fleet {
    let mut own = host("h", devices);
    own["others"] = json!([{
        "name": "mlx5_1", "index": 7, "node_type": 1, "node_guid": "0x0002c90300000009",
        "sys_image_guid": "0x0002c90300000009", "fw_version": null, "protocol": "roce",
        "port_count": 1, "driver": null, "node": null, "node_is_unread": false,
    }]);
    Fleet::new(&[own])
}

#[test]
fn a_device_that_was_only_listed_was_not_read() {
    const SAID: &str = "h: mlx5_1: was not read when the snapshot was written\n";
    let fleet = with_other(&[("mlx5_0", port(DUAL))]);
    for command in [
        &["gids"][..],
        &["ports"],
        &["guids"],
        &["devices"],
        &["choose"],
        &["check"],
        &["env", "nccl"],
        &["env", "ucx"],
    ] {
        for names in [&[][..], &["mlx5_1"], &["mlx5_0", "mlx5_1"]] {
            let run = fleet.uverbs(&[command, names].concat());
            assert_eq!((run.status, run.stderr.contains(SAID)), (3, true), "{names:?} {run:?}");
            assert!(!run.stderr.contains("no GID in what was asked for"), "{run:?}");
            assert!(!run.stdout.contains("export"), "{run:?}");
            assert!(!run.stdout.contains("host-unreadable"), "{run:?}");
        }
        // Nothing of the other is unknown.
        let run = fleet.uverbs(&[command, &["mlx5_0"]].concat());
        assert_eq!(run.status, 0, "{run:?}");
    }
    let run = fleet.uverbs(&["check", "mlx5_1"]);
    let last = "nothing was checked: nothing that is asked for was read\n";
    assert!(run.stderr.ends_with(last), "{run:?}");
    let run = fleet.uverbs(&["check"]);
    let last = "no problems found in what was looked at: 1 device, 1 port, 4 GIDs; not everything that \
                is asked for was read\n";
    assert!(run.stderr.ends_with(last), "{run:?}");
    let run = with_other(&[]).uverbs(&["check"]);
    assert_eq!((run.status, run.stdout.lines().count()), (3, 2), "{run:?}");
    assert!(run.stdout.contains("not looked at: any device"), "{run:?}");
    assert_eq!(
        run.stderr,
        format!("uverbs: {SAID}uverbs: nothing was checked: nothing that is asked for was read\n")
    );
}

#[test]
fn what_is_not_known_of_a_fleet_is_not_none() {
    let good = |name: &str| host(name, &[("mlx5_0", port(DUAL)), ("mlx5_1", port(DUAL))]);
    // A row whose type is kept back may be the right one.
    let mut unknown = host("h2", &[("mlx5_0", port(&DUAL[3..]))]);
    let row = &mut unknown["devices"][0]["gids"][0];
    (row["gid_type"], row["type_is_hidden"]) = (u32::MAX.into(), true.into());
    (row["netdev"], row["source"]) = (Value::Null, "sysfs".into());
    row["netdev_is_unread"] = true.into();
    let one = |name: &str| host(name, &[("mlx5_0", port(DUAL))]);
    let run = Fleet::new(&[one("h1"), unknown.clone(), one("h3")]).uverbs(&["choose"]);
    assert!(!run.stderr.contains("uses none"), "{run:?}");
    assert!(run.stderr.ends_with("; no host is known to differ\n"), "{run:?}");
    assert!(run.stderr.contains("all 2 ports known to be usable of 3 on 3 hosts"), "{run:?}");
    let hosts = [one("h1"), unknown.clone(), one("h3")];
    let run = Fleet::new(&hosts).uverbs(&["choose", "--netdev", "eth0"]);
    let known = "the 2 ports of 3 on 3 hosts that are known to be usable with --netdev eth0,";
    assert!(run.stderr.contains(known), "{run:?}");
    let fleet = Fleet::new(&[unknown]);
    let run = fleet.uverbs(&["choose"]);
    let said = "no port that was read is known to have a usable GID\n";
    assert!(run.stderr.contains(said), "{run:?}");
    assert_eq!(fleet.json(&["choose"])["choose"][0]["differs"], false);
    // A table that was not read, and a port that is not there.
    let mut bad = good("h3");
    bad["devices"][1]["gids"] = json!({ "error": "mlx5_1: query GID table: no", "errno": 5 });
    let run = Fleet::new(&[good("h1"), good("h2"), bad]).uverbs(&["choose"]);
    assert!(run.stderr.ends_with("; no host that was read differs\n"), "{run:?}");
    let run = Fleet::new(&[good("h1"), good("h2"), one("h3")]).uverbs(&["choose"]);
    assert!(run.stderr.contains("h3 differs: has no mlx5_1:1\n"), "{run:?}");
    assert!(run.stderr.ends_with("; 1 host differs\n"), "{run:?}");
}

/// What is set is compared with what is right by the filters, on the ports that are asked for.
#[test]
fn env_says_of_a_setting_what_it_prints() {
    let mut own = host("h", &[("mlx5_0", port(DUAL)), ("mlx5_1", port(VLAN))]);
    set(&mut own, "NCCL_IB_GID_INDEX", "3", None);
    let fleet = Fleet::new(&[own]);
    let run = fleet.uverbs(&["env", "nccl", "mlx5_1", "--netdev", "eth0.7"]);
    assert!(run.stdout.ends_with("export NCCL_IB_GID_INDEX=3\n"), "{run:?}");
    assert!(!run.stderr.contains("right here"), "{run:?}");
    let run = fleet.uverbs(&["env", "nccl", "mlx5_0"]);
    assert!(!run.stderr.contains("mlx5_1"), "{run:?}");
    assert_eq!(fleet.json(&["env", "nccl", "mlx5_0"])["now"], json!([]));
    let run = fleet.uverbs(&["env", "nccl", "mlx5_1"]);
    assert!(run.stderr.contains("index 5 is right here"), "{run:?}");
}

#[test]
fn a_named_device_without_ports_has_no_usable_gid() {
    let mut own = host("h", &[("mlx5_0", port(&[]))]);
    own["devices"][0]["ports"] = json!([]);
    let fleet = Fleet::new(&[own]);
    let run = fleet.uverbs(&["choose", "mlx5_0"]);
    assert_eq!(run.status, 1, "{run:?}");
    assert!(run.stderr.contains("mlx5_0: no usable GID: it has no port\n"), "{run:?}");
    let run = fleet.uverbs(&["env", "nccl", "mlx5_0"]);
    assert_eq!((run.status, run.stdout.as_str()), (1, ""), "{run:?}");
    assert_eq!(fleet.uverbs(&["choose"]).status, 0);
}

/// A port without a GID, beside one that has some.
#[test]
fn that_there_is_no_gid_is_said_of_what_is_asked_for() {
    let tree = Tree::new();
    let device = tree.device("mlx5_0", "1: CA", 0);
    device.port(1, "Ethernet", "100 Gb/sec (4X EDR)", 2);
    device.port(2, "Ethernet", "100 Gb/sec (4X EDR)", 2).gid(
        0,
        "fe80:0000:0000:0000:0011:22ff:fe33:4455",
        "RoCE v2",
        Some("eth0"),
    );
    let run = tree.uverbs(&["gids", "mlx5_0:1"]);
    assert_eq!(run.stderr, "uverbs: no GID in what was asked for\n", "{run:?}");
}

/// Sysfs does not prove whose an interface is.
#[test]
fn choose_says_what_is_not_proven_of_a_row() {
    let tree = Tree::new();
    tree.with_roce();
    let run = tree.uverbs(&["choose"]);
    let said =
        "uverbs: mlx5_0:1: 3: it is not known whether its interface is in this network namespace\n";
    assert!(run.stderr.contains(said), "{run:?}");
    assert_eq!(run.status, 0);
    // There it is a reason.
    assert!(!tree.uverbs(&["choose", "--explain"]).stderr.contains(said));
}

#[test]
fn json_says_of_a_gid_what_could_not_be_read() {
    let mut own = host("h", &[("mlx5_0", port(&DUAL[2..]))]);
    let row = &mut own["devices"][0]["gids"][1];
    (row["netdev"], row["source"]) = (Value::Null, "sysfs".into());
    row["netdev_is_unread"] = true.into();
    let rows = Fleet::new(&[own]).json(&["gids"]);
    assert_eq!(rows["gids"][1]["netdev_is_unread"], true);
    assert_eq!(rows["gids"][1].get("type_is_unread"), None);
    assert_eq!(rows["gids"][0].get("netdev_is_unread"), None);
}
