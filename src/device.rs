//! Devices, as plain values: what a device is, its node, and why one may be missing.
//!
//! [`Host`](crate::host::Host) lists them.

use core::ops::RangeInclusive;
use std::path::PathBuf;

use uverbs_uapi::device::node_type;

use crate::driver::DriverId;
use crate::guid::Guid;
use crate::named::named;

named! {
    /// What a device is.
    #[doc(alias = "ibv_node_type")]
    #[doc(alias = "ibv_node_type_str")]
    NodeType(u8) {
        /// Channel adapter: InfiniBand or RoCE.
        CA = node_type::CA, "ca";
        /// InfiniBand switch; its only port is 0.
        SWITCH = node_type::SWITCH, "switch";
        /// InfiniBand router.
        ROUTER = node_type::ROUTER, "router";
        /// iWARP.
        RNIC = node_type::RNIC, "rnic";
        /// Cisco usNIC.
        USNIC = node_type::USNIC, "usnic";
        /// Cisco usNIC over UDP.
        USNIC_UDP = node_type::USNIC_UDP, "usnic_udp";
        /// Anything else, for example EFA.
        UNSPECIFIED = node_type::UNSPECIFIED, "unspecified";
    }
}

/// An RDMA device.
#[doc(alias = "ibv_device")]
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Device {
    /// Its name now; udev and users rename devices.
    #[doc(alias = "ibv_get_device_name")]
    pub name: String,
    /// The kernel's index of it, which outlives renaming; `None` where only sysfs could be read.
    #[doc(alias = "ibv_get_device_index")]
    pub index: Option<u32>,
    /// What it is.
    pub node_type: NodeType,
    /// Node GUID.
    #[doc(alias = "ibv_get_device_guid")]
    pub node_guid: Guid,
    /// System image GUID.
    pub sys_image_guid: Guid,
    /// Firmware version, if the driver gives one.
    pub fw_version: Option<String>,
    /// `ib`, `roce`, `iw`, `opa`, `usnic`; `None` where the kernel does not say (also with sysfs).
    pub protocol: Option<String>,
    /// Number of its last port; 0 on an InfiniBand switch, however many ports it switches between.
    pub port_count: u32,
    /// Its driver, if netlink names it; else [`probe_driver`](crate::context::probe_driver) finds out.
    pub driver: Option<DriverId>,
    /// Its uverbs node; `None` without `ib_uverbs`, or if it could not be found out.
    pub node: Option<Node>,
    /// Whether it could not be found out which node it has, or whether it has one.
    pub node_is_unread: bool,
    pub(crate) identity: Identity,
}

/// What distinguishes a device from another that takes over its name or its node. A driver's index is
/// one such thing, but a name, the number of a node and GUIDs are not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Identity {
    /// The node's folder in sysfs. The kernel makes it for the device, and takes it away before it
    /// gives the node's number to another.
    pub(crate) node: Option<FolderId>,
    /// The device's own folder there, where the device was found by it.
    pub(crate) device: Option<FolderId>,
}

/// A folder that stays what it is: the kernel gives no folder of sysfs the number of another, and
/// leaves it its number when the device is renamed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FolderId {
    pub(crate) path: PathBuf,
    pub(crate) inode: u64,
}

/// A uverbs character device.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(expecting = "an object")
)]
#[non_exhaustive]
pub struct Node {
    /// Its name, as `uverbs0`.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "crate::form::plain"))]
    pub name: String,
    /// Where it should be.
    #[cfg_attr(
        feature = "serde",
        serde(deserialize_with = "crate::form::plain", serialize_with = "crate::form::write_path")
    )]
    pub path: PathBuf,
    /// Its device number (`dev_t`), against which an open is checked.
    pub number: u64,
}

impl Node {
    /// A node, for readers of records and for tests.
    #[must_use]
    pub fn new(name: impl Into<String>, path: impl Into<PathBuf>, number: u64) -> Self {
        Self { name: name.into(), path: path.into(), number }
    }
}

impl Device {
    /// Its port numbers: from 1, or just 0 on an InfiniBand switch.
    #[must_use]
    pub fn ports(&self) -> RangeInclusive<u32> {
        if self.node_type == NodeType::SWITCH { 0..=0 } else { 1..=self.port_count }
    }
}

impl Device {
    /// A CA with one port of which nothing else is known, as a reader of records starts from.
    #[must_use]
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            index: None,
            node_type: NodeType::CA,
            node_guid: Guid::default(),
            sys_image_guid: Guid::default(),
            fw_version: None,
            protocol: None,
            port_count: 1,
            driver: None,
            node: None,
            node_is_unread: false,
            identity: Identity::default(),
        }
    }

    /// Such a device that netlink lists, for tests.
    #[cfg(any(test, all(feature = "capi", feature = "simulated-kernel")))]
    pub(crate) fn sample(name: &str) -> Self {
        Self { index: Some(0), ..Self::named(name) }
    }

    /// Whether the kernel listed it, and no program made it up.
    pub(crate) fn is_listed(&self) -> bool {
        self.index.is_some() || self.identity != Identity::default()
    }
}

/// A reason why a device is not seen.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Absence {
    /// The kernel has no RDMA core loaded: sysfs has classes and modules, and none is of RDMA; and RDMA netlink, if it
    /// was asked, is not there.
    NoModule,
    /// No driver has registered a device in this network namespace.
    NoDevice,
    /// A device is in another network namespace, as the kernel's sysfs shows its node and not the device, or a device of
    /// the same name here has another node.
    OtherNamespace {
        /// Its name.
        device: String,
        /// Its uverbs node, which is seen in every namespace.
        node: String,
    },
    /// There is no folder of uverbs nodes.
    NoNodes {
        /// Where it should be.
        folder: PathBuf,
    },
}

impl Absence {
    /// What is seen.
    #[must_use]
    pub fn seen(&self) -> String {
        match self {
            Self::NoModule => {
                "no RDMA module is loaded (class/infiniband is missing in sysfs)".to_owned()
            }
            Self::NoDevice => "RDMA is loaded, but this network namespace has no device".to_owned(),
            Self::OtherNamespace { device, node } => {
                format!("{device} ({node}) is in another network namespace")
            }
            Self::NoNodes { folder } => format!("{} is missing", folder.display()),
        }
    }

    /// What to do.
    #[must_use]
    pub fn advice(&self) -> String {
        match self {
            Self::NoModule => "load the device's driver, or rdma_rxe for soft RoCE".to_owned(),
            Self::NoDevice => {
                "load the device's driver, or see why it makes none (the kernel's log, devlink dev param show), or make one (rdma link add)"
                    .to_owned()
            }
            Self::OtherNamespace { device, .. } => {
                format!(
                    "run there, or move it here, if its driver allows that (run rdma dev set {device} netns NAME there)"
                )
            }
            Self::NoNodes { .. } => {
                "give the container the devices' nodes, or load ib_uverbs if it is not loaded"
                    .to_owned()
            }
        }
    }
}

impl core::fmt::Display for Absence {
    /// What is seen, and what to do.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}: {}", self.seen(), self.advice())
    }
}
