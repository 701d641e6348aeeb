//! libibumad's rules, one by one.

use core::fmt::Debug;

use rustix::io::Errno;

use super::tree::Tree;
use crate::guid::Guid;
use crate::pkey::PKey;
use crate::umad::choice::{self, Candidate};
use crate::umad::strict::{
    Failure, get_ca, get_ca_device_list, get_ca_portguids, get_cas_names, get_port,
};

const CA: &str = "1: CA";
const LONG: &str = "a-name-of-twenty-bytes";
/// As long as a name may be.
const NINETEEN: &str = "name-of-nineteen-by";

#[track_caller]
fn fails<T: Debug>(result: Result<T, Failure>, errno: Errno) {
    assert_eq!(result.unwrap_err().value(), -errno.raw_os_error());
}

fn names(tree: &Tree) -> Vec<String> {
    get_cas_names(&tree.sysfs(), 128).iter().map(ToString::to_string).collect()
}

/// The low group of each GUID, as `Tree` numbers them.
fn guids(tree: &Tree, name: Option<&str>) -> Result<Vec<u64>, Failure> {
    let mut guids = [Guid::from(0xdead); 10];
    let count = get_ca_portguids(&tree.sysfs(), name, Some(&mut guids))?;
    assert!(guids[count..].iter().all(|guid| *guid == Guid::from(0xdead)));
    Ok(guids[..count].iter().map(|guid| guid.to_u64() & 0xffff).collect())
}

/// Name and port of the default, for a wanted port.
fn default(tree: &Tree, portnum: i32) -> (String, i32) {
    let port = get_port(&tree.sysfs(), None, portnum).unwrap();
    (port.ca_name.to_string(), port.portnum)
}

// 7.1: umad_get_cas_names

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

// 7.2: umad_get_ca_device_list

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

// 7.3: umad_get_ca

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

// 7.4: umad_get_port

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

// 7.5: umad_get_ca_portguids

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

// 7.6: defaults

#[test]
fn without_a_device_there_is_no_default() {
    for tree in [Tree::without_rdma(), Tree::new()] {
        tree.device("iwarp", "4: RNIC").port("iwarp", 1);
        fails(get_ca(&tree.sysfs(), None), Errno::NODEV);
        fails(guids(&tree, None), Errno::NODEV);
        fails(get_port(&tree.sysfs(), None, 0), Errno::NODEV);
        fails(get_port(&tree.sysfs(), None, 1), Errno::NODEV);
    }
    let tree = Tree::new();
    tree.unreadable("");
    fails(guids(&tree, None), Errno::NODEV);
}

#[test]
fn without_a_usable_device_the_default_is_mthca0() {
    let tree = Tree::new();
    tree.device("d", CA).port("d", 1).is("d", 1, 1, 3);
    fails(get_ca(&tree.sysfs(), None), Errno::NOENT);
    assert_eq!(guids(&tree, None).unwrap_err().value(), -1);
    fails(get_port(&tree.sysfs(), None, 0), Errno::IO);
    // The same for a device that fails as a whole.
    tree.remove("d").device("d", CA).port("d", 1).port("d", 10);
    fails(get_ca(&tree.sysfs(), None), Errno::NOENT);
    assert_eq!(guids(&tree, None).unwrap_err().value(), -1);
    // And for one whose name is too long.
    tree.remove("d").device(LONG, CA).port(LONG, 1);
    assert_eq!(guids(&tree, None).unwrap_err().value(), -1);
    // A mthca0 that is there is read, usable or not. Its port is 1.
    tree.device("mthca0", CA).port("mthca0", 1).is("mthca0", 1, 1, 3);
    assert_eq!(get_ca(&tree.sysfs(), None).unwrap().ca_name, *"mthca0");
    assert_eq!(default(&tree, 5), ("mthca0".to_owned(), 1));
}

#[test]
fn an_active_infiniband_port_is_preferred() {
    let names = ["a", "b", "c", "d"];
    for best in names {
        let tree = Tree::new();
        for name in names {
            tree.device(name, CA).port(name, 1).is(name, 1, 2, 5);
        }
        // Up, but Ethernet, or not active yet: none is better than the one that is active.
        tree.port(best, 2);
        let other = if best == "a" { "b" } else { "a" };
        tree.port(other, 1).set(other, 1, "link_layer", "Ethernet");
        assert_eq!(default(&tree, 0), (best.to_owned(), 2));
        assert_eq!(get_ca(&tree.sysfs(), None).unwrap().ca_name, *best);
        assert_eq!(guids(&tree, None).unwrap(), [0, 1, 2]);
    }
}

