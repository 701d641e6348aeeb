//! The C programs: each source compiled once with rdma-core's headers and linked twice, with
//! rdma-core's libraries and with ours in their place.
//!
//! The sources are ours (`peer/NAME.c` and the examples of `tests/capi`), compiled for both releases of rdma-core, and of the newer
//! release's source the tools that ask what we answer. All are compiled with the peers' C library:
//! the host's own may be newer than the one in the guest.

use crate::apt::{Apt, Checked};
use crate::cache::Cache;
use crate::machines::Machine;
use crate::musl;
use crate::programs;
use crate::rdma_core::{Newer, RdmaCore};
use crate::{elf, paths};
use anyhow::{Context, Result, bail, ensure};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

/// A program of C, twice.
#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) name: String,
    pub(crate) with_rdma_core: PathBuf,
    pub(crate) with_uverbs: PathBuf,
}

/// A static program, and the name of its C library.
#[derive(Debug)]
pub(crate) struct Static {
    pub(crate) libc: &'static str,
    pub(crate) program: PathBuf,
}

/// The libraries of rdma-core that programs are linked with.
const RDMA_CORE: [&str; 3] = ["libibverbs.so.1", "libmlx5.so.1", "libibumad.so.3"];

/// What our library needs in addition to the C library, as `rustc --print native-static-libs` says; of the
/// compiler's own library the static one, so that the guest needs none.
const NATIVE: [&str; 6] = ["-static-libgcc", "-lgcc_eh", "-lpthread", "-lrt", "-lm", "-ldl"];

/// The program that is built statically.
const STATIC: &str = "answers";

/// Compiles and links C programs.
#[derive(Debug)]
pub(crate) struct Builder<'a> {
    /// The machine that they are for.
    pub(crate) machine: Machine,
    /// The tree with the C library and its headers.
    sysroot: &'a Path,
    /// `libuverbs.a`.
    uverbs: PathBuf,
    into: PathBuf,
}

impl<'a> Builder<'a> {
    /// Builds our library, too.
    pub(crate) fn new(machine: Machine, sysroot: &'a Path) -> Result<Self> {
        let uverbs = programs::build_library(machine)?;
        let mut into = paths::target().join("vm-peers");
        if machine != Machine::guest()? {
            into.push(machine.name);
        }
        Ok(Self { machine, sysroot, uverbs, into })
    }

    /// Every source of this project, for this release.
    pub(crate) fn peers(&self, release: &RdmaCore) -> Result<Vec<Pair>> {
        let into = self.folder(&release.major)?;
        side_by_side(peer_sources()?, |source| {
            let name = source.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let object = into.join(format!("{name}.o"));
            let mut cc = self.compiler();
            cc.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror"]);
            for argument in release_arguments(release) {
                cc.arg(argument);
            }
            cc.arg("-c").arg(&source).arg("-o").arg(&object).checked()?;
            self.pair(&name, release, &[object])
        })
    }

    /// Every source of this project with our library, both with the compilers' checks of every access to
    /// memory: its name, and the program.
    pub(crate) fn sanitized(&self, release: &RdmaCore) -> Result<Vec<(String, PathBuf)>> {
        let library = programs::build_sanitized_library(self.machine.glibc)?;
        let into = self.folder("sanitized")?;
        side_by_side(peer_sources()?, |source| {
            let name = source.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let program = into.join(&name);
            let mut cc = self.compiler();
            cc.args(["-std=gnu11", "-g", "-fsanitize=address,undefined"]);
            cc.args(["-fno-sanitize-recover=all", "-static-libasan", "-static-libubsan"]);
            cc.args(release_arguments(release)).arg(&source).arg(&library).args(NATIVE);
            cc.arg("-o").arg(&program).checked()?;
            Ok((name, program))
        })
    }

