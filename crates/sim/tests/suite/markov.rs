//! A ticket lock follows the Markov chain of Boyd-Wickizer et al. ("Non-scalable locks are
//! dangerous", 2012).
//!
//! *n* CPUs want the lock again after private work of mean *a*, exponentially distributed; with *k*
//! of them waiting a turn takes *s + c·k*, because all waiters fetch the line anew, one after the
//! other. Two saturated runs give *s* and *c*; the chain then predicts all other numbers of CPUs
//! and lengths of private work.

use crate::support;

use machine::{Atomic, Job};
use sim::profile::MachineProfile;
use sim::{Progress, Sim};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use support::{Line, machine, profile, shared};
use sync::RawLock;
use sync::spin::Ticket;

#[derive(Default)]
struct Site {
    lock: Lock,
    line: Line,
}

struct Lock(Ticket<Sim>);

impl Default for Lock {
    fn default() -> Self {
        Lock(Ticket::new())
    }
}

impl Site {
    fn operate(&self) {
        self.lock.0.lock();
        self.line.0.store(1, Relaxed);
        // SAFETY: locked above, by this call.
        unsafe { self.lock.0.unlock(()) };
    }
}

/// Exponentially distributed with this mean.
fn exponential(mean: f64) -> f64 {
    const STEPS: u64 = 1 << 20;
    let share = (sim::dice(STEPS) + 1) as f64 / STEPS as f64;
    -share.ln() * mean
}

/// Operations per nanosecond of `cpus` CPUs with private work of mean `private` ns.
fn simulated(profile: &MachineProfile, cpus: usize, private: f64) -> f64 {
    /// Nanoseconds: the first are discarded.
    const WINDOWS: [u64; 2] = [500_000, 4_000_000];
    let sim = machine(profile, 1);
    let site = shared::<Site>(&sim);
    let count = Arc::new(AtomicU64::new(0));
    let job = |_| {
        let (site, count) = (site.clone(), count.clone());
        Box::new(move || {
            while count.load(Relaxed) < u64::MAX / 2 {
                sim::compute(exponential(private));
                site.operate();
                count.fetch_add(1, Relaxed);
            }
        }) as Job
    };
    let begin = sim.time();
    sim.start((0..cpus).map(job).collect());
    let counts = WINDOWS.map(|window| {
        assert_eq!(sim.run(begin + window), Progress::Running);
        count.load(Relaxed)
    });
    count.store(u64::MAX / 2, Relaxed);
    assert_eq!(sim.run(u64::MAX / 4000), Progress::Finished);
    (counts[1] - counts[0]) as f64 / (WINDOWS[1] - WINDOWS[0]) as f64
}

/// Nanoseconds of a turn: alone, and the addition per waiter.
struct Turn {
    alone: f64,
    waiter: f64,
}

impl Turn {
    /// Operations per nanosecond by the chain.
    fn predict(&self, cpus: usize, private: f64) -> f64 {
        // Weights of the states, by the number of CPUs at the lock, one of them inside.
        let rate = |at: usize| 1.0 / (self.alone + self.waiter * (at - 1) as f64);
        let mut weights = vec![1.0];
        for at in 1..=cpus {
            let arrive = (cpus - at + 1) as f64 / private;
            weights.push(weights[at - 1] * arrive / rate(at));
        }
        let all: f64 = weights.iter().sum();
        let done = (1..=cpus).map(|at| weights[at] / all * rate(at));
        done.sum()
    }

    /// Where the lock saturates: CPUs that keep it just busy.
    fn knee(&self, private: f64) -> f64 {
        (private + self.alone) / self.alone
    }
}

/// From two saturated runs: with private work `a` and turns of `t`, `n - 1 - a / t` wait.
fn fit(profile: &MachineProfile) -> Turn {
    const PRIVATE: f64 = 500.0;
    let [few, many] = [12, 24].map(|cpus| {
        let turn = 1.0 / simulated(profile, cpus, PRIVATE);
        (turn, (cpus - 1) as f64 - PRIVATE / turn)
    });
    let waiter = (many.0 - few.0) / (many.1 - few.1);
    Turn {
        alone: few.0 - waiter * few.1,
        waiter,
    }
}

/// Asserts that the chain is right within a tenth with this private work, for the numbers
/// of CPUs whose share of the knee is `compared`.
fn compare(profile: &MachineProfile, turn: &Turn, private: f64, compared: RangeInclusive<f64>) {
    let all = 1..=profile.cpus();
    let near = |cpus: &usize| compared.contains(&(*cpus as f64 / turn.knee(private)));
    let counts: Vec<usize> = all.filter(near).collect();
    assert!(counts.len() > 5, "{private} ns: {counts:?}");
    for cpus in counts {
        let found = simulated(profile, cpus, private);
        let off = found / turn.predict(cpus, private) - 1.0;
        println!("{private} ns, {cpus} CPUs: {:+.1} %", 100.0 * off);
        assert!(off.abs() < 0.1, "{private} ns, {cpus} CPUs: {off}");
    }
}

/// Turns are not distributed as the chain assumes, which shows near the knee. Without contention a
/// turn is shorter than `alone`, since a CPU does not wait for its stores: so the private work is
/// long below the knee, short beyond it.
#[test]
fn a_ticket_lock_follows_the_chain() {
    let profile = profile("freebsd-96");
    let profile = profile.with_topology(1, 24, 1).expect("possible");
    let turn = fit(&profile);
    let Turn { alone, waiter } = turn;
    println!("a turn takes {alone:.0} ns, and {waiter:.2} for each waiter");
    // On average half of the readers come before the next owner; each arrival makes all of them
    // read once more.
    let reader = profile.transfer.read_occupancy.cluster as f64 / 1000.0;
    assert!((0.5..1.5).contains(&(waiter / reader)), "of {reader}");
    for private in [3_000.0, 6_000.0, 12_000.0] {
        compare(&profile, &turn, private, 0.0..=0.6);
    }
    for private in [250.0, 750.0, 1_500.0] {
        compare(&profile, &turn, private, 1.6..=f64::INFINITY);
    }
}
