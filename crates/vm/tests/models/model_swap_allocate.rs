//! No slot is refused while one is free, under the checker: schedules of at most three
//! preemptions.
//!
//! Slots 0 to 3; 0 and 1 are taken. One CPU frees 0 and then takes 2 and 3 as a
//! run; the other wants any slot. There is one at every moment, but a search may have passed
//! 0 before it is free, and reach 2 and 3 when they are taken.

use crate::swapping;

use loomed::{Loomed, loom};
use machine::{Atomic, AtomicInt, Atomics, CpuRange, Execute, Frame, Job, Ordering, Topology};
use std::panic::catch_unwind;
use std::sync::Arc;
use swapping::NoPager;
use vm::swap::SwapSpace;

const SLOTS: usize = 4;
const FRAME: Frame = Frame(1);

trait Allocator: Send + Sync + 'static {
    fn new(cpus: CpuRange) -> Self;
    /// The first of a run of slots.
    fn allocate(&self, count: usize) -> Option<u32>;
    fn release(&self, slot: u32);
}

impl Allocator for SwapSpace<Loomed> {
    fn new(cpus: CpuRange) -> Self {
        SwapSpace::new(cpus, Box::new(NoPager), SLOTS as u32).expect("a table")
    }

    fn allocate(&self, count: usize) -> Option<u32> {
        let slots = self.allocate(&vec![FRAME; count])?;
        Some(slots.start)
    }

    fn release(&self, slot: u32) {
        assert_eq!(self.release(slot), Some(FRAME));
    }
}

type Word = <Loomed as Atomics>::AtomicU64;

/// The search alone: it refuses if as many slots were freed after it as before; or at once.
struct Search<const RECHECK: bool> {
    slots: [Word; SLOTS],
    freed: Word,
}

impl<const RECHECK: bool> Search<RECHECK> {
    fn is_free(&self, slot: usize) -> bool {
        self.slots[slot].load(Ordering::Acquire) == 0
    }

    fn claim(&self, slot: usize) -> bool {
        let exchange = self.slots[slot].compare_exchange(0, 1, Ordering::AcqRel, Ordering::Acquire);
        exchange.is_ok()
    }
}

impl<const RECHECK: bool> Allocator for Search<RECHECK> {
    fn new(_: CpuRange) -> Self {
        Search {
            slots: [0; SLOTS].map(Atomic::new),
            freed: Atomic::new(0),
        }
    }

    fn allocate(&self, count: usize) -> Option<u32> {
        loop {
            let freed = self.freed.load(Ordering::Acquire);
            for first in 0..=SLOTS - count {
                let run_of = |first| first..first + count;
                if run_of(first).all(|slot| self.is_free(slot))
                    && run_of(first).all(|slot| self.claim(slot))
                {
                    return Some(first as u32);
                }
            }
            if !RECHECK || self.freed.load(Ordering::Acquire) == freed {
                return None;
            }
        }
    }

    fn release(&self, slot: u32) {
        self.slots[slot as usize].store(0, Ordering::Release);
        self.freed.fetch_add(1, Ordering::Release);
    }
}

fn model<A: Allocator>() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.max_branches = 20_000;
    builder.check(|| {
        let machine = Loomed::new(2);
        let allocator = Arc::new(A::new(machine.cpus()));
        let job = |work: fn(&A)| {
            let allocator = allocator.clone();
            Box::new(move || work(&allocator)) as Job
        };
        machine.execute(vec![job(|allocator| {
            assert_eq!(allocator.allocate(1), Some(0));
            assert_eq!(allocator.allocate(1), Some(1));
        })]);
        let mover = job(|allocator| {
            allocator.release(0);
            allocator.allocate(2);
        });
        let other = job(|allocator| {
            assert!(allocator.allocate(1).is_some(), "refused");
        });
        machine.execute(vec![mover, other]);
    });
}

#[test]
fn a_slot_is_found() {
    model::<SwapSpace<Loomed>>();
    model::<Search<true>>();
}

#[test]
fn a_search_that_believes_itself_is_caught() {
    let panic = catch_unwind(model::<Search<false>>).expect_err("the bug was not found");
    let text = panic.downcast_ref::<&str>().expect("a message");
    assert!(text.contains("refused"), "{text}");
}
