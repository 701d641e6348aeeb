//! Why something is not known, in a document.

use serde::{Deserialize, Serialize};

use crate::inventory::Problem;

/// The longest text of an error: it may name a path.
const LONGEST_ERROR: usize = 16 << 10;

/// A problem.
#[derive(Serialize, Deserialize)]
pub(super) struct ProblemForm {
    error: String,
    errno: i32,
}

impl From<Problem> for ProblemForm {
    fn from(own: Problem) -> Self {
        Self { error: own.text, errno: own.errno }
    }
}

impl TryFrom<ProblemForm> for Problem {
    type Error = String;

    fn try_from(own: ProblemForm) -> Result<Self, String> {
        if own.error.len() > LONGEST_ERROR {
            return Err(format!(".error: a text of more than {LONGEST_ERROR} bytes"));
        }
        if u16::try_from(own.errno).is_err() {
            return Err(format!(".errno: expected a number, at most {}", u16::MAX));
        }
        Ok(Self { text: own.error, errno: own.errno })
    }
}
