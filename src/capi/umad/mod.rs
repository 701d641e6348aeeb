//! The functions of `<infiniband/umad.h>` that read sysfs, by [`strict`] rules: they return what
//! libibumad returns.
//!
//! None opens a device node, and several threads may call each at once. `errno` does not change, except
//! after [`umad_get_ca_device_list`] and if a CA or a port cannot be read. Then it gives the reason, as
//! programs expect. All memory comes from `malloc`.
//!
//! If libibumad crashes, corrupts memory or leaves a structure that must not be released, these functions
//! behave differently (`strict` lists how the answers differ):
//!
//! | | libibumad | here |
//! |---|---|---|
//! | NULL instead of a structure or array to fill or sort | crashes | `-EINVAL`; `-1` from `umad_get_cas_names`; `EINVAL` from `umad_sort_ca_device_list`, unless the size is 1 |
//! | a NULL name in a list to sort | crashes | sorts it as an empty name |
//! | `umad_get_cas_names` of a `max` below 1, on a host without RDMA | writes `mthca0`, returns 1 | writes nothing, returns 0 |
//! | `umad_get_ca` and `umad_get_port` fail | leave a structure half filled, or as it was, or with a pointer to freed P_Keys | leave it all zero; releasing it is harmless |
//! | another device takes over a CA's name meanwhile | may answer of both | answers of one |
//! | a CA comes or goes meanwhile | may answer without ports, or without those before the last one | fails; may answer without those after the last one |
//! | no memory for P_Keys | `-EIO` | `-ENOMEM` |
//! | `umad_release_ca` of a CA whose `numports` is 10 or more | reads past the ports | releases the ten there are |
//! | `umad_release_ca` and `umad_release_port` of NULL, with debugging on | crash | `-ENODEV`, as with debugging off |
//! | a name that is not UTF-8 | looks for the device | there is no such device |
//! | debugging off | writes to stderr if a port has no P_Keys | never writes |
//! | debugging on | traces every step on stderr | writes to stderr why a call failed |

mod abi;
mod memory;
#[cfg(feature = "simulated-kernel")]
#[doc(hidden)]
pub mod rooted;
#[cfg(test)]
mod tests;

use core::ffi::{CStr, c_char, c_int};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicI32, Ordering};
use std::io::Write as _;

use rustix::io::Errno;
use uverbs_uapi::umad::UMAD_CA_MAX_PORTS;

pub use self::abi::{CaName, UmadCa, UmadDeviceNode, UmadPort};
use super::{guarded, number, reasoned, set_errno};
use crate::guid::Guid;
use crate::sysfs::Sysfs;
use crate::umad::strict::{self, Failure};

/// The level of [`umad_debug`].
static LEVEL: AtomicI32 = AtomicI32::new(0);

/// Does nothing; returns 0. See [`umad_init(3)`].
///
/// [`umad_init(3)`]: https://man7.org/linux/man-pages/man3/umad_init.3.html
#[unsafe(no_mangle)]
pub extern "C" fn umad_init() -> c_int {
    0
}

/// Does nothing; returns 0. See [`umad_init(3)`].
///
/// [`umad_init(3)`]: https://man7.org/linux/man-pages/man3/umad_init.3.html
#[unsafe(no_mangle)]
pub extern "C" fn umad_done() -> c_int {
    0
}

/// Sets the level of debugging, unless `level` is negative, and returns the level that is then set.
/// See [`umad_debug(3)`].
///
/// At level 0, the default, nothing is written. At any higher level [`umad_get_ca`], [`umad_get_port`],
/// [`umad_get_ca_portguids`] and [`umad_get_ca_device_list`] write one line to stderr if they fail: the function's
/// name, its return value and, if a file could not be read, which file and why. A newline in a name that the caller
/// gives is written as it is. They write nothing if a structure
/// to fill is NULL, or if there is no memory for the answer.
///
/// [`umad_debug(3)`]: https://man7.org/linux/man-pages/man3/umad_debug.3.html
#[unsafe(no_mangle)]
pub extern "C" fn umad_debug(level: c_int) -> c_int {
    if level >= 0 {
        LEVEL.store(level, Ordering::Relaxed);
    }
    LEVEL.load(Ordering::Relaxed)
}

