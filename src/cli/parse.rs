//! Reading a command line: what of it does not go together, and what it asks for whatever its command is.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};
use uverbs::selector::Selector;

use crate::args::{
    Common, FromArg, OriginArgs, SourceArg, SourceChoice, is_file_like, not_a_device,
};
use crate::form::{Form, Format};
use crate::syntax::{Cli, Command};
use crate::text::printable;

impl Cli {
    /// Reads a command line.
    pub(crate) fn from_words<W: Into<OsString> + Clone>(
        words: impl IntoIterator<Item = W>,
    ) -> Result<Self, clap::Error> {
        let cli = Self::try_parse_from(words).map_err(|error| advised(escaped(error)))?;
        match cli.contradiction() {
            None => Ok(cli),
            Some(message) => {
                Err(Self::command().error(ErrorKind::ArgumentConflict, printable(&message)))
            }
        }
    }

    /// Whether problems go to stderr, as they are not in the answer.
    pub(crate) fn shows_problems(&self) -> bool {
        !matches!(self.outline().form, Form::Json | Form::Whole)
    }

    /// What is asked for, whatever the command is.
    fn outline(&self) -> Outline<'_> {
        let common = &self.common;
        let text = Outline::new(if common.json { Form::Json } else { Form::Text });
        let table = Outline::new(if common.json { Form::Json } else { Form::Table });
        match &self.command {
            Command::Devices(own) => table.named(&own.named.selectors).from(&own.from),
            Command::Gids(own) => {
                Outline::of(own.format, common).named(&own.named.selectors).origin(&own.origin)
            }
            Command::Gid(own) => table.origin(&own.origin),
            Command::Ports(own) => {
                Outline::of(own.format, common).named(&own.named.selectors).origin(&own.origin)
            }
            Command::Guids(own) => table.named(&own.named.selectors).origin(&own.origin),
            Command::Pkeys(own) => table.named(&own.named.selectors).from(&own.from),
            Command::Limits(own) => table.named(&own.named.selectors),
            Command::Counters(_) | Command::Mlx5(_) => table,
            Command::Choose(own) => table.named(&own.named.selectors).origin(&own.origin),
            Command::Env(own) => {
                Outline::of(own.format, common).named(&own.named.selectors).origin(&own.origin)
            }
            Command::Check(own) => {
                Outline::of(own.format, common).named(&own.named.selectors).origin(&own.origin)
            }
            Command::Expect(own) => text.origin(&own.origin),
            Command::Fleet(own) => table.origin(&own.origin),
            Command::Metrics(own) => {
                Outline::new(Form::Text).named(&own.named.selectors).origin(&own.origin)
            }
            Command::Nfd(own) => {
                Outline::new(Form::OtherTool("nfd")).named(&own.named.selectors).origin(&own.origin)
            }
            Command::Cdi(own) => Outline::new(Form::Text).named(&own.named.selectors),
            Command::Snapshot(own) => text.source(own.source),
            Command::Watch(own) => text.named(&own.named.selectors).source(own.source),
            Command::Wait(own) => table.named(&own.named.selectors).source(own.source),
            Command::History(_) | Command::Completions { .. } | Command::Man { .. } => text,
        }
    }

    /// What only this command does not take.
    fn own_contradiction(&self) -> Option<String> {
        let common = &self.common;
        let (is_wrong, message) = match &self.command {
            Command::Metrics(_) => (common.json, "metrics has formats of its own: --format"),
            Command::Nfd(_) => (common.json, "nfd writes a feature file and nothing else"),
            Command::Cdi(_) => (common.json, "cdi writes JSON of a form that is not ours, always"),
            Command::Expect(_) => (common.json, "expect writes TOML and nothing else"),
            Command::Completions { .. } => (common.json, "completions are not JSON"),
            Command::Man { .. } => (common.json, "man pages are not JSON"),
            Command::Watch(own) => (
                common.json && own.record.record.is_some(),
                "--record prints nothing, so that --json is of no use",
            ),
            Command::History(_) if common.sysfs.is_some() => {
                (true, "history reads a recording and nothing else")
            }
            Command::History(own) => return own.contradiction(),
            Command::Mlx5(_) | Command::Limits(_) => {
                (common.sysfs.is_some(), "this needs the device itself; --sysfs reads files only")
            }
            // All are named, so that a new command is not forgotten.
            Command::Devices(_)
            | Command::Gids(_)
            | Command::Gid(_)
            | Command::Ports(_)
            | Command::Guids(_)
            | Command::Pkeys(_)
            | Command::Counters(_)
            | Command::Choose(_)
            | Command::Env(_)
            | Command::Check(_)
            | Command::Fleet(_)
            | Command::Snapshot(_)
            | Command::Wait(_) => return None,
        };
        is_wrong.then(|| message.to_owned())
    }

    /// What clap cannot see, as options may come before the command or after it.
    fn contradiction(&self) -> Option<String> {
        let common = &self.common;
        let Outline { form, named, has_from, from, source } = self.outline();
        if let Some(message) = misplaced_file(named, from, has_from) {
            return Some(message);
        }
        if let Some(message) = self.own_contradiction() {
            return Some(message);
        }
        if common.json && form != Form::Json {
            return Some("--json contradicts --format".to_owned());
        }
        if !from.is_empty() {
            if common.sysfs.is_some() || source.is_some() {
                return Some("--from reads snapshots and nothing else".to_owned());
            }
            if let (Form::OtherTool(tool), 2..) = (form, from.len()) {
                return Some(format!("{tool} knows one host: give --from one file"));
            }
        }
        if common.no_header && form != Form::Table {
            return Some("--no-header is for tables".to_owned());
        }
        if common.wide && form != Form::Table {
            return Some("--wide is for tables".to_owned());
        }
        if let Some(folder) = &common.sysfs {
            if source.is_some_and(|source| source != SourceChoice::Sysfs) {
                return Some("with --sysfs there is no other --source than sysfs".to_owned());
            }
            return match folder.metadata() {
                Ok(own) if own.is_dir() => None,
                Ok(_) => Some(format!("--sysfs: {} is not a folder", folder.display())),
                Err(error) => Some(format!("--sysfs: {}: {error}", folder.display())),
            };
        }
        None
    }
}

