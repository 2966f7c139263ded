//! The kernel's heap: `talc`, under one lock, in the memory that the machine keeps for it.
//!
//! Freed pieces are kept, by size, for the next allocation of that size: a process that ends leaves
//! what the next one needs. When memory does not suffice otherwise, all of them are returned to
//! `talc`.

use crate::errno::Errno;
use alloc::vec::Vec;
use core::alloc::{GlobalAlloc, Layout};
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicBool, Ordering};
use lock_api::Mutex;
use metal::Metal;
use sync::spin::TestAndSet;
use talc::base::{CHUNK_UNIT, Talc};
use talc::{DefaultBinning, source::Manual};

/// The heap is short when less than this part of it is free: then programs can create nothing that
/// would keep memory. It is nearly empty when less than the part [`NEARLY_EMPTY`] is free: then
/// they can touch no more memory either. The rest is reserved for operations in progress that
/// cannot fail.
const SHORT: usize = 4;
const NEARLY_EMPTY: usize = 16;

/// The size and the alignment of a piece are multiples of this, as `talc`'s own are: with other
/// alignments it would search a long list of free pieces.
const STEP: usize = CHUNK_UNIT;
/// The bytes of a piece that `talc` needs for itself.
const TAIL: usize = size_of::<usize>();
/// The steps of the largest piece that is kept.
const STEPS: usize = 256;

/// The heap's data, under its lock.
struct Pieces {
    memory: Talc<Manual, DefaultBinning>,
    /// The first kept piece of each number of steps; each piece links to the next.
    kept: [*mut Kept; STEPS + 1],
    /// The steps of all kept pieces.
    kept_steps: usize,
}

/// A kept piece.
struct Kept(*mut Kept);

// SAFETY: the pieces belong to the heap.
unsafe impl Send for Pieces {}

/// True if the heap was short when memory other than kept pieces was last allocated or freed.
/// Written under the heap's lock.
static MAY_BE_SHORT: AtomicBool = AtomicBool::new(false);

/// The heap.
struct Heap(Mutex<TestAndSet<Metal>, Pieces>);

#[global_allocator]
static HEAP: Heap = Heap(Mutex::new(Pieces {
    memory: Talc::new(Manual),
    kept: [null_mut(); _],
    kept_steps: 0,
}));

/// The steps of a piece with this size, if such pieces are kept.
fn steps(bytes: usize) -> Option<usize> {
    let steps = (bytes + TAIL).div_ceil(STEP);
    (steps <= STEPS).then_some(steps)
}

impl Pieces {
    /// A piece of this size, which is new, or was kept.
    fn take(&mut self, bytes: usize) -> *mut u8 {
        let Some(steps) = steps(bytes) else {
            return self.allocate(piece(bytes));
        };
        let first = self.kept[steps];
        if first.is_null() {
            return self.allocate(whole(steps));
        }
        // SAFETY: a kept piece, which is the heap's.
        self.kept[steps] = unsafe { (*first).0 };
        self.kept_steps -= steps;
        first.cast()
    }

    /// # Safety
    /// It comes from `take` with the same size, and is no longer used.
    unsafe fn give(&mut self, given: *mut u8, bytes: usize) {
        let Some(steps) = steps(bytes) else {
            // SAFETY: the caller got it from `take` with this size, so from `memory`, and gives it
            // up.
            unsafe { self.memory.deallocate(given, piece(bytes)) };
            return self.note();
        };
        let piece: *mut Kept = given.cast();
        // SAFETY: it is large enough and aligned, and the heap's again.
        unsafe { piece.write(Kept(self.kept[steps])) };
        self.kept[steps] = piece;
        self.kept_steps += steps;
    }

    /// The number of free bytes, in any number of pieces.
    fn free(&self) -> usize {
        self.memory.counters().available_bytes + self.kept_steps * STEP
    }

    /// Records if the heap is short.
    fn note(&self) {
        MAY_BE_SHORT.store(self.has_less_than(SHORT), Ordering::Relaxed);
    }

    /// Returns true if less than this part of the heap is free.
    fn has_less_than(&self, part: usize) -> bool {
        let (_, bytes) = metal::heap();
        self.free() < bytes / part
    }

    #[cold]
    fn allocate(&mut self, layout: Layout) -> *mut u8 {
        let piece = self.allocate_anywhere(layout);
        self.note();
        piece
    }

