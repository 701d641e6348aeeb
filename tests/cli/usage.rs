//! Wrong usage: status 3, nothing on stdout, a helpful message.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use crate::run::uverbs;
use crate::tree::Tree;

fn refused(args: &[&str]) -> String {
    let run = uverbs(args);
    assert_eq!((run.stdout.as_str(), run.status), ("", 3), "{args:?}: {run:?}");
    run.stderr
}

#[test]
fn what_is_refused() {
    for (args, message) in [
        (&[] as &[&str], "Usage:"),
        (&["gidz"], "similar subcommands"),
        (&["--nonsense"], "--nonsense"),
        (&["gids", "mlx5_0:x"], "names no device or port"),
        (&["gids", ""], "names no device or port"),
        (&["ports", "a:1:2"], "names no device or port"),
        (&["guids", "mlx5_0:1"], "expected only a device"),
        (&["gid", "mlx5_0", "0"], "expected DEV:PORT"),
        (&["gid", "mlx5_0:1"], "INDEX"),
        (&["gid", "mlx5_0:1", "-1"], "-1"),
        (&["gid", "mlx5_0:1", "4294967296"], "4294967296"),
        (&["gids", "--type", "v3"], "v3"),
        (&["gids", "--ip", "10.0.0"], "10.0.0"),
        (&["gids", "--cidr", "10.0.0.0/33"], "expected an address and a prefix length"),
        (&["gids", "--cidr", "10.0.0.1"], "the prefix length is missing, as in 10.0.0.1/24"),
        (&["choose", "--cidr", "fd00::1"], "the prefix length is missing, as in fd00::1/64"),
        (&["gids", "--source", "libibverbs"], "libibverbs"),
        (&["gids", "--json", "--format", "table"], "contradicts"),
        (&["--json", "gids", "--format", "show_gids"], "contradicts"),
        (&["gids", "--json", "--no-header"], "for tables"),
        (&["expect", "--json"], "expect writes TOML and nothing else"),
        (&["check", "--format", "nagios", "--json"], "contradicts"),
        (&["check", "--format", "nagios", "--wide"], "for tables"),
        (&["--no-header", "gids", "--format", "show_gids"], "for tables"),
        (&["ports", "--sysfs", "/nowhere"], "No such file"),
        (&["gids", "--sysfs", "/", "--source", "auto"], "--source"),
        (&["--sysfs", "/", "guids", "--source", "ioctl"], "--source"),
        (&["devices", "--color", "sometimes"], "sometimes"),
        (&["completions", "csh"], "csh"),
        (&["man", "gidz"], "gidz"),
        (&["gids", "--netdev", ""], "--netdev"),
        (&["choose", "--netdev="], "--netdev"),
        (&["check", "--device", "rxe9"], "named without an option, as mlx5_0 or mlx5_0:1"),
        (&["gids", "-d", "mlx5_0", "-i", "1"], "named without an option, as mlx5_0 or mlx5_0:1"),
        (&["check", "--strct"], "'--strict'"),
        (&["choose", "--like", "mpi"], "expected nccl, ucx or nvshmem"),
        (&["choose", "--like", "ucx-x"], "expected nccl, ucx or nvshmem"),
        (&["choose", "--like", "nvshmem-3.0"], "expected nccl, ucx or nvshmem"),
        (
            &["choose", "--like", "ucx-99.9"],
            "known are ucx-1.15 and older from ucx-1.10 on, ucx-1.16",
        ),
        (&["choose", "--like", "ucx-1.9"], "ucx-1.9 is not known"),
        (&["choose", "--like", "ucx-1.23"], "ucx-1.21, ucx-1.22, each up to the next"),
        (&["choose", "--like", "nccl-2.31"], "known are nccl-2.20 and older, nccl-2.21"),
        (&["choose", "--like", "nccl-3.0.1"], "nccl-2.30.7, each up to the next"),
        (&["choose", "--family", "ipx"], "ipx"),
        (&["choose", "--from"], "--from"),
        (&["choose", "--from", "a.json", "--source", "sysfs"], "--from reads snapshots"),
        (&["gids", "--from", "a.json", "--sysfs", "/"], "--from reads snapshots"),
        (&["gids", "--format", "show_gids", "--from", "a", "--from", "b"], "one host"),
        (
            &["check", "--from", "a.json", "b.json"],
            "b.json is not a device; --from takes one file or folder: --from a.json --from b.json",
        ),
        (&["gids", "--from", "a.json", "x/b.json"], "x/b.json is not a device; --from takes one"),
        (&["gid", "--from", "a.json", "b.json", "3"], "b.json is not a device; --from takes one"),
        (&["devices", "--from", "a.json", "b.jsonl"], "b.jsonl is not a device"),
        (&["env", "nccl", "b.json"], "b.json is not a device; --from takes one file or folder"),
        (&["limits", "b.json"], "b.json is not a device, and this command reads no snapshots"),
        (&["limits", "x/b.json"], "x/b.json is not a device, and this command reads no snapshots"),
        (&["watch", "b.json"], "b.json is not a device, and this command reads no snapshots"),
        (&["wait", "x/b.json"], "x/b.json is not a device, and this command reads no snapshots"),
        (&["counters", "x/b.json"], "x/b.json is not a device, and this command reads"),
        (&["mlx5", "port", "x/b.json"], "x/b.json is not a device, and this command reads"),
        (&["mlx5", "device", "x/b.json"], "x/b.json is not a device, and this command reads"),
        (&["history", "a.jsonl", "x/b.jsonl"], "x/b.jsonl is not a device, and this command"),
        (&["env"], "PROGRAM"),
        (&["env", "mpi"], "mpi"),
        (&["env", "nccl", "--json", "--format", "shell"], "contradicts"),
        (&["env", "nccl", "--no-header"], "for tables"),
        (&["limits", "mlx5_0:1"], "expected only a device"),
        (&["limits", "--sysfs", "/"], "--sysfs"),
        (&["limits", "--from", "a.json"], "--from"),
        (&["pkeys", "--source", "sysfs"], "--source"),
        (&["ports", "--json", "--format", "ibstat"], "contradicts"),
        (&["ports", "--wide", "--format", "ibstat"], "--wide is for tables"),
        (&["devices", "--wide", "--json"], "--wide is for tables"),
        (&["ports", "--format", "ibstat", "--from", "a", "--from", "b"], "ibstat knows one host"),
        (&["ports", "--format", "ibdev2netdev", "--from", "a", "--from", "b"], "one host"),
        (&["check", "mlx5_0:x"], "names no device or port"),
        (&["devices", "mlx5_0:1"], "expected only a device"),
        (&["check", "--link-layer", "token-ring"], "token-ring"),
        (&["snapshot", "--from", "a.json"], "--from"),
        (&["mlx5"], "Usage: uverbs mlx5"),
        (&["mlx5", "ports"], "similar subcommand"),
        (&["mlx5", "device", "mlx5_0:1"], "expected only a device"),
        (&["mlx5", "port", "--sysfs", "/"], "--sysfs"),
        (&["--sysfs", "/", "mlx5", "vport", "mlx5_0:1"], "--sysfs"),
        (&["mlx5", "port", "--json", "--no-header"], "for tables"),
        (&["mlx5", "port", "--source", "ioctl"], "--source"),
    ] {
        let stderr = refused(args);
        assert!(stderr.contains(message), "{args:?}: {stderr}");
    }
}

