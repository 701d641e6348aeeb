//! The time for every input is proportional to its size. valgrind counts instructions at n, 2n and 4n
//! elements of each kind of list that a snapshot has, and of files.
//!
//! If the cost is linear, the second step is twice the first; if it is quadratic, four times. No clock is
//! used, so a loaded machine is no failure. Without valgrind the test fails and says so.
//!
//! `UVERBS_TEST_PROGRAM` names the program; the released one takes a tenth of the debug build's instructions.
//! All are counted, unless `UVERBS_LINEAR_SEED` is set: then a tenth, and ten seeds that follow one another
//! have all.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

/// The least number of elements; one that doubles no list's room just between two measurements.
const COUNT: usize = 120;

/// The second step over the first: 2 if linear, a little more for sorted look-ups, 4 if quadratic.
const MOST: f64 = 2.3;

/// Of how many parts a seed has one.
const TURNS: usize = 10;

/// Whether the list with this number, one of several of a test, is counted in this run.
fn has_its_turn(number: usize, name: &str) -> bool {
    has_turn(number, name, "SKIPPED")
}

/// The same, where the test is about nothing else.
fn test_has_its_turn(number: usize, name: &str) -> bool {
    has_turn(number, name, "SKIPPED TEST")
}

fn has_turn(number: usize, name: &str, skipped: &str) -> bool {
    let Ok(seed) = std::env::var("UVERBS_LINEAR_SEED") else { return true };
    let seed: usize = seed.parse().unwrap();
    let is_now = number % TURNS == seed % TURNS;
    if !is_now {
        // Not by the macro, whose output is shown of what fails only.
        let why = "not its turn by the seed; `tests/run all` has it";
        writeln!(std::io::stdout().lock(), "\n{skipped}: instructions for {name}: {why}").unwrap();
    }
    is_now
}

/// Instructions of the command on these files.
fn instructions(words: &[&str], files: &[PathBuf]) -> u64 {
    let program = std::env::var("UVERBS_TEST_PROGRAM");
    let program = program.as_deref().unwrap_or(env!("CARGO_BIN_EXE_uverbs"));
    let output = Command::new("valgrind")
        .args(["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"])
        .arg(program)
        .args(words)
        .args(files.iter().flat_map(|file| [Path::new("--from"), file]))
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("valgrind is needed (apt-get install valgrind): {error}"));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!text.contains("panicked") && output.status.code().is_some(), "{words:?}: {text}");
    let line = text.lines().find_map(|line| line.split_once("refs:")).unwrap();
    line.1.trim().replace(',', "").parse().unwrap()
}

fn attributes(state: u32) -> Value {
    json!([{
        "state": state, "phys_state": 5, "link_layer": 2, "lid": 0, "sm_lid": 0, "sm_sl": 0, "lmc": 0,
        "gid_tbl_len": 1_000_000, "pkey_tbl_len": 1, "port_cap_flags": 0, "max_mtu": 5, "active_mtu": 3,
        "active_width": 2, "active_speed": 32,
    }, "ioctl"])
}

fn port(number: usize) -> Value {
    json!({ "number": number, "attributes": attributes(4), "guid": null, "pkeys": null })
}

/// A row with an address of its own.
fn row(port: usize, index: usize, netdev: Option<usize>) -> Value {
    let [.., a, b, c] = index.to_be_bytes();
    json!({
        "port": port, "index": index, "gid": format!("::ffff:10.{a}.{b}.{c}"), "gid_type": "roce_v2",
        "ifindex": netdev.unwrap_or(7), "source": "ioctl", "type_is_hidden": false,
        "netdev": netdev.map(|index| json!({ "index": index, "name": format!("eth{index}") })),
    })
}

fn device(name: &str, ports: &[Value], gids: &[Value]) -> Value {
    json!({
        "name": name, "node_type": 1, "driver": 1, "node_guid": "0x0002c90300000004",
        "sys_image_guid": "0x0002c90300000004", "access": true, "ports": ports, "gids": gids,
        "node": { "name": "uverbs0", "path": "/dev/infiniband/uverbs0", "number": 1 },
        "node_mode": 0o20666,
    })
}

fn interface(index: usize, addresses: &[Value]) -> Value {
    json!({
        "index": index, "name": format!("eth{index}"), "is_up": true, "is_lower_up": true, "mtu": 1500,
        "addresses": addresses,
    })
}

fn host() -> Value {
    json!({
        "schema_version": 1, "host": "node", "kernel": "6.12.0", "shares_namespaces": true,
        "modules": ["ib_uverbs"], "has_netlink": true, "absences": [], "settings": [], "problems": [],
        "devices": [device("a", &[port(1)], &[row(1, 3, Some(2))])],
        "interfaces": [interface(2, &[json!(["10.0.0.3", 24])])],
    })
}

