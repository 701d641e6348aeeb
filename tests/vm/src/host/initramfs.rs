//! The file system in the guest's memory: our program as `/init`, modules, peers, the job.

use crate::c_programs::{self, Pair};
use crate::kernels::Kernel;
use crate::machines::Machine;
use crate::rdma_core::Newer;
use crate::{NEWER, boards, elf, programs, status};
use anyhow::{Context, Result, bail};
use cpio::newc::{Builder, trailer};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Component, Path, PathBuf};
use uverbs_vm::job::{self, Job};
use uverbs_vm::{NOT_BUILT, OF_32_BITS};

/// The peers' programs, by their paths in Debian.
pub(crate) const PROGRAMS: &[&str] = &[
    "bin/ip",
    "sbin/devlink",
    "usr/bin/ib_send_bw",
    "usr/bin/ibv_asyncwatch",
    "usr/bin/ibv_devices",
    "usr/bin/ibv_devinfo",
    "usr/bin/ibv_rc_pingpong",
    "usr/bin/rdma",
    "usr/bin/strace",
    "usr/sbin/ibstat",
];

/// UCX, and what it opens by its name: only scenarios on the usual machine ask it.
const UCX: [&str; 2] = ["usr/bin/ucx_info", "usr/lib/x86_64-linux-gnu/ucx/libuct_ib.so.0"];

/// Slurm's programs and a shell. Debian's names of its own three have a suffix, which links leave out.
const SLURM: &[&str] = &[
    "bin/busybox",
    "usr/bin/salloc",
    "usr/bin/sbatch",
    "usr/bin/scontrol",
    "usr/bin/srun",
    "usr/sbin/munged",
    "usr/sbin/slurmctld",
    "usr/sbin/slurmd",
    "usr/sbin/slurmstepd",
];

/// The folder of Slurm's plug-ins, below that of the libraries.
const SLURM_LIBRARIES: &str = "slurm-wlm";

/// The plug-ins that it opens by name, beside those that do nothing.
const SLURM_PLUGINS: &[&str] = &[
    "auth_munge",
    "cgroup_v1",
    "cred_munge",
    "gpu_generic",
    "hash_k12",
    "launch_slurm",
    "prep_script",
    "priority_basic",
    "proctrack_pgid",
    "route_default",
    "sched_backfill",
    "select_cons_tres",
    "select_linear",
];

/// The drivers of libibverbs, which it opens by name when it runs; those that are there.
const PROVIDERS: &[&str] = &["rxe", "siw", "mlx5"];

/// A tree of unpacked Debian packages, and where its files go in the guest.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tree<'a> {
    /// The tree.
    pub(crate) directory: &'a Path,
    /// The guest's folder that is its root: nothing, or a path that ends in a slash.
    pub(crate) root: &'a str,
    /// The machine that the packages are for.
    pub(crate) machine: Machine,
}

impl Tree<'_> {
    /// Where libibverbs' drivers are.
    fn drivers(self) -> String {
        format!("{}/libibverbs", self.machine.libraries())
    }

    /// Where a dynamic program's libraries may be.
    fn library_path(self) -> [String; 5] {
        let (triple, libraries) = (self.machine.tools, self.machine.libraries());
        // Slurm's programs name its own folder.
        let slurm = format!("{libraries}/{SLURM_LIBRARIES}");
        [format!("lib/{triple}"), libraries, "lib".to_owned(), "usr/lib".to_owned(), slurm]
    }
}

/// The types and permissions of files.
const FILE: u32 = 0o100_644;
const PROGRAM: u32 = 0o100_755;
const LINK: u32 = 0o120_777;

/// An archive in the making: path in the guest → contents and mode.
#[derive(Debug, Default)]
pub(crate) struct Initramfs {
    files: BTreeMap<String, (Vec<u8>, u32)>,
}

impl Initramfs {
    /// What every boot of a test has: our programs and the peers.
    pub(crate) fn new(init: &Path, tree: Tree) -> Result<Self> {
        let mut this = Self::with(init, &[PROGRAMS, &UCX].concat(), tree)?;
        this.providers(tree)?;
        Ok(this)
    }

    /// Only these of a tree's programs.
    pub(crate) fn with(init: &Path, programs: &[&str], tree: Tree) -> Result<Self> {
        let mut this = Self::default();
        this.program("init", init)?;
        for program in programs {
            this.taken(program, tree)?;
        }
        Ok(this)
    }

