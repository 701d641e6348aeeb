//! `uverbs fleet`: which hosts are odd, which ports cannot meet, and what fits hosts of a job.

mod job;
mod say;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use clap::{Args, ValueHint};
use serde::Serialize;
use uverbs::fleet::{self, Difference, Duplicate, Field, Groups, Rails, Survey, Trouble, Why};
use uverbs::inventory::{Inventory, Parts};

use crate::args::{Common, OriginArgs};
use crate::choose::{tell_settings, tell_variables};
use crate::host_list::HostList;
use crate::hosts::{Seen, look, some, tell_problems};
use crate::looked::Looked;
use crate::output::{List, Output};
use crate::report::{Report, Stage, Unanswered};
use crate::selection::Asked;
use crate::status::Status;
use crate::table::{Mark, Table};
use crate::text::count;
use crate::values::NONE;

use job::{Job, Listed};

#[derive(Debug, Args)]
pub(crate) struct FleetArgs {
    /// Only these hosts, as Slurm writes them: n[1-3,07],m5
    #[arg(long, value_name = "LIST", value_hint = ValueHint::Other)]
    pub(crate) hosts: Option<HostList>,
    /// Join each port with all ports of other hosts, not only with those of its rail
    #[arg(long)]
    pub(crate) all_to_all: bool,
    /// Routers join all networks, and all routes are set: ports in different ones can meet
    #[arg(long)]
    pub(crate) routed: bool,
    #[command(flatten)]
    pub(crate) origin: OriginArgs,
}

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    /// A host that is listed has no snapshot.
    Missing,
    /// Ports cannot meet others.
    CannotMeet,
    /// It is not known whether they can.
    NotKnown,
    /// Something is on several hosts.
    Duplicate,
    /// Hosts are not as most are.
    Odd,
}

impl<'a> Row<'a> {
    fn new(finding: Kind, hosts: Vec<&'a str>, ports: &'a [String], seen: String) -> Self {
        Self { finding, hosts, ports, seen, others: None, differences: None }
    }
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::CannotMeet => "cannot-meet",
            Self::NotKnown => "not-known",
            Self::Duplicate => "duplicate",
            Self::Odd => "odd",
        }
    }
}

/// A finding.
#[derive(Debug, Serialize)]
struct Row<'a> {
    finding: Kind,
    hosts: Vec<&'a str>,
    ports: &'a [String],
    seen: String,
    /// Of ports that do not meet: on how many hosts the others are.
    #[serde(skip_serializing_if = "Option::is_none")]
    others: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    differences: Option<Vec<Differs<'a>>>,
}

/// A field that differs.
#[derive(Debug, Serialize)]
struct Differs<'a> {
    field: &'static str,
    places: &'a [String],
    seen: Option<&'a str>,
    usual: Option<&'a str>,
}

impl<'a> Differs<'a> {
    fn of(own: &'a Difference) -> Self {
        let (seen, usual) = (own.seen.as_deref(), own.usual.as_deref());
        Self { field: own.field.name(), places: &own.places, seen, usual }
    }
}

/// What the document has after its rows.
#[derive(Debug, Serialize)]
struct Rest<'a> {
    /// How many hosts were looked at.
    hosts: usize,
    /// How many of them are not odd, as far as is known.
    alike: usize,
    /// Of how many not everything is known that is compared.
    partly: usize,
    rails: &'static str,
    /// How many rails join ports of two hosts or more.
    joined: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<&'a Job>,
    problems: &'a [Unanswered],
}

/// The most lines of one kind that a table has.
const MOST: usize = 20;

/// The lines, in the form that is asked for.
struct Lines {
    list: Option<List>,
    table: Table<4>,
    /// How many there are of the last kind.
    last: Option<(Kind, usize)>,
}

impl Lines {
    fn add(&mut self, row: &Row<'_>) -> serde_json::Result<()> {
        if let Some(list) = &mut self.list {
            return list.add(row);
        }
        let before = self.last.filter(|(kind, _)| *kind == row.finding).map_or(0, |own| own.1);
        self.last = Some((row.finding, before + 1));
        if before < MOST {
            let few = |names: &[String]| {
                if names.is_empty() { NONE.to_owned() } else { some(names) }
            };
            let first: Vec<String> = row.hosts.iter().map(|own| (*own).to_owned()).collect();
            let hosts = match first.len() {
                number @ 2.. => format!("{}: {}", count(number, "host"), few(&first)),
                _ => few(&first),
            };
            let cells = [row.finding.name().to_owned(), hosts, few(row.ports), row.seen.clone()];
            let mark = match row.finding {
                Kind::Missing | Kind::CannotMeet | Kind::Duplicate => Mark::Problem,
                Kind::NotKnown | Kind::Odd => Mark::Attention,
            };
            self.table.row(&cells, mark);
        }
        Ok(())
    }

