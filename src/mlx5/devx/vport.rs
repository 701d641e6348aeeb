//! The firmware's answers about a vport: state, addresses, counters.
//!
//! A vport is a function's port on the device's e-switch. A function asks about its own vport. The manager
//! of the e-switch may ask about others.

use core::fmt;

use uverbs_uapi::mlx5_firmware::{
    OTHER, QueryEswVportContextOutput, QueryHcaVportContextOutput, QueryNicVportContextOutput,
    QueryRoceAddressInput, QueryRoceAddressOutput, QueryVportCounterInput, QueryVportCounterOutput,
    QueryVportInput, QueryVportStateOutput, TrafficCounter, opcode, roce_l3_type, roce_version,
    vport_admin_state, vport_state, vport_state_mod,
};
use zerocopy::FromZeros;

use super::{DevxContext, FirmwareTarget, header, query};
use crate::context::Context;
use crate::error::{Cause, Request, Result};
use crate::gid::Gid;
use crate::guid::Guid;
use crate::mlx5::port::VportNumber;
use crate::named::named;
use crate::port::{PhysState, PortState, Rate};

/// The vport that a query is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Vport {
    /// The asking function's own vport.
    #[default]
    Own,
    /// Another vport of the e-switch that it manages.
    Other(VportNumber),
}

impl Vport {
    /// The fields `other_vport` and `vport_number` of an input.
    pub(super) fn fields(self) -> (u8, u16) {
        match self {
            Self::Own => (0, 0),
            Self::Other(VportNumber(number)) => (OTHER, number),
        }
    }
}

fn vport_input(opcode: u16, op_mod: u16, port: u8, vport: Vport) -> QueryVportInput {
    let (other_vport, vport_number) = vport.fields();
    QueryVportInput {
        header: header(opcode, op_mod),
        other_vport,
        port_num: port,
        vport_number: vport_number.into(),
        ..QueryVportInput::new_zeroed()
    }
}

/// A port's number in the firmware's commands. It has four bits, so a greater number cannot be asked about.
fn four_bits(context: &Context, opcode: u16, port: u8) -> Result<u8> {
    if port < 16 {
        return Ok(port);
    }
    let request = Request::Firmware { opcode, target: FirmwareTarget::port(port) };
    Err(context.error(request, Cause::NoSuchPort))
}

/// The side of a vport whose state a query is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VportSide {
    /// The function's side.
    #[default]
    Function,
    /// The e-switch's side.
    Eswitch,
    /// The e-switch's wire. There is only one, so the vport does not matter.
    Uplink,
}

named! {
    /// Requested state of a vport.
    VportAdminState(u8) {
        /// Down.
        DOWN = vport_admin_state::DOWN, "down";
        /// Up.
        UP = vport_admin_state::UP, "up";
        /// The state of the uplink.
        AUTO = vport_admin_state::AUTO, "auto";
    }
}

named! {
    /// State of a vport.
    VportLinkState(u8) {
        /// Down.
        DOWN = vport_state::DOWN, "down";
        /// Up.
        UP = vport_state::UP, "up";
    }
}

/// State of a vport.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct VportState {
    /// The requested state.
    pub admin_state: VportAdminState,
    /// The actual state.
    pub state: VportLinkState,
    /// Limit of the transmit rate; `None` if there is none or the firmware does not say.
    pub max_tx_speed: Option<Rate>,
}

/// Asks for a vport's state: `QUERY_VPORT_STATE`.
///
/// ```no_run
/// # fn main() -> Result<(), uverbs::Error> {
/// use uverbs::mlx5::devx::{self, Vport, VportSide};
/// use uverbs::mlx5::port::VportNumber;
///
/// let context = devx::open(&uverbs::Host::new().device("mlx5_0")?)?;
/// let own = devx::query_vport_state(&context, VportSide::Function, Vport::Own)?;
/// let first_vf = Vport::Other(VportNumber(1));
/// let vf = devx::query_vport_state(&context, VportSide::Eswitch, first_vf)?;
/// println!("own {}, the first VF's {}", own.state, vf.state);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// As [`general_cmd`](super::general_cmd). The firmware refuses a vport that does not exist or that the
/// caller may not ask about.
pub fn query_vport_state(
    context: &DevxContext,
    side: VportSide,
    vport: Vport,
) -> Result<VportState> {
    let op_mod = match side {
        VportSide::Function => vport_state_mod::VNIC_VPORT,
        VportSide::Eswitch => vport_state_mod::ESW_VPORT,
        VportSide::Uplink => vport_state_mod::UPLINK,
    };
    let input = vport_input(opcode::QUERY_VPORT_STATE, op_mod, 0, vport);
    let output: QueryVportStateOutput = query(context, &input)?;
    let speed = output.max_tx_speed.get();
    Ok(VportState {
        admin_state: VportAdminState(output.states >> 4),
        state: VportLinkState(output.states & 0b1111),
        max_tx_speed: (speed != 0).then(|| Rate(speed.into())),
    })
}

