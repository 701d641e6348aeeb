//! Completion: what can come next on a command line, asked by the scripts of [`crate::shell`].
//!
//! `uverbs __complete WORD…` takes the words up to the cursor, and completes the last one. It
//! prints a line for each word that it can be: the word, a tab, what it is. A line without a word says
//! which names the shell completes itself: `files` or `folders`. Options and commands are those of
//! [`crate::syntax`]; devices, ports and interfaces those of this host, or of the snapshots or the tree
//! that the line names. Of what `--from` names only files and folders are read: the standard input of a
//! shell that asks is its terminal, and who writes into a pipe may never begin.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, Command, CommandFactory as _, ValueHint};
use uverbs::inventory::{Parts, Wanted};

use crate::args::{Color, Common, FromArg};
use crate::hosts::each;
use crate::like::Like;
use crate::report::Report;
use crate::syntax::Cli;
use crate::text::printable;

/// The first word of a question.
const WORD: &str = "__complete";

/// The answer, if a shell asks.
pub(crate) fn answer(mut words: impl Iterator<Item = OsString>) -> Option<String> {
    if words.next()? != WORD {
        return None;
    }
    let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    let mut text = String::new();
    for (word, what) in candidates(&words) {
        let _ = writeln!(text, "{}\t{}", printable(&word), printable(&what));
    }
    Some(text)
}

/// A word, and what it is.
type Candidate = (String, String);

fn candidates(words: &[String]) -> Vec<Candidate> {
    let Some((last, before)) = words.split_last() else { return Vec::new() };
    let mut root = Cli::command();
    root.build();
    let line = Line::read(&root, before);
    let mut found =
        match (&line.option, last.strip_prefix("--").and_then(|own| own.split_once('='))) {
            (Some(option), _) => line.values(option, last),
            (None, Some((name, value))) => {
                let option = line.command.get_arguments().find(|own| own.get_long() == Some(name));
                let values = option.map(|own| line.values(own, value)).unwrap_or_default();
                let whole = |(own, what): Candidate| {
                    if own.starts_with('@') {
                        (own, what)
                    } else {
                        (format!("--{name}={own}"), what)
                    }
                };
                values.into_iter().map(whole).collect()
            }
            (None, None) if last.starts_with('-') && !line.is_escaped => line.options(),
            (None, None) => line.commands_and_values(last),
        };
    found.retain(|(word, _)| word.starts_with(last.as_str()) || word.starts_with('@'));
    found
}

/// What the words before the cursor say.
struct Line<'c> {
    command: &'c Command,
    /// The option whose value comes next.
    option: Option<&'c Arg>,
    /// How many words of the command are neither options nor their values.
    words: usize,
    is_escaped: bool,
    sysfs: Option<PathBuf>,
    from: FromArg,
}

impl<'c> Line<'c> {
    fn read(root: &'c Command, before: &[String]) -> Self {
        let (sysfs, from) = (None, FromArg::default());
        let mut line =
            Self { command: root, option: None, words: 0, is_escaped: false, sysfs, from };
        for word in before {
            if let Some(option) = line.option.take() {
                line.take(option, word);
            } else if line.is_escaped || !word.starts_with('-') || word == "-" {
                match line.command.find_subcommand(word) {
                    Some(command) if line.words == 0 && !line.is_escaped => line.command = command,
                    _ => line.words += 1,
                }
            } else if word == "--" {
                line.is_escaped = true;
            } else if let Some(long) = word.strip_prefix("--") {
                let (name, value) =
                    long.split_once('=').map_or((long, None), |(a, b)| (a, Some(b)));
                let mut all = line.command.get_arguments();
                match (all.find(|own| own.get_long() == Some(name)), value) {
                    (Some(option), Some(value)) => line.take(option, value),
                    (Some(option), None) if takes_value(option) => line.option = Some(option),
                    _ => {}
                }
            }
        }
        line
    }

    /// Notes what devices are read from.
    fn take(&mut self, option: &Arg, value: &str) {
        match option.get_long() {
            Some("from") => self.from.from.push(value.into()),
            Some("at") => self.from.at = value.parse().ok(),
            Some("sysfs") => self.sysfs = Some(value.into()),
            _ => {}
        }
    }

    fn options(&self) -> Vec<Candidate> {
        let all = self.command.get_arguments().filter(|own| !own.is_hide_set());
        all.filter_map(|own| Some((format!("--{}", own.get_long()?), help(own.get_help()))))
            .collect()
    }

    fn commands_and_values(&self, last: &str) -> Vec<Candidate> {
        let mut found = Vec::new();
        if self.words == 0 && !self.is_escaped {
            let all = self.command.get_subcommands();
            found.extend(all.map(|own| (own.get_name().to_owned(), help(own.get_about()))));
        }
        let mut all = self.command.get_positionals();
        let count = self.command.get_positionals().count();
        // The last one may be there several times.
        let own = all.nth(self.words.min(count.saturating_sub(1)));
        let has_room =
            |own: &&Arg| self.words < count || matches!(own.get_action(), ArgAction::Append);
        if let Some(own) = own.filter(has_room) {
            found.extend(self.values(own, last));
        }
        found
    }

