//! `choose` and `env`, on snapshots.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use serde_json::{Value, json};

use crate::run::{finish, program};
use crate::snapshots::{DUAL, Fleet, VLAN, host, port, set, with_third_port};
use crate::tree::{Tree, write};

/// A pod: the host's rows, which are not ours, and our own.
const POD: &[(u32, &str, u32, Option<&str>)] = &[
    (0, "fe80::b859:9fff:fe11:2233", 1, None),
    (1, "fe80::b859:9fff:fe11:2233", 2, None),
    (2, "::ffff:192.168.9.9", 1, None),
    (3, "::ffff:192.168.9.9", 2, None),
    (6, "::ffff:10.1.2.3", 1, Some("eth0")),
    (7, "::ffff:10.1.2.3", 2, Some("eth0")),
];

#[test]
fn a_line_for_each_port_and_what_others_take() {
    let fleet = Fleet::new(&[host("node1", &[("mlx5_0", port(DUAL)), ("mlx5_1", port(VLAN))])]);
    let run = fleet.uverbs(&["choose"]);
    assert_eq!(
        run.stdout,
        "\
HOST   DEVICE  PORT  INDEX  GID              TYPE  NETDEV  NCCL  UCX
node1  mlx5_0  1     3      ::ffff:10.0.0.1  v2    eth0    3     3
node1  mlx5_1  1     5      ::ffff:10.0.0.3  v2    eth0    3     3
"
    );
    assert_eq!(
        run.stderr,
        "\
uverbs: node1: mlx5_1:1: they differ: recommended 5, NCCL 3, UCX 3
uverbs: no single index is right on all 2 ports
uverbs: NCCL: right on all 2 ports: NCCL_IB_GID_INDEX=-1 NCCL_IB_ADDR_RANGE=10.0.0.0/30
uverbs: UCX: right on all 2 ports: UCX_IB_GID_INDEX=auto UCX_IB_ROCE_SUBNETS=10.0.0.0/30
"
    );
    assert_eq!(run.status, 0);
}

/// Of many hosts the last line says what was looked at. "All" are those that have a usable GID.
#[test]
fn the_last_lines() {
    let down = |name: &str| {
        let mut down = port(DUAL);
        down["attributes"][0]["state"] = json!(1);
        host(name, &[("mlx5_0", port(DUAL)), ("mlx5_1", down)])
    };
    let said = |hosts: &[Value], args: &[&str]| {
        let run = Fleet::new(hosts).uverbs(&[&["choose"], args].concat());
        (run.stderr, run.status)
    };
    let good = |name: &str| host(name, &[("mlx5_0", port(DUAL)), ("mlx5_1", port(DUAL))]);
    // A port that nobody named may be down.
    let (one, status) = said(&[down("node1")], &[]);
    assert!(one.contains("index 3 is right on the only active port of 2 (not on"), "{one}");
    assert_eq!((status, one.contains("looked at")), (0, false));
    let (one, status) = said(&[down("node1")], &["mlx5_1"]);
    assert!(one.contains("no port that is asked for has a usable GID") && status == 1, "{one}");
    let hosts = [good("node1"), down("node2"), good("node3")];
    let (many, status) = said(&hosts, &[]);
    assert!(many.contains("index 3 is right on all 5 active ports of 6 on 3 hosts (not"), "{many}");
    let last = "uverbs: looked at 3 hosts: 6 devices, 6 ports, 24 GIDs; 1 host differs\n";
    assert!(many.ends_with(last) && status == 0, "{many}");
    let (many, _) = said(&hosts, &["mlx5_0"]);
    assert!(many.contains("index 3 is right on all 3 named ports of 3 hosts\n"), "{many}");
    let last = "uverbs: looked at 3 hosts: 3 devices, 3 ports, 12 GIDs; no host differs\n";
    assert!(many.ends_with(last), "{many}");
    let (many, status) = said(&[good("node1"), good("node2"), json!({})], &[]);
    let last = "; no host that was read differs; 1 snapshot could not be read\n";
    assert!(many.ends_with(last) && status == 3, "{many}");
    // Up, and without a usable GID.
    let bare = host("node1", &[("mlx5_0", port(DUAL)), ("mlx5_1", port(&POD[..2]))]);
    let (one, _) = said(&[bare], &[]);
    assert!(one.contains("index 3 is right on the only usable port of 2 (not"), "{one}");
    // A port that is not meant may be usable.
    let vlan = |name: &str| host(name, &[("mlx5_0", port(DUAL)), ("mlx5_1", port(VLAN))]);
    let (one, status) = said(&[vlan("node1")], &["--netdev", "eth0.7", "--type", "v2"]);
    let right = " right on the only port of 2 that is usable with --type v2 --netdev eth0.7 (not on node1: mlx5_0:1)";
    assert_eq!((status, one.matches(right).count()), (0, 3), "{one}");
    let (many, _) = said(&[vlan("node1"), vlan("node2")], &["--netdev", "eth0.7"]);
    let right =
        "index 3 is right on the 2 ports of 4 on 2 hosts that are usable with --netdev eth0.7 (not";
    assert!(many.contains(right) && !many.contains("usable port"), "{many}");
    let named = ["--cidr", "192.168.7.0/24", "--family", "ipv4", "mlx5_0", "mlx5_1"];
    let (one, _) = said(&[vlan("node1")], &named);
    let right =
        "the only port of 2 named that is usable with --cidr 192.168.7.0/24 --family ipv4 (";
    assert!(one.contains(right), "{one}");
}

#[test]
fn every_row_and_its_reason() {
    let fleet = Fleet::new(&[host("node1", &[("mlx5_0", port(POD))])]);
    let explained = |args: &[&str]| {
        let run = fleet.uverbs(&[&["choose", "--explain", "--no-header"], args].concat());
        let reasons = run.stdout.lines().map(|line| line.rsplit("  ").next().unwrap().to_owned());
        reasons.collect::<Vec<_>>()
    };
    let foreign = "its interface is not in this network namespace";
    assert_eq!(
        explained(&[]),
        [foreign, foreign, foreign, foreign, "RoCE v1; index 7 is v2", "recommended"]
    );
    let nccl = explained(&["--like", "nccl"]);
    assert_eq!(
        nccl[3],
        "taken: the lowest index that fits; but its interface is not in this network namespace"
    );
    assert_eq!(nccl[5], "equally good, but index 3 is lower");
    let old = explained(&["--like", "nccl-2.20"]);
    assert!(old[0].starts_with("taken: index 0 is the default; but "), "{old:?}");
    let wished = explained(&["--ip", "10.9.9.9"]);
    assert_eq!(wished[5], "not the network that was asked for");
    assert_eq!(wished[6], "not used: no usable row is what was asked for");
}

/// What is usable and not asked for is not unusable; and an interface may have the name as an alternative one.
#[test]
fn a_wish_that_nothing_fulfils() {
    let fleet = Fleet::new(&[host("node1", &[("mlx5_0", port(DUAL))])]);
    let shown = "node1: --netdev eth9: no interface of this network namespace is shown by that name (an alternative \
                 name is not looked up)\n";
    let run = fleet.uverbs(&["choose", "--netdev", "eth9"]);
    assert!(run.status == 1 && run.stderr.contains(shown), "{run:?}");
    let unwanted = "node1: mlx5_0:1: not used: no usable row is what was asked for\n";
    assert!(run.stderr.contains(unwanted), "{run:?}");
    let none = "no port that was read has a usable GID that matches --netdev eth9\n";
    assert!(run.stderr.contains(none) && !run.stderr.contains("no row is usable"), "{run:?}");
    let run = fleet.uverbs(&["env", "nccl", "--netdev", "eth9"]);
    assert!((run.status, run.stdout.as_str()) == (1, "") && run.stderr.contains(shown), "{run:?}");
    let none = "no port that is asked for has a usable GID that matches --netdev eth9\n";
    assert!(run.stderr.contains(none) && !run.stderr.contains("no row is usable"), "{run:?}");
    // The interface is there.
    for options in [&["--netdev", "eth0", "--ip", "10.9.9.9"][..], &["--cidr", "10.9.0.0/16"]] {
        let run = fleet.uverbs(&[&["choose"], options].concat());
        assert!(run.status == 1 && run.stderr.contains(unwanted), "{run:?}");
        assert!(!run.stderr.contains("is shown by that name"), "{run:?}");
    }
    let run = fleet.uverbs(&["env", "ucx", "--family", "ipv6", "--cidr", "10.9.0.0/16"]);
    let none = "has a usable GID that matches --cidr 10.9.0.0/16 --family ipv6\n";
    assert!(run.stderr.contains(none), "{run:?}");
}

