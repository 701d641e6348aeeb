//! What the two sides of the VM tests share: the host program `vm`, which boots a kernel, and
//! the program `guest`, which is PID 1 in there.
//!
//! [`bed`] is what a machine is equipped with. [`job`] is what the host asks for, a file in the
//! initramfs; [`report`] is what the guest answers, lines on its second serial port. Both are plain
//! ASCII text, made for reading in a log as well as by a program.

pub mod bed;
pub mod job;
pub mod report;

use std::time::Duration;

/// The file in the guest that says why our own kernel modules are not there.
pub const NOT_BUILT: &str = "/modules/not-built";

/// The environment variable that stretches every time limit, for slow machines.
pub const TIME_SCALE: &str = "UVERBS_VM_TIME_SCALE";

/// How far every time limit is stretched: [`TIME_SCALE`], a whole number; 1 where it is unset.
#[must_use]
pub fn time_scale() -> u32 {
    let scale = std::env::var(TIME_SCALE).ok().and_then(|text| text.parse().ok());
    scale.unwrap_or(1).max(1)
}

/// `limit`, stretched by [`time_scale`].
#[must_use]
pub fn stretched(limit: Duration) -> Duration {
    limit.saturating_mul(time_scale())
}

/// `bytes` as one line of printable ASCII; [`unescape`] is its inverse.
#[must_use]
pub fn escape(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}

/// The bytes that [`escape`] was given. Anything that it does not write stands for itself.
#[must_use]
pub fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        let byte = match (first, after.split_first()) {
            (b'\\', Some((b'x', digits))) => match digits.get(..2).and_then(hex_byte) {
                Some(byte) => {
                    rest = digits.get(2..).unwrap_or_default();
                    byte
                }
                None => first,
            },
            (b'\\', Some((letter, after))) => {
                rest = after;
                match letter {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    other => *other,
                }
            }
            _ => first,
        };
        bytes.push(byte);
    }
    bytes
}

fn hex_byte(digits: &[u8]) -> Option<u8> {
    u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaping_is_reversible() {
        let all: Vec<u8> = (0..=255).collect();
        let text = escape(&all);
        assert!(text.bytes().all(|byte| matches!(byte, b' '..=b'~')));
        assert_eq!(unescape(&text), all);
    }

    #[test]
    fn unescape_takes_broken_text() {
        assert_eq!(unescape("a\\"), b"a\\");
        assert_eq!(unescape("\\x4"), b"\\x4");
        assert_eq!(unescape("\\xzz"), b"\\xzz");
    }
}
