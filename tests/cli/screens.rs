//! What people see on terminals of 80 and 200 columns: `tests/golden/screens`, to be read. With
//! `UPDATE_SCREENS=1` the tests write them again.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;
use unicode_width::UnicodeWidthStr as _;

use crate::run::{finish, from, program};
use crate::snapshots::{DUAL, Fleet, VLAN, host, port, set};
use crate::terminal::on_a_terminal;
use crate::tree::{Tree, write};

/// A RoCE device as ConnectX has them.
fn connectx(tree: &Tree, number: u8, gids: u32) {
    let name = format!("mlx5_{number}");
    let device = tree.device(&name, "1: CA", number);
    device.file("board_id", "MT_0000000838");
    device.file("hca_type", "MT4129");
    device.file("hw_rev", "0");
    let bus = 0x17 + 2 * u32::from(number);
    for (file, text) in [
        ("uevent", format!("PCI_ID=15B3:1021\nPCI_SLOT_NAME=0000:{bus:02x}:00.0")),
        ("numa_node", (number / 4).to_string()),
        ("current_link_speed", "32.0 GT/s PCIe".to_owned()),
        ("current_link_width", "16".to_owned()),
        ("max_link_speed", "32.0 GT/s PCIe".to_owned()),
        ("max_link_width", "16".to_owned()),
    ] {
        device.file(&format!("device/{file}"), &text);
    }
    let port = device.port(1, "Ethernet", "400 Gb/sec (4X NDR)", 256);
    let netdev = format!("enp{bus}s0f0np0");
    for index in 0..gids {
        let gid = match index {
            0 | 1 => format!("fe80:0000:0000:0000:0ac0:ebff:fe00:{number:02x}0a"),
            2 | 3 => format!("0000:0000:0000:0000:0000:ffff:0a{number:02x}:0001"),
            _ => format!("2001:0db8:00{number:02x}:0001:0ac0:ebff:fe00:{index:04x}"),
        };
        let gid_type = if index % 2 == 0 { "IB/RoCE v1" } else { "RoCE v2" };
        port.gid(index, &gid, gid_type, Some(&netdev));
    }
}

/// A command on a tree.
fn on(tree: &Tree, words: &[&str]) -> Command {
    let mut command = program();
    command.args(words).arg("--sysfs").arg(tree.path());
    command
}

/// Hosts with long names and with all that goes wrong: a port that is down, a VLAN's address before the port's own,
/// a variable that is set to an empty slot.
fn fleet() -> Fleet {
    let hosts: Vec<_> = (0..4)
        .map(|number| {
            let rows = if number == 2 { VLAN } else { DUAL };
            let name = format!("gpu-node-{number:04}.cluster.example");
            let mut one = host(&name, &[("mlx5_0", port(DUAL)), ("mlx5_1", port(rows))]);
            if number == 1 {
                let own = &mut one["devices"][1]["ports"][0]["attributes"][0];
                (own["state"], own["phys_state"]) = (1.into(), 3.into());
            }
            if number == 3 {
                set(&mut one, "NCCL_IB_GID_INDEX", "7", Some("/etc/nccl.conf"));
            }
            one
        })
        .collect();
    Fleet::new(&hosts)
}

/// The commands whose screens are kept, each with its title.
fn commands(one: &Tree, many: &Tree, hosts: &Fleet) -> Vec<(String, Command, bool)> {
    let of_trees: &[&[&str]] = &[
        &["devices"],
        &["devices", "--wide"],
        &["ports"],
        &["ports", "--wide"],
        &["gids"],
        &["guids"],
        &["choose"],
        &["choose", "--explain"],
        &["check"],
    ];
    let of_hosts: &[&[&str]] =
        &[&["devices"], &["ports"], &["gids", "mlx5_1"], &["choose"], &["check"], &["fleet"]];
    let mut all = Vec::new();
    for (title, tree) in [("1 device", one), ("8 devices of 250 GIDs", many)] {
        for words in of_trees {
            let title = format!("{title}: uverbs {}", words.join(" "));
            all.push((title, on(tree, words), words.contains(&"--wide")));
        }
    }
    for words in of_hosts {
        let mut command = program();
        command.args(*words).args(from((0..4).map(|number| hosts.file(number))));
        all.push((format!("4 hosts: uverbs {}", words.join(" ")), command, false));
    }
    all
}

/// The screens of all commands, with the middle of long ones left out. No line breaks in a word.
fn screens(commands: Vec<(String, Command, bool)>, columns: u16) -> String {
    let mut all = String::new();
    for (title, mut command, is_wide) in commands {
        command.env("TERM", "xterm").args(["--color", "never"]);
        let screen = on_a_terminal(command, columns);
        let lines: Vec<&str> = screen.lines().collect();
        let (what, words) = title.split_once(": ").unwrap();
        let _ = writeln!(all, "{what}, {columns} columns: {words}");
        for (number, line) in lines.iter().enumerate() {
            assert!(line.width() <= columns.into() || is_wide, "{title}: {line}");
            assert_eq!(line.trim_end(), *line, "{title}");
            if number < 14 || number + 3 >= lines.len() {
                let _ = writeln!(all, "| {line}");
            } else if number == 14 {
                let _ = writeln!(all, "… {} more lines", lines.len() - 17);
            }
        }
        all.push('\n');
    }
    all
}