#[test]
fn wishes() {
    let fleet = Fleet::new(&[host("node1", &[("mlx5_1", port(VLAN))])]);
    let index =
        |args: &[&str]| fleet.json(&[&["choose"], args].concat())["choose"][0]["index"].clone();
    assert_eq!(index(&["--ip", "192.168.7.1"]), 3);
    assert_eq!(index(&["--cidr", "192.168.0.0/16"]), 3);
    assert_eq!(index(&["--netdev", "eth0.7"]), 3);
    assert_eq!(index(&["--type", "v1"]), 0);
    assert_eq!(index(&["--family", "ipv6"]), 1);
    assert_eq!(index(&["--family", "ipv6", "--cidr", "10.0.0.0/8"]), json!(null));
    assert_eq!(index(&["--like", "ucx-1.13"]), 3);
}

#[test]
fn the_status_tells_whether_a_port_that_was_named_can_be_used() {
    let mut down = port(DUAL);
    down["attributes"][0]["state"] = json!(1);
    let fleet = Fleet::new(&[host("node1", &[("mlx5_0", port(DUAL)), ("mlx5_1", down)])]);
    let status = |args: &[&str]| fleet.uverbs(&[&["choose"], args].concat()).status;
    assert_eq!(status(&[]), 0);
    assert_eq!(status(&["mlx5_0:1"]), 0);
    assert_eq!(status(&["mlx5_1:1"]), 1);
    assert_eq!(status(&["mlx5_1"]), 1);
    assert_eq!(status(&["mlx5_0:1", "mlx5_1:1"]), 1);
    assert_eq!(status(&["mlx5_0", "mlx5_1"]), 1);
    assert_eq!(status(&["mlx5_0", "mlx5_9"]), 1);
    assert_eq!(status(&["--ip", "10.9.9.9"]), 1);
    let run = fleet.uverbs(&["choose", "mlx5_1:1"]);
    assert!(
        run.stdout.contains("node1  mlx5_1  1     -      -    -     -       -     -"),
        "{run:?}"
    );
    let why = "node1: mlx5_1:1: not used: the port is down, not active\n";
    assert!(run.stderr.contains(why), "{run:?}");
    let run = fleet.uverbs(&["choose", "mlx5_0", "--like", "ucx-1.13", "--json"]);
    assert!(!(run.stdout + &run.stderr).contains("no usable GID: not used"));
}

#[test]
fn a_fleet_and_those_that_differ() {
    let hosts = ["node1", "node2", "node3"].map(|name| {
        let rows = if name == "node3" { VLAN } else { DUAL };
        host(name, &[("mlx5_0", port(rows))])
    });
    let fits = Fleet::new(&hosts).json(&["choose"])["fits_all"].clone();
    assert_eq!(
        fits,
        json!({
            "hosts": 3, "unread": [], "unusable": [], "unproven": [], "index": null,
            "nccl": { "NCCL_IB_GID_INDEX": "-1", "NCCL_IB_ADDR_RANGE": "10.0.0.0/30" },
            "ucx": { "UCX_IB_GID_INDEX": "auto", "UCX_IB_ROCE_SUBNETS": "10.0.0.0/30" },
            "differing": { "node3": ["mlx5_0:1 uses 5 (most use 3)"] },
        })
    );
    let fits = Fleet::new(&hosts[..2]).json(&["choose"])["fits_all"].clone();
    assert_eq!(fits["index"], 3);
    assert_eq!(fits["nccl"], json!({ "NCCL_IB_GID_INDEX": "3" }));
    assert_eq!(fits["differing"], json!({}));
    // Most may use what a few do not.
    let unread = ["node4", "node5", "node6"].map(|name| {
        let mut own = hosts[0].clone();
        own["host"] = name.into();
        own["devices"][0]["gids"] = json!({ "error": "mlx5_0: query GID table: no", "errno": 5 });
        own
    });
    let fits = Fleet::new(&[&hosts[..], &unread].concat()).json(&["choose"])["fits_all"].clone();
    let of = |index| json!([format!("mlx5_0:1 uses {index}")]);
    assert_eq!(fits["differing"], json!({ "node1": of(3), "node2": of(3), "node3": of(5) }));
}

/// A host with a port that is fine, and one whose table, or all of which, could not be read.
fn half_read(what: &str) -> Value {
    let mut one = host("node1", &[("mlx5_0", port(DUAL)), ("mlx5_1", port(DUAL))]);
    let problem = json!({ "error": "mlx5_1: query GID table: no", "errno": 5 });
    match what {
        "table" => one["devices"][1]["gids"] = problem,
        "port" => one["devices"][1]["ports"][0]["attributes"] = problem,
        // A device that could not be listed at all.
        _ => {
            one["devices"].as_array_mut().unwrap().pop();
            one["unlisted"] = json!([{ "device": "mlx5_1", "problem": problem }]);
        }
    }
    one
}

/// What is said of all is not said where something was not read.
#[test]
fn what_was_not_read_is_not_covered() {
    let good = host("node2", &[("mlx5_0", port(DUAL))]);
    for what in ["table", "port", "device"] {
        let fleet = Fleet::new(&[half_read(what), good.clone()]);
        let fits = fleet.json(&["choose"])["fits_all"].clone();
        let null = Value::Null;
        assert_eq!((&fits["index"], &fits["nccl"], &fits["ucx"]), (&null, &null, &null), "{fits}");
        let unread = match what {
            "table" => "node1: mlx5_1",
            "port" => "node1: mlx5_1:1",
            _ => "node1",
        };
        assert_eq!(fits["unread"], json!([unread]));
        assert_eq!(fits["read"]["index"], 3);
        let run = fleet.uverbs(&["choose"]);
        assert!(
            run.stderr
                .contains("index 3 is right on all 2 ports of 2 hosts, among what was read\n"),
            "{run:?}"
        );
        assert!(run.stderr.contains(&format!("what is right on {unread}\n")), "{run:?}");
        for program in ["nccl", "ucx", "nvshmem"] {
            let run = fleet.uverbs(&["env", program]);
            assert_eq!((run.stdout.as_str(), run.status), ("", 3), "{run:?}");
            let said = format!("as not everything was read: {unread}");
            assert!(run.stderr.contains(&said), "{run:?}");
            let answer = fleet.json(&["env", program]);
            assert_eq!((&answer["env"], &answer["way"]), (&null, &null));
        }
        // Everything is known about the named ports, and a list excludes the others.
        let run = fleet.uverbs(&["env", "nccl", "mlx5_0"]);
        assert_eq!(
            run.stdout, "export NCCL_IB_HCA='=mlx5_0:1'\nexport NCCL_IB_GID_INDEX=3\n",
            "{run:?}"
        );
        let run = fleet.uverbs(&["env", "ucx", "mlx5_0:1"]);
        assert_eq!(
            run.stdout, "export UCX_NET_DEVICES=mlx5_0:1\nexport UCX_IB_GID_INDEX=3\n",
            "{run:?}"
        );
        assert_eq!(run.status, 0, "{run:?}");
        let run = Fleet::new(&[half_read(what)]).uverbs(&["env", "nccl", "mlx5_1"]);
        assert_eq!((run.stdout.as_str(), run.status), ("", 3), "{run:?}");
    }
}

/// A device that is named and could not be listed, or is not there, has no part in what fits all.
#[test]
fn a_named_device_that_was_not_read_is_not_covered() {
    let good = host("node2", &[("mlx5_0", port(DUAL)), ("mlx5_1", port(DUAL))]);
    let lacking = host("node1", &[("mlx5_0", port(DUAL))]);
    let lost = json!(["node1: mlx5_1"]);
    for (other, is_unread) in [(half_read("device"), true), (lacking, false)] {
        let fleet = Fleet::new(&[other, good.clone()]);
        let args = ["choose", "mlx5_0", "mlx5_1"];
        let answer = fleet.json(&args);
        let fits = &answer["fits_all"];
        // What is not there was read.
        let none = json!([]);
        let (index, unread, unusable) =
            if is_unread { (Value::Null, &lost, &none) } else { (json!(3), &none, &lost) };
        assert_eq!(fits["index"], index, "{fits}");
        assert_eq!((&fits["unread"], &fits["unusable"]), (unread, unusable), "{fits}");
        assert_eq!(answer["problems"].as_array().unwrap().len(), 1, "{answer}");
        let run = fleet.uverbs(&args);
        let said = if is_unread { ", among what was read\n" } else { " (not on node1: mlx5_1)\n" };
        let said = format!("index 3 is right on all 3 named ports of 2 hosts{said}");
        assert!(run.stderr.contains(&said), "{run:?}");
        assert_eq!(run.status, if is_unread { 3 } else { 1 }, "{run:?}");
    }
    // A host of whose devices none could be listed is not one without a port.
    let mut none = half_read("device");
    none["devices"] = json!([]);
    let fits = Fleet::new(&[none, good]).json(&["choose"])["fits_all"].clone();
    assert_eq!((&fits["unread"], &fits["unusable"]), (&json!(["node1"]), &json!([])), "{fits}");
}

