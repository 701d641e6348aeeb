//! What was fetched and unpacked, kept between runs: a directory for each thing, marked with
//! the request that it was made for. While the request is the same, nothing is fetched again.

use anyhow::{Context, Result};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// The file that says what a directory was made for; written last.
const MARK: &str = "made-for";

/// The cache's directory, locked by this process.
#[derive(Debug)]
pub(crate) struct Cache {
    root: PathBuf,
    /// Fetch everything again.
    refresh: bool,
    _lock: File,
}

impl Cache {
    /// Opens the cache; waits while another process has it open.
    pub(crate) fn open(root: PathBuf, refresh: bool) -> Result<Self> {
        fs::create_dir_all(&root).with_context(|| format!("creating {}", root.display()))?;
        let lock = File::create(root.join("lock"))?;
        lock.lock().context("locking the cache")?;
        Ok(Self { root, refresh, _lock: lock })
    }

    /// The path of something in the cache.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// The directory `name`, made for `request`: as it is if it was made for the same request,
    /// otherwise filled again by `make`. An interrupted or failed `make` leaves the old one.
    pub(crate) fn keep(
        &self,
        name: &str,
        request: &str,
        make: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<PathBuf> {
        let directory = self.root.join(name);
        let made_for = fs::read_to_string(directory.join(MARK)).unwrap_or_default();
        if made_for == request && !self.refresh {
            return Ok(directory);
        }
        let scratch = self.root.join(format!("{name}.new"));
        remove(&scratch)?;
        fs::create_dir_all(&scratch)?;
        make(&scratch)?;
        fs::write(scratch.join(MARK), request)?;
        remove(&directory)?;
        fs::rename(&scratch, &directory)?;
        Ok(directory)
    }
}

fn remove(directory: &Path) -> Result<()> {
    if directory.exists() {
        fs::remove_dir_all(directory)
            .with_context(|| format!("removing {}", directory.display()))?;
    }
    Ok(())
}
