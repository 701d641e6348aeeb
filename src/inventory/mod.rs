//! What is known of a host, as plain data: all that [`crate::choose`] and [`crate::check`] look at.
//!
//! An [`Inventory`] is filled from this host by [`Host::inventory`], or put together from a record of
//! another one. Nothing here asks the kernel. What could not be read is in its place as a
//! [`Problem`]: one bad device or port never hides another.
//!
//! ```
//! use uverbs::inventory::{Inventory, Wanted};
//!
//! let inventory: Inventory = uverbs::host::Host::new().inventory(&Wanted::default());
//! for record in &inventory.devices {
//!     println!("{}: {} ports", record.device.name, record.ports.len());
//! }
//! ```
//!
//! [`Host::inventory`]: crate::host::Host::inventory

#[cfg(feature = "serde")]
mod document;
mod node;
mod read;
pub mod settings;
#[cfg(feature = "serde")]
mod snapshot;
mod wanted;

pub use read::read_settings;

use crate::device::{Absence, Device};
use crate::error::Error;
use crate::guid::Guid;
use crate::hardware::Hardware;
use crate::host::{GidRecord, Source, means_no_netlink};
use crate::netdev::{Interface, Netdev};
use crate::pkey::PKey;
use crate::port::{PortAttributes, Rate};

pub use crate::text::{is_device_name, is_interface_name, is_plain, is_plain_char};
pub use node::NodeState;
pub use settings::{Setting, SettingsReading};
#[cfg(feature = "serde")]
pub use snapshot::{LONGEST_SNAPSHOT, SnapshotError, Snapshots};
pub use wanted::{Parts, Wanted};

/// What [`Inventory::host`] is if it could not be read.
const NAMELESS: &str = "?";

/// An answer, or why there is none.
pub type Answer<T> = Result<T, Problem>;

/// Why something is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The error's sentence: device, request, cause, advice.
    pub text: String,
    /// Its errno.
    pub errno: i32,
}

impl Problem {
    /// Whether it says what the process lacked that asked, and nothing of what it asked: it was interrupted, got no
    /// memory, or might open no more files.
    pub(crate) fn is_of_process(&self) -> bool {
        // EINTR, ENOMEM, ENFILE, EMFILE: also those of a recording, whatever machine reads it.
        matches!(self.errno, 4 | 12 | 23 | 24)
    }
}

impl From<&Error> for Problem {
    fn from(error: &Error) -> Self {
        Self { text: error.to_string(), errno: error.errno() }
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        Self::from(&error)
    }
}

