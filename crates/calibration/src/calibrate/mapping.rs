//! Fresh anonymous memory in small pages.

use std::io;

/// Bytes of a page, as profiles count it.
pub const PAGE: usize = 4096;

/// A private mapping; unmapped when dropped.
pub struct Mapping {
    start: *mut u8,
    pages: usize,
}

impl Mapping {
    /// Maps `pages` untouched pages.
    pub fn new(pages: usize) -> io::Result<Self> {
        let (access, flags) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
        );
        // SAFETY: a new mapping at an address of the kernel's choice.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), pages * PAGE, access, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // A kernel without huge pages refuses, and has no need of it. SAFETY: the range is this
        // mapping's.
        unsafe { libc::madvise(start, pages * PAGE, libc::MADV_NOHUGEPAGE) };
        Ok(Mapping {
            start: start.cast(),
            pages,
        })
    }

    /// The first byte of a page.
    pub fn page(&self, index: usize) -> *mut u8 {
        // SAFETY: the remainder is a page of the mapping.
        unsafe { self.start.add(index % self.pages * PAGE) }
    }

    /// Writes a byte of a page.
    pub fn touch(&self, index: usize) {
        // SAFETY: the page is this mapping's and, but within `shootdown`, writable.
        unsafe { self.page(index).write_volatile(1) };
    }

    /// Allows reading, or reading and writing.
    pub fn protect(&self, write: bool) -> io::Result<()> {
        let access = if write {
            libc::PROT_READ | libc::PROT_WRITE
        } else {
            libc::PROT_READ
        };
        // SAFETY: the range is this mapping's, and no reference points into it.
        match unsafe { libc::mprotect(self.start.cast(), self.pages * PAGE, access) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range is this mapping's, and no address of it is kept.
        unsafe { libc::munmap(self.start.cast(), self.pages * PAGE) };
    }
}
