//! What is not known, and what `choose`, `env` and `check` then say: snapshots and trees of which a part
//! could not be read.

use serde_json::{Value, json};

use crate::snapshots::{DUAL, Fleet, VLAN, host, port, set};
use crate::tree::Tree;

/// A row by sysfs, of an interface that is not proven to be here: v2, with the interface's name.
fn named(index: u32, gid: &str, name: &str) -> Value {
    json!({
        "port": 1, "index": index, "gid": gid, "gid_type": 2, "ifindex": null, "source": "sysfs",
        "type_is_hidden": false, "netdev": null, "sysfs_netdev": name,
    })
}

/// A row by sysfs whose interface could not be read.
fn unread(index: u32, gid: &str) -> Value {
    let mut row = named(index, gid, "");
    (row["sysfs_netdev"], row["netdev_is_unread"]) = (Value::Null, true.into());
    row
}

/// The same of the kernel of `MLNX_OFED`, which keeps the type back too.
fn hidden(index: u32, gid: &str) -> Value {
    let mut row = unread(index, gid);
    (row["gid_type"], row["type_is_hidden"]) = (u32::MAX.into(), true.into());
    row
}

/// A pod with these addresses on eth0 and ports with these rows. The interfaces of the ports are elsewhere.
fn pod(addresses: &[&str], ports: &[(&str, Vec<Value>)]) -> Value {
    let devices: Vec<(&str, Value)> = ports.iter().map(|(name, _)| (*name, port(&[]))).collect();
    let mut pod = host("pod", &devices);
    for (place, (_, rows)) in ports.iter().enumerate() {
        pod["devices"][place]["gids"] = rows.clone().into();
        pod["devices"][place]["ports"][0]["netdev"] = Value::Null;
    }
    let own: Vec<Value> = addresses.iter().map(|address| json!([address, 24])).collect();
    pod["interfaces"][0]["addresses"] = own.into();
    pod
}

/// A row that is proven to be of eth0.
fn proven(index: u32, gid: &str) -> Value {
    port(&[(index, gid, 2, Some("eth0"))])["rows"][0].clone()
}

#[test]
fn the_pod_s_own_row_comes_before_a_row_that_cannot_be_read() {
    let own = named(3, "::ffff:10.0.0.9", "eth0");
    let mut without = unread(2, "::ffff:10.5.5.5");
    without["netdev_is_unread"] = false.into();
    for other in [hidden(2, "::ffff:10.5.5.5"), unread(2, "::ffff:10.5.5.5"), without] {
        let fleet = Fleet::new(&[pod(&["10.0.0.9"], &[("mlx5_0", vec![other, own.clone()])])]);
        let run = fleet.uverbs(&["choose", "--explain", "--no-header"]);
        let reasons: Vec<&str> =
            run.stdout.lines().map(|line| line.rsplit("  ").next().unwrap()).collect();
        let but = "its interface is not proven to be in this network namespace";
        assert_eq!(
            reasons,
            [
                "its interface is in another network namespace, or does not have the address",
                &format!("recommended; but {but}")
            ]
        );
        let run = fleet.uverbs(&["env", "nccl"]);
        assert_eq!(run.stdout, "export NCCL_IB_GID_INDEX=3\n", "{run:?}");
        assert!(run.stderr.contains(&format!("pod: mlx5_0:1: 3: {but}\n")), "{run:?}");
    }
    // A proven IPv6 row comes before an IPv4 row that may be anywhere.
    let rows = vec![proven(1, "2001:db8::1"), unread(3, "::ffff:10.9.9.9")];
    let fleet = Fleet::new(&[pod(&["2001:db8::1"], &[("mlx5_0", rows)])]);
    assert_eq!(fleet.json(&["choose"])["choose"][0]["index"], 1);
    // Of two that cannot be read, the one whose address is here.
    let rows = vec![unread(0, "fe80::5"), unread(3, "::ffff:10.0.0.1")];
    let fleet = Fleet::new(&[pod(&["10.0.0.1"], &[("mlx5_0", rows)])]);
    assert_eq!(fleet.json(&["choose"])["choose"][0]["index"], 3);
}

/// An address that no interface here has: that does not prove that the row is elsewhere.
#[test]
fn an_address_that_has_gone_is_not_foreign() {
    let mut gone = proven(1, "::ffff:10.0.0.9");
    gone["netdev"] = Value::Null;
    let rows = vec![proven(0, "fe80::11:22ff:fe33:4455"), gone];
    let fleet = Fleet::new(&[pod(&["fe80::11:22ff:fe33:4455"], &[("mlx5_0", rows)])]);
    let run = fleet.uverbs(&["choose", "--explain"]);
    let said = "its interface is in another network namespace, or does not have the address";
    assert!(run.stdout.contains(said), "{run:?}");
    let run = fleet.uverbs(&["check"]);
    assert!(!run.stdout.contains("foreign-gids"), "{run:?}");
    assert!(run.stdout.contains("UCX may take GID 1 of mlx5_0:1"), "{run:?}");
    let run = fleet.uverbs(&["choose"]);
    assert!(run.stderr.contains("recommended 0, NCCL 1, UCX perhaps 1\n"), "{run:?}");
}

