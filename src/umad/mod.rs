//! Channel adapters and their ports as libibumad presents them, only from sysfs.
//!
//! The queries are those of [`umad_get_cas_names(3)`], [`umad_get_ca(3)`], [`umad_get_port(3)`] and
//! [`umad_get_ca_portguids(3)`]. They open no device node and need no permission. There are two sets of
//! rules:
//!
//! | | here | [`strict`] |
//! |---|---|---|
//! | for | Rust programs | the C interface: libibumad's rules to the letter |
//! | device names | of any length | of less than 20 bytes |
//! | a 10th port | a port like any other | the whole CA fails |
//! | a port that has no GIDs (a representor) or P_Keys (iWARP) | has none | the whole CA fails |
//! | a port that cannot be read | is an error of its own | the whole CA fails |
//! | no device at all | an empty list, `ENODEV` | a device named `mthca0` |
//! | a file without the value that belongs there | an error (`EPROTO`) | the number that `strtoul` reads, 0 of no number |
//!
//! Both use the same default device and port: see [`default_port`].
//!
//! [`umad_get_cas_names(3)`]: https://man7.org/linux/man-pages/man3/umad_get_cas_names.3.html
//! [`umad_get_ca(3)`]: https://man7.org/linux/man-pages/man3/umad_get_ca.3.html
//! [`umad_get_port(3)`]: https://man7.org/linux/man-pages/man3/umad_get_port.3.html
//! [`umad_get_ca_portguids(3)`]: https://man7.org/linux/man-pages/man3/umad_get_ca_portguids.3.html

mod choice;
pub mod strict;
#[cfg(test)]
pub(crate) mod tests;

use nix::libc;
use rustix::io::Errno;

use self::choice::Seen;
use crate::device::NodeType;
use crate::error::{Cause, Error, Request, Result};
use crate::gid::Gid;
use crate::guid::Guid;
use crate::pkey::PKey;
use crate::port::{LinkLayer, PhysState, PortState, Rate};
use crate::sysfs::{Folder, Sysfs, gid_slots, is_absent, name_of_speed, read_rate};
use crate::text::natural;

/// The files and folders of a device and of its ports.
mod file {
    pub(super) use crate::sysfs::CLASS;

    pub(super) const NODE_TYPE: &str = "node_type";
    pub(super) const NODE_GUID: &str = "node_guid";
    pub(super) const SYSTEM_GUID: &str = "sys_image_guid";
    pub(super) const FIRMWARE: &str = "fw_ver";
    pub(super) const HARDWARE: &str = "hw_rev";
    pub(super) const CA_TYPE: &str = "hca_type";
    pub(super) const PORTS: &str = "ports";
    pub(super) const LMC: &str = "lid_mask_count";
    pub(super) const SM_LID: &str = "sm_lid";
    pub(super) const SM_SL: &str = "sm_sl";
    pub(super) const LID: &str = "lid";
    pub(super) const STATE: &str = "state";
    pub(super) const PHYS_STATE: &str = "phys_state";
    pub(super) const RATE: &str = "rate";
    pub(super) const CAPABILITIES: &str = "cap_mask";
    pub(super) const LINK_LAYER: &str = "link_layer";
    pub(super) const GID_0: &str = "gids/0";
    pub(super) const PKEYS: &str = "pkeys";
}

/// A channel adapter, switch or router, or any other RDMA device that the caller named.
#[doc(alias = "umad_ca_t")]
#[derive(Debug)]
#[non_exhaustive]
pub struct Ca {
    /// The device's name.
    pub name: String,
    /// Its node type.
    pub node_type: NodeType,
    /// Node GUID.
    pub node_guid: Guid,
    /// System image GUID.
    pub system_guid: Guid,
    /// Firmware version, if the driver gives it.
    pub fw_ver: Option<String>,
    /// Hardware revision, if the driver gives it.
    pub hw_ver: Option<String>,
    /// The driver's name for the model, if it gives one.
    pub ca_type: Option<String>,
    /// Each port by its number, ascending: its attributes, or why they cannot be read. A switch has port
    /// 0; other devices count from 1.
    pub ports: Vec<(u32, Result<Port>)>,
}

