//! The firmware's answers about a whole function: capabilities, board, e-switch, link aggregation.

use core::ops::RangeInclusive;

use uverbs_uapi::mlx5_firmware::{
    GeneralCapabilities, PlainInput, PlainOutput, QueryAdapterOutput, QueryEswFunctionsOutput,
    QueryGeneralCapOutput, QueryHcaCapInput, QueryLagOutput, QueryRoceCapOutput,
    RoceCapabilities as RoceAbi, capability_mode, capability_type, opcode, port_type, roce_l3,
    roce_versions,
};
use zerocopy::FromZeros;

use super::{DevxContext, Vport, header, query};
use crate::context::Context;
use crate::error::Result;
use crate::named::named;

/// Which capabilities to ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum CapabilityMode {
    /// The current ones.
    #[default]
    Current,
    /// The possible ones.
    Maximum,
}

named! {
    /// The kind of a function's ports.
    PortType(u8) {
        /// InfiniBand.
        IB = port_type::IB, "infiniband";
        /// Ethernet.
        ETH = port_type::ETH, "ethernet";
    }
}

/// General capabilities of a function that concern its ports. C name `cmd_hca_cap`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "the firmware has as many")]
pub struct Capabilities {
    /// Number of the function within the device.
    pub vhca_id: u16,
    /// The kind of its ports.
    pub port_type: PortType,
    /// How many ports it has.
    pub num_ports: u8,
    /// Which of the device's ports is its own, from 1; 0 if the firmware does not say.
    pub native_port_num: u8,
    /// Ports of the device that act together as one RoCE device; 0 or 1 if they do not.
    pub num_vhca_ports: u8,
    /// Slots in an InfiniBand port's GID table; `None` for a code that this version does not know.
    pub gid_table_len: Option<u16>,
    /// Slots in an InfiniBand port's P_Key table; `None` for a code that this version does not know.
    pub pkey_table_len: Option<u16>,
    /// It has RoCE: see [`query_roce_cap`].
    pub roce: bool,
    /// It may ask about other vports.
    pub vport_group_manager: bool,
    /// It manages an e-switch.
    pub eswitch_manager: bool,
    /// InfiniBand ports are virtualised.
    pub ib_virt: bool,
    /// Ethernet ports are virtualised.
    pub eth_virt: bool,
    /// Its vports have counters.
    pub vport_counters: bool,
    /// It can aggregate links.
    pub lag_master: bool,
    /// How many ports may be aggregated.
    pub num_lag_ports: u8,
    /// How many user contexts the firmware has. With 0 there is no DEVX.
    pub max_user_contexts: u32,
    /// What user contexts may do, as the firmware's bits.
    pub uctx_cap: u32,
}

impl From<&GeneralCapabilities> for Capabilities {
    fn from(abi: &GeneralCapabilities) -> Self {
        type Abi = GeneralCapabilities;
        let len = |first: u16, code: u16, codes: u16| (code < codes).then(|| first << code);
        let log_max_uctx = abi.log_max_uctx & Abi::LOG_MAX_UCTX;
        Self {
            vhca_id: abi.vhca_id.get(),
            port_type: PortType(abi.port_type & Abi::PORT_TYPE),
            num_ports: abi.num_ports,
            native_port_num: abi.native_port_num,
            num_vhca_ports: abi.num_vhca_ports,
            gid_table_len: len(8, abi.gid_table_size.get(), 5),
            pkey_table_len: len(128, abi.pkey_table_size.get(), 6),
            roce: abi.protocols & Abi::ROCE != 0,
            vport_group_manager: abi.roles & Abi::VPORT_GROUP_MANAGER != 0,
            eswitch_manager: abi.roles & Abi::ESWITCH_MANAGER != 0,
            ib_virt: abi.roles & Abi::IB_VIRT != 0,
            eth_virt: abi.roles & Abi::ETH_VIRT != 0,
            vport_counters: abi.counters & Abi::VPORT_COUNTERS != 0,
            lag_master: abi.lag & Abi::LAG_MASTER != 0,
            num_lag_ports: abi.lag & Abi::NUM_LAG_PORTS,
            max_user_contexts: if log_max_uctx == 0 { 0 } else { 1 << log_max_uctx },
            uctx_cap: abi.uctx_cap.get(),
        }
    }
}

