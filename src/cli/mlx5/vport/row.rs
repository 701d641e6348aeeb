//! What is shown of a port's vport: in JSON, and as lines of a table.

use serde::Serialize;
use serde_json::{Map, Value};
use uverbs::gid::Gid;
use uverbs::guid::Guid;
use uverbs::mlx5::devx::{
    EswVportContext, HcaVportContext, MacAddress, NicVportContext, PortType, RoceAddress,
    RoceL3Type, RoceVersion, Traffic, VportAdminState, VportCounters, VportLinkState, VportState,
};
use uverbs::port::{PhysState, PortState};

use crate::mlx5::LeftOut;
use crate::report::Unanswered;
use crate::values::{Gbps, Hex, Text};

/// A port in the table and in JSON. What its kind of port does not have is null.
#[derive(Debug, Serialize)]
pub(super) struct Row<'a> {
    pub(super) device: &'a str,
    pub(super) port: u32,
    pub(super) port_type: Text<PortType>,
    /// Null outside of switchdev mode.
    pub(super) vport: Option<u16>,
    pub(super) vport_vhca_id: Option<u16>,
    pub(super) esw_owner_vhca_id: Option<u16>,
    pub(super) state: Option<StateRow>,
    pub(super) infiniband: Option<InfinibandRow>,
    pub(super) ethernet: Option<EthernetRow>,
    pub(super) eswitch: Option<EswitchRow>,
    pub(super) roce_addresses: Option<Vec<AddressRow>>,
    pub(super) counters: Option<Map<String, Value>>,
    /// What was not asked, and why; what was asked in vain is a problem.
    pub(super) not_asked: Map<String, Value>,
}

#[derive(Debug, Serialize)]
pub(super) struct StateRow {
    admin: Text<VportAdminState>,
    link: Text<VportLinkState>,
    max_tx_gbps: Option<Gbps>,
}

#[derive(Debug, Serialize)]
pub(super) struct InfinibandRow {
    port_state: Text<PortState>,
    vport_state: Text<PortState>,
    phys_state: Text<PhysState>,
    node_guid: Text<Guid>,
    port_guid: Text<Guid>,
    sys_image_guid: Text<Guid>,
    lid: u16,
    lmc: u8,
    sm_lid: u16,
    sm_sl: u8,
    grh_required: bool,
    has_smi: bool,
    cap_mask1: Hex<u32>,
    cap_mask2: Hex<u32>,
    qkey_violations: u16,
    pkey_violations: u16,
}

#[derive(Debug, Serialize)]
pub(super) struct EthernetRow {
    mac: Text<MacAddress>,
    /// Largest frame, 22 more than the interface's MTU.
    hw_mtu: u16,
    roce_enabled: bool,
    node_guid: Text<Guid>,
    port_guid: Text<Guid>,
    sys_image_guid: Text<Guid>,
    promisc_all: bool,
    qkey_violations: u16,
}

#[derive(Debug, Serialize)]
pub(super) struct EswitchRow {
    sw_steering_icm_rx: Hex<u64>,
    sw_steering_icm_tx: Hex<u64>,
    svlan_insert: bool,
    cvlan_insert: u8,
    svlan: u16,
    cvlan: u16,
}

#[derive(Debug, Serialize)]
pub(super) struct AddressRow {
    index: u16,
    gid: Text<Gid>,
    version: Text<RoceVersion>,
    l3_type: Option<Text<RoceL3Type>>,
    mac: Text<MacAddress>,
    vlan: Option<u16>,
}

#[derive(Debug, Serialize)]
pub(super) struct Document<'a> {
    pub(super) vports: Vec<Row<'a>>,
    /// Ports that represent no vport, unless they are named: then they are problems.
    pub(super) left_out: Vec<LeftOut<'a>>,
    pub(super) problems: &'a [Unanswered],
}

impl From<VportState> for StateRow {
    fn from(from: VportState) -> Self {
        Self {
            admin: Text(from.admin_state),
            link: Text(from.state),
            max_tx_gbps: from.max_tx_speed.map(Gbps),
        }
    }
}

impl From<HcaVportContext> for InfinibandRow {
    fn from(from: HcaVportContext) -> Self {
        Self {
            port_state: Text(from.port_state),
            vport_state: Text(from.vport_state),
            phys_state: Text(from.phys_state),
            node_guid: Text(from.node_guid),
            port_guid: Text(from.port_guid),
            sys_image_guid: Text(from.system_image_guid),
            lid: from.lid,
            lmc: from.lmc,
            sm_lid: from.sm_lid,
            sm_sl: from.sm_sl,
            grh_required: from.grh_required,
            has_smi: from.has_smi,
            cap_mask1: Hex(from.cap_mask1),
            cap_mask2: Hex(from.cap_mask2),
            qkey_violations: from.qkey_violations,
            pkey_violations: from.pkey_violations,
        }
    }
}

