//! The firmware: its state, and its answers to commands, grouped by subject.

mod capabilities;
mod eswitch;
mod function;
mod objects;
mod pages;
pub(crate) mod queue;
mod registers;
mod statistics;
#[cfg(test)]
mod tests;
mod vport;

use crate::bits::{Field, at};
use crate::description::{Description, Mode};
use crate::event_queue::EventQueues;
use crate::log::Remarks;
use crate::opcode;
use crate::send_queue::SendQueues;
use std::collections::BTreeMap;

/// Bytes of the input's and the output's header; most structures begin after it.
const HEADER: usize = 16;
/// Bytes that every input and every output has: opcode and `op_mod`, status and syndrome. Some
/// have no whole header.
const LEAST: usize = 8;
/// Bytes of an output that contains a number.
const NUMBER: usize = 12;

/// What the firmware remembers of earlier commands. None of it outlives a reset.
#[derive(Debug, Default)]
pub(crate) struct Firmware {
    pub(crate) queues: EventQueues,
    pub(crate) send_queues: SendQueues,
    ids: objects::Ids,
    /// The pages of the guest's memory that it was given.
    pages: Vec<u64>,
    issi: u16,
    /// The general capabilities as the driver set them.
    capabilities: Option<Vec<u8>>,
    /// RoCE addresses by their indexes.
    roce_addresses: BTreeMap<usize, [u8; vport::ROCE_ADDRESS]>,
}

impl Firmware {
    /// Carries a command out. Returns what is to be written where its output goes.
    pub(crate) fn execute(&mut self, call: &Call<'_>, remarks: &mut Remarks) -> Vec<u8> {
        match self.answer(call, remarks) {
            Ok(answer) => answer.0,
            Err(refusal) => {
                // A user context may try anything. The driver must not be refused.
                if call.uid() == 0 {
                    remarks.add(format!("refused, {refusal}: {call}"));
                }
                refusal.output(call.output_len)
            }
        }
    }

    fn answer(&mut self, call: &Call<'_>, remarks: &mut Remarks) -> Result<Answer, Refusal> {
        if call.input.len() < LEAST {
            return Err(Refusal::BAD_INPUT_LENGTH);
        }
        match call.opcode() {
            opcode::ENABLE_HCA => {
                if call.is_about_itself() {
                    *self = Self::default();
                }
                call.answer(LEAST)
            }
            opcode::QUERY_ISSI => function::query_issi(call, self.issi),
            opcode::SET_ISSI => function::set_issi(call, &mut self.issi),
            opcode::QUERY_ADAPTER => function::query_adapter(call),
            opcode::QUERY_LAG => function::query_lag(call),
            opcode::QUERY_HCA_CAP => capabilities::query(call, self.capabilities.as_deref()),
            opcode::SET_HCA_CAP => capabilities::set(call, &mut self.capabilities),
            opcode::QUERY_PAGES => pages::query(call),
            opcode::MANAGE_PAGES => pages::manage(call, &mut self.pages),
            opcode::CREATE_EQ => objects::create_eq(call, &mut self.queues),
            opcode::DESTROY_EQ => objects::destroy_eq(call, &mut self.queues),
            opcode::QUERY_VPORT_STATE => vport::query_state(call),
            opcode::QUERY_NIC_VPORT_CONTEXT => vport::query_nic_context(call),
            opcode::QUERY_HCA_VPORT_CONTEXT => vport::query_hca_context(call),
            opcode::QUERY_HCA_VPORT_GID => vport::query_gids(call),
            opcode::QUERY_HCA_VPORT_PKEY => vport::query_pkeys(call),
            opcode::QUERY_VPORT_COUNTER => vport::query_counters(call),
            opcode::QUERY_Q_COUNTER => statistics::query_q_counter(call),
            opcode::QUERY_CONG_STATISTICS => statistics::query_congestion(call),
            opcode::SET_ROCE_ADDRESS => vport::set_roce_address(call, &mut self.roce_addresses),
            opcode::QUERY_ROCE_ADDRESS => vport::query_roce_address(call, &self.roce_addresses),
            opcode::QUERY_ESW_FUNCTIONS => eswitch::query_functions(call),
            opcode::QUERY_ESW_VPORT_CONTEXT => eswitch::query_vport_context(call),
            opcode::ACCESS_REG => registers::access(call, remarks),
            other => match self.ids.answer(call) {
                Some(answer) => {
                    let answer = answer?;
                    let number = objects::NUMBER_GIVEN.get(&answer.0);
                    self.send_queues.follow(other, number, call.input);
                    Ok(answer)
                }
                None if opcode::name(other).is_some() => call.answer(LEAST),
                // A user may try anything, and learns most from a refusal.
                None if call.uid() != 0 => Err(Refusal::BAD_OPERATION),
                None => {
                    // The driver is lost without an answer that it can use.
                    remarks.add(format!("unknown opcode: {call}"));
                    call.answer(LEAST)
                }
            },
        }
    }
}

