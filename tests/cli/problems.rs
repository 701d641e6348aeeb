//! One failure never hides another answer. Every failure is reported and changes the status.

use std::fs::OpenOptions;
use std::io;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::run::{finish, from, make_fifo, program};
use crate::snapshots::{Fleet, VLAN, host, port, set};
use crate::tree::{Tree, write};

/// Three devices, of which the middle one's GID table cannot be read.
fn with_a_broken_one() -> Tree {
    let tree = Tree::new();
    tree.with_infiniband();
    tree.with_roce().port_again(1).file("gids/3", "not a GID");
    tree.with_switch();
    tree
}

#[test]
fn a_broken_device_among_good_ones() {
    let tree = with_a_broken_one();
    let run = tree.uverbs(&["gids"]);
    let devices: Vec<&str> = run.stdout.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(devices, ["DEVICE", "mlx4_0", "sw0"]);
    assert_eq!(run.stderr.lines().count(), 1, "{run:?}");
    assert!(run.stderr.starts_with("uverbs: mlx5_0: query GID 3 of port 1: "), "{run:?}");
    assert_eq!(run.status, 3);
}

#[test]
fn in_json_problems_are_rows() {
    let tree = with_a_broken_one();
    let run = tree.uverbs(&["gids", "--json"]);
    let answer: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(answer["gids"].as_array().unwrap().len(), 2);
    let problems = answer["problems"].as_array().unwrap();
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0]["device"], "mlx5_0");
    assert_eq!(problems[0]["errno"], 71);
    assert!(problems[0]["error"].as_str().unwrap().contains("query GID 3 of port 1"));
    assert_eq!(problems[0].as_object().unwrap().len(), 3);
    assert_eq!((run.stderr.as_str(), run.status), ("", 3));
}

#[test]
fn a_broken_port_beside_a_good_one() {
    let tree = Tree::new();
    tree.with_infiniband().port_again(1).remove("state");
    let run = tree.uverbs(&["ports", "--no-header"]);
    assert!(run.stdout.starts_with("mlx4_0  2  down"), "{run:?}");
    assert_eq!(run.stdout.lines().count(), 1);
    // The file is named, as is one of a GID.
    assert!(run.stderr.contains("ports/1/state: ENOENT"), "{run:?}");
    assert_eq!(run.status, 3);
    let tree = Tree::new();
    tree.with_infiniband().port_again(1).remove("link_layer");
    let run = tree.uverbs(&["gids"]);
    assert!(run.stderr.contains("ports/1/link_layer: ENOENT") && run.status == 3, "{run:?}");
}

/// Interfaces matter to every port, also to one that is named; a device that could not be listed does not
/// matter to another.
#[test]
fn what_matters_to_every_port() {
    let asked = |key: &str, list: Value| {
        let mut node = host("node1", &[("mlx5_0", port(VLAN))]);
        node["interfaces"] = Value::Null;
        node[key] = list;
        let fleet = Fleet::new(&[node]);
        finish(program().args(["env", "nccl", "mlx5_0:1", "--from"]).arg(fleet.file(0)))
    };
    let problem = |error: &str| json!({ "error": error, "errno": 24 });
    let interfaces = problem("host: list network interfaces: Too many open files (errno 24)");
    let run = asked("problems", json!([interfaces]));
    assert_eq!((run.stdout.as_str(), run.status), ("", 3), "{run:?}");
    // It would not help to name the ports.
    assert!(run.stderr.contains("not everything was read: node1\n"), "{run:?}");
    // A device may have any name.
    for device in ["mlx5_9", "host"] {
        let problem = problem(&format!("{device}: read sysfs: Protocol error (errno 71)"));
        let run = asked("unlisted", json!([{ "device": device, "problem": problem }]));
        assert!(run.stdout.starts_with("export NCCL_"), "{run:?}");
    }
}

