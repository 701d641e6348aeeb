//! `uverbs watch --record`: what is there and each change, as lines of a file.

mod file;

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::{Args, ValueHint};
use nix::sys::signal::{SigSet, Signal};
use uverbs::inventory::{Inventory, LONGEST_SNAPSHOT, Problem, Snapshots};
use uverbs::watch::{Change, Lines, RECORDED, Watch};

use crate::args::{Common, SourceArg};
use crate::files::ROOM;
use crate::looked::Looked;
use crate::out::Out;
use crate::output::{Output, say};
use crate::report::{EINVAL, Report};
use crate::selection::Asked;
use crate::until::{TimeArgs, lacking};
use file::Log;

/// Where to record to.
#[derive(Debug, Args)]
pub(crate) struct RecordArgs {
    /// Print nothing, and record to FILE: all that is there, and then each change
    ///
    /// `--from FILE --at TIME` of other commands and `uverbs history FILE` read it.
    #[arg(
        long,
        value_name = "FILE",
        value_hint = ValueHint::FilePath,
        conflicts_with_all = ["selectors", "only", "count", "gid_type", "netdev", "ip", "cidr"]
    )]
    pub(crate) record: Option<PathBuf>,
    /// Begin a new file at this size, and keep the last as FILE.1 [default: 16M]
    #[arg(long, value_name = "SIZE", requires = "record", value_parser = size)]
    record_size: Option<u64>,
}

/// Reads a number of bytes.
fn size(text: &str) -> Result<u64, String> {
    let (number, shift) = match text.as_bytes().last() {
        Some(b'K' | b'k') => (text.get(..text.len() - 1), 10),
        Some(b'M' | b'm') => (text.get(..text.len() - 1), 20),
        _ => (Some(text), 0),
    };
    let number = number.and_then(|own| own.parse::<u64>().ok());
    let size = number.and_then(|own| own.checked_mul(1 << shift));
    size.filter(|own| (LEAST..=MOST).contains(own)).ok_or_else(|| {
        let (least, most) = (LEAST >> 10, MOST >> 20);
        format!(
            "expected a number of bytes, at least {least}K and at most {most}M, as 500000 or 16M"
        )
    })
}

const LEAST: u64 = 4 << 10;
/// Two files of it can be read together, each with a reading and a snapshot more.
const MOST: u64 = ROOM / 2 - 2 * LONGEST_SNAPSHOT as u64;
const SIZE: u64 = 16 << 20;

/// How often all is read and it is written that it is as before, so that it is known how far the recording goes.
const PACE: Duration = Duration::from_secs(30);
/// How much later a line may be than it should. If it is later, this program was stopped, or had no processor, and
/// does not know what was so meanwhile.
const MOST_LATE: Duration = Duration::from_secs(10);
/// No more often than this, however often all is read.
const LEAST_PACE: Duration = Duration::from_secs(1);

/// Records until it is ended. It never waits for a reader.
pub(crate) fn answer(
    common: &Common,
    args: &RecordArgs,
    path: &Path,
    how: (&TimeArgs, SourceArg),
    report: &mut Report,
) -> Output {
    if let Err(problem) = record(common, args, path, how) {
        report.host_problem(problem);
    }
    Output::Json(Out::default())
}

