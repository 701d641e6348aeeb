//! Capabilities, in groups. They decide what the driver asks next: a bit that is set here makes the driver
//! use a feature and ask for the group that describes it.

use super::eswitch::{self, Vport};
use super::{Answer, Call, HEADER, LEAST, Refusal};
use crate::bar::FREQUENCY_KHZ;
use crate::bits::{Field, at};
use crate::description::{Description, Mode};

/// Bytes of a group.
const GROUP: usize = 4096;
/// Groups above this one are not known; those below that are not answered here are empty.
const LAST_GROUP: u16 = 0x40;

// The groups that are answered.
const GENERAL: u16 = 0;
const ETHERNET: u16 = 1;
const ROCE: u16 = 4;
const NIC_FLOW_TABLES: u16 = 7;
const ESWITCH_FLOW_TABLES: u16 = 8;
const ESWITCH: u16 = 9;

/// A field and what it holds.
type Entry = (Field, u64);

/// General capabilities of every function.
const COMMON: &[Entry] = &[
    (at(16, 0, 8), 15),                     // log_max_srq_sz
    (at(17, 0, 8), 15),                     // log_max_qp_sz
    (at(19, 3, 5), 17),                     // log_max_qp
    (at(21, 3, 5), 17),                     // log_max_srq
    (at(25, 0, 8), 22),                     // log_max_cq_sz
    (at(27, 3, 5), 17),                     // log_max_cq
    (at(28, 0, 8), 22),                     // log_max_eq_sz
    (at(29, 2, 6), 20),                     // log_max_mkey
    (at(31, 4, 4), 6),                      // log_max_eq
    (at(35, 2, 6), 16),                     // log_max_klm_list_size
    (at(41, 2, 6), 4),                      // log_max_ra_req_qp
    (at(43, 2, 6), 4),                      // log_max_ra_res_qp
    (at(48, 1, 1), 1),                      // vport_counters
    (at(52, 2, 1), 1),                      // ib_virt
    (at(56, 3, 5), 30),                     // log_max_msg
    (at(63, 4, 4), 1),                      // cqe_version
    (at(69, 6, 1), 1),                      // apm
    (at(70, 1, 1), 1),                      // imaicl
    (at(71, 4, 1), 1),                      // xrc
    (at(73, 2, 6), 5),                      // uar_sz
    (at(75, 0, 8), 12),                     // log_pg_sz
    (at(77, 3, 5), 9),                      // log_bf_reg_size
    (at(82, 0, 16), 1024),                  // max_wqe_sz_sq
    (at(86, 0, 16), 512),                   // max_wqe_sz_rq
    (at(92, 7, 25), 240),                   // max_qp_mcg
    (at(99, 0, 8), 10),                     // log_max_mcg
    (at(100, 3, 5), 10),                    // log_max_transport_domain
    (at(101, 3, 5), 17),                    // log_max_pd
    (at(103, 3, 5), 10),                    // log_max_xrcd
    (at(140, 3, 5), 10),                    // log_max_uctx
    (at(142, 0, 16), 32),                   // max_num_eqs
    (at(156, 0, 32), FREQUENCY_KHZ as u64), // device_frequency_khz
    (at(212, 0, 32), 3),                    // uctx_cap
];

/// General capabilities of Ethernet functions.
const COMMON_ETHERNET: &[Entry] = &[
    (at(52, 6, 1), 1),   // nic_flow_table
    (at(54, 6, 2), 1),   // port_type
    (at(67, 4, 1), 1),   // eth_net_offloads
    (at(68, 2, 1), 1),   // cq_moderation
    (at(108, 3, 5), 12), // log_max_rq
    (at(109, 3, 5), 12), // log_max_sq
    (at(110, 3, 5), 12), // log_max_tir
    (at(111, 3, 5), 12), // log_max_tis
    (at(113, 3, 5), 12), // log_max_rqt
    (at(114, 3, 5), 11), // log_max_rqt_size
    (at(116, 3, 5), 11), // log_max_stride_sz_rq
    (at(117, 3, 5), 4),  // log_min_stride_sz_rq
    (at(118, 3, 5), 6),  // log_max_stride_sz_sq
    (at(119, 3, 5), 6),  // log_min_stride_sz_sq
    (at(123, 3, 5), 17), // log_max_wq_sz
    (at(125, 3, 5), 12), // log_max_vlan_list
    (at(126, 3, 5), 12), // log_max_current_mc_list
    (at(127, 3, 5), 7),  // log_max_current_uc_list
];

