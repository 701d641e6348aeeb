//! Contexts: an open uverbs device with its ucontext, ready for queries.
//!
//! The kernel answers queries only on an open file that has done `GET_CONTEXT`. A [`Context`] has,
//! always: there is no type for an open device without one. Contexts may be shared between
//! threads; the kernel puts the calls in order. Open one, keep it while it is needed and drop it:
//! on some drivers an open file holds up the removal of the device, and mlx5 switches local loopback
//! on while a second context is open.

mod device;
mod event;
mod gid;
mod identity;
mod port;

use core::ops::RangeInclusive;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::libc;
use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};
use uverbs_uapi::{device as abi, mlx5};
use zerocopy::IntoBytes;

use crate::device::{Device, Node};
use crate::driver::{self, DriverId};
use crate::error::{Cause, Error, Request, Result};
use crate::ioctl::sys::kernel::Kernel;
use crate::ioctl::{Command, SubmitError};
use crate::sysfs::is_node;

pub use device::DeviceAttributes;
#[cfg(feature = "capi")]
pub(crate) use event::read_event;
pub use event::{AsyncEvents, Event, EventType};

/// Room for a driver's part of the `GET_CONTEXT` answer. Some drivers write theirs whatever the
/// room; none writes more than this, and none reads meaning into this length.
const DRIVER_ANSWER: usize = 256;

/// Driver ids that are tried by probing: far beyond the last that the kernel has given.
const PROBED_IDS: RangeInclusive<u32> = 1..=64;

