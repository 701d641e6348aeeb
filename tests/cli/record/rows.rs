//! `uverbs history` of a row: what it says last is so, whatever happened to the row, its port and its device.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::Value;
use tempfile::TempDir;
use uverbs::inventory::{DeviceRecord, Inventory, Problem};
use uverbs::watch::{Entry, Lines, Recording, parse_time};

use super::{at, history, made, texts, whats};
use crate::conforms::conforms;
use crate::run::{finish, program};
use crate::tree::Tree;

/// What may be read of a host, or not, of which `x0:1 2` is asked for.
#[derive(Clone, Debug)]
struct World {
    devices: BTreeMap<u8, Device>,
    /// The number of a device that could not be listed.
    unlisted: Option<u8>,
    problem: Option<&'static str>,
}

#[derive(Clone, Debug)]
struct Device {
    /// The kernel's number of it.
    index: u32,
    firmware: u8,
    /// The length of its GID table.
    len: Option<u32>,
    gids: Option<BTreeMap<u32, u8>>,
}

/// What a row is.
#[derive(Clone, Debug, PartialEq)]
enum Slot {
    Absent,
    Unread(String),
    Empty,
    Taken(String),
}

const REFUSED: &str = "host: netlink refused";
const NO_LIST: &str = "host: ENOMEM";

fn gid(low: u8) -> String {
    format!("::ffff:10.0.0.{low}")
}

fn device() -> impl Strategy<Value = Device> {
    let gids = proptest::option::weighted(0.8, btree_map(0u32..4, 1u8..3, 0..4));
    let len = proptest::option::weighted(0.8, 1u32..5);
    (1u32..4, 0u8..2, len, gids).prop_map(|(index, firmware, len, gids)| Device {
        index,
        firmware,
        len,
        gids,
    })
}

fn world() -> impl Strategy<Value = World> {
    let devices = btree_map(0u8..2, device(), 0..3);
    let unlisted = proptest::option::weighted(0.3, 0u8..2);
    let problem = prop_oneof![4 => Just(None), 1 => Just(Some(NO_LIST)), 1 => Just(Some("host: no interfaces")), 1 => Just(Some(REFUSED))];
    (devices, unlisted, problem).prop_map(|(mut devices, unlisted, problem)| {
        // A name and a number are of one device.
        if let [Some(one), Some(other)] = [0, 1].map(|name| devices.get(&name).map(|own| own.index))
            && one == other
        {
            devices.remove(&1);
        }
        let unlisted = unlisted.filter(|name| !devices.contains_key(name));
        World { devices, unlisted, problem }
    })
}

impl World {
    fn inventory(&self) -> Inventory {
        let mut host = Inventory::default();
        host.interfaces = Some(Vec::new());
        let problem = |text: &str| Problem { text: text.to_owned(), errno: 24 };
        host.problems.extend(self.problem.map(problem));
        host.list_failure = self.problem.filter(|own| *own == NO_LIST).map(problem);
        host.without_netlink = self.problem.filter(|own| *own == REFUSED).map(problem);
        host.unlisted.extend(self.unlisted.map(|name| (format!("x{name}"), problem("unlisted"))));
        host.devices = self.devices.iter().map(|(name, own)| own.record(*name)).collect();
        host
    }

    fn slot(&self) -> Slot {
        let unread = |why: &str| Slot::Unread(why.to_owned());
        let Some(own) = self.devices.get(&0) else {
            return match self.problem {
                _ if self.unlisted == Some(0) => unread("unlisted"),
                Some(why) if why == NO_LIST => unread(why),
                _ => Slot::Absent,
            };
        };
        let row = own.gids.as_ref().map(|gids| gids.get(&2));
        match (row, own.len) {
            (Some(Some(low)), _) => Slot::Taken(gid(*low)),
            (_, Some(..3)) => Slot::Absent,
            (None, _) => unread("gids"),
            // Not if the slot was seen.
            (Some(None), None) => unread("attributes"),
            (Some(None), Some(_)) => Slot::Empty,
        }
    }
}

impl Device {
    fn record(&self, name: u8) -> DeviceRecord {
        let unread = |text: &str| serde_json::json!({ "error": text, "errno": 5 });
        let attributes = |len: u32| {
            serde_json::json!([{
                "state": 4, "phys_state": 5, "link_layer": 2, "lid": 0, "sm_lid": 0, "sm_sl": 0,
                "lmc": 0, "gid_tbl_len": len, "pkey_tbl_len": 1, "port_cap_flags": 0,
            }, "ioctl"])
        };
        let row = |(index, low): (&u32, &u8)| {
            serde_json::json!({
                "port": 1, "index": index, "gid": gid(*low), "gid_type": 2, "ifindex": null,
                "source": "ioctl", "netdev": null, "type_is_hidden": false,
            })
        };
        let rows = |own: &BTreeMap<u32, u8>| own.iter().map(row).collect::<Value>();
        let own = serde_json::json!({
            "name": format!("x{name}"), "node_type": 1, "node_guid": "0x0002c90300000004",
            "sys_image_guid": "0x0002c90300000004", "access": true, "node": null,
            "fw_version": self.firmware.to_string(),
            "gids": self.gids.as_ref().map_or_else(|| unread("gids"), rows),
            "ports": [{
                "number": 1, "guid": null, "pkeys": null,
                "attributes": self.len.map_or_else(|| unread("attributes"), attributes),
            }],
        });
        let mut own: DeviceRecord = serde_json::from_value(own).unwrap();
        own.device.index = Some(self.index);
        own
    }
}

