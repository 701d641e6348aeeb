//! The variables of NCCL and NVSHMEM that the choice depends on.

use std::net::IpAddr;

use super::devices::DeviceList;
use super::numbers::{atoi, int, number};
use super::release::{Implementation, Release};
use crate::choose::Variables;
use crate::choose::address::{Family, alike, parse_address};
use crate::choose::port::Row;

/// The settings that the choice depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    pub(super) implementation: Implementation,
    pub(in crate::choose) is_disabled: bool,
    pub(in crate::choose) devices: DeviceList,
    pub(super) gid_index: i32,
    pub(super) version: i32,
    pub(super) family: Family,
    pub(super) range: Range,
    pub(super) flid_index: i32,
    /// The variable that makes it doubtful what the program does.
    pub(super) doubted_by: Option<&'static str>,
}

/// `NCCL_IB_ADDR_RANGE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Range {
    /// None, or one that NCCL ignores.
    All,
    /// The address and the number of bits. A negative number matches nothing.
    Network(IpAddr, i32),
    /// It has no slash.
    NoSlash,
}

impl Settings {
    /// Reads the settings. `variable` returns the value of a variable.
    ///
    /// ```
    /// use uverbs::choose::nccl::{Implementation, Release, Settings};
    /// let settings = Settings::new(Implementation::Nccl(Release::NEWEST), |name| {
    ///     (name == "NCCL_IB_ADDR_FAMILY").then_some("AF_INET6")
    /// });
    /// # let _ = settings;
    /// ```
    #[must_use]
    pub fn new<'v>(
        implementation: Implementation,
        variable: impl Fn(&str) -> Option<&'v str>,
    ) -> Self {
        Self::read(implementation, &variable)
    }

    /// The same, once for all kinds of `variable`.
    fn read(implementation: Implementation, variable: Variables<'_, '_>) -> Self {
        let release = implementation.release();
        let (names, devices) = match implementation {
            Implementation::Nccl(_) => {
                let list = variable("NCCL_IB_HCA").unwrap_or_default();
                (&NCCL, DeviceList::nccl(list, release))
            }
            Implementation::Nvshmem => {
                let list = variable(HCA_LIST).filter(|_| has_mapping(variable));
                (&NVSHMEM, DeviceList::nvshmem(list.unwrap_or_default()))
            }
        };
        let family = match variable(names.family) {
            Some("AF_INET6") => Family::V6,
            _ => Family::V4,
        };
        let default = if release == Release::V2_20 { 0 } else { -1 };
        Self {
            implementation,
            is_disabled: matches!(implementation, Implementation::Nccl(_))
                && number(variable("NCCL_IB_DISABLE"), 0) != 0,
            devices,
            gid_index: int(number(variable(names.gid_index), default)),
            version: int(number(variable(names.version), 2)),
            family,
            range: range(variable(names.range), family),
            flid_index: int(number(variable("NCCL_IB_ROUTABLE_FLID_GID_INDEX"), 1)),
            doubted_by: match implementation {
                Implementation::Nccl(release) => doubted_by(release, variable),
                Implementation::Nvshmem => nvshmem_doubted_by(variable),
            },
        }
    }

    /// The variable that makes it doubtful what the program does, if one is set. `NCCL_NET` names another transport
    /// than NCCL's own for InfiniBand and RoCE, `NCCL_NET_PLUGIN` a plug-in that may have one, and `NCCL_ENV_PLUGIN` a
    /// plug-in that may give NCCL other settings. NVSHMEM may use other ports by `NVSHMEM_HCA_LIST`, which only some
    /// releases heed without `NVSHMEM_ENABLE_NIC_PE_MAPPING`, and of which some keep no more than 16 entries; by
    /// `NVSHMEM_HCA_PE_MAPPING`, and by `NVSHMEM_HCA_PREFIX`.
    #[must_use]
    pub fn doubted_by(&self) -> Option<&'static str> {
        self.doubted_by
    }

    /// Whether it is known that NCCL uses neither InfiniBand nor RoCE.
    pub(super) fn is_surely_disabled(&self) -> bool {
        self.is_disabled && self.doubted_by != Some(ENV_PLUGIN)
    }

    /// Whether `NCCL_IB_DISABLE` is set, so that NCCL uses neither InfiniBand nor RoCE.
    #[must_use]
    pub fn is_disabled(&self) -> bool {
        self.is_disabled
    }

    /// Whose settings they are.
    pub(crate) fn implementation(&self) -> Implementation {
        self.implementation
    }

    /// The index that is set, if the program uses it.
    #[must_use]
    pub fn pinned(&self) -> Option<i64> {
        (self.gid_index >= 0 || self.implementation.release() == Release::V2_20)
            .then_some(self.gid_index.into())
    }
}

