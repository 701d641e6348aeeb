//! Reading a command line: what of it does not go together, and what it asks for whatever its command is.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};
use uverbs::selector::Selector;

use crate::args::{SourceChoice, is_file_like, not_a_device};
use crate::env::EnvFormat;
use crate::gids::Format;
use crate::ports::PortsFormat;
use crate::syntax::{Cli, Command};

impl Cli {
    /// Reads a command line.
    pub(crate) fn from_words<W: Into<OsString> + Clone>(
        words: impl IntoIterator<Item = W>,
    ) -> Result<Self, clap::Error> {
        let cli = Self::try_parse_from(words).map_err(advised)?;
        match cli.contradiction() {
            None => Ok(cli),
            Some(message) => Err(Self::command().error(ErrorKind::ArgumentConflict, message)),
        }
    }

    /// Whether problems go to stderr, as they are not in the answer.
    pub(crate) fn shows_problems(&self) -> bool {
        !self.is_json()
    }

    /// The snapshots that are to be read.
    pub(crate) fn from(&self) -> &[PathBuf] {
        self.named().0
    }

    /// The snapshots that are to be read, and the devices and ports that are named, of commands that look for a
    /// file among these.
    fn named(&self) -> (&[PathBuf], &[Selector]) {
        let (from, selectors) = match &self.command {
            Command::Devices(args) => (&args.from, &args.selectors),
            Command::Gids(args) => (&args.from, &args.selectors),
            Command::Ports(args) => (&args.from, &args.selectors),
            Command::Guids(args) => (&args.from, &args.selectors),
            Command::Pkeys(args) => (&args.from, &args.selectors),
            Command::Choose(args) => (&args.from, &args.selectors),
            Command::Env(args) => (&args.from, &args.selectors),
            Command::Check(args) => (&args.from, &args.selectors),
            Command::Metrics(args) => (&args.from, &args.selectors),
            Command::Gid(args) => return (&args.from.from, &[]),
            Command::Limits(args) => return (&[], &args.selectors),
            Command::Watch(args) => return (&[], &args.selectors),
            Command::Wait(args) => return (&[], &args.selectors),
            Command::Counters(_)
            | Command::Snapshot(_)
            | Command::History(_)
            | Command::Mlx5(_)
            | Command::Completions { .. }
            | Command::Man { .. } => return (&[], &[]),
        };
        (&from.from, selectors)
    }

    /// A file's name in the place of a device's, as in `--from a.json b.json`.
    fn misplaced_file(&self) -> Option<String> {
        let (from, selectors) = self.named();
        // A folder may have a device's name, as in sysfs; and a file that of a port, as `snapshots/1`.
        let is_file = |path: &Path| !from.is_empty() && path.is_file();
        let file = |own: &Selector| {
            let path = own
                .port
                .map_or_else(|| own.device.clone(), |port| format!("{}/{port}", own.device));
            (is_file_like(&own.device) || is_file(path.as_ref())).then_some(path)
        };
        let name = &selectors.iter().find_map(file)?;
        Some(from.first().map_or_else(
            || not_a_device(name),
            |first| {
                format!(
                    "{name} is not a device; --from takes one file or folder: --from {} --from {name}",
                    first.display()
                )
            },
        ))
    }

    /// Whether the answer is a JSON document.
    pub(crate) fn is_json(&self) -> bool {
        match &self.command {
            Command::Gids(args) => args.format(&self.common) == Format::Json,
            Command::Env(args) => args.format(&self.common) == EnvFormat::Json,
            Command::Ports(args) => args.format(&self.common) == PortsFormat::Json,
            Command::Devices(_)
            | Command::Gid(_)
            | Command::Guids(_)
            | Command::Pkeys(_)
            | Command::Limits(_)
            | Command::Counters(_)
            | Command::Choose(_)
            | Command::Check(_)
            | Command::Snapshot(_)
            | Command::Watch(_)
            | Command::Wait(_)
            | Command::History(_)
            | Command::Mlx5(_)
            | Command::Completions { .. }
            | Command::Man { .. } => self.common.json,
            Command::Metrics(_) => false,
        }
    }

