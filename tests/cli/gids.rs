//! `gids` and `gid`: rows, filters, formats.

use serde_json::{Value, json};

use crate::snapshots::{Fleet, VLAN, host, port};
use crate::tree::{LINK_LOCAL, Tree};

/// Device, port and index of each row.
fn places(answer: &Value) -> Vec<String> {
    let place = |row: &Value| {
        format!("{}:{} {}", row["device"].as_str().unwrap(), row["port"], row["index"])
    };
    answer["gids"].as_array().unwrap().iter().map(place).collect()
}

#[test]
fn a_sparse_table_keeps_its_indices() {
    let tree = Tree::new();
    tree.with_roce();
    assert_eq!(
        tree.answer(&["gids"]),
        "\
DEVICE  PORT  INDEX  GID                      TYPE  IPV4          NETDEV
mlx5_0  1     0      fe80::11:22ff:fe33:4455  v1    -             eth0?
mlx5_0  1     1      fe80::11:22ff:fe33:4455  v2    -             eth0?
mlx5_0  1     3      ::ffff:192.168.77.1      v2    192.168.77.1  eth0?
mlx5_0  1     10     ::ffff:10.7.0.1          v2    10.7.0.1      eth0.7?
"
    );
}

#[test]
fn json_has_the_promised_keys_and_no_others() {
    let tree = Tree::new();
    tree.with_roce();
    let row = |index: u32, gid: &str, gid_type: &str, ipv4: Option<&str>| {
        let name = if index == 10 { "eth0.7" } else { "eth0" };
        json!({
            "device": "mlx5_0", "port": 1, "index": index, "gid": gid, "gid_type": gid_type,
            "ipv4": ipv4, "ifindex": null, "netdev": null, "sysfs_netdev": name, "source": "sysfs",
        })
    };
    let expected = json!({
        "gids": [
            row(0, "fe80::11:22ff:fe33:4455", "roce_v1", None),
            row(1, "fe80::11:22ff:fe33:4455", "roce_v2", None),
            row(3, "::ffff:192.168.77.1", "roce_v2", Some("192.168.77.1")),
            row(10, "::ffff:10.7.0.1", "roce_v2", Some("10.7.0.1")),
        ],
        "problems": [],
    });
    assert_eq!(tree.json(&["gids"]), expected);
    let by_format = tree.answer(&["gids", "--format", "json"]);
    assert_eq!(serde_json::from_str::<Value>(&by_format).unwrap(), expected);
    assert!(by_format.ends_with("]}\n"));
    // The order of the keys as well, for those who read with their eyes.
    assert!(by_format.starts_with(
        r#"{"gids":[{"device":"mlx5_0","port":1,"index":0,"gid":"fe80::11:22ff:fe33:4455","gid_type":"roce_v1","ipv4":null,"ifindex":null,"netdev":null,"sysfs_netdev":"eth0","source":"sysfs"},"#
    ));
}

#[test]
fn infiniband_is_no_roce() {
    let tree = Tree::new();
    tree.with_infiniband();
    assert_eq!(tree.answer(&["gids", "--no-header"]), "mlx4_0  1  0  fe80::2:c903:4:1  ib  -  -\n");
}

#[test]
fn devices_come_in_natural_order_whatever_the_selectors_order() {
    let tree = Tree::new();
    tree.with_roce();
    tree.with_switch();
    for name in ["mlx5_10", "mlx5_2"] {
        let port = tree.device(name, "1: CA", 20).port(1, "Ethernet", "25 Gb/sec (1X EDR)", 1);
        port.gid(0, LINK_LOCAL, "RoCE v2", None);
    }
    let selected = ["gids", "mlx5_10", "sw0/0", "mlx5_2:1", "mlx5_10:1"];
    assert_eq!(places(&tree.json(&selected)), ["mlx5_2:1 0", "mlx5_10:1 0", "sw0:0 0"]);
    assert_eq!(tree.json(&["gids"])["gids"].as_array().unwrap().len(), 7);
}

#[test]
fn a_port_alone() {
    let tree = Tree::new();
    let device = tree.with_infiniband();
    let gid = "fe80:0000:0000:0000:0002:c903:0004:0002";
    device.port_again(2).gid(0, gid, "IB/RoCE v1", None);
    assert_eq!(places(&tree.json(&["gids", "mlx4_0"])), ["mlx4_0:1 0", "mlx4_0:2 0"]);
    for selector in ["mlx4_0:2", "mlx4_0/2"] {
        assert_eq!(places(&tree.json(&["gids", selector])), ["mlx4_0:2 0"]);
    }
}

