//! Memory that C receives, from `malloc`.
//!
//! As in libibumad, each piece is a separate allocation with only what the structures point at. So a
//! program may copy the structures, take a port out of a CA, or free pieces itself.

use core::ffi::{c_int, c_uint};
use core::ptr::null_mut;

use nix::libc;
use rustix::io::Errno;

use super::abi::{UmadCa, UmadDeviceNode, UmadPort};
use crate::guid::Guid;
use crate::umad::strict;

/// Zeroed memory for at least one byte.
fn allocate<T>(bytes: usize) -> Result<*mut T, Errno> {
    // `calloc` aligns memory for any fundamental type. (libc's `max_align_t` is missing on some machines with musl.)
    const { assert!(align_of::<T>() <= align_of::<u64>(), "beyond malloc") };
    // SAFETY: `calloc` may be called with any numbers.
    let memory = unsafe { libc::calloc(bytes.max(1), 1) };
    if memory.is_null() { Err(Errno::NOMEM) } else { Ok(memory.cast()) }
}

impl UmadPort {
    /// # Errors
    /// `ENOMEM`: no memory for the P_Keys.
    pub(super) fn new(port: &strict::Port) -> Result<Self, Errno> {
        Ok(Self {
            ca_name: *port.ca_name.array(),
            portnum: port.portnum,
            base_lid: port.base_lid,
            lmc: port.lmc,
            sm_lid: port.sm_lid,
            sm_sl: port.sm_sl,
            state: port.state,
            phys_state: port.phys_state,
            rate: port.rate,
            capmask: port.capmask.to_be(),
            gid_prefix: port.gid_prefix.to_be(),
            port_guid: network_order(port.port_guid),
            // One file each.
            pkeys_size: c_uint::try_from(port.pkeys.len()).map_err(|_| Errno::NOMEM)?,
            pkeys: pkeys(port)?,
            link_layer: *port.link_layer.array(),
        })
    }

    /// Frees the P_Keys and sets their number to zero. A port without P_Keys does not change.
    ///
    /// # Safety
    /// `pkeys` is NULL or memory of `malloc` that nobody has freed.
    pub(super) unsafe fn release(&mut self) {
        // SAFETY: NULL or of `malloc`, by this function's contract.
        unsafe { libc::free(self.pkeys.cast()) };
        self.pkeys = null_mut();
        self.pkeys_size = 0;
    }
}

impl UmadCa {
    /// # Errors
    /// `ENOMEM`: no memory for the ports.
    pub(super) fn new(ca: &strict::Ca) -> Result<Self, Errno> {
        let mut filled = Self {
            ca_name: *ca.ca_name.array(),
            node_type: ca.node_type,
            numports: c_int::try_from(ca.numports).map_err(|_| Errno::NOMEM)?,
            fw_ver: *ca.fw_ver.array(),
            ca_type: *ca.ca_type.array(),
            hw_ver: *ca.hw_ver.array(),
            node_guid: network_order(ca.node_guid),
            system_guid: network_order(ca.system_guid),
            ports: Self::NONE.ports,
        };
        let placed = filled.ports.iter_mut().zip(&ca.ports).try_for_each(|(slot, port)| {
            *slot = port.as_ref().map_or(Ok(null_mut()), place)?;
            Ok(())
        });
        if let Err(errno) = placed {
            // SAFETY: each port is NULL or was placed just now.
            unsafe { filled.release() };
            return Err(errno);
        }
        Ok(filled)
    }

    /// Frees the ports up to number `numports` and removes them.
    ///
    /// # Safety
    /// Each of these ports is NULL or memory of `malloc` that nobody has freed, and its P_Keys are
    /// so too.
    pub(super) unsafe fn release(&mut self) {
        // libibumad trusts the number, and reads past the array.
        let count = usize::try_from(self.numports).map_or(0, |highest| highest.saturating_add(1));
        for slot in self.ports.iter_mut().take(count) {
            // SAFETY: NULL or a port, by this function's contract.
            if let Some(port) = unsafe { slot.as_mut() } {
                // SAFETY: NULL or of `malloc`, by this function's contract.
                unsafe { port.release() };
            }
            // SAFETY: NULL or of `malloc`, by this function's contract; not used after this.
            unsafe { libc::free(slot.cast()) };
            *slot = null_mut();
        }
    }
}

/// A port in memory of its own.
fn place(port: &strict::Port) -> Result<*mut UmadPort, Errno> {
    let memory = allocate::<UmadPort>(size_of::<UmadPort>())?;
    match UmadPort::new(port) {
        Ok(filled) => {
            // SAFETY: new memory, with room for a port and the alignment of any type.
            unsafe { memory.write(filled) };
            Ok(memory)
        }
        Err(errno) => {
            // SAFETY: allocated above, and given to nobody.
            unsafe { libc::free(memory.cast()) };
            Err(errno)
        }
    }
}

/// The P_Key table in memory of its own.
fn pkeys(port: &strict::Port) -> Result<*mut u16, Errno> {
    let table: Vec<u16> = port.pkeys.iter().map(|pkey| pkey.0).collect();
    let memory = allocate::<u16>(size_of_val(table.as_slice()))?;
    // SAFETY: new memory, with room for the whole table and the alignment of any type.
    unsafe { memory.copy_from_nonoverlapping(table.as_ptr(), table.len()) };
    Ok(memory)
}

/// A list of names in their order; NULL if there are none.
///
/// # Errors
/// `ENOMEM`: no memory for all. Nothing stays allocated.
pub(super) fn list(names: &[String]) -> Result<*mut UmadDeviceNode, Errno> {
    let mut head = null_mut();
    for name in names.iter().rev() {
        match node(name, head) {
            Ok(node) => head = node,
            Err(errno) => {
                // SAFETY: made above, and given to nobody.
                unsafe { free_list(head) };
                return Err(errno);
            }
        }
    }
    Ok(head)
}

/// A node followed by its name in one allocation, so a program that frees the node frees both.
fn node(name: &str, next: *mut UmadDeviceNode) -> Result<*mut UmadDeviceNode, Errno> {
    let node = allocate::<UmadDeviceNode>(size_of::<UmadDeviceNode>() + name.len() + 1)?;
    // SAFETY: the memory is longer than a node.
    let text = unsafe { node.add(1) }.cast::<u8>();
    // SAFETY: from there on there is room for the name and its NUL, which `calloc` has put there.
    unsafe { text.copy_from_nonoverlapping(name.as_ptr(), name.len()) };
    // SAFETY: room for a node, with the alignment of any type.
    unsafe { node.write(UmadDeviceNode { next, ca_name: text.cast() }) };
    Ok(node)
}

/// # Safety
/// `head` is NULL or a list of which each node is memory of `malloc` that nobody has freed.
pub(super) unsafe fn free_list(mut head: *mut UmadDeviceNode) {
    // SAFETY: NULL or a node, by this function's contract.
    while let Some(node) = unsafe { head.as_ref() } {
        let next = node.next;
        // SAFETY: of `malloc`, by this function's contract; not used after this.
        unsafe { libc::free(head.cast()) };
        head = next;
    }
}

/// The number whose bytes in memory are in network order.
pub(super) fn network_order(guid: Guid) -> u64 {
    u64::from_ne_bytes(guid.to_be_bytes())
}
