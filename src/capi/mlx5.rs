//! The functions of `<infiniband/mlx5dv.h>`.

use core::ffi::{c_int, c_void};
use core::slice;

use rustix::io::Errno;
use uverbs_uapi::mlx5_firmware::{
    InputHeader, QueryGeneralCapOutput, QueryHcaCapInput, capability_mode, capability_type, opcode,
};
use zerocopy::{FromZeros, IntoBytes};

use super::verbs::abi::{self, layout};
use super::verbs::{Listed, Opened, open};
use super::{guarded, number, set_errno};
use crate::command::MAX_PAYLOAD;
use crate::context::{Context, probe_driver};
use crate::device::Device;
use crate::driver::DriverId;
use crate::mlx5::devx;

/// `struct mlx5dv_context_attr` up to what this library looks at.
#[derive(Debug)]
#[repr(C)]
pub struct ContextAttr {
    flags: u32,
    padding: u32,
    comp_mask: u64,
}

layout!(ContextAttr, size 16, { flags: 0, comp_mask: 8 });

/// `MLX5DV_CONTEXT_FLAGS_DEVX`.
const DEVX: u32 = 1;

/// Whether a device is mlx5's.
pub(super) fn is_mlx5(device: &Device) -> bool {
    device.driver.or_else(|| probe_driver(device).ok()) == Some(DriverId::MLX5)
}

/// Whether the mlx5 driver has the device; not for NULL.
///
/// # Safety
/// `device` is NULL, or from a list or a context that still holds it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mlx5dv_is_supported(device: *mut abi::Device) -> bool {
    // SAFETY: the same contract.
    let listed = unsafe { Listed::held(device) };
    guarded(false, || listed.is_some_and(|listed| is_mlx5(&listed.device)))
}

/// Opens an mlx5 device; with the flag `MLX5DV_CONTEXT_FLAGS_DEVX` only if firmware commands that
/// need it can be sent.
///
/// # Errors
/// NULL with `errno`: `EOPNOTSUPP` (another driver's), `EINVAL` (unknown flags or `comp_mask`, NULL),
/// and as `ibv_open_device`.
///
/// # Safety
/// `device` is NULL, or from a list or a context that still holds it; `attr` is NULL or points to its
/// structure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mlx5dv_open_device(
    device: *mut abi::Device,
    attr: *mut ContextAttr,
) -> *mut abi::Context {
    let (flags, comp_mask) = if attr.is_null() {
        (0, 0)
    } else {
        // SAFETY: not NULL, so by the contract the structure.
        let flags = unsafe { (*attr).flags };
        // SAFETY: the same.
        (flags, unsafe { (*attr).comp_mask })
    };
    // SAFETY: the same contract.
    if !device.is_null() && !unsafe { mlx5dv_is_supported(device) } {
        set_errno(Errno::OPNOTSUPP);
        return core::ptr::null_mut();
    }
    if comp_mask != 0 || flags & !DEVX != 0 {
        set_errno(Errno::INVAL);
        return core::ptr::null_mut();
    }
    let open_context = |listed: &Listed| match flags {
        0 => Context::open(&listed.device),
        _ => devx::open(&listed.device),
    };
    // SAFETY: the same contract.
    unsafe { open(device, open_context) }
}

/// Asks the driver how steering knows a port. Not said by the kernel: zeros. See
/// `mlx5dv_query_port(3)`.
///
/// # Errors
/// `EOPNOTSUPP` (another driver's device, or in switchdev mode a port that stands for no vport),
/// `EINVAL` (no such port, a structure that is too small, NULL), `EPROTONOSUPPORT` (Linux before
/// 5.13), `EIO` (the device is gone), or the firmware's.
///
/// # Safety
/// `context` is NULL or open; `info` is NULL or has room for `info_len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _mlx5dv_query_port(
    context: *mut abi::Context,
    port_num: u32,
    info: *mut c_void,
    info_len: usize,
) -> c_int {
    // SAFETY: the same contract.
    let Some(opened) = (unsafe { Opened::of(context) }) else { return number(Errno::INVAL) };
    if opened.context.driver() != DriverId::MLX5 {
        return number(Errno::OPNOTSUPP);
    }
    if info.is_null() || info_len > MAX_PAYLOAD {
        return number(Errno::INVAL);
    }
    // SAFETY: not NULL, so by the contract `info_len` bytes of the caller's, which nobody else uses
    // meanwhile. They come from outside of Rust, so each has some value.
    let bytes = unsafe { slice::from_raw_parts_mut(info.cast::<u8>(), info_len) };
    let answer = guarded(Err(Errno::IO), || {
        crate::mlx5::query_port_into(&opened.context, port_num, bytes)
            .map_err(|error| error.cause().errno())
    });
    answer.map_or_else(number, |()| 0)
}

