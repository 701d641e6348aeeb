//! Programs in another root folder, or as another user: what the newer release of rdma-core runs in,
//! with its own C library, and an empty folder.

use std::convert::Infallible;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::{env, fs};

use anyhow::{Context, Result, bail};
use nix::sched::{CloneFlags, unshare};
use rustix::mount::mount_bind_recursive;
use rustix::process::chroot;

/// The exit status of [`run`] when the program could not be started.
const NOT_STARTED: i32 = 1;
/// How its message begins then.
const COULD_NOT: &str = "guest within: ";

/// Where a program runs, and as whom.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Within<'a> {
    /// The folder that is its root.
    pub(crate) root: &'a str,
    /// Our folders that are in there too. If the root is ours, they are in there anyway.
    pub(crate) mounts: &'a [&'a str],
    /// The user and group.
    pub(crate) user: u32,
    /// The words before the command, which enter a network namespace.
    pub(crate) before: &'a [&'a str],
}

impl Within<'_> {
    /// Root's usual place.
    pub(crate) const HERE: Within<'static> =
        Within { root: "/", mounts: &[], user: 0, before: &[] };

    /// Runs a program and gives its process's number and all that came of it. It sees its file's
    /// name as its own.
    ///
    /// # Errors
    /// Where it cannot be started.
    pub(crate) fn run(&self, program: &str, arguments: &[&str]) -> Result<(u32, Output)> {
        let mut command = self.command(program, arguments)?;
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().with_context(|| format!("starting {command:?}"))?;
        // The words before it become the program, too.
        let number = child.id();
        let done = child.wait_with_output()?;
        let said = String::from_utf8_lossy(&done.stderr);
        if done.status.code() == Some(NOT_STARTED) && said.starts_with(COULD_NOT) {
            bail!("{}", said.trim());
        }
        Ok((number, done))
    }

    /// What becomes the program.
    pub(crate) fn command(&self, program: &str, arguments: &[&str]) -> Result<Command> {
        let (mounts, user) = (self.mounts.join(","), self.user.to_string());
        // Its path: after those words /proc/self/exe is another program.
        let guest = env::current_exe()?;
        let guest = guest.to_str().context("our own path")?;
        let own = [guest, "within", self.root, &mounts, &user, program];
        let words = [self.before, &own, arguments].concat();
        let (first, rest) = words.split_first().context("no command")?;
        let mut command = Command::new(first);
        command.args(rest);
        Ok(command)
    }
}

/// Becomes the program: the body of `guest within`. The mounts are this process's own, and end with
/// it.
pub(crate) fn run(
    root: &str,
    mounts: &str,
    user: &str,
    program: &str,
    arguments: &[&str],
) -> Result<()> {
    let became = become_it(root, mounts, user, program, arguments);
    became.map(|never| match never {}).with_context(|| format!("{COULD_NOT}{program} in {root}"))
}

fn become_it(
    root: &str,
    mounts: &str,
    user: &str,
    program: &str,
    arguments: &[&str],
) -> Result<Infallible> {
    let user: u32 = user.parse().context("the user")?;
    if root != "/" {
        unshare(CloneFlags::CLONE_NEWNS).context("a mount namespace")?;
        for folder in mounts.split(',').filter(|folder| !folder.is_empty()) {
            let place = format!("{root}/{folder}");
            fs::create_dir_all(&place).with_context(|| format!("creating {place}"))?;
            mount_bind_recursive(format!("/{folder}"), &place)
                .with_context(|| format!("mounting {place}"))?;
        }
        chroot(root).context("chroot")?;
        env::set_current_dir("/")?;
    }
    let name = Path::new(program).file_name().context("no program")?;
    let mut command = Command::new(program);
    Err(command.arg0(name).args(arguments).gid(user).uid(user).exec().into())
}
