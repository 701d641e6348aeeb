//! A wish: which devices, ports and parts of a host are read. A question then costs no more than its
//! answer.

use core::fmt;

use crate::device::Device;
use crate::gid::GidRecord;
use crate::host::Preference;

/// Parts of a host. Those that are not wanted stay empty in the inventory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "each part is wanted by itself")]
pub struct Parts {
    /// The drivers that RDMA netlink does not name. Each device is opened and asked.
    pub drivers: bool,
    /// Devices: their hardware, by sysfs.
    pub hardware: bool,
    /// Ports: their attributes.
    pub attributes: bool,
    /// Ports: their effective rates.
    pub effective: bool,
    /// Ports: their GUIDs.
    pub guids: bool,
    /// Ports: their network interfaces.
    pub port_netdevs: bool,
    /// Ports: their P_Keys. Some drivers ask the firmware for each.
    pub pkeys: bool,
    /// GID tables, with the network interfaces of the rows.
    pub gids: bool,
    /// What sysfs shows of GID types, which NCCL and UCX read.
    pub types: bool,
    /// The network interfaces of this namespace with their addresses.
    pub interfaces: bool,
    /// The host: its name, kernel, modules and settings, and why devices may be missing.
    pub host: bool,
    /// What programs need of the host beside devices: how much memory they may lock, and the modules of GPUs.
    pub needs: bool,
}

impl Parts {
    /// Devices as they are listed. None is opened.
    pub const LISTED: Self = Self {
        drivers: false,
        hardware: false,
        attributes: false,
        effective: false,
        guids: false,
        port_netdevs: false,
        pkeys: false,
        gids: false,
        types: false,
        interfaces: false,
        host: false,
        needs: false,
    };
    /// Devices with their drivers.
    pub const DEVICES: Self = Self { drivers: true, ..Self::LISTED };
    /// Port GUIDs.
    pub const GUIDS: Self = Self { guids: true, ..Self::LISTED };
    /// P_Keys, of ports of all link layers.
    pub const PKEYS: Self = Self { pkeys: true, ..Self::LISTED };
    /// Ports with their attributes, rates, GUIDs and network interfaces.
    pub const PORTS: Self =
        Self { attributes: true, effective: true, port_netdevs: true, ..Self::GUIDS };
    /// GID tables.
    pub const GIDS: Self = Self { gids: true, ..Self::LISTED };
    /// What [`crate::choose`] looks at: all but hardware, P_Keys, effective rates and the needs of programs.
    pub const CHOOSING: Self =
        Self { hardware: false, pkeys: false, effective: false, needs: false, ..Self::ALL };
    /// Everything.
    pub const ALL: Self = Self {
        drivers: false,
        hardware: true,
        attributes: true,
        effective: true,
        guids: true,
        port_netdevs: true,
        pkeys: true,
        gids: true,
        types: true,
        interfaces: true,
        host: true,
        needs: true,
    };

    /// Whether something is read of each port.
    pub(super) const fn has_ports(self) -> bool {
        let Self {
            drivers: _,
            hardware: _,
            attributes,
            effective,
            guids,
            port_netdevs,
            pkeys,
            gids: _,
            types: _,
            interfaces: _,
            host: _,
            needs: _,
        } = self;
        attributes || effective || guids || port_netdevs || pkeys
    }
}

/// What is read of a host, and from where.
///
/// ```
/// use uverbs::host::Host;
/// use uverbs::inventory::{Parts, Wanted};
///
/// let is_mlx5 = |device: &uverbs::device::Device| device.name.starts_with("mlx5");
/// let ports = Host::new().inventory(&Wanted::new(Parts::PORTS).devices(&is_mlx5));
/// ```
#[derive(Clone, Copy)]
pub struct Wanted<'w> {
    pub(super) parts: Parts,
    pub(super) preference: Preference,
    pub(super) devices: &'w dyn Fn(&Device) -> bool,
    pub(super) ports: &'w dyn Fn(&Device, u32) -> bool,
    pub(super) slot: Option<(u32, u32)>,
    pub(super) netdev: Option<&'w str>,
    pub(super) rows: &'w dyn Fn(&Device, &GidRecord) -> bool,
}

impl Default for Wanted<'_> {
    /// Everything, of all devices, by the best source.
    fn default() -> Self {
        Self::new(Parts::ALL)
    }
}

impl<'w> Wanted<'w> {
    /// These parts of all devices, by the best source.
    #[must_use]
    pub fn new(parts: Parts) -> Self {
        Self {
            parts,
            preference: Preference::Auto,
            devices: &|_| true,
            ports: &|_, _| true,
            slot: None,
            netdev: None,
            rows: &|_, _| true,
        }
    }

    /// The source. [`Preference::Sysfs`] opens no device.
    #[must_use]
    pub fn preference(mut self, preference: Preference) -> Self {
        self.preference = preference;
        self
    }

    /// Only these devices. Others are not opened, and are not in the inventory.
    #[must_use]
    pub fn devices(mut self, includes: &'w dyn Fn(&Device) -> bool) -> Self {
        self.devices = includes;
        self
    }

    /// Only these ports. GID tables are read whole all the same: the rows of a table prove each other's
    /// interfaces.
    #[must_use]
    pub fn ports(mut self, includes: &'w dyn Fn(&Device, u32) -> bool) -> Self {
        self.ports = includes;
        self
    }

    /// Of the GID tables only the entry at this index of this port.
    #[must_use]
    pub fn slot(mut self, port: u32, index: u32) -> Self {
        self.slot = Some((port, index));
        self
    }

    /// Leaves out devices that have no GID of this network interface, where that is known without opening
    /// them.
    #[must_use]
    pub fn netdev(mut self, name: Option<&'w str>) -> Self {
        self.netdev = name;
        self
    }

    /// Looks up network interfaces only if there is one of these rows.
    #[must_use]
    pub fn rows(mut self, includes: &'w dyn Fn(&Device, &GidRecord) -> bool) -> Self {
        self.rows = includes;
        self
    }

    /// Which parts are read.
    #[must_use]
    pub fn parts(&self) -> Parts {
        self.parts
    }

    /// Leaves out of an inventory, which holds everything, the devices that are not wanted.
    pub fn narrow(&self, inventory: &mut super::Inventory) {
        let all = std::mem::take(&mut inventory.devices).into_iter();
        for record in all {
            if (self.devices)(&record.device) {
                inventory.devices.push(record);
            } else {
                inventory.others.push(record.device);
            }
        }
    }
}

impl fmt::Debug for Wanted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wanted")
            .field("parts", &self.parts)
            .field("preference", &self.preference)
            .field("slot", &self.slot)
            .field("netdev", &self.netdev)
            .finish_non_exhaustive()
    }
}
