//! Reading sysfs: `/sys`, or the same tree rooted elsewhere.
//!
//! Files are small, one value each, and may vanish between listing and reading. Nothing here
//! trusts them: a file is read once, up to a page; what does not parse is an error. The meaning of
//! the files is known to the query modules ([`crate::gid`], [`crate::port`], …).

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};

use crate::error::{Cause, Error, Request};
use crate::names::is_file_name;

/// Longest content of a sysfs attribute: one page.
const PAGE: usize = 4096;

/// How often a folder that changes is read before its changes are called too many.
const TRIES: u32 = 8;

/// A sysfs tree.
///
/// ```
/// let here = uverbs::sysfs::Sysfs::host();
/// let elsewhere = uverbs::sysfs::Sysfs::at("/host/sys");
/// # let _ = (here, elsewhere);
/// ```
#[derive(Clone, Debug)]
pub struct Sysfs {
    root: PathBuf,
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
        Self { root: root.into() }
    }

    /// The folder this tree is rooted at.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// `class/infiniband/NAME`, the folder of one device in this network namespace. A name that
    /// would lead out of the devices' folder is no device's.
    pub(crate) fn device(&self, name: &str) -> Result<Folder, Cause> {
        if is_file_name(name) {
            Ok(Folder { path: self.root.join("class/infiniband").join(name) })
        } else {
            Err(Cause::NoSuchDevice)
        }
    }

    /// The folder of a device's port.
    pub(crate) fn port(&self, device: &str, port: u32) -> Result<Folder, Cause> {
        Ok(self.device(device)?.join("ports").join(port.to_string()))
    }

    /// Why `request` failed that reads `folder` of a device: what is not there is the device, or the
    /// port or index that the folder stands for (`EINVAL`, as the kernel says it).
    pub(crate) fn missing_or(
        &self,
        device: &str,
        folder: &Folder,
        request: Request,
        cause: Cause,
    ) -> Error {
        match (cause, self.device(device)) {
            (missing @ Cause::Os(Errno::NOENT), Ok(Folder { path })) if !path.exists() => {
                Error::new(device, Request::Sysfs { path }, missing)
            }
            (Cause::Os(Errno::NOENT), _) if !folder.exists() => {
                Error::new(device, request, Cause::Os(Errno::INVAL))
            }
            (cause, _) => Error::new(device, request, cause),
        }
    }

    /// A folder below the root.
    pub(crate) fn folder(&self, path: &str) -> Folder {
        Folder { path: self.root.join(path) }
    }
}

/// One folder of a sysfs tree.
#[derive(Clone, Debug)]
pub(crate) struct Folder {
    path: PathBuf,
}

impl Folder {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn exists(&self) -> bool {
        self.path.exists()
    }

    pub(crate) fn join(&self, name: impl AsRef<Path>) -> Self {
        Self { path: self.path.join(name) }
    }

    /// The content of a file, without white space at its end.
    pub(crate) fn read(&self, name: &str) -> Result<String, Cause> {
        let bytes = self.read_bytes(name).map_err(cause)?;
        let text = String::from_utf8(bytes)
            .map_err(|_| Cause::Malformed("a sysfs attribute that is not text"))?;
        Ok(text.trim_end().to_owned())
    }

    /// The content of a file as the kernel gives it, at most a page.
    pub(crate) fn read_bytes(&self, name: &str) -> Result<Vec<u8>, Errno> {
        // NONBLOCK: in a tree that is not the kernel's, a FIFO must not hold us up.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let path = self.path.join(name);
        let file = retry_on_intr(|| rustix::fs::open(&path, flags, Mode::empty()))?;
        let mut buffer = [0u8; PAGE];
        let count = retry_on_intr(|| rustix::io::read(&file, &mut buffer))?;
        Ok(buffer.get(..count).unwrap_or_default().to_vec())
    }

    /// A file's content that may be missing, for attributes that not every device has.
    pub(crate) fn read_optional(&self, name: &str) -> Option<String> {
        self.read(name).ok().filter(|text| !text.is_empty())
    }

