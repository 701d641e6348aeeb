use super::*;
use std::os::unix::fs::symlink;
use std::path::Path;

#[test]
fn speeds() {
    for (text, tenths) in
        [("16.0 GT/s PCIe", 160), ("8 GT/s", 80), ("2.5 GT/s", 25), ("64.0 GT/s PCIe", 640)]
    {
        assert_eq!(parse_speed(text), Some(tenths));
    }
    let odd =
        ["", "Unknown", "Unknown speed", "-8 GT/s", "8.25 GT/s", " GT/s", "0 GT/s", "+8 GT/s"];
    for text in odd.into_iter().chain(["99999999999 GT/s", "8. GT/s", ".5 GT/s"]) {
        assert_eq!(parse_speed(text), None, "{text:?}");
    }
}

fn write(folder: &Path, files: &[(&str, &str)]) {
    std::fs::create_dir_all(folder).unwrap();
    for (name, text) in files {
        std::fs::write(folder.join(name), format!("{text}\n")).unwrap();
    }
}

/// A device whose parent is this folder of the tree.
fn device(root: &Path, name: &str, parent: &str) {
    let own = root.join(parent).join("infiniband").join(name);
    std::fs::create_dir_all(own.join("ports")).unwrap();
    std::fs::create_dir_all(root.join("class/infiniband")).unwrap();
    symlink(root.join(parent), own.join("device")).unwrap();
    symlink(&own, root.join("class/infiniband").join(name)).unwrap();
}

/// As the kernel has them: a function, its VF, a sub-function, and soft RoCE.
#[test]
fn functions_of_all_kinds() {
    let tree = tempfile::tempdir().unwrap();
    let (root, bus) = (tree.path(), "devices/pci0000:16/0000:16:02.0");
    let (pf, vf) = (format!("{bus}/0000:17:00.0"), format!("{bus}/0000:17:00.2"));
    let sf = format!("{pf}/mlx5_core.sf.4");
    write(
        &root.join(&pf),
        &[
            ("uevent", "DRIVER=mlx5_core\nPCI_ID=15B3:1021\nPCI_SLOT_NAME=0000:17:00.0"),
            ("numa_node", "1"),
            ("current_link_speed", "16.0 GT/s PCIe"),
            ("current_link_width", "8"),
            ("max_link_speed", "32.0 GT/s PCIe"),
            ("max_link_width", "16"),
        ],
    );
    write(
        &root.join(&vf),
        &[
            ("uevent", "PCI_ID=15B3:101E\nPCI_SLOT_NAME=0000:17:00.2"),
            ("numa_node", "-1"),
            ("current_link_speed", "Unknown"),
            ("current_link_width", "0"),
            ("max_link_speed", "Unknown"),
            ("max_link_width", "255"),
        ],
    );
    symlink(root.join(&pf), root.join(&vf).join("physfn")).unwrap();
    write(&root.join(&sf), &[("uevent", "MODALIAS=auxiliary:mlx5_core.sf")]);
    for (name, parent) in [("mlx5_0", &pf), ("mlx5_1", &vf), ("mlx5_2", &sf)] {
        device(root, name, parent);
    }
    write(
        &root.join("class/infiniband/mlx5_0"),
        &[("board_id", "MT_224"), ("hca_type", "MT4129"), ("hw_rev", "0")],
    );
    write(&root.join("class/infiniband/rxe0/ports"), &[]);
    let read = |name| Sysfs::at(root).hardware(name).unwrap();
    let address = |text: &str| text.parse::<PciAddress>().unwrap();

    let own = read("mlx5_0");
    assert_eq!((own.board_id.as_deref(), own.ca_type.as_deref()), (Some("MT_224"), Some("MT4129")));
    assert_eq!((own.hw_rev.as_deref(), own.numa_node), (Some("0"), Some(1)));
    let function = own.pci.unwrap();
    let mut expected = PciFunction::at(address("0000:17:00.0"));
    expected.id = Some((0x15b3, 0x1021));
    expected.link = Some(PcieLink { speed: 160, width: 8 });
    expected.max_link = Some(PcieLink { speed: 320, width: 16 });
    assert_eq!(function, expected);

    let own = read("mlx5_1");
    assert_eq!(own.numa_node, None);
    let virtual_one = own.pci.unwrap();
    assert_eq!(virtual_one.physical, Some(address("0000:17:00.0")));
    assert_eq!((virtual_one.address, virtual_one.link), (address("0000:17:00.2"), function.link));

    // Known by numbers: in a virtual machine nothing else is to be seen.
    assert!(function.is_physical() && !virtual_one.is_physical());
    std::fs::remove_file(root.join(&vf).join("physfn")).unwrap();
    let guest = read("mlx5_1").pci.unwrap();
    assert!(guest.is_virtual() && !guest.is_physical());
    assert_eq!((guest.physical, guest.link), (None, None));
    // Of a number that says nothing it is known by its virtual functions.
    let unknown = "PCI_ID=8086:1592\nPCI_SLOT_NAME=0000:17:00.0";
    write(&root.join(&pf), &[("uevent", unknown)]);
    let other = read("mlx5_0").pci.unwrap();
    assert!(!other.is_virtual() && !other.is_physical());
    write(&root.join(&pf), &[("sriov_totalvfs", "8")]);
    assert!(read("mlx5_0").pci.unwrap().is_physical());

    // One whose physical function cannot be read is a VF all the same.
    let physfn = root.join(&vf).join("physfn");
    symlink("../0000:99:00.0", &physfn).unwrap();
    let virtual_one = read("mlx5_1").pci.unwrap();
    assert!(virtual_one.is_virtual() && virtual_one.physical_is_unread);
    assert_eq!((virtual_one.physical, virtual_one.link), (None, None));

    let own = read("mlx5_2");
    let sub = own.pci.unwrap();
    assert!(sub.has_sub_function && sub.address == function.address && sub.physical.is_none());
    assert_eq!((own.numa_node, sub.max_link), (Some(1), function.max_link));

    assert_eq!(read("rxe0"), Hardware::default());
    assert_eq!(Sysfs::at(root).hardware("mlx5_9").unwrap_err().errno(), 2);
}