/// A row that may be the one that is asked for is neither a match nor none.
#[test]
fn a_row_that_cannot_be_read_may_be_asked_for() {
    let tree = Tree::new();
    let row = |number: u8, name: &str, gid: &str| {
        let device = tree.device(name, "1: CA", number);
        let port = device.port(1, "Ethernet", "100 Gb/sec (4X EDR)", 8);
        port.gid(3, &format!("0000:0000:0000:0000:0000:ffff:0a00:{gid}"), "RoCE v2", Some("eth0"));
        port
    };
    row(0, "mlx5_0", "0001");
    let port = row(1, "mlx5_1", "0002");
    let not_known = |tree: &Tree, options: &[&str]| {
        let run = tree.uverbs(&[&["env", "nccl"], options].concat());
        assert_eq!((run.stdout.as_str(), run.status), ("", 1), "{run:?}");
        let said = "mlx5_1:1: it is not known whether GID 3 is right\n";
        assert!(run.stderr.contains(said) && !run.stderr.contains("left out"), "{run:?}");
        assert!(run.stderr.contains("no variables, as not everything was read: "));
        let run = tree.uverbs(&[&["env", "nccl", "--json"], options].concat());
        let answer: Value = serde_json::from_str(&run.stdout).unwrap();
        let caveat = "it is not known whether GID 3 is right";
        let doubt = json!({ "device": "mlx5_1", "port": 1, "index": null, "caveat": caveat });
        assert_eq!(answer["doubts"].as_array().unwrap().last(), Some(&doubt), "{answer}");
        assert_eq!((&answer["env"], &answer["is_sure"]), (&Value::Null, &Value::Null));
        let run = tree.uverbs(&[&["choose"], options].concat());
        assert!(run.status == 1 && run.stderr.contains(said), "{run:?}");
        assert!(!run.stderr.contains("recommended it is"), "{run:?}");
        // Nothing is unknown of the other port.
        let run = tree.uverbs(&[&["env", "nccl", "mlx5_0"], options].concat());
        assert_eq!(run.status, 0, "{run:?}");
        assert!(run.stdout.starts_with("export NCCL_IB_HCA='=mlx5_0:1'\n"), "{run:?}");
    };
    port.refuse("gid_attrs/ndevs/3");
    not_known(&tree, &["--netdev", "eth0"]);
    // Without such a wish the interface does not matter.
    let run = tree.uverbs(&["env", "nccl", "--json"]);
    let answer: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(answer["env"], json!({ "NCCL_IB_GID_INDEX": "3" }));
    let caveat = "it is not known whether its interface is in this network namespace";
    let doubt = |device| json!({ "device": device, "port": 1, "index": 3, "caveat": caveat });
    assert_eq!(answer["doubts"], json!([doubt("mlx5_0"), doubt("mlx5_1")]));
    assert_eq!(answer["is_sure"], false);
    // Its type always matters.
    port.remove("gid_attrs/ndevs/3");
    port.file("gid_attrs/ndevs/3", "eth0");
    port.refuse("gid_attrs/types/3");
    for options in [&[][..], &["--type", "v2"], &["--type", "v1"], &["--netdev", "eth0"]] {
        if options != ["--type", "v1"] {
            not_known(&tree, options);
        }
        let run = tree.uverbs(&[&["choose", "mlx5_1"], options].concat());
        assert_eq!(run.status, 1, "{run:?}");
    }
}

/// What is said of a fleet does not cover such a port.
#[test]
fn a_fleet_with_a_row_that_cannot_be_read() {
    let good = host("h1", &[("mlx5_0", port(DUAL))]);
    let mut doubtful = pod(&["10.0.0.1"], &[("mlx5_0", vec![unread(5, "::ffff:10.0.0.1")])]);
    doubtful["host"] = "h2".into();
    let fleet = Fleet::new(&[good, doubtful]);
    let netdev = ["choose", "--netdev", "eth0"];
    let fits = fleet.json(&netdev)["fits_all"].clone();
    assert_eq!((&fits["unread"], &fits["unusable"]), (&json!(["h2: mlx5_0:1"]), &json!([])));
    assert_eq!((&fits["index"], &fits["read"]["index"]), (&Value::Null, &json!(3)));
    assert_eq!(fits["read"]["nccl"], json!({ "NCCL_IB_GID_INDEX": "3" }));
    let run = fleet.uverbs(&netdev);
    assert!(run.status == 1 && run.stderr.contains("what is right on h2: mlx5_0:1\n"), "{run:?}");
    // Its address is not here: then it is not usable, which is known.
    let mut other = pod(&[], &[("mlx5_0", vec![unread(5, "::ffff:10.0.0.1")])]);
    other["host"] = "h2".into();
    let fleet = Fleet::new(&[host("h1", &[("mlx5_0", port(DUAL))]), other]);
    let fits = fleet.json(&netdev)["fits_all"].clone();
    assert_eq!((&fits["unread"], &fits["unusable"]), (&json!([]), &json!(["h2: mlx5_0:1"])));
    let run = fleet.uverbs(&netdev);
    let said = "NCCL: no setting that uverbs tries is right on ";
    let line = run.stderr.lines().find(|line| line.contains(said)).expect("no setting");
    assert!(line.ends_with(" and uses no other port"), "{run:?}");
}

/// Nor does a host differ by an index that may be wrong.
#[test]
fn an_index_that_is_not_proven_does_not_differ() {
    let good = |name| host(name, &[("mlx5_0", port(DUAL))]);
    let mut other = pod(&["10.0.0.1"], &[("mlx5_0", vec![named(5, "::ffff:10.0.0.1", "eth0")])]);
    other["host"] = "h3".into();
    let fleet = Fleet::new(&[good("h1"), good("h2"), other]);
    let fits = fleet.json(&["choose"])["fits_all"].clone();
    assert_eq!((&fits["differing"], &fits["unproven"]), (&json!({}), &json!(["h3: mlx5_0:1"])));
    let run = fleet.uverbs(&["choose"]);
    assert!(run.stderr.ends_with("; no host is known to differ\n"), "{run:?}");
}

