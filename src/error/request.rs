//! What can be asked.

use core::fmt;
use std::path::PathBuf;

use crate::mlx5_firmware::{self, FirmwareTarget};

/// What was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Request {
    /// List the devices of the host.
    ListDevices,
    /// Ask RDMA netlink.
    Netlink,
    /// Ask the kernel's network interfaces and addresses (route netlink).
    Interfaces,
    /// Find a network interface by its name.
    Interface {
        /// The name.
        name: String,
    },
    /// Open the uverbs node.
    Open {
        /// The character device.
        path: PathBuf,
    },
    /// Find out the driver id by probing.
    ProbeDriver,
    /// `GET_CONTEXT`.
    GetContext,
    /// `GET_CONTEXT` of an mlx5 device with a user context of the firmware's (DEVX).
    GetDevxContext,
    /// `QUERY_CONTEXT` of a node that is already open.
    QueryContext,
    /// An event file, or an event of it.
    Events,
    /// `QUERY_GID_ENTRY`, or the same from sysfs.
    GidEntry {
        /// Port number.
        port: u32,
        /// Index in the port's table.
        index: u32,
    },
    /// `QUERY_GID_TABLE`, or the same from sysfs.
    GidTable,
    /// `QUERY_PORT`, or the same from sysfs.
    Port {
        /// Port number.
        port: u32,
    },
    /// The network interface of a port, asked of RDMA netlink.
    PortNetdev {
        /// Port number.
        port: u32,
    },
    /// `QUERY_PORT_SPEED`.
    PortSpeed {
        /// Port number.
        port: u32,
    },
    /// `QUERY_DEVICE`.
    Device,
    /// One P_Key, or all of a port.
    PKey {
        /// Port number.
        port: u32,
        /// Index in the port's table; `None` for the whole table.
        index: Option<u32>,
    },
    /// Node or system image GUID.
    Guid,
    /// `MLX5_IB_METHOD_QUERY_PORT`.
    Mlx5Port {
        /// Port number.
        port: u32,
    },
    /// A command to an mlx5 device's firmware.
    Firmware {
        /// The operation.
        opcode: u16,
        /// What it is about.
        target: FirmwareTarget,
    },
    /// A command of the caller's own: [`Context::submit`](crate::Context::submit).
    Ioctl {
        /// Id of the object.
        object: u16,
        /// Id of the object's method.
        method: u16,
    },
    /// The counters of a port, or of the device.
    Counters {
        /// Port number; `None` for those of the device.
        port: Option<u32>,
    },
    /// How many objects are in use.
    Resources,
    /// Whose the objects in use are.
    Owners,
    /// Wait for changes.
    Watch,
    /// A file or folder of sysfs.
    Sysfs {
        /// The file, below the root that is read.
        path: PathBuf,
    },
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ListDevices => f.write_str("list devices"),
            Self::Netlink => f.write_str("ask RDMA netlink"),
            Self::Interfaces => f.write_str("list network interfaces"),
            Self::Interface { name } => write!(f, "find the network interface {name}"),
            Self::Open { path } => write!(f, "open {}", path.display()),
            Self::ProbeDriver => f.write_str("probe driver id"),
            Self::GetContext => f.write_str("get context"),
            Self::GetDevxContext => f.write_str("get DEVX context"),
            Self::QueryContext => f.write_str("take over a context"),
            Self::Events => f.write_str("asynchronous events"),
            Self::GidEntry { port, index } => write!(f, "query GID {index} of port {port}"),
            Self::GidTable => f.write_str("query GID table"),
            Self::Port { port } => write!(f, "query port {port}"),
            Self::PortNetdev { port } => write!(f, "find the network interface of port {port}"),
            Self::PortSpeed { port } => write!(f, "query speed of port {port}"),
            Self::Device => f.write_str("query device"),
            Self::PKey { port, index: Some(index) } => {
                write!(f, "query P_Key {index} of port {port}")
            }
            Self::PKey { port, index: None } => write!(f, "query P_Keys of port {port}"),
            Self::Guid => f.write_str("query GUIDs"),
            Self::Mlx5Port { port } => write!(f, "query mlx5 port {port}"),
            Self::Firmware { opcode, target } => match mlx5_firmware::operation_name(*opcode) {
                Some(name) => write!(f, "firmware command {name}{target}"),
                None => write!(f, "firmware command {opcode:#x}{target}"),
            },
            Self::Ioctl { object, method } => write!(f, "method {method:#x} of object {object:#x}"),
            Self::Counters { port: Some(port) } => write!(f, "read counters of port {port}"),
            Self::Counters { port: None } => f.write_str("read counters"),
            Self::Resources => f.write_str("count objects in use"),
            Self::Owners => f.write_str("list owners of objects in use"),
            Self::Watch => f.write_str("wait for changes"),
            Self::Sysfs { path } => write!(f, "read {}", path.display()),
        }
    }
}
