//! What the two sides of the VM tests share: the host program `vm`, which boots a kernel, and
//! the program `guest`, which is PID 1 in there.
//!
//! [`bed`] is what a machine is equipped with. [`job`] is what the host asks for, a file in the
//! initramfs; [`report`] is what the guest answers, lines on its second serial port. Both are plain
//! ASCII text, made for reading in a log as well as by a program. The names of scenarios go the other
//! way on that port, one whenever the guest is ready, so that several machines share one queue.

pub mod bed;
pub mod job;
pub mod report;

use std::time::Duration;

/// The file in the guest that says why our own kernel modules are not there.
pub const NOT_BUILT: &str = "/modules/not-built";

/// The file beside the modules that says why there is no `siw.ko`.
pub const NO_SIW: &str = "siw-not-built";

/// The program of 32 bits in the guest.
pub const OF_32_BITS: &str = "/static/of-32-bits";

/// The file in the guest that says why there is no newer release of rdma-core.
pub const NO_NEWER: &str = "/no-newer";

/// The environment variable with the name of the serial port for reports.
pub const REPORTS: &str = "UVERBS_VM_REPORTS";

/// The environment variable that stretches every time limit, for slow machines.
pub const TIME_SCALE: &str = "UVERBS_VM_TIME_SCALE";

/// The environment variable with the seed of a run that takes samples; unset in a whole run.
pub const SAMPLE: &str = "UVERBS_VM_SAMPLE";

/// Of how many parts a run that takes samples has one; its seed says which. As many runs with seeds
/// that follow one another have everything.
pub const TURNS: u64 = 10;

/// The seed of a run that takes samples of what is long; `None` where all of it is wanted.
///
/// A scenario that makes thousands of like things makes fewer of them, and by the seed others
/// each time.
#[must_use]
pub fn sample() -> Option<u64> {
    std::env::var(SAMPLE).ok().and_then(|text| text.parse().ok())
}

/// Whether the part with this number is in this run, which has one of so many if it takes samples: all are in a
/// whole one.
#[must_use]
pub fn has_its_turn(part: u64, turns: u64) -> bool {
    sample().is_none_or(|seed| part % turns == seed % turns)
}

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

/// The environment variable that says from which seed random worlds are made and how many:
/// `SEED:COUNT`, or one of the two with the colon.
pub const WORLDS: &str = "UVERBS_VM_WORLDS";

/// Which random worlds are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Worlds {
    /// The first one's seed; the next ones have the next numbers.
    pub seed: u64,
    /// How many.
    pub count: u32,
}

/// The worlds that [`WORLDS`] asks for.
///
/// # Errors
/// Where it does not read as it should.
pub fn worlds() -> anyhow::Result<Worlds> {
    read_worlds(&std::env::var(WORLDS).unwrap_or_default())
}

fn read_worlds(text: &str) -> anyhow::Result<Worlds> {
    let (seed, count) = text.split_once(':').unwrap_or((text, ""));
    let mut worlds = Worlds { seed: 1, count: 200 };
    if !seed.is_empty() {
        worlds.seed = seed.parse()?;
    }
    if !count.is_empty() {
        worlds.count = count.parse()?;
    }
    Ok(worlds)
}

/// `bytes` as one line of printable ASCII; [`unescape`] is its inverse.
#[must_use]
pub fn escape(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}

/// The bytes that [`escape`] was given. Every other byte means itself.
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
    fn worlds_are_a_seed_and_a_count() {
        let read = |text: &str| read_worlds(text).map(|it| (it.seed, it.count)).ok();
        assert_eq!(read(""), Some((1, 200)));
        assert_eq!(read("7:"), Some((7, 200)));
        assert_eq!(read(":20"), Some((1, 20)));
        assert_eq!(read("7:20"), Some((7, 20)));
        assert_eq!(read("x"), None);
    }

    #[test]
    fn unescape_takes_broken_text() {
        assert_eq!(unescape("a\\"), b"a\\");
        assert_eq!(unescape("\\x4"), b"\\x4");
        assert_eq!(unescape("\\xzz"), b"\\xzz");
    }
}
