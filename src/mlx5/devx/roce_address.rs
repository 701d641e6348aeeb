//! The RoCE addresses in the firmware.

use uverbs_uapi::mlx5_firmware::{
    QueryRoceAddressInput, QueryRoceAddressOutput, opcode, roce_l3_type, roce_version,
};
use zerocopy::FromZeros;

use super::mac::MacAddress;
use super::vport::four_bits;
use super::{DevxContext, header, query};
use crate::error::Result;
use crate::gid::Gid;
use crate::named::named;

named! {
    /// Version of a RoCE address.
    RoceVersion(u8) {
        /// RoCE v1.
        V1 = roce_version::V1, "v1";
        /// RoCE v2.
        V2 = roce_version::V2, "v2";
    }
}

named! {
    /// Address family of a RoCE address.
    RoceL3Type(u8) {
        /// IPv4.
        IPV4 = roce_l3_type::IPV4, "ipv4";
        /// IPv6.
        IPV6 = roce_l3_type::IPV6, "ipv6";
    }
}

/// A RoCE address in the firmware: a GID with the addresses it is sent from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RoceAddress {
    /// The GID.
    pub gid: Gid,
    /// Its version.
    pub version: RoceVersion,
    /// Its family; `None` for RoCE v1, which has none.
    pub l3_type: Option<RoceL3Type>,
    /// MAC address that it is sent from.
    pub mac: MacAddress,
    /// VLAN that it is sent on, if any.
    pub vlan: Option<u16>,
}

/// Asks for the RoCE address of a GID: `QUERY_ROCE_ADDRESS`. `None` means an empty slot.
///
/// `index` is the GID's index. `port` is the port, from 1, if the function counts its ports
/// ([`Capabilities::num_vhca_ports`](super::Capabilities::num_vhca_ports) is not 0); otherwise 0.
///
/// ```no_run
/// # fn main() -> Result<(), uverbs::Error> {
/// use uverbs::mlx5::devx;
///
/// let context = devx::open(&uverbs::Host::new().device("mlx5_0")?)?;
/// for index in 0..16 {
///     if let Some(address) = devx::query_roce_address(&context, index, 0)? {
///         println!("{index}: {} {} {}", address.gid, address.version, address.mac);
///     }
/// }
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// As [`general_cmd`](super::general_cmd). The firmware refuses an index outside the table.
pub fn query_roce_address(
    context: &DevxContext,
    index: u16,
    port: u8,
) -> Result<Option<RoceAddress>> {
    type Abi = QueryRoceAddressOutput;
    let input = QueryRoceAddressInput {
        header: header(opcode::QUERY_ROCE_ADDRESS, 0),
        roce_address_index: index.into(),
        vhca_port_num: four_bits(context, opcode::QUERY_ROCE_ADDRESS, port)?,
        ..QueryRoceAddressInput::new_zeroed()
    };
    let output: Abi = query(context, &input)?;
    let vlan = output.vlan.get();
    let l3_type = RoceL3Type(output.roce_l3_type & 0b1111);
    let address = RoceAddress {
        gid: Gid::from_bytes(output.source_l3_address),
        version: RoceVersion(output.roce_version),
        l3_type: (output.roce_version != roce_version::V1).then_some(l3_type),
        mac: MacAddress(output.source_mac),
        vlan: (vlan & Abi::VLAN_VALID != 0).then_some(vlan & Abi::VLAN_ID),
    };
    Ok((!address.gid.is_zero()).then_some(address))
}
