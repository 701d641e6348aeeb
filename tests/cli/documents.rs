//! Several snapshots in one file, or on standard input.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use crate::pages;
use crate::run::{Run, finish, make_fifo, program};
use crate::snapshots::{DUAL, Fleet, VLAN, fleet_with_everything, host, port};
use crate::tree::Tree;

/// A file with these lines.
fn file(folder: &TempDir, lines: &[String]) -> PathBuf {
    let path = folder.path().join("fleet.jsonl");
    fs::write(&path, lines.join("\n")).unwrap();
    path
}

fn uverbs(args: &[&str], file: &Path) -> Run {
    finish(program().args(args).arg("--from").arg(file))
}

fn json(args: &[&str], file: &Path) -> Value {
    let run = uverbs(&[args, &["--json"]].concat(), file);
    serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{run:?}"))
}

fn hosts(names: &[&str]) -> Vec<String> {
    let rows = [DUAL, VLAN];
    let text = |(place, name): (usize, &&str)| {
        host(name, &[("mlx5_0", port(rows[place % 2])), ("mlx5_1", port(DUAL))]).to_string()
    };
    names.iter().enumerate().map(text).collect()
}

/// In one file or in many, in a line or in many, hosts are the same.
#[test]
fn one_file_or_many() {
    let many = fleet_with_everything();
    let texts: Vec<String> =
        (0..2).map(|number| fs::read_to_string(many.file(number)).unwrap()).collect();
    let pretty: Vec<String> = texts
        .iter()
        .map(|text| {
            let value: Value = serde_json::from_str(text).unwrap();
            serde_json::to_string_pretty(&value).unwrap()
        })
        .collect();
    let folder = TempDir::new().unwrap();
    for lines in [texts, pretty] {
        let file = file(&folder, &lines);
        for command in [
            &["devices"] as &[&str],
            &["gids"],
            &["gid", "mlx5_0:1", "3"],
            &["ports", "mlx5_1"],
            &["guids"],
            &["choose", "--explain"],
            &["choose", "nowhere"],
            &["check"],
            &["fleet"],
            &["fleet", "--hosts", "node[1-2]"],
            &["env", "nccl"],
            &["env", "ucx", "mlx5_0"],
        ] {
            for format in [&[] as &[&str], &["--json"]] {
                let words = [command, format].concat();
                let (one, other) = (uverbs(&words, &file), many.uverbs(&words));
                assert_eq!(one.stdout, other.stdout, "{words:?}");
                assert_eq!((one.stderr, one.status), (other.stderr, other.status), "{words:?}");
            }
        }
        let from = fs::File::open(&file).unwrap();
        let run = finish(program().args(["choose", "--json", "--from", "-"]).stdin(from));
        assert_eq!(run.stdout, many.uverbs(&["choose", "--json"]).stdout);
    }
}

/// Each `--from` takes one file, and a word after it is a selector.
#[test]
fn a_selector_after_a_file() {
    let fleet = fleet_with_everything();
    let (one, two) = (fleet.file(0), fleet.file(1));
    let words = |words: &[&std::ffi::OsStr]| finish(program().args(words));
    let [one, two] = [one.as_os_str(), two.as_os_str()];
    let (from, port) = ("--from".as_ref(), "mlx5_0:1".as_ref());
    let run = words(&["ports".as_ref(), from, one, port, "--no-header".as_ref()]);
    assert_eq!((run.stdout.lines().count(), run.status), (1, 0), "{run:?}");
    assert!(run.stdout.starts_with("node1  mlx5_0  1  active"), "{run:?}");
    let before = words(&["ports".as_ref(), port, from, one, "--no-header".as_ref()]);
    assert_eq!(run.stdout, before.stdout);
    let both = words(&["ports".as_ref(), from, one, port, from, two, "--no-header".as_ref()]);
    let hosts: Vec<&str> = both.stdout.lines().map(|line| &line[..5]).collect();
    assert_eq!(hosts, ["node1", "node2"], "{both:?}");
}

