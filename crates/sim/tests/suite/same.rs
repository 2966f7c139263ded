//! Equal machines do the same, bit for bit, however the host runs them.

use crate::support;

use machine::{Atomic, AtomicInt, Clock, Cpus, Job, Ordering, Tasks};
use sim::{Counts, LineUse, Options, Progress, Sim, Times};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use support::{Line, profile, shared};
use sync::RawLock;
use sync::adaptive::Adaptive;
use sync::spin::{Mcs, Ticket};

const CPUS: usize = 96;

/// The data that CPUs share: a little of everything.
struct Site {
    counter: Line,
    table: [Line; 8],
    ticket: Ticket<Sim>,
    mcs: Mcs<Sim>,
    /// Blocks, so tasks park and are unparked.
    adaptive: Adaptive<Sim>,
    stored: [Line; 4],
    /// The number of CPUs that have arrived to meet.
    arrived: Line,
}

impl Default for Site {
    fn default() -> Self {
        Site {
            counter: Line::default(),
            table: Default::default(),
            ticket: Ticket::new(),
            mcs: Mcs::new(),
            adaptive: Adaptive::new(),
            stored: Default::default(),
            arrived: Line::default(),
        }
    }
}

impl Site {
    /// One step of a CPU, of a kind that its dice choose.
    fn step(&self, own: &Line) -> u64 {
        let which = sim::dice(8) as usize;
        match which {
            0 => return self.counter.0.fetch_add(1, Relaxed),
            1 => {
                return self
                    .table
                    .iter()
                    .map(|line| line.0.load(Ordering::Acquire))
                    .sum();
            }
            2 => self.table[sim::dice(8) as usize]
                .0
                .store(1, Ordering::Release),
            3 => {
                // Buffered, some behind each other.
                for line in &self.stored {
                    line.0.store(sim::dice(100), Ordering::Release);
                }
                return self.stored[0].0.load(Relaxed);
            }
            4 => hold(&self.ticket, 20.0),
            5 => hold(&self.mcs, 20.0),
            6 => hold(&self.adaptive, 3_000.0),
            _ => {
                for _ in 0..200 {
                    own.0.fetch_add(1, Relaxed);
                }
            }
        }
        0
    }

    /// Waits, spinning, until all have come.
    fn meet(&self, times: u64) {
        self.arrived.0.fetch_add(1, Ordering::AcqRel);
        Sim::spin_until(|| self.arrived.0.load(Ordering::Acquire) >= times * CPUS as u64);
    }
}

fn hold<L: RawLock<Sim>>(lock: &L, time: f64) {
    let held = lock.lock();
    sim::compute(time);
    // SAFETY: locked above, by this call.
    unsafe { lock.unlock(held) };
}

/// Everything that a run shows.
#[derive(Debug, PartialEq)]
struct Seen {
    time: u64,
    /// When each CPU ended, and a sum over what it has read.
    ends: Vec<(u64, u64)>,
    times: Vec<Times>,
    lines: Vec<LineUse>,
    /// Without switches: those depend on how the host runs it.
    accesses: u64,
    transfers: u64,
}

fn run(lookahead: bool, seed: u64) -> Seen {
    let sim = Sim::new(Options {
        seed,
        spread: 500,
        lookahead,
        ..Options::new(profile("freebsd-96"))
    });
    let sim = sim.expect("address space");
    let site = shared::<Site>(&sim);
    let ends = Arc::new(Mutex::new(vec![(0, 0); CPUS]));
    let job = |cpu: usize| {
        let (site, ends) = (site.clone(), ends.clone());
        Box::new(move || {
            let own = Line::default();
            let mut sum = 0u64;
            for step in 0..60 {
                sum = sum.wrapping_mul(31).wrapping_add(site.step(&own));
                if step % 20 == 19 {
                    site.meet(step / 20 + 1);
                }
            }
            let end = Sim::now();
            ends.lock().expect("no job panics")[cpu] = (end, sum);
        }) as Job
    };
    support::finish(&sim, (0..CPUS).map(|cpu| (cpu, job(cpu))).collect());
    let Counts {
        accesses,
        transfers,
        ..
    } = sim.counts();
    let ends = ends.lock().expect("no job panics").clone();
    Seen {
        time: sim.time(),
        ends,
        times: sim.times(),
        lines: sim.lines(),
        accesses,
        transfers,
    }
}

#[test]
fn lookahead_changes_nothing() {
    for seed in 0..8 {
        let ahead = run(true, seed);
        assert!(ahead.times.iter().any(|times| times.spinning > 0));
        assert!(ahead.times.iter().any(|times| times.parked > 0));
        let turns = run(false, seed);
        assert_eq!(ahead, turns, "seed {seed}");
    }
}

#[test]
fn a_seed_repeats_a_run_and_another_makes_another() {
    let one = run(true, 7);
    assert_eq!(one, run(true, 7));
    assert_ne!(one.ends, run(true, 8).ends);
}

/// Two tasks that take turns by parking.
#[test]
fn parking_repeats() {
    let run = |lookahead| {
        let sim = Sim::new(Options {
            lookahead,
            ..Options::new(profile("freebsd-96"))
        });
        let sim = sim.expect("address space");
        let names = Arc::new(Mutex::new([None; 2]));
        let turns = Arc::new(AtomicU64::new(0));
        let job = |me: usize| {
            let (names, turns) = (names.clone(), turns.clone());
            Box::new(move || {
                names.lock().expect("no job panics")[me] = Some(Sim::current_task());
                // Both have told their names when they come back.
                Sim::unpark(Sim::current_task());
                Sim::park();
                for _ in 0..50 {
                    let other = names.lock().expect("no job panics")[1 - me];
                    Sim::unpark(other.expect("it has begun"));
                    Sim::park();
                    turns.fetch_add(1, Relaxed);
                }
                let other = names.lock().expect("no job panics")[1 - me];
                Sim::unpark(other.expect("it has begun"));
            }) as Job
        };
        sim.start_on(vec![(0, job(0)), (30, job(1))]);
        assert_eq!(sim.run(u64::MAX / 4000), Progress::Finished);
        assert_eq!(turns.load(Relaxed), 100);
        (sim.time(), sim.times(), sim.counts().accesses)
    };
    assert_eq!(run(true), run(false));
}
