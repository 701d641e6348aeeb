//! Opening and closing devices.

use core::ffi::c_int;
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::FileType;
use rustix::io::Errno;

use super::abi;
use super::device::{Held, Listed, list};
use super::device_attr::{ibv_query_device, uverbs_query_device_ex};
use super::opened::{Opened, Queries};
use super::port::{ibv_query_port, uverbs_query_port};
use crate::capi::{guarded, set_errno};
use crate::context::Context;
use crate::error::Error;

/// The functions that C calls through every context.
const QUERIES: Queries = Queries {
    port: uverbs_query_port,
    compat_port: ibv_query_port,
    device: ibv_query_device,
    device_ex: uverbs_query_device_ex,
};

/// A C context whose kernel is test code.
#[cfg(feature = "simulated-kernel")]
#[doc(hidden)]
#[must_use]
pub fn simulated(context: Context) -> *mut abi::Context {
    simulated_at(context, "/dev/null".into())
}

/// [`simulated`], for a device whose node exists.
#[cfg(feature = "simulated-kernel")]
pub(crate) fn simulated_at(context: Context, path: std::path::PathBuf) -> *mut abi::Context {
    let mut device = crate::device::Device::sample(context.device_name());
    let name = "uverbs0".to_owned();
    device.driver = Some(context.driver());
    device.node = Some(crate::device::Node { name, path, number: 0 });
    let listed = Listed::new(device).map(|listed| Held::new(Arc::new(listed)));
    c_pointer(listed.and_then(|listed| {
        Opened::new(context, listed, false, QUERIES).map_err(|error| error.cause().as_errno())
    }))
}

/// Opens a device that C named, in the way of `open_context`; NULL with `errno` if that fails.
///
/// # Safety
/// `device` is NULL, or from a list or a context that still holds it.
pub(crate) unsafe fn open(
    device: *mut abi::Device,
    open_context: impl FnOnce(&Listed) -> Result<Context, Error>,
) -> *mut abi::Context {
    // SAFETY: the same contract.
    let listed = unsafe { Held::of(device) };
    let opened = guarded(Err(Errno::IO), || {
        let listed = listed.ok_or(Errno::INVAL)?;
        open_context(&listed)
            .and_then(|context| Opened::new(context, listed, false, QUERIES))
            .map_err(|error| error.cause().as_errno())
    });
    c_pointer(opened)
}

fn c_pointer(opened: Result<Box<Opened>, Errno>) -> *mut abi::Context {
    match opened {
        Ok(opened) => opened.into_c(),
        Err(errno) => {
            set_errno(errno);
            core::ptr::null_mut()
        }
    }
}

/// Opens a device, for queries. See `ibv_open_device(3)`.
///
/// # Errors
/// NULL with `errno`: `ENOENT` (no node), `EACCES` (no right to it), `EPERM` (another network
/// namespace), `EAGAIN` (the rdma cgroup's limit), `EIO`, `ENXIO`, `ENODEV` (the device is gone),
/// `EINVAL` (NULL), `EMFILE`.
///
/// # Safety
/// `device` is NULL, or from a list or a context that still holds it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_open_device(device: *mut abi::Device) -> *mut abi::Context {
    // SAFETY: the same contract.
    unsafe { open(device, |listed| listed.open(false)) }
}

/// Makes a context from an open node that already has one, for example from another process. Only the mlx5
/// driver offers it. The node then belongs to the context, even if the driver refuses. See `ibv_import_device(3)`.
///
/// # Errors
/// NULL with `errno`: `EINVAL` (no character device), that of [`ibv_get_device_list`](super::ibv_get_device_list)
/// if it fails, `ENODEV` (not the node of a device that it lists), `EOPNOTSUPP` (another driver), that of opening the
/// node if its driver is not known otherwise, or the kernel's.
///
/// # Safety
/// `cmd_fd` is an open node that nothing else closes, or no open file at all.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_import_device(cmd_fd: c_int) -> *mut abi::Context {
    let imported = guarded(Err(Errno::IO), || {
        let listed = device_of(cmd_fd)?;
        // SAFETY: `device_of` asked the kernel about it, so it is open; by the contract nobody else
        // closes it.
        let fd = unsafe { OwnedFd::from_raw_fd(cmd_fd) };
        Context::import(&listed.device, fd)
            .and_then(|context| Opened::new(context, Held::new(listed), true, QUERIES))
            .map_err(|error| error.cause().as_errno())
    });
    c_pointer(imported)
}

/// The device whose node an open file is. Its driver must offer import.
fn device_of(cmd_fd: c_int) -> Result<Arc<Listed>, Errno> {
    if cmd_fd < 0 {
        return Err(Errno::INVAL);
    }
    // SAFETY: not −1; it is borrowed for a single `fstat`, which names files that are not open.
    let fd = unsafe { std::os::fd::BorrowedFd::borrow_raw(cmd_fd) };
    let stat = rustix::fs::fstat(fd).map_err(|_| Errno::INVAL)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::CharacterDevice {
        return Err(Errno::INVAL);
    }
    let number = |listed: &Listed| listed.device.node.as_ref().map(|node| node.number);
    let listed = list()?.into_iter().find(|listed| number(listed) == Some(stat.st_rdev));
    let listed = listed.ok_or(Errno::NODEV)?;
    if listed.is_mlx5()? { Ok(listed) } else { Err(Errno::OPNOTSUPP) }
}

/// Closes a context. 0; `EINVAL` for NULL.
///
/// # Safety
/// `context` is NULL, or open and used by nothing else.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_close_device(context: *mut abi::Context) -> c_int {
    if context.is_null() {
        return crate::capi::number(Errno::INVAL);
    }
    // SAFETY: the same contract, and not NULL.
    let opened = unsafe { Opened::taken(context) };
    guarded((), || drop(opened));
    0
}
