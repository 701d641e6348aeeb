//! Where things are on the host.

use anyhow::{Context, Result};
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

/// The folder of this package. What `cargo run` says now goes before what was so at build time:
/// the checkout may have been moved since.
pub(crate) fn package() -> PathBuf {
    env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from)
}

/// The workspace's folder.
pub(crate) fn workspace() -> PathBuf {
    package().join("../..")
}

/// Cargo's target directory.
pub(crate) fn target() -> PathBuf {
    match env::var_os("CARGO_TARGET_DIR") {
        Some(directory) => std::path::absolute(&directory).unwrap_or_else(|_| directory.into()),
        None => workspace().join("target"),
    }
}

/// What was fetched: `UVERBS_VM_CACHE`, else beside what cargo builds.
pub(crate) fn cache() -> PathBuf {
    env::var_os("UVERBS_VM_CACHE").map_or_else(|| target().join("vm-cache"), PathBuf::from)
}

/// The logs of a boot.
pub(crate) fn logs(boot: &str) -> PathBuf {
    target().join("vm-logs").join(boot)
}

/// The files of a folder whose names end so.
pub(crate) fn with_extension(folder: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let file = entry?.path();
        if file.extension() == Some(OsStr::new(extension)) {
            files.push(file);
        }
    }
    Ok(files)
}
