//! PCI configuration space: what the function is, and MSI-X.

use crate::description::{Description, Mode};
use crate::interrupts::VECTORS;

/// Its size in bytes.
pub(crate) const SIZE: u64 = 4096;

/// Mellanox.
const VENDOR: u16 = 0x15b3;
/// `ConnectX-6`, `MT4123` in sysfs.
const DEVICE: u16 = 0x101b;
/// Offset of the only capability.
const MSIX: u8 = 0x60;
/// Where in BAR 0 the MSI-X table and the pending bits are. The machine keeps both itself.
const MSIX_TABLE: u32 = 0x3000;
const MSIX_PENDING: u32 = 0x4000;

/// The bytes that keep what is written: the command register, the interrupt line, and the byte
/// of MSI-X that has its enable and mask bits.
const WRITABLE: [u64; 4] = [0x04, 0x05, 0x3c, MSIX as u64 + 3];

/// What was written.
#[derive(Debug, Default)]
pub(crate) struct ConfigSpace {
    written: [u8; WRITABLE.len()],
}

impl ConfigSpace {
    /// Reads from `offset` on; beyond the end all is 0.
    pub(crate) fn read(&self, description: &Description, offset: u64, bytes: &mut [u8]) {
        let header = self.header(description);
        for (byte, at) in bytes.iter_mut().zip(offset..) {
            let at = usize::try_from(at).ok();
            *byte = at.and_then(|at| header.get(at)).copied().unwrap_or(0);
        }
    }

    /// Writes what is writable.
    pub(crate) fn write(&mut self, offset: u64, bytes: &[u8]) {
        for (&byte, at) in bytes.iter().zip(offset..) {
            for (kept, writable) in self.written.iter_mut().zip(WRITABLE) {
                if at == writable {
                    *kept = byte;
                }
            }
        }
    }

    /// The bytes that are not 0 are all here.
    fn header(&self, description: &Description) -> [u8; 0x6c] {
        let subclass = match description.mode {
            Mode::InfiniBand => 7,
            Mode::Roce | Mode::Switchdev | Mode::EmbeddedCpu { .. } => 0,
        };
        let [.., table_size] = (VECTORS - 1).to_be_bytes();
        let mut header = [0; 0x6c];
        let mut put = |offset: usize, bytes: &[u8]| {
            for (to, from) in header.iter_mut().skip(offset).zip(bytes) {
                *to = *from;
            }
        };
        put(0x00, &VENDOR.to_le_bytes());
        put(0x02, &DEVICE.to_le_bytes());
        put(0x06, &0x0010_u16.to_le_bytes()); // status: there are capabilities
        put(0x09, &[0, subclass, 0x02]); // a network controller
        put(0x10, &0x0000_000c_u32.to_le_bytes()); // BAR 0: memory, 64 bits, prefetchable
        put(0x2c, &VENDOR.to_le_bytes());
        put(0x2e, &1_u16.to_le_bytes());
        put(0x34, &[MSIX]);
        put(usize::from(MSIX), &[0x11, 0, table_size, 0]);
        put(usize::from(MSIX) + 4, &MSIX_TABLE.to_le_bytes());
        put(usize::from(MSIX) + 8, &MSIX_PENDING.to_le_bytes());
        for (offset, byte) in WRITABLE.into_iter().zip(self.written) {
            put(usize::try_from(offset).unwrap_or(usize::MAX), &[byte]);
        }
        header
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<const N: usize>(space: &ConfigSpace, of: &Description, offset: u64) -> [u8; N] {
        let mut bytes = [0xee; N];
        space.read(of, offset, &mut bytes);
        bytes
    }

    #[test]
    fn the_class_follows_the_mode() {
        let space = ConfigSpace::default();
        assert_eq!(read(&space, &Description::infiniband(1), 0x0a), [7, 2]);
        assert_eq!(read(&space, &Description::roce(), 0x0a), [0, 2]);
        assert_eq!(read(&space, &Description::embedded_cpu(2), 0), [0xb3, 0x15, 0x1b, 0x10]);
    }

    #[test]
    fn few_bytes_are_writable() {
        let mut space = ConfigSpace::default();
        let description = Description::roce();
        space.write(0, &[0xff; 0x70]);
        assert_eq!(read(&space, &description, 0x02), [0x1b, 0x10, 0xff, 0xff, 0x10, 0]);
        assert_eq!(read(&space, &description, 0x60), [0x11, 0, 7, 0xff, 0, 0x30, 0, 0]);
        assert_eq!(read(&space, &description, 0x3b), [0, 0xff, 0]);
    }

    #[test]
    fn the_rest_is_zero() {
        let space = ConfigSpace::default();
        assert_eq!(read(&space, &Description::roce(), 0x6b), [0, 0]);
        assert_eq!(read(&space, &Description::roce(), SIZE - 2), [0, 0]);
    }
}
