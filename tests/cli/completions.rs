//! Completion in real shells: lines with a tab are typed at a terminal, and the words that come of them are
//! compared.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::pages::{page, skipped};
use crate::run::program;
use crate::snapshots::{DUAL, Fleet, host, port};
use crate::terminal::converse;
use crate::tree::{Tree, write};

/// A shell to type lines at, with this start file. Of the program only completion is real; else it prints its
/// words.
struct Shell {
    name: &'static str,
    arguments: &'static [&'static str],
    start: &'static str,
}

const SHELLS: [Shell; 3] = [
    Shell {
        name: "bash",
        arguments: &["--noprofile", "--rcfile", "start", "-i"],
        start: r#"PS1='$ '
uverbs() { if [ "$1" = __complete ]; then command uverbs "$@"; else printf '[%s]' "$@" END; echo; fi; }
source ./script
"#,
    },
    Shell {
        name: "zsh",
        arguments: &["-d", "-i"],
        start: r#"PS1='$ '
autoload -Uz compinit
compinit -u -D
uverbs() { if [ "$1" = __complete ]; then command uverbs "$@"; else printf '[%s]' "$@" END; echo; fi }
source ./script
"#,
    },
    Shell {
        name: "fish",
        arguments: &["--no-config", "-i", "-C", "source start"],
        start: r#"function fish_prompt; echo '$ '; end
function uverbs
    if test "$argv[1]" = __complete; command uverbs $argv; else; printf '[%s]' $argv END; echo; end
end
source ./script
"#,
    },
];

/// What a shell shows after it was given these lines, each followed by a tab. `None` if the shell is not installed.
fn typed(shell: &Shell, folder: &Path, lines: &[String]) -> Option<Vec<String>> {
    let is_installed = Command::new(shell.name)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !is_installed {
        return None;
    }
    // The program's own folder comes first.
    let own = program();
    let words: Vec<_> = std::iter::once(own.get_program()).chain(own.get_args()).collect();
    let words: Vec<_> = words.iter().map(|word| word.to_str().unwrap()).collect();
    let bin = folder.join("bin");
    write(bin.join("uverbs"), &format!("#!/bin/sh\nexec {} \"$@\"", words.join(" ")));
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(bin.join("uverbs"), mode).unwrap();
    write(folder.join("script"), &page(&["completions", shell.name]));
    write(folder.join("start"), shell.start);
    let path = std::env::var("PATH").unwrap();
    let mut command = Command::new("setsid");
    command.args(["--ctty", "--wait", shell.name]).args(shell.arguments);
    command.current_dir(folder).env("TERM", "xterm").env("HOME", folder);
    command.env("PATH", format!("{}:{path}", bin.display())).env_remove("INPUTRC");
    write(folder.join(".zshrc"), shell.start);
    command.env("ZDOTDIR", folder);
    let said = converse(command, &format!("{}\nexit\n", lines.join("\n")));
    // Each is printed once as it is typed, and once by the program.
    let said = said.replace('\r', "\n");
    let words = said.lines().filter_map(|line| {
        let line = line.split("[END]").next().filter(|_| line.contains("[END]"))?;
        Some(line[line.find('[')?..].to_owned())
    });
    Some(words.collect())
}

#[test]
fn shells_complete_what_one_types() {
    let tree = Tree::new();
    tree.with_roce();
    tree.with_infiniband();
    let devices = [("bnxt_re0", port(DUAL)), ("x;touch$IFS\\made", port(DUAL))];
    let fleet = Fleet::new(&[host("node1", &devices)]);
    // What is typed, and what it becomes.
    let lines = [
        ("dev\t --js\t", "devices --json"),
        ("--sysfs TREE guids mlx5\t", "--sysfs TREE guids mlx5_0"),
        ("--sysfs TREE gid mlx5_0:\t 3", "--sysfs TREE gid mlx5_0:1 3"),
        ("--sysfs TREE ports mlx4_0 mlx5_0/\t", "--sysfs TREE ports mlx4_0 mlx5_0/1"),
        ("choose --from FILE bnxt_re0:\t", "choose --from FILE bnxt_re0:1"),
        ("gids --from FILE --netdev eth0.\t", "gids --from FILE --netdev eth0.7"),
        // A snapshot may come from anyone.
        ("guids --from FILE x\t", "guids --from FILE x;touch$IFS\\made"),
        ("choose --like nvs\t", "choose --like nvshmem"),
        ("gids --from nod\t", "gids --from node7.json"),
        ("mlx5 vp\t", "mlx5 vport"),
    ];
    let filled = |text: &str| {
        let (tree, file) = (tree.path().to_str().unwrap(), fleet.file(0));
        text.replace("TREE", tree).replace("FILE", file.to_str().unwrap())
    };
    let typed_lines: Vec<String> =
        lines.iter().map(|(typed, _)| format!("uverbs {}", filled(typed))).collect();
    let expected: Vec<String> =
        lines.iter().map(|(_, whole)| format!("[{}]", filled(whole).replace(' ', "]["))).collect();
    for shell in &SHELLS {
        let folder = TempDir::new().unwrap();
        write(folder.path().join("node7.json"), "");
        match typed(shell, folder.path(), &typed_lines) {
            Some(found) => assert_eq!(found, expected, "{}", shell.name),
            None => skipped(&format!("completion in {}", shell.name), "it is not installed"),
        }
    }
}
