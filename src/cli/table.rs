//! Tables: columns as wide as their content, two blanks between them, nothing else.

use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};

use serde_json::Value;
use tabwriter::TabWriter;

use crate::args::{Color, Common};
use crate::output::{Answer, printable};

/// What stands in a cell without a value.
pub(crate) const NONE: &str = "-";

/// A value's text, or [`NONE`].
pub(crate) fn cell<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| NONE.to_owned(), |value| value.to_string())
}

/// Whether a row deserves attention; it says so in words as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    Plain,
    Attention,
}

impl Mark {
    fn colour(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Attention => Some("\x1b[33m"),
        }
    }
}

const BOLD: &str = "\x1b[1m";
const RESET: &str = "\x1b[0m";

/// A table under construction.
#[derive(Debug)]
pub(crate) struct Table<const N: usize> {
    heading: [&'static str; N],
    rows: Vec<([String; N], Mark)>,
}

impl<const N: usize> Table<N> {
    pub(crate) fn new(heading: [&'static str; N]) -> Self {
        Self { heading, rows: Vec::new() }
    }

    pub(crate) fn row(&mut self, cells: [String; N], mark: Mark) {
        self.rows.push((cells, mark));
    }

    fn sheet(self) -> Sheet {
        let rows = self.rows.into_iter().map(|(cells, mark)| (Vec::from(cells), mark)).collect();
        Sheet { heading: Vec::from(self.heading), rows }
    }

    pub(crate) fn answer(self) -> Answer {
        Answer::Table(self.sheet())
    }

    /// The answer, with the host of each row in front if rows have one.
    pub(crate) fn answer_of<'h>(self, hosts: impl IntoIterator<Item = Option<&'h str>>) -> Answer {
        let mut sheet = self.sheet();
        let hosts: Vec<Option<&str>> = hosts.into_iter().collect();
        if hosts.iter().any(Option::is_some) {
            sheet.name_hosts(hosts.iter().map(|host| host.unwrap_or(NONE)));
        }
        Answer::Table(sheet)
    }
}

/// A table of any width.
#[derive(Debug)]
pub(crate) struct Sheet {
    heading: Vec<&'static str>,
    rows: Vec<(Vec<String>, Mark)>,
}

impl Sheet {
    /// Puts a column with the hosts' names in front.
    pub(crate) fn name_hosts<'h>(&mut self, hosts: impl Iterator<Item = &'h str>) {
        self.heading.insert(0, "HOST");
        for ((cells, _), host) in self.rows.iter_mut().zip(hosts) {
            cells.insert(0, host.to_owned());
        }
    }

    /// The table's lines, coloured if that is wanted.
    pub(crate) fn print(&self, common: &Common) -> String {
        let text = self.align(!common.no_header);
        if !is_coloured(common.color) {
            return text;
        }
        let heading = (!common.no_header).then_some(Some(BOLD));
        let colours = heading.into_iter().chain(self.rows.iter().map(|(_, mark)| mark.colour()));
        let mut coloured = String::new();
        for (line, colour) in text.lines().zip(colours) {
            let _ = match colour {
                Some(colour) => writeln!(coloured, "{colour}{line}{RESET}"),
                None => writeln!(coloured, "{line}"),
            };
        }
        coloured
    }

    /// A row with a very long cell stands by itself: its width is not that of the others, or each of them
    /// would be as long as it.
    fn align(&self, with_heading: bool) -> String {
        const WIDEST: usize = 256;
        let mut tabs = String::new();
        if with_heading {
            tabs += &self.heading.join("\t");
            tabs.push('\n');
        }
        let mut apart = Vec::new();
        for (place, (cells, _)) in self.rows.iter().enumerate() {
            let cells: Vec<_> = cells.iter().map(|cell| printable(cell)).collect();
            let before_last = cells.split_last().map_or(&[][..], |(_, cells)| cells);
            if before_last.iter().any(|cell| cell.len() > WIDEST) {
                apart.push((place + usize::from(with_heading), cells.join("  ")));
                continue;
            }
            tabs += &cells.join("\t");
            tabs.push('\n');
        }
        let aligned = aligned(tabs);
        if apart.is_empty() {
            return aligned;
        }
        let mut text = String::with_capacity(aligned.len());
        let (mut lines, mut apart) = (aligned.lines(), apart.into_iter().peekable());
        for place in 0.. {
            let own = apart.next_if(|(own, _)| *own == place);
            let line = own.as_ref().map(|(_, line)| line.as_str()).or_else(|| lines.next());
            let Some(line) = line else { break };
            text += line;
            text.push('\n');
        }
        text
    }
}

/// Lines whose cells end with tabs, aligned.
fn aligned(tabs: String) -> String {
    let mut writer = TabWriter::new(Vec::with_capacity(2 * tabs.len())).minwidth(0).padding(2);
    // Nothing can fail in memory; if it did, tabs are better than nothing.
    let aligned = writer.write_all(tabs.as_bytes()).ok().and_then(|()| {
        let bytes = writer.into_inner().ok()?;
        String::from_utf8(bytes).ok()
    });
    aligned.unwrap_or(tabs)
}

/// Rows with many fields as a table: a line for each field, named as in JSON, behind what names
/// the row. `key` are those fields that do.
pub(crate) fn fields(heading: &'static str, rows: &[Value], key: &[&str]) -> Answer {
    let mut table = Table::new([heading, "FIELD", "VALUE"]);
    for row in rows.iter().filter_map(Value::as_object) {
        let name: Vec<String> = key.iter().filter_map(|key| row.get(*key)).map(text).collect();
        let mut lines = Vec::new();
        for (field, value) in row.iter().filter(|(field, _)| !key.contains(&field.as_str())) {
            flatten(field.clone(), value, &mut lines);
        }
        for (field, value) in lines {
            table.row([name.join(":"), field, value], Mark::Plain);
        }
    }
    table.answer()
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

fn is_coloured(color: Color) -> bool {
    match color {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => {
            std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
                && std::env::var_os("TERM").is_some_and(|term| !term.is_empty() && term != "dumb")
                && std::io::stdout().is_terminal()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_content() {
        let mut table = Table::new(["A", "LONG", "B"]);
        table.row(["mlx5_0".into(), "1".into(), "x".into()], Mark::Plain);
        table.row(["é\t\n\x1b[0m".into(), "22".into(), NONE.into()], Mark::Plain);
        let Answer::Table(table) = table.answer() else { panic!("a table") };
        assert_eq!(
            table.align(true),
            "A               LONG  B\n\
             mlx5_0          1     x\n\
             é\\t\\n\\u{1b}[0m  22    -\n"
        );
        assert_eq!(table.align(false).lines().count(), 2);
    }

    #[test]
    fn fields_of_fields_have_a_line_each() {
        let row = serde_json::json!({
            "device": "a", "port": 1, "none": null, "text": "b", "pair": [1, 2], "empty": [],
            "inner": {"z": true, "a": {"deep": 1}}, "list": [{"x": 1}, {"x": null}],
        });
        let common = Common { json: false, no_header: true, sysfs: None, color: Color::Never };
        let Answer::Table(table) = fields("PORT", &[row], &["device", "port"]) else {
            panic!("a table")
        };
        let text = table.print(&common);
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
