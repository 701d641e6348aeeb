//! GIDs: one entry, or all entries of a device.
//!
//! By ioctl: `QUERY_GID_ENTRY` and `QUERY_GID_TABLE`, in the kernel since 5.10, with the semantics
//! of [`ibv_query_gid_ex(3)`] and [`ibv_query_gid_table(3)`]. By sysfs: `gids`, `gid_attrs/types`
//! and `gid_attrs/ndevs` of each port, with the meaning that rdma-core gives them.
//!
//! An empty slot is an answer, `None`, not an error (the kernel says `ENODATA`). Tables are sparse
//! and their indices change: never take an entry's place in a list for its index.
//!
//! [`ibv_query_gid_ex(3)`]: https://man7.org/linux/man-pages/man3/ibv_query_gid_ex.3.html
//! [`ibv_query_gid_table(3)`]: https://man7.org/linux/man-pages/man3/ibv_query_gid_table.3.html

use core::fmt;
use core::num::NonZeroU32;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::Path;

use rustix::io::Errno;
use uverbs_uapi::device::{self as abi, node_type};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use crate::command::{Command, MAX_PAYLOAD};
use crate::context::Context;
use crate::error::{Cause, Error, Request, Result};
use crate::names::is_interface_name;
use crate::port::LinkLayer;
use crate::sysfs::{Folder, Sysfs};

/// Entries that one `QUERY_GID_TABLE` can return: 2047, as its length is a 16-bit field.
pub const MAX_TABLE_ENTRIES: usize = MAX_PAYLOAD / size_of::<GidEntry>();

/// Room that [`Context::query_gid_table`] tries first; few hosts have more valid entries.
const USUAL_ENTRIES: usize = 256;

/// The most slots of a port's table that are walked one by one. The largest table known has 1024.
const MAX_WALK: u32 = 1 << 16;

/// A global identifier: 16 bytes, written as an IPv6 address.
///
/// ```
/// use uverbs::gid::Gid;
/// let gid = Gid::from("::ffff:192.168.77.1".parse::<std::net::Ipv6Addr>()?);
/// assert_eq!(gid.ipv4(), Some([192, 168, 77, 1].into()));
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Gid([u8; 16]);

impl Gid {
    /// From its bytes, network order.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Its bytes, network order.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0
    }

    /// As an IPv6 address.
    #[must_use]
    pub const fn ipv6(self) -> Ipv6Addr {
        Ipv6Addr::from_octets(self.0)
    }

    /// The IPv4 address of a v4-mapped GID (`::ffff:a.b.c.d`), as RoCE makes of an IPv4 address.
    #[must_use]
    pub const fn ipv4(self) -> Option<Ipv4Addr> {
        self.ipv6().to_ipv4_mapped()
    }

    /// The upper half: the subnet prefix.
    #[must_use]
    pub const fn subnet_prefix(self) -> u64 {
        self.halves().0
    }

    /// The lower half: the interface identifier.
    #[must_use]
    pub const fn interface_id(self) -> u64 {
        self.halves().1
    }

    #[expect(clippy::cast_possible_truncation, reason = "the halves are what is wanted")]
    const fn halves(self) -> (u64, u64) {
        let number = u128::from_be_bytes(self.0);
        ((number >> 64) as u64, number as u64)
    }

    /// Whether all bytes are zero, as sysfs shows an empty slot.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        u128::from_be_bytes(self.0) == 0
    }

    /// The form sysfs uses: eight groups of four digits, nothing shortened.
    #[must_use]
    pub fn full(self) -> String {
        let mut text = String::with_capacity(39);
        for pair in self.0.chunks_exact(2) {
            if !text.is_empty() {
                text.push(':');
            }
            for byte in pair {
                text.push(char::from_digit(u32::from(byte >> 4), 16).unwrap_or('0'));
                text.push(char::from_digit(u32::from(byte & 15), 16).unwrap_or('0'));
            }
        }
        text
    }

    /// Reads the form sysfs uses, and only that.
    fn parse_full(text: &str) -> Option<Self> {
        let well_formed = text.len() == 39
            && text.bytes().enumerate().all(|(place, byte)| match place % 5 {
                4 => byte == b':',
                _ => byte.is_ascii_hexdigit(),
            });
        if !well_formed {
            return None;
        }
        let digits: String = text.chars().filter(|c| *c != ':').collect();
        u128::from_str_radix(&digits, 16).ok().map(|number| Self(number.to_be_bytes()))
    }
}

