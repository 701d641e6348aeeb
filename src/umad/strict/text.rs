//! Texts and numbers as the C library sees them: `strtoul`, `atoi`, `strsep` and arrays that end
//! with a NUL. They take any bytes and never fail.

use core::fmt;

/// A text in an array of `ROOM` bytes, as in C: cut to leave room for the closing NUL, and followed by
/// zeros.
///
/// ```no_run
/// # let sysfs = uverbs::sysfs::Sysfs::host();
/// let ca = uverbs::umad::strict::get_ca(&sysfs, Some("mlx5_0"))?;
/// assert_eq!(ca.ca_name, *"mlx5_0");
/// assert_eq!(ca.ca_name.array().len(), 20);
/// # Ok::<(), uverbs::umad::strict::Failure>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Text<const ROOM: usize>([u8; ROOM]);

impl<const ROOM: usize> Text<ROOM> {
    /// The text up to its first NUL, cut if there is no room for it.
    pub(super) fn new(text: &[u8]) -> Self {
        let mut array = [0; ROOM];
        let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
        for (place, byte) in array.iter_mut().take(ROOM.saturating_sub(1)).zip(text) {
            *place = *byte;
        }
        Self(array)
    }

    /// The text, without the closing NUL. Any bytes, as sysfs gave them.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.0.split(|byte| *byte == 0).next().unwrap_or_default()
    }

    /// The whole array, including the closing NUL.
    #[must_use]
    pub const fn array(&self) -> &[u8; ROOM] {
        &self.0
    }
}

impl<const ROOM: usize> Default for Text<ROOM> {
    fn default() -> Self {
        Self([0; ROOM])
    }
}

impl<const ROOM: usize> PartialEq<str> for Text<ROOM> {
    fn eq(&self, other: &str) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl<const ROOM: usize> fmt::Display for Text<ROOM> {
    /// Replaces what is not UTF-8.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&String::from_utf8_lossy(self.as_bytes()))
    }
}

impl<const ROOM: usize> fmt::Debug for Text<ROOM> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&String::from_utf8_lossy(self.as_bytes()), f)
    }
}

/// A file's bytes as a reader with limited room sees them: up to the first NUL, without the last newline
/// and what follows it.
pub(super) fn cut(bytes: &[u8], room: usize) -> &[u8] {
    let read = bytes.get(..room.saturating_sub(1)).unwrap_or(bytes);
    let text = read.split(|byte| *byte == 0).next().unwrap_or_default();
    match text.iter().rposition(|byte| *byte == b'\n') {
        Some(end) => text.get(..end).unwrap_or_default(),
        None => text,
    }
}

/// The hexadecimal 16-bit groups of a GUID or GID. An empty group between two separators is 0.
pub(super) fn groups(text: &[u8]) -> impl Iterator<Item = u16> {
    text.split(|byte| b": \t\n".contains(byte)).map(|group| {
        let [low, high, ..] = strtoul(group, 16).to_le_bytes();
        u16::from_le_bytes([low, high])
    })
}

/// `strtoul` on a 64-bit system, for base 0 (decimal, `0x` hexadecimal, `0` octal) and others: the number
/// that a text begins with, 0 if there is none, the largest number if it is too large.
pub(super) fn strtoul(text: &[u8], base: u32) -> u64 {
    let (negative, text) = sign(text);
    let hexadecimal = match text {
        [b'0', b'x' | b'X', digit, ..] => digit.is_ascii_hexdigit(),
        _ => false,
    };
    let (base, digits) = match (base, text) {
        (0 | 16, [_, _, digits @ ..]) if hexadecimal => (16, digits),
        (0, [b'0', ..]) => (8, text),
        (0, _) => (10, text),
        _ => (base, text),
    };
    let mut number = 0u64;
    for digit in digits.iter().map_while(|digit| char::from(*digit).to_digit(base)) {
        let next = number.checked_mul(base.into());
        let Some(next) = next.and_then(|number| number.checked_add(digit.into())) else {
            return u64::MAX;
        };
        number = next;
    }
    if negative { number.wrapping_neg() } else { number }
}

/// `atoi` of the GNU C library on a 64-bit system: the lower bits of what `strtol` returns.
pub(super) fn atoi(text: &[u8]) -> i32 {
    let (negative, digits) = sign(text);
    let mut number = 0i64;
    for digit in digits.iter().map_while(|digit| char::from(*digit).to_digit(10)) {
        let digit = i64::from(digit);
        // Read with its sign: there is one more number below 0 than above.
        number = number.saturating_mul(10).saturating_add(if negative { -digit } else { digit });
    }
    let [a, b, c, d, ..] = number.to_le_bytes();
    i32::from_le_bytes([a, b, c, d])
}

