//! How QEMU is started for each kind of machine that guests are. A line more is a machine more: its kernel is
//! one of [`kernels`](crate::kernels), its scenarios are in [`selection`](crate::selection).

use crate::machines::Machine;
use anyhow::{Context, Result};

/// A kind of machine.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Board {
    /// Its name in `src/packaging/machines`.
    machine: &'static str,
    /// Debian's package with its QEMU.
    pub(crate) package: &'static str,
    /// QEMU's program.
    pub(crate) program: &'static str,
    /// QEMU's name of it, and of its processor.
    pub(crate) model: &'static str,
    pub(crate) processor: &'static str,
    /// The last word of the name of Debian's kernel package.
    pub(crate) kernel: &'static str,
    /// The kernel's name of the first serial port, which is the console, and of the second, for reports.
    pub(crate) serial: [&'static str; 2],
}

const ALL: [Board; 2] = [
    Board {
        machine: "x86_64",
        package: "qemu-system-x86",
        program: "qemu-system-x86_64",
        model: "q35",
        processor: "max",
        kernel: "amd64",
        serial: ["ttyS0", "ttyS1"],
    },
    Board {
        machine: "aarch64",
        package: "qemu-system-arm",
        program: "qemu-system-aarch64",
        model: "virt,gic-version=3",
        processor: "neoverse-n1",
        kernel: "arm64",
        serial: ["ttyAMA0", "ttyAMA1"],
    },
];

/// That of a machine.
///
/// # Errors
/// No kernel is booted on such a machine.
pub(crate) fn of(machine: Machine) -> Result<&'static Board> {
    let board = ALL.iter().find(|board| board.machine == machine.name);
    board.with_context(|| format!("no kernel is booted on {}", machine.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels;

    #[test]
    fn each_is_a_machine_with_a_kernel() {
        for board in &ALL {
            let machine = Machine::named(board.machine).unwrap();
            assert_eq!(of(machine).unwrap(), board);
            assert!(kernels::all().any(|series| series.machine == board.machine), "{board:?}");
        }
        for series in kernels::all() {
            of(Machine::named(series.machine).unwrap()).unwrap();
        }
        assert!(of(Machine::named("armv7").unwrap()).is_err());
    }
}
