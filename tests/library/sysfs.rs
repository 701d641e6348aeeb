//! Sysfs trees that no kernel makes: any content of the files gives an answer or an error.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use proptest::prelude::*;
use uverbs::host::Host;
use uverbs::sysfs::Sysfs;
use uverbs::umad;

/// What may be found in the place of a file.
#[derive(Clone, Debug)]
enum Found {
    /// What a kernel would write.
    Right,
    Nothing,
    Folder,
    Loop,
    Bytes(Vec<u8>),
}

fn found() -> impl Strategy<Value = Found> {
    let sane = prop_oneof![
        Just("1: CA"),
        Just("2: switch"),
        Just("0011:22ff:fe33:4455"),
        Just("fe80:0000:0000:0000:0011:22ff:fe33:4455"),
        Just("0000:0000:0000:0000:0000:0000:0000:0000"),
        Just("4: ACTIVE"),
        Just("RoCE v2"),
        Just("IB/RoCE v1"),
        Just("Ethernet"),
        Just("0xffff"),
        Just("100 Gb/sec (4X EDR)"),
        Just("231:192"),
        Just("x0"),
        Just("99999999999999999999"),
        Just("-1"),
    ];
    prop_oneof![
        60 => Just(Found::Right),
        1 => Just(Found::Nothing),
        1 => Just(Found::Folder),
        1 => Just(Found::Loop),
        6 => sane.prop_map(|text| Found::Bytes(format!("{text}\n").into_bytes())),
        3 => proptest::collection::vec(any::<u8>(), 0..64).prop_map(Found::Bytes),
        1 => Just(Found::Bytes(vec![b'7'; 10_000])),
    ]
}

/// Files with what a kernel would write into them.
const FILES: &[(&str, &str)] = &[
    ("class/infiniband/x0/node_type", "1: CA"),
    ("class/infiniband/x0/node_guid", "0011:22ff:fe33:4455"),
    ("class/infiniband/x0/sys_image_guid", "0011:22ff:fe33:4455"),
    ("class/infiniband/x0/fw_ver", "1.2.3"),
    ("class/infiniband/x0/ports/1/state", "4: ACTIVE"),
    ("class/infiniband/x0/ports/1/phys_state", "5: LinkUp"),
    ("class/infiniband/x0/ports/1/link_layer", "Ethernet"),
    ("class/infiniband/x0/ports/1/rate", "100 Gb/sec (4X EDR)"),
    ("class/infiniband/x0/ports/1/lid", "0x0"),
    ("class/infiniband/x0/ports/1/sm_lid", "0x0"),
    ("class/infiniband/x0/ports/1/sm_sl", "0"),
    ("class/infiniband/x0/ports/1/lid_mask_count", "0"),
    ("class/infiniband/x0/ports/1/cap_mask", "0x00010000"),
    ("class/infiniband/x0/ports/1/gids/0", "fe80:0000:0000:0000:0011:22ff:fe33:4455"),
    ("class/infiniband/x0/ports/1/gids/7", "0000:0000:0000:0000:0000:0000:0000:0000"),
    ("class/infiniband/x0/ports/1/gids/odd", "x"),
    ("class/infiniband/x0/ports/1/gid_attrs/types/0", "RoCE v2"),
    ("class/infiniband/x0/ports/1/gid_attrs/types/7", "RoCE v2"),
    ("class/infiniband/x0/ports/1/gid_attrs/ndevs/0", "eth0"),
    ("class/infiniband/x0/ports/1/pkeys/0", "0xffff"),
    ("class/infiniband_verbs/uverbs0/ibdev", "x0"),
    ("class/infiniband_verbs/uverbs0/dev", "231:192"),
];

/// Where a kernel would have nothing.
const STRAYS: &[&str] = &["class/infiniband/x0/ports/2", "class/infiniband/x0/ports/4000000000"];

fn make(path: &Path, right: Option<&str>, found: &Found) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    match found {
        Found::Right => {
            if let Some(text) = right {
                fs::write(path, format!("{text}\n")).unwrap();
            }
        }
        Found::Nothing => {}
        Found::Folder => fs::create_dir(path).unwrap(),
        Found::Loop => symlink(path, path).unwrap(),
        Found::Bytes(bytes) => fs::write(path, bytes).unwrap(),
    }
}

