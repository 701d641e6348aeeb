//! `uverbs wait`: waits until ports have a usable GID.

use clap::Args;
use uverbs::inventory::Parts;
use uverbs::watch::Watch;

use crate::args::{Common, NamedPorts, SourceArg, selector_here};
use crate::choose::lacks_gid;
use crate::filter::FilterArgs;
use crate::gid_row::{COLUMNS, HEADING, Row};
use crate::hosts::{Seen, choose, is_used, missing};
use crate::output::Output;
use crate::report::Report;
use crate::rows::Rows;
use crate::selection::Asked;
use crate::table::Mark;
use crate::until::{Next, TimeArgs, host_of};

#[derive(Debug, Args)]
#[command(mut_arg("selectors", |own| own.help("Devices and ports to wait for; any port if none is named").value_parser(selector_here)))]
pub(crate) struct WaitArgs {
    #[command(flatten)]
    pub(crate) named: NamedPorts,
    #[command(flatten)]
    filter: FilterArgs,
    #[command(flatten)]
    time: TimeArgs,
    #[command(flatten)]
    pub(crate) source: SourceArg,
}

pub(crate) fn answer(
    common: &Common,
    args: &WaitArgs,
    report: &mut Report,
) -> serde_json::Result<Output> {
    let mut rows = Rows::new(common, "wait", HEADING);
    let parts = Some(Parts::CHOOSING);
    let (mut watch, ends) = match args.time.begin(common, args.source, &args.named.selectors, parts)
    {
        Ok(begun) => begun,
        Err(error) => {
            report.host_problem(error);
            return rows.end(report);
        }
    };
    let gid = args.filter.usable_gid(None);
    let mut is_over = false;
    loop {
        // Only what is so at the end is reported.
        *report = Report::default();
        if see(&watch, args, &mut rows, report)? {
            return rows.end(report);
        }
        if is_over {
            report.nothing(format!(
                "the time is up: not all that is waited for is known to have {gid}"
            ));
            return rows.end(report);
        }
        loop {
            let next = ends.next(&mut watch).and_then(|next| match next {
                // Not all that happened was heard.
                Next::TimeIsUp => watch.reread().map(|()| next),
                _ => Ok(next),
            });
            match next {
                Ok(Next::Change(_)) if watch.has_found() => {}
                Ok(Next::Change(_)) => break,
                Ok(Next::TimeIsUp) => {
                    is_over = true;
                    break;
                }
                Ok(Next::Ended) => {
                    report.nothing(format!(
                        "ended before all that is waited for was known to have {gid}"
                    ));
                    return rows.end(report);
                }
                Err(error) => {
                    report.host_problem(&error);
                    return rows.end(report);
                }
            }
        }
    }
}

/// Whether all that is waited for has a usable GID, which is then added. Reports what has not.
fn see(
    watch: &Watch,
    args: &WaitArgs,
    rows: &mut Rows<COLUMNS>,
    report: &mut Report,
) -> serde_json::Result<bool> {
    let asked = Asked::new(&args.named.selectors);
    let host = Seen::here(host_of(watch));
    let (is_missing, _) = missing(&host, &asked, report);
    let chosen = choose(&host, &asked, &args.filter.wish(None), report);
    let chosen: Vec<_> =
        chosen.iter().filter(|own| asked.has_port(own.port.device, own.port.number)).collect();
    for own in chosen.iter().filter(|own| !is_used(&own.decision.outcome)) {
        report.note(own.why_unused());
    }
    if is_missing || chosen.is_empty() || lacks_gid(&chosen, &asked) {
        return Ok(false);
    }
    *report = Report::default();
    for own in &chosen {
        let index = own.decision.outcome.index();
        let Some(row) = index.and_then(|index| own.record.row(own.port.number, index)) else {
            continue;
        };
        // As `choose` says it.
        if !own.decision.is_sure(&own.port) {
            for caveat in own.decision.caveats(&own.port) {
                report.note(format!("{}: {}: {caveat}", own.name(), row.record.entry.index()));
            }
        }
        rows.add(&Row::new(None, own.port.device, row), |row, table| {
            table.row_of(None, &row.cells(), Mark::Plain);
        })?;
    }
    Ok(true)
}
