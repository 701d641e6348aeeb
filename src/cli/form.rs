//! The form of an answer: what `--json` and `--format` ask for.

use crate::args::Common;
use crate::report::Report;

/// What an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Columns: `--no-header` and `--wide` are for these.
    Table,
    /// JSON, which has the problems in it.
    Json,
    /// Another text.
    Text,
    /// Another text, which has the problems in it.
    Whole,
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

/// The hosts that an answer has room for: another tool's has one, any other has all.
#[derive(Debug)]
pub(crate) struct Room {
    tool: Option<&'static str>,
    hosts: usize,
}

impl Room {
    pub(crate) fn of(form: Form) -> Self {
        let tool = if let Form::OtherTool(tool) = form { Some(tool) } else { None };
        Self { tool, hosts: 0 }
    }

    /// Takes one more host, if there is room. That there is none is noted once.
    pub(crate) fn take(&mut self, report: &mut Report) -> bool {
        let Some(tool) = self.tool else { return true };
        self.hosts += 1;
        if self.hosts == 2 {
            report.turn_to(None);
            report.nothing(format!("{tool} knows one host: the first is shown"));
        }
        self.hosts == 1
    }
}
