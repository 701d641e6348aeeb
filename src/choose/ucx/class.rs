//! The classes of rows that UCX prefers one to the other.

use core::fmt;

use super::release::Release;
use crate::choose::address::{Family, is_link_local};
use crate::choose::port::Row;
use crate::gid::GidType;

/// A class of rows. The lesser class is preferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Class {
    /// RoCE v2, IPv4.
    V2Ipv4,
    /// RoCE v2, IPv6; without link-local addresses since 1.21.
    V2Ipv6,
    /// RoCE v2, link-local.
    V2LinkLocal,
    /// RoCE v1, IPv4.
    V1Ipv4,
    /// RoCE v1, IPv6; without link-local addresses since 1.21.
    V1Ipv6,
    /// RoCE v1, link-local.
    V1LinkLocal,
}

impl Class {
    pub(super) fn of(row: &Row<'_>, release: Release) -> Option<Self> {
        // A type that cannot be read counts as version 1; unknown text is an error.
        let is_v2 = match row.gid_type {
            _ if row.type_is_hidden => false,
            GidType::ROCE_V2 => true,
            GidType::IB | GidType::ROCE_V1 => false,
            _ => return None,
        };
        let is_apart = release >= Release::V1_21 && is_link_local(row.gid);
        Some(match (is_v2, row.family()) {
            (true, Family::V4) => Self::V2Ipv4,
            (true, Family::V6) if is_apart => Self::V2LinkLocal,
            (true, Family::V6) => Self::V2Ipv6,
            (false, Family::V4) => Self::V1Ipv4,
            (false, Family::V6) if is_apart => Self::V1LinkLocal,
            (false, Family::V6) => Self::V1Ipv6,
        })
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V2Ipv4 => "RoCE v2 over IPv4",
            Self::V2Ipv6 => "RoCE v2 over IPv6",
            Self::V2LinkLocal => "RoCE v2, link-local",
            Self::V1Ipv4 => "RoCE v1, IPv4",
            Self::V1Ipv6 => "RoCE v1, IPv6",
            Self::V1LinkLocal => "RoCE v1, link-local",
        })
    }
}
