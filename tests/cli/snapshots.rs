//! Snapshots of invented hosts.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::run::{Run, finish, from, program};
use crate::tree::Tree;

/// A fleet's snapshots; removed when it is dropped.
#[derive(Debug)]
pub(crate) struct Fleet(TempDir);

/// A row of a port's table: index, address, type, interface here.
pub(crate) type Row<'a> = (u32, &'a str, u32, Option<&'a str>);

/// What most RoCE ports have.
pub(crate) const DUAL: &[Row<'_>] = &[
    (0, "fe80::11:22ff:fe33:4455", 1, Some("eth0")),
    (1, "fe80::11:22ff:fe33:4455", 2, Some("eth0")),
    (2, "::ffff:10.0.0.1", 1, Some("eth0")),
    (3, "::ffff:10.0.0.1", 2, Some("eth0")),
];

/// The same, with a VLAN's address before the port's own.
pub(crate) const VLAN: &[Row<'_>] = &[
    (0, "fe80::11:22ff:fe33:4455", 1, Some("eth0")),
    (1, "fe80::11:22ff:fe33:4455", 2, Some("eth0")),
    (3, "::ffff:192.168.7.1", 2, Some("eth0.7")),
    (5, "::ffff:10.0.0.3", 2, Some("eth0")),
];

