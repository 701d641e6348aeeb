//! What is known of a device's uverbs node.

use super::{DeviceRecord, Problem};

/// What a program with libibverbs gets of a device's uverbs node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum NodeState {
    /// It could be opened.
    Usable,
    /// The device has none: `ib_uverbs` is not loaded, or the driver offers none.
    None,
    /// It is not where it should be (`ENOENT`).
    Missing,
    /// It may not be opened for reading and writing (`EACCES`), by this user or by anybody.
    Forbidden,
    /// Opening it is not permitted (`EPERM`), as by the rules of a container.
    NotPermitted,
    /// It could not be opened for another reason.
    Unusable,
}

impl NodeState {
    /// It in words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Usable => "usable",
            Self::None => "none",
            Self::Missing => "missing",
            Self::Forbidden => "forbidden",
            Self::NotPermitted => "not permitted",
            Self::Unusable => "not usable",
        }
    }
}

impl DeviceRecord {
    /// What is known of its node; `None` if that was not looked at, or could not be found out, as by a process that
    /// may open no more files.
    ///
    /// That the kernel or the driver does not answer uverbs's own request is no fault of the node: programs of
    /// rdma-core ask in another way.
    #[must_use]
    pub fn node_state(&self) -> Option<NodeState> {
        const EPERM: i32 = 1;
        const ENOENT: i32 = 2;
        const EACCES: i32 = 13;
        const EINVAL: i32 = 22;
        const ENOTTY: i32 = 25;
        const EPROTONOSUPPORT: i32 = 93;
        if self.device.node_is_unread {
            return None;
        }
        if self.device.node.is_none() {
            return Some(NodeState::None);
        }
        let Some(access) = &self.access else {
            return self.node_is_missing.then_some(NodeState::Missing);
        };
        if access.as_ref().is_err_and(Problem::is_of_process) {
            return None;
        }
        Some(match access.as_ref().map_err(|problem| problem.errno) {
            Ok(()) | Err(EINVAL | ENOTTY | EPROTONOSUPPORT) if self.node_is_read_only => {
                NodeState::Forbidden
            }
            Ok(()) | Err(ENOTTY | EPROTONOSUPPORT) => NodeState::Usable,
            // Of all that makes uverbs read sysfs only a driver that it does not know is EINVAL.
            Err(EINVAL) if self.fallback().is_some() => NodeState::Usable,
            Err(ENOENT) => NodeState::Missing,
            Err(EACCES) => NodeState::Forbidden,
            Err(EPERM) => NodeState::NotPermitted,
            Err(_) => NodeState::Unusable,
        })
    }

    /// Whether a program with libibverbs finds the device, as far as is known: libibverbs leaves out those without a node.
    #[must_use]
    pub fn is_found(&self) -> bool {
        !matches!(self.node_state(), Some(NodeState::None | NodeState::Missing))
    }
}
