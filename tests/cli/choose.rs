//! `choose` and `env`, on snapshots.

use serde_json::{Value, json};

use crate::snapshots::{DUAL, Fleet, VLAN, host, port, set};
use crate::tree::Tree;

/// A pod: the host's rows, which are not ours, and our own.
const POD: &[(u32, &str, u32, Option<&str>)] = &[
    (0, "fe80::b859:9fff:fe11:2233", 1, None),
    (1, "fe80::b859:9fff:fe11:2233", 2, None),
    (2, "::ffff:192.168.9.9", 1, None),
    (3, "::ffff:192.168.9.9", 2, None),
    (6, "::ffff:10.1.2.3", 1, Some("eth0")),
    (7, "::ffff:10.1.2.3", 2, Some("eth0")),
];

#[test]
fn a_line_for_each_port_and_what_others_take() {
    let fleet = Fleet::new(&[host("node1", &[("mlx5_0", port(DUAL)), ("mlx5_1", port(VLAN))])]);
    let run = fleet.uverbs(&["choose"]);
    assert_eq!(
        run.stdout,
        "\
HOST   DEVICE  PORT  INDEX  GID              TYPE  NETDEV  NCCL  UCX
node1  mlx5_0  1     3      ::ffff:10.0.0.1  v2    eth0    3     3
node1  mlx5_1  1     5      ::ffff:10.0.0.3  v2    eth0    3     3
"
    );
    assert_eq!(
        run.stderr,
        "\
uverbs: node1: mlx5_1:1: they differ: recommended 5, NCCL 3, UCX 3
uverbs: no single index is right on all ports
uverbs: NCCL: right on all ports: NCCL_IB_GID_INDEX=-1 NCCL_IB_ADDR_RANGE=10.0.0.0/30
uverbs: UCX: right on all ports: UCX_IB_GID_INDEX=auto UCX_IB_ROCE_SUBNETS=10.0.0.0/30
"
    );
    assert_eq!(run.status, 0);
}

#[test]
fn every_row_and_its_reason() {
    let fleet = Fleet::new(&[host("node1", &[("mlx5_0", port(POD))])]);
    let explained = |args: &[&str]| {
        let run = fleet.uverbs(&[&["choose", "--explain", "--no-header"], args].concat());
        let reasons = run.stdout.lines().map(|line| line.rsplit("  ").next().unwrap().to_owned());
        reasons.collect::<Vec<_>>()
    };
    let foreign =
        "its interface is in another network namespace: no interface here has the address";
    assert_eq!(
        explained(&[]),
        [foreign, foreign, foreign, foreign, "RoCE v1; index 7 is v2", "recommended"]
    );
    let nccl = explained(&["--like", "nccl"]);
    assert_eq!(
        nccl[3],
        "taken: the lowest index that fits; but its interface is in another network namespace"
    );
    assert_eq!(nccl[5], "as good, but index 3 is lower");
    let old = explained(&["--like", "nccl-2.20"]);
    assert!(old[0].starts_with("taken: index 0 is the default; but "), "{old:?}");
    let wished = explained(&["--ip", "10.9.9.9"]);
    assert_eq!(wished[5], "not of the network that was asked for");
    assert_eq!(wished[6], "not used: no row is fit");
}

#[test]
fn wishes() {
    let fleet = Fleet::new(&[host("node1", &[("mlx5_1", port(VLAN))])]);
    let index =
        |args: &[&str]| fleet.json(&[&["choose"], args].concat())["choose"][0]["index"].clone();
    assert_eq!(index(&["--ip", "192.168.7.1"]), 3);
    assert_eq!(index(&["--cidr", "192.168.0.0/16"]), 3);
    assert_eq!(index(&["--netdev", "eth0.7"]), 3);
    assert_eq!(index(&["--type", "v1"]), 0);
    assert_eq!(index(&["--family", "ipv6"]), 1);
    assert_eq!(index(&["--family", "ipv6", "--cidr", "10.0.0.0/8"]), json!(null));
    assert_eq!(index(&["--like", "ucx-1.13"]), 3);
}