/// Without RDMA netlink a name by sysfs may be another namespace's.
#[test]
fn a_name_is_no_match_without_netlink() {
    for (address, status) in [("10.0.0.9", "no row is usable"), ("10.7.7.7", "GID 0 is right")] {
        let mut pod = pod(&[address], &[("mlx5_0", vec![named(0, "::ffff:10.7.7.7", "eth0")])]);
        pod["has_netlink"] = false.into();
        pod["without_netlink"] = json!({ "error": "host: ask RDMA netlink: EPERM", "errno": 1 });
        let fleet = Fleet::new(&[pod]);
        for command in [&["choose", "--netdev", "eth0"][..], &["env", "nccl", "--netdev", "eth0"]] {
            let run = fleet.uverbs(command);
            assert!(run.status == 1 && run.stderr.contains(status), "{run:?}");
            assert!(!run.stdout.contains("export") && !run.stdout.contains("10.7.7.7"), "{run:?}");
        }
    }
}

/// Of an interface one thing is said, and no other line denies it.
#[test]
fn what_is_known_of_an_interface_without_netlink() {
    let rows = || vec![named(0, "::ffff:10.0.0.9", "eth0")];
    let mut own = pod(&["10.0.0.9"], &[("mlx5_0", rows())]);
    own["has_netlink"] = false.into();
    let said = |own: &Value, words: &[&str]| {
        let run = Fleet::new(std::slice::from_ref(own)).uverbs(words);
        assert_eq!(run.status, 1, "{run:?}");
        let of_netdev = |line: &&str| line.starts_with("uverbs: pod: --netdev");
        let lines: Vec<&str> = run.stderr.lines().filter(of_netdev).collect();
        lines.join("\n").replace("uverbs: pod: --netdev ", "")
    };
    let commands =
        [&["choose", "--netdev"][..], &["env", "ucx", "--netdev"], &["gids", "--netdev"]];
    let all = |own: &Value, name: &str| {
        commands.map(|own_words| said(own, &[own_words, &[name]].concat()))
    };
    // It is not there, by its own name.
    let absent = "eth9: no interface of this network namespace is shown by that name (an alternative name is not \
                  looked up)";
    assert_eq!(all(&own, "eth9"), [absent; 3]);
    // It may be the row's.
    let unknown = "eth0: it is not known which GIDs are of this interface";
    let hidden = "eth0: not shown, as it is not known whether the interface is theirs: mlx5_0:1 0";
    assert_eq!(all(&own, "eth0"), [unknown, unknown, hidden]);
    // No usable row can be of it.
    let mut other = own["interfaces"][0].clone();
    (other["index"], other["name"], other["addresses"]) = (7.into(), "eth7".into(), json!([]));
    (other["mac"], own["has_netlink"]) = (Value::Null, false.into());
    own["interfaces"].as_array_mut().unwrap().push(other);
    assert_eq!(all(&own, "eth7"), ["", "", ""]);
    // No interface is known: the row's own name is, or is not.
    own["interfaces"] = Value::Null;
    assert_eq!(all(&own, "eth0"), [unknown, unknown, hidden]);
    assert_eq!(said(&own, &["gids", "--netdev", "eth7"]), "");
    let row = &mut own["devices"][0]["gids"][0];
    (row["sysfs_netdev"], row["netdev_is_unread"]) = (Value::Null, true.into());
    assert_eq!(
        all(&own, "eth7"),
        [unknown, unknown, hidden].map(|own| own.replace("eth0", "eth7"))
    );
}

/// The lower row is a VLAN's. Where it could not be read which interface is the port's own, that is not known.
#[test]
fn which_interface_is_the_port_s_own_may_not_be_known() {
    let mut own = host("h", &[("mlx5_0", port(VLAN))]);
    let answer = |own: &Value| Fleet::new(std::slice::from_ref(own)).json(&["choose", "--explain"]);
    let read = answer(&own);
    let of_port = &mut own["devices"][0]["ports"][0];
    of_port["netdev"] = Value::Null;
    of_port["netdev_problem"] = json!({ "error": "mlx5_0: no", "errno": 5 });
    let unread = answer(&own);
    let said = |answer: &Value| {
        let own = &answer["choose"][0]["recommended"];
        (own["index"].as_u64().unwrap(), own["is_sure"].as_bool().unwrap())
    };
    let (right, lower) = (said(&read).0, said(&unread).0);
    assert!(lower < right, "{read} {unread}");
    assert_eq!((said(&read), said(&unread)), ((right, true), (lower, false)));
    set(&mut own, "NCCL_IB_GID_INDEX", &right.to_string(), None);
    let run = Fleet::new(&[own]).uverbs(&["check"]);
    assert!(run.stdout.contains(&format!("index {lower} may be right here")), "{run:?}");
}

/// A shell takes what is right as far as is known, a job of Slurm only what is known to be right.
#[test]
fn slurm_gets_nothing_that_is_not_proven() {
    let port = ("mlx5_0", vec![named(3, "::ffff:10.0.0.9", "eth0")]);
    let fleet = Fleet::new(&[pod(&["10.0.0.9"], &[port])]);
    let shell = fleet.uverbs(&["env", "nccl", "mlx5_0"]);
    assert!(shell.stdout.contains("export") && shell.status == 0, "{shell:?}");
    let run = fleet.uverbs(&["env", "nccl", "mlx5_0", "--format", "slurm"]);
    assert_eq!((run.stdout.as_str(), run.status), ("", 1), "{run:?}");
    assert!(run.stderr.contains("not known to be right"), "{run:?}");
}

