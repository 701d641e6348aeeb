//! A table that is wider than the terminal. No row breaks inside a word: columns that say nothing of their
//! own go first, then those that the command can spare, then long texts wrap in their own columns. What still
//! has no room goes on in the next line, further in.

use crate::text::width;
use crate::values::NONE;

/// Columns of sentences and lists, which may wrap.
const TEXTS: [&str; 6] = ["SEEN", "ADVICE", "REASON", "VALUE", "HOSTS", "WHERE"];

/// Columns that may only repeat what is in another.
const REPEATS: [(&str, &str); 3] =
    [("IPV4", "GID"), ("SYS_IMAGE_GUID", "NODE_GUID"), ("PORT_GUID", "NODE_GUID")];

/// The narrowest column that a sentence is read in.
const NARROWEST: usize = 24;

/// How far in a line begins that goes on with a row.
const INDENT: usize = 4;

/// Between two columns.
const GAP: usize = 2;

/// The columns of a table that does not fit.
#[derive(Debug)]
pub(crate) struct Layout {
    columns: Vec<Column>,
    room: usize,
    /// Whether sentences have columns of their own; else each begins a line.
    has_text_columns: bool,
}

#[derive(Debug)]
struct Column {
    name: &'static str,
    width: usize,
    is_text: bool,
    is_shown: bool,
    /// Whether no row has a value.
    is_empty: bool,
    /// The column that this one repeats in every row.
    repeats: Option<usize>,
}

impl Layout {
    /// Fits the rows into so many columns of a terminal. `spare` are the columns to give up, in this order.
    pub(crate) fn new(
        heading: &[&'static str],
        rows: &str,
        widths: &[usize],
        spare: &[&str],
        room: usize,
    ) -> Self {
        let place = |name: &str| heading.iter().position(|own| *own == name);
        let columns = heading.iter().enumerate().map(|(number, name)| Column {
            name,
            // Without a heading and rows there is none.
            width: widths.get(number).copied().unwrap_or_default(),
            is_text: TEXTS.contains(name),
            is_shown: true,
            is_empty: true,
            repeats: REPEATS.iter().find(|(own, _)| own == name).and_then(|own| place(own.1)),
        });
        let mut layout = Self { columns: columns.collect(), room, has_text_columns: true };
        for row in rows.lines() {
            layout.look_at(row);
        }
        layout.give_up(|column| column.is_empty);
        layout.give_up(|column| column.repeats.is_some());
        for name in spare {
            layout.give_up(|column| column.name == *name);
        }
        layout.share();
        layout
    }

    /// The columns that have no room although they say something.
    pub(crate) fn missing(&self) -> Vec<&'static str> {
        let says = |column: &&Column| !column.is_shown && !column.is_empty;
        let missing = self.columns.iter().filter(says).filter(|own| own.repeats.is_none());
        missing.map(|column| column.name).collect()
    }

    /// Finds out what the columns have of their own.
    fn look_at(&mut self, row: &str) {
        let cells: Vec<&str> = row.split('\t').collect();
        for (column, cell) in self.columns.iter_mut().zip(&cells) {
            column.is_empty &= *cell == NONE;
            if column.is_text {
                column.width = column.width.max(width(cell));
            }
            let other = column.repeats.and_then(|place| cells.get(place));
            column.repeats = column.repeats.filter(|_| {
                let other = other.copied().unwrap_or_default();
                // An IPv4 address is the end of its GID; no other GID has one.
                let ipv4 = other.strip_prefix("::ffff:").unwrap_or(NONE);
                *cell == if column.name == "IPV4" { ipv4 } else { other }
            });
        }
    }

    /// Gives up columns of a kind, from the last one, until the others fit.
    fn give_up(&mut self, is_of_kind: impl Fn(&Column) -> bool) {
        let mut excess = self.total().saturating_sub(self.room);
        for column in self.columns.iter_mut().rev() {
            if excess == 0 {
                break;
            }
            if column.is_shown && is_of_kind(column) {
                column.is_shown = false;
                excess = excess.saturating_sub(column.width + GAP);
            }
        }
    }

    fn shown(&self) -> impl Iterator<Item = &Column> {
        self.columns.iter().filter(|column| column.is_shown)
    }

    fn total(&self) -> usize {
        let total: usize = self.shown().map(|column| column.width + GAP).sum();
        total.saturating_sub(GAP)
    }

