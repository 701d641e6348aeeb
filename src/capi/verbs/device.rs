//! The list of devices, and queries of devices that are not open.
//!
//! A device is valid as long as a list or a context holds it. As long as it is read as before, it has the same
//! pointer in every list: it is another one after its name changed, or where RDMA netlink answers only sometimes.

use core::ffi::{c_char, c_int};
use core::mem::ManuallyDrop;
use core::ops::Deref;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use nix::libc;
use rustix::io::Errno;

use super::abi;
use super::sysfs::{root, sysfs_path};
use crate::capi::{guarded, set_errno};
use crate::context::{Context, probe_driver};
use crate::device::{Device, NodeType};
use crate::driver::DriverId;
use crate::error::{Cause, Error};
use crate::host::{Host, Listing};
use crate::mlx5::devx;
use crate::sysfs::folder::os_errno;
use crate::sysfs::{CLASS, VERBS_CLASS};

/// A device with its C structure and this library's data.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Listed {
    /// The first field, so that a pointer to it is a pointer to the whole.
    c: abi::Device,
    pub(crate) device: Device,
}

/// The devices of the last list, and others that C still holds.
static KNOWN: Mutex<Vec<Arc<Listed>>> = Mutex::new(Vec::new());

impl Listed {
    /// Of a device that has a node. It fails if the path of sysfs is too long: a name always fits.
    pub(super) fn new(device: Device) -> Result<Self, Errno> {
        let (node_type, transport_type) = kinds(device.node_type);
        let node = device.node.as_ref().ok_or(Errno::NODEV)?;
        let path = |class: &str, name: &str| {
            let below = format!("/{class}/{name}");
            text(&[sysfs_path().to_bytes(), below.as_bytes()].concat())
        };
        let c = abi::Device {
            ops: [0; 2],
            node_type,
            transport_type,
            name: text(device.name.as_bytes())?,
            dev_name: text(node.name.as_bytes())?,
            dev_path: path(VERBS_CLASS, &node.name)?,
            ibdev_path: path(CLASS, &device.name)?,
        };
        Ok(Self { c, device })
    }

    /// Whether it has the mlx5 driver; the errno of asking it for its driver, if nobody else names that.
    pub(crate) fn is_mlx5(&self) -> Result<bool, Errno> {
        match self.device.driver.map_or_else(|| probe_driver(&self.device), Ok) {
            Ok(driver) => Ok(driver == DriverId::MLX5),
            Err(error) if *error.cause() == Cause::UnknownDriver => Ok(false),
            Err(error) => Err(error.cause().as_errno()),
        }
    }

    /// Opens it, with DEVX or without.
    pub(crate) fn open(&self, with_devx: bool) -> Result<Context, Error> {
        #[cfg(feature = "simulated-kernel")]
        if let Some((_, open)) = &*SIMULATED.lock().unwrap_or_else(PoisonError::into_inner) {
            return open(&self.device, with_devx);
        }
        if with_devx {
            devx::open(&self.device).map(Context::from)
        } else {
            Context::open(&self.device)
        }
    }
}

/// A share in a device, by the pointer that C has of it. Whatever C is given, in a list or as a
/// context's `device`, is the pointer of such a share, and comes from `Arc::into_raw`. So each of them
/// may be made a share again.
#[derive(Debug)]
pub(crate) struct Held(*const Listed);

impl Held {
    pub(crate) fn new(listed: Arc<Listed>) -> Self {
        Self(Arc::into_raw(listed))
    }

    /// C's pointer, valid as long as a share is there.
    pub(crate) fn c_ptr(&self) -> *mut abi::Device {
        self.0.cast::<abi::Device>().cast_mut()
    }

    /// Leaves the share to C, until it goes back into [`taken`](Self::taken).
    fn into_c(self) -> *mut abi::Device {
        ManuallyDrop::new(self).c_ptr()
    }

    /// Takes back what [`into_c`](Self::into_c) gave.
    ///
    /// # Safety
    /// `device` is from `into_c`, and was not taken back so far.
    unsafe fn taken(device: *mut abi::Device) -> Self {
        Self(device.cast::<Listed>().cast_const())
    }

    /// One more share in the device that C names; `None` for NULL.
    ///
    /// # Safety
    /// `device` is NULL, or from a list or a context that still holds it.
    pub(crate) unsafe fn of(device: *mut abi::Device) -> Option<Self> {
        let listed = device.cast::<Listed>().cast_const();
        if listed.is_null() {
            return None;
        }
        // SAFETY: by the contract the pointer of a share, which is one of `Arc::into_raw` and counted.
        unsafe { Arc::increment_strong_count(listed) };
        Some(Self(listed))
    }
}

