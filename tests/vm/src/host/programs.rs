//! This project's programs that run in the guest: static builds for musl, and the library that C programs
//! are linked with.

use crate::apt::{Apt, Checked};
use crate::cache::Cache;
use crate::machines::Machine;
use crate::times::timed;
use crate::{musl, paths};
use anyhow::{Context, Result, ensure};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Our static programs.
#[derive(Debug)]
pub(crate) struct Static {
    /// PID 1.
    pub(crate) guest: PathBuf,
    /// The library's examples.
    pub(crate) examples: Vec<PathBuf>,
    /// The folder of what is released: the command line, and the library for C.
    pub(crate) released: PathBuf,
}

/// Builds our static files for a machine.
pub(crate) fn build_static(machine: Machine, cache: &Cache, apt: &mut Apt) -> Result<Static> {
    let sysroot = match machine.musl {
        Some(_) => musl::sysroot(machine, cache, apt)?,
        None => None,
    };
    let name = machine.target;
    let mut flags = Vec::new();
    if let Some(sysroot) = &sysroot {
        flags.push(format!("--sysroot={}", sysroot.display()));
    }
    let by_default = Command::new("rustc").args(["--print", "cfg", "--target", name]).checked()?;
    if !by_default.contains("crt-static") {
        flags.push("-Ctarget-feature=+crt-static".to_owned());
    }
    let flags = (!flags.is_empty()).then(|| flags.join(" "));
    let mut guest = cargo("build", name, flags.as_deref());
    // It is built after every change, and its size is no matter.
    guest.env("CARGO_PROFILE_RELEASE_LTO", "off").env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16");
    guest.args(["--package", "uverbs-vm", "--bin", "guest"]);
    guest.args(["--no-default-features", "--features", "uverbs-vm/scenarios"]);
    guest.args(["--package", "uverbs", "--examples"]);
    if let Some(tools) = machine.cross() {
        guest.env(variable(name, "LINKER"), format!("{tools}-gcc"));
    }
    timed("building the guest and the examples", || run(&mut guest))?;

    let target = paths::target();
    let released = target.join("static").join(name);
    let mut build = Command::new(paths::workspace().join("src/packaging/build"));
    build.arg(name).arg(&released).env("CARGO_TARGET_DIR", &target);
    // It cannot ask us for it: we hold the cache.
    build.env("UVERBS_MUSL_SYSROOT", sysroot.unwrap_or_default());
    timed("building what is released", || run(&mut build))?;
    let folder = target.join(name).join("release");
    let names = paths::with_extension(&paths::package().join("../examples"), "rs")?;
    let names = names.iter().filter_map(|source| source.file_stem());
    let examples = names.map(|name| folder.join("examples").join(name)).collect();
    Ok(Static { guest: folder.join("guest"), examples, released })
}

/// Builds our library for C, static, for a machine's glibc.
///
/// # Errors
/// Rust's standard library for it is not installed.
pub(crate) fn build_library(machine: Machine) -> Result<PathBuf> {
    let target = machine.glibc;
    let mut rustc = cargo("rustc", target, None);
    rustc.args(["--package", "uverbs", "--lib", "--features", "capi"]);
    run(rustc.args(["--crate-type", "staticlib"]))?;
    Ok(paths::target().join(target).join("release/libuverbs.a"))
}

/// The same without optimisation.
///
/// # Errors
/// Rust's standard library for it is not installed.
pub(crate) fn build_plain_library(machine: Machine) -> Result<PathBuf> {
    let target = machine.glibc;
    let mut rustc = Command::new("cargo");
    rustc.args(["rustc", "--quiet", "--target", target, "--target-dir"]).arg(paths::target());
    rustc.args(["--package", "uverbs", "--lib", "--features", "capi"]);
    rustc.args(["--crate-type", "staticlib"]).current_dir(paths::workspace());
    run(&mut rustc)?;
    Ok(paths::target().join(target).join("debug/libuverbs.a"))
}

/// The same with the compiler's checks of every access to memory. Only a compiler that accepts
/// unstable features has them, hence `RUSTC_BOOTSTRAP`.
pub(crate) fn build_sanitized_library(target: &str) -> Result<PathBuf> {
    let into = paths::target().join("sanitized");
    let mut rustc = Command::new("cargo");
    rustc.args(["rustc", "--quiet", "--release", "--target", target, "--target-dir"]).arg(&into);
    rustc.args(["--package", "uverbs", "--lib", "--features", "capi"]);
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
    cargo.arg(paths::target()).current_dir(paths::workspace());
    if let Some(flags) = flags {
        // Cargo would take these instead.
        cargo.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
        cargo.env(variable(target, "RUSTFLAGS"), flags);
    }
    cargo
}

/// The name of cargo's environment variable of only this target.
pub(crate) fn variable(target: &str, what: &str) -> String {
    format!("CARGO_TARGET_{}_{what}", target.to_uppercase().replace('-', "_"))
}

/// Its messages are for the person at the terminal, but stdout is a tried command's.
fn run(command: &mut Command) -> Result<()> {
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status();
    let status = status.with_context(|| format!("starting {command:?}"))?;
    ensure!(status.success(), "{command:?}: {status}");
    Ok(())
}
