//! Which attributes of a method the kernel writes through.
//!
//! This is all that the safety of a request rests on, those of users too
//! ([`Context::submit`](crate::Context::submit)): memory that the kernel only reads cannot be harmed,
//! and a bad address to read from is its `EFAULT`. A method that is not listed here is not sent, unless
//! it has no attribute at all. Nothing that is sent hands memory to a device.

use uverbs_uapi::device::{
    get_context, invoke_write, method, object, query_context, query_gid_entry, query_gid_table,
    query_port, query_port_speed, write_command,
};
use uverbs_uapi::driver::driver_id;
use uverbs_uapi::event;
use uverbs_uapi::ioctl::{ATTR_UHW_OUT, IoctlHeader};
use uverbs_uapi::mlx5;

/// The attributes that the kernel writes for a request's method; `None` if the method is not known
/// here.
pub(super) fn outputs(header: &IoctlHeader) -> Option<&'static [u16]> {
    let IoctlHeader { object_id, method_id, .. } = *header;
    // The kernel runs a request only if its driver is the device's, so a driver's own methods are
    // known by the header.
    core(object_id, method_id).or_else(|| match header.driver_id {
        driver_id::MLX5 => mlx5(object_id, method_id),
        _ => None,
    })
}

/// Whether an attribute may have this data. `INVOKE_WRITE` runs all the older commands, and many take
/// addresses in their request (`REG_MR` hands memory to the device): only the queries of a device are sent.
pub(super) fn allows(header: &IoctlHeader, attr_id: u16, data: u64) -> bool {
    match (header.object_id, header.method_id, attr_id) {
        (object::DEVICE, method::INVOKE_WRITE, invoke_write::WRITE_CMD) => {
            [write_command::QUERY_DEVICE, write_command::EX_QUERY_DEVICE]
                .map(u64::from)
                .contains(&data)
        }
        _ => true,
    }
}

/// The attribute whose data becomes a new file descriptor of this process, if the method makes one.
pub(super) fn new_fd(header: &IoctlHeader) -> Option<u16> {
    match (header.object_id, header.method_id) {
        (object::ASYNC_EVENT, event::method::ASYNC_EVENT_ALLOC) => {
            Some(event::async_event_alloc::FD_HANDLE)
        }
        _ => None,
    }
}

/// The core's methods, by their declaration in the kernel (`uverbs_std_types_device.c`).
fn core(object_id: u16, method_id: u16) -> Option<&'static [u16]> {
    Some(match (object_id, method_id) {
        // The write commands that `allows` lets through take no address of their own.
        (object::DEVICE, method::INVOKE_WRITE) => &[invoke_write::CORE_OUT, ATTR_UHW_OUT],
        (object::DEVICE, method::QUERY_PORT) => &[query_port::RESP],
        (object::DEVICE, method::GET_CONTEXT) => {
            &[get_context::NUM_COMP_VECTORS, get_context::CORE_SUPPORT, ATTR_UHW_OUT]
        }
        // Beside the core's own two, the drivers' one (only mlx5 has the method).
        (object::DEVICE, method::QUERY_CONTEXT) => &[
            query_context::NUM_COMP_VECTORS,
            query_context::CORE_SUPPORT,
            mlx5::query_context::RESP_UCTX,
        ],
        (object::DEVICE, method::QUERY_GID_TABLE) => {
            &[query_gid_table::RESP_ENTRIES, query_gid_table::RESP_NUM_ENTRIES]
        }
        (object::DEVICE, method::QUERY_GID_ENTRY) => &[query_gid_entry::RESP_ENTRY],
        (object::DEVICE, method::QUERY_PORT_SPEED) => &[query_port_speed::RESP],
        // The new fd is written into the attribute itself.
        (object::ASYNC_EVENT, event::method::ASYNC_EVENT_ALLOC) => &[],
        _ => return None,
    })
}

/// Methods of mlx5, by their declaration in the kernel (`hw/mlx5/std_types.c`, `hw/mlx5/devx.c`).
///
/// DEVX's general command is carried out by the device, and may be anything that the kernel lets
/// through. The kernel puts this context's own number into it, and in that name the device reaches
/// only memory that was registered for this context. Nothing here registers any.
fn mlx5(object_id: u16, method_id: u16) -> Option<&'static [u16]> {
    Some(match (object_id, method_id) {
        (object::DEVICE, mlx5::device_method::QUERY_PORT) => &[mlx5::query_port::RESP],
        (mlx5::object::DEVX, mlx5::devx_method::OTHER) => &[mlx5::devx_other::CMD_OUT],
        _ => return None,
    })
}
