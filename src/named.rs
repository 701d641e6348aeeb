//! Values of open sets: known numbers have a name, others keep their number.

/// A value of an open set: known numbers have a name, others are shown as numbers.
macro_rules! named {
    (
        $(#[$doc:meta])* $name:ident($raw:ty) {
            $($(#[$item:meta])* $constant:ident = $value:expr, $text:literal;)+
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[cfg_attr(
            feature = "serde",
            derive(serde::Serialize, serde::Deserialize),
            serde(transparent)
        )]
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
