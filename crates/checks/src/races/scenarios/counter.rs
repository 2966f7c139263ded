//! The exact counter: never above the limit, and nothing refused that fits.

use super::pause;
use crate::races::play::{Play, Scenario, Stage};
use machine::{Atomic, AtomicInt, Atomics, Ordering, Topology};
use sim::Sim;
use sync::counter::Limited;

/// Rounds of each CPU.
const ROUNDS: u64 = 16;
/// Units, where everything fits: few, so that CPUs search for them in each other's shares.
const FEW: u64 = 2;
/// Units, where not everything fits.
const LIMIT: u64 = 6;

/// Both sides of exactness.
pub fn all() -> Vec<Scenario> {
    vec![
        fits::<2>("counter.fits"),
        Scenario::new("counter.limit", over_limit).on(2..=6),
    ]
}

/// A reservation that always fits is never refused, with a counter that looks `LOOKS` times.
pub fn fits<const LOOKS: usize>(name: &str) -> Scenario {
    Scenario::new(name, within_limit::<LOOKS>).on(3..=6)
}

/// A slot for a unit, which the CPU that makes the slot busy reserves and any CPU releases.
struct Slot(<Sim as Atomics>::AtomicU32);

const EMPTY: u32 = 0;
const FULL: u32 = 1;
const BUSY: u32 = 2;

struct Slots<const LOOKS: usize> {
    counter: Limited<Sim, LOOKS>,
    slots: [Slot; FEW as usize],
}

/// The number of slots equals that of units, so that a unit is free for each empty slot.
fn within_limit<const LOOKS: usize>(stage: &Stage) -> Play {
    let world = Slots::<LOOKS> {
        counter: Limited::with_rounds(stage.machine.cpus(), FEW, FEW),
        slots: std::array::from_fn(|_| Slot(Atomic::new(EMPTY))),
    };
    let job = |world: &Slots<LOOKS>, _cpu: usize| {
        for _ in 0..2 * ROUNDS {
            let slot = &world.slots[sim::dice(FEW) as usize];
            slot.change(EMPTY, FULL, || {
                assert!(world.counter.reserve(1), "refused, though it fits");
            });
            slot.change(FULL, EMPTY, || world.counter.release(1));
            pause(200);
        }
    };
    Play::new(stage, world, job, |world| {
        for slot in &world.slots {
            slot.change(FULL, EMPTY, || world.counter.release(1));
        }
        assert_all_free(&world.counter);
    })
}

impl Slot {
    /// If the slot is `from`, calls `what` and makes it `to`.
    fn change(&self, from: u32, to: u32, what: impl FnOnce()) {
        let taken = self
            .0
            .compare_exchange(from, BUSY, Ordering::Acquire, Ordering::Relaxed);
        if taken.is_ok() {
            what();
            self.0.store(to, Ordering::Release);
        }
    }
}

struct World {
    counter: Limited<Sim>,
    /// The units that the CPUs hold for certain.
    held: <Sim as Atomics>::AtomicU64,
}

fn over_limit(stage: &Stage) -> Play {
    let world = World {
        counter: Limited::with_stock(stage.machine.cpus(), LIMIT, 3),
        held: Atomic::new(0),
    };
    let job = |world: &World, _cpu: usize| {
        for _ in 0..ROUNDS {
            let units = 1 + sim::dice(LIMIT);
            if world.counter.reserve(units) {
                let held = world.held.fetch_add(units, Ordering::Relaxed) + units;
                assert!(held <= LIMIT, "above the limit");
                pause(400);
                world.held.fetch_sub(units, Ordering::Relaxed);
                let first = sim::dice(units + 1);
                world.counter.release(first);
                world.counter.release(units - first);
            }
        }
    };
    Play::new(stage, world, job, |world| assert_all_free(&world.counter))
}

/// Asserts that all units can be reserved, and no more.
fn assert_all_free<const LOOKS: usize>(counter: &Limited<Sim, LOOKS>) {
    assert_eq!(counter.used(), 0, "units were lost");
    assert!(counter.reserve(counter.limit()), "all units are free");
    assert!(!counter.reserve(1), "above the limit");
}