/// A port with the attributes that libibumad gives. For more, see [`crate::port`].
#[doc(alias = "umad_port_t")]
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Port {
    /// Its number.
    pub number: u32,
    /// Base LID; 0 on RoCE.
    pub base_lid: u32,
    /// LID mask control: the port has 2^lmc LIDs.
    pub lmc: u8,
    /// LID of the subnet manager.
    pub sm_lid: u32,
    /// Service level of the subnet manager.
    pub sm_sl: u8,
    /// Logical state.
    pub state: PortState,
    /// Physical state.
    pub phys_state: PhysState,
    /// Nominal rate; `None` if the driver gives no width or speed that the kernel knows. It is also `None` for SDR on
    /// another link layer than Ethernet: sysfs says that of each speed that the kernel does not know.
    pub rate: Option<Rate>,
    /// Capability bits of the InfiniBand specification.
    pub capability_mask: u32,
    /// Link layer.
    pub link_layer: LinkLayer,
    /// The GID at index 0, all zero if that slot is empty; `None` if the port's GID table has
    /// no slot (representors of mlx5).
    pub gid: Option<Gid>,
    /// The P_Keys with their indices, ascending; `None` if the port has no table (iWARP).
    pub pkeys: Option<Vec<(u32, PKey)>>,
}

impl Port {
    /// The port's GUID: the lower half of the GID at index 0. `None` if there is no such GID or if that
    /// half is zero (iWARP).
    #[must_use]
    pub fn port_guid(&self) -> Option<Guid> {
        self.gid.map(Guid::from).filter(|guid| !guid.is_zero())
    }

    /// The subnet prefix: the upper half of the GID at index 0. `None` if there is no such GID.
    #[must_use]
    pub fn gid_prefix(&self) -> Option<u64> {
        self.gid.filter(|gid| !gid.is_zero()).map(Gid::subnet_prefix)
    }
}

/// The port GUIDs of a device.
#[derive(Debug)]
#[non_exhaustive]
pub struct PortGuids {
    /// The device's name.
    pub ca_name: String,
    /// Each port by its number, ascending: its GUID, or why it cannot be read. `None` if the GID at index
    /// 0 is empty, or there is no such slot.
    pub guids: Vec<(u32, Result<Option<Guid>>)>,
}

/// Lists the channel adapters, switches and routers, in natural order of their names.
///
/// As in libibumad, RoCE devices are included; iWARP, usNIC and EFA devices are not. A device that
/// vanishes during the call is left out. Without RDMA in the kernel the list is empty.
///
/// ```no_run
/// let sysfs = uverbs::sysfs::Sysfs::host();
/// println!("{}", uverbs::umad::ca_names(&sysfs)?.join(" "));
/// # Ok::<(), uverbs::Error>(())
/// ```
///
/// # Errors
/// If the folder of the devices exists but cannot be read, or a device's node type: `EACCES`, `EIO`, …; `ENOENT`
/// if there is no sysfs, or a copy lacks one of these; `EPROTO` if something covers the folder.
#[doc(alias = "umad_get_cas_names")]
#[doc(alias = "umad_get_ca_device_list")]
pub fn ca_names(sysfs: &Sysfs) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for name in class_names(sysfs)? {
        if infiniband(sysfs, &name)?.is_some() {
            names.push(name);
        }
    }
    names.sort_by(|one, other| natural(one, other));
    Ok(names)
}

/// Reads a device and all its ports.
///
/// ```no_run
/// let sysfs = uverbs::sysfs::Sysfs::host();
/// let ca = uverbs::umad::ca(&sysfs, "mlx5_0")?;
/// for (number, port) in &ca.ports {
///     match port {
///         Ok(port) => println!("{} port {number}: {}", ca.name, port.state),
///         Err(error) => eprintln!("{error}"),
///     }
/// }
/// # Ok::<(), uverbs::Error>(())
/// ```
///
/// # Errors
/// `ENODEV`: no such device; `EPROTO`: a file has unexpected content, a port comes or goes, or a copy of sysfs lacks a
/// port; otherwise the errno of the file that cannot be read. A port's failure is in [`Ca::ports`].
#[doc(alias = "umad_get_ca")]
pub fn ca(sysfs: &Sysfs, name: &str) -> Result<Ca> {
    let device = DeviceFolder::find(sysfs, name)?;
    let guid = |file| {
        device.ask(&device.folder, file, |folder| {
            folder.read(file)?.parse().map_err(|_| folder.malformed(file, "a GUID"))
        })
    };
    let text = |file| device.ask(&device.folder, file, |folder| folder.read_if_given(file));
    Ok(Ca {
        name: name.to_owned(),
        node_type: device.node_type,
        node_guid: guid(file::NODE_GUID)?,
        system_guid: guid(file::SYSTEM_GUID)?,
        fw_ver: text(file::FIRMWARE)?,
        hw_ver: text(file::HARDWARE)?,
        ca_type: text(file::CA_TYPE)?,
        ports: device.each_port(|number, _| read_port(sysfs, &device, number))?,
    })
}

