//! P_Keys, the partition keys of a port.
//!
//! The kernel has no ioctl for them: [`ibv_query_pkey(3)`] reads sysfs too. A port without a table
//! (iWARP) has none.
//!
//! [`ibv_query_pkey(3)`]: https://man7.org/linux/man-pages/man3/ibv_query_pkey.3.html

use core::fmt;

use rustix::io::Errno;

use crate::error::{Cause, Error, Request, Result};
use crate::sysfs::{Folder, Sysfs};

/// A partition key: 15 bits of partition, and the membership bit on top.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PKey(pub u16);

impl PKey {
    /// Whether the slot is in use: the partition is not 0.
    #[must_use]
    pub const fn is_valid(self) -> bool {
        self.0 & 0x7fff != 0
    }

    /// Whether the port is a full member, which may talk to limited ones and to full ones.
    #[must_use]
    pub const fn is_full_member(self) -> bool {
        self.0 & 0x8000 != 0
    }
}

impl fmt::Display for PKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#06x}", self.0)
    }
}

impl Sysfs {
    /// Reads one P_Key of a port.
    ///
    /// # Errors
    /// `EINVAL`: no such device, port or index; `EPROTO`: the file does not hold a P_Key.
    #[doc(alias = "ibv_query_pkey")]
    pub fn query_pkey(&self, device: &str, port: u32, index: u32) -> Result<PKey> {
        let request = Request::PKey { port, index: Some(index) };
        let error = |cause| Error::new(device, request.clone(), cause);
        let folder = self.port(device, port).map_err(error)?.join("pkeys");
        read_pkey(&folder, index).map_err(|cause| {
            let slot = folder.join(index.to_string());
            error(if slot.exists() { cause } else { Cause::Os(Errno::INVAL) })
        })
    }

    /// Reads all P_Keys of a port, with their indices, ascending; unused slots (0) included.
    ///
    /// # Errors
    /// `EINVAL`: no such device or port; `EPROTO`: a file that does not hold a P_Key.
    pub fn query_pkeys(&self, device: &str, port: u32) -> Result<Vec<(u32, PKey)>> {
        let read = || {
            let folder = self.port(device, port)?.join("pkeys");
            let indices = match folder.numbers() {
                Ok(indices) => indices,
                Err(Cause::Os(Errno::NOENT)) => {
                    let port_exists = folder.path().parent().is_some_and(std::path::Path::exists);
                    return if port_exists { Ok(Vec::new()) } else { Err(Cause::Os(Errno::INVAL)) };
                }
                Err(cause) => return Err(cause),
            };
            indices
                .into_iter()
                .map(|index| Ok((index, read_pkey(&folder, index)?)))
                .collect::<Result<_, Cause>>()
        };
        read().map_err(|cause| Error::new(device, Request::PKey { port, index: None }, cause))
    }
}

fn read_pkey(folder: &Folder, index: u32) -> Result<PKey, Cause> {
    u16::try_from(folder.read_number(&index.to_string())?)
        .map(PKey)
        .map_err(|_| Cause::Malformed("a P_Key"))
}
