//! Memory of a caller with guard bytes around it.

/// What is around, and at first inside.
pub(crate) const GUARD: u8 = 0xa5;

/// Bytes of guard on each side.
const AROUND: usize = 64;

/// So many bytes, aligned to eight, and guards around.
#[derive(Debug)]
pub(crate) struct Guarded {
    words: Vec<u64>,
    length: usize,
}

impl Guarded {
    pub(crate) fn new(length: usize) -> Self {
        let words = (length + 2 * AROUND).div_ceil(8);
        Self { words: vec![u64::from_ne_bytes([GUARD; 8]); words], length }
    }

    fn bytes(&self) -> &[u8] {
        zerocopy::IntoBytes::as_bytes(self.words.as_slice())
    }

    /// The caller's memory.
    pub(crate) fn inside(&self) -> &[u8] {
        &self.bytes()[AROUND..][..self.length]
    }

    pub(crate) fn inside_mut(&mut self) -> &mut [u8] {
        &mut zerocopy::IntoBytes::as_mut_bytes(self.words.as_mut_slice())[AROUND..][..self.length]
    }

    /// Its address, or NULL.
    pub(crate) fn pointer<T>(&mut self, is_null: bool) -> *mut T {
        if is_null { core::ptr::null_mut() } else { self.inside_mut().as_mut_ptr().cast() }
    }

    /// Nothing was written around.
    pub(crate) fn check(&self) {
        let bytes = self.bytes();
        assert!(bytes[..AROUND].iter().all(|byte| *byte == GUARD), "written in front");
        assert!(bytes[AROUND + self.length..].iter().all(|byte| *byte == GUARD), "written behind");
    }

    /// Only zeros were written, and everywhere.
    pub(crate) fn check_zero(&self) {
        self.check();
        assert!(self.inside().iter().all(|byte| *byte == 0), "an error wrote no zeros");
    }

    /// Nothing was written at all.
    pub(crate) fn check_untouched(&self) {
        self.check();
        assert!(self.inside().iter().all(|byte| *byte == GUARD), "an error wrote");
    }
}