/// No class of devices in sysfs proves little where RDMA netlink was refused. Older versions wrote that no
/// module is loaded.
#[test]
fn a_host_that_could_not_be_asked_is_not_a_host_without_devices() {
    let mut node = host("node1", &[]);
    node["absences"] = json!([{ "reason": "no_module" }]);
    let refusal = "host: ask RDMA netlink: EPERM: Operation not permitted (errno 1)";
    node["without_netlink"] = json!({ "error": refusal, "errno": 1 });
    let fleet = Fleet::new(&[node.clone()]);
    let answer = fleet.json(&["gids"]);
    assert_eq!(answer["problems"][0]["error"], refusal);
    let fits = fleet.json(&["choose"])["fits_all"].clone();
    assert_eq!(fits["unread"], json!(["node1"]), "{fits}");
    let run = fleet.uverbs(&["gids"]);
    assert_eq!(run.stderr, format!("uverbs: node1: {refusal}\n"));
    assert_ne!(run.status, 0);
    let run = fleet.uverbs(&["check"]);
    assert!(run.stdout.contains("host-unreadable") && !run.stdout.contains("no-"), "{run:?}");

    // Without the RDMA core there is no such protocol.
    node["without_netlink"]["errno"] = json!(93);
    let run = Fleet::new(&[node]).uverbs(&["gids"]);
    assert!(run.stderr.contains("no RDMA module is loaded"), "{run:?}");
    assert!(run.stderr.contains(refusal), "why netlink did not answer: {run:?}");
    assert_eq!(run.status, 0, "{run:?}");
}

/// A kernel without RDMA netlink has no protocols and interfaces to tell, which is worth knowing. If netlink was refused, it
/// is one of the problems, and said once.
#[test]
fn why_netlink_did_not_answer_is_said_once() {
    let mut node = host("node1", &[("mlx5_0", port(VLAN))]);
    let reason = "host: ask RDMA netlink: no (errno 22)";
    node["has_netlink"] = json!(false);
    node["without_netlink"] = json!({ "error": reason, "errno": 22 });
    let said = |node: &Value, command: &str| {
        let run = Fleet::new(std::slice::from_ref(node)).uverbs(&[command]);
        let all = run.stderr.clone() + &run.stdout;
        assert_eq!(all.matches(reason).count(), 1, "{command}: {run:?}");
        (run.stderr.contains(&format!("{reason}; sysfs was read")), run.status)
    };
    for command in ["gids", "ports", "devices", "choose", "check", "expect"] {
        assert_eq!(said(&node, command), (true, 0), "{command}");
    }
    node["problems"] = json!([node["without_netlink"]]);
    for (command, status) in [("gids", 3), ("choose", 3), ("check", 2)] {
        assert_eq!(said(&node, command), (false, status), "{command}");
    }
}

/// A newer version may know more variables.
#[test]
fn a_setting_that_is_not_known_hides_nothing_else() {
    let mut node = host("node1", &[("mlx5_0", port(VLAN))]);
    set(&mut node, "NCCL_IB_NEW", "1", None);
    let fleet = Fleet::new(&[node.clone()]);
    let run = fleet.uverbs(&["gids"]);
    assert!(run.stdout.contains("mlx5_0"), "{run:?}");
    assert_eq!((run.stderr.as_str(), run.status), ("", 0), "it says nothing of GIDs");
    let said = "uverbs: node1: host: the setting NCCL_IB_NEW is left out";
    let run = fleet.uverbs(&["choose"]);
    assert!(run.stderr.contains(said) && run.status == 0, "{run:?}");
    let run = fleet.uverbs(&["env", "nccl"]);
    assert!(run.stdout.is_empty() && run.stderr.contains(said) && run.status == 1, "{run:?}");
    let run = fleet.uverbs(&["env", "ucx"]);
    assert!(run.stdout.contains("export UCX_IB_GID_INDEX=") && run.status == 0, "{run:?}");
    set(&mut node, "UCX_IB_NEW", "1", None);
    let run = Fleet::new(&[node]).uverbs(&["env", "ucx"]);
    assert!(run.stdout.is_empty() && run.stderr.contains("UCX_IB_NEW is left out"), "{run:?}");
}

