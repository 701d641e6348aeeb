//! Every JSON document matches its schema: for each command, each way to ask for JSON and each input, also
//! if the input is missing or cannot be read.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::conforms::conforms;
use crate::pages;
use crate::run::{finish, from, program};
use crate::snapshots::{Fleet, VLAN, fleet_with_everything, host, port};
use crate::tree::Tree;

/// Commands with JSON, each in all ways to ask for it, and the schemas of their answers.
const COMMANDS: &[(&[&str], &str)] = &[
    (&["devices", "--json"], "devices.json"),
    (&["devices", "mlx5_0", "nowhere", "--json"], "devices.json"),
    (&["gids", "--json"], "gids.json"),
    (&["gids", "--format", "json"], "gids.json"),
    (&["gids", "--type", "v2", "--netdev", "eth0", "--json"], "gids.json"),
    (&["gids", "mlx5_0:1", "nowhere", "--json"], "gids.json"),
    (&["gid", "mlx5_0:1", "1", "--json"], "gids.json"),
    (&["gid", "mlx5_0:1", "2", "--json"], "gids.json"),
    (&["ports", "--json"], "ports.json"),
    (&["ports", "nowhere:7", "--json"], "ports.json"),
    (&["ports", "--format", "json"], "ports.json"),
    (&["guids", "--json"], "guids.json"),
    (&["pkeys", "--json"], "pkeys.json"),
    (&["pkeys", "mlx4_0:1", "nowhere", "--json"], "pkeys.json"),
    (&["choose", "--json"], "choose.json"),
    (&["choose", "--explain", "--like", "ucx", "--json"], "choose.json"),
    (&["choose", "mlx5_0:1", "--json"], "choose.json"),
    (&["env", "nccl", "--json"], "env.json"),
    (&["env", "ucx", "--format", "json"], "env.json"),
    (&["env", "nvshmem", "mlx5_0:1", "--json"], "env.json"),
    (&["check", "--json"], "check.json"),
    (&["check", "--link-layer", "infiniband", "mlx5_0", "--json"], "check.json"),
    (&["check", "mlx5_0:1", "--json"], "check.json"),
    (&["fleet", "--json"], "fleet.json"),
    (&["fleet", "--hosts", "node[1-3]", "--all-to-all", "--json"], "fleet.json"),
    (&["check", "--format", "json"], "check.json"),
];

/// Commands that read this host and nothing else.
const HERE: &[(&[&str], &str)] = &[
    (&["mlx5", "port", "--json"], "mlx5-port.json"),
    (&["mlx5", "port", "nowhere:1", "--json"], "mlx5-port.json"),
    (&["mlx5", "vport", "--json"], "mlx5-vport.json"),
    (&["mlx5", "device", "--json"], "mlx5-device.json"),
    (&["counters", "--json"], "counters.json"),
    (&["counters", "--rate", "0.001", "nowhere:1", "--json"], "counters.json"),
    (&["wait", "--timeout", "0", "--json"], "wait.json"),
    (&["limits", "--json"], "limits.json"),
    (&["limits", "nowhere", "--json"], "limits.json"),
    (&["snapshot"], "snapshot.json"),
    (&["snapshot", "--source", "sysfs"], "snapshot.json"),
    (&["gids", "--source", "ioctl", "--json"], "gids.json"),
];

/// Commands without one JSON document: what they print has tests of its own.
const OTHERS: [&str; 8] =
    ["expect", "metrics", "nfd", "cdi", "watch", "history", "completions", "man"];

/// A command that is forgotten here would have no schema.
#[test]
fn every_command_is_here() {
    for command in pages::commands() {
        let words: Vec<&str> = command.split(' ').collect();
        let mut all = COMMANDS.iter().chain(HERE);
        let is_here = all.any(|(own, _)| own.starts_with(&words));
        assert!(is_here != OTHERS.contains(&command.as_str()), "{command}");
    }
}

