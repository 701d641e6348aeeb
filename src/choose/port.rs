//! A port as programs see it when they choose: its attributes and the rows of its table.

use super::address::Family;
use crate::device::NodeType;
use crate::driver::DriverId;
use crate::gid::{Gid, GidType};
use crate::inventory::{DeviceRecord, PortRecord};
use crate::netdev::Unfit;
use crate::port::{LinkLayer, PortState};

/// The greatest index that a program can use: it is sent as one byte.
pub const MAX_INDEX: u32 = 255;

/// A port, with everything that a choice depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Port<'i> {
    /// The device's name.
    pub device: &'i str,
    /// Its node type.
    pub node_type: NodeType,
    /// Its driver, if that is known.
    pub driver: Option<DriverId>,
    /// The port's number.
    pub number: u32,
    /// libibverbs lists devices in the order of these numbers; `None` if it is not known.
    pub place: Option<u32>,
    /// Whether a program with libibverbs finds its device, as far as is known. Also `true` where no device has a node: programs
    /// that are asked about get theirs elsewhere, as in another container.
    pub is_found: bool,
    /// Logical state.
    pub state: PortState,
    /// Link layer.
    pub link_layer: LinkLayer,
    /// Slots of the GID table, including empty ones.
    pub gid_tbl_len: u32,
    /// Whether sysfs has the files with the types of rows. Without them NCCL cannot compare two rows.
    pub has_types: bool,
    /// Whether that is only assumed, as sysfs could not be looked at.
    pub assumes_types: bool,
    /// The rows in use, ascending by index, no index twice.
    pub rows: Vec<Row<'i>>,
}

/// A row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Row<'i> {
    /// Index in the table.
    pub index: u32,
    /// The GID.
    pub gid: Gid,
    /// Its type.
    pub gid_type: GidType,
    /// Whether sysfs refuses to give the type.
    pub type_is_hidden: bool,
    /// Whether an address handle can be made with it, as far as is known. UCX tries to make one. Of an
    /// interface that is not proven to be here the state is not known: see
    /// [`is_address_handle_known`](Self::is_address_handle_known).
    pub has_address_handle: bool,
    /// Whether one may be made although the interface does not have the address: a default route may lead to it, or its
    /// own MAC address is taken.
    pub may_lead_elsewhere: bool,
    /// Its network interface.
    pub home: Home<'i>,
    /// Whether the device takes what arrives at its interface, which soft RoCE does not always; `None` if that is not known.
    pub is_heard: Option<bool>,
}

/// Where a row's interface is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Home<'i> {
    /// The row has none, as on InfiniBand. On RoCE each row has one, so there it was not read.
    None,
    /// In this network namespace.
    Ours {
        /// Its name.
        name: &'i str,
        /// Whether it is up, with a carrier.
        is_up: bool,
        /// Whether it has the row's address. A GID made from its MAC address counts.
        has_address: bool,
        /// Why no program can use the row's address, if there is a reason.
        unfit: Option<Unfit>,
        /// Whether it is the port's own, and not a VLAN, macvlan or bridge on top of it; true also if the port's own is not
        /// in this namespace, so that no other is better. `None` if it could not be read which is the port's own.
        is_port_s: Option<bool>,
    },
    /// It is not proven to be in this namespace, and it may be: an interface here has the row's index (or
    /// name) and the address, or the MAC address that the GID is made from. The address is enough if the row
    /// has neither an index nor the name of an interface here.
    Unproven {
        /// The name of that interface, if there is only one.
        name: Option<&'i str>,
        /// Whether the row has its index or name. If not, only the address is here.
        is_named: bool,
        /// Whether it is up, with a carrier; of several, whether one is. If not, the row is of no use here,
        /// wherever its interface is.
        is_up: bool,
        /// Why no program can use the row's address, if it is of such an interface and there is a reason.
        unfit: Option<Unfit>,
    },
    /// It is proven to be in another namespace: no interface of this one can be its own.
    Foreign,
    /// It is not known in which namespace it is, but no interface of this one that can be its own has its
    /// address: it is in another one, or the address has gone.
    WithoutAddress,
    /// Nothing is known about the interfaces here.
    Unknown {
        /// Its name, if that is valid where the row is: in another host's tree, all names are.
        name: Option<&'i str>,
    },
}

