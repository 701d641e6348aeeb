//! GIDs, as plain values: the GID, its type, a table's entry, and an entry with its source.
//!
//! [`Context`](crate::Context) asks for entries by ioctl, with the semantics of [`ibv_query_gid_ex(3)`] and
//! [`ibv_query_gid_table(3)`]. [`Sysfs`](crate::Sysfs) reads them from `gids`, `gid_attrs/types` and
//! `gid_attrs/ndevs` of each port, with the meaning that rdma-core gives them.
//!
//! An empty slot is an answer, `None`, not an error (the kernel says `ENODATA`). Tables are sparse
//! and their indices change: never take an entry's place in a list for its index.
//!
//! [`ibv_query_gid_ex(3)`]: https://man7.org/linux/man-pages/man3/ibv_query_gid_ex.3.html
//! [`ibv_query_gid_table(3)`]: https://man7.org/linux/man-pages/man3/ibv_query_gid_table.3.html

use core::fmt;
use core::num::NonZeroU32;
use std::net::{Ipv4Addr, Ipv6Addr};

use uverbs_uapi::device as abi;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Entries that one `QUERY_GID_TABLE` can return: 2,047, as the answer has at most 65,535 bytes.
pub const MAX_TABLE_ENTRIES: usize = u16::MAX as usize / size_of::<GidEntry>();

/// The most slots of a port's table that are walked one by one. The largest table known has 1024.
pub(crate) const MAX_WALK: u32 = 1 << 16;

/// How often a slot is read again that changes while its files are read.
pub(crate) const SLOT_READS: u32 = 16;

/// The prefix of a subnet of InfiniBand that was given none; on RoCE that of link-local GIDs.
pub(crate) const DEFAULT_PREFIX: u64 = 0xfe80 << 48;

/// A global identifier: 16 bytes, written as an IPv6 address.
///
/// ```
/// use uverbs::Gid;
/// let gid = Gid::from("::ffff:192.168.77.1".parse::<std::net::Ipv6Addr>()?);
/// assert_eq!(gid.ipv4(), Some([192, 168, 77, 1].into()));
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Gid([u8; 16]);

impl Gid {
    /// From its bytes, network order.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Its bytes, network order.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0
    }

    /// As an IPv6 address.
    #[must_use]
    pub const fn ipv6(self) -> Ipv6Addr {
        Ipv6Addr::from_bits(u128::from_be_bytes(self.0))
    }

    /// The IPv4 address of a v4-mapped GID (`::ffff:a.b.c.d`), as RoCE makes of an IPv4 address.
    #[must_use]
    pub const fn ipv4(self) -> Option<Ipv4Addr> {
        self.ipv6().to_ipv4_mapped()
    }

    /// The upper half: the subnet prefix.
    #[must_use]
    pub const fn subnet_prefix(self) -> u64 {
        self.halves().0
    }

    /// The lower half: the interface identifier.
    #[must_use]
    pub const fn interface_id(self) -> u64 {
        self.halves().1
    }

    #[expect(clippy::cast_possible_truncation, reason = "the halves are what is wanted")]
    const fn halves(self) -> (u64, u64) {
        let number = u128::from_be_bytes(self.0);
        ((number >> 64) as u64, number as u64)
    }

    /// The GID that RoCE makes of a MAC address: link-local, with its EUI-64.
    pub(crate) const fn of_roce(mac: [u8; 6]) -> Self {
        let [m0, m1, m2, m3, m4, m5] = mac;
        Self([0xfe, 0x80, 0, 0, 0, 0, 0, 0, m0 ^ 2, m1, m2, 0xff, 0xfe, m3, m4, m5])
    }

    /// The one GID of an iWARP port: its MAC address, then zeros.
    pub(crate) const fn of_iwarp(mac: [u8; 6]) -> Self {
        let [m0, m1, m2, m3, m4, m5] = mac;
        Self([m0, m1, m2, m3, m4, m5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
    }

    /// Whether all bytes are zero, as sysfs shows an empty slot.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        u128::from_be_bytes(self.0) == 0
    }

    /// The form sysfs uses: eight groups of four digits, nothing shortened.
    #[must_use]
    pub fn full(self) -> String {
        let mut text = String::with_capacity(39);
        for pair in self.0.chunks_exact(2) {
            if !text.is_empty() {
                text.push(':');
            }
            for byte in pair {
                text.push(char::from_digit(u32::from(byte >> 4), 16).unwrap_or('0'));
                text.push(char::from_digit(u32::from(byte & 15), 16).unwrap_or('0'));
            }
        }
        text
    }

    /// Reads the form sysfs uses, and only that.
    pub(crate) fn parse_full(text: &str) -> Option<Self> {
        let well_formed = text.len() == 39
            && text.bytes().enumerate().all(|(place, byte)| match place % 5 {
                4 => byte == b':',
                _ => byte.is_ascii_hexdigit(),
            });
        if !well_formed {
            return None;
        }
        let digits: String = text.chars().filter(|c| *c != ':').collect();
        u128::from_str_radix(&digits, 16).ok().map(|number| Self(number.to_be_bytes()))
    }
}