/// Writes the names of up to `max` channel adapters, switches and routers, sorted by their bytes,
/// and returns how many. Names of 20 bytes or more are left out. Without RDMA, and if it cannot be read, the only name is
/// `mthca0`.
/// See [`umad_get_cas_names(3)`].
///
/// [`umad_get_cas_names(3)`]: https://man7.org/linux/man-pages/man3/umad_get_cas_names.3.html
///
/// # Errors
/// -1: `cas` is NULL and there is a name to write.
///
/// # Safety
/// `cas` is NULL or has room for `max` names.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn umad_get_cas_names(cas: *mut CaName, max: c_int) -> c_int {
    // SAFETY: as this function's contract.
    guarded(-1, || unsafe { get_cas_names(&Sysfs::host(), cas, max) })
}

/// # Safety
/// As [`umad_get_cas_names`].
unsafe fn get_cas_names(sysfs: &Sysfs, cas: *mut CaName, max: c_int) -> c_int {
    let max = usize::try_from(max).unwrap_or(0);
    let names = strict::get_cas_names(sysfs, max);
    let mut count = 0;
    for (index, name) in names.iter().take(max).enumerate() {
        if cas.is_null() {
            return -1;
        }
        // SAFETY: `index` is below `max`, for which there is room.
        let place = unsafe { cas.add(index) };
        // SAFETY: room for a name, which has no alignment.
        unsafe { place.write(*name.array()) };
        count += 1;
    }
    count
}

/// Writes the port GUIDs of a CA, in network order and each at the index of its port's number, and
/// returns how many: **2 on a CA with one port**, because index 0 is the port of a switch. A `ca_name` of
/// NULL means the default CA. The GUID is 0 if there is no port, or if its GID at index 0 is empty. If
/// `portguids` is NULL, the CA is read and the result is 0. See [`umad_get_ca_portguids(3)`].
///
/// [`umad_get_ca_portguids(3)`]: https://man7.org/linux/man-pages/man3/umad_get_ca_portguids.3.html
///
/// # Errors
/// * `-ENODEV`: `ca_name` is NULL, and there is no InfiniBand-type device;
/// * `-1`: the CA is unknown, or fails for any reason of [`umad_get_ca`];
/// * `-ENOMEM`: `max` is too small for all. Nothing is written.
///
/// # Safety
/// `ca_name` is NULL or a text that ends with a NUL; `portguids` is NULL or has room for `max`
/// GUIDs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn umad_get_ca_portguids(
    ca_name: *const c_char,
    portguids: *mut u64,
    max: c_int,
) -> c_int {
    reasoned(-1, || {
        // SAFETY: as this function's contract.
        let name = unsafe { text(ca_name) };
        // SAFETY: as this function's contract.
        unsafe { get_ca_portguids(&Sysfs::host(), name.as_deref(), portguids, max) }
    })
}

/// # Safety
/// As [`umad_get_ca_portguids`].
unsafe fn get_ca_portguids(
    sysfs: &Sysfs,
    name: Option<&str>,
    portguids: *mut u64,
    max: c_int,
) -> c_int {
    // No CA has more.
    let mut guids = [Guid::default(); UMAD_CA_MAX_PORTS];
    let room = usize::try_from(max).unwrap_or(0).min(guids.len());
    let array = if portguids.is_null() { None } else { guids.get_mut(..room) };
    let count = match strict::get_ca_portguids(sysfs, name, array) {
        Ok(count) => count,
        Err(failure) => return failed("umad_get_ca_portguids", &failure),
    };
    let mut written = 0;
    for (index, guid) in guids.iter().take(count).enumerate() {
        // SAFETY: `index` is below `count`, which is at most `max`; with no array, `count` is 0.
        let place = unsafe { portguids.add(index) };
        // SAFETY: room for a GUID, in an array of GUIDs.
        unsafe { place.write(memory::network_order(*guid)) };
        written += 1;
    }
    written
}