#[test]
fn a_plan_of_rows_that_are_not_proven_says_so() {
    let row = |index| named(index, "::ffff:10.0.0.9", "eth0");
    let ports = [("mlx5_0", vec![row(3)]), ("mlx5_1", vec![row(5)])];
    let mut pod = pod(&["10.0.0.9"], &ports);
    set(&mut pod, "NCCL_IB_GID_INDEX", "3", None);
    let fleet = Fleet::new(&[pod]);
    let run = fleet.uverbs(&["env", "nccl"]);
    assert!(run.stderr.contains("NCCL chooses right by itself, as far as is known\n"), "{run:?}");
    // Slot 0 is empty, and the indices differ: UCX cannot be set right.
    let run = fleet.uverbs(&["env", "ucx"]);
    assert!(run.stdout.is_empty() && run.status == 1, "{run:?}");
    let said = "right are 3 on pod: mlx5_0:1; 5 on pod: mlx5_1:1, as far as is known\n";
    assert!(run.stderr.contains(said), "{run:?}");
    assert!(run.stderr.contains("pod: mlx5_0:1: 3: its interface is not proven"), "{run:?}");
    assert_eq!(fleet.json(&["env", "ucx"])["doubts"][1]["index"], 5);
    let check = fleet.json(&["check"])["check"].clone();
    let found = check.as_array().unwrap().iter().find(|own| own["name"] == "different-indices");
    let found = found.unwrap();
    let seen = "the right index is 3 on mlx5_0:1 and 5 on mlx5_1:1, as far as is known";
    assert_eq!((&found["seen"], &found["severity"]), (&json!(seen), &json!("note")));
}

/// A port that could not be read may take the room of others.
#[test]
fn more_ports_than_room_and_one_that_could_not_be_read() {
    let names: Vec<String> = (0..34).map(|number| format!("m{number}")).collect();
    let devices: Vec<(&str, Value)> = names.iter().map(|name| (&**name, port(DUAL))).collect();
    let mut one = host("node1", &devices);
    one["devices"][0]["gids"] = json!({ "error": "m0: query GID table: EIO", "errno": 5 });
    let check = Fleet::new(&[one]).uverbs(&["check"]);
    let said =
        "NCCL has room for 32 ports, and there are at least 33; it is not known which it takes";
    assert!(check.stdout.contains(said) && !check.stdout.contains("leaves out"), "{check:?}");
}

/// Rows that may match are in the document too.
#[test]
fn rows_that_may_match_are_listed() {
    let rows = vec![unread(1, "::ffff:10.0.0.1"), hidden(2, "::ffff:10.0.0.1")];
    let fleet = Fleet::new(&[pod(&["10.0.0.1"], &[("mlx5_0", rows)])]);
    let may = |index: u32, unknown: &str| json!({ "host": "pod", "device": "mlx5_0", "port": 1, "index": index, "unknown": unknown });
    let answer = fleet.json(&["gids", "--netdev", "eth0"]);
    assert_eq!(answer["gids"], json!([]));
    assert_eq!(answer["may_match"], json!([may(1, "netdev"), may(2, "netdev")]));
    let answer = fleet.json(&["gids", "--type", "v2"]);
    assert_eq!(answer["gids"].as_array().unwrap().len(), 1);
    assert_eq!(answer["may_match"], json!([may(2, "gid_type")]));
    assert_eq!(fleet.json(&["gids"]).get("may_match"), None);
}

/// Variables by which a program may use another transport, other settings or other ports than uverbs knows.
#[test]
fn variables_that_make_it_doubtful_what_a_program_takes() {
    let with = |name: &str, value: &str| {
        let mut own = host("h", &[("mlx5_0", port(DUAL))]);
        set(&mut own, name, value, None);
        Fleet::new(&[own])
    };
    for (program, name, value, is_sure) in [
        ("nccl", "NCCL_NET_PLUGIN", "ofi", false),
        ("nccl", "NCCL_NET", "Socket", false),
        ("nccl", "NCCL_ENV_PLUGIN", "x", false),
        ("nccl", "NCCL_NET_PLUGIN", "none", true),
        ("nccl", "NCCL_NET", "ib", true),
        // No transport has no name. Plug-ins are as without it.
        ("nccl", "NCCL_NET", "", false),
        ("nccl", "NCCL_NET_PLUGIN", "", true),
        ("nccl", "NCCL_ENV_PLUGIN", "none", true),
        ("ucx", "UCX_TLS", "tcp,self", false),
        ("ucx", "UCX_IB_SUBNET_PREFIX", "fec0:0:0:1", false),
        ("ucx", "UCX_TLS", "all", true),
        ("ucx", "UCX_TLS", "rc,self", true),
        ("ucx", "UCX_IB_SUBNET_PREFIX", "", true),
    ] {
        let fleet = with(name, value);
        let answer = fleet.json(&["choose"]);
        let (row, fits) = (&answer["choose"][0], &answer["fits_all"]);
        let other = if program == "ucx" { "nccl" } else { "ucx" };
        assert_eq!(
            (&row[program]["is_sure"], &row[other]["is_sure"]),
            (&is_sure.into(), &true.into()),
            "{name}={value}"
        );
        let own = json!({ format!("{}_IB_GID_INDEX", program.to_uppercase()): "3" });
        assert_eq!(fits[program], if is_sure { own.clone() } else { Value::Null }, "{fits}");
        assert_eq!(fits["read"][program], if is_sure { Value::Null } else { own }, "{fits}");
        assert_eq!(fits["index"], 3);
        assert_eq!(fleet.json(&["env", program])["is_sure"], is_sure);
        assert_eq!(fleet.json(&["env", other])["is_sure"], true);
        let run = fleet.uverbs(&["check"]);
        assert_eq!(run.stdout.contains("other-transport"), !is_sure, "{run:?}");
        let run = fleet.uverbs(&["choose"]);
        let said = format!("{}: right on the port, as far as is known: ", program.to_uppercase());
        assert_eq!(run.stderr.contains(&said), !is_sure, "{run:?}");
    }
}

