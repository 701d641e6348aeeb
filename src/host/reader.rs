//! One device read by the best source there is, with the source named in every answer.
//!
//! `Auto` takes the ioctl. Only where the kernel, the rights or the container leave no ioctl does
//! it read sysfs instead, and keeps the reason. Any other error is the answer: it is never covered up
//! by the other source.

use core::ops::Deref;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use nix::libc;

use crate::context::Context;
use crate::device::Device;
use crate::error::{Cause, Error, Request, Result};
use crate::gid::{GidRecord, Source};
use crate::guid::Guid;
use crate::port::PortAttributes;
use crate::sysfs::{CLASS, Slot, Sysfs};

/// Which source is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Preference {
    /// The ioctl, or sysfs where there is no ioctl.
    #[default]
    Auto,
    /// The ioctl and nothing else.
    Ioctl,
    /// Sysfs and nothing else; the device is not opened.
    Sysfs,
}

/// All GIDs of all ports of a device, ascending by port and index, as one reading found them.
///
/// Only [`Reader::gid_table`] makes it. Whose interface a row belongs to shows only among all rows of
/// its port: so [`Host::netdevs`](crate::host::Host::netdevs) takes this and nothing less.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GidTable {
    device: Device,
    records: Vec<GidRecord>,
    /// The ports whose tables have no free slot, or may have none.
    full: BTreeSet<u32>,
}

impl GidTable {
    /// The device.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The row of a port's slot; `None` if the slot is empty.
    #[must_use]
    pub fn row(&self, port: u32, index: u32) -> Option<&GidRecord> {
        self.place(port, index).and_then(|place| self.records.get(place))
    }

    pub(crate) fn place(&self, port: u32, index: u32) -> Option<usize> {
        let key = |record: &GidRecord| (record.entry.port(), record.entry.index());
        self.records.binary_search_by_key(&(port, index), key).ok()
    }

    /// The rows without the rest.
    #[must_use]
    pub fn into_records(self) -> Vec<GidRecord> {
        self.records
    }

    /// Whether a port's table may have been without room for a row that is missing.
    pub(crate) fn is_full(&self, port: u32) -> bool {
        self.full.contains(&port)
    }

    /// A table with these rows, and room for more.
    #[cfg(test)]
    pub(crate) fn sample(device: &str, records: Vec<GidRecord>) -> Self {
        Self { device: Device::sample(device), records, full: BTreeSet::new() }
    }

    /// The same, of another device.
    #[cfg(test)]
    pub(crate) fn of(self, device: Device) -> Self {
        Self { device, ..self }
    }

    /// The same, without room.
    #[cfg(test)]
    pub(crate) fn filled(mut self) -> Self {
        self.full = self.records.iter().map(|record| record.entry.port()).collect();
        self
    }
}

impl Deref for GidTable {
    type Target = [GidRecord];

    fn deref(&self) -> &[GidRecord] {
        &self.records
    }
}

impl IntoIterator for GidTable {
    type Item = GidRecord;
    type IntoIter = std::vec::IntoIter<GidRecord>;

    fn into_iter(self) -> Self::IntoIter {
        self.records.into_iter()
    }
}

impl<'t> IntoIterator for &'t GidTable {
    type Item = &'t GidRecord;
    type IntoIter = core::slice::Iter<'t, GidRecord>;

    fn into_iter(self) -> Self::IntoIter {
        self.records.iter()
    }
}

/// Reads one device.
///
/// ```no_run
/// use uverbs::Host;
/// use uverbs::host::{Preference, Reader};
///
/// let mut host = Host::new();
/// let device = host.device("rxe0")?;
/// let mut reader = Reader::new(&device, host.sysfs(), Preference::Auto)?;
/// for record in reader.gid_table()? {
///     println!("{} (by {})", record.entry.gid(), record.source);
/// }
/// if let Some(reason) = reader.fallback() {
///     eprintln!("sysfs, because: {reason}");
/// }
/// # Ok::<(), uverbs::Error>(())
/// ```
#[derive(Debug)]
pub struct Reader<'d> {
    device: &'d Device,
    sysfs: &'d Sysfs,
    preference: Preference,
    context: Option<Context>,
    fallback: Option<Error>,
    /// The tree of this device, once it was wanted.
    own: OnceLock<Box<Sysfs>>,
}

