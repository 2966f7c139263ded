//! Turnstiles and sleep queues: no wake-up is lost, none is given twice.

use super::pause;
use crate::races::play::{Play, Scenario, Stage};
use machine::{Atomic, AtomicInt, Atomics, Ordering, SharedCell};
use sim::Sim;
use std::ptr;
use sync::sleepq::{GlobalQueue, Hashed, SleepQueue};
use sync::turnstile::Turnstiles;

/// Rounds of each CPU.
const ROUNDS: u32 = 8;

/// Semaphores on turnstiles, a market on each sleep queue.
pub fn all() -> Vec<Scenario> {
    vec![
        Scenario::new("turnstile.semaphores", semaphores).on(2..=6),
        Scenario::new("sleepq.hashed", market::<Hashed<Sim>>).on(2..=6),
        Scenario::new("sleepq.global", market::<GlobalQueue<Sim>>).on(2..=6),
    ]
}

/// Two semaphores whose queues share a chain.
struct Semaphores {
    table: Turnstiles<Sim>,
    all: [Semaphore; 2],
}

struct Semaphore {
    /// Guarded by the chain.
    free: <Sim as Atomics>::Cell<u32>,
    inside: <Sim as Atomics>::AtomicU32,
    permits: u32,
}

impl Semaphore {
    fn new(permits: u32) -> Self {
        Semaphore {
            free: SharedCell::new(permits),
            inside: Atomic::new(0),
            permits,
        }
    }

    fn key(&self) -> *const () {
        ptr::from_ref(self).cast()
    }

    fn take(&self, table: &Turnstiles<Sim>) {
        let chain = table.lock(self.key());
        // SAFETY: the chain is locked.
        let free = unsafe { &mut *self.free.write() };
        match *free {
            0 => chain.wait(), // and the task that wakes this one hands its permit over
            _ => *free -= 1,
        }
    }

    fn give(&self, table: &Turnstiles<Sim>) {
        let mut chain = table.lock(self.key());
        if !chain.signal() {
            // SAFETY: the chain is locked.
            unsafe { *self.free.write() += 1 };
        }
    }
}

fn semaphores(stage: &Stage) -> Play {
    let world = Semaphores {
        table: Turnstiles::new(1),
        all: [Semaphore::new(1), Semaphore::new(2)],
    };
    let job = |world: &Semaphores, _cpu: usize| {
        for _ in 0..ROUNDS {
            let semaphore = &world.all[sim::dice(2) as usize];
            semaphore.take(&world.table);
            let inside = semaphore.inside.fetch_add(1, Ordering::Relaxed) + 1;
            assert!(inside <= semaphore.permits, "more inside than permits");
            pause(2_000);
            semaphore.inside.fetch_sub(1, Ordering::Relaxed);
            semaphore.give(&world.table);
            pause(300);
        }
    };
    Play::new(stage, world, job, |world| {
        for semaphore in world.all {
            let permits = semaphore.permits;
            assert_eq!(semaphore.free.into_inner(), permits, "permits were lost");
        }
    })
}

/// Producers and consumers.
struct Market<Q> {
    queue: Q,
    goods: <Sim as Atomics>::AtomicU32,
    producers: u32,
    consumers: u32,
}

fn market<Q: SleepQueue<Sim> + 'static>(stage: &Stage) -> Play {
    let jobs = stage.jobs as u32;
    let world = Market {
        queue: Q::new(),
        goods: Atomic::new(0),
        producers: jobs / 2,
        consumers: jobs - jobs / 2,
    };
    Play::new(stage, world, trade::<Q>, |world| {
        assert_eq!(world.goods.load(Ordering::Relaxed), 0, "goods were lost");
    })
}

fn trade<Q: SleepQueue<Sim>>(world: &Market<Q>, cpu: usize) {
    let key = ptr::from_ref(&world.goods).cast::<()>();
    if (cpu as u32) < world.producers {
        for _ in 0..ROUNDS * world.consumers {
            world.goods.fetch_add(1, Ordering::Release);
            world.queue.wake(key, 1);
            pause(500);
        }
        return;
    }
    for _ in 0..ROUNDS * world.producers {
        while !consume(&world.goods) {
            world
                .queue
                .sleep(key, || world.goods.load(Ordering::Relaxed) == 0);
        }
        pause(500);
    }
}

/// Takes one of the goods, if there is one.
fn consume(goods: &<Sim as Atomics>::AtomicU32) -> bool {
    let seen = goods.load(Ordering::Relaxed);
    let taken =
        |seen: u32| goods.compare_exchange(seen, seen - 1, Ordering::Acquire, Ordering::Relaxed);
    seen > 0 && taken(seen).is_ok()
}
