//! Opcodes: names of all that the function knows, and constants for those with more than a status.

pub(crate) const QUERY_HCA_CAP: u16 = 0x100;
pub(crate) const QUERY_ADAPTER: u16 = 0x101;
pub(crate) const ENABLE_HCA: u16 = 0x104;
pub(crate) const QUERY_PAGES: u16 = 0x107;
pub(crate) const MANAGE_PAGES: u16 = 0x108;
pub(crate) const SET_HCA_CAP: u16 = 0x109;
pub(crate) const QUERY_ISSI: u16 = 0x10a;
pub(crate) const SET_ISSI: u16 = 0x10b;
pub(crate) const CREATE_EQ: u16 = 0x301;
pub(crate) const DESTROY_EQ: u16 = 0x302;
pub(crate) const QUERY_ESW_FUNCTIONS: u16 = 0x740;
pub(crate) const QUERY_VPORT_STATE: u16 = 0x750;
pub(crate) const QUERY_ESW_VPORT_CONTEXT: u16 = 0x752;
pub(crate) const QUERY_NIC_VPORT_CONTEXT: u16 = 0x754;
pub(crate) const QUERY_ROCE_ADDRESS: u16 = 0x760;
pub(crate) const SET_ROCE_ADDRESS: u16 = 0x761;
pub(crate) const QUERY_HCA_VPORT_CONTEXT: u16 = 0x762;
pub(crate) const QUERY_HCA_VPORT_GID: u16 = 0x764;
pub(crate) const QUERY_HCA_VPORT_PKEY: u16 = 0x765;
pub(crate) const QUERY_VPORT_COUNTER: u16 = 0x770;
pub(crate) const QUERY_Q_COUNTER: u16 = 0x773;
pub(crate) const ACCESS_REG: u16 = 0x805;
pub(crate) const QUERY_CONG_STATISTICS: u16 = 0x826;
pub(crate) const QUERY_LAG: u16 = 0x842;

/// The name of an opcode, if it is one that the function knows.
pub(crate) fn name(opcode: u16) -> Option<&'static str> {
    let index = NAMES.binary_search_by_key(&opcode, |&(opcode, _)| opcode).ok()?;
    NAMES.get(index).map(|&(_, name)| name)
}

/// Sorted by opcode.
const NAMES: &[(u16, &str)] = &[
    (0x100, "QUERY_HCA_CAP"),
    (0x101, "QUERY_ADAPTER"),
    (0x102, "INIT_HCA"),
    (0x103, "TEARDOWN_HCA"),
    (0x104, "ENABLE_HCA"),
    (0x105, "DISABLE_HCA"),
    (0x107, "QUERY_PAGES"),
    (0x108, "MANAGE_PAGES"),
    (0x109, "SET_HCA_CAP"),
    (0x10a, "QUERY_ISSI"),
    (0x10b, "SET_ISSI"),
    (0x200, "CREATE_MKEY"),
    (0x202, "DESTROY_MKEY"),
    (0x203, "QUERY_SPECIAL_CONTEXTS"),
    (0x301, "CREATE_EQ"),
    (0x302, "DESTROY_EQ"),
    (0x400, "CREATE_CQ"),
    (0x401, "DESTROY_CQ"),
    (0x403, "MODIFY_CQ"),
    (0x500, "CREATE_QP"),
    (0x501, "DESTROY_QP"),
    (0x502, "RST2INIT_QP"),
    (0x503, "INIT2RTR_QP"),
    (0x504, "RTR2RTS_QP"),
    (0x50a, "2RST_QP"),
    (0x50b, "QUERY_QP"),
    (0x50d, "MAD_IFC"),
    (0x705, "CREATE_XRC_SRQ"),
    (0x706, "DESTROY_XRC_SRQ"),
    (0x740, "QUERY_ESW_FUNCTIONS"),
    (0x750, "QUERY_VPORT_STATE"),
    (0x751, "MODIFY_VPORT_STATE"),
    (0x752, "QUERY_ESW_VPORT_CONTEXT"),
    (0x753, "MODIFY_ESW_VPORT_CONTEXT"),
    (0x754, "QUERY_NIC_VPORT_CONTEXT"),
    (0x755, "MODIFY_NIC_VPORT_CONTEXT"),
    (0x760, "QUERY_ROCE_ADDRESS"),
    (0x761, "SET_ROCE_ADDRESS"),
    (0x762, "QUERY_HCA_VPORT_CONTEXT"),
    (0x764, "QUERY_HCA_VPORT_GID"),
    (0x765, "QUERY_HCA_VPORT_PKEY"),
    (0x770, "QUERY_VPORT_COUNTER"),
    (0x771, "ALLOC_Q_COUNTER"),
    (0x772, "DEALLOC_Q_COUNTER"),
    (0x773, "QUERY_Q_COUNTER"),
    (0x800, "ALLOC_PD"),
    (0x801, "DEALLOC_PD"),
    (0x802, "ALLOC_UAR"),
    (0x803, "DEALLOC_UAR"),
    (0x805, "ACCESS_REG"),
    (0x80d, "NOP"),
    (0x80e, "ALLOC_XRCD"),
    (0x80f, "DEALLOC_XRCD"),
    (0x816, "ALLOC_TRANSPORT_DOMAIN"),
    (0x817, "DEALLOC_TRANSPORT_DOMAIN"),
    (0x822, "QUERY_CONG_STATUS"),
    (0x824, "QUERY_CONG_PARAMS"),
    (0x826, "QUERY_CONG_STATISTICS"),
    (0x829, "SET_L2_TABLE_ENTRY"),
    (0x82b, "DELETE_L2_TABLE_ENTRY"),
    (0x842, "QUERY_LAG"),
    (0x900, "CREATE_TIR"),
    (0x901, "MODIFY_TIR"),
    (0x902, "DESTROY_TIR"),
    (0x904, "CREATE_SQ"),
    (0x905, "MODIFY_SQ"),
    (0x906, "DESTROY_SQ"),
    (0x908, "CREATE_RQ"),
    (0x909, "MODIFY_RQ"),
    (0x90a, "DESTROY_RQ"),
    (0x90c, "CREATE_RMP"),
    (0x90e, "DESTROY_RMP"),
    (0x912, "CREATE_TIS"),
    (0x914, "DESTROY_TIS"),
    (0x916, "CREATE_RQT"),
    (0x917, "MODIFY_RQT"),
    (0x918, "DESTROY_RQT"),
    (0x92f, "SET_FLOW_TABLE_ROOT"),
    (0x930, "CREATE_FLOW_TABLE"),
    (0x931, "DESTROY_FLOW_TABLE"),
    (0x933, "CREATE_FLOW_GROUP"),
    (0x934, "DESTROY_FLOW_GROUP"),
    (0x936, "SET_FLOW_TABLE_ENTRY"),
    (0x938, "DELETE_FLOW_TABLE_ENTRY"),
    (0x93c, "MODIFY_FLOW_TABLE"),
    (0x940, "ALLOC_MODIFY_HEADER_CONTEXT"),
    (0x941, "DEALLOC_MODIFY_HEADER_CONTEXT"),
    (0xa04, "CREATE_UCTX"),
    (0xa06, "DESTROY_UCTX"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted() {
        assert!(NAMES.is_sorted_by(|(one, _), (next, _)| one < next));
        assert_eq!(name(0x100), Some("QUERY_HCA_CAP"));
        assert_eq!(name(0xa06), Some("DESTROY_UCTX"));
        assert_eq!(name(0x101), Some("QUERY_ADAPTER"));
        assert_eq!(name(0xb00), None);
    }
}
