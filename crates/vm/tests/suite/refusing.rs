//! The system's allocator, except that a thread can have one allocation refused.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Refusing;

thread_local! {
    /// Allocations until the refused one; 0 means none is.
    static REFUSE_IN: Cell<u64> = const { Cell::new(0) };
    /// All allocations are refused.
    static REFUSE_ALL: Cell<bool> = const { Cell::new(false) };
    /// Allocations of that size in bytes are never refused.
    static SPARED: Cell<usize> = const { Cell::new(0) };
    /// Bytes that the thread has allocated and not freed.
    static LIVE: Cell<isize> = const { Cell::new(0) };
}

/// Makes this thread's `nth` allocation from now fail (1 = the next); 0 switches it off.
pub fn refuse_after(nth: u64) {
    REFUSE_IN.set(nth);
}

/// Refuses the first allocation of `call`, then the second, and so on until it succeeds; `failed`
/// looks at each error. Returns the success, and how often it failed.
pub fn each<T, E>(mut call: impl FnMut() -> Result<T, E>, mut failed: impl FnMut(E)) -> (T, u64) {
    let mut failures = 0;
    loop {
        refuse_after(failures + 1);
        let result = call();
        refuse_after(0);
        match result {
            Ok(done) => return (done, failures),
            Err(error) => failed(error),
        }
        failures += 1;
    }
}

/// Never refuses this thread an `Arc` of a `T`, which the standard library cannot take.
pub fn spare_arc<T>() {
    let counts = Layout::new::<[usize; 2]>();
    let (inner, _) = counts.extend(Layout::new::<T>()).expect("a layout");
    SPARED.set(inner.pad_to_align().size());
}

/// Bytes that this thread has allocated, less those it has freed.
pub fn live() -> isize {
    LIVE.get()
}

/// Refuses this thread all allocations, or none.
pub fn refuse_all(all: bool) {
    REFUSE_ALL.set(all);
}

fn count(bytes: usize, freed: usize) {
    LIVE.with(|live| live.set(live.get() + bytes as isize - freed as isize));
}

fn refused(bytes: usize) -> bool {
    if REFUSE_ALL.get() {
        return true;
    }
    if bytes == SPARED.get() {
        return false;
    }
    REFUSE_IN.with(|left| {
        let now = left.get();
        left.set(now.saturating_sub(1));
        now == 1
    })
}

// SAFETY: defers to the system's allocator, or returns null as an allocator may.
unsafe impl GlobalAlloc for Refusing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if refused(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promise is passed on.
        let place = unsafe { System.alloc(layout) };
        count(layout.size(), 0);
        place
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is passed on: `System` allocated it with this layout.
        unsafe { System.dealloc(pointer, layout) };
        count(0, layout.size());
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if refused(size) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promise is passed on: `System` allocated it with this layout.
        let place = unsafe { System.realloc(pointer, layout, size) };
        count(size, layout.size());
        place
    }
}

#[global_allocator]
static ALLOCATOR: Refusing = Refusing;
