//! Which methods a kernel has, and which attributes each of them takes.

use uverbs_uapi::device::{
    self, get_context, info_handles, invoke_write, query_comp_cntr_caps, query_context,
    query_gid_entry, query_gid_table, query_port, query_port_speed,
};
use uverbs_uapi::{event, ioctl, mlx5};

use crate::Device;

/// The driver's part of an answer.
pub(crate) const UHW_OUT: u16 = ioctl::ATTR_UHW_OUT;

/// What an attribute may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// For the kernel: up to eight bytes are in the attribute, more in memory.
    In {
        /// Least bytes.
        min: usize,
        /// Most bytes that are known.
        max: usize,
        /// More are allowed, if they are zero.
        zero_trailing: bool,
    },
    /// For the kernel, which copies it before anything is done.
    CopiedIn {
        /// Least bytes.
        min: usize,
    },
    /// From the kernel, in memory.
    Out {
        /// Least bytes.
        min: usize,
        /// Most bytes.
        max: usize,
        /// More are allowed.
        zero_trailing: bool,
    },
    /// A new file descriptor.
    NewFd,
}

/// An attribute of a method.
#[derive(Clone, Copy, Debug)]
pub struct AttributeSpec {
    /// Its number.
    pub id: u16,
    /// What it is.
    pub kind: Kind,
    /// It has to be given.
    pub mandatory: bool,
}

/// What a method does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handler {
    InvokeWrite,
    InfoHandles,
    QueryPort,
    GetContext,
    QueryContext,
    QueryGidTable,
    QueryGidEntry,
    QueryPortSpeed,
    QueryCompCntrCaps,
    AsyncEventAlloc,
    Mlx5QueryPort,
    Devx,
}

/// A method.
#[derive(Clone, Debug)]
pub struct Method {
    pub(crate) handler: Handler,
    /// Its attributes.
    pub attributes: Vec<AttributeSpec>,
}

impl Method {
    pub(crate) fn has_driver_part(&self) -> bool {
        matches!(self.handler, Handler::InvokeWrite | Handler::GetContext)
    }
}

