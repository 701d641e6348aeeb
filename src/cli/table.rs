//! Tables: columns as wide as their content, two blanks between them, nothing else. On a terminal that is
//! too narrow, [`Layout`] says which lines there are.

use serde_json::Value;

use crate::args::{Color, Common};
use crate::layout::Layout;
use crate::out::Out;
use crate::text::{printable, width};
use crate::values::NONE;

/// Whether a row deserves attention; it says so in words as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    Plain,
    /// What is recommended, or taken.
    Good,
    Attention,
    /// A problem that was found.
    Problem,
}

impl Mark {
    pub(crate) fn colour(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Good => Some("\x1b[32m"),
            Self::Attention => Some("\x1b[33m"),
            Self::Problem => Some("\x1b[31m"),
        }
    }
}

const BOLD: &str = "\x1b[1m";
const RESET: &str = "\x1b[0m";

/// A table under construction.
#[derive(Debug)]
pub(crate) struct Table<const N: usize> {
    sheet: Sheet,
    /// How many of its columns are shown.
    shown: usize,
}

impl<const N: usize> Table<N> {
    pub(crate) fn new(heading: [&'static str; N]) -> Self {
        Self::first(N, heading)
    }

    /// A table of which only the first columns are shown.
    pub(crate) fn first(shown: usize, heading: [&'static str; N]) -> Self {
        let heading = heading.into_iter().take(shown).collect();
        Self { sheet: Sheet { heading, ..Sheet::default() }, shown }
    }

    /// Columns to give up where a terminal is too narrow, the first first.
    pub(crate) fn spare(mut self, columns: &'static [&'static str]) -> Self {
        self.sheet.spare = columns;
        self
    }

    pub(crate) fn row(&mut self, cells: &[String; N], mark: Mark) {
        self.row_of(None, cells, mark);
    }

    /// A row with its host in front. All rows have one, or none has.
    pub(crate) fn row_of(&mut self, host: Option<&str>, cells: &[String; N], mark: Mark) {
        self.sheet.add(host, cells.get(..self.shown).unwrap_or(cells), mark);
    }
}

impl<const N: usize> From<Table<N>> for Sheet {
    fn from(table: Table<N>) -> Self {
        table.sheet
    }
}

/// A table of any width. A row takes no more memory than its text.
#[derive(Debug, Default)]
pub(crate) struct Sheet {
    heading: Vec<&'static str>,
    /// The cells of all rows, each with a tab after it, or with a newline after the last of a row.
    text: String,
    marks: Vec<Mark>,
    /// How wide the widest cell of each column is.
    widths: Vec<usize>,
    /// Whether a row is apart, so that it is not among the widths.
    has_apart: bool,
    spare: &'static [&'static str],
}

/// A cell that is wider is not aligned with others, or each row would be as long as it.
const WIDEST: usize = 256;

impl Sheet {
    fn add(&mut self, host: Option<&str>, cells: &[String], mark: Mark) {
        if host.is_some() && self.marks.is_empty() {
            self.heading.insert(0, "HOST");
        }
        self.marks.push(mark);
        let start = self.text.len();
        for cell in host.into_iter().chain(cells.iter().map(String::as_str)) {
            self.text += &printable(cell);
            self.text.push('\t');
        }
        self.text.pop();
        let Self { text, widths, has_apart, .. } = self;
        let line = text.get(start..).unwrap_or_default();
        if is_apart(line) {
            *has_apart = true;
        } else {
            widen(widths, line.split('\t'));
        }
        text.push('\n');
    }

    /// Writes the table's lines, coloured if that is wanted, and as wide as the terminal if there is one.
    /// Gives the names of columns that have no room.
    pub(crate) fn print(self, common: &Common, out: Out) -> (Out, Vec<&'static str>) {
        let terminal = terminal_width();
        let is_coloured = has_colour(common.color, terminal.is_some());
        let room = terminal.filter(|room| *room > 0 && !common.wide);
        self.lay_out(common.no_header, room, is_coloured, out)
    }

    fn lay_out(
        mut self,
        no_header: bool,
        room: Option<usize>,
        is_coloured: bool,
        mut out: Out,
    ) -> (Out, Vec<&'static str>) {
        let heading = (!no_header).then(|| self.heading.join("\t"));
        if let Some(heading) = &heading {
            widen(&mut self.widths, heading.split('\t'));
        }
        let is_too_wide = |room: &usize| {
            let total: usize = self.widths.iter().map(|width| width + 2).sum();
            self.has_apart || total > room + 2
        };
        let layout = room
            .filter(is_too_wide)
            .map(|room| Layout::new(&self.heading, &self.text, &self.widths, self.spare, room));
        let colours = self.marks.iter().map(|mark| mark.colour());
        let colours = heading.iter().map(|_| Some(BOLD)).chain(colours);
        let lines = heading.as_deref().into_iter().chain(self.text.lines());
        for (line, colour) in lines.zip(colours) {
            let colour = colour.filter(|_| is_coloured);
            let end = |out: &mut Out| {
                if colour.is_some() {
                    out.push(RESET);
                }
                out.push("\n");
            };
            if let Some(layout) = &layout {
                for line in layout.lines(line) {
                    out.push(colour.unwrap_or_default());
                    out.push(&line);
                    end(&mut out);
                }
                continue;
            }
            out.push(colour.unwrap_or_default());
            push_aligned(line, &self.widths, &mut out);
            end(&mut out);
        }
        (out, layout.map(|layout| layout.missing()).unwrap_or_default())
    }
}

