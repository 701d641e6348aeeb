//! Snapshots: inventories as JSON documents, read one at a time.

use core::fmt;
use std::io::{self, BufRead, Read as _};

use serde::Deserialize;
use serde::de::{Error as _, IgnoredAny};
use serde_json::error::Category;

use super::Inventory;
use super::document::{FORM, other_form};

/// The longest document that is read, in bytes: 16 MiB. A host with 64 ports of 32 GIDs each takes half a
/// megabyte.
pub const LONGEST_SNAPSHOT: usize = 16 << 20;

/// How a document begins that `uverbs snapshot` wrote.
const BEGINNING: &[u8] = b"{\"schema_version\"";

/// The errno of a file that is too large.
const EFBIG: i32 = 27;
/// The errno of a document that cannot be understood.
const EINVAL: i32 = 22;

/// The hosts of a file of snapshots, one at a time.
///
/// The input is what `uverbs snapshot` writes: JSON documents, one on each line. A document may also take
/// several lines; the next one then begins on a line of its own. Empty lines are skipped. Memory is needed
/// for one document and the inventory that is made of it, however many there are.
///
/// A document that cannot be read is an error, and the next one is read all the same. If a document ends in
/// the middle, the next one is found where a line begins with `{"schema_version"`. Lines that begin no object are
/// one error, up to the next one that begins with `{`. After an error of the reader nothing more is read. An input
/// without any document is an error.
///
/// ```
/// use uverbs::inventory::Snapshots;
///
/// let text = r#"{"schema_version":1,"host":"node1","kernel":"6.12.0","modules":[],"devices":[],
///     "shares_namespaces":true,"has_netlink":true,"absences":[],"interfaces":[],"settings":[],
///     "problems":[]}"#;
/// for host in Snapshots::new(text.as_bytes()) {
///     println!("{}", host?.host.unwrap_or_default());
/// }
/// # Ok::<(), uverbs::inventory::SnapshotError>(())
/// ```
#[derive(Debug)]
pub struct Snapshots<R> {
    reader: R,
    /// A document, and what of the next one was read with it.
    text: Vec<u8>,
    /// Where the next document begins in `text`.
    next: usize,
    /// The number of the document's first line, from 1.
    line: u64,
    /// How many lines the document has.
    lines: u64,
    /// Whether there was a document.
    is_any: bool,
    /// Whether what comes may still be of the last document, or of something that is none.
    is_lost: bool,
    is_done: bool,
}

impl<R: BufRead> Snapshots<R> {
    /// The documents that a reader gives. Nothing is read yet.
    pub fn new(reader: R) -> Self {
        Self {
            reader,
            text: Vec::new(),
            next: 0,
            line: 1,
            lines: 0,
            is_any: false,
            is_lost: false,
            is_done: false,
        }
    }

    /// The reader.
    #[must_use]
    pub fn get_ref(&self) -> &R {
        &self.reader
    }

    /// The number of the first line of the last document, from 1.
    #[must_use]
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Whether the last document ends with a line. One that does not may be the beginning of a longer one.
    pub(crate) fn is_whole(&self) -> bool {
        self.text.get(..self.next).is_some_and(|own| own.ends_with(b"\n"))
    }

    /// How many bytes the last document has.
    pub(crate) fn length(&self) -> u64 {
        self.next as u64
    }

    /// Says that the last document, which could be read, does not fit.
    pub(crate) fn misfit(&self, what: String) -> SnapshotError {
        self.fault(Fault::Invalid(String::new(), what))
    }

    /// Reads the next document as something else. With `is_line` it has no more than one line, whatever it is.
    pub(crate) fn next_by<T>(
        &mut self,
        parse: Parse<T>,
        is_line: bool,
    ) -> Option<Result<T, SnapshotError>> {
        if self.is_done {
            return None;
        }
        let read = self.read(parse, is_line).transpose();
        if read.is_none() {
            self.is_done = true;
            if !self.is_any {
                self.line = 1;
                let nothing = checked(b"", parse).err()?;
                return Some(Err(self.fault(Fault::of(b"", &nothing, 1))));
            }
        }
        self.is_any = true;
        read
    }

    /// Reads the next document; `None` at the end of the input.
    fn read<T>(&mut self, parse: Parse<T>, is_line: bool) -> Result<Option<T>, SnapshotError> {
        loop {
            self.line += self.lines;
            self.lines = 1;
            self.text.drain(..self.next);
            if self.text.is_empty() && !self.read_line()? {
                return Ok(None);
            }
            self.next = self.text.len();
            // Inside a document that takes several lines, an object is indented.
            let own = if is_line { self.text.trim_ascii_start() } else { &self.text };
            let is_object = own.starts_with(b"{");
            if !self.text.trim_ascii_start().is_empty() && (is_object || !self.is_lost) {
                self.is_lost = false;
                return self.read_document(parse, is_line).map(Some);
            }
        }
    }

