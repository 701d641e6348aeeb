//! `uverbs choose`: which GID each port should use, and which NCCL and UCX take.

use std::collections::BTreeSet;

use clap::{Args, ValueHint};
use serde::Serialize;
use uverbs::choose::nccl::ROOM;
use uverbs::choose::plan::{Model, Program};
use uverbs::choose::{Caveat, Decision, Outcome, room, ucx};
use uverbs::gid::{Gid, GidType};
use uverbs::inventory::{DeviceRecord, Inventory, Parts, SettingsReading};
use uverbs::port::LinkLayer;

use crate::args::{Common, NamedPorts, OriginArgs};
use crate::filter::{FamilyChoice, FilterArgs};
use crate::fits::{self, Fits};
use crate::gid_row::short_type;
use crate::hosts::{
    Chosen, Seen, choose, host, is_used, look_to_choose, missing, some, tell_again, variable,
};
use crate::like::Like;
use crate::looked::Looked;
use crate::output::{List, Output};
use crate::report::{Report, Stage, Unanswered};
use crate::selection::Asked;
use crate::status::Status;
use crate::table::{Mark, Table};
use crate::values::{NONE, Text, cell};
use crate::verdict::{Indices, Verdict, is_known};

#[derive(Debug, Args)]
#[command(mut_arg("selectors", |own| own.help("Devices and ports to choose for; all if none is named")))]
pub(crate) struct ChooseArgs {
    #[command(flatten)]
    pub(crate) named: NamedPorts,
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    /// Only GIDs of addresses of this family
    #[arg(long, value_name = "FAMILY", help_heading = "Filters")]
    pub(crate) family: Option<FamilyChoice>,
    /// Choose as nccl, ucx or nvshmem does, or as nccl-2.20 or ucx-1.13 does
    #[arg(long, value_name = "PROGRAM", value_hint = ValueHint::Other)]
    pub(crate) like: Option<Like>,
    /// Show every row, and why it is taken or not
    #[arg(long)]
    pub(crate) explain: bool,
    #[command(flatten)]
    pub(crate) origin: OriginArgs,
}

/// A port in the table and in JSON.
#[derive(Debug, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "keys of the JSON")]
struct Row<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<&'a str>,
    device: &'a str,
    port: u32,
    /// Whether programs with libibverbs find the device, as far as is known.
    is_found: bool,
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
    /// Whether it is known that the row is right; with `--like`, that the program takes it.
    is_sure: bool,
    #[serde(skip)]
    is_like: bool,
    /// Whether those two and the recommendation are not all the same; not where it is not known what is
    /// recommended.
    differs: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    rows: Option<Vec<Explained<'a>>>,
}

/// What a program does with the port.
#[derive(Debug, Serialize)]
struct Took {
    index: Option<u32>,
    outcome: String,
    /// Whether that is known. If not, it is what is likely.
    is_sure: bool,
}

impl Took {
    fn new(own: &Done) -> Self {
        let Done { outcome, is_sure } = own;
        Self { index: outcome.index(), outcome: outcome.to_string(), is_sure: *is_sure }
    }
}

impl Took {
    /// The index, with a mark if that is not known: `3?`.
    fn cell(&self) -> String {
        let mark = if self.is_sure { "" } else { "?" };
        self.index.map_or_else(|| NONE.to_owned(), |index| format!("{index}{mark}"))
    }
}

impl core::fmt::Display for Took {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let perhaps = if self.is_sure { "" } else { "perhaps " };
        write!(f, "{perhaps}{}", self.outcome)
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

/// What the document has after its rows.
#[derive(Debug, Serialize)]
struct Rest<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    fits_all: Option<Fits>,
    problems: &'a [Unanswered],
}

