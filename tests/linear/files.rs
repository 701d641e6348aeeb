//! Many files, each of another host.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;
use tempfile::TempDir;

use crate::count::{COMMANDS, READERS, hold, instructions};
use crate::host::{device, host, interface, port, row};
use crate::turn::test_has_its_turn;

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
    if !test_has_its_turn(2, "files") {
        return;
    }
    let folder = TempDir::new().unwrap();
    let files = hosts(folder.path());
    for words in COMMANDS.iter().chain(&READERS) {
        hold("files", words, 60, |count| instructions(words, &files[..count]));
    }
}

/// Each host has one of the devices that are named, and lacks all others.
#[test]
fn files_and_selectors() {
    if !test_has_its_turn(4, "files and selectors") {
        return;
    }
    let folder = TempDir::new().unwrap();
    let files = hosts(folder.path());
    let names: Vec<String> = (0..files.len()).map(|n| format!("mlx5_{n}")).collect();
    for words in [&["gids"] as &[&str], &["ports"], &["choose"], &["env", "ucx"], &["check"]] {
        hold("files and selectors", words, 60, |count| {
            let own: Vec<&str> = names[..count].iter().map(String::as_str).collect();
            instructions(&[words, &own].concat(), &files[..count])
        });
    }
}

/// Hosts that are alike but for their addresses, and hosts that are odd each in its own way.
#[test]
fn fleets() {
    if !test_has_its_turn(2, "fleets") {
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
            let what = if is_odd { "odd hosts" } else { "equal hosts" };
            hold(what, words, 60, |count| instructions(words, &files[..count]));
        }
    }
}
