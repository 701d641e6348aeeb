//! The C interface in a static library with a kernel made of code, for `tests/capi/canaries.c`: every function
//! has something to write, on a machine without RDMA, and in a program of any kind of machine.

#![expect(unsafe_code, reason = "C calls it")]
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use core::ffi::{CStr, c_char, c_int};
use std::sync::Arc;

use rustix::io::Errno;
use uverbs::capi::umad::{CaName, UmadCa, UmadPort, rooted};
use uverbs::capi::verbs::simulated_host;
use uverbs::context::Context;
use uverbs::device::{Device, Node};
use uverbs::driver::DriverId;
use uverbs::guid::Guid;
use uverbs::mlx5::devx::DevxContext;
use uverbs::simulated::{SimulatedKernel, UserMemory};
use uverbs::sysfs::Sysfs;
use uverbs::uapi::device::{
    ExQueryDeviceResponse, QueryPortResponse, invoke_write, method, object, query_port,
    query_port_speed,
};
use uverbs::uapi::driver::Mlx5QueryDeviceResponse;
use uverbs::uapi::ioctl::ATTR_UHW_OUT;
use uverbs::uapi::mlx5;
use zerocopy::{FromZeros, IntoBytes};

use crate::kernel::{Tables, answer, attributes, table, value};

#[expect(dead_code, reason = "the library's tests use all of it")]
#[path = "../../library/kernel.rs"]
mod kernel;

/// An mlx5 device with one port and four GIDs. The numbers of its answers are those of `canaries.c`.
#[derive(Debug)]
struct Mlx5(Tables);

impl SimulatedKernel for Mlx5 {
    fn ioctl(&self, request: &mut [u8], memory: &UserMemory<'_>) -> Result<(), Errno> {
        let of = u16::from_ne_bytes([request[2], request[3]]);
        let (asked, list) = attributes(request);
        match (of, asked) {
            (object::ASYNC_EVENT, _) => Ok(()),
            (object::DEVICE, method::INVOKE_WRITE) => {
                answer(request, memory, invoke_write::CORE_OUT, device_answer().as_bytes())?;
                answer(request, memory, ATTR_UHW_OUT, driver_answer().as_bytes())
            }
            (object::DEVICE, method::QUERY_PORT) if value(&list, query_port::PORT_NUM) == 1 => {
                answer(request, memory, query_port::RESP, port_answer().as_bytes())
            }
            (object::DEVICE, method::QUERY_PORT_SPEED) => {
                answer(request, memory, query_port_speed::RESP, &4000u64.to_ne_bytes())
            }
            (object::DEVICE, mlx5::device_method::QUERY_PORT) => {
                let port = mlx5::QueryPort {
                    flags: 0x3f,
                    vport: 11,
                    reg_c0_mask: 0xffff_0000,
                    ..Default::default()
                };
                answer(request, memory, mlx5::query_port::RESP, port.as_bytes())
            }
            (mlx5::object::DEVX, _) => {
                let output =
                    list.iter().find(|attribute| attribute.id == mlx5::devx_other::CMD_OUT);
                let mut bytes = vec![0x11; output.unwrap().len];
                // Status and syndrome: it succeeded.
                bytes[..8].fill(0);
                answer(request, memory, mlx5::devx_other::CMD_OUT, &bytes)
            }
            _ => self.0.ioctl(request, memory),
        }
    }
}

fn device_answer() -> ExQueryDeviceResponse {
    let mut answer = ExQueryDeviceResponse::new_zeroed();
    answer.base.node_guid = [1, 2, 3, 4, 5, 6, 7, 8];
    answer.base.max_mr_size = 0x0102_0304_0506_0708;
    answer.base.page_size_cap = 0x1112_1314_1516_1718;
    answer.base.vendor_id = 21;
    answer.base.max_srq_sge = 22;
    answer.base.max_pkeys = 23;
    answer.base.local_ca_ack_delay = 24;
    answer.base.phys_port_cnt = 1;
    answer.odp_caps.general_caps = 0x2122_2324_2526_2728;
    answer.odp_caps.ud_odp_caps = 25;
    answer.timestamp_mask = 0x3132_3334_3536_3738;
    answer.hca_core_clock = 26;
    answer.device_cap_flags_ex = 0x4142_4344_4546_4748;
    answer.rss_caps.max_rwq_indirection_table_size = 27;
    answer.max_wq_type_rq = 28;
    answer.raw_packet_caps = 29;
    answer.tm_caps.max_sge = 30;
    answer.cq_moderation_caps.max_cq_moderation_period = 31;
    answer.max_dm_size = 0x5152_5354_5556_5758;
    answer.xrc_odp_caps = 32;
    answer
}