    fn is_table(&self) -> bool {
        match &self.command {
            Command::Gids(args) => args.format(&self.common) == Format::Table,
            Command::Ports(args) => args.format(&self.common) == PortsFormat::Table,
            Command::Devices(_)
            | Command::Gid(_)
            | Command::Guids(_)
            | Command::Pkeys(_)
            | Command::Limits(_)
            | Command::Counters(_)
            | Command::Choose(_)
            | Command::Check(_)
            | Command::Wait(_)
            | Command::Mlx5(_) => !self.common.json,
            Command::Env(_)
            | Command::Metrics(_)
            | Command::Watch(_)
            | Command::History(_)
            | Command::Snapshot(_)
            | Command::Completions { .. }
            | Command::Man { .. } => false,
        }
    }

    /// The tool whose output is asked for, which knows one host.
    fn tool_of_one_host(&self) -> Option<&'static str> {
        match &self.command {
            Command::Gids(args) if args.format == Some(Format::ShowGids) => Some("show_gids"),
            Command::Ports(args) if args.format == Some(PortsFormat::Ibstat) => Some("ibstat"),
            Command::Ports(args) if args.format == Some(PortsFormat::Ibdev2netdev) => {
                Some("ibdev2netdev")
            }
            _ => None,
        }
    }

    /// What clap cannot see, as options may come before the command or after it.
    fn contradiction(&self) -> Option<String> {
        let common = &self.common;
        if let Some(message) = self.misplaced_file() {
            return Some(message);
        }
        let source = match &self.command {
            Command::Gids(args) => {
                if common.json && args.format.is_some_and(|format| format != Format::Json) {
                    return Some("--json contradicts --format".to_owned());
                }
                args.source.source
            }
            Command::Gid(args) => args.source.source,
            Command::Ports(args) => {
                if common.json && args.format.is_some_and(|format| format != PortsFormat::Json) {
                    return Some("--json contradicts --format".to_owned());
                }
                args.source.source
            }
            Command::Guids(args) => args.source.source,
            Command::Choose(args) => args.source.source,
            Command::Check(args) => args.source.source,
            Command::Metrics(_) if common.json => {
                return Some("metrics has formats of its own: --format".to_owned());
            }
            Command::Metrics(args) => args.source.source,
            Command::Snapshot(args) => args.source.source,
            Command::Watch(args) => {
                if common.json && args.record.record.is_some() {
                    return Some("--record prints nothing, so that --json is of no use".to_owned());
                }
                args.source.source
            }
            Command::History(_) if common.sysfs.is_some() => {
                return Some("history reads a recording and nothing else".to_owned());
            }
            Command::History(args) => {
                if let Some(message) = args.contradiction() {
                    return Some(message);
                }
                None
            }
            Command::Wait(args) => args.source.source,
            Command::Env(args) => {
                if common.json && args.format.is_some_and(|format| format != EnvFormat::Json) {
                    return Some("--json contradicts --format".to_owned());
                }
                args.source.source
            }
            Command::Mlx5(_) | Command::Limits(_) if common.sysfs.is_some() => {
                return Some("this needs the device itself; --sysfs reads files only".to_owned());
            }
            Command::Devices(_)
            | Command::Pkeys(_)
            | Command::Limits(_)
            | Command::Counters(_)
            | Command::Mlx5(_)
            | Command::Completions { .. }
            | Command::Man { .. } => None,
        };
        if !self.from().is_empty() {
            if common.sysfs.is_some() || source.is_some() {
                return Some("--from reads snapshots and nothing else".to_owned());
            }
            if let (Some(tool), 2..) = (self.tool_of_one_host(), self.from().len()) {
                return Some(format!("{tool} knows one host: give --from one file"));
            }
        }
        if common.no_header && !self.is_table() {
            return Some("--no-header is for tables".to_owned());
        }
        if common.wide && !self.is_table() {
            return Some("--wide is for tables".to_owned());
        }
        if let Some(folder) = &common.sysfs {
            if source.is_some_and(|source| source != SourceChoice::Sysfs) {
                return Some("with --sysfs there is no other --source than sysfs".to_owned());
            }
            if !folder.is_dir() {
                return Some(format!("--sysfs: {} is not a folder", folder.display()));
            }
        }
        None
    }
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
