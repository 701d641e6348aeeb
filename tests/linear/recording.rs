//! Recordings. One may come from anyone, as a snapshot does.

use std::fs;
use std::slice;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::count::{COUNT, hold, instructions};
use crate::host::{device, host, interface, row, with_devices, with_rows};
use crate::turn::has_its_turn;

/// The lines of a recording with so many elements of a kind.
type Record = fn(usize) -> Vec<String>;

/// Of lines that change no choice of a host, however many ports and rows it has.
const LIKE: &[&str] = &["history", "--like", "nccl"];

/// Of a moment before the second line.
const AT: &[&str] = &["guids", "--at", "2026-11-22T00:00:30Z"];

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

#[test]
fn recordings() {
    let folder = TempDir::new().unwrap();
    for (number, (name, more, record)) in RECORDINGS.iter().enumerate() {
        if !has_its_turn(5 + number, name) {
            continue;
        }
        let file = folder.path().join("record.jsonl");
        let all: [&[&str]; 3] = [&["history"], &["guids", "--at", "end"], more];
        for words in all.into_iter().filter(|own| !own.is_empty()) {
            hold(name, words, COUNT, |count| {
                fs::write(&file, record(count).join("\n") + "\n").unwrap();
                match words {
                    ["history", rest @ ..] => {
                        let own = ["history", file.to_str().unwrap()];
                        instructions(&[&own, rest].concat(), &[])
                    }
                    _ => instructions(words, slice::from_ref(&file)),
                }
            });
        }
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