    fn allocate_anywhere(&mut self, layout: Layout) -> *mut u8 {
        // SAFETY: the layout is not empty.
        let mut allocate = || unsafe { self.memory.allocate(layout) };
        if let Some(piece) = allocate() {
            return piece.as_ptr();
        }
        for (steps, first) in self.kept.iter_mut().enumerate() {
            while !first.is_null() {
                let piece = *first;
                // SAFETY: a kept piece, of `steps` steps.
                unsafe {
                    *first = (*piece).0;
                    self.memory.deallocate(piece.cast(), whole(steps));
                }
            }
        }
        self.kept_steps = 0;
        // SAFETY: the layout is not empty.
        let piece = unsafe { self.memory.allocate(layout) };
        piece.map_or(null_mut(), NonNull::as_ptr)
    }
}

/// The layout with which `talc` allocates a piece to keep.
fn whole(steps: usize) -> Layout {
    piece(steps * STEP - TAIL)
}

/// The layout with which `talc` allocates this size.
fn piece(bytes: usize) -> Layout {
    // SAFETY: a power of two; and the size is that of a layout, or a little more.
    unsafe { Layout::from_size_align_unchecked(bytes, STEP) }
}

/// Gives the heap its memory.
pub fn begin() {
    let (start, bytes) = metal::heap();
    // SAFETY: the machine keeps the memory for the heap alone.
    let claimed = unsafe { HEAP.0.lock().memory.claim(start, bytes) };
    claimed.expect("the heap has memory");
}

/// Returns true if the heap is short, so that programs can create nothing that would keep memory.
#[inline]
pub fn is_short() -> bool {
    MAY_BE_SHORT.load(Ordering::Relaxed) && has_less_than(SHORT)
}

/// Returns true if the heap is nearly empty, so that programs can touch no more memory.
#[inline]
pub fn is_nearly_empty() -> bool {
    MAY_BE_SHORT.load(Ordering::Relaxed) && has_less_than(NEARLY_EMPTY)
}

#[cold]
fn has_less_than(part: usize) -> bool {
    HEAP.0.lock().has_less_than(part)
}

/// Adds `item` to `list`; [`Errno::NOMEM`] if there is no room.
pub fn push<T>(list: &mut Vec<T>, item: T) -> Result<(), Errno> {
    list.try_reserve(1).map_err(|_| Errno::NOMEM)?;
    list.push(item);
    Ok(())
}

/// The items in a list; the first error, or [`Errno::NOMEM`] if there is no room.
pub fn collect<T>(items: impl IntoIterator<Item = Result<T, Errno>>) -> Result<Vec<T>, Errno> {
    let mut list = Vec::new();
    items
        .into_iter()
        .try_for_each(|item| push(&mut list, item?))?;
    Ok(list)
}

/// This many zeroes; [`Errno::NOMEM`] if there is no room.
pub fn buffer(bytes: usize) -> Result<Vec<u8>, Errno> {
    let mut buffer = Vec::new();
    buffer.try_reserve_exact(bytes).map_err(|_| Errno::NOMEM)?;
    buffer.resize(bytes, 0);
    Ok(buffer)
}

// SAFETY: `Talc` keeps the rules of an allocator, kept pieces are not in use, and the lock lets one
// CPU at a time access both. What is aligned to more than a piece lies in one with room for that,
// behind the piece's address.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let (bytes, align) = (layout.size(), layout.align());
        if align <= STEP {
            return self.0.lock().take(bytes);
        }
        let piece = self.0.lock().take(bytes + align);
        if piece.is_null() {
            return piece;
        }
        // At least a step from the piece's start, which is aligned to a step, and not more than
        // `align`.
        let place = piece.map_addr(|address| (address + 1).next_multiple_of(align));
        // SAFETY: the word before the place is the piece's, and aligned.
        unsafe { place.cast::<*mut u8>().sub(1).write(piece) };
        place
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        let (bytes, align) = (layout.size(), layout.align());
        if align <= STEP {
            // SAFETY: the caller has it from `alloc`, with the same layout.
            return unsafe { self.0.lock().give(place, bytes) };
        }
        // SAFETY: `alloc` has written the piece's address there, and took it with this size.
        unsafe {
            let piece = place.cast::<*mut u8>().sub(1).read();
            self.0.lock().give(piece, bytes + align);
        }
    }
}
