//! `uverbs choose`: which GID each port should use, and which NCCL and UCX take.

use serde::Serialize;
use serde_json::{Map, Value};
use uverbs::choose::plan::{Program, Target, plan};
use uverbs::choose::{Caveat, Decision, Outcome, caveats};
use uverbs::gid::{Gid, GidType};
use uverbs::selector::Selector;

use crate::args::{ChooseArgs, Common, Like};
use crate::gids::short_type;
use crate::hosts::{Chosen, Seen, choose, differing, is_set, is_used, look, variable};
use crate::output::{Answer, Text, json};
use crate::report::{Problem, Report};
use crate::table::{Mark, NONE, Table, cell};

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

/// What fits all hosts.
#[derive(Debug, Serialize)]
struct Fits {
    hosts: usize,
    /// The index that is right on all ports of all hosts.
    index: Option<u32>,
    /// Variables that are right on all, or null.
    nccl: Option<Map<String, Value>>,
    ucx: Option<Map<String, Value>>,
    /// Hosts that are not as most are, with what differs.
    differing: Map<String, Value>,
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
    let hosts = look(common, from, preference, &args.selectors, report);
    let mut chosen = choose(&hosts, &args.selectors, &args.filter.wish(args.family), report);
    // Whether all hosts fit is asked of the recommendation, whatever is shown.
    let fits = (!from.is_empty()).then(|| fits(&hosts, &chosen));
    let models: Vec<[_; 2]> = hosts
        .iter()
        .map(|own| [Program::Nccl, Program::Ucx].map(|it| it.model(variable(&own.inventory))))
        .collect();
    let mut rows = Vec::new();
    for own in &mut chosen {
        let Some([nccl, ucx]) = models.get(own.place) else { continue };
        let recommended = own.decision.outcome.clone();
        if let Some(like) = args.like {
            own.decision = take_like(like, own);
        }
        rows.push((recommended, nccl.choose(&own.port).outcome, ucx.choose(&own.port).outcome));
    }
    for own in chosen.iter().filter(|own| !is_used(&own.decision.outcome)) {
        report.note(format!("{}: no usable GID: {}", own.name(), own.decision.outcome));
    }
    if chosen.chunk_by(|one, other| one.place == other.place).any(|own| lacks(own, &args.selectors))
    {
        report.fail();
    }
    let rows: Vec<Row<'_>> = chosen
        .iter()
        .zip(&rows)
        .map(|(own, (recommended, nccl, ucx))| Row::new(own, recommended, nccl, ucx, args.explain))
        .collect();
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
        tell_fits(&fits, report);
    }
    Ok(if args.explain { explain(&rows) } else { tabulate(&rows) })
}

/// Whether a host has no usable GID for something that is asked for: a port or a device that is named,
/// or the host as a whole.
fn lacks(chosen: &[Chosen<'_>], selectors: &[Selector]) -> bool {
    let is_any_usable = |is_meant: &dyn Fn(&Chosen<'_>) -> bool| {
        let mut meant = chosen.iter().filter(|own| is_meant(own)).peekable();
        meant.peek().is_none() || meant.any(|own| is_used(&own.decision.outcome))
    };
    if selectors.is_empty() {
        return !is_any_usable(&|_| true);
    }
    let is_met = |selector: &Selector| {
        is_any_usable(&|own| selector.includes(own.port.device, own.port.number))
    };
    !selectors.iter().all(is_met)
}

/// What a program, of some release, does with a port by the settings of its host.
fn take_like(like: Like, own: &Chosen<'_>) -> Decision {
    like.model(variable(own.inventory)).choose(&own.port)
}

impl<'a> Row<'a> {
    fn new(
        own: &'a Chosen<'_>,
        recommended: &Outcome,
        nccl: &Outcome,
        ucx: &Outcome,
        explain: bool,
    ) -> Self {
        let Chosen { host, port, decision, .. } = own;
        let index = decision.outcome.index();
        let record = own.inventory.device(port.device);
        let netdev = |index: u32| {
            let mut rows = record.into_iter().flat_map(|record| record.rows(port.number));
            let row = rows.find(|row| row.record.entry.index() == index)?;
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

fn fits(hosts: &[Seen], chosen: &[Chosen<'_>]) -> Fits {
    let targets: Vec<Target<'_, '_>> = chosen.iter().map(target).collect();
    let variables = |program| {
        let plan = plan(program, &targets, |name| is_set(hosts, name))?;
        let pairs = plan.variables.into_iter();
        Some(pairs.map(|(name, value)| (name.to_owned(), value.into())).collect())
    };
    let mut indices = chosen.iter().filter_map(|own| own.decision.outcome.index());
    let first = indices.next();
    Fits {
        hosts: hosts.len(),
        index: first.filter(|first| indices.all(|index| index == *first)),
        nccl: variables(Program::Nccl),
        ucx: variables(Program::Ucx),
        differing: differing(chosen),
    }
}

/// A port with what is recommended for it.
pub(crate) fn target<'p, 'i>(own: &'p Chosen<'i>) -> Target<'p, 'i> {
    Target { port: &own.port, index: own.decision.outcome.index() }
}

fn tell_fits(fits: &Fits, report: &mut Report) {
    let all = match fits.hosts {
        1 => "all ports".to_owned(),
        hosts => format!("all ports of {hosts} hosts"),
    };
    match fits.index {
        Some(index) => report.note(format!("index {index} is right on {all}")),
        None => report.note(format!("no single index is right on {all}")),
    }
    for (program, variables) in [("NCCL", &fits.nccl), ("UCX", &fits.ucx)] {
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
    table.answer_of(&hosts)
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
    table.answer_of(&hosts)
}