    /// The newer release's own tools, compiled from its source as a user would take it.
    pub(crate) fn tools(&self, newer: &Newer) -> Result<Vec<Pair>> {
        let into = self.folder("tools")?;
        let include = private_headers(newer, &into)?;
        let source = &newer.source;
        let objects = |names: &[&str]| -> Result<Vec<PathBuf>> {
            let mut objects = Vec::new();
            for name in names {
                let object = into.join(format!("{}.o", name.replace('/', "-")));
                let mut cc = self.compiler();
                cc.args(["-w", "-ffunction-sections", "-fdata-sections", "-I"]).arg(&include);
                for folder in ["infiniband-diags", "libibmad"] {
                    cc.arg("-I").arg(source.join(folder));
                }
                cc.arg("-isystem").arg(&newer.rdma_core.headers);
                cc.arg("-c").arg(source.join(format!("{name}.c"))).arg("-o").arg(&object);
                cc.checked()?;
                objects.push(object);
            }
            Ok(objects)
        };
        let ibstat = [
            "infiniband-diags/ibstat",
            "infiniband-diags/ibdiag_common",
            "libibmad/dump",
            "libibmad/fields",
            "libibmad/mad",
            "libibmad/portid",
            "libibmad/resolve",
            "libibmad/rpc",
            "libibmad/smp",
        ];
        // Of its options, which all of these tools have, one resolves names by sending to the
        // subnet manager. That ends here: our library does not send.
        let end = into.join("end.c");
        fs::write(&end, "#include <stdlib.h>\nvoid ib_path_query_via(void) { abort(); }\n")?;
        let end_object = into.join("end.o");
        self.compiler().arg("-c").arg(&end).arg("-o").arg(&end_object).checked()?;
        let ibstat = [objects(&ibstat)?, vec![end_object]].concat();
        let release = &newer.rdma_core;
        Ok(vec![
            self.pair("ibv_devices", release, &objects(&["libibverbs/examples/device_list"])?)?,
            self.pair("ibv_devinfo", release, &objects(&["libibverbs/examples/devinfo"])?)?,
            self.pair("ibv_asyncwatch", release, &objects(&["libibverbs/examples/asyncwatch"])?)?,
            self.pair("ibstat", release, &ibstat)?,
        ])
    }

    /// A static program with only our library, once with each C library. `musl`: our library
    /// built for it, and where its C library is.
    pub(crate) fn statics(&self, release: &RdmaCore, musl: &Musl) -> Result<Vec<Static>> {
        let into = self.folder("static")?;
        let source = paths::package().join("peer").join(format!("{STATIC}.c"));
        let with_glibc = into.join("glibc");
        let mut cc = self.compiler();
        cc.arg("-static").args(release_arguments(release)).arg(&source).arg(&self.uverbs);
        cc.args(NATIVE).arg("-o").arg(&with_glibc).checked()?;

        let with_musl = into.join("musl");
        let mut cc = Command::new("cc");
        cc.args(["-static", "-nostdlib", "-nostdinc", "-O1", "-g0", "-fno-pie", "-no-pie"]);
        cc.arg("-isystem").arg(&musl.headers);
        let own = Command::new("cc").arg("-print-file-name=include").checked()?;
        cc.arg("-isystem").arg(own.trim());
        cc.arg("-isystem").arg(headers_for_musl(release, self.sysroot, &into)?);
        cc.arg(format!("-DRDMA_CORE={}", release.major));
        cc.args(musl.parts(&["crt1.o", "crti.o"])?).arg(&source).arg(&musl.uverbs);
        cc.arg("-Wl,--start-group").args(musl.parts(&["libunwind.a", "libc.a"])?);
        cc.arg("-Wl,--end-group").args(musl.parts(&["crtn.o"])?);
        // Without it the unwinder finds nothing, and a panic would not end in the library.
        cc.arg("-Wl,--eh-frame-hdr");
        cc.arg("-o").arg(&with_musl).checked()?;

        let both = [("glibc", with_glibc), ("musl", with_musl)];
        let mut statics = Vec::new();
        for (libc, program) in both {
            let needs = elf::needs(&fs::read(&program)?)?;
            ensure!(needs == elf::Needs::default(), "the static program needs {needs:?}");
            statics.push(Static { libc, program });
        }
        Ok(statics)
    }

