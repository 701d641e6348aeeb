//! Reading sysfs: `/sys`, or the same tree rooted elsewhere.
//!
//! Files are small, one value each, and may vanish between listing and reading. Nothing here
//! trusts them: a file is read once; what does not parse, or is longer than the kernel's files, is an error. A folder
//! of numbers may have other names, which are passed over. A `Folder` reads them. The meaning of the files is known
//! to the other modules below, and to [`crate::umad`].

mod counters;
mod device;
pub(crate) mod folder;
mod gid;
mod hardware;
mod namesake;
mod node;
mod number;
mod pkey;
mod port;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use nix::libc;

use crate::error::{Cause, Error, Request};
use crate::text::is_file_name;
pub(crate) use folder::Unread;
use folder::cause;
use namesake::Shown;

pub(crate) use counters::{counter_names, read_counter};
pub(crate) use folder::{Folder, is_absent};
pub(crate) use gid::{Slot, gid_slots};
pub(crate) use node::{is_in_nodev, is_node, is_node_stat, is_read_only, open_node};
pub(crate) use number::device_number;
pub(crate) use port::{name_of_speed, read_rate, whole};

/// The folder of the devices of this network namespace.
pub(crate) const CLASS: &str = "class/infiniband";

/// The folder of uverbs nodes, which `ib_uverbs` makes. It is that of all network namespaces.
pub(crate) const VERBS_CLASS: &str = "class/infiniband_verbs";

/// The folder of the nodes of `ib_umad`, which it makes. It is that of all network namespaces.
pub(crate) const UMAD_CLASS: &str = "class/infiniband_mad";

/// The folder of the connection manager's node, which `rdma_ucm` makes.
pub(crate) const CM: &str = "class/misc/rdma_cm";

/// What modules make that are there only with the RDMA core.
const OF_CORE: [&str; 4] = [CLASS, VERBS_CLASS, UMAD_CLASS, CM];

/// The folder of a device's ports, which each device has.
pub(crate) const PORTS: &str = "ports";

/// A sysfs tree.
///
/// A device is asked for by its name. It is the device that has the name now. One answer is of one device, also
/// if another takes over the name meanwhile. [`of`](Self::of) keeps to a device that was listed.
///
/// ```
/// let here = uverbs::sysfs::Sysfs::host();
/// let elsewhere = uverbs::sysfs::Sysfs::at("/host/sys");
/// # let _ = (here, elsewhere);
/// ```
#[derive(Clone, Debug)]
pub struct Sysfs {
    root: PathBuf,
    /// The folder that a device's name means here.
    held: Option<(String, Folder)>,
    shown: Arc<Mutex<Option<Shown>>>,
}

impl Default for Sysfs {
    fn default() -> Self {
        Self::host()
    }
}

impl Sysfs {
    /// This host's `/sys`.
    #[must_use]
    pub fn host() -> Self {
        Self::at("/sys")
    }

