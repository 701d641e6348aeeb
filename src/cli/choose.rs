//! `uverbs choose`: which GID each port should use, and which NCCL and UCX take.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use clap::{Args, ValueHint};
use serde::Serialize;
use uverbs::choose::nccl::ROOM;
use uverbs::choose::plan::Model;
use uverbs::choose::plan::Program;
use uverbs::choose::{Caveat, Decision, Outcome, Port, caveats};
use uverbs::choose::{nccl, ucx};
use uverbs::gid::{Gid, GidType};
use uverbs::inventory::{Parts, Reading};
use uverbs::selector::Selector;

use crate::args::{Common, FromArg, SourceArg};
use crate::filter::{FamilyChoice, FilterArgs};
use crate::gid_row::short_type;
use crate::hosts::{Chosen, Seen, choose, is_used, look, missing, some, variable};
use crate::output::{Answer, List, Pairs, Text};
use crate::report::{Problem, Report, Stage};
use crate::selection::Asked;
use crate::table::{Mark, NONE, Table, cell};
use crate::verdict::{Indices, Verdict, is_known};

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

/// A port in the table and in JSON.
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
    caveats: Vec<Caveat>,
    recommended: Took,
    nccl: Took,
    ucx: Took,
    /// Whether UCX is known to do what it is said to.
    #[serde(skip)]
    ucx_is_sure: bool,
    /// Whether it is known what is recommended.
    #[serde(skip)]
    is_known: bool,
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
    /// Ports of whose GID it is not known that it is right.
    unproven: Vec<String>,
    #[serde(flatten)]
    all: Fit,
    /// The same of what was read, where that is not all.
    #[serde(skip_serializing_if = "Option::is_none")]
    read: Option<Fit>,
    /// Hosts that are not as most are, with what differs.
    differing: Pairs<Vec<String>>,
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
    nccl: Option<Pairs<String>>,
    ucx: Option<Pairs<String>>,
}

/// What the document has after its rows.
#[derive(Debug, Serialize)]
struct Rest<'a> {
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
    let from = args.from.from.as_slice();
    let (asked, wish) = (Asked::new(&args.selectors), args.filter.wish(args.family));
    let mut rows = Rows::new(common.json, args.explain);
    let (mut verdict, mut indices) = (Verdict::default(), Indices::default());
    look(common, (from, preference, Parts::CHOOSING), &asked, report, |host, report| {
        missing(host, &asked, report);
        // All ports, as those that are not asked for take room from those that are.
        let chosen = choose(host, &asked, &wish, report);
        let taken = take(host, &chosen, args.like);
        tell_room(host, chosen.len(), report);
        let (mut chosen, taken): (Vec<_>, Vec<_>) = chosen
            .into_iter()
            .zip(taken)
            .filter(|(own, _)| asked.has_port(own.port.device, own.port.number))
            .unzip();
        // Whether all hosts fit is asked of the recommendation, whatever is shown.
        if let Some(name) = &host.name {
            indices.add(name, &chosen);
            let ports = chosen.iter().map(|own| (own, own.decision.outcome.index()));
            verdict.add(host, &asked, ports);
        }
        for (own, taken) in chosen.iter_mut().zip(&taken) {
            if let Some(like) = &taken.like {
                own.decision = like.clone();
            }
        }
        report.enter(Stage::Unusable);
        for own in chosen.iter().filter(|own| !is_used(&own.decision.outcome)) {
            report.note(match &own.decision.outcome {
                ignored @ Outcome::Ignored(_) => format!("{}: {ignored}", own.name()),
                other => format!("{}: no usable GID: {other}", own.name()),
            });
        }
        if lacks(&chosen.iter().collect::<Vec<_>>(), &asked) {
            report.fail();
        }
        report.enter(Stage::Differing);
        let mut shown = chosen.iter().zip(&taken);
        shown.try_for_each(|(own, taken)| rows.add(&Row::new(own, taken, args.explain), report))
    })?;
    let fits = (!from.is_empty()).then(|| fits(&verdict, &indices, &asked, report));
    let table = match rows {
        Rows::Json(list) => {
            return list.end(&Rest { fits_all: fits, problems: report.problems() });
        }
        Rows::Plain(table) => table.answer(),
        Rows::Explained(table) => table.answer(),
    };
    if let Some(fits) = fits {
        tell_fits(&fits, &asked, report);
    }
    Ok(table)
}

