//! Answers, byte by byte: the numbers here are offsets of the interface, not the code's tables.

use super::{Call, Firmware};
use crate::description::{Counters, Description, Lag};
use crate::log::Remarks;
use crate::opcode;

/// A firmware with its description.
struct Asked {
    description: Description,
    firmware: Firmware,
    remarks: Remarks,
}

impl Asked {
    fn new(description: Description) -> Self {
        Self { description, firmware: Firmware::default(), remarks: Remarks::default() }
    }

    fn send(&mut self, input: &[u8], output_len: usize) -> Vec<u8> {
        let call = Call { description: &self.description, input, output_len };
        self.firmware.execute(&call, &mut self.remarks)
    }

    /// The output of a command; it must succeed.
    fn ask(&mut self, opcode: u16, op_mod: u16, arguments: u64, output_len: usize) -> Vec<u8> {
        let output = self.send(&input(opcode, op_mod, arguments), output_len);
        assert_eq!(output[0], 0, "status of {opcode:#x}: {:?}", self.remarks.all());
        assert_eq!(output.len(), output_len);
        output
    }

    /// The status and the syndrome of a command that must fail.
    fn refused(&mut self, opcode: u16, op_mod: u16, arguments: u64, output_len: usize) -> u8 {
        let output = self.send(&input(opcode, op_mod, arguments), output_len);
        assert_ne!(output[0], 0, "{opcode:#x}");
        assert_ne!(output[4..8], [0; 4], "no syndrome");
        assert!(output[8..].iter().all(|byte| *byte == 0));
        output[0]
    }
}

fn input(opcode: u16, op_mod: u16, arguments: u64) -> Vec<u8> {
    let mut input = vec![0; 32];
    input[0..2].copy_from_slice(&opcode.to_be_bytes());
    input[6..8].copy_from_slice(&op_mod.to_be_bytes());
    input[8..16].copy_from_slice(&arguments.to_be_bytes());
    input
}

/// Arguments: another vport, or its function.
fn other(number: u16) -> u64 {
    1 << 63 | u64::from(number) << 32
}

/// Arguments: a port.
fn port(number: u8) -> u64 {
    u64::from(number) << 48
}

fn word<const N: usize>(output: &[u8], at: usize) -> [u8; N] {
    output[at..at + N].try_into().unwrap()
}

fn u16_at(output: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(word(output, at))
}

fn u64_at(output: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(word(output, at))
}

const GENERAL: (u16, usize) = (opcode::QUERY_HCA_CAP, 4112);

#[test]
fn general_capabilities() {
    let (opcode, len) = GENERAL;
    let mut ib = Asked::new(Description::infiniband(2));
    ib.description.vhca_id = 0x1234;
    for port in &mut ib.description.ports {
        port.gid_table_len = 64;
    }
    let output = ib.ask(opcode, 1, 0, len);
    assert_eq!(u16_at(&output, 16 + 6), 0x1234); // vhca_id
    assert_eq!(u16_at(&output, 16 + 0x2e), 3); // 8 GIDs shifted by this
    assert_eq!(u16_at(&output, 16 + 0x32), 0); // 128 P_Keys
    assert_eq!(output[16 + 0x34], 0b0010_0000); // only ib_virt
    assert_eq!(output[16 + 0x36] & 3, 0); // InfiniBand
    assert_eq!(output[16 + 0x37], 2); // ports
    assert_eq!(output[16 + 0x5c..16 + 0x60], [0, 0, 0, 240]); // max_qp_mcg
    assert_eq!(output[16 + 0x8c] & 0x1f, 10); // log_max_uctx
    assert_eq!(output[16 + 0x9c..16 + 0xa0], 156_250_u32.to_be_bytes());
    assert_eq!(output[16 + 0xd4..16 + 0xd8], [0, 0, 0, 3]); // uctx_cap
    assert_eq!(ib.ask(opcode, 0, 0, len), output, "the maximum is the current");

    let roce = Asked::new(Description::roce()).ask(opcode, 1, 0, len);
    assert_eq!(roce[16 + 0x34], 0b0010_0010); // nic_flow_table too
    assert_eq!(roce[16 + 0x36] & 3, 1); // Ethernet
    assert_eq!(roce[16 + 0x43] & 0x0c, 0x0c); // eth_net_offloads, roce

    let manager = Asked::new(Description::switchdev()).ask(opcode, 1, 0, len);
    assert_eq!(manager[16 + 0x34], 0b1010_0011); // and both managers
    assert_eq!(manager[16 + 0x43] & 0x0c, 0x08); // no roce
}

