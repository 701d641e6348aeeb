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
    /// How many it has.
    pub(crate) processors: u8,
    /// The last word of the name of Debian's kernel package.
    pub(crate) kernel: &'static str,
    /// The kernel's name of the first port, which is the console, and of the second, for reports.
    pub(crate) ports: [&'static str; 2],
    /// QEMU's devices that have the second port, each with its options. Without any it is a serial port, as the
    /// first is.
    pub(crate) reports: &'static [&'static str],
    /// Further arguments for QEMU.
    pub(crate) more: &'static [&'static str],
    /// How far time limits are stretched on it.
    pub(crate) patience: u32,
    /// Whether QEMU emulates it more slowly than the others.
    pub(crate) is_slow: bool,
    /// The machine of 32 bits whose programs its kernel runs.
    pub(crate) of_32_bits: Option<&'static str>,
    /// Why it has no mlx5 functions, if so.
    pub(crate) no_mlx5: Option<&'static str>,
}

const ALL: [Board; 5] = [
    Board {
        machine: "x86_64",
        package: "qemu-system-x86",
        program: "qemu-system-x86_64",
        model: "q35",
        // Linux copies and clears memory in the way that such features name: byte by byte, and each is emulated. The
        // fifth level of page tables is one more to walk. Without them QEMU takes a fifth less time.
        processor: "max,-erms,-fsrm,-la57",
        processors: 2,
        kernel: "amd64",
        ports: ["ttyS0", "ttyS1"],
        reports: &[],
        more: &[],
        patience: 1,
        is_slow: false,
        of_32_bits: Some("i686"),
        no_mlx5: None,
    },
    Board {
        machine: "aarch64",
        package: "qemu-system-arm",
        program: "qemu-system-aarch64",
        model: "virt,gic-version=3",
        // One that runs programs of 32 bits, too, and whose pointers are not signed, which takes long to emulate.
        processor: "neoverse-n1",
        processors: 2,
        kernel: "arm64",
        ports: ["ttyAMA0", "ttyAMA1"],
        reports: &[],
        more: &[],
        patience: 3,
        is_slow: false,
        of_32_bits: Some("armv7"),
        no_mlx5: None,
    },
    Board {
        machine: "s390x",
        package: "qemu-system-s390x",
        program: "qemu-system-s390x",
        model: "s390-ccw-virtio",
        processor: "max",
        // Whatever one unmaps, QEMU stops the others for it, many times for each program that starts.
        processors: 1,
        kernel: "s390x",
        ports: ["ttysclp0", "hvc0"],
        reports: &["virtio-serial-ccw", "virtconsole,chardev=report"],
        more: &[],
        patience: 3,
        is_slow: true,
        of_32_bits: None,
        no_mlx5: Some(
            "the orders to the functions come through a serial card, for which s390x has no I/O ports",
        ),
    },
    Board {
        machine: "ppc64le",
        package: "qemu-system-ppc",
        program: "qemu-system-ppc64",
        model: "pseries",
        processor: "power9",
        processors: 2,
        kernel: "powerpc64le",
        ports: ["hvc0", "hvc1"],
        reports: &[],
        // It does not take the size from the memory.
        more: &["-m", "1G"],
        patience: 3,
        is_slow: true,
        of_32_bits: None,
        no_mlx5: Some("mlx5 functions were not tried on ppc64le"),
    },
    Board {
        machine: "riscv64",
        package: "qemu-system-riscv",
        program: "qemu-system-riscv64",
        model: "virt",
        processor: "rv64",
        processors: 2,
        kernel: "riscv64",
        ports: ["ttyS0", "ttyS1"],
        reports: &["pci-serial,chardev=report"],
        more: &[],
        patience: 3,
        is_slow: true,
        of_32_bits: None,
        no_mlx5: Some("mlx5 functions were not tried on riscv64"),
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
            if let Some(name) = board.of_32_bits {
                assert!(of(Machine::named(name).unwrap()).is_err());
            }
        }
        for series in kernels::all() {
            of(Machine::named(series.machine).unwrap()).unwrap();
        }
        assert!(of(Machine::named("armv7").unwrap()).is_err());
    }
}
