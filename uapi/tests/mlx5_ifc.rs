//! Compares the layouts of firmware commands with the kernel's own header `linux/mlx5/mlx5_ifc.h`.
//!
//! The header is not for user space: it comes with packages for building kernel modules. `tests/run
//! headers` fetches it and runs this test, which is ignored otherwise. The environment variable
//! `UVERBS_MLX5_HEADERS` names the header's folder. A C compiler is needed: `cc`, or the one that the
//! environment variable `CC` names.
//!
//! In that header each bit is an element of a `u8` array, so `offsetof` counts bits.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use core::mem::offset_of;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use uverbs_uapi::mlx5_firmware as fw;

/// One field: its C structure, its path in it, its first bit and its number of bits.
struct Field {
    structure: &'static str,
    path: &'static str,
    bit: u64,
    width: u64,
}

/// The C name of a whole structure, and its size in bytes.
struct Size {
    structure: &'static str,
    bytes: u64,
}

fn number(value: usize) -> u64 {
    value.try_into().unwrap()
}

fn size_of_field<T, F>(_field: fn(&T) -> &F) -> usize {
    size_of::<F>()
}

/// The first bit of a mask, counted from the highest bit of its field, and its width.
fn mask(mask: u32, field_bytes: usize) -> (u64, u64) {
    let bits = 8 * u32::try_from(field_bytes).unwrap();
    let aligned = mask << (32 - bits);
    let (start, width) = (aligned.leading_zeros(), aligned.count_ones());
    assert_eq!(
        mask,
        u32::try_from(((1u64 << width) - 1) << (bits - start - width)).unwrap(),
        "a mask with a gap"
    );
    (start.into(), width.into())
}

/// `field = "path"` is a whole field, `field & MASK = "path"` some bits of one.
macro_rules! fields {
    ($list:ident, $(
        $name:ident = $c:literal { $($field:ident $(& $mask:expr)? => $path:literal),+ $(,)? }
    )+) => { $( $({
        let bytes = size_of_field(|value: &fw::$name| &value.$field);
        #[allow(unused_mut, unused_assignments, reason = "only some have a mask")]
        let (mut start, mut width) = (0, 8 * number(bytes));
        $((start, width) = mask($mask.into(), bytes);)?
        $list.push(Field {
            structure: $c,
            path: $path,
            bit: 8 * number(offset_of!(fw::$name, $field)) + start,
            width,
        });
    })+ )+ };
}