impl From<Ipv6Addr> for Gid {
    fn from(address: Ipv6Addr) -> Self {
        Self(address.octets())
    }
}

impl From<Ipv4Addr> for Gid {
    /// The v4-mapped GID.
    fn from(address: Ipv4Addr) -> Self {
        address.to_ipv6_mapped().into()
    }
}

impl fmt::Display for Gid {
    /// RFC 5952 text: shortened, with a v4-mapped address in dotted form.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.ipv6(), f)
    }
}

/// What a GID is used for. A newer kernel's types keep their number.
#[doc(alias = "ibv_gid_type")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GidType(pub u32);

impl GidType {
    /// InfiniBand; also what iWARP and EFA entries say.
    #[doc(alias = "IBV_GID_TYPE_IB")]
    pub const IB: Self = Self(abi::gid_type::IB);
    /// RoCE version 1 (Ethertype 0x8915).
    #[doc(alias = "IBV_GID_TYPE_ROCE_V1")]
    pub const ROCE_V1: Self = Self(abi::gid_type::ROCE_V1);
    /// RoCE version 2 (UDP port 4791).
    #[doc(alias = "IBV_GID_TYPE_ROCE_V2")]
    pub const ROCE_V2: Self = Self(abi::gid_type::ROCE_V2);
    /// A type that sysfs names in words which this version does not know. No kernel uses the number.
    pub const UNNAMED: Self = Self(u32::MAX);
}

impl fmt::Display for GidType {
    /// `ib`, `roce_v1`, `roce_v2` or `unknown(N)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::IB => f.pad("ib"),
            Self::ROCE_V1 => f.pad("roce_v1"),
            Self::ROCE_V2 => f.pad("roce_v2"),
            Self(other) => f.pad(&format!("unknown({other})")),
        }
    }
}

/// One valid entry of a GID table, in the kernel's own layout.
#[doc(alias = "ibv_gid_entry")]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
#[repr(transparent)]
pub struct GidEntry(abi::GidEntry);

impl GidEntry {
    /// Puts an entry together, as a test or a reader of another source needs it.
    #[must_use]
    pub fn new(
        port: u32,
        index: u32,
        gid: Gid,
        gid_type: GidType,
        netdev_ifindex: Option<NonZeroU32>,
    ) -> Self {
        Self(abi::GidEntry {
            gid: gid.0,
            gid_index: index,
            port_num: port,
            gid_type: gid_type.0,
            netdev_ifindex: netdev_ifindex.map_or(0, NonZeroU32::get),
        })
    }

    /// The GID.
    #[must_use]
    pub fn gid(&self) -> Gid {
        Gid(self.0.gid)
    }

    /// Index in the port's table.
    #[must_use]
    pub fn index(&self) -> u32 {
        self.0.gid_index
    }

    /// Port number.
    #[must_use]
    pub fn port(&self) -> u32 {
        self.0.port_num
    }

    /// The GID's type.
    #[must_use]
    pub fn gid_type(&self) -> GidType {
        GidType(self.0.gid_type)
    }

    /// Index of the network interface the GID belongs to, **in that interface's own network
    /// namespace**, which need not be this one: see [`crate::netdev`]. `None` on InfiniBand, and
    /// for iWARP before Linux 6.5.
    #[doc(alias = "ndev_ifindex")]
    #[must_use]
    pub fn netdev_ifindex(&self) -> Option<NonZeroU32> {
        NonZeroU32::new(self.0.netdev_ifindex)
    }
}

impl Context {
    /// Asks for one entry of a port's GID table: `None` if the slot is empty.
    ///
    /// One system call, no allocation. The kernel takes a reference on the entry while it answers;
    /// [`query_gid_table`](Self::query_gid_table) does not.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), uverbs::Error> {
    /// # let context = uverbs::device::Host::new().open("rxe0")?;
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
    /// # let context = uverbs::device::Host::new().open("rxe0")?;
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
    /// # let context = uverbs::device::Host::new().open("rxe0")?;
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

/// A GID entry as sysfs shows it. There is no interface index there, only a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SysfsGid {
    /// The entry, without an interface index.
    pub entry: GidEntry,
    /// The interface's name in **its own** network namespace, which need not be this one; `None`
    /// where there is no interface, or its name cannot be read.
    pub netdev: Option<String>,
    /// Whether the file with the interface's name cannot be read: then there may be one.
    pub netdev_is_unread: bool,
}

