//! MAC addresses, as the firmware gives them.

use core::fmt;

/// A MAC address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MacAddress(pub [u8; 6]);

impl fmt::Display for MacAddress {
    /// Six pairs of hexadecimal digits, colons between them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pairs = self.0.map(|byte| format!("{byte:02x}"));
        f.pad(&pairs.join(":"))
    }
}
