//! Writing: the answer to stdout and what goes beside it to stderr, each in one go, unless the answer is
//! long: then it is written as it comes.

use std::borrow::Cow;
use std::fmt::{self, Display, LowerHex, Write as _};
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

use serde::{Serialize, Serializer};
use uverbs::inventory::is_plain_char;
use uverbs::port::Rate;

use crate::args::Common;
use crate::report::{Problem, Report};
use crate::table::Sheet;

/// What a command has to say.
#[derive(Debug)]
pub(crate) enum Answer {
    /// For people, and for grep and awk.
    Table(Sheet),
    /// The rest of a JSON document.
    Json(Out),
    /// Anything else.
    Text(Vec<u8>),
}

/// Writes the answer, then notes and, if they are not in the answer, problems.
pub(crate) fn write(
    answer: Answer,
    common: &Common,
    report: &Report,
    with_problems: bool,
) -> ExitCode {
    let out = match answer {
        Answer::Table(table) => table.print(common, Out::default()),
        Answer::Json(out) => out,
        Answer::Text(text) => Out { text, failure: None },
    };
    match out.end() {
        Ok(()) => {}
        // Nobody reads any more, which is their right. What was found stays found.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {
            return ExitCode::from(report.verdict());
        }
        Err(error) => return fail(&format!("cannot write: {error}")),
    }
    let problems = report.problems().iter().filter(|_| with_problems);
    say(report.notes().map(str::to_owned).chain(problems.map(Problem::text)));
    ExitCode::from(report.status())
}

/// Text on its way to stdout. It is written when there is much of it, and at the end.
#[derive(Debug, Default)]
pub(crate) struct Out {
    text: Vec<u8>,
    /// Why nothing more is written.
    failure: Option<io::Error>,
}

impl Out {
    pub(crate) fn push(&mut self, text: &str) {
        self.text.extend_from_slice(text.as_bytes());
        self.relieve();
    }

    /// Adds a value as JSON in which every character shows as what it is.
    pub(crate) fn push_json(&mut self, value: &impl Serialize) -> serde_json::Result<()> {
        let before = self.text.len();
        serde_json::to_writer(&mut self.text, value)?;
        let added = self.text.get(before..).and_then(|added| std::str::from_utf8(added).ok());
        if let Some(Cow::Owned(plain)) = added.map(plain_json) {
            self.text.truncate(before);
            self.text.extend_from_slice(plain.as_bytes());
        }
        self.relieve();
        Ok(())
    }

    fn relieve(&mut self) {
        /// More than the answer of a host.
        const MUCH: usize = 512 << 10;
        if self.text.len() > MUCH {
            self.flush();
        }
    }

    fn flush(&mut self) {
        if self.failure.is_none() {
            let mut stdout = io::stdout().lock();
            self.failure = stdout.write_all(&self.text).and_then(|()| stdout.flush()).err();
        }
        self.text.clear();
    }

    /// What was not written yet, for tests.
    #[cfg(test)]
    pub(crate) fn into_text(self) -> String {
        String::from_utf8(self.text).unwrap()
    }

    /// Writes the rest. An error is the first of all that was written.
    fn end(mut self) -> io::Result<()> {
        self.flush();
        self.failure.map_or(Ok(()), Err)
    }
}

/// A JSON document that begins with a list, whose rows are added one by one.
#[derive(Debug)]
pub(crate) struct List {
    out: Out,
    has_rows: bool,
}

impl List {
    /// A document whose first key this is.
    pub(crate) fn new(key: &str) -> Self {
        let mut out = Out::default();
        out.push(&format!("{{\"{key}\":["));
        Self { out, has_rows: false }
    }

    pub(crate) fn add(&mut self, row: &impl Serialize) -> serde_json::Result<()> {
        if std::mem::replace(&mut self.has_rows, true) {
            self.out.push(",");
        }
        self.out.push_json(row)
    }

    /// The document with the keys of an object, which has at least one, after the list.
    pub(crate) fn end(mut self, rest: &impl Serialize) -> serde_json::Result<Answer> {
        let rest = serde_json::to_string(rest)?;
        self.out.push("],");
        self.out.push(&plain_json(rest.strip_prefix('{').unwrap_or(&rest)));
        self.out.push("\n");
        Ok(Answer::Json(self.out))
    }
}

/// An object of these keys, in their order.
#[derive(Debug, Default)]
pub(crate) struct Pairs<V>(pub(crate) Vec<(String, V)>);

impl<V: Serialize> Serialize for Pairs<V> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

/// What most documents have after their list.
#[derive(Debug, Serialize)]
pub(crate) struct Rest<'r> {
    pub(crate) problems: &'r [Problem],
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
        // If stderr is closed, nobody can read a message.
        let _ = io::stderr().write_all(text.as_bytes());
    }
}

/// A JSON document on a line.
pub(crate) fn json(document: &impl Serialize) -> serde_json::Result<Answer> {
    let mut out = Out::default();
    out.push_json(document)?;
    out.push("\n");
    Ok(Answer::Json(out))
}

/// A JSON document in which every character shows as what it is. JSON itself asks so only of the first
/// 32; all others are in texts.
pub(crate) fn plain_json(text: &str) -> Cow<'_, str> {
    shown(text, |plain, c| {
        let _ = write!(plain, "\\u{:04x}", u32::from(c));
    })
}

/// A value whose JSON is its text.
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

/// A number that is `0x` and its hexadecimal digits, in text and in JSON.
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
    // Most texts are ASCII.
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) || text.chars().all(is_plain_char) {
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
