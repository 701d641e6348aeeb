//! Device nodes: whether a file is the device of a number, and whether it can be opened.

use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, Stat, StatVfs, StatVfsMountFlags};
use rustix::io::{Errno, retry_on_intr};

use super::folder::os_errno;
use crate::error::Cause;

/// Whether an open file is the character device of this number.
pub(crate) fn is_node(file: impl AsFd, number: u64) -> Result<bool, Errno> {
    Ok(is_node_stat(&rustix::fs::fstat(file)?, number))
}

/// Whether this was read of the character device of this number.
pub(crate) fn is_node_stat(stat: &Stat, number: u64) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice && stat.st_rdev == number
}

/// Whether a path is known to be in a mount with the option `nodev`, in which no device can be opened, whatever its mode
/// is. (Miri has no such call.)
pub(crate) fn is_in_nodev(path: &Path) -> bool {
    let has_option = |own: StatVfs| own.f_flag.contains(StatVfsMountFlags::NODEV);
    !cfg!(miri) && rustix::fs::statvfs(path).is_ok_and(has_option)
}

/// Opens the character device of this number for reading, writing or both. What is not this device is not opened: with
/// some, as a watchdog or a FIFO, opening does something.
pub(crate) fn open_node(path: &Path, number: u64, access: OFlags) -> Result<OwnedFd, Cause> {
    let looked = fs::metadata(path).map_err(|error| Cause::of_open(os_errno(&error)))?;
    if !looked.file_type().is_char_device() || looked.rdev() != number {
        return Err(Cause::WrongNode);
    }
    let file = open(path, access).map_err(|errno| match errno {
        Errno::ACCESS if is_in_nodev(path) => Cause::MountedNodev,
        other => Cause::of_open(other),
    })?;
    // It may be another file since.
    match is_node(&file, number) {
        Ok(true) => Ok(file),
        Ok(false) => Err(Cause::WrongNode),
        Err(errno) => Err(Cause::of_open(errno)),
    }
}

fn open(path: &Path, access: OFlags) -> Result<OwnedFd, Errno> {
    let flags = access | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    retry_on_intr(|| rustix::fs::open(path, flags, Mode::empty()))
}

/// Whether a device's file may not be opened for reading and writing by this user: by its mode, the rules of a
/// container or a security module. Only opening it shows that.
pub(crate) fn is_read_only(path: &Path) -> bool {
    matches!(open(path, OFlags::RDWR), Err(Errno::ACCESS | Errno::PERM))
}

#[cfg(test)]
mod tests {
    use std::mem::MaybeUninit;

    use rustix::fs::{CWD, inotify, makedev, mknodat};

    use super::*;
    use crate::sysfs::device_number;

    #[test]
    #[cfg_attr(miri, ignore = "watches a file")]
    fn what_is_not_the_node_is_not_opened() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("uverbs0");
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR, 0).unwrap();
        let watch = inotify::init(inotify::CreateFlags::NONBLOCK).unwrap();
        inotify::add_watch(&watch, &path, inotify::WatchFlags::OPEN).unwrap();
        let mut room = [MaybeUninit::uninit(); 512];
        let mut opened = inotify::Reader::new(&watch, &mut room);
        let error = open_node(&path, makedev(1, 3), OFlags::RDONLY).unwrap_err();
        assert_eq!((error, opened.next().err()), (Cause::WrongNode, Some(Errno::AGAIN)));
        open(&path, OFlags::RDONLY).unwrap();
        assert!(opened.next().is_ok());
    }

    #[test]
    #[cfg_attr(miri, ignore = "asks the kernel for the options of a mount")]
    fn mounts_with_nodev() {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let mut options = std::collections::BTreeMap::new();
        for line in mounts.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            // Of mounts in one place the last one is seen; one may be in a folder that another covers.
            let seen = fs::metadata(words[4]).ok();
            let is_seen = seen.is_some_and(|own| device_number(words[2]) == Some(own.dev()));
            if is_seen {
                options.insert(words[4], words[5].split(',').any(|own| own == "nodev"));
            }
        }
        for (path, is_in) in options {
            assert_eq!(is_in_nodev(Path::new(path)), is_in, "{path}");
        }
        assert!(!is_in_nodev(Path::new("/nowhere/uverbs0")));
    }
}
