//! The reasons for each row and for a whole port. Operators read the texts.

use core::fmt;

use super::address::Family;
use super::ucx::class::Class;
use crate::netdev::Unfit;
use crate::port::{LinkLayer, PortState};

const WITHOUT_ADDRESS: &str =
    "its interface is in another network namespace, or does not have the address";

/// Why a row is taken or refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// Recommended.
    Recommended,
    /// Taken: a variable sets its index; the row was not looked at.
    Pinned,
    /// Taken: the lowest index that fits.
    LowestFit,
    /// Taken: its type is unknown. NCCL gives such a row a version, and that version is wanted.
    Untyped,
    /// Taken: the search starts at index 0, which fits. The range is not checked for index 0.
    StartFits,
    /// Taken: the search starts at index 0, and no row fits.
    Start,
    /// Taken: it has the wanted family. No row has the wanted version.
    FamilyAlone(Family),
    /// Taken: the default index.
    DefaultIndex,
    /// Taken: a routable GID of InfiniBand.
    Routable,
    /// Taken: the first row of the best class in the table.
    FirstOf(Class),
    /// Taken: index 0, because no row is usable.
    LastResort,
    /// It was not looked at.
    Unlooked,
    /// It is as good as the row that is taken, but has a higher index.
    LowerFits(u32),
    /// It does not have the wanted family.
    OtherFamily(Family),
    /// Its address is outside the range that is set.
    OutOfRange,
    /// Its address is link-local, or it is empty.
    NotValid,
    /// It does not have the wanted RoCE version.
    OtherVersion(i32),
    /// Sysfs does not give its type.
    TypeHidden,
    /// A better class of rows exists.
    Below(Class),
    /// Bytes 8 to 15 are zero.
    NoLowHalf,
    /// No address handle can be made with it.
    NoAddressHandle,
    /// Its address is outside the subnets that are set.
    OutOfSubnets,
    /// It is RoCE v1, and the row at this index is v2.
    V1Below(u32),
    /// It is link-local, and the row at this index is not.
    LinkLocalBelow(u32),
    /// It is IPv6, and the row at this index is IPv4.
    V6Below(u32),
    /// Its interface is on top of the port's own, and the row at this index belongs to the port's own.
    UpperBelow(u32),
    /// Its interface is not proven to be in this network namespace; that of the row at this index is.
    UnprovenBelow(u32),
    /// Less is known of its interface than of that of the row at this index.
    LessKnownBelow(u32),
    /// It could not be read which interface is the port's own: that of the row at this index, which is lower, or its.
    PortUnreadBelow(u32),
    /// The row at this index may be what was asked for, and would then be better.
    PerhapsBelow(u32),
    /// No interface of this network namespace can be its own.
    Foreign,
    /// No interface of this network namespace that can be its own has its address.
    WithoutAddress,
    /// Its type cannot be read, and matters.
    TypeUnread,
    /// It is not known whether its interface is the one that was asked for.
    InterfaceUnread,
    /// Its interface is down, or has no carrier.
    InterfaceDown(String),
    /// The interface no longer has the address.
    AddressGone(String),
    /// No program can use its address.
    Unfit(Unfit),
    /// Its interface is in another network namespace; or it is this one, which is down, or has no carrier. The name is
    /// missing if there are several.
    DownOrElsewhere(Option<String>),
    /// Its interface is in another network namespace, or no program can use its address.
    UnfitOrElsewhere(Unfit),
    /// Its type is none that this release of uverbs knows.
    TypeUnknown,
    /// A loopback address.
    Loopback,
    /// No address that a host can have: multicast, broadcast or unspecified.
    NotUnicast,
    /// Its index does not fit in a byte.
    BeyondByte,
    /// It does not have the type, family, interface or network that was asked for.
    Unwanted(&'static str),
    /// It would be recommended if the port were active.
    PortNotActive(PortState),
}

