//! `uverbs choose`: which GID each port should use, and which NCCL and UCX take.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use clap::{Args, ValueHint};
use serde::Serialize;
use serde_json::{Map, Value};
use uverbs::choose::nccl::ROOM;
use uverbs::choose::plan::Model;
use uverbs::choose::plan::{Program, Target, plan};
use uverbs::choose::{Caveat, Decision, Outcome, Port, caveats};
use uverbs::choose::{nccl, ucx};
use uverbs::gid::{Gid, GidType};
use uverbs::inventory::{Parts, Reading};
use uverbs::selector::Selector;

use crate::args::Common;
use crate::args::{FromArg, SourceArg};
use crate::filter::{FamilyChoice, FilterArgs};
use crate::gids::short_type;
use crate::hosts::{
    Chosen, Hosts, choose, differing, is_set, is_used, look, missing, some, variable,
};
use crate::output::{Answer, Text, json};
use crate::report::{Problem, Report};
use crate::selection::Asked;
use crate::table::{Mark, NONE, Table, cell};

#[derive(Debug, Args)]
pub(crate) struct ChooseArgs {
    /// Devices and ports to choose for; all if none is named
    #[arg(value_name = "DEV[:PORT]", value_hint = ValueHint::Other)]
    pub(crate) selectors: Vec<Selector>,
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    /// Only GIDs of addresses of this family
    #[arg(long, value_name = "FAMILY", help_heading = "Filters")]
    pub(crate) family: Option<FamilyChoice>,
    /// Choose as nccl, ucx or nvshmem does, or a release of it: nccl-2.20, ucx-1.13
    #[arg(long, value_name = "PROGRAM", value_hint = ValueHint::Other)]
    pub(crate) like: Option<Like>,
    /// Show every row, and why it is taken or not
    #[arg(long)]
    pub(crate) explain: bool,
    #[command(flatten)]
    pub(crate) source: SourceArg,
    #[command(flatten)]
    pub(crate) from: FromArg,
}

/// A program, of its newest release or of a named one.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Like {
    Nccl(nccl::Release),
    Nvshmem,
    Ucx(ucx::Release),
}

impl Like {
    /// How it reads files of settings; only NCCL reads any.
    pub(crate) fn reading(self) -> Reading {
        match self {
            Self::Nccl(release) => release.into(),
            Self::Nvshmem | Self::Ucx(_) => Reading::NEWEST,
        }
    }

    pub(crate) fn model<'v>(self, variable: impl Fn(&str) -> Option<&'v str>) -> Model {
        let nccl = |program| Model::Nccl(nccl::Settings::new(program, &variable));
        match self {
            Self::Nccl(release) => nccl(nccl::Program::Nccl(release)),
            Self::Nvshmem => nccl(nccl::Program::Nvshmem),
            Self::Ucx(release) => Model::Ucx(ucx::Settings::new(release, &variable)),
        }
    }
}

impl std::str::FromStr for Like {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (program, release) = text.split_once('-').map_or((text, None), |(a, b)| (a, Some(b)));
        let parts = release.into_iter().flat_map(|own| own.split('.'));
        let numbers: Option<Vec<u32>> = parts.map(|part| part.parse().ok()).collect();
        match (program, numbers.as_deref()) {
            ("nccl", Some([])) => Ok(Self::Nccl(nccl::Release::NEWEST)),
            ("nccl", Some([major, minor])) => Ok(Self::Nccl(nccl::Release::of(*major, *minor, 0))),
            ("nccl", Some([major, minor, patch])) => {
                Ok(Self::Nccl(nccl::Release::of(*major, *minor, *patch)))
            }
            ("ucx", Some([])) => Ok(Self::Ucx(ucx::Release::NEWEST)),
            ("ucx", Some([major, minor, ..])) => Ok(Self::Ucx(ucx::Release::of(*major, *minor))),
            ("nvshmem", Some([])) => Ok(Self::Nvshmem),
            _ => Err("expected nccl, ucx or nvshmem, or a release: nccl-2.20, ucx-1.13".to_owned()),
        }
    }
}