    /// Adds libibverbs' drivers that a tree has.
    pub(crate) fn providers(&mut self, tree: Tree) -> Result<()> {
        for provider in PROVIDERS {
            let driver = format!("etc/libibverbs.d/{provider}.driver");
            if !tree.directory.join(&driver).exists() {
                continue;
            }
            self.file(&format!("{}{driver}", tree.root), fs::read(tree.directory.join(&driver))?);
            let library = provider_library(provider, tree)?;
            let path = format!("{}/{library}", tree.drivers());
            let bytes = fs::read(in_tree(tree.directory, &path)?)?;
            // mlx5's is also a library that programs are linked with. It has to be the same file:
            // what is loaded twice does not know its own devices.
            let name = elf::needs(&bytes)?.name.filter(|name| !name.contains("-rdmav"));
            if let Some(name) = name {
                let target = format!("../{name}").into_bytes();
                self.insert(&format!("{}{path}", tree.root), target, LINK);
                self.taken(&format!("{}/{name}", tree.machine.libraries()), tree)?;
            } else {
                self.dynamic(&path, &bytes, tree)?;
            }
        }
        Ok(())
    }

    /// Adds valgrind's memcheck, from the tree with the C library that it knows.
    pub(crate) fn valgrind(&mut self, tree: Tree) -> Result<()> {
        // `valgrind` itself is a script that says where the C library's symbols are.
        self.taken("usr/bin/valgrind.bin", tree)?;
        for tool in [
            "memcheck-amd64-linux",
            "vgpreload_core-amd64-linux.so",
            "vgpreload_memcheck-amd64-linux.so",
        ] {
            self.taken(&format!("usr/libexec/valgrind/{tool}"), tree)?;
        }
        let suppressions = "usr/libexec/valgrind/default.supp";
        self.file(suppressions, fs::read(tree.directory.join(suppressions))?);
        // It replaces functions of the dynamic loader, and finds them by these symbols.
        let loader = fs::read(in_tree(tree.directory, "lib64/ld-linux-x86-64.so.2")?)?;
        let symbols = elf::debug_file(&loader)?;
        self.file(&symbols, fs::read(tree.directory.join(&symbols))?);
        Ok(())
    }

    /// Adds Podman, from the tree of its packages.
    pub(crate) fn podman(&mut self, tree: Tree) -> Result<()> {
        for program in ["usr/bin/podman", "usr/bin/conmon", "usr/bin/crun"] {
            self.taken(program, tree)?;
        }
        Ok(())
    }