/// What a kernel has under a method's number.
#[derive(Clone, Debug)]
pub enum Found {
    /// This.
    Method(Method),
    /// Nothing.
    Nothing,
    /// Something that this model leaves out; why.
    NotModelled(&'static str),
}

const ANY: usize = u16::MAX as usize;

fn attribute(id: u16, kind: Kind, mandatory: bool) -> AttributeSpec {
    AttributeSpec { id, kind, mandatory }
}

/// A constant.
fn constant(id: u16) -> AttributeSpec {
    attribute(id, Kind::In { min: 8, max: 8, zero_trailing: false }, true)
}

fn flags(id: u16, mandatory: bool) -> AttributeSpec {
    attribute(id, Kind::In { min: 4, max: 8, zero_trailing: false }, mandatory)
}

/// A value of exactly this size.
fn out(id: u16, size: usize, mandatory: bool) -> AttributeSpec {
    attribute(id, Kind::Out { min: size, max: size, zero_trailing: false }, mandatory)
}

/// At least this many bytes.
fn out_from(id: u16, min: usize, mandatory: bool) -> AttributeSpec {
    attribute(id, Kind::Out { min, max: ANY, zero_trailing: false }, mandatory)
}

/// A structure that may grow.
fn out_struct(id: u16, size: usize) -> AttributeSpec {
    attribute(id, Kind::Out { min: size, max: size, zero_trailing: true }, true)
}

fn in_from(id: u16, min: usize, mandatory: bool) -> AttributeSpec {
    attribute(id, Kind::In { min, max: ANY, zero_trailing: false }, mandatory)
}

/// The driver's parts.
fn driver_parts() -> [AttributeSpec; 2] {
    [in_from(ioctl::ATTR_UHW_IN, 0, false), out_from(UHW_OUT, 0, false)]
}

/// Looks for a method of an object.
#[must_use]
pub fn find(device: &Device, object: u16, method: u16) -> Found {
    use uverbs_uapi::device::object as core;
    let release = device.release;
    match object {
        core::DEVICE => of_device(device, method),
        core::ASYNC_EVENT => match method {
            event::method::ASYNC_EVENT_ALLOC => found(
                Handler::AsyncEventAlloc,
                &[attribute(event::async_event_alloc::FD_HANDLE, Kind::NewFd, true)],
            ),
            _ => Found::Nothing,
        },
        core::PD..=core::COUNTERS => Found::NotModelled("objects of queues and memory"),
        core::DMAH | core::DMABUF | core::COMP_CNTR if release >= (7, 0) => {
            Found::NotModelled("objects of queues and memory")
        }
        mlx5::object::DEVX if device.mlx5.as_ref().is_some_and(|mlx5| mlx5.has_devx) => {
            match method {
                mlx5::devx_method::OTHER => found(
                    Handler::Devx,
                    &[
                        attribute(mlx5::devx_other::CMD_IN, Kind::CopiedIn { min: 16 }, true),
                        out_from(mlx5::devx_other::CMD_OUT, 16, true),
                    ],
                ),
                0x1001..=0x1003 => Found::NotModelled("mlx5's methods of queues"),
                _ => Found::Nothing,
            }
        }
        0x1001..=0x100b if device.mlx5.is_some() => Found::NotModelled("mlx5's objects"),
        _ => Found::Nothing,
    }
}

fn found(handler: Handler, attributes: &[AttributeSpec]) -> Found {
    Found::Method(Method { handler, attributes: attributes.to_vec() })
}

fn of_device(device: &Device, method: u16) -> Found {
    use uverbs_uapi::device::method as core;
    let release = device.release;
    match method {
        core::INVOKE_WRITE => {
            let [uhw_in, uhw_out] = driver_parts();
            found(
                Handler::InvokeWrite,
                &[
                    in_from(invoke_write::CORE_IN, 4, false),
                    out_from(invoke_write::CORE_OUT, 0, false),
                    constant(invoke_write::WRITE_CMD),
                    uhw_in,
                    uhw_out,
                ],
            )
        }
        core::INFO_HANDLES => found(
            Handler::InfoHandles,
            &[
                constant(info_handles::OBJECT_ID),
                out(info_handles::TOTAL_HANDLES, 4, false),
                out_from(info_handles::HANDLES_LIST, 4, false),
            ],
        ),
        core::QUERY_PORT => found(
            Handler::QueryPort,
            &[
                constant(query_port::PORT_NUM),
                out_struct(query_port::RESP, size_of::<device::QueryPortResponse>()),
            ],
        ),
        core::GET_CONTEXT => {
            let [uhw_in, uhw_out] = driver_parts();
            let mut attributes = vec![
                out(get_context::NUM_COMP_VECTORS, 4, false),
                out(get_context::CORE_SUPPORT, 8, false),
                uhw_in,
                uhw_out,
            ];
            if release >= (6, 15) {
                attributes.push(attribute(get_context::FD_ARR, Kind::CopiedIn { min: 4 }, false));
            }
            found(Handler::GetContext, &attributes)
        }
        core::QUERY_CONTEXT => {
            let mut attributes = vec![
                out(query_context::NUM_COMP_VECTORS, 4, false),
                out(query_context::CORE_SUPPORT, 8, false),
            ];
            if device.mlx5.is_some() {
                attributes.push(out_struct(mlx5::query_context::RESP_UCTX, 72));
            }
            found(Handler::QueryContext, &attributes)
        }
        core::QUERY_GID_TABLE => found(
            Handler::QueryGidTable,
            &[
                constant(query_gid_table::ENTRY_SIZE),
                flags(query_gid_table::FLAGS, false),
                out_from(query_gid_table::RESP_ENTRIES, 0, true),
                out(query_gid_table::RESP_NUM_ENTRIES, 8, true),
            ],
        ),
        core::QUERY_GID_ENTRY => found(
            Handler::QueryGidEntry,
            &[
                constant(query_gid_entry::PORT),
                constant(query_gid_entry::GID_INDEX),
                flags(query_gid_entry::FLAGS, true),
                out_struct(query_gid_entry::RESP_ENTRY, device::GID_ENTRY_FIRST_SIZE),
            ],
        ),
        core::QUERY_PORT_SPEED if release >= (7, 0) => found(
            Handler::QueryPortSpeed,
            &[constant(query_port_speed::PORT_NUM), out(query_port_speed::RESP, 8, true)],
        ),
        core::QUERY_COMP_CNTR_CAPS if release >= (7, 3) => found(
            Handler::QueryCompCntrCaps,
            &[
                out(query_comp_cntr_caps::MAX_COUNTERS, 4, false),
                out(query_comp_cntr_caps::MAX_VALUE, 8, false),
                out(query_comp_cntr_caps::SUPPORTED_QP_ATTACH_OPS, 4, false),
            ],
        ),
        mlx5::device_method::QUERY_PORT if device.mlx5.is_some() && release >= (5, 13) => found(
            Handler::Mlx5QueryPort,
            &[
                attribute(
                    mlx5::query_port::PORT_NUM,
                    Kind::In { min: 4, max: 4, zero_trailing: false },
                    true,
                ),
                out_struct(mlx5::query_port::RESP, size_of::<mlx5::QueryPort>()),
            ],
        ),
        0x1001 if device.mlx5.is_some() && release >= (6, 12) => {
            Found::NotModelled("mlx5's data direct path")
        }
        _ => Found::Nothing,
    }
}
