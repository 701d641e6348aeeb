//! Reading sysfs: `/sys`, or the same tree rooted elsewhere.
//!
//! Files are small, one value each, and may vanish between listing and reading. Nothing here
//! trusts them: a file is read once; what does not parse, or is longer than the kernel's files, is an error. A folder
//! of numbers may have other names, which are passed over. The meaning of the files is known to the modules below,
//! and to [`crate::umad`].

mod counters;
mod device;
mod gid;
mod hardware;
mod pkey;
mod port;

use std::borrow::Cow;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::libc;
use rustix::fs::{
    Access, AtFlags, Dir, FileType, FsWord, Mode, OFlags, Stat, StatVfs, StatVfsMountFlags,
};
use rustix::io::{Errno, retry_on_intr};

use crate::device::{FolderId, NodeType};
use crate::error::{Cause, Error, Request};
use crate::text::is_file_name;

pub(crate) use counters::{counter_names, read_counter};
pub(crate) use gid::{Slot, is_whole};
pub(crate) use port::{name_of_speed, read_rate};

/// Longest content of a sysfs attribute: one page.
const PAGE: usize = 4096;

/// The folder of the devices of this network namespace.
pub(crate) const CLASS: &str = "class/infiniband";

/// The folder of uverbs nodes, which `ib_uverbs` makes. It is that of all network namespaces.
pub(crate) const VERBS_CLASS: &str = "class/infiniband_verbs";

/// The folder of the nodes of `ib_umad`, which it makes. It is that of all network namespaces.
pub(crate) const UMAD_CLASS: &str = "class/infiniband_mad";

/// The folder of the connection manager's node, which `rdma_ucm` makes.
pub(crate) const CM: &str = "class/misc/rdma_cm";

/// What modules make that are there only with the RDMA core.
const OF_CORE: [&str; 4] = [CLASS, VERBS_CLASS, UMAD_CLASS, CM];

/// The folder of a device's ports, which each device has.
pub(crate) const PORTS: &str = "ports";

/// How often a folder that changes is read before its changes are called too many.
const TRIES: u32 = 8;

/// A sysfs tree.
///
/// A device is asked for by its name. It is the device that has the name now. One answer is of one device, also
/// if another takes over the name meanwhile. [`of`](Self::of) keeps to a device that was listed.
///
/// ```
/// let here = uverbs::sysfs::Sysfs::host();
/// let elsewhere = uverbs::sysfs::Sysfs::at("/host/sys");
/// # let _ = (here, elsewhere);
/// ```
#[derive(Clone, Debug)]
pub struct Sysfs {
    root: PathBuf,
    /// The folder that a device's name means here.
    held: Option<(String, Folder)>,
}

impl Default for Sysfs {
    fn default() -> Self {
        Self::host()
    }
}

impl Sysfs {
    /// This host's `/sys`.
    #[must_use]
    pub fn host() -> Self {
        Self::at("/sys")
    }