    /// Adds Slurm, and our scripts for it where packages install them.
    pub(crate) fn slurm(&mut self, tree: Tree, scripts: &Path) -> Result<()> {
        for program in SLURM {
            let suffixed = format!("{program}-wlm");
            let of_tree =
                if tree.directory.join(&suffixed).exists() { &suffixed } else { *program };
            let bytes = fs::read(in_tree(tree.directory, of_tree)?)?;
            self.dynamic(program, &bytes, tree)?;
        }
        let folder = format!("{}/{SLURM_LIBRARIES}", tree.machine.libraries());
        for entry in fs::read_dir(tree.directory.join(&folder))? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            let Some(plugin) = name.strip_suffix(".so") else { continue };
            if plugin.ends_with("_none") || SLURM_PLUGINS.contains(&plugin) {
                self.taken(&format!("{folder}/{name}"), tree)?;
            }
        }
        for entry in fs::read_dir(scripts)? {
            let file = entry?.path();
            let name = file.file_name().context("a script without a name")?;
            self.program(&format!("usr/share/uverbs/slurm/{}", name.display()), &file)?;
        }
        Ok(())
    }

    /// Adds our command and the library's examples.
    pub(crate) fn ours(&mut self, ours: &programs::Static) -> Result<()> {
        self.program("usr/bin/uverbs", &ours.released.join("uverbs"))?;
        for example in &ours.examples {
            let name = example.file_name().context("an example without a name")?;
            self.program(&format!("usr/bin/{}", name.display()), example)?;
        }
        Ok(())
    }

    /// Adds the newer release of rdma-core in a root of its own, with the C programs that are linked with it.
    pub(crate) fn newer(&mut self, newer: &Newer, builder: &c_programs::Builder) -> Result<()> {
        let directory = &newer.rdma_core.tree;
        let tree = Tree { directory, root: NEWER, machine: builder.machine };
        self.providers(tree)?;
        self.file(&format!("{NEWER}about"), newer.about.clone().into_bytes());
        for pair in builder.peers(&newer.rdma_core)?.iter().chain(&builder.tools(newer)?) {
            self.pair(pair, tree)?;
        }
        Ok(())
    }

    /// Adds the program of 32 bits that a machine's kernel runs, if it runs any.
    pub(crate) fn of_32_bits(
        &mut self,
        builder: &c_programs::Builder,
        machine: Machine,
    ) -> Result<()> {
        let Some(name) = boards::of(machine)?.of_32_bits else { return Ok(()) };
        match builder.of_32_bits(Machine::named(name)?) {
            Ok(program) => self.program(OF_32_BITS.trim_start_matches('/'), &program),
            // The scenario says so again, and counts as skipped.
            Err(error) => {
                status(&format!("NO PROGRAM OF {name}: {error:#}"));
                Ok(())
            }
        }
    }

    /// Adds a C program: in `usr/bin` with rdma-core's libraries, in `usr/uverbs` with ours.
    pub(crate) fn pair(&mut self, pair: &Pair, tree: Tree) -> Result<()> {
        for (folder, program) in
            [("usr/bin", &pair.with_rdma_core), ("usr/uverbs", &pair.with_uverbs)]
        {
            self.dynamic(&format!("{folder}/{}", pair.name), &fs::read(program)?, tree)?;
        }
        // The C library loads it when a thread is cancelled.
        self.taken(&library_of("libgcc_s.so.1", tree)?, tree)
    }

    /// Adds a static program.
    pub(crate) fn program(&mut self, path: &str, file: &Path) -> Result<()> {
        let bytes = fs::read(file).with_context(|| format!("reading {}", file.display()))?;
        self.insert(path, bytes, PROGRAM);
        Ok(())
    }

    /// Adds a file that is no program.
    pub(crate) fn file(&mut self, path: &str, bytes: Vec<u8>) {
        self.insert(path, bytes, FILE);
    }

    /// Adds a dynamic program or library of a tree, where it is in the tree, with all that it needs.
    pub(crate) fn taken(&mut self, path: &str, tree: Tree) -> Result<()> {
        self.dynamic(path, &fs::read(in_tree(tree.directory, path)?)?, tree)
    }

    /// Adds a dynamic program or library with all libraries it needs, taken from a tree.
    pub(crate) fn dynamic(&mut self, path: &str, bytes: &[u8], tree: Tree) -> Result<()> {
        let place = format!("{}{path}", tree.root);
        if self.files.contains_key(&place) {
            return Ok(());
        }
        let needs = elf::needs(bytes).with_context(|| format!("reading {path}"))?;
        self.insert(&place, bytes.to_vec(), PROGRAM);
        let mut found: Vec<String> =
            needs.loader.iter().map(|path| path.trim_start_matches('/').to_owned()).collect();
        for library in needs.libraries {
            found.push(library_of(&library, tree).with_context(|| format!("for {path}"))?);
        }
        for place in found {
            self.taken(&place, tree)?;
        }
        Ok(())
    }

    /// How many bytes are in it, before they are compressed.
    pub(crate) fn size(&self) -> usize {
        self.files.values().map(|(bytes, _)| bytes.len()).sum()
    }

    fn insert(&mut self, path: &str, bytes: Vec<u8>, mode: u32) {
        self.files.insert(path.to_owned(), (bytes, mode));
    }

    /// Writes the archive for one kernel and one job. It is not compressed: an emulated processor
    /// takes longer to undo that than to read the whole.
    pub(crate) fn write(&self, kernel: &Kernel, job: &Job, to: &Path) -> Result<()> {
        let mut modules = BTreeMap::new();
        let mut entries: Vec<_> = fs::read_dir(&kernel.modules)?.collect();
        match &kernel.own_modules {
            Ok(own) => entries.extend(fs::read_dir(&own.folder)?),
            Err(lack) => {
                let why = lack.why.clone().into_bytes();
                modules.insert(in_archive(NOT_BUILT), (why, FILE));
            }
        }
        for entry in entries {
            let entry = entry?;
            let path = format!("modules/{}", entry.file_name().to_string_lossy());
            modules.insert(path, (fs::read(entry.path())?, FILE));
        }
        let job = (job.to_text().into_bytes(), FILE);
        let job = BTreeMap::from([(in_archive(job::PATH), job)]);

        let mut archive = Archive { to: BufWriter::new(File::create(to)?), inode: 0 };
        let all = || self.files.iter().chain(&modules).chain(&job);
        let paths = all().map(|(path, _)| path.as_str());
        // Programs make files in the newer release's root also where nothing is mounted there.
        let empty = ["dev/", "root/", &format!("{NEWER}tmp/")];
        for directory in directories(paths.chain(empty)) {
            archive.add(&directory, 0o040_755, &[], (0, 0))?;
        }
        // The console that the kernel opens for init, before init can mount a /dev.
        archive.add("dev/console", 0o020_600, &[], (5, 1))?;
        for (path, (bytes, mode)) in all() {
            archive.add(path, *mode, bytes, (0, 0))?;
        }
        trailer(archive.to)?.flush()?;
        Ok(())
    }
}