impl<'d> Reader<'d> {
    /// One with this open device.
    #[cfg(all(test, feature = "simulated-kernel"))]
    pub(crate) fn simulated(
        device: &'d Device,
        sysfs: &'d Sysfs,
        preference: Preference,
        context: Context,
    ) -> Self {
        let (context, own) = (Some(context), OnceLock::new());
        Self { device, sysfs, preference, context, fallback: None, own }
    }

    /// Opens the device, unless only sysfs is wanted.
    ///
    /// # Errors
    /// Those of [`Context::open`]; with `Auto` only those that sysfs is no answer to.
    pub fn new(device: &'d Device, sysfs: &'d Sysfs, preference: Preference) -> Result<Self> {
        let own = OnceLock::new();
        let mut reader = Self { device, sysfs, preference, context: None, fallback: None, own };
        if preference != Preference::Sysfs {
            match Context::open(device) {
                Ok(context) => reader.context = Some(context),
                Err(error) => reader.fall_back(error)?,
            }
        }
        Ok(reader)
    }

    /// Why sysfs was read although the ioctl was wanted.
    #[must_use]
    pub fn fallback(&self) -> Option<&Error> {
        self.fallback.as_ref()
    }

    /// The open context, where there is one.
    #[must_use]
    pub fn context(&self) -> Option<&Context> {
        self.context.as_ref()
    }

    /// The tree in which the device's name means this device, whatever has its name now.
    ///
    /// # Errors
    /// Those of [`Sysfs::of`].
    pub fn sysfs(&self) -> Result<&Sysfs> {
        if let Some(own) = self.own.get() {
            return Ok(own);
        }
        let own = Box::new(self.sysfs.of(self.device)?);
        Ok(self.own.get_or_init(|| own))
    }

    /// Whether the tree has nothing by the device's name, not even another device.
    pub(crate) fn has_no_name_in_sysfs(&self) -> bool {
        self.sysfs.folder(CLASS).join(&self.device.name).is_gone()
    }

    fn fall_back(&mut self, error: Error) -> Result<()> {
        if self.preference == Preference::Auto && error.leaves_no_ioctl() {
            self.fallback = Some(error);
            Ok(())
        } else {
            Err(error)
        }
    }

    /// Asks by ioctl, or by sysfs where that leaves it.
    fn ask<T>(
        &mut self,
        ioctl: impl FnOnce(&Context) -> Result<T>,
        sysfs: impl FnOnce(&Sysfs, &str) -> Result<T>,
    ) -> Result<(T, Source)> {
        if let Some(context) = &self.context {
            match ioctl(context) {
                Ok(answer) => return Ok((answer, Source::Ioctl)),
                Err(error) => self.fall_back(error)?,
            }
        }
        Ok((sysfs(self.sysfs()?, &self.device.name)?, Source::Sysfs))
    }

    /// One GID; `None` if the slot is empty.
    ///
    /// # Errors
    /// Those of [`Context::query_gid_ex`] or [`Sysfs::query_gid_ex`].
    pub fn gid(&mut self, port: u32, index: u32) -> Result<Option<GidRecord>> {
        let (record, _) = self.ask(
            |context| Ok(context.query_gid_ex(port, index)?.map(GidRecord::from)),
            |sysfs, name| sysfs.query_gid_ex(name, port, index),
        )?;
        Ok(record)
    }

    /// All GIDs of all ports, ascending by port and index.
    ///
    /// By ioctl, one more call for each port with interfaces finds out whether its table is full.
    ///
    /// # Errors
    /// Those of [`Context::query_gid_table`] or [`Sysfs::query_gid_table`]; `EPROTO`, too, if what was read does not have each
    /// slot once, or has others than the device's ports.
    pub fn gid_table(&mut self) -> Result<GidTable> {
        let device = self.device;
        let ((mut records, full), _) =
            self.ask(table_by_ioctl, |sysfs, _| table_by_sysfs(sysfs, device))?;
        let slot = |record: &GidRecord| (record.entry.port(), record.entry.index());
        records.sort_by_key(slot);
        let ports = self.device.ports();
        let is_twice =
            records.windows(2).any(|own| matches!(own, [one, two] if slot(one) == slot(two)));
        if is_twice || records.iter().any(|own| !ports.contains(&own.entry.port())) {
            let cause =
                Cause::Malformed("a GID table with each slot once, and none of another port");
            return Err(Error::new(&*self.device.name, Request::GidTable, cause));
        }
        Ok(GidTable { device: self.device.clone(), records, full })
    }

