//! mlx5's own requests: how they are encoded, how answers are read, and an error for each way to fail.

use std::sync::{Arc, Mutex};

use nix::libc;
use proptest::prelude::*;
use rustix::io::Errno;
use uverbs::context::Context;
use uverbs::driver::DriverId;
use uverbs::error::Cause;
use uverbs::guid::Guid;
use uverbs::mlx5::devx::{
    self, CapabilityMode, DevxContext, FirmwareRefusal, HostPci, MacAddress, PortType, RoceVersion,
    Status, Vport, VportAdminState, VportLinkState, VportSide,
};
use uverbs::mlx5::port::VportNumber;
use uverbs::mlx5::{query_port, query_port_into};
use uverbs::simulated::{SimulatedKernel, UserMemory};
use uverbs::uapi::device::method;

use crate::kernel::{Attribute, attributes, mark_written, value};

const MLX5_METHOD: u16 = 0x1000;
const DEVX: u16 = 0x1000;

/// What the device does with a request of the driver's own.
#[derive(Clone, Debug)]
enum Answer {
    /// Writes these bytes.
    Bytes(Vec<u8>),
    /// Writes these bytes, if any, says so, and fails.
    Refusal(Vec<u8>, Errno),
    /// Succeeds and does not write.
    Silence,
}

/// A device with the given answer to everything of mlx5's own, which keeps what it was sent.
#[derive(Debug)]
struct Device {
    answer: Answer,
    /// What the core's queries fail with, if they do.
    core: Option<Errno>,
    sent: Arc<Mutex<Vec<Vec<u8>>>>,
}

fn find(list: &[Attribute], id: u16) -> &Attribute {
    list.iter().find(|attribute| attribute.id == id).unwrap()
}

impl SimulatedKernel for Device {
    fn ioctl(&self, request: &mut [u8], memory: &UserMemory<'_>) -> Result<(), Errno> {
        let object = u16::from_ne_bytes([request[2], request[3]]);
        let (asked, list) = attributes(request);
        assert_eq!(request[16..20], 1u32.to_ne_bytes(), "mlx5's driver id");
        match (object, asked) {
            (0, method::GET_CONTEXT) => return Ok(()),
            // How a device is asked whether it is there: for a GID of a port that cannot be.
            (0, method::QUERY_GID_ENTRY) => {
                assert_eq!(value(&list, 0), u64::from(u32::MAX));
                return Err(self.core.unwrap_or(Errno::INVAL));
            }
            (0 | DEVX, MLX5_METHOD) => {}
            other => unreachable!("not a request of mlx5's: {other:?}"),
        }
        assert_eq!(list.len(), 2);
        let input = find(&list, 0x1000);
        let sent = match input.len {
            0..=8 => input.data.to_ne_bytes()[..input.len].to_vec(),
            _ => memory.read(input.data, input.len)?,
        };
        self.sent.lock().unwrap().push(sent);
        let output = find(&list, 0x1001);
        let write = |bytes: &[u8]| {
            let len = bytes.len().min(output.len);
            memory.write(output.data, &bytes[..len])
        };
        match &self.answer {
            Answer::Bytes(bytes) => {
                write(bytes)?;
                mark_written(&mut request[24 + 16..]);
                Ok(())
            }
            Answer::Refusal(bytes, errno) => {
                if !bytes.is_empty() {
                    write(bytes)?;
                    mark_written(&mut request[24 + 16..]);
                }
                Err(*errno)
            }
            Answer::Silence => Ok(()),
        }
    }
}

type Sent = Arc<Mutex<Vec<Vec<u8>>>>;

fn device(answer: Answer, core: Option<Errno>) -> (Box<Device>, Sent) {
    let sent = Sent::default();
    (Box::new(Device { answer, core, sent: Arc::clone(&sent) }), sent)
}

fn plain(answer: Answer) -> (Context, Sent) {
    let (device, sent) = device(answer, None);
    (Context::simulated("mlx5_0", 1..=2, DriverId::MLX5, device).unwrap(), sent)
}

fn with_devx(answer: Answer) -> (DevxContext, Sent) {
    let (device, sent) = device(answer, None);
    (DevxContext::simulated("mlx5_0", 1..=2, device).unwrap(), sent)
}