#[rustfmt::skip]
#[expect(clippy::too_many_lines, reason = "a table")]
fn fields() -> Vec<Field> {
    use fw::{
        GeneralCapabilities as General, QueryEswFunctionsOutput as Functions,
        QueryEswVportContextOutput as Esw, QueryHcaVportContextOutput as Hca,
        QueryNicVportContextOutput as Nic, QueryRoceAddressOutput as Address, RoceCapabilities as Roce,
    };
    let mut list = Vec::new();
    fields! { list,
        InputHeader = "query_hca_cap_in" { opcode => "opcode", op_mod => "op_mod" }
        InputHeader = "general_obj_in_cmd_hdr" {
            opcode => "opcode", uid => "uid", vhca_tunnel_id => "vhca_tunnel_id",
        }
        OutputHeader = "query_hca_cap_out" { status => "status", syndrome => "syndrome" }
        QueryHcaCapInput = "query_hca_cap_in" {
            other_function & fw::OTHER => "other_function", function_id => "function_id",
        }
        QueryGeneralCapOutput = "query_hca_cap_out" { capabilities => "capability" }
        GeneralCapabilities = "cmd_hca_cap" {
            vhca_id => "vhca_id",
            gid_table_size => "gid_table_size",
            counters & General::VPORT_COUNTERS => "vport_counters",
            pkey_table_size => "pkey_table_size",
            roles & General::VPORT_GROUP_MANAGER => "vport_group_manager",
            roles & General::IB_VIRT => "ib_virt",
            roles & General::ETH_VIRT => "eth_virt",
            roles & General::ESWITCH_MANAGER => "eswitch_manager",
            port_type & General::PORT_TYPE => "port_type",
            num_ports => "num_ports",
            protocols & General::ROCE => "roce",
            lag & General::LAG_MASTER => "lag_master",
            lag & General::NUM_LAG_PORTS => "num_lag_ports",
            log_max_uctx & General::LOG_MAX_UCTX => "log_max_uctx",
            native_port_num => "native_port_num",
            num_vhca_ports => "num_vhca_ports",
            uctx_cap => "uctx_cap",
        }
        RoceCapabilities = "roce_cap" {
            l3_type & Roce::L3_TYPE => "l3_type",
            roce_version => "roce_version",
            r_roce_dest_udp_port => "r_roce_dest_udp_port",
            r_roce_max_src_udp_port => "r_roce_max_src_udp_port",
            r_roce_min_src_udp_port => "r_roce_min_src_udp_port",
            roce_address_table_size => "roce_address_table_size",
        }
        QueryAdapterOutput = "query_adapter_out" {
            ieee_vendor_id => "query_adapter_struct.ieee_vendor_id",
            vsd_vendor_id => "query_adapter_struct.vsd_vendor_id",
            vsd => "query_adapter_struct.vsd",
            psid => "query_adapter_struct.vsd_contd_psid",
        }
        QueryEswFunctionsOutput = "host_params_context" {
            host_number => "host_number",
            host_pf & Functions::HOST_PF_NOT_EXIST => "host_pf_not_exist",
            host_pf & Functions::HOST_PF_DISABLED => "host_pf_disabled",
            host_num_of_vfs => "host_num_of_vfs",
            host_total_vfs => "host_total_vfs",
            host_pci_bus => "host_pci_bus",
            host_pci_device => "host_pci_device",
            host_pci_function => "host_pci_function",
        }
        QueryVportInput = "query_vport_state_in" {
            other_vport & fw::OTHER => "other_vport", vport_number => "vport_number",
        }
        QueryVportInput = "query_esw_vport_context_in" {
            other_vport & fw::OTHER => "other_vport", vport_number => "vport_number",
        }
        QueryVportInput = "query_nic_vport_context_in" {
            other_vport & fw::OTHER => "other_vport", vport_number => "vport_number",
            allowed_list_type & 0b111u8 => "allowed_list_type",
        }
        QueryVportInput = "query_hca_vport_context_in" {
            other_vport & fw::OTHER => "other_vport", vport_number => "vport_number",
            port_num & 0b1111u8 => "port_num",
        }
        QueryVportStateOutput = "query_vport_state_out" {
            max_tx_speed => "max_tx_speed",
            states & 0xf0u8 => "admin_state", states & 0x0fu8 => "state",
        }
        QueryEswVportContextOutput = "query_esw_vport_context_out" {
            vlan_actions & Esw::SVLAN_STRIP => "esw_vport_context.vport_svlan_strip",
            vlan_actions & Esw::CVLAN_STRIP => "esw_vport_context.vport_cvlan_strip",
            vlan_actions & Esw::SVLAN_INSERT => "esw_vport_context.vport_svlan_insert",
            vlan_actions & Esw::CVLAN_INSERT => "esw_vport_context.vport_cvlan_insert",
            fdb_to_vport_reg_c_id => "esw_vport_context.fdb_to_vport_reg_c_id",
            svlan & 0x8000u16 => "esw_vport_context.svlan_cfi",
            svlan & 0x7000u16 => "esw_vport_context.svlan_pcp",
            svlan & 0x0fffu16 => "esw_vport_context.svlan_id",
            cvlan & 0x8000u16 => "esw_vport_context.cvlan_cfi",
            cvlan & 0x7000u16 => "esw_vport_context.cvlan_pcp",
            cvlan & 0x0fffu16 => "esw_vport_context.cvlan_id",
            sw_steering_vport_icm_address_rx => "esw_vport_context.sw_steering_vport_icm_address_rx",
            sw_steering_vport_icm_address_tx => "esw_vport_context.sw_steering_vport_icm_address_tx",
        }
        QueryNicVportContextOutput = "query_nic_vport_context_out" {
            switches & Nic::DISABLE_MC_LOCAL_LB => "nic_vport_context.disable_mc_local_lb",
            switches & Nic::DISABLE_UC_LOCAL_LB => "nic_vport_context.disable_uc_local_lb",
            switches & Nic::ROCE_EN => "nic_vport_context.roce_en",
            mtu => "nic_vport_context.mtu",
            system_image_guid => "nic_vport_context.system_image_guid",
            port_guid => "nic_vport_context.port_guid",
            node_guid => "nic_vport_context.node_guid",
            qkey_violation_counter => "nic_vport_context.qkey_violation_counter",
            promisc & Nic::PROMISC_UC => "nic_vport_context.promisc_uc",
            promisc & Nic::PROMISC_MC => "nic_vport_context.promisc_mc",
            promisc & Nic::PROMISC_ALL => "nic_vport_context.promisc_all",
            allowed_list_size => "nic_vport_context.allowed_list_size",
        }
        QueryHcaVportContextOutput = "query_hca_vport_context_out" {
            features & Hca::SM_VIRT_AWARE => "hca_vport_context.sm_virt_aware",
            features & Hca::HAS_SMI => "hca_vport_context.has_smi",
            features & Hca::HAS_RAW => "hca_vport_context.has_raw",
            features & Hca::GRH_REQUIRED => "hca_vport_context.grh_required",
            physical_state & 0xf0u8 => "hca_vport_context.port_physical_state",
            physical_state & 0x0fu8 => "hca_vport_context.vport_state_policy",
            state & 0xf0u8 => "hca_vport_context.port_state",
            state & 0x0fu8 => "hca_vport_context.vport_state",
            system_image_guid => "hca_vport_context.system_image_guid",
            port_guid => "hca_vport_context.port_guid",
            node_guid => "hca_vport_context.node_guid",
            cap_mask1 => "hca_vport_context.cap_mask1",
            cap_mask1_field_select => "hca_vport_context.cap_mask1_field_select",
            cap_mask2 => "hca_vport_context.cap_mask2",
            cap_mask2_field_select => "hca_vport_context.cap_mask2_field_select",
            lid => "hca_vport_context.lid",
            init_type_reply & 0x0fu8 => "hca_vport_context.init_type_reply",
            lmc_and_subnet_timeout & 0xe0u8 => "hca_vport_context.lmc",
            lmc_and_subnet_timeout & 0x1fu8 => "hca_vport_context.subnet_timeout",
            sm_lid => "hca_vport_context.sm_lid",
            sm_sl & 0xf0u8 => "hca_vport_context.sm_sl",
            qkey_violation_counter => "hca_vport_context.qkey_violation_counter",
            pkey_violation_counter => "hca_vport_context.pkey_violation_counter",
        }
        QueryRoceAddressInput = "query_roce_address_in" {
            roce_address_index => "roce_address_index",
            vhca_port_num & 0b1111u8 => "vhca_port_num",
        }
        QueryRoceAddressOutput = "query_roce_address_out" {
            source_l3_address => "roce_address.source_l3_address",
            vlan & Address::VLAN_VALID => "roce_address.vlan_valid",
            vlan & Address::VLAN_ID => "roce_address.vlan_id",
            roce_l3_type & 0b1111u8 => "roce_address.roce_l3_type",
            roce_version => "roce_address.roce_version",
        }
        QueryVportCounterInput = "query_vport_counter_in" {
            other_vport & fw::OTHER => "other_vport",
            port_num & 0b1111u8 => "port_num",
            vport_number => "vport_number",
            clear & fw::OTHER => "clear",
        }
        QueryVportCounterOutput = "query_vport_counter_out" {
            received_errors => "received_errors",
            transmit_errors => "transmit_errors",
            received_ib_unicast => "received_ib_unicast",
            transmitted_ib_unicast => "transmitted_ib_unicast",
            received_ib_multicast => "received_ib_multicast",
            transmitted_ib_multicast => "transmitted_ib_multicast",
            received_eth_broadcast => "received_eth_broadcast",
            transmitted_eth_broadcast => "transmitted_eth_broadcast",
            received_eth_unicast => "received_eth_unicast",
            transmitted_eth_unicast => "transmitted_eth_unicast",
            received_eth_multicast => "received_eth_multicast",
            transmitted_eth_multicast => "transmitted_eth_multicast",
        }
        TrafficCounter = "traffic_counter" { packets => "packets", octets => "octets" }
        QueryLagOutput = "query_lag_out" {
            lag_state & 0b111u8 => "ctx.lag_state",
            active_port & 0b1111u8 => "ctx.active_port",
            tx_remap_affinity_2 & 0b1111u8 => "ctx.tx_remap_affinity_2",
            tx_remap_affinity_1 & 0b1111u8 => "ctx.tx_remap_affinity_1",
        }
    }
    // In C this is an element of a flexible array at the end of the header, which offsetof cannot address.
    for field in list.iter_mut().filter(|field| field.structure == "host_params_context") {
        field.bit -= 8 * 16;
    }
    // In C, two halves of an address.
    let mac = |structure, path, byte: usize, width| {
        Field { structure, path, bit: 8 * number(byte), width }
    };
    let nic = offset_of!(Nic, permanent_address);
    let address = offset_of!(Address, source_mac);
    list.extend([
        mac("query_nic_vport_context_out", "nic_vport_context.permanent_address.mac_addr_47_32", nic, 16),
        mac("query_nic_vport_context_out", "nic_vport_context.permanent_address.mac_addr_31_0", nic + 2, 32),
        mac("query_roce_address_out", "roce_address.source_mac_47_32", address, 16),
        mac("query_roce_address_out", "roce_address.source_mac_31_0", address + 2, 32),
    ]);
    list
}

