//! What should be alike on the hosts of a fleet.

use super::names::Names;
use crate::choose::Outcome;
use crate::driver::DriverId;
use crate::inventory::{DeviceRecord, Inventory, PortRecord};
use crate::pkey::PKey;
use crate::port::{LinkLayer, Mtu, Rate, Speed, Width};

/// What may differ between hosts, most telling first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Field {
    /// Whether a device or port is there.
    Present,
    /// What a program gets of a device's node.
    Node,
    /// The driver's name for a device's board.
    Board,
    /// The driver.
    Driver,
    /// The firmware's version.
    Firmware,
    /// A port's link layer.
    LinkLayer,
    /// Its state.
    State,
    /// Its rate in Gb/s.
    Rate,
    /// Its width in lanes.
    Width,
    /// Its active MTU in bytes.
    Mtu,
    /// Its P_Keys.
    PKeys,
    /// The type of the GID that is recommended.
    GidType,
    /// How long the prefix of its address is, or that the address is link-local.
    Prefix,
    /// Its index.
    Index,
    /// What NCCL takes.
    Nccl,
    /// What UCX takes.
    Ucx,
    /// A variable that chooses GIDs.
    Setting,
    /// A device's PCIe link.
    PcieLink,
    /// Its NUMA node.
    NumaNode,
    /// The kernel's release.
    Kernel,
}

impl Field {
    /// Its name, in words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Present => "is there",
            Self::Node => "node",
            Self::Board => "board",
            Self::Driver => "driver",
            Self::Firmware => "firmware",
            Self::LinkLayer => "link layer",
            Self::State => "state",
            Self::Rate => "rate in Gb/s",
            Self::Width => "lanes",
            Self::Mtu => "MTU",
            Self::PKeys => "P_Keys",
            Self::GidType => "GID type",
            Self::Prefix => "prefix length",
            Self::Index => "GID index",
            Self::Nccl => "GID index of NCCL",
            Self::Ucx => "GID index of UCX",
            Self::Setting => "setting",
            Self::PcieLink => "PCIe link",
            Self::NumaNode => "NUMA node",
            Self::Kernel => "kernel",
        }
    }

    /// The fields of a device or port on which this one of it depends: hosts that differ in them are not compared in it.
    /// They do not depend on others themselves.
    pub(super) fn causes(self) -> &'static [Self] {
        match self {
            Self::Firmware => &[Self::Board, Self::Driver],
            Self::PcieLink => &[Self::Board],
            // What a port is, and what comes of it.
            _ if (Self::Rate..=Self::Ucx).contains(&self) => &[Self::LinkLayer, Self::State],
            _ => &[],
        }
    }

    /// What a difference in this field explains: differences there that are not worth a word.
    pub(super) fn explains(self, other: Self) -> bool {
        let is_cause = other.causes().contains(&self);
        is_cause
            || matches!((self, other), (Self::LinkLayer, Self::State) | (Self::Rate, Self::Width))
    }

    /// Whether it means something if it is only on one of two hosts. Of others, it was not read.
    pub(super) fn can_lack(self) -> bool {
        matches!(self, Self::Present | Self::Setting)
    }
}

/// A field of a device, a port, or of the host, and its value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Item {
    pub(super) field: Field,
    /// `mlx5_0`, `mlx5_0:1`, the name of a variable; empty for the host.
    pub(super) place: Box<str>,
    pub(super) value: Box<str>,
}

/// What is known of a host.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Profile {
    /// Numbers of items, ascending.
    pub(super) items: Box<[u32]>,
    /// Whether all devices could be listed.
    has_devices: bool,
    /// Whether all settings could be.
    has_settings: bool,
    /// Whether all that is compared was read.
    pub(super) is_read: bool,
}

/// Gathers the items of a host.
pub(super) struct Items<'n> {
    pub(super) known: &'n mut Names<Item>,
    list: Vec<u32>,
    /// Whether something that is compared was not read, or is not known for another reason.
    is_partly: bool,
    /// Room for a key.
    key: Vec<u8>,
}

impl<'n> Items<'n> {
    pub(super) fn new(known: &'n mut Names<Item>) -> Self {
        Self { known, list: Vec::new(), is_partly: false, key: Vec::new() }
    }

    pub(super) fn add(&mut self, field: Field, place: &str, value: Option<String>) {
        if let Some(value) = value {
            // No name is so long that its length does not fit.
            let length = u32::try_from(place.len()).unwrap_or(u32::MAX).to_be_bytes();
            self.key.clear();
            self.key.push(field as u8);
            self.key.extend_from_slice(&length);
            self.key.extend_from_slice(place.as_bytes());
            self.key.extend_from_slice(value.as_bytes());
            let item = || Item { field, place: place.into(), value: value.into() };
            self.list.push(self.known.number(&self.key, item));
        }
    }

    /// The same. Without a value it was not read.
    pub(super) fn add_known(&mut self, field: Field, place: &str, value: Option<String>) {
        self.is_partly |= value.is_none();
        self.add(field, place, value);
    }

    /// Says that something that is compared is not known.
    pub(super) fn lacks(&mut self) {
        self.is_partly = true;
    }

