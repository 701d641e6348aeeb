//! Runs the built program.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::fs::{FileType, Mode};

use crate::tree::Tree;

/// The result of a run.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) status: i32,
}

/// The program, without the environment variables that it reads.
pub(crate) fn program() -> Command {
    // Or the released file, with an emulator before it for another machine: tests/static/run.
    let words = env::var("UVERBS_TEST_PROGRAM");
    let mut words = words.as_deref().unwrap_or(env!("CARGO_BIN_EXE_uverbs")).split(' ');
    let mut command = Command::new(words.next().unwrap());
    command.args(words);
    command.env_remove("NO_COLOR").env_remove("TERM").stdin(Stdio::null());
    command
}

pub(crate) fn uverbs<A: AsRef<OsStr>>(args: &[A]) -> Run {
    finish(program().args(args))
}

/// Words that name each file.
pub(crate) fn from<P: AsRef<OsStr>>(files: impl IntoIterator<Item = P>) -> Vec<OsString> {
    files.into_iter().flat_map(|file| ["--from".into(), file.as_ref().to_owned()]).collect()
}

/// Makes a pipe that has a name.
pub(crate) fn make_fifo(path: &Path) {
    let mode = Mode::RUSR | Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, path, FileType::Fifo, mode, 0).unwrap();
}

pub(crate) fn finish(command: &mut Command) -> Run {
    let output = command.output().unwrap();
    let run = Run {
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
        status: output.status.code().expect("ended by itself"),
    };
    assert!(!run.stderr.contains("panicked"), "{run:?}");
    run
}

impl Tree {
    /// Runs a command on this tree.
    pub(crate) fn uverbs(&self, args: &[&str]) -> Run {
        finish(program().args(args).arg("--sysfs").arg(self.path()))
    }

    /// Runs a command on this tree that has an answer to everything, and nothing to add.
    pub(crate) fn answer(&self, args: &[&str]) -> String {
        let run = self.uverbs(args);
        assert_eq!((run.stderr.as_str(), run.status), ("", 0), "{run:?}");
        run.stdout
    }

    /// The same as JSON.
    pub(crate) fn json(&self, args: &[&str]) -> serde_json::Value {
        serde_json::from_str(&self.answer(&[args, &["--json"]].concat())).unwrap()
    }
}
