//! GIDs by ioctl: `QUERY_GID_ENTRY` and `QUERY_GID_TABLE`, in the kernel since 5.10, with the semantics of
//! [`ibv_query_gid_ex(3)`] and [`ibv_query_gid_table(3)`].
//!
//! This is where the kernel's [`abi::GidEntry`] becomes a [`GidEntry`]. The request names the bytes of one
//! entry, and the kernel writes at that distance: the beginning of its entries if they are longer, and
//! zeros after them if they are shorter. So the kernel writes into the caller's slice, and entries are
//! converted in place.
//!
//! [`ibv_query_gid_ex(3)`]: https://man7.org/linux/man-pages/man3/ibv_query_gid_ex.3.html
//! [`ibv_query_gid_table(3)`]: https://man7.org/linux/man-pages/man3/ibv_query_gid_table.3.html

use core::mem::offset_of;

use nix::libc;
use uverbs_uapi::device as abi;
use zerocopy::{FromBytes, FromZeros, IntoBytes};

use super::Context;
use crate::error::{Cause, Request, Result};
use crate::gid::{GidEntry, MAX_TABLE_ENTRIES, MAX_WALK, SLOT_READS};
use crate::ioctl::{Command, MAX_PAYLOAD};

/// Room that [`Context::query_gid_table`] tries first; few hosts have more valid entries.
const USUAL_ENTRIES: usize = 256;

/// Bytes of one entry that the kernel takes at least. A C program that was compiled for an older kernel has
/// room for no more.
const SHORTEST_ENTRY: usize = abi::GID_ENTRY_FIRST_SIZE;

// A caller's slice has room for the kernel's entries.
const _: () = assert!(size_of::<GidEntry>() >= size_of::<abi::GidEntry>());

impl Context {
    /// Asks for one entry of a port's GID table: `None` if the slot is empty.
    ///
    /// One system call, no allocation. The kernel takes a reference on the entry while it answers;
    /// [`query_gid_table`](Self::query_gid_table) does not.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), uverbs::Error> {
    /// # let context = uverbs::Host::new().open("rxe0")?;
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
            Err(Cause::Os(libc::EINVAL)) if self.has_slot(port, index) => {
                settled(|| self.gid_entry(port, index))
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
        let mut entry = abi::GidEntry::new_zeroed();
        let is_valid = self.slot_into(port, index, entry.as_mut_bytes())?;
        Ok(is_valid.then(|| entry.into()))
    }

    /// Writes one slot's entry, in the kernel's layout; `false` if the slot is empty.
    fn slot_into(&self, port: u32, index: u32, entry: &mut [u8]) -> Result<bool, Cause> {
        match self.gid_entry_into(port, index, 0, entry) {
            Ok(()) => {}
            Err(Cause::Os(libc::ENODATA)) => return Ok(false),
            Err(cause) => return Err(cause),
        }
        if is_of(entry, port, index) {
            Ok(true)
        } else {
            Err(Cause::Malformed("a GID entry of another slot"))
        }
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
        self.send(&mut command)?;
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
    /// # let context = uverbs::Host::new().open("rxe0")?;
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
        self.gid_table().map_err(|cause| self.error(Request::GidTable, cause))
    }

    fn gid_table(&self) -> Result<Vec<GidEntry>, Cause> {
        for room in [USUAL_ENTRIES, MAX_TABLE_ENTRIES] {
            let mut entries = vec![GidEntry::new_zeroed(); room];
            match self.gid_table_into(&mut entries) {
                Ok(count) => {
                    entries.truncate(count);
                    return Ok(entries);
                }
                Err(Cause::NoRoom(_)) => {}
                Err(cause) => return Err(cause),
            }
        }
        let mut entries = Vec::new();
        self.walk_gid_tables(|port, index| {
            let entry = self.gid_entry(port, index)?;
            entries.extend(entry);
            Ok(())
        })?;
        Ok(entries)
    }