    /// A port's attributes. The ioctl cannot name ports above 255: with `Auto`, sysfs is read for them. So it is for the
    /// [speed](PortAttributes::active_speed) where the ioctl leaves open which it is. There is none where the process has no
    /// sysfs, or may not read it.
    ///
    /// # Errors
    /// Those of [`Context::query_port`] or [`Sysfs::query_port`].
    pub fn port(&mut self, port: u32) -> Result<(PortAttributes, Source)> {
        if self.preference == Preference::Auto && port > u8::MAX.into() {
            return Ok((self.sysfs()?.query_port(&self.device.name, port)?, Source::Sysfs));
        }
        let (mut attributes, source) = self
            .ask(|context| context.query_port(port), |sysfs, name| sysfs.query_port(name, port))?;
        let is_open = source == Source::Ioctl && attributes.active_speed.is_none();
        if is_open && self.preference == Preference::Auto {
            let speed =
                |sysfs: &Sysfs| sysfs.speed_beyond_hdr(&self.device.name, port, &attributes);
            attributes.active_speed = match self.sysfs().and_then(speed) {
                // The rest is known where sysfs is hidden, too.
                Err(hidden) if hidden.is_permission_denied() || hidden.errno() == libc::ENOENT => {
                    None
                }
                found => found?,
            };
        }
        Ok((attributes, source))
    }

    /// A port's GUID: the lower half of its GID at index 0. `None` if that slot is empty, if the
    /// half is zero (iWARP), or if the port has no GID table.
    ///
    /// # Errors
    /// Those of [`gid`](Self::gid) and [`port`](Self::port).
    #[doc(alias = "umad_get_ca_portguids")]
    pub fn port_guid(&mut self, port: u32) -> Result<Option<Guid>> {
        match self.gid(port, 0) {
            Ok(record) => {
                let guid = record.map(|record| Guid::from(record.entry.gid()));
                Ok(guid.filter(|guid| !guid.is_zero()))
            }
            // EINVAL says "no such port" as well as "no such index".
            Err(error) => match self.port(port) {
                Ok((attributes, _)) if attributes.gid_tbl_len == 0 => Ok(None),
                _ => Err(error),
            },
        }
    }
}

/// Slots below this one may be kept for GIDs made of MAC addresses: one for each type of RoCE.
const UNRESERVED: u32 = 2;

/// The rows of a device, and which of its ports' tables have no free slot.
type Rows = (Vec<GidRecord>, BTreeSet<u32>);

fn table_by_ioctl(context: &Context) -> Result<Rows> {
    let records: Vec<GidRecord> =
        context.query_gid_table()?.into_iter().map(GidRecord::from).collect();
    let mut used: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    for record in records.iter().filter(|record| record.may_have_netdev()) {
        used.entry(record.entry.port()).or_default().insert(record.entry.index());
    }
    let is_full = |port: &u32, used: &BTreeSet<u32>| {
        let beyond = used.last().map_or(0, |last| last.saturating_add(1)).max(UNRESERVED);
        let is_gapless = (UNRESERVED..beyond).all(|index| used.contains(&index));
        // No slot after the last row, or none that answers.
        is_gapless && context.query_gid_ex(*port, beyond).is_err()
    };
    let full = used.iter().filter(|(port, used)| is_full(port, used)).map(|(port, _)| *port);
    let full = full.collect();
    Ok((records, full))
}

fn table_by_sysfs(sysfs: &Sysfs, device: &Device) -> Result<Rows> {
    let (ports, slots) = sysfs.gid_slots(&device.name)?;
    if !ports.into_iter().eq(device.ports()) {
        let cause = Cause::Malformed("a table of each port that the device was listed with");
        return Err(Error::new(&*device.name, Request::GidTable, cause));
    }
    let is_free = |slot: &&Slot| slot.gid.is_none() && slot.index >= UNRESERVED;
    let with_room: BTreeSet<u32> = slots.iter().filter(is_free).map(|slot| slot.port).collect();
    let full = slots.iter().map(|slot| slot.port).filter(|port| !with_room.contains(port));
    let full = full.collect();
    Ok((slots.into_iter().filter_map(|slot| slot.gid).collect(), full))
}