/// Each host may lack each name: they are told one by one up to a number, then counted.
#[test]
fn many_names_of_nothing_are_counted() {
    let hosts = ["node1", "node2", "node3"].map(|name| host(name, &[("mlx5_0", port(VLAN))]));
    let fleet = Fleet::new(&hosts);
    let names = (0..60).map(|n| format!("mlx5_{n}"));
    let files = (0..3).map(|n| fleet.file(n));
    for command in ["ports", "choose"] {
        let run = finish(
            program().args([command, "--json"]).args(names.clone()).args(from(files.clone())),
        );
        assert_eq!(run.status, 1, "{run:?}");
        let answer: Value = serde_json::from_str(&run.stdout).unwrap();
        let problems = answer["problems"].as_array().unwrap();
        let of = |host: &str| {
            let own = problems.iter().filter(|row| row["host"] == host);
            own.map(|row| row["error"].as_str().unwrap()).collect::<Vec<_>>()
        };
        let (first, second, third) = (of("node1"), of("node2"), of("node3"));
        assert_eq!((first.len(), second.len(), third.len()), (59, 42, 1), "{command}");
        assert!(first.iter().all(|own| own.contains("no such device")));
        let more = "18 more that are named are no device or port (errno 19)";
        assert_eq!(second[41], more);
        assert_eq!(third, ["59 more that are named are no device or port (errno 19)"]);
        assert_eq!(answer[command].as_array().unwrap().len(), 3);
    }
}

#[test]
fn names_of_nothing() {
    let tree = Tree::new();
    tree.with_roce();
    let problems = |args: &[&str]| {
        let run = tree.uverbs(&[args, &["--json"]].concat());
        assert_eq!((run.stderr.as_str(), run.status), ("", 1), "{run:?}");
        let answer: Value = serde_json::from_str(&run.stdout).unwrap();
        let problems = answer["problems"].as_array().unwrap().clone();
        problems.iter().map(|row| (row["device"].clone(), row["errno"].clone())).collect::<Vec<_>>()
    };
    let no_device = (json!("mlx5_9"), json!(19));
    let no_port = (json!("mlx5_0"), json!(22));
    for command in ["gids", "ports"] {
        assert_eq!(problems(&[command, "mlx5_9"]), std::slice::from_ref(&no_device));
        assert_eq!(problems(&[command, "mlx5_0:2"]), std::slice::from_ref(&no_port));
        assert_eq!(problems(&[command, "mlx5_0:0"]), std::slice::from_ref(&no_port));
        let both = [command, "mlx5_9:1", "mlx5_0:7", "mlx5_9:1", "mlx5_0:7"];
        assert_eq!(problems(&both), [no_device.clone(), no_port.clone()]);
    }
    assert_eq!(problems(&["guids", "mlx5_9"]), std::slice::from_ref(&no_device));
    assert_eq!(problems(&["gid", "mlx5_9:1", "0"]), std::slice::from_ref(&no_device));
    assert_eq!(problems(&["gid", "mlx5_0:2", "0"]), std::slice::from_ref(&no_port));
}

#[test]
fn a_name_of_nothing_hides_nobody() {
    let tree = Tree::new();
    tree.with_roce();
    let run = tree.uverbs(&["gids", "mlx5_9", "mlx5_0", "--no-header"]);
    assert_eq!(run.stdout.lines().count(), 4);
    assert_eq!(
        run.stderr,
        "uverbs: mlx5_9: no such device (errno 19); `uverbs devices` (with --from or \
         --sysfs as here) lists those that are seen\n"
    );
    assert_eq!(run.status, 1);
    let run = tree.uverbs(&["gids", "mlx5_0:4"]);
    assert_eq!(run.stderr, "uverbs: mlx5_0: no port 4 (errno 22); its only port is 1\n");
}

#[test]
fn names_do_not_reach_the_terminal_raw() {
    let tree = Tree::new();
    let names = ["a\x1b[31m\nb", "a,b", "a:1", "a\u{202e}b", "a\u{9b}b", "a\u{2028}b"];
    for (number, name) in (1..).zip(names) {
        let device = tree.device(name, "1: CA", number);
        let gid = "0000:0000:0000:0000:0000:ffff:c0a8:4d01";
        device.port(1, "Ethernet", "25 Gb/sec (1X EDR)", 1).gid(0, gid, "RoCE v2", None);
    }
    tree.with_roce();
    for command in [
        &["devices"] as &[&str],
        &["gids"],
        &["guids", "--json"],
        &["gids", "--format=show_gids"],
        &["choose", "--json"],
        &["check"],
        &["snapshot"],
    ] {
        let run = tree.uverbs(command);
        let said = [&*run.stdout, &*run.stderr].concat();
        assert!(!said.contains(['\x1b', '\u{202e}', '\u{9b}', '\u{2028}']), "{command:?}");
        assert!(command == ["check"] || run.stdout.contains("mlx5_0"), "{command:?}");
        assert!(said.contains("a device's name"), "{command:?}: {run:?}");
    }
    let run = tree.uverbs(&["env", "nccl"]);
    assert_eq!((run.stdout.as_str(), run.status), ("", 3), "{run:?}");
    // An interface's name in a tree.
    let tree = Tree::new();
    tree.with_roce().port_again(1).file("gid_attrs/ndevs/0", "eth0\u{1b}[31m");
    let run = tree.uverbs(&["gids"]);
    assert!(run.stderr.contains("an interface's name") && run.status == 3, "{run:?}");
}