/// Fills `ca` with a CA and all its ports, and returns 0; the default CA if `ca_name` is NULL.
/// [`umad_release_ca`] frees the ports. See [`umad_get_ca(3)`].
///
/// [`umad_get_ca(3)`]: https://man7.org/linux/man-pages/man3/umad_get_ca.3.html
///
/// # Errors
/// All leave `ca` zeroed.
/// * `-ENODEV`: `ca_name` is NULL, and there is no InfiniBand-type device;
/// * `-ENOENT`: no such CA (also one whose name has 20 bytes or more), or no folder of its ports;
/// * `-EINVAL`: `ca` is NULL, or `node_guid` or `sys_image_guid` has fewer than 4 groups;
/// * `-EIO`: a port's number is 10 or more, or a port cannot be read or has no P_Keys or no GID at
///   index 0;
/// * `-ENOMEM`: no memory for the ports;
/// * any other negative errno: that of reading `node_type`, `node_guid` or `sys_image_guid`.
///
/// # Safety
/// `ca_name` is NULL or a text that ends with a NUL; `ca` is NULL or has room for a CA.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn umad_get_ca(ca_name: *const c_char, ca: *mut UmadCa) -> c_int {
    reasoned(-number(Errno::IO), || {
        // SAFETY: as this function's contract.
        let name = unsafe { text(ca_name) };
        // SAFETY: as this function's contract.
        unsafe { get_ca(&Sysfs::host(), name.as_deref(), ca) }
    })
}

/// # Safety
/// As [`umad_get_ca`].
unsafe fn get_ca(sysfs: &Sysfs, name: Option<&str>, ca: *mut UmadCa) -> c_int {
    if ca.is_null() {
        return -number(Errno::INVAL);
    }
    // SAFETY: not NULL, so there is room for a CA.
    unsafe { ca.write(UmadCa::NONE) };
    let answer = match strict::get_ca(sysfs, name) {
        Ok(answer) => answer,
        Err(failure) => return failed("umad_get_ca", &failure),
    };
    match UmadCa::new(&answer) {
        Ok(filled) => {
            // SAFETY: not NULL, so there is room for a CA. What it held was zero.
            unsafe { ca.write(filled) };
            0
        }
        Err(errno) => -number(errno),
    }
}

/// Frees the ports that [`umad_get_ca`] made, sets their pointers to NULL, and returns 0. A CA without
/// ports, such as a released or zeroed one, does not change. See [`umad_get_ca(3)`].
///
/// [`umad_get_ca(3)`]: https://man7.org/linux/man-pages/man3/umad_get_ca.3.html
///
/// # Errors
/// `-ENODEV`: `ca` is NULL.
///
/// # Safety
/// `ca` is NULL, or zeroed, or was last filled by [`umad_get_ca`], and its ports were not released through
/// a copy.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn umad_release_ca(ca: *mut UmadCa) -> c_int {
    guarded(-number(Errno::IO), || {
        // SAFETY: NULL or a CA, by this function's contract.
        let Some(ca) = (unsafe { ca.as_mut() }) else {
            return -number(Errno::NODEV);
        };
        // SAFETY: its ports are zero or of `umad_get_ca`, by this function's contract.
        unsafe { ca.release() };
        0
    })
}