#[test]
fn capabilities_are_set() {
    let (opcode, len) = GENERAL;
    let mut asked = Asked::new(Description::roce());
    let mut set = asked.ask(opcode, 1, 0, len);
    set[16 + 0x48] |= 0x80;
    set[..16].copy_from_slice(&input(opcode::SET_HCA_CAP, 1, 0)[..16]);
    assert_eq!(asked.send(&set, 16)[0], 0);
    asked.description.vhca_id = 7;
    let now = asked.ask(opcode, 1, 0, len);
    assert_eq!(now[16 + 0x48], 0x80);
    assert_eq!(u16_at(&now, 16 + 6), 7, "what it is follows the description all the same");
    // The next load of a driver begins with this.
    asked.ask(opcode::ENABLE_HCA, 0, 0, 12);
    assert_eq!(asked.ask(opcode, 1, 0, len)[16 + 0x48], 0);
}

#[test]
fn other_groups_of_capabilities() {
    let (opcode, len) = GENERAL;
    let mut roce = Asked::new(Description::roce());
    roce.description.ports[0].gid_table_len = 0x123;
    let group = roce.ask(opcode, 4 << 1, 0, len);
    assert_eq!(group[16 + 0x11] & 0xf, 6);
    assert_eq!(group[16 + 0x13], 5);
    assert_eq!(u16_at(&group, 16 + 0x16), 4791);
    assert_eq!(u16_at(&group, 16 + 0x1e), 0x123);
    assert_eq!(roce.ask(opcode, 0x40 << 1, 0, len), vec![0; len]);
    assert_eq!(roce.refused(opcode, 0x41 << 1, 0, len), 3);
    assert_eq!(roce.refused(opcode, 1, 0, len - 1), 0x51);

    let mut ecpf = Asked::new(Description::embedded_cpu(2));
    ecpf.description.eswitch.uplink_icm = (0x1122_3344_5566_7788, 9);
    let tables = ecpf.ask(opcode, 8 << 1 | 1, 0, len);
    assert_eq!(tables[16], 3);
    assert_eq!(tables[16 + 64], 0b1001_1110);
    assert_eq!([tables[16 + 66], tables[16 + 130], tables[16 + 194]], [0x40, 0, 0]);
    assert_eq!(u64_at(&tables, 16 + 784), 0x1122_3344_5566_7788);
    assert_eq!(u64_at(&tables, 16 + 792), 9);
    assert_eq!(ecpf.ask(opcode, 9 << 1, 0, len)[16 + 3], 0b0100_0010);
    ecpf.description = Description::switchdev();
    assert_eq!(ecpf.ask(opcode, 9 << 1, 0, len)[16 + 3], 0b0000_0010);
}

#[test]
fn functions_behind_vports() {
    let (opcode, len) = GENERAL;
    let mut ecpf = Asked::new(Description::embedded_cpu(2));
    let mut vhca_id = |number| u16_at(&ecpf.ask(opcode, 1, other(number), len), 16 + 6);
    assert_eq!([vhca_id(0), vhca_id(2), vhca_id(0xffff)], [0x100, 0x102, 0xff]);
    assert_eq!(ecpf.refused(opcode, 1, other(3), len), 3);
    assert_eq!(ecpf.refused(opcode, 1, other(0xfffe), len), 3);
    ecpf.description.mode = crate::description::Mode::EmbeddedCpu { host_vfs: 2, own_vport: true };
    assert_eq!(u16_at(&ecpf.ask(opcode, 1, other(0xfffe), len), 16 + 6), 0xfe);
    assert_eq!(Asked::new(Description::roce()).refused(opcode, 1, other(0), len), 3);
}

#[test]
fn the_function_itself() {
    let mut asked = Asked::new(Description::infiniband(1));
    let adapter = asked.ask(opcode::QUERY_ADAPTER, 0, 0, 272);
    assert_eq!(adapter[16 + 25..16 + 28], [0, 0x02, 0xc9]);
    assert_eq!(&adapter[256..], b"MT_0000000224\0\0\0");

    let issi = asked.ask(opcode::QUERY_ISSI, 0, 0, 112);
    assert_eq!((u16_at(&issi, 10), word(&issi, 108)), (0, [0, 0, 0, 3]));
    asked.ask(opcode::SET_ISSI, 0, 1 << 32, 16);
    assert_eq!(u16_at(&asked.ask(opcode::QUERY_ISSI, 0, 0, 112), 10), 1);
    assert_eq!(asked.refused(opcode::SET_ISSI, 0, 2 << 32, 16), 3);

    assert_eq!(asked.ask(opcode::QUERY_LAG, 0, 0, 16), [0; 16]);
    asked.description.lag = Lag { state: 5, tx_remap_affinity: (1, 2) };
    assert_eq!(asked.ask(opcode::QUERY_LAG, 0, 0, 16)[8..], [0, 0, 0, 5, 0, 0, 2, 1]);
    assert_eq!(asked.refused(opcode::QUERY_ESW_FUNCTIONS, 0, 0, 128), 2);
    assert_eq!(asked.refused(opcode::QUERY_ESW_VPORT_CONTEXT, 0, 0, 272), 2);
}

