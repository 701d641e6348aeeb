//! Ports that can be read are answered.

use std::io::Write as _;

use rustix::io::Errno;

use super::tree::Tree;
use crate::device::NodeType;
use crate::error::{Cause, Error, Request};
use crate::gid::Gid;
use crate::guid::Guid;
use crate::pkey::PKey;
use crate::port::{LinkLayer, PhysState, PortState, Rate};
use crate::umad::{
    DeviceFolder, ca, ca_names, default_port, is_missing, parse_rate, port, port_guids, strict,
};

const CA: &str = "1: CA";
const LONG: &str = "rocep196s0f0v12-of-some-40-bytes-or-more";
const EMPTY: &str = "0000:0000:0000:0000:0000:0000:0000:0000";

#[track_caller]
fn fails<T: core::fmt::Debug>(result: Result<T, Error>, errno: Errno) {
    assert_eq!(result.unwrap_err().errno(), errno.raw_os_error());
}

/// Port numbers with the low group of each GUID, or the errno.
fn guids(tree: &Tree, name: Option<&str>) -> Vec<(u32, Result<Option<u64>, i32>)> {
    let ports = port_guids(&tree.sysfs(), name).unwrap().guids.into_iter();
    let low = |guid: Guid| guid.to_u64() & 0xffff;
    ports
        .map(|(number, guid)| (number, guid.map(|guid| guid.map(low)).map_err(|e| e.errno())))
        .collect()
}

fn default(tree: &Tree) -> (String, u32) {
    default_port(&tree.sysfs(), None).unwrap()
}

#[test]
fn names_of_infiniband_types_in_natural_order() {
    let tree = Tree::new();
    for (name, node_type) in [
        ("mlx5_10", CA),
        ("mlx5_2", "3: router"),
        (LONG, "2: switch"),
        ("iwarp", "4: RNIC"),
        ("usnic", "5: usNIC"),
        ("usnic_udp", "6: usNIC UDP"),
        ("efa", "7: unspecified"),
    ] {
        tree.device(name, node_type);
    }
    tree.bytes("file", b"1");
    assert_eq!(ca_names(&tree.sysfs()).unwrap(), ["mlx5_2", "mlx5_10", LONG]);
    // Another may be one of them, too.
    tree.device("odd", "seven");
    fails(ca_names(&tree.sysfs()), Errno::PROTO);
    tree.remove("odd").unreadable("loop");
    fails(ca_names(&tree.sysfs()), Errno::LOOP);
}

#[test]
fn without_rdma_there_is_nothing() {
    let unloaded = Tree::without_rdma();
    unloaded.folder("../net").folder("../../module");
    for tree in [unloaded, Tree::new()] {
        assert_eq!(ca_names(&tree.sysfs()).unwrap(), [""; 0]);
        fails(default_port(&tree.sysfs(), None), Errno::NODEV);
        fails(port_guids(&tree.sysfs(), None), Errno::NODEV);
        fails(ca(&tree.sysfs(), "mthca0"), Errno::NODEV);
    }
    let tree = Tree::new();
    tree.unreadable("");
    fails(ca_names(&tree.sysfs()), Errno::LOOP);
    fails(default_port(&tree.sysfs(), None), Errno::LOOP);
}

