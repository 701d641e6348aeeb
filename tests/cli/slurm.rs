//! The scripts for Slurm, with programs in place of `uverbs` and `scontrol` that answer as is said here.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

const SCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../packaging/slurm");
const DOWN: &str = "problem: port-down: mlx5_0:1\nproblem: netdev-down: mlx5_0:1\n";
const DRAIN: &str = "update NodeName=n1 State=DRAIN Reason=uverbs: netdev-down,port-down\n";

struct Node {
    folder: TempDir,
}

impl Node {
    fn new() -> Self {
        let this = Self { folder: tempfile::tempdir().unwrap() };
        let folder = this.folder.path();
        for script in ["health-check", "prolog"] {
            let text = fs::read_to_string(Path::new(SCRIPTS).join(script)).unwrap();
            let own = text.replace("/etc/uverbs/check", folder.join("check").to_str().unwrap());
            this.program(script, &own);
        }
        this.program("logger", "#!/bin/sh\n");
        let dir = folder.display();
        // Asked again, it finds nothing.
        let uverbs = format!(
            "cd {dir}; echo \"$*\" >asked; cat found; status=$(cat status); echo 0 >status; exit $status"
        );
        this.program("uverbs", &format!("#!/bin/sh\n{uverbs}\n"));
        let control = format!("[ $1 = show ] && exec cat {dir}/node; echo \"$*\" >>{dir}/updates");
        this.program("scontrol", &format!("#!/bin/sh\n{control}\n"));
        this
    }

    fn program(&self, name: &str, text: &str) {
        self.write(name, text);
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(self.folder.path().join(name), mode).unwrap();
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.folder.path().join(name), text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.folder.path().join(name)).unwrap_or_default()
    }

    /// The status of a script, and what it asks Slurm to change, if `uverbs check` ends so and the node's state and
    /// reason are these.
    fn run(&self, script: &str, check: (i32, &str), node: [&str; 2]) -> (i32, String) {
        let [state, reason] = node;
        self.write("status", &check.0.to_string());
        let is_whole = ["UVERBS", "Check"].iter().any(|own| check.1.starts_with(own));
        let first = if is_whole { "" } else { "UVERBS OK\n" };
        self.write("found", &format!("{first}{}", check.1));
        self.write("updates", "");
        self.write("node", &format!("NodeName=n1\n   State={state} Cores=2\n   Reason={reason}\n"));
        let path = format!("{}:{}", self.folder.path().display(), std::env::var("PATH").unwrap());
        let mut command = Command::new("sh");
        command.arg(self.folder.path().join(script)).current_dir(self.folder.path());
        let output = command.env("PATH", path).env("SLURMD_NODENAME", "n1").output().unwrap();
        (output.status.code().unwrap(), self.read("updates"))
    }
}

const OURS: &str = "uverbs: netdev-down,port-down [root@2026-11-24T00:00:00]";
const THEIRS: &str = "fan [left], replaced [root@2026-11-24T00:00:00]";