/// Where the list of devices could not be read, no name is one of nothing.
#[test]
fn a_name_on_a_host_whose_list_was_not_read() {
    let mut own = host("h1", &[]);
    own["problems"] = json!([{ "error": "host: list devices: ENOMEM", "errno": 12 }]);
    let fleet = Fleet::new(&[own, host("h2", &[("mlx5_0", port(DUAL))])]);
    for command in
        [&["gids"][..], &["devices"], &["ports"], &["choose"], &["env", "nccl"], &["check"]]
    {
        let run = fleet.uverbs(&[command, &["mlx5_0"]].concat());
        assert!(
            run.stderr.contains("h1: host: list devices: ENOMEM\n") || run.status == 2,
            "{run:?}"
        );
        assert!(!(run.stderr.clone() + &run.stdout).contains("no such device"), "{run:?}");
        assert!(run.status == if command == ["check"] { 2 } else { 3 }, "{run:?}");
    }
    let fits = fleet.json(&["choose", "mlx5_0"])["fits_all"].clone();
    assert_eq!((&fits["unread"], &fits["unusable"]), (&json!(["h1"]), &json!([])), "{fits}");
    // Names that are nowhere else are said of the other host only.
    let run = fleet.uverbs(&["choose", "mlx5_9"]);
    assert_eq!(run.stderr.matches("no such device").count(), 1, "{run:?}");
}

#[test]
fn no_host_and_no_usable_port() {
    let fleet = Fleet::new(&[json!({}), json!([])]);
    let fits = fleet.json(&["choose"])["fits_all"].clone();
    let files = [0, 1].map(|number| fleet.file(number).display().to_string());
    assert_eq!(
        fits,
        json!({
            "hosts": 0, "unread": files, "unusable": [], "unproven": [], "index": null, "nccl": null,
            "ucx": null, "read": { "index": null, "nccl": null, "ucx": null }, "differing": {},
        })
    );
    let said = fleet.uverbs(&["choose"]).stderr;
    let unknown = format!("what is right on {}\n", files.join(", "));
    assert!(!said.contains("index") && said.contains(&unknown), "{said}");
    for args in [&["env", "nccl"] as &[&str], &["env", "nccl", "mlx5_0"], &["env", "ucx"]] {
        let run = fleet.uverbs(args);
        assert_eq!((run.stdout.as_str(), run.status), ("", 3), "{run:?}");
        assert!(!run.stderr.contains("no port"), "{run:?}");
    }
    let run = fleet.uverbs(&["check"]);
    let said = "uverbs: nothing was checked; 2 snapshots could not be read\n";
    assert!(run.stderr.ends_with(said) && run.status == 3, "{run:?}");

    let fleet = Fleet::new(&[host("node1", &[("a", port(&POD[..2])), ("b", port(&[]))])]);
    let answer = fleet.json(&["choose"]);
    assert_eq!(answer["fits_all"]["ucx"], Value::Null);
    assert_eq!(answer["fits_all"]["nccl"], Value::Null);
    assert_eq!(answer["fits_all"]["unusable"], json!(["node1: a:1", "node1: b:1"]));
    let said = fleet.uverbs(&["choose"]).stderr;
    assert!(!said.contains("right on") && !said.contains("UCX_NET_DEVICES"), "{said}");

    // Ports that no setting is for are named.
    let mut down = port(DUAL);
    down["attributes"][0]["state"] = json!(1);
    let fleet = Fleet::new(&[host("node1", &[("a", port(DUAL)), ("b", down)]), host("node2", &[])]);
    let said = fleet.uverbs(&["choose"]).stderr;
    let all = "index 3 is right on the only active port of 2 on 2 hosts (not on node2, node1: b:1)";
    assert!(said.contains(all), "{said}");
    let said = fleet.uverbs(&["choose", "a"]).stderr;
    assert!(said.contains("right on the named port of 2 hosts"), "{said}");
}

/// If a named port cannot be read, a shell gets nothing.
#[test]
fn nothing_is_exported_for_a_part() {
    let mut down = port(DUAL);
    down["attributes"][0]["state"] = json!(1);
    let fleet = Fleet::new(&[host("node1", &[("a", port(DUAL)), ("b", down)])]);
    for args in
        [&["env", "nccl", "a", "c"] as &[&str], &["env", "nccl", "a", "b:1"], &["env", "ucx", "b"]]
    {
        let run = fleet.uverbs(args);
        assert_eq!((run.stdout.as_str(), run.status), ("", 1), "{run:?}");
    }
    let run = fleet.uverbs(&["env", "nccl"]);
    assert_eq!((run.stdout.as_str(), run.status), ("export NCCL_IB_GID_INDEX=3\n", 0), "{run:?}");
    assert!(run.stderr.contains("node1: b:1: left out: the port is down, not active"), "{run:?}");
}

/// A host with a port that most do not have differs, too.
#[test]
fn a_port_that_most_do_not_have() {
    let one = |name| host(name, &[("mlx5_0", port(DUAL))]);
    let both = host("x1", &[("mlx5_0", port(DUAL)), ("mlx5_1", port(DUAL))]);
    let fleet = Fleet::new(&[both.clone(), one("x2"), one("x3")]);
    let said = json!({ "x1": ["has mlx5_1:1 (most do not)"] });
    assert_eq!(fleet.json(&["choose"])["fits_all"]["differing"], said);
    let run = fleet.uverbs(&["choose"]);
    assert!(run.stderr.ends_with("; 1 host differs\n"), "{run:?}");
    // Those of which not all was read may have it.
    let others = ["x2", "x3"].map(|name| {
        let mut own = half_read("device");
        own["host"] = name.into();
        own
    });
    let [second, third] = others;
    let fleet = Fleet::new(&[both, second, third]);
    assert_eq!(fleet.json(&["choose"])["fits_all"]["differing"], json!({}));
}

/// Two that differ: neither is what most use.
#[test]
fn there_is_no_most_of_two() {
    let fleet = Fleet::new(&[
        host("node1", &[("mlx5_0", port(DUAL))]),
        host("node2", &[("mlx5_0", port(VLAN))]),
    ]);
    assert_eq!(
        fleet.json(&["choose"])["fits_all"]["differing"],
        json!({ "node1": ["mlx5_0:1 uses 3"], "node2": ["mlx5_0:1 uses 5"] })
    );
}

#[test]
fn variables_for_every_program_and_in_every_form() {
    let fleet = Fleet::new(&[host("node1", &[("mlx5_0", port(DUAL)), ("mlx5_1", port(DUAL))])]);
    let text = |args: &[&str]| {
        let run = fleet.uverbs(&[&["env"], args].concat());
        assert_eq!(run.status, 0, "{run:?}");
        run.stdout
    };
    assert_eq!(text(&["nccl"]), "export NCCL_IB_GID_INDEX=3\n");
    assert_eq!(text(&["ucx"]), "export UCX_IB_GID_INDEX=3\n");
    assert_eq!(text(&["nvshmem"]), "export NVSHMEM_IB_GID_INDEX=3\n");
    assert_eq!(
        text(&["nccl", "--format", "kubernetes"]),
        "- name: NCCL_IB_GID_INDEX\n  value: \"3\"\n"
    );
    let json: Value = serde_json::from_str(&text(&["nccl", "--json"])).unwrap();
    assert_eq!(json["env"], json!({ "NCCL_IB_GID_INDEX": "3" }));
    assert_eq!(json["way"], "index");
    // A port that is not wanted is left out by the list of devices.
    assert_eq!(
        text(&["nccl", "mlx5_1:1"]),
        "export NCCL_IB_HCA='=mlx5_1:1'\nexport NCCL_IB_GID_INDEX=3\n"
    );
    assert_eq!(
        text(&["ucx", "mlx5_1"]),
        "export UCX_NET_DEVICES=mlx5_1:1\nexport UCX_IB_GID_INDEX=3\n"
    );
}

