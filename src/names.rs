//! Names: of values, of devices and of files.

/// A value of an open set: known numbers have a name, others are shown as numbers.
macro_rules! named {
    (
        $(#[$doc:meta])* $name:ident($raw:ty) {
            $($(#[$item:meta])* $constant:ident = $value:expr, $text:literal;)+
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        pub struct $name(pub $raw);

        impl $name {
            $($(#[$item])* pub const $constant: Self = Self($value);)+

            /// The value's name, if this version knows it.
            #[must_use]
            pub fn name(self) -> Option<&'static str> {
                match self {
                    $(Self::$constant => Some($text),)+
                    _ => None,
                }
            }
        }

        impl core::fmt::Display for $name {
            /// The name, or `unknown(N)`.
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                match self.name() {
                    Some(name) => f.pad(name),
                    None => f.pad(&format!("unknown({})", self.0)),
                }
            }
        }
    };
}
pub(crate) use named;

/// Whether a name stands for an entry of a folder and nothing else.
pub(crate) fn is_file_name(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && !name.contains(['/', '\0'])
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
    let key = |(digit, run): (bool, &str)| {
        // A number's value is its length without leading zeros, then its digits.
        let value = run.trim_start_matches('0').len();
        if digit {
            (0, value, run.trim_start_matches('0').to_owned())
        } else {
            (1, 0, run.to_owned())
        }
    };
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
    fn names_stay_in_their_folder() {
        assert!(is_file_name("mlx5_0"));
        for bad in ["", ".", "..", "a/b", "/", "a\0"] {
            assert!(!is_file_name(bad), "{bad:?}");
        }
    }
}
