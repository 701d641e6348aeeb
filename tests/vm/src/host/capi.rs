//! What `tests/capi/run` needs in addition to the machine's compilers: rdma-core's headers to compare ours
//! with, and cargo-c to build and install the C library with.

use crate::apt::{Apt, TRIXIE};
use crate::cache::Cache;
use crate::machines::Machine;
use crate::{rdma_core, status};
use anyhow::{Context, Result};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// Where a package closure keeps its libraries and its dynamic loader.
const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";

/// The environment (NAME=VALUE) of `tests/capi/run`.
///
/// # Errors
/// Where a package cannot be had.
pub(crate) fn environment(cache: &Cache, apt: &mut Apt) -> Result<[String; 3]> {
    let (oldest, headers) = rdma_core::oldest_headers(cache, apt)?;
    let mut releases = vec![format!("{oldest}:{}", headers.canonicalize()?.display())];
    let mut libraries = Vec::new();
    let machine = Machine::guest()?;
    let newer = rdma_core::newer(machine, cache, apt)?.rdma_core;
    for release in [rdma_core::older(machine, cache, apt)?, newer] {
        releases.push(format!("{}:{}", release.major, release.headers.canonicalize()?.display()));
        let folder = release.tree.join(LIBRARIES).canonicalize()?;
        libraries.push(format!("{}:{}", release.major, folder.display()));
    }
    Ok([
        format!("UVERBS_RDMA_CORE_LIBRARIES={}", libraries.join(" ")),
        // MAJOR:FOLDER for each release, separated by blanks.
        format!("UVERBS_RDMA_CORE={}", releases.join(" ")),
        format!("UVERBS_CARGO_CINSTALL={}", cargo_c(cache, apt)?.canonicalize()?.display()),
    ])
}

/// A program `cargo-cinstall`: Debian's, started by its own release's dynamic loader, since it
/// wants a newer C library than the host may have. The cargo inside it runs the host's rustc.
fn cargo_c(cache: &Cache, apt: &mut Apt) -> Result<PathBuf> {
    let (suite, names) = ("trixie", ["cargo-c"]);
    // The script names the folder that it will be in when it is done.
    let root = cache.path("cargo-c");
    let libraries = root.join(LIBRARIES);
    let script = format!(
        "#!/bin/sh\nexec '{}' --library-path '{}' '{}' \"$@\"\n",
        libraries.join("ld-linux-x86-64.so.2").display(),
        libraries.display(),
        root.join("usr/bin/cargo-cinstall").display(),
    );
    let directory = cache.keep("cargo-c", &format!("{suite} {names:?}\n{script}"), |scratch| {
        status("fetching cargo-c");
        apt.unpack_closure(TRIXIE, suite, &names, scratch)?;
        let program = scratch.join("cargo-cinstall");
        fs::write(&program, &script)?;
        let executable = fs::Permissions::from_mode(0o755);
        fs::set_permissions(&program, executable).context("making cargo-cinstall executable")
    })?;
    Ok(directory.join("cargo-cinstall"))
}
