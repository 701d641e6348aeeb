//! `uverbs expect`: what a good host looks like, as a file that operators edit by hand. `uverbs check --expect` reads it.

mod read;
#[cfg(test)]
mod tests;
mod write;

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use clap::Args;
use uverbs::check::expect::{Gathering, HostPattern, Hosts};
use uverbs::inventory::{Parts, Problem};

use crate::args::{Common, OriginArgs};
use crate::hosts::{look, tell_problems};
use crate::output::Output;
use crate::report::{EINVAL, Report};
use crate::selection::Asked;

/// The longest file that is read, in bytes, and so the longest that is of use.
const LONGEST: u64 = 1 << 20;
/// The errno of a file that is too large.
const EFBIG: i32 = 27;

/// Write what a good host looks like, for check --expect
///
/// A file in TOML, to be edited by hand: groups of devices by driver and board, how many there are, and of
/// each its firmware, PCIe link and NUMA node, and of its ports the link layer, state, rate, width, MTU,
/// networks, P_Keys and interfaces, and the GID indices that uverbs recommends and that NCCL and UCX take. It
/// has no GUIDs and LIDs, and of addresses their networks.
///
/// Of several hosts it is what holds for all: lists of values, ranges of numbers, the smallest network that
/// has their addresses. Devices of one driver and board that are not alike are groups of their own, by name.
/// What could not be read is left out, and a comment says so.
#[derive(Debug, Args)]
#[command(
    verbatim_doc_comment,
    after_help = "\
Examples:
  uverbs expect > host.toml
  uverbs expect --from snapshots > host.toml   what holds for all hosts of a folder
  uverbs check --expect host.toml"
)]
pub(crate) struct ExpectArgs {
    #[command(flatten)]
    pub(crate) origin: OriginArgs,
}

pub(crate) fn answer(
    common: &Common,
    args: &ExpectArgs,
    report: &mut Report,
) -> serde_json::Result<Output> {
    let source = (&args.origin.from, args.origin.preference(common), Parts::ALL);
    let asked = Asked::default();
    let (mut gathering, mut hosts) = (Gathering::default(), Hosts::default());
    let mut unread = Vec::new();
    look(common, source, &asked, report, |host, report| {
        report.turn_to(host.name.as_deref());
        tell_problems(&host.inventory, &asked, report);
        report.turn_to(None);
        hosts.add(host.inventory.host.as_deref().or(host.name.as_deref()), &host.inventory);
        gathering.add(&host.inventory);
        unread.extend(host.name.clone().filter(|_| host.has_unread()));
        Ok(())
    })?;
    unread.extend(report.bad_files().map(str::to_owned));
    // There is none in files that could not be read, which the report names.
    if hosts.names().next().is_none() {
        return Ok(Output::Text(Vec::new()));
    }
    let text = write::write(&gathering.end(), &hosts, &unread);
    if is_too_long(text.len()) {
        let text = format!(
            "what is expected: {}: check --expect does not read it; take hosts that are more alike",
            too_long()
        );
        report.host_problem(Problem { text, errno: EFBIG });
    }
    Ok(Output::Text(text.into_bytes()))
}

fn is_too_long(bytes: usize) -> bool {
    bytes > usize::try_from(LONGEST).unwrap_or(usize::MAX)
}

fn too_long() -> String {
    format!("longer than {} MiB", LONGEST >> 20)
}

/// Reads what is expected. A problem's text names the file, the line and what is allowed there.
pub(crate) fn read(path: &Path) -> Result<HostPattern, Problem> {
    let problem = |text: String, errno| Problem { text, errno };
    let name = path.display();
    let unread = |error: std::io::Error| {
        problem(format!("{name}: {error}"), error.raw_os_error().unwrap_or(EINVAL))
    };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(unread)?;
    file.take(LONGEST + 1).read_to_end(&mut bytes).map_err(unread)?;
    if is_too_long(bytes.len()) {
        return Err(problem(format!("{name}: {}", too_long()), EFBIG));
    }
    let text = String::from_utf8(bytes)
        .map_err(|error| problem(format!("{name}: {}", error.utf8_error()), EINVAL))?;
    read::read(&text).map_err(|fault| problem(format!("{name}:{fault}"), EINVAL))
}
