//! One uverbs ioctl request in memory: the header, then the attributes.
//!
//! A [`Frame`] keeps one promise, on which the system call rests: every attribute was made from a
//! [`Payload`], and the frame remembers how. An attribute made by [`Payload::write_to`] is the
//! address and length of memory that is borrowed exclusively for as long as the frame lives.

use core::marker::PhantomData;
use core::mem::size_of;

use uverbs_uapi::ioctl::{ATTR_F_VALID_OUTPUT, Attribute, IoctlHeader};

use super::access::Access;
use super::outputs::{allows, outputs};

/// The 64-bit data of an attribute, and the memory it may point to.
#[derive(Debug)]
pub(crate) struct Payload<'a> {
    data: u64,
    len: usize,
    access: Access,
    borrow: PhantomData<&'a mut [u8]>,
}

impl<'a> Payload<'a> {
    /// A value that the kernel reads from the attribute itself; `len` is what the attribute claims.
    pub(crate) fn value(data: u64, len: usize) -> Self {
        Self { data, len, access: Access::Value, borrow: PhantomData }
    }

    /// Memory that the kernel reads.
    pub(crate) fn read_from(bytes: &'a [u8]) -> Self {
        Self {
            // Exposed, because the kernel gets the address as a number.
            data: bytes.as_ptr().expose_provenance() as u64,
            len: bytes.len(),
            access: Access::Read,
            borrow: PhantomData,
        }
    }

    /// Memory that the kernel writes.
    pub(crate) fn write_to(bytes: &'a mut [u8]) -> Self {
        let len = bytes.len();
        Self {
            data: bytes.as_mut_ptr().expose_provenance() as u64,
            len,
            access: Access::Write,
            borrow: PhantomData,
        }
    }
}

/// Header and room for `N` attributes, laid out as the kernel reads them.
///
/// Only the part in front, header and used attributes, is named by the header's length.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Frame<'a, const N: usize> {
    header: IoctlHeader,
    attributes: [Attribute; N],
    // Nothing below is seen by the kernel: the header's length ends before it.
    accesses: [Access; N],
    borrow: PhantomData<&'a mut [u8]>,
}

/// Bytes of the header and of an attribute, in the type of the header's length.
const HEADER_LEN: u16 = 24;
const ATTRIBUTE_LEN: u16 = 16;

// The attributes follow the header without a gap.
const _: () = assert!(
    size_of::<IoctlHeader>() == HEADER_LEN as usize
        && size_of::<Attribute>() == ATTRIBUTE_LEN as usize
        && core::mem::offset_of!(Frame<'static, 1>, attributes) == HEADER_LEN as usize
);

/// Why an attribute cannot be appended.
#[derive(Debug)]
pub(crate) enum NotAdded {
    /// The payload's length does not fit 16 bits.
    TooLong(usize),
    /// The frame has no room for one more.
    Full,
}

impl<'a, const N: usize> Frame<'a, N> {
    pub(crate) fn new(object_id: u16, method_id: u16) -> Self {
        Self {
            header: IoctlHeader {
                length: HEADER_LEN,
                object_id,
                method_id,
                ..IoctlHeader::default()
            },
            attributes: [Attribute::default(); N],
            accesses: [Access::default(); N],
            borrow: PhantomData,
        }
    }

    /// Appends an attribute.
    #[expect(clippy::needless_pass_by_value, reason = "its borrow goes into the frame")]
    pub(crate) fn push(
        &mut self,
        attr_id: u16,
        flags: u16,
        elem_id: u8,
        payload: Payload<'a>,
    ) -> Result<(), NotAdded> {
        let Payload { data, len: bytes, access, .. } = payload;
        let len = u16::try_from(bytes).map_err(|_| NotAdded::TooLong(bytes))?;
        let length = self.header.length.checked_add(ATTRIBUTE_LEN).ok_or(NotAdded::Full)?;
        let used = usize::from(self.header.num_attrs);
        let place = self.attributes.get_mut(used).ok_or(NotAdded::Full)?;
        *place = Attribute { attr_id, len, flags, elem_id, reserved: 0, data };
        if let Some(place) = self.accesses.get_mut(used) {
            *place = access;
        }
        self.header.num_attrs += 1;
        self.header.length = length;
        Ok(())
    }

    /// Whether the kernel, when it runs the frame's method, writes only to memory that the frame
    /// borrows exclusively, and through the addresses that it has now.
    pub(super) fn lends_all_outputs(&self) -> bool {
        let attributes = self.attributes();
        let Some(outputs) = outputs(&self.header) else {
            return attributes.is_empty();
        };
        attributes.iter().zip(&self.accesses).all(|(attribute, access)| {
            (!outputs.contains(&attribute.attr_id) || *access == Access::Write)
                && allows(&self.header, attribute.attr_id, attribute.data)
        })
    }

    /// Address and length of the memory that the kernel says it wrote, also where it failed.
    pub(super) fn written(&self) -> impl Iterator<Item = (u64, u64)> {
        let valid = |attribute: &Attribute| attribute.flags & ATTR_F_VALID_OUTPUT != 0;
        self.attributes()
            .iter()
            .zip(&self.accesses)
            .filter(move |(attribute, access)| **access == Access::Write && valid(attribute))
            .map(|(attribute, _)| (attribute.data, attribute.len.into()))
    }

    pub(crate) fn set_driver_id(&mut self, driver_id: u32) {
        self.header.driver_id = driver_id;
    }

    pub(crate) fn header(&self) -> &IoctlHeader {
        &self.header
    }

    /// The attributes in use, as the kernel left them.
    pub(crate) fn attributes(&self) -> &[Attribute] {
        self.attributes.get(..usize::from(self.header.num_attrs)).unwrap_or_default()
    }

    /// Flags of the attribute appended last.
    pub(crate) fn last_flags_mut(&mut self) -> Option<&mut u16> {
        let last = usize::from(self.header.num_attrs).checked_sub(1)?;
        self.attributes.get_mut(last).map(|attribute| &mut attribute.flags)
    }

    /// The whole frame, from its first byte; its provenance covers header and attributes.
    pub(super) fn as_mut_ptr(&mut self) -> *mut Self {
        self
    }

    #[cfg(feature = "simulated-kernel")]
    pub(super) fn simulate(
        &mut self,
        kernel: &dyn super::simulated::SimulatedKernel,
    ) -> Result<(), rustix::io::Errno> {
        super::simulated::run(&self.header, &mut self.attributes, &self.accesses, kernel)
    }
}