impl Deref for Held {
    type Target = Listed;

    fn deref(&self) -> &Listed {
        // SAFETY: from `Arc::into_raw`, and the share that `self` is counts.
        unsafe { &*self.0 }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: from `Arc::into_raw`; the share that `self` is was counted, and ends here.
        drop(unsafe { Arc::from_raw(self.0) });
    }
}

/// `ibv_node_type` and `ibv_transport_type` of a device.
fn kinds(node_type: NodeType) -> (c_int, c_int) {
    const UNKNOWN: (c_int, c_int) = (-1, -1);
    match node_type {
        NodeType::CA => (1, 0),
        NodeType::SWITCH => (2, 0),
        NodeType::ROUTER => (3, 0),
        NodeType::RNIC => (4, 1),
        NodeType::USNIC => (5, 2),
        NodeType::USNIC_UDP => (6, 3),
        NodeType::UNSPECIFIED => (7, 4),
        _ => UNKNOWN,
    }
}

/// A text with its NUL in a C array.
fn text<const N: usize>(text: &[u8]) -> Result<[c_char; N], Errno> {
    let mut array = [0; N];
    if text.len() >= N {
        return Err(Errno::NAMETOOLONG);
    }
    for (place, byte) in array.iter_mut().zip(text) {
        *place = c_char::from_ne_bytes([*byte]);
    }
    Ok(array)
}

/// Lists the devices that have a node here, in the kernel's order: by index, or as sysfs has them.
pub(crate) fn list() -> Result<Vec<Arc<Listed>>, Errno> {
    #[cfg(feature = "simulated-kernel")]
    if let Some(devices) = simulated_devices() {
        return known(devices);
    }
    let mut host = root().map_or_else(Host::new, |sysfs| Host::rooted(sysfs, "/dev/infiniband"));
    known(devices_of(&mut host)?)
}

fn devices_of(host: &mut Host) -> Result<Vec<Device>, Errno> {
    let Listing { mut devices, problems } = host.list().map_err(|error| match error.cause() {
        Cause::NotSysfs => Errno::NOSYS,
        cause => cause.as_errno(),
    })?;
    // A device that cannot be read is left out. If this process or the host has no room, the device
    // need not be broken.
    let no_room = [Errno::MFILE, Errno::NFILE, Errno::NOMEM];
    let mut errnos = problems.iter().map(|problem| problem.cause().as_errno());
    if let Some(errno) = errnos.find(|errno| no_room.contains(errno)) {
        return Err(errno);
    }
    // Of those that go nothing is left to list.
    let mut left = problems.iter().filter(|problem| !problem.is_gone());
    if let Some(problem) = left.next().filter(|_| devices.is_empty()) {
        return Err(problem.cause().as_errno());
    }
    if devices.is_empty()
        && host.netlink().is_none()
        && host.sysfs().folder(VERBS_CLASS).is_missing()
    {
        return Err(Errno::NOSYS);
    }
    let places = host.places(&devices);
    devices.sort_by_key(|device| (device.index, places.get(&device.name).copied()));
    let mut found = Vec::with_capacity(devices.len());
    for device in devices {
        let Some(node) = &device.node else { continue };
        match std::fs::metadata(&node.path).map_err(|error| os_errno(&error)) {
            Ok(_) => found.push(device),
            Err(errno) if no_room.contains(&errno) => return Err(errno),
            Err(_) => {}
        }
    }
    Ok(found)
}

/// The devices for C: unchanged devices are those that are known, others are new.
fn known(devices: Vec<Device>) -> Result<Vec<Arc<Listed>>, Errno> {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut by_name: BTreeMap<&str, Vec<&Arc<Listed>>> = BTreeMap::new();
    for own in &*known {
        by_name.entry(&own.device.name).or_default().push(own);
    }
    let mut listed = Vec::with_capacity(devices.len());
    for device in devices {
        let of_name = by_name.get(&*device.name).into_iter().flatten();
        let own = match of_name.copied().find(|own| own.device == device) {
            Some(own) => Arc::clone(own),
            None => Arc::new(Listed::new(device)?),
        };
        listed.push(own);
    }
    // A device that this list is without may be in an older one of C's, and come back.
    let now: BTreeSet<*const Listed> = listed.iter().map(Arc::as_ptr).collect();
    known.retain(|own| Arc::strong_count(own) > 1 && !now.contains(&Arc::as_ptr(own)));
    known.extend(listed.iter().cloned());
    Ok(listed)
}

