//! `uverbs`: the RDMA devices of a host, their ports, GID tables and GUIDs, for people and scripts.
//!
//! A command gathers its answer and its [`Report`] in memory; [`output`] writes both at the end,
//! each in one go. Nothing is opened for help, completions or wrong usage.

mod args;
mod check;
mod choose;
#[cfg(test)]
mod conforms;
mod devices;
mod env;
mod filter;
mod gids;
mod guids;
mod hosts;
mod mlx5;
mod output;
mod pages;
mod ports;
mod report;
mod selection;
mod show_gids;
mod snapshot;
mod table;
#[cfg(test)]
mod testing;

use std::process::ExitCode;

use args::{Cli, Command};
use output::Answer;
use report::Report;

/// musl's allocator asks the kernel for nearly every small allocation that a program begins with,
/// three times as often as everything else here together.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

fn main() -> ExitCode {
    let cli = match Cli::from_command_line() {
        Ok(cli) => cli,
        // Help and version go to stdout with status 0, wrong usage to stderr with status 2.
        Err(error) => error.exit(),
    };
    let mut report = Report::default();
    match answer(&cli, &mut report) {
        Ok(answer) => output::write(&answer, &report, cli.shows_problems()),
        Err(error) => output::fail(&error.to_string()),
    }
}

/// What goes to stdout.
fn answer(cli: &Cli, report: &mut Report) -> serde_json::Result<Vec<u8>> {
    let common = &cli.common;
    let answer = match &cli.command {
        Command::Devices(args) => devices::answer(common, args, report)?,
        Command::Gids(args) => gids::answer_gids(common, args, report)?,
        Command::Gid(args) => gids::answer_gid(common, args, report)?,
        Command::Ports(args) => ports::answer(common, args, report)?,
        Command::Guids(args) => guids::answer(common, args, report)?,
        Command::Choose(args) => choose::answer(common, args, report)?,
        Command::Env(args) => env::answer(common, args, report)?,
        Command::Check(args) => check::answer(common, args, report)?,
        Command::Snapshot(args) => snapshot::answer(common, args, report),
        Command::Mlx5(command) => mlx5::answer(common, command, report)?,
        Command::Completions { shell } => return Ok(pages::completions(*shell)),
        Command::Man { command } => return Ok(pages::man(command.as_deref())),
    };
    Ok(match answer {
        Answer::Table(table) => table.print(common),
        Answer::Json(text) | Answer::Text(text) => text,
    }
    .into_bytes())
}