/// A MAC address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MacAddress(pub [u8; 6]);

impl fmt::Display for MacAddress {
    /// Six pairs of hexadecimal digits, colons between them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pairs = self.0.map(|byte| format!("{byte:02x}"));
        f.pad(&pairs.join(":"))
    }
}

/// The Ethernet side of a vport.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "the firmware has as many")]
pub struct NicVportContext {
    /// RoCE is enabled.
    pub roce_enabled: bool,
    /// Unicast packets are not looped back.
    pub disable_uc_local_lb: bool,
    /// Multicast packets are not looped back.
    pub disable_mc_local_lb: bool,
    /// All unicast packets are received.
    pub promisc_uc: bool,
    /// All multicast packets are received.
    pub promisc_mc: bool,
    /// All packets are received.
    pub promisc_all: bool,
    /// Largest frame in bytes: 22 more than the interface's MTU (Ethernet header 14, VLAN tag 4,
    /// check sequence 4).
    pub mtu: u16,
    /// System image GUID.
    pub system_image_guid: Guid,
    /// Port GUID.
    pub port_guid: Guid,
    /// Node GUID.
    pub node_guid: Guid,
    /// `Q_Key` violations.
    pub qkey_violations: u16,
    /// The vport's own MAC address.
    pub permanent_address: MacAddress,
}

/// Asks for a vport's Ethernet side: `QUERY_NIC_VPORT_CONTEXT`.
///
/// # Errors
/// As [`query_vport_state`]. The firmware refuses if ports are InfiniBand.
pub fn query_nic_vport_context(context: &DevxContext, vport: Vport) -> Result<NicVportContext> {
    type Abi = QueryNicVportContextOutput;
    let input = vport_input(opcode::QUERY_NIC_VPORT_CONTEXT, 0, 0, vport);
    let output: Abi = query(context, &input)?;
    Ok(NicVportContext {
        roce_enabled: output.switches & Abi::ROCE_EN != 0,
        disable_uc_local_lb: output.switches & Abi::DISABLE_UC_LOCAL_LB != 0,
        disable_mc_local_lb: output.switches & Abi::DISABLE_MC_LOCAL_LB != 0,
        promisc_uc: output.promisc & Abi::PROMISC_UC != 0,
        promisc_mc: output.promisc & Abi::PROMISC_MC != 0,
        promisc_all: output.promisc & Abi::PROMISC_ALL != 0,
        mtu: output.mtu.get(),
        system_image_guid: output.system_image_guid.get().into(),
        port_guid: output.port_guid.get().into(),
        node_guid: output.node_guid.get().into(),
        qkey_violations: output.qkey_violation_counter.get(),
        permanent_address: MacAddress(output.permanent_address),
    })
}

/// The InfiniBand side of a vport.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "the firmware has as many")]
pub struct HcaVportContext {
    /// The subnet manager supports virtualisation.
    pub sm_virt_aware: bool,
    /// The vport has a subnet management interface.
    pub has_smi: bool,
    /// The vport has raw packets.
    pub has_raw: bool,
    /// Every packet needs a GRH.
    pub grh_required: bool,
    /// Physical state of the port.
    pub phys_state: PhysState,
    /// Logical state of the port.
    pub port_state: PortState,
    /// Logical state of the vport.
    pub vport_state: PortState,
    /// How the vport's state follows the port's: 0 down, 1 up, 2 as the port's.
    pub vport_state_policy: u8,
    /// System image GUID.
    pub system_image_guid: Guid,
    /// Port GUID.
    pub port_guid: Guid,
    /// Node GUID.
    pub node_guid: Guid,
    /// Capabilities of the port, bits of the InfiniBand specification.
    pub cap_mask1: u32,
    /// More capabilities of the port.
    pub cap_mask2: u32,
    /// Base LID.
    pub lid: u16,
    /// LID mask control: the port has 2^lmc LIDs.
    pub lmc: u8,
    /// LID of the subnet manager.
    pub sm_lid: u16,
    /// Service level of the subnet manager.
    pub sm_sl: u8,
    /// Subnet propagation delay, 4.096 µs · 2^n.
    pub subnet_timeout: u8,
    /// Kind of initialisation that the subnet manager did.
    pub init_type_reply: u8,
    /// `Q_Key` violations.
    pub qkey_violations: u16,
    /// `P_Key` violations.
    pub pkey_violations: u16,
}

