//! The vport that a query is about.
//!
//! A vport is a function's port on the device's e-switch. A function asks about its own vport. The manager
//! of the e-switch may ask about others.

use uverbs_uapi::mlx5_firmware::{OTHER, QueryVportInput};
use zerocopy::FromZeros;

use super::{FirmwareTarget, header};
use crate::context::Context;
use crate::error::{Cause, Request, Result};
use crate::mlx5::port::VportNumber;

/// The vport that a query is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Vport {
    /// The asking function's own vport.
    #[default]
    Own,
    /// Another vport of the e-switch that it manages.
    Other(VportNumber),
}

impl Vport {
    /// The fields `other_vport` and `vport_number` of an input.
    pub(super) fn fields(self) -> (u8, u16) {
        match self {
            Self::Own => (0, 0),
            Self::Other(VportNumber(number)) => (OTHER, number),
        }
    }
}

pub(super) fn vport_input(opcode: u16, op_mod: u16, port: u8, vport: Vport) -> QueryVportInput {
    let (other_vport, vport_number) = vport.fields();
    QueryVportInput {
        header: header(opcode, op_mod),
        other_vport,
        port_num: port,
        vport_number: vport_number.into(),
        ..QueryVportInput::new_zeroed()
    }
}

/// A port's number in the firmware's commands. It has four bits, so a greater number cannot be asked about.
pub(super) fn four_bits(context: &Context, opcode: u16, port: u8) -> Result<u8> {
    if port < 16 {
        return Ok(port);
    }
    let request = Request::Firmware { opcode, target: FirmwareTarget::port(port) };
    Err(context.error(request, Cause::NoSuchPort))
}
