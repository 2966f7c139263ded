//! The heap of a simulated machine: deterministic, with per-CPU magazines.
//!
//! Blocks are of size classes (powers of two and the halves between). A CPU allocates from its own
//! free lists and frees to them, so small blocks of different CPUs share no cache line, as in the
//! slab allocators of kernels. The allocator's own lines are not simulated; the profile says what
//! an allocation costs.
//!
//! The lock is needed because the host may drop on one thread what another thread's simulation has
//! allocated; it is never contended within a run.

use core::alloc::Layout;
use core::sync::atomic::{AtomicBool, Ordering};

/// Size classes: 16, 24, 32, 48, 64, … up to 2^39.
const CLASSES: usize = 72;
/// Blocks up to this size are cut from runs that belong to a CPU.
const SMALL: usize = 2048;
/// Bytes that a CPU takes at once for small blocks.
const RUN: usize = 16 << 10;

/// The allocator.
pub(crate) struct Heap {
    locked: AtomicBool,
    /// The first address never handed out.
    top: usize,
    end: usize,
    /// One per CPU, and one for blocks that no particular CPU allocates or frees.
    magazines: Box<[Magazine]>,
    /// The magazine in use.
    current: usize,
}

/// One CPU's free blocks.
struct Magazine {
    /// The first free block of each class; the block's first word names the next.
    free: [usize; CLASSES],
    /// The rest of the CPU's runs, by class.
    runs: [(usize, usize); CLASSES],
}

impl Heap {
    /// A heap of `bytes` at `start` for `cpus` CPUs.
    pub(crate) fn new(start: usize, bytes: usize, cpus: usize) -> Self {
        let magazine = || Magazine {
            free: [0; CLASSES],
            runs: [(0, 0); CLASSES],
        };
        Heap {
            locked: AtomicBool::new(false),
            top: start,
            end: start + bytes,
            magazines: (0..=cpus).map(|_| magazine()).collect(),
            current: cpus,
        }
    }

    /// Makes further allocations belong to this CPU, or to none in particular.
    pub(crate) fn switch(&mut self, cpu: Option<usize>) {
        self.current = cpu.unwrap_or(self.magazines.len() - 1);
    }

    /// Returns true if the current CPU has no block for `layout` left, so that an allocation takes
    /// fresh memory, whose address depends on the order of the CPUs that do so.
    ///
    /// # Safety
    /// `this` is a live heap.
    pub(crate) unsafe fn is_short_of(this: *mut Self, layout: Layout) -> bool {
        let class = class_of(layout);
        // SAFETY: the caller passes a live heap; `locked` gives this CPU exclusive access.
        unsafe {
            Self::with(this, |heap| {
                let magazine = &heap.magazines[heap.current];
                let (at, end) = magazine.runs[class];
                magazine.free[class] == 0 && (at == 0 || at + size_of_class(class) > end)
            })
        }
    }

    /// A block for `layout`; null if the heap is full. O(1).
    ///
    /// # Safety
    /// `this` is a live heap.
    pub(crate) unsafe fn allocate(this: *mut Self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller passes a live heap; `locked` gives this CPU exclusive access.
        unsafe { Self::with(this, |heap| heap.take(class_of(layout)) as *mut u8) }
    }

    /// Frees a block. O(1).
    ///
    /// # Safety
    /// `this` is a live heap, `block` one of its blocks, with this layout.
    pub(crate) unsafe fn free(this: *mut Self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller passes a live heap and hands over its block.
        unsafe {
            Self::with(this, |heap| {
                let list = &mut heap.magazines[heap.current].free[class_of(layout)];
                // SAFETY: the block is free, 16 bytes long at least, and 8-aligned.
                block.cast::<usize>().write(*list);
                *list = block as usize;
            });
        }
    }

    /// # Safety
    /// `this` is a live heap.
    unsafe fn with<R>(this: *mut Self, f: impl FnOnce(&mut Heap) -> R) -> R {
        // SAFETY: the flag is only accessed as an atomic.
        let locked = unsafe { &(*this).locked };
        // Acquire and release: each holder sees what the previous one did.
        while locked.swap(true, Ordering::Acquire) {
            core::hint::spin_loop();
        }
        // SAFETY: this CPU holds the lock.
        let result = f(unsafe { &mut *this });
        // SAFETY: the flag is only accessed as an atomic.
        unsafe { &(*this).locked }.store(false, Ordering::Release);
        result
    }

