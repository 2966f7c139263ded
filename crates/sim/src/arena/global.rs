//! The global allocator of a program that simulates.

use super::heap::Heap;
use super::heap_of;
use core::alloc::{GlobalAlloc, Layout};
use core::cell::Cell;
use core::ptr::null_mut;
use std::alloc::System;

thread_local! {
    /// The heap of the simulated CPU that this thread runs just now; null outside.
    static HEAP: Cell<*mut Heap> = const { Cell::new(null_mut()) };
}

/// What simulated CPUs allocate comes from their machine's window, all else from the
/// system.
///
/// A program that simulates installs it, or its results depend on where the host's
/// allocator puts things:
///
/// ```
/// #[global_allocator]
/// static ALLOCATOR: sim::Allocator = sim::Allocator;
/// ```
pub struct Allocator;

/// Allocations of this thread come from `heap` (or the system, if null) from now on;
/// returns where they came from before.
#[inline]
pub(crate) fn switch(heap: *mut Heap) -> *mut Heap {
    HEAP.replace(heap)
}

// SAFETY: every block is the system's or a heap's, and goes back to where it is from.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let heap = HEAP.get();
        // What a panic carries, and what std keeps for the next, outlives the machine.
        if heap.is_null() || std::thread::panicking() {
            // SAFETY: the caller's promise is the system's.
            return unsafe { System.alloc(layout) };
        }
        // SAFETY: the heap lives while its CPUs run.
        let fresh = unsafe { Heap::is_short_of(heap, layout) };
        crate::engine::allocation(fresh);
        // SAFETY: as above.
        unsafe { Heap::allocate(heap, layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        match heap_of(block as usize) {
            // SAFETY: as for `alloc`.
            None => unsafe { System.dealloc(block, layout) },
            Some(heap) => {
                crate::engine::deallocation();
                // SAFETY: the block lies in this heap's window, so it is from it.
                unsafe { Heap::free(heap.as_ptr(), block, layout) }
            }
        }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if HEAP.get().is_null() && heap_of(block as usize).is_none() {
            // SAFETY: as for `alloc`.
            return unsafe { System.realloc(block, layout, size) };
        }
        // SAFETY: the caller's promise: `size` fits the alignment.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        // SAFETY: as above; the blocks are different, and both hold what is copied.
        unsafe {
            let new = self.alloc(wanted);
            if !new.is_null() {
                new.copy_from_nonoverlapping(block, layout.size().min(size));
                self.dealloc(block, layout);
            }
            new
        }
    }
}