/// Reads one port of a device.
///
/// ```no_run
/// let sysfs = uverbs::sysfs::Sysfs::host();
/// let port = uverbs::umad::port(&sysfs, "mlx5_0", 1)?;
/// println!("{} {}, LID {}", port.link_layer, port.state, port.base_lid);
/// # Ok::<(), uverbs::Error>(())
/// ```
///
/// # Errors
/// `ENODEV`: no such device; `EINVAL`: no such port; `EPROTO`: a file has unexpected content, the port comes or goes, or a
/// copy of sysfs lacks a port; otherwise the errno of the file that cannot be read.
#[doc(alias = "umad_get_port")]
pub fn port(sysfs: &Sysfs, name: &str, number: u32) -> Result<Port> {
    let device = DeviceFolder::find(sysfs, name)?;
    if !device.port_numbers()?.contains(&number) {
        let none = Error::new(name, Request::Port { port: number }, Cause::NoSuchPort);
        return device.still(Err(none));
    }
    device.still(read_port(sysfs, &device, number))
}

/// Reads the port GUIDs of a device, or of the default device if none is named.
///
/// Only the GID at index 0 of each port is read; its lower half is the GUID. A port's GUID is not the
/// node GUID. On RoCE it changes with the interface's MAC address.
///
/// ```no_run
/// let sysfs = uverbs::sysfs::Sysfs::host();
/// let ports = uverbs::umad::port_guids(&sysfs, None)?;
/// for (number, guid) in ports.guids {
///     match guid? {
///         Some(guid) => println!("{} port {number}: {guid}", ports.ca_name),
///         None => println!("{} port {number}: none", ports.ca_name),
///     }
/// }
/// # Ok::<(), uverbs::Error>(())
/// ```
///
/// # Errors
/// `ENODEV`: no such device, or no device can be the [default](default_port); `EPROTO`: a file has unexpected content, or
/// the port comes or goes; otherwise the errno of the file or folder that cannot be read. A port's failure is in its own
/// entry.
#[doc(alias = "umad_get_ca_portguids")]
pub fn port_guids(sysfs: &Sysfs, name: Option<&str>) -> Result<PortGuids> {
    let ca_name = match name {
        Some(name) => name.to_owned(),
        None => default_port(sysfs, None)?.0,
    };
    let device = DeviceFolder::find(sysfs, &ca_name)?;
    let guids = device.each_port(|_, folder| {
        let gid = device.ask(folder, file::GID_0, read_gid)?;
        Ok(gid.filter(|gid| !gid.is_zero()).map(Guid::from))
    })?;
    Ok(PortGuids { ca_name, guids })
}

/// Finds the default port of the device `ca`, or of all devices.
///
/// It is on the first device with an active InfiniBand port, otherwise on the first that might get one:
/// * a switch has port 0, and counts as active;
/// * the first `ACTIVE` port of link layer InfiniBand makes its device active;
/// * else the first such port with its physical link up is remembered;
/// * else the first port of any link layer that is not physically disabled is remembered.
///
/// "First" means the order in which the kernel lists the devices, as in libibumad. It is not the order of
/// names. So the answers agree whenever both have one. Ports that libibumad cannot handle count here too. Ports
/// that cannot be read are skipped, if another port of the device is usable. Else the device may have the default, as
/// one may that cannot be read: that is an error, unless a device with an active port comes before it.
///
/// ```no_run
/// let sysfs = uverbs::sysfs::Sysfs::host();
/// let (name, number) = uverbs::umad::default_port(&sysfs, None)?;
/// println!("{name}:{number}");
/// # Ok::<(), uverbs::Error>(())
/// ```
///
/// # Errors
/// `ENODEV`: no such device, or no port can be the default ([`Cause::NoDefaultPort`]); `EPROTO`: a file has unexpected
/// content, or something covers the devices; otherwise the errno of the file or folder that cannot be read.
pub fn default_port(sysfs: &Sysfs, ca: Option<&str>) -> Result<(String, u32)> {
    let best_of = |device: &DeviceFolder<'_>| {
        let ports = device.each_port(|number, folder| {
            let byte = |file| device.ask(folder, file, |folder| number_in(folder, file));
            Ok(Seen {
                number,
                infiniband: device.ask(folder, file::LINK_LAYER, LinkLayer::of_sysfs)?
                    == LinkLayer::INFINIBAND,
                state: byte(file::STATE)?,
                phys_state: byte(file::PHYS_STATE)?,
            })
        })?;
        let (mut seen, mut unread) = (Vec::<Seen>::new(), None);
        for (_, port) in ports {
            match port {
                Ok(port) => seen.push(port),
                Err(error) => unread = unread.or(Some(error)),
            }
        }
        let best = choice::port(device.node_type == NodeType::SWITCH, &seen, None);
        if best.is_some() { Ok(best) } else { unread.map_or(Ok(None), Err) }
    };
    if let Some(name) = ca {
        let best = best_of(&DeviceFolder::find(sysfs, name)?)?.ok_or_else(|| {
            let path = sysfs.folder(file::CLASS).path().join(name).join(file::PORTS);
            Error::new(name, Request::Sysfs { path }, Cause::NoDefaultPort)
        })?;
        return Ok((name.to_owned(), best.number));
    }
    let best = choice::device(&class_names(sysfs)?, |name| {
        let Some(device) = infiniband(sysfs, name)? else { return Ok(None) };
        unless_gone(best_of(&device)).map(Option::flatten)
    })?;
    best.ok_or_else(|| Error::of_host(Request::ListDevices, Cause::NoDefaultPort))
}

