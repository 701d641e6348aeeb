//! The programs of ours that run in the guest: static musl builds by cargo, and the library
//! that C programs are linked with.

use crate::apt::{Apt, Checked};
use crate::cache::Cache;
use crate::{packages, paths, status};
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What the static programs are built for.
pub(crate) const TARGET: &str = "x86_64-unknown-linux-musl";

/// The environment variable by which cargo gives flags to rustc for that target alone.
pub(crate) const FLAGS: &str = "CARGO_TARGET_X86_64_UNKNOWN_LINUX_MUSL_RUSTFLAGS";

/// Our static programs.
#[derive(Debug)]
pub(crate) struct Static {
    /// PID 1.
    pub(crate) guest: PathBuf,
    /// The command line.
    pub(crate) uverbs: PathBuf,
}

/// The flags that rustc needs to build static programs: none where the target is installed,
/// else a sysroot with a standard library made here.
pub(crate) fn musl_flags(cache: &Cache, apt: &mut Apt) -> Result<Option<String>> {
    let libraries = rustc(&["--print", "target-libdir", "--target", TARGET])?;
    if Path::new(libraries.trim()).exists() {
        return Ok(None);
    }
    let about = rustc(&["--version", "--verbose"])?;
    let rust =
        about.lines().find_map(|line| line.strip_prefix("release: ")).context("rustc's release")?;
    let parts = packages::musl_parts(rust, cache, apt)?;
    let script = paths::package().join("musl-sysroot.sh");
    let request = format!("{about}\n{}", fs::read_to_string(&script)?);
    let sysroot = cache.keep("musl-sysroot", &request, |scratch| {
        status(&format!("building Rust {rust}'s standard library for musl: some minutes, once"));
        Command::new("sh").arg(&script).arg(&parts).arg(scratch).checked().map(drop)
    })?;
    Ok(Some(format!("--sysroot={}", sysroot.display())))
}

fn rustc(arguments: &[&str]) -> Result<String> {
    Command::new("rustc").args(arguments).current_dir(paths::workspace()).checked()
}

/// Builds our static programs.
pub(crate) fn build_static(cache: &Cache, apt: &mut Apt) -> Result<Static> {
    let flags = musl_flags(cache, apt)?;
    let build = |arguments: &[&str]| {
        let mut cargo = cargo("build", TARGET, flags.as_deref());
        run(cargo.args(arguments))
    };
    build(&["--package", "uverbs-vm", "--bin", "guest", "--no-default-features"])?;
    build(&["--package", "uverbs", "--bin", "uverbs"])?;
    let release = paths::target().join(TARGET).join("release");
    Ok(Static { guest: release.join("guest"), uverbs: release.join("uverbs") })
}

/// Builds our library for C, static, for this target; `flags` are those that rustc needs for it.
pub(crate) fn build_library(target: &str, flags: Option<&str>) -> Result<PathBuf> {
    let mut rustc = cargo("rustc", target, flags);
    rustc.args(["--package", "uverbs", "--lib", "--no-default-features", "--features", "capi"]);
    run(rustc.args(["--crate-type", "staticlib"]))?;
    Ok(paths::target().join(target).join("release/libuverbs.a"))
}

/// The same with the compiler's checks of every access to memory. Only a compiler that accepts
/// unstable features has them, hence `RUSTC_BOOTSTRAP`.
pub(crate) fn build_sanitized_library(target: &str) -> Result<PathBuf> {
    let into = paths::target().join("sanitized");
    let mut rustc = Command::new("cargo");
    rustc.args(["rustc", "--quiet", "--release", "--target", target, "--target-dir"]).arg(&into);
    rustc.args(["--package", "uverbs", "--lib", "--no-default-features", "--features", "capi"]);
    rustc.args(["--crate-type", "staticlib"]);
    rustc.env("RUSTC_BOOTSTRAP", "1").env("RUSTFLAGS", "-Zsanitizer=address");
    rustc.env("CARGO_PROFILE_RELEASE_LTO", "off").env_remove("CARGO_ENCODED_RUSTFLAGS");
    run(rustc.current_dir(paths::workspace()).stdin(Stdio::null()).stdout(Stdio::null()))?;
    Ok(into.join(target).join("release/libuverbs.a"))
}

/// Cargo, about to build for this target.
fn cargo(command: &str, target: &str, flags: Option<&str>) -> Command {
    let mut cargo = Command::new("cargo");
    cargo.args([command, "--quiet", "--release", "--target", target, "--target-dir"]);
    cargo.arg(paths::target()).current_dir(paths::workspace()).stdin(Stdio::null());
    if let Some(flags) = flags {
        // Cargo would take these instead.
        cargo.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
        cargo.env(FLAGS, flags);
    }
    // Its messages are for the person at the terminal, but stdout is a tried command's.
    cargo.stdout(Stdio::null());
    cargo
}

fn run(cargo: &mut Command) -> Result<()> {
    let status = cargo.status().context("starting cargo")?;
    ensure!(status.success(), "{cargo:?}: {status}");
    Ok(())
}