/// An address of the other end of a link, or of another host, is nothing to send from.
#[test]
fn addresses_that_nobody_can_use() {
    let rows = &[
        (1, "::ffff:10.0.0.2", 2, Some("eth0")),
        (3, "fd00::5", 2, Some("eth0")),
        (5, "fd00::6", 2, Some("eth0")),
    ];
    let mut host = host("a", &[("mlx5_0", port(rows))]);
    host["interfaces"][0]["unfit"] = json!([["10.0.0.2", "far_end"], ["fd00::5", "duplicate"]]);
    let fleet = Fleet::new(&[host]);
    let answer = fleet.json(&["choose", "--explain"]);
    assert_eq!(answer["choose"][0]["index"], 5, "{answer}");
    let run = fleet.uverbs(&["choose", "--explain"]);
    for said in ["the other end of a point-to-point link", "duplicate address detection failed"] {
        assert!(run.stdout.contains(said), "{run:?}");
    }
}

/// A file of NCCL's settings that cannot be read makes NCCL's choice doubtful, and nothing else.
#[test]
fn settings_that_were_not_read() {
    let mut host = host("a", &[("mlx5_0", port(DUAL))]);
    let text = "host: NCCL's settings in /f were not read: it is no regular file";
    host["unread_settings"] = json!([{ "error": text, "errno": 22 }]);
    let fleet = Fleet::new(&[host]);
    let answer = fleet.json(&["choose"]);
    let (row, fits) = (&answer["choose"][0], &answer["fits_all"]);
    assert_eq!(
        (&row["is_sure"], &row["nccl"]["is_sure"], &row["ucx"]["is_sure"]),
        (&true.into(), &false.into(), &true.into())
    );
    assert_eq!((&fits["index"], &fits["nccl"]), (&json!(3), &Value::Null), "{fits}");
    assert_ne!(fits["ucx"], Value::Null);
    for (like, is_sure) in [("nccl", false), ("nccl-2.20", false), ("ucx", true)] {
        let answer = fleet.json(&["choose", "--like", like]);
        assert_eq!(answer["choose"][0]["is_sure"], is_sure, "{answer}");
    }
    let run = fleet.uverbs(&["env", "nccl"]);
    assert_eq!((run.stdout.as_str(), run.status), ("", 1), "{run:?}");
    assert!(run.stderr.contains(text), "{run:?}");
    let run = fleet.uverbs(&["env", "ucx"]);
    assert!(run.stdout.contains("export UCX_IB_GID_INDEX=") && run.status == 0, "{run:?}");
    assert!(!run.stderr.contains(text), "{run:?}");
    let run = fleet.uverbs(&["check"]);
    assert!(run.stdout.contains("settings-unreadable") && run.status == 0, "{run:?}");
    let run = fleet.uverbs(&["gids"]);
    assert_eq!((run.stderr.as_str(), run.status), ("", 0), "{run:?}");
}

/// Names that two interfaces exchanged while the host was read do not make a row another namespace's.
#[test]
fn an_exchange_of_names() {
    let mut pod = pod(&["10.0.0.1"], &[("mlx5_0", vec![named(1, "::ffff:10.0.0.1", "eth1")])]);
    let mut other = pod["interfaces"][0].clone();
    (other["name"], other["index"], other["addresses"]) = ("eth1".into(), 77.into(), json!([]));
    pod["interfaces"].as_array_mut().unwrap().push(other);
    let fleet = Fleet::new(&[pod]);
    let answer = fleet.json(&["choose"]);
    assert_eq!(answer["choose"][0]["index"], 1, "{answer}");
    assert_eq!(answer["choose"][0]["recommended"]["is_sure"], false, "{answer}");
    let may = fleet.json(&["gids", "--netdev", "eth0"])["may_match"].clone();
    assert_eq!(may[0]["index"], 1, "{may}");
    assert_eq!(fleet.json(&["gids", "--netdev", "eth1"]).get("may_match"), None);
}

/// An empty index is a problem whatever transport is used. Whether a list of devices matters was not looked at.
#[test]
fn another_transport_hides_no_problem() {
    for (name, value, doubt, status) in [
        ("NCCL_IB_GID_INDEX", "9", ("NCCL_NET", "Socket"), 2),
        ("UCX_IB_GID_INDEX", "9", ("UCX_TLS", "rc_x,self,sm"), 2),
        ("NCCL_IB_HCA", "none", ("NCCL_NET", "Socket"), 0),
    ] {
        let mut own = host("h", &[("mlx5_0", port(DUAL))]);
        set(&mut own, name, value, None);
        let run = Fleet::new(&[own.clone()]).uverbs(&["check"]);
        assert_eq!(run.status, 2, "{run:?}");
        set(&mut own, doubt.0, doubt.1, None);
        let run = Fleet::new(&[own]).uverbs(&["check"]);
        assert_eq!(run.status, status, "{run:?}");
        let is_partial = run.stderr.contains("no problems found in what was looked at");
        assert_eq!(is_partial, status == 0, "{run:?}");
    }
}

/// Rows that nobody can use: of a type that this release does not know, and with an address that no host has.
#[test]
fn a_row_that_is_none_is_not_recommended() {
    let with = |row: Value| Fleet::new(&[pod(&["10.0.0.1"], &[("mlx5_0", vec![row])])]);
    let mut odd = proven(1, "::ffff:10.0.0.1");
    odd["gid_type"] = 7.into();
    let run = with(odd).uverbs(&["choose", "--explain"]);
    assert!(run.stdout.contains("its type is not known to this release"), "{run:?}");
    assert_eq!(run.status, 1, "{run:?}");
    for gid in ["::ffff:224.0.0.1", "::ffff:255.255.255.255", "ff02::1"] {
        let run = with(proven(1, gid)).uverbs(&["choose", "--explain"]);
        assert!(run.stdout.contains("no address that a host can have"), "{run:?}");
    }
    // A row past the end of its table is none.
    let mut short = pod(&["10.0.0.1"], &[("mlx5_0", vec![proven(2, "::ffff:10.0.0.1")])]);
    assert_eq!(Fleet::new(&[short.clone()]).uverbs(&["choose"]).status, 0);
    short["devices"][0]["ports"][0]["attributes"][0]["gid_tbl_len"] = 2.into();
    let run = Fleet::new(&[short]).uverbs(&["choose"]);
    assert_eq!(run.status, 1, "{run:?}");
}