    /// The number of bytes, from `start` on, that the heap has handed out.
    pub(crate) fn used(&self, start: usize) -> usize {
        self.top - start
    }

    fn take(&mut self, class: usize) -> usize {
        let size = size_of_class(class);
        let magazine = &mut self.magazines[self.current];
        let first = magazine.free[class];
        if first != 0 {
            // SAFETY: the first word of a free block names the next.
            magazine.free[class] = unsafe { (first as *const usize).read() };
            return first;
        }
        if size > SMALL {
            return self.cut(size);
        }
        let (at, end) = magazine.runs[class];
        if at + size <= end && at != 0 {
            self.magazines[self.current].runs[class].0 = at + size;
            return at;
        }
        let run = self.cut(RUN);
        if run != 0 {
            self.magazines[self.current].runs[class] = (run + size, run + RUN);
        }
        run
    }

    /// Takes fresh memory, aligned as the size class requires; 0 if there is none.
    fn cut(&mut self, size: usize) -> usize {
        let align = 1 << size.trailing_zeros().max(6);
        let start = self.top.next_multiple_of(align);
        if self.end < start || self.end - start < size {
            return 0;
        }
        self.top = start + size;
        start
    }
}

/// The class of blocks that fit `layout`. A class of a power of two is aligned to its
/// size, one between to half of the power below it.
fn class_of(layout: Layout) -> usize {
    let size = layout.size().max(16);
    let power = size.next_power_of_two();
    let between = power / 4 * 3;
    let (size, power) = if size <= between && layout.align() <= power / 4 {
        (between, power)
    } else {
        (power.max(layout.align()), power.max(layout.align()))
    };
    2 * (power.trailing_zeros() as usize - 4) + usize::from(size == power)
}

fn size_of_class(class: usize) -> usize {
    let power = 16 << (class / 2);
    if class % 2 == 1 { power } else { power / 4 * 3 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_fit_and_are_aligned() {
        for (size, align) in [
            (1, 1),
            (16, 16),
            (17, 8),
            (24, 8),
            (40, 64),
            (64, 64),
            (65, 8),
            (96, 32),
            (96, 64),
            (128, 128),
            (5000, 4096),
        ] {
            let layout = Layout::from_size_align(size, align).expect("valid");
            let class = class_of(layout);
            let block = size_of_class(class);
            assert!(block >= size, "{size} in {block}");
            assert!(block.is_multiple_of(align), "{size}, {align} in {block}");
        }
    }

    #[test]
    fn the_same_requests_get_the_same_places() {
        let mut memory = vec![0u128; 1 << 16];
        let start = memory.as_mut_ptr() as usize;
        let run = || {
            let mut heap = Heap::new(start, 1 << 20, 2);
            let layout = |size| Layout::from_size_align(size, 8).expect("valid");
            let mut places = Vec::new();
            for round in 0..200usize {
                heap.switch(Some(round % 2));
                // SAFETY: the heap lives, and blocks are freed with their layout.
                unsafe {
                    let block = Heap::allocate(&mut heap, layout(8 + round));
                    assert!(!block.is_null());
                    places.push(block as usize - start);
                    if round % 3 == 0 {
                        Heap::free(&mut heap, block, layout(8 + round));
                    }
                }
            }
            places
        };
        assert_eq!(run(), run());
    }

    #[test]
    fn cpus_share_no_line_of_small_blocks() {
        let mut memory = vec![0u128; 1 << 14];
        let mut heap = Heap::new(memory.as_mut_ptr() as usize, 1 << 18, 2);
        let layout = Layout::from_size_align(24, 8).expect("valid");
        let mut line = |cpu| {
            heap.switch(Some(cpu));
            // SAFETY: the heap lives.
            unsafe { Heap::allocate(&mut heap, layout) as usize / 64 }
        };
        let (first, second): (Vec<_>, Vec<_>) = (0..100).map(|_| (line(0), line(1))).unzip();
        assert!(first.iter().all(|line| !second.contains(line)));
    }
}
