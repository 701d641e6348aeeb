//! `uverbs watch --record`, `--at` and `uverbs history` on trees that the test changes: so it knows what is true.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;

use crate::conforms::conforms;
use crate::run::{Run, finish, program, uverbs};
use crate::snapshots::{DUAL, begun, host, port};
use crate::tree::Tree;

mod file;
mod killed;
mod rows;

/// A recorder of a tree.
struct Recorder(Child, PathBuf);

impl Recorder {
    /// Starts it, and waits until it has begun.
    fn begin(tree: &Tree, file: &Path, args: &[&str]) -> Self {
        let mut command = program();
        command.args(["watch", "--record"]).arg(file).args(args).arg("--sysfs").arg(tree.path());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
        assert!(said.any(|line| line.starts_with("uverbs: recording ")), "it begins");
        let this = Self(child, file.to_owned());
        wait(|| !lines(file).is_empty());
        this
    }

    /// Waits until the last moment that is recorded has this row, or does not have it.
    fn wait_for(&self, gid: &str, is_there: bool) {
        wait(|| {
            let run = at(&["gids"], &self.1, "end");
            run.status == 0 && run.stdout.contains(gid) == is_there
        });
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.0.id()).unwrap())
    }

    fn end(mut self) {
        kill(self.pid(), Signal::SIGTERM).unwrap();
        assert!(self.0.wait().unwrap().success());
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits, but not for ever: what never comes is a failure with a name.
#[track_caller]
fn wait(mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(600), "it did not come");
        thread::sleep(Duration::from_millis(2));
    }
}

/// The whole lines of a file, each as it is.
fn texts(file: &Path) -> Vec<String> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole.lines().map(str::to_owned).collect()
}

fn lines(file: &Path) -> Vec<Value> {
    let parse = |line: String| serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}"));
    texts(file).into_iter().map(parse).collect()
}

fn before(file: &Path) -> PathBuf {
    let mut own = file.as_os_str().to_owned();
    own.push(".1");
    own.into()
}

fn at(command: &[&str], file: &Path, time: &str) -> Run {
    finish(program().args(command).arg("--from").arg(file).args(["--at", time]))
}

fn history(file: &Path, args: &[&str]) -> Vec<Value> {
    let run = finish(program().args(["history", "--json"]).arg(file).args(args));
    assert_eq!((run.status, run.stderr.as_str()), (0, ""), "{run:?}");
    let document: Value = serde_json::from_str(&run.stdout).unwrap();
    conforms("history.json", &document);
    document["history"].as_array().unwrap().clone()
}

fn whats(history: &[Value]) -> Vec<&str> {
    history.iter().map(|line| line["what"].as_str().unwrap()).collect()
}

fn now() -> String {
    uverbs::watch::format_time(SystemTime::now(), 3)
}

const ADDRESS: &str = "0000:0000:0000:0000:0000:ffff:0a00:0001";
const GID: &str = "::ffff:10.0.0.1";
const EMPTY: &str = "0000:0000:0000:0000:0000:0000:0000:0000";

/// Each command says of each moment what it said then.
#[test]
fn what_was_then() {
    /// All that read snapshots, but those whose answer has the time or what is not recorded in it.
    const COMMANDS: [&[&str]; 12] = [
        &["devices"],
        &["gids"],
        &["gid", "mlx5_0:1", "5"],
        &["ports"],
        &["guids"],
        &["pkeys"],
        &["choose", "--explain"],
        &["choose", "--like", "nccl-2.20"],
        &["choose", "mlx5_0:1"],
        &["env", "nccl"],
        &["env", "ucx"],
        &["check"],
    ];
    let (tree, folder) = (Tree::new(), TempDir::new().unwrap());
    let device = tree.with_roce();
    tree.with_infiniband();
    let file = folder.path().join("record.jsonl");
    let recorder = Recorder::begin(&tree, &file, &["--reread", "0.01"]);
    let port = device.port_again(1);
    let mut seen = Vec::new();
    let mut see = |is_found: &dyn Fn(&Value) -> bool| {
        wait(|| {
            is_found(&serde_json::from_str(&at(&["ports", "--json"], &file, "end").stdout).unwrap())
        });
        // The snapshot is the same reading, without the time between.
        let snapshot = folder.path().join(format!("{}/record.jsonl", seen.len()));
        fs::create_dir(snapshot.parent().unwrap()).unwrap();
        fs::write(&snapshot, tree.answer(&["snapshot"])).unwrap();
        let time = now();
        // What follows is found later.
        thread::sleep(Duration::from_millis(5));
        seen.push((time, snapshot));
    };
    see(&|_| true);
    port.gid(5, ADDRESS, "RoCE v2", Some("eth0"));
    recorder.wait_for(GID, true);
    see(&|_| true);
    port.file("state", "1: DOWN");
    see(&|own| {
        own["ports"]
            .as_array()
            .unwrap()
            .iter()
            .any(|own| own["device"] == "mlx5_0" && own["state"] == "down")
    });
    device.remove();
    see(&|own| own["ports"].as_array().unwrap().iter().all(|own| own["device"] != "mlx5_0"));
    recorder.end();
    for (time, snapshot) in &seen {
        for command in COMMANDS {
            let json = [command, &["--json"]].concat();
            // Both by one name, as the host has none.
            let run = |file: &Path, more: &[&str]| {
                let (folder, name) = (file.parent().unwrap(), file.file_name().unwrap());
                let mut command = program();
                command.current_dir(folder).args(&json).arg("--from").arg(name);
                finish(command.args(more))
            };
            let then = run(snapshot, &[]);
            let own = run(&file, &["--at", time]);
            assert_eq!(own.stdout, then.stdout, "{command:?} at {time}");
            assert_eq!(own.status, then.status, "{command:?} at {time}");
            assert!(own.stderr.contains(&format!("as it was at {time}")), "{own:?}");
        }
    }
    assert!(at(&["metrics"], &file, "end").stdout.contains("uverbs_"));
    for (place, line) in lines(&file).iter().enumerate() {
        conforms(if place == 0 { "snapshot.json" } else { "recording.json" }, line);
    }
}

