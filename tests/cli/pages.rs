//! Help, completions and man pages.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::run::{finish, program, uverbs};
use crate::tree::Tree;

/// The words of all commands, as `uverbs man` takes them; a unit test compares these with the definition. A
/// subcommand follows its command.
pub(crate) fn commands() -> Vec<String> {
    let list = page(&["__complete", "man", ""]);
    let names: Vec<&str> = list.lines().filter_map(|line| line.split('\t').next()).collect();
    assert!(names.len() > 20, "{names:?}");
    let words = |name: &&str| match name.split_once('-') {
        Some((above, own)) if names.contains(&above) => format!("{above} {own}"),
        _ => (*name).to_owned(),
    };
    names.iter().map(words).collect()
}

/// A command line that begins, or ends, with a command's words.
fn with<'a>(before: &[&'a str], command: &'a str, behind: &[&'a str]) -> Vec<&'a str> {
    let words = command.split(' ');
    before.iter().copied().chain(words).chain(behind.iter().copied()).collect()
}

pub(crate) fn page(args: &[&str]) -> String {
    let run = uverbs(args);
    assert_eq!((run.stderr.as_str(), run.status), ("", 0), "{args:?}: {run:?}");
    run.stdout
}

#[test]
fn every_help_begins_with_a_line_and_has_examples() {
    for command in &commands() {
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

/// Help, man page, README and guide have the same four statuses, each with the same first words.
#[test]
fn one_table_of_statuses() {
    let file = |name: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
        std::fs::read_to_string(path).unwrap()
    };
    let (help, man) = (page(&["--help"]), page(&["man"]));
    let (readme, guide) = (file("README.md"), file("src/docs/commands.md"));
    for (status, words) in [
        (0, "everything"),
        (1, "something that was named is not there"),
        (2, "problem"),
        (3, "something could not be read or written"),
    ] {
        for (name, text) in [("help", &help), ("man", &man)] {
            let own = text.split("Exit status:\n").nth(1).or(text.split("EXIT STATUS\n").nth(1));
            let line = own.unwrap().lines().find(|line| {
                line.trim()
                    .strip_prefix(&format!("{status} "))
                    .is_some_and(|rest| rest.contains(words))
            });
            assert!(line.is_some(), "{status} in {name}: {text}");
        }
        for (name, text) in [("README", &readme), ("guide", &guide)] {
            let row = format!("| {status} | ");
            let line = text.lines().find(|line| line.starts_with(&row));
            assert!(line.is_some_and(|line| line.contains(words)), "{status} in {name}");
        }
    }
}

/// An example that is not accepted would be worse than none.
#[test]
fn examples_are_right_usage() {
    // Some write files.
    let folder = tempfile::TempDir::new().unwrap();
    for command in &commands() {
        let help = page(&with(&[], command, &["--help"]));
        let examples = help.split("Examples:\n").nth(1).unwrap();
        for example in examples.lines() {
            let words = example.trim().split("   ").next().unwrap();
            let words = words.split(['|', '>']).next().unwrap();
            let args: Vec<&str> = words.split_whitespace().skip(1).collect();
            let run = finish(program().args(&args).current_dir(folder.path()));
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
        ("bash", "complete -F _uverbs uverbs"),
        ("zsh", "#compdef uverbs"),
        ("fish", "complete -c uverbs"),
    ] {
        let text = page(&["completions", shell]);
        assert!(text.contains(part) && text.contains("__complete"), "{shell}");
    }
}

/// What a shell asks never fails, whatever is typed.
#[test]
fn every_question_of_a_shell_has_an_answer() {
    for words in [
        &["__complete"] as &[&str],
        &["__complete", ""],
        &["__complete", "--"],
        &["__complete", "gids", "--from", "/nowhere", ""],
        &["__complete", "--sysfs", "/nowhere", "gids", ""],
        &["__complete", "x", "y", "--z=", "=", "-"],
        &["__complete", "gids", "\u{1b}[0m"],
    ] {
        let text = page(words);
        assert!(text.lines().all(|line| line.contains('\t')), "{words:?}: {text:?}");
    }
    assert!(page(&["__complete", ""]).contains("gids\tShow the GID tables of devices or ports\n"));
}

/// A shell asks while its terminal is the standard input. That is not read, nor is a pipe.
#[test]
fn completion_reads_only_files() {
    let (host, folder) = (Tree::new(), tempfile::tempdir().unwrap());
    host.with_roce();
    let path = folder.path().join("x.json");
    std::fs::write(&path, host.uverbs(&["snapshot"]).stdout).unwrap();
    let own = path.to_str().unwrap();
    let given = |words: &[&str]| {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        std::fs::File::from(writer).write_all(&std::fs::read(own).unwrap()).unwrap();
        finish(program().args(["__complete", "gids"]).args(words).stdin(reader)).stdout
    };
    let known = given(&["--from", own, ""]);
    assert!(known.starts_with("mlx5_0\t"), "{known:?}");
    for from in ["-", "/dev/stdin"] {
        assert_eq!(given(&["--from", from, ""]), "", "{from}");
        assert_eq!(given(&["--from", from, "--from", own, ""]), known, "{from}");
    }
}

/// Says so, past what is shown of failed tests only: `tests/run` counts it.
pub(crate) fn skipped(what: &str, why: &str) {
    writeln!(std::io::stdout().lock(), "\nSKIPPED: {what}: {why}").unwrap();
}

/// The same of a whole test.
fn skipped_test(what: &str, why: &str) {
    writeln!(std::io::stdout().lock(), "\nSKIPPED TEST: {what}: {why}").unwrap();
}

#[test]
fn bash_accepts_its_completions() {
    let mut bash = Command::new("bash");
    let checked = bash.args(["-n", "-c"]).arg(page(&["completions", "bash"])).output();
    let Ok(checked) = checked else {
        skipped_test("the completions by bash", "there is no bash");
        return;
    };
    assert!(checked.status.success(), "{checked:?}");
}

#[test]
fn man_pages() {
    let root = page(&["man"]);
    let version = env!("CARGO_PKG_VERSION");
    for part in [
        ".SH NAME\nuverbs \\- Show RDMA devices",
        ".SH SYNOPSIS\n\\fBuverbs\\fR [OPTIONS] <COMMAND>\n",
        ".SH OPTIONS",
        ".SH COMMANDS",
        ".SH EXAMPLES",
        ".SH EXIT STATUS",
        ".SH ENVIRONMENT",
        "\nuverbs\\-gids(1)\n",
    ] {
        assert!(root.contains(part), "{part:?} in {root}");
    }
    for command in &commands() {
        let name = command.replace(' ', "-");
        let text = page(&["man", &name]);
        let title = format!(".TH UVERBS-{} 1 20", name.to_uppercase());
        assert!(text.starts_with(&title), "{text}");
        let heading = text.lines().next().unwrap();
        assert!(
            heading.ends_with(&format!(" \"uverbs {version}\" \"User Commands\"")),
            "{heading}"
        );
        let usage = format!(".SH SYNOPSIS\n\\fBuverbs {command}\\fR ");
        assert!(text.contains(&usage), "{usage:?} in {text}");
        assert!(text.contains(".SH EXAMPLES\n.nf\nuverbs "), "{text}");
        let above =
            name.rsplit_once('-').map_or("uverbs".to_owned(), |(own, _)| format!("uverbs\\-{own}"));
        assert!(text.contains(&format!(".SH SEE ALSO\n.BR {above} (1)")), "{text}");
    }
    let text = page(&["man", "mlx5-port"]);
    assert!(text.contains("\\fBuverbs mlx5 port\\fR [OPTIONS] [DEV[:PORT]]...\n"), "{text}");
}

/// The same on every day: the date is that of the pages, or that of the build.
#[test]
fn the_date_of_a_page() {
    let dated = |epoch: Option<&str>| {
        let mut program = program();
        program.args(["man", "gids"]).env_remove("SOURCE_DATE_EPOCH");
        program.envs(epoch.map(|epoch| ("SOURCE_DATE_EPOCH", epoch)));
        let run = finish(&mut program);
        run.stdout.split(' ').nth(3).unwrap().to_owned()
    };
    assert_eq!(dated(Some("951782400")), "2000-02-29");
    let own = dated(None);
    for odd in ["", "x", "-1", "99999999999999999999", "253402300800"] {
        assert_eq!(dated(Some(odd)), own);
    }
    assert!(own.len() == 10 && own.starts_with("20"), "{own}");
}

/// The recipes name files; one that has moved would lead nowhere.
#[test]
fn files_that_the_pages_name_are_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let pages = std::fs::read_dir(root.join("src/docs")).unwrap();
    let pages = pages.map(|own| own.unwrap().path()).filter(|own| own.extension().unwrap() == "md");
    let mut count = 0;
    for page in pages.chain([root.join("README.md")]) {
        let text = std::fs::read_to_string(&page).unwrap();
        // Every second piece is between backquotes.
        for code in text.split('`').skip(1).step_by(2) {
            let path = code.split_whitespace().next().unwrap_or_default();
            let is_own =
                ["src/", "tests/", "uapi/", "fuzz/"].iter().any(|own| path.starts_with(own));
            if !is_own
                || path.contains(['*', '['])
                || path.contains("NAME")
                || path.contains("TOPIC")
            {
                continue;
            }
            assert!(root.join(path).exists(), "{}: {path}", page.display());
            count += 1;
        }
    }
    assert!(count > 100, "{count}");
}

/// What man and mandoc have to say of the pages, if they are installed: nothing.
#[test]
fn man_pages_are_right_to_man_and_mandoc() {
    let folder = tempfile::TempDir::new().unwrap();
    let names: Vec<String> = commands().iter().map(|own| own.replace(' ', "-")).collect();
    for name in [None].into_iter().chain(names.iter().map(Some)) {
        let args: Vec<&str> = ["man"].into_iter().chain(name.map(String::as_str)).collect();
        let own = name.map_or_else(|| "uverbs.1".to_owned(), |name| format!("uverbs-{name}.1"));
        let path = folder.path().join(own);
        std::fs::write(&path, page(&args)).unwrap();
        for (program, words) in [
            ("man", &["--warnings", "-l", "-E", "UTF-8"] as &[&str]),
            ("mandoc", &["-man", "-T", "lint", "-W", "warning"]),
        ] {
            let mut command = Command::new(program);
            command.args(words).arg(&path).env("MANWIDTH", "80").env("LC_ALL", "C.UTF-8");
            let Ok(checked) = command.output() else {
                skipped("man pages", &format!("there is no {program}"));
                continue;
            };
            let said = String::from_utf8_lossy(&checked.stderr).into_owned();
            let said = if program == "mandoc" {
                String::from_utf8_lossy(&checked.stdout).into_owned() + &said
            } else {
                // The header and the footer that people see.
                let shown = String::from_utf8_lossy(&checked.stdout);
                let title = path.file_stem().unwrap().to_str().unwrap().to_uppercase();
                let (first, last) =
                    (shown.lines().next().unwrap(), shown.trim_end().lines().last().unwrap());
                assert!(
                    first.starts_with(&format!("{title}(1)")) && first.contains("User Commands"),
                    "{first}"
                );
                assert!(last.starts_with(concat!("uverbs ", env!("CARGO_PKG_VERSION"))), "{last}");
                said
            };
            assert_eq!(said, "", "{args:?} by {program}");
        }
    }
}

/// The program that formats man pages, if it is installed, has no warning.
#[test]
fn man_pages_set_without_a_warning() {
    let names: Vec<String> = commands().iter().map(|own| own.replace(' ', "-")).collect();
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
            skipped_test("man pages set without a warning", "there is no groff");
            return;
        };
        let mut uverbs = program().args(&args).stdout(writer).spawn().unwrap();
        assert!(uverbs.wait().unwrap().success());
        let set = groff.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&set.stderr), "", "{args:?}");
    }
}
