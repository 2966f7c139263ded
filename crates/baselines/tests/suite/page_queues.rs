//! Steps shared by the tests of all page queues.

use hosted::Hosted;
use machine::{Execute, Frame, Job};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use vm::system::PageQueues;

pub fn frames(range: Range<u32>) -> Vec<Frame> {
    range.map(Frame).collect()
}

/// Maps the pages, as faults do.
pub fn map<Q: PageQueues<Hosted>>(queues: &Q, range: Range<u32>) {
    range.for_each(|page| queues.activate(Frame(page)));
}

/// Frees the pages.
pub fn free<Q: PageQueues<Hosted>>(queues: &Q, range: Range<u32>) {
    range.for_each(|page| queues.remove(Frame(page)));
}

/// Lets this many CPUs map and free the same `count` pages at random and then do `last`; returns
/// the pages in use afterwards.
pub fn map_and_free<Q: PageQueues<Hosted>>(
    (machine, cpus): (&Hosted, usize),
    queues: &Arc<Q>,
    count: usize,
    last: fn(&Q, usize),
) -> Vec<bool> {
    let used: Arc<Vec<AtomicBool>> = Arc::new((0..count).map(|_| AtomicBool::new(false)).collect());
    let job = |cpu: usize| {
        let (queues, used) = (queues.clone(), used.clone());
        Box::new(move || {
            let mut dice = cpu as u64 + 1;
            let mut mine: Vec<usize> = Vec::new();
            for _ in 0..30_000 {
                dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let frame = (dice >> 33) as usize % used.len();
                if mine.len() < 12 && !used[frame].swap(true, Ordering::AcqRel) {
                    queues.activate(Frame(frame as u32));
                    mine.push(frame);
                } else if let Some(frame) = mine.pop() {
                    queues.remove(Frame(frame as u32));
                    used[frame].store(false, Ordering::Release);
                }
            }
            last(&queues, cpu);
        }) as Job
    };
    machine.execute((0..cpus).map(job).collect());
    let in_use = used.iter().map(|used| used.load(Ordering::Acquire));
    in_use.collect()
}
