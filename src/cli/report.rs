//! What could not be answered, and what is worth knowing beside the answer.

use std::collections::BTreeSet;

use serde::Serialize;
use uverbs::device::Device;
use uverbs::inventory;

use crate::status::Status;

/// How many names that are not there are reported one by one. Each host may lack each of them.
const MOST_MISSING: usize = 100;
/// The errno of "not supported".
const EOPNOTSUPP: i32 = 95;
/// The errno of "no such device".
const ENODEV: i32 = 19;
/// The errno of "no data", of what was not read.
pub(crate) const ENODATA: i32 = 61;
/// The errno of "no such port", as the kernel says it, and of much else.
pub(crate) const EINVAL: i32 = 22;

/// Something that was asked for and not answered. A row of a JSON document's `problems`.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Unanswered {
    /// The host, if snapshots were read.
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<String>,
    /// The device; none if it is the host's.
    device: Option<String>,
    error: String,
    errno: i32,
    #[serde(skip)]
    stage: Stage,
}

/// What is looked at. Hosts are looked at one by one, and what is said of them is ordered by this.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// Whether a file can be read.
    Files,
    /// Whether what is named is there, and all that has no stage of its own.
    #[default]
    Names,
    /// What could not be read.
    Unread,
    /// Which devices programs find, and for which ports they have room.
    Room,
    /// Which ports have no usable GID.
    Unusable,
    /// Where programs differ.
    Differing,
}

impl Unanswered {
    /// The host, if snapshots were read, and the device, if it is not the host's own problem.
    pub(crate) fn place(&self) -> (Option<&str>, Option<&str>) {
        (self.host.as_deref(), self.device.as_deref())
    }

    /// A line for people.
    pub(crate) fn text(&self) -> String {
        // That of a file that cannot be read begins with its name.
        let names = |host: &&str| {
            let rest = self.error.strip_prefix(host.strip_prefix("./").unwrap_or(host));
            rest.is_some_and(|rest| rest.starts_with(": "))
        };
        on(self.host.as_deref().filter(|host| !names(host)), &self.error)
    }
}

fn on(host: Option<&str>, text: &str) -> String {
    host.map_or_else(|| text.to_owned(), |host| format!("{host}: {text}"))
}

/// Gathers problems and notes while an answer is put together.
#[derive(Debug, Default)]
pub(crate) struct Report {
    problems: Vec<Unanswered>,
    /// The same, to find one.
    known: BTreeSet<(Option<String>, Option<String>, String)>,
    /// Hosts and devices that have a problem.
    failed: BTreeSet<(Option<String>, String)>,
    notes: Vec<(Stage, String)>,
    bad_files: Vec<String>,
    last: Option<String>,
    /// How many names were reported that are not there.
    missing: usize,
    status: Status,
    /// The snapshot's host that is being asked.
    host: Option<String>,
    stage: Stage,
}

impl Report {
    pub(crate) fn problems(&self) -> &[Unanswered] {
        &self.problems
    }

    pub(crate) fn notes(&self) -> impl Iterator<Item = &str> {
        self.notes.iter().map(|(_, text)| text.as_str())
    }

    /// What is reported from now on is of this stage.
    pub(crate) fn enter(&mut self, stage: Stage) {
        self.stage = stage;
    }

    /// Orders what was reported of all hosts by stages. What is reported from now on comes after it.
    pub(crate) fn end_hosts(&mut self) {
        self.turn_to(None);
        self.problems.sort_by_key(|problem| problem.stage);
        self.notes.sort_by_key(|(stage, _)| *stage);
    }

    /// What is reported from now on is this host's.
    pub(crate) fn turn_to(&mut self, host: Option<&str>) {
        self.host = host.map(str::to_owned);
    }

    /// Something to know that is no problem.
    pub(crate) fn note(&mut self, text: impl AsRef<str>) {
        self.notes.push((self.stage, on(self.host.as_deref(), text.as_ref())));
    }

    /// What was asked for is not there, or is not known to be, which is a clear answer, and yet not the one
    /// wanted.
    pub(crate) fn nothing(&mut self, text: impl AsRef<str>) {
        self.raise(Status::Doubt);
        self.note(text);
    }

    /// The line after all others: what was looked at, and what came of it.
    pub(crate) fn end_with(&mut self, text: String) {
        self.last = Some(text);
    }

