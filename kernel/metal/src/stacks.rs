//! Kernel stacks: mapped one after the other, with unmapped pages below each, so that an overflow
//! faults.

use crate::Metal;
use alloc::alloc::{Layout, alloc_zeroed};
use core::mem::transmute;
use core::ops::Range;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use machine::{Frame, Memory, PAGE_SIZE, pte};

/// The address of the first stack.
pub(crate) const BASE: usize = 0xffff_ff00_0000_0000;
/// Bytes from one stack to the next.
const STRIDE: usize = 64 << 10;
/// Pages of a stack; the rest of the stride is unmapped.
const PAGES: usize = 12;

unsafe extern "C" {
    static stacks_upper: [AtomicU64; pte::ENTRIES];
}

/// The number of stacks. Only `Stack::new` changes it, under `BUSY`.
static COUNT: AtomicUsize = AtomicUsize::new(0);
static BUSY: AtomicUsize = AtomicUsize::new(0);

/// A function that returns a frame of zeroes, if one is left.
type Source = fn() -> Option<Frame>;
/// The embedder's [`Source`], or null for [`from_heap`].
static SOURCE: AtomicPtr<()> = AtomicPtr::new(null_mut());

static METAL: Metal = Metal;

/// Makes further kernel stacks, and the tables that map them, from frames that `source` returns;
/// they are never freed. The stacks of CPUs are made before, from the heap.
pub fn take_frames_from(source: Source) {
    SOURCE.store(source as *mut (), Ordering::Relaxed);
}

/// A kernel stack, which stays mapped forever.
#[derive(Clone, Copy)]
pub(crate) struct Stack(usize);

impl Stack {
    /// A new stack; `None` if memory is short.
    pub(crate) fn new() -> Option<Self> {
        // Acquire: pairs with the release below; one CPU at a time changes the tables.
        while BUSY.swap(1, Ordering::Acquire) == 1 {
            core::hint::spin_loop();
        }
        let number = COUNT.load(Ordering::Relaxed);
        let top = BASE + (number + 1) * STRIDE;
        let mut pages = (1..=PAGES).map(|page| map(top - page * PAGE_SIZE));
        let mapped = pages.all(|page| page.is_some());
        if mapped {
            COUNT.store(number + 1, Ordering::Relaxed);
        }
        BUSY.store(0, Ordering::Release);
        mapped.then_some(Stack(top))
    }

    /// The first address past the stack.
    pub(crate) fn top(self) -> usize {
        self.0
    }
}

/// The range of the stack, with the unmapped pages below it, that contains `address`; empty if
/// there is none.
pub(crate) fn around(address: usize) -> Range<usize> {
    let number = address.wrapping_sub(BASE) / STRIDE;
    if number < COUNT.load(Ordering::Relaxed) {
        BASE + number * STRIDE..BASE + (number + 1) * STRIDE
    } else {
        0..0
    }
}

/// Maps a page of memory at `address`, unless one is mapped.
fn map(address: usize) -> Option<()> {
    // SAFETY: a table of the image, whose words are atomic.
    let mut entry = &unsafe { &stacks_upper }[pte::index(address, 2)];
    for level in [1, 0] {
        let table = filled(entry)?;
        // SAFETY: a table of the stacks, which is never freed.
        entry = unsafe { METAL.word(table, pte::index(address, level)) };
    }
    filled(entry).map(drop)
}

/// The frame that the entry names; if it names none, a new one, which is entered.
fn filled(entry: &AtomicU64) -> Option<Frame> {
    let value = entry.load(Ordering::Relaxed);
    if value & pte::PRESENT != 0 {
        return Some(pte::frame(value));
    }
    // SAFETY: null, or the function that `take_frames_from` was called with.
    let source = unsafe { transmute::<*mut (), Option<Source>>(SOURCE.load(Ordering::Relaxed)) };
    let frame = source.unwrap_or(from_heap)()?;
    let entry_of = frame.address() | pte::PRESENT | pte::WRITABLE;
    // An absent entry is cached nowhere.
    entry.store(entry_of, Ordering::Release);
    Some(frame)
}

/// A page of the heap.
fn from_heap() -> Option<Frame> {
    let layout = Layout::from_size_align(PAGE_SIZE, PAGE_SIZE).expect("a page");
    // SAFETY: the layout is not empty.
    let page = unsafe { alloc_zeroed(layout) };
    let address = page.addr().checked_sub(crate::DIRECT_MAP)?;
    Some(Frame::containing(address as u64))
}
