//! `devices`, and hosts without any.

use std::fs;

use serde_json::json;

use crate::conforms::conforms;
use crate::run::{finish, program};
use crate::tree::{Tree, write};

#[test]
fn what_a_host_has() {
    let tree = Tree::new();
    tree.with_switch();
    tree.with_infiniband().file("fw_ver", "");
    assert_eq!(
        tree.answer(&["devices"]),
        "\
DEVICE  TYPE    PROTOCOL  DRIVER  PORTS  NODE_GUID           FW          UVERBS
mlx4_0  ca      -         -       2      0x0002c90300000004  -           uverbs4
sw0     switch  -         -       1      0x0002c9030000000c  28.39.2048  uverbs12
"
    );
    let expected = json!({
        "devices": [{
            "device": "mlx4_0", "index": null, "node_type": "ca", "protocol": null,
            "driver": null, "node_guid": "0x0002c90300000004",
            "sys_image_guid": "0x0002c90300010004", "fw_version": null, "ports": 2,
            "uverbs": "uverbs4", "node": "/dev/infiniband/uverbs4", "pci": null,
            "numa_node": null, "board_id": null, "ca_type": null, "hw_rev": null,
        }],
        "problems": [],
    });
    for folder in ["infiniband/sw0", "infiniband_verbs/uverbs12"] {
        fs::remove_dir_all(tree.path().join("class").join(folder)).unwrap();
    }
    assert_eq!(tree.json(&["devices"]), expected);
}

/// A function whose link is narrow, and its virtual function.
#[test]
fn the_place_of_a_device() {
    let tree = Tree::new();
    let files = |device: &crate::tree::Device, folder: &str, address: &str| {
        let uevent = format!("DRIVER=mlx5_core\nPCI_ID=15B3:1021\nPCI_SLOT_NAME={address}");
        for (file, text) in [
            ("uevent", uevent.as_str()),
            ("numa_node", "1"),
            ("current_link_speed", "16.0 GT/s PCIe"),
            ("current_link_width", "8"),
            ("max_link_speed", "32.0 GT/s PCIe"),
            ("max_link_width", "16"),
        ] {
            device.file(&format!("{folder}/{file}"), text);
        }
    };
    let function = tree.with_roce();
    files(&function, "device", "0000:17:00.0");
    function.file("board_id", "MT_0000000838");
    function.file("hca_type", "MT4129");
    function.file("hw_rev", "0");
    let other = tree.device("mlx5_1", "1: CA", 1);
    other.port(1, "Ethernet", "100 Gb/sec (4X EDR)", 4);
    files(&other, "device", "0000:17:00.2");
    files(&other, "device/physfn", "0000:17:00.0");
    let lost = tree.device("mlx5_2", "1: CA", 2);
    lost.port(1, "Ethernet", "100 Gb/sec (4X EDR)", 4);
    files(&lost, "device", "0000:17:00.3");
    // Its function is not in the tree.
    let physfn = tree.path().join("class/infiniband/mlx5_2/device/physfn");
    std::os::unix::fs::symlink("../0000:17:00.0", &physfn).unwrap();
    let said = "mlx5_2: its physical function could not be read\n";
    let all = |run: crate::run::Run| -> serde_json::Value {
        assert!(run.stderr.ends_with(said) && run.status == 0, "{run:?}");
        let answer = serde_json::from_str(&run.stdout).unwrap();
        conforms("devices.json", &answer);
        answer
    };
    let devices = &all(tree.uverbs(&["devices", "--json"]))["devices"];
    let link = json!({ "gts": 16.0, "lanes": 8 });
    let max = json!({ "gts": 32.0, "lanes": 16 });
    assert_eq!(
        devices[0]["pci"],
        json!({ "address": "0000:17:00.0", "function": "pf", "physical": null,
                "id": "15b3:1021", "link": link, "max_link": max })
    );
    assert_eq!(
        (&devices[0]["numa_node"], &devices[0]["board_id"]),
        (&json!(1), &json!("MT_0000000838"))
    );
    assert_eq!((&devices[0]["ca_type"], &devices[0]["hw_rev"]), (&json!("MT4129"), &json!("0")));
    assert_eq!(devices[1]["pci"]["function"], "vf");
    assert_eq!(devices[1]["pci"]["physical"], "0000:17:00.0");
    let as_lost = json!({ "address": "0000:17:00.3", "function": "vf", "physical": null, "physical_is_unread": true,
                       "id": "15b3:1021", "link": null, "max_link": null });
    assert_eq!(devices[2]["pci"], as_lost);
    let wide = tree.uverbs(&["devices", "--wide"]).stdout;
    let cells = "0000:17:00.2  vf        0000:17:00.0  1     16GT/s,x8  32GT/s,x16  15b3:1021";
    assert!(wide.contains(cells), "{wide}");
    let cells = "0000:17:00.3  vf        ?             1     ?          ?           15b3:1021";
    assert!(wide.contains(cells), "{wide}");
    // In a virtual machine a function is known by its number, or not.
    fs::remove_file(&physfn).unwrap();
    for (id, kind) in [("15B3:101E", json!("vf")), ("8086:1889", json!(null))] {
        lost.file(
            "device/uevent",
            &format!(
                "PCI_ID={id}
PCI_SLOT_NAME=0000:17:00.3"
            ),
        );
        assert_eq!(tree.json(&["devices", "mlx5_2"])["devices"][0]["pci"]["function"], kind);
    }
    files(&lost, "device", "0000:17:00.3");
    std::os::unix::fs::symlink("../0000:17:00.0", physfn).unwrap();
    // It is in a snapshot, and those of older versions have none.
    let mut document: serde_json::Value =
        serde_json::from_str(&tree.answer(&["snapshot"])).unwrap();
    let of_file = |document: &serde_json::Value| {
        let fleet = crate::snapshots::Fleet::new(std::slice::from_ref(document));
        (fleet.uverbs(&["devices", "--json"]), fleet.uverbs(&["check"]).stdout)
    };
    let (from_snapshot, found) = of_file(&document);
    let mut from_snapshot = all(from_snapshot);
    from_snapshot["devices"][0].as_object_mut().unwrap().remove("host");
    assert_eq!(from_snapshot["devices"][0], devices[0]);
    assert_eq!(from_snapshot["devices"][1]["pci"], devices[1]["pci"]);
    assert_eq!(from_snapshot["devices"][2]["pci"], as_lost);
    // It is said of the function only.
    assert_eq!(found.matches("pcie-narrow").count(), 1, "{found}");
    assert!(found.contains("of 0000:17:00.0 is 16GT/s,x8"), "{found}");
    for device in document["devices"].as_array_mut().unwrap() {
        device.as_object_mut().unwrap().remove("hardware");
    }
    let (older, found) = of_file(&document);
    let older: serde_json::Value = serde_json::from_str(&older.stdout).unwrap();
    assert_eq!(older["devices"][0]["pci"], json!(null));
    assert!(!found.contains("pcie-narrow"), "{found}");
}