    /// Shares what room is left among the columns of sentences, the shortest of which get what they need.
    fn share(&mut self) {
        let others: usize =
            self.shown().filter(|own| !own.is_text).map(|own| own.width + GAP).sum();
        let mut texts: Vec<&mut Column> =
            self.columns.iter_mut().filter(|own| own.is_shown && own.is_text).collect();
        texts.sort_by_key(|own| own.width);
        let mut left = (self.room + GAP).saturating_sub(others);
        let mut count = texts.len();
        for column in texts {
            let share = (left / count).saturating_sub(GAP);
            if column.width > share {
                self.has_text_columns &= share >= NARROWEST;
                column.width = share;
            }
            left = left.saturating_sub(column.width + GAP);
            count -= 1;
        }
    }

    /// The lines of a row.
    pub(crate) fn lines(&self, row: &str) -> Vec<String> {
        let cells = row.split('\t').zip(&self.columns).filter(|(_, column)| column.is_shown);
        let cells: Vec<(&str, &Column)> = cells.collect();
        self.in_columns(&cells).unwrap_or_else(|| self.flowing(&cells))
    }

    /// The lines of a row whose cells fit into their columns.
    fn in_columns(&self, cells: &[(&str, &Column)]) -> Option<Vec<String>> {
        if !self.has_text_columns || self.total() > self.room {
            return None;
        }
        let mut wrapped = Vec::with_capacity(cells.len());
        for (cell, column) in cells {
            let lines =
                if column.is_text { wrap(cell, column.width) } else { vec![(*cell).to_owned()] };
            if lines.iter().any(|line| width(line) > column.width) {
                return None;
            }
            wrapped.push(lines.into_iter());
        }
        let mut lines = Vec::new();
        loop {
            let mut line = Line::default();
            let mut is_any = false;
            for (own, (_, column)) in wrapped.iter_mut().zip(cells) {
                let text = own.next();
                is_any |= text.is_some();
                line.push(&text.unwrap_or_default(), column.width);
            }
            if !is_any {
                return Some(lines);
            }
            lines.push(line.end());
        }
    }

    /// The lines of a row that goes on in the next line where its column does not fit: all rows do so at the same
    /// columns, so that each cell is below its heading.
    fn flowing(&self, cells: &[(&str, &Column)]) -> Vec<String> {
        let mut lines = Vec::new();
        let mut line = Line::default();
        for (cell, column) in cells {
            if column.is_text {
                for text in wrap(cell, self.room.saturating_sub(INDENT)) {
                    lines.push(std::mem::replace(&mut line, Line::indented()).end());
                    line.push(&text, 0);
                }
                continue;
            }
            if !line.has_room(column.width.max(width(cell)), self.room) {
                lines.push(std::mem::replace(&mut line, Line::indented()).end());
            }
            line.push(cell, column.width);
        }
        lines.push(line.end());
        lines
    }
}

/// A line that is being filled.
#[derive(Debug, Default)]
struct Line {
    text: String,
    /// Where the next cell begins.
    next: usize,
    is_begun: bool,
}

impl Line {
    fn indented() -> Self {
        Self { next: INDENT, ..Self::default() }
    }

    fn has_room(&self, own: usize, room: usize) -> bool {
        !self.is_begun || self.next + own <= room
    }

    /// Adds a cell, and leaves as much as its column is wide.
    fn push(&mut self, cell: &str, column: usize) {
        if !cell.is_empty() {
            let blanks = self.next.saturating_sub(width(&self.text));
            self.text.extend(std::iter::repeat_n(' ', blanks));
            self.text += cell;
        }
        self.next += column.max(width(cell)) + GAP;
        self.is_begun = true;
    }

    fn end(self) -> String {
        self.text
    }
}

