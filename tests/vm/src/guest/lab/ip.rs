//! A permanent `ip` process: a command costs a line, not a process.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStderr, ChildStdin, Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::Namespace;
use crate::supervisor::PATH;

/// A running `ip -batch -` of one network namespace.
///
/// It remembers interfaces by their names: never give a name a second time.
#[derive(Debug)]
pub(crate) struct Ip {
    child: Child,
    commands: ChildStdin,
    errors: BufReader<ChildStderr>,
    /// How many lines it was given.
    lines: usize,
}

impl Ip {
    /// In this namespace; none is ours.
    pub(crate) fn new(namespace: Option<&Namespace>) -> Result<Self> {
        let before = namespace.map(Namespace::exec);
        let before: &[&str] = before.as_ref().map_or(&[], |words| words);
        let words = [before, &["ip", "-force", "-batch", "-"]].concat();
        let (program, arguments) = words.split_first().context("no command")?;
        let mut command = Command::new(program);
        command.args(arguments).env("PATH", PATH);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().context("starting ip")?;
        let commands = child.stdin.take().context("its input")?;
        let errors = BufReader::new(child.stderr.take().context("its errors")?);
        Ok(Self { child, commands, errors, lines: 0 })
    }

    /// Runs a command, without the word `ip`; says whether it succeeded.
    ///
    /// # Errors
    /// Where `ip` has ended, as it does on words that it does not understand.
    pub(crate) fn run(&mut self, command: &str) -> Result<bool> {
        // A second line that fails for sure, so that the answer to the first is known to be over.
        writeln!(self.commands, "{command}\nover")?;
        self.commands.flush()?;
        self.lines += 2;
        let failed = |line: usize| format!("Command failed -:{line}");
        let (mut said, mut succeeded) = (String::new(), true);
        loop {
            let mut line = String::new();
            let count = self.errors.read_line(&mut line)?;
            ensure!(count > 0, "`ip {command}` ended ip: {said}");
            if line.trim() == failed(self.lines) {
                return Ok(succeeded);
            }
            succeeded &= line.trim() != failed(self.lines - 1);
            said += &line;
        }
    }
}

impl Drop for Ip {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
