//! Exit statuses: one table for all commands.
//!
//! Scripts act on them: a prolog drains a node on 2, and calls a person on 3. So a slip on the command line,
//! or a file that is missing, never looks like a broken node.

use std::process::ExitCode;

/// How a run ended. What comes later matters more: a problem that was found is certain, whatever else could
/// not be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Status {
    /// Everything that was asked for was answered.
    #[default]
    Fine,
    /// What was named is not there, or is not known to be there; `fleet` found something.
    Doubt,
    /// Something could not be read or written, or the command line is wrong.
    Failed,
    /// `check` found a problem.
    Problem,
}

impl Status {
    /// The number that the program ends with. The order is that of Nagios plug-ins.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Fine => 0,
            Self::Doubt => 1,
            Self::Problem => 2,
            Self::Failed => 3,
        }
    }
}

impl From<Status> for ExitCode {
    fn from(status: Status) -> Self {
        Self::from(status.code())
    }
}

/// The table as help, man page and README have it.
pub(crate) const HELP: &str = "\
Exit status:
  0  everything that was asked for was answered, also with an empty list
  1  something that was named is not there: a device, port, index, interface, address or usable GID;
     or it may be there, but that is not certain; for check --strict or --format nagios: only warnings;
     for fleet: something was found, or is not known
  2  check found a problem; no other command ends with 2
  3  something could not be read or written, or the command line is wrong
  If several apply, it is the last of 1, 3 and 2. Whatever the status is, all else was answered, and
  stderr says what is missing; with --json, \"problems\" has what failed. (Of a GID table of which a part
  could not be read nothing is shown; wait and env answer as a whole; check --expect FILE checks nothing
  if FILE cannot be read; cdi --output leaves FILE as it is where its help says so.)
  The page commands.md says what 1 and 3 also mean for some commands.";
