//! Reservations of the host's address space.

use std::io;

/// A range of the host's address space: readable, writable and zero. It takes memory only where it
/// is touched, and is unmapped by [`Reservation::release`] or when dropped.
pub(crate) struct Reservation {
    start: usize,
    bytes: usize,
}

impl Reservation {
    /// Reserves `bytes` at `start`, or fails.
    pub(crate) fn at(start: usize, bytes: usize) -> io::Result<Self> {
        Self::map(start, bytes, libc::MAP_FIXED_NOREPLACE)
    }

    /// Reserves `bytes` at an address that the host chooses.
    pub(crate) fn anywhere(bytes: usize) -> io::Result<Self> {
        Self::map(0, bytes, 0)
    }

    fn map(start: usize, bytes: usize, flags: libc::c_int) -> io::Result<Self> {
        // SAFETY: a new mapping that replaces none.
        let address = unsafe {
            libc::mmap(
                start as *mut libc::c_void,
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | flags,
                -1,
                0,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let taken = address as usize;
        let mut got = Reservation {
            start: taken,
            bytes,
        };
        if start != 0 && taken != start {
            // Systems that do not know the flag treat the address as a hint.
            got.release();
            return Err(io::ErrorKind::AddrInUse.into());
        }
        Ok(got)
    }

    /// The first address.
    pub(crate) fn start(&self) -> usize {
        self.start
    }

    /// Makes `bytes` from `offset` on inaccessible.
    pub(crate) fn protect(&self, offset: usize, bytes: usize) -> io::Result<()> {
        let start = (self.start + offset) as *mut libc::c_void;
        // SAFETY: the range lies in the mapping, which is not in use yet.
        match unsafe { libc::mprotect(start, bytes, libc::PROT_NONE) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Unmaps the range now.
    pub(crate) fn release(&mut self) {
        if self.bytes > 0 {
            // SAFETY: the mapping belongs to this, and its user has no pointer into it left.
            unsafe { libc::munmap(self.start as *mut libc::c_void, self.bytes) };
            self.bytes = 0;
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.release();
    }
}
