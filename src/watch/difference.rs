//! One difference between two inventories: what it is of, before and after.
//!
//! A difference can be applied to an inventory: [`Difference::apply`]. All that
//! [`differences`](super::differences) found, applied in their order to the first inventory, give the second.

use core::num::NonZeroU32;

use crate::gid::Source;
use crate::guid::Guid;
use crate::inventory::{Answer, DeviceRecord, GidRow, Inventory, PortRecord};
use crate::netdev::{Interface, Netdev};
use crate::pkey::PKey;
use crate::port::{Mtu, PhysState, PortAttributes, PortState, Rate, Speed, Width};

/// A difference between two inventories.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Difference {
    /// A device is there that was not.
    DeviceCame(Box<DeviceRecord>),
    /// A device is no longer there.
    DeviceWent(Box<DeviceRecord>),
    /// A device is listed that could not be listed before: it, or all of the host. It may have been there.
    DeviceListed(Box<DeviceRecord>),
    /// A device is not listed any more, as it cannot be: it, or all of the host. It may be there.
    DeviceUnlisted(Box<DeviceRecord>),
    /// A device has another name. It is the same one: the kernel's index of it is the same; after a gap of a recording also
    /// its node GUID, which no other device has.
    DeviceRenamed {
        /// The kernel's index of it.
        index: u32,
        /// Its name before.
        before: String,
        /// Its name now.
        after: String,
    },
    /// Another device has the name. All that was read of both is here.
    DeviceReplaced {
        /// The device that had it.
        before: Box<DeviceRecord>,
        /// The device that has it.
        after: Box<DeviceRecord>,
    },
    /// Something else of a device: its firmware's version, its node, whether that can be opened. Ports and
    /// GIDs are not in these records.
    Device {
        /// As it was.
        before: Box<DeviceRecord>,
        /// As it is.
        after: Box<DeviceRecord>,
    },
    /// Something of a port. Both values are of one variant.
    Port {
        /// The device's name.
        device: String,
        /// The port's number.
        port: u32,
        /// As it was.
        before: PortValue,
        /// As it is.
        after: PortValue,
    },
    /// A GID table could be read and cannot be read now, or the other way round. Whether its rows changed is
    /// not known then.
    Table {
        /// The device's name.
        device: String,
        /// As it was.
        before: Option<Answer<Vec<GidRow>>>,
        /// As it is.
        after: Option<Answer<Vec<GidRow>>>,
    },
    /// A row is in a slot that was empty.
    GidCame {
        /// The device's name.
        device: String,
        /// The row.
        row: Box<GidRow>,
    },
    /// A slot is empty that had a row.
    GidWent {
        /// The device's name.
        device: String,
        /// The row.
        row: Box<GidRow>,
    },
    /// A slot has another GID or type, or the same ones with another interface.
    GidChanged {
        /// The device's name.
        device: String,
        /// As it was.
        before: Box<GidRow>,
        /// As it is.
        after: Box<GidRow>,
    },
    /// The same GID of the same type is in another slot of the port. Who kept the index uses another GID now,
    /// or none.
    GidMoved {
        /// The device's name.
        device: String,
        /// The row in its slot before.
        before: Box<GidRow>,
        /// The row in its slot now.
        after: Box<GidRow>,
    },
    /// A network interface has another name. Its rows have, too.
    InterfaceRenamed {
        /// Its index.
        index: NonZeroU32,
        /// Its name before.
        before: String,
        /// Its name now.
        after: String,
    },
    /// A network interface came, went, or has another state or other addresses.
    Interface {
        /// As it was; `None` if it was not there.
        before: Option<Interface>,
        /// As it is; `None` if it is not there.
        after: Option<Interface>,
    },
    /// Something of the host as a whole: modules, settings, problems. Devices are not in these inventories;
    /// interfaces are only if they could not be read before, or cannot be read now.
    Host {
        /// As it was.
        before: Box<Inventory>,
        /// As it is.
        after: Box<Inventory>,
    },
}

/// Something of a port that can change by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PortValue {
    /// Logical state.
    State(PortState),
    /// Physical state.
    PhysState(PhysState),
    /// MTU in use.
    Mtu(Option<Mtu>),
    /// Width in use, and speed of a lane.
    Speed(Option<Width>, Option<Speed>),
    /// Base LID, and LID mask control.
    Lid(u32, u8),
    /// LID and service level of the subnet manager.
    SubnetManager(u32, u8),
    /// Effective rate.
    Effective(Option<Answer<Rate>>),
    /// P_Keys in use with their indices.
    PKeys(Option<Answer<Vec<(u32, PKey)>>>),
    /// Network interface.
    Netdev(Answer<Option<Netdev>>),
    /// GUID.
    Guid(Answer<Option<Guid>>),
    /// Whether sysfs has the files with the types of GIDs.
    HasTypes(Option<bool>),
    /// All attributes: something else of them changed, or they could not be read before or cannot be read now.
    Attributes(Option<Answer<(PortAttributes, Source)>>),
}

/// How a value of one variant is found.
type Find = fn(&PortRecord) -> Option<PortValue>;

impl PortValue {
    /// The values of a port, each by its variant. `None` if the attributes were not read.
    pub(super) const ALL: [Find; 12] = [
        |port| port.known().map(|own| Self::State(own.state)),
        |port| port.known().map(|own| Self::PhysState(own.phys_state)),
        |port| port.known().map(|own| Self::Mtu(own.active_mtu)),
        |port| port.known().map(|own| Self::Speed(own.active_width, own.active_speed)),
        |port| port.known().map(|own| Self::Lid(own.lid, own.lmc)),
        |port| port.known().map(|own| Self::SubnetManager(own.sm_lid, own.sm_sl)),
        |port| Some(Self::Effective(port.effective.clone())),
        |port| Some(Self::PKeys(port.pkeys.clone())),
        |port| Some(Self::Netdev(port.netdev.clone())),
        |port| Some(Self::Guid(port.guid.clone())),
        |port| Some(Self::HasTypes(port.has_types)),
        // After those that are part of it.
        |port| Some(Self::Attributes(port.attributes.clone())),
    ];