/// Runs a command with these paths after it.
#[track_caller]
fn conforms_with(command: &[&str], behind: &[&Path], schema: &str) {
    let run = finish(program().args(command).args(behind));
    let document = serde_json::from_str::<Value>(&run.stdout);
    let document =
        document.unwrap_or_else(|error| panic!("{command:?} {behind:?}: {error}: {run:?}"));
    conforms(schema, &document);
    // Problems in the document are not on stderr too.
    let problems = document["problems"].as_array().map_or(0, Vec::len);
    assert!(
        problems == 0 || run.status != 0 || command[0] == "snapshot",
        "{command:?} {behind:?}: {run:?}"
    );
}

#[test]
fn here() {
    for (command, schema) in COMMANDS.iter().chain(HERE) {
        conforms_with(command, &[], schema);
    }
}

#[test]
fn trees() {
    let (full, broken, empty, bare) =
        (Tree::new(), Tree::new(), Tree::new(), TempDir::new().unwrap());
    full.with_roce();
    full.with_infiniband();
    full.with_iwarp();
    full.with_switch();
    broken.with_roce().port_again(1).file("gids/3", "not a GID");
    broken.with_infiniband().port_again(1).remove("state");
    broken.device("bad0", "1: CA", 5).file("node_guid", "no GUID");
    for tree in [full.path(), broken.path(), empty.path(), bare.path()] {
        for (command, schema) in COMMANDS {
            conforms_with(command, &[Path::new("--sysfs"), tree], schema);
        }
        conforms_with(&["snapshot"], &[Path::new("--sysfs"), tree], "snapshot.json");
        conforms_with(&["counters", "--json"], &[Path::new("--sysfs"), tree], "counters.json");
    }
}

#[test]
fn snapshots() {
    let fleet = fleet_with_everything();
    let (one, two) = (fleet.file(0), fleet.file(1));
    let mut odd = host("node3", &[("mlx5_0", port(VLAN))]);
    // A port without a network interface anywhere has no MTU; a code that is not known is a text.
    odd["devices"][0]["ports"][0]["attributes"][0]["active_mtu"] = 0.into();
    odd["devices"][0]["ports"][0]["attributes"][0]["max_mtu"] = 99.into();
    odd["problems"] = serde_json::json!([{ "error": "host: no", "errno": 5 }]);
    let mut none = host("node4", &[]);
    none["absences"] = serde_json::json!([{ "reason": "no_device" }]);
    let others = Fleet::new(&[odd, none]);
    let (odd, none) = (others.file(0), others.file(1));
    let folder = TempDir::new().unwrap();
    let broken = folder.path().join("broken.json");
    fs::write(&broken, "{").unwrap();
    let nowhere = folder.path().join("nowhere.json");
    let sources: [&[&Path]; 9] = [
        &[&one],
        &[&two],
        &[&odd],
        &[&none],
        &[&one, &two, &odd, &none],
        &[&broken],
        &[&nowhere],
        &[&one, &broken, &nowhere],
        &[folder.path()],
    ];
    for files in sources {
        for (command, schema) in COMMANDS {
            let words = from(files.iter());
            let words: Vec<&Path> = words.iter().map(Path::new).collect();
            conforms_with(command, &words, schema);
        }
    }
    // The list is there, and empty.
    for command in ["devices", "gids", "ports", "guids", "pkeys"] {
        let run = finish(program().args([command, "--json", "--from"]).arg(&nowhere));
        let answer: Value = serde_json::from_str(&run.stdout).unwrap();
        assert_eq!(answer[command], serde_json::json!([]));
        assert_eq!((&answer["problems"][0]["errno"], run.status), (&2.into(), 3));
    }
    let rows = finish(program().args(["gids", "--format", "json", "--from"]).arg(&one));
    let rows: Value = serde_json::from_str(&rows.stdout).unwrap();
    assert_eq!(rows["gids"].as_array().unwrap().len(), 8);
    let ports = finish(program().args(["ports", "--json", "--from"]).arg(&odd));
    let ports: Value = serde_json::from_str(&ports.stdout).unwrap();
    assert_eq!(ports["ports"][0]["active_mtu"], Value::Null);
    assert_eq!(ports["ports"][0]["max_mtu"], "unknown(99)");
}