#[test]
fn a_history() {
    let (tree, folder) = (Tree::new(), TempDir::new().unwrap());
    let port = tree.with_roce().port_again(1);
    tree.with_infiniband();
    let file = folder.path().join("record.jsonl");
    let recorder = Recorder::begin(&tree, &file, &["--reread", "0.005"]);
    port.file("gids/3", EMPTY);
    recorder.wait_for("::ffff:192.168.77.1", false);
    port.gid(5, ADDRESS, "RoCE v2", Some("eth0"));
    recorder.wait_for(GID, true);
    recorder.end();
    assert_eq!(whats(&history(&file, &[])), ["began", "gid_went", "gid_came"]);
    assert_eq!(whats(&history(&file, &["mlx4_0"])), ["began"]);
    let row = history(&file, &["mlx5_0:1", "3"]);
    assert_eq!(whats(&row), ["began", "was", "gid_went"]);
    assert_eq!(row[1]["after"]["gid"], "::ffff:192.168.77.1");
    let row = history(&file, &["mlx5_0:1", "5"]);
    assert_eq!(whats(&row), ["began", "was", "gid_came"]);
    assert_eq!((&row[1]["after"], &row[2]["after"]["gid"]), (&Value::Null, &GID.into()));
    // NCCL 2.20 took index 0; what was recommended changed, and why is said. In a tree nothing proves it right.
    let choices = history(&file, &["mlx5_0:1", "--like", "nccl-2.20"]);
    assert_eq!(whats(&choices), ["began", "choice", "gid_went", "choice", "gid_came", "choice"]);
    for (place, right) in [(1, 3), (3, 10), (5, 5)] {
        let after = &choices[place]["after"];
        assert_eq!((&after["index"], &after["is_right"]), (&0.into(), &Value::Null), "{after}");
        assert_eq!(after["recommended"], right, "{after}");
    }
    let plain = uverbs(&["history", file.to_str().unwrap(), "mlx5_0:1", "--like", "nccl-2.20"]);
    assert!(plain.stdout.contains(" (perhaps wrong: 3 is recommended)\n"), "{plain:?}");
    assert_eq!(choices[3]["causes"], serde_json::json!(["gid_went"]));
    let time = choices[3]["time"].as_str().unwrap();
    let then = at(&["choose", "mlx5_0:1", "--json"], &file, time);
    let then: Value = serde_json::from_str(&then.stdout).unwrap();
    assert_eq!(then["choose"][0]["recommended"]["index"], 10, "as it is after what was found then");
    let plain = uverbs(&["history", file.to_str().unwrap(), "mlx5_0:1", "5"]);
    let last = plain.stdout.lines().last().unwrap();
    assert!(
        last.ends_with("mlx5_0:1    gid_came        5 ::ffff:10.0.0.1 v2 eth0?  (reread)"),
        "{last}"
    );
    let path = file.to_str().unwrap();
    for (args, status, message) in [
        (&["history", path, "nowhere"][..], 1, "nowhere is nowhere in the recording"),
        (&["history", path, "mlx5_0", "3"], 3, "an index needs a port"),
        (&["history", path, "mlx5_0:1", "3", "--like", "nccl"], 3, "--like"),
        (&["history", path, "--sysfs", "/sys"], 3, "history reads a recording"),
        (&["history", "/nowhere"], 3, "/nowhere: No such file"),
    ] {
        let run = uverbs(args);
        assert!(run.status == status && run.stderr.contains(message), "{args:?}: {run:?}");
    }
}

#[test]
fn what_is_not_recorded_is_not_answered() {
    let (tree, folder) = (Tree::new(), TempDir::new().unwrap());
    let port = tree.with_roce().port_again(1);
    let file = folder.path().join("record.jsonl");
    let early = now();
    thread::sleep(Duration::from_millis(5));
    Recorder::begin(&tree, &file, &["--reread", "0"]).end();
    thread::sleep(Duration::from_millis(5));
    let between = now();
    port.gid(5, ADDRESS, "RoCE v2", Some("eth0"));
    thread::sleep(Duration::from_millis(5));
    Recorder::begin(&tree, &file, &["--reread", "0"]).end();
    let late = uverbs::watch::format_time(SystemTime::now() + Duration::from_mins(1), 3);
    for (time, message) in [
        (&early, "the recording begins at"),
        (&between, "nothing was recorded between"),
        (&late, "the recording ends at"),
    ] {
        for command in ["gids", "ports", "choose", "check", "env"] {
            let args: &[&str] = if command == "env" { &["env", "nccl"] } else { &[command] };
            let run = at(args, &file, time);
            assert!(run.status == 3 && run.stderr.contains(message), "{run:?}");
            assert!(!run.stdout.contains("mlx5_0"), "{run:?}");
        }
        let json = at(&["gids", "--json"], &file, time);
        conforms("gids.json", &serde_json::from_str::<Value>(&json.stdout).unwrap());
    }
    let all = history(&file, &[]);
    assert_eq!(whats(&all), ["began", "not_recorded", "gid_came"]);
    assert_eq!(all[2]["causes"], serde_json::json!(["gap"]));
    let snapshot = folder.path().join("snapshot.json");
    fs::write(&snapshot, tree.answer(&["snapshot"])).unwrap();
    let run = at(&["gids"], &snapshot, "end");
    assert!(run.status == 3 && run.stderr.contains("this is a snapshot"), "{run:?}");
    let run = finish(program().args(["history"]).arg(&snapshot));
    assert!(run.status == 3 && run.stderr.contains("this is a snapshot"), "{run:?}");
    let run = finish(program().args(["gids", "--from"]).arg(&file));
    assert!(run.status == 3 && run.stderr.contains("this is a recording: --at"), "{run:?}");
    for (args, message) in [
        (&["gids", "--at", "end"][..], "--from"),
        (&["gids", "--from", "x", "--at", "03:12"], "time zone"),
        (&["gids", "--from", "x", "--at", "soon"], "expected a time"),
    ] {
        let run = uverbs(args);
        assert!(run.status == 3 && run.stderr.contains(message), "{args:?}: {run:?}");
    }
}

