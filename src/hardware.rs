//! What a device is made of, and its place in the machine: PCI function, PCIe link, NUMA node, board.
//!
//! [`Sysfs::hardware`](crate::sysfs::Sysfs::hardware) reads it. What a device does not have, or the kernel does
//! not say, is `None`: all of it of soft RoCE. So is what could not be read; of the parts on which answers depend
//! there is a field `…_is_unread`.

use core::fmt;
use core::str::FromStr;

/// What is known of a device's hardware.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(expecting = "an object", default)
)]
#[non_exhaustive]
pub struct Hardware {
    /// The driver's name for the board (`board_id`), as `MT_0000000224`.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "crate::form::plain"))]
    pub board_id: Option<String>,
    /// Whether that could not be read, so that it is not known.
    pub board_is_unread: bool,
    /// The driver's name for the model (`hca_type`), as `MT4129`.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "crate::form::plain"))]
    pub ca_type: Option<String>,
    /// Hardware revision (`hw_rev`), in the driver's own form.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "crate::form::plain"))]
    pub hw_rev: Option<String>,
    /// The NUMA node that is next to it.
    pub numa_node: Option<u32>,
    /// Whether that could not be read, so that it is not known.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "core::ops::Not::not"))]
    pub numa_node_is_unread: bool,
    /// Its PCI function.
    pub pci: Option<PciFunction>,
    /// Whether that could not be read, so that it is not known.
    pub pci_is_unread: bool,
}

/// The numbers in mlx5's table (`mlx5_core_pci_table`): those that it marks as virtual functions, and the others.
const MELLANOX: u16 = 0x15b3;
const MLX5_VIRTUAL: [u16; 8] = [0x1012, 0x1014, 0x1016, 0x1018, 0x101a, 0x101c, 0x101e, 0xa2d3];
const MLX5_PHYSICAL: [u16; 17] = [
    0x1011, 0x1013, 0x1015, 0x1017, 0x1019, 0x101b, 0x101d, 0x101f, 0x1021, 0x1023, 0x1025, 0x1027,
    0xa2d2, 0xa2d6, 0xa2dc, 0xa2df, 0x2101,
];

/// A PCI function.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(expecting = "an object")
)]
#[non_exhaustive]
pub struct PciFunction {
    /// Its address.
    pub address: PciAddress,
    /// Number of the vendor and of the device, as `lspci -n` has them.
    pub id: Option<(u16, u16)>,
    /// Whether the RDMA device is a sub-function of it, as mlx5 has them.
    #[cfg_attr(feature = "serde", serde(default))]
    pub has_sub_function: bool,
    /// Its physical function, if it is a virtual one (VF) and this is known.
    pub physical: Option<PciAddress>,
    /// Whether it is a virtual one of which it is not known what the physical function is.
    #[cfg_attr(feature = "serde", serde(default))]
    pub physical_is_unread: bool,
    /// Whether it can have virtual ones (`sriov_totalvfs`).
    #[cfg_attr(feature = "serde", serde(default))]
    pub has_virtual: bool,
    /// The PCIe link as it is; of a VF that of its physical function.
    pub link: Option<PcieLink>,
    /// The best link that the function itself is capable of, in any slot; of a VF that of its physical function.
    pub max_link: Option<PcieLink>,
}

impl Hardware {
    /// The same. Where the PCI function is not known, it is not known either that there is no NUMA node: another folder
    /// may have it. Snapshots of older releases do not say so.
    pub(crate) fn doubting_node(mut self) -> Self {
        self.numa_node_is_unread |= self.numa_node.is_none() && self.pci_is_unread;
        self
    }
}

impl PciFunction {
    /// A function of which only the address is known.
    #[must_use]
    pub fn at(address: PciAddress) -> Self {
        Self {
            address,
            id: None,
            has_sub_function: false,
            physical: None,
            physical_is_unread: false,
            has_virtual: false,
            link: None,
            max_link: None,
        }
    }

    /// Whether it is known to be a virtual one (VF). A virtual machine that has one does not see its physical one: mlx5
    /// knows it by its number.
    #[must_use]
    pub fn is_virtual(&self) -> bool {
        self.physical.is_some() || self.physical_is_unread || self.has_id(&MLX5_VIRTUAL)
    }

    /// Whether it is known to be a physical one (PF), by its number too.
    #[must_use]
    pub fn is_physical(&self) -> bool {
        !self.is_virtual() && (self.has_virtual || self.has_id(&MLX5_PHYSICAL))
    }

