//! The other side of a request: an open uverbs device.

use core::ffi::c_void;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use rustix::io::{Errno, retry_on_intr};
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, ioctl};
use uverbs_uapi::ioctl::RDMA_VERBS_IOCTL;

use super::frame::Frame;
use super::{memcheck, outputs};

/// Who answers requests: an open `/dev/infiniband/uverbsN`, or in tests a simulated kernel.
#[derive(Debug)]
pub(crate) enum Kernel {
    Device(OwnedFd),
    #[cfg(feature = "simulated-kernel")]
    Simulated(Box<dyn super::simulated::SimulatedKernel>, OwnedFd),
}

/// Why a frame was not answered.
#[derive(Debug)]
pub(crate) enum NotAnswered {
    /// It was not sent: the method is not described in [`super::outputs`], or an attribute that the
    /// kernel writes was not given memory to write to.
    Outputs,
    /// The kernel's errno.
    Kernel(Errno),
}

impl Kernel {
    /// Sends `frame`; the kernel writes flags and new ids into it, and output into the memory it borrows.
    ///
    /// A frame may be answered once only, as the kernel may change the addresses in it: it is the
    /// attributes' data into which new ids are written.
    /// Methods that make a file descriptor are not sent this way: nobody would own it.
    pub(crate) fn submit<const N: usize>(
        &self,
        frame: &mut Frame<'_, N>,
    ) -> Result<(), NotAnswered> {
        if outputs::new_fd(frame.header()).is_some() {
            return Err(NotAnswered::Outputs);
        }
        self.send(frame)
    }

    fn send<const N: usize>(&self, frame: &mut Frame<'_, N>) -> Result<(), NotAnswered> {
        if !frame.lends_all_outputs() {
            return Err(NotAnswered::Outputs);
        }
        let answer = match self {
            // Interrupted, it is sent again as the kernel itself does it where a signal's handler asks
            // for that: nothing was done.
            Self::Device(fd) => retry_on_intr(|| {
                // SAFETY: `RDMA_VERBS_IOCTL` takes a pointer to a header whose length names the
                // bytes that follow. `Frame` is `repr(C)`, header first, and `push` sets the
                // length to header + used attributes, which lie inside `attributes`. Beyond the
                // frame the kernel writes only through the attributes that `outputs` lists for the
                // method; each was made by `Payload::write_to`, so that its address and length are
                // those of memory borrowed exclusively as long as the frame lives.
                unsafe { ioctl(fd, VerbsIoctl(frame)) }
            }),
            #[cfg(feature = "simulated-kernel")]
            Self::Simulated(kernel, _) => frame.simulate(&**kernel),
        };
        for (address, len) in frame.written() {
            memcheck::written(address, len);
        }
        answer.map_err(NotAnswered::Kernel)
    }
}

impl Kernel {
    /// Sends a `frame` of a method that makes a file descriptor; `None` if the kernel made none.
    pub(crate) fn submit_for_fd<const N: usize>(
        &self,
        frame: &mut Frame<'_, N>,
    ) -> Result<Option<OwnedFd>, NotAnswered> {
        let Some(attr_id) = outputs::new_fd(frame.header()) else {
            return Err(NotAnswered::Outputs);
        };
        self.send(frame)?;
        // Only a real kernel makes real ones.
        #[cfg(feature = "simulated-kernel")]
        if let Self::Simulated(_, stand_in) = self {
            return Ok(stand_in.try_clone().ok());
        }
        let made = frame.attributes().iter().find(|attribute| attribute.attr_id == attr_id);
        let number = made.and_then(|attribute| RawFd::try_from(attribute.data).ok());
        Ok(number.map(|number| {
            // SAFETY: by `outputs::new_fd` the kernel, which just succeeded, installed a new file
            // descriptor and wrote its number into this attribute; nobody else knows it. It is
            // taken once, as a frame is sent once.
            unsafe { OwnedFd::from_raw_fd(number) }
        }))
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