#[test]
fn a_ca_with_all_its_fields() {
    let tree = Tree::new();
    tree.device("mlx5_0", CA).port("mlx5_0", 1).port("mlx5_0", 2);
    tree.file("mlx5_0/hca_type", "MT4115").set("mlx5_0", 2, "pkeys/1", "0x7fff");
    tree.set("mlx5_0", 2, "rate", "100 Gb/sec (4X EDR)");
    let ca = ca(&tree.sysfs(), "mlx5_0").unwrap();
    assert_eq!((ca.name.as_str(), ca.node_type), ("mlx5_0", NodeType::CA));
    assert_eq!(ca.node_guid, 0x0011_22ff_fe33_4400.into());
    assert_eq!(ca.system_guid, 0x0011_22ff_fe33_4401.into());
    assert_eq!(ca.fw_ver.as_deref(), Some("20.31.1014"));
    assert_eq!((ca.hw_ver.as_deref(), ca.ca_type.as_deref()), (None, Some("MT4115")));
    let [(1, Ok(other)), (2, Ok(port))] = ca.ports.as_slice() else { panic!("{ca:?}") };
    assert_eq!((port.number, port.base_lid, port.lmc, port.sm_lid, port.sm_sl), (2, 42, 2, 17, 3));
    assert_eq!((port.state, port.phys_state), (PortState::ACTIVE, PhysState::LINK_UP));
    assert_eq!((port.rate, port.capability_mask), (Some(Rate(1000)), 0x10000));
    // Of a speed that the kernel does not know it says SDR, too.
    assert_eq!(other.rate, None);
    assert_eq!(port.link_layer, LinkLayer::INFINIBAND);
    assert_eq!(port.port_guid(), Some(0x0011_22ff_fe33_0002.into()));
    assert_eq!(port.gid_prefix(), Some(0xfe80_0000_0000_0000));
    assert_eq!(port.pkeys, Some(vec![(0, PKey(0xffff)), (1, PKey(0x7fff))]));
}

#[test]
fn unknown_devices_and_ports() {
    let tree = Tree::new();
    tree.device("d", CA)
        .port("d", 1)
        .file("node_type", CA)
        .file("../node_type", CA)
        .bytes("f", b"");
    for name in ["e", "", ".", "..", "/", "d/", "./d", "d/../d", "d\0", "f", &"x".repeat(300)] {
        fails(ca(&tree.sysfs(), name), Errno::NODEV);
        fails(port(&tree.sysfs(), name, 1), Errno::NODEV);
        fails(port_guids(&tree.sysfs(), Some(name)), Errno::NODEV);
        fails(default_port(&tree.sysfs(), Some(name)), Errno::NODEV);
    }
    for number in [0, 2, u32::MAX] {
        let error = port(&tree.sysfs(), "d", number).unwrap_err();
        assert!(error.errno() == Errno::INVAL.raw_os_error() && error.is_no_such_port());
        assert_eq!(error.request(), &Request::Port { port: number });
    }
}

#[test]
fn a_device_of_another_type_is_answered_by_name() {
    let tree = Tree::new();
    tree.device("siw0", "4: RNIC").port("siw0", 1).remove("siw0/ports/1/pkeys");
    tree.set("siw0", 1, "link_layer", "Ethernet");
    let ca = ca(&tree.sysfs(), "siw0").unwrap();
    assert_eq!(ca.node_type, NodeType::RNIC);
    assert_eq!(ca.ports[0].1.as_ref().unwrap().pkeys, None);
    assert_eq!(default_port(&tree.sysfs(), None).unwrap_err().cause(), &Cause::NoDefaultPort);
}

#[test]
fn ten_ports_and_more() {
    let tree = Tree::new();
    tree.device("d", CA);
    for number in 1..=40 {
        tree.port("d", number);
    }
    let numbers: Vec<u32> = (1..=40).collect();
    let ca = ca(&tree.sysfs(), "d").unwrap();
    assert!(ca.ports.iter().all(|(_, port)| port.is_ok()));
    assert_eq!(ca.ports.iter().map(|(number, _)| *number).collect::<Vec<_>>(), numbers);
    let expected: Vec<_> = (1..=40).map(|number| (number, Ok(Some(number.into())))).collect();
    assert_eq!(guids(&tree, Some("d")), expected);
    assert_eq!(guids(&tree, None), expected);
    assert_eq!(
        port(&tree.sysfs(), "d", 40).unwrap().port_guid(),
        Some(0x0011_22ff_fe33_0028.into())
    );
    // libibumad has no answer at all.
    assert_eq!(strict::get_ca(&tree.sysfs(), Some("d")).unwrap_err().value(), -5);
    assert_eq!(strict::get_ca_portguids(&tree.sysfs(), Some("d"), None).unwrap_err().value(), -1);
}