    /// Says how many lines of the last kind were left out.
    fn end_kind(&mut self, report: &mut Report) {
        if let Some((kind, number @ 1..)) =
            self.last.take().map(|(kind, number)| (kind, number.saturating_sub(MOST)))
        {
            report.note(format!("{number} more of {}; --json has all", kind.name()));
        }
    }
}

pub(crate) fn answer(
    common: &Common,
    args: &FleetArgs,
    report: &mut Report,
) -> serde_json::Result<Output> {
    let asked = Asked::default();
    let mut listed = args.hosts.as_ref().map(Listed::new);
    let mut survey = Survey::default();
    let (mut names, mut looked, mut partly) = (Vec::new(), Looked::default(), BTreeSet::new());
    let mut are_ports_read = true;
    let source = (&args.origin.from, args.origin.preference(common), Parts::ALL);
    look(common, source, &asked, report, |host, report| {
        if let Some(listed) = &mut listed {
            if !listed.takes(host) {
                return Ok(());
            }
            listed.add(host, &asked);
        }
        names.push(name_of(host));
        looked.add(&host.inventory, &asked);
        report.enter(Stage::Unread);
        report.turn_to(host.name.as_deref());
        tell_problems(&host.inventory, &asked, report);
        let is_whole = tell_rest(&host.inventory, report);
        report.turn_to(None);
        tell_variables(host, report);
        tell_settings(host, report);
        let has_unread = host.has_unread();
        are_ports_read &= !has_unread;
        if !is_whole || has_unread || !host.inventory.unread_settings.is_empty() {
            partly.extend(u32::try_from(survey.hosts()));
        }
        survey.add(&host.inventory);
        Ok(())
    })?;
    let mut lines = Lines {
        list: common.json.then(|| List::new("fleet")),
        table: Table::new(["FINDING", "HOSTS", "WHERE", "SEEN"]),
        last: None,
    };
    let missing = listed.as_ref().map(Listed::missing).unwrap_or_default();
    if !missing.is_empty() {
        let hosts = missing.iter().map(String::as_str).collect();
        lines.add(&Row::new(Kind::Missing, hosts, &[], "no snapshot was read".to_owned()))?;
        lines.end_kind(report);
    }
    let rails = if args.all_to_all { Rails::All } else { Rails::Found };
    let found = Found::new(&survey, rails, args.routed);
    partly.extend(&found.groups.partly);
    found.add_lines(&names, &mut lines, report)?;
    // What a job depends on is judged apart.
    let is_partly = args.hosts.is_none() && !partly.is_empty();
    if !missing.is_empty() || is_partly || found.is_bad(args.hosts.is_some()) {
        report.raise(Status::Doubt);
    }
    let job = listed.map(|own| own.judge(&survey, (rails, args.routed), &missing, &names, report));
    if let Some(list) = lines.list {
        return list.end(&Rest {
            hosts: survey.hosts(),
            alike: found.groups.usual.len(),
            partly: partly.len(),
            rails: match found.pairs.rails {
                Rails::All => "all-to-all",
                Rails::Networks => "networks",
                _ => "names",
            },
            joined: found.pairs.joined,
            job: job.as_ref(),
            problems: report.problems(),
        });
    }
    if let Some(job) = &job {
        job.tell(report);
    }
    let bad = report.bad_files().count();
    // Only with these do programs on all hosts take what is recommended.
    let has_settings = job.as_ref().is_some_and(Job::has_settings);
    report.end_with(found.last_line(&looked, has_settings, are_ports_read, (partly.len(), bad)));
    Ok(lines.table.into())
}

/// What is found in a fleet.
struct Found {
    hosts: usize,
    pairs: fleet::Pairs,
    duplicates: Vec<Duplicate>,
    groups: Groups,
}

impl Found {
    fn new(survey: &Survey, rails: Rails, is_routed: bool) -> Self {
        Self {
            hosts: survey.hosts(),
            pairs: survey.pairs(rails, is_routed, |_| true),
            duplicates: survey.duplicates(),
            groups: survey.groups(),
        }
    }

