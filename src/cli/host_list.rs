//! Slurm's expressions of hosts: `n[1-3,07],m5`.

use core::fmt::Write as _;
use core::str::FromStr;
use std::collections::BTreeSet;

/// The most hosts that an expression may name.
const MOST: usize = 1 << 17;

/// The longest name of a host, in bytes (RFC 1035).
const LONGEST: usize = 253;

/// Hosts, each once, in the order in which they are named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostList(pub(crate) Vec<String>);

impl FromStr for HostList {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let invalid = |what: &str| format!("{text:?}: {what}: expected hosts as n[1-3,07],m5");
        let mut hosts = Vec::new();
        for part in parts(text).ok_or_else(|| invalid("a bracket has no other"))? {
            if part.is_empty() {
                return Err(invalid("a name is missing"));
            }
            if shortest(part) > LONGEST {
                return Err("a name is longer than that of any host".to_owned());
            }
            let names = expand(part).map_err(|what| invalid(&what))?;
            if hosts.len() + names.len() > MOST {
                return Err(invalid("too many hosts"));
            }
            hosts.extend(names);
        }
        let mut known = BTreeSet::new();
        hosts.retain(|own| known.insert(own.clone()));
        Ok(Self(hosts))
    }
}

/// The parts between commas that are outside brackets; `None` if the brackets do not match.
fn parts(text: &str) -> Option<Vec<&str>> {
    let (mut start, mut is_inside) = (0, false);
    let mut parts = Vec::new();
    for (place, byte) in text.bytes().enumerate() {
        match (byte, is_inside) {
            (b'[', false) => is_inside = true,
            (b']', true) => is_inside = false,
            (b'[', true) | (b']', false) => return None,
            (b',', false) => {
                parts.push(text.get(start..place)?);
                start = place + 1;
            }
            _ => {}
        }
    }
    parts.push(text.get(start..)?);
    (!is_inside).then_some(parts)
}

/// How long the names of a part are at least. Each bracket has a digit in its place.
fn shortest(part: &str) -> usize {
    let mut is_inside = false;
    let is_counted = |byte: &u8| {
        let was_inside = is_inside;
        is_inside = match byte {
            b'[' => true,
            b']' => false,
            _ => is_inside,
        };
        !was_inside
    };
    part.bytes().filter(is_counted).count()
}

/// The names of a part, which may have several brackets.
fn expand(part: &str) -> Result<Vec<String>, String> {
    let (mut pieces, mut text) = (Vec::new(), String::new());
    let (mut rest, mut count) = (part, 1);
    while let Some((before, opened)) = rest.split_once('[') {
        let (inside, after) = opened.split_once(']').unwrap_or((opened, ""));
        let ranges = inside.split(',').map(range).collect::<Result<Vec<Range>, String>>()?;
        let own = ranges.iter().map(Range::count).fold(0, usize::saturating_add);
        count = usize::saturating_mul(count, own);
        if count > MOST {
            return Err("too many hosts".to_owned());
        }
        text.push_str(before);
        // One number is like text. So each piece has two numbers or more, and the names cost no more than their bytes.
        match ranges.as_slice() {
            [Range { from, to, digits }] if from == to => write(&mut text, *from, *digits),
            _ => pieces.push((core::mem::take(&mut text), ranges)),
        }
        rest = after;
    }
    text.push_str(rest);
    let mut names = Vec::new();
    add(&pieces, &text, &mut String::new(), &mut names);
    Ok(names)
}

fn write(text: &mut String, number: u64, digits: usize) {
    // Nothing fails to be written to a text.
    let _ = write!(text, "{number:0digits$}");
}

/// Adds the names that begin so.
fn add(pieces: &[(String, Vec<Range>)], end: &str, begin: &mut String, names: &mut Vec<String>) {
    let Some(((before, ranges), rest)) = pieces.split_first() else {
        names.push(format!("{begin}{end}"));
        return;
    };
    let length = begin.len();
    begin.push_str(before);
    let with_text = begin.len();
    for Range { from, to, digits } in ranges {
        for number in *from..=*to {
            write(begin, number, *digits);
            add(rest, end, begin, names);
            begin.truncate(with_text);
        }
    }
    begin.truncate(length);
}

/// Numbers in a bracket, with at least so many digits.
struct Range {
    from: u64,
    to: u64,
    digits: usize,
}

impl Range {
    fn count(&self) -> usize {
        usize::try_from(self.to - self.from).unwrap_or(MOST).saturating_add(1)
    }
}

fn range(text: &str) -> Result<Range, String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (Some(from), Some(to)) = (number(first), number(last)) else {
        return Err(format!("{text:?} is no number and no range"));
    };
    if from > to {
        return Err(format!("{text:?} ends before it begins"));
    }
    Ok(Range { from, to, digits: first.len() })
}

/// A number of digits only.
fn number(text: &str) -> Option<u64> {
    // Longer ones would make names that no host has.
    let is_plain = text.len() <= 18 && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(text: &str) -> Vec<String> {
        text.parse::<HostList>().unwrap().0
    }

    #[test]
    fn as_slurm_writes_them() {
        assert_eq!(hosts("n1"), ["n1"]);
        assert_eq!(hosts("n[1-3,07],m5"), ["n1", "n2", "n3", "n07", "m5"]);
        assert_eq!(hosts("n[098-101]"), ["n098", "n099", "n100", "n101"]);
        assert_eq!(hosts("r[1-2]n[1,3]-ib"), ["r1n1-ib", "r1n3-ib", "r2n1-ib", "r2n3-ib"]);
        assert_eq!(hosts("a[1]b[2-3][04]c"), ["a1b204c", "a1b304c"]);
        assert_eq!(hosts("b,a,b,a[1-1],a1"), ["b", "a", "a1"]);
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            ",",
            "a,",
            ",a",
            "a,,b",
            "n[",
            "n]",
            "n[]",
            "n[1",
            "n1]",
            "n[[1]]",
            "n[1-]",
            "n[-1]",
            "n[a]",
            "n[3-1]",
            "n[1-2-3]",
            "n[1,]",
            "n[+1]",
            "n[0-999999999]",
            "n[0-99999],m[0-99999]",
            "n[0-999][0-999]",
            "n[0-99999,0-99999]",
            "n[00000000000000000001]",
        ] {
            assert!(text.parse::<HostList>().is_err(), "{text:?}");
        }
        let long = "a name is longer than that of any host";
        assert_eq!("[1]".repeat(40_000).parse::<HostList>(), Err(long.to_owned()));
        assert_eq!("n".repeat(254).parse::<HostList>(), Err(long.to_owned()));
        assert_eq!(hosts(&"[1]".repeat(253)), ["1".repeat(253)]);
    }
}
