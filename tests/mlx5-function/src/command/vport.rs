//! Ports and vports: states, contexts, the tables of GIDs, P_Keys and RoCE addresses, counters.

use super::eswitch::{self, Vport};
use super::{Answer, Call, HEADER, LEAST, Refusal};
use crate::bits::{Field, at};
use crate::description::{Counters, Mode, PKEYS, Port};
use std::collections::BTreeMap;

/// Bytes of a RoCE address.
pub(super) const ROCE_ADDRESS: usize = 32;
/// Bytes of a frame that are not payload.
const FRAME_OVERHEAD: u16 = 22;
/// The index that means a whole table.
const ALL: usize = 0xffff;

/// The port number of the commands that have one.
const PORT: Field = at(9, 4, 4);
/// The index of those that ask a table.
const INDEX: Field = at(14, 0, 16);

/// The port that a command names. It is optional for a function with one port.
fn port<'a>(call: &Call<'a>) -> Result<&'a Port, Refusal> {
    let number = match (call.get_usize(PORT), call.description.ports.len()) {
        (0, 1) => 1,
        (number, _) => number,
    };
    let index = number.checked_sub(1).ok_or(Refusal::NO_PORT)?;
    call.description.ports.get(index).ok_or(Refusal::NO_PORT)
}

/// The port whose own vport the function is.
fn first_port<'a>(call: &Call<'a>) -> Result<&'a Port, Refusal> {
    call.description.ports.first().ok_or(Refusal::NO_PORT)
}

/// Whether an Ethernet port's link is up.
pub(super) fn is_up(port: &Port) -> bool {
    port.state == 4
}

/// The MTU as the interface counts it on Ethernet.
pub(super) fn frame_bytes(port: &Port) -> u16 {
    port.mtu.saturating_add(FRAME_OVERHEAD)
}

pub(super) fn query_state(call: &Call<'_>) -> Result<Answer, Refusal> {
    // The caller's vport, one of the e-switch, the uplink.
    if call.op_mod() > 2 {
        return Err(Refusal::BAD_PARAMETER);
    }
    eswitch::vport(call)?;
    let up = is_up(first_port(call)?);
    let mut answer = call.answer(HEADER)?;
    answer.set(at(15, 0, 4), 1_u8); // as it should be
    answer.set(at(15, 4, 4), up); // as it is
    Ok(answer)
}

pub(super) fn query_nic_context(call: &Call<'_>) -> Result<Answer, Refusal> {
    let vport = eswitch::vport(call)?;
    let port = first_port(call)?;
    let description = call.description;
    let mut answer = call.answer(272)?;
    // A list of addresses, empty, is of the kind that was asked for.
    answer.set_inside(at(240, 5, 3), call.get(at(12, 5, 3)));
    answer.set_inside(at(40, 0, 64), description.system_image_guid);
    if description.mode != Mode::InfiniBand {
        answer.set_inside(at(38, 0, 16), frame_bytes(port));
    }
    // Nobody has given addresses to the others.
    if vport == Vport::Own {
        answer.set_inside(at(3, 7, 1), description.mode == Mode::Roce);
        answer.set_inside(at(48, 0, 64), port.guid);
        answer.set_inside(at(56, 0, 64), description.node_guid);
        if description.mode != Mode::InfiniBand {
            answer.put(HEADER + 246, &port.mac);
        }
    }
    Ok(answer)
}

pub(super) fn query_hca_context(call: &Call<'_>) -> Result<Answer, Refusal> {
    eswitch::vport(call)?;
    let port = port(call)?;
    let mut answer = call.answer(528)?;
    answer.set_inside(at(32, 1, 1), 1_u8); // there is a subnet management interface
    answer.set_inside(at(34, 0, 4), port.phys_state);
    answer.set_inside(at(35, 0, 4), port.state);
    answer.set_inside(at(35, 4, 4), port.state);
    answer.set_inside(at(40, 0, 64), call.description.system_image_guid);
    answer.set_inside(at(48, 0, 64), port.guid);
    answer.set_inside(at(56, 0, 64), call.description.node_guid);
    answer.set_inside(at(64, 0, 32), port.cap_mask);
    answer.set_inside(at(96, 0, 16), port.lid);
    answer.set_inside(at(99, 0, 3), port.lmc);
    answer.set_inside(at(100, 0, 16), port.sm_lid);
    answer.set_inside(at(102, 0, 4), port.sm_sl);
    Ok(answer)
}