/// A thousand files do not fit on every command line.
#[test]
fn a_folder_of_files() {
    let folder = TempDir::new().unwrap();
    let lines = hosts(&["node1", "node2", "node3"]);
    // A shell, too, does not take hidden files for `*.json`.
    fs::write(folder.path().join(".d.json"), "no JSON").unwrap();
    for (name, line) in ["b.json", "a.jsonl", "c.txt"].iter().zip(&lines) {
        fs::write(folder.path().join(name), line).unwrap();
    }
    let run = uverbs(&["devices", "--no-header"], folder.path());
    let names: Vec<&str> = run.stdout.lines().map(|line| &line[..5]).collect();
    assert_eq!(names, ["node2", "node2", "node1", "node1"], "by the names of files: {run:?}");
    assert_eq!((run.stderr.as_str(), run.status), ("", 0));
    let empty = TempDir::new().unwrap();
    let run = uverbs(&["devices"], empty.path());
    assert!(
        run.stderr.ends_with(
            ": the folder has no file *.json or *.jsonl (of those that do not begin with a dot)\n"
        ),
        "{run:?}"
    );
    assert_eq!(run.status, 3);
    // A pipe without a writer is not waited for, and the others are shown.
    make_fifo(&folder.path().join("pipe.json"));
    let run = uverbs(&["devices", "--no-header"], folder.path());
    assert_eq!(run.stdout.lines().count(), 4, "{run:?}");
    assert!(run.stderr.ends_with("/pipe.json: not a regular file\n"), "{run:?}");
    assert_eq!(run.status, 3);
}

/// Commands without a document of their own: `gid` prints that of `gids`, `snapshot` what `--from` reads, and `expect`
/// no JSON. The form of what `cdi` prints is not ours.
const OTHERS: [&str; 9] =
    ["gid", "snapshot", "expect", "metrics", "nfd", "cdi", "mlx5", "completions", "man"];