pub(crate) fn answer(
    common: &Common,
    args: &ChooseArgs,
    report: &mut Report,
) -> serde_json::Result<Output> {
    let preference = args.origin.preference(common);
    let from = &args.origin.from;
    let (asked, wish) = (Asked::new(&args.named.selectors), args.filter.wish(args.family));
    let mut rows = Rows::new(common.json, args.explain);
    let (mut verdict, mut indices) = (Verdict::default(), Indices::default());
    let mut looked = Looked::default();
    let source = (from, preference, Parts::CHOOSING);
    look_to_choose(&mut host(common), source, &asked, report, |host, report| {
        let (_, missing) = missing(host, &asked, report);
        tell_again(host, report);
        looked.add(&host.inventory, &asked);
        // All ports, as those that are not asked for take room from those that are.
        let chosen = choose(host, &asked, &wish, report);
        let taken = take(&host.inventory, &chosen, args.like);
        tell_nodes(host, &asked, report);
        tell_room(host, report);
        tell_variables(host, report);
        tell_settings(host, report);
        let (mut chosen, taken): (Vec<_>, Vec<_>) = chosen
            .into_iter()
            .zip(taken)
            .filter(|(own, _)| asked.has_port(own.port.device, own.port.number))
            .unzip();
        // Whether all hosts fit is asked of the recommendation, whatever is shown.
        if let Some(name) = &host.name {
            let ports = chosen.iter().map(|own| (own, own.decision.outcome.index()));
            let is_read = verdict.add(host, &asked, ports);
            indices.add(name, &chosen, &missing, is_read);
        }
        for (own, taken) in chosen.iter_mut().zip(&taken) {
            if let Some((like, _)) = &taken.like {
                own.decision = like.clone();
            }
        }
        tell_types(&host.inventory, &chosen, args.like, report);
        if host.inventory.home_is_assumed
            && args.like.is_some_and(|own| own.reading() < SettingsReading::V2_30)
        {
            report.turn_to(host.name.as_deref());
            report.note(
                "the home of the password entry is not known: what NCCL before 2.30 does may be something else",
            );
            report.turn_to(None);
        }
        report.enter(Stage::Unusable);
        for own in chosen.iter().filter(|own| !is_used(&own.decision.outcome)) {
            report.note(own.why_unused());
        }
        for device in portless(host, &asked) {
            let host = host.name.as_ref().map(|host| format!("{host}: ")).unwrap_or_default();
            report.note(format!("{host}{device}: no usable GID: it has no port"));
        }
        if lacks(&chosen.iter().collect::<Vec<_>>(), &asked) {
            report.raise(Status::Doubt);
        }
        report.enter(Stage::Differing);
        let mut shown = chosen.iter().zip(&taken);
        shown.try_for_each(|(own, taken)| rows.add(&Row::new(own, taken, args.explain), report))
    })?;
    let fits = (!from.from.is_empty()).then(|| fits::fits(&verdict, &indices, &asked, report));
    let table = match rows {
        Rows::Json(list) => {
            return list.end(&Rest { fits_all: fits, problems: report.problems() });
        }
        Rows::Plain(table) => table.into(),
        Rows::Explained(table) => table.into(),
    };
    if let Some(fits) = fits {
        fits::tell(&fits, &looked, &asked, (&args.filter, args.family), report);
    }
    Ok(table)
}