/// What Slurm's `TaskProlog` prints is taken to the letter, and a job's own choice stays.
#[test]
fn variables_for_slurm() {
    let fleet = Fleet::new(&[host("node1", &[("mlx5_0", port(DUAL)), ("mlx5_1", port(DUAL))])]);
    let run = fleet.uverbs(&["env", "nccl", "mlx5_1:1", "--format", "slurm"]);
    let lines = "export NCCL_IB_HCA==mlx5_1:1\nexport NCCL_IB_GID_INDEX=3\n";
    assert_eq!((run.stdout.as_str(), run.status), (lines, 0), "{run:?}");
    for (program, name, value, is_left) in [
        ("nccl", "NCCL_IB_GID_INDEX", "3", true),
        ("nccl", "NCCL_IB_HCA", "mlx5_0", true),
        ("nccl", "NCCL_IB_DISABLE", "0", false),
        ("nccl", "UCX_IB_GID_INDEX", "1", false),
        ("nccl", "NCCL_ENV_PLUGIN", "none", false),
        ("ucx", "UCX_NET_DEVICES", "mlx5_0:1", true),
        ("ucx", "UCX_TLS", "rc,self", false),
    ] {
        let mut command = fleet.command(&["env", program, "--format", "slurm"]);
        let run = finish(command.env(name, value));
        assert_eq!((run.stdout.is_empty(), run.status), (is_left, 0), "{name}: {run:?}");
        assert_eq!(run.stderr.contains(&format!("{name} is set already")), is_left, "{run:?}");
    }
    // A list that is no UTF-8 is set, too.
    let mut command = fleet.command(&["env", "ucx", "--format", "slurm"]);
    let run = finish(command.env("UCX_TLS", OsStr::from_bytes(b"tcp\xff")));
    assert_eq!((run.stdout.as_str(), run.status), ("", 1), "{run:?}");
    // Nor is a transport switched on again that is off, or another one given variables of NCCL's own.
    for (program, name, value) in [
        ("NCCL", "NCCL_IB_DISABLE", "1"),
        ("NCCL", "NCCL_NET", "Socket"),
        ("NCCL", "NCCL_ENV_PLUGIN", "x"),
        ("UCX", "UCX_TLS", "tcp"),
    ] {
        let said = format!("{name} is set: {program} may use other ports or GIDs, or no RDMA\n");
        let own = program.to_ascii_lowercase();
        let slurm = ["env", &own, "--format", "slurm"];
        let run = finish(fleet.command(&slurm).env(name, value));
        assert_eq!((run.stdout.as_str(), run.status), ("", 1), "{run:?}");
        assert!(run.stderr.contains(&said), "{run:?}");
        let mut one = host("node1", &[("mlx5_0", port(DUAL))]);
        set(&mut one, name, value, Some("/etc/nccl.conf"));
        let fleet = Fleet::new(&[one]);
        let run = fleet.uverbs(&slurm);
        assert_eq!((run.stdout.as_str(), run.status), ("", 1), "{run:?}");
        let run = fleet.uverbs(&["env", &own]);
        assert_eq!(run.stdout, format!("export {program}_IB_GID_INDEX=3\n"), "{run:?}");
        assert!(run.stderr.contains(&said), "{run:?}");
        assert_eq!(fleet.json(&["env", &own])["is_sure"], false);
    }
    // As in a shell, nothing is printed if nothing is right.
    let shared = Fleet::new(&[host("pod", &[("a", port(&POD[4..])), ("b", port(DUAL))])]);
    let run = shared.uverbs(&["env", "ucx", "--format", "slurm"]);
    assert_eq!((run.stdout.as_str(), run.status), ("", 1), "{run:?}");
}

#[test]
fn where_no_single_index_is_right() {
    let fleet = Fleet::new(&[host("node1", &[("mlx5_0", port(DUAL)), ("mlx5_1", port(VLAN))])]);
    let run = fleet.uverbs(&["env", "nccl"]);
    assert_eq!(run.stdout, "export NCCL_IB_GID_INDEX=-1\nexport NCCL_IB_ADDR_RANGE=10.0.0.0/30\n");
    assert!(run.stderr.contains("no single NCCL_IB_GID_INDEX is right"), "{run:?}");
    assert!(run.stderr.contains("3 on node1: mlx5_0:1; 5 on node1: mlx5_1:1"), "{run:?}");
    // UCX leaves out a port whose slot 0 is empty, unless an index is set.
    let fleet = Fleet::new(&[host("pod", &[("a", port(&POD[4..])), ("b", port(DUAL))])]);
    let run = fleet.uverbs(&["env", "ucx"]);
    assert_eq!((run.stdout.as_str(), run.status), ("", 1), "{run:?}");
    let said = "no setting that uverbs tries makes UCX use the right GID";
    assert!(run.stderr.contains(said), "{run:?}");
    let fleet = Fleet::new(&[host("pod", &[("a", port(&POD[..2]))])]);
    let run = fleet.uverbs(&["env", "nccl"]);
    assert!(run.stderr.contains("no port that is asked for has a usable GID"), "{run:?}");
    assert_eq!(run.status, 1);
}

#[test]
fn what_is_set_now_is_compared() {
    let mut one = host("node1", &[("mlx5_0", port(DUAL)), ("mlx5_1", port(VLAN))]);
    set(&mut one, "NCCL_IB_GID_INDEX", "2", None);
    set(&mut one, "NCCL_IB_GID_INDEX", "3", Some("/etc/nccl.conf"));
    let run = Fleet::new(&[one]).uverbs(&["env", "nccl"]);
    assert!(run.stderr.contains("NCCL_IB_GID_INDEX=2 is of type roce_v1 on mlx5_0:1"), "{run:?}");
    assert!(run.stderr.contains("NCCL_IB_GID_INDEX=2 is empty on mlx5_1:1"), "{run:?}");
    // What is set and would have a say is put back.
    let mut one = host("node1", &[("mlx5_0", port(DUAL)), ("mlx5_1", port(DUAL))]);
    set(&mut one, "UCX_IB_ROCE_SUBNETS", "10.0.0.0/8", None);
    let run = Fleet::new(&[one]).uverbs(&["env", "ucx"]);
    assert_eq!(run.stdout, "export UCX_IB_GID_INDEX=3\nexport UCX_IB_ROCE_SUBNETS=all\n");
    let mut two = host("node2", &[("mlx5_0", port(VLAN))]);
    set(&mut two, "NCCL_IB_GID_INDEX", "4", Some("/etc/nccl.conf"));
    let now = Fleet::new(&[two]).json(&["env", "nccl"])["now"][0].clone();
    assert_eq!(now["name"], "pinned-index-empty");
    assert_eq!(now["seen"], "NCCL_IB_GID_INDEX=4 (/etc/nccl.conf) is empty on mlx5_0:1");
}

/// Of a sysfs tree no interfaces are known, which is said.
#[test]
fn a_tree() {
    let tree = Tree::new();
    tree.with_roce();
    tree.with_infiniband();
    let answer = tree.uverbs(&["choose", "--json"]);
    let answer: Value = serde_json::from_str(&answer.stdout).unwrap();
    let rows = answer["choose"].as_array().unwrap();
    let index = |place: usize| rows[place]["index"].clone();
    // mlx4_0:1, its second port that is down, mlx5_0:1.
    assert_eq!((index(0), index(1), index(2)), (json!(0), json!(null), json!(3)));
    assert_eq!(
        rows[2]["caveats"],
        json!(["it is not known whether its interface is in this network namespace"])
    );
    assert_eq!(rows[2]["netdev"], json!(null));
    // Nobody knows which variables are set there.
    assert_eq!(
        (&rows[2]["nccl"]["index"], &rows[2]["nccl"]["is_sure"]),
        (&json!(3), &json!(false))
    );
    assert_eq!(rows[0]["ucx"]["is_sure"], json!(false));
    let said =
        "which variables are set there is not known: what programs do may be something else\n";
    let snapshot: Value = serde_json::from_str(&tree.answer(&["snapshot"])).unwrap();
    let fleet = Fleet::new(&[snapshot]);
    for program in ["nccl", "ucx"] {
        for run in [
            tree.uverbs(&["env", program, "mlx4_0:1"]),
            fleet.uverbs(&["env", program, "mlx4_0:1"]),
        ] {
            assert!(run.stderr.contains(said), "{run:?}");
        }
        let answer = fleet.json(&["env", program, "mlx4_0:1"]);
        assert_eq!(answer["is_sure"], json!(false), "{answer}");
    }
    let named = tree.uverbs(&["choose", "--netdev", "eth0.7", "--no-header", "mlx5_0"]);
    assert!(named.stdout.starts_with("mlx5_0  1  10"), "{named:?}");
}

