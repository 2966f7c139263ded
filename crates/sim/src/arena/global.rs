//! The global allocator of a program that simulates.

use super::heap::Heap;
use super::heap_of;
use core::alloc::{GlobalAlloc, Layout};
use core::cell::Cell;
use core::ptr::null_mut;
use std::alloc::System;

thread_local! {
    /// The heap of the simulated CPU that this thread is running; null outside.
    static HEAP: Cell<*mut Heap> = const { Cell::new(null_mut()) };
}

/// Simulated CPUs allocate from their machine's window, all other code from the system.
///
/// A program that simulates installs it; otherwise its results depend on where the host's allocator
/// puts things:
///
/// ```
/// #[global_allocator]
/// static ALLOCATOR: sim::Allocator = sim::Allocator;
/// ```
pub struct Allocator;

/// Makes this thread allocate from `heap`, or from the system if that is null. Returns the previous
/// heap.
#[inline]
pub(crate) fn switch(heap: *mut Heap) -> *mut Heap {
    HEAP.replace(heap)
}

// SAFETY: every block comes from the system or a heap, and goes back there.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let heap = HEAP.get();
        // A panic's payload, and std's memory for the next panic, outlive the machine.
        if heap.is_null() || std::thread::panicking() {
            // SAFETY: the caller keeps the contract of `GlobalAlloc`, which is the system's.
            return unsafe { System.alloc(layout) };
        }
        // SAFETY: the heap lives while its CPUs run.
        let fresh = unsafe { Heap::is_short_of(heap, layout) };
        crate::engine::allocation(fresh);
        // SAFETY: the heap lives while its CPUs run.
        unsafe { Heap::allocate(heap, layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        match heap_of(block as usize) {
            // SAFETY: the block lies in no window, so it is the system's; the caller answers for
            // the layout.
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
            // SAFETY: the block lies in no window, so it is the system's; the caller answers for
            // the layout.
            return unsafe { System.realloc(block, layout, size) };
        }
        // SAFETY: the caller answers for `size` at this alignment.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        // SAFETY: the caller answers for the layouts; the blocks are different, and both hold the
        // copied bytes.
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
