//! The window of addresses that holds a simulated machine's memory.
//!
//! Cache lines are numbered from the window's start, so they do not depend on where the host
//! happens to put things: heap blocks, CPU stacks and physical frames of a machine all lie in its
//! window, at addresses that depend only on the run. The [`MOST_MACHINES`] windows are at fixed
//! addresses, each with [`WINDOW`] bytes of address space; the host provides memory at the first
//! touch.
//!
//! | part | from | what |
//! |---|---|---|
//! | heap | 0 | the allocations of simulated CPUs ([`heap`]) |
//! | stacks | 64 GiB | one per CPU, and one per task of a scheduler |
//! | frames | 128 GiB | physical memory |

pub(crate) mod global;
pub(crate) mod heap;
mod map;

pub(crate) use map::Reservation;

use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use heap::Heap;
use std::io;

/// log2 of the bytes in a window.
const WINDOW_SHIFT: u32 = 39;
/// Bytes in a window: 512 GiB.
pub(crate) const WINDOW: usize = 1 << WINDOW_SHIFT;
/// The most machines that a process may have at the same time.
pub const MOST_MACHINES: usize = 64;
/// The address of the first window: 16 TiB, far below the addresses that systems use for programs.
const BASE: usize = 1 << 44;

/// Bytes of heap.
pub(crate) const HEAP: usize = 64 << 30;
const STACKS: usize = 64 << 30;
/// The most stacks of a machine.
pub(crate) const MOST_STACKS: usize = (FRAMES - STACKS) / STACK;
const FRAMES: usize = 128 << 30;
/// Bytes of each stack; the lowest [`GUARD`] bytes are a guard.
pub(crate) const STACK: usize = 1 << 20;
const GUARD: usize = 1 << 12;
/// The most bytes of physical memory.
pub(crate) const MOST_MEMORY: usize = WINDOW - FRAMES;

/// True for each window that is taken.
static TAKEN: [AtomicBool; MOST_MACHINES] = [const { AtomicBool::new(false) }; MOST_MACHINES];
/// The heaps of the windows that are taken.
static HEAPS: [AtomicPtr<Heap>; MOST_MACHINES] =
    [const { AtomicPtr::new(core::ptr::null_mut()) }; MOST_MACHINES];

/// A machine's window.
pub(crate) struct Arena {
    index: usize,
    memory: Reservation,
}

impl Arena {
    /// Takes the first free window.
    pub(crate) fn new(cpus: usize) -> io::Result<Self> {
        // Acquire: pairs with the release in `drop`; the addresses are free again.
        let free = |taken: &AtomicBool| !taken.swap(true, Ordering::Acquire);
        let index = TAKEN.iter().position(free).ok_or_else(|| {
            io::Error::other(format!("{MOST_MACHINES} simulated machines exist already"))
        })?;
        let memory = Reservation::at(BASE + index * WINDOW, WINDOW)
            .inspect_err(|_| TAKEN[index].store(false, Ordering::Release))?;
        let arena = Arena { index, memory };
        (0..cpus).try_for_each(|cpu| arena.guard(cpu))?;
        let heap = Box::into_raw(Box::new(Heap::new(arena.base(), HEAP, cpus)));
        // Release: pairs with the acquire in `heap_of`.
        HEAPS[index].store(heap, Ordering::Release);
        Ok(arena)
    }

    /// Makes the lowest page of a stack its guard.
    pub(crate) fn guard(&self, stack: usize) -> io::Result<()> {
        let bottom = self.stack_bottom(stack);
        self.memory.protect(bottom - self.base(), GUARD)
    }

    /// The window's first address.
    pub(crate) fn base(&self) -> usize {
        self.memory.start()
    }

    /// The heap of the simulated CPUs.
    pub(crate) fn heap(&self) -> NonNull<Heap> {
        NonNull::new(HEAPS[self.index].load(Ordering::Acquire)).expect("set in `new`")
    }

    /// A copy of all that the heap has ever handed out, from the window's first byte on.
    ///
    /// # Safety
    /// No CPU of the machine runs.
    pub(crate) unsafe fn heap_image(&self) -> Vec<u8> {
        // SAFETY: the heap lives as long as the window.
        let used = unsafe { self.heap().as_ref() }.used(self.base());
        // SAFETY: the range is mapped, zero where nothing was written, and not written meanwhile.
        unsafe { core::slice::from_raw_parts(self.base() as *const u8, used) }.to_vec()
    }

    /// Returns true if an address, counted from the window's start, lies in a stack.
    pub(crate) fn is_stack(offset: usize) -> bool {
        (STACKS..FRAMES).contains(&offset)
    }

    /// Describes the part of the window that an offset lies in.
    pub(crate) fn describe(&self, offset: usize) -> String {
        match offset {
            0..STACKS => format!("heap + {offset:#x}"),
            STACKS..FRAMES => format!("stack {}", (offset - STACKS) / STACK),
            _ => format!("frame {} + {}", (offset - FRAMES) >> 12, offset & 0xfff),
        }
    }

    /// The part of the window that `offset` lies in.
    pub(crate) fn part(offset: usize) -> &'static str {
        match offset {
            0..STACKS => "heap",
            STACKS..FRAMES => "stacks",
            _ => "frames",
        }
    }

    /// The stack that an address, counted from the window's start, lies in.
    pub(crate) fn stack_of(offset: usize) -> Option<usize> {
        Self::is_stack(offset).then(|| (offset - STACKS) / STACK)
    }

    /// The lowest address of a stack, guard included. The first ones are the CPUs' own.
    pub(crate) fn stack_bottom(&self, index: usize) -> usize {
        self.base() + STACKS + index * STACK
    }

    /// The first byte of physical memory.
    pub(crate) fn frames(&self) -> NonNull<u8> {
        NonNull::new((self.base() + FRAMES) as *mut u8).expect("windows are not at 0")
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        let heap = HEAPS[self.index].swap(core::ptr::null_mut(), Ordering::AcqRel);
        // SAFETY: the pointer comes from a box in `new`; the blocks in the window end with it.
        drop(unsafe { Box::from_raw(heap) });
        self.memory.release();
        // Release: pairs with the acquire in `new`, so the addresses are free again.
        TAKEN[self.index].store(false, Ordering::Release);
    }
}

/// The heap that owns the block at `address`, if that lies in a window.
#[inline]
pub(crate) fn heap_of(address: usize) -> Option<NonNull<Heap>> {
    let index = address.wrapping_sub(BASE) >> WINDOW_SHIFT;
    // Acquire: pairs with the release in `Arena::new`.
    let heap = HEAPS.get(index)?.load(Ordering::Acquire);
    NonNull::new(heap)
}

/// The offset of `address` in its window; the address itself outside all windows.
#[inline]
pub(crate) fn offset_of(address: usize) -> usize {
    if address.wrapping_sub(BASE) >> WINDOW_SHIFT < MOST_MACHINES {
        address & (WINDOW - 1)
    } else {
        address
    }
}
