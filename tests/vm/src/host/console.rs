//! What the kernel says on its console, and what of it means that it is not well.

/// Parts of lines that no healthy kernel prints.
const COMPLAINTS: &[&str] = &[
    "[ cut here ]",
    "] BUG: ",
    "kernel BUG at",
    "general protection fault",
    "hard LOCKUP",
    "Internal error:",
    "INFO: task ",
    "INFO: rcu",
    "invalid opcode:",
    "Kernel panic",
    "KASAN:",
    "Oops:",
    "refcount_t:",
    "self-detected stall",
    "soft lockup",
    "stack-protector:",
    "UBSAN:",
    "unable to handle",
    "WARNING: CPU",
];

/// The lines of a console's log that complain.
pub(crate) fn complaints(log: &str) -> Vec<String> {
    let complains = |line: &&str| COMPLAINTS.iter().any(|part| line.contains(part));
    log.lines().filter(complains).map(|line| line.trim_end().to_owned()).collect()
}

/// The last `count` lines of a log.
pub(crate) fn tail(log: &str, count: usize) -> String {
    let lines: Vec<&str> = log.lines().collect();
    let first = lines.len().saturating_sub(count);
    lines.get(first..).unwrap_or_default().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_oops_is_seen() {
        let log = "[    1.0] Linux version 6.1\r\n\
                   [    3.2] BUG: kernel NULL pointer dereference, address: 0\r\n\
                   [    3.2] Oops: 0002 [#1] PREEMPT SMP\r\n\
                   [  242.0] INFO: task rdma:99 blocked for more than 120 seconds.\r\n";
        assert_eq!(complaints(log).len(), 3);
    }

    #[test]
    fn ordinary_chatter_is_not() {
        let log = "rdma_rxe: loaded\nwatchdog: enabled\nx86/fpu: debug info: 1\nDEBUG: fine\n\
                   spectre: WARNING is not printed\n";
        assert_eq!(complaints(log), ["DEBUG: fine"; 0]);
    }

    #[test]
    fn tails() {
        assert_eq!(tail("a\nb\nc\n", 2), "b\nc");
        assert_eq!(tail("a", 9), "a");
    }
}