#[test]
fn the_status_tells_whether_a_port_that_was_named_can_be_used() {
    let mut down = port(DUAL);
    down["attributes"][0]["state"] = json!(1);
    let fleet = Fleet::new(&[host("node1", &[("mlx5_0", port(DUAL)), ("mlx5_1", down)])]);
    let status = |args: &[&str]| fleet.uverbs(&[&["choose"], args].concat()).status;
    assert_eq!(status(&[]), 0);
    assert_eq!(status(&["mlx5_0:1"]), 0);
    assert_eq!(status(&["mlx5_1:1"]), 1);
    assert_eq!(status(&["mlx5_1"]), 1);
    assert_eq!(status(&["mlx5_0:1", "mlx5_1:1"]), 1);
    assert_eq!(status(&["mlx5_0", "mlx5_1"]), 1);
    assert_eq!(status(&["mlx5_0", "mlx5_9"]), 1);
    assert_eq!(status(&["--ip", "10.9.9.9"]), 1);
    let run = fleet.uverbs(&["choose", "mlx5_1:1"]);
    assert!(
        run.stdout.contains("node1  mlx5_1  1     -      -    -     -       -     -"),
        "{run:?}"
    );
    let why = "node1: mlx5_1:1: no usable GID: not used: the port is down, not active";
    assert!(run.stderr.contains(why), "{run:?}");
}

#[test]
fn a_fleet_and_those_that_differ() {
    let hosts = ["node1", "node2", "node3"].map(|name| {
        let rows = if name == "node3" { VLAN } else { DUAL };
        host(name, &[("mlx5_0", port(rows))])
    });
    let fits = Fleet::new(&hosts).json(&["choose"])["fits_all"].clone();
    assert_eq!(
        fits,
        json!({
            "hosts": 3, "index": null,
            "nccl": { "NCCL_IB_GID_INDEX": "-1", "NCCL_IB_ADDR_RANGE": "10.0.0.0/30" },
            "ucx": { "UCX_IB_GID_INDEX": "auto", "UCX_IB_ROCE_SUBNETS": "10.0.0.0/30" },
            "differing": { "node3": ["mlx5_0:1 uses 5 (most use 3)"] },
        })
    );
    let fits = Fleet::new(&hosts[..2]).json(&["choose"])["fits_all"].clone();
    assert_eq!(fits["index"], 3);
    assert_eq!(fits["nccl"], json!({ "NCCL_IB_GID_INDEX": "3" }));
    assert_eq!(fits["differing"], json!({}));
}

#[test]
fn variables_for_every_program_and_in_every_form() {
    let fleet = Fleet::new(&[host("node1", &[("mlx5_0", port(DUAL)), ("mlx5_1", port(DUAL))])]);
    let text = |args: &[&str]| {
        let run = fleet.uverbs(&[&["env"], args].concat());
        assert_eq!(run.status, 0, "{run:?}");
        run.stdout
    };
    assert_eq!(text(&["nccl"]), "export NCCL_IB_GID_INDEX=3\n");
    assert_eq!(text(&["ucx"]), "export UCX_IB_GID_INDEX=3\n");
    assert_eq!(text(&["nvshmem"]), "export NVSHMEM_IB_GID_INDEX=3\n");
    assert_eq!(
        text(&["nccl", "--format", "kubernetes"]),
        "- name: NCCL_IB_GID_INDEX\n  value: \"3\"\n"
    );
    let json: Value = serde_json::from_str(&text(&["nccl", "--json"])).unwrap();
    assert_eq!(json["env"], json!({ "NCCL_IB_GID_INDEX": "3" }));
    assert_eq!(json["way"], "index");
    // A port that is not wanted is left out by the list of devices.
    assert_eq!(
        text(&["nccl", "mlx5_1:1"]),
        "export NCCL_IB_HCA='=mlx5_1:1'\nexport NCCL_IB_GID_INDEX=3\n"
    );
    assert_eq!(
        text(&["ucx", "mlx5_1"]),
        "export UCX_NET_DEVICES=mlx5_1:1\nexport UCX_IB_GID_INDEX=3\n"
    );
}

