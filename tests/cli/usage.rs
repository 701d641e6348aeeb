//! Wrong usage: status 2, nothing on stdout, a helpful message.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use crate::run::uverbs;
use crate::tree::Tree;

fn refused(args: &[&str]) -> String {
    let run = uverbs(args);
    assert_eq!((run.stdout.as_str(), run.status), ("", 2), "{args:?}: {run:?}");
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
        (&["gids", "--cidr", "10.0.0.0/33"], "10.0.0.0/33"),
        (&["gids", "--source", "libibverbs"], "libibverbs"),
        (&["gids", "--json", "--format", "table"], "contradicts"),
        (&["--json", "gids", "--format", "show_gids"], "contradicts"),
        (&["gids", "--json", "--no-header"], "for tables"),
        (&["--no-header", "gids", "--format", "show_gids"], "for tables"),
        (&["ports", "--sysfs", "/nowhere"], "not a folder"),
        (&["gids", "--sysfs", "/", "--source", "auto"], "--source"),
        (&["--sysfs", "/", "guids", "--source", "ioctl"], "--source"),
        (&["devices", "--color", "sometimes"], "sometimes"),
        (&["completions", "csh"], "csh"),
        (&["man", "gidz"], "gidz"),
        (&["choose", "--like", "mpi"], "expected nccl, ucx or nvshmem"),
        (&["choose", "--like", "ucx-x"], "expected nccl, ucx or nvshmem"),
        (&["choose", "--family", "ipx"], "ipx"),
        (&["choose", "--from"], "--from"),
        (&["choose", "--from", "a.json", "--source", "sysfs"], "--from reads snapshots"),
        (&["gids", "--from", "a.json", "--sysfs", "/"], "--from reads snapshots"),
        (&["gids", "--format", "show_gids", "--from", "a", "b"], "one host"),
        (&["env"], "PROGRAM"),
        (&["env", "mpi"], "mpi"),
        (&["env", "nccl", "--json", "--format", "shell"], "contradicts"),
        (&["env", "nccl", "--no-header"], "for tables"),
        (&["check", "--device", "mlx5_0:1"], "expected only a device"),
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
        assert_eq!((run.stdout.as_str(), run.status), ("", 2), "{args:?}: {run:?}");
        assert!(run.stderr.starts_with("error: "), "{run:?}");
    }
    // A folder may be named so.
    let run = uverbs(&[OsStr::new("gids"), OsStr::new("--sysfs"), odd]);
    assert!(run.stderr.contains("not a folder"), "{run:?}");
}

#[test]
fn options_stand_before_or_behind_the_command() {
    let tree = Tree::new();
    tree.with_roce();
    let path = tree.path().to_str().unwrap();
    let behind = uverbs(&["gids", "--json", "--sysfs", path, "--source", "sysfs"]);
    let before = uverbs(&["--sysfs", path, "--json", "gids", "--format", "json"]);
    assert_eq!(behind.stdout, before.stdout);
    assert_eq!((behind.status, before.status), (0, 0));
}