/// No word that begins with a hyphen is a device.
#[test]
fn advice_is_of_use() {
    for args in [&["gids", "--devcie", "x"] as &[&str], &["man", "-d"], &["check", "-x"]] {
        let stderr = refused(args);
        assert!(!stderr.contains("as a value") && !stderr.contains("mlx5_0"), "{stderr}");
    }
}

#[test]
fn arguments_that_are_no_text() {
    let odd = OsStr::from_bytes(b"\xff\xfe");
    for args in [
        [OsStr::new("gids"), odd],
        [OsStr::new("gids"), OsStr::from_bytes(b"--netdev=\xff")],
        [odd, OsStr::new("gids")],
        [OsStr::new("gid"), OsStr::from_bytes(b"mlx5_0:\xb2")],
    ] {
        let run = uverbs(&args);
        assert_eq!((run.stdout.as_str(), run.status), ("", 3), "{args:?}: {run:?}");
        assert!(run.stderr.starts_with("error: "), "{run:?}");
    }
    // A folder may be named so.
    let run = uverbs(&[OsStr::new("gids"), OsStr::new("--sysfs"), odd]);
    assert!(run.stderr.starts_with("error: --sysfs: \u{fffd}\u{fffd}: No such file"), "{run:?}");
}

/// A file of any name after the one that `--from` takes.
#[test]
fn a_second_file_is_no_device() {
    let folder = tempfile::TempDir::new().unwrap();
    std::fs::write(folder.path().join("node2"), "{}").unwrap();
    // In sysfs devices are folders.
    std::fs::create_dir(folder.path().join("mlx5_0")).unwrap();
    let run = |word: &str| {
        let mut program = crate::run::program();
        crate::run::finish(
            program.args(["ports", "--from", "node1", word]).current_dir(folder.path()),
        )
    };
    let refused = run("node2");
    let said = "error: node2 is not a device; --from takes one file or folder: --from node1 --from node2\n";
    assert!(refused.stderr.starts_with(said) && refused.status == 3, "{refused:?}");
    // A file may have the name of a port.
    std::fs::create_dir(folder.path().join("snapshots")).unwrap();
    std::fs::write(folder.path().join("snapshots/1"), "{}").unwrap();
    let refused = run("snapshots/1");
    assert!(refused.stderr.starts_with("error: snapshots/1 is not a device; --from takes one"));
    assert_eq!(refused.status, 3);
    for word in ["mlx5_0", "mlx5_0:1", "node3"] {
        assert!(run(word).stderr.starts_with("uverbs: node1: No such file"), "{word}");
    }
}