/// NCCL has room for 32 ports of a host.
#[test]
fn more_ports_than_nccl_has_room_for() {
    let names: Vec<String> = (0..40).map(|number| format!("mlx5_{number}")).collect();
    let devices: Vec<(&str, Value)> = names.iter().map(|name| (&**name, port(DUAL))).collect();
    let fleet = Fleet::new(&[host("node1", &devices)]);
    let answer = fleet.json(&["choose"]);
    let rows = answer["choose"].as_array().unwrap();
    assert_eq!(rows[31]["nccl"]["index"], 3);
    assert_eq!(
        rows[32]["nccl"],
        json!({
            "index": null,
            "outcome": "not used: 32 other ports are already used, and it has room for no more",
            "is_sure": true,
        })
    );
    assert_eq!((&rows[32]["ucx"]["index"], &rows[32]["differs"]), (&json!(3), &json!(true)));
    assert_eq!(
        (&answer["fits_all"]["nccl"], &answer["fits_all"]["index"]),
        (&json!(null), &json!(3))
    );
    let check = fleet.json(&["check"]);
    let seen = check["check"].as_array().unwrap().iter().map(|own| own["seen"].as_str().unwrap());
    assert_eq!(
        seen.collect::<Vec<_>>(),
        [
            "NCCL has room for 32 ports, and leaves out mlx5_32:1 and 7 more",
            "UCX may have room for 25 ports only, and there may be more: what it does is not known",
        ]
    );
    let run = fleet.uverbs(&["env", "nccl"]);
    let said =
        "uverbs: NCCL has room for 32 ports of a host, and there are 40: name those to use\n";
    assert!(run.stdout.is_empty() && run.status == 1 && run.stderr.starts_with(said), "{run:?}");
    let run = fleet.uverbs(&["env", "nccl", "mlx5_39", "mlx5_38"]);
    assert_eq!(
        run.stdout,
        "export NCCL_IB_HCA='=mlx5_38:1,mlx5_39:1'\nexport NCCL_IB_GID_INDEX=3\n"
    );
    // Also of one that is named: the others take its room, unless a list leaves them out.
    let last = fleet.json(&["choose", "mlx5_39"]);
    assert_eq!(last["choose"].as_array().unwrap().len(), 1);
    assert_eq!(last["choose"][0]["nccl"], rows[39]["nccl"]);
    assert_eq!(
        last["fits_all"]["nccl"],
        json!({ "NCCL_IB_HCA": "=mlx5_39:1", "NCCL_IB_GID_INDEX": "3" })
    );
    let tree = Tree::new();
    for number in 0..33 {
        let device = tree.device(&format!("mlx5_{number}"), "1: CA", number);
        let gid = "0000:0000:0000:0000:0000:ffff:0a00:0001";
        device.port(1, "Ethernet", "100 Gb/sec (4X EDR)", 2).gid(0, gid, "RoCE v2", Some("eth0"));
    }
    // Whatever else is read.
    let words = ["metrics", "mlx5_39", "mlx5_32", "--full"];
    for words in [&words[..3], &words] {
        let run = fleet.uverbs(words);
        let has = |line: &str| assert!(run.stdout.contains(line), "{words:?} {line}: {run:?}");
        has("{host=\"node1\",severity=\"warning\",name=\"too-many-ports\"} 1\n");
        has("uverbs_port_choice_differs{host=\"node1\",device=\"mlx5_39\",port=\"1\"} 1\n");
        let run = tree.uverbs(&[&words[..1], &words[2..]].concat());
        assert!(run.stdout.contains("name=\"too-many-ports\"} 1\n"), "{words:?}: {run:?}");
    }
    // Copies of files do not show in which order the kernel has the devices.
    let run = tree.uverbs(&["choose", "mlx5_32", "--json"]);
    let answer: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(answer["choose"][0]["nccl"]["index"], json!(null), "{answer}");
    assert!(run.stderr.contains("in which order it takes the 33 is not known"), "{run:?}");
    // If one is down, there is room for all.
    write(tree.path().join("class/infiniband/mlx5_7/ports/1/state"), "1: DOWN");
    let run = tree.uverbs(&["choose", "mlx5_32"]);
    assert!(!run.stderr.contains("NCCL has room for"), "{run:?}");
    // UCX has room.
    assert_eq!(fleet.uverbs(&["env", "ucx"]).stdout, "export UCX_IB_GID_INDEX=3\n");
}

/// libibverbs leaves out devices without a node, so that these take no room from others.
#[test]
fn devices_without_a_node_take_no_room() {
    let names: Vec<String> = (0..35).map(|number| format!("mlx5_{number}")).collect();
    let devices: Vec<(&str, Value)> = names.iter().map(|name| (&**name, port(DUAL))).collect();
    let whole = host("node1", &devices);
    let without = |count: usize, change: &dyn Fn(&mut Value)| {
        let mut own = whole.clone();
        own["devices"].as_array_mut().unwrap().iter_mut().take(count).for_each(change);
        let fleet = Fleet::new(&[own]);
        let rows = fleet.json(&["choose"])["choose"].as_array().unwrap().clone();
        let of = |place: usize| {
            let row = &rows[place];
            (row["is_found"] == true, row["nccl"]["index"] == 3, row["nccl"]["is_sure"] == true)
        };
        let said = [&["choose"][..], &["env", "nccl"]].map(|args| fleet.uverbs(args));
        ([0, 1, 33, 34].map(of), said)
    };
    let missing = |own: &mut Value| {
        (own["node_is_missing"], own["access"]) = (json!(true), Value::Null);
    };
    let refused = |own: &mut Value| own["access"] = json!({ "error": "open: no", "errno": 2 });
    let none = |own: &mut Value| own["node"] = Value::Null;
    let (found, left) = ((true, true, true), (true, false, true));
    // Whether it would have room is not known.
    let lost = (false, true, false);
    let said = "mlx5_0, mlx5_1, mlx5_2: no node here, so programs here do not find the device\n";
    for change in [&missing as &dyn Fn(&mut Value), &refused, &none] {
        let (rows, [choose, env]) = without(3, change);
        assert_eq!(rows, [lost, lost, found, found]);
        assert!(choose.stderr.contains(said) && env.stderr.contains(said), "{choose:?} {env:?}");
        assert_eq!((env.stdout.as_str(), env.status), ("export NCCL_IB_GID_INDEX=3\n", 0));
        assert_eq!(without(2, change).0, [lost, lost, found, left], "33 are found");
        // Programs get their nodes elsewhere.
        let (rows, [choose, env]) = without(35, change);
        assert_eq!(
            rows,
            [(false, true, true), (false, true, true), (false, false, true), (false, false, true)]
        );
        assert!(
            choose.stderr.contains("mlx5_2 and 32 more: no node here") && env.stdout.is_empty()
        );
    }
    // Nor does it matter whether they could be read.
    let mut own = whole.clone();
    for device in own["devices"].as_array_mut().unwrap().iter_mut().take(3) {
        missing(device);
        device["gids"] = json!({ "error": "query GID table: EIO", "errno": 5 });
    }
    let choose = Fleet::new(&[own]).uverbs(&["choose"]);
    assert!(!choose.stderr.contains("NCCL has room for"), "{choose:?}");
    // It is there, and this user may not open it: whether NCCL may is not known.
    for errno in [1, 13, 19] {
        let refuse =
            move |own: &mut Value| own["access"] = json!({ "error": "open: no", "errno": errno });
        let (rows, [choose, _]) = without(3, &refuse);
        assert_eq!(
            rows.map(|own| (own.0, own.1)),
            [(true, true), (true, true), (true, false), (true, false)]
        );
        assert!(rows.iter().all(|own| !own.2), "{rows:?}");
        let said = "NCCL has room for 32 ports, and 3 of the 35 are of devices that could not be opened: what it does may be something else\n";
        assert!(choose.stderr.contains(said) && !choose.stderr.contains("no node"), "{choose:?}");
        let mut own = whole.clone();
        refuse(&mut own["devices"][0]);
        let check = Fleet::new(&[own]).uverbs(&["check"]);
        assert!(check.stdout.contains("3 more; it is not known which it takes"), "{check:?}");
        // Ports that are down take no room, whoever may open their devices.
        let mut own = whole.clone();
        let devices = own["devices"].as_array_mut().unwrap();
        for device in devices.iter_mut().take(5) {
            device["ports"][0]["attributes"][0]["state"] = json!(1);
        }
        refuse(&mut devices[0]);
        let choose = Fleet::new(&[own]).uverbs(&["choose"]);
        assert!(!choose.stderr.contains("NCCL has room for"), "{choose:?}");
        // Nobody may, so that the programs are elsewhere.
        assert_eq!(without(35, &refuse).0, [found, found, left, left]);
    }
}

/// Some releases of NCCL before 2.21 have room for 16 ports, of those that its list leaves.
#[test]
fn ports_for_which_an_old_nccl_may_have_no_room() {
    let names: Vec<String> = (0..17).map(|number| format!("mlx5_{number}")).collect();
    let devices: Vec<(&str, Value)> = names.iter().map(|name| (&**name, port(DUAL))).collect();
    for (count, like, is_sure) in
        [(16, "nccl-2.18", true), (17, "nccl-2.18", false), (17, "nccl-2.21", true)]
    {
        let mut own = host("node1", &devices[..count]);
        let is_so = |own: &Value| {
            let answer = Fleet::new(std::slice::from_ref(own)).json(&["choose", "--like", like]);
            answer["choose"][1]["is_sure"] == true
        };
        assert_eq!(is_so(&own), is_sure, "{like} {count}");
        set(&mut own, "NCCL_IB_HCA", "=mlx5_1", None);
        assert!(is_so(&own), "{like} {count}");
    }
}

