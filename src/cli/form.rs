//! The form of an answer: what `--json` and `--format` ask for.

use crate::args::Common;

/// What an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Columns: `--no-header` and `--wide` are for these.
    Table,
    /// JSON, which has the problems in it.
    Json,
    /// Another text.
    Text,
    /// What this tool prints, which knows one host.
    OtherTool(&'static str),
}

/// The values that `--format` has of a command.
pub(crate) trait Format: Copy {
    const JSON: Self;
    /// The one without `--json` and `--format`.
    const DEFAULT: Self;

    fn form(self) -> Form;

    /// The one that is asked for.
    fn asked(given: Option<Self>, common: &Common) -> Self {
        given.unwrap_or(if common.json { Self::JSON } else { Self::DEFAULT })
    }
}
