//! Reports from the guest to the host: one line each on the second serial port.
//!
//! The kernel writes to the first port only, so its messages cannot fall into the middle of a
//! report.

use crate::{escape, unescape};
use std::fmt;

/// How every report begins.
const MARK: &str = "@@uverbs";

/// Which of a program's two outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// What became of a scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It held.
    Ok,
    /// It did not, or could not be run; why.
    Failed(String),
    /// It chose not to run on this kernel; why.
    Skipped(String),
}

/// One report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Report {
    /// The guest waits for a line with the name of a scenario; an empty one is the end.
    Ready,
    /// A scenario starts, or what is tried: then the word is `command` or `shell`. Scenarios' names are single
    /// words.
    Begin(String),
    /// The running scenario or command printed this (a line, or the rest before its end).
    Output(Stream, Vec<u8>),
    /// A scenario is over.
    Done(String, Outcome),
    /// The command of a try ended with this status.
    Exit(i32),
    /// The guest itself failed.
    Trouble(String),
    /// All is done; the guest switches off. Without it nothing of a boot is believed.
    End,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Begin(name) => write!(f, "{MARK} scenario {name} begin"),
            Self::Output(Stream::Out, bytes) => write!(f, "{MARK} out {}", escape(bytes)),
            Self::Output(Stream::Err, bytes) => write!(f, "{MARK} err {}", escape(bytes)),
            Self::Done(name, outcome) => {
                write!(f, "{MARK} scenario {name} ")?;
                match outcome {
                    Outcome::Ok => write!(f, "ok"),
                    Outcome::Failed(why) => write!(f, "failed {}", escape(why.as_bytes())),
                    Outcome::Skipped(why) => write!(f, "skipped {}", escape(why.as_bytes())),
                }
            }
            Self::Ready => write!(f, "{MARK} ready"),
            Self::Exit(status) => write!(f, "{MARK} exit {status}"),
            Self::Trouble(what) => write!(f, "{MARK} trouble {}", escape(what.as_bytes())),
            Self::End => write!(f, "{MARK} end"),
        }
    }
}

impl Report {
    /// Reads one line; `None` where it is no report.
    #[must_use]
    pub fn parse(line: &str) -> Option<Self> {
        let line = line.trim_end_matches(['\r', '\n']).strip_prefix(MARK)?.strip_prefix(' ')?;
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        Some(match word {
            "scenario" => {
                let (name, what) = rest.split_once(' ')?;
                let (word, why) = what.split_once(' ').unwrap_or((what, ""));
                let outcome = match word {
                    "begin" => return Some(Self::Begin(name.to_owned())),
                    "ok" => Outcome::Ok,
                    "failed" => Outcome::Failed(text(why)),
                    "skipped" => Outcome::Skipped(text(why)),
                    _ => return None,
                };
                Self::Done(name.to_owned(), outcome)
            }
            "out" => Self::Output(Stream::Out, unescape(rest)),
            "err" => Self::Output(Stream::Err, unescape(rest)),
            "exit" => Self::Exit(rest.parse().ok()?),
            "trouble" => Self::Trouble(text(rest)),
            "ready" if rest.is_empty() => Self::Ready,
            "end" if rest.is_empty() => Self::End,
            _ => return None,
        })
    }
}

fn text(word: &str) -> String {
    String::from_utf8_lossy(&unescape(word)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_survive_the_serial_line() {
        for report in [
            Report::Ready,
            Report::Begin("a".into()),
            Report::Output(Stream::Out, b"x y\xff\n".to_vec()),
            Report::Output(Stream::Err, b"".to_vec()),
            Report::Done("a".into(), Outcome::Ok),
            Report::Done("a".into(), Outcome::Failed("exit status 1, why".into())),
            Report::Done("a".into(), Outcome::Skipped("too old".into())),
            Report::Exit(-1),
            Report::Trouble("no /proc\n".into()),
            Report::End,
        ] {
            let line = format!("{report}\r\n");
            assert_eq!(Report::parse(&line), Some(report));
        }
    }

    #[test]
    fn other_lines_are_no_reports() {
        for line in ["", "hello", "@@uverbs", "@@uverbs exit x", "@@uverbs end of story"] {
            assert_eq!(Report::parse(line), None, "{line}");
        }
    }
}
