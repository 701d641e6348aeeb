//! `check`: findings and statuses. A golden file of the library has their wording.

use serde_json::{Value, json};

use crate::run::{finish, program};
use crate::snapshots::{DUAL, Fleet, host, port, set, with_third_port};
use crate::tree::{Tree, write};

fn names(answer: &Value) -> Vec<String> {
    let rows = answer["check"].as_array().unwrap().iter();
    rows.map(|row| row["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_clean_host() {
    let fleet = Fleet::new(&[host("node1", &[("mlx5_0", port(DUAL))])]);
    let run = fleet.uverbs(&["check", "--strict"]);
    assert_eq!(run.stdout, "SEVERITY  NAME  DEVICE  PORT  SEEN  ADVICE\n");
    assert_eq!(
        (run.stderr.as_str(), run.status),
        ("uverbs: no problems found: 1 device, 1 port, 4 GIDs\n", 0)
    );
    assert_eq!(fleet.json(&["check"]), json!({ "check": [], "problems": [] }));
}

#[test]
fn statuses() {
    let mut warning = host("node1", &[("mlx5_0", port(DUAL))]);
    warning["interfaces"][0]["mtu"] = json!(9000);
    let mut problem = warning.clone();
    problem["interfaces"][0]["is_up"] = json!(false);
    let mut note = host("node1", &[("mlx5_0", port(DUAL))]);
    note["shares_namespaces"] = json!(false);
    for (host, plain, strict) in [(note, 0, 0), (warning, 0, 1), (problem, 2, 2)] {
        let fleet = Fleet::new(&[host]);
        assert_eq!(fleet.uverbs(&["check"]).status, plain);
        assert_eq!(fleet.uverbs(&["check", "--strict"]).status, strict);
    }
}

#[test]
fn a_device_alone() {
    let mut down = port(DUAL);
    down["attributes"][0]["state"] = json!(1);
    let fleet = Fleet::new(&[host("node1", &[("mlx5_0", port(DUAL)), ("mlx5_1", down)])]);
    assert_eq!(fleet.uverbs(&["check"]).status, 2);
    let run = fleet.uverbs(&["check", "mlx5_0"]);
    assert_eq!(run.status, 0, "{run:?}");
    assert_eq!(names(&fleet.json(&["check", "mlx5_1"])), ["not-checked", "port-down"]);
    let run = fleet.uverbs(&["check", "mlx5_9"]);
    assert!(run.stderr.contains("mlx5_9: no such device"), "{run:?}");
    let said = "uverbs: nothing was checked: nothing that was named is there\n";
    assert!(run.stderr.ends_with(said), "{run:?}");
    assert_eq!(run.status, 3);
    let run = fleet.uverbs(&["check", "mlx5_9", "mlx5_0"]);
    let said = "uverbs: no problems found in what was looked at: 1 device, 1 port, 4 GIDs; not \
                everything that was named is there\n";
    assert!(run.stderr.ends_with(said) && run.status == 3, "{run:?}");
    // A problem that was found is certain.
    assert_eq!(fleet.uverbs(&["check", "mlx5_9", "mlx5_1"]).status, 2);
}

#[test]
fn a_port_alone() {
    let tree = Tree::new();
    tree.with_infiniband();
    let findings = |selector: &str| {
        let run = tree.uverbs(&["check", "--json", selector]);
        (names(&serde_json::from_str(&run.stdout).unwrap()), run.status)
    };
    let (both, status) = findings("mlx4_0");
    assert!(both.contains(&"port-down".to_owned()) && status == 2, "{both:?}");
    assert_eq!(findings("mlx4_0:1"), (vec!["not-checked".to_owned()], 0));
    assert_eq!(findings("mlx4_0/2"), (both, 2));
    let said = tree.uverbs(&["check", "mlx4_0:1"]).stderr;
    assert!(said.ends_with(": 1 device, 1 port, 1 GID\n"), "{said}");
}

/// The last line says how many hosts have what.
/// A port that could not be read may be the one that a list leaves, also if it is not asked for.
#[test]
fn what_was_not_asked_for_and_not_read() {
    let mut one = host("node1", &[("mlx5_0", port(DUAL))]);
    set(&mut one, "NCCL_IB_HCA", "=mlx5_0:2", Some("/etc/nccl.conf"));
    assert_eq!(Fleet::new(&[one.clone()]).uverbs(&["check", "mlx5_0:1"]).status, 2);
    let mut second = one["devices"][0]["ports"][0].clone();
    (second["number"], second["attributes"]) = (json!(2), json!({ "error": "no", "errno": 5 }));
    one["devices"][0]["ports"].as_array_mut().unwrap().push(second);
    let fleet = Fleet::new(&[one]);
    assert_eq!(names(&fleet.json(&["check", "mlx5_0:1"])), ["not-checked"]);
    let run = fleet.uverbs(&["check", "mlx5_0:1", "--format", "nagios"]);
    let first = "UVERBS OK - no problems found in what was looked at: 1 device, 1 port, 4 GIDs\n";
    assert!(run.stdout.starts_with(first), "{run:?}");
    assert!(run.stdout.contains("leaves NCCL an active port"), "{run:?}");
}

#[test]
fn the_last_line() {
    let good = host("node1", &[("mlx5_0", port(DUAL))]);
    let mut warning = host("node2", &[("mlx5_0", port(DUAL))]);
    warning["interfaces"][0]["mtu"] = json!(9000);
    let mut problem = host("node3", &[("mlx5_0", port(DUAL))]);
    problem["interfaces"][0]["is_up"] = json!(false);
    let mut worse = problem.clone();
    (worse["host"], worse["interfaces"][0]["mtu"]) = (json!("node4"), json!(9000));
    let mut twice = problem.clone();
    twice["devices"][0]["ports"][0]["attributes"][0]["state"] = json!(1);
    let said = |hosts: &[&Value]| {
        let hosts: Vec<Value> = hosts.iter().copied().cloned().collect();
        let run = Fleet::new(&hosts).uverbs(&["check"]);
        (
            run.stderr.lines().last().unwrap().strip_prefix("uverbs: ").unwrap().to_owned(),
            run.status,
        )
    };
    let of = |count: usize| format!("{count} devices, {count} ports, {} GIDs", 4 * count);
    let one = "1 device, 1 port, 4 GIDs";
    for (hosts, text, status) in [
        (&[&good][..], format!("no problems found: {one}"), 0),
        (&[&warning], format!("no problems, 1 warning found: {one}"), 0),
        (&[&problem], format!("1 problem found: {one}"), 2),
        (&[&worse], format!("1 problem, 1 warning found: {one}"), 2),
        (&[&good, &good], format!("no problems found on 2 hosts: {}", of(2)), 0),
        (&[&good, &warning], format!("no problems found on 2 hosts, warnings on 1: {}", of(2)), 0),
        (&[&good, &problem], format!("1 of 2 hosts has problems: {}", of(2)), 2),
        (&[&good, &twice], format!("1 of 2 hosts has problems: {}", of(2)), 2),
        (
            &[&problem, &worse, &warning],
            format!("2 of 3 hosts have problems, 1 more has warnings: {}", of(3)),
            2,
        ),
        (
            &[&good, &json!({})],
            format!("no problems found: {one}; 1 snapshot could not be read"),
            3,
        ),
        (
            &[&problem, &json!({})],
            format!("1 problem found: {one}; 1 snapshot could not be read"),
            2,
        ),
    ] {
        assert_eq!(said(hosts), (text, status));
    }
}

#[test]
fn expectations_and_settings() {
    let mut one = host("node1", &[("mlx5_0", port(DUAL))]);
    set(&mut one, "NCCL_IB_GID_INDEX", "2", None);
    set(&mut one, "UCX_NET_DEVICES", "mlx5_7:1", None);
    let fleet = Fleet::new(&[one]);
    assert_eq!(
        names(&fleet.json(&["check", "--link-layer", "infiniband"])),
        ["other-link-layer", "pinned-index-other-type", "list-leaves-none"]
    );
    assert_eq!(
        names(&fleet.json(&["check", "--link-layer", "ethernet"])),
        ["pinned-index-other-type", "list-leaves-none"]
    );
}

/// What programs need of the host is found in a snapshot, and modules only if they are asked for.
#[test]
fn needs() {
    let mut one = host("node1", &[("mlx5_0", port(DUAL))]);
    one["modules"] = json!(["ib_core", "ib_uverbs", "ib_umad", "nvidia"]);
    one["proprietary"] = json!(["nvidia"]);
    one["locked_memory"] = json!({ "limit": 65_536, "is_exempt": false });
    let both = ["locked-memory-low", "no-peer-memory"];
    // An older snapshot does not say it.
    let older = Fleet::new(std::slice::from_ref(&one)).json(&["check", "--need", "umad"]);
    assert_eq!(names(&older), ["nodes-unknown", both[0], both[1]]);
    // Nor does a process that might open no more files. Then not all was looked at.
    one["umad_access"] = json!({ "error": "/dev/infiniband/umad0: too many", "errno": 24 });
    let run = Fleet::new(std::slice::from_ref(&one)).uverbs(&["check", "--need", "umad"]);
    let partial = "no problems, 3 warnings found in what was looked at: ";
    assert!(run.stderr.contains(partial) && run.status == 0, "{run:?}");
    one["umad_access"] =
        json!({ "error": "/dev/infiniband/umad0: permission denied", "errno": 13 });
    let run = Fleet::new(std::slice::from_ref(&one)).uverbs(&["check", "--need", "umad"]);
    assert!(run.stdout.contains("no-umad-node") && run.status == 2, "{run:?}");
    one["umad_access"] = json!(true);
    let fleet = Fleet::new(&[one]);
    assert_eq!(names(&fleet.json(&["check"])), both);
    assert_eq!(names(&fleet.json(&["check", "--need", "umad"])), both);
    let run = fleet.uverbs(&["check", "--need", "umad", "--need", "rdma-cm"]);
    assert!(run.stdout.contains("no-rdma-ucm-module") && run.status == 2, "{run:?}");
    assert!(run.stdout.contains("may lock 64 KiB of memory"), "{run:?}");
    assert_eq!(fleet.uverbs(&["check", "--need", "nvidia"]).status, 3);
}

/// The same of a sysfs tree, where a module may be built in.
#[test]
fn needs_of_a_tree() {
    let tree = Tree::new();
    tree.with_roce();
    let both = ["--need", "umad", "--need", "rdma-cm"];
    let found = || {
        let run = tree.uverbs(&[&["check", "--json"][..], &both].concat());
        let mut names = names(&serde_json::from_str(&run.stdout).unwrap());
        names.retain(|name| name != "not-checked");
        (names.join(" "), run.status)
    };
    let warnings = |names: &str| (names.to_owned(), 0);
    assert_eq!(found(), warnings("modules-unknown modules-unknown"));
    let module = |name: &str, file: &str, text: &str| {
        write(tree.path().join("module").join(name).join(file), text);
    };
    module("ib_uverbs", "refcnt", "0");
    assert_eq!(found(), ("no-umad-module no-rdma-ucm-module".to_owned(), 2));
    module("ib_umad", "refcnt", "0");
    std::fs::create_dir_all(tree.path().join("class/misc/rdma_cm")).unwrap();
    // No node is opened.
    let unknown = "nodes-unknown nodes-unknown";
    assert_eq!(found(), warnings(unknown));
    // NVIDIA's own driver, without the module by which RDMA devices reach its memory.
    module("nvidia", "taint", "POE");
    assert_eq!(found(), warnings(&format!("{unknown} no-peer-memory")));
    module("nvidia_peermem", "taint", "POE");
    assert_eq!(found(), warnings(unknown));
}

/// A path that is mistyped drains no node, and is not taken for a host without problems.
#[test]
fn a_file_that_is_not_there_was_not_checked() {
    for words in [&["check"] as &[&str], &["check", "--strict"], &["check", "mlx5_0"]] {
        let run = finish(program().args(words).args(["--from", "/nosuch"]));
        assert_eq!(run.status, 3, "{run:?}");
        assert!(run.stderr.starts_with("uverbs: /nosuch: No such file"), "{run:?}");
        let said = "\nuverbs: nothing was checked; 1 snapshot could not be read\n";
        assert!(run.stderr.ends_with(said), "{run:?}");
    }
}

/// `check` does not report as good what it did not read.
#[test]
fn what_was_not_looked_at() {
    let tree = Tree::new();
    tree.with_roce();
    let run = tree.uverbs(&["check", "--json"]);
    let answer: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(names(&answer)[0], "not-checked", "{answer}");
    let seen = answer["check"][0]["seen"].as_str().unwrap();
    assert!(seen.contains("network interfaces") && seen.contains("variables"), "{seen}");
    let said = "uverbs: no problems found in what was looked at: 1 device, 1 port, 4 GIDs\n";
    assert!(tree.uverbs(&["check"]).stderr.ends_with(said));

    // The list may name a device that was not read, or not asked for.
    let mut two = host("node1", &[("mlx5_0", port(DUAL)), ("mlx5_1", port(DUAL))]);
    set(&mut two, "NCCL_IB_HCA", "mlx5_1", None);
    let none = |host: &Value, args: &[&str]| {
        let answer = Fleet::new(std::slice::from_ref(host)).json(&[&["check"], args].concat());
        names(&answer).contains(&"list-leaves-none".to_owned())
    };
    assert!(!none(&two, &[]) && !none(&two, &["mlx5_0"]));
    // A port that the program never takes is none that it leaves.
    let mut wide = host("node1", &[("mlx5_0", port(DUAL)), ("rep0", port(DUAL))]);
    with_third_port(&mut wide["devices"][1]);
    assert!(!none(&wide, &[]));
    set(&mut wide, "UCX_NET_DEVICES", "mlx5_9:1", None);
    assert!(none(&wide, &[]));
    let advice = |host: &Value| {
        let answer = Fleet::new(std::slice::from_ref(host)).json(&["check"]);
        let found = answer["check"].as_array().unwrap().iter();
        let mut found = found.filter(|own| own["name"] == "list-leaves-none");
        found.next().unwrap()["advice"].as_str().unwrap().to_owned()
    };
    assert!(advice(&wide).starts_with("write device names as uverbs devices prints them"));
    let mut named = host("node1", &[("mlx5_0", port(DUAL)), ("rep0", port(DUAL))]);
    with_third_port(&mut named["devices"][1]);
    set(&mut named, "UCX_NET_DEVICES", "rep0:3", None);
    assert_eq!(advice(&named), "UCX itself never takes rep0:3; name another port");
    // Nor is one of a device without a node, beside one that has it.
    let mut without = host("node1", &[("mlx5_0", port(DUAL)), ("mlx5_1", port(DUAL))]);
    without["devices"][1]["node"] = Value::Null;
    set(&mut without, "NCCL_IB_HCA", "mlx5_1", None);
    assert_eq!(advice(&without), "programs here do not find mlx5_1:1; name another port");
    // What NCCL never takes cannot be brought up.
    let mut efa = host("node1", &[("mlx5_0", port(DUAL)), ("efa_0", port(DUAL))]);
    efa["devices"][1]["ports"][0]["attributes"][0]["link_layer"] = json!(0);
    efa["devices"][1]["ports"][0]["attributes"][0]["state"] = json!(1);
    set(&mut efa, "NCCL_IB_HCA", "efa_0", None);
    assert_eq!(advice(&efa), "NCCL itself never takes efa_0:1; name another port");
    // Nor can what UCX never takes: it has no table, or its GID is one of iWARP; nor NVSHMEM's fifth port.
    let mut flat = host("node1", &[("mlx5_0", port(DUAL)), ("rep0", port(DUAL))]);
    flat["devices"][1]["ports"][0]["attributes"][0]["gid_tbl_len"] = json!(0);
    flat["devices"][1]["gids"] = json!([]);
    set(&mut flat, "UCX_NET_DEVICES", "rep0:1", None);
    assert_eq!(advice(&flat), "UCX itself never takes rep0:1; name another port");
    let mut iwarp = host("node1", &[("mlx5_0", port(DUAL)), ("siw0", port(DUAL))]);
    let siw = &mut iwarp["devices"][1];
    (siw["node_type"], siw["gids"]) = (json!(4), json!([siw["gids"][0]]));
    siw["gids"][0]["gid"] = json!("0200:0000:0001:0000:0000:0000:0000:0000");
    set(&mut iwarp, "UCX_NET_DEVICES", "siw0:1", None);
    for state in [4, 1] {
        iwarp["devices"][1]["ports"][0]["attributes"][0]["state"] = json!(state);
        assert_eq!(advice(&iwarp), "UCX itself never takes siw0:1; name another port");
    }
    // Without another port the list is not why.
    iwarp["devices"].as_array_mut().unwrap().remove(0);
    iwarp["devices"][0]["ports"][0]["attributes"][0]["state"] = json!(4);
    for list in ["siw0:1", "nothing:1"] {
        set(&mut iwarp, "UCX_NET_DEVICES", list, None);
        assert!(!none(&iwarp, &[]), "{list}");
    }
    // Devices that were not asked for are read, and there is no end to the ports that one may have.
    let devices: Vec<String> = (0..40).map(|number| format!("mlx5_{number}")).collect();
    let many: Vec<_> = devices.iter().map(|name| (name.as_str(), port(DUAL))).collect();
    let mut many = host("node1", &many);
    set(&mut many, "NCCL_IB_HCA", "=mlx5_0:1", None);
    set(&mut many, "UCX_NET_DEVICES", "mlx5_0:1", None);
    let of_one =
        |many: &Value| names(&Fleet::new(std::slice::from_ref(many)).json(&["check", "mlx5_0"]));
    assert_eq!(of_one(&many), ["not-checked"]);
    many["others"] = json!([{
        "name": "mlx5_99", "index": 99, "node_type": 1, "node_guid": "0x0002c90300000099",
        "sys_image_guid": "0x0002c90300000099", "port_count": u32::MAX, "driver": 1, "node": null,
        "node_is_unread": false,
    }]);
    assert_eq!(of_one(&many), ["not-checked"]);
    // Of one that the list leaves out its state is enough.
    let mut unread = host("node1", &[("mlx5_0", port(DUAL)), ("mlx5_1", port(DUAL))]);
    set(&mut unread, "NCCL_IB_HCA", "mlx5_7", None);
    unread["devices"][1]["gids"] = json!({ "error": "mlx5_1: no", "errno": 5 });
    assert!(none(&unread, &[]));
    two["devices"][1]["gids"] = json!({ "error": "mlx5_1: no", "errno": 5 });
    assert!(!none(&two, &[]));
    two["devices"].as_array_mut().unwrap().pop();
    assert!(none(&two, &[]));
}

/// Each program is judged by the ports that it may take, and what is the same for all is said once.
#[test]
fn right_indices_differ_for_a_program() {
    let differing = |is_wide: bool, set_for: &[(&str, &str)]| {
        let row = |index| port(&[(index, "::ffff:10.0.0.1", 2, Some("eth0"))]);
        let mut own = host("node1", &[("mlx5_0", row(3)), ("mlx5_1", row(4))]);
        if is_wide {
            with_third_port(&mut own["devices"][1]);
        }
        for (name, value) in set_for {
            set(&mut own, name, value, None);
        }
        let answer = Fleet::new(&[own]).json(&["check"]);
        let found = answer["check"].as_array().unwrap().iter();
        let found = found.filter(|own| own["name"] == "different-indices");
        found.map(|own| json!([own["severity"], own["seen"]])).collect::<Vec<_>>()
    };
    let [seen, seen_by_nccl] = [("is", 1), ("for NCCL is", 3)]
        .map(|(own, port)| format!("the right index {own} 3 on mlx5_0:1 and 4 on mlx5_1:{port}"));
    let both = [("NCCL_IB_GID_INDEX", "3"), ("UCX_IB_GID_INDEX", "3")];
    for (set_for, severity) in [(&[][..], "note"), (&both[..1], "warning"), (&both, "warning")] {
        assert_eq!(differing(false, set_for), [json!([severity, seen])], "{set_for:?}");
    }
    // What a list leaves out has no say.
    let listed = [both[0], ("NCCL_IB_HCA", "mlx5_0"), both[1], ("UCX_NET_DEVICES", "mlx5_0:1")];
    assert_eq!(differing(false, &listed), [] as [Value; 0]);
    // UCX does not ask for a third port.
    for (set_for, severity) in [(&[][..], "note"), (&both[1..], "note"), (&both, "warning")] {
        assert_eq!(differing(true, set_for), [json!([severity, seen_by_nccl])], "{set_for:?}");
    }
}

/// What could not be read may be a problem, and what is not proven, too.
#[test]
fn no_problem_is_found_in_what_was_looked_at() {
    type Change = fn(&mut Value);
    let changes: [(&str, Change); 4] = [
        ("node-not-opened", |it| {
            it["devices"][0]["access"] = json!({ "error": "mlx5_0: no file", "errno": 24 });
        }),
        ("settings-unreadable", |it| {
            it["unread_settings"] = json!([{ "error": "/etc/nccl.conf: no", "errno": 13 }]);
        }),
        ("pkeys-unreadable", |it| {
            it["devices"][0]["ports"][0]["pkeys"] = json!({ "error": "no", "errno": 5 });
        }),
        ("gid-not-proven", |it| {
            for row in it["devices"][0]["gids"].as_array_mut().unwrap() {
                row["netdev"] = json!(null);
            }
        }),
    ];
    for (name, change) in changes {
        let mut own = host("node1", &[("mlx5_0", port(DUAL))]);
        let run = Fleet::new(std::slice::from_ref(&own)).uverbs(&["check"]);
        assert!(run.stderr.ends_with("no problems found: 1 device, 1 port, 4 GIDs\n"), "{run:?}");
        if name == "gid-not-proven" {
            let addresses = json!([["10.0.0.1", 24], ["fe80::11:22ff:fe33:4455", 64]]);
            own["interfaces"][0]["addresses"] = addresses;
        }
        change(&mut own);
        let run = Fleet::new(&[own]).uverbs(&["check"]);
        assert!(run.stdout.contains(name) && run.status == 0, "{run:?}");
        assert!(run.stderr.contains("no problems") && run.stderr.contains("in what was looked at"));
    }
}

/// A port that was not named has no say in what is right.
#[test]
fn right_indices_differ_on_ports_that_are_asked_for() {
    let mut own = host("node1", &[("mlx5_0", port(&[(3, "::ffff:10.0.0.1", 2, Some("eth0"))]))]);
    let device = &mut own["devices"][0];
    let mut second = device["ports"][0].clone();
    second["number"] = 2.into();
    device["ports"].as_array_mut().unwrap().push(second);
    let mut row = device["gids"][0].clone();
    (row["port"], row["index"]) = (2.into(), 4.into());
    device["gids"].as_array_mut().unwrap().push(row);
    set(&mut own, "NCCL_IB_GID_INDEX", "3", None);
    let fleet = Fleet::new(&[own]);
    let has = |named: &[&str]| {
        let run = fleet.uverbs(&[&["check"], named].concat());
        let metrics = fleet.uverbs(&[&["metrics"], named].concat()).stdout;
        let is_found = run.stdout.contains("different-indices");
        assert_eq!(metrics.contains("different-indices"), is_found, "{metrics}");
        is_found
    };
    assert!(has(&[]) && has(&["mlx5_0"]) && !has(&["mlx5_0:1"]));
}

/// `choose` says that it is not known to be right, and so does `check`.
#[test]
fn a_gid_that_is_not_proven_to_be_right() {
    let mut one = host("node1", &[("mlx5_0", port(DUAL))]);
    for row in one["devices"][0]["gids"].as_array_mut().unwrap() {
        row["netdev"] = json!(null);
    }
    // Whose address it is, is known.
    one["interfaces"][0]["addresses"] = json!([["10.0.0.1", 24], ["fe80::11:22ff:fe33:4455", 64]]);
    let fleet = Fleet::new(&[one]);
    assert_eq!(names(&fleet.json(&["check"])), ["gid-not-proven"]);
    assert_eq!(fleet.json(&["choose"])["fits_all"]["unproven"], json!(["node1: mlx5_0:1"]));
    let run = fleet.uverbs(&["check"]);
    assert!(!run.stderr.contains("nothing is found wrong"), "{run:?}");
}

/// mlx5 has ports without an interface in any namespace.
#[test]
fn a_port_without_a_representor() {
    let mut none = port(&[]);
    none["attributes"][0]["active_mtu"] = json!(0);
    none["attributes"][0]["gid_tbl_len"] = json!(0);
    let mut one = host("node1", &[("mlx5_0", none)]);
    one["devices"][0]["ports"][0]["netdev"] = json!(null);
    assert_eq!(names(&Fleet::new(&[one]).json(&["check"])), ["no-gid-table"]);
}

#[test]
fn a_tree_without_devices() {
    let tree = Tree::new();
    let run = tree.uverbs(&["check", "--json"]);
    let answer: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(names(&answer), ["no-device"]);
    assert_eq!(run.status, 2);
}

/// As in a container that has the host's /sys, where other namespaces' devices are seen.
#[test]
fn a_host_without_a_device_is_not_right() {
    let fleet = Fleet::new(&[host("node1", &[])]);
    let run = fleet.uverbs(&["check"]);
    assert!(run.stdout.contains("no-device"), "{run:?}");
    assert_eq!(run.status, 2, "{run:?}");
}

/// A kernel without the ioctl, as before Linux 5.10, has RDMA all the same. So has a driver that is newer than uverbs.
#[test]
fn a_device_that_only_uverbs_cannot_ask() {
    for (errno, text, name) in [
        (
            93,
            "mlx5_0: query GID table: the kernel does not know this request (errno 93)",
            "ioctl-unknown",
        ),
        (25, "mlx5_0: get context: the kernel has no uverbs ioctl (errno 25)", "ioctl-unknown"),
        (22, "mlx5_0: get context: no known driver id is accepted (errno 22)", "driver-unknown"),
    ] {
        let mut one = host("node1", &[("mlx5_0", port(DUAL))]);
        one["devices"][0]["access"] = json!({ "error": text, "errno": errno });
        let fleet = Fleet::new(&[one]);
        let run = fleet.uverbs(&["check"]);
        assert_eq!(run.status, 0, "{run:?}");
        assert!(!run.stdout.contains("there is no RDMA"), "{run:?}");
        assert_eq!(names(&fleet.json(&["check"])), [name]);
    }
}

/// A node of which a file is missing is one that could not be read, and not none.
#[test]
fn a_node_without_a_number_is_not_none() {
    let tree = Tree::new();
    tree.with_roce();
    std::fs::remove_file(tree.path().join("class/infiniband_verbs/uverbs0/dev")).unwrap();
    let run = tree.uverbs(&["check", "--json"]);
    let answer: Value = serde_json::from_str(&run.stdout).unwrap();
    let names = names(&answer);
    assert!(!names.contains(&"no-node".to_owned()), "{names:?}");
    assert!(names.contains(&"host-unreadable".to_owned()), "{names:?}");
}
