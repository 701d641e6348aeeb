//! Filters of system calls, for a process and what it starts.

use anyhow::Result;

/// What becomes of the calls.
#[derive(Debug, Clone, Copy)]
pub(super) enum Fate {
    /// They fail with this errno.
    Fail(u32),
    /// They stop for the tracer.
    Stop,
}

/// Filters these system calls of this process, for good.
#[cfg(target_endian = "little")]
pub(super) fn apply(calls: &[i64], fate: Fate) -> Result<()> {
    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};

    let rules = calls.iter().map(|call| (*call, Vec::new())).collect();
    let filtered = match fate {
        Fate::Fail(errno) => SeccompAction::Errno(errno),
        Fate::Stop => SeccompAction::Trace(0),
    };
    let machine = std::env::consts::ARCH.try_into()?;
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, filtered, machine)?;
    let program: BpfProgram = filter.try_into()?;
    Ok(apply_filter(&program)?)
}

/// seccompiler knows no machine of the other byte order.
#[cfg(target_endian = "big")]
pub(super) fn apply(calls: &[i64], fate: Fate) -> Result<()> {
    let fate = match fate {
        Fate::Fail(errno) => format!("fail with errno {errno}"),
        Fate::Stop => "stop".to_owned(),
    };
    let machine = std::env::consts::ARCH;
    anyhow::bail!("no filter is made for {machine} by which the calls {calls:?} {fate}")
}
