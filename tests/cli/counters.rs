//! `counters`, from sysfs.

use std::process::{Output, Stdio};

use serde_json::{Value, json};

use crate::conforms::conforms;
use crate::run::{program, uverbs};
use crate::tree::Tree;

/// A tree whose one device counts.
fn counting() -> Tree {
    let tree = Tree::new();
    let device = tree.with_roce();
    device.file("hw_counters/cmds_err", "0");
    let port = device.port_again(1);
    for (file, text) in [
        ("hw_counters/RNR sent", "4"),
        ("hw_counters/lifespan", "10"),
        ("hw_counters/out_of_buffer", "7"),
        ("counters/link_downed", "255"),
        ("counters/port_rcv_data", "12"),
        ("counters/port_rcv_errors", "0"),
        ("counters/port_xmit_wait", "3"),
    ] {
        port.file(file, text);
    }
    tree
}

#[test]
fn what_is_full_or_wrong_stands_out() {
    let tree = counting();
    assert_eq!(
        tree.answer(&["counters"]),
        "\
DEVICE  PORT  COUNTER         VALUE  UNIT    NOTE
mlx5_0  1     RNR sent        4      -       -
mlx5_0  1     out_of_buffer   7      events  error
mlx5_0  1     link_downed     >=255  events  saturated
mlx5_0  1     port_rcv_data   48     bytes   -
mlx5_0  1     port_xmit_wait  3      ticks   -
"
    );
    let all = tree.answer(&["counters", "--all"]);
    assert!(all.contains("mlx5_0  -     cmds_err         0      events   -\n"), "{all}");
    assert!(all.contains("port_rcv_errors  0      packets  -\n"), "{all}");
    assert!(!all.contains("lifespan"), "{all}");
}

/// Data is in bytes up to its end, and at it.
#[test]
fn large_numbers_of_words_are_bytes() {
    let tree = Tree::new();
    let port = tree.with_roce().port_again(1);
    port.file("counters/port_rcv_data", "4294967295");
    port.file("counters/port_xmit_data", "18446744073709551615");
    assert_eq!(
        tree.answer(&["counters"]),
        "\
DEVICE  PORT  COUNTER         VALUE                 UNIT   NOTE
mlx5_0  1     port_rcv_data   >=17179869180         bytes  saturated
mlx5_0  1     port_xmit_data  73786976294838206460  bytes  -
"
    );
    let json = tree.answer(&["counters", "--json"]);
    assert!(json.contains("\"value\":73786976294838206460,"), "{json}");
    let metrics = tree.answer(&["metrics"]);
    let data =
        "uverbs_port_xmit_data_bytes_total{device=\"mlx5_0\",port=\"1\"} 73786976294838206460\n";
    assert!(metrics.contains(data), "{metrics}");
}

#[test]
fn json() {
    let answer = counting().json(&["counters", "mlx5_0:1"]);
    let rows = answer["counters"].as_array().unwrap();
    let row = |name: &str| rows.iter().find(|row| row["name"] == name).unwrap();
    assert_eq!(
        row("link_downed"),
        &json!({
            "device": "mlx5_0", "port": 1, "name": "link_downed", "group": "pma", "value": null,
            "unit": "events", "raw": 255, "is_saturated": true, "bits": 8, "end": "saturates",
            "is_gauge": false, "is_error": true, "source": "sysfs",
        })
    );
    let data = row("port_rcv_data");
    assert_eq!(
        (&data["value"], &data["raw"], &data["unit"]),
        (&json!(48), &json!(12), &json!("bytes"))
    );
    assert_eq!(row("cmds_err")["port"], json!(null));
    let port = json!([{
        "device": "mlx5_0", "port": 1, "optional": {}, "netlink_requests": 0, "files": 6,
        "firmware_commands": null, "left_out": [], "is_hidden": false,
    }]);
    assert_eq!((&answer["ports"], &answer["resources"]), (&port, &json!(null)));
}

