//! Two CPUs that move the heap's end, under all interleavings. Each page has a slot of its own.

extern crate std;

use super::*;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use loomed::Loomed;
use loomed::flaw::{Flaw, Site, must_be_found};
use loomed::loom::model::Builder;
use machine::{Atomics, Execute, Job};
use std::panic::{AssertUnwindSafe, catch_unwind};
use sync::Mutex;
use sync::spin::TestAndSet;

/// A way to do a move wrongly.
#[derive(Clone, Copy, PartialEq)]
enum Bug {
    None,
    /// The end's home is not locked.
    NoHome,
    /// The end is not looked at again.
    NoLook,
    /// The end is set first.
    Early,
}

const SLOTS: usize = 3;

struct World {
    end: HeapEnd<Loomed>,
    slots: [Mutex<Loomed, TestAndSet<Loomed>, ()>; SLOTS],
    /// 1 where a page is mapped. Relaxed: the slots order them, or the end.
    mapped: [<Loomed as Atomics>::AtomicU32; SLOTS],
}

impl World {
    /// A heap of this number of pages.
    fn new(pages: usize) -> Self {
        let end = HeapEnd::new();
        end.set(at(pages));
        World {
            end,
            slots: core::array::from_fn(|_| Mutex::new(())),
            mapped: core::array::from_fn(|page| Atomic::new(u32::from(page < pages))),
        }
    }

    fn is_mapped(&self, page: usize) -> bool {
        self.mapped[page].load(Ordering::Relaxed) == 1
    }

    /// `set_break`, to this number of pages.
    fn move_to(&self, pages: usize, bug: Bug) {
        loop {
            let old = self.end.get();
            if old == at(pages) {
                return;
            }
            let step = Step {
                old,
                new: at(pages),
            };
            if self.try_step(step, bug) {
                return;
            }
        }
    }

    fn try_step(&self, step: Step, bug: Bug) -> bool {
        let over = step.moved_over();
        let locked = match bug {
            Bug::NoHome => over,
            _ => step.locked(),
        };
        let _held: Vec<_> = pages(locked).map(|page| self.slots[page].lock()).collect();
        if bug != Bug::NoLook && self.end.get() != step.old {
            return false;
        }
        if bug == Bug::Early {
            self.end.set(step.new);
        }
        let grows = step.new > step.old;
        for page in pages(over) {
            assert_ne!(self.is_mapped(page), grows, "another's move");
            self.mapped[page].store(u32::from(grows), Ordering::Relaxed);
        }
        if bug != Bug::Early {
            self.end.set(step.new);
        }
        true
    }
}

/// The end of a heap of this number of pages.
fn at(pages: usize) -> usize {
    HEAP_START + pages * PAGE_SIZE
}

/// The numbers of the pages of `range`.
fn pages(range: VaRange) -> impl Iterator<Item = usize> {
    (range.start - HEAP_START) / PAGE_SIZE..(range.end - HEAP_START) / PAGE_SIZE
}

/// From a heap of one page, two CPUs move the end to these numbers of pages. A shrink by either of
/// them makes the page go that is above its end, unless the other one moves the end up.
fn model(to: [usize; 2], bug: Bug) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(move || {
        let world = Arc::new(World::new(1));
        let job = |pages: usize| {
            let world = world.clone();
            Box::new(move || {
                world.move_to(pages, bug);
                let stays = to == [pages, pages] && pages < SLOTS;
                assert!(!stays || !world.is_mapped(pages), "a move is not over");
            }) as Job
        };
        Loomed::new(2).execute(to.map(job).into());
        let end = world.end.get();
        assert!(to.map(at).contains(&end), "the end is nobody's");
        for page in 0..SLOTS {
            assert_eq!(world.is_mapped(page), at(page) < end, "page {page}");
        }
    });
}

#[test]
fn moves_of_the_end_are_one_after_the_other() {
    for to in [[0, 0], [0, 2], [2, 2], [2, 3]] {
        model(to, Bug::None);
    }
}

#[test]
fn moves_that_meet_are_found() {
    for (to, bug) in [
        ([0, 2], Bug::NoHome),
        ([2, 2], Bug::NoLook),
        ([0, 0], Bug::Early),
    ] {
        let found = catch_unwind(AssertUnwindSafe(|| model(to, bug)));
        assert!(found.is_err(), "a bug is not found");
    }
}

#[test]
fn an_end_without_order_is_found() {
    for comment in [
        "// Acquire: pairs with the release in `set`",
        "// Release: pairs with the acquire in `get`.",
    ] {
        let site = Site::after("space/brk.rs", include_str!("../brk.rs"), comment);
        must_be_found(Flaw::Relaxed, site, || model([0, 0], Bug::None));
    }
}
