//! What comes of a choice.

use super::port::{Port, Row};
use super::reason::{Reason, Why};

/// The result of a choice.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// The row at this index is used.
    Taken(u32),
    /// This index is used, but its slot is empty: connecting will fail (`ENODATA`).
    Empty(u32),
    /// This index is used, but is outside the table: connecting will fail.
    Outside(i64),
    /// No GID is chosen: connecting fails, or the program does not make the interface.
    Fails(Why),
    /// The port is not used at all, or it is not known which row is right ([`Why::NotKnown`]).
    Ignored(Why),
    /// The port is used by its LID, without a GID.
    ByLid,
}

impl Outcome {
    /// The index of the row that is used, if it is in use.
    #[must_use]
    pub fn index(&self) -> Option<u32> {
        match self {
            Self::Taken(index) => Some(*index),
            _ => None,
        }
    }

    /// The result of using this index.
    pub(super) fn of_index(port: &Port<'_>, index: i64) -> Self {
        match u32::try_from(index) {
            Ok(index) if index < port.gid_tbl_len => match port.row(index) {
                Some(_) => Self::Taken(index),
                None => Self::Empty(index),
            },
            _ => Self::Outside(index),
        }
    }
}

impl core::fmt::Display for Outcome {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Taken(index) => write!(f, "{index}"),
            Self::Empty(index) => write!(f, "{index} (empty slot)"),
            Self::Outside(index) => write!(f, "{index} (outside the table)"),
            Self::Fails(why) => write!(f, "failure: {why}"),
            Self::Ignored(why @ Why::NotKnown(_)) => write!(f, "{why}"),
            Self::Ignored(why) => write!(f, "not used: {why}"),
            Self::ByLid => f.write_str("no GID: by LID"),
        }
    }
}

/// A choice, and the reason for every row.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Decision {
    /// Its result.
    pub outcome: Outcome,
    /// Each row's index and why it was taken or refused, in the order of the table.
    pub rows: Vec<(u32, Reason)>,
    /// A row that may be better than the one that is recommended, if too little is known of it to say. Programs
    /// do not ask this: it is `None` for their choices.
    pub better_unknown: Option<u32>,
}

impl Decision {
    /// A decision made without looking at rows.
    pub(super) fn unlooked(port: &Port<'_>, outcome: Outcome) -> Self {
        Self::of_one(port, outcome, &Reason::Pinned)
    }

    /// A decision that looked only at the row that is taken, for this reason.
    pub(super) fn of_one(port: &Port<'_>, outcome: Outcome, taken: &Reason) -> Self {
        let reason = |row: &Row<'_>| {
            let is_taken = outcome.index() == Some(row.index);
            (row.index, if is_taken { taken.clone() } else { Reason::Unlooked })
        };
        Self { rows: port.rows.iter().map(reason).collect(), outcome, better_unknown: None }
    }
}
