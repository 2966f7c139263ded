//! The lists and the epochs under all interleavings of two and three CPUs, and the same
//! with one step broken: each fault must be found.
//!
//! What is modelled: a CPU notes a page in a block, says so, flushes (writes a plain
//! cell) and ends the block. Another waits; if it had heard of the note before, it reads
//! the cell: a wait that returns early is a data race or a wrong value, a wake-up that is
//! lost a deadlock.

mod common;

use baselines::{Di, EpochDi, LocklessDi, Sound, Steps};
use checked::Checked;
use checked::loom::model::Builder;
use common::NoDi;
use machine::{Atomic, Atomics, CpuRange, Execute, Frame, Job, Ordering, SharedCell, Topology};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use sync::epoch::{Domain, Options, Protocol, Section};
use vm::policy::Invalidation;

/// The first page's and the second's; one region, as the worst hash would have it.
const PAGES: [Frame; 2] = [Frame(0), Frame(1)];

struct World<I> {
    policy: I,
    noted: [<Checked as Atomics>::AtomicU32; 2],
    flushed: [<Checked as Atomics>::Cell<bool>; 2],
}

impl<I: Invalidation<Checked>> World<I> {
    fn new(cpus: CpuRange) -> Arc<Self> {
        Arc::new(World {
            policy: I::new(&I::Config::default(), cpus, 512),
            noted: [0, 0].map(Atomic::new),
            flushed: [false, false].map(SharedCell::new),
        })
    }

    fn remove(&self, which: usize) {
        let page = I::new_page();
        let block = self.policy.begin();
        self.policy.note(&block, PAGES[which], &page);
        self.noted[which].store(1, Ordering::Release);
        // SAFETY: read only by who waited for this block; loom checks it.
        unsafe { *self.flushed[which].write() = true };
        drop(block);
    }

    fn wait(&self, which: usize) {
        let page = I::new_page();
        let reverse = self.policy.reverse();
        let noted = self.noted[which].load(Ordering::Acquire) == 1;
        self.policy.wait(&reverse, PAGES[which], &page);
        if noted {
            // SAFETY: the block that wrote it has ended; loom checks it.
            assert!(unsafe { *self.flushed[which].read() }, "waited too little");
        }
    }
}

/// `removers` CPUs, each with its page, and one that waits for the first's.
fn model<I: Invalidation<Checked>>(removers: usize, preemptions: usize) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    builder.check(move || {
        let machine = Checked::new(removers + 1);
        let world = World::<I>::new(machine.cpus());
        let waiter = world.clone();
        let mut jobs: Vec<Job> = vec![Box::new(move || waiter.wait(0))];
        for which in 0..removers {
            let world = world.clone();
            jobs.push(Box::new(move || world.remove(which)));
        }
        machine.execute(jobs);
    });
}

fn fails<I: Invalidation<Checked>>(removers: usize, preemptions: usize) -> bool {
    catch_unwind(AssertUnwindSafe(|| model::<I>(removers, preemptions))).is_err()
}

/// One step broken.
macro_rules! broken {
    ($name:ident, $step:ident) => {
        enum $name {}
        impl Steps for $name {
            const $step: bool = false;
        }
    };
}
broken!(PublishesEarly, HANDS_ON);
broken!(SleepsUnchecked, CHECKS_AGAIN);
broken!(LeavesUnmarked, MARKS);
broken!(LooksOnly, EXCHANGES);

/// Seed 000's experiment on epochs that wait for one advance too few.
struct HastyEpoch(Domain<Checked, OneStep>);

enum OneStep {}
impl Protocol for OneStep {
    const GRACE: u64 = 1;
}

// SAFETY: none; it breaks the promise, and the model must notice.
unsafe impl Invalidation<Checked> for HastyEpoch {
    type Block<'a> = Section<'a, Checked, OneStep>;
    type Enter<'a> = ();
    type Reverse<'a> = ();
    type Page = ();
    type Config = ();

    fn new(_: &(), cpus: CpuRange, _: usize) -> Self {
        HastyEpoch(Domain::with_protocol(cpus, Options::default()))
    }
    fn new_page() {}
    fn begin(&self) -> Self::Block<'_> {
        self.0.enter()
    }
    fn note(&self, _: &Self::Block<'_>, _: Frame, _: &()) {}
    fn enter(&self) {}
    fn reverse(&self) {}
    fn wait(&self, _: &(), _: Frame, _: &()) {
        self.0.wait();
    }
}

#[test]
fn di_two_cpus() {
    model::<Di<Checked>>(1, 3);
}

#[test]
fn di_three_cpus() {
    model::<Di<Checked>>(2, 2);
}

#[test]
fn di_publishing_early_is_found() {
    assert!(fails::<Di<Checked, PublishesEarly>>(2, 2));
}

#[test]
fn di_sleeping_unchecked_is_found() {
    assert!(fails::<Di<Checked, SleepsUnchecked>>(1, 2));
}

#[test]
fn lockless_di_two_cpus() {
    model::<LocklessDi<Checked>>(1, 3);
}

#[test]
fn lockless_di_three_cpus() {
    model::<LocklessDi<Checked>>(2, 2);
}

#[test]
fn lockless_di_leaving_unmarked_is_found() {
    assert!(fails::<LocklessDi<Checked, LeavesUnmarked>>(2, 2));
}

#[test]
fn lockless_di_sleeping_unchecked_is_found() {
    assert!(fails::<LocklessDi<Checked, SleepsUnchecked>>(1, 2));
}

#[test]
fn lockless_di_only_looking_is_found() {
    assert!(fails::<LocklessDi<Checked, LooksOnly>>(1, 3));
}

#[test]
fn epoch_di_two_cpus() {
    model::<EpochDi<Checked>>(1, 3);
}

#[test]
fn epoch_di_three_cpus() {
    model::<EpochDi<Checked>>(2, 2);
}

#[test]
fn epoch_di_with_one_advance_too_few_is_found() {
    assert!(fails::<HastyEpoch>(1, 2));
}

#[test]
fn none_at_all_is_found() {
    assert!(fails::<NoDi>(1, 2));
}

/// The default is the sound one.
const _: fn(Di<Checked>) -> Di<Checked, Sound> = |sound| sound;
