//! Errnos that the kernel answers with.

/// An error number; positive.
pub type Errno = i32;

/// No such attribute.
pub const ENOENT: Errno = 2;
/// Memory that is not there.
pub const EFAULT: Errno = 14;
/// Invalid.
pub const EINVAL: Errno = 22;
/// Another ioctl.
pub const ENOTTY: Errno = 25;
/// Less room than a write command wants.
pub const ENOSPC: Errno = 28;
/// No such object.
pub const ENOMSG: Errno = 42;
/// An empty slot.
pub const ENODATA: Errno = 61;
/// Unknown to this kernel.
pub const EPROTONOSUPPORT: Errno = 93;
/// Not offered by this device.
pub const EOPNOTSUPP: Errno = 95;
