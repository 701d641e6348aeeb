//! Objects of a device: how many are in use, and who made them.

use core::fmt;

/// How many objects of a kind are in use on a device.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResourceUse {
    /// The kernel's name of the kind: `qp`, `cq`, `mr`, `pd`, `ctx`, `cm_id`, `srq` …
    pub kind: String,
    /// How many there are.
    pub used: u64,
}

impl ResourceUse {
    /// So many of a kind.
    #[must_use]
    pub fn new(kind: impl Into<String>, used: u64) -> Self {
        Self { kind: kind.into(), used }
    }
}

/// Who made objects of a device.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Owner {
    /// A process, by its number in the reader's PID namespace.
    Process(u32),
    /// A part of the kernel, such as `ib_core`.
    Kernel(String),
}

impl Owner {
    /// The number of the process; `None` if it is none.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        if let Self::Process(pid) = self { Some(*pid) } else { None }
    }

    /// The part of the kernel; `None` if it is a process.
    #[must_use]
    pub fn part(&self) -> Option<&str> {
        if let Self::Kernel(name) = self { Some(name) } else { None }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process(pid) => write!(f, "pid {pid}"),
            Self::Kernel(name) => write!(f, "kernel: {name}"),
        }
    }
}

/// How many objects of a kind an owner has on a device.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OwnedResources {
    /// Who made them; `None` if the kernel does not say, which it does not of a process that has ended, and of
    /// one in a PID namespace that the reader does not see.
    pub owner: Option<Owner>,
    /// The kernel's name of the kind: `ctx`, `pd`, `cq`, `mr`, `srq` or `cm_id`.
    pub kind: String,
    /// How many there are.
    pub count: u64,
}
