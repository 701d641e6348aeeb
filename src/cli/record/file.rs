//! The file of a recording. Its lines are whole whatever happens to the program; its size is bounded.
//!
//! A full file becomes FILE.1, and a new FILE begins with all that is known. FILE is always there and always locked:
//! the new one is written as FILE.new, and takes the name when it is complete.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::libc::O_NONBLOCK;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use uverbs::inventory::Inventory;
use uverbs::watch::{Change, Lines, Recording};

use crate::files::path_before;
use crate::text::plain_json;

/// How long what was written may wait until it is on the disk.
const SYNC: Duration = Duration::from_secs(1);

/// The file.
#[derive(Debug)]
pub(super) struct Log {
    path: PathBuf,
    file: File,
    size: u64,
    lines: Lines,
    /// How long the file is: whole lines.
    length: u64,
    /// Whether something could not be written, or was not seen, so that all must be written again.
    is_broken: bool,
    synced: Instant,
    is_synced: bool,
}

impl Log {
    /// Opens the file, or makes it. What is no recording is not touched.
    pub(super) fn open(path: &Path, size: u64) -> io::Result<Self> {
        let path = match fs::metadata(path) {
            // What the name means now, wherever links lead to later.
            Ok(own) if own.is_file() => fs::canonicalize(path)?,
            Ok(_) => return Err(io::Error::other("it is no regular file, and a recording is one")),
            Err(error) if error.kind() == ErrorKind::NotFound => std::path::absolute(path)?,
            Err(error) => return Err(error),
        };
        let file = lock(&path)?;
        // A link that led nowhere leads to a file now.
        let path = fs::canonicalize(path)?;
        let length = whole(&file)?;
        let log = Self {
            path,
            file,
            size,
            lines: Lines::new(),
            length,
            is_broken: false,
            synced: Instant::now(),
            is_synced: true,
        };
        log.file.set_len(length)?;
        // Whether a file can be made beside it is not found out only when this one is full.
        drop(log.create()?);
        fs::remove_file(log.path_new())?;
        // So that a new file is still there after a power cut.
        sync_folder(&log.path)?;
        Ok(log)
    }

    /// Begins to record: nothing is known of the time before.
    pub(super) fn begin(&mut self, inventory: &Inventory) -> io::Result<()> {
        let line = self.lines.begin(inventory, false)?;
        let is_full = self.length > 0 && self.length.saturating_add(size(&line)) > self.size;
        if is_full { self.turn_over(&line) } else { self.append(&line) }
    }

    /// Nothing is known of the time since the last line: what is written next is all that is known.
    pub(super) fn begin_again(&mut self) {
        self.is_broken = true;
    }

    /// Writes what a reading found, or that nothing is new, and turns over to a new file if this one is full.
    /// What was not written before is then in the inventory.
    pub(super) fn write(&mut self, changes: &[Change], inventory: &Inventory) -> io::Result<()> {
        let done = self.try_write(changes, inventory);
        self.is_broken = done.is_err();
        done
    }

    fn try_write(&mut self, changes: &[Change], inventory: &Inventory) -> io::Result<()> {
        if self.is_broken {
            return self.begin(inventory);
        }
        if changes.is_empty() {
            let line = self.lines.unchanged()?;
            self.append(&line)?;
        }
        // What was heard and what was read are not found together.
        for changes in changes.chunk_by(|one, other| one.origins == other.origins) {
            if let Some(line) = self.lines.changes(changes, inventory)? {
                self.append(&line)?;
            }
        }
        if self.length >= self.size {
            let line = self.lines.begin(inventory, true)?;
            self.turn_over(&line)?;
        }
        Ok(())
    }

    /// Whether something could not be written.
    pub(super) fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// When what was written should be on the disk.
    pub(super) fn due(&self) -> Option<Instant> {
        (!self.is_synced).then(|| self.synced + SYNC)
    }

