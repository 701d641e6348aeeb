//! `uverbs check --format nagios`: what plug-ins of Nagios print. The first line is short and the same as long as the
//! findings are; the details are in the lines after it.

use std::fmt::Write as _;

use uverbs::check::{Finding, Severity};

use crate::report::{Report, Unanswered};
use crate::status::Status;
use crate::text::{count, printable, thousands};

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct Nagios {
    lines: Vec<String>,
    /// The names of problems with their places, and of warnings; of each the first.
    named: [Vec<String>; 2],
    problems: usize,
    warnings: usize,
}

/// How many findings the first line names.
const SHOWN: usize = 3;

impl Nagios {
    pub(crate) fn add(&mut self, host: Option<&str>, finding: &Finding) {
        let mut name = host.map(|host| format!("{host}: ")).unwrap_or_default();
        name += finding.name;
        if let Some(device) = &finding.device {
            let port = finding.port.map(|port| format!(":{port}")).unwrap_or_default();
            let _ = write!(name, " {device}{port}");
        }
        let Finding { severity, seen, wanted, advice, .. } = finding;
        let wanted = wanted.as_ref().map(|own| format!(", expected {own}")).unwrap_or_default();
        self.lines.push(format!("{severity}: {name}: {seen}{wanted}; {advice}"));
        let [problems, warnings] = &mut self.named;
        let (all, named) = match severity {
            Severity::Problem => (&mut self.problems, problems),
            Severity::Warning => (&mut self.warnings, warnings),
            Severity::Note => return,
        };
        *all += 1;
        if named.len() < SHOWN {
            named.push(name);
        }
    }

    /// The lines. `looked` is what the table's last line says.
    pub(crate) fn end(self, looked: &str, report: &Report) -> String {
        let Self { lines, named, problems, warnings } = self;
        let (state, counted, named, all) = match report.status() {
            Status::Fine => ("OK", looked.to_owned(), Vec::new(), 0),
            Status::Failed => ("UNKNOWN", looked.to_owned(), Vec::new(), 0),
            Status::Doubt => {
                let [_, named] = named;
                ("WARNING", count(warnings, "warning"), named, warnings)
            }
            Status::Problem => {
                let [named, _] = named;
                let mut counted = count(problems, "problem");
                if warnings > 0 {
                    let _ = write!(counted, ", {}", count(warnings, "warning"));
                }
                ("CRITICAL", counted, named, problems)
            }
        };
        let mut text = format!("UVERBS {state} - {}", line(&counted));
        if !named.is_empty() {
            let more = match all.saturating_sub(named.len()) {
                0 => String::new(),
                more => format!(" and {} more", thousands(more)),
            };
            let _ = write!(text, ": {}{more}", line(&named.join(", ")));
        }
        text.push('\n');
        for own in lines {
            text += &line(&own);
            text.push('\n');
        }
        for own in report.problems().iter().map(Unanswered::text) {
            let _ = writeln!(text, "unknown: {}", line(&own));
        }
        text
    }
}

/// A line in which there is no `|`, after which Nagios reads numbers.
fn line(text: &str) -> String {
    printable(text).replace('|', "/")
}
