//! What the firmware counts for the RDMA driver. Each number is the place of its field, so that they differ.

use super::{Answer, Call, HEADER, Refusal};
use crate::bits::at;

/// Bytes of the answers.
const Q_COUNTER: usize = 256;
const CONGESTION: usize = 272;

/// The counters of queue pairs, words of 32 bits.
pub(super) fn query_q_counter(call: &Call<'_>) -> Result<Answer, Refusal> {
    numbered(call, Q_COUNTER)
}

/// Congestion control: counters of two words, of which the upper ones stay 0.
pub(super) fn query_congestion(call: &Call<'_>) -> Result<Answer, Refusal> {
    let mut answer = numbered(call, CONGESTION)?;
    // rp_cnp_ignored, rp_cnp_handled; np_ecn_marked_roce_packets, np_cnp_sent.
    for byte in [24, 32, 84, 92] {
        answer.set(at(byte, 0, 32), 0_u8);
    }
    Ok(answer)
}

fn numbered(call: &Call<'_>, length: usize) -> Result<Answer, Refusal> {
    let mut answer = call.answer(length)?;
    for byte in (HEADER..length).step_by(4) {
        answer.set(at(byte, 0, 32), byte as u64);
    }
    Ok(answer)
}