fn cap_input(kind: u16, mode: CapabilityMode, function: Vport) -> QueryHcaCapInput {
    let mode = match mode {
        CapabilityMode::Current => capability_mode::CURRENT,
        CapabilityMode::Maximum => capability_mode::MAXIMUM,
    };
    let (other_function, function_id) = function.fields();
    QueryHcaCapInput {
        header: header(opcode::QUERY_HCA_CAP, kind << 1 | mode),
        other_function,
        function_id: function_id.into(),
        ..QueryHcaCapInput::new_zeroed()
    }
}

/// Asks for a function's general capabilities: `QUERY_HCA_CAP`, on any context.
///
/// The manager of an e-switch may ask about the function of another vport. The vport's number names
/// it, as in the kernel for the host's PF and its VFs. (VFs of the embedded CPU itself cannot be named
/// here: newer kernels name them in another way.)
///
/// ```no_run
/// # fn main() -> Result<(), uverbs::Error> {
/// use uverbs::mlx5::devx::{CapabilityMode, Vport, query_hca_cap};
///
/// let context = uverbs::Host::new().open("mlx5_0")?;
/// let own = query_hca_cap(&context, CapabilityMode::Current, Vport::Own)?;
/// println!("vhca {:#x}, {} ports of {}", own.vhca_id, own.num_ports, own.port_type);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// As [`general_cmd`](super::general_cmd).
pub fn query_hca_cap(
    context: &Context,
    mode: CapabilityMode,
    function: Vport,
) -> Result<Capabilities> {
    let input = cap_input(capability_type::GENERAL, mode, function);
    let output: QueryGeneralCapOutput = query(context, &input)?;
    Ok((&output.capabilities).into())
}

/// Capabilities of RoCE. C name `roce_cap`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "the firmware has as many")]
pub struct RoceCapabilities {
    /// RoCE v1.
    pub v1: bool,
    /// RoCE v2.
    pub v2: bool,
    /// GIDs made from IPv4 addresses.
    pub ipv4: bool,
    /// GIDs made from IPv6 addresses.
    pub ipv6: bool,
    /// UDP destination port of RoCE v2.
    pub destination_udp_port: u16,
    /// UDP source ports of RoCE v2; 0 to 0 if the firmware does not say.
    pub source_udp_ports: RangeInclusive<u16>,
    /// Slots in the table of RoCE addresses, which is the port's GID table.
    pub address_table_len: u16,
}

impl From<&RoceAbi> for RoceCapabilities {
    fn from(abi: &RoceAbi) -> Self {
        let l3 = abi.l3_type & RoceAbi::L3_TYPE;
        Self {
            v1: abi.roce_version & roce_versions::V1 != 0,
            v2: abi.roce_version & roce_versions::V2 != 0,
            ipv4: l3 & roce_l3::IPV4 != 0,
            ipv6: l3 & roce_l3::IPV6 != 0,
            destination_udp_port: abi.r_roce_dest_udp_port.get(),
            source_udp_ports: abi.r_roce_min_src_udp_port.get()..=abi.r_roce_max_src_udp_port.get(),
            address_table_len: abi.roce_address_table_size.get(),
        }
    }
}

/// Asks for a function's capabilities of RoCE: `QUERY_HCA_CAP`, on any context.
///
/// The answer is meaningful only if [`Capabilities::roce`] is set.
///
/// # Errors
/// As [`general_cmd`](super::general_cmd).
pub fn query_roce_cap(
    context: &Context,
    mode: CapabilityMode,
    function: Vport,
) -> Result<RoceCapabilities> {
    let input = cap_input(capability_type::ROCE, mode, function);
    let output: QueryRoceCapOutput = query(context, &input)?;
    Ok((&output.capabilities).into())
}