/// A port that is up, with these rows.
pub(crate) fn port(rows: &[Row<'_>]) -> Value {
    let rows: Vec<Value> = rows
        .iter()
        .map(|(index, gid, gid_type, netdev)| {
            let number = netdev.map(|name| if name.contains('.') { 3 } else { 2 });
            json!({
                "port": 1, "index": index, "gid": gid, "gid_type": gid_type,
                "ifindex": number.unwrap_or(9), "source": "ioctl", "type_is_hidden": false,
                "netdev": netdev.map(|name| json!({ "index": number, "name": name })),
            })
        })
        .collect();
    json!({
        "rows": rows,
        "attributes": [{
            "state": 4, "phys_state": 5, "link_layer": 2, "lid": 0, "sm_lid": 0, "sm_sl": 0,
            "lmc": 0, "gid_tbl_len": 255, "pkey_tbl_len": 1, "port_cap_flags": 0,
            "max_mtu": 5, "active_mtu": 3, "active_width": 2, "active_speed": 32,
        }, "ioctl"],
    })
}

/// A snapshot as a line with which a recording begins.
pub(crate) fn begun(snapshot: &Value, head: &Value) -> String {
    let mut rest = snapshot.as_object().unwrap().clone();
    rest.remove("schema_version");
    rest.remove("recording");
    let rest = Value::from(rest).to_string();
    format!(r#"{{"schema_version":1,"recording":{head},{}"#, &rest[1..])
}

/// A host whose devices have one port each.
pub(crate) fn host(name: &str, devices: &[(&str, Value)]) -> Value {
    let devices: Vec<Value> = devices
        .iter()
        .map(|(name, port)| {
            json!({
                "name": name, "index": 0, "node_type": 1, "driver": 1, "protocol": "roce",
                "node_guid": "0x0002c90300000004", "sys_image_guid": "0x0002c90300000004",
                "node": { "name": "uverbs0", "path": "/dev/infiniband/uverbs0", "number": 59328 },
                "node_mode": 0o20666, "access": true, "hardware": {}, "gids": port["rows"],
                "ports": [{
                    "number": 1, "attributes": port["attributes"], "guid": "0x001122fffe334455",
                    "netdev": { "index": 2, "name": "eth0" }, "has_types": true,
                }],
            })
        })
        .collect();
    let mut addresses = Vec::new();
    for row in devices.iter().flat_map(|device| device["gids"].as_array().unwrap()) {
        let gid = row["gid"].as_str().unwrap();
        let address = gid.strip_prefix("::ffff:").unwrap_or(gid);
        addresses.push((row["netdev"]["index"].clone(), json!([address, 24])));
    }
    let interface = |index: u32, name: &str| {
        let own = addresses.iter().filter(|(own, _)| *own == index);
        let own: Vec<&Value> = own.map(|(_, address)| address).collect();
        json!({
            "index": index, "name": name, "is_up": true, "is_lower_up": true, "mtu": 1500,
            "mac": "02:11:22:33:44:55", "addresses": own,
        })
    };
    json!({
        "schema_version": 1, "host": name, "kernel": "6.12.0", "shares_namespaces": true,
        "modules": ["ib_core", "ib_uverbs"], "proprietary": [],
        "locked_memory": { "limit": null, "is_exempt": false },
        "has_netlink": true, "absences": [], "settings": [],
        "problems": [], "devices": devices,
        "interfaces": [interface(2, "eth0"), interface(3, "eth0.7")],
    })
}

/// Makes the port of a device its third one. The others are down.
pub(crate) fn with_third_port(device: &mut Value) {
    let mut own = device["ports"][0].clone();
    let mut down = own.clone();
    down["attributes"][0]["state"] = 1.into();
    own["number"] = 3.into();
    let mut second = down.clone();
    second["number"] = 2.into();
    device["ports"] = json!([down, second, own]);
    for row in device["gids"].as_array_mut().unwrap() {
        row["port"] = 3.into();
    }
}

/// Sets a variable on a host.
pub(crate) fn set(host: &mut Value, name: &str, value: &str, file: Option<&str>) {
    let setting = json!({ "name": name, "value": value, "file": file });
    host["settings"].as_array_mut().unwrap().push(setting);
}

/// A file without a host's name, or that cannot be read, is not taken for the host of another file.
#[test]
fn a_file_has_not_the_name_of_a_host() {
    let folder = TempDir::new().unwrap();
    let file = |name: &str| folder.path().join(name);
    let mut nameless = host("node1", &[("mlx5_0", port(DUAL))]);
    nameless["host"] = Value::Null;
    fs::write(file("node1.json"), nameless.to_string()).unwrap();
    let named = host("node1", &[("mlx5_1", port(VLAN))]);
    fs::write(file("other.json"), named.to_string()).unwrap();
    let path = file("node1.json").display().to_string();
    for files in [["node1.json", "other.json"], ["other.json", "node1.json"]] {
        let run = finish(program().args(["choose", "--json"]).args(from(files.map(file))));
        let answer: Value = serde_json::from_str(&run.stdout).unwrap();
        for row in answer["choose"].as_array().unwrap() {
            let expected = if row["device"] == "mlx5_1" { "node1" } else { &path };
            assert_eq!(row["host"], expected, "{files:?}");
        }
    }
    fs::write(file("node1.json"), "{").unwrap();
    let run = finish(program().arg("choose").args(from(["node1.json", "other.json"].map(file))));
    assert!(run.stdout.contains("\nnode1  mlx5_1"), "{run:?}");
    assert!(run.stderr.contains(&format!("what is right on {path}\n")), "{run:?}");
    assert!(run.stderr.contains(&format!("uverbs: {path}: no JSON")), "{run:?}");
}

impl Fleet {
    pub(crate) fn new(hosts: &[Value]) -> Self {
        let fleet = Self(TempDir::new().unwrap());
        for (number, host) in hosts.iter().enumerate() {
            fs::write(fleet.file(number), host.to_string()).unwrap();
        }
        fleet.keep_count(hosts.len());
        fleet
    }

    fn keep_count(&self, count: usize) {
        fs::write(self.0.path().join("count"), count.to_string()).unwrap();
    }

    pub(crate) fn file(&self, number: usize) -> PathBuf {
        self.0.path().join(format!("node{number}.json"))
    }

    /// Runs a command on all snapshots.
    pub(crate) fn uverbs(&self, args: &[&str]) -> Run {
        finish(&mut self.command(args))
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let count = fs::read_to_string(self.0.path().join("count")).unwrap().parse().unwrap();
        let files = (0..count).map(|number| self.file(number));
        let mut command = program();
        command.args(args).args(from(files));
        command
    }

    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let run = self.uverbs(&[args, &["--json"]].concat());
        serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{run:?}"))
    }
}

pub(crate) fn fleet_with_everything() -> Fleet {
    let mut one = host("node1", &[("mlx5_0", port(DUAL)), ("mlx5_1", port(VLAN))]);
    set(&mut one, "NCCL_IB_GID_INDEX", "4", Some("/etc/nccl.conf"));
    let mut two = host("node2", &[("mlx5_0", port(VLAN)), ("mlx5_1", port(&[]))]);
    two["devices"][1]["gids"] = json!({ "error": "mlx5_1: query GID table: no", "errno": 5 });
    two["devices"][1]["ports"][0]["attributes"] = json!({ "error": "mlx5_1: no", "errno": 5 });
    Fleet::new(&[one, two])
}

/// Each command says of a snapshot what it said of the host, but for the host's name.
#[test]
fn a_snapshot_is_the_host() {
    let tree = Tree::new();
    tree.with_roce();
    tree.with_infiniband();
    tree.with_iwarp();
    tree.with_switch();
    let document: Value = serde_json::from_str(&tree.answer(&["snapshot"])).unwrap();
    let fleet = Fleet::new(&[document]);
    let nameless = |document: &Value| {
        let mut document = document.clone();
        for rows in document.as_object_mut().unwrap().values_mut() {
            for row in rows.as_array_mut().into_iter().flatten() {
                row.as_object_mut().unwrap().remove("host");
            }
        }
        document.as_object_mut().unwrap().remove("fits_all");
        document
    };
    for command in [
        &["devices"] as &[&str],
        &["gids"],
        &["gids", "mlx5_0", "--type", "v2"],
        &["gid", "mlx5_0:1", "3"],
        &["gid", "mlx5_0:1", "2"],
        &["gid", "mlx5_0:1", "99"],
        &["ports"],
        &["guids"],
        &["ports", "mlx4_0:2", "mlx5_9"],
        &["choose", "--explain"],
        &["check"],
        &["env", "nccl"],
    ] {
        let of_tree = tree.uverbs(&[command, &["--json"]].concat());
        let of_file = fleet.uverbs(&[command, &["--json"]].concat());
        let (mut one, mut other) = (
            serde_json::from_str(&of_tree.stdout).unwrap(),
            nameless(&serde_json::from_str(&of_file.stdout).unwrap()),
        );
        // The words of an error are each one's own.
        for document in [&mut one, &mut other] {
            for problem in document["problems"].as_array_mut().unwrap() {
                problem.as_object_mut().unwrap().remove("error");
            }
        }
        assert_eq!(one, other, "{command:?}");
        assert_eq!(of_tree.status, of_file.status, "{command:?}: {of_tree:?} {of_file:?}");
    }
    let table = fleet.uverbs(&["gids", "--format", "show_gids"]);
    assert_eq!(table.stdout, tree.answer(&["gids", "--format", "show_gids"]));
}

/// A snapshot says when and by what it was made, and types in the words of all other documents.
#[test]
fn what_a_snapshot_says_of_itself() {
    let tree = Tree::new();
    tree.with_roce();
    let text = tree.answer(&["snapshot"]);
    assert!(text.starts_with("{\"schema_version\":1,\"written_at\":\"20"), "{text}");
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["written_by"], concat!("uverbs ", env!("CARGO_PKG_VERSION")));
    let types = |document: &Value| -> Vec<Value> {
        let rows = document["devices"][0]["gids"].as_array().unwrap().iter();
        rows.map(|row| row["gid_type"].clone()).collect()
    };
    assert_eq!(types(&document), ["roce_v1", "roce_v2", "roce_v2", "roce_v2"]);
    // Older snapshots have numbers, and neither time nor version.
    let mut old = document.clone();
    for (row, number) in
        old["devices"][0]["gids"].as_array_mut().unwrap().iter_mut().zip([1, 2, 2, 7])
    {
        row["gid_type"] = json!(number);
    }
    old.as_object_mut().unwrap().retain(|key, _| !key.starts_with("written"));
    let rows = Fleet::new(&[old]).json(&["gids"]);
    let types: Vec<&Value> =
        rows["gids"].as_array().unwrap().iter().map(|row| &row["gid_type"]).collect();
    assert_eq!(types, ["roce_v1", "roce_v2", "roce_v2", "unknown(7)"]);
    for (word, is_read) in [
        (json!("unknown(7)"), true),
        (json!("unknown"), true),
        (json!("v2"), false),
        (json!("unknown(x)"), false),
        (json!(-1), false),
        (json!(4_294_967_296_u64), false),
    ] {
        let mut other = document.clone();
        other["devices"][0]["gids"][0]["gid_type"] = word.clone();
        let run = Fleet::new(&[other]).uverbs(&["gids"]);
        let is_refused = run.status == 3 && run.stderr.contains("devices.0.gids.0.gid_type: ");
        assert_eq!((run.status == 0, is_refused), (is_read, !is_read), "{word}: {run:?}");
    }
}

