//! What static programs are built with: Rust's standard library for musl, made by
//! `musl-sysroot.sh`, and musl for C programs. Of what rustup has for the purpose the source is
//! taken, where it is installed, else Debian's.

use crate::apt::{Apt, BOOKWORM, Checked, FORKY, Package, Release, SID, TRIXIE};
use crate::cache::Cache;
use crate::{paths, status};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A kind of machine that static programs are built for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Architecture {
    /// That of the guest.
    #[value(name = "x86_64-unknown-linux-musl")]
    X86_64,
    /// 64-bit Arm.
    #[value(name = "aarch64-unknown-linux-musl")]
    Aarch64,
}

impl Architecture {
    /// Rust's name, and GCC's.
    fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
        }
    }

    /// The target's name.
    pub(crate) fn target(self) -> String {
        format!("{}-unknown-linux-musl", self.name())
    }
}

/// What builds for a target want to know, as environment variables: `UVERBS_MUSL` is a tree with
/// musl's headers, `UVERBS_MUSL_SYSROOT` the sysroot for rustc; empty where it is rustup's.
pub(crate) fn environment(
    architecture: Architecture,
    cache: &Cache,
    apt: &mut Apt,
) -> Result<[(&'static str, PathBuf); 2]> {
    let sysroot = sysroot(architecture, cache, apt)?.unwrap_or_default();
    let library = c_library(architecture, cache, apt)?;
    Ok([("UVERBS_MUSL", library), ("UVERBS_MUSL_SYSROOT", sysroot)])
}

/// The sysroot for a target. None where it cannot be made, but rustup's target is installed.
pub(crate) fn sysroot(
    architecture: Architecture,
    cache: &Cache,
    apt: &mut Apt,
) -> Result<Option<PathBuf>> {
    let target = architecture.target();
    let about = rustc(&["--version", "--verbose"])?;
    let rust =
        about.lines().find_map(|line| line.strip_prefix("release: ")).context("rustc's release")?;
    let library = match rust_library(rust, cache, apt) {
        Ok(library) => library,
        Err(error) => {
            let installed = rustc(&["--print", "target-libdir", "--target", &target])?;
            if Path::new(installed.trim()).exists() {
                status(&format!("rustup's {target} it is, which makes larger files: {error:#}"));
                return Ok(None);
            }
            return Err(error);
        }
    };
    let parts = c_library(architecture, cache, apt)?;
    let script = paths::package().join("musl-sysroot.sh");
    // A cache may be moved, rustup's component may not.
    let whose = library.strip_prefix(cache.path("")).unwrap_or(&library).display();
    let request = format!("{about}\n{whose}\n{}", fs::read_to_string(&script)?);
    let name = format!("musl-sysroot-{}", architecture.name());
    let sysroot = cache.keep(&name, &request, |scratch| {
        status(&format!("building Rust {rust}'s standard library for {target}: minutes, once"));
        let mut make = Command::new("sh");
        make.arg(&script).arg(architecture.name()).args([&parts, &library]).arg(scratch);
        make.checked().map(drop)
    })?;
    Ok(Some(sysroot))
}

/// musl with its headers, and an unwinder; bookworm's, since it wants the least of its C library.
pub(crate) fn c_library(
    architecture: Architecture,
    cache: &Cache,
    apt: &mut Apt,
) -> Result<PathBuf> {
    let all = [(TRIXIE, "musl-dev"), (BOOKWORM, "libunwind-19-dev")];
    let request = all.map(|(release, name)| format!("{name} of {}", release.name())).join(", ");
    let name = format!("musl-{}", architecture.name());
    cache.keep(&name, &request, |scratch| {
        status(&format!("fetching musl for {}", architecture.name()));
        let mut foreign;
        let apt = match architecture {
            Architecture::X86_64 => apt,
            Architecture::Aarch64 => {
                foreign = Apt::of("arm64", cache.path("apt-arm64"));
                &mut foreign
            }
        };
        for (release, name) in all {
            let package = newest(apt, release, name)?;
            apt.unpack(release, &[package], scratch)?;
        }
        Ok(())
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

fn newest(apt: &mut Apt, release: Release, name: &str) -> Result<Package> {
    let versions = apt.versions(release, name)?;
    versions.into_iter().next().with_context(|| format!("the mirror offers no {name}"))
}

fn rustc(arguments: &[&str]) -> Result<String> {
    Command::new("rustc").args(arguments).current_dir(paths::workspace()).checked()
}