    /// Brings what was written to the disk.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        self.synced = Instant::now();
        if !self.is_synced {
            self.file.sync_data().inspect_err(|_| self.is_broken = true)?;
        }
        self.is_synced = true;
        Ok(())
    }

    /// Appends a line, or nothing.
    fn append(&mut self, line: &str) -> io::Result<()> {
        if self.is_broken {
            self.file.set_len(self.length)?;
        }
        match put(&mut self.file, line) {
            Ok(length) => {
                self.length += length;
                self.is_synced = false;
                Ok(())
            }
            Err(error) => {
                self.file.set_len(self.length)?;
                Err(error)
            }
        }
    }

    /// Begins a new file with a line.
    fn turn_over(&mut self, line: &str) -> io::Result<()> {
        let (new, before) = (self.path_new(), path_before(&self.path));
        let mut file = self.create()?;
        let mut written = put(&mut file, line);
        if written.as_ref().is_err_and(|error| error.kind() == ErrorKind::StorageFull) {
            // It has to go in any case.
            remove(&before)?;
            file.set_len(0)?;
            written = put(&mut file, line);
        }
        let written = written.and_then(|length| file.sync_data().map(|()| length));
        let length = written.inspect_err(|_| drop(fs::remove_file(&new)))?;
        self.file.sync_data()?;
        remove(&before)?;
        // Where a file cannot have two names, there is none of this name for a moment.
        if fs::hard_link(&self.path, &before).is_err() {
            // It may be gone already, if the next step failed before.
            let moved = fs::rename(&self.path, &before);
            moved.or_else(
                |error| if error.kind() == ErrorKind::NotFound { Ok(()) } else { Err(error) },
            )?;
        }
        fs::rename(&new, &self.path)?;
        (self.file, self.length, self.is_synced) = (file, length, true);
        sync_folder(&self.path)
    }

    /// Makes the next file, which nobody else has.
    fn create(&self) -> io::Result<File> {
        let new = self.path_new();
        remove(&new)?;
        let file = options().create_new(true).open(&new)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        Ok(file)
    }

    fn path_new(&self) -> PathBuf {
        let mut new = OsString::from(&self.path);
        new.push(".new");
        new.into()
    }
}

/// Writes to the disk which files the folder of this one has.
fn sync_folder(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    // What came into the place of the file meanwhile may be a pipe, which nobody reads.
    options.read(true).append(true).custom_flags(O_NONBLOCK);
    options
}

/// Opens a file, or makes it, and locks it.
fn lock(path: &Path) -> io::Result<File> {
    loop {
        let file = options().create(true).open(path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                return Err(io::Error::other("another recorder writes to it"));
            }
            Err(error) => return Err(error.into()),
        }
        // Who had the lock may have begun another file.
        let (own, now) = (file.metadata()?, fs::metadata(path)?);
        if (own.dev(), own.ino()) == (now.dev(), now.ino()) {
            return Ok(file);
        }
    }
}

/// The length of a recording's whole lines.
fn whole(mut file: &File) -> io::Result<u64> {
    const BLOCK: u64 = 64 << 10;
    let mut text = Vec::new();
    let mut end = file.metadata()?.len();
    file.take(BLOCK).read_to_end(&mut text)?;
    if !Recording::<io::Empty>::may_begin(&text) {
        return Err(io::Error::other(
            "it does not begin as a recorder writes it, and is left as it is",
        ));
    }
    while end > 0 {
        let start = end.saturating_sub(BLOCK);
        file.seek(SeekFrom::Start(start))?;
        text.clear();
        file.take(end - start).read_to_end(&mut text)?;
        if let Some(last) = text.iter().rposition(|byte| *byte == b'\n') {
            return Ok(start + last as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

/// How much room a line takes.
fn size(line: &str) -> u64 {
    line.len() as u64 + 1
}

/// Writes a line, and says how long it is.
fn put(file: &mut File, line: &str) -> io::Result<u64> {
    let line = plain_json(line).into_owned() + "\n";
    file.write_all(line.as_bytes())?;
    Ok(line.len() as u64)
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
