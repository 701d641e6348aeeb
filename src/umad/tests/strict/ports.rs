//! `umad_get_port`.

use super::*;

#[test]
fn a_port_with_all_its_fields() {
    let tree = Tree::new();
    tree.device("d", CA).port("d", 1).set("d", 1, "pkeys/1", "0x7fff");
    let port = get_port(&tree.sysfs(), Some("d"), 1).unwrap();
    assert_eq!((port.ca_name, port.portnum), (get_cas_names(&tree.sysfs(), 1)[0], 1));
    assert_eq!((port.base_lid, port.lmc, port.sm_lid, port.sm_sl), (42, 2, 17, 3));
    assert_eq!((port.state, port.phys_state, port.rate), (4, 5, 2));
    assert_eq!(port.capmask, 0x10000);
    assert_eq!(port.gid_prefix, 0xfe80_0000_0000_0000);
    assert_eq!(port.port_guid.to_be_bytes(), [0, 0x11, 0x22, 0xff, 0xfe, 0x33, 0, 1]);
    assert_eq!(port.pkeys, [PKey(0xffff), PKey(0x7fff)]);
    assert_eq!(port.link_layer, *"InfiniBand");
}

#[test]
fn every_file_of_a_port_must_be_there_but_one() {
    for file in [
        "lid_mask_count",
        "sm_lid",
        "sm_sl",
        "lid",
        "state",
        "phys_state",
        "rate",
        "cap_mask",
        "gids/0",
        "gids",
        "pkeys",
        "pkeys/0",
    ] {
        let tree = Tree::new();
        tree.device("d", CA).port("d", 1).remove(&format!("d/ports/1/{file}"));
        fails(get_port(&tree.sysfs(), Some("d"), 1), Errno::IO);
        tree.port("d", 1).unreadable(&format!("d/ports/1/{file}"));
        fails(get_port(&tree.sysfs(), Some("d"), 1), Errno::IO);
        fails(get_ca(&tree.sysfs(), Some("d")), Errno::IO);
        assert_eq!(guids(&tree, Some("d")).unwrap_err().value(), -1, "{file}");
    }
}

#[test]
fn a_port_without_a_link_layer_is_ib() {
    let tree = Tree::new();
    tree.device("d", CA).port("d", 1).unreadable("d/ports/1/link_layer");
    assert_eq!(get_port(&tree.sysfs(), Some("d"), 1).unwrap().link_layer, *"IB");
    assert_eq!(default(&tree, 1), ("d".to_owned(), 1));
    // An empty one is not.
    tree.remove("d/ports/1/link_layer").bytes("d/ports/1/link_layer", b"");
    assert_eq!(get_port(&tree.sysfs(), Some("d"), 1).unwrap().link_layer, *"");
    assert_eq!(default(tree.is("d", 1, 1, 2).device("e", CA).port("e", 1), 1), ("e".to_owned(), 1));
}

#[test]
fn numbers_are_octal_after_a_zero_and_cut_to_32_bits() {
    let tree = Tree::new();
    tree.device("d", CA).port("d", 1);
    tree.set("d", 1, "lid", "010").set("d", 1, "sm_lid", "0x1234567890").set("d", 1, "sm_sl", "-1");
    tree.set("d", 1, "lid_mask_count", "nothing");
    // The 32nd byte is not read.
    tree.set("d", 1, "cap_mask", "00000000000000000000000000000123");
    let port = get_port(&tree.sysfs(), Some("d"), 1).unwrap();
    assert_eq!((port.base_lid, port.sm_lid), (8, 0x3456_7890));
    assert_eq!((port.sm_sl, port.lmc), (u32::MAX, 0));
    assert_eq!(port.capmask, 0o12);
}

#[test]
fn a_zero_gid_is_a_zero_guid() {
    let tree = Tree::new();
    tree.device("d", CA).port("d", 1).port("d", 2);
    tree.set("d", 1, "gids/0", "0000:0000:0000:0000:0000:0000:0000:0000");
    assert_eq!(guids(&tree, Some("d")).unwrap(), [0, 0, 2]);
}

#[test]
fn a_gid_has_eight_groups() {
    let tree = Tree::new();
    tree.device("d", CA).port("d", 1);
    tree.set("d", 1, "gids/0", "1:2:3:4:5:6:7");
    fails(get_port(&tree.sysfs(), Some("d"), 1), Errno::IO);
    tree.set("d", 1, "gids/0", "1:2:3:4:5:6:7:8:9");
    assert_eq!(get_port(&tree.sysfs(), Some("d"), 1).unwrap().port_guid, 0x5_0006_0007_0008.into());
}

#[test]
fn pkeys_are_the_files_with_digits_only() {
    let tree = Tree::new();
    tree.device("d", CA).port("d", 1).set("d", 1, "pkeys/x", "1").set("d", 1, "pkeys/1x", "1");
    tree.set("d", 1, "pkeys/1", "0x12345");
    let pkeys = || get_port(&tree.sysfs(), Some("d"), 1).map(|port| port.pkeys);
    assert_eq!(pkeys().unwrap(), [PKey(0xffff), PKey(0x2345)]);
    // One beyond the end makes room, but not for itself.
    tree.set("d", 1, "pkeys/5", "0x5555");
    assert_eq!(pkeys().unwrap(), [PKey(0xffff), PKey(0x2345), PKey(0)]);
    tree.remove("d/ports/1/pkeys/0").remove("d/ports/1/pkeys/1").remove("d/ports/1/pkeys/5");
    fails(pkeys(), Errno::IO);
}

#[test]
fn odd_port_numbers_with_a_name() {
    let tree = Tree::new();
    tree.device("d", CA).port("d", 1).port("d", 12);
    for number in [2, -1, i32::MAX, i32::MIN] {
        fails(get_port(&tree.sysfs(), Some("d"), number), Errno::IO);
    }
    assert_eq!(get_port(&tree.sysfs(), Some("d"), 12).unwrap().portnum, 12);
}