#[test]
fn filters() {
    let tree = Tree::new();
    tree.with_roce();
    tree.with_infiniband();
    let found = |filter: &[&str]| places(&tree.json(&[&["gids"], filter].concat()));
    assert_eq!(found(&["--type", "v1"]), ["mlx5_0:1 0"]);
    assert_eq!(found(&["--type", "v2"]), ["mlx5_0:1 1", "mlx5_0:1 3", "mlx5_0:1 10"]);
    assert_eq!(found(&["--type", "ib"]), ["mlx4_0:1 0"]);
    assert_eq!(found(&["--ip", "192.168.77.1"]), ["mlx5_0:1 3"]);
    assert_eq!(found(&["--ip", "::ffff:192.168.77.1"]), ["mlx5_0:1 3"]);
    assert_eq!(found(&["--ip", "fe80::11:22ff:fe33:4455"]), ["mlx5_0:1 0", "mlx5_0:1 1"]);
    assert_eq!(found(&["--cidr", "10.0.0.0/8"]), ["mlx5_0:1 10"]);
    assert_eq!(found(&["--cidr", "0.0.0.0/0"]), ["mlx5_0:1 3", "mlx5_0:1 10"]);
    assert_eq!(found(&["--cidr", "fe80::/64", "--type", "v2"]), ["mlx5_0:1 1"]);
    // In a tree of another host its own word of the interface counts.
    assert_eq!(found(&["--netdev", "eth0"]), ["mlx5_0:1 0", "mlx5_0:1 1", "mlx5_0:1 3"]);
    assert_eq!(found(&["--netdev", "eth0.7"]), ["mlx5_0:1 10"]);
    // So it does in a snapshot of it.
    let snapshot = serde_json::from_str(&tree.uverbs(&["snapshot"]).stdout).unwrap();
    let run = Fleet::new(&[snapshot]).uverbs(&["gids", "--netdev", "eth0", "--json"]);
    let document: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(places(&document), ["mlx5_0:1 0", "mlx5_0:1 1", "mlx5_0:1 3"]);
}

/// Of a table with a gap nothing is outside.
#[test]
fn a_slot_that_is_missing_is_not_outside_the_table() {
    let tree = Tree::new();
    let port = tree.with_roce().port_again(1);
    let gid = |index: &str| tree.uverbs(&["gid", "mlx5_0:1", index]);
    let run = gid("99");
    assert!(run.status == 1 && run.stderr.contains("outside the port's table"), "{run:?}");
    port.remove("gids/5");
    let run = gid("5");
    assert!(run.status == 3 && run.stderr.contains("slots with a gap"), "{run:?}");
    port.remove("gids/0");
    let run = tree.uverbs(&["guids"]);
    assert!(run.status == 3 && run.stderr.contains("slots with a gap"), "{run:?}");
}

/// Nothing found is an answer, with a heading and a line that names what was asked for.
#[test]
fn a_filter_that_matches_nothing() {
    let tree = Tree::new();
    tree.with_roce();
    for filter in [
        &["--ip", "10.9.9.9"] as &[&str],
        &["--netdev", "eth1"],
        &["--type", "ib"],
        &["--cidr", "10.9.0.0/16", "--type", "v2"],
    ] {
        let run = tree.uverbs(&[&["gids"], filter].concat());
        assert_eq!(run.stdout, "DEVICE  PORT  INDEX  GID  TYPE  IPV4  NETDEV\n");
        let mut words: Vec<&str> = filter.to_vec();
        words.rotate_left(filter.len() - 2);
        let said =
            format!("uverbs: no GID matches {}; `uverbs gids` shows all GIDs\n", words.join(" "));
        assert_eq!((run.stderr, run.status), (said, 1));
        let run = tree.uverbs(&[&["gids", "--json"], filter].concat());
        assert_eq!((run.stdout.as_str(), run.status), ("{\"gids\":[],\"problems\":[]}\n", 1));
        // A host without a device has none that matches either.
        let run = Tree::new().uverbs(&[&["gids"], filter].concat());
        assert!(run.stderr.contains("no RDMA device") && run.status == 1, "{run:?}");
    }
    // One host that has it is enough.
    let fleet = Fleet::new(&["node1", "node2"].map(|name| host(name, &[("mlx5_0", port(VLAN))])));
    let run = fleet.uverbs(&["gids", "--ip", "10.0.0.3"]);
    assert_eq!((run.stderr.as_str(), run.status), ("", 0), "{run:?}");
}