/// What a command line asks for, whatever its command is.
struct Outline<'a> {
    form: Form,
    /// The devices and ports that are named, of commands that look for a file among these.
    named: &'a [Selector],
    /// Whether the command reads snapshots if it is told to.
    has_from: bool,
    /// The snapshots to read.
    from: &'a [PathBuf],
    source: Option<SourceChoice>,
}

impl<'a> Outline<'a> {
    fn new(form: Form) -> Self {
        Self { form, named: &[], has_from: false, from: &[], source: None }
    }

    /// Of a command that has forms of its own.
    fn of(given: Option<impl Format>, common: &Common) -> Self {
        Self::new(Format::asked(given, common).form())
    }

    fn named(self, named: &'a [Selector]) -> Self {
        Self { named, ..self }
    }

    fn from(self, from: &'a FromArg) -> Self {
        Self { has_from: true, from: &from.from, ..self }
    }

    fn source(self, source: SourceArg) -> Self {
        Self { source: source.source, ..self }
    }

    fn origin(self, origin: &'a OriginArgs) -> Self {
        self.source(origin.source).from(&origin.from)
    }
}

/// A file's name in the place of a device's, as in `--from a.json b.json`.
fn misplaced_file(named: &[Selector], from: &[PathBuf], has_from: bool) -> Option<String> {
    // A folder may have a device's name, as in sysfs; and a file that of a port, as `snapshots/1`.
    let is_file = |path: &Path| !from.is_empty() && path.is_file();
    let file = |own: &Selector| {
        let path =
            own.port.map_or_else(|| own.device.clone(), |port| format!("{}/{port}", own.device));
        (is_file_like(&own.device) || is_file(path.as_ref())).then_some(path)
    };
    let name = &named.iter().find_map(file)?;
    Some(from.first().map_or_else(
        || not_a_device(name, has_from),
        |first| {
            format!(
                "{name} is not a device; --from takes one file or folder: --from {} --from {name}",
                first.display()
            )
        },
    ))
}

/// An error that quotes the command line so that every character shows as what it is.
fn escaped(mut error: clap::Error) -> clap::Error {
    let escaped = |(kind, value): (ContextKind, &ContextValue)| match value {
        ContextValue::String(text) => {
            Some((kind, ContextValue::String(printable(text).into_owned())))
        }
        _ => None,
    };
    let all: Vec<(ContextKind, ContextValue)> = error.context().filter_map(escaped).collect();
    for (kind, value) in all {
        error.insert(kind, value);
    }
    error
}

/// Other tools name a device by an option. What clap advises then, to write the option as a device's name, is of no
/// use: no name begins with a hyphen.
fn advised(mut error: clap::Error) -> clap::Error {
    const OF_OTHERS: [&str; 8] =
        ["-d", "--device", "--dev", "--ib-dev", "-i", "-p", "--port", "--ib-port"];
    let text = |kind| error.get(kind).map(ToString::to_string).unwrap_or_default();
    let is_of_no_use = text(ContextKind::Suggested).contains("as a value");
    if error.kind() != ErrorKind::UnknownArgument || !is_of_no_use {
        return error;
    }
    let is_of_others = OF_OTHERS.contains(&text(ContextKind::InvalidArg).as_str());
    let has_names = text(ContextKind::Usage).contains("DEV");
    error.remove(ContextKind::Suggested);
    if is_of_others && has_names {
        let advice = "devices and ports are named without an option, as mlx5_0 or mlx5_0:1";
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![advice.into()]));
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_given_auto_contradicts_sysfs() {
        let parsed = |args: &[&str]| Cli::try_parse_from(args).unwrap().contradiction();
        assert_eq!(parsed(&["uverbs", "--sysfs", "/", "gids"]), None);
        assert_eq!(parsed(&["uverbs", "gids", "--sysfs", "/", "--source", "sysfs"]), None);
        for source in ["auto", "ioctl"] {
            assert!(parsed(&["uverbs", "gids", "--sysfs", "/", "--source", source]).is_some());
        }
    }
}
