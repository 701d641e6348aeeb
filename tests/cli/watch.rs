//! `uverbs watch` and `uverbs wait` on a tree, in which nothing is heard: it is read again and again.

use std::io::{BufRead, BufReader, Read as _};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::conforms::conforms;
use crate::run::{finish, program};
use crate::tree::Tree;

/// A watch of a tree that began to watch, with its lines. The first argument is how often it reads again.
fn begun(tree: &Tree, args: &[&str]) -> (Child, BufReader<ChildStdout>) {
    let mut command: Command = program();
    command.args(["watch", "--reread"]).args(args).arg("--sysfs").arg(tree.path());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let said = BufReader::new(child.stderr.take().unwrap());
    let begins = |line: &String| line.starts_with("uverbs: watching 1 device, 1 port, 4 GIDs");
    said.lines().map(Result::unwrap).find(begins).expect("it begins");
    let lines = BufReader::new(child.stdout.take().unwrap());
    (child, lines)
}

fn line_of(lines: &mut impl BufRead) -> String {
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    line
}

const ADDRESS: &str = "0000:0000:0000:0000:0000:ffff:0a00:0001";

#[test]
fn each_line_is_written_at_once() {
    let tree = Tree::new();
    let device = tree.with_roce();
    tree.without_nodes();
    let (mut child, mut lines) = begun(&tree, &["0.01", "--json", "--count", "3"]);
    let port = device.port_again(1);
    port.gid(5, ADDRESS, "RoCE v2", Some("eth0"));
    let mut next = || {
        let text = line_of(&mut lines);
        let value: Value =
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        conforms("watch.json", &value);
        value
    };
    let came = next();
    assert_eq!(came["what"], "gid_came", "{came}");
    assert_eq!((&came["before"], &came["after"]["index"]), (&Value::Null, &5.into()), "{came}");
    assert_eq!(came["after"]["ipv4"], "10.0.0.1");
    assert_eq!(came["causes"], serde_json::json!(["reread"]));
    port.file("state", "1: DOWN");
    let down = next();
    assert_eq!(
        (&down["what"], &down["before"], &down["after"]),
        (&"port_state".into(), &"active".into(), &"down".into())
    );
    device.remove();
    let went = next();
    assert_eq!((&went["what"], &went["device"]), (&"device_went".into(), &"mlx5_0".into()));
    assert_eq!(went["before"]["gids"].as_array().unwrap().len(), 5);
    // It is not looked at.
    let device = &went["before"]["device"];
    for (part, key) in crate::devices::UNREAD {
        assert_eq!((&device[part], &device[key]), (&Value::Null, &true.into()), "{went}");
    }
    assert!(child.wait().unwrap().success());
    let mut rest = String::new();
    lines.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "");
}

#[test]
fn lines_for_people() {
    let tree = Tree::new();
    let device = tree.with_roce();
    let (mut child, mut lines) =
        begun(&tree, &["0.01", "mlx5_0:1", "--only", "gid", "--type", "v2"]);
    let port = device.port_again(1);
    port.file("state", "1: DOWN");
    port.gid(5, ADDRESS, "IB/RoCE v1", Some("eth0"));
    port.gid(6, ADDRESS, "RoCE v2", Some("eth0"));
    let text = line_of(&mut lines);
    let (_, rest) = text.split_once("Z  ").unwrap();
    assert_eq!(rest, "mlx5_0:1    gid_came        6 ::ffff:10.0.0.1 v2 eth0?  (reread)\n");
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGINT).unwrap();
    assert!(child.wait().unwrap().success());
}

/// It does not wait for a change to find out that nobody reads.
#[test]
fn a_closed_pipe_ends_it() {
    let tree = Tree::new();
    tree.with_roce();
    let (mut child, lines) = begun(&tree, &["0"]);
    drop(lines);
    assert!(child.wait().unwrap().success());
}

