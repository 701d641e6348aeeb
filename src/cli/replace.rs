//! Writing a file that others read at any time: they see the old one or the new one, each whole.
//!
//! Until it is whole it has a name that begins with a dot and has another end. None of those who read such a folder
//! reads that: `node_exporter` and engines of containers go by the end, node-feature-discovery by the dot.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Puts a file with this text in the place of `path`.
pub(crate) fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    only_a_file(path)?;
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let mut beside = OsString::from(".");
    beside.push(name);
    beside.push(format!(".{}", std::process::id()));
    let beside = path.with_file_name(beside);
    let written = write(&beside, text).and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        // It may not be there at all.
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

/// A device or a folder is not taken away.
fn only_a_file(path: &Path) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|known| !known.is_file()) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
    }
    Ok(())
}

fn write(path: &Path, text: &[u8]) -> io::Result<()> {
    // A run that was killed may have left such a file. No other run that is alive uses its name.
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o644).open(path)?;
    file.write_all(text)?;
    // A disk that is full may say so only now.
    file.sync_all()
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
        let stale = folder.path().join(format!(".x.prom.{}", std::process::id()));
        fs::write(stale, "stale").unwrap();
        replace(&path, b"three").unwrap();
        assert_eq!(names(folder.path()), ["x.prom"]);
    }

    #[test]
    fn what_is_no_file_stays() {
        let folder = tempfile::tempdir().unwrap();
        assert!(replace(folder.path(), b"x").is_err() && folder.path().is_dir());
        assert!(replace(Path::new("/dev/null"), b"x").is_err());
        assert!(remove(folder.path()).is_err() && remove(Path::new("/dev/null")).is_err());
        assert!(!remove(&folder.path().join("none")).unwrap());
        let nowhere = folder.path().join("none/x.prom");
        assert_eq!(replace(&nowhere, b"x").unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(names(folder.path()), [""; 0]);
    }
}
