//! Rings in the guest's memory that the function writes and the driver reads: event queues and
//! completion queues.

use crate::memory::{Memory, Outside};

/// Bytes of an entry. The last one has the owner's bit.
pub(crate) const ENTRY: usize = 64;
const LAST: u64 = ENTRY as u64 - 1;

/// The largest ring, as in the capabilities, and the largest page, both as powers of two. A page has at
/// least 4096 bytes.
const MAX_LOG_SIZE: u64 = 22;
const MAX_LOG_PAGE: u64 = 18;

#[derive(Debug)]
pub(crate) struct Ring {
    log_size: u32,
    page_bytes: usize,
    pages: Vec<u64>,
    /// How many entries were written so far.
    written: u64,
}

impl Ring {
    /// The ring with `1 << log_size` entries on pages of `4096 << log_page` bytes, whose addresses
    /// are these bytes. `None` where that makes no sense.
    pub(crate) fn new(log_size: u64, log_page: u64, pages: &[u8]) -> Option<Self> {
        if log_size > MAX_LOG_SIZE || log_page > MAX_LOG_PAGE {
            return None;
        }
        let page_bytes = 4096_usize << log_page;
        let count = (ENTRY << log_size).div_ceil(page_bytes);
        let pages = pages.as_chunks::<8>().0.get(..count)?;
        Some(Self {
            log_size: u32::try_from(log_size).ok()?,
            page_bytes,
            pages: pages.iter().map(|page| u64::from_be_bytes(*page)).collect(),
            written: 0,
        })
    }

    /// Writes the next entry. The owner's bit, the lowest of all, shows the driver whether an
    /// entry belongs to this round through the ring or to the last one, so it is written last.
    pub(crate) fn write(&mut self, entry: [u8; ENTRY], memory: &Memory) -> Result<(), Outside> {
        let [.., round] = (self.written >> self.log_size).to_be_bytes();
        let [.., last] = entry;
        let owned = last & !1 | round & 1;
        let size = 1_u64 << self.log_size;
        // Below 2^22 entries.
        let offset = usize::try_from(self.written % size).unwrap_or_default() * ENTRY;
        // There is a page for each entry, see `new`.
        let page = self.pages.get(offset / self.page_bytes).copied().unwrap_or_default();
        let address = page.wrapping_add((offset % self.page_bytes) as u64);
        let mut entry = entry;
        if let Some(last) = entry.last_mut() {
            *last = owned ^ 1;
        }
        memory.write(address, &entry)?;
        memory.publish(address.wrapping_add(LAST), owned)?;
        self.written += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(addresses: &[u64]) -> Vec<u8> {
        addresses.iter().flat_map(|address| address.to_be_bytes()).collect()
    }

    #[test]
    fn the_owner_changes_with_every_round() {
        let memory = Memory::zeroed(0x10000, 0x4000);
        // 128 entries on two pages, the second below the first.
        let mut ring = Ring::new(7, 0, &pages(&[0x12000, 0x10000])).unwrap();
        for written in 0..128 * 3 + 5_u64 {
            let mut entry = [0xa0; ENTRY];
            entry[..8].copy_from_slice(&written.to_be_bytes());
            ring.write(entry, &memory).unwrap();
            let index = written % 128;
            let page = if index < 64 { 0x12000 } else { 0x10000 };
            let found: [u8; ENTRY] = memory.bytes(page + index % 64 * 64);
            assert_eq!(found[..8], written.to_be_bytes());
            assert_eq!(u64::from(found[63]), 0xa0 | (written / 128 % 2), "{written}");
        }
        assert_eq!(memory.bytes::<8>(0x11000), [0; 8]);
        assert_eq!(memory.bytes::<8>(0x13000), [0; 8]);
    }

    #[test]
    fn nothing_is_counted_that_was_not_written() {
        let [memory, other] = Memory::zeroed_twice(0x10000, 0x1000);
        let mut ring = Ring::new(0, 0, &pages(&[0x10000])).unwrap();
        assert!(ring.write([0; ENTRY], &Memory::default()).is_err());
        ring.write([0; ENTRY], &memory).unwrap();
        assert_eq!(other.bytes::<64>(0x10000)[63], 0, "still the first round");
    }

    #[test]
    fn nonsense_is_refused() {
        let page = pages(&[0x10000]);
        assert!(Ring::new(6, 0, &page).is_some());
        assert!(Ring::new(7, 0, &page).is_none());
        assert!(Ring::new(7, 1, &page).is_some());
        assert!(Ring::new(6, 0, &page[..7]).is_none());
        assert!(Ring::new(23, 18, &page).is_none());
        assert!(Ring::new(6, 19, &page).is_none());
    }
}