#[test]
fn pages_come_back() {
    let mut asked = Asked::new(Description::roce());
    assert_eq!(asked.ask(opcode::QUERY_PAGES, 1, 0, 16)[12..], [0, 0, 0, 8]);
    assert_eq!(asked.ask(opcode::QUERY_PAGES, 2, 0, 16)[12..], [0, 0, 0, 32]);
    let mut give = input(opcode::MANAGE_PAGES, 1, 3);
    assert_eq!(asked.send(&give, 16)[0], 0x50, "two pages instead of three");
    give.extend([0xab; 8]);
    assert_eq!(asked.send(&give, 16)[0], 0);
    let some = asked.ask(opcode::MANAGE_PAGES, 2, 768, 16 + 2 * 8);
    assert_eq!(some[8..12], [0, 0, 0, 2], "as many as there is room for");
    let rest = asked.ask(opcode::MANAGE_PAGES, 2, 768, 6160);
    assert_eq!(rest[8..12], [0, 0, 0, 1]);
    assert_eq!(rest[16..24], [0xab; 8]);
    let mut all = input(opcode::MANAGE_PAGES, 1, 40);
    all.truncate(16);
    all.extend([0xcd; 40 * 8]);
    assert_eq!(asked.send(&all, 16)[0], 0);
    assert_eq!(asked.send(&give, 16)[0], 3, "more than were asked for");
}

#[test]
fn an_infiniband_port() {
    let mut asked = Asked::new(Description::infiniband(2));
    let second = &mut asked.description.ports[1];
    (second.state, second.phys_state, second.lmc, second.sm_sl) = (2, 3, 5, 9);
    (second.cap_mask, second.sm_lid) = (0x1234_5678, 0xbeef);
    let (guid, lid) = (second.guid, second.lid);
    let context = asked.ask(opcode::QUERY_HCA_VPORT_CONTEXT, 0, port(2), 528);
    assert_eq!(context[16 + 0x22] >> 4, 3);
    assert_eq!(context[16 + 0x23], 0x22);
    assert_eq!(u64_at(&context, 16 + 0x28), asked.description.system_image_guid);
    assert_eq!(u64_at(&context, 16 + 0x30), guid);
    assert_eq!(u64_at(&context, 16 + 0x38), asked.description.node_guid);
    assert_eq!(word(&context, 16 + 0x40), [0x12, 0x34, 0x56, 0x78]);
    assert_eq!(u16_at(&context, 16 + 0x60), lid);
    assert_eq!(context[16 + 0x63], 5 << 5);
    assert_eq!(u16_at(&context, 16 + 0x64), 0xbeef);
    assert_eq!(context[16 + 0x66], 9 << 4);
    for wrong in [0, 3] {
        let status = asked.refused(opcode::QUERY_HCA_VPORT_CONTEXT, 0, port(wrong), 528);
        assert_eq!(status, 3, "port {wrong}");
    }
    assert_eq!(asked.refused(opcode::QUERY_HCA_VPORT_CONTEXT, 0, other(1), 528), 3);
}

#[test]
fn the_tables_of_an_infiniband_port() {
    let mut asked = Asked::new(Description::infiniband(1));
    let gids = asked.description.ports[0].gids.clone();
    let one = asked.ask(opcode::QUERY_HCA_VPORT_GID, 0, 2, 32);
    assert_eq!((u16_at(&one, 12), word(&one, 16)), (1, gids[2].1));
    let empty = asked.ask(opcode::QUERY_HCA_VPORT_GID, 0, 7, 32);
    assert_eq!((u16_at(&empty, 12), word(&empty, 16)), (1, [0; 16]));
    assert_eq!(asked.refused(opcode::QUERY_HCA_VPORT_GID, 0, 8, 32), 0x0a);
    let all = asked.ask(opcode::QUERY_HCA_VPORT_GID, 0, 0xffff, 16 + 16 * 8);
    assert_eq!((u16_at(&all, 12), word(&all, 16 + 16)), (8, gids[1].1));

    let one = asked.ask(opcode::QUERY_HCA_VPORT_PKEY, 0, 1, 20);
    assert_eq!(word(&one, 16), [0, 0, 0x80, 0x01]);
    assert_eq!(asked.ask(opcode::QUERY_HCA_VPORT_PKEY, 0, 127, 20), [0; 20]);
    assert_eq!(asked.refused(opcode::QUERY_HCA_VPORT_PKEY, 0, 128, 20), 0x0a);
    let all = asked.ask(opcode::QUERY_HCA_VPORT_PKEY, 0, 0xffff, 16 + 4 * 128);
    assert_eq!(word(&all, 16), [0, 0, 0xff, 0xff, 0, 0, 0x80, 0x01, 0, 0, 0, 0]);
}