    /// The program with canaries around all that our library writes, by our header, for a machine of 32 bits
    /// whose programs the kernel runs.
    ///
    /// # Errors
    /// Its compiler or Rust's standard library is not installed.
    pub(crate) fn of_32_bits(&self, machine: Machine) -> Result<PathBuf> {
        let library = programs::build_plain_library(machine)?;
        let program = self.folder("static")?.join(machine.name);
        let tests = paths::package().join("../capi/canaries.c");
        let mut cc = Command::new(machine.compiler());
        cc.args(["-std=gnu11", "-O1", "-g0", "-static", "-DUVERBS_H", "-I"]);
        cc.arg(paths::workspace().join("src/capi")).arg(tests).arg(library);
        cc.arg("-o").arg(&program).checked()?;
        Ok(program)
    }

    fn folder(&self, name: &str) -> Result<PathBuf> {
        let folder = self.into.join(name);
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        Ok(folder)
    }

    /// The compiler, with the C library of the guest.
    fn compiler(&self) -> Command {
        let mut cc = Command::new(self.machine.compiler());
        cc.arg(format!("--sysroot={}", self.sysroot.display())).args(["-O1", "-g0"]);
        if self.machine.debian == "riscv64" {
            // Its C library is newer than that of Debian's compiler, which looks for its own first. The headers that
            // an option names come before these.
            let headers = [&format!("usr/include/{}", self.machine.tools), "usr/include"];
            let headers = headers.map(|own| self.sysroot.join(own));
            cc.env("C_INCLUDE_PATH", env::join_paths(headers).unwrap_or_default());
            let libraries = self.machine.libraries();
            cc.arg(format!("-B{}/", self.sysroot.join(&libraries).display()));
            cc.arg("-L").arg(self.sysroot.join(&libraries));
        }
        cc
    }

    fn pair(&self, name: &str, release: &RdmaCore, objects: &[PathBuf]) -> Result<Pair> {
        let (theirs, ours) = (self.folder("rdma-core")?, self.folder("uverbs")?);
        let file = format!("{name}-{}", release.major);
        let (with_rdma_core, with_uverbs) = (theirs.join(&file), ours.join(&file));
        let mut cc = self.compiler();
        cc.args(objects).arg("-Wl,--gc-sections,--unresolved-symbols=ignore-in-shared-libs");
        cc.args(libraries(self.machine, release));
        cc.arg("-o").arg(&with_rdma_core).checked()?;

        // With the names of its functions, which valgrind shows.
        let mut cc = self.compiler();
        cc.args(objects).arg("-Wl,--gc-sections,--strip-debug");
        cc.arg(&self.uverbs).args(NATIVE).arg("-o").arg(&with_uverbs);
        cc.checked().with_context(|| format!("linking {name} with libuverbs.a"))?;
        let libraries = elf::needs(&fs::read(&with_uverbs)?)?.libraries;
        ensure!(
            !libraries.iter().any(|library| RDMA_CORE.contains(&library.as_str())),
            "{name} with our library needs {libraries:?}"
        );
        Ok(Pair { name: name.to_owned(), with_rdma_core, with_uverbs })
    }
}

/// What musl's programs are made of.
#[derive(Debug)]
pub(crate) struct Musl {
    /// Our library.
    uverbs: PathBuf,
    /// The C library's headers.
    headers: PathBuf,
    /// Folders with the C library, its start files and the unwinder.
    folders: [PathBuf; 2],
}

impl Musl {
    /// With the library that is released, in this folder.
    pub(crate) fn new(released: &Path, cache: &Cache, apt: &mut Apt) -> Result<Self> {
        let package = musl::c_library(Machine::guest()?, cache, apt)?;
        Ok(Self {
            uverbs: released.join("libuverbs.a"),
            headers: package.join("usr/include/x86_64-linux-musl"),
            folders: [package.join("usr/lib/x86_64-linux-musl"), released.to_owned()],
        })
    }

    fn parts(&self, names: &[&str]) -> Result<Vec<PathBuf>> {
        let mut parts = Vec::new();
        for name in names {
            let places = self.folders.iter().map(|folder| folder.join(name));
            let place = places.into_iter().find(|place| place.exists());
            parts.push(place.with_context(|| format!("no {name} in {:?}", self.folders))?);
        }
        Ok(parts)
    }
}

