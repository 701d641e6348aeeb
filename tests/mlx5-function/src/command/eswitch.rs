//! The e-switch and its vports, which only its manager may ask about.

use super::{Answer, Call, Refusal};
use crate::bits::{Field, at};
use crate::description::Mode;

/// The uplink's vport.
const UPLINK: u16 = 0xffff;
/// The embedded CPU's vport.
const EMBEDDED_CPU: u16 = 0xfffe;

/// Whether a command is about another vport, or another function, than the caller's own.
const OTHER: Field = at(8, 0, 1);
/// Which one.
const NUMBER: Field = at(10, 0, 16);

/// A vport that the caller may ask about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Vport {
    /// The caller's own.
    Own,
    /// The one of this number.
    Other(u16),
}

/// The vport that a command is about, or whose function it is about.
pub(super) fn vport(call: &Call<'_>) -> Result<Vport, Refusal> {
    if call.get(OTHER) == 0 {
        return Ok(Vport::Own);
    }
    let number = call.get_u16(NUMBER);
    let exists = match call.description.mode {
        Mode::InfiniBand | Mode::Roce => false,
        Mode::Switchdev => [0, UPLINK].contains(&number),
        Mode::EmbeddedCpu { host_vfs, own_vport } => match number {
            UPLINK => true,
            EMBEDDED_CPU => own_vport,
            // The host's PF is number 0.
            host => host <= host_vfs,
        },
    };
    if exists { Ok(Vport::Other(number)) } else { Err(Refusal::NO_VPORT) }
}

pub(super) fn query_vport_context(call: &Call<'_>) -> Result<Answer, Refusal> {
    let number = match (vport(call)?, call.description.mode) {
        (Vport::Other(number), _) => number,
        (Vport::Own, Mode::Switchdev) => 0,
        (Vport::Own, Mode::EmbeddedCpu { .. }) => EMBEDDED_CPU,
        (Vport::Own, Mode::InfiniBand | Mode::Roce) => return Err(Refusal::BAD_OPERATION),
    };
    let shifted = u64::from(number) << 16;
    let (receive, transmit) = call.description.eswitch.vport_icm;
    let mut answer = call.answer(272)?;
    answer.set_inside(at(240, 0, 64), receive.wrapping_add(shifted));
    answer.set_inside(at(248, 0, 64), transmit.wrapping_add(shifted));
    Ok(answer)
}

pub(super) fn query_functions(call: &Call<'_>) -> Result<Answer, Refusal> {
    let Mode::EmbeddedCpu { host_vfs, .. } = call.description.mode else {
        return Err(Refusal::BAD_OPERATION);
    };
    let mut answer = call.answer(128)?;
    answer.set_inside(at(2, 0, 16), host_vfs);
    answer.set_inside(at(4, 0, 16), host_vfs + call.description.eswitch.spare_vfs);
    Ok(answer)
}