#[test]
fn an_ethernet_port() {
    let mut asked = Asked::new(Description::roce());
    asked.description.ports[0].mac = [2, 3, 4, 5, 6, 7];
    let context = asked.ask(opcode::QUERY_NIC_VPORT_CONTEXT, 0, 5 << 5, 272);
    assert_eq!(context[16 + 3], 1); // roce_en
    assert_eq!(u16_at(&context, 16 + 0x26), 1522);
    assert_eq!(u64_at(&context, 16 + 0x28), asked.description.system_image_guid);
    assert_eq!(u64_at(&context, 16 + 0x30), asked.description.ports[0].guid);
    assert_eq!(u64_at(&context, 16 + 0x38), asked.description.node_guid);
    assert_eq!(word(&context, 16 + 0xf4), [0, 0, 2, 3, 4, 5, 6, 7]);

    assert_eq!(asked.ask(opcode::QUERY_VPORT_STATE, 0, 0, 16)[15], 0x11);
    asked.description.ports[0].state = 1;
    assert_eq!(asked.ask(opcode::QUERY_VPORT_STATE, 2, 0, 16)[15], 0x10);
    assert_eq!(asked.refused(opcode::QUERY_VPORT_STATE, 3, 0, 16), 3);
    assert_eq!(asked.refused(opcode::QUERY_VPORT_STATE, 1, other(1), 16), 3);
}

#[test]
fn vports_of_the_eswitch() {
    let mut asked = Asked::new(Description::embedded_cpu(1));
    asked.description.eswitch.spare_vfs = 15;
    let functions = asked.ask(opcode::QUERY_ESW_FUNCTIONS, 0, 0, 128);
    assert_eq!((u16_at(&functions, 16 + 2), u16_at(&functions, 16 + 4)), (1, 16));
    let context = asked.ask(opcode::QUERY_ESW_VPORT_CONTEXT, 0, other(1), 272);
    assert_eq!(u64_at(&context, 16 + 240), 0x5555_0000_0001_0000);
    assert_eq!(u64_at(&context, 16 + 248), 0x6666_0000_0001_0000);
    assert_eq!(asked.refused(opcode::QUERY_ESW_VPORT_CONTEXT, 0, other(2), 272), 3);
    let host = asked.ask(opcode::QUERY_NIC_VPORT_CONTEXT, 0, other(1), 272);
    assert_eq!(u64_at(&host, 16 + 0xf4), 0, "nobody gave it a MAC address");
}

#[test]
fn roce_addresses_are_those_that_were_set() {
    let mut asked = Asked::new(Description::roce());
    let mut set = input(opcode::SET_ROCE_ADDRESS, 0, 3 << 48);
    set.truncate(16);
    set.extend([0xcd; 32]);
    assert_eq!(asked.send(&set, 16)[0], 0);
    let found = asked.ask(opcode::QUERY_ROCE_ADDRESS, 0, 3 << 48, 48);
    assert_eq!(word(&found, 16), [0xcd; 32]);
    assert_eq!(asked.ask(opcode::QUERY_ROCE_ADDRESS, 0, 255 << 48, 48), [0; 48]);
    assert_eq!(asked.refused(opcode::QUERY_ROCE_ADDRESS, 0, 256 << 48, 48), 0x0a);
    set[9] = 0;
    set[8] = 1;
    assert_eq!(asked.send(&set, 16)[0], 0x0a);
    let mut ib = Asked::new(Description::infiniband(1));
    assert_eq!(ib.refused(opcode::QUERY_ROCE_ADDRESS, 0, 0, 48), 2);
}

