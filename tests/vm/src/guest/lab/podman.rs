//! Debian's Podman, which reads specifications of CDI in `/etc/cdi`: containers with a root folder of our own, and no
//! image. What it makes is in a mount namespace of the scenario's process.

use std::fs;
use std::process::Output;

use anyhow::{Context, Result, ensure};
use nix::sched::{CloneFlags, unshare};
use rustix::mount::{MountFlags, mount};

use super::{output, run};

/// The folder of everything.
const PLACE: &str = "/tmp/podman";
/// The container's root folder.
const ROOT: &str = "/tmp/podman/root";

/// The engine, ready to run containers.
#[derive(Debug)]
pub(crate) struct Podman {
    /// Where engines look for devices.
    file: &'static str,
    root: &'static str,
}

impl Podman {
    pub(crate) fn new() -> Result<Self> {
        unshare(CloneFlags::CLONE_NEWNS).context("a mount namespace")?;
        for (kind, path) in [("cgroup2", "/sys/fs/cgroup"), ("tmpfs", "/etc"), ("tmpfs", PLACE)] {
            fs::create_dir_all(path)?;
            mount(kind, path, kind, MountFlags::empty(), None).context(path)?;
        }
        for path in [ROOT, "/dev/shm", "/etc/containers", "/etc/cdi"] {
            fs::create_dir_all(path)?;
        }
        // The root of an initramfs cannot be exchanged.
        let settings = "[engine]\nno_pivot_root = true\ncgroup_manager = \"cgroupfs\"\nevents_logger = \"none\"\n";
        fs::write("/etc/containers/containers.conf", settings)?;
        fs::write(
            "/etc/containers/storage.conf",
            format!(
                "[storage]\ndriver = \"vfs\"\ngraphroot = \"{PLACE}/storage\"\nrunroot = \"{PLACE}/run\"\n"
            ),
        )?;
        fs::write("/etc/containers/policy.json", r#"{"default": [{"type": "reject"}]}"#)?;
        fs::write("/etc/passwd", "root:x:0:0:root:/root:/bin/sh\n")?;
        fs::write("/etc/group", "root:x:0:\n")?;
        fs::write("/etc/resolv.conf", "")?;
        fs::write("/etc/hosts", "")?;
        fs::copy("/usr/bin/uverbs", format!("{ROOT}/uverbs")).context("the program")?;
        Ok(Self { file: "/etc/cdi/uverbs-rdma.json", root: ROOT })
    }

    /// Puts what `uverbs cdi` writes of the devices that are there now where the engine finds it.
    pub(crate) fn write_devices(&self) -> Result<()> {
        run(&["uverbs", "cdi", "--output", self.file])?;
        println!("{}", fs::read_to_string(self.file)?);
        Ok(())
    }

    /// Runs `uverbs` in a container that has no network, with these options of the engine.
    pub(crate) fn output(&self, options: &[&str], arguments: &[&str]) -> Result<Output> {
        let begin = ["podman", "run", "--rm", "--network", "none", "--log-driver", "none"];
        let program = ["--rootfs", self.root, "/uverbs"];
        let output = output(&[&begin[..], options, &program, arguments].concat())?;
        println!("{options:?} {arguments:?}: {output:?}");
        Ok(output)
    }

    /// The nodes in `/dev/infiniband` of a container, as the kernel shows them from outside.
    pub(crate) fn nodes(&self, options: &[&str]) -> Result<Vec<String>> {
        let begin = ["podman", "run", "--detach", "--network", "none", "--log-driver", "none"];
        let waiting = ["--rootfs", self.root, "/uverbs", "watch", "--timeout", "600"];
        let name = run(&[&begin[..], options, &waiting].concat())?;
        let name = name.trim();
        let process = run(&["podman", "inspect", "--format", "{{.State.Pid}}", name])?;
        let root = ["/proc", process.trim(), "root"].join("/");
        let names = super::names_in(&[&root, "dev/infiniband"].join("/"));
        run(&["podman", "rm", "--force", "--time", "0", name])?;
        let names = names?;
        ensure!(!names.is_empty(), "no node");
        Ok(names)
    }
}