fn sizes() -> Vec<Size> {
    macro_rules! sizes {
        ($($name:ident = $c:literal),+ $(,)?) => {
            vec![$(Size { structure: $c, bytes: number(size_of::<fw::$name>()) }),+]
        };
    }
    sizes! {
        QueryHcaCapInput = "query_hca_cap_in",
        QueryGeneralCapOutput = "query_hca_cap_out",
        QueryRoceCapOutput = "query_hca_cap_out",
        PlainInput = "query_adapter_in",
        PlainInput = "query_esw_functions_in",
        PlainInput = "query_lag_in",
        PlainInput = "nop_in",
        PlainOutput = "nop_out",
        QueryAdapterOutput = "query_adapter_out",
        QueryVportInput = "query_vport_state_in",
        QueryVportInput = "query_esw_vport_context_in",
        QueryVportInput = "query_nic_vport_context_in",
        QueryVportInput = "query_hca_vport_context_in",
        QueryVportStateOutput = "query_vport_state_out",
        QueryEswVportContextOutput = "query_esw_vport_context_out",
        QueryNicVportContextOutput = "query_nic_vport_context_out",
        QueryHcaVportContextOutput = "query_hca_vport_context_out",
        QueryRoceAddressInput = "query_roce_address_in",
        QueryRoceAddressOutput = "query_roce_address_out",
        QueryVportCounterInput = "query_vport_counter_in",
        QueryVportCounterOutput = "query_vport_counter_out",
        QueryEswFunctionsOutput = "query_esw_functions_out",
        QueryLagOutput = "query_lag_out",
    }
}