/// What a line says of the row, if it does.
fn said(line: &Value) -> Option<Slot> {
    let side = |side: &str| {
        let own = &line[side];
        match own["error"].as_str() {
            Some(error) => Slot::Unread(error.to_owned()),
            None if own.is_null() => Slot::Empty,
            None if own.is_string() => Slot::Absent,
            None => Slot::Taken(own["gid"].as_str().unwrap().to_owned()),
        }
    };
    let is_row = |own: &str| line[own]["index"] == 2;
    match line["what"].as_str().unwrap() {
        "was" => Some(side("after")),
        "gids_readable" if line["after"]["error"].is_string() => Some(side("after")),
        "gid_came" | "gid_changed" | "gid_moved" if is_row("after") => Some(side("after")),
        "gid_went" | "gid_moved" if is_row("before") => Some(Slot::Empty),
        _ => None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(100) })]

    #[test]
    fn what_is_said_last_is_so(worlds in vec(world(), 1..12)) {
        let mut snapshots = Lines::new();
        let text: String =
            worlds.iter().map(|own| snapshots.begin(&own.inventory(), true).unwrap() + "\n").collect();
        let (mut recording, mut lines) = (Recording::new(text.as_bytes()), Lines::new());
        let (mut text, mut moments) = (String::new(), Vec::new());
        while let Some(Ok(Entry::Moment(mut moment))) = recording.next() {
            // A second for each: the clocks are read once.
            let passed = Duration::from_secs(moments.len() as u64);
            let before = recording.inventory().cloned();
            recording.apply(&mut moment).unwrap();
            let after = recording.inventory().unwrap();
            let Some(before) = before else {
                text = lines.begin(after, false).unwrap() + "\n";
                let head: Value = serde_json::from_str(&text).unwrap();
                let head = &head["recording"];
                let time = parse_time(head["time"].as_str().unwrap()).unwrap();
                moments.push((time, Duration::from_nanos(head["monotonic_ns"].as_u64().unwrap())));
                continue;
            };
            let (time, monotonic) = (moments[0].0 + passed, moments[0].1 + passed);
            let mut changes = moment.changes(&before, after);
            for own in &mut changes {
                (own.time, own.monotonic) = (time, monotonic);
            }
            text.extend(lines.changes(&changes, after).unwrap().map(|line| line + "\n"));
            moments.push((time, monotonic));
        }
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("record.jsonl");
        fs::write(&file, &text).unwrap();
        let run = finish(program().args(["history", "--json"]).arg(&file).args(["x0:1", "2"]));
        let document: Value = serde_json::from_str(&run.stdout).unwrap();
        conforms("history.json", &document);
        let mut lines = document["history"].as_array().unwrap().iter().peekable();
        let (mut last, mut before) = (Slot::Absent, Vec::new());
        prop_assert_eq!(worlds.len(), moments.len());
        for (world, (_, now)) in worlds.iter().zip(&moments) {
            let (now, slot) = (u64::try_from(now.as_nanos()).unwrap(), world.slot());
            while let Some(line) = lines.next_if(|line| line["monotonic_ns"].as_u64() <= Some(now)) {
                // A table has no more slots because it cannot be read.
                let is_no_slot = line["what"] == "gids_readable" && slot == Slot::Absent;
                last = said(line).filter(|_| !is_no_slot).unwrap_or(last);
            }
            let device = world.devices.get(&0).map(|own| own.index);
            let is_so = match (&slot, &last) {
                (Slot::Absent, Slot::Unread(_)) => false,
                (Slot::Absent, _) => true,
                // The same device had the slot, whatever its name was, and has it still.
                (Slot::Unread(why), Slot::Empty) if why == "attributes" => before.contains(&device),
                _ => slot == last,
            };
            prop_assert!(is_so, "{now}: {slot:?}, not {last:?}: {}\n{worlds:#?}", run.stdout);
            before = world.devices.values().map(|own| Some(own.index)).collect();
        }
        prop_assert!(lines.next().is_none());
    }
}

