//! Releases of NCCL, and NVSHMEM's copy.

use crate::inventory::SettingsReading;

/// Releases of NCCL that choose differently. Each covers all releases up to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Release {
    /// Up to 2.20: no choice, index 0.
    V2_20,
    /// 2.21: the walk over the table.
    V2_21,
    /// 2.22: routable GIDs of InfiniBand.
    V2_22,
    /// 2.23 to 2.25: no crash on a range without a slash.
    V2_23,
    /// 2.26 to 2.29: it copes with types that cannot be read.
    V2_26,
    /// 2.30 to 2.30.4: other files of settings.
    V2_30,
    /// 2.30.7: `NCCL_IB_HCA` accepts rails and planes.
    V2_30_7,
}

impl Release {
    /// All, ascending, each with the first version that it covers. The oldest also covers all versions before it.
    pub const ALL: &'static [(Self, [u32; 3])] = &[
        (Self::V2_20, [2, 20, 0]),
        (Self::V2_21, [2, 21, 0]),
        (Self::V2_22, [2, 22, 0]),
        (Self::V2_23, [2, 23, 0]),
        (Self::V2_26, [2, 26, 0]),
        (Self::V2_30, [2, 30, 0]),
        (Self::V2_30_7, [2, 30, 7]),
    ];

    /// The newest known release.
    pub const NEWEST: Self = Self::V2_30_7;

    /// The release that covers a version: 2.18 is [`V2_20`](Self::V2_20).
    #[must_use]
    pub fn of(major: u32, minor: u32, patch: u32) -> Self {
        let is_reached = |(_, first): &&(Self, [u32; 3])| *first <= [major, minor, patch];
        Self::ALL.iter().rfind(is_reached).map_or(Self::V2_20, |(release, _)| *release)
    }
}

impl From<Release> for SettingsReading {
    /// How the release reads settings files.
    fn from(release: Release) -> Self {
        match release {
            Release::V2_20 | Release::V2_21 | Release::V2_22 => Self::V2_4,
            Release::V2_23 | Release::V2_26 => Self::V2_23,
            Release::V2_30 | Release::V2_30_7 => Self::V2_30,
        }
    }
}

/// Whose copy of the code chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Implementation {
    /// NCCL.
    Nccl(Release),
    /// NVSHMEM.
    Nvshmem,
}

impl Implementation {
    pub(super) fn release(self) -> Release {
        match self {
            Self::Nccl(release) => release,
            // NVSHMEM's copy ignores a type that it cannot read.
            Self::Nvshmem => Release::V2_26,
        }
    }
}
