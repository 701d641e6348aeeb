//! `cdi`, from sysfs: which nodes a container gets.

use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use crate::run::uverbs;
use crate::tree::{Tree, write};

/// Nodes of `ib_umad` for both devices, and that of the connection manager.
fn with_all_nodes(tree: &Tree) {
    let class = tree.path().join("class/infiniband_mad");
    write(class.join("abi_version"), "5");
    for (name, device, number) in [
        ("umad10", "mlx4_0", "231:10"),
        ("umad9", "mlx4_0", "231:9"),
        ("issm9", "mlx4_0", "231:73"),
        ("umad0", "mlx5_0", "231:0"),
        ("issm0", "mlx5_0", "231:64"),
    ] {
        write(class.join(name).join("ibdev"), device);
        write(class.join(name).join("dev"), number);
    }
    write(tree.path().join("class/misc/rdma_cm/dev"), "10:58");
}

/// Devices with their nodes.
fn devices(text: &str) -> Vec<(String, Vec<String>)> {
    let document: Value = serde_json::from_str(text).unwrap();
    let text = |own: &Value| own.as_str().unwrap().to_owned();
    let all = document["devices"].as_array().unwrap().iter();
    all.map(|own| {
        let nodes = own["containerEdits"]["deviceNodes"].as_array().unwrap().iter();
        let nodes = nodes.map(|node| text(&node["path"]).replace("/dev/infiniband/", ""));
        (text(&own["name"]), nodes.collect())
    })
    .collect()
}

#[test]
fn each_device_has_its_nodes() {
    let tree = Tree::new();
    tree.with_roce();
    tree.with_infiniband();
    with_all_nodes(&tree);
    let run = tree.uverbs(&["cdi"]);
    let expected = r#"{
  "cdiVersion": "0.3.0",
  "kind": "uverbs/rdma",
  "devices": [
    {"name": "mlx4_0", "containerEdits": {"deviceNodes": [
      {"path": "/dev/infiniband/uverbs4", "permissions": "rw"},
      {"path": "/dev/infiniband/issm9", "permissions": "rw"},
      {"path": "/dev/infiniband/umad9", "permissions": "rw"},
      {"path": "/dev/infiniband/umad10", "permissions": "rw"},
      {"path": "/dev/infiniband/rdma_cm", "permissions": "rw"}
    ]}},
    {"name": "mlx5_0", "containerEdits": {"deviceNodes": [
      {"path": "/dev/infiniband/uverbs0", "permissions": "rw"},
      {"path": "/dev/infiniband/issm0", "permissions": "rw"},
      {"path": "/dev/infiniband/umad0", "permissions": "rw"},
      {"path": "/dev/infiniband/rdma_cm", "permissions": "rw"}
    ]}}
  ]
}
"#;
    assert_eq!((run.stdout.as_str(), run.stderr.as_str(), run.status), (expected, "", 0));
    let run = tree.uverbs(&["cdi", "mlx4_0", "--no-umad"]);
    let one = |name: &str, nodes: &[&str]| {
        (name.to_owned(), nodes.iter().map(|node| (*node).to_owned()).collect::<Vec<_>>())
    };
    assert_eq!(devices(&run.stdout), [one("mlx4_0", &["uverbs4", "rdma_cm"])]);
    let run = tree.uverbs(&["cdi", "mlx5_0", "mlx5_7"]);
    assert_eq!((devices(&run.stdout).len(), run.status), (1, 1), "{run:?}");
}

/// Without `ib_umad` and `rdma_ucm` there are no such nodes; where a tree does not show that, it is not known.
#[test]
fn modules_that_are_not_loaded_have_no_nodes() {
    let tree = Tree::new();
    tree.with_roce();
    let run = tree.uverbs(&["cdi"]);
    assert_eq!((run.stdout.as_str(), run.status), ("", 3), "{run:?}");
    assert!(run.stderr.contains("class/infiniband_mad: ENOENT"), "{run:?}");
    // What is left out need not be known.
    let run = tree.uverbs(&["cdi", "--no-umad"]);
    assert!(!run.stderr.contains("infiniband_mad"), "{run:?}");
    assert!(run.stderr.ends_with("is all of sysfs there?\n"), "{run:?}");
    fs::create_dir_all(tree.path().join("module/ib_core")).unwrap();
    let run = tree.uverbs(&["cdi"]);
    assert_eq!((devices(&run.stdout)[0].1.len(), run.status), (1, 0), "{run:?}");
    fs::create_dir_all(tree.path().join("module/rdma_ucm")).unwrap();
    let run = tree.uverbs(&["cdi"]);
    assert_eq!((devices(&run.stdout)[0].1.len(), run.status), (1, 3), "{run:?}");
    write(tree.path().join("class/misc/rdma_cm/dev"), "nonsense");
    let run = tree.uverbs(&["cdi"]);
    assert!(run.status == 3 && run.stderr.contains("rdma_cm/dev"), "{run:?}");
}