    /// Adds what is the host's own.
    pub(super) fn add_host(&mut self, inventory: &Inventory) {
        self.add_known(Field::Kernel, "", inventory.kernel.clone());
        // What is set first counts: another file that could not be read may be first. A file that only older releases
        // read is left out.
        let is_whole = inventory.unread_settings.is_empty();
        let mut last = "";
        for setting in inventory.settings.iter().filter(|own| is_whole || own.file.is_none()) {
            let counts = inventory.setting(&setting.name).is_some_and(|own| own == setting);
            if counts && last != setting.name {
                self.add(Field::Setting, &setting.name, Some(setting.value.clone()));
                last = &setting.name;
            }
        }
        for other in &inventory.others {
            self.add(Field::Present, &other.name, Some(String::new()));
        }
    }

    pub(super) fn add_device(&mut self, record: &DeviceRecord) {
        let device = &record.device;
        let name = device.name.as_str();
        self.add(Field::Present, name, Some(String::new()));
        self.add_known(Field::Node, name, record.node_state().map(|own| own.name().to_owned()));
        self.add_known(Field::Driver, name, device.driver.map(|own| own.to_string()));
        // Software devices have no firmware and no hardware.
        if device.driver.is_some_and(DriverId::is_software) {
            return;
        }
        self.add_known(Field::Firmware, name, device.fw_version.clone());
        let Some(hardware) = &record.hardware else { return self.lacks() };
        let board = Some(hardware.board_id.clone().unwrap_or_else(none));
        self.add_known(Field::Board, name, board.filter(|_| !hardware.board_is_unread));
        let node = hardware.numa_node.map_or_else(none, |own| own.to_string());
        let node = Some(node).filter(|_| !hardware.numa_node_is_unread);
        self.add_known(Field::NumaNode, name, node);
        let link = match &hardware.pci {
            Some(function) => function.link.map(|own| own.to_string()),
            None => Some(none()).filter(|_| !hardware.pci_is_unread),
        };
        self.add_known(Field::PcieLink, name, link);
    }

    pub(super) fn add_port(&mut self, name: &str, port: &PortRecord) {
        self.add(Field::Present, name, Some(String::new()));
        let Some(own) = port.known() else { return self.lacks() };
        self.add(Field::LinkLayer, name, Some(own.link_layer.to_string()));
        self.add(Field::State, name, Some(own.state.to_string()));
        // A code that this release does not know was read nevertheless.
        let code = |code: u32| format!("code {code}");
        let rate = own.rate().map(|own| own.to_string());
        let lane = |own: Speed| match own.lane_rate() {
            Some(rate) => format!("{} a lane", Rate(rate.into())),
            None => code(own.0),
        };
        let rate = rate.or_else(|| own.active_width.and(own.active_speed).map(lane));
        self.add_known(Field::Rate, name, rate);
        let lanes =
            |own: Width| own.lanes().map_or_else(|| code(own.0.into()), |own| own.to_string());
        self.add_known(Field::Width, name, own.active_width.map(lanes));
        // Sysfs has none. A port without an interface has one of no value.
        let bytes = |own: Mtu| match own {
            Mtu(0) => none(),
            own => own.bytes().map_or_else(|| code(own.0.into()), |own| own.to_string()),
        };
        self.add_known(Field::Mtu, name, own.active_mtu.map(bytes));
        // On Ethernet they mean nothing, and may not have been asked for.
        if own.link_layer != LinkLayer::ETHERNET {
            let keys = port.pkeys.as_ref().and_then(|own| own.as_ref().ok());
            let text = |keys: &Vec<(u32, PKey)>| {
                let keys: Vec<String> = keys.iter().map(|(_, key)| key.to_string()).collect();
                if keys.is_empty() { none() } else { keys.join(" ") }
            };
            self.add_known(Field::PKeys, name, keys.map(text));
        }
    }

    /// Adds the index that somebody takes.
    pub(super) fn add_index(&mut self, field: Field, name: &str, outcome: &Outcome) {
        let text = match outcome {
            Outcome::Ignored(_) => none(),
            other => other.to_string(),
        };
        self.add(field, name, Some(text));
    }

    pub(super) fn end(mut self, inventory: &Inventory) -> Profile {
        self.list.sort_unstable();
        self.list.dedup();
        let has_devices = inventory.problems.is_empty() && inventory.unlisted.is_empty();
        // Variables are known of a host, and not of a tree.
        let has_settings = inventory.host.is_some() && inventory.unread_settings.is_empty();
        let is_read = has_devices && has_settings && !inventory.is_partial() && !self.is_partly;
        Profile { items: self.list.into(), has_devices, has_settings, is_read }
    }
}

/// What is compared of a thing that is not there.
fn none() -> String {
    "none".to_owned()
}

impl Profile {
    /// Whether it is known what the host does not have, of a field that it may lack.
    pub(super) fn is_whole(&self, field: Field) -> bool {
        if field == Field::Setting { self.has_settings } else { self.has_devices }
    }

    pub(super) fn key(&self) -> Vec<u8> {
        let mut key = [self.has_devices, self.has_settings, self.is_read].map(u8::from).to_vec();
        for item in &self.items {
            key.extend_from_slice(&item.to_be_bytes());
        }
        key
    }
}