impl Sysfs {
    /// One entry of a port's GID table: `None` if the slot is empty.
    ///
    /// Reads up to three files; needs no rights and no uverbs node. The interface is named as the
    /// kernel names it, not looked up here: see [`crate::netdev`].
    ///
    /// # Errors
    /// `ENOENT`: no such device, here or any more; `EINVAL`: no such port, or the index is outside its
    /// table; `EPROTO`: a file that does not read as it should.
    #[doc(alias = "ibv_query_gid_ex")]
    pub fn query_gid_ex(&self, device: &str, port: u32, index: u32) -> Result<Option<SysfsGid>> {
        let request = || Request::GidEntry { port, index };
        self.steadily(device, request, |sysfs| {
            let folder =
                sysfs.port(device, port).map_err(|cause| Error::new(device, request(), cause))?;
            read_gid(&folder, port, index).map_err(|cause| {
                let slot = folder.join("gids").join(index.to_string());
                sysfs.missing_or(device, &folder, &slot, request(), cause)
            })
        })
    }

    /// All valid entries of all ports, ascending by port and index.
    ///
    /// # Errors
    /// `ENOENT`: no such device, here or any more; `EPROTO`: a file that does not read as it should.
    #[doc(alias = "ibv_query_gid_table")]
    pub fn query_gid_table(&self, device: &str) -> Result<Vec<SysfsGid>> {
        Ok(self.gid_slots(device)?.into_iter().filter_map(|slot| slot.gid).collect())
    }

    /// All slots of all ports, ascending by port and index.
    pub(crate) fn gid_slots(&self, device: &str) -> Result<Vec<Slot>> {
        self.steadily(device, || Request::GidTable, |sysfs| sysfs.read_slots(device))
    }

    fn read_slots(&self, device: &str) -> Result<Vec<Slot>> {
        let error = |path: &Path, cause| {
            Error::new(device, Request::Sysfs { path: path.to_owned() }, cause)
        };
        let ports = self
            .device(device)
            .map_err(|cause| Error::new(device, Request::GidTable, cause))?
            .join("ports");
        let mut slots = Vec::new();
        for port in ports.numbers().map_err(|cause| error(ports.path(), cause))? {
            let folder = ports.join(port.to_string());
            let gids = folder.join("gids");
            let indices = match gids.numbers() {
                Ok(indices) => indices,
                // A port without a GID table: its folder has no such entry.
                Err(Cause::Os(Errno::NOENT)) if folder.exists() => continue,
                Err(cause) => return Err(error(gids.path(), cause)),
            };
            for index in indices {
                let gid = read_gid(&folder, port, index).map_err(|cause| {
                    Error::new(device, Request::GidEntry { port, index }, cause)
                })?;
                slots.push(Slot { port, index, gid });
            }
        }
        Ok(slots)
    }
}

/// A slot of a port's GID table, as sysfs shows it.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) port: u32,
    pub(crate) index: u32,
    /// What is in it.
    pub(crate) gid: Option<SysfsGid>,
}

/// How often a slot is read again that changes while its files are read.
const SLOT_READS: u32 = 16;

/// Reads a slot's files; none if it is empty.
///
/// They are three files, and the slot may change between them. So the GID is read once more at
/// the end, and only if it still stands do the answers belong together.
fn read_gid(port_folder: &Folder, port: u32, index: u32) -> Result<Option<SysfsGid>, Cause> {
    let name = index.to_string();
    let gids = port_folder.join("gids");
    let read = || Gid::parse_full(&gids.read(&name)?).ok_or(Cause::Malformed("a GID"));
    let mut gid = read()?;
    for _ in 0..SLOT_READS {
        if gid.is_zero() {
            return Ok(None);
        }
        let gid_type = read_gid_type(port_folder, &name);
        let netdev = read_netdev(port_folder, &name);
        let again = read()?;
        if again == gid {
            let entry = GidEntry::new(port, index, gid, gid_type?, None);
            // What cannot be read is not known; what cannot be a name is a broken answer.
            if let Err(cause @ Cause::Malformed(_)) = netdev {
                return Err(cause);
            }
            let netdev_is_unread = netdev.is_err();
            let netdev = netdev.unwrap_or_default();
            return Ok(Some(SysfsGid { entry, netdev, netdev_is_unread }));
        }
        gid = again;
    }
    Err(Cause::Os(Errno::AGAIN))
}