#[test]
fn a_snapshot_of_a_snapshot_says_the_same() {
    let fleet = fleet_with_everything();
    let again = fleet.uverbs(&["gids"]);
    assert!(again.stdout.starts_with("HOST   DEVICE"), "{again:?}");
    assert!(again.stdout.contains("node2  mlx5_0"), "{again:?}");
    assert_eq!(again.stderr, "uverbs: node2: mlx5_1: query GID table: no\n");
    assert_eq!(again.status, 3);
    let json = fleet.json(&["gids"]);
    assert_eq!(json["gids"][0]["host"], "node1");
    assert_eq!(json["problems"][0]["host"], "node2");
}

/// The content of a file is not trusted.
#[test]
fn hostile_files() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("node1.json");
    let good = host("node1", &[("mlx5_0", port(DUAL))]);
    let with = |change: &dyn Fn(&mut Value)| {
        let mut document = good.clone();
        change(&mut document);
        document.to_string()
    };
    let cases: [(&str, String); 17] = [
        ("no JSON", String::new()),
        ("expected an object", "[".repeat(10_000)),
        ("expected an object", "[]".into()),
        ("missing field `schema_version`", "{}".into()),
        ("form 2", with(&|it| it["schema_version"] = json!(2))),
        (
            "devices: invalid type: integer `7`, expected a list",
            with(&|it| it["devices"] = json!(7)),
        ),
        (
            "two devices with one name",
            with(&|it| {
                let copy = it["devices"][0].clone();
                it["devices"].as_array_mut().unwrap().push(copy);
            }),
        ),
        (
            "devices.0.ports: port numbers",
            with(&|it| {
                it["devices"][0]["ports"][0]["number"] = json!(4_000_000_000_u32);
            }),
        ),
        ("devices.0.ports: port numbers", with(&|it| it["devices"][0]["node_type"] = json!(2))),
        (
            "devices.0.ports.0.attributes.0.state",
            with(&|it| {
                it["devices"][0]["ports"][0]["attributes"][0]["state"] = json!(256);
            }),
        ),
        ("devices.0.gids.0.gid", with(&|it| it["devices"][0]["gids"][0]["gid"] = json!("x"))),
        ("devices.0.gids.0.index", with(&|it| it["devices"][0]["gids"][0]["index"] = json!(-1))),
        (
            "devices.0.gids: not in order",
            with(&|it| it["devices"][0]["gids"][0]["index"] = json!(9)),
        ),
        ("interfaces.0.index", with(&|it| it["interfaces"][0]["index"] = json!(0))),
        ("interfaces.0.mac", with(&|it| it["interfaces"][0]["mac"] = json!("02:11"))),
        (
            "settings.0.before: no release before it",
            with(&|it| {
                set(it, "NCCL_IB_HCA", "x", None);
                let setting = &mut it["settings"][0];
                (setting["since"], setting["before"]) = (json!("2.23"), json!("2.23"));
            }),
        ),
        ("longer than", " ".repeat((16 << 20) + 1)),
    ];
    for (message, text) in cases {
        fs::write(&path, &text).unwrap();
        for command in [&["gids"] as &[&str], &["choose"], &["env", "nccl"]] {
            let run = finish(program().args(command).arg("--from").arg(&path));
            assert!(run.stderr.contains("node1.json"), "{message}: {run:?}");
            assert!(run.stderr.contains(message), "{message}: {run:?}");
            assert_eq!(run.status, 3, "{message}");
        }
        let run = finish(program().args(["check", "--from"]).arg(&path));
        assert_eq!(run.status, 3, "{run:?}");
        assert!(run.stderr.contains("nothing was checked"), "{run:?}");
    }
}

