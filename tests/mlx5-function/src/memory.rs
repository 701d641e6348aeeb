//! The part of the guest's memory that the function may access.

use anyhow::{Context, Result, ensure};
use std::fs::File;
use std::sync::atomic::Ordering;
use vm_memory::{
    Bytes, FileOffset, GuestAddress, GuestMemoryRegion, GuestRegionMmap, MemoryRegionAddress,
};

/// The pieces of memory that are mapped now.
///
/// While the firmware boots, the machine takes pieces away and gives others; none overlap.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    pieces: Vec<GuestRegionMmap>,
}

impl Memory {
    /// Adds the piece at `address`, which is this part of a file.
    pub(crate) fn map(&mut self, address: u64, size: u64, file: File, offset: u64) -> Result<()> {
        // Beyond the file's end there would be memory whose touch kills the process.
        let end = offset.checked_add(size);
        ensure!(
            end.is_some_and(|end| file.metadata().is_ok_and(|file| end <= file.len())),
            "{size:#x} bytes at {offset:#x} are not in the file"
        );
        let piece = GuestRegionMmap::from_range(
            GuestAddress(address),
            usize::try_from(size)?,
            Some(FileOffset::new(file, offset)),
        );
        self.pieces.push(piece.with_context(|| format!("mapping {size:#x} at {address:#x}"))?);
        Ok(())
    }

    /// Takes away the pieces that lie in this range.
    pub(crate) fn unmap(&mut self, address: u64, size: u64) {
        let end = address.saturating_add(size);
        self.pieces.retain(|piece| {
            let start = piece.start_addr().0;
            start < address || end < start.saturating_add(piece.len())
        });
    }

    /// Takes away all.
    pub(crate) fn unmap_all(&mut self) {
        self.pieces.clear();
    }

    /// Fills `bytes` from `address` on. They must lie in one piece.
    pub(crate) fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), Outside> {
        let (piece, start) = self.piece(address, bytes.len())?;
        piece.read_slice(bytes, start).map_err(|_| Outside { address, length: bytes.len() })
    }

    /// Writes `bytes` from `address` on. They must lie in one piece.
    pub(crate) fn write(&self, address: u64, bytes: &[u8]) -> Result<(), Outside> {
        let (piece, start) = self.piece(address, bytes.len())?;
        piece.write_slice(bytes, start).map_err(|_| Outside { address, length: bytes.len() })
    }

    /// Writes a byte that the guest waits for: it sees all that was written before.
    pub(crate) fn publish(&self, address: u64, byte: u8) -> Result<(), Outside> {
        let (piece, start) = self.piece(address, 1)?;
        piece.store(byte, start, Ordering::Release).map_err(|_| Outside { address, length: 1 })
    }

    fn piece(
        &self,
        address: u64,
        length: usize,
    ) -> Result<(&GuestRegionMmap, MemoryRegionAddress), Outside> {
        let start = GuestAddress(address);
        let found =
            self.pieces.iter().find_map(|piece| Some((piece, piece.to_region_addr(start)?)));
        found.ok_or(Outside { address, length })
    }
}

/// An access to what is not the guest's memory, or to more than one piece of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Outside {
    address: u64,
    length: usize,
}

impl std::fmt::Display for Outside {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes at {:#x} are not in the guest's memory", self.length, self.address)
    }
}

#[cfg(test)]
impl Memory {
    /// One piece of zeros.
    pub(crate) fn zeroed(address: u64, size: u64) -> Self {
        let [memory, _] = Self::zeroed_twice(address, size);
        memory
    }

    /// The same piece of zeros twice: for the device and for its driver.
    pub(crate) fn zeroed_twice(address: u64, size: u64) -> [Self; 2] {
        let file = tempfile::tempfile().unwrap();
        file.set_len(size).unwrap();
        [(); 2].map(|()| {
            let mut memory = Self::default();
            memory.map(address, size, file.try_clone().unwrap(), 0).unwrap();
            memory
        })
    }

    /// The bytes there.
    pub(crate) fn bytes<const N: usize>(&self, address: u64) -> [u8; N] {
        let mut bytes = [0; N];
        self.read(address, &mut bytes).unwrap();
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_piece_is_part_of_a_file() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[1; 0x1000]).unwrap();
        file.write_all(&[2; 0x1000]).unwrap();
        let mut memory = Memory::default();
        memory.map(0x8000, 0x1000, file, 0x1000).unwrap();
        assert_eq!(memory.bytes::<2>(0x8000), [2, 2]);
        memory.write(0x8001, &[3]).unwrap();
        memory.publish(0x8002, 4).unwrap();
        assert_eq!(memory.bytes::<4>(0x8000), [2, 3, 4, 2]);
    }

    #[test]
    fn an_access_lies_in_one_piece() {
        let mut memory = Memory::zeroed(0x1000, 0x1000);
        let file = tempfile::tempfile().unwrap();
        file.set_len(0x1000).unwrap();
        memory.map(0x2000, 0x1000, file, 0).unwrap();
        assert!(memory.write(0x1ffc, &[0; 4]).is_ok());
        assert!(memory.write(0x1ffd, &[0; 4]).is_err());
        assert!(memory.read(0xfff, &mut [0; 2]).is_err());
        assert!(memory.read(0x2fff, &mut [0; 2]).is_err());
        assert!(memory.read(u64::MAX, &mut [0; 2]).is_err());
        assert!(memory.publish(0x3000, 0).is_err());
    }

    #[test]
    fn unmapping_takes_whole_pieces() {
        let mut memory = Memory::zeroed(0x1000, 0x1000);
        memory.unmap(0x1000, 0xfff);
        memory.unmap(0x1001, 0x1000);
        assert!(memory.read(0x1000, &mut [0]).is_ok());
        memory.unmap(0, 0x2000);
        assert!(memory.read(0x1000, &mut [0]).is_err());
    }

    #[test]
    fn a_map_beyond_the_file_is_refused() {
        let mut memory = Memory::default();
        assert!(memory.map(0, 0x1000, tempfile::tempfile().unwrap(), 0).is_err());
        assert!(memory.read(0, &mut [0]).is_err());
    }
}
