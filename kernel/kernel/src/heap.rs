//! The kernel's heap: `talc`, under one lock, in the memory that the machine keeps for it.
//!
//! Pieces that are given back are kept, by size, for those who ask for the same next: a process that ends
//! leaves what the next one needs. When the memory does not suffice otherwise, all of them go back.

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

/// Kept pieces are multiples of so many bytes, and aligned so.
const STEP: usize = 64;
/// The steps of the largest.
const STEPS: usize = 128;

/// The data under the lock.
struct Pieces {
    memory: Talc<Manual, DefaultBinning>,
    /// The first kept piece of each number of steps. Each leads to the next.
    kept: [*mut Kept; STEPS + 1],
}

/// A kept piece.
struct Kept(*mut Kept);

// SAFETY: the pieces belong to the heap.
unsafe impl Send for Pieces {}

/// The heap, and how many bytes of it are used; a number of its own: relaxed.
struct Heap(Mutex<TestAndSet<Metal>, Pieces>, AtomicUsize);

#[global_allocator]
static HEAP: Heap = Heap(
    Mutex::new(Pieces {
        memory: Talc::new(Manual),
        kept: [null_mut(); _],
    }),
    AtomicUsize::new(0),
);

/// The steps of a piece, if it is one to keep.
fn steps(layout: Layout) -> Option<usize> {
    let steps = layout.size().div_ceil(STEP);
    (steps <= STEPS && layout.align() <= STEP).then_some(steps)
}

/// The bytes that a piece takes: a tag is behind it, and the next one begins at a multiple of [`STEP`].
fn taken(layout: Layout) -> usize {
    layout.size().next_multiple_of(STEP) + STEP
}

impl Pieces {
    /// The piece is new, or was kept.
    fn take(&mut self, layout: Layout) -> *mut u8 {
        let Some(steps) = steps(layout) else {
            return self.allocate(layout);
        };
        let first = self.kept[steps];
        if first.is_null() {
            return self.allocate(whole(steps));
        }
        // SAFETY: a kept piece, which is the heap's.
        self.kept[steps] = unsafe { (*first).0 };
        first.cast()
    }

    /// # Safety
    /// It comes from `take`, with the same layout, and nobody has it any more.
    unsafe fn give(&mut self, piece: *mut u8, layout: Layout) {
        let Some(steps) = steps(layout) else {
            // SAFETY: the caller got it from `take` with this layout, so from `memory`, and gives it up.
            return unsafe { self.memory.deallocate(piece, layout) };
        };
        let piece: *mut Kept = piece.cast();
        // SAFETY: it is large enough and aligned, and the heap's again.
        unsafe { piece.write(Kept(self.kept[steps])) };
        self.kept[steps] = piece;
    }

    #[cold]
    fn allocate(&mut self, layout: Layout) -> *mut u8 {
        // SAFETY: the layout is not empty.
        let mut allocate = || unsafe { self.memory.allocate(layout) };
        if let Some(piece) = allocate() {
            return piece.as_ptr();
        }
        for (steps, first) in self.kept.iter_mut().enumerate() {
            while !first.is_null() {
                let piece = *first;
                // SAFETY: a kept piece, of so many steps.
                unsafe {
                    *first = (*piece).0;
                    self.memory.deallocate(piece.cast(), whole(steps));
                }
            }
        }
        // SAFETY: the layout is not empty.
        let piece = unsafe { self.memory.allocate(layout) };
        piece.map_or(null_mut(), NonNull::as_ptr)
    }
}

/// What `talc` is asked for, for a piece to keep.
fn whole(steps: usize) -> Layout {
    // SAFETY: a power of two, and few bytes.
    unsafe { Layout::from_size_align_unchecked(steps * STEP, STEP) }
}

/// Gives the heap its memory.
pub fn begin() {
    let (start, bytes) = metal::heap();
    // SAFETY: the machine keeps the memory for the heap alone.
    let claimed = unsafe { HEAP.0.lock().memory.claim(start, bytes) };
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

// SAFETY: `Talc` keeps the rules of an allocator, kept pieces are nobody's, and the lock lets one CPU at
// a time use both.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let piece = self.0.lock().take(layout);
        if !piece.is_null() {
            self.1.fetch_add(taken(layout), Ordering::Relaxed);
        }
        piece
    }

    unsafe fn dealloc(&self, piece: *mut u8, layout: Layout) {
        // SAFETY: the caller has it from `alloc`, with the same layout.
        unsafe { self.0.lock().give(piece, layout) };
        self.1.fetch_sub(taken(layout), Ordering::Relaxed);
    }
}