/// A list that matters to a job.
const REACH: &str = "what a program reaches";

/// A host with so many elements of a kind.
type Grow = fn(&mut Value, usize);

const KINDS: &[(&str, Grow)] = &[
    ("devices", |host, count| {
        host["devices"] = (0..count)
            .map(|n| device(&format!("mlx5_{n}"), &[port(1)], &[row(1, n, Some(2))]))
            .collect();
    }),
    ("devices that cannot be read", |host, count| {
        host["devices"] = (0..count)
            .map(|n| {
                let mut device = device(&format!("mlx5_{n}"), &[port(1)], &[]);
                device["gids"] = json!({ "error": format!("mlx5_{n}: no"), "errno": 5 });
                device["access"] = json!({ "error": format!("mlx5_{n}: not either"), "errno": 5 });
                device
            })
            .collect();
    }),
    ("ports", |host, count| {
        let ports: Vec<Value> = (1..=count).map(port).collect();
        let gids: Vec<Value> = (1..=count).map(|n| row(n, n, Some(2))).collect();
        host["devices"] = json!([device("a", &ports, &gids)]);
    }),
    // NCCL takes none of them, and UCX two.
    ("ports of another kind", |host, count| {
        let mut ports: Vec<Value> = (1..=count).map(port).collect();
        for own in &mut ports {
            own["attributes"][0]["link_layer"] = json!(0);
        }
        let gids: Vec<Value> = (1..=count).map(|n| row(n, 3, Some(2))).collect();
        host["devices"] = json!([device("a", &ports, &gids)]);
    }),
    ("ports without gids", |host, count| {
        let ports: Vec<Value> = (1..=count).map(port).collect();
        let gids: Vec<Value> = (0..8 * count).map(|n| row(1, n, None)).collect();
        host["devices"] = json!([device("a", &ports, &gids)]);
    }),
    ("gids", |host, count| {
        host["devices"][0]["gids"] = (0..count).map(|n| row(1, n, Some(2))).collect();
    }),
    ("gids of others", |host, count| {
        host["devices"][0]["gids"] = (0..count).map(|n| row(1, n, None)).collect();
        host["interfaces"][0]["addresses"] =
            (0..count).map(|n| json!([format!("11.0.{}.{}", n / 256, n % 256), 24])).collect();
    }),
    ("pkeys", |host, count| {
        let attributes = &mut host["devices"][0]["ports"][0]["attributes"][0];
        attributes["link_layer"] = json!(1);
        host["devices"][0]["ports"][0]["pkeys"] = (0..count).map(|n| json!([n, 0xffff])).collect();
    }),
    ("boards", |host, count| {
        *host = with_devices(count);
        for (n, own) in host["devices"].as_array_mut().unwrap().iter_mut().enumerate() {
            own["hardware"] = json!({ "board_id": format!("board_{n}") });
        }
    }),
    ("devices, each with another pkey", |host, count| {
        *host = with_devices(count);
        for (n, own) in host["devices"].as_array_mut().unwrap().iter_mut().enumerate() {
            own["ports"][0]["attributes"][0]["link_layer"] = json!(1);
            own["ports"][0]["pkeys"] = json!([[0, 0x8000 + n]]);
        }
    }),
    ("interfaces", |host, count| {
        host["interfaces"] = (2..count + 2).map(|n| interface(n, &[])).collect();
        host["devices"] = (2..count + 2)
            .map(|n| device(&format!("mlx5_{n}"), &[port(1)], &[row(1, n, Some(n))]))
            .collect();
    }),
    ("addresses", |host, count| {
        let address = |n: usize| json!([format!("10.0.{}.{}", n / 256, n % 256), 24]);
        host["interfaces"][0]["addresses"] = (0..count).map(address).collect();
        host["devices"][0]["gids"] = (0..count).map(|n| row(1, n, Some(2))).collect();
    }),
    ("addresses of no use", |host, count| {
        let address = |n: usize| format!("10.0.{}.{}", n / 256, n % 256);
        host["interfaces"][0]["addresses"] = (0..count).map(|n| json!([address(n), 24])).collect();
        host["interfaces"][0]["unfit"] =
            (0..count).map(|n| json!([address(n), "duplicate"])).collect();
        host["devices"][0]["gids"] = (0..count).map(|n| row(1, n, Some(2))).collect();
    }),
    ("gids without an interface's name", |host, count| {
        let own = |n: usize| {
            let mut row = row(1, n, None);
            row["ifindex"] = Value::Null;
            row
        };
        let address = |n: usize| json!([format!("10.0.{}.{}", n / 256, n % 256), 24]);
        host["devices"][0]["gids"] = (0..count).map(own).collect();
        host["interfaces"] = (0..count).map(|n| interface(n + 2, &[address(n)])).collect();
    }),
    ("settings", |host, count| {
        let setting =
            |_| json!({ "name": "NCCL_IB_ADDR_RANGE", "value": "10.0.0.0/8", "file": "f" });
        host["settings"] = (0..count).map(setting).collect();
        host["devices"] = (0..count)
            .map(|n| device(&format!("mlx5_{n}"), &[port(1)], &[row(1, n, Some(2))]))
            .collect();
    }),
    // What UCX reaches from each port is in the settings and the addresses.
    (REACH, |host, count| {
        let setting = |_| json!({ "name": "NCCL_DEBUG", "value": "WARN", "file": "f" });
        let mut settings: Vec<Value> = (0..40 * count).map(setting).collect();
        settings.push(json!({ "name": "UCX_IB_ROCE_LOCAL_SUBNET", "value": "y", "file": "f" }));
        host["settings"] = settings.into();
        let address = |n: usize| json!([format!("10.0.{}.{}", n / 256, n % 256), 24]);
        host["interfaces"][0]["addresses"] = (0..40 * count).map(address).collect();
        host["devices"] = (0..count)
            .map(|n| device(&format!("mlx5_{n}"), &[port(1)], &[row(1, 3, Some(2))]))
            .collect();
    }),
    ("subnets", |host, count| {
        let subnets: Vec<String> =
            (0..count).map(|n| format!("12.0.{}.{}/32", n / 256, n % 256)).collect();
        host["settings"] = json!([{ "name": "UCX_IB_ROCE_SUBNETS", "value": subnets.join(",") }]);
        host["devices"][0]["gids"] = (0..count).map(|n| row(1, n, Some(2))).collect();
    }),
    ("list of devices", |host, count| {
        let names: Vec<String> = (0..count).map(|n| format!("b:{n}")).collect();
        host["settings"] = json!([{ "name": "NVSHMEM_HCA_LIST", "value": names.join(",") },
            { "name": "NVSHMEM_ENABLE_NIC_PE_MAPPING", "value": "1" }]);
        host["devices"] = json!([device("a", &(1..=count).map(port).collect::<Vec<Value>>(), &[])]);
    }),
    ("problems", |host, count| {
        let problem = |n| json!({ "error": format!("host: {n}"), "errno": 5 });
        host["problems"] = (0..count).map(problem).collect();
    }),
    ("absences", |host, count| {
        let absence =
            |n| json!({ "reason": "other_namespace", "device": format!("a{n}"), "node": "b" });
        host["absences"] = (0..count).map(absence).collect();
        host["devices"] = json!([]);
    }),
    ("modules", |host, count| {
        host["modules"] = (0..count).map(|n| format!("module{n}")).collect();
    }),
    ("proprietary", |host, count| {
        host["modules"] = json!(["ib_uverbs", "nvidia"]);
        host["proprietary"] = (0..count).map(|n| format!("module{n}")).collect();
    }),
];

