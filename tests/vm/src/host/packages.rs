//! The sets of Debian packages, other than kernels, that the harness unpacks.

use crate::apt::{Apt, BOOKWORM, FORKY, Package, SID, TRIXIE};
use crate::cache::Cache;
use crate::status;
use anyhow::{Result, bail};
use std::path::PathBuf;

/// QEMU, of a version with the `vfio-user-pci` device, and all its libraries.
pub(crate) fn qemu(cache: &Cache, apt: &mut Apt) -> Result<PathBuf> {
    let (suite, names) = ("trixie-backports", ["qemu-system-x86"]);
    cache.keep("qemu", &format!("{suite} {names:?}"), |scratch| {
        status("fetching QEMU");
        apt.unpack_closure(TRIXIE, suite, &names, scratch)
    })
}

/// The programs and libraries that run in the guest beside ours, and what our C programs are
/// compiled against.
pub(crate) fn peers(cache: &Cache, apt: &mut Apt) -> Result<PathBuf> {
    let (suite, names) = (
        "bookworm",
        [
            "ibverbs-utils",
            "ibverbs-providers",
            "infiniband-diags",
            "iproute2",
            "strace",
            "libibverbs-dev",
            "libibumad-dev",
            "libc6-dev",
        ],
    );
    cache.keep("peers", &format!("{suite} {names:?}"), |scratch| {
        status("fetching the peers");
        apt.unpack_closure(BOOKWORM, suite, &names, scratch)
    })
}

/// The newest kernel headers for user space that the newest kernels' release has.
pub(crate) fn headers(cache: &Cache, apt: &mut Apt) -> Result<PathBuf> {
    let name = "linux-libc-dev";
    let directory = cache.keep("headers", name, |scratch| {
        for release in [TRIXIE, FORKY, SID] {
            if let Some(package) = apt.versions(release, name)?.first() {
                status(&format!("fetching the kernel headers {}", package.version));
                return apt.unpack(release, std::slice::from_ref(package), scratch);
            }
        }
        bail!("the mirror offers no {name}")
    })?;
    Ok(directory.join("usr/include"))
}

/// What `musl-sysroot.sh` makes a standard library of: the source of exactly this Rust, musl,
/// and an unwinder. (bookworm's libunwind, since it wants the least of its C library.)
pub(crate) fn musl_parts(rust: &str, cache: &Cache, apt: &mut Apt) -> Result<PathBuf> {
    let request = format!("rust-src {rust}, musl-dev, libunwind-19-dev");
    cache.keep("musl-parts", &request, |scratch| {
        status(&format!("fetching the source of Rust {rust}'s standard library"));
        let newest = |apt: &mut Apt, release, name: &str| -> Result<Package> {
            match apt.versions(release, name)?.first() {
                Some(package) => Ok(package.clone()),
                None => bail!("the mirror offers no {name}"),
            }
        };
        let musl = newest(apt, TRIXIE, "musl-dev")?;
        apt.unpack(TRIXIE, &[musl], scratch)?;
        let unwinder = newest(apt, BOOKWORM, "libunwind-19-dev")?;
        apt.unpack(BOOKWORM, &[unwinder], scratch)?;
        for release in [TRIXIE, FORKY, SID] {
            for package in apt.versions(release, "rust-src")? {
                if package.version.starts_with(&format!("{rust}+")) {
                    return apt.unpack(release, &[package], scratch);
                }
            }
        }
        bail!("the mirror has no source of Rust {rust}; `rustup target add x86_64-unknown-linux-musl` does without")
    })
}
