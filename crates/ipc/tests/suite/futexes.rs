//! Futexes, on threads and on a simulated machine.

use crate::on;

use ipc::futex::Name;
use ipc::{Futexes, Kernel, Own, Wait};
use machine::{Atomic, Execute, Job, Machine, Ordering, Topology};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

struct World<M: Machine> {
    kernel: Own<M>,
    futexes: Futexes<M>,
    word: M::AtomicU64,
}

const WORD: Name = Name { of: 1, at: 8 };
const OTHER: Name = Name { of: 2, at: 8 };

impl<M: Execute + Topology> World<M> {
    fn on(machine: &M) -> Arc<Self> {
        let kernel = Own::new();
        Arc::new(World {
            futexes: Futexes::new(&kernel, machine.cpus()),
            kernel,
            word: M::AtomicU64::new(0),
        })
    }

    fn wait_while(&self, value: u64) -> Result<bool, ()> {
        let still = || Ok(self.word.load(Ordering::Relaxed) == value);
        self.futexes.wait(&self.kernel, WORD, still)
    }

    fn job(self: &Arc<Self>, work: impl FnOnce(&Self) + Send + 'static) -> Job {
        let world = self.clone();
        Box::new(move || work(&world))
    }
}

/// Two tasks that pass a word back and forth never miss each other, whichever is late.
fn no_wake_up_is_lost<M: Execute + Topology>(machine: &M) {
    const ROUNDS: u64 = 3_000;
    let world = World::on(machine);
    let player = |mine: u64| {
        world.job(move |w| {
            for turn in (mine..ROUNDS).step_by(2) {
                while let now = w.word.load(Ordering::Relaxed)
                    && now != turn
                {
                    w.wait_while(now).expect("no fault");
                }
                w.word.store(turn + 1, Ordering::Relaxed);
                w.futexes.wake(&w.kernel, WORD, 1);
            }
        })
    };
    on::together(machine, vec![player(0), player(1)]);
    assert_eq!(world.word.load(Ordering::Relaxed), ROUNDS);
}

/// A wake-up wakes no more waiters than requested, only those of that name, and each of them.
fn waking_counts<M: Execute + Topology>(machine: &M) {
    let world = World::on(machine);
    let waiter = || world.job(|w| assert_eq!(w.wait_while(0), Ok(true)));
    let waker = world.job(|w| {
        let mut woken = 0;
        while woken < 3 {
            assert_eq!(w.futexes.wake(&w.kernel, OTHER, usize::MAX), 0);
            let now = w.futexes.wake(&w.kernel, WORD, 3 - woken.max(1));
            assert!(now <= 2);
            woken += now;
            M::sleep_until(M::now() + 10_000);
        }
        assert_eq!((woken, w.futexes.wake(&w.kernel, WORD, 1)), (3, 0));
    });
    on::together(machine, vec![waiter(), waiter(), waiter(), waker]);
}

/// A task does not wait at a word with another value, and one that cannot be read is an error.
fn looks_first<M: Execute + Topology>(machine: &M) {
    let world = World::on(machine);
    let only = world.job(|w| {
        assert_eq!(w.wait_while(1), Ok(false));
        let fault = w.futexes.wait(&w.kernel, WORD, || Err("a fault"));
        assert_eq!(fault, Err("a fault"));
        assert_eq!(w.futexes.wake(&w.kernel, WORD, 1), 0);
    });
    on::together(machine, vec![only]);
}