/// A FIFO without a writer, and devices, are not settings files.
#[test]
fn a_file_of_settings_that_is_none_is_not_waited_for() {
    let folder = tempfile::TempDir::new().unwrap();
    let fifo = folder.path().join("fifo");
    make_fifo(&fifo);
    let file = folder.path().join("file");
    std::fs::write(&file, "NCCL_IB_GID_INDEX=7\n").unwrap();
    let settings = |path: &std::path::Path| {
        let run = finish(program().arg("snapshot").env("NCCL_CONF_FILE", path));
        let answer: Value = serde_json::from_str(&run.stdout).unwrap();
        answer["settings"].to_string().contains("NCCL_IB_GID_INDEX\",\"value\":\"7")
    };
    assert!(settings(&file));
    for path in [fifo.as_path(), "/dev/zero".as_ref(), folder.path()] {
        assert!(!settings(path), "{path:?}");
    }
}

#[test]
fn a_closed_pipe_is_no_error() {
    let tree = Tree::new();
    tree.with_roce();
    let (reader, writer) = io::pipe().unwrap();
    drop(reader);
    let run = finish(program().args(["gids", "--sysfs"]).arg(tree.path()).stdout(writer));
    assert_eq!((run.stderr.as_str(), run.status), ("", 0));
    for args in [&["completions", "bash"] as &[&str], &["man"], &["--help"]] {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let run = finish(program().args(args).stdout(writer));
        assert_eq!((run.stderr.as_str(), run.status), ("", 0), "{args:?}");
    }
}

/// What a command found does not depend on whether its words are read.
#[test]
fn a_closed_pipe_does_not_change_what_was_found() {
    let tree = with_a_broken_one();
    for (args, status) in [
        (&["check"] as &[&str], 2),
        (&["check", "--json"], 2),
        (&["choose", "mlx4_0:2"], 1),
        (&["env", "nccl", "--json"], 3),
        (&["gids"], 3),
    ] {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let run = finish(program().args(args).arg("--sysfs").arg(tree.path()).stdout(writer));
        let read = tree.uverbs(args);
        assert_eq!((run.status, read.status), (status, status), "{args:?}: {run:?}");
        assert_eq!(run.stderr, read.stderr, "{args:?}");
    }
}

#[test]
fn closed_stderr_harms_nobody() {
    let tree = with_a_broken_one();
    let (reader, writer) = io::pipe().unwrap();
    drop(reader);
    let run = finish(program().args(["gids", "--sysfs"]).arg(tree.path()).stderr(writer));
    assert_eq!(run.stdout.lines().count(), 3);
    assert_eq!(run.status, 3);
}

#[test]
fn a_full_disk_is_an_error() {
    let tree = Tree::new();
    tree.with_roce();
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let run =
        finish(program().args(["gids", "--sysfs"]).arg(tree.path()).stdout(Stdio::from(full)));
    assert!(run.stderr.starts_with("uverbs: cannot write: "), "{run:?}");
    assert_eq!(run.status, 3);
    // What `check` found stays found.
    write(tree.path().join("class/infiniband/rxe0/ports/1/state"), "1: DOWN\n");
    for words in [&["check"][..], &["check", "--json"], &["check", "--format", "nagios"]] {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut command = program();
        command.args(words).arg("--sysfs").arg(tree.path()).stdout(Stdio::from(full));
        let run = finish(&mut command);
        assert!(run.stderr.starts_with("uverbs: cannot write: "), "{run:?}");
        assert_eq!(run.status, 2, "{words:?}");
    }
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let run = finish(program().arg("--help").stdout(Stdio::from(full)));
    assert!(run.stderr.starts_with("uverbs: cannot write: "), "{run:?}");
    assert_eq!(run.status, 3);
}