const CONSTANTS: &[(&str, u16)] = &[
    ("MLX5_CMD_OP_QUERY_HCA_CAP", fw::opcode::QUERY_HCA_CAP),
    ("MLX5_CMD_OP_QUERY_ADAPTER", fw::opcode::QUERY_ADAPTER),
    ("MLX5_CMD_OP_QUERY_ISSI", fw::opcode::QUERY_ISSI),
    ("MLX5_CMD_OP_QUERY_ESW_FUNCTIONS", fw::opcode::QUERY_ESW_FUNCTIONS),
    ("MLX5_CMD_OP_QUERY_VPORT_STATE", fw::opcode::QUERY_VPORT_STATE),
    ("MLX5_CMD_OP_QUERY_ESW_VPORT_CONTEXT", fw::opcode::QUERY_ESW_VPORT_CONTEXT),
    ("MLX5_CMD_OP_QUERY_NIC_VPORT_CONTEXT", fw::opcode::QUERY_NIC_VPORT_CONTEXT),
    ("MLX5_CMD_OP_QUERY_ROCE_ADDRESS", fw::opcode::QUERY_ROCE_ADDRESS),
    ("MLX5_CMD_OP_QUERY_HCA_VPORT_CONTEXT", fw::opcode::QUERY_HCA_VPORT_CONTEXT),
    ("MLX5_CMD_OP_QUERY_VNIC_ENV", fw::opcode::QUERY_VNIC_ENV),
    ("MLX5_CMD_OP_QUERY_VPORT_COUNTER", fw::opcode::QUERY_VPORT_COUNTER),
    ("MLX5_CMD_OP_GET_DROPPED_PACKET_LOG", fw::opcode::GET_DROPPED_PACKET_LOG),
    ("MLX5_CMD_OP_NOP", fw::opcode::NOP),
    ("MLX5_CMD_OP_QUERY_CONG_STATUS", fw::opcode::QUERY_CONG_STATUS),
    ("MLX5_CMD_OP_QUERY_CONG_PARAMS", fw::opcode::QUERY_CONG_PARAMS),
    ("MLX5_CMD_OP_QUERY_CONG_STATISTICS", fw::opcode::QUERY_CONG_STATISTICS),
    ("MLX5_CMD_OP_QUERY_LAG", fw::opcode::QUERY_LAG),
    ("MLX5_CMD_OP_GENERAL_START", fw::opcode::GENERAL_START),
    ("MLX5_CMD_OP_GENERAL_END", fw::opcode::GENERAL_END),
    ("MLX5_VPORT_STATE_OP_MOD_VNIC_VPORT", fw::vport_state_mod::VNIC_VPORT),
    ("MLX5_VPORT_STATE_OP_MOD_ESW_VPORT", fw::vport_state_mod::ESW_VPORT),
    ("MLX5_VPORT_STATE_OP_MOD_UPLINK", fw::vport_state_mod::UPLINK),
    ("MLX5_CAP_PORT_TYPE_IB", fw::port_type::IB as u16),
    ("MLX5_CAP_PORT_TYPE_ETH", fw::port_type::ETH as u16),
];

