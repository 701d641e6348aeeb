//! Containers as runtimes make them, as far as it matters here: a root folder with one static program and
//! mount points, a read-only `/sys` of the container's own network namespace, device nodes or none, no
//! capability, no new privileges. There is no `/proc`, no `/etc` and no shell.

use std::convert::Infallible;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output};
use std::{env, fs};

use anyhow::{Context, Result};
use nix::sched::{CloneFlags, unshare};
use rustix::mount::{MountFlags, mount, mount_bind};
use rustix::process::chroot;
use rustix::thread::{CapabilitySet, remove_capability_from_bounding_set, set_no_new_privs};

use super::{Namespace, output};

/// Where the root folder is, before it is one.
const ROOT: &str = "/tmp/container";
/// The nodes.
const NODES: &str = "dev/infiniband";
/// The program.
pub(crate) const PROGRAM: &str = "/uverbs";

/// A container for one run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Container<'a> {
    /// Its network namespace; none is the host's.
    pub(crate) namespace: Option<&'a Namespace>,
    /// Whether it has `/dev/infiniband`.
    pub(crate) nodes: bool,
    /// The user and group.
    pub(crate) user: u32,
}

impl Container<'_> {
    /// Runs `uverbs` with these arguments.
    ///
    /// # Errors
    /// Where it cannot be started.
    pub(crate) fn output(&self, arguments: &[&str]) -> Result<Output> {
        let before = self.namespace.map(Namespace::exec);
        let before: &[&str] = before.as_ref().map_or(&[], |words| words);
        let guest = env::current_exe()?;
        let guest = guest.to_str().context("our own path")?;
        let (nodes, user) = (if self.nodes { NODES } else { "" }, self.user.to_string());
        output(&[before, &[guest, "container", nodes, &user], arguments].concat())
    }
}

/// Becomes `uverbs` in a container: the body of `guest container`. Its mounts end with it.
pub(crate) fn run(nodes: &str, user: &str, arguments: &[&str]) -> Result<()> {
    become_it(nodes, user, arguments).map(|never| match never {})
}

fn become_it(nodes: &str, user: &str, arguments: &[&str]) -> Result<Infallible> {
    let user: u32 = user.parse().context("the user")?;
    unshare(CloneFlags::CLONE_NEWNS).context("a mount namespace")?;
    fs::create_dir_all(ROOT)?;
    mount("tmpfs", ROOT, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, None)
        .context("an empty root")?;
    fs::copy("/usr/bin/uverbs", format!("{ROOT}{PROGRAM}")).context("the program")?;
    let sys = format!("{ROOT}/sys");
    fs::create_dir(&sys)?;
    let locked = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC | MountFlags::RDONLY;
    mount("sysfs", &sys, "sysfs", locked, None).context("sysfs")?;
    if !nodes.is_empty() {
        let place = format!("{ROOT}/{nodes}");
        fs::create_dir_all(&place)?;
        mount_bind(format!("/{nodes}"), &place).context("the nodes")?;
    }
    chroot(ROOT).context("chroot")?;
    env::set_current_dir("/")?;
    for capability in CapabilitySet::all() {
        // Those that this kernel does not know are not there to be lost.
        if let Err(error) = remove_capability_from_bounding_set(capability)
            && error != rustix::io::Errno::INVAL
        {
            return Err(error).with_context(|| format!("giving up {capability:?}"));
        }
    }
    set_no_new_privs(true)?;
    let mut command = Command::new(PROGRAM);
    Err(command.args(arguments).gid(user).uid(user).env_clear().exec().into())
}
