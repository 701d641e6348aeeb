//! Fields of the firmware interface: big-endian, bits counted from the most significant one.

/// A field of up to 64 bits. It may begin and end within a byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Field {
    /// Number of its first bit.
    first: usize,
    width: usize,
}

/// The field that begins at this bit (0 is the most significant) of this byte.
pub(crate) const fn at(byte: usize, bit: usize, width: usize) -> Field {
    assert!(bit < 8 && 0 < width && width <= 64, "not a field");
    Field { first: byte * 8 + bit, width }
}

impl Field {
    /// The same field of a structure that begins at this byte.
    pub(crate) const fn within(self, byte: usize) -> Self {
        Self { first: self.first + byte * 8, width: self.width }
    }

    /// Its value. Bits that are not there read as 0.
    pub(crate) fn get(self, bytes: &[u8]) -> u64 {
        self.bits().fold(0, |value, (byte, mask)| {
            let bit = bytes.get(byte).is_some_and(|byte| byte & mask != 0);
            value << 1 | u64::from(bit)
        })
    }

    /// Sets it to the lowest bits of a value. Bits that are not there stay away.
    pub(crate) fn set(self, bytes: &mut [u8], value: u64) {
        debug_assert!(self.width == 64 || value >> self.width == 0, "{value:#x} in {self:?}");
        for ((byte, mask), weight) in self.bits().zip((0..self.width).rev()) {
            if let Some(byte) = bytes.get_mut(byte) {
                *byte = if value >> weight & 1 == 1 { *byte | mask } else { *byte & !mask };
            }
        }
    }

    /// Its bits as bytes' numbers and masks, the most significant first.
    fn bits(self) -> impl Iterator<Item = (usize, u8)> {
        (self.first..self.first + self.width).map(|bit| (bit / 8, 0x80 >> (bit % 8)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_bytes_are_big_endian() {
        let mut bytes = [0; 8];
        at(2, 0, 32).set(&mut bytes, 0x0102_0304);
        assert_eq!(bytes, [0, 0, 1, 2, 3, 4, 0, 0]);
        assert_eq!(at(3, 0, 16).get(&bytes), 0x0203);
    }

    #[test]
    fn bits_count_from_the_most_significant() {
        let mut bytes = [0xff; 2];
        at(0, 1, 1).set(&mut bytes, 0);
        at(1, 4, 4).set(&mut bytes, 0b1010);
        assert_eq!(bytes, [0b1011_1111, 0b1111_1010]);
        assert_eq!(at(0, 0, 2).get(&bytes), 0b10);
    }

    #[test]
    fn a_field_may_span_bytes_without_touching_its_neighbours() {
        let mut bytes = [0xff; 4];
        at(0, 7, 25).set(&mut bytes, 240);
        assert_eq!(bytes, [0xfe, 0, 0, 240]);
        assert_eq!(at(0, 7, 25).get(&bytes), 240);
    }

    #[test]
    fn the_widest_field() {
        let mut bytes = [0; 9];
        at(0, 4, 64).set(&mut bytes, u64::MAX);
        assert_eq!(bytes, [0x0f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xf0]);
        assert_eq!(at(0, 4, 64).get(&bytes), u64::MAX);
    }

    #[test]
    fn a_field_of_a_structure() {
        let mut bytes = [0; 20];
        at(1, 4, 4).within(16).set(&mut bytes, 5);
        assert_eq!(bytes[17], 5);
    }

    #[test]
    fn what_is_not_there_is_zero() {
        let mut bytes = [0xaa; 2];
        at(1, 0, 16).set(&mut bytes, 0x1234);
        assert_eq!(bytes, [0xaa, 0x12]);
        assert_eq!(at(1, 0, 16).get(&bytes), 0x1200);
        assert_eq!(at(9, 0, 64).get(&bytes), 0);
    }
}