/// Bytes that are zero but for these, each at its place.
fn bytes(len: usize, parts: &[(usize, &[u8])]) -> Vec<u8> {
    let mut bytes = vec![0; len];
    for (at, part) in parts {
        bytes[*at..at + part.len()].copy_from_slice(part);
    }
    bytes
}

fn port_answer(flags: u64) -> Vec<u8> {
    bytes(
        40,
        &[
            (0, &flags.to_ne_bytes()),
            (8, &0xfffeu16.to_ne_bytes()),
            (10, &0x101u16.to_ne_bytes()),
            (12, &0x2au16.to_ne_bytes()),
            (16, &0x1111u64.to_ne_bytes()),
            (24, &0x2222u64.to_ne_bytes()),
            (32, &0x3_0000u32.to_ne_bytes()),
            (36, &0xffff_0000u32.to_ne_bytes()),
        ],
    )
}

#[test]
fn each_field_is_told_by_its_flag_alone() {
    for flag in 0..6 {
        let (context, sent) = plain(Answer::Bytes(port_answer(1 << flag)));
        let port = query_port(&context, 2).unwrap();
        // Four bytes, not the eight of the core's constants.
        assert_eq!(*sent.lock().unwrap(), [2u32.to_ne_bytes()]);
        let told = [
            port.vport().is_some(),
            port.vport_vhca_id().is_some(),
            port.vport_steering_icm_rx().is_some(),
            port.vport_steering_icm_tx().is_some(),
            port.reg_c0().is_some(),
            port.esw_owner_vhca_id().is_some(),
        ];
        for (place, told) in told.into_iter().enumerate() {
            assert_eq!(told, place == flag, "flag {flag}, field {place}");
        }
    }
    let (context, _) = plain(Answer::Bytes(port_answer(0x8000_0000_0000_003f)));
    let port = query_port(&context, 1).unwrap();
    assert_eq!(port.flags(), 0x8000_0000_0000_003f);
    assert_eq!(port.vport(), Some(VportNumber::ECPF));
    assert_eq!((port.vport_vhca_id(), port.esw_owner_vhca_id()), (Some(0x101), Some(0x2a)));
    assert_eq!(port.vport_steering_icm_rx(), Some(0x1111));
    assert_eq!(port.vport_steering_icm_tx(), Some(0x2222));
    assert_eq!(port.reg_c0().map(|reg| (reg.value, reg.mask)), Some((0x3_0000, 0xffff_0000)));
    assert_eq!(port.as_abi().reg_c0_value, 0x3_0000);
}

#[test]
fn each_way_to_get_no_port_is_an_error_of_its_own() {
    let cause = |errno, port, core| {
        let (device, _) = device(Answer::Refusal(Vec::new(), errno), core);
        let context = Context::simulated("mlx5_0", 1..=2, DriverId::MLX5, device).unwrap();
        let error = query_port(&context, port).unwrap_err();
        assert_eq!(error.errno(), errno.raw_os_error(), "{error}");
        assert!(error.to_string().starts_with("mlx5_0: query mlx5 port "), "{error}");
        error.cause().clone()
    };
    assert_eq!(cause(Errno::PROTONOSUPPORT, 1, None), Cause::UnknownToKernel);
    assert_eq!(cause(Errno::OPNOTSUPP, 1, None), Cause::NoRepresentor);
    assert_eq!(cause(Errno::INVAL, 3, None), Cause::NoSuchPort);
    assert_eq!(cause(Errno::INVAL, 0, None), Cause::NoSuchPort);
    assert_eq!(cause(Errno::INVAL, 2, None), Cause::Os(libc::EINVAL));
    // What is EIO of the firmware's, and what is the device's end.
    assert_eq!(cause(Errno::IO, 1, None), Cause::Os(libc::EIO));
    assert_eq!(cause(Errno::IO, 1, Some(Errno::IO)), Cause::DeviceGone(libc::EIO));
}