    pub(crate) fn last(&self) -> Option<&str> {
        self.last.as_deref()
    }

    /// The status is no better than this one.
    pub(crate) fn raise(&mut self, status: Status) {
        self.status = self.status.max(status);
    }

    /// The status of this run. It does not depend on whether the answer is read.
    pub(crate) fn status(&self) -> Status {
        self.status
    }

    /// A file that is no snapshot.
    pub(crate) fn bad_file(&mut self, host: &str, problem: inventory::Problem) {
        self.bad_files.push(host.to_owned());
        self.raise(Status::Failed);
        let inventory::Problem { text: error, errno } = problem;
        let (host, stage) = (Some(host.to_owned()), Stage::Files);
        self.problems.push(Unanswered { host, device: None, error, errno, stage });
    }

    /// The names of files that are no snapshots.
    pub(crate) fn bad_files(&self) -> impl Iterator<Item = &str> {
        self.bad_files.iter().map(String::as_str)
    }

    /// A device's failure.
    pub(crate) fn problem(&mut self, device: &str, problem: impl Into<inventory::Problem>) {
        let inventory::Problem { text, errno } = problem.into();
        self.add(Some(device.to_owned()), text, errno, Status::Failed);
    }

    /// A failure that is not one device's.
    pub(crate) fn host_problem(&mut self, problem: impl Into<inventory::Problem>) {
        let inventory::Problem { text, errno } = problem.into();
        self.add(None, text, errno, Status::Failed);
    }

    /// What is named of a device is not there, which the error says.
    pub(crate) fn absent(&mut self, device: &str, problem: impl Into<inventory::Problem>) {
        let inventory::Problem { text, errno } = problem.into();
        self.add(Some(device.to_owned()), text, errno, Status::Doubt);
    }

    /// A device that was named is not there, or has a problem that is known already.
    pub(crate) fn no_such_device(&mut self, name: &str) {
        self.missing += 1;
        if self.failed.contains(&(self.host.clone(), name.to_owned())) {
            return;
        }
        let error = format!(
            "{name}: no such device (errno {ENODEV}); `uverbs devices` (with --from or \
             --sysfs as here) lists those that are seen"
        );
        self.add(Some(name.to_owned()), error, ENODEV, Status::Doubt);
    }

    pub(crate) fn no_such_port(&mut self, device: &Device, port: u32) {
        let ports = device.ports();
        let has = match (ports.start(), ports.end()) {
            (_, 0) if ports.is_empty() => "it has no port".to_owned(),
            (first, last) if first == last => format!("its only port is {first}"),
            (first, last) => format!("its ports are {first} to {last}"),
        };
        let name = &device.name;
        self.missing += 1;
        let error = format!("{name}: no port {port} (errno {EINVAL}); {has}");
        self.add(Some(name.clone()), error, EINVAL, Status::Doubt);
    }

    /// Whether names that are not there are still reported one by one.
    pub(crate) fn has_room(&self) -> bool {
        self.missing < MOST_MISSING
    }

    /// How many names beyond that are not there.
    pub(crate) fn more_missing(&mut self, count: usize) {
        let error = format!("{count} more that are named are no device or port (errno {ENODEV})");
        self.add(None, error, ENODEV, Status::Doubt);
    }

    /// An index that is outside its table, as the kernel says it.
    pub(crate) fn no_such_index(&mut self, device: &str, port: u32, index: u32) {
        let error = format!(
            "{device}: query GID {index} of port {port}: Invalid argument (errno {EINVAL}); the \
             index is outside its table"
        );
        self.add(Some(device.to_owned()), error, EINVAL, Status::Doubt);
    }

    /// A question that was not asked, since its answer would be another one's.
    pub(crate) fn unasked(&mut self, device: &str, why: &str) {
        let error = format!("{device}: {why} (errno {EOPNOTSUPP})");
        self.add(Some(device.to_owned()), error, EOPNOTSUPP, Status::Failed);
    }

    fn add(&mut self, device: Option<String>, error: String, errno: i32, status: Status) {
        self.raise(status);
        if let Some(device) = &device {
            self.failed.insert((self.host.clone(), device.clone()));
        }
        if self.known.insert((self.host.clone(), device.clone(), error.clone())) {
            let (host, stage) = (self.host.clone(), self.stage);
            self.problems.push(Unanswered { host, device, error, errno, stage });
        }
    }
}