#[test]
fn within_a_device() {
    let chosen = |ports: &[(u8, u8, &str)]| {
        let tree = Tree::new();
        tree.device("d", CA);
        for (number, (state, phys_state, link_layer)) in (1..).zip(ports) {
            tree.port("d", number).is("d", number, *state, *phys_state);
            tree.set("d", number, "link_layer", link_layer);
        }
        get_port(&tree.sysfs(), Some("d"), 0).map(|port| port.portnum).map_err(|f| f.value())
    };
    let (ib, eth) = ("InfiniBand", "Ethernet");
    // Active comes before up, in any position.
    assert_eq!(chosen(&[(1, 2, ib), (2, 5, ib), (4, 5, ib), (4, 5, ib)]), Ok(3));
    // The first that is up.
    assert_eq!(chosen(&[(1, 2, ib), (2, 5, ib), (3, 5, ib)]), Ok(2));
    // Ethernet does not count where InfiniBand is up, or active.
    assert_eq!(chosen(&[(4, 5, eth), (2, 5, ib)]), Ok(2));
    assert_eq!(chosen(&[(4, 5, eth), (1, 2, ib), (4, 4, ib)]), Ok(3));
    // Neither: the first that is not disabled, of any link layer.
    assert_eq!(chosen(&[(4, 5, eth), (1, 2, ib)]), Ok(1));
    assert_eq!(chosen(&[(4, 3, eth), (1, 2, ib)]), Ok(2));
    assert_eq!(chosen(&[(1, 3, eth), (1, 2, eth)]), Ok(2));
    assert_eq!(chosen(&[(1, 3, ib), (4, 3, eth)]), Err(-Errno::NODEV.raw_os_error()));
    // Active counts even if disabled.
    assert_eq!(chosen(&[(4, 3, ib)]), Ok(1));
    assert_eq!(chosen(&[]), Err(-Errno::NODEV.raw_os_error()));
}

#[test]
fn a_roce_host_has_a_default() {
    let tree = Tree::new();
    tree.device("mlx5_0", CA).port("mlx5_0", 1).set("mlx5_0", 1, "link_layer", "Ethernet");
    assert_eq!(default(&tree, 0), ("mlx5_0".to_owned(), 1));
    assert_eq!(guids(&tree, None).unwrap(), [0, 1]);
    // But not for a wanted port, which must be InfiniBand: there is only mthca0.
    fails(get_port(&tree.sysfs(), None, 1), Errno::IO);
    tree.is("mlx5_0", 1, 1, 3);
    assert_eq!(guids(&tree, None).unwrap_err().value(), -1);
}

#[test]
fn a_wanted_port() {
    let tree = Tree::new();
    tree.device("a", CA).port("a", 1).device("b", CA).port("b", 1).port("b", 2);
    assert_eq!(default(&tree, 2), ("b".to_owned(), 2));
    // Not disabled will do, be it down.
    tree.is("b", 2, 1, 2);
    assert_eq!(default(&tree, 2), ("b".to_owned(), 2));
    tree.is("b", 2, 1, 3);
    fails(get_port(&tree.sysfs(), None, 2), Errno::IO);
    // An active one is better.
    tree.is("b", 2, 2, 5).port("a", 2);
    assert_eq!(default(&tree, 2), ("a".to_owned(), 2));
    // No device has it.
    fails(get_port(&tree.sysfs(), None, 9), Errno::IO);
    fails(get_port(&tree.sysfs(), None, 99), Errno::IO);
    // Without a name a negative number counts as no number.
    assert!(default(&tree, -1).1 > 0);
}

#[test]
fn of_equals_the_first_in_readdir_order() {
    let tree = Tree::new();
    for name in ["m", "b", "z", "a", "k", "y", "c", "x"] {
        tree.device(name, CA).port(name, 1);
    }
    let readdir = || get_ca_device_list(&tree.sysfs()).unwrap();
    assert_eq!(default(&tree, 0).0, readdir()[0]);
    for name in readdir() {
        tree.is(&name, 1, 1, 2);
    }
    assert_eq!(default(&tree, 0).0, readdir()[0]);
}

#[test]
fn the_first_active_else_the_first_remembered() {
    let names = ["z", "b", "a", "k"].map(str::to_owned);
    let of = |able: &[(&str, u32, bool)]| {
        choice::device(&names, |name| {
            let (_, number, active) = able.iter().copied().find(|able| able.0 == name)?;
            Some(Candidate { number, active })
        })
    };
    let found = |name: &str, number| Some((name.to_owned(), number));
    assert_eq!(of(&[]), None);
    assert_eq!(of(&[("a", 1, false), ("b", 2, false)]), found("b", 2));
    assert_eq!(of(&[("a", 1, true), ("b", 2, false)]), found("a", 1));
    assert_eq!(of(&[("z", 3, true), ("a", 1, true)]), found("z", 3));
}