#[test]
fn options_come_before_or_after_the_command() {
    let tree = Tree::new();
    tree.with_roce();
    let path = tree.path().to_str().unwrap();
    let behind = uverbs(&["gids", "--json", "--sysfs", path, "--source", "sysfs"]);
    let before = uverbs(&["--sysfs", path, "--json", "gids", "--format", "json"]);
    assert_eq!(behind.stdout, before.stdout);
    assert_eq!((behind.status, before.status), (0, 0));
}

/// What is wrong with a command line is said so that each character shows as what it is.
#[test]
fn odd_words_are_shown_with_escapes() {
    const ODD: &str = "a\u{1b}[31m\u{9b}\u{202e}";
    for words in [
        &["fleet", "--hosts", ODD][..],
        &["gids", "--cidr", ODD],
        &["gids", ODD],
        &["choose", "--like", ODD],
        &["metrics", "--listen", ODD],
        &["--sysfs", ODD, "gids"],
        &["gids", "--from", ODD, "--sysfs", "x"],
        &[ODD],
        &["gids", &format!("--{ODD}")],
    ] {
        let run = uverbs(words);
        let is_plain = |c: char| c == '\n' || uverbs::inventory::is_plain_char(c);
        assert!(run.status == 3 && run.stderr.chars().all(is_plain), "{words:?}: {run:?}");
    }
}

/// Why it is not read is not always that it is no folder.
#[test]
fn a_tree_that_cannot_be_read_has_its_cause() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::os::unix::fs::symlink("loop", path("loop")).unwrap();
    std::fs::write(path("file"), "").unwrap();
    for (name, why) in
        [("nothing", "(os error 2)"), ("loop", "(os error 40)"), ("file", "is not a folder")]
    {
        let run = uverbs(&["--sysfs", &path(name), "gids"]);
        let said = format!("error: --sysfs: {}", path(name));
        // C libraries have their own words.
        let is_said = run.stderr.starts_with(&said) && run.stderr.contains(why);
        assert!(run.status == 3 && is_said, "{run:?}");
    }
}
