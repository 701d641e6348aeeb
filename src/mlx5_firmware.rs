//! Values of mlx5's firmware that errors need too: vports, statuses, and the subject of a command.
//!
//! The commands themselves are in [`crate::mlx5::devx`].

use core::fmt;

use uverbs_uapi::mlx5_firmware::{
    self as abi, OTHER, QueryRoceAddressInput, QueryVportInput, opcode, status,
};
use zerocopy::FromBytes;
use zerocopy::big_endian::U16;

use crate::named::named;

/// Number of a vport of an e-switch.
///
/// Prints as a decimal number, `uplink` or `ecpf`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VportNumber(pub u16);

impl VportNumber {
    /// The physical function. On a smart NIC's embedded CPU: the host's.
    pub const PF: Self = Self(abi::vport::PF);
    /// The embedded CPU's own physical function.
    pub const ECPF: Self = Self(abi::vport::ECPF);
    /// The wire.
    pub const UPLINK: Self = Self(abi::vport::UPLINK);
}

impl fmt::Display for VportNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::UPLINK => f.pad("uplink"),
            Self::ECPF => f.pad("ecpf"),
            Self(number) => f.pad(&number.to_string()),
        }
    }
}

named! {
    /// Why the firmware refused a command.
    Status(u8) {
        /// Internal error.
        INTERNAL_ERR = status::INTERNAL_ERR, "internal error";
        /// The operation is not known or not supported.
        BAD_OP = status::BAD_OP, "bad operation";
        /// A parameter is wrong or not supported.
        BAD_PARAM = status::BAD_PARAM, "bad parameter";
        /// The system is not in the right state.
        BAD_SYS_STATE = status::BAD_SYS_STATE, "bad system state";
        /// No such resource.
        BAD_RES = status::BAD_RES, "bad resource";
        /// The resource is in use.
        RES_BUSY = status::RES_BUSY, "resource busy";
        /// Not ready.
        NOT_READY = status::NOT_READY, "not ready";
        /// A limit is exceeded.
        LIM_ERR = status::LIM_ERR, "limits exceeded";
        /// The resource is not in the right state.
        BAD_RES_STATE = status::BAD_RES_STATE, "bad resource state";
        /// An index is outside its table.
        IX_ERR = status::IX_ERR, "bad index";
        /// No resources are left.
        NO_RES = status::NO_RES, "no resources";
        /// The queue pair is not in the right state.
        BAD_QP_STATE = status::BAD_QP_STATE, "bad QP state";
        /// A management packet is malformed.
        BAD_PKT = status::BAD_PKT, "bad packet";
        /// Too many completions are outstanding.
        BAD_SIZE_OUTS_CQES = status::BAD_SIZE_OUTS_CQES, "too many outstanding completions";
        /// The input's length is wrong.
        BAD_INP_LEN = status::BAD_INP_LEN, "bad input length";
        /// The output's length is wrong.
        BAD_OUTP_LEN = status::BAD_OUTP_LEN, "bad output length";
    }
}

/// The firmware's answer to a command that it refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[error("the firmware refused it: {status} (status {:#x}, syndrome {syndrome:#x})", .status.0)]
pub struct FirmwareRefusal {
    /// The kind of refusal.
    pub status: Status,
    /// A number with more detail. Only the firmware's vendor knows its meaning.
    pub syndrome: u32,
}

impl FirmwareRefusal {
    /// A refusal with this status and syndrome, to compare with.
    #[must_use]
    pub const fn new(status: Status, syndrome: u32) -> Self {
        Self { status, syndrome }
    }
}

/// The subject of a command, if it is not the whole function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FirmwareTarget {
    /// One of the function's ports.
    pub port: Option<u8>,
    /// A vport other than the function's own.
    pub vport: Option<VportNumber>,
    /// An entry of a table.
    pub index: Option<u16>,
}

impl FirmwareTarget {
    /// A port.
    pub(crate) fn port(port: u8) -> Self {
        Self { port: Some(port), ..Self::default() }
    }

    /// Reads it from an input.
    pub(crate) fn of(opcode: u16, input: &[u8]) -> Self {
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

impl fmt::Display for FirmwareTarget {
    /// Nothing, or ` of vport 1, port 2, index 3`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let vport = self.vport.map(|vport| format!("vport {vport}"));
        let port = self.port.map(|port| format!("port {port}"));
        let index = self.index.map(|index| format!("index {index}"));
        let parts: Vec<String> = [vport, port, index].into_iter().flatten().collect();
        if parts.is_empty() { Ok(()) } else { write!(f, " of {}", parts.join(", ")) }
    }
}

/// The name of an operation, if this library sends it.
pub(crate) fn operation_name(opcode: u16) -> Option<&'static str> {
    Some(match opcode {
        opcode::QUERY_HCA_CAP => "QUERY_HCA_CAP",
        opcode::QUERY_ADAPTER => "QUERY_ADAPTER",
        opcode::QUERY_ESW_FUNCTIONS => "QUERY_ESW_FUNCTIONS",
        opcode::QUERY_VPORT_STATE => "QUERY_VPORT_STATE",
        opcode::QUERY_ESW_VPORT_CONTEXT => "QUERY_ESW_VPORT_CONTEXT",
        opcode::QUERY_NIC_VPORT_CONTEXT => "QUERY_NIC_VPORT_CONTEXT",
        opcode::QUERY_ROCE_ADDRESS => "QUERY_ROCE_ADDRESS",
        opcode::QUERY_HCA_VPORT_CONTEXT => "QUERY_HCA_VPORT_CONTEXT",
        opcode::QUERY_VPORT_COUNTER => "QUERY_VPORT_COUNTER",
        opcode::NOP => "NOP",
        opcode::QUERY_LAG => "QUERY_LAG",
        _ => return None,
    })
}