/// A host made of test code: its devices, and how one is opened, with DEVX or without.
#[cfg(feature = "simulated-kernel")]
type SimulatedHost = (Vec<Device>, fn(&Device, bool) -> Result<Context, Error>);

#[cfg(feature = "simulated-kernel")]
static SIMULATED: Mutex<Option<SimulatedHost>> = Mutex::new(None);

/// From now on C gets these devices, and they are opened in this way.
#[cfg(feature = "simulated-kernel")]
#[doc(hidden)]
pub fn simulated_host(devices: Vec<Device>, open: fn(&Device, bool) -> Result<Context, Error>) {
    *SIMULATED.lock().unwrap_or_else(PoisonError::into_inner) = Some((devices, open));
}

#[cfg(feature = "simulated-kernel")]
fn simulated_devices() -> Option<Vec<Device>> {
    let host = SIMULATED.lock().unwrap_or_else(PoisonError::into_inner);
    host.as_ref().map(|(devices, _)| devices.clone())
}

/// Lists the RDMA devices: an array that ends with NULL, for [`ibv_free_device_list`]. Their number
/// goes to `num_devices`, unless that is NULL. A device without a node here is left out, and so is one that cannot be
/// read, or whose node cannot be found out, unless none can be read. See `ibv_get_device_list(3)`.
///
/// # Errors
/// NULL with `errno`: `ENOSYS` if the kernel has no RDMA verbs, or `SYSFS_PATH` names no sysfs; `EMFILE`, `ENFILE` or
/// `ENOMEM`, also if it is only one device that cannot be read for that reason; `ENAMETOOLONG` if there is a device and
/// `SYSFS_PATH` is too long for its structure; or the errno of reading the list, or the first device if none can be read.
///
/// # Safety
/// `num_devices` is NULL or points to an `int`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_get_device_list(num_devices: *mut c_int) -> *mut *mut abi::Device {
    let tell = |number: c_int| {
        if !num_devices.is_null() {
            // SAFETY: not NULL, so by the contract an `int` of the caller's.
            unsafe { num_devices.write(number) };
        }
    };
    tell(0);
    let listed = guarded(Err(Errno::IO), || list().map(|listed| (c_array(&listed), listed.len())));
    match listed {
        Ok((Some(array), length)) => {
            tell(c_int::try_from(length).unwrap_or(c_int::MAX));
            array
        }
        Ok((None, _)) => {
            set_errno(Errno::NOMEM);
            core::ptr::null_mut()
        }
        Err(errno) => {
            set_errno(errno);
            core::ptr::null_mut()
        }
    }
}

/// The devices as a C array, which holds a share of each.
fn c_array(listed: &[Arc<Listed>]) -> Option<*mut *mut abi::Device> {
    // SAFETY: no precondition; zeroed memory is an array of NULLs.
    let array = unsafe { libc::calloc(listed.len() + 1, size_of::<*mut abi::Device>()) };
    let array = array.cast::<*mut abi::Device>();
    if array.is_null() {
        return None;
    }
    for (place, device) in listed.iter().enumerate() {
        // SAFETY: `place` is below the number of elements that were just allocated.
        let element = unsafe { array.add(place) };
        // SAFETY: an element of that array, which is aligned for pointers, as all of `calloc`'s.
        unsafe { element.write(Held::new(Arc::clone(device)).into_c()) };
    }
    Some(array)
}

/// Frees a list. Its open devices stay until they are closed. NULL is ignored.
///
/// # Safety
/// `list` is NULL, or from [`ibv_get_device_list`] and not freed so far.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_free_device_list(list: *mut *mut abi::Device) {
    if list.is_null() {
        return;
    }
    let mut element = list;
    loop {
        // SAFETY: an element of the list, at most its NULL at the end.
        let device = unsafe { element.read() };
        if device.is_null() {
            break;
        }
        // SAFETY: `c_array` put it there by `into_c`, and the list is freed once.
        drop(unsafe { Held::taken(device) });
        // SAFETY: an element that is not NULL is followed by another.
        element = unsafe { element.add(1) };
    }
    // SAFETY: from `calloc`, and by the contract not freed so far.
    unsafe { libc::free(list.cast()) };
}

/// The device's name; NULL for NULL. It is valid as long as the device.
///
/// # Safety
/// `device` is NULL, or from a list or a context that still holds it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_get_device_name(device: *mut abi::Device) -> *const c_char {
    if device.is_null() {
        return core::ptr::null();
    }
    // SAFETY: not NULL, so a device of ours that somebody holds.
    let name = unsafe { &raw const (*device).name };
    name.cast()
}