/// Names that nothing can have, and that would be read as something else: in a list of devices, on a
/// terminal, in a line.
#[test]
fn odd_names() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("node1.json");
    let odd = [
        "",
        "a\0b",
        "a\nb",
        "a\tb",
        "a\u{1b}[31m",
        "a\u{7f}",
        "a\u{85}",
        "a\u{9b}31m",
        "a\u{2028}b",
        "a\u{2029}",
        "a\u{202a}",
        "a\u{202e}b",
        "a\u{2066}",
        "a\u{2069}b",
    ];
    let device: &[&str] = &["a,b", "a/b", "a:1", "..", &"a".repeat(64)];
    let interface: &[&str] = &["a b", "a/b", "a:1", ".", "sixteen-and-more"];
    let places: [(&str, &[&str]); 14] = [
        ("/devices/0/name", device),
        ("/interfaces/0/name", interface),
        ("/devices/0/ports/0/netdev/name", interface),
        ("/devices/0/gids/0/netdev/name", interface),
        ("/devices/0/gids/0/sysfs_netdev", interface),
        ("/host", &[]),
        ("/kernel", &[]),
        ("/modules/0", &[]),
        ("/devices/0/fw_version", &[]),
        ("/devices/0/protocol", &[]),
        ("/devices/0/node/name", &[]),
        ("/devices/0/node/path", &[]),
        ("/settings/0/file", &[]),
        ("/absences/0/device", device),
    ];
    for (place, more) in places {
        for name in odd.iter().chain(more) {
            let mut document = host("node1", &[("mlx5_0", port(DUAL))]);
            set(&mut document, "NCCL_IB_GID_INDEX", "3", Some("/etc/nccl.conf"));
            let absent = json!({ "reason": "other_namespace", "device": "x", "node": "uverbs9" });
            document["absences"].as_array_mut().unwrap().push(absent);
            document["devices"][0]["gids"][0]["sysfs_netdev"] = json!("eth0");
            document["devices"][0]["fw_version"] = json!("1.2");
            *document.pointer_mut(place).unwrap() = json!(name);
            fs::write(&path, document.to_string()).unwrap();
            for command in [&["gids"] as &[&str], &["env", "nccl", "mlx5_0"], &["choose", "--json"]]
            {
                let run = finish(program().args(command).arg("--from").arg(&path));
                let said = [&*run.stdout, &*run.stderr].concat();
                let key = place.rsplit('/').find(|key| key.parse::<u32>().is_err()).unwrap();
                assert!(
                    said.contains(key) && said.contains("does not belong"),
                    "{place} {name:?} {run:?}"
                );
                assert!(!run.stdout.contains("export"), "{place} {name:?}: {run:?}");
                assert_eq!(run.status, 3, "{place} {name:?}: {run:?}");
                let shows = |c: char| {
                    c == '\n'
                        || !(c.is_control()
                            || "\u{2028}\u{2029}\u{202a}\u{202e}\u{2066}\u{2069}".contains(c))
                };
                assert!(said.chars().all(shows), "{place} {name:?}: {run:?}");
            }
        }
    }
}

