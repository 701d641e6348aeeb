//! Contexts: an open uverbs device with its ucontext, ready for queries.
//!
//! The kernel answers queries only on an open file that has done `GET_CONTEXT`. A [`Context`] has,
//! always: there is no type for an open device without one. Contexts may be shared between
//! threads; the kernel puts the calls in order. Open one, keep it while it is needed and drop it:
//! on some drivers an open file holds up the removal of the device, and mlx5 switches local loopback
//! on while a second context is open.

mod cause;
mod device;
mod event;
mod gid;
mod identity;
mod node;
mod open;
mod port;
mod probe;

use core::ops::RangeInclusive;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::libc;

use crate::driver::DriverId;
use crate::error::{Cause, Error, Request, Result};
use crate::ioctl::Command;
use crate::ioctl::sys::kernel::Kernel;
use cause::cause;

pub use device::DeviceAttributes;
pub use event::{AsyncEvents, Event, EventType};
pub use probe::probe_driver;

/// What a context was opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Queries.
    Plain,
    /// Commands to an mlx5 device's firmware as well.
    Devx,
}

/// An open device that answers queries.
#[doc(alias = "ibv_context")]
#[derive(Debug)]
pub struct Context {
    device: String,
    ports: RangeInclusive<u32>,
    driver: DriverId,
    kind: Kind,
    kernel: Kernel,
    num_comp_vectors: u32,
    core_support: u64,
}

impl Context {
    /// The device's name when it was opened.
    #[must_use]
    pub fn device_name(&self) -> &str {
        &self.device
    }

    /// The device's driver.
    #[must_use]
    pub fn driver(&self) -> DriverId {
        self.driver
    }

    /// The device's port numbers: from 1, or just 0 on an InfiniBand switch.
    #[must_use]
    pub fn ports(&self) -> RangeInclusive<u32> {
        self.ports.clone()
    }

    /// Completion vectors, as the kernel said with the context.
    #[must_use]
    pub fn num_comp_vectors(&self) -> u32 {
        self.num_comp_vectors
    }

    /// What the kernel's core supports, bits of [`core_support`](uverbs_uapi::device::core_support).
    #[must_use]
    pub fn core_support(&self) -> u64 {
        self.core_support
    }

    /// Whether it was opened as a [`DevxContext`](crate::mlx5::devx::DevxContext), for commands to the
    /// firmware.
    #[must_use]
    pub fn has_devx(&self) -> bool {
        self.kind == Kind::Devx
    }

    /// Sends a command that the caller puts together. One system call.
    ///
    /// Only these methods are sent, as this crate must know which memory the kernel writes, and any method without an
    /// attribute:
    ///
    /// - of the object `DEVICE`: `QUERY_GID_ENTRY`, `QUERY_GID_TABLE`, `QUERY_PORT`, `QUERY_PORT_SPEED`,
    ///   `QUERY_CONTEXT`, `GET_CONTEXT`, and `INVOKE_WRITE` of the commands `QUERY_DEVICE` and
    ///   `EX_QUERY_DEVICE`;
    /// - of mlx5 devices: `QUERY_PORT` of the driver's own, and `DEVX_OTHER`.
    ///
    /// A command is sent once. Afterwards [`Command::is_output_valid`] says what the kernel wrote.
    ///
    /// ```no_run
    /// use uverbs::ioctl::Command;
    /// use uverbs::uapi::device::{QueryPortResponse, method, object, query_port};
    /// use zerocopy::{FromZeros, IntoBytes};
    ///
    /// let context = uverbs::Host::new().open("rxe0")?;
    /// let mut response = QueryPortResponse::new_zeroed();
    /// let mut command = Command::<2>::new(object::DEVICE, method::QUERY_PORT);
    /// command
    ///     .constant(query_port::PORT_NUM, 1)
    ///     .output(query_port::RESP, response.as_mut_bytes());
    /// context.submit(&mut command)?;
    /// println!("{} slots", response.gid_tbl_len);
    /// # Ok::<(), uverbs::Error>(())
    /// ```
    ///
    /// # Errors
    /// `EINVAL` ([`Cause::Encode`]), before the kernel sees anything: a mistake in the command, a method
    /// that is not listed above and has attributes, an output without memory, a command that was sent before. Then the
    /// kernel's: `EPROTONOSUPPORT` ([`Cause::UnknownToKernel`]) for a method or a mandatory attribute that
    /// it does not know, `EIO` ([`Cause::DeviceGone`]) for a device that is gone.
    pub fn submit<const N: usize>(&self, command: &mut Command<'_, N>) -> Result<()> {
        let header = command.header();
        let request = Request::Ioctl { object: header.object_id, method: header.method_id };
        self.send(command).map_err(|cause| self.error(request, cause))
    }

    /// Sends a command of a query, whose error says what was asked.
    pub(crate) fn send<const N: usize>(&self, command: &mut Command<'_, N>) -> Result<(), Cause> {
        command
            .submit(&self.kernel, self.driver.0)
            .map_err(|error| cause(error, &self.kernel, self.driver))
    }

    /// Sends a command that asks for a new fd.
    pub(crate) fn send_for_fd<const N: usize>(
        &self,
        command: &mut Command<'_, N>,
    ) -> Result<OwnedFd, Cause> {
        command
            .submit_for_fd(&self.kernel, self.driver.0)
            .map_err(|error| cause(error, &self.kernel, self.driver))?
            .ok_or(Cause::Malformed("a file descriptor that was not made"))
    }

    /// An error of a request on this device.
    pub(crate) fn error(&self, request: Request, cause: Cause) -> Error {
        Error::new(&*self.device, request, cause)
    }

    /// An error of a request about a port. The kernel's EINVAL says that there is none such, and much else.
    pub(crate) fn port_error(&self, port: u32, request: Request, cause: Cause) -> Error {
        match cause {
            Cause::Os(libc::EINVAL) if !self.ports.contains(&port) => {
                self.error(request, Cause::NoSuchPort)
            }
            cause => self.error(request, cause),
        }
    }
}

impl AsFd for Context {
    /// The open uverbs node, for example to hand it to another process.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.kernel.as_fd()
    }
}
