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
