//! Demotion against a task that has one page's PV list alone, under all interleavings, with a run
//! of two pages: the real lists and the real run, and the entries and the size as the protocol
//! says.

extern crate std;

use super::run::{PageAt, PvRun};
use super::{USED, piece};
use crate::best::Best;
use crate::invalidation::Snapshots;
use crate::page::{Page, PvList};
use crate::system::PvBytes;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use loomed::Loomed;
use loomed::loom::model::Builder;
use machine::{Atomic, Atomics, Execute, Frame, Job, Ordering, pte};
use std::panic::{AssertUnwindSafe, catch_unwind};
use sync::Mutex;
use sync::spin::TestAndSet;

type TestPage = Page<Best<Loomed>>;
type TestList<'a> = PvList<'a, Best<Loomed>>;
type Word = <Loomed as Atomics>::AtomicU64;

const PAGES: usize = 2;
const SUPERPAGE: u64 = pte::HUGE | pte::PRESENT | USED;
const TABLE: u64 = pte::PRESENT;

struct World {
    slot: Mutex<Loomed, TestAndSet<Loomed>, ()>,
    pages: [TestPage; PAGES],
    /// 1 while there is a superpage.
    size: Word,
    superpage: Word,
    leaf: [Word; PAGES],
    /// The number of pages that a demotion locks: all of them, if it is correct.
    locked: usize,
}

impl<'a> PageAt<'a, Best<Loomed>> for &'a World {
    fn at(&self, index: usize) -> &'a TestPage {
        &self.pages[index]
    }

    fn lock_first(&self) -> TestList<'a> {
        World::lock(self, 0)
    }

    fn try_lock_first(&self) -> Option<TestList<'a>> {
        PvList::try_lock(&PvBytes, Frame(0), &self.pages[0])
    }

    fn have_one_lock(&self) -> bool {
        false
    }
}

impl World {
    fn new(locked: usize) -> Self {
        World {
            slot: Mutex::new(()),
            pages: [TestPage::new(), TestPage::new()],
            size: Word::new(1),
            superpage: Word::new(SUPERPAGE),
            leaf: [Word::new(0), Word::new(0)],
            locked,
        }
    }

    fn lock(&self, page: usize) -> TestList<'_> {
        PvList::lock(&PvBytes, Frame(page as u32), &self.pages[page])
    }

    fn is_superpage(&self) -> bool {
        self.size.load(Ordering::Relaxed) == 1
    }

    /// With the slot and the run.
    fn put_table_back(&self) {
        let old = self.superpage.load(Ordering::Relaxed);
        for (index, entry) in self.leaf.iter().enumerate() {
            entry.store(piece(old, index), Ordering::Relaxed);
        }
        self.superpage.swap(TABLE, Ordering::AcqRel);
        self.size.store(0, Ordering::Release);
    }

    /// With the slot.
    fn demote(&self) {
        if self.is_superpage() {
            let run = PvRun::lock(self, self.locked);
            self.put_table_back();
            drop(run);
        }
    }

    /// Returns true if the page was used: from its list alone.
    fn test_referenced(&self, page: usize) -> bool {
        let list = self.lock(page);
        let entry = if self.is_superpage() {
            &self.superpage
        } else {
            &self.leaf[page]
        };
        let bits = entry.load(Ordering::Relaxed);
        assert!(bits != TABLE, "the superpage has gone");
        drop(list);
        bits & pte::ACCESSED != 0
    }

    /// Takes the mapping of a page away, beginning with its list.
    fn remove(&self, page: usize) {
        let list = self.lock(page);
        if let Some(_slot) = self.slot.try_lock()
            && (!self.is_superpage() || self.try_demote(page))
        {
            self.clear(page);
            return;
        }
        drop(list);
        let _slot = self.slot.lock();
        self.demote();
        let _list = self.lock(page);
        self.clear(page);
    }

    fn try_demote(&self, but: usize) -> bool {
        let run = match self.locked {
            PAGES => PvRun::try_around(self, PAGES, but),
            // The bug: the caller's own list will do.
            _ => PvRun::try_around(self, 0, but),
        };
        let demoted = run.is_some();
        if demoted {
            self.put_table_back();
        }
        demoted
    }

    fn clear(&self, page: usize) {
        let old = self.leaf[page].swap(0, Ordering::AcqRel);
        assert!(old & USED == USED, "the superpage's bits are lost");
    }
}

/// One CPU removes page 1; another one changes something else of the slot, or checks if page 0 was
/// used.
fn model(locked: usize, other: fn(&World)) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(3);
    builder.max_branches = 20_000;
    builder.check(move || {
        let world = Arc::new(World::new(locked));
        let (remover, looker) = (Arc::clone(&world), Arc::clone(&world));
        let jobs: vec::Vec<Job> = vec![
            Box::new(move || remover.remove(1)),
            Box::new(move || other(&looker)),
        ];
        Loomed::new(2).execute(jobs);
        assert!(!world.is_superpage());
        assert_eq!(world.leaf[1].load(Ordering::Relaxed), 0);
    });
}

fn look(world: &World) {
    assert!(world.test_referenced(0), "use is lost");
}

fn change(world: &World) {
    let _slot = world.slot.lock();
    world.demote();
}

#[test]
fn who_has_a_list_knows_which_entry_maps_the_page() {
    model(PAGES, look);
}

#[test]
fn demotions_meet() {
    model(PAGES, change);
}

#[test]
fn a_run_that_is_not_locked_is_found() {
    let found = catch_unwind(AssertUnwindSafe(|| model(1, look)));
    let panic = found.expect_err("a fault is found");
    let message = panic.downcast_ref::<String>().cloned();
    let message = message.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).into()));
    let message = message.expect("a message");
    assert!(message.contains("the superpage has gone"), "{message}");
}