impl From<Ipv6Addr> for Gid {
    fn from(address: Ipv6Addr) -> Self {
        Self(address.octets())
    }
}

impl From<Ipv4Addr> for Gid {
    /// The v4-mapped GID.
    fn from(address: Ipv4Addr) -> Self {
        address.to_ipv6_mapped().into()
    }
}

impl fmt::Display for Gid {
    /// RFC 5952 text: shortened, with a v4-mapped address in dotted form.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.ipv6(), f)
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for Gid {
    /// The text that it prints as.
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for Gid {
    /// From an IPv6 address.
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        use serde::de::DeserializeSeed as _;
        let parse = |text: &str| text.parse::<Ipv6Addr>().ok().map(Self::from);
        crate::form::Parsed { expected: "16 bytes, written as IPv6", parse }.deserialize(from)
    }
}

/// What a GID is used for. A newer kernel's types keep their number.
#[doc(alias = "ibv_gid_type")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GidType(pub u32);

impl GidType {
    /// InfiniBand; also what iWARP and EFA entries say.
    #[doc(alias = "IBV_GID_TYPE_IB")]
    pub const IB: Self = Self(abi::gid_type::IB);
    /// RoCE version 1 (Ethertype 0x8915).
    #[doc(alias = "IBV_GID_TYPE_ROCE_V1")]
    pub const ROCE_V1: Self = Self(abi::gid_type::ROCE_V1);
    /// RoCE version 2 (UDP port 4791).
    #[doc(alias = "IBV_GID_TYPE_ROCE_V2")]
    pub const ROCE_V2: Self = Self(abi::gid_type::ROCE_V2);
    /// A type that sysfs does not show, or names in words which this version does not know. No kernel uses
    /// the number.
    pub const UNNAMED: Self = Self(u32::MAX);
}

impl fmt::Display for GidType {
    /// `ib`, `roce_v1`, `roce_v2`, `unknown(N)`, or `unknown` where there is no number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::IB => f.pad("ib"),
            Self::ROCE_V1 => f.pad("roce_v1"),
            Self::ROCE_V2 => f.pad("roce_v2"),
            Self::UNNAMED => f.pad("unknown"),
            Self(other) => f.pad(&format!("unknown({other})")),
        }
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for GidType {
    /// The word that it prints as.
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for GidType {
    /// From the word, or from the kernel's number, which older snapshots have.
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct WordOrNumber;

        impl serde::de::Visitor<'_> for WordOrNumber {
            type Value = GidType;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("ib, roce_v1, roce_v2, unknown(N), unknown or a number")
            }

            fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<GidType, E> {
                let unexpected = serde::de::Unexpected::Unsigned(number);
                let number = number.try_into();
                number.map(GidType).map_err(|_| E::invalid_value(unexpected, &self))
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<GidType, E> {
                let number = || text.strip_prefix("unknown(")?.strip_suffix(')')?.parse().ok();
                match text {
                    "ib" => Ok(GidType::IB),
                    "roce_v1" => Ok(GidType::ROCE_V1),
                    "roce_v2" => Ok(GidType::ROCE_V2),
                    "unknown" => Ok(GidType::UNNAMED),
                    _ => number().map(GidType).ok_or_else(|| crate::form::misplaced(text)),
                }
            }
        }

        from.deserialize_any(WordOrNumber)
    }
}

/// One valid entry of a GID table.
///
/// A value of this crate's own, in the order of ports and indices. The kernel's structure is
/// [`uapi::device::GidEntry`](crate::uapi::device::GidEntry); `From` leads from one to the other.
///
/// ```
/// use uverbs::{Gid, GidEntry, GidType};
///
/// let gid = Gid::from(std::net::Ipv4Addr::new(192, 0, 2, 1));
/// let entry = GidEntry::new(1, 3, gid).with_type(GidType::ROCE_V2);
/// assert_eq!((entry.port(), entry.index(), entry.netdev_ifindex()), (1, 3, None));
/// ```
#[doc(alias = "ibv_gid_entry")]
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    FromBytes,
    IntoBytes,
    KnownLayout,
    Immutable,
)]
// Any bytes are an entry, so that the kernel may write into a caller's slice: see `context::gid`.
#[repr(C)]
pub struct GidEntry {
    port: u32,
    index: u32,
    gid: [u8; 16],
    gid_type: u32,
    netdev_ifindex: u32,
}

impl GidEntry {
    /// The entry of a port's slot, of type [`GidType::IB`] and without a network interface. For readers of
    /// records and for tests.
    #[must_use]
    pub const fn new(port: u32, index: u32, gid: Gid) -> Self {
        Self { port, index, gid: gid.0, gid_type: GidType::IB.0, netdev_ifindex: 0 }
    }

    /// The same with this type.
    #[must_use]
    pub const fn with_type(self, gid_type: GidType) -> Self {
        Self { gid_type: gid_type.0, ..self }
    }

