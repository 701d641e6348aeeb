//! Why the kernel did not answer: what its errno means on a device that is there, and on one that is gone.

use rustix::io::Errno;
use uverbs_uapi::device as abi;
use zerocopy::IntoBytes;

use crate::driver::DriverId;
use crate::error::Cause;
use crate::ioctl::sys::kernel::Kernel;
use crate::ioctl::{Command, SubmitError};

/// Why a request failed. A driver's own failure, which on mlx5 may be its firmware's, has the same
/// number as the device's end.
pub(super) fn cause(error: SubmitError, kernel: &Kernel, driver: DriverId) -> Cause {
    match Cause::from(error) {
        Cause::DeviceGone(errno) if !is_gone(kernel, driver) => Cause::Os(errno),
        cause => cause,
    }
}

/// Whether an open device is known to be removed. A GID of an impossible port is asked for: the kernel looks
/// for the device before it looks for the port (or for a context), and touches no entry. Before Linux 5.10 it
/// does not know the method, of whatever device. Any other failure says nothing of the device.
fn is_gone(kernel: &Kernel, driver: DriverId) -> bool {
    let mut entry = abi::GidEntry::default();
    let mut command = Command::<4>::new(abi::object::DEVICE, abi::method::QUERY_GID_ENTRY);
    command
        .constant(abi::query_gid_entry::PORT, u32::MAX.into())
        .constant(abi::query_gid_entry::GID_INDEX, 0)
        .flags(abi::query_gid_entry::FLAGS, 0)
        .output(abi::query_gid_entry::RESP_ENTRY, entry.as_mut_bytes());
    matches!(
        command.submit(kernel, driver.0),
        Err(SubmitError::Kernel(Errno::IO | Errno::NODEV | Errno::NXIO))
    )
}

#[cfg(all(test, feature = "simulated-kernel"))]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use crate::context::Context;
    use crate::simulated::{SimulatedKernel, UserMemory};

    /// The driver fails to query a port. If the kernel is asked for the impossible one, it answers like this.
    #[derive(Debug)]
    struct Failing(Errno);

    impl SimulatedKernel for Failing {
        fn ioctl(&self, request: &mut [u8], _: &UserMemory<'_>) -> Result<(), Errno> {
            // The method is the header's third number.
            match u16::from_ne_bytes(request.get(4..6).unwrap().try_into().unwrap()) {
                abi::method::QUERY_PORT => Err(Errno::IO),
                abi::method::QUERY_GID_ENTRY => Err(self.0),
                _ => Ok(()),
            }
        }
    }

    #[test]
    fn a_device_is_gone_only_if_the_kernel_says_so() {
        let failed = |answer| {
            let kernel = Box::new(Failing(answer));
            let context = Context::simulated("x", 1..=1, DriverId::MLX5, kernel).unwrap();
            context.query_port(1).unwrap_err().cause().clone()
        };
        assert_eq!(failed(Errno::IO), Cause::DeviceGone(5));
        for other in [Errno::INVAL, Errno::PROTONOSUPPORT, Errno::NOMEM, Errno::PERM] {
            assert_eq!(failed(other), Cause::Os(5));
        }
    }
}
