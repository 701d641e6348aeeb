//! What static programs are built with: Rust's standard library for musl, made by
//! `musl-sysroot.sh`, and musl for C programs. Of what rustup has for the purpose the source is
//! taken, where it is installed, else Debian's.

use crate::apt::{Apt, BOOKWORM, Checked, FORKY, Package, Release, SID, TRIXIE};
use crate::cache::Cache;
use crate::machines::Machine;
use crate::{paths, programs, status};
use anyhow::{Context, Result, bail};
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What builds for a machine want to know, as environment variables: `UVERBS_MUSL` is a tree with
/// musl's headers, `UVERBS_MUSL_SYSROOT` the sysroot for rustc; empty where it is rustup's.
///
/// # Errors
/// Static files for the machine are not built for musl, or a part of what builds them is not available.
pub(crate) fn environment(
    machine: Machine,
    cache: &Cache,
    apt: &mut Apt,
) -> Result<[(&'static str, PathBuf); 2]> {
    let sysroot = sysroot(machine, cache, apt)?.unwrap_or_default();
    let library = c_library(machine, cache, apt)?;
    Ok([("UVERBS_MUSL", library), ("UVERBS_MUSL_SYSROOT", sysroot)])
}

/// The sysroot for a target. None where it cannot be made, but rustup's target is installed.
pub(crate) fn sysroot(machine: Machine, cache: &Cache, apt: &mut Apt) -> Result<Option<PathBuf>> {
    let target = machine.target;
    let folder = machine.musl.with_context(|| format!("{target} has no musl"))?;
    let about = rustc(&["--version", "--verbose"])?;
    let rust =
        about.lines().find_map(|line| line.strip_prefix("release: ")).context("rustc's release")?;
    let library = match rust_library(rust, cache, apt) {
        Ok(library) => library,
        Err(error) => {
            let installed = rustc(&["--print", "target-libdir", "--target", target])?;
            if Path::new(installed.trim()).exists() {
                status(&format!("rustup's {target} it is, which makes larger files: {error:#}"));
                return Ok(None);
            }
            return Err(error);
        }
    };
    let parts = c_library(machine, cache, apt)?;
    let script = paths::package().join("musl-sysroot.sh");
    // A cache may be moved, rustup's component may not.
    let whose = library.strip_prefix(cache.path("")).unwrap_or(&library).display();
    let request = format!("{about}\n{whose}\n{}", fs::read_to_string(&script)?);
    // Cargo does not see that the library at a path is another one, and what was built with the old one fails
    // to link. So each has a path of its own.
    let mut hasher = DefaultHasher::new();
    request.hash(&mut hasher);
    let own = format!("{:016x}", hasher.finish());
    let name = format!("musl-sysroot-{}", machine.name);
    let sysroot = cache.keep(&name, &format!("{own}\n{request}"), |scratch| {
        status(&format!("building Rust {rust}'s standard library for {target}: minutes, once"));
        let into = scratch.join(&own);
        fs::create_dir(&into)?;
        let mut make = Command::new("sh");
        make.arg(&script).args([target, machine.cross().unwrap_or_default(), folder]);
        make.args([&parts, &library]).arg(into);
        if let Some(tools) = machine.cross() {
            // Where programs are not static by default, the library is linked, too.
            make.env(programs::variable(target, "LINKER"), format!("{tools}-gcc"));
        }
        make.checked().map(drop)
    })?;
    Ok(Some(sysroot.join(own)))
}

/// musl with its headers, and an unwinder; bookworm's, since it wants the least of its C library.
pub(crate) fn c_library(machine: Machine, cache: &Cache, apt: &mut Apt) -> Result<PathBuf> {
    let all = [(TRIXIE, "musl-dev"), (BOOKWORM, "libunwind-19-dev")];
    let request = all.map(|(release, name)| format!("{name} of {}", release.name())).join(", ");
    let name = format!("musl-{}", machine.name);
    cache.keep(&name, &request, |scratch| {
        status(&format!("fetching musl for {}", machine.name));
        apt.on(machine, |apt| {
            for (release, name) in all {
                // A mirror may lack a release for some machines.
                let (release, package) = newest(apt, [release, FORKY, SID], name)?;
                apt.unpack(release, &[package], scratch)?;
            }
            Ok(())
        })
    })
}

/// The source of this Rust's standard library: rustup's component `rust-src`, or Debian's package.
fn rust_library(rust: &str, cache: &Cache, apt: &mut Apt) -> Result<PathBuf> {
    let own = rustc(&["--print", "sysroot"])?;
    let component = Path::new(own.trim()).join("lib/rustlib/src/rust/library");
    if component.exists() {
        return Ok(component);
    }
    let directory = cache.keep("rust-library", &format!("rust-src {rust}"), |scratch| {
        status(&format!("fetching the source of Rust {rust}'s standard library"));
        for release in [TRIXIE, FORKY, SID] {
            for package in apt.versions(release, "rust-src")? {
                if package.version.starts_with(&format!("{rust}+")) {
                    let whole = scratch.join("whole");
                    apt.unpack(release, &[package], &whole)?;
                    let folder = whole.join(format!("usr/src/rustc-{rust}/library"));
                    fs::rename(&folder, scratch.join("library"))
                        .with_context(|| folder.display().to_string())?;
                    return Ok(fs::remove_dir_all(whole)?);
                }
            }
        }
        bail!("the mirror has no source of Rust {rust}; `rustup component add rust-src` has")
    })?;
    Ok(directory.join("library"))
}

/// The newest version of the first release that offers any.
fn newest(apt: &mut Apt, releases: [Release; 3], name: &str) -> Result<(Release, Package)> {
    for release in releases {
        if let Some(newest) = apt.versions(release, name)?.into_iter().next() {
            return Ok((release, newest));
        }
    }
    bail!("the mirror offers no {name}")
}

fn rustc(arguments: &[&str]) -> Result<String> {
    Command::new("rustc").args(arguments).current_dir(paths::workspace()).checked()
}
