//! Findings about the settings of programs: what they take, and what is recommended.

use std::collections::BTreeMap;

use nix::libc;

use super::finding::{Finding, Severity};
use crate::choose::plan::{Model, Program};
use crate::choose::{self, Decision, Outcome, Port, Why, Wish, recommend, ucx};
use crate::inventory::{self, DeviceRecord, Inventory, PortRecord, Setting, SettingsReading};
use crate::port::{LinkLayer, PortState};

/// Findings about programs that take another GID than the recommended one, with the variables as they
/// are set now.
#[must_use]
pub fn settings(inventory: &Inventory) -> Vec<Finding> {
    settings_for(inventory, &Wish::default(), &|_, _| true)
}

/// The same of some ports, each by its device's name and its number, where GIDs are right by a wish.
/// Programs still look at all ports.
#[must_use]
pub fn settings_for(
    inventory: &Inventory,
    wish: &Wish,
    is_asked: &dyn Fn(&str, u32) -> bool,
) -> Vec<Finding> {
    let ports = choose::ports(inventory);
    let is_asked = |port: &Port<'_>| is_asked(port.device, port.number);
    // What is not asked for is not judged.
    let recommended: Vec<(&Port<'_>, Option<Decision>)> =
        ports.iter().map(|port| (port, is_asked(port).then(|| recommend(port, wish)))).collect();
    let all: Vec<&Port<'_>> = ports.iter().collect();
    // What comes first counts.
    let mut set: BTreeMap<&str, &Setting> = BTreeMap::new();
    for setting in
        inventory.settings.iter().filter(|own| own.readings.contains(&SettingsReading::NEWEST))
    {
        set.entry(&setting.name).or_insert(setting);
    }
    let variable = |name: &str| set.get(name).map(|setting| setting.value.as_str());
    let mut found: Vec<Finding> =
        recommended.iter().filter_map(|(port, own)| judge_unread(port, own.as_ref()?)).collect();
    let mut models: Vec<(Program, Model)> = Vec::new();
    for program in [Program::Nccl, Program::Ucx, Program::Nvshmem] {
        let is_nvshmem_s = |name: &str| name.starts_with("NVSHMEM_");
        if program == Program::Nvshmem && !set.keys().any(|name| is_nvshmem_s(name)) {
            continue;
        }
        if program == Program::Nccl && !inventory.unread_settings.is_empty() {
            found.extend(inventory.unread_settings.iter().map(judge_unread_setting));
            continue;
        }
        let model = program.model(variable);
        // It may still be as if the variable were not set.
        let doubt = model.doubted_by().and_then(|name| set.get(name)).copied();
        found.extend(doubt.map(|setting| {
            judge_doubt(program, setting, "may use other ports or GIDs, or no RDMA")
        }));
        let is_disabled = matches!(&model, Model::Nccl(own) if own.is_disabled());
        let disabling = set.get("NCCL_IB_DISABLE").filter(|_| is_disabled);
        found.extend(
            disabling.map(|setting| judge_doubt(program, setting, "uses no RDMA of its own")),
        );
        let taken = model.take(inventory, &all).into_iter();
        let (outcomes, sure): (Vec<Outcome>, Vec<bool>) =
            taken.map(|(decision, is_sure)| (decision.outcome, is_sure)).unzip();
        // The list may include a port that was not asked for, which is said of the host.
        if !inventory.is_partial() {
            let own = (program, &model);
            found.extend(judge_list(inventory, &set, own, (&all, &outcomes), doubt));
        }
        if program == Program::Nccl {
            found.extend(judge_room(inventory, &model, (&all, &outcomes), doubt.is_some()));
        }
        if let Model::Ucx(own) = &model {
            found.extend(judge_room_of_ucx(inventory, own, set.get("UCX_NET_DEVICES").copied()));
        }
        let index = program.index_variable();
        let index = set.get(index).map_or_else(|| index.to_owned(), ToString::to_string);
        // That there are too many ports was said of the host.
        let is_overrun = outcomes.contains(&Outcome::Fails(Why::Overrun));
        for (((port, decision), outcome), is_sure) in recommended.iter().zip(&outcomes).zip(&sure) {
            let Some(decision) = decision else { continue };
            if is_overrun && *outcome == Outcome::Fails(Why::OtherPort) {
                continue;
            }
            // Without RoCE any GID that is used will do.
            let is_used = matches!(outcome, Outcome::Taken(_) | Outcome::ByLid);
            if port.link_layer == LinkLayer::ETHERNET || !is_used {
                found.extend(judge(&index, program, &model, (port, decision), (outcome, *is_sure)));
            }
        }
        models.push((program, model));
    }
    let indices = |program: Program, model: &Model| -> Vec<RightIndex<'_>> {
        let ports = recommended.iter().filter(|(port, _)| {
            port.link_layer == LinkLayer::ETHERNET
                && program.may_take(port)
                && model.lists(port.device, port.number)
        });
        let indices = ports.filter_map(|(port, decision)| {
            let decision = decision.as_ref()?;
            let index = decision.outcome.index()?;
            Some(RightIndex { index, port, is_sure: decision.is_sure(port) })
        });
        indices.collect()
    };
    // NVSHMEM may not be used here. Where NCCL's settings could not be read, it is not known which ports it uses.
    let models = models
        .iter()
        .filter(|(program, model)| *program != Program::Nvshmem || model.pinned().is_some());
    let differing = models.map(|(program, model)| {
        (*program, differing(&indices(*program, model), model.pinned().is_some()))
    });
    found.extend(judge_indices(&differing.collect::<Vec<_>>()));
    found
}

