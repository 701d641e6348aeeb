//! How a person names a device or a port: `mlx5_0`, `mlx5_0:1`, `mlx5_0/1`.

use core::fmt;
use core::str::FromStr;

use crate::text::is_device_name;

/// A device, or one port of it.
///
/// ```
/// use uverbs::selector::Selector;
/// let selector: Selector = "mlx5_0/1".parse()?;
/// assert_eq!((selector.device.as_str(), selector.port), ("mlx5_0", Some(1)));
/// assert_eq!(selector.to_string(), "mlx5_0:1");
/// # Ok::<(), uverbs::selector::InvalidSelector>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector {
    /// The device's name.
    pub device: String,
    /// The port; `None` for all of them.
    pub port: Option<u32>,
}

impl Selector {
    /// Whether the selector names this port of this device.
    #[must_use]
    pub fn includes(&self, device: &str, port: u32) -> bool {
        self.device == device && self.port.is_none_or(|own| own == port)
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.port {
            Some(port) => write!(f, "{}:{port}", self.device),
            None => f.write_str(&self.device),
        }
    }
}

/// A text that names no device or port.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} names no device or port: expected DEV, DEV:PORT or DEV/PORT, as mlx5_0:1")]
pub struct InvalidSelector(String);

impl FromStr for Selector {
    type Err = InvalidSelector;

    fn from_str(text: &str) -> Result<Self, InvalidSelector> {
        let invalid = || InvalidSelector(text.to_owned());
        let (device, port) = match text.rsplit_once([':', '/']) {
            None => (text, None),
            Some((device, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
                (device, Some(port.parse().map_err(|_| invalid())?))
            }
            Some(_) => return Err(invalid()),
        };
        // A device's name may hold a colon, never a slash; a second of either is a slip of the keyboard.
        if !is_device_name(device) {
            return Err(invalid());
        }
        Ok(Self { device: device.to_owned(), port })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_forms() {
        let parsed = |text: &str| text.parse::<Selector>().map(|s| (s.device, s.port)).unwrap();
        assert_eq!(parsed("mlx5_0"), ("mlx5_0".into(), None));
        assert_eq!(parsed("mlx5_0:1"), ("mlx5_0".into(), Some(1)));
        assert_eq!(parsed("ibp65s0/2"), ("ibp65s0".into(), Some(2)));
        assert_eq!(parsed("sw0:0"), ("sw0".into(), Some(0)));
    }

    #[test]
    fn one_port_or_all() {
        let includes = |text: &str| {
            let selector: Selector = text.parse().unwrap();
            [0, 1, 2, 3].map(|port| selector.includes("a", port))
        };
        assert_eq!(includes("a"), [true; 4]);
        assert_eq!(includes("a:2"), [false, false, true, false]);
        assert_eq!(includes("b:2"), [false; 4]);
        assert_eq!(includes("b"), [false; 4]);
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            ":",
            "/",
            ":1",
            "a:",
            "a/",
            "a:b",
            "a:1:2",
            "a/1/2",
            "a:-1",
            "a:+1",
            "a:4294967296",
            " a",
            "a ",
            "a,b",
            "a:1 ",
        ] {
            assert!(text.parse::<Selector>().is_err(), "{text:?}");
        }
    }
}
