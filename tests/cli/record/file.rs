//! The file of a recording: full, on a full disk, torn, or in no place for one.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, prlimit};
use tempfile::TempDir;

use super::{
    ADDRESS, EMPTY, GID, Recorder, at, before, history, lines, made, now, texts, wait, whats,
};
use crate::run::{finish, program};
use crate::tree::Tree;

#[test]
fn a_full_file_is_kept_once() {
    let (tree, folder) = (Tree::new(), TempDir::new().unwrap());
    let port = tree.with_roce().port_again(1);
    let file = folder.path().join("record.jsonl");
    let recorder = Recorder::begin(&tree, &file, &["--reread", "0.002", "--record-size", "8K"]);
    let mut numbers = 0_u8;
    let mut early = None;
    // Until the file was full, and full again.
    let mut parts = Vec::new();
    while parts.len() < 3 {
        numbers += 1;
        port.gid(
            5,
            &format!("0000:0000:0000:0000:0000:ffff:0a00:00{numbers:02x}"),
            "RoCE v2",
            Some("eth0"),
        );
        recorder.wait_for(&format!("::ffff:10.0.0.{numbers}\u{20}"), true);
        let first = texts(&file)[0].clone();
        if parts.last() != Some(&first) {
            parts.push(first);
            // This one becomes FILE.1.
            if parts.len() == 2 {
                early = Some((now(), numbers));
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
    recorder.end();
    let (time, number) = early.unwrap();
    let run = at(&["gids"], &file, &time);
    assert!(
        run.stdout.contains(&format!("::ffff:10.0.0.{number} ")),
        "in the file before: {run:?}"
    );
    let all = history(&file, &["mlx5_0:1", "5"]);
    assert!(!whats(&all).contains(&"not_recorded"), "{all:#?}");
    let names: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|own| own.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    for own in [&file, &before(&file)] {
        let longest = texts(own).iter().map(String::len).max().unwrap() as u64;
        assert!(fs::metadata(own).unwrap().len() <= 8192 + longest, "{own:?}");
        // Each is a recording by itself.
        let alone = folder.path().join("alone.jsonl");
        fs::copy(own, &alone).unwrap();
        let last = texts(own).into_iter().last().unwrap();
        let run = at(&["gids"], &alone, "end");
        assert_eq!(run.status, 0, "{run:?} {last}");
        fs::remove_file(alone).unwrap();
    }
}

/// A limit of the file's size is a disk that is full, and then is not.
#[test]
fn a_full_disk() {
    let (tree, folder) = (Tree::new(), TempDir::new().unwrap());
    let port = tree.with_roce().port_again(1);
    let file = folder.path().join("record.jsonl");
    let mut command = program();
    command
        .args(["watch", "--reread", "0.01", "--record"])
        .arg(&file)
        .arg("--sysfs")
        .arg(tree.path());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let recorder = Recorder(child, file.clone());
    let mut says = |what: &str| said.by_ref().find(|line| line.contains(what)).expect("it says so");
    says("recording 1 device");
    wait(|| !lines(&file).is_empty());
    let limit = |current| {
        let pid = rustix::process::Pid::from_raw(recorder.pid().as_raw());
        prlimit(pid, Resource::Fsize, Rlimit { current, maximum: None }).unwrap();
    };
    limit(Some(fs::metadata(&file).unwrap().len() + 100));
    port.gid(5, ADDRESS, "RoCE v2", Some("eth0"));
    says("File too large (os error 27); nothing is recorded until that is over");
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.ends_with('\n'), "nothing is torn: {text}");
    port.file("state", "1: DOWN");
    port.file("gids/5", EMPTY);
    // Time to read both, also on an emulator.
    thread::sleep(Duration::from_millis(300));
    assert_eq!(fs::read_to_string(&file).unwrap(), text, "nothing is written");
    limit(None);
    says("recording again; the time between is missing");
    recorder.wait_for(GID, false);
    recorder.end();
    let all = history(&file, &[]);
    // The row that came and went meanwhile is not invented.
    assert_eq!(whats(&all), ["began", "not_recorded", "port_state"], "{all:#?}");

    // What cannot be written at all is an error.
    let full =
        finish(program().args(["watch", "--record", "/dev/full"]).arg("--sysfs").arg(tree.path()));
    assert!(full.status == 3 && full.stderr.contains("no regular file"), "{full:?}");
}

#[test]
fn what_is_no_place_for_a_recording() {
    let (tree, folder) = (Tree::new(), TempDir::new().unwrap());
    tree.with_roce();
    let path = |name: &str| folder.path().join(name);
    let kind = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, path("pipe"), kind, rustix::fs::Mode::RWXU, 0).unwrap();
    fs::write(path("other"), "{\"schema_version\":1,\"host\":null}\n").unwrap();
    fs::write(path("torn"), "{\"schema_version\":1,\"recording\":{\"number\":0,").unwrap();
    let run = |file: &Path, args: &[&str]| {
        let mut command = program();
        command.args(["watch", "--timeout", "0", "--record"]).arg(file).args(args);
        finish(command.arg("--sysfs").arg(tree.path()))
    };
    for (name, message) in [
        ("pipe", "no regular file"),
        ("", "no regular file"),
        ("other", "it does not begin as a recorder writes it, and is left as it is"),
        ("nowhere/file", "No such file"),
        ("other/file", "Not a directory"),
    ] {
        let run = run(&path(name), &[]);
        assert!(run.status == 3 && run.stderr.contains(message), "{name}: {run:?}");
    }
    assert_eq!(
        fs::read_to_string(path("other")).unwrap(),
        "{\"schema_version\":1,\"host\":null}\n"
    );
    // The beginning of a first line is nothing that is known.
    let torn = at(&["gids"], &path("torn"), "end");
    assert_eq!((torn.status, torn.stdout.lines().count()), (3, 1), "{torn:?}");
    assert_eq!(run(&path("torn"), &[]).status, 0);
    assert_eq!(at(&["gids"], &path("torn"), "end").status, 0);

    let recorder = Recorder::begin(&tree, &path("own"), &["--reread", "0"]);
    let second = run(&path("own"), &[]);
    assert!(second.status == 3 && second.stderr.contains("another recorder"), "{second:?}");
    std::os::unix::fs::symlink(path("own"), path("link")).unwrap();
    let second = run(&path("link"), &[]);
    assert!(second.status == 3 && second.stderr.contains("another recorder"), "{second:?}");
    recorder.end();
    assert_eq!(run(&path("link"), &[]).status, 0);
    assert_eq!(whats(&history(&path("own"), &[])), ["began", "not_recorded"]);

    for (args, message) in [
        (&["--record-size", "1"][..], "at least 4K"),
        (&["mlx5_0"], "cannot be used with"),
        (&["--type", "v2"], "cannot be used with"),
        (&["--only", "gid"], "cannot be used with"),
        (&["--count", "1"], "cannot be used with"),
        (&["--json"], "--json is of no use"),
    ] {
        let run = run(&path("own"), args);
        assert!(run.status == 3 && run.stderr.contains(message), "{args:?}: {run:?}");
    }
}

/// A last line without its end is ignored, and cut before the next is appended.
#[test]
fn a_torn_last_line() {
    let (tree, folder) = (Tree::new(), TempDir::new().unwrap());
    tree.with_roce();
    let file = folder.path().join("record.jsonl");
    Recorder::begin(&tree, &file, &["--reread", "0"]).end();
    let whole = fs::read_to_string(&file).unwrap();
    let line = r#"{"number":2,"time":"2026-11-22T12:00:00Z","monotonic_ns":9,"changes":[{"device":"mlx5_0","is_gone":true}]}"#;
    for end in [1, 11, line.len() - 1, line.len()] {
        fs::write(&file, format!("{whole}{}", &line[..end])).unwrap();
        let run = at(&["gids"], &file, "end");
        assert_eq!((run.status, run.stdout.lines().count()), (0, 5), "{end}: {run:?}");
        Recorder::begin(&tree, &file, &["--reread", "0"]).end();
        let text = fs::read_to_string(&file).unwrap();
        assert!(
            text.strip_prefix(&whole).unwrap().starts_with("{\"schema_version\""),
            "{end}: {text}"
        );
    }
}

/// The file before is a part of the recording.
#[test]
fn a_file_before_that_cannot_be_read() {
    let (tree, folder) = (Tree::new(), TempDir::new().unwrap());
    tree.with_roce();
    let file = folder.path().join("record.jsonl");
    made(&tree, &file, &[("12:00:00", 0, None), ("12:01:00", 1, Some(serde_json::json!([])))]);
    std::os::unix::fs::symlink("record.jsonl.1", before(&file)).unwrap();
    // The C libraries have other words for it.
    let said = ["record.jsonl.1: ", "(os error 40)"];
    let run = at(&["gids"], &file, "2026-11-22T12:00:30Z");
    assert_eq!((run.status, run.stdout.lines().count()), (3, 5), "{run:?}");
    assert!(run.stderr.contains(said[0]) && run.stderr.contains(said[1]), "{run:?}");
    let run = finish(program().arg("history").arg(&file));
    assert_eq!((run.status, run.stdout.lines().count()), (3, 1), "{run:?}");
    assert!(run.stderr.contains(said[0]) && run.stderr.contains(said[1]), "{run:?}");
    // It has no meaning beside a file that is no recording.
    fs::write(&file, "{}\n").unwrap();
    let run = finish(program().args(["gids", "--from"]).arg(&file));
    assert!(!run.stderr.contains("record.jsonl.1"), "{run:?}");
}

/// A line that cannot be read hides what follows it, until all is written again. It is said, with its own file.
#[test]
fn a_line_that_cannot_be_read() {
    let (tree, folder) = (Tree::new(), TempDir::new().unwrap());
    tree.with_roce();
    let file = folder.path().join("record.jsonl");
    let nothing = || Some(serde_json::json!([]));
    let parts = [("12:00:00", 0, None), ("12:01:00", 1, nothing()), ("12:02:00", 2, nothing())];
    made(&tree, &file, &parts);
    let mut lines = texts(&file);
    lines.insert(2, " ".repeat((16 << 20) + 1));
    let broken = lines.join("\n") + "\n";
    fs::write(&file, &broken).unwrap();
    let said = "record.jsonl: line 3: longer than 16 MiB";
    let run = at(&["gids"], &file, "end");
    assert_eq!((run.status, run.stdout.lines().count()), (3, 1), "{run:?}");
    assert!(run.stderr.contains(said), "{run:?}");
    let run = finish(program().arg("history").arg(&file));
    assert!(run.status == 3 && run.stderr.contains(said), "{run:?}");
    // What is begun after it is known.
    fs::remove_file(&file).unwrap();
    made(&tree, &file, &[("12:05:00", 0, None)]);
    let said = "record.jsonl.1: line 3: longer than 16 MiB";
    for (first, said) in [
        (&*broken, said),
        ("", "record.jsonl.1: no JSON"),
        (&format!("{}\n{}\n", lines[0], lines[3]), "record.jsonl.1: line 2: lines are missing"),
    ] {
        fs::write(before(&file), first).unwrap();
        let run = at(&["gids"], &file, "end");
        assert_eq!((run.status, run.stdout.lines().count()), (3, 5), "{run:?}");
        assert!(run.stderr.contains(said), "{run:?}");
        let run = finish(program().arg("history").arg(&file));
        assert!(run.status == 3 && run.stderr.contains(said), "{run:?}");
    }
}
