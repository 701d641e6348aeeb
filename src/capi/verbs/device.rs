//! The list of devices, and what a program asks of a device that it does not open.
//!
//! A device in a list is the same pointer in every list as long as it is the same device, and lives
//! as long as a list or a context holds it.

use core::ffi::{c_char, c_int};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use nix::libc;
use rustix::io::Errno;

use super::abi;
use super::sysfs::{root, sysfs_path};
use crate::capi::{guarded, set_errno};
use crate::device::{Device, Host, NodeType};

/// A device as C sees it, and as this library knows it.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Listed {
    /// First, so that a pointer to it is one to the whole.
    c: abi::Device,
    pub(crate) device: Device,
}

/// The devices that were there when they were listed last.
static LAST: Mutex<Vec<Arc<Listed>>> = Mutex::new(Vec::new());

impl Listed {
    pub(super) fn new(device: Device) -> Option<Self> {
        let (node_type, transport_type) = kinds(device.node_type);
        let node = device.node.as_ref()?;
        let sysfs = sysfs_path().to_str().ok()?;
        let c = abi::Device {
            ops: [0; 2],
            node_type,
            transport_type,
            name: text(&device.name)?,
            dev_name: text(&node.name)?,
            dev_path: text(&format!("{sysfs}/class/infiniband_verbs/{}", node.name))?,
            ibdev_path: text(&format!("{sysfs}/class/infiniband/{}", device.name))?,
        };
        Some(Self { c, device })
    }

    /// The pointer that C gets. It holds the device until it goes back into [`taken`].
    pub(crate) fn into_c(listed: Arc<Self>) -> *mut abi::Device {
        Arc::into_raw(listed).cast::<abi::Device>().cast_mut()
    }

    /// Takes back what [`into_c`](Self::into_c) gave.
    ///
    /// # Safety
    /// `device` is from `into_c`, and was not taken back so far.
    pub(crate) unsafe fn taken(device: *mut abi::Device) -> Arc<Self> {
        // SAFETY: by the contract it is what `Arc::into_raw` gave, to the first field of a
        // structure in C's layout, whose address is the structure's.
        unsafe { Arc::from_raw(device.cast::<Self>().cast_const()) }
    }

    /// One more holder of the device that C names; `None` for NULL.
    ///
    /// # Safety
    /// `device` is NULL, or from a list or a context and still held by one.
    pub(crate) unsafe fn held(device: *mut abi::Device) -> Option<Arc<Self>> {
        let listed = device.cast::<Self>().cast_const();
        if listed.is_null() {
            return None;
        }
        // SAFETY: by the contract an `Arc` of it exists.
        unsafe { Arc::increment_strong_count(listed) };
        // SAFETY: the count was just raised for this one.
        Some(unsafe { Arc::from_raw(listed) })
    }

    /// The device's folder in sysfs.
    pub(crate) fn ibdev_path(&self) -> PathBuf {
        let sysfs = Path::new(OsStr::from_bytes(sysfs_path().to_bytes()));
        sysfs.join("class/infiniband").join(&self.device.name)
    }

    /// The pointer of lists that already hold it.
    pub(crate) fn c_ptr(&self) -> *mut abi::Device {
        core::ptr::from_ref(self).cast::<abi::Device>().cast_mut()
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

/// A text with its NUL in an array of C's; `None` if it does not fit.
fn text<const N: usize>(text: &str) -> Option<[c_char; N]> {
    let mut array = [0; N];
    let (_, room) = array.split_last_mut()?;
    if text.len() > room.len() {
        return None;
    }
    for (place, byte) in room.iter_mut().zip(text.bytes()) {
        *place = c_char::from_ne_bytes([byte]);
    }
    Some(array)
}

/// Lists the devices that have a node here, in the kernel's order.
pub(crate) fn list() -> Result<Vec<Arc<Listed>>, Errno> {
    let mut host = root().map_or_else(Host::new, |sysfs| Host::rooted(sysfs, "/dev/infiniband"));
    let mut devices = host.devices().map_err(|error| Errno::from_raw_os_error(error.errno()))?;
    if devices.is_empty()
        && host.netlink().is_none()
        && !host.sysfs().root().join("class/infiniband_verbs").exists()
    {
        return Err(Errno::NOSYS);
    }
    devices.sort_by_key(|device| device.index);
    devices.retain(|device| device.node.as_ref().is_some_and(|node| node.path.exists()));
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    let known = |device: &Device| last.iter().find(|listed| listed.device == *device).cloned();
    let listed: Vec<Arc<Listed>> = devices
        .into_iter()
        .filter_map(|device| known(&device).or_else(|| Listed::new(device).map(Arc::new)))
        .collect();
    last.clone_from(&listed);
    Ok(listed)
}

/// Lists the RDMA devices: an array that ends with NULL, for [`ibv_free_device_list`]. Their number
/// goes to `num_devices`, unless that is NULL. See `ibv_get_device_list(3)`.
///
/// # Errors
/// NULL with `errno`: `ENOSYS` if the kernel has no RDMA verbs, `ENOMEM`, or what reading the list
/// met.
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

/// The devices as an array of C's, each held by it.
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
        unsafe { element.write(Listed::into_c(Arc::clone(device))) };
    }
    Some(array)
}

/// Frees a list. Devices of it that are open stay until they are closed. NULL is no list and
/// nothing is done.
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
        drop(unsafe { Listed::taken(device) });
        // SAFETY: behind an element that is not NULL there is one more.
        element = unsafe { element.add(1) };
    }
    // SAFETY: from `calloc`, and by the contract not freed so far.
    unsafe { libc::free(list.cast()) };
}

/// The device's name; NULL for NULL. It lives as long as the device.
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
    let listed = unsafe { Listed::held(device) };
    listed.map_or(0, |listed| u64::from_ne_bytes(listed.device.node_guid.to_be_bytes()))
}

/// The kernel's index of the device; −1 where it does not tell, and for NULL.
///
/// # Safety
/// As [`ibv_get_device_name`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_get_device_index(device: *mut abi::Device) -> c_int {
    // SAFETY: the same contract.
    let listed = unsafe { Listed::held(device) };
    let index = listed.and_then(|listed| listed.device.index);
    index.and_then(|index| c_int::try_from(index).ok()).unwrap_or(-1)
}
