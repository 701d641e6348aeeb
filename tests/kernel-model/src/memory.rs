//! A program's memory as the kernel sees it: one mapped region, and nothing around it.

use crate::errno::{EFAULT, Errno};

/// The mapped piece.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    base: u64,
    bytes: Vec<u8>,
}

impl Memory {
    /// Memory at `base`.
    #[must_use]
    pub fn new(base: u64, bytes: Vec<u8>) -> Self {
        Self { base, bytes }
    }

    /// Where it begins.
    #[must_use]
    pub fn base(&self) -> u64 {
        self.base
    }

    /// Its content.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Its content, to change.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// Copies from it.
    ///
    /// # Errors
    /// `EFAULT` if not all of it is there.
    pub fn read(&self, address: u64, length: usize) -> Result<Vec<u8>, Errno> {
        if length == 0 {
            return Ok(Vec::new());
        }
        let start = self.offset(address).ok_or(EFAULT)?;
        let bytes = start.checked_add(length).and_then(|end| self.bytes.get(start..end));
        Ok(bytes.ok_or(EFAULT)?.to_vec())
    }

    /// Copies to it, up to where it ends.
    ///
    /// # Errors
    /// `EFAULT` if not all of it is there.
    pub fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), Errno> {
        if bytes.is_empty() {
            return Ok(());
        }
        let start = self.offset(address).ok_or(EFAULT)?;
        let room = self.bytes.get_mut(start..).unwrap_or_default();
        let fits = bytes.len() <= room.len();
        for (place, byte) in room.iter_mut().zip(bytes) {
            *place = *byte;
        }
        if fits { Ok(()) } else { Err(EFAULT) }
    }

    fn offset(&self, address: u64) -> Option<usize> {
        let offset = usize::try_from(address.checked_sub(self.base)?).ok()?;
        (offset < self.bytes.len()).then_some(offset)
    }
}
