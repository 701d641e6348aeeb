//! The files that `--from` names.
//!
//! A file may come from anyone: its size is bounded, everything in it is checked, and what is refused is
//! named by its place.

use std::fmt::Display;
use std::fs::{self, File};
use std::io::{self, BufReader, Read as _};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

use uverbs::inventory::{Inventory, Problem, Snapshots};

use crate::report::EINVAL;

/// The most that is read of all files together.
const ROOM: u64 = 1 << 30;

/// The errno of what is not there.
const ENOENT: i32 = 2;
/// The errno of a file that is too large.
const EFBIG: i32 = 27;

/// Reads the documents of files, one after the other. Each, or why it could not be read, is shown with its
/// file and the number of its first line there.
pub(crate) fn each<E>(
    from: &[PathBuf],
    mut see: impl FnMut(&Path, u64, Result<Inventory, Problem>) -> Result<(), E>,
) -> Result<(), E> {
    // One byte more than may be, to know whether there is more.
    let mut room = ROOM + 1;
    for path in from {
        let paths = match files_of(path) {
            Ok(paths) => paths,
            Err(problem) => {
                see(path, 1, Err(problem))?;
                continue;
            }
        };
        for path in &paths {
            room = each_of(path, room, &mut see)?;
        }
    }
    Ok(())
}

/// The same of a file, of which there is so much room. Gives the room that is left.
fn each_of<E>(
    path: &Path,
    room: u64,
    see: &mut impl FnMut(&Path, u64, Result<Inventory, Problem>) -> Result<(), E>,
) -> Result<u64, E> {
    let mut documents = match open(path) {
        Ok(file) => Snapshots::new(file.take(room)),
        Err(error) => {
            see(path, 1, Err(unread(path, &error)))?;
            return Ok(room);
        }
    };
    while let Some(read) = documents.next() {
        let read = read.map_err(|error| match documents.get_ref().limit() {
            0 => {
                let what = format!("all files together are longer than {} GiB", ROOM >> 30);
                problem(path, &what, EFBIG)
            }
            _ => problem(path, &error, error.errno()),
        });
        see(path, documents.line(), read)?;
    }
    Ok(documents.get_ref().limit())
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
