//! `uverbs mlx5 vport`: a port's vport, as the firmware knows it.

use uverbs::context::Context;
use uverbs::error::{Cause, Result};
use uverbs::mlx5::devx::{
    self, Capabilities, CapabilityMode, DevxContext, PortType, Vport, VportSide,
};
use uverbs::mlx5::port::{SteeringPort, VportNumber};
use uverbs::mlx5::query_port;

use super::{LeftOut, Mlx5PortArgs, Vacant, host, selected, told};
use crate::args::Common;
use crate::output::{Output, json};
use crate::report::Report;
use crate::selection::{Asked, Selected};
use crate::table::fields;
use crate::values::Text;
use row::{
    AddressRow, Document, EswitchRow, EthernetRow, InfinibandRow, Row, StateRow, counters_row,
};

mod row;

pub(crate) fn answer(
    common: &Common,
    args: &Mlx5PortArgs,
    report: &mut Report,
) -> serde_json::Result<Output> {
    let asked = Asked::new(&args.named.selectors);
    let host = host(common, &asked);
    let (mut rows, mut left_out) = (Vec::new(), Vec::new());
    for selected in selected(&host, &asked, report) {
        if let Err(error) = ask(&selected, &mut rows, &mut left_out, report) {
            report.problem(&selected.device.name, &error);
        }
    }
    if common.json {
        return json(&Document { vports: rows, left_out, problems: report.problems() });
    }
    let mut lines = Vec::new();
    for row in &rows {
        let mut line = serde_json::to_value(row)?;
        if let Some(fields) = line.as_object_mut() {
            fields.remove("not_asked");
        }
        // A person knows some by their names.
        if let (Some(vport), Some(field)) = (row.vport, line.get_mut("vport")) {
            *field = VportNumber(vport).to_string().into();
        }
        lines.push(line);
    }
    Ok(fields("PORT", &lines, &["device", "port"]).into())
}

/// Asks about the ports of one device, which is opened once.
fn ask<'d>(
    selected: &Selected<'d>,
    rows: &mut Vec<Row<'d>>,
    left_out: &mut Vec<LeftOut<'d>>,
    report: &mut Report,
) -> Result<()> {
    let device = selected.device;
    let context = devx::open(device)?;
    let own = devx::query_hca_cap(&context, CapabilityMode::Current, Vport::Own)?;
    let mut vacant = Vacant::default();
    for port in selected.ports() {
        match steering(&context, &own, port) {
            Ok(steering) => {
                let whom = whom(&steering, &own, port);
                if let Whom::Nobody(why) = &whom {
                    report.unasked(&device.name, &format!("port {port}: {why}"));
                }
                let asking = Asking { context: &context, own: &own, port, steering, whom };
                rows.push(asking.row(&device.name, report));
            }
            Err(error) => vacant.add(selected, port, &error, report),
        }
    }
    vacant.tell(&device.name, report, left_out);
    Ok(())
}

/// What the driver knows of a port.
fn steering(context: &Context, own: &Capabilities, port: u32) -> Result<SteeringPort> {
    query_port(context, port).or_else(|error| {
        // Linux before 5.13. In switchdev mode a device has more ports than its function.
        let is_own = *context.ports().end() <= u32::from(own.num_ports);
        match error.cause() {
            Cause::UnknownToKernel if is_own => Ok(SteeringPort::default()),
            _ => Err(error),
        }
    })
}

/// Whose answers are a port's. The firmware's commands go to one function, and name vports of its
/// own e-switch only.
#[derive(Debug, PartialEq, Eq)]
enum Whom {
    /// The function itself.
    Own,
    /// A vport of its e-switch.
    Vport(VportNumber),
    /// Nobody that can be asked; why.
    Nobody(String),
}

fn whom(steering: &SteeringPort, own: &Capabilities, port: u32) -> Whom {
    // In a link aggregation a device has ports of several e-switches.
    if let Some(owner) = steering.esw_owner_vhca_id().filter(|owner| *owner != own.vhca_id) {
        return Whom::Nobody(format!(
            "it is of the e-switch of vhca id {owner}, whose device can be asked"
        ));
    }
    match steering.vport() {
        Some(vport) => Whom::Vport(vport),
        // Ports of several functions that act as one.
        None if own.num_vhca_ports > 1 && port != u32::from(own.native_port_num) => Whom::Nobody(
            "it is another function's, of which only the RoCE addresses can be asked here".into(),
        ),
        None => Whom::Own,
    }
}

/// One port being asked about.
struct Asking<'a> {
    context: &'a DevxContext,
    own: &'a Capabilities,
    port: u32,
    steering: SteeringPort,
    whom: Whom,
}

