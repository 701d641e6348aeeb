//! A finding, and the list that the checks add to.

use core::fmt;

use crate::choose::plan::Program;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "lowercase"))]
pub enum Severity {
    /// Good to know.
    Note,
    /// It may work, but not as intended.
    Warning,
    /// It does not work.
    Problem,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Problem => "problem",
        })
    }
}

/// Something that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Finding {
    /// Its name, for programs. It does not change.
    pub name: &'static str,
    /// Its severity.
    pub severity: Severity,
    /// The device; `None` if the finding is about the host.
    pub device: Option<String>,
    /// The port; `None` if the finding is about the device.
    pub port: Option<u32>,
    /// The program, if the finding is about a program's settings or choice.
    pub program: Option<Program>,
    /// What was seen.
    pub seen: String,
    /// What was expected, if it was compared with a pattern: see [`expect`](super::expect).
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub wanted: Option<String>,
    /// What to do.
    pub advice: String,
}

/// Findings that say that something is not known, beside those whose name ends in `-unreadable`.
pub(super) const UNKNOWN: [&str; 7] = [
    "not-checked",
    "node-not-opened",
    "modules-unknown",
    "nodes-unknown",
    "right-gid-unknown",
    "gid-not-proven",
    "expect-unread",
];

impl Finding {
    /// Whether it says that something of the host is not known: where that was known, there could be a problem. What a
    /// program does with a host that was read does not count.
    #[must_use]
    pub fn is_of_unknown(&self) -> bool {
        let is_doubt = self.name == "only-link-local" && self.severity == Severity::Warning;
        is_doubt || UNKNOWN.contains(&self.name) || self.name.ends_with("-unreadable")
    }
}

/// Gathers findings of one place.
pub(super) struct Findings<'f> {
    list: &'f mut Vec<Finding>,
    /// How many there were before.
    first: usize,
    device: Option<&'f str>,
    port: Option<u32>,
}

impl<'f> Findings<'f> {
    pub(super) fn of(
        list: &'f mut Vec<Finding>,
        device: Option<&'f str>,
        port: Option<u32>,
    ) -> Self {
        Self { first: list.len(), list, device, port }
    }

    /// Whether a problem of this place was already added.
    pub(super) fn has_problem(&self) -> bool {
        let own = self.list.get(self.first..).unwrap_or_default();
        own.iter().any(|own| own.severity == Severity::Problem)
    }

    /// Adds one of a device, while it gathers those of the host.
    pub(super) fn add_of(
        &mut self,
        device: &str,
        name: &'static str,
        severity: Severity,
        seen: impl Into<String>,
        advice: impl Into<String>,
    ) {
        self.add(name, severity, seen, advice);
        if let Some(last) = self.list.last_mut() {
            last.device = Some(device.to_owned());
        }
    }

    pub(super) fn add(
        &mut self,
        name: &'static str,
        severity: Severity,
        seen: impl Into<String>,
        advice: impl Into<String>,
    ) {
        self.list.push(Finding {
            name,
            severity,
            device: self.device.map(str::to_owned),
            port: self.port,
            program: None,
            seen: seen.into(),
            wanted: None,
            advice: advice.into(),
        });
    }
}
