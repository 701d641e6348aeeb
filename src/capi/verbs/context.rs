//! Open devices.

use core::cell::UnsafeCell;
use core::ffi::{c_int, c_void};
use core::mem::offset_of;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::sync::{Arc, OnceLock};

use nix::libc;
use rustix::fs::FileType;
use rustix::io::Errno;

use super::device::{Held, Listed, list};
use super::device_attr::uverbs_query_device_ex;
use super::port::uverbs_query_port;
use super::sysfs::root;
use super::{abi, absent};
use super::{ibv_query_device, ibv_query_port};
use crate::capi::{guarded, set_errno};
use crate::context::AsyncEvents;
use crate::context::Context;
use crate::error::Error;
use crate::sysfs::{Folder, Sysfs};

/// `__VERBS_ABI_IS_EXTENDED`: the context lies in a `verbs_context`.
const EXTENDED: *mut c_void = core::ptr::without_provenance_mut(usize::MAX);

/// An open device. C gets a pointer to the `ibv_context` inside.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) context: Context,
    /// Whether the program handed over the open node.
    pub(crate) imported: bool,
    /// The context for firmware commands, after the first use that could open it.
    pub(crate) devx: OnceLock<Context>,
    pub(crate) listed: Held,
    /// The device's own files, after their first use.
    sysfs: OnceLock<Sysfs>,
    events: AsyncEvents,
    /// The program also reads and writes this part.
    verbs: UnsafeCell<abi::VerbsContext>,
}

/// Offset in [`Opened`] of C's pointer.
const CONTEXT: usize = offset_of!(Opened, verbs) + offset_of!(abi::VerbsContext, context);

impl Opened {
    /// Makes a context for C, with its event file, as `ibv_open_device(3)` says.
    fn new(context: Context, listed: Held, imported: bool) -> Result<Box<Self>, Error> {
        let events = context.async_events()?;
        let none = core::ptr::null_mut();
        let verbs = abi::VerbsContext {
            query_port: Some(uverbs_query_port),
            others: [none; 25],
            private: absent::private(),
            query_device_ex: Some(uverbs_query_device_ex),
            older: [none; 10],
            placeholder: 0,
            sz: size_of::<abi::VerbsContext>(),
            context: abi::Context {
                device: listed.c_ptr(),
                ops: abi::ContextOps {
                    query_device: Some(ibv_query_device),
                    query_port: Some(ibv_query_port),
                    others: absent::ops(),
                },
                cmd_fd: context.as_fd().as_raw_fd(),
                async_fd: events.as_fd().as_raw_fd(),
                num_comp_vectors: c_int::try_from(context.num_comp_vectors()).unwrap_or(c_int::MAX),
                mutex: libc::PTHREAD_MUTEX_INITIALIZER,
                abi_compat: EXTENDED,
            },
        };
        let verbs = UnsafeCell::new(verbs);
        let (devx, sysfs) = (OnceLock::new(), OnceLock::new());
        Ok(Box::new(Self { context, imported, devx, listed, sysfs, events, verbs }))
    }

    /// The device's folder in sysfs. It is never that of another device that now has the name.
    pub(super) fn folder(&self) -> Result<Folder, Errno> {
        let device = &self.listed.device;
        let sysfs = if let Some(sysfs) = self.sysfs.get() {
            sysfs
        } else {
            let sysfs = root().map_or_else(Sysfs::host, Sysfs::at).of(device);
            let sysfs = sysfs.map_err(|error| error.cause().as_errno())?;
            self.sysfs.get_or_init(|| sysfs)
        };
        sysfs.device(&device.name).map_err(|cause| cause.as_errno())
    }

    /// The pointer that C gets; it owns the context until [`taken`](Self::taken).
    fn into_c(self: Box<Self>) -> *mut abi::Context {
        Box::into_raw(self).wrapping_byte_add(CONTEXT).cast()
    }

    /// The context of C's pointer; `None` for NULL.
    ///
    /// # Safety
    /// `context` is NULL, or from [`into_c`](Self::into_c) and not closed while the answer is used.
    pub(crate) unsafe fn of<'a>(context: *mut abi::Context) -> Option<&'a Self> {
        if context.is_null() {
            return None;
        }
        let opened = context.wrapping_byte_sub(CONTEXT).cast::<Self>();
        // SAFETY: by the contract the pointer of `into_c`, which is that of the box moved by the same
        // distance. The program writes only inside the `UnsafeCell`.
        Some(unsafe { &*opened })
    }

    /// Takes back what [`into_c`](Self::into_c) gave.
    ///
    /// # Safety
    /// `context` is from `into_c`, was not closed so far, and nothing else uses it.
    unsafe fn taken(context: *mut abi::Context) -> Box<Self> {
        let opened = context.wrapping_byte_sub(CONTEXT).cast::<Self>();
        // SAFETY: by the contract the pointer of `Box::into_raw`, which is used for the last time.
        unsafe { Box::from_raw(opened) }
    }

    /// The event file.
    pub(super) fn events(&self) -> &AsyncEvents {
        &self.events
    }
}

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
    let listed = Listed::new(device).map(|listed| Held::new(Arc::new(listed))).ok_or(Errno::INVAL);
    c_pointer(listed.and_then(|listed| {
        Opened::new(context, listed, false).map_err(|error| error.cause().as_errno())
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
            .and_then(|context| Opened::new(context, listed, false))
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
/// NULL with `errno`: `EINVAL` (no character device), `ENODEV` (no device's node), `EOPNOTSUPP`
/// (another driver), or the kernel's.
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
            .and_then(|context| Opened::new(context, Held::new(listed), true))
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
    let devices = list().map_err(|_| Errno::NODEV)?;
    let listed = devices.into_iter().find(|listed| number(listed) == Some(stat.st_rdev));
    let listed = listed.ok_or(Errno::NODEV)?;
    if crate::capi::mlx5::is_mlx5(&listed.device) { Ok(listed) } else { Err(Errno::OPNOTSUPP) }
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