/// A clock that was set back shows a time twice.
#[test]
fn a_clock_that_was_set_back() {
    let (tree, folder) = (Tree::new(), TempDir::new().unwrap());
    tree.with_roce();
    let file = folder.path().join("record.jsonl");
    Recorder::begin(&tree, &file, &["--reread", "0"]).end();
    let first = texts(&file).remove(0);
    let (head, rest) = first.split_once("},").unwrap();
    let head = head.split("\"time\"").next().unwrap();
    let line = |number: u32, time: &str, seconds: u32, gone: &str| {
        let changes = if gone.is_empty() {
            String::new()
        } else {
            format!(r#","changes":[{{"device":"mlx5_0",{gone}}}]"#)
        };
        format!(
            r#"{{"number":{number},"time":"2026-11-22T{time}Z","monotonic_ns":{seconds}000000000{changes}}}"#
        )
    };
    let text = [
        format!(
            "{head}\"time\":\"2026-11-22T12:00:00Z\",\"monotonic_ns\":0,\"goes_on\":false}},{rest}"
        ),
        line(1, "12:10:00", 600, r#""empty":[1,3]"#),
        // Half an hour of it passed, and the clock was set back by an hour.
        line(2, "11:40:00", 2400, r#""is_gone":true"#),
        line(3, "12:50:00", 6600, ""),
        String::new(),
    ];
    fs::write(&file, text.join("\n")).unwrap();
    let ends = |time: &str| {
        let run = at(&["gids"], &file, &format!("2026-11-22T{time}Z"));
        let count = run.stdout.lines().count().saturating_sub(1);
        if run.stderr.contains("the clock was set back") {
            assert_eq!((run.status, count), (3, 0), "{run:?}");
            return "twice".to_owned();
        }
        assert_eq!(run.status, 0, "{run:?}");
        count.to_string()
    };
    // Twice: with 4 rows or 3, and then without a device.
    assert_eq!(
        ["12:05:00", "12:20:00", "11:30:00", "12:50:00"].map(ends),
        ["twice", "twice", "3", "0"]
    );
    assert_eq!(at(&["gids"], &file, "2026-11-22T13:00:00+01:00").status, 3);
}

/// What a clock that was set forward, or a host that slept, never showed is not recorded.
#[test]
fn a_clock_that_was_set_forward() {
    let (tree, folder) = (Tree::new(), TempDir::new().unwrap());
    tree.with_roce();
    let file = folder.path().join("record.jsonl");
    made(&tree, &file, &[("04:00:00", 0, None)]);
    let line = |number: u64, time: &str, monotonic: u64, changes: &str| {
        format!(
            "{{\"number\":{number},\"time\":\"2026-11-22T{time}Z\",\"monotonic_ns\":{monotonic},\
             \"changes\":[{changes}]}}\n"
        )
    };
    let gone = r#"{"device":"mlx5_0","empty":[1,3]}"#;
    let passed = |seconds: u64| (4 * 3600 + seconds) * 1_000_000_000;
    let lines = [
        line(1, "04:00:30", passed(30), ""),
        line(2, "20:00:00", passed(60), gone),
        line(3, "20:00:30.900", passed(90), ""),
        // A clock that is never set was.
        line(4, "20:10:00", passed(80), ""),
        line(5, "20:10:30", passed(110), ""),
    ];
    let begun = texts(&file).remove(0);
    fs::write(&file, begun.clone() + "\n" + &lines.concat()).unwrap();
    let count = |time: &str| {
        let run = at(&["gids"], &file, &format!("2026-11-22T{time}Z"));
        if run.status == 3 {
            assert!(run.stderr.contains("nothing was recorded between 2026-"), "{run:?}");
            return None;
        }
        Some(run.stdout.lines().count() - 1)
    };
    assert_eq!(
        ["04:00:59", "04:01:01", "12:00:00", "19:59:29", "19:59:31", "20:00:00"].map(count),
        [Some(4), None, None, None, Some(4), Some(3)]
    );
    assert_eq!(
        ["20:00:30.899", "20:00:31", "20:09:59", "20:10:29"].map(count),
        [Some(3), None, None, Some(3)]
    );
    let lines = history(&file, &[]);
    assert_eq!(whats(&lines), ["began", "not_recorded", "gid_went", "not_recorded"]);
    assert_eq!(
        (&lines[1]["before"], &lines[1]["after"]),
        (&"2026-11-22T04:01:00.000Z".into(), &"2026-11-22T19:59:30.000Z".into())
    );
    // A number after which there is none.
    let begun = begun.replacen("\"number\":0,", &format!("\"number\":{},", u64::MAX), 1);
    fs::write(&file, begun + "\n" + &line(0, "04:00:30", passed(30), "")).unwrap();
    let run = at(&["gids"], &file, "end");
    assert!(
        run.status == 3 && run.stderr.contains("its number, 0, does not come after"),
        "{run:?}"
    );
}

/// A recording of these lines, made from the inventory with which one of this tree begins. A line is when it was, its
/// number, and its changes; without them it is that inventory.
fn made(tree: &Tree, file: &Path, parts: &[(&str, u32, Option<Value>)]) {
    Recorder::begin(tree, file, &["--reread", "0"]).end();
    let first: Value = serde_json::from_str(&texts(file)[0]).unwrap();
    let text = parts.iter().map(|(time, number, changes)| {
        // The host was started at midnight.
        let passed = uverbs::watch::parse_clock(&format!("{time}Z")).unwrap().0.as_nanos();
        let passed = u64::try_from(passed).unwrap();
        let time = format!("2026-11-22T{time}Z");
        if let Some(changes) = changes {
            return format!(
                r#"{{"number":{number},"time":"{time}","monotonic_ns":{passed},"changes":{changes}}}"#
            );
        }
        let head = serde_json::json!({
            "number": number, "time": time, "monotonic_ns": passed, "goes_on": false,
        });
        begun(&first, &head)
    });
    fs::write(file, text.map(|line| line + "\n").collect::<String>()).unwrap();
}

/// After a line that is missing nothing is known, whatever the next ones say, until all is written again.
#[test]
fn what_follows_a_missing_line_is_not_recorded() {
    let (tree, folder) = (Tree::new(), TempDir::new().unwrap());
    tree.with_roce();
    let file = folder.path().join("record.jsonl");
    let nothing = || Some(serde_json::json!([]));
    let parts = [
        ("12:00:00", 0, None),
        ("12:01:00", 1, nothing()),
        ("12:03:00", 3, nothing()),
        ("12:04:00", 4, nothing()),
        ("12:05:00", 5, None),
    ];
    made(&tree, &file, &parts);
    let run = finish(program().args(["history", "--json"]).arg(&file));
    assert!(run.status == 3, "{run:?}");
    let document: Value = serde_json::from_str(&run.stdout).unwrap();
    let line = &document["history"][1];
    assert_eq!(
        (&line["what"], &line["before"], &line["after"]),
        (
            &"not_recorded".into(),
            &"2026-11-22T12:01:00.000Z".into(),
            &"2026-11-22T12:05:00.000Z".into()
        )
    );
}

/// The end of a recording is no whole recording, and is not read as one in which nothing happened.
#[test]
fn a_recording_without_its_beginning() {
    let (tree, folder) = (Tree::new(), TempDir::new().unwrap());
    tree.with_roce();
    let file = folder.path().join("record.jsonl");
    let nothing = || Some(serde_json::json!([]));
    let parts = [("12:00:00", 0, None), ("12:01:00", 1, nothing()), ("12:02:00", 2, nothing())];
    made(&tree, &file, &parts);
    let whole = fs::read_to_string(&file).unwrap();
    let (_, rest) = whole.split_once('\n').unwrap();
    let said = "record.jsonl: lines are missing before the first one";
    fs::write(&file, rest).unwrap();
    let run = finish(program().arg("history").arg(&file).arg("nodev"));
    assert!(run.status == 3 && run.stdout.is_empty() && run.stderr.contains(said), "{run:?}");
    let run = at(&["gids"], &file, "2026-11-22T12:01:30Z");
    assert!(run.status == 3 && run.stderr.contains(said), "{run:?}");
    // What is begun after that is known. Before it there may have been another answer for the same time.
    fs::write(&file, rest.to_owned() + &whole).unwrap();
    for (moment, is_known) in [("end", true), ("2026-11-22T12:01:30Z", false)] {
        let run = at(&["env", "nccl"], &file, moment);
        assert_eq!((run.status, run.stdout.contains("export ")), (3, is_known), "{run:?}");
        let said = "no variables, as not everything was read";
        assert_eq!(run.stderr.contains(said), !is_known, "{run:?}");
    }
    let run = finish(program().arg("history").arg(&file));
    assert!(run.status == 3 && run.stdout.contains("began"), "{run:?}");
    assert!(run.stderr.contains(said), "{run:?}");
}

/// What is known before a line that cannot be read is known until the line before it, also if that is the moment that
/// is asked for.
#[test]
fn the_last_moment_before_a_line_that_cannot_be_read() {
    let (tree, folder) = (Tree::new(), TempDir::new().unwrap());
    tree.with_roce();
    let file = folder.path().join("record.jsonl");
    let gone = serde_json::json!([{"device": "mlx5_0", "empty": [1, 3]}]);
    made(&tree, &file, &[("12:00:00", 0, None), ("12:01:00", 1, Some(gone))]);
    let whole = fs::read_to_string(&file).unwrap();
    let asked = |text: String, moment: &str| {
        fs::write(&file, text).unwrap();
        let run = at(&["gids", "--no-header"], &file, moment);
        (run.status, run.stdout.lines().count(), run.stderr)
    };
    let moment = "2026-11-22T12:01:00Z";
    for garbage in ["", "garbage\n", "garbage\n{}\n"] {
        let (status, rows, said) = asked(format!("{whole}{garbage}"), moment);
        let expected = if garbage.is_empty() { 0 } else { 3 };
        assert_eq!((status, rows), (expected, 3), "{garbage:?}: {said}");
    }
    // The clock was set back: at half past the row was there, and was not.
    let whole = whole.replace("T12:01:00Z", "T12:00:30Z");
    for garbage in ["", "garbage\n"] {
        let (status, rows, said) = asked(format!("{whole}{garbage}"), "2026-11-22T12:00:30Z");
        assert_eq!((status, rows), (3, 0), "{garbage:?}: {said}");
    }
}

/// What is different after lines that cannot be read, or that are missing, is shown, as after a time without a recorder.
#[test]
fn what_is_different_after_what_cannot_be_read() {
    let (tree, folder) = (Tree::new(), TempDir::new().unwrap());
    tree.with_roce();
    let file = folder.path().join("record.jsonl");
    let nothing = || Some(serde_json::json!([]));
    made(&tree, &file, &[("12:00:00", 0, None), ("12:01:00", 1, nothing())]);
    let (first, last) = (fs::read_to_string(&file).unwrap(), folder.path().join("last.jsonl"));
    let gone = tree.path().join("class/infiniband/mlx5_0/ports/1/gids/3");
    fs::write(gone, format!("{EMPTY}\n")).unwrap();
    made(&tree, &last, &[("12:05:00", 5, None)]);
    let last = fs::read_to_string(&last).unwrap();
    let after_gap =
        r#"{"number":3,"time":"2026-11-22T12:03:00.000Z","monotonic_ns":43380000000000}"#;
    // With a blank before each line it is read as well.
    let indented = |own: &str| format!(" {}\n", own.trim_end().replace('\n', "\n "));
    for (unread, is_indented) in [
        ("garbage\n", false),
        ("garbage\n", true),
        ("garbage\n{}\n", false),
        (&format!("{after_gap}\n"), false),
    ] {
        let text = format!("{first}{unread}{last}");
        fs::write(&file, if is_indented { indented(&text) } else { text }).unwrap();
        let run = finish(program().args(["history", "--json"]).arg(&file));
        let document: Value = serde_json::from_str(&run.stdout).unwrap();
        let lines = document["history"].as_array().unwrap();
        let differs = lines.iter().find(|line| line["what"] == "gid_went");
        let causes = differs.map(|line| &line["causes"]);
        assert_eq!((run.status, causes), (3, Some(&serde_json::json!(["gap"]))), "{lines:#?}");
    }
}

/// The file before is read also if another program wrote the recording anew.
#[test]
fn a_file_before_one_that_was_written_anew() {
    let (tree, folder) = (Tree::new(), TempDir::new().unwrap());
    tree.with_roce();
    let file = folder.path().join("record.jsonl");
    let nothing = || Some(serde_json::json!([]));
    made(&tree, &before(&file), &[("12:00:00", 0, None), ("12:01:00", 1, nothing())]);
    made(&tree, &file, &[("12:02:00", 0, None), ("12:03:00", 1, nothing())]);
    let moment = "2026-11-22T12:00:30Z";
    for is_anew in [false, true] {
        if is_anew {
            let text = fs::read_to_string(&file).unwrap().replace(":1,", ": 1, ");
            fs::write(&file, text).unwrap();
        }
        let run = at(&["gids", "--no-header"], &file, moment);
        assert_eq!((run.status, run.stdout.lines().count()), (0, 4), "{run:?}");
    }
    // With the keys of each line in their order, and with a first line that cannot be read.
    let text = fs::read_to_string(&file).unwrap();
    let sorted = text.lines().map(|line| {
        let keys: BTreeMap<String, Value> = serde_json::from_str(line).unwrap();
        serde_json::to_string(&keys).unwrap() + "\n"
    });
    for (text, status) in [(sorted.collect(), 0), (format!("torn}}\n{text}"), 3)] {
        fs::write(&file, text).unwrap();
        let run = at(&["gids", "--no-header"], &file, moment);
        assert_eq!((run.status, run.stdout.lines().count()), (status, 4), "{run:?}");
        let run = at(&["gids", "--no-header"], &file, "2026-11-22T12:02:30Z");
        assert_eq!((run.status, run.stdout.lines().count()), (status, 4), "{run:?}");
    }
    // It is there, and cannot be read: also where a link leads nowhere.
    fs::write(&file, &text).unwrap();
    fs::remove_file(before(&file)).unwrap();
    std::os::unix::fs::symlink("nowhere", before(&file)).unwrap();
    let run = at(&["gids"], &file, "end");
    assert!(run.status == 3 && run.stderr.contains("record.jsonl.1: No such file"), "{run:?}");
    // One of snapshots has no file before, also if the first cannot be read.
    let snapshot = finish(program().arg("snapshot").arg("--sysfs").arg(tree.path())).stdout;
    let recording = text.lines().next().unwrap().to_owned() + "\n";
    fs::remove_file(before(&file)).unwrap();
    fs::write(before(&file), &recording).unwrap();
    for (first, status) in [("", 0), ("{}\n", 3)] {
        fs::write(&file, format!("{first}{snapshot}")).unwrap();
        let run = finish(program().args(["gids", "--no-header", "--from"]).arg(&file));
        assert_eq!((run.status, run.stdout.lines().count()), (status, 4), "{run:?}");
    }
    // A recording that lacks something is none of now.
    let mut lacking: Value = serde_json::from_str(&recording).unwrap();
    lacking["recording"].as_object_mut().unwrap().remove("monotonic_ns");
    fs::write(&file, lacking.to_string()).unwrap();
    fs::remove_file(before(&file)).unwrap();
    let run = finish(program().args(["gids", "--no-header", "--from"]).arg(&file));
    assert!(run.status == 3 && run.stderr.contains("missing field `monotonic_ns`"), "{run:?}");
}

/// Lines of the file before may be about what is asked for, also if its beginning is damaged.
#[test]
fn a_file_before_that_does_not_begin_as_a_recording() {
    let (tree, folder) = (Tree::new(), TempDir::new().unwrap());
    tree.with_roce();
    let file = folder.path().join("record.jsonl");
    made(&tree, &file, &[("12:00:00", 0, None)]);
    let told = |args: &[&str], said: &str| {
        let run = finish(program().arg("history").arg(&file).args(args));
        assert!(run.stderr.contains(said), "{run:?}");
        run.status
    };
    assert_eq!(told(&["nodev"], "uverbs: nodev is nowhere in the recording\n"), 1);
    for (damaged, why) in [
        ("", "no JSON: EOF while parsing a value"),
        ("\0\0\0", "it does not begin as a recording\n"),
        ("\n{}", "it does not begin as a recording\n"),
    ] {
        fs::write(before(&file), damaged).unwrap();
        let said = &format!("record.jsonl.1: {why}");
        assert_eq!(told(&[], said), 3, "{damaged:?}");
        assert_eq!(told(&["nodev"], "nodev is nowhere in the recording that could be read\n"), 3);
    }
    // Nor is it known that no table had room for a row.
    assert_eq!(told(&["mlx5_0:1", "9999"], "record.jsonl.1"), 3);
    let run = finish(program().arg("history").arg(&file).args(["mlx5_0:1", "9999"]));
    assert!(!run.stderr.contains("outside its table"), "{run:?}");
}

/// A table that cannot be read is no empty slot, and no port without a choice.
#[test]
fn what_could_not_be_read_has_no_choice_in_a_history() {
    let (tree, folder) = (Tree::new(), TempDir::new().unwrap());
    tree.with_roce();
    let file = folder.path().join("record.jsonl");
    made(&tree, &file, &[("12:00:00", 0, None)]);
    let mut first: Value = serde_json::from_str(&texts(&file)[0]).unwrap();
    let whole = first["devices"][0].clone();
    let unread = serde_json::json!({"error": "mlx5_0: no table", "errno": 5});
    first["devices"][0]["gids"] = unread.clone();
    let broken = serde_json::json!([{"whole": first["devices"][0]}]);
    let parts = [
        ("12:00:00", 0, None),
        ("12:01:00", 1, Some(broken)),
        ("12:02:00", 2, Some(serde_json::json!([{"whole": whole}]))),
    ];
    made(&tree, &file, &parts);
    let lines = history(&file, &["mlx5_0:1", "--like", "nccl"]);
    let choices: Vec<&Value> = lines.iter().filter(|line| line["what"] == "choice").collect();
    let [_, lost, found] = &choices[..] else { panic!("{lines:#?}") };
    assert_eq!((&lost["after"], &found["before"]), (&unread, &unread));
    // It begins with what is not known.
    let text = fs::read_to_string(&file).unwrap();
    let first = text.lines().next().unwrap();
    let (head, tail) = first.split_once("\"gids\":[").unwrap();
    let tail = tail.rsplit_once("]}]").unwrap().1;
    fs::write(&file, format!("{head}\"gids\":{unread}}}]{tail}\n")).unwrap();
    let lines = history(&file, &["mlx5_0:1", "3"]);
    assert_eq!((&lines[1]["what"], &lines[1]["after"]), (&"was".into(), &unread));
    for args in [&[][..], &["mlx5_0"], &["mlx5_0:1"], &["mlx5_0:1", "--like", "nccl"]] {
        let lines = history(&file, args);
        assert_eq!(whats(&lines), ["began", "unread"], "{args:?}");
        assert_eq!((&lines[1]["device"], &lines[1]["after"]), (&"mlx5_0".into(), &unread));
    }
    let text = finish(program().arg("history").arg(&file)).stdout;
    assert!(text.contains("mlx5_0      unread          mlx5_0: no table\n"), "{text}");
}

/// A device that comes takes the room of others, on which what is known of a program changes, too.
#[test]
fn a_device_that_takes_room_in_a_history() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("record.jsonl");
    let names: Vec<String> = (0..33).map(|number| format!("mlx5_{number}")).collect();
    let devices: Vec<(&str, Value)> = names.iter().map(|own| (&**own, port(DUAL))).collect();
    for (like, before, is_known) in
        [("ucx", 25, true), ("nvshmem", 16, true), ("nvshmem", 32, false), ("nccl-2.20", 16, true)]
    {
        let (first, all) = (host("h", &devices[..before]), host("h", &devices));
        let head = serde_json::json!({
            "number": 0, "time": "2026-11-20T00:00:00.000Z", "monotonic_ns": 0, "goes_on": false,
        });
        let came = serde_json::json!({
            "number": 1, "time": "2026-11-20T00:00:01.000Z", "monotonic_ns": 1_000_000_000,
            "causes": ["uevent"], "changes": [{ "whole": all["devices"][before] }],
        });
        fs::write(&file, format!("{}\n{came}\n", begun(&first, &head))).unwrap();
        for (args, count) in [(&[][..], before), (&["mlx5_0"], 1)] {
            let lines = history(&file, &[args, &["--like", like]].concat());
            let choices = lines
                .iter()
                .filter(|own| own["what"] == "choice" && own["device"] != names[before]);
            let (old, new): (Vec<&Value>, Vec<&Value>) =
                choices.partition(|own| own["before"].is_null());
            assert_eq!((old.len(), new.len()), (count, count), "{like} {args:?}: {lines:#?}");
            assert!(old.iter().all(|own| own["after"]["is_sure"] == is_known), "{old:#?}");
            assert!(new.iter().all(|own| own["after"]["is_sure"] == false), "{new:#?}");
        }
    }
}

/// A device that comes and cannot be listed is no device to which nothing happened.
#[test]
fn what_cannot_be_listed_later_is_unread() {
    let (tree, folder) = (Tree::new(), TempDir::new().unwrap());
    tree.with_roce();
    let file = folder.path().join("record.jsonl");
    made(&tree, &file, &[("12:00:00", 0, None)]);
    let mut host: Value = serde_json::from_str(&texts(&file)[0]).unwrap();
    host["devices"] = serde_json::json!([]);
    let problem = serde_json::json!({ "error": "mlx5_9: list: broken", "errno": 71 });
    let mut broken = host.clone();
    broken["unlisted"] = serde_json::json!([{ "device": "mlx5_9", "problem": problem }]);
    let mut more = broken.clone();
    more["modules"] = serde_json::json!([]);
    let lost = serde_json::json!({ "error": "host: list interfaces: broken", "errno": 5 });
    more["problems"] = serde_json::json!([lost]);
    let line = |host: &Value| Some(serde_json::json!([{ "host": host }]));
    let parts = [
        ("12:00:00", 0, None),
        ("12:01:00", 1, line(&broken)),
        ("12:02:00", 2, line(&more)),
        ("12:03:00", 3, line(&host)),
    ];
    made(&tree, &file, &parts);
    for args in
        [&["mlx5_9"][..], &["mlx5_9:1"], &["mlx5_9:1", "3"], &["mlx5_9:1", "--like", "nccl"]]
    {
        let lines = history(&file, args);
        let lines: Vec<&Value> = lines.iter().filter(|line| line["what"] != "began").collect();
        let [own, of_host, rest @ ..] = &lines[..] else { panic!("{args:?}: {lines:#?}") };
        // Of a row it is said that there is none in the end.
        let rest: Vec<&Value> = rest.iter().map(|line| &line["after"]).collect();
        assert!(
            rest == [&Value::from("not there")][..usize::from(args.contains(&"3"))],
            "{args:?}: {rest:?}"
        );
        assert_eq!((&own["device"], &own["after"]), (&"mlx5_9".into(), &problem), "{args:?}");
        assert_eq!((&of_host["device"], &of_host["after"]), (&Value::Null, &lost), "{args:?}");
    }
    let lines = history(&file, &["mlx5_0"]);
    assert_eq!(whats(&lines), ["began", "unread"], "only the host's");
    assert_eq!(whats(&history(&file, &[])), ["began", "host", "host", "host"]);
}

/// What a program takes on a port may depend on the interfaces of its rows, and on any where these are not known.
#[test]
fn interfaces_that_matter_to_a_choice() {
    let (tree, folder) = (Tree::new(), TempDir::new().unwrap());
    tree.with_roce();
    let file = folder.path().join("record.jsonl");
    made(&tree, &file, &[("12:00:00", 0, None)]);
    let mut host: Value = serde_json::from_str(&texts(&file)[0]).unwrap();
    let mut device = host["devices"][0].clone();
    let row = &mut device["gids"][2];
    assert_eq!(row["gid"], "::ffff:192.168.77.1");
    (row["ifindex"], row["netdev"]) = (Value::Null, Value::Null);
    let interface = |index: u32, is_up: bool| {
        let own = if index == 2 { "192.168.77.1" } else { "10.0.0.9" };
        serde_json::json!({
            "index": index, "name": format!("eth{index}"), "is_up": is_up, "is_lower_up": is_up, "mtu": 1500,
            "addresses": [[own, 24]],
        })
    };
    for (is_known, has_index) in [(true, true), (true, false), (false, false)] {
        let row = &mut device["gids"][2];
        row["ifindex"] = if has_index { 2.into() } else { Value::Null };
        row["netdev"] = Value::Null;
        if is_known {
            row["netdev"] = serde_json::json!({ "index": 2, "name": "eth2" });
        }
        host["devices"] = serde_json::json!([]);
        host["host"] = "h".into();
        host["has_netlink"] = true.into();
        host["interfaces"] = serde_json::json!([interface(2, true), interface(7, true)]);
        let line = |own: Value| Some(serde_json::json!([{ "interface": own }]));
        let parts = [
            ("12:00:00", 0, None),
            ("12:01:00", 1, Some(serde_json::json!([{ "host": host }, { "whole": device }]))),
            ("12:02:00", 2, line(interface(7, false))),
            ("12:03:00", 3, line(interface(2, false))),
            ("12:04:00", 4, line(interface(2, true))),
        ];
        made(&tree, &file, &parts);
        let lines = history(&file, &["mlx5_0:1", "--like", "nccl"]);
        let seen: Vec<(&str, &str)> = lines
            .iter()
            .filter(|line| line["what"] == "choice")
            .map(|line| (&line["time"].as_str().unwrap()[14..16], &line["causes"]))
            .map(|(time, causes)| (time, causes[0].as_str().unwrap_or_default()))
            .filter(|(time, _)| *time > "01")
            .collect();
        assert_eq!(seen, [("03", "interface"), ("04", "interface")], "{is_known} {has_index}");
    }
}

/// Where one device can be opened, a program may be unable to open the others; where none can, it is elsewhere.
#[test]
fn a_device_that_can_be_opened_changes_what_is_known_of_others() {
    let (tree, folder) = (Tree::new(), TempDir::new().unwrap());
    tree.with_roce();
    tree.with_infiniband();
    let file = folder.path().join("record.jsonl");
    made(&tree, &file, &[("12:00:00", 0, None)]);
    let mut host: Value = serde_json::from_str(&texts(&file)[0]).unwrap();
    let [mut other, mut own] = [0, 1].map(|place| host["devices"][place].clone());
    assert_eq!((&own["name"], &other["name"]), (&"mlx5_0".into(), &"mlx4_0".into()));
    for (number, device) in [&mut own, &mut other].into_iter().enumerate() {
        let path = format!("/dev/infiniband/uverbs{number}");
        device["node"] = serde_json::json!({ "name": format!("uverbs{number}"), "path": path, "number": number });
        device["access"] = serde_json::json!({ "error": format!("{path}: EACCES"), "errno": 13 });
    }
    let mut usable = other.clone();
    usable["access"] = true.into();
    (host["host"], host["devices"]) = ("h".into(), serde_json::json!([]));
    let begin = serde_json::json!([{ "host": host }, { "whole": own }, { "whole": other }]);
    let parts = [
        ("12:00:00", 0, None),
        ("12:01:00", 1, Some(begin)),
        ("12:02:00", 2, Some(serde_json::json!([{ "whole": usable }]))),
    ];
    made(&tree, &file, &parts);
    let lines = history(&file, &["mlx5_0:1", "--like", "nccl"]);
    let choices: Vec<&Value> = lines.iter().filter(|line| line["what"] == "choice").collect();
    let [_, before, after] = &choices[..] else { panic!("{lines:#?}") };
    let is_sure = [before, after].map(|line| line["after"]["is_sure"].as_bool());
    assert_eq!(is_sure, [Some(true), Some(false)], "{choices:#?}");
}

/// Of a recommendation that is not known to be right no choice is right or wrong.
#[test]
fn a_choice_beside_a_doubtful_recommendation() {
    let (tree, folder) = (Tree::new(), TempDir::new().unwrap());
    tree.with_roce();
    let file = folder.path().join("record.jsonl");
    made(&tree, &file, &[("12:00:00", 0, None)]);
    let judged = |known: bool| {
        let mut first: Value = serde_json::from_str(&texts(&file)[0]).unwrap();
        first["host"] = "h".into();
        first["has_netlink"] = true.into();
        let interface = |index: u32, name: &str, addresses: Value| {
            serde_json::json!({
                "index": index, "name": name, "is_up": true, "is_lower_up": true, "mtu": 1500,
                "mac": "02:11:22:33:44:55", "addresses": addresses,
            })
        };
        let own = serde_json::json!([["192.168.77.1", 24], ["fe80::11:22ff:fe33:4455", 64]]);
        first["interfaces"] = serde_json::json!([
            interface(2, "eth0", own),
            interface(3, "eth0.7", serde_json::json!([["10.7.0.1", 24]])),
        ]);
        for row in first["devices"][0]["gids"].as_array_mut().unwrap() {
            let number = if row["index"] == 10 { 3 } else { 2 };
            row["ifindex"] = number.into();
            let name = if number == 3 { "eth0.7" } else { "eth0" };
            if known || row["index"] != 3 {
                row["netdev"] = serde_json::json!({ "index": number, "name": name });
            }
        }
        first["devices"][0]["ports"][0]["netdev"] =
            serde_json::json!({ "index": 2, "name": "eth0" });
        let path = folder.path().join("own.jsonl");
        let own = first.as_object_mut().unwrap();
        let head = [own.remove("schema_version"), own.remove("recording")].map(Option::unwrap);
        let rest = first.to_string();
        let line =
            format!(r#"{{"schema_version":{},"recording":{},{}"#, head[0], head[1], &rest[1..]);
        fs::write(&path, line + "\n").unwrap();
        let lines = history(&path, &["mlx5_0:1", "--like", "nccl"]);
        let text = finish(program().arg("history").arg(&path).args(["mlx5_0:1", "--like", "nccl"]));
        let choice = lines.iter().find(|line| line["what"] == "choice").unwrap();
        (choice["after"].clone(), text.stdout)
    };
    let (choice, text) = judged(true);
    assert_eq!((&choice["recommended"], &choice["is_right"]), (&3.into(), &true.into()), "{text}");
    let (choice, text) = judged(false);
    assert_eq!(choice["is_right"], Value::Null, "{choice} {text}");
    assert!(text.contains("3 ::ffff:192.168.77.1 (perhaps wrong: 10 is recommended)"), "{text}");
}

/// What of a recording could not be read is said, also if there is an answer: there may be another.
#[test]
fn a_part_that_cannot_be_read_is_said_beside_the_answer() {
    let (tree, folder) = (Tree::new(), TempDir::new().unwrap());
    tree.with_roce();
    let file = folder.path().join("record.jsonl");
    let nothing = || Some(serde_json::json!([]));
    let parts = [
        ("12:00:00", 0, None),
        ("12:01:00", 1, nothing()),
        ("12:05:00", 0, None),
        ("12:06:00", 1, nothing()),
    ];
    made(&tree, &file, &parts);
    let time = "2026-11-22T12:00:30Z";
    let run = at(&["gids"], &file, time);
    assert_eq!((run.status, run.stdout.lines().count()), (0, 5), "{run:?}");
    let mut lines = texts(&file);
    lines[2].insert(0, 'x');
    fs::write(&file, lines.join("\n") + "\n").unwrap();
    let run = at(&["gids"], &file, time);
    assert_eq!((run.status, run.stdout.lines().count()), (3, 5), "{run:?}");
    assert!(run.stderr.contains("record.jsonl: line 3"), "{run:?}");
    let json = at(&["gids", "--json"], &file, time);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["problems"].as_array().unwrap().len(), 1, "{json}");
}

/// A recorder that is stopped does not see what comes and goes meanwhile, and does not say that nothing did.
#[test]
fn a_recorder_that_was_stopped() {
    let (tree, folder) = (Tree::new(), TempDir::new().unwrap());
    let port = tree.with_roce().port_again(1);
    let file = folder.path().join("record.jsonl");
    let recorder = Recorder::begin(&tree, &file, &["--reread", "0.01"]);
    kill(recorder.pid(), Signal::SIGSTOP).unwrap();
    // What it was about to write is older.
    thread::sleep(Duration::from_millis(50));
    port.gid(5, ADDRESS, "RoCE v2", Some("eth0"));
    let time = now();
    thread::sleep(Duration::from_secs(12));
    port.file("gids/5", EMPTY);
    kill(recorder.pid(), Signal::SIGCONT).unwrap();
    let is_begun = |line: &Value| line["recording"]["goes_on"] == false;
    wait(|| lines(&file).iter().filter(|line| is_begun(line)).count() >= 2);
    recorder.end();
    let run = at(&["gids"], &file, &time);
    assert!(run.status == 3 && run.stderr.contains("nothing was recorded between"), "{run:?}");
    assert_eq!(whats(&history(&file, &[])), ["began", "not_recorded"]);
}

/// No line says that all is as before if that was not read, also where all is never read again.
#[test]
fn what_was_not_heard_is_read_before_a_line() {
    let (tree, folder) = (Tree::new(), TempDir::new().unwrap());
    let port = tree.with_roce().port_again(1);
    let file = folder.path().join("record.jsonl");
    let recorder = Recorder::begin(&tree, &file, &["--reread", "0"]);
    port.gid(5, ADDRESS, "RoCE v2", Some("eth0"));
    recorder.end();
    assert_eq!(whats(&history(&file, &[])), ["began", "gid_came"]);
}

/// A device is not said to be nowhere if at some moment it could not be known which there were.
#[test]
fn a_name_in_a_recording_whose_list_was_not_read() {
    let (tree, folder) = (Tree::new(), TempDir::new().unwrap());
    let file = folder.path().join("record.jsonl");
    made(&tree, &file, &[("12:00:00", 0, None)]);
    let run = finish(program().arg("history").arg(&file).arg("mlx5_0"));
    assert!(run.status == 1 && run.stderr.contains("mlx5_0 is nowhere"), "{run:?}");
    let text = fs::read_to_string(&file).unwrap();
    let problem = r#""problems":[{"error":"host: list devices: ENOMEM","errno":12}]"#;
    let failed = problem.replace("problems\":[", "list_failure\":").replace(']', "");
    let text = text.replace(r#""problems":[]"#, problem).replace(r#""list_failure":null"#, &failed);
    assert!(text.contains(problem) && text.contains(&failed), "{text}");
    fs::write(&file, text).unwrap();
    let run = finish(program().arg("history").arg(&file).arg("mlx5_0"));
    assert!(run.status == 3 && !run.stderr.contains("nowhere"), "{run:?}");
    assert!(run.stderr.contains("host: list devices: ENOMEM"), "{run:?}");
}

/// A line that says that something changed says what.
#[test]
fn what_changed_is_shown() {
    let (tree, folder) = (Tree::new(), TempDir::new().unwrap());
    tree.with_roce();
    let file = folder.path().join("record.jsonl");
    made(&tree, &file, &[("12:00:00", 0, None)]);
    let first: Value = serde_json::from_str(&texts(&file)[0]).unwrap();
    let mut device = first["devices"][0].clone();
    device["hardware"] = serde_json::json!({ "pci": {
        "address": "0000:17:00.0", "id": null, "physical": null, "max_link": null,
        "link": { "speed": 160, "width": 8 },
    } });
    let mut host = first.clone();
    host["devices"] = serde_json::json!([]);
    host["modules"] = serde_json::json!(["ib_core", "ib_umad"]);
    let interface = |mac: &str| {
        serde_json::json!({
            "index": 2, "name": "eth0", "is_up": true, "is_lower_up": true, "mtu": 1500, "mac": mac,
            "addresses": [["fd00::1", 64]],
        })
    };
    host["interfaces"] = serde_json::json!([interface("02:00:00:00:00:01")]);
    let mut duplicate = interface("02:00:00:00:00:02");
    duplicate["unfit"] = serde_json::json!([["fd00::1", "duplicate"]]);
    let refusal = serde_json::json!({ "error": "host: ask RDMA netlink: EPERM", "errno": 1 });
    let mut refused = host.clone();
    refused["without_netlink"] = refusal.clone();
    // The last device went: nothing is missed any more.
    let mut missed = refused.clone();
    missed["problems"] = serde_json::json!([refusal]);
    let parts = [
        ("12:00:00", 0, None),
        ("12:01:00", 1, Some(serde_json::json!([{ "whole": device }]))),
        ("12:02:00", 2, Some(serde_json::json!([{ "host": host }]))),
        ("12:03:00", 3, Some(serde_json::json!([{ "interface": interface("02:00:00:00:00:02") }]))),
        ("12:04:00", 4, Some(serde_json::json!([{ "interface": duplicate }]))),
        ("12:05:00", 5, Some(serde_json::json!([{ "host": missed }]))),
        ("12:06:00", 6, Some(serde_json::json!([{ "host": refused }]))),
    ];
    made(&tree, &file, &parts);
    let lines = history(&file, &[]);
    let expected =
        ["began", "device_changed", "host", "interface", "interface", "interface", "host", "host"];
    assert_eq!(whats(&lines), expected);
    for line in &lines[1..] {
        assert_ne!(line["before"], line["after"], "{line}");
    }
    assert_eq!(lines[1]["after"]["pcie_link"], "16GT/s,x8");
    let come = lines[2]["after"].as_array().unwrap();
    assert!(come.contains(&"module ib_umad".into()), "{come:?}");
    assert_eq!(lines[3]["after"]["mac"], "02:00:00:00:00:02");
    let plain = uverbs(&["history", file.to_str().unwrap()]).stdout;
    assert!(plain.contains("unfit fd00::1 (another host has its address"), "{plain}");
}

/// Before Linux 6.5 the row of iWARP does not say that it is of the port's interface, and depends on that all the same.
#[test]
fn a_choice_of_iwarp_changes_with_the_interface() {
    let folder = TempDir::new().unwrap();
    let mut own = host("node1", &[("siw0", port(DUAL))]);
    let siw = &mut own["devices"][0];
    (siw["node_type"], siw["gids"]) = (4.into(), serde_json::json!([siw["gids"][0]]));
    let row = &mut siw["gids"][0];
    (row["ifindex"], row["netdev"], row["gid_type"]) = (Value::Null, Value::Null, 0.into());
    row["gid"] = "0211:2233:4455:0000:0000:0000:0000:0000".into();
    let interface = own["interfaces"][0].clone();
    for (key, value) in [("is_lower_up", false.into()), ("mac", Value::from("02:11:22:33:44:66"))] {
        let file = folder.path().join(format!("{key}.jsonl"));
        let mut first = own.clone();
        first.as_object_mut().unwrap().remove("schema_version");
        let first = first.to_string();
        let mut changed = interface.clone();
        changed[key] = value;
        let text = format!(
            r#"{{"schema_version":1,"recording":{{"number":0,"time":"2026-11-22T12:00:00Z","monotonic_ns":0,"goes_on":false}},{}
{{"number":1,"time":"2026-11-22T12:01:00Z","monotonic_ns":60000000000,"changes":[{{"interface":{changed}}}]}}
"#,
            &first[1..]
        );
        fs::write(&file, text).unwrap();
        let lines = history(&file, &["--like", "nccl"]);
        assert_eq!(whats(&lines), ["began", "choice", "interface", "choice"], "{lines:?}");
        let wanted = |time| at(&["choose"], &file, time);
        let statuses = ["2026-11-22T12:00:30Z", "end"].map(|time| wanted(time).status);
        assert_eq!(statuses, [0, 1], "{key}");
    }
}

/// Nothing of a PCI function changes without being shown.
#[test]
fn each_change_of_a_pci_function_is_shown() {
    let (tree, folder) = (Tree::new(), TempDir::new().unwrap());
    tree.with_roce();
    let file = folder.path().join("record.jsonl");
    made(&tree, &file, &[("12:00:00", 0, None)]);
    let first: Value = serde_json::from_str(&texts(&file)[0]).unwrap();
    let function = uverbs::hardware::PciFunction::at("0000:17:00.0".parse().unwrap());
    let function = serde_json::to_value(function).unwrap();
    let whole = |function: &Value| {
        let mut device = first["devices"][0].clone();
        device["hardware"] = serde_json::json!({ "pci": function });
        Some(serde_json::json!([{ "whole": device }]))
    };
    for (key, value) in function.as_object().unwrap() {
        let mut changed = function.clone();
        changed[key] = match (key.as_str(), value) {
            ("address" | "physical", _) => "0000:18:00.0".into(),
            ("link" | "max_link", _) => serde_json::json!({ "speed": 160, "width": 8 }),
            ("id", _) => serde_json::json!([0x15b3, 0x1021]),
            (_, Value::Bool(own)) => (!own).into(),
            other => panic!("{other:?}"),
        };
        let parts = [
            ("12:00:00", 0, None),
            ("12:01:00", 1, whole(&function)),
            ("12:02:00", 2, whole(&changed)),
        ];
        made(&tree, &file, &parts);
        let run = finish(program().arg("history").arg(&file));
        let line = run.stdout.lines().nth(2).unwrap();
        let (before, after) = line.split_once(" \u{2192} ").unwrap();
        assert!(!before.ends_with(after), "{key}: {line}");
    }
}
