//! Writing a file that others read at any time: they see the old one or the new one, each whole.
//!
//! Until it is whole it has a name that begins with a dot and has another end. None of those who read such a folder
//! reads that: `node_exporter` and engines of containers go by the end, node-feature-discovery by the dot.
//!
//! That name is of one run only, so runs at the same time do not meet: the one that ends last has the file. A number of
//! a process would not do, as each container counts its own. Who writes has its file locked. So one that is not locked
//! is of a run that was killed, and the next run takes it away. Where files cannot be locked, it stays. Where a lock
//! holds on one machine only, a run may fail because one on another took its file away.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use nix::libc::{O_NOFOLLOW, O_NONBLOCK};
use rustix::fs::{FlockOperation, flock};
use rustix::io::retry_on_intr;

/// Puts a file with this text in the place of `path`.
pub(crate) fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    only_a_file(path)?;
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    remove_left(path, name);
    let (file, beside) = create(path, name)?;
    let written = write(&file, text).and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        // Nobody else has this name.
        let _ = fs::remove_file(&beside);
    }
    written
}

/// Takes a file away. Whether there was one.
pub(crate) fn remove(path: &Path) -> io::Result<bool> {
    only_a_file(path)?;
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// A device or a folder is not taken away, nor a link, which may be `/dev/stdout`: what it leads to would stay as it is.
fn only_a_file(path: &Path) -> io::Result<()> {
    let why = match fs::symlink_metadata(path) {
        _ if path == Path::new("-") => "without --output it goes to standard output",
        Ok(known) if known.is_symlink() => "it is a link: name the file that it leads to",
        Ok(known) if !known.is_file() => "it is no regular file",
        _ => return Ok(()),
    };
    Err(io::Error::new(io::ErrorKind::InvalidInput, why))
}

/// Hexadecimal digits at the end of the name of a file that is not whole.
const DIGITS: usize = 16;

/// A name for the file of this name until it is whole.
fn name_beside(name: &OsStr) -> OsString {
    let mut beside = OsString::from(".");
    beside.push(name);
    // The keys of a `RandomState` are random.
    beside.push(format!(".{:0DIGITS$x}", RandomState::new().hash_one(())));
    beside
}

/// Whether it is such a name.
fn is_beside(beside: &OsStr, name: &OsStr) -> bool {
    let rest =
        beside.as_bytes().strip_prefix(b".").and_then(|own| own.strip_prefix(name.as_bytes()));
    let digits = rest.and_then(|own| own.strip_prefix(b"."));
    let is_digit = |own: &u8| matches!(own, b'0'..=b'9' | b'a'..=b'f');
    digits.is_some_and(|own| own.len() == DIGITS && own.iter().all(is_digit))
}

/// Makes a file beside `path`, and locks it if it can be locked.
fn create(path: &Path, name: &OsStr) -> io::Result<(File, PathBuf)> {
    loop {
        let beside = path.with_file_name(name_beside(name));
        let made = OpenOptions::new().write(true).create_new(true).mode(0o644).open(&beside);
        let file = match made {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            made => made?,
        };
        let _ = retry_on_intr(|| flock(&file, FlockOperation::LockExclusive));
        // Before it was locked, another run may have taken it away.
        let place = |own: &fs::Metadata| (own.dev(), own.ino());
        match fs::symlink_metadata(&beside) {
            Ok(found) if place(&found) == place(&file.metadata()?) => return Ok((file, beside)),
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
}

fn write(mut file: &File, text: &[u8]) -> io::Result<()> {
    file.write_all(text)?;
    // A disk that is full may say so only now.
    file.sync_all()
}

/// Takes away what runs that were killed left beside `path`. What cannot be taken away stays.
fn remove_left(path: &Path, name: &OsStr) {
    let folder = path.parent().filter(|own| !own.as_os_str().is_empty());
    let entries = fs::read_dir(folder.unwrap_or(Path::new("."))).into_iter().flatten().flatten();
    for left in entries.filter(|own| is_beside(&own.file_name(), name)) {
        let file =
            OpenOptions::new().read(true).custom_flags(O_NOFOLLOW | O_NONBLOCK).open(left.path());
        let is_left = |own: &File| flock(own, FlockOperation::NonBlockingLockExclusive).is_ok();
        // Locked until it is gone, so that the run that made it just now notices.
        if let Some(_locked) = file.ok().filter(is_left) {
            let _ = fs::remove_file(left.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<OsString> {
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect()
    }

    #[test]
    fn a_file_is_replaced_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.prom");
        for text in ["one", "two"] {
            replace(&path, text.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
            assert_eq!(names(folder.path()), ["x.prom"]);
        }
    }

    /// Runs in two containers have the same number of their process, as these have.
    #[test]
    fn runs_at_the_same_time_do_not_meet() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.prom");
        let texts = ["1".repeat(100_000), "2".repeat(70_000)];
        replace(&path, texts[0].as_bytes()).unwrap();
        std::thread::scope(|scope| {
            for text in &texts {
                scope.spawn(|| (0..50).for_each(|_| replace(&path, text.as_bytes()).unwrap()));
            }
            for _ in 0..50 {
                assert!(texts.contains(&fs::read_to_string(&path).unwrap()));
            }
        });
        assert!(texts.contains(&fs::read_to_string(&path).unwrap()));
        assert_eq!(names(folder.path()), ["x.prom"]);
    }

    #[test]
    fn what_killed_runs_left_is_taken_away_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.prom");
        let name = path.file_name().unwrap();
        let (going_on, beside) = create(&path, name).unwrap();
        for left in [".x.prom.0123456789abcdef", ".x.prom.0000000000000000"] {
            fs::write(folder.path().join(left), "left").unwrap();
        }
        let mut others =
            [".x.prom", ".x.prom.1", ".x.0123456789abcdef", "x.prom.0123456789abcdef"].to_vec();
        others.extend([".x.prom.b.0123456789abcdef", ".x.prom.0123456789abcdeg"]);
        for other in &others {
            fs::write(folder.path().join(other), "other").unwrap();
        }
        replace(&path, b"one").unwrap();
        let mut left = names(folder.path());
        left.sort();
        others.extend(["x.prom", beside.file_name().unwrap().to_str().unwrap()]);
        others.sort_unstable();
        assert_eq!(left, others);
        write(&going_on, b"two").unwrap();
        fs::rename(beside, &path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
    }

    /// One that has no name any more before it is locked is made again.
    #[test]
    fn a_file_that_is_made_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.prom");
        let name = path.file_name().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let (_locked, beside) = create(&path, name).unwrap();
                        assert!(is_beside(beside.file_name().unwrap(), name));
                        remove_left(&path, name);
                        fs::remove_file(beside).unwrap();
                    }
                });
            }
        });
        assert_eq!(names(folder.path()), [""; 0]);
    }

    #[test]
    fn what_is_no_file_stays() {
        let folder = tempfile::tempdir().unwrap();
        assert!(replace(folder.path(), b"x").is_err() && folder.path().is_dir());
        assert!(replace(Path::new("/dev/null"), b"x").is_err());
        assert!(remove(folder.path()).is_err() && remove(Path::new("/dev/null")).is_err());
        assert!(replace(Path::new("-"), b"x").is_err() && !Path::new("-").exists());
        assert!(!remove(&folder.path().join("none")).unwrap());
        let nowhere = folder.path().join("none/x.prom");
        assert_eq!(replace(&nowhere, b"x").unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(names(folder.path()), [""; 0]);
        // What links lead to: a file, nothing, and a file that is open.
        let link = folder.path().join("link");
        for target in ["/etc/passwd", "nowhere", "/proc/self/fd/1"] {
            std::os::unix::fs::symlink(target, &link).unwrap();
            assert!(replace(&link, b"x").is_err() && remove(&link).is_err());
            assert_eq!(fs::read_link(&link).unwrap(), Path::new(target));
            fs::remove_file(&link).unwrap();
        }
    }
}
