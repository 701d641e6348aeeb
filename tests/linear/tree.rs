//! Devices of a sysfs tree, each with a port and nodes.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::count::{hold, instructions};
use crate::turn::test_has_its_turn;

/// The least number of devices.
const LEAST: usize = 60;

#[test]
fn devices_of_a_tree() {
    if !test_has_its_turn(5, "devices of a tree") {
        return;
    }
    let folder = TempDir::new().unwrap();
    let root = |count: usize| folder.path().join(count.to_string());
    for count in [LEAST, 2 * LEAST, 4 * LEAST] {
        let root = root(count);
        (0..count).for_each(|number| write_device(&root.join("class"), number));
        fs::create_dir_all(root.join("module/ib_core")).unwrap();
        fs::write(root.join("class/infiniband_verbs/abi_version"), "6").unwrap();
        fs::write(root.join("class/infiniband_mad/abi_version"), "5").unwrap();
    }
    for words in [
        &["devices"] as &[&str],
        &["ports"],
        &["gids"],
        &["guids"],
        &["pkeys"],
        &["cdi"],
        &["check"],
        &["choose"],
        &["snapshot"],
        &["metrics"],
        &["nfd"],
    ] {
        hold("devices of a tree", words, LEAST, |count| {
            let root = root(count);
            let own = ["--sysfs", root.to_str().unwrap()];
            instructions(&[words, &own].concat(), &[])
        });
    }
}

fn write_device(class: &Path, number: usize) {
    let name = format!("mlx5_{number}");
    let port = format!("infiniband/{name}/ports/1");
    let node = |of: &str, file: &str| format!("infiniband_{of}{number}/{file}");
    let guid = format!("0002:c903:0000:{number:04x}");
    for (file, text) in [
        (format!("infiniband/{name}/node_type"), "1: CA"),
        (format!("infiniband/{name}/node_guid"), &guid),
        (format!("infiniband/{name}/sys_image_guid"), &guid),
        (format!("{port}/state"), "4: ACTIVE"),
        (format!("{port}/phys_state"), "5: LinkUp"),
        (format!("{port}/link_layer"), "Ethernet"),
        (format!("{port}/rate"), "100 Gb/sec (4X EDR)"),
        (format!("{port}/lid"), "0x0"),
        (format!("{port}/sm_lid"), "0x0"),
        (format!("{port}/sm_sl"), "0"),
        (format!("{port}/lid_mask_count"), "0"),
        (format!("{port}/cap_mask"), "0x0"),
        (format!("{port}/pkeys/0"), "0xffff"),
        (format!("{port}/gids/0"), "fe80:0000:0000:0000:0011:22ff:fe33:4455"),
        (format!("{port}/gid_attrs/types/0"), "RoCE v2"),
        (format!("{port}/gid_attrs/ndevs/0"), "eth0"),
        (node("verbs/uverbs", "ibdev"), &name),
        (node("verbs/uverbs", "dev"), "231:192"),
        (node("mad/umad", "ibdev"), &name),
        (node("mad/umad", "dev"), "231:0"),
        (node("mad/umad", "port"), "1"),
    ] {
        let path = class.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}
