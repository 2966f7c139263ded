//! One slot of the swap space under the checker: concurrent look-ups, reading in, eviction and
//! release. Content is plain data, so a look-up that finds a frame before it is
//! filled, or one that is another page's by now, is a race or a wrong value.
//!
//! Two CPUs: all schedules. Three: those with at most one preemption, or two.

#[path = "../swapping/mutant.rs"]
mod mutant;
use crate::swapping;

use loomed::{Loomed, loom};
use machine::{Atomics, CpuRange, Execute, Frame, Job, SharedCell, Topology};
use mutant::{FAITHFUL, Mutant};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use swapping::{NoPager, Owner, Pages};
use vm::swap::{Eviction, SwapIn, SwapSpace};

use Act::*;

/// The content of the slot, and of frames that cache it.
const CONTENT: u64 = 7;
/// The content of a frame that was used anew.
const OTHER: u64 = 1;
/// The frame that caches the slot at first.
const FIRST: Frame = Frame(0);
/// Frames: the first, and one for each CPU to read into.
const FRAMES: usize = 4;

/// A swap space of one slot.
trait OneSlot: Send + Sync + 'static {
    fn new(cpus: CpuRange) -> Self;
    fn allocate(&self, frame: Frame) -> bool;
    fn retain(&self);
    fn release(&self) -> Option<Frame>;
    fn swap_in<H>(
        &self,
        hold: impl Fn(Frame) -> Option<H>,
        load: impl FnOnce() -> Option<Frame>,
    ) -> Found<H>;
    fn uncache(&self, frame: Frame, freeze: impl FnOnce() -> bool) -> Eviction;
    fn is_free(&self) -> bool;
}

/// The result of bringing the slot in.
enum Found<H> {
    Cached(H),
    /// Into this frame; whether the cache has it.
    Loaded(Frame, bool),
    Failed,
    Gone,
}

impl OneSlot for SwapSpace<Loomed> {
    fn new(cpus: CpuRange) -> Self {
        SwapSpace::new(cpus, Box::new(NoPager), 1).expect("a table")
    }

    fn allocate(&self, frame: Frame) -> bool {
        self.allocate(&[frame]).is_some()
    }

    fn retain(&self) {
        self.retain(0);
    }

    fn release(&self) -> Option<Frame> {
        self.release(0)
    }

    fn swap_in<H>(
        &self,
        hold: impl Fn(Frame) -> Option<H>,
        load: impl FnOnce() -> Option<Frame>,
    ) -> Found<H> {
        match self.begin_in(0, hold) {
            SwapIn::Cached(held) => Found::Cached(held),
            SwapIn::Gone => Found::Gone,
            SwapIn::Load(loading) => match load() {
                Some(frame) => Found::Loaded(frame, loading.finish(frame)),
                None => Found::Failed,
            },
        }
    }

    fn uncache(&self, frame: Frame, freeze: impl FnOnce() -> bool) -> Eviction {
        self.uncache(0, frame, freeze)
    }

    fn is_free(&self) -> bool {
        assert_eq!(self.used(), u64::from(self.references(0) > 0));
        self.used() == 0 && self.cached() == 0
    }
}

struct World<S> {
    slot: S,
    pages: Pages<Loomed>,
    content: Vec<<Loomed as Atomics>::Cell<u64>>,
    /// The pager's content.
    stored: <Loomed as Atomics>::Cell<u64>,
}

impl<S: OneSlot> Owner<Loomed> for World<S> {
    fn pages(&self) -> &Pages<Loomed> {
        &self.pages
    }

    /// A frame that is free is used anew at once.
    fn freed(&self, frame: Frame) {
        self.fill(frame, OTHER);
        self.pages.begin(frame, 1);
    }
}

impl<S: OneSlot> World<S> {
    /// The slot, which is free.
    fn new(cpus: CpuRange) -> Self {
        World {
            slot: S::new(cpus),
            pages: Pages::new(FRAMES),
            content: (0..FRAMES).map(|_| SharedCell::new(CONTENT)).collect(),
            stored: SharedCell::new(CONTENT),
        }
    }

    /// Allocates the slot with `references` references, cached in [`FIRST`].
    fn begin(&self, references: usize) {
        self.pages.begin(FIRST, 1);
        assert!(self.slot.allocate(FIRST));
        (1..references).for_each(|_| self.slot.retain());
    }

    fn fill(&self, frame: Frame, value: u64) {
        // SAFETY: the frame is the caller's alone; loom checks it.
        unsafe { *self.content[frame.index()].write() = value };
    }