/// The node GUID in network order; 0 for NULL.
///
/// # Safety
/// As [`ibv_get_device_name`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_get_device_guid(device: *mut abi::Device) -> u64 {
    // SAFETY: the same contract.
    let listed = unsafe { Held::of(device) };
    listed.map_or(0, |listed| u64::from_ne_bytes(listed.device.node_guid.to_be_bytes()))
}

/// The kernel's index of the device; −1 if the kernel gives none, and for NULL.
///
/// # Safety
/// As [`ibv_get_device_name`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_get_device_index(device: *mut abi::Device) -> c_int {
    // SAFETY: the same contract.
    let listed = unsafe { Held::of(device) };
    let index = listed.and_then(|listed| listed.device.index);
    index.and_then(|index| c_int::try_from(index).ok()).unwrap_or(-1)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::fd::AsRawFd as _;
    use std::path::Path;

    use rustix::process::{Resource, Rlimit, setrlimit};

    use super::*;
    use crate::capi::verbs::ibv_import_device;

    /// A tree with one device, and one that is broken.
    fn make_tree(root: &Path) {
        let mut files = vec![
            ("dev/uverbs0".to_owned(), ""),
            ("class/infiniband_verbs/uverbs0/ibdev".to_owned(), "sim0"),
            ("class/infiniband_verbs/uverbs0/dev".to_owned(), "231:192"),
        ];
        for (name, guid) in [("sim0", "0011:22ff:fe33:4455"), ("sim1", "0011")] {
            let file = |file| format!("class/infiniband/{name}/{file}");
            files.push((file("ports/1/state"), "4: ACTIVE"));
            files.push((file("node_type"), "1: CA"));
            files.push((file("node_guid"), guid));
            files.push((file("sys_image_guid"), guid));
        }
        for (file, text) in files {
            let path = root.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    /// In a process of its own, since all threads share what is left of it.
    #[test]
    #[cfg_attr(miri, ignore = "runs a program")]
    fn a_device_that_no_descriptor_is_left_for_is_not_left_out() {
        const TREE: &str = "UVERBS_TEST_TREE";
        let Some(root) = std::env::var_os(TREE) else {
            let tree = tempfile::tempdir().unwrap();
            make_tree(tree.path());
            let own = module_path!().split_once("::").unwrap().1.to_owned()
                + "::a_device_that_no_descriptor_is_left_for_is_not_left_out";
            let run = std::process::Command::new(std::env::current_exe().unwrap())
                .args(["--exact", &own])
                .envs([(TREE, tree.path()), ("SYSFS_PATH", tree.path())])
                .output()
                .unwrap();
            let text = String::from_utf8_lossy(&run.stdout);
            assert!(run.status.success() && text.contains("1 passed"), "{text}");
            return;
        };
        setrlimit(Resource::Nofile, Rlimit { current: Some(64), maximum: Some(64) }).unwrap();
        let mut taken: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
        // Not that it is no device's.
        assert!(!taken.is_empty());
        // SAFETY: open, and it does not become a context's.
        assert!(unsafe { ibv_import_device(taken[0].as_raw_fd()) }.is_null());
        assert_eq!(nix::errno::Errno::last(), nix::errno::Errno::EMFILE);
        let mut said = Vec::new();
        for _ in 0..8 {
            let mut host = Host::rooted(&root, Path::new(&root).join("dev"));
            let listed = devices_of(&mut host);
            said.push(listed.map(|own| own.into_iter().map(|own| own.name).collect::<Vec<_>>()));
            taken.pop();
        }
        let enough = said.iter().take_while(|said| **said == Err(Errno::MFILE)).count();
        assert!((2..8).contains(&enough), "{said:?}");
        // The one that is broken is left out.
        assert!(said[enough..].iter().all(|said| *said == Ok(vec!["sim0".to_owned()])), "{said:?}");
        // Where there is no other one, the list is not empty but unknown.
        for folder in ["infiniband/sim0", "infiniband_verbs/uverbs0"] {
            fs::remove_dir_all(Path::new(&root).join("class").join(folder)).unwrap();
        }
        let mut host = Host::rooted(&root, Path::new(&root).join("dev"));
        assert_eq!(devices_of(&mut host), Err(Errno::PROTO));
    }

    #[test]
    fn texts_fit_with_their_nul() {
        assert_eq!(text(b"ab"), Ok([b'a', b'b', 0].map(|byte| c_char::from_ne_bytes([byte]))));
        assert_eq!(text::<2>(b"ab"), Err(Errno::NAMETOOLONG));
    }
}