/// A host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Inventory {
    /// Its name, unless only its sysfs tree was read: `?` if it could not be, as where a filter of system calls refuses
    /// `uname`. See [`name`](Self::name).
    pub host: Option<String>,
    /// Release of its kernel; `None` if that is not known.
    pub kernel: Option<String>,
    /// Kernel modules that matter to RDMA and are there, loaded or built in.
    pub modules: Vec<String>,
    /// Those of the modules that are not free software, by what the kernel says of them (`taint`); `None` if that
    /// is not known.
    pub proprietary: Option<Vec<String>>,
    /// How much memory the process that looked may lock; `None` if that is not known.
    pub locked_memory: Option<LockedMemory>,
    /// Whether the process that looked can open the connection manager's node (`rdma_cm`) for reading and writing, as
    /// librdmacm does; `None` if there is none, that is not known, or nobody looked.
    pub rdma_cm_access: Option<Answer<()>>,
    /// The same of any node for management datagrams (`umad0`), as libibumad opens them.
    pub umad_access: Option<Answer<()>>,
    /// Whether devices are shared by all network namespaces; `None` if the kernel does not say.
    pub shares_namespaces: Option<bool>,
    /// Whether netlink answered: RDMA netlink, and route netlink where interfaces of rows were asked for. Nothing else
    /// knows a port's interface.
    pub has_netlink: bool,
    /// The devices of this network namespace, in natural order of their names.
    pub devices: Vec<DeviceRecord>,
    /// Devices that are there and were not wanted: they were not opened.
    pub others: Vec<Device>,
    /// Why devices may be missing.
    pub absences: Vec<Absence>,
    /// The network interfaces of this namespace, ascending by index; `None` if they are not known.
    pub interfaces: Option<Vec<Interface>>,
    /// Whether something takes what arrives at UDP port 4791 (RoCE v2) in this network namespace, as the socket of soft RoCE
    /// does; `None` if that is not known, and where no device is one of soft RoCE.
    pub has_roce_socket: Option<bool>,
    /// Variables that choose GIDs, as they are set; of those that a release of NCCL sees, what comes
    /// first counts.
    pub settings: Vec<Setting>,
    /// NCCL's files of settings that could not be read, and settings that this version does not know. What NCCL
    /// does is not known if there are any.
    pub unread_settings: Vec<Problem>,
    /// Whether `$HOME` was taken for the home of this user's password entry, in which NCCL up to 2.29 looks for a file: the
    /// entry is in no file, and may be a directory service's.
    pub home_is_assumed: bool,
    /// What went wrong and is no device's; and why the interfaces of rows are not known, of ports that were not wanted.
    pub problems: Vec<Problem>,
    /// Why there may be devices that are neither among the `devices` nor `unlisted`; `None` if it is known which there
    /// are. It is also one of the `problems`.
    pub list_failure: Option<Problem>,
    /// Devices that could not be listed, by name.
    pub unlisted: Vec<(String, Problem)>,
    /// Why sysfs was read instead of RDMA netlink. Protocols and interfaces are not known then. It is also one of the
    /// [`problems`](Self::problems) if netlink was refused or failed, and something that was wanted is not known.
    pub without_netlink: Option<Problem>,
}

/// How much memory a process may lock. RDMA locks all memory that it registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LockedMemory {
    /// The limit that counts, in bytes (`RLIMIT_MEMLOCK`, the soft limit); `None` if there is none.
    pub limit: Option<u64>,
    /// Whether the process has `CAP_IPC_LOCK` in the initial user namespace, so that the limit is not applied to it.
    pub is_exempt: bool,
}

impl LockedMemory {
    /// This limit in bytes, or none, which is applied to the process.
    #[must_use]
    pub const fn new(limit: Option<u64>) -> Self {
        Self { limit, is_exempt: false }
    }
}

/// A device.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceRecord {
    /// What it is.
    pub device: Device,
    /// Where its node is in sysfs's own order. libibverbs lists devices so where RDMA netlink does not
    /// answer, else by their index; `None` there, and where it is not known.
    pub place: Option<u32>,
    /// The mode of its uverbs node, with the bits of the file's type; `None` if it is not there, or could not
    /// be looked at.
    pub node_mode: Option<u32>,
    /// Whether its uverbs node is known not to be where it should be.
    pub node_is_missing: bool,
    /// Whether its uverbs node is known to be in a mount with the option `nodev`, in which it cannot be opened.
    pub node_is_in_nodev: bool,
    /// Whether this user may not open its uverbs node for reading and writing, as programs with libibverbs do.
    pub node_is_read_only: bool,
    /// Whether the node could be opened for reading, which is enough for uverbs; `None` if that was not tried.
    pub access: Option<Answer<()>>,
    /// Its hardware and its place in the machine; `None` if that was not wanted, or could not be read.
    pub hardware: Option<Hardware>,
    /// Its ports, ascending.
    pub ports: Vec<PortRecord>,
    /// The GIDs of all ports, ascending by port and index; `None` if they were not wanted.
    pub gids: Option<Answer<Vec<GidRow>>>,
}

