//! A kernel made of test code: answers requests without a device.
//!
//! For tests and fuzzing only (feature `simulated-kernel`, not part of the public API). The
//! simulated kernel sees what a real one sees, the raw bytes of header and attributes, and
//! reaches user memory through [`UserMemory`], which refuses every byte that no attribute lent.

use core::marker::PhantomData;
use core::mem::size_of;

use rustix::io::Errno;
use uverbs_uapi::ioctl::{Attribute, IoctlHeader};
use zerocopy::{FromBytes, IntoBytes};

use super::access::Access;

/// Answers uverbs requests in place of the kernel.
pub trait SimulatedKernel: Send + Sync + core::fmt::Debug {
    /// Handles one ioctl: `request` is the header and its attributes, which may be changed as
    /// the kernel would change them.
    ///
    /// # Errors
    /// The errno that the ioctl fails with.
    fn ioctl(&self, request: &mut [u8], memory: &UserMemory<'_>) -> Result<(), Errno>;
}

/// The memory that a request lends to the kernel.
#[derive(Debug)]
pub struct UserMemory<'f> {
    attributes: &'f [Attribute],
    accesses: &'f [Access],
    /// It stays with one thread, so that no two writes race.
    one_thread: PhantomData<*mut u8>,
}

impl UserMemory<'_> {
    fn lends(&self, address: u64, len: usize, access: Access) -> bool {
        let Some(end) = address.checked_add(len as u64) else { return false };
        self.attributes.iter().zip(self.accesses).any(|(attribute, own)| {
            *own == access
                && attribute.data <= address
                && end <= attribute.data + u64::from(attribute.len)
        })
    }

    /// Copies `len` bytes from user memory.
    ///
    /// # Errors
    /// `EFAULT` if the request does not lend all of them for reading.
    pub fn read(&self, address: u64, len: usize) -> Result<Vec<u8>, Errno> {
        if !self.lends(address, len, Access::Read) {
            return Err(Errno::FAULT);
        }
        let address = usize::try_from(address).map_err(|_| Errno::FAULT)?;
        let source = core::ptr::with_exposed_provenance::<u8>(address);
        // SAFETY: `lends` found the range inside a slice that the frame borrows for reading and
        // whose provenance was exposed; bytes have no invalid values and no alignment.
        Ok(unsafe { core::slice::from_raw_parts(source, len) }.to_vec())
    }

    /// Copies `bytes` into user memory.
    ///
    /// # Errors
    /// `EFAULT` if the request does not lend all of that memory for writing.
    pub fn write(&self, address: u64, bytes: &[u8]) -> Result<(), Errno> {
        if !self.lends(address, bytes.len(), Access::Write) {
            return Err(Errno::FAULT);
        }
        let address = usize::try_from(address).map_err(|_| Errno::FAULT)?;
        let target = core::ptr::with_exposed_provenance_mut::<u8>(address);
        // SAFETY: `lends` found the range inside a slice that the frame borrows exclusively, so
        // it is writable, disjoint from `bytes`, and its provenance was exposed.
        unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), target, bytes.len()) };
        Ok(())
    }
}

/// Passes a frame to `kernel` as bytes, and takes back what it changed.
pub(super) fn run(
    header: &IoctlHeader,
    attributes: &mut [Attribute],
    accesses: &[Access],
    kernel: &dyn SimulatedKernel,
) -> Result<(), Errno> {
    const HEADER: usize = size_of::<IoctlHeader>();
    let used = usize::from(header.num_attrs);
    let attributes = attributes.get_mut(..used).ok_or(Errno::INVAL)?;
    // On the stack, so that allocation counts of tests stay those of the library.
    let mut request = [0u8; 4096];
    let request = request.get_mut(..HEADER + used * size_of::<Attribute>()).ok_or(Errno::INVAL)?;
    let (head, tail) = request.split_at_mut(HEADER);
    head.copy_from_slice(header.as_bytes());
    tail.copy_from_slice(attributes.as_bytes());
    let memory = UserMemory { attributes, accesses, one_thread: PhantomData };
    let result = kernel.ioctl(request, &memory);
    let (_, tail) = request.split_at(HEADER);
    for (attribute, bytes) in attributes.iter_mut().zip(tail.chunks_exact(size_of::<Attribute>())) {
        if let Ok(changed) = Attribute::read_from_bytes(bytes) {
            *attribute = changed;
        }
    }
    result
}