/// A value may be any text, and an error's sentence too: they are shown with escapes.
#[test]
fn odd_texts_are_shown_with_escapes() {
    let mut document = host("node1", &[("mlx5_0", port(DUAL))]);
    let odd = "9\u{9b}31m\u{2028}\u{202e}\u{2066}\u{7f}\u{1b}";
    set(&mut document, "NCCL_IB_GID_INDEX", odd, None);
    document["problems"] = json!([{ "error": odd, "errno": 5 }]);
    let fleet = Fleet::new(&[document]);
    for command in [&["check"] as &[&str], &["env", "nccl"], &["gids"]] {
        for format in [&[] as &[&str], &["--json"]] {
            let run = fleet.uverbs(&[command, format].concat());
            let said = [&*run.stdout, &*run.stderr].concat();
            assert!(
                !said.contains(['\u{9b}', '\u{2028}', '\u{202e}', '\u{2066}', '\u{7f}', '\u{1b}']),
                "{run:?}"
            );
            let is_json = !format.is_empty();
            assert!(
                said.contains(if is_json {
                    "9\\u009b31m\\u2028\\u202e\\u2066\\u007f\\u001b"
                } else {
                    "9\\u{9b}31m\\u{2028}"
                }),
                "{run:?}"
            );
            if is_json {
                let answer: Value = serde_json::from_str(&run.stdout).unwrap();
                assert_eq!(
                    answer["problems"].as_array().map_or(0, Vec::len),
                    usize::from(command[0] != "check")
                );
            }
        }
    }
    let mut document = host("node1", &[("mlx5_0", port(DUAL))]);
    set(&mut document, "NCCL_IB_HCA", "a\0b", None);
    let run = Fleet::new(&[document]).uverbs(&["check"]);
    assert!(run.stderr.contains("settings.0.value: "), "{run:?}");
}

