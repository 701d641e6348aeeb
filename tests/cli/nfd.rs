//! `nfd`: what is said of a node, and what is not known of it.

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::run::{Run, uverbs};
use crate::snapshots::{DUAL, Fleet, VLAN, host, port};
use crate::tree::Tree;

/// What Kubernetes allows in the value of a label, and after the slash of its name.
fn is_allowed(text: &str) -> bool {
    let is_end = |own: Option<char>| own.is_some_and(|own| own.is_ascii_alphanumeric());
    let is_inner = |own: char| own.is_ascii_alphanumeric() || "-_.".contains(own);
    text.len() <= 63
        && text.chars().all(is_inner)
        && is_end(text.chars().next())
        && is_end(text.chars().last())
}

/// The labels, without what all begin with.
fn labels(run: &Run) -> BTreeMap<String, String> {
    let lines = run.stdout.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let (name, value) = line.split_once('=').unwrap();
            let name = name.strip_prefix("feature.node.kubernetes.io/").unwrap();
            assert!(is_allowed(name) && is_allowed(value), "{line}");
            (name.strip_prefix("uverbs-").unwrap().to_owned(), value.to_owned())
        })
        .collect()
}

fn of(host: &Value) -> BTreeMap<String, String> {
    labels(&Fleet::new(std::slice::from_ref(host)).uverbs(&["nfd"]))
}

