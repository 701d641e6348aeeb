//! Text on its way to stdout.

use std::borrow::Cow;
use std::io::{self, Write as _};

use serde::Serialize;

use crate::text::plain_json;

/// Text on its way to stdout. It is written when there is much of it, and at the end.
#[derive(Debug, Default)]
pub(crate) struct Out {
    text: Vec<u8>,
    /// Why nothing more is written.
    failure: Option<io::Error>,
}

impl Out {
    /// A text that is whole.
    pub(crate) fn of(text: Vec<u8>) -> Self {
        Self { text, failure: None }
    }

    pub(crate) fn push(&mut self, text: &str) {
        self.text.extend_from_slice(text.as_bytes());
        self.relieve();
    }

    /// Adds a value as JSON in which every character shows as what it is.
    pub(crate) fn push_json(&mut self, value: &impl Serialize) -> serde_json::Result<()> {
        let before = self.text.len();
        serde_json::to_writer(&mut self.text, value)?;
        let added = self.text.get(before..).and_then(|added| std::str::from_utf8(added).ok());
        if let Some(Cow::Owned(plain)) = added.map(plain_json) {
            self.text.truncate(before);
            self.text.extend_from_slice(plain.as_bytes());
        }
        self.relieve();
        Ok(())
    }

    fn relieve(&mut self) {
        /// More than the answer of a host.
        const MUCH: usize = 512 << 10;
        if self.text.len() > MUCH {
            self.flush();
        }
    }

    /// Writes what there is now, and says whether all was taken. `may_write` waits until there is room, and says
    /// whether to go on: then so much can be written without waiting.
    pub(crate) fn send(&mut self, mut may_write: impl FnMut() -> bool) -> bool {
        /// Less than a pipe or a terminal that can be written to has room for.
        const PART: usize = 1024;
        let mut stdout = io::stdout().lock();
        let mut is_wanted = true;
        for part in self.text.chunks(PART) {
            is_wanted = self.failure.is_none() && may_write();
            if !is_wanted {
                break;
            }
            self.failure = stdout.write_all(part).and_then(|()| stdout.flush()).err();
        }
        self.text.clear();
        is_wanted && self.failure.is_none()
    }

    fn flush(&mut self) {
        if self.failure.is_none() {
            let mut stdout = io::stdout().lock();
            self.failure = stdout.write_all(&self.text).and_then(|()| stdout.flush()).err();
        }
        self.text.clear();
    }

    /// What was not written yet, for tests.
    #[cfg(test)]
    pub(crate) fn into_text(self) -> String {
        String::from_utf8(self.text).unwrap()
    }

    /// Writes the rest. An error is the first of all that was written.
    pub(crate) fn end(mut self) -> io::Result<()> {
        self.flush();
        self.failure.map_or(Ok(()), Err)
    }
}