fn record(
    common: &Common,
    args: &RecordArgs,
    path: &Path,
    (time, source): (&TimeArgs, SourceArg),
) -> Result<(), Problem> {
    let failed = |error: &io::Error| Problem {
        text: format!("{}: {error}", path.display()),
        errno: error.raw_os_error().unwrap_or(EINVAL),
    };
    // A limit of files' sizes is an error then, and not the end.
    let mut set = SigSet::empty();
    set.add(Signal::SIGXFSZ);
    let _ = set.thread_block();
    let size = args.record_size.unwrap_or(SIZE);
    let mut log = Log::open(path, size).map_err(|error| failed(&error))?;
    // What is read now is what was so from now on, also if this program is stopped before it is written.
    let mut last = Instant::now();
    let (mut watch, ends) = time.begin(common, source, &[], Some(RECORDED))?;
    begin(watch.inventory(), path);
    log.begin(watch.inventory()).and_then(|()| log.sync()).map_err(|error| failed(&error))?;
    let pace = time.pace().unwrap_or(PACE).max(LEAST_PACE);
    let (mut fault, mut is_over) = (None, false);
    loop {
        let now = Instant::now();
        let is_line = is_over || now >= last + pace;
        let found = found(&mut watch, is_line)?;
        if is_line || !found.is_empty() {
            let late = last + pace + MOST_LATE;
            if Instant::now() >= late {
                log.begin_again();
                let seconds = last.elapsed().as_secs();
                let path = path.display();
                say([format!(
                    "{path}: nothing was recorded for {seconds} s: this program did not run, or the disk was slow"
                )]
                .into_iter());
            }
            last = now;
            let done = log.write(&found, watch.inventory());
            tell(path, &log, done, &mut fault);
        }
        if is_over || log.due().is_some_and(|due| due <= now) {
            let done = log.sync();
            tell(path, &log, done, &mut fault);
        }
        match (is_over, fault) {
            (true, Some(error)) => return Err(failed(&io::Error::other(error))),
            (true, None) => return Ok(()),
            (false, own) => fault = own,
        }
        if found.is_empty() {
            is_over = ends.sleep(&watch, log.due().map_or(last + pace, |due| due.min(last + pace)));
        }
    }
}

/// All that one reading found; for a line, which may say that all is as before, by a reading of everything.
fn found(watch: &mut Watch, is_line: bool) -> Result<Vec<Change>, Problem> {
    let mut found = Vec::new();
    if is_line {
        watch.reread()?;
    } else {
        found.extend(watch.wait(Some(Duration::ZERO))?);
    }
    while watch.has_found() {
        found.extend(watch.wait(Some(Duration::ZERO))?);
    }
    Ok(found)
}

/// Says on stderr what is recorded, what of the host could not be read, and if the recording cannot be read.
fn begin(inventory: &Inventory, path: &Path) {
    let told = format!("recording {} to {}", Looked::at(inventory), path.display());
    // What this program would refuse may be an odd name or a value that is too long.
    let text = Lines::new().begin(inventory, false).unwrap_or_default();
    let refusal = Snapshots::new(text.as_bytes()).next().and_then(Result::err);
    let refusal = refusal.map(|error| format!("--from will not read this: {error}"));
    let lacking = lacking(inventory, &Asked::default());
    say(lacking.into_iter().chain(refusal).chain([told]));
}

/// Says if nothing can be written any more, and if it can be again.
fn tell(path: &Path, log: &Log, done: io::Result<()>, fault: &mut Option<String>) {
    let path = path.display();
    let said = match done {
        Err(error) if fault.as_ref() == Some(&error.to_string()) => return,
        Err(error) => {
            *fault = Some(error.to_string());
            format!("{path}: {error}; nothing is recorded until that is over")
        }
        Ok(()) if log.is_broken() || fault.take().is_none() => return,
        Ok(()) => format!("{path}: recording again; the time between is missing"),
    };
    say([said].into_iter());
}

#[cfg(test)]
mod tests {
    use super::*;
    use uverbs::watch::Options;

    /// Before a line everything is read, though it may be that it is never read again.
    #[test]
    fn a_line_is_one_of_a_reading() {
        let (folder, host) = crate::testing::host();
        let mut options = Options::default();
        options.reread = None;
        let mut watch = host.watch(options).unwrap();
        for folder in ["infiniband/rxe0", "infiniband_verbs/uverbs0"]
            .map(|own| folder.path().join("class").join(own))
        {
            std::fs::remove_dir_all(folder).unwrap();
        }
        // The kernel's class has it always.
        let version = folder.path().join("class/infiniband_verbs/abi_version");
        std::fs::write(version, "6\n").unwrap();
        assert_eq!(found(&mut watch, false), Ok(Vec::new()));
        assert_eq!(found(&mut watch, true).unwrap().len(), 1);
    }

    #[test]
    fn sizes() {
        for (text, expected) in [
            ("4096", Some(4096)),
            ("4K", Some(4096)),
            ("16M", Some(16 << 20)),
            ("480m", Some(480 << 20)),
            ("481M", None),
            ("4095", None),
            ("M", None),
            ("-1M", None),
            ("99999999999999M", None),
            ("1.5M", None),
            ("1é", None),
        ] {
            assert_eq!(size(text).ok(), expected, "{text}");
        }
    }
}