impl Reason {
    /// Whether it says that the row is taken.
    #[must_use]
    pub fn is_taken(&self) -> bool {
        matches!(
            self,
            Self::Recommended
                | Self::Pinned
                | Self::LowestFit
                | Self::Untyped
                | Self::StartFits
                | Self::Start
                | Self::FamilyAlone(_)
                | Self::DefaultIndex
                | Self::Routable
                | Self::FirstOf(_)
                | Self::LastResort
        )
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Recommended => f.write_str("recommended"),
            Self::Pinned => f.write_str("taken: this index is set, whatever it holds"),
            Self::LowestFit => f.write_str("taken: the lowest index that fits"),
            Self::Untyped => {
                f.write_str("taken: its type is unknown and counts as version -1, which is wanted")
            }
            Self::StartFits => {
                f.write_str("taken: index 0 fits, and its address is not checked against the range")
            }
            Self::Start => f.write_str("taken: no row fits, and the search starts at index 0"),
            Self::FamilyAlone(family) => {
                write!(f, "taken: {family}, though no row has the wanted RoCE version")
            }
            Self::DefaultIndex => f.write_str("taken: index 0 is the default"),
            Self::Routable => f.write_str("taken: a routable GID (FLID)"),
            Self::FirstOf(class) => write!(f, "taken: the first row of {class}"),
            Self::LastResort => {
                f.write_str("taken: no row is usable, and index 0 is the last resort")
            }
            Self::Unlooked => f.write_str("not looked at"),
            Self::LowerFits(index) => write!(f, "equally good, but index {index} is lower"),
            Self::OtherFamily(family) => write!(f, "not {family}, which is wanted"),
            Self::OutOfRange => f.write_str("its address is not in the wanted range"),
            Self::NotValid => f.write_str("link-local, and therefore skipped"),
            Self::OtherVersion(version @ 1..=2) => {
                write!(f, "not RoCE v{version}, which is wanted")
            }
            Self::OtherVersion(version) => {
                write!(f, "RoCE version {version} is wanted, but no row can have it")
            }
            Self::TypeHidden => f.write_str(
                "sysfs does not give its type: it may belong to another network namespace",
            ),
            Self::Below(class) => write!(f, "{class} is preferred"),
            Self::NoLowHalf => f.write_str("its lower half is zero"),
            Self::NoAddressHandle => f.write_str(
                "the kernel makes no address handle: its interface is down or elsewhere, or nobody is reached by its address",
            ),
            Self::OutOfSubnets => f.write_str("its address is not in the wanted subnets"),
            Self::V1Below(index) => write!(f, "RoCE v1; index {index} is v2"),
            Self::LinkLocalBelow(index) => {
                write!(f, "link-local, which is not routed; index {index} is not link-local")
            }
            Self::V6Below(index) => {
                write!(f, "IPv6; index {index} is IPv4, which NCCL and UCX prefer")
            }
            Self::UpperBelow(index) => {
                write!(
                    f,
                    "its interface is on top of the port's own; index {index} belongs to the port's own"
                )
            }
            Self::UnprovenBelow(index) => {
                write!(
                    f,
                    "its interface is not proven to be in this namespace; that of index {index} is"
                )
            }
            Self::LessKnownBelow(index) => {
                write!(f, "less is known of its interface than of that of index {index}")
            }
            Self::PortUnreadBelow(index) => write!(
                f,
                "perhaps better: it is not known which interface is the port's own; index {index} is lower"
            ),
            Self::PerhapsBelow(index) => {
                write!(f, "index {index} may be what was asked for, and would then be better")
            }
            Self::Foreign => f.write_str("its interface is not in this network namespace"),
            Self::WithoutAddress => f.write_str(WITHOUT_ADDRESS),
            Self::TypeUnread => f.write_str("its type cannot be read"),
            Self::InterfaceUnread => {
                f.write_str("it is not known whether its interface is the one that was asked for")
            }
            Self::InterfaceDown(name) => {
                write!(f, "its interface {name} is down, or has no carrier")
            }
            Self::AddressGone(name) => write!(f, "its address is no longer on {name}"),
            Self::Unfit(why) => why.fmt(f),
            Self::DownOrElsewhere(Some(name)) => write!(
                f,
                "its interface is in another network namespace, or it is {name}, which is down, or has no carrier"
            ),
            Self::DownOrElsewhere(None) => f.write_str(
                "its interface is in another network namespace, or is down, or has no carrier",
            ),
            Self::UnfitOrElsewhere(why) => {
                write!(f, "its interface is in another network namespace, or {why}")
            }
            Self::TypeUnknown => f.write_str("its type is not known to this release of uverbs"),
            Self::Loopback => f.write_str("a loopback address"),
            Self::NotUnicast => f.write_str("no address that a host can have"),
            Self::BeyondByte => f.write_str("its index is above 255; no program can use it"),
            Self::Unwanted(what) => write!(f, "not the {what} that was asked for"),
            Self::PortNotActive(state) => {
                write!(f, "would be recommended, but the port is {state}")
            }
        }
    }
}