/// A port as it is shown, and as it stands in JSON.
#[derive(Debug, Serialize)]
struct Row<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<&'a str>,
    device: &'a str,
    port: u32,
    /// The row that is used; null if there is none.
    index: Option<u32>,
    gid: Option<Text<Gid>>,
    gid_type: Option<Text<GidType>>,
    /// Its interface, if that is in this namespace.
    netdev: Option<&'a str>,
    /// What comes of the choice where that is not a row: a word or two.
    why: Option<String>,
    /// What speaks against the row.
    caveats: Vec<Text<Caveat>>,
    recommended: Took,
    nccl: Took,
    ucx: Took,
    /// Whether those two and the recommendation are not all the same.
    differs: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    rows: Option<Vec<Explained<'a>>>,
}

/// What a program does with the port.
#[derive(Debug, Serialize)]
struct Took {
    index: Option<u32>,
    outcome: String,
}

impl Took {
    fn new(outcome: &Outcome) -> Self {
        Self { index: outcome.index(), outcome: outcome.to_string() }
    }
}

/// A row of the table, with the reason.
#[derive(Debug, Serialize)]
struct Explained<'a> {
    index: u32,
    gid: Text<Gid>,
    gid_type: Text<GidType>,
    netdev: Option<&'a str>,
    is_taken: bool,
    reason: String,
}

/// What fits all hosts. Nothing is said to fit all if something was not read.
#[derive(Debug, Serialize)]
struct Fits {
    /// How many were read.
    hosts: usize,
    /// What could not be read: hosts, devices, ports.
    unread: Vec<String>,
    /// Ports that have no usable GID, and hosts without a port: no setting is for them.
    unusable: Vec<String>,
    #[serde(flatten)]
    all: Fit,
    /// The same of what was read, where that is not all.
    #[serde(skip_serializing_if = "Option::is_none")]
    read: Option<Fit>,
    /// Hosts that are not as most are, with what differs.
    differing: Map<String, Value>,
}

/// What is right on ports.
#[derive(Debug, Default, Serialize)]
struct Fit {
    /// The index that is right on all of them.
    index: Option<u32>,
    /// Whether some port has a usable GID.
    #[serde(skip)]
    is_any: bool,
    /// Variables that are right on all, or null.
    nccl: Option<Map<String, Value>>,
    ucx: Option<Map<String, Value>>,
}

#[derive(Debug, Serialize)]
struct Document<'a> {
    choose: Vec<Row<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fits_all: Option<Fits>,
    problems: &'a [Problem],
}

pub(crate) fn answer(
    common: &Common,
    args: &ChooseArgs,
    report: &mut Report,
) -> serde_json::Result<Answer> {
    let preference = args.source.preference(common);
    let from = &args.from.from;
    let (asked, wish) = (Asked::new(&args.selectors), args.filter.wish(args.family));
    let hosts = look(common, from, preference, Parts::CHOOSING, &asked, report);
    missing(&hosts, &asked, report);
    // All ports, as those that are not asked for take room from those that are.
    let chosen = choose(&hosts, &asked, &wish, report);
    let taken = take(&hosts, &chosen, args.like);
    tell_room(&hosts, &chosen, report);
    let (mut chosen, rows): (Vec<_>, Vec<_>) = chosen
        .into_iter()
        .zip(taken)
        .filter(|(own, _)| asked.has_port(own.port.device, own.port.number))
        .unzip();
    // Whether all hosts fit is asked of the recommendation, whatever is shown.
    let fits = (!from.is_empty()).then(|| fits(&hosts, &chosen, &asked));
    for (own, taken) in chosen.iter_mut().zip(&rows) {
        if let Some(like) = &taken.like {
            own.decision = like.clone();
        }
    }
    for own in chosen.iter().filter(|own| !is_used(&own.decision.outcome)) {
        report.note(match &own.decision.outcome {
            ignored @ Outcome::Ignored(_) => format!("{}: {ignored}", own.name()),
            other => format!("{}: no usable GID: {other}", own.name()),
        });
    }
    let all: Vec<&Chosen<'_>> = chosen.iter().collect();
    if all.chunk_by(|one, other| one.place == other.place).any(|own| lacks(own, &asked)) {
        report.fail();
    }
    let rows: Vec<Row<'_>> =
        chosen.iter().zip(&rows).map(|(own, taken)| Row::new(own, taken, args.explain)).collect();
    if common.json {
        return json(&Document { choose: rows, fits_all: fits, problems: report.problems() });
    }
    for row in rows.iter().filter(|row| row.differs) {
        let host = row.host.map(|host| format!("{host}: ")).unwrap_or_default();
        report.note(format!(
            "{host}{}:{}: they differ: recommended {}, NCCL {}, UCX {}",
            row.device, row.port, row.recommended.outcome, row.nccl.outcome, row.ucx.outcome
        ));
    }
    if let Some(fits) = fits {
        tell_fits(&fits, &asked, report);
    }
    Ok(if args.explain { explain(&rows) } else { tabulate(&rows) })
}