/// Reads `gid_attrs/ndevs/I`; none if there is no interface, which the kernel says by EINVAL.
fn read_netdev(port_folder: &Folder, name: &str) -> Result<Option<String>, Cause> {
    let names = port_folder.join("gid_attrs/ndevs");
    match names.read(name) {
        Ok(text) if text.is_empty() => Ok(None),
        Ok(text) if is_interface_name(&text) => Ok(Some(text)),
        Ok(_) => Err(Cause::Malformed("an interface's name")),
        Err(Cause::Os(Errno::INVAL)) => Ok(None),
        // Kernels without the folder know no interfaces.
        Err(Cause::Os(Errno::NOENT)) if !names.exists() => Ok(None),
        Err(cause) => Err(cause),
    }
}

/// Reads `gid_attrs/types/I`, which does not tell InfiniBand and iWARP from RoCE v1: the link layer
/// and the node type do.
fn read_gid_type(port_folder: &Folder, name: &str) -> Result<GidType, Cause> {
    let attributes = port_folder.join("gid_attrs");
    match attributes.join("types").read(name) {
        Ok(text) => match text.as_str() {
            "RoCE v2" => return Ok(GidType::ROCE_V2),
            "IB/RoCE v1" => {}
            _ => return Ok(GidType::UNNAMED),
        },
        // What old kernels say of a slot that is not RoCE.
        Err(Cause::Os(Errno::INVAL)) => {}
        // Kernels without the folder have no RoCE v2.
        Err(Cause::Os(Errno::NOENT)) if !attributes.exists() => {}
        Err(cause) => return Err(cause),
    }
    let roce = LinkLayer::of_sysfs(port_folder)? == LinkLayer::ETHERNET
        && port_folder.join("../..").read_number("node_type")? != u64::from(node_type::RNIC);
    Ok(if roce { GidType::ROCE_V1 } else { GidType::IB })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK_LOCAL: &str = "fe80:0000:0000:0000:0011:22ff:fe33:4455";

    #[test]
    fn full_form_there_and_back() {
        let gid = Gid::parse_full(LINK_LOCAL).unwrap();
        assert_eq!(gid.full(), LINK_LOCAL);
        assert_eq!(gid.to_string(), "fe80::11:22ff:fe33:4455");
        assert_eq!(gid.subnet_prefix(), 0xfe80_0000_0000_0000);
        assert_eq!(gid.interface_id(), 0x0011_22ff_fe33_4455);
    }

    #[test]
    fn only_the_full_form_is_sysfs_text() {
        for text in [
            "",
            "fe80::1",
            &LINK_LOCAL.replace(':', "-"),
            &LINK_LOCAL[1..],
            "fe80:0000:0000:0000:0011:22ff:fe33:445g",
            "+e80:0000:0000:0000:0011:22ff:fe33:4455",
        ] {
            assert_eq!(Gid::parse_full(text), None, "{text:?}");
        }
    }

    // Miri has no `openat`.
    #[cfg(not(miri))]
    #[test]
    fn an_unreadable_interface_is_not_none() {
        let root = std::env::temp_dir().join(format!("uverbs-ndevs-{}", std::process::id()));
        let port = root.join("class/infiniband/rxe0/ports/1");
        for folder in ["gids", "gid_attrs/types", "gid_attrs/ndevs/1"] {
            std::fs::create_dir_all(port.join(folder)).unwrap();
        }
        for slot in 0..3 {
            std::fs::write(port.join(format!("gids/{slot}")), LINK_LOCAL).unwrap();
            std::fs::write(port.join(format!("gid_attrs/types/{slot}")), "RoCE v2\n").unwrap();
        }
        std::fs::write(port.join("gid_attrs/ndevs/0"), "d0\n").unwrap();
        // Slot 1 has a folder for a file, which cannot be read; slot 2 an empty file.
        std::fs::write(port.join("gid_attrs/ndevs/2"), "").unwrap();
        let table = Sysfs::at(&root).query_gid_table("rxe0").unwrap();
        let found: Vec<_> =
            table.iter().map(|gid| (gid.netdev.as_deref(), gid.netdev_is_unread)).collect();
        assert_eq!(found, [(Some("d0"), false), (None, true), (None, false)]);
        std::fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn types_keep_their_number() {
        assert_eq!(GidType(7).to_string(), "unknown(7)");
        assert_eq!(format!("{:>8}|", GidType::ROCE_V2), " roce_v2|");
    }

    #[test]
    fn a_full_call_holds_2047_entries() {
        assert_eq!(MAX_TABLE_ENTRIES, 2047);
    }
}
