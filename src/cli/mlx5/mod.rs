//! `uverbs mlx5`: what only the mlx5 driver and its devices' firmware tell.

use serde::Serialize;
use uverbs::driver::DriverId;
use uverbs::error::{Cause, Error, Result};
use uverbs::inventory::{Parts, Wanted};
use uverbs::selector::Selector;

use crate::args::{Common, Mlx5Command};
use crate::hosts::{Seen, live, some};
use crate::output::Answer;
use crate::report::Report;
use crate::selection::Selected;

mod device;
mod port;
mod vport;

pub(crate) fn answer(
    common: &Common,
    command: &Mlx5Command,
    report: &mut Report,
) -> serde_json::Result<Answer> {
    match command {
        Mlx5Command::Port(args) => port::answer(common, args, report),
        Mlx5Command::Vport(args) => vport::answer(common, args, report),
        Mlx5Command::Device(args) => device::answer(common, args, report),
    }
}

/// This host's devices. Drivers that netlink does not name are asked for if they choose the devices.
fn host(common: &Common, selectors: &[Selector]) -> Seen {
    let parts = if selectors.is_empty() { Parts::DEVICES } else { Parts::LISTED };
    Seen { name: None, inventory: live(common, &Wanted::new(parts)) }
}

/// The devices that are named, whatever their driver; all of mlx5's if none is.
fn selected<'h>(host: &'h Seen, selectors: &[Selector], report: &mut Report) -> Vec<Selected<'h>> {
    let mut selected = host.select(selectors, report);
    if selectors.is_empty() && !selected.is_empty() {
        let mut unknown = Vec::new();
        selected.retain(|own| {
            if let Some(Err(problem)) = &own.record.access {
                report.problem(&own.device.name, problem.clone());
            }
            if own.device.driver.is_none() {
                unknown.push(own.device.name.clone());
            }
            own.device.driver == Some(DriverId::MLX5)
        });
        if !unknown.is_empty() {
            report.nothing(format!("not asked, as the driver is not known: {}", some(&unknown)));
        } else if selected.is_empty() {
            report.note("no device of the driver mlx5; `uverbs devices` shows the drivers");
        }
    }
    selected
}

/// An answer, if there was a question. A failure is a problem.
fn told<T>(answer: Option<Result<T>>, device: &str, report: &mut Report) -> Option<T> {
    answer?.map_err(|error| report.problem(device, &error)).ok()
}

/// Ports of a device in switchdev mode that stand for no vport: mlx5 has one for each vport that
/// there could be. Like an empty slot of a GID table that is no problem, unless one is named.
#[derive(Debug, Default)]
struct Vacant(Vec<u32>);

/// A port without a row, as JSON shows it.
#[derive(Debug, Serialize)]
struct LeftOut<'a> {
    device: &'a str,
    port: u32,
    why: &'static str,
}

impl Vacant {
    /// Takes what came of a port that has no answer.
    fn add(&mut self, selected: &Selected<'_>, port: u32, error: &Error, report: &mut Report) {
        if *error.cause() == Cause::NoRepresentor && !selected.names(port) {
            self.0.push(port);
        } else {
            report.problem(&selected.device.name, error);
        }
    }

    /// Tells of them, and lists them.
    fn tell<'a>(self, device: &'a str, report: &mut Report, left_out: &mut Vec<LeftOut<'a>>) {
        match self.0.len() {
            0 => {}
            1 => report.note(format!("{device}: one more port represents no vport")),
            count => report.note(format!("{device}: {count} more ports represent no vport")),
        }
        let why = "it represents no vport";
        left_out.extend(self.0.into_iter().map(|port| LeftOut { device, port, why }));
    }
}
