//! Programs that are stopped after one of their system calls. strace can do it too, and takes longer to
//! start than such a program runs.

use std::fs::{self, File};
use std::io::{Read, Seek};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Output, Stdio};

use anyhow::{Context, Result, bail, ensure};
use nix::libc;
use nix::sys::ptrace::{self, Options};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

use super::filter::{self, Fate};

/// System calls of which programs make very many, with their numbers.
const FILTERED: [(&str, i64); 3] =
    [("openat", libc::SYS_openat), ("read", libc::SYS_read), ("close", libc::SYS_close)];

/// Becomes the program, whose parent traces it, system calls of this number by a filter: the body of
/// `guest stopped`.
pub(crate) fn run(call: &str, program: &str, arguments: &[&str]) -> Result<()> {
    ptrace::traceme()?;
    if let Ok(call) = call.parse::<i64>() {
        filter::apply(call, &[], Fate::Stop)?;
    }
    Err(Command::new(program).args(arguments).exec().into())
}

/// A program that is stopped. Only the thread that started it can let it go; it ends with that thread.
#[derive(Debug)]
pub(crate) struct Stopped {
    pid: Pid,
    /// What it writes. A pipe could be full before anybody reads it.
    output: [File; 2],
    /// The number of the system call that it made last.
    last_call: u64,
}

impl Stopped {
    /// Starts a program, whose file's whole path is given, and stops it when the last of these system
    /// calls is done. They are all that it makes until then.
    ///
    /// # Errors
    /// Where it cannot be started, or makes fewer.
    pub(crate) fn after(command: &[&str], calls: &[String]) -> Result<Self> {
        // On one processor with it: to wake another takes longer than all that is done at a stop.
        let everywhere = sched_getaffinity(None)?;
        let mut here = CpuSet::new();
        here.set(sched_getcpu());
        sched_setaffinity(None, &here)?;
        let stopped = Self::stop(command, calls);
        sched_setaffinity(None, &everywhere)?;
        stopped
    }

    fn stop(command: &[&str], calls: &[String]) -> Result<Self> {
        // Many calls take long to stop at, each twice. Of one kind a filter finds the last one sooner.
        let last = calls.last().context("no call")?;
        let filtered = FILTERED.iter().find(|(name, _)| name == last).map(|(_, number)| *number);
        let files = ["/tmp/stdout", "/tmp/stderr"].map(|path| {
            File::options().read(true).write(true).create(true).truncate(true).open(path)
        });
        let [out, err] = files;
        let (out, err) = (out?, err?);
        let child = Command::new(std::env::current_exe()?)
            .arg("stopped")
            .arg(filtered.map_or_else(|| "each".to_owned(), |number| number.to_string()))
            .args(command)
            .stdin(Stdio::null())
            .stdout(out.try_clone()?)
            .stderr(err.try_clone()?)
            .spawn()?;
        let pid = Pid::from_raw(i32::try_from(child.id())?);
        let mut this = Self { pid, output: [out, err], last_call: 0 };
        // The first stop is the one that starts the program.
        ensure!(
            matches!(waitpid(pid, None)?, WaitStatus::Stopped(..)),
            "{command:?} is not started"
        );
        ptrace::setoptions(
            pid,
            Options::PTRACE_O_TRACESYSGOOD
                | Options::PTRACE_O_TRACESECCOMP
                | Options::PTRACE_O_EXITKILL,
        )?;
        let stepped = if filtered.is_some() {
            for _ in calls.iter().filter(|call| *call == last) {
                this.next_filtered()?;
            }
            1
        } else {
            calls.len()
        };
        for number in 1..=stepped {
            this.next_stop()?;
            if number == stepped {
                this.last_call = this.current_call()?;
            }
            this.next_stop()?;
        }
        Ok(this)
    }

    /// Goes on to the next system call of the filter.
    fn next_filtered(&self) -> Result<()> {
        let mut signal = None;
        loop {
            ptrace::cont(self.pid, signal.take())?;
            match waitpid(self.pid, None)? {
                WaitStatus::PtraceEvent(..) => return Ok(()),
                WaitStatus::Stopped(_, its) => signal = Some(its),
                other => bail!("it ended before the call: {other:?}"),
            }
        }
    }

    /// Goes on to the beginning or the end of a system call.
    fn next_stop(&self) -> Result<()> {
        let mut signal = None;
        loop {
            ptrace::syscall(self.pid, signal)?;
            match waitpid(self.pid, None)? {
                WaitStatus::PtraceSyscall(_) => return Ok(()),
                WaitStatus::Stopped(_, its) => signal = Some(its),
                other => bail!("it ended before the call: {other:?}"),
            }
        }
    }

    fn current_call(&self) -> Result<u64> {
        let text = fs::read_to_string(format!("/proc/{}/syscall", self.pid))?;
        let number = text.split_whitespace().next().unwrap_or_default();
        number.parse().with_context(|| format!("the call in {text:?}"))
    }

    /// The number of the system call that it made last.
    pub(crate) fn last_call(&self) -> u64 {
        self.last_call
    }

    /// Whether it has a node open, or a file of its events, which both keep a context.
    pub(crate) fn has_context(&self) -> Result<bool> {
        let files = format!("/proc/{}/fd", self.pid);
        for file in fs::read_dir(&files)? {
            let target = fs::read_link(file?.path())?;
            let target = target.to_string_lossy();
            if target.contains("/dev/infiniband/") || target.contains("[infinibandevent]") {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Lets it go, to its end.
    pub(crate) fn end(mut self) -> Result<Output> {
        // Without a tracer the filter would let its calls fail.
        let mut signal = None;
        let status = loop {
            ptrace::cont(self.pid, signal.take())?;
            match waitpid(self.pid, None)? {
                WaitStatus::PtraceEvent(..) => {}
                WaitStatus::Stopped(_, its) => signal = Some(its),
                WaitStatus::Exited(_, code) => break ExitStatus::from_raw(code << 8),
                WaitStatus::Signaled(_, its, _) => break ExitStatus::from_raw(its as i32),
                other => bail!("it is not at its end: {other:?}"),
            }
        };
        let mut read = |place: usize| -> Result<Vec<u8>> {
            let mut bytes = Vec::new();
            let file = self.output.get_mut(place).context("no such file")?;
            file.rewind()?;
            file.read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        Ok(Output { status, stdout: read(0)?, stderr: read(1)? })
    }
}
