//! Debian's kernels: which ones, their images, and of their modules the few that are wanted,
//! decompressed, with what they depend on and in the order in which they load.

use crate::apt::{Apt, BOOKWORM, BULLSEYE, FORKY, Package, Release, SID, TRIXIE};
use crate::cache::Cache;
use crate::machines::Machine;
use crate::modules::{self, Lack, Modules};
use crate::{boards, elf, status};
use anyhow::{Context, Result, bail, ensure};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

/// A line of kernels that is tested.
#[derive(Debug)]
pub(crate) struct Series {
    /// Its name on the command line: the beginning of the version, and what Debian calls another machine than the
    /// usual.
    pub(crate) name: &'static str,
    /// The releases that may have it. The first that offers any gives its newest.
    releases: &'static [Release],
    /// The machine that it is for, by its name in `src/packaging/machines`.
    pub(crate) machine: &'static str,
}

impl Series {
    /// The beginning of its versions.
    fn version(&self) -> &'static str {
        self.name.split('-').next().unwrap_or(self.name)
    }

    /// The machine that it is for.
    pub(crate) fn machine(&self) -> Result<Machine> {
        Machine::named(self.machine)
    }
}

/// The tested kernels, the oldest first. The last one is the newest 7.x of Debian's: backports
/// come from testing and are fit for the installed keyring; testing and unstable are asked only
/// when there is no backport.
pub(crate) const ALL: &[Series] = &[
    Series { name: "5.10", releases: &[BULLSEYE], machine: "x86_64" },
    Series { name: "6.1", releases: &[BOOKWORM], machine: "x86_64" },
    Series { name: "6.12", releases: &[TRIXIE, BOOKWORM], machine: "x86_64" },
    Series { name: "7", releases: &[TRIXIE, FORKY, SID], machine: "x86_64" },
];

/// Those of other machines: whole runs have them, and runs that name them.
pub(crate) const ELSEWHERE: &[Series] = &[
    Series { name: "6.12-arm64", releases: &[TRIXIE, BOOKWORM], machine: "aarch64" },
    Series { name: "6.12-s390x", releases: &[TRIXIE, BOOKWORM], machine: "s390x" },
];

/// Those that only runs have that name them.
const NAMED: &[Series] = &[
    Series { name: "6.12-ppc64el", releases: &[TRIXIE, BOOKWORM], machine: "ppc64le" },
    Series { name: "7-riscv64", releases: &[TRIXIE, FORKY, SID], machine: "riscv64" },
];

/// All, on all machines.
pub(crate) fn all() -> impl Iterator<Item = &'static Series> {
    ALL.iter().chain(ELSEWHERE).chain(NAMED)
}

/// The modules that are loaded, with their parameters and whether a kernel may be without.
/// Their order is the order of loading; dependencies come before.
const MODULES: &[Wanted] = &[
    ("ib_core", "", Need::Always),
    ("ib_uverbs", "", Need::Always),
    ("ib_umad", "", Need::Always),
    ("rdma_ucm", "", Need::Always),
    // rxe up to 6.12 asks the crypto layer for it by name; gone in 7.x.
    ("crc32_generic", "", Need::IfThere),
    // What siw of older kernels calls, and what that asks the crypto layer for.
    ("crc32c_generic", "", Need::IfOlder),
    ("libcrc32c", "", Need::IfOlder),
    ("rdma_rxe", "", Need::Always),
    ("dummy", "numdummies=0", Need::Always),
    ("8021q", "", Need::Always),
    ("veth", "", Need::Always),
    ("macvlan", "", Need::Always),
    ("ipvlan", "", Need::Always),
    ("macsec", "", Need::IfThere),
    ("bridge", "", Need::Always),
    ("vrf", "", Need::IfThere),
    ("bonding", "max_bonds=0", Need::Always),
    // Tunnels. None of them makes an interface by itself: see the guest's boot.
    ("ip_gre", "", Need::Always),
    ("ipip", "", Need::Always),
    ("sit", "", Need::Always),
    ("ip_vti", "", Need::Always),
    ("ip6_tunnel", "", Need::Always),
    ("ip6_gre", "", Need::Always),
    ("vxlan", "", Need::Always),
    ("geneve", "", Need::Always),
    // Profile 0: without thousands of memory keys made in advance.
    ("mlx5_core", "prof_sel=0", Need::Always),
    ("mlx5_ib", "", Need::Always),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Need {
    Always,
    IfThere,
    /// Kernels before the newest series may have it.
    IfOlder,
}

/// A module, its parameters, and whether a kernel may be without.
type Wanted = (&'static str, &'static str, Need);

/// The modules that a series may have.
fn wanted(series: &Series) -> Vec<&'static Wanted> {
    let is_newest = ALL.last().is_some_and(|newest| newest.name == series.name);
    MODULES.iter().filter(|(.., need)| *need != Need::IfOlder || !is_newest).collect()
}

