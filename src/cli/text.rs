//! Texts in which every character shows as what it is, for people and in JSON.

use std::borrow::Cow;
use std::fmt::Write as _;

use unicode_width::UnicodeWidthChar as _;
use uverbs::inventory::is_plain_char;

/// A JSON document in which every character shows as what it is. JSON itself asks so only of the first
/// 32; all others are in texts.
pub(crate) fn plain_json(text: &str) -> Cow<'_, str> {
    shown(text, |plain, c| {
        let _ = write!(plain, "\\u{:04x}", u32::from(c));
    })
}

/// A text whose every character shows as what it is. A setting or an error's text may hold others.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    shown(text, |plain, c| plain.extend(c.escape_default()))
}

/// A text with an escape for each character that does not show as what it is.
fn shown(text: &str, escape: impl Fn(&mut String, char)) -> Cow<'_, str> {
    // Most texts are ASCII.
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) || text.chars().all(is_plain_char) {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        if is_plain_char(c) {
            plain.push(c);
        } else {
            escape(&mut plain, c);
        }
    }
    Cow::Owned(plain)
}

/// How many columns of a terminal a text takes.
pub(crate) fn width(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().filter_map(char::width).sum() }
}

/// A number with what it counts, for people: `1 port`, `1,000 ports`.
pub(crate) fn count(number: usize, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {what}{plural}", thousands(number))
}

/// A number with a comma before each three of its last digits.
pub(crate) fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// JSON and TOML escape what is not plain by four digits.
    #[test]
    fn what_is_escaped_has_16_bits() {
        assert!(('\u{10000}'..=char::MAX).all(is_plain_char));
        assert_eq!(plain_json("a\u{feff}\u{10000}"), "a\\ufeff\u{10000}");
    }

    #[test]
    fn numbers_for_people() {
        let texts = [0, 7, 999, 1000, 12_345, 1_234_567].map(thousands);
        assert_eq!(texts, ["0", "7", "999", "1,000", "12,345", "1,234,567"]);
        assert_eq!([0, 1, 2].map(|number| count(number, "GID")), ["0 GIDs", "1 GID", "2 GIDs"]);
    }
}