#[test]
fn another_driver_s_device_is_asked_nothing() {
    #[derive(Debug)]
    struct OnlyContext;
    impl SimulatedKernel for OnlyContext {
        fn ioctl(&self, request: &mut [u8], _: &UserMemory<'_>) -> Result<(), Errno> {
            assert_eq!(attributes(request).0, method::GET_CONTEXT);
            Ok(())
        }
    }
    let context = Context::simulated("rxe0", 1..=1, DriverId::RXE, Box::new(OnlyContext)).unwrap();
    let nop = devx::general_cmd(&context, &input(0x80d), &mut [0; 16]);
    for error in [query_port(&context, 1).unwrap_err(), nop.unwrap_err()] {
        assert_eq!(*error.cause(), Cause::OtherDriver(DriverId::RXE));
        assert_eq!(error.errno(), Errno::OPNOTSUPP.raw_os_error());
        assert!(error.to_string().contains("the device's driver is rxe, not mlx5"), "{error}");
    }
}

#[test]
fn a_port_is_written_into_the_caller_s_memory() {
    let (context, _) = plain(Answer::Bytes(port_answer(0x3f)));
    let mut answer = [0xee; 64];
    query_port_into(&context, 1, &mut answer[8..48]).unwrap();
    assert_eq!(answer[8..48], port_answer(0x3f));
    assert_eq!((&answer[..8], &answer[48..]), (&[0xee; 8][..], &[0xee; 16][..]));
    let (context, _) = plain(Answer::Silence);
    let error = query_port(&context, 1).unwrap_err();
    assert!(matches!(error.cause(), Cause::Malformed(_)), "{error}");
}

#[test]
fn a_refusal_carries_status_name_and_syndrome() {
    let refusal = bytes(16, &[(0, &[3]), (4, &0x5d_1234u32.to_be_bytes())]);
    for answer in [Answer::Refusal(refusal.clone(), Errno::REMOTEIO), Answer::Bytes(refusal)] {
        let (context, _) = with_devx(answer);
        let error = devx::nop(&context).unwrap_err();
        let expected = FirmwareRefusal::new(Status::BAD_PARAM, 0x5d_1234);
        assert_eq!(*error.cause(), Cause::Firmware(expected));
        assert_eq!(error.errno(), Errno::REMOTEIO.raw_os_error());
        assert_eq!(
            error.to_string(),
            "mlx5_0: firmware command NOP: the firmware refused it: bad parameter (status 0x3, \
             syndrome 0x5d1234) (errno 121)"
        );
    }
    let (context, _) = with_devx(Answer::Refusal(vec![0xee; 16], Errno::REMOTEIO));
    let error = devx::nop(&context).unwrap_err();
    assert!(error.to_string().contains("unknown(238) (status 0xee"), "{error}");
    // Linux 5.10 returns only an errno.
    let (context, _) = with_devx(Answer::Refusal(Vec::new(), Errno::INVAL));
    let error = devx::nop(&context).unwrap_err();
    assert_eq!(*error.cause(), Cause::Os(libc::EINVAL));
    assert!(error.to_string().contains("before Linux 6.1"), "{error}");
}

#[test]
fn an_error_names_what_the_command_was_about() {
    let refusal = bytes(16, &[(0, &[2])]);
    let (context, _) = with_devx(Answer::Refusal(refusal, Errno::REMOTEIO));
    let about = |error: uverbs::Error| {
        let text = error.to_string();
        let (_, text) = text.split_once("firmware command ").unwrap();
        text.split_once(": the firmware refused").unwrap().0.to_owned()
    };
    let third = Vport::Other(VportNumber(3));
    for (error, expected) in [
        (devx::query_lag(&context).err(), "QUERY_LAG"),
        (devx::query_vport_counter(&context, 0, Vport::Own).err(), "QUERY_VPORT_COUNTER"),
        (
            devx::query_vport_counter(&context, 2, third).err(),
            "QUERY_VPORT_COUNTER of vport 3, port 2",
        ),
        (
            devx::query_hca_vport_context(&context, 1, Vport::Own).err(),
            "QUERY_HCA_VPORT_CONTEXT of port 1",
        ),
        (
            devx::query_nic_vport_context(&context, third).err(),
            "QUERY_NIC_VPORT_CONTEXT of vport 3",
        ),
        (
            devx::query_esw_vport_context(&context, Vport::Other(VportNumber::ECPF)).err(),
            "QUERY_ESW_VPORT_CONTEXT of vport ecpf",
        ),
        (
            devx::query_hca_cap(&context, CapabilityMode::Current, third).err(),
            "QUERY_HCA_CAP of vport 3",
        ),
        (devx::query_roce_address(&context, 7, 0).err(), "QUERY_ROCE_ADDRESS of index 7"),
        (devx::query_roce_address(&context, 7, 1).err(), "QUERY_ROCE_ADDRESS of port 1, index 7"),
        (devx::general_cmd(&context, &[0x0b, 0x55, 0], &mut [0; 16]).err(), "0xb55"),
        (devx::general_cmd(&context, &[0x0b], &mut [0; 16]).err(), "0x0"),
        (devx::general_cmd(&context, &input(0xb55), &mut [0; 16]).err(), "0xb55"),
    ] {
        assert_eq!(about(error.unwrap()), expected);
    }
}

