//! Simulated time is what the model says.

use machine::{Atomic, AtomicInt, Atomics, Cpus, Execute, Job, Ordering};
use sim::profile::Profile;
use sim::{Options, Sim};
use std::sync::Arc;

#[global_allocator]
static ALLOCATOR: sim::Allocator = sim::Allocator;

type Word = <Sim as Atomics>::AtomicU64;

#[repr(align(64))]
struct Line(Word);

/// Time for a round trip of a line between two CPUs that exchange it.
fn round_trip(profile: &Profile, a: usize, b: usize) -> f64 {
    const ROUNDS: u64 = 1000;
    let sim = Sim::new(Options::new(profile.clone())).expect("address space");
    let line = Arc::new(Line(Word::new(0)));
    let side = |me: u64| {
        let line = line.clone();
        Box::new(move || {
            for round in 0..ROUNDS {
                let want = 2 * round + me;
                while line
                    .0
                    .compare_exchange(want, want + 1, Ordering::AcqRel, Ordering::Relaxed)
                    .is_err()
                {
                    Sim::relax(0);
                }
            }
        }) as Job
    };
    sim.start_on(vec![(a, side(0)), (b, side(1))]);
    assert_eq!(sim.run(u64::MAX / 4000), sim::Progress::Finished);
    sim.time() as f64 / ROUNDS as f64
}

#[test]
fn print_ping_pong() {
    let profile = Profile::named("freebsd-96").expect("built in");
    for b in [48, 1, 24] {
        println!("{b}: {}", round_trip(&profile, 0, b));
    }
}

#[test]
fn counting() {
    for lookahead in [true, false] {
        for n in [1usize, 2, 4, 12, 24, 48, 96] {
            let sim = Sim::new(Options {
                lookahead,
                ..Options::new(Profile::named("freebsd-96").expect("built in"))
            })
            .expect("address space");
            let line = Arc::new(Line(Word::new(0)));
            let jobs = (0..n)
                .map(|_| {
                    let line = line.clone();
                    Box::new(move || {
                        let own = Line(Word::new(0));
                        for _ in 0..1000 {
                            for _ in 0..190 {
                                own.0.fetch_add(1, Ordering::Relaxed);
                            }
                            for _ in 0..10 {
                                line.0.fetch_add(1, Ordering::Relaxed);
                            }
                        }
                    }) as Job
                })
                .collect();
            let t = std::time::Instant::now();
            sim.execute(jobs);
            let host = t.elapsed();
            let counts = sim.counts();
            println!(
                "lookahead {lookahead} {n}: {} ns, {counts:?}, {:.1} M/s",
                sim.time(),
                counts.accesses as f64 / host.as_secs_f64() / 1e6
            );
        }
    }
}
