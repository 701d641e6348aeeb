//! Colour: only on request or on a terminal, and never the only sign of something.

use crate::run::program;
use crate::snapshots::{DUAL, Fleet, host, port};
use crate::terminal::on_a_terminal;
use crate::tree::Tree;

#[test]
fn never_into_a_pipe_unless_told_so() {
    let tree = Tree::new();
    tree.with_infiniband();
    let plain = tree.answer(&["ports"]);
    assert!(!plain.contains('\x1b'));
    assert_eq!(tree.answer(&["ports", "--color", "never"]), plain);
    let coloured = tree.answer(&["ports", "--color", "always"]);
    assert!(coloured.starts_with("\x1b[1mDEVICE"), "{coloured:?}");
    assert!(coloured.contains("\x1b[33mmlx4_0  2     down"), "{coloured:?}");
    let stripped = ["\x1b[1m", "\x1b[33m", "\x1b[0m"]
        .iter()
        .fold(coloured, |text, code| text.replace(code, ""));
    assert_eq!(stripped, plain);
    // JSON and show_gids are for programs.
    for args in [&["gids", "--json"] as &[&str], &["gids", "--format", "show_gids"]] {
        assert!(!tree.answer(&[args, &["--color", "always"]].concat()).contains('\x1b'));
    }
}

/// What is recommended and what is a problem do not look alike.
#[test]
fn good_and_bad_have_their_own_colours() {
    let mut one = host("node1", &[("mlx5_0", port(DUAL))]);
    (one["interfaces"][0]["mtu"], one["settings"]) = (9000.into(), serde_json::json!([]));
    let colour_of = |one: &serde_json::Value, args: &[&str], word: &str| {
        let fleet = Fleet::new(std::slice::from_ref(one));
        let run = fleet.uverbs(&[args, &["--color", "always"]].concat());
        let line = run.stdout.lines().find(|line| line.contains(word)).map(str::to_owned);
        let line = line.unwrap_or_else(|| panic!("{word}: {run:?}"));
        line.split_once('m').filter(|_| line.starts_with('\x1b')).map(|own| own.0.to_owned())
    };
    let explain = ["choose", "--explain"];
    assert_eq!(colour_of(&one, &explain, "recommended").as_deref(), Some("\x1b[32"));
    assert_eq!(colour_of(&one, &explain, "link-local"), None);
    assert_eq!(colour_of(&one, &["check"], "warning").as_deref(), Some("\x1b[33"));
    one["interfaces"][0]["is_up"] = false.into();
    assert_eq!(colour_of(&one, &["check"], "problem").as_deref(), Some("\x1b[31"));
}

#[test]
fn on_a_terminal_unless_the_environment_says_otherwise() {
    let tree = Tree::new();
    tree.with_roce();
    let xterm = ("TERM", "xterm");
    let is_coloured = |environment: &[(&str, &str)], args: &[&str]| {
        let mut command = program();
        command.env_remove("TERM").envs(environment.iter().copied()).arg("gids").args(args);
        command.arg("--sysfs").arg(tree.path());
        let text = on_a_terminal(command, 200);
        assert!(text.contains("DEVICE"), "{text:?}");
        text.contains('\x1b')
    };
    assert!(is_coloured(&[xterm], &[]));
    assert!(is_coloured(&[xterm, ("NO_COLOR", "")], &[]));
    assert!(!is_coloured(&[xterm, ("NO_COLOR", "1")], &[]));
    assert!(!is_coloured(&[("TERM", "dumb")], &[]));
    assert!(!is_coloured(&[], &[]));
    assert!(!is_coloured(&[xterm], &["--color", "never"]));
    assert!(is_coloured(&[("TERM", "dumb"), ("NO_COLOR", "1")], &["--color", "always"]));
}