/// A port.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PortRecord {
    /// Its number.
    pub number: u32,
    /// Its attributes, and their source; `None` if they were not wanted.
    pub attributes: Option<Answer<(PortAttributes, Source)>>,
    /// Its effective rate; `None` if it was not wanted, or if the kernel or the driver does not offer it.
    pub effective: Option<Answer<Rate>>,
    /// Its GUID, if it has one.
    pub guid: Answer<Option<Guid>>,
    /// Its network interface, if that is in this network namespace; `None` also without RDMA netlink.
    pub netdev: Answer<Option<Netdev>>,
    /// The P_Keys in use with their indices; not asked for where the link layer is Ethernet, or where
    /// they are not wanted.
    pub pkeys: Option<Answer<Vec<(u32, PKey)>>>,
    /// Whether sysfs has the files with the types of GIDs; `None` if that was not looked at.
    pub has_types: Option<bool>,
}

/// A row of a GID table.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GidRow {
    /// The entry.
    pub record: GidRecord,
    /// Its network interface, if that is proven to be in this namespace: see [`crate::netdev`].
    pub netdev: Option<Netdev>,
    /// Whether no interface of this namespace can be its own. `false` if that is not known.
    pub netdev_is_elsewhere: bool,
    /// Whether sysfs, which NCCL and UCX read, refuses to show the row's type (`EINVAL`). The kernel of
    /// `MLNX_OFED` does so for rows of other namespaces.
    pub type_is_hidden: bool,
}

impl From<GidRecord> for GidRow {
    /// A row of whose interface nothing is known.
    fn from(record: GidRecord) -> Self {
        let type_is_hidden = record.type_is_unread;
        Self { record, netdev: None, netdev_is_elsewhere: false, type_is_hidden }
    }
}

impl Inventory {
    /// The name of the host, if it is known.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.host.as_deref().filter(|own| *own != NAMELESS)
    }

    /// Whether there are devices that were not wanted.
    #[must_use]
    pub fn is_partial(&self) -> bool {
        !self.others.is_empty()
    }

    /// Whether nothing at all was listed, and nothing kept devices from being listed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.devices.is_empty()
            && self.others.is_empty()
            && self.problems.is_empty()
            && self.unlisted.is_empty()
    }

    /// Why RDMA netlink was refused, or failed; `None` if it answered, and if the kernel has none (before 4.16, or without
    /// the RDMA core).
    #[must_use]
    pub fn netlink_failure(&self) -> Option<&Problem> {
        self.without_netlink.as_ref().filter(|own| !means_no_netlink(own.errno))
    }

    /// The interface with this index.
    #[must_use]
    pub fn interface(&self, index: u32) -> Option<&Interface> {
        let interfaces = self.interfaces.as_ref()?;
        let place = interfaces.binary_search_by_key(&index, |own| own.index.get()).ok()?;
        interfaces.get(place)
    }

    /// What could not be read, so that no sentence about all ports covers it.
    #[must_use]
    pub fn unread(&self) -> Vec<Unread<'_>> {
        let mut found = Vec::new();
        if !self.problems.is_empty() {
            found.push(Unread::Host);
        } else if !self.unlisted.is_empty() {
            found.push(Unread::Listing);
        }
        for record in &self.devices {
            let name = record.device.name.as_str();
            if record.problem().is_some() {
                found.push(Unread::Device(name));
                continue;
            }
            let ports = record.ports.iter().filter(|port| port.unread().is_some());
            found.extend(ports.map(|port| Unread::Port(name, port.number)));
        }
        found
    }

    /// A device by its name.
    #[must_use]
    pub fn device(&self, name: &str) -> Option<&DeviceRecord> {
        self.devices.iter().find(|record| record.device.name == name)
    }

    /// What a variable is set to, and where, as the newest release of NCCL sees it.
    #[must_use]
    pub fn setting(&self, name: &str) -> Option<&Setting> {
        self.setting_of(name, SettingsReading::NEWEST)
    }

    /// The same, as these releases of NCCL see it.
    #[must_use]
    pub fn setting_of(&self, name: &str, reading: SettingsReading) -> Option<&Setting> {
        let mut settings = self.settings.iter();
        settings.find(|setting| setting.name == name && setting.readings.contains(&reading))
    }
}

