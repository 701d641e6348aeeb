//! What an open context holds, and how it lies around the structure that C has of it.

use core::cell::UnsafeCell;
use core::ffi::{c_int, c_void};
use core::mem::offset_of;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::OnceLock;

use nix::libc;
use rustix::io::Errno;

use super::device::Held;
use super::sysfs::root;
use super::{abi, absent};
use crate::context::{AsyncEvents, Context};
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

/// The functions that C calls through a context. They use [`Opened`], so the caller of [`Opened::new`] gives
/// them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queries {
    pub(super) port: abi::QueryPort,
    /// Into the oldest structure.
    pub(super) compat_port: abi::CompatQueryPort,
    pub(super) device: abi::QueryDevice,
    pub(super) device_ex: abi::QueryDeviceEx,
}

/// Offset in [`Opened`] of C's pointer.
const CONTEXT: usize = offset_of!(Opened, verbs) + offset_of!(abi::VerbsContext, context);

impl Opened {
    /// Makes a context for C, with its event file, as `ibv_open_device(3)` says.
    pub(super) fn new(
        context: Context,
        listed: Held,
        imported: bool,
        queries: Queries,
    ) -> Result<Box<Self>, Error> {
        let events = context.async_events()?;
        let none = core::ptr::null_mut();
        let verbs = abi::VerbsContext {
            query_port: Some(queries.port),
            others: [none; 25],
            private: absent::private(),
            query_device_ex: Some(queries.device_ex),
            older: [none; 10],
            placeholder: 0,
            sz: size_of::<abi::VerbsContext>(),
            context: abi::Context {
                device: listed.c_ptr(),
                ops: abi::ContextOps {
                    query_device: Some(queries.device),
                    query_port: Some(queries.compat_port),
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
    pub(super) fn into_c(self: Box<Self>) -> *mut abi::Context {
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
    pub(super) unsafe fn taken(context: *mut abi::Context) -> Box<Self> {
        let opened = context.wrapping_byte_sub(CONTEXT).cast::<Self>();
        // SAFETY: by the contract the pointer of `Box::into_raw`, which is used for the last time.
        unsafe { Box::from_raw(opened) }
    }

    /// The event file.
    pub(super) fn events(&self) -> &AsyncEvents {
        &self.events
    }
}
