//! The files that `--from` names: snapshots and recordings.
//!
//! A file may come from anyone: its size is bounded, everything in it is checked, and what is refused is
//! named by its place.

use std::fmt::Display;
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use uverbs::inventory::{Inventory, Problem};
use uverbs::watch::{Entry, Recording};

use crate::args::FromArg;
use crate::at::{At, Search};
use crate::report::EINVAL;

/// The most that is read of all files together.
pub(crate) const ROOM: u64 = 1 << 30;

/// The errno of what is not there.
const ENOENT: i32 = 2;
/// The errno of a file that is too large.
const EFBIG: i32 = 27;
/// The errno of what is not known.
const ENODATA: i32 = 61;

/// What a document has.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) inventory: Inventory,
    /// Of which moment of a recording it is.
    pub(crate) time: Option<SystemTime>,
    /// What else of the recording could not be read, where another answer may be.
    pub(crate) fault: Option<Problem>,
}

type Read = Result<Found, Problem>;

/// Reads the documents of files, one after the other. Each, or why it could not be read, is shown with its
/// file and the number of its first line there. Of a recording it is what was known at one moment.
pub(crate) fn each<E>(
    from: &FromArg,
    mut see: impl FnMut(&Path, u64, Read) -> Result<(), E>,
) -> Result<(), E> {
    // One byte more than may be, to know whether there is more.
    let mut room = ROOM + 1;
    for path in &from.from {
        let paths = match files_of(path) {
            Ok(paths) => paths,
            Err(problem) => {
                see(path, 1, Err(problem))?;
                continue;
            }
        };
        for path in &paths {
            let mut file = match Input::open(path, room) {
                Ok(file) => file,
                Err(problem) => {
                    see(path, 1, Err(problem))?;
                    continue;
                }
            };
            match from.at {
                None => each_snapshot(path, &mut file, &mut see)?,
                Some(at) => see(path, 1, find(path, &mut file, at))?,
            }
            room = file.room();
        }
    }
    Ok(())
}

/// Shows the snapshots of a file.
fn each_snapshot<E>(
    path: &Path,
    file: &mut Input,
    see: &mut impl FnMut(&Path, u64, Read) -> Result<(), E>,
) -> Result<(), E> {
    while let Some(read) = file.next() {
        let line = file.recording.line();
        match read {
            Ok(Entry::Snapshot(own)) => {
                see(path, line, Ok(Found { inventory: *own, time: None, fault: None }))?;
            }
            Err(problem) => see(path, line, Err(problem))?,
            // That of one moment is no answer to what is now.
            Ok(_) => {
                let what = "this is a recording: --at says of which moment, and `--at end` is the last one";
                return see(path, line, Err(problem(path, &what, EINVAL)));
            }
        }
    }
    Ok(())
}

/// What was known at a moment.
fn find(path: &Path, file: &mut Input, at: At) -> Read {
    let mut search = Search::new(at);
    let mut fault = None;
    while let Some(read) = file.next() {
        match read {
            Ok(Entry::Moment(mut moment)) => {
                let own = &mut file.recording;
                if own.is_gap(&moment) {
                    search.see_last(own.inventory());
                    search.see(&moment, None);
                } else {
                    search.see(&moment, own.inventory());
                }
                if let Err(error) = own.apply(&mut moment) {
                    fault.get_or_insert(problem(path, &error, error.errno()));
                }
            }
            Ok(_) => {
                let what = "this is a snapshot, of one moment only; --at is for recordings of `watch --record`";
                return Err(problem(path, &what, EINVAL));
            }
            Err(problem) => drop(fault.get_or_insert(problem)),
        }
    }
    let known = file.recording.inventory();
    search.see_last(known);
    match search.end(known) {
        Ok((inventory, time)) => Ok(Found { inventory, time: Some(time), fault }),
        // What could not be read may be the reason.
        Err(what) => Err(fault.unwrap_or_else(|| problem(path, &what, ENODATA))),
    }
}

type Reader = io::Take<BufReader<File>>;

