//! The other side of a request: an open uverbs device.

use core::ffi::c_void;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::io::Errno;
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, ioctl};
use uverbs_uapi::ioctl::RDMA_VERBS_IOCTL;

use super::frame::Frame;

/// Who answers requests: an open `/dev/infiniband/uverbsN`, or in tests a simulated kernel.
#[derive(Debug)]
pub(crate) enum Kernel {
    Device(OwnedFd),
    #[cfg(feature = "simulated-kernel")]
    Simulated(Box<dyn super::simulated::SimulatedKernel>, OwnedFd),
}

impl Kernel {
    /// Sends `frame`; the kernel writes flags and new ids into it, and output into the memory it borrows.
    pub(crate) fn submit<const N: usize>(&self, frame: &mut Frame<'_, N>) -> Result<(), Errno> {
        match self {
            Self::Device(fd) => {
                // SAFETY: `RDMA_VERBS_IOCTL` takes a pointer to a header whose length names the
                // bytes that follow. `Frame` is `repr(C)`, header first, and `push` sets the
                // length to header + used attributes, which lie inside `attributes`. Each
                // attribute's address comes from a `Payload`, whose borrow of that many bytes
                // lives as long as the frame; for what the kernel writes the borrow is exclusive,
                // as the callers (the query modules) name each attribute in the direction that
                // the kernel's own description of the method gives it.
                unsafe { ioctl(fd, VerbsIoctl(frame)) }
            }
            #[cfg(feature = "simulated-kernel")]
            Self::Simulated(kernel, _) => frame.simulate(&**kernel),
        }
    }
}

impl AsFd for Kernel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Device(fd) => fd.as_fd(),
            #[cfg(feature = "simulated-kernel")]
            Self::Simulated(_, fd) => fd.as_fd(),
        }
    }
}

struct VerbsIoctl<'f, 'a, const N: usize>(&'f mut Frame<'a, N>);

// SAFETY: the opcode is the one uverbs command; the pointer is valid for reads and writes of the
// whole frame while `self` lives; the kernel writes through it, so `IS_MUTATING` is true; nothing
// is made of the output pointer.
unsafe impl<const N: usize> Ioctl for VerbsIoctl<'_, '_, N> {
    type Output = ();
    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        RDMA_VERBS_IOCTL as Opcode
    }

    fn as_ptr(&mut self) -> *mut c_void {
        self.0.as_mut_ptr().cast()
    }

    unsafe fn output_from_ptr(_: IoctlOutput, _: *mut c_void) -> rustix::io::Result<()> {
        Ok(())
    }
}

/// Takes ownership of an fd number that the kernel put into a successful request.
///
/// `None` for a number that cannot be an fd.
pub(crate) fn claim_fd(number: i64) -> Option<OwnedFd> {
    let number = i32::try_from(number).ok().filter(|number| *number >= 0)?;
    // SAFETY: the number is not -1, and the kernel has just installed it for this process in
    // answer to our request; nobody else has been told of it.
    Some(unsafe { OwnedFd::from_raw_fd(number) })
}