#[test]
fn kinds_and_colours() {
    let tree = Tree::new();
    let device = tree.with_roce();
    let args = ["0.01", "--only", "port,gid", "--color", "always", "--count", "2"];
    let (mut child, mut lines) = begun(&tree, &args);
    let port = device.port_again(1);
    device.file("fw_ver", "1.2.3");
    port.file("state", "1: DOWN");
    let line = line_of(&mut lines);
    assert!(line.contains("port_state") && !line.contains('\x1b'), "no colour: {line:?}");
    port.gid(4, ADDRESS, "RoCE v2", Some("eth0"));
    let line = line_of(&mut lines);
    let is_coloured = line.starts_with("\x1b[32m") && line.ends_with("\x1b[0m\n");
    assert!(is_coloured && line.contains("gid_came"), "{line:?}");
    assert!(child.wait().unwrap().success());
}

/// Nor does it wait for somebody who does not read, when it is told to end or the time is up.
#[test]
fn a_full_pipe_does_not_keep_it() {
    for args in [&["0.005", "--json"][..], &["0.005", "--timeout", "3", "--count", "1000000"]] {
        let tree = Tree::new();
        let device = tree.with_roce();
        let (mut child, lines) = begun(&tree, args);
        let (reader, port) = (lines.into_inner(), device.port_again(1));
        // One page, which takes some tens of lines.
        rustix::pipe::fcntl_setpipe_size(&reader, 4096).unwrap();
        for state in ["1: DOWN", "4: ACTIVE"].into_iter().cycle().take(150) {
            port.file("state", state);
            std::thread::sleep(Duration::from_millis(15));
        }
        let is_timed = args.contains(&"--timeout");
        if !is_timed {
            assert!(child.try_wait().unwrap().is_none());
            kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGTERM).unwrap();
        }
        let ended = (0..60_000).find_map(|_| {
            std::thread::sleep(Duration::from_millis(1));
            child.try_wait().unwrap()
        });
        if ended.is_none() {
            child.kill().unwrap();
        }
        let code = ended.expect("it ends").code();
        assert_eq!(code, Some(i32::from(is_timed)), "{args:?}");
        assert!(rustix::io::ioctl_fionread(&reader).unwrap() > 0, "nobody reads");
    }
}

#[test]
fn the_time_is_up() {
    let tree = Tree::new();
    tree.with_roce();
    let run = |args: &[&str]| finish(program().args(args).arg("--sysfs").arg(tree.path()));
    let all = run(&["watch", "--timeout", "0.05"]);
    assert_eq!((all.stdout.as_str(), all.status), ("", 0), "{all:?}");
    let one = run(&["watch", "--timeout", "0.05", "--count", "1"]);
    assert!(one.status == 1 && one.stderr.contains("the time is up"), "{one:?}");
    let named = run(&["watch", "nowhere:1", "--timeout", "0"]);
    assert!(named.status == 0 && named.stderr.contains("nowhere: no such device"), "{named:?}");
    assert!(!named.stderr.contains("no RDMA device"), "{named:?}");
    let empty = Tree::new().uverbs(&["watch", "nowhere:1", "--timeout", "0"]);
    assert!(empty.status == 0 && empty.stderr.contains("no RDMA device"), "{empty:?}");
    for (args, message) in [
        (&["watch", "--timeout=-1"][..], "expected a number of seconds"),
        (&["watch", "--timeout", "x"], "expected a number of seconds"),
        (&["watch", "--count", "0"], "--count"),
        (&["watch", "--only", "gids"], "--only"),
        (&["watch", "--no-header"], "for tables"),
    ] {
        let refused = run(args);
        assert!(refused.status == 3 && refused.stderr.contains(message), "{args:?}: {refused:?}");
    }
}