/// Nothing was named, so that nothing is missed.
#[test]
fn tables_without_an_entry() {
    let fleet = Fleet::new(&[host("node1", &[("mlx5_0", port(&[]))])]);
    for args in [&["gids"] as &[&str], &["gids", "mlx5_0"]] {
        let run = fleet.uverbs(args);
        let said = "uverbs: no GID in what was asked for\n";
        assert_eq!((run.stderr.as_str(), run.status), (said, 0), "{run:?}");
    }
}

/// As the kernel of `MLNX_OFED` does with rows of other namespaces.
#[test]
fn rows_whose_types_sysfs_keeps_back_are_named_where_they_may_be_meant() {
    let tree = Tree::new();
    let port = tree.with_roce().port_again(1);
    port.refuse("gid_attrs/types/3");
    port.refuse("gid_attrs/ndevs/3");
    let table = tree.answer(&["gids", "--ip", "192.168.77.1", "--no-header"]);
    assert_eq!(table, "mlx5_0  1  3  ::ffff:192.168.77.1  ?  192.168.77.1  ?\n");
    let shown = ["mlx5_0:1 1", "mlx5_0:1 10"];
    let run = tree.uverbs(&["gids", "--type", "v2", "--json"]);
    assert_eq!(places(&serde_json::from_str(&run.stdout).unwrap()), shown, "{run:?}");
    let note = "--type: not shown, as sysfs does not show their types: mlx5_0:1 3";
    assert!(run.status == 1 && run.stderr.contains(note), "{run:?}");
    // It is RoCE, and it is of no other address.
    let run = tree.uverbs(&["gids", "--type", "ib"]);
    assert!(run.status == 1 && run.stderr.contains("no GID matches --type ib"), "{run:?}");
    tree.answer(&["gids", "--cidr", "10.0.0.0/8"]);
    // The interface is kept back too.
    let run = tree.uverbs(&["gids", "--netdev", "eth0.7", "--json"]);
    assert_eq!(places(&serde_json::from_str(&run.stdout).unwrap()), ["mlx5_0:1 10"], "{run:?}");
    let note = "--netdev eth0.7: not shown, as it is not known whether the interface is theirs: \
                mlx5_0:1 3";
    assert!(run.status == 1 && run.stderr.contains(note), "{run:?}");
    // Words that this version does not know are no RoCE v2.
    port.remove("gid_attrs/types/3");
    port.file("gid_attrs/types/3", "RoCE v3");
    tree.answer(&["gids", "--type", "v2"]);
}

#[test]
fn rows_that_may_be_an_interface_s_are_named() {
    let mut one = host("node1", &[("mlx5_0", port(VLAN))]);
    let row = &mut one["devices"][0]["gids"][2];
    row["netdev"] = Value::Null;
    let run = Fleet::new(&[one.clone()]).uverbs(&["gids", "--netdev", "eth0.7"]);
    let note = "node1: --netdev eth0.7: not shown, as it is not known whether the interface is \
                theirs: mlx5_0:1 3";
    assert!(run.status == 1 && run.stderr.contains(note), "{run:?}");
    // Its index is that of eth0.7, so it is not eth0's.
    let run = Fleet::new(&[one.clone()]).uverbs(&["gids", "--netdev", "eth0", "--no-header"]);
    assert_eq!((run.status, run.stderr.as_str()), (0, ""), "{run:?}");
    assert_eq!(run.stdout.lines().count(), 3);
    // Nor is a row of eth0.7's index whose address eth0.7 does not have: pods often have equal indices.
    one["devices"][0]["gids"][2]["gid"] = "::ffff:192.168.9.9".into();
    let run = Fleet::new(&[one]).uverbs(&["gids", "--netdev", "eth0.7", "--no-header"]);
    assert!(
        run.status == 1 && run.stderr.starts_with("uverbs: no GID matches --netdev"),
        "{run:?}"
    );
}

