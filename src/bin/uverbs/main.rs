//! `uverbs`: the RDMA devices of a host, their ports, GID tables and GUIDs, for people and scripts.
//!
//! A command gathers its answer and its [`Report`] in memory; [`output`] writes both at the end,
//! each in one go. Nothing is opened for help, completions or wrong usage.

mod args;
mod check;
mod choose;
#[cfg(test)]
#[path = "../../../tests/schemas/conforms.rs"]
mod conforms;
mod devices;
mod env;
mod filter;
mod gids;
mod guids;
mod host;
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
use host::Place;
use hosts::places;
use output::Answer;
use report::Report;
use selection::Asked;
use serde_json::{Map, Value};
use uverbs::inventory::Wanted;

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
        Command::Completions { shell } => return Ok(pages::completions(*shell)),
        Command::Man { command } => return Ok(pages::man(command.as_deref())),
        Command::Choose(args) => choose::answer(common, args, report)?,
        Command::Env(args) => env::answer(common, args, report)?,
        Command::Check(args) => check::answer(common, args, report)?,
        Command::Snapshot(args) => {
            let preference = args.source.preference(common);
            let wanted = Wanted { preference, ..Wanted::default() };
            let inventory = Place::new(common.sysfs.as_deref()).inventory(&wanted);
            let text = snapshot::write(&inventory);
            if !snapshot::is_readable(&text) {
                report.nothing("--from will not read this: it is longer than any host's should be");
            }
            Answer::Text(text)
        }
        _ if !cli.from().is_empty() => of_snapshots(cli, report)?,
        _ => {
            let asked = Asked::new(cli.selectors());
            read(&mut Place::new(common.sysfs.as_deref()), cli, &asked, report)?
        }
    };
    Ok(match answer {
        Answer::Table(table) => table.print(common),
        Answer::Json(text) | Answer::Text(text) => text,
    }
    .into_bytes())
}

/// What a command that reads one place says of it.
fn read(
    place: &mut Place,
    cli: &Cli,
    asked: &Asked<'_>,
    report: &mut Report,
) -> serde_json::Result<Answer> {
    let common = &cli.common;
    match &cli.command {
        Command::Devices(_) => devices::answer(place, common, report),
        Command::Gids(args) => gids::answer_gids(place, common, args, asked, report),
        Command::Gid(args) => gids::answer_gid(place, common, args, report),
        Command::Ports(args) => ports::answer(place, common, args, asked, report),
        Command::Guids(args) => guids::answer(place, common, args, asked, report),
        Command::Mlx5(command) => mlx5::answer(place, common, command, report),
        // All others were answered before.
        _ => Ok(Answer::Text(String::new())),
    }
}

/// What such a command says of each snapshot, in one table or document; rows say whose they are.
fn of_snapshots(cli: &Cli, report: &mut Report) -> serde_json::Result<Answer> {
    let mut table: Option<table::Sheet> = None;
    let mut document = Map::new();
    // The list is there also if no file could be read.
    document.insert(cli.list().to_owned(), Value::Array(Vec::new()));
    let mut all = String::new();
    let asked = Asked::new(cli.selectors());
    for (host, mut place) in places(cli.from(), report) {
        report.turn_to(Some(&host));
        match read(&mut place, cli, &asked, report)? {
            Answer::Text(text) => all += &text,
            Answer::Table(mut own) => {
                own.name_hosts(&mut std::iter::repeat(&*host));
                match &mut table {
                    Some(table) => table.append(own),
                    None => table = Some(own),
                }
            }
            Answer::Json(text) => {
                let own: Map<String, Value> = serde_json::from_str(&text)?;
                // What went wrong was reported, and is put to the end.
                for (key, rows) in own.into_iter().filter(|(key, _)| key != "problems") {
                    let list = document.entry(key).or_insert_with(|| Value::Array(Vec::new()));
                    let (Value::Array(list), Value::Array(rows)) = (list, rows) else { continue };
                    list.extend(rows.into_iter().map(|row| with_host(&host, row)));
                }
            }
        }
    }
    report.turn_to(None);
    match table {
        Some(table) => Ok(Answer::Table(table)),
        None if cli.is_json() => {
            document.insert("problems".to_owned(), serde_json::to_value(report.problems())?);
            output::json(&document)
        }
        None => Ok(Answer::Text(all)),
    }
}

fn with_host(host: &str, row: Value) -> Value {
    let Value::Object(mut fields) = row else { return row };
    fields.shift_insert(0, "host".to_owned(), host.into());
    Value::Object(fields)
}
