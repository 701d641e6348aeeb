//! Numbers as NCCL reads them, with the functions of C.

/// A variable's number as NCCL reads it. Octal and hexadecimal are accepted, and text after the number is
/// ignored. Text without a number is 0. Empty text, and a number beyond 64 bits, is the default.
pub(super) fn number(value: Option<&str>, default: i64) -> i64 {
    let text = value.filter(|text| !text.is_empty());
    text.map(|text| strtoll(text, 0)).map_or(default, |read| read.unwrap_or(default))
}

/// C's `(int)` of a `long long`: the lower 32 bits.
pub(super) fn int(wide: i64) -> i32 {
    let [a, b, c, d, ..] = wide.to_le_bytes();
    i32::from_le_bytes([a, b, c, d])
}

/// C's `atoi` and `(int)strtol(text, NULL, 10)`: a number beyond 64 bits is first limited to 64 bits.
pub(super) fn atoi(text: &str) -> i32 {
    int(strtoll(text, 10).unwrap_or_else(|limit| limit))
}

/// The number that a text begins with, as C's `strtoll` reads it. The error is the limit that the number
/// exceeds. With base 0 the text's prefix gives the base.
fn strtoll(text: &str, base: u32) -> Result<i64, i64> {
    let text = text.trim_start_matches([' ', '\t', '\n', '\u{b}', '\u{c}', '\r']);
    let (sign, limit, text) = match text.strip_prefix('-') {
        Some(rest) => (-1, i64::MIN, rest),
        None => (1, i64::MAX, text.strip_prefix('+').unwrap_or(text)),
    };
    let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let (digits, base) = match hex.filter(|rest| rest.starts_with(|c: char| c.is_ascii_hexdigit()))
    {
        Some(rest) if base == 0 => (rest, 16),
        _ if base == 0 && text.starts_with('0') => (text, 8),
        _ => (text, if base == 0 { 10 } else { base }),
    };
    let mut value: i64 = 0;
    for digit in digits.chars().map_while(|c| c.to_digit(base)) {
        let longer = value.checked_mul(base.into());
        value = longer.and_then(|own| own.checked_add(sign * i64::from(digit))).ok_or(limit)?;
    }
    Ok(value)
}