/// A command without arguments.
fn input(opcode: u16) -> Vec<u8> {
    bytes(16, &[(0, &opcode.to_be_bytes())])
}

#[test]
fn eio_of_a_device_that_is_there_is_not_its_end() {
    #[derive(Debug)]
    struct Ailing(Errno);
    impl SimulatedKernel for Ailing {
        fn ioctl(&self, request: &mut [u8], _: &UserMemory<'_>) -> Result<(), Errno> {
            match attributes(request).0 {
                method::QUERY_GID_ENTRY => Err(self.0),
                _ => Err(Errno::IO),
            }
        }
    }
    let cause =
        |probe| DevxContext::simulated("mlx5_0", 1..=1, Box::new(Ailing(probe))).unwrap_err();
    assert_eq!(*cause(Errno::INVAL).cause(), Cause::Os(libc::EIO));
    assert!(cause(Errno::INVAL).to_string().contains("the kernel's log"));
    assert_eq!(*cause(Errno::IO).cause(), Cause::DeviceGone(libc::EIO));
}

#[test]
fn what_the_memory_held_before_is_no_refusal() {
    let (context, _) = with_devx(Answer::Refusal(Vec::new(), Errno::REMOTEIO));
    let mut output = [0xee; 16];
    let error = devx::general_cmd(&context, &[0; 16], &mut output).unwrap_err();
    assert_eq!(*error.cause(), Cause::Os(libc::EREMOTEIO));
    assert_eq!(output, [0xee; 16]);
}

#[test]
fn only_an_answer_is_written_to_the_output() {
    for errno in [Errno::INVAL, Errno::IO, Errno::TIMEDOUT, Errno::NXIO] {
        let (context, _) = with_devx(Answer::Refusal(Vec::new(), errno));
        let mut output = [0xee; 16];
        devx::general_cmd(&context, &[0; 16], &mut output).unwrap_err();
        assert_eq!(output, [0xee; 16], "{errno}");
    }
}

#[test]
fn a_command_that_wants_devx_says_so() {
    let (context, _) = plain(Answer::Refusal(Vec::new(), Errno::INVAL));
    let error = devx::general_cmd(&context, &input(0x101), &mut [0; 16]).unwrap_err();
    assert_eq!((error.cause(), error.errno()), (&Cause::NeedsDevx, 22));
    assert!(error.to_string().contains("mlx5::devx::open"), "{error}");
    // The kernel answers this one on any context, so the refusal is another one's.
    let error = devx::query_esw_functions(&context).unwrap_err();
    assert_eq!(*error.cause(), Cause::Os(libc::EINVAL));
    // No context would do for this one, and for this length.
    let error = devx::general_cmd(&context, &input(0x101), &mut [0; 15]).unwrap_err();
    assert_eq!(*error.cause(), Cause::Os(libc::EINVAL));
    let error = devx::general_cmd(&context, &input(0x805), &mut [0; 16]).unwrap_err();
    assert_eq!(*error.cause(), Cause::Os(libc::EINVAL));
    assert!(!context.has_devx());
    assert!(with_devx(Answer::Silence).0.has_devx());
}

/// The input that was sent last.
fn last(sent: &Sent) -> Vec<u8> {
    sent.lock().unwrap().pop().unwrap()
}

const OTHER: Vport = Vport::Other(VportNumber(0x1234));

// Whole inputs, byte by byte, and answers with a value in every field.

