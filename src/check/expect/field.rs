//! What is compared: the fields of devices and ports, and the values that a pattern allows.

use core::fmt;

use super::SHOWN;
use crate::choose::Network;
use crate::pkey::PKey;
use crate::port::{LinkLayer, PortState, Rate};

/// A field of a device or of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Field {
    /// Of a device: version of its firmware.
    Firmware,
    /// Of a device: its NUMA node.
    NumaNode,
    /// Of a device: speed of its PCIe link, in units of 0.1 GT/s.
    PcieSpeed,
    /// Of a device: lanes of its PCIe link.
    PcieWidth,
    /// Of a device: how many ports it has.
    Ports,
    /// Of a port: link layer.
    LinkLayer,
    /// Of a port: logical state.
    State,
    /// Of a port: nominal rate, in units of 100 Mb/s.
    Rate,
    /// Of a port: lanes.
    Width,
    /// Of a port: RDMA MTU in use, in bytes.
    Mtu,
    /// Of a port: its network interface.
    Interface,
    /// Of a port: networks of its IPv4 addresses that have a GID of RoCE v2.
    RoceV2Ipv4,
    /// Of a port: the same of IPv6 addresses that are not link-local.
    RoceV2Ipv6,
    /// Of a port: its P_Keys.
    PKeys,
    /// Of a port: the GID index that is recommended.
    GidIndex,
    /// Of a port: the GID index that the newest known release of NCCL takes.
    NcclIndex,
    /// Of a port: the GID index that the newest known release of UCX takes.
    UcxIndex,
}

/// The form of a field's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Form {
    /// A whole number.
    Number,
    /// A number with one decimal, kept in tenths.
    Tenths,
    /// A whole number, or the word `none`.
    Index,
    /// A word.
    Word,
    /// Networks, in one of which an address has to be.
    Networks,
    /// P_Keys, all of which have to be there.
    PKeys,
}

/// A value of a field.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Value {
    /// A number; of [`Form::Tenths`] in tenths, of [`Form::PKeys`] the key.
    Number(u64),
    /// A word; [`Value::NO_INDEX`] for no index.
    Word(String),
    /// A network.
    Network(Network),
}

impl Value {
    /// The word for no index.
    pub const NO_INDEX: &str = "none";

    /// A word.
    pub fn word(text: impl Into<String>) -> Self {
        Self::Word(text.into())
    }
}

/// What is allowed of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Allowed {
    /// One of these values, which are at least one; of [`Form::PKeys`] all of them are wanted.
    OneOf(Vec<Value>),
    /// A number of this range.
    Within {
        /// The smallest.
        min: Option<u64>,
        /// The greatest.
        max: Option<u64>,
    },
}

impl Field {
    /// All, in the order in which files have them.
    pub const ALL: [Self; 17] = [
        Self::Firmware,
        Self::NumaNode,
        Self::PcieSpeed,
        Self::PcieWidth,
        Self::Ports,
        Self::LinkLayer,
        Self::State,
        Self::Rate,
        Self::Width,
        Self::Mtu,
        Self::Interface,
        Self::RoceV2Ipv4,
        Self::RoceV2Ipv6,
        Self::PKeys,
        Self::GidIndex,
        Self::NcclIndex,
        Self::UcxIndex,
    ];

