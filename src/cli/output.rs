//! Writing: the answer to stdout and what goes beside it to stderr, each in one go.

use std::borrow::Cow;
use std::fmt::{self, Display, LowerHex, Write as _};
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

use serde::{Serialize, Serializer};
use uverbs::inventory::is_plain_char;
use uverbs::port::Rate;

use crate::report::{Problem, Report};
use crate::table::Sheet;

/// What a command has to say.
#[derive(Debug)]
pub(crate) enum Answer {
    /// For people, and for grep and awk.
    Table(Sheet),
    /// A JSON document.
    Json(String),
    /// Anything else.
    Text(String),
}

/// Writes the answer, then notes and, if they are not in the answer, problems.
pub(crate) fn write(answer: &[u8], report: &Report, with_problems: bool) -> ExitCode {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(answer).and_then(|()| stdout.flush()) {
        Ok(()) => {}
        // Nobody reads any more, which is their right. What was found stays found.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {
            return ExitCode::from(report.verdict());
        }
        Err(error) => return fail(&format!("cannot write: {error}")),
    }
    let problems = report.problems().iter().filter(|_| with_problems);
    say(report.notes().iter().cloned().chain(problems.map(Problem::text)));
    ExitCode::from(report.status())
}

/// Ends with a message and no answer.
pub(crate) fn fail(message: &str) -> ExitCode {
    say([message.to_owned()].into_iter());
    ExitCode::FAILURE
}

fn say(lines: impl Iterator<Item = String>) {
    let mut text = String::new();
    for line in lines {
        let _ = writeln!(text, "uverbs: {}", printable(&line));
    }
    if !text.is_empty() {
        // If stderr is closed there is nobody left to tell.
        let _ = io::stderr().write_all(text.as_bytes());
    }
}

/// A JSON document on a line.
pub(crate) fn json(document: &impl Serialize) -> serde_json::Result<Answer> {
    let mut text = plain_json(&serde_json::to_string(document)?).into_owned();
    text.push('\n');
    Ok(Answer::Json(text))
}

/// A JSON document in which every character shows as what it is. JSON itself asks so only of the first
/// 32; all others are in texts.
pub(crate) fn plain_json(text: &str) -> Cow<'_, str> {
    shown(text, |plain, c| {
        let _ = write!(plain, "\\u{:04x}", u32::from(c));
    })
}

/// A value that stands in JSON as the text that it prints as.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text<T>(pub(crate) T);

impl<T: Display> Serialize for Text<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&self.0)
    }
}

impl<T: Display> Display for Text<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A number that prints, and stands in JSON, as a text of `0x` and its digits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hex<T>(pub(crate) T);

impl<T: LowerHex> Serialize for Hex<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<T: LowerHex> Display for Hex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// A rate as its number of Gb/s, with a fraction only where there is one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gbps(pub(crate) Rate);

impl Serialize for Gbps {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        if self.0.0.is_multiple_of(10) {
            to.serialize_u64(self.0.0 / 10)
        } else {
            to.serialize_f64(self.0.gbps())
        }
    }
}

/// A text whose every character shows as what it is. A setting or an error's text may hold others.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    shown(text, |plain, c| plain.extend(c.escape_default()))
}

/// A text with an escape for each character that does not show as what it is.
fn shown(text: &str, escape: impl Fn(&mut String, char)) -> Cow<'_, str> {
    if text.chars().all(is_plain_char) {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        if is_plain_char(c) {
            plain.push(c);
        } else {
            escape(&mut plain, c);
        }
    }
    Cow::Owned(plain)
}
