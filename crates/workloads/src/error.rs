//! Why a workload could not go on.

use core::fmt;

/// An operation of a [`System`](crate::System).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// Making a mapping.
    Map,
    /// Taking a mapping away.
    Unmap,
    /// Changing the rights of a mapping.
    Protect,
    /// Dropping the pages of a mapping.
    Discard,
    /// Asking for or moving the program break.
    Brk,
    /// Creating a file.
    File,
    /// Reading or writing a page.
    Touch,
}

impl Call {
    /// The name of the system call, or what comes nearest.
    pub const fn name(self) -> &'static str {
        match self {
            Call::Map => "mmap",
            Call::Unmap => "munmap",
            Call::Protect => "mprotect",
            Call::Discard => "madvise(MADV_DONTNEED)",
            Call::Brk => "brk",
            Call::File => "temporary file",
            Call::Touch => "page fault",
        }
    }
}

/// Why a workload could not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// A call failed, with this error number (`ENOMEM` is 12 …).
    Failed(Call, i32),
    /// The system does not have this call.
    Unsupported(Call),
    /// A page held another byte than it must.
    Wrong {
        /// Where.
        address: usize,
        /// What was read.
        found: u8,
        /// What should have been there.
        expected: u8,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Error::Failed(call, errno) => write!(f, "{}: error {errno}", call.name()),
            Error::Unsupported(call) => write!(f, "{}: this system has none", call.name()),
            Error::Wrong {
                address,
                found,
                expected,
            } => write!(f, "read {found} at {address:#x} instead of {expected}"),
        }
    }
}

impl core::error::Error for Error {}
