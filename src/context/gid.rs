//! GIDs by ioctl: `QUERY_GID_ENTRY` and `QUERY_GID_TABLE`, in the kernel since 5.10, with the semantics of
//! [`ibv_query_gid_ex(3)`] and [`ibv_query_gid_table(3)`].
//!
//! [`ibv_query_gid_ex(3)`]: https://man7.org/linux/man-pages/man3/ibv_query_gid_ex.3.html
//! [`ibv_query_gid_table(3)`]: https://man7.org/linux/man-pages/man3/ibv_query_gid_table.3.html

use rustix::io::Errno;
use uverbs_uapi::device as abi;
use zerocopy::{FromZeros, IntoBytes};

use super::Context;
use crate::error::{Cause, Request, Result};
use crate::gid::{GidEntry, MAX_TABLE_ENTRIES, MAX_WALK, SLOT_READS};
use crate::ioctl::Command;

/// Room that [`Context::query_gid_table`] tries first; few hosts have more valid entries.
const USUAL_ENTRIES: usize = 256;

impl Context {
    /// Asks for one entry of a port's GID table: `None` if the slot is empty.
    ///
    /// One system call, no allocation. The kernel takes a reference on the entry while it answers;
    /// [`query_gid_table`](Self::query_gid_table) does not.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), uverbs::Error> {
    /// # let context = uverbs::host::Host::new().open("rxe0")?;
    /// if let Some(entry) = context.query_gid_ex(1, 3)? {
    ///     println!("{} {}", entry.gid(), entry.gid_type());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `EINVAL`: no such port, or the index is not below the port's `gid_tbl_len`; `EIO`: the
    /// device is gone; `EPROTONOSUPPORT`: Linux before 5.10.
    #[doc(alias = "ibv_query_gid_ex")]
    #[doc(alias = "ibv_query_gid")]
    pub fn query_gid_ex(&self, port: u32, index: u32) -> Result<Option<GidEntry>> {
        let entry = match self.gid_entry(port, index) {
            // Of a slot that is being emptied the kernel says so, too, for a moment.
            Err(Cause::Os(Errno::INVAL)) if self.has_slot(port, index) => {
                self.settled_entry(port, index)
            }
            answer => answer,
        };
        entry.map_err(|cause| self.port_error(port, Request::GidEntry { port, index }, cause))
    }

    /// Whether the port's table has a slot of this index. The ioctl does not say so of ports above 255.
    fn has_slot(&self, port: u32, index: u32) -> bool {
        self.ports().contains(&port)
            && u8::try_from(port).is_ok()
            && self.port_response(port).is_ok_and(|response| index < response.gid_tbl_len)
    }

    fn gid_entry(&self, port: u32, index: u32) -> Result<Option<GidEntry>, Cause> {
        let mut entry = GidEntry::new_zeroed();
        match self.gid_entry_into(port, index, 0, entry.as_mut_bytes()) {
            Ok(()) => {}
            Err(Cause::Os(Errno::NODATA)) => return Ok(None),
            Err(cause) => return Err(cause),
        }
        if entry.port() != port || entry.index() != index {
            return Err(Cause::Malformed("a GID entry of another slot"));
        }
        Ok(Some(entry))
    }

    /// One `QUERY_GID_ENTRY`, with flags and room as the caller will have them.
    pub(crate) fn gid_entry_into(
        &self,
        port: u32,
        index: u32,
        flags: u32,
        entry: &mut [u8],
    ) -> Result<(), Cause> {
        let mut command = Command::<4>::new(abi::object::DEVICE, abi::method::QUERY_GID_ENTRY);
        command
            .constant(abi::query_gid_entry::PORT, port.into())
            .constant(abi::query_gid_entry::GID_INDEX, index.into())
            .flags(abi::query_gid_entry::FLAGS, flags.into())
            .output(abi::query_gid_entry::RESP_ENTRY, entry);
        self.submit(&mut command)?;
        if command.is_output_valid(abi::query_gid_entry::RESP_ENTRY) {
            Ok(())
        } else {
            Err(Cause::Malformed("a GID entry that was not written"))
        }
    }

    /// Asks for all valid entries of all ports, ascending by port and index.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), uverbs::Error> {
    /// # let context = uverbs::host::Host::new().open("rxe0")?;
    /// for entry in context.query_gid_table()? {
    ///     println!("{}:{} {}", entry.port(), entry.index(), entry.gid());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`query_gid_table_into`](Self::query_gid_table_into), but never for want of room.
    #[doc(alias = "ibv_query_gid_table")]
    pub fn query_gid_table(&self) -> Result<Vec<GidEntry>> {
        for room in [USUAL_ENTRIES, MAX_TABLE_ENTRIES] {
            let mut entries = vec![GidEntry::new_zeroed(); room];
            match self.gid_table_call(&mut entries) {
                Ok(count) => {
                    entries.truncate(count);
                    return Ok(entries);
                }
                Err(Cause::NoRoom(_)) => {}
                Err(cause) => return Err(self.error(Request::GidTable, cause)),
            }
        }
        let mut entries = Vec::new();
        self.walk_gid_tables(|entry| {
            entries.push(entry);
            Ok(())
        })
        .map_err(|cause| self.error(Request::GidTable, cause))?;
        Ok(entries)
    }