pub(super) fn query_gids(call: &Call<'_>) -> Result<Answer, Refusal> {
    eswitch::vport(call)?;
    let port = port(call)?;
    let mut answer = call.answer(HEADER + 16)?;
    let indexes = indexes(call, usize::from(port.gid_table_len), answer.room(16))?;
    answer.set(at(12, 0, 16), indexes.len() as u64);
    for (position, index) in indexes.enumerate() {
        let entry = port.gids.iter().find(|(at, _)| usize::from(*at) == index);
        if let Some((_, gid)) = entry {
            answer.put(HEADER + 16 * position, gid);
        }
    }
    Ok(answer)
}

pub(super) fn query_pkeys(call: &Call<'_>) -> Result<Answer, Refusal> {
    eswitch::vport(call)?;
    let port = port(call)?;
    let mut answer = call.answer(HEADER + 4)?;
    let indexes = indexes(call, PKEYS, answer.room(4))?;
    for (position, index) in indexes.enumerate() {
        let pkey = port.pkeys.get(index).copied().unwrap_or(0);
        answer.set_inside(at(4 * position + 2, 0, 16), pkey);
    }
    Ok(answer)
}

/// The entries of a table that a command asks for: one, or all that there is room for.
fn indexes(call: &Call<'_>, len: usize, room: usize) -> Result<std::ops::Range<usize>, Refusal> {
    match call.get_usize(INDEX) {
        ALL => Ok(0..len.min(room)),
        index if index < len => Ok(index..index + 1),
        _ => Err(Refusal::BAD_INDEX),
    }
}

pub(super) fn query_counters(call: &Call<'_>) -> Result<Answer, Refusal> {
    if call.input.len() < 32 {
        return Err(Refusal::BAD_INPUT_LENGTH);
    }
    let vport = eswitch::vport(call)?;
    let port = port(call)?;
    let mut answer = call.answer(528)?;
    if vport == Vport::Own {
        for (byte, (packets, octets)) in (0..).step_by(16).zip(in_order(&port.counters)) {
            answer.set_inside(at(byte, 0, 64), packets);
            answer.set_inside(at(byte + 8, 0, 64), octets);
        }
    }
    Ok(answer)
}

/// The counters in the order of the answer.
fn in_order(counters: &Counters) -> [(u64, u64); 12] {
    let Counters {
        received_errors,
        transmit_errors,
        received_ib_unicast,
        transmitted_ib_unicast,
        received_ib_multicast,
        transmitted_ib_multicast,
        received_eth_broadcast,
        transmitted_eth_broadcast,
        received_eth_unicast,
        transmitted_eth_unicast,
        received_eth_multicast,
        transmitted_eth_multicast,
    } = *counters;
    [
        received_errors,
        transmit_errors,
        received_ib_unicast,
        transmitted_ib_unicast,
        received_ib_multicast,
        transmitted_ib_multicast,
        received_eth_broadcast,
        transmitted_eth_broadcast,
        received_eth_unicast,
        transmitted_eth_unicast,
        received_eth_multicast,
        transmitted_eth_multicast,
    ]
}

/// The index that a RoCE address command names.
fn roce_index(call: &Call<'_>) -> Result<usize, Refusal> {
    if call.description.mode != Mode::Roce {
        return Err(Refusal::BAD_OPERATION);
    }
    let index = call.get_usize(at(8, 0, 16));
    let len = usize::from(first_port(call)?.gid_table_len);
    if index < len { Ok(index) } else { Err(Refusal::BAD_INDEX) }
}

pub(super) fn set_roce_address(
    call: &Call<'_>,
    addresses: &mut BTreeMap<usize, [u8; ROCE_ADDRESS]>,
) -> Result<Answer, Refusal> {
    let index = roce_index(call)?;
    let address = call.input.get(HEADER..).and_then(|address| address.first_chunk());
    addresses.insert(index, *address.ok_or(Refusal::BAD_INPUT_LENGTH)?);
    call.answer(LEAST)
}

pub(super) fn query_roce_address(
    call: &Call<'_>,
    addresses: &BTreeMap<usize, [u8; ROCE_ADDRESS]>,
) -> Result<Answer, Refusal> {
    let index = roce_index(call)?;
    let mut answer = call.answer(HEADER + ROCE_ADDRESS)?;
    if let Some(address) = addresses.get(&index) {
        answer.put(HEADER, address);
    }
    Ok(answer)
}