    /// Fills the caller's slice with all valid entries of all ports; returns how many.
    ///
    /// One system call and no allocation for up to 2047 entries ([`MAX_TABLE_ENTRIES`]). With room
    /// for more, and more valid entries than that, there is one call for each slot. Entries after the
    /// returned count keep what they held, unless there was a call for each slot. After an error the slice holds
    /// anything.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), uverbs::Error> {
    /// # let context = uverbs::Host::new().open("rxe0")?;
    /// let mut entries = [uverbs::GidEntry::default(); 64];
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
        let count = self.gid_table_bytes(0, size_of::<GidEntry>(), entries.as_mut_bytes())?;
        for place in entries.iter_mut().take(count) {
            if let Ok((entry, _)) = abi::GidEntry::read_from_prefix(place.as_bytes()) {
                *place = entry.into();
            }
        }
        Ok(count)
    }

    /// All valid entries in the kernel's layout, `entry_size` bytes apart, with flags as the caller will have
    /// them; returns how many. By one call, or slot by slot where one call has no room for them.
    pub(crate) fn gid_table_bytes(
        &self,
        flags: u32,
        entry_size: usize,
        entries: &mut [u8],
    ) -> Result<usize, Cause> {
        let room = entries.len().checked_div(entry_size).unwrap_or(0);
        let most = MAX_PAYLOAD.checked_div(entry_size).unwrap_or(0);
        let one_call = entries.get_mut(..room.min(most) * entry_size).unwrap_or_default();
        match self.gid_table_call(flags, entry_size, one_call) {
            // Of the arguments of a request without flags, EINVAL can only mean the room.
            Err(Cause::Os(libc::EINVAL))
                if flags == 0 && (SHORTEST_ENTRY..=MAX_PAYLOAD).contains(&entry_size) => {}
            answer => return answer,
        }
        if room <= most {
            return Err(Cause::NoRoom(room));
        }
        let mut places = entries.chunks_exact_mut(entry_size);
        let mut place = places.next();
        let mut count = 0;
        self.walk_gid_tables(|port, index| {
            let mut beyond = [0; SHORTEST_ENTRY];
            let entry = place.as_deref_mut().unwrap_or(&mut beyond);
            if self.slot_into(port, index, entry)? {
                place.take().ok_or(Cause::NoRoom(room))?;
                place = places.next();
                count += 1;
            }
            Ok(())
        })?;
        Ok(count)
    }

    /// One `QUERY_GID_TABLE`.
    fn gid_table_call(
        &self,
        flags: u32,
        entry_size: usize,
        entries: &mut [u8],
    ) -> Result<usize, Cause> {
        let room = entries.len().checked_div(entry_size).unwrap_or(0);
        let mut count = UNWRITTEN;
        let mut command = Command::<4>::new(abi::object::DEVICE, abi::method::QUERY_GID_TABLE);
        command
            .constant(abi::query_gid_table::ENTRY_SIZE, entry_size as u64)
            .flags(abi::query_gid_table::FLAGS, flags.into())
            .output(abi::query_gid_table::RESP_ENTRIES, entries)
            .output(abi::query_gid_table::RESP_NUM_ENTRIES, &mut count);
        self.send(&mut command)?;
        if !command.is_output_valid(abi::query_gid_table::RESP_NUM_ENTRIES) {
            return Err(Cause::Malformed("a GID table without a count"));
        }
        let count = usize::try_from(count_of(count)).unwrap_or(usize::MAX);
        if count > room {
            return Err(Cause::Malformed("more GID entries than there was room for"));
        }
        Ok(count)
    }

    /// One call for each slot of each port: the way for more entries than one call returns. `read` asks for
    /// a slot; its EINVAL is the end of a table whose length is not known, or a slot that is being emptied.
    fn walk_gid_tables(
        &self,
        mut read: impl FnMut(u32, u32) -> Result<(), Cause>,
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
                let answer = match length {
                    Some(_) => read(port, index),
                    None => settled(|| read(port, index)),
                };
                match answer {
                    Ok(()) => {}
                    // Emptied while the kernel looked at it.
                    Err(Cause::Os(libc::EINVAL)) if length.is_some() => {}
                    Err(Cause::Os(libc::EINVAL)) => break,
                    Err(cause) => return Err(cause),
                }
            }
        }
        Ok(())
    }
}

/// Whether an entry in the kernel's layout, or only its beginning, is that of a slot.
fn is_of(entry: &[u8], port: u32, index: u32) -> bool {
    let field = |at: usize| entry.get(at..at + 4);
    field(offset_of!(abi::GidEntry, port_num)) == Some(&port.to_ne_bytes())
        && field(offset_of!(abi::GidEntry, gid_index)) == Some(&index.to_ne_bytes())
}

/// What the count of entries holds before the kernel writes it.
const UNWRITTEN: [u8; 8] = [0xff; 8];

/// The count of entries. A kernel of 64 bits writes eight bytes. One of 32 bits writes the first four and
/// leaves the others as they are. If eight bytes end like that, their number is too large for any room,
/// in either byte order.
fn count_of(bytes: [u8; 8]) -> u64 {
    match bytes {
        [a, b, c, d, 0xff, 0xff, 0xff, 0xff] => u32::from_ne_bytes([a, b, c, d]).into(),
        _ => u64::from_ne_bytes(bytes),
    }
}

/// Asks for a slot until its answer is not EINVAL, a few times. After the table's end the kernel always
/// says EINVAL; of a slot that is being emptied it says so for a moment.
fn settled<T>(mut ask: impl FnMut() -> Result<T, Cause>) -> Result<T, Cause> {
    for _ in 1..SLOT_READS {
        match ask() {
            Err(Cause::Os(libc::EINVAL)) => {}
            answer => return answer,
        }
    }
    ask()
}