/// Fails if the second step is more than it may be.
#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
#[track_caller]
fn hold(what: &str, words: &[&str], counts: [u64; 3]) {
    let [one, two, four] = counts.map(|count| count as f64);
    let ratio = (four - two) / (two - one);
    println!("{what}: {}: {counts:?}: {ratio:.2}", words.join(" "));
    // What hardly grows has no shape.
    assert!(ratio < MOST || four < 1.05 * one, "{what}: {words:?}: {counts:?}, {ratio:.2}");
}

/// The commands in which all code that looks at a snapshot has a part.
const COMMANDS: [&[&str]; 5] = [
    &["check"],
    &["choose", "--explain", "--like", "nccl"],
    &["env", "ucx"],
    &["fleet"],
    &["expect"],
];

/// Those that read one device at a time.
const READERS: [&[&str]; 2] = [&["gids"], &["ports"]];

fn measure(folder: &Path, name: &str, grow: Grow, words: &[&str]) {
    let counts = [1, 2, 4].map(|times| {
        let mut document = host();
        grow(&mut document, times * COUNT);
        let file = folder.join(format!("{}{times}.json", name.replace(' ', "-")));
        fs::write(&file, document.to_string()).unwrap();
        instructions(words, &[file])
    });
    hold(name, words, counts);
}

