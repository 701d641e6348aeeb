//! What the guest is to do: a file in the initramfs, one word a line.

use crate::{escape, unescape};
use anyhow::{Context, Result, bail};

/// Where the file stands in the guest.
pub const PATH: &str = "/job";

/// One boot's work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Job {
    /// Run these scenarios, in this order.
    Scenarios(Vec<String>),
    /// Set two soft-RoCE devices up and run this command, its arguments behind it.
    Try(Vec<String>),
}

impl Job {
    /// The text of the file.
    #[must_use]
    pub fn to_text(&self) -> String {
        let (word, arguments) = match self {
            Self::Scenarios(names) => ("scenarios", names),
            Self::Try(command) => ("try", command),
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
        let word = lines.next().context("the job file is empty")?;
        let arguments = lines
            .map(|line| String::from_utf8(unescape(line)).context("an argument is not UTF-8"))
            .collect::<Result<_>>()?;
        match word {
            "scenarios" => Ok(Self::Scenarios(arguments)),
            "try" => Ok(Self::Try(arguments)),
            other => bail!("unknown job {other:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_survive_their_file() {
        for job in [
            Job::Scenarios(vec!["one".into(), "two".into()]),
            Job::Try(vec!["uverbs".into(), "a b".into(), String::new(), "ü\n".into()]),
        ] {
            assert_eq!(Job::from_text(&job.to_text()).unwrap(), job);
        }
        assert!(Job::from_text("").is_err());
        assert!(Job::from_text("dance\n").is_err());
    }
}