/// What engines refuse, or what is not known, has no device here; the others have.
#[test]
fn what_cannot_be_given_is_left_out() {
    let tree = Tree::new();
    tree.with_roce();
    with_all_nodes(&tree);
    for (name, number) in [("odd-", 7), ("nodeless", 8)] {
        tree.device(name, "1: CA", number).port(1, "Ethernet", "100 Gb/sec (4X EDR)", 2);
    }
    fs::remove_dir_all(tree.path().join("class/infiniband_verbs/uverbs8")).unwrap();
    let run = tree.uverbs(&["cdi"]);
    assert_eq!((devices(&run.stdout).len(), run.status), (1, 3), "{run:?}");
    assert!(run.stderr.contains("odd-: a name in CDI has letters"), "{run:?}");
    assert!(
        run.stderr.contains("nodeless: list devices: ") && run.stderr.contains("no uverbs node"),
        "{run:?}"
    );
    // A file that is no node's number.
    write(tree.path().join("class/infiniband_mad/umad0/dev"), "nonsense");
    let run = tree.uverbs(&["cdi", "mlx5_0"]);
    assert_eq!((run.stdout.as_str(), run.status), ("", 3), "{run:?}");
}

/// A name may begin with a digit from version 0.5.0 on.
#[test]
fn a_name_that_begins_with_a_digit_needs_a_newer_version() {
    let tree = Tree::new();
    tree.device("0mlx", "1: CA", 3).port(1, "Ethernet", "100 Gb/sec (4X EDR)", 2);
    with_all_nodes(&tree);
    let document: Value = serde_json::from_str(&tree.answer(&["cdi"])).unwrap();
    assert_eq!(
        (&document["cdiVersion"], &document["devices"][0]["name"]),
        (&"0.5.0".into(), &"0mlx".into())
    );
}

#[test]
fn a_file_is_replaced_or_removed_as_a_whole() {
    let tree = Tree::new();
    let device = tree.with_roce();
    with_all_nodes(&tree);
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("uverbs-rdma.json");
    let file = path.to_str().unwrap();
    for _ in 0..2 {
        let run = tree.uverbs(&["cdi", "--output", file]);
        assert_eq!((run.stdout.as_str(), run.status), ("", 0), "{run:?}");
        assert_eq!(fs::read_to_string(&path).unwrap(), tree.answer(&["cdi"]));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
    // A slip in a name changes nothing.
    let before = fs::read_to_string(&path).unwrap();
    for names in [&["mlx5_9"] as &[&str], &["mlx5_0", "mlx5_9"]] {
        let run = tree.uverbs(&[&["cdi", "--output", file], names].concat());
        let said = "mlx5_9: no such device";
        assert!(run.status == 3 && run.stderr.contains(said), "{names:?}: {run:?}");
        assert!(
            run.stderr.contains("a file that is there is left as it is\n"),
            "{names:?}: {run:?}"
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), before, "{names:?}");
    }
    // What could not be read may be as it was.
    write(tree.path().join("class/infiniband_mad/umad0/dev"), "nonsense");
    let run = tree.uverbs(&["cdi", "--output", file]);
    assert!(run.status == 3 && path.exists(), "{run:?}");
    device.remove();
    fs::remove_dir_all(tree.path().join("class/infiniband_verbs/uverbs0")).unwrap();
    // Empty folders are none of the kernel's: something covers them.
    let run = tree.uverbs(&["cdi", "--output", file]);
    assert!(run.status == 3 && path.exists() && run.stderr.contains("covers"), "{run:?}");
    let run = tree.uverbs(&["check"]);
    assert!(run.stdout.contains("covers") && !run.stdout.contains("no-device"), "{run:?}");
    write(tree.path().join("class/infiniband_verbs/abi_version"), "6");
    let run = tree.uverbs(&["cdi", "--output", file]);
    assert!(run.status == 0 && !path.exists() && run.stderr.contains("it was removed"), "{run:?}");
    let run = tree.uverbs(&["cdi", "--output", file]);
    assert!(run.status == 0 && !run.stderr.contains("removed"), "{run:?}");
    let run = tree.uverbs(&["cdi", "--output", "/dev/null"]);
    assert!(run.status == 3 && run.stderr.contains("cannot remove /dev/null: "), "{run:?}");
}

#[test]
fn it_has_one_form_and_reads_no_snapshots() {
    for words in [
        &["cdi", "--json"] as &[&str],
        &["cdi", "--from", "x.json"],
        &["cdi", "x.json"],
        &["cdi", "a:1"],
    ] {
        assert_eq!(uverbs(words).status, 3, "{words:?}");
    }
}