    /// The number that a file begins with: `4: ACTIVE` is 4, `0x0008` is 8.
    pub(crate) fn read_number(&self, name: &str) -> Result<u64, Cause> {
        leading_number(&self.read(name)?).ok_or(Cause::Malformed("a sysfs number"))
    }

    /// Names in this folder, in the order of `readdir`; a name that is not UTF-8 has its odd bytes
    /// replaced.
    pub(crate) fn names(&self) -> Result<Vec<String>, Cause> {
        let entries = std::fs::read_dir(&self.path).map_err(|error| cause(os_errno(&error)))?;
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|error| cause(os_errno(&error)))?;
            names.push(match entry.file_name().to_string_lossy() {
                Cow::Borrowed(name) => name.to_owned(),
                Cow::Owned(name) => name,
            });
        }
        Ok(names)
    }

    /// As [`names`](Self::names), of a folder whose entries come and go. If the kernel is about to
    /// tell the entry behind one that is just removed, it leaves it out although it stands; so
    /// the folder is read until two readings agree.
    pub(crate) fn steady_names(&self) -> Result<Vec<String>, Cause> {
        steady(|| self.names())
    }

    /// Names in this folder that are plain decimal numbers, ascending.
    pub(crate) fn numbers(&self) -> Result<Vec<u32>, Cause> {
        let mut numbers: Vec<u32> = self.names()?.iter().filter_map(|name| decimal(name)).collect();
        numbers.sort_unstable();
        numbers.dedup();
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
    Err(Cause::Os(Errno::AGAIN))
}

/// The errno of a file operation as a cause.
fn cause(errno: Errno) -> Cause {
    match errno {
        Errno::NODEV => Cause::DeviceGone(errno),
        other => Cause::Os(other),
    }
}

pub(crate) fn os_errno(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

/// The number a text begins with, decimal, or hexadecimal after `0x`.
pub(crate) fn leading_number(text: &str) -> Option<u64> {
    let text = text.trim_start();
    let (digits, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) => (hex, 16),
        None => (text, 10),
    };
    let end = digits.find(|c: char| !c.is_digit(radix)).unwrap_or(digits.len());
    u64::from_str_radix(digits.get(..end)?, radix).ok()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leading_numbers() {
        assert_eq!(leading_number("4: ACTIVE"), Some(4));
        assert_eq!(leading_number("0x00010000"), Some(0x10000));
        assert_eq!(leading_number("2.5 Gb/sec (1X SDR)"), Some(2));
        assert_eq!(leading_number(" 7"), Some(7));
        for nothing in ["", "x", "0x", "-1", "99999999999999999999"] {
            assert_eq!(leading_number(nothing), None, "{nothing:?}");
        }
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
            steady(|| readings.next().copied().ok_or(Cause::Os(Errno::NOENT)))
        };
        assert_eq!(told(&[1, 1]), Ok(1));
        assert_eq!(told(&[1, 2, 1, 1]), Ok(1));
        assert_eq!(told(&[1, 2, 3, 4, 5, 6, 7, 8, 8]), Err(Cause::Os(Errno::AGAIN)));
        assert_eq!(told(&[1]), Err(Cause::Os(Errno::NOENT)));
    }

    #[test]
    fn device_numbers() {
        assert_eq!(device_number("231:192"), Some(rustix::fs::makedev(231, 192)));
        assert_eq!(device_number("231"), None);
        assert_eq!(device_number("a:b"), None);
    }

    #[test]
    fn a_file_longer_than_a_page_is_cut() {
        let folder = std::env::temp_dir().join(format!("uverbs-sysfs-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("huge"), vec![b'1'; 100_000]).unwrap();
        let tree = Sysfs::at(&folder).folder("");
        assert_eq!(tree.read("huge").unwrap().len(), PAGE);
        assert_eq!(tree.read("missing"), Err(Cause::Os(Errno::NOENT)));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