    fn add_lines(
        &self,
        names: &[String],
        lines: &mut Lines,
        report: &mut Report,
    ) -> serde_json::Result<()> {
        let name = |host: &u32| names.get(*host as usize).map_or(NONE, String::as_str);
        let all = |hosts: &[u32]| hosts.iter().map(name).collect();
        for own in &self.pairs.problems {
            let is_certain = matches!(own.why, Why::Cannot(_));
            let finding = if is_certain { Kind::CannotMeet } else { Kind::NotKnown };
            if lines.last.is_some_and(|(last, _)| last != finding) {
                lines.end_kind(report);
            }
            let row = Row::new(finding, all(&own.hosts), &own.ports, say::trouble(own, names));
            lines.add(&Row { others: Some(own.others), ..row })?;
        }
        lines.end_kind(report);
        for own in &self.duplicates {
            let seen = say::duplicate(own);
            lines.add(&Row::new(Kind::Duplicate, all(&own.hosts), &[], seen))?;
        }
        lines.end_kind(report);
        for own in &self.groups.odd {
            let ports = say::ports(&own.differences);
            let seen = say::differences(&own.differences, &ports, self.hosts);
            let row = Row::new(Kind::Odd, all(&own.hosts), &ports, seen);
            let differences = own.differences.iter().map(Differs::of).collect();
            lines.add(&Row { differences: Some(differences), ..row })?;
        }
        lines.end_kind(report);
        Ok(())
    }

    /// Whether something is wrong. For a job, hosts may be odd as long as they have the same devices and nodes, and what
    /// programs take now does not matter.
    fn is_bad(&self, is_job: bool) -> bool {
        let Self { hosts, pairs, duplicates, groups } = self;
        let mut differences = groups.odd.iter().flat_map(|own| &own.differences);
        let is_odd =
            differences.any(|own| !is_job || matches!(own.field, Field::Present | Field::Node));
        let is_unjoined = *hosts == 0 || (*hosts > 1 && pairs.joined == 0);
        let is_apart = self.troubles(is_job).next().is_some();
        is_unjoined || is_odd || !duplicates.is_empty() || is_apart
    }

    /// What does not meet, or may not; for a job of what is recommended.
    fn troubles(&self, is_job: bool) -> impl Iterator<Item = &Trouble> {
        self.pairs.problems.iter().filter(move |own| !is_job || job::is_of_job(own))
    }

    fn last_line(
        &self,
        looked: &Looked,
        has_settings: bool,
        are_ports_read: bool,
        (partly, bad): (usize, usize),
    ) -> String {
        let Self { hosts, pairs, groups, .. } = self;
        let mut last = format!("looked at {}: {looked}", count(*hosts, "host"));
        if *hosts > 1 {
            let _ = match hosts - groups.usual.len() {
                0 if partly + bad == 0 => write!(last, "; no host is odd"),
                0 => write!(last, "; no host is known to be odd"),
                1 => write!(last, "; 1 host is odd"),
                some => write!(last, "; {} are odd", count(some, "host")),
            };
            let rails = match pairs.rails {
                Rails::All => "all ports".to_owned(),
                Rails::Networks => {
                    format!("the ports of {} by networks", count(pairs.joined, "rail"))
                }
                _ => format!("the ports of {}", count(pairs.joined, "rail")),
            };
            let all = rails.replace("the ports", "all ports");
            let cannot = |own: &Trouble| matches!(own.why, Why::Cannot(_));
            let so = if self.troubles(false).count() > self.troubles(has_settings).count() {
                " with these variables"
            } else {
                ""
            };
            let _ = if pairs.joined == 0 {
                write!(last, "; no ports of two hosts are known to meet")
            } else if self.troubles(has_settings).any(cannot) {
                write!(last, "; not {all} can meet")
            } else if self.troubles(has_settings).next().is_some() {
                write!(last, "; it is not known whether {all} can meet")
            } else if are_ports_read && bad == 0 {
                write!(last, "; {rails} can meet{so}")
            } else {
                write!(last, "; {rails} can meet{so}, as far as they were read")
            };
        }
        if partly > 0 {
            let _ = write!(last, "; not everything is known of {}", count(partly, "host"));
        }
        if bad > 0 {
            let _ = write!(last, "; {} could not be read", count(bad, "snapshot"));
        }
        last
    }
}

/// Reports GUIDs of ports and P_Keys that could not be read. Whether there were none.
fn tell_rest(inventory: &Inventory, report: &mut Report) -> bool {
    let mut is_whole = true;
    for record in &inventory.devices {
        let guids = record.ports.iter().filter_map(|own| own.guid.as_ref().err());
        let pkeys = record.ports.iter().filter_map(|own| own.pkeys.as_ref()?.as_ref().err());
        for problem in guids.chain(pkeys) {
            report.problem(&record.device.name, problem.clone());
            is_whole = false;
        }
    }
    is_whole
}

/// A host's name; of this one, if nothing else is known.
fn name_of(host: &Seen) -> String {
    let own = host.name.as_deref().or(host.inventory.name());
    own.unwrap_or("this host").to_owned()
}