/// A part of a sysfs is not a host without what is missing in it.
#[test]
fn a_part_of_a_sysfs() {
    let tree = Tree::new();
    let device = tree.device("mlx5_0", "1: CA", 0);
    let port = device.port(1, "Ethernet", "100 Gb/sec (4X EDR)", 8);
    port.gid(3, "0000:0000:0000:0000:0000:ffff:0a00:0001", "RoCE v2", Some("eth0"));
    port.remove_folder("gid_attrs");
    let run = tree.uverbs(&["gids", "--no-header"]);
    assert!(run.stdout.contains("  ?  "), "{run:?}");
    assert_eq!(tree.uverbs(&["gids", "--type", "v2"]).status, 1);
    port.remove_folder("gids");
    let run = tree.uverbs(&["gids"]);
    let said = "ports/1/gids: ENOENT: No such file or directory (errno 2); has it gone? is all of sysfs there?\n";
    assert!(run.status == 3 && run.stderr.ends_with(said), "{run:?}");
    // Each port of RoCE and InfiniBand has P_Keys, and iWARP has none.
    for (node_type, link_layer, has_no_folder) in [
        ("4: RNIC", "Ethernet", true),
        ("1: CA", "Ethernet", true),
        ("1: CA", "InfiniBand", true),
        ("1: CA", "InfiniBand", false),
    ] {
        let status = if node_type == "1: CA" { 3 } else { 0 };
        let tree = Tree::new();
        let port =
            tree.device("mlx5_0", node_type, 0).port(1, link_layer, "100 Gb/sec (4X EDR)", 1);
        if has_no_folder {
            port.remove_folder("pkeys");
        } else {
            port.remove("pkeys/0");
        }
        for command in ["pkeys", "ports"] {
            let run = tree.uverbs(&[command]);
            assert_eq!(run.status, status, "{node_type} {link_layer} {command}: {run:?}");
        }
        let found = tree.uverbs(&["check"]).stdout;
        assert!(!found.contains("no-pkey"), "{found}");
        assert_eq!(found.contains("port-unreadable"), status == 3, "{found}");
    }
}

/// With --like the doubt is the program's.
#[test]
fn a_release_that_is_not_known_to_take_the_row() {
    let mut own = host("h", &[("mlx5_0", port(DUAL))]);
    set(&mut own, "NCCL_NET", "Socket", None);
    let fleet = Fleet::new(&[own]);
    let row = fleet.json(&["choose", "--like", "nccl-2.21"])["choose"][0].clone();
    assert_eq!((&row["index"], &row["is_sure"]), (&json!(3), &json!(false)));
    let run = fleet.uverbs(&["choose", "--like", "nccl", "--no-header"]);
    assert!(run.stdout.contains("  3?  "), "{run:?}");
    assert_eq!(fleet.json(&["choose", "--like", "ucx"])["choose"][0]["is_sure"], true);
}

/// A table that was not read has no slots, whatever the errno is.
#[test]
fn a_table_that_was_not_read_is_not_a_slot_outside() {
    let mut own = host("h", &[("mlx5_0", port(DUAL))]);
    own["devices"][0]["gids"] = json!({ "error": "mlx5_0: query GID table: no", "errno": 22 });
    let run = Fleet::new(&[own]).uverbs(&["gid", "mlx5_0:1", "3"]);
    assert_eq!(run.status, 3, "{run:?}");
}

/// If the row's interface is not the one here, it is in another namespace: a GID of no use here is of none in either
/// case.
#[test]
fn a_row_that_is_of_no_use_wherever_its_interface_is() {
    let rows = vec![named(1, "::ffff:10.0.0.1", "eth0"), named(3, "::ffff:10.0.0.9", "eth0.7")];
    let mut own = pod(&["10.0.0.1"], &[("mlx5_0", rows)]);
    own["interfaces"][1]["addresses"] = json!([["10.0.0.9", 24]]);
    let index = |own: &Value| {
        let fleet = Fleet::new(std::slice::from_ref(own));
        let said = fleet.uverbs(&["choose", "--explain"]);
        (fleet.json(&["choose"])["choose"][0]["index"].clone(), said)
    };
    assert_eq!(index(&own).0, 1);
    own["interfaces"][0]["unfit"] = json!([["10.0.0.1", "far_end"]]);
    let (taken, said) = index(&own);
    let reason = "in another network namespace, or its address is that of the other end of a";
    assert!(taken == 3 && said.stdout.contains(reason), "{said:?}");
    own["interfaces"][1]["is_lower_up"] = false.into();
    let (taken, said) = index(&own);
    let reason = "in another network namespace, or it is eth0.7, which is down, or has no carrier";
    assert!(taken == Value::Null && said.stdout.contains(reason), "{said:?}");
    assert_eq!(said.status, 1);
}

/// What is asked for and was not read is not among what has no usable GID.
#[test]
fn a_table_that_was_not_read_is_not_without_a_usable_gid() {
    let mut down = port(DUAL);
    down["attributes"][0]["state"] = 1.into();
    let mut own = host("h", &[("mlx5_0", port(DUAL)), ("mlx5_1", down), ("mlx5_2", port(DUAL))]);
    own["devices"][0]["gids"] = json!({ "error": "mlx5_0: query GID table: EIO", "errno": 5 });
    let run = Fleet::new(&[own]).uverbs(&["choose", "mlx5_0", "mlx5_1"]);
    let said = "no port that is asked for and was read has a usable GID\n";
    assert!(run.stderr.contains(said) && run.status == 3, "{run:?}");
}