/// A file, or the two files of a recording.
pub(crate) struct Input<'p> {
    path: &'p Path,
    pub(crate) recording: Recording<Reader>,
    /// The file that goes on where the first one ends.
    second: Option<BufReader<File>>,
    /// Why the file before could not be read. It is shown first.
    fault: Option<Problem>,
}

impl<'p> Input<'p> {
    /// Opens a file, of which so much is read at most.
    pub(crate) fn open(path: &'p Path, room: u64) -> Result<Self, Problem> {
        let mut own = open(path).map_err(|error| unread(path, &error))?;
        let (first, second, fault) = match part_before(path, &mut own) {
            Ok(Some(before)) => (before, Some(own), None),
            Ok(None) => (own, None, None),
            Err(error) => (own, None, Some(unread(&path_before(path), &error))),
        };
        Ok(Self { path, recording: Recording::new(first.take(room)), second, fault })
    }

    /// How much may still be read.
    pub(crate) fn room(&self) -> u64 {
        self.recording.get_ref().limit()
    }

    /// Reads the next document.
    pub(crate) fn next(&mut self) -> Option<Result<Entry, Problem>> {
        if let Some(fault) = self.fault.take() {
            return Some(Err(fault));
        }
        loop {
            match (self.recording.next(), self.second.take()) {
                (None, None) => return None,
                (None, Some(second)) => self.recording.go_on(second.take(self.room())),
                (Some(read), second) => {
                    self.second = second;
                    return Some(read.map_err(|error| match self.room() {
                        0 => {
                            let what =
                                format!("all files together are longer than {} GiB", ROOM >> 30);
                            problem(self.path, &what, EFBIG)
                        }
                        _ => problem(self.path, &error, error.errno()),
                    }));
                }
            }
        }
    }
}

/// The file that was recorded to before this one was begun.
pub(crate) fn path_before(path: &Path) -> PathBuf {
    let mut before = path.as_os_str().to_owned();
    before.push(".1");
    before.into()
}

/// The same, open, if it is there. It may have been this one until now.
fn part_before(path: &Path, own: &mut BufReader<File>) -> io::Result<Option<BufReader<File>>> {
    let is_begun = Recording::<Reader>::may_begin;
    let Some(file) = own.get_ref().metadata().ok().filter(fs::Metadata::is_file) else {
        return Ok(None);
    };
    // A fault of this file is found where it is read.
    if !own.fill_buf().is_ok_and(is_begun) {
        return Ok(None);
    }
    let path = path_before(path);
    let other = match fs::metadata(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    if !other.is_file() || (file.dev(), file.ino()) == (other.dev(), other.ino()) {
        return Ok(None);
    }
    let mut before = open(&path)?;
    Ok(is_begun(before.fill_buf()?).then_some(before))
}

fn problem(path: &Path, error: &dyn Display, errno: i32) -> Problem {
    Problem { text: format!("{}: {error}", path.display()), errno }
}

fn unread(path: &Path, error: &io::Error) -> Problem {
    problem(path, error, error.raw_os_error().unwrap_or(EINVAL))
}

/// The files that a path means: of a folder those whose names say that they have snapshots, in order.
fn files_of(path: &Path) -> Result<Vec<PathBuf>, Problem> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(path).map_err(|error| unread(path, &error))? {
        let file = entry.map_err(|error| unread(path, &error))?.path();
        if file.extension().is_some_and(|end| end == "json" || end == "jsonl") {
            files.push(file);
        }
    }
    files.sort();
    if files.is_empty() {
        return Err(problem(path, &"the folder has no file *.json or *.jsonl", ENOENT));
    }
    Ok(files)
}

/// Opens a file of snapshots; `-` is standard input.
fn open(path: &Path) -> io::Result<BufReader<File>> {
    /// Several documents of the usual size.
    const BUFFER: usize = 64 << 10;
    let file = if path.as_os_str() == "-" {
        io::stdin().as_fd().try_clone_to_owned().map(File::from)
    } else {
        File::open(path)
    };
    Ok(BufReader::with_capacity(BUFFER, file?))
}
