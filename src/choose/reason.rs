//! Why: for each row, and for a port as a whole. The texts are for operators.

use core::fmt;

use super::{Family, ucx};
use crate::port::{LinkLayer, PortState};

/// Why a row is taken, or is not.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// Recommended.
    Recommended,
    /// Taken: nobody looked, its index is set.
    Pinned,
    /// Taken: the lowest index that fits.
    LowestFit,
    /// Taken: its type is not known, and the version that NCCL has for such a row is wanted.
    Untyped,
    /// Taken: the search begins at index 0, and that fits; ranges are not looked at then.
    StartFits,
    /// Taken: the search begins at index 0, and nothing fits.
    Start,
    /// Taken: of the wanted family, though not of the wanted version, which no row has.
    FamilyAlone(Family),
    /// Taken: the default index.
    DefaultIndex,
    /// Taken: a routable GID of InfiniBand.
    Routable,
    /// Taken: the first row of the best class that there is.
    FirstOf(ucx::Class),
    /// Taken: index 0, as no row is fit.
    LastResort,
    /// Nobody looked at it.
    Unlooked,
    /// As good as the one that is taken, at a higher index.
    LowerFits(u32),
    /// Its family is not the wanted one.
    OtherFamily(Family),
    /// Its address is not in the range that is set.
    OutOfRange,
    /// Its address is link-local, or it is empty.
    NotValid,
    /// Its RoCE version is not the wanted one.
    OtherVersion(i32),
    /// Sysfs does not tell its type.
    TypeHidden,
    /// Another class of rows goes before.
    Below(ucx::Class),
    /// Bytes 8 to 15 are zero.
    NoLowHalf,
    /// No address handle can be made with it.
    NoAddressHandle,
    /// Its address is not in the subnets that are set.
    OutOfSubnets,
    /// It is RoCE v1, and the row at this index is v2.
    V1Below(u32),
    /// It is link-local, and the row at this index is not.
    LinkLocalBelow(u32),
    /// It is IPv6, and the row at this index IPv4.
    V6Below(u32),
    /// Its interface stands on the port's, which has a row at this index.
    UpperBelow(u32),
    /// Its interface is not shown to be here, that of the row at this index is.
    UnprovenBelow(u32),
    /// No interface of this network namespace has its address.
    Foreign,
    /// Its interface is down.
    InterfaceDown(String),
    /// The interface has not got the address any more.
    AddressGone(String),
    /// A loopback address.
    Loopback,
    /// Its index does not fit a byte.
    BeyondByte,
    /// It has not the type, family, interface or network that was asked for.
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
            Self::Untyped => f.write_str(
                "taken: its type is not known, which counts as version -1, as is wanted",
            ),
            Self::StartFits => {
                f.write_str("taken: index 0 fits, and a range is not held against it")
            }
            Self::Start => f.write_str("taken: no row fits, and the search began at index 0"),
            Self::FamilyAlone(family) => {
                write!(f, "taken: {family}, though no row has the wanted RoCE version")
            }
            Self::DefaultIndex => f.write_str("taken: index 0 is the default"),
            Self::Routable => f.write_str("taken: a routable GID (FLID)"),
            Self::FirstOf(class) => write!(f, "taken: the first row of {class}"),
            Self::LastResort => f.write_str("taken: no row is fit, and index 0 is the last resort"),
            Self::Unlooked => f.write_str("not looked at"),
            Self::LowerFits(index) => write!(f, "as good, but index {index} is lower"),
            Self::OtherFamily(family) => write!(f, "not {family}, which is wanted"),
            Self::OutOfRange => f.write_str("its address is not in the wanted range"),
            Self::NotValid => f.write_str("link-local, which is passed over"),
            Self::OtherVersion(version @ 1..=2) => {
                write!(f, "not RoCE v{version}, which is wanted")
            }
            Self::OtherVersion(version) => {
                write!(f, "RoCE version {version} is wanted, which no row can have")
            }
            Self::TypeHidden => {
                f.write_str("sysfs does not tell its type: it is another network namespace's")
            }
            Self::Below(class) => write!(f, "{class} goes before"),
            Self::NoLowHalf => f.write_str("its lower half is zero"),
            Self::NoAddressHandle => {
                f.write_str("no address handle can be made: its interface is down, or not ours")
            }
            Self::OutOfSubnets => f.write_str("its address is not in the wanted subnets"),
            Self::V1Below(index) => write!(f, "RoCE v1; index {index} is v2"),
            Self::LinkLocalBelow(index) => {
                write!(f, "link-local, which ends at the next router; index {index} is not")
            }
            Self::V6Below(index) => {
                write!(f, "IPv6; index {index} is IPv4, which NCCL and UCX take first")
            }
            Self::UpperBelow(index) => {
                write!(
                    f,
                    "of an interface on top of the port's; index {index} is of the port's own"
                )
            }
            Self::UnprovenBelow(index) => {
                write!(f, "its interface is not shown to be ours; that of index {index} is")
            }
            Self::Foreign => f.write_str("no interface of this network namespace has its address"),
            Self::InterfaceDown(name) => write!(f, "its interface {name} is down"),
            Self::AddressGone(name) => write!(f, "its address is no longer on {name}"),
            Self::Loopback => f.write_str("a loopback address"),
            Self::BeyondByte => f.write_str("its index is above 255, which no program can use"),
            Self::Unwanted(what) => write!(f, "not of the {what} that was asked for"),
            Self::PortNotActive(state) => {
                write!(f, "would be recommended, but the port is {state}")
            }
        }
    }
}