/// A method id that no kernel has: the largest that is not a driver's own.
const NO_METHOD: u16 = 0x0fff;

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
    /// Opens the device's uverbs node and gets a context.
    ///
    /// No capability is needed. The node is opened read-only, which is enough for every query.
    ///
    /// ```no_run
    /// let mut host = uverbs::Host::new();
    /// for device in host.devices()? {
    ///     let context = uverbs::Context::open(&device)?;
    ///     println!("{}: {} GIDs", device.name, context.query_gid_table()?.len());
    /// }
    /// # Ok::<(), uverbs::Error>(())
    /// ```
    ///
    /// # Errors
    /// Each a [`Cause`] of its own: no uverbs node (`ENOENT`), a missing node (`ENOENT`), a node
    /// that is not the device's (`ENXIO`), one that another device has taken over since
    /// ([`Cause::Replaced`], `ENODEV`), no permission (`EACCES`), another network namespace
    /// (`EPERM`), a device that is gone (`EIO`, `ENXIO`, `ENODEV`), a kernel without the ioctl
    /// (`ENOTTY`, `EPROTONOSUPPORT`), the rdma cgroup's limit (`EAGAIN`), an unknown driver (`EINVAL`).
    #[doc(alias = "ibv_open_device")]
    pub fn open(device: &Device) -> Result<Self> {
        let kernel = open_node(device)?;
        let driver = driver_of(device, &kernel)?;
        Self::with_kernel(device.name.clone(), device.ports(), driver, Kind::Plain, kernel)?
            .confirmed(device)
    }

    /// [`open`](Self::open) of an mlx5 device and no other, with DEVX or without.
    pub(crate) fn open_mlx5(device: &Device, with_devx: bool) -> Result<Self> {
        let (kind, request) = if with_devx {
            (Kind::Devx, Request::GetDevxContext)
        } else {
            (Kind::Plain, Request::GetContext)
        };
        let check = |driver| match driver {
            DriverId::MLX5 => Ok(()),
            other => Err(Error::new(&*device.name, request.clone(), Cause::OtherDriver(other))),
        };
        // Known before it is opened, or after.
        device.driver.map_or(Ok(()), check)?;
        let kernel = open_node(device)?;
        check(driver_of(device, &kernel)?)?;
        Self::with_kernel(device.name.clone(), device.ports(), DriverId::MLX5, kind, kernel)?
            .confirmed(device)
    }

    /// Makes sure that what is open has the listed device's node GUID.
    ///
    /// A node that no kernel made (`mknod`, as in containers) may lead to a device that has lost its
    /// number: one that is open elsewhere and of a driver whose removal waits for that. And where
    /// an open file comes from is not known.
    fn confirmed(self, device: &Device) -> Result<Self> {
        let is_it = match self.node_guid() {
            Ok(guid) => guid == device.node_guid || !device.is_listed(),
            Err(cause) => return Err(self.error(Request::Device, cause)),
        };
        if is_it { Ok(self) } else { Err(self.error(Request::Device, Cause::Replaced)) }
    }

    /// Takes over an open uverbs node that has a context, made by another part of this program or
    /// handed over by another process. Only the mlx5 driver offers it. Linux 5.9.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), uverbs::Error> {
    /// use std::os::fd::AsFd;
    /// use uverbs::Context;
    ///
    /// let device = uverbs::Host::new().device("mlx5_0")?;
    /// let context = uverbs::mlx5::open(&device)?;
    /// # let duplicate = |fd: std::os::fd::BorrowedFd<'_>| fd.try_clone_to_owned().unwrap();
    /// let other = Context::import(&device, duplicate(context.as_fd()))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Another device's node ([`Cause::WrongNode`], `ENXIO`; [`Cause::Replaced`], `ENODEV`, if only
    /// the node GUID shows it, or if the node is no longer the device's); no context yet (`EINVAL`); a driver
    /// that does not offer it ([`Cause::NotOffered`], `EOPNOTSUPP`); a device that is gone (`EIO`); and
    /// if the driver has to be found out, as [`probe_driver`]. The file is closed then.
    #[doc(alias = "ibv_import_device")]
    pub fn import(device: &Device, fd: OwnedFd) -> Result<Self> {
        let error = |request, cause| Error::new(&*device.name, request, cause);
        let Some(Node { path, number, .. }) = &device.node else {
            return Err(error(Request::QueryContext, Cause::NoNode));
        };
        if !is_node(&fd, *number).map_err(|errno| error(Request::QueryContext, Cause::of(errno)))? {
            return Err(error(Request::Open { path: path.clone() }, Cause::WrongNode));
        }
        device.still_has_node().map_err(|cause| error(Request::QueryContext, cause))?;
        let kernel = Kernel::Device(fd);
        let driver = driver_of(device, &kernel)?;
        let mut num_comp_vectors = 0u32;
        let mut core_support = 0u64;
        let mut answer = [0u8; DRIVER_ANSWER];
        let mut command = Command::<3>::new(abi::object::DEVICE, abi::method::QUERY_CONTEXT);
        command
            .output(abi::query_context::NUM_COMP_VECTORS, num_comp_vectors.as_mut_bytes())
            .output(abi::query_context::CORE_SUPPORT, core_support.as_mut_bytes());
        if driver == DriverId::MLX5 {
            command.output(mlx5::query_context::RESP_UCTX, &mut answer);
        }
        command
            .submit(&kernel, driver.0)
            .map_err(|refused| error(Request::QueryContext, cause(refused, &kernel, driver)))?;
        let (name, ports) = (device.name.clone(), device.ports());
        // Whether it may send commands to the firmware is not known.
        let kind = Kind::Plain;
        Self { device: name, ports, driver, kind, kernel, num_comp_vectors, core_support }
            .confirmed(device)
    }

    fn with_kernel(
        device: String,
        ports: RangeInclusive<u32>,
        driver: DriverId,
        kind: Kind,
        kernel: Kernel,
    ) -> Result<Self> {
        let (driver_request, request) = match kind {
            Kind::Plain => (driver.context_request(), Request::GetContext),
            Kind::Devx => (driver::devx_context_request(), Request::GetDevxContext),
        };
        let mut num_comp_vectors = 0u32;
        let mut core_support = 0u64;
        let mut answer = [0u8; DRIVER_ANSWER];
        let mut command = Command::<4>::new(abi::object::DEVICE, abi::method::GET_CONTEXT);
        command
            .output(abi::get_context::NUM_COMP_VECTORS, num_comp_vectors.as_mut_bytes())
            .output(abi::get_context::CORE_SUPPORT, core_support.as_mut_bytes())
            .driver_input(driver_request)
            .driver_output(&mut answer);
        match command.submit(&kernel, driver.0) {
            Ok(()) => {
                Ok(Self { device, ports, driver, kind, kernel, num_comp_vectors, core_support })
            }
            Err(error) => {
                let cause = match error {
                    SubmitError::Kernel(Errno::AGAIN) => Cause::Refused,
                    other => cause(other, &kernel, driver),
                };
                Err(Error::new(device, request, cause))
            }
        }
    }

    /// A context whose kernel is test code.
    ///
    /// # Errors
    /// Those of `GET_CONTEXT`, as the simulated kernel answers it.
    #[cfg(feature = "simulated-kernel")]
    #[doc(hidden)]
    pub fn simulated(
        device: &str,
        ports: RangeInclusive<u32>,
        driver: DriverId,
        kernel: Box<dyn crate::simulated::SimulatedKernel>,
    ) -> Result<Self> {
        Self::simulated_as(device, ports, driver, Kind::Plain, kernel)
    }

    /// [`simulated`](Self::simulated), for commands to an mlx5 device's firmware.
    #[cfg(feature = "simulated-kernel")]
    pub(crate) fn simulated_devx(
        device: &str,
        ports: RangeInclusive<u32>,
        kernel: Box<dyn crate::simulated::SimulatedKernel>,
    ) -> Result<Self> {
        Self::simulated_as(device, ports, DriverId::MLX5, Kind::Devx, kernel)
    }

    #[cfg(feature = "simulated-kernel")]
    fn simulated_as(
        device: &str,
        ports: RangeInclusive<u32>,
        driver: DriverId,
        kind: Kind,
        kernel: Box<dyn crate::simulated::SimulatedKernel>,
    ) -> Result<Self> {
        let null = rustix::fs::open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
            .map_err(|errno| Error::new(device, Request::GetContext, Cause::of(errno)))?;
        let kernel = Kernel::Simulated(kernel, null);
        Self::with_kernel(device.to_owned(), ports, driver, kind, kernel)
    }

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
    /// Only these methods are sent, as this crate must know which memory the kernel writes:
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
    /// that is not listed above, an output without memory, a command that was sent before. Then the
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

