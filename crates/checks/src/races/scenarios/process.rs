//! The space that a job runs in: active on whatever CPU the job is.

use crate::races::panics;
use machine::{Locals, PAGE_SIZE, Platform, Tasks};
use std::ptr::from_ref;
use sync::EMBEDDER;
use vm::{HEAP_START, Pmap, Space, System};

/// The calling job runs in `space` from now on; it [leaves](leave) it, or enters another, before
/// the space may go.
pub fn enter<S: System>(space: &Space<S>) {
    S::Machine::with_locals(|locals| {
        locals.words[EMBEDDER].set(from_ref::<Pmap<S>>(space.pmap()) as usize);
        locals.at_switch.set(Some(back::<S>));
    });
    space.activate();
}

/// The calling job runs in no space from now on. The space active on its CPU stays so.
pub fn leave<M: Platform>() {
    M::with_locals(|locals| locals.at_switch.set(None));
}

/// The job of these words is back on a CPU.
fn back<S: System>(locals: &Locals) {
    if panics::happened() {
        // The run has failed, and a job that unwinds may have dropped its space.
        return;
    }
    let pmap = locals.words[EMBEDDER].get() as *const Pmap<S>;
    // SAFETY: the job is in the space, which stays in place until it has left.
    unsafe { &*pmap }.activate();
}

/// Where a heap may end: some pages above or below the end of its first 2 MiB, or of none.
pub fn a_heap_end() -> usize {
    let slots = sim::dice(2) as usize;
    HEAP_START + slots * ((2 << 20) - 2 * PAGE_SIZE) + sim::dice(4) as usize * PAGE_SIZE
}

/// Asserts that the heap of `space` is mapped as far as its end.
pub fn assert_heap<S: System>(space: &Space<S>) {
    let regions = space.regions();
    let heap = regions
        .iter()
        .find(|region| region.range.contains(HEAP_START));
    let mapped = heap.map_or(HEAP_START, |region| region.range.end);
    assert_eq!(mapped, space.current_break(), "where the heap ends");
}