#[test]
fn where_no_single_index_is_right() {
    let fleet = Fleet::new(&[host("node1", &[("mlx5_0", port(DUAL)), ("mlx5_1", port(VLAN))])]);
    let run = fleet.uverbs(&["env", "nccl"]);
    assert_eq!(run.stdout, "export NCCL_IB_GID_INDEX=-1\nexport NCCL_IB_ADDR_RANGE=10.0.0.0/30\n");
    assert!(run.stderr.contains("no single NCCL_IB_GID_INDEX is right"), "{run:?}");
    assert!(run.stderr.contains("3 on node1: mlx5_0:1; 5 on node1: mlx5_1:1"), "{run:?}");
    // UCX leaves out a port whose slot 0 is empty, unless an index is set.
    let fleet = Fleet::new(&[host("pod", &[("a", port(&POD[4..])), ("b", port(DUAL))])]);
    let run = fleet.uverbs(&["env", "ucx"]);
    assert_eq!((run.stdout.as_str(), run.status), ("", 1), "{run:?}");
    assert!(run.stderr.contains("no setting makes UCX use the right GID"), "{run:?}");
    let fleet = Fleet::new(&[host("pod", &[("a", port(&POD[..2]))])]);
    let run = fleet.uverbs(&["env", "nccl"]);
    assert!(run.stderr.contains("no port has a usable GID"), "{run:?}");
    assert_eq!(run.status, 1);
}

#[test]
fn what_is_set_now_is_compared() {
    let mut one = host("node1", &[("mlx5_0", port(DUAL)), ("mlx5_1", port(VLAN))]);
    set(&mut one, "NCCL_IB_GID_INDEX", "2", None);
    set(&mut one, "NCCL_IB_GID_INDEX", "3", Some("/etc/nccl.conf"));
    let run = Fleet::new(&[one]).uverbs(&["env", "nccl"]);
    assert!(run.stderr.contains("NCCL_IB_GID_INDEX=2 is of type roce_v1 on mlx5_0:1"), "{run:?}");
    assert!(run.stderr.contains("NCCL_IB_GID_INDEX=2 is empty on mlx5_1:1"), "{run:?}");
    // What is set and would have a say is put back.
    let mut one = host("node1", &[("mlx5_0", port(DUAL)), ("mlx5_1", port(DUAL))]);
    set(&mut one, "UCX_IB_ROCE_SUBNETS", "10.0.0.0/8", None);
    let run = Fleet::new(&[one]).uverbs(&["env", "ucx"]);
    assert_eq!(run.stdout, "export UCX_IB_GID_INDEX=3\nexport UCX_IB_ROCE_SUBNETS=all\n");
    let mut two = host("node2", &[("mlx5_0", port(VLAN))]);
    set(&mut two, "NCCL_IB_GID_INDEX", "4", Some("/etc/nccl.conf"));
    let now = Fleet::new(&[two]).json(&["env", "nccl"])["now"][0].clone();
    assert_eq!(now["name"], "pinned-index-empty");
    assert_eq!(now["seen"], "NCCL_IB_GID_INDEX=4 (/etc/nccl.conf) is empty on mlx5_0:1");
}

/// Of a sysfs tree no interfaces are known, which is said.
#[test]
fn a_tree() {
    let tree = Tree::new();
    tree.with_roce();
    tree.with_infiniband();
    let answer = tree.uverbs(&["choose", "--json"]);
    let answer: Value = serde_json::from_str(&answer.stdout).unwrap();
    let rows = answer["choose"].as_array().unwrap();
    let index = |place: usize| rows[place]["index"].clone();
    // mlx4_0:1, its second port that is down, mlx5_0:1.
    assert_eq!((index(0), index(1), index(2)), (json!(0), json!(null), json!(3)));
    assert_eq!(
        rows[2]["caveats"],
        json!(["whether its interface is in this network namespace is not known"])
    );
    assert_eq!(rows[2]["netdev"], json!(null));
    let named = tree.uverbs(&["choose", "--netdev", "eth0.7", "--no-header", "mlx5_0"]);
    assert!(named.stdout.starts_with("mlx5_0  1  10"), "{named:?}");
}
