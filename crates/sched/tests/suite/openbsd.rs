//! How often OpenBSD's scheduler takes `SCHED_LOCK`.

use crate::support;

use baselines::openbsd::Scheduler;
use machine::{Atomic, Execute, Job, Ordering, Tasks};
use sched::openbsd::OpenBsd;
use sim::Sim;
use std::sync::Arc;
use support::{MICRO, Word, machine, quiet};
use sync::watch::profile;

/// Wake-ups, so few that no clock ticks meanwhile.
const ROUNDS: u64 = 50;

/// Acquisitions of `SCHED_LOCK` in each round, in which one task does `sleep` and another, on a CPU
/// of its own, does `wake`, twice, with nothing else to do.
fn acquisitions(
    sim: &Sim,
    sleep: impl Fn() + Send + 'static,
    wake: impl Fn() + Send + 'static,
) -> f64 {
    let tables = profile::of(sim.own_anchor());
    tables.start(2).expect("memory");
    let sleeper = move || (0..ROUNDS).for_each(|_| sleep());
    let waker = move || {
        for _ in 0..ROUNDS {
            sim::compute(50.0 * MICRO as f64);
            wake();
        }
    };
    let jobs: Vec<Job> = vec![Box::new(sleeper), Box::new(waker)];
    sim.execute(jobs);
    tables.stop();
    let rows = tables.report();
    let locks = rows.iter().filter(|row| row.class == "SCHED_LOCK");
    locks.map(|row| row.acquisitions).sum::<u64>() as f64 / ROUNDS as f64
}

/// A park: one for the switch to the idle thread, which then takes it once more as all do that
/// `mi_switch` returns to. A wake-up: one. And its CPU, which was idle: as in the park.
#[test]
fn a_wait_takes_it_four_times_and_a_wake_up_once() {
    let sim = machine::<OpenBsd<Sim>>(quiet(2, 0));
    let sleeper = Arc::new(std::sync::OnceLock::new());
    let name = sleeper.clone();
    let each = acquisitions(
        &sim,
        move || {
            name.get_or_init(Sim::current_task);
            Sim::park();
        },
        move || Sim::unpark(*sleeper.get().expect("it has begun")),
    );
    assert!((5.0..5.3).contains(&each), "{each}");
}

/// A wait in a sleep queue, which the same lock guards, takes the lock no more often: the switch
/// keeps the lock that the sleeper has, and the wake-up makes the task ready under the waker's.
/// `KERNEL_LOCK` is released meanwhile, and then held as often as before.
#[test]
fn a_sleep_queue_costs_no_more() {
    let sim = machine::<OpenBsd<Sim>>(quiet(2, 0));
    let key = Arc::new(Word::new(0));
    let other = key.clone();
    let at = |word: &Arc<Word>| std::ptr::from_ref(&**word).cast();
    let each = acquisitions(
        &sim,
        move || {
            let scheduler = Scheduler::<Sim>::of_machine();
            scheduler.kernel.lock();
            scheduler.kernel.lock();
            assert!(scheduler.sleep(at(&key), || key.load(Ordering::Relaxed) == 0));
            for _ in 0..2 {
                assert!(scheduler.kernel.is_mine());
                scheduler.kernel.unlock();
            }
            assert!(!scheduler.kernel.is_mine());
        },
        move || {
            let scheduler = Scheduler::<Sim>::of_machine();
            assert_eq!(scheduler.wake(at(&other), 1), 1);
            scheduler.kernel.lock();
            scheduler.kernel.unlock();
        },
    );
    assert!((5.0..5.3).contains(&each), "{each}");
}

/// A sleep until a time costs the same without a waker: the clock's interrupt wakes.
#[test]
fn a_nap_takes_it_five_times() {
    let sim = machine::<OpenBsd<Sim>>(quiet(2, 0));
    let each = acquisitions(
        &sim,
        || {
            let scheduler = Scheduler::<Sim>::of_machine();
            scheduler.sleep_until(machine_now() + 20 * MICRO);
        },
        || {},
    );
    assert!((5.0..5.3).contains(&each), "{each}");
}

fn machine_now() -> u64 {
    <Sim as machine::Clock>::now()
}