/// Since 2.28. It answers for all variables, those of files too.
const ENV_PLUGIN: &str = "NCCL_ENV_PLUGIN";

/// Plug-ins bring settings and transports of their own. The transport that NCCL brings is called `IB`.
fn doubted_by(release: Release, variable: Variables<'_, '_>) -> Option<&'static str> {
    let is_other = |name: &str, own: &str| {
        variable(name).is_some_and(|value| !value.eq_ignore_ascii_case(own))
    };
    let is_given = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
    if release >= Release::V2_26 && is_given(ENV_PLUGIN) && is_other(ENV_PLUGIN, "none") {
        return Some(ENV_PLUGIN);
    }
    // Of no name there is no transport.
    if is_other("NCCL_NET", "IB") {
        return Some("NCCL_NET");
    }
    // A transport of that name may still be the plug-in's.
    let is_plugin = is_given("NCCL_NET_PLUGIN") && is_other("NCCL_NET_PLUGIN", "none");
    is_plugin.then_some("NCCL_NET_PLUGIN")
}

const HCA_LIST: &str = "NVSHMEM_HCA_LIST";
const PE_MAPPING: &str = "NVSHMEM_HCA_PE_MAPPING";

/// Whether NVSHMEM heeds its lists of devices in each release. It is on if it is set to anything but a no.
fn has_mapping(variable: Variables<'_, '_>) -> bool {
    variable("NVSHMEM_ENABLE_NIC_PE_MAPPING")
        .is_some_and(|value| !value.starts_with(['0', 'N', 'n', 'F', 'f']))
}

fn nvshmem_doubted_by(variable: Variables<'_, '_>) -> Option<&'static str> {
    let given = |name: &str| variable(name).filter(|value| !value.is_empty());
    let is_list_clear = |list| has_mapping(variable) && !DeviceList::nvshmem(list).is_cut;
    if given(HCA_LIST).is_some_and(|list| !is_list_clear(list)) {
        return Some(HCA_LIST);
    }
    let prefix = "NVSHMEM_HCA_PREFIX";
    if given(prefix).is_some_and(|own| own != "mlx5") {
        return Some(prefix);
    }
    // It is ignored beside a list.
    let is_heeded = given(PE_MAPPING).is_some() && given(HCA_LIST).is_none();
    is_heeded.then_some(PE_MAPPING)
}

/// Names of the variables.
struct Names {
    gid_index: &'static str,
    version: &'static str,
    family: &'static str,
    range: &'static str,
}

const NCCL: Names = Names {
    gid_index: "NCCL_IB_GID_INDEX",
    version: "NCCL_IB_ROCE_VERSION_NUM",
    family: "NCCL_IB_ADDR_FAMILY",
    range: "NCCL_IB_ADDR_RANGE",
};

const NVSHMEM: Names = Names {
    gid_index: "NVSHMEM_IB_GID_INDEX",
    version: "NVSHMEM_IB_ROCE_VERSION_NUM",
    family: "NVSHMEM_IB_ADDR_FAMILY",
    range: "NVSHMEM_IB_ADDR_RANGE",
};

/// Reads `NCCL_IB_ADDR_RANGE`.
fn range(value: Option<&str>, family: Family) -> Range {
    /// How much of it NCCL copies.
    const LIMIT: usize = 127;
    let Some(value) = value.filter(|value| !value.is_empty()) else { return Range::All };
    let end = (0..=LIMIT).rev().find(|end| value.is_char_boundary(*end));
    let (value, _) = value.split_at(end.unwrap_or_default());
    let Some((address, bits)) = value.split_once('/') else { return Range::NoSlash };
    let Some(address) = parse_address(address, family) else { return Range::All };
    let length = if address.is_ipv4() { 32 } else { 128 };
    match atoi(bits) {
        bits if bits <= length => Range::Network(address, bits),
        _ => Range::All,
    }
}

impl Range {
    pub(super) fn holds(&self, row: Option<&Row<'_>>) -> bool {
        let Self::Network(address, bits) = self else { return true };
        let Ok(bits) = u8::try_from(*bits) else { return false };
        let gid = row.map_or([0; 16], |row| row.gid.to_bytes());
        match address {
            IpAddr::V4(own) => {
                let [.., a, b, c, d] = gid;
                alike(&own.octets(), &[a, b, c, d], bits)
            }
            IpAddr::V6(own) => alike(&own.octets(), &gid, bits),
        }
    }
}