/// UCX does not start if it finds more than it has room for, or with a list of more than 64 devices (up to 1.20).
#[test]
fn ports_for_which_ucx_may_have_no_room() {
    let names: Vec<String> = (0..70).map(|number| format!("mlx5_{number}")).collect();
    let devices: Vec<(&str, Value)> = names.iter().map(|name| (&**name, port(DUAL))).collect();
    let whole = |count: usize| host("node1", &devices[..count]);
    let sure = |own: &Value| {
        let fleet = Fleet::new(std::slice::from_ref(own));
        let (env, row) = (fleet.json(&["env", "ucx"]), fleet.json(&["choose"]));
        assert_eq!(env["env"]["UCX_IB_GID_INDEX"], "3", "{env}");
        (env["is_sure"] == true, row["choose"][0]["ucx"]["is_sure"] == true)
    };
    assert_eq!((sure(&whole(25)), sure(&whole(26))), ((true, true), (false, false)));
    let fleet = Fleet::new(&[whole(26)]);
    let said =
        "not known to be right: UCX may have no room for all ports of a host: name those to use\n";
    assert!(fleet.uverbs(&["env", "ucx"]).stderr.contains(said));
    assert_eq!(fleet.uverbs(&["env", "ucx", "--format", "slurm"]).stdout, "");
    let said = "UCX may have room for 25 ports only: what it does may be something else\n";
    assert!(fleet.uverbs(&["choose"]).stderr.contains(said));
    let said = "UCX: right on all 26 ports, as far as is known: UCX_IB_GID_INDEX=3\n";
    assert!(fleet.uverbs(&["choose"]).stderr.contains(said));
    // What a list leaves has room.
    let listed = fleet.json(&["env", "ucx", "mlx5_0", "mlx5_1"]);
    assert_eq!(listed["env"]["UCX_NET_DEVICES"], "mlx5_0:1,mlx5_1:1");
    assert_eq!(listed["is_sure"], true);
    let mut own = whole(26);
    set(&mut own, "UCX_NET_DEVICES", "mlx5_0:1", None);
    let fleet = Fleet::new(&[own]);
    assert_eq!(fleet.json(&["choose"])["choose"][0]["ucx"]["is_sure"], true);
    assert!(!fleet.uverbs(&["choose"]).stderr.contains("UCX may have room"));
    // Those that could not be read, or only be listed, may.
    let mut own = whole(26);
    own["devices"][25]["gids"] = json!({ "error": "mlx5_25: query GID table: EIO", "errno": 5 });
    let row = |own: &Value, args: &[&str]| {
        let rows = Fleet::new(std::slice::from_ref(own)).json(&[&["choose"], args].concat());
        rows["choose"][0].clone()
    };
    assert_eq!(row(&own, &[])["ucx"]["is_sure"], false);
    let mut own = whole(25);
    let problem = json!({ "error": "m99: read: no", "errno": 71 });
    own["unlisted"] = json!([{ "device": "m99", "problem": problem }]);
    assert_eq!(row(&own, &[])["ucx"]["is_sure"], false);
    own["devices"].as_array_mut().unwrap().truncate(23);
    assert_eq!(row(&own, &[])["ucx"]["is_sure"], true);
    own["list_failure"] = json!({ "error": "host: list: no", "errno": 5 });
    own["problems"] = json!([own["list_failure"]]);
    for (count, is_sure) in [(25, true), (26, false)] {
        let list: Vec<String> = names[..count].iter().map(|own| format!("{own}:1")).collect();
        own["settings"] = json!([]);
        set(&mut own, "UCX_NET_DEVICES", &list.join(","), None);
        assert_eq!(row(&own, &[])["ucx"]["is_sure"], is_sure, "{count} that are named");
    }
    // Where no device has a node, one that was not asked for says nothing of the others.
    let mut own = host("node1", &devices[..2]);
    let bare = own["devices"].as_array_mut().unwrap().pop().unwrap();
    (own["devices"][0]["node_is_missing"], own["devices"][0]["access"]) =
        (json!(true), Value::Null);
    let mut other = json!({ "index": 99, "port_count": 1, "node_is_unread": false });
    for key in [
        "name",
        "node_type",
        "node_guid",
        "sys_image_guid",
        "fw_version",
        "protocol",
        "driver",
        "node",
    ] {
        other[key] = bare[key].clone();
    }
    own["others"] = json!([other]);
    assert_eq!(row(&own, &["mlx5_0"])["is_found"], false);
    let run = Fleet::new(&[own]).uverbs(&["env", "ucx", "mlx5_0"]);
    assert_eq!((run.stdout.is_empty(), run.status), (false, 0), "{run:?}");
    // Before 1.11 it has half the room.
    for (count, like, is_sure) in
        [(12, "ucx-1.10", true), (13, "ucx-1.10", false), (13, "ucx-1.16", true)]
    {
        assert_eq!(row(&whole(count), &["--like", like])["is_sure"], is_sure, "{like} {count}");
    }
    // Ports that are down take none.
    let mut own = whole(26);
    own["devices"][25]["ports"][0]["attributes"][0]["state"] = json!(1);
    assert_eq!(sure(&own), (true, true));
    // A list that is too long.
    let fleet = Fleet::new(&[whole(70)]);
    let list = |count: usize| {
        let args = [vec!["env", "ucx"], names[..count].iter().map(String::as_str).collect()];
        let run = fleet.uverbs(&args.concat());
        (run.stdout.matches(":1").count(), run.status)
    };
    assert_eq!((list(64), list(65)), ((64, 0), (0, 1)));
    for (count, old) in [(64, json!(3)), (65, json!(null))] {
        let mut own = whole(70);
        let list: Vec<String> = names[..count].iter().map(|own| format!("{own}:1")).collect();
        set(&mut own, "UCX_NET_DEVICES", &list.join(","), None);
        let fleet = Fleet::new(&[own]);
        let like =
            |like: &str| fleet.json(&["choose", "--like", like])["choose"][0]["index"].clone();
        assert_eq!((like("ucx-1.20"), like("ucx-1.21")), (old, json!(3)));
        let said = fleet.uverbs(&["choose", "--like", "ucx-1.20", "mlx5_0"]).stderr;
        let why = "UCX_NET_DEVICES has more than 64 entries, at which it stops";
        assert_eq!(said.contains(why), count > 64, "{said}");
    }
}

/// Variables for ports that no program on a host finds are right on none: with them a program takes no port.
#[test]
fn variables_for_devices_without_a_node() {
    let whole = host("node1", &[("mlx5_0", port(DUAL)), ("mlx5_1", port(DUAL))]);
    let lacking = |place: usize| {
        let mut own = whole.clone();
        let device = &mut own["devices"][place];
        (device["node_is_missing"], device["access"]) = (json!(true), Value::Null);
        own
    };
    let said = "no variables, as programs do not find node1: mlx5_1:1\n";
    for program in ["nccl", "ucx", "nvshmem"] {
        let fleet = Fleet::new(&[lacking(1)]);
        let run = fleet.uverbs(&["env", program, "mlx5_1"]);
        assert_eq!((run.stdout.as_str(), run.status), ("", 1), "{run:?}");
        assert!(run.stderr.contains(said), "{run:?}");
        // Another is found, so that some of what is named is used.
        for named in [&["mlx5_0"][..], &["mlx5_0", "mlx5_1"], &[]] {
            let run = fleet.uverbs(&[&["env", program], named].concat());
            assert!(run.stdout.contains("GID_INDEX=3\n") && run.status == 0, "{run:?}");
        }
        // Programs get their nodes elsewhere.
        let mut own = lacking(1);
        own["devices"][0] = lacking(0)["devices"][0].clone();
        let run = Fleet::new(&[own]).uverbs(&["env", program, "mlx5_1"]);
        assert!(run.stdout.contains("GID_INDEX=3\n") && run.status == 0, "{run:?}");
        // One that could not be read is there.
        let mut own = lacking(1);
        own["devices"].as_array_mut().unwrap().remove(0);
        let problem = json!({ "error": "mlx5_0: read: no", "errno": 71 });
        own["unlisted"] = json!([{ "device": "mlx5_0", "problem": problem }]);
        let run = Fleet::new(&[own]).uverbs(&["env", program, "mlx5_1"]);
        assert!(run.stdout.is_empty() && run.stderr.contains(said), "{run:?}");
        // What is found has no usable GID.
        let mut own = lacking(1);
        own["devices"][0]["ports"][0]["attributes"][0]["state"] = json!(1);
        let run = Fleet::new(&[own]).uverbs(&["env", program]);
        assert_eq!((run.stdout.as_str(), run.status), ("", 1), "{run:?}");
        assert!(run.stderr.contains(said), "{run:?}");
        // One host of two.
        let mut other = whole.clone();
        other["host"] = json!("node2");
        let fleet = Fleet::new(&[lacking(1), other]);
        let run = fleet.uverbs(&["env", program, "mlx5_1"]);
        assert_eq!((run.stdout.as_str(), run.status), ("", 1), "{run:?}");
        assert!(run.stderr.contains(said), "{run:?}");
        let run = fleet.uverbs(&["choose", "mlx5_1"]);
        let said = "UCX: no setting is right on all 2 named ports of 2 hosts, as it does not find node1: mlx5_1:1\n";
        assert!(run.stderr.contains(said), "{run:?}");
        assert_eq!(fleet.json(&["choose", "mlx5_1"])["fits_all"]["nccl"], json!(null));
    }
}

