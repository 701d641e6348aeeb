//! The functions of `<infiniband/mlx5dv.h>`.

use core::ffi::{c_int, c_void};
use core::slice;

use rustix::io::Errno;

use super::layout::{ALIGN_64, layout};
use super::verbs::abi;
use super::verbs::{Held, Opened, open};
use super::{guarded, number, set_errno};
use crate::driver::DriverId;
use crate::error::Error;
use crate::ioctl::MAX_PAYLOAD;
use crate::mlx5::devx;

/// The part of `struct mlx5dv_context_attr` that this library reads.
#[derive(Debug)]
#[repr(C)]
pub struct ContextAttr {
    flags: u32,
    padding: [u8; ALIGN_64 - 4],
    comp_mask: u64,
}

layout!(begins "struct mlx5dv_context_attr", ContextAttr, size [16, 16, 12], align [8, 8, 4], {
    flags: 0,
    padding as "": 4,
    comp_mask: [8, 8, 4],
});

/// `MLX5DV_CONTEXT_FLAGS_DEVX`.
const DEVX: u32 = 1;

/// Whether a device has the mlx5 driver; false for NULL, and if the device cannot be asked for its driver.
///
/// # Safety
/// `device` is NULL, or from a list or a context that still holds it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mlx5dv_is_supported(device: *mut abi::Device) -> bool {
    // SAFETY: the same contract.
    let listed = unsafe { Held::of(device) };
    guarded(false, || listed.is_some_and(|listed| listed.is_mlx5() == Ok(true)))
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
    let listed = unsafe { Held::of(device) };
    let refusal = match listed.map(|listed| guarded(Err(Errno::IO), || listed.is_mlx5())) {
        Some(Ok(false)) => Err(Errno::OPNOTSUPP),
        Some(Err(errno)) => Err(errno),
        _ if comp_mask != 0 || flags & !DEVX != 0 => Err(Errno::INVAL),
        _ => Ok(()),
    };
    if let Err(errno) = refusal {
        set_errno(errno);
        return core::ptr::null_mut();
    }
    // SAFETY: the same contract.
    unsafe { open(device, |listed| listed.open(flags != 0)) }
}

/// Asks the driver how steering identifies a port. Fields that the kernel does not set are zero. See
/// `mlx5dv_query_port(3)`.
///
/// # Errors
/// `EOPNOTSUPP` (another driver's device, or in switchdev mode a port that represents no vport),
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
            .map_err(|error| error.cause().as_errno())
    });
    answer.map_or_else(number, |()| 0)
}

/// Sends a general command to the firmware. Input and output are in the firmware's form. If it refuses,
/// its status and syndrome are in `out`.
///
/// # Errors
/// `EREMOTEIO` (the firmware refuses; on Linux 5.10 an errno of its status), `EOPNOTSUPP` (another
/// driver's device), `EINVAL` (a command that the kernel does not let through, fewer than 16 bytes,
/// NULL), `EIO` (the device is gone), `ETIMEDOUT`.
///
/// # Safety
/// `context` is NULL or open; `input` is NULL or `inlen` bytes; `out` is NULL or has room for
/// `outlen` bytes. They may overlap.
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
    // They may be the same bytes.
    let input = &*input.to_vec();
    // SAFETY: not NULL, so by the contract `outlen` bytes, which nobody else uses meanwhile, and the copy does not either.
    // They come from outside of Rust, so each has some value.
    let out = unsafe { slice::from_raw_parts_mut(out.cast::<u8>(), outlen) };
    let answer = guarded(Err(Errno::IO), || {
        send(opened, input, out).map_err(|error| error.cause().as_errno())
    });
    answer.map_or_else(number, |()| 0)
}