/// A kernel in the cache.
#[derive(Debug, Clone)]
pub(crate) struct Kernel {
    /// The series' name.
    pub(crate) series: &'static str,
    /// The machine that it is for.
    pub(crate) machine: Machine,
    /// Its package's version.
    pub(crate) version: String,
    /// The bootable image.
    pub(crate) image: PathBuf,
    /// The directory of the modules, and of `order`: a line for each, in the order of loading,
    /// its file and its parameters.
    pub(crate) modules: PathBuf,
    /// Our own modules, built for it; or why they could not be.
    pub(crate) own_modules: Result<Modules, Lack>,
}

/// The series of this name.
pub(crate) fn series(name: &str) -> Result<&'static Series> {
    let known: Vec<&str> = all().map(|series| series.name).collect();
    let series = all().find(|series| series.name == name);
    series.with_context(|| format!("no kernel series {name:?}; there are {}", known.join(", ")))
}

/// A kernel of this series, from the cache or fetched, and our own modules, built for it.
pub(crate) fn get(series: &'static Series, cache: &Cache, apt: &mut Apt) -> Result<Kernel> {
    let kernel = plain(series, cache, apt)?;
    if kernel.machine != Machine::guest()? {
        let why = "they are not built for other machines than x86-64".to_owned();
        return Ok(Kernel { own_modules: Err(Lack { why, is_broken: false }), ..kernel });
    }
    let own_modules = modules::get(series.name, &kernel.version, series.releases, cache, apt);
    Ok(Kernel { own_modules, ..kernel })
}

/// A kernel of this series without modules of ours.
pub(crate) fn plain(series: &'static Series, cache: &Cache, apt: &mut Apt) -> Result<Kernel> {
    let Series { name, releases, .. } = series;
    let machine = series.machine()?;
    let modules = wanted(series);
    let request = format!("Series {{ name: {name:?}, releases: {releases:?} }}\n{modules:?}\n");
    let directory = cache.keep(&format!("kernel-{name}"), &request, |scratch| {
        apt.on(machine, |apt| fetch(series, scratch, apt))
    })?;
    let version = fs::read_to_string(directory.join("version"))?.trim().to_owned();
    Ok(Kernel {
        series: series.name,
        machine,
        own_modules: Err(Lack { why: "nobody asked for them".into(), is_broken: false }),
        version,
        image: directory.join("vmlinuz"),
        modules: directory.join("modules"),
    })
}

fn fetch(series: &Series, scratch: &Path, apt: &mut Apt) -> Result<()> {
    let (release, meta) = newest(series, apt)?;
    status(&format!("{}: fetching the kernel {}", series.name, meta.version));
    let packages = image_packages(release, &meta, apt)?;
    let tree = scratch.join("tree");
    apt.unpack(release, &packages, &tree)?;

    let files = files_below(&tree)?;
    let image = files.iter().find(|file| {
        // On 64-bit PowerPC it is not compressed.
        let name = file.file_name().map(|name| name.to_string_lossy().into_owned());
        name.is_some_and(|name| name.starts_with("vmlinuz") || name.starts_with("vmlinux-"))
    });
    fs::copy(image.context("no kernel image in the packages")?, scratch.join("vmlinuz"))?;
    keep_modules(&wanted(series), &files, &scratch.join("modules"))?;
    fs::write(scratch.join("version"), &meta.version)?;
    fs::remove_dir_all(&tree)?;
    Ok(())
}

/// The newest meta package of the series.
fn newest(series: &Series, apt: &mut Apt) -> Result<(Release, Package)> {
    let meta = format!("linux-image-{}", boards::of(series.machine()?)?.kernel);
    for &release in series.releases {
        for package in apt.versions(release, &meta)? {
            if is_of(series.version(), &package.version) {
                return Ok((release, package));
            }
        }
    }
    bail!("the mirror offers no kernel {} in {:?}", series.name, series.releases)
}

fn is_of(series: &str, version: &str) -> bool {
    version.strip_prefix(series).is_some_and(|rest| rest.starts_with('.'))
}

