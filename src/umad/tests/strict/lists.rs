//! `umad_get_cas_names` and `umad_get_ca_device_list`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use super::*;

#[test]
fn names_are_of_infiniband_types_only() {
    let tree = Tree::new();
    for (name, node_type) in [
        ("ca", "1: CA"),
        ("switch", "2: switch"),
        ("router", "3: router"),
        ("iwarp", "4: RNIC"),
        ("usnic", "5: usNIC"),
        ("usnic_udp", "6: usNIC UDP"),
        ("efa", "7: unspecified"),
        ("zero", "0: ?"),
    ] {
        tree.device(name, node_type);
    }
    tree.folder("no_type").bytes("file", b"1").device("pipe", CA).remove("pipe/node_type");
    tree.fifo("pipe/node_type");
    assert_eq!(names(&tree), ["ca", "router", "switch"]);
}

#[test]
fn names_are_sorted_by_their_bytes() {
    let tree = Tree::new();
    for name in ["mlx5_10", "mlx5_2", "Z", "a", "_"] {
        tree.device(name, CA);
    }
    assert_eq!(names(&tree), ["Z", "_", "a", "mlx5_10", "mlx5_2"]);
}

#[test]
fn names_have_less_than_20_bytes() {
    let tree = Tree::new();
    tree.device(LONG, CA).device("name-of-twenty-bytes", CA).device(NINETEEN, CA);
    assert_eq!(names(&tree), [NINETEEN]);
    let names = get_cas_names(&tree.sysfs(), 1);
    assert_eq!(names[0].array(), b"name-of-nineteen-by\0");
}

/// Its name with other bytes is that of another device.
#[test]
fn a_name_that_is_no_text_is_no_other_device() {
    let tree = Tree::new();
    tree.device("b\u{fffd}", CA).port("b\u{fffd}", 1);
    let odd = tree.class().join(OsStr::from_bytes(b"b\xff"));
    std::fs::create_dir(&odd).unwrap();
    std::fs::write(odd.join("node_type"), CA).unwrap();
    assert_eq!(names(&tree), [""; 0]);
    fails(get_ca_device_list(&tree.sysfs()), Errno::PROTO);
    fails(get_ca(&tree.sysfs(), None), Errno::NODEV);
    // Who names one gets that one.
    assert_eq!(get_ca(&tree.sysfs(), Some("b\u{fffd}")).unwrap().numports, 1);
}

#[test]
fn names_stop_at_max() {
    let tree = Tree::new();
    // What is left out does not count.
    tree.device("a", "4: RNIC").device("b", CA).device("c", CA).device("d", CA);
    assert_eq!(
        get_cas_names(&tree.sysfs(), 2).iter().map(ToString::to_string).collect::<String>(),
        "bc"
    );
    assert_eq!(get_cas_names(&tree.sysfs(), 0).len(), 0);
}

#[test]
fn without_rdma_there_is_mthca0() {
    let tree = Tree::without_rdma();
    assert_eq!(names(&tree), ["mthca0"]);
    assert_eq!(get_cas_names(&tree.sysfs(), 0).len(), 1);
    // A file in place of the folder.
    let tree = Tree::without_rdma();
    std::fs::create_dir_all(tree.class().parent().unwrap()).unwrap();
    std::fs::write(tree.class(), "").unwrap();
    assert_eq!(names(&tree), ["mthca0"]);
}

#[test]
fn an_empty_folder_has_no_names() {
    assert_eq!(names(&Tree::new()), [""; 0]);
}

#[test]
fn the_device_list_is_in_readdir_order_with_names_of_any_length() {
    let tree = Tree::new();
    for name in ["m", "b", "z", LONG, "a", "k", "y", "c", "x"] {
        tree.device(name, CA);
    }
    tree.device("iwarp", "4: RNIC");
    let readdir: Vec<String> = std::fs::read_dir(tree.class())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "iwarp")
        .collect();
    assert_eq!(get_ca_device_list(&tree.sysfs()).unwrap(), readdir);
    assert!(readdir.iter().any(|name| name == LONG));
}

#[test]
fn the_device_list_without_a_folder() {
    assert_eq!(get_ca_device_list(&Tree::without_rdma().sysfs()).unwrap(), [""; 0]);
    assert_eq!(get_ca_device_list(&Tree::new().sysfs()).unwrap(), [""; 0]);
    let tree = Tree::new();
    tree.unreadable("");
    fails(get_ca_device_list(&tree.sysfs()), Errno::LOOP);
}