    /// Fills the caller's slice with all valid entries of all ports; returns how many.
    ///
    /// One system call and no allocation for up to 2047 entries ([`MAX_TABLE_ENTRIES`]). With room
    /// for more, and more valid entries than that, the rest of the way is by one call for each
    /// slot. Entries behind the returned count keep what they held, unless it took that second way.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), uverbs::Error> {
    /// # let context = uverbs::host::Host::new().open("rxe0")?;
    /// let mut entries = [uverbs::gid::GidEntry::default(); 64];
    /// let count = context.query_gid_table_into(&mut entries)?;
    /// println!("{count} GIDs");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `EINVAL` ([`Cause::NoRoom`]): more valid entries than `entries` has room for, or no room at
    /// all, as in the man page; `EIO`: the device is gone; `EPROTONOSUPPORT`: Linux before 5.10;
    /// `ENOMEM`: the kernel's.
    #[doc(alias = "ibv_query_gid_table")]
    pub fn query_gid_table_into(&self, entries: &mut [GidEntry]) -> Result<usize> {
        self.gid_table_into(entries).map_err(|cause| self.error(Request::GidTable, cause))
    }

    fn gid_table_into(&self, entries: &mut [GidEntry]) -> Result<usize, Cause> {
        let room = entries.len();
        let one_call = entries.get_mut(..room.min(MAX_TABLE_ENTRIES)).unwrap_or_default();
        match self.gid_table_call(one_call) {
            Err(Cause::NoRoom(_)) if room > MAX_TABLE_ENTRIES => {}
            result => return result,
        }
        let mut places = entries.iter_mut();
        let mut count = 0;
        self.walk_gid_tables(|entry| {
            *places.next().ok_or(Cause::NoRoom(room))? = entry;
            count += 1;
            Ok(())
        })?;
        Ok(count)
    }

    /// One `QUERY_GID_TABLE`; `entries` has at most [`MAX_TABLE_ENTRIES`].
    fn gid_table_call(&self, entries: &mut [GidEntry]) -> Result<usize, Cause> {
        let room = entries.len();
        match self.gid_table_bytes(0, size_of::<GidEntry>(), entries.as_mut_bytes()) {
            // Flags, entry size and context are right, so EINVAL can only mean the room.
            Err(Cause::Os(Errno::INVAL)) => Err(Cause::NoRoom(room)),
            answer => answer,
        }
    }

    /// One `QUERY_GID_TABLE`, with flags and entries as the caller will have them.
    pub(crate) fn gid_table_bytes(
        &self,
        flags: u32,
        entry_size: usize,
        entries: &mut [u8],
    ) -> Result<usize, Cause> {
        let room = entries.len().checked_div(entry_size).unwrap_or(0);
        // Zero beforehand: a 32-bit kernel writes four of the eight bytes.
        let mut count = 0u64;
        let mut command = Command::<4>::new(abi::object::DEVICE, abi::method::QUERY_GID_TABLE);
        command
            .constant(abi::query_gid_table::ENTRY_SIZE, entry_size as u64)
            .flags(abi::query_gid_table::FLAGS, flags.into())
            .output(abi::query_gid_table::RESP_ENTRIES, entries)
            .output(abi::query_gid_table::RESP_NUM_ENTRIES, count.as_mut_bytes());
        self.submit(&mut command)?;
        if !command.is_output_valid(abi::query_gid_table::RESP_NUM_ENTRIES) {
            return Err(Cause::Malformed("a GID table without a count"));
        }
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        if count > room {
            return Err(Cause::Malformed("more GID entries than there was room for"));
        }
        Ok(count)
    }

    /// Every valid entry by one call for each slot: the way for more entries than one call returns.
    fn walk_gid_tables(
        &self,
        mut found: impl FnMut(GidEntry) -> Result<(), Cause>,
    ) -> Result<(), Cause> {
        for port in self.ports() {
            // QUERY_PORT cannot name the ports above 255. Theirs is walked up to its end.
            let length = match u8::try_from(port) {
                Ok(_) => Some(self.port_response(port)?.gid_tbl_len),
                Err(_) => None,
            };
            if length.is_some_and(|length| length > MAX_WALK) {
                return Err(Cause::Malformed("a GID table length beyond all reason"));
            }
            for index in 0..length.unwrap_or(MAX_WALK) {
                let entry = match length {
                    Some(_) => self.gid_entry(port, index),
                    None => match self.settled_entry(port, index) {
                        Err(Cause::Os(Errno::INVAL)) => break,
                        answer => answer,
                    },
                };
                match entry {
                    Ok(Some(entry)) => found(entry)?,
                    // Empty; or emptied while the kernel looked at it, which it calls EINVAL.
                    Ok(None) | Err(Cause::Os(Errno::INVAL)) => {}
                    Err(cause) => return Err(cause),
                }
            }
        }
        Ok(())
    }

    /// Asks for a slot until its answer is not EINVAL, a few times. After the table's end the kernel always
    /// says EINVAL; of a slot that is being emptied it says so for a moment.
    fn settled_entry(&self, port: u32, index: u32) -> Result<Option<GidEntry>, Cause> {
        for _ in 1..SLOT_READS {
            match self.gid_entry(port, index) {
                Err(Cause::Os(Errno::INVAL)) => {}
                answer => return answer,
            }
        }
        self.gid_entry(port, index)
    }
}