/// Whether there is a minus sign, and the text after white space and sign.
fn sign(text: &[u8]) -> (bool, &[u8]) {
    // Unlike `is_ascii_whitespace`, C counts the vertical tab.
    let space = |byte: &u8| matches!(byte, b' ' | b'\t'..=b'\r');
    let start = text.iter().position(|byte| !space(byte)).unwrap_or(text.len());
    match text.get(start..).unwrap_or_default() {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] | rest => (false, rest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_strtoul_reads_them() {
        let cases: [(&[u8], u64); 20] = [
            (b"4: ACTIVE", 4),
            (b"0x00010000", 0x10000),
            (b"0XfF", 255),
            (b"2.5 Gb/sec (1X SDR)", 2),
            (b"010", 8),
            (b"08", 0),
            (b"0", 0),
            (b"0x", 0),
            (b"0xg", 0),
            (b" \t\n\x0b\x0c\r7", 7),
            (b"+7", 7),
            (b"-1", u64::MAX),
            (b"-0x10", 16u64.wrapping_neg()),
            (b"- 1", 0),
            (b"", 0),
            (b"x", 0),
            (b"\xff1", 0),
            (b"18446744073709551615", u64::MAX),
            (b"18446744073709551616", u64::MAX),
            (b"-99999999999999999999", u64::MAX),
        ];
        for (text, number) in cases {
            assert_eq!(strtoul(text, 0), number, "{:?}", String::from_utf8_lossy(text));
        }
        assert_eq!(strtoul(b"fe80", 16), 0xfe80);
        assert_eq!(strtoul(b"0xfe80", 16), 0xfe80);
        assert_eq!(strtoul(b"010", 16), 0x10);
    }

    #[test]
    fn numbers_as_atoi_reads_them() {
        let cases: [(&[u8], i32); 12] = [
            (b"1", 1),
            (b"9", 9),
            (b"10", 10),
            (b"01", 1),
            (b"1x", 1),
            (b" 2", 2),
            (b"-3", -3),
            (b"x", 0),
            (b"", 0),
            (b"4294967297", 1),
            (b"99999999999999999999", -1),
            (b"-99999999999999999999", 0),
        ];
        for (text, number) in cases {
            assert_eq!(atoi(text), number, "{:?}", String::from_utf8_lossy(text));
        }
    }

    #[test]
    fn text_is_cut_at_the_last_newline() {
        assert_eq!(cut(b"one\n", 32), b"one");
        assert_eq!(cut(b"one\ntwo\n", 32), b"one\ntwo");
        assert_eq!(cut(b"one\ntwo", 32), b"one");
        assert_eq!(cut(b"one", 32), b"one");
        assert_eq!(cut(b"\n", 32), b"");
        assert_eq!(cut(b"one\0\ntwo\n", 32), b"one");
        // The newline is beyond what was read.
        assert_eq!(cut(b"0123456789\n", 8), b"0123456");
        assert_eq!(cut(b"01234567", 8), b"0123456");
        assert_eq!(cut(b"0123456", 8), b"0123456");
    }

    #[test]
    fn groups_of_a_guid() {
        let of = |text: &[u8]| groups(text).collect::<Vec<_>>();
        assert_eq!(of(b"0011:22ff:fe33:4455"), [0x11, 0x22ff, 0xfe33, 0x4455]);
        assert_eq!(of(b"1 2\t3\n4"), [1, 2, 3, 4]);
        assert_eq!(of(b"1::2"), [1, 0, 2]);
        assert_eq!(of(b"12345:x:-1"), [0x2345, 0, 0xffff]);
        assert_eq!(of(b""), [0]);
    }

    #[test]
    fn a_text_keeps_room_for_its_nul() {
        let text = Text::<4>::new(b"abcdef");
        assert_eq!((text.as_bytes(), text.array()), (&b"abc"[..], b"abc\0"));
        assert_eq!(text, *"abc");
        assert_eq!(Text::<4>::new(b"a\0b"), *"a");
        assert_eq!(
            format!("{}|{:>3}|{:?}", Text::<4>::new(b"\xff"), Text::<4>::new(b"a"), text),
            "\u{fffd}|  a|\"abc\""
        );
        assert_eq!(Text::<0>::new(b"abc"), *"");
    }
}
