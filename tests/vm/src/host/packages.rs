//! The sets of Debian packages, other than kernels, that the harness unpacks.

use crate::apt::{Apt, BOOKWORM, FORKY, SID, TRIXIE};
use crate::cache::Cache;
use crate::machines::Machine;
use crate::{boards, modules, status};
use anyhow::{Result, bail};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// The QEMU of a machine, of a version with the `vfio-user-pci` device, and all its libraries.
pub(crate) fn qemu(machine: Machine, cache: &Cache, apt: &mut Apt) -> Result<PathBuf> {
    let (suite, names) = ("trixie-backports", [boards::of(machine)?.package]);
    cache.keep(&for_machine("qemu", machine)?, &format!("{suite} {names:?}"), |scratch| {
        status(&format!("fetching {}", names[0]));
        apt.unpack_closure(TRIXIE, suite, &names, scratch)
    })
}

/// The name in the cache of what is another one for each machine.
pub(crate) fn for_machine(name: &str, machine: Machine) -> Result<String> {
    let is_usual = machine == Machine::guest()?;
    Ok(if is_usual { name.to_owned() } else { format!("{name}-{}", machine.name) })
}

/// The programs and libraries of others that run in the guest, and what our C programs are
/// compiled against.
pub(crate) fn peers(machine: Machine, cache: &Cache, apt: &mut Apt) -> Result<PathBuf> {
    // bookworm has no riscv64, and of trixie not every mirror has all machines.
    let release = if machine.debian == "riscv64" { FORKY } else { BOOKWORM };
    let suite = release.name();
    let mut names = vec![
        "ibverbs-utils",
        "ibverbs-providers",
        "infiniband-diags",
        "iproute2",
        "strace",
        "libibverbs-dev",
        "libibumad-dev",
        "libc6-dev",
    ];
    // What only scenarios on the usual machine ask.
    if machine == Machine::guest()? {
        names.extend(["valgrind", "ucx-utils"]);
    }
    names.push("perftest");
    cache.keep(&for_machine("peers", machine)?, &format!("{suite} {names:?}"), |scratch| {
        status(&format!("fetching the peers for {}", machine.name));
        apt.on(machine, |apt| apt.unpack_closure(release, suite, &names, scratch))?;
        usual_links(scratch)
    })
}

/// Makes the links in a tree of packages that none of them has, since they are made when Debian is installed.
/// Where a package has such a folder, it stays.
pub(crate) fn usual_links(tree: &Path) -> Result<()> {
    for name in ["bin", "lib", "lib64", "sbin"] {
        if tree.join("usr").join(name).exists() && !tree.join(name).exists() {
            symlink(format!("usr/{name}"), tree.join(name))?;
        }
    }
    Ok(())
}

/// `node_exporter`, of a release that shows the drivers' counters too.
pub(crate) fn node_exporter(cache: &Cache, apt: &mut Apt) -> Result<PathBuf> {
    const NAME: &str = "prometheus-node-exporter";
    let tree = cache.keep("node-exporter", "forky", |scratch| {
        let versions = apt.versions(FORKY, NAME)?;
        let Some(newest) = versions.first() else { bail!("the mirror offers no {NAME}") };
        status(&format!("fetching {NAME} {}", newest.version));
        apt.unpack(FORKY, std::slice::from_ref(newest), scratch)
    })?;
    Ok(tree.join("usr/bin").join(NAME))
}

/// Podman and what it runs: an engine of containers that reads CDI.
pub(crate) fn podman(cache: &Cache, apt: &mut Apt) -> Result<PathBuf> {
    let (suite, names) = ("bookworm", ["podman", "conmon", "crun"]);
    cache.keep("podman", &format!("{suite} {names:?}"), |scratch| {
        status("fetching podman");
        apt.unpack_closure(BOOKWORM, suite, &names, scratch)?;
        usual_links(scratch)
    })
}

/// Slurm, its authentication, and a shell with the usual commands for its scripts.
pub(crate) fn slurm(cache: &Cache, apt: &mut Apt) -> Result<PathBuf> {
    let suite = BOOKWORM.name();
    let names = ["slurmctld", "slurmd", "slurm-client", "munge", "busybox-static"];
    cache.keep("slurm", &format!("{suite} {names:?}"), |scratch| {
        status("fetching Slurm");
        apt.unpack_closure(BOOKWORM, suite, &names, scratch)?;
        usual_links(scratch)
    })
}

/// What a person who tries the command has beside it: the programs with which the devices are made, and a
/// shell with the usual commands.
pub(crate) fn to_play(cache: &Cache, apt: &mut Apt) -> Result<PathBuf> {
    let (suite, names) = ("bookworm", ["iproute2", "busybox-static"]);
    cache.keep("to-play", &format!("{suite} {names:?}"), |scratch| {
        status("fetching ip, rdma and a shell");
        apt.unpack_closure(BOOKWORM, suite, &names, scratch)
    })
}

/// Folders of the newest kernel headers that the newest kernels' release has.
#[derive(Debug)]
pub(crate) struct Headers {
    /// Those for user space.
    pub(crate) user: PathBuf,
    /// mlx5's of those for modules.
    pub(crate) mlx5: PathBuf,
}

/// The newest kernel headers.
pub(crate) fn headers(cache: &Cache, apt: &mut Apt) -> Result<Headers> {
    let names = ["linux-libc-dev", "linux-headers-amd64"];
    let directory = cache.keep("headers", &format!("{names:?}"), |scratch| {
        for release in [TRIXIE, FORKY, SID] {
            let [user, modules] = names.map(|name| apt.versions(release, name));
            let (user, modules) = (user?, modules?);
            if let (Some(user), Some(meta)) = (user.first(), modules.first()) {
                status(&format!("fetching the kernel headers {}", user.version));
                apt.unpack(release, std::slice::from_ref(user), scratch)?;
                let common = modules::headers(release, meta, apt)?.common;
                let tree = scratch.join("modules");
                let folder = tree.join("usr/src").join(&common.name);
                apt.unpack(release, &[common], &tree)?;
                fs::rename(folder.join("include/linux/mlx5"), scratch.join("mlx5"))?;
                return Ok(fs::remove_dir_all(tree)?);
            }
        }
        bail!("the mirror offers none of {names:?}")
    })?;
    Ok(Headers { user: directory.join("usr/include"), mlx5: directory.join("mlx5") })
}
