//! The release of the kernel that runs, where its answers do not show it.

use nix::sys::utsname::uname;

/// Version and patch level; `None` if a filter of system calls refuses to say them.
pub(crate) fn release() -> Option<(u32, u32)> {
    uname().ok().map(|own| version(&own.release().to_string_lossy()))
}

/// Version and patch level of a release: `6.12.95-amd64` is (6, 12).
pub(crate) fn version(release: &str) -> (u32, u32) {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|text| text.parse().ok());
    let mut next = || numbers.next().flatten().unwrap_or(0);
    (next(), next())
}
