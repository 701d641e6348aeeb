//! Each kind of list that a snapshot has.

use std::fs;
use std::path::Path;
use std::slice;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::count::{COMMANDS, COUNT, READERS, hold, instructions};
use crate::host::{device, host, interface, port, row, with_devices};
use crate::turn::{has_its_turn, test_has_its_turn};

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

fn measure(folder: &Path, name: &str, grow: Grow, words: &[&str]) {
    let file = folder.join("host.json");
    hold(name, words, COUNT, |count| {
        let mut document = host();
        grow(&mut document, count);
        fs::write(&file, document.to_string()).unwrap();
        instructions(words, slice::from_ref(&file))
    });
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
    if !test_has_its_turn(4, "interfaces of IPoIB") {
        return;
    }
    let folder = TempDir::new().unwrap();
    measure(folder.path(), "ipoib", ipoib, &["ports", "--format", "ibdev2netdev"]);
}

/// Names of devices and ports on the command line.
#[test]
fn selectors() {
    if !test_has_its_turn(3, "selectors") {
        return;
    }
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("node.json");
    for words in [&["ports"] as &[&str], &["env", "ucx"], &["choose"]] {
        hold("selectors", words, COUNT, |count| {
            let mut document = host();
            let gids: Vec<Value> = (1..=count).map(|n| row(n, 3, Some(2))).collect();
            document["devices"] =
                json!([device("a", &(1..=count).map(port).collect::<Vec<Value>>(), &gids)]);
            fs::write(&file, document.to_string()).unwrap();
            let names: Vec<String> = (1..=count).map(|n| format!("a:{n}")).collect();
            let names = names.iter().map(String::as_str);
            let words: Vec<&str> = words.iter().copied().chain(names).collect();
            instructions(&words, slice::from_ref(&file))
        });
    }
}
