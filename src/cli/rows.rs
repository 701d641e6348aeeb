//! The rows of an answer, as they come: a JSON list or a table.

use serde::Serialize;

use crate::args::Common;
use crate::output::{List, Output, Rest};
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
        Self::first(common, common.json, key, N, heading)
    }

    /// The same of a table whose other columns only --wide shows.
    pub(crate) fn first(
        common: &Common,
        is_json: bool,
        key: &str,
        shown: usize,
        heading: [&'static str; N],
    ) -> Self {
        if is_json {
            return Self::Json(List::new(key));
        }
        Self::Table(Table::first(if common.wide { N } else { shown }, heading))
    }

    /// Columns to give up where a terminal is too narrow, the first first.
    pub(crate) fn spare(self, columns: &'static [&'static str]) -> Self {
        match self {
            Self::Table(table) => Self::Table(table.spare(columns)),
            Self::Json(list) => Self::Json(list),
        }
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
    pub(crate) fn end(self, report: &Report) -> serde_json::Result<Output> {
        match self {
            Self::Json(list) => list.end(&Rest { problems: report.problems() }),
            Self::Table(table) => Ok(table.into()),
        }
    }
}