    /// The same with this network interface: see [`netdev_ifindex`](Self::netdev_ifindex).
    #[must_use]
    pub fn with_netdev_ifindex(self, ifindex: Option<NonZeroU32>) -> Self {
        Self { netdev_ifindex: ifindex.map_or(0, NonZeroU32::get), ..self }
    }

    /// The GID.
    #[must_use]
    pub const fn gid(&self) -> Gid {
        Gid(self.gid)
    }

    /// Index in the port's table, from 0.
    #[must_use]
    pub const fn index(&self) -> u32 {
        self.index
    }

    /// Port number: from 1, or 0 on an InfiniBand switch.
    #[must_use]
    pub const fn port(&self) -> u32 {
        self.port
    }

    /// The GID's type.
    #[doc(alias = "ibv_query_gid_type")]
    #[must_use]
    pub const fn gid_type(&self) -> GidType {
        GidType(self.gid_type)
    }

    /// Index of the network interface that the GID belongs to. The index is valid **in the interface's own
    /// network namespace**, which may be another than yours: [`Host::netdevs`](crate::Host::netdevs) finds
    /// out. `None` on InfiniBand, and for iWARP before Linux 6.5.
    #[doc(alias = "ndev_ifindex")]
    #[must_use]
    pub const fn netdev_ifindex(&self) -> Option<NonZeroU32> {
        NonZeroU32::new(self.netdev_ifindex)
    }
}

impl From<abi::GidEntry> for GidEntry {
    fn from(entry: abi::GidEntry) -> Self {
        let abi::GidEntry { gid, gid_index, port_num, gid_type, netdev_ifindex } = entry;
        Self { port: port_num, index: gid_index, gid, gid_type, netdev_ifindex }
    }
}

impl From<GidEntry> for abi::GidEntry {
    fn from(entry: GidEntry) -> Self {
        let GidEntry { port, index, gid, gid_type, netdev_ifindex } = entry;
        Self { gid, gid_index: index, port_num: port, gid_type, netdev_ifindex }
    }
}

/// Which source answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "lowercase")
)]
#[non_exhaustive]
pub enum Source {
    /// The uverbs ioctl.
    Ioctl,
    /// Sysfs.
    Sysfs,
}

impl fmt::Display for Source {
    /// `ioctl` or `sysfs`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Ioctl => "ioctl",
            Self::Sysfs => "sysfs",
        })
    }
}

/// A GID entry, its source, and what that source says of the network interface.
///
/// ```
/// use uverbs::gid::{GidRecord, Source};
/// use uverbs::{Gid, GidEntry};
///
/// let entry = GidEntry::new(1, 0, Gid::default());
/// assert_eq!(GidRecord::new(entry, Source::Ioctl), GidRecord::from(entry));
/// let by_sysfs = GidRecord::new(entry, Source::Sysfs).with_sysfs_netdev(Some("eth0".into()));
/// assert!(by_sysfs.may_have_netdev());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GidRecord {
    /// The entry. From sysfs it has no interface index: there is only a name.
    pub entry: GidEntry,
    /// Who answered.
    pub source: Source,
    /// The interface's name in **its own** network namespace, as sysfs shows it. That need not be your
    /// namespace: [`Host::netdevs`](crate::Host::netdevs) finds out.
    pub sysfs_netdev: Option<String>,
    /// Whether there may be an interface although its name is not known: sysfs did not let the file be
    /// read, names none for a row of RoCE, or keeps the whole row back; or the name is one such as `-`, `?` or `#5`.
    pub netdev_is_unread: bool,
    /// Whether sysfs keeps the type back (`EINVAL` on a RoCE port), as the kernel of `MLNX_OFED` does with
    /// rows of other namespaces; or the tree is a copy or a part of a sysfs, in which the file is empty or `gid_attrs` is
    /// missing. The type then is [`GidType::UNNAMED`].
    pub type_is_unread: bool,
}

impl GidRecord {
    /// A record without an interface's name.
    #[must_use]
    pub const fn new(entry: GidEntry, source: Source) -> Self {
        Self { entry, source, sysfs_netdev: None, netdev_is_unread: false, type_is_unread: false }
    }

    /// The same with this name of an interface.
    #[must_use]
    pub fn with_sysfs_netdev(self, name: Option<String>) -> Self {
        Self { sysfs_netdev: name, ..self }
    }

    /// The same, and whether the name could not be read.
    #[must_use]
    pub fn with_netdev_unread(self, is_unread: bool) -> Self {
        Self { netdev_is_unread: is_unread, ..self }
    }

    /// The same, and whether sysfs does not show the type.
    #[must_use]
    pub fn with_type_unread(self, is_unread: bool) -> Self {
        Self { type_is_unread: is_unread, ..self }
    }

    /// Whether it has an interface, or may have one.
    #[must_use]
    pub fn may_have_netdev(&self) -> bool {
        self.entry.netdev_ifindex().is_some()
            || self.sysfs_netdev.is_some()
            || self.netdev_is_unread
    }
}

impl From<GidEntry> for GidRecord {
    /// An entry that the ioctl gave.
    fn from(entry: GidEntry) -> Self {
        Self::new(entry, Source::Ioctl)
    }
}

#[cfg(test)]
mod tests;
