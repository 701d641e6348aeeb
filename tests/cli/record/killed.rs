//! A recorder that is killed again and again.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::{Recorder, at, before, history, lines, now, texts, whats};
use crate::run::program;
use crate::tree::Tree;

/// A line of a recording as the test itself reads it: when, and which number the row had.
type Known = (String, usize);

/// The sessions of a recording: between two a recorder was killed.
fn sessions(files: &[PathBuf], gids: &[String]) -> Vec<Vec<Known>> {
    let mut sessions: Vec<Vec<Known>> = Vec::new();
    let mut known = 0;
    for line in files.iter().flat_map(|own| lines(own)) {
        let begun = &line["recording"];
        let time = line["time"].as_str().or(begun["time"].as_str()).unwrap().to_owned();
        let rows = line["devices"][0]["gids"].as_array().cloned().unwrap_or_default();
        let steps = line["changes"].as_array().cloned().unwrap_or_default();
        let rows = rows.into_iter().chain(steps.into_iter().map(|step| step["row"].clone()));
        for row in rows.filter(|row| row["index"] == 5) {
            known = gids.iter().position(|gid| row["gid"] == gid.as_str()).unwrap();
        }
        if sessions.is_empty() || begun["goes_on"] == false {
            sessions.push(Vec::new());
        }
        sessions.last_mut().unwrap().push((time, known));
    }
    sessions
}

/// A recorder that is killed 200 times while a row changes, and whose file is full again and again. What it wrote
/// whole is read back, and it wrote nothing that was not so.
#[test]
fn killed() {
    const KILLS: usize = 200;
    const MOST: usize = 60_000;
    let gid = |number: usize| format!("::ffff:10.1.{}.{}", number / 250 + 1, number % 250 + 1);
    let gids: Vec<String> = (0..MOST).map(gid).collect();
    let (tree, folder) = (Tree::new(), TempDir::new().unwrap());
    let port = tree.with_roce().port_again(1);
    let file = folder.path().join("record.jsonl");
    let files = [before(&file), file.clone()];
    // As sysfs has it.
    let text = |number: usize| {
        let (high, low) = (number / 250 + 1, number % 250 + 1);
        format!("0000:0000:0000:0000:0000:ffff:0a01:{high:02x}{low:02x}")
    };
    port.gid(5, &text(0), "RoCE v2", Some("eth0"));
    // How long a start takes: of the random points most are after it.
    let start = Instant::now();
    Recorder::begin(&tree, &file, &["--reread", "0"]).end();
    let span = u64::try_from(start.elapsed().as_micros()).unwrap() * 2;
    fs::remove_file(&file).unwrap();
    let is_over = AtomicBool::new(false);
    // When each was written, at the earliest.
    let truth = Mutex::new(vec![now()]);
    thread::scope(|scope| {
        scope.spawn(|| {
            for number in 1..MOST {
                if is_over.load(Ordering::SeqCst) {
                    break;
                }
                truth.lock().unwrap().push(now());
                port.file("gids/5", &text(number));
                thread::sleep(Duration::from_micros(500));
            }
        });
        let mut random = 0x2545_f491_4f6c_dd1d_u64;
        let mut last: Option<String> = None;
        for _ in 0..KILLS {
            let mut command = program();
            command.args(["watch", "--reread", "0.001", "--record-size", "64K", "--record"]);
            command.arg(&file).arg("--sysfs").arg(tree.path()).stderr(Stdio::null());
            let mut child = command.spawn().unwrap();
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            thread::sleep(Duration::from_micros(random % span));
            child.kill().unwrap();
            child.wait().unwrap();
            // What was whole is still there, unless two files were filled meanwhile.
            let all: Vec<String> = files.iter().flat_map(|own| texts(own)).collect();
            if let Some(last) = last.filter(|last| !all.contains(last)) {
                let time = |line: &str| line.split("\"time\":\"").nth(1).unwrap()[..24].to_owned();
                assert!(time(&all[0]) > time(&last), "{last} is lost: {}", all[0]);
            }
            last = all.last().cloned();
        }
        is_over.store(true, Ordering::SeqCst);
    });
    let truth = truth.into_inner().unwrap();
    let sessions = sessions(&files, &gids);
    let all = || sessions.iter().flatten();
    assert!(all().count() > sessions.len(), "no change was found");
    println!(
        "{} changes; {} lines of {} sessions are left",
        truth.len(),
        all().count(),
        sessions.len()
    );
    assert!(all().is_sorted_by_key(|(_, number)| number), "{sessions:?}");
    for (time, number) in all() {
        assert!(truth[*number] <= *time, "{number} was not yet so at {time}");
    }

    // The program reads the same, and nothing else.
    let history = history(&file, &["mlx5_0:1", "5"]);
    let read: Vec<&str> = history.iter().filter_map(|line| line["after"]["gid"].as_str()).collect();
    let mut written: Vec<&str> = all().map(|(_, number)| gids[*number].as_str()).collect();
    written.dedup();
    assert_eq!(read, written);
    let gaps = whats(&history).iter().filter(|what| **what == "not_recorded").count();
    assert_eq!(gaps, sessions.len() - 1);
    for pair in sessions.windows(2) {
        let (end, begin) = (&pair[0].last().unwrap().0, &pair[1][0].0);
        // Of lines of one millisecond the last one is what is known then.
        let (_, number) = pair[0].last().unwrap();
        let run = at(&["gids"], &file, end);
        if end < begin {
            assert!(run.stdout.contains(&format!("{}\u{20}", gids[*number])), "{end}: {run:?}");
        }
        let after = uverbs::watch::parse_time(end).unwrap() + Duration::from_millis(1);
        let time = uverbs::watch::format_time(after, 3);
        if time < *begin {
            let run = at(&["gids"], &file, &time);
            let is_gap = run.stderr.contains("nothing was recorded between");
            assert!(run.status == 3 && is_gap, "{time}: {run:?}");
        }
    }
}
