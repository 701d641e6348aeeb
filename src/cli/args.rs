//! Options that several commands have.

use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum, ValueHint};
use uverbs::host::Preference;
use uverbs::inventory::Problem;
use uverbs::selector::{InvalidSelector, Selector};

use crate::at::At;
use crate::output::Output;
use crate::replace::{remove, replace};
use crate::report::Report;

/// Options of every command.
#[derive(Debug, Args)]
pub(crate) struct Common {
    /// Print one JSON document
    ///
    /// Not every command has one.
    #[arg(short, long, global = true)]
    pub(crate) json: bool,
    /// Leave out a table's heading, for grep and awk
    #[arg(long, global = true)]
    pub(crate) no_header: bool,
    /// Show all columns, also on a narrower terminal; devices and ports have more
    #[arg(long, global = true)]
    pub(crate) wide: bool,
    /// Read the sysfs tree at DIR (a host's /sys in a container), no device of this host
    ///
    /// Commands that need the device itself refuse it.
    #[arg(long, global = true, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) sysfs: Option<PathBuf>,
    /// When to colour tables
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: Color,
}

#[derive(Debug, Args)]
pub(crate) struct SnapshotArgs {
    #[command(flatten)]
    pub(crate) source: SourceArg,
}

/// The devices and ports that are named. A command that does not show them has a help text of its own.
#[derive(Debug, Args)]
pub(crate) struct NamedPorts {
    /// Devices and ports to show; all if none is named
    #[arg(value_name = "DEV[:PORT]", value_parser = selector, value_hint = ValueHint::Other)]
    pub(crate) selectors: Vec<Selector>,
}

/// The devices that are named, of commands that know nothing of a port by itself.
#[derive(Debug, Args)]
pub(crate) struct NamedDevices {
    /// Devices to show; all if none is named
    #[arg(value_name = "DEV", value_parser = device, value_hint = ValueHint::Other)]
    pub(crate) selectors: Vec<Selector>,
}

/// Where to read from: this host, or snapshots.
#[derive(Debug, Args)]
pub(crate) struct OriginArgs {
    #[command(flatten)]
    pub(crate) source: SourceArg,
    #[command(flatten)]
    pub(crate) from: FromArg,
}

impl OriginArgs {
    pub(crate) fn preference(&self, common: &Common) -> Preference {
        self.source.preference(common)
    }
}

/// Snapshots to read.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct FromArg {
    /// Read snapshots, not this host: a file, a folder or `-` (stdin); may be repeated
    ///
    /// A file has one snapshot, or several of which each begins on a line of its own.
    ///
    /// Of a folder, the files *.json and *.jsonl are read.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub(crate) from: Vec<PathBuf>,
    /// Of a recording, what was known then: 2026-11-22T03:12:00Z, 03:12Z, 10m (ago), end
    ///
    /// `watch --record` makes recordings. A time of day is the last such one; Z is UTC.
    ///
    /// In the place of Z may be an offset, as +01:00. `end` is the last moment of the recording.
    #[arg(long, value_name = "TIME", requires = "from", value_hint = ValueHint::Other)]
    pub(crate) at: Option<At>,
}

/// Where to read from.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct SourceArg {
    /// Where to read from [default: auto]
    // No default here: for --sysfs, an `auto` that was given differs from none.
    #[arg(long, value_name = "SOURCE")]
    pub(crate) source: Option<SourceChoice>,
}

impl SourceArg {
    pub(crate) fn preference(self, common: &Common) -> Preference {
        match self.source {
            None if common.sysfs.is_some() => Preference::Sysfs,
            None | Some(SourceChoice::Auto) => Preference::Auto,
            Some(SourceChoice::Ioctl) => Preference::Ioctl,
            Some(SourceChoice::Sysfs) => Preference::Sysfs,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SourceChoice {
    /// The ioctl, or sysfs where the kernel, the rights or the container leave no ioctl
    Auto,
    /// The uverbs ioctl and nothing else
    Ioctl,
    /// Sysfs and nothing else; no device is opened
    Sysfs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless the environment says otherwise
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// A file in the place of the standard output.
#[derive(Debug, Args)]
pub(crate) struct OutputArg {
    /// Write to FILE, whole or not at all, by a file beside it that takes its place
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,
}

impl OutputArg {
    /// Puts a text there, and returns what is left to print.
    pub(crate) fn write(&self, text: Vec<u8>, report: &mut Report) -> Output {
        let Some(path) = &self.output else { return Output::Text(text) };
        if let Err(error) = replace(path, &text) {
            report.host_problem(unwritten("write", path, &error));
        }
        Output::Text(Vec::new())
    }

    /// Whether a file is written.
    pub(crate) fn is_file(&self) -> bool {
        self.output.is_some()
    }

    /// Takes the file away, if it is there. Whether it was.
    pub(crate) fn remove(&self, report: &mut Report) -> bool {
        let Some(path) = &self.output else { return false };
        remove(path).unwrap_or_else(|error| {
            report.host_problem(unwritten("remove", path, &error));
            false
        })
    }
}

fn unwritten(what: &str, path: &Path, error: &io::Error) -> Problem {
    let text = format!("cannot {what} {}: {error}", path.display());
    Problem { text, errno: error.raw_os_error().unwrap_or(0) }
}

/// Reads a selector. Of a path, which is often meant for `--from`, the error says so.
pub(crate) fn selector(text: &str) -> Result<Selector, String> {
    text.parse().map_err(|error: InvalidSelector| {
        if is_file_like(text) { not_a_device(text, true) } else { error.to_string() }
    })
}

/// The same of commands without `--from`.
pub(crate) fn selector_here(text: &str) -> Result<Selector, String> {
    text.parse().map_err(|error: InvalidSelector| {
        if is_file_like(text) { not_a_device(text, false) } else { error.to_string() }
    })
}

/// Whether a word looks like a file of snapshots, which no device's name does.
pub(crate) fn is_file_like(text: &str) -> bool {
    [".json", ".jsonl", ".ndjson"].iter().any(|end| text.ends_with(end))
}

/// What is wrong with a file's name in the place of a device's, of commands with `--from` or without.
pub(crate) fn not_a_device(text: &str, has_from: bool) -> String {
    if has_from {
        format!("{text} is not a device; --from takes one file or folder: --from {text}")
    } else {
        format!("{text} is not a device, and this command reads no snapshots")
    }
}

/// Reads a selector that names a port.
pub(crate) fn port(text: &str) -> Result<(String, u32), String> {
    let selector = selector(text)?;
    match selector.port {
        Some(port) => Ok((selector.device, port)),
        None if is_file_like(text) => Err(not_a_device(text, true)),
        None => Err(format!("{text:?} names no port: expected DEV:PORT or DEV/PORT")),
    }
}

/// Reads a selector that names a device and no port.
pub(crate) fn device(text: &str) -> Result<Selector, String> {
    only_device(text, selector(text)?)
}

/// The same of commands without `--from`.
pub(crate) fn device_here(text: &str) -> Result<Selector, String> {
    only_device(text, selector_here(text)?)
}

fn only_device(text: &str, selector: Selector) -> Result<Selector, String> {
    match selector.port {
        None => Ok(selector),
        Some(_) => Err(format!("{text:?} names a port: expected only a device")),
    }
}