fn expected(all: &[(&str, &str)]) -> BTreeMap<String, String> {
    all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn labels_of_a_tree() {
    let tree = Tree::new();
    tree.with_roce();
    tree.with_iwarp();
    let run = tree.uverbs(&["nfd"]);
    let text = "\
feature.node.kubernetes.io/uverbs-devices=2
feature.node.kubernetes.io/uverbs-ports=2
feature.node.kubernetes.io/uverbs-ports-active=2
feature.node.kubernetes.io/uverbs-roce=true
feature.node.kubernetes.io/uverbs-ib=false
feature.node.kubernetes.io/uverbs-iwarp=true
feature.node.kubernetes.io/uverbs-gbps=100
";
    assert_eq!((run.stdout.as_str(), run.status), (text, 0), "{run:?}");
    assert_eq!(
        labels(&tree.uverbs(&["nfd", "iwarp0:1"])),
        expected(&[
            ("devices", "1"),
            ("ports", "1"),
            ("ports-active", "1"),
            ("roce", "false"),
            ("ib", "false"),
            ("iwarp", "true"),
            ("roce-v2-ipv4", "false"),
            ("gbps", "25"),
        ])
    );
    // Sysfs does not say whether it is InfiniBand or Omni-Path. The second port is down.
    tree.with_infiniband();
    assert_eq!(
        labels(&tree.uverbs(&["nfd", "mlx4_0"])),
        expected(&[
            ("devices", "1"),
            ("ports", "2"),
            ("ports-active", "1"),
            ("roce", "false"),
            ("iwarp", "false"),
            ("roce-v2-ipv4", "false"),
            ("gbps", "56"),
        ])
    );
}

#[test]
fn no_device_is_known_to_have_nothing() {
    assert_eq!(
        labels(&Tree::new().uverbs(&["nfd"])),
        expected(&[
            ("devices", "0"),
            ("ports", "0"),
            ("ports-active", "0"),
            ("roce", "false"),
            ("ib", "false"),
            ("iwarp", "false"),
            ("roce-v2-ipv4", "false"),
        ])
    );
}

/// One that is so is enough to know it. That none is so is known only if each is known.
#[test]
fn what_is_not_known_has_no_label() {
    let good = host("node1", &[("mlx5_0", port(DUAL)), ("mlx5_1", port(VLAN))]);
    let all = of(&good);
    assert_eq!(all["roce-v2-ipv4"], "true");
    assert_eq!(all["gbps"], "100");
    let has = |own: &Value, name: &str| of(own).contains_key(name);
    // A port that could not be read.
    let mut one = good.clone();
    one["devices"][1]["ports"][0]["attributes"] = json!({ "error": "mlx5_1: no", "errno": 5 });
    let found = of(&one);
    for name in ["ports-active", "gbps", "ib", "iwarp"] {
        assert!(!found.contains_key(name), "{name}: {found:?}");
    }
    assert_eq!(
        [&found["devices"], &found["ports"], &found["roce"], &found["roce-v2-ipv4"]],
        ["2", "2", "true", "true"]
    );
    // Nor are there others that have it.
    one["devices"][0]["gids"].as_array_mut().unwrap().truncate(2);
    assert!(!has(&one, "roce-v2-ipv4"));
    one["devices"][1]["ports"][0]["attributes"] =
        good["devices"][1]["ports"][0]["attributes"].clone();
    one["devices"][1]["gids"] = json!([]);
    assert_eq!(of(&one)["roce-v2-ipv4"], "false");
    one["devices"][1]["gids"] = json!({ "error": "mlx5_1: query GID table: no", "errno": 5 });
    assert!(!has(&one, "roce-v2-ipv4"));
    // A port that is down has none.
    let mut one = host("node1", &[("mlx5_0", port(DUAL))]);
    one["devices"][0]["ports"][0]["attributes"][0]["state"] = 1.into();
    let found = of(&one);
    assert_eq!([&found["ports-active"], &found["roce-v2-ipv4"]], ["0", "false"]);
    assert!(!found.contains_key("gbps"));
    // A rate that is not known may be the highest.
    let mut one = good.clone();
    one["devices"][1]["ports"][0]["attributes"][0]["active_speed"] = 0x4000.into();
    assert!(!has(&one, "gbps"));
    // Something of the host, or a device that could not be listed.
    let mut one = good;
    one["problems"] = json!([{ "error": "host: no", "errno": 5 }]);
    assert_eq!(of(&one), expected(&[("roce", "true"), ("roce-v2-ipv4", "true")]));
}

/// Of InfiniBand and Omni-Path the link layer is one.
#[test]
fn protocols_are_told_apart() {
    let mut one = host("node1", &[("x", port(&[]))]);
    one["devices"][0]["ports"][0]["attributes"][0]["link_layer"] = 1.into();
    for (protocol, ib) in [("ib", Some("true")), ("opa", Some("false"))] {
        one["devices"][0]["protocol"] = protocol.into();
        let found = of(&one);
        assert_eq!(found.get("ib").map(String::as_str), ib, "{protocol}");
        assert_eq!(found["roce"], "false", "{protocol}");
    }
    // Ethernet without RoCE: netlink says so, or the table has no slot. A row of RoCE shows that it has it.
    let roce = |protocol: Value, slots: u32, rows| {
        let mut one = host("node1", &[("x", port(rows))]);
        one["devices"][0]["protocol"] = protocol;
        one["devices"][0]["ports"][0]["attributes"][0]["gid_tbl_len"] = slots.into();
        of(&one).remove("roce")
    };
    let (yes, no) = (Some("true".to_owned()), Some("false".to_owned()));
    assert_eq!(roce(json!("roce"), 16, &[]), yes);
    assert_eq!(roce(json!("iw"), 16, &[]), no);
    assert_eq!(roce(Value::Null, 0, &[]), no);
    assert_eq!(roce(Value::Null, 16, DUAL), yes);
    assert_eq!(roce(Value::Null, 16, &[]), None);
}

#[test]
fn labels_expire() {
    let run = Tree::new().uverbs(&["nfd", "--valid-for", "300"]);
    let time = run.stdout.strip_prefix("# +expiry-time=").unwrap().lines().next().unwrap();
    let form: String =
        time.chars().map(|own| if own.is_ascii_digit() { '0' } else { own }).collect();
    assert_eq!(form, "0000-00-00T00:00:00Z");
    // A time that is later is a later one.
    let later = Tree::new().uverbs(&["nfd", "--valid-for", "1e8"]);
    assert!(later.stdout > run.stdout, "{later:?} {run:?}");
    assert!(!Tree::new().uverbs(&["nfd"]).stdout.contains('#'));
}

#[test]
fn a_file_is_replaced_whole_and_has_one_host() {
    let tree = Tree::new();
    tree.with_roce();
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("uverbs");
    for _ in 0..2 {
        let run = tree.uverbs(&["nfd", "--output", path.to_str().unwrap()]);
        assert_eq!((run.stdout.as_str(), run.status), ("", 0), "{run:?}");
        assert_eq!(fs::read_to_string(&path).unwrap(), tree.uverbs(&["nfd"]).stdout);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
    assert_eq!(uverbs(&["nfd", "--json"]).status, 3);
    let two = Fleet::new(&["node1", "node2"].map(|name| host(name, &[("mlx5_0", port(DUAL))])));
    let run = two.uverbs(&["nfd"]);
    assert!(run.status == 3 && run.stderr.contains("nfd knows one host"), "{run:?}");
}
