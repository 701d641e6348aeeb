//! Writing: the answer to stdout and what goes beside it to stderr, each in one go, unless the answer is
//! long: then it is written as it comes. `watch` writes its lines itself.

use std::fmt::Write as _;
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

use serde::Serialize;

use crate::args::Common;
use crate::out::Out;
use crate::report::{Report, Unanswered};
use crate::status::Status;
use crate::table::{Sheet, Table};
use crate::text::{plain_json, printable};

/// What a command has to say.
#[derive(Debug)]
pub(crate) enum Output {
    /// For people, and for grep and awk.
    Table(Sheet),
    /// The rest of a JSON document.
    Json(Out),
    /// Anything else.
    Text(Vec<u8>),
}

impl<const N: usize> From<Table<N>> for Output {
    fn from(table: Table<N>) -> Self {
        Self::Table(table.into())
    }
}

/// Writes the answer, then notes and, if they are not in the answer, problems.
pub(crate) fn write(
    answer: Output,
    common: &Common,
    report: &Report,
    with_problems: bool,
) -> ExitCode {
    let mut hidden = Vec::new();
    let out = match answer {
        Output::Table(table) => {
            let (out, missing) = table.print(common, Out::default());
            hidden = missing;
            out
        }
        Output::Json(out) => out,
        Output::Text(text) => Out::of(text),
    };
    // Nobody reads any more, which is their right. What was found stays found.
    let error = out.end().err().filter(|error| error.kind() != ErrorKind::BrokenPipe);
    let unwritten = error.map(|error| cannot_write(&error));
    let least = if unwritten.is_some() { Status::Failed } else { Status::Fine };
    // An answer that is not written has none.
    let with_problems = with_problems || unwritten.is_some();
    let problems = report.problems().iter().filter(|_| with_problems);
    let hidden = (!hidden.is_empty())
        .then(|| format!("no room for {}; --wide shows all columns", hidden.join(", ")));
    let lines =
        report.notes().map(str::to_owned).chain(problems.map(Unanswered::text)).chain(hidden);
    say(unwritten.into_iter().chain(lines).chain(report.last().map(str::to_owned)));
    report.status().max(least).into()
}

/// Writes a text that needs no report.
pub(crate) fn write_text(text: String) -> ExitCode {
    match Out::of(text.into_bytes()).end() {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => unwritten(&error),
        Err(_) | Ok(()) => Status::Fine.into(),
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
    pub(crate) fn end(mut self, rest: &impl Serialize) -> serde_json::Result<Output> {
        let rest = serde_json::to_string(rest)?;
        self.out.push("],");
        self.out.push(&plain_json(rest.strip_prefix('{').unwrap_or(&rest)));
        self.out.push("\n");
        Ok(Output::Json(self.out))
    }
}

/// What most documents have after their list.
#[derive(Debug, Serialize)]
pub(crate) struct Rest<'r> {
    pub(crate) problems: &'r [Unanswered],
}

/// Ends where stdout does not take the answer.
pub(crate) fn unwritten(error: &io::Error) -> ExitCode {
    fail(&cannot_write(error))
}

fn cannot_write(error: &io::Error) -> String {
    format!("cannot write: {error}")
}

/// Ends with a message and no answer.
pub(crate) fn fail(message: &str) -> ExitCode {
    say([message.to_owned()].into_iter());
    Status::Failed.into()
}

pub(crate) fn say(lines: impl Iterator<Item = String>) {
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
pub(crate) fn json(document: &impl Serialize) -> serde_json::Result<Output> {
    let mut out = Out::default();
    out.push_json(document)?;
    out.push("\n");
    Ok(Output::Json(out))
}