/// Ports of InfiniBand, each with an interface of IPoIB.
fn ipoib(host: &mut Value, count: usize) {
    let guid = |n: usize| format!("0x{n:016x}");
    let own = |n: usize| {
        let mut port = port(1);
        port["attributes"][0]["link_layer"] = json!(1);
        port["guid"] = json!(guid(n + 1));
        device(&format!("mlx5_{n}"), &[port], &[])
    };
    host["devices"] = (0..count).map(own).collect();
    let own = |n: usize| {
        let mut own = interface(n + 2, &[]);
        own["port_guid"] = json!(guid(n + 1));
        own
    };
    host["interfaces"] = (0..count).map(own).collect();
}

#[test]
fn interfaces_of_ipoib() {
    if !test_has_its_turn(KINDS.len() + 2, "interfaces of IPoIB") {
        return;
    }
    let folder = TempDir::new().unwrap();
    measure(folder.path(), "ipoib", ipoib, &["ports", "--format", "ibdev2netdev"]);
}

/// The kinds, of which each thread of the tests takes some.
fn share(part: usize) {
    let folder = TempDir::new().unwrap();
    for (number, (name, grow)) in KINDS.iter().enumerate().skip(part).step_by(2) {
        if !has_its_turn(number, name) {
            continue;
        }
        for words in COMMANDS {
            measure(folder.path(), name, *grow, words);
        }
        if matches!(*name, "devices" | "ports" | "gids" | "devices that cannot be read") {
            for words in READERS {
                measure(folder.path(), name, *grow, words);
            }
        }
        if *name == REACH {
            measure(folder.path(), name, *grow, &["fleet", "--hosts", "node"]);
        }
    }
}

#[test]
fn lists_of_a_snapshot() {
    share(0);
}

#[test]
fn other_lists_of_a_snapshot() {
    share(1);
}

/// Hosts whose ports have names of their own, and need other indices.
fn hosts(folder: &Path) -> Vec<PathBuf> {
    let file = |n: usize| {
        let mut document = host();
        document["host"] = json!(format!("node{n}"));
        document["devices"] =
            json!([device(&format!("mlx5_{n}"), &[port(1)], &[row(1, n % 120, Some(2))])]);
        let file = folder.join(format!("{n}.json"));
        fs::write(&file, document.to_string()).unwrap();
        file
    };
    (0..240).map(file).collect()
}

#[test]
fn files() {
    if !test_has_its_turn(KINDS.len(), "files") {
        return;
    }
    let folder = TempDir::new().unwrap();
    let files = hosts(folder.path());
    for words in COMMANDS.iter().chain(&READERS) {
        let counts = [60, 120, 240].map(|count| instructions(words, &files[..count]));
        hold("files", words, counts);
    }
}

/// Hosts, each with another board, and in another site's network; and the same with a device that was not listed.
fn hosts_of_kinds(folder: &Path) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let file = |n: usize| {
        let mut document = host();
        let address = format!("{:x}::1", 0x2000 + n);
        let mut own = row(1, 3, Some(2));
        own["gid"] = json!(address);
        document["host"] = json!(format!("node{n}"));
        document["devices"] = json!(["a", "c"].map(|name| {
            let mut device = device(name, &[port(1)], &[own.clone()]);
            device["hardware"] = json!({ "board_id": format!("board_{n}") });
            device
        }));
        document["interfaces"] = json!([interface(2, &[json!([address, 64])])]);
        let [file, partial] = ["", "-partial"].map(|own| folder.join(format!("{n}{own}.json")));
        fs::write(&file, document.to_string()).unwrap();
        document["unlisted"] = json!([{ "device": "b", "problem": { "error": "no", "errno": 5 } }]);
        fs::write(&partial, document.to_string()).unwrap();
        (file, partial)
    };
    (0..240).map(file).unzip()
}

