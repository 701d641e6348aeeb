//! The counters of a vport.

use uverbs_uapi::mlx5_firmware::{
    QueryVportCounterInput, QueryVportCounterOutput, TrafficCounter, opcode,
};
use zerocopy::FromZeros;

use super::vport::{Vport, four_bits};
use super::{DevxContext, header, query};
use crate::error::Result;

/// Packets and bytes of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub octets: u64,
}

impl From<TrafficCounter> for Traffic {
    fn from(abi: TrafficCounter) -> Self {
        Self { packets: abi.packets.get(), octets: abi.octets.get() }
    }
}

/// Counters of a vport, since the device was reset. `ib` counts InfiniBand and RoCE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the names are the firmware's and say it all")]
pub struct VportCounters {
    pub received_errors: Traffic,
    pub transmit_errors: Traffic,
    pub received_ib_unicast: Traffic,
    pub transmitted_ib_unicast: Traffic,
    pub received_ib_multicast: Traffic,
    pub transmitted_ib_multicast: Traffic,
    pub received_eth_broadcast: Traffic,
    pub transmitted_eth_broadcast: Traffic,
    pub received_eth_unicast: Traffic,
    pub transmitted_eth_unicast: Traffic,
    pub received_eth_multicast: Traffic,
    pub transmitted_eth_multicast: Traffic,
}

impl VportCounters {
    /// All counters with their names, in the firmware's order.
    #[must_use]
    pub fn named(&self) -> [(&'static str, Traffic); 12] {
        [
            ("received_errors", self.received_errors),
            ("transmit_errors", self.transmit_errors),
            ("received_ib_unicast", self.received_ib_unicast),
            ("transmitted_ib_unicast", self.transmitted_ib_unicast),
            ("received_ib_multicast", self.received_ib_multicast),
            ("transmitted_ib_multicast", self.transmitted_ib_multicast),
            ("received_eth_broadcast", self.received_eth_broadcast),
            ("transmitted_eth_broadcast", self.transmitted_eth_broadcast),
            ("received_eth_unicast", self.received_eth_unicast),
            ("transmitted_eth_unicast", self.transmitted_eth_unicast),
            ("received_eth_multicast", self.received_eth_multicast),
            ("transmitted_eth_multicast", self.transmitted_eth_multicast),
        ]
    }
}

/// Asks for a vport's counters: `QUERY_VPORT_COUNTER`. The query does not reset them.
///
/// `port` is the function's port, from 1, if the function has two ports; otherwise 0.
///
/// # Errors
/// As [`query_vport_state`](super::query_vport_state).
pub fn query_vport_counter(context: &DevxContext, port: u8, vport: Vport) -> Result<VportCounters> {
    let (other_vport, vport_number) = vport.fields();
    let input = QueryVportCounterInput {
        header: header(opcode::QUERY_VPORT_COUNTER, 0),
        other_vport,
        port_num: four_bits(context, opcode::QUERY_VPORT_COUNTER, port)?,
        vport_number: vport_number.into(),
        ..QueryVportCounterInput::new_zeroed()
    };
    let output: QueryVportCounterOutput = query(context, &input)?;
    Ok(VportCounters {
        received_errors: output.received_errors.into(),
        transmit_errors: output.transmit_errors.into(),
        received_ib_unicast: output.received_ib_unicast.into(),
        transmitted_ib_unicast: output.transmitted_ib_unicast.into(),
        received_ib_multicast: output.received_ib_multicast.into(),
        transmitted_ib_multicast: output.transmitted_ib_multicast.into(),
        received_eth_broadcast: output.received_eth_broadcast.into(),
        transmitted_eth_broadcast: output.transmitted_eth_broadcast.into(),
        received_eth_unicast: output.received_eth_unicast.into(),
        transmitted_eth_unicast: output.transmitted_eth_unicast.into(),
        received_eth_multicast: output.received_eth_multicast.into(),
        transmitted_eth_multicast: output.transmitted_eth_multicast.into(),
    })
}