/// Whether a host has no usable GID for something that is asked for: a port or a device that is named,
/// or the host as a whole. Also whether it is not known for a port which one is right.
pub(crate) fn lacks(chosen: &[&Chosen<'_>], asked: &Asked<'_>) -> bool {
    chosen.iter().any(|own| !is_known(&own.decision.outcome)) || lacks_gid(chosen, asked)
}

/// The same, whether or not it is known which GID is right on the other ports.
pub(crate) fn lacks_gid(chosen: &[&Chosen<'_>], asked: &Asked<'_>) -> bool {
    let usable = chosen.iter().filter(|own| is_used(&own.decision.outcome));
    if asked.is_all() {
        return !chosen.is_empty() && usable.count() == 0;
    }
    // What is named and was not read has none that is known.
    let has =
        usable.flat_map(|own| [None, Some(own.port.number)].map(|port| (own.port.device, port)));
    let has: BTreeSet<(&str, Option<u32>)> = has.collect();
    has.iter().filter(|(device, port)| asked.names(device, *port)).count() < asked.count()
}

/// Devices that are named and have no port.
fn portless<'s>(host: &'s Seen, asked: &Asked<'_>) -> impl Iterator<Item = &'s str> {
    let devices = host.inventory.devices.iter().map(|record| &record.device);
    let named = devices.filter(|own| own.ports().is_empty() && asked.names(&own.name, None));
    named.map(|own| own.name.as_str())
}

/// Says of a host which of its devices libibverbs leaves out, and which ones programs may not be able to open.
pub(crate) fn tell_nodes(host: &Seen, asked: &Asked<'_>, report: &mut Report) {
    let names = |records: Vec<&DeviceRecord>| {
        let names = records.into_iter().map(|own| own.device.name.clone());
        names.filter(|own| asked.has_device(own)).collect::<Vec<String>>()
    };
    let lost = names(host.inventory.devices.iter().filter(|own| !own.is_found()).collect());
    let unopened = names(room::unopened(&host.inventory));
    report.enter(Stage::Room);
    report.turn_to(host.name.as_deref());
    if !lost.is_empty() {
        let lost = some(&lost);
        report.note(format!("{lost}: no node here, so programs here do not find the device"));
    }
    if !unopened.is_empty() {
        let unopened = some(&unopened);
        report.note(format!(
            "{unopened}: not opened here, so what programs do there may be something else"
        ));
    }
    report.turn_to(None);
}

/// Says of a host if it is not known what a program does there: ports that could not be read may take NCCL's room, and
/// more than 25 all of UCX's.
fn tell_room(host: &Seen, report: &mut Report) {
    report.enter(Stage::Room);
    report.turn_to(host.name.as_deref());
    let doubt = room::doubt(&host.inventory).filter(|_| !host.inventory.devices.is_empty());
    if let Some(doubt) = doubt {
        report.note(format!(
            "NCCL has room for {ROOM} ports, and {doubt}: what it does may be something else"
        ));
    }
    let has_list = variable(&host.inventory, SettingsReading::NEWEST)("UCX_NET_DEVICES").is_some();
    if room::fills_ucx(&host.inventory) && !room::has_unlisted(&host.inventory) && !has_list {
        report.note(format!(
            "UCX may have room for {} ports only: what it does may be something else",
            ucx::PORTS
        ));
    }
    report.turn_to(None);
}

/// Says of a sysfs tree that its host's variables are not known.
pub(crate) fn tell_variables(host: &Seen, report: &mut Report) {
    if host.inventory.host.is_none() && !host.inventory.devices.is_empty() {
        report.turn_to(host.name.as_deref());
        report.note(
            "which variables are set there is not known: what programs do may be something else",
        );
        report.turn_to(None);
    }
}

/// Says of a host if it is not known what NCCL does there, as its settings were not read.
pub(crate) fn tell_settings(host: &Seen, report: &mut Report) {
    report.turn_to(host.name.as_deref());
    for problem in &host.inventory.unread_settings {
        report.note(format!("{}: what NCCL does may be something else", problem.text));
    }
    report.turn_to(None);
}

/// Says on which ports a program may do something else as it is not known whether sysfs has the types of GIDs.
fn tell_types(
    inventory: &Inventory,
    chosen: &[Chosen<'_>],
    like: Option<Like>,
    report: &mut Report,
) {
    let own = |program: Program| program.model(variable(inventory, SettingsReading::NEWEST));
    let like = like.map(|own| own.model(variable(inventory, own.reading())));
    let models: Vec<Model> =
        [Program::Nccl, Program::Ucx].map(own).into_iter().chain(like).collect();
    let may_miss = |own: &&Chosen<'_>| models.iter().any(|model| model.may_miss_types(&own.port));
    let ports: Vec<String> = chosen.iter().filter(may_miss).map(Chosen::name).collect();
    if !ports.is_empty() {
        report.enter(Stage::Room);
        report.note(format!(
            "{}: it is not known whether sysfs has the types of GIDs: what programs do may be \
             something else",
            some(&ports)
        ));
    }
}

/// What comes of a port.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) recommended: Done,
    pub(crate) nccl: Done,
    pub(crate) ucx: Done,
    /// Whether the port is of InfiniBand, where there is nothing to choose.
    is_infiniband: bool,
    /// What the program does that was asked about, and whether that is known.
    pub(crate) like: Option<(Decision, bool)>,
}

impl Taken {
    /// Whether a program takes another GID than is recommended, as far as that is known.
    pub(crate) fn differs(&self) -> bool {
        is_known(&self.recommended.outcome)
            && (self.is_other(&self.nccl) || self.is_other(&self.ucx))
    }

    /// The same; `None` if it is not known.
    pub(crate) fn known_to_differ(&self) -> Option<bool> {
        let both = [&self.nccl, &self.ucx];
        let is_other = both.iter().any(|own| own.is_sure && self.is_other(own));
        let is_known = is_known(&self.recommended.outcome);
        let is_told = is_known && (is_other || both.iter().all(|own| own.is_sure));
        is_told.then_some(is_other)
    }

    fn is_other(&self, own: &Done) -> bool {
        let right = self.recommended.outcome.index();
        // On InfiniBand any GID will do here, and none is needed.
        let will_do =
            matches!(own.outcome, Outcome::Taken(_)) && self.is_infiniband && right.is_some();
        let is_same = own.outcome.index() == right && !will_fail(&own.outcome);
        !is_same && own.outcome != Outcome::ByLid && !will_do
    }
}

/// What a program does with a port, and whether that is known.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) outcome: Outcome,
    pub(crate) is_sure: bool,
}

impl Done {
    /// The index that it is known to take, if it takes one.
    pub(crate) fn known_index(&self) -> Option<u32> {
        self.outcome.index().filter(|_| self.is_sure)
    }
}

/// What programs do with each port by the settings of its host. NCCL has no room for any number of ports.
pub(crate) fn take(inventory: &Inventory, chosen: &[Chosen<'_>], like: Option<Like>) -> Vec<Taken> {
    let done = |program: Program| {
        let model = program.model(variable(inventory, SettingsReading::NEWEST));
        let all = take_by(&model, inventory, chosen).into_iter();
        all.map(|(Decision { outcome, .. }, is_sure)| Done { outcome, is_sure }).collect::<Vec<_>>()
    };
    let likes = like.map(|like| take_like(inventory, chosen, like)).unwrap_or_default();
    let mut likes = likes.into_iter();
    let done = done(Program::Nccl).into_iter().zip(done(Program::Ucx));
    let taken = chosen.iter().zip(done).map(|(own, (nccl, ucx))| Taken {
        recommended: Done {
            outcome: own.decision.outcome.clone(),
            is_sure: is_known(&own.decision.outcome) && own.decision.is_sure(&own.port),
        },
        nccl,
        ucx,
        is_infiniband: own.port.link_layer == LinkLayer::INFINIBAND,
        like: likes.next(),
    });
    taken.collect()
}

/// What a program does with each port, and whether that is known.
pub(crate) fn take_like(
    inventory: &Inventory,
    chosen: &[Chosen<'_>],
    like: Like,
) -> Vec<(Decision, bool)> {
    let model = like.model(variable(inventory, like.reading()));
    take_by(&model, inventory, chosen)
}

/// Whether a program takes the same on all ports of InfiniBand as without its variables.
pub(crate) fn is_as_without(
    program: Program,
    inventory: &Inventory,
    chosen: &[Chosen<'_>],
) -> bool {
    let is_infiniband = |own: &Chosen<'_>| own.port.link_layer == LinkLayer::INFINIBAND;
    if !chosen.iter().any(is_infiniband) {
        return true;
    }
    let [own, without] =
        [program.model(variable(inventory, SettingsReading::NEWEST)), program.model(|_| None)];
    // With an index that is set, what is taken does not say whether UCX heeds that it is a router's.
    let heeds = |own: &Model| matches!(own, Model::Ucx(own) if own.heeds_flid());
    if heeds(&own) != heeds(&without) {
        return false;
    }
    let [own, without] = [own, without].map(|own| take_by(&own, inventory, chosen));
    let mut all = chosen.iter().zip(own.iter().zip(&without));
    let is_same = |own: &(Decision, bool), other: &(Decision, bool)| {
        (&own.0.outcome, own.1) == (&other.0.outcome, other.1)
    };
    all.all(|(port, (own, other))| !is_infiniband(port) || is_same(own, other))
}

/// Whether a program uses the port, and fails: where none is right it should leave the port out.
pub(crate) fn will_fail(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Empty(_) | Outcome::Outside(_) | Outcome::Fails(_))
}

/// The same by its model.
fn take_by(model: &Model, inventory: &Inventory, chosen: &[Chosen<'_>]) -> Vec<(Decision, bool)> {
    model.take(inventory, &chosen.iter().map(|own| &own.port).collect::<Vec<_>>())
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
        Row {
            host: *host,
            device: port.device,
            port: port.number,
            is_found: record.is_found(),
            index,
            gid: row.map(|row| Text(row.gid)),
            gid_type: row.map(|row| Text(row.gid_type)),
            netdev: index.and_then(netdev),
            why: index.is_none().then(|| decision.outcome.to_string()),
            caveats: decision.caveats(port),
            recommended: Took::new(recommended),
            nccl: Took::new(nccl),
            ucx: Took::new(ucx),
            is_sure: taken.like.as_ref().map_or(taken.recommended.is_sure, |(_, is_sure)| *is_sure),
            is_like: taken.like.is_some(),
            differs: taken.differs(),
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
            Self::Plain(table) => {
                tabulate(row, table);
                tell_doubts(row, report);
            }
            Self::Explained(table) => explain(row, table),
        }
        if row.differs {
            let host = row.host.map(|host| format!("{host}: ")).unwrap_or_default();
            report.note(format!(
                "{host}{}:{}: they differ: recommended {}, NCCL {}, UCX {}",
                row.device, row.port, row.recommended.outcome, row.nccl, row.ucx
            ));
        }
        Ok(())
    }
}

/// Says what is not known of a row that is shown. Of snapshots the lines after all rows say it.
fn tell_doubts(row: &Row<'_>, report: &mut Report) {
    if let (None, Some(index), false) = (row.host, row.index, row.is_sure) {
        for caveat in &row.caveats {
            report.note(format!("{}:{}: {index}: {caveat}", row.device, row.port));
        }
    }
}

fn tabulate(row: &Row<'_>, table: &mut Table<8>) {
    let cells = [
        row.device.to_owned(),
        row.port.to_string(),
        match row.index {
            Some(index) if row.is_like && !row.is_sure => format!("{index}?"),
            index => cell(index),
        },
        cell(row.gid),
        row.gid_type.map_or_else(|| NONE.to_owned(), |own| short_type(own.0)),
        cell(row.netdev),
        row.nccl.cell(),
        row.ucx.cell(),
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
        let mark = if own.is_taken { Mark::Good } else { Mark::Plain };
        line([own.index.to_string(), gid, gid_type, cell(own.netdev), reason], mark);
    }
    if let Some(why) = &row.why {
        let none = || NONE.to_owned();
        line([none(), none(), none(), none(), why.clone()], Mark::Attention);
    }
}