/// Finds a port on which only a row that could not be read may be right.
fn judge_unread(port: &Port<'_>, decision: &Decision) -> Option<Finding> {
    let Outcome::Ignored(why @ Why::NotKnown(_)) = &decision.outcome else { return None };
    Some(Finding {
        name: "right-gid-unknown",
        severity: Severity::Warning,
        device: Some(port.device.to_owned()),
        port: Some(port.number),
        program: None,
        seen: why.to_string(),
        wanted: None,
        advice: "uverbs choose --explain gives the reason".to_owned(),
    })
}

/// The index that is right on a port, and whether that is known.
struct RightIndex<'p> {
    index: u32,
    port: &'p Port<'p>,
    is_sure: bool,
}

/// Two ports whose right indices differ, and how much that matters. Two that are sure come before others.
fn differing(indices: &[RightIndex<'_>], is_pinned: bool) -> Option<(Severity, String)> {
    let sure: Vec<_> = indices.iter().filter(|own| own.is_sure).collect();
    let all: Vec<_> = indices.iter().collect();
    let two = |list: &[&RightIndex<'_>]| {
        let one = list.first()?;
        let other = list.iter().find(|own| own.index != one.index)?;
        let (at, there) = (one.port, other.port);
        Some(format!(
            "{} on {}:{} and {} on {}:{}",
            one.index, at.device, at.number, other.index, there.device, there.number
        ))
    };
    match (two(&sure), two(&all)) {
        (Some(two), _) if is_pinned => Some((Severity::Warning, two)),
        (Some(two), _) => Some((Severity::Note, two)),
        (None, Some(two)) => Some((Severity::Note, two + ", as far as is known")),
        (None, None) => None,
    }
}

/// Finds for which programs that is so. If it is the same for all, it is said once.
fn judge_indices(of_programs: &[(Program, Option<(Severity, String)>)]) -> Vec<Finding> {
    let finding = |program: Option<Program>, severity, what: &str| Finding {
        name: "different-indices",
        severity,
        device: None,
        port: None,
        program,
        seen: match program {
            None => format!("the right index is {what}"),
            Some(program) => format!("the right index for {program} is {what}"),
        },
        wanted: None,
        advice: "no index is right on both; uverbs env looks for another setting".to_owned(),
    };
    let found = |(program, own): &(Program, Option<(Severity, String)>)| {
        let (severity, what) = own.as_ref()?;
        Some((*program, *severity, what.clone()))
    };
    let found: Vec<_> = of_programs.iter().filter_map(found).collect();
    let first = found.first().filter(|_| found.len() == of_programs.len());
    match first {
        Some((_, severity, what)) if found.iter().all(|(.., other)| other == what) => {
            let worst = found.iter().map(|(_, own, _)| *own).max().unwrap_or(*severity);
            vec![finding(None, worst, what)]
        }
        _ => {
            found.iter().map(|(own, severity, what)| finding(Some(*own), *severity, what)).collect()
        }
    }
}

/// Finds active ports for which NCCL has no room. A port that was not read may take the room of others, and it may be
/// doubtful what NCCL does.
fn judge_room(
    inventory: &Inventory,
    model: &Model,
    (ports, outcomes): (&[&Port<'_>], &[Outcome]),
    is_doubtful: bool,
) -> Option<Finding> {
    let program = Program::Nccl;
    let name = |port: &Port<'_>| format!("{}:{}", port.device, port.number);
    let without = |what: Outcome| {
        let own = ports.iter().zip(outcomes).filter(move |(_, own)| **own == what);
        own.map(|(port, _)| name(port)).collect::<Vec<String>>()
    };
    let overrun = without(Outcome::Fails(Why::Overrun));
    let left = without(Outcome::Ignored(Why::NoRoom));
    let room = choose::nccl::ROOM;
    let count = overrun.len() + left.len();
    let unlisted = inventory.unlisted.len() + usize::from(inventory.list_failure.is_some());
    let unread = choose::room::unread(inventory, |device, port| model.lists(device, port));
    let unread = unread.saturating_add(unlisted);
    let used = ports.iter().zip(outcomes);
    let used = used.filter(|(port, own)| port.is_found && !matches!(own, Outcome::Ignored(_)));
    let (severity, seen) = if count > 0 && (unread > 0 || inventory.is_partial()) {
        let seen = format!(
            "{program} has room for {room} ports, and there are at least {}; it is not known which it \
             takes",
            room + count
        );
        (Severity::Warning, seen)
    } else if unread > 0 && unread.saturating_add(used.count()) > room {
        let seen = format!(
            "{program} has room for {room} ports, and with those that could not be read there may be \
             more; it is not known which it takes"
        );
        (Severity::Warning, seen)
    } else if count > 0 && (is_doubtful || choose::room::doubt(inventory).is_some()) {
        let seen = format!(
            "{program} has room for {room} ports, and there are {count} more; it is not known which it takes"
        );
        (Severity::Warning, seen)
    } else if let Some(first) = overrun.first() {
        let seen =
            format!("{program} has room for {room} ports, and writes past the end at {first}");
        (Severity::Problem, seen)
    } else {
        let (first, more) = left.split_first()?;
        let more = match more.len() {
            0 => String::new(),
            count => format!(" and {count} more"),
        };
        let seen = format!("{program} has room for {room} ports, and leaves out {first}{more}");
        (Severity::Warning, seen)
    };
    Some(Finding {
        name: "too-many-ports",
        severity,
        device: None,
        port: None,
        program: Some(program),
        seen,
        wanted: None,
        advice: if inventory.problems.is_empty() {
            "name the ports to use: uverbs env nccl DEV:PORT… says what to set".to_owned()
        } else {
            "look first at what could not be read of the host".to_owned()
        },
    })
}

/// Finds ports, or a list of devices, for which UCX may have no room. What could not be listed was said of the host.
fn judge_room_of_ucx(
    inventory: &Inventory,
    settings: &ucx::Settings,
    list: Option<&Setting>,
) -> Option<Finding> {
    let program = Program::Ucx;
    let seen = match list.filter(|_| settings.may_stop()) {
        Some(Setting { name, .. }) => {
            format!("{name} has more than {} entries: {program} may stop at it", ucx::NAMED)
        }
        None if choose::room::has_unlisted(inventory) => return None,
        None if choose::room::overfills_ucx(inventory, settings) => format!(
            "{program} may have room for {} ports only, and there may be more: what it does is not known",
            ucx::PORTS
        ),
        None => return None,
    };
    Some(Finding {
        name: "too-many-ports",
        severity: Severity::Note,
        device: None,
        port: None,
        program: Some(program),
        seen,
        wanted: None,
        advice: "name the ports to use: uverbs env ucx DEV:PORT… says what to set".to_owned(),
    })
}

/// Finds a setting of NCCL's that was not read. What NCCL takes is not known then, and so no problem.
fn judge_unread_setting(problem: &inventory::Problem) -> Finding {
    Finding {
        name: "settings-unreadable",
        severity: Severity::Warning,
        device: None,
        port: None,
        program: Some(Program::Nccl),
        seen: format!("{}; so what NCCL takes is not known", problem.text),
        wanted: None,
        advice: match problem.errno {
            libc::EOPNOTSUPP => "use a newer uverbs",
            libc::EINVAL | libc::EFBIG => "make it a file that can be read, or remove it",
            libc::EMFILE => "this process may have no more open files (ulimit -n)",
            _ => "try again; the kernel's log may say more",
        }
        .to_owned(),
    }
}

/// Where it is seen what a program does if a variable makes that doubtful.
fn where_seen(program: Program) -> &'static str {
    match program {
        Program::Ucx => "look at what UCX_LOG_LEVEL=info prints of the transports that are used",
        Program::Nvshmem => "look at what NVSHMEM_DEBUG=INFO prints of the devices that are used",
        Program::Nccl => "look at what NCCL_DEBUG=INFO prints of the network that is used",
    }
}

/// Finds a variable by which a program does something else than what is said of ports, or may.
fn judge_doubt(program: Program, setting: &Setting, what: &str) -> Finding {
    Finding {
        name: "other-transport",
        severity: Severity::Note,
        device: None,
        port: None,
        program: Some(program),
        seen: format!("{setting}: {program} {what}"),
        wanted: None,
        advice: where_seen(program).to_owned(),
    }
}

/// Finds a list of devices that leaves no active port. What could not be read may be one that it leaves, and where a
/// variable makes that doubtful, the program may heed no list.
fn judge_list(
    inventory: &Inventory,
    set: &BTreeMap<&str, &Setting>,
    (program, model): (Program, &Model),
    (ports, outcomes): (&[&Port<'_>], &[Outcome]),
    doubt: Option<&Setting>,
) -> Option<Finding> {
    let mut variables = Vec::new();
    for (port, outcome) in ports.iter().zip(outcomes) {
        match outcome {
            _ if port.state != PortState::ACTIVE || !program.may_take(port) || !port.is_found => {}
            Outcome::Ignored(Why::NotListed(variable)) => variables.push(variable),
            _ => return None,
        }
    }
    let setting = set.get(**variables.first()?)?;
    // Why a port that it names is not used, best of one that could be.
    let records = inventory.devices.iter();
    let named = records.flat_map(|record| record.ports.iter().map(move |port| (record, port)));
    let named = named.filter(|(own, port)| model.lists(&own.device.name, port.number));
    let is_never = |own: &(&DeviceRecord, &PortRecord)| !program.may_take_record(own.0, own.1);
    let has_found = choose::room::has_found(inventory);
    let is_found = |own: &DeviceRecord| own.is_found() || !has_found;
    let named = named.min_by_key(|own| (!is_found(own.0), is_never(own)));
    let named = named.and_then(|own| {
        let name = format!("{}:{}", own.0.device.name, own.1.number);
        Some(if is_never(&own) {
            format!("{program} itself never takes {name}; name another port")
        } else if is_found(own.0) {
            format!("{name} is {}: bring it up, or name another port", own.1.known()?.state)
        } else {
            format!("programs here do not find {name}; name another port")
        })
    });
    let unknown = if model.lists_unread(inventory) {
        let why = "only ports that it leaves out could be read".to_owned();
        Some((why, "uverbs check without names says what could not be read"))
    } else {
        doubt.map(|own| (format!("with {own} it may use others"), where_seen(program)))
    };
    let (name, severity, seen, advice) = match unknown {
        None => {
            let seen = format!("{setting} leaves {program} no active port");
            let advice = "write device names as uverbs devices prints them, without blanks";
            ("list-leaves-none", Severity::Problem, seen, named.as_deref().unwrap_or(advice))
        }
        Some((why, advice)) => {
            let seen = format!(
                "not looked at: whether {setting} leaves {program} an active port, as {why}"
            );
            ("not-checked", Severity::Note, seen, advice)
        }
    };
    Some(Finding {
        name,
        severity,
        device: None,
        port: None,
        program: Some(program),
        seen,
        wanted: None,
        advice: advice.to_owned(),
    })
}

/// Finds what is wrong with a program's use of a port.
fn judge(
    set: &str,
    program: Program,
    model: &Model,
    (port, decision): (&Port<'_>, &Decision),
    (outcome, is_sure): (&Outcome, bool),
) -> Option<Finding> {
    use Severity::{Note, Problem, Warning};
    let right = decision.outcome.index()?;
    let place = format!("{}:{}", port.device, port.number);
    let word = if decision.is_sure(port) { "is" } else { "may be" };
    let instead =
        format!("index {right} {word} right here; uverbs env looks for a setting for all ports");
    let finding = |name, severity, seen: String, advice: String| {
        let device = Some(port.device.to_owned());
        let (port, program) = (Some(port.number), Some(program));
        Some(Finding { name, severity, device, port, program, seen, wanted: None, advice })
    };
    let may_take = program.may_take(port);
    // No index that is set is wrong for a port that is never taken.
    let is_pinned = model.pinned().is_some() && may_take;
    match outcome {
        // What is not known of the host, of the row or of the variables was said there.
        Outcome::Taken(index) if *index == right => {
            let is_said =
                port.assumes_types || !decision.is_sure(port) || model.doubted_by().is_some();
            let is_roce = choose::is_roce(port.link_layer, port.node_type);
            let is_doubtful = is_roce && !is_said && !model.is_sure(port, outcome);
            let seen = || format!("{program} may take another GID of {place} than {index}");
            if is_doubtful { finding("may-take-other-gid", Note, seen(), instead) } else { None }
        }
        // One finding covers all ports without room.
        Outcome::Ignored(
            Why::NotListed(_)
            | Why::NotActive(_)
            | Why::Disabled
            | Why::NoRoom
            // Nothing that could be set would help.
            | Why::PortNumber
            | Why::BeyondSecond,
        )
        | Outcome::Fails(Why::Overrun)
        | Outcome::ByLid => None,
        Outcome::Empty(_) | Outcome::Ignored(Why::EmptyFirst(_)) if is_pinned => {
            finding("pinned-index-empty", Problem, format!("{set} is empty on {place}"), instead)
        }
        Outcome::Outside(_) | Outcome::Ignored(Why::OutsideFirst(_)) if is_pinned => finding(
            "pinned-index-outside",
            Problem,
            format!("{set} is outside the GID table of {place}"),
            instead,
        ),
        Outcome::Taken(index) => {
            let (row, best) = (port.row(*index)?, port.row(right)?);
            let what = format!("{} ({})", row.gid, row.gid_type);
            match (is_pinned, row.gid_type == best.gid_type) {
                (true, false) => finding(
                    "pinned-index-other-type",
                    Warning,
                    format!("{set} is of type {} on {place}", row.gid_type),
                    instead,
                ),
                (true, true) => {
                    let seen = format!("{set} is {what} on {place}");
                    finding("pinned-index-other", Warning, seen, instead)
                }
                (false, _) => {
                    let takes = if is_sure { "takes" } else { "may take" };
                    finding(
                        "takes-other-gid",
                        Warning,
                        format!("{program} {takes} GID {index} of {place}, {what}"),
                        instead,
                    )
                }
            }
        }
        other => {
            let gets = if is_sure { "gets" } else { "may get" };
            let seen = format!("{program} {gets} no GID of {place}: {other}");
            let never = match program {
                Program::Ucx => "nothing that can be set makes UCX take it",
                Program::Nccl | Program::Nvshmem => {
                    "nothing that can be set makes its own transports take it; a plug-in may"
                }
            };
            let (severity, advice) = if may_take { (Warning, instead) } else { (Note, never.to_owned()) };
            finding("takes-no-gid", severity, seen, advice)
        }
    }
}