    /// The values that an argument can have.
    fn values(&self, arg: &Arg, begun: &str) -> Vec<Candidate> {
        let possible = arg.get_possible_values();
        if !possible.is_empty() {
            let all = possible.iter().filter(|own| !own.is_hide_set());
            return all.map(|own| (own.get_name().to_owned(), help(own.get_help()))).collect();
        }
        let shell = |which: &str| vec![(which.to_owned(), String::new())];
        match arg.get_value_hint() {
            ValueHint::AnyPath | ValueHint::FilePath => return shell("@files"),
            ValueHint::DirPath => return shell("@folders"),
            _ => {}
        }
        let names = arg.get_value_names().and_then(<[_]>::first).map_or("", |name| name.as_str());
        match (names, arg.get_long()) {
            ("DEV", _) => self.devices(false, None),
            ("DEV[:PORT]", _) => self.devices(true, begun.contains('/').then_some('/')),
            ("DEV:PORT", _) => {
                let mut ports = self.devices(true, begun.contains('/').then_some('/'));
                ports.retain(|(name, _)| name.contains([':', '/']));
                ports
            }
            (_, Some("netdev")) => self.interfaces(),
            (_, Some("like")) => {
                Like::names().into_iter().map(|name| (name, String::new())).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Devices, each with its ports after it if they are wanted.
    fn devices(&self, with_ports: bool, between: Option<char>) -> Vec<Candidate> {
        let mut found: Vec<Candidate> = Vec::new();
        self.look(Parts::LISTED, |host| {
            for record in &host.inventory.devices {
                let device = &record.device;
                let what = device.driver.map_or_else(|| "device".to_owned(), |own| own.to_string());
                found.push((device.name.clone(), what));
                for port in device.ports().filter(|_| with_ports) {
                    let between = between.unwrap_or(':');
                    found.push((format!("{}{between}{port}", device.name), format!("port {port}")));
                }
            }
        });
        let mut known = std::collections::BTreeSet::new();
        found.retain(|(name, _)| known.insert(name.clone()));
        found
    }

    fn interfaces(&self) -> Vec<Candidate> {
        let mut parts = Parts::LISTED;
        parts.interfaces = true;
        let mut found = std::collections::BTreeSet::new();
        self.look(parts, |host| {
            let own = host.inventory.interfaces.iter().flatten();
            found.extend(own.map(|own| (own.name.clone(), String::new())));
        });
        found.into_iter().collect()
    }

    /// Reads what is on the line. What cannot be read has no names.
    fn look(&self, parts: Parts, mut see: impl FnMut(&crate::hosts::Seen)) {
        let (sysfs, color) = (self.sysfs.clone(), Color::Never);
        let common = Common { json: false, no_header: false, wide: false, sysfs, color };
        let wanted = Wanted::new(parts);
        let mut from = self.from.clone();
        from.from.retain(|path| is_file_or_folder(path));
        // Without any it would be this host.
        if from.from.is_empty() && !self.from.from.is_empty() {
            return;
        }
        let read = each(&common, &from, &wanted, &mut Report::default(), |host, _| {
            see(host);
            Ok(())
        });
        // Its reader cannot fail.
        let _ = read;
    }
}

fn is_file_or_folder(path: &Path) -> bool {
    let found = fs::metadata(path);
    path.as_os_str() != "-" && found.is_ok_and(|found| found.is_file() || found.is_dir())
}

pub(crate) fn takes_value(arg: &Arg) -> bool {
    arg.get_num_args().is_some_and(|range| range.takes_values())
}

/// The first line of a help text.
fn help(text: Option<&clap::builder::StyledStr>) -> String {
    let text = text.map(ToString::to_string).unwrap_or_default();
    text.lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(line: &str) -> Vec<String> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        candidates(&words).into_iter().map(|(word, _)| word).collect()
    }

    #[test]
    fn commands_options_and_their_values() {
        assert_eq!(found("gi"), ["gids", "gid"]);
        assert_eq!(found("mlx5 v"), ["vport"]);
        assert_eq!(found("gids --no"), ["--no-header"]);
        assert_eq!(found("gids --ty"), ["--type"]);
        assert_eq!(found("--sysfs /nowhere --js"), ["--json"]);
        assert_eq!(found("gids --type v"), ["v1", "v2"]);
        assert_eq!(found("gids --type=v"), ["--type=v1", "--type=v2"]);
        assert_eq!(found("gids --color auto --format t"), ["table"]);
        assert_eq!(found("env n"), ["nccl", "nvshmem"]);
        assert_eq!(found("man mlx5-"), ["mlx5-port", "mlx5-vport", "mlx5-device"]);
        assert_eq!(found("man gids "), [""; 0], "it takes one");
        assert_eq!(found("completions "), ["bash", "fish", "zsh"]);
        let releases = found("choose --like nccl-2.2");
        assert!(releases.contains(&"nccl-2.21".to_owned()), "{releases:?}");
        assert!(found("choose --like u").contains(&"ucx".to_owned()));
    }

    #[test]
    fn files_are_the_shells() {
        assert_eq!(found("gids --from x"), ["@files"]);
        assert_eq!(found("gids --from=x"), ["@files"]);
        assert_eq!(found("gids --sysfs "), ["@folders"]);
        assert!(found("gids -- --").is_empty());
        assert!(found("nonsense ").is_empty());
    }

    #[test]
    fn devices_and_ports_of_the_tree_on_the_line() {
        let (folder, _) = crate::testing::host();
        let tree = folder.path().display();
        assert_eq!(found(&format!("--sysfs {tree} gids ")), ["rxe0", "rxe0:1"]);
        assert_eq!(found(&format!("--sysfs {tree} gids rxe0 rx")), ["rxe0", "rxe0:1"]);
        assert_eq!(found(&format!("--sysfs={tree} ports rxe0/")), ["rxe0/1"]);
        assert_eq!(found(&format!("--sysfs={tree} gid ")), ["rxe0:1"]);
        assert_eq!(found(&format!("--sysfs={tree} guids ")), ["rxe0"]);
        assert!(found(&format!("--sysfs {tree} gids x")).is_empty());
    }

    /// Every release that is offered is taken.
    #[test]
    fn what_like_offers_it_takes() {
        for name in Like::names() {
            assert!(name.parse::<Like>().is_ok(), "{name}");
        }
    }
}
