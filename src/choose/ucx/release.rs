//! Releases of UCX.

/// Releases of UCX that choose differently. Each covers all releases up to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Release {
    /// 1.10 to 1.15.
    V1_15,
    /// 1.16 and 1.17: routable GIDs of InfiniBand.
    V1_16,
    /// 1.18 to 1.20: `UCX_IB_ROCE_SUBNETS`.
    V1_18,
    /// 1.21: link-local GIDs come after others; device names and `^` in `UCX_NET_DEVICES`.
    V1_21,
    /// 1.22: ranges in `UCX_NET_DEVICES`.
    V1_22,
}

impl Release {
    /// All, ascending, each with the first version that it covers. The oldest also covers those before it, from 1.10 on; older
    /// ones are not modelled.
    pub const ALL: &'static [(Self, [u32; 2])] = &[
        (Self::V1_15, [1, 15]),
        (Self::V1_16, [1, 16]),
        (Self::V1_18, [1, 18]),
        (Self::V1_21, [1, 21]),
        (Self::V1_22, [1, 22]),
    ];

    /// The newest known release.
    pub const NEWEST: Self = Self::V1_22;

    /// The release that covers a version: 1.13 is [`V1_15`](Self::V1_15).
    #[must_use]
    pub fn of(major: u32, minor: u32) -> Self {
        let is_reached = |(_, first): &&(Self, [u32; 2])| *first <= [major, minor];
        Self::ALL.iter().rfind(is_reached).map_or(Self::V1_15, |(release, _)| *release)
    }
}
