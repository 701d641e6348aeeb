//! One device read by the best source there is, with the source named in every answer.
//!
//! `Auto` takes the ioctl. Only where the kernel, the rights or the container leave no ioctl does
//! it read sysfs instead, and keeps the reason. Any other error stands: it is never papered over
//! by the other source.

use core::fmt;

use crate::context::Context;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::gid::{GidEntry, SysfsGid};
use crate::guid::Guid;
use crate::port::PortAttributes;
use crate::sysfs::Sysfs;

/// Which source is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Preference {
    /// The ioctl, or sysfs where no ioctl is to be had.
    #[default]
    Auto,
    /// The ioctl and nothing else.
    Ioctl,
    /// Sysfs and nothing else; the device is not opened.
    Sysfs,
}

/// Which source answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The uverbs ioctl.
    Ioctl,
    /// Sysfs.
    Sysfs,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Ioctl => "ioctl",
            Self::Sysfs => "sysfs",
        })
    }
}

/// A GID entry, the source that told it, and what is known of its network interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GidRecord {
    /// The entry.
    pub entry: GidEntry,
    /// Who told.
    pub source: Source,
    /// The interface's name in its own network namespace, as sysfs tells it: which need not be
    /// this one. [`crate::netdev`] finds out.
    pub sysfs_netdev: Option<String>,
}

impl From<GidEntry> for GidRecord {
    fn from(entry: GidEntry) -> Self {
        Self { entry, source: Source::Ioctl, sysfs_netdev: None }
    }
}

impl From<SysfsGid> for GidRecord {
    fn from(SysfsGid { entry, netdev }: SysfsGid) -> Self {
        Self { entry, source: Source::Sysfs, sysfs_netdev: netdev }
    }
}

/// Reads one device.
///
/// ```no_run
/// use uverbs::device::Host;
/// use uverbs::reader::{Preference, Reader};
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
}

impl<'d> Reader<'d> {
    /// Opens the device, unless sysfs alone is wanted.
    ///
    /// # Errors
    /// Those of [`Context::open`]; with `Auto` only those that sysfs is no answer to.
    pub fn new(device: &'d Device, sysfs: &'d Sysfs, preference: Preference) -> Result<Self> {
        let mut reader = Self { device, sysfs, preference, context: None, fallback: None };
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
        Ok((sysfs(self.sysfs, &self.device.name)?, Source::Sysfs))
    }

    /// One GID; `None` if the slot is empty.
    ///
    /// # Errors
    /// Those of [`Context::query_gid_ex`] or [`Sysfs::query_gid_ex`].
    pub fn gid(&mut self, port: u32, index: u32) -> Result<Option<GidRecord>> {
        let (record, _) = self.ask(
            |context| Ok(context.query_gid_ex(port, index)?.map(GidRecord::from)),
            |sysfs, name| Ok(sysfs.query_gid_ex(name, port, index)?.map(GidRecord::from)),
        )?;
        Ok(record)
    }

    /// All GIDs of all ports, ascending by port and index.
    ///
    /// # Errors
    /// Those of [`Context::query_gid_table`] or [`Sysfs::query_gid_table`].
    pub fn gid_table(&mut self) -> Result<Vec<GidRecord>> {
        let (mut records, _): (Vec<GidRecord>, _) = self.ask(
            |context| Ok(context.query_gid_table()?.into_iter().map(Into::into).collect()),
            |sysfs, name| Ok(sysfs.query_gid_table(name)?.into_iter().map(Into::into).collect()),
        )?;
        records.sort_by_key(|record| (record.entry.port(), record.entry.index()));
        Ok(records)
    }

    /// A port's attributes. The ioctl cannot name ports above 255: with `Auto`, sysfs tells theirs.
    ///
    /// # Errors
    /// Those of [`Context::query_port`] or [`Sysfs::query_port`].
    pub fn port(&mut self, port: u32) -> Result<(PortAttributes, Source)> {
        if self.preference == Preference::Auto && port > u8::MAX.into() {
            return Ok((self.sysfs.query_port(&self.device.name, port)?, Source::Sysfs));
        }
        self.ask(|context| context.query_port(port), |sysfs, name| sysfs.query_port(name, port))
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