/// Why no row of a port is chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Why {
    /// The program's RDMA is switched off.
    Disabled,
    /// The port is not active.
    NotActive(PortState),
    /// The program does not know this link layer.
    LinkLayer(LinkLayer),
    /// NCCL and NVSHMEM ask for ports 1 to 255. A switch has port 0 only.
    PortNumber,
    /// UCX asks for the first two ports of a device, and of a switch for port 0. Before 1.10 it left out a device with
    /// more than two.
    BeyondSecond,
    /// The program's list of devices leaves the port out.
    NotListed(&'static str),
    /// The table has no slot.
    NoTable,
    /// No slot of the table is in use.
    EmptyTable,
    /// UCX looks at this index first, and it is empty.
    EmptyFirst(u32),
    /// UCX looks at this index first, and the table does not have it.
    OutsideFirst(u32),
    /// UCX looks at this index first, and the lower half of the GID is zero.
    NoLowHalf(u32),
    /// The type of this index cannot be read, and the program then fails.
    UnreadableType(u32),
    /// Sysfs has no files with GID types, so two rows cannot be compared.
    NoTypes,
    /// NCCL has room for 32 ports, and other ports fill it.
    NoRoom,
    /// NCCL has room for 32 ports, and does not check this between the ports of one device.
    Overrun,
    /// NCCL has no room for another port ([`Overrun`](Self::Overrun)), and then uses none.
    OtherPort,
    /// NVSHMEM has room for 32 ports, for 4 of each device, and for 48 devices. With more it fails, or writes past the end.
    BeyondRoom,
    /// This variable's value is not understood.
    BadValue(&'static str),
    /// This variable's list has more entries than UCX takes, which stops at it.
    TooLong(&'static str),
    /// NCCL 2.21 and 2.22 crash on a range without a slash.
    RangeCrash,
    /// Two variables that exclude each other.
    IndexAndSubnets,
    /// No row is usable.
    NoRow,
    /// Of the rows that are usable, or may be, none has what was asked for.
    Unwanted,
    /// No row is known to be usable, but the one at this index may be.
    NotKnown(u32),
    /// No row is usable, and the last slot of the table is empty. UCX reports that slot's error.
    LastEmpty,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disabled => f.write_str("NCCL_IB_DISABLE is set"),
            Self::NotActive(state) => write!(f, "the port is {state}, not active"),
            Self::LinkLayer(layer) => write!(f, "link layer {layer}"),
            Self::PortNumber => f.write_str("it asks for ports 1 to 255 only"),
            Self::BeyondSecond => {
                f.write_str("it asks for ports 1 and 2 only, and of a switch for port 0")
            }
            Self::NotListed(variable) => write!(f, "{variable} leaves it out"),
            Self::NoTable => f.write_str("the port has no GID table"),
            Self::EmptyTable => f.write_str("the GID table is empty"),
            Self::EmptyFirst(index) => write!(f, "index {index} is empty"),
            Self::OutsideFirst(index) => write!(f, "index {index} is outside the table"),
            Self::NoLowHalf(index) => write!(f, "the lower half of GID {index} is zero"),
            Self::UnreadableType(index) => {
                write!(f, "sysfs does not give the type of index {index}, which ends the search")
            }
            Self::NoTypes => f.write_str("sysfs has no GID type files, which ends the search"),
            Self::NoRoom => {
                f.write_str("32 other ports are already used, and it has room for no more")
            }
            Self::Overrun => f.write_str(
                "it has room for 32 ports, and writes past the end when one device exceeds it",
            ),
            Self::OtherPort => f.write_str("it fails at another port, and then uses none"),
            Self::BeyondRoom => f.write_str(
                "it has room for 48 devices, 32 ports and 4 ports of a device, and fails with more",
            ),
            Self::TooLong(variable) => {
                write!(f, "{variable} has more than 64 entries, at which it stops")
            }
            Self::BadValue(variable) => write!(f, "the value of {variable} is not understood"),
            Self::RangeCrash => f.write_str("it crashes on an address range without a slash"),
            Self::IndexAndSubnets => {
                f.write_str("UCX_IB_GID_INDEX and UCX_IB_ROCE_SUBNETS exclude each other")
            }
            Self::NoRow => f.write_str("no row is usable"),
            Self::Unwanted => f.write_str("no usable row is what was asked for"),
            Self::NotKnown(index) => {
                write!(f, "it is not known whether GID {index} is right")
            }
            Self::LastEmpty => f.write_str("no row is usable, and the last slot is empty"),
        }
    }
}

