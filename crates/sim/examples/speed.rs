//! How fast the host simulates 96 CPUs. One access in twenty is to a cache line that all of them
//! write.

use machine::{Atomic, AtomicInt, Atomics, Execute, Job, Ordering};
use sim::profile::MachineProfile;
use sim::{Options, Sim};
use std::sync::Arc;
use std::time::Instant;

#[global_allocator]
static ALLOCATOR: sim::Allocator = sim::Allocator;

const CPUS: usize = 96;
/// Accesses of each round to the CPU's own line.
const OWN: u64 = 190;
/// Accesses of each round to the line that all CPUs share.
const SHARED: u64 = 10;
const ROUNDS: u64 = 500;

#[repr(align(64))]
struct Line(<Sim as Atomics>::AtomicU64);

impl Line {
    fn new() -> Self {
        Line(Atomic::new(0))
    }

    fn add(&self, times: u64) {
        for _ in 0..times {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn main() {
    for lookahead in [true, false] {
        let profile = MachineProfile::named("freebsd-96").expect("built in");
        let options = Options {
            lookahead,
            ..Options::new(profile)
        };
        let sim = Sim::new(options).expect("address space");
        let line = sim.on_cpu(0, || Arc::new(Line::new()));
        let job = |_| {
            let line = line.clone();
            Box::new(move || {
                let own = Line::new();
                for _ in 0..ROUNDS {
                    own.add(OWN);
                    line.add(SHARED);
                }
            }) as Job
        };
        let begin = Instant::now();
        sim.execute((0..CPUS).map(job).collect());
        let took = begin.elapsed();
        let counts = sim.counts();
        println!(
            "lookahead {lookahead}: {:.1} M accesses/s ({} of {} moved a line, {} switches), \
             {} µs simulated in {} ms",
            counts.accesses as f64 / took.as_secs_f64() / 1e6,
            counts.transfers,
            counts.accesses,
            counts.switches,
            sim.time() / 1000,
            took.as_millis(),
        );
    }
}
