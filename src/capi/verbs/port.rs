//! Ports and their P_Keys.

use core::ffi::c_int;

use rustix::io::Errno;
use uverbs_uapi::device::QueryPortResponse;
use zerocopy::IntoBytes;

use super::abi;
use super::opened::Opened;
use crate::capi::{failed, fill, guarded, number, signed};
use crate::driver::DriverId;
use crate::error::Cause;

impl From<&QueryPortResponse> for abi::PortAttr {
    fn from(port: &QueryPortResponse) -> Self {
        Self {
            state: port.state.into(),
            max_mtu: port.max_mtu.into(),
            active_mtu: port.active_mtu.into(),
            gid_tbl_len: signed(port.gid_tbl_len),
            port_cap_flags: port.port_cap_flags,
            max_msg_sz: port.max_msg_sz,
            bad_pkey_cntr: port.bad_pkey_cntr,
            qkey_viol_cntr: port.qkey_viol_cntr,
            pkey_tbl_len: port.pkey_tbl_len,
            lid: port.lid,
            sm_lid: port.sm_lid,
            lmc: port.lmc,
            max_vl_num: port.max_vl_num,
            sm_sl: port.sm_sl,
            subnet_timeout: port.subnet_timeout,
            init_type_reply: port.init_type_reply,
            active_width: port.active_width,
            active_speed: port.active_speed,
            phys_state: port.phys_state,
            link_layer: port.link_layer,
            flags: port.flags,
            port_cap_flags2: port.port_cap_flags2,
            padding: 0,
            active_speed_ex: port.active_speed_ex,
        }
    }
}

/// Asks for a port's attributes, as much as fits in `length` bytes. Values that the kernel does not give
/// are zero. The headers' inline `ibv_query_port(3)`, whose structure grew, calls it.
///
/// # Errors
/// `EINVAL` (no such port, NULL), `EIO` (the device is gone), or the driver's. As rdma-core does, a structure of the
/// inline `ibv_query_port` is filled with zeros then. Of the oldest one nothing is written.
///
/// # Safety
/// `context` is NULL or open; `port_attr` is NULL or has room for `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn uverbs_query_port(
    context: *mut abi::Context,
    port_num: u8,
    port_attr: *mut abi::PortAttr,
    length: usize,
) -> c_int {
    // SAFETY: the same contract.
    let Some(opened) = (unsafe { Opened::of(context) }) else { return number(Errno::INVAL) };
    if port_attr.is_null() {
        return number(Errno::INVAL);
    }
    let answer = guarded(Err(Errno::IO), || {
        opened.context.port_response(port_num.into()).map_err(|cause| cause.as_errno())
    });
    let (port, errno) = match answer {
        Ok(port) => (Some(abi::PortAttr::from(&port)), 0),
        Err(errno) => (None, number(errno)),
    };
    if port.is_some() || length > COMPAT {
        let bytes = port.as_ref().map_or(&[][..], IntoBytes::as_bytes);
        // SAFETY: not NULL, so by the contract `length` bytes of the caller's.
        unsafe { fill(port_attr.cast(), length, bytes) };
    }
    errno
}

/// Bytes of `struct _compat_ibv_port_attr`, the structure that this symbol writes in every release.
const COMPAT: usize = core::mem::offset_of!(abi::PortAttr, port_cap_flags2);

/// As [`uverbs_query_port`] into the oldest structure, up to `flags`. Programs that include the
/// headers do not call this symbol: their `ibv_query_port` is inline code.
///
/// # Errors
/// As [`uverbs_query_port`].
///
/// # Safety
/// `context` is NULL or open; `port_attr` is NULL or has room for the oldest structure, 48 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_query_port(
    context: *mut abi::Context,
    port_num: u8,
    port_attr: *mut abi::PortAttr,
) -> c_int {
    // SAFETY: the same contract.
    unsafe { uverbs_query_port(context, port_num, port_attr, COMPAT) }
}

/// Asks for a port's effective rate, in units of 100 Mbit/s. Linux 7.0. See
/// `ibv_query_port_speed(3)`.
///
/// # Errors
/// `EOPNOTSUPP` (the driver does not give it), `EINVAL` (no such port, NULL), `ENODEV` (the port has no
/// network interface), `EIO` (the device is gone), `EPROTONOSUPPORT` (an older kernel, with mlx5).
///
/// # Safety
/// `context` is NULL or open; `port_speed` is NULL or points to a `uint64_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_query_port_speed(
    context: *mut abi::Context,
    port_num: u32,
    port_speed: *mut u64,
) -> c_int {
    // SAFETY: the same contract.
    let Some(opened) = (unsafe { Opened::of(context) }) else { return number(Errno::INVAL) };
    if port_speed.is_null() {
        return number(Errno::INVAL);
    }
    let answer = guarded(Err(Errno::IO), || {
        opened.context.query_port_speed(port_num).map_err(|error| match error.cause() {
            // Only mlx5's provider asks the kernel.
            Cause::UnknownToKernel if opened.context.driver() != DriverId::MLX5 => Errno::OPNOTSUPP,
            cause => cause.as_errno(),
        })
    });
    match answer {
        Ok(rate) => {
            // SAFETY: not NULL, so by the contract a `uint64_t` of the caller's.
            unsafe { port_speed.write(rate.0) };
            0
        }
        Err(errno) => number(errno),
    }
}

/// Reads one P_Key, in network order, from sysfs. See `ibv_query_pkey(3)`.
///
/// # Errors
/// −1, with the `errno` of reading it: `ENOENT` for a port or an index that does not exist; `EINVAL` for
/// NULL.
///
/// # Safety
/// `context` is NULL or open; `pkey` is NULL or points to 16 bits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_query_pkey(
    context: *mut abi::Context,
    port_num: u8,
    index: c_int,
    pkey: *mut u16,
) -> c_int {
    // SAFETY: the same contract.
    let opened = unsafe { Opened::of(context) };
    let (Some(opened), false) = (opened, pkey.is_null()) else { return failed(Errno::INVAL) };
    match guarded(Err(Errno::IO), || read_pkey(opened, port_num, index)) {
        Ok(value) => {
            // SAFETY: not NULL, so by the contract 16 bits of the caller's.
            unsafe { pkey.write(value.to_be()) };
            0
        }
        Err(errno) => failed(errno),
    }
}

fn read_pkey(opened: &Opened, port_num: u8, index: c_int) -> Result<u16, Errno> {
    let folder = opened.folder()?.join(format!("ports/{port_num}/pkeys"));
    let bytes = folder.read_bytes(&index.to_string())?;
    let text = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    let digits = core::str::from_utf8(text).map_err(|_| Errno::PROTO)?;
    u16::from_str_radix(digits.strip_prefix("0x").unwrap_or(digits), 16).map_err(|_| Errno::PROTO)
}

/// The index of a P_Key (in network order) in the port's table. See `ibv_get_pkey_index(3)`.
///
/// # Errors
/// As [`ibv_query_pkey`]; `ENOENT` also if the table does not have it.
///
/// # Safety
/// `context` is NULL or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_get_pkey_index(
    context: *mut abi::Context,
    port_num: u8,
    pkey: u16,
) -> c_int {
    // SAFETY: the same contract.
    let Some(opened) = (unsafe { Opened::of(context) }) else { return failed(Errno::INVAL) };
    let answer = guarded(Err(Errno::IO), || {
        let mut index = 0;
        while read_pkey(opened, port_num, index)?.to_be() != pkey {
            index += 1;
        }
        Ok(index)
    });
    answer.unwrap_or_else(failed)
}
