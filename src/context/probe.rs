//! A device's driver, found out by asking the device.

use core::ops::RangeInclusive;

use rustix::io::Errno;
use uverbs_uapi::device as abi;

use super::node::open_node;
use crate::device::Device;
use crate::driver::DriverId;
use crate::error::{Cause, Error, Request, Result};
use crate::ioctl::sys::kernel::Kernel;
use crate::ioctl::{Command, SubmitError};

/// Driver ids that are tried by probing: far beyond the last that the kernel has given.
const PROBED_IDS: RangeInclusive<u32> = 1..=64;

/// A method id that no kernel has: the largest that is not a driver's own.
const NO_METHOD: u16 = 0x0fff;

/// Finds out a device's driver by asking it, without a context and without side effects.
///
/// For devices whose driver netlink does not name: mthca, hns, and all where there is no netlink.
///
/// ```no_run
/// let device = uverbs::Host::new().device("hns_0")?;
/// println!("{}", uverbs::context::probe_driver(&device)?);
/// # Ok::<(), uverbs::Error>(())
/// ```
///
/// # Errors
/// Those of opening the node, and `EINVAL` if the device accepts no known id.
pub fn probe_driver(device: &Device) -> Result<DriverId> {
    let kernel = open_node(device)?;
    probe(&kernel).map_err(|cause| Error::new(&*device.name, Request::ProbeDriver, cause))
}

/// The driver, by netlink or by the open device.
pub(super) fn driver_of(device: &Device, kernel: &Kernel) -> Result<DriverId> {
    match device.driver {
        Some(driver) => Ok(driver),
        None => {
            probe(kernel).map_err(|cause| Error::new(&*device.name, Request::ProbeDriver, cause))
        }
    }
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
}
