//! Pages of the guest's memory that the firmware asks for and gives back. It does not use them.

use super::{Answer, Call, HEADER, Refusal};
use crate::bits::at;

/// How many are asked for at boot and at initialisation.
const BOOT: u8 = 8;
const INIT: u8 = 32;
/// How many it has at most: what it asked for.
const MOST: usize = BOOT as usize + INIT as usize;

// `op_mod` of MANAGE_PAGES.
const GIVE: u16 = 1;
const TAKE: u16 = 2;

pub(super) fn query(call: &Call<'_>) -> Result<Answer, Refusal> {
    let mut answer = call.answer(HEADER)?;
    let wanted = match call.op_mod() {
        1 => BOOT,
        2 => INIT,
        _ => 0,
    };
    answer.set(at(12, 0, 32), wanted);
    Ok(answer)
}

pub(super) fn manage(call: &Call<'_>, held: &mut Vec<u64>) -> Result<Answer, Refusal> {
    let mut answer = call.answer(HEADER)?;
    let count = call.get_usize(at(12, 0, 32));
    match call.op_mod() {
        GIVE => {
            let given = call.input.get(HEADER..).unwrap_or_default().as_chunks::<8>().0;
            let given = given.get(..count).ok_or(Refusal::BAD_INPUT_LENGTH)?;
            if held.len() + given.len() > MOST {
                return Err(Refusal::BAD_PARAMETER);
            }
            held.extend(given.iter().map(|address| u64::from_be_bytes(*address)));
        }
        TAKE => {
            let count = count.min(held.len()).min(answer.room(8));
            let returned = held.drain(..count);
            for (address, offset) in returned.zip((HEADER..).step_by(8)) {
                answer.put(offset, &address.to_be_bytes());
            }
            answer.set(at(8, 0, 32), count as u64);
        }
        // The driver could not give.
        _ => {}
    }
    Ok(answer)
}