#[test]
fn why_the_interface_of_a_port_is_not_known_is_said_of_its_rows() {
    let mut one = host("node1", &[("mlx5_0", port(VLAN)), ("mlx5_1", port(VLAN))]);
    let text = "mlx5_0: find the network interface of port 1: Input/output error (errno 5)";
    let own = &mut one["devices"][0]["ports"][0];
    own["netdev"] = Value::Null;
    own["netdev_problem"] = json!({ "error": text, "errno": 5 });
    for row in one["devices"][0]["gids"].as_array_mut().unwrap() {
        row["netdev"] = Value::Null;
    }
    let fleet = Fleet::new(&[one.clone()]);
    for asked in [&["gids"][..], &["gids", "--format", "show_gids"], &["gid", "mlx5_0:1", "3"]] {
        let run = fleet.uverbs(asked);
        assert_eq!((run.status, run.stderr), (3, format!("uverbs: node1: {text}\n")), "{asked:?}");
    }
    let answer = fleet.uverbs(&["gids", "mlx5_0", "--json"]);
    let answer: Value = serde_json::from_str(&answer.stdout).unwrap();
    assert_eq!(answer["problems"][0]["device"], "mlx5_0");
    // Of other rows nothing is not known.
    for asked in [&["gids", "mlx5_1"][..], &["gid", "mlx5_1:1", "3"]] {
        assert_eq!(fleet.uverbs(asked).status, 0, "{asked:?}");
    }
    // Nor of rows whose own interface is proven, here or elsewhere, whatever their port says.
    let rows = one["devices"][0]["gids"].as_array_mut().unwrap();
    rows.truncate(2);
    rows[0]["netdev"] = json!({ "index": 4, "name": "eth0" });
    rows[1]["netdev_is_elsewhere"] = true.into();
    let run = Fleet::new(&[one]).uverbs(&["gids", "mlx5_0"]);
    assert_eq!((run.status, run.stderr.as_str()), (0, ""), "{run:?}");
}

#[test]
fn an_interface_that_is_not_there_is_missed() {
    let fleet = Fleet::new(&[host("node1", &[("mlx5_0", port(VLAN))])]);
    let run = fleet.uverbs(&["gids", "--netdev", "eth9", "--json"]);
    assert!(
        run.status == 1 && run.stderr.contains("no interface of this network namespace"),
        "{run:?}"
    );
}

#[test]
fn a_device_that_leads_nowhere_is_not_absent() {
    let tree = Tree::new();
    tree.with_roce();
    let class = tree.path().join("class/infiniband");
    std::os::unix::fs::symlink("../../devices/nowhere", class.join("mlx5_1")).unwrap();
    for command in ["devices", "gids", "ports", "guids", "choose"] {
        let run = tree.uverbs(&[command]);
        assert!(run.status == 3 && run.stderr.contains("mlx5_1"), "{run:?}");
    }
    let run = tree.uverbs(&["env", "nccl"]);
    assert_eq!((run.stdout.as_str(), run.status), ("", 3), "{run:?}");
    let snapshot = tree.uverbs(&["snapshot"]);
    let document: Value = serde_json::from_str(&snapshot.stdout).unwrap();
    assert_eq!(document["unlisted"][0]["device"], "mlx5_1");
    let file = tree.path().join("own.json");
    std::fs::write(&file, snapshot.stdout).unwrap();
    let from = file.to_str().unwrap();
    let run = crate::run::uverbs(&["gids", "mlx5_1", "--from", from]);
    assert!(run.status == 3 && run.stderr.contains("No such file"), "{run:?}");
}

#[test]
fn a_row_of_a_port_that_is_not_there_is_refused() {
    let mut one = host("node1", &[("mlx5_0", port(VLAN))]);
    one["devices"][0]["gids"][3]["port"] = 7.into();
    let run = Fleet::new(&[one]).uverbs(&["gids"]);
    assert!(run.status == 3 && run.stderr.contains("a row of a port that the device"), "{run:?}");
}

#[test]
fn hosts_of_one_name_keep_apart() {
    let one = host("node1", &[("mlx5_0", port(VLAN))]);
    let fleet = Fleet::new(&[one.clone(), one]);
    let answer = fleet.json(&["gids", "--ip", "10.0.0.3"]);
    let names: Vec<&str> = answer["gids"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["host"].as_str().unwrap())
        .collect();
    assert_eq!(names[0], "node1");
    assert!(names.len() == 2 && names[1].ends_with("node1.json"), "{names:?}");
}

