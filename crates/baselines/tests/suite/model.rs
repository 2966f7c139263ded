//! The lists and the epochs under all interleavings of two and three CPUs, and with one step
//! broken: each fault must be found.
//!
//! The model: a CPU notes a page in a block, sets a flag, flushes (writes a plain cell) and ends
//! the block. Another waits; if it saw the flag before, it reads the cell: a wait that returns
//! early is a data race or a wrong value, a lost wake-up a deadlock.

use crate::common;

use baselines::freebsd::{Di, EpochDi, LocklessDi, Sound, Steps};
use common::NoDi;
use loomed::Loomed;
use loomed::loom::model::Builder;
use machine::{Atomic, Atomics, CpuRange, Execute, Frame, Job, Ordering, SharedCell, Topology};
use std::panic::{AssertUnwindSafe, catch_unwind};
use sync::epoch::{Protocol, Sleepable, SleepableSection};
use sync::turnstile::Turnstiles;
use vm::system::{Extent, Invalidation, Part};

/// The first page's and the second's; one region, as the worst hash would give.
const PAGES: [Frame; 2] = [Frame(0), Frame(1)];

struct World<I> {
    policy: I,
    noted: [<Loomed as Atomics>::AtomicU32; 2],
    flushed: [<Loomed as Atomics>::Cell<bool>; 2],
}

impl<I: Invalidation<Loomed>> World<I> {
    fn new(cpus: CpuRange) -> Self {
        World {
            policy: I::new(&I::Config::default(), Extent::new(cpus, 512, 0)).expect("room"),
            noted: [0, 0].map(Atomic::new),
            flushed: [false, false].map(SharedCell::new),
        }
    }

    fn remove(&self, which: usize) {
        let page = I::Page::default();
        let block = self.policy.begin();
        self.policy.note(&block, PAGES[which], &page);
        self.noted[which].store(1, Ordering::Release);
        // SAFETY: read only by a CPU that has waited for this block; loom checks it.
        unsafe { *self.flushed[which].write() = true };
        drop(block);
    }

    fn wait(&self, which: usize) {
        let page = I::Page::default();
        let reverse = self.policy.reverse();
        let noted = self.noted[which].load(Ordering::Acquire) == 1;
        self.policy.wait(&reverse, PAGES[which], &page);
        if noted {
            // SAFETY: the block that wrote it has ended; loom checks it.
            assert!(unsafe { *self.flushed[which].read() }, "waited too little");
        }
    }
}

/// `removers` CPUs, each with its page, and one that waits for the first's, all with at most
/// `preemptions` preemptions (`None`: any number).
fn model<I: Invalidation<Loomed>>(removers: usize, preemptions: Option<usize>) {
    explore::<I>(removers, true, preemptions);
}

/// Two CPUs that start and finish blocks; the wait comes after.
fn blocks_only<I: Invalidation<Loomed>>(preemptions: Option<usize>) {
    explore::<I>(2, false, preemptions);
}

fn explore<I: Invalidation<Loomed>>(removers: usize, beside: bool, preemptions: Option<usize>) {
    let mut builder = Builder::new();
    builder.preemption_bound = preemptions;
    builder.max_branches = 20_000;
    // Turnstiles are found by hashing addresses, and the checker replays: all executions have their
    // world at the same address.
    let place = Place(Box::into_raw(Box::<World<I>>::new_uninit()).cast());
    builder.check(move || {
        // The anchor synchronizes with `core`'s atomics, which the checker does not see:
        // to it, a table made by one CPU would race with its use on another.
        Turnstiles::<Loomed>::global();
        let machine = Loomed::new(removers + 1);
        let place: *mut World<I> = place.get();
        // SAFETY: the place was allocated for a world, and the last execution's has been
        // dropped; this one's is shared until all jobs have ended.
        let world: &'static World<I> = unsafe {
            place.write(World::new(machine.cpus()));
            &*place
        };
        let mut jobs: Vec<Job> = vec![];
        if beside {
            jobs.push(Box::new(|| world.wait(0)));
        }
        for which in 0..removers {
            jobs.push(Box::new(move || world.remove(which)));
        }
        machine.execute(jobs);
        // All blocks have ended: both waits return, and see both flushes.
        machine.execute(vec![Box::new(move || {
            (0..removers).for_each(|p| world.wait(p))
        })]);
        // SAFETY: all jobs have ended, so only this function has the world.
        unsafe { place.drop_in_place() };
    });
}

/// The address of a world.
struct Place<W>(*mut W);

impl<W> Place<W> {
    fn get(&self) -> *mut W {
        self.0
    }
}

