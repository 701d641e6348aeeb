//! The program `uverbs`: the RDMA devices of a host, their ports, GID tables and GUIDs, for people and scripts.
//!
//! A command looks at one host at a time. It gathers its answer and its `Report` in memory; `output` writes
//! both at the end, each in one go, but for long JSON documents. Nothing is opened for help, completions or wrong usage.

mod args;
mod at;
mod cdi;
mod check;
mod choose;
mod complete;
#[cfg(test)]
#[path = "../../tests/schemas/conforms.rs"]
mod conforms;
mod counters;
mod devices;
mod env;
mod expect;
mod files;
mod filter;
mod fits;
mod fleet;
mod form;
mod gid_row;
mod gids;
mod guids;
mod history;
mod host_list;
mod hosts;
mod ibstat;
mod layout;
mod like;
mod limits;
mod line;
mod looked;
#[cfg(test)]
#[path = "../../tests/fleet/host.rs"]
mod many;
#[cfg(test)]
mod memory;
mod metrics;
mod mlx5;
mod nagios;
mod nfd;
mod other_tool;
mod out;
mod output;
mod pages;
mod parse;
mod pkeys;
mod ports;
mod record;
mod replace;
mod report;
mod rows;
mod selection;
mod shell;
mod show_gids;
mod snapshot;
mod status;
mod syntax;
mod table;
#[cfg(test)]
mod testing;
mod text;
mod until;
mod values;
mod verdict;
mod wait;
mod watch;

use std::io::ErrorKind;
use std::process::ExitCode;

use clap::Parser as _;
use uverbs::gid::{GidEntry, GidRecord, GidType};

use output::Output;
use report::Report;
use status::Status;
use syntax::{Cli, Command};

/// Runs the program. Without a stdout there is nothing that it can do.
#[must_use]
pub fn main(has_stdout: bool) -> ExitCode {
    if !has_stdout {
        return output::fail("cannot write: the standard output is closed");
    }
    if let Some(answer) = complete::answer(std::env::args_os().skip(1)) {
        return output::write_text(answer);
    }
    let cli = match Cli::from_words(std::env::args_os()) {
        Ok(cli) => cli,
        Err(error) => return explain(&error),
    };
    let mut report = Report::default();
    match answer(&cli, &mut report) {
        Ok(answer) => output::write(answer, &cli.common, &report, cli.shows_problems()),
        Err(error) => output::fail(&error.to_string()),
    }
}

/// Prints help or the version to stdout, and what is wrong with the command line to stderr.
fn explain(error: &clap::Error) -> ExitCode {
    let is_wrong = error.use_stderr();
    match error.print() {
        _ if is_wrong => Status::Failed.into(),
        Err(error) if error.kind() != ErrorKind::BrokenPipe => output::unwritten(&error),
        Err(_) | Ok(()) => Status::Fine.into(),
    }
}

/// What goes to stdout.
fn answer(cli: &Cli, report: &mut Report) -> serde_json::Result<Output> {
    let common = &cli.common;
    Ok(match &cli.command {
        Command::Devices(args) => devices::answer(common, args, report)?,
        Command::Gids(args) => gids::answer_gids(common, args, report)?,
        Command::Gid(args) => gids::answer_gid(common, args, report)?,
        Command::Ports(args) => ports::answer(common, args, report)?,
        Command::Guids(args) => guids::answer(common, args, report)?,
        Command::Pkeys(args) => pkeys::answer(common, args, report)?,
        Command::Limits(args) => limits::answer(common, args, report)?,
        Command::Counters(args) => counters::answer(common, args, report)?,
        Command::Choose(args) => choose::answer(common, args, report)?,
        Command::Env(args) => env::answer(common, args, report)?,
        Command::Check(args) => check::answer(common, args, report)?,
        Command::Fleet(args) => fleet::answer(common, args, report)?,
        Command::Expect(args) => expect::answer(common, args, report)?,
        Command::Metrics(args) => metrics::answer(common, args, report)?,
        Command::Nfd(args) => nfd::answer(common, args, report)?,
        Command::Cdi(args) => cdi::answer(common, args, report)?,
        Command::Snapshot(args) => snapshot::answer(common, args, report)?,
        Command::Watch(args) => watch::answer(common, args, report)?,
        Command::Wait(args) => wait::answer(common, args, report)?,
        Command::History(args) => history::answer(common, args, report)?,
        Command::Mlx5(command) => mlx5::answer(common, command, report)?,
        Command::Completions { shell } => Output::Text(shell::script(*shell).into()),
        Command::Man { command } => Output::Text(pages::man(command.as_deref())),
    })
}

/// What the program says of a command line that it refuses, for those who would start it elsewhere. The first
/// word is the program's name.
#[must_use]
pub fn refusal(words: &[String]) -> Option<String> {
    let error = Cli::from_words(words).err()?;
    error.use_stderr().then(|| error.to_string())
}

/// Reads a command line as the program does, and filters a GID by it, for fuzzing: the type of GID that is
/// wanted, and whether this one passes.
///
/// # Errors
/// What is wrong with the command line.
#[doc(hidden)]
pub fn filtered<'w>(
    words: impl Iterator<Item = &'w str>,
    entry: &GidEntry,
) -> Result<Option<(Option<GidType>, bool)>, String> {
    let cli = Cli::try_parse_from(words).map_err(|error| error.to_string())?;
    let Command::Gids(arguments) = &cli.command else { return Ok(None) };
    let filter = filter::Filter::new(&arguments.filter);
    let passes = filter.verdict(&GidRecord::from(*entry)) == filter::Match::Passes
        && filter.admits_netdev(Some("eth0"));
    Ok(Some((arguments.filter.gid_type.map(GidType::from), passes)))
}