/// What another command printed is easily taken for a snapshot. The first key of its document names it.
#[test]
fn the_output_of_another_command() {
    let fleet = fleet_with_everything();
    let mut outputs: Vec<(Value, &str)> = Vec::new();
    for (args, command) in [
        (&["devices"] as &[&str], "devices"),
        (&["gids"], "gids"),
        (&["gid", "mlx5_0:1", "3"], "gids"),
        (&["ports"], "ports"),
        (&["guids"], "guids"),
        (&["pkeys"], "pkeys"),
        (&["choose"], "choose"),
        (&["env", "nccl"], "env"),
        (&["check"], "check"),
        (&["fleet"], "fleet"),
    ] {
        outputs.push((fleet.json(args), command));
    }
    let tree = Tree::new();
    tree.with_roce();
    outputs.push((tree.json(&["counters"]), "counters"));
    // Those of devices that no test has.
    for (text, command) in [
        (r#"{"limits":[],"problems":[]}"#, "limits"),
        (r#"{"wait":[],"problems":[]}"#, "wait"),
        (r#"{"history":[],"problems":[]}"#, "history"),
        (r#"{"time":"2026-11-22T21:58:57.198Z","monotonic_ns":1,"what":"gid_came"}"#, "watch"),
        (r#"{"devices":[{"device":"mlx5_0","vhca_id":null}],"problems":[]}"#, "mlx5 device"),
        (r#"{"ports":[],"left_out":[],"problems":[]}"#, "mlx5 port"),
        (r#"{"vports":[],"left_out":[],"problems":[]}"#, "mlx5 vport"),
    ] {
        outputs.push((serde_json::from_str(text).unwrap(), command));
    }
    // A command that is forgotten here may print what `--from` has no name for.
    let named: Vec<&str> = outputs.iter().map(|(_, command)| *command).collect();
    for command in pages::commands() {
        let is_other = OTHERS.contains(&command.as_str());
        assert!(is_other != named.contains(&command.as_str()), "{command}");
    }
    let folder = TempDir::new().unwrap();
    for (answer, command) in outputs {
        for text in [answer.to_string(), serde_json::to_string_pretty(&answer).unwrap()] {
            let run = uverbs(&["gids"], &file(&folder, &[text]));
            let said = format!(
                "fleet.jsonl: this is the output of `uverbs {command}`; a snapshot is made by \
                 `uverbs snapshot`\n"
            );
            assert!(run.stderr.ends_with(&said) && run.status == 3, "{command}: {run:?}");
        }
    }
}

#[test]
fn empty_lines_and_a_torn_end() {
    let folder = TempDir::new().unwrap();
    let [one, two, torn] = <[String; 3]>::try_from(hosts(&["node1", "node2", "node3"])).unwrap();
    let torn = torn[..torn.len() / 2].to_owned();
    let file = file(&folder, &[String::new(), one, "  ".into(), two, String::new(), torn]);
    let answer = json(&["devices"], &file);
    let names = |answer: &Value| {
        let rows = answer["devices"].as_array().unwrap().iter();
        rows.map(|row| row["host"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&answer), ["node1", "node1", "node2", "node2"]);
    let problem = &answer["problems"][0];
    let place = format!("{}:6", folder.path().join("fleet.jsonl").display());
    assert_eq!(problem["host"], place.as_str());
    let error = problem["error"].as_str().unwrap();
    assert!(error.contains("fleet.jsonl: line 6: no JSON: EOF while"), "{error}");
    assert_eq!(answer["problems"].as_array().unwrap().len(), 1);
    // Nothing is said of all hosts.
    let fits = json(&["choose"], &file)["fits_all"].clone();
    assert_eq!((&fits["index"], fits["hosts"].as_u64()), (&Value::Null, Some(2)), "{fits}");
    assert_eq!(fits["unread"], serde_json::json!([place]));
    let run = uverbs(&["env", "nccl"], &file);
    assert_eq!((run.stdout.as_str(), run.status), ("", 3), "{run:?}");
    assert!(
        run.stderr.contains("as not everything was read: ")
            && run.stderr.contains("/fleet.jsonl:6\n"),
        "{run:?}"
    );
    assert_eq!(uverbs(&["check"], &file).status, 3);
}

#[test]
fn a_bad_or_a_huge_document_between_others() {
    let folder = TempDir::new().unwrap();
    let [one, two, bad] = <[String; 3]>::try_from(hosts(&["node1", "node2", "node3"])).unwrap();
    let huge = bad.replace("6.12.0", &"x".repeat(17 << 20));
    let bad = bad.replace("\"mlx5_1\"", "\"mlx5_0\"");
    let file = file(&folder, &[one, huge, bad, two]);
    let run = uverbs(&["devices", "--no-header"], &file);
    let hosts: Vec<&str> = run.stdout.lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(hosts, ["node1", "node1", "node2", "node2"], "{run:?}");
    let said: Vec<&str> = run.stderr.lines().collect();
    assert!(said[0].ends_with("fleet.jsonl: line 2: longer than 16 MiB"), "{said:?}");
    assert!(said[1].ends_with("line 3: devices: two devices with one name"), "{said:?}");
    assert_eq!((said.len(), run.status), (2, 3));
}

/// Hosts with one name are told apart by their lines.
#[test]
fn one_name_of_several_hosts() {
    let folder = TempDir::new().unwrap();
    let file = file(&folder, &hosts(&["node1", "node1", "node1"]));
    let answer = json(&["devices"], &file);
    let name = |place: usize| answer["devices"][place]["host"].as_str().unwrap().to_owned();
    assert_eq!(name(0), "node1");
    assert_eq!(name(2), format!("{}:2", file.display()));
    assert_eq!(name(4), format!("{}:3", file.display()));
}

#[test]
fn other_tools_have_one_host() {
    let folder = TempDir::new().unwrap();
    let lines = hosts(&["node1", "node2", "node3"]);
    for (command, tool) in [("gids", "show_gids"), ("ports", "ibstat"), ("ports", "ibdev2netdev")] {
        let words = [command, "--format", tool];
        let all = uverbs(&words, &file(&folder, &lines));
        let one = uverbs(&words, &file(&folder, &lines[..1]));
        assert_eq!(all.stdout, one.stdout, "{tool}");
        assert_eq!((all.status, one.status), (1, 0), "{tool}: {all:?}");
        let said = format!("uverbs: {tool} knows one host: the first is shown\n");
        assert_eq!(all.stderr, said, "once, however many there are");
    }
}

/// What is said of hosts has the order of what is asked, not that of the hosts.
#[test]
fn problems_have_an_order() {
    let fleet = Fleet::new(&[host("a", &[]), serde_json::json!({}), host("b", &[])]);
    let answer = fleet.json(&["ports", "mlx5_0"]);
    let hosts: Vec<&str> = answer["problems"]
        .as_array()
        .unwrap()
        .iter()
        .map(|problem| problem["host"].as_str().unwrap())
        .collect();
    let file = fleet.file(1).display().to_string();
    assert_eq!(hosts, [&file, "a", "b"], "the file, then the hosts");
}
