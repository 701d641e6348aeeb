//! GIDs.

use core::ffi::{c_int, c_uint};
use core::slice;

use nix::libc::ssize_t;
use rustix::io::Errno;

use super::abi;
use super::opened::Opened;
use crate::capi::{failed, guarded, number};
use crate::gid::{GidEntry, GidType};
use crate::ioctl::MAX_PAYLOAD;

/// Asks for one entry of a port's GID table. See `ibv_query_gid_ex(3)`.
///
/// # Errors
/// `ENODATA` (an empty slot), `EINVAL` (no such port or index, unknown flags, a structure that is too
/// small, NULL), `EIO` (the device is gone), `EPROTONOSUPPORT` (Linux before 5.10).
///
/// # Safety
/// `context` is NULL or open; `entry` is NULL or has room for `entry_size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _ibv_query_gid_ex(
    context: *mut abi::Context,
    port_num: u32,
    gid_index: u32,
    entry: *mut abi::GidEntry,
    flags: u32,
    entry_size: usize,
) -> c_int {
    // SAFETY: the same contract.
    let Some(opened) = (unsafe { Opened::of(context) }) else { return number(Errno::INVAL) };
    if entry.is_null() || entry_size > MAX_PAYLOAD {
        return number(Errno::INVAL);
    }
    // SAFETY: not NULL, so by the contract `entry_size` bytes of the caller's, which nobody else
    // uses meanwhile. They come from outside of Rust, so each has some value.
    let bytes = unsafe { slice::from_raw_parts_mut(entry.cast::<u8>(), entry_size) };
    let answer = guarded(Err(Errno::IO), || {
        opened
            .context
            .gid_entry_into(port_num, gid_index, flags, bytes)
            .map_err(|cause| cause.as_errno())
    });
    answer.map_or_else(number, |()| 0)
}

/// Asks for all valid entries of all ports and returns their number. See `ibv_query_gid_table(3)`.
///
/// # Errors
/// Negative: `EINVAL` (more entries than `max_entries`, or 0 of them, unknown flags, a structure
/// that is too small, NULL), `EIO` (the device is gone), `EPROTONOSUPPORT` (Linux before 5.10).
///
/// # Safety
/// `context` is NULL or open; `entries` is NULL or has room for `max_entries` structures of
/// `entry_size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _ibv_query_gid_table(
    context: *mut abi::Context,
    entries: *mut abi::GidEntry,
    max_entries: usize,
    flags: u32,
    entry_size: usize,
) -> ssize_t {
    const INVALID: ssize_t = -(Errno::INVAL.raw_os_error() as ssize_t);
    // SAFETY: the same contract.
    let Some(opened) = (unsafe { Opened::of(context) }) else { return INVALID };
    let length =
        max_entries.checked_mul(entry_size).filter(|bytes| isize::try_from(*bytes).is_ok());
    let (Some(length), false) = (length, entries.is_null()) else { return INVALID };
    let answer = guarded(Err(Errno::IO), || {
        // SAFETY: not NULL, so by the contract that many bytes of the caller's, which nobody else uses
        // meanwhile. They come from outside of Rust, so each has some value.
        let bytes = unsafe { slice::from_raw_parts_mut(entries.cast::<u8>(), length) };
        opened.context.gid_table_bytes(flags, entry_size, bytes).map_err(|cause| cause.as_errno())
    });
    match answer {
        Ok(count) => ssize_t::try_from(count).unwrap_or(ssize_t::MAX),
        Err(errno) => -(number(errno) as ssize_t),
    }
}

/// Asks for one GID; all zeros for an empty slot. See `ibv_query_gid(3)`.
///
/// # Errors
/// −1, with `errno` as [`_ibv_query_gid_ex`] gives it.
///
/// # Safety
/// `context` is NULL or open; `gid` is NULL or has room for 16 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_query_gid(
    context: *mut abi::Context,
    port_num: u8,
    index: c_int,
    gid: *mut [u8; 16],
) -> c_int {
    let index = u32::from_ne_bytes(index.to_ne_bytes());
    // SAFETY: the same contract.
    let entry = unsafe { entry_of(context, port_num, index, gid.is_null()) };
    let entry = match entry {
        Ok(entry) => entry,
        Err(errno) => return failed(errno),
    };
    // SAFETY: `entry_of` gave nothing for NULL, so by the contract 16 bytes of the caller's.
    unsafe { gid.write(entry.gid().to_bytes()) };
    0
}

/// Asks for a GID's type in the words of sysfs: 0 is "IB/RoCE v1", also for an empty slot, and 1
/// is "RoCE v2".
///
/// # Errors
/// As [`ibv_query_gid`].
///
/// # Safety
/// `context` is NULL or open; `gid_type` is NULL or points to an `enum`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_query_gid_type(
    context: *mut abi::Context,
    port_num: u8,
    index: c_uint,
    gid_type: *mut c_uint,
) -> c_int {
    // SAFETY: the same contract.
    let entry = unsafe { entry_of(context, port_num, index, gid_type.is_null()) };
    let entry = match entry {
        Ok(entry) => entry,
        Err(errno) => return failed(errno),
    };
    let is_v1 = [GidType::IB, GidType::ROCE_V1].contains(&entry.gid_type());
    // SAFETY: `entry_of` gave nothing for NULL, so by the contract an `enum` of the caller's.
    unsafe { gid_type.write(c_uint::from(!is_v1)) };
    0
}

/// One entry, all zeros for an empty slot; also an error if there is no memory to write to.
///
/// # Safety
/// `context` is NULL or open.
unsafe fn entry_of(
    context: *mut abi::Context,
    port_num: u8,
    index: u32,
    is_nowhere: bool,
) -> Result<GidEntry, Errno> {
    // SAFETY: the same contract.
    let opened = unsafe { Opened::of(context) }.filter(|_| !is_nowhere);
    guarded(Err(Errno::IO), || {
        let context = &opened.ok_or(Errno::INVAL)?.context;
        let entry = context.query_gid_ex(port_num.into(), index);
        entry.map(Option::unwrap_or_default).map_err(|error| error.cause().as_errno())
    })
}
