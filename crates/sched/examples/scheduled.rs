//! How fast this computer simulates 48 CPUs without a scheduler and with one. One access in twenty
//! is to a cache line that all tasks write.
//!
//! `cargo run --release -p scalevm-sched --example scheduled`; the cases take turns, and medians
//! are printed.

use machine::{Atomic, AtomicInt, Atomics, Job, Ordering};
use sched::{Best, Sched};
use sim::profile::MachineProfile;
use sim::{Options, Progress, Sim};
use std::sync::Arc;

#[global_allocator]
static ALLOCATOR: sim::Allocator = sim::Allocator;

const CPUS: usize = 48;
/// Accesses of each round to the task's own line.
const OWN: u64 = 190;
/// Accesses of each round to the line that all tasks share.
const SHARED: u64 = 10;
/// Rounds of each CPU.
const ROUNDS: u64 = 300;
const RUNS: usize = 9;
const LIMIT: u64 = 1_000_000_000_000;

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

/// A name, true for a machine with a scheduler, and the tasks per CPU.
const CASES: [(&str, bool, u64); 3] = [
    ("no scheduler", false, 1),
    ("a scheduler, one task for each CPU", true, 1),
    ("a scheduler, three tasks for each CPU", true, 3),
];

fn main() {
    let runs: Vec<[f64; CASES.len()]> = (0..RUNS)
        .map(|_| CASES.map(|(_, scheduled, each)| measure(scheduled, each)))
        .collect();
    for (case, (name, ..)) in CASES.iter().enumerate() {
        let each = median(runs.iter().map(|run| run[case]));
        let ratio = median(runs.iter().map(|run| run[case] / run[0]));
        println!(
            "{name}: {:.1} M accesses/s, {each:.0} ns of this computer's time each; {ratio:.2} of \
             the first",
            1e3 / each
        );
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Nanoseconds of this computer's time an access.
fn measure(scheduled: bool, each: u64) -> f64 {
    let base = MachineProfile::named("freebsd-96").expect("built in");
    let profile = base.with_topology(1, CPUS, 1).expect("possible");
    let sim = Sim::new(Options::new(profile)).expect("address space");
    if scheduled {
        sim.schedule(Sched::<Sim, Best<Sim>>::new);
    }
    let line = sim.on_cpu(0, || Arc::new(Line::new()));
    let job = |_| {
        let line = line.clone();
        Box::new(move || {
            let own = Line::new();
            for _ in 0..ROUNDS / each {
                own.add(OWN);
                line.add(SHARED);
            }
        }) as Job
    };
    let begun = cpu_time();
    sim.start((0..CPUS as u64 * each).map(job).collect());
    assert_eq!(sim.run(LIMIT), Progress::Finished);
    (cpu_time() - begun) as f64 / sim.counts().accesses as f64
}

/// Nanoseconds that this thread has run on a CPU of this computer.
fn cpu_time() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let ran = stat.split_whitespace().next();
    ran.and_then(|time| time.parse().ok()).unwrap_or(0)
}