#[test]
fn waiting() {
    let tree = Tree::new();
    tree.with_roce();
    let run = |args: &[&str]| finish(program().args(args).arg("--sysfs").arg(tree.path()));
    let there = run(&["wait", "mlx5_0:1", "--timeout", "0"]);
    assert_eq!(there.status, 0, "{there:?}");
    assert!(there.stdout.contains("::ffff:192.168.77.1"), "{there:?}");
    // Of a tree nothing is known of interfaces, as `choose` says.
    let doubt = "mlx5_0:1: 3: it is not known whether its interface is in this network namespace";
    assert!(there.stderr.contains(doubt), "{there:?}");
    let json = run(&["wait", "--json"]);
    conforms("wait.json", &serde_json::from_str::<Value>(&json.stdout).unwrap());
    for (args, message) in [
        (&["wait", "mlx5_0:1", "nowhere", "--timeout", "0"][..], "nowhere: no such device"),
        (
            &["wait", "mlx5_0:1", "--cidr", "10.9.0.0/16", "--timeout", "0.03"],
            "uverbs: mlx5_0:1: not used: no usable row is what was asked for\n",
        ),
    ] {
        let missing = run(args);
        assert_eq!((missing.stdout.lines().count(), missing.status), (1, 1), "{missing:?}");
        assert!(missing.stderr.contains(message), "{missing:?}");
        assert!(missing.stderr.contains("the time is up"), "{missing:?}");
        let json = run(&[args, &["--json"]].concat());
        conforms("wait.json", &serde_json::from_str::<Value>(&json.stdout).unwrap());
        assert_eq!(json.status, 1);
    }
    // There is another device.
    let named = run(&["wait", "nowhere", "--timeout", "0"]);
    assert!(named.status == 1 && named.stderr.contains("nowhere: no such device"), "{named:?}");
    assert!(!named.stderr.contains("no RDMA device"), "{named:?}");
    let over = run(&["wait", "--netdev", "eth9", "--timeout", "0.03"]);
    let gid = "is known to have a usable GID that matches --netdev eth9\n";
    assert!(over.stderr.contains(gid) && !over.stderr.contains("no usable GID"), "{over:?}");
}

/// A program that is started only after it must not be started.
/// When the time is up, what counts is what is there then.
#[test]
fn what_comes_unheard_before_the_time_is_up() {
    let tree = Tree::new();
    let port = tree.device("mlx5_0", "1: CA", 1).port(1, "Ethernet", "100 Gb/sec (4X EDR)", 8);
    let mut command = program();
    command.args(["wait", "--reread", "0", "--timeout", "1", "--sysfs"]).arg(tree.path());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    // It has read when it says so.
    let mut said = BufReader::new(child.stderr.take().unwrap());
    line_of(&mut said);
    port.gid(3, ADDRESS, "RoCE v2", Some("eth0"));
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn waiting_that_is_ended_is_no_success() {
    let (tree, empty, unread) = (Tree::new(), Tree::new(), Tree::new());
    tree.with_roce().port_again(1).file("state", "1: DOWN");
    unread.with_roce().port_again(1).refuse("state");
    for (tree, signal, status) in
        [(&tree, Signal::SIGTERM, 1), (&empty, Signal::SIGINT, 1), (&unread, Signal::SIGTERM, 3)]
    {
        let mut command = program();
        command.args(["wait", "--reread", "0", "--sysfs"]).arg(tree.path());
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let first = line_of(&mut said);
        assert!(first.contains("not heard"), "{first}");
        kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), signal).unwrap();
        let mut rest = String::new();
        said.read_to_string(&mut rest).unwrap();
        assert!(rest.contains("ended before all that is waited for"), "{rest}");
        assert_eq!(child.wait().unwrap().code(), Some(status), "{rest}");
    }
}

/// What could not be read is not watched as if it were not there.
#[test]
fn what_cannot_be_read_is_said_when_a_watch_begins() {
    let tree = Tree::new();
    tree.with_roce().port_again(1).refuse("state");
    let lists = tree.path().join("class/infiniband");
    std::os::unix::fs::symlink("loop", lists.join("loop")).unwrap();
    let record = tree.path().join("record.jsonl");
    let record = record.to_str().unwrap();
    for args in [&["--timeout", "0"][..], &["--timeout", "0", "--record", record]] {
        let run = tree.uverbs(&[&["watch"], args].concat());
        assert_eq!((run.stdout.as_str(), run.status), ("", 0), "{run:?}");
        for text in ["mlx5_0: query port 1: EINVAL", "loop: ", "1 device, 1 port, 4 GIDs"] {
            assert!(run.stderr.contains(text), "{text}: {run:?}");
        }
    }
    let named = tree.uverbs(&["watch", "--timeout", "0", "loop"]);
    assert!(!named.stderr.contains("mlx5_0") && named.stderr.contains("loop: "), "{named:?}");
}