    fn has_id(&self, devices: &[u16]) -> bool {
        self.id.is_some_and(|(vendor, device)| vendor == MELLANOX && devices.contains(&device))
    }

    /// Whether its link is known to be slower or narrower than it could be.
    #[must_use]
    pub fn is_narrow(&self) -> bool {
        let (Some(link), Some(max)) = (self.link, self.max_link) else { return false };
        link.speed < max.speed || link.width < max.width
    }
}

/// How many lanes a PCIe link can have.
pub(crate) const LANES: core::ops::RangeInclusive<u8> = 1..=32;

/// A PCIe link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(expecting = "an object")
)]
pub struct PcieLink {
    /// Transfers of a lane in units of 0.1 GT/s, so that 2.5 GT/s (25) is a whole number.
    pub speed: u32,
    /// Lanes, 1 to 32.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "crate::form::lanes"))]
    pub width: u8,
}

impl fmt::Display for PcieLink {
    /// `16GT/s,x8`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.speed % 10 {
            0 => write!(f, "{}GT/s,x{}", self.speed / 10, self.width),
            tenth => write!(f, "{}.{tenth}GT/s,x{}", self.speed / 10, self.width),
        }
    }
}

/// Address of a PCI function: domain, bus, device and function.
///
/// ```
/// use uverbs::hardware::PciAddress;
/// let address: PciAddress = "0000:17:00.1".parse()?;
/// assert_eq!(address.to_string(), "0000:17:00.1");
/// # Ok::<(), uverbs::hardware::InvalidPciAddress>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PciAddress {
    domain: u32,
    bus: u8,
    /// Device and function, as the kernel's `devfn`.
    devfn: u8,
}

impl fmt::Display for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { domain, bus, devfn } = self;
        write!(f, "{domain:04x}:{bus:02x}:{:02x}.{}", devfn >> 3, devfn & 7)
    }
}

/// A text that is not the address of a PCI function.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not the address of a PCI function, as 0000:17:00.0")]
pub struct InvalidPciAddress(String);

impl FromStr for PciAddress {
    type Err = InvalidPciAddress;

    /// Reads what the kernel and this type print.
    fn from_str(text: &str) -> Result<Self, InvalidPciAddress> {
        let parse = || {
            let (domain, rest) = text.split_once(':')?;
            let (bus, rest) = rest.split_once(':')?;
            let (device, function) = rest.split_once('.')?;
            let number = |digits: &str| u32::from_str_radix(digits, 16).ok();
            let function = u8::try_from(number(function)?).ok()?;
            let devfn =
                u8::try_from(number(device)?).ok()?.checked_mul(8)?.checked_add(function)?;
            Some(Self { domain: number(domain)?, bus: u8::try_from(number(bus)?).ok()?, devfn })
        };
        // Only in the form in which it prints: no sign, no missing zero.
        let is_plain = |own: &Self| own.to_string() == text;
        parse().filter(is_plain).ok_or_else(|| InvalidPciAddress(text.to_owned()))
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for PciAddress {
    /// The text that it prints as.
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for PciAddress {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        use serde::de::DeserializeSeed as _;
        let parse = |text: &str| text.parse().ok();
        crate::form::Parsed { expected: "the address of a PCI function", parse }.deserialize(from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for text in ["0000:00:00.0", "0000:17:1f.7", "10000:e1:00.0", "ffffffff:ff:1f.7"] {
            assert_eq!(text.parse::<PciAddress>().unwrap().to_string(), text);
        }
        let odd = ["", "17:00.0", "0000:17:00", "0000:17:00.8", "0000:17:20.0", "0000:100:00.0"];
        for text in
            odd.into_iter().chain(["0000:17:0.0", "+000:17:00.0", "0000:17:00.0 ", "0000:1F:00.0"])
        {
            assert!(text.parse::<PciAddress>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_link_is_narrow_if_it_could_be_better() {
        let link = |speed, width| Some(PcieLink { speed, width });
        let mut own = PciFunction::at("0000:17:00.0".parse().unwrap());
        own.max_link = link(160, 16);
        for (now, is_narrow) in
            [(link(160, 16), false), (link(80, 16), true), (link(160, 8), true), (None, false)]
        {
            own.link = now;
            assert_eq!(own.is_narrow(), is_narrow, "{now:?}");
        }
        own.link = link(25, 1);
        own.max_link = None;
        assert!(!own.is_narrow());
        assert_eq!(own.link.unwrap().to_string(), "2.5GT/s,x1");
        assert_eq!(link(160, 16).unwrap().to_string(), "16GT/s,x16");
    }
}
