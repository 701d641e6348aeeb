//! sysfs as C programs read it through the library.

use core::ffi::{CStr, c_char, c_int};
use core::mem::MaybeUninit;
use core::slice;
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};

use crate::capi::{failed, guarded};

/// The path of sysfs: `SYSFS_PATH` from the environment, or `/sys`. A program that runs with more rights
/// than its user ignores the variable. Without the slashes at its end nothing is left of `/`.
static SYSFS_PATH: LazyLock<CString> =
    LazyLock::new(|| CString::new(stripped(named_path().as_deref())).unwrap_or_default());

fn stripped(named: Option<&[u8]>) -> &[u8] {
    let path = named.unwrap_or(b"/sys");
    let end = path.iter().rposition(|byte| *byte != b'/').map_or(0, |last| last + 1);
    path.get(..end).unwrap_or_default()
}

fn named_path() -> Option<Vec<u8>> {
    let same = rustix::process::getuid() == rustix::process::geteuid();
    std::env::var_os("SYSFS_PATH").filter(|_| same).map(|path| path.as_bytes().to_vec())
}

pub(crate) fn sysfs_path() -> &'static CStr {
    &SYSFS_PATH
}

/// The root of another sysfs tree, if the environment names one.
pub(crate) fn root() -> Option<PathBuf> {
    tree(sysfs_path().to_bytes())
}

fn tree(path: &[u8]) -> Option<PathBuf> {
    let path = if path.is_empty() { b"/" } else { path };
    (path != b"/sys").then(|| Path::new(OsStr::from_bytes(path)).to_owned())
}

/// Where sysfs is mounted, without a slash at the end: `SYSFS_PATH` from the environment, otherwise `/sys`. It is empty
/// if the variable is empty or `/`: the tree begins at the root then. The variable is read once: at the first call of
/// this function, [`ibv_get_device_list`](super::ibv_get_device_list) or [`ibv_import_device`](super::ibv_import_device).
#[unsafe(no_mangle)]
pub extern "C" fn ibv_get_sysfs_path() -> *const c_char {
    guarded(c"/sys".as_ptr(), || sysfs_path().as_ptr())
}

/// Reads the file `dir/file` into `buf`, with a NUL instead of its last newline, and returns the length. There is a slash
/// between the two, whatever they are.
///
/// # Errors
/// −1 with `errno` if it cannot be read; −1 if the text does not fit with its NUL; `EINVAL` for NULL. If `size` is 0, the answer of a file that can be read is 0.
///
/// # Safety
/// `dir` and `file` are NULL or C strings, `buf` is NULL or has room for `size` bytes. They may overlap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_read_sysfs_file(
    dir: *const c_char,
    file: *const c_char,
    buf: *mut c_char,
    size: usize,
) -> c_int {
    if dir.is_null() || file.is_null() || buf.is_null() {
        return failed(Errno::INVAL);
    }
    // SAFETY: not NULL, so by the contract a C string, which nobody changes meanwhile.
    let dir = unsafe { CStr::from_ptr(dir) };
    // SAFETY: the same.
    let file = unsafe { CStr::from_ptr(file) };
    // A slash at the beginning of the file's name does not make the folder another one. `buf` may be the memory of either.
    let path = [dir.to_bytes(), file.to_bytes()].join(&b'/');
    // There is no more of anything.
    let size = size.min(isize::MAX.unsigned_abs());
    // SAFETY: not NULL, so by the contract `size` bytes of the caller's; whether they hold
    // something does not matter to `MaybeUninit`.
    let buf = unsafe { slice::from_raw_parts_mut(buf.cast::<MaybeUninit<u8>>(), size) };
    let answer = guarded(Err(Errno::IO), || {
        let text = read_file(Path::new(OsStr::from_bytes(&path)), buf)?;
        Ok(text.map_or(-1, |text| c_int::try_from(text.len()).unwrap_or(c_int::MAX)))
    });
    answer.unwrap_or_else(failed)
}

/// Reads a file once. A NUL replaces the newline at its end, or follows the text; `None` if it does not
/// fit.
fn read_file<'b>(path: &Path, buf: &'b mut [MaybeUninit<u8>]) -> Result<Option<&'b [u8]>, Errno> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = retry_on_intr(|| rustix::fs::open(path, flags, Mode::empty()))?;
    let (text, rest) = rustix::io::read(&file, buf)?;
    let length = text.len();
    match (text.last_mut(), rest.first_mut()) {
        (None, _) => {}
        (Some(newline @ b'\n'), _) => {
            *newline = 0;
            return Ok(text.get(..length - 1));
        }
        (Some(_), Some(behind)) => {
            behind.write(0);
        }
        (Some(_), None) => return Ok(None),
    }
    Ok(Some(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_that_a_variable_names() {
        let is_named = |named: Option<&[u8]>, path: &str, root: Option<&str>| {
            let own = stripped(named);
            assert_eq!((own, tree(own)), (path.as_bytes(), root.map(PathBuf::from)), "{named:?}");
        };
        is_named(None, "/sys", None);
        is_named(Some(b"/sys//"), "/sys", None);
        is_named(Some(b"/other/"), "/other", Some("/other"));
        is_named(Some(b"//"), "", Some("/"));
        is_named(Some(b""), "", Some("/"));
    }
}
