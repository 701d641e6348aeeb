//! Names from outside: what may be the name of a device, an interface or a file, and their order.

/// Whether a name is one entry of a folder, and no path.
pub(crate) fn is_file_name(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && !name.contains(['/', '\0'])
}

/// Whether a character shows as what it is: it neither controls a terminal nor ends a line, nor does it
/// change the direction of what is beside it, and it can be seen.
#[must_use]
pub fn is_plain_char(c: char) -> bool {
    // Unicode's `Default_Ignorable_Code_Point` of 16 bits, which one escape of JSON holds, and those that end lines or annotate.
    let is_unseen = matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
    );
    !c.is_control() && !is_unseen
}

/// Whether a text is not empty and shows as what it is.
#[must_use]
pub fn is_plain(text: &str) -> bool {
    let is_ascii = text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    !text.is_empty() && (is_ascii || text.chars().all(is_plain_char))
}

/// Whether a character device can have this name. C has room for 63 bytes of it.
pub(crate) fn is_node_name(name: &str) -> bool {
    name.len() < 64 && is_plain(name) && is_file_name(name)
}

/// A text that may be any bytes, with `?` for what does not show as what it is.
pub(crate) fn to_plain(text: &str) -> String {
    text.chars().map(|c| if is_plain_char(c) { c } else { '?' }).collect()
}

/// Whether a name is of letters, digits, `_` and `-`, as nearly all are. Such a name breaks no other rule.
fn is_word(name: &str) -> bool {
    let is_own = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    !name.is_empty() && name.bytes().all(is_own)
}

/// Whether a device can have this name. Programs take lists of devices with commas, with a colon before the
/// port. A name that would mean something else there is refused, and what tables have in place of names, `-` and `?`.
/// So is a name with a blank at an end, and one that is not UTF-8; its odd bytes were replaced before.
#[must_use]
pub fn is_device_name(name: &str) -> bool {
    /// The kernel's `IB_DEVICE_NAME_MAX`, less the byte of zero at the end.
    const LONGEST: usize = 63;
    let is_other = || {
        let odd = [',', ':', char::REPLACEMENT_CHARACTER];
        is_plain(name) && is_file_name(name) && !name.contains(odd) && name.trim() == name
    };
    let is_none = matches!(name, "-" | "?");
    name.len() <= LONGEST && !is_none && (is_word(name) || is_other())
}

/// Whether a network interface can have this name: the kernel's own rule, but for characters that do
/// not show.
#[must_use]
pub fn is_interface_name(name: &str) -> bool {
    /// The kernel's `IFNAMSIZ`, less the byte of zero at the end.
    const LONGEST: usize = 15;
    let is_odd = |c: char| matches!(c, ':' | char::REPLACEMENT_CHARACTER) || c.is_whitespace();
    let is_other = || is_plain(name) && is_file_name(name) && !name.contains(is_odd);
    name.len() <= LONGEST && (is_word(name) || is_other())
}

/// Whether a network interface is shown by this name, and not by its index: it cannot be taken for what tables have in
/// place of names, `-`, `?`, `#5` and `eth0?`.
pub(crate) fn is_shown_name(name: &str) -> bool {
    is_interface_name(name) && name != "-" && !name.starts_with('#') && !name.ends_with('?')
}

/// Orders names as people do: `mlx5_2` before `mlx5_10`.
#[must_use]
pub(crate) fn natural(one: &str, other: &str) -> core::cmp::Ordering {
    fn runs(text: &str) -> impl Iterator<Item = (bool, &str)> {
        let mut rest = text;
        core::iter::from_fn(move || {
            let digit = rest.chars().next()?.is_ascii_digit();
            let end = rest.find(|c: char| c.is_ascii_digit() != digit).unwrap_or(rest.len());
            let (run, behind) = rest.split_at_checked(end)?;
            rest = behind;
            Some((digit, run))
        })
    }
    fn key((digit, run): (bool, &str)) -> (u8, usize, &str) {
        // A number's value is its length without leading zeros, then its digits.
        let value = run.trim_start_matches('0');
        if digit { (0, value.len(), value) } else { (1, 0, run) }
    }
    runs(one).map(key).cmp(runs(other).map(key)).then_with(|| one.cmp(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_natural_order() {
        let mut names = ["mlx5_10", "mlx5_2", "rxe0", "mlx5_1", "mlx5", "mlx5_02", "", "ibp3s0f1"];
        names.sort_by(|one, other| natural(one, other));
        assert_eq!(
            names,
            ["", "ibp3s0f1", "mlx5", "mlx5_1", "mlx5_02", "mlx5_2", "mlx5_10", "rxe0"]
        );
    }

    #[test]
    fn names_of_nodes() {
        assert!(is_node_name("uverbs0") && is_node_name(&"u".repeat(63)));
        assert!(!is_node_name(&"u".repeat(64)) && !is_node_name("a/b"));
    }

    #[test]
    fn names_that_are_none() {
        let odd = [
            "",
            ".",
            "..",
            "a/b",
            "a\0",
            "a\n",
            "a\t",
            "a\u{1b}[m",
            "a\u{7f}",
            "a\u{9b}31m",
            "a\u{2028}",
            "a\u{2029}",
            "a\u{202e}b",
            "a\u{2066}b",
            "a\u{2069}",
            "a\u{200f}",
            "a\u{200b}",
            "a\u{feff}",
            "a\u{ad}",
            "a:1",
            "a\u{fffd}",
        ];
        for name in odd {
            assert!(!is_device_name(name), "{name:?}");
            assert!(!is_interface_name(name), "{name:?}");
        }
        assert!(!is_device_name("a,b") && is_interface_name("a,b"));
        assert!(is_device_name("a b") && !is_interface_name("a b"));
        for name in [" a", "a ", "a\u{3000}", "-", "?"] {
            assert!(!is_device_name(name), "{name:?}");
        }
        assert!(is_device_name(&"a".repeat(63)) && !is_device_name(&"a".repeat(64)));
        assert!(is_interface_name(&"a".repeat(15)) && !is_interface_name(&"a".repeat(16)));
        for name in ["mlx5_0", "rocep1s0f0", "é", "a.b-c_d!e"] {
            assert!(is_device_name(name) && is_shown_name(name), "{name:?}");
        }
        for sign in ["-", "?", "#x", "#", "#05", "#+5", "#0", "eth0?"] {
            assert!(is_interface_name(sign) && !is_shown_name(sign), "{sign:?}");
        }
        assert!(!is_shown_name("#5"));
    }

    #[test]
    fn names_stay_in_their_folder() {
        assert!(is_file_name("mlx5_0"));
        for bad in ["", ".", "..", "a/b", "/", "a\0"] {
            assert!(!is_file_name(bad), "{bad:?}");
        }
    }
}