/// Whether a row is aligned with no other, as one of its cells is very long. Nothing is aligned with the last cell.
fn is_apart(line: &str) -> bool {
    let cells = line.rsplit('\t').skip(1);
    line.len() > WIDEST && cells.into_iter().any(|cell| cell.len() > WIDEST)
}

fn widen<'c>(widths: &mut Vec<usize>, cells: impl Iterator<Item = &'c str>) {
    for (place, cell) in cells.enumerate() {
        let own = width(cell);
        match widths.get_mut(place) {
            Some(width) => *width = own.max(*width),
            None => widths.push(own),
        }
    }
}

/// Adds a line whose cells are as wide as their columns, with two blanks between them.
fn push_aligned(line: &str, widths: &[usize], out: &mut Out) {
    const BLANKS: &str = "                                                                ";
    let is_apart = is_apart(line);
    let widths = widths.iter().copied().chain(std::iter::repeat(0));
    let mut cells = line.split('\t').zip(widths).peekable();
    while let Some((cell, widest)) = cells.next() {
        out.push(cell);
        if cells.peek().is_none() {
            break;
        }
        let mut blanks = if is_apart { 2 } else { (widest + 2).saturating_sub(width(cell)) };
        while blanks > 0 {
            let some = BLANKS.get(..blanks).unwrap_or(BLANKS);
            out.push(some);
            blanks -= some.len();
        }
    }
}

/// Rows with many fields as a table: a line for each field, named as in JSON, after what names
/// the row. `key` are those fields that do.
pub(crate) fn fields(heading: &'static str, rows: &[Value], key: &[&str]) -> Table<3> {
    let mut table = Table::new([heading, "FIELD", "VALUE"]);
    for row in rows.iter().filter_map(Value::as_object) {
        let name: Vec<String> = key.iter().filter_map(|key| row.get(*key)).map(text).collect();
        let mut lines = Vec::new();
        for (field, value) in row.iter().filter(|(field, _)| !key.contains(&field.as_str())) {
            flatten(field.clone(), value, &mut lines);
        }
        for (field, value) in lines {
            table.row(&[name.join(":"), field, value], Mark::Plain);
        }
    }
    table
}

/// A value's lines: fields of fields as `field.field`, a list of objects by numbers from 0.
fn flatten(name: String, value: &Value, lines: &mut Vec<(String, String)>) {
    match value {
        Value::Object(fields) => {
            for (field, value) in fields {
                flatten(format!("{name}.{field}"), value, lines);
            }
        }
        Value::Array(items) if items.iter().any(Value::is_object) => {
            for (number, value) in items.iter().enumerate() {
                flatten(format!("{name}.{number}"), value, lines);
            }
        }
        other => lines.push((name, text(other))),
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => NONE.to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) if items.is_empty() => NONE.to_owned(),
        Value::Array(items) => items.iter().map(text).collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    }
}

/// Whether lines are coloured that go to stdout as they come.
pub(crate) fn is_coloured(color: Color) -> bool {
    has_colour(color, terminal_width().is_some())
}

fn has_colour(color: Color, is_terminal: bool) -> bool {
    match color {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => {
            is_terminal
                && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
                && std::env::var_os("TERM").is_some_and(|term| term != "dumb")
        }
    }
}

/// How many columns the terminal has to which stdout goes; 0 if it does not say. None where the environment
/// has no terminal: then nothing is asked.
fn terminal_width() -> Option<usize> {
    std::env::var_os("TERM").filter(|term| !term.is_empty())?;
    let size = rustix::termios::tcgetwinsize(rustix::stdio::stdout()).ok()?;
    Some(size.ws_col.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(table: impl Into<Sheet>, no_header: bool) -> String {
        table.into().lay_out(no_header, None, false, Out::default()).0.into_text()
    }

    #[test]
    fn columns_are_as_wide_as_their_content() {
        let mut table = Table::new(["A", "LONG", "B"]);
        table.row(&["mlx5_0".into(), "1".into(), "x".into()], Mark::Plain);
        table.row(&["é\t\n\x1b[0m".into(), "22".into(), NONE.into()], Mark::Plain);
        assert_eq!(
            printed(table, false),
            "A               LONG  B\n\
             mlx5_0          1     x\n\
             é\\t\\n\\u{1b}[0m  22    -\n"
        );
    }

    #[test]
    fn fields_of_fields_have_a_line_each() {
        let row = serde_json::json!({
            "device": "a", "port": 1, "none": null, "text": "b", "pair": [1, 2], "empty": [],
            "inner": {"z": true, "a": {"deep": 1}}, "list": [{"x": 1}, {"x": null}],
        });
        let text = printed(fields("PORT", &[row], &["device", "port"]), true);
        let lines: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split("  ").filter(|it| !it.is_empty()).map(str::trim).collect())
            .collect();
        let expected = [
            ["a:1", "none", "-"],
            ["a:1", "text", "b"],
            ["a:1", "pair", "1 2"],
            ["a:1", "empty", "-"],
            ["a:1", "inner.z", "true"],
            ["a:1", "inner.a.deep", "1"],
            ["a:1", "list.0.x", "1"],
            ["a:1", "list.1.x", "-"],
        ];
        assert_eq!(lines, expected);
    }
}
