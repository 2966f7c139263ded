//! The errors of operations, and the errno that a POSIX system gives for each.

use crate::usage::Limit;
use alloc::collections::TryReserveError;
use core::fmt;
use machine::{PageFault, PagerError};

/// The reason why an operation was refused. A refused operation leaves the space unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// No frame, no kernel memory, or no address-space tag is left. `ENOMEM`.
    OutOfMemory(Resource),
    /// There is too little swap space for what the mapping might need. `ENOMEM`.
    OverCommit {
        /// The pages requested.
        pages: u64,
    },
    /// More than a limit of the space allows. `ENOMEM`.
    OverLimit(Limit),
    /// New memory would be locked, beyond [`Limit::Locked`]. `EAGAIN`, as `mmap` says.
    LockLimit,
    /// No gap of this size is left in the address space. `ENOMEM`.
    NoAddresses {
        /// The length requested, in bytes.
        bytes: usize,
    },
    /// Part of the range is not mapped. `ENOMEM`, as `mprotect` says.
    NotMapped {
        /// The first unmapped address.
        address: usize,
    },
    /// An address or length that is unaligned, empty or out of bounds. `EINVAL`.
    Invalid {
        /// The error in the request.
        reason: &'static str,
    },
    /// The requested range is taken. `EEXIST`.
    Exists {
        /// The first address that is mapped already.
        address: usize,
    },
    /// Memory that is locked would have to be given up. `EBUSY`, as `msync` says.
    Busy {
        /// The first address that is locked.
        address: usize,
    },
    /// The object may not be written. `EACCES`.
    Denied,
    /// The range has several mappings, or none. `EFAULT`, as `mremap` says.
    NotOne {
        /// The address at which the mapping ends or something else begins.
        address: usize,
    },
    /// A task made an access that it has no right to. `SIGSEGV`.
    Segv(PageFault),
    /// A page of an object that lies behind its end, or that cannot be read. `SIGBUS`.
    Bus {
        /// The page's index in the object.
        page: u64,
    },
    /// A part of an object beyond the largest object. `EFBIG`.
    TooFar {
        /// The first page beyond.
        page: u64,
    },
    /// A store of pages failed; its errno.
    Io(PagerError),
    /// The task is to do something else ([`crate::Options::interrupted`]). `EINTR`.
    Interrupted,
}

/// The resource that ran out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// Physical frames.
    Frames,
    /// The kernel's heap.
    Heap,
    /// Address-space identifiers.
    Asids,
}

impl Error {
    /// The errno (Linux numbering); a fault maps to `EFAULT`.
    pub const fn errno(&self) -> i32 {
        match self {
            Error::OutOfMemory(_)
            | Error::OverCommit { .. }
            | Error::OverLimit(_)
            | Error::NoAddresses { .. }
            | Error::NotMapped { .. } => 12,
            Error::Interrupted => 4,
            Error::LockLimit => 11,
            Error::Busy { .. } => 16,
            Error::Exists { .. } => 17,
            Error::Denied => 13,
            Error::Invalid { .. } => 22,
            Error::TooFar { .. } => 27,
            Error::NotOne { .. } | Error::Segv(_) | Error::Bus { .. } => 14,
            Error::Io(error) => error.errno,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::OutOfMemory(Resource::Frames) => write!(f, "out of physical frames"),
            Error::OutOfMemory(Resource::Heap) => write!(f, "out of kernel memory"),
            Error::OutOfMemory(Resource::Asids) => write!(f, "out of address-space identifiers"),
            Error::OverCommit { pages } => write!(f, "no swap space to reserve for {pages} pages"),
            Error::OverLimit(Limit::AddressSpace) => write!(f, "over the limit of mapped memory"),
            Error::OverLimit(Limit::Data) => write!(f, "over the limit of private memory"),
            Error::OverLimit(Limit::Locked) => write!(f, "over the limit of locked memory"),
            Error::OverLimit(Limit::Stack) => write!(f, "over the limit of stacks"),
            Error::LockLimit => write!(f, "new memory would be over the limit of locked memory"),
            Error::NoAddresses { bytes } => write!(f, "no free range of {bytes} bytes"),
            Error::NotMapped { address } => write!(f, "{address:#x} is not mapped"),
            Error::Invalid { reason } => write!(f, "invalid request: {reason}"),
            Error::Exists { address } => write!(f, "{address:#x} is mapped already"),
            Error::Busy { address } => write!(f, "{address:#x} is locked in memory"),
            Error::Denied => write!(f, "the object may not be written"),
            Error::NotOne { address } => write!(f, "the range is not one mapping: {address:#x}"),
            Error::Segv(fault) => write!(f, "segmentation fault: {fault}"),
            Error::Bus { page } => write!(f, "bus error: page {page} is not available"),
            Error::TooFar { page } => write!(f, "no object can have a page {page}"),
            Error::Io(error) => write!(f, "input/output failed: {error}"),
            Error::Interrupted => write!(f, "interrupted"),
        }
    }
}

impl core::error::Error for Error {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Error::Segv(fault) => Some(fault),
            Error::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<TryReserveError> for Error {
    fn from(_: TryReserveError) -> Self {
        Error::OutOfMemory(Resource::Heap)
    }
}
