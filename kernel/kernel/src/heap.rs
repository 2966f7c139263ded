//! The kernel's heap: `talc`, under one lock, in the memory that the machine keeps for it.

use crate::abi::Errno;
use alloc::vec::Vec;
use core::alloc::{GlobalAlloc, Layout};
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicUsize, Ordering};
use lock_api::Mutex;
use metal::Metal;
use sync::spin::TestAndSet;
use talc::{DefaultBinning, base::Talc, source::Manual};

/// The heap is short when less than this part of it is free: then nothing begins that would keep
/// more. Operations that are under way, and cannot fail, have the rest.
const RESERVE: usize = 4;

/// The heap, and how many bytes of it are used; a number of its own: relaxed.
struct Heap(
    Mutex<TestAndSet<Metal>, Talc<Manual, DefaultBinning>>,
    AtomicUsize,
);

#[global_allocator]
static HEAP: Heap = Heap(Mutex::new(Talc::new(Manual)), AtomicUsize::new(0));

/// Gives the heap its memory.
pub fn begin() {
    let (start, bytes) = metal::heap();
    // SAFETY: the machine keeps the memory for the heap alone.
    let claimed = unsafe { HEAP.0.lock().claim(start, bytes) };
    claimed.expect("the heap has memory");
}

/// Whether the heap has little room.
pub fn is_short() -> bool {
    let (_, bytes) = metal::heap();
    HEAP.1.load(Ordering::Relaxed) > bytes - bytes / RESERVE
}

/// So many zeroes.
pub fn buffer(bytes: usize) -> Result<Vec<u8>, Errno> {
    let mut buffer = Vec::new();
    buffer.try_reserve_exact(bytes).map_err(|_| Errno::NOMEM)?;
    buffer.resize(bytes, 0);
    Ok(buffer)
}

// SAFETY: `Talc` keeps the rules of an allocator, and the lock lets one CPU at a time use it.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the layout is not empty, as the caller says.
        let place = unsafe { self.0.lock().allocate(layout) };
        if place.is_some() {
            self.1.fetch_add(layout.size(), Ordering::Relaxed);
        }
        place.map_or(null_mut(), NonNull::as_ptr)
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: the caller has it from `alloc`, with the same layout.
        unsafe { self.0.lock().deallocate(place, layout) };
        self.1.fetch_sub(layout.size(), Ordering::Relaxed);
    }
}
