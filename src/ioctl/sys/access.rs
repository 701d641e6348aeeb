//! How the kernel may use an attribute's data.

/// What an attribute's data is to the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Access {
    /// A value.
    #[default]
    Value,
    /// The address of memory that is borrowed for reading.
    Read,
    /// The address of memory that is borrowed for writing.
    Write,
}