/// Finds out a device's driver by asking it, without a context and without side effects.
///
/// For devices whose driver netlink does not name: mthca, hns, and all where there is no netlink.
///
/// # Errors
/// Those of opening the node, and `EINVAL` if the device accepts no known id.
pub fn probe_driver(device: &Device) -> Result<DriverId> {
    let kernel = open_node(device)?;
    probe(&kernel).map_err(|cause| Error::new(&*device.name, Request::ProbeDriver, cause))
}

/// The driver, by netlink or by the open device.
fn driver_of(device: &Device, kernel: &Kernel) -> Result<DriverId> {
    match device.driver {
        Some(driver) => Ok(driver),
        None => {
            probe(kernel).map_err(|cause| Error::new(&*device.name, Request::ProbeDriver, cause))
        }
    }
}

/// Opens the uverbs node, and makes sure that it is the device's.
fn open_node(device: &Device) -> Result<Kernel> {
    let Some(Node { path, number, .. }) = &device.node else {
        return Err(Error::new(&*device.name, Request::GetContext, Cause::NoNode));
    };
    let error = |cause| Error::new(&*device.name, Request::Open { path: path.clone() }, cause);
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let fd = retry_on_intr(|| rustix::fs::open(path, flags, Mode::empty()))
        .map_err(|errno| error(Cause::of_open(errno)))?;
    match is_node(&fd, *number) {
        Ok(true) => {}
        Ok(false) => return Err(error(Cause::WrongNode)),
        Err(errno) => return Err(error(Cause::of(errno))),
    }
    // Only now: the number may have been given to another device before the open, not after it.
    device.still_has_node().map_err(error)?;
    Ok(Kernel::Device(fd))
}

/// Why a request failed. A driver's own failure, which on mlx5 may be its firmware's, has the same
/// number as the device's end.
fn cause(error: SubmitError, kernel: &Kernel, driver: DriverId) -> Cause {
    match Cause::from(error) {
        Cause::DeviceGone(errno) if !is_gone(kernel, driver) => Cause::Os(errno),
        cause => cause,
    }
}

/// Whether an open device was removed. A GID of an impossible port is asked for: the kernel looks
/// for the device before it looks for the port (or for a context), and touches no entry.
fn is_gone(kernel: &Kernel, driver: DriverId) -> bool {
    let mut entry = abi::GidEntry::default();
    let mut command = Command::<4>::new(abi::object::DEVICE, abi::method::QUERY_GID_ENTRY);
    command
        .constant(abi::query_gid_entry::PORT, u32::MAX.into())
        .constant(abi::query_gid_entry::GID_INDEX, 0)
        .flags(abi::query_gid_entry::FLAGS, 0)
        .output(abi::query_gid_entry::RESP_ENTRY, entry.as_mut_bytes());
    !matches!(command.submit(kernel, driver.0), Err(SubmitError::Kernel(Errno::INVAL)))
}