/// Whether a host has no usable GID for something that is asked for: a port or a device that is named,
/// or the host as a whole. Also whether it is not known for a port which one is right.
pub(crate) fn lacks(chosen: &[&Chosen<'_>], asked: &Asked<'_>) -> bool {
    if chosen.iter().any(|own| !is_known(&own.decision.outcome)) {
        return true;
    }
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

/// Says of a host if it is not known what NCCL does there: ports that could not be read may take the room
/// of others.
fn tell_room(host: &Seen, read: usize, report: &mut Report) {
    let all = host.ports();
    report.enter(Stage::Room);
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
    report.turn_to(None);
}

/// What comes of a port.
#[derive(Debug)]
struct Taken {
    recommended: Outcome,
    nccl: Outcome,
    ucx: Outcome,
    /// Whether UCX is known to do this.
    ucx_is_sure: bool,
    /// What the program does that was asked about.
    like: Option<Decision>,
}

/// What programs do with each port by the settings of its host. NCCL has no room for any number of ports.
fn take(host: &Seen, chosen: &[Chosen<'_>], like: Option<Like>) -> Vec<Taken> {
    let ports: Vec<&Port<'_>> = chosen.iter().map(|own| &own.port).collect();
    let settings = |reading| variable(&host.inventory, reading);
    let model = |program: Program| program.model(settings(Reading::NEWEST));
    let outcomes = |program: Program| {
        let decisions = model(program).choose_all(&ports);
        decisions.into_iter().map(|own| own.outcome)
    };
    let mut like =
        like.map(|like| like.model(settings(like.reading())).choose_all(&ports).into_iter());
    let of_ucx = model(Program::Ucx);
    let outcomes = outcomes(Program::Nccl).zip(outcomes(Program::Ucx));
    let taken = chosen.iter().zip(outcomes).map(|(own, (nccl, ucx))| Taken {
        recommended: own.decision.outcome.clone(),
        nccl,
        ucx_is_sure: of_ucx.is_sure(&own.port, &ucx),
        ucx,
        like: like.as_mut().and_then(Iterator::next),
    });
    taken.collect()
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
            caveats: index.into_iter().flat_map(|index| caveats(port, index)).collect(),
            recommended: Took::new(recommended),
            nccl: Took::new(nccl),
            ucx: Took::new(ucx),
            is_known: is_known(recommended),
            ucx_is_sure: taken.ucx_is_sure,
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

fn fits(verdict: &Verdict, indices: &Indices, asked: &Asked<'_>, report: &Report) -> Fits {
    let unread = verdict.unread(report);
    // What is not among the targets may take their room: only a list keeps it for them.
    let is_whole = asked.is_all() && unread.is_empty();
    let has_others = if is_whole { verdict.is_unordered } else { verdict.fills };
    let variables = |program| {
        let has_others = has_others && program == Program::Nccl;
        let plan = verdict.plan(program, has_others, |name| verdict.is_set(name))?;
        let pairs = plan.variables.into_iter();
        Some(Pairs(pairs.map(|(name, value)| (name.to_owned(), value)).collect()))
    };
    let fit = Fit {
        is_any: indices.is_any,
        index: indices.one(),
        nccl: variables(Program::Nccl),
        ucx: variables(Program::Ucx),
    };
    let is_known = unread.is_empty() && indices.unproven.is_empty();
    let (all, read) = if is_known { (fit, None) } else { (Fit::default(), Some(fit)) };
    Fits {
        hosts: verdict.hosts,
        unread,
        unusable: indices.unusable(),
        unproven: indices.unproven.clone(),
        all,
        read,
        differing: indices.differing(),
    }
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
    if !fits.unproven.is_empty() {
        let names = some(&fits.unproven);
        report
            .note(format!("not known to be right, see --explain: what is recommended on {names}"));
        all += ", as far as is known";
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
            let also = if fits.unusable.is_empty() { "" } else { " and uses no other port" };
            report.note(format!("{program}: no setting that uverbs tries is right on {all}{also}"));
            continue;
        };
        let pairs: Vec<String> =
            pairs.0.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let pairs = if pairs.is_empty() { "nothing to set".to_owned() } else { pairs.join(" ") };
        report.note(format!("{program}: right on {all}: {pairs}"));
    }
    for (host, what) in &fits.differing.0 {
        report.note(format!("{host} differs: {}", what.join(", ")));
    }
}

/// The rows, in the form that is asked for.
#[derive(Debug)]
enum Rows {
    Json(List),
    Plain(Table<8>),
    /// A line for each row of a GID table.
    Explained(Table<7>),
}

impl Rows {
    fn new(is_json: bool, is_explained: bool) -> Self {
        if is_json {
            return Self::Json(List::new("choose"));
        }
        if is_explained {
            let heading = ["DEVICE", "PORT", "INDEX", "GID", "TYPE", "NETDEV", "REASON"];
            return Self::Explained(Table::new(heading));
        }
        let heading = ["DEVICE", "PORT", "INDEX", "GID", "TYPE", "NETDEV", "NCCL", "UCX"];
        Self::Plain(Table::new(heading))
    }

    fn add(&mut self, row: &Row<'_>, report: &mut Report) -> serde_json::Result<()> {
        match self {
            Self::Json(list) => return list.add(row),
            Self::Plain(table) => tabulate(row, table),
            Self::Explained(table) => explain(row, table),
        }
        if row.differs && row.is_known {
            let host = row.host.map(|host| format!("{host}: ")).unwrap_or_default();
            let perhaps = if row.ucx_is_sure { "" } else { "perhaps " };
            report.note(format!(
                "{host}{}:{}: they differ: recommended {}, NCCL {}, UCX {perhaps}{}",
                row.device, row.port, row.recommended.outcome, row.nccl.outcome, row.ucx.outcome
            ));
        }
        Ok(())
    }
}

fn tabulate(row: &Row<'_>, table: &mut Table<8>) {
    let cells = [
        row.device.to_owned(),
        row.port.to_string(),
        cell(row.index),
        cell(row.gid),
        row.gid_type.map_or_else(|| NONE.to_owned(), |own| short_type(own.0)),
        cell(row.netdev),
        cell(row.nccl.index),
        cell(row.ucx.index),
    ];
    let is_plain = row.index.is_some() && !row.differs;
    table.row_of(row.host, &cells, if is_plain { Mark::Plain } else { Mark::Attention });
}

fn explain(row: &Row<'_>, table: &mut Table<7>) {
    let mut line = |cells: [String; 5], mark| {
        let [index, gid, gid_type, netdev, reason] = cells;
        let (device, port) = (row.device.to_owned(), row.port.to_string());
        table.row_of(row.host, &[device, port, index, gid, gid_type, netdev, reason], mark);
    };
    for own in row.rows.iter().flatten() {
        let mut reason = own.reason.clone();
        if own.is_taken {
            let but = |caveat: &Caveat| format!("; but {caveat}");
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