    /// Its name in files.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.texts().0
    }

    /// The name of the finding, which does not change.
    #[must_use]
    pub fn finding(self) -> &'static str {
        self.texts().1
    }

    /// What it is called in sentences.
    #[must_use]
    pub fn label(self) -> &'static str {
        self.texts().2
    }

    /// The unit of its values.
    #[must_use]
    pub fn unit(self) -> &'static str {
        match self {
            Self::PcieSpeed => " GT/s",
            Self::Rate => " Gb/s",
            Self::Mtu => " bytes",
            _ => "",
        }
    }

    /// What to do about another value.
    pub(super) fn advice(self) -> &'static str {
        match self {
            Self::Firmware => {
                "update the firmware (fwupdmgr, mlxfwmanager), or add this version to the file"
            }
            Self::NumaNode => "is the card in the slot that it should be in?",
            Self::PcieSpeed => {
                "reseat the card, or move it to a faster slot (lspci -vv: LnkCap, LnkSta)"
            }
            Self::PcieWidth => {
                "reseat the card, or move it to a wider slot (lspci -vv: LnkCap, LnkSta)"
            }
            Self::Ports => "is it another card, or in another mode?",
            Self::LinkLayer => "change the port's type (mlxconfig LINK_TYPE)",
            Self::State => {
                "look at cable, transceiver, switch port and interface; on InfiniBand at the subnet manager"
            }
            Self::Rate => "look at cable and transceiver, and at the speed of the switch port",
            Self::Width => "look at cable and transceiver, and reseat them",
            Self::Mtu => "set the MTU of the interface; on InfiniBand that of the partition",
            Self::Interface => "look at the names of interfaces (udev), and where the interface is",
            Self::RoceV2Ipv4 | Self::RoceV2Ipv6 => {
                "has the interface its address, and is its GID of RoCE v2 (uverbs gids)?"
            }
            Self::PKeys => "make the port a member of the partition, at the subnet manager",
            Self::GidIndex => "uverbs choose --explain gives the reason",
            Self::NcclIndex => "uverbs choose --like nccl --explain gives the reason",
            Self::UcxIndex => "uverbs choose --like ucx --explain gives the reason",
        }
    }

    /// Name, finding and label.
    fn texts(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Firmware => ("firmware", "expect-firmware", "firmware"),
            Self::NumaNode => ("numa_node", "expect-numa-node", "NUMA node"),
            Self::PcieSpeed => ("pcie_speed", "expect-pcie-speed", "speed of the PCIe link"),
            Self::PcieWidth => ("pcie_width", "expect-pcie-width", "lanes of the PCIe link"),
            Self::Ports => ("ports", "expect-ports", "number of ports"),
            Self::LinkLayer => ("link_layer", "expect-link-layer", "link layer"),
            Self::State => ("state", "expect-state", "state"),
            Self::Rate => ("rate", "expect-rate", "rate"),
            Self::Width => ("width", "expect-width", "lanes"),
            Self::Mtu => ("mtu", "expect-mtu", "RDMA MTU"),
            Self::Interface => ("interface", "expect-interface", "network interface"),
            Self::RoceV2Ipv4 => {
                ("roce_v2_ipv4", "expect-ipv4", "IPv4 addresses with a RoCE v2 GID")
            }
            Self::RoceV2Ipv6 => {
                ("roce_v2_ipv6", "expect-ipv6", "IPv6 addresses with a RoCE v2 GID")
            }
            Self::PKeys => ("pkeys", "expect-pkey", "P_Keys"),
            Self::GidIndex => ("gid_index", "expect-gid-index", "recommended GID index"),
            Self::NcclIndex => ("nccl_index", "expect-nccl-index", "GID index of NCCL"),
            Self::UcxIndex => ("ucx_index", "expect-ucx-index", "GID index of UCX"),
        }
    }

    /// The form of its values.
    #[must_use]
    pub fn form(self) -> Form {
        match self {
            Self::NumaNode | Self::PcieWidth | Self::Ports | Self::Width | Self::Mtu => {
                Form::Number
            }
            Self::PcieSpeed | Self::Rate => Form::Tenths,
            Self::Firmware | Self::LinkLayer | Self::State | Self::Interface => Form::Word,
            Self::RoceV2Ipv4 | Self::RoceV2Ipv6 => Form::Networks,
            Self::PKeys => Form::PKeys,
            Self::GidIndex | Self::NcclIndex | Self::UcxIndex => Form::Index,
        }
    }

    /// Whether it is of a device. Else it is of each port.
    #[must_use]
    pub fn is_of_device(self) -> bool {
        self <= Self::Ports
    }

    /// The words that there are, where not any text may be a value. A number that has no name is `unknown(N)`.
    #[must_use]
    pub fn words(self) -> Option<Vec<&'static str>> {
        let all = 0..=u8::MAX;
        match self {
            Self::LinkLayer => Some(all.filter_map(|own| LinkLayer(own).name()).collect()),
            Self::State => Some(all.filter_map(|own| PortState(own).name()).collect()),
            _ => None,
        }
    }

    /// Whether its value follows from another one's being wrong, so that it is not compared then.
    pub(super) fn follows(self, other: Self) -> bool {
        let is_index = self.form() == Form::Index;
        match other {
            // The rate of a link that is down is not that of the link.
            Self::State => is_index || matches!(self, Self::Rate | Self::Width),
            Self::LinkLayer => {
                is_index
                    || matches!(self.form(), Form::Networks | Form::PKeys)
                    || self == Self::Interface
            }
            _ => false,
        }
    }

    /// A value as sentences have it.
    pub(super) fn text(self, value: &Value) -> String {
        match (self.form(), value) {
            (Form::Tenths, Value::Number(own)) => Rate(*own).to_string(),
            (Form::PKeys, Value::Number(own)) => {
                PKey(u16::try_from(*own).unwrap_or_default()).to_string()
            }
            (_, own) => own.to_string(),
        }
    }

    /// What is allowed, as sentences have it.
    pub(super) fn wanted(self, allowed: &Allowed) -> String {
        let number = |own: &u64| self.text(&Value::Number(*own));
        let (text, unit) = (allowed.text(&|own| self.text(own), &number), self.unit());
        match self.form() {
            Form::Networks => format!("one in {text}"),
            Form::PKeys => text.replace(" or ", ", "),
            _ => format!("{text}{unit}"),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(own) => write!(f, "{own}"),
            Self::Word(own) => f.write_str(own),
            Self::Network(own) => write!(f, "{own}"),
        }
    }
}

impl Allowed {
    /// One value.
    #[must_use]
    pub fn one(value: Value) -> Self {
        Self::OneOf(vec![value])
    }

    /// Whether a number is allowed.
    #[must_use]
    pub fn has_number(&self, number: u64) -> bool {
        match self {
            Self::OneOf(values) => values.contains(&Value::Number(number)),
            Self::Within { min, max } => {
                min.is_none_or(|own| number >= own) && max.is_none_or(|own| number <= own)
            }
        }
    }

    /// As sentences have it: of many values the first.
    pub(super) fn text(
        &self,
        value: &dyn Fn(&Value) -> String,
        number: &dyn Fn(&u64) -> String,
    ) -> String {
        match self {
            Self::OneOf(values) => {
                let more = values.len().saturating_sub(SHOWN);
                let more = (more > 0).then(|| format!("{more} more"));
                let shown = values.iter().take(SHOWN).map(value);
                shown.chain(more).collect::<Vec<_>>().join(" or ")
            }
            Self::Within { min: Some(min), max: Some(max) } => {
                format!("{} to {}", number(min), number(max))
            }
            Self::Within { min: Some(min), max: None } => format!("at least {}", number(min)),
            Self::Within { min: None, max: Some(max) } => format!("at most {}", number(max)),
            Self::Within { min: None, max: None } => "any".to_owned(),
        }
    }
}