    /// A tree of the same shape at `root`, for example a host's `/sys` mounted into a container.
    #[must_use]
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), held: None }
    }

    /// The folder this tree is rooted at.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Makes sure that the folder of the devices, which is missing, is missing because the RDMA core is not loaded,
    /// which makes it. Else this is a part of a sysfs, or none.
    pub(crate) fn without_class(&self) -> Result<(), Error> {
        let is_gone = |path: &&str| self.folder(path).is_gone();
        if self.is_unloaded("ib_core") && OF_CORE.iter().all(is_gone) {
            return Ok(());
        }
        // A path that is wrong, or where no sysfs is mounted, has neither folder.
        let (path, cause) = if ["class", "module"].iter().all(is_gone) {
            (self.root.clone(), Cause::NotSysfs)
        } else {
            (self.root.join(CLASS), Cause::Os(libc::ENOENT))
        };
        Err(Error::of_host(Request::Sysfs { path }, cause))
    }

    /// Whether it shows that a module is not loaded. It does not where classes or modules are missing, which each
    /// sysfs has: what is mounted on their folder, and is empty, hides them. A module that is built in may have no
    /// folder, but what it makes is there.
    pub(crate) fn is_unloaded(&self, module: &str) -> bool {
        let has_some = |path: &str| self.folder(path).names().is_ok_and(|names| !names.is_empty());
        self.folder(&format!("module/{module}")).is_gone()
            && has_some("module")
            && has_some("class")
    }

    /// `class/infiniband/NAME`, the folder of one device in this network namespace. A name that
    /// would lead out of the devices' folder is no device's.
    pub(crate) fn device(&self, name: &str) -> Result<Folder, Cause> {
        match &self.held {
            Some((held, folder)) if held == name => Ok(folder.clone()),
            _ if is_file_name(name) => Ok(self.folder(CLASS).join(name)),
            _ => Err(Cause::NoSuchDevice),
        }
    }

    /// This tree, in which `name` means that folder of a device from now on.
    pub(crate) fn holding(&self, name: &str, folder: Folder) -> Self {
        Self { root: self.root.clone(), held: Some((name.to_owned(), folder)) }
    }

    /// Asks about the device that has this name, which stays the same until the answer is complete.
    pub(crate) fn steadily<T>(
        &self,
        name: &str,
        request: impl Fn() -> Request,
        ask: impl FnOnce(&Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let folder = self.device(name).map_err(|cause| Error::new(name, request(), cause))?;
        let error = |path, cause| Error::new(name, Request::Sysfs { path }, cause);
        let gone = |errno| error(folder.path().to_owned(), cause(errno));
        let folder = folder.held().map_err(|errno| error(folder.lacking(errno), cause(errno)))?;
        match ask(&self.holding(name, folder.clone())) {
            // A folder that is taken away lists fewer entries, and does not say so.
            Ok(answer) => folder.look().map(|()| answer).map_err(gone),
            // One of which some are missing was read while it was taken away.
            Err(error) if matches!(error.errno(), libc::ENOENT | libc::EPROTO) => {
                Err(folder.look().map_or_else(gone, |()| error))
            }
            answer => answer,
        }
    }

    /// The folder of a device's port.
    pub(crate) fn port(&self, device: &str, port: u32) -> Result<Folder, Cause> {
        Ok(self.device(device)?.join(PORTS).join(port.to_string()))
    }

    /// Why `request` failed that reads `slot` in a device's port: what is not there is the device, all of its ports, the
    /// port, or the slot's index (`EINVAL`, as the kernel says it).
    pub(crate) fn missing_or(
        &self,
        device: &str,
        port: &Folder,
        slot: &Folder,
        request: Request,
        cause: Cause,
    ) -> Error {
        match (cause, self.device(device)) {
            (missing @ Cause::Os(libc::ENOENT), Ok(device_folder))
                if device_folder.is_missing() =>
            {
                let path = device_folder.path().to_owned();
                Error::new(device, Request::Sysfs { path }, missing)
            }
            // Each device has one at least.
            (missing @ Cause::Os(libc::ENOENT), Ok(device_folder))
                if has_none(&device_folder.join(PORTS)) =>
            {
                let path = device_folder.join(PORTS).path().to_owned();
                Error::new(device, Request::Sysfs { path }, missing)
            }
            (Cause::Os(libc::ENOENT), _) if port.is_missing() => {
                Error::new(device, request, Cause::NoSuchPort)
            }
            (Cause::Os(libc::ENOENT), _) if slot.is_missing() => {
                Error::new(device, request, Cause::Os(libc::EINVAL))
            }
            (cause, _) => Error::new(device, request, cause),
        }
    }

    /// A folder below the root.
    pub(crate) fn folder(&self, path: &str) -> Folder {
        Folder { path: self.root.join(path), base: None }
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

impl Folder {
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

    /// Whether it is in a sysfs that the kernel shows, and not in a copy. (Miri has no such call.)
    pub(crate) fn is_of_kernel(&self) -> bool {
        /// `SYSFS_MAGIC` of `linux/magic.h`.
        const SYSFS: FsWord = 0x6265_6572;
        let stat = || match self.place() {
            Some((base, _)) => rustix::fs::fstatfs(&base.fd),
            None => rustix::fs::statfs(&self.path),
        };
        cfg!(miri) || stat().is_ok_and(|own| own.f_type == SYSFS)
    }

    /// What it can be known by later.
    pub(crate) fn id(&self) -> Result<FolderId, Errno> {
        let stat = match self.place() {
            Some((base, path)) => rustix::fs::statat(&base.fd, path, AtFlags::EMPTY_PATH),
            None => rustix::fs::stat(&self.path),
        }?;
        Ok(FolderId { path: self.path.clone(), inode: stat.st_ino })
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
fn cause(errno: Errno) -> Cause {
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

/// The number a text begins with, decimal, or hexadecimal after `0x`. Only a colon or white space ends it.
pub(crate) fn leading_number(text: &str) -> Option<u64> {
    let text = text.trim_start();
    let (digits, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) => (hex, 16),
        None => (text, 10),
    };
    let end = digits.find(|c: char| c == ':' || c.is_whitespace()).unwrap_or(digits.len());
    let digits = digits.get(..end)?;
    let is_plain = digits.chars().all(|c| c.is_digit(radix));
    is_plain.then(|| u64::from_str_radix(digits, radix).ok()).flatten()
}

/// A name that is a decimal number and written as the kernel writes it (no sign, no leading zero).
fn decimal(name: &str) -> Option<u32> {
    let number = name.parse::<u32>().ok()?;
    (number.to_string() == name).then_some(number)
}

/// The two numbers of a `MAJOR:MINOR` file.
pub(crate) fn device_number(text: &str) -> Option<u64> {
    let (major, minor) = text.split_once(':')?;
    Some(rustix::fs::makedev(major.parse().ok()?, minor.parse().ok()?))
}

/// Whether nothing is in a folder, or it is missing.
fn has_none(folder: &Folder) -> bool {
    match folder.names() {
        Ok(names) => names.is_empty(),
        Err(cause) => cause == Cause::Os(libc::ENOENT),
    }
}

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
    use std::os::unix::fs::MetadataExt as _;

    #[test]
    fn leading_numbers() {
        assert_eq!(leading_number("4: ACTIVE"), Some(4));
        assert_eq!(leading_number("0x00010000"), Some(0x10000));
        assert_eq!(leading_number(" 7"), Some(7));
        for nothing in
            ["", "x", "0x", "-1", "+1", "12abc", "0x12zz", "2.5 Gb/sec", "99999999999999999999"]
        {
            assert_eq!(leading_number(nothing), None, "{nothing:?}");
        }
    }

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
    fn only_canonical_numbers_are_ports() {
        assert_eq!(decimal("10"), Some(10));
        assert_eq!(decimal("0"), Some(0));
        for odd in ["", "+1", "01", "1a", "4294967296", ".."] {
            assert_eq!(decimal(odd), None, "{odd:?}");
        }
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
    fn device_numbers() {
        assert_eq!(device_number("231:192"), Some(rustix::fs::makedev(231, 192)));
        assert_eq!(device_number("231"), None);
        assert_eq!(device_number("a:b"), None);
    }

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
