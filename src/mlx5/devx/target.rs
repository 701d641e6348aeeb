//! What a firmware command is about, for its errors.

use core::fmt;

use uverbs_uapi::mlx5_firmware::{OTHER, QueryRoceAddressInput, QueryVportInput, opcode};
use zerocopy::FromBytes;
use zerocopy::big_endian::U16;

use crate::mlx5::port::VportNumber;

/// What a command is about, where that is not the function as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Target {
    /// One of the function's ports.
    pub port: Option<u8>,
    /// Another vport than the function's own.
    pub vport: Option<VportNumber>,
    /// An entry of a table.
    pub index: Option<u16>,
}

impl Target {
    /// A port.
    pub(super) fn port(port: u8) -> Self {
        Self { port: Some(port), ..Self::default() }
    }

    /// Reads it from an input.
    pub(super) fn of(opcode: u16, input: &[u8]) -> Self {
        let read = || Some(QueryVportInput::read_from_prefix(input).ok()?.0);
        let other = |flag: u8, number: U16| (flag & OTHER != 0).then(|| VportNumber(number.get()));
        let given = |port: u8| (port & 0b1111 != 0).then_some(port & 0b1111);
        match (opcode, read()) {
            (
                opcode::QUERY_HCA_CAP
                | opcode::QUERY_VPORT_STATE
                | opcode::QUERY_ESW_VPORT_CONTEXT
                | opcode::QUERY_NIC_VPORT_CONTEXT,
                Some(input),
            ) => Self { vport: other(input.other_vport, input.vport_number), ..Self::default() },
            (opcode::QUERY_HCA_VPORT_CONTEXT | opcode::QUERY_VPORT_COUNTER, Some(input)) => Self {
                vport: other(input.other_vport, input.vport_number),
                port: given(input.port_num),
                index: None,
            },
            (opcode::QUERY_ROCE_ADDRESS, _) => {
                let input = QueryRoceAddressInput::read_from_prefix(input).ok();
                Self {
                    port: input.and_then(|(input, _)| given(input.vhca_port_num)),
                    index: input.map(|(input, _)| input.roce_address_index.get()),
                    vport: None,
                }
            }
            _ => Self::default(),
        }
    }
}

impl fmt::Display for Target {
    /// Nothing, or ` of vport 1, port 2, index 3`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let vport = self.vport.map(|vport| format!("vport {vport}"));
        let port = self.port.map(|port| format!("port {port}"));
        let index = self.index.map(|index| format!("index {index}"));
        let parts: Vec<String> = [vport, port, index].into_iter().flatten().collect();
        if parts.is_empty() { Ok(()) } else { write!(f, " of {}", parts.join(", ")) }
    }
}
