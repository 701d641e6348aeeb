//! The function as a whole: interface revision, adapter, link aggregation.

use super::{Answer, Call, HEADER, LEAST, Refusal};
use crate::bits::at;

pub(super) fn query_issi(call: &Call<'_>, current: u16) -> Result<Answer, Refusal> {
    let mut answer = call.answer(112)?;
    answer.set(at(10, 0, 16), current);
    answer.set(at(108, 0, 32), 0b11_u8); // revisions 0 and 1
    Ok(answer)
}

pub(super) fn set_issi(call: &Call<'_>, current: &mut u16) -> Result<Answer, Refusal> {
    let wanted = call.get_u16(at(10, 0, 16));
    if wanted > 1 {
        return Err(Refusal::BAD_PARAMETER);
    }
    *current = wanted;
    call.answer(LEAST)
}

pub(super) fn query_adapter(call: &Call<'_>) -> Result<Answer, Refusal> {
    let mut answer = call.answer(272)?;
    answer.set_inside(at(25, 0, 24), 0x02c9_u16); // Mellanox, by IEEE
    answer.put(HEADER + 240, call.description.psid.as_bytes());
    Ok(answer)
}

pub(super) fn query_lag(call: &Call<'_>) -> Result<Answer, Refusal> {
    let lag = call.description.lag;
    let mut answer = call.answer(HEADER)?;
    answer.set(at(11, 5, 3), lag.state);
    answer.set(at(14, 4, 4), lag.tx_remap_affinity.1);
    answer.set(at(15, 4, 4), lag.tx_remap_affinity.0);
    Ok(answer)
}