/// The board.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Adapter {
    /// The vendor's number with the IEEE, 24 bits; 0x02c9 is Mellanox.
    pub ieee_vendor_id: u32,
    /// The IEEE number that defines the form of the vendor's data.
    pub vsd_vendor_id: u16,
    /// Parameter set id (PSID), which names the board's model: `board_id` in sysfs. Characters other than
    /// printable ASCII are escaped.
    pub psid: String,
}

/// Asks about the board: `QUERY_ADAPTER`.
///
/// # Errors
/// As [`general_cmd`](super::general_cmd).
pub fn query_adapter(context: &DevxContext) -> Result<Adapter> {
    let output: QueryAdapterOutput = query(context, &plain(opcode::QUERY_ADAPTER))?;
    let [a, b, c] = output.ieee_vendor_id;
    let psid = output.psid.split(|byte| *byte == 0).next().unwrap_or_default();
    Ok(Adapter {
        ieee_vendor_id: u32::from_be_bytes([0, a, b, c]),
        vsd_vendor_id: output.vsd_vendor_id.get(),
        psid: psid.trim_ascii_end().escape_ascii().to_string(),
    })
}

/// The host of a smart NIC's embedded CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EswFunctions {
    /// Number of the host.
    pub host_number: u8,
    /// Whether it has a physical function that is not disabled.
    pub host_pf_enabled: bool,
    /// VFs that the host has enabled.
    pub host_num_of_vfs: u16,
    /// VFs that it could enable.
    pub host_total_vfs: u16,
    /// PCI address of its physical function.
    pub host_pci: HostPci,
}

/// A PCI address without a domain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct HostPci {
    /// Bus.
    pub bus: u16,
    /// Device.
    pub device: u16,
    /// Function.
    pub function: u16,
}

/// Asks about the functions that the e-switch serves: `QUERY_ESW_FUNCTIONS`, on any context.
///
/// # Errors
/// As [`general_cmd`](super::general_cmd). The firmware refuses if the function manages no other host's.
/// Linux 5.10 does not let the command through (`EINVAL`).
pub fn query_esw_functions(context: &Context) -> Result<EswFunctions> {
    type Abi = QueryEswFunctionsOutput;
    let output: Abi = query(context, &plain(opcode::QUERY_ESW_FUNCTIONS))?;
    Ok(EswFunctions {
        host_number: output.host_number,
        host_pf_enabled: output.host_pf & (Abi::HOST_PF_NOT_EXIST | Abi::HOST_PF_DISABLED) == 0,
        host_num_of_vfs: output.host_num_of_vfs.get(),
        host_total_vfs: output.host_total_vfs.get(),
        host_pci: HostPci {
            bus: output.host_pci_bus.get(),
            device: output.host_pci_device.get(),
            function: output.host_pci_function.get(),
        },
    })
}

/// State of link aggregation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lag {
    /// Not 0 if there is a link aggregation.
    pub state: u8,
    /// Active ports, one bit per port from the first port on; 0 if the firmware does not say.
    pub active_ports: u8,
    /// Physical port that the first logical port sends on, from 1.
    pub tx_remap_affinity_1: u8,
    /// Physical port that the second logical port sends on, from 1.
    pub tx_remap_affinity_2: u8,
}

/// Asks about link aggregation: `QUERY_LAG`.
///
/// # Errors
/// As [`general_cmd`](super::general_cmd). The firmware refuses if there is no link aggregation.
pub fn query_lag(context: &DevxContext) -> Result<Lag> {
    let output: QueryLagOutput = query(context, &plain(opcode::QUERY_LAG))?;
    Ok(Lag {
        state: output.lag_state & 0b111,
        active_ports: output.active_port & 0b1111,
        tx_remap_affinity_1: output.tx_remap_affinity_1 & 0b1111,
        tx_remap_affinity_2: output.tx_remap_affinity_2 & 0b1111,
    })
}

/// Sends a command that does nothing: `NOP`. It shows that the command interface works.
///
/// # Errors
/// As [`general_cmd`](super::general_cmd).
pub fn nop(context: &DevxContext) -> Result<()> {
    query::<PlainOutput>(context, &plain(opcode::NOP)).map(drop)
}

fn plain(opcode: u16) -> PlainInput {
    PlainInput { header: header(opcode, 0), unused: [0; 8] }
}
