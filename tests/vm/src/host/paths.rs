//! Where things are on the host.

use anyhow::{Context, Result};
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

/// The folder of this package. The value of `cargo run` comes before that of the build: the checkout may
/// have moved since.
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

/// The folder of downloads: `UVERBS_VM_CACHE`, otherwise in cargo's target folder.
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