/// Releases of NCCL differ in which files they read, and how.
#[test]
fn settings_by_release() {
    let mut host = host("node1", &[("mlx5_0", port(DUAL))]);
    for (value, since, before) in [("1", Some("2.30"), None), ("2", Some("2.23"), Some("2.30"))] {
        set(&mut host, "NCCL_IB_GID_INDEX", value, Some("/home/user/.nccl.conf"));
        let setting = host["settings"].as_array_mut().unwrap().last_mut().unwrap();
        (setting["since"], setting["before"]) = (json!(since), json!(before));
    }
    let fleet = Fleet::new(&[host]);
    let like =
        |release: &str| fleet.json(&["choose", "--like", release])["choose"][0]["index"].clone();
    assert_eq!((like("nccl-2.30.7"), like("nccl-2.30.4")), (json!(1), json!(1)));
    assert_eq!((like("nccl-2.29.7"), like("nccl-2.23.4")), (json!(2), json!(2)));
    assert_eq!((like("nccl-2.22.3"), like("nccl-2.20")), (json!(3), json!(0)));
}

/// Where `$HOME` was taken for the home of a password entry, what older releases take is not known.
#[test]
fn a_home_that_is_assumed() {
    let mut host = host("node1", &[("mlx5_0", port(DUAL))]);
    let sure = |host: &Value, release: &str| {
        let run = Fleet::new(std::slice::from_ref(host)).uverbs(&["choose", "--like", release]);
        (run.stdout.contains("3? "), run.stderr.contains("home of the password entry"))
    };
    assert_eq!(sure(&host, "nccl-2.28"), (false, false));
    host["home_is_assumed"] = json!(true);
    assert_eq!(sure(&host, "nccl-2.28"), (true, true));
    assert_eq!(sure(&host, "nccl-2.30.4"), (false, false));
    assert_eq!(sure(&host, "ucx"), (false, false));
}

/// What this process's own files hold, release by release.
#[test]
fn files_of_settings() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join(".nccl.conf"), "NCCL_IB_ADDR_FAMILY=AF_INET6\r\n").unwrap();
    let own = home.path().join("own.conf");
    std::fs::write(&own, "NCCL_IB_GID_INDEX=4\n").unwrap();
    let settings = |conf: &str| -> Vec<Value> {
        let run =
            finish(program().arg("snapshot").env("HOME", home.path()).env("NCCL_CONF_FILE", conf));
        let document: Value = serde_json::from_str(&run.stdout).unwrap();
        let file = home.path().to_str().unwrap();
        let list = document["settings"].as_array().unwrap().iter();
        let is_own = |own: &&Value| own["file"].as_str().is_some_and(|own| own.starts_with(file));
        let keys = ["value", "since", "before"];
        list.filter(is_own).map(|own| json!(keys.map(|key| own[key].clone()))).collect()
    };
    // Up to 2.29 the home is the password entry's, which is another one.
    assert_eq!(settings(""), [json!(["AF_INET6", "2.30", null])]);
    assert_eq!(settings(own.to_str().unwrap()), [json!(["4", "2.23", null])]);
    assert_eq!(settings("/dev/null"), [] as [Value; 0]);
}

/// A port that is named and never asked for has no variables; others do, and it is said.
#[test]
fn a_port_that_a_program_never_takes() {
    let mut own = host("node1", &[("mlx5_0", port(DUAL)), ("rep0", port(DUAL))]);
    with_third_port(&mut own["devices"][1]);
    let fleet = Fleet::new(&[own]);
    let run = fleet.uverbs(&["env", "ucx"]);
    assert_eq!((run.stdout.as_str(), run.status), ("export UCX_IB_GID_INDEX=3\n", 0), "{run:?}");
    assert!(run.stderr.contains("UCX itself never takes node1: rep0:3\n"), "{run:?}");
    assert!(!run.stderr.contains("gets no GID"), "nothing that is set would help: {run:?}");
    let answer = fleet.json(&["env", "ucx"]);
    assert_eq!(
        answer["never_asked_for"],
        json!([{ "host": "node1", "device": "rep0", "port": 3 }])
    );
    for named in [&["rep0:3"][..], &["rep0", "mlx5_0:1"]] {
        let run = fleet.uverbs(&[&["env", "ucx"], named].concat());
        assert_eq!((run.stdout.as_str(), run.status), ("", 1), "{run:?}");
        assert!(
            run.stderr.contains("no variables, as UCX itself never takes node1: rep0:3\n"),
            "{run:?}"
        );
    }
    assert_eq!(fleet.uverbs(&["env", "nccl", "rep0:3", "mlx5_0:1"]).status, 0);
    // Of another host all are such.
    let mut idle = host("node2", &[("rep0", port(DUAL))]);
    with_third_port(&mut idle["devices"][0]);
    let both = Fleet::new(&[host("node1", &[("mlx5_0", port(DUAL))]), idle]);
    let run = both.uverbs(&["env", "ucx"]);
    assert_eq!((run.stdout.as_str(), run.status), ("", 1), "{run:?}");
    assert!(
        run.stderr.contains("no variables, as UCX itself never takes node2: rep0:3\n"),
        "{run:?}"
    );
    let run = fleet.uverbs(&["choose"]);
    let said = "but for node1: rep0:3, which it never takes itself: UCX_IB_GID_INDEX=3\n";
    assert!(run.stderr.contains(said), "{run:?}");
}

/// The same of what a program never takes for its kind: NCCL no EFA, UCX no iWARP.
#[test]
fn a_kind_of_port_that_a_program_never_takes() {
    let mut efa = host("node1", &[("mlx5_0", port(DUAL)), ("efa_0", port(DUAL))]);
    efa["devices"][1]["ports"][0]["attributes"][0]["link_layer"] = json!(0);
    let mut iwarp = host("node1", &[("mlx5_0", port(DUAL)), ("siw0", port(DUAL))]);
    let siw = &mut iwarp["devices"][1];
    (siw["node_type"], siw["gids"]) = (json!(4), json!([siw["gids"][0]]));
    let row = &mut siw["gids"][0];
    (row["ifindex"], row["netdev"], row["gid_type"]) = (Value::Null, Value::Null, json!(0));
    row["gid"] = json!("0211:2233:4455:0000:0000:0000:0000:0000");
    let cases = [
        (efa, "efa_0:1", "nccl", "NCCL_IB_GID_INDEX"),
        (iwarp, "siw0:1", "ucx", "UCX_IB_GID_INDEX"),
    ];
    for (mut own, other, word, variable) in cases {
        let fleet = Fleet::new(std::slice::from_ref(&own));
        let program = word.to_uppercase();
        let run = fleet.uverbs(&["env", word]);
        assert_eq!((run.stdout, run.status), (format!("export {variable}=3\n"), 0));
        let said = format!("{program} itself never takes node1: {other}\n");
        assert!(
            run.stderr.contains(&said) && !run.stderr.contains("gets no GID"),
            "{}",
            run.stderr
        );
        let run = fleet.uverbs(&["env", word, other]);
        assert_eq!((run.stdout.as_str(), run.status), ("", 1), "{run:?}");
        assert!(run.stderr.contains(&format!("no variables, as {said}")), "{run:?}");
        let run = fleet.uverbs(&["choose"]);
        let said = format!(
            "{program}: right on all 2 ports, but for node1: {other}, which it never takes itself"
        );
        assert!(run.stderr.contains(&said), "{run:?}");
        // Nothing is wrong that could be mended, also with what is set then, which may be no index of that port.
        let never = ["nothing that can be set makes", "take it"];
        for length in [255, 1] {
            own["devices"][1]["ports"][0]["attributes"][0]["gid_tbl_len"] = json!(length);
            let run = Fleet::new(std::slice::from_ref(&own)).uverbs(&["check", "--strict"]);
            let is_said = never.iter().all(|text| run.stdout.contains(text));
            assert!(run.status == 0 && is_said, "{run:?}");
            set(&mut own, variable, "3", None);
        }
    }
}