/// NCCL has room for 32 ports: the JSON has the doubt that the text has.
#[test]
fn ports_that_were_not_read_make_the_room_doubtful() {
    let names: Vec<String> = (0..33).map(|number| format!("m{number}")).collect();
    let devices: Vec<(&str, Value)> = names.iter().map(|name| (&**name, port(DUAL))).collect();
    let mut own = host("h", &devices);
    own["devices"][0]["gids"] = json!({ "error": "m0: query GID table: EIO", "errno": 5 });
    let last = |own: &Value, like: &[&str]| {
        let fleet = Fleet::new(std::slice::from_ref(own));
        let run = fleet.uverbs(&["choose"]);
        let row = fleet.json(&[&["choose"], like].concat())["choose"][31].clone();
        (run.stderr.contains("NCCL has room for"), row)
    };
    let (is_said, row) = last(&own, &["--like", "nccl"]);
    assert!(is_said);
    assert_eq!((&row["nccl"]["is_sure"], &row["is_sure"]), (&json!(false), &json!(false)));
    let (_, row) = last(&own, &["--like", "ucx"]);
    // UCX has room for 25 in any case.
    assert_eq!((&row["ucx"]["is_sure"], &row["is_sure"]), (&json!(false), &json!(false)));
    // One that could not even be listed may have ports, too.
    let problem = json!({ "error": "m99: read: no", "errno": 71 });
    own["unlisted"] = json!([{ "device": "m99", "problem": problem }]);
    own["devices"].as_array_mut().unwrap().remove(0);
    let (is_said, row) = last(&own, &[]);
    assert!(is_said && row["nccl"]["is_sure"] == false, "{row}");
    // Nor is it known of which name it is.
    let mut nameless = own.clone();
    (nameless["unlisted"], nameless["list_failure"]) =
        (json!([]), own["unlisted"][0]["problem"].clone());
    nameless["problems"] = json!([nameless["list_failure"]]);
    let (is_said, row) = last(&nameless, &[]);
    assert!(is_said && row["nccl"]["is_sure"] == false, "{row}");
    let run = Fleet::new(std::slice::from_ref(&nameless)).uverbs(&["check", "--no-header"]);
    for said in
        ["there may be other devices", "devices that could not be listed", "there may be more"]
    {
        assert!(run.stdout.contains(said), "{run:?}");
    }
    // Nobody knows how many.
    own["devices"].as_array_mut().unwrap().truncate(1);
    let fleet = Fleet::new(std::slice::from_ref(&own));
    let (run, answer) = (fleet.uverbs(&["choose"]), fleet.json(&["choose"]));
    assert!(run.stderr.contains("not all devices could be listed"), "{run:?}");
    assert_eq!(answer["choose"][0]["nccl"]["is_sure"], false, "{answer}");
    // Only a list keeps the room for those that were read.
    let setting = json!({ "NCCL_IB_HCA": "=m1:1", "NCCL_IB_GID_INDEX": "3" });
    assert_eq!(answer["fits_all"]["read"]["nccl"], setting, "{answer}");
    // One that was listed and not read has as many ports as the list says.
    own["unlisted"] = json!([]);
    own["others"] = json!([{
        "name": "m99", "index": 99, "node_type": 1, "node_guid": "0x0002c90300000009",
        "sys_image_guid": "0x0002c90300000009", "fw_version": null, "protocol": "roce",
        "port_count": 1, "driver": null, "node": null, "node_is_unread": false,
    }]);
    let row =
        |own: &Value| Fleet::new(std::slice::from_ref(own)).json(&["choose"])["choose"][0].clone();
    assert_eq!(row(&own)["nccl"]["is_sure"], true, "there is room for it");
    own["others"][0]["port_count"] = 32.into();
    assert_eq!(row(&own)["nccl"]["is_sure"], false);
    // Nor is it known where the order is not.
    let mut own = host("h", &devices);
    let (is_said, row) = last(&own, &[]);
    assert!(!is_said && row["nccl"]["is_sure"] == true, "{row}");
    for device in own["devices"].as_array_mut().unwrap() {
        device["index"] = Value::Null;
    }
    let (is_said, row) = last(&own, &[]);
    assert!(is_said && row["nccl"]["is_sure"] == false, "{row}");
}

/// NCCL goes on with the next device if it cannot open one: whether it can is not known of what this user cannot open.
#[test]
fn a_device_that_could_not_be_opened() {
    let mut down = port(DUAL);
    down["attributes"][0]["state"] = 1.into();
    let mut own = host("h", &[("mlx5_0", port(DUAL)), ("mlx5_1", port(DUAL)), ("mlx5_2", down)]);
    let sure = |own: &Value| {
        let fleet = Fleet::new(std::slice::from_ref(own));
        let rows = fleet.json(&["choose"])["choose"].clone();
        let of = |program: &str| {
            [0, 1, 2].map(|place| rows[place][program]["is_sure"].as_bool().unwrap())
        };
        let said =
            "mlx5_0, mlx5_2: not opened here, so what programs do there may be something else\n";
        let is_said = |words: &[&str]| fleet.uverbs(words).stderr.contains(said);
        let is_said = [is_said(&["choose"]), is_said(&["env", "nccl"])];
        (of("nccl"), of("ucx"), of("recommended"), is_said)
    };
    // Nor is it of what this process was too short of files or memory for, or was interrupted at.
    for errno in [1, 5, 13, 19, 4, 12, 23, 24] {
        for place in [0, 2] {
            own["devices"][place]["access"] = json!({ "error": "open: no", "errno": errno });
        }
        // A port that is down is not used in any case.
        let known = [false, true, true];
        assert_eq!(sure(&own), (known, known, [true; 3], [true; 2]), "{errno}");
    }
    for place in [0, 1, 2] {
        own["devices"][place]["access"] = json!({ "error": "open: no", "errno": 13 });
    }
    // Programs that are asked about are elsewhere.
    assert_eq!(sure(&own), ([true; 3], [true; 3], [true; 3], [false; 2]));
    // Not if one may be opened that was not read.
    own["others"] = json!([{
        "name": "mlx5_9", "index": 9, "node_type": 1, "node_guid": "0x0002c90300000009",
        "sys_image_guid": "0x0002c90300000009", "fw_version": null, "protocol": "roce",
        "port_count": 1, "driver": null, "node": null, "node_is_unread": false,
    }]);
    let fleet = Fleet::new(&[own]);
    assert_eq!(fleet.json(&["choose", "mlx5_0"])["choose"][0]["nccl"]["is_sure"], false);
    let said = "mlx5_0: not opened here";
    for words in [&["choose", "mlx5_0"][..], &["env", "nccl", "mlx5_0"]] {
        let run = fleet.uverbs(words);
        assert!(run.stderr.contains(said), "{run:?}");
    }
}