/// A command as it was sent.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub(crate) description: &'a Description,
    pub(crate) input: &'a [u8],
    /// How many bytes the output may have.
    pub(crate) output_len: usize,
}

impl Call<'_> {
    fn get(&self, field: Field) -> u64 {
        field.get(self.input)
    }

    /// A field of up to 16 bits.
    fn get_u16(&self, field: Field) -> u16 {
        u16::try_from(self.get(field)).unwrap_or(u16::MAX)
    }

    /// A field of up to 32 bits.
    fn get_usize(&self, field: Field) -> usize {
        usize::try_from(self.get(field)).unwrap_or(usize::MAX)
    }

    pub(crate) fn opcode(&self) -> u16 {
        self.get_u16(at(0, 0, 16))
    }

    pub(crate) fn uid(&self) -> u16 {
        self.get_u16(at(2, 0, 16))
    }

    pub(crate) fn op_mod(&self) -> u16 {
        self.get_u16(at(6, 0, 16))
    }

    /// The bytes after the header.
    pub(crate) fn arguments(&self) -> [u8; 8] {
        self.get(at(8, 0, 64)).to_be_bytes()
    }

    /// Whether a command that names a function names this one, and not the host's.
    fn is_about_itself(&self) -> bool {
        let embedded = self.get(at(8, 0, 1)) == 1;
        let function = self.get(at(10, 0, 16));
        function == 0 && embedded == matches!(self.description.mode, Mode::EmbeddedCpu { .. })
    }

    /// Success, and zeros to be filled; at least as many as the answer needs.
    fn answer(&self, needed: usize) -> Result<Answer, Refusal> {
        if self.output_len < needed {
            return Err(Refusal::BAD_OUTPUT_LENGTH);
        }
        Ok(Answer(vec![0; self.output_len]))
    }
}

impl std::fmt::Display for Call<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = opcode::name(self.opcode()).unwrap_or("?");
        write!(f, "{:#05x} {name}, op_mod {:#x}, ", self.opcode(), self.op_mod())?;
        let arguments = self.get(at(8, 0, 64));
        write!(f, "arguments {arguments:016x}, {}/{} bytes", self.input.len(), self.output_len)
    }
}

/// The output of a command that succeeds.
#[derive(Debug)]
struct Answer(Vec<u8>);

impl Answer {
    fn set(&mut self, field: Field, value: impl Into<u64>) {
        field.set(&mut self.0, value.into());
    }

    /// Sets a field of the structure that follows the header, as most structures do.
    fn set_inside(&mut self, field: Field, value: impl Into<u64>) {
        self.set(field.within(HEADER), value);
    }

    /// Puts bytes from an offset on, as many as there is room for.
    fn put(&mut self, offset: usize, bytes: &[u8]) {
        for (to, from) in self.0.iter_mut().skip(offset).zip(bytes) {
            *to = *from;
        }
    }

    /// How many items of this size fit after the header.
    fn room(&self, item: usize) -> usize {
        self.0.len().saturating_sub(HEADER) / item
    }
}

/// Why a command was not carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Refusal {
    status: u8,
    syndrome: u32,
}

impl Refusal {
    /// The function has no such command.
    const BAD_OPERATION: Self = Self { status: 0x02, syndrome: 0x0005_d001 };
    /// There is no such port.
    const NO_PORT: Self = Self { status: 0x03, syndrome: 0x0005_d002 };
    /// There is no such vport or function, or the caller may not name it.
    const NO_VPORT: Self = Self { status: 0x03, syndrome: 0x0005_d003 };
    /// There is no such group of capabilities.
    const NO_CAPABILITIES: Self = Self { status: 0x03, syndrome: 0x005d_1234 };
    /// A value that means nothing.
    const BAD_PARAMETER: Self = Self { status: 0x03, syndrome: 0x0005_d004 };
    /// There is no such object.
    const NO_OBJECT: Self = Self { status: 0x05, syndrome: 0x0005_d005 };
    /// The index is beyond the table.
    const BAD_INDEX: Self = Self { status: 0x0a, syndrome: 0x0005_d006 };
    /// All are in use.
    const NO_RESOURCES: Self = Self { status: 0x0f, syndrome: 0x0005_d007 };
    const BAD_INPUT_LENGTH: Self = Self { status: 0x50, syndrome: 0x0005_d008 };
    const BAD_OUTPUT_LENGTH: Self = Self { status: 0x51, syndrome: 0x0005_d009 };

    fn output(self, length: usize) -> Vec<u8> {
        refused(self.status, self.syndrome, length)
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "status {:#04x} syndrome {:#08x}", self.status, self.syndrome)
    }
}

/// The output of a command that fails.
pub(crate) fn refused(status: u8, syndrome: u32, length: usize) -> Vec<u8> {
    let mut output = vec![0; length];
    at(0, 0, 8).set(&mut output, u64::from(status));
    at(4, 0, 32).set(&mut output, u64::from(syndrome));
    output
}
