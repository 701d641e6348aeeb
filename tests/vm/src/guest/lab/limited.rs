//! Programs that lack something: open files, memory, system calls, a folder, room in an rdma cgroup.

use std::convert::Infallible;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output, exit};
use std::{env, fmt, fs};

use anyhow::{Context, Result, bail};
use nix::libc;
use nix::sched::{CloneFlags, unshare};
use rustix::mount::MountPropagationFlags;
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_change, unmount};
use rustix::process::{Resource, Rlimit, setrlimit};

use super::filter::{self, Fate};
use super::output;

const AF_NETLINK: u64 = 16;
const NETLINK_ROUTE: u64 = 0;
const NETLINK_RDMA: u64 = 20;

/// Where the hierarchy of cgroups is mounted.
const HIERARCHY: &str = "/sys/fs/cgroup";

/// What a program has to do without.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Limit<'a> {
    /// More open files than these, its standard ones included.
    Files(u64),
    /// More bytes of address space than these.
    Memory(u64),
    /// `ioctl`, which answers with this errno.
    Ioctl(u32),
    /// Sockets, which answer with this errno.
    Sockets(u32),
    /// Sockets of RDMA netlink, which answer with this errno.
    RdmaNetlink(u32),
    /// Sockets of route netlink, which answer with this errno.
    RouteNetlink(u32),
    /// `uname`, which answers with this errno.
    Uname(u32),
    /// What is in these folders, each hidden by an empty one that is read-only.
    Folders(&'a [&'a str]),
    /// The sight of the host's processes: it is the first one of a PID namespace of its own.
    Processes,
    /// What a cgroup has too little of.
    Cgroup(&'a Cgroup),
}

impl fmt::Display for Limit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Files(count) => write!(f, "files={count}"),
            Self::Memory(bytes) => write!(f, "memory={bytes}"),
            Self::Ioctl(errno) => write!(f, "ioctl={errno}"),
            Self::Sockets(errno) => write!(f, "sockets={errno}"),
            Self::RdmaNetlink(errno) => write!(f, "rdma={errno}"),
            Self::RouteNetlink(errno) => write!(f, "route={errno}"),
            Self::Uname(errno) => write!(f, "uname={errno}"),
            Self::Folders(folders) => write!(f, "folders={}", folders.join(",")),
            Self::Processes => f.write_str("processes=own"),
            Self::Cgroup(Cgroup(folder)) => write!(f, "cgroup={folder}"),
        }
    }
}

impl Limit<'_> {
    /// Runs a program, whose file's whole path is given.
    ///
    /// # Errors
    /// Where it cannot be started.
    pub(crate) fn output(self, command: &[&str]) -> Result<Output> {
        let guest = env::current_exe()?;
        let guest = guest.to_str().context("our own path")?;
        output(&[&[guest, "limited", &self.to_string()], command].concat())
    }
}

/// Becomes the program: the body of `guest limited`.
pub(crate) fn run(limit: &str, program: &str, arguments: &[&str]) -> Result<()> {
    become_it(limit, program, arguments)
        .map(|never| match never {})
        .with_context(|| format!("{program} with {limit}"))
}

fn become_it(limit: &str, program: &str, arguments: &[&str]) -> Result<Infallible> {
    let (what, amount) = limit.split_once('=').context("no limit")?;
    let number = || amount.parse::<u64>().context("no number");
    // The last thing to do: what starts the program is to be limited as little as can be.
    let mut command = Command::new(program);
    command.args(arguments);
    let at_most = |resource| -> Result<()> {
        let limit = number()?;
        Ok(setrlimit(resource, Rlimit { current: Some(limit), maximum: Some(limit) })?)
    };
    match what {
        "files" => at_most(Resource::Nofile)?,
        "memory" => at_most(Resource::As)?,
        "ioctl" => forbid(libc::SYS_ioctl, &[], number()?)?,
        "sockets" => forbid(libc::SYS_socket, &[], number()?)?,
        "rdma" => forbid_netlink(NETLINK_RDMA, number()?)?,
        "route" => forbid_netlink(NETLINK_ROUTE, number()?)?,
        "uname" => forbid(libc::SYS_uname, &[], number()?)?,
        "folders" => {
            unshare(CloneFlags::CLONE_NEWNS).context("a mount namespace")?;
            mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
            for folder in amount.split(',') {
                mount("tmpfs", folder, "tmpfs", MountFlags::RDONLY, None)
                    .with_context(|| format!("hiding {folder}"))?;
            }
        }
        "processes" => {
            // The child is in it. Afterwards this process could start no other.
            unshare(CloneFlags::CLONE_NEWPID).context("a PID namespace")?;
            let status = command.status().with_context(|| format!("starting {program}"))?;
            exit(status.code().unwrap_or(1));
        }
        "cgroup" => join(amount)?,
        _ => bail!("no such limit"),
    }
    Err(command.exec().into())
}

/// Lets a system call with these arguments fail with this errno.
fn forbid(call: i64, arguments: &[(u8, u64)], errno: u64) -> Result<()> {
    filter::apply(call, arguments, Fate::Fail(u32::try_from(errno)?))
}

/// The same of sockets of this protocol of netlink.
fn forbid_netlink(protocol: u64, errno: u64) -> Result<()> {
    forbid(libc::SYS_socket, &[(0, AF_NETLINK), (2, protocol)], errno)
}

fn join(folder: &str) -> Result<()> {
    fs::write(format!("{folder}/cgroup.procs"), "0").with_context(|| format!("joining {folder}"))
}

/// A cgroup with a limit on RDMA; on drop it goes, and this process is in none.
#[derive(Debug)]
pub(crate) struct Cgroup(String);

impl Cgroup {
    /// One with this limit, in the words of `rdma.max`: `rxe0 hca_handle=1`.
    pub(crate) fn new(limit: &str) -> Result<Self> {
        mount("cgroup2", HIERARCHY, "cgroup2", MountFlags::empty(), None).context("the cgroups")?;
        let this = Self(format!("{HIERARCHY}/rdma"));
        fs::write(format!("{HIERARCHY}/cgroup.subtree_control"), "+rdma")
            .context("rdma cgroups")?;
        fs::create_dir(&this.0)?;
        fs::write(format!("{}/rdma.max", this.0), limit).with_context(|| limit.to_owned())?;
        Ok(this)
    }

    /// Puts this process in, until the drop.
    pub(crate) fn join(&self) -> Result<()> {
        join(&self.0)
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let undone = join(HIERARCHY)
            .and_then(|()| Ok(fs::remove_dir(&self.0)?))
            .and_then(|()| Ok(unmount(HIERARCHY, UnmountFlags::empty())?));
        if let Err(error) = undone {
            eprintln!("undoing: {error:#}");
        }
    }
}
