//! The encoder: see the [module above](super).

use core::fmt;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use uverbs_uapi::ioctl::{
    ATTR_F_MANDATORY, ATTR_F_VALID_OUTPUT, ATTR_UHW_IN, ATTR_UHW_OUT, Attribute, INLINE_LEN,
    IoctlHeader,
};
use zerocopy::{Immutable, IntoBytes};

use crate::error::{Cause, EncodeError};
use crate::ioctl::sys::frame::{Frame, NotAdded, Payload};
use crate::ioctl::sys::kernel::{Kernel, NotAnswered};

/// The most attributes a command may have: what one page of 4 KiB holds after the header.
///
/// The kernel compares a request's length with its own page size, which is never smaller.
pub const MAX_ATTRIBUTES: usize = 254;

/// The most bytes of one payload: its length is a 16-bit field.
pub const MAX_PAYLOAD: usize = u16::MAX as usize;

/// One uverbs request with room for `N` attributes (at most [`MAX_ATTRIBUTES`]).
///
/// Attributes are mandatory unless [`optional`](Self::optional) follows: a kernel that does not
/// know a mandatory attribute refuses the request with `EPROTONOSUPPORT`; an optional one it skips.
/// Memory given to the command stays borrowed as long as the command lives. The first mistake is
/// kept and comes back from [`check`](Self::check) and from sending; the calls can be chained.
pub struct Command<'a, const N: usize> {
    frame: Frame<'a, N>,
    mistake: Option<EncodeError>,
}

impl<'a, const N: usize> Command<'a, N> {
    const FITS_A_PAGE: () = assert!(N <= MAX_ATTRIBUTES, "a page holds 254 attributes");

    /// An empty command for a method of an object.
    #[must_use]
    pub fn new(object_id: u16, method_id: u16) -> Self {
        let () = Self::FITS_A_PAGE;
        Self { frame: Frame::new(object_id, method_id), mistake: None }
    }

    fn push(&mut self, attr_id: u16, elem_id: u8, payload: Payload<'a>) -> &mut Self {
        if self.mistake.is_some() {
            return self;
        }
        self.mistake = match self.frame.push(attr_id, ATTR_F_MANDATORY, elem_id, payload) {
            Ok(()) => None,
            Err(NotAdded::TooLong(len)) => Some(EncodeError::PayloadTooLong { attr_id, len }),
            Err(NotAdded::Full) => Some(EncodeError::TooManyAttributes { attr_id, capacity: N }),
        };
        self
    }

    /// A constant (`CONST_IN`): always eight bytes inline, whatever the C type of the value is.
    pub fn constant(&mut self, attr_id: u16, value: u64) -> &mut Self {
        self.push(attr_id, 0, Payload::value(value, size_of::<u64>()))
    }

    /// Flag bits (`FLAGS_IN`): four bytes if the value fits, else eight.
    pub fn flags(&mut self, attr_id: u16, value: u64) -> &mut Self {
        match u32::try_from(value) {
            Ok(short) => self.push(attr_id, 0, inline(&short.to_ne_bytes())),
            Err(_) => self.push(attr_id, 0, Payload::value(value, size_of::<u64>())),
        }
    }

    /// Bytes for the kernel (`PTR_IN`): up to eight are inline, more are passed by address.
    ///
    /// The kernel decides by the length, so there is no choice.
    pub fn input(&mut self, attr_id: u16, bytes: &'a [u8]) -> &mut Self {
        self.push(attr_id, 0, by_length(bytes))
    }

    /// A structure or integer for the kernel, as [`input`](Self::input) of its bytes.
    pub fn input_value<T: IntoBytes + Immutable>(
        &mut self,
        attr_id: u16,
        value: &'a T,
    ) -> &mut Self {
        self.input(attr_id, value.as_bytes())
    }

    /// Memory for the kernel's answer (`PTR_OUT`): always by address, however short.
    pub fn output(&mut self, attr_id: u16, bytes: &'a mut [u8]) -> &mut Self {
        self.push(attr_id, 0, Payload::write_to(bytes))
    }

    /// One variant of an enumeration (`ENUM_IN`) with its payload, encoded as by [`input`](Self::input).
    pub fn enumeration(&mut self, attr_id: u16, variant: u8, bytes: &'a [u8]) -> &mut Self {
        self.push(attr_id, variant, by_length(bytes))
    }

    /// An existing object's id (`IDR`).
    pub fn object(&mut self, attr_id: u16, id: u32) -> &mut Self {
        self.push(attr_id, 0, Payload::value(id.into(), 0))
    }

    /// Asks for a new object; its id is read by [`object_id`](Self::object_id) after sending.
    pub fn new_object(&mut self, attr_id: u16) -> &mut Self {
        self.push(attr_id, 0, Payload::value(0, 0))
    }

    /// An existing object that is an fd (`FD`), or a plain one (`RAW_FD`).
    pub fn fd(&mut self, attr_id: u16, fd: BorrowedFd<'a>) -> &mut Self {
        // 64 bits with a sign; that of a borrowed fd is never negative.
        let number = i64::from(fd.as_raw_fd());
        self.push(attr_id, 0, Payload::value(u64::from_ne_bytes(number.to_ne_bytes()), 0))
    }

