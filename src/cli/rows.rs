//! The rows of an answer, as they come: a JSON list or a table.

use serde::Serialize;

use crate::args::Common;
use crate::output::{Answer, List, Rest};
use crate::report::Report;
use crate::table::Table;

/// What has come so far.
#[derive(Debug)]
pub(crate) enum Rows<const N: usize> {
    Json(List),
    Table(Table<N>),
}

impl<const N: usize> Rows<N> {
    /// No rows yet: of a document whose first key this is, or of a table with this heading.
    pub(crate) fn new(common: &Common, key: &str, heading: [&'static str; N]) -> Self {
        if common.json { Self::Json(List::new(key)) } else { Self::Table(Table::new(heading)) }
    }

    /// Adds a row, to a table by `tabulate`.
    pub(crate) fn add<R: Serialize>(
        &mut self,
        row: &R,
        tabulate: impl FnOnce(&R, &mut Table<N>),
    ) -> serde_json::Result<()> {
        match self {
            Self::Json(list) => list.add(row),
            Self::Table(table) => {
                tabulate(row, table);
                Ok(())
            }
        }
    }

    /// The answer; of a document with the problems.
    pub(crate) fn end(self, report: &Report) -> serde_json::Result<Answer> {
        match self {
            Self::Json(list) => list.end(&Rest { problems: report.problems() }),
            Self::Table(table) => Ok(table.into()),
        }
    }
}