/// Sends a general command to the firmware. Both are in the firmware's form; if it refuses, its
/// status and syndrome are in `out`.
///
/// # Errors
/// `EREMOTEIO` (the firmware refuses; on Linux 5.10 an errno of its status), `EOPNOTSUPP` (another
/// driver's device), `EINVAL` (a command that the kernel does not let through, fewer than 16 bytes,
/// NULL), `EIO` (the device is gone), `ETIMEDOUT`.
///
/// # Safety
/// `context` is NULL or open; `input` is NULL or `inlen` bytes; `out` is NULL or has room for
/// `outlen` bytes; they do not overlap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mlx5dv_devx_general_cmd(
    context: *mut abi::Context,
    input: *const c_void,
    inlen: usize,
    out: *mut c_void,
    outlen: usize,
) -> c_int {
    // SAFETY: the same contract.
    let Some(opened) = (unsafe { Opened::of(context) }) else { return number(Errno::INVAL) };
    if opened.context.driver() != DriverId::MLX5 {
        return number(Errno::OPNOTSUPP);
    }
    if input.is_null() || out.is_null() || inlen > MAX_PAYLOAD || outlen > MAX_PAYLOAD {
        return number(Errno::INVAL);
    }
    // SAFETY: not NULL, so by the contract `inlen` bytes of the caller's that nobody changes.
    let input = unsafe { slice::from_raw_parts(input.cast::<u8>(), inlen) };
    // SAFETY: not NULL, so by the contract `outlen` other bytes, which nobody else uses meanwhile.
    // They come from outside of Rust, so each has some value.
    let out = unsafe { slice::from_raw_parts_mut(out.cast::<u8>(), outlen) };
    let answer = guarded(Err(Errno::IO), || {
        devx::general_cmd(for_commands(opened), input, out).map_err(|error| error.cause().errno())
    });
    answer.map_or_else(number, |()| 0)
}

/// The context by which commands are sent: one with DEVX, opened when it is first wanted. Where there
/// is none to be had the program's own sends what needs none.
fn for_commands(opened: &Opened) -> &Context {
    if opened.imported || opened.context.has_devx() {
        return &opened.context;
    }
    let devx = opened.devx.get_or_init(|| devx::open(&opened.listed.device).ok());
    devx.as_ref().unwrap_or(&opened.context)
}

/// Atomic operations on the bus, if the firmware tells of them.
pub(super) fn pci_atomics(opened: &Opened) -> Option<abi::PciAtomicCaps> {
    /// Where they stand in the firmware's atomic capabilities: two bytes each.
    const FETCH_ADD: usize = 0x50;
    const SWAP: usize = 0x52;
    const COMPARE_SWAP: usize = 0x54;
    /// Where capabilities begin in the output.
    const CAPABILITIES: usize = 16;
    let input = QueryHcaCapInput {
        header: InputHeader {
            opcode: opcode::QUERY_HCA_CAP.into(),
            op_mod: (capability_type::ATOMIC << 1 | capability_mode::CURRENT).into(),
            ..InputHeader::new_zeroed()
        },
        ..QueryHcaCapInput::new_zeroed()
    };
    let mut output = [0u8; size_of::<QueryGeneralCapOutput>()];
    devx::general_cmd(&opened.context, input.as_bytes(), &mut output).ok()?;
    let at = |offset| {
        let bytes: [u8; 2] = *output.get(CAPABILITIES + offset..)?.first_chunk()?;
        Some(u16::from_be_bytes(bytes))
    };
    Some(abi::PciAtomicCaps {
        fetch_add: at(FETCH_ADD)?,
        swap: at(SWAP)?,
        compare_swap: at(COMPARE_SWAP)?,
    })
}