/// In another host's tree its own word of an interface counts, as for `gids`.
#[test]
fn a_filter_by_interface_in_a_tree() {
    let tree = Tree::new();
    let device = tree.with_roce();
    let (mut child, mut lines) = begun(&tree, &["0.01", "--netdev", "eth0", "--count", "2"]);
    let port = device.port_again(1);
    port.gid(5, ADDRESS, "RoCE v2", Some("eth1"));
    port.gid(6, ADDRESS, "RoCE v2", Some("eth0"));
    let came = line_of(&mut lines);
    assert!(came.contains("gid_came        6 ::ffff:10.0.0.1 v2 eth0?"), "{came}");
    port.file("gids/6", "0000:0000:0000:0000:0000:0000:0000:0000");
    let went = line_of(&mut lines);
    assert!(went.contains("gid_went        6 ::ffff:10.0.0.1 v2 eth0?"), "{went}");
    assert!(child.wait().unwrap().success());
}

/// A slot that another interface has got is that one's.
#[test]
fn a_filter_by_interface_and_a_slot_that_another_one_takes() {
    let tree = Tree::new();
    let port = tree.with_roce().port_again(1);
    let (mut child, mut lines) = begun(&tree, &["0.01", "--netdev", "eth0", "--count", "2"]);
    port.file("gid_attrs/ndevs/3", "eth9");
    let left = line_of(&mut lines);
    assert!(left.contains("v2 eth0? → 3 ") && left.contains("v2 eth9?"), "{left}");
    port.file("gid_attrs/types/3", "IB/RoCE v1");
    port.gid(6, ADDRESS, "RoCE v2", Some("eth0"));
    let came = line_of(&mut lines);
    assert!(came.contains("gid_came        6 ::ffff:10.0.0.1 v2 eth0?"), "{came}");
    assert!(child.wait().unwrap().success());
}

/// One port with a usable GID is enough where none is named, whatever is not known of others.
#[test]
fn waiting_beside_a_port_of_which_too_little_is_known() {
    let tree = Tree::new();
    tree.with_roce();
    let device = tree.device("mlx5_1", "1: CA", 1);
    let port = device.port(1, "Ethernet", "100 Gb/sec (4X EDR)", 8);
    port.gid(3, ADDRESS, "RoCE v2", Some("eth1"));
    port.refuse("gid_attrs/types/3");
    for (named, status) in [(&[][..], 0), (&["mlx5_0"], 0), (&["mlx5_1"], 1)] {
        let run = tree.uverbs(&[&["wait", "--timeout", "0.03"], named].concat());
        assert_eq!(run.status, status, "{run:?}");
    }
}

/// A port that is named and could not be read is waited for, whatever others have.
#[test]
fn waiting_for_a_port_that_cannot_be_read() {
    let tree = Tree::new();
    tree.with_roce();
    let device = tree.device("mlx5_1", "1: CA", 1);
    let port = device.port(1, "Ethernet", "100 Gb/sec (4X EDR)", 8);
    port.gid(3, ADDRESS, "RoCE v2", Some("eth1"));
    let good = std::fs::read_to_string(tree.path().join("class/infiniband/mlx5_1/ports/1/gids/3"));
    for (file, whole) in [("state", "4: ACTIVE"), ("gids/3", good.unwrap().trim_end())] {
        port.file(file, "x");
        for names in [&["mlx5_0:1", "mlx5_1:1"][..], &["mlx5_0", "mlx5_1"], &["mlx5_1:1"]] {
            let run = tree.uverbs(&[&["wait", "--timeout", "0.03"], names].concat());
            assert_eq!((run.status, run.stdout.lines().count()), (3, 1), "{run:?}");
            for said in ["mlx5_1: query ", "the time is up"] {
                assert!(run.stderr.contains(said), "{said}: {run:?}");
            }
        }
        // It is not asked for.
        assert_eq!(tree.uverbs(&["wait", "--timeout", "0.03", "mlx5_0:1"]).status, 0);
        port.file(file, whole);
        let run = tree.uverbs(&["wait", "--timeout", "0.03", "mlx5_0:1", "mlx5_1:1"]);
        assert_eq!((run.status, run.stdout.lines().count()), (0, 3), "{run:?}");
    }
}

