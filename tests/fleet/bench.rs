//! What a fleet costs: commands on snapshots of 1,000 hosts with 8 RoCE ports each, in a file for each host
//! and in one file, and jq reading the same files in the same run.
//!
//! `cargo bench --package uverbs-cli --bench fleet --profile command` prints CPU time, memory at the peak
//! and, if valgrind is installed, instructions. It asserts nothing: a loaded machine is no failure.
//! `FLEET_HOSTS` sets another number of hosts. At the end `fleet` compares two and a half, five and ten times as many, among
//! which three are odd.
#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

mod host;

use std::env;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;

use host::snapshot;

/// The word by which this program runs another one as its only child, and prints what it took.
const MEASURE: &str = "--measure";

/// Milliseconds of CPU time and kilobytes at the peak of a program, by a process of its own.
fn cost(words: &[&str], files: &[PathBuf]) -> Option<(i64, i64)> {
    let output = Command::new(env::current_exe().unwrap())
        .arg(MEASURE)
        .args(words)
        .args(files)
        .env_remove("NCCL_IB_HCA")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let (time, memory) = text.trim().split_once(' ')?;
    Some((time.parse().ok()?, memory.parse().ok()?))
}

fn measure(words: &[String]) {
    let (program, words) = words.split_first().unwrap();
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if command.status().is_err() {
        return;
    }
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap();
    let time = usage.user_time() + usage.system_time();
    println!("{} {}", time.num_milliseconds(), usage.max_rss());
}

/// Instructions of a program.
fn instructions(words: &[&str], files: &[PathBuf]) -> Option<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .args(words)
        .args(files)
        .stdout(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    text.lines().find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok())
}

fn report(words: &[&str], many: &[PathBuf], one: &Path) {
    let mut line = format!("{:<32}", words.get(1..).unwrap_or_default().join(" "));
    for files in [many, &[one.to_owned()]] {
        match cost(words, files) {
            Some((time, memory)) => {
                let _ = write!(line, " {time:>6} ms {memory:>6} kB");
            }
            None => line += " not installed",
        }
    }
    if let Some(count) = instructions(words, many) {
        let _ = write!(line, " {:>6} million instructions", count / 1_000_000);
    }
    println!("{line}");
}

fn main() {
    let words: Vec<String> = env::args().skip(1).collect();
    if words.first().is_some_and(|word| word == MEASURE) {
        return measure(words.get(1..).unwrap_or_default());
    }
    // `cargo test --all-targets` runs benchmarks too, and there is nothing to test here.
    if !words.iter().any(|word| word == "--bench") {
        return;
    }
    let hosts = env::var("FLEET_HOSTS").ok().and_then(|text| text.parse().ok());
    let hosts = hosts.unwrap_or(1000);
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("all.jsonl");
    let hosts_folder = folder.path().join("hosts");
    fs::create_dir(&hosts_folder).unwrap();
    let mut all = File::create(&path).unwrap();
    let file = |host: usize| {
        let text = snapshot(host) + "\n";
        all.write_all(text.as_bytes()).unwrap();
        let path = hosts_folder.join(format!("{host}.json"));
        fs::write(&path, text).unwrap();
        path
    };
    let many: Vec<PathBuf> = (0..hosts).map(file).collect();
    let bytes = fs::metadata(&path).unwrap().len();
    println!(
        "{hosts} hosts, {} ports, {bytes} bytes: a file for each host, and one file",
        8 * hosts
    );
    let uverbs = env!("CARGO_BIN_EXE_uverbs");
    let commands: [&[&str]; 10] = [
        &["choose"],
        &["choose", "--explain", "--json"],
        &["env", "nccl"],
        &["env", "ucx"],
        &["check"],
        &["fleet"],
        &["fleet", "--all-to-all"],
        &["gids"],
        &["gids", "--json"],
        &["ports"],
    ];
    for words in commands {
        let folder = std::slice::from_ref(&hosts_folder);
        report(&[&[uverbs], words, &["--from"]].concat(), folder, &path);
    }
    report(&["jq", ".devices | length"], &many, &path);
    report(&["jq", "--compact-output", "."], &many, &path);
    drop(all);
    fs::remove_file(&path).unwrap();
    for hosts in [hosts * 5 / 2, hosts * 5, hosts * 10] {
        compare(uverbs, hosts, &path);
    }
}

/// What it takes to find three odd hosts, and how many lines say it.
fn compare(uverbs: &str, hosts: usize, path: &Path) {
    let mut file = BufWriter::new(File::create(path).unwrap());
    for host in 0..hosts {
        let mut text = snapshot(host);
        let (what, other) = match host.checked_sub(hosts / 2) {
            Some(0) => ("28.39.2048", "28.37.1014"),
            Some(1) => (r#""active_mtu":5"#, r#""active_mtu":3"#),
            Some(2) => (r#""active_speed":128"#, r#""active_speed":64"#),
            _ => ("", ""),
        };
        if !what.is_empty() {
            text = text.replacen(what, other, 1);
        }
        writeln!(file, "{text}").unwrap();
    }
    file.into_inner().unwrap().sync_all().unwrap();
    let words = [uverbs, "fleet", "--from"];
    let files = [path.to_owned()];
    let (time, memory) = cost(&words, &files).unwrap();
    let output = Command::new(uverbs).args(&words[1..]).args(&files).output().unwrap();
    let lines = String::from_utf8_lossy(&output.stdout).lines().count();
    let mut line =
        format!("fleet of {hosts} hosts, 3 of them odd: {lines} lines, {time} ms, {memory} kB");
    if let Some(count) = instructions(&words, &files) {
        let _ = write!(line, ", {} million instructions", count / 1_000_000);
    }
    println!("{line}");
}