/// Parts of the hardware, and the keys that say that they are not known.
pub(crate) const UNREAD: [(&str, &str); 3] = [
    ("pci", "pci_is_unread"),
    ("numa_node", "numa_node_is_unread"),
    ("board_id", "board_is_unread"),
];

/// That it has none is another answer.
#[test]
fn hardware_that_could_not_be_read() {
    let tree = Tree::new();
    let device = tree.device("mlx5_0", "1: CA", 0);
    device.port(1, "Ethernet", "100 Gb/sec (4X EDR)", 4);
    let answered = |args: &[&str]| {
        let run = tree.uverbs(args);
        assert_eq!(run.status, 0, "{run:?}");
        (run.stdout, run.stderr)
    };
    let document =
        |args: &[&str]| -> serde_json::Value { serde_json::from_str(&answered(args).0).unwrap() };
    let unread =
        |row: &serde_json::Value| UNREAD.map(|(part, key)| row[key] == true && row[part].is_null());
    assert_eq!(unread(&document(&["devices", "--json"])["devices"][0]), [false; 3]);
    device.file("device/uevent", "PCI_SLOT_NAME=odd");
    assert_eq!(unread(&document(&["devices", "--json"])["devices"][0]), [true, true, false]);
    assert_eq!(answered(&["devices"]).1, "");
    device.file("board_id", "\u{7}");
    assert_eq!(unread(&document(&["devices", "--json"])["devices"][0]), [true; 3]);
    let (wide, said) = answered(&["devices", "--wide", "--no-header"]);
    assert!(wide.ends_with("  ?  ?  ?  ?  ?  ?  ?  ?  -  -\n"), "{wide}");
    assert_eq!(said, "uverbs: mlx5_0: its PCI function, NUMA node and board could not be read\n");
    // Without its folder nothing is known; a snapshot may be older.
    let mut older = document(&["snapshot"]);
    older["devices"][0]["hardware"].as_object_mut().unwrap().remove("numa_node_is_unread");
    let fleet = crate::snapshots::Fleet::new(std::slice::from_ref(&older));
    assert_eq!(unread(&fleet.json(&["devices"])["devices"][0]), [true; 3]);
    // It is said where hardware is shown.
    let run = crate::snapshots::Fleet::new(std::slice::from_ref(&older)).uverbs(&["devices"]);
    assert_eq!((run.status, run.stderr.as_str()), (0, ""), "{run:?}");
    older["devices"][0].as_object_mut().unwrap().remove("hardware");
    let fleet = crate::snapshots::Fleet::new(&[older]);
    let run = fleet.uverbs(&["devices", "--json"]);
    let rows: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(unread(&rows["devices"][0]), [true; 3]);
    conforms("devices.json", &rows);
    let run = fleet.uverbs(&["devices", "--wide", "--no-header"]);
    assert!(run.stdout.ends_with("  ?  ?  ?  ?  ?  ?  ?  ?  ?  ?\n"), "{run:?}");
    assert!(run.stderr.ends_with(": mlx5_0: its hardware is not known\n"), "{run:?}");
    assert_eq!(run.status, 0, "{run:?}");
}