/// Asks for a vport's InfiniBand side: `QUERY_HCA_VPORT_CONTEXT`, on any context.
///
/// `port` is the function's port, from 1, if the function has two ports; otherwise 0.
///
/// ```no_run
/// # fn main() -> Result<(), uverbs::Error> {
/// use uverbs::mlx5::devx::{Vport, query_hca_vport_context};
///
/// let context = uverbs::Host::new().open("mlx5_0")?;
/// let vport = query_hca_vport_context(&context, 0, Vport::Own)?;
/// println!("{} {} LID {:#x}", vport.port_guid, vport.vport_state, vport.lid);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// As [`query_vport_state`].
pub fn query_hca_vport_context(
    context: &Context,
    port: u8,
    vport: Vport,
) -> Result<HcaVportContext> {
    type Abi = QueryHcaVportContextOutput;
    let port = four_bits(context, opcode::QUERY_HCA_VPORT_CONTEXT, port)?;
    let input = vport_input(opcode::QUERY_HCA_VPORT_CONTEXT, 0, port, vport);
    let output: Abi = query(context, &input)?;
    Ok(HcaVportContext {
        sm_virt_aware: output.features & Abi::SM_VIRT_AWARE != 0,
        has_smi: output.features & Abi::HAS_SMI != 0,
        has_raw: output.features & Abi::HAS_RAW != 0,
        grh_required: output.features & Abi::GRH_REQUIRED != 0,
        phys_state: PhysState(output.physical_state >> 4),
        port_state: PortState(output.state >> 4),
        vport_state: PortState(output.state & 0b1111),
        vport_state_policy: output.physical_state & 0b1111,
        system_image_guid: output.system_image_guid.get().into(),
        port_guid: output.port_guid.get().into(),
        node_guid: output.node_guid.get().into(),
        cap_mask1: output.cap_mask1.get(),
        cap_mask2: output.cap_mask2.get(),
        lid: output.lid.get(),
        lmc: output.lmc_and_subnet_timeout >> 5,
        sm_lid: output.sm_lid.get(),
        sm_sl: output.sm_sl >> 4,
        subnet_timeout: output.lmc_and_subnet_timeout & 0b1_1111,
        init_type_reply: output.init_type_reply & 0b1111,
        qkey_violations: output.qkey_violation_counter.get(),
        pkey_violations: output.pkey_violation_counter.get(),
    })
}

/// The e-switch's side of a vport.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EswVportContext {
    /// The service VLAN is removed.
    pub svlan_strip: bool,
    /// The customer VLAN is removed.
    pub cvlan_strip: bool,
    /// The service VLAN is inserted.
    pub svlan_insert: bool,
    /// Whether the customer VLAN is inserted: 0 never, 1 if the packet has none, 3 always.
    pub cvlan_insert: u8,
    /// Service VLAN: CFI 1 bit, PCP 3 bits, id 12 bits.
    pub svlan: u16,
    /// Customer VLAN, in the same form.
    pub cvlan: u16,
    /// Registers C that carry the vport's number, one bit per register.
    pub fdb_to_vport_reg_c_id: u8,
    /// Address for steering in the device's memory (ICM), receive side; 0 if there is none.
    pub sw_steering_icm_rx: u64,
    /// The same, transmit side.
    pub sw_steering_icm_tx: u64,
}

/// Asks for the e-switch's side of a vport: `QUERY_ESW_VPORT_CONTEXT`, on any context.
///
/// # Errors
/// As [`query_vport_state`]. The firmware answers only the manager of an e-switch.
pub fn query_esw_vport_context(context: &Context, vport: Vport) -> Result<EswVportContext> {
    type Abi = QueryEswVportContextOutput;
    let input = vport_input(opcode::QUERY_ESW_VPORT_CONTEXT, 0, 0, vport);
    let output: Abi = query(context, &input)?;
    Ok(EswVportContext {
        svlan_strip: output.vlan_actions & Abi::SVLAN_STRIP != 0,
        cvlan_strip: output.vlan_actions & Abi::CVLAN_STRIP != 0,
        svlan_insert: output.vlan_actions & Abi::SVLAN_INSERT != 0,
        cvlan_insert: output.vlan_actions & Abi::CVLAN_INSERT,
        svlan: output.svlan.get(),
        cvlan: output.cvlan.get(),
        fdb_to_vport_reg_c_id: output.fdb_to_vport_reg_c_id,
        sw_steering_icm_rx: output.sw_steering_vport_icm_address_rx.get(),
        sw_steering_icm_tx: output.sw_steering_vport_icm_address_tx.get(),
    })
}

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
/// As [`query_vport_state`].
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