/// Constants of headers that only the kernel itself can compile; they are read as text.
const IN_TEXT: &[(&str, u16)] = &[
    ("MLX5_CMD_STAT_OK", fw::status::OK as u16),
    ("MLX5_CMD_STAT_INT_ERR", fw::status::INTERNAL_ERR as u16),
    ("MLX5_CMD_STAT_BAD_OP_ERR", fw::status::BAD_OP as u16),
    ("MLX5_CMD_STAT_BAD_PARAM_ERR", fw::status::BAD_PARAM as u16),
    ("MLX5_CMD_STAT_BAD_SYS_STATE_ERR", fw::status::BAD_SYS_STATE as u16),
    ("MLX5_CMD_STAT_BAD_RES_ERR", fw::status::BAD_RES as u16),
    ("MLX5_CMD_STAT_RES_BUSY", fw::status::RES_BUSY as u16),
    ("MLX5_CMD_STAT_NOT_READY", fw::status::NOT_READY as u16),
    ("MLX5_CMD_STAT_LIM_ERR", fw::status::LIM_ERR as u16),
    ("MLX5_CMD_STAT_BAD_RES_STATE_ERR", fw::status::BAD_RES_STATE as u16),
    ("MLX5_CMD_STAT_IX_ERR", fw::status::IX_ERR as u16),
    ("MLX5_CMD_STAT_NO_RES_ERR", fw::status::NO_RES as u16),
    ("MLX5_CMD_STAT_BAD_QP_STATE_ERR", fw::status::BAD_QP_STATE as u16),
    ("MLX5_CMD_STAT_BAD_PKT_ERR", fw::status::BAD_PKT as u16),
    ("MLX5_CMD_STAT_BAD_SIZE_OUTS_CQES_ERR", fw::status::BAD_SIZE_OUTS_CQES as u16),
    ("MLX5_CMD_STAT_BAD_INP_LEN_ERR", fw::status::BAD_INP_LEN as u16),
    ("MLX5_CMD_STAT_BAD_OUTP_LEN_ERR", fw::status::BAD_OUTP_LEN as u16),
    ("MLX5_CAP_GENERAL", fw::capability_type::GENERAL),
    ("HCA_CAP_OPMOD_GET_MAX", fw::capability_mode::MAXIMUM),
    ("HCA_CAP_OPMOD_GET_CUR", fw::capability_mode::CURRENT),
    ("MLX5_VPORT_ADMIN_STATE_DOWN", fw::vport_admin_state::DOWN as u16),
    ("MLX5_VPORT_ADMIN_STATE_UP", fw::vport_admin_state::UP as u16),
    ("MLX5_VPORT_ADMIN_STATE_AUTO", fw::vport_admin_state::AUTO as u16),
    ("MLX5_ROCE_VERSION_1", fw::roce_version::V1 as u16),
    ("MLX5_ROCE_VERSION_2", fw::roce_version::V2 as u16),
    ("MLX5_ROCE_L3_TYPE_IPV4", fw::roce_l3_type::IPV4 as u16),
    ("MLX5_ROCE_L3_TYPE_IPV6", fw::roce_l3_type::IPV6 as u16),
    ("MLX5_VPORT_ECPF", fw::vport::ECPF),
    ("MLX5_VPORT_UPLINK", fw::vport::UPLINK),
];

