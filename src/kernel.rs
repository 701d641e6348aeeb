//! The kernel that runs, and what of it a process sees, where its answers do not show it.

use std::path::Path;

use nix::sys::utsname::uname;

/// Version and patch level; `None` if a filter of system calls refuses to say them.
pub(crate) fn release() -> Option<(u32, u32)> {
    uname().ok().map(|own| version(&own.release().to_string_lossy()))
}

/// Whether a namespace that a process is in, by its folder in `/proc`, is the initial one of its kind; `None` if that cannot
/// be read.
pub(crate) fn is_initial(process: &Path, kind: NamespaceKind) -> Option<bool> {
    let (name, initial) = match kind {
        NamespaceKind::User => ("ns/user", 0xefff_fffd),
        NamespaceKind::Pid => ("ns/pid", 0xefff_fffc),
    };
    rustix::fs::stat(process.join(name)).ok().map(|own| own.st_ino == initial)
}

/// A kind of namespace whose initial one has a fixed number (`linux/proc_ns.h`).
#[derive(Clone, Copy, Debug)]
pub(crate) enum NamespaceKind {
    User,
    Pid,
}

/// Whether the kernel lists the objects of all processes: before Linux 5.5 only of those in the PID namespace of
/// the reader, and none of its own unless that is the initial one.
pub(crate) fn lists_all_objects() -> bool {
    release().is_some_and(|own| own >= (5, 5))
        || is_initial(Path::new("/proc/self"), NamespaceKind::Pid) == Some(true)
}

/// Version and patch level of a release: `6.12.95-amd64` is (6, 12).
pub(crate) fn version(release: &str) -> (u32, u32) {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|text| text.parse().ok());
    let mut next = || numbers.next().flatten().unwrap_or(0);
    (next(), next())
}
