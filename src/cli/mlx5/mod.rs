//! `uverbs mlx5`: what only the mlx5 driver and its devices' firmware know.

use clap::{Args, Subcommand};
use serde::Serialize;
use uverbs::choose::room::has_unlisted;
use uverbs::driver::DriverId;
use uverbs::error::{Cause, Error, Result};
use uverbs::inventory::{Parts, Wanted};

use crate::args::{Common, NamedDevices, NamedPorts, device_here, selector_here};
use crate::hosts::{Seen, live, some};
use crate::output::Output;
use crate::report::Report;
use crate::selection::{Asked, Selected};

#[derive(Debug, Subcommand)]
pub(crate) enum Mlx5Command {
    /// Show how the e-switch's steering knows ports
    ///
    /// In switchdev mode each port represents a vport of the e-switch: `uplink` is the wire, `ecpf`
    /// the physical function of a smart NIC's own CPU, 0 a physical function, others are VFs and
    /// sub-functions; ports that represent none are counted. Outside of switchdev mode the driver
    /// says nothing, and FLAGS is 0x0 (for multi-port RoCE, Linux 6.12 gives the vhca id).
    /// `REG_C0` is value/mask. Asks as `mlx5dv_query_port` does; Linux 5.13.
    #[command(
        verbatim_doc_comment,
        after_help = "\
Examples:
  uverbs mlx5 port
  uverbs mlx5 port mlx5_0:2
  uverbs mlx5 port --no-header | awk '$4 == \"uplink\" {print $1 \":\" $2}'
  uverbs mlx5 port --json"
    )]
    Port(Mlx5PortArgs),
    /// Show what the firmware knows of ports: state, addresses, GUIDs, counters
    ///
    /// A line for each field, named as in JSON. Of a port that represents a vport of the e-switch
    /// (switchdev mode), the vport's fields are shown. `hw_mtu` is the largest frame, 22 bytes more
    /// than the interface's MTU. RoCE addresses are those of the GIDs in use, as the firmware has
    /// them. Opens the device with DEVX.
    #[command(
        verbatim_doc_comment,
        after_help = "\
Examples:
  uverbs mlx5 vport mlx5_0:1
  uverbs mlx5 vport mlx5_0 --json"
    )]
    Vport(Mlx5PortArgs),
    /// Show what the firmware knows of devices: vhca id, board, capabilities of ports
    ///
    /// A line for each field, named as in JSON. Opens the device with DEVX.
    #[command(
        verbatim_doc_comment,
        after_help = "\
Examples:
  uverbs mlx5 device mlx5_0
  uverbs mlx5 device --json"
    )]
    Device(Mlx5DeviceArgs),
}

#[derive(Debug, Args)]
#[command(mut_arg("selectors", |own| own.help("Devices and ports to show; all of mlx5's if none is named").value_parser(selector_here)))]
pub(crate) struct Mlx5PortArgs {
    #[command(flatten)]
    pub(crate) named: NamedPorts,
}

#[derive(Debug, Args)]
#[command(mut_arg("selectors", |own| own.help("Devices to show; all of mlx5's if none is named").value_parser(device_here)))]
pub(crate) struct Mlx5DeviceArgs {
    #[command(flatten)]
    pub(crate) named: NamedDevices,
}

mod device;
mod port;
mod vport;

pub(crate) fn answer(
    common: &Common,
    command: &Mlx5Command,
    report: &mut Report,
) -> serde_json::Result<Output> {
    match command {
        Mlx5Command::Port(args) => port::answer(common, args, report),
        Mlx5Command::Vport(args) => vport::answer(common, args, report),
        Mlx5Command::Device(args) => device::answer(common, args, report),
    }
}

/// This host's devices. Drivers that netlink does not name are asked for if they choose the devices.
fn host(common: &Common, asked: &Asked<'_>) -> Seen {
    let parts = if asked.is_all() { Parts::DEVICES } else { Parts::LISTED };
    Seen::here(live(common, &Wanted::new(parts)))
}

/// The devices that are named, whatever their driver; all of mlx5's if none is.
fn selected<'h>(host: &'h Seen, asked: &'h Asked<'_>, report: &mut Report) -> Vec<Selected<'h>> {
    let mut selected = host.select(asked, report);
    if asked.is_all() && !selected.is_empty() {
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
        } else if selected.is_empty() && !has_unlisted(&host.inventory) {
            report.note("no device of the driver mlx5; `uverbs devices` shows the drivers");
        }
    }
    selected
}

/// An answer, if there was a question. A failure is a problem.
fn told<T>(answer: Option<Result<T>>, device: &str, report: &mut Report) -> Option<T> {
    answer?.map_err(|error| report.problem(device, &error)).ok()
}

/// Ports of a device in switchdev mode without a vport: mlx5 has one for each vport that
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
        let name = &selected.device.name;
        match error.cause() {
            Cause::NoRepresentor if selected.names(port) => report.absent(name, error),
            Cause::NoRepresentor => self.0.push(port),
            _ => report.problem(name, error),
        }
    }

    /// Counts them on stderr, and adds each to the list.
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