/// The value in a line `NAME = VALUE,`.
fn in_text(text: &str, name: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| {
        line.trim().strip_prefix(name)?.trim_start().strip_prefix('=').map(str::trim)
    })?;
    let value = value.trim_end_matches(',');
    value.strip_prefix("0x").map_or(value.parse().ok(), |hex| u64::from_str_radix(hex, 16).ok())
}

#[test]
#[ignore = "needs the header of a kernel's modules: tests/run headers"]
fn firmware_layouts_and_the_kernel_s_agree() {
    let headers = std::env::var_os("UVERBS_MLX5_HEADERS")
        .expect("UVERBS_MLX5_HEADERS names the folder of mlx5_ifc.h");
    let headers = Path::new(&headers);
    assert!(headers.join("mlx5_ifc.h").is_file(), "no mlx5_ifc.h in {}", headers.display());

    let (fields, sizes) = (fields(), sizes());
    let mut program = String::from(
        "#include <stddef.h>\n#include <stdio.h>\n\
         typedef unsigned char u8;\n\
         #define BIT(n) (1UL << (n))\n#define BIT_ULL(n) (1ULL << (n))\n\
         #define DECLARE_FLEX_ARRAY(type, name) struct { struct { } name##_; type name[]; }\n\
         #include \"mlx5_ifc.h\"\n\
         #define SHOW(x) printf(\"%llu\\n\", (unsigned long long)(x))\n\
         int main(void) {\n",
    );
    let mut expected = Vec::new();
    for Field { structure, path, bit, width } in &fields {
        let c = format!("struct mlx5_ifc_{structure}_bits");
        writeln!(program, "SHOW(offsetof({c}, {path})); SHOW(sizeof((({c} *)0)->{path}));")
            .unwrap();
        expected.push((format!("{structure}.{path}: first bit"), *bit));
        expected.push((format!("{structure}.{path}: bits"), *width));
    }
    for Size { structure, bytes } in &sizes {
        writeln!(program, "SHOW(sizeof(struct mlx5_ifc_{structure}_bits) / 8);").unwrap();
        expected.push((format!("{structure}: bytes"), *bytes));
    }
    for (name, value) in CONSTANTS {
        writeln!(program, "SHOW({name});").unwrap();
        expected.push(((*name).to_owned(), (*value).into()));
    }
    program.push_str("return 0; }\n");

    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let source = directory.join(format!("mlx5_ifc-{}.c", std::process::id()));
    std::fs::write(&source, program).unwrap();
    let binary = source.with_extension("bin");
    let output = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()))
        .args(["-std=gnu11", "-w", "-I"])
        .arg(headers)
        .arg("-o")
        .arg(&binary)
        .arg(&source)
        .output()
        .expect("a C compiler is needed (cc, or what CC names)");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let output = Command::new(&binary).output().unwrap();
    assert!(output.status.success());
    std::fs::remove_file(source).unwrap();
    std::fs::remove_file(binary).unwrap();

    let mut found: Vec<u64> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| line.parse().unwrap())
        .collect();
    let text = ["device.h", "vport.h"]
        .map(|name| std::fs::read_to_string(headers.join(name)).unwrap())
        .concat();
    for (name, value) in IN_TEXT {
        expected.push(((*name).to_owned(), (*value).into()));
        found.push(in_text(&text, name).unwrap_or_else(|| unreachable!("{name} is not there")));
    }
    assert_eq!(found.len(), expected.len());
    let faults: Vec<String> = expected
        .iter()
        .zip(&found)
        .filter(|((_, here), there)| here != *there)
        .map(|((what, here), there)| format!("{what}: {here} here, {there} in the header"))
        .collect();
    println!("{} numbers compared", expected.len());
    assert!(faults.is_empty(), "{} differences:\n{}", faults.len(), faults.join("\n"));
}
