//! What the guest is to do: a file in the initramfs, one word a line.

use std::fmt;
use std::str::FromStr;

use crate::bed::Bed;
use crate::{escape, unescape};
use anyhow::{Context, Result, bail};

/// The file's path in the guest.
pub const PATH: &str = "/job";

/// One boot's work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Job {
    /// Run the scenarios that the host names, one at a time, until it names none.
    Scenarios,
    /// Set these devices up and run this command with its arguments.
    Try(Devices, Vec<String>),
    /// Set these devices up and run a shell on a terminal of this size.
    Shell(Devices, Size),
}

/// The size of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Lines.
    pub rows: u16,
    /// Characters in a line.
    pub columns: u16,
}

/// The RDMA devices that a tried command finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Devices {
    /// Two soft-RoCE devices.
    SoftRoce,
    /// An mlx5 device with one InfiniBand port.
    InfiniBand1,
    /// An mlx5 device with two InfiniBand ports.
    InfiniBand2,
    /// A RoCE mlx5 device; its interface is down.
    Roce,
    /// An mlx5 device that manages an e-switch, in switchdev mode.
    Switchdev,
    /// An mlx5 device on the embedded CPU of a smart NIC with two VFs, in switchdev mode.
    EmbeddedCpu,
}

impl Devices {
    /// All, each with its name.
    pub const ALL: [(Self, &str); 6] = [
        (Self::SoftRoce, "soft-roce"),
        (Self::InfiniBand1, "ib1"),
        (Self::InfiniBand2, "ib2"),
        (Self::Roce, "roce"),
        (Self::Switchdev, "switchdev"),
        (Self::EmbeddedCpu, "ecpf"),
    ];

    /// The kind of machine that can have them.
    #[must_use]
    pub fn bed(self) -> Bed {
        if self == Self::SoftRoce { Bed::Soft } else { Bed::Mlx5 }
    }
}

impl fmt::Display for Devices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::ALL.iter().find(|(devices, _)| devices == self);
        f.write_str(name.map_or("", |(_, name)| name))
    }
}

impl FromStr for Devices {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let known = Self::ALL.iter().find(|(_, name)| *name == text);
        known.map(|(devices, _)| *devices).with_context(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|(_, name)| *name).collect();
            format!("no devices {text:?}; there are {}", names.join(", "))
        })
    }
}

impl Job {
    /// The text of the file.
    #[must_use]
    pub fn to_text(&self) -> String {
        let (word, arguments) = match self {
            Self::Scenarios => ("scenarios".to_owned(), &[][..]),
            Self::Try(devices, command) => (format!("try {devices}"), &command[..]),
            Self::Shell(devices, size) => {
                (format!("shell {devices} {} {}", size.rows, size.columns), &[][..])
            }
        };
        let lines = arguments.iter().map(|argument| escape(argument.as_bytes()) + "\n");
        format!("{word}\n{}", lines.collect::<String>())
    }

    /// Reads what [`to_text`](Self::to_text) wrote.
    ///
    /// # Errors
    /// Where the text is no job.
    pub fn from_text(text: &str) -> Result<Self> {
        let mut lines = text.lines();
        let line = lines.next().context("the job file is empty")?;
        let arguments: Vec<String> = lines
            .map(|line| String::from_utf8(unescape(line)).context("an argument is not UTF-8"))
            .collect::<Result<_>>()?;
        match *line.split(' ').collect::<Vec<_>>() {
            ["scenarios"] if arguments.is_empty() => Ok(Self::Scenarios),
            ["try", devices] => Ok(Self::Try(devices.parse()?, arguments)),
            ["shell", devices, rows, columns] if arguments.is_empty() => {
                let size = Size { rows: rows.parse()?, columns: columns.parse()? };
                Ok(Self::Shell(devices.parse()?, size))
            }
            _ => bail!("unknown job {line:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_survive_their_file() {
        let mut jobs = vec![Job::Scenarios];
        for (devices, name) in Devices::ALL {
            assert_eq!(devices.to_string(), name);
            let command = vec!["uverbs".into(), "a b".into(), String::new(), "ü\n".into()];
            jobs.push(Job::Try(devices, command));
            jobs.push(Job::Shell(devices, Size { rows: 24, columns: 80 }));
        }
        for job in jobs {
            assert_eq!(Job::from_text(&job.to_text()).unwrap(), job);
        }
        assert!(Job::from_text("").is_err());
        assert!(Job::from_text("dance\n").is_err());
        assert!(Job::from_text("scenarios\none\n").is_err());
        assert!(Job::from_text("try\nuverbs\n").is_err());
        assert!(Job::from_text("shell soft-roce 24\n").is_err());
        assert!(Job::from_text("shell soft-roce 24 wide\n").is_err());
    }
}
