//! The default invalidation under all interleavings: CPUs that unmap one page at once,
//! and one that finds it unmapped and must wait for all of them.

use checked::Checked;
use checked::loom::model::Builder;
use machine::{Atomics, CpuRange, Execute, Frame, Job, SharedCell, Topology};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use sync::epoch::{Domain, Section, SectionId};
use sync::spin::TestAndSet;
use vm::invalidation::Snapshots;
use vm::policy::Invalidation;

const FRAME: Frame = Frame(7);

struct World<I: Invalidation<Checked>> {
    policy: I,
    page: I::Page,
    /// The PV list, as the number of mappings, under the page's lock.
    mappings: sync::Mutex<Checked, TestAndSet<Checked>, usize>,
    /// By CPU: whether its TLB has been flushed. Plain data: a wait that returns early
    /// races with the write.
    flushed: Vec<<Checked as Atomics>::Cell<bool>>,
}

impl<I: Invalidation<Checked>> World<I> {
    fn new(cpus: CpuRange, removers: usize) -> Self {
        World {
            policy: I::new(&I::Config::default(), cpus, 16),
            page: I::new_page(),
            mappings: sync::Mutex::new(removers),
            flushed: (0..removers).map(|_| SharedCell::new(false)).collect(),
        }
    }

    fn unmap(&self, cpu: usize) {
        let block = self.policy.begin();
        {
            let mut mappings = self.mappings.lock();
            *mappings -= 1;
            self.policy.note(&block, FRAME, &self.page);
        }
        // SAFETY: read only by who waited for this block; loom checks it.
        unsafe { *self.flushed[cpu].write() = true };
        drop(block);
    }

    fn remove_all(&self) {
        let reverse = self.policy.reverse();
        if *self.mappings.lock() != 0 {
            return;
        }
        self.policy.wait(&reverse, FRAME, &self.page);
        for flushed in &self.flushed {
            // SAFETY: the block that wrote it has ended; loom checks it.
            assert!(unsafe { *flushed.read() }, "waited too little");
        }
    }
}

fn model<I: Invalidation<Checked>>(removers: usize, preemptions: usize) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    builder.check(move || {
        let machine = Checked::new(removers + 1);
        let world = Arc::new(World::<I>::new(machine.cpus(), removers));
        let mut jobs: Vec<Job> = Vec::new();
        for cpu in 0..removers {
            let world = Arc::clone(&world);
            jobs.push(Box::new(move || world.unmap(cpu)));
        }
        jobs.push(Box::new(move || world.remove_all()));
        machine.execute(jobs);
    });
}

/// The default with its second case left out: a later note forgets the first.
struct Forgetful(Domain<Checked>);

// SAFETY: none; it breaks the promise, and the model must notice.
unsafe impl Invalidation<Checked> for Forgetful {
    type Block<'a> = Section<'a, Checked>;
    type Enter<'a> = ();
    type Reverse<'a> = ();
    type Page = <Checked as Atomics>::AtomicU64;
    type Config = ();

    fn new(_: &(), cpus: CpuRange, _: usize) -> Self {
        Forgetful(Domain::new(cpus))
    }
    fn new_page() -> Self::Page {
        machine::Atomic::new(0)
    }
    fn begin(&self) -> Self::Block<'_> {
        self.0.enter()
    }
    fn note(&self, block: &Self::Block<'_>, _: Frame, page: &Self::Page) {
        machine::Atomic::store(page, block.id().to_bits(), machine::Ordering::Relaxed);
    }
    fn enter(&self) {}
    fn reverse(&self) {}
    fn wait(&self, _: &(), _: Frame, page: &Self::Page) {
        let stamp = machine::Atomic::load(page, machine::Ordering::Relaxed);
        if let Some(section) = SectionId::from_bits(stamp) {
            <Checked as machine::Cpus>::spin_until(|| self.0.has_left(section));
        }
    }
}

#[test]
fn one_block() {
    model::<Snapshots<Checked>>(1, 4);
}

#[test]
fn two_blocks_on_one_page() {
    model::<Snapshots<Checked>>(2, 1);
}

#[test]
fn a_stamp_that_forgets_is_found() {
    let found = catch_unwind(AssertUnwindSafe(|| model::<Forgetful>(2, 1)));
    let panic = found.expect_err("a fault is found");
    let message = panic.downcast_ref::<String>().expect("a message");
    assert!(message.contains("Causality violation"), "{message}");
}
