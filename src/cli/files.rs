//! The files that `--from` names.
//!
//! A file may come from anyone: its size is bounded, everything in it is checked, and what is refused is
//! named by its place.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufReader, Read as _};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

use uverbs::inventory::{Inventory, Problem, Snapshots};

use crate::report::EINVAL;

/// The most that is read of all files together.
const ROOM: u64 = 1 << 30;

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
        let problem = |error: &dyn Display, errno: i32| {
            let text = format!("{}: {error}", path.display());
            Problem { text, errno }
        };
        let mut documents = match open(path) {
            Ok(file) => Snapshots::new(file.take(room)),
            Err(error) => {
                let errno = error.raw_os_error().unwrap_or(EINVAL);
                see(path, 1, Err(problem(&error, errno)))?;
                continue;
            }
        };
        while let Some(read) = documents.next() {
            let read = read.map_err(|error| match documents.get_ref().limit() {
                0 => {
                    let what = format!("all files together are longer than {} GiB", ROOM >> 30);
                    problem(&what, EFBIG)
                }
                _ => problem(&error, error.errno()),
            });
            see(path, documents.line(), read)?;
        }
        room = documents.get_ref().limit();
    }
    Ok(())
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