/// General capabilities of a function that does RoCE.
const COMMON_ROCE: &[Entry] = &[
    (at(67, 5, 1), 1), // roce
];

/// General capabilities of a function that is no e-switch's manager: it counts for the RDMA driver.
const COMMON_COUNTING: &[Entry] = &[
    (at(44, 1, 1), 1),   // cc_query_allowed
    (at(48, 0, 1), 1),   // out_of_seq_cnt
    (at(48, 2, 1), 1),   // retransmission_q_counters
    (at(48, 6, 10), 64), // max_qp_cnt
    (at(54, 1, 1), 1),   // enhanced_error_q_counters
];

/// General capabilities of an e-switch's manager.
const COMMON_MANAGER: &[Entry] = &[
    (at(52, 0, 1), 1), // vport_group_manager
    (at(52, 7, 1), 1), // eswitch_manager
];

// General capabilities that follow the description.
const VHCA_ID: Field = at(6, 0, 16);
const GID_TABLE_SIZE: Field = at(46, 0, 16);
const NUM_PORTS: Field = at(55, 0, 8);

/// Offloads of Ethernet.
const OFFLOADS: &[Entry] = &[
    (at(0, 0, 1), 1),  // csum_cap
    (at(0, 1, 1), 1),  // vlan_cap
    (at(1, 0, 1), 1),  // self_lb_en_modifiable
    (at(1, 3, 5), 18), // max_lso_cap
    (at(2, 2, 2), 2),  // wqe_inline_mode
    (at(2, 4, 4), 11), // rss_ind_tbl_cap
];

/// RoCE.
const ROCE_ENTRIES: &[Entry] = &[
    (at(17, 4, 4), 6),     // l3_type: IPv4 and IPv6
    (at(19, 0, 8), 5),     // roce_version: 1 and 2
    (at(22, 0, 16), 4791), // r_roce_dest_udp_port
];
const ROCE_ADDRESS_TABLE_SIZE: Field = at(30, 0, 16);

/// A kind of flow tables.
const FLOW_TABLES: &[Entry] = &[
    (at(0, 0, 1), 1),   // ft_support
    (at(0, 3, 1), 1),   // flow_modify_en
    (at(0, 4, 1), 1),   // modify_root
    (at(0, 5, 1), 1),   // identified_miss_table_mode
    (at(0, 6, 1), 1),   // flow_table_modify
    (at(4, 2, 6), 24),  // log_max_ft_size
    (at(5, 0, 8), 10),  // log_max_modify_header_context
    (at(6, 0, 8), 16),  // max_modify_header_actions
    (at(7, 0, 8), 255), // max_ft_level
    (at(15, 0, 8), 24), // log_max_ft_num
    (at(19, 0, 8), 10), // log_max_destination
    (at(23, 0, 8), 24), // log_max_flow
];
/// Of a kind of flow tables: steering may be done by software, which the steering addresses are for.
const SW_OWNER: Field = at(2, 1, 1);
/// Where in its group the kind for received packets is.
const NIC_RECEIVE: usize = 64;
/// Where in theirs those of the e-switch are: the forwarding tables, access lists in and out.
const FDB: usize = 64;
const ACL_INGRESS: usize = 128;
const ACL_EGRESS: usize = 192;

/// More about flow tables of the e-switch. These two make the driver tag packets with their vport, in
/// register `reg_c0`.
const ESWITCH_STEERING: &[Entry] = &[
    (at(0, 0, 8), 3), // fdb_to_vport_reg_c_id
    (at(2, 7, 1), 1), // flow_source
    (at(3, 3, 1), 1), // egress_acl_forward_to_vport
];
const UPLINK_ICM_RECEIVE: Field = at(784, 0, 64);
const UPLINK_ICM_TRANSMIT: Field = at(792, 0, 64);

/// The e-switch.
const ESWITCH_ENTRIES: &[Entry] = &[
    (at(1, 0, 1), 1), // esw_uplink_ingress_acl
    (at(3, 6, 1), 1), // nic_vport_node_guid_modify
];
const ESW_FUNCTIONS_CHANGED: Field = at(3, 1, 1);
const ECPF_VPORT_EXISTS: Field = at(3, 3, 1);