    /// Brings the slot in; reading it into the CPU's own frame fails if it is to.
    fn fault(&self, cpu: usize, fails: bool) {
        let own = Frame(cpu as u32 + 1);
        let load = || {
            if fails {
                return None;
            }
            // SAFETY: no CPU writes to a slot that is read in; loom checks it.
            self.fill(own, unsafe { *self.stored.read() });
            self.pages.begin(own, 2);
            Some(own)
        };
        match self.slot.swap_in(|frame| self.hold(frame), load) {
            Found::Cached(hold) => {
                // SAFETY: the page is held, so no CPU writes it; loom checks it.
                let content = unsafe { *self.content[hold.frame.index()].read() };
                assert_eq!(content, CONTENT, "somebody else's page");
            }
            Found::Loaded(frame, cached) => {
                self.drop_page(frame);
                if !cached {
                    self.drop_page(frame);
                }
            }
            Found::Failed | Found::Gone => {}
        }
    }

    fn evict(&self, frame: Frame) {
        let Some(hold) = self.hold(frame) else {
            return;
        };
        match self.slot.uncache(frame, || self.pages.freeze(frame, 2)) {
            Eviction::Evicted => {
                std::mem::forget(hold);
                self.freed(frame);
            }
            Eviction::Kept => {}
            Eviction::Released => self.drop_page(frame),
        }
    }

    fn release(&self) {
        if let Some(frame) = self.slot.release() {
            self.drop_page(frame);
        }
    }

    /// Releases the slot, and writes to it as its next owner.
    fn reuse(&self, cpu: usize) {
        self.release();
        let own = Frame(cpu as u32 + 1);
        self.pages.begin(own, 1);
        if self.slot.allocate(own) {
            // SAFETY: the slot is this CPU's, and no other uses its content.
            unsafe { *self.stored.write() = CONTENT };
            assert_eq!(self.slot.release(), Some(own));
        }
        self.drop_page(own);
    }

    /// Nothing refers to the slot any more: it is free, and no page is lost.
    fn is_left_clean(&self) {
        assert!(self.slot.is_free(), "assertion: the slot is not free");
        for frame in (0..FRAMES as u32).map(Frame) {
            let references = self.pages.references(frame);
            // SAFETY: all CPUs are done.
            let content = unsafe { *self.content[frame.index()].read() };
            assert!(
                references == 0 || (references == 1 && content == OTHER),
                "assertion: {frame:?} has {references} references"
            );
        }
    }
}

/// The part of a CPU.
#[derive(Clone, Copy)]
enum Act {
    Fault,
    /// Reading fails.
    FaultFails,
    Evict,
    Release,
    /// Brings the slot in and drops its reference of it.
    FaultRelease,
    /// Drops its reference and allocates the slot, if it is free by then.
    Reuse,
}

/// Each CPU does its part; the slot is cached at first, or not. Each [`Act::Release`] has a
/// reference, and one is left for the end if `kept`.
fn play<S: OneSlot>(cached: bool, kept: bool, acts: &'static [Act]) {
    let machine = Loomed::new(acts.len());
    let releases = |act: &&Act| matches!(act, Release | FaultRelease | Reuse);
    let references = acts.iter().filter(releases).count() + usize::from(kept);
    let world = Arc::new(World::<S>::new(machine.cpus()));
    let setup = Arc::clone(&world);
    machine.execute(vec![Box::new(move || {
        setup.begin(references);
        if !cached {
            setup.evict(FIRST);
        }
    })]);
    let jobs = acts.iter().enumerate().map(|(cpu, &act)| {
        let world = Arc::clone(&world);
        Box::new(move || match act {
            Fault => world.fault(cpu, false),
            FaultFails => world.fault(cpu, true),
            Evict => world.evict(FIRST),
            Release => world.release(),
            Reuse => world.reuse(cpu),
            FaultRelease => {
                world.fault(cpu, false);
                world.release();
            }
        }) as Job
    });
    machine.execute(jobs.collect());
    machine.execute(vec![Box::new(move || {
        if kept {
            world.release();
        }
        world.is_left_clean();
    })]);
}

/// Explores schedules with at most `preemptions` preemptions (`None`: all).
fn explore<S: OneSlot>(preemptions: Option<usize>, cached: bool, kept: bool, acts: &'static [Act]) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions;
    builder.max_branches = 20_000;
    builder.check(move || play::<S>(cached, kept, acts));
}

