//! What is said of that which was not read, or is not known: of a device, of a port, of one host of many.

use serde_json::{Value, json};

use crate::snapshots::{DUAL, Fleet, host, port};

/// A snapshot of a host of which a device was listed and not read.
fn with_other(devices: &[(&str, Value)]) -> Fleet {
    let mut own = host("h", devices);
    own["others"] = json!([{
        "name": "mlx5_1", "index": 7, "node_type": 1, "node_guid": "0x0002c90300000009",
        "sys_image_guid": "0x0002c90300000009", "fw_version": null, "protocol": "roce",
        "port_count": 1, "driver": null, "node": null, "node_is_unread": false,
    }]);
    Fleet::new(&[own])
}

#[test]
fn a_device_that_was_only_listed_was_not_read() {
    const SAID: &str = "h: mlx5_1: was not read when the snapshot was written\n";
    let fleet = with_other(&[("mlx5_0", port(DUAL))]);
    for command in [
        &["gids"][..],
        &["ports"],
        &["guids"],
        &["devices"],
        &["choose"],
        &["check"],
        &["env", "nccl"],
        &["env", "ucx"],
    ] {
        for names in [&[][..], &["mlx5_1"], &["mlx5_0", "mlx5_1"]] {
            let run = fleet.uverbs(&[command, names].concat());
            assert_eq!((run.status, run.stderr.contains(SAID)), (3, true), "{names:?} {run:?}");
            assert!(!run.stderr.contains("all slots are empty"), "{run:?}");
            assert!(!run.stdout.contains("export"), "{run:?}");
            assert!(!run.stdout.contains("host-unreadable"), "{run:?}");
        }
        // Nothing of the other is unknown.
        let run = fleet.uverbs(&[command, &["mlx5_0"]].concat());
        assert_eq!(run.status, 0, "{run:?}");
    }
    let run = fleet.uverbs(&["check", "mlx5_1"]);
    let last = "nothing was checked: nothing that is asked for was read\n";
    assert!(run.stderr.ends_with(last), "{run:?}");
    let run = fleet.uverbs(&["check"]);
    let last = "no problems found in what was looked at: 1 device, 1 port, 4 GIDs; not everything that \
                is asked for was read\n";
    assert!(run.stderr.ends_with(last), "{run:?}");
    let run = with_other(&[]).uverbs(&["check"]);
    assert_eq!((run.status, run.stdout.lines().count()), (3, 1), "{run:?}");
    assert_eq!(
        run.stderr,
        format!("uverbs: {SAID}uverbs: nothing was checked: nothing that is asked for was read\n")
    );
}
