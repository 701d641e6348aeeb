//! What is expected of hosts, as `expect` writes it and `check --expect` reads it.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::count::{COUNT, hold, instructions};
use crate::host::{device, host, interface, port, row, with_devices};
use crate::turn::test_has_its_turn;

/// What is expected of so many hosts, as a file.
type Expected<'a> = &'a dyn Fn(usize) -> String;

/// Groups of a file with what is expected, and values of a group that are allowed. A device is of one of the groups, or of
/// none.
#[test]
fn groups_that_are_expected() {
    if !test_has_its_turn(3, "groups that are expected") {
        return;
    }
    let folder = TempDir::new().unwrap();
    let file = |name: &str| folder.path().join(name);
    for key in ["name", "board", "driver", "firmware", "roce_v2_ipv4", "unread", "unlisted"] {
        hold(key, &["check", "--expect"], COUNT, |count| {
            let mut document = with_devices(count);
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
                document["unlisted"] = (0..count).map(own).collect();
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
            let all = 0..4 * count;
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
    if !test_has_its_turn(3, "groups that others are before") {
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
        hold(&format!("groups {what}"), &words[..2], 60, |count| {
            fs::write(&expected, text(count)).unwrap();
            instructions(words, &files[..count])
        });
    }
}

#[test]
fn hosts_of_many_kinds() {
    if !test_has_its_turn(3, "hosts of many kinds") {
        return;
    }
    let folder = TempDir::new().unwrap();
    let (files, partial) = hosts_of_kinds(folder.path());
    let words = ["expect"];
    hold("hosts of many kinds", &words, 60, |count| instructions(&words, &files[..count]));
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
        hold(&format!("{what} and groups of many kinds"), &words[..2], 60, |count| {
            fs::write(&expected, (0..count).map(group).collect::<String>()).unwrap();
            instructions(words, &files[..count])
        });
    }
}