/// Why a port has no choice to make.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Why {
    /// The program's RDMA is switched off.
    Disabled,
    /// The port is not active.
    NotActive(PortState),
    /// The program does not know this link layer.
    LinkLayer(LinkLayer),
    /// The program's list of devices leaves the port out.
    NotListed(&'static str),
    /// The table has no slot.
    NoTable,
    /// The table has slots, and none is in use.
    EmptyTable,
    /// UCX looks at this index first, and it is empty.
    EmptyFirst(u32),
    /// UCX looks at this index first, which the table has not got.
    OutsideFirst(u32),
    /// UCX looks at this index first, and the lower half of the GID is zero.
    NoLowHalf(u32),
    /// The type of this index cannot be read, which the program does not bear.
    UnreadableType(u32),
    /// Sysfs has no files that tell types, and two rows are to be compared.
    NoTypes,
    /// NCCL has room for 32 ports, and others come first.
    NoRoom,
    /// NCCL has room for 32 ports, and does not look at it within a device.
    Overrun,
    /// This variable's value is not understood.
    BadValue(&'static str),
    /// NCCL 2.21 and 2.22 crash on a range without a slash.
    RangeCrash,
    /// Two variables that exclude each other.
    IndexAndSubnets,
    /// No row is fit for use.
    NoRow,
    /// No row is fit, and the last slot of the table, whose error UCX reports, is empty.
    LastEmpty,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disabled => f.write_str("NCCL_IB_DISABLE is set"),
            Self::NotActive(state) => write!(f, "the port is {state}, not active"),
            Self::LinkLayer(layer) => write!(f, "link layer {layer}"),
            Self::NotListed(variable) => write!(f, "{variable} leaves it out"),
            Self::NoTable => f.write_str("the port has no GID table"),
            Self::EmptyTable => f.write_str("the GID table is empty"),
            Self::EmptyFirst(index) => write!(f, "index {index} is empty"),
            Self::OutsideFirst(index) => write!(f, "index {index} is outside the table"),
            Self::NoLowHalf(index) => write!(f, "the lower half of GID {index} is zero"),
            Self::UnreadableType(index) => {
                write!(f, "sysfs does not tell the type of index {index}, which ends the search")
            }
            Self::NoTypes => f.write_str("sysfs has no files of GID types, which ends the search"),
            Self::NoRoom => f.write_str("32 ports are used already, which is all it has room for"),
            Self::Overrun => f.write_str(
                "it has room for 32 ports, and writes past its end where a device goes beyond",
            ),
            Self::BadValue(variable) => write!(f, "the value of {variable} is not understood"),
            Self::RangeCrash => f.write_str("it crashes on an address range without a slash"),
            Self::IndexAndSubnets => {
                f.write_str("UCX_IB_GID_INDEX and UCX_IB_ROCE_SUBNETS exclude each other")
            }
            Self::NoRow => f.write_str("no row is fit"),
            Self::LastEmpty => f.write_str("no row is fit, and the last slot is empty"),
        }
    }
}

/// What speaks against a row that is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Caveat {
    /// It is link-local.
    LinkLocal,
    /// It is RoCE v1.
    V1,
    /// No interface of this network namespace has its address.
    Foreign,
    /// Its interface is not shown to be here.
    Unproven,
    /// Of interfaces nothing is known.
    Unknown,
    /// Its interface is down.
    Down,
    /// Its interface has not got the address any more.
    AddressGone,
    /// Its index does not fit a byte.
    BeyondByte,
}

impl fmt::Display for Caveat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::LinkLocal => "link-local: reaches only hosts on the same link",
            Self::V1 => "RoCE v1: reaches only hosts on the same link, by v1 themselves",
            Self::Foreign => "no interface of this network namespace has its address",
            Self::Unproven => "its interface is not shown to be in this network namespace",
            Self::Unknown => "whether its interface is in this network namespace is not known",
            Self::Down => "its interface is down",
            Self::AddressGone => "its address is no longer on the interface",
            Self::BeyondByte => "its index is above 255, which no program can use",
        })
    }
}
