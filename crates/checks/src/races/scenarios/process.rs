//! The space that a job runs in, which is active on the job's CPU.

use crate::races::panics;
use machine::{Locals, PAGE_SIZE, Platform, Tasks};
use std::ptr::from_ref;
use sync::EMBEDDER;
use vm::{HEAP_START, Pmap, Space, System};

/// Makes the calling job run in `space`. The job [leaves](leave) it, or enters another, before the
/// space may be dropped.
pub fn enter<S: System>(space: &Space<S>) {
    S::Machine::with_locals(|locals| {
        locals.words[EMBEDDER].set(from_ref::<Pmap<S>>(space.pmap()) as usize);
        locals.at_switch.set(Some(back::<S>));
    });
    space.activate();
}

/// Makes the calling job run in no space. The space that is active on its CPU remains so.
pub fn leave<M: Platform>() {
    M::with_locals(|locals| locals.at_switch.set(None));
}

/// Activates the space of the job with these words, which is back on a CPU.
fn back<S: System>(locals: &Locals) {
    if panics::happened() {
        // The run has failed, and a job that unwinds may have dropped its space.
        return;
    }
    let pmap = locals.words[EMBEDDER].get() as *const Pmap<S>;
    // SAFETY: the job is in the space, which stays in place until it has left.
    unsafe { &*pmap }.activate();
}

/// Where a heap may end: up to three pages above its start, or within two pages of the end of its
/// first 2 MiB.
pub fn a_heap_end() -> usize {
    let slots = sim::dice(2) as usize;
    HEAP_START + slots * ((2 << 20) - 2 * PAGE_SIZE) + sim::dice(4) as usize * PAGE_SIZE
}

/// Asserts that the heap of `space` is mapped up to its end.
pub fn assert_heap<S: System>(space: &Space<S>) {
    let regions = space.regions().expect("regions");
    let heap = regions
        .iter()
        .find(|region| region.range.contains(HEAP_START));
    let mapped = heap.map_or(HEAP_START, |region| region.range.end);
    assert_eq!(mapped, space.current_break(), "where the heap ends");
}