    /// Asks for a new object that is an fd. After a successful send its number is the attribute's
    /// data.
    pub fn new_fd(&mut self, attr_id: u16) -> &mut Self {
        // -1, so that a kernel that fills in nothing leaves no fd to claim.
        self.push(attr_id, 0, Payload::value(u64::MAX, 0))
    }

    /// Ids of several objects (`IDRS_ARRAY`): up to two are inline.
    pub fn objects(&mut self, attr_id: u16, ids: &'a [u32]) -> &mut Self {
        self.input(attr_id, ids.as_bytes())
    }

    /// The driver's own part of the request (UHW in), encoded as by [`input`](Self::input).
    pub fn driver_input(&mut self, bytes: &'a [u8]) -> &mut Self {
        self.input(ATTR_UHW_IN, bytes)
    }

    /// Memory for the driver's own part of the answer (UHW out).
    pub fn driver_output(&mut self, bytes: &'a mut [u8]) -> &mut Self {
        self.output(ATTR_UHW_OUT, bytes)
    }

    /// Makes the attribute given last optional: a kernel that does not know it skips it.
    pub fn optional(&mut self) -> &mut Self {
        if let Some(flags) = self.frame.last_flags_mut() {
            *flags &= !ATTR_F_MANDATORY;
        }
        self
    }

    /// Says whether the command can be sent.
    ///
    /// # Errors
    /// The first mistake made while it was put together.
    pub fn check(&self) -> Result<(), EncodeError> {
        self.mistake.map_or(Ok(()), Err)
    }

    /// The header as it is sent; the driver id is filled in at that moment.
    #[must_use]
    pub fn header(&self) -> &IoctlHeader {
        self.frame.header()
    }

    /// The attributes: as encoded before sending, as the kernel left them afterwards.
    #[must_use]
    pub fn attributes(&self) -> &[Attribute] {
        self.frame.attributes()
    }

    /// The attribute with this id, if the command has one.
    #[must_use]
    pub fn attribute(&self, attr_id: u16) -> Option<&Attribute> {
        self.attributes().iter().find(|attribute| attribute.attr_id == attr_id)
    }

    /// Whether the kernel says that it wrote this attribute's memory (`VALID_OUTPUT`).
    #[must_use]
    pub fn is_output_valid(&self, attr_id: u16) -> bool {
        self.attribute(attr_id).is_some_and(|attribute| attribute.flags & ATTR_F_VALID_OUTPUT != 0)
    }

    /// The id of a [`new_object`](Self::new_object), after a successful send.
    #[must_use]
    pub fn object_id(&self, attr_id: u16) -> Option<u32> {
        self.attribute(attr_id).and_then(|attribute| u32::try_from(attribute.data).ok())
    }

    /// Sends the command, once.
    pub(crate) fn submit(&mut self, kernel: &Kernel, driver_id: u32) -> Result<(), SubmitError> {
        Ok(kernel.submit(self.sent(driver_id)?)?)
    }

    /// Sends the command, once, for the fd that its [`new_fd`](Self::new_fd) asks for; `None` if the
    /// kernel succeeds and makes none.
    pub(crate) fn submit_for_fd(
        &mut self,
        kernel: &Kernel,
        driver_id: u32,
    ) -> Result<Option<OwnedFd>, SubmitError> {
        Ok(kernel.submit_for_fd(self.sent(driver_id)?)?)
    }

    /// The frame, ready to be sent this one time.
    fn sent(&mut self, driver_id: u32) -> Result<&mut Frame<'a, N>, EncodeError> {
        self.check()?;
        self.mistake = Some(EncodeError::Sent);
        self.frame.set_driver_id(driver_id);
        Ok(&mut self.frame)
    }
}

impl<const N: usize> fmt::Debug for Command<'_, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Command")
            .field("header", self.header())
            .field("attributes", &self.attributes())
            .field("mistake", &self.mistake)
            .finish()
    }
}

/// Why sending failed: the encoder refused, or the kernel did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SubmitError {
    #[error(transparent)]
    Encode(#[from] EncodeError),
    #[error(transparent)]
    Kernel(#[from] Errno),
}

impl From<NotAnswered> for SubmitError {
    fn from(why: NotAnswered) -> Self {
        match why {
            NotAnswered::Outputs => EncodeError::Undescribed.into(),
            NotAnswered::Kernel(errno) => errno.into(),
        }
    }
}

impl From<SubmitError> for Cause {
    fn from(error: SubmitError) -> Self {
        match error {
            SubmitError::Encode(error) => Self::Encode(error),
            SubmitError::Kernel(errno) => Self::of_ioctl(errno),
        }
    }
}

/// Up to eight bytes, placed from the lowest address of the data on, as the kernel reads them.
fn inline<'a>(bytes: &[u8]) -> Payload<'a> {
    let mut data = [0u8; INLINE_LEN];
    for (place, byte) in data.iter_mut().zip(bytes) {
        *place = *byte;
    }
    Payload::value(u64::from_ne_bytes(data), bytes.len())
}

/// The kernel's eight-byte rule: short payloads inline, long ones by address.
fn by_length(bytes: &[u8]) -> Payload<'_> {
    if bytes.len() <= INLINE_LEN { inline(bytes) } else { Payload::read_from(bytes) }
}

#[cfg(test)]
mod tests;