/// The packages with the image and the modules, found through the meta package's dependencies.
/// Newer kernels have one more level: there `linux-image-…` only names the other two.
fn image_packages(release: Release, meta: &Package, apt: &mut Apt) -> Result<Vec<Package>> {
    let named = |names: Vec<String>, prefixes: &[&str]| -> Vec<Package> {
        let wanted =
            names.into_iter().filter(|name| prefixes.iter().any(|prefix| name.starts_with(prefix)));
        wanted.map(|name| Package { name, version: meta.version.clone() }).collect()
    };
    let image = named(apt.depends(release, meta)?, &["linux-image-"]);
    let [image] = image.as_slice() else {
        bail!("{meta:?} depends on {} images", image.len());
    };
    let parts = named(apt.depends(release, image)?, &["linux-binary-", "linux-modules-"]);
    Ok(if parts.is_empty() { vec![image.clone()] } else { parts })
}

/// Puts the wanted modules, decompressed, and their order into a directory.
fn keep_modules(wanted: &[&Wanted], files: &[PathBuf], into: &Path) -> Result<()> {
    fs::create_dir_all(into)?;
    let available: BTreeMap<String, &Path> =
        files.iter().filter_map(|file| Some((module_name(file)?, file.as_path()))).collect();
    let mut order = Vec::new();
    for &&(name, _, need) in wanted {
        if available.contains_key(name) {
            add_module(name, &available, into, &mut order)?;
        } else {
            ensure!(need != Need::Always, "the kernel has no module {name}");
        }
    }
    let line = |file: &String| {
        let known = wanted.iter().find(|(name, ..)| *file == file_name(name));
        let parameters = known.map_or("", |(_, parameters, _)| parameters);
        format!("{file} {parameters}\n")
    };
    fs::write(into.join("order"), order.iter().map(line).collect::<String>())?;
    Ok(())
}

/// Adds a module after those that it depends on.
fn add_module(
    name: &str,
    available: &BTreeMap<String, &Path>,
    into: &Path,
    order: &mut Vec<String>,
) -> Result<()> {
    let file = file_name(name);
    if into.join(&file).exists() {
        return Ok(());
    }
    let path = available.get(name).with_context(|| format!("the kernel has no module {name}"))?;
    let image = decompressed(path).with_context(|| format!("reading {}", path.display()))?;
    // Written before its dependencies are followed: a circle would end here, not never.
    fs::write(into.join(&file), &image)?;
    for dependency in module_depends(&elf::section(&image, ".modinfo")?) {
        add_module(&dependency, available, into, order)?;
    }
    order.push(file);
    Ok(())
}

fn file_name(module: &str) -> String {
    format!("{module}.ko")
}

/// The name of the module in a file: `ib-core.ko.xz` holds `ib_core`.
fn module_name(file: &Path) -> Option<String> {
    let name = file.file_name()?.to_str()?;
    let name = name.strip_suffix(".ko").or_else(|| name.strip_suffix(".ko.xz"))?;
    Some(name.replace('-', "_"))
}

/// The names after `depends=` in a module's information.
fn module_depends(modinfo: &[u8]) -> Vec<String> {
    let mut fields = modinfo.split(|&byte| byte == 0);
    let depends = fields.find_map(|field| field.strip_prefix(b"depends=")).unwrap_or_default();
    let depends = String::from_utf8_lossy(depends);
    depends.split(',').filter(|name| !name.is_empty()).map(|name| name.replace('-', "_")).collect()
}

fn decompressed(path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut file = File::open(path)?;
    if path.extension().is_some_and(|extension| extension == "xz") {
        lzma_rust2::XzReader::new(file, true).read_to_end(&mut bytes)?;
    } else {
        file.read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

/// Every file below a directory; links are not followed.
fn files_below(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() {
                directories.push(entry.path());
            } else if kind.is_file() {
                files.push(entry.path());
            }
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_is_a_prefix_up_to_a_dot() {
        assert!(is_of("6.1", "6.1.192-2"));
        assert!(!is_of("6.1", "6.12.95-1"));
        assert!(is_of("7", "7.3.4-1~bpo13+1"));
        assert!(!is_of("7", "70.1-1"));
        assert_eq!(ELSEWHERE[0].version(), "6.12");
    }

    #[test]
    fn module_files_and_dependencies() {
        assert_eq!(
            module_name(Path::new("/a/pci-hyperv-intf.ko.xz")).as_deref(),
            Some("pci_hyperv_intf")
        );
        assert_eq!(module_name(Path::new("/a/ib_core.ko")).as_deref(), Some("ib_core"));
        assert_eq!(module_name(Path::new("/a/modules.dep")), None);
        assert_eq!(
            module_depends(b"license=GPL\0depends=ib_core,udp-tunnel\0name=x\0"),
            ["ib_core", "udp_tunnel"]
        );
        assert!(module_depends(b"depends=\0").is_empty());
        assert!(module_depends(b"").is_empty());
    }
}
