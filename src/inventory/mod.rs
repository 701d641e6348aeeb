//! What is known of a host, as plain data: all that [`crate::choose`] and [`crate::check`] look at.
//!
//! An [`Inventory`] is filled from this host by [`Host::inventory`], or put together from a record of
//! another one. Nothing here asks the kernel. What could not be read stands where it belongs, as a
//! [`Problem`]: one bad device or port never hides another.
//!
//! ```
//! use uverbs::inventory::{Inventory, Wanted};
//!
//! let inventory: Inventory = uverbs::device::Host::new().inventory(&Wanted::default());
//! for record in &inventory.devices {
//!     println!("{}: {} ports", record.device.name, record.ports.len());
//! }
//! ```
//!
//! [`Host::inventory`]: crate::device::Host::inventory

mod read;
pub mod settings;

use crate::device::{Absence, Device};
use crate::error::Error;
use crate::guid::Guid;
use crate::netdev::{Interface, Netdev};
use crate::pkey::PKey;
use crate::port::{PortAttributes, Rate};
use crate::reader::{GidRecord, Source};

pub use read::Wanted;
pub use settings::Setting;

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
pub struct Inventory {
    /// Its name, unless only its sysfs tree was read.
    pub host: Option<String>,
    /// Release of its kernel, likewise.
    pub kernel: Option<String>,
    /// Kernel modules that matter to RDMA and are there, loaded or built in.
    pub modules: Vec<String>,
    /// Whether devices are shared by all network namespaces; `None` if the kernel does not tell.
    pub shares_namespaces: Option<bool>,
    /// Whether RDMA netlink answered, which alone tells what interface a port has.
    pub has_netlink: bool,
    /// The devices of this network namespace, in natural order of their names.
    pub devices: Vec<DeviceRecord>,
    /// Why devices may be missing.
    pub absences: Vec<Absence>,
    /// The network interfaces of this namespace; `None` if they are not known.
    pub interfaces: Option<Vec<Interface>>,
    /// Variables that choose GIDs, as they are set; what comes first counts.
    pub settings: Vec<Setting>,
    /// What went wrong and is no device's.
    pub problems: Vec<Problem>,
}

/// A device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceRecord {
    /// What it is.
    pub device: Device,
    /// The mode of its uverbs node, with the bits of the file's type; `None` if it is not there.
    pub node_mode: Option<u32>,
    /// Whether the node could be opened; `None` if that was not tried.
    pub access: Option<Answer<()>>,
    /// Its ports, ascending.
    pub ports: Vec<PortRecord>,
    /// The GIDs of all ports, ascending by port and index.
    pub gids: Answer<Vec<GidRow>>,
}

/// A port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortRecord {
    /// Its number.
    pub number: u32,
    /// Its attributes, and who told them.
    pub attributes: Answer<(PortAttributes, Source)>,
    /// Its effective rate, where the driver tells.
    pub effective: Option<Rate>,
    /// Its GUID, if it has one.
    pub guid: Answer<Option<Guid>>,
    /// Its network interface, if that is in this network namespace.
    pub netdev: Option<Netdev>,
    /// The P_Keys in use with their indices; not asked for where the link layer is Ethernet.
    pub pkeys: Option<Answer<Vec<(u32, PKey)>>>,
}

/// A row of a GID table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GidRow {
    /// The entry.
    pub record: GidRecord,
    /// Its network interface, if that is shown to be in this namespace: see [`crate::netdev`].
    pub netdev: Option<Netdev>,
    /// Whether sysfs, which NCCL and UCX ask, refuses to tell the row's type (`EINVAL`). The kernel of
    /// `MLNX_OFED` does so for rows of other namespaces.
    pub type_is_hidden: bool,
}

impl Inventory {
    /// The interface with this index.
    #[must_use]
    pub fn interface(&self, index: u32) -> Option<&Interface> {
        self.interfaces.as_ref()?.iter().find(|interface| interface.index.get() == index)
    }

    /// A device by its name.
    #[must_use]
    pub fn device(&self, name: &str) -> Option<&DeviceRecord> {
        self.devices.iter().find(|record| record.device.name == name)
    }

    /// What a variable is set to, and where.
    #[must_use]
    pub fn setting(&self, name: &str) -> Option<&Setting> {
        self.settings.iter().find(|setting| setting.name == name)
    }
}

impl DeviceRecord {
    /// A device of which nothing was read yet.
    #[must_use]
    pub fn new(device: Device) -> Self {
        Self { device, node_mode: None, access: None, ports: Vec::new(), gids: Ok(Vec::new()) }
    }

    /// A port by its number.
    #[must_use]
    pub fn port(&self, number: u32) -> Option<&PortRecord> {
        self.ports.iter().find(|port| port.number == number)
    }

    /// The rows of a port's GID table; none if the table could not be read.
    pub fn rows(&self, port: u32) -> impl Iterator<Item = &GidRow> {
        let rows = self.gids.iter().flatten();
        rows.filter(move |row| row.record.entry.port() == port)
    }
}