impl Row<'_> {
    /// A row whose type sysfs shows, with an address handle, of whose interface nothing is known.
    #[must_use]
    pub fn new(index: u32, gid: Gid, gid_type: GidType) -> Self {
        let (type_is_hidden, has_address_handle) = (false, true);
        Self {
            index,
            gid,
            gid_type,
            type_is_hidden,
            has_address_handle,
            may_lead_elsewhere: false,
            home: Home::Unproven { name: None, is_named: false, is_up: true, unfit: None },
            is_heard: Some(true),
        }
    }

    /// Whether its type is not known.
    #[must_use]
    pub fn is_type_unread(&self) -> bool {
        self.type_is_hidden && self.gid_type == GidType::UNNAMED
    }

    /// Whether it is known if an address handle can be made with it.
    #[must_use]
    pub fn is_address_handle_known(&self) -> bool {
        let is_duplicate = matches!(self.home, Home::Ours { unfit: Some(Unfit::Duplicate), .. });
        !self.has_address_handle || matches!(self.home, Home::Ours { .. }) && !is_duplicate
    }

    /// The family of its address.
    #[must_use]
    pub fn family(&self) -> Family {
        Family::of(self.gid)
    }

    /// The RoCE version as the types file in sysfs gives it: 1 for InfiniBand and iWARP rows.
    pub(super) fn version(&self) -> Option<u8> {
        match self.gid_type {
            _ if self.type_is_hidden => None,
            GidType::IB | GidType::ROCE_V1 => Some(1),
            GidType::ROCE_V2 => Some(2),
            _ => None,
        }
    }
}

impl DeviceRecord {
    /// Whether a port is one of RoCE, if that is known. An Ethernet port of a channel adapter may have no RoCE: it is a
    /// representor, or RoCE was switched off. Netlink names the protocol of the first port only.
    #[must_use]
    pub fn is_roce(&self, port: &PortRecord) -> Option<bool> {
        let attributes = port.known()?;
        if !is_roce(attributes.link_layer, self.device.node_type) || attributes.gid_tbl_len == 0 {
            return Some(false);
        }
        let is_first = port.number == *self.device.ports().start();
        if let Some(protocol) = self.device.protocol.as_deref().filter(|_| is_first) {
            return Some(protocol == "roce");
        }
        let mut types = self.rows(port.number).iter().map(|row| row.record.entry.gid_type());
        types.any(|own| matches!(own, GidType::ROCE_V1 | GidType::ROCE_V2)).then_some(true)
    }

    /// Whether its ports with the link layer InfiniBand are of Omni-Path, if that is known. Netlink names the protocol.
    /// Without it the driver decides, if this version knows it: only one makes devices of Omni-Path.
    #[must_use]
    pub fn is_omni_path(&self) -> Option<bool> {
        match (&self.device.protocol, self.device.driver) {
            (Some(protocol), _) => Some(protocol == "opa"),
            (None, Some(driver)) => driver.name().map(|_| driver == DriverId::HFI1),
            (None, None) => None,
        }
    }
}

/// Whether a port is RoCE if it has GIDs, so that its rows differ in more than the index: an Ethernet port of a channel
/// adapter. iWARP and usNIC have other node types.
pub(crate) fn is_roce(link_layer: LinkLayer, node_type: NodeType) -> bool {
    link_layer == LinkLayer::ETHERNET && node_type == NodeType::CA
}

impl<'i> Port<'i> {
    /// An active Ethernet port of a channel adapter, without rows; set what you know.
    #[must_use]
    pub fn new(device: &'i str, number: u32) -> Self {
        Self {
            device,
            node_type: NodeType::CA,
            driver: None,
            number,
            place: None,
            is_found: true,
            state: PortState::ACTIVE,
            link_layer: LinkLayer::ETHERNET,
            gid_tbl_len: 0,
            has_types: true,
            assumes_types: false,
            rows: Vec::new(),
        }
    }

    /// The row at an index.
    #[must_use]
    pub fn row(&self, index: u32) -> Option<&Row<'_>> {
        let place = self.rows.binary_search_by_key(&index, |row| row.index).ok()?;
        self.rows.get(place)
    }

    /// Whether programs treat it as RoCE. They treat iWARP as RoCE too.
    #[must_use]
    pub fn is_ethernet(&self) -> bool {
        self.link_layer == LinkLayer::ETHERNET
    }
}
