//! Runs scenarios and commands as children of PID 1 and reports on them.

use crate::boot::{self, Port};
use crate::lab::Skip;
use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, WaitOptions, kill_process_group, wait};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};
use uverbs_vm::job::Size;
use uverbs_vm::report::{Outcome, Report, Stream};
use uverbs_vm::stretched;

/// How long one scenario or command may take.
const LIMIT: Duration = Duration::from_mins(12);
/// How long the clearing up after a scenario may take.
const SWEEP_LIMIT: Duration = Duration::from_mins(2);
/// Where programs are.
pub(crate) const PATH: &str = "/usr/bin:/usr/sbin:/bin:/sbin";
/// The exit status of a child that chose not to run; its last line says why.
const SKIPPED: u8 = 77;

/// Runs the body of a child process and makes an exit status of its result.
pub(crate) fn child(body: impl FnOnce() -> Result<()>) -> ExitCode {
    match body() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::from(if error.is::<Skip>() { SKIPPED } else { 1 })
        }
    }
}

/// Runs each scenario that the host names, even if earlier ones failed.
pub(crate) fn scenarios(port: &mut Port) -> Result<()> {
    loop {
        let name = port.ask()?;
        if name.is_empty() {
            return Ok(());
        }
        port.send(&Report::Begin(name.clone()))?;
        boot::note(&format!("scenario {name}"));
        let outcome = scenario(&name, port)?;
        port.send(&Report::Done(name, outcome))?;
    }
}

/// Runs one scenario and clears up after it. If it left something, it fails: its guards
/// did not work, and the next one would have met it.
fn scenario(name: &str, port: &mut Port) -> Result<Outcome> {
    let ended = run(Command::new("/proc/self/exe").args(["scenario", name]), LIMIT, port)?;
    let swept = run(Command::new("/proc/self/exe").arg("sweep"), SWEEP_LIMIT, port)?;
    Ok(match ended.status {
        None => Outcome::Failed(format!("not over after {:?}", stretched(LIMIT))),
        Some(status) if !status.success() && status.code() != Some(i32::from(SKIPPED)) => {
            Outcome::Failed(status.to_string())
        }
        Some(_) if swept.status.is_none_or(|status| !status.success()) => {
            Outcome::Failed("it left things behind".into())
        }
        Some(status) if !status.success() => Outcome::Skipped(ended.last),
        Some(_) => Outcome::Ok,
    })
}

/// Runs a command of the user's and reports its exit status as a shell would.
pub(crate) fn attempt(program: &str, arguments: &[String], port: &mut Port) -> Result<()> {
    port.send(&Report::Begin("command".into()))?;
    let ended = run(Command::new(program).args(arguments), LIMIT, port)?;
    port.send(&Report::Exit(ended.status.map_or(124, of_a_shell)))
}

/// Runs a shell as long as the user likes, and reports its exit status. What it prints goes to its terminal.
pub(crate) fn shell(size: Size, port: &mut Port) -> Result<()> {
    let mut child = Command::new("/proc/self/exe")
        .args(["shell", &size.rows.to_string(), &size.columns.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("starting the shell")?;
    let mut ready = String::new();
    BufReader::new(child.stdout.take().context("no pipe")?).read_line(&mut ready)?;
    port.send(&Report::Begin("shell".into()))?;
    port.send(&Report::Exit(of_a_shell(child.wait()?)))
}

/// A status as a shell gives it.
fn of_a_shell(status: ExitStatus) -> i32 {
    status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(1)
}

/// How a child ended.
struct Ended {
    /// `None`: it had to be killed, its time was up.
    status: Option<ExitStatus>,
    /// The last line of its standard error.
    last: String,
}

/// Runs a child in a process group of its own and reports its output as it comes.
fn run(command: &mut Command, limit: Duration, port: &mut Port) -> Result<Ended> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .env("PATH", PATH)
        .env("HOME", "/tmp")
        .env("RUST_BACKTRACE", "0")
        .spawn()
        .with_context(|| format!("starting {}", command.get_program().display()))?;
    let (sender, output) = channel();
    forward(child.stdout.take(), Stream::Out, sender.clone());
    forward(child.stderr.take(), Stream::Err, sender);

    let mut last = String::new();
    let deadline = Instant::now() + stretched(limit);
    let status = loop {
        pass_on(&output, Duration::from_millis(10), port, &mut last)?;
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        if Instant::now() > deadline {
            break None;
        }
    };
    bury(&mut child);
    // What is still in the pipes. A process that cannot be killed may hold them open for ever.
    pass_on(&output, Duration::from_secs(2), port, &mut last)?;
    Ok(Ended { status, last })
}

/// Sends a pipe's lines from a thread of its own; the receiver's end is the pipe's end.
fn forward(
    pipe: Option<impl Read + Send + 'static>,
    stream: Stream,
    to: Sender<(Stream, Vec<u8>)>,
) {
    let Some(pipe) = pipe else { return };
    thread::spawn(move || {
        let mut pipe = BufReader::new(pipe);
        loop {
            let mut line = Vec::new();
            match pipe.read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) => {
                    if to.send((stream, line)).is_err() {
                        return;
                    }
                }
            }
        }
    });
}

/// Reports output until none has come for `pause`, or none can come any more.
fn pass_on(
    output: &Receiver<(Stream, Vec<u8>)>,
    pause: Duration,
    port: &mut Port,
    last: &mut String,
) -> Result<()> {
    while let Ok((stream, line)) = output.recv_timeout(pause) {
        if stream == Stream::Err {
            String::from_utf8_lossy(&line).trim().clone_into(last);
        }
        port.send(&Report::Output(stream, line))?;
    }
    Ok(())
}

/// Kills the rest of a child's process group and reaps all dead children.
fn bury(child: &mut Child) {
    // None of this can fail in a way that matters: the processes may simply be gone.
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    thread::sleep(Duration::from_millis(10));
    let _ = child.try_wait();
    while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
}
