//! The functions that read sysfs, on a tree that is given: for fuzzing (feature
//! `simulated-kernel`, not part of the public API).

use super::{CaName, Sysfs, UmadCa, UmadDeviceNode, UmadPort, c_int};

/// As [`umad_get_cas_names`](super::umad_get_cas_names).
///
/// # Safety
/// The same.
pub unsafe fn get_cas_names(sysfs: &Sysfs, cas: *mut CaName, max: c_int) -> c_int {
    // SAFETY: the same contract.
    unsafe { super::get_cas_names(sysfs, cas, max) }
}

/// As [`umad_get_ca_portguids`](super::umad_get_ca_portguids).
///
/// # Safety
/// The same.
pub unsafe fn get_ca_portguids(
    sysfs: &Sysfs,
    name: Option<&str>,
    portguids: *mut u64,
    max: c_int,
) -> c_int {
    // SAFETY: the same contract.
    unsafe { super::get_ca_portguids(sysfs, name, portguids, max) }
}

/// As [`umad_get_ca`](super::umad_get_ca).
///
/// # Safety
/// The same.
pub unsafe fn get_ca(sysfs: &Sysfs, name: Option<&str>, ca: *mut UmadCa) -> c_int {
    // SAFETY: the same contract.
    unsafe { super::get_ca(sysfs, name, ca) }
}

/// As [`umad_get_port`](super::umad_get_port).
///
/// # Safety
/// The same.
pub unsafe fn get_port(
    sysfs: &Sysfs,
    name: Option<&str>,
    portnum: c_int,
    port: *mut UmadPort,
) -> c_int {
    // SAFETY: the same contract.
    unsafe { super::get_port(sysfs, name, portnum, port) }
}

/// As [`umad_get_ca_device_list`](super::umad_get_ca_device_list); `None` for its errors.
#[must_use]
pub fn get_ca_device_list(sysfs: &Sysfs) -> Option<*mut UmadDeviceNode> {
    super::get_ca_device_list(sysfs).ok()
}