/// An index that no table ever had is no empty slot, as for `gid`.
#[test]
fn a_row_outside_the_table_has_no_history() {
    let (tree, folder) = (Tree::new(), TempDir::new().unwrap());
    tree.with_roce();
    let file = folder.path().join("record.jsonl");
    made(&tree, &file, &[("12:00:00", 0, None)]);
    let row = |index: &str| finish(program().arg("history").arg(&file).args(["mlx5_0:1", index]));
    let run = row("11");
    assert!(run.stdout.ends_with("  empty\n") && run.status == 0, "{run:?}");
    let run = row("12");
    assert_eq!((run.stdout.lines().count(), run.status), (1, 1), "{run:?}");
    let said = at(&["gid", "mlx5_0:1", "12"], &file, "end").stderr;
    let said = said.lines().last().unwrap().split_once(": mlx5_0").unwrap().1.to_owned();
    assert_eq!(run.stderr, format!("uverbs: mlx5_0{said}\n"));

    // A table that grew has room later, and one that was not read then may have. Other lines of that moment do not say it.
    let first: Value = serde_json::from_str(&texts(&file)[0]).unwrap();
    let mut grown = first["devices"][0].clone();
    grown["ports"][0]["attributes"][0]["gid_tbl_len"] = 16.into();
    let (mut unread, mut changed, mut came) = (grown.clone(), grown.clone(), grown.clone());
    unread["ports"][0]["attributes"] = serde_json::json!({ "error": "no port", "errno": 5 });
    changed["fw_version"] = "2".into();
    came["name"] = "mlx5_9".into();
    let change = |device: &Value| Some(serde_json::json!([{ "whole": device }]));
    let was = &["began", "was"][..];
    for (device, port, expected) in [
        (&grown, "mlx5_0:1", was),
        (&unread, "mlx5_0:1", was),
        (&changed, "mlx5_0:1", &["began", "device_changed", "was"]),
        (&came, "mlx5_9:1", &["began", "device_came", "was"]),
    ] {
        made(&tree, &file, &[("12:00:00", 0, None), ("12:01:00", 1, change(device))]);
        let lines = history(&file, &[port, "12"]);
        assert_eq!(whats(&lines), expected);
        assert!(lines.last().unwrap()["time"].as_str().unwrap().contains("T12:01:00"), "{lines:?}");
    }
    // Once it can be read, it is said again.
    let parts = [
        ("12:00:00", 0, None),
        ("12:01:00", 1, change(&unread)),
        ("12:02:00", 2, change(&grown)),
        ("12:03:00", 3, change(&changed)),
    ];
    made(&tree, &file, &parts);
    let lines = history(&file, &["mlx5_0:1", "12"]);
    assert_eq!(whats(&lines), ["began", "was", "was", "device_changed"]);
    assert_eq!((&lines[1]["after"]["errno"], &lines[2]["after"]), (&5.into(), &Value::Null));
    // A table that could not be read for a while may have another row then.
    let mut refused = first["devices"][0].clone();
    let row = refused["gids"][0].clone();
    refused["gids"] = serde_json::json!({ "error": "no table", "errno": 5 });
    let parts = [
        ("12:00:00", 0, None),
        ("12:01:00", 1, change(&refused)),
        ("12:02:00", 2, change(&first["devices"][0])),
    ];
    made(&tree, &file, &parts);
    let lines = history(&file, &["mlx5_0:1", &row["index"].to_string()]);
    assert_eq!(whats(&lines), ["began", "was", "gids_readable", "gids_readable", "was"]);
    assert_eq!((&lines[1]["after"], &lines[4]["after"]["gid"]), (&lines[4]["after"], &row["gid"]));
    // Nor is it known after a line that cannot be read.
    made(
        &tree,
        &file,
        &[("12:00:00", 0, None), ("12:01:00", 1, change(&refused)), ("12:02:00", 2, None)],
    );
    let text = fs::read_to_string(&file).unwrap().replace(r#""changes":["#, r#""changes":[7,"#);
    fs::write(&file, text).unwrap();
    let run = finish(program().args(["history", "--json"]).arg(&file).args(["mlx5_0:1", "3"]));
    let document: Value = serde_json::from_str(&run.stdout).unwrap();
    let lines = document["history"].as_array().unwrap();
    assert_eq!(whats(lines), ["began", "was", "not_recorded", "was"], "{run:?}");
    made(&tree, &file, &parts);
    // Outside it there is no row, whatever could not be read.
    let run = finish(program().arg("history").arg(&file).args(["mlx5_0:1", "99"]));
    assert!(run.status == 1 && !run.stdout.contains("was"), "{run:?}");
    // A port that there is not has no slots.
    let run = finish(program().args(["history", "--json"]).arg(&file).args(["mlx5_0:7", "3"]));
    assert!(run.status == 1 && !run.stdout.contains("\"was\""), "{run:?}");
}