#[test]
fn a_device_without_a_node() {
    let tree = Tree::new();
    tree.with_roce();
    fs::remove_dir_all(tree.path().join("class/infiniband_verbs")).unwrap();
    // So it is known that ib_uverbs is not loaded.
    fs::create_dir_all(tree.path().join("module/kernel")).unwrap();
    let answer = tree.json(&["devices"]);
    assert_eq!(answer["devices"][0]["uverbs"], json!(null));
    assert_eq!(answer["devices"][0]["node"], json!(null));
}

/// A node that could not be looked for is not none.
#[test]
fn a_node_that_is_not_known() {
    let tree = Tree::new();
    tree.with_roce();
    fs::remove_dir_all(tree.path().join("class/infiniband_verbs")).unwrap();
    fs::create_dir_all(tree.path().join("module/ib_uverbs")).unwrap();
    let said = "mlx5_0: it is not known which uverbs node it has\n";
    let run = tree.uverbs(&["devices", "--json"]);
    let answer: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    conforms("devices.json", &answer);
    let device = &answer["devices"][0];
    assert_eq!((&device["uverbs"], &device["node_is_unread"]), (&json!(null), &json!(true)));
    assert!(run.status == 0 && run.stderr == format!("uverbs: {said}"), "{run:?}");
    let run = tree.uverbs(&["devices"]);
    assert!(run.stdout.ends_with("  ?\n") && run.stderr.contains(said), "{run:?}");
    let document = serde_json::from_str(&tree.uverbs(&["snapshot"]).stdout).unwrap();
    let run = crate::snapshots::Fleet::new(&[document]).uverbs(&["devices"]);
    assert!(run.stderr.contains(said), "{run:?}");
}

#[test]
fn no_device_is_an_answer_with_a_reason() {
    let tree = Tree::new();
    for (command, list) in [
        (&["devices"] as &[&str], "devices"),
        (&["gids"], "gids"),
        (&["ports"], "ports"),
        (&["guids"], "guids"),
    ] {
        let run = tree.uverbs(command);
        assert_eq!(run.stdout.lines().count(), 1, "the heading alone: {run:?}");
        assert!(run.stderr.starts_with("uverbs: no RDMA device: "), "{run:?}");
        assert!(run.stderr.contains("rdma link add"), "{run:?}");
        // What this host's /dev holds has no bearing on another host's sysfs.
        assert!(!run.stderr.contains("/dev/infiniband"), "{run:?}");
        assert_eq!(run.status, 0);
        let run = tree.uverbs(&[command, &["--json"]].concat());
        assert_eq!(run.stdout, format!("{{\"{list}\":[],\"problems\":[]}}\n"));
        assert!(run.stderr.contains("no RDMA device"), "{run:?}");
        assert_eq!(run.status, 0);
    }
}

#[test]
fn no_module() {
    let tree = Tree::new();
    fs::remove_dir_all(tree.path().join("class/infiniband")).unwrap();
    // It is a part of a sysfs, and so may be that of a host with devices.
    for command in ["gids", "expect", "cdi", "nfd"] {
        let run = tree.uverbs(&[command]);
        assert_eq!((run.status, run.stdout.contains("=false")), (3, false), "{run:?}");
        assert!(run.stderr.contains("is all of sysfs there?"), "{run:?}");
    }
    fs::create_dir_all(tree.path().join("module/kernel")).unwrap();
    fs::create_dir(tree.path().join("class/net")).unwrap();
    let run = tree.uverbs(&["gids"]);
    assert!(run.stderr.contains("no RDMA module is loaded"), "{run:?}");
    assert_eq!(run.status, 0);
}

