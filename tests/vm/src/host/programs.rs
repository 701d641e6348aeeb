//! The programs of ours that run in the guest: static builds for musl, and the C peers.

use crate::apt::{Apt, Checked};
use crate::cache::Cache;
use crate::musl::{self, Architecture};
use crate::paths;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What the static programs are built for.
const TARGET: &str = "x86_64-unknown-linux-musl";

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

/// The flags that rustc needs to build static programs.
pub(crate) fn musl_flags(cache: &Cache, apt: &mut Apt) -> Result<Option<String>> {
    let sysroot = musl::sysroot(Architecture::X86_64, cache, apt)?;
    Ok(sysroot.map(|sysroot| format!("--sysroot={}", sysroot.display())))
}

/// Builds our static programs. The command line is the file that is released.
pub(crate) fn build_static(cache: &Cache, apt: &mut Apt) -> Result<Static> {
    let sysroot = musl::sysroot(Architecture::X86_64, cache, apt)?;
    let target = paths::target();
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--quiet", "--release", "--target", TARGET, "--target-dir"]).arg(&target);
    cargo.args(["--package", "uverbs-vm", "--bin", "guest", "--no-default-features"]);
    if let Some(flags) = musl_flags(cache, apt)? {
        // Cargo would take these instead.
        cargo.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
        cargo.env(FLAGS, flags);
    }
    run(&mut cargo)?;

    let released = target.join("static").join(TARGET);
    let mut build = Command::new(paths::workspace().join("packaging/build"));
    build.arg(TARGET).arg(&released).env("CARGO_TARGET_DIR", &target);
    // It cannot ask us for it: we hold the cache.
    build.env("UVERBS_MUSL_SYSROOT", sysroot.unwrap_or_default());
    run(&mut build)?;
    Ok(Static { guest: target.join(TARGET).join("release/guest"), uverbs: released.join("uverbs") })
}

/// Runs a command of the workspace's. Its messages are for the person at the terminal, but stdout
/// is a tried command's.
fn run(command: &mut Command) -> Result<()> {
    command.current_dir(paths::workspace()).stdin(Stdio::null()).stdout(Stdio::null());
    let status = command.status().with_context(|| format!("starting {command:?}"))?;
    ensure!(status.success(), "{command:?}: {status}");
    Ok(())
}

/// Compiles every `peer/NAME.c` against the headers and libraries of the peers' tree, the C
/// library included: the host's own may be newer than the one in the guest.
pub(crate) fn build_peers(tree: &Path) -> Result<Vec<PathBuf>> {
    let into = paths::target().join("vm-peers");
    fs::create_dir_all(&into)?;
    let mut programs = Vec::new();
    for entry in fs::read_dir(paths::package().join("peer"))? {
        let source = entry?.path();
        let Some(name) =
            source.file_stem().filter(|_| source.extension().is_some_and(|it| it == "c"))
        else {
            continue;
        };
        let program = into.join(name);
        Command::new("cc")
            .arg(format!("--sysroot={}", tree.display()))
            .args(["-std=gnu11", "-O1", "-g0", "-Wall", "-Wextra", "-Werror", "-o"])
            .arg(&program)
            .arg(&source)
            .args(["-libverbs", "-lmlx5", "-libumad"])
            .checked()?;
        programs.push(program);
    }
    programs.sort();
    Ok(programs)
}