/// A waiter that is not to wait any longer leaves the bucket, whatever its place there, and takes
/// no wake-up with it.
fn waits_end<M: Execute + Topology>(machine: &M) {
    let world = World::on(machine);
    let left = Arc::new(AtomicUsize::new(2));
    let waiter = || world.job(|w| assert_eq!(w.wait_while(0), Ok(true)));
    let passer = || {
        let left = left.clone();
        world.job(move |w| {
            for _ in 0..50 {
                let ends = M::now() + 2_000;
                let wait =
                    w.futexes
                        .wait_while(&Stopping, WORD, || M::now() < ends, || Ok::<_, ()>(true));
                assert_eq!(wait, Ok(Wait::Stopped));
            }
            left.fetch_sub(1, Ordering::Relaxed);
        })
    };
    let counted = left.clone();
    let waker = world.job(move |w| {
        while counted.load(Ordering::Relaxed) > 0 {
            M::sleep_until(M::now() + 1_000);
        }
        // Only the waiter is left, when it has come.
        while w.futexes.wake(&w.kernel, WORD, usize::MAX) == 0 {
            M::sleep_until(M::now() + 1_000);
        }
        assert_eq!(w.futexes.wake(&w.kernel, WORD, usize::MAX), 0);
    });
    on::together(machine, vec![waiter(), passer(), passer(), waker]);
}

/// Waiters that are moved wait at the other word only, from where they are woken, or leave.
fn waiters_move<M: Execute + Topology>(machine: &M) {
    let world = World::on(machine);
    let moved = Arc::new(AtomicUsize::new(0));
    let waiter = || world.job(|w| assert_eq!(w.wait_while(0), Ok(true)));
    let is_moved = moved.clone();
    let leaver = world.job(move |w| {
        let waits = || is_moved.load(Ordering::Relaxed) < 3;
        let wait = w
            .futexes
            .wait_while(&Stopping, WORD, waits, || Ok::<_, ()>(true));
        assert_eq!(wait, Ok(Wait::Stopped));
        is_moved.fetch_add(1, Ordering::Relaxed);
    });
    let mover = world.job(move |w| {
        let requeue = |names, counts, still| {
            let still = || Ok::<bool, ()>(still);
            w.futexes.requeue(&w.kernel, names, counts, still)
        };
        let all = [0, usize::MAX];
        while moved.load(Ordering::Relaxed) < 3 {
            assert_eq!(requeue([WORD, OTHER], all, false), Ok(None));
            let now = requeue([WORD, OTHER], all, true).expect("no fault");
            let [woken, more] = now.expect("the value holds");
            assert_eq!(woken, 0);
            moved.fetch_add(more, Ordering::Relaxed);
            M::sleep_until(M::now() + 1_000);
        }
        while moved.load(Ordering::Relaxed) < 4 {
            M::sleep_until(M::now() + 1_000);
        }
        assert_eq!(w.futexes.wake(&w.kernel, WORD, usize::MAX), 0);
        // One is woken, and one moved back.
        assert_eq!(requeue([OTHER, WORD], [1, 5], true), Ok(Some([1, 1])));
        assert_eq!(w.futexes.wake(&w.kernel, OTHER, usize::MAX), 0);
        assert_eq!(requeue([WORD, WORD], all, true), Ok(Some([0, 1])));
        assert_eq!(w.futexes.wake(&w.kernel, WORD, usize::MAX), 1);
    });
    on::together(machine, vec![waiter(), waiter(), leaver, mover]);
}

/// A kernel whose sleeps end by themselves.
struct Stopping;

impl<M: Machine> Kernel<M> for Stopping {
    fn sleep(&self, _key: *const (), still: impl FnOnce() -> bool) -> bool {
        M::sleep_until(M::now() + 1_000);
        still()
    }

    fn wake(&self, _key: *const (), _count: usize) -> usize {
        0
    }
}

#[test]
fn on_threads() {
    no_wake_up_is_lost(&on::hosted(2));
    looks_first(&on::hosted(1));
    waking_counts(&on::hosted(4));
    waits_end(&on::hosted(4));
    waiters_move(&on::hosted(4));
}

#[test]
fn on_a_simulated_machine() {
    for seed in 0..20 {
        no_wake_up_is_lost(&on::sim(seed));
        looks_first(&on::sim(seed));
        waking_counts(&on::sim(seed));
        waits_end(&on::sim(seed));
        waiters_move(&on::sim(seed));
    }
}