// SAFETY: the checker runs one execution at a time, on one thread.
unsafe impl<W> Send for Place<W> {}
// SAFETY: the checker runs one execution at a time, on one thread.
unsafe impl<W> Sync for Place<W> {}

/// The result of a model.
#[derive(Debug, PartialEq)]
enum Fault {
    /// A wait returned before the block it was for had ended.
    Early,
    /// A waiter was never woken.
    Asleep,
}

fn fault_of(model: impl FnOnce()) -> Fault {
    let panic = catch_unwind(AssertUnwindSafe(model)).expect_err("a fault is found");
    let message = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or(panic.downcast_ref::<&str>().copied())
        .expect("panics carry a message");
    if message.contains("Causality violation") || message.contains("waited too little") {
        Fault::Early
    } else if message.contains("deadlock") {
        Fault::Asleep
    } else {
        panic!("unforeseen: {message}");
    }
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

/// The epochs of case study 000's experiment, with waits for one side only.
struct HastyEpoch(Sleepable<Loomed, OneSide>);

enum OneSide {}
// SAFETY: none; it is a flaw, made only where it is to be found.
unsafe impl Protocol for OneSide {
    const BOTH_SIDES: bool = false;
}

impl Part<Loomed> for HastyEpoch {
    type Config = ();

    fn new(_: &(), extent: Extent) -> Result<Self, vm::Error> {
        Ok(HastyEpoch(Sleepable::with_protocol(extent.cpus)?))
    }
}

// SAFETY: none; it breaks the contract, and the model must notice.
unsafe impl Invalidation<Loomed> for HastyEpoch {
    type Block<'a> = SleepableSection<'a, Loomed, OneSide>;
    type Held<'a> = ();
    type Page = ();

    fn may_sleep(&self) -> bool {
        true
    }
    fn begin(&self) -> Self::Block<'_> {
        self.0.enter()
    }
    fn note(&self, _: &Self::Block<'_>, _: Frame, _: &()) {}
    fn wait(&self, _: &(), _: Frame, _: &()) {
        self.0.wait();
    }
}

#[test]
fn di_two_cpus() {
    model::<Di<Loomed>>(1, None);
}

#[test]
fn di_three_cpus() {
    model::<Di<Loomed>>(2, Some(2));
}

#[test]
fn di_two_blocks() {
    blocks_only::<Di<Loomed>>(Some(3));
}

#[test]
fn di_publishing_early_is_found() {
    assert_eq!(
        fault_of(|| model::<Di<Loomed, PublishesEarly>>(2, Some(2))),
        Fault::Early
    );
}

#[test]
fn di_sleeping_unchecked_is_found() {
    assert_eq!(
        fault_of(|| model::<Di<Loomed, SleepsUnchecked>>(1, None)),
        Fault::Asleep
    );
}

#[test]
fn lockless_di_two_cpus() {
    model::<LocklessDi<Loomed>>(1, None);
}

#[test]
fn lockless_di_three_cpus() {
    model::<LocklessDi<Loomed>>(2, Some(1));
}

#[test]
fn lockless_di_two_blocks() {
    blocks_only::<LocklessDi<Loomed>>(Some(2));
}

/// A number given to a block that is leaving is lost, and the wait for it never ends.
#[test]
fn lockless_di_leaving_unmarked_is_found() {
    assert_eq!(
        fault_of(|| blocks_only::<LocklessDi<Loomed, LeavesUnmarked>>(Some(2))),
        Fault::Asleep
    );
}

#[test]
fn lockless_di_sleeping_unchecked_is_found() {
    assert_eq!(
        fault_of(|| model::<LocklessDi<Loomed, SleepsUnchecked>>(1, None)),
        Fault::Asleep
    );
}

#[test]
fn lockless_di_only_looking_is_found() {
    assert_eq!(
        fault_of(|| model::<LocklessDi<Loomed, LooksOnly>>(1, None)),
        Fault::Asleep
    );
}

#[test]
fn epoch_di_two_cpus() {
    model::<EpochDi<Loomed>>(1, None);
}

#[test]
fn epoch_di_three_cpus() {
    model::<EpochDi<Loomed>>(2, Some(3));
}

#[test]
fn epoch_di_with_one_advance_too_few_is_found() {
    assert_eq!(fault_of(|| model::<HastyEpoch>(1, None)), Fault::Early);
}

#[test]
fn none_at_all_is_found() {
    assert_eq!(fault_of(|| model::<NoDi>(1, None)), Fault::Early);
}

/// The default is the sound one.
const _: fn(Di<Loomed>) -> Di<Loomed, Sound> = |sound| sound;
