//! Limits and version numbers that programs built on libibumad rely on.
//!
//! The limits come from rdma-core's `infiniband/umad.h`, not from the kernel: they limit names and arrays
//! in its callers' code. The version numbers come from the kernel headers `rdma/ib_user_mad.h` and
//! `rdma/ib_user_verbs.h`, and appear in sysfs.

/// Bytes of a device name in libibumad's structures, including the closing NUL. It is shorter than the
/// kernel's limit, [`IB_DEVICE_NAME_MAX`].
pub const UMAD_CA_NAME_LEN: usize = 20;

/// Slots for ports in a CA's array: port 0 and ports 1 to 9.
pub const UMAD_CA_MAX_PORTS: usize = 10;

/// Most CA names that libibumad lists. 32 in older releases.
pub const UMAD_MAX_DEVICES: usize = 128;

/// Most umad device files that libibumad looks at. 64 in older releases.
pub const UMAD_MAX_PORTS: usize = 192;

/// Version of the umad ABI, in `/sys/class/infiniband_mad/abi_version`.
pub const IB_UMAD_ABI_VERSION: u32 = 5;

/// Version of the uverbs ABI, in `/sys/class/infiniband_verbs/abi_version`.
pub const IB_USER_VERBS_ABI_VERSION: u32 = 6;

/// Bytes of a device name in the kernel, including the closing NUL.
pub const IB_DEVICE_NAME_MAX: usize = 64;

/// The class of all RDMA devices; shows those of the reader's network namespace.
pub const SYSFS_INFINIBAND: &str = "/sys/class/infiniband";

/// The class of the umad device files; shows those of all network namespaces.
pub const SYSFS_INFINIBAND_MAD: &str = "/sys/class/infiniband_mad";

/// The class of the uverbs device files; shows those of all network namespaces.
pub const SYSFS_INFINIBAND_VERBS: &str = "/sys/class/infiniband_verbs";