    /// Reads the document whose first line is known.
    fn read_document<T>(&mut self, parse: Parse<T>, is_line: bool) -> Result<T, SnapshotError> {
        // Nearly every document is a line, and good.
        let mut error = match checked(&self.text, parse) {
            Ok(read) => return Ok(read),
            Err(error) => error,
        };
        let is_object = self.text.trim_ascii_start().starts_with(b"{");
        let mut brackets = Brackets::default();
        brackets.scan(&self.text);
        while is_object
            && !is_line
            && brackets.is_open()
            && self.next == self.text.len()
            && self.read_line()?
        {
            let line = self.text.get(self.next..).unwrap_or_default();
            if line.starts_with(BEGINNING) {
                break;
            }
            brackets.scan(line);
            self.next = self.text.len();
            self.lines += 1;
        }
        let document = self.text.get(..self.next).unwrap_or_default();
        if self.lines > 1 {
            error = match checked(document, parse) {
                Ok(read) => return Ok(read),
                Err(error) => error,
            };
        }
        // What is no object may be anything, and have any number of lines.
        self.is_lost = !is_object;
        Err(self.fault(Fault::of(document, &error, self.line)))
    }

    /// Adds a line to the text, and says whether there was one.
    fn read_line(&mut self) -> Result<bool, SnapshotError> {
        let before = self.text.len();
        let room = (LONGEST_SNAPSHOT + 1).saturating_sub(before) as u64;
        let read = self.reader.by_ref().take(room).read_until(b'\n', &mut self.text);
        let read = read.map_err(|error| self.stop(error))?;
        if self.text.len() <= LONGEST_SNAPSHOT {
            return Ok(read > 0);
        }
        if self.text.last() != Some(&b'\n') {
            self.reader.skip_until(b'\n').map_err(|error| self.stop(error))?;
        }
        self.lines += u64::from(before > 0);
        (self.text, self.next, self.is_lost) = (Vec::new(), 0, true);
        Err(self.fault(Fault::TooLong))
    }

    fn stop(&mut self, error: io::Error) -> SnapshotError {
        self.is_done = true;
        self.fault(Fault::Unread(error))
    }

    fn fault(&self, fault: Fault) -> SnapshotError {
        SnapshotError { line: self.line, fault }
    }
}

impl<R: BufRead> Iterator for Snapshots<R> {
    type Item = Result<Inventory, SnapshotError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_by(|text| serde_json::from_str(text), false)
    }
}

/// How a document is understood.
type Parse<T> = fn(&str) -> serde_json::Result<T>;

/// Reads a document. UTF-8 is checked of the whole, so that it need not be of each text.
fn checked<T>(document: &[u8], parse: Parse<T>) -> serde_json::Result<T> {
    match core::str::from_utf8(document) {
        Ok(text) => parse(text),
        Err(error) => Err(serde_json::Error::custom(format!("no UTF-8: {error}"))),
    }
}

/// Why a document of [`Snapshots`] could not be read.
///
/// Prints as the number of the document's first line, unless that is the first of all, the place in the
/// document, and what is wrong there: `line 3: devices.0.gids.2.gid: …`.
#[derive(Debug)]
pub struct SnapshotError {
    line: u64,
    fault: Fault,
}

#[derive(Debug)]
enum Fault {
    /// The input could not be read.
    Unread(io::Error),
    TooLong,
    /// It is no JSON: why, and where.
    NoJson(String),
    /// It is no snapshot of this form: the place, and what is wrong there.
    Invalid(String, String),
}

impl SnapshotError {
    /// The number of the document's first line, from 1.
    #[must_use]
    pub fn line(&self) -> u64 {
        self.line
    }

    /// An errno that says the same: that of the reader, `EFBIG` for a document that is too long, else
    /// `EINVAL`.
    #[must_use]
    pub fn errno(&self) -> i32 {
        match &self.fault {
            Fault::Unread(error) => error.raw_os_error().unwrap_or(EINVAL),
            Fault::TooLong => EFBIG,
            Fault::NoJson(_) | Fault::Invalid(..) => EINVAL,
        }
    }

    /// Whether the whole document was read, or all that there is of it.
    pub(crate) fn is_of_text(&self) -> bool {
        matches!(self.fault, Fault::NoJson(_) | Fault::Invalid(..))
    }
}

impl fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 1 {
            write!(f, "line {}: ", self.line)?;
        }
        match &self.fault {
            Fault::Unread(error) => error.fmt(f),
            Fault::TooLong => write!(f, "longer than {} MiB", LONGEST_SNAPSHOT >> 20),
            Fault::NoJson(what) => write!(f, "no JSON: {what}"),
            Fault::Invalid(place, what) if place.is_empty() => f.write_str(what),
            Fault::Invalid(place, what) => write!(f, "{place}: {what}"),
        }
    }
}

impl core::error::Error for SnapshotError {}

