//! Reader-writer locks: readers may overlap, writers are alone.

use super::mutex::Pair;
use super::pause;
use crate::races::play::{Play, Scenario, Stage};
use machine::{Atomic, AtomicInt, Atomics, Ordering};
use sim::Sim;
use sync::rwlock::{FreebsdRw, RawRw, Rwsem, SpinParkRw};

/// Acquisitions of each CPU.
const ROUNDS: u64 = 12;

/// The locks: `sync`'s and FreeBSD's, each also with little spinning; Linux's, also with waiters
/// that soon ask for the lock.
pub fn all() -> Vec<Scenario> {
    vec![
        Scenario::new("rwlock.spin-park", build::<SpinParkRw<Sim>>).on(2..=6),
        Scenario::new("rwlock.parking", build::<SpinParkRw<Sim, 1>>).on(2..=6),
        Scenario::new("rwlock.freebsd", build::<FreebsdRw<Sim>>).on(2..=6),
        Scenario::new("rwlock.freebsd-parking", build::<FreebsdRw<Sim, 0, 1, 20>>).on(2..=6),
        Scenario::new("rwlock.rwsem", build::<Rwsem<Sim>>).on(2..=6),
        Scenario::new("rwlock.rwsem-handed", build::<Rwsem<Sim, 500, 3_000>>).on(2..=6),
    ]
}

struct World<L> {
    lock: L,
    pair: Pair,
    writes: <Sim as Atomics>::AtomicU64,
}

fn build<L: RawRw<Sim> + 'static>(stage: &Stage) -> Play {
    let world = World {
        lock: L::new(),
        pair: Pair::new(),
        writes: Atomic::new(0),
    };
    Play::new(stage, world, job::<L>, |world| {
        world.pair.check(world.writes.load(Ordering::Relaxed));
        assert!(!world.lock.is_locked(), "locked, and no CPU holds it");
    })
}

fn job<L: RawRw<Sim>>(world: &World<L>, _cpu: usize) {
    let (lock, pair) = (&world.lock, &world.pair);
    for _ in 0..ROUNDS {
        let tries = sim::dice(4) == 0;
        if sim::dice(3) == 0 {
            if !(tries && lock.try_write()) {
                lock.write();
            }
            pair.advance();
            world.writes.fetch_add(1, Ordering::Relaxed);
            // SAFETY: acquired above.
            unsafe { lock.write_unlock() };
        } else {
            if !(tries && lock.try_read()) {
                lock.read();
            }
            let value = pair.look();
            pause(400);
            assert_eq!(pair.look(), value, "a writer concurrent with a reader");
            // SAFETY: acquired above.
            unsafe { lock.read_unlock() };
        }
        pause(300);
    }
}
