//! The releases of rdma-core that the C interface is compared with: that of the peers, and the
//! newest of Debian's whose source the mirror delivers.
//!
//! A mirror that drops files does not drop all of a release's at once: what is asked for is no more
//! than the archive that upstream released (see [`Apt::unpack_upstream`]) and the packages.

use crate::apt::{Apt, BULLSEYE, FORKY, Package, Release, TRIXIE};
use crate::cache::Cache;
use crate::machines::Machine;
use crate::{packages, status};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};

/// A release of rdma-core.
#[derive(Debug)]
pub(crate) struct RdmaCore {
    /// Its major number, which the C programs get as `RDMA_CORE`.
    pub(crate) major: String,
    /// The tree with its libraries, and with the C library that they run with.
    pub(crate) tree: PathBuf,
    /// The folder of its headers.
    pub(crate) headers: PathBuf,
}

/// The newer release, and its source.
#[derive(Debug)]
pub(crate) struct Newer {
    pub(crate) rdma_core: RdmaCore,
    pub(crate) source: PathBuf,
    /// Its version and where it is from.
    pub(crate) about: String,
}

/// The releases that may have the newer one, the newest first.
const RELEASES: [Release; 2] = [FORKY, TRIXIE];

/// The packages with its libraries and headers, all of the same version.
const PACKAGES: [&str; 8] = [
    "ibverbs-providers",
    "libibmad-dev",
    "libibmad5",
    "libibumad-dev",
    "libibumad3",
    "libibnetdisc-dev",
    "libibverbs-dev",
    "libibverbs1",
];

/// What is kept of its source.
const PARTS: [&str; 6] =
    ["infiniband-diags", "libibmad", "libibnetdisc", "libibverbs", "util", "COPYING.md"];

/// The peers' release, on a machine.
pub(crate) fn older(machine: Machine, cache: &Cache, apt: &mut Apt) -> Result<RdmaCore> {
    let tree = packages::peers(machine, cache, apt)?;
    let headers = tree.join("usr/include");
    Ok(RdmaCore { major: major(machine, &tree)?, tree, headers })
}

/// The headers of the oldest release that the mirror has: its major number, and their folder.
pub(crate) fn oldest_headers(cache: &Cache, apt: &mut Apt) -> Result<(String, PathBuf)> {
    let names = ["libibverbs-dev", "libibumad-dev"];
    let directory =
        cache.keep("rdma-core-oldest", &format!("{BULLSEYE:?} {names:?}"), |scratch| {
            let mut packages = Vec::new();
            for name in names {
                let newest = apt.versions(BULLSEYE, name)?.into_iter().next();
                packages.push(newest.with_context(|| format!("no {name} of {}", BULLSEYE.name()))?);
            }
            let version = packages.first().map_or("", |package| &package.version);
            status(&format!("{}: fetching the headers of rdma-core {version}", BULLSEYE.name()));
            let major = version.split('.').next().unwrap_or_default().to_owned();
            apt.unpack(BULLSEYE, &packages, &scratch.join("tree"))?;
            fs::write(scratch.join("major"), major).context("its major number")
        })?;
    Ok((fs::read_to_string(directory.join("major"))?, directory.join("tree/usr/include")))
}

/// The newer release, on a machine.
///
/// # Errors
/// Where neither of the releases can be had, or only the peers' own.
pub(crate) fn newer(machine: Machine, cache: &Cache, apt: &mut Apt) -> Result<Newer> {
    let request = format!("{RELEASES:?} {PACKAGES:?} {PARTS:?}");
    let directory =
        cache.keep(&packages::for_machine("rdma-core", machine)?, &request, |scratch| {
            for release in RELEASES {
                match apt.on(machine, |apt| fetch(release, scratch, apt)) {
                    Ok(()) => return Ok(()),
                    Err(error) => {
                        status(&format!("NO RDMA-CORE OF {}: {error:#}", release.name()));
                        for entry in fs::read_dir(scratch)? {
                            fs::remove_dir_all(entry?.path())?;
                        }
                    }
                }
            }
            bail!("no newer release of rdma-core can be had, with its source")
        })?;
    let about = fs::read_to_string(directory.join("about"))?;
    status(&format!("the newer release of rdma-core for {} is {about}", machine.name));
    let tree = directory.join("tree");
    Ok(Newer {
        rdma_core: RdmaCore {
            major: major(machine, &tree)?,
            headers: directory.join("include"),
            tree,
        },
        source: directory.join("source"),
        about,
    })
}

fn fetch(release: Release, scratch: &Path, apt: &mut Apt) -> Result<()> {
    let (binary, source) = offered(release, apt)?;
    status(&format!("{}: fetching rdma-core {} and its source", release.name(), binary.version));
    let upstream = scratch.join("upstream");
    apt.unpack_upstream(release, &source, &upstream)?;
    fs::create_dir(scratch.join("source"))?;
    for part in PARTS {
        let kept = scratch.join("source").join(part);
        fs::rename(upstream.join(part), kept)
            .with_context(|| format!("its source has no {part}"))?;
    }
    fs::remove_dir_all(upstream)?;

    let tree = scratch.join("tree");
    fs::create_dir(&tree)?;
    let names = PACKAGES.map(|name| format!("{name}={}", binary.version));
    apt.unpack_closure(release, release.name(), &names.each_ref().map(String::as_str), &tree)?;
    packages::usual_links(&tree)?;
    // Beside each other, without its C library's: programs are compiled with that of the peers.
    fs::create_dir(scratch.join("include"))?;
    fs::rename(tree.join("usr/include/infiniband"), scratch.join("include/infiniband"))?;
    for part in ["usr/share", "usr/include"] {
        fs::remove_dir_all(tree.join(part))?;
    }
    fs::write(scratch.join("about"), format!("{} of {}", binary.version, release.name()))?;
    Ok(())
}

/// The newest version that is there both as packages and as source.
fn offered(release: Release, apt: &mut Apt) -> Result<(Package, Package)> {
    let binaries = apt.versions(release, "libibverbs1")?;
    let sources = apt.sources(release, "rdma-core")?;
    for binary in binaries {
        let built_from = source_version(&binary.version);
        if let Some(source) = sources.iter().find(|source| source.version == built_from) {
            return Ok((binary, source.clone()));
        }
    }
    bail!("the mirror does not offer both packages and source of rdma-core")
}

/// The version of the source that a package was built of: without the number of a rebuild.
fn source_version(version: &str) -> &str {
    match version.rsplit_once("+b") {
        Some((source, number)) if number.bytes().all(|digit| digit.is_ascii_digit()) => source,
        _ => version,
    }
}

/// rdma-core's major number, from its libraries' file names: `libibverbs.so.1.14.44.0`.
fn major(machine: Machine, tree: &Path) -> Result<String> {
    let library = fs::read_link(tree.join(machine.libraries()).join("libibverbs.so.1"));
    let library = library.context("the tree has no libibverbs")?;
    let name = library.to_string_lossy();
    let major = name.rsplit('.').nth(1).context("the library's name has no number")?;
    Ok(major.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rebuilds_have_the_source_that_was_built_first() {
        assert_eq!(source_version("65.0-1.1+b2"), "65.0-1.1");
        assert_eq!(source_version("65.0-1.1"), "65.0-1.1");
        assert_eq!(source_version("56.1-1+bpo1"), "56.1-1+bpo1");
    }
}