#[test]
fn ports_without_gids_or_pkeys() {
    let tree = Tree::new();
    tree.device("d", CA).port("d", 1).port("d", 2).port("d", 3).port("d", 4).port("d", 5);
    tree.remove("d/ports/1/gids/0").remove("d/ports/2/gids").remove("d/ports/3/pkeys");
    tree.set("d", 4, "gids/0", EMPTY).remove("d/ports/5/pkeys/0");
    tree.set("d", 3, "link_layer", "Ethernet");
    let [missing, malformed] = [Errno::NOENT, Errno::PROTO].map(Errno::raw_os_error);
    assert_eq!(
        guids(&tree, Some("d")),
        [(1, Ok(None)), (2, Err(missing)), (3, Ok(Some(3))), (4, Ok(None)), (5, Ok(Some(5)))]
    );
    let ca = ca(&tree.sysfs(), "d").unwrap();
    // Each port has the folder of GIDs, also without a slot, and each of a CA has P_Keys.
    let errnos: Vec<_> =
        ca.ports.iter().map(|(_, port)| port.as_ref().err().map(Error::errno)).collect();
    assert_eq!(errnos, [None, Some(missing), Some(missing), None, Some(malformed)]);
    let port = |place: usize| ca.ports[place].1.as_ref().unwrap();
    assert_eq!((port(0).gid, port(0).port_guid(), port(0).gid_prefix()), (None, None, None));
    // An empty slot and a missing one are different answers.
    assert!(port(3).gid.is_some_and(Gid::is_zero));
    assert_eq!((port(3).port_guid(), port(3).gid_prefix()), (None, None));
}

/// A table that is covered has types all the same, and one with a gap has slots.
#[test]
fn a_table_that_is_not_whole_is_an_error() {
    for slots in [&[][..], &["1"]] {
        let tree = Tree::new();
        tree.device("d", CA).port("d", 1).remove("d/ports/1/gids/0");
        tree.file("d/ports/1/gid_attrs/types/0", "RoCE v2\n");
        for slot in slots {
            tree.file(&format!("d/ports/1/gids/{slot}"), EMPTY);
        }
        let ca = ca(&tree.sysfs(), "d").unwrap();
        let [(1, Err(error))] = ca.ports.as_slice() else { panic!("{slots:?}: {ca:?}") };
        assert_eq!(error.errno(), Errno::PROTO.raw_os_error());
        assert_eq!(guids(&tree, Some("d")), [(1, Err(error.errno()))]);
        fails(port(&tree.sysfs(), "d", 1), Errno::PROTO);
    }
}

#[test]
fn a_port_that_cannot_be_read_is_an_error_of_its_own() {
    for (file, errno) in [
        ("lid", Errno::LOOP),
        ("state", Errno::LOOP),
        ("rate", Errno::LOOP),
        ("pkeys/0", Errno::LOOP),
        ("gids/0", Errno::LOOP),
        ("link_layer", Errno::LOOP),
    ] {
        let tree = Tree::new();
        tree.device("d", CA).port("d", 1).port("d", 2).unreadable(&format!("d/ports/1/{file}"));
        let ca = ca(&tree.sysfs(), "d").unwrap();
        let [(1, Err(error)), (2, Ok(_))] = ca.ports.as_slice() else { panic!("{file}: {ca:?}") };
        assert_eq!((error.errno(), error.subject()), (errno.raw_os_error(), "d"), "{file}");
        fails(port(&tree.sysfs(), "d", 1), errno);
        // The GUID of a port depends only on its GID.
        let guid = if file == "gids/0" { Err(errno.raw_os_error()) } else { Ok(Some(1)) };
        assert_eq!(guids(&tree, Some("d")), [(1, guid), (2, Ok(Some(2)))]);
    }
}

#[test]
fn text_that_is_not_the_kernels_is_an_error() {
    for (file, text) in [
        ("lid", "x"),
        ("lid", "0x100000000"),
        ("lid_mask_count", "256"),
        ("state", ""),
        ("cap_mask", "-1"),
        ("gids/0", "fe80:0"),
        ("pkeys/0", "0x10000"),
    ] {
        let tree = Tree::new();
        tree.device("d", CA).port("d", 1).set("d", 1, file, text);
        fails(port(&tree.sysfs(), "d", 1), Errno::PROTO);
    }
    let tree = Tree::new();
    tree.device("d", CA).file("d/node_guid", "0011:22ff:fe33");
    fails(ca(&tree.sysfs(), "d"), Errno::PROTO);
    tree.device("d", "CA");
    fails(ca(&tree.sysfs(), "d"), Errno::PROTO);
}

