//! Device nodes: whether a file is the device of a number, and whether it can be opened.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, Stat, StatVfs, StatVfsMountFlags};
use rustix::io::{Errno, retry_on_intr};

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

/// Opens a device's file for reading and writing, as programs do.
pub(crate) fn open_for_both(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    retry_on_intr(|| rustix::fs::open(path, flags, Mode::empty()))
}

/// Whether a device's file may not be opened so by this user: by its mode, the rules of a container or a security module.
/// Only opening it shows that.
pub(crate) fn is_read_only(path: &Path) -> bool {
    matches!(open_for_both(path), Err(Errno::ACCESS | Errno::PERM))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sysfs::device_number;
    use std::os::unix::fs::MetadataExt as _;

    #[test]
    #[cfg_attr(miri, ignore = "asks the kernel for the options of a mount")]
    fn mounts_with_nodev() {
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        let mut options = std::collections::BTreeMap::new();
        for line in mounts.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            // Of mounts in one place the last one is seen; one may be in a folder that another covers.
            let seen = std::fs::metadata(words[4]).ok();
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