/// Whether a host has no usable GID for something that is asked for: a port or a device that is named,
/// or the host as a whole.
pub(crate) fn lacks(chosen: &[&Chosen<'_>], asked: &Asked<'_>) -> bool {
    if asked.is_all() {
        return !chosen.is_empty() && !chosen.iter().any(|own| is_used(&own.decision.outcome));
    }
    // Whether each device, and each port, has a usable GID.
    let mut usable: BTreeMap<(&str, Option<u32>), bool> = BTreeMap::new();
    for own in chosen {
        let is_used = is_used(&own.decision.outcome);
        for port in [None, Some(own.port.number)] {
            *usable.entry((own.port.device, port)).or_default() |= is_used;
        }
    }
    usable.iter().any(|((device, port), is_used)| !is_used && asked.names(device, *port))
}

/// Says of which hosts it is not known what NCCL does: ports that could not be read may take the room of
/// others.
fn tell_room(hosts: &Hosts, chosen: &[Chosen<'_>], report: &mut Report) {
    let mut read = vec![0; hosts.seen.len()];
    for own in chosen {
        if let Some(count) = read.get_mut(own.place) {
            *count += 1;
        }
    }
    for (host, read) in hosts.seen.iter().zip(read) {
        let all = host.ports();
        report.turn_to(host.name.as_deref());
        if read < all && host.fills() {
            report.note(format!(
                "NCCL has room for {ROOM} ports, and {read} of {all} could be read: what it does may \
                 be something else"
            ));
        } else if host.fills() && !host.has_order() {
            report.note(format!(
                "NCCL has room for {ROOM} ports, and in which order it takes the {all} is not known: what \
                 it does may be something else"
            ));
        }
    }
    report.turn_to(None);
}

/// What comes of a port.
#[derive(Debug)]
struct Taken {
    recommended: Outcome,
    nccl: Outcome,
    ucx: Outcome,
    /// What the program does that was asked about.
    like: Option<Decision>,
}

/// What programs do with each port by the settings of its host, host by host: NCCL has no room for any
/// number of ports.
fn take(hosts: &Hosts, chosen: &[Chosen<'_>], like: Option<Like>) -> Vec<Taken> {
    let mut taken = Vec::with_capacity(chosen.len());
    for own in chosen.chunk_by(|one, other| one.place == other.place) {
        let Some(host) = own.first().and_then(|own| hosts.seen.get(own.place)) else { continue };
        let ports: Vec<&Port<'_>> = own.iter().map(|own| &own.port).collect();
        let settings = |reading| variable(&host.inventory, reading);
        let outcomes = |program: Program| {
            let decisions = program.model(settings(Reading::NEWEST)).choose_all(&ports);
            decisions.into_iter().map(|own| own.outcome)
        };
        let mut like =
            like.map(|like| like.model(settings(like.reading())).choose_all(&ports).into_iter());
        let outcomes = outcomes(Program::Nccl).zip(outcomes(Program::Ucx));
        taken.extend(own.iter().zip(outcomes).map(|(own, (nccl, ucx))| Taken {
            recommended: own.decision.outcome.clone(),
            nccl,
            ucx,
            like: like.as_mut().and_then(Iterator::next),
        }));
    }
    taken
}

impl<'a> Row<'a> {
    fn new(own: &'a Chosen<'_>, taken: &Taken, explain: bool) -> Self {
        let Taken { recommended, nccl, ucx, .. } = taken;
        let Chosen { host, port, decision, record, .. } = own;
        let index = decision.outcome.index();
        let netdev = |index: u32| {
            let row = record.row(port.number, index)?;
            Some(row.netdev.as_ref()?.name.as_str())
        };
        let row = index.and_then(|index| port.row(index));
        // InfiniBand needs no GID, so that what is used does not differ.
        let is_other = |outcome: &Outcome| {
            outcome.index() != recommended.index() && *outcome != Outcome::ByLid
        };
        Row {
            host: *host,
            device: port.device,
            port: port.number,
            index,
            gid: row.map(|row| Text(row.gid)),
            gid_type: row.map(|row| Text(row.gid_type)),
            netdev: index.and_then(netdev),
            why: index.is_none().then(|| decision.outcome.to_string()),
            caveats: index.into_iter().flat_map(|index| caveats(port, index)).map(Text).collect(),
            recommended: Took::new(recommended),
            nccl: Took::new(nccl),
            ucx: Took::new(ucx),
            differs: is_other(nccl) || is_other(ucx),
            rows: explain.then(|| {
                let rows = port.rows.iter().zip(&decision.rows);
                rows.map(|(row, (index, reason))| Explained {
                    index: *index,
                    gid: Text(row.gid),
                    gid_type: Text(row.gid_type),
                    netdev: netdev(*index),
                    is_taken: reason.is_taken(),
                    reason: reason.to_string(),
                })
                .collect()
            }),
        }
    }
}

fn fits(hosts: &Hosts, chosen: &[Chosen<'_>], asked: &Asked<'_>) -> Fits {
    let targets: Vec<Target<'_, '_>> = chosen.iter().map(target).collect();
    let unread = hosts.unread(asked);
    // What is not among the targets may take their room: only a list keeps it for them.
    let is_whole = asked.is_all() && unread.is_empty();
    let has_others = hosts.seen.iter().any(|host| host.fills() && !(is_whole && host.has_order()));
    let variables = |program| {
        let has_others = has_others && program == Program::Nccl;
        let plan = plan(program, &targets, has_others, |name| is_set(hosts, name))?;
        let pairs = plan.variables.into_iter();
        Some(pairs.map(|(name, value)| (name.to_owned(), value.into())).collect())
    };
    let mut indices = chosen.iter().filter_map(|own| own.decision.outcome.index());
    let first = indices.next();
    let fit = Fit {
        is_any: first.is_some(),
        index: first.filter(|first| indices.all(|index| index == *first)),
        nccl: variables(Program::Nccl),
        ucx: variables(Program::Ucx),
    };
    let has_port: BTreeSet<usize> = chosen.iter().map(|own| own.place).collect();
    let portless = hosts.seen.iter().enumerate().filter(|(place, _)| !has_port.contains(place));
    let portless = portless.filter_map(|(_, own)| own.name.clone());
    let spare = chosen.iter().filter(|own| own.decision.outcome.index().is_none());
    let (all, read) = if unread.is_empty() { (fit, None) } else { (Fit::default(), Some(fit)) };
    Fits {
        hosts: hosts.seen.len(),
        unread,
        unusable: portless.chain(spare.map(Chosen::name)).collect(),
        all,
        read,
        differing: differing(chosen),
    }
}

/// A port with what is recommended for it.
pub(crate) fn target<'p, 'i>(own: &'p Chosen<'i>) -> Target<'p, 'i> {
    Target { host: own.place, port: &own.port, index: own.decision.outcome.index() }
}

fn tell_fits(fits: &Fits, asked: &Asked<'_>, report: &mut Report) {
    let mut all = "all ports".to_owned();
    if !asked.is_all() {
        all += " that were named";
    }
    if fits.hosts > 1 {
        let _ = write!(all, " of {} hosts", fits.hosts);
    }
    if !fits.unread.is_empty() {
        report
            .note(format!("not read, so what is right there is not known: {}", some(&fits.unread)));
        all += " that were read";
    }
    if !fits.unusable.is_empty() {
        let _ = write!(all, " but those without a usable GID ({})", some(&fits.unusable));
    }
    let fit = fits.read.as_ref().unwrap_or(&fits.all);
    match (fit.index, fit.is_any) {
        (Some(index), _) => report.note(format!("index {index} is right on {all}")),
        (None, true) => report.note(format!("no single index is right on {all}")),
        (None, false) if !asked.is_all() => {
            return report.note("no port that is asked for has a usable GID");
        }
        (None, false) => return report.note("no port that was read has a usable GID"),
    }
    for (program, variables) in [("NCCL", &fit.nccl), ("UCX", &fit.ucx)] {
        let Some(pairs) = variables else {
            report.note(format!("{program}: no setting is right on {all}"));
            continue;
        };
        let pairs: Vec<String> = pairs
            .iter()
            .map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or_default()))
            .collect();
        let pairs = if pairs.is_empty() { "nothing to set".to_owned() } else { pairs.join(" ") };
        report.note(format!("{program}: right on {all}: {pairs}"));
    }
    for (host, what) in &fits.differing {
        let what: Vec<&str> =
            what.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        report.note(format!("{host} differs: {}", what.join(", ")));
    }
}

fn tabulate(rows: &[Row<'_>]) -> Answer {
    let mut table = Table::new(["DEVICE", "PORT", "INDEX", "GID", "TYPE", "NETDEV", "NCCL", "UCX"]);
    let took = |took: &Took| cell(took.index);
    let mut hosts = Vec::new();
    for row in rows {
        let cells = [
            row.device.to_owned(),
            row.port.to_string(),
            cell(row.index),
            cell(row.gid),
            row.gid_type.map_or_else(|| NONE.to_owned(), |own| short_type(own.0)),
            cell(row.netdev),
            took(&row.nccl),
            took(&row.ucx),
        ];
        let is_plain = row.index.is_some() && !row.differs;
        table.row(cells, if is_plain { Mark::Plain } else { Mark::Attention });
        hosts.push(row.host);
    }
    table.answer_of(hosts)
}

fn explain(rows: &[Row<'_>]) -> Answer {
    let mut table = Table::new(["DEVICE", "PORT", "INDEX", "GID", "TYPE", "NETDEV", "REASON"]);
    let mut hosts = Vec::new();
    for row in rows {
        let mut line = |cells: [String; 5], mark| {
            let [index, gid, gid_type, netdev, reason] = cells;
            let (device, port) = (row.device.to_owned(), row.port.to_string());
            table.row([device, port, index, gid, gid_type, netdev, reason], mark);
            hosts.push(row.host);
        };
        for own in row.rows.iter().flatten() {
            let mut reason = own.reason.clone();
            if own.is_taken {
                let but = |caveat: &Text<Caveat>| format!("; but {caveat}");
                reason.extend(row.caveats.iter().map(but));
            }
            let (gid, gid_type) = (own.gid.to_string(), short_type(own.gid_type.0));
            let mark = if own.is_taken { Mark::Attention } else { Mark::Plain };
            line([own.index.to_string(), gid, gid_type, cell(own.netdev), reason], mark);
        }
        if let Some(why) = &row.why {
            let none = || NONE.to_owned();
            line([none(), none(), none(), none(), why.clone()], Mark::Attention);
        }
    }
    table.answer_of(hosts)
}