/// A reason against using a row that is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Caveat {
    /// It is link-local.
    LinkLocal,
    /// It is RoCE v1.
    V1,
    /// No interface of this network namespace can be its own.
    Foreign,
    /// No interface of this network namespace that can be its own has its address.
    WithoutAddress,
    /// Its type cannot be read.
    TypeUnread,
    /// Its interface is not proven to be in this network namespace.
    Unproven,
    /// Nothing is known about interfaces.
    Unknown,
    /// The row at this index may be better: its interface is less proven to be in this network namespace; its type or
    /// its interface cannot be read; or it could not be read which interface is the port's own.
    BetterUnknown(u32),
    /// It is of soft RoCE, and it could not be read whether its interface is the port's own. Above that, but for VLANs, nothing
    /// is heard.
    MayBeUnheard,
    /// Its interface is down, or has no carrier.
    Down,
    /// Its interface no longer has the address.
    AddressGone,
    /// No program can use its address.
    Unfit(Unfit),
    /// Its index does not fit in a byte.
    BeyondByte,
}

impl fmt::Display for Caveat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BetterUnknown(index) => {
                return write!(f, "GID {index} may be as good or better, but too little is known of it");
            }
            Self::Unfit(why) => return why.fmt(f),
            Self::LinkLocal => "link-local: reaches only hosts on the same link",
            Self::V1 => "RoCE v1: reaches only hosts on the same link that also use v1",
            Self::Foreign => "its interface is not in this network namespace",
            Self::WithoutAddress => WITHOUT_ADDRESS,
            Self::TypeUnread => "its type cannot be read",
            Self::Unproven => "its interface is not proven to be in this network namespace",
            Self::Unknown => "it is not known whether its interface is in this network namespace",
            Self::MayBeUnheard => {
                "soft RoCE takes only what arrives at its port's own interface, or at VLANs on that, where it has a socket, and it is not known whether it does here"
            }
            Self::Down => "its interface is down, or has no carrier",
            Self::AddressGone => "its address is no longer on the interface",
            Self::BeyondByte => "its index is above 255; no program can use it",
        })
    }
}