/// A plan that sets a list of devices makes another variable matter no more, and one that empties it does not.
#[test]
fn what_a_plan_replaces_is_not_doubtful() {
    let is_sure = |words: &[&str], set_for: &[(&str, &str)]| {
        let mut own = host("node1", &[("mlx5_0", port(DUAL)), ("mlx5_1", port(DUAL))]);
        for (name, value) in set_for {
            set(&mut own, name, value, None);
        }
        let words = [&["env", "nvshmem"], words].concat();
        Fleet::new(&[own]).json(&words)["is_sure"].as_bool().unwrap()
    };
    let list = ("NVSHMEM_HCA_LIST", "mlx5_0:1");
    let mapping = ("NVSHMEM_HCA_PE_MAPPING", "mlx5_1:1:1");
    let prefix = ("NVSHMEM_HCA_PREFIX", "bnxt");
    assert!(is_sure(&[], &[list]) && !is_sure(&[], &[list, mapping]));
    assert!(is_sure(&["mlx5_0"], &[mapping]) && !is_sure(&[], &[mapping]));
    for words in [&[][..], &["mlx5_0"]] {
        assert!(!is_sure(words, &[list, mapping, prefix]), "{words:?}");
    }
}

/// What is printed of a snapshot is for a program here, with the files that it reads here.
#[test]
fn files_of_settings_where_the_variables_are_taken() {
    let home = tempfile::tempdir().unwrap();
    let own = home.path().join("own.conf");
    let fleet = Fleet::new(&[host("node1", &[("mlx5_0", port(DUAL))])]);
    let env = |text: &str, format: &str| {
        std::fs::write(&own, text).unwrap();
        let mut command = program();
        command.args(["env", "nccl", "--format", format, "--from"]).arg(fleet.file(0));
        finish(command.env("NCCL_CONF_FILE", &own))
    };
    assert_eq!(env("", "shell").stdout, "export NCCL_IB_GID_INDEX=3\n");
    let family = "NCCL_IB_ADDR_FAMILY=AF_INET6\n";
    let both = "export NCCL_IB_GID_INDEX=3\nexport NCCL_IB_ADDR_FAMILY=AF_INET\n";
    assert_eq!(env(family, "shell").stdout, both);
    let run = env(family, "slurm");
    assert_eq!((run.stdout.as_str(), run.status), ("", 0), "{run:?}");
    assert!(run.stderr.contains("NCCL_IB_ADDR_FAMILY is set already"), "{run:?}");
    assert_eq!(env(family, "kubernetes").stdout.lines().count(), 2, "it is taken elsewhere");
    let run = env("NCCL_NET=Socket\n", "shell");
    assert!(run.stderr.contains("NCCL_NET is set: NCCL may use other"), "{run:?}");
    // What cannot be read may hold anything.
    let run = env(&"#".repeat(100_000), "shell");
    assert!(run.stderr.contains("longer than 64 KiB"), "{run:?}");
    assert_eq!((run.stdout.as_str(), run.status), ("", 1), "{run:?}");
}

/// A named device that does not exist does not mean that there are no devices.
#[test]
fn no_device_of_a_name_is_not_no_device() {
    let fleet = Fleet::new(&[host("node1", &[("mlx5_0", port(DUAL))])]);
    let tree = Tree::new();
    tree.with_roce();
    for run in [fleet.uverbs(&["choose", "mlx5_9"]), tree.uverbs(&["choose", "mlx5_9"])] {
        assert!(run.stderr.contains("mlx5_9: no such device"), "{run:?}");
        assert!(!run.stderr.contains("no RDMA device"), "{run:?}");
        assert!(!run.stderr.contains("no port that was read"), "{run:?}");
        assert_eq!(run.status, 1);
    }
}

/// What is set in the shell that takes the variables has no say, also where another host's were read.
#[test]
fn variables_of_the_shell_are_put_back() {
    let fleet = Fleet::new(&[host("node1", &[("mlx5_0", port(DUAL))])]);
    let file = fleet.file(0);
    let mut run = program();
    run.args(["env", "nccl", "--from"]).arg(file).env("NCCL_IB_HCA", "mlx5_7");
    assert_eq!(finish(&mut run).stdout, "export NCCL_IB_GID_INDEX=3\nexport NCCL_IB_HCA=''\n");
}

/// A row of a pod's namespace, seen from the host: the same address is here, with another index.
#[test]
fn the_address_without_the_index_is_no_evidence() {
    let mut one = host("node1", &[("mlx5_0", port(DUAL))]);
    let rows = one["devices"][0]["gids"].as_array_mut().unwrap();
    for row in rows.iter_mut() {
        (row["netdev"], row["ifindex"]) = (Value::Null, 777.into());
    }
    let fleet = Fleet::new(&[one.clone()]);
    let run = fleet.uverbs(&["choose", "--explain", "--no-header"]);
    assert_eq!(
        (run.status, run.stdout.matches("not in this network namespace").count()),
        (1, 4),
        "{run:?}"
    );
    assert_eq!(
        (fleet.uverbs(&["env", "nccl"]).stdout.as_str(), fleet.uverbs(&["env", "nccl"]).status),
        ("", 1)
    );
    // With the index it may be ours, which is not certain.
    for row in one["devices"][0]["gids"].as_array_mut().unwrap() {
        row["ifindex"] = 2.into();
    }
    let fleet = Fleet::new(&[one.clone()]);
    let fits = fleet.json(&["choose"])["fits_all"].clone();
    assert_eq!((&fits["index"], &fits["unproven"]), (&Value::Null, &json!(["node1: mlx5_0:1"])));
    assert_eq!(fits["read"]["index"], 3);
    // Whether it is eth0's is as uncertain.
    let run = fleet.uverbs(&["choose", "--netdev", "eth0"]);
    assert!(run.status == 1 && !run.stdout.contains("::ffff:10.0.0.1"), "{run:?}");
    let run = fleet.uverbs(&["choose"]);
    assert!(run.stdout.contains("::ffff:10.0.0.1"), "{run:?}");
    assert!(run.stderr.contains("not known to be right"), "{run:?}");
    assert!(run.stderr.contains("index 3 is right on the port, as far as is known"), "{run:?}");
    let run = fleet.uverbs(&["check"]);
    assert!(!run.stdout.contains("is right here"), "{run:?}");
    // Unless the host knew better.
    for row in one["devices"][0]["gids"].as_array_mut().unwrap() {
        row["netdev_is_elsewhere"] = true.into();
    }
    let run = Fleet::new(&[one]).uverbs(&["choose"]);
    assert_eq!(run.status, 1, "{run:?}");
}

#[test]
fn types_that_cannot_be_read_are_no_types() {
    let tree = Tree::new();
    let port = tree.with_roce().port_again(1);
    port.refuse("gid_attrs/types/3");
    for wanted in ["v1", "v2"] {
        let run = tree.uverbs(&["choose", "--explain", "--type", wanted, "--no-header"]);
        let row = run.stdout.lines().find(|line| line.contains("192.168.77.1")).unwrap();
        assert!(row.ends_with("its type cannot be read"), "{run:?}");
    }
    let run = tree.uverbs(&["choose", "--cidr", "192.168.0.0/16", "--json"]);
    let answer: Value = serde_json::from_str(&run.stdout).unwrap();
    let why = "it is not known whether GID 3 is right";
    assert_eq!((&answer["choose"][0]["why"], run.status), (&json!(why), 1), "{answer}");
}

#[test]
fn a_variable_that_makes_it_fail_is_not_left() {
    let mut one = host("node1", &[("mlx5_0", port(&[(0, "fe80::2:c903:4:1", 0, None)]))]);
    one["devices"][0]["protocol"] = "ib".into();
    one["devices"][0]["ports"][0]["attributes"][0]["link_layer"] = 1.into();
    one["devices"][0]["gids"][0]["ifindex"] = Value::Null;
    let check = |one: &Value| Fleet::new(std::slice::from_ref(one)).uverbs(&["check"]);
    assert!(!check(&one).stdout.contains("takes-no-gid"));
    set(&mut one, "NCCL_IB_ROUTABLE_FLID_GID_INDEX", "-1", None);
    let run = Fleet::new(&[one.clone()]).uverbs(&["env", "nccl"]);
    assert_eq!(run.stdout, "export NCCL_IB_ROUTABLE_FLID_GID_INDEX=1\n", "{run:?}");
    assert!(check(&one).stdout.contains("takes-no-gid"), "{:?}", check(&one));
}