/// What is too long is refused, with its place.
#[test]
fn long_lists_and_texts() {
    let refused = |message: &str, change: &dyn Fn(&mut Value)| {
        let mut document = host("node1", &[("mlx5_0", port(DUAL))]);
        change(&mut document);
        let run = Fleet::new(&[document]).uverbs(&["check"]);
        assert!(run.stderr.contains(message), "{message}: {run:?}");
        assert_eq!(run.status, 3);
    };
    refused("modules: a list of more than 100000", &|it| it["modules"] = vec!["a"; 100_001].into());
    refused("absences: a list of more than", &|it| {
        it["absences"] = vec![json!({ "reason": "no_device" }); 100_001].into();
    });
    refused("problems.0.error: a text of more than 16384 bytes", &|it| {
        it["problems"] = json!([{ "error": "x".repeat(16_385), "errno": 1 }]);
    });
    refused("settings.0.value: ", &|it| set(it, "NCCL_IB_HCA", &"x".repeat((128 << 10) + 1), None));
    refused("interfaces: not in order", &|it| {
        it["interfaces"].as_array_mut().unwrap().reverse();
    });
    for width in [0, 33, 255] {
        refused("hardware.pci.link: expected 1 to 32 lanes", &|it| {
            let link = json!({ "speed": 160, "width": width });
            let pci = json!({ "address": "0000:17:00.0", "link": link });
            it["devices"][0]["hardware"] = json!({ "pci": pci });
        });
    }
    refused("interfaces.0: expected a VLAN id of 0 to 4094", &|it| {
        it["interfaces"][0]["vlan"] = json!(4095);
    });
    for mac in ["2:0:0:0:0:1", "02:00:00:00:00:+1", "02:00:00:00:00:1g", "02:00:00:00:00:01:02"] {
        refused(&format!("\"{mac}\" does not belong here"), &|it| {
            it["interfaces"][0]["mac"] = json!(mac);
        });
    }
    // A long text makes no row of a table longer but its own.
    let mut document = host("node1", &[("mlx5_0", port(DUAL))]);
    document["shares_namespaces"] = json!(false);
    document["problems"] = json!([{ "error": "x".repeat(1000), "errno": 1 }]);
    let run = Fleet::new(&[document]).uverbs(&["check"]);
    let lengths: Vec<bool> = run.stdout.lines().map(|line| line.len() > 500).collect();
    assert_eq!(lengths, [false, true, false], "{run:?}");
    assert!(
        run.stdout.lines().nth(1).unwrap().ends_with("x  what else could be read was looked at"),
        "{run:?}"
    );
}

#[test]
fn a_file_that_cannot_be_read_hides_no_other() {
    let fleet = fleet_with_everything();
    let files = from([Path::new("/nowhere.json"), &fleet.file(0)]);
    let run = finish(program().args(["devices", "--json"]).args(files));
    let answer: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(answer["devices"].as_array().unwrap().len(), 2);
    assert_eq!(answer["problems"][0]["host"], "/nowhere.json");
    assert_eq!(answer["problems"][0]["errno"], 2);
    assert!(answer["problems"][0]["error"].as_str().unwrap().contains("os error 2"));
    assert_eq!(run.status, 3);
}

/// Nor does a recording, or what other programs write to the same file.
#[test]
fn what_is_no_snapshot_hides_no_other() {
    let (fleet, folder) = (fleet_with_everything(), TempDir::new().unwrap());
    let file = folder.path().join("all.jsonl");
    let own = |place: usize| fs::read_to_string(fleet.file(place)).unwrap().trim().to_owned();
    let begun = own(1).replacen(
        r#"{"schema_version":1,"#,
        r#"{"schema_version":1,"recording":{"number":0,"time":"2026-11-22T12:00:00Z","monotonic_ns":0,"goes_on":false},"#,
        1,
    );
    assert!(begun.contains("recording"));
    let line = r#"{"number":1,"time":"2026-11-22T12:00:09Z","monotonic_ns":9,"changes":[]}"#;
    let devices = |text: &str| {
        fs::write(&file, text).unwrap();
        let run = finish(program().args(["devices", "--json"]).args(from([&file])));
        let answer: Value = serde_json::from_str(&run.stdout).unwrap();
        let count = |key: &str| answer[key].as_array().unwrap().len();
        (count("devices"), count("problems"), run.status)
    };
    let (first, second) = (own(0), own(1));
    let (all, _, _) = devices(&format!("{first}\n{second}\n"));
    for between in ["ssh: no\nssh: no route", "null", "]", &format!("{begun}\n{line}\n{line}")] {
        let found = devices(&format!("{first}\n{between}\n{second}\n"));
        assert_eq!(found, (all, 1, 3), "{between}");
    }
}

#[test]
fn from_standard_input() {
    let fleet = fleet_with_everything();
    let file = fs::File::open(fleet.file(0)).unwrap();
    let run = finish(program().args(["gids", "--no-header", "--from", "-"]).stdin(file));
    assert!(run.stdout.starts_with("node1  mlx5_0  1  0"), "{run:?}");
}
