//! Our own kernel modules, built against the headers of exactly the kernels that are booted.
//!
//! The headers are fetched and unpacked like everything else, used by `modules/build.sh`, and
//! deleted; what stays are the modules.

use crate::apt::{Apt, Checked, Package, Release};
use crate::cache::Cache;
use crate::{paths, status};
use anyhow::{Context, Result, bail};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Why this project's modules do not exist for a kernel.
#[derive(Debug, Clone)]
pub(crate) struct Lack {
    /// In words.
    pub(crate) why: String,
    /// Whether it is their own fault: the headers are there and they do not build.
    pub(crate) is_broken: bool,
}

/// The context of an error of the build itself.
#[derive(Debug)]
struct DoesNotBuild;

impl fmt::Display for DoesNotBuild {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("our modules do not build")
    }
}

/// The folder with our modules for this version of a kernel; one of `releases` has its headers.
pub(crate) fn get(
    series: &str,
    version: &str,
    releases: &[Release],
    cache: &Cache,
    apt: &mut Apt,
) -> Result<PathBuf, Lack> {
    make(series, version, releases, cache, apt).map_err(|error| {
        let why = format!("{error:#}");
        status(&format!("NO MODULES OF OURS FOR {version}: {why}"));
        Lack { why, is_broken: error.is::<DoesNotBuild>() }
    })
}

fn make(
    series: &str,
    version: &str,
    releases: &[Release],
    cache: &Cache,
    apt: &mut Apt,
) -> Result<PathBuf> {
    let modules = paths::package().join("modules");
    let (recipe, source) = (modules.join("build.sh"), modules.join("ib_switch"));
    let mut request = format!("{version}\n{}", fs::read_to_string(&recipe)?);
    for file in sorted_files(&source)? {
        request += &fs::read_to_string(&file)?;
    }
    let directory = cache.keep(&format!("modules-{series}"), &request, |scratch| {
        status(&format!("{series}: building our modules for {version}"));
        let tree = scratch.join("tree");
        unpack_headers(version, releases, apt, &tree)?;
        let into = scratch.join("modules");
        fs::create_dir(&into)?;
        Command::new("sh")
            .arg(&recipe)
            .args([&tree, &source, &into])
            .checked()
            .context(DoesNotBuild)?;
        fs::remove_dir_all(&tree).context("removing the headers")
    })?;
    Ok(directory.join("modules"))
}

fn sorted_files(directory: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(directory)?;
    let mut files = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    files.sort();
    Ok(files)
}

/// Unpacks the headers, and kbuild's programs with the libraries that they need.
fn unpack_headers(version: &str, releases: &[Release], apt: &mut Apt, tree: &Path) -> Result<()> {
    let (release, meta) = offered(version, releases, apt)?;
    let Headers { machine, common, kbuild } = headers(release, &meta, apt)?;
    // Of the headers themselves not all that they depend on: it would be kernel and compiler.
    apt.unpack(release, &[machine, common], tree)?;
    apt.unpack_closure(release, release.name(), &[&format!("{}={version}", kbuild.name)], tree)
}

/// The packages with a kernel's headers.
#[derive(Debug)]
pub(crate) struct Headers {
    machine: Package,
    /// What is the same for all machines.
    pub(crate) common: Package,
    kbuild: Package,
}

/// What the meta package of a kernel's headers leads to.
pub(crate) fn headers(release: Release, meta: &Package, apt: &mut Apt) -> Result<Headers> {
    let one = |names: Vec<String>, is_it: &dyn Fn(&str) -> bool| -> Result<Package> {
        let name = names.into_iter().find(|name| is_it(name));
        let name = name.with_context(|| format!("{meta:?} leads to no headers"))?;
        Ok(Package { name, version: meta.version.clone() })
    };
    let machine = one(apt.depends(release, meta)?, &|name| name.starts_with("linux-headers-"))?;
    let parts = apt.depends(release, &machine)?;
    let common = one(parts.clone(), &|name| name.ends_with("-common"))?;
    let kbuild = one(parts, &|name| name.starts_with("linux-kbuild-"))?;
    Ok(Headers { machine, common, kbuild })
}

/// The release that offers the headers of this version, and their meta package.
fn offered(version: &str, releases: &[Release], apt: &mut Apt) -> Result<(Release, Package)> {
    for &release in releases {
        for package in apt.versions(release, "linux-headers-amd64")? {
            if package.version == version {
                return Ok((release, package));
            }
        }
    }
    bail!(
        "the mirror offers no headers of {version}; a newer kernel is fetched by `vm fetch --refresh`"
    )
}
