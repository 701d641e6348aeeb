//! Opening a device, and taking over one that is open.

use core::ops::RangeInclusive;
use std::os::fd::OwnedFd;

#[cfg(feature = "simulated-kernel")]
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use uverbs_uapi::{device as abi, mlx5};
use zerocopy::IntoBytes;

use super::cause::cause;
use super::node::{no_node, open_node};
use super::probe::driver_of;
use super::{Context, Kind};
use crate::device::{Device, Node};
use crate::driver::{self, DriverId};
use crate::error::{Cause, Error, Request, Result};
use crate::ioctl::sys::kernel::Kernel;
use crate::ioctl::{Command, SubmitError};
use crate::sysfs::is_node;

/// Room for a driver's part of the `GET_CONTEXT` answer. Some drivers write theirs whatever the
/// room; none writes more than this, and none reads meaning into this length.
const DRIVER_ANSWER: usize = 256;

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
    /// if the driver has to be found out, as [`probe_driver`](super::probe_driver). The file is closed then.
    #[doc(alias = "ibv_import_device")]
    pub fn import(device: &Device, fd: OwnedFd) -> Result<Self> {
        let error = |request, cause| Error::new(&*device.name, request, cause);
        let Some(Node { path, number, .. }) = &device.node else {
            return Err(error(Request::QueryContext, no_node(device)));
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
}

#[cfg(all(test, feature = "simulated-kernel"))]
mod tests {
    use nix::libc;

    use super::*;

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
        // What cannot be opened is not the device's either.
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("uverbs0");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        assert_eq!(cause(socket.to_str().unwrap(), null), Cause::WrongNode);
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
        // A device that goes loses its node first.
        let mut without = device_with("/nowhere/uverbs0", rustix::fs::makedev(1, 3));
        without.identity = crate::device::Identity::with_node(&folder);
        let missing = || Context::open(&without).unwrap_err().cause().clone();
        assert_eq!(missing(), Cause::NodeMissing);
        std::fs::rename(&folder, tree.path().join("gone")).unwrap();
        assert_eq!(missing(), Cause::DeviceGone(libc::ENODEV));
        assert_eq!(cause(&device), (Cause::DeviceGone(libc::ENODEV), 19));
        std::fs::rename(&other, &folder).unwrap();
        assert_eq!(cause(&device), (Cause::Replaced, 19));
        let error = Context::open(&device).unwrap_err();
        assert!(error.to_string().ends_with("list the devices again") && !error.leaves_no_ioctl());
    }
}