#[test]
fn rates() {
    let tree = counting();
    let rows = tree.json(&["counters", "--rate", "0.001"]);
    assert!(rows["seconds"].as_f64().unwrap() >= 0.001, "{rows}");
    for row in rows["counters"].as_array().unwrap() {
        let expected = if row["is_saturated"] == true { json!(null) } else { json!(0.0) };
        assert_eq!(row["per_second"], expected, "{row}");
    }
    // A rate of what has stopped is not known, and is shown.
    assert_eq!(
        tree.answer(&["counters", "--rate", "0.001"]),
        "\
DEVICE  PORT  COUNTER      PER_SECOND  UNIT    NOTE
mlx5_0  1     link_downed  -           events  saturated
"
    );
    for wrong in ["0", "-1", "x", "NaN", "inf", "86401"] {
        let run = uverbs(&["counters", &format!("--rate={wrong}")]);
        assert!(run.status == 3 && run.stderr.contains("expected a number of seconds"), "{run:?}");
    }
}

/// The output of two readings with a change between them, which is made when the first one has read this file.
fn between(tree: &Tree, last: &str, args: &[&str], change: impl FnOnce()) -> Output {
    use rustix::fs::inotify::{CreateFlags, Reader, WatchFlags, add_watch, init};
    let file = tree.path().join("class/infiniband/mlx5_0/ports/1").join(last);
    let inotify = init(CreateFlags::CLOEXEC).unwrap();
    add_watch(&inotify, &file, WatchFlags::ACCESS).unwrap();
    let mut command = program();
    command.args(["counters", "--rate", "1", "--sysfs"]).arg(tree.path()).args(args);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut room = [std::mem::MaybeUninit::uninit(); 512];
    Reader::new(&inotify, &mut room).next().unwrap();
    change();
    child.wait_with_output().unwrap()
}

/// What was reset meanwhile, or could not be read before, is not counted as 0.
#[test]
fn a_rate_that_is_not_known_is_no_rate_of_0() {
    for (first, status) in [("9", 1), ("nonsense", 3)] {
        let tree = counting();
        let port = tree.with_roce().port_again(1);
        port.file("counters/port_rcv_errors", first);
        let output = between(&tree, "counters/port_rcv_errors", &["--json"], || {
            port.file("counters/port_rcv_errors", "2");
        });
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        conforms("counters.json", &answer);
        let mut rows = answer["counters"].as_array().unwrap().iter();
        let row = rows.find(|row| row["name"] == "port_rcv_errors").unwrap();
        assert_eq!((&row["value"], &row["per_second"]), (&json!(2), &json!(null)), "{first}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(status), "{said}");
        assert!(said.contains("before, or not read before: mlx5_0:1 port_rcv_errors"), "{said}");
        let problems = answer["problems"].as_array().unwrap().len();
        assert_eq!(problems, usize::from(status == 3), "{answer}");
    }
}

/// Nor is what was there and is not any more: a counter, or all of a port.
#[test]
fn a_rate_of_what_is_gone_is_not_known() {
    for (gone, status, names) in [
        ("counters/link_downed", 1, "link_downed"),
        ("hw_counters", 1, "RNR sent, mlx5_0:1 out_of_buffer"),
        ("", 3, "link_downed, mlx5_0:1 port_rcv_data, mlx5_0:1 port_rcv_errors and 3 more"),
    ] {
        let tree = counting();
        let output = between(&tree, "counters/port_xmit_wait", &[], || {
            std::thread::sleep(std::time::Duration::from_millis(200));
            let port = tree.path().join("class/infiniband/mlx5_0/ports/1");
            std::fs::rename(port.join(gone), tree.path().join("away")).unwrap();
        });
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(status), "{gone}: {said}");
        let text =
            format!("these were gone, or could not be read, the second time: mlx5_0:1 {names}");
        assert!(said.contains(&text), "{gone}: {said}");
        assert!(!said.contains("nothing") && !said.contains("no counters"), "{gone}: {said}");
    }
}

