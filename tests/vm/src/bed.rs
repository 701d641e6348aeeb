//! The hardware of a machine. No single machine suits every scenario.

use std::fmt;
use std::str::FromStr;

use anyhow::{Context, Result};

/// The PCI addresses of the emulated mlx5 functions.
pub const FUNCTIONS: [&str; 2] = ["0000:00:01.0", "0000:00:02.0"];

/// The PCI address of the serial port through which the guest gives its orders to the functions.
pub const CONTROL: &str = "0000:00:10.0";

/// The PCI address of the serial port that is the terminal of a person at the shell.
pub const TERMINAL: &str = "0000:00:11.0";

/// The kinds of machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bed {
    /// No hardware; soft RoCE and other software devices of the kernel.
    Soft,
    /// Two emulated mlx5 functions. No driver is bound to them at first.
    Mlx5,
    /// No hardware, and one processor whose clock counts instructions: a nanosecond is one.
    Counted,
}

impl Bed {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Soft, Self::Mlx5, Self::Counted];
}

impl fmt::Display for Bed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Soft => "soft",
            Self::Mlx5 => "mlx5",
            Self::Counted => "counted",
        })
    }
}

impl FromStr for Bed {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let known = Self::ALL.into_iter().find(|bed| bed.to_string() == text);
        known.with_context(|| format!("unknown bed {text:?}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_again() {
        for bed in Bed::ALL {
            assert_eq!(bed.to_string().parse::<Bed>().unwrap(), bed);
        }
        assert!("".parse::<Bed>().is_err());
    }
}