#[test]
fn capabilities_as_the_firmware_has_them() {
    let capabilities = bytes(
        4112,
        &[
            (16 + 0x06, &[0x01, 0x02]),
            (16 + 0x2e, &[0, 2]),
            (16 + 0x30, &[0x40]),
            (16 + 0x32, &[0, 6]),
            (16 + 0x34, &[0x81]),
            (16 + 0x36, &[0xfd, 2]),
            (16 + 0x43, &[0x04]),
            (16 + 0x4f, &[0x12]),
            (16 + 0x8c, &[0xe3]),
            (16 + 0xc1, &[1, 2]),
            (16 + 0xd4, &[1, 2, 3, 4]),
        ],
    );
    let (context, log) = plain(Answer::Bytes(capabilities));
    let cap = devx::query_hca_cap(&context, CapabilityMode::Current, OTHER).unwrap();
    assert_eq!(last(&log), [1, 0, 0, 0, 0, 0, 0, 1, 0x80, 0, 0x12, 0x34, 0, 0, 0, 0]);
    assert_eq!((cap.vhca_id, cap.port_type, cap.num_ports), (0x102, PortType::ETH, 2));
    assert_eq!((cap.gid_table_len, cap.pkey_table_len), (Some(32), None));
    assert_eq!((cap.native_port_num, cap.num_vhca_ports), (1, 2));
    assert_eq!((cap.max_user_contexts, cap.uctx_cap), (8, 0x0102_0304));
    assert_eq!((cap.lag_master, cap.num_lag_ports), (true, 2));
    assert!(cap.roce && cap.vport_group_manager && cap.eswitch_manager && cap.vport_counters);
    assert!(!cap.ib_virt && !cap.eth_virt);

    let roce = bytes(
        4112,
        &[
            (16 + 0x11, &[0xf6, 0, 5]),
            (16 + 0x16, &4791u16.to_be_bytes()),
            (16 + 0x18, &0xfff0u16.to_be_bytes()),
            (16 + 0x1a, &0xc000u16.to_be_bytes()),
            (16 + 0x1e, &256u16.to_be_bytes()),
        ],
    );
    let (context, log) = plain(Answer::Bytes(roce));
    let cap = devx::query_roce_cap(&context, CapabilityMode::Maximum, Vport::Own).unwrap();
    assert_eq!(last(&log), [1, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert!(cap.v1 && cap.v2 && cap.ipv4 && cap.ipv6);
    assert_eq!((cap.destination_udp_port, cap.source_udp_ports), (4791, 0xc000..=0xfff0));
    assert_eq!(cap.address_table_len, 256);
}

#[test]
fn the_board_and_the_rest_of_a_device_as_the_firmware_has_them() {
    let adapter = bytes(272, &[(41, &[0, 2, 0xc9]), (46, &[3, 4]), (256, b"MT_0000000224\0")]);
    let (context, log) = with_devx(Answer::Bytes(adapter));
    let adapter = devx::query_adapter(&context).unwrap();
    assert_eq!(last(&log), [1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!((adapter.ieee_vendor_id, adapter.vsd_vendor_id), (0x2c9, 0x304));
    assert_eq!(adapter.psid, "MT_0000000224");

    let functions = bytes(128, &[(16, &[9, 1, 0, 2, 0, 16, 0, 3, 0, 0, 0, 4, 0, 0, 0, 5])]);
    let (context, log) = plain(Answer::Bytes(functions));
    let functions = devx::query_esw_functions(&context).unwrap();
    assert_eq!(last(&log)[..8], [7, 0x40, 0, 0, 0, 0, 0, 0]);
    assert_eq!((functions.host_number, functions.host_pf_enabled), (9, false));
    assert_eq!((functions.host_num_of_vfs, functions.host_total_vfs), (2, 16));
    assert_eq!(functions.host_pci, HostPci { bus: 3, device: 4, function: 5 });

    let (context, log) =
        with_devx(Answer::Bytes(bytes(16, &[(11, &[0xf9]), (13, &[3, 0xf2, 0xf1])])));
    let lag = devx::query_lag(&context).unwrap();
    assert_eq!(last(&log)[..2], [8, 0x42]);
    assert_eq!((lag.state, lag.active_ports), (1, 3));
    assert_eq!((lag.tx_remap_affinity_1, lag.tx_remap_affinity_2), (1, 2));

    let (context, log) = with_devx(Answer::Bytes(vec![0; 16]));
    devx::nop(&context).unwrap();
    assert_eq!(last(&log)[..2], [8, 0x0d]);
}

#[test]
fn vports_as_the_firmware_has_them() {
    let state = bytes(16, &[(12, &[1, 0x2c]), (15, &[0x21])]);
    let (context, log) = with_devx(Answer::Bytes(state));
    let state = devx::query_vport_state(&context, VportSide::Eswitch, OTHER).unwrap();
    assert_eq!(last(&log), [7, 0x50, 0, 0, 0, 0, 0, 1, 0x80, 0, 0x12, 0x34, 0, 0, 0, 0]);
    assert_eq!((state.admin_state, state.state), (VportAdminState::AUTO, VportLinkState::UP));
    assert_eq!(state.max_tx_speed.map(|rate| rate.0), Some(300));

    let nic = bytes(
        272,
        &[
            (19, &[0xfb]),
            (54, &1522u16.to_be_bytes()),
            (56, &[1; 8]),
            (64, &[2; 8]),
            (72, &[3; 8]),
            (120, &[0, 9]),
            (256, &[0xa0]),
            (260, &[0xee, 0xee, 2, 0xc9, 0, 0xaa, 0xbb, 1]),
        ],
    );
    let (context, log) = with_devx(Answer::Bytes(nic));
    let nic = devx::query_nic_vport_context(&context, Vport::Own).unwrap();
    assert_eq!(last(&log)[..12], [7, 0x54, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert!(nic.roce_enabled && nic.disable_uc_local_lb && !nic.disable_mc_local_lb);
    assert!(nic.promisc_uc && !nic.promisc_mc && nic.promisc_all);
    assert_eq!((nic.mtu, nic.qkey_violations), (1522, 9));
    assert_eq!(nic.permanent_address, MacAddress([2, 0xc9, 0, 0xaa, 0xbb, 1]));
    assert_eq!(nic.permanent_address.to_string(), "02:c9:00:aa:bb:01");
    let guids = [nic.system_image_guid, nic.port_guid, nic.node_guid];
    assert_eq!(guids.map(Guid::to_be_bytes), [[1; 8], [2; 8], [3; 8]]);

    let hca = bytes(
        528,
        &[
            (48, &[0x50, 0, 0x52, 0x43]),
            (56, &[1; 8]),
            (64, &[2; 8]),
            (72, &[3; 8]),
            (80, &[0, 0, 0, 5]),
            (88, &[0, 0, 0, 6]),
            (112, &[0, 0x11, 0xf3, 0x72, 0, 1, 0x4f]),
            (120, &[0, 7, 0, 8]),
        ],
    );
    let (context, log) = plain(Answer::Bytes(hca));
    let hca = devx::query_hca_vport_context(&context, 2, OTHER).unwrap();
    assert_eq!(last(&log)[..12], [7, 0x62, 0, 0, 0, 0, 0, 0, 0x80, 2, 0x12, 0x34]);
    assert!(hca.has_smi && hca.grh_required && !hca.sm_virt_aware && !hca.has_raw);
    assert_eq!((hca.phys_state.0, hca.vport_state_policy), (5, 2));
    assert_eq!((hca.port_state.0, hca.vport_state.0), (4, 3));
    assert_eq!((hca.cap_mask1, hca.cap_mask2), (5, 6));
    assert_eq!((hca.lid, hca.init_type_reply, hca.lmc, hca.subnet_timeout), (0x11, 3, 3, 18));
    assert_eq!((hca.sm_lid, hca.sm_sl), (1, 4));
    assert_eq!((hca.qkey_violations, hca.pkey_violations), (7, 8));
    assert_eq!(hca.port_guid.to_be_bytes(), [2; 8]);

    let esw =
        bytes(272, &[(16, &[0x16, 3]), (24, &[0x20, 5, 0x60, 7]), (256, &[1; 8]), (264, &[2; 8])]);
    let (context, log) = plain(Answer::Bytes(esw));
    let esw = devx::query_esw_vport_context(&context, OTHER).unwrap();
    assert_eq!(last(&log)[..12], [7, 0x52, 0, 0, 0, 0, 0, 0, 0x80, 0, 0x12, 0x34]);
    assert!(esw.svlan_strip && esw.svlan_insert && !esw.cvlan_strip);
    assert_eq!((esw.cvlan_insert, esw.fdb_to_vport_reg_c_id), (2, 3));
    assert_eq!((esw.svlan, esw.cvlan), (0x2005, 0x6007));
    assert_eq!(esw.sw_steering_icm_rx.to_be_bytes(), [1; 8]);
    assert_eq!(esw.sw_steering_icm_tx.to_be_bytes(), [2; 8]);
}

#[test]
fn addresses_and_counters_as_the_firmware_has_them() {
    let address = bytes(
        48,
        &[(16, &[0xfe, 0x80]), (32, &[0x10, 7, 2, 0xc9, 0, 0xaa, 0xbb, 1]), (42, &[0xf1, 2])],
    );
    let (context, log) = with_devx(Answer::Bytes(address));
    let address = devx::query_roce_address(&context, 0x304, 2).unwrap().unwrap();
    assert_eq!(last(&log), [7, 0x60, 0, 0, 0, 0, 0, 0, 3, 4, 0, 2, 0, 0, 0, 0]);
    assert_eq!((address.gid.to_bytes()[..2].to_vec(), address.vlan), (vec![0xfe, 0x80], Some(7)));
    assert_eq!((address.version, address.l3_type.map(|it| it.0)), (RoceVersion::V2, Some(1)));
    assert_eq!(address.mac.0, [2, 0xc9, 0, 0xaa, 0xbb, 1]);
    let (context, _) = with_devx(Answer::Bytes(vec![0; 48]));
    assert_eq!(devx::query_roce_address(&context, 0, 0).unwrap(), None);

    let mut counters = vec![0; 528];
    for word in 0..24u64 {
        let at = 16 + 8 * usize::try_from(word).unwrap();
        counters[at..at + 8].copy_from_slice(&(word + 1).to_be_bytes());
    }
    let (context, log) = with_devx(Answer::Bytes(counters));
    let counters = devx::query_vport_counter(&context, 1, OTHER).unwrap();
    let input = bytes(32, &[(0, &[7, 0x70]), (8, &[0x80, 1, 0x12, 0x34])]);
    assert_eq!(last(&log), input);
    for (place, (_, traffic)) in (0u64..).zip(counters.named()) {
        assert_eq!((traffic.packets, traffic.octets), (2 * place + 1, 2 * place + 2));
    }
}

#[test]
fn a_port_that_the_firmware_cannot_be_told_is_not_another_one() {
    let (context, sent) = with_devx(Answer::Bytes(vec![0; 528]));
    let causes = [
        devx::query_hca_vport_context(&context, 17, Vport::Own).unwrap_err(),
        devx::query_vport_counter(&context, 16, Vport::Own).unwrap_err(),
        devx::query_roce_address(&context, 0, 255).unwrap_err(),
    ];
    assert!(causes.iter().all(|error| *error.cause() == Cause::NoSuchPort && error.errno() == 22));
    assert!(sent.lock().unwrap().is_empty());
}

proptest! {
    #[test]
    fn nothing_panics_whatever_the_firmware_says(
        answer in proptest::collection::vec(any::<u8>(), 0..600),
        errno in proptest::option::of(1i32..200),
        index in any::<u16>(),
        port in any::<u8>(),
        vport in proptest::option::of(any::<u16>()),
    ) {
        let answer = match errno {
            None => Answer::Bytes(answer),
            Some(errno) => Answer::Refusal(answer, Errno::from_raw_os_error(errno)),
        };
        let (context, _) = with_devx(answer);
        let vport = vport.map_or(Vport::Own, |number| Vport::Other(VportNumber(number)));
        let _ = query_port(&context, port.into());
        let _ = devx::query_hca_cap(&context, CapabilityMode::Current, vport);
        let _ = devx::query_roce_cap(&context, CapabilityMode::Current, vport);
        let _ = devx::query_adapter(&context);
        let _ = devx::query_vport_state(&context, VportSide::Uplink, vport);
        let _ = devx::query_nic_vport_context(&context, vport);
        let _ = devx::query_hca_vport_context(&context, port, vport);
        let _ = devx::query_esw_vport_context(&context, vport);
        let _ = devx::query_esw_functions(&context);
        let _ = devx::query_roce_address(&context, index, port);
        let _ = devx::query_vport_counter(&context, port, vport);
        let _ = devx::query_lag(&context);
        let mut guarded = [0xee; 64];
        let _ = devx::general_cmd(&context, &[0; 16], &mut guarded[16..48]);
        prop_assert_eq!((&guarded[..16], &guarded[48..]), (&[0xee; 16][..], &[0xee; 16][..]));
    }
}
