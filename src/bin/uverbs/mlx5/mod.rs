//! `uverbs mlx5`: what only the mlx5 driver and its devices' firmware tell.

use serde::Serialize;
use uverbs::device::Device;
use uverbs::driver::DriverId;
use uverbs::error::{Cause, Error, Result};

use crate::args::{Common, Mlx5Command};
use crate::host::Place;
use crate::hosts::some;
use crate::output::Answer;
use crate::report::Report;
use crate::selection::{Asked, Selected, select};

mod device;
mod port;
mod vport;

pub(crate) fn answer(
    place: &mut Place,
    common: &Common,
    command: &Mlx5Command,
    report: &mut Report,
) -> serde_json::Result<Answer> {
    match command {
        Mlx5Command::Port(args) => port::answer(place, common, args, report),
        Mlx5Command::Vport(args) => vport::answer(place, common, args, report),
        Mlx5Command::Device(args) => device::answer(place, common, args, report),
    }
}

/// The devices that are named, whatever their driver; all of mlx5's if none is.
fn selected<'d>(
    devices: &'d [Device],
    asked: &'d Asked<'_>,
    place: &Place,
    report: &mut Report,
) -> Vec<Selected<'d>> {
    let mut selected = select(devices, asked, report);
    if asked.is_all() && !devices.is_empty() {
        let mut unknown = Vec::new();
        selected.retain(|own| {
            let driver = place.driver(own.device, report);
            if driver.is_none() {
                unknown.push(own.device.name.clone());
            }
            driver == Some(DriverId::MLX5)
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
