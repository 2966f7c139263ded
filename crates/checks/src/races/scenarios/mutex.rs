//! Mutual exclusion: two words that only the lock keeps equal.

use super::pause;
use crate::races::play::{Play, Scenario, Stage};
use machine::{Atomics, SharedCell};
use sim::Sim;
use sync::RawLock;
use sync::adaptive::Adaptive;
use sync::obm::{Obm, RestrictedObm};
use sync::spin::{
    Clh, Conbo, Hapax, K42, Mcs, Proportional, Qspinlock, Queued, Reciprocating, TestAndSet, Ticket,
};

/// Critical sections of each CPU.
const ROUNDS: u64 = 12;

/// Every mutex; those that block also with little spinning.
pub fn all() -> Vec<Scenario> {
    vec![
        named::<TestAndSet<Sim>>("mutex.tas"),
        named::<Ticket<Sim>>("mutex.ticket"),
        named::<Proportional<Sim>>("mutex.proportional"),
        named::<Conbo<Sim>>("mutex.conbo"),
        named::<Mcs<Sim>>("mutex.mcs"),
        named::<Clh<Sim>>("mutex.clh"),
        named::<K42<Sim>>("mutex.k42"),
        named::<Reciprocating<Sim>>("mutex.reciprocating"),
        named::<Hapax<Sim>>("mutex.hapax"),
        named::<Qspinlock<Sim>>("mutex.qspinlock"),
        named::<Queued<Sim, 1>>("mutex.cna"),
        named::<Obm<Sim>>("mutex.obm"),
        named::<Obm<Sim, 1>>("mutex.obm-parking"),
        named::<RestrictedObm<Sim>>("mutex.restricted-obm"),
        named::<RestrictedObm<Sim, 1>>("mutex.restricted-obm-parking"),
        named::<Adaptive<Sim>>("mutex.adaptive"),
        named::<Adaptive<Sim, 1>>("mutex.adaptive-parking"),
    ]
}

pub fn named<L: RawLock<Sim> + 'static>(name: &str) -> Scenario {
    Scenario::new(name, build::<L>).on(2..=6)
}

struct World<L> {
    lock: L,
    pair: Pair,
}

fn build<L: RawLock<Sim> + 'static>(stage: &Stage) -> Play {
    let world = World {
        lock: L::new(),
        pair: Pair::new(),
    };
    let sections = ROUNDS * stage.jobs as u64;
    Play::new(stage, world, job::<L>, move |world| {
        world.pair.check(sections);
        assert!(!world.lock.is_locked(), "locked, and no CPU holds it");
    })
}

fn job<L: RawLock<Sim>>(world: &World<L>, _cpu: usize) {
    for _ in 0..ROUNDS {
        let tried = (sim::dice(4) == 0).then(|| world.lock.try_lock()).flatten();
        let held = tried.unwrap_or_else(|| world.lock.lock());
        world.pair.advance();
        // SAFETY: `held` is from this lock.
        unsafe { world.lock.unlock(held) };
        pause(300);
    }
}

/// Two plain words, equal whenever no CPU is changing them.
pub struct Pair {
    first: <Sim as Atomics>::Cell<u64>,
    second: <Sim as Atomics>::Cell<u64>,
}

impl Pair {
    /// A pair of zeroes.
    pub fn new() -> Self {
        Pair {
            first: SharedCell::new(0),
            second: SharedCell::new(0),
        }
    }

    /// Adds one to both. No other CPU may access the words.
    pub fn advance(&self) {
        let value = self.look();
        // SAFETY: the machine runs one CPU at a time, so this write is atomic, even if other tasks
        // access the words.
        unsafe { *self.first.write() = value + 1 };
        // Sometimes long enough for waiters to block.
        pause(if sim::dice(8) == 0 { 20_000 } else { 40 });
        // SAFETY: one CPU runs at a time, as at the first write.
        unsafe { *self.second.write() = value + 1 };
    }

    /// Reads both. No other CPU may be writing.
    pub fn look(&self) -> u64 {
        // SAFETY: the machine runs one CPU at a time, so no write is under way.
        let (first, second) = unsafe { (*self.first.read(), *self.second.read()) };
        assert_eq!(first, second, "not alone in the critical section");
        first
    }

    /// Asserts that both are `value`.
    pub fn check(&self, value: u64) {
        assert_eq!(self.look(), value, "critical sections were lost");
    }
}