fn driver_answer() -> Mlx5QueryDeviceResponse {
    let mut answer = Mlx5QueryDeviceResponse::new_zeroed();
    answer.tso_caps.max_tso = 33;
    answer.rss_caps.rx_hash_fields_mask = 0x6162_6364_6566_6768;
    answer.rss_caps.rx_hash_function = 34;
    answer.packet_pacing_caps.supported_qpts = 35;
    answer
}

fn port_answer() -> QueryPortResponse {
    QueryPortResponse {
        state: 4,
        gid_tbl_len: 4,
        pkey_tbl_len: 1,
        lid: 41,
        link_layer: 2,
        flags: 1,
        port_cap_flags2: 42,
        active_speed_ex: 43,
        ..Default::default()
    }
}

fn kernel() -> Box<dyn SimulatedKernel> {
    Box::new(Mlx5(Tables { first: 1, ports: vec![table(1, 4, 1)], calls: Arc::default() }))
}

fn opened(device: &Device, with_devx: bool) -> uverbs::Result<Context> {
    if with_devx {
        DevxContext::simulated(&device.name, device.ports(), kernel()).map(Context::from)
    } else {
        Context::simulated(&device.name, device.ports(), DriverId::MLX5, kernel())
    }
}

/// From now on this process has one device, which answers.
#[unsafe(no_mangle)]
pub extern "C" fn simulate() {
    let mut device = Device::named("sim0");
    device.node_guid = Guid::from_be_bytes([1, 2, 3, 4, 5, 6, 7, 8]);
    device.driver = Some(DriverId::MLX5);
    device.node = Some(Node::new("uverbs0", "/dev/null", 0));
    simulated_host(vec![device], opened);
}

/// # Safety
/// `root` is a text that ends with a NUL.
unsafe fn sysfs(root: *const c_char) -> Sysfs {
    // SAFETY: the same contract.
    let root = unsafe { CStr::from_ptr(root) };
    Sysfs::at(root.to_str().unwrap())
}

/// As `umad_get_cas_names`, of this tree.
///
/// # Safety
/// The same; `root` is a text that ends with a NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn simulated_get_cas_names(
    root: *const c_char,
    cas: *mut CaName,
    max: c_int,
) -> c_int {
    // SAFETY: the same contract.
    let sysfs = unsafe { sysfs(root) };
    // SAFETY: the same contract.
    unsafe { rooted::get_cas_names(&sysfs, cas, max) }
}

/// As `umad_get_ca_portguids` of the default CA, of this tree.
///
/// # Safety
/// The same; `root` is a text that ends with a NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn simulated_get_ca_portguids(
    root: *const c_char,
    portguids: *mut u64,
    max: c_int,
) -> c_int {
    // SAFETY: the same contract.
    let sysfs = unsafe { sysfs(root) };
    // SAFETY: the same contract.
    unsafe { rooted::get_ca_portguids(&sysfs, Some("sim0"), portguids, max) }
}

/// As `umad_get_ca`, of this tree.
///
/// # Safety
/// The same; `root` is a text that ends with a NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn simulated_get_ca(root: *const c_char, ca: *mut UmadCa) -> c_int {
    // SAFETY: the same contract.
    let sysfs = unsafe { sysfs(root) };
    // SAFETY: the same contract.
    unsafe { rooted::get_ca(&sysfs, Some("sim0"), ca) }
}

/// As `umad_get_port`, of this tree.
///
/// # Safety
/// The same; `root` is a text that ends with a NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn simulated_get_port(root: *const c_char, port: *mut UmadPort) -> c_int {
    // SAFETY: the same contract.
    let sysfs = unsafe { sysfs(root) };
    // SAFETY: the same contract.
    unsafe { rooted::get_port(&sysfs, Some("sim0"), 1, port) }
}
