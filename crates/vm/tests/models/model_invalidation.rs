//! The default invalidation under all interleavings: CPUs that unmap pages at once, and one that
//! finds a page unmapped and must wait for all of them; and how a CPU that unmaps several pages
//! waits for their locks: never in its block, which pins it.

use loomed::Loomed;
use loomed::loom::model::Builder;
use machine::{Atomics, CpuRange, Execute, Frame, Job, SharedCell, Topology};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use sync::epoch::{Domain, Section, SectionId};
use sync::obm::Obm;
use vm::invalidation::Snapshots;
use vm::system::{Extent, Invalidation, Part};

/// The page that all unmap, and the one that is unmapped after it.
const PAGES: usize = 2;

struct World<I: Invalidation<Loomed>> {
    policy: I,
    pages: [I::Page; PAGES],
    /// The PV lists, as the numbers of mappings, under the pages' locks.
    mappings: [sync::Mutex<Loomed, Obm<Loomed, 0>, usize>; PAGES],
    /// By CPU and page: whether its TLB has been flushed. Plain data: a wait that returns early
    /// races with the write.
    flushed: Vec<[<Loomed as Atomics>::Cell<bool>; PAGES]>,
    /// True if a lock is waited for in the block, which is wrong.
    waits_in_block: bool,
}

/// Pages that a CPU has unmapped and not flushed.
struct Taking<'a, I: Invalidation<Loomed>> {
    world: &'a World<I>,
    cpu: usize,
    block: Option<I::Block<'a>>,
    gathered: Vec<usize>,
}

impl<I: Invalidation<Loomed>> Taking<'_, I> {
    /// As `vm::pmap::remove::Taking`.
    fn page(&mut self, page: usize) {
        let lock = &self.world.mappings[page];
        let mut mappings = match lock.try_lock() {
            Some(mappings) => mappings,
            None => {
                if !self.world.waits_in_block {
                    self.settle();
                }
                lock.lock()
            }
        };
        let policy = &self.world.policy;
        let block = self.block.get_or_insert_with(|| policy.begin());
        policy.note(block, frame(page), &self.world.pages[page]);
        *mappings -= 1;
        drop(mappings);
        self.gathered.push(page);
    }

    fn settle(&mut self) {
        for page in self.gathered.drain(..) {
            // SAFETY: read only by a CPU that waited for this block; loom checks it.
            unsafe { *self.world.flushed[self.cpu][page].write() = true };
        }
        self.block = None;
    }
}

const fn frame(page: usize) -> Frame {
    Frame(7 + page as u32)
}

impl<I: Invalidation<Loomed>> World<I> {
    fn new(cpus: CpuRange, removers: usize, waits_in_block: bool) -> Self {
        let unflushed = || [SharedCell::new(false), SharedCell::new(false)];
        World {
            policy: I::new(&I::Config::default(), Extent::new(cpus, 16, 0)).expect("room"),
            pages: Default::default(),
            mappings: [sync::Mutex::new(removers), sync::Mutex::new(removers)],
            flushed: (0..removers).map(|_| unflushed()).collect(),
            waits_in_block,
        }
    }

    fn unmap(&self, cpu: usize, pages: usize) {
        let mut taking = Taking {
            world: self,
            cpu,
            block: None,
            gathered: Vec::new(),
        };
        (0..pages).for_each(|page| taking.page(page));
        taking.settle();
    }

    fn remove_all(&self, page: usize) {
        let reverse = self.policy.reverse();
        if *self.mappings[page].lock() != 0 {
            return;
        }
        self.policy.wait(&reverse, frame(page), &self.pages[page]);
        for flushed in &self.flushed {
            // SAFETY: the block that wrote it has ended; loom checks it.
            assert!(unsafe { *flushed[page].read() }, "waited too little");
        }
    }
}

/// CPUs that unmap the first page, and one that removes it by the reverse map.
fn model<I: Invalidation<Loomed>>(removers: usize, preemptions: usize) {
    explore::<I>(removers, 1, preemptions, false);
}

/// CPUs that unmap the first `pages`, and one that removes the last of these by the reverse map.
fn explore<I: Invalidation<Loomed>>(
    removers: usize,
    pages: usize,
    preemptions: usize,
    waits_in_block: bool,
) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    builder.check(move || {
        let machine = Loomed::new(removers + 1);
        let world = World::<I>::new(machine.cpus(), removers, waits_in_block);
        let world = Arc::new(world);
        let mut jobs: Vec<Job> = Vec::new();
        for cpu in 0..removers {
            let world = Arc::clone(&world);
            jobs.push(Box::new(move || world.unmap(cpu, pages)));
        }
        jobs.push(Box::new(move || world.remove_all(pages - 1)));
        machine.execute(jobs);
    });
}

/// The default with its second case left out: a later note forgets the first.
struct Forgetful(Domain<Loomed>);

struct Word(<Loomed as Atomics>::AtomicU64);

impl Default for Word {
    fn default() -> Self {
        Word(machine::Atomic::new(0))
    }
}

impl Part<Loomed> for Forgetful {
    type Config = ();

    fn new(_: &(), extent: Extent) -> Result<Self, vm::Error> {
        Ok(Forgetful(Domain::new(extent.cpus)))
    }
}

// SAFETY: none; it breaks the promise, and the model must notice.
unsafe impl Invalidation<Loomed> for Forgetful {
    type Block<'a> = Section<'a, Loomed>;
    type Held<'a> = ();
    type Page = Word;

    fn may_sleep(&self) -> bool {
        false
    }
    fn begin(&self) -> Self::Block<'_> {
        self.0.enter()
    }
    fn note(&self, block: &Self::Block<'_>, _: Frame, page: &Self::Page) {
        machine::Atomic::store(&page.0, block.id().to_bits(), machine::Ordering::Relaxed);
    }
    fn wait(&self, _: &(), _: Frame, page: &Self::Page) {
        let stamp = machine::Atomic::load(&page.0, machine::Ordering::Relaxed);
        if let Some(section) = SectionId::from_bits(stamp) {
            <Loomed as machine::Cpus>::spin_until(|| self.0.has_left(section));
        }
    }
}

#[test]
fn one_block() {
    model::<Snapshots<Loomed>>(1, 4);
}

#[test]
fn two_blocks_on_one_page() {
    model::<Snapshots<Loomed>>(2, 1);
}

#[test]
fn a_lock_that_is_taken_meanwhile() {
    explore::<Snapshots<Loomed>>(1, 2, 4, false);
}

#[test]
fn a_lock_waited_for_in_the_block_is_found() {
    let found = catch_unwind(|| explore::<Snapshots<Loomed>>(1, 2, 4, true));
    let panic = found.expect_err("a fault is found");
    let message = panic.downcast_ref::<&str>().expect("a message");
    assert_eq!(*message, "a task sleeps while it is pinned");
}

#[test]
fn a_stamp_that_forgets_is_found() {
    let found = catch_unwind(AssertUnwindSafe(|| model::<Forgetful>(2, 1)));
    let panic = found.expect_err("a fault is found");
    let message = panic.downcast_ref::<String>().expect("a message");
    assert!(message.contains("Causality violation"), "{message}");
}