/// The headers that the tools include and no package has, in a folder of their own.
fn private_headers(newer: &Newer, into: &Path) -> Result<PathBuf> {
    let include = into.join("include");
    for folder in ["infiniband", "util"] {
        fs::create_dir_all(include.join(folder))?;
    }
    for (from, to) in [
        ("libibmad/iba_types.h", "util/iba_types.h"),
        ("util/compiler.h", "util/compiler.h"),
        ("libibnetdisc/ibnetdisc.h", "infiniband/ibnetdisc.h"),
    ] {
        fs::copy(newer.source.join(from), include.join(to)).with_context(|| from.to_owned())?;
    }
    let config = format!(
        "#define PACKAGE_VERSION \"{}\"\n#define IBDIAG_CONFIG_PATH \"/etc/infiniband-diags\"\n",
        newer.rdma_core.major
    );
    fs::write(include.join("config.h"), config)?;
    // The whole wants headers that are generated when rdma-core is built.
    let driver = fs::read_to_string(newer.source.join("libibverbs/driver.h"))?;
    let mut cut = "#include <infiniband/verbs.h>\n".to_owned();
    for (begin, end) in [
        ("enum ibv_gid_type_sysfs {", "};"),
        ("int ibv_read_sysfs_file(", ");"),
        ("int ibv_query_gid_type(", ");"),
    ] {
        cut += &between(&driver, begin, end)
            .with_context(|| format!("{begin} is not in libibverbs/driver.h"))?;
    }
    fs::write(include.join("infiniband/driver.h"), cut)?;
    Ok(include)
}

/// A folder with rdma-core's headers and the kernel's, which are mixed with glibc's in the tree.
fn headers_for_musl(release: &RdmaCore, tree: &Path, into: &Path) -> Result<PathBuf> {
    let folder = into.join("include");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir(&folder)?;
    let usual = tree.join("usr/include");
    for (name, target) in [
        ("infiniband", release.headers.join("infiniband")),
        ("rdma", usual.join("rdma")),
        ("linux", usual.join("linux")),
        ("asm-generic", usual.join("asm-generic")),
        ("asm", usual.join("x86_64-linux-gnu/asm")),
    ] {
        ensure!(target.exists(), "no {}", target.display());
        let target = std::path::absolute(target)?;
        std::os::unix::fs::symlink(target, folder.join(name))?;
    }
    Ok(folder)
}

/// The libraries of rdma-core that programs are linked with.
fn libraries(machine: Machine, release: &RdmaCore) -> [PathBuf; 3] {
    RDMA_CORE.map(|library| release.tree.join(machine.libraries()).join(library))
}

fn release_arguments(release: &RdmaCore) -> [String; 3] {
    [
        format!("-DRDMA_CORE={}", release.major),
        "-isystem".to_owned(),
        release.headers.display().to_string(),
    ]
}

/// Does this with each of the sources, all at once: a compiler has one thread.
fn side_by_side<T: Send>(
    sources: Vec<PathBuf>,
    work: impl Fn(PathBuf) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    thread::scope(|scope| {
        let work = &work;
        let running: Vec<_> =
            sources.into_iter().map(|source| scope.spawn(move || work(source))).collect();
        let results = running
            .into_iter()
            .map(|it| it.join().unwrap_or_else(|_| bail!("a thread that compiles panicked")));
        results.collect()
    })
}

/// The peers, and the examples for users.
fn peer_sources() -> Result<Vec<PathBuf>> {
    let mut sources = Vec::new();
    for folder in ["peer", "../examples"] {
        sources.extend(paths::with_extension(&paths::package().join(folder), "c")?);
    }
    if sources.is_empty() {
        bail!("there are no peers");
    }
    sources.sort();
    Ok(sources)
}

/// The lines of a text from the one that begins like this up to the next that ends like that.
fn between(text: &str, begin: &str, end: &str) -> Option<String> {
    let mut cut = String::new();
    for line in text.lines().skip_while(|line| !line.starts_with(begin)) {
        cut += line;
        cut.push('\n');
        if line.ends_with(end) {
            return Some(cut);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_declaration_is_cut_out() {
        let text = "int a(void);\nint b(int x,\n      int y);\nint c(void);\n";
        assert_eq!(between(text, "int b(", ");").as_deref(), Some("int b(int x,\n      int y);\n"));
        assert_eq!(between(text, "int d(", ");"), None);
    }
}
