//! The files that `--from` names: snapshots and recordings.
//!
//! A file may come from anyone: its size is bounded, everything in it is checked, and what is refused is
//! named by its place.

use std::fmt::Display;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Seek as _, SeekFrom};
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use nix::libc::O_NONBLOCK;
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
/// The errno of a name that no file can have.
const ENAMETOOLONG: i32 = 36;
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
    let mut room = ROOM;
    for named in &from.from {
        let paths = match files_of(named) {
            Ok(paths) => paths,
            Err(problem) => {
                see(named, 1, Err(problem))?;
                continue;
            }
        };
        for path in &paths {
            let opened = if path == named {
                Input::open(path, room)
            } else {
                let file = open_found(path).map_err(|error| unread(path, &error));
                file.map(|file| Input::new(path, file, room))
            };
            let mut file = match opened {
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
    let (mut is_recording, mut is_first) = (false, true);
    while let Some(read) = file.next() {
        let line = file.recording.line();
        let was_recording =
            std::mem::replace(&mut is_recording, matches!(read, Ok(Entry::Moment(_))));
        match read {
            Ok(Entry::Snapshot(own)) => {
                see(path, line, Ok(Found { inventory: *own, time: None, fault: None }))?;
            }
            Err(problem) => see(path, line, Err(problem))?,
            // That of one moment is no answer to what is now.
            Ok(_) if !was_recording => {
                let what = "this is a recording: --at says of which moment, and `--at end` is the last one";
                see(path, line, Err(problem(path, &what, EINVAL)))?;
                // It may be long, and nothing else is in what a recorder wrote.
                if is_first {
                    return Ok(());
                }
            }
            Ok(_) => {}
        }
        is_first = false;
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
                    fault.get_or_insert(file.problem(&error, error.errno()));
                }
            }
            Ok(_) => {
                let what = "this is a snapshot, of one moment only; --at is for recordings of `watch --record`";
                return Err(file.problem(&what, EINVAL));
            }
            Err(problem) => {
                search.see_last(file.recording.inventory());
                fault.get_or_insert(problem);
            }
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

/// A file of which so much may be read. What comes then is an error, so that it is not taken for the end of the file.
pub(crate) struct Bounded {
    file: BufReader<File>,
    room: u64,
}

impl BufRead for Bounded {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let own = self.file.fill_buf()?;
        let most = usize::try_from(self.room).unwrap_or(usize::MAX);
        match own.get(..most) {
            Some([]) if !own.is_empty() => Err(io::Error::from_raw_os_error(EFBIG)),
            first => Ok(first.unwrap_or(own)),
        }
    }

    fn consume(&mut self, amount: usize) {
        self.file.consume(amount);
        self.room = self.room.saturating_sub(amount as u64);
    }
}

impl io::Read for Bounded {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(to)?;
        self.consume(read);
        Ok(read)
    }
}

/// A file, or the two files of a recording.
pub(crate) struct Input {
    /// That of the file that is read now.
    path: PathBuf,
    pub(crate) recording: Recording<Bounded>,
    /// The file that goes on where the first one ends.
    second: Option<(PathBuf, BufReader<File>)>,
    /// Why the file before could not be read. It is shown first.
    fault: Option<Problem>,
}

impl Input {
    /// Opens a file, of which so much is read at most.
    pub(crate) fn open(path: &Path, room: u64) -> Result<Self, Problem> {
        let file = open(path).map_err(|error| unread(path, &error))?;
        Ok(Self::new(path, file, room))
    }

    fn new(path: &Path, mut own: BufReader<File>, room: u64) -> Self {
        let (path, before) = (path.to_owned(), path_of_part(path));
        let part = if path.as_os_str() == "-" { Ok(None) } else { part_before(&before, &mut own) };
        let (path, file, second, fault) = match part {
            Ok(Some(file)) => (before, file, Some((path, own)), None),
            Ok(None) => (path, own, None, None),
            Err(error) => (path, own, None, Some(unread(&before, &error))),
        };
        Self { path, recording: Recording::new(Bounded { file, room }), second, fault }
    }