/// The names of all devices, in the order of the folder.
fn class_names(sysfs: &Sysfs) -> Result<Vec<String>> {
    Ok(sysfs.device_names()?.unwrap_or_default())
}

/// A device, if it is of InfiniBand's types, and still there.
fn infiniband<'n>(sysfs: &Sysfs, name: &'n str) -> Result<Option<DeviceFolder<'n>>> {
    let device = unless_gone(DeviceFolder::find(sysfs, name))?;
    Ok(device.filter(DeviceFolder::is_infiniband))
}

/// What was read of a device that was listed; `None` if it has gone since.
fn unless_gone<T>(read: Result<T>) -> Result<Option<T>> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(error) if error.is_no_such_device() => Ok(None),
        Err(error) => Err(error),
    }
}

/// That a device is not there, or no longer.
fn missing(name: &str) -> Error {
    Error::new(name, Request::ListDevices, Cause::NoSuchDevice)
}

/// Whether a device's node type was not read because there is no such device, or no longer, if what is not there
/// `is_removed`.
fn is_missing(cause: &Cause, is_removed: bool) -> bool {
    match cause.as_errno() {
        Errno::NOENT => is_removed,
        errno => is_absent(errno) || matches!(errno, Errno::NODEV | Errno::NAMETOOLONG),
    }
}

/// Whether what is not there in a device's folder was removed with it. A copy of sysfs may lack it.
fn is_removed(by_name: &Folder, folder: &Folder) -> bool {
    by_name.is_gone() || folder.is_of_kernel()
}

/// A device's folder whose node type was read. It stays that device's, whatever has its name now.
struct DeviceFolder<'n> {
    name: &'n str,
    /// What has its name now.
    by_name: Folder,
    folder: Folder,
    node_type: NodeType,
}

impl<'n> DeviceFolder<'n> {
    fn find(sysfs: &Sysfs, name: &'n str) -> Result<Self> {
        let folder = sysfs.device(name).map_err(|_| missing(name))?;
        let by_name = sysfs.folder(file::CLASS).join(name);
        let error = |cause: Cause, is_removed| {
            if !is_missing(&cause, is_removed) {
                let path = folder.path().join(file::NODE_TYPE);
                return Error::new(name, Request::Sysfs { path }, cause);
            }
            // Something may cover all devices.
            sysfs.device_names().err().unwrap_or_else(|| missing(name))
        };
        // A name that leads nowhere is no device that was removed, also in the kernel's folder: its name goes first.
        let held = folder.held().map_err(|errno| error(Cause::of(errno), by_name.is_gone()))?;
        let node_type =
            NodeType::of_sysfs(&held).map_err(|cause| error(cause, is_removed(&by_name, &held)))?;
        Ok(Self { name, by_name, folder: held, node_type })
    }

    fn is_infiniband(&self) -> bool {
        matches!(self.node_type, NodeType::CA | NodeType::SWITCH | NodeType::ROUTER)
    }

    /// Whether it was removed. Its folder is still open, but nothing is in it.
    fn is_gone(&self) -> bool {
        self.folder.join(file::PORTS).is_gone() && is_removed(&self.by_name, &self.folder)
    }