impl From<NicVportContext> for EthernetRow {
    fn from(from: NicVportContext) -> Self {
        Self {
            mac: Text(from.permanent_address),
            hw_mtu: from.mtu,
            roce_enabled: from.roce_enabled,
            node_guid: Text(from.node_guid),
            port_guid: Text(from.port_guid),
            sys_image_guid: Text(from.system_image_guid),
            promisc_all: from.promisc_all,
            qkey_violations: from.qkey_violations,
        }
    }
}

impl From<EswVportContext> for EswitchRow {
    fn from(from: EswVportContext) -> Self {
        Self {
            sw_steering_icm_rx: Hex(from.sw_steering_icm_rx),
            sw_steering_icm_tx: Hex(from.sw_steering_icm_tx),
            svlan_insert: from.svlan_insert,
            cvlan_insert: from.cvlan_insert,
            svlan: from.svlan,
            cvlan: from.cvlan,
        }
    }
}

impl AddressRow {
    pub(super) fn new(index: u16, address: &RoceAddress) -> Self {
        Self {
            index,
            gid: Text(address.gid),
            version: Text(address.version),
            l3_type: address.l3_type.map(Text),
            mac: Text(address.mac),
            vlan: address.vlan,
        }
    }
}

pub(super) fn counters_row(counters: &VportCounters) -> Map<String, Value> {
    let counter = |traffic: Traffic| serde_json::json!({"packets": traffic.packets, "octets": traffic.octets});
    let named = counters.named().into_iter();
    named.map(|(name, traffic)| (name.to_owned(), counter(traffic))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conforms::conforms;

    /// With all that a port may have, and with nothing of it.
    #[test]
    fn the_form_of_the_document() {
        let guid = || Text(Guid::default());
        let full = Row {
            device: "mlx5_0",
            port: 1,
            port_type: Text(PortType::IB),
            vport: Some(0xffff),
            vport_vhca_id: Some(1),
            esw_owner_vhca_id: Some(2),
            state: Some(StateRow {
                admin: Text(VportAdminState::default()),
                link: Text(VportLinkState::default()),
                max_tx_gbps: Some(Gbps(uverbs::port::Rate(25))),
            }),
            infiniband: Some(InfinibandRow {
                port_state: Text(PortState::ACTIVE),
                vport_state: Text(PortState::ACTIVE),
                phys_state: Text(PhysState::LINK_UP),
                node_guid: guid(),
                port_guid: guid(),
                sys_image_guid: guid(),
                lid: 1,
                lmc: 0,
                sm_lid: 1,
                sm_sl: 0,
                grh_required: false,
                has_smi: true,
                cap_mask1: Hex(1),
                cap_mask2: Hex(2),
                qkey_violations: 0,
                pkey_violations: 0,
            }),
            ethernet: Some(EthernetRow {
                mac: Text(MacAddress::default()),
                hw_mtu: 1522,
                roce_enabled: true,
                node_guid: guid(),
                port_guid: guid(),
                sys_image_guid: guid(),
                promisc_all: false,
                qkey_violations: 0,
            }),
            eswitch: Some(EswitchRow {
                sw_steering_icm_rx: Hex(1),
                sw_steering_icm_tx: Hex(2),
                svlan_insert: false,
                cvlan_insert: 0,
                svlan: 0,
                cvlan: 0,
            }),
            roce_addresses: Some(vec![AddressRow {
                index: 3,
                gid: Text(Gid::default()),
                version: Text(RoceVersion::default()),
                l3_type: Some(Text(RoceL3Type::default())),
                mac: Text(MacAddress::default()),
                vlan: Some(7),
            }]),
            counters: Some(counters_row(&VportCounters::default())),
            not_asked: Map::new(),
        };
        let bare = Row {
            device: "mlx5_0",
            port: 2,
            port_type: Text(PortType::ETH),
            vport: None,
            vport_vhca_id: None,
            esw_owner_vhca_id: None,
            state: None,
            infiniband: None,
            ethernet: None,
            eswitch: None,
            roce_addresses: None,
            counters: None,
            not_asked: [("ethernet".to_owned(), "why".into())].into_iter().collect(),
        };
        let left_out = vec![LeftOut { device: "mlx5_0", port: 3, why: "it represents no vport" }];
        let document = Document { vports: vec![full, bare], left_out, problems: &[] };
        conforms("mlx5-vport.json", &document);
    }
}