#[test]
fn screens_are_as_they_were_read() {
    let (one, many) = (Tree::new(), Tree::new());
    connectx(&one, 0, 4);
    for number in 0..8 {
        connectx(&many, number, 250);
    }
    let hosts = fleet();
    for columns in [80, 200] {
        let path = PathBuf::from(format!("golden/screens/{columns}-columns.txt"));
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests").join(path);
        let screens = screens(commands(&one, &many, &hosts), columns);
        if std::env::var_os("UPDATE_SCREENS").is_some() {
            write(&path, screens.trim_end());
        }
        let golden = std::fs::read_to_string(&path).unwrap();
        for (line, expected) in screens.lines().zip(golden.lines()) {
            assert_eq!(line, expected, "{}", path.display());
        }
        assert_eq!(screens.trim_end(), golden.trim_end(), "{}", path.display());
    }
}

/// Whatever terminal there is elsewhere, a pipe gets all columns, in lines of any length.
#[test]
fn what_is_piped_is_whole() {
    let tree = Tree::new();
    connectx(&tree, 0, 250);
    for words in [&["gids"][..], &["ports"], &["devices"], &["choose", "--explain"], &["check"]] {
        let piped = finish(&mut on(&tree, words));
        let named = finish(on(&tree, words).env("TERM", "xterm").env("COLUMNS", "40"));
        assert_eq!(piped.stdout, named.stdout, "{words:?}");
        // On a terminal that does not say how wide it is, and with --wide, the same.
        let mut command = on(&tree, words);
        command.env("TERM", "dumb").args(["--color", "never"]);
        assert_eq!(on_a_terminal(command, 0), piped.stdout, "{words:?}");
        if words != ["ports"] && words != ["devices"] {
            let mut command = on(&tree, words);
            command.env("TERM", "dumb").arg("--wide");
            assert_eq!(on_a_terminal(command, 40), piped.stdout, "{words:?}");
        }
    }
    let rows = finish(&mut on(&tree, &["gids"])).stdout;
    assert!(rows.starts_with("DEVICE  PORT  INDEX  GID") && rows.contains("IPV4"), "{rows}");
}

/// Columns that say something are not left out in silence.
#[test]
fn what_has_no_room_is_named() {
    let tree = Tree::new();
    connectx(&tree, 0, 4);
    let said = |words: &[&str], columns| {
        let mut command = Command::new("sh");
        let script = r#"exec "$@" 2>&1"#;
        let own = on(&tree, words);
        command.args(["-c", script, "sh"]).arg(own.get_program()).args(own.get_args());
        command.env("TERM", "xterm").env("NO_COLOR", "1");
        on_a_terminal(command, columns)
    };
    let ports = said(&["ports"], 80);
    assert!(!ports.lines().next().unwrap().contains("PORT_GUID"), "{ports}");
    assert!(ports.ends_with("no room for PORT_GUID; --wide shows all columns\n"), "{ports}");
    assert!(!said(&["ports"], 200).contains("no room"));
    // What is in another column too, or in none, is not missed.
    let gids = said(&["gids"], 60);
    assert!(!gids.contains("IPV4") && !gids.contains("no room"), "{gids}");
    let wide = said(&["devices", "--wide"], 80);
    assert!(wide.contains("0000:17:00.0") && wide.contains("32GT/s,x16"), "{wide}");
    assert!(wide.contains("15b3:1021") && wide.contains("MT_0000000838"), "{wide}");
}

/// A finding of many words and a word of many letters.
#[test]
fn long_texts_wrap_in_their_columns() {
    let mut one = host("node1", &[("mlx5_0", port(DUAL))]);
    one["settings"] = json!([]);
    (one["interfaces"][0]["mtu"], one["interfaces"][0]["is_up"]) = (9000.into(), false.into());
    let fleet = Fleet::new(&[one]);
    let screen = |columns| {
        let mut command = program();
        command.args(["check", "--color", "never", "--from"]).arg(fleet.file(0));
        command.env("TERM", "xterm");
        on_a_terminal(command, columns)
    };
    let wide = screen(200);
    let heading = wide.lines().next().unwrap();
    let (seen, advice) = (heading.find("SEEN").unwrap(), heading.find("ADVICE").unwrap());
    for line in wide.lines().skip(1) {
        assert!(line.len() <= 200, "{line}");
        // The gap before each of the two columns is free in every line.
        for place in [seen, advice] {
            let gap = line.get(place - 2..place).unwrap_or_default();
            assert!(gap.trim().is_empty(), "{wide}");
        }
    }
    let words = |text: &str| {
        let mut words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        words.sort();
        words
    };
    assert_eq!(words(&screen(80)), words(&wide));
    assert_eq!(words(&screen(20)), words(&wide));
    assert!(screen(80).lines().all(|line| line.len() <= 80));
}
