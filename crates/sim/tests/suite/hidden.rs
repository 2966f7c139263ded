//! Writes that bypass the machine, such as an `Arc`'s counts: no trace shows them, but images of
//! the heap do.

use crate::support;

use machine::Job;
use sim::Access;
use std::mem::forget;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use support::{finish, machine, profile, shared};

/// The traced accesses of CPU 1 while it did `act` to a word on the heap of the machine's CPUs, and
/// the lines of the heap that have changed.
fn touched(act: fn(&Arc<AtomicU64>)) -> (Vec<Access>, Vec<Access>) {
    let machine = machine(&profile("freebsd-96"), 1);
    let word = shared::<AtomicU64>(&machine);
    let before = machine.heap_image();
    machine.trace();
    let job: Job = Box::new(move || {
        act(&word);
        forget(word);
    });
    finish(&machine, vec![(1, job)]);
    let traced = machine.traced().swap_remove(1);
    let changed = machine.changed(&before, &machine.heap_image());
    (traced, changed)
}

#[test]
fn what_an_arc_counts_is_seen_in_images_of_the_heap() {
    let (traced, changed) = touched(|word| forget(word.clone()));
    assert_eq!(traced, [], "the host's atomics are not the machine's");
    assert_eq!(changed.len(), 1, "{changed:?}");
    assert_eq!((changed[0].reads, changed[0].writes), (0, 1));
    let (_, changed) = touched(|word| word.store(1, Relaxed));
    assert_eq!(changed.len(), 1, "{changed:?}");
    let (_, changed) = touched(|word| assert_eq!(word.load(Relaxed), 0));
    assert_eq!(changed, []);
}