#[cfg(all(test, feature = "simulated-kernel"))]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use crate::driver::DriverId;
    use crate::error::Cause;
    use crate::simulated::{SimulatedKernel, UserMemory};
    use nix::libc;
    use rustix::io::Errno;
    use uverbs_uapi::device::method;

    /// Gives a context, and refuses all else.
    #[derive(Debug)]
    struct Refusing(Errno);

    impl SimulatedKernel for Refusing {
        fn ioctl(&self, request: &mut [u8], _: &UserMemory<'_>) -> Result<(), Errno> {
            let is_context = request.get(4..6) == Some(&method::GET_CONTEXT.to_ne_bytes());
            if is_context { Ok(()) } else { Err(self.0) }
        }
    }

    /// The source of a port's attributes where the ioctl is refused so, and why it is sysfs.
    fn asked(
        preference: Preference,
        errno: Errno,
        port: u32,
    ) -> Result<(Source, Option<Cause>), Cause> {
        let tree = tempfile::tempdir().unwrap();
        let folder = tree.path().join(format!("class/infiniband/sim0/ports/{port}"));
        for table in ["gids", "pkeys"] {
            std::fs::create_dir_all(folder.join(table)).unwrap();
        }
        for (name, text) in [
            ("pkeys/0", "0xffff"),
            ("state", "4: ACTIVE"),
            ("phys_state", "5: LinkUp"),
            ("link_layer", "Ethernet"),
            ("lid", "0x0"),
            ("sm_lid", "0x0"),
            ("sm_sl", "0"),
            ("lid_mask_count", "0"),
            ("cap_mask", "0x00010000"),
        ] {
            std::fs::write(folder.join(name), format!("{text}\n")).unwrap();
        }
        let sysfs = Sysfs::at(tree.path());
        let device = Device::named("sim0");
        let kernel = Box::new(Refusing(errno));
        let context = Context::simulated("sim0", 1..=1, DriverId::RXE, kernel).unwrap();
        let mut reader = Reader::simulated(&device, &sysfs, preference, context);
        let answer = reader.port(port).map_err(|error| error.cause().clone())?;
        Ok((answer.1, reader.fallback().map(|error| error.cause().clone())))
    }

    #[test]
    fn sysfs_answers_only_where_there_is_no_ioctl() {
        let unknown = Errno::PROTONOSUPPORT;
        let because = Some(Cause::UnknownToKernel);
        assert_eq!(asked(Preference::Auto, unknown, 1), Ok((Source::Sysfs, because)));
        assert_eq!(asked(Preference::Ioctl, unknown, 1), Err(Cause::UnknownToKernel));
        // What is no answer is not made one.
        for errno in [Errno::INVAL, Errno::NOMEM] {
            assert_eq!(asked(Preference::Auto, errno, 1), Err(Cause::of(errno)));
        }
        assert_eq!(asked(Preference::Auto, Errno::IO, 1), Err(Cause::DeviceGone(libc::EIO)));
    }

    /// A port that is not there yet, or no more, is missed.
    #[test]
    fn a_table_has_each_port_of_the_device() {
        let tree = tempfile::tempdir().unwrap();
        let folder = tree.path().join("class/infiniband/sim0");
        std::fs::create_dir_all(folder.join("ports/1/gids")).unwrap();
        std::fs::write(folder.join("node_type"), "1: CA\n").unwrap();
        let sysfs = Sysfs::at(tree.path());
        let table = |port_count| {
            let device = Device { port_count, ..Device::named("sim0") };
            let mut reader = Reader::new(&device, &sysfs, Preference::Sysfs).unwrap();
            reader.gid_table().map(|table| table.records.len()).map_err(|error| error.errno())
        };
        assert_eq!([table(1), table(2)], [Ok(0), Err(libc::EPROTO)]);
    }

    #[test]
    fn sysfs_answers_for_ports_that_the_ioctl_cannot_name() {
        assert_eq!(asked(Preference::Auto, Errno::NOMEM, 256), Ok((Source::Sysfs, None)));
        assert_eq!(asked(Preference::Auto, Errno::NOMEM, 255), Err(Cause::Os(libc::ENOMEM)));
        assert!(asked(Preference::Ioctl, Errno::NOMEM, 256).is_err());
    }
}
