//! Counters by sysfs: a file each. Which folders there are depends on the driver, and on the network
//! namespace: a namespace that is not the device's own has none of them.

use nix::libc;

use super::Folder;
use crate::error::Cause;

/// A file of `hw_counters` that is a setting: how long a driver's answer is kept, in milliseconds.
const LIFESPAN: &str = "lifespan";

/// The names of a folder's counters, in order; none if there is no such folder.
pub(crate) fn counter_names(folder: &Folder) -> Result<Vec<String>, Cause> {
    let mut names = match folder.names() {
        Ok(names) => names,
        Err(Cause::Os(libc::ENOENT)) => return Ok(Vec::new()),
        Err(cause) => return Err(cause),
    };
    names.retain(|name| name != LIFESPAN);
    names.sort_unstable();
    Ok(names)
}

/// A counter's number.
pub(crate) fn read_counter(folder: &Folder, name: &str) -> Result<u64, Cause> {
    let text = folder.read(name)?;
    // Old kernels say so where newer ones fail.
    if text.starts_with("N/A") {
        return Err(Cause::NotOffered);
    }
    text.parse().map_err(|_| folder.malformed(name, "a counter"))
}
