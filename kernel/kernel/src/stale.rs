//! The command-line word `alan-cox`: Alan Cox's example (case study 000) on two CPUs. When
//! `remove_all` returns no CPU can write the page any more, even if another had taken the mapping
//! away and not flushed yet.
//!
//! One CPU unmaps a page. The other has it in its TLB, removes all mappings of the page, and writes
//! it then. With `plant=late-flush` the first often is between the two steps at that moment.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use baselines::freebsd::{Di, EpochDi, LocklessDi};
use core::marker::PhantomData;
use core::sync::atomic::{AtomicUsize, Ordering};
use lock_api::Mutex;
use machine::{Cpus, Execute, Frame, Job, Mmu, PAGE_SIZE, VaRange};
use metal::Metal;
use metal::report::{end, report};
use sync::spin::TestAndSet;
use vm::invalidation::Snapshots;
use vm::system::{Extent, Invalidation, NoChunks, NoGate, NoQueues, Part, PvBytes};
use vm::{Best, Error, Hold, Prot, Space, System, Vm};

/// How often the example is run with each design.
const ROUNDS: usize = 200;
/// The most runs until a planted bug must have shown.
const MOST_PLAYS: usize = 50;
/// The page's place.
const AT: VaRange = VaRange {
    start: 1 << 30,
    end: (1 << 30) + PAGE_SIZE,
};

/// Plays the example with the designs of delayed invalidation, and ends the machine: with 1 if a
/// CPU could write the page. If they are `hasty`, they do not wait for CPUs that unmap.
pub fn run(machine: Metal, hasty: bool) -> ! {
    let play: [fn(Metal) -> usize; 4] = if hasty {
        [
            play::<Hasty<Di<_>>>,
            play::<Hasty<LocklessDi<_>>>,
            play::<Hasty<EpochDi<_>>>,
            play::<Hasty<Snapshots<_>>>,
        ]
    } else {
        [
            play::<Di<_>>,
            play::<LocklessDi<_>>,
            play::<EpochDi<_>>,
            play::<Snapshots<_>>,
        ]
    };
    // Emulated CPUs may hardly run at the same time, so it may take several runs until the bug
    // shows.
    let plays = if hasty { MOST_PLAYS } else { 1 };
    let stale = play.map(|play| {
        let mut counts = (0..plays).map(|_| play(machine));
        counts.find(|&count| count > 0).unwrap_or(0)
    });
    let code = match stale.iter().filter(|&&count| count > 0).count() {
        0 => 0,
        all if all == stale.len() => 1,
        _ => 2,
    };
    report(format_args!("stale writes with each design: {stale:?}"));
    report(format_args!("exit {code}"));
    end(0)
}

/// The parts of `vm`, but for the invalidation.
struct With<I>(PhantomData<I>);

impl<I: Invalidation<Metal>> System for With<I> {
    type Machine = Metal;
    type Invalidation = I;
    type Swap = <Best<Metal> as System>::Swap;
    type Gate = NoGate;
    type Queues = NoQueues;
    type PvLocks = PvBytes;
    type PvChunks = NoChunks;
}

/// The subjects of the example, and the rounds in which the page is mapped, and unmapped.
struct World<I: Invalidation<Metal>> {
    machine: Metal,
    vm: Arc<Vm<With<I>>>,
    space: Space<With<I>>,
    page: Hold<With<I>>,
    mapped: AtomicUsize,
    unmapped: AtomicUsize,
}

/// The number of writes that succeeded but should not have.
fn play<I: Invalidation<Metal>>(machine: Metal) -> usize {
    // A job creates the world, since CPUs have no ids before.
    let world = Arc::new(Mutex::<TestAndSet<Metal>, Option<Arc<World<I>>>>::new(None));
    let stale = Arc::new(AtomicUsize::new(0));
    let (first, second, count) = (world.clone(), world, stale.clone());
    let unmap = move || {
        let world = Arc::new(World::<I>::new(machine));
        *first.lock() = Some(world.clone());
        world.unmap();
    };
    let write = move || {
        Metal::spin_until(|| second.lock().is_some());
        if let Some(world) = second.lock().take() {
            count.store(world.write(), Ordering::Relaxed);
        }
    };
    machine.execute(Vec::from([Box::new(unmap) as Job, Box::new(write)]));
    stale.load(Ordering::Relaxed)
}

impl<I: Invalidation<Metal>> World<I> {
    fn new(machine: Metal) -> Self {
        let vm = Vm::new(machine).expect("memory for the VM");
        World {
            machine,
            space: Space::new(&vm).expect("a space"),
            page: vm.new_page().expect("a page"),
            vm,
            mapped: AtomicUsize::new(0),
            unmapped: AtomicUsize::new(0),
        }
    }

    fn unmap(&self) {
        for round in 1..=ROUNDS {
            // Acquire and release: the CPUs take turns.
            Metal::spin_until(|| self.mapped.load(Ordering::Acquire) == round);
            self.space.unmap(AT).expect("mapped");
            self.unmapped.store(round, Ordering::Release);
        }
    }

    /// The number of writes that succeeded but should not have.
    fn write(&self) -> usize {
        let mut stale = 0;
        self.space.activate();
        for round in 1..=ROUNDS {
            self.space.map_fixed(AT, Prot::READ_WRITE).expect("room");
            let entered = self
                .space
                .pmap()
                .enter(AT.start, &self.page, Prot::READ_WRITE);
            assert_eq!(entered, Ok(true));
            // SAFETY: the CPU translates by tables that stay during the call.
            unsafe { self.machine.store(AT.start, 1) }.expect("mapped");
            self.mapped.store(round, Ordering::Release);
            // Writes at a different moment of the unmapping in each round.
            Metal::delay(round as u32 * 8);
            self.vm.remove_all(&self.page);
            // SAFETY: the CPU translates by tables that stay during the call.
            stale += usize::from(unsafe { self.machine.store(AT.start, 2) }.is_ok());
            Metal::spin_until(|| self.unmapped.load(Ordering::Acquire) == round);
        }
        self.machine.deactivate();
        stale
    }
}

/// A design that does not wait.
struct Hasty<I>(I);

impl<I: Invalidation<Metal>> Part<Metal> for Hasty<I> {
    type Config = I::Config;

    fn new(config: &I::Config, extent: Extent) -> Result<Self, Error> {
        I::new(config, extent).map(Hasty)
    }
}

// SAFETY: none; it breaks the promise, and the example shows that.
unsafe impl<I: Invalidation<Metal>> Invalidation<Metal> for Hasty<I> {
    type Block<'a> = I::Block<'a>;
    type Held<'a> = I::Held<'a>;
    type Page = I::Page;

    fn may_sleep(&self) -> bool {
        self.0.may_sleep()
    }
    fn begin(&self) -> I::Block<'_> {
        self.0.begin()
    }
    fn note(&self, block: &I::Block<'_>, frame: Frame, page: &I::Page) {
        self.0.note(block, frame, page);
    }
    fn enter(&self) -> I::Held<'_> {
        self.0.enter()
    }
    fn reverse(&self) -> I::Held<'_> {
        self.0.reverse()
    }
    fn wait(&self, _: &I::Held<'_>, _: Frame, _: &I::Page) {}
}
