//! Port registers: `ACCESS_REG`.

use super::{Answer, Call, HEADER, Refusal, vport};
use crate::bits::at;
use crate::description::{Mode, Port};
use crate::log::Remarks;

/// Maximum transfer unit.
const PMTU: u16 = 0x5003;
/// Type and speed.
const PTYS: u16 = 0x5004;
/// Administrative and operational status.
const PAOS: u16 = 0x5006;
/// Virtual lanes.
const PVLC: u16 = 0x500f;
/// Counters of ports.
const PPCNT: u16 = 0x5008;
/// What the driver reads or writes without minding the answer: node description, host endianness, timeouts
/// (where 0 leaves it its own).
const ECHOED: [u16; 3] = [0x6001, 0x7004, 0xc00e];

/// The answer is what was sent, with what the register holds in its place.
pub(super) fn access(call: &Call<'_>, remarks: &mut Remarks) -> Result<Answer, Refusal> {
    let mut answer = call.answer(HEADER)?;
    answer.put(HEADER, call.input.get(HEADER..).unwrap_or_default());
    let register = call.get_u16(at(10, 0, 16));
    match register {
        PMTU => pmtu(&mut answer, call.description.mode, port(call)?),
        PTYS => ptys(&mut answer, call.description.mode, port(call)?),
        PAOS => {
            let status: u8 = if vport::is_up(port(call)?) { 1 } else { 2 };
            answer.set_inside(at(2, 4, 4), 1_u8);
            answer.set_inside(at(3, 4, 4), status);
        }
        PVLC => {
            port(call)?;
            answer.set_inside(at(7, 4, 4), 4_u8); // lanes 0 to 7
        }
        PPCNT => ppcnt(&mut answer, call),
        other if ECHOED.contains(&other) => {}
        other => remarks.add(format!("unknown register {other:#06x}: {call}")),
    }
    Ok(answer)
}

/// The port that these registers name in their second byte.
fn port<'a>(call: &Call<'a>) -> Result<&'a Port, Refusal> {
    let number = call.get_usize(at(1, 0, 8).within(HEADER));
    let index = number.checked_sub(1).ok_or(Refusal::NO_PORT)?;
    call.description.ports.get(index).ok_or(Refusal::NO_PORT)
}

/// The group of InfiniBand's error counters. Other groups are zeros.
fn ppcnt(answer: &mut Answer, call: &Call<'_>) {
    const INFINIBAND: u64 = 0x20;
    if call.get(at(3, 2, 6).within(HEADER)) == INFINIBAND {
        answer.set_inside(at(8, 0, 16), 7_u8); // symbol_error_counter
        answer.set_inside(at(11, 0, 8), 255_u8); // link_downed_counter: its last number
        answer.set_inside(at(12, 0, 16), 3_u8); // port_rcv_errors
        answer.set_inside(at(44, 0, 32), 9_u8); // port_xmit_wait
    }
}

fn pmtu(answer: &mut Answer, mode: Mode, port: &Port) {
    let mtu = match mode {
        Mode::InfiniBand => port.mtu,
        Mode::Roce | Mode::Switchdev | Mode::EmbeddedCpu { .. } => vport::frame_bytes(port),
    };
    for byte in [4, 8, 12] {
        answer.set_inside(at(byte, 0, 16), mtu);
    }
}

fn ptys(answer: &mut Answer, mode: Mode, port: &Port) {
    match mode {
        Mode::InfiniBand => {
            answer.set_inside(at(40, 0, 16), port.width);
            answer.set_inside(at(42, 0, 16), port.speed);
        }
        Mode::Roce | Mode::Switchdev | Mode::EmbeddedCpu { .. } => {
            for byte in [8, 20, 32] {
                answer.set_inside(at(byte, 0, 32), 0_u8);
            }
            for byte in [12, 24, 36] {
                answer.set_inside(at(byte, 0, 32), port.speed);
            }
        }
    }
}