/// Where it is not known whether sysfs has types, it is not known either what a program chooses by them.
#[test]
fn a_setting_that_leaves_types_to_the_program() {
    let later = &[
        (0, "fe80::11:22ff:fe33:4455", 1, Some("eth0")),
        (1, "fe80::11:22ff:fe33:4455", 2, Some("eth0")),
        (4, "::ffff:10.0.0.2", 1, Some("eth0")),
        (5, "::ffff:10.0.0.2", 2, Some("eth0")),
    ];
    let mut own = host("h", &[("mlx5_0", port(DUAL)), ("mlx5_1", port(later))]);
    let fits = |own: &Value| {
        let fleet = Fleet::new(std::slice::from_ref(own));
        let sure = fleet.json(&["env", "nccl"])["is_sure"].clone();
        (fleet.json(&["choose"])["fits_all"]["nccl"].clone(), sure)
    };
    let automatic = json!({ "NCCL_IB_GID_INDEX": "-1" });
    assert_eq!(fits(&own), (automatic, true.into()));
    for device in own["devices"].as_array_mut().unwrap() {
        device["ports"][0]["has_types"] = Value::Null;
    }
    assert_eq!(fits(&own), (Value::Null, false.into()));
    let fleet = Fleet::new(&[own]);
    let why =
        "uverbs: h: mlx5_0:1, h: mlx5_1:1: it is not known whether sysfs has the types of GIDs: ";
    assert_eq!(fleet.uverbs(&["choose"]).stderr.matches(why).count(), 1);
}

/// Nor are types said to be a doubt where they make no difference, whatever else is not known.
#[test]
fn types_that_change_nothing() {
    let mut own = host("h", &[("mlx5_0", port(&[(0, "::ffff:10.0.0.1", 2, Some("eth0"))]))]);
    own["devices"][0]["access"] = json!({ "error": "open: no", "errno": 24 });
    own["devices"][0]["ports"][0]["has_types"] = Value::Null;
    set(&mut own, "NCCL_NET_PLUGIN", "x", None);
    let fleet = Fleet::new(&[own]);
    assert_eq!(fleet.json(&["choose"])["choose"][0]["ucx"]["is_sure"], false);
    assert_eq!(fleet.json(&["env", "nccl"])["is_sure"], false);
    for command in [&["choose"][..], &["choose", "--like", "ucx-1.13"], &["env", "nccl"]] {
        let run = fleet.uverbs(command);
        assert!(!run.stderr.contains("types"), "{run:?}");
    }
}

/// What is right by a wish is as doubtful as the wish makes it.
#[test]
fn what_is_set_now_is_judged_by_the_wish() {
    let mut other = hidden(3, "2001:db8::3");
    other["netdev"] = json!({ "index": 2, "name": "eth0" });
    let rows = vec![proven(1, "fe80::5"), other, proven(5, "::ffff:10.0.0.1")];
    let mut own = pod(&["10.0.0.1", "fe80::5", "2001:db8::3"], &[("mlx5_0", rows)]);
    set(&mut own, "NCCL_IB_GID_INDEX", "5", None);
    let fleet = Fleet::new(&[own]);
    let answer = fleet.json(&["env", "nccl", "--family", "ipv6"]);
    assert_eq!(answer["doubts"][0]["index"], 1, "{answer}");
    let advice = answer["now"][0]["advice"].as_str().unwrap();
    assert!(advice.starts_with("index 1 may be right here"), "{advice}");
}

/// The JSON is as sure as the form that prints nothing where it is not.
#[test]
fn a_doubt_makes_variables_unsure() {
    let own = pod(&["fe80::5"], &[("mlx5_0", vec![proven(1, "fe80::5")])]);
    let fleet = Fleet::new(&[own]);
    let answer = fleet.json(&["env", "nccl"]);
    assert_eq!(answer["doubts"].as_array().map(Vec::len), Some(1), "{answer}");
    assert_eq!((answer["env"].is_object(), &answer["is_sure"]), (true, &json!(false)), "{answer}");
    let run = fleet.uverbs(&["env", "nccl", "--format", "slurm"]);
    assert_eq!((run.status, run.stdout.as_str()), (1, ""), "{run:?}");
}

/// One index is not right on a port of InfiniBand, which does not need it.
#[test]
fn infiniband_beside_roce() {
    let mut ib = port(&[(0, "fe80::2:c903:4:1", 0, None)]);
    ib["attributes"][0]["link_layer"] = 1.into();
    ib["rows"][0]["ifindex"] = Value::Null;
    let mut own = host("h", &[("mlx5_0", port(DUAL)), ("mlx5_1", ib)]);
    own["devices"][1]["protocol"] = "ib".into();
    let run = Fleet::new(&[own]).uverbs(&["choose"]);
    let said = "index 3 is right on those of Ethernet among all 2 ports; on the others it may do harm (UCX, NCCL before 2.22)\n";
    assert!(run.stderr.contains(said), "{run:?}");
}
