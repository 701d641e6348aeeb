//! GUIDs of nodes, system images and ports.
//!
//! A port's GUID is, as [`umad_get_ca_portguids(3)`] defines it, the lower half of the GID at index
//! 0 of the port; no file and no ioctl names it otherwise. On InfiniBand this is the subnet's port
//! GUID, on RoCE the EUI-64 of the interface's MAC address as long as the default GID is there.
//!
//! [`umad_get_ca_portguids(3)`]: https://man7.org/linux/man-pages/man3/umad_get_ca_portguids.3.html

use core::fmt;
use core::str::FromStr;
use std::borrow::Cow;

use crate::gid::Gid;

/// A 64-bit globally unique identifier (EUI-64), kept in network order.
///
/// Prints as `0x` and 16 hexadecimal digits.
///
/// ```
/// use uverbs::Guid;
/// let guid: Guid = "0011:22ff:fe33:4455".parse()?;
/// assert_eq!(guid.to_string(), "0x001122fffe334455");
/// # Ok::<(), uverbs::guid::InvalidGuid>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Guid([u8; 8]);

impl Guid {
    /// From its bytes in network order.
    #[must_use]
    pub const fn from_be_bytes(bytes: [u8; 8]) -> Self {
        Self(bytes)
    }

    /// Its bytes in network order.
    #[must_use]
    pub const fn to_be_bytes(self) -> [u8; 8] {
        self.0
    }

    /// As a number of this machine.
    #[must_use]
    pub const fn to_u64(self) -> u64 {
        u64::from_be_bytes(self.0)
    }

    /// Whether it is all zero, which means "none".
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.to_u64() == 0
    }
}

impl From<u64> for Guid {
    fn from(value: u64) -> Self {
        Self(value.to_be_bytes())
    }
}

impl From<Gid> for Guid {
    /// The interface identifier of a GID, its lower half: the port GUID if the GID is at index 0.
    fn from(gid: Gid) -> Self {
        Self::from(gid.interface_id())
    }
}

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#018x}", self.to_u64())
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for Guid {
    /// The text that it prints as.
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for Guid {
    /// From any text that [`FromStr`] reads.
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        use serde::de::DeserializeSeed as _;
        let parse = |text: &str| text.parse().ok();
        crate::form::Parsed { expected: "a GUID", parse }.deserialize(from)
    }
}

/// A text that is not a GUID.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a GUID: expected 16 hexadecimal digits, as 0011:22ff:fe33:4455 or 0x001122fffe334455"
)]
pub struct InvalidGuid(String);

impl FromStr for Guid {
    type Err = InvalidGuid;

    /// Reads what sysfs, `ibstat`, `ibv_devices` and this type print.
    fn from_str(text: &str) -> Result<Self, InvalidGuid> {
        let invalid = || InvalidGuid(text.to_owned());
        let digits = if text.contains(':') {
            let groups: Vec<&str> = text.split(':').collect();
            if groups.len() != 4 || groups.iter().any(|group| group.len() != 4) {
                return Err(invalid());
            }
            Cow::Owned(groups.concat())
        } else {
            Cow::Borrowed(text.strip_prefix("0x").unwrap_or(text))
        };
        if digits.len() != 16 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(invalid());
        }
        u64::from_str_radix(&digits, 16).map(Self::from).map_err(|_| invalid())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_every_form_that_tools_print() {
        let guid = Guid::from(0x0011_22ff_fe33_4455);
        for text in ["0011:22ff:fe33:4455", "0x001122fffe334455", "001122fffe334455"] {
            assert_eq!(text.parse(), Ok(guid));
        }
        assert_eq!(guid.to_be_bytes(), [0x00, 0x11, 0x22, 0xff, 0xfe, 0x33, 0x44, 0x55]);
    }

    #[test]
    fn refuses_what_is_not_a_guid() {
        for text in [
            "",
            "0x",
            "0011:22ff:fe33",
            "0011:22ff:fe33:44556",
            "g011:22ff:fe33:4455",
            "+011:22ff:fe33:4455",
            "001122fffe3344551",
            "0:0:0:0",
        ] {
            assert!(text.parse::<Guid>().is_err(), "{text:?}");
        }
    }
}