    /// How much may still be read.
    pub(crate) fn room(&self) -> u64 {
        self.recording.get_ref().room
    }

    /// Reads the next document.
    pub(crate) fn next(&mut self) -> Option<Result<Entry, Problem>> {
        if let Some(fault) = self.fault.take() {
            return Some(Err(fault));
        }
        loop {
            if let Some(read) = self.recording.next() {
                return Some(read.map_err(|error| match (error.errno(), self.room()) {
                    (EFBIG, 0) => {
                        let what = format!("all files together are longer than {} GiB", ROOM >> 30);
                        self.problem(&what, EFBIG)
                    }
                    (errno, _) => self.problem(&error, errno),
                }));
            }
            let (path, file) = self.second.take()?;
            let room = self.room();
            self.path = path;
            self.recording.go_on(Bounded { file, room });
        }
    }

    /// What is wrong in the file that is read now.
    pub(crate) fn problem(&self, error: &dyn Display, errno: i32) -> Problem {
        problem(&self.path, error, errno)
    }
}

/// The file that was recorded to before this one was begun.
pub(crate) fn path_before(path: &Path) -> PathBuf {
    let mut before = path.as_os_str().to_owned();
    before.push(".1");
    before.into()
}

/// Whether something is there, also if that is a link that leads nowhere.
fn is_there(path: &Path) -> bool {
    let error = fs::symlink_metadata(path).err();
    error.is_none_or(|own| !matches!(own.raw_os_error(), Some(ENOENT | ENAMETOOLONG)))
}

/// The same where it is looked for: beside the file itself, where a link leads to, or else beside the link.
fn path_of_part(path: &Path) -> PathBuf {
    let of_file = fs::canonicalize(path).ok().filter(|_| !is_open_already(path));
    let of_file = of_file.map(|path| path_before(&path));
    of_file.filter(|path| is_there(path)).unwrap_or_else(|| path_before(path))
}

/// Whether a path leads to what is open already, as /dev/stdin does: nobody named that file.
fn is_open_already(path: &Path) -> bool {
    /// As many as the kernel follows.
    const MOST_LINKS: usize = 40;
    let Ok(mut path) = std::path::absolute(path) else { return false };
    for _ in 0..MOST_LINKS {
        let Some(folder) = path.parent() else { return false };
        if fs::canonicalize(folder).is_ok_and(|own| own.starts_with("/proc")) {
            return true;
        }
        let Ok(target) = fs::read_link(&path) else { return false };
        path = folder.join(target);
    }
    false
}

/// The same, open, if it is there.
fn part_before(path: &Path, own: &mut BufReader<File>) -> io::Result<Option<BufReader<File>>> {
    let Some(file) = own.get_ref().metadata().ok().filter(fs::Metadata::is_file) else {
        return Ok(None);
    };
    if !is_there(path) {
        return Ok(None);
    }
    // If none of it can be read, that is found where it is read.
    if !is_recording(own).unwrap_or(false) {
        return Ok(None);
    }
    open_part(path, &file)
}

/// The same beside a file, which it may have been until now.
fn open_part(path: &Path, file: &fs::Metadata) -> io::Result<Option<BufReader<File>>> {
    let other = fs::metadata(path)?;
    if (file.dev(), file.ino()) == (other.dev(), other.ino()) {
        return Ok(None);
    }
    // Lines may be in it that are read without its beginning.
    let mut before = open_found(path)?;
    if !is_recording(&mut before)? {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it does not begin as a recording"));
    }
    Ok(Some(before))
}

