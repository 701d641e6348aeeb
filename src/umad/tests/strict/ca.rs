//! `umad_get_ca`.

use super::*;

#[test]
fn a_ca_with_all_its_fields() {
    let tree = Tree::new();
    tree.device("mlx5_0", CA).port("mlx5_0", 1).port("mlx5_0", 2);
    tree.file("mlx5_0/hw_rev", "a2").file("mlx5_0/hca_type", "MT4115");
    let ca = get_ca(&tree.sysfs(), Some("mlx5_0")).unwrap();
    assert_eq!(ca.ca_name, *"mlx5_0");
    assert_eq!((ca.node_type, ca.numports), (1, 2));
    assert_eq!(ca.fw_ver, *"20.31.1014");
    assert_eq!(ca.hw_ver, *"a2");
    assert_eq!(ca.ca_type, *"MT4115");
    assert_eq!(ca.node_guid, Guid::from(0x0011_22ff_fe33_4400));
    assert_eq!(ca.system_guid, Guid::from(0x0011_22ff_fe33_4401));
    let numbers: Vec<_> = ca.ports.iter().map(|port| port.as_ref().map(|p| p.portnum)).collect();
    assert_eq!(numbers[..4], [None, Some(1), Some(2), None]);
}

#[test]
fn texts_of_a_ca_are_optional_and_cut() {
    let tree = Tree::new();
    tree.device("d", CA).unreadable("d/fw_ver");
    tree.file("d/hw_rev", "0123456789012345678901234567890123456789");
    tree.file("d/hca_type", "0123456789012345678901234567890123456789");
    let ca = get_ca(&tree.sysfs(), Some("d")).unwrap();
    assert_eq!(ca.fw_ver, *"");
    assert_eq!(ca.hw_ver, *"0123456789012345678");
    assert_eq!(ca.ca_type, *"012345678901234567890123456789012345678");
}

#[test]
fn an_unknown_ca() {
    let tree = Tree::new();
    tree.device("d", CA).port("d", 1).device(LONG, CA).port(LONG, 1);
    // Below the class, and in a folder of a device, there is what looks like a device.
    tree.file("node_type", CA).file("../node_type", CA);
    for name in ["e", "", ".", "..", "/", "d/", "./d", "d/../d", "d\0", LONG, &"x".repeat(300)] {
        fails(get_ca(&tree.sysfs(), Some(name)), Errno::NOENT);
        assert_eq!(guids(&tree, Some(name)).unwrap_err().value(), -1, "{name:?}");
    }
    for name in ["e", "", ".", "..", "/", "d/", "./d", "d/../d", "d\0"] {
        fails(get_port(&tree.sysfs(), Some(name), 1), Errno::IO);
        fails(get_port(&tree.sysfs(), Some(name), 0), Errno::NODEV);
    }
    // A port that is named with its CA is found by the whole name, but its name is cut.
    let port = get_port(&tree.sysfs(), Some(LONG), 1).unwrap();
    assert_eq!(port.ca_name, LONG[..19]);
}

#[test]
fn a_name_is_never_cut_to_that_of_another_device() {
    let tree = Tree::new();
    tree.device(NINETEEN, CA).port(NINETEEN, 1);
    assert!(get_ca(&tree.sysfs(), Some(NINETEEN)).is_ok());
    fails(get_ca(&tree.sysfs(), Some(&format!("{NINETEEN}t"))), Errno::NOENT);
}

#[test]
fn a_ca_with_a_file_that_cannot_be_read() {
    for file in ["node_type", "node_guid", "sys_image_guid"] {
        let tree = Tree::new();
        tree.device("d", CA).port("d", 1);
        let path = format!("d/{file}");
        fails(get_ca(&tree.remove(&path).sysfs(), Some("d")), Errno::NOENT);
        fails(get_ca(&tree.folder(&path).sysfs(), Some("d")), Errno::ISDIR);
        fails(get_ca(&tree.unreadable(&path).sysfs(), Some("d")), Errno::LOOP);
        let failure = get_ca(&tree.sysfs(), Some("d")).unwrap_err().to_string();
        assert!(failure.contains("returns -40: d: read ") && failure.contains(file), "{failure}");
    }
}

#[test]
fn a_guid_has_four_groups() {
    for (text, errno) in [
        ("0011:22ff:fe33", Some(Errno::INVAL)),
        ("", Some(Errno::INVAL)),
        ("1:2:3:", None),
        ("1 2\t3:4:5", None),
        ("x:y:z:0x1", None),
    ] {
        for file in ["d/node_guid", "d/sys_image_guid"] {
            let tree = Tree::new();
            tree.device("d", CA).file(file, text);
            let result = get_ca(&tree.sysfs(), Some("d")).map(|_| ()).map_err(|f| f.value());
            assert_eq!(result, errno.map_or(Ok(()), |errno| Err(-errno.raw_os_error())), "{text}");
        }
    }
    let tree = Tree::new();
    tree.device("d", CA).file("d/node_guid", "12345::0x3:4:5");
    assert_eq!(get_ca(&tree.sysfs(), Some("d")).unwrap().node_guid, 0x2345_0000_0003_0004.into());
}

#[test]
fn ports_are_0_to_9_or_the_whole_ca_fails() {
    for (entry, is_port) in [
        ("9", true),
        ("0", true),
        ("10", false),
        ("00", false),
        ("-1", false),
        ("x", false),
        ("+0", false),
        ("4294967305", true),
    ] {
        let tree = Tree::new();
        tree.device("d", CA).port("d", 0).port("d", 1).port("d", 9);
        tree.folder(&format!("d/ports/{entry}"));
        let result = get_ca(&tree.sysfs(), Some("d"));
        if is_port {
            assert_eq!(result.unwrap().numports, 9, "{entry}");
        } else {
            fails(result, Errno::IO);
            assert_eq!(guids(&tree, Some("d")).unwrap_err().value(), -1);
            // A port that is named is still read.
            assert!(get_port(&tree.sysfs(), Some("d"), 9).is_ok());
        }
    }
}

#[test]
fn an_entry_means_the_port_whose_number_it_begins_with() {
    let tree = Tree::new();
    tree.device("d", CA).port("d", 3).folder("d/ports/03x");
    assert_eq!(get_ca(&tree.sysfs(), Some("d")).unwrap().numports, 3);
    tree.folder("d/ports/4x");
    fails(get_ca(&tree.sysfs(), Some("d")), Errno::IO);
}

#[test]
fn a_ca_whose_ports_cannot_be_listed() {
    let tree = Tree::new();
    tree.device("d", CA).unreadable("d/ports");
    fails(get_ca(&tree.sysfs(), Some("d")), Errno::NOENT);
    tree.remove("d/ports").bytes("d/ports", b"");
    fails(get_ca(&tree.sysfs(), Some("d")), Errno::NOENT);
}

#[test]
fn one_bad_port_and_the_whole_ca_fails() {
    let tree = Tree::new();
    tree.device("d", CA).port("d", 1).port("d", 2).remove("d/ports/2/lid");
    fails(get_ca(&tree.sysfs(), Some("d")), Errno::IO);
    assert!(get_port(&tree.sysfs(), Some("d"), 1).is_ok());
    fails(get_port(&tree.sysfs(), Some("d"), 2), Errno::IO);
}