/// The models: how many preemptions, whether the slot is cached at first, whether a reference
/// is left over, and the part of each CPU.
type Model = (Option<usize>, bool, bool, &'static [Act]);

/// One reads, the other finds it or waits for it.
const TWO_FAULTS: Model = (None, false, true, &[Fault, Fault]);
/// Reading fails: the CPU that waits for it tries itself.
const A_FAULT_FAILS: Model = (None, false, true, &[FaultFails, Fault]);
/// The last reference goes while the slot is read in.
const FAULT_AND_RELEASE: Model = (None, false, false, &[Fault, Release]);
/// The slot is used anew as soon as it is free.
const FAULT_AND_REUSE: Model = (None, false, false, &[Fault, Reuse]);
/// A look-up of a slot that is freed, and whose frame is used anew.
const LOOKUP_AND_RELEASE: Model = (None, true, false, &[Fault, Release]);
/// A look-up of a page that is evicted.
const LOOKUP_AND_EVICTION: Model = (None, true, true, &[Fault, Evict]);
/// The last reference goes while the page is evicted.
const EVICTION_AND_RELEASE: Model = (None, true, false, &[Evict, Release]);
/// All of it.
const THREE: Model = (Some(2), true, false, &[Fault, Evict, Reuse]);
const THREE_FAULTS: Model = (Some(1), false, true, &[Fault, Fault, FaultFails]);
const LAST_FAULTS: Model = (Some(2), true, false, &[FaultRelease, FaultRelease, Evict]);

fn passes(model: Model) {
    let (preemptions, cached, kept, acts) = model;
    explore::<SwapSpace<Loomed>>(preemptions, cached, kept, acts);
}

/// The copy without a bug passes, the one with `BUG` does not.
fn catches<const BUG: u8>(model: Model) {
    let (preemptions, cached, kept, acts) = model;
    explore::<Mutant<FAITHFUL>>(preemptions, cached, kept, acts);
    let run = || explore::<Mutant<BUG>>(preemptions, cached, kept, acts);
    let panic = catch_unwind(AssertUnwindSafe(run)).expect_err("the bug was not found");
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| text.to_string()));
    let text = text.expect("a message");
    // That a model is too big for the checker is no finding.
    let found = [
        "deadlock",
        "Causality violation",
        "assertion",
        "somebody",
        "released twice",
    ];
    assert!(found.iter().any(|found| text.contains(found)), "{text}");
}

#[test]
fn two_faults() {
    passes(TWO_FAULTS);
    passes(A_FAULT_FAILS);
}

#[test]
fn releases() {
    passes(FAULT_AND_RELEASE);
    passes(FAULT_AND_REUSE);
    passes(LOOKUP_AND_RELEASE);
}

#[test]
fn evictions() {
    passes(LOOKUP_AND_EVICTION);
    passes(EVICTION_AND_RELEASE);
}

#[test]
fn three_cpus() {
    passes(THREE);
}

#[test]
fn three_cpus_read() {
    passes(THREE_FAULTS);
}

#[test]
fn last_faults() {
    passes(LAST_FAULTS);
}

#[test]
fn a_lookup_without_second_look_is_caught() {
    catches::<{ mutant::NO_SECOND_LOOK }>(LOOKUP_AND_RELEASE);
}

#[test]
fn sleeping_blindly_is_caught() {
    catches::<{ mutant::SLEEPS_BLINDLY }>(TWO_FAULTS);
}

#[test]
fn waking_nobody_is_caught() {
    catches::<{ mutant::WAKES_NOBODY }>(TWO_FAULTS);
}

#[test]
fn a_failed_reader_that_stays_is_caught() {
    catches::<{ mutant::KEEPS_BUSY }>(A_FAULT_FAILS);
}

#[test]
fn a_word_that_orders_nothing_is_caught() {
    catches::<{ mutant::RELAXED }>(FAULT_AND_REUSE);
}

#[test]
fn freeing_a_busy_slot_is_caught() {
    catches::<{ mutant::FREES_BUSY }>(FAULT_AND_REUSE);
}

#[test]
fn a_reader_that_never_frees_is_caught() {
    catches::<{ mutant::NEVER_FREES }>(FAULT_AND_RELEASE);
}

#[test]
fn an_eviction_that_is_not_busy_is_caught() {
    catches::<{ mutant::EVICTS_UNLOCKED }>(EVICTION_AND_RELEASE);
}