    /// A tree of the same shape at `root`, for example a host's `/sys` mounted into a container.
    #[must_use]
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), held: None, shown: Arc::default() }
    }

    /// The same tree, with nothing kept of what was read.
    pub(crate) fn anew(&self) -> Self {
        Self::at(&self.root)
    }

    /// The folder this tree is rooted at.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The names of the devices of this network namespace, in the order of the folder; `None` if the tree shows that the RDMA
    /// core is not loaded.
    pub(crate) fn device_names(&self) -> Result<Option<Vec<String>>, Error> {
        let class = self.folder(CLASS);
        let error = |folder: &Folder, cause| {
            Error::of_host(Request::Sysfs { path: folder.path().to_owned() }, cause)
        };
        match class.steady_names() {
            Ok(names) if names.is_empty() => match self.cover() {
                None => Ok(Some(names)),
                Some(cover) => {
                    Err(error(&cover, Cause::Malformed("all devices: something covers them")))
                }
            },
            Ok(names) => Ok(Some(names)),
            Err(Cause::Os(libc::ENOENT)) => self.without_class().map(|()| None),
            Err(cause) => Err(error(&class, cause)),
        }
    }

    /// What shows that something covers the folder of devices, which is empty: it is not the kernel's; or a copy has nothing
    /// of the nodes though their module is loaded, or an empty folder of them, which the kernel does not make.
    fn cover(&self) -> Option<Folder> {
        let (class, verbs) = (self.folder(CLASS), self.folder(VERBS_CLASS));
        if class.is_of_kernel() {
            return None;
        }
        if self.folder("").is_of_kernel() {
            return Some(class);
        }
        let is_part = if verbs.is_gone() {
            !self.folder("module/ib_uverbs").is_gone()
        } else {
            verbs.has_none()
        };
        is_part.then_some(verbs)
    }

    /// Makes sure that the folder of the devices, which is missing, is missing because the RDMA core is not loaded,
    /// which makes it. Else this is a part of a sysfs, or none.
    pub(crate) fn without_class(&self) -> Result<(), Error> {
        let is_gone = |path: &&str| self.folder(path).is_gone();
        if self.is_unloaded("ib_core") && OF_CORE.iter().all(is_gone) {
            return Ok(());
        }
        // A path that is wrong, or where no sysfs is mounted, has neither folder.
        let (path, cause) = if ["class", "module"].iter().all(is_gone) {
            (self.root.clone(), Cause::NotSysfs)
        } else {
            (self.root.join(CLASS), Cause::Os(libc::ENOENT))
        };
        Err(Error::of_host(Request::Sysfs { path }, cause))
    }

    /// Whether it shows that a module is not loaded. It does not where classes or modules are missing, which each
    /// sysfs has: what is mounted on their folder, and is empty, hides them. A module that is built in may have no
    /// folder, but what it makes is there.
    pub(crate) fn is_unloaded(&self, module: &str) -> bool {
        let has_some = |path: &str| self.folder(path).names().is_ok_and(|names| !names.is_empty());
        self.folder(&format!("module/{module}")).is_gone()
            && has_some("module")
            && has_some("class")
    }

    /// `class/infiniband/NAME`, the folder of one device in this network namespace. A name that
    /// would lead out of the devices' folder is no device's.
    pub(crate) fn device(&self, name: &str) -> Result<Folder, Cause> {
        match &self.held {
            Some((held, folder)) if held == name => Ok(folder.clone()),
            _ if is_file_name(name) => Ok(self.folder(CLASS).join(name)),
            _ => Err(Cause::NoSuchDevice),
        }
    }

    /// This tree, in which `name` means that folder of a device from now on.
    pub(crate) fn holding(&self, name: &str, folder: Folder) -> Self {
        Self { held: Some((name.to_owned(), folder)), ..self.clone() }
    }

    /// Asks about the device that has this name, which stays the same until the answer is complete.
    pub(crate) fn steadily<T>(
        &self,
        name: &str,
        request: impl Fn() -> Request,
        ask: impl FnOnce(&Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let by_name = self.device(name).map_err(|cause| Error::new(name, request(), cause))?;
        let error = |path, cause| Error::new(name, Request::Sysfs { path }, cause);
        let gone = |errno| error(by_name.without_ports(), cause(errno));
        let folder = by_name.held().map_err(|errno| error(by_name.lacking(errno), cause(errno)))?;
        match ask(&self.holding(name, folder.clone())) {
            // A folder that is taken away lists fewer entries, and does not say so.
            Ok(answer) => folder.look().map(|()| answer).map_err(gone),
            // One of which some are missing was read while it was taken away.
            Err(error) if matches!(error.errno(), libc::ENOENT | libc::EPROTO) => {
                Err(folder.look().map_or_else(gone, |()| error))
            }
            answer => answer,
        }
    }

    /// The folder of a device's port.
    pub(crate) fn port(&self, device: &str, port: u32) -> Result<Folder, Cause> {
        Ok(self.device(device)?.join(PORTS).join(port.to_string()))
    }

    /// Why `request` failed that reads `slot` in a device's port: what is not there is the device, all of its ports, the
    /// port, or the slot's index (`EINVAL`, as the kernel says it).
    fn missing_or(
        &self,
        device: &str,
        port: &Folder,
        slot: &Folder,
        request: Request,
        (path, cause): Unread,
    ) -> Error {
        match (cause, self.device(device)) {
            (missing @ Cause::Os(libc::ENOENT), Ok(device_folder))
                if device_folder.is_missing() =>
            {
                let path = self.folder(CLASS).join(device).without_ports();
                Error::new(device, Request::Sysfs { path }, missing)
            }
            // Each device has one at least.
            (missing @ Cause::Os(libc::ENOENT), Ok(device_folder))
                if device_folder.join(PORTS).has_none() =>
            {
                let path = device_folder.join(PORTS).path().to_owned();
                Error::new(device, Request::Sysfs { path }, missing)
            }
            (Cause::Os(libc::ENOENT), _) if port.is_missing() => {
                Error::new(device, request, Cause::NoSuchPort)
            }
            (Cause::Os(libc::ENOENT), _) if slot.is_missing() => {
                Error::new(device, request, Cause::Os(libc::EINVAL))
            }
            (cause, _) => of_file(device, request, (path, cause)),
        }
    }

    /// A folder below the root.
    pub(crate) fn folder(&self, path: &str) -> Folder {
        Folder::at(self.root.join(path))
    }
}

/// Why `request` failed: a file that could not be read is named. What the kernel says of a slot is of that.
fn of_file(device: &str, request: Request, (path, cause): Unread) -> Error {
    match cause {
        Cause::Os(errno) if ![libc::EINVAL, libc::EAGAIN].contains(&errno) => {
            Error::new(device, Request::Sysfs { path }, cause)
        }
        cause => Error::new(device, request, cause),
    }
}