/// Sends a command on a context with DEVX, which is opened on first use. If it cannot be opened, the
/// program's own context sends the commands that need no DEVX.
fn send(opened: &Opened, input: &[u8], out: &mut [u8]) -> Result<(), Error> {
    if opened.imported || opened.context.has_devx() {
        return devx::general_cmd(&opened.context, input, out);
    }
    if let Some(context) = opened.devx.get() {
        return devx::general_cmd(context, input, out);
    }
    match opened.listed.open(true) {
        Ok(context) => devx::general_cmd(opened.devx.get_or_init(|| context), input, out),
        // The next command tries again: files are closed, and places in the cgroup become free. But if a
        // context without DEVX can be opened, it is DEVX that is refused. Then the program's own context
        // gets the kernel's answer, as it does with rdma-core.
        Err(error) => {
            let opcode = input.first_chunk().map_or(0, |bytes| u16::from_be_bytes(*bytes));
            if devx::needs_devx(opcode) && opened.listed.open(false).is_err() {
                return Err(error);
            }
            devx::general_cmd(&opened.context, input, out)
        }
    }
}

// Miri opens no file with the flags of a node.
#[cfg(all(test, feature = "simulated-kernel", not(miri)))]
#[expect(clippy::indexing_slicing, reason = "a test fails by panicking")]
#[expect(unsafe_code, reason = "the functions of C are called as C calls them")]
mod tests {
    use std::path::PathBuf;

    use uverbs_uapi::mlx5_firmware::opcode;

    use super::*;
    use crate::capi::verbs::{ibv_close_device, simulated_at};
    use crate::context::Context;
    use crate::simulated::{SimulatedKernel, UserMemory};

    /// Gives contexts, and answers no command.
    #[derive(Debug)]
    struct Kernel;

    impl SimulatedKernel for Kernel {
        fn ioctl(&self, request: &mut [u8], _: &UserMemory<'_>) -> Result<(), Errno> {
            // The object is the header's third number.
            let object = u16::from_ne_bytes([request[2], request[3]]);
            let is_devx = object == uverbs_uapi::mlx5::object::DEVX;
            if is_devx { Err(Errno::NOSPC) } else { Ok(()) }
        }
    }

    fn opened(node: PathBuf) -> Result<*mut abi::Context, Error> {
        let context = Context::simulated("mlx5_0", 1..=1, DriverId::MLX5, Box::new(Kernel))?;
        Ok(simulated_at(context, node))
    }

    fn sent(context: *mut abi::Context, opcode: u16) -> c_int {
        let mut input = [0u8; 16];
        input[..2].copy_from_slice(&opcode.to_be_bytes());
        let mut out = [0u8; 16];
        // SAFETY: the context is open, and the lengths are those of the arrays.
        unsafe {
            mlx5dv_devx_general_cmd(context, input.as_ptr().cast(), 16, out.as_mut_ptr().cast(), 16)
        }
    }

    /// Input and output may be the same bytes, as in C they may.
    #[test]
    fn a_command_in_place() {
        let folder = tempfile::tempdir().unwrap();
        let context = opened(folder.path().join("uverbs0")).unwrap();
        let mut bytes = [0_u8; 16];
        let place = bytes.as_mut_ptr().cast::<c_void>();
        // SAFETY: the context is open, and the lengths are those of the array.
        let answer = unsafe { mlx5dv_devx_general_cmd(context, place, 16, place, 16) };
        assert_ne!(answer, 0);
        // SAFETY: open, and used no more.
        assert_eq!(unsafe { ibv_close_device(context) }, 0);
    }

    #[test]
    fn a_devx_context_that_cannot_be_had_may_be_had_later() {
        let folder = tempfile::tempdir().unwrap();
        let node = folder.path().join("uverbs0");
        let context = opened(node.clone()).unwrap();
        assert!(!context.is_null());
        // The errno is that of opening.
        assert_eq!(sent(context, opcode::NOP), Errno::NOENT.raw_os_error());
        // A command that needs no DEVX is still sent.
        assert_eq!(sent(context, opcode::QUERY_HCA_CAP), Errno::NOSPC.raw_os_error());
        // A node that is there now, though no device's: it was opened again.
        std::os::unix::fs::symlink("/dev/null", &node).unwrap();
        assert_eq!(sent(context, opcode::NOP), Errno::NXIO.raw_os_error());
        // SAFETY: open so far, and used by nothing else.
        assert_eq!(unsafe { ibv_close_device(context) }, 0);
    }
}