#[test]
fn show_gids_byte_for_byte() {
    let tree = Tree::new();
    tree.with_infiniband();
    let port = tree.with_roce().port_again(1);
    // The script leaves out a GID with only the prefix. It shows a GID that begins with zeros with an address.
    port.gid(4, "fe80:0000:0000:0000:0000:0000:0000:0000", "RoCE v2", Some("eth0"));
    port.gid(5, "0000:0000:0000:0000:0000:0000:0000:0001", "RoCE v2", Some("eth0"));
    let expected = [
        "DEV\tPORT\tINDEX\tGID\t\t\t\t\tIPv4  \t\tVER\tDEV",
        "---\t----\t-----\t---\t\t\t\t\t------------  \t---\t---",
        "mlx4_0\t1\t0\tfe80:0000:0000:0000:0002:c903:0004:0001\t\t\tv1\t",
        "mlx5_0\t1\t0\tfe80:0000:0000:0000:0011:22ff:fe33:4455\t\t\tv1\t",
        "mlx5_0\t1\t1\tfe80:0000:0000:0000:0011:22ff:fe33:4455\t\t\tv2\t",
        "mlx5_0\t1\t3\t0000:0000:0000:0000:0000:ffff:c0a8:4d01\t192.168.77.1  \tv2\t",
        "mlx5_0\t1\t5\t0000:0000:0000:0000:0000:0000:0000:0001\t0.0.0.1  \tv2\t",
        "mlx5_0\t1\t10\t0000:0000:0000:0000:0000:ffff:0a07:0001\t10.7.0.1  \tv2\t",
        "n_gids_found=6",
        "",
    ];
    assert_eq!(tree.answer(&["gids", "--format", "show_gids"]), expected.join("\n"));
    // Unlike the script, which has them in the order of their bytes.
    for (number, name) in [(6, "mlx5_10"), (7, "mlx5_2")] {
        let port = tree.device(name, "1: CA", number).port(1, "Ethernet", "25 Gb/sec (1X EDR)", 1);
        port.gid(0, "fe80:0000:0000:0000:0000:0000:0000:0001", "RoCE v2", None);
    }
    let all = tree.answer(&["gids", "--format", "show_gids"]);
    let at = |name: &str| all.find(&format!("\n{name}\t")).unwrap();
    assert!(at("mlx5_2") < at("mlx5_10"), "{all}");
}

#[test]
fn show_gids_of_nothing() {
    let run = Tree::new().uverbs(&["gids", "--format", "show_gids"]);
    assert_eq!(run.stdout.lines().count(), 3);
    assert!(run.stdout.ends_with("---\nn_gids_found=0\n"));
    assert_eq!(run.status, 0);
}

#[test]
fn one_gid() {
    let tree = Tree::new();
    tree.with_roce();
    assert_eq!(
        tree.answer(&["gid", "mlx5_0:1", "3"]),
        "\
DEVICE  PORT  INDEX  GID                  TYPE  IPV4          NETDEV
mlx5_0  1     3      ::ffff:192.168.77.1  v2    192.168.77.1  eth0?
"
    );
    let all = tree.json(&["gids"]);
    let one = tree.json(&["gid", "mlx5_0/1", "10"]);
    assert_eq!(one, json!({ "gids": [all["gids"][3]], "problems": [] }));
}

#[test]
fn an_empty_slot_is_no_row_and_no_problem_and_yet_not_what_was_wanted() {
    let tree = Tree::new();
    tree.with_roce();
    let run = tree.uverbs(&["gid", "mlx5_0:1", "2"]);
    assert_eq!(run.stdout, "DEVICE  PORT  INDEX  GID  TYPE  IPV4  NETDEV\n");
    assert_eq!(run.stderr, "uverbs: mlx5_0:1: slot 2 is empty\n");
    assert_eq!(run.status, 1);
    let run = tree.uverbs(&["gid", "mlx5_0:1", "2", "--json"]);
    assert_eq!(run.stdout, "{\"gids\":[],\"problems\":[]}\n");
    assert_eq!(run.stderr, "uverbs: mlx5_0:1: slot 2 is empty\n");
    assert_eq!(run.status, 1);
}

#[test]
fn an_index_outside_the_table() {
    let tree = Tree::new();
    tree.with_roce();
    let run = tree.uverbs(&["gid", "mlx5_0:1", "12", "--json"]);
    let answer: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(answer["gids"], json!([]));
    assert_eq!(answer["problems"][0]["device"], "mlx5_0");
    assert_eq!(answer["problems"][0]["errno"], 22);
    assert_eq!((run.stderr.as_str(), run.status), ("", 1));
}

/// Sysfs says "IB/RoCE v1" of iWARP as well; the kernel's ioctl says IB.
#[test]
fn iwarp_is_not_roce() {
    let tree = Tree::new();
    tree.with_iwarp();
    let run = tree.uverbs(&["gids", "--json"]);
    let answer: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(answer["gids"][0]["gid_type"], "ib", "{run:?}");
}