/// Fills `port` with one port, and returns 0; of the default CA if `ca_name` is NULL, and the
/// default port if `portnum` is 0. [`umad_release_port`] frees the P_Keys. See [`umad_get_port(3)`].
///
/// [`umad_get_port(3)`]: https://man7.org/linux/man-pages/man3/umad_get_port.3.html
///
/// # Errors
/// All leave `port` zeroed.
/// * `-ENODEV`: `ca_name` is NULL, and there is no InfiniBand-type device; or the named CA is
///   unknown, cannot be read or has no usable port, and `portnum` is 0;
/// * `-EIO`: no such port or CA, or the port cannot be read or has no P_Keys or no GID at index 0;
/// * `-EINVAL`: `port` is NULL;
/// * `-ENOMEM`: no memory for the P_Keys.
///
/// # Safety
/// `ca_name` is NULL or a text that ends with a NUL; `port` is NULL or has room for a port.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn umad_get_port(
    ca_name: *const c_char,
    portnum: c_int,
    port: *mut UmadPort,
) -> c_int {
    reasoned(-number(Errno::IO), || {
        // SAFETY: as this function's contract.
        let name = unsafe { text(ca_name) };
        // SAFETY: as this function's contract.
        unsafe { get_port(&Sysfs::host(), name.as_deref(), portnum, port) }
    })
}

/// # Safety
/// As [`umad_get_port`].
unsafe fn get_port(
    sysfs: &Sysfs,
    name: Option<&str>,
    portnum: c_int,
    port: *mut UmadPort,
) -> c_int {
    if port.is_null() {
        return -number(Errno::INVAL);
    }
    // SAFETY: not NULL, so there is room for a port.
    unsafe { port.write(UmadPort::NONE) };
    let answer = match strict::get_port(sysfs, name, portnum) {
        Ok(answer) => answer,
        Err(failure) => return failed("umad_get_port", &failure),
    };
    match UmadPort::new(&answer) {
        Ok(filled) => {
            // SAFETY: not NULL, so there is room for a port. What it held was zero.
            unsafe { port.write(filled) };
            0
        }
        Err(errno) => -number(errno),
    }
}

/// Frees the P_Keys of a port, sets their pointer to NULL and their number to 0, and returns 0. A port
/// without P_Keys, such as a released or zeroed one, does not change. See [`umad_get_port(3)`].
///
/// [`umad_get_port(3)`]: https://man7.org/linux/man-pages/man3/umad_get_port.3.html
///
/// # Errors
/// `-ENODEV`: `port` is NULL.
///
/// # Safety
/// `port` is NULL, or zeroed, or was last filled by [`umad_get_port`] or [`umad_get_ca`], and its
/// P_Keys were not released through a copy.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn umad_release_port(port: *mut UmadPort) -> c_int {
    guarded(-number(Errno::IO), || {
        // SAFETY: NULL or a port, by this function's contract.
        let Some(port) = (unsafe { port.as_mut() }) else {
            return -number(Errno::NODEV);
        };
        // SAFETY: its P_Keys are zero or ours, by this function's contract.
        unsafe { port.release() };
        0
    })
}

/// Lists all channel adapters, switches and routers in the order of the folder, with names of any length.
/// Sets `errno` to 0. [`umad_free_ca_device_list`] frees the list. See
/// [`umad_get_ca_device_list(3)`].
///
/// [`umad_get_ca_device_list(3)`]: https://man7.org/linux/man-pages/man3/umad_get_ca_device_list.3.html
///
/// # Errors
/// NULL with `errno` 0 is the empty list. NULL with another `errno` is a failure: `ENOMEM`, or the errno of
/// reading the folder of the devices (if it is missing, the list is empty).
#[unsafe(no_mangle)]
pub extern "C" fn umad_get_ca_device_list() -> *mut UmadDeviceNode {
    let list = guarded(Err(Errno::IO), || get_ca_device_list(&Sysfs::host()));
    nix::errno::Errno::clear();
    list.unwrap_or_else(|errno| {
        set_errno(errno);
        null_mut()
    })
}

fn get_ca_device_list(sysfs: &Sysfs) -> Result<*mut UmadDeviceNode, Errno> {
    let names = strict::get_ca_device_list(sysfs).map_err(|failure| {
        Errno::from_raw_os_error(-failed("umad_get_ca_device_list", &failure))
    })?;
    memory::list(&names)
}

