//! `check`: findings and statuses. Their wording is held by a golden file of the library.

use serde_json::{Value, json};

use crate::snapshots::{DUAL, Fleet, host, port, set};
use crate::tree::Tree;

fn names(answer: &Value) -> Vec<String> {
    let rows = answer["check"].as_array().unwrap().iter();
    rows.map(|row| row["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_clean_host() {
    let fleet = Fleet::new(&[host("node1", &[("mlx5_0", port(DUAL))])]);
    let run = fleet.uverbs(&["check", "--strict"]);
    assert_eq!(run.stdout, "SEVERITY  NAME  DEVICE  PORT  SEEN  ADVICE\n");
    assert_eq!((run.stderr.as_str(), run.status), ("uverbs: nothing is found wrong\n", 0));
    assert_eq!(fleet.json(&["check"]), json!({ "check": [], "problems": [] }));
}

#[test]
fn statuses() {
    let mut warning = host("node1", &[("mlx5_0", port(DUAL))]);
    warning["interfaces"][0]["mtu"] = json!(9000);
    let mut problem = warning.clone();
    problem["interfaces"][0]["is_up"] = json!(false);
    let mut note = host("node1", &[("mlx5_0", port(DUAL))]);
    note["shares_namespaces"] = json!(false);
    for (host, plain, strict) in [(note, 0, 0), (warning, 0, 1), (problem, 2, 2)] {
        let fleet = Fleet::new(&[host]);
        assert_eq!(fleet.uverbs(&["check"]).status, plain);
        assert_eq!(fleet.uverbs(&["check", "--strict"]).status, strict);
    }
}

#[test]
fn a_device_alone() {
    let mut down = port(DUAL);
    down["attributes"][0]["state"] = json!(1);
    let fleet = Fleet::new(&[host("node1", &[("mlx5_0", port(DUAL)), ("mlx5_1", down)])]);
    assert_eq!(fleet.uverbs(&["check"]).status, 2);
    let run = fleet.uverbs(&["check", "--device", "mlx5_0"]);
    assert_eq!(run.status, 0, "{run:?}");
    assert_eq!(names(&fleet.json(&["check", "--device", "mlx5_1"])), ["port-down"]);
    let run = fleet.uverbs(&["check", "--device", "mlx5_9"]);
    assert!(run.stderr.contains("mlx5_9: no such device"), "{run:?}");
    assert_eq!(run.status, 2);
}

#[test]
fn expectations_and_settings() {
    let mut one = host("node1", &[("mlx5_0", port(DUAL))]);
    set(&mut one, "NCCL_IB_GID_INDEX", "2", None);
    set(&mut one, "UCX_NET_DEVICES", "mlx5_7:1", None);
    let fleet = Fleet::new(&[one]);
    assert_eq!(
        names(&fleet.json(&["check", "--link-layer", "infiniband"])),
        ["other-link-layer", "pinned-index-other-type", "list-leaves-none"]
    );
    assert_eq!(
        names(&fleet.json(&["check", "--link-layer", "ethernet"])),
        ["pinned-index-other-type", "list-leaves-none"]
    );
}

#[test]
fn a_tree_without_devices() {
    let tree = Tree::new();
    let run = tree.uverbs(&["check", "--json"]);
    let answer: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(names(&answer), ["no-device"]);
    assert_eq!(run.status, 2);
}