/// The lines of a text, broken at blanks. A word that is too long has a line of its own.
fn wrap(text: &str, room: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut filled = 0;
    for word in text.split(' ') {
        let own = width(word);
        if filled > 0 && filled + 1 + own > room {
            lines.push(std::mem::take(&mut line));
            filled = 0;
        } else if filled > 0 {
            line.push(' ');
            filled += 1;
        }
        line += word;
        filled += own;
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of the heading and the rows, each within the room.
    fn set(heading: &[&'static str], rows: &[&[&str]], spare: &[&str], room: usize) -> Vec<String> {
        let mut widths: Vec<usize> = heading.iter().map(|name| name.len()).collect();
        for row in rows {
            for (own, cell) in widths.iter_mut().zip(*row) {
                *own = width(cell).max(*own);
            }
        }
        let text: Vec<String> = rows.iter().map(|row| row.join("\t")).collect();
        let layout = Layout::new(heading, &text.join("\n"), &widths, spare, room);
        let heading = heading.join("\t");
        let all = std::iter::once(&heading).chain(&text);
        all.flat_map(|row| layout.lines(row)).collect()
    }

    #[test]
    fn what_says_nothing_of_its_own_goes_first() {
        let heading = ["DEVICE", "GID", "IPV4", "NETDEV"];
        let rows: [&[&str]; 2] =
            [&["a", "fe80::1", "-", "-"], &["a", "::ffff:1.2.3.4", "1.2.3.4", "-"]];
        let lines = |room| set(&heading, &rows, &[], room).join("\n");
        assert_eq!(
            lines(31),
            "DEVICE  GID             IPV4\na       fe80::1         -\na       ::ffff:1.2.3.4  1.2.3.4"
        );
        assert_eq!(lines(30), "DEVICE  GID\na       fe80::1\na       ::ffff:1.2.3.4");
        // An address that is not the GID's is no repetition.
        let rows: [&[&str]; 1] = [&["a", "::ffff:1.2.3.4", "1.2.3.5", "-"]];
        assert!(set(&heading, &rows, &[], 30).join("\n").contains("1.2.3.5"));
    }

    #[test]
    fn then_what_can_be_spared_in_its_order() {
        let heading = ["A", "B", "C"];
        let rows: [&[&str]; 1] = [&["1", "22222", "33333"]];
        assert_eq!(set(&heading, &rows, &["B", "C"], 14), ["A  C", "1  33333"]);
        assert_eq!(set(&heading, &rows, &["B", "C"], 7), ["A", "1"]);
    }

    #[test]
    fn sentences_wrap_in_their_own_columns() {
        let heading = ["NAME", "SEEN", "ADVICE"];
        let seen = "the port is down and nobody knows why it is so";
        let rows: [&[&str]; 1] = [&["x", seen, "look at it"]];
        assert_eq!(
            set(&heading, &rows, &[], 46),
            [
                "NAME  SEEN                          ADVICE",
                "x     the port is down and nobody   look at it",
                "      knows why it is so",
            ]
        );
        // Below the narrowest each has lines of its own.
        assert_eq!(
            set(&heading, &rows, &[], 30),
            [
                "NAME",
                "    SEEN",
                "    ADVICE",
                "x",
                "    the port is down and",
                "    nobody knows why it is so",
                "    look at it",
            ]
        );
    }

    #[test]
    fn a_row_goes_on_in_the_next_line() {
        let rows: [&[&str]; 1] = [&["mlx5_0", "1", "2001:db8:1:2:3:4:5:6", "eth0"]];
        assert_eq!(
            set(&["DEVICE", "PORT", "GID", "NETDEV"], &rows, &[], 36),
            ["DEVICE  PORT  GID", "    NETDEV", "mlx5_0  1     2001:db8:1:2:3:4:5:6", "    eth0"]
        );
    }

    /// A short cell would have had room beside the others, and those after it would be below another heading.
    #[test]
    fn rows_go_on_at_the_same_columns() {
        let heading = ["GID", "TYPE", "NETDEV", "NCCL", "UCX"];
        let rows: [&[&str]; 2] =
            [&["::ffff:10.0.0.1", "v2", "d0", "3", "-"], &["fe80::1", "v2", "d0.7", "3", "3"]];
        assert_eq!(
            set(&heading, &rows, &[], 27),
            [
                "GID              TYPE",
                "    NETDEV  NCCL  UCX",
                "::ffff:10.0.0.1  v2",
                "    d0      3     -",
                "fe80::1          v2",
                "    d0.7    3     3",
            ]
        );
    }

    #[test]
    fn no_word_is_broken_and_none_is_lost() {
        let words = [
            "a",
            "bb",
            "cccccccc",
            "été",
            "\u{4e16}\u{754c}",
            "-",
            "x/y/z:longer-than-most-columns-are",
        ];
        let mut state = 7u32;
        let mut next = |below: usize| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state as usize / 65_536 % below
        };
        for _ in 0..500 {
            let mut cell = |words_in: usize| {
                (0..=next(words_in)).map(|_| words[next(words.len())]).collect::<Vec<_>>().join(" ")
            };
            let row = [cell(1), cell(1), cell(9), cell(9)];
            let row: Vec<&str> = row.iter().map(String::as_str).collect();
            for room in [1, 10, 30, 60, 80, 200] {
                let lines = set(&["A", "B", "SEEN", "ADVICE"], &[&row], &[], room);
                let all = lines.join(" ");
                for word in
                    row.iter().filter(|cell| **cell != NONE).flat_map(|cell| cell.split(' '))
                {
                    assert!(all.split(' ').any(|own| own == word), "{word} in {lines:?}");
                }
                let longest = row.iter().flat_map(|cell| cell.split(' ')).map(width).max().unwrap();
                for line in &lines {
                    assert!(width(line) <= room.max(longest + INDENT).max(10), "{room}: {lines:?}");
                }
            }
        }
    }
}
