//! Kernel modules that Debian does not build, built against the headers of exactly the kernels that are booted: our
//! own, and soft iWARP (`siw`) of the kernel's own source.
//!
//! Headers and source are fetched and unpacked like everything else, used by `modules/build.sh`, and
//! deleted; what stays are the modules and the source of siw.

use crate::apt::{Apt, Checked, Package, Release};
use crate::cache::Cache;
use crate::{paths, status};
use anyhow::{Context, Result, bail};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use uverbs_vm::NO_SIW;

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

/// The modules that were built for a kernel.
#[derive(Debug, Clone)]
pub(crate) struct Modules {
    /// Their folder.
    pub(crate) folder: PathBuf,
    /// Soft iWARP is among them; or why not.
    pub(crate) siw: Result<(), Lack>,
}

/// The modules for this version of a kernel; one of `releases` has its headers.
pub(crate) fn get(
    series: &str,
    version: &str,
    releases: &[Release],
    cache: &Cache,
    apt: &mut Apt,
) -> Result<Modules, Lack> {
    let made = make(series, version, releases, cache, apt).map_err(|error| {
        let why = format!("{error:#}");
        status(&format!("NO MODULES OF OURS FOR {version}: {why}"));
        Lack { why, is_broken: error.is::<DoesNotBuild>() }
    })?;
    if let Err(Lack { why, .. }) = &made.siw {
        status(&format!("NO SIW FOR {version}: {why}"));
    }
    Ok(made)
}

fn make(
    series: &str,
    version: &str,
    releases: &[Release],
    cache: &Cache,
    apt: &mut Apt,
) -> Result<Modules> {
    let siw = siw_source(series, version, releases, cache, apt);
    let modules = paths::package().join("modules");
    let (recipe, source) = (modules.join("build.sh"), modules.join("ib_switch"));
    // Modules that were built while the source of siw could not be had are built again when it can.
    let with = if siw.is_ok() { "with siw" } else { "without siw" };
    let mut request = format!("{version} {with}\n{}", fs::read_to_string(&recipe)?);
    for file in sorted_files(&source)? {
        request += &fs::read_to_string(&file)?;
    }
    let directory = cache.keep(&format!("modules-{series}"), &request, |scratch| {
        status(&format!("{series}: building our modules for {version}"));
        let tree = scratch.join("tree");
        unpack_headers(version, releases, apt, &tree)?;
        let into = scratch.join("modules");
        fs::create_dir(&into)?;
        let build = |source: &Path| {
            let mut sh = Command::new("sh");
            sh.arg(&recipe).args([tree.as_path(), source, &into]).checked()
        };
        build(&source).context(DoesNotBuild)?;
        // Without it only its scenarios do not run, and say so.
        if let Err(error) = siw.as_deref().map_or(Ok(String::new()), build) {
            fs::write(into.join(NO_SIW), format!("{error:#}"))?;
        }
        fs::remove_dir_all(&tree).context("removing the headers")
    })?;
    let folder = directory.join("modules");
    let siw = match siw {
        Err(error) => {
            let why = format!("{error:#}");
            fs::write(folder.join(NO_SIW), &why)?;
            Err(Lack { why, is_broken: false })
        }
        Ok(_) => fs::read_to_string(folder.join(NO_SIW))
            .map_or(Ok(()), |why| Err(Lack { why, is_broken: true })),
    };
    Ok(Modules { folder, siw })
}

/// The source of soft iWARP for this version of a kernel, with a Kbuild file for building it without the rest. Of the
/// kernel's whole source, which is more than 100 MB, nothing else stays.
fn siw_source(
    series: &str,
    version: &str,
    releases: &[Release],
    cache: &Cache,
    apt: &mut Apt,
) -> Result<PathBuf> {
    let mut numbers = version.split('.');
    let (Some(number), Some(level)) = (numbers.next(), numbers.next()) else {
        bail!("{version} is no version of a kernel");
    };
    let name = format!("linux-source-{number}.{level}");
    let request = format!("siw of {name} {version}");
    let directory = cache.keep(&format!("siw-{series}"), &request, |scratch| {
        let (release, package) = with_version(version, &name, releases, apt)?
            .with_context(|| format!("the mirror does not offer {name} {version}"))?;
        status(&format!("{series}: fetching {name}, which is large, for siw"));
        let whole = scratch.join("whole");
        apt.unpack(release, &[package], &whole)?;
        let folder = format!("{name}/drivers/infiniband/sw/siw");
        let archive = whole.join(format!("usr/src/{name}.tar.xz"));
        let mut tar = Command::new("tar");
        tar.arg("-xf").arg(archive).arg("-C").arg(&whole).arg(&folder).checked()?;
        let source = scratch.join("source");
        fs::rename(whole.join(folder), &source)?;
        let mut objects = Vec::new();
        for file in sorted_files(&source)? {
            if file.extension().is_some_and(|extension| extension == "c") {
                let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                objects.push(format!("{stem}.o"));
            }
        }
        let kbuild = format!("obj-m := siw.o\nsiw-y := {}\n", objects.join(" "));
        fs::write(source.join("Kbuild"), kbuild)?;
        fs::remove_dir_all(whole).context("removing the kernel's source")
    })?;
    Ok(directory.join("source"))
}

/// This version of a package, and the release that offers it.
fn with_version(
    version: &str,
    name: &str,
    releases: &[Release],
    apt: &mut Apt,
) -> Result<Option<(Release, Package)>> {
    for &release in releases {
        let offered = apt.versions(release, name)?;
        if let Some(package) = offered.into_iter().find(|package| package.version == version) {
            return Ok(Some((release, package)));
        }
    }
    Ok(None)
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
    // They want kbuild of their own version or of a newer one, and a mirror may have only that.
    let versions = apt.versions(release, &kbuild)?;
    let own = versions.iter().find(|package| package.version == version);
    let Package { name, version } =
        own.or(versions.first()).with_context(|| format!("the mirror does not offer {kbuild}"))?;
    apt.unpack_closure(release, release.name(), &[&format!("{name}={version}")], tree)
}

/// The packages with a kernel's headers.
#[derive(Debug)]
pub(crate) struct Headers {
    machine: Package,
    /// What is the same for all machines.
    pub(crate) common: Package,
    /// The name of kbuild's package.
    kbuild: String,
}

/// What the meta package of a kernel's headers leads to.
pub(crate) fn headers(release: Release, meta: &Package, apt: &mut Apt) -> Result<Headers> {
    let one = |names: Vec<String>, is_it: &dyn Fn(&str) -> bool| {
        let name = names.into_iter().find(|name| is_it(name));
        name.with_context(|| format!("{meta:?} leads to no headers"))
    };
    let own = |name| Package { name, version: meta.version.clone() };
    let machine =
        own(one(apt.depends(release, meta)?, &|name| name.starts_with("linux-headers-"))?);
    let parts = apt.depends(release, &machine)?;
    let common = own(one(parts.clone(), &|name| name.ends_with("-common"))?);
    let kbuild = one(parts, &|name| name.starts_with("linux-kbuild-"))?;
    Ok(Headers { machine, common, kbuild })
}

/// The release that offers the headers of this version, and their meta package.
fn offered(version: &str, releases: &[Release], apt: &mut Apt) -> Result<(Release, Package)> {
    with_version(version, "linux-headers-amd64", releases, apt)?.with_context(|| {
        format!(
            "the mirror offers no headers of {version}; a newer kernel is fetched by `vm fetch --refresh`"
        )
    })
}