proptest! {
    #[test]
    fn any_tree_is_read_or_refused(
        files in proptest::collection::vec(found(), FILES.len() + STRAYS.len()),
        name in prop_oneof![
            Just("x0".to_owned()), Just("../x0".to_owned()), Just(String::new()), any::<String>(),
        ],
        port in prop_oneof![0u32..3, any::<u32>()],
        index in prop_oneof![0u32..8, any::<u32>()],
    ) {
        let tree = tempfile::TempDir::new().unwrap();
        let strays = STRAYS.iter().map(|file| (*file, None));
        let places = FILES.iter().map(|(file, right)| (*file, Some(*right))).chain(strays);
        for ((file, right), found) in places.zip(&files) {
            make(&tree.path().join(file), right, found);
        }
        let mut host = Host::rooted(tree.path(), tree.path());
        let listing = host.list().unwrap();
        // Nodes that cannot be read, or that name another device, are a problem beside the device.
        let unlisted = listing.problems.iter().filter(|problem| problem.device() == Some("x0"));
        prop_assert_eq!(listing.devices.len() + unlisted.count(), 1);
        let sysfs = host.sysfs();
        for name in [name.as_str(), "x0"] {
            for entry in sysfs.query_gid_table(name).into_iter().flatten() {
                prop_assert!(!entry.entry.gid().is_zero());
            }
            let _ = sysfs.query_gid_ex(name, port, index);
            let _ = sysfs.query_port(name, port);
            let _ = (sysfs.query_pkey(name, port, index), sysfs.query_pkeys(name, port));
            let _ = (umad::ca(sysfs, name), umad::port_guids(sysfs, Some(name)));
            let _ = umad::strict::get_ca_portguids(sysfs, Some(name), None);
        }
        let _ = (host.absence(), umad::ca_names(host.sysfs()), umad::default_port(host.sysfs(), None));
    }
}

/// Each of these texts would be refused in its place in a snapshot.
#[cfg(feature = "serde")]
#[test]
fn an_odd_text_leaves_a_snapshot_readable() {
    use uverbs::inventory::{Snapshots, Wanted};
    for (file, text) in [
        ("class/infiniband/x0/fw_ver", "1.2\u{1}"),
        ("class/infiniband/x1\u{1}/node_type", "1: CA"),
        ("class/infiniband_verbs/uverbs0/ibdev", "a,b"),
        ("class/infiniband_verbs/uverbs0\u{1}/ibdev", "x0"),
    ] {
        let tree = tempfile::TempDir::new().unwrap();
        for (file, right) in FILES {
            make(&tree.path().join(file), Some(right), &Found::Right);
        }
        if file.ends_with("/uverbs0\u{1}/ibdev") {
            let class = tree.path().join("class/infiniband_verbs");
            fs::rename(class.join("uverbs0"), class.join("uverbs0\u{1}")).unwrap();
        }
        make(&tree.path().join(file), Some(text), &Found::Right);
        let inventory = Host::rooted(tree.path(), tree.path()).inventory(&Wanted::default());
        let document = serde_json::to_string(&inventory).unwrap();
        let read = Snapshots::new(document.as_bytes()).next().unwrap();
        let read = read.unwrap_or_else(|error| panic!("{file:?}: {error}"));
        let version = read.device("x0").unwrap().device.fw_version.as_deref();
        let odd = if file.ends_with("fw_ver") { "1.2?" } else { "1.2.3" };
        assert_eq!(version, Some(odd), "{file:?}");
    }
}

/// Without `/sys` the device is what is missing, not its port.
#[test]
fn a_missing_tree_is_not_called_a_missing_port() {
    let folder = tempfile::tempdir().unwrap();
    let sysfs = Sysfs::at(folder.path());
    let port = sysfs.query_port("x0", 1).unwrap_err();
    let gid = sysfs.query_gid_ex("x0", 1, 0).unwrap_err();
    for error in [port, gid] {
        assert_eq!(error.errno(), 2, "{error}");
        assert!(error.to_string().contains("class/infiniband/x0"), "{error}");
    }
    fs::create_dir_all(folder.path().join("class/infiniband/x0/ports/1/gids")).unwrap();
    assert_eq!(sysfs.query_port("x0", 2).unwrap_err().errno(), 22);
    assert_eq!(sysfs.query_gid_ex("x0", 1, 7).unwrap_err().errno(), 22);
}
