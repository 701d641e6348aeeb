//! P_Keys, the partition keys of a port.
//!
//! The kernel has no ioctl for them: [`ibv_query_pkey(3)`] reads sysfs too. A port without a table
//! (iWARP) has none.
//!
//! [`ibv_query_pkey(3)`]: https://man7.org/linux/man-pages/man3/ibv_query_pkey.3.html

use core::fmt;

/// A partition key: 15 bits of partition, and the membership bit on top.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct PKey(pub u16);

impl PKey {
    /// Whether the slot is in use: the partition is not 0.
    #[must_use]
    pub const fn is_valid(self) -> bool {
        self.0 & 0x7fff != 0
    }

    /// Whether the port is a full member, which may talk to limited ones and to full ones.
    #[must_use]
    pub const fn is_full_member(self) -> bool {
        self.0 & 0x8000 != 0
    }
}

impl fmt::Display for PKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#06x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_membership_bit_alone_is_no_partition() {
        let told = |key| (PKey(key).is_valid(), PKey(key).is_full_member());
        assert_eq!(told(0x0000), (false, false));
        assert_eq!(told(0x8000), (false, true));
        assert_eq!(told(0x0001), (true, false));
        assert_eq!(told(0xffff), (true, true));
    }
}