#[test]
fn counters() {
    let mut asked = Asked::new(Description::infiniband(2));
    asked.description.ports[1].counters = Counters {
        received_errors: (1, 2),
        received_ib_multicast: (3, 4),
        transmitted_eth_multicast: (5, 6),
        ..Counters::default()
    };
    let output = asked.ask(opcode::QUERY_VPORT_COUNTER, 0, port(2), 528);
    assert_eq!((u64_at(&output, 16), u64_at(&output, 24)), (1, 2));
    assert_eq!((u64_at(&output, 80), u64_at(&output, 88)), (3, 4));
    assert_eq!((u64_at(&output, 192), u64_at(&output, 200)), (5, 6));
    assert_eq!(asked.ask(opcode::QUERY_VPORT_COUNTER, 0, port(1), 528), vec![0; 528]);
    let short = input(opcode::QUERY_VPORT_COUNTER, 0, port(1));
    assert_eq!(asked.send(&short[..16], 528)[0], 0x50);
}

#[test]
fn registers() {
    let mut register = input(opcode::ACCESS_REG, 1, 0);
    register.resize(16 + 64, 0);
    register[17] = 2;
    let mut asked = Asked::new(Description::infiniband(2));
    let mut read = |id: u16| {
        register[10..12].copy_from_slice(&id.to_be_bytes());
        asked.send(&register, 80)
    };
    let pmtu = read(0x5003);
    assert_eq!((pmtu[0], pmtu[17]), (0, 2));
    assert_eq!([4, 8, 12].map(|at| u16_at(&pmtu, 16 + at)), [4096; 3]);
    let ptys = read(0x5004);
    assert_eq!((u16_at(&ptys, 16 + 40), u16_at(&ptys, 16 + 42)), (2, 0x20));
    assert_eq!(read(0x5006)[16 + 3] & 0xf, 1);
    assert_eq!(read(0x500f)[16 + 7], 4);
    assert_eq!(read(0x7004)[17], 2, "what was sent");
    register[17] = 3;
    register[10..12].copy_from_slice(&0x5004_u16.to_be_bytes());
    assert_eq!(asked.send(&register, 80)[0], 3);
    assert_eq!(asked.remarks.all().len(), 1, "the driver was refused");

    let mut roce = Asked::new(Description::roce());
    register[17] = 1;
    let ptys = roce.send(&register, 80);
    assert_eq!([12, 24, 36].map(|at| word(&ptys, 16 + at)), [[0, 0x10, 0, 0]; 3]);
}

#[test]
fn numbers_of_objects() {
    let mut asked = Asked::new(Description::roce());
    let mut create = |opcode| u32::from_be_bytes(word(&asked.ask(opcode, 0, 0, 16), 8));
    assert_eq!([create(0x802), create(0x802), create(0x802)], [8, 9, 10]);
    assert_eq!([create(0x800), create(0xa04)], [1, 1]);
    assert_eq!([create(0x705), create(0x90c)], [1, 2], "one table of the driver's");
    asked.ask(0x803, 0, 9 << 32, 16);
    assert_eq!(asked.refused(0x803, 0, 9 << 32, 16), 5, "twice");
    assert_eq!(asked.refused(0x803, 0, 11 << 32, 16), 5, "never made");
    assert_eq!(asked.ask(0x802, 0, 0, 16)[11], 9, "used again");
    for _ in 0..255 {
        asked.ask(0x771, 0, 0, 16);
    }
    assert_eq!(asked.refused(0x771, 0, 0, 16), 0x0f, "8 bits");
}

#[test]
fn unknown_opcodes() {
    let mut asked = Asked::new(Description::roce());
    assert_eq!(asked.ask(0xb07, 0, 0, 16), [0; 16], "the driver");
    assert!(asked.remarks.all()[0].contains("0xb07"), "{:?}", asked.remarks.all());
    let mut from_user = input(0xb08, 0, 0);
    from_user[3] = 1;
    assert_eq!(asked.send(&from_user, 16)[0], 2);
    assert_eq!(asked.remarks.all().len(), 1, "a user may");
    assert_eq!(asked.send(&[], 16)[0], 0x50);
    assert_eq!(asked.ask(0x80d, 0, 0, 16), [0; 16]);
    assert_eq!(asked.send(&[], 0), [0_u8; 0]);
}

#[test]
fn the_host_s_functions_do_not_reset_the_embedded_cpu() {
    let mut asked = Asked::new(Description::embedded_cpu(1));
    asked.ask(opcode::SET_ISSI, 0, 1 << 32, 16);
    asked.ask(opcode::ENABLE_HCA, 0, 0, 12);
    assert_eq!(u16_at(&asked.ask(opcode::QUERY_ISSI, 0, 0, 112), 10), 1);
    asked.ask(opcode::ENABLE_HCA, 0, 1 << 63, 12);
    assert_eq!(u16_at(&asked.ask(opcode::QUERY_ISSI, 0, 0, 112), 10), 0);
}