/// Rust's own start would open `/dev/null` in its place.
#[test]
fn a_closed_stdout_is_an_error() {
    let tree = Tree::new();
    tree.with_roce();
    let mut sh = std::process::Command::new("sh");
    let uverbs = program();
    let words = [uverbs.get_program()].into_iter().chain(uverbs.get_args());
    sh.args(["-c", "\"$@\" >&-", "sh"]).args(words);
    let run = finish(sh.args(["gids", "--sysfs"]).arg(tree.path()));
    let said = "uverbs: cannot write: the standard output is closed\n";
    assert_eq!((run.stderr.as_str(), run.status), (said, 3));
}

#[test]
fn a_device_that_cannot_be_read_is_told_if_it_is_asked_for() {
    let tree = Tree::new();
    tree.with_roce();
    tree.device("bad0", "1: CA", 5).file("node_guid", "no GUID");
    for command in ["devices", "gids", "ports", "guids"] {
        let run = tree.uverbs(&[command]);
        assert!(run.stdout.contains("mlx5_0"), "{run:?}");
        assert!(run.stderr.starts_with("uverbs: bad0: read ") && run.status == 3, "{run:?}");
        assert_eq!(run.stderr.lines().count(), 1, "{run:?}");
    }
    let run = tree.uverbs(&["gids", "bad0"]);
    assert!(run.stderr.starts_with("uverbs: bad0: read ") && run.status == 3, "{run:?}");
    assert_eq!(run.stderr.lines().count(), 1, "{run:?}");
    let run = tree.uverbs(&["gids", "mlx5_0"]);
    assert_eq!((run.stderr.as_str(), run.status), ("", 0));
}

#[test]
fn a_device_whose_name_is_no_text_is_not_left_out_in_silence() {
    use std::os::unix::ffi::OsStrExt as _;
    let tree = Tree::new();
    tree.with_roce();
    tree.device("other", "1: CA", 3);
    let class = tree.path().join("class/infiniband");
    std::fs::rename(class.join("other"), class.join(std::ffi::OsStr::from_bytes(b"a\xffb")))
        .unwrap();
    for command in [&["devices"] as &[&str], &["choose"], &["env", "nccl"]] {
        let run = tree.uverbs(command);
        assert!(run.stderr.contains("a device's name"), "{command:?}: {run:?}");
        assert_eq!(run.status, 3, "{command:?}: {run:?}");
    }
}

/// Its name is shown with another character for what does not show, and that name is no other device's.
#[test]
fn a_device_with_an_odd_name_is_not_taken_for_another() {
    let tree = Tree::new();
    for (number, name) in [(1, "a?b"), (2, "a\nb")] {
        let port =
            tree.device(name, "1: CA", number).port(1, "InfiniBand", "56 Gb/sec (4X FDR)", 4);
        port.gid(0, crate::tree::LINK_LOCAL, "IB/RoCE v1", None);
    }
    // A node with such a name of its device would be the host's problem.
    std::fs::remove_dir_all(tree.path().join("class/infiniband_verbs/uverbs2")).unwrap();
    assert_eq!(tree.json(&["gids", "a?b"])["problems"], json!([]));
    let run = tree.uverbs(&["devices", "--json"]);
    let answer: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!((run.status, &answer["devices"][0]["device"]), (3, &json!("a?b")));
    assert_eq!(answer["problems"][0]["device"], "a\u{fffd}b");
}

/// What is wrong is in a file, and which one is said, once.
#[test]
fn the_file_with_the_fault_is_named() {
    let tree = Tree::new();
    let port = tree.with_roce().port_again(1);
    let said = |file: &str, text: &str, args: &[&str], what: &str| {
        port.file(file, text);
        let run = tree.uverbs(args);
        let path = format!("class/infiniband/mlx5_0/ports/1/{file}");
        assert_eq!(run.stderr.matches(&path).count(), 1, "{run:?}");
        assert!(run.stderr.contains(what) && run.status == 3, "{run:?}");
    };
    said("lid", "x", &["ports"], "query port 1: unusable answer: a sysfs number in ");
    port.file("lid", "0x0");
    said("sm_sl", "4096", &["ports"], "unusable answer: a number beyond its range in ");
    port.file("sm_sl", "0");
    said("rate", "fast", &["ports"], "unusable answer: a port's rate in ");
    said("gids/3", "x", &["gids"], "query GID 3 of port 1: unusable answer: a GID in ");
    said("pkeys/0", "0x10000", &["pkeys"], "unusable answer: a P_Key in ");
}