#[test]
fn a_node_is_drained_and_returned() {
    let node = Node::new();
    let run = |check, own| {
        let (status, updates) = node.run("health-check", check, own);
        assert_eq!(status, 0);
        updates
    };
    assert_eq!(run((2, DOWN), ["IDLE", ""]), DRAIN);
    assert_eq!(run((2, DOWN), ["IDLE+POWERING_DOWN", ""]), DRAIN);
    assert_eq!(run((2, DOWN), ["MIXED+DRAIN", "uverbs: no-gid [root@now]"]), DRAIN);
    let undrain = "update NodeName=n1 State=UNDRAIN\n";
    for status in [0, 1] {
        assert_eq!(run((status, ""), ["IDLE+DRAIN", OURS]), undrain);
    }
    let elsewhere =
        "note: not-checked: not looked at: devices that were not named, and their effect\n";
    let warnings = "note: not-checked: not looked at: PCIe links, link widths, RDMA MTUs, whether sysfs has the types of GIDs, how much memory may be locked; run\n";
    let waits = "note: only-link-local mlx5_0:1: all GIDs are link-local; those of bond0's\n";
    let fine = format!(
        "UVERBS OK - no problems\n{elsewhere}{warnings}{waits}note: netns-exclusive: each\n"
    );
    assert_eq!(run((0, &fine), ["IDLE+DRAIN", OURS]), undrain);
    let warnings =
        "warning: port-rate-unreadable mlx5_0:1: no\nwarning: port-guid-unreadable mlx5_0:1: no\n";
    assert_eq!(run((1, warnings), ["IDLE+DRAIN", OURS]), undrain);
    // What was not looked at may still be the problem.
    for (status, unknown) in [
        (0, "note: not-checked: not looked at: network interfaces; run uverbs check\n"),
        (0, "note: not-checked: not looked at: PCIe links, kernel modules, RDMA MTUs; run\n"),
        (0, "note: not-checked: not looked at: P_Keys; run uverbs check\n"),
        (
            0,
            "note: not-checked: not looked at: whether NCCL_IB_HCA=x leaves NCCL an active port, as\n",
        ),
        (1, "warning: node-not-opened mlx5_0: Too many open files; run uverbs check\n"),
        (
            1,
            "warning: nodes-unknown: /dev/infiniband/rdma_cm: Too many open files; run uverbs check\n",
        ),
        (1, "warning: pkeys-unreadable mlx5_0:1: no; is sysfs masked?\n"),
        (1, "warning: only-link-local mlx5_0:1: all GIDs are link-local; another port may have\n"),
    ] {
        let text = format!("{fine}{unknown}");
        let left = node.run("health-check", (status, &text), ["IDLE+DRAIN", OURS]);
        assert_eq!(left, (0, String::new()), "{unknown}");
    }
    for (check, own) in [
        ((2, DOWN), ["IDLE+DRAIN", OURS]),
        ((2, DOWN), ["IDLE+DRAIN", THEIRS]),
        ((2, DOWN), ["DOWN", THEIRS]),
        ((2, ""), ["IDLE", ""]),
        ((0, ""), ["IDLE", ""]),
        ((0, ""), ["IDLE", OURS]),
        ((0, ""), ["DOWN", OURS]),
        ((0, ""), ["IDLE+DRAIN", THEIRS]),
        ((3, DOWN), ["IDLE", ""]),
        ((3, ""), ["IDLE+DRAIN", OURS]),
        ((124, DOWN), ["IDLE", ""]),
    ] {
        assert_eq!(run(check, own), "", "{check:?} {own:?}");
    }
}

#[test]
fn a_long_reason_has_whole_names() {
    let node = Node::new();
    let names: Vec<String> =
        (10..50).map(|n| format!("problem: finding-{}: x\n", "a".repeat(n))).collect();
    let names = names.concat();
    let (_, updates) = node.run("health-check", (2, &names), ["IDLE", ""]);
    let (_, reason) = updates.trim_end().split_once("Reason=").unwrap();
    assert!(reason.len() <= 123 && reason.ends_with("a,..."), "{reason}");
}

#[test]
fn a_job_is_refused_with_the_reason_of_its_own_check() {
    let node = Node::new();
    assert_eq!(node.run("prolog", (2, DOWN), ["IDLE", ""]), (1, DRAIN.to_owned()));
    for check in [(0, ""), (1, ""), (2, ""), (3, DOWN), (124, "")] {
        for own in [["IDLE", ""], ["IDLE+DRAIN", OURS]] {
            assert_eq!(node.run("prolog", check, own), (0, String::new()), "{check:?} {own:?}");
        }
    }
    // Where Slurm does not answer, and where another has drained it.
    for own in [["", ""], ["IDLE+DRAIN", THEIRS]] {
        assert_eq!(node.run("prolog", (2, DOWN), own), (1, String::new()), "{own:?}");
    }
}

#[test]
fn the_arguments_of_a_site_are_given() {
    let node = Node::new();
    // A shell would put this name in place of the pattern.
    node.write("mlx5_Z", "");
    for script in ["health-check", "prolog"] {
        for line in ["mlx5_? --expect status", "mlx5_? --expect status\n"] {
            node.write("check", line);
            node.run(script, (0, ""), ["IDLE", ""]);
            assert_eq!(node.read("asked"), "check --format nagios mlx5_? --expect status\n");
        }
    }
    // Nothing is asked, and the node stays as it is, where they are not known or are of another host.
    let is_left = |node: &Node| {
        node.write("asked", "");
        let found = (2, "problem: port-down: mlx5_0:1: down");
        let run = node.run("health-check", found, ["IDLE", ""]);
        run == (0, String::new()) && node.read("asked").is_empty()
    };
    for line in ["--from /var/lib/n7.json", "--strict\t--from=x", "--from"] {
        node.write("check", line);
        assert!(is_left(&node), "{line}");
    }
    // Nothing was checked.
    node.write("check", "--help");
    let help = (0, "Check a host for what breaks RDMA programs\n");
    assert_eq!(node.run("health-check", help, ["IDLE+DRAIN", OURS]), (0, String::new()));
    fs::remove_file(node.folder.path().join("check")).unwrap();
    fs::create_dir(node.folder.path().join("check")).unwrap();
    assert!(is_left(&node));
}