#[test]
fn what_no_port_depends_on() {
    let tree = Tree::new();
    tree.device("d", CA).port("d", 1).remove("d/ports/1/rate").remove("d/fw_ver");
    tree.folder("d/ports/x").folder("d/ports/01").bytes("d/ports/-1", b"");
    let ca = ca(&tree.sysfs(), "d").unwrap();
    let [(1, Ok(port))] = ca.ports.as_slice() else { panic!("{ca:?}") };
    assert_eq!((port.rate, ca.fw_ver), (None, None));
}

#[test]
fn a_device_that_cannot_be_read() {
    let tree = Tree::new();
    tree.device("d", CA).unreadable("d/ports");
    fails(ca(&tree.sysfs(), "d"), Errno::LOOP);
    tree.device("e", CA).unreadable("e/fw_ver");
    fails(ca(&tree.sysfs(), "e"), Errno::LOOP);
    tree.remove("e/fw_ver").unreadable("e/sys_image_guid");
    fails(ca(&tree.sysfs(), "e"), Errno::LOOP);
    // No GUID of a port depends on it.
    assert_eq!(guids(tree.port("e", 1), Some("e")), [(1, Ok(Some(1)))]);
    tree.unreadable("e/node_type");
    let error = port_guids(&tree.sysfs(), Some("e")).unwrap_err();
    assert_eq!(error.errno(), Errno::LOOP.raw_os_error());
    assert!(error.to_string().contains("e/node_type"), "{error}");
}

/// A port of RoCE would be one of InfiniBand, and the default.
#[test]
fn a_copy_without_link_layers_is_an_error() {
    let tree = Tree::new();
    tree.device("d", CA).port("d", 1).remove("d/ports/1/link_layer");
    fails(port(&tree.sysfs(), "d", 1), Errno::NOENT);
    fails(default_port(&tree.sysfs(), None), Errno::NOENT);
}

#[test]
fn a_switch_has_port_0() {
    let tree = Tree::new();
    tree.device("sw", "2: switch").port("sw", 0).is("sw", 0, 1, 3);
    assert_eq!(guids(&tree, None), [(0, Ok(Some(0)))]);
    assert_eq!(default(&tree), ("sw".to_owned(), 0));
}

#[test]
fn the_default_is_libibumads() {
    let tree = Tree::new();
    tree.device("roce", CA).port("roce", 1).set("roce", 1, "link_layer", "Ethernet");
    assert_eq!(default(&tree), ("roce".to_owned(), 1));
    tree.device("ib", CA).port("ib", 1).is("ib", 1, 1, 2).port("ib", 2);
    assert_eq!(default(&tree), ("ib".to_owned(), 2));
    assert_eq!(port_guids(&tree.sysfs(), None).unwrap().ca_name, "ib");
    tree.is("ib", 1, 1, 3).is("ib", 2, 1, 3).is("roce", 1, 1, 3);
    fails(default_port(&tree.sysfs(), None), Errno::NODEV);
    fails(default_port(&tree.sysfs(), Some("ib")), Errno::NODEV);
    assert_eq!(default_port(&tree.is("ib", 2, 1, 2).sysfs(), Some("ib")).unwrap().1, 2);
    // No array of ports bounds the choice, and one bad port hides no other.
    for number in 3..=12 {
        tree.port("ib", number).is("ib", number, 1, 3);
    }
    tree.is("ib", 12, 4, 5).unreadable("ib/ports/1/state");
    assert_eq!(default(&tree), ("ib".to_owned(), 12));
}