#[test]
fn a_device_of_the_name_host_is_a_device() {
    let tree = Tree::new();
    tree.device("host", "odd", 0);
    for command in [["gids", "host"], ["ports", "host"]] {
        let run = tree.uverbs(&[&command[..], &["--json"]].concat());
        let answer: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
        let problems = answer["problems"].as_array().unwrap();
        assert_eq!(problems.len(), 1, "{run:?}");
        assert_eq!(problems[0]["device"], json!("host"), "{run:?}");
        assert!(problems[0]["error"].as_str().unwrap().starts_with("host: read "), "{run:?}");
    }
}

/// As where the path is mistyped, or nothing is mounted there.
#[test]
fn a_folder_that_is_no_sysfs() {
    let tree = Tree::new();
    fs::remove_dir_all(tree.path().join("class")).unwrap();
    let path = tree.path().display().to_string();
    for command in [&["gids"] as &[&str], &["devices"], &["ports", "x"], &["choose"], &["check"]] {
        let run = tree.uverbs(&[command, &["--json"]].concat());
        assert!(run.stderr.is_empty() || !run.stderr.contains("no RDMA"), "{run:?}");
        let said = format!("{}{}", run.stdout, run.stderr);
        assert!(said.contains(&format!("host: read {path}: not a sysfs")), "{run:?}");
        assert_eq!(run.status, 3);
    }
}

/// In the kernel's sysfs a node without its device's folder is another namespace's. A copy may lack the folder.
#[test]
fn a_device_of_which_a_copy_has_only_the_node() {
    let tree = Tree::new();
    tree.with_roce();
    let node = tree.path().join("class/infiniband_verbs/uverbs3");
    write(node.join("ibdev"), "mlx5_3");
    write(node.join("dev"), "231:195");
    let run = tree.uverbs(&["devices", "--no-header"]);
    assert_eq!((run.stdout.lines().count(), run.status), (1, 3), "{run:?}");
    assert!(run.stderr.starts_with("uverbs: mlx5_3: read "), "{run:?}");
    assert!(run.stderr.ends_with("is all of sysfs there?\n"), "{run:?}");
    let run = tree.uverbs(&["check"]);
    assert!(run.stdout.contains("device-unreadable") && run.status == 2, "{run:?}");
    assert!(!run.stdout.contains("device-elsewhere"), "{run:?}");
}

#[test]
fn a_device_that_is_named() {
    let tree = Tree::new();
    tree.with_roce();
    tree.with_switch();
    let run = tree.uverbs(&["devices", "sw0", "--no-header"]);
    assert_eq!((run.stdout.lines().count(), run.status), (1, 0), "{run:?}");
    assert!(run.stdout.starts_with("sw0"), "{run:?}");
    let run = tree.uverbs(&["devices", "sw0", "mlx5_9", "--no-header"]);
    assert!(
        run.stdout.starts_with("sw0") && run.stderr.contains("mlx5_9: no such device"),
        "{run:?}"
    );
    assert_eq!(run.status, 1);
}

/// The device is elsewhere, so its driver is loaded.
#[test]
fn the_first_advice_in_exclusive_mode() {
    let mut one = crate::snapshots::host("node1", &[]);
    one["shares_namespaces"] = json!(false);
    one["absences"] = json!([
        { "reason": "no_device" },
        { "reason": "other_namespace", "device": "mlx5_3", "node": "uverbs3" },
    ]);
    let run = |one: &serde_json::Value, command: &str| {
        crate::snapshots::Fleet::new(std::slice::from_ref(one)).uverbs(&[command])
    };
    let said = run(&one, "gids").stderr;
    let lines: Vec<&str> = said.lines().collect();
    let first = "uverbs: node1: no RDMA device: mlx5_3 (uverbs3) is in another network namespace";
    assert!(lines[0].starts_with(first) && lines[1].contains("netns exclusive"), "{said}");
    assert!(!said.contains("load the device's driver") && lines.len() == 2, "{said}");
    assert!(!run(&one, "check").stdout.contains("load the device's driver"));
    // Where nobody says which device is elsewhere, the mode comes first.
    one["absences"] = json!([{ "reason": "no_device" }]);
    let said = run(&one, "gids").stderr;
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].contains("netns exclusive") && lines[1].contains("driver"), "{said}");
}

/// Whatever this host has, every command must end well on it.
#[test]
fn this_very_host() {
    for command in ["devices", "gids", "ports", "guids"] {
        let run = finish(program().args([command, "--json"]));
        let answer: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
        assert!(answer[command].is_array(), "{run:?}");
        let is_complete = answer["problems"].as_array().unwrap().is_empty();
        assert_eq!(run.status, if is_complete { 0 } else { 3 }, "{run:?}");
    }
}