/// Answers a query: maximum and current are the same.
pub(super) fn query(call: &Call<'_>, set: Option<&[u8]>) -> Result<Answer, Refusal> {
    let group = call.op_mod() >> 1;
    if group > LAST_GROUP {
        return Err(Refusal::NO_CAPABILITIES);
    }
    let vport = eswitch::vport(call)?;
    let mut answer = call.answer(HEADER + GROUP)?;
    let description = call.description;
    let mode = description.mode;
    let ethernet = mode != Mode::InfiniBand;
    let manager = is_manager(mode);
    match group {
        GENERAL => general(&mut answer, description, vport, set),
        ETHERNET if ethernet => fill(&mut answer, OFFLOADS),
        ROCE if mode == Mode::Roce => {
            fill(&mut answer, ROCE_ENTRIES);
            let len = description.ports.first().map_or(0, |port| port.gid_table_len);
            answer.set_inside(ROCE_ADDRESS_TABLE_SIZE, len);
        }
        NIC_FLOW_TABLES if ethernet => flow_tables(&mut answer, NIC_RECEIVE),
        ESWITCH_FLOW_TABLES if manager => {
            fill(&mut answer, ESWITCH_STEERING);
            for kind in [FDB, ACL_INGRESS, ACL_EGRESS] {
                flow_tables(&mut answer, kind);
            }
            answer.set_inside(SW_OWNER.within(FDB), 1_u8);
            let (receive, transmit) = description.eswitch.uplink_icm;
            answer.set_inside(UPLINK_ICM_RECEIVE, receive);
            answer.set_inside(UPLINK_ICM_TRANSMIT, transmit);
        }
        ESWITCH if manager => {
            fill(&mut answer, ESWITCH_ENTRIES);
            if let Mode::EmbeddedCpu { own_vport, .. } = mode {
                answer.set_inside(ESW_FUNCTIONS_CHANGED, 1_u8);
                answer.set_inside(ECPF_VPORT_EXISTS, own_vport);
            }
        }
        _ => {}
    }
    Ok(answer)
}

/// Takes what the driver sets: its own general capabilities are kept, others do not matter.
pub(super) fn set(call: &Call<'_>, general: &mut Option<Vec<u8>>) -> Result<Answer, Refusal> {
    if call.op_mod() >> 1 == GENERAL && eswitch::vport(call)? == Vport::Own {
        *general = Some(call.input.get(HEADER..).unwrap_or_default().to_vec());
    }
    call.answer(LEAST)
}

fn general(answer: &mut Answer, description: &Description, vport: Vport, set: Option<&[u8]>) {
    if let Some(set) = set {
        answer.put(HEADER, set);
    } else {
        fill(answer, COMMON);
        if description.mode != Mode::InfiniBand {
            fill(answer, COMMON_ETHERNET);
        }
        if description.mode == Mode::Roce {
            fill(answer, COMMON_ROCE);
        }
        if is_manager(description.mode) {
            fill(answer, COMMON_MANAGER);
        } else {
            fill(answer, COMMON_COUNTING);
        }
    }
    let vhca_id = match vport {
        Vport::Own => description.vhca_id,
        Vport::Other(number) => description.eswitch.vport_vhca_id.wrapping_add(number),
    };
    answer.set_inside(VHCA_ID, vhca_id);
    answer.set_inside(NUM_PORTS, description.ports.len() as u64);
    if let (Mode::InfiniBand, Some(port)) = (description.mode, description.ports.first()) {
        // Entries are 8 shifted by this.
        let code = (port.gid_table_len / 8).checked_ilog2().unwrap_or(0);
        answer.set_inside(GID_TABLE_SIZE, code);
    }
}

fn is_manager(mode: Mode) -> bool {
    matches!(mode, Mode::Switchdev | Mode::EmbeddedCpu { .. })
}

fn flow_tables(answer: &mut Answer, start: usize) {
    for &(field, value) in FLOW_TABLES {
        answer.set_inside(field.within(start), value);
    }
}

fn fill(answer: &mut Answer, entries: &[Entry]) {
    for &(field, value) in entries {
        answer.set_inside(field, value);
    }
}