/// A device that could not be read may have been the default, unless an active port comes before it.
#[test]
fn the_default_is_known_or_an_error() {
    let tree = Tree::new();
    tree.device("a", CA).port("a", 1).device("b", CA).port("b", 1);
    let first = default(&tree).0;
    let second = if first == "a" { "b" } else { "a" };
    for file in ["node_type", "ports", "ports/1/state"] {
        let path = |name: &str| format!("{name}/{file}");
        let mend = |name: &str| {
            tree.remove(&path(name)).device(name, CA).port(name, 1);
        };
        tree.unreadable(&path(second));
        assert_eq!(default(&tree).0, first);
        tree.is(&first, 1, 2, 5);
        fails(default_port(&tree.sysfs(), None), Errno::LOOP);
        fails(port_guids(&tree.sysfs(), None), Errno::LOOP);
        mend(second);
        assert_eq!(default(&tree).0, second);
        tree.unreadable(&path(&first));
        fails(default_port(&tree.sysfs(), None), Errno::LOOP);
        mend(&first);
    }
}

#[test]
fn a_device_that_goes_meanwhile_is_no_device() {
    let tree = Tree::new();
    tree.device("d", CA);
    let device = DeviceFolder::find(&tree.sysfs(), "d").unwrap();
    tree.remove("d");
    let read = device.ask(&device.folder, "node_guid", |folder| folder.read("node_guid"));
    assert!(read.unwrap_err().is_no_such_device());
    // What the kernel says of a file that was opened before.
    assert!(is_missing(&Cause::DeviceGone(Errno::NODEV.raw_os_error()), false));
}

/// What a copy lacks of a device was not removed with it.
#[test]
#[cfg_attr(miri, ignore = "cannot distinguish a copy from the kernel's sysfs")]
fn a_part_of_a_sysfs_is_an_error() {
    let tree = Tree::new();
    tree.device("a", CA).port("a", 1).device("b", CA).port("b", 1);
    let first = &default(&tree).0;
    for (lacks, is_listed) in
        [("", false), ("node_type", false), ("ports", true), ("ports/1", true)]
    {
        tree.remove(&format!("{first}/{lacks}"));
        if lacks.is_empty() {
            tree.link(first, "../../devices/nowhere");
        }
        assert_eq!(ca_names(&tree.sysfs()).is_ok(), is_listed, "{lacks}");
        let errors = [
            ca(&tree.sysfs(), first).unwrap_err(),
            port(&tree.sysfs(), first, 1).unwrap_err(),
            port_guids(&tree.sysfs(), Some(first)).unwrap_err(),
            port_guids(&tree.sysfs(), None).unwrap_err(),
            default_port(&tree.sysfs(), Some(first)).unwrap_err(),
            default_port(&tree.sysfs(), None).unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error.errno(), Errno::NOENT.raw_os_error(), "{lacks}");
            assert!(error.to_string().ends_with("is all of sysfs there?"), "{error}");
        }
        tree.remove(first).device(first, CA).port(first, 1);
    }
}

/// Something covers the devices: empty folders are none of the kernel's.
#[test]
fn what_covers_the_devices_is_an_error() {
    let tree = Tree::new();
    tree.device("a", CA).port("a", 1).folder("../infiniband_verbs");
    tree.file("../infiniband_verbs/abi_version", "6").remove("a");
    assert_eq!(ca_names(&tree.sysfs()).unwrap(), [""; 0]);
    fails(ca(&tree.sysfs(), "a"), Errno::NODEV);
    tree.remove("../infiniband_verbs/abi_version");
    let is_covered = |tree: &Tree| {
        let errors = [
            ca_names(&tree.sysfs()).unwrap_err(),
            ca(&tree.sysfs(), "a").unwrap_err(),
            port_guids(&tree.sysfs(), Some("a")).unwrap_err(),
            port_guids(&tree.sysfs(), None).unwrap_err(),
            default_port(&tree.sysfs(), Some("a")).unwrap_err(),
            default_port(&tree.sysfs(), None).unwrap_err(),
        ];
        for error in errors {
            let text = error.to_string();
            assert!(text.contains("class/infiniband_verbs") && text.contains("covers"), "{text}");
        }
    };
    is_covered(&tree);
    // A copy without the nodes' class, though its module is loaded, is a part.
    tree.remove("../infiniband_verbs");
    assert_eq!(ca_names(&tree.sysfs()).unwrap(), [""; 0]);
    tree.folder("../../module/ib_uverbs");
    is_covered(&tree);
}