#[test]
fn what_reads_as_something_else_is_not_known() {
    let tree = tempfile::tempdir().unwrap();
    let pf = "devices/0000:17:00.0";
    device(tree.path(), "x", pf);
    let read = |uevent: &str, numa: &str| {
        write(&tree.path().join(pf), &[("uevent", uevent), ("numa_node", numa)]);
        Sysfs::at(tree.path()).hardware("x").unwrap()
    };
    for (uevent, is_unread) in [
        ("MODALIAS=usb:x", false),
        // No kernel says nothing.
        ("", true),
        ("odd", true),
        ("PCI_SLOT_NAME=", true),
        ("PCI_SLOT_NAME=17:00.0", true),
        ("MODALIAS=auxiliary:x", true),
    ] {
        let expected = Hardware {
            pci_is_unread: is_unread,
            numa_node_is_unread: is_unread,
            ..Hardware::default()
        };
        assert_eq!(read(uevent, "-1"), expected, "{uevent:?}");
    }
    let own = read("PCI_SLOT_NAME=0000:17:00.0\nPCI_ID=15B3", "99999999999").pci.unwrap();
    assert_eq!(own, PciFunction::at("0000:17:00.0".parse().unwrap()));
    // No board is another thing than one that cannot be read.
    let folder = tree.path().join("class/infiniband/x");
    for (text, is_unread) in [("", false), (" \n", false), ("MT_1", false), ("MT\x07", true)] {
        write(&folder, &[("board_id", text)]);
        let own = Sysfs::at(tree.path()).hardware("x").unwrap();
        assert_eq!(own.board_is_unread, is_unread, "{text:?} {own:?}");
    }
    // A driver without one ends the line.
    std::fs::write(folder.join("board_id"), "").unwrap();
    assert!(Sysfs::at(tree.path()).hardware("x").unwrap().board_is_unread, "covered");
    std::fs::remove_file(folder.join("board_id")).unwrap();
    std::fs::create_dir(folder.join("board_id")).unwrap();
    let own = Sysfs::at(tree.path()).hardware("x").unwrap();
    assert!(own.board_is_unread && own.board_id.is_none(), "{own:?}");
}

/// A machine without NUMA is another thing than one whose file cannot be read.
#[test]
fn a_numa_node_that_is_not_known() {
    let tree = tempfile::tempdir().unwrap();
    let pf = "devices/0000:17:00.0";
    device(tree.path(), "x", pf);
    let place = tree.path().join(pf);
    let read = || {
        let own = Sysfs::at(tree.path()).hardware("x").unwrap();
        (own.numa_node, own.numa_node_is_unread)
    };
    write(&place, &[("uevent", "PCI_SLOT_NAME=0000:17:00.0")]);
    assert_eq!(read(), (None, false));
    for (text, node, is_unread) in [
        ("0", Some(0), false),
        ("-1", None, false),
        ("-2", None, true),
        ("99999999999", None, true),
        ("x", None, true),
        ("", None, true),
    ] {
        write(&place, &[("numa_node", text)]);
        assert_eq!(read(), (node, is_unread), "{text:?}");
    }
    std::fs::remove_file(place.join("numa_node")).unwrap();
    std::fs::create_dir(place.join("numa_node")).unwrap();
    assert_eq!(read(), (None, true));
    std::fs::remove_dir(place.join("numa_node")).unwrap();
    // A function that is not known may be a sub-function, of which another folder has the node.
    write(&place, &[("uevent", "PCI_SLOT_NAME=")]);
    assert_eq!(read(), (None, true));
    write(&place, &[("numa_node", "1")]);
    assert_eq!(read(), (Some(1), false));
    let link = place.join("infiniband/x/device");
    std::fs::remove_file(&link).unwrap();
    assert_eq!(read(), (None, false));
    symlink("../nowhere", &link).unwrap();
    assert_eq!(read(), (None, true));
}
