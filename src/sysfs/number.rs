//! Numbers as the files and folders of sysfs have them.

/// The number a text begins with, decimal, or hexadecimal after `0x`. Only a colon or white space ends it.
pub(super) fn leading_number(text: &str) -> Option<u64> {
    let text = text.trim_start();
    let (digits, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) => (hex, 16),
        None => (text, 10),
    };
    let end = digits.find(|c: char| c == ':' || c.is_whitespace()).unwrap_or(digits.len());
    let digits = digits.get(..end)?;
    let is_plain = digits.chars().all(|c| c.is_digit(radix));
    is_plain.then(|| u64::from_str_radix(digits, radix).ok()).flatten()
}

/// A name that is a decimal number and written as the kernel writes it (no sign, no leading zero).
pub(super) fn decimal(name: &str) -> Option<u32> {
    let number = name.parse::<u32>().ok()?;
    (number.to_string() == name).then_some(number)
}

/// The two numbers of a `MAJOR:MINOR` file.
pub(crate) fn device_number(text: &str) -> Option<u64> {
    let (major, minor) = text.split_once(':')?;
    Some(rustix::fs::makedev(major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leading_numbers() {
        assert_eq!(leading_number("4: ACTIVE"), Some(4));
        assert_eq!(leading_number("0x00010000"), Some(0x10000));
        assert_eq!(leading_number(" 7"), Some(7));
        for nothing in
            ["", "x", "0x", "-1", "+1", "12abc", "0x12zz", "2.5 Gb/sec", "99999999999999999999"]
        {
            assert_eq!(leading_number(nothing), None, "{nothing:?}");
        }
    }

    #[test]
    fn only_canonical_numbers_are_ports() {
        assert_eq!(decimal("10"), Some(10));
        assert_eq!(decimal("0"), Some(0));
        for odd in ["", "+1", "01", "1a", "4294967296", ".."] {
            assert_eq!(decimal(odd), None, "{odd:?}");
        }
    }

    #[test]
    fn device_numbers() {
        assert_eq!(device_number("231:192"), Some(rustix::fs::makedev(231, 192)));
        assert_eq!(device_number("231"), None);
        assert_eq!(device_number("a:b"), None);
    }
}
