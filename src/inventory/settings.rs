//! The variables by which NCCL, NVSHMEM and UCX are told what GID to use, and where they are set.
//!
//! NCCL reads files of `NAME=VALUE` lines beside the environment, and never overwrites what is set:
//! so the environment counts before the user's file, and that before `/etc/nccl.conf`. Not known
//! here are values that a launcher sets, UCX's own files, and its variables for single transports.

use core::fmt;

/// The variables that are looked for. No others are read or recorded.
pub const NAMES: [&str; 21] = [
    "NCCL_IB_DISABLE",
    "NCCL_IB_HCA",
    "NCCL_IB_GID_INDEX",
    "NCCL_IB_ROCE_VERSION_NUM",
    "NCCL_IB_ADDR_FAMILY",
    "NCCL_IB_ADDR_RANGE",
    "NCCL_IB_ROUTABLE_FLID_GID_INDEX",
    "NCCL_NET_PLUGIN",
    "NVSHMEM_HCA_LIST",
    "NVSHMEM_ENABLE_NIC_PE_MAPPING",
    "NVSHMEM_IB_GID_INDEX",
    "NVSHMEM_IB_ROCE_VERSION_NUM",
    "NVSHMEM_IB_ADDR_FAMILY",
    "NVSHMEM_IB_ADDR_RANGE",
    "UCX_NET_DEVICES",
    "UCX_IB_GID_INDEX",
    "UCX_IB_ROCE_SUBNETS",
    "UCX_IB_ROCE_LOCAL_SUBNET",
    "UCX_IB_ROCE_SUBNET_PREFIX_LEN",
    "UCX_IB_ROCE_REACHABILITY_MODE",
    "UCX_IB_FLID_ROUTE",
];

/// A variable that is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Its name.
    pub name: String,
    /// Its value, to the letter.
    pub value: String,
    /// The file that sets it; `None` for the environment.
    pub file: Option<String>,
}

impl fmt::Display for Setting {
    /// `NCCL_IB_GID_INDEX=3`, and the file if there is one: ` (/etc/nccl.conf)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name, self.value)?;
        self.file.as_ref().map_or(Ok(()), |file| write!(f, " ({file})"))
    }
}

/// Reads a file of NCCL's: lines of `NAME=VALUE`, others and `#` comments left out. Of a name that
/// stands there twice the first counts. Only NCCL's own variables of [`NAMES`] are kept.
///
/// ```
/// let settings = uverbs::inventory::settings::parse("# pinned\nNCCL_IB_GID_INDEX=3\n", "/etc/nccl.conf");
/// assert_eq!(settings[0].to_string(), "NCCL_IB_GID_INDEX=3 (/etc/nccl.conf)");
/// ```
#[must_use]
pub fn parse(text: &str, file: &str) -> Vec<Setting> {
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once('='))
        .filter(|(name, _)| name.starts_with("NCCL_") && NAMES.contains(name))
        .map(|(name, value)| Setting {
            name: name.to_owned(),
            value: value.to_owned(),
            file: Some(file.to_owned()),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_file() {
        let text = "# comment\n\nNCCL_IB_HCA==mlx5_0\n#NCCL_IB_GID_INDEX=9\nNCCL_IB_GID_INDEX=3\n\
                    NCCL_IB_GID_INDEX=4\nNCCL_DEBUG=INFO\nUCX_IB_GID_INDEX=1\n NCCL_IB_HCA=x\nodd";
        let found: Vec<_> =
            parse(text, "f").into_iter().map(|setting| setting.to_string()).collect();
        let expected =
            ["NCCL_IB_HCA==mlx5_0 (f)", "NCCL_IB_GID_INDEX=3 (f)", "NCCL_IB_GID_INDEX=4 (f)"];
        assert_eq!(found, expected);
    }
}
