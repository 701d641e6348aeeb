//! One folder of a sysfs tree, by its path or kept open, and how its files are read.

use std::borrow::Cow;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::libc;
use rustix::fs::{Access, AtFlags, Dir, FsWord, Mode, OFlags, Stat};
use rustix::io::{Errno, retry_on_intr};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
use rustix::thread::{CapabilitySet, capabilities};

use super::PORTS;
use super::number::{decimal, leading_number};
use crate::device::{FolderId, NodeType};
use crate::error::Cause;

/// Longest content of a sysfs attribute: one page.
const PAGE: usize = 4096;

/// How often a folder that changes is read before its changes are called too many.
const TRIES: u32 = 8;

/// One folder of a sysfs tree.
#[derive(Clone, Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    /// The open folder from which this one is reached, if it is not by its path.
    base: Option<Arc<Base>>,
}

/// An open folder. What is read from it is never another's that has taken over its name.
#[derive(Debug)]
struct Base {
    path: PathBuf,
    fd: OwnedFd,
}

/// What could not be read, and why.
pub(crate) type Unread = (PathBuf, Cause);

impl Folder {
    pub(super) fn at(path: PathBuf) -> Self {
        Self { path, base: None }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the kernel says that it is not there. Of a device's folder that is held: that it no longer is the device's.
    pub(crate) fn is_missing(&self) -> bool {
        self.look().is_err_and(is_absent)
    }

    /// Whether it can be looked at.
    pub(crate) fn look(&self) -> Result<(), Errno> {
        let looked = match self.place() {
            // An open folder can be looked at for ever, but not into.
            Some((base, path)) if path.as_os_str().is_empty() => {
                rustix::fs::statat(&base.fd, PORTS, AtFlags::empty())
            }
            Some((base, path)) => rustix::fs::statat(&base.fd, path, AtFlags::empty()),
            None => {
                let looked = std::fs::metadata(&self.path).map(drop);
                return looked.map_err(|error| os_errno(&error));
            }
        };
        looked.map(drop)
    }

    /// Whether its name is there no more. A name that leads nowhere, or that may not be looked at, is there.
    pub(crate) fn is_gone(&self) -> bool {
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        let looked = match self.place() {
            Some((base, path)) => rustix::fs::statat(&base.fd, path, flags),
            None => rustix::fs::statat(rustix::fs::CWD, &self.path, flags),
        };
        looked.is_err_and(|errno| errno == Errno::NOENT)
    }

    /// Whether it is a folder in which files can be listed and opened; `None` if it may be, as it cannot be looked at.
    pub(crate) fn can_be_read(&self) -> Option<bool> {
        let wanted = Access::READ_OK | Access::EXEC_OK;
        let looked = match self.place() {
            Some((base, path)) => rustix::fs::accessat(&base.fd, path, wanted, AtFlags::empty()),
            None => rustix::fs::access(&self.path, wanted),
        };
        match looked {
            Ok(()) => Some(true),
            Err(errno) => is_absent(errno).then_some(false),
        }
    }

    pub(crate) fn join(&self, name: impl AsRef<Path>) -> Self {
        Self { path: self.path.join(name), base: self.base.clone() }
    }

    /// The device's folder, if this is that of a port.
    pub(super) fn device_of_port(&self) -> Self {
        let path = self.path.ancestors().nth(2).unwrap_or(&self.path).to_owned();
        Self { path, base: self.base.clone() }
    }

    /// The same folder, kept open: what is read from it and from below is its own as long as it is there.
    pub(crate) fn held(&self) -> Result<Self, Errno> {
        // Miri has no `openat`.
        if cfg!(miri) || self.place().is_some_and(|(_, path)| path.as_os_str().is_empty()) {
            return Ok(self.clone());
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = self.open(Path::new(""), flags)?;
        Ok(Self {
            path: self.path.clone(),
            base: Some(Arc::new(Base { path: self.path.clone(), fd })),
        })
    }

    /// What is not there of a device's folder that could not be opened: the folder, or its files if its name leads
    /// nowhere.
    pub(crate) fn lacking(&self, errno: Errno) -> PathBuf {
        let leads_nowhere = errno == Errno::NOENT && !self.is_gone();
        if leads_nowhere { self.path.join(PORTS) } else { self.path.clone() }
    }

    /// What is not there of a device's folder in which there is no folder of ports: all of it, or that folder.
    pub(super) fn without_ports(&self) -> PathBuf {
        if self.is_gone() { self.path.clone() } else { self.path.join(PORTS) }
    }

    /// Whether it is in a sysfs that the kernel shows, and not in a copy. (Miri has no such call.)
    pub(crate) fn is_of_kernel(&self) -> bool {
        /// `SYSFS_MAGIC` of `linux/magic.h`.
        const SYSFS: FsWord = 0x6265_6572;
        let stat = || match self.place() {
            Some((base, _)) => rustix::fs::fstatfs(&base.fd),
            None => rustix::fs::statfs(&self.path),
        };
        !cfg!(miri) && stat().is_ok_and(|own| own.f_type == SYSFS)
    }

    /// What it can be known by later.
    pub(crate) fn id(&self) -> Result<FolderId, Errno> {
        Ok(FolderId { path: self.path.clone(), inode: self.stat()?.st_ino })
    }

    fn stat(&self) -> Result<Stat, Errno> {
        match self.place() {
            Some((base, path)) => rustix::fs::statat(&base.fd, path, AtFlags::EMPTY_PATH),
            None => rustix::fs::stat(&self.path),
        }
    }

    /// Whether it is in the sysfs of this network namespace: in that which the kernel mounts here, in no place. `None` if
    /// that may not be asked: it needs `CAP_SYS_ADMIN`, and a filter may end who asks without need.
    pub(super) fn is_of_this_namespace(&self) -> Option<bool> {
        let own = capabilities(None).ok()?.effective;
        if !own.contains(CapabilitySet::SYS_ADMIN) {
            return None;
        }
        let context = fsopen("sysfs", FsOpenFlags::FSOPEN_CLOEXEC).ok()?;
        fsconfig_create(&context).ok()?;
        let flags = MountAttrFlags::MOUNT_ATTR_RDONLY;
        let root = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, flags).ok()?;
        let [root, own] = [rustix::fs::fstat(root).ok()?, self.stat().ok()?];
        Some(root.st_dev == own.st_dev)
    }

    /// The open folder, and the way from there.
    fn place(&self) -> Option<(&Base, &Path)> {
        let base = self.base.as_deref()?;
        Some((base, self.path.strip_prefix(&base.path).ok()?))
    }

    /// Opens what is at a path from here; a path of no length is the folder itself.
    fn open(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        let path = self.path.join(path);
        let Some(base) = &self.base else {
            return retry_on_intr(|| rustix::fs::open(&path, flags, Mode::empty()));
        };
        let path = match path.strip_prefix(&base.path) {
            Ok(rest) if rest.as_os_str().is_empty() => Path::new("."),
            Ok(rest) => rest,
            Err(_) => return Err(Errno::NOENT),
        };
        retry_on_intr(|| rustix::fs::openat(&base.fd, path, flags, Mode::empty()))
    }

    /// The content of a file, without white space at its end.
    pub(crate) fn read(&self, name: &str) -> Result<String, Cause> {
        Ok(self.read_text(name)?.trim_end().to_owned())
    }

    /// A name, to which white space at its end belongs. The kernel ends it with one newline.
    pub(crate) fn read_name(&self, name: &str) -> Result<String, Cause> {
        let mut text = self.read_text(name)?;
        if text.ends_with('\n') {
            text.pop();
        }
        Ok(text)
    }

    /// The same of a name that may be any bytes; those that are not UTF-8 are U+FFFD.
    pub(crate) fn read_any_name(&self, name: &str) -> Result<String, Cause> {
        let bytes = self.read_attribute(name)?;
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
        Ok(String::from_utf8_lossy(bytes).into_owned())
    }

    fn read_text(&self, name: &str) -> Result<String, Cause> {
        String::from_utf8(self.read_attribute(name)?)
            .map_err(|_| self.malformed(name, "a sysfs attribute that is not text"))
    }

    fn read_attribute(&self, name: &str) -> Result<Vec<u8>, Cause> {
        let bytes = self.read_bytes(name).map_err(cause)?;
        if bytes.len() == PAGE {
            return Err(self.malformed(name, "a sysfs attribute of less than 4096 bytes"));
        }
        Ok(bytes)
    }

    /// The content of a file as the kernel gives it. That of another may be longer, and is cut at a page.
    pub(crate) fn read_bytes(&self, name: &str) -> Result<Vec<u8>, Errno> {
        // NONBLOCK: in a tree that is not the kernel's, a FIFO must not hold us up. (Miri opens no
        // file with such flags.)
        let special = OFlags::NONBLOCK | OFlags::NOCTTY;
        let special = if cfg!(miri) { OFlags::empty() } else { special };
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | special;
        let file = self.open(Path::new(name), flags)?;
        let mut buffer = [0u8; PAGE];
        let count = retry_on_intr(|| rustix::io::read(&file, &mut buffer))?;
        Ok(buffer.get(..count).unwrap_or_default().to_vec())
    }

    /// A file's content that may be missing, for attributes that not every device has.
    pub(crate) fn read_optional(&self, name: &str) -> Option<String> {
        self.read(name).ok().filter(|text| !text.is_empty())
    }

    /// The same, if only a missing or an empty file is no content, and what may not be read is an error.
    pub(crate) fn read_if_given(&self, name: &str) -> Result<Option<String>, Cause> {
        match self.read(name) {
            Ok(text) => Ok(Some(text).filter(|text| !text.is_empty())),
            Err(Cause::Os(libc::ENOENT)) => Ok(None),
            Err(cause) => Err(cause),
        }
    }

    /// The number that a file begins with: `4: ACTIVE` is 4, `0x0008` is 8.
    pub(crate) fn read_number(&self, name: &str) -> Result<u64, Cause> {
        leading_number(&self.read(name)?).ok_or_else(|| self.malformed(name, "a sysfs number"))
    }

    /// That a file could not be read.
    pub(super) fn unread(&self, name: &str) -> impl FnOnce(Cause) -> Unread {
        let path = self.path.join(name);
        |cause| (path, cause)
    }

    /// That a file has something else than it should.
    pub(crate) fn malformed(&self, name: &str, what: &'static str) -> Cause {
        Cause::MalformedFile { path: self.path.join(name), what }
    }

    /// Names in this folder, in the order of `readdir`; a name that is not UTF-8 has its odd bytes
    /// replaced.
    pub(crate) fn names(&self) -> Result<Vec<String>, Cause> {
        let mut names = Vec::new();
        if self.base.is_some() {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let folder = self.open(Path::new(""), flags).map_err(cause)?;
            for entry in Dir::new(folder).map_err(cause)? {
                let entry = entry.map_err(cause)?;
                let name = entry.file_name().to_string_lossy();
                if name != "." && name != ".." {
                    names.push(name.into_owned());
                }
            }
            return Ok(names);
        }
        let entries = std::fs::read_dir(&self.path).map_err(|error| cause(os_errno(&error)))?;
        for entry in entries {
            let entry = entry.map_err(|error| cause(os_errno(&error)))?;
            names.push(match entry.file_name().to_string_lossy() {
                Cow::Borrowed(name) => name.to_owned(),
                Cow::Owned(name) => name,
            });
        }
        Ok(names)
    }

    /// As [`names`](Self::names), of a folder whose entries come and go. readdir can skip an entry when the
    /// one before it is removed; the folder is read until two passes agree.
    pub(crate) fn steady_names(&self) -> Result<Vec<String>, Cause> {
        steady(|| self.names())
    }

    /// What `read` finds in this folder, if it is there afterwards. One that is taken away lists fewer entries, and does not
    /// say so.
    fn while_there<T>(&self, read: impl FnOnce() -> Result<T, Cause>) -> Result<T, Cause> {
        let found = read()?;
        self.look().map_err(cause)?;
        Ok(found)
    }

    /// Whether nothing is in it, or it is missing.
    pub(crate) fn has_none(&self) -> bool {
        match self.names() {
            Ok(names) => names.is_empty(),
            Err(cause) => cause == Cause::Os(libc::ENOENT),
        }
    }

    /// Names in this folder that are plain decimal numbers, ascending.
    pub(crate) fn numbers(&self) -> Result<Vec<u32>, Cause> {
        let mut numbers: Vec<u32> = self.names()?.iter().filter_map(|name| decimal(name)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        Ok(numbers)
    }

    /// The numbers of the ports of the device whose folder this is. The kernel numbers them from 1 without a gap; a
    /// switch has only port 0. It registers no device without ports, so other numbers are those of a part of a sysfs.
    /// An error is that of this file here.
    pub(crate) fn port_numbers(
        &self,
        node_type: NodeType,
    ) -> Result<Vec<u32>, (&'static str, Cause)> {
        let numbers = self.join(PORTS).numbers().map_err(|cause| (PORTS, cause))?;
        let is_switch = node_type == NodeType::SWITCH;
        if numbers.is_empty() {
            let first = if is_switch { "ports/0" } else { "ports/1" };
            return Err((first, Cause::Os(libc::ENOENT)));
        }
        let first = u32::from(!is_switch);
        if !numbers.iter().copied().eq((first..).take(numbers.len())) {
            return Err((PORTS, self.malformed(PORTS, "port numbers with a gap")));
        }
        Ok(numbers)
    }

    /// The slots of a table, which the kernel numbers from 0 without a gap. Were one missing, those that are
    /// left would not say how long the table is.
    pub(crate) fn slots(&self) -> Result<Vec<u32>, Cause> {
        let numbers = self.while_there(|| self.numbers())?;
        if !numbers.iter().copied().eq((0..).take(numbers.len())) {
            return Err(Cause::MalformedFile { path: self.path.clone(), what: "slots with a gap" });
        }
        Ok(numbers)
    }
}

impl FolderId {
    /// Makes sure that the folder is still there, and not another in its place.
    pub(crate) fn still_exists(&self) -> Result<(), Cause> {
        match rustix::fs::stat(&self.path) {
            Ok(stat) if stat.st_ino == self.inode => Ok(()),
            Ok(_) => Err(Cause::Replaced),
            Err(Errno::NOENT) => Err(Cause::DeviceGone(libc::ENODEV)),
            Err(errno) => Err(Cause::of(errno)),
        }
    }

    /// Whether that is the same folder, by whatever name.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.inode == other.inode
    }
}

/// What `read` says twice in a row.
fn steady<T: PartialEq>(mut read: impl FnMut() -> Result<T, Cause>) -> Result<T, Cause> {
    let mut before = read()?;
    for _ in 1..TRIES {
        let now = read()?;
        if now == before {
            return Ok(now);
        }
        before = now;
    }
    Err(Cause::Os(libc::EAGAIN))
}

/// The errno of a file operation as a cause.
pub(super) fn cause(errno: Errno) -> Cause {
    match errno {
        Errno::NODEV => Cause::DeviceGone(libc::ENODEV),
        other => Cause::of(other),
    }
}

/// Whether an errno of looking at a path says that nothing has it. Others leave that open.
pub(crate) fn is_absent(errno: Errno) -> bool {
    matches!(errno, Errno::NOENT | Errno::NOTDIR)
}

pub(crate) fn os_errno(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sysfs::Sysfs;

    /// What the kernel takes away lists as empty to whoever has it open.
    #[test]
    fn a_table_that_is_taken_away_is_not_empty() {
        let tree = tempfile::tempdir().unwrap();
        let gids = Sysfs::at(tree.path()).folder("gids");
        let read = |takes: bool| {
            std::fs::create_dir_all(gids.path()).unwrap();
            gids.while_there(|| {
                if takes {
                    std::fs::remove_dir(gids.path()).unwrap();
                }
                Ok([0; 0])
            })
        };
        assert_eq!(read(false), Ok([]));
        assert_eq!(read(true), Err(Cause::Os(libc::ENOENT)));
    }

    #[test]
    fn a_reading_counts_when_the_next_one_agrees() {
        let told = |readings: &[u32]| {
            let mut readings = readings.iter();
            steady(|| readings.next().copied().ok_or(Cause::Os(libc::ENOENT)))
        };
        assert_eq!(told(&[1, 1]), Ok(1));
        assert_eq!(told(&[1, 2, 1, 1]), Ok(1));
        assert_eq!(told(&[1, 2, 3, 4, 5, 6, 7, 8, 8]), Err(Cause::Os(libc::EAGAIN)));
        assert_eq!(told(&[1]), Err(Cause::Os(libc::ENOENT)));
    }

    /// The kernel says so of a file that was opened while its device was there.
    #[test]
    fn a_file_of_a_device_that_is_gone() {
        assert_eq!(cause(Errno::NODEV), Cause::DeviceGone(libc::ENODEV));
        for errno in [Errno::NOENT, Errno::NXIO, Errno::IO, Errno::ACCESS] {
            assert_eq!(cause(errno), Cause::of(errno));
        }
    }

    #[test]
    fn a_file_longer_than_a_page_is_none_of_the_kernel_s() {
        let folder = std::env::temp_dir().join(format!("uverbs-sysfs-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("huge"), vec![b'1'; 100_000]).unwrap();
        let tree = Sysfs::at(&folder).folder("");
        assert!(matches!(tree.read("huge"), Err(Cause::MalformedFile { .. })));
        assert_eq!(tree.read_bytes("huge").unwrap().len(), PAGE);
        assert_eq!(tree.read("missing"), Err(Cause::Os(libc::ENOENT)));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
