//! Memory at the peak, by the number of hosts: one host at a time, and little for what is said of all.

use std::fs;
use std::path::Path;

use clap::Parser as _;
use tempfile::TempDir;

use crate::answer;
use crate::many::snapshot;
use crate::report::Report;
use crate::syntax::Cli;

/// The most bytes at once that a command takes for the hosts of a file.
fn peak(words: &[&str], file: &Path) -> u64 {
    let from = ["--from", file.to_str().unwrap()];
    let cli = Cli::try_parse_from([&["uverbs"], words, &from].concat()).unwrap();
    let mut report = Report::default();
    let measured = allocation_counter::measure(|| drop(answer(&cli, &mut report).unwrap()));
    assert_eq!(report.problems().len(), 0);
    measured.bytes_max
}

/// A file of so many hosts, one on a line.
fn file(folder: &TempDir, hosts: usize) -> std::path::PathBuf {
    let path = folder.path().join(format!("{hosts}.jsonl"));
    let lines: Vec<String> = (0..hosts).map(snapshot).collect();
    fs::write(&path, lines.join("\n")).unwrap();
    path
}

#[test]
fn one_host_at_a_time() {
    const HOSTS: usize = 40;
    let folder = TempDir::new().unwrap();
    let files = [1, 2, 4].map(|times| file(&folder, times * HOSTS));
    // Bytes for a further host: its name, its eight ports and their 64 rows as a verdict needs them, and
    // the rows of a table. As an inventory it takes 30,000.
    let commands: [(&[&str], u64); 9] = [
        (&["check"], 200),
        (&["fleet"], 2500),
        (&["fleet", "--hosts", "node[0-159]"], 8000),
        (&["choose"], 5000),
        (&["env", "nccl"], 4000),
        (&["env", "ucx"], 6000),
        (&["ports"], 2500),
        (&["guids"], 1500),
        (&["gids"], 8000),
    ];
    for (words, most) in commands {
        let [one, two, four] = [0, 1, 2].map(|place| peak(words, &files[place]));
        let (first, second) = (two.saturating_sub(one), four.saturating_sub(two));
        let hosts = HOSTS as u64;
        println!("{words:?}: {one} {two} {four}: {} {}", first / hosts, second / (2 * hosts));
        assert!(
            first <= most * hosts && second <= most * 2 * hosts,
            "{words:?}: {one} {two} {four}"
        );
    }
}
