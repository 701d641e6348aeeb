//! Help, completions and man pages.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::run::uverbs;

const COMMANDS: [&str; 15] = [
    "devices",
    "gids",
    "gid",
    "ports",
    "guids",
    "choose",
    "env",
    "check",
    "snapshot",
    "mlx5",
    "mlx5 port",
    "mlx5 vport",
    "mlx5 device",
    "completions",
    "man",
];

/// A command line that begins, or ends, with a command's words.
fn with<'a>(before: &[&'a str], command: &'a str, behind: &[&'a str]) -> Vec<&'a str> {
    let words = command.split(' ');
    before.iter().copied().chain(words).chain(behind.iter().copied()).collect()
}

fn page(args: &[&str]) -> String {
    let run = uverbs(args);
    assert_eq!((run.stderr.as_str(), run.status), ("", 0), "{args:?}: {run:?}");
    run.stdout
}

#[test]
fn every_help_begins_with_a_line_and_has_examples() {
    for command in COMMANDS {
        for args in [
            with(&[], command, &["--help"]),
            with(&[], command, &["-h"]),
            with(&["help"], command, &[]),
        ] {
            let help = page(&args);
            let mut lines = help.lines();
            assert!(lines.next().is_some_and(|line| line.len() > 10), "{help}");
            assert_eq!(lines.next(), Some(""), "{help}");
            let examples = help.split("Examples:\n").nth(1).unwrap();
            assert!(examples.starts_with(&format!("  uverbs {command}")), "{help}");
            assert!(help.lines().all(|line| line.chars().count() <= 110), "{help}");
        }
    }
    for help in [page(&["--help"]), page(&["-h"])] {
        assert!(help.starts_with("Show RDMA devices"), "{help}");
        assert!(help.contains("Examples:\n  uverbs gids"), "{help}");
    }
    let long = page(&["--help"]);
    for part in ["Exit status:\n  0 ", "\n  1  ", "\n  2  check", "\n  3  ", "NO_COLOR", "problems"]
    {
        assert!(long.contains(part), "{part:?} in {long}");
    }
}

/// An example that is not accepted would be worse than none.
#[test]
fn examples_are_right_usage() {
    for command in COMMANDS {
        let help = page(&with(&[], command, &["--help"]));
        let examples = help.split("Examples:\n").nth(1).unwrap();
        for example in examples.lines() {
            let words = example.trim().split("   ").next().unwrap();
            let words = words.split(['|', '>']).next().unwrap();
            let args: Vec<&str> = words.split_whitespace().skip(1).collect();
            let run = uverbs(&args);
            // The status 3 is also that of a file which is not there.
            let is_refused = run.status == 3 && run.stderr.starts_with("error: ");
            assert!(!is_refused, "{example}: {run:?}");
        }
    }
}

#[test]
fn the_version() {
    assert_eq!(page(&["--version"]), concat!("uverbs ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
fn completions_of_every_shell() {
    for (shell, part) in [
        ("bash", "table json show_gids"),
        ("bash", "complete -F _uverbs"),
        ("zsh", "#compdef uverbs"),
        ("fish", "complete -c uverbs"),
        ("elvish", "uverbs"),
        ("powershell", "uverbs"),
    ] {
        let text = page(&["completions", shell]);
        assert!(text.contains(part), "{shell}");
        for word in ["netdev", "no-header", "guids"] {
            assert!(text.contains(word), "{word} in the completions of {shell}");
        }
    }
}

/// Says so, past what is shown of failed tests only: `tests/run` counts it.
fn skipped(what: &str, why: &str) {
    writeln!(std::io::stdout().lock(), "\nSKIPPED: {what}: {why}").unwrap();
}

#[test]
fn bash_accepts_its_completions() {
    let mut bash = Command::new("bash");
    let checked = bash.args(["-n", "-c"]).arg(page(&["completions", "bash"])).output();
    let Ok(checked) = checked else {
        skipped("the completions by bash", "there is no bash");
        return;
    };
    assert!(checked.status.success(), "{checked:?}");
}

#[test]
fn man_pages() {
    let root = page(&["man"]);
    for part in [
        ".TH uverbs 1",
        ".SH NAME\nuverbs \\- Show RDMA devices",
        ".SH EXAMPLES",
        ".SH \"EXIT STATUS\"",
        ".SH ENVIRONMENT",
        "uverbs\\-gids(1)",
    ] {
        assert!(root.contains(part), "{part:?} in {root}");
    }
    for command in COMMANDS {
        let name = command.replace(' ', "-");
        let text = page(&["man", &name]);
        assert!(text.contains(&format!(".TH uverbs-{name} 1")), "{text}");
        assert!(text.contains(&format!("\\fBuverbs {command}\\fR")), "{text}");
        assert!(text.contains(".SH EXAMPLES\n.nf\nuverbs "), "{text}");
        assert!(!text.contains("panicked"), "{text}");
    }
}

/// The program that formats man pages, if it is installed, has no warning.
#[test]
fn man_pages_set_without_a_warning() {
    let names = COMMANDS.map(|command| command.replace(' ', "-"));
    for name in [None].into_iter().chain(names.iter().map(Some)) {
        let args: Vec<&str> = ["man"].into_iter().chain(name.map(String::as_str)).collect();
        let (reader, writer) = std::io::pipe().unwrap();
        let groff = Command::new("groff")
            .args(["-man", "-Tutf8", "-ww", "-z"])
            .stdin(reader)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let Ok(groff) = groff else {
            skipped("man pages set without a warning", "there is no groff");
            return;
        };
        let mut uverbs = crate::run::program().args(&args).stdout(writer).spawn().unwrap();
        assert!(uverbs.wait().unwrap().success());
        let set = groff.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&set.stderr), "", "{args:?}");
    }
}