/// Groups of which nothing is said, as a group before them has the unlisted device, or one after them that which is not
/// asked about; and many names that an earlier group has.
#[test]
fn groups_that_others_are_before() {
    if !test_has_its_turn(KINDS.len() + 1, "groups that others are before") {
        return;
    }
    let folder = TempDir::new().unwrap();
    let (files, partial) = hosts_of_kinds(folder.path());
    let expected = folder.path().join("all.toml");
    let words = ["check", "--expect", expected.to_str().unwrap(), "a"];
    let groups = |count: usize, own: &str| {
        let group = |n| format!("[[devices]]\nboard = 'other_{n}'\ncount = {own}\n");
        (0..count).map(group).collect::<String>()
    };
    let names = |count: usize| {
        let names = (0..4 * count).map(|n| format!("'x{n}'")).collect::<Vec<String>>().join(", ");
        format!("[[devices]]\nname = [{names}]\n")
    };
    let first = |count: usize| "[[devices]]\nname = 'b'\n".to_owned() + &groups(count, "[0, 9]");
    let last = |count: usize| groups(count, "1") + "[[devices]]\nname = 'c'\n";
    let twice = |count: usize| names(count) + &names(count) + "board = 'x'\ncount = 5\n";
    let cases: [(&str, &[&str], &[PathBuf], Expected<'_>); 3] = [
        ("after the unlisted one's", &words[..3], &partial, &first),
        ("before that of another", &words, &files, &last),
        ("with names of another", &words[..3], &files, &twice),
    ];
    for (what, words, files, text) in cases {
        let counts = [60, 120, 240].map(|count| {
            fs::write(&expected, text(count)).unwrap();
            instructions(words, &files[..count])
        });
        hold(&format!("groups {what}"), &words[..2], counts);
    }
}

#[test]
fn hosts_of_many_kinds() {
    if !test_has_its_turn(KINDS.len() + 1, "hosts of many kinds") {
        return;
    }
    let folder = TempDir::new().unwrap();
    let (files, partial) = hosts_of_kinds(folder.path());
    let counts = [60, 120, 240].map(|count| instructions(&["expect"], &files[..count]));
    hold("hosts of many kinds", &["expect"], counts);
    // What is expected of all is looked through once, and not for each.
    let expected = folder.path().join("all.toml");
    let words = ["check", "--expect", expected.to_str().unwrap(), "a"];
    let (named, counted) = ("name = ['a', 'a{n}']\n", "count = { min = 0, max = 2 }\n");
    for (what, words, files, own) in [
        ("hosts", &words[..3], &files, [named, counted]),
        ("partial hosts", &words[..3], &partial, [named, counted]),
        ("partial hosts of boards", &words[..3], &partial, ["", ""]),
        ("one device of hosts of boards", &words, &files, ["", counted]),
    ] {
        let group = |n: usize| {
            let own = own.concat().replace("{n}", &n.to_string());
            format!("[[devices]]\nboard = 'board_{n}'\n{own}")
        };
        let counts = [60, 120, 240].map(|count| {
            fs::write(&expected, (0..count).map(group).collect::<String>()).unwrap();
            instructions(words, &files[..count])
        });
        hold(&format!("{what} and groups of many kinds"), &words[..2], counts);
    }
}

/// Hosts that are alike but for their addresses, and hosts that are odd each in its own way.
#[test]
fn fleets() {
    if !test_has_its_turn(KINDS.len(), "fleets") {
        return;
    }
    let folder = TempDir::new().unwrap();
    for is_odd in [false, true] {
        let file = |n: usize| {
            let mut document = host();
            let mut own = row(1, n, Some(2));
            let name = |odd: usize| if is_odd { odd } else { 0 };
            own["index"] = json!(name(n));
            document["host"] = json!(format!("node{n}"));
            document["kernel"] = json!(format!("6.12.{}", name(n)));
            document["devices"] = json!([device("a", &[port(1)], &[own.clone()])]);
            document["devices"][0]["node_guid"] = json!(format!("0x{:016x}", n + 1));
            let address = own["gid"].as_str().unwrap().trim_start_matches("::ffff:");
            let bits = if is_odd { 31 } else { 8 };
            document["interfaces"] = json!([interface(2, &[json!([address, bits])])]);
            let file = folder.path().join(format!("{n}-{is_odd}.json"));
            fs::write(&file, document.to_string()).unwrap();
            file
        };
        let files: Vec<PathBuf> = (0..240).map(file).collect();
        for words in [
            &["fleet"] as &[&str],
            &["fleet", "--all-to-all"],
            &["fleet", "--hosts", "node[0-239]"],
        ] {
            let counts = [60, 120, 240].map(|count| instructions(words, &files[..count]));
            hold(if is_odd { "odd hosts" } else { "equal hosts" }, words, counts);
        }
    }
}

/// Each host has one of the devices that are named, and lacks all others.
#[test]
fn files_and_selectors() {
    if !test_has_its_turn(KINDS.len() + 2, "files and selectors") {
        return;
    }
    let folder = TempDir::new().unwrap();
    let files = hosts(folder.path());
    let names: Vec<String> = (0..files.len()).map(|n| format!("mlx5_{n}")).collect();
    for words in [&["gids"] as &[&str], &["ports"], &["choose"], &["env", "ucx"], &["check"]] {
        let counts = [60, 120, 240].map(|count| {
            let own: Vec<&str> = names[..count].iter().map(String::as_str).collect();
            instructions(&[words, &own].concat(), &files[..count])
        });
        hold("files and selectors", words, counts);
    }
}

/// Names of devices and ports on the command line.
#[test]
fn selectors() {
    if !test_has_its_turn(KINDS.len() + 1, "selectors") {
        return;
    }
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("node.json");
    for words in [&["ports"] as &[&str], &["env", "ucx"], &["choose"]] {
        let counts = [1, 2, 4].map(|times| {
            let count = times * COUNT;
            let mut document = host();
            let gids: Vec<Value> = (1..=count).map(|n| row(n, 3, Some(2))).collect();
            document["devices"] =
                json!([device("a", &(1..=count).map(port).collect::<Vec<Value>>(), &gids)]);
            fs::write(&file, document.to_string()).unwrap();
            let names: Vec<String> = (1..=count).map(|n| format!("a:{n}")).collect();
            let names = names.iter().map(String::as_str);
            let words: Vec<&str> = words.iter().copied().chain(names).collect();
            instructions(&words, std::slice::from_ref(&file))
        });
        hold("selectors", words, counts);
    }
}

/// Groups of a file with what is expected, and values of a group that are allowed. A device is of one of the groups, or of
/// none.
#[test]
fn groups_that_are_expected() {
    if !test_has_its_turn(KINDS.len() + 1, "groups that are expected") {
        return;
    }
    let folder = TempDir::new().unwrap();
    let file = |name: &str| folder.path().join(name);
    for key in ["name", "board", "driver", "firmware", "roce_v2_ipv4", "unread", "unlisted"] {
        let counts = [1, 2, 4].map(|times| {
            let mut document = with_devices(times * COUNT);
            for (n, own) in document["devices"].as_array_mut().unwrap().iter_mut().enumerate() {
                let board = if key == "driver" { "one".to_owned() } else { format!("board_{n}") };
                own["hardware"] = json!({ "board_id": board });
                if key == "unread" {
                    own["driver"] = Value::Null;
                }
            }
            if key == "unlisted" {
                let problem = json!({ "error": "no", "errno": 5 });
                let own = |n| json!({ "device": format!("mlx4_{n}"), "problem": problem });
                document["unlisted"] = (0..times * COUNT).map(own).collect();
            }
            let group = |n: usize| {
                let own = match key {
                    "unread" if n == 0 => "driver = 'unknown(1000)'".to_owned(),
                    "unread" | "unlisted" => format!("name = 'other_{n}'"),
                    "name" => format!("name = 'mlx5_{}'", 2 * n),
                    "board" => format!("board = 'board_{}'", 2 * n),
                    // Of the board that all devices have, and not of their driver.
                    _ => format!("board = 'one'\ndriver = 'unknown({})'", n + 1000),
                };
                format!("[[devices]]\n{own}\ncount = 1\n")
            };
            // Several for each device, as most of the cost is to read the host.
            let all = 0..4 * times * COUNT;
            let groups: String = match key {
                "firmware" | "roce_v2_ipv4" => {
                    let network = |n: u32| std::net::Ipv4Addr::from_bits(n << 8);
                    let value = |n: usize| match key {
                        "firmware" => format!("'{n}'"),
                        _ => format!("'{}/24'", network(u32::try_from(n).unwrap() + 1)),
                    };
                    let values: Vec<String> = all.map(value).collect();
                    format!("[[devices]]\n{key} = [{}]\n", values.join(", "))
                }
                _ => all.map(group).collect(),
            };
            let (host, expected) = (file("host.json"), file("host.toml"));
            fs::write(&host, document.to_string()).unwrap();
            fs::write(&expected, groups).unwrap();
            instructions(&["check", "--expect", expected.to_str().unwrap()], &[host])
        });
        hold(key, &["check", "--expect"], counts);
    }
}

/// A line that begins a recording, with this host.
fn begun(number: usize, host: &Value) -> String {
    let head = json!({
        "number": number, "time": time(number), "monotonic_ns": number * SECOND, "goes_on": number > 0,
    });
    let mut rest = host.clone();
    rest.as_object_mut().unwrap().remove("schema_version");
    format!(r#"{{"schema_version":1,"recording":{head},{}"#, &rest.to_string()[1..])
}

fn line(number: usize, changes: &[Value]) -> String {
    line_at(number, (number, number), changes)
}

/// The same at a time of both clocks.
fn line_at(number: usize, (seconds, passed): (usize, usize), changes: &[Value]) -> String {
    let changes = Value::from(changes.to_vec());
    let (time, passed) = (time(seconds), passed * SECOND);
    format!(
        r#"{{"number":{number},"time":"{time}","monotonic_ns":{passed},"causes":["route"],"changes":{changes}}}"#
    )
}

/// In nanoseconds.
const SECOND: usize = 1_000_000_000;

fn time(number: usize) -> String {
    format!("2026-11-22T{:02}:{:02}:{:02}.000Z", number / 3600, number / 60 % 60, number % 60)
}

/// What is expected of so many hosts, as a file.
type Expected<'a> = &'a dyn Fn(usize) -> String;

/// The lines of a recording with so many elements of a kind.
type Record = fn(usize) -> Vec<String>;

/// Of lines that change no choice of a host, however many ports and rows it has.
const LIKE: &[&str] = &["history", "--like", "nccl"];
/// Of a moment before the second line.
const AT: &[&str] = &["guids", "--at", "2026-11-22T00:00:30Z"];

fn with_devices(count: usize) -> Value {
    let mut host = host();
    let own = |n| device(&format!("mlx5_{n}"), &[port(1)], &[row(1, n, Some(2))]);
    host["devices"] = (0..count).map(own).collect();
    host
}

fn with_rows(count: usize) -> Value {
    let mut host = host();
    host["devices"][0]["gids"] = (0..count).map(|n| row(1, n, Some(2))).collect();
    host
}

/// Recordings, and which command reads them beside those that read all.
const RECORDINGS: &[(&str, &[&str], Record)] = &[
    ("lines of a recording", &[], |count| {
        let change = |n: usize| {
            line(n + 1, &[json!({ "device": format!("mlx5_{n}"), "row": row(1, n, None) })])
        };
        [begun(0, &with_devices(count))].into_iter().chain((0..count).map(change)).collect()
    }),
    ("lines about rows of one table", &[], |count| {
        let change = |n: usize| line(n + 1, &[json!({ "device": "a", "row": row(1, n, None) })]);
        [begun(0, &with_rows(count))].into_iter().chain((0..count).map(change)).collect()
    }),
    ("changes of a line", &[], |count| {
        let change = |n: usize| json!({ "device": format!("mlx5_{n}"), "row": row(1, n, None) });
        vec![
            begun(0, &with_devices(count)),
            line(1, &(0..count).map(change).collect::<Vec<Value>>()),
        ]
    }),
    ("events", LIKE, |count| {
        let event =
            |n: usize| line(n + 1, &[json!({ "device": format!("mlx5_{n}"), "event": [17, 1] })]);
        [begun(0, &with_devices(count))].into_iter().chain((0..count).map(event)).collect()
    }),
    ("rows that move", &[], |count| {
        let gids = |n: usize| row(1, n, Some(2));
        let moved = |n: usize| {
            let mut row = row(1, count - n, Some(2));
            row["index"] = n.into();
            row
        };
        let [mut one, mut other] = [host(), host()];
        one["devices"][0]["gids"] = (0..count).map(gids).collect();
        other["devices"][0]["gids"] = (0..count).map(moved).collect();
        vec![begun(0, &one), begun(1, &other)]
    }),
    ("interfaces that matter to no device", LIKE, |count| {
        let change = |n: usize| {
            let mut own = interface(100, &[]);
            own["is_lower_up"] = (n % 2 == 1).into();
            line(n + 1, &[json!({ "interface": own })])
        };
        [begun(0, &with_rows(count))].into_iter().chain((0..count).map(change)).collect()
    }),
    ("interfaces that get another name", &[], |count| {
        let mut host = with_rows(2);
        host["interfaces"] = (0..count).map(|n| interface(100 + n, &[])).collect();
        let change = |n: usize| {
            let names = [interface(100 + n, &[])["name"].take(), format!("new{n}").into()];
            line(n + 1, &[json!({ "ifindex": 100 + n, "renamed": names })])
        };
        [begun(0, &host)].into_iter().chain((0..count).map(change)).collect()
    }),
    ("changes of the host", &[], |count| {
        let change = |n: usize| {
            let mut own = host();
            own["modules"] = json!([format!("module{n}")]);
            own["devices"] = json!([]);
            line(n + 1, &[json!({ "host": own })])
        };
        [begun(0, &with_rows(count))].into_iter().chain((0..count).map(change)).collect()
    }),
    ("a small device beside a large one", &[], |count| {
        let mut host = with_rows(count);
        let small = device("b", &[], &[]);
        host["devices"].as_array_mut().unwrap().push(small.clone());
        let change = |n: usize| {
            let gone = json!({ "device": "b", "is_gone": true });
            line(n + 1, &[if n % 2 == 0 { gone } else { json!({ "whole": small }) }])
        };
        [begun(0, &host)].into_iter().chain((0..count).map(change)).collect()
    }),
    ("lines after one that is missing", &[], |count| {
        let change = |n: usize| line(n + 2, &[json!({ "ifindex": 2, "renamed": ["a", "b"] })]);
        [begun(0, &with_rows(count))].into_iter().chain((0..count).map(change)).collect()
    }),
    ("a clock that goes to and fro", AT, |count| {
        let change = |n: usize| {
            let times = ((n + 1) % 2 * 60, (n + 1) * 60);
            line_at(n + 1, times, &[json!({ "device": "a", "row": row(1, n, Some(2)) })])
        };
        [begun(0, &with_rows(count))].into_iter().chain((0..count).map(change)).collect()
    }),
];

/// A recording may come from anyone, as a snapshot does.
#[test]
fn recordings() {
    let folder = TempDir::new().unwrap();
    for (number, (name, more, record)) in RECORDINGS.iter().enumerate() {
        if !has_its_turn(KINDS.len() + 3 + number, name) {
            continue;
        }
        let file = folder.path().join("record.jsonl");
        let all: [&[&str]; 3] = [&["history"], &["guids", "--at", "end"], more];
        for words in all.into_iter().filter(|own| !own.is_empty()) {
            let counts = [1, 2, 4].map(|times| {
                fs::write(&file, record(times * COUNT).join("\n") + "\n").unwrap();
                match words {
                    ["history", rest @ ..] => {
                        let own = ["history", file.to_str().unwrap()];
                        instructions(&[&own, rest].concat(), &[])
                    }
                    _ => instructions(words, std::slice::from_ref(&file)),
                }
            });
            hold(name, words, counts);
        }
    }
}

/// Devices of a sysfs tree, each with a port and nodes.
#[test]
fn devices_of_a_tree() {
    if !test_has_its_turn(KINDS.len() + 3, "devices of a tree") {
        return;
    }
    let folder = TempDir::new().unwrap();
    let trees = [60, 120, 240].map(|count| {
        let root = folder.path().join(count.to_string());
        (0..count).for_each(|number| write_device(&root.join("class"), number));
        fs::create_dir_all(root.join("module/ib_core")).unwrap();
        fs::write(root.join("class/infiniband_verbs/abi_version"), "6").unwrap();
        fs::write(root.join("class/infiniband_mad/abi_version"), "5").unwrap();
        root
    });
    for words in [
        &["devices"] as &[&str],
        &["ports"],
        &["gids"],
        &["guids"],
        &["pkeys"],
        &["cdi"],
        &["check"],
        &["choose"],
        &["snapshot"],
        &["metrics"],
        &["nfd"],
    ] {
        let counts = trees.each_ref().map(|root| {
            let own = ["--sysfs", root.to_str().unwrap()];
            instructions(&[words, &own].concat(), &[])
        });
        hold("devices of a tree", words, counts);
    }
}

fn write_device(class: &Path, number: usize) {
    let name = format!("mlx5_{number}");
    let port = format!("infiniband/{name}/ports/1");
    let node = |of: &str, file: &str| format!("infiniband_{of}{number}/{file}");
    let guid = format!("0002:c903:0000:{number:04x}");
    for (file, text) in [
        (format!("infiniband/{name}/node_type"), "1: CA"),
        (format!("infiniband/{name}/node_guid"), &guid),
        (format!("infiniband/{name}/sys_image_guid"), &guid),
        (format!("{port}/state"), "4: ACTIVE"),
        (format!("{port}/phys_state"), "5: LinkUp"),
        (format!("{port}/link_layer"), "Ethernet"),
        (format!("{port}/rate"), "100 Gb/sec (4X EDR)"),
        (format!("{port}/lid"), "0x0"),
        (format!("{port}/sm_lid"), "0x0"),
        (format!("{port}/sm_sl"), "0"),
        (format!("{port}/lid_mask_count"), "0"),
        (format!("{port}/cap_mask"), "0x0"),
        (format!("{port}/pkeys/0"), "0xffff"),
        (format!("{port}/gids/0"), "fe80:0000:0000:0000:0011:22ff:fe33:4455"),
        (format!("{port}/gid_attrs/types/0"), "RoCE v2"),
        (format!("{port}/gid_attrs/ndevs/0"), "eth0"),
        (node("verbs/uverbs", "ibdev"), &name),
        (node("verbs/uverbs", "dev"), "231:192"),
        (node("mad/umad", "ibdev"), &name),
        (node("mad/umad", "dev"), "231:0"),
        (node("mad/umad", "port"), "1"),
    ] {
        let path = class.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}