/// In JSON each has a problem, as it has no row, whether it is gone or its file fails.
#[test]
fn a_rate_of_what_was_read_once_is_a_problem() {
    for is_gone in [true, false] {
        let tree = counting();
        let port = tree.with_roce().port_again(1);
        let output = between(&tree, "counters/port_xmit_wait", &["--json"], || {
            std::thread::sleep(std::time::Duration::from_millis(200));
            if is_gone {
                let file = "class/infiniband/mlx5_0/ports/1/counters/link_downed";
                std::fs::remove_file(tree.path().join(file)).unwrap();
            } else {
                port.file("counters/link_downed", "nonsense");
            }
        });
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        conforms("counters.json", &answer);
        let text = "mlx5_0:1 link_downed: gone, or could not be read, the second time (errno 61)";
        let problem = json!({ "device": "mlx5_0", "error": text, "errno": 61 });
        let problems = answer["problems"].as_array().unwrap();
        assert!(problems.contains(&problem), "{answer}");
        let counts = (problems.len(), output.status.code());
        assert_eq!(counts, if is_gone { (1, Some(1)) } else { (2, Some(3)) }, "{answer}");
    }
}

#[test]
fn one_that_fails_hides_no_other() {
    let tree = counting();
    let port = tree.with_roce().port_again(1);
    port.refuse("counters/link_downed");
    port.file("hw_counters/out_of_buffer", "-1");
    let run = tree.uverbs(&["counters", "--no-header"]);
    assert_eq!((run.status, run.stdout.lines().count()), (3, 2), "{run:?}");
    assert!(run.stdout.contains("RNR sent") && run.stdout.contains("port_rcv_data"), "{run:?}");
    let lines: Vec<&str> = run.stderr.lines().collect();
    assert_eq!(lines.len(), 3, "{run:?}");
    // What is not read beside it is named, so that it is not taken for 0.
    assert!(lines[0].ends_with("refused for another: port_rcv_errors, port_xmit_wait"), "{run:?}");
    assert!(lines[1].contains("hw_counters/out_of_buffer: unusable answer"), "{run:?}");
    assert!(lines[2].contains("counters/link_downed: EINVAL"), "{run:?}");
    let answer: Value = serde_json::from_str(&tree.uverbs(&["counters", "--json"]).stdout).unwrap();
    assert_eq!(answer["ports"][0]["left_out"], json!(["port_rcv_errors", "port_xmit_wait"]));
}

/// Only RDMA netlink has them; the counters are there all the same.
#[test]
fn owners_are_not_in_sysfs() {
    let tree = counting();
    let run = tree.uverbs(&["counters", "--processes"]);
    assert_eq!((run.status, run.stdout.lines().count()), (3, 6), "{run:?}");
    let text = "mlx5_0: list owners of objects in use: EOPNOTSUPP";
    assert!(run.stderr.contains(text), "{run:?}");
    let run = tree.uverbs(&["counters", "--processes", "--json"]);
    let answer: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!((run.status, answer.get("owners")), (3, Some(&json!(null))));
    assert!(tree.json(&["counters"]).get("owners").is_none());
}

#[test]
fn nothing_to_show_is_said() {
    let tree = Tree::new();
    let port = tree.with_roce().port_again(1);
    let run = tree.uverbs(&["counters"]);
    assert!(run.status == 0 && run.stderr.contains("no counters: the driver has none"), "{run:?}");
    port.file("counters/link_downed", "0");
    let run = tree.uverbs(&["counters"]);
    assert!(run.status == 0 && run.stderr.contains("every counter is 0; --all"), "{run:?}");
    let run = tree.uverbs(&["counters", "nowhere"]);
    assert!(run.status == 1 && run.stderr.contains("nowhere: no such device"), "{run:?}");
}

/// In another network namespace than the device's own only some counters are seen.
#[test]
fn what_cannot_be_seen_is_not_said_to_be_0() {
    let tree = Tree::new();
    let port = tree.with_roce().port_again(1);
    port.file("hw_counters/out_of_buffer", "0");
    let said = |args: &[&str]| {
        let run = tree.uverbs(&[&["counters"], args].concat());
        assert_eq!(run.status, 0, "{run:?}");
        run.stderr
    };
    let seen = "that can be seen from here";
    assert_eq!(said(&[]), format!("uverbs: every counter {seen} is 0; --all shows all\n"));
    let nothing = format!("uverbs: nothing {seen} was counted meanwhile; --all shows all\n");
    assert_eq!(said(&["--rate", "0.001"]), nothing);
    port.file("counters/port_rcv_data", "0");
    assert_eq!(said(&[]), "uverbs: every counter is 0; --all shows all\n");
}
