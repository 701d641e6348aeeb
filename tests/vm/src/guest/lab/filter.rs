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

/// Filters this system call of this process, for good: all of them, or those whose arguments at these places have
/// these values.
#[cfg(target_endian = "little")]
pub(super) fn apply(call: i64, arguments: &[(u8, u64)], fate: Fate) -> Result<()> {
    use seccompiler::{
        BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
        SeccompRule, apply_filter,
    };

    let condition = |(place, value): &(u8, u64)| {
        SeccompCondition::new(*place, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, *value)
    };
    let conditions = arguments.iter().map(condition).collect::<Result<Vec<_>, _>>()?;
    // Without a rule it is all of them.
    let rules =
        if conditions.is_empty() { Vec::new() } else { vec![SeccompRule::new(conditions)?] };
    let rules = [(call, rules)].into();
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
pub(super) fn apply(call: i64, arguments: &[(u8, u64)], fate: Fate) -> Result<()> {
    let fate = match fate {
        Fate::Fail(errno) => format!("fail with errno {errno}"),
        Fate::Stop => "stop".to_owned(),
    };
    let machine = std::env::consts::ARCH;
    anyhow::bail!(
        "no filter is made for {machine} by which the call {call} {arguments:?} would {fate}"
    )
}