impl Fault {
    /// What `serde_json` says of a document, which begins at a line of the input.
    fn of(document: &[u8], error: &serde_json::Error, first: u64) -> Self {
        let (line, column) = (error.line(), error.column());
        let text = error.to_string();
        let what = text.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&text);
        if matches!(error.classify(), Category::Syntax | Category::Eof) {
            let line = (first + line as u64).saturating_sub(1);
            return Self::NoJson(format!("{what} at line {line} column {column}"));
        }
        // Of another form all else may be another too. What is no UTF-8 is of none.
        let text = core::str::from_utf8(document).unwrap_or_default();
        match serde_json::from_str(text) {
            Ok(Form { schema_version: FORM }) => {}
            Ok(Form { schema_version }) => {
                return Self::Invalid(String::new(), other_form(schema_version));
            }
            Err(_) => {
                if let Some(command) = output_of(text) {
                    let what = format!(
                        "this is the output of `{command}`; a snapshot is made by `uverbs snapshot`"
                    );
                    return Self::Invalid(String::new(), what);
                }
            }
        }
        let start = match line {
            0 | 1 => 0,
            line => {
                let mut ends = document.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
                ends.nth(line - 2).map_or(0, |(end, _)| end + 1)
            }
        };
        let read = document.get(..start + column).unwrap_or(document);
        let mut place = place_after(read);
        let what = match what.strip_prefix('.').and_then(|rest| rest.split_once(": ")) {
            Some((rest, what)) => {
                place = if place.is_empty() { rest.to_owned() } else { format!("{place}.{rest}") };
                what
            }
            None => what,
        };
        Self::Invalid(place, what.to_owned())
    }
}

/// The command of `uverbs` whose document begins with this key.
fn output_of(document: &str) -> Option<&'static str> {
    let list = document.trim_ascii_start().strip_prefix('{')?.trim_ascii_start();
    let key = list.strip_prefix('"')?.split('"').next()?;
    let own: Keys = serde_json::from_str(document).unwrap_or_default();
    Some(match key {
        // Those of the driver have the same key, and other ones beside it.
        "devices" if own.devices.iter().any(|row| row.node_guid.is_none()) => "uverbs mlx5 device",
        "ports" if own.left_out.is_some() => "uverbs mlx5 port",
        "devices" => "uverbs devices",
        "gids" => "uverbs gids",
        "ports" => "uverbs ports",
        "guids" => "uverbs guids",
        "pkeys" => "uverbs pkeys",
        "limits" => "uverbs limits",
        "counters" => "uverbs counters",
        "choose" => "uverbs choose",
        "env" => "uverbs env",
        "check" => "uverbs check",
        "fleet" => "uverbs fleet",
        "history" => "uverbs history",
        "wait" => "uverbs wait",
        "time" => "uverbs watch",
        "vports" => "uverbs mlx5 vport",
        _ => return None,
    })
}

/// What distinguishes documents that have the same first key.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Keys {
    devices: Vec<DeviceKeys>,
    left_out: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct DeviceKeys {
    node_guid: Option<IgnoredAny>,
}

/// Only the number of a document's form.
#[derive(Deserialize)]
struct Form {
    schema_version: u32,
}

/// Where a document ends: by its brackets.
#[derive(Debug, Default)]
struct Brackets {
    depth: usize,
    is_torn: bool,
}

impl Brackets {
    /// Goes on with a line.
    fn scan(&mut self, line: &[u8]) {
        let mut rest = line.iter();
        while let Some(byte) = rest.next() {
            match byte {
                b'"' => self.is_torn |= string(&mut rest).is_none(),
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
    }

    /// Whether the document goes on after what was scanned. No string goes on after a line.
    fn is_open(&self) -> bool {
        self.depth > 0 && !self.is_torn
    }
}

/// What is left of a string after its first quotation mark; `None` if it has no end. The bytes are taken.
fn string<'t>(rest: &mut core::slice::Iter<'t, u8>) -> Option<&'t [u8]> {
    let text = rest.as_slice();
    let mut is_escaped = false;
    let end = rest.position(|byte| {
        let is_end = *byte == b'"' && !is_escaped;
        is_escaped = *byte == b'\\' && !is_escaped;
        is_end
    })?;
    text.get(..end)
}

/// The keys and numbers that lead to the end of what was read of a document: `devices.0.ports`.
fn place_after(read: &[u8]) -> String {
    enum Step<'t> {
        Key(Option<&'t [u8]>),
        Number(usize),
    }
    let mut path: Vec<Step<'_>> = Vec::new();
    let mut rest = read.iter();
    while let Some(byte) = rest.next() {
        match (byte, path.last_mut()) {
            (b'"', last) => {
                let text = string(&mut rest);
                if let Some(Step::Key(key @ None)) = last {
                    *key = text;
                }
            }
            (b'{', _) => path.push(Step::Key(None)),
            (b'[', _) => path.push(Step::Number(0)),
            (b'}' | b']', _) => drop(path.pop()),
            (b',', Some(Step::Key(key))) => *key = None,
            (b',', Some(Step::Number(number))) => *number += 1,
            _ => {}
        }
    }
    let steps = path.iter().filter_map(|step| match step {
        Step::Key(key) => key.map(|key| String::from_utf8_lossy(key).into_owned()),
        Step::Number(number) => Some(number.to_string()),
    });
    steps.collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests;