/// Whether a file begins as a recorder writes it, or its first document that can be read is a line of a recording, as where
/// another program wrote it anew.
fn is_recording(file: &mut BufReader<File>) -> io::Result<bool> {
    if Recording::<Bounded>::may_begin(file.fill_buf()?) {
        return Ok(true);
    }
    let begin = file.stream_position()?;
    let mut own = Recording::new(io::Read::take(&mut *file, ROOM));
    let first = std::iter::from_fn(|| own.next()).find_map(Result::ok);
    file.seek(SeekFrom::Start(begin))?;
    Ok(matches!(first, Some(Entry::Moment(_))))
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
        let is_hidden = file.file_name().is_some_and(|name| name.as_bytes().starts_with(b"."));
        let has_end = file.extension().is_some_and(|end| end == "json" || end == "jsonl");
        if has_end && !is_hidden {
            files.push(file);
        }
    }
    files.sort();
    if files.is_empty() {
        return Err(problem(
            path,
            &"the folder has no file *.json or *.jsonl (of those that do not begin with a dot)",
            ENOENT,
        ));
    }
    Ok(files)
}

/// The size of several documents, as they usually are.
const BUFFER: usize = 64 << 10;

/// Opens a file of snapshots; `-` is standard input.
fn open(path: &Path) -> io::Result<BufReader<File>> {
    let file = if path.as_os_str() == "-" {
        io::stdin().as_fd().try_clone_to_owned().map(File::from)
    } else {
        File::open(path)
    };
    Ok(BufReader::with_capacity(BUFFER, file?))
}

/// Opens a file that nobody named. It is not waited for: nobody may ever write to it.
fn open_found(path: &Path) -> io::Result<BufReader<File>> {
    let file = OpenOptions::new().read(true).custom_flags(O_NONBLOCK).open(path);
    let file = match file {
        // Somebody has a lease on it, and lets go.
        Err(error) if error.kind() == io::ErrorKind::WouldBlock && path.is_file() => {
            File::open(path)
        }
        other => other,
    }?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    Ok(BufReader::with_capacity(BUFFER, file))
}

#[cfg(test)]
mod tests {
    use super::*;
    use uverbs::watch::Lines;

    /// Where reading has to stop nothing ends: neither a recording, nor the file before, nor a file of snapshots.
    #[test]
    fn what_is_too_long_has_no_end() {
        let mut lines = Lines::new();
        let begun = lines.begin(&Inventory::default(), false).unwrap() + "\n";
        let text = (1..9).fold(begun.clone(), |text, _| text + &lines.unchanged().unwrap() + "\n");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("own.jsonl");
        let too_long = "are longer than 1 GiB";
        let read = |path: &Path, room: usize| {
            find(path, &mut Input::open(path, room as u64).unwrap(), At::End)
        };
        fs::write(&path, &text).unwrap();
        assert!(read(&path, text.len()).unwrap().fault.is_none());
        for room in begun.len()..text.len() {
            let problem = read(&path, room).unwrap_err();
            assert_eq!((problem.errno, problem.text.contains(too_long)), (EFBIG, true), "{room}");
        }
        // This one is the file before now.
        fs::rename(&path, path_before(&path)).unwrap();
        fs::write(&path, &begun).unwrap();
        assert!(read(&path, text.len() + begun.len()).unwrap().fault.is_none());
        for room in [text.len() - 1, text.len(), text.len() + 1] {
            assert!(read(&path, room).unwrap_err().text.contains(too_long), "{room}");
        }
        // It is beside the file, and not beside a link to it.
        let link = folder.path().join("folder/link.jsonl");
        fs::create_dir(link.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let of_link = Input::open(&link, text.len() as u64).unwrap();
        // Nor is it of what is open already.
        let opened = File::open(&path).unwrap();
        let number = std::os::fd::AsRawFd::as_raw_fd(&opened).to_string();
        for folder in ["/dev/fd", "/proc/self/fd"] {
            assert!(is_open_already(&Path::new(folder).join(&number)), "{folder}");
        }
        assert!(!is_open_already(&link));
        assert!(
            of_link.second.is_some() && of_link.path == path_before(&path.canonicalize().unwrap())
        );

        let snapshot = serde_json::to_string(&Inventory::default()).unwrap() + "\n";
        fs::write(&path, snapshot.repeat(3)).unwrap();
        let mut file = Input::open(&path, 2 * snapshot.len() as u64).unwrap();
        let read: Vec<bool> = std::iter::from_fn(|| Some(file.next()?.is_ok())).collect();
        assert_eq!(read, [true, true, false]);
    }
}