/// Where a library is in a tree.
fn library_of(library: &str, tree: Tree) -> Result<String> {
    let folders = tree.library_path().into_iter();
    let mut candidates = folders.map(|folder| format!("{folder}/{library}"));
    let place = candidates.find(|candidate| in_tree(tree.directory, candidate).is_ok());
    place.with_context(|| format!("{library} is not in the tree"))
}

/// An archive being written.
struct Archive {
    to: BufWriter<File>,
    inode: u32,
}

impl Archive {
    fn add(&mut self, path: &str, mode: u32, bytes: &[u8], device: (u32, u32)) -> Result<()> {
        // The kernel takes entries with the same number for links to one file.
        self.inode += 1;
        let entry =
            Builder::new(path).ino(self.inode).mode(mode).rdev_major(device.0).rdev_minor(device.1);
        let mut entry = entry.write(&mut self.to, u32::try_from(bytes.len())?);
        entry.write_all(bytes)?;
        entry.finish()?;
        Ok(())
    }
}

/// The name in an archive of what is at this path in the guest.
fn in_archive(path: &str) -> String {
    path.trim_start_matches('/').to_owned()
}

/// The folders of these paths, each after its parent.
fn directories<'a>(paths: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut directories: Vec<String> = paths
        .flat_map(|path| path.match_indices('/').filter_map(|(end, _)| path.get(..end)))
        .map(str::to_owned)
        .collect();
    directories.sort_unstable();
    directories.dedup();
    directories
}

/// The file name of a driver of libibverbs; it ends in a number that each release chooses.
fn provider_library(provider: &str, tree: Tree) -> Result<String> {
    let prefix = format!("lib{provider}-rdmav");
    for entry in fs::read_dir(tree.directory.join(tree.drivers()))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.starts_with(&prefix) {
            return Ok(name);
        }
    }
    bail!("{} has no {prefix}…", tree.directory.display())
}

/// The real path of a file in a tree whose links are meant from the tree's own root.
fn in_tree(tree: &Path, path: &str) -> Result<PathBuf> {
    let mut pending: Vec<PathBuf> = vec![path.into()];
    let mut real = tree.to_owned();
    let mut links = 0;
    while let Some(path) = pending.pop() {
        let mut components = path.components();
        let Some(component) = components.next() else {
            continue;
        };
        pending.push(components.as_path().to_owned());
        match component {
            Component::RootDir => tree.clone_into(&mut real),
            Component::ParentDir => {
                real.pop();
            }
            Component::Normal(name) => {
                let next = real.join(name);
                let kind = fs::symlink_metadata(&next)
                    .with_context(|| format!("{} in the tree", next.display()))?;
                if kind.is_symlink() {
                    links += 1;
                    if links > 40 {
                        bail!("{} is a circle of links", path.display());
                    }
                    pending.push(fs::read_link(&next)?);
                } else {
                    real = next;
                }
            }
            Component::CurDir | Component::Prefix(_) => {}
        }
    }
    Ok(real)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parents_come_first() {
        assert_eq!(directories(["a/b/c", "a/d", "e", "dev/"].into_iter()), ["a", "a/b", "dev"]);
    }
}
