//! The caller's errno, which no function of the library changes.
//!
//! A raw futex call, the standard library's mutex, a sleep that a signal interrupts, an allocation:
//! each of them may store to it, also when it succeeds.

use libc::c_int;
use std::alloc::{GlobalAlloc, Layout, System};

/// Stores the calling thread's errno back when it is dropped.
pub(crate) struct Kept(c_int);

/// The calling thread's errno as it is now, until the result is dropped.
#[inline]
pub(crate) fn keep() -> Kept {
    // SAFETY: the C library's pointer to the calling thread's own errno.
    Kept(unsafe { *libc::__errno_location() })
}

impl Drop for Kept {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: as in `keep`.
        unsafe { *libc::__errno_location() = self.0 };
    }
}

/// The C library's allocator, which keeps errno.
struct Allocator;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

// SAFETY: all calls go to the system's allocator as they are.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _errno = keep();
        // SAFETY: the caller guarantees this.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let _errno = keep();
        // SAFETY: the caller guarantees this.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let _errno = keep();
        // SAFETY: the caller guarantees this.
        unsafe { System.realloc(block, layout, size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let _errno = keep();
        // SAFETY: the caller guarantees this.
        unsafe { System.dealloc(block, layout) };
    }
}