    /// Reads a file in a folder of this device. An error names both.
    fn ask<T>(
        &self,
        folder: &Folder,
        file: &str,
        question: impl FnOnce(&Folder) -> Result<T, Cause>,
    ) -> Result<T> {
        question(folder).map_err(|cause| {
            if self.is_gone() {
                return missing(self.name);
            }
            Error::new(self.name, Request::Sysfs { path: folder.path().join(file) }, cause)
        })
    }

    fn port_folder(&self, number: u32) -> Folder {
        self.folder.join(file::PORTS).join(number.to_string())
    }

    fn port_numbers(&self) -> Result<Vec<u32>> {
        self.folder.port_numbers(self.node_type).map_err(|(file, cause)| {
            let is_partly_gone = matches!(cause.errno(), libc::ENOENT | libc::EPROTO);
            if is_partly_gone && is_removed(&self.by_name, &self.folder) {
                return missing(self.name);
            }
            Error::new(self.name, Request::Sysfs { path: self.folder.path().join(file) }, cause)
        })
    }

    fn each_port<T>(
        &self,
        question: impl Fn(u32, &Folder) -> Result<T>,
    ) -> Result<Vec<(u32, Result<T>)>> {
        let numbers = self.port_numbers()?.into_iter();
        let all = numbers.map(|number| (number, question(number, &self.port_folder(number))));
        self.still(Ok(all.collect()))
    }

    /// What was read, if the device is still there. One that is being removed lists fewer ports.
    fn still<T>(&self, read: Result<T>) -> Result<T> {
        if self.is_gone() { Err(missing(self.name)) } else { read }
    }
}

fn read_port(sysfs: &Sysfs, device: &DeviceFolder, number: u32) -> Result<Port> {
    let folder = &device.port_folder(number);
    // Optional files come first: if the device is removed now, a later file is missing too.
    let gid = device.ask(folder, file::GID_0, read_gid)?;
    let own = sysfs.holding(device.name, device.folder.clone());
    let pkeys = own.query_pkeys(device.name, number)?;
    let byte = |file| device.ask(folder, file, |folder| number_in(folder, file));
    let word = |file| device.ask(folder, file, |folder| number_in(folder, file));
    let link_layer = device.ask(folder, file::LINK_LAYER, LinkLayer::of_sysfs)?;
    let rate = device.ask(folder, file::RATE, read_rate)?;
    let rate = Some(rate).filter(|rate| name_of_speed(rate, link_layer).is_some());
    Ok(Port {
        number,
        base_lid: word(file::LID)?,
        lmc: byte(file::LMC)?,
        sm_lid: word(file::SM_LID)?,
        sm_sl: byte(file::SM_SL)?,
        state: PortState(byte(file::STATE)?),
        phys_state: PhysState(byte(file::PHYS_STATE)?),
        rate: rate.as_deref().and_then(parse_rate),
        capability_mask: word(file::CAPABILITIES)?,
        link_layer,
        gid,
        pkeys: Some(pkeys).filter(|pkeys| !pkeys.is_empty()),
    })
}

fn number_in<T: TryFrom<u64>>(folder: &Folder, file: &str) -> Result<T, Cause> {
    let number = folder.read_number(file)?;
    number.try_into().map_err(|_| folder.malformed(file, "a number beyond its range"))
}

/// The GID at index 0; none if the table has no slot.
fn read_gid(port_folder: &Folder) -> Result<Option<Gid>, Cause> {
    match port_folder.read(file::GID_0) {
        Ok(text) => {
            let malformed = || port_folder.malformed(file::GID_0, "a GID");
            Gid::parse_full(&text).ok_or_else(malformed).map(Some)
        }
        // The kernel takes the files away before their folder, one after the other.
        Err(Cause::Os(libc::ENOENT)) => match gid_slots(port_folder) {
            Ok(slots) if slots.is_empty() => Ok(None),
            Ok(_) => Err(Cause::Os(libc::ENOENT)),
            Err((_, cause)) => Err(cause),
        },
        Err(cause) => Err(cause),
    }
}

/// The rate a text begins with: `2.5 Gb/sec (1X SDR)` is 2.5 Gb/s.
fn parse_rate(text: &str) -> Option<Rate> {
    let (number, unit) = text.split_once(' ')?;
    if !unit.starts_with("Gb/sec") {
        return None;
    }
    let (whole, tenth) = number.split_once('.').unwrap_or((number, "0"));
    if tenth.len() != 1 {
        return None;
    }
    let (whole, tenth): (u64, u64) = (whole.parse().ok()?, tenth.parse().ok()?);
    Some(Rate(whole.checked_mul(10)?.checked_add(tenth)?))
}