    /// A word for what it is: `state`, `mtu`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::State(_) => "state",
            Self::PhysState(_) => "phys_state",
            Self::Mtu(_) => "mtu",
            Self::Speed(..) => "speed",
            Self::Lid(..) => "lid",
            Self::SubnetManager(..) => "sm",
            Self::Effective(_) => "effective",
            Self::PKeys(_) => "pkeys",
            Self::Netdev(_) => "netdev",
            Self::Guid(_) => "guid",
            Self::HasTypes(_) => "types",
            Self::Attributes(_) => "attributes",
        }
    }

    /// The port's value of the same variant.
    pub(super) fn in_port(&self, port: &PortRecord) -> Option<Self> {
        let mut all = Self::ALL.iter().filter_map(|find| find(port));
        all.find(|own| core::mem::discriminant(own) == core::mem::discriminant(self))
    }

    pub(super) fn set(self, port: &mut PortRecord) {
        let known =
            port.attributes.as_mut().and_then(|own| own.as_mut().ok()).map(|own| &mut own.0);
        match (self, known) {
            (Self::State(own), Some(known)) => known.state = own,
            (Self::PhysState(own), Some(known)) => known.phys_state = own,
            (Self::Mtu(own), Some(known)) => known.active_mtu = own,
            (Self::Speed(width, speed), Some(known)) => {
                (known.active_width, known.active_speed) = (width, speed);
            }
            (Self::Lid(lid, lmc), Some(known)) => (known.lid, known.lmc) = (lid, lmc),
            (Self::SubnetManager(lid, sl), Some(known)) => (known.sm_lid, known.sm_sl) = (lid, sl),
            (Self::Effective(own), _) => port.effective = own,
            (Self::PKeys(own), _) => port.pkeys = own,
            (Self::Netdev(own), _) => port.netdev = own,
            (Self::Guid(own), _) => port.guid = own,
            (Self::HasTypes(own), _) => port.has_types = own,
            (Self::Attributes(own), _) => port.attributes = own,
            // Part of attributes that were not read: `in_port` has found none.
            (
                Self::State(_)
                | Self::PhysState(_)
                | Self::Mtu(_)
                | Self::Speed(..)
                | Self::Lid(..)
                | Self::SubnetManager(..),
                None,
            ) => {}
        }
    }
}

impl Difference {
    /// The device that it is of, by its name now; `None` if it is the host's.
    #[must_use]
    pub fn device(&self) -> Option<&str> {
        match self {
            Self::DeviceCame(own)
            | Self::DeviceWent(own)
            | Self::DeviceListed(own)
            | Self::DeviceUnlisted(own) => Some(&own.device.name),
            Self::DeviceRenamed { after, .. } => Some(after),
            Self::DeviceReplaced { after, .. } | Self::Device { after, .. } => {
                Some(&after.device.name)
            }
            Self::Port { device, .. }
            | Self::Table { device, .. }
            | Self::GidCame { device, .. }
            | Self::GidWent { device, .. }
            | Self::GidChanged { device, .. }
            | Self::GidMoved { device, .. } => Some(device),
            Self::InterfaceRenamed { .. } | Self::Interface { .. } | Self::Host { .. } => None,
        }
    }

    /// The port that it is of, if it is one port's.
    #[must_use]
    pub fn port(&self) -> Option<u32> {
        match self {
            Self::Port { port, .. } => Some(*port),
            Self::GidCame { row, .. } | Self::GidWent { row, .. } => Some(row.record.entry.port()),
            Self::GidChanged { after, .. } | Self::GidMoved { after, .. } => {
                Some(after.record.entry.port())
            }
            _ => None,
        }
    }

    /// A word or two for what it is: `gid_came`, `port_state`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::DeviceCame(_) => "device_came",
            Self::DeviceWent(_) => "device_went",
            Self::DeviceListed(_) => "device_listed",
            Self::DeviceUnlisted(_) => "device_unlisted",
            Self::DeviceRenamed { .. } => "device_renamed",
            Self::DeviceReplaced { .. } => "device_replaced",
            Self::Device { .. } => "device_changed",
            Self::Port { after, .. } => match after {
                PortValue::State(_) => "port_state",
                PortValue::PhysState(_) => "port_phys_state",
                PortValue::Mtu(_) => "port_mtu",
                PortValue::Speed(..) => "port_speed",
                PortValue::Lid(..) => "port_lid",
                PortValue::SubnetManager(..) => "port_sm",
                PortValue::Effective(_) => "port_effective",
                PortValue::PKeys(_) => "port_pkeys",
                PortValue::Netdev(_) => "port_netdev",
                PortValue::Guid(_) => "port_guid",
                PortValue::HasTypes(_) => "port_types",
                PortValue::Attributes(_) => "port_attributes",
            },
            Self::Table { .. } => "gids_readable",
            Self::GidCame { .. } => "gid_came",
            Self::GidWent { .. } => "gid_went",
            Self::GidChanged { .. } => "gid_changed",
            Self::GidMoved { .. } => "gid_moved",
            Self::InterfaceRenamed { .. } => "interface_renamed",
            Self::Interface { .. } => "interface",
            Self::Host { .. } => "host",
        }
    }
}
