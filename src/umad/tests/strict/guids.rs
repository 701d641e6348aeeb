//! `umad_get_ca_portguids`.

use super::*;

#[test]
fn a_ca_with_one_port_has_two_guids() {
    let tree = Tree::new();
    tree.device("d", CA).port("d", 1);
    assert_eq!(guids(&tree, Some("d")).unwrap(), [0, 1]);
    let mut wanted = [Guid::default(); 2];
    assert_eq!(get_ca_portguids(&tree.sysfs(), Some("d"), Some(&mut wanted)).unwrap(), 2);
    assert_eq!(wanted[1].to_be_bytes(), [0, 0x11, 0x22, 0xff, 0xfe, 0x33, 0, 1]);
}

#[test]
fn guids_of_several_ports_and_gaps() {
    let tree = Tree::new();
    tree.device("d", CA).port("d", 1).port("d", 2);
    assert_eq!(guids(&tree, Some("d")).unwrap(), [0, 1, 2]);
    tree.port("d", 5);
    assert_eq!(guids(&tree, Some("d")).unwrap(), [0, 1, 2, 0, 0, 5]);
    tree.port("d", 9);
    assert_eq!(guids(&tree, Some("d")).unwrap(), [0, 1, 2, 0, 0, 5, 0, 0, 0, 9]);
}

#[test]
fn a_switch_has_port_0() {
    let tree = Tree::new();
    tree.device("sw", "2: switch").port("sw", 0);
    tree.set("sw", 0, "gids/0", "fe80:0:0:0:0:0:0:77");
    assert_eq!(guids(&tree, Some("sw")).unwrap(), [0x77]);
    assert_eq!(get_ca(&tree.sysfs(), None).unwrap().numports, 0);
    // Whatever port is wanted, with or without a name.
    assert_eq!(default(&tree, 0), ("sw".to_owned(), 0));
    assert_eq!(default(&tree, 7), ("sw".to_owned(), 0));
    assert_eq!(get_port(&tree.sysfs(), Some("sw"), 0).unwrap().portnum, 0);
}

#[test]
fn a_ca_without_ports_has_one_guid() {
    let tree = Tree::new();
    tree.device("d", CA);
    assert_eq!(guids(&tree, Some("d")).unwrap(), [0]);
}

#[test]
fn no_array_no_guids() {
    let tree = Tree::new();
    tree.device("d", CA).port("d", 1);
    assert_eq!(get_ca_portguids(&tree.sysfs(), Some("d"), None).unwrap(), 0);
    // But the CA must be there.
    assert_eq!(get_ca_portguids(&tree.sysfs(), Some("e"), None).unwrap_err().value(), -1);
}

#[test]
fn too_little_room_and_nothing_is_written() {
    let tree = Tree::new();
    tree.device("d", CA).port("d", 1).port("d", 2);
    for room in 0..3 {
        let mut guids = vec![Guid::from(7); room];
        fails(get_ca_portguids(&tree.sysfs(), Some("d"), Some(&mut guids)), Errno::NOMEM);
        assert_eq!(guids, vec![Guid::from(7); room]);
    }
}