/// Something of a host that could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unread<'i> {
    /// Something that is no device's, as the list of interfaces: it may matter to each.
    Host,
    /// A device that could not be listed.
    Listing,
    /// A device's GID table, or all of the device.
    Device(&'i str),
    /// A port's attributes, or which network interface it has.
    Port(&'i str, u32),
}

impl core::fmt::Display for Unread<'_> {
    /// `mlx5_0` or `mlx5_0:1`, or in words what has no name.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Host => f.write_str("what is common to all devices"),
            Self::Listing => f.write_str("a device that could not be listed"),
            Self::Device(name) => f.write_str(name),
            Self::Port(name, port) => write!(f, "{name}:{port}"),
        }
    }
}

impl DeviceRecord {
    /// A device of which nothing was read yet.
    #[must_use]
    pub fn new(device: Device) -> Self {
        Self {
            device,
            place: None,
            node_mode: None,
            node_is_missing: false,
            node_is_in_nodev: false,
            node_is_read_only: false,
            access: None,
            hardware: None,
            ports: Vec::new(),
            gids: None,
        }
    }

    /// Why its GIDs could not be read.
    #[must_use]
    pub fn problem(&self) -> Option<&Problem> {
        self.gids.as_ref()?.as_ref().err()
    }

    /// Why sysfs was read although the ioctl was wanted.
    #[must_use]
    pub fn fallback(&self) -> Option<&Problem> {
        let problem = self.access.as_ref()?.as_ref().err()?;
        let is_same = |port: &PortRecord| port.guid.as_ref().err() == Some(problem);
        let is_closed = self.problem() == Some(problem) || self.ports.iter().any(is_same);
        (!is_closed && (self.gids.is_some() || !self.ports.is_empty())).then_some(problem)
    }

    /// The GIDs of all ports; none if they were not read.
    #[must_use]
    pub fn all_rows(&self) -> &[GidRow] {
        self.gids.as_ref().and_then(|gids| gids.as_deref().ok()).unwrap_or_default()
    }

    /// A port by its number.
    #[must_use]
    pub fn port(&self, number: u32) -> Option<&PortRecord> {
        let place = self.ports.binary_search_by_key(&number, |port| port.number).ok()?;
        self.ports.get(place)
    }

    /// The rows of a port's GID table; none if the table could not be read.
    #[must_use]
    pub fn rows(&self, port: u32) -> &[GidRow] {
        let rows = self.all_rows();
        let first = rows.partition_point(|row| row.record.entry.port() < port);
        let rows = rows.get(first..).unwrap_or_default();
        let end = rows.partition_point(|row| row.record.entry.port() == port);
        rows.get(..end).unwrap_or_default()
    }

    /// The row at an index of a port's GID table.
    #[must_use]
    pub fn row(&self, port: u32, index: u32) -> Option<&GidRow> {
        let rows = self.rows(port);
        let place = rows.binary_search_by_key(&index, |row| row.record.entry.index()).ok()?;
        rows.get(place)
    }
}

impl PortRecord {
    /// A port of which nothing was read yet.
    #[must_use]
    pub fn new(number: u32) -> Self {
        Self {
            number,
            attributes: None,
            effective: None,
            guid: Ok(None),
            netdev: Ok(None),
            pkeys: None,
            has_types: None,
        }
    }

    /// Its attributes, if they were read.
    #[must_use]
    pub fn known(&self) -> Option<&PortAttributes> {
        self.attributes.as_ref()?.as_ref().ok().map(|(attributes, _)| attributes)
    }

    /// Its network interface, if that is known and in this network namespace.
    #[must_use]
    pub fn netdev(&self) -> Option<&Netdev> {
        self.netdev.as_ref().ok()?.as_ref()
    }

    /// Why its attributes could not be read.
    #[must_use]
    pub fn problem(&self) -> Option<&Problem> {
        self.attributes.as_ref()?.as_ref().err()
    }

    /// Why something of it is not known that matters to what is said of all ports: its attributes, or which network
    /// interface it has.
    #[must_use]
    pub fn unread(&self) -> Option<&Problem> {
        self.problem().or(self.netdev.as_ref().err())
    }
}