/// Asks for a method that does not exist: with the right driver id the kernel says so
/// (`EPROTONOSUPPORT`), with a wrong one it stops before (`EINVAL`).
fn probe(kernel: &Kernel) -> Result<DriverId, Cause> {
    for id in PROBED_IDS {
        match Command::<0>::new(abi::object::DEVICE, NO_METHOD).submit(kernel, id) {
            Err(SubmitError::Kernel(Errno::PROTONOSUPPORT)) => return Ok(DriverId(id)),
            Err(SubmitError::Kernel(Errno::INVAL)) => {}
            Err(error) => return Err(error.into()),
            Ok(()) => return Err(Cause::Malformed("a method that does not exist was run")),
        }
    }
    Err(Cause::UnknownDriver)
}

#[cfg(all(test, feature = "simulated-kernel"))]
#[expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use crate::simulated::{SimulatedKernel, UserMemory};

    /// Stops at the driver id, as the kernel does, and then at the method.
    #[derive(Debug)]
    struct Bound(u32);

    impl SimulatedKernel for Bound {
        fn ioctl(&self, request: &mut [u8], _: &UserMemory<'_>) -> Result<(), Errno> {
            assert_eq!(request.len(), 24);
            let right = request[16..20] == self.0.to_ne_bytes();
            Err(if right { Errno::PROTONOSUPPORT } else { Errno::INVAL })
        }
    }

    fn probed(driver: u32) -> Result<DriverId, Cause> {
        let null = std::fs::File::open("/dev/null").unwrap();
        probe(&Kernel::Simulated(Box::new(Bound(driver)), null.into()))
    }

    #[test]
    fn the_one_driver_id_that_is_right_is_found() {
        for driver in [1, 5, 12, 21, 64] {
            assert_eq!(probed(driver), Ok(DriverId(driver)));
        }
        assert_eq!(probed(65), Err(Cause::UnknownDriver));
    }

    #[test]
    fn a_file_that_is_no_uverbs_device_is_no_driver() {
        let null = std::fs::File::open("/dev/null").unwrap();
        assert_eq!(probe(&Kernel::Device(null.into())), Err(Cause::NoIoctl));
    }

    fn device_with(path: &str, number: u64) -> Device {
        let mut device = Device::named("sim0");
        if !path.is_empty() {
            device.node = Some(Node { name: "uverbs0".into(), path: path.into(), number });
        }
        device
    }

    #[test]
    fn a_node_must_be_the_device_s() {
        let null = rustix::fs::makedev(1, 3);
        let cause =
            |path, number| Context::open(&device_with(path, number)).unwrap_err().cause().clone();
        assert_eq!(cause("", 0), Cause::NoNode);
        assert_eq!(cause("/nowhere/uverbs0", 0), Cause::NodeMissing);
        assert_eq!(cause("/dev/null", null + 1), Cause::WrongNode);
        assert_eq!(cause("/etc/hostname", 0), Cause::WrongNode);
        // The right node by its number, but nothing that answers.
        assert_eq!(cause("/dev/null", null), Cause::NoIoctl);
    }

    #[test]
    fn a_file_that_is_taken_over_must_be_the_device_s() {
        let null = rustix::fs::makedev(1, 3);
        for (file, number) in [("/dev/null", null + 1), ("/etc/hostname", null)] {
            let device = device_with("/dev/null", number);
            let file = std::fs::File::open(file).unwrap();
            let error = Context::import(&device, file.into()).unwrap_err();
            assert_eq!((error.cause(), error.errno()), (&Cause::WrongNode, 6), "{number:#x}");
        }
    }

    #[test]
    fn a_node_s_number_may_be_another_device_s_by_now() {
        let tree = tempfile::tempdir().unwrap();
        let (folder, other) = (tree.path().join("uverbs0"), tree.path().join("other"));
        std::fs::create_dir(&folder).unwrap();
        std::fs::create_dir(&other).unwrap();
        let mut device = device_with("/dev/null", rustix::fs::makedev(1, 3));
        device.identity = crate::device::Identity::with_node(&folder);
        let cause = |device: &Device| {
            let null = std::fs::File::open("/dev/null").unwrap();
            let imported = Context::import(device, null.into()).unwrap_err().cause().clone();
            let opened = Context::open(device).unwrap_err();
            assert_eq!(*opened.cause(), imported);
            (imported, opened.errno())
        };
        assert_eq!(cause(&device), (Cause::NoIoctl, 25));
        std::fs::rename(&folder, tree.path().join("gone")).unwrap();
        assert_eq!(cause(&device), (Cause::DeviceGone(libc::ENODEV), 19));
        std::fs::rename(&other, &folder).unwrap();
        assert_eq!(cause(&device), (Cause::Replaced, 19));
        let error = Context::open(&device).unwrap_err();
        assert!(error.to_string().ends_with("list the devices again") && !error.leaves_no_ioctl());
    }
}
