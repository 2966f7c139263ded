//! Waiters of ticket locks that wait for their distance look at the lock less often.

use crate::support;

use machine::Job;
use sim::Sim;
use std::sync::Arc;
use support::{finish, machine, profile};
use sync::RawLock;
use sync::spin::{Conbo, Proportional, Ticket};

const CPUS: usize = 16;
const ROUNDS: usize = 50;

/// How often a line moves between the CPUs while each acquires the lock some times.
fn transfers<R: RawLock<Sim> + 'static>() -> u64 {
    let sim = machine(&profile("freebsd-96"), 1);
    let lock = sim.on_cpu(0, || Arc::new(R::new()));
    sim.clear_accounts();
    let jobs = (0..CPUS).map(|cpu| {
        let lock = lock.clone();
        let job: Job = Box::new(move || {
            for _ in 0..ROUNDS {
                let held = lock.lock();
                sim::compute(200.0);
                // SAFETY: locked above.
                unsafe { lock.unlock(held) };
            }
        });
        (cpu, job)
    });
    finish(&sim, jobs.collect());
    sim.lines().iter().map(|line| line.transfers).sum()
}

#[test]
fn waiters_that_know_their_distance_look_less_often() {
    let blind = transfers::<Ticket<Sim>>();
    for paced in [transfers::<Proportional<Sim>>(), transfers::<Conbo<Sim>>()] {
        assert!(4 * paced < 3 * blind, "{paced} transfers, {blind} without");
    }
}