impl Asking<'_> {
    /// Asks what its kind of port can be asked. What is not answered is a problem, and null.
    fn row<'d>(&self, device: &'d str, report: &mut Report) -> Row<'d> {
        let Self { context, own, port, steering, ref whom } = *self;
        let is_ib = own.port_type == PortType::IB;
        // The uplink is the wire: only its state is known. The function itself is another port.
        let (vport, side, is_wire) = match *whom {
            Whom::Vport(VportNumber::UPLINK) => (Some(Vport::Own), VportSide::Uplink, true),
            Whom::Vport(number) => (Some(Vport::Other(number)), VportSide::Eswitch, false),
            Whom::Own => (Some(Vport::Own), VportSide::Function, false),
            Whom::Nobody(_) => (None, VportSide::Function, false),
        };
        let beside_wire = vport.filter(|_| !is_wire);
        // Told only where there is another one.
        let number = if own.num_ports > 1 { u8::try_from(port).unwrap_or(u8::MAX) } else { 0 };

        let state =
            vport.filter(|_| !is_ib).map(|vport| devx::query_vport_state(context, side, vport));
        let infiniband = beside_wire
            .filter(|_| is_ib)
            .map(|vport| devx::query_hca_vport_context(context, number, vport));
        let ethernet = beside_wire
            .filter(|_| !is_ib)
            .map(|vport| devx::query_nic_vport_context(context, vport));
        let eswitch = beside_wire
            .filter(|vport| *vport != Vport::Own)
            .map(|vport| devx::query_esw_vport_context(context, vport));
        let is_roce = own.roce && steering.vport().is_none();
        let addresses = is_roce.then(|| self.roce_addresses());
        let counters = beside_wire
            .filter(|_| own.vport_counters)
            .map(|vport| devx::query_vport_counter(context, number, vport));
        let asked = [
            ("state", state.is_some()),
            ("infiniband", infiniband.is_some()),
            ("ethernet", ethernet.is_some()),
            ("eswitch", eswitch.is_some()),
            ("roce_addresses", addresses.is_some()),
            ("counters", counters.is_some()),
        ];
        let not_asked = asked.into_iter().filter(|(_, is_asked)| !is_asked);
        let not_asked =
            not_asked.map(|(field, _)| (field.to_owned(), self.why_not(field).into())).collect();
        Row {
            device,
            port,
            port_type: Text(own.port_type),
            vport: steering.vport().map(|vport| vport.0),
            vport_vhca_id: steering.vport_vhca_id(),
            esw_owner_vhca_id: steering.esw_owner_vhca_id(),
            state: told(state, device, report).map(StateRow::from),
            infiniband: told(infiniband, device, report).map(InfinibandRow::from),
            ethernet: told(ethernet, device, report).map(EthernetRow::from),
            eswitch: told(eswitch, device, report).map(EswitchRow::from),
            roce_addresses: told(addresses, device, report),
            counters: told(counters, device, report).map(|counters| counters_row(&counters)),
            not_asked,
        }
    }

    /// Why a field was not asked.
    fn why_not(&self, field: &str) -> String {
        let Self { own, steering, whom, .. } = self;
        let is_ib = own.port_type == PortType::IB;
        let why: &str = match (field, whom) {
            ("roce_addresses", _) if !own.roce => "the function has no RoCE",
            ("roce_addresses", _) => "a port that represents a vport has none",
            ("infiniband", _) if !is_ib => "the port is Ethernet",
            ("state" | "ethernet", _) if is_ib => "the port is InfiniBand",
            (_, Whom::Nobody(why)) => why,
            ("counters", _) if !own.vport_counters => "the function has no counters of vports",
            (_, Whom::Vport(VportNumber::UPLINK)) => {
                "it represents the wire, of which only the state can be asked"
            }
            _ if steering.vport().is_none() => {
                "the function's own vport, outside of switchdev mode"
            }
            _ => "the function's own vport",
        };
        why.to_owned()
    }

    /// The firmware's side of the GIDs that the kernel has in use.
    fn roce_addresses(&self) -> Result<Vec<AddressRow>> {
        let number = match self.own.num_vhca_ports {
            0 => 0,
            _ => u8::try_from(self.port).unwrap_or(u8::MAX),
        };
        let mut rows = Vec::new();
        for entry in self.context.query_gid_table()? {
            // The firmware's index has 16 bits; a table that is longer ends there.
            let Ok(index) = u16::try_from(entry.index()) else { continue };
            if entry.port() != self.port {
                continue;
            }
            if let Some(address) = devx::query_roce_address(self.context, index, number)? {
                rows.push(AddressRow::new(index, &address));
            }
        }
        Ok(rows)
    }
}

#[cfg(test)]
mod tests {
    use uverbs::uapi::mlx5::QueryPort;
    use uverbs::uapi::mlx5_firmware::GeneralCapabilities;
    use zerocopy::FromZeros;

    use super::*;

    fn steering(flags: u64, vport: u16, owner: u16) -> SteeringPort {
        QueryPort { flags, vport, esw_owner_vhca_id: owner, ..QueryPort::default() }.into()
    }

    fn function(num_vhca_ports: u8) -> Capabilities {
        let mut abi = GeneralCapabilities::new_zeroed();
        abi.vhca_id = 42.into();
        (abi.native_port_num, abi.num_vhca_ports) = (1, num_vhca_ports);
        (&abi).into()
    }

    #[test]
    fn a_port_is_never_asked_for_as_another_one() {
        let own = function(0);
        assert_eq!(whom(&steering(0, 0, 0), &own, 1), Whom::Own);
        assert_eq!(whom(&steering(0x21, 3, 42), &own, 4), Whom::Vport(VportNumber(3)));
        // The vport of that number is another e-switch's.
        for vport in [3, 0xffff] {
            let Whom::Nobody(why) = whom(&steering(0x21, vport, 43), &own, 9) else {
                unreachable!("vport {vport}")
            };
            assert!(why.contains("43"), "{why}");
        }
        // Multi-port RoCE: the commands go to the function of the first port.
        let own = function(2);
        assert_eq!(whom(&steering(0, 0, 0), &own, 1), Whom::Own);
        assert!(matches!(whom(&steering(0, 0, 0), &own, 2), Whom::Nobody(_)));
        assert!(matches!(whom(&steering(2, 0, 0), &own, 2), Whom::Nobody(_)));
    }
}