/// What is not as the kernel writes it.
#[test]
fn a_text_of_another_program_is_an_error() {
    let tree = Tree::new();
    tree.device("a", CA).port("a", 1);
    assert!(port(&tree.sysfs(), "a", 1).is_ok());
    for (file, texts) in [
        ("gids/0", &["fe80::1", "::", "::ffff:1.2.3.4", "x"][..]),
        ("rate", &["garbage", "100", "junk Gb/sec (4X FDR)", "56 Gb/sec (4X FDR", " Gb/sec ()"]),
        ("lid", &["x", "-1"]),
    ] {
        let path = format!("a/ports/1/{file}");
        let before = std::fs::read_to_string(tree.class().join(&path)).unwrap();
        for text in texts {
            tree.file(&path, text);
            fails(port(&tree.sysfs(), "a", 1), Errno::PROTO);
        }
        tree.file(&path, &before);
    }
    assert!(port(&tree.sysfs(), "a", 1).is_ok());
}

/// As in a container into which only the class is mounted: the links in the kernel's folder lead nowhere.
#[test]
#[cfg_attr(miri, ignore = "runs a program")]
fn a_class_whose_links_lead_nowhere_is_an_error() {
    const TREE: &str = "UVERBS_TEST_TREE";
    if let Some(root) = std::env::var_os(TREE) {
        let sysfs = crate::sysfs::Sysfs::at(root);
        fails(ca_names(&sysfs), Errno::NOENT);
        fails(ca(&sysfs, "lo"), Errno::NOENT);
        fails(default_port(&sysfs, None), Errno::NOENT);
        fails(ca(&sysfs, "lo2"), Errno::NODEV);
        return;
    }
    let tree = Tree::new();
    let own = "umad::tests::lenient::a_class_whose_links_lead_nowhere_is_an_error";
    let run = std::process::Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c"])
        .arg("mount --bind /sys/class/net \"$0\" || exit 77; exec \"$@\"")
        .arg(tree.class())
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", own])
        .env(TREE, tree.sysfs().root())
        .output();
    match run {
        Ok(run) if matches!(run.status.code(), Some(0 | 101)) => {
            assert!(String::from_utf8_lossy(&run.stdout).contains("1 passed"), "{run:?}");
        }
        // Not by the macro, whose output is shown of what fails only.
        _ => {
            let why = "SKIPPED TEST: a class whose links lead nowhere: no folder can be mounted";
            writeln!(std::io::stdout().lock(), "\n{why}").unwrap();
        }
    }
}

#[test]
fn the_default_agrees_with_the_strict_one() {
    for state in 0..64u8 {
        let tree = Tree::new();
        for (bit, name) in ["m", "b", "z", "a"].into_iter().enumerate() {
            tree.device(name, CA).port(name, 1);
            match (state >> bit & 1, state >> 4) {
                (0, _) => tree.is(name, 1, 1, 3),
                (_, 0) => tree.is(name, 1, 2, 5),
                (_, 1) => tree.set(name, 1, "link_layer", "Ethernet"),
                (_, 2) => &tree,
                (_, _) => tree.is(name, 1, 1, 2),
            };
        }
        let by_the_letter = strict::get_port(&tree.sysfs(), None, 0);
        let by_the_letter = by_the_letter.map(|port| port.ca_name.to_string()).ok();
        let name = default_port(&tree.sysfs(), None).map(|(name, _)| name).ok();
        assert_eq!(name, by_the_letter, "{state}");
        assert_eq!(name.is_none(), state % 16 == 0);
    }
}

#[test]
fn rates() {
    assert_eq!(parse_rate("2.5 Gb/sec (1X SDR)"), Some(Rate(25)));
    assert_eq!(parse_rate("100 Gb/sec (4X EDR)"), Some(Rate(1000)));
    for odd in ["", "100", "100 Mb/s", " Gb/sec", "1.25 Gb/sec", "-1 Gb/sec", "1. Gb/sec"] {
        assert_eq!(parse_rate(odd), None, "{odd:?}");
    }
    assert_eq!(parse_rate("18446744073709551615.9 Gb/sec"), None);
}