/// A device that comes and cannot be read has not no port and no GID.
#[test]
fn a_device_that_comes_and_cannot_be_read() {
    let (tree, other) = (Tree::new(), Tree::new());
    tree.with_roce();
    let device = other.device("mlx5_1", "1: CA", 1);
    let port = device.port(1, "Ethernet", "100 Gb/sec (4X EDR)", 2);
    port.gid(0, ADDRESS, "RoCE v2", Some("eth0"));
    port.refuse("gids/1");
    port.refuse("state");
    for format in [&["--json"][..], &[]] {
        let (mut child, mut lines) = begun(&tree, &[&["0.01", "--count", "1"], format].concat());
        let place = |tree: &Tree| tree.path().join("class/infiniband/mlx5_1");
        std::fs::rename(place(&other), place(&tree)).unwrap();
        let text = line_of(&mut lines);
        assert!(child.wait().unwrap().success());
        std::fs::rename(place(&tree), place(&other)).unwrap();
        if format.is_empty() {
            assert!(text.contains("ports 1 GIDs ?: mlx5_1: query GID 1 of port 1: "), "{text}");
            assert!(text.contains("; mlx5_1: query port 1: EINVAL"), "{text}");
            continue;
        }
        let line: Value = serde_json::from_str(&text).unwrap();
        conforms("watch.json", &line);
        let came = &line["after"];
        assert_eq!(
            (&came["ports"], &came["gids"]),
            (&serde_json::json!([]), &serde_json::json!([]))
        );
        let problems = came["problems"].as_array().unwrap();
        assert_eq!(problems.len(), 2, "{line}");
        assert!(problems.iter().all(|own| own["errno"] == 22), "{line}");
    }
}

/// The row of an address goes with its device, or with its table, and comes with them.
#[test]
fn rows_that_come_and_go_with_their_device() {
    let tree = Tree::new();
    let device = tree.with_roce();
    tree.without_nodes();
    let (own, away) = (tree.path().join("class/infiniband/mlx5_0"), tree.path().join("away"));
    for (args, is_table) in [
        (&["--ip", "192.168.77.1"][..], true),
        (&["--netdev", "eth0.7"], true),
        (&["--only", "gid"], true),
        (&["--only", "port"], false),
    ] {
        let count = if is_table { "4" } else { "2" };
        let (mut child, mut lines) =
            begun(&tree, &[&["0.01", "--timeout", "30", "--count", count], args].concat());
        if is_table {
            let port = device.port_again(1);
            port.refuse("gids/11");
            let unread = line_of(&mut lines);
            assert!(unread.contains("gids_readable   4 GIDs → mlx5_0: "), "{args:?}: {unread}");
            port.file("gids/11", "0000:0000:0000:0000:0000:0000:0000:0000");
            let read = line_of(&mut lines);
            assert!(read.contains(" → 4 GIDs"), "{args:?}: {read}");
        }
        std::fs::rename(&own, &away).unwrap();
        let went = line_of(&mut lines);
        assert!(went.contains("device_went"), "{args:?}: {went}");
        std::fs::rename(&away, &own).unwrap();
        let came = line_of(&mut lines);
        assert!(came.contains("device_came"), "{args:?}: {came}");
        assert!(child.wait().unwrap().success());
    }
    // Devices without such a row come and go unseen.
    let (mut child, mut lines) = begun(&tree, &["0.01", "--count", "1", "--ip", "10.0.0.1"]);
    std::fs::rename(&own, &away).unwrap();
    std::thread::sleep(Duration::from_millis(200));
    std::fs::rename(&away, &own).unwrap();
    std::thread::sleep(Duration::from_millis(200));
    device.port_again(1).gid(5, ADDRESS, "RoCE v2", Some("eth0"));
    let came = line_of(&mut lines);
    assert!(came.contains("gid_came        5 ::ffff:10.0.0.1"), "{came}");
    assert!(child.wait().unwrap().success());
}
