//! `ports`, from sysfs.

use serde_json::json;

use crate::snapshots::{DUAL, Fleet, host};
use crate::tree::Tree;

#[test]
fn ports_of_all_kinds() {
    let tree = Tree::new();
    tree.with_roce();
    tree.with_infiniband();
    tree.with_iwarp();
    tree.with_switch();
    assert_eq!(
        tree.answer(&["ports"]),
        "\
DEVICE  PORT  STATE   PHYS_STATE  LINK        MTU  GBPS  WIDTH  SPEED  LID  NETDEV  PORT_GUID
iwarp0  1     active  link_up     ethernet    -    25    1X     EDR    0    -       -
mlx4_0  1     active  link_up     infiniband  -    56    4X     FDR    17   -       0x0002c90300040001
mlx4_0  2     down    polling     infiniband  -    -     4X     -      0    -       -
mlx5_0  1     active  link_up     ethernet    -    100   4X     EDR    0    -       0x001122fffe334455
sw0     0     active  link_up     infiniband  -    100   4X     EDR    0    -       0x0002c903000c0000
"
    );
}

#[test]
fn json() {
    let tree = Tree::new();
    tree.with_infiniband();
    let expected = json!({
        "ports": [{
            "device": "mlx4_0", "port": 1, "state": "active", "phys_state": "link_up",
            "link_layer": "infiniband", "max_mtu": null, "active_mtu": null, "lid": 17,
            "sm_lid": 1, "sm_sl": 0, "lmc": 0, "gid_tbl_len": 2, "pkey_tbl_len": 1, "active_width": "4X",
            "active_speed": "FDR", "rate_gbps": 56, "effective_gbps": null, "ifindex": null,
            "netdev": null, "port_guid": "0x0002c90300040001", "port_cap_flags": "0x4010000",
            "port_cap_flags2": null, "max_msg_sz": null, "max_vl": null, "bad_pkey_cntr": null,
            "qkey_viol_cntr": null, "subnet_timeout": null, "init_type_reply": null,
            "source": "sysfs",
        }],
        "problems": [],
    });
    assert_eq!(tree.json(&["ports", "mlx4_0:1"]), expected);
    let down = tree.json(&["ports", "mlx4_0:2"]);
    assert_eq!(down["ports"][0]["state"], "down");
    assert_eq!(down["ports"][0]["port_guid"], json!(null));
}

#[test]
fn what_this_version_does_not_know_keeps_its_number() {
    let tree = Tree::new();
    let port = tree.with_roce().port_again(1);
    port.file("state", "9: NEW");
    port.file("phys_state", "11: <unknown>");
    port.file("rate", "2.5 Gb/sec (1X SDR)");
    let answer = tree.json(&["ports"]);
    let row = &answer["ports"][0];
    assert_eq!(row["state"], "unknown(9)");
    assert_eq!(row["phys_state"], "unknown(11)");
    assert_eq!(row["rate_gbps"], json!(2.5));
    port.file("rate", "1600 Gb/sec (4X ZDR)");
    let answer = tree.json(&["ports"]);
    let row = &answer["ports"][0];
    assert_eq!((&row["active_speed"], &row["rate_gbps"]), (&json!(null), &json!(null)));
    assert_eq!(row["active_width"], "4X");
    // So Linux 6.1 says XDR: what it does not know is SDR, and the same is said of SDR.
    let port = tree.with_infiniband().port_again(1);
    port.file("rate", "10 Gb/sec (4X SDR)");
    let row = &tree.json(&["ports", "mlx4_0:1"])["ports"][0];
    assert_eq!((&row["active_speed"], &row["rate_gbps"]), (&json!(null), &json!(null)));
    assert_eq!(row["active_width"], "4X");
}

#[test]
fn a_port_without_a_pkey_table_is_a_port() {
    let tree = Tree::new();
    tree.with_iwarp();
    let answer = tree.json(&["ports"]);
    assert_eq!(answer["ports"][0]["pkey_tbl_len"], 0);
    assert_eq!(answer["ports"][0]["gid_tbl_len"], 1);
}

#[test]
fn a_rate_that_cannot_be_read_is_a_problem() {
    let tree = Tree::new();
    let port = tree.with_roce().port_again(1);
    // The kernel refuses this where it does not know the width.
    port.refuse("rate");
    assert_eq!(tree.json(&["ports"])["ports"][0]["rate_gbps"], json!(null));
    port.remove("rate");
    port.file("rate/x", "");
    let run = tree.uverbs(&["ports"]);
    assert!(run.status == 3 && run.stderr.contains("Is a directory (errno 21)"), "{run:?}");
    // The effective rate, by ioctl.
    let mut node = host("node1", &[("mlx5_0", crate::snapshots::port(DUAL))]);
    let text = "mlx5_0: query speed of port 1: Input/output error (errno 5)";
    node["devices"][0]["ports"][0]["effective"] = json!({ "error": text, "errno": 5 });
    let fleet = Fleet::new(&[node]);
    let run = fleet.uverbs(&["ports", "--no-header"]);
    assert_eq!((run.status, run.stdout.lines().count()), (3, 1), "{run:?}");
    assert!(run.stderr.contains(text), "{run:?}");
    let run = fleet.uverbs(&["check"]);
    assert!(run.stdout.contains("port-rate-unreadable"), "{run:?}");
}

/// What `ibv_devinfo` and `ibstat` show of a port and the short table does not.
#[test]
fn all_of_a_port() {
    let mut one = crate::snapshots::port(DUAL);
    let attributes = &mut one["attributes"][0];
    for (key, value) in [("max_vl_num", 4), ("max_msg_sz", 1 << 30), ("bad_pkey_cntr", 7)] {
        attributes[key] = value.into();
    }
    let mut other = one.clone();
    other["attributes"][0]["max_vl_num"] = 6.into();
    let fleet = Fleet::new(&[host("node1", &[("mlx5_0", one), ("mlx5_1", other)])]);
    let ports = &fleet.json(&["ports"])["ports"];
    assert_eq!((&ports[0]["max_vl"], &ports[1]["max_vl"]), (&json!(8), &json!("unknown(6)")));
    assert_eq!((&ports[0]["max_msg_sz"], &ports[0]["bad_pkey_cntr"]), (&json!(1 << 30), &json!(7)));
    let wide = fleet.uverbs(&["ports", "--wide"]).stdout;
    let short = fleet.uverbs(&["ports"]).stdout;
    for (line, short) in wide.lines().zip(short.lines()) {
        assert!(line.starts_with(short), "{line}");
    }
    let cells: Vec<Vec<&str>> =
        wide.lines().map(|line| line.split_whitespace().collect()).collect();
    assert!(cells.iter().all(|row| row.len() == cells[0].len()), "{wide}");
    let of = |name: &str| cells[1][cells[0].iter().position(|own| *own == name).unwrap()];
    let shown = ["MAX_MTU", "VLS", "MAX_MSG", "GIDS", "CAP_MASK", "SM_LID", "LMC"].map(of);
    assert_eq!(shown, ["4096", "8", "1073741824", "255", "0x0", "0", "0"]);
}