/// Frees a list of names; NULL is an empty one. See [`umad_free_ca_device_list(3)`].
///
/// [`umad_free_ca_device_list(3)`]: https://man7.org/linux/man-pages/man3/umad_free_ca_device_list.3.html
///
/// # Safety
/// `head` is NULL or the first node of a list of [`umad_get_ca_device_list`], sorted or not, which
/// was not freed before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn umad_free_ca_device_list(head: *mut UmadDeviceNode) {
    // SAFETY: as this function's contract.
    guarded((), || unsafe { memory::free_list(head) });
}

/// Sorts a list of names by their bytes, writes the new first node to `*head`, and returns 0. `size` is the
/// number of nodes. With 0 they are counted; with 1 the list is not read. See
/// [`umad_sort_ca_device_list(3)`].
///
/// [`umad_sort_ca_device_list(3)`]: https://man7.org/linux/man-pages/man3/umad_sort_ca_device_list.3.html
///
/// # Errors
/// A positive number; the list does not change.
/// * `EINVAL`: `size` is 2 or more and the list does not have `size` nodes; or `head` is NULL, and `size` is not 1;
/// * `ENOMEM`: no memory to sort so many nodes.
///
/// # Safety
/// `head` is NULL or points to NULL or to the first node of a list, which ends with a `next` of NULL
/// and whose names are NULL or end with a NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn umad_sort_ca_device_list(
    head: *mut *mut UmadDeviceNode,
    size: usize,
) -> c_int {
    guarded(number(Errno::IO), || {
        if size == 1 {
            return 0;
        }
        // SAFETY: NULL or the place of a list's head, by this function's contract.
        let Some(head) = (unsafe { head.as_mut() }) else {
            return number(Errno::INVAL);
        };
        // SAFETY: a list, by this function's contract.
        match unsafe { sort(head, size) } {
            Ok(()) => 0,
            Err(errno) => number(errno),
        }
    })
}

/// # Safety
/// As [`umad_sort_ca_device_list`].
unsafe fn sort(head: &mut *mut UmadDeviceNode, size: usize) -> Result<(), Errno> {
    let mut nodes: Vec<(&[u8], *mut UmadDeviceNode)> = Vec::new();
    nodes.try_reserve_exact(size).map_err(|_| Errno::NOMEM)?;
    let mut place = *head;
    // SAFETY: NULL or a node, by this function's contract.
    while let Some(node) = unsafe { place.as_ref() } {
        if size != 0 && nodes.len() == size {
            return Err(Errno::INVAL);
        }
        let name = if node.ca_name.is_null() {
            c""
        } else {
            // SAFETY: not NULL, so a text that ends with a NUL, by this function's contract.
            unsafe { CStr::from_ptr(node.ca_name) }
        };
        nodes.push((name.to_bytes(), place));
        place = node.next;
    }
    if nodes.len() < size {
        return Err(Errno::INVAL);
    }
    nodes.sort_by_key(|(name, _)| *name);
    let mut next = null_mut();
    for (_, place) in nodes.into_iter().rev() {
        // SAFETY: a node, by this function's contract; nothing else refers to it.
        if let Some(node) = unsafe { place.as_mut() } {
            node.next = next;
        }
        next = place;
    }
    *head = next;
    Ok(())
}

/// The value of a failure. Sets `errno` to its reason, and prints it if debugging is on.
fn failed(function: &str, failure: &Failure) -> c_int {
    if LEVEL.load(Ordering::Relaxed) > 0 {
        // A closed stderr cannot be reported.
        let _ = writeln!(std::io::stderr(), "uverbs: {function}: {failure}");
    }
    set_errno(failure.reason());
    failure.value()
}

/// A name, if there is one. It may be part of the structure to be filled, so it is copied. A name that is
/// not UTF-8 becomes the empty name, which no device has.
///
/// # Safety
/// `name` is NULL or a text that ends with a NUL.
unsafe fn text(name: *const c_char) -> Option<String> {
    if name.is_null() {
        return None;
    }
    // SAFETY: not NULL, so a text that ends with a NUL, by this function's contract.
    let name = unsafe { CStr::from_ptr(name) };
    Some(name.to_str().unwrap_or_default().to_owned())
}
