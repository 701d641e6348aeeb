//! The three sides of a vport: Ethernet, InfiniBand, and the e-switch's.

use uverbs_uapi::mlx5_firmware::{
    QueryEswVportContextOutput, QueryHcaVportContextOutput, QueryNicVportContextOutput, opcode,
};

use super::mac::MacAddress;
use super::vport::{Vport, four_bits, vport_input};
use super::{DevxContext, query};
use crate::context::Context;
use crate::error::Result;
use crate::guid::Guid;
use crate::port::{PhysState, PortState};

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
/// As [`query_vport_state`](super::query_vport_state). The firmware refuses if ports are InfiniBand.
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
/// As [`query_vport_state`](super::query_vport_state).
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
/// As [`query_vport_state`](super::query_vport_state). The firmware answers only the manager of an e-switch.
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
